//! `pfifo_fast`: three FIFOs, of which the first that holds a packet sends it (tc-pfifo_fast(8)).

use std::collections::VecDeque;

use dualq_units::Instant;

use super::{Departure, DropReason, Dropped, Qdisc};
use crate::show::{self, Counters, OwnStats};
use crate::{Device, FlowPacket};

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

/// The discipline.
pub struct PfifoFast<P> {
    config: Config,
    bands: [VecDeque<(Instant, P)>; BANDS],
    counters: Counters,
}

impl<P: FlowPacket> PfifoFast<P> {
    /// Empty bands.
    #[must_use]
    pub fn new(device: &Device) -> Self {
        Self {
            config: Config { band_limit: device.tx_queue_length },
            bands: std::array::from_fn(|_| VecDeque::new()),
            counters: Counters::ZERO,
        }
    }
}

impl<P: FlowPacket> Qdisc<P> for PfifoFast<P> {
    fn bands(&self) -> &'static [&'static str] {
        &["band 0", "band 1", "band 2"]
    }

    #[inline(never)]
    fn enqueue(&mut self, now: Instant, packet: P, dropped: &mut impl FnMut(Dropped<P>)) -> usize {
        let band = usize::from(PRIOMAP[(packet.priority() & 0xf) as usize]);
        let queue = &mut self.bands[band];
        if queue.len() >= self.config.band_limit as usize {
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
        _dropped: &mut impl FnMut(Dropped<P>),
    ) -> Option<Departure<P>> {
        let band = self.bands.iter().position(|queue| !queue.is_empty())?;
        let (enqueued, packet) = self.bands[band].pop_front()?;
        self.counters.left(packet.length());
        Some(Departure {
            packet,
            band,
            sojourn: now - enqueued,
            marked_by_probability: false,
            marked_by_step: false,
        })
    }

    fn peek(&mut self, _now: Instant, _dropped: &mut impl FnMut(Dropped<P>)) -> Option<&P> {
        self.bands.iter().find_map(VecDeque::front).map(|(_, packet)| packet)
    }

    fn len(&self) -> usize {
        self.counters.backlog_packets as usize
    }

    fn next_timer(&self) -> Instant {
        Instant::NEVER
    }

    fn on_timer(&mut self, _now: Instant) {}

    fn reset(&mut self, dropped: &mut impl FnMut(Dropped<P>)) {
        self.counters.backlog_packets = 0;
        self.counters.backlog_bytes = 0;
        for (band, queue) in self.bands.iter_mut().enumerate() {
            for (_, packet) in queue.drain(..) {
                dropped(Dropped { packet, band, reason: DropReason::Flushed });
            }
        }
    }

    fn config(&self) -> crate::Config {
        crate::Config::PfifoFast(self.config)
    }

    fn stats(&self, _now: Instant) -> show::Stats {
        show::Stats { counters: self.counters, own: OwnStats::Nothing }
    }
}
