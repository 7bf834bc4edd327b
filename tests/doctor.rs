//! `dualq doctor` as its users run it.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const DEBIAN: &str = "tests/data/facts/debian-13.json";

fn dualq(args: &[&str]) -> Output {
    command(env!("CARGO_BIN_EXE_dualq"), args).output().unwrap()
}

fn command(program: impl AsRef<Path>, args: &[&str]) -> Command {
    let mut command = Command::new(program.as_ref());
    command.args(args).current_dir(env!("CARGO_MANIFEST_DIR"));
    // Whoever runs the tests may have a terminal of another width.
    command.env("COLUMNS", "100").stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    text(&output.stdout)
}

/// The one line and the status of a failure.
fn failure(output: &Output) -> (Option<i32>, String) {
    let error = text(&output.stderr);
    assert!(error.starts_with("error: ") && error.lines().count() == 1, "{error}");
    assert_eq!(text(&output.stdout), "");
    (output.status.code(), error)
}

#[test]
fn help() {
    insta::assert_snapshot!("help", stdout(&dualq(&["doctor", "--help"])));
}

#[test]
fn saved_machines_are_described() {
    for name in ["debian-13", "ubuntu-24.04", "alpine-3.22", "openwrt-24", "linux-7.3"] {
        let file = format!("tests/data/facts/{name}.json");
        let output = dualq(&["doctor", "--facts", &file, "--rate", "50mbit"]);
        insta::assert_snapshot!(name, stdout(&output));
    }
}

#[test]
fn freebsd_is_described_by_what_it_tells() {
    for name in ["freebsd-13", "freebsd-14", "freebsd-15"] {
        let file = format!("tests/data/facts/{name}.sysctl");
        let output = dualq(&["doctor", "--facts", &file, "--rate", "1gbit"]);
        insta::assert_snapshot!(name, stdout(&output));
    }
}

/// The program's own process, where its user is no other.
fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

#[test]
fn an_ordinary_user_is_told_about_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    let program = tests_skipped::for_anybody(env!("CARGO_BIN_EXE_dualq"), folder.path());
    let run = |args: &[&str]| {
        let mut command = command(&program, args);
        command.current_dir("/");
        if is_root() {
            command.uid(65534).gid(65534);
        }
        stdout(&command.output().unwrap())
    };
    let text = run(&["doctor"]);
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert!(text.contains(release.trim()), "{text}");

    let json = run(&["doctor", "--json"]);
    let document: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document["format"], 1);
    assert_eq!(document["kernel"]["release"], release.trim());
    let keys = ["os", "kernel", "distribution", "qdiscs", "congestion_controls", "interfaces"];
    for key in keys.into_iter().chain(["default_routes", "sysctls", "settings", "files", "unread"])
    {
        assert!(!document[key].is_null(), "{key}");
    }
    let control = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap();
    assert_eq!(document["sysctls"]["net.ipv4.tcp_congestion_control"], control.trim());
    assert_eq!(document["congestion_controls"][control.trim()], "ready");
    // A user may see the queues too.
    for interface in document["interfaces"].as_array().unwrap() {
        let queues = interface["qdiscs"].as_array().unwrap();
        assert!(interface["up"] == false || !queues.is_empty(), "{interface}");
    }
    for finding in document["findings"].as_array().unwrap() {
        for key in ["id", "harm", "seen", "why", "cure", "source"] {
            assert!(finding[key].as_str().is_some_and(|text| !text.is_empty()), "{finding}");
        }
    }
    // What one dualq prints, another reads.
    let mut reading = command(env!("CARGO_BIN_EXE_dualq"), &["doctor", "--facts", "-", "--json"]);
    let mut child = reading.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(json.as_bytes()).unwrap();
    let again = child.wait_with_output().unwrap();
    assert_eq!(text_of_facts(&again.stdout), text_of_facts(json.as_bytes()));
}

fn text_of_facts(document: &[u8]) -> String {
    let mut document: Value = serde_json::from_slice(document).unwrap();
    document.as_object_mut().unwrap().remove("findings");
    document.to_string()
}

#[test]
fn findings_are_no_failure() {
    let output = dualq(&["doctor", "--facts", DEBIAN, "--json"]);
    let document: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert!(!document["findings"].as_array().unwrap().is_empty());
    let saved: Value = serde_json::from_str(&fs::read_to_string(DEBIAN).unwrap()).unwrap();
    assert_eq!(document["interfaces"], saved["interfaces"]);
}

#[test]
fn what_cannot_be_read_is_one_line() {
    for (args, status, part) in [
        (&["doctor", "--facts", "/nowhere"][..], 1, "cannot read /nowhere: No such file"),
        (&["doctor", "--facts", "Cargo.toml"], 1, "Cargo.toml holds no facts"),
        (&["doctor", "--facts", "-"], 1, "standard input holds no facts"),
        (&["doctor", "--rate", "fast"], 2, "--rate: "),
        (&["doctor", "--rate", "0"], 2, "--rate: a bottleneck has a rate above 0"),
        (&["doctor", "--rate", "5"], 2, "--rate: \"5\" is less than 1000 bit/s"),
        (
            &["doctor", "--rate", "10tbit"],
            2,
            "--rate: 10Tbit is out of bounds; give 1Kbit to 1Tbit",
        ),
    ] {
        let (code, error) = failure(&dualq(args));
        assert_eq!(code, Some(status), "{error}");
        assert!(error.contains(part) && !error.contains("os error"), "{error}");
    }
}
