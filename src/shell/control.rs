//! A shell's link for others of the same user: a socket in a folder of their own, questions and answers in lines of JSON.

use std::env;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use dualq_units::plain;
use serde::{Deserialize, Serialize};

use super::document::Document;
use super::live::Live;
use crate::cli::Failure;
use crate::cli::shell::Changes;

/// Tells the programs in a shell which it is.
pub(crate) const VARIABLE: &str = "DUALQ_SHELL";
const SUFFIX: &str = ".shell";
/// A shell that does not answer for so long has stopped, as by Ctrl-Z.
const PATIENCE: Duration = Duration::from_secs(3);
/// No question is longer.
const QUESTION_BYTES: u64 = 64 << 10;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Question {
    /// How is it?
    Look,
    /// Let it be otherwise.
    Set(Changes),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    Seen(Box<Document>),
    /// What was changed, in words.
    Done(String),
    Refused(String),
}

/// The folder of this user's sockets, which nobody else may look into.
fn folder() -> Result<PathBuf, Failure> {
    let own = rustix::process::geteuid().as_raw();
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    // A root that was an ordinary user a moment ago may still have that one's.
    let runtime = runtime.filter(|path| {
        path.is_absolute() && fs::metadata(path).is_ok_and(|is| is.is_dir() && is.uid() == own)
    });
    let folder = match runtime {
        Some(runtime) => runtime.join("dualq"),
        None => env::temp_dir().join(format!("dualq-{own}")),
    };
    let cannot = |error: &io::Error| {
        Failure::Run(format!("cannot make {}: {}", folder.display(), plain(error)))
    };
    match fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(cannot(&error)),
        _ => {}
    }
    let is = fs::symlink_metadata(&folder).map_err(|error| cannot(&error))?;
    if !is.is_dir() || is.uid() != own || is.mode() & 0o077 != 0 {
        let folder = folder.display();
        let message =
            format!("{folder} is not a folder of this user alone (mode 0700): move it away");
        return Err(Failure::Run(message));
    }
    Ok(folder)
}

/// The socket of this process's shell. It goes when this does.
pub(crate) struct Socket {
    path: PathBuf,
}

