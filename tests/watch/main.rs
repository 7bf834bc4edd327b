//! `dualq watch` as its user runs it.

mod prometheus;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tests_skipped::{again_as_root, has, is_root};

fn watch(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dualq"));
    command.arg("watch").args(args).stdin(Stdio::null());
    command
}

/// The exit status of one that ends by itself, and its two texts.
fn run(args: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = watch(args).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (status.code(), text(&stdout), text(&stderr))
}

/// Ends one, as Ctrl-C does; its exit status.
fn end(child: &mut Child, signal: Signal) -> Option<i32> {
    kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
    child.wait().unwrap().code()
}

#[test]
fn lines_come_as_often_as_asked_for() {
    let (status, stdout, stderr) = run(&["lo", "--json", "--interval", "50ms", "--count", "3"]);
    assert_eq!((status, stdout.lines().count()), (Some(0), 3), "{stderr}");
    let mut whole = 0.0;
    for line in stdout.lines() {
        let figures: Value = serde_json::from_str(line).unwrap();
        let seconds = figures["seconds"].as_f64().unwrap();
        assert!(seconds > 0.0, "{line}");
        whole += seconds;
        assert!(figures["time"].as_f64().unwrap() > 1.7e9, "{line}");
    }
    // One that came late leaves the next less time, but none comes early.
    assert!(whole > 0.149_999, "{stdout}");
    // The last one is cut short rather than late. So long that a busy machine's lateness does not cost a line.
    let (status, stdout, _) = run(&["lo", "--json", "--interval", "800ms", "--for", "2s"]);
    assert_eq!((status, stdout.lines().count()), (Some(0), 3), "{stdout}");
    let (status, stdout, _) = run(&["lo", "--interval", "20ms", "--count", "2"]);
    assert_eq!((status, stdout.matches(" s\n").count()), (Some(0), 2), "{stdout}");
}

#[test]
fn what_is_wrong_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let missing = folder.path().join("none/x.prom").display().to_string();
    let inside = folder.path().display().to_string();
    for (args, status, said) in [
        (&["no-such-device"][..], 1, "no device \"no-such-device\""),
        (&["--interval", "0"], 2, "--interval"),
        (&["--interval", "1"], 2, "it is 10ms to 1h"),
        (&["--for", "0s"], 2, "--for"),
        (&["--count", "0"], 2, "--count"),
        (&["--count", "1", "--for", "1s"], 2, "--for"),
        (&["--json", "--prometheus", "9"], 2, "--prometheus"),
        (&["--prometheus", "example.org:80"], 2, "127.0.0.1:9798"),
        (&["--prometheus", &address], 1, &format!("cannot listen at {address}")),
        (&["--prometheus", &missing], 1, &missing),
        (&["--prometheus", &inside], 1, &inside),
    ] {
        let (code, stdout, stderr) = run(args);
        assert_eq!((code, stdout.as_str()), (Some(status), ""), "{args:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
        assert!(stderr.starts_with("error: ") && stderr.contains(said), "{args:?}: {stderr}");
    }
}

#[test]
fn signals_end_it_well() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let mut command = watch(&["--json", "--interval", "20ms"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        lines.next().unwrap().unwrap();
        assert_eq!(end(&mut child, signal), Some(0));
        // No line is cut in two.
        for line in lines {
            serde_json::from_str::<Value>(&line.unwrap()).unwrap();
        }
    }
    // Nor is it an error that nobody reads any more.
    let mut command = watch(&["--json", "--interval", "20ms"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_device_may_go_and_come_back() {
    if !has("ip", "iproute2") || !has("tc", "iproute2") {
        return;
    }
    if !is_root() {
        return again_as_root("true");
    }
    // In a network namespace of this test's own.
    let script = format!(
        "set -e
        ip link add name d0 type veth peer name d1
        ip link set d0 up; ip link set d1 up
        tc qdisc replace dev d0 root handle 1: pfifo limit 10
        {} watch d0 --json --interval 100ms --for 1500ms & sleep 0.5
        ip link del d0; sleep 0.3
        ip link add name d0 type veth peer name d1
        tc qdisc replace dev d0 root handle 7: pfifo limit 10
        wait $!",
        env!("CARGO_BIN_EXE_dualq")
    );
    let output = Command::new("unshare").args(["--net", "sh", "-c", &script]).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let stdout = String::from_utf8_lossy(&output.stdout);
    let mut handles: Vec<String> = stdout
        .lines()
        .map(|line| {
            let figures: Value = serde_json::from_str(line).unwrap();
            figures["qdiscs"][0]["handle"].as_str().unwrap_or("none").to_owned()
        })
        .collect();
    handles.dedup();
    assert_eq!(handles, ["1:", "none", "7:"], "{stdout}");
}
