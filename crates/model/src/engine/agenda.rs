//! What is to happen: timers of connections in the order of time. Within an instant, fine timers come first, first come first served;
//! then the coarse ones, which the kernel keeps in a wheel of its own, in the order in which that runs them.
//!
//! A timing wheel (Varghese, Lauck: *Hashed and Hierarchical Timing Wheels*, 1987) keeps the cost of a timer apart from
//! how many there are: only those of the current slot are sorted, and what is added to it, in a small heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dualq_tcp::WheelTimer;
use prefetch_index::prefetch_index;

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The sending endpoint's timer.
    Sender,
    /// The receiving endpoint's timer.
    Receiver,
    /// The sender's queue lets a packet go.
    Departure,
    /// The connection opens, or its program writes.
    Program,
}

/// How many causes there are.
const CAUSES: usize = 4;
/// The first of these have a coarse timer.
const COARSE_CAUSES: usize = 2;

impl Cause {
    const ALL: [Self; CAUSES] = [Self::Sender, Self::Receiver, Self::Departure, Self::Program];
}

/// A slot is 2¹⁷ ns long, 131 µs.
const SLOT_BITS: u32 = 17;
/// The wheel reaches half a second ahead: what lies further off is rare, or far apart.
const SLOTS: u64 = 4096;
const SLOT_WORDS: usize = SLOTS as usize / 64;
/// Room for so many entries is kept for other slots.
const SPARE_ENTRIES: usize = 64;

/// A deadline, what comes first within an instant, and whose it is, in this order from the top: 64, 38, 24 and 2 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry(u128);

const CONNECTION_BITS: u32 = 24;
const CAUSE_BITS: u32 = 2;

impl Entry {
    #[inline]
    const fn new(deadline_ns: u64, order: u64, connection: u32, cause: Cause) -> Self {
        let whose = (connection as u64) << CAUSE_BITS | cause as u64;
        let rest = order << (CONNECTION_BITS + CAUSE_BITS) | whose;
        Self((deadline_ns as u128) << 64 | rest as u128)
    }

    #[inline]
    const fn deadline_ns(self) -> u64 {
        (self.0 >> 64) as u64
    }

    const fn is_coarse(self) -> bool {
        self.0 as u64 >> (CONNECTION_BITS + CAUSE_BITS) >= COARSE
    }

    #[inline]
    const fn slot(self) -> u64 {
        self.deadline_ns() >> SLOT_BITS
    }

    #[inline]
    const fn connection(self) -> u32 {
        (self.0 as u64 >> CAUSE_BITS) as u32 & ((1 << CONNECTION_BITS) - 1)
    }

    #[inline]
    const fn cause(self) -> Cause {
        Cause::ALL[self.0 as usize & (CAUSES - 1)]
    }
}

/// A connection's deadlines, by cause; `u64::MAX` for none.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Deadlines {
    /// When the earliest entry that counts is due.
    scheduled: [u64; CAUSES],
    /// When the connection wants to be called.
    wanted: [u64; CAUSES],
    /// Where the coarse timers lie.
    places: [Place; COARSE_CAUSES],
}

/// Where a timer lies in the kernel's wheel.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// When its bucket runs out.
    runs_out_ns: u64,
    /// Its place among those that run out with it.
    order: u64,
    /// How often it had moved when it was seen last.
    moves: u32,
}

impl Place {
    const NOWHERE: Self = Self { runs_out_ns: u64::MAX, order: 0, moves: 0 };
}

/// Orders of coarse timers begin here: behind those of fine ones.
const COARSE: u64 = 1 << 37;
const LEVEL_SHIFT: u32 = 33;
const MOST_LEVELS: u64 = 15;
const MOST_STAMPS: u64 = (1 << LEVEL_SHIFT) - 1;

/// The order of a timer on `level` of the kernel's wheel that was the `stamp`th to be put in.
const fn coarse_order(level: u8, stamp: u64) -> u64 {
    COARSE | (MOST_LEVELS - level as u64) << LEVEL_SHIFT | (MOST_STAMPS - (stamp & MOST_STAMPS))
}

/// Nothing is due as late as that, nor does it say that nothing is due at all.
const UNKNOWN: u64 = u64::MAX - 1;

/// What an entry is whose time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The connection is to be called.
    Due(u32, Cause),
    /// A coarse timer runs out for which nobody waits any more.
    RunsOut,
    /// Nothing: the deadline has moved away.
    Moved,
}

