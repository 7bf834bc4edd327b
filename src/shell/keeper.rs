//! A process between `dualq shell` and its command, so that nothing of the command is left, however either of them ends: all that the
//! command started and left alone becomes this one's child, and goes with it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _, parent_id};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, id};
use std::thread;
use std::time::{Duration, Instant};

use dualq_units::plain;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, kill_process, set_child_subreaper, set_parent_process_death_signal,
    wait,
};

use crate::cli::Failure;
use crate::cli::shell::KeepArgs;
use crate::signals::{Came, Signals};

/// How long a command that is told to end has before it is told that its terminal is gone, which ends interactive shells too, and how
/// long it then has before it is killed.
const PATIENCE: Duration = Duration::from_millis(300);
const LAST_PATIENCE: Duration = Duration::from_secs(2);
/// How long what a command left behind has to end by itself.
const GRACE: Duration = Duration::from_millis(200);
const LOOK: Duration = Duration::from_millis(5);

/// The kernel sends it when the parent's thread ends that started this process, while the parent itself may still be on its way out.
const PARENT_GONE: Signal = Signal::USR1;

/// This program.
const PROGRAM: &str = "/proc/self/exe";

/// Exit statuses of a command that is not there, and of one that cannot be run, as shells have them (POSIX, "Exit Status for Commands").
pub(crate) const NOT_FOUND: u8 = 127;
const NOT_RUN: u8 = 126;

/// This program anew as the keeper of `command`. It belongs to the thread that starts it, which has to stay as long.
pub(crate) fn of(command: &Command, forget: Option<&Path>) -> Command {
    let mut keeper = Command::new(PROGRAM);
    keeper.arg0("dualq").arg("keep").arg("--parent").arg(id().to_string());
    if let Some(path) = forget {
        keeper.arg("--forget").arg(path);
    }
    keeper.arg("--").arg(command.get_program()).args(command.get_args());
    keeper.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    keeper
}

/// From now on processes become this one's children that were started from here and left alone.
pub(crate) fn adopt() -> Result<(), Failure> {
    // Any number but none says yes.
    set_child_subreaper(Pid::from_raw(1))
        .map_err(|error| Failure::Run(format!("cannot adopt processes: {}", plain(&error))))
}

/// The keeper itself, or what it starts as its command.
pub(crate) fn keep(args: &KeepArgs) -> Result<(), Failure> {
    match args.parent {
        Some(parent) => keep_company(args, parent),
        None => Err(become_command(&args.command)),
    }
}

/// This process becomes the command, once signals reach it as usual. A keeper that let them through while it starts the command
/// would be ended by one that comes just then.
fn become_command(command: &[OsString]) -> Failure {
    if let Err(error) = Signals::let_all_through() {
        return Failure::Run(format!("cannot unblock signals: {}", plain(&error)));
    }
    let (program, rest) = command.split_first().expect("the arguments have one");
    let error = Command::new(program).args(rest).exec();
    let program = program.to_string_lossy();
    Failure::Run(format!("cannot run {program}: {}", plain(&error))).report();
    let is_there = error.kind() != io::ErrorKind::NotFound;
    Failure::Command(if is_there { NOT_RUN } else { NOT_FOUND })
}

fn keep_company(args: &KeepArgs, parent: u32) -> Result<(), Failure> {
    let cannot =
        |what: &str, error: io::Error| Failure::Run(format!("cannot {what}: {}", plain(&error)));
    set_parent_process_death_signal(Some(PARENT_GONE))
        .map_err(|error| cannot("keep a command", error.into()))?;
    adopt()?;
    let signals = Signals::take(true).map_err(|error| cannot("wait for signals", error))?;
    // It may have died before that, and then no signal comes.
    let mut is_orphan = parent_id() != parent;
    let mut command = Command::new(PROGRAM);
    let child = command.arg0("dualq").args(["keep", "--"]).args(&args.command).spawn();
    let child = child.map_err(|error| cannot("start a command", error))?;
    let status = wait_for(Pid::from_child(&child), &signals, &mut is_orphan)
        .map_err(|error| cannot("wait for the command", error))?;
    // Nobody is there any more to be polite for, or to take away what belonged to both.
    if is_orphan && let Some(path) = &args.forget {
        let _ = fs::remove_file(path);
    }
    end_all(if is_orphan { Duration::ZERO } else { GRACE });
    Err(Failure::Command(status_of(status)))
}

