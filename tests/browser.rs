//! Reports in a real browser, as people look at them: what is drawn is what the document holds; buttons, sorting and zooming work by mouse
//! and keys; nothing is told on the console, and nothing asked of a network.
//!
//! Wants `chromium` (`apt-get install chromium`) and `node`. With `DUALQ_AXE` naming axe-core's `axe.min.js` (`npm pack axe-core`)
//! accessibility is checked too; with `DUALQ_PICTURES` naming a folder, pictures of the pages are left there.

use std::path::{Path, PathBuf};
use std::process::Command;

use tests_skipped::skipped;

/// The browser, unless something is missing that is then said.
fn browser() -> Option<&'static str> {
    let there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !there("node") {
        skipped("no node: apt-get install nodejs");
        return None;
    }
    let found = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|program| there(program));
    if found.is_none() {
        assert!(std::env::var_os("DUALQ_REQUIRE_BROWSER").is_none(), "no chromium");
        skipped("no chromium: apt-get install chromium");
    }
    found
}

fn dualq(args: &[&str]) {
    let root = env!("CARGO_MANIFEST_DIR");
    let output = Command::new(env!("CARGO_BIN_EXE_dualq")).args(args).current_dir(root).output();
    let output = output.unwrap();
    // Where a recording differs, `check` shows it and ends with 1.
    let expected = if args[0] == "check" { 0..=1 } else { 0..=0 };
    let status = output.status.code().unwrap_or(-1);
    assert!(expected.contains(&status), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Runs the scenario with a report, and looks at that.
fn look(name: &str, args: &[&str]) {
    let Some(chromium) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = |file: &str| folder.path().join(file);
    let (page, results) = (at("report.html"), at("results"));
    std::fs::create_dir(&results).unwrap();
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let written = ["--quiet", "--report", &path(&page), "--save", &path(&results)];
    dualq(&[&["run"], args, &written].concat());
    let document = std::fs::read_dir(&results).unwrap().flatten().map(|file| file.path());
    let document = document.into_iter().find(|path| path.extension().is_some_and(|e| e == "json"));
    let document = document.expect("a document was written");
    see(chromium, name, &page, &document);
    // And of the document, read back.
    dualq(&["report", &path(&document), "-o", &path(&page)]);
    see(chromium, name, &page, &document);
}

fn see(chromium: &str, name: &str, page: &Path, document: &Path) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/report.mjs");
    let mut node = Command::new("node");
    node.arg(script).arg(chromium).arg(page).arg(document);
    if let Some(pictures) = std::env::var_os("DUALQ_PICTURES") {
        let folder = PathBuf::from(pictures).join(name);
        std::fs::create_dir_all(&folder).unwrap();
        node.arg(folder);
    }
    let output = node.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {said}");
}

/// Single pictures: of rows of two settings, of groups of flows that share, of two queues and several seeds, of names that are too long.
#[test]
fn pictures() {
    let Some(chromium) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().to_str().unwrap();
    let long = folder.path().join("long.toml");
    let name =
        "a name that is far too long for the head of any picture, with <b>tags</b> & more of that";
    let text = format!(
        "name = '{name}'\nduration = '6s'\nwarmup = '1s'\n[link]\nrate = '5mbit'\nqdisc = ['htb rate 4mbit leaf fq_codel limit 1000 target 5ms interval 100ms', 'pfifo limit 1000']\n\
         [[flow]]\ncc = 'cubic'\ncount = 30\n"
    );
    std::fs::write(&long, text).unwrap();
    for args in [
        &["scenarios/narrow-vps.toml", "--duration", "20s"][..],
        &["scenarios/coexistence.toml", "--seeds", "2"],
        &["scenarios/prague-cubic.toml", "--duration", "20s"],
        &["scenarios/rrul.toml", "--duration", "15s"],
        &["scenarios/overload.toml", "--duration", "10s"],
        &["scenarios/web.toml"],
        &["scenarios/l4s.toml", "--duration", "12s"],
        &[
            "scenarios/satellite.toml",
            "--duration",
            "12s",
            "--cc",
            "cubic",
            "--rate",
            "5mbit",
            "--rate",
            "20mbit",
            "--rate",
            "10mbit",
        ],
        &[long.to_str().unwrap()],
    ] {
        dualq(&[&["run"], args, &["--quiet", "--svg", at]].concat());
    }
    let replayed = [
        "examples/captures/two-hosts.pcap",
        "--rate",
        "20mbit",
        "--qdisc",
        "dualpi2",
        "--qdisc",
        "pfifo",
    ];
    dualq(&[&["replay"], &replayed[..], &["--svg", at]].concat());
    dualq(&["check", "tests/data/linux-7.3/narrow.jsonl", "--svg", at]);
    let files = std::fs::read_dir(folder.path()).unwrap().flatten().map(|file| file.path());
    let files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|e| e == "svg")).collect();
    // Of each the comparison at least, of most all of them.
    assert!(files.len() > 60, "{files:?}");
    see_all(chromium, "pictures", files);
}

