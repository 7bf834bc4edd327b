//! Links that are looked at and changed while they run, and what is written down of them.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;
use tests_skipped::has;

use super::{able, run, shell, sockets};

const DUALQ: &str = env!("CARGO_BIN_EXE_dualq");

#[test]
fn a_link_is_changed_from_inside() {
    if !able() {
        return;
    }
    let script = format!(
        "{DUALQ} shell set --rate 7mbit --qdisc pie --rtt 30ms && {DUALQ} shell set --up '3mbit pfifo limit 10' \
         && {DUALQ} shell watch --json"
    );
    let (output, stdout, stderr) = run(&["--quiet", "--rate", "50mbit", "--", "sh", "-c", &script]);
    assert!(output.status.success(), "{stdout}{stderr}");
    let (told, document) = stdout.split_at(stdout.find("{\n").unwrap());
    assert!(told.contains("down rate 7Mbit") && told.contains("up qdisc pfifo limit 10"), "{told}");
    let document: Value = serde_json::from_str(document).unwrap();
    assert_eq!(
        (&document["down"]["rate"], &document["up"]["rate"]),
        (&"7Mbit".into(), &"3Mbit".into())
    );
    assert_eq!(document["base_rtt_ms"], 30.0);
    assert!(document["down"]["qdisc"].as_str().unwrap().starts_with("pie"), "{document}");
    assert_eq!(document["up"]["statistics"]["kind"], "pfifo");
}

#[test]
fn a_link_is_changed_from_elsewhere() {
    if !able() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut command = shell(folder.path(), &["--quiet", "--", "cat"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let pid = child.id().to_string();
    let call = |args: &[&str]| {
        let output = shell(folder.path(), args).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    while sockets(folder.path()).is_empty() || call(&["watch", "--json"]).0 != Some(0) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // What somebody else left behind is nobody's.
    fs::write(folder.path().join("dualq/4194305.shell"), "").unwrap();
    let (status, told, why) = call(&["set", "--down", "9mbit"]);
    assert_eq!((status, told.as_str()), (Some(0), "down rate 9Mbit\n"), "{why}");
    let (_, document, _) = call(&["watch", "--json", &pid]);
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["down"]["rate"], "9Mbit");
    let (status, _, why) = call(&["set", "--qdisc", "fq_coddle", &pid]);
    assert_eq!((status, why.lines().count()), (Some(2), 1), "{why}");
    assert_eq!(call(&["set", "--rate", "unlimited"]).0, Some(2));
    // No link opens with these either.
    for (set, bounds) in [
        (["--rtt", "100s"], "error: --rtt: 100s is out of bounds; give 0ms to 60s\n"),
        (["--rate", "5tbit"], "error: --rate: 5Tbit is out of bounds; give 1Kbit to 1Tbit\n"),
        (["--up", "5tbit"], "error: --up: 5Tbit is out of bounds; give 1Kbit to 1Tbit\n"),
    ] {
        let (status, _, why) = call(&["set", set[0], set[1], &pid]);
        assert_eq!((status, why.as_str()), (Some(2), bounds));
    }
    // Its end is that of its input.
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert_eq!(call(&["watch", &pid]).0, Some(1));
}

#[test]
fn what_packets_meet_is_written_down() {
    if !able() || !has("ping", "iputils-ping") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [log, pcap, json] = ["log.csv", "link.pcapng", "link.json"]
        .map(|name| folder.path().join(name).display().to_string());
    let ping = "ping -c 4 -i 0.05 $FAR > /dev/null; ping -c 2 -i 0.05 $FAR6 > /dev/null";
    let args = [
        "--quiet", "--rate", "10mbit", "--log", &log, "--pcap", &pcap, "--json", &json, "--", "sh",
        "-c", ping,
    ];
    let (output, _, stderr) = run(&args);
    assert!(output.status.success(), "{stderr}");
    let text = fs::read_to_string(&log).unwrap();
    let count = |seen: &str| {
        let is_one = |line: &&str| line.split(',').nth(1) == Some(seen) && line.contains(",echo,");
        text.lines().filter(is_one).count()
    };
    // Each there and back.
    assert_eq!((count("in"), count("out"), count("arrive")), (12, 12, 12), "{text}");
    let document: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    for way in ["down", "up"] {
        let way = &document[way];
        let number = |name: &str| way[name]["packets"].as_u64().unwrap();
        let lost: u64 = way["lost"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
        assert!(number("left") >= 6, "{way}");
        assert_eq!(
            number("came"),
            number("left") + lost + way["inside"].as_u64().unwrap(),
            "{way}"
        );
    }
    let mut replay = Command::new(DUALQ);
    replay.args([
        "replay",
        &pcap,
        "--interface",
        "up-in",
        "--rate",
        "10mbit",
        "--json",
        "--no-progress",
    ]);
    let output = replay.output().unwrap();
    let replayed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{replayed}{}", String::from_utf8_lossy(&output.stderr));
}