/// As a shell tells it.
pub(crate) fn status_of(status: ExitStatus) -> u8 {
    let signal = status.signal().map(|signal| 128 + signal);
    status.code().or(signal).and_then(|status| u8::try_from(status).ok()).unwrap_or(1)
}

/// Ends with the command, which gets all signals that are sent to this process alone.
fn wait_for(pid: Pid, signals: &Signals, is_orphan: &mut bool) -> io::Result<ExitStatus> {
    let mut told_at: Option<Instant> = None;
    let mut is_hung_up = false;
    loop {
        // Others were left alone by their parents.
        while let Some((ended, status)) = wait(WaitOptions::NOHANG)? {
            if ended == pid {
                return Ok(ExitStatus::from_raw(status.as_raw()));
            }
        }
        let passed = told_at.map(|told| told.elapsed());
        if *is_orphan || passed.is_some_and(|passed| passed > LAST_PATIENCE) {
            let _ = kill_process(pid, Signal::KILL);
        } else if passed.is_some_and(|passed| passed > PATIENCE) && !is_hung_up {
            is_hung_up = true;
            let _ = kill_process(pid, Signal::HUP);
            let _ = kill_process(pid, Signal::CONT);
        }
        let timeout = told_at.map(|_| Timespec { tv_sec: 0, tv_nsec: 50_000_000 });
        match poll(
            &mut [PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN)],
            timeout.as_ref(),
        ) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        while let Some(Came { signal, by_terminal }) = signals.next()? {
            if signal == PARENT_GONE {
                *is_orphan = true;
                let _ = kill_process(pid, Signal::KILL);
                continue;
            }
            let ends = matches!(signal, Signal::TERM | Signal::HUP);
            if ends && told_at.is_none() {
                told_at = Some(Instant::now());
            }
            // What a terminal sends, all get that are in the foreground.
            if signal != Signal::CHILD && (!by_terminal || ends) {
                let _ = kill_process(pid, signal);
            }
        }
    }
}

/// Ends all children, and theirs, which become children of this process as their parents end, if it adopts them.
pub(crate) fn end_all(grace: Duration) {
    let begin = Instant::now();
    let mut signal = if grace.is_zero() { Signal::KILL } else { Signal::TERM };
    let mut told: Vec<Pid> = Vec::new();
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => continue,
            Ok(None) => {}
            // There is no child any more.
            Err(_) => return,
        }
        if signal == Signal::TERM && begin.elapsed() > grace {
            signal = Signal::KILL;
            told.clear();
        }
        for pid in children().unwrap_or_default() {
            if !told.contains(&pid) {
                told.push(pid);
                let _ = kill_process(pid, signal);
                let _ = kill_process(pid, Signal::CONT);
            }
        }
        thread::sleep(LOOK);
    }
}

/// The children of this process.
fn children() -> io::Result<Vec<Pid>> {
    let own = id().to_string();
    let is_child = |name: &str| {
        // Behind the name of the program, which may contain anything, are its state and its parent (proc(5)).
        let stat = fs::read_to_string(format!("/proc/{name}/stat")).ok()?;
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.to_owned();
        (parent == own).then_some(())?;
        Pid::from_raw(name.parse().ok()?)
    };
    let entries = fs::read_dir("/proc")?.flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let numbers = numbers.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    Ok(numbers.filter_map(|name| is_child(&name)).collect())
}

/// Ends a keeper with all that it keeps.
pub(crate) fn end(keeper: &mut Child) {
    let _ = kill_process(Pid::from_child(keeper), Signal::TERM);
    let _ = keeper.wait();
}
