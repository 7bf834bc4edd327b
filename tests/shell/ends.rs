//! How shells begin and end: exit statuses, signals, what is refused.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tests_skipped::{has, is_root, skipped};

use super::{able, run, shell};

#[test]
fn the_exit_status_is_the_commands() {
    if !able() {
        return;
    }
    for (script, status) in
        [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("no-such-program", 127)]
    {
        let (output, _, _) = run(&["--quiet", "--", "sh", "-c", script]);
        assert_eq!(output.status.code(), Some(status), "{script}");
    }
    let (_, stdout, stderr) =
        run(&["--rate", "20mbit", "--", "echo", "$FAR", "${FAR6}", "$FARTHER", "--", "$FAR"]);
    // Nested commands have their own.
    assert_eq!(stdout, "198.18.0.1 2001:2::1 $FARTHER -- $FAR\n");
    assert!(
        stderr.starts_with("dualq: ") && stderr.contains("down, far to near (20Mbit)"),
        "{stderr}"
    );
    assert!(stderr.contains("qdisc dualpi2 1: root"), "{stderr}");
}

#[test]
fn what_makes_no_sense_is_one_line() {
    for (args, status, says) in [
        (&["--rate", "fast"][..], 2, "--rate"),
        (&["--rtt", "-5ms"], 2, "--rtt"),
        (&["--rtt", "10y"], 2, "--rtt"),
        (&["--qdisc", "fq_coddle"], 2, "--qdisc"),
        (&["--up", "10mbit fq_codel limit x"], 2, "--up"),
        (&["--down", "unlimited pie"], 2, "without a rate nothing queues"),
        (&["--rate", "unlimited", "--qdisc", "pie"], 2, "--qdisc \"pie\": without a rate"),
        (&["--rate", "unlimited", "--up", "pie"], 2, "--up \"pie\": without a rate"),
        (&["--loss", "150%"], 2, "--loss"),
        (&["--mtu", "3"], 2, "--mtu"),
        (&["--trace", "/nowhere"], 1, "/nowhere"),
        (&["--scenario", "/nowhere"], 1, "/nowhere"),
        (&["--scenario", "scenarios/narrow-vps.toml"], 2, "different links"),
        (&["--log", "-"], 2, "--log"),
        (&["--", "no-such-program"], 127, "no such program in PATH"),
        (&["--", "./no-such-program"], 127, "no such program"),
        (&["iperf3", "-c", "far"], 2, "behind --: dualq shell -- iperf3 -c far"),
        (&["--rtt", "9ms", "true"], 2, "behind --: dualq shell --rtt 9ms -- true"),
        (&["watch"], 1, "no dualq shell open: open one by `dualq shell`"),
        (&["watch", "1"], 1, "process 1 is no dualq shell"),
        (&["set"], 2, "nothing to change: give --rate, --rtt, --qdisc, --down or --up"),
        (&["set", "--rate", "1mbit"], 1, "no dualq shell"),
    ] {
        let (output, stdout, stderr) = run(args);
        assert_eq!(output.status.code(), Some(status), "{args:?}: {stderr}");
        assert!(stderr.contains(says), "{args:?}: {stderr}");
        assert_eq!((stderr.lines().count(), stdout.as_str()), (1, ""), "{args:?}: {stderr}");
    }
}

/// What a trace says of a way, another option does not say again unheard.
#[test]
fn a_trace_and_a_rate_of_one_way_are_not_both_taken() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("slow.trace");
    std::fs::write(&trace, "1000\n").unwrap();
    let trace = trace.to_str().unwrap();
    for (option, way, words) in [
        ("--trace", "--down", "10mbit"),
        ("--trace", "--up", "unlimited"),
        ("--down-trace", "--down", "10mbit pie"),
        ("--up-trace", "--up", "10mbit"),
    ] {
        let (output, _, stderr) = run(&[option, trace, way, words, "--", "true"]);
        assert_eq!((output.status.code(), stderr.lines().count()), (Some(2), 1), "{stderr}");
        let says = format!("error: {way} {words:?}: {option} says the rates of that way; give a ");
        assert!(stderr.starts_with(&says), "{stderr}");
    }
    if !able() {
        return;
    }
    let (output, _, stderr) =
        run(&["--trace", trace, "--down", "fq_codel limit 77", "--qdisc", "pie", "--", "true"]);
    assert!(output.status.success(), "{stderr}");
    let (down, up) = stderr.split_once("up, near to far").unwrap();
    assert!(down.contains("(12112bit)") && down.contains("fq_codel 1: root refcnt 2 limit 77p"));
    assert!(up.contains("(12112bit)") && up.contains("qdisc pie"), "{stderr}");
}

