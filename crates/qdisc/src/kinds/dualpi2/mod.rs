//! `dualpi2`: the DualQ Coupled AQM with PI2 (RFC 9332, tc-dualpi2(8)). What it does is in the crate `dualpi2`.

mod about;
mod discipline;
mod grammar;
mod show;

use dualpi2::{DualPi2, Packet, Random, SplitMix64};
use dualq_units::Instant;

use crate::kinds::Kind;
use crate::{Device, Discipline, FlowPacket};

pub use dualpi2::{Change as Options, Config, Stats};

/// A [`Spec`](crate::Spec) is made by the grammar, whose bounds are the engine's: a property test builds what it accepts.
const ACCEPTED: &str = "the grammar lets no value pass that is out of bounds";

fn build<P: Packet, R: Random>(
    options: &Options,
    device: &Device,
    random: R,
    now: Instant,
) -> DualPi2<P, R> {
    let mtu = device.max_frame;
    let parameters = Config::for_mtu(mtu).with(options, mtu).expect(ACCEPTED);
    DualPi2::new(parameters, mtu, random, now.as_nanos()).expect(ACCEPTED)
}

/// What the engine reads back.
fn config(options: &Options, device: &Device) -> Config {
    /// No packet is ever put into the queue that this is for.
    enum Nothing {}
    impl Packet for Nothing {
        fn length(&self) -> u32 {
            match *self {}
        }
        fn memory(&self) -> u32 {
            match *self {}
        }
        fn ecn(&self) -> dualpi2::Ecn {
            match *self {}
        }
        fn set_ce(&mut self) {}
    }
    build::<Nothing, _>(options, device, SplitMix64::new(0), Instant::ZERO).config()
}

impl Kind for Options {
    type Config = Config;

    fn configure(&self, device: &Device) -> Config {
        config(self, device)
    }

    fn build<P: FlowPacket, R: Random + Send + 'static>(
        &self,
        device: &Device,
        random: R,
        now: Instant,
    ) -> Discipline<P, R> {
        Discipline::Dualpi2(build(self, device, random, now))
    }
}
