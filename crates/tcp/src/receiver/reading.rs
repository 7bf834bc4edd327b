//! The program that reads what arrives, at once or every so often, and what comes while it does.

use super::buffer::PACKET_OVERHEAD;
use super::{READ_BYTES, Receiver};
use crate::packet::{Ack, Data, MAX_PIECES};
use crate::tick::instant;
use dualq_units::Instant;
use dualq_units::hint::unlikely;

/// What a program takes to read what lies there in one piece, to look at what came meanwhile, and to send an acknowledgement, however little: which of two
/// is first hangs on it where one follows from the other a round trip earlier.
pub(super) const CALL_NS: u64 = 1;

impl Receiver {
    /// It waits until the program has read: as one with what waits there already, or behind it, for which that is taken in now (Linux:
    /// `tcp_add_backlog`).
    #[cold]
    pub(super) fn put_off(
        &mut self,
        now_ns: u64,
        data: &Data,
        more: u64,
        out: &mut impl FnMut(Ack),
    ) {
        self.buffer.waiting_memory += u64::from(data.payload);
        if let Some((before, pieces)) = &mut self.backlog
            && *pieces + more <= MAX_PIECES
            && before.join(data)
        {
            *pieces += more;
            return;
        }
        self.buffer.waiting_memory += PACKET_OVERHEAD;
        if let Some((before, pieces)) = self.backlog.replace((*data, more)) {
            self.reading_until_ns = self.reading_until_ns.saturating_add(CALL_NS);
            self.take(now_ns, &before, pieces, out);
        }
    }

    /// The program begins to read what is there: if [`is_next_to_read`](Self::is_next_to_read). It ends as what
    /// [`next_timer`](Self::next_timer) tells has come, and reads what has arrived meanwhile too (Linux: packets that come while a program
    /// reads wait in `sk_backlog` until it has read the rest).
    #[cold]
    pub fn begin_read(&mut self, now: Instant) {
        self.read_ns = u64::MAX;
        self.finds_end = self.is_at_end();
        if self.has_read_all() && (self.has_ended || !self.finds_end) {
            // It waits for what comes, which it reads at once, also if it has woken before it had to.
            self.is_awake = true;
            return;
        }
        self.reading_until_ns = now.as_nanos().saturating_add(CALL_NS);
        self.buffer.read(self.stream.next, &self.stream);
    }

    /// The program is woken, and begins to read when it is its turn: at `now`, if it is to read at all.
    pub const fn wake(&mut self, now: Instant) {
        self.read_ns = now.as_nanos();
        self.is_awake = true;
    }

    /// Others run until `until`: what is to end before does then.
    pub fn wait_for_turn(&mut self, until: Instant) {
        self.reading_until_ns = self.reading_until_ns.max(until.as_nanos());
    }

    /// Whether the end of the stream is there, and the program has read all before it.
    fn is_at_end(&self) -> bool {
        self.is_closed() && self.buffer.is_read(self.fin)
    }

    /// Whether nothing waits to be read: a program that begins to waits for what comes.
    #[must_use]
    #[inline]
    pub const fn has_read_all(&self) -> bool {
        self.buffer.is_read(self.stream.next)
    }

    /// When the program read last, if it has.
    #[must_use]
    #[inline]
    pub fn last_read(&self) -> Option<Instant> {
        self.last_read_ns.map(Instant::from_nanos)
    }

    /// When the program wakes that pauses after it has read last, whether there is something to read or not.
    #[must_use]
    pub fn pauses_until(&self) -> Option<Instant> {
        let last_ns = self.last_read_ns.filter(|_| self.reads_seldom())?;
        Some(instant(last_ns.saturating_add(self.read_interval_ns)))
    }

    /// Whether the program has begun to read and has not ended.
    #[must_use]
    #[inline]
    pub const fn is_reading(&self) -> bool {
        self.reading_until_ns < u64::MAX
    }

    /// It has read what was there, and takes what came meanwhile, if anything did.
    pub(super) fn go_on_reading(&mut self, now_ns: u64, out: &mut impl FnMut(Ack)) {
        if let Some((data, pieces)) = self.backlog.take() {
            self.take(now_ns, &data, pieces, out);
            self.buffer.waiting_memory = 0;
            self.reading_until_ns = now_ns.saturating_add(CALL_NS);
            // What is to be acknowledged at once is before it is read, once for all that waited (Linux: `tcp_backlog_ack_defer`, `__sk_flush_backlog`).
            if std::mem::take(&mut self.deferred) && self.scheduled {
                self.send(now_ns, out);
            }
            return;
        }
        let found_nothing = std::mem::take(&mut self.found_nothing);
        if found_nothing && self.has_read_all() {
            // It waits for what comes, or closes the gap, which it reads at once.
            self.reading_until_ns = u64::MAX;
            self.is_awake = true;
            return;
        }
        self.finds_end |= found_nothing && self.is_at_end();
        self.read_and_sleep(now_ns, out);
    }

