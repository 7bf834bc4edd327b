//! dualq's own link beside the kernel's.

use serde_json::Value;

use crate::{json, kernel, skipped};

/// More than the link holds, of senders that nothing slows down: what is dropped, marked and waits is the queue's doing alone, and the
/// same law gives the same in both.
const OVERLOAD: &str = r#"
duration = "10s"
warmup = "2s"
[link]
rate = "20mbit"
rtt = "10ms"
qdisc = "dualpi2 target 10ms"
[[udp]]
rate = "9mbit"
packet = 1200
ecn = "ect1"
[[udp]]
rate = "14mbit"
packet = 1200
ecn = "ect0"
"#;

#[test]
fn the_links_dualpi2_does_what_the_kernels_does() {
    if kernel().is_none() {
        return;
    }
    if let Err(error) = std::fs::File::open("/dev/net/tun") {
        return skipped(&format!("/dev/net/tun: {error}"));
    }
    if !tests_skipped::is_root() {
        return skipped("live runs beside a kernel are tried as root");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("overload.toml");
    std::fs::write(&path, OVERLOAD).unwrap();
    let document =
        json(&["run", path.to_str().unwrap(), "--world", "kernel,live", "--json", "--no-progress"]);
    let [real, own] = [0, 1].map(|number| &document["runs"][number]["outcome"]);
    let number = |of: &Value, key: &str| of[key].as_f64().unwrap_or(f64::NAN);
    for (key, share) in [("sent_packets", 0.01), ("marks", 0.05), ("drops", 0.05)] {
        let [real, own] = [real, own].map(|outcome| number(&outcome["queue"], key));
        assert!(
            (own - real).abs() <= share * real,
            "{key}: {own} on the link, {real} in the kernel"
        );
    }
    // The L queue holds nothing, the C queue its target, which is what a machine that is busy for some milliseconds does not hide.
    for (stream, least, most) in [(0, 0.0, 2.0), (1, 8.0, 13.0)] {
        for outcome in [real, own] {
            let delay = number(&outcome["udp"][stream]["delay"], "p50_ms");
            assert!((least..most).contains(&delay), "stream {stream}: {delay} ms");
        }
    }
}
