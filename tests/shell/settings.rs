//! Links that are looked at and changed while they run, and what is written down of them.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;
use tests_skipped::{has, skipped};

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

/// The link of a scenario whose ways differ.
const LOPSIDED: &str = "[link]\nrate = '50mbit'\nforward = '10ms'\nreverse = '30ms'\nqdisc = ['pie', 'fq_codel']\n\
                        [link.up]\nrate = '10mbit'\n[[flow]]\ncc = 'cubic'\n";

/// The settings of a shell with these options, after `script`, and what was said.
fn settings_after(options: &[&str], script: &str) -> (Value, String) {
    let script = format!("{script}; {DUALQ} shell watch --json");
    let args = [&["--quiet"][..], options, &["--", "sh", "-c", &script]].concat();
    let (output, stdout, stderr) = run(&args);
    assert!(output.status.success(), "{stdout}{stderr}");
    let document = stdout.find("{\n").map_or("", |at| &stdout[at..]);
    (serde_json::from_str(document).unwrap(), stderr)
}

#[test]
fn a_shipped_scenario_has_its_trace_with_it() {
    if !able() {
        return;
    }
    let (now, _) = settings_after(&["--scenario", "lte", "--qdisc", "codel"], "true");
    assert_eq!(now["down"]["rate"], "3633600bit", "{now}");
}

#[test]
fn what_is_said_of_each_way_is_of_a_scenarios_ways_too() {
    if !able() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lopsided.toml");
    fs::write(&path, LOPSIDED).unwrap();
    let scenario = path.to_str().unwrap();
    let options = ["--scenario", scenario, "--rate", "7mbit", "--qdisc", "pie", "--rtt", "20ms"];
    let (now, _) = settings_after(&options, "true");
    for way in ["down", "up"] {
        assert_eq!(
            (&now[way]["rate"], now[way]["delay_ms"].as_f64()),
            (&"7Mbit".into(), Some(10.0))
        );
        assert_eq!(now[way]["statistics"]["kind"], "pie");
    }
    // Nothing queues, so that both disciplines are one link.
    let (now, _) = settings_after(&["--scenario", scenario, "--rate", "unlimited"], "true");
    assert!(now["down"]["rate"].is_null() && now["up"]["rate"].is_null(), "{now}");
    // Of one way alone, the other's discipline stays.
    let options = ["--scenario", scenario, "--qdisc", "pie", "--down", "fq_codel"];
    let (now, _) = settings_after(&options, &format!("{DUALQ} shell set --rtt 80ms"));
    let kind = |way: &str| now[way]["statistics"]["kind"].clone();
    assert_eq!((kind("down"), kind("up")), ("fq_codel".into(), "pie".into()));
    let delay = |way: &str| now[way]["delay_ms"].as_f64();
    assert_eq!((delay("down"), delay("up")), (Some(20.0), Some(60.0)));
}

#[test]
fn a_change_is_made_in_all_or_in_nothing() {
    if !able() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("down.toml");
    fs::write(&path, "[link]\nrate = '10mbit'\nrtt = '40ms'\n[[flow]]\ncc = 'cubic'\n").unwrap();
    let no_rate_up = ["--scenario", path.to_str().unwrap()];
    for (options, set, why) in [
        (&no_rate_up[..], "--rate 7mbit --rtt 7ms", "the way up: it has no rate"),
        (
            &["--rate", "unlimited", "--rtt", "40ms"],
            "--down 1mbit --rtt 7ms",
            "the way down: it has no",
        ),
        (
            &["--down", "10mbit", "--rtt", "40ms"],
            "--qdisc 'dualpi2 limit 0' --rtt 7ms",
            "0 says nothing",
        ),
    ] {
        let (now, stderr) = settings_after(options, &format!("{DUALQ} shell set {set}"));
        assert!(stderr.contains(why) && stderr.lines().count() == 1, "{stderr}");
        assert_eq!(now["base_rtt_ms"], 40.0, "{set}");
        assert_ne!(now["down"]["rate"], "7Mbit", "{set}");
    }
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
    // Another one has a number, and what runs in it.
    let mut other = shell(folder.path(), &["--quiet", "--", "tail", "-f", "/dev/null"]);
    let mut other = other.stdout(Stdio::null()).spawn().unwrap();
    while sockets(folder.path()).len() < 2 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let (status, _, why) = call(&["watch", "--json"]);
    assert_eq!((status, why.lines().count()), (Some(2), 1), "{why}");
    let named = [format!("{pid} (cat)"), format!("{} (tail -f /dev/null)", other.id())];
    assert!(named.iter().all(|named| why.contains(named)), "{why}");
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&other),
        rustix::process::Signal::TERM,
    )
    .unwrap();
    other.wait().unwrap();
    // Its end is that of its input.
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert_eq!(call(&["watch", &pid]).0, Some(1));
}

/// What was there stays where the document has no room; that it could not be written is known before the command begins.
#[test]
fn a_document_is_there_whole_or_not_at_all() {
    if !able() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("small")).unwrap();
    let script = "mount -t tmpfs none small && echo before > small/there && mount -o remount,$1 small && shift && \"$@\"; status=$?; \
                  cat small/there; ls -A small; exit $status";
    let shell = |options: &str, file: &str| {
        let mut own = Command::new("unshare");
        own.args([
            "-rm", "sh", "-c", script, "sh", options, DUALQ, "shell", "--quiet", "--json", file,
        ]);
        own.args(["--", "echo", "begun"]).current_dir(folder.path());
        own.env("XDG_RUNTIME_DIR", folder.path()).env_remove("DUALQ_SHELL");
        let output = own.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    for (file, options, stdout, why) in [
        ("small/there", "size=4k", "begun\nbefore\nthere\n", "No space left on device"),
        ("small/new", "size=4k", "begun\nbefore\nthere\n", "No space left on device"),
        ("small/there", "ro", "before\nthere\n", "Read-only file system"),
        ("small/new", "ro", "before\nthere\n", "Read-only file system"),
    ] {
        let (status, said, error) = shell(options, file);
        if error.contains("unshare") || error.contains("mount:") {
            return skipped("no mount namespace of one's own: root, or user namespaces");
        }
        assert_eq!((status, said.as_str()), (Some(1), stdout), "{options} {file}: {error}");
        assert!(error.contains(&format!("cannot write {file}: {why}")), "{options}: {error}");
    }
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
