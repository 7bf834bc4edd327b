#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod events;
mod link;
mod outcome;
mod packet;
mod replay;
mod timeline;
pub mod trace;

pub use events::EventLog;
pub use outcome::{BandOutcome, Delays, Drops, Outcome};
pub use packet::Arrival;
pub use replay::{Replay, Settings};
pub use timeline::{Interval, Timeline};
