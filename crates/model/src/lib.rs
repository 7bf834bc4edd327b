//! The model: a deterministic packet-level simulation of a dumbbell.
//!
//! Senders with Linux's TCP, each behind the queue of its own interface; a bottleneck with the queue discipline under
//! test; receivers; a way back that only delays. The outcome is a function of the scenario and the seed.
#![forbid(unsafe_code)]

use dualq_scenario::{Outcome, Scenario};

mod agenda;
mod connection;
mod error;
mod packet;
mod record;
mod shaper;
mod simulation;

pub use error::ScenarioError;
pub use simulation::Simulation;

/// Simulates a scenario; everything random follows from `seed`.
///
/// # Errors
/// If the scenario makes no sense.
pub fn simulate(scenario: &Scenario, seed: u64) -> Result<Outcome, ScenarioError> {
    Ok(Simulation::new(scenario, seed)?.run())
}
