//! One connection: its two endpoints, its program and what waits in the queue of its sender's interface.

use std::time::Duration;

use dualq_qdisc::pool::Chain;
use dualq_scenario::summary::Look;
use dualq_scenario::{
    CongestionControl, FlowGroup, ProbeGroup, ProbeKind, Scenario, TIMER_SLACK, Transfer,
};
use dualq_tcp::{Algorithm, Receiver, ReceiverConfig, Sender, SenderConfig, Tick};
use dualq_units::Bytes;

use crate::error::Unmodelled;
use crate::host::interface::Device;
use crate::network::Direction;
use crate::packet::Outgoing;
use crate::program::{Bulk, Ping, Program, Request};

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
    /// Which way its data go.
    pub(crate) direction: Direction,
    /// Whose it is: the number of the group of flows or, behind these, of the probe. It has an interface of its own.
    pub(crate) owner: usize,
    /// How many samples of its round-trip time were taken.
    pub(crate) rtt_samples: u64,
    pub(crate) program: Program,
    pub(crate) sender: Sender,
    // The sending side ends here; what follows are the other side, and what is seldom needed.
    pub(crate) receiver: Receiver,
    /// When its program starts.
    pub(crate) start_ns: u64,
    pub(crate) started: bool,
    pub(crate) at_warmup: Marker,
}

pub(crate) fn algorithm(cc: CongestionControl) -> Result<Algorithm, Unmodelled> {
    cc.algorithm().ok_or(Unmodelled::CongestionControl(cc.name()))
}

impl Connection {
    fn new(
        scenario: &Scenario,
        device: Device,
        (cc, ecn): (CongestionControl, bool),
        (owner, program): (usize, Program),
        seed: u64,
    ) -> Result<Self, Unmodelled> {
        let algorithm = algorithm(cc)?;
        let answers = program.is_answered();
        let sender = SenderConfig {
            algorithm,
            ecn,
            mtu: scenario.link.mtu,
            pacing: device.pacing,
            tick: Tick::new(scenario.tick),
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
            tick: Tick::new(scenario.tick),
            ..ReceiverConfig::default()
        };
        Ok(Self {
            sender: Sender::new(sender),
            receiver: Receiver::new(receiver),
            program,
            owner,
            start_ns: 0,
            started: false,
            device: Chain::EMPTY,
            is_delayed: false,
            direction: Direction::Down,
            line_bytes: 0,
            rtt_samples: 0,
            at_warmup: Marker::default(),
        })
    }

    /// All connections of a scenario: first the flows, then the probes.
    pub(crate) fn all(
        scenario: &Scenario,
        device: Device,
        draw: &mut impl FnMut() -> u64,
    ) -> Result<Vec<Self>, Unmodelled> {
        let flows = scenario.flow.iter().map(|group| group.count as usize).sum::<usize>();
        let mut connections = Vec::with_capacity(flows + scenario.probe.len());
        for group in scenario.flow.iter().enumerate() {
            for transfer in group.1.transfers(group.0) {
                connections.push(Self::flow(scenario, device, group, transfer, draw())?);
            }
        }
        for group in scenario.probe.iter().enumerate() {
            connections.push(Self::probe(scenario, device, group, draw())?);
        }
        Ok(connections)
    }

    /// A flow of `group`.
    fn flow(
        scenario: &Scenario,
        device: Device,
        (index, group): (usize, &FlowGroup),
        transfer: Transfer,
        seed: u64,
    ) -> Result<Self, Unmodelled> {
        let program = Program::Bulk(Bulk {
            size: transfer.size.map_or(u64::MAX, |Bytes(bytes)| bytes),
            stop_ns: group.stop.map(|stop| stop.as_nanos() as u64),
            done_ns: None,
        });
        let sort = (group.cc, group.ecn);
        let connection = Self::new(scenario, device, sort, (index, program), seed)?;
        let start_ns = transfer.start.as_nanos() as u64;
        Ok(Self { start_ns, ..connection })
    }

    /// A probe, which starts at once.
    fn probe(
        scenario: &Scenario,
        device: Device,
        (index, group): (usize, &ProbeGroup),
        seed: u64,
    ) -> Result<Self, Unmodelled> {
        let program = match group.kind {
            ProbeKind::Ping => Program::Ping(Ping::new(group.interval)),
            ProbeKind::Ssh => Program::Request(Request::new(group.interval + TIMER_SLACK)),
        };
        let owner = scenario.flow.len() + index;
        Self::new(scenario, device, (group.cc, group.ecn), (owner, program), seed)
    }

    /// The program's turn: the first time it starts. Returns when it is its turn again, if that is known. What is no data of TCP
    /// goes to `out`.
    pub(crate) fn run_program(&mut self, now_ns: u64, out: &mut Vec<Outgoing>) -> Option<u64> {
        if self.started {
            return self.program.turn(now_ns, &mut self.sender, out);
        }
        self.started = true;
        self.program.start(now_ns, &mut self.sender, out)
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
