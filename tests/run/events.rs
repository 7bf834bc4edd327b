//! `dualq run --events`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{command, dualq, json, text};

/// Traffic of all kinds in both directions.
pub(super) const BOTH_WAYS: &str = r#"
duration = "3s"
warmup = "0s"

[link]
rate = "10mbit"
rtt = "20ms"
qdisc = "dualpi2 limit 60"

[link.up]
rate = "2mbit"
qdisc = "pfifo limit 20"

[sender]
gso = false

[[flow]]
cc = "dctcp"
count = 2

[[flow]]
cc = "cubic"

[[flow]]
cc = "cubic"
direction = "up"

[[probe]]
kind = "ping"

[[udp]]
kind = "voice"
direction = "up"
"#;

/// What the list says happened is what the queue counted, and to look changes nothing.
#[test]
fn events_of_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (scenario, events) = (path("both-ways.toml"), path("events.csv"));
    fs::write(&scenario, BOTH_WAYS).unwrap();
    let alone = json(&["run", &scenario, "--json"]);
    let document = json(&["run", &scenario, "--json", "--events", &events]);
    assert_eq!(alone, document);

    let list = fs::read_to_string(&events).unwrap();
    let (said, rows): (Vec<&str>, Vec<&str>) = list.lines().partition(|line| line.starts_with('#'));
    let expected = [
        "# world=model seed=1",
        "# flow=0-1 group=1 cc=dctcp direction=down",
        "# flow=2 group=2 cc=cubic direction=down",
        "# flow=3 group=3 cc=cubic direction=up",
        "# flow=4 probe=1 kind=ping",
        "# flow=5 udp=1 direction=up",
    ];
    assert_eq!(said, expected);
    assert_eq!(rows[0], "t_s,event,flow,direction,kind,seq,bytes,ecn,sacks,delay_ms");
    let rows: Vec<Vec<&str>> = rows[1..].iter().map(|row| row.split(',').collect()).collect();
    assert!(rows.iter().all(|row| row.len() == 10));
    assert!(rows.is_sorted_by_key(|row| row[0].parse::<f64>().unwrap()));
    let count = |event: &str, direction: &str| {
        let alike = |row: &&Vec<&str>| row[1].starts_with(event) && row[3] == direction;
        rows.iter().filter(alike).count() as u64
    };
    let outcome = &document["runs"][0]["outcome"];
    for (direction, queue) in [("down", &outcome["queue"]), ("up", &outcome["up_queue"])] {
        let counted = |what: &str| queue[what].as_u64().unwrap();
        assert_eq!(count("drop", direction), counted("drops"), "{direction}");
        assert!(counted("drops") > 0, "{direction}");
    }
    assert_eq!(count("out_ce", "down"), outcome["queue"]["marks"].as_u64().unwrap());
    assert!(count("out_ce", "down") > 0);
    let is_there = |flow: &str, kind: &str, event: &str| {
        rows.iter().any(|row| (row[2], row[4], row[1]) == (flow, kind, event))
    };
    for (flow, kind, event) in [
        ("0", "data", "in"),
        ("0", "ack", "sent"),
        ("2", "ack", "ack"),
        ("3", "data", "arrive"),
        ("3", "ack", "in"),
        ("4", "echo", "out"),
        ("4", "echo", "ack"),
        ("5", "udp", "arrive"),
    ] {
        assert!(is_there(flow, kind, event), "{flow} {kind} {event}");
    }
    let waited = |row: &&Vec<&str>| row[1].starts_with("out") != row[9].is_empty();
    assert_eq!(rows.iter().filter(waited).count(), rows.len());

    let output = dualq(&["run", &scenario, "--events", "-"]);
    assert_eq!(text(&output.stdout), list);
    assert!(text(&output.stderr).contains("goodput"), "the table is on standard error");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left behind");
}

#[test]
fn events_are_of_one_run_and_in_nobodys_way() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (scenario, events) = (path("both-ways.toml"), path("events.csv"));
    fs::write(&scenario, BOTH_WAYS).unwrap();
    fs::write(&events, "what was there before").unwrap();
    let missing = path("no/events.csv");
    let refused: [(&[&str], i32, &str); 6] = [
        (&["--events", &events, "--seeds", "2"], 2, "these are 2"),
        (&["--events", &events, "--qdisc", "pie", "--qdisc", "fq_codel"], 2, "these are 2"),
        (&["--events", "-", "--json"], 2, "both want standard output"),
        (&["--events", "-", "--csv"], 2, "both want standard output"),
        (&["--events", &scenario], 2, "overwrite the scenario"),
        (&["--events", &missing], 1, "cannot write"),
    ];
    for (arguments, status, message) in refused {
        let output = dualq(&[&["run", scenario.as_str()], arguments].concat());
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {stderr}");
        assert!(stderr.starts_with("error: ") && stderr.contains(message), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
    // Long enough that it ends by the interrupt alone.
    let mut child = command(&["run", &scenario, "--duration", "3000s", "--events", &events])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The file has no name yet, where that can be; it is open all the same.
    let is_open = || {
        let files = fs::read_dir(format!("/proc/{}/fd", child.id())).into_iter().flatten();
        let mut paths = files.flatten().filter_map(|file| fs::read_link(file.path()).ok());
        paths.any(|path| path.starts_with(folder.path()) && path != Path::new(&scenario))
    };
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !is_open() {
        assert!(std::time::Instant::now() < deadline, "it made no file");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    assert_eq!(fs::read_to_string(&events).unwrap(), "what was there before");
    assert_eq!(fs::read_to_string(&scenario).unwrap(), BOTH_WAYS);
}
