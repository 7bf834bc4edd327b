//! How long segments are: as the path takes them (RFC 1191; Linux: `tcp_v4_mtu_reduced`), half of the largest window, and what is sent again is cut or joined to.

use dualq_units::Instant;

use super::{Pacing, Sender, TOO_LONG_DUE};
use crate::cc::CongestionControl;
use crate::packet::HEADER_BYTES;
use crate::scoreboard::SACKED;

/// Nobody is believed who says less (Linux: `ip_rt_min_pmtu`).
const MIN_PATH_MTU: u32 = 552;

impl Sender {
    /// A router has no way on for IP packets longer than `mtu` bytes: segments are shorter from now on, and those under way that
    /// are longer are sent again. [`transmit`](Self::transmit) is to be called then.
    pub fn reduce_mtu(&mut self, now: Instant, mtu: u32) {
        self.path_mtu = self.path_mtu.min(mtu.max(MIN_PATH_MTU));
        let mss = self.path_mtu - HEADER_BYTES - self.options;
        if mss >= self.mss {
            return;
        }
        self.mss = mss;
        if !self.is_established() {
            // The SYN was too long, for its data: it is sent again without.
            self.syn_due |= self.snd_nxt > 0;
            return;
        }
        let lost = self.board.lose_longer(mss);
        if lost > 0 {
            self.rate.lost += u64::from(lost);
            self.retransmit_shortened(now.as_nanos());
            self.due |= TOO_LONG_DUE;
            self.clock_ns = self.last_sent_ns.max(self.rate.delivered_at_ns);
            // Its own timer of pacing has run out since, if it has one.
            let has_timer = self.config.pacing == Pacing::OnDemand && self.control.needs_pacing();
            if has_timer && self.departure_ns <= now.as_nanos() {
                self.clock_ns = self.clock_ns.max(self.departure_ns);
            }
        }
    }

    /// Cuts a packet that is sent again into segments of the size that they have now: shorter or longer than they were, as the path or an option may have
    /// come or gone (Linux: `__tcp_retransmit_skb`, of `tcp_current_mss`). FIN comes with the bytes before it, however many these are.
    #[cold]
    pub(super) fn cut_to_size(&mut self, first: u64) {
        let segments = self.board.run_length(first);
        let bytes = self.bytes_of(first);
        if segments == 1 && bytes <= self.mss {
            if bytes < self.mss && self.board.packet_length(first) == 1 {
                self.fill_up(first);
            }
            return;
        }
        let end = first + u64::from(segments);
        self.cut_before(end);
        self.board.cut_anew(first..end, (self.mss, self.fin));
        self.rack.renumber(&self.board);
    }

    /// Packets of one segment that has not arrived become part of the short one before them, as long as there is room in it and in the window: FIN for one, and what was
    /// written in small parts (Linux: `tcp_retrans_try_collapse`).
    fn fill_up(&mut self, first: u64) {
        let window = self.window_end.saturating_sub(self.board.get(first).start());
        let mut room = u64::from(self.mss).min(window).saturating_sub(self.bytes_of(first).into());
        let mut end = first + 1;
        while end < self.board.next && self.board.packet_length(end) == 1 {
            let (next, bytes) = (self.board.get(end), u64::from(self.bytes_of(end)));
            if next.has(SACKED) || bytes > room || next.end > self.window_end {
                break;
            }
            room -= bytes;
            end += 1;
        }
        if end > first + 1 {
            self.buffer.are_more(-((end - first - 1) as i64));
            self.board.put_together(first..end);
            self.rack.renumber(&self.board);
        }
    }

    /// Bytes of a segment without FIN.
    fn bytes_of(&self, number: u64) -> u32 {
        let segment = self.board.get(number);
        segment.payload - u32::from(segment.end > self.fin)
    }
}

/// Windows up to here are not halved (Linux: `TCP_MSS_DEFAULT`).
const SMALL_WINDOW: u64 = 536;

