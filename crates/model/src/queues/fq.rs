//! Fair queueing for a router (tc-fq(8)): a queue per flow, served by deficit round robin, new flows first. Packets
//! that are forwarded carry no pacing rate, so nothing is paced here.

use std::collections::VecDeque;

use super::{Departure, Frame, QueueStats, Waiting};

/// fq's parameters (tc-fq(8)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqParameters {
    /// The most packets of all flows.
    pub limit: u32,
    /// The most packets of one flow.
    pub flow_limit: u32,
    /// Bytes a flow may send per round.
    pub quantum: u32,
    /// Bytes a new flow may send at first.
    pub initial_quantum: u32,
    /// Flows that are told apart, a power of two.
    pub buckets: u32,
}

impl Default for FqParameters {
    fn default() -> Self {
        Self {
            limit: 10_000,
            flow_limit: 100,
            quantum: 2 * 1514,
            initial_quantum: 10 * 1514,
            buckets: 1024,
        }
    }
}

/// Packets that a nearly empty queue takes without looking at their flow.
const FAST_PATH_PACKETS: usize = 8;
/// A flow that was idle for this long may send a quantum at once.
const REFILL_DELAY_NS: u64 = 40_000_000;

#[derive(Clone, Debug)]
struct Flow<P> {
    packets: VecDeque<Waiting<P>>,
    credit: i64,
    active: bool,
    known: bool,
    idle_since_ns: u64,
}

/// A queue per flow.
#[derive(Clone, Debug)]
pub struct Fq<P> {
    parameters: FqParameters,
    flows: Vec<Flow<P>>,
    new_flows: VecDeque<usize>,
    old_flows: VecDeque<usize>,
    /// What came while no flow had anything waiting; served first.
    fast: VecDeque<Waiting<P>>,
    count: usize,
    hash_seed: u32,
    stats: QueueStats,
}

impl<P: Frame> Fq<P> {
    /// An empty queue; `seed` decides which flows share a bucket.
    #[must_use]
    pub fn new(parameters: FqParameters, seed: u64) -> Self {
        let buckets = parameters.buckets.max(1).next_power_of_two() as usize;
        let flow = Flow {
            packets: VecDeque::new(),
            credit: 0,
            active: false,
            known: false,
            idle_since_ns: 0,
        };
        Self {
            parameters,
            flows: vec![flow; buckets],
            new_flows: VecDeque::new(),
            old_flows: VecDeque::new(),
            fast: VecDeque::new(),
            count: 0,
            hash_seed: (seed >> 32) as u32 ^ seed as u32,
            stats: QueueStats::default(),
        }
    }

    fn bucket(&self, flow: u32) -> usize {
        hash(flow, self.hash_seed) as usize & (self.flows.len() - 1)
    }

    /// A packet arrives.
    #[inline]
    pub fn enqueue(&mut self, now_ns: u64, packet: P) {
        if self.count >= self.parameters.limit as usize {
            self.stats.drops += 1;
            return;
        }
        let waiting = Waiting { packet, since_ns: now_ns };
        let no_flow_waits = self.new_flows.is_empty() && self.old_flows.is_empty();
        if self.count == 0 || (no_flow_waits && self.fast.len() < FAST_PATH_PACKETS) {
            self.fast.push_back(waiting);
        } else {
            let index = self.bucket(packet.flow());
            let flow = &mut self.flows[index];
            if flow.packets.len() >= self.parameters.flow_limit as usize {
                self.stats.drops += 1;
                return;
            }
            if !flow.known {
                flow.known = true;
                flow.credit = self.parameters.initial_quantum.into();
            }
            if !flow.active {
                flow.active = true;
                if now_ns > flow.idle_since_ns + REFILL_DELAY_NS {
                    flow.credit = flow.credit.max(self.parameters.quantum.into());
                }
                self.new_flows.push_back(index);
            }
            flow.packets.push_back(waiting);
        }
        self.count += 1;
        self.stats.enqueued += 1;
    }

    /// The next packet to send.
    #[inline]
    pub fn dequeue(&mut self, now_ns: u64) -> Option<Departure<P>> {
        if let Some(waiting) = self.fast.pop_front() {
            self.count -= 1;
            return Some(waiting.depart(now_ns));
        }
        loop {
            let from_new = !self.new_flows.is_empty();
            let list = if from_new { &mut self.new_flows } else { &mut self.old_flows };
            let index = *list.front()?;
            let flow = &mut self.flows[index];
            if flow.credit <= 0 {
                flow.credit += i64::from(self.parameters.quantum);
                list.pop_front();
                self.old_flows.push_back(index);
                continue;
            }
            let Some(waiting) = flow.packets.pop_front() else {
                list.pop_front();
                // A new flow that ran dry waits one round, lest it be new again at once.
                if from_new && !self.old_flows.is_empty() {
                    self.old_flows.push_back(index);
                } else {
                    flow.active = false;
                    flow.idle_since_ns = now_ns;
                }
                continue;
            };
            flow.credit -= i64::from(waiting.packet.length());
            self.count -= 1;
            return Some(waiting.depart(now_ns));
        }
    }

    /// Packets waiting.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether no packet waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The counters.
    #[must_use]
    pub const fn stats(&self) -> QueueStats {
        self.stats
    }
}

/// A flow's bucket: a bijection of 32 bits (Mueller's multiply-xorshift), different for each seed.
pub(super) const fn hash(flow: u32, seed: u32) -> u32 {
    let mut mixed = flow ^ seed;
    mixed = (mixed ^ (mixed >> 16)).wrapping_mul(0x45d9_f3b5);
    mixed = (mixed ^ (mixed >> 16)).wrapping_mul(0x45d9_f3b5);
    mixed ^ (mixed >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queues::test_support::TestFrame;

    #[test]
    fn flows_share_alike_and_a_sparse_one_goes_first() {
        let mut queue = Fq::new(FqParameters::default(), 7);
        for number in 0..90 {
            queue.enqueue(0, TestFrame::new(1, number));
            queue.enqueue(0, TestFrame::new(2, number));
        }
        let mut served = [0_u32; 3];
        for _ in 0..80 {
            served[queue.dequeue(1).map_or(0, |left| left.packet.flow) as usize] += 1;
        }
        assert!(served[1].abs_diff(served[2]) <= 12, "{served:?}");
        queue.enqueue(2, TestFrame::new(3, 0));
        assert_eq!(queue.dequeue(3).map(|left| left.packet.flow), Some(3));
    }

    #[test]
    fn a_flow_keeps_its_limit() {
        let mut queue = Fq::new(FqParameters::default(), 7);
        for number in 0..500 {
            queue.enqueue(0, TestFrame::new(1, number));
        }
        assert_eq!(queue.len(), FAST_PATH_PACKETS + 100);
    }
}
