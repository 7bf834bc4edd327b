//! A peer that says whatever it likes to a TCP sender and a receiver.

#![no_main]

use std::time::Duration;

use arbitrary::Arbitrary;
use dualq_tcp::{
    Ack, Algorithm, Control, Data, EcnBytes, EcnFlags, EcnOption, EcnStyle, Receiver,
    ReceiverConfig, SackBlock, Sender, SenderConfig,
};
use dualq_units::{Ecn, Instant};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    algorithm: u8,
    ecn: u8,
    established: bool,
    read_interval_us: u16,
    steps: Vec<Step>,
}

/// A number near what has been sent, or any.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Offset {
    Segments(u8),
    Bytes(u16),
    Any(u64),
}

impl Offset {
    fn get(self) -> u64 {
        match self {
            Self::Segments(segments) => u64::from(segments) * 1448,
            Self::Bytes(bytes) => bytes.into(),
            Self::Any(any) => any,
        }
    }
}

#[derive(Arbitrary, Debug)]
enum Step {
    Ack {
        ack: Offset,
        window: Offset,
        blocks: [(Offset, Offset); 3],
        block_count: u8,
        flags: u8,
        echo_ms: u32,
        timestamp_ms: u32,
    },
    Data {
        seq: Offset,
        payload: u32,
        segments: u16,
        mss: u16,
        tos: u8,
        flags: u8,
        echo_ms: u32,
    },
    Wait(u32),
    Transmit,
    Departure(u16),
    Write(u32),
    Stop,
    Close,
    BeginRead,
}

fuzz_target!(|input: Input| {
    let all = Algorithm::ALL;
    let styles = [EcnStyle::Off, EcnStyle::Classic, EcnStyle::Accurate];
    let ecn = styles[usize::from(input.ecn) % styles.len()];
    let algorithm = all[usize::from(input.algorithm) % all.len()];
    let options = [EcnOption::Disabled, EcnOption::Minimum, EcnOption::Full];
    let ecn_option = options[usize::from(input.ecn) / styles.len() % options.len()];
    let fast_open = input.ecn & 0x80 != 0;
    let config = SenderConfig { algorithm, ecn, ecn_option, fast_open, ..SenderConfig::default() };
    let mut sender = Sender::new(config);
    sender.know_cookie();
    let read_interval = Duration::from_micros(input.read_interval_us.into());
    let config = ReceiverConfig {
        ecn,
        ecn_option,
        fast_open,
        read_interval,
        closes: true,
        ..ReceiverConfig::default()
    };
    let mut receiver = Receiver::new(config);
    let mut now = Instant::ZERO + Duration::from_secs(1);
    sender.write(1 << 20);
    sender.transmit(now, &mut |_| ());
    if input.established {
        now = now + Duration::from_millis(10);
        let bits = if ecn == EcnStyle::Accurate { 0b011 } else { 0b001 };
        let flags = EcnFlags::from_bits(bits);
        let answer = Ack { control: Control::SYN, flags, window: 1 << 20, ..Ack::default() };
        sender.on_ack(now, &answer);
    }
    for step in input.steps {
        match step {
            Step::Ack { ack, window, blocks, block_count, flags, echo_ms, timestamp_ms } => {
                let (before, received) = (sender.acknowledged(), ack.get());
                let block = |(start, end): (Offset, Offset)| SackBlock {
                    start: start.get(),
                    end: end.get(),
                };
                let ack = Ack {
                    ack: received,
                    window: window.get(),
                    blocks: blocks.map(block),
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
                };
                sender.on_ack(now, &ack);
                // FIN is no byte.
                let after = sender.acknowledged();
                assert!(after == before || after == received.min(sender.sent()));
            }
            Step::Data { seq, payload, segments, mss, tos, flags, echo_ms } => {
                let data = Data {
                    seq: seq.get(),
                    payload,
                    segments,
                    mss,
                    timestamp_ms: echo_ms.rotate_left(7),
                    echo_ms,
                    ecn: [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(tos & 3)],
                    flags: EcnFlags::from_bits(flags),
                    // Few numbers mean something in a SYN.
                    options: if flags & 0b1100 == 0 { (flags & 0b11) * 4 } else { flags },
                    control: [
                        Control::PUSH.when(flags & 2 != 0),
                        Control::SYN.when(flags & 0b1100 == 0),
                        Control::FIN.when(flags & 0b11_0000 == 0),
                        Control::CUT.when(flags & 0b1_0000 != 0),
                    ]
                    .into_iter()
                    .fold(Control::NONE, Control::with),
                };
                receiver.on_data(now, &data, &mut |ack| assert!(ack.blocks().len() <= 3));
            }
            Step::Wait(nanos) => now = now + Duration::from_nanos(nanos.into()),
            Step::Transmit => sender.transmit(now, &mut |_| ()),
            Step::Departure(payload) => {
                sender.on_departure(payload.into());
            }
            Step::Write(bytes) => sender.write(bytes.into()),
            Step::Stop => sender.stop(),
            Step::Close => sender.close(),
            Step::BeginRead => receiver.begin_read(now),
        }
        if sender.next_timer() <= now {
            sender.on_timer(now);
        }
        if receiver.next_timer() <= now {
            receiver.on_timer(now, &mut |_| ());
        }
        assert!(sender.cwnd() >= 1);
    }
});
