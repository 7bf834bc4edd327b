//! Constant delay: packets leave in the order in which they came, but for those of origins that take longer.

use std::collections::VecDeque;
use std::time::Duration;

use dualq_units::Instant;
use dualq_units::hint::unlikely;

use crate::packet::Packet;

/// All packets that take equally long.
#[derive(Debug)]
struct Lane<P> {
    delay_ns: u64,
    packets: VecDeque<(u64, P)>,
}

impl<P> Lane<P> {
    #[inline]
    fn next_ns(&self) -> u64 {
        self.packets.front().map_or(u64::MAX, |entry| entry.0)
    }
}

/// Constant delay, with a lane for each that there is.
#[derive(Debug)]
pub struct Delay<P> {
    lanes: Vec<Lane<P>>,
    /// Which lane each origin takes; those behind the end take the first.
    lane_of: Vec<u8>,
    /// The lane from which the next packet leaves.
    first: usize,
}

impl<P: Packet> Delay<P> {
    /// The same delay for all.
    #[must_use]
    pub fn new(delay: Duration) -> Self {
        Self::of_origins([delay])
    }

    /// A delay for each origin, by number. Those of higher numbers take as long as the first, which is none at all if there are no
    /// others either. There is room for 255 different ones; what would be another takes as long as the first, too.
    #[must_use]
    pub fn of_origins(delays: impl IntoIterator<Item = Duration>) -> Self {
        let mut lanes: Vec<Lane<P>> = Vec::new();
        let mut lane_of = Vec::new();
        for delay in delays {
            let delay_ns = nanos(delay);
            let known = lanes.iter().position(|lane| lane.delay_ns == delay_ns);
            let lane = known.unwrap_or_else(|| {
                lanes.push(Lane { delay_ns, packets: VecDeque::new() });
                lanes.len() - 1
            });
            lane_of.push(u8::try_from(lane).unwrap_or(0));
        }
        if lanes.is_empty() {
            lanes.push(Lane { delay_ns: 0, packets: VecDeque::new() });
        }
        Self { lanes, lane_of, first: 0 }
    }

    /// All origins have the same delay from now on. Nothing overtakes: what is on its way arrives no later than what comes now, and else
    /// when it would have.
    pub fn change(&mut self, now: Instant, delay: Duration) {
        let lanes = std::mem::take(&mut self.lanes);
        let mut packets: Vec<_> = lanes.into_iter().flat_map(|lane| lane.packets).collect();
        packets.sort_by_key(|(at_ns, _)| *at_ns);
        let delay_ns = nanos(delay);
        let last_ns = now.as_nanos().saturating_add(delay_ns);
        let packets = packets.into_iter().map(|(at_ns, packet)| (at_ns.min(last_ns), packet));
        self.lanes.push(Lane { delay_ns, packets: packets.collect() });
        (self.lane_of, self.first) = (Vec::new(), 0);
    }

    /// How long it takes at least.
    pub(crate) fn shortest_ns(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.delay_ns).min().unwrap_or(0)
    }

    /// Packets on their way.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lanes.iter().map(|lane| lane.packets.len()).sum()
    }

    /// Whether no packet is on its way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it lets this packet pass at once.
    #[inline]
    pub(crate) fn passes(&self, packet: &P) -> bool {
        self.lanes[self.lane(packet)].delay_ns == 0
    }

    #[inline(always)]
    fn lane(&self, packet: &P) -> usize {
        if unlikely(self.lanes.len() > 1) {
            self.lane_of.get(packet.origin() as usize).map_or(0, |lane| usize::from(*lane))
        } else {
            0
        }
    }

    /// Takes in a packet. Returns whether no other is before it in its lane: else the next one leaves when it would have.
    #[inline(always)]
    pub(crate) fn push(&mut self, now: Instant, packet: P) -> bool {
        let lane = self.lane(&packet);
        let Lane { delay_ns, packets } = &mut self.lanes[lane];
        let at_ns = now.as_nanos().saturating_add(*delay_ns);
        let was_empty = packets.is_empty();
        packets.push_back((at_ns, packet));
        if was_empty && at_ns < self.lanes[self.first].next_ns() {
            self.first = lane;
        }
        was_empty
    }

    /// When the next packet leaves.
    #[inline]
    pub(crate) fn next_ns(&self) -> u64 {
        self.lanes[self.first].next_ns()
    }

    /// The next packet, if there is one, goes to `out`. Returns when the one behind it leaves.
    #[inline]
    pub(crate) fn pop(&mut self, out: &mut Option<P>) -> u64 {
        let lane = &mut self.lanes[self.first];
        if let Some((_, packet)) = lane.packets.pop_front() {
            *out = Some(packet);
        }
        let next_ns = lane.next_ns();
        if unlikely(self.lanes.len() > 1) { self.find_first() } else { next_ns }
    }

    /// Finds the lane from which the next packet leaves, and when it does.
    #[inline(never)]
    fn find_first(&mut self) -> u64 {
        let next = (0..self.lanes.len()).min_by_key(|lane| self.lanes[*lane].next_ns());
        self.first = next.unwrap_or(0);
        self.next_ns()
    }

    /// One that leaves soon: so many after the next one, if only those of its lane count.
    #[inline]
    pub(crate) fn upcoming(&self, later: usize) -> Option<&P> {
        self.lanes[self.first].packets.get(later).map(|(_, packet)| packet)
    }
}

pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::tests::Probe;

    #[test]
    fn what_is_on_its_way_is_not_overtaken_when_the_delay_changes() {
        let mut delay = Delay::new(Duration::from_millis(30));
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let probe = |number| Probe { number, ..Probe::default() };
        delay.push(at(0), probe(0));
        delay.push(at(20), probe(1));
        delay.change(at(25), Duration::from_millis(10));
        delay.push(at(26), probe(2));
        delay.change(at(27), Duration::from_millis(50));
        delay.push(at(27), probe(3));
        let left = std::iter::from_fn(|| {
            let (next_ns, mut out) = (delay.next_ns(), None);
            delay.pop(&mut out);
            out.map(|packet| (next_ns / 1_000_000, packet.number))
        });
        assert_eq!(left.collect::<Vec<_>>(), [(30, 0), (35, 1), (36, 2), (77, 3)]);
    }

    #[test]
    fn who_takes_longer_is_overtaken() {
        let millis = [30, 10].map(Duration::from_millis);
        let mut delay = Delay::of_origins(millis);
        for (number, (origin, millis)) in (0..).zip([(0, 0), (1, 5), (0, 10), (1, 25), (1, 31)]) {
            let packet = Probe { number, origin, ..Probe::default() };
            delay.push(Instant::from_nanos(millis * 1_000_000), packet);
        }
        let left = std::iter::from_fn(|| {
            let (next_ns, mut out) = (delay.next_ns(), None);
            delay.pop(&mut out);
            out.map(|packet| (next_ns / 1_000_000, packet.number))
        });
        assert_eq!(left.collect::<Vec<_>>(), [(15, 1), (30, 0), (35, 3), (40, 2), (41, 4)]);
        assert_eq!((delay.next_ns(), delay.len()), (u64::MAX, 0));
    }
}
