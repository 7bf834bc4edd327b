//! Both endpoints across a network of the test's own: one rate, one delay, a short queue, random loss either way.

use std::collections::VecDeque;
use std::time::Duration;

use dualq_tcp::{
    Ack, Algorithm, Control, Data, EcnFlags, EcnStyle, OPTION_BYTES, Pacing, Receiver,
    ReceiverConfig, SackBlock, Sender, SenderConfig, TIMER_LATENCY, Transmission,
};
use dualq_units::{Bytes, Ecn, Instant};
use proptest::prelude::*;

/// What the network is like.
#[derive(Clone, Copy, Debug)]
struct Network {
    /// Nanoseconds that a byte takes.
    nanos_per_byte: u64,
    one_way_ns: u64,
    /// Packets that wait at most.
    queue: usize,
    /// Packets of 1000 that are lost, of data and of acknowledgements.
    loss: u64,
    ack_loss: u64,
    /// Every hundredth packet takes so much longer: others overtake it.
    detour_ns: u64,
    /// Mark instead of dropping when a quarter of the queue is full.
    marks: bool,
}

impl Network {
    const fn clean(mbit: u64, one_way_ms: u64) -> Self {
        Self {
            nanos_per_byte: 8_000 / mbit,
            one_way_ns: one_way_ms * 1_000_000,
            queue: 1000,
            loss: 0,
            ack_loss: 0,
            detour_ns: 0,
            marks: false,
        }
    }
}

/// A sender, a receiver and what lies between them.
struct Pair {
    network: Network,
    sender: Sender,
    receiver: Receiver,
    /// The queue of the sender's interface.
    device: VecDeque<Transmission>,
    /// Packets and acknowledgements on their way, with their time of arrival.
    forward: VecDeque<(u64, Data)>,
    back: VecDeque<(u64, Ack)>,
    link_free_ns: u64,
    sent: u64,
    now_ns: u64,
    random: u64,
    /// A sum over all that was sent and when.
    fingerprint: u64,
}

impl Pair {
    fn new(algorithm: Algorithm, ecn: bool, network: Network, seed: u64) -> Self {
        let style = if ecn { EcnStyle::Classic } else { EcnStyle::Off };
        Self::with(style, algorithm.ecn_style(), algorithm, network, seed)
    }

    /// With what the sender asks for and the receiver grants.
    fn with(
        asked: EcnStyle,
        granted: EcnStyle,
        algorithm: Algorithm,
        network: Network,
        seed: u64,
    ) -> Self {
        let sender = SenderConfig { algorithm, ecn: asked, ..SenderConfig::default() };
        let receiver = ReceiverConfig { ecn: granted, ..ReceiverConfig::default() };
        Self {
            network,
            sender: Sender::new(sender).with_seed(seed),
            receiver: Receiver::new(receiver),
            device: VecDeque::new(),
            forward: VecDeque::new(),
            back: VecDeque::new(),
            link_free_ns: 0,
            sent: 0,
            now_ns: 0,
            random: seed | 1,
            fingerprint: 0,
        }
    }

