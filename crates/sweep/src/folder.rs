//! A folder of runs, each kept by its key: what is there once is not computed again, by whomever.
//!
//! A run is a file of its own, written under another name and renamed when it is whole. So whoever is ended at any moment leaves whole runs
//! only, and any number of processes, on any number of machines that share the folder, do no harm to each other.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use dualq_scenario::Series;
use dualq_units::bounded;
use dualq_worlds::{Origin, Results, Run, Settings};

use crate::plan::{Key, Record, hex};
use sha2::{Digest as _, Sha256};

/// The file that says whose the folder is.
pub const MARKER: &str = "README";
const FIRST_LINE: &str = "Runs of dualq sweep, form 1";

const REST: &str = "
points/  a run each, as in the JSON document of dualq run, by the SHA-256 of its scenario, world, seed and dualq's version
plans/   what was asked for; the last is what `dualq sweep --show` and `dualq report` show of this folder
parts/   what is being written; what is left there by a process that was ended goes away by itself

The same command goes on where it stopped, and any number of processes may share the folder. All of it may be deleted at any time.
";

/// A marker is shorter.
const LONGEST_MARKER: u64 = 4096;

/// No run and no plan is longer: as what `dualq report` reads.
const LONGEST: u64 = 1 << 30;

/// What was left by a process that was ended goes after so long.
const LEFT_FOR: Duration = Duration::from_secs(3600);

/// Runs by their keys.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
}

/// Why a folder is not read or written.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// It has other things in it.
    #[error("{}: no folder of dualq sweep, and not empty; give one that is empty, or a new one", .0.display())]
    Foreign(PathBuf),
    /// It is none.
    #[error("{}: no folder of dualq sweep: it has no {MARKER} that begins with \"{FIRST_LINE}\"", .0.display())]
    NoFolder(PathBuf),
    /// A file of it is not what it should be.
    #[error("{}: {what}; remove it, and the same sweep makes it again", .path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// It was made by no plan yet.
    #[error("{}: no sweep is in it yet", .0.display())]
    Empty(PathBuf),
    /// No run of a plan is there.
    #[error("{}: none of the sweep's runs is there yet", .0.display())]
    NoRuns(PathBuf),
    /// What is there does not make a document.
    #[error("{}: {what}", .path.display())]
    Uneven {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The system refused.
    #[error("cannot {what} {}: {}", .path.display(), plain(.error))]
    System {
        /// What was tried: `read`, `write`.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// Why it failed.
        error: io::Error,
    },
}

/// An error in the system's words. A library names the file too, which is told already.
fn plain(error: &io::Error) -> String {
    let text = dualq_units::plain(error);
    text.split(" at path ").next().unwrap_or(&text).to_owned()
}

