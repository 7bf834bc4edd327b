//! A clock that is set while a path is measured.

use dualq_measure::{Direction, Measurement, Method};

use super::{able, anew_in_guest, dualq, folder, is_guest, line, measuring};

/// Both ends have the one clock of the machine, which is the test's own: by a day or decades, back and forth.
#[test]
fn a_clock_that_steps_changes_no_figure() {
    if !is_guest() {
        return anew_in_guest("clock::a_clock_that_steps_changes_no_figure", "clock to be set");
    }
    if !able() {
        return;
    }
    let steps = "for at in 2030-01-01 2001-01-01 2001-01-02 2026-11-25; do sleep 1.7; date -s $at; done >set.log 2>&1";
    let near = format!("({steps}) & {}", measuring("--direction download --max-time 15s"));
    let folder = folder();
    let link = ["--rtt", "20ms", "--rate", "20mbit", "--qdisc", "pfifo limit 40"];
    let (output, stdout, stderr) = dualq(folder.path(), &line(&link, &near));
    assert!(output.status.success(), "{stderr}");
    let set = std::fs::read_to_string(folder.path().join("set.log")).unwrap();
    assert!(set.lines().count() == 4 && !set.contains("cannot"), "{set}");
    let measured: Measurement = serde_json::from_str(&stdout).unwrap();
    let loaded = measured.under(Direction::Download).unwrap();
    let load = loaded.down.as_ref().unwrap();
    assert!((loaded.duration_s - load.series.len() as f64 * 0.1).abs() < 0.3, "{loaded:?}");
    assert!((load.line_mbit / 20.0 - 1.0).abs() < 0.03, "{}", load.line_mbit);
    assert!((measured.base_rtt_ms().unwrap() - 20.0).abs() < 0.2);
    for method in [Method::Tcp, Method::Udp, Method::Icmp] {
        let rtt = loaded.rtt(method).unwrap();
        // The queue takes 24 ms to empty.
        assert!((20.0..60.0).contains(&rtt.p50_ms), "{method:?}: {rtt:?}");
    }
}
