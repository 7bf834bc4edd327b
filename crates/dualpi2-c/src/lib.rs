//! The C interface of [`dualpi2`], the Dual-Queue Coupled AQM of RFC 9332 exactly as Linux runs it.
//!
//! C programs read `include/dualpi2.h`, which is made from this crate and says all there is to know; Rust programs use
//! the crate `dualpi2` itself.
//!
//! Three choices shape the interface:
//!
//! - A packet is described by value and its owner's pointer goes along untouched. The library frees nothing and
//!   writes into no header: it says whether CE must be set, and the caller, who knows its buffers, sets it.
//! - Aggregates (GSO) are taken apart by the caller, who enqueues the segments one after the other if
//!   [`dualpi2_splits_gso`] says so. The outcome is that of the engine's own splitting, because segments share their
//!   aggregate's ECN field and class; a callback would only add a second way in.
//! - Numbers that come from C are integers, never Rust enums or `bool`s, whose invalid values would be undefined
//!   behaviour. Every value of every field has a meaning or an error.
//!
//! # No panic crosses the border
//!
//! The engine has no panic but for the arithmetic of values which C cannot bring about (2⁶⁴ bytes in a queue) and for
//! a failed allocation. A panic would end the process at the border, as `extern "C"` has it, rather than unwind into C.
#![expect(unsafe_code, reason = "pointers from C can be followed in no other way")]
#![allow(
    clippy::missing_safety_doc,
    reason = "what all functions ask of their callers is said once, at the top of the header"
)]

mod config;
mod error;
mod packet;
mod queue;
mod random;
mod stats;

pub use config::{
    Config, DUALPI2_CHANGE_ALL, DUALPI2_CHANGE_ALPHA, DUALPI2_CHANGE_BETA,
    DUALPI2_CHANGE_CLASSIC_PROTECTION, DUALPI2_CHANGE_COUPLING_FACTOR, DUALPI2_CHANGE_DROP_AT,
    DUALPI2_CHANGE_ECN_MASK, DUALPI2_CHANGE_LIMIT, DUALPI2_CHANGE_MEMORY_LIMIT,
    DUALPI2_CHANGE_MIN_QLEN_STEP, DUALPI2_CHANGE_OVERLOAD, DUALPI2_CHANGE_SPLIT_GSO,
    DUALPI2_CHANGE_STEP_THRESHOLD, DUALPI2_CHANGE_TARGET, DUALPI2_CHANGE_TUPDATE,
    dualpi2_config_default,
};
pub use error::{Error, dualpi2_error_text};
pub use packet::{Class, Departure, DropCallback, DropReason, Ecn, Packet, Queue};
pub use queue::{
    Handle, dualpi2_change, dualpi2_create, dualpi2_dequeue, dualpi2_destroy, dualpi2_enqueue,
    dualpi2_get_config, dualpi2_get_stats, dualpi2_length, dualpi2_next_update, dualpi2_peek,
    dualpi2_poll, dualpi2_reserve, dualpi2_reset, dualpi2_splits_gso, dualpi2_update,
};
pub use random::{Random, RandomCallback, RandomKind};
pub use stats::Stats;
