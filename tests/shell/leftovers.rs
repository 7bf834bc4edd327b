//! Nothing is left of shells, however they end.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{able, shell, sockets};

const SHELLS: usize = 200;
/// So many are open at once.
const AT_ONCE: usize = 20;
/// A command that is easily told from others.
const LASTING: &str = "86411.25";

/// The network namespaces of a process's threads.
fn namespaces(pid: &str) -> BTreeSet<PathBuf> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks.filter_map(|task| fs::read_link(task.path().join("ns/net")).ok()).collect()
}

fn pids() -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).collect()
}

/// When a process began, in ticks since the machine did (proc_pid_stat(5)).
fn start_ticks(pid: &str) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// What they are counted up to: `/proc/uptime` has hundredths of a second, and so long is a tick.
fn uptime_ticks() -> u64 {
    let uptime = fs::read_to_string("/proc/uptime").unwrap();
    uptime.split(' ').next().unwrap().replace('.', "").parse().unwrap()
}

fn is_ours(pid: &str) -> bool {
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&command).contains(LASTING)
}

fn devices() -> BTreeSet<String> {
    let entries = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Opens one whose command, and a process that this left alone, last.
fn open(folder: &Path) -> Child {
    let said = "(sleep $0 &); exec sleep $0";
    let mut command = shell(folder, &["--quiet", "--", "sh", "-c", said, LASTING]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn two_hundred_shells_leave_nothing() {
    if !able() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let own: BTreeSet<PathBuf> = namespaces("self");
    let devices_before = devices();
    let mut seen = BTreeSet::new();
    for round in 0..SHELLS / AT_ONCE {
        let mut shells: Vec<Child> = (0..AT_ONCE).map(|_| open(folder.path())).collect();
        let sleeping = || {
            let is_sleep = |pid: &&String| {
                fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm == "sleep\n")
            };
            pids().iter().filter(is_sleep).filter(|pid| is_ours(pid)).count()
        };
        until("all begin", || sleeping() == 2 * AT_ONCE);
        for shell in &shells {
            seen.extend(namespaces(&shell.id().to_string()));
        }
        for (number, shell) in shells.iter().enumerate() {
            // Some are not even asked.
            let signal = if (number + round) % 2 == 0 { Signal::KILL } else { Signal::TERM };
            kill_process(Pid::from_child(shell), signal).unwrap();
        }
        for shell in &mut shells {
            shell.wait().unwrap();
        }
        until("all processes end", || !pids().iter().any(|pid| is_ours(pid)));
    }
    seen.retain(|namespace| !own.contains(namespace));
    // Both ends of each were seen, though the kernel may give a number again.
    assert!(seen.len() >= 2 * AT_ONCE, "{}", seen.len());
    // The kernel gives numbers of namespaces that are gone to those of other tests, begun later.
    let ended = uptime_ticks();
    let left = || {
        let pids = pids();
        let old = pids.iter().filter(|pid| start_ticks(pid).is_some_and(|start| start <= ended));
        old.flat_map(|pid| namespaces(pid)).filter(|one| seen.contains(one)).count()
    };
    until("no namespace is left", || left() == 0);
    assert_eq!(sockets(folder.path()), Vec::<PathBuf>::new());
    let new: Vec<String> = devices().difference(&devices_before).cloned().collect();
    assert!(!new.iter().any(|device| device.starts_with("dualq")), "{new:?}");
}
