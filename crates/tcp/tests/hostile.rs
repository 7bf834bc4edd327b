//! Endpoints whose peer says whatever it likes: nothing panics, and what cannot be true changes nothing.

use std::time::Duration;

use dualq_tcp::{
    Ack, Algorithm, Control, Data, EcnBytes, EcnFlags, EcnOption, EcnStyle, Endpoint, Packet,
    Receiver, ReceiverConfig, SackBlock, Sender, SenderConfig,
};
use dualq_units::{Ecn, Instant};
use proptest::prelude::*;

const SECOND: Duration = Duration::from_secs(1);
const MSS: u64 = 1448;

fn window(ack: u64) -> Ack {
    Ack { ack, window: 1 << 20, timestamp_ms: 7, ..Ack::default() }
}

/// What the sender sends at `now`, through a queue of its own that empties at once.
fn send(sender: &mut Sender, now: Instant) -> Vec<Data> {
    let mut sent = Vec::new();
    loop {
        let before = sent.len();
        sender.transmit(now, &mut |transmission| sent.push(transmission.data));
        let left = sent[before..].iter().map(|data| sender.on_departure(data.payload));
        if !left.fold(false, |more, throttled| more | throttled) {
            return sent;
        }
    }
}

/// A sender with ten segments under way, and the time when the first answers come.
fn sending(ecn: bool) -> (Sender, Instant) {
    let asked = if ecn { EcnStyle::Classic } else { EcnStyle::Off };
    let flags = if ecn { EcnFlags::ECE } else { EcnFlags::NONE };
    let mut sender = Sender::new(SenderConfig { ecn: asked, ..SenderConfig::default() });
    sender.write(u64::MAX);
    let start = Instant::ZERO + SECOND;
    send(&mut sender, start);
    let open = start + Duration::from_millis(40);
    sender.on_ack(open, &Ack { control: Control::SYN, flags, ..window(0) });
    let sent = send(&mut sender, open);
    assert_eq!(sent.iter().map(|data| u64::from(data.payload)).sum::<u64>(), 10 * MSS);
    (sender, open + Duration::from_millis(40))
}

#[test]
fn a_window_that_reaches_past_all_numbers_is_only_large() {
    let (mut sender, now) = sending(false);
    sender.on_ack(now, &Ack { window: u64::MAX, ..window(2 * MSS) });
    assert!(!send(&mut sender, now).is_empty());
    assert_eq!(sender.acknowledged(), 2 * MSS);
}

#[test]
fn blocks_that_cannot_be_true_are_ignored() {
    let sacked = |block: (u64, u64), dsack: bool| {
        let (mut sender, now) = sending(true);
        let control = Control::DSACK.when(dsack);
        let first = SackBlock { start: block.0, end: block.1 };
        let blocks = [first, SackBlock::default(), SackBlock::default()];
        sender.on_ack(
            now,
            &Ack { blocks, block_count: 1, control, flags: EcnFlags::ECE, ..window(MSS) },
        );
        // One segment is acknowledged cumulatively, the others are the block's.
        sender.stats().ecn_echoes - 1
    };
    assert_eq!(sacked((3 * MSS, 5 * MSS), false), 2, "selectively acknowledged ones count too");
    for (block, what) in [
        ((5 * MSS, 3 * MSS), "inverted"),
        ((3 * MSS, 3 * MSS), "empty"),
        ((9 * MSS, 11 * MSS), "of what was never sent"),
        ((3 * MSS, u64::MAX), "endless"),
        ((0, 3 * MSS), "below what is acknowledged"),
        ((MSS, 3 * MSS), "at what is acknowledged"),
    ] {
        assert_eq!(sacked(block, false), 0, "{what}");
        assert_eq!(sacked(block, true), 0, "{what}, as a duplicate");
    }
}

