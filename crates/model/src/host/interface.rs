//! The senders' interfaces: what their queues hold back, and when it goes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dualq_net::Chance;
use dualq_qdisc::kinds::{fq, netem};
use dualq_qdisc::{QdiscLine, Spec};
use dualq_scenario::Loss;
use dualq_tcp::Pacing;
use dualq_units::Instant;

use crate::error::Unmodelled;

/// The queue of a sender's interface.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interface {
    pub(crate) pacing: Pacing,
    /// How much later than it wanted the queue wakes to let go what was held back.
    pub(crate) slack_ns: u64,
    /// Loss of whole packets, aggregates or not.
    pub(crate) loss: Chance,
}

impl Interface {
    /// Whether its queue holds back what is to depart then: only fq honours departure times.
    #[inline]
    pub(crate) fn holds(&self, departure: Instant, now_ns: u64) -> bool {
        self.pacing == Pacing::ByQueue && departure.as_nanos() > now_ns
    }

    /// The device that `line` describes: `fq`, a FIFO, or `netem` with a loss rate.
    ///
    /// A sender's interface is as fast as need be, so that nothing waits there but for its departure time. How long a FIFO
    /// or `netem` may become makes no difference then, nor which of `fq`'s flows goes first; on real Linux neither.
    pub(crate) fn of(line: &QdiscLine) -> Result<Self, Unmodelled> {
        let plain = Self { pacing: Pacing::OnDemand, slack_ns: 0, loss: Chance::default() };
        let refuse = |right| {
            let what = format!("{:?}", line.text());
            Err(Unmodelled::SenderQdisc { what, right })
        };
        match line.spec() {
            Spec::Fq(options) => {
                let orders = fq::Options {
                    pacing: options.pacing,
                    buckets: options.buckets,
                    orphan_mask: options.orphan_mask,
                    priomap: options.priomap,
                    weights: options.weights,
                    quantum: options.quantum,
                    initial_quantum: options.initial_quantum,
                    timer_slack: options.timer_slack,
                    ..fq::Options::default()
                };
                if *options != orders {
                    return refuse("fq without limits, rates and thresholds");
                }
                // Then only who paces by itself is paced.
                if options.pacing == Some(false) {
                    return Ok(plain);
                }
                let slack = options.timer_slack.unwrap_or(fq::TIMER_SLACK);
                Ok(Self { pacing: Pacing::ByQueue, slack_ns: slack.as_nanos() as u64, ..plain })
            }
            Spec::Pfifo(_) | Spec::Bfifo(_) | Spec::PfifoFast(_) => Ok(plain),
            Spec::Netem(options) => {
                let lossy = |loss| netem::Options {
                    loss,
                    limit: options.limit,
                    seed: options.seed,
                    ..netem::Options::default()
                };
                match options.loss {
                    None if *options == lossy(None) => Ok(plain),
                    Some(netem::Loss::Random(netem::Chance { share, correlation: 0 }))
                        if *options == lossy(options.loss) =>
                    {
                        Ok(Self { loss: Loss::from_threshold(share).chance(), ..plain })
                    }
                    _ => refuse("fq, a FIFO, or netem with a loss rate"),
                }
            }
            _ => refuse("fq, a FIFO, or netem with a loss rate"),
        }
    }
}

/// The connections of one interface whose packets its queue holds back, with one timer for all of them.
#[derive(Debug, Default)]
pub(crate) struct Delayed {
    /// Whose timer stands for that of the interface.
    pub(crate) leader: Option<u32>,
    due: BinaryHeap<Reverse<(u64, u32)>>,
    /// When the first of these is due, which is asked much more often than it changes.
    first_ns: Option<u64>,
}

impl Delayed {
    /// The first packet of a connection is due at `due_ns`.
    #[inline]
    pub(crate) fn delay(&mut self, due_ns: u64, number: u32) {
        self.due.push(Reverse((due_ns, number)));
        self.first_ns = Some(self.first_ns.map_or(due_ns, |first_ns| first_ns.min(due_ns)));
    }

    /// Whether there is a connection whose first packet is due.
    #[inline]
    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        self.first_ns.is_some_and(|first_ns| first_ns <= now_ns)
    }

    /// A connection whose first packet is due.
    #[inline]
    pub(crate) fn take_due(&mut self, now_ns: u64) -> Option<u32> {
        if !self.is_due(now_ns) {
            return None;
        }
        let Reverse((_, number)) = self.due.pop()?;
        self.first_ns = self.due.peek().map(|Reverse((due_ns, _))| *due_ns);
        Some(number)
    }

    /// The next connection whose first packet is due, now or later.
    #[inline]
    pub(crate) fn upcoming(&self) -> Option<u32> {
        self.due.peek().map(|Reverse((_, number))| *number)
    }

    /// When the timer is to be set, unless it is set to about that: to `wakes_ns`, or to the end of time for not at all (Linux:
    /// `qdisc_watchdog_schedule_range_ns`).
    #[inline]
    pub(crate) fn schedule(&self, wakes_ns: u64, slack_ns: u64) -> Option<u64> {
        self.first_ns.filter(|due_ns| !(*due_ns..=due_ns + slack_ns).contains(&wakes_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interfaces_timer_is_set_anew_only_for_what_is_due_earlier_than_its_slack_allows() {
        let mut delayed = Delayed::default();
        assert_eq!(delayed.schedule(u64::MAX, 10), None);
        delayed.delay(100, 1);
        assert_eq!([u64::MAX, 100].map(|it| delayed.schedule(it, 10)), [Some(100), None]);
        delayed.delay(90, 2);
        assert_eq!(delayed.schedule(100, 10), None);
        delayed.delay(89, 3);
        assert_eq!(delayed.schedule(100, 10), Some(89));
        // All go that are due, the earliest first.
        assert_eq!((delayed.take_due(88), delayed.take_due(95)), (None, Some(3)));
        assert_eq!((delayed.take_due(95), delayed.take_due(95)), (Some(2), None));
        assert_eq!(delayed.schedule(89, 10), Some(100));
    }
}
