//! The worlds in which a scenario can run, and what each of them needs.

use std::fs;
use std::path::Path;
use std::time::Duration;

use dualq_guest::{Guest, GuestError};
use dualq_kernel::{Kernel, KernelError, Store};
use dualq_scenario::{Outcome, Scenario};
use tempfile::TempDir;

use crate::cli::{Failure, WorldName, note};
use crate::inside::{RESULT, TASK, Task};
use crate::interrupt::{self, Leftover};
use crate::output::plain;

/// Kernels are built with HZ=100, as those of the recorded runs were.
const JIFFY: Duration = Duration::from_millis(10);

/// A world that is ready.
#[derive(Clone, Debug)]
pub(crate) enum World {
    /// The built-in simulation.
    Model,
    /// A real kernel in virtual time.
    Kernel(Box<Kernel>),
}

impl World {
    /// Makes sure that what the world needs is there; `version` chooses among the kernels.
    pub(crate) fn open(name: WorldName, version: Option<&str>) -> Result<Self, Failure> {
        match name {
            WorldName::Model => Ok(Self::Model),
            WorldName::Kernel => Ok(Self::Kernel(Box::new(kernel(version)?))),
        }
    }

    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Kernel(_) => "kernel",
        }
    }

    /// The version of its kernel, if it has one.
    pub(crate) fn kernel_version(&self) -> Option<&str> {
        match self {
            Self::Model => None,
            Self::Kernel(kernel) => Some(&kernel.version),
        }
    }

    /// Says why this world cannot run the scenario, before it is tried.
    pub(crate) fn refuses(&self, scenario: &Scenario) -> Option<String> {
        let Self::Kernel(kernel) = self else { return None };
        if scenario.tick != JIFFY {
            return Some(format!(
                "a jiffy of this kernel is {} ms, the scenario's tick is {} ms",
                JIFFY.as_secs_f64() * 1e3,
                scenario.tick.as_secs_f64() * 1e3
            ));
        }
        let lacks = |what: &str, name: &str, has: &[String]| {
            format!(
                "Linux {} as it was built does not have the {what} {name}; it has {}",
                kernel.version,
                has.join(", ")
            )
        };
        let qdiscs = kernel.qdiscs();
        for line in [&scenario.link.qdisc, &scenario.sender.qdisc] {
            let kind = line.split_whitespace().next().unwrap_or_default();
            if !qdiscs.iter().any(|known| known == kind) {
                return Some(lacks("qdisc", kind, &qdiscs));
            }
        }
        let controls = kernel.congestion_controls();
        let flows = scenario.flow.iter().map(|group| &group.cc);
        for cc in flows.chain(scenario.probe.iter().map(|probe| &probe.cc)) {
            if !controls.contains(cc) {
                return Some(lacks("congestion control", cc, &controls));
            }
        }
        None
    }

    /// Runs a scenario. `look` is told how many of its seconds have passed, as often as that is known.
    pub(crate) fn run(
        &self,
        scenario: &Scenario,
        seed: u64,
        look: &mut dyn FnMut(u64),
    ) -> Result<Outcome, Failure> {
        match self {
            Self::Model => dualq_model::simulate(scenario, seed)
                .map_err(|error| Failure::Usage(error.to_string())),
            Self::Kernel(kernel) => {
                if let Some(reason) = self.refuses(scenario) {
                    return Err(Failure::Usage(reason));
                }
                let task = Task::Scenario { scenario: Box::new(scenario.clone()), seed };
                let folder = GuestFolder::create()?;
                let machine = guest(kernel)?.seed(seed);
                let mut pulse = |pulse: &str| look(pulse.parse().unwrap_or(0));
                start(&machine, &task, &folder, &mut pulse)
                    .map_err(|error| Failure::Run(format!("{}: {error}", scenario.name)))
            }
        }
    }
}

/// The kernel of that version, or the newest. Says so if this host cannot confine it.
pub(crate) fn kernel(version: Option<&str>) -> Result<Kernel, Failure> {
    let store = Store::open()?;
    let kernel = match version {
        Some(version) => store.find(version)?,
        None => store.newest()?.ok_or(KernelError::NoKernel)?,
    };
    if let Some(why) = dualq_guest::unconfined() {
        note(&why);
    }
    Ok(kernel)
}

/// A machine with this kernel, and with this very program as its init.
pub(crate) fn guest(kernel: &Kernel) -> Result<Guest, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::Run(format!("cannot find dualq itself: {}", plain(&error))))?;
    Ok(Guest::new(&kernel.executable, program))
}

/// The folder that a guest shares with the host. It goes with the guest.
pub(crate) struct GuestFolder {
    folder: TempDir,
    _leftover: Leftover,
}

impl GuestFolder {
    pub(crate) fn create() -> Result<Self, Failure> {
        let folder = tempfile::Builder::new().prefix("dualq-guest-").tempdir();
        let folder = folder.map_err(|error| {
            Failure::Run(format!("cannot make a folder for the guest: {}", plain(&error)))
        })?;
        let leftover = Leftover::of(folder.path());
        Ok(Self { folder, _leftover: leftover })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Gives a task to a guest, and reads what came of it.
pub(crate) fn start<T: serde::de::DeserializeOwned>(
    machine: &Guest,
    task: &Task,
    folder: &GuestFolder,
    look: &mut dyn FnMut(&str),
) -> Result<T, GuestError> {
    let folder = folder.path();
    let cannot = |error: std::io::Error| GuestError::Folder { folder: folder.to_owned(), error };
    fs::write(folder.join(TASK), serde_json::to_vec(task).map_err(|error| cannot(error.into()))?)
        .map_err(cannot)?;
    let ended = machine.run(folder, look);
    interrupt::rest_if_interrupted();
    ended?;
    let result = fs::read(folder.join(RESULT)).map_err(cannot)?;
    serde_json::from_slice(&result).map_err(|error| cannot(error.into()))
}
