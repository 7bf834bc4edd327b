//! The worlds in which a scenario can run, and what each of them needs.

use std::fs::{self, File};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Once;
use std::time::Duration;

use dualq_guest::{Guest, GuestError};
use dualq_kernel::{Kernel, KernelError, Store};
use dualq_scenario::{Event, Outcome, Scenario};
use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;

use crate::cli::{Failure, WorldName, note};
use crate::inside::{EVENTS, RESULT, TASK, Task};
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
        let kernel = match self {
            Self::Model => {
                return dualq_model::check(scenario).err().map(|error| error.to_string());
            }
            Self::Kernel(kernel) => kernel,
        };
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
        for kind in scenario.link.qdisc.kinds().chain(scenario.sender.qdisc.kinds()) {
            if !qdiscs.iter().any(|known| known == kind) {
                return Some(lacks("qdisc", kind, &qdiscs));
            }
        }
        if scenario.link.tunnel
            && let Some(kind) = dualq_lab::tells_flows_apart(scenario.link.qdisc.spec())
        {
            return Some(format!(
                "link.tunnel: on real Linux nothing makes {kind} take all packets for one flow; the model can"
            ));
        }
        let controls = kernel.congestion_controls();
        let flows = scenario.flow.iter().map(|group| group.cc.name());
        for cc in flows.chain(scenario.probe.iter().map(|probe| probe.cc.name())) {
            if !controls.iter().any(|known| known == cc) {
                return Some(lacks("congestion control", cc, &controls));
            }
        }
        None
    }

    /// Runs a scenario. `look` is told how much of its time has passed, as often as that is known.
    pub(crate) fn run(
        &self,
        scenario: &Scenario,
        seed: u64,
        look: &mut dyn FnMut(Duration),
    ) -> Result<Outcome, Failure> {
        match self {
            Self::Model => dualq_model::Simulation::new(scenario, seed)
                .map(|simulation| simulation.run_watched(look))
                .map_err(|error| Failure::Usage(error.to_string())),
            Self::Kernel(kernel) => {
                if let Some(reason) = self.refuses(scenario) {
                    return Err(Failure::Usage(reason));
                }
                let task =
                    Task::Scenario { scenario: Box::new(scenario.clone()), seed, events: false };
                let folder = GuestFolder::create()?;
                let machine = guest(kernel)?.seed(seed);
                let mut pulse = |pulse: &str| {
                    look(Duration::from_secs(pulse.parse().unwrap_or(0)));
                };
                start(&machine, &task, &folder, &mut pulse)
                    .map_err(|error| Failure::Run(format!("{}: {error}", scenario.name)))
            }
        }
    }
}

/// Refuses a version that no world asks for, rather than running something else without a word.
pub(crate) fn is_kernel_used(version: Option<&str>, worlds: &[World]) -> Result<(), Failure> {
    match version {
        Some(version) if worlds.iter().all(|world| matches!(world, World::Model)) => {
            let hint = "the model runs on no kernel; add --world kernel or leave it out";
            Err(Failure::Usage(format!("--kernel {version}: {hint}")))
        }
        _ => Ok(()),
    }
}

