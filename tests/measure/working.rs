//! Flows that grow in number until the path is in working conditions.

use dualq_measure::figures::{Confidence, WorkingConditions};
use dualq_measure::{Direction, Measurement, Method};

use super::{DUALQ, able, dualq, folder, line, measuring};

/// The command at the near end without a number of flows.
fn growing(options: &str) -> String {
    measuring(options).replace(" --streams 4", "")
}

#[test]
fn flows_grow_until_the_path_is_full_and_round_trips_stay_alike() {
    if !able() {
        return;
    }
    let link = ["--rtt", "30ms", "--rate", "20mbit", "--qdisc", "pfifo limit 100"];
    let near = growing("--direction download");
    let (output, stdout, stderr) = dualq(folder().path(), &line(&link, &near));
    assert!(output.status.success(), "{stderr}");
    let measured: Measurement = serde_json::from_str(&stdout).unwrap();
    let loaded = measured.under(Direction::Download).unwrap();
    let WorkingConditions { flows, goodput, responsiveness } = loaded.working_conditions.unwrap();
    assert_eq!(
        (goodput.confidence, responsiveness.confidence),
        (Confidence::High, Confidence::High),
        "{goodput:?} {responsiveness:?}"
    );
    // No sooner than by the draft, and one flow a second until then; the last look comes a little later.
    let (full_s, stable_s) = (goodput.stable_s.unwrap(), responsiveness.stable_s.unwrap());
    assert!(full_s >= 7.0 && stable_s >= full_s + 3.0, "{full_s} {stable_s}");
    let by_then = stable_s.min(16.0) as u32;
    assert!((by_then..=by_then + 1).contains(&flows), "{flows} after {stable_s} s");
    assert_eq!(measured.streams, flows);
    let load = loaded.down.as_ref().unwrap();
    // The last may have had no time to carry anything.
    let carried = load.flow_goodput_mbit.len() as u32;
    assert!((flows - 1..=flows).contains(&carried), "{carried} of {flows}");
    assert!((load.line_mbit / 20.0 - 1.0).abs() < 0.03, "{}", load.line_mbit);
    assert!(loaded.steady_s >= full_s - 1.0, "{} {full_s}", loaded.steady_s);
    // Handshakes wait in the queue as all do. RPM are of one second of the many that the distribution is of.
    let rpm = loaded.rpm.unwrap();
    let longest_ms =
        [Method::Connect, Method::Request].map(|method| loaded.rtt(method).unwrap().max_ms);
    let waited_ms = 60_000.0 / rpm.foreign_rpm;
    // It is the mean of both methods' means.
    let at_most_ms = f64::midpoint(longest_ms[0], longest_ms[1]);
    assert!((30.0..=at_most_ms).contains(&waited_ms), "{rpm:?} {longest_ms:?}");
}

/// Flows share what the server sends at most, however many they come to be; and too little time is said to be that.
#[test]
fn a_servers_limits_hold_while_flows_grow_in_number() {
    if !able() {
        return;
    }
    let link = ["--rtt", "20ms", "--rate", "50mbit", "--qdisc", "pfifo limit 100"];
    let far = format!("exec {DUALQ} serve --token-file token --max-rate 8mbit --max-sessions 1");
    let near = growing("--direction download --max-time 9s");
    let mut args = line(&link, &near);
    let at = args.iter().position(|word| *word == "--far").unwrap();
    args[at + 1] = &far;
    let (output, stdout, stderr) = dualq(folder().path(), &args);
    assert!(output.status.success(), "{stderr}");
    let measured: Measurement = serde_json::from_str(&stdout).unwrap();
    let loaded = measured.under(Direction::Download).unwrap();
    let conditions = loaded.working_conditions.unwrap();
    assert!(conditions.flows >= 4, "{conditions:?}");
    assert_eq!(conditions.responsiveness.confidence, Confidence::Low, "{conditions:?}");
    // The kernel does not pace the first ten segments of a flow: 15 kB each second.
    let goodput = loaded.down.as_ref().unwrap().goodput_mbit;
    assert!((7.0..8.3).contains(&goodput), "{goodput}");
}

/// A flow's share of a rate is fixed when it begins.
#[test]
fn flows_of_a_given_rate_do_not_grow_in_number() {
    if !able() {
        return;
    }
    let near = growing("--direction both --max-time 4s --rate 5mbit").replace(" --json", "");
    let (_, stdout, stderr) = dualq(folder().path(), &line(&["--rtt", "20ms"], &near));
    let is_so = stdout.contains(", 4 flows each way, ") && !stdout.contains("confidence");
    assert!(is_so, "{stdout}{stderr}");
}