/// The echo of the timestamps is what the sender was told last.
#[test]
fn an_acknowledgement_of_what_was_never_sent_says_nothing_at_all() {
    let (mut sender, now) = sending(false);
    sender.on_ack(now, &Ack { timestamp_ms: 999, ..window(1 << 40) });
    sender.on_ack(now, &Ack { timestamp_ms: 9, ..window(2 * MSS) });
    sender.on_ack(now, &Ack { timestamp_ms: 8, ..window(MSS) });
    let echoes: Vec<u32> = send(&mut sender, now).iter().map(|data| data.echo_ms).collect();
    assert!(!echoes.is_empty());
    assert!(echoes.iter().all(|echo| *echo == 9), "{echoes:?}");
}

fn data(seq: u64, payload: u32) -> Data {
    Data {
        seq,
        payload,
        segments: 1,
        mss: MSS as u16,
        timestamp_ms: 0,
        echo_ms: 0,
        ecn: Ecn::Ect0,
        flags: EcnFlags::NONE,
        options: 0,
        control: Control::NONE,
    }
}

#[test]
fn data_beyond_the_window_are_dropped_and_answered() {
    let mut receiver = Receiver::new(ReceiverConfig::default());
    let mut acks = Vec::new();
    let now = Instant::ZERO + SECOND;
    receiver.on_data(now, &Data { control: Control::SYN, ..data(0, 0) }, &mut |ack| acks.push(ack));
    receiver.on_data(now, &data(u64::MAX - 10, 100), &mut |ack| acks.push(ack));
    // The answer offers more than the SYN's: windows are scaled from then on.
    let window = acks[1].window;
    for (seq, payload) in [(window, 1), (window - 1, 2), (1 << 62, 1 << 20)] {
        receiver.on_data(now, &data(seq, payload), &mut |ack| acks.push(ack));
        assert_eq!((receiver.received(), receiver.stats().segments), (0, 0));
    }
    assert_eq!(acks.len(), 2, "answered, but not each");
    assert_eq!((acks[1].ack, acks[1].blocks().len()), (0, 0));
    receiver.on_data(now, &data(0, 100), &mut |_| ());
    assert_eq!(receiver.received(), 100);
}

/// A SYN that was sent again and comes after data does not take back the window that they were offered.
#[test]
fn an_old_syn_takes_nothing_back() {
    let mut receiver = Receiver::new(ReceiverConfig::default());
    let mut offered = 0;
    let mut now = Instant::ZERO + SECOND;
    let syn = Data { control: Control::SYN, ..data(0, 0) };
    receiver.on_data(now, &syn, &mut |ack| offered = ack.window);
    let mut next = 0;
    while next < 200_000 {
        now = now + Duration::from_millis(1);
        receiver.on_data(now, &data(next, 1000), &mut |ack| {
            offered = offered.max(ack.ack + ack.window);
        });
        receiver.on_timer(now, &mut |ack| offered = offered.max(ack.ack + ack.window));
        next += 1000;
    }
    let mut answers = Vec::new();
    receiver.on_data(now, &syn, &mut |ack| answers.push(ack));
    assert!(answers.iter().all(|ack| !ack.has(Control::SYN) && ack.ack == 200_000), "{answers:?}");
    assert!(offered > 210_000, "{offered}");
    receiver.on_data(now, &data(200_000, 1000), &mut |_| ());
    assert_eq!(receiver.received(), 201_000);
}

/// A program that reads every 2 ms and has waited longer is woken by a packet, but another of the same instant is taken in
/// before it runs: both are read at once.
#[test]
fn a_program_that_slept_reads_all_that_arrives_at_one_instant() {
    let read_interval = Duration::from_millis(2);
    let mut receiver = Receiver::new(ReceiverConfig { read_interval, ..ReceiverConfig::default() });
    let mut now = Instant::ZERO + SECOND;
    receiver.on_data(now, &Data { control: Control::SYN, ..data(0, 0) }, &mut |_| ());
    for round in 0..3 {
        now = now + Duration::from_millis(30);
        for packet in 0..2 {
            receiver.on_data(now, &data((2 * round + packet) * 1000, 1000), &mut |_| ());
            assert_eq!(receiver.next_timer(), now, "it waits to be read");
        }
        receiver.on_timer(now, &mut |_| ());
        assert!(receiver.is_reading() && receiver.next_timer() > now, "it is being read");
        receiver.on_timer(receiver.next_timer(), &mut |_| ());
        assert!(!receiver.is_reading(), "it is read");
        // It sleeps, and wakes though there is nothing to read.
        let woken = receiver.next_timer();
        assert!(woken > now + read_interval && woken < now + 2 * read_interval);
        receiver.on_timer(woken, &mut |_| ());
        assert_eq!((receiver.is_reading(), receiver.next_timer()), (false, Instant::NEVER));
    }
}