/// Deadlines, of which each connection has one a cause. A deadline that moves away costs nothing: the entry stays and
/// is looked at again when it comes up, without troubling the connection.
#[derive(Debug)]
pub(crate) struct Agenda {
    /// The entries that the current slot had when its turn came, the earliest last.
    sorted: Vec<Entry>,
    /// Those that were added since, to this slot or an earlier one.
    near: BinaryHeap<Reverse<Entry>>,
    /// When the first of both is due, which is asked much more often than it changes; [`UNKNOWN`] after a change.
    next_ns: u64,
    current: u64,
    /// The entries of the slots behind the current one, by slot, and which slots have any.
    wheel: Vec<Vec<Entry>>,
    occupied: [u64; SLOT_WORDS],
    /// Room for slots, used before and now empty.
    spare: Vec<Vec<Entry>>,
    /// What lies beyond the wheel.
    far: BinaryHeap<Reverse<Entry>>,
    deadlines: Vec<Deadlines>,
    /// Of receivers that sleep, if there are any: until when, and the place of that timer among those of its instant.
    sleeps: Vec<(u64, u64)>,
    order: u64,
    /// How many timers were put into the kernel's wheel.
    stamp: u64,
}

impl Agenda {
    /// No deadlines, for so many connections: at most 2²⁴.
    pub(crate) fn new(connections: usize) -> Self {
        let none = Deadlines {
            scheduled: [u64::MAX; CAUSES],
            wanted: [u64::MAX; CAUSES],
            places: [Place::NOWHERE; COARSE_CAUSES],
        };
        Self {
            sorted: Vec::new(),
            near: BinaryHeap::new(),
            next_ns: UNKNOWN,
            current: 0,
            wheel: vec![Vec::new(); SLOTS as usize],
            occupied: [0; SLOT_WORDS],
            spare: Vec::new(),
            far: BinaryHeap::new(),
            deadlines: vec![none; connections],
            sleeps: Vec::new(),
            order: 0,
            stamp: 0,
        }
    }

    /// When the next entry is due; `u64::MAX` if there is none.
    #[inline]
    pub(crate) fn next_ns(&mut self) -> u64 {
        if self.next_ns == UNKNOWN {
            self.look();
        }
        self.next_ns
    }

    /// Looks when the next entry is due.
    fn look(&mut self) {
        self.next_ns = self.next().map_or(u64::MAX, Entry::deadline_ns);
    }

