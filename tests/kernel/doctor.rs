//! `dualq doctor` on a kernel of which all is known: dualpi2 is built in, and there are no modules.

use std::fs;

use serde_json::Value;

use crate::{kernel, stdout};

/// The facts and findings of a machine on which a shell script was run.
fn facts(etc: &str, script: &str) -> Value {
    let script = format!("{script} && exec \"$0\" doctor --json --rate 50mbit");
    let program = env!("CARGO_BIN_EXE_dualq");
    let words = ["kernel", "exec", "--etc", etc, "--", "sh", "-c", &script, program];
    serde_json::from_str(&stdout(&words)).unwrap()
}

fn findings(facts: &Value) -> Vec<&str> {
    let findings = facts["findings"].as_array().unwrap();
    findings.iter().map(|finding| finding["id"].as_str().unwrap()).collect()
}

#[test]
fn a_machine_without_modules_has_dualpi2_ready() {
    let Some(kernel) = kernel() else { return };
    let etc = tempfile::tempdir().unwrap();
    fs::create_dir(etc.path().join("sysctl.d")).unwrap();
    fs::write(etc.path().join("sysctl.d/50-x.conf"), "net.ipv4.tcp_ecn = 1\n").unwrap();
    let script = "ip link add d0 type dummy && ip link set d0 up && ip route add default dev d0 \
                  && tc qdisc add dev d0 root handle 1: tbf rate 50mbit burst 10kb latency 50ms \
                  && sysctl -q -w net.ipv4.tcp_congestion_control=dctcp";
    let facts = facts(etc.path().to_str().unwrap(), script);
    assert_eq!(facts["kernel"]["release"], kernel.version);
    assert_eq!(facts["kernel"]["virtualization"], "uml");
    assert_eq!(facts["kernel"]["modules"], false);
    assert_eq!(facts["qdiscs"]["dualpi2"], "ready");
    assert_eq!(facts["congestion_controls"]["prague"], "absent");
    assert_eq!(facts["default_routes"][0]["dev"], "d0");
    let interface = &facts["interfaces"][0];
    assert_eq!((&interface["name"], &interface["driver"]), (&"d0".into(), &"dummy".into()));
    let qdisc = &interface["qdiscs"][0];
    assert_eq!((&qdisc["kind"], &qdisc["handle"]), (&"tbf".into(), &"1:".into()));
    assert!(qdisc["options"].as_str().unwrap().starts_with("rate 50Mbit burst 10Kb"), "{qdisc}");
    assert_eq!(qdisc["statistics"]["drops"], 0);
    // Others are of the host's own system.
    let settings = facts["settings"].as_array().unwrap();
    assert!(settings.iter().any(|setting| setting["file"] == "/etc/sysctl.d/50-x.conf"));

    let found = findings(&facts);
    for id in
        ["shaper-not-below", "dctcp-on-the-internet", "setting-not-running", "setting-in-no-file"]
    {
        assert!(found.contains(&id), "{id} is not in {found:?}");
    }
    assert!(!found.contains(&"no-dualpi2"), "{found:?}");
}
