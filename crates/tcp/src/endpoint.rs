//! One end of a connection with data both ways.

use dualq_units::Instant;

use crate::control::Control;
use crate::packet::{Ack, Data};
use crate::receiver::{Receiver, ReceiverConfig};
use crate::sender::{Sender, SenderConfig};

/// A packet between two [`Endpoint`]s: a SYN has data alone, its answer and what only acknowledges an [`Ack`] alone, all others both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// A SYN, data, or a segment without any.
    pub data: Option<Data>,
    /// What it says of the data of the other end; of its flags [`Data::flags`] has all.
    pub ack: Option<Ack>,
    /// When it may leave.
    pub departure: Instant,
}

/// One end of a connection: it sends and receives, and what it sends acknowledges what it has received. Who drives it hands over what
/// arrives, calls [`on_timer`](Self::on_timer) when [`next_timer`](Self::next_timer) has come, and tells what has
/// [left](Self::on_departure) the queue of its interface.
///
/// One end [connects](Self::connect), the other [listens](Self::listen).
#[derive(Debug)]
pub struct Endpoint {
    sender: Sender,
    receiver: Receiver,
    /// Acknowledgements that leave with data, if there are any to send.
    waiting: Vec<Ack>,
}

impl Endpoint {
    /// The end that opens the connection.
    #[must_use]
    pub fn connect(sender: SenderConfig, receiver: ReceiverConfig) -> Self {
        let (sender, receiver) = (Sender::new(sender), Receiver::new(receiver));
        Self { sender, receiver, waiting: Vec::new() }
    }

    /// The end that waits for the other to open it.
    #[must_use]
    pub fn listen(sender: SenderConfig, receiver: ReceiverConfig) -> Self {
        let mut endpoint = Self::connect(sender, receiver);
        endpoint.sender.listen();
        endpoint
    }

    /// What it sends, and how.
    #[must_use]
    pub const fn sender(&self) -> &Sender {
        &self.sender
    }

    /// What it has received.
    #[must_use]
    pub const fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    /// The program has so many bytes more to send. They leave with the next [`transmit`](Self::transmit).
    pub fn write(&mut self, bytes: u64) {
        self.sender.write(bytes);
    }

    /// The program sends nothing more; it may go on to receive.
    pub fn close(&mut self) {
        self.sender.close();
    }