    fn strikes(&mut self, per_mille: u64) -> bool {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 20) % 1000 < per_mille
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.now_ns)
    }

    /// Lets the sender send, and its packets enter the network one by one.
    fn drive(&mut self) {
        loop {
            let now = self.now();
            let Self { sender, device, .. } = self;
            sender.transmit(now, &mut |transmission| device.push_back(transmission));
            let mut more = false;
            while let Some(front) = self.device.front().copied() {
                if front.departure > now {
                    break;
                }
                self.device.pop_front();
                more |= self.sender.on_departure(front.data.payload);
                self.enter(front.data);
            }
            if !more {
                break;
            }
        }
        assert!(self.sender.cwnd() >= 1);
    }

    fn enter(&mut self, mut aggregate: Data) {
        loop {
            let last = aggregate.segments == 1;
            let mut data = aggregate.split_first();
            self.fingerprint =
                self.fingerprint.wrapping_mul(0x100_0000_01b3) ^ data.seq ^ self.now_ns;
            let wire_ns = u64::from(data.wire_bytes()) * self.network.nanos_per_byte;
            let start_ns = self.link_free_ns.max(self.now_ns);
            let waiting = ((start_ns - self.now_ns) / wire_ns.max(1)) as usize;
            if waiting < self.network.queue && !self.strikes(self.network.loss) {
                if self.network.marks && data.ecn.is_capable() && waiting > self.network.queue / 4 {
                    data.ecn = Ecn::Ce;
                }
                self.link_free_ns = start_ns + wire_ns;
                self.sent += 1;
                let detour_ns = u64::from(self.sent % 100 == 99) * self.network.detour_ns;
                let arrival_ns = self.link_free_ns + self.network.one_way_ns + detour_ns;
                let place = self.forward.partition_point(|(time_ns, _)| *time_ns <= arrival_ns);
                self.forward.insert(place, (arrival_ns, data));
            }
            if last {
                break;
            }
        }
    }

    fn acknowledge(&mut self, acks: Vec<Ack>) {
        for ack in acks {
            assert!(ack.ack == self.receiver.received() || ack.ack < self.receiver.received());
            if !self.strikes(self.network.ack_loss) {
                self.back.push_back((self.now_ns + self.network.one_way_ns, ack));
            }
        }
    }

    /// Runs until `end_ns`, or until all is acknowledged. Returns whether it is.
    fn run(&mut self, end_ns: u64) -> bool {
        self.drive();
        while !self.sender.is_done() {
            let times = [
                self.forward.front().map_or(u64::MAX, |front| front.0),
                self.back.front().map_or(u64::MAX, |front| front.0),
                self.sender.next_timer().as_nanos(),
                self.receiver.next_timer().as_nanos(),
                self.device.front().map_or(u64::MAX, |front| front.departure.as_nanos()),
            ];
            let (index, time_ns) = (0..).zip(times).min_by_key(|(_, time)| *time).unwrap_or((0, 0));
            if time_ns >= end_ns {
                return false;
            }
            self.now_ns = self.now_ns.max(time_ns);
            let now = self.now();
            let mut acks = Vec::new();
            match index {
                0 => {
                    if let Some((_, data)) = self.forward.pop_front() {
                        let before = self.receiver.received();
                        self.receiver.on_data(now, &data, &mut |ack| acks.push(ack));
                        assert!(self.receiver.received() >= before);
                    }
                }
                1 => {
                    if let Some((_, ack)) = self.back.pop_front() {
                        self.sender.on_ack(now, &ack);
                        assert!(self.sender.acknowledged() <= self.receiver.received());
                        self.drive();
                    }
                }
                2 => {
                    self.sender.on_timer(now);
                    self.drive();
                }
                3 => self.receiver.on_timer(now, &mut |ack| acks.push(ack)),
                _ => self.drive(),
            }
            self.acknowledge(acks);
        }
        true
    }
}

const SECOND: u64 = 1_000_000_000;

#[test]
fn a_clean_path_is_filled() {
    for algorithm in Algorithm::ALL.iter().copied() {
        let mut pair = Pair::new(algorithm, false, Network::clean(40, 10), 1);
        pair.sender.write(u64::MAX);
        pair.run(5 * SECOND);
        let start = pair.sender.acknowledged();
        pair.run(15 * SECOND);
        let mbit = (pair.sender.acknowledged() - start) as f64 * 8.0 / 10.0 / 1e6;
        // 40 Mbit/s less headers is 38.2; BBR gives up 2 % of the time to look for the RTT.
        assert!(mbit > 36.5 && mbit < 38.3, "{} {mbit}", algorithm.name());
    }
}

#[test]
fn marks_hold_ecn_senders_back_without_loss() {
    for algorithm in [Algorithm::Reno, Algorithm::Cubic, Algorithm::Dctcp] {
        let network = Network { queue: 400, marks: true, ..Network::clean(40, 10) };
        let mut pair = Pair::new(algorithm, true, network, 1);
        pair.sender.write(u64::MAX);
        pair.run(2 * SECOND);
        let early = *pair.sender.stats();
        pair.run(20 * SECOND);
        let stats = pair.sender.stats();
        assert!(stats.ecn_echoes > early.ecn_echoes, "{}", algorithm.name());
        assert_eq!(stats.retransmissions, early.retransmissions, "{}", algorithm.name());
    }
}

