//! Queue disciplines, and tc's way to write and show them.
//!
//! - [`grammar`]: `"dualpi2 target 5ms"` to a [`Spec`] and back, refusing what tc and the kernel refuse. The one parser of
//!   such words in dualq.
//! - [`Qdisc`]: what every discipline does; [`Discipline`]: any of them.
//! - [`show`]: `tc qdisc show`, `tc -s` and `tc -j` for what a discipline is and did.
//!
//! ```
//! use dualq_qdisc::{Device, Spec, grammar};
//!
//! let parsed = grammar::parse("dualpi2 limit 100 target 5ms")?;
//! let config = parsed.spec.configure(&Device::ethernet(1500));
//! assert!(config.to_string().starts_with("limit 100p memlimit 302800B target 5ms tupdate 16ms"));
//!
//! let refused = grammar::parse("dualpi2 targt 5ms").unwrap_err();
//! assert!(refused.to_string().contains("did you mean \"target\"?"));
//! # Ok::<(), grammar::ParseError>(())
//! ```
#![forbid(unsafe_code)]

pub mod disciplines;
pub mod grammar;
pub mod show;

mod packet;
mod spec;

pub use disciplines::{ChangeError, Departure, Discipline, DropReason, Dropped, Qdisc};
pub use dualpi2::{Class, Ecn, Packet, Random, SplitMix64, XorShift64};

pub use grammar::QdiscLine;
pub use packet::FlowPacket;
pub(crate) use packet::hash;
pub use spec::{Config, Device, FifoLimit, Spec};
