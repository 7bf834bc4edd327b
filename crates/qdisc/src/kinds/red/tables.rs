//! What tc computes of `red`'s options before it sends them (iproute2: `tc_red.c`).

use dualq_units::number::c_unsigned;

use super::Options;

/// The cells of the table of idle time.
pub(super) const CELLS: usize = 256;
/// tc's and the kernel's ticks.
const TICKS_PER_MICROSECOND: f64 = 15.625;
/// No cell is larger in tc's arithmetic: beyond it a size is negative.
const SIGN_BIT: u8 = 31;
/// No average falls by more powers of two.
const MOST_SHIFT: f64 = 31.0;

/// How fast the average follows the queue, and how it falls in idle time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Averaging {
    /// The weight of a packet is 2 to the power of minus this.
    pub wlog: u8,
    /// The probability over the distance of the thresholds, as a power of two.
    pub plog: u8,
    /// The size of a cell of the table.
    pub cell_log: u8,
    /// By how many powers of two the average falls in so many cells of idle time.
    pub cells: [u8; CELLS],
}

/// Why options come to none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoAveraging {
    /// A burst that does not reach `min`: it should be so many packets.
    ShortBurst(u32),
    /// No weight is low enough.
    Weight,
    /// It is so low that the kernel's 32 bits do not hold the thresholds.
    Thresholds,
    /// The thresholds, or a probability that is too low for their distance.
    Probability,
}

impl Averaging {
    /// For options that were put together without the grammar.
    pub(super) const SLOWEST: Self = Self { wlog: 1, plog: 31, cell_log: 31, cells: [0; CELLS] };

    pub(super) fn new(options: &Options) -> Result<Self, NoAveraging> {
        let wlog = weight(options)?;
        let plog = probability(options)?;
        let (cell_log, cells) = idle_time(options, wlog);
        let fits = |threshold: u32| 32 - threshold.leading_zeros() + u32::from(wlog) < 32;
        if !fits(options.min) || !fits(options.max) {
            return Err(NoAveraging::Thresholds);
        }
        Ok(Self { wlog, plog, cell_log, cells })
    }
}

/// The largest weight at which so many packets that come at once to an empty queue do not lift the average to `min`.
fn weight(options: &Options) -> Result<u8, NoAveraging> {
    let burst = f64::from(options.burst);
    let reach = burst + 1.0 - f64::from(options.min) / f64::from(options.avpkt);
    if reach < 1.0 {
        return Err(NoAveraging::ShortBurst(1 + options.min / options.avpkt));
    }
    (1..32)
        .find(|log| {
            let weight = 2_f64.powi(-i32::from(*log));
            reach <= (1.0 - libm::pow(1.0 - weight, burst)) / weight
        })
        .ok_or(NoAveraging::Weight)
}

/// The next power of two above the probability for each byte between the thresholds.
fn probability(options: &Options) -> Result<u8, NoAveraging> {
    let Some(distance) = options.max.checked_sub(options.min) else {
        return Err(NoAveraging::Probability);
    };
    if distance == 0 {
        return Ok(0);
    }
    let each = options.probability / f64::from(distance);
    (0..32).find(|log| each * 2_f64.powi(i32::from(*log)) > 1.0).ok_or(NoAveraging::Probability)
}

/// An average falls as if packets of average length had passed an empty queue all the time. tc counts whole microseconds and
/// computes in 32 bits: for slow links and for very fast ones its table is not what the paper means, but it is what the kernel gets.
fn idle_time(options: &Options, wlog: u8) -> (u8, [u8; CELLS]) {
    let micros = (1e6 * (f64::from(options.avpkt) / options.bandwidth as f64)) as u32;
    let ticks = (f64::from(micros) * TICKS_PER_MICROSECOND) as u32;
    let fall = -libm::log(1.0 - 2_f64.powi(-i32::from(wlog))) / f64::from(ticks);
    let longest = MOST_SHIFT / fall;
    let is_enough = |log: &u8| longest / 2_f64.powi(i32::from(*log)) < 512.0;
    let cell_log = (0..SIGN_BIT).find(is_enough).unwrap_or(SIGN_BIT);
    let mut cells = [MOST_SHIFT as u8; CELLS];
    for (number, cell) in (0_i32..).zip(&mut cells[..CELLS - 1]) {
        let shift = c_unsigned(f64::from(number.wrapping_shl(cell_log.into())) * fall) as u8;
        *cell = if number == 0 { 0 } else { shift.min(MOST_SHIFT as u8) };
    }
    (cell_log, cells)
}