    /// The next deadline: when it is, whose and what for.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<(u64, u32, Cause)> {
        loop {
            let entry = self.next()?;
            if self.runs_out(entry) {
                return Some((entry.deadline_ns(), entry.connection(), entry.cause()));
            }
            self.take();
        }
    }

    /// Takes the next entry if nothing runs out there, for its deadline has moved away, and says whether it did.
    #[inline]
    pub(crate) fn skip_moved(&mut self) -> bool {
        let Some(entry) = self.next() else { return false };
        let has_moved = !self.runs_out(entry);
        if has_moved {
            self.take();
        }
        has_moved
    }

    /// Whether something runs out where that entry is. A coarse timer that nobody waits for any more does (Linux: `inet_csk_clear_xmit_timer`, which stops
    /// none), and a fine one does not (`hrtimer_try_to_cancel`).
    #[inline]
    fn runs_out(&self, entry: Entry) -> bool {
        let Deadlines { scheduled, wanted, places } = &self.deadlines[entry.connection() as usize];
        let (cause, deadline_ns) = (entry.cause() as usize, entry.deadline_ns());
        scheduled[cause] == deadline_ns
            && (wanted[cause] <= deadline_ns
                || places.get(cause).is_some_and(|place| place.runs_out_ns == deadline_ns))
    }

    /// The next entry.
    #[inline]
    fn next(&mut self) -> Option<Entry> {
        if self.sorted.is_empty() && self.near.is_empty() {
            self.turn();
        }
        self.first()
    }

    /// The next entry of the current slot.
    #[inline]
    fn first(&self) -> Option<Entry> {
        let sorted = self.sorted.last().copied();
        let near = self.near.peek().map(|Reverse(entry)| *entry);
        match (sorted, near) {
            (Some(sorted), Some(near)) => Some(sorted.min(near)),
            (sorted, near) => sorted.or(near),
        }
    }

    /// Whether a coarse timer runs out at `now_ns` too.
    pub(crate) fn has_coarse_at(&mut self, now_ns: u64) -> bool {
        while self.next_ns() == now_ns && self.skip_moved() {}
        self.next_ns() == now_ns && self.first().is_some_and(Entry::is_coarse)
    }

    #[inline]
    fn take_next(&mut self) -> Option<Entry> {
        self.next_ns = UNKNOWN;
        match (self.sorted.last(), self.near.peek()) {
            (Some(sorted), Some(Reverse(near))) if near < sorted => {}
            (Some(_), _) => return self.sorted.pop(),
            (None, _) => {}
        }
        self.near.pop().map(|Reverse(entry)| entry)
    }

    /// Asks for what is known of a connection from memory.
    #[inline]
    pub(crate) fn read_ahead(&self, connection: u32) {
        prefetch_index(&self.deadlines, connection as usize);
        // They take two lines of the cache; this is in the second one.
        prefetch_index(self.deadlines[connection as usize].places.as_slice(), 0);
    }

    /// Whose turn it will be after so many others, and for what.
    #[inline]
    pub(crate) fn upcoming(&self, others: usize) -> Option<(u32, Cause)> {
        let entry = self.sorted[self.sorted.len().checked_sub(1 + others)?];
        Some((entry.connection(), entry.cause()))
    }

    /// The connection is to be called at `deadline_ns` and not before; `u64::MAX` for not at all.
    #[inline]
    pub(crate) fn arm(&mut self, connection: u32, cause: Cause, deadline_ns: u64) {
        let deadlines = &mut self.deadlines[connection as usize];
        deadlines.wanted[cause as usize] = deadline_ns;
        if deadline_ns < deadlines.scheduled[cause as usize] {
            self.schedule(connection, cause, deadline_ns);
        }
    }

    /// A receiver sleeps until then. Though it may want to be called sooner for something else, this timer is set now: those of one instant run out in the
    /// order in which they were set (Linux: `timerqueue_add`).
    pub(crate) fn sleep(&mut self, connection: u32, deadline_ns: u64) {
        if self.sleeps.is_empty() {
            self.sleeps = vec![(u64::MAX, 0); self.deadlines.len()];
        }
        let sleep = &mut self.sleeps[connection as usize];
        if sleep.0 != deadline_ns {
            self.order += 1;
            *sleep = (deadline_ns, self.order);
        }
    }

    /// The receiver has woken before that timer ran out: what it is called for then is something else.
    pub(crate) fn wake(&mut self, connection: u32) {
        if let Some((sleeps_ns, _)) = self.sleeps.get_mut(connection as usize) {
            *sleeps_ns = u64::MAX;
        }
    }

    /// The place of the timer of a receiver that sleeps among those of its instant.
    pub(crate) fn place_asleep(&self, connection: u32) -> u64 {
        self.sleeps.get(connection as usize).map_or(0, |(_, order)| *order)
    }

    /// The same for an endpoint, whose coarse timer is `wheel`, which runs out whether it still waits for that or not.
    #[inline(always)]
    pub(crate) fn arm_coarse(
        &mut self,
        connection: u32,
        cause: Cause,
        deadline_ns: u64,
        wheel: &WheelTimer,
    ) {
        if self.deadlines[connection as usize].places[cause as usize].moves != wheel.moves() {
            self.take_place(connection, cause, deadline_ns, wheel);
        }
        let deadlines = &mut self.deadlines[connection as usize];
        deadlines.wanted[cause as usize] = deadline_ns;
        let next_ns = deadline_ns.min(deadlines.places[cause as usize].runs_out_ns);
        if next_ns < deadlines.scheduled[cause as usize] {
            self.schedule(connection, cause, next_ns);
        }
    }

    /// The coarse timer has moved.
    #[inline(always)]
    fn take_place(&mut self, connection: u32, cause: Cause, deadline_ns: u64, wheel: &WheelTimer) {
        let deadlines = &mut self.deadlines[connection as usize];
        self.stamp += 1;
        let order = coarse_order(wheel.level(), self.stamp);
        let (runs_out_ns, moves) = (wheel.runs_out().as_nanos(), wheel.moves());
        deadlines.places[cause as usize] = Place { runs_out_ns, order, moves };
        // An entry of a slot that has come stands where it was: another one before it counts. Others are put in order with their slot.
        if deadline_ns == deadlines.scheduled[cause as usize]
            && deadline_ns >> SLOT_BITS <= self.current
        {
            self.schedule(connection, cause, deadline_ns);
        }
    }

    /// Takes the next entry, if its connection still wants to be called.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(u32, Cause)> {
        match self.take() {
            Taken::Due(connection, cause) => Some((connection, cause)),
            Taken::RunsOut | Taken::Moved => None,
        }
    }

    /// Takes the next entry, and says what it is.
    #[inline]
    pub(crate) fn take(&mut self) -> Taken {
        let Some(entry) = self.take_next() else { return Taken::Moved };
        let (connection, cause) = (entry.connection(), entry.cause());
        let deadlines = &mut self.deadlines[connection as usize];
        let scheduled = &mut deadlines.scheduled[cause as usize];
        if *scheduled != entry.deadline_ns() {
            return Taken::Moved;
        }
        *scheduled = u64::MAX;
        let wanted = deadlines.wanted[cause as usize];
        let (mut next_ns, mut runs_out) = (wanted, false);
        if let Some(Place { runs_out_ns, .. }) = deadlines.places.get_mut(cause as usize) {
            if *runs_out_ns == entry.deadline_ns() {
                *runs_out_ns = u64::MAX;
                runs_out = true;
            }
            next_ns = next_ns.min(*runs_out_ns);
        }
        if wanted > entry.deadline_ns() {
            if next_ns != u64::MAX {
                self.schedule(connection, cause, next_ns);
            }
            return if runs_out { Taken::RunsOut } else { Taken::Moved };
        }
        Taken::Due(connection, cause)
    }

    #[inline(never)]
    fn schedule(&mut self, connection: u32, cause: Cause, deadline_ns: u64) {
        self.deadlines[connection as usize].scheduled[cause as usize] = deadline_ns;
        let order = self.place(connection, cause, deadline_ns).unwrap_or_else(|| {
            self.order += 1;
            self.order
        });
        self.file(Entry::new(deadline_ns, order, connection, cause));
    }

    /// Its place within the instant, if what is due then is a coarse timer or was set before.
    #[inline]
    fn place(&self, connection: u32, cause: Cause, deadline_ns: u64) -> Option<u64> {
        let place = self.deadlines[connection as usize].places.get(cause as usize)?;
        if place.runs_out_ns == deadline_ns {
            return Some(place.order);
        }
        let (sleeps_ns, order) = *self.sleeps.get(connection as usize)?;
        (sleeps_ns == deadline_ns && matches!(cause, Cause::Receiver)).then_some(order)
    }

    /// Since entries were filed, timers may have moved away and back.
    fn put_in_order(&mut self) {
        let mut entries = std::mem::take(&mut self.sorted);
        entries.sort_unstable_by(|one, other| other.cmp(one));
        let is_tie = |pair: &[Entry]| pair[0].deadline_ns() == pair[1].deadline_ns();
        if entries.windows(2).any(is_tie) {
            for entry in &mut entries {
                let (connection, cause) = (entry.connection(), entry.cause());
                if let Some(order) = self.place(connection, cause, entry.deadline_ns()) {
                    *entry = Entry::new(entry.deadline_ns(), order, connection, cause);
                }
            }
            entries.sort_unstable_by(|one, other| other.cmp(one));
        }
        self.sorted = entries;
    }

    #[inline]
    fn file(&mut self, entry: Entry) {
        let slot = entry.slot();
        if entry.deadline_ns() < self.next_ns {
            self.next_ns = UNKNOWN;
        }
        if slot <= self.current {
            self.near.push(Reverse(entry));
        } else if slot - self.current < SLOTS {
            let index = (slot % SLOTS) as usize;
            let bit = 1 << (index % 64);
            if self.occupied[index / 64] & bit == 0 {
                self.occupied[index / 64] |= bit;
                self.wheel[index] = self.spare.pop().unwrap_or_default();
            }
            self.wheel[index].push(entry);
        } else {
            self.far.push(Reverse(entry));
        }
    }

    /// How many slots behind the current one the next one is that has entries.
    fn distance(&self) -> Option<u64> {
        let start = (self.current + 1) % SLOTS;
        let (word, bit) = ((start / 64) as usize, start % 64);
        let mut rest = self.occupied[word] >> bit << bit;
        for step in 0..=SLOT_WORDS {
            let index = (word + step) % SLOT_WORDS;
            if rest != 0 {
                let found = index as u64 * 64 + u64::from(rest.trailing_zeros());
                return Some((found + SLOTS - start) % SLOTS + 1);
            }
            rest = self.occupied[(index + 1) % SLOT_WORDS];
        }
        None
    }

    /// Goes on to the next slot that has entries.
    fn turn(&mut self) {
        if let Some(distance) = self.distance() {
            self.current += distance;
        } else if let Some(Reverse(entry)) = self.far.peek() {
            self.current = entry.slot();
        } else {
            return;
        }
        let index = (self.current % SLOTS) as usize;
        self.occupied[index / 64] &= !(1 << (index % 64));
        let empty = std::mem::replace(&mut self.sorted, std::mem::take(&mut self.wheel[index]));
        if (1..=SPARE_ENTRIES).contains(&empty.capacity()) {
            self.spare.push(empty);
        }
        if self.sorted.len() > 1 {
            self.put_in_order();
        }
        while let Some(Reverse(entry)) = self.far.peek()
            && entry.slot() < self.current + SLOTS
        {
            let entry = *entry;
            self.far.pop();
            self.file(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use dualq_qdisc::{Random as _, SplitMix64};
    use dualq_tcp::Tick;
    use dualq_units::Instant;

    #[test]
    fn the_earliest_deadline_counts_and_ties_keep_their_order() {
        let mut agenda = Agenda::new(2);
        agenda.arm(0, Cause::Departure, 50);
        agenda.arm(0, Cause::Departure, 20);
        agenda.arm(1, Cause::Receiver, 20);
        assert_eq!(agenda.next_ns(), 20);
        assert_eq!(agenda.pop(), Some((0, Cause::Departure)));
        assert_eq!(agenda.pop(), Some((1, Cause::Receiver)));
        assert_eq!(agenda.next_ns(), 50);
        assert_eq!(agenda.pop(), None);
        assert_eq!(agenda.next_ns(), u64::MAX);
    }

    /// Of coarse timers that run out together, what was put in last comes first, a higher level before all; and fine ones come before.
    #[test]
    fn coarse_timers_come_as_the_kernel_runs_them() {
        let tick = Tick::default();
        let (mut agenda, mut wheels) = (Agenda::new(4), [WheelTimer::default(); 4]);
        let mut start = |agenda: &mut Agenda, connection: u32, now_ms: u64, jiffies: u32| {
            let now = Instant::from_nanos(now_ms * 1_000_000);
            let wheel = &mut wheels[connection as usize];
            let deadline = wheel.start(tick, now, jiffies);
            agenda.arm_coarse(connection, Cause::Sender, deadline.as_nanos(), wheel);
            deadline.as_nanos()
        };
        let order = |agenda: &mut Agenda| {
            std::iter::from_fn(|| (agenda.next_ns() < u64::MAX).then(|| agenda.pop()))
                .flatten()
                .map(|(connection, _)| connection)
                .collect::<Vec<u32>>()
        };
        let at = start(&mut agenda, 0, 0, 70);
        assert_eq!(start(&mut agenda, 1, 500, 21), at);
        assert_eq!(start(&mut agenda, 2, 500, 21), at);
        agenda.arm(3, Cause::Program, at);
        assert_eq!(order(&mut agenda), [3, 0, 2, 1]);
        // Whoever moves away and back is put in anew; whoever is set to the same is not.
        for (connection, now_ms, jiffies) in [(0, 1000, 20), (1, 1000, 20), (2, 1000, 20)] {
            start(&mut agenda, connection, now_ms, jiffies);
        }
        start(&mut agenda, 0, 1000, 30);
        start(&mut agenda, 0, 1010, 19);
        start(&mut agenda, 1, 1010, 19);
        assert_eq!(order(&mut agenda), [0, 2, 1]);
    }

    /// As in the world `kernel` in `wild-501-92`: who sleeps first wakes first, though its acknowledgements had a timer meanwhile.
    #[test]
    fn who_sleeps_first_wakes_first() {
        let mut agenda = Agenda::new(3);
        for connection in [2, 0] {
            agenda.sleep(connection, 1000);
        }
        agenda.arm(2, Cause::Receiver, 500);
        agenda.arm(0, Cause::Receiver, 1000);
        agenda.arm(2, Cause::Receiver, 1000);
        assert_eq!((agenda.next_ns(), agenda.pop()), (500, None));
        assert_eq!(agenda.pop(), Some((2, Cause::Receiver)));
        // It is awake: what it is called for then was not set when it began to sleep.
        agenda.wake(2);
        agenda.arm(2, Cause::Receiver, 1000);
        assert_eq!(agenda.pop(), Some((0, Cause::Receiver)));
        assert_eq!(agenda.pop(), Some((2, Cause::Receiver)));
    }

    #[test]
    fn a_deadline_that_moves_away_is_not_called_before() {
        let mut agenda = Agenda::new(1);
        agenda.arm(0, Cause::Sender, 20);
        agenda.arm(0, Cause::Sender, 3_000_000_000);
        assert_eq!(agenda.next_ns(), 20);
        assert_eq!(agenda.pop(), None);
        assert_eq!(agenda.next_ns(), 3_000_000_000);
        assert_eq!(agenda.pop(), Some((0, Cause::Sender)));
        agenda.arm(0, Cause::Sender, 4_000_000_000);
        agenda.arm(0, Cause::Sender, u64::MAX);
        assert_eq!((agenda.next_ns(), agenda.pop()), (4_000_000_000, None));
        assert_eq!(agenda.next_ns(), u64::MAX);
    }

    #[test]
    fn what_runs_out_is_a_coarse_timer_or_somebody_waits_for_it() {
        let tick = Tick::new(Duration::from_millis(10));
        let mut agenda = Agenda::new(2);
        let mut wheel = WheelTimer::default();
        let at = wheel.start(tick, Instant::ZERO, 4).as_nanos();
        agenda.arm_coarse(0, Cause::Receiver, at, &wheel);
        // Somebody waits for something else on the way, and then for nothing.
        agenda.arm_coarse(0, Cause::Receiver, 20, &wheel);
        agenda.arm_coarse(0, Cause::Receiver, u64::MAX, &wheel);
        agenda.arm(1, Cause::Departure, 50);
        assert!(agenda.skip_moved());
        assert!(!agenda.skip_moved());
        assert_eq!(agenda.peek(), Some((50, 1, Cause::Departure)));
        agenda.arm(1, Cause::Departure, u64::MAX);
        // The coarse one stays where it is, as long as it is not set anew.
        assert_eq!(agenda.peek(), Some((at, 0, Cause::Receiver)));
        assert!(!agenda.skip_moved());
        assert_eq!((agenda.pop(), agenda.peek()), (None, None));
        agenda.arm_coarse(0, Cause::Receiver, u64::MAX, &wheel);
        assert_eq!(agenda.peek(), None, "once");
        let later = wheel.start(tick, Instant::ZERO, 30).as_nanos();
        agenda.arm_coarse(0, Cause::Receiver, later, &wheel);
        let latest = wheel.start(tick, Instant::ZERO, 60).as_nanos();
        agenda.arm_coarse(0, Cause::Receiver, latest, &wheel);
        assert_eq!(agenda.peek(), Some((latest, 0, Cause::Receiver)), "it was moved");
        assert_eq!(agenda.pop(), Some((0, Cause::Receiver)));
    }

    /// Entries near, on the wheel and beyond it come up as a sorted list has them, while time goes on.
    #[test]
    fn nothing_is_early_late_or_lost() {
        let mut random = SplitMix64::new(1);
        let connections = 500_u32;
        let mut agenda = Agenda::new(connections as usize);
        let mut wanted = vec![u64::MAX; connections as usize];
        let mut now = 0;
        for _ in 0..50_000 {
            let connection = random.next_u32() % connections;
            let reach = 1_u64 << (random.next_u32() % 35);
            if wanted[connection as usize] == u64::MAX {
                let deadline = now + u64::from(random.next_u32()) % reach;
                wanted[connection as usize] = deadline;
                agenda.arm(connection, Cause::Sender, deadline);
            }
            if !random.next_u32().is_multiple_of(3) {
                let earliest = wanted.iter().copied().min().unwrap_or(u64::MAX);
                assert_eq!(agenda.next_ns(), earliest);
                if let Some((connection, _)) = agenda.pop() {
                    assert_eq!(wanted[connection as usize], earliest);
                    wanted[connection as usize] = u64::MAX;
                    now = earliest;
                }
            }
        }
        assert!(now > 1_000_000_000);
    }
}
