//! One connection of the dumbbell: its two endpoints, its program and the queue of its sender's interface.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem::offset_of;
use std::slice;
use std::time::Duration;

use dualq_qdisc::kinds::fq;
use dualq_qdisc::pool::Chain;
use dualq_qdisc::{QdiscLine, Spec};
use dualq_tcp::{
    Algorithm, Data, HEADER_BYTES, Pacing, Receiver, ReceiverConfig, Sender, SenderConfig, Tick,
    Transmission,
};
use dualq_units::{Bytes, Ecn, Instant};
use prefetch_index::prefetch_index;

use crate::error::Unmodelled;
use dualq_scenario::summary::Look;
use dualq_scenario::{
    CongestionControl, FlowGroup, Loss, PROBE_BYTES, ProbeGroup, ProbeKind, Scenario, TIMER_SLACK,
};

/// What the program at the sending end does.
#[derive(Clone, Debug)]
pub(crate) enum Program {
    /// Sends, to an end or for ever.
    Bulk {
        /// When it has nothing more to send.
        stop_ns: Option<u64>,
        /// When all was acknowledged, in nanoseconds.
        done_ns: Option<u64>,
    },
    /// Asks, waits for the answer, pauses, asks again.
    Probe {
        interval: Duration,
        /// When the question was asked that is not answered.
        asked_ns: Option<u64>,
        /// The answer is to be acknowledged first, and when it asks then.
        acknowledges: Option<u64>,
        /// When the last answer came.
        answered_ns: Option<u64>,
        /// Questions follow answers soon.
        converses: bool,
        /// Round trips, in nanoseconds, from the warm-up on.
        samples: Vec<u64>,
    },
    /// Sends an ICMP echo request now and then, whatever is answered.
    Ping {
        interval: Duration,
        /// Round trips, in nanoseconds, from the warm-up on.
        samples: Vec<u64>,
    },
}

/// What `ping` sends by default: an IP packet of 84 bytes. Counted as the payload of a segment, whose headers are longer
/// than IP's alone.
const PING_PAYLOAD: u32 = 84 - HEADER_BYTES;

/// Figures of a connection at the end of the warm-up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marker {
    pub(crate) acknowledged: u64,
    pub(crate) line_bytes: u64,
    /// Segments with payload, those sent again included.
    pub(crate) segments: u64,
    pub(crate) retransmissions: u64,
    pub(crate) timeouts: u64,
    pub(crate) ce_segments: u64,
}

/// Whose part of a connection is needed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Side {
    /// The sender, its program and its interface.
    Sender,
    /// The receiver.
    Receiver,
}

/// The bytes that come from memory at a time.
const CACHE_LINE: usize = 64;

/// A connection's endpoints and surroundings.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Connection {
    /// Bytes that left the sender, headers included.
    pub(crate) line_bytes: u64,
    /// What waits in the queue of the sender's interface for its departure.
    pub(crate) device: Chain,
    /// Whether that interface knows when the first of these is due.
    pub(crate) is_delayed: bool,
    /// Which interface it is.
    pub(crate) interface: usize,
    /// How many samples of its round-trip time were taken.
    pub(crate) rtt_samples: u64,
    /// The group of flows, or the probe's number.
    pub(crate) group: usize,
    pub(crate) program: Program,
    pub(crate) sender: Sender,
    // The sending side ends here; what follows are the other side, and what is seldom needed.
    /// Its acknowledgements' lane on the way back.
    pub(crate) lane: usize,
    pub(crate) receiver: Receiver,
    pub(crate) start_ns: u64,
    pub(crate) started: bool,
    size: u64,
    pub(crate) at_warmup: Marker,
    /// The last round trip that a probe measured.
    pub(crate) round_trip_ns: Option<u64>,
}

/// What the kernel's clock shows as all begins: in the lab, where it first settles for half a second.
const CLOCK_START: Duration = Duration::from_micros(500_112);

impl Connection {
    /// Asks for one side of it from memory, without waiting: the near caches do not hold thousands of connections.
    #[inline]
    pub(crate) fn read_ahead(&self, side: Side) {
        const RECEIVER: usize = offset_of!(Connection, receiver);
        let (from, to) = match side {
            Side::Sender => (0, RECEIVER),
            Side::Receiver => (RECEIVER, RECEIVER + size_of::<Receiver>()),
        };
        let start = slice::from_ref(&self.line_bytes);
        for line in from / CACHE_LINE..to.div_ceil(CACHE_LINE) {
            prefetch_index(start, line * (CACHE_LINE / size_of::<u64>()));
        }
    }
}

