//! One connection: its two endpoints, its program and what waits in the queue of its sender's interface.

use std::sync::Arc;
use std::time::Duration;

use dualq_qdisc::pool::Chain;
use dualq_scenario::summary::Look;
use dualq_scenario::{
    CLOCK_AT_START, CongestionControl, Direction, EcnRequest, FlowGroup, PROBE_BYTES, ProbeGroup,
    ProbeKind, Scenario, TIMER_SLACK, Transfer, UdpGroup,
};
use dualq_tcp::{
    Algorithm, EcnOption, EcnStyle, Pacing, Receiver, ReceiverConfig, Sender, SenderConfig, Tick,
};
use dualq_units::Bytes;

use crate::host::interface::Interface;
use crate::host::pages::Written;
use crate::owner::Owner;
use crate::packet::{ADDRESS_BITS, Body, Outgoing};
use crate::program::{Answer, Ask, Bulk, Ping, Program, RoundTrips, Turn, Udp};
use crate::record::Record;

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

/// Where the packets of a connection go, and by what they are known.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Route {
    /// Where the data of the other direction are, if there are such: its receiver is at the end of this one's sender.
    pub(crate) counterpart: Option<u32>,
    /// What queues tell its packets by.
    pub(crate) identity: (Owner, u32),
    /// Which way its data go.
    pub(crate) direction: Direction,
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
    /// Whose it is: the number of the group of flows or, behind these, of the probe or, behind these, of the group of UDP streams.
    /// Each has an interface of its own.
    pub(crate) owner: usize,
    /// How many samples of its round-trip time were taken.
    pub(crate) rtt_samples: u64,
    pub(crate) program: Program,
    pub(crate) sender: Sender,
    // What both sides need stands between them: each is asked for from memory with this.
    /// Where in memory what its program has written lies.
    pub(crate) written: Written,
    pub(crate) route: Route,
    // The sending side ends here; what follows are the other side, and what is seldom needed.
    pub(crate) receiver: Receiver,
    /// When its program starts.
    pub(crate) start_ns: u64,
    pub(crate) started: bool,
    pub(crate) at_warmup: Marker,
}

/// An answer as long as its question, as of keystrokes.
const SHORT_ANSWER: Bytes = Bytes(PROBE_BYTES as u64);

/// How a sender sends.
#[derive(Clone, Copy, Debug)]
struct Sort {
    cc: CongestionControl,
    ecn: EcnRequest,
    ecn_low: bool,
    ecn_fallback: bool,
    ect1: bool,
    ecn_option: EcnOption,
    send_buffer: Option<Bytes>,
    notsent_lowat: Option<Bytes>,
    nodelay: bool,
    fast_open: bool,
}

impl Sort {
    /// Of a program that asks or answers.
    fn plain(cc: CongestionControl, ecn: EcnRequest) -> Self {
        Self {
            cc,
            ecn,
            ecn_low: false,
            ecn_fallback: false,
            ecn_option: EcnOption::Full,
            ect1: false,
            send_buffer: None,
            notsent_lowat: None,
            nodelay: true,
            fast_open: false,
        }
    }

    /// The most that its receiver grants of ECN, and how it echoes marks: as this expects it.
    fn granted(self, scenario: &Scenario) -> EcnStyle {
        match (scenario.granted_ecn(), self.cc.ecn_style()) {
            (EcnRequest::Off, _) => EcnStyle::Off,
            // Nobody asks for more.
            (_, EcnStyle::Dctcp) if self.ecn != EcnRequest::Accurate => EcnStyle::Dctcp,
            _ if self.ecn_low && self.ecn != EcnRequest::Accurate => EcnStyle::Dctcp,
            (granted, _) => granted.style(),
        }
    }
}

/// How a receiving program reads.
#[derive(Clone, Copy, Debug, Default)]
struct Reads {
    interval: Duration,
    buffer: Option<Bytes>,
}

/// What the connections of a group are made of.
#[derive(Clone, Debug)]
struct Ends {
    sender: Arc<SenderConfig>,
    receiver: Arc<ReceiverConfig>,
}

