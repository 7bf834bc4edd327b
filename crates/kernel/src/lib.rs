#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod build;
mod clock;
mod config;
mod error;
mod extract;
mod hash;
mod options;
mod process;
mod source;
mod store;
mod tools;
mod version;

pub use build::{Built, Event, Request, build};
pub use error::KernelError;
pub use extract::{Extracted, extract};
pub use process::{Interrupt, Runner};
pub use source::Origin;
pub use store::{Damaged, Facts, Kernel, Store, cache};
pub use tools::families;
pub use version::{Version, means};