/// RFC 3168 §6.1.1.1, as Linux does it: who must ask again does not ask for ECN, and DCTCP is Reno then.
#[test]
fn whoever_must_ask_again_does_without_ecn() {
    for algorithm in [Algorithm::Dctcp, Algorithm::Cubic] {
        let config = SenderConfig { algorithm, ecn: EcnStyle::Classic, ..SenderConfig::default() };
        let mut sender = Sender::new(config);
        let mut receiver = Receiver::new(ReceiverConfig::default());
        let sent = |sender: &mut Sender, now: Instant| {
            let mut all = Vec::new();
            sender.transmit(now, &mut |transmission| all.push(transmission.data));
            all
        };
        sender.write(100_000);
        let ecn = if algorithm == Algorithm::Dctcp { Ecn::Ect0 } else { Ecn::NotEct };
        let first = sent(&mut sender, Instant::ZERO)[0];
        assert_eq!(
            (first.has(Control::SYN), first.flags, first.ecn),
            (true, EcnFlags::ASKS_CLASSIC, ecn)
        );
        // It is lost.
        let later = sender.next_timer();
        sender.on_timer(later);
        let again = sent(&mut sender, later)[0];
        assert_eq!((again.has(Control::SYN), again.flags, again.ecn), (true, EcnFlags::NONE, ecn));
        let mut answers = Vec::new();
        receiver.on_data(later, &again, &mut |ack| answers.push(ack));
        assert_eq!((answers[0].has(Control::SYN), answers[0].flags), (true, EcnFlags::NONE));
        sender.on_ack(later + Duration::from_millis(20), &answers[0]);
        let data = sent(&mut sender, later + Duration::from_millis(20));
        assert!(!data.is_empty() && data.iter().all(|data| data.ecn == Ecn::NotEct), "{data:?}");
    }
}

#[test]
fn only_dctcp_marks_empty_segments_as_capable() {
    for (algorithm, expected) in [(Algorithm::Dctcp, Ecn::Ect0), (Algorithm::Cubic, Ecn::NotEct)] {
        let mut pair = Pair::new(algorithm, true, Network::clean(10, 5), 1);
        pair.sender.write(10_000);
        assert_eq!(pair.sender.empty_segment_ecn(), Ecn::NotEct, "nothing is agreed yet");
        pair.run(1_000_000_000);
        assert!(pair.sender.is_done());
        assert_eq!(pair.sender.empty_segment_ecn(), expected, "{}", algorithm.name());
    }
}

/// RFC 9768 §3.2: what the sender knows of marks is what the receiver counted, packets and bytes, through all wraps of both.
#[test]
fn accurate_ecn_counts_the_same_at_both_ends() {
    for algorithm in [Algorithm::Prague, Algorithm::Cubic, Algorithm::Dctcp] {
        let network = Network { queue: 400, marks: true, ..Network::clean(40, 10) };
        let accurate = EcnStyle::Accurate;
        let mut pair = Pair::with(accurate, accurate, algorithm, network, 1);
        let bytes = 40_000_000;
        pair.sender.write(bytes);
        pair.run(20_000_000_000);
        assert!(pair.sender.is_done(), "{}", algorithm.name());
        assert_eq!((pair.sender.ecn(), pair.receiver.ecn()), (accurate, accurate));
        assert_eq!(pair.sender.mss(), 1_448 - OPTION_BYTES);
        let (sent, arrived) = (pair.sender.stats(), pair.receiver.stats());
        // A loss probe of the end, at most.
        assert!(sent.retransmissions <= 1, "{}", algorithm.name());
        assert!(sent.ecn_echoes > 8, "{}", algorithm.name());
        assert_eq!(sent.ecn_echoes, arrived.ce_segments, "{}", algorithm.name());
        assert_eq!(pair.sender.ecn_bytes(), pair.receiver.ecn_bytes());
        let [ect0, ce, ect1] = pair.receiver.ecn_bytes();
        assert_eq!(ect0 + ce + ect1, bytes + arrived.duplicate_bytes);
        assert_eq!(if algorithm == Algorithm::Prague { ect0 } else { ect1 }, 0);
    }
}

