//! `dualq run --pcap` and `--qlog`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::events::BOTH_WAYS;
use super::{dualq, json, stdout, text};

/// One queue that drops by its length alone.
const FIFO: &str = r#"
duration = "5s"
warmup = "0s"

[link]
rate = "10mbit"
rtt = "20ms"
qdisc = "pfifo limit 20"

[sender]
gso = false

[[flow]]
cc = "cubic"
count = 3
"#;

/// A folder with a scenario, and the paths of files in it.
struct Folder(tempfile::TempDir);

impl Folder {
    fn with(scenario: &str) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        fs::write(folder.path("scenario.toml"), scenario).unwrap();
        folder
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }
}

/// The lines of `tshark`, or none if there is no such program, which is said.
fn tshark(arguments: &[&str]) -> Option<Vec<String>> {
    let output = Command::new("tshark").args(arguments).stdin(Stdio::null()).output();
    let Ok(output) = output else {
        tests_skipped::skipped("no tshark");
        return None;
    };
    assert!(output.status.success(), "{}", text(&output.stderr));
    Some(text(&output.stdout).lines().map(str::to_owned).collect())
}

/// What tcpdump reads of the first probe's packets at one interface, if there is such a program.
fn tcpdump(folder: &Folder, capture: &str, interface: &str) -> Option<String> {
    let bytes = fs::read(capture).unwrap();
    let (mut rest, mut left) = (&bytes[..], Vec::new());
    let (mut interfaces, mut wanted) = (0, None);
    while !rest.is_empty() {
        let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
        let (kind, length) = (word(0), word(4) as usize);
        let (block, after) = rest.split_at(length);
        // A description of an interface, and a packet of one.
        if kind == 1 {
            let is_it = block.windows(interface.len()).any(|name| name == interface.as_bytes());
            wanted = wanted.or(is_it.then_some(interfaces));
            interfaces += 1;
        }
        if kind != 6 || Some(word(8)) == wanted {
            left.extend(block);
        }
        rest = after;
    }
    let alone = folder.path("alone.pcapng");
    fs::write(&alone, left).unwrap();
    let output =
        Command::new("tcpdump").args(["-nn", "-S", "-t", "-r", &alone, "port", "6001"]).output();
    let Ok(output) = output else {
        tests_skipped::skipped("no tcpdump");
        return None;
    };
    assert!(output.status.success(), "{}", text(&output.stderr));
    Some(text(&output.stdout))
}

/// A `request`'s questions and answers are one connection, as on Linux: data both ways, and each end tells what it has of the other's.
#[test]
fn a_request_is_one_connection() {
    let asks = "[[probe]]\nkind = \"request\"\nsize = \"3000b\"\ninterval = \"30ms\"\n";
    let late = "[[flow]]\ncc = \"cubic\"\nsize = \"1b\"\nstart = \"149ms\"\n";
    let link = "[link]\nrate = \"10mbit\"\nrtt = \"20ms\"\nqdisc = \"pfifo\"\n";
    let start = "duration = \"150ms\"\nwarmup = \"0s\"\nsender.gso = false\n";
    let folder = Folder::with(&[start, link, late, asks].concat());
    let (scenario, capture) = (folder.path("scenario.toml"), folder.path("run.pcapng"));
    let (events, log) = (folder.path("run.csv"), folder.path("run.sqlog"));
    let files = ["--pcap", &capture, "--events", &events, "--qlog", &log];
    json(&[&["run", &scenario, "--json"][..], &files].concat());
    if let Some(near) = tcpdump(&folder, &capture, "near") {
        insta::assert_snapshot!("a_request_in_tcpdump", near);
    }
    let events = fs::read_to_string(&events).unwrap();
    let rows = events.lines().filter(|line| !line.starts_with('#')).skip(1);
    let column = |row: &str, number| row.split(',').nth(number).unwrap().to_owned();
    let sorts: BTreeSet<_> =
        rows.map(|row| [2, 3, 4].map(|number| column(row, number)).join(" ")).collect();
    let probe = ["1 down ack", "1 down data", "1 up ack", "1 up data"];
    let flow = ["0 down data", "0 up ack"];
    assert!(sorts.iter().eq(flow.iter().chain(&probe)), "{sorts:?}");
    let groups: BTreeSet<_> =
        records(&log)[1..].iter().map(|event| event["group_id"].to_string()).collect();
    assert!(groups.iter().eq(["\"0 cubic down\"", "\"1 request probe\""]), "{groups:?}");
}

