use std::ops::{Add, Sub};
use std::time::Duration;

/// A moment on a virtual clock: nanoseconds since it started. The last moment stands for 'never'.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// When the clock started.
    pub const ZERO: Self = Self(0);
    /// A moment that never comes.
    pub const NEVER: Self = Self(u64::MAX);

    /// The moment `nanos` nanoseconds after the clock started.
    #[must_use]
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock started.
    #[must_use]
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Nanoseconds since `earlier`; none if that is later.
    #[must_use]
    #[inline]
    pub const fn nanos_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    /// What would be past the clock's end is [`Instant::NEVER`].
    #[inline]
    fn add(self, span: Duration) -> Self {
        // A Duration is seconds and nanoseconds; in 64 bits of nanoseconds it stays cheap.
        let nanos = span.as_secs().checked_mul(1_000_000_000);
        let nanos = nanos.and_then(|nanos| nanos.checked_add(u64::from(span.subsec_nanos())));
        Self(nanos.map_or(u64::MAX, |nanos| self.0.saturating_add(nanos)))
    }
}

impl Sub for Instant {
    type Output = Duration;

    /// The span since `earlier`; none if that is later.
    #[inline]
    fn sub(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.nanos_since(earlier))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_stays_on_the_clock() {
        let moment = Instant::from_nanos(5);
        assert_eq!((moment + Duration::from_nanos(3)).as_nanos(), 8);
        assert_eq!(moment + Duration::MAX, Instant::NEVER);
        assert_eq!(moment - Instant::from_nanos(2), Duration::from_nanos(3));
        assert_eq!(moment - Instant::from_nanos(9), Duration::ZERO);
    }
}
