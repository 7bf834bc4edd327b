/// A probability, in units of 2⁻³².
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Chance(u64);

impl Chance {
    /// That many of 2³²; more are as many.
    #[must_use]
    pub const fn from_threshold(threshold: u64) -> Self {
        Self(if threshold > 1 << 32 { 1 << 32 } else { threshold })
    }

    /// Whether it never happens.
    #[must_use]
    #[inline]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether it happens where the random number is `random`.
    #[must_use]
    #[inline]
    pub const fn strikes(self, random: u32) -> bool {
        (random as u64) < self.0
    }
}
