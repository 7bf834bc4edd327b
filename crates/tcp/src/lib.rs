//! TCP endpoints without I/O, as Linux has them: packets in, packets and timers out.
//!
//! A sender owns the congestion window, the scoreboard and the timers of one direction of a connection; a receiver
//! acknowledges. Neither knows a socket, a clock or a random device: time is an argument, randomness comes from a seed.
//! The congestion controls are in [`cc`], one file each, in the kernel's integer units.
#![forbid(unsafe_code)]

pub mod cc;
mod max_filter;
mod packet;
mod rack;
mod rate;
mod receiver;
mod rtt;
mod scoreboard;
mod sender;
mod tick;

pub use cc::Algorithm;
pub use packet::{
    Ack, Data, ETHERNET_BYTES, HEADER_BYTES, MAX_SACK_BLOCKS, PACKET_OVERHEAD, SYN_BYTES,
    SackBlock, Transmission,
};
pub use rate::RateSample;
pub use receiver::{MIN_ACK_DELAY, Receiver, ReceiverConfig, ReceiverStats};
pub use sender::{Pacing, Sender, SenderConfig, SenderStats};
pub use tick::Tick;