/// `dualq replay` of the packets of one interface.
fn replayed(capture: &str, interface: &str, qdisc: &str) -> Value {
    let arguments = ["replay", capture, "--interface", interface, "--rate", "10mbit"];
    json(&[&arguments[..], &["--qdisc", qdisc, "--json"]].concat())
}

/// What was captured before a queue gives the same when it goes through such a queue once more.
#[test]
fn a_capture_is_replayed() {
    let folder = Folder::with(FIFO);
    let (scenario, capture) = (folder.path("scenario.toml"), folder.path("run.pcapng"));
    let alone = json(&["run", &scenario, "--json"]);
    let document = json(&["run", &scenario, "--json", "--pcap", &capture]);
    assert_eq!(alone, document, "to look changes nothing");
    let queue = &document["runs"][0]["outcome"]["queue"];
    let again = replayed(&capture, "in", "pfifo limit 20");
    let dropped = queue["drops"].as_u64().unwrap();
    assert!(dropped > 20, "{dropped}");
    let all = again["trace"]["packets"].as_u64().unwrap();
    let lost = again["runs"][0]["queues"][0]["dropped"]["total"].as_u64().unwrap();
    // The link of a replay has no bucket of tokens, which lets a packet or two go earlier.
    assert!(lost.abs_diff(dropped) <= 2, "{lost} and {dropped} of {all}");
    let out = replayed(&capture, "out", "pfifo")["trace"]["packets"].as_u64().unwrap();
    assert!((1..=20).contains(&(all - out - dropped)), "{all} in, {out} out, {dropped} dropped");

    let whole = dualq(&["replay", &capture, "--rate", "10mbit"]);
    let said = text(&whole.stderr);
    assert!(said.contains("4 interfaces") && said.contains("near, in, out, far"), "{said}");
    for (name, message) in [("up-in", "near, in, out, far"), ("", "no packet is of an interface")] {
        let output = dualq(&["replay", &capture, "--rate", "10mbit", "--interface", name]);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains(message), "{}", text(&output.stderr));
    }
    let trace = folder.path("trace.csv");
    fs::write(&trace, "t_ns,len,truesize,ecn,class,gso_size\n0,100,868,0,,0\n").unwrap();
    let output = dualq(&["replay", &trace, "--rate", "10mbit", "--interface", "in"]);
    assert!(text(&output.stderr).contains("no interfaces"), "{}", text(&output.stderr));
}

/// Wireshark's own program sees the first connection ask for a cookie and the others have data in their SYN.
#[test]
fn wireshark_reads_fast_open() {
    let folder = Folder::with(&format!("{FIFO}size = \"5kb\"\nfast_open = true\n"));
    let (scenario, capture) = (folder.path("scenario.toml"), folder.path("run.pcapng"));
    json(&["run", &scenario, "--json", "--pcap", &capture]);
    let of = |filter: &str| {
        let near = format!("frame.interface_name == \"near\" && {filter}");
        let options = ["-o", "tcp.check_checksum:TRUE", "-Y", &near];
        tshark(&[&["-r", &capture][..], &options].concat()).map(|lines| lines.len())
    };
    let wrong = of("(_ws.malformed || tcp.checksum.status == 0)");
    let Some(wrong) = wrong else { return };
    let asked = of("tcp.options.tfo.request && tcp.flags.ack == 0 && tcp.len == 0").unwrap();
    let opened = of("tcp.options.tfo.cookie && tcp.flags.ack == 0 && tcp.len == 1420").unwrap();
    assert_eq!((wrong, asked, opened), (0, 1, 2));
}

