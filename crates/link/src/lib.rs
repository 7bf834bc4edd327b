#![doc = include_str!("../README.md")]
#![cfg(target_os = "linux")]
#![deny(unsafe_code)]

mod checksum;
mod cut;
mod engine;
mod error;
mod figures;
mod frame;
mod icmp;
mod layout;
mod packet;
mod running;
mod tun;
mod urgent;
mod vnet;
mod watch;
mod worker;

pub use engine::{Engine, RouterMessage};
pub use error::{ChangeFault, LinkError};
pub use figures::{
    Amount, Band, DirectionFigures, DirectionSnapshot, Losses, QueueSnapshot, Snapshot, Times,
    TooLate,
};
pub use packet::Packet;
pub use running::{Change, Link, MakeWatch, Options, Running};
pub use tun::{Tun, TunOptions};
pub use urgent::Urgent;
pub use watch::{Seen, Watch};
