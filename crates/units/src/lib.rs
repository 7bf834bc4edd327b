#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod bounded;
mod bytes;
mod confidence;
mod exact;
pub mod hint;
mod instant;
pub mod number;
mod packet_time;
mod plain;
mod rate;
pub mod surprise;
pub mod tc_time;
pub mod wheel;

pub use bytes::Bytes;
pub use confidence::student;
pub use dualpi2::Ecn;
pub use exact::Exact;
pub use instant::Instant;
pub use packet_time::PacketTime;
pub use plain::plain;
pub use rate::Rate;

/// A word that is not the quantity it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{word:?} is not a {quantity}: {expected}")]
pub struct ParseUnitError {
    /// The word as it was given.
    pub word: String,
    /// What it should have been: `rate`, `time`, `size`.
    pub quantity: &'static str,
    /// What would be right.
    pub expected: &'static str,
}
