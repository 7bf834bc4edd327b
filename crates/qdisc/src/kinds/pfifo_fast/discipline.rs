//! The three bands.

use std::collections::VecDeque;

use dualq_units::Instant;

use super::{BANDS, Config, Options, PRIOMAP};
use crate::kinds::Grammar;
use crate::show::{self, Counters, OwnStats};
use crate::{ChangeError, Departure, Device, DropReason, Dropped, FlowPacket, Qdisc, Spec};

/// The discipline.
pub(super) struct PfifoFast<P> {
    config: Config,
    bands: [VecDeque<(Instant, P)>; BANDS],
    counters: Counters,
}

impl<P: FlowPacket> PfifoFast<P> {
    /// Empty bands.
    pub(super) fn new(device: &Device) -> Self {
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
    fn enqueue(&mut self, now: Instant, packet: P, dropped: &mut dyn FnMut(Dropped<P>)) -> usize {
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
        _dropped: &mut dyn FnMut(Dropped<P>),
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
                dropped(Dropped { packet, band, reason: DropReason::Flushed });
            }
        }
    }

    fn change(
        &mut self,
        spec: &Spec,
        _dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Result<(), ChangeError> {
        match spec {
            // There is nothing to change.
            Spec::PfifoFast(_) => Ok(()),
            other => Err(ChangeError::other_kind(Options::NAME, other)),
        }
    }

    fn config(&self) -> crate::Config {
        crate::Config::PfifoFast(self.config)
    }

    fn stats(&self, _now: Instant) -> show::Stats {
        show::Stats { counters: self.counters, own: OwnStats::Nothing }
    }
}
