//! The world `live`, as its user runs it. What it says of time is not looked at here: the machine may be busy.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tests_skipped::skipped;

const SCENARIO: &str = r#"
name = "short"
duration = "3s"
warmup = "1s"
[link]
rate = "20mbit"
rtt = "20ms"
qdisc = "fq_codel"
[[flow]]
cc = "cubic"
[[flow]]
cc = "cubic"
direction = "up"
[link.up]
rate = "10mbit"
[[udp]]
rate = "1mbit"
[[probe]]
kind = "ssh"
[[probe]]
kind = "ping"
"#;

/// What `dualq` with these arguments makes of a scenario.
fn dualq(arguments: &[&str], scenario: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_dualq"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it was built");
    let mut stdin = child.stdin.take().expect("it is a pipe");
    stdin.write_all(scenario.as_bytes()).expect("it is read");
    drop(stdin);
    child.wait_with_output().expect("it ends")
}

/// Whether live runs are possible here; says why not.
fn can_run() -> bool {
    if let Err(error) = fs::File::open("/dev/net/tun") {
        skipped(&format!("/dev/net/tun: {error}"));
        return false;
    }
    let output = Command::new("unshare").args(["--user", "--net", "true"]).output();
    let is_possible =
        tests_skipped::is_root() || output.is_ok_and(|output| output.status.success());
    if !is_possible {
        skipped("no network namespace can be made here");
    }
    is_possible
}

fn devices() -> Vec<String> {
    let devices = fs::read_to_string("/proc/net/dev").expect("it is there");
    devices.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect()
}

#[test]
fn real_sockets_fill_a_link_of_dualqs_own_and_nothing_is_left() {
    if !can_run() {
        return;
    }
    let before = devices();
    let output = dualq(&["run", "-", "--world", "live", "--json"], SCENARIO);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let document: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let run = &document["runs"][0];
    assert_eq!(run["world"], "live");
    let outcome = &run["outcome"];
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let [down, up] = [0, 1].map(|flow| number(&outcome["flow"][flow]["total_mbit"]));
    // Both ways together carry acknowledgements and UDP as well.
    assert!(down > 5.0 && down < 19.2 && up > 2.0 && up < 9.6, "{down} {up}");
    assert!(number(&outcome["probe"][0]["mean_ms"]) >= 20.0, "{}", outcome["probe"]);
    assert!(number(&outcome["probe"][1]["mean_ms"]) >= 20.0, "{}", outcome["probe"]);
    assert_eq!(outcome["queue"]["tc"]["kind"], "fq_codel");
    assert_eq!(outcome["up_queue"]["tc"]["kind"], "fq_codel");
    assert!(number(&outcome["queue"]["delay_mean_ms"]) > 0.0);
    for way in ["down", "up"] {
        let late = &outcome["lateness"][way];
        let bins = late["histogram"].as_array().expect("there are bins");
        let counted: u64 = bins.iter().filter_map(|bin| bin["packets"].as_u64()).sum();
        assert!(counted > 1000 && late["packets"] == counted, "{late}");
        let last = number(&bins[bins.len() - 1]["up_to_ms"]);
        assert!(last >= number(&late["max_ms"]) && last < 2.1 * number(&late["max_ms"]), "{late}");
    }
    assert_eq!(devices(), before);
}

/// Those behind and up too, each by its place.
#[test]
fn queues_of_elements_are_told_of() {
    if !can_run() {
        return;
    }
    let elements = "behind = [{ rate = \"8mbit\", qdisc = \"bfifo limit 30kb\" }]\n[[flow]]";
    let scenario = SCENARIO.replacen("[[flow]]", elements, 1).replacen(
        "[link.up]\n",
        "[link.up]\nbefore = [{ delay = \"1ms\" }, { rate = \"4mbit\", qdisc = \"codel\" }]\n",
        1,
    );
    let output = dualq(&["run", "-", "--world", "live", "--json"], &scenario);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let document: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let outcome = &document["runs"][0]["outcome"];
    let others = outcome["other_queues"].as_array().expect("there are two");
    let places: Vec<_> = others.iter().map(|other| (&other["at"], &other["queue"])).collect();
    let [(behind, first), (up, second)] = places[..] else { panic!("{others:?}") };
    assert_eq!([behind, up], ["behind 1", "up before 2"]);
    assert_eq!([&first["tc"]["kind"], &second["tc"]["kind"]], ["bfifo", "codel"]);
    // Packets wait where the path is narrow, and nowhere else: 30 kB are 30 ms at 8 Mbit/s.
    let delay = |queue: &Value| queue["delay_p50_ms"].as_f64().unwrap_or(f64::NAN);
    assert!(delay(first) > 3.0 && delay(first) < 31.0, "{first}");
    assert!(delay(&outcome["queue"]) < delay(first), "{outcome}");
    assert!(first["drops"].as_u64() > Some(0) && outcome["queue"]["drops"] == 0, "{outcome}");
    assert!(second["sent_packets"].as_u64() > Some(300), "{second}");
}

