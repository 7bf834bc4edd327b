//! A disposable machine: a User-Mode Linux kernel that sees the host's files, and one folder that it may write to. Its init is a
//! program of the host's. It needs no privileges, and touches no network of the host's. That it writes nowhere else is enforced by
//! the host's kernel, whatever root does in the guest, if that has Landlock: see [`unconfined`].
//!
//! The machine runs in virtual time (`time-travel=inf-cpu`): the clock jumps from one event to the next, and what the CPU does
//! takes no time. All that is random in it follows from its command line: [`Guest`] puts nothing there but a seed, and
//! keeps the kernel from asking the host for random numbers.
#![forbid(unsafe_code)]

mod cage;
mod error;
pub mod inside;
mod machine;
mod running;
mod seat;

pub use cage::unconfined;
pub use error::GuestError;
pub use machine::Guest;
pub use running::end_all;
