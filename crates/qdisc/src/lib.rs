#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod about;
pub mod grammar;
pub mod kinds;
pub mod pool;
pub mod show;

mod bucket;
mod device;
mod discipline;
mod packet;
mod qdisc;
mod timer;
mod turns;

pub use device::Device;
pub use discipline::Discipline;
pub use dualpi2::{Class, Ecn, EcnMask, Packet, Random, SplitMix64, XorShift64};

pub use grammar::QdiscLine;
pub use kinds::{Config, Foreign, ForeignStats, Spec};
pub(crate) use packet::hash;
pub use packet::{FlowPacket, PureAck};
pub(crate) use qdisc::UPCOMING;
pub use qdisc::{ChangeError, Departure, DropReason, Dropped, Qdisc};
