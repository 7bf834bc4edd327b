//! `prio`: up to sixteen FIFOs, of which the first that holds a packet sends it (tc-prio(8)).
//!
//! Each band is a `pfifo`, which is what the kernel puts there; other disciplines in them, and filters, are not here.

mod about;
mod grammar;
mod show;

use dualpi2::Random;
use dualq_units::Instant;

use crate::kinds::Kind;
use crate::kinds::bands::{Bands, MOST, Priomap};
use crate::kinds::pfifo_fast::PRIOMAP as DEFAULT_MAP;
use crate::{Device, Discipline, FlowPacket};

const DEFAULT_BANDS: u8 = 3;

/// What a command line gives; `None` is for what it leaves open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "as in Config")]
pub struct Options {
    pub bands: Option<u8>,
    pub priomap: Option<[u8; 16]>,
}

impl Options {
    /// How many bands there are.
    #[must_use]
    pub fn bands(&self) -> u8 {
        self.bands.unwrap_or(DEFAULT_BANDS)
    }

    /// The band of each priority.
    #[must_use]
    pub fn priomap(&self) -> Priomap {
        self.priomap.unwrap_or(DEFAULT_MAP)
    }
}

/// All parameters of `prio`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How many bands there are.
    pub bands: u8,
    /// The band of each priority.
    pub priomap: [u8; 16],
    /// Packets that each band holds: `txqueuelen`.
    pub band_limit: u32,
}

impl Kind for Options {
    type Config = Config;

    fn configure(&self, device: &Device) -> Config {
        let (bands, priomap) = (self.bands(), self.priomap());
        Config { bands, priomap, band_limit: device.tx_queue_length }
    }

    fn build<P: FlowPacket, R: Random + Send + 'static>(
        &self,
        device: &Device,
        _random: R,
        _now: Instant,
    ) -> Discipline<P, R> {
        let config = self.configure(device);
        let bands: Bands<P, MOST> =
            Bands::new(crate::Config::Prio(config), config.priomap, config.band_limit);
        Discipline::boxed(bands)
    }
}