    /// The program wakes with a timer that also lets packets arrive: it has begun to read before they are taken in, though there is nothing to
    /// read, and ends as what [`next_timer`](Self::next_timer) tells has come. To take them in and to acknowledge them takes a call each, as if
    /// something had been there (Linux: `tcp_rcv_established` and `__tcp_send_ack`, which both look at the clock).
    pub const fn wake_with_arrivals(&mut self, now: Instant) {
        self.read_ns = u64::MAX;
        self.reading_until_ns = now.as_nanos().saturating_add(CALL_NS);
        self.found_nothing = true;
    }

    /// A program that pauses is woken if there is something to read, at once or when its interval is over: it runs after all that arrives at the same
    /// instant has been taken in.
    #[inline(never)]
    pub(super) fn schedule_read(&mut self, now_ns: u64) {
        if self.has_read_all() || self.read_ns != u64::MAX || self.is_reading() {
            return;
        }
        let next_ns = |last_ns: u64| now_ns.max(last_ns.saturating_add(self.read_interval_ns));
        let last_ns = self.last_read_ns.filter(|_| !self.is_awake);
        self.read_ns = last_ns.map_or(now_ns, next_ns);
    }

    /// Whether the program waited for what has come at `now`, and so runs when all has that comes then.
    #[must_use]
    pub const fn is_woken_by_data(&self, now: Instant) -> bool {
        self.is_awake && self.read_ns == now.as_nanos()
    }

    /// Whether the program reads as soon as packets have arrived, and does nothing else.
    #[must_use]
    #[inline]
    pub const fn reads_at_once(&self) -> bool {
        !self.reads_seldom()
    }

    /// All that arrives at `now` has: a program that [reads at once](Self::reads_at_once) does (Linux: who is woken runs when the softirq
    /// has taken in all packets).
    #[inline]
    pub fn read_arrived(&mut self, now: Instant, out: &mut impl FnMut(Ack)) {
        if self.reads_at_once() && !self.has_read_all() {
            self.read(now.as_nanos(), out);
        }
    }

    /// A program that pauses has read everything there is, and sleeps: it wakes whether there is something to read or not.
    fn read_and_sleep(&mut self, now_ns: u64, out: &mut impl FnMut(Ack)) {
        self.reading_until_ns = u64::MAX;
        self.is_awake = false;
        if self.read(now_ns, out) {
            self.last_read_ns = Some(now_ns.saturating_add(CALL_NS));
        }
        self.read_ns = self.pauses_until().map_or(u64::MAX, Instant::as_nanos);
    }

    /// The program reads everything there is. Returns whether that was acknowledged.
    #[inline(always)]
    fn read(&mut self, now_ns: u64, out: &mut impl FnMut(Ack)) -> bool {
        self.last_read_ns = Some(now_ns);
        if unlikely(self.stream.next >= self.call_end) {
            self.end_call(now_ns, out);
        }
        self.buffer.read(self.stream.next, &self.stream);
        let told = self.tell_of_room(now_ns, out);
        if unlikely(self.is_closed()) && self.config.closes {
            self.end(now_ns, out);
        }
        told
    }

    /// The program finds the end, after a pause if it makes one, and closes its side.
    #[cold]
    fn end(&mut self, now_ns: u64, out: &mut impl FnMut(Ack)) {
        let finds_end = std::mem::take(&mut self.finds_end) || !self.reads_seldom();
        if finds_end && !self.has_ended {
            self.has_ended = true;
            self.part(now_ns, out);
        }
    }

    /// The program's call ends within what is there: so much is read, and the next call reads the rest.
    #[cold]
    fn end_call(&mut self, now_ns: u64, out: &mut impl FnMut(Ack)) {
        let end = self.call_end;
        self.call_end += READ_BYTES as u64;
        self.buffer.read_part(end, &self.stream);
        self.tell_of_room(now_ns, out);
    }