/// Wireshark's own program finds nothing malformed, checksums that are right, and the connections whole.
#[test]
fn wireshark_reads_a_capture() {
    let folder = Folder::with(BOTH_WAYS);
    let (scenario, capture) = (folder.path("scenario.toml"), folder.path("run.pcapng"));
    let document = json(&["run", &scenario, "--json", "--pcap", &capture]);
    let of = |filter: &str| {
        let checks = ["-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"];
        tshark(&[&["-r", &capture][..], &checks, &["-Y", filter]].concat())
    };
    let Some(wrong) = of("_ws.malformed || ip.checksum.status == 0 || tcp.checksum.status == 0")
    else {
        return;
    };
    assert_eq!(wrong.len(), 0, "{}", wrong[0]);
    let count = |filter: &str| of(filter).unwrap().len() as u64;
    let marks = document["runs"][0]["outcome"]["queue"]["marks"].as_u64().unwrap();
    assert_eq!(count("frame.interface_name == \"out\" && ip.dsfield.ecn == 3"), marks);
    assert_eq!(count("frame.interface_name == \"in\" && ip.dsfield.ecn == 3"), 0);
    for filter in [
        "tcp.options.sack_le",
        "tcp.flags.syn == 1 && tcp.flags.ack == 1 && tcp.options.wscale.shift == 11 && tcp.flags.ece == 1",
        "tcp.flags.cwr == 1 && tcp.flags.syn == 0",
        "icmp.type == 0",
        "udp",
        "frame.interface_name == \"up-out\" && ip.src == 10.2.3.1",
    ] {
        assert!(count(filter) > 0, "{filter}");
    }
}

/// The records of a JSON text sequence.
fn records(path: &str) -> Vec<Value> {
    let log = fs::read_to_string(path).unwrap();
    let (before, records) = log.split_once('\u{1e}').unwrap();
    assert!(before.is_empty());
    let record = |text: &str| {
        assert!(text.ends_with('\n'), "{text}");
        serde_json::from_str(text).unwrap()
    };
    records.split('\u{1e}').map(record).collect()
}

fn of_kind<'e>(events: &'e [&Value], kind: &'static str) -> impl Iterator<Item = &'e &'e Value> {
    events.iter().filter(move |event| event["name"] == kind)
}