/// Hands files to the script of this name.
fn see_all(chromium: &str, name: &str, files: Vec<PathBuf>) {
    let mut node = Command::new("node");
    let script = format!("{}/tests/browser/{name}.mjs", env!("CARGO_MANIFEST_DIR"));
    let pictures =
        std::env::var_os("DUALQ_PICTURES").map(|folder| PathBuf::from(folder).join(name));
    if let Some(pictures) = &pictures {
        std::fs::create_dir_all(pictures).unwrap();
    }
    node.arg(script).arg(chromium).arg(pictures.unwrap_or_default()).args(files);
    let output = node.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Pages of `check` and `replay`, with long names too.
#[test]
fn pages_of_other_commands() {
    let Some(chromium) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let capture = at("a-capture-with-a-name-that-is-much-longer-than-any-phone-is-wide.pcap");
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/captures/two-hosts.pcap");
    std::fs::copy(shipped, &capture).unwrap();
    let (check, replay) = (at("check.html"), at("replay.html"));
    dualq(&["check", "tests/data/linux-7.3/narrow.jsonl", "--report", &check]);
    let queues = ["--qdisc", "dualpi2", "--qdisc", "fq_codel limit 1000 target 5ms interval 100ms"];
    dualq(&[&["replay", &capture, "--rate", "20mbit", "--report", &replay], &queues[..]].concat());
    // And of a document whose names are words without an end.
    let document = Command::new(env!("CARGO_BIN_EXE_dualq"))
        .args(["check", "tests/data/linux-7.3/coexistence.jsonl", "--json"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let mut document: serde_json::Value = serde_json::from_slice(&document.stdout).unwrap();
    for key in ["name", "limits"] {
        let long = "x".repeat(300);
        document["runs"][0][key] =
            if key == "name" { long.into() } else { [long].as_slice().into() };
    }
    let (stored, long) = (at("long.json"), at("long.html"));
    std::fs::write(&stored, document.to_string()).unwrap();
    dualq(&["report", &stored, "-o", &long]);
    see_all(chromium, "pages", vec![check.into(), replay.into(), long.into()]);
}

#[test]
fn rows_of_two_settings() {
    look("narrow-vps", &["scenarios/narrow-vps.toml", "--duration", "20s"]);
}

#[test]
fn flows_both_ways_and_several_seeds() {
    look("rrul", &["scenarios/rrul.toml", "--duration", "15s", "--seeds", "2"]);
}

/// A line over one number, a heat map over two settings, transfers by size.
#[test]
fn sweeps_and_transfers() {
    let rates = ["--rate", "20mbit", "--rate", "5mbit", "--rate", "10mbit"];
    let one = ["--qdisc", "dualpi2", "--duration", "6s"];
    look("rates", &[&["scenarios/rrul.toml"], &rates[..], &one].concat());
    look("web", &["scenarios/web.toml"]);
}

/// What a file says is shown and never run.
#[test]
fn hostile_names() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("hostile.toml");
    let name =
        "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1>&amp;<!--";
    let text = format!(
        "name = \"\"\"{name}\u{202e}\nEND\ntouch pwned\"\"\"\nabout = '<b>bold</b>'\npublished = ['{name}']\nduration = '4s'\nwarmup = '1s'\n[link]\nrate = '5mbit'\nqdisc = ['pfifo', 'fq_codel']\n[[flow]]\ncc = 'cubic'\n[[probe]]\nkind = 'ping'\n"
    );
    std::fs::write(&plan, text).unwrap();
    look("hostile", &[plan.to_str().unwrap()]);
}