/// Prague has no fallback to RFC 3168, whose echoes tell it too little: with a receiver as Linux has it by default it is Reno,
/// without ECN (RFC 9331 §4.3). CUBIC takes what there is.
#[test]
fn who_lacks_accurate_ecn_gets_what_it_can_have() {
    use EcnStyle::{Accurate, Classic, Off};
    for (algorithm, granted, expected, capable) in [
        (Algorithm::Prague, Accurate, Accurate, Ecn::Ect1),
        (Algorithm::Prague, Classic, Off, Ecn::NotEct),
        (Algorithm::Prague, Off, Off, Ecn::NotEct),
        (Algorithm::Cubic, Accurate, Accurate, Ecn::Ect0),
        (Algorithm::Cubic, Classic, Classic, Ecn::Ect0),
        (Algorithm::Cubic, Off, Off, Ecn::NotEct),
    ] {
        let config = SenderConfig { algorithm, ecn: Accurate, ..SenderConfig::default() };
        let mut sender = Sender::new(config);
        let mut receiver =
            Receiver::new(ReceiverConfig { ecn: granted, ..ReceiverConfig::default() });
        sender.write(100_000);
        let mut syns = Vec::new();
        sender.transmit(Instant::ZERO, &mut |transmission| syns.push(transmission.data));
        assert_eq!(syns[0].flags, EcnFlags::ASKS_ACCURATE);
        let mut answers = Vec::new();
        let later = Instant::ZERO + Duration::from_millis(20);
        receiver.on_data(later, &syns[0], &mut |ack| answers.push(ack));
        sender.on_ack(later, &answers[0]);
        let mut sent = Vec::new();
        sender.transmit(later, &mut |transmission| sent.push(transmission.data));
        assert_eq!(sender.ecn(), expected, "{} {granted:?}", algorithm.name());
        assert_eq!(sender.is_fallback(), algorithm == Algorithm::Prague && granted != Accurate);
        let data = sent.iter().filter(|data| data.payload > 0);
        assert!(data.clone().count() > 0);
        assert!(data.into_iter().all(|data| data.ecn == capable), "{sent:?}");
        if expected == Accurate {
            // The third packet tells that the answer came as Not-ECT, the data begin to count.
            assert_eq!((sent[0].flags.bits(), sent[1].flags.bits()), (0b010, 5));
        }
    }
}

/// RFC 9768 §3.1.4.1: Accurate ECN is asked for once more before ECN is given up.
#[test]
fn accurate_ecn_is_asked_for_twice() {
    let config = SenderConfig { ecn: EcnStyle::Accurate, ..SenderConfig::default() };
    let mut sender = Sender::new(config);
    let (mut now, mut syns) = (Instant::ZERO, Vec::new());
    for _ in 0..3 {
        sender.transmit(now, &mut |transmission| syns.push(transmission.data.flags));
        now = sender.next_timer();
        sender.on_timer(now);
    }
    assert_eq!(syns, [EcnFlags::ASKS_ACCURATE, EcnFlags::ASKS_ACCURATE, EcnFlags::NONE]);
}

/// RFC 9768 §3.2.2.3: where the ECN field is bleached, nothing is sent as ECN-capable. Marks on the handshake count.
#[test]
fn handshakes_tell_of_bleaching_and_of_marks() {
    for (seen, mangled) in [(Ecn::NotEct, true), (Ecn::Ce, false), (Ecn::Ect1, false)] {
        let config = SenderConfig { algorithm: Algorithm::Prague, ..SenderConfig::default() };
        let mut sender = Sender::new(config);
        let granted = ReceiverConfig { ecn: EcnStyle::Accurate, ..ReceiverConfig::default() };
        let mut receiver = Receiver::new(granted);
        sender.write(100_000);
        let (mut packets, mut answers) = (Vec::new(), Vec::new());
        sender.transmit(Instant::ZERO, &mut |transmission| packets.push(transmission.data));
        let syn = Data { ecn: seen, ..packets.remove(0) };
        let later = Instant::ZERO + Duration::from_millis(20);
        receiver.on_data(later, &syn, &mut |ack| answers.push(ack));
        // Its answer is marked on the way.
        sender.on_ack(later, &Ack { ecn: Ecn::Ce, ..answers[0] });
        assert_eq!(sender.is_ecn_mangled(), mangled, "{seen:?}");
        sender.transmit(later, &mut |transmission| packets.push(transmission.data));
        let capable = if mangled { Ecn::NotEct } else { Ecn::Ect1 };
        assert!(packets.iter().all(|data| data.ecn == capable), "{packets:?}");
        assert_eq!((packets[0].flags.bits(), packets[1].flags.bits()), (0b110, 6));
        receiver.on_data(later, &packets[0], &mut |_| ());
        assert_eq!(receiver.stats().answers_marked, 1);
    }
}

