//! The parameters in C's types.

use std::time::Duration;

use dualpi2::{Change, DropPoint, EcnMask, Gain, Overload, StepThreshold};

use crate::error::Error;

/// All parameters. `dualpi2_config_default` fills in Linux's defaults; the words in parentheses are those of `tc`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Config {
    /// The largest packet in bytes, link-layer header included (1514 on Ethernet). Fixed when the queue is created.
    pub mtu: u32,
    /// The most packets that both queues hold together, 1 or more (`limit`); default 10000.
    pub limit: u32,
    /// The most bytes of memory that both queues hold together (`memlimit`); default 0, which stands for `limit` times
    /// twice the MTU.
    pub memory_limit: u32,
    /// The classic queue's target delay in microseconds (`target`); default 15000.
    pub target_us: u32,
    /// How often the probability is updated, in microseconds, 1 or more (`tupdate`); default 16000.
    pub tupdate_us: u32,
    /// The integral gain in units of 1/256 Hz, 1 to 2147483647 (`alpha`); default 41.
    pub alpha_256ths: u32,
    /// The proportional gain in units of 1/256 Hz, 1 to 2147483647 (`beta`); default 819.
    pub beta_256ths: u32,
    /// From where on the low latency queue marks every L4S packet (`step_thresh`): a waiting time in microseconds or, with
    /// `step_in_packets`, a number of packets left behind; default 1000 us.
    pub step_threshold: u32,
    /// The step spares a packet that found fewer packets than this in the low latency queue (`min_qlen_step`); default 0.
    pub min_qlen_step: u32,
    /// Whether `step_threshold` counts packets: 0 no, else yes; default 0.
    pub step_in_packets: u8,
    /// k, by how much low latency feels the probability more, 1 or more (`coupling_factor`); default 2.
    pub coupling_factor: u8,
    /// The share of the bytes that classic gets at least, in percent up to 100 (`classic_protection`); default 10.
    pub classic_protection: u8,
    /// What gives on overload: with 0 the queues grow (`overflow`), else ECN-capable packets are dropped too
    /// (`drop_on_overload`); default 1.
    pub drop_on_overload: u8,
    /// When the AQM decides about a packet: with 0 when it leaves (`drop_dequeue`), else when it arrives (`drop_enqueue`);
    /// default 0.
    pub drop_at_enqueue: u8,
    /// Which packets their ECN field sends to the low latency queue: with 0 those with ECT(1) or CE (`l4s_ect`), else all
    /// ECN-capable ones (`any_ect`); default 0.
    pub any_ect: u8,
    /// Whether the caller is to take aggregates (GSO) apart before it enqueues them, as `dualpi2_splits_gso` tells: 0 no
    /// (`no_split_gso`), else yes (`split_gso`); default 1.
    pub split_gso: u8,
}

/// In `fields` of `dualpi2_change`: `limit`. Without `DUALPI2_CHANGE_MEMORY_LIMIT`, the memory limit becomes the default for it.
pub const DUALPI2_CHANGE_LIMIT: u32 = 1 << 0;
/// In `fields` of `dualpi2_change`: `memory_limit`.
pub const DUALPI2_CHANGE_MEMORY_LIMIT: u32 = 1 << 1;
/// In `fields` of `dualpi2_change`: `target_us`.
pub const DUALPI2_CHANGE_TARGET: u32 = 1 << 2;
/// In `fields` of `dualpi2_change`: `tupdate_us`.
pub const DUALPI2_CHANGE_TUPDATE: u32 = 1 << 3;
/// In `fields` of `dualpi2_change`: `alpha_256ths`.
pub const DUALPI2_CHANGE_ALPHA: u32 = 1 << 4;
/// In `fields` of `dualpi2_change`: `beta_256ths`.
pub const DUALPI2_CHANGE_BETA: u32 = 1 << 5;
/// In `fields` of `dualpi2_change`: `step_threshold` and `step_in_packets`.
pub const DUALPI2_CHANGE_STEP_THRESHOLD: u32 = 1 << 6;
/// In `fields` of `dualpi2_change`: `min_qlen_step`.
pub const DUALPI2_CHANGE_MIN_QLEN_STEP: u32 = 1 << 7;
/// In `fields` of `dualpi2_change`: `coupling_factor`.
pub const DUALPI2_CHANGE_COUPLING_FACTOR: u32 = 1 << 8;
/// In `fields` of `dualpi2_change`: `classic_protection`.
pub const DUALPI2_CHANGE_CLASSIC_PROTECTION: u32 = 1 << 9;
/// In `fields` of `dualpi2_change`: `drop_on_overload`.
pub const DUALPI2_CHANGE_OVERLOAD: u32 = 1 << 10;
/// In `fields` of `dualpi2_change`: `drop_at_enqueue`.
pub const DUALPI2_CHANGE_DROP_AT: u32 = 1 << 11;
/// In `fields` of `dualpi2_change`: `any_ect`.
pub const DUALPI2_CHANGE_ECN_MASK: u32 = 1 << 12;
/// In `fields` of `dualpi2_change`: `split_gso`.
pub const DUALPI2_CHANGE_SPLIT_GSO: u32 = 1 << 13;
/// In `fields` of `dualpi2_change`: all of them.
pub const DUALPI2_CHANGE_ALL: u32 = (1 << 14) - 1;

