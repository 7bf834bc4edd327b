//! What is simulated or run, and what came of it: the vocabulary that all worlds of dualq share, and how figures
//! are made of samples.
//!
//! A [`Scenario`] is one experiment, and the JSON object that result documents carry. A [`Plan`] is what people write: a TOML
//! file in which values may be lists, which stands for one scenario for each combination of them.
#![forbid(unsafe_code)]

mod outcome;
mod plan;
mod reader;
mod scenario;
pub mod summary;

pub use outcome::{Delays, FlowOutcome, Outcome, ProbeOutcome, QueueOutcome, Series};
pub use plan::{DEFAULTS, Overrides, Plan, Variant};
pub use reader::PlanError;
pub use scenario::{
    CONGESTION_CONTROLS, FlowGroup, Link, Loss, PROBE_KINDS, ProbeGroup, ReceiverSide, Scenario,
    SenderSide, TIMER_SLACK,
};
