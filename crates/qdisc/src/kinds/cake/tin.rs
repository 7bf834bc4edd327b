//! A tin: its flows, whose turn it is, and what it counts.

use super::flows::{Flows, State};
use super::tins::Share;
use super::{FlowMode, TinStats};
use crate::turns::List;

/// A moving average: 2⁻ˢʰⁱᶠᵗ of each sample, as Linux rounds it.
#[inline]
pub(super) const fn ewma(average: u64, sample: u64, shift: u32) -> u64 {
    average - (average >> shift) + (sample >> shift)
}

/// Averages follow with these weights what is on their side, and what is not.
pub(super) const FAST: u32 = 2;
pub(super) const SLOW: u32 = 8;

/// A tin.
pub(super) struct Tin {
    pub(super) share: Share,
    pub(super) flows: Flows,
    pub(super) new: List,
    pub(super) old: List,
    pub(super) decaying: List,
    pub(super) sparse: u32,
    pub(super) bulk: u32,
    pub(super) unresponsive: u32,
    /// When it is due by its own rate, in nanoseconds.
    pub(super) next: u64,
    /// Bytes that it may send in its turn, where there is no rate.
    pub(super) deficit: i64,
    pub(super) counted: TinStats,
    /// Nanoseconds.
    peak_delay: u64,
    average_delay: u64,
    base_delay: u64,
}

impl Tin {
    pub(super) fn new(share: Share) -> Self {
        Self {
            share,
            flows: Flows::new(),
            new: List::EMPTY,
            old: List::EMPTY,
            decaying: List::EMPTY,
            sparse: 0,
            bulk: 0,
            unresponsive: 0,
            next: 0,
            deficit: 0,
            counted: TinStats::default(),
            peak_delay: 0,
            average_delay: 0,
            base_delay: 0,
        }
    }

    /// Whether a flow has packets, or had some until now.
    #[inline]
    pub(super) const fn is_busy(&self) -> bool {
        self.sparse + self.bulk > 0
    }

    /// Who is served now: a remembered flow, if `may_decay`, else one that is new.
    #[inline]
    pub(super) fn first(&mut self, may_decay: bool) -> Option<(u32, &mut List)> {
        let list = if may_decay && self.decaying.len() > 0 {
            &mut self.decaying
        } else if self.new.len() > 0 {
            &mut self.new
        } else if self.old.len() > 0 {
            &mut self.old
        } else {
            &mut self.decaying
        };
        Some((list.first()?, list))
    }

    /// Takes a flow that is first in its list out of that.
    #[inline]
    fn take_out(&mut self, id: u32) {
        for list in [&mut self.decaying, &mut self.new, &mut self.old] {
            if list.first() == Some(id) {
                return list.remove_first(&mut self.flows.queues);
            }
        }
    }

    /// A packet came to a flow.
    #[inline]
    pub(super) fn wake(&mut self, mode: FlowMode, id: u32, die: impl FnOnce() -> u16) {
        let flow = &mut self.flows.queues[id as usize];
        match flow.state {
            State::Idle | State::Decaying => {
                if flow.state == State::Decaying {
                    self.decaying.remove(&mut self.flows.queues, id);
                }
                self.new.append(&mut self.flows.queues, id);
                let flow = &mut self.flows.queues[id as usize];
                flow.state = State::Sparse;
                flow.deficit =
                    flow.quantum(&self.flows.hosts, mode, self.share.flow_quantum, die());
                self.sparse += 1;
            }
            State::SparseWaiting => self.becomes_bulk(mode, id),
            State::Sparse | State::Bulk => {}
        }
    }

    fn becomes_bulk(&mut self, mode: FlowMode, id: u32) {
        self.flows.queues[id as usize].state = State::Bulk;
        self.sparse -= 1;
        self.bulk += 1;
        self.flows.enters_bulk(mode, id);
    }

    /// A flow has used up its turn: it gets another one, behind the others. Those after it that have used up theirs too may get
    /// another one as well.
    #[inline]
    pub(super) fn next_turn(&mut self, mode: FlowMode, id: u32, mut die: impl FnMut() -> u16) {
        let flow = &mut self.flows.queues[id as usize];
        if flow.state == State::Sparse {
            if flow.chain.is_empty() {
                flow.state = State::SparseWaiting;
            } else {
                self.becomes_bulk(mode, id);
            }
        }
        if self.old.first() == Some(id) {
            // With many flows of one host that is what happens most: none has enough for a packet yet.
            let Flows { queues, hosts, .. } = &mut self.flows;
            let mut is_asked = true;
            return self.old.rotate_while(queues, |flow| {
                let passes = is_asked || flow.deficit <= 0 && flow.state == State::Bulk;
                if passes {
                    flow.deficit += flow.quantum(hosts, mode, self.share.flow_quantum, die());
                }
                is_asked = false;
                passes
            });
        }
        let flow = &mut self.flows.queues[id as usize];
        flow.deficit += flow.quantum(&self.flows.hosts, mode, self.share.flow_quantum, die());
        self.take_out(id);
        self.old.append(&mut self.flows.queues, id);
    }

    /// A flow that is served has no packets: it is remembered until its law has come to rest.
    pub(super) fn rests(&mut self, mode: FlowMode, id: u32, now: u64) {
        let flow = &mut self.flows.queues[id as usize];
        self.unresponsive -= u32::from(flow.law.is_empty(&self.share.law, now));
        let is_remembered = flow.law.is_remembered(now);
        let before = std::mem::replace(
            &mut flow.state,
            if is_remembered { State::Decaying } else { State::Idle },
        );
        match before {
            State::Bulk => {
                self.bulk -= 1;
                self.flows.leaves_bulk(mode, id);
            }
            State::Sparse | State::SparseWaiting => self.sparse -= 1,
            State::Decaying | State::Idle => {}
        }
        self.take_out(id);
        if is_remembered {
            self.decaying.append(&mut self.flows.queues, id);
        }
    }

    /// A packet leaves that waited so many nanoseconds.
    #[inline]
    pub(super) const fn left(&mut self, delay: u64) {
        self.average_delay = ewma(self.average_delay, delay, SLOW);
        let shift = if delay > self.peak_delay { FAST } else { SLOW };
        self.peak_delay = ewma(self.peak_delay, delay, shift);
        let shift = if delay < self.base_delay { FAST } else { SLOW };
        self.base_delay = ewma(self.base_delay, delay, shift);
    }

    /// Who has most bytes, of those that have any.
    pub(super) fn longest(&self) -> Option<(u64, u32)> {
        let queues = &self.flows.queues;
        let busy = self.new.iter(queues).chain(self.old.iter(queues));
        busy.map(|id| (queues[id as usize].bytes, id)).filter(|(bytes, _)| *bytes > 0).max()
    }

    /// What it counts.
    pub(super) fn stats(&self) -> TinStats {
        let micros = |nanos: u64| (nanos / 1000) as u32;
        let ways = self.flows.ways;
        TinStats {
            threshold_rate: self.share.rate,
            target_us: micros(self.share.law.target),
            interval_us: micros(self.share.law.interval),
            peak_delay_us: micros(self.peak_delay),
            avg_delay_us: micros(self.average_delay),
            base_delay_us: micros(self.base_delay),
            way_indirect_hits: ways.indirect,
            way_misses: ways.missed,
            way_collisions: ways.collided,
            sparse_flows: self.sparse + self.decaying.len(),
            bulk_flows: self.bulk,
            unresponsive_flows: self.unresponsive,
            flow_quantum: self.share.flow_quantum,
            ..self.counted
        }
    }
}
