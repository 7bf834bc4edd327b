//! Packets that reach a host.

use dualq_net::Path;
use dualq_scenario::{Event, Seen};
use dualq_tcp::{Ack, Data};
use dualq_units::{Ecn, Instant};

use crate::engine::{Cause, Simulation};
use crate::host::Connection;
use crate::network::{Direction, Surroundings};
use crate::packet::{Body, Echo, Packet, SmallAck};

impl Simulation<'_> {
    /// Hands over what comes out of a path now.
    #[inline]
    pub(super) fn take_arrivals(&mut self, direction: Direction) {
        let now = self.now();
        while let Some(packet) = self.network.path(direction).next_out(now, &mut self.around) {
            match direction {
                Direction::Down => self.read_receivers_ahead(),
                Direction::Up => self.read_senders_ahead(),
            }
            self.arrive(packet);
        }
    }

    /// A packet has passed the network.
    #[inline]
    fn arrive(&mut self, packet: Packet) {
        let number = packet.connection;
        match packet.body {
            Body::Data(data) => self.take_data(number, &data),
            Body::Ack(ack) => {
                let ack = ack.open(&mut self.around.sacks);
                self.take_ack(number, &ack);
            }
            Body::AnswerAck(_) => {}
            Body::Echo(echo) => self.take_echo(number, echo),
        }
    }

    /// Data reach their receiver.
    #[inline]
    fn take_data(&mut self, number: u32, data: &Data) {
        let (now, flow) = (self.now(), self.flow_of(number));
        let Connection { receiver, direction, .. } = &mut self.connections[number as usize];
        let path = self.network.path(direction.back());
        let mut answer = answers(path, &mut self.around, now, (number, flow));
        receiver.on_data(now, data, &mut answer);
        drop(answer);
        self.has_answered(number);
    }

    /// A receiver's timer has run out, or its program wakes a little earlier than it may.
    pub(super) fn receiver_is_due(&mut self, number: u32) {
        let (now, flow) = (self.now(), self.flow_of(number));
        let Connection { receiver, direction, .. } = &mut self.connections[number as usize];
        let path = self.network.path(direction.back());
        let mut answer = answers(path, &mut self.around, now, (number, flow));
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
        let (deadline, back) = (receiver.next_timer(), direction.back());
        self.agenda.arm(number, Cause::Receiver, deadline.as_nanos());
        self.take_arrivals(back);
    }

    /// An acknowledgement reaches its sender.
    #[inline]
    fn take_ack(&mut self, number: u32, ack: &Ack) {
        let (now, moment) = (self.now(), self.moment());
        self.tell_ack(number, ack);
        let connection = &mut self.connections[number as usize];
        self.around.record.take_samples(connection);
        connection.sender.on_ack(now, ack);
        if let Some(next_ns) = connection.program.acknowledged(moment, &connection.sender) {
            self.agenda.arm(number, Cause::Program, next_ns);
        }
        self.drive(number);
    }

    /// An echo request is answered; of a reply the program is told.
    fn take_echo(&mut self, number: u32, echo: Echo) {
        let (now, moment) = (self.now(), self.moment());
        let flow = self.flow_of(number);
        let connection = &mut self.connections[number as usize];
        if echo.is_reply {
            connection.program.replied(moment, echo.sent_ns);
            self.tell_ack(number, &Ack { ack: echo.sent_ns, ..Ack::default() });
            return;
        }
        let back = connection.direction.back();
        let body = Body::Echo(Echo { is_reply: true, ..echo });
        let packet = Packet { connection: number, flow, body };
        self.network.path(back).enter(now, packet, &mut self.around);
        self.take_arrivals(back);
    }

    #[inline]
    fn tell_ack(&mut self, number: u32, ack: &Ack) {
        if let Some(watch) = &mut self.around.watch {
            watch(Event {
                at_ns: self.now_ns,
                seen: Seen::Ack,
                flow: number,
                seq: ack.ack,
                bytes: ack.window,
                ecn: ack.ece.into(),
                sacks: ack.block_count,
            });
        }
    }
}

/// Sends acknowledgements of a connection into a path.
#[inline]
fn answers<'s>(
    path: &'s mut Path<Packet>,
    around: &'s mut Surroundings<'_>,
    now: Instant,
    (connection, flow): (u32, u32),
) -> impl FnMut(Ack) {
    move |ack| {
        let ack = SmallAck::new(&ack, Ecn::NotEct, &mut around.sacks);
        path.enter(now, Packet { connection, flow, body: Body::Ack(ack) }, around);
    }
}
