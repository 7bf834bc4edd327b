//! The answer to a SYN, again and again until something comes.

use super::reading::CALL_NS;
use super::{Receiver, instant};
use crate::control::Control;
use crate::ecn::{self, EcnFlags, EcnStyle, Received};
use crate::packet::{Ack, Data};
use crate::rtt::RTO_INITIAL_US;
use crate::tick::micros_between;
use dualq_units::{Ecn, Instant};

/// How often it is sent again (Linux: `tcp_synack_retries`).
const MAX_RETRIES: u32 = 5;

/// How far a handshake is.
// In the order in which it is written, as [`Receiver`] is.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Handshake {
    /// How long it took until something came after the answer: all that this side knows of the round trip but for
    /// [`Buffer::rtt_us`](super::Buffer::rtt_us), if it sends no data itself, and else what [its sender](Receiver::follow) knows (Linux: `srtt_us` of its
    /// socket).
    pub(super) rtt_us: Option<u64>,
    pub(super) opened_ns: u64,
    /// The timeout of the sender of this end in jiffies, if it sends; else 0.
    pub(super) timeout: u32,
    /// When the SYN was answered, and how often since then.
    answered_ns: u64,
    answers: u32,
    /// How often nothing came for too long.
    timeouts: u32,
}

impl Handshake {
    #[inline]
    pub(super) const fn is_done(&self) -> bool {
        self.rtt_us.is_some()
    }
}

impl Receiver {
    pub(super) fn answer_syn(&mut self, now_ns: u64, data: &Data, out: &mut impl FnMut(Ack)) {
        // If it comes again, the first one counts, and is what is echoed (Linux: `tcp_check_req`).
        let again = self.handshake.answers > 0;
        if !again {
            self.echo_ms = data.timestamp_ms;
            self.handshake.answered_ns = now_ns;
            (self.ecn, self.granted) = ecn::answer(self.config.ecn, data.flags, data.ecn);
            self.received = Received::begin(data.ecn, 1);
            let is_plausible = data.seq == 0 && data.end() <= self.window;
            if self.config.fast_open && data.has_cookie() && is_plausible {
                // What else follows from data does not from these (Linux: `tcp_fastopen_add_skb`).
                self.stream.take(0, data.end());
                self.opening = data.end();
            }
        }
        let cookie = self.config.fast_open && data.asks_for_cookie();
        self.send_answer(now_ns, cookie, out);
        // A connection that data opened keeps the timer that it has (Linux: `tcp_check_req`).
        if !again || self.opening == 0 {
            self.await_acknowledgement(now_ns);
        }
        if self.opening > 0 {
            // The program has the connection by now.
            self.begin(now_ns);
            self.last_read_ns = Some(now_ns.saturating_add(CALL_NS));
            self.buffer.read(self.opening, &self.stream);
        }
    }

    /// Sends the answer to the SYN.
    fn send_answer(&mut self, now_ns: u64, cookie: bool, out: &mut impl FnMut(Ack)) {
        let mut ack = self.ack(now_ns, self.opening);
        // Windows are not scaled before both ends know by how much.
        self.window = self.buffer.initial_window(self.mss);
        ack.window = self.window.min(u16::MAX.into());
        ack.control = ack.control.with(Control::SYN).with(Control::COOKIE.when(cookie));
        // Where one was sent again in vain already, the ECN field's flags may be why (Linux: `tcp_ecn_make_synack`).
        let in_vain = self.handshake.timeouts > 0;
        ack.flags = if in_vain { EcnFlags::NONE } else { self.granted };
        // Only the first one offers it (Linux: `tcp_synack_options`).
        ack.option = if self.handshake.answers == 0 { self.offered_option() } else { None };
        ack.ecn = self.answer_ecn();
        self.handshake.answers += 1;
        out(ack);
    }

    /// The ECN field of the answer: DCTCP has set that of all that its socket sends, the answers of one that listens too, whoever asks (Linux:
    /// `tcp_reinit_congestion_control`, `tcp_v4_send_synack`).
    fn answer_ecn(&self) -> Ecn {
        match self.config.ecn {
            EcnStyle::Dctcp => Ecn::Ect0,
            EcnStyle::Accurate if self.config.tells_changes => Ecn::Ect0,
            _ => Ecn::NotEct,
        }
    }

