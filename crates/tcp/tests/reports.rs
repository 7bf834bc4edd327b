//! What a receiver reports beside the stream's edge, and what a sender makes of it: islands, duplicates, and what comes too late
//! to be believed.

use std::time::Duration;

use dualq_tcp::{
    Ack, Algorithm, Control, Data, EcnFlags, EcnStyle, Receiver, ReceiverConfig, SackBlock, Sender,
    SenderConfig,
};
use dualq_units::{Bytes, Ecn, Instant};

const MSS: u64 = 1448;

fn ms(milliseconds: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(milliseconds)
}

fn micros(microseconds: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(microseconds)
}

fn packet(number: u64, timestamp_ms: u32) -> Data {
    Data {
        seq: number * MSS,
        payload: MSS as u32,
        segments: 1,
        mss: MSS as u16,
        timestamp_ms,
        echo_ms: 0,
        ecn: Ecn::NotEct,
        flags: EcnFlags::NONE,
        options: 0,
        control: Control::NONE,
    }
}

/// A receiver that has taken segment 0, and what it says to a packet.
struct Listener(Receiver);

impl Listener {
    fn new() -> Self {
        let mut receiver = Receiver::new(ReceiverConfig::default());
        let syn = Data { control: Control::SYN, payload: 0, ..packet(0, 1_000) };
        receiver.on_data(ms(1_000), &syn, &mut |_| ());
        receiver.on_data(ms(1_010), &packet(0, 1_010), &mut |_| ());
        Self(receiver)
    }

    fn hear(&mut self, now: Instant, data: &Data) -> Vec<Ack> {
        let mut said = Vec::new();
        self.0.on_data(now, data, &mut |ack| said.push(ack));
        said
    }
}

/// Segments that an acknowledgement tells of, by number.
fn told(ack: &Ack) -> Vec<(u64, u64)> {
    ack.blocks().iter().map(|block| (block.start / MSS, block.end / MSS)).collect()
}

/// How many packets from `number` on are acknowledged one by one.
fn quick(listener: &mut Listener, now_ms: u32, number: u64, ecn: Ecn) -> usize {
    let packets = (number..60).map(|number| Data { ecn, ..packet(number, now_ms) });
    packets.take_while(|data| listener.hear(ms(now_ms.into()), data).len() == 1).count()
}

/// Linux: `tcp_event_data_recv` looks at the mark behind what makes the first acknowledgements quick. A mark on the first data
/// must not leave only two of these.
#[test]
fn a_mark_on_the_first_data_leaves_the_first_acknowledgements_quick() {
    let [marked, unmarked] = [Ecn::Ce, Ecn::Ect0].map(|ecn| {
        // While the window grows, all are quick.
        let fixed_buffer = Some(Bytes(60_000));
        let ecn_style = EcnStyle::Classic;
        let config = ReceiverConfig { ecn: ecn_style, fixed_buffer, ..ReceiverConfig::default() };
        let mut listener = Listener(Receiver::new(config));
        let flags = EcnFlags::ASKS_CLASSIC;
        listener
            .hear(ms(100), &Data { control: Control::SYN, payload: 0, flags, ..packet(0, 100) });
        quick(&mut listener, 111, 0, ecn)
    });
    assert_eq!(marked, unmarked);
}

/// Linux: `tcp_dec_quickack_mode`. What is said to an old packet is none of the first quick acknowledgements.
#[test]
fn what_is_said_without_new_data_does_not_count_as_quick() {
    let [alone, with_old] = [0, 1].map(|old| {
        let mut listener = Listener::new();
        for _ in 0..old {
            let said = listener.hear(ms(1_011), &Data { payload: 0, ..packet(0, 1_010) });
            assert_eq!(said.len(), 1);
        }
        quick(&mut listener, 1_011, 1, Ecn::NotEct)
    });
    assert_eq!(alone, with_old);
}

/// Linux: `tcp_paws_check`. A retransmission that overtakes takes those with it that are older by two milliseconds and more.
#[test]
fn what_is_overtaken_by_two_milliseconds_is_refused() {
    let mut listener = Listener::new();
    for number in 2..5 {
        listener.hear(ms(1_020), &packet(number, 1_020));
    }
    listener.hear(ms(1_030), &packet(1, 1_030));
    assert_eq!(listener.0.received(), 5 * MSS);
    let said = listener.hear(ms(1_031), &packet(5, 1_028));
    assert_eq!((said.len(), said[0].ack, said[0].blocks().len()), (1, 5 * MSS, 0), "at once");
    assert_eq!(listener.0.received(), 5 * MSS);
    let said = listener.hear(ms(1_031), &packet(2, 1_028));
    assert!(said[0].has(Control::DSACK) && told(&said[0]) == [(2, 3)]);
    listener.hear(ms(1_032), &packet(5, 1_029));
    assert_eq!(listener.0.received(), 6 * MSS, "one millisecond is nothing");
    let said = listener.hear(ms(1_033), &packet(7, 1_033));
    assert_eq!(said[0].echo_ms, 1_030, "an older timestamp is not echoed");
}