    /// Whether both streams have ended, and all of this end's has arrived at the other.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.receiver.is_closed() && self.sender.is_closed()
    }

    /// When [`on_timer`](Self::on_timer) is to be called next.
    #[must_use]
    pub fn next_timer(&self) -> Instant {
        self.sender.next_timer().min(self.receiver.next_timer())
    }

    /// A packet arrives: what it acknowledges first, then its data (Linux: `tcp_rcv_established`).
    pub fn on_packet(&mut self, now: Instant, packet: &Packet, out: &mut impl FnMut(Packet)) {
        let Self { sender, receiver, waiting } = self;
        if let Some(ack) = &packet.ack {
            sender.on_ack(now, ack);
            receiver.connect(now, sender);
            if packet.data.is_none() {
                receiver.hear(ack);
            }
        }
        if let Some(data) = &packet.data {
            receiver.on_data(now, data, &mut |ack| waiting.push(ack));
            if let Some(ack) = &packet.ack {
                sender.accept(now, receiver, ack.window);
            }
        }
        receiver.follow(sender);
        self.transmit(now, out);
    }

    /// A deadline of [`next_timer`](Self::next_timer) has come.
    pub fn on_timer(&mut self, now: Instant, out: &mut impl FnMut(Packet)) {
        let Self { sender, receiver, waiting } = self;
        if receiver.next_timer() <= now {
            receiver.on_timer(now, &mut |ack| waiting.push(ack));
        }
        if sender.next_timer() <= now {
            sender.on_timer(now);
        }
        self.transmit(now, out);
    }

    /// Data of so many places in the stream have left the queue of this end's interface. Returns whether more waited for that: then
    /// [`transmit`](Self::transmit) is to be called.
    pub fn on_departure(&mut self, payload: u32) -> bool {
        self.sender.on_departure(payload)
    }

    /// Sends what may be sent, and what waits to be acknowledged.
    pub fn transmit(&mut self, now: Instant, out: &mut impl FnMut(Packet)) {
        let Self { sender, receiver, waiting } = self;
        sender.transmit(now, &mut |sent| {
            let (mut data, departure) = (sent.data, sent.departure);
            if data.has(Control::SYN) {
                return out(Packet { data: Some(data), ack: None, departure });
            }
            let ack = receiver.ride(now);
            waiting.retain(Ack::is_said_alone);
            // The third packet of a handshake has its own.
            if data.payload > 0 {
                data.flags = data.flags.with(ack.flags);
            }
            let control = ack.control.with(Control::WITH_DATA.when(data.payload > 0));
            let ack = Ack { flags: data.flags, ecn: data.ecn, control, ..ack };
            out(Packet { data: Some(data), ack: Some(ack), departure });
        });
        for ack in waiting.drain(..) {
            sender.acknowledges(now);
            out(Packet { data: None, ack: Some(ack), departure: now });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::time::Duration;

    use dualq_units::Ecn;

    use super::*;
    use crate::cc::Algorithm;
    use crate::ecn::EcnStyle;

    const ONE_WAY: Duration = Duration::from_millis(10);

    /// Both ends, and what is on its way to each.
    struct Pair {
        ends: [Endpoint; 2],
        on_the_way: [VecDeque<(Instant, Packet)>; 2],
        now: Instant,
        /// Each that left, with its end.
        sent: Vec<(usize, Packet)>,
    }

    impl Pair {
        fn new(configs: [(SenderConfig, ReceiverConfig); 2]) -> Self {
            let [(sender, receiver), (other_sender, other_receiver)] = configs;
            let ends = [
                Endpoint::connect(sender, receiver),
                Endpoint::listen(other_sender, other_receiver),
            ];
            let on_the_way = [VecDeque::new(), VecDeque::new()];
            Self { ends, on_the_way, now: Instant::ZERO, sent: Vec::new() }
        }

        fn plain() -> Self {
            Self::new([(SenderConfig::default(), ReceiverConfig::default()); 2])
        }

        /// Sends what has left an end; of the packets of both, every `lost`th gets lost.
        fn send(&mut self, end: usize, mut packets: Vec<Packet>, lost: usize) {
            loop {
                let mut more = false;
                for packet in packets.drain(..) {
                    if let Some(data) = &packet.data {
                        more |= self.ends[end].on_departure(data.payload);
                    }
                    self.sent.push((end, packet));
                    if lost == 0 || !self.sent.len().is_multiple_of(lost) {
                        self.on_the_way[1 - end].push_back((self.now + ONE_WAY, packet));
                    }
                }
                if !more {
                    return;
                }
                self.ends[end].transmit(self.now, &mut |packet| packets.push(packet));
            }
        }

        /// Lets happen what happens until both ends are closed or nothing does.
        fn run(&mut self, lost: usize) {
            for end in 0..2 {
                let mut packets = Vec::new();
                self.ends[end].transmit(self.now, &mut |packet| packets.push(packet));
                self.send(end, packets, lost);
            }
            while !self.ends.iter().all(Endpoint::is_closed) {
                let arrival = |end: usize| self.on_the_way[end].front().map(|(at, _)| *at);
                let arrivals = [0, 1].map(|end| arrival(end).unwrap_or(Instant::NEVER));
                let timers = [0, 1].map(|end| self.ends[end].next_timer());
                let next = arrivals.into_iter().chain(timers).min().unwrap();
                if next == Instant::NEVER {
                    return;
                }
                self.now = next;
                for end in 0..2 {
                    let mut packets = Vec::new();
                    if arrivals[end] == self.now {
                        let (_, packet) = self.on_the_way[end].pop_front().unwrap();
                        self.ends[end].on_packet(self.now, &packet, &mut |it| packets.push(it));
                    } else if timers[end] == self.now {
                        self.ends[end].on_timer(self.now, &mut |it| packets.push(it));
                    }
                    self.send(end, packets, lost);
                }
            }
        }

        fn received(&self) -> [u64; 2] {
            [0, 1].map(|end| self.ends[end].receiver().received())
        }
    }

    #[test]
    fn data_of_both_ends_arrive_and_both_close() {
        for (lost, bytes) in
            [(0, [1_000_000, 700_001]), (40, [1_000_000, 700_001]), (7, [0, 9_000])]
        {
            let mut pair = Pair::plain();
            for (end, bytes) in pair.ends.iter_mut().zip(bytes) {
                end.write(bytes);
                end.close();
                // Too late.
                end.write(1);
            }
            pair.run(lost);
            assert_eq!(pair.received(), [bytes[1], bytes[0]], "{lost}");
            assert!(pair.ends.iter().all(Endpoint::is_closed), "{lost}");
            for end in &pair.ends {
                assert_eq!(end.sender().acknowledged(), end.sender().sent());
            }
            let fins = |end: usize| {
                let of_it = pair.sent.iter().filter(|(from, _)| *from == end);
                of_it.filter(|(_, it)| it.data.is_some_and(|data| data.has(Control::FIN))).count()
            };
            assert!(fins(0) >= 1 && fins(1) >= 1);
            if lost == 0 {
                assert_eq!([fins(0), fins(1)], [1, 1]);
            }
        }
    }

    /// Linux: `tcp_event_ack_sent`.
    #[test]
    fn data_acknowledge_what_has_come() {
        let mut pair = Pair::plain();
        for end in &mut pair.ends {
            end.write(1_000_000);
            end.close();
        }
        pair.run(0);
        for end in 0..2 {
            let mut said = (0, 0);
            for packet in pair.sent.iter().filter(|(from, _)| *from == end).map(|(_, it)| it) {
                let Some(ack) = packet.ack else { continue };
                let says = (ack.ack, ack.ack + ack.window);
                assert!(packet.data.is_some() || says > said, "{says:?} after {said:?}");
                said = says;
            }
            assert_eq!(said.0, 1_000_001);
        }
        // One SYN, its answer, and what acknowledges that.
        let syns = pair
            .sent
            .iter()
            .filter(|(_, it)| it.data.is_some_and(|it| it.has(Control::SYN)))
            .count();
        let answers = pair
            .sent
            .iter()
            .filter(|(_, it)| it.ack.is_some_and(|it| it.has(Control::SYN)))
            .count();
        assert_eq!((syns, answers), (1, 1));
    }

    /// A question and its answer take one round trip, and the acknowledgement of the question none of its own.
    #[test]
    fn an_answer_acknowledges_its_question() {
        let mut pair = Pair::plain();
        pair.ends[0].write(100);
        pair.run(0);
        let asked = pair.now;
        assert_eq!(pair.received(), [0, 100]);
        pair.sent.clear();
        let mut packets = Vec::new();
        pair.ends[1].write(200);
        pair.ends[1].transmit(asked, &mut |packet| packets.push(packet));
        assert_eq!(packets.len(), 1);
        let (data, ack) = (packets[0].data.unwrap(), packets[0].ack.unwrap());
        assert_eq!((data.payload, ack.ack, ack.has(Control::WITH_DATA)), (200, 100, true));
        pair.send(1, packets, 0);
        pair.run(0);
        assert_eq!(pair.received(), [200, 100]);
    }

    #[test]
    fn a_stream_may_end_long_before_the_other() {
        let mut pair = Pair::plain();
        pair.ends[0].close();
        pair.ends[1].write(50_000);
        pair.run(0);
        assert!(pair.ends[1].receiver().is_closed() && !pair.ends[1].is_closed());
        assert_eq!(pair.received(), [50_000, 0]);
        pair.ends[1].close();
        pair.run(0);
        assert!(pair.ends.iter().all(Endpoint::is_closed));
    }

    #[test]
    fn ecn_is_agreed_on_for_both_streams() {
        use EcnStyle::{Accurate, Classic, Dctcp, Off};
        for (algorithm, near, far, agreed) in [
            (Algorithm::Cubic, Off, Accurate, Off),
            (Algorithm::Cubic, Classic, Classic, Classic),
            (Algorithm::Cubic, Accurate, Classic, Classic),
            (Algorithm::Cubic, Accurate, Accurate, Accurate),
            (Algorithm::Dctcp, Classic, Dctcp, Dctcp),
            (Algorithm::Prague, Accurate, Accurate, Accurate),
        ] {
            let config = |ecn| {
                let granted = if agreed == Dctcp { Dctcp } else { ecn };
                let sender = SenderConfig { algorithm, ecn, ..SenderConfig::default() };
                (sender, ReceiverConfig { ecn: granted, ..ReceiverConfig::default() })
            };
            let mut pair = Pair::new([config(near), config(far)]);
            for end in &mut pair.ends {
                end.write(100_000);
                end.close();
            }
            pair.run(0);
            for end in &pair.ends {
                assert_eq!(end.sender().ecn(), agreed, "{near:?} {far:?}");
                assert_eq!(end.receiver().ecn(), agreed, "{near:?} {far:?}");
            }
            assert_eq!(pair.received(), [100_000; 2]);
            let data = pair.sent.iter().filter_map(|(_, it)| it.data.filter(|it| it.payload > 0));
            assert!(data.into_iter().all(|it| (it.ecn != Ecn::NotEct) == (agreed != Off)));
        }
    }
}
