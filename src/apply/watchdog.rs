//! The process that takes a plan back when nobody confirms it: this program again, out of reach of what may end the session in
//! which the plan is applied.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use dualq_host::apply::ApplyError;

use crate::cli::Failure;
use crate::output::plain;

/// What it says when nothing that comes from a terminal ends it any more.
const READY: &str = "watching";
/// Where systemd is at work, there is this folder (sd_booted(3)).
const SYSTEMD: &str = "/run/systemd/system";

/// Starts it for a record. It is there when this returns.
pub(crate) fn start(number: u64, state: &Path) -> Result<(), ApplyError> {
    let cannot =
        |error| ApplyError::Io { what: "start the process that watches over it".into(), error };
    let program = std::env::current_exe().map_err(cannot)?;
    let state = std::path::absolute(state).map_err(cannot)?;
    let number = number.to_string();
    if Path::new(SYSTEMD).is_dir() && shares_namespaces() && by_systemd(&program, &state, &number) {
        return Ok(());
    }
    by_itself(&program, &state, &number).map_err(cannot)
}

/// Whether what systemd starts would see the same network and files.
fn shares_namespaces() -> bool {
    let namespace =
        |process: &str, kind: &str| fs::read_link(format!("/proc/{process}/ns/{kind}")).ok();
    ["net", "mnt"].iter().all(|kind| namespace("self", kind) == namespace("1", kind))
}

fn by_systemd(program: &Path, state: &PathBuf, number: &str) -> bool {
    let status = Command::new("systemd-run")
        .args(["--quiet", "--collect", "--service-type=exec", "--property=Restart=on-failure"])
        // The signal of a careless pkill(1) is no failure to systemd, unless it is told.
        .args(["--property=RestartForceExitStatus=SIGTERM", "--property=RestartSec=1"])
        .arg("--description=Takes a plan of dualq back unless it is confirmed")
        .arg("--")
        .arg(program)
        .args(["watch-over", number, "--unit", "--state"])
        .arg(state)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

fn by_itself(program: &Path, state: &PathBuf, number: &str) -> io::Result<()> {
    let mut child = Command::new(program)
        .args(["watch-over", number, "--state"])
        .arg(state)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let stdout =
        child.stdout.take().ok_or_else(|| io::Error::other("it has no standard output"))?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    if line.trim_end() == READY {
        return Ok(());
    }
    Err(io::Error::other("it ended at once"))
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

/// Tells who started it.
pub(crate) fn is_ready() -> Result<(), Failure> {
    let mut stdout = io::stdout();
    writeln!(stdout, "{READY}")
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::Run(format!("cannot say that it watches: {}", plain(&error))))
}
