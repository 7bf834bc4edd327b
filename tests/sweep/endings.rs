//! What is left of a sweep however it ends, and what the next one makes of it.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

use super::*;

/// A hundred runs, of some twenty milliseconds each.
const MANY: [&str; 6] = [
    "--vary",
    "link.rate=20mbit,21mbit,22mbit,23mbit,24mbit",
    "--seeds",
    "20",
    "--vary",
    "duration=30s",
];

/// As `SMALL`, with `MANY` runs.
fn many(folder: &str) -> Vec<&str> {
    let rest = ["--vary", "warmup=1s", "--folder", folder];
    [&["sweep"], &MANY[..], &rest].concat()
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

#[test]
fn a_second_call_computes_nothing() {
    let at = tempfile::tempdir().unwrap();
    let call = sweep(&[&TWELVE[..], &["--folder", "out"]].concat());
    assert!(
        well(at.path(), &call).starts_with("12 runs were computed, 0 were there; all are in out\n")
    );
    let times = |path: &PathBuf| fs::metadata(path).unwrap().modified().unwrap();
    let there = points(&at.path().join("out"));
    let before: Vec<_> = there.iter().map(times).collect();
    let again = well(at.path(), &call);
    assert!(again.starts_with("0 runs were computed, 12 were there; all are in out\n"), "{again}");
    assert_eq!(there.iter().map(times).collect::<Vec<_>>(), before);
    // One more value computes its own runs alone, and one seed more one of each.
    let more = ["--vary", "link.rate=2mbit,4mbit,8mbit,16mbit", "--seeds", "5", "--folder", "out"];
    assert!(well(at.path(), &sweep(&more)).starts_with("8 runs were computed, 12 were there;"));
}

#[test]
fn killed_at_any_moment_nothing_is_lost_but_what_was_in_flight() {
    let at = tempfile::tempdir().unwrap();
    let folder = at.path().join("killed");
    let mut before = 0;
    for count in [3, 30] {
        let mut child = begun(at.path(), &many("killed"));
        wait_for(&folder, before + count);
        kill_process(pid(&child), Signal::KILL).unwrap();
        child.wait().unwrap();
        let there = points(&folder);
        assert!(there.len() >= before + count && there.len() < 100, "{}", there.len());
        for path in &there {
            let run: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
            assert!(run["outcome"]["goodput_mbit"].is_f64());
        }
        before = there.len();
    }
    let said = well(at.path(), &many("killed"));
    let expected = format!("{} runs were computed, {before} were there;", 100 - before);
    assert!(said.starts_with(&expected), "{said}");
    assert!(well(at.path(), &many("whole")).starts_with("100 runs were computed, 0 were there;"));
    assert_eq!(document(at.path(), "killed"), document(at.path(), "whole"));
}

#[test]
fn an_interrupt_says_how_far_it_is_and_how_to_go_on() {
    let at = tempfile::tempdir().unwrap();
    let child = begun(at.path(), &many("out"));
    wait_for(&at.path().join("out"), 5);
    kill_process(pid(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(130), String::new()), "{said}");
    let there = points(&at.path().join("out")).len();
    let expected = format!(
        "error: interrupted: {there} of 100 runs were computed and are in out; the same command goes on from there\n"
    );
    assert_eq!(said, expected);
    assert!(well(at.path(), &many("out")).contains(&format!("{there} were there;")));
}

/// As nohup(1) starts a program: what it keeps away ends nothing.
#[test]
fn a_terminal_that_goes_does_not_end_what_nohup_started() {
    let at = tempfile::tempdir().unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' HUP; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_dualq")]);
    shell.args(many("out")).current_dir(at.path()).stdin(Stdio::null());
    let child = shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for(&at.path().join("out"), 5);
    kill_process(pid(&child), Signal::HUP).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).starts_with("100 runs were computed"));
}

/// A hundred are enough to tell, and harm no machine if it did start them.
#[test]
fn no_more_threads_than_cores_are_started() {
    let at = tempfile::tempdir().unwrap();
    let mut child = begun(at.path(), &[&many("out")[..], &["--jobs", "100"]].concat());
    wait_for(&at.path().join("out"), 1);
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let threads = status.lines().find_map(|line| line.strip_prefix("Threads:")).unwrap();
    let threads: usize = threads.trim().parse().unwrap();
    let cores = std::thread::available_parallelism().unwrap().get();
    // Beside those that compute: the first one, that of signals, and that of the progress bar.
    assert!(threads <= cores + 8, "{threads} threads on {cores} cores");
}

#[test]
fn two_processes_share_a_folder() {
    let at = tempfile::tempdir().unwrap();
    let both = [(); 2].map(|()| begun(at.path(), &many("shared")));
    let mut played = 0;
    for child in both {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        let said = text(&output.stdout);
        played += said.split(' ').next().unwrap().parse::<usize>().unwrap();
    }
    assert_eq!(points(&at.path().join("shared")).len(), 100);
    // Each run once, but for the few that both had begun.
    assert!((100..140).contains(&played), "{played}");
    assert!(well(at.path(), &many("alone")).starts_with("100 runs were computed"));
    assert_eq!(document(at.path(), "shared"), document(at.path(), "alone"));
}

#[test]
fn parts_together_are_the_whole() {
    let at = tempfile::tempdir().unwrap();
    let call =
        |folder, shard| sweep(&[&TWELVE[..], &["--folder", folder, "--shard", shard]].concat());
    for (shard, said) in [("2/4", "4 "), ("1/4", "4 "), ("4/4", "0 ")] {
        let output = dualq(at.path(), &call("parts", shard));
        assert!(text(&output.stdout).starts_with(said), "{shard}: {}", text(&output.stdout));
    }
    let half = well(at.path(), &["sweep", "--show", "--folder", "parts"]);
    assert!(half.contains("1 of 3 scenarios have no runs yet."), "{half}");
    well(at.path(), &call("parts", "3/4"));
    well(at.path(), &call("whole", "1/1"));
    assert_eq!(document(at.path(), "parts"), document(at.path(), "whole"));
}

#[test]
fn a_full_disk_is_told_and_leaves_whole_runs_only() {
    let at = tempfile::tempdir().unwrap();
    // A file system of its own, in a mount namespace of its own.
    let script = "mount -t tmpfs -o size=300k none small 2>/dev/null || exit 77
        \"$0\" \"$@\"; status=$?
        find small/out/points -type f -size 0; find small/out/parts -type f
        exit $status";
    fs::create_dir(at.path().join("small")).unwrap();
    let mut unshare = Command::new("unshare");
    unshare.args(["-m", "-r", "sh", "-c", script, env!("CARGO_BIN_EXE_dualq")]);
    unshare.args(many("small/out")).current_dir(at.path()).stdin(Stdio::null());
    let output = match unshare.output() {
        Ok(output) => output,
        Err(error) => return tests_skipped::skipped(&format!("no unshare: {error}")),
    };
    if output.status.code() == Some(77) || text(&output.stderr).contains("unshare") {
        return tests_skipped::skipped("no mount namespace");
    }
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.starts_with("error: cannot ") && said.contains(": No space left on device; "),
        "{said}"
    );
    assert!(
        said.contains(" of 100 runs were computed and are in small/out; the same command goes on"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1);
    // No empty run and nothing half written.
    assert_eq!(text(&output.stdout), "");
}
