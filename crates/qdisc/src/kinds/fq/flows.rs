//! The flows that `fq` knows: found by their key in constant time, chained in the order in which they are served, forgotten
//! when they were idle for long.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::time::Duration;

use dualq_units::Instant;

use crate::pool::{Chain, read_ahead};

/// An index among [`Flows`].
pub(super) type FlowId = u32;

const NOBODY: FlowId = FlowId::MAX;
/// Idle flows are forgotten after this.
const FORGET_AFTER: Duration = Duration::from_secs(3);
/// How many are looked at for each new one.
const FORGET_AT_ONCE: usize = 8;

/// A flow.
pub(super) struct Flow {
    key: u64,
    pub(super) queue: Chain,
    /// When the last packet in the queue is due.
    pub(super) last_due: Instant,
    /// Bytes that it may send in its turn; below zero if it sent more.
    pub(super) credit: i64,
    /// When its rate allows the next packet; zero if nothing ever held it back.
    pub(super) next_packet: Instant,
    /// Where its packets are served.
    pub(super) band: usize,
    /// Whether it is in no list but that of the idle.
    idle: bool,
    idle_since: Instant,
    previous: FlowId,
    next: FlowId,
}

/// Flows in order.
#[derive(Clone, Copy)]
pub(super) struct FlowList {
    first: FlowId,
    last: FlowId,
}

impl FlowList {
    pub(super) const EMPTY: Self = Self { first: NOBODY, last: NOBODY };

    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.first == NOBODY
    }

    #[inline]
    pub(super) fn first(&self) -> Option<FlowId> {
        (self.first != NOBODY).then_some(self.first)
    }
}

/// Every flow.
pub(super) struct Flows {
    all: Vec<Flow>,
    by_key: HashMap<u64, FlowId, BuildHasherDefault<KeyHasher>>,
    unused: Vec<FlowId>,
    /// The idle ones, the longest idle first.
    idle: FlowList,
    pub(super) forgotten: u64,
}

impl std::ops::Index<FlowId> for Flows {
    type Output = Flow;

    #[inline]
    fn index(&self, id: FlowId) -> &Flow {
        &self.all[id as usize]
    }
}

impl std::ops::IndexMut<FlowId> for Flows {
    #[inline]
    fn index_mut(&mut self, id: FlowId) -> &mut Flow {
        &mut self.all[id as usize]
    }
}

impl Flows {
    pub(super) fn new() -> Self {
        Self {
            all: Vec::new(),
            by_key: HashMap::default(),
            unused: Vec::new(),
            idle: FlowList::EMPTY,
            forgotten: 0,
        }
    }

    /// Those that are known.
    pub(super) fn count(&self) -> u32 {
        self.by_key.len() as u32
    }

    /// Every place, used or not.
    pub(super) fn ids(&self) -> std::ops::Range<FlowId> {
        0..self.all.len() as FlowId
    }

    /// The flow of this key; a new one is idle and has `credit`.
    #[inline]
    pub(super) fn find_or_add(&mut self, key: u64, credit: i64, now: Instant) -> FlowId {
        match self.by_key.get(&key) {
            Some(id) => *id,
            None => self.add(key, credit, now),
        }
    }

    fn add(&mut self, key: u64, credit: i64, now: Instant) -> FlowId {
        self.forget(now);
        let flow = Flow {
            key,
            queue: Chain::EMPTY,
            last_due: now,
            credit,
            next_packet: Instant::ZERO,
            band: 0,
            idle: false,
            idle_since: now,
            previous: NOBODY,
            next: NOBODY,
        };
        let id = match self.unused.pop() {
            Some(id) => {
                self[id] = flow;
                id
            }
            None => {
                self.all.push(flow);
                (self.all.len() - 1) as FlowId
            }
        };
        self.by_key.insert(key, id);
        self.rest(id, now);
        id
    }

    fn forget(&mut self, now: Instant) {
        for _ in 0..FORGET_AT_ONCE {
            let Some(id) = self.idle.first() else { return };
            if now <= self[id].idle_since + FORGET_AFTER {
                return;
            }
            self.wake(id);
            let key = self[id].key;
            self.by_key.remove(&key);
            self.unused.push(id);
            self.forgotten += 1;
        }
    }

    /// Makes a flow that is in no list idle.
    pub(super) fn rest(&mut self, id: FlowId, now: Instant) {
        let last = self.idle.last;
        let flow = &mut self[id];
        (flow.idle, flow.idle_since) = (true, now);
        (flow.previous, flow.next) = (last, NOBODY);
        if last == NOBODY {
            self.idle.first = id;
        } else {
            self[last].next = id;
        }
        self.idle.last = id;
    }

    /// If the flow is idle: takes it out of the list of these. Says since when it was.
    #[inline]
    pub(super) fn wake(&mut self, id: FlowId) -> Option<Instant> {
        let flow = &mut self[id];
        if !flow.idle {
            return None;
        }
        flow.idle = false;
        let (previous, next, since) = (flow.previous, flow.next, flow.idle_since);
        if previous == NOBODY {
            self.idle.first = next;
        } else {
            self[previous].next = next;
        }
        if next == NOBODY {
            self.idle.last = previous;
        } else {
            self[next].previous = previous;
        }
        Some(since)
    }

    /// The two flows that will probably have the next turns, where first those of `new` are served and then those of `old`, and
    /// the first of all has its turn now. The one behind them is asked for from memory, to be there a turn later.
    #[inline]
    pub(super) fn upcoming(&self, new: &FlowList, old: &FlowList) -> Option<(&Flow, &Flow)> {
        let or_old = |id| if id == NOBODY { old.first } else { id };
        let current = self.all.get(or_old(new.first) as usize)?;
        let first = self.all.get(or_old(current.next) as usize)?;
        let second = self.all.get(or_old(first.next) as usize)?;
        read_ahead(&self.all, or_old(second.next));
        Some((first, second))
    }

    /// Adds a flow that is in no list.
    #[inline]
    pub(super) fn append(&mut self, list: &mut FlowList, id: FlowId) {
        self[id].next = NOBODY;
        if list.first == NOBODY {
            list.first = id;
        } else {
            self[list.last].next = id;
        }
        list.last = id;
    }

    /// Takes the first flow out of `list`.
    #[inline]
    pub(super) fn remove_first(&mut self, list: &mut FlowList) {
        if list.first != NOBODY {
            list.first = self[list.first].next;
        }
    }
}

/// Spreads keys over a table, the same way on every machine (the finalizer of SplitMix64).
#[derive(Default)]
pub(super) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    #[inline]
    fn write_u64(&mut self, key: u64) {
        let mut z = (self.0 ^ key).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.0 = z ^ (z >> 31);
    }
}
