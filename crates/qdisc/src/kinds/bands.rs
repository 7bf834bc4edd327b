//! FIFOs of which the first that holds a packet sends it: what `pfifo_fast` and `prio` are.

use std::collections::VecDeque;

use dualq_units::Instant;

use super::prio;
use crate::show::{self, Counters, OwnStats};
use crate::{ChangeError, Config, Departure, DropReason, Dropped, FlowPacket, Qdisc, Spec};

const NAMES: [&str; MOST] = [
    "band 0", "band 1", "band 2", "band 3", "band 4", "band 5", "band 6", "band 7", "band 8",
    "band 9", "band 10", "band 11", "band 12", "band 13", "band 14", "band 15",
];

/// The most bands that there can be (`TCQ_PRIO_BANDS`).
pub(super) const MOST: usize = 16;

/// Which band a packet goes to, by its priority.
pub(super) type Priomap = [u8; 16];

/// The discipline, with room for `N` bands.
pub(super) struct Bands<P, const N: usize> {
    config: Config,
    priomap: Priomap,
    /// Packets that each band holds.
    limit: u32,
    bands: [VecDeque<(Instant, P)>; N],
    /// Of each band, if it lies in a ring.
    rings: Option<[Ring; N]>,
    counters: Counters,
}

/// Places of a ring whose packets have left, and which take none yet: they are cleared several at a time, and at its end (Linux:
/// `__ptr_ring_discard_one`).
#[derive(Clone, Copy, Debug, Default)]
struct Ring {
    /// Where the next packet lies that leaves.
    head: u32,
    uncleared: u32,
}

impl Ring {
    /// Two lines of the cache of pointers are cleared at once (Linux: `__ptr_ring_set_size`).
    const BATCH: u32 = 16;

    /// A packet leaves a ring of `size`.
    const fn leave(&mut self, size: u32) {
        let batch = if Self::BATCH > size / 2 { 1 } else { Self::BATCH };
        self.head += 1;
        self.uncleared += 1;
        if self.uncleared >= batch || self.head >= size {
            self.uncleared = 0;
        }
        if self.head >= size {
            self.head = 0;
        }
    }
}

impl<P: FlowPacket, const N: usize> Bands<P, N> {
    /// Empty bands of `limit` packets each.
    pub(super) fn new(config: Config, priomap: Priomap, limit: u32) -> Self {
        let bands = std::array::from_fn(|_| VecDeque::new());
        Self { config, priomap, limit, bands, rings: None, counters: Counters::ZERO }
    }

    /// The same, each of which lies in a ring: what has left takes room for a little while.
    pub(super) fn in_rings(config: Config, priomap: Priomap, size: u32) -> Self {
        Self { rings: Some([Ring::default(); N]), ..Self::new(config, priomap, size) }
    }

    /// Takes over `bands` bands of other parameters. What waits in bands that are no more is gone.
    fn change_bands(&mut self, options: &prio::Options, dropped: &mut dyn FnMut(Dropped<P>)) {
        let (bands, priomap) = (options.bands(), options.priomap());
        self.priomap = priomap;
        if let Config::Prio(config) = &mut self.config {
            (config.bands, config.priomap) = (bands, priomap);
        }
        for (band, queue) in self.bands.iter_mut().enumerate().skip(bands.into()) {
            for (_, packet) in queue.drain(..) {
                self.counters.backlog_packets -= 1;
                self.counters.backlog_bytes -= u64::from(packet.length());
                self.counters.drops += 1;
                dropped(Dropped { packet, band, reason: DropReason::Flushed });
            }
        }
    }
}

impl<P: FlowPacket, const N: usize> Qdisc<P> for Bands<P, N> {
    fn bands(&self) -> &'static [&'static str] {
        let bands = match &self.config {
            Config::Prio(config) => config.bands.into(),
            _ => N,
        };
        NAMES.get(..bands).unwrap_or(&NAMES)
    }

    #[inline(never)]
    fn enqueue(&mut self, now: Instant, packet: P, dropped: &mut dyn FnMut(Dropped<P>)) -> usize {
        let band = usize::from(self.priomap[(packet.priority() & 0xf) as usize]);
        let queue = &mut self.bands[band];
        let uncleared = self.rings.as_ref().map_or(0, |rings| rings[band].uncleared);
        if queue.len() + uncleared as usize >= self.limit as usize {
            self.counters.drops += 1;
            dropped(Dropped { packet, band, reason: DropReason::Overlimit });
            return 0;
        }
        self.counters.backlog_packets += 1;
        self.counters.backlog_bytes += u64::from(packet.length());
        queue.push_back((now, packet));
        1
    }

    #[inline(never)]
    fn dequeue(
        &mut self,
        now: Instant,
        _dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Option<Departure<P>> {
        let band = self.bands.iter().position(|queue| !queue.is_empty())?;
        let (enqueued, packet) = self.bands[band].pop_front()?;
        self.counters.left(&packet);
        if let Some(rings) = &mut self.rings {
            rings[band].leave(self.limit);
        }
        Some(Departure {
            packet,
            band,
            sojourn_ns: now.nanos_since(enqueued),
            marked_by_probability: false,
            marked_by_step: false,
        })
    }

    fn peek(&mut self, _now: Instant, _dropped: &mut dyn FnMut(Dropped<P>)) -> Option<&P> {
        self.bands.iter().find_map(VecDeque::front).map(|(_, packet)| packet)
    }

    fn len(&self) -> usize {
        self.counters.backlog_packets as usize
    }

    fn next_timer(&self) -> Instant {
        Instant::NEVER
    }

    fn on_timer(&mut self, _now: Instant) {}

    fn reset(&mut self, dropped: &mut dyn FnMut(Dropped<P>)) {
        self.counters.backlog_packets = 0;
        self.counters.backlog_bytes = 0;
        for (band, queue) in self.bands.iter_mut().enumerate() {
            for (_, packet) in queue.drain(..) {
                if let Some(rings) = &mut self.rings {
                    rings[band].leave(self.limit);
                }
                dropped(Dropped { packet, band, reason: DropReason::Flushed });
            }
        }
    }

    fn change(
        &mut self,
        spec: &Spec,
        dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Result<(), ChangeError> {
        match (&self.config, spec) {
            // There is nothing to change.
            (Config::PfifoFast(_), Spec::PfifoFast(_)) => Ok(()),
            (Config::Prio(_), Spec::Prio(options)) => {
                self.change_bands(options, dropped);
                Ok(())
            }
            (config, other) => Err(ChangeError::other_kind(config.kind(), other)),
        }
    }

    fn config(&self) -> Config {
        self.config.clone()
    }

    fn stats(&self, _now: Instant) -> show::Stats {
        show::Stats { counters: self.counters, own: OwnStats::Nothing }
    }
}