impl Sender {
    /// The receiver has offered a window. A segment is no longer than half of the largest one, so that two fit in (Linux:
    /// `tcp_bound_to_half_wnd`).
    #[inline]
    pub(super) fn see_window(&mut self, window: u64) {
        if window > self.largest_window {
            self.see_largest_window(window);
        }
    }

    #[cold]
    fn see_largest_window(&mut self, window: u64) {
        self.largest_window = window;
        // A control with a wish of its own has it anew with each acknowledgement.
        let whole = match self.control.packet_bytes() {
            Some(_) => self.mss,
            None => self.path_mtu.max(576) - HEADER_BYTES - self.options,
        };
        self.mss = self.within_half_window(whole);
    }

    fn within_half_window(&self, mss: u32) -> u32 {
        let window = self.largest_window;
        let most = if window > SMALL_WINDOW { window / 2 } else { window };
        u64::from(mss).min(most).max(1) as u32
    }

    /// New packets are as long as the congestion control wants them, and no longer than the path takes.
    #[inline]
    pub(super) fn resize_packets(&mut self) {
        if let Some(bytes) = self.control.packet_bytes() {
            self.resize_to(bytes);
        }
    }

    #[inline(never)]
    fn resize_to(&mut self, bytes: u32) {
        let whole = bytes.min(self.path_mtu.max(576));
        self.mss = self.within_half_window(whole.saturating_sub(HEADER_BYTES + self.options));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::control::Control;
    use crate::packet::{Ack, Transmission};
    use crate::sender::SenderConfig;

    /// What is sent, each packet of which leaves, so that more may be.
    fn transmit(sender: &mut Sender, now: Instant) -> Vec<(u64, u32, u16, u16)> {
        let mut all = Vec::new();
        loop {
            let mut sent = Vec::new();
            sender.transmit(now, &mut |Transmission { data, .. }| {
                sent.push((data.seq, data.payload, data.segments, data.mss));
            });
            let mut more = false;
            for packet in &sent {
                more |= sender.on_departure(packet.1);
            }
            all.extend(sent);
            if !more {
                return all;
            }
        }
    }

    /// An open connection with so many bytes to send, after a handshake of 20 ms.
    fn open(bytes: u64) -> Sender {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut sender = Sender::new(SenderConfig::default());
        sender.write(bytes);
        transmit(&mut sender, at(0));
        sender.on_ack(at(20), &Ack { control: Control::SYN, window: 65_160, ..Ack::default() });
        sender
    }

    /// What is too long is sent again, in segments of the new size and without a smaller window, and counts once when it arrives.
    #[test]
    fn what_is_too_long_is_sent_again_in_shorter_segments() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut sender = open(9_000);
        let sent = transmit(&mut sender, at(20));
        let bytes = |sent: &[(u64, u32, u16, u16)]| sent.iter().map(|sent| sent.1).sum::<u32>();
        assert_eq!(bytes(&sent), 9_000);
        sender.reduce_mtu(at(40), 1_252);
        assert_eq!(sender.mss(), 1_200);
        let window = sender.cwnd();
        let again = transmit(&mut sender, at(40));
        // The last 312 bytes were a packet of their own, which is short enough, and fits into the one before it.
        assert_eq!(bytes(&again), 9_000, "{again:?}");
        for (_, payload, segments, mss) in &again {
            assert_eq!(u32::from(*segments), payload.div_ceil(1_200));
            assert!(*segments == 1 || *mss == 1_200);
        }
        assert_eq!(sender.cwnd(), window);
        sender.reduce_mtu(at(41), 1_252);
        assert!(transmit(&mut sender, at(41)).is_empty(), "it is news once");
        sender.on_ack(at(60), &Ack { ack: 9_000, window: 65_160, ..Ack::default() });
        assert!(sender.is_done() && sender.in_flight() == 0);
    }

