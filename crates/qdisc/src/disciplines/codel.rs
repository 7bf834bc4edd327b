//! `codel`: one queue that CoDel keeps short (RFC 8289, tc-codel(8)).

use std::time::Duration;

use dualq_units::Instant;

use super::codel_law::{Backlog, Law, Parameters, Source, Tally, Waiting, cut};
use super::pool::{Chain, Pool};
use super::{Departure, DropReason, Dropped, Qdisc};
use crate::show::{self, Counters, OwnStats};
use crate::{Device, Packet};

/// What a command line gives; `None` is for what it leaves open. Times are in microseconds, as tc sends them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "as in Config")]
pub struct Options {
    pub limit: Option<u32>,
    pub target_us: Option<u32>,
    pub interval_us: Option<u32>,
    pub ecn: Option<bool>,
    pub ce_threshold_us: Option<u32>,
}

/// All parameters of `codel`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Packets that it holds.
    pub limit: u32,
    /// The delay that is aimed for; times are cut to units of 1.024 µs, as Linux does.
    pub target: Duration,
    /// For how long the delay may be above that: about the longest usual round-trip time.
    pub interval: Duration,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// ECN-capable packets that waited longer are marked.
    pub ce_threshold: Option<Duration>,
}

impl Config {
    /// Linux's defaults.
    pub const DEFAULT: Self = Self {
        limit: 1000,
        target: cut(5_000),
        interval: cut(100_000),
        ecn: false,
        ce_threshold: None,
    };

    /// These parameters, but for what `options` give.
    #[must_use]
    pub fn with(self, options: &Options) -> Self {
        Self {
            limit: options.limit.unwrap_or(self.limit),
            target: options.target_us.map_or(self.target, cut),
            interval: options.interval_us.map_or(self.interval, cut),
            ecn: options.ecn.unwrap_or(self.ecn),
            ce_threshold: options.ce_threshold_us.map(cut).or(self.ce_threshold),
        }
    }
}

/// What `codel` counts and where its law stands, under the names of `tc -s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Drops or marks since dropping began.
    pub count: u32,
    /// As many when dropping last began.
    pub lastcount: u32,
    /// How long the last packet had waited.
    pub ldelay: Duration,
    /// Whether packets are dropped or marked just now.
    pub dropping: bool,
    /// When the next one is due while that is so, in microseconds from now.
    pub drop_next_us: i64,
    /// The longest packet.
    pub maxpacket: u32,
    /// Packets that the law marked.
    pub ecn_mark: u64,
    /// Packets that met a full queue.
    pub drop_overlimit: u64,
    /// Packets that `ce_threshold` marked.
    pub ce_mark: u64,
}

/// The discipline.
pub struct Codel<P> {
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

impl<P: Packet> Codel<P> {
    /// An empty queue.
    #[must_use]
    pub fn new(options: &Options, device: &Device) -> Self {
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

    pub(super) fn change(&mut self, options: &Options, dropped: &mut impl FnMut(Dropped<P>)) {
        self.config = self.config.with(options);
        self.parameters = parameters(&self.config, self.mtu);
        while self.backlog.packets > u64::from(self.config.limit) {
            self.flush(dropped);
        }
    }

    fn flush(&mut self, dropped: &mut impl FnMut(Dropped<P>)) {
        if let Some(waiting) = self.parts().2.pop() {
            dropped(Dropped { packet: waiting.packet, band: 0, reason: DropReason::Flushed });
        }
    }

    fn choose(
        &mut self,
        now: Instant,
        dropped: &mut impl FnMut(Dropped<P>),
    ) -> Option<Departure<P>> {
        let (law, parameters, mut source) = self.parts();
        law.dequeue(now, parameters, &mut source, dropped)
    }
}

fn parameters(config: &Config, mtu: u32) -> Parameters {
    Parameters::new(config.target, config.interval, config.ce_threshold, config.ecn, mtu)
}

impl<P: Packet> Qdisc<P> for Codel<P> {
    fn bands(&self) -> &'static [&'static str] {
        &["codel"]
    }

    #[inline(never)]
    fn enqueue(&mut self, now: Instant, packet: P, dropped: &mut impl FnMut(Dropped<P>)) -> usize {
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
        dropped: &mut impl FnMut(Dropped<P>),
    ) -> Option<Departure<P>> {
        let departure = self.peeked.take().or_else(|| self.choose(now, dropped))?;
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += u64::from(departure.packet.length());
        Some(departure)
    }

    fn peek(&mut self, now: Instant, dropped: &mut impl FnMut(Dropped<P>)) -> Option<&P> {
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

    fn reset(&mut self, dropped: &mut impl FnMut(Dropped<P>)) {
        if let Some(Departure { packet, .. }) = self.peeked.take() {
            dropped(Dropped { packet, band: 0, reason: DropReason::Flushed });
        }
        while !self.chain.is_empty() {
            self.flush(dropped);
        }
        self.law = Law::new();
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
