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

/// An error in the system's words, without the number that the library puts behind them.
pub(crate) fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}
