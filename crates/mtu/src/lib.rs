//! The path MTU to a host.
#![forbid(unsafe_code)]

pub mod overhead;
pub mod search;
