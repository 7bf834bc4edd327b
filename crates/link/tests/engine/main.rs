//! A direction's engine with a clock of the test's own, and no device.
#![cfg(target_os = "linux")]

mod frames;
mod icmp;
mod paths;
mod segments;

use std::time::Duration;

use dualq_link::{Engine, Options};
use dualq_scenario::Passage;
use dualq_units::Instant;

/// An engine that starts at a time that is not zero.
fn engine(passage: &Passage, options: &Options) -> Engine {
    Engine::new(passage, options, start(), None)
}

fn start() -> Instant {
    Instant::ZERO + Duration::from_secs(1)
}

/// What is written now.
fn written(engine: &mut Engine, now: Instant) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    engine.write(
        || now,
        |pieces| {
            frames.push(pieces.concat());
            true
        },
    );
    frames
}

/// All that is written from now on, each with the time at which it was due: the clock goes to each in turn.
fn all_written(engine: &mut Engine, mut now: Instant) -> Vec<(Instant, Vec<u8>)> {
    let mut frames: Vec<_> = written(engine, now).into_iter().map(|frame| (now, frame)).collect();
    while engine.next_due() < Instant::NEVER {
        now = engine.next_due().max(now);
        engine.advance(now);
        frames.extend(written(engine, now).into_iter().map(|frame| (now, frame)));
    }
    frames
}

fn passage(qdisc: &str, rate: &str) -> Passage {
    let bottleneck = Some((rate.parse().unwrap(), qdisc.parse().unwrap()));
    Passage { bottleneck, mtu: 1500, ..Passage::default() }
}
