//! Probing for real: sockets, clocks, and the search between them. Linux only.

mod echo;
mod hops;
mod packet;
mod prober;
mod survey;
mod tcp;

pub use hops::{Hop, Trace};
pub use survey::{Local, Method, Options, Stage, Survey, survey};
pub use tcp::{Bulk, Connection, Segment, Tcp};