impl Config {
    /// The change that sets those `fields` to the values here, on a queue whose packet limit is `current_limit`.
    pub(crate) fn change(&self, fields: u32, current_limit: u32) -> Result<Change, Error> {
        if fields & !DUALPI2_CHANGE_ALL != 0 {
            return Err(Error::Fields);
        }
        let given = |field: u32| fields & field != 0;
        let micros = |micros: u32| Duration::from_micros(micros.into());
        let default_memory = given(DUALPI2_CHANGE_MEMORY_LIMIT) && self.memory_limit == 0;
        // The memory limit's default comes along with a limit, be it the old one.
        let unchanged_limit = default_memory.then_some(current_limit);
        Ok(Change {
            limit: given(DUALPI2_CHANGE_LIMIT).then_some(self.limit).or(unchanged_limit),
            memory_limit: (given(DUALPI2_CHANGE_MEMORY_LIMIT) && !default_memory)
                .then_some(self.memory_limit),
            target: given(DUALPI2_CHANGE_TARGET).then(|| micros(self.target_us)),
            tupdate: given(DUALPI2_CHANGE_TUPDATE).then(|| micros(self.tupdate_us)),
            alpha: given(DUALPI2_CHANGE_ALPHA).then(|| Gain::from_256ths(self.alpha_256ths)),
            beta: given(DUALPI2_CHANGE_BETA).then(|| Gain::from_256ths(self.beta_256ths)),
            step_threshold: given(DUALPI2_CHANGE_STEP_THRESHOLD).then(|| {
                if self.step_in_packets != 0 {
                    StepThreshold::Packets(self.step_threshold)
                } else {
                    StepThreshold::Time(micros(self.step_threshold))
                }
            }),
            min_qlen_step: given(DUALPI2_CHANGE_MIN_QLEN_STEP).then_some(self.min_qlen_step),
            coupling_factor: given(DUALPI2_CHANGE_COUPLING_FACTOR).then_some(self.coupling_factor),
            overload: given(DUALPI2_CHANGE_OVERLOAD).then_some(if self.drop_on_overload != 0 {
                Overload::Drop
            } else {
                Overload::Overflow
            }),
            drop_point: given(DUALPI2_CHANGE_DROP_AT).then_some(if self.drop_at_enqueue != 0 {
                DropPoint::Enqueue
            } else {
                DropPoint::Dequeue
            }),
            classic_protection: given(DUALPI2_CHANGE_CLASSIC_PROTECTION)
                .then_some(self.classic_protection),
            ecn_mask: given(DUALPI2_CHANGE_ECN_MASK).then_some(if self.any_ect != 0 {
                EcnMask::Any
            } else {
                EcnMask::L4s
            }),
            split_gso: given(DUALPI2_CHANGE_SPLIT_GSO).then_some(self.split_gso != 0),
        })
    }

    /// The engine's configuration with every value given here.
    pub(crate) fn to_engine(self) -> Result<dualpi2::Config, Error> {
        if self.mtu == 0 {
            return Err(Error::Mtu);
        }
        let change = self.change(DUALPI2_CHANGE_ALL, self.limit)?;
        Ok(dualpi2::Config::for_mtu(self.mtu).with(&change, self.mtu)?)
    }

    pub(crate) fn from_engine(config: &dualpi2::Config, mtu: u32) -> Self {
        // The engine keeps no time that is longer than u32::MAX microseconds.
        let micros = |time: Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        let (step_threshold, step_in_packets) = match config.step_threshold {
            StepThreshold::Time(time) => (micros(time), 0),
            StepThreshold::Packets(packets) => (packets, 1),
        };
        Self {
            mtu,
            limit: config.limit,
            memory_limit: config.memory_limit,
            target_us: micros(config.target),
            tupdate_us: micros(config.tupdate),
            alpha_256ths: config.alpha.as_256ths(),
            beta_256ths: config.beta.as_256ths(),
            step_threshold,
            min_qlen_step: config.min_qlen_step,
            step_in_packets,
            coupling_factor: config.coupling_factor,
            classic_protection: config.classic_protection,
            drop_on_overload: (config.overload == Overload::Drop).into(),
            drop_at_enqueue: (config.drop_point == DropPoint::Enqueue).into(),
            any_ect: (config.ecn_mask == EcnMask::Any).into(),
            split_gso: config.split_gso.into(),
        }
    }
}

/// Linux's defaults for packets of up to `mtu` bytes, link-layer header included (1514 on Ethernet).
#[unsafe(no_mangle)]
pub extern "C" fn dualpi2_config_default(mtu: u32) -> Config {
    Config { memory_limit: 0, ..Config::from_engine(&dualpi2::Config::for_mtu(mtu), mtu) }
}
