#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod building;
mod knowledge;
mod margin;
mod root;

#[cfg(target_os = "linux")]
pub mod apply;
pub mod doctor;
pub mod facts;
pub mod plan;
pub mod program;
pub mod recipe;

pub use facts::Facts;
pub use plan::Plan;
pub use root::Root;