/// The answer to the first SYN is what counts, however late the second one comes.
#[test]
fn a_syn_that_comes_twice_is_answered_as_at_first() {
    let config = SenderConfig { ecn: EcnStyle::Classic, ..SenderConfig::default() };
    let mut sender = Sender::new(config);
    let mut receiver = Receiver::new(ReceiverConfig::default());
    let mut syns = Vec::new();
    sender.transmit(Instant::ZERO, &mut |transmission| syns.push(transmission.data));
    let later = sender.next_timer();
    sender.on_timer(later);
    sender.transmit(later, &mut |transmission| syns.push(transmission.data));
    let mut granted = Vec::new();
    for syn in &syns {
        receiver.on_data(later, syn, &mut |ack| granted.push(ack.flags));
    }
    assert_eq!(granted, [EcnFlags::ECE; 2]);
}

/// A receiver whose program does not read has less and less to offer: past the quick ones its acknowledgements wait for the
/// program (Linux: `__tcp_ack_snd_check`), and come when it reads.
#[test]
fn acknowledgements_wait_for_the_program_while_the_window_shrinks() {
    let read_interval = Duration::from_millis(20);
    let mut receiver = Receiver::new(ReceiverConfig { read_interval, ..Default::default() });
    let segment = |number: u64| Data {
        seq: number * 1448,
        payload: 1448,
        segments: 1,
        mss: 1448,
        timestamp_ms: 1,
        echo_ms: 1,
        ecn: Ecn::NotEct,
        flags: EcnFlags::NONE,
        options: 0,
        control: Control::NONE,
    };
    let mut acks = Vec::new();
    for number in 0..40 {
        let now = Instant::from_nanos(1_000_000 + number * 100_000);
        receiver.on_data(now, &segment(number), &mut |ack| acks.push(ack.ack));
        // The first is read as it comes.
        if receiver.next_timer() <= now {
            receiver.on_timer(now, &mut |ack| acks.push(ack.ack));
            receiver.on_timer(receiver.next_timer(), &mut |ack| acks.push(ack.ack));
        }
    }
    // Sixteen quick ones, and some more while the window can still grow.
    assert_eq!(acks.len(), 21);
    let read = receiver.next_timer();
    // It took a nanosecond to read the first.
    assert_eq!(read, Instant::from_nanos(21_000_001));
    receiver.on_timer(read, &mut |ack| acks.push(ack.ack));
    receiver.on_timer(receiver.next_timer(), &mut |ack| acks.push(ack.ack));
    assert_eq!(acks[21..], [40 * 1448]);
}

#[test]
fn one_loss_is_repaired_by_one_retransmission() {
    let mut pair = Pair::new(Algorithm::Reno, false, Network::clean(40, 10), 1);
    pair.sender.write(3_000_000);
    pair.run(SECOND / 10);
    // One packet on its way is lost.
    pair.forward.remove(3);
    assert!(pair.run(60 * SECOND));
    assert_eq!(pair.sender.stats().retransmissions, 1);
    assert_eq!(pair.sender.stats().timeouts, 0);
    assert_eq!(pair.receiver.stats().duplicate_bytes, 0);
}

#[test]
fn what_was_sent_apart_is_sent_again_apart() {
    const MSS: u32 = 1448;
    let mut sender = Sender::new(SenderConfig::default());
    sender.write(10 * u64::from(MSS));
    let send = |sender: &mut Sender, now_ms: u64| {
        let mut sent = Vec::new();
        let now = Instant::ZERO + Duration::from_millis(now_ms);
        sender.transmit(now, &mut |transmission| sent.push(transmission.data));
        for data in &sent {
            sender.on_departure(data.payload);
        }
        sent.iter().map(|data| (data.seq as u32 / MSS, data.payload / MSS)).collect::<Vec<_>>()
    };
    let ack = |segments: u32, now_ms: u64| Ack {
        ack: u64::from(segments * MSS),
        window: 1 << 20,
        echo_ms: now_ms as u32,
        ..Ack::default()
    };
    send(&mut sender, 0);
    sender.on_ack(
        Instant::ZERO + Duration::from_millis(1),
        &Ack { control: Control::SYN, ..ack(0, 0) },
    );
    assert_eq!(send(&mut sender, 1), [(0, 0), (0, 5), (5, 5)]);
    // Everything is lost. The loss probe is a packet of its own, and so is the first segment after the timeout.
    let timeout = |sender: &mut Sender| {
        let now = sender.next_timer();
        sender.on_timer(now);
        now.as_nanos() / 1_000_000
    };
    let now_ms = timeout(&mut sender);
    assert_eq!(send(&mut sender, now_ms), [(9, 1)]);
    let now_ms = timeout(&mut sender);
    assert_eq!(send(&mut sender, now_ms), [(0, 1)]);
    let mut answered = |segments: u32, later_ms: u64| {
        let now_ms = now_ms + later_ms;
        sender.on_ack(Instant::ZERO + Duration::from_millis(now_ms), &ack(segments, now_ms));
        send(&mut sender, now_ms)
    };
    assert_eq!(answered(1, 1), [(1, 2)]);
    // There is room for four, but the first packet ends after two.
    assert_eq!(answered(3, 2), [(3, 2), (5, 2)]);
    assert_eq!(answered(7, 3), [(7, 2), (9, 1)]);
}