/// Waits until the command says that it is there, and sends a signal to dualq alone.
fn signalled(script: &str, signal: Signal) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = shell(folder.path(), &["--quiet", "--", "sh", "-c", script]);
    let mut child = command.stdout(Stdio::piped()).process_group(0).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut said = [0; 2];
    std::io::Read::read_exact(&mut stdout, &mut said).unwrap();
    kill_process(Pid::from_child(&child), signal).unwrap();
    let rest = std::io::read_to_string(stdout).unwrap();
    (child.wait().unwrap().code(), rest)
}

#[test]
fn signals_are_the_commands() {
    if !able() {
        return;
    }
    let own = "trap 'echo told; exit 3' INT TERM; echo +; while :; do sleep 0.05; done";
    assert_eq!(signalled(own, Signal::INT), (Some(3), "told\n".to_owned()));
    assert_eq!(signalled(own, Signal::TERM), (Some(3), "told\n".to_owned()));
    assert_eq!(signalled("echo +; exec sleep 100", Signal::INT).0, Some(130));
    // Whoever does not listen is not waited for, and what it left behind neither.
    let deaf = "trap '' TERM HUP; sleep 100 & echo +; while :; do sleep 0.05; done";
    assert_eq!(signalled(deaf, Signal::TERM).0, Some(137));
}

#[test]
fn ctrl_c_of_a_terminal_is_the_commands_alone() {
    if !able() || !has("script", "bsdutils") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let said = folder.path().join("said");
    let inside = format!(
        "trap 'echo told >> {0}; told=1' INT; echo + >> {0}; while [ -z \"$told\" ]; do sleep 0.05; done; sleep 0.2; exit 4",
        said.display()
    );
    let script = folder.path().join("inside.sh");
    std::fs::write(&script, inside).unwrap();
    // No shell of script's stays between: some end by the key themselves, and their status would be what is told.
    let dualq = env!("CARGO_BIN_EXE_dualq");
    let words = format!("exec {dualq} shell --quiet -- sh {}", script.display());
    let mut command = std::process::Command::new("script");
    command.args(["-qec", &words, "/dev/null"]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.env("XDG_RUNTIME_DIR", folder.path()).spawn().unwrap();
    while std::fs::read_to_string(&said).unwrap_or_default() != "+\n" {
        thread::sleep(Duration::from_millis(20));
    }
    child.stdin.as_mut().unwrap().write_all(b"\x03").unwrap();
    // It is told once, and ends as it wants.
    assert_eq!(child.wait().unwrap().code(), Some(4));
    assert_eq!(std::fs::read_to_string(&said).unwrap(), "+\ntold\n");
}

#[test]
fn without_root_files_are_their_users() {
    if !able() || !is_root() {
        return;
    }
    // Nobody, as most systems have it.
    const NOBODY: u32 = 65534;
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let file = folder.path().join("made");
    let script = format!("id -u; : > {}", file.display());
    let mut command = shell(folder.path(), &["--quiet", "--", "sh", "-c", &script]);
    command.uid(NOBODY).gid(NOBODY);
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => return skipped(&format!("nobody may not run this program: {error}")),
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("cannot make network namespaces") || stderr.contains("/dev/net/tun") {
        return skipped(stderr.trim());
    }
    assert!(output.status.success(), "{stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{NOBODY}\n"));
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&file.metadata().unwrap()), NOBODY);
}