    /// A router's message is acted on by the time at which the connection last did anything, and sends nothing new.
    #[test]
    fn a_routers_message_does_not_let_the_clock_go_on() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut sender = open(100_000);
        transmit(&mut sender, at(20));
        let outstanding = sender.snd_nxt;
        let mut departures = Vec::new();
        sender.reduce_mtu(at(40), 1_252);
        sender.transmit(at(40), &mut |transmission| {
            departures.push(transmission.departure);
            assert!(transmission.data.end() <= outstanding, "{transmission:?}");
        });
        assert!(!departures.is_empty() && departures.iter().all(|departure| *departure < at(40)));
        // What follows is sent by a clock that goes on.
        let mut next = Vec::new();
        sender.on_departure(2_400);
        sender.transmit(at(41), &mut |transmission| next.push(transmission.departure));
        assert!(!next.is_empty() && next.iter().all(|departure| *departure >= at(41)), "{next:?}");
    }

    /// What was sent in longer or shorter segments than those of now is sent again in these, and what is short remains so.
    #[test]
    fn what_is_sent_again_is_cut_anew() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        for (before, now, again) in
            [(1_448, 1_436, [1_436, 12 + 1_448]), (1_436, 1_448, [1_448, 1_424])]
        {
            let mut sender = open(0);
            sender.mss = before as u32;
            sender.write(2 * before);
            let sent = transmit(&mut sender, at(20));
            assert_eq!(sent.last().map(|sent| sent.2), Some(2), "{sent:?}");
            sender.mss = now;
            sender.board.mark_lost(0);
            sender.board.mark_lost(1);
            sender.cut_to_size(0);
            assert_eq!(u64::from(sender.board.packet_length(0)), (2 * before).div_ceil(now.into()));
            assert_eq!(u64::from(sender.board.get(0).payload), again[0]);
            let rest = sender.board.get(sender.board.next - 1).end - again[0];
            assert_eq!(rest, again[1]);
            assert_eq!(sender.board.lost_out, sender.board.packets_out());
        }
    }

    /// As in the world `kernel` in `transfers-20261905`, where the last segment of a transfer and FIN were lost.
    #[test]
    fn what_fits_into_a_short_segment_is_sent_again_with_it() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        for (writes, closes, expected) in [
            (vec![1_448, 100], true, vec![(0, 1_448), (1_448, 101)]),
            (vec![100, 1_348], true, vec![(0, 1_449)]),
            (vec![100, 1_448], false, vec![(0, 100), (100, 1_448)]),
            (vec![100, 100, 100], false, vec![(0, 300)]),
        ] {
            let mut sender = open(0);
            transmit(&mut sender, at(20));
            let mut sent = 0;
            for bytes in &writes {
                sender.write(*bytes);
                sent += transmit(&mut sender, at(21)).len();
            }
            if closes {
                sender.close();
                sent += transmit(&mut sender, at(22)).len();
            }
            assert_eq!(sent, writes.len() + usize::from(closes), "all were packets of their own");
            sender.enter_loss(at(1_000).as_nanos());
            let (mut now, mut again) = (1_000, Vec::new());
            while !sender.is_done() {
                let sent = transmit(&mut sender, at(now));
                again.extend(sent.iter().map(|sent| (sent.0, sent.1)));
                let ack = again.last().map_or(0, |sent| sent.0 + u64::from(sent.1));
                now += 20;
                sender.on_ack(at(now), &Ack { ack, window: 65_160, ..Ack::default() });
            }
            assert_eq!(again, expected);
            assert_eq!((sender.in_flight(), sender.buffer.memory), (0, 0));
        }
    }

    #[test]
    fn two_segments_fit_into_the_largest_window() {
        let mut sender = Sender::new(SenderConfig { mtu: 9_000, ..SenderConfig::default() });
        assert_eq!(sender.mss, 8_948);
        for (window, mss) in [(500, 500), (8_948, 4_474), (8_000, 4_474), (65_160, 8_948)] {
            sender.see_window(window);
            assert_eq!(sender.mss, mss, "{window}");
        }
    }
}
