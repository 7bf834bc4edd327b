//! Processes that outlive who starts them: this program again, out of reach of what may end the session in which a plan is
//! applied, or the event in which a rule is called.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use dualq_host::Root;
use dualq_host::apply::{ApplyError, Store};
use dualq_host::program;

use crate::cli::{Failure, note};

/// Where systemd is at work, there is this folder (sd_booted(3)).
const SYSTEMD: &str = "/run/systemd/system";
/// This program, whatever is at its path by now.
const SELF: &str = "/proc/self/exe";
/// So long it may need until it is at work, and so often that is looked at.
const UNTIL_IT_COMES: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(10);

/// What such a process does.
#[derive(Clone, Copy)]
pub(crate) enum Duty {
    /// It takes the plan of this record back when nobody confirms it.
    WatchOver(u64),
    /// It puts back what others take away: routes, and what is below their classes.
    PutBack,
}

impl Duty {
    fn words(self) -> Vec<String> {
        match self {
            Self::WatchOver(number) => vec!["watch-over".to_owned(), number.to_string()],
            Self::PutBack => vec!["put-back".to_owned()],
        }
    }

    /// For `systemctl status`.
    const fn description(self) -> &'static str {
        match self {
            Self::WatchOver(_) => "Takes a plan of dualq back unless it is confirmed",
            Self::PutBack => "Puts back what others take away of dualq's plans",
        }
    }

    /// Behind "what".
    const fn does(self) -> &'static str {
        match self {
            Self::WatchOver(_) => "watches over the plan",
            Self::PutBack => "puts back what others take away",
        }
    }

    /// Whether a process does it: it then has the lock for that, which goes with a process.
    fn is_done(self, store: &Store) -> Result<bool, ApplyError> {
        match self {
            Self::WatchOver(number) => store.is_watched(number),
            Self::PutBack => store.is_kept(),
        }
    }
}

/// Starts a process for it. That is at work when this returns.
pub(crate) fn start(duty: Duty, store: &Store) -> Result<(), ApplyError> {
    let (does, cannot) = (duty.does(), cannot(duty));
    let state = std::path::absolute(store.folder()).map_err(&cannot)?;
    if Path::new(SYSTEMD).is_dir() && shares(&["net", "mnt"]) {
        let own = std::env::current_exe().map_err(&cannot)?;
        match program::installed(&Root::host(), &own) {
            Ok(()) => {
                if by_systemd(duty, &own, &state, &[]) && comes(duty, store, None)? {
                    return Ok(());
                }
                note(&format!("systemd did not start a unit that {does}; a plain process does it"));
            }
            Err(why) => note(&format!(
                "what {does} is a plain process and no unit of systemd, for {why}: {}",
                program::how_to_install(&own.display().to_string(), "/usr/local/bin/dualq")
            )),
        }
    }
    let mut child = by_itself(duty, &state).map_err(&cannot)?;
    if comes(duty, store, Some(&mut child))? {
        return Ok(());
    }
    let _ = child.kill();
    let _ = child.wait();
    Err(cannot(io::Error::other("it does not begin")))
}

/// The same for who is called by a rule, and must not wait: neither for the disk with the records, nor for systemd, which waits for
/// rules at boot. udev sees other mounts than what systemd starts, and the same network.
pub(crate) fn start_later(duty: Duty, store: &Store) -> Result<(), ApplyError> {
    let cannot = cannot(duty);
    let state = std::path::absolute(store.folder()).map_err(&cannot)?;
    let own = std::env::current_exe().map_err(&cannot)?;
    let by_systemd = Path::new(SYSTEMD).is_dir()
        && shares(&["net"])
        && program::installed(&Root::host(), &own).is_ok()
        && by_systemd(duty, &own, &state, &["--no-block"]);
    if by_systemd { Ok(()) } else { by_itself(duty, &state).map(drop).map_err(cannot) }
}

fn cannot(duty: Duty) -> impl Fn(io::Error) -> ApplyError {
    move |error| ApplyError::Io { what: format!("start the process that {}", duty.does()), error }
}

/// Waits until it is done; not if the process has ended that was to do it.
fn comes(duty: Duty, store: &Store, mut child: Option<&mut Child>) -> Result<bool, ApplyError> {
    let until = Instant::now() + UNTIL_IT_COMES;
    loop {
        if duty.is_done(store)? {
            return Ok(true);
        }
        let ended = child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(Some(_))));
        if ended || Instant::now() > until {
            return Ok(false);
        }
        thread::sleep(LOOK);
    }
}

/// Whether what systemd starts would be in the same namespaces of these kinds.
fn shares(kinds: &[&str]) -> bool {
    let namespace =
        |process: &str, kind: &str| fs::read_link(format!("/proc/{process}/ns/{kind}")).ok();
    kinds.iter().all(|kind| namespace("self", kind) == namespace("1", kind))
}

fn by_systemd(duty: Duty, own: &Path, state: &PathBuf, options: &[&str]) -> bool {
    let status = Command::new("systemd-run")
        .env("PATH", program::PATH)
        .args(["--quiet", "--collect", "--service-type=exec", "--property=Restart=on-failure"])
        // The signal of a careless pkill(1) is no failure to systemd, unless it is told.
        .args(["--property=RestartForceExitStatus=SIGTERM", "--property=RestartSec=1"])
        // It is never started too often to be started again.
        .arg("--property=StartLimitIntervalSec=0")
        .args(options)
        .arg(format!("--description={}", duty.description()))
        .arg("--")
        .arg(own)
        .args(duty.words())
        .args(["--unit", "--state"])
        .arg(state)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

fn by_itself(duty: Duty, state: &PathBuf) -> io::Result<Child> {
    Command::new(SELF)
        .arg0("dualq")
        .args(duty.words())
        .arg("--state")
        .arg(state)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// Leaves the session in which it was started.
pub(crate) fn leave(unit: bool) {
    if !unit {
        // Whoever leads a group of processes cannot leave, and need not.
        let _ = rustix::process::setsid();
    }
}

/// The same, and is deaf to what asks it to end.
pub(crate) fn settle(unit: bool) -> Result<(), Failure> {
    leave(unit);
    if unit {
        return Ok(());
    }
    ctrlc::set_handler(|| {})
        .map_err(|error| Failure::Run(format!("cannot ignore signals: {error}")))
}