    /// Something was read: that is acknowledged, or not yet (Linux: `__tcp_cleanup_rbuf`). Returns whether it is.
    #[inline(always)]
    fn tell_of_room(&mut self, now_ns: u64, out: &mut impl FnMut(Ack)) -> bool {
        let unacked = self.stream.next - self.acked;
        let ended = self.pushed && !self.converses && !self.stream.has_islands();
        let due = unacked > u64::from(self.buffer.segment()) || ended;
        // Seldom can so much more be offered that it is worth while to look how much it is.
        let opens = || {
            let offered = self.offered();
            unlikely(2 * offered <= self.buffer.widest_window()) && {
                let window = self.buffer.window(self.window);
                window > 0 && window >= 2 * offered
            }
        };
        let tells = (self.scheduled && due) || opens();
        if tells {
            self.send(now_ns, out);
        }
        tells
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dualq_units::Bytes;

    use super::*;
    use crate::control::Control;
    use crate::receiver::ReceiverConfig;
    use crate::receiver::tests::data;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// One whose program has read at 1 ms, and pauses for 10.
    fn sleeper() -> Receiver {
        let read_interval = Duration::from_millis(10);
        let mut receiver =
            Receiver::new(ReceiverConfig { read_interval, ..ReceiverConfig::default() });
        receiver.on_data(
            Instant::ZERO,
            &Data { control: Control::SYN, payload: 0, ..data(0, 0) },
            &mut |_| (),
        );
        receiver.on_data(at(1), &data(0, 0), &mut |_| ());
        read(&mut receiver, &mut Vec::new());
        receiver
    }

    /// The program reads, from where it begins or goes on to where it ends.
    fn read(receiver: &mut Receiver, acks: &mut Vec<u64>) {
        loop {
            receiver.on_timer(receiver.next_timer(), &mut |ack| acks.push(ack.ack));
            if !receiver.is_reading() {
                return;
            }
        }
    }

    /// Linux: `tcp_backlog_ack_defer`.
    #[test]
    fn what_arrives_while_a_program_reads_is_acknowledged_once() {
        let (receiver, mut acks) = (sleeper(), Vec::new());
        // It sleeps, with nothing to read, until 11 ms, and wakes with what comes a little before that, unless another timer must run out earlier.
        let now = Instant::from_nanos(at(11).as_nanos() - 20_000);
        for (wakes, expected) in [(true, vec![4_344]), (false, vec![2_896, 4_344])] {
            let mut receiver = receiver.clone();
            if wakes {
                receiver.wake_with_arrivals(now);
            }
            for seq in [1_448, 2_896] {
                receiver.on_data(now, &data(seq, 0), &mut |ack| acks.push(ack.ack));
            }
            if receiver.is_reading() {
                read(&mut receiver, &mut acks);
            }
            assert_eq!(std::mem::take(&mut acks), expected);
        }
    }

    /// As in the world `kernel` in `wild-424243-13`: who wakes and finds nothing waits for it, and its pause begins when it has come.
    #[test]
    fn who_wakes_behind_a_gap_reads_what_closes_it_at_once() {
        let mut receiver = sleeper();
        let last = receiver.last_read();
        receiver.wake_with_arrivals(at(11));
        // As in `wild-20261201-0`, at 10.0566 s: what comes is taken in a call later, and acknowledged after that.
        assert_eq!(receiver.next_timer(), at(11) + Duration::from_nanos(CALL_NS));
        receiver.on_data(at(11), &data(2_896, 0), &mut |_| ());
        read(&mut receiver, &mut Vec::new());
        assert_eq!(receiver.last_read(), last);
        receiver.on_data(at(12), &data(1_448, 0), &mut |_| ());
        assert_eq!(receiver.next_timer(), at(12));
        read(&mut receiver, &mut Vec::new());
        assert_eq!(receiver.pauses_until(), Some(at(22) + Duration::from_nanos(1)));
    }

    /// Who wakes with another's timer may do so before its pause is over, and waits in its call (Linux: `hrtimer_nanosleep` with slack, then `sk_wait_data`).
    #[test]
    fn who_wakes_early_and_finds_nothing_reads_what_comes_at_once() {
        let mut receiver = sleeper();
        receiver.begin_read(Instant::from_nanos(at(11).as_nanos() - 20_000));
        let now = Instant::from_nanos(at(11).as_nanos() - 10_000);
        receiver.on_data(now, &data(1_448, 0), &mut |_| ());
        assert_eq!(receiver.next_timer(), now);
    }

    /// As in the world `kernel` in `d-receivers-17`, at 272.488 ms: of two who wake with packets those of the second one arrive before it runs.
    #[test]
    fn who_has_woken_second_reads_when_its_packets_have_arrived_and_the_first_one_has_ended() {
        let mut receiver = sleeper();
        let (now, busy) = (at(12), Instant::from_nanos(at(12).as_nanos() + 2));
        receiver.wake(now);
        let mut acks = Vec::new();
        for seq in [1_448, 2_896] {
            receiver.on_data(now, &data(seq, 0), &mut |ack| acks.push(ack.ack));
        }
        assert_eq!(acks, [2_896, 4_344], "none waits for it");
        receiver.on_timer(now, &mut |_| ());
        receiver.wait_for_turn(busy);
        assert_eq!((receiver.is_reading(), receiver.next_timer()), (true, busy));
        read(&mut receiver, &mut acks);
        assert_eq!(receiver.last_read(), Some(busy));
    }

    /// As in the world `kernel` in `wild-2-71`: two packets at one instant, of which the first one's reading would have let the window grow.
    #[test]
    fn what_arrives_at_one_instant_is_read_after_all_of_it_has() {
        let mut receiver = Receiver::new(ReceiverConfig::default());
        receiver.on_data(
            Instant::ZERO,
            &Data { control: Control::SYN, payload: 0, ..data(0, 0) },
            &mut |_| (),
        );
        for number in 0..48 {
            receiver.on_data(at(1), &data(number * 1_448, 0), &mut |_| ());
        }
        let windows = |together: bool| {
            let (mut receiver, mut windows) = (receiver.clone(), Vec::new());
            for number in 48..50 {
                let data = data(number * 1_448, 2);
                receiver.on_data_in(at(21), &data, 1, &mut |ack| windows.push(ack.window));
                if !together {
                    receiver.read_arrived(at(21), &mut |_| ());
                }
            }
            receiver.read_arrived(at(21), &mut |_| ());
            windows
        };
        let (one_by_one, together) = (windows(false), windows(true));
        assert!(one_by_one.last() > together.last(), "{one_by_one:?} {together:?}");
    }

    /// Linux: `tcp_recvmsg_locked`, which frees a packet when all of it is read. As in the world `kernel` in `wild-424243-8`.
    #[test]
    fn where_a_call_ends_within_a_packet_its_memory_is_missing_in_the_window() {
        let packet = |number: u64, segments: u16| Data {
            payload: 1_448 * u32::from(segments),
            segments,
            ..data(number * 14_480, 0)
        };
        let last = |call_end| {
            let config = ReceiverConfig { max_buffer: Bytes(1 << 20), ..ReceiverConfig::default() };
            let mut receiver = Receiver::new(config);
            let syn = Data { control: Control::SYN, payload: 0, ..data(0, 0) };
            receiver.on_data(Instant::ZERO, &syn, &mut |_| ());
            receiver.call_end = call_end;
            let mut acks = Vec::new();
            // The window does not grow beyond what there is room for beside a packet; then one comes that takes more.
            for number in 0..=400 {
                let now = Instant::from_nanos(1_000_000 * (number + 1));
                let packet = packet(number, if number < 400 { 10 } else { 44 });
                receiver.on_data(now, &packet, &mut |ack| acks.push((ack.ack, ack.window)));
            }
            (acks[399], acks[400], receiver.call_end)
        };
        let end = 400 * 14_480 + 63_712;
        let (before, whole, _) = last(READ_BYTES as u64);
        let (same, cut, call_end) = last(end - 1);
        assert_eq!((before.1, same, whole.0), (whole.1, before, end));
        assert_eq!((cut.0, call_end), (end, end - 1 + READ_BYTES as u64));
        // 34 segments, of which 241 of 256 bytes of memory are payload, in whole 32nds.
        assert_eq!(whole.1 - cut.1, 46_336);
    }

    /// Linux: `tcp_add_backlog`, `tcp_grow_window`. As in the world `kernel` in `wild-424243-61`: taken in one by one, the first of two would
    /// still have found room to let the window grow.
    #[test]
    fn what_arrives_while_a_program_reads_arrives_as_one_packet() {
        let (mut receiver, now) = (sleeper(), at(1));
        let held = |stamps: [u32; 3]| {
            let mut receiver = receiver.clone();
            (receiver.read_ns, receiver.reading_until_ns) = (u64::MAX, now.as_nanos());
            for (seq, timestamp_ms) in [1_448, 2_896, 4_344].into_iter().zip(stamps) {
                let data = Data { timestamp_ms, ..data(seq, 0) };
                receiver.on_data(now, &data, &mut |_| panic!("nothing is acknowledged yet"));
            }
            let (last, pieces) = receiver.backlog.unwrap();
            let mut acks = Vec::new();
            read(&mut receiver, &mut acks);
            assert_eq!(acks, [5_792]);
            (last.seq, last.payload, last.segments, last.mss, pieces)
        };
        assert_eq!(held([0, 0, 0]), (1_448, 4_344, 3, 1_448, 3));
        // Another time stands in the header.
        assert_eq!(held([0, 1, 1]), (2_896, 2_896, 2, 1_448, 2));
        // Whatever they say.
        receiver.begin_read(now);
        let last = Data { seq: u64::MAX - 1, payload: u32::MAX, ..data(0, 0) };
        for data in [last, Data { seq: u64::MAX, ..last }] {
            receiver.on_data(now, &data, &mut |_| ());
        }
        read(&mut receiver, &mut Vec::new());
    }
}