/// The queue of a sender's interface.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Device {
    pub(crate) pacing: Pacing,
    /// How much later than it wanted the queue wakes to let go what was held back.
    pub(crate) slack_ns: u64,
    /// Loss of whole packets, aggregates or not.
    pub(crate) loss: Loss,
}

impl Device {
    /// The device that `line` describes: `fq`, a FIFO, or `netem` with a loss rate.
    ///
    /// A sender's interface is as fast as need be, so that nothing waits there but for its departure time. How long a FIFO
    /// or `netem` may become makes no difference then, nor which of `fq`'s flows goes first; on real Linux neither.
    pub(crate) fn of(line: &QdiscLine) -> Result<Self, Unmodelled> {
        let plain = Self { pacing: Pacing::OnDemand, slack_ns: 0, loss: Loss::NONE };
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
            Spec::Netem(options)
                if options.delay.is_none()
                    && options.rate.is_none()
                    && options.leaf.is_none()
                    && !options.ecn =>
            {
                Ok(Self { loss: Loss::from_threshold(options.loss.unwrap_or(0)), ..plain })
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
    /// When the timer wants to wake at the earliest.
    pub(crate) wakes_ns: Option<u64>,
}

impl Delayed {
    /// The first packet of a connection is due at `due_ns`.
    #[inline]
    pub(crate) fn delay(&mut self, due_ns: u64, number: u32) {
        self.due.push(Reverse((due_ns, number)));
    }

    /// A connection whose first packet is due.
    #[inline]
    pub(crate) fn take_due(&mut self, now_ns: u64) -> Option<u32> {
        let Reverse((due_ns, number)) = *self.due.peek()?;
        (due_ns <= now_ns).then(|| {
            self.due.pop();
            number
        })
    }

    /// When the timer is to be set, if it is not set to about that (Linux: `qdisc_watchdog_schedule_range_ns`).
    #[inline]
    pub(crate) fn schedule(&mut self, slack_ns: u64) -> Option<u64> {
        let Reverse((due_ns, _)) = *self.due.peek()?;
        if self.wakes_ns.is_some_and(|wakes| (due_ns..=due_ns + slack_ns).contains(&wakes)) {
            return None;
        }
        self.wakes_ns = Some(due_ns);
        self.wakes_ns
    }
}

pub(crate) fn algorithm(cc: CongestionControl) -> Result<Algorithm, Unmodelled> {
    cc.algorithm().ok_or(Unmodelled::CongestionControl(cc.name()))
}

impl Connection {
    fn new(
        scenario: &Scenario,
        device: Device,
        cc: CongestionControl,
        ecn: bool,
        seed: u64,
        answers: bool,
    ) -> Result<Self, Unmodelled> {
        let algorithm = algorithm(cc)?;
        let sender = SenderConfig {
            algorithm,
            ecn,
            mtu: scenario.link.mtu,
            pacing: device.pacing,
            tick: Tick::new(scenario.tick).starting_at(CLOCK_START),
            seed,
            ..SenderConfig::default()
        };
        let read_interval = scenario.receiver.read_interval;
        let receiver = ReceiverConfig {
            mtu: scenario.link.mtu,
            ecn_style: algorithm.ecn_style(),
            read_interval: if answers || read_interval.is_zero() {
                Duration::ZERO
            } else {
                read_interval + TIMER_SLACK
            },
            answers,
            tick: Tick::new(scenario.tick).starting_at(CLOCK_START),
            ..ReceiverConfig::default()
        };
        Ok(Self {
            sender: Sender::new(sender),
            receiver: Receiver::new(receiver),
            program: Program::Bulk { stop_ns: None, done_ns: None },
            group: 0,
            start_ns: 0,
            started: false,
            size: u64::MAX,
            lane: 0,
            device: Chain::EMPTY,
            is_delayed: false,
            interface: 0,
            line_bytes: 0,
            rtt_samples: 0,
            at_warmup: Marker::default(),
            round_trip_ns: None,
        })
    }

    /// A flow of `group` that starts at `start_ns`.
    pub(crate) fn flow(
        scenario: &Scenario,
        device: Device,
        (index, group): (usize, &FlowGroup),
        start_ns: u64,
        seed: u64,
    ) -> Result<Self, Unmodelled> {
        let connection = Self::new(scenario, device, group.cc, group.ecn, seed, false)?;
        let size = group.size.map_or(u64::MAX, |Bytes(bytes)| bytes);
        let stop_ns = group.stop.map(|stop| stop.as_nanos() as u64);
        let program = Program::Bulk { stop_ns, done_ns: None };
        Ok(Self { group: index, program, start_ns, size, ..connection })
    }

    /// A probe, which starts at once.
    pub(crate) fn probe(
        scenario: &Scenario,
        device: Device,
        (index, group): (usize, &ProbeGroup),
        seed: u64,
    ) -> Result<Self, Unmodelled> {
        let connection = Self::new(scenario, device, group.cc, group.ecn, seed, true)?;
        let (interval, samples) = (group.interval, Vec::new());
        let program = match group.kind {
            ProbeKind::Ping => Program::Ping { interval, samples },
            ProbeKind::Ssh => {
                let interval = interval + TIMER_SLACK;
                Program::Probe {
                    interval,
                    asked_ns: None,
                    acknowledges: None,
                    answered_ns: None,
                    converses: false,
                    samples,
                }
            }
        };
        Ok(Self { group: index, program, ..connection })
    }

    /// The program's turn: the first time it opens the connection, later on it asks, or stops. Returns when it is its turn
    /// again, if that is known. What is no TCP goes to `out`.
    pub(crate) fn run_program(&mut self, now_ns: u64, out: &mut Vec<Transmission>) -> Option<u64> {
        let mut next_ns = None;
        let empty = Data {
            seq: 0,
            payload: 0,
            segments: 1,
            mss: PING_PAYLOAD as u16,
            timestamp_ms: 0,
            echo_ms: 0,
            ecn: Ecn::NotEct,
            cwr: false,
            push: false,
            syn: false,
            cut: false,
        };
        match &mut self.program {
            Program::Bulk { stop_ns, .. } if !self.started => {
                self.sender.write(self.size);
                next_ns = *stop_ns;
            }
            Program::Bulk { .. } => self.sender.stop(),
            Program::Probe { acknowledges: acknowledges @ Some(_), .. } => {
                next_ns = acknowledges.take();
                let data = Data { ecn: self.sender.empty_segment_ecn(), ..empty };
                out.push(Transmission { data, departure: Instant::from_nanos(now_ns) });
            }
            Program::Probe { asked_ns, .. } => {
                *asked_ns = Some(now_ns);
                self.sender.write(PROBE_BYTES.into());
            }
            Program::Ping { interval, .. } => {
                // What comes back tells when it was sent.
                let data = Data { seq: now_ns, payload: PING_PAYLOAD, ..empty };
                let departure = Instant::from_nanos(now_ns);
                out.push(Transmission { data, departure });
                next_ns = Some((departure + *interval).as_nanos());
            }
        }
        self.started = true;
        next_ns
    }

    /// How it is just now.
    pub(crate) fn look(&self) -> Look {
        let sender = &self.sender;
        Look {
            acknowledged: sender.acknowledged(),
            retransmits: sender.stats().retransmissions,
            cwnd: sender.cwnd(),
            ssthresh: sender.ssthresh(),
            in_flight: sender.in_flight(),
            pacing_rate: Some(sender.pacing_rate()).filter(|rate| *rate < u64::MAX),
            srtt_us: sender.rtt_us().map(|(srtt_us, _)| srtt_us as u64),
        }
    }

    /// The figures so far.
    pub(crate) fn marker(&self) -> Marker {
        let stats = self.sender.stats();
        Marker {
            acknowledged: self.sender.acknowledged(),
            line_bytes: self.line_bytes,
            segments: stats.segments,
            retransmissions: stats.retransmissions,
            timeouts: stats.timeouts,
            ce_segments: self.receiver.stats().ce_segments,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interfaces_timer_is_set_anew_only_for_what_is_due_earlier_than_its_slack_allows() {
        let mut delayed = Delayed::default();
        assert_eq!(delayed.schedule(10), None);
        delayed.delay(100, 1);
        assert_eq!((delayed.schedule(10), delayed.schedule(10)), (Some(100), None));
        delayed.delay(90, 2);
        assert_eq!(delayed.schedule(10), None);
        delayed.delay(89, 3);
        assert_eq!(delayed.schedule(10), Some(89));
        // All go that are due, the earliest first.
        assert_eq!((delayed.take_due(88), delayed.take_due(95)), (None, Some(3)));
        assert_eq!((delayed.take_due(95), delayed.take_due(95)), (Some(2), None));
        assert_eq!(delayed.schedule(10), Some(100));
    }
}
