//! The source of the AQM's dice, chosen when a queue is created.

use std::ffi::c_void;
use std::num::NonZeroU64;

use crate::error::Error;

/// Where random numbers come from, for `kind` of `struct dualpi2_random`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum RandomKind {
    /// SplitMix64 from `seed`: fast, any seed will do. The default.
    Splitmix64 = 0,
    /// xorshift64 (13, 7, 17) from `seed`, which must not be 0: the stream of the reference traces.
    Xorshift64 = 1,
    /// The function `next`.
    Callback = 2,
}

/// Gives the next random number, each of the 2^32 equally likely. `context` is that of `struct dualpi2_random`.
pub type RandomCallback = Option<unsafe extern "C" fn(context: *mut c_void) -> u32>;

/// A source of random numbers. The same seed and the same packets at the same times give the same outcome; queues that
/// work side by side should have different seeds.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Random {
    /// `enum dualpi2_random_kind`.
    pub kind: u32,
    /// Where the stream starts, if the source is not a callback.
    pub seed: u64,
    /// The function, if the source is a callback.
    pub next: RandomCallback,
    /// Given to `next`.
    pub context: *mut c_void,
}

/// The source itself: a closed set, so that no draw goes through a pointer unless the caller wants its own.
pub(crate) enum Source {
    SplitMix64(dualpi2::SplitMix64),
    XorShift64(dualpi2::XorShift64),
    Callback { next: unsafe extern "C" fn(*mut c_void) -> u32, context: *mut c_void },
}

impl Source {
    pub(crate) fn new(random: &Random) -> Result<Self, Error> {
        if random.kind == RandomKind::Splitmix64 as u32 {
            Ok(Self::SplitMix64(dualpi2::SplitMix64::new(random.seed)))
        } else if random.kind == RandomKind::Xorshift64 as u32 {
            let seed = NonZeroU64::new(random.seed).ok_or(Error::RandomSeed)?;
            Ok(Self::XorShift64(dualpi2::XorShift64::new(seed)))
        } else if random.kind == RandomKind::Callback as u32 {
            let next = random.next.ok_or(Error::RandomCallback)?;
            Ok(Self::Callback { next, context: random.context })
        } else {
            Err(Error::RandomKind)
        }
    }
}

impl Default for Source {
    fn default() -> Self {
        Self::SplitMix64(dualpi2::SplitMix64::new(0))
    }
}

impl dualpi2::Random for Source {
    #[inline]
    fn next_u32(&mut self) -> u32 {
        match self {
            Self::SplitMix64(source) => source.next_u32(),
            Self::XorShift64(source) => source.next_u32(),
            // SAFETY: the caller of `dualpi2_create` vouches for the function and its context.
            Self::Callback { next, context } => unsafe { next(*context) },
        }
    }
}
