//! `dualq run --pcap` and `--qlog` of real Linux.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::{json, kernel};

const SCENARIO: &str = "
duration = '3s'
warmup = '0s'
link = { rate = '10mbit', rtt = '20ms', qdisc = 'pfifo limit 20' }
sender = { gso = false }
flow = [{ cc = 'cubic' }]
probe = [{ kind = 'ping' }]
";

#[test]
fn what_real_linux_sends() {
    if kernel().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (scenario, capture, log) = (path("s.toml"), path("run.pcapng"), path("run.sqlog"));
    fs::write(&scenario, SCENARIO).unwrap();
    let arguments = ["run", &scenario, "--world", "kernel", "--json"];
    let document = json(&[&arguments[..], &["--pcap", &capture, "--qlog", &log]].concat());
    let dropped = document["runs"][0]["outcome"]["queue"]["drops"].as_u64().unwrap();
    let packets = |interface: &str| {
        let replayed = ["replay", &capture, "--interface", interface, "--rate", "1gbit", "--json"];
        json(&replayed)["trace"]["packets"].as_u64().unwrap()
    };
    let [into, out, near] = ["in", "out", "near"].map(packets);
    assert!(dropped > 0 && near > into, "{dropped} {near} {into}");
    assert!((0..=20).contains(&(into - out - dropped)), "{into} in, {out} out, {dropped} dropped");

    let log = fs::read_to_string(&log).unwrap();
    let events = log.split('\u{1e}').skip(2);
    let events: Vec<Value> = events.map(|text| serde_json::from_str(text).unwrap()).collect();
    assert!(events.len() > 100 && events.iter().all(|event| event["group_id"] == "0 cubic down"));
    let has = |field: &str| events.iter().any(|event| event["data"][field].is_number());
    assert!(has("congestion_window") && has("bytes_in_flight") && has("min_rtt"));
}

/// A socket that held packets until they are read would keep a receiver that reads seldom from joining them (Linux:
/// `skb_try_coalesce`), and so change its windows.
#[test]
fn who_watches_changes_nothing() {
    if kernel().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (scenario, capture, events) = (path("s.toml"), path("run.pcapng"), path("run.jsonl"));
    let text = "
        duration = '3s'
        warmup = '1s'
        link = { rate = '50mbit', rtt = '48.33ms', qdisc = 'fq' }
        sender = { qdisc = 'fq', gso = false }
        receiver = { read_interval = '2ms' }
        flow = [{ cc = 'cubic' }]
    ";
    fs::write(&scenario, text).unwrap();
    let outcome = |more: &[&str]| {
        let alone = ["run", &scenario, "--world", "kernel", "--json"];
        json(&[&alone[..], more].concat())["runs"][0]["outcome"].clone()
    };
    let alone = outcome(&[]);
    assert_eq!(alone, outcome(&["--events", &events]));
    assert_eq!(alone, outcome(&["--pcap", &capture]));
}

/// The TCP options of each packet of a capture, as (kind, length), and whether it has payload; which packets have the same does not matter.
fn sets_of_options(capture: &str) -> BTreeSet<(bool, BTreeSet<(u8, u8)>)> {
    const PACKET: u32 = 6;
    let bytes = fs::read(capture).unwrap();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (mut at, mut sets) = (0, BTreeSet::new());
    while at < bytes.len() {
        // Behind an Ethernet header, if there is one.
        let packet = &bytes[at + 28..];
        let ip = if packet[0] >> 4 == 4 { packet } else { &packet[14..] };
        if word(at) == PACKET && ip[9] == 6 {
            let tcp = &ip[usize::from(ip[0] & 15) * 4..];
            let header = usize::from(tcp[12] >> 4) * 4;
            let headers = usize::from(ip[0] & 15) * 4 + header;
            let has_payload = usize::from(u16::from_be_bytes([ip[2], ip[3]])) > headers;
            let (mut rest, mut set) = (&tcp[20..header], BTreeSet::new());
            while let Some((&kind, more)) = rest.split_first()
                && kind > 0
            {
                let length = if kind == 1 { 1 } else { more[0] };
                if kind > 1 {
                    set.insert((kind, length));
                }
                rest = &rest[length.into()..];
            }
            sets.insert((has_payload, set));
        }
        at += word(at + 4) as usize;
    }
    sets
}

/// Accurate ECN through many losses: its option, which Linux begins with the count of ECT(1), and SACK blocks take the same room in both worlds.
#[test]
fn options_are_those_of_linux() {
    if kernel().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let scenario = path("s.toml");
    let text = "
        duration = '2s'
        warmup = '500ms'
        link = { rate = '20mbit', rtt = '20ms', qdisc = 'pfifo limit 20' }
        flow = [{ cc = 'cubic', ecn = 'accurate' }]
    ";
    fs::write(&scenario, text).unwrap();
    let [model, kernel] = ["model", "kernel"].map(|world| {
        let capture = path(world);
        json(&["run", &scenario, "--world", world, "--json", "--pcap", &capture]);
        sets_of_options(&capture)
    });
    assert!(kernel.iter().any(|(_, set)| set.contains(&(174, 11))), "{kernel:?}");
    assert_eq!(model, kernel);
}
