//! Packets that leave a sender: through the queue of its interface into the network.

use dualq_qdisc::Random;
use dualq_scenario::Direction;
use dualq_units::hint::unlikely;

use crate::engine::{Cause, Simulation, TIMER_LATENCY_NS};
use crate::host::Connection;
use crate::packet::{Body, Outgoing, Packet};

impl Simulation<'_> {
    /// Lets a sender send, and its interface's queue let go what is due. If others wait for what has left to be looked at, they and who waits by this go on when
    /// all has arrived that comes at this instant (Linux: `TASKLET_SOFTIRQ`, behind `NET_RX_SOFTIRQ`).
    #[inline]
    pub(super) fn drive(&mut self, number: u32) {
        let others_wait = !self.woken.is_empty();
        self.drive_one(number);
        if !others_wait {
            self.drive_woken();
        }
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
        if !self.woken.is_empty() {
            self.drive_all_woken();
        }
    }

    #[inline(never)]
    fn drive_all_woken(&mut self) {
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
    #[inline(always)]
    pub(super) fn release_due(&mut self, interface: usize) {
        if self.interfaces[interface].is_due(self.now_ns) {
            self.release_delayed(interface);
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

    /// What is due of those that the queue of an interface holds back.
    #[inline(never)]
    fn release_delayed(&mut self, interface: usize) {
        while let Some(number) = self.interfaces[interface].take_due(self.now_ns) {
            self.read_next_due_ahead(self.interfaces[interface].upcoming());
            self.connections[number as usize].is_delayed = false;
            if unlikely(self.departs_behind) {
                self.hold_memory(number);
            }
            if self.release_waiting(number) {
                self.woken.push_back(number);
            }
        }
    }

    /// The queue of a sender's interface lets go what is due of this connection, and takes in the rest of what leaves the sender just now. Returns whether the
    /// sender waits for that.
    #[inline]
    fn release(&mut self, number: u32) -> bool {
        let mut more = false;
        let mut passes = self.connections[number as usize].device.is_empty();
        if !passes {
            more = self.release_behind_others(number);
            passes = self.connections[number as usize].device.is_empty();
        }
        let mut leaving = std::mem::take(&mut self.leaving);
        let mut passing = leaving.drain(..);
        // Most packets pass the queue without waiting.
        while passes
            && let Some(Outgoing { body, departure }) = passing.as_slice().first()
            && !self.interface.holds(*departure, self.now_ns)
        {
            let connection = &mut self.connections[number as usize];
            // It is looked at where it lies: what is looked at on its way is moved piece by piece.
            more |= connection.departs(body);
            let (direction, owner, flow) = connection.address();
            let cuts = !self.scenario.sender.gso && body.segments() > 1;
            if let Some(Outgoing { body, .. }) = passing.next() {
                self.forward(direction, Packet { owner, flow, body }, cuts);
            }
        }
        if passing.len() > 0 {
            let connection = &mut self.connections[number as usize];
            for outgoing in passing.by_ref() {
                self.waiting.push(&mut connection.device, outgoing);
            }
            self.delay(number);
        }
        drop(passing);
        self.leaving = leaving;
        more
    }

    /// The same where something waits already, which few packets find.
    #[inline(never)]
    fn release_behind_others(&mut self, number: u32) -> bool {
        self.release_waiting(number)
    }

    /// The same of what waits in that queue.
    #[inline(always)]
    fn release_waiting(&mut self, number: u32) -> bool {
        let mut more = false;
        loop {
            let connection = &mut self.connections[number as usize];
            let Some(Outgoing { body, departure }) = self.waiting.first(&connection.device) else {
                break;
            };
            if self.interface.holds(*departure, self.now_ns) {
                break;
            }
            more |= connection.departs(body);
            let (direction, owner, flow) = connection.address();
            let cuts = !self.scenario.sender.gso && body.segments() > 1;
            if let Some(Outgoing { body, .. }) = self.waiting.pop(&mut connection.device) {
                self.forward(direction, Packet { owner, flow, body }, cuts);
            }
        }
        self.delay(number);
        more
    }

    /// What a connection has waiting waits for the timer of the interface, if it does not yet.
    #[inline(always)]
    fn delay(&mut self, number: u32) {
        let connection = &mut self.connections[number as usize];
        if !connection.is_delayed
            && let Some(front) = self.waiting.first(&connection.device)
        {
            connection.is_delayed = true;
            self.interfaces[connection.owner].delay(front.departure.as_nanos(), number);
        }
    }

    /// A packet leaves its sender for the network, in its segments if the sender `cuts` it.
    #[inline(always)]
    fn forward(&mut self, direction: Direction, packet: Packet, cuts: bool) {
        let chance = self.interface.loss;
        let is_lossy = !chance.is_none() && !packet.owner.is_accepted();
        if unlikely(is_lossy) && chance.strikes(self.around.random.next_u32()) {
            packet.body.discard(&mut self.around.options);
        } else if cuts {
            self.enter_cut(direction, packet);
        } else {
            self.enter(direction, packet);
        }
    }

    /// The same of an aggregate that is cut: by itself, so that others need not be in pieces.
    #[inline(never)]
    fn enter_cut(&mut self, direction: Direction, packet: Packet) {
        packet.segments(&mut |segment| self.enter(direction, segment));
    }

    #[inline]
    fn enter(&mut self, direction: Direction, packet: Packet) {
        let now = self.now();
        self.around.sets_out(now, direction, &packet);
        self.network.path(direction).enter(now, packet, &mut self.around);
        self.take_arrivals(direction);
    }
}