impl Ends {
    /// Of those whose programs converse, or else send in one direction.
    fn new(
        scenario: &Scenario,
        interface: Interface,
        sort: Sort,
        reads: Reads,
        converses: bool,
    ) -> Self {
        let sender = SenderConfig {
            algorithm: sort.cc.algorithm(),
            ecn: sort.ecn.style(),
            ect1: sort.ect1,
            ecn_low: sort.ecn_low,
            ecn_fallback: sort.ecn_fallback,
            ecn_option: sort.ecn_option,
            buffer: sort.send_buffer,
            notsent_lowat: sort.notsent_lowat,
            nodelay: sort.nodelay,
            fast_open: sort.fast_open,
            mtu: scenario.link.mtu,
            gso: scenario.sender.gso,
            pacing: interface.pacing,
            tick: Tick::new(scenario.tick).starting_at(CLOCK_AT_START),
            ..SenderConfig::default()
        };
        let receiver = ReceiverConfig {
            tells_changes: sort.cc.ecn_style() == EcnStyle::Dctcp,
            mtu: scenario.link.mtu,
            ecn: sort.granted(scenario),
            ecn_option: scenario.receiver.ecn_option,
            // Who receives bulk data has no congestion control here.
            ect1: converses && sort.cc.ecn_style() == EcnStyle::Accurate,
            fast_open: sort.fast_open,
            read_interval: if reads.interval.is_zero() {
                Duration::ZERO
            } else {
                reads.interval + TIMER_SLACK
            },
            fixed_buffer: reads.buffer,
            closes: !converses,
            tick: Tick::new(scenario.tick).starting_at(CLOCK_AT_START),
            ..ReceiverConfig::default()
        };
        Self { sender: sender.into(), receiver: receiver.into() }
    }

    /// Of the flows of a group.
    fn of_flows(scenario: &Scenario, interface: Interface, group: &FlowGroup) -> Self {
        let FlowGroup { cc, ecn, ecn_low, ecn_fallback, ecn_option, ect1, .. } = *group;
        let FlowGroup { send_buffer, notsent_lowat, fast_open, .. } = *group;
        let sort = Sort {
            cc,
            ecn,
            ecn_low,
            ecn_fallback,
            ecn_option,
            ect1,
            send_buffer,
            notsent_lowat,
            // In the world `kernel` the end of a transfer that is made again waits for nothing.
            nodelay: group.every.is_some(),
            fast_open,
        };
        let reads = Reads {
            interval: group.read_interval.unwrap_or(scenario.receiver.read_interval),
            buffer: group.receive_buffer,
        };
        Self::new(scenario, interface, sort, reads, false)
    }

    /// Of the two ends of a probe.
    fn of_probe(scenario: &Scenario, interface: Interface, group: &ProbeGroup) -> Self {
        let sort = Sort::plain(group.cc, group.ecn);
        let converses = !matches!(group.kind, ProbeKind::Ping);
        Self::new(scenario, interface, sort, Reads::default(), converses)
    }

    /// Of streams of UDP, which have no use for the endpoints of TCP.
    fn of_streams(scenario: &Scenario, interface: Interface) -> Self {
        let sort = Sort::plain(Algorithm::Cubic.into(), EcnRequest::Off);
        Self::new(scenario, interface, sort, Reads::default(), false)
    }
}

impl Connection {
    fn new(ends: &Ends, (owner, program): (usize, Program), seed: u64) -> Self {
        Self {
            sender: Sender::new(Arc::clone(&ends.sender)).with_seed(seed),
            receiver: Receiver::new(Arc::clone(&ends.receiver)),
            program,
            written: Written::default(),
            owner,
            route: Route {
                counterpart: None,
                // Until all connections are numbered.
                identity: (Owner::hidden(0), 0),
                direction: Direction::Down,
            },
            start_ns: 0,
            started: false,
            device: Chain::EMPTY,
            is_delayed: false,
            line_bytes: 0,
            rtt_samples: 0,
            at_warmup: Marker::default(),
        }
    }

    /// The same with data that go this way.
    fn going(self, direction: Direction) -> Self {
        Self { route: Route { direction, ..self.route }, ..self }
    }

    /// All connections of a scenario: first the flows, then the probes, then the streams of UDP, then the other ends of the
    /// probes that are connections with data both ways.
    pub(crate) fn all(
        scenario: &Scenario,
        interface: Interface,
        draw: &mut impl FnMut() -> u64,
    ) -> Vec<Self> {
        let flows = scenario.flow.iter().map(|group| group.count as usize).sum::<usize>();
        let mut connections = Vec::with_capacity(flows + scenario.probe.len());
        for group in scenario.flow.iter().enumerate() {
            let ends = Ends::of_flows(scenario, interface, group.1);
            for transfer in group.1.transfers(group.0) {
                connections.push(Self::flow(&ends, group, transfer, draw()));
            }
        }
        let mut others = Vec::new();
        for group in scenario.probe.iter().enumerate() {
            let (number, seed) = (connections.len(), draw());
            connections.push(Self::probe(scenario, interface, group, seed));
            if let Some(other) = Self::other_end(scenario, interface, group, !seed) {
                others.push((number, other));
            }
        }
        for group in scenario.udp.iter().enumerate() {
            let ends = Ends::of_streams(scenario, interface);
            for stream in 0..group.1.count {
                connections.push(Self::udp(&ends, scenario, group, stream));
            }
        }
        for (number, other) in others {
            connections[number].route.counterpart = Some(connections.len() as u32);
            let route = Route { counterpart: Some(number as u32), ..other.route };
            connections.push(Self { route, ..other });
        }
        connections
    }

