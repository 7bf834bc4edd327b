//! A data plane that takes packets in batches, as one on AF_XDP, `io_uring` or DPDK does: a ring of descriptors in, a ring out, the clock read
//! once for each batch, and no allocation. Prints how many packets a second go through the engine on one core; the rings are memory, so that
//! is the engine's own cost in such a loop, without a network card's.
//!
//! `cargo run --release -p dualpi2 --example batch`

use std::time::Instant;

use dualpi2::{Config, DualPi2, Ecn, Packet, SplitMix64};

/// Where a packet lies in the memory that is shared with the card, and what its headers said.
#[derive(Clone, Copy)]
struct Descriptor {
    address: u32,
    length: u32,
    ecn: Ecn,
}

/// Bytes of each frame's place.
const FRAME: u32 = 2048;
const MTU: u32 = 1514;

impl Packet for Descriptor {
    fn length(&self) -> u32 {
        self.length
    }

    fn memory(&self) -> u32 {
        FRAME
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn set_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }
}

/// What the loop has done.
#[derive(Debug, Default, PartialEq, Eq)]
struct Done {
    forwarded: u64,
    marked: u64,
    dropped: u64,
}

/// Packets that are handled with one reading of the clock.
const BATCH: u64 = 64;

/// So many batches have a place in the shared memory.
const BATCHES: u32 = 512;

/// Nanoseconds that a full frame takes on the link, which is 10 Gbit/s.
const SENT_NS: u64 = MTU as u64 * 8 / 10;

/// Offers one packet in so many nanoseconds, half of them L4S, and forwards what the link takes.
fn forward(packets: u64, every_ns: u64) -> Result<Done, dualpi2::ConfigError> {
    let mut queue = DualPi2::new(Config::for_mtu(MTU), MTU, SplitMix64::new(1), 0)?;
    queue.reserve(20_000);
    let mut received = [Descriptor { address: 0, length: MTU, ecn: Ecn::NotEct }; BATCH as usize];
    let mut sending = Vec::with_capacity(2 * BATCH as usize);
    let (mut now_ns, mut free_ns, mut done) = (0, 0, Done::default());
    for batch in 0..packets / BATCH {
        for (place, descriptor) in (0_u32..).zip(&mut received) {
            descriptor.address = (batch as u32 % BATCHES * BATCH as u32 + place) * FRAME;
            descriptor.ecn = if place % 2 == 0 { Ecn::Ect1 } else { Ecn::Ect0 };
        }
        // Where a card waits for work, this is the time that it is woken.
        now_ns += BATCH * every_ns;
        queue.poll(now_ns);
        let mut dropped = 0;
        for descriptor in received {
            queue.enqueue(now_ns, descriptor, &mut |_| dropped += 1);
        }
        // What the link takes until the next batch comes.
        while free_ns < now_ns + BATCH * every_ns {
            let Some(departure) = queue.dequeue(now_ns, &mut |_| dropped += 1) else {
                free_ns = free_ns.max(now_ns);
                break;
            };
            free_ns = free_ns.max(now_ns) + SENT_NS;
            sending.push(departure.packet);
        }
        done.dropped += dropped;
        done.forwarded += sending.len() as u64;
        done.marked += sending.iter().filter(|packet| packet.ecn == Ecn::Ce).count() as u64;
        // Here the card's ring would get them.
        std::hint::black_box(&sending);
        sending.clear();
    }
    Ok(done)
}

fn main() -> Result<(), dualpi2::ConfigError> {
    const PACKETS: u64 = 20_000_000;
    for (what, every_ns) in [
        ("nine tenths of the link", SENT_NS * 10 / 9),
        ("a tenth more than the link takes", SENT_NS * 10 / 11),
    ] {
        let begun = Instant::now();
        let done = forward(PACKETS, every_ns)?;
        let millions = PACKETS as f64 / begun.elapsed().as_secs_f64() / 1e6;
        let Done { forwarded, marked, dropped } = done;
        println!(
            "{what}: {millions:.1} million packets a second ({forwarded} forwarded, {marked} marked, {dropped} dropped)"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_forwarded_as_it_is() {
        let done = forward(64_000, SENT_NS * 10 / 9).unwrap();
        assert_eq!((done.forwarded, done.dropped), (64_000, 0));
    }

    #[test]
    fn what_does_not_fit_is_marked_and_dropped_if_that_is_not_heeded() {
        let done = forward(640_000, SENT_NS * 10 / 11).unwrap();
        assert!(done.marked > 10_000 && done.dropped > 10_000, "{done:?}");
        assert!(done.forwarded > 570_000, "{done:?}");
    }
}
