//! Rates of shapers (`struct tc_ratespec`), and the spans that buckets are told in.

use std::time::Duration;

use dualq_units::Rate;

use crate::attributes::u32_at;

/// The bytes of the structure.
pub(super) const LENGTH: usize = 12;
/// What stands for a rate that has an attribute of 64 bits.
const BEYOND: u32 = u32::MAX;
/// The link layer is Ethernet: the kernel need not guess it from a table of costs.
const ETHERNET: u8 = 1;
/// Linux tells spans in units of 64 ns.
const TICK_SHIFT: u32 = 6;

fn per_second(rate: Rate) -> u64 {
    rate.as_bits_per_second() / 8
}

pub(super) fn write(rate: Rate) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    bytes[1] = ETHERNET;
    let rate = u32::try_from(per_second(rate)).unwrap_or(BEYOND);
    bytes[8..].copy_from_slice(&rate.to_ne_bytes());
    bytes
}

/// What the structure does not hold.
pub(super) fn beyond(rate: Rate) -> Option<u64> {
    Some(per_second(rate)).filter(|rate| *rate > BEYOND.into())
}

/// The rate in a structure, or in the attribute of 64 bits. `None` if frames are counted otherwise than as they are.
pub(super) fn read(bytes: &[u8], beyond: Option<u64>) -> Option<Rate> {
    let [_, layer, overhead @ ..] = bytes.first_chunk::<4>()?;
    let is_plain = layer & 0xf <= ETHERNET && *overhead == [0; 2];
    let per_second = beyond.unwrap_or(u32_at(bytes, 8)?.into());
    is_plain.then(|| per_second.checked_mul(8).map(Rate::from_bits_per_second))?
}

pub(super) fn ticks(span: Duration) -> u32 {
    u32::try_from(span.as_nanos() >> TICK_SHIFT).unwrap_or(u32::MAX)
}

pub(super) fn span(ticks: u32) -> Duration {
    Duration::from_nanos(u64::from(ticks) << TICK_SHIFT)
}
