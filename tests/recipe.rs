//! `dualq doctor --recipe` as its users run it: published recipes on machines that people have.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Runs the program in the project's own folder, with a text as its input.
fn dualq(args: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_dualq"))
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that does not read it may be gone already.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What is said of a recipe on a machine.
fn report(recipe: &str, facts: &str, more: &[&str]) -> String {
    let recipe = format!("tests/data/recipes/{recipe}");
    let facts = format!("tests/data/facts/{facts}");
    let output = dualq(&[&["doctor", "--recipe", &recipe, "--facts", &facts], more].concat(), "");
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// How many settings have each verdict.
fn counts(recipe: &str, facts: &str) -> Value {
    let document: Value = serde_json::from_str(&report(recipe, facts, &["--json"])).unwrap();
    document["counts"].clone()
}

#[test]
fn dualpi2_and_bbr() {
    for facts in ["debian-13.json", "ubuntu-24.04.json", "arch.json", "linux-7.3.json"] {
        insta::assert_snapshot!(
            format!("dualpi2-bbr@{facts}"),
            report("dualpi2-bbr.md", facts, &[])
        );
    }
}

#[test]
fn dualpi2_and_bbr_beside_a_link() {
    let link = ["--rate", "1gbit", "--rtt", "100ms"];
    insta::assert_snapshot!(report("dualpi2-bbr.md", "debian-13.json", &link));
}

#[test]
fn fq_and_bbr() {
    for facts in ["debian-13.json", "alpine-3.22.json", "openwrt-24.json"] {
        insta::assert_snapshot!(format!("fq-bbr-4.9@{facts}"), report("fq-bbr-4.9.md", facts, &[]));
    }
}

#[test]
fn dctcp_on_freebsd() {
    for facts in ["freebsd-12.sysctl", "freebsd-14.sysctl"] {
        insta::assert_snapshot!(
            format!("freebsd-dctcp@{facts}"),
            report("freebsd-dctcp.md", facts, &[])
        );
    }
}

#[test]
fn a_recipe_for_linux_on_freebsd() {
    let counts = counts("dualpi2-bbr.md", "freebsd-14.sysctl");
    assert_eq!(counts["of-another-system"], 16, "{counts}");
}

#[test]
fn a_recipe_for_freebsd_on_linux() {
    insta::assert_snapshot!(report("freebsd-dctcp.md", "debian-13.json", &[]));
    let counts = counts("freebsd-dctcp.md", "debian-13.json");
    assert_eq!(counts["of-another-system"], 5);
}

/// A file that ends in the middle of what it says, once without its closing quotes: each setting has a reason and a source.
#[test]
fn a_recipe_that_is_cut_short() {
    for facts in ["debian-13.json", "freebsd-14.sysctl"] {
        let report = report("cut-short.md", facts, &["--json"]);
        let document: Value = serde_json::from_str(&report).unwrap();
        let findings = document["findings"].as_array().unwrap();
        assert!(!findings.is_empty());
        for finding in findings {
            let is_said = |key: &str| finding[key].as_str().is_some_and(|text| !text.is_empty());
            assert!(is_said("why") && is_said("source"), "{finding:#}");
        }
    }
}

/// Recipes and facts that are larger than any are refused in a line, and of one with too many settings the rest is not read.
#[test]
fn what_is_too_much() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let facts = "tests/data/facts/debian-13.json";
    let large = file("large", &vec![b'#'; (4 << 20) + 1]);
    let refused = |args: &[&str]| {
        let output = dualq(args, "");
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let line = text(&output.stderr);
        assert!(line.lines().count() == 1 && line.contains("is larger than 4 MiB"), "{line}");
    };
    refused(&["doctor", "--recipe", &large, "--facts", facts]);
    refused(&["doctor", "--facts", &large]);
    refused(&["plan", "--facts", &large]);
    let many = file("many", "net.ipv4.tcp_ecn=1\n".repeat(3000).as_bytes());
    let said = text(&dualq(&["doctor", "--recipe", &many, "--facts", facts], "").stdout);
    assert!(said.contains("Note: nothing is read from line 2001 on"), "{said}");
    // A command that is its own argument ends.
    let output = dualq(&["doctor", "--recipe", "-", "--facts", facts], "X='sh -c $X'\nsh -c $X\n");
    assert!(output.status.success(), "{:?}", output.status);
}

#[test]
fn from_standard_input() {
    let facts = ["--facts", "tests/data/facts/debian-13.json"];
    let args = [&["doctor", "--recipe", "-"][..], &facts].concat();
    let recipe =
        "net.ipv4.tcp_fack=1\nnmcli connection modify a b c\ntc class add dev ens3 parent 1: htb\n";
    insta::assert_snapshot!(text(&dualq(&args, recipe).stdout));
    let verbose = [&args[..], &["--verbose"]].concat();
    let listed = text(&dualq(&verbose, recipe).stdout);
    assert!(listed.contains("    2  nmcli connection modify a b c\n"), "{listed}");
    assert!(text(&dualq(&args, "Nothing.\n").stdout).contains("No settings that dualq knows of"));
}

#[test]
fn what_cannot_be_read() {
    let facts = ["--facts", "tests/data/facts/debian-13.json"];
    let failed = |more: &[&str]| {
        let output = dualq(&[&["doctor"], more, &facts].concat(), "");
        (output.status.code(), text(&output.stderr))
    };
    let missing = failed(&["--recipe", "no/such.conf"]);
    assert_eq!(
        missing,
        (Some(1), "error: cannot read no/such.conf: No such file or directory\n".to_owned())
    );
    let (status, rate) = failed(&["--recipe", "README.md", "--rate", "fast", "--rtt", "1ms"]);
    assert_eq!(status, Some(2), "{rate}");
    assert!(rate.starts_with("error: --rate: \"fast\" is not a rate"), "{rate}");
    let (status, rtt) = failed(&["--recipe", "README.md", "--rate", "1mbit", "--rtt", "0ms"]);
    assert_eq!(
        (status, rtt.as_str()),
        (Some(2), "error: --rtt: a path has a round-trip time above 0\n")
    );
    let output = dualq(&["doctor", "--recipe", "-", "--facts", "-"], "");
    assert_eq!(output.status.code(), Some(2));
}