/// Linux: `tcp_sequence` comes before `tcp_replace_ts_recent`. What was sent again without need and comes ahead of all that waits
/// in a queue takes nothing with it; it is answered at once, as what is all old.
#[test]
fn what_is_all_old_overtakes_nothing() {
    let mut listener = Listener::new();
    for number in 1..5 {
        listener.hear(ms(1_020), &packet(number, 1_020));
    }
    let said = listener.hear(ms(1_030), &packet(2, 1_029));
    assert_eq!((said.len(), said[0].ack), (1, 5 * MSS));
    assert!(said[0].has(Control::DSACK) && told(&said[0]) == [(2, 3)]);
    for number in 5..8 {
        listener.hear(ms(1_031), &packet(number, 1_021));
    }
    assert_eq!(listener.0.received(), 8 * MSS);
}

/// Linux: `tcp_data_queue` begins without a duplicate to report, and one behind a gap is no reason to hurry
/// (`tcp_data_queue_ofo`).
#[test]
fn a_duplicate_is_told_at_once_or_not_at_all() {
    let mut listener = Listener::new();
    for number in 0..40 {
        listener.hear(ms(1_020), &packet(2 + number, 1_020));
    }
    // Acknowledgements are compressed by now.
    let said = listener.hear(ms(1_030), &packet(10, 1_020));
    assert!(said.is_empty(), "{said:?}");
    let mut said = listener.hear(ms(1_030), &packet(42, 1_030));
    listener.0.on_timer(ms(1_040), &mut |ack| said.push(ack));
    assert_eq!(said.len(), 1);
    assert!(!said[0].has(Control::DSACK) && told(&said[0]) == [(2, 43)], "{said:?}");
    // With nothing after it, it is told.
    listener.hear(ms(1_050), &packet(10, 1_050));
    listener.0.on_timer(ms(1_060), &mut |ack| said.push(ack));
    assert!(said[1].has(Control::DSACK) && told(&said[1]) == [(10, 11), (2, 43)], "{said:?}");
    // Of the stream itself always.
    let said = listener.hear(ms(1_070), &packet(0, 1_070));
    assert!(said[0].has(Control::DSACK) && told(&said[0]) == [(0, 1), (2, 43)], "{said:?}");
}

/// Linux: `tcp_sack_new_ofo_skb` with `TCP_SACK_BLOCKS_EXPECTED`.
#[test]
fn what_waits_is_told_before_there_is_a_third_island() {
    let mut listener = Listener::new();
    for number in 0..40 {
        listener.hear(ms(1_020), &packet(2 + number, 1_020));
    }
    assert!(listener.hear(micros(1_030_000), &packet(50, 1_030)).is_empty());
    let said = listener.hear(micros(1_030_100), &packet(60, 1_030));
    assert_eq!(said.len(), 1);
    assert_eq!(told(&said[0]), [(50, 51), (2, 42)], "without the third");
    // The third is not told before another packet comes.
    assert!(listener.0.next_timer() > ms(1_100));
    assert!(listener.hear(micros(1_030_200), &packet(61, 1_030)).is_empty());
    let said = listener.hear(micros(1_030_300), &packet(51, 1_030));
    assert!(said.is_empty(), "it is the second of them: {said:?}");
}

fn ack(edge: u64) -> Ack {
    Ack { ack: edge * MSS, window: 1 << 20, ..Ack::default() }
}

fn blocks(ack: Ack, numbers: &[(u64, u64)], dsack: bool) -> Ack {
    let control = Control::DSACK.when(dsack);
    let mut blocks = [SackBlock::default(); 3];
    for (block, (start, end)) in blocks.iter_mut().zip(numbers) {
        *block = SackBlock { start: start * MSS, end: end * MSS };
    }
    Ack { blocks, block_count: numbers.len() as u8, control, ..ack }
}

/// A sender, its clock, and the segments that it sends in answer to each acknowledgement.
struct Speaker {
    sender: Sender,
    now: Instant,
}

impl Speaker {
    fn new(config: SenderConfig, bytes: u64) -> Self {
        let mut sender = Sender::new(config);
        sender.write(bytes);
        let mut speaker = Self { sender, now: ms(1_000) };
        speaker.sent();
        let flags = if config.ecn == EcnStyle::Off { EcnFlags::NONE } else { EcnFlags::ECE };
        speaker.answer(20, &Ack { control: Control::SYN, flags, ..ack(0) });
        speaker
    }

    fn sent(&mut self) -> Vec<(u64, u16)> {
        let mut all = Vec::new();
        loop {
            let before = all.len();
            self.sender.transmit(self.now, &mut |transmission| all.push(transmission.data));
            let left = all[before..].iter().map(|data| self.sender.on_departure(data.payload));
            if !left.fold(false, |more, throttled| more | throttled) {
                all.retain(|data| data.payload > 0);
                return all.iter().map(|data| (data.seq / MSS, data.segments)).collect();
            }
        }
    }