#[test]
fn what_connections_do() {
    let folder = Folder::with(BOTH_WAYS);
    let (scenario, log) = (folder.path("scenario.toml"), folder.path("run.sqlog"));
    let alone = json(&["run", &scenario, "--json", "--seed", "3"]);
    let document = json(&["run", &scenario, "--json", "--seed", "3", "--qlog", &log]);
    assert_eq!(alone, document, "to look changes nothing");
    let all = records(&log);
    let (header, events) = all.split_first().unwrap();
    assert_eq!(header["file_schema"], "urn:ietf:params:qlog:file:sequential");
    assert_eq!(
        (&header["qlog_version"], &header["qlog_format"]),
        (&"0.3".into(), &"JSON-SEQ".into())
    );
    assert!(events.is_sorted_by_key(|event| event["time"].as_f64().unwrap()));

    let mut groups: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for event in events {
        groups.entry(event["group_id"].as_str().unwrap()).or_default().push(event);
    }
    let names: Vec<&str> = groups.keys().copied().collect();
    assert_eq!(
        names,
        ["0 dctcp down", "1 dctcp down", "2 cubic down", "3 cubic up"],
        "neither ping nor UDP"
    );
    let mut again = 0;
    for (name, events) in &groups {
        let of = |kind| of_kind(events, kind);
        let number = |event: &&&Value| event["data"]["header"]["packet_number"].as_u64().unwrap();
        let sent: BTreeSet<u64> = of("transport:packet_sent").map(|event| number(&event)).collect();
        let lost: BTreeSet<u64> = of("recovery:packet_lost").map(|event| number(&event)).collect();
        let mut acked = BTreeSet::new();
        for event in of("transport:packet_received") {
            for range in event["data"]["frames"][0]["acked_ranges"].as_array().into_iter().flatten()
            {
                let ends = [0, 1].map(|end| range[end].as_u64().unwrap());
                acked.extend(ends[0]..=ends[1]);
            }
        }
        // The second one loses its first packets, and then waits: on real Linux too it has a twentieth to a tenth of what the first one has.
        assert!(sent.len() > 10 && sent.is_superset(&acked) && sent.is_superset(&lost), "{name}");
        assert_eq!(sent.last(), Some(&(sent.len() as u64)), "{name}");
        again += of("transport:packet_sent")
            .filter(|event| event["data"]["trigger"] == "retransmission")
            .count();
        for field in [
            "congestion_window",
            "bytes_in_flight",
            "smoothed_rtt",
            "min_rtt",
            "ssthresh",
            "pacing_rate",
        ] {
            assert!(
                of("recovery:metrics_updated").any(|event| event["data"][field].is_number()),
                "{name}: {field}"
            );
        }
        assert!(
            of("recovery:congestion_state_updated")
                .any(|event| event["data"]["new"] != "slow_start"),
            "{name}"
        );
    }
    let flows = document["runs"][0]["outcome"]["flow"].as_array().unwrap();
    let retransmits: u64 = flows.iter().map(|flow| flow["retransmits"].as_u64().unwrap()).sum();
    assert!(
        again as u64 <= retransmits && again as u64 + 5 > retransmits,
        "{again} of {retransmits}"
    );
}

#[test]
fn several_files_of_one_run() {
    let folder = Folder::with(FIFO);
    let path = |name: &str| folder.path(name);
    let scenario = path("scenario.toml");
    let (events, capture, log) = (path("run.csv"), path("run.pcapng"), path("run.sqlog"));
    let all = ["--events", &events, "--pcap", &capture, "--qlog", &log];
    stdout(&[&["run", &scenario][..], &all].concat());
    for (alone, whole) in [("--events", &events), ("--pcap", &capture), ("--qlog", &log)] {
        let output = dualq(&["run", &scenario, alone, "-"]);
        assert!(output.stdout == fs::read(whole).unwrap(), "{alone}");
        assert!(text(&output.stderr).contains("goodput"), "the table is on standard error");
    }
    // The same file from the root of all.
    let same_log = format!("/proc/self/root{log}");
    let refused: [(&[&str], i32, &str); 7] = [
        (&["--pcap", &capture, "--seeds", "2"], 2, "--pcap writes what happens in one run"),
        (&["--qlog", "-", "--json"], 2, "both want standard output"),
        (&["--pcap", "-", "--qlog", "-"], 2, "both go to -"),
        (&["--events", &log, "--qlog", &log], 2, "give each its own file"),
        (&["--events", &same_log, "--qlog", &log], 2, "give each its own file"),
        (&["--pcap", &scenario], 2, "overwrite the scenario"),
        (&["--qlog", "/dev/full"], 1, "cannot write /dev/full: No space left on device"),
    ];
    for (arguments, status, message) in refused {
        let output = dualq(&[&["run", scenario.as_str()], arguments].concat());
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {stderr}");
        assert!(stderr.starts_with("error: ") && stderr.contains(message), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
    // Where one of several cannot be written, none of the others takes its name.
    let mixed = path("mixed.pcapng");
    let output = dualq(&["run", &scenario, "--pcap", &mixed, "--events", "/dev/full"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(!Path::new(&mixed).exists());
    let left = fs::read_dir(folder.0.path()).unwrap().count();
    assert_eq!(left, 4, "nothing else is left behind");
}
