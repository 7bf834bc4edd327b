#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod chance;
mod delay;
mod element;
mod environment;
mod jitter;
mod mtu;
mod packet;
mod path;
mod police;
mod queue;
mod shaper;
mod slots;

pub use chance::Chance;
pub use delay::Delay;
pub use element::Element;
pub use environment::{Environment, Lost};
pub use jitter::Jitter;
pub use mtu::Mtu;
pub use packet::Packet;
pub use path::Path;
pub use police::Police;
pub use queue::Queue;
pub use slots::Slots;
