//! The worlds by the names that the command line has for them.

use std::env;

use clap::ValueEnum as _;
use dualq_kernel::{KernelError, Store};
use dualq_units::plain;
use dualq_worlds::{Kernel, Live, Model, World, WorldError};

use crate::cli::{Failure, WorldName, note};
use crate::interrupt;

/// Makes sure that what the world needs is there; `version` chooses among the kernels.
pub(crate) fn open(name: WorldName, version: Option<&str>) -> Result<Box<dyn World>, Failure> {
    match name {
        WorldName::Model => Ok(Box::new(Model)),
        WorldName::Kernel => Ok(Box::new(kernel(version)?)),
        WorldName::Live => Ok(Box::new(Live::new())),
    }
}

/// Gets what the worlds need of this process: to be called before it has threads.
pub(crate) fn prepare(worlds: &[WorldName]) -> Result<(), Failure> {
    if worlds.contains(&WorldName::Live) {
        dualq_namespace::become_able().map_err(|error| Failure::Run(error.to_string()))?;
    }
    Ok(())
}

/// Refuses a world that is asked for twice, as it would be set beside itself, and a version that no world asks for, rather than running
/// something else without a word.
pub(crate) fn make_sense(version: Option<&str>, worlds: &[WorldName]) -> Result<(), Failure> {
    if let Some(twice) = (1..worlds.len()).find(|at| worlds[..*at].contains(&worlds[*at])) {
        let name = worlds[twice].to_possible_value();
        let name = name.as_ref().map_or("one", |name| name.get_name());
        return Err(Failure::Usage(format!(
            "--world: {name} is given twice; give each world once"
        )));
    }
    match version {
        Some(version) if !worlds.contains(&WorldName::Kernel) => {
            let hint = if worlds.contains(&WorldName::Live) {
                "the world live runs on this machine's own kernel; add --world kernel or leave it out"
            } else {
                "the model runs on no kernel; add --world kernel or leave it out"
            };
            Err(Failure::Usage(format!("--kernel {version}: {hint}")))
        }
        _ => Ok(()),
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
    on(kernel)
}

/// The world on this kernel, with this very program as the init of its guests. They do not outlast an interrupt.
pub(crate) fn on(kernel: dualq_kernel::Kernel) -> Result<Kernel, Failure> {
    let program = env::current_exe()
        .map_err(|error| Failure::Run(format!("cannot find dualq itself: {}", plain(&error))))?;
    interrupt::handle();
    Ok(Kernel::new(kernel, program))
}

impl From<WorldError> for Failure {
    fn from(error: WorldError) -> Self {
        match error {
            WorldError::Refused(reason) => Self::Usage(reason),
            WorldError::Interrupted => Self::Interrupted(error.to_string()),
            _ => Self::Run(error.to_string()),
        }
    }
}
