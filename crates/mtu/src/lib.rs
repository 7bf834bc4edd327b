#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod cure;
mod error;
pub mod overhead;
#[cfg(target_os = "linux")]
pub mod probe;
pub mod search;
pub mod verdict;

pub use error::MtuError;
pub use verdict::Verdict;
