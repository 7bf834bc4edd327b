//! What a receiver reports beside the stream's edge, and what a sender makes of it: islands, duplicates, and what comes too late
//! to be believed.

use std::time::Duration;

use dualq_tcp::{Ack, Algorithm, SackBlock, Sender, SenderConfig};
use dualq_units::Instant;

const MSS: u64 = 1448;

fn ms(milliseconds: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(milliseconds)
}

fn ack(edge: u64) -> Ack {
    Ack { ack: edge * MSS, window: 1 << 20, ..Ack::default() }
}

fn blocks(ack: Ack, numbers: &[(u64, u64)], dsack: bool) -> Ack {
    let mut blocks = [SackBlock::default(); 3];
    for (block, (start, end)) in blocks.iter_mut().zip(numbers) {
        *block = SackBlock { start: start * MSS, end: end * MSS };
    }
    Ack { blocks, block_count: numbers.len() as u8, dsack, ..ack }
}

/// A sender, its clock, and the segments that it sends in answer to each acknowledgement.
struct Speaker {
    sender: Sender,
    now: Instant,
}

impl Speaker {
    fn new(config: SenderConfig) -> Self {
        let mut sender = Sender::new(config);
        sender.write(u64::MAX);
        let mut speaker = Self { sender, now: ms(1_000) };
        speaker.sent();
        speaker.answer(20, &Ack { syn: true, ece: config.ecn, ..ack(0) });
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
        let mut speaker = Speaker::new(SenderConfig {
            ecn: true,
            algorithm: Algorithm::Reno,
            ..Default::default()
        });
        speaker.answer(20, &blocks(ack(0), &[(4, 10)], false));
        let again = speaker.answer(1, &blocks(ack(0), &[(4, 10)], false));
        assert_eq!(again, []);
        assert_eq!(speaker.sender.stats().retransmissions, 4);
        let marked = Ack { ece: true, ..ack(0) };
        if duplicate {
            speaker.answer(20, &blocks(marked, &[(5, 6), (4, 10)], true));
        } else {
            speaker.answer(20, &blocks(marked, &[(4, 10)], false));
        }
        speaker.sender.stats().ecn_echoes
    };
    assert_eq!((echoes(false), echoes(true)), (0, 1));
}
