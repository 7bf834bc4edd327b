//! The queue, which CoDel's law keeps short.

use dualq_units::Instant;

use super::law::{Backlog, Law, Parameters, Source, Tally, Waiting};
use super::{Config, Options, Stats};
use crate::kinds::Grammar;
use crate::pool::{Chain, Pool};
use crate::show::{self, Counters, OwnStats};
use crate::{ChangeError, Departure, Device, DropReason, Dropped, FlowPacket, Qdisc, Spec};

/// The discipline.
pub(super) struct Codel<P> {
    config: Config,
    parameters: Parameters,
    mtu: u32,
    pool: Pool<Waiting<P>>,
    chain: Chain,
    bytes: u64,
    law: Law,
    backlog: Backlog,
    tally: Tally,
    overlimit: u64,
    /// What [`Qdisc::peek`] showed.
    peeked: Option<Departure<P>>,
    counters: Counters,
}

impl<P: FlowPacket> Codel<P> {
    /// An empty queue.
    pub(super) fn new(options: &Options, device: &Device) -> Self {
        let config = Config::DEFAULT.with(options);
        Self {
            parameters: parameters(&config, device.max_frame),
            config,
            mtu: device.max_frame,
            pool: Pool::new(),
            chain: Chain::EMPTY,
            bytes: 0,
            law: Law::new(),
            backlog: Backlog::default(),
            tally: Tally::default(),
            overlimit: 0,
            peeked: None,
            counters: Counters::ZERO,
        }
    }

    /// The law, and what it works on.
    fn parts(&mut self) -> (&mut Law, &Parameters, Source<'_, P>) {
        let Self { law, parameters, pool, chain, bytes, backlog, tally, .. } = self;
        (law, parameters, Source { pool, chain, bytes, backlog, tally })
    }

    fn flush(&mut self, dropped: &mut dyn FnMut(Dropped<P>)) {
        if let Some(waiting) = self.parts().2.pop() {
            dropped(Dropped { packet: waiting.packet, band: 0, reason: DropReason::Flushed });
        }
    }

    #[inline(always)]
    fn choose(
        &mut self,
        now: Instant,
        dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Option<Departure<P>> {
        let (law, parameters, mut source) = self.parts();
        law.dequeue(now, parameters, &mut source, dropped)
    }
}

fn parameters(config: &Config, mtu: u32) -> Parameters {
    Parameters::new(config.target, config.interval, config.ce_threshold, config.ecn, mtu)
}

impl<P: FlowPacket> Qdisc<P> for Codel<P> {
    fn bands(&self) -> &'static [&'static str] {
        &["codel"]
    }

    #[inline(never)]
    fn enqueue(&mut self, now: Instant, packet: P, dropped: &mut dyn FnMut(Dropped<P>)) -> usize {
        if self.len() >= self.config.limit as usize {
            self.overlimit += 1;
            dropped(Dropped { packet, band: 0, reason: DropReason::Overlimit });
            return 0;
        }
        self.bytes += u64::from(packet.length());
        self.backlog.add(&packet);
        self.pool.push(&mut self.chain, Waiting { packet, enqueued: now });
        1
    }

    #[inline(never)]
    fn dequeue(
        &mut self,
        now: Instant,
        dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Option<Departure<P>> {
        // An `or_else` here hands the packet on by way of memory once more.
        let departure = match self.peeked {
            None => self.choose(now, dropped)?,
            Some(_) => self.peeked.take()?,
        };
        self.counters.sent(&departure.packet);
        Some(departure)
    }

    fn decides_early(&self) -> bool {
        true
    }

    fn peek(&mut self, now: Instant, dropped: &mut dyn FnMut(Dropped<P>)) -> Option<&P> {
        if self.peeked.is_none() {
            self.peeked = self.choose(now, dropped);
        }
        self.peeked.as_ref().map(|departure| &departure.packet)
    }

    #[inline]
    fn len(&self) -> usize {
        self.chain.len() + usize::from(self.peeked.is_some())
    }

    fn next_timer(&self) -> Instant {
        Instant::NEVER
    }

    fn on_timer(&mut self, _now: Instant) {}

    fn reset(&mut self, dropped: &mut dyn FnMut(Dropped<P>)) {
        if let Some(Departure { packet, .. }) = self.peeked.take() {
            dropped(Dropped { packet, band: 0, reason: DropReason::Flushed });
        }
        while !self.chain.is_empty() {
            self.flush(dropped);
        }
        self.law = Law::new();
    }

    fn change(
        &mut self,
        spec: &Spec,
        dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Result<(), ChangeError> {
        let Spec::Codel(options) = spec else {
            return Err(ChangeError::other_kind(Options::NAME, spec));
        };
        self.config = self.config.with(options);
        self.parameters = parameters(&self.config, self.mtu);
        while self.backlog.packets > u64::from(self.config.limit) {
            self.flush(dropped);
        }
        Ok(())
    }

    fn config(&self) -> crate::Config {
        crate::Config::Codel(self.config)
    }

    fn stats(&self, now: Instant) -> show::Stats {
        let dropping = self.law.dropping;
        let own = Stats {
            count: self.law.count,
            lastcount: self.law.last_count,
            ldelay: self.law.delay(),
            dropping,
            drop_next_us: if dropping { self.law.drop_next_micros(now) } else { 0 },
            maxpacket: self.tally.longest_packet,
            ecn_mark: self.tally.ecn_marks,
            drop_overlimit: self.overlimit,
            ce_mark: self.tally.ce_marks,
        };
        let peeked = self.peeked.as_ref().map_or(0, |departure| departure.packet.length());
        let counters = Counters {
            drops: self.tally.drops + self.overlimit,
            backlog_packets: self.len() as u64,
            backlog_bytes: self.backlog.bytes + u64::from(peeked),
            ..self.counters
        };
        show::Stats { counters, own: OwnStats::Codel(own) }
    }
}
