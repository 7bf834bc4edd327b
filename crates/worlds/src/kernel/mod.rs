//! The world `kernel`: real Linux in virtual time, as User-Mode Linux.
//!
//! A guest's init is a program of the host's, which has to call [`serve`] first thing if [`is_guest`]: usually the same program
//! that opens the world.

mod init;
mod task;

use std::fs;
use std::io;
use std::io::{BufRead as _, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use dualq_guest::{Folder, Guest, GuestError};
use dualq_lab::Controls;
use dualq_qdisc::QdiscLine;
use dualq_scenario::{Outcome, Scenario};

use task::{Growing, Line, SEEN, STDERR, STDOUT, Task};

use crate::{Observer, World, WorldError};

pub use init::serve;
pub use task::Command;

/// Kernels are built with HZ=100, as those of the recorded runs were.
const JIFFY: Duration = Duration::from_millis(10);

pub use dualq_guest::end_all;
/// Whether this process is the init of a guest.
pub use dualq_guest::inside::is_init as is_guest;

/// A real kernel in virtual time.
#[derive(Clone, Debug)]
pub struct Kernel {
    kernel: dualq_kernel::Kernel,
    init: PathBuf,
    qdiscs: Vec<String>,
    controls: Controls,
}

/// What is run of a scenario waits by timers, so that its clock may be read in next to no time, and the order of packets does not hang on it.
const READING: Duration = Duration::from_nanos(1);

impl Kernel {
    /// A world on this kernel, whose guests have this program as their init.
    #[must_use]
    pub fn new(kernel: dualq_kernel::Kernel, init: impl Into<PathBuf>) -> Self {
        let (qdiscs, controls) = (kernel.qdiscs(), Controls::new(kernel.congestion_controls()));
        Self { kernel, init: init.into(), qdiscs, controls }
    }

    fn guest(&self, seed: u64) -> Guest {
        Guest::new(&self.kernel.executable, &self.init).seed(seed)
    }

    /// Runs a command as root in a guest, and passes on what it writes. Returns its exit status, which it has not if a signal ended
    /// it.
    ///
    /// # Errors
    /// If the guest has no folder, or comes to no good end.
    pub fn execute(
        &self,
        command: &Command,
        seed: u64,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<Option<i32>, ExecuteError> {
        // What a user's command computes is its own affair, and virtual time stands still meanwhile.
        let mut machine = self.guest(seed).may_compute();
        if let Some(etc) = &command.etc {
            machine = machine.writable(etc);
        }
        let folder = Folder::create().map_err(WorldError::Folder).map_err(ExecuteError::World)?;
        let mut streams =
            [Growing::new(folder.path(), STDOUT, out), Growing::new(folder.path(), STDERR, err)];
        let mut look = |_: &str| {
            for stream in &mut streams {
                // Whoever closed the other end of a pipe wants no more; the command's status still counts.
                let _ = stream.pass_on();
            }
            ControlFlow::Continue(())
        };
        let task = Task::Command(command.clone());
        let status = task::start(&machine, &task, &folder, &mut look)?;
        let _ = look("");
        Ok(status)
    }
}

/// Why a command did not run.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    /// The world is not as it should be.
    #[error(transparent)]
    World(WorldError),
    /// The guest came to no good end.
    #[error(transparent)]
    Guest(#[from] GuestError),
}

impl World for Kernel {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn kernel_version(&self) -> Option<&str> {
        Some(self.kernel.title())
    }

    fn refuses(&self, scenario: &Scenario) -> Option<String> {
        if scenario.tick != JIFFY {
            return Some(format!(
                "a jiffy of this kernel is {} ms, the scenario's tick is {} ms",
                JIFFY.as_secs_f64() * 1e3,
                scenario.tick.as_secs_f64() * 1e3
            ));
        }
        let lacks = |what: &str, name: &str, has: &str| {
            let version = &self.kernel.version;
            format!("Linux {version} as it was built does not have the {what} {name}; it has {has}")
        };
        let link = || scenario.link.qdiscs().map(|(_, qdisc)| qdisc);
        for kind in link().chain([&scenario.sender.qdisc]).flat_map(QdiscLine::kinds) {
            if !self.qdiscs.iter().any(|known| known == kind) {
                return Some(lacks("qdisc", kind, &self.qdiscs.join(", ")));
            }
        }
        if let Some((cc, has)) = self.controls.lacking(scenario) {
            return Some(lacks("congestion control", cc, &has));
        }
        dualq_lab::refusal(scenario)
    }

    fn run(
        &self,
        scenario: &Scenario,
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<Outcome, WorldError> {
        if let Some(reason) = self.refuses(scenario) {
            return Err(WorldError::Refused(reason));
        }
        let name = || scenario.name.clone();
        let wants = observer.wants();
        let task = Task::Scenario { scenario: Box::new(scenario.clone()), seed, wants };
        let folder = Folder::create().map_err(WorldError::Folder)?;
        let mut pulse =
            |pulse: &str| observer.passed(Duration::from_secs(pulse.parse().unwrap_or(0)));
        let outcome =
            match task::start(&self.guest(seed).reading(READING), &task, &folder, &mut pulse) {
                Ok(outcome) => outcome,
                Err(GuestError::Ended) => return Err(WorldError::Interrupted),
                Err(error) => return Err(WorldError::Guest { scenario: name(), error }),
            };
        if wants.any() {
            let cannot =
                |error: io::Error| WorldError::Events { scenario: name(), file: SEEN, error };
            let seen = fs::File::open(folder.path().join(SEEN)).map_err(cannot)?;
            for line in io::BufReader::new(seen).lines() {
                let line = line.map_err(cannot)?;
                match serde_json::from_str(&line).map_err(|error| cannot(error.into()))? {
                    Line::Packet(event) => observer.packet(event),
                    Line::Headers(headers) => observer.headers(&headers),
                    Line::Connection(event) => observer.connection(&event),
                }
            }
        }
        Ok(outcome)
    }
}
