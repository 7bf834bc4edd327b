//! PIE (RFC 8033): drops at the tail with a probability that a PI controller derives from the queueing delay.
//!
//! The delay is measured by time stamps, as RFC 8033 §5.3 allows and Linux does by default.

use std::collections::VecDeque;

use dualpi2::{Random, SplitMix64};

use super::{Departure, Frame, QueueStats, Waiting};

/// PIE's parameters (RFC 8033 §4.2, tc-pie(8)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieParameters {
    /// The most packets that wait.
    pub limit: u32,
    /// The delay to be kept, in nanoseconds.
    pub target_ns: u64,
    /// The controller's interval, in nanoseconds.
    pub update_ns: u64,
    /// The integral gain, in 1/16 Hz.
    pub alpha: u32,
    /// The proportional gain, in 1/16 Hz.
    pub beta: u32,
    /// Whether ECN-capable packets are marked instead, while the probability is below 10 %.
    pub ecn: bool,
    /// A backlog of less than two of these is no queue.
    pub mtu: u32,
}

impl Default for PieParameters {
    /// Linux's defaults: 15 ms every 15 ms, gains of 2/16 and 20/16.
    fn default() -> Self {
        Self {
            limit: 1000,
            target_ns: 15_000_000,
            update_ns: 15_000_000,
            alpha: 2,
            beta: 20,
            ecn: false,
            mtu: 1514,
        }
    }
}

/// A probability of 1.
const MAX_PROBABILITY: u64 = u64::MAX >> 8;
/// Delays are in units of 64 ns, as the kernel's packet scheduler has them.
const TICK_NS: u64 = 64;
const TICKS_PER_SECOND: u64 = 1_000_000_000 / TICK_NS;
/// Bursts up to this long are let through (RFC 8033 §4.2: MAX_BURST).
const MAX_BURST_NS: u64 = 150_000_000;
/// Delays beyond this raise the probability by 2 % an update (RFC 8033 §5.5).
const EXCESSIVE_TICKS: i64 = 250_000_000 / TICK_NS as i64;

/// A queue under PIE.
#[derive(Clone, Debug)]
pub struct Pie<P> {
    parameters: PieParameters,
    packets: VecDeque<Waiting<P>>,
    bytes: u64,
    probability: u64,
    /// Probability gathered since the last drop (RFC 8033 §5.4: derandomization).
    accumulated: u64,
    delay_ticks: u64,
    previous_delay_ticks: u64,
    burst_left_ns: u64,
    last_departure_ns: Option<u64>,
    next_update_ns: u64,
    random: SplitMix64,
    stats: QueueStats,
}

impl<P: Frame> Pie<P> {
    /// An empty queue at time 0.
    #[must_use]
    pub fn new(parameters: PieParameters, seed: u64) -> Self {
        Self {
            packets: VecDeque::new(),
            bytes: 0,
            probability: 0,
            accumulated: 0,
            delay_ticks: 0,
            previous_delay_ticks: 0,
            burst_left_ns: MAX_BURST_NS,
            last_departure_ns: None,
            next_update_ns: parameters.update_ns,
            random: SplitMix64::new(seed),
            stats: QueueStats::default(),
            parameters,
        }
    }

    /// Runs the controller's updates that have come due.
    #[inline]
    fn poll(&mut self, now_ns: u64) {
        while now_ns >= self.next_update_ns {
            self.update();
            self.next_update_ns += self.parameters.update_ns.max(1);
        }
    }

    fn target_ticks(&self) -> u64 {
        self.parameters.target_ns / TICK_NS
    }