    /// A flow of `group`.
    fn flow(
        ends: &Ends,
        (index, group): (usize, &FlowGroup),
        transfer: Transfer,
        seed: u64,
    ) -> Self {
        let size = transfer.size.map_or(u64::MAX, |Bytes(bytes)| bytes);
        let start_ns = transfer.start.as_nanos() as u64;
        let program = Program::Bulk(Bulk::new(start_ns, size, group.every, group.stop));
        let connection = Self::new(ends, (index, program), seed);
        Self { start_ns, ..connection }.going(group.direction)
    }

    /// A probe, which starts at once: what opens the connection, if it is one.
    fn probe(
        scenario: &Scenario,
        interface: Interface,
        (index, group): (usize, &ProbeGroup),
        seed: u64,
    ) -> Self {
        let program = match group.kind {
            ProbeKind::Ping => Program::Ping(Ping::new(group.interval)),
            ProbeKind::Ssh => Program::Ask(Ask::new(SHORT_ANSWER, group.interval + TIMER_SLACK)),
            ProbeKind::Request => Program::Answer(Answer::new(group.answer_size())),
        };
        let ends = Ends::of_probe(scenario, interface, group);
        Self::new(&ends, (scenario.flow.len() + index, program), seed)
    }

    /// The end of a probe's connection that accepts it, if there is such: on a host whose interface has no queue that paces.
    fn other_end(
        scenario: &Scenario,
        interface: Interface,
        (index, group): (usize, &ProbeGroup),
        seed: u64,
    ) -> Option<Self> {
        let program = match group.kind {
            ProbeKind::Ping => return None,
            ProbeKind::Ssh => Program::Answer(Answer::new(SHORT_ANSWER)),
            ProbeKind::Request => {
                Program::Ask(Ask::new(group.answer_size(), group.interval + TIMER_SLACK))
            }
        };
        let whose = (scenario.flow.len() + index, program);
        let interface = Interface { pacing: Pacing::OnDemand, ..interface };
        let mut end = Self::new(&Ends::of_probe(scenario, interface, group), whose, seed);
        end.sender.listen();
        Some(end.going(Direction::Up))
    }

    /// A stream of UDP, by its number in its group.
    fn udp(
        ends: &Ends,
        scenario: &Scenario,
        (index, group): (usize, &UdpGroup),
        stream: u32,
    ) -> Self {
        let program = Program::Udp(Udp::new((index, group), stream));
        let owner = scenario.flow.len() + scenario.probe.len() + index;
        let connection = Self::new(ends, (owner, program), 0);
        let start_ns = group.start_of(stream).as_nanos() as u64;
        Self { start_ns, ..connection }.going(group.direction)
    }

    /// The program's turn: the first time it starts. Returns when it is its turn again, if that is known. What is no data of TCP
    /// goes to `out`.
    pub(crate) fn run_program(
        &mut self,
        now_ns: u64,
        out: &mut Vec<Outgoing>,
        record: &mut Record,
    ) -> Option<u64> {
        self.started = true;
        self.program.turn(&mut Turn { now_ns, sender: &mut self.sender, out, record })
    }

    /// A packet leaves the queue of its sender's interface. Returns whether the sender waits for that.
    #[inline]
    pub(crate) fn departs(&mut self, body: &Body) -> bool {
        self.line_bytes += u64::from(body.wire_bytes());
        body.data_bytes().is_some_and(|bytes| self.sender.on_departure(bytes))
    }

    /// Which way its packets go, and what queues tell them by.
    #[inline]
    pub(crate) fn address(&self) -> (Direction, Owner, u32) {
        let Route { identity: (owner, flow), direction, .. } = self.route;
        (direction, owner, self.rehashed(owner, flow))
    }

    /// By what queues tell what the end of its sender sends, data or not: by another hash after each timeout (Linux: `sk_txhash`).
    #[inline]
    pub(crate) fn rehashed(&self, owner: Owner, flow: u32) -> u32 {
        if owner.is_hidden() {
            return flow;
        }
        flow | (self.sender.rehashes() as u32) << ADDRESS_BITS
    }

    /// The number by which queues and observers know it, if this is its own: with its counterpart it is one connection to them.
    pub(crate) fn known_as(&self, number: u32) -> u32 {
        self.route.counterpart.map_or(number, |other| other.min(number))
    }

    /// Whether the end of its sender accepted the connection that another one, its [counterpart](Route::counterpart), opened.
    pub(crate) fn is_accepted(&self, number: u32) -> bool {
        self.known_as(number) != number
    }

    /// The round trips that the program of one of its ends measured, if it does so.
    pub(crate) fn round_trips<'c>(&'c self, all: &'c [Self]) -> Option<&'c RoundTrips> {
        let other = || all.get(self.route.counterpart? as usize)?.program.round_trips();
        self.program.round_trips().or_else(other)
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
