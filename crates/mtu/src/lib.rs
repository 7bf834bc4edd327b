#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod cure;
mod error;
pub mod overhead;
#[cfg(all(target_os = "linux", feature = "probe"))]
pub mod probe;
pub mod search;
pub mod verdict;

pub use error::MtuError;
pub use verdict::Verdict;
