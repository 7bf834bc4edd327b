//! Guests that come to a bad end: what is said, and that nothing of them stays.

use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use dualq_guest::{Guest, GuestError};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::{assert_nothing_left, command, error, kernel, processes_below, text};

/// What a guest gets that is expected to hang.
const PATIENCE: Duration = Duration::from_secs(2);
/// So long a test waits for what must happen: only what hangs takes longer, however busy the machine is.
const LONG: Duration = Duration::from_secs(600);

/// Runs a guest whose init is a shell script. Gives how it ended; nothing of it runs any more.
fn guest_with_init(script: &str, change: fn(Guest) -> Guest) -> Option<GuestError> {
    let kernel = kernel()?;
    let folder = tempfile::tempdir().unwrap();
    let init = folder.path().join("script");
    fs::write(&init, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&init, fs::Permissions::from_mode(0o755)).unwrap();
    let shared = folder.path().join("shared");
    fs::create_dir(&shared).unwrap();
    let machine = change(Guest::new(&kernel.executable, &init).patience(PATIENCE));
    let began = Instant::now();
    let ended = machine.run(&shared, &mut |_| ControlFlow::Continue(()));
    assert!(began.elapsed() < LONG, "{:?}", began.elapsed());
    wait_for_none_below(&shared);
    Some(ended.unwrap_err())
}

fn wait_for_none_below(folder: &Path) {
    let deadline = Instant::now() + LONG;
    while !processes_below(folder).is_empty() {
        assert!(Instant::now() < deadline, "left behind: {:?}", processes_below(folder));
        thread::sleep(Duration::from_millis(10));
    }
}

/// A program that computes forever stops the guest's clock; one that waits forever leaves nothing to happen.
#[test]
fn a_guest_that_hangs_is_ended() {
    for script in
        ["echo doing my best; while :; do :; done", "echo doing my best; exec sleep infinity"]
    {
        let Some(error) = guest_with_init(script, |guest| guest) else { return };
        eprintln!("{script}: {error}");
        assert!(matches!(error, GuestError::Hung { .. }), "{script}: {error:?}");
        let expected = "the guest gave no sign of life for 2 s and was ended; the last that it said: doing my best";
        assert_eq!(error.to_string(), expected, "{script}");
    }
}

/// A command of a user's computes for as long as it likes, by itself or in others that it starts, unless it waits forever.
#[test]
fn a_guest_that_computes_is_waited_for() {
    // Twice as patient as elsewhere, since beside others a guest needs a second or more to start; so it computes twice as long.
    let waited_for = |guest: Guest| guest.patience(2 * PATIENCE).may_compute();
    let spins = "i=0; while [ $i -lt 8000000 ]; do i=$((i+1)); done";
    for script in [format!("{spins}; exit 3"), format!("sh -c '{spins}'; exit 3")] {
        let Some(error) = guest_with_init(&script, waited_for) else { return };
        assert!(matches!(error, GuestError::Died { .. }), "{script}: {error:?}");
    }
    let Some(error) = guest_with_init("sleep infinity", Guest::may_compute) else { return };
    assert!(matches!(error, GuestError::Hung { .. }), "{error:?}");
}

#[test]
fn a_panic_is_shown() {
    let Some(error) = guest_with_init("exit 3", |guest| guest) else { return };
    assert!(matches!(error, GuestError::Died { .. }), "{error:?}");
    let said = error.to_string();
    assert!(
        said.contains("Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000300"),
        "{said}"
    );
}

/// The same through the program, which needs a command that brings the kernel down.
#[test]
fn a_panic_is_exit_status_1() {
    if kernel().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let args = ["kernel", "exec", "--", "sh", "-c", "echo before; echo c > /proc/sysrq-trigger"];
    let output = command(&args).env("TMPDIR", folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let line = error(&output);
    assert!(line.contains("the guest died"), "{line}");
    assert!(line.contains("Kernel panic - not syncing: sysrq triggered crash"), "{line}");
    assert_eq!(text(&output.stdout), "before\n");
    assert_nothing_left(folder.path());
}

/// A run of ten hours, which are minutes here, with as many guests at work below the folder as there can be.
fn at_work(folder: &Path) -> Child {
    let args = [
        "run",
        "--world",
        "kernel",
        "--rate",
        "50mbit",
        "--duration",
        "36000s",
        "--qdisc",
        "fq",
        "--qdisc",
        "pie",
        "--cc",
        "bbr",
        "--no-progress",
    ];
    let mut run = command(&args);
    run.env("TMPDIR", folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut run = run.spawn().unwrap();
    // Not before scenarios are on their way.
    let count = || {
        let guests = fs::read_dir(folder).unwrap().flatten();
        guests
            .filter(|guest| {
                fs::metadata(guest.path().join("pulse")).is_ok_and(|pulse| pulse.len() > 0)
            })
            .count()
    };
    let deadline = Instant::now() + LONG;
    let most = std::thread::available_parallelism().unwrap().get().min(2);
    while count() < most {
        assert!(run.try_wait().unwrap().is_none(), "it ended by itself");
        assert!(Instant::now() < deadline, "no guest gives a sign of life");
        thread::sleep(Duration::from_millis(10));
    }
    assert!(processes_below(folder).len() >= 2 * most, "{:?}", processes_below(folder));
    run
}

/// Ctrl-C, with two guests at work.
#[test]
fn an_interrupt_leaves_nothing() {
    if kernel().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let run = at_work(folder.path());
    kill(Pid::from_raw(run.id().cast_signed()), Signal::SIGINT).unwrap();
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert_eq!((text(&output.stdout), text(&output.stderr)), (String::new(), String::new()));
    assert_nothing_left(folder.path());
}

/// What cannot be caught: folders stay until somebody else runs a guest, but nothing runs in them, and in that of the memory is nothing but
/// its lock.
#[test]
fn guests_end_with_a_program_that_is_killed() {
    if kernel().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut run = at_work(folder.path());
    run.kill().unwrap();
    run.wait().unwrap();
    wait_for_none_below(folder.path());
    let guests = fs::read_dir(folder.path()).unwrap().map(|guest| guest.unwrap().path());
    let memories: Vec<_> =
        guests.map(|guest| fs::read_link(guest.join("memory")).unwrap()).collect();
    // Other tests may have removed it by now.
    let in_them = memories.iter().filter_map(|memory| fs::read_dir(memory).ok()).flatten();
    assert!(in_them.flatten().all(|entry| entry.file_name() == "lock"), "{memories:?}");
    let args = ["kernel", "exec", "--", "true"];
    let output = command(&args).env("TMPDIR", folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_nothing_left(folder.path());
    assert!(!memories.iter().any(|memory| memory.exists()), "{memories:?}");
}
