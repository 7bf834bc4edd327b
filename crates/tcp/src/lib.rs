#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod cc;
mod control;
mod ecn;
mod endpoint;
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
pub use control::Control;
pub use ecn::{EcnBytes, EcnFlags, EcnOption, EcnStyle, OPTION_BYTES};
pub use endpoint::{Endpoint, Packet};
pub use packet::{
    Ack, COOKIE_BYTES, COOKIE_REQUEST_BYTES, Data, ETHERNET_BYTES, HEADER_BYTES, MAX_SACK_BLOCKS,
    PACKET_OVERHEAD, PLAIN_HEADER_BYTES, SYN_BYTES, SackBlock, Transmission, pieces,
};
pub use rate::{LostPacket, RateSample};
pub use receiver::{READ_BYTES, Receiver, ReceiverConfig, ReceiverStats, WINDOW_SCALE};
pub use sender::{Pacing, Sender, SenderConfig, SenderStats, WRITE_BYTES};
pub use tick::{TIMER_LATENCY, Tick, WheelTimer};
