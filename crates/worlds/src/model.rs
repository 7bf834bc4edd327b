//! The world `model`.

use std::cell::RefCell;
use std::time::Duration;

use dualq_model::Simulation;
use dualq_scenario::{Outcome, Scenario};

use crate::world::Told;
use crate::{Observer, World, WorldError};

/// The built-in simulation: it needs nothing, and the same scenario and seed give the same bytes everywhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct Model;

/// So often is told how far a run is.
const LOOKS: u32 = 100;

impl World for Model {
    fn name(&self) -> &'static str {
        "model"
    }

    fn refuses(&self, scenario: &Scenario) -> Option<String> {
        dualq_model::check(scenario).err().map(|error| error.to_string())
    }

    fn run(
        &self,
        scenario: &Scenario,
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<Outcome, WorldError> {
        let observer = RefCell::new(observer);
        let mut watch = Told(&observer);
        let simulation = Simulation::new(scenario, seed)
            .map_err(|error| WorldError::Refused(error.to_string()))?;
        let mut simulation = simulation.watched(&mut watch);
        let step = (scenario.duration / LOOKS).max(Duration::from_nanos(1));
        let passed =
            |simulation: &Simulation<'_>| Duration::from_nanos(simulation.now().as_nanos());
        while passed(&simulation) < scenario.duration {
            simulation.advance(simulation.now() + step);
            if observer.borrow_mut().passed(passed(&simulation)).is_break() {
                return Err(WorldError::Interrupted);
            }
        }
        Ok(simulation.run())
    }
}
