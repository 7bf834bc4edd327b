//! What a guest is started for, and how it is told.

use std::fs::{self, File};
use std::io::{self, Seek as _, SeekFrom, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use dualq_guest::{Folder, Guest, GuestError};
use dualq_scenario::{ConnectionEvent, Event, Headers, Scenario, Wants};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The files in the folder.
pub(super) const TASK: &str = "task.json";
pub(super) const RESULT: &str = "result.json";
pub(super) const SEEN: &str = "seen.jsonl";
pub(super) const STDOUT: &str = "stdout";
pub(super) const STDERR: &str = "stderr";

/// What a guest is started for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Task {
    /// Run a scenario; its result is an [`Outcome`](dualq_scenario::Outcome).
    Scenario {
        /// The scenario.
        scenario: Box<Scenario>,
        /// What the network's randomness follows from.
        seed: u64,
        /// What is to be told beside the outcome, in a file of its own, a [`Line`] each.
        #[serde(default)]
        wants: Wants,
    },
    /// Run a command as root; its result is its exit status.
    Command(Command),
}

/// What somebody saw in a guest.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Line<'a> {
    Packet(Event),
    #[serde(borrow)]
    Headers(Headers<'a>),
    Connection(ConnectionEvent),
}

/// A command that is run as root in a guest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Command {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// Where it starts.
    pub directory: PathBuf,
    /// A folder of the host's in the place of `/etc`, which it may write to.
    pub etc: Option<PathBuf>,
}

/// Gives a task to a guest, and reads what came of it.
pub(super) fn start<T: DeserializeOwned>(
    machine: &Guest,
    task: &Task,
    folder: &Folder,
    look: &mut dyn FnMut(&str) -> ControlFlow<()>,
) -> Result<T, GuestError> {
    let folder = folder.path();
    let cannot = |error: io::Error| GuestError::Folder { folder: folder.to_owned(), error };
    let task = serde_json::to_vec(task).map_err(|error| cannot(error.into()))?;
    fs::write(folder.join(TASK), task).map_err(cannot)?;
    machine.run(folder, look)?;
    let result = fs::read(folder.join(RESULT)).map_err(cannot)?;
    serde_json::from_slice(&result).map_err(|error| cannot(error.into()))
}

/// A file that grows, passed on as it does.
pub(super) struct Growing<'a> {
    path: PathBuf,
    passed: u64,
    to: &'a mut dyn Write,
}

impl<'a> Growing<'a> {
    pub(super) fn new(folder: &Path, name: &str, to: &'a mut dyn Write) -> Self {
        Self { path: folder.join(name), passed: 0, to }
    }

    pub(super) fn pass_on(&mut self) -> io::Result<()> {
        let mut file = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            file => file?,
        };
        file.seek(SeekFrom::Start(self.passed))?;
        self.passed += io::copy(&mut file, self.to)?;
        self.to.flush()
    }
}