#[test]
fn a_lost_tail_is_probed_before_the_timeout() {
    let mut pair = Pair::new(Algorithm::Cubic, false, Network::clean(40, 50), 1);
    pair.sender.write(5 * 1448);
    // The handshake takes 100 ms; then all five segments are under way.
    pair.run(140 * 1_000_000);
    // Before them the acknowledgement of the handshake.
    assert_eq!(pair.forward.len(), 6);
    pair.forward.pop_back();
    assert!(pair.run(60 * SECOND));
    assert_eq!(pair.sender.stats().timeouts, 0);
    assert_eq!(pair.sender.stats().retransmissions, 1);
}

#[test]
fn a_delay_that_only_looks_like_loss_is_undone() {
    let mut pair = Pair::new(Algorithm::Cubic, false, Network::clean(40, 20), 1);
    pair.sender.write(u64::MAX);
    pair.run(2 * SECOND);
    let cwnd = pair.sender.cwnd();
    // Everything under way is held for a second: the sender times out, then learns better.
    for (time_ns, _) in &mut pair.forward {
        *time_ns += SECOND;
    }
    pair.link_free_ns += SECOND;
    pair.run(3_100 * SECOND / 1_000);
    assert!(pair.sender.stats().timeouts > 0);
    assert!(pair.sender.cwnd() >= cwnd, "{} {cwnd}", pair.sender.cwnd());
}

/// Packets that are overtaken look lost, until the sender has seen that it happens on this path: then it takes more to
/// convince it, and it waits for a quarter of the round trip (RFC 8985 §6.2, step 4).
#[test]
fn a_path_that_reorders_is_found_out() {
    // A packet takes 1.2 ms. Five overtake one that is 6 ms late; a quarter of the round trip is 10 ms.
    for detour_ms in [6, 25] {
        let network = Network { detour_ns: detour_ms * 1_000_000, ..Network::clean(10, 20) };
        let mut pair = Pair::new(Algorithm::Cubic, false, network, 1);
        // A window that the queue has room for: nothing is lost.
        let small = ReceiverConfig { max_buffer: Bytes(200_000), ..ReceiverConfig::default() };
        pair.receiver = Receiver::new(small);
        pair.sender.write(20_000_000);
        assert!(pair.run(60 * SECOND));
        let stats = pair.sender.stats();
        // More than a hundred packets took the detour.
        assert!(stats.segments > 13_000);
        assert!(stats.retransmissions <= 3, "{detour_ms} ms: {stats:?}");
    }
}

