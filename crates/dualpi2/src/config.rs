//! The parameters, their defaults and bounds: those of Linux's `sch_dualpi2` and of `tc … dualpi2`.

use core::fmt;
use core::time::Duration;

use crate::scheduler::TOTAL_WEIGHT;

/// A PI gain (RFC 9332 Figure 2, lines 13 and 14) in units of 1/256 Hz: by how much a second of delay error moves the
/// probability in one update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gain(u32);

/// The largest gain that does not overflow the controller: 2³¹ - 1 units, about 8.4 MHz.
pub const MAX_GAIN: Gain = Gain((1 << 31) - 1);

impl Gain {
    /// A gain of `units` times 1/256 Hz.
    #[must_use]
    pub const fn from_256ths(units: u32) -> Self {
        Self(units)
    }

    /// The gain in units of 1/256 Hz.
    #[must_use]
    pub const fn as_256ths(self) -> u32 {
        self.0
    }

    /// The smallest gain there is.
    pub const MIN: Self = Self(1);

    const fn is_valid(self) -> bool {
        self.0 >= 1 && self.0 <= MAX_GAIN.0
    }
}

/// When the low latency queue's own AQM marks every L4S packet (the native L4S AQM of RFC 9332 Figure 5, as a step).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepThreshold {
    /// Packets that waited longer; at most `u32::MAX` nanoseconds count, about 4.3 s.
    Time(Duration),
    /// Packets that leave more than this many behind them.
    Packets(u32),
}

/// What gives when the coupled probability would pass 100 % (RFC 9332 §4.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overload {
    /// Delay is kept: ECN-capable packets are dropped too.
    Drop,
    /// ECN's freedom from loss is kept: queues grow up to the limit.
    Overflow,
}

/// Where the probabilities are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropPoint {
    /// When a packet arrives.
    Enqueue,
    /// When a packet's turn to leave has come, which tells senders sooner (RFC 9332 Appendix A.1 on Figure 4).
    Dequeue,
}

/// Which ECN fields send a packet to the low latency queue (RFC 9332 §2.3, Figure 3 line 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnMask {
    /// ECT(1) and CE, as RFC 9331 has it.
    L4s,
    /// ECT(0) as well: for DCTCP in a network of one's own.
    Any,
}

impl EcnMask {
    pub(crate) const fn bits(self) -> u8 {
        match self {
            Self::L4s => 0b01,
            Self::Any => 0b11,
        }
    }
}

/// All parameters. Later versions may have more: begin with [`Config::for_mtu`] and change what matters,
/// `Config { limit: 100, ..Config::for_mtu(1514) }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The most packets that both queues hold together (RFC 9332 Figure 2, line 5), 1 or more; default 10000.
    pub limit: u32,
    /// The most bytes of memory that both queues hold together, 1 or more; default `limit` times twice the MTU.
    pub memory_limit: u32,
    /// The classic queue's target delay (RFC 9332 Figure 2, line 8); default 15 ms.
    pub target: Duration,
    /// The controller's update interval (Figure 2, line 12), 1 µs to `u32::MAX` ns; default 16 ms.
    pub tupdate: Duration,
    /// The integral gain (Figure 2, line 13); default 41/256 Hz.
    pub alpha: Gain,
    /// The proportional gain (Figure 2, line 14); default 819/256 Hz.
    pub beta: Gain,
    /// The step of the low latency queue's own AQM (RFC 9332 Appendix A.1, Figure 5); default 1 ms.
    pub step_threshold: StepThreshold,
    /// The step spares a packet that found fewer packets than this in the low latency queue when it arrived (compare
    /// `Th_len`, RFC 9332 Figure 7, line 5a); default 0.
    pub min_qlen_step: u32,
    /// k, the coupling factor (RFC 9332 §2.1 and Appendix C.2), 1 or more; default 2.
    pub coupling_factor: u8,
    /// What gives on overload; default [`Overload::Drop`].
    pub overload: Overload,
    /// Where the AQM acts; default [`DropPoint::Dequeue`].
    pub drop_point: DropPoint,
    /// The share of the bytes, in percent up to 100, that classic gets at least while it has any (the weight of RFC 9332
    /// §4.2.2); default 10.
    pub classic_protection: u8,
    /// Which packets the ECN field sends to the low latency queue; default [`EcnMask::L4s`].
    pub ecn_mask: EcnMask,
    /// Whether aggregates (GSO) are taken apart before they are queued; default true.
    pub split_gso: bool,
}

