#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod capture;
mod dumbbell;
mod error;
mod experiment;
mod limits;
mod namespace;
mod record;
mod sockets;
mod taps;
mod tcp_info;
mod watch;

pub use dumbbell::tells_flows_apart;
pub use error::LabError;
pub use experiment::{run, run_watched};
