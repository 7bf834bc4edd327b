#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod addresses;
mod ends;
mod error;
mod namespace;
mod privileges;

pub use addresses::Addresses;
pub use ends::{End, Ends};
pub use error::NamespaceError;
pub use namespace::Namespace;
pub use privileges::become_able;
