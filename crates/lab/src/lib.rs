#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod bridge;
mod capture;
mod clock;
mod controls;
mod error;
mod experiment;
mod headers;
mod limits;
mod live;
mod middle;
mod network;
mod record;
mod repeats;
mod sockets;
mod taps;
mod udp;
mod watch;
mod way;

pub use controls::Controls;
pub use error::LabError;
pub use experiment::{Where, refusal, run, run_watched};
pub use live::refusal as refusal_live;
