//! TCP's buffers beside the link.

use std::time::Duration;

use dualq_units::{Bytes, Rate};

use super::{Judge, Judgement, Verdict};
use crate::knowledge::Known;

/// A receive buffer of which half is a window of the ten segments that senders may begin with (RFC 6928).
const FIRST_BUFFER: u64 = 2 * 10 * 1460;
/// A buffer with room for a window of 64 kB, all that there is without window scaling.
const LEAST_BUFFER: u64 = 128 << 10;
/// The round trip that examples are given for where none is known: to another continent.
const EXAMPLE_RTT: Duration = Duration::from_millis(100);

impl Judge<'_> {
    /// `least first most` of TCP's buffers.
    pub(super) fn buffers(&self, known: &Known, value: &str) -> Option<Judgement> {
        let numbers = |text: &str| -> Option<[u64; 3]> {
            let numbers: Result<Vec<u64>, _> = text.split_whitespace().map(str::parse).collect();
            numbers.ok()?.try_into().ok()
        };
        let [least, first, most] = numbers(value)?;
        let running = self.running(known.key);
        let same = running.as_deref() == Some(value);
        let now = if same { "It is set so already." } else { "" };
        if !(least <= first && first <= most) {
            let why = "They are, in this order: least, at first, most. Here a later one is smaller than one before it.";
            return Some(Judgement::new(Verdict::WrongHere, why, known.source).and(now));
        }
        if known.key == "net.ipv4.tcp_rmem" && first < FIRST_BUFFER {
            let was = running.as_deref().and_then(numbers).map_or(131_072, |[_, first, _]| first);
            let why = format!(
                "{first} bytes at first (now {was}) give the sender a window of about {}, less than the ten \
                 segments with which it may begin: whatever this machine receives starts slower.",
                first / 2
            );
            return Some(
                Judgement::new(
                    Verdict::Harmful,
                    why,
                    "Linux Documentation/networking/ip-sysctl.rst, RFC 6928",
                )
                .and(now),
            );
        }
        // Half of a buffer is overhead, as the kernel first assumes.
        let usable = Bytes(most / 2);
        let limit = |rtt: Duration| {
            let rate = Rate::from_bits_per_second(
                u64::try_from(u128::from(usable.0) * 8_000_000 / rtt.as_micros().max(1))
                    .unwrap_or(u64::MAX),
            );
            (
                rate,
                format!(
                    "about {:.0} Mbit/s at {} ms",
                    rate.as_bits_per_second() as f64 / 1e6,
                    rtt.as_millis()
                ),
            )
        };
        if most < LEAST_BUFFER {
            let why = format!(
                "{most} bytes at most are a window of less than 64 kB, as if there was no window scaling: {}.",
                limit(self.link.map_or(EXAMPLE_RTT, |link| link.rtt)).1
            );
            return Some(Judgement::new(Verdict::Harmful, why, known.source).and(now));
        }
        if same {
            return None;
        }
        let (verdict, why) = match self.link {
            Some(link) if limit(link.rtt).0 < link.rate => (
                Verdict::WrongHere,
                format!(
                    "{most} bytes at most limit a connection to {}, less than the link's {}.",
                    limit(link.rtt).1,
                    link.rate
                ),
            ),
            Some(link) => (
                Verdict::Harmless,
                format!(
                    "{most} bytes at most are enough for {}. It is a limit, not a queue: the queue is at the bottleneck.",
                    limit(link.rtt).1
                ),
            ),
            None => (
                Verdict::Harmless,
                format!(
                    "{most} bytes at most are enough for {}. It is a limit, not a queue: the queue is at the bottleneck.",
                    limit(EXAMPLE_RTT).1
                ),
            ),
        };
        let was = running.map_or(String::new(), |was| format!("It is {was} now."));
        Some(Judgement::new(verdict, why, known.source).and(&was))
    }
}