impl Socket {
    /// Opens it, and answers from a thread of its own.
    pub(crate) fn open(live: &Arc<Live>) -> Result<Self, Failure> {
        let path = folder()?.join(format!("{}{SUFFIX}", process::id()));
        let cannot = |error: io::Error| {
            Failure::Run(format!("cannot open {}: {}", path.display(), plain(&error)))
        };
        // Of a process that had the same number.
        let _ = fs::remove_file(&path);
        let listener = UnixListener::bind(&path).map_err(cannot)?;
        let socket = Self { path: path.clone() };
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(cannot)?;
        let live = Arc::clone(live);
        let listening = thread::Builder::new().name("control".to_owned()).spawn(move || {
            for client in listener.incoming().flatten() {
                let live = Arc::clone(&live);
                let answering = thread::Builder::new().name("control".to_owned());
                // Who asks and goes away has no need of an answer.
                let _ = answering.spawn(move || answer_all(&client, &live));
            }
        });
        listening.map_err(cannot)?;
        Ok(socket)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn answer_all(client: &UnixStream, live: &Live) -> io::Result<()> {
    let mut reader = BufReader::new(client);
    loop {
        let mut line = String::new();
        if io::Read::take(&mut reader, QUESTION_BYTES).read_line(&mut line)? == 0 {
            return Ok(());
        }
        let answer = match serde_json::from_str(&line) {
            Ok(Question::Look) => match live.document() {
                Ok(document) => Answer::Seen(Box::new(document)),
                Err(error) => Answer::Refused(error.to_string()),
            },
            Ok(Question::Set(changes)) => match live.change(&changes) {
                Ok(told) => Answer::Done(told),
                Err(why) => Answer::Refused(why),
            },
            Err(error) => Answer::Refused(format!("no question: {error}")),
        };
        let mut line = serde_json::to_string(&answer).map_err(io::Error::other)?;
        line.push('\n');
        let mut client = client;
        client.write_all(line.as_bytes())?;
    }
}

/// A shell that somebody else, or this very terminal, has open.
pub(crate) struct Remote {
    pub(crate) pid: u32,
    reader: BufReader<UnixStream>,
}

impl Remote {
    /// That one; or the one that this is in, or the only one.
    pub(crate) fn find(pid: Option<u32>) -> Result<Self, Failure> {
        let own = env::var(VARIABLE).ok().and_then(|pid| pid.parse().ok());
        let folder = folder()?;
        if let Some(pid) = pid {
            return Self::connect(&folder, pid).ok_or_else(|| {
                Failure::Run(format!(
                    "process {pid} is no dualq shell of this user's: `dualq shell` opens one, and without a number the only one is meant"
                ))
            });
        }
        if let Some(remote) = own.and_then(|pid| Self::connect(&folder, pid)) {
            return Ok(remote);
        }
        let mut all = all(&folder);
        match all.len() {
            1 => Ok(all.remove(0)),
            0 => {
                let message = "this user has no dualq shell open: open one by `dualq shell`";
                Err(Failure::Run(message.to_owned()))
            }
            _ => {
                let mut named: Vec<String> = all.iter_mut().map(Self::named).collect();
                named.sort();
                let message = format!("several are open: say which, of {}", named.join(", "));
                Err(Failure::Usage(message))
            }
        }
    }

    fn connect(folder: &Path, pid: u32) -> Option<Self> {
        let stream = UnixStream::connect(folder.join(format!("{pid}{SUFFIX}"))).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        Some(Self { pid, reader: BufReader::new(stream) })
    }

    /// Its number, and what runs in it.
    fn named(&mut self) -> String {
        // One that has ended meanwhile is still a number.
        let command =
            self.look().map_or_else(|_| "it does not answer".to_owned(), |now| now.command);
        format!("{} ({command})", self.pid)
    }

    pub(crate) fn look(&mut self) -> Result<Document, Failure> {
        match self.ask(&Question::Look)? {
            Answer::Seen(document) => Ok(*document),
            Answer::Done(said) | Answer::Refused(said) => Err(Failure::Run(said)),
        }
    }

    /// Says what was changed.
    pub(crate) fn set(&mut self, changes: &Changes) -> Result<String, Failure> {
        match self.ask(&Question::Set(changes.clone()))? {
            Answer::Done(told) => Ok(told),
            Answer::Refused(why) => Err(Failure::Usage(why)),
            Answer::Seen(_) => Err(Failure::Run("an answer to another question came".to_owned())),
        }
    }

    fn ask(&mut self, question: &Question) -> Result<Answer, Failure> {
        let mut ask = || -> io::Result<Answer> {
            let mut line = serde_json::to_string(question).map_err(io::Error::other)?;
            line.push('\n');
            self.reader.get_mut().write_all(line.as_bytes())?;
            let mut answer = String::new();
            if self.reader.read_line(&mut answer)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            serde_json::from_str(&answer).map_err(io::Error::other)
        };
        ask().map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => {
                Failure::Run(format!("dualq shell {} does not answer", self.pid))
            }
            _ => Failure::Run(format!("dualq shell {} has ended", self.pid)),
        })
    }
}

/// All that there are. What is left of one that is no more, is taken away.
fn all(folder: &Path) -> Vec<Remote> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let pids = names.filter_map(|name| name.strip_suffix(SUFFIX)?.parse().ok());
    let open = |pid: u32| {
        let remote = Remote::connect(folder, pid);
        if remote.is_none() {
            let _ = fs::remove_file(folder.join(format!("{pid}{SUFFIX}")));
        }
        remote
    };
    pids.filter_map(open).collect()
}