    fn answer(&mut self, after_ms: u64, ack: &Ack) -> Vec<(u64, u16)> {
        self.now = self.now + Duration::from_millis(after_ms);
        let echo_ms = self.now.as_nanos() / 1_000_000 - 20;
        self.sender.on_ack(self.now, &Ack { echo_ms: echo_ms as u32, ..*ack });
        self.sent()
    }
}

/// Linux: `tcp_dsack_seen`. A duplicate is delivered, so that a reduction by PRR lets a packet go for it.
#[test]
fn a_duplicate_is_a_packet_delivered() {
    let echoes = |duplicate: bool| {
        let mut speaker = Speaker::new(
            SenderConfig {
                ecn: EcnStyle::Classic,
                algorithm: Algorithm::Reno,
                ..Default::default()
            },
            u64::MAX,
        );
        speaker.answer(20, &blocks(ack(0), &[(4, 10)], false));
        let again = speaker.answer(1, &blocks(ack(0), &[(4, 10)], false));
        assert_eq!(again, []);
        assert_eq!(speaker.sender.stats().retransmissions, 4);
        let marked = Ack { flags: EcnFlags::ECE, ..ack(0) };
        if duplicate {
            speaker.answer(20, &blocks(marked, &[(5, 6), (4, 10)], true));
        } else {
            speaker.answer(20, &blocks(marked, &[(4, 10)], false));
        }
        speaker.sender.stats().ecn_echoes
    };
    assert_eq!((echoes(false), echoes(true)), (0, 1));
}

/// Linux: `tcp_ack` looks at duplicates also where nothing is outstanding.
#[test]
fn the_last_duplicate_undoes_a_reduction_that_was_not_needed() {
    let config = SenderConfig { algorithm: Algorithm::Reno, ..SenderConfig::default() };
    let mut speaker = Speaker::new(config, 10 * MSS);
    let again = speaker.answer(20, &blocks(ack(0), &[(2, 10)], false));
    assert_eq!(again, [(0, 2)]);
    speaker.answer(40, &ack(10));
    assert!(speaker.sender.is_done() && speaker.sender.cwnd() == 5, "{}", speaker.sender.cwnd());
    speaker.answer(19, &blocks(ack(10), &[(0, 1)], true));
    assert_eq!(speaker.sender.cwnd(), 5);
    speaker.answer(1, &blocks(ack(10), &[(1, 2)], true));
    assert_eq!(speaker.sender.cwnd(), 10);
}

/// What a receiver whose program reads every 10 ms offers in the end. Packets come every 100 µs and one at the instant at which the program
/// wakes: while that reads, or before.
fn offered_by_a_slow_reader(reads_meanwhile: bool) -> u64 {
    let read_interval = Duration::from_millis(10);
    let mut listener =
        Listener(Receiver::new(ReceiverConfig { read_interval, ..ReceiverConfig::default() }));
    let syn = Data { control: Control::SYN, payload: 0, ..packet(0, 1_000) };
    listener.hear(ms(0), &syn);
    let echo = |number, echo_ms| Data { echo_ms, ..packet(number, 1_000 + echo_ms) };
    let mut number = 0;
    let mut window = 0;
    for round in 1..=3 {
        for part in 0..44 {
            let now = micros(10_000 * round + 100 * part);
            // A round trip of a millisecond.
            let said = listener.hear(now, &echo(number, (10 * round - 1) as u32));
            window = said.last().map_or(window, |ack| ack.window);
            number += 1;
            if part == 0 && round == 1 {
                listener.0.on_timer(now, &mut |_| ());
                listener.0.on_timer(listener.0.next_timer(), &mut |_| ());
            }
        }
        let now = listener.0.next_timer();
        assert!(listener.0.is_next_to_read());
        let last = echo(number, (10 * round + 9) as u32);
        number += 1;
        if reads_meanwhile {
            listener.0.begin_read(now);
            listener.hear(now, &last);
        } else {
            listener.hear(now, &last);
            listener.0.begin_read(now);
        }
        while listener.0.is_reading() {
            listener.0.on_timer(listener.0.next_timer(), &mut |ack| window = ack.window);
        }
    }
    window
}

/// Linux: what arrives while a program is in `recv` waits until it has read what was there (`sk_backlog`), and with the time of that arrival
/// the kernel looks once more at how much was read (`tcp_rcv_space_adjust`): the buffer grows, which else it does not for who reads
/// seldom. In the world `kernel` the window of a flow of `wild-2-102` grew tenfold in 30 ms after one such read.
#[test]
fn packets_that_come_while_a_program_reads_let_the_buffer_grow() {
    let (meanwhile, before) = (offered_by_a_slow_reader(true), offered_by_a_slow_reader(false));
    assert!(meanwhile > before + 50_000, "{meanwhile} {before}");
}
