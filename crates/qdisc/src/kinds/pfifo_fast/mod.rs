//! `pfifo_fast`: three FIFOs, of which the first that holds a packet sends it (tc-pfifo_fast(8)).

mod about;
mod grammar;
mod show;

use dualpi2::Random;
use dualq_units::Instant;

use crate::kinds::Kind;
use crate::kinds::bands::Bands;
use crate::{Device, Discipline, FlowPacket};

/// The band of each priority; nobody can change it.
pub const PRIOMAP: [u8; 16] = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];

const BANDS: usize = 3;

/// Nothing can be told to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options;

/// Nothing of it is shown, but this counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Packets that each band holds: `txqueuelen`.
    pub band_limit: u32,
}

impl Kind for Options {
    type Config = Config;

    fn configure(&self, device: &Device) -> Config {
        Config { band_limit: device.tx_queue_length }
    }

    fn build<P: FlowPacket, R: Random + Send + 'static>(
        &self,
        device: &Device,
        _random: R,
        _now: Instant,
    ) -> Discipline<P, R> {
        let config = self.configure(device);
        let bands: Bands<P, BANDS> =
            Bands::in_rings(crate::Config::PfifoFast(config), PRIOMAP, config.band_limit);
        Discipline::boxed(bands)
    }
}