/// Numbers near what is there and far from it.
fn offset() -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => 0..60 * MSS,
        4 => (0..60_u64).prop_map(|segments| segments * MSS),
        1 => any::<u64>(),
        1 => (0..9_u64).prop_map(|below| u64::MAX - below),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Ack(Ack),
    Data(Data),
    Wait(u32),
    Transmit,
    Departure(u16),
    Write(u32),
    Stop,
    Close,
}

fn step() -> impl Strategy<Value = Step> {
    let blocks = prop::array::uniform3((offset(), offset()));
    let flags = prop::bits::u8::ANY;
    let ack = (offset(), offset(), blocks, 0..5_u8, flags, any::<u32>(), any::<u32>()).prop_map(
        |(ack, window, blocks, block_count, flags, echo_ms, timestamp_ms)| {
            Step::Ack(Ack {
                ack,
                window,
                blocks: blocks.map(|(start, end)| SackBlock { start, end }),
                block_count,
                flags: EcnFlags::from_bits(flags >> 1),
                control: [
                    Control::DSACK.when(flags & 1 != 0),
                    Control::SYN.when(flags & 0b1100 == 0),
                    Control::FIN.when(flags & 0b11_0000 == 0),
                    Control::RESET.when(flags & 0b111 == 0b100),
                    Control::COOKIE.when(flags & 0b10 != 0),
                    Control::WITH_DATA.when(flags & 0b10_0000 != 0),
                ]
                .into_iter()
                .fold(Control::NONE, Control::with),
                option: (flags & 0b1_0000 != 0).then(|| EcnBytes::from_bytes([flags; 9])),
                ecn: Ecn::from_bits(flags >> 5),
                echo_ms,
                timestamp_ms,
            })
        },
    );
    let payload = prop_oneof![4 => 0..3000_u32, 1 => any::<u32>()];
    let data = (offset(), payload, any::<u16>(), any::<u16>(), 0..4_u8, flags, any::<u32>())
        .prop_map(|(seq, payload, segments, mss, ecn, flags, echo_ms)| {
            Step::Data(Data {
                seq,
                payload,
                segments,
                mss,
                timestamp_ms: echo_ms.rotate_left(7),
                echo_ms,
                ecn: [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(ecn)],
                flags: EcnFlags::from_bits(flags),
                // Few numbers mean something in a SYN.
                options: if flags & 0b1100 == 0 { (flags & 0b11) * 4 } else { flags },
                control: [
                    Control::PUSH.when(flags & 2 != 0),
                    Control::CUT.when(echo_ms & 1 != 0),
                    Control::SYN.when(flags & 0b1100 == 0),
                    Control::FIN.when(flags & 0b11_0000 == 0),
                ]
                .into_iter()
                .fold(Control::NONE, Control::with),
            })
        });
    prop_oneof![
        6 => ack,
        4 => data,
        4 => any::<u32>().prop_map(|nanos| Step::Wait(nanos / 4)),
        5 => Just(Step::Transmit),
        2 => any::<u16>().prop_map(Step::Departure),
        1 => any::<u32>().prop_map(Step::Write),
        1 => Just(Step::Stop),
        1 => Just(Step::Close),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_a_peer_says_upsets_an_endpoint(
        algorithm in prop::sample::select(Algorithm::ALL.to_vec()),
        ecn in prop::sample::select(vec![EcnStyle::Off, EcnStyle::Classic, EcnStyle::Accurate]),
        (established, fast_open) in any::<(bool, bool)>(),
        ecn_option in prop::sample::select(vec![EcnOption::Disabled, EcnOption::Minimum, EcnOption::Full]),
        steps in prop::collection::vec(step(), 1..300),
    ) {
        let config =
            SenderConfig { algorithm, ecn, ecn_option, fast_open, ..SenderConfig::default() };
        let mut sender = Sender::new(config);
        sender.know_cookie();
        let config = ReceiverConfig { ecn, ecn_option, fast_open, ..ReceiverConfig::default() };
        let mut receiver = Receiver::new(config);
        let mut now = Instant::ZERO + SECOND;
        sender.write(1 << 20);
        sender.transmit(now, &mut |_| ());
        if established {
            now = now + Duration::from_millis(10);
            let accurate = ecn == EcnStyle::Accurate || algorithm == Algorithm::Prague;
            let (asks, grants) = match accurate {
                true => (EcnFlags::ASKS_ACCURATE, EcnFlags::from_bits(0b011)),
                false => (EcnFlags::ASKS_CLASSIC, EcnFlags::ECE),
            };
            sender.on_ack(now, &Ack { control: Control::SYN, flags: grants, ..window(0) });
            receiver.on_data(now, &Data { control: Control::SYN, flags: asks, ..data(0, 0) }, &mut |_| ());
        }
        for step in steps {
            match step {
                Step::Ack(ack) => sender.on_ack(now, &ack),
                Step::Data(data) => receiver.on_data(now, &data, &mut |_| ()),
                Step::Wait(nanos) => now = now + Duration::from_nanos(nanos.into()),
                Step::Transmit => sender.transmit(now, &mut |_| ()),
                Step::Departure(payload) => {
                    sender.on_departure(payload.into());
                }
                Step::Write(bytes) => sender.write(bytes.into()),
                Step::Stop => sender.stop(),
                Step::Close => sender.close(),
            }
            if sender.next_timer() <= now {
                sender.on_timer(now);
            }
            if receiver.next_timer() <= now {
                receiver.on_timer(now, &mut |_| ());
            }
            prop_assert!(sender.cwnd() >= 1);
        }
    }

    /// The same of an end that sends and receives, whichever opened.
    #[test]
    fn nothing_that_a_peer_says_upsets_an_end_of_both(
        algorithm in prop::sample::select(Algorithm::ALL.to_vec()),
        ecn in prop::sample::select(vec![EcnStyle::Off, EcnStyle::Classic, EcnStyle::Accurate]),
        opens in any::<bool>(),
        steps in prop::collection::vec((step(), any::<bool>()), 1..300),
    ) {
        let sender = SenderConfig { algorithm, ecn, ..SenderConfig::default() };
        let receiver = ReceiverConfig { ecn, ..ReceiverConfig::default() };
        let mut end = match opens {
            true => Endpoint::connect(sender, receiver),
            false => Endpoint::listen(sender, receiver),
        };
        let mut now = Instant::ZERO + SECOND;
        let mut last = None;
        end.write(1 << 20);
        end.transmit(now, &mut |_| ());
        let (data, ack) = match opens {
            true => (None, Some(Ack { control: Control::SYN, ..window(0) })),
            false => (Some(Data { control: Control::SYN, ..data(0, 0) }), None),
        };
        end.on_packet(now, &Packet { data, ack, departure: now }, &mut |_| ());
        for (step, alone) in steps {
            match step {
                Step::Ack(ack) => last = Some(ack),
                Step::Data(data) => {
                    let ack = last.take().filter(|_| !alone);
                    let packet = Packet { data: Some(data), ack, departure: now };
                    end.on_packet(now, &packet, &mut |_| ());
                }
                Step::Wait(nanos) => now = now + Duration::from_nanos(nanos.into()),
                Step::Transmit => end.transmit(now, &mut |_| ()),
                Step::Departure(payload) => {
                    end.on_departure(payload.into());
                }
                Step::Write(bytes) => end.write(bytes.into()),
                Step::Stop | Step::Close => end.close(),
            }
            if alone && let Some(ack) = last.take() {
                end.on_packet(now, &Packet { data: None, ack: Some(ack), departure: now }, &mut |_| ());
            }
            if end.next_timer() <= now {
                end.on_timer(now, &mut |_| ());
            }
            prop_assert!(end.sender().cwnd() >= 1);
        }
    }
}
