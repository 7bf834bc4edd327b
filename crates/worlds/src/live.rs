//! The world `live`: this machine's own TCP across dualq's own link, in real time.

use std::cell::RefCell;
use std::time::Duration;

use dualq_lab::{LabError, Where};
use dualq_scenario::{Outcome, Scenario};

use crate::world::Told;
use crate::{Observer, World, WorldError};

/// Real sockets of this machine's Linux in network namespaces, and dualq's own link between two TUN devices as the path. It takes as
/// long as the scenario says, and runs alone.
///
/// The process has to be able to make network namespaces.
#[derive(Clone, Debug)]
pub struct Live {
    kernel: String,
}

impl Live {
    /// The world on the kernel that runs.
    #[must_use]
    pub fn new() -> Self {
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        Self { kernel: release }
    }
}

impl Default for Live {
    fn default() -> Self {
        Self::new()
    }
}

impl World for Live {
    fn name(&self) -> &'static str {
        "live"
    }

    fn kernel_version(&self) -> Option<&str> {
        Some(&self.kernel)
    }

    fn alone(&self) -> bool {
        true
    }

    fn refuses(&self, scenario: &Scenario) -> Option<String> {
        dualq_lab::refusal_live(scenario)
    }

    fn run(
        &self,
        scenario: &Scenario,
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<Outcome, WorldError> {
        let wants = observer.wants();
        let observer = RefCell::new(observer);
        let mut pulse = |time: Duration| observer.borrow_mut().passed(time);
        let outcome = match wants.any() {
            true => {
                let mut told = Told(&observer);
                dualq_lab::run_watched(Where::Live, scenario, seed, &mut pulse, &mut told)
            }
            false => dualq_lab::run(Where::Live, scenario, seed, &mut pulse),
        };
        outcome.map_err(|error| match error {
            LabError::Interrupted => WorldError::Interrupted,
            LabError::Scenario(reason) => WorldError::Refused(reason),
            error => WorldError::Other(format!("{}: {error}", scenario.name)),
        })
    }
}