impl Config {
    /// Linux's defaults on a device whose largest frame, link-layer header included, has `mtu` bytes (1514 for
    /// Ethernet). Only the memory limit depends on it.
    #[must_use]
    pub fn for_mtu(mtu: u32) -> Self {
        let limit = 10_000;
        Self {
            limit,
            memory_limit: default_memory_limit(limit, mtu),
            target: Duration::from_millis(15),
            tupdate: Duration::from_millis(16),
            alpha: Gain(41),
            beta: Gain(819),
            step_threshold: StepThreshold::Time(Duration::from_millis(1)),
            min_qlen_step: 0,
            coupling_factor: 2,
            overload: Overload::Drop,
            drop_point: DropPoint::Dequeue,
            classic_protection: 10,
            ecn_mask: EcnMask::L4s,
            split_gso: true,
        }
    }

    /// This configuration with `change` made to it, on a device with the given `mtu` (as in [`Config::for_mtu`]).
    ///
    /// # Errors
    /// If a value of the result is out of its bounds.
    pub fn with(mut self, change: &Change, mtu: u32) -> Result<Self, ConfigError> {
        if let Some(limit) = change.limit {
            self.limit = limit;
            self.memory_limit = default_memory_limit(limit, mtu);
        }
        macro_rules! take {
            ($($field:ident)*) => { $(if let Some(value) = change.$field { self.$field = value; })* };
        }
        take!(memory_limit target tupdate alpha beta step_threshold min_qlen_step coupling_factor);
        take!(overload drop_point classic_protection ecn_mask split_gso);
        self.check()?;
        Ok(self)
    }

    /// Checks every bound.
    ///
    /// # Errors
    /// For the first value that is out of its bounds.
    pub fn check(&self) -> Result<(), ConfigError> {
        let fits = |time: Duration| time.as_micros() <= u128::from(u32::MAX);
        let step_fits = match self.step_threshold {
            StepThreshold::Time(time) => fits(time),
            StepThreshold::Packets(_) => true,
        };
        let checks = [
            (self.limit >= 1, ConfigError::Limit),
            (self.memory_limit >= 1, ConfigError::MemoryLimit),
            (fits(self.target), ConfigError::Target),
            (self.tupdate >= Duration::from_micros(1) && fits(self.tupdate), ConfigError::Tupdate),
            (self.alpha.is_valid(), ConfigError::Alpha),
            (self.beta.is_valid(), ConfigError::Beta),
            (step_fits, ConfigError::StepThreshold),
            (self.coupling_factor >= 1, ConfigError::CouplingFactor),
            (self.classic_protection <= TOTAL_WEIGHT, ConfigError::ClassicProtection),
        ];
        checks.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, error)| Err(error))
    }
}

/// A change to some of the parameters: what a `tc qdisc change` carries. A new `limit` also sets the memory limit to its
/// default for that many packets, unless `memory_limit` is given too. Later versions may have more fields: write it
/// with `..Change::default()`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of Config")]
pub struct Change {
    pub limit: Option<u32>,
    pub memory_limit: Option<u32>,
    pub target: Option<Duration>,
    pub tupdate: Option<Duration>,
    pub alpha: Option<Gain>,
    pub beta: Option<Gain>,
    pub step_threshold: Option<StepThreshold>,
    pub min_qlen_step: Option<u32>,
    pub coupling_factor: Option<u8>,
    pub overload: Option<Overload>,
    pub drop_point: Option<DropPoint>,
    pub classic_protection: Option<u8>,
    pub ecn_mask: Option<EcnMask>,
    pub split_gso: Option<bool>,
}

/// A parameter out of its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each names the field of Config")]
pub enum ConfigError {
    Limit,
    MemoryLimit,
    Target,
    Tupdate,
    Alpha,
    Beta,
    StepThreshold,
    CouplingFactor,
    ClassicProtection,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Limit => "limit must be 1 packet or more",
            Self::MemoryLimit => "memlimit must be 1 byte or more",
            Self::Target => "target must be at most 4294.967295s",
            Self::Tupdate => "tupdate must be 1us to 4294.967295s",
            Self::Alpha => "alpha must be 0.00390625 (1/256) to 8388607.99609375 Hz",
            Self::Beta => "beta must be 0.00390625 (1/256) to 8388607.99609375 Hz",
            Self::StepThreshold => "step_thresh must be at most 4294.967295s",
            Self::CouplingFactor => "coupling_factor must be 1 to 255",
            Self::ClassicProtection => "classic_protection must be 0% to 100%",
        })
    }
}

impl core::error::Error for ConfigError {}

/// Linux's rule of thumb: packets of `mtu` bytes, doubled for what each costs in overhead.
fn default_memory_limit(limit: u32, mtu: u32) -> u32 {
    limit.saturating_mul(mtu.saturating_mul(2))
}
