#![doc = include_str!("../README.md")]
#![cfg(target_os = "linux")]

mod pacing;
mod tcp_info;

pub use pacing::pace;
pub use tcp_info::TcpInfo;
