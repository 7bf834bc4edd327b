//! The process that takes a plan back when nobody confirms it: this program again, out of reach of what may end the session in
//! which the plan is applied.

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
/// So long it may need until it watches, and so often that is looked at.
const UNTIL_IT_WATCHES: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(10);

/// Starts it for a record. It watches when this returns: it then has the lock for that, which goes with a process.
pub(crate) fn start(number: u64, store: &Store) -> Result<(), ApplyError> {
    let cannot =
        |error| ApplyError::Io { what: "start the process that watches over it".into(), error };
    let state = std::path::absolute(store.folder()).map_err(cannot)?;
    let number_word = number.to_string();
    if Path::new(SYSTEMD).is_dir() && shares_namespaces() {
        let own = std::env::current_exe().map_err(cannot)?;
        match program::installed(&Root::host(), &own) {
            Ok(()) => {
                let started = by_systemd(&own, &state, &number_word);
                if started && watches(store, number, None)? {
                    return Ok(());
                }
                note(
                    "systemd did not start a unit that watches over the plan; a plain process does it",
                );
            }
            Err(why) => note(&format!(
                "what watches over the plan is a plain process and no unit of systemd, for {why}: {}",
                program::how_to_install(&own.display().to_string(), "/usr/local/bin/dualq")
            )),
        }
    }
    let mut child = by_itself(&state, &number_word).map_err(cannot)?;
    if watches(store, number, Some(&mut child))? {
        return Ok(());
    }
    let _ = child.kill();
    let _ = child.wait();
    Err(cannot(io::Error::other("it does not watch")))
}

/// Waits until the record is watched over; not if the process has ended that was to do it.
fn watches(store: &Store, number: u64, mut child: Option<&mut Child>) -> Result<bool, ApplyError> {
    let until = Instant::now() + UNTIL_IT_WATCHES;
    loop {
        if store.is_watched(number)? {
            return Ok(true);
        }
        let ended = child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(Some(_))));
        if ended || Instant::now() > until {
            return Ok(false);
        }
        thread::sleep(LOOK);
    }
}

/// Whether what systemd starts would see the same network and files.
fn shares_namespaces() -> bool {
    let namespace =
        |process: &str, kind: &str| fs::read_link(format!("/proc/{process}/ns/{kind}")).ok();
    ["net", "mnt"].iter().all(|kind| namespace("self", kind) == namespace("1", kind))
}

fn by_systemd(own: &Path, state: &PathBuf, number: &str) -> bool {
    let status = Command::new("systemd-run")
        .env("PATH", program::PATH)
        .args(["--quiet", "--collect", "--service-type=exec", "--property=Restart=on-failure"])
        // The signal of a careless pkill(1) is no failure to systemd, unless it is told.
        .args(["--property=RestartForceExitStatus=SIGTERM", "--property=RestartSec=1"])
        // It is never started too often to be started again.
        .arg("--property=StartLimitIntervalSec=0")
        .arg("--description=Takes a plan of dualq back unless it is confirmed")
        .arg("--")
        .arg(own)
        .args(["watch-over", number, "--unit", "--state"])
        .arg(state)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

fn by_itself(state: &PathBuf, number: &str) -> io::Result<Child> {
    Command::new(SELF)
        .arg0("dualq")
        .args(["watch-over", number, "--state"])
        .arg(state)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// Leaves the session in which it was started, and is deaf to what asks it to end.
pub(crate) fn settle(unit: bool) -> Result<(), Failure> {
    if unit {
        return Ok(());
    }
    // Whoever leads a group of processes cannot leave, and need not.
    let _ = rustix::process::setsid();
    ctrlc::set_handler(|| {})
        .map_err(|error| Failure::Run(format!("cannot ignore signals: {error}")))
}
