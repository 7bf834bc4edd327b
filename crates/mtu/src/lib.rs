//! The path MTU to a host, whether larger packets vanish without a word, and why.
//!
//! [`search`] finds the largest packet that gets through, without I/O: a state machine that is told what comes back.
//! [`overhead`] knows what tunnels and VPNs leave of a link, [`verdict`] what all that was seen means, [`cure`] what
//! to do about it. On Linux,
//! [`probe`] does it for real: UDP and ICMP echo with the DF bit set, TCP's segment size, and hop by hop.
//!
//! Sizes are those of whole IP packets, in bytes, unless something else is said.
#![forbid(unsafe_code)]

pub mod cure;
mod error;
pub mod overhead;
#[cfg(target_os = "linux")]
pub mod probe;
pub mod search;
pub mod verdict;

pub use error::MtuError;
pub use verdict::Verdict;
