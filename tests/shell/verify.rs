//! `dualq verify` and `dualq apply --verify` across a link whose queue is longer than it should be.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;
use tests_skipped::has;

use super::{able, run};

const DUALQ: &str = env!("CARGO_BIN_EXE_dualq");
/// It takes 90 ms to empty at the link's rate.
const LINK: [&str; 7] =
    ["--quiet", "--rate", "20mbit", "--rtt", "20ms", "--qdisc", "pfifo limit 150"];
/// A shaper below the link's rate, whose own queue is short; one that is long; and a queue that the link's does not notice.
const SHORT: &str = "tbf rate 19mbit burst 10kb latency 10ms";
const LONG: &str = "tbf rate 10mbit burst 10kb latency 400ms";
const SAME: &str = "pfifo limit 9999";

/// A folder with a token, and plans.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let token = "0123456789abcdef".repeat(4);
    fs::write(folder.path().join("token"), format!("{token}\n")).unwrap();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    for (name, after) in [("short.toml", SHORT), ("long.toml", LONG)] {
        let plan = format!(
            "format = 1\nabout = \"a test\"\nos = \"linux\"\nkernel = \"{}\"\n[[change]]\nwhy = \"a test\"\nsource = \"no one\"\n\
             what = \"qdisc\"\ndev = \"dualq0\"\nbefore = [\"root pfifo limit 10000p\"]\nafter = \"{after}\"\n",
            kernel.trim()
        );
        fs::write(folder.path().join(name), plan).unwrap();
    }
    folder
}

/// A call of dualq across the link, and then what qdisc there is.
fn across(folder: &Path, call: &str) -> (Output, String, String) {
    let far = format!("{DUALQ} serve --token-file {}/token", folder.display());
    let how =
        format!("--token-file token --each 2s --no-progress --state {}/state", folder.display());
    let call = call.replace("HOW", &how);
    let script = format!(
        "cd {} && {DUALQ} {call}; status=$?; tc qdisc show dev dualq0; exit $status",
        folder.display()
    );
    run(&[&LINK[..], &["--far", &far, "--", "sh", "-c", &script]].concat())
}

/// What the device has when nothing is applied.
const BEFORE: &str = "qdisc pfifo 1: root refcnt 2 limit 10000p";

#[test]
fn a_short_queue_helps_and_all_is_as_before() {
    if !able() || !has("tc", "iproute2") {
        return;
    }
    let folder = folder();
    let call = format!("verify {SHORT} --dev dualq0 --host $FAR --json HOW");
    let (output, stdout, stderr) = across(folder.path(), &call);
    assert!(output.status.success(), "{stdout}{stderr}");
    let (document, after) = stdout.split_once('\n').unwrap();
    assert!(after.starts_with(BEFORE), "{after}");
    let document: Value = serde_json::from_str(document).unwrap();
    assert_eq!((&document["verdict"], &document["aim"]), (&"helped".into(), &"latency".into()));
    // 90 ms of queue before, 10 after.
    let ratio = document["change"]["ratio"].as_f64().unwrap();
    assert!((0.05..0.4).contains(&ratio), "{document}");
    assert!(document["change"]["high"].as_f64().unwrap() < 0.5, "{document}");
    assert!((0.85..1.0).contains(&document["goodput"]["ratio"].as_f64().unwrap()), "{document}");
    // Nothing on the way is faster than the path.
    assert!((19.9..25.0).contains(&document["base_rtt_ms"].as_f64().unwrap()), "{document}");
    let measured = document["measured"].as_array().unwrap();
    assert_eq!(measured.len() as u64, document["rounds"].as_u64().unwrap());
    assert!(measured.iter().all(|round| round["first"] == "before" || round["first"] == "after"));
    // How much it may be was told before.
    let told = stderr.lines().find(|line| line.starts_with("note: up to 20 rounds")).unwrap();
    assert!(told.contains(" s and 4.3 GB"), "{told}");
}

#[test]
fn what_the_path_does_not_notice_cannot_be_told() {
    if !able() || !has("tc", "iproute2") {
        return;
    }
    let folder = folder();
    let call = format!("verify '{SAME}' --dev dualq0 --host $FAR --max-time 60s HOW");
    let (output, stdout, stderr) = across(folder.path(), &call);
    assert!(output.status.success(), "{stdout}{stderr}");
    assert!(
        stdout.starts_with("cannot be told: pfifo limit 9999 at the root of dualq0\n"),
        "{stdout}"
    );
    assert!(stdout.contains(BEFORE), "{stdout}");
}

