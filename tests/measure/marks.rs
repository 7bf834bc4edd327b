//! Segments that a queue marks are counted as the link's log has them, with classic ECN and with Accurate ECN.

use std::collections::BTreeMap;
use std::fs;

use dualq_measure::figures::{Opener, TcpEcn};
use dualq_measure::{Direction, Load, Loaded, MarksBy, Measurement};

use super::{DUALQ, able, anew_in_guest, dualq, folder, line, measuring};

/// The status of a near end whose kernel does not take what was asked.
const CANNOT: i32 = 77;
/// A queue that marks often: Accurate ECN and classic ECN then count what differs by far.
const QUEUE: [&str; 6] =
    ["--rtt", "20ms", "--rate", "20mbit", "--qdisc", "codel ecn ce_threshold 4ms"];

/// What is measured across such a queue where both ends have that `net.ipv4.tcp_ecn`, in words and as a document, and the link's log; nothing
/// if the kernel does not know that value.
fn across(tcp_ecn: u8) -> Option<(Measurement, String)> {
    let folder = folder();
    let ask = format!("echo {tcp_ecn} >/proc/sys/net/ipv4/tcp_ecn");
    let knows = format!("{ask} 2>/dev/null && grep -qx {tcp_ecn} /proc/sys/net/ipv4/tcp_ecn");
    let measure = measuring("--direction download,upload --max-time 20s");
    let near = format!("{knows} || exit {CANNOT}; {measure}");
    let far = format!("{ask}; exec {DUALQ} serve --token-file token 2>/dev/null");
    let link = [&QUEUE[..], &["--log", "log.csv"]].concat();
    let mut args = line(&link, &near);
    let at = args.iter().position(|word| *word == "--far").unwrap();
    args[at + 1] = &far;
    let (output, stdout, stderr) = dualq(folder.path(), &args);
    if output.status.code() == Some(CANNOT) {
        return None;
    }
    assert!(output.status.success(), "{stderr}");
    let measured: Measurement = serde_json::from_str(&stdout).unwrap();
    let asked = measured.handshakes.seen.iter().find(|one| one.by == Opener::Kernel).unwrap();
    let expected = if tcp_ecn == 3 { TcpEcn::Accurate } else { TcpEcn::Classic };
    let agreed = [asked.here, asked.there].map(|end| end.unwrap());
    // Linux 6.18 and 6.19 do not say which.
    assert!(agreed.iter().all(|end| [expected, TcpEcn::On].contains(end)), "{asked:?}");
    Some((measured, fs::read_to_string(folder.path().join("log.csv")).unwrap()))
}

/// How many segments of a stage's flows the link marked one way, from that time of the stage to that, in seconds. They go through it in
/// aggregates; and with Accurate ECN acknowledgements are marked as well.
fn marked(log: &str, loaded: &Loaded, load: &Load, [from_s, until_s]: [f64; 2]) -> u64 {
    let way = if loaded.direction == Direction::Upload { "up" } else { "down" };
    let number = |text: &str| text.parse::<f64>().unwrap();
    let rows = log.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let left: Vec<Vec<&str>> =
        rows.filter(|row| row.len() == 10 && row[1].starts_with("out") && row[3] == way).collect();
    // Reports have full segments too, but few of them.
    let mut of_flow: BTreeMap<&str, usize> = BTreeMap::new();
    let full = left.iter().filter(|row| row[4] == "data" && number(row[6]) >= 1000.0);
    full.for_each(|row| *of_flow.entry(row[2]).or_default() += 1);
    let of_flows = || left.iter().filter(|row| of_flow.get(row[2]).is_some_and(|n| *n > 30));
    let [first_s, last_s] =
        [of_flows().next(), of_flows().next_back()].map(|row| number(row.unwrap()[0]));
    // The stage begins before its flows have connected, and what is on its way when it ends leaves the link after that.
    let began_s = first_s.min(last_s - loaded.duration_s);
    let part = began_s + from_s..=began_s + until_s;
    let marked = of_flows().filter(|row| part.contains(&number(row[0])) && row[1] == "out_ce");
    let segments = |row: &Vec<&str>| (number(row[6]) / f64::from(load.mss_bytes)).ceil() as u64;
    marked.map(|row| segments(row).max(1)).sum()
}

/// Whether marks were counted as the link gave them.
fn are_counted(measured: &Measurement, log: &str) {
    for (direction, way) in [(Direction::Download, "down"), (Direction::Upload, "up")] {
        let loaded = measured.under(direction).unwrap();
        let load = if way == "up" { &loaded.up } else { &loaded.down }.as_ref().unwrap();
        // The samples before its steady state and before its end may be 0.1 s old, on a busy machine more; what is then on its way is not counted.
        let steady_s = load.ramp_up.duration_s;
        let sampled_s = load.series.last().unwrap().t_s;
        let [all, fewest] = [[steady_s - 0.3, f64::INFINITY], [steady_s, sampled_s - 0.2]]
            .map(|part_s| marked(log, loaded, load, part_s));
        let ce = load.ce.unwrap();
        println!("{way}: the link marked {fewest} to {all}, measured {ce}, {:?}", load.ce_by);
        assert!(fewest > 50, "{way}: {fewest}");
        match load.ce_by {
            Some(MarksBy::Receivers) => assert!((fewest..=all).contains(&ce), "{way}: {ce}"),
            // An older kernel: the echoes are more than the marks.
            Some(MarksBy::Senders) => assert!(ce >= fewest, "{way}: {ce}"),
            None => panic!("{way}: {load:?}"),
        }
    }
}

#[test]
fn classic_ecn_is_counted_by_receivers() {
    if !able() {
        return;
    }
    let Some((measured, log)) = across(1) else { panic!("every kernel knows 1") };
    are_counted(&measured, &log);
}

/// Kernels before 7.0 do not ask for it; the world's kernel does, and is a machine on which the test runs anew.
#[test]
fn accurate_ecn_is_counted_by_receivers_too() {
    if !able() {
        return;
    }
    if let Some((measured, log)) = across(3) {
        return are_counted(&measured, &log);
    }
    anew_in_guest("marks::accurate_ecn_is_counted_by_receivers_too", "Accurate ECN");
}
