#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod figures;
pub mod protocol;
mod token;

#[cfg(target_os = "linux")]
mod client;
#[cfg(target_os = "linux")]
mod datagrams;
#[cfg(target_os = "linux")]
mod flow;
#[cfg(target_os = "linux")]
mod handshake;
mod measurement;
#[cfg(target_os = "linux")]
mod segment;
#[cfg(target_os = "linux")]
pub mod server;

#[cfg(target_os = "linux")]
pub use client::{Family, Far, MeasureError, Options, Progress, Stage, Url, UrlError, measure};
pub use measurement::{
    Bottleneck, Direction, Distribution, EcnFate, Handshakes, Hop, Idle, Larger, LargestPacket,
    Load, Loaded, LocalQueue, Loss, MarksBy, Measurement, Method, PathMtu, Ping, Place, Point,
    RampUp, Sample, Server,
};
pub use token::{Token, TokenError};