    /// RFC 8033 §5.2: p += α (delay - target) + β (delay - previous delay), scaled down while p is small.
    fn update(&mut self) {
        let delay = self.delay_ticks as i64;
        let previous = self.previous_delay_ticks as i64;
        // A delay of zero with packets waiting means that none has left yet.
        let unknown = delay == 0 && !self.packets.is_empty();
        let unit = MAX_PROBABILITY / TICKS_PER_SECOND;
        let mut alpha = (u64::from(self.parameters.alpha) * unit) >> 4;
        let mut beta = (u64::from(self.parameters.beta) * unit) >> 4;
        if self.probability < MAX_PROBABILITY / 10 {
            alpha >>= 1;
            beta >>= 1;
            let mut power = 100;
            while self.probability < MAX_PROBABILITY / power && power <= 1_000_000 {
                alpha >>= 2;
                beta >>= 2;
                power *= 10;
            }
        }
        let error = i128::from(delay - self.target_ticks() as i64);
        let change = i128::from(delay - previous);
        let mut delta = i128::from(alpha) * error + i128::from(beta) * change;
        let two_percent = i128::from(MAX_PROBABILITY / 100 * 2);
        if delta > two_percent && self.probability >= MAX_PROBABILITY / 10 {
            delta = two_percent;
        }
        if delay > EXCESSIVE_TICKS {
            delta += two_percent;
        }
        let probability = i128::from(self.probability) + delta;
        self.probability = probability.clamp(0, i128::from(MAX_PROBABILITY)) as u64;
        if delay == 0 && previous == 0 && !unknown {
            self.probability -= self.probability / 64;
        }
        self.previous_delay_ticks = self.delay_ticks;
        let half = self.target_ticks() as i64 / 2;
        if delay < half && previous < half && self.probability == 0 {
            // The congestion is over: the next burst is let through again (RFC 8033 §4.2).
            self.burst_left_ns = MAX_BURST_NS;
            self.accumulated = 0;
            self.last_departure_ns = None;
        }
    }

    /// Whether an arriving packet is to be dropped or marked (RFC 8033 §5.1, §5.4).
    fn strikes(&mut self) -> bool {
        if self.burst_left_ns > 0
            || (self.previous_delay_ticks < self.target_ticks() / 2
                && self.probability < MAX_PROBABILITY / 5)
            || self.bytes < 2 * u64::from(self.parameters.mtu)
        {
            return false;
        }
        if self.probability == 0 {
            self.accumulated = 0;
        } else {
            self.accumulated = self.accumulated.saturating_add(self.probability);
        }
        if self.accumulated < MAX_PROBABILITY / 100 * 85 {
            return false;
        }
        let certain = self.accumulated >= MAX_PROBABILITY / 2 * 17;
        let random =
            u64::from(self.random.next_u32()) << 24 | u64::from(self.random.next_u32() >> 8);
        certain || random < self.probability
    }

    /// A packet arrives.
    #[inline]
    pub fn enqueue(&mut self, now_ns: u64, mut packet: P) {
        self.poll(now_ns);
        if self.packets.len() >= self.parameters.limit as usize {
            self.stats.drops += 1;
            self.accumulated = 0;
            return;
        }
        if self.strikes() {
            self.accumulated = 0;
            let markable = self.parameters.ecn
                && packet.ecn().is_capable()
                && self.probability <= MAX_PROBABILITY / 10;
            if !markable {
                self.stats.drops += 1;
                return;
            }
            packet.set_ce();
            self.stats.marks += 1;
        }
        self.bytes += u64::from(packet.length());
        self.stats.enqueued += 1;
        self.packets.push_back(Waiting { packet, since_ns: now_ns });
    }

    /// The next packet to send.
    #[inline]
    pub fn dequeue(&mut self, now_ns: u64) -> Option<Departure<P>> {
        self.poll(now_ns);
        let waiting = self.packets.pop_front()?;
        self.bytes -= u64::from(waiting.packet.length());
        let departure = waiting.depart(now_ns);
        self.delay_ticks = departure.sojourn_ns / TICK_NS;
        if self.bytes == 0 {
            self.delay_ticks = 0;
        }
        let elapsed_ns = now_ns - self.last_departure_ns.unwrap_or(now_ns);
        self.last_departure_ns = Some(now_ns);
        self.burst_left_ns = self.burst_left_ns.saturating_sub(elapsed_ns);
        Some(departure)
    }

    /// Packets waiting.
    #[must_use]
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether no packet waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
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
    fn an_overload_of_a_tenth_is_held_near_the_target() {
        let mut queue = Pie::new(PieParameters::default(), 1);
        let (mut arrival, mut departure, mut delays) = (0, 0, Vec::new());
        for now in (0..20_000_000_000_u64).step_by(10_000) {
            if now >= arrival {
                arrival += 220_000;
                queue.enqueue(now, TestFrame::new(0, 0));
            }
            if now >= departure {
                departure += 242_240;
                if let Some(left) = queue.dequeue(now)
                    && now > 10_000_000_000
                {
                    delays.push(left.sojourn_ns);
                }
            }
        }
        let mean = delays.iter().sum::<u64>() / delays.len() as u64;
        assert!((10_000_000..20_000_000).contains(&mean), "{mean}");
    }
}
