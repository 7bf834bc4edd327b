//! Sources of random numbers. The AQM's dice need speed and no secrecy.

use core::num::NonZeroU64;

/// A source of uniformly distributed numbers.
pub trait Random {
    /// The next number, each of the 2³² equally likely.
    fn next_u32(&mut self) -> u32;
}

/// SplitMix64 (Steele, Lea, Flood: *Fast splittable pseudorandom number generators*, OOPSLA 2014): the default. Any
/// seed is as good as any other.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// A stream that is a function of `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 random bits, of which [`Random::next_u32`] gives the upper half.
    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

impl Random for SplitMix64 {
    #[inline]
    fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }
}

/// Marsaglia's xorshift64 with shifts 13, 7, 17 (*Xorshift RNGs*, J. Stat. Soft. 2003): the stream that the reference
/// vectors were made with. The upper 32 bits of each new state are the number.
#[derive(Clone, Debug)]
pub struct XorShift64(u64);

impl XorShift64 {
    /// A stream whose first state is `seed`; it has no zero, which would stay zero for ever.
    #[must_use]
    pub const fn new(seed: NonZeroU64) -> Self {
        Self(seed.get())
    }
}

impl Random for XorShift64 {
    #[inline]
    fn next_u32(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as u32
    }
}
