//! Linux as a User-Mode Linux kernel with time travel: found, configured, built and kept for later.
//!
//! - [`Store`]: the kernels there are, below the user's cache folder. [`Kernel`]: one of them, and what it can do.
//! - [`build()`]: makes one from the distribution's source package, a tarball or a source tree.
//!
//! ```
//! use dualq_kernel::Store;
//!
//! # let folder = tempfile::tempdir()?;
//! # let store = Store::at(folder.path());
//! # let _ =
//! Store::open()?; // below $XDG_CACHE_HOME
//! if let Some(kernel) = store.newest()? {
//!     println!("Linux {}: {}", kernel.version, kernel.executable.display());
//!     assert!(kernel.qdiscs().contains(&"fq_codel".to_owned()));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod build;
mod config;
mod error;
mod options;
mod process;
mod source;
mod store;
mod tools;
mod version;

pub use build::{Built, Event, Request, build};
pub use error::KernelError;
pub use process::Interrupt;
pub use source::Origin;
pub use store::{Damaged, Facts, Kernel, Store};
pub use version::Version;