/// A program that does not read closes the window; the sender asks at growing intervals. So it goes on even where the news of
/// the open window got lost.
#[test]
fn a_closed_window_is_probed() {
    let mut pair = Pair::new(Algorithm::Cubic, false, Network::clean(40, 10), 1);
    let read_interval = Duration::from_secs(8);
    pair.receiver = Receiver::new(ReceiverConfig { read_interval, ..ReceiverConfig::default() });
    pair.sender.write(u64::MAX);
    pair.run(2 * SECOND);
    let held = pair.sender.acknowledged();
    // What the first read took, and what fits into 128 KiB of memory; Linux in the world `kernel` takes 117,040 bytes. Of the
    // window's rest the last part of a segment is sent too, else each acknowledgement would round it up by some.
    assert!((112_000..122_000).contains(&held), "what fits into the buffer: {held}");
    pair.run(8 * SECOND);
    // The timeout is some 220 ms; the probes come after 0.25, 0.7, 1.6, 3.3 and 6.9 s.
    assert!((4..=6).contains(&pair.sender.stats().window_probes), "{:?}", pair.sender.stats());
    assert_eq!((pair.sender.acknowledged(), pair.sender.stats().timeouts), (held, 0));
    // The program reads, and what the receiver says of it is lost.
    while pair.receiver.next_timer().as_nanos() != u64::MAX {
        pair.now_ns = pair.receiver.next_timer().as_nanos();
        let now = pair.now();
        pair.receiver.on_timer(now, &mut |_| ());
    }
    let probes = pair.sender.stats().window_probes;
    pair.run(pair.now_ns + 16 * SECOND);
    assert!(pair.sender.stats().window_probes > probes);
    assert!(pair.sender.acknowledged() > held + 60_000, "{}", pair.sender.acknowledged());
}

/// The window of the path is 200 kB, but no more can wait to be acknowledged than the buffer holds.
#[test]
fn the_send_buffer_limits_what_is_under_way() {
    let rate = |max_buffer: u64| {
        let mut pair = Pair::new(Algorithm::Cubic, false, Network::clean(40, 20), 1);
        let max_buffer = Bytes(max_buffer);
        pair.sender = Sender::new(SenderConfig { max_buffer, ..SenderConfig::default() });
        pair.sender.write(u64::MAX);
        pair.run(5 * SECOND);
        let start = pair.sender.acknowledged();
        pair.run(15 * SECOND);
        (pair.sender.acknowledged() - start) as f64 * 8.0 / 10.0 / 1e6
    };
    assert!(rate(64 << 20) > 37.5, "{}", rate(64 << 20));
    // Two packets of 65 kB in 40 ms: one that fills the buffer, and one that was begun before it was full, for what is added to a
    // packet asks for no room (Linux: `tcp_sendmsg_locked`).
    let small = rate(65_536);
    assert!((24.0..28.0).contains(&small), "{small}");
}

