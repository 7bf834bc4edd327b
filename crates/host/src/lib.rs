//! What was proven in the worlds reaches a real machine, and comes back off it.
//!
//! [`Facts`] are all that is known of a machine: read here, or there and brought over as a file. From facts and wishes comes a
//! [`Plan`]: a list of changes, each with what is there before, what after, why, and who says so. Facts and plans are plain
//! data; whoever reads or changes a machine does so below a [`Root`], so that a tree of files can stand for one.
#![forbid(unsafe_code)]

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