#[test]
fn a_plan_that_helps_is_kept() {
    if !able() || !has("tc", "iproute2") {
        return;
    }
    let folder = folder();
    let (output, stdout, stderr) = across(folder.path(), "apply short.toml --verify $FAR HOW");
    assert!(output.status.success(), "{stdout}{stderr}");
    assert!(stdout.starts_with("helped: a test\n"), "{stdout}");
    assert!(stdout.contains("confirmed: a test; `dualq rollback` takes it back\n"), "{stdout}");
    assert!(stdout.contains("qdisc tbf ") && !stdout.contains(BEFORE), "{stdout}");
}

#[test]
fn a_plan_that_hurts_is_not_kept() {
    if !able() || !has("tc", "iproute2") {
        return;
    }
    let folder = folder();
    let (output, stdout, stderr) = across(folder.path(), "apply long.toml --verify $FAR HOW");
    assert_eq!(output.status.code(), Some(1), "{stdout}{stderr}");
    let error = stderr.lines().find(|line| line.starts_with("error: ")).unwrap();
    assert!(
        error.starts_with("error: the plan hurts and is not kept: p95 of round trips"),
        "{error}"
    );
    assert!(stdout.starts_with(BEFORE), "{stdout}");
}

#[test]
fn who_has_had_enough_gets_all_back_at_once() {
    if !able() || !has("tc", "iproute2") {
        return;
    }
    let folder = folder();
    let far = format!("{DUALQ} serve --token-file {}/token", folder.path().display());
    // Once its queue discipline is there, which would otherwise be taken back half a minute later.
    let script = format!(
        "cd {}; {DUALQ} verify {SHORT} --dev dualq0 --host $FAR --each 10s \
         --token-file token --no-progress --state state &
         until tc qdisc show dev dualq0 | grep -q tbf; do sleep 0.05; done
         begin=$(date +%s); kill -TERM $!; wait $!; status=$?
         echo took $(($(date +%s) - begin)) status $status; tc qdisc show dev dualq0",
        folder.path().display()
    );
    // It comes first, or after the first measurement.
    let args = [&LINK[..], &["--far", &far, "--", "sh", "-c", &script]].concat();
    let (_, stdout, stderr) = run(&args);
    let took = stdout.lines().find_map(|line| line.strip_prefix("took ")).unwrap();
    let (seconds, status) = took.split_once(" status ").unwrap();
    assert_eq!(status, "130", "{stdout}{stderr}");
    assert!(seconds.parse::<u64>().unwrap() < 5, "{stdout}");
    assert!(stdout.contains(BEFORE), "{stdout}{stderr}");
    assert!(stderr.contains("error: stopped; all is as it was before"), "{stderr}");
}

#[test]
fn what_is_wrong_is_one_line() {
    if !able() || !has("tc", "iproute2") {
        return;
    }
    let folder = folder();
    let usual = "--dev dualq0 --host $FAR HOW";
    for (call, status, said) in [
        (
            format!("verify fq_coddle {usual}"),
            2,
            "\"fq_coddle\" is neither a plan (a file) nor a qdisc",
        ),
        (format!("verify '{SHORT}' --dev dualq0 --host $FAR --state state"), 2, "--token-file"),
        (format!("verify '{SHORT}' --dev none --host $FAR HOW"), 2, "there is no interface none"),
        ("verify none.toml --host $FAR HOW".to_owned(), 1, "cannot read the plan none.toml"),
        (format!("verify short.toml {usual}"), 2, "--dev is for a queue discipline"),
        ("verify short.toml --host $FAR --port 9 HOW".to_owned(), 1, "what answers at"),
        ("verify short.toml --host $FAR --port 99 HOW".to_owned(), 1, "cannot reach"),
        (
            "verify short.toml --host $FAR --max-time 4s HOW".to_owned(),
            2,
            "--max-time: a round takes 6 s",
        ),
        ("apply short.toml --each 3s --state state".to_owned(), 2, "--verify"),
        ("apply short.toml --verify $FAR --dry-run HOW".to_owned(), 2, "--dry-run"),
    ] {
        let (output, stdout, stderr) = across(folder.path(), &call);
        assert_eq!(output.status.code(), Some(status), "{call}: {stdout}{stderr}");
        let errors: Vec<&str> = stderr.lines().filter(|line| line.starts_with("error: ")).collect();
        assert!(matches!(errors[..], [one] if one.contains(said)), "{call}: {stderr}");
        assert!(stdout.starts_with(BEFORE), "{call}: {stdout}");
    }
}
