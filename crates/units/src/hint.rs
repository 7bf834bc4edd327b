//! What a compiler cannot know of a branch: that it is rarely taken, or mostly. What is rare is then laid out behind what each packet needs, so that this
//! fits a processor's first cache (ARCHITECTURE, "Code has to be near too"). Results are the same with and without.
//!
//! As [`core::hint::cold_path`](https://doc.rust-lang.org/core/hint/fn.cold_path.html), which is younger than the oldest Rust that builds this.

/// Says that a block is rarely reached; its first statement.
#[cold]
#[inline]
pub fn cold_path() {}

/// The condition, which mostly holds.
#[inline(always)]
#[must_use]
pub fn likely(condition: bool) -> bool {
    if !condition {
        cold_path();
    }
    condition
}

/// The condition, which rarely holds.
#[inline(always)]
#[must_use]
pub fn unlikely(condition: bool) -> bool {
    if condition {
        cold_path();
    }
    condition
}