#[test]
fn what_this_kernel_lacks_is_one_line_that_names_what_it_has() {
    if !can_run() {
        return;
    }
    let known = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let known = known.expect("there is TCP").split_whitespace().collect::<Vec<_>>().join(", ");
    if known.contains("prague") {
        return skipped("this kernel has TCP Prague");
    }
    let scenario = SCENARIO.replacen("cubic", "prague", 1);
    let output = dualq(&["run", "-", "--world", "live"], &scenario);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_eq!(stderr.trim_end().lines().count(), 1, "{stderr}");
    assert!(stderr.contains(&format!("congestion control prague; it has {known} ")), "{stderr}");
}

/// A sender's queue discipline is the kernel's own, and not every kernel has every one.
#[test]
fn a_senders_discipline_that_this_kernel_lacks_is_one_line() {
    if !can_run() {
        return;
    }
    let scenario =
        SCENARIO.replacen("[[flow]]", "[sender]\nqdisc = \"netem loss 1%\"\n[[flow]]", 1);
    let output = dualq(&["run", "-", "--world", "live"], &scenario);
    let stderr = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        return skipped("this kernel has netem");
    }
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains("sender.qdisc: this kernel has no queue discipline netem"), "{stderr}");
}

#[test]
fn single_packets_are_written_down_and_none_is_lost_unseen() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().expect("there is room");
    let [events, capture, log] =
        ["events.csv", "packets.pcapng", "log.qlog"].map(|name| folder.path().join(name));
    let path = |path: &Path| path.display().to_string();
    let files = [path(&events), path(&capture), path(&log)];
    let args = ["run", "-", "--world", "live", "--json", "--events", &files[0]];
    let args = [&args[..], &["--pcap", &files[1], "--qlog", &files[2]]].concat();
    let scenario = SCENARIO.replacen("\"fq_codel\"", "\"pfifo limit 12\"", 1);
    let output = dualq(&args, &scenario);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let backlog = document["runs"][0]["outcome"]["queue"]["tc"]["backlog"].as_u64();
    let text = fs::read_to_string(&events).expect("it was written");
    // Of the way down, whose queue holds twelve, and of data on the way up.
    let (mut both, mut bytes, mut dropped, mut last) = ([0_i64; 2], 0_i64, 0, String::new());
    for line in text.lines().filter(|line| !line.starts_with('#')).skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let length: i64 = fields[6].parse().expect("a number");
        let packets = &mut both[usize::from(fields[3] == "up")];
        match fields[1] {
            "in" => (*packets, bytes) = (*packets + 1, bytes + length),
            "out" => (*packets, bytes) = (*packets - 1, bytes - length),
            "drop_overlimit" => {
                (*packets, bytes, dropped) = (*packets - 1, bytes - length, dropped + 1);
            }
            _ => assert_eq!(fields[1], "ack"),
        }
        // One that finds twelve comes in, and is dropped.
        let most = [12 + i64::from(fields[1] == "in"), i64::MAX];
        let fits = both.iter().zip(most).all(|(packets, most)| (0..=most).contains(packets));
        assert!(fits, "{both:?} {line}");
        // Times of one length, of a run of seconds.
        assert!(fields[0] >= last.as_str(), "{line}");
        fields[0].clone_into(&mut last);
    }
    // The last event may be of a packet that has left when `tc` is asked.
    assert!(dropped > 0 && bytes >= 0 && backlog.is_some(), "{dropped} {bytes} {backlog:?}");
    let replay = ["replay", &files[1], "--rate", "20mbit", "--qdisc", "pfifo", "--interface"];
    let count = |interface| {
        let output = dualq(&[&replay[..], &[interface, "--json"]].concat(), "");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let document: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        document["trace"]["packets"].as_u64().expect("a number")
    };
    // What came to the near end's router came to the queue, and what left that came to the far end, but for what was still on its way.
    let [near, entered, left, far] = ["near", "in", "out", "far"].map(count);
    assert!(near > entered && entered > left && far > left, "{near} {entered} {left} {far}");
    assert!(fs::metadata(&log).is_ok_and(|log| log.len() > 1000));
}

/// Who is not root gets a user namespace, which a process with threads does not.
#[test]
fn cores_are_chosen_without_root_too() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().expect("there is room");
    let program = tests_skipped::for_anybody(env!("CARGO_BIN_EXE_dualq"), folder.path());
    let small = ["--vary", "duration=2s", "--vary", "warmup=1s", "--vary", "flow.0.cc=cubic"];
    let space = [&["--world", "live", "--jobs", "2"], &small[..]].concat();
    let runs = folder.path().join("runs");
    fs::create_dir(&runs).expect("there is room");
    let runs_text = runs.display().to_string();
    let sweep = [&["sweep", "--folder", &runs_text], &space[..]].concat();
    let aim = ["--vary", "link.qdisc=bfifo limit {20000..40000}", "--aim", "max goodput"];
    let tune = [&["tune", "--tries", "1"], &aim[..], &space].concat();
    for words in [sweep, tune] {
        let mut command = Command::new(&program);
        command.args(&words).stdin(Stdio::null());
        if tests_skipped::is_root() {
            // Nobody, as most systems have it.
            std::os::unix::fs::chown(&runs, Some(65_534), Some(65_534)).expect("it is root's");
            command.uid(65_534).gid(65_534);
        }
        let output = command.output().expect("it was copied");
        let stderr = String::from_utf8_lossy(&output.stderr);
        if stderr.contains("forbid") || stderr.contains("/dev/net/tun") {
            skipped(stderr.trim());
            continue;
        }
        assert!(output.status.success(), "{words:?}: {stderr}");
    }
}
