#![doc = include_str!("../README.md")]
#![cfg(target_os = "linux")]

mod option;
mod pacing;
mod ring;
mod saved_syn;
mod tcp_info;

pub use pacing::pace;
pub use ring::{PacketRing, RingPacket};
pub use saved_syn::{save_syns, saved_syn};
pub use tcp_info::{EcnMode, TcpInfo};
