//! ECN: what is counted of marks, and what is echoed.

use dualq_units::Ecn;

use super::Receiver;
use crate::ecn::EcnStyle;
use crate::packet::{Ack, Data};

impl Receiver {
    /// The ECN field of an acknowledgement (Linux: `tcp_ecn_send`).
    #[inline]
    pub(super) fn ack_ecn(&self) -> Ecn {
        match self.ecn {
            EcnStyle::Off | EcnStyle::Classic => Ecn::NotEct,
            EcnStyle::Dctcp | EcnStyle::Accurate if self.config.ect1 => Ecn::Ect1,
            EcnStyle::Dctcp | EcnStyle::Accurate => Ecn::Ect0,
        }
    }

    /// Whether marks are echoed, or told of at once, and not only counted.
    #[inline]
    pub(super) fn heeds_marks(&self) -> bool {
        match self.ecn {
            EcnStyle::Off => false,
            EcnStyle::Classic | EcnStyle::Dctcp => true,
            EcnStyle::Accurate => self.config.tells_changes,
        }
    }

    /// Accurate ECN: counts what arrives, payload or none (RFC 9768 §3.2.2; Linux: `tcp_ecn_received_counters`).
    #[inline]
    pub(super) fn count(&mut self, data: &Data) {
        if self.ecn == EcnStyle::Accurate {
            self.count_accurately(data);
        }
    }

    #[inline(never)]
    fn count_accurately(&mut self, data: &Data) {
        let packets = u32::from(data.segments);
        self.ack_now |= self.received.count(data.ecn, packets, data.payload);
        self.stats.ce_segments += u64::from(data.ecn == Ecn::Ce) * u64::from(packets);
    }

    /// ECN: what to echo (RFC 3168 §6.1.3; RFC 8257 §3.2).
    pub(super) fn look_at_mark(&mut self, now_ns: u64, data: &Data, out: &mut impl FnMut(Ack)) {
        let marked = data.ecn == Ecn::Ce;
        if self.ecn != EcnStyle::Accurate {
            self.stats.ce_segments += u64::from(marked) * u64::from(data.segments);
        }
        if matches!(self.ecn, EcnStyle::Dctcp | EcnStyle::Accurate) {
            if data.ecn.is_capable() {
                if marked != self.ce_state {
                    if self.ack_timer_ns != u64::MAX {
                        self.echo = self.ce_state;
                        self.send_up_to(now_ns, self.ce_prior, out);
                    }
                    self.ack_now = true;
                }
                self.ce_prior = self.stream.next;
                self.ce_state = marked;
                self.echo = marked;
            }
        } else if marked && !self.echo {
            self.answer_quickly(2);
            self.echo = true;
        } else if !data.ecn.is_capable() && self.ecn_seen {
            // A retransmission, perhaps: the sender waits for news.
            self.answer_quickly(2);
        }
        self.ecn_seen |= data.ecn.is_capable();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dualq_units::Instant;

    use super::*;
    use crate::control::Control;
    use crate::ecn::EcnFlags;
    use crate::receiver::ReceiverConfig;
    use crate::receiver::tests::data;

    /// As in the world `kernel`: of a program that pauses, what was acknowledged late for a mark offers no more than what the mark itself is acknowledged with, for
    /// both are in the buffer by then (Linux: `dctcp_ece_ack_update` comes after `tcp_queue_rcv`).
    #[test]
    fn what_a_mark_finds_waiting_is_acknowledged_with_the_window_behind_it() {
        let mut receiver = Receiver::new(ReceiverConfig {
            ecn: EcnStyle::Dctcp,
            read_interval: Duration::from_millis(10),
            ..ReceiverConfig::default()
        });
        let syn =
            Data { control: Control::SYN, payload: 0, flags: EcnFlags::ASKS_CLASSIC, ..data(0, 0) };
        receiver.on_data(Instant::ZERO, &syn, &mut |_| ());
        let pair =
            |number: u64, ecn| Data { ecn, payload: 2_896, segments: 2, ..data(2_896 * number, 0) };
        let mut acks = Vec::new();
        for number in 0..25 {
            let now = Instant::ZERO + Duration::from_micros(1_000 + number);
            receiver.on_data(now, &pair(number, Ecn::Ect0), &mut |_| ());
        }
        let now = Instant::ZERO + Duration::from_micros(1_100);
        let marked = pair(25, Ecn::Ce);
        receiver.on_data(now, &marked, &mut |ack| acks.push((ack.ack, ack.window, ack.flags)));
        let [(before, window, none), (all, same, echo)] = acks[..] else { panic!("{acks:?}") };
        assert_eq!([before, all], [2_896 * 25, 2_896 * 26]);
        assert_eq!(window, same);
        assert_eq!([none, echo], [EcnFlags::NONE, EcnFlags::ECE]);
    }

    /// As in the world `kernel`: what waits is acknowledged before a mark is told of, also where Accurate ECN tells, if the congestion control is DCTCP.
    #[test]
    fn marks_that_begin_are_told_of_under_accurate_ecn_by_dctcp() {
        for (tells_changes, expected) in
            [(false, vec![21 * 1_448]), (true, vec![20 * 1_448, 21 * 1_448])]
        {
            let ecn = EcnStyle::Accurate;
            let mut receiver =
                Receiver::new(ReceiverConfig { ecn, tells_changes, ..ReceiverConfig::default() });
            let syn = Data {
                control: Control::SYN,
                payload: 0,
                flags: EcnFlags::ASKS_ACCURATE,
                ..data(0, 0)
            };
            receiver.on_data(Instant::ZERO, &syn, &mut |_| ());
            let one = |number: u64, ecn| Data { ecn, payload: 1_448, ..data(1_448 * number, 0) };
            let at = |number| Instant::ZERO + Duration::from_millis(number);
            let mut acks = Vec::new();
            for number in 0..20 {
                acks.clear();
                receiver
                    .on_data(at(number), &one(number, Ecn::Ect0), &mut |ack| acks.push(ack.ack));
            }
            // The quick acknowledgements are over: the last one waits.
            receiver.quick = 0;
            let waits = 20 + u64::from(!acks.is_empty());
            if waits > 20 {
                receiver.on_data(at(20), &one(20, Ecn::Ect0), &mut |_| ());
            }
            let mut told = Vec::new();
            receiver.on_data(at(21), &one(waits, Ecn::Ce), &mut |ack| told.push(ack.ack));
            let shift = 1_448 * (waits - 20);
            assert_eq!(told, expected.iter().map(|ack| ack + shift).collect::<Vec<u64>>());
        }
    }
}
