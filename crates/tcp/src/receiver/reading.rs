//! The program that reads what arrives, at once or every so often, and what comes while it does.

use super::buffer::PACKET_OVERHEAD;
use super::{READ_BYTES, Receiver};
use crate::packet::{Ack, Data, MAX_PIECES};
use crate::tick::instant;
use dualq_units::Instant;

/// What a program takes to read what lies there in one piece, to look at what came meanwhile, and to send an acknowledgement, however little: which of two
/// is first hangs on it where one follows from the other a round trip earlier.
pub(super) const CALL_NS: u64 = 1;

impl Receiver {
    /// It waits until the program has read: as one with what waits there already, or behind it, for which that is taken in now (Linux:
    /// `tcp_add_backlog`).
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
    pub fn begin_read(&mut self, now: Instant) {
        self.read_ns = u64::MAX;
        if self.has_read_all() {
            // It waits for what comes, which it reads at once.
            return;
        }
        self.reading_until_ns = now.as_nanos().saturating_add(CALL_NS);
        self.buffer.read(self.stream.next, self.stream.reach());
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
        if std::mem::take(&mut self.found_nothing) && self.has_read_all() {
            // It waits for what comes, or closes the gap, which it reads at once.
            self.reading_until_ns = u64::MAX;
            return;
        }
        self.read(now_ns, out);
    }

    /// The program wakes with a timer that also lets packets arrive: it has begun to read before they are taken in, though there is nothing to
    /// read, and ends as what [`next_timer`](Self::next_timer) tells has come.
    pub const fn wake_with_arrivals(&mut self, now: Instant) {
        self.read_ns = u64::MAX;
        self.reading_until_ns = now.as_nanos();
        self.found_nothing = true;
    }

    /// The program is woken, at once or when its interval is over: it runs after all that arrives at the same instant has been taken in.
    pub(super) fn schedule_read(&mut self, now_ns: u64) {
        if self.config.answers {
            self.reading_until_ns = now_ns.saturating_add(CALL_NS);
        } else if self.reads_seldom() {
            let next_ns = |last_ns: u64| now_ns.max(last_ns.saturating_add(self.read_interval_ns));
            self.read_ns = self.last_read_ns.map_or(now_ns, next_ns);
        }
    }

    /// Whether the program reads as soon as packets have arrived, and does nothing else.
    #[must_use]
    #[inline]
    pub const fn reads_at_once(&self) -> bool {
        !self.config.answers && !self.reads_seldom()
    }

    /// All that arrives at `now` has: a program that [reads at once](Self::reads_at_once) does (Linux: who is woken runs when the softirq
    /// has taken in all packets).
    #[inline]
    pub fn read_arrived(&mut self, now: Instant, out: &mut impl FnMut(Ack)) {
        if self.reads_at_once() && !self.has_read_all() {
            self.read(now.as_nanos(), out);
        }
    }

    /// The program reads everything there is.
    fn read(&mut self, now_ns: u64, out: &mut impl FnMut(Ack)) {
        self.read_ns = u64::MAX;
        self.reading_until_ns = u64::MAX;
        self.last_read_ns = Some(now_ns);
        if self.stream.next >= self.call_end {
            self.end_call(now_ns, out);
        }
        self.buffer.read(self.stream.next, self.stream.reach());
        self.tell_of_room(now_ns, out);
        // It sleeps, and wakes whether there is something to read or not.
        self.read_ns = self.pauses_until().map_or(u64::MAX, Instant::as_nanos);
    }

    /// The program's call ends within what is there: so much is read, and the next call reads the rest.
    #[cold]
    fn end_call(&mut self, now_ns: u64, out: &mut impl FnMut(Ack)) {
        let end = self.call_end;
        self.call_end += READ_BYTES as u64;
        self.buffer.read_part(end, self.stream.reach());
        self.tell_of_room(now_ns, out);
    }

    /// Something was read: that is acknowledged, or not yet (Linux: `__tcp_cleanup_rbuf`).
    #[inline]
    fn tell_of_room(&mut self, now_ns: u64, out: &mut impl FnMut(Ack)) {
        let offered = self.offered();
        let unacked = self.stream.next - self.acked;
        let ended = self.pushed && !self.stream.has_islands();
        let due = unacked > u64::from(self.buffer.segment()) || ended;
        // Seldom can so much more be offered that it is worth while to look how much it is.
        let opens = || {
            2 * offered <= self.buffer.widest_window() && {
                let window = self.buffer.window(self.window);
                window > 0 && window >= 2 * offered
            }
        };
        if (self.scheduled && (due || self.config.answers)) || opens() {
            self.send(now_ns, out);
            self.last_read_ns = Some(now_ns.saturating_add(CALL_NS));
        }
    }
}
