//! Probing for real: sockets, clocks, and the search between them. Linux only.

mod echo;
mod hops;
mod packet;
mod prober;
mod quotes;
mod survey;
mod tcp;

pub use hops::{EcnHop, Hop, Trace, ecn_by_hop};
pub use survey::{Answered, Local, Method, Options, Stage, Survey, answered, survey};
pub use tcp::{Bulk, Connection, Segment, Tcp};
