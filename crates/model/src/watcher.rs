//! What is told of a run while it runs: packets, their headers, connections.

use dualq_qdisc::{Departure, Dropped, Packet as _};
use dualq_scenario::{
    Change, ConnectionEvent, Direction, Event, Kind, Metrics, Point, Scenario, Seen, Wants, Watch,
};
use dualq_tcp::Ack;
use dualq_units::Instant;

use crate::host::Connection;
use crate::options::Options;
use crate::packet::Packet;
use crate::wire::Wire;

/// Whoever looks at a run, and what it takes to tell.
pub(crate) struct Watcher<'a> {
    watch: &'a mut dyn Watch,
    wants: Wants,
    wire: Wire,
    /// The number that each connection is told by.
    flows: Vec<u32>,
    /// How many segments of each connection were told to be lost.
    lost: Vec<u64>,
}

impl<'a> Watcher<'a> {
    /// One for these connections, if anything is wanted.
    pub(crate) fn new(
        scenario: &Scenario,
        connections: &[Connection],
        watch: &'a mut dyn Watch,
    ) -> Option<Self> {
        let wants = watch.wants();
        let wire = Wire::new(scenario, connections);
        let flows = (0..).zip(connections);
        let flows = flows.map(|(number, connection)| connection.known_as(number)).collect();
        let lost = vec![0; connections.len()];
        wants.any().then_some(Self { watch, wants, wire, flows, lost })
    }

    /// A packet sets out from its host.
    #[cold]
    pub(crate) fn sets_out(
        &mut self,
        now: Instant,
        direction: Direction,
        packet: &Packet,
        options: &Options,
    ) {
        if direction == Direction::Up {
            self.tell(self.event(now, (Seen::Sent, direction), packet));
        }
        // A router is at neither end.
        if !packet.is_of_router() {
            let host = if direction.is_down() { Point::Near } else { Point::Far };
            self.capture(now, host, packet, options);
        }
        if let (true, Some(payload)) = (self.wants.connections, packet.body.data_bytes()) {
            let start = packet.body.seq();
            let (end, length) = (start + u64::from(payload), dualq_net::Packet::ip_bytes(packet));
            self.change(now, packet.owner.number(), Change::Sent { start, end, length });
        }
    }

    /// A packet reaches its host.
    #[cold]
    pub(crate) fn comes_in(
        &mut self,
        now: Instant,
        direction: Direction,
        packet: &Packet,
        options: &Options,
    ) {
        if direction == Direction::Up && !packet.is_answer() {
            self.tell(self.event(now, (Seen::Arrive, direction), packet));
        }
        let host = if direction.is_down() { Point::Far } else { Point::Near };
        self.capture(now, host, packet, options);
    }

    /// A packet reaches the queue of its direction.
    #[cold]
    pub(crate) fn arrived(
        &mut self,
        now: Instant,
        direction: Direction,
        packet: &Packet,
        options: &Options,
    ) {
        self.tell(self.event(now, (Seen::In, direction), packet));
        let point = if direction.is_down() { Point::In } else { Point::UpIn };
        self.capture(now, point, packet, options);
    }

    /// A packet leaves the queue of its direction.
    #[cold]
    pub(crate) fn departed(
        &mut self,
        now: Instant,
        direction: Direction,
        departure: &Departure<Packet>,
        options: &Options,
    ) {
        let packet = &departure.packet;
        let waited_ns = Some(departure.sojourn_ns);
        self.tell(Event { waited_ns, ..self.event(now, (Seen::Out, direction), packet) });
        let point = if direction.is_down() { Point::Out } else { Point::UpOut };
        self.capture(now, point, packet, options);
    }

    /// The queue of its direction drops a packet.
    #[cold]
    pub(crate) fn dropped(
        &mut self,
        now: Instant,
        direction: Direction,
        dropped: &Dropped<Packet>,
    ) {
        let reason = Some(dropped.reason);
        self.tell(Event { reason, ..self.event(now, (Seen::Drop, direction), &dropped.packet) });
    }

    /// An acknowledgement, or the answer to a ping, is back at the sender of this connection.
    #[cold]
    pub(crate) fn acknowledged(
        &mut self,
        now: Instant,
        (flow, direction): (u32, Direction),
        kind: Kind,
        ack: &Ack,
    ) {
        self.tell(Event {
            at_ns: now.as_nanos(),
            seen: Seen::Ack,
            flow: self.flows[flow as usize],
            direction,
            kind,
            seq: ack.ack,
            bytes: ack.window,
            ecn: ack.flags.ece().into(),
            sacks: ack.block_count,
            waited_ns: None,
            reason: None,
        });
        if self.wants.connections && kind == Kind::Ack {
            let blocks = ack.blocks().iter().map(|block| (block.start, block.end)).collect();
            let (ack, window, ece) = (ack.ack, ack.window, ack.flags.ece());
            self.change(now, flow, Change::Acknowledged { ack, window, blocks, ece });
        }
    }

    /// A sender has digested what it was told, and has not acted on it.
    #[cold]
    pub(crate) fn look(&mut self, now: Instant, flow: u32, connection: &Connection) {
        if !self.wants.connections {
            return;
        }
        let sender = &connection.sender;
        if self.lost[flow as usize] != sender.lost() {
            self.lost[flow as usize] = sender.lost();
            for (start, end) in sender.losses() {
                self.change(now, flow, Change::Lost { start, end });
            }
        }
        let metrics = Metrics {
            look: connection.look(),
            mss: sender.mss(),
            rttvar_us: sender.rtt_us().map(|(_, deviation_us)| deviation_us as u64),
            min_rtt_us: sender.min_rtt_us(),
            phase: sender.phase().into(),
        };
        self.change(now, flow, Change::Metrics(metrics));
    }

    fn tell(&mut self, event: Event) {
        if self.wants.packets {
            self.watch.packet(event);
        }
    }

    fn capture(&mut self, now: Instant, point: Point, packet: &Packet, options: &Options) {
        if self.wants.headers {
            self.watch.headers(&self.wire.headers(now, point, packet, options));
        }
    }

    /// Of a connection with data both ways, one end is told of: as in the lab, the one that answers.
    fn change(&mut self, now: Instant, flow: u32, change: Change) {
        if self.flows[flow as usize] == flow {
            self.watch.connection(&ConnectionEvent { at_ns: now.as_nanos(), flow, change });
        }
    }

    /// A packet that is seen.
    fn event(&self, now: Instant, (seen, direction): (Seen, Direction), packet: &Packet) -> Event {
        Event {
            at_ns: now.as_nanos(),
            seen,
            flow: self.flows[packet.owner.number() as usize],
            direction,
            kind: packet.body.kind(),
            seq: packet.body.seq(),
            bytes: packet.body.carried().into(),
            ecn: packet.ecn().bits(),
            sacks: 0,
            waited_ns: None,
            reason: None,
        }
    }
}