    /// The timer of acknowledgements, which none wait for yet.
    fn await_acknowledgement(&mut self, now_ns: u64) {
        let jiffies = self.config.tick.jiffies_in(RTO_INITIAL_US << self.handshake.timeouts);
        let deadline = self.ack_wheel.start(self.config.tick, instant(now_ns), jiffies);
        self.ack_timer_ns = deadline.as_nanos();
    }

    /// Nothing came since the SYN was answered (Linux: `reqsk_timer_handler`).
    #[cold]
    pub(super) fn answer_again(&mut self, now_ns: u64, out: &mut impl FnMut(Ack)) {
        self.ack_timer_ns = u64::MAX;
        if self.handshake.timeouts < MAX_RETRIES {
            self.send_answer(now_ns, false, out);
            self.handshake.timeouts += 1;
            self.await_acknowledgement(now_ns);
        }
    }

    /// The connection is there: times are counted from now on (Linux: `tcp_create_openreq_child` and `tcp_finish_connect` set `lrcvtime`,
    /// `tcp_init_buffer_space` the rest).
    pub(super) fn begin(&mut self, now_ns: u64) {
        self.last_arrival = self.config.tick.count(now_ns);
        self.buffer.open(now_ns);
    }

    /// Something came after the SYN, by which its answer arrived; if that is RST, nobody waits for the connection any more (Linux: `tcp_check_req`).
    #[cold]
    pub(super) fn open(&mut self, now: Instant, data: &Data) {
        if data.has(Control::RESET) {
            self.ack_timer_ns = u64::MAX;
            self.ack_wheel.end();
            return;
        }
        let now_ns = now.as_nanos();
        let rtt_us = if self.handshake.answers > 1 {
            // Which one arrived is known by its time alone (Linux: `tcp_synack_rtt_meas`).
            self.config.tick.since_echo_us(now_ns, data.echo_ms)
        } else {
            micros_between(self.handshake.answered_ns, now_ns)
        };
        self.handshake.rtt_us = Some(rtt_us);
        self.handshake.opened_ns = now_ns;
        if self.opening == 0 {
            self.begin(now_ns);
        }
        self.ack_timer_ns = u64::MAX;
        self.ack_wheel.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receiver::ReceiverConfig;
    use crate::sender::{Sender, SenderConfig};

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// A segment without data, sent at `timestamp_ms`.
    fn segment(syn: bool, timestamp_ms: u32, echo_ms: u32) -> Data {
        let (ecn, flags) = (Ecn::NotEct, EcnFlags::NONE);
        let (seq, payload, segments, mss, options) = (0, 0, 1, 0, 0);
        Data {
            seq,
            payload,
            segments,
            mss,
            timestamp_ms,
            echo_ms,
            ecn,
            flags,
            options,
            control: Control::SYN.when(syn),
        }
    }

    /// When the answers leave, with what they echo, of a receiver that hears of nothing after the SYNs at these milliseconds.
    fn answers(syns: &[u32]) -> Vec<(u64, u32)> {
        let mut receiver = Receiver::new(ReceiverConfig::default());
        let mut sent = Vec::new();
        let mut left = syns.iter().peekable();
        loop {
            let timer = receiver.next_timer();
            let next_syn = left.peek().map(|ms| at(u64::from(**ms)));
            let now = next_syn.map_or(timer, |syn| syn.min(timer));
            if now == Instant::NEVER {
                return sent;
            }
            let mut out = |ack: Ack| sent.push((now.as_nanos() / 1_000_000, ack.echo_ms));
            if next_syn == Some(now) {
                let syn = segment(true, *left.next().expect("peeked"), 0);
                receiver.on_data(now, &syn, &mut out);
            } else {
                receiver.on_timer(now, &mut out);
            }
        }
    }

    /// After a second, two, four and so on, to which the wheel adds up to a bucket: 80 ms at a second, 640 at five.
    #[test]
    fn an_answer_that_nothing_follows_is_sent_five_times_more() {
        let times: Vec<u64> = answers(&[0]).into_iter().map(|(ms, _)| ms).collect();
        assert_eq!(times, [0, 1_040, 3_120, 7_200, 15_840, 32_480]);
    }

    #[test]
    fn a_syn_that_comes_again_is_answered_and_the_first_one_echoed() {
        let sent = answers(&[7, 507]);
        assert_eq!(sent[..3], [(7, 7), (507, 7), (1_520, 7)]);
    }

    /// As in the world `kernel` in `two-way-20261206`, where it goes into the other queue of `dualpi2 any_ect`.
    #[test]
    fn the_answers_of_dctcp_are_ecn_capable() {
        let ecn = |ecn: EcnStyle, tells_changes: bool| {
            let config = ReceiverConfig { ecn, tells_changes, ..ReceiverConfig::default() };
            let mut field = None;
            Receiver::new(config).on_data(at(0), &segment(true, 0, 0), &mut |ack| {
                field = Some(ack.ecn);
            });
            field
        };
        assert_eq!(ecn(EcnStyle::Dctcp, false), Some(Ecn::Ect0));
        assert_eq!(ecn(EcnStyle::Accurate, true), Some(Ecn::Ect0));
        assert_eq!(ecn(EcnStyle::Accurate, false), Some(Ecn::NotEct));
        assert_eq!(ecn(EcnStyle::Classic, false), Some(Ecn::NotEct));
    }

    /// As in the world `kernel` in `exact-20261334`, whose SYN comes again after its answer was sent again (Linux: `req->num_timeout`).
    #[test]
    fn an_answer_that_was_sent_again_in_vain_grants_no_ecn() {
        let mut receiver = Receiver::new(ReceiverConfig::default());
        let mut flags = Vec::new();
        let asks =
            |ms: u32| Data { flags: EcnFlags::ECE.with(EcnFlags::CWR), ..segment(true, ms, 0) };
        receiver.on_data(at(0), &asks(0), &mut |ack| flags.push(ack.flags));
        receiver.on_data(at(500), &asks(500), &mut |ack| flags.push(ack.flags));
        receiver.on_timer(receiver.next_timer(), &mut |ack| flags.push(ack.flags));
        receiver.on_data(at(1_600), &segment(true, 1_600, 0), &mut |ack| flags.push(ack.flags));
        receiver.on_timer(receiver.next_timer(), &mut |ack| flags.push(ack.flags));
        let [ece, none] = [EcnFlags::ECE, EcnFlags::NONE];
        assert_eq!(flags, [ece, ece, ece, none, none]);
    }

    /// As in the world `kernel`, of a flow that is stopped before its SYN is answered.
    #[test]
    fn a_connection_that_was_given_up_is_refused() {
        let mut sender = Sender::new(SenderConfig::default());
        let mut receiver = Receiver::new(ReceiverConfig::default());
        let (mut sent, mut answers) = (Vec::new(), Vec::new());
        sender.transmit(at(0), &mut |packet| sent.push(packet.data));
        sender.give_up();
        assert_eq!((sent.len(), sender.next_timer()), (1, Instant::NEVER));
        receiver.on_data(at(10), &sent[0], &mut |ack| answers.push(ack));
        sender.on_ack(at(20), &answers[0]);
        for _ in 0..2 {
            sender.transmit(at(20), &mut |packet| sent.push(packet.data));
        }
        let reset = sent[1];
        assert_eq!((sent.len(), reset.control, reset.wire_bytes()), (2, Control::RESET, 54));
        receiver.on_data(at(30), &reset, &mut |ack| answers.push(ack));
        assert_eq!((answers.len(), receiver.next_timer()), (1, Instant::NEVER));
        // One that is open is not.
        let mut sender = Sender::new(SenderConfig::default());
        sender.transmit(at(0), &mut |_| ());
        sender.on_ack(at(20), &answers[0]);
        sender.give_up();
        assert!(sender.is_established());
    }

    #[test]
    fn what_comes_then_ends_it_and_tells_the_round_trip_by_its_echo() {
        let mut receiver = Receiver::new(ReceiverConfig::default());
        let mut sent = 0;
        receiver.on_data(at(5), &segment(true, 1, 0), &mut |_| sent += 1);
        receiver.on_timer(receiver.next_timer(), &mut |_| sent += 1);
        assert_eq!((sent, receiver.is_established()), (2, false));
        receiver.on_data(at(1_505), &segment(false, 30, 5), &mut |_| sent += 1);
        assert_eq!(receiver.handshake.rtt_us, Some(1_500_000));
        assert_eq!((sent, receiver.next_timer()), (2, Instant::NEVER));
    }
}