/// Every packet that a world sees in a scenario.
pub(crate) fn events(world: &World, scenario: &Scenario, seed: u64) -> Result<Vec<Event>, Failure> {
    let mut events = Vec::new();
    match world {
        World::Model => {
            dualq_model::simulate_watched(scenario, seed, &mut |event| events.push(event))
                .map_err(|error| Failure::Usage(error.to_string()))?;
        }
        World::Kernel(kernel) => {
            let fail = |error: String| Failure::Run(format!("{}: {error}", scenario.name));
            let task = Task::Scenario { scenario: Box::new(scenario.clone()), seed, events: true };
            let folder = GuestFolder::create()?;
            let machine = guest(kernel)?.seed(seed);
            let _: Outcome = start(&machine, &task, &folder, &mut |_| ())
                .map_err(|error| fail(error.to_string()))?;
            let text = fs::read_to_string(folder.path().join(EVENTS))
                .map_err(|error| fail(format!("{EVENTS}: {error}")))?;
            for line in text.lines() {
                events.push(serde_json::from_str(line).map_err(|error| fail(error.to_string()))?);
            }
        }
    }
    Ok(events)
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

/// The folder that a guest shares with the host. It goes with the guest; what a killed process has left is removed by the
/// next one.
pub(crate) struct GuestFolder {
    folder: TempDir,
    _leftover: Leftover,
    /// Held for as long as this process lives.
    _lock: File,
}

const GUEST_FOLDER: &str = "dualq-guest-";
const LOCK: &str = "lock";

impl GuestFolder {
    pub(crate) fn create() -> Result<Self, Failure> {
        static SWEEP: Once = Once::new();
        SWEEP.call_once(|| remove_abandoned(&std::env::temp_dir()));
        let create = || {
            let folder = tempfile::Builder::new().prefix(GUEST_FOLDER).tempdir()?;
            let leftover = Leftover::of(folder.path());
            // It gets its name once it is locked: nobody else can take it for abandoned.
            let new = folder.path().join(".lock");
            let lock = File::create(&new)?;
            flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
            fs::rename(new, folder.path().join(LOCK))?;
            Ok(Self { folder, _leftover: leftover, _lock: lock })
        };
        create().map_err(|error: io::Error| {
            Failure::Run(format!("cannot make a folder for the guest: {}", plain(&error)))
        })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes this user's guest folders whose owner was killed. Those without a lock may be about to get one.
fn remove_abandoned(temporary: &Path) {
    let Ok(entries) = fs::read_dir(temporary) else { return };
    for entry in entries.flatten() {
        let is_guests =
            entry.file_name().to_str().is_some_and(|name| name.starts_with(GUEST_FOLDER));
        let is_ours = || {
            // Not that of a link.
            entry.metadata().is_ok_and(|metadata| {
                metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw()
            })
        };
        if !is_guests || !is_ours() {
            continue;
        }
        let Ok(lock) = File::open(entry.path().join(LOCK)) else { continue };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            // What cannot be removed is no reason not to run.
            let _ = fs::remove_dir_all(entry.path());
        }
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
    let mut run = || {
        let task = serde_json::to_vec(task).map_err(|error| cannot(error.into()))?;
        fs::write(folder.join(TASK), task).map_err(cannot)?;
        machine.run(folder, &mut |pulse| {
            look(pulse);
            ControlFlow::Continue(())
        })?;
        fs::read(folder.join(RESULT)).map_err(cannot)
    };
    let result = run();
    // An interrupt takes the folder away, at any of these steps.
    interrupt::rest_if_interrupted();
    serde_json::from_slice(&result?).map_err(|error| cannot(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As after SIGKILL: the folder is there, and nobody holds its lock.
    #[test]
    fn folders_of_killed_processes_are_removed_and_no_others() {
        let temporary = tempfile::tempdir().unwrap();
        let make = |name: &str, lock: Option<&str>| {
            let folder = temporary.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("console"), "words").unwrap();
            lock.map(|lock| File::create(folder.join(lock)).unwrap())
        };
        make("dualq-guest-killed", Some(LOCK));
        make("dualq-guest-begins", None);
        make("dualq-guest-locking", Some(".lock"));
        make("somebody-elses", Some(LOCK));
        let held = make("dualq-guest-runs", Some(LOCK)).unwrap();
        flock(&held, FlockOperation::NonBlockingLockExclusive).unwrap();
        std::os::unix::fs::symlink("dualq-guest-runs", temporary.path().join("dualq-guest-link"))
            .unwrap();
        remove_abandoned(temporary.path());
        let entries = fs::read_dir(temporary.path()).unwrap();
        let mut left: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        let expected =
            ["begins", "link", "locking", "runs"].map(|name| format!("dualq-guest-{name}"));
        assert_eq!(left[..4], expected.map(std::ffi::OsString::from));
        assert_eq!(left[4], "somebody-elses");
    }
}
