#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod affinity;
mod cage;
mod error;
mod folder;
pub mod inside;
mod machine;
mod running;

pub use cage::unconfined;
pub use error::GuestError;
pub use folder::Folder;
pub use machine::Guest;
pub use running::end_all;
