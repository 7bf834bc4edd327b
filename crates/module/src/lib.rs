#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod build;
mod error;
mod folder;
mod install;
mod place;
mod record;
mod source;
mod status;

pub use build::{Built, Request, build};
pub use error::ModuleError;
pub use folder::{Facts, Folder, built, is_version};
pub use install::{Installation, Way};
pub use status::{By, Found};

/// The module's name, and the kernel's for the queue discipline after `sch_`.
pub const MODULE: &str = "sch_dualpi2";