fn networks() -> impl Strategy<Value = Network> {
    (1..200_u64, 0..60_u64, 2..300_usize, 0..150_u64, 0..100_u64, any::<bool>()).prop_map(
        |(mbit, one_way_ms, queue, loss, ack_loss, marks)| Network {
            queue,
            loss,
            ack_loss,
            marks,
            ..Network::clean(mbit, one_way_ms)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Every finite transfer ends, with each byte delivered once and none invented.
    #[test]
    fn every_transfer_ends(
        network in networks(),
        algorithm in prop::sample::select(Algorithm::ALL.to_vec()),
        ecn in any::<bool>(),
        size in 1..2_000_000_u64,
        seed in any::<u64>(),
    ) {
        let mut pair = Pair::new(algorithm, ecn, network, seed);
        pair.sender.write(size);
        prop_assert!(pair.run(100_000 * SECOND), "{} of {size}", pair.sender.acknowledged());
        prop_assert_eq!(pair.receiver.received(), size);
        prop_assert_eq!(pair.sender.acknowledged(), size);
    }

    /// The same seed gives the same packets at the same times.
    #[test]
    fn a_seed_decides_everything(
        network in networks(),
        algorithm in prop::sample::select(Algorithm::ALL.to_vec()),
        seed in any::<u64>(),
    ) {
        let run = || {
            let mut pair = Pair::new(algorithm, true, network, seed);
            pair.sender.write(u64::MAX);
            pair.run(3 * SECOND);
            (pair.fingerprint, pair.sender.acknowledged(), *pair.sender.stats())
        };
        prop_assert_eq!(run(), run());
    }
}

#[test]
fn paced_packets_are_spaced_by_the_queue_of_the_interface() {
    let config =
        SenderConfig { pacing: Pacing::ByQueue, max_gso: Bytes(1_500), ..SenderConfig::default() };
    let mut pair = Pair::new(Algorithm::Cubic, false, Network::clean(100, 50), 1);
    pair.sender = Sender::new(config);
    pair.sender.write(u64::MAX);
    pair.run(160 * 1_000_000);
    // Twice the window per round trip: 10 packets in 50 ms at first, then more.
    let spacing: Vec<_> = pair
        .device
        .iter()
        .zip(pair.device.iter().skip(1))
        .map(|(first, second)| second.departure.as_nanos() - first.departure.as_nanos())
        .collect();
    assert!(spacing.iter().all(|&nanos| nanos > 0), "{spacing:?}");
}

/// Linux counts what waits in the interface's queue from one on: two packets of the same size are all that may wait there.
#[test]
fn two_packets_wait_in_the_queue_of_the_interface() {
    let config =
        SenderConfig { pacing: Pacing::ByQueue, max_gso: Bytes(1_500), ..SenderConfig::default() };
    let mut pair = Pair::new(Algorithm::Reno, false, Network::clean(100, 50), 1);
    pair.sender = Sender::new(config);
    pair.sender.write(u64::MAX);
    let mut most = 0;
    for millisecond in 100..300 {
        pair.run(millisecond * 1_000_000);
        most = most.max(pair.device.len());
    }
    assert_eq!(most, 2);
}

/// Packets are sent again as they were sent, or cut; never two of them as one (Linux: `__tcp_retransmit_skb`).
#[test]
fn lost_packets_are_not_put_together() {
    const MSS: u64 = 1448;
    let mut sender = Sender::new(SenderConfig { algorithm: Algorithm::Reno, ..Default::default() });
    let mut now = Instant::ZERO;
    let window = |ack: u64| Ack { ack: ack * MSS, window: 1 << 20, ..Ack::default() };
    let sent = |sender: &mut Sender, now: Instant| {
        let mut all = Vec::new();
        sender.transmit(now, &mut |transmission| all.push(transmission.data));
        for data in &all {
            sender.on_departure(data.payload);
        }
        all.retain(|data| data.payload > 0);
        all.iter().map(|data| (data.seq / MSS, data.segments)).collect::<Vec<_>>()
    };
    sender.write(u64::MAX);
    sent(&mut sender, now);
    let mut step = |sender: &mut Sender, ack: &Ack| {
        now = now + Duration::from_millis(1);
        sender.on_ack(now, ack);
        sent(sender, now)
    };
    step(&mut sender, &Ack { control: Control::SYN, ..window(0) });
    step(&mut sender, &window(10));
    assert_eq!(step(&mut sender, &window(30)), [(30, 20), (50, 5), (55, 15)]);
    // Only the last ten segments arrive.
    let block = SackBlock { start: 60 * MSS, end: 70 * MSS };
    let blocks = [block, SackBlock::default(), SackBlock::default()];
    let again = step(&mut sender, &Ack { blocks, block_count: 1, ..window(30) });
    assert_eq!(again, [(30, 10)]);
    let again = step(&mut sender, &Ack { blocks, block_count: 1, ..window(36) });
    assert_eq!(again, [(40, 7)]);
    let again = step(&mut sender, &Ack { blocks, block_count: 1, ..window(46) });
    assert_eq!(again, [(47, 3), (50, 5), (55, 3)]);
}

/// A receiver knows the round trip from the handshake: that is how long an acknowledgement waits where data come slowly, and
/// not as long as a queue makes a window's worth of data take.
#[test]
fn acknowledgements_of_slow_data_wait_for_the_round_trip_of_the_handshake() {
    let mut receiver = Receiver::new(ReceiverConfig::default());
    let packet = Data {
        seq: 0,
        payload: 0,
        segments: 1,
        mss: 1000,
        timestamp_ms: 0,
        echo_ms: 0,
        ecn: Ecn::NotEct,
        flags: EcnFlags::NONE,
        options: 0,
        control: Control::NONE,
    };
    let mut now = Instant::ZERO + Duration::from_secs(1);
    receiver.on_data(now, &Data { control: Control::SYN, ..packet }, &mut |_| ());
    now = now + Duration::from_millis(10);
    receiver.on_data(now, &packet, &mut |_| ());
    let mut delayed = 0;
    for number in 0..400 {
        now = now + Duration::from_millis(30);
        let data = Data { seq: number * 1000, payload: 1000, ..packet };
        receiver.on_data(now, &data, &mut |_| ());
        if receiver.next_timer() != Instant::NEVER {
            delayed += 1;
            let latest = now + Duration::from_millis(50) + TIMER_LATENCY;
            assert!(receiver.next_timer() <= latest, "{number}");
        }
    }
    assert!(delayed > 20, "{delayed}");
}
