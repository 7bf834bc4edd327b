//! What became of UDP packets: the same books in every world.

use std::time::Duration;

use dualq_units::{Bytes, Instant};

use super::{Sojourns, megabits, millis, thousandths};
use crate::outcome::UdpOutcome;
use crate::scenario::Setup;

/// IPv4's and UDP's headers.
pub const UDP_HEADERS: u32 = 28;
/// What the link layer adds where rates are counted.
const ETHERNET: u32 = dualq_tcp::ETHERNET_BYTES;

/// The books of a group of UDP streams.
#[derive(Clone, Debug)]
pub struct UdpRecord {
    warmup: Instant,
    packet: u32,
    interval: Duration,
    streams: Vec<Stream>,
    counted: UdpOutcome,
    delays: Sojourns,
}

/// A stream.
#[derive(Clone, Debug, Default)]
struct Stream {
    sent: u64,
    /// When the last one was sent.
    last: Instant,
    /// The first packet that was sent after the warm-up; none so far without.
    first: Option<u64>,
    /// The packets that have arrived, a bit for each.
    arrived: Vec<u64>,
    /// One after the highest number that has arrived.
    reached: u64,
    transit_ns: Option<u64>,
    /// The interarrival jitter, in nanoseconds.
    jitter_ns: f64,
}

impl UdpRecord {
    /// The books of a group, which is given by its number.
    ///
    /// # Panics
    /// If the scenario has no such group.
    #[must_use]
    pub fn new(setup: &Setup, group: usize) -> Self {
        let group = &setup.udp[group];
        Self {
            warmup: Instant::ZERO + setup.warmup,
            packet: group.packet,
            interval: group.interval,
            streams: vec![Stream::default(); group.count as usize],
            counted: UdpOutcome::default(),
            delays: Sojourns::default(),
        }
    }

    /// A stream sends its next packet, whose number from 0 on is returned.
    #[inline]
    pub fn sent(&mut self, stream: usize, now: Instant) -> u64 {
        let stream = &mut self.streams[stream];
        let number = stream.sent;
        if now >= self.warmup {
            stream.first.get_or_insert(number);
        }
        stream.sent += 1;
        stream.last = now;
        number
    }

    /// A packet of a stream arrives. What was never sent is not counted.
    pub fn arrived(&mut self, stream: usize, number: u64, sent: Instant, now: Instant, ce: bool) {
        let Some(stream) = self.streams.get_mut(stream) else { return };
        if number >= stream.sent {
            return;
        }
        let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
        if stream.arrived.len() <= word {
            stream.arrived.resize(word + 1, 0);
        }
        let is_copy = stream.arrived[word] & bit != 0;
        stream.arrived[word] |= bit;
        let is_late = number < stream.reached;
        stream.reached = stream.reached.max(number + 1);
        if stream.first.is_none_or(|first| number < first) {
            return;
        }
        if is_copy {
            self.counted.duplicates += 1;
            return;
        }
        let transit_ns = (now - sent).as_nanos() as u64;
        if let Some(before_ns) = stream.transit_ns.replace(transit_ns) {
            stream.jitter_ns += (transit_ns.abs_diff(before_ns) as f64 - stream.jitter_ns) / 16.0;
        }
        self.delays.record(transit_ns);
        self.counted.received += 1;
        self.counted.reordered += u64::from(is_late);
        self.counted.ce_marks += u64::from(ce);
    }

