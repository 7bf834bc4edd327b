//! Packets that reach a host.

use dualq_net::Path;
use dualq_scenario::{Direction, Event, Kind, PROBE_BYTES, Seen};
use dualq_tcp::{Ack, Data};
use dualq_units::{Ecn, Instant};

use crate::engine::{Cause, Simulation};
use crate::host::Connection;
use crate::network::{Surroundings, back};
use crate::packet::{Body, Datagram, Echo, Owner, Packet, SmallAck};
use crate::program::Program;

impl Simulation<'_> {
    /// Hands over what comes out of a path now: most often nothing.
    #[inline]
    pub(super) fn take_arrivals(&mut self, direction: Direction) {
        if !self.network.path(direction).is_quiet() {
            self.hand_over(direction);
        }
    }

    fn hand_over(&mut self, direction: Direction) {
        let now = self.now();
        while let Some(packet) = self.network.path(direction).next_out(now, &mut self.around) {
            match direction {
                Direction::Down => self.read_receivers_ahead(),
                Direction::Up => self.read_senders_ahead(),
            }
            self.arrive(direction, packet);
        }
    }

    /// A packet has passed the network.
    #[inline]
    fn arrive(&mut self, direction: Direction, packet: Packet) {
        let number = packet.owner.number();
        if direction == Direction::Up && !packet.is_answer() {
            self.around.tell(self.now(), (Seen::Arrive, direction), &packet);
        }
        match packet.body {
            Body::Data(data) => self.take_data(number, &data),
            Body::Ack(ack) => {
                let ack = ack.open(&mut self.around.sacks);
                self.take_ack(number, &ack);
            }
            Body::AnswerAck(_) => {}
            Body::Echo(echo) => self.take_echo(number, echo),
            Body::Datagram(datagram) => self.take_datagram(number, datagram),
            Body::TooLong(mtu) => {
                let now = self.now();
                let connection = &mut self.connections[number as usize];
                let known = &mut self.path_mtus[connection.owner];
                *known = mtu.min(*known);
                connection.sender.reduce_mtu(now, mtu);
                self.drive(number);
            }
        }
    }

    /// Data reach their receiver.
    #[inline]
    fn take_data(&mut self, number: u32, data: &Data) {
        let (now, identity) = (self.now(), self.identity(number));
        let connection = &mut self.connections[number as usize];
        let path = self.network.path(back(connection.direction));
        let sort = Answers::of(connection, identity);
        let receiver = &mut connection.receiver;
        let mut answer = answers(path, &mut self.around, now, sort);
        receiver.on_data(now, data, &mut answer);
        drop(answer);
        self.has_answered(number);
    }

    /// A receiver's timer has run out, or its program wakes a little earlier than it may.
    pub(super) fn receiver_is_due(&mut self, number: u32) {
        let (now, identity) = (self.now(), self.identity(number));
        let connection = &mut self.connections[number as usize];
        let path = self.network.path(back(connection.direction));
        let sort = Answers::of(connection, identity);
        let receiver = &mut connection.receiver;
        let mut answer = answers(path, &mut self.around, now, sort);
        if receiver.next_timer() > now {
            receiver.read_early(now, &mut answer);
        } else {
            receiver.on_timer(now, &mut answer);
        }
        drop(answer);
        self.has_answered(number);
    }

    /// A receiver has sent its acknowledgements.
    #[inline]
    fn has_answered(&mut self, number: u32) {
        let Connection { receiver, direction, .. } = &self.connections[number as usize];
        let (deadline, back) = (receiver.next_timer(), back(*direction));
        self.agenda.arm(number, Cause::Receiver, deadline.as_nanos());
        self.take_arrivals(back);
    }

    /// An acknowledgement reaches its sender.
    #[inline]
    fn take_ack(&mut self, number: u32, ack: &Ack) {
        let (now, moment) = (self.now(), self.moment());
        self.tell_ack(number, Kind::Ack, ack);
        let connection = &mut self.connections[number as usize];
        self.around.record.take_samples(connection);
        connection.sender.on_ack(now, ack);
        if let Some(next_ns) = connection.program.acknowledged(moment, &connection.sender) {
            self.agenda.arm(number, Cause::Program, next_ns);
        }
        self.drive(number);
    }

    /// A UDP packet is counted.
    fn take_datagram(&mut self, number: u32, datagram: Datagram) {
        if let Program::Udp(udp) = &self.connections[number as usize].program {
            let Datagram { number, sent_ns, ecn, .. } = datagram;
            let (sent, now) = (Instant::from_nanos(sent_ns), self.now());
            let record = self.around.record.udp(udp.group);
            record.arrived(udp.stream, number, sent, now, ecn == Ecn::Ce);
        }
    }

    /// Senders hear from routers that packets were too long.
    #[cold]
    pub(super) fn tell_too_long(&mut self) {
        let now = self.now();
        for (connection, mtu) in std::mem::take(&mut self.around.too_long) {
            let (owner, flow) = self.identity(connection);
            let back = back(self.connections[connection as usize].direction);
            let packet = Packet { owner, flow, body: Body::TooLong(mtu) };
            self.around.sets_out(now, back, &packet);
            self.network.enter_delay(back, now, packet, &mut self.around);
            self.take_arrivals(back);
        }
    }

    /// An echo request is answered; of a reply the program is told.
    fn take_echo(&mut self, number: u32, echo: Echo) {
        let (now, moment) = (self.now(), self.moment());
        let (owner, flow) = self.identity(number);
        let connection = &mut self.connections[number as usize];
        if echo.is_reply {
            connection.program.replied(moment, echo.sent_ns);
            self.tell_ack(number, Kind::Echo, &Ack { ack: echo.sent_ns, ..Ack::default() });
            return;
        }
        let back = back(connection.direction);
        let body = Body::Echo(Echo { is_reply: true, ..echo });
        let packet = Packet { owner, flow, body };
        self.around.sets_out(now, back, &packet);
        self.network.path(back).enter(now, packet, &mut self.around);
        self.take_arrivals(back);
    }

    #[inline]
    fn tell_ack(&mut self, number: u32, kind: Kind, ack: &Ack) {
        let direction = back(self.connections[number as usize].direction);
        if let Some(watch) = &mut self.around.watch {
            watch(Event {
                at_ns: self.now_ns,
                seen: Seen::Ack,
                flow: number,
                direction,
                kind,
                seq: ack.ack,
                bytes: ack.window,
                ecn: ack.ece.into(),
                sacks: ack.block_count,
                waited_ns: None,
                reason: None,
            });
        }
    }
}

/// What is the same in all acknowledgements of a connection.
#[derive(Clone, Copy)]
struct Answers {
    owner: Owner,
    flow: u32,
    direction: Direction,
    ecn: Ecn,
    /// Bytes of the program's answer that travels with them.
    answer: u8,
}

impl Answers {
    #[inline]
    fn of(connection: &Connection, (owner, flow): (Owner, u32)) -> Self {
        let answer = if connection.answers { PROBE_BYTES as u8 } else { 0 };
        let direction = back(connection.direction);
        Self { owner, flow, direction, ecn: connection.receiver.ack_ecn(), answer }
    }
}

/// Sends acknowledgements of a connection into a path.
#[inline]
fn answers<'s>(
    path: &'s mut Path<Packet>,
    around: &'s mut Surroundings<'_>,
    now: Instant,
    Answers { owner, flow, direction, ecn, answer }: Answers,
) -> impl FnMut(Ack) {
    move |ack| {
        let ack = SmallAck::new(&ack, ecn, answer, &mut around.sacks);
        let packet = Packet { owner, flow, body: Body::Ack(ack) };
        around.sets_out(now, direction, &packet);
        path.enter(now, packet, around);
    }
}
