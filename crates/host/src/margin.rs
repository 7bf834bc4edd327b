//! By how much a shaper stays below the link that it stands before.

use dualq_units::Rate;

/// What a shaper is set to before a bottleneck of `link`: five percent less, so that the queue is here and not there. Whoever gives
/// a rate, to the doctor or for a plan, gives the link's.
#[must_use]
pub(crate) fn below(link: Rate) -> Rate {
    let bits = link.as_bits_per_second();
    Rate::from_bits_per_second(bits - bits.div_ceil(20))
}
