//! Packets that reach a host.

use std::collections::VecDeque;

use dualq_scenario::{Direction, Kind};
use dualq_tcp::{Ack, Control, Data, Receiver};
use dualq_units::hint::{cold_path, unlikely};
use dualq_units::{Ecn, Instant};

use crate::engine::{Cause, Meanwhile, OPENED_NS, Simulation, TIMER_LATENCY_NS};
use crate::host::{Connection, Route, Written};
use crate::network::back;
use crate::other_way::OtherWay;
use crate::packet::{Arrival, Body, Datagram, Echo, Packet, TooLong};
use crate::program::Program;

impl Simulation<'_> {
    /// Hands over what comes out of a path now: most often nothing, which is seen before anything is made ready for more.
    #[inline(always)]
    pub(super) fn take_arrivals(&mut self, direction: Direction) {
        if !self.network.path(direction).is_quiet() {
            self.hand_over(direction);
        }
    }

    /// Programs that read at once do, for all has arrived that comes at this instant.
    #[inline]
    pub(super) fn read_arrived(&mut self) {
        while let Some(&number) = self.arrived.get(self.had_turn) {
            self.had_turn += 1;
            if self.had_turn == self.arrived.len() {
                self.arrived.clear();
                self.had_turn = 0;
            }
            let (receiver, _, now, mut answer) = self.receiver(number);
            receiver.read_arrived(now, &mut answer);
            drop(answer);
            self.has_answered(number);
        }
    }

    /// Hands over packets as long as there are any.
    #[inline(never)]
    fn hand_over(&mut self, direction: Direction) {
        let now = self.now();
        let mut out = None;
        loop {
            self.network.path(direction).put_out(now, &mut out, &mut self.around);
            let Some(packet) = &mut out else { return };
            match direction {
                Direction::Down => self.read_receivers_ahead(),
                Direction::Up => self.read_senders_ahead(),
            }
            if self.holds_arrivals {
                self.held.extend(out.take().map(|packet| (direction, packet)));
            } else {
                self.arrive(direction, packet);
            }
            if self.network.path(direction).is_quiet() {
                return;
            }
        }
    }

    /// A packet has passed the network.
    #[inline(always)]
    fn arrive(&mut self, direction: Direction, packet: &mut Packet) {
        let number = packet.owner.number();
        self.around.comes_in(self.now(), direction, packet);
        if unlikely(packet.body.is_spoilt()) {
            // Its checksum is wrong, and nobody is told.
            packet.body.open(&mut self.around.options);
            return;
        }
        // It is looked at where it is: data and acknowledgements are large to move.
        match &packet.body.open(&mut self.around.options) {
            Arrival::Data(data) => match self.connections[number as usize].route.counterpart {
                None => self.take_data(number, data),
                Some(other) => self.take_both(number, other, data, packet.body.other_way()),
            },
            Arrival::Ack(ack) => self.take_ack(number, ack),
            seldom => {
                cold_path();
                self.take_seldom(number, seldom);
            }
        }
    }

    /// The same, of what is neither data nor their acknowledgement.
    #[inline(never)]
    fn take_seldom(&mut self, number: u32, arrival: &Arrival) {
        match arrival {
            Arrival::Data(_) | Arrival::Ack(_) => {}
            Arrival::Echo(echo) => self.take_echo(number, *echo),
            Arrival::Datagram(datagram) => self.take_datagram(number, *datagram),
            &Arrival::TooLong(TooLong { mtu, .. }) => {
                let now = self.now();
                let connection = &mut self.connections[number as usize];
                let known = &mut self.path_mtus[connection.owner];
                *known = mtu.min(*known);
                connection.sender.reduce_mtu(now, mtu);
                self.drive(number);
            }
        }
    }

    /// What comes out of a path now, of the element at `place`, arrives behind what runs out with it, up to `hard_ns`.
    #[cold]
    pub(super) fn arrive_behind(&mut self, direction: Direction, place: usize, hard_ns: u64) {
        let held = std::mem::replace(&mut self.holds_arrivals, true);
        self.take_arrivals(direction);
        self.holds_arrivals = held;
        let mut arriving = if held { VecDeque::new() } else { std::mem::take(&mut self.held) };
        // What passes a router before is behind what leaves, which is one router away too.
        self.departs_behind = self.network.is_beside_senders(direction, place);
        self.wake_early(hard_ns, Meanwhile { arrive: true, all: true, reader: None });
        self.departs_behind = false;
        let departed = !self.writers.is_empty();
        while let Some((direction, mut packet)) = arriving.pop_front() {
            self.arrives_before = departed || !arriving.is_empty();
            self.arrive_held(direction, &mut packet);
        }
        self.arrives_before = false;
        // Its room serves the next ones.
        if self.held.is_empty() {
            self.held = arriving;
        }
    }

    /// What was held arrives.
    #[cold]
    #[inline(never)]
    pub(super) fn let_arrive(&mut self) {
        while let Some((direction, mut packet)) = self.held.pop_front() {
            self.arrive_held(direction, &mut packet);
        }
    }

    /// What was held arrives, out of the way of what was not.
    #[inline(never)]
    fn arrive_held(&mut self, direction: Direction, packet: &mut Packet) {
        self.arrive(direction, packet);
    }

    /// Data of a connection with data both ways: what they acknowledge comes first (Linux: `tcp_rcv_established`).
    #[cold]
    fn take_both(&mut self, number: u32, counterpart: u32, data: &Data, other_way: OtherWay) {
        let now = self.now();
        let scale = self.connections[counterpart as usize].receiver.window_scale();
        let sender = &self.connections[counterpart as usize].sender;
        if sender.is_established() && !data.has(Control::SYN) {
            let ack = other_way.ack(data, sender.acknowledged(), scale);
            self.hear(counterpart, &ack);
        }
        self.take_data(number, data);
        let connections = &mut self.connections;
        if let Ok([this, other]) =
            connections.get_disjoint_mut([number, counterpart].map(|it| it as usize))
        {
            other.sender.accept(now, &this.receiver, other_way.window(scale));
            this.receiver.follow(&other.sender);
        }
        self.drive(counterpart);
        self.say(number);
    }

    /// Acknowledgements leave by themselves that did not with data.
    #[cold]
    fn say(&mut self, number: u32) {
        let mut unsaid = self.around.unsaid.extract_if(.., |(of, _)| *of == number).peekable();
        if unsaid.peek().is_none() {
            return;
        }
        let acks: Vec<Ack> = unsaid.map(|(_, ack)| ack).collect();
        let (now, mut sent) = (self.now(), 0);
        let Route { identity: (owner, mut flow), direction, counterpart } =
            self.connections[number as usize].route;
        if let Some(counterpart) = counterpart {
            let end = &mut self.connections[counterpart as usize];
            end.sender.acknowledges(now);
            sent = end.sender.sent();
            flow = end.rehashed(owner, flow);
        }
        let back = back(direction);
        for ack in acks {
            let body = Body::ack(&ack, &mut self.around.options).of_an_end_that_sent(sent);
            let packet = Packet { owner, flow, body };
            self.around.sets_out(now, back, &packet);
            self.network.path(back).enter(now, packet, &mut self.around);
        }
        self.take_arrivals(back);
    }

    /// Data reach their receiver.
    #[inline(always)]
    fn take_data(&mut self, number: u32, data: &Data) {
        let (receiver, written, now, mut answer) = self.receiver(number);
        receiver.on_data_in(now, data, written.pieces(data), &mut answer);
        drop(answer);
        if receiver.reads_at_once() {
            if self.arrived.last() != Some(&number) {
                self.arrived.push(number);
            }
            return;
        }
        self.has_answered(number);
    }

    /// A receiver's timer has run out, or its program wakes a little earlier than it may.
    pub(super) fn receiver_is_due(&mut self, number: u32) {
        let now = self.now();
        let receiver = &mut self.connections[number as usize].receiver;
        if unlikely(receiver.is_reading() && self.busy_ns > self.now_ns) {
            // One after the other.
            receiver.wait_for_turn(Instant::from_nanos(self.busy_ns));
            return self.arm_receiver(number);
        }
        let is_woken =
            receiver.next_timer() > now || (receiver.is_next_to_read() && receiver.has_read_all());
        if unlikely(is_woken) {
            self.begin_read(number);
            return self.arm_receiver(number);
        }
        let (receiver, _, now, mut answer) = self.receiver(number);
        receiver.on_timer(now, &mut answer);
        drop(answer);
        self.has_answered(number);
        let receiver = &self.connections[number as usize].receiver;
        if unlikely(receiver.is_reading()) {
            self.busy_ns = receiver.next_timer().as_nanos();
        }
    }

    /// A connection's receiver, where what was written for it lies, and what sends its acknowledgements: into the path back, or to wait for data to leave
    /// with if there are data both ways.
    #[inline(always)]
    fn receiver(&mut self, number: u32) -> (&mut Receiver, &mut Written, Instant, impl FnMut(Ack)) {
        let now = self.now();
        let Connection { route, receiver, written, .. } = &mut self.connections[number as usize];
        let (network, around) = (&mut self.network, &mut self.around);
        let answer = move |ack: Ack| {
            let Route { identity: (owner, flow), direction, counterpart } = *route;
            if unlikely(counterpart.is_some()) {
                return around.unsaid.push((owner.number(), ack));
            }
            let back = back(direction);
            let packet = Packet { owner, flow, body: Body::ack(&ack, &mut around.options) };
            around.sets_out(now, back, &packet);
            network.path(back).enter(now, packet, around);
        };
        (receiver, written, now, answer)
    }

    /// A receiver has sent its acknowledgements.
    #[inline(always)]
    fn has_answered(&mut self, number: u32) {
        let Connection { route, receiver, .. } = &self.connections[number as usize];
        let (back, counterpart) = (back(route.direction), route.counterpart);
        let has_read = receiver.last_read() >= Some(Instant::from_nanos(self.now_ns));
        if unlikely(has_read && receiver.reads_seldom()) {
            self.falls_asleep(number);
            self.arm_receiver(number);
        } else {
            let (deadline, wheel) = (receiver.next_timer(), receiver.wheel_timer());
            self.agenda.arm_coarse(number, Cause::Receiver, deadline.as_nanos(), wheel);
        }
        if has_read {
            self.program_runs();
        }
        self.take_arrivals(back);
        if let Some(counterpart) = counterpart {
            self.act_on_it(number, counterpart);
        }
    }

    /// Who reads acts when it has read.
    #[cold]
    fn act_on_it(&mut self, number: u32, counterpart: u32) {
        if !self.connections[number as usize].receiver.is_reading() {
            self.converse(number, counterpart);
            self.say(number);
        }
    }

    /// The program sleeps until it reads again.
    #[inline(never)]
    fn falls_asleep(&mut self, number: u32) {
        let receiver = &self.connections[number as usize].receiver;
        if let Some(wakes) = receiver.pauses_until() {
            self.busy_ns = receiver.last_read().map_or(0, Instant::as_nanos);
            self.wakes_ns = self.wakes_ns.max(wakes.as_nanos());
            self.agenda.sleep(number, wakes.as_nanos());
        }
    }

    /// Sets the timer of the receiving side.
    #[inline(always)]
    pub(super) fn arm_receiver(&mut self, number: u32) {
        let receiver = &self.connections[number as usize].receiver;
        let (deadline, wheel) = (receiver.next_timer(), receiver.wheel_timer());
        self.agenda.arm_coarse(number, Cause::Receiver, deadline.as_nanos(), wheel);
    }

    /// A question, or part of an answer, has come: the program there acts on the connection that goes the other way.
    #[cold]
    fn converse(&mut self, number: u32, counterpart: u32) {
        let moment = self.moment();
        let pair = [number, counterpart].map(|it| it as usize);
        let Ok([this, other]) = self.connections.get_disjoint_mut(pair) else { return };
        match &mut other.program {
            // Who took the connection on asks when those have written whose connections opened before.
            Program::Ask(ask) if !ask.has_begun() => {
                if this.receiver.is_established()
                    && !self.late.iter().any(|&(_, late)| late == counterpart)
                {
                    self.late.push_back((self.now_ns + OPENED_NS, counterpart));
                }
            }
            Program::Ask(ask) => {
                if let Some(next_ns) = ask.hear(moment, &this.receiver) {
                    self.agenda.arm(counterpart, Cause::Program, next_ns);
                }
            }
            Program::Answer(answer) => {
                answer.hear(this.receiver.received(), &mut other.sender);
                self.drive(counterpart);
            }
            Program::Bulk(_) | Program::Ping(_) | Program::Udp(_) => {}
        }
    }

    /// An acknowledgement reaches its sender.
    #[inline(always)]
    fn take_ack(&mut self, number: u32, ack: &Ack) {
        match self.connections[number as usize].route.counterpart {
            None => self.hear(number, ack),
            Some(counterpart) => self.hear_both(number, counterpart, ack),
        }
        if self.more_arrives()
            || self.woke_ns == Some(self.now_ns)
            || (!self.writers.is_empty() && self.writers.contains(&number))
        {
            return self.drive_interrupted(number);
        }
        self.drive(number);
    }

    /// Whether something else is due at this instant in the network, or runs out with what is.
    #[inline]
    fn more_arrives(&self) -> bool {
        let is_due = |direction| {
            let (due_ns, place) = self.network.next_start(direction);
            due_ns <= self.now_ns
                || (due_ns == self.now_ns + TIMER_LATENCY_NS
                    && self.network.ripe_ns(direction, (due_ns, place), self.now_ns) < due_ns)
        };
        self.arrives_before || is_due(Direction::Up) || is_due(Direction::Down)
    }

    /// What leaves the queue of a sender's interface now is looked at behind what arrives, and holds its memory meanwhile.
    #[cold]
    pub(super) fn hold_memory(&mut self, number: u32) {
        let connection = &mut self.connections[number as usize];
        let segments = match self.waiting.first(&connection.device) {
            Some(front) if !self.scenario.sender.gso => front.body.segments(),
            _ => 1,
        };
        connection.sender.hold(u64::from(segments).saturating_sub(1));
        if !self.writers.contains(&number) {
            self.writers.push(number);
        }
    }

    /// A sender acts on what it was told. Its program writes when all has arrived, and what its small queue holds back goes on then (Linux: `TASKLET_SOFTIRQ`,
    /// behind `NET_RX_SOFTIRQ`).
    #[inline(never)]
    fn drive_interrupted(&mut self, number: u32) {
        self.connections[number as usize].sender.interrupt();
        self.drive(number);
        if !self.writers.contains(&number) {
            self.writers.push(number);
        }
    }

    /// All has arrived that comes at this instant, and programs write that were woken: before what small queues held back goes on, but if the softirq that wakes
    /// them runs while another program does (Linux: `handle_softirqs`, `need_resched`).
    #[cold]
    pub(super) fn write_on(&mut self) {
        let writes_first = self.woke_ns != Some(self.now_ns);
        let mut writers = std::mem::take(&mut self.writers);
        for number in writers.drain(..) {
            let waits = self.connections[number as usize].sender.all_has_arrived(writes_first);
            for _ in 0..waits {
                self.drive(number);
            }
        }
        if self.writers.is_empty() {
            self.writers = writers;
        }
    }

    /// The receiver of the same end hears of it too.
    #[cold]
    fn hear_both(&mut self, number: u32, counterpart: u32, ack: &Ack) {
        self.hear(number, ack);
        let now = self.now();
        let pair = [number, counterpart].map(|number| number as usize);
        if let Ok([this, other]) = self.connections.get_disjoint_mut(pair) {
            other.receiver.connect(now, &this.sender);
            other.receiver.follow(&this.sender);
            other.receiver.hear(ack);
        }
    }

    /// A sender learns what it is told.
    #[inline(always)]
    fn hear(&mut self, number: u32, ack: &Ack) {
        let (now, moment) = (self.now(), self.moment());
        if let Some(watcher) = &mut self.around.watcher {
            cold_path();
            let connection = &self.connections[number as usize];
            let direction = back(connection.route.direction);
            // Of answers, data go down by the thousand that acknowledge the same question.
            let is_new = ack.ack > connection.sender.acknowledged();
            if is_new || !ack.has(Control::WITH_DATA) || !direction.is_down() {
                watcher.acknowledged(now, (number, direction), Kind::Ack, ack);
            }
        }
        let connection = &mut self.connections[number as usize];
        self.around.record.take_samples(connection);
        if unlikely(ack.has(Control::COOKIE)) {
            self.know_cookies[connection.owner] = true;
        }
        let opens = ack.has(Control::SYN) && !connection.sender.is_established();
        connection.sender.on_ack(now, ack);
        if unlikely(opens) && self.connections[number as usize].sender.is_established() {
            self.opens(number);
        }
        let connection = &mut self.connections[number as usize];
        if let Some(next_ns) = connection.program.acknowledged(moment, &connection.sender) {
            self.agenda.arm(number, Cause::Program, next_ns);
            self.program_runs();
        }
        self.look_at_sender(number);
    }

    /// A program whose connection has opened writes a little later, and after those whose connections opened before: meanwhile the kernel
    /// acknowledges what has come for others too.
    #[cold]
    fn opens(&mut self, number: u32) {
        let (now, connection) = (self.now(), &mut self.connections[number as usize]);
        // What others of the host have learnt since its SYN left is known from the next packet on, which has no data (Linux: `fnhe_pmtu`).
        connection.sender.reduce_mtu(now, self.path_mtus[connection.owner]);
        connection.sender.write_later();
        self.late.push_back((self.now_ns + OPENED_NS, number));
    }

    /// Logs tell how a connection is after what its sender learnt, and before it acts on that.
    #[inline]
    pub(super) fn look_at_sender(&mut self, number: u32) {
        if let Some(watcher) = &mut self.around.watcher {
            cold_path();
            let now = Instant::from_nanos(self.now_ns);
            watcher.look(now, number, &self.connections[number as usize]);
        }
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

    /// Senders hear from routers that packets were too long: from those that are near at once, but for who is writing, who hears of it behind that
    /// (Linux: `TCP_MTU_REDUCED_DEFERRED`, `tcp_release_cb`).
    #[cold]
    pub(super) fn tell_too_long(&mut self) {
        let now = self.now();
        for told in std::mem::take(&mut self.around.too_long) {
            let (connection, place, message) = told;
            let Connection { route, sender, .. } = &self.connections[connection as usize];
            let Route { identity: (owner, flow), direction, .. } = *route;
            let is_near = self.network.is_near(direction, place);
            if is_near && sender.is_in_first_write() {
                self.around.too_long.push(told);
                continue;
            }
            let back = back(direction);
            let mut packet = Packet { owner, flow, body: Body::too_long(message) };
            self.around.sets_out(now, back, &packet);
            if is_near {
                self.arrive_held(back, &mut packet);
            } else {
                self.network.path(back).enter(now, packet, &mut self.around);
                self.take_arrivals(back);
            }
        }
    }

    /// An echo request is answered; of a reply the program is told.
    fn take_echo(&mut self, number: u32, echo: Echo) {
        let (now, moment) = (self.now(), self.moment());
        let connection = &mut self.connections[number as usize];
        let (owner, flow) = connection.route.identity;
        if echo.is_reply {
            connection.program.replied(moment, echo.sent_ns);
            self.program_runs();
            if let Some(watcher) = &mut self.around.watcher {
                let direction = back(self.connections[number as usize].route.direction);
                let ack = Ack { ack: echo.sent_ns, ..Ack::default() };
                watcher.acknowledged(now, (number, direction), Kind::Echo, &ack);
            }
            return;
        }
        let back = back(connection.route.direction);
        let body = Body::echo(Echo { is_reply: true, ..echo });
        let packet = Packet { owner, flow, body };
        self.around.sets_out(now, back, &packet);
        self.network.path(back).enter(now, packet, &mut self.around);
        self.take_arrivals(back);
    }
}
