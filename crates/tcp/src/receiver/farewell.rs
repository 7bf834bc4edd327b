//! FIN of an end that only receives, again and again until it is acknowledged; after that nobody is there.

use super::{Moment, Receiver, instant};
use crate::control::Control;
use crate::packet::{Ack, Data};
use crate::rtt::{RTO_MAX_US, RTO_MIN_US};

/// How far FIN of this end is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Farewell {
    /// When it is sent again, if it is: a deadline of [`Receiver::next_timer`], in the place of acknowledgements that wait, of which there are none any more.
    pub(super) due_ns: u64,
    /// How often it was.
    again: u32,
    /// Whether it has arrived.
    is_over: bool,
}

impl Default for Farewell {
    fn default() -> Self {
        Self { due_ns: u64::MAX, again: 0, is_over: false }
    }
}

impl Receiver {
    /// What FIN comes with is taken in, or what fills the last gap before it: to be acknowledged perhaps with FIN of this end (Linux: `tcp_fin`). FIN by itself tells
    /// nothing of how data come, nor by its ECN field that it was sent again (`tcp_event_data_recv` is for what has a length).
    #[cold]
    pub(super) fn take_last(
        &mut self,
        at: Moment,
        (data, pieces): (&Data, u64),
        gap_before: bool,
        out: &mut impl FnMut(Ack),
    ) {
        if data.bytes() > 0 {
            self.take_in_order(at, (data, pieces), gap_before, out);
        } else {
            self.buffer.hold(data, pieces);
        }
        self.converses = true;
    }

    /// FIN leaves, and acknowledges what has come (Linux: `tcp_send_fin`).
    #[cold]
    pub(super) fn part(&mut self, now_ns: u64, out: &mut impl FnMut(Ack)) {
        self.send(now_ns, &mut |ack| out(Ack { control: ack.control.with(Control::FIN), ..ack }));
        self.await_farewell(now_ns);
    }

    /// Nobody has acknowledged it: a tail loss probe first, then timeouts, each twice as long as the one before (Linux: `tcp_schedule_loss_probe`,
    /// `tcp_retransmit_timer`).
    fn await_farewell(&mut self, now_ns: u64) {
        let tick = self.config.tick;
        let timeout = self.own_timeout();
        let jiffies = match (self.farewell.again, self.handshake.rtt_us) {
            (0, Some(rtt_us)) => tick.jiffies_in(2 * rtt_us + RTO_MIN_US).min(timeout),
            (again, _) => timeout
                .saturating_mul(1 << again.saturating_sub(1).min(16))
                .min(tick.jiffies_in(RTO_MAX_US)),
        };
        self.ack_timer_ns = self.ack_wheel.start(tick, instant(now_ns), jiffies).as_nanos();
        self.farewell.due_ns = self.ack_timer_ns;
    }

    #[cold]
    pub(super) fn part_again(&mut self, now_ns: u64, out: &mut impl FnMut(Ack)) {
        self.farewell.again += 1;
        self.part(now_ns, out);
    }

    /// Something came that is no data after all that there was, when FIN had left. Once that acknowledges FIN, whoever comes then finds nobody (Linux:
    /// `tcp_rcv_state_process` in `TCP_LAST_ACK`). Before, it may be older than FIN: the answer to a second answer to the SYN, for one.
    #[cold]
    pub(super) fn hear_farewell(&mut self, data: &Data, out: &mut impl FnMut(Ack)) {
        if self.farewell.is_over {
            return self.reset(out);
        }
        if !data.has(Control::HEARD_FIN) {
            return;
        }
        self.farewell = Farewell { is_over: true, ..Farewell::default() };
        self.ack_timer_ns = u64::MAX;
        self.ack_wheel.end();
    }

    /// Whether this end is gone.
    pub(super) const fn is_gone(&self) -> bool {
        self.farewell.is_over
    }

    /// Nobody is there (Linux: `tcp_v4_send_reset`).
    #[cold]
    pub(super) fn reset(&self, out: &mut impl FnMut(Ack)) {
        out(Ack { control: Control::RESET, ..Ack::default() });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dualq_units::{Ecn, Instant};

    use super::*;
    use crate::receiver::ReceiverConfig;
    use crate::receiver::tests::data;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// One that has sent FIN at 40 ms, 30 ms after the answer to the SYN was acknowledged that took 31, and what it sent.
    fn parting() -> (Receiver, Vec<Ack>) {
        let mut receiver = Receiver::new(ReceiverConfig { closes: true, ..Default::default() });
        let mut sent = Vec::new();
        let mut out = |ack: Ack| sent.push(ack);
        receiver.on_data(
            at(0),
            &Data { control: Control::SYN, payload: 0, ..data(0, 0) },
            &mut out,
        );
        receiver.on_data(at(31), &Data { payload: 0, ..data(0, 0) }, &mut out);
        receiver.on_data(at(35), &Data { ecn: Ecn::Ect0, ..data(0, 0) }, &mut out);
        let control = Control::FIN.with(Control::PUSH);
        let fin = Data { payload: 1, segments: 1, control, ..data(1_448, 0) };
        receiver.on_data(at(40), &fin, &mut out);
        (receiver, sent)
    }

    /// As in the world `kernel` in `exact-26`, where FIN by itself is not ECN-capable, and for that is acknowledged by FIN alone.
    #[test]
    fn fin_that_nobody_acknowledges_is_sent_again() {
        let (mut receiver, mut sent) = parting();
        assert_eq!(sent.iter().filter(|ack| ack.ack == 1_449).count(), 1);
        assert!(sent.last().is_some_and(|ack| ack.has(Control::FIN)));
        let mut times = Vec::new();
        for _ in 0..4 {
            let timer = receiver.next_timer();
            times.push(timer.as_nanos() / 1_000_000);
            sent.clear();
            receiver.on_timer(timer, &mut |ack| sent.push(ack));
            assert!(matches!(sent[..], [Ack { ack: 1_449, control: Control::FIN, .. }]));
        }
        // A timeout of 231 ms is 24 jiffies, and a loss probe's two round trips and 200 ms are more; timers of 63 jiffies and more wait for their bucket.
        assert_eq!(times, [290, 540, 1_030, 2_000]);
    }

    #[test]
    fn who_comes_when_it_was_acknowledged_finds_nobody() {
        let (mut receiver, mut sent) = parting();
        let earlier = Data { payload: 0, ..data(1_449, 0) };
        let farewell = Data { control: Control::HEARD_FIN, ..earlier };
        sent.clear();
        receiver.on_data(at(70), &earlier, &mut |ack| sent.push(ack));
        assert!(receiver.next_timer() < Instant::NEVER);
        receiver.on_data(at(71), &farewell, &mut |ack| sent.push(ack));
        assert_eq!((sent.len(), receiver.next_timer()), (0, Instant::NEVER));
        receiver.on_data(at(72), &farewell, &mut |ack| sent.push(ack));
        receiver.on_data(at(73), &data(0, 0), &mut |ack| sent.push(ack));
        assert!(matches!(
            sent[..],
            [Ack { control: Control::RESET, .. }, Ack { control: Control::RESET, .. }]
        ));
    }
}
