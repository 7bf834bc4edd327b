//! FQ-CoDel (RFC 8290): a queue per flow, each under CoDel, served by deficit round robin, new flows first.

use std::collections::VecDeque;

use super::codel::{CodelParameters, Control};
use super::fq::hash;
use super::{Departure, Frame, QueueStats, Waiting};

/// FQ-CoDel's parameters (RFC 8290 §5.2, tc-fq_codel(8)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCodelParameters {
    /// CoDel's parameters, for each flow.
    pub codel: CodelParameters,
    /// The most packets of all flows.
    pub limit: u32,
    /// Flows that are told apart.
    pub flows: u32,
    /// Bytes a flow may send per round.
    pub quantum: u32,
    /// The most memory, in bytes.
    pub memory_limit: u64,
    /// Packets that are dropped at once when a limit is passed.
    pub drop_batch: u32,
}

impl Default for FqCodelParameters {
    fn default() -> Self {
        Self {
            codel: CodelParameters { ecn: true, ..CodelParameters::default() },
            limit: 10_240,
            flows: 1024,
            quantum: 1514,
            memory_limit: 32 << 20,
            drop_batch: 64,
        }
    }
}

#[derive(Clone, Debug)]
struct Flow<P> {
    packets: VecDeque<Waiting<P>>,
    bytes: u64,
    deficit: i64,
    active: bool,
    control: Control,
}

/// Many queues under CoDel.
#[derive(Clone, Debug)]
pub struct FqCodel<P> {
    parameters: FqCodelParameters,
    flows: Vec<Flow<P>>,
    new_flows: VecDeque<usize>,
    old_flows: VecDeque<usize>,
    count: usize,
    bytes: u64,
    memory: u64,
    hash_seed: u32,
    stats: QueueStats,
}

/// Kernel memory of a packet, roughly.
fn memory<P: Frame>(packet: &P) -> u64 {
    u64::from(packet.length()) + 768
}

impl<P: Frame> FqCodel<P> {
    /// An empty queue; `seed` decides which flows share a bucket.
    #[must_use]
    pub fn new(parameters: FqCodelParameters, seed: u64) -> Self {
        let flow = Flow {
            packets: VecDeque::new(),
            bytes: 0,
            deficit: 0,
            active: false,
            control: Control::default(),
        };
        Self {
            flows: vec![flow; parameters.flows.max(1) as usize],
            new_flows: VecDeque::new(),
            old_flows: VecDeque::new(),
            count: 0,
            bytes: 0,
            memory: 0,
            hash_seed: (seed >> 32) as u32 ^ seed as u32,
            stats: QueueStats::default(),
            parameters,
        }
    }

    /// A packet arrives.
    #[inline]
    pub fn enqueue(&mut self, now_ns: u64, packet: P) {
        let flow_count = self.flows.len() as u64;
        let scaled = u64::from(hash(packet.flow(), self.hash_seed)) * flow_count;
        let index = (scaled >> 32) as usize;
        let flow = &mut self.flows[index];
        flow.packets.push_back(Waiting { packet, since_ns: now_ns });
        flow.bytes += u64::from(packet.length());
        if !flow.active {
            flow.active = true;
            flow.deficit = self.parameters.quantum.into();
            self.new_flows.push_back(index);
        }
        self.count += 1;
        self.bytes += u64::from(packet.length());
        self.memory += memory(&packet);
        self.stats.enqueued += 1;
        if self.count > self.parameters.limit as usize || self.memory > self.parameters.memory_limit
        {
            self.cut_longest();
        }
    }

    /// RFC 8290 §4.1.3: drops from the head of the flow with the most bytes, up to half of it.
    #[cold]
    fn cut_longest(&mut self) {
        let longest = self.flows.iter_mut().max_by_key(|flow| flow.bytes);
        let Some(flow) = longest else { return };
        let threshold = flow.bytes / 2;
        let mut cut = 0;
        for _ in 0..self.parameters.drop_batch {
            let Some(waiting) = flow.packets.pop_front() else { break };
            let length = u64::from(waiting.packet.length());
            flow.bytes -= length;
            self.bytes -= length;
            self.memory -= memory(&waiting.packet);
            self.count -= 1;
            self.stats.drops += 1;
            cut += length;
            if cut >= threshold {
                break;
            }
        }
    }

    /// The next packet to send.
    #[inline]
    pub fn dequeue(&mut self, now_ns: u64) -> Option<Departure<P>> {
        loop {
            let from_new = !self.new_flows.is_empty();
            let list = if from_new { &mut self.new_flows } else { &mut self.old_flows };
            let index = *list.front()?;
            let flow = &mut self.flows[index];
            if flow.deficit <= 0 {
                flow.deficit += i64::from(self.parameters.quantum);
                list.pop_front();
                self.old_flows.push_back(index);
                continue;
            }
            let Flow { packets, bytes, control, .. } = flow;
            let (count, total, used) = (&mut self.count, &mut self.bytes, &mut self.memory);
            let departure =
                control.dequeue(&self.parameters.codel, now_ns, &mut self.stats, || {
                    let waiting = packets.pop_front()?;
                    let length = u64::from(waiting.packet.length());
                    *bytes -= length;
                    *total -= length;
                    *used -= memory(&waiting.packet);
                    *count -= 1;
                    // Linux looks at the backlog of all flows here.
                    Some((waiting, *total))
                });
            let Some(departure) = departure else {
                list.pop_front();
                if from_new && !self.old_flows.is_empty() {
                    self.old_flows.push_back(index);
                } else {
                    flow.active = false;
                }
                continue;
            };
            flow.deficit -= i64::from(departure.packet.length());
            return Some(departure);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queues::test_support::TestFrame;

    #[test]
    fn the_limit_cuts_the_longest_flow() {
        let parameters = FqCodelParameters { limit: 100, ..FqCodelParameters::default() };
        let mut queue = FqCodel::new(parameters, 3);
        queue.enqueue(0, TestFrame::new(1, 0));
        for number in 0..200 {
            queue.enqueue(0, TestFrame::new(2, number));
        }
        assert!(queue.len() <= 100 && queue.stats().drops >= 100);
        assert_eq!(queue.dequeue(1).map(|left| left.packet.flow), Some(1));
    }
}
