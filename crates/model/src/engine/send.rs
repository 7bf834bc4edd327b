//! Packets that leave a sender: through the queue of its interface into the network.

use dualq_qdisc::{Packet as _, Random};
use dualq_scenario::Direction;
use dualq_tcp::Pacing;
use dualq_units::hint::unlikely;

use crate::engine::{Cause, Simulation, TIMER_LATENCY_NS};
use crate::host::Connection;
use crate::packet::{ADDRESS_BITS, Body, Outgoing, Packet};

impl Simulation<'_> {
    /// Lets a sender send, and its interface's queue let go what is due.
    #[inline]
    pub(super) fn drive(&mut self, number: u32) {
        self.drive_one(number);
        self.drive_woken();
    }

    /// What leaves acknowledges the data of the other direction, of which this is the receiver: that need not be said again.
    #[cold]
    fn acknowledge_with(&mut self, number: u32) {
        let now = self.now();
        let receiver = &mut self.connections[number as usize].receiver;
        if receiver.is_established() {
            let (ack, scale) = (receiver.ride(now), receiver.window_scale());
            for outgoing in &mut self.leaving {
                outgoing.body.acknowledge(&ack, scale);
            }
            self.around.unsaid.retain(|(of, ack)| *of != number || ack.is_said_alone());
            self.arm_receiver(number);
        }
    }

    #[inline]
    pub(super) fn drive_woken(&mut self) {
        while let Some(number) = self.woken.pop_front() {
            self.drive_one(number);
        }
    }

    #[inline]
    fn drive_one(&mut self, number: u32) {
        let now = self.now();
        let mut writes = false;
        loop {
            let leaving = &mut self.leaving;
            let Connection { sender, written: memory, .. } = &mut self.connections[number as usize];
            let written = sender.written();
            sender.transmit(now, &mut |transmission| {
                let departure = transmission.departure;
                leaving.push(Outgoing { body: Body::data(&transmission.data), departure });
            });
            if sender.written() > written {
                // Before it leaves: it may be where it goes at once.
                memory.write(written..sender.written(), sender.acknowledged(), &mut self.pages);
                writes = true;
            }
            // What is held back goes when more is put in, or with the queue's own timer.
            if self.leaving.is_empty() {
                break;
            }
            if let Some(counterpart) = self.connections[number as usize].route.counterpart {
                self.acknowledge_with(counterpart);
            }
            let more = self.release(number);
            self.release_due(self.connections[number as usize].owner);
            if !more {
                break;
            }
        }
        let sender = &self.connections[number as usize].sender;
        let (deadline, wheel) = (sender.next_timer(), sender.wheel_timer());
        self.agenda.arm_coarse(number, Cause::Sender, deadline.as_nanos(), wheel);
        if writes {
            self.program_runs();
        }
    }

    /// Lets go what is no TCP, and what else is due of that interface.
    pub(super) fn send(&mut self, number: u32) {
        self.release(number);
        self.release_due(self.connections[number as usize].owner);
    }

    /// The queue of an interface lets go what is due of all connections, and sets its timer (Linux: `fq_dequeue`).
    #[inline]
    pub(super) fn release_due(&mut self, interface: usize) {
        while let Some(number) = self.interfaces[interface].take_due(self.now_ns) {
            self.read_next_due_ahead(self.interfaces[interface].upcoming());
            self.connections[number as usize].is_delayed = false;
            if self.release(number) {
                self.woken.push_back(number);
            }
        }
        let slack_ns = self.interface.slack_ns;
        let (queue, departs_ns) = (&self.interfaces[interface], &mut self.departs_ns[interface]);
        if let (Some(wakes_ns), Some(leader)) =
            (queue.schedule(*departs_ns, slack_ns), queue.leader)
        {
            *departs_ns = wakes_ns;
            self.agenda.arm(leader, Cause::Departure, wakes_ns + slack_ns + TIMER_LATENCY_NS);
        }
    }

    /// The queue of a sender's interface lets go what is due of this connection. Returns whether the sender waits for that.
    #[inline]
    fn release(&mut self, number: u32) -> bool {
        let mut more = false;
        let mut leaving = std::mem::take(&mut self.leaving);
        let mut passing = leaving.drain(..);
        // Most packets pass the queue without waiting.
        loop {
            let connection = &mut self.connections[number as usize];
            let waits = !connection.device.is_empty();
            let departure = if waits {
                self.waiting.first(&connection.device).map(|outgoing| outgoing.departure)
            } else {
                passing.as_slice().first().map(|outgoing| outgoing.departure)
            };
            let Some(departure) = departure else { break };
            // Only fq honours departure times.
            if self.interface.pacing == Pacing::ByQueue && departure.as_nanos() > self.now_ns {
                break;
            }
            let outgoing =
                if waits { self.waiting.pop(&mut connection.device) } else { passing.next() };
            let Some(Outgoing { body, .. }) = outgoing else { break };
            connection.line_bytes += u64::from(body.wire_bytes());
            if let Some(payload) = body.data_bytes() {
                more |= connection.sender.on_departure(payload);
            }
            let ((owner, mut flow), direction) =
                (connection.route.identity, connection.route.direction);
            if !owner.is_hidden() {
                flow |= (connection.sender.rehashes() as u32) << ADDRESS_BITS;
            }
            self.forward(direction, Packet { owner, flow, body });
        }
        let connection = &mut self.connections[number as usize];
        for outgoing in passing.by_ref() {
            self.waiting.push(&mut connection.device, outgoing);
        }
        drop(passing);
        self.leaving = leaving;
        if !connection.is_delayed
            && let Some(front) = self.waiting.first(&connection.device)
        {
            connection.is_delayed = true;
            self.interfaces[connection.owner].delay(front.departure.as_nanos(), number);
        }
        more
    }

    /// A packet leaves its sender for the network.
    #[inline]
    fn forward(&mut self, direction: Direction, packet: Packet) {
        let chance = self.interface.loss;
        let is_lossy = !chance.is_none() && !packet.owner.is_accepted();
        if unlikely(is_lossy) && chance.strikes(self.around.random.next_u32()) {
            packet.body.discard(&mut self.around.options);
            return;
        }
        if self.scenario.sender.gso || !packet.is_gso() {
            self.enter(direction, packet);
        } else {
            packet.segments(&mut |segment| self.enter(direction, segment));
        }
    }

    #[inline]
    fn enter(&mut self, direction: Direction, packet: Packet) {
        let now = self.now();
        self.around.sets_out(now, direction, &packet);
        self.network.path(direction).enter(now, packet, &mut self.around);
        self.take_arrivals(direction);
    }
}
