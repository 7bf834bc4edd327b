//! `dualq watch` in the middle of a link: what it tells of a flow is what the link makes of it.

use serde_json::Value;
use tests_skipped::has;

use super::{able, run};

const DUALQ: &str = env!("CARGO_BIN_EXE_dualq");

#[test]
fn a_flow_is_told_as_the_link_makes_it() {
    if !able() || !has("bash", "bash") {
        return;
    }
    let script = format!(
        "head -c 20000000 /dev/zero > /dev/tcp/$FAR/9 & sleep 1; {DUALQ} watch --json --for 2s; kill %1"
    );
    let link = ["--quiet", "--rate", "20mbit", "--rtt", "40ms", "--qdisc", "pfifo limit 100"];
    let (output, stdout, stderr) = run(&[&link[..], &["--", "bash", "-c", &script]].concat());
    assert!(output.status.success(), "{stdout}{stderr}");
    let lines: Vec<Value> =
        stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{stdout}");
    for line in lines {
        let number = |of: &Value| of.as_f64().unwrap_or_else(|| panic!("{line}"));
        assert!((0.9..1.5).contains(&number(&line["seconds"])), "{line}");
        let [tcp] = &line["tcp"].as_array().unwrap()[..] else { panic!("{line}") };
        assert_eq!((&tcp["connections"], &tcp["active"]), (&1.into(), &1.into()));
        // The link's rate with headers, or less; and of its round trip nothing is missing.
        assert!((15.0..20.0).contains(&number(&tcp["goodput_mbit"])), "{line}");
        let (rtt, above) = (number(&tcp["rtt"]["p50_ms"]), number(&tcp["inflation"]["p50_ms"]));
        // 100 packets are 60 ms.
        assert!((40.0..140.0).contains(&rtt) && above <= rtt - 40.0 + 0.01, "{line}");
        let qdiscs = line["qdiscs"].as_array().unwrap();
        let device = qdiscs.iter().find(|qdisc| qdisc["parent"] == "root").unwrap();
        assert!((15.0..25.0).contains(&number(&device["rate_mbit"])), "{line}");
    }
}
