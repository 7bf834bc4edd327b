#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

use dualq_scenario::{Outcome, Scenario, Watch};

mod engine;
mod error;
mod host;
mod network;
mod options;
mod other_way;
mod owner;
mod packet;
mod prefetch;
mod program;
mod record;
mod watcher;
mod wire;

pub use engine::Simulation;
pub use error::Unmodelled;
pub use packet::Packet;

use host::Interface;

/// Simulates a scenario; everything random follows from `seed`.
///
/// ```
/// use dualq_scenario::{Scenario, Setup};
///
/// let scenario = Scenario::try_from(Setup::default())?;
/// let outcome = dualq_model::simulate(&scenario, 1)?;
/// assert!(outcome.goodput_mbit > 40.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the scenario asks for what the model does not have.
pub fn simulate(scenario: &Scenario, seed: u64) -> Result<Outcome, Unmodelled> {
    Ok(Simulation::new(scenario, seed)?.run())
}

/// Makes sure that [`simulate`] has all that the scenario asks for.
///
/// # Errors
/// If it has not.
pub fn check(scenario: &Scenario) -> Result<(), Unmodelled> {
    Interface::of(&scenario.sender.qdisc).map(|_| ())
}

/// Simulates a scenario and tells what happens, as far as that is wanted.
///
/// # Errors
/// As for [`simulate`].
pub fn simulate_watched(
    scenario: &Scenario,
    seed: u64,
    watch: &mut dyn Watch,
) -> Result<Outcome, Unmodelled> {
    Ok(Simulation::new(scenario, seed)?.watched(watch).run())
}
