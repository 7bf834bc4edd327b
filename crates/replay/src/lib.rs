//! Packet arrivals as they were recorded, through a queue discipline and a link of a given rate.
//!
//! - [`trace`]: reads arrivals from CSV traces and packet captures, compressed or not, as a stream.
//! - [`Replay`]: sends the same arrivals over one or more links at once, each with its own discipline.
//! - [`Outcome`]: what became of them. [`EventLog`]: the same packet by packet.
//!
//! ```
//! use dualq_replay::{EventLog, Replay, Settings, trace};
//!
//! let csv = "t_ns,len,truesize,ecn,class,gso_size\n0,1514,2282,1,-1,0\n100,1514,2282,0,-1,0\n";
//! let mut arrivals = trace::read(csv.as_bytes(), 1500)?;
//! let specs = [dualq_qdisc::grammar::parse("dualpi2")?.spec];
//! let settings = Settings { rate: "20mbit".parse()?, mtu: 1500, seed: Settings::DEFAULT_SEED };
//!
//! let mut replay = Replay::new(&specs, &settings, None::<EventLog<Vec<u8>>>)?;
//! while let Some(arrival) = arrivals.next_arrival()? {
//!     replay.arrive(&arrival);
//! }
//! let (outcomes, _) = replay.finish()?;
//! assert_eq!(outcomes[0].total.packets_out, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod events;
mod link;
mod outcome;
mod packet;
mod replay;
pub mod trace;

pub use events::EventLog;
pub use outcome::{BandOutcome, Delays, Drops, Outcome};
pub use packet::Arrival;
pub use replay::{Replay, Settings};