    /// What came of it in the time from the warm-up on. Packets that were sent after the last of their stream that arrived may still be on
    /// their way, if that was no longer before the end than any packet took: they are sent, and neither received nor lost.
    #[must_use]
    pub fn finish(self, window: Duration) -> UdpOutcome {
        let mut outcome = self.counted;
        let mut jitter_ns = 0.0;
        let longest = Duration::from_nanos(self.delays.longest_ns);
        let (end, interval) = (self.warmup + window, self.interval.as_nanos().max(1));
        for stream in &self.streams {
            let Some(first) = stream.first else { continue };
            outcome.sent += stream.sent - first;
            // What of the last packets was sent so late that it may be on its way.
            let expected = stream.last + longest;
            let late = if expected < end { 0 } else { (expected - end).as_nanos() / interval + 1 };
            let late = u64::try_from(late).unwrap_or(u64::MAX);
            let reached = stream.reached.max(stream.sent.saturating_sub(late));
            outcome.lost += reached.saturating_sub(first);
            jitter_ns += stream.jitter_ns;
        }
        outcome.lost = outcome.lost.saturating_sub(outcome.received);
        let rate = |packets: u64, bytes: u32| {
            let Bytes(bytes) = Bytes(packets * u64::from(bytes));
            thousandths(megabits(bytes, window))
        };
        outcome.goodput_mbit = rate(outcome.received, self.packet - UDP_HEADERS);
        outcome.line_mbit = rate(outcome.sent, self.packet + ETHERNET);
        outcome.delay = self.delays.summary();
        outcome.jitter_ms = millis(jitter_ns / self.streams.len().max(1) as f64);
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::UdpGroup;

    fn record() -> UdpRecord {
        let interval = Duration::from_millis(1);
        let udp = vec![UdpGroup { count: 2, interval, ..UdpGroup::default() }];
        UdpRecord::new(&Setup { udp, warmup: Duration::from_millis(10), ..Setup::default() }, 0)
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn each_packet_is_counted_once() {
        let mut record = record();
        for millis in 8..16 {
            record.sent(0, at(millis));
        }
        // Sent at 8 and 9 ms: before the warm-up's end. Of 10 to 15 ms, one comes twice, two change places, and the last two are on their
        // way when all ends at 28 ms: none took longer than 14 ms.
        for (number, millis) in [(0, 20), (2, 22), (3, 23), (3, 24), (5, 25), (4, 26)] {
            record.arrived(0, number, at(8 + number), at(millis), number == 4);
        }
        record.arrived(0, 99, at(1), at(30), true);
        record.arrived(7, 0, at(1), at(30), true);
        let outcome = record.clone().finish(Duration::from_millis(18));
        assert_eq!((outcome.sent, outcome.received, outcome.lost), (6, 4, 0));
        // A second later they are lost.
        assert_eq!(record.finish(Duration::from_secs(1)).lost, 2);
        assert_eq!((outcome.duplicates, outcome.reordered, outcome.ce_marks), (1, 1, 1));
        let delay = outcome.delay.expect("some arrived");
        assert_eq!((delay.packets, delay.max_ms.to_string()), (4, "14".to_owned()));
    }

    #[test]
    fn what_never_arrives_is_lost() {
        let mut record = record();
        for millis in 10..20 {
            record.sent(1, at(millis));
        }
        record.arrived(1, 6, at(16), at(26), false);
        // Those that were sent 10 ms before the end may still come.
        assert_eq!(record.clone().finish(Duration::from_millis(17)).lost, 6);
        assert_eq!(record.clone().finish(Duration::from_millis(18)).lost, 7);
        assert_eq!(record.clone().finish(Duration::from_secs(1)).lost, 9);
        // Of a stream of which nothing arrived, all is lost.
        record.sent(0, at(12));
        let outcome = record.finish(Duration::from_secs(1));
        assert_eq!((outcome.sent, outcome.received, outcome.lost), (11, 1, 10));
    }

    #[test]
    fn jitter_is_a_sixteenth_of_each_change() {
        let mut record = record();
        for (number, transit) in (0..).zip([10, 10, 26]) {
            record.sent(0, at(10 + number));
            record.arrived(0, number, at(10 + number), at(10 + number + transit), false);
        }
        assert_eq!(record.finish(Duration::from_secs(1)).jitter_ms.to_string(), "0.5");
    }
}
