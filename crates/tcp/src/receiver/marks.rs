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

    /// Whether marks are echoed rather than counted.
    #[inline]
    pub(super) const fn echoes(&self) -> bool {
        matches!(self.ecn, EcnStyle::Classic | EcnStyle::Dctcp)
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
        self.stats.ce_segments += u64::from(marked) * u64::from(data.segments);
        if self.ecn == EcnStyle::Dctcp {
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