fn cannot(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FolderError {
    let path = path.to_owned();
    move |error| FolderError::System { what, path, error }
}

/// What of a plan is in a folder.
#[derive(Clone, Debug)]
pub struct Gathered {
    /// The scenarios whose runs are there.
    pub results: Results,
    /// Scenarios that the plan has, of which some world has no run with the first seed.
    pub missing: usize,
}

impl Folder {
    /// A folder to put runs into. One that is not there is made when the first comes.
    ///
    /// # Errors
    /// If there are other things in it, or the system refuses.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, FolderError> {
        let path = path.into();
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self { path }),
            Err(error) => return Err(cannot("read", &path)(error)),
        };
        // Another process may be at the same step: what it makes is ours.
        let ours = ["points", "plans", "parts", MARKER];
        let is_foreign = |entry: fs::DirEntry| !ours.iter().any(|name| entry.file_name() == *name);
        if !is_ours(&path)? && entries.flatten().any(is_foreign) {
            return Err(FolderError::Foreign(path));
        }
        let folder = Self { path };
        folder.sweep_parts();
        Ok(folder)
    }

    /// Makes what is not there yet.
    fn make(&self) -> Result<(), FolderError> {
        // A copy may lack those that were empty: object stores and git keep none.
        for inside in ["points", "plans", "parts"] {
            let inside = self.path.join(inside);
            fs::create_dir_all(&inside).map_err(cannot("make", &inside))?;
        }
        if is_ours(&self.path)? {
            return Ok(());
        }
        self.write(&self.path.join(MARKER), format!("{FIRST_LINE}\n{REST}").as_bytes())
    }

    /// A folder that is there, to read.
    ///
    /// # Errors
    /// If it is none, or the system refuses.
    pub fn read(path: impl Into<PathBuf>) -> Result<Self, FolderError> {
        let path = path.into();
        match is_ours(&path)? {
            true => Ok(Self { path }),
            false => Err(FolderError::NoFolder(path)),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn place(&self, key: &Key) -> PathBuf {
        self.path.join(below(key))
    }

    /// Whether a run is there. One that the end of power left empty is not.
    #[must_use]
    pub fn has(&self, key: &Key) -> bool {
        fs::metadata(self.place(key)).is_ok_and(|found| found.len() > 0)
    }

    /// Puts a run in: whole, or not at all. Its settings are the plan's, and are not kept. Says in which file below the folder.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn put(&self, key: &Key, run: &Run) -> Result<String, FolderError> {
        let place = self.place(key);
        let run = Run { settings: Settings::default(), ..run.clone() };
        let text = serde_json::to_vec(&run).map_err(io::Error::from);
        let text = text.map_err(cannot("write", &place))?;
        self.make()?;
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent).map_err(cannot("make", parent))?;
        }
        self.write(&place, &text)?;
        Ok(below(key))
    }

    fn write(&self, place: &Path, content: &[u8]) -> Result<(), FolderError> {
        let put = || -> io::Result<()> {
            let mut file = tempfile::Builder::new()
                .prefix("part-")
                // What the umask leaves of it, as for any other new file.
                .permissions(fs::Permissions::from_mode(0o666))
                .tempfile_in(self.path.join("parts"))?;
            file.write_all(content)?;
            file.persist(place).map_err(|error| error.error)?;
            Ok(())
        };
        put().map_err(cannot("write", place))
    }

    /// The run with this key, if it is there.
    ///
    /// # Errors
    /// If the system refuses, or the file has no run, or another one.
    pub fn get(&self, record: &Record, key: &Key) -> Result<Option<Run>, FolderError> {
        let path = self.place(key);
        let text = match text(&path)? {
            Some(text) if !text.is_empty() => text,
            _ => return Ok(None),
        };
        let run: Run = match serde_json::from_str(&text) {
            Ok(run) => run,
            Err(error) => {
                let what = format!("no run of dualq sweep: {error}");
                return Err(FolderError::Corrupt { path, what });
            }
        };
        if !record.is_of(key, &run) {
            let what = "a run of something else than its name says".to_owned();
            return Err(FolderError::Corrupt { path, what });
        }
        Ok(Some(run))
    }

    /// Keeps what is asked for, so that the runs are found again.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn keep(&self, record: &Record) -> Result<(), FolderError> {
        let text = serde_json::to_vec(record).map_err(io::Error::from);
        let text = text.map_err(cannot("write", &self.path))?;
        self.make()?;
        // The same sweep, however it was called.
        let origin = Origin { plan: record.origin.plan.clone(), ..Origin::default() };
        let alike = serde_json::to_vec(&Record { origin, ..record.clone() }).unwrap_or_default();
        let name = hex(&Sha256::digest(alike)[..8]);
        self.write(&self.path.join("plans").join(format!("{name}.json")), &text)
    }

    /// What was asked for, the last first.
    ///
    /// # Errors
    /// If the system refuses, a file is corrupt, or there is none.
    pub fn plans(&self) -> Result<Vec<Record>, FolderError> {
        let plans = self.path.join("plans");
        let mut found: Vec<(SystemTime, PathBuf)> = Vec::new();
        let entries = match fs::read_dir(&plans) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(FolderError::Empty(self.path.clone()));
            }
            Err(error) => return Err(cannot("read", &plans)(error)),
        };
        for entry in entries.flatten() {
            let changed = entry.metadata().and_then(|found| found.modified());
            found.push((changed.unwrap_or(SystemTime::UNIX_EPOCH), entry.path()));
        }
        found.sort();
        let read = |(_, path): (_, PathBuf)| {
            let text = text(&path)?.unwrap_or_default();
            serde_json::from_str(&text).map_err(|error| {
                let what = format!("no plan of dualq sweep: {error}");
                FolderError::Corrupt { path, what }
            })
        };
        let plans: Vec<Record> = found.into_iter().rev().map(read).collect::<Result<_, _>>()?;
        if plans.is_empty() { Err(FolderError::Empty(self.path.clone())) } else { Ok(plans) }
    }

    /// What came of a plan so far, as the document of `dualq run`. A scenario has the seeds, from the first on, that are there in all its
    /// worlds: more than the plan has, where some were added.
    ///
    /// # Errors
    /// If nothing is there, a file is corrupt, or the system refuses.
    pub fn results(&self, record: &Record) -> Result<Gathered, FolderError> {
        self.gathered(record, |run| run)
    }

    /// The same without how it went over time, which figures are not made of.
    ///
    /// # Errors
    /// As of [`results`](Self::results).
    pub fn figures(&self, record: &Record) -> Result<Gathered, FolderError> {
        self.gathered(record, |mut run| {
            let rtt_ms = vec![Vec::new(); run.scenario.probe.len()];
            run.outcome.series = Series { rtt_ms, ..Series::default() };
            run
        })
    }

    fn gathered(
        &self,
        record: &Record,
        keep: impl Fn(Run) -> Run,
    ) -> Result<Gathered, FolderError> {
        let (mut runs, mut missing) = (Vec::new(), 0);
        for (number, (settings, _)) in record.scenarios.iter().enumerate() {
            let count = self.seeds_there(record, number);
            if count == 0 {
                missing += 1;
            }
            for place in 0..record.places.len() {
                for more in 0..count {
                    let key = record.key(number, place, record.seeds.first + more);
                    let run = self.get(record, &key)?;
                    runs.extend(run.map(|run| Run { settings: settings.clone(), ..keep(run) }));
                }
            }
        }
        if runs.is_empty() {
            return Err(FolderError::NoRuns(self.path.clone()));
        }
        let Record { name, about, published, origin, .. } = record.clone();
        let results = Results::of_runs(name, about, published, runs);
        let mut results =
            results.map_err(|what| FolderError::Uneven { path: self.path.clone(), what })?;
        results.origin = Some(origin);
        Ok(Gathered { results, missing })
    }

    /// How many seeds of a scenario are there in all worlds, from the first on.
    pub(crate) fn seeds_there(&self, record: &Record, number: usize) -> u64 {
        let all = |seed: u64| {
            (0..record.places.len()).all(|place| self.has(&record.key(number, place, seed)))
        };
        (0..).take_while(|more| record.seeds.first.checked_add(*more).is_some_and(all)).count()
            as u64
    }

    /// Takes away what processes left that were ended long ago.
    fn sweep_parts(&self) {
        let Ok(entries) = fs::read_dir(self.path.join("parts")) else { return };
        for entry in entries.flatten() {
            let changed = entry.metadata().and_then(|found| found.modified());
            let old = changed.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > LEFT_FOR));
            if old {
                // Another process may have done it.
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Where a run is, below the folder.
fn below(key: &Key) -> String {
    let name = key.to_string();
    // No sub folder has more than a few hundred files of a hundred thousand.
    let (first, rest) = name.split_at(2);
    format!("points/{first}/{rest}.json")
}

/// The text of a file, if it is there.
fn text(path: &Path) -> Result<Option<String>, FolderError> {
    match bounded::text(path, LONGEST) {
        Ok(text) => Ok(Some(text)),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound => Ok(None),
            io::ErrorKind::InvalidData | io::ErrorKind::FileTooLarge => {
                Err(FolderError::Corrupt { path: path.to_owned(), what: error.to_string() })
            }
            _ => Err(cannot("read", path)(error)),
        },
    }
}

/// Whether a folder says that it is one of ours.
fn is_ours(path: &Path) -> Result<bool, FolderError> {
    use io::ErrorKind::{FileTooLarge, InvalidData, NotADirectory, NotFound};
    match bounded::text(&path.join(MARKER), LONGEST_MARKER) {
        Ok(text) => Ok(text.lines().next() == Some(FIRST_LINE)),
        Err(error) => match error.kind() {
            FileTooLarge | InvalidData | NotADirectory | NotFound => Ok(false),
            _ => Err(cannot("read", &path.join(MARKER))(error)),
        },
    }
}
