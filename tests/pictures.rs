//! `--svg`, `--png`, `--parquet`, and the pages of `check` and `replay`, as their users see them; and what they say of bad input.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tests_skipped::skipped;

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dualq"));
    command.args(args).current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null());
    command
}

fn dualq(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// What must work.
fn well(args: &[&str]) -> String {
    let output = dualq(args);
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Runs what must fail, and takes the one line that says why.
fn failure(status: i32, args: &[&str]) -> String {
    let output = dualq(args);
    let said = text(&output.stderr);
    let errors: Vec<&str> = said.lines().filter(|line| !line.starts_with("note: ")).collect();
    assert_eq!((output.status.code(), errors.len()), (Some(status), 1), "{args:?}: {said}");
    errors[0].to_owned()
}

/// The names of what is in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

const SHORT: [&str; 6] = ["--duration", "4s", "--rate", "5mbit", "--cc", "cubic"];
const LONG: [&str; 5] = ["run", "--duration", "100000s", "--interval", "1000s"];

#[test]
fn a_run_and_its_document_have_the_same_pictures() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["run", "report", "saved"] {
        fs::create_dir(at(name)).unwrap();
    }
    let run = ["run", "scenarios/rrul.toml", "--duration", "4s", "--svg"];
    let saved = at("saved");
    well(&[&run[..], &[path(&at("run")), "--save", path(&saved), "--quiet"]].concat());
    let document = saved.join("rrul.json");
    well(&["report", path(&document), "--svg", path(&at("report"))]);
    let expected = [
        "comparison",
        "front",
        "probe-ccdf",
        "probe-cdf",
        "queue-ccdf",
        "queue-cdf",
        "shares",
        "signals",
        "time",
    ];
    assert_eq!(names(&at("run")), expected.map(|name| format!("rrul-{name}.svg")));
    assert_eq!(names(&at("report")), names(&at("run")));
    for name in names(&at("run")) {
        let [one, other] = ["run", "report"].map(|from| fs::read_to_string(at(from).join(&name)));
        let one = one.unwrap();
        assert_eq!(one, other.unwrap(), "{name}");
        // What it is of and what makes it again stand in each.
        assert!(one.contains("rrul · world model · seed 1 · dualq 0.1.0"), "{name}");
        assert!(one.contains("dualq run scenarios/rrul.toml --duration 4s"), "{name}");
    }
}

/// Lines and bars are those of the document.
#[test]
fn pictures_have_the_numbers_of_the_document() {
    let folder = tempfile::tempdir().unwrap();
    let (svg, save) = (folder.path(), path(folder.path()));
    well(
        &[&["run", "--qdisc", "pie", "--quiet", "--svg", save, "--save", save], &SHORT[..]]
            .concat(),
    );
    let document: Value =
        serde_json::from_str(&fs::read_to_string(svg.join("run.json")).unwrap()).unwrap();
    let outcome = &document["runs"][0]["outcome"];
    let comparison = fs::read_to_string(svg.join("run-comparison.svg")).unwrap();
    let base = document["runs"][0]["scenario"]["link"]["rtt"].as_str().unwrap();
    let base: f64 = base.trim_end_matches("ms").parse().unwrap();
    let above = |key: &str| outcome["probe"][0][key].as_f64().unwrap() - base;
    let numbers = format!(">{:.2} · {:.2}<", above("p50_ms"), above("p99_ms"));
    assert!(comparison.contains(&numbers), "{numbers}");
    // The longest queue delay is at the upper end of its axis, up to the room above it.
    let time = fs::read_to_string(svg.join("run-time.svg")).unwrap();
    assert_eq!(time.matches(" l\"/>").count(), 3, "goodput, round trips, queue delay");
}

#[test]
fn what_check_and_replay_find_is_shown_at_once_or_later() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let both = |args: &[&str]| {
        let (now, later, document) = (at("now.html"), at("later.html"), at("document.json"));
        let output = dualq(&[args, &["--json", "--report", path(&now)]].concat());
        assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
        fs::write(&document, output.stdout).unwrap();
        well(&["report", path(&document), "-o", path(&later)]);
        let page = fs::read_to_string(now).unwrap();
        assert_eq!(page, fs::read_to_string(later).unwrap());
        assert!(!page.contains("<script") && page.contains("data:image/svg+xml,"));
        (page, document)
    };
    let (page, document) =
        both(&["check", "tests/data/linux-7.3/coexistence.jsonl", "--seeds", "2"]);
    let checked: Value = serde_json::from_str(&fs::read_to_string(&document).unwrap()).unwrap();
    let runs = checked["runs"].as_array().unwrap();
    let agree = runs.iter().filter(|run| run["agrees"] == true).count();
    assert!(page.contains(&format!("{agree} of {} scenarios agree", runs.len())));
    for run in runs {
        let rows =
            run["quantities"].as_array().unwrap().len() + run["figures"].as_array().unwrap().len();
        let name = format!("<table aria-label=\"{}\">", run["name"].as_str().unwrap());
        let table = page.split(&name).nth(1).unwrap().split("</table>").next().unwrap();
        assert_eq!(table.matches("<tr").count(), rows + 1, "{name}");
    }
    assert!(
        failure(2, &["report", path(&document), "README.md", "-o", "x"]).contains("one by one")
    );

    let capture = ["replay", "examples/captures/two-hosts.pcap", "--rate", "20mbit"];
    let (page, document) =
        both(&[&capture[..], &["--qdisc", "pie", "--qdisc", "dualpi2"]].concat());
    assert!(page.contains(">low latency<") && page.contains("two-hosts.pcap, replayed"));
    // Who asks for no picture has the same document as ever.
    let plain: Value = serde_json::from_str(&well(&[&capture[..], &["--json"]].concat())).unwrap();
    assert!(plain.get("origin").is_none() && plain["runs"][0].get("series").is_none());
    fs::copy(&document, at("whole.json")).unwrap();
    let mut damaged: Value = serde_json::from_str(&fs::read_to_string(&document).unwrap()).unwrap();
    damaged["runs"][0]["series"]["marks"].as_array_mut().unwrap().pop();
    fs::write(&document, damaged.to_string()).unwrap();
    let said = failure(1, &["report", path(&document), "-o", path(&at("now.html"))]);
    assert!(said.contains("runs[0]: the lists of its series are not of one length"), "{said}");
    for interval in [Value::from(1e308), 0.into(), (-1.0).into()] {
        damaged = serde_json::from_str(&fs::read_to_string(at("whole.json")).unwrap()).unwrap();
        damaged["runs"][0]["series"]["interval_s"] = interval;
        fs::write(&document, damaged.to_string()).unwrap();
        let said = failure(1, &["report", path(&document), "-o", path(&at("now.html"))]);
        assert!(said.contains("or its interval is none"), "{said}");
    }
    damaged["version"] = 2.into();
    fs::write(&document, damaged.to_string()).unwrap();
    let said = failure(1, &["report", path(&document), "-o", path(&at("now.html"))]);
    assert!(said.contains("version 2 of the document of replay is not known"), "{said}");
    assert_eq!(fs::read_to_string(at("now.html")).unwrap(), page, "what was there stays");
}

/// Of many disciplines few are lines, and all are in the table.
#[test]
fn many_disciplines_make_a_small_picture() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let lines: Vec<String> = (1..=40).map(|limit| format!("pfifo limit {limit}0")).collect();
    let queues = lines.iter().flat_map(|line| ["--qdisc", line]);
    let mut args = vec!["replay", "examples/captures/two-hosts.pcap", "--rate", "20mbit"];
    args.extend(queues.chain(["--report", path(&page), "--svg", path(folder.path())]));
    well(&args);
    let time = fs::read_to_string(folder.path().join("two-hosts-time.svg")).unwrap();
    assert!(time.contains("The first 7 of 40 queue disciplines.") && time.len() < 300_000);
    let page = fs::read_to_string(page).unwrap();
    assert!(lines.iter().all(|line| page.contains(&format!(">{line}<"))));
}

/// As many pixels as twice the units of the same picture, which a viewer of PNG is told first.
#[test]
fn png_has_what_svg_has() {
    if !cfg!(feature = "png") {
        return skipped("no PNG in this build: cargo test --features png");
    }
    let folder = tempfile::tempdir().unwrap();
    let at = path(folder.path());
    well(&[&["run", "--qdisc", "pie", "--quiet", "--svg", at, "--png", at], &SHORT[..]].concat());
    let all = names(folder.path());
    assert!(
        all.len() > 10 && all.iter().filter(|name| name.ends_with(".png")).count() * 2 == all.len()
    );
    for name in all.iter().filter(|name| name.ends_with(".png")) {
        let png = fs::read(folder.path().join(name)).unwrap();
        let svg = fs::read_to_string(folder.path().join(name.replace(".png", ".svg"))).unwrap();
        assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"), "{name}");
        let pixels = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
        let height = svg.split(" height=\"").nth(1).unwrap().split('"').next().unwrap();
        let height: f64 = height.parse().unwrap();
        assert_eq!((pixels(16), pixels(20)), (1280, (2.0 * height).ceil() as u32), "{name}");
    }
}

/// However many packets: the page is small and says how they were thinned.
#[test]
fn a_million_packets_make_a_small_page() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, page) = (folder.path().join("million.csv"), folder.path().join("page.html"));
    let mut lines = String::from("t_ns,len,truesize,ecn,class,gso_size\n");
    for packet in 0..1_000_000_u64 {
        let burst = (packet / 4000) % 2 * 90_000;
        writeln!(lines, "{},1514,2304,{},0,0", packet * 200_000 + burst, packet % 3 / 2).unwrap();
    }
    fs::write(&trace, lines).unwrap();
    let replayed = ["replay", path(&trace), "--rate", "60mbit", "--report", path(&page)];
    well(&[&replayed[..], &["--qdisc", "pfifo", "--qdisc", "dualpi2"]].concat());
    let page = fs::read_to_string(page).unwrap();
    assert!(page.len() < 5_000_000, "{}", page.len());
    assert!(page.contains("1,000,000 packets in 1,565 intervals of 128 ms"));
}

#[test]
fn folders_are_made() {
    let folder = tempfile::tempdir().unwrap();
    let (saved, pictures) = (folder.path().join("new/saved"), folder.path().join("new/pictures"));
    let begin = ["run", "--qdisc", "pie", "--quiet", "--svg", path(&pictures)];
    well(&[&begin[..], &["--save", path(&saved)], &SHORT[..]].concat());
    assert!(saved.join("run.json").is_file() && pictures.join("run-comparison.svg").is_file());
}

#[test]
fn bad_input_is_one_line_and_what_was_there_stays() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (missing, file) = (at("missing"), at("file"));
    fs::write(&file, "what was there").unwrap();
    let capture = ["replay", "examples/captures/two-hosts.pcap", "--rate", "20mbit"];
    let check = ["check", "tests/data/linux-7.3/narrow.jsonl"];
    for begin in [&LONG[..], &capture, &check] {
        let said = failure(1, &[begin, &["--svg", path(&file)]].concat());
        assert!(said.contains("Not a directory"), "{said}");
        let said = failure(1, &[begin, &["--report", path(&missing.join("page.html"))]].concat());
        assert!(said.contains("cannot write") && said.contains("No such file"), "{said}");
    }
    for begin in [&capture[..], &check] {
        let said = failure(2, &[begin, &["--report", "-"]].concat());
        assert!(said.contains("leaves no room"), "{said}");
    }
    let full = failure(1, &[&capture[..], &["--report", "/dev/full"]].concat());
    assert!(full.contains("cannot write /dev/full: No space left on device"), "{full}");
    if !cfg!(feature = "png") {
        let said = failure(2, &[&LONG[..], &["--png", path(folder.path())]].concat());
        assert!(said.contains("--features png"), "{said}");
    }
    if !cfg!(feature = "parquet") {
        let said = failure(2, &[&LONG[..], &["--parquet", path(folder.path())]].concat());
        assert!(said.contains("--features parquet"), "{said}");
    }
    let same = failure(2, &[&LONG[..], &["--report", "x", "--parquet", "x"]].concat());
    assert!(same.contains("--report and --parquet both go to "), "{same}");
    let nothing = failure(2, &["report", path(&file)]);
    assert!(nothing.contains("required"), "{nothing}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "what was there");
    // A folder has the name of one of the pictures: none of them is written.
    fs::create_dir_all(at("out/run-comparison.svg")).unwrap();
    let said = failure(1, &[&["run", "--svg", path(&at("out"))], &SHORT[..]].concat());
    assert!(said.contains("run-comparison.svg: Is a directory"), "{said}");
    assert_eq!(names(&at("out")), ["run-comparison.svg"]);
}

/// A file without a name is gone with its process, however that ends.
#[test]
fn nothing_stays_of_what_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let flags = rustix::fs::OFlags::TMPFILE | rustix::fs::OFlags::WRONLY;
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    if rustix::fs::openat(rustix::fs::CWD, folder.path(), flags, mode).is_err() {
        return skipped(
            "no O_TMPFILE where temporary files are: TMPDIR=FOLDER on ext4, xfs, btrfs or tmpfs",
        );
    }
    let page = folder.path().join("page.html");
    let save = ["--save", path(folder.path()), "--report", path(&page), "--quiet", "--no-progress"];
    let mut run = command(&[&LONG[..], &save].concat()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert!(run.try_wait().unwrap().is_none(), "it runs for long");
    run.kill().unwrap();
    run.wait().unwrap();
    assert_eq!(names(folder.path()), [""; 0]);
    // What takes its name later replaces what had it, or is new; either as the umask says.
    for before in [None, Some("old")] {
        if let Some(old) = before {
            fs::write(&page, old).unwrap();
        }
        well(&[&["run", "--quiet", "--report", path(&page)], &SHORT[..]].concat());
        assert!(fs::read_to_string(&page).unwrap().starts_with("<!doctype html>"));
        assert_eq!(names(folder.path()), ["page.html"]);
    }
}

/// The real reader of others' data frames reads what we write.
#[test]
fn pyarrow_reads_the_tables() {
    if !cfg!(feature = "parquet") {
        return skipped("no Parquet in this build: cargo test --features parquet");
    }
    let python = std::env::var("DUALQ_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let there = Command::new(&python).args(["-c", "import pyarrow"]).output();
    if !there.is_ok_and(|output| output.status.success()) {
        assert!(std::env::var_os("DUALQ_REQUIRE_PYARROW").is_none(), "no pyarrow");
        return skipped("no pyarrow: pip install pyarrow, and DUALQ_PYTHON=path/to/python");
    }
    let folder = tempfile::tempdir().unwrap();
    let at = path(folder.path());
    let run = ["run", "scenarios/rrul.toml", "--duration", "4s", "--seeds", "2", "--quiet"];
    let one = folder.path().join("one.parquet");
    well(&[&run[..], &["--parquet", at, "--save", at]].concat());
    // A folder that is not there is made.
    let made = folder.path().join("made");
    well(&[&run[..], &["--parquet", path(&made)]].concat());
    assert_eq!(names(&made), ["rrul-series.parquet", "rrul.parquet"]);
    let said = failure(2, &[&LONG[..], &["--parquet", "-"]].concat());
    assert!(said.contains("leaves no room for the table: add --quiet"), "{said}");
    well(&[&run[..], &["--parquet", path(&one)]].concat());
    let script = folder.path().join("read.py");
    fs::write(&script, READ).unwrap();
    let output = Command::new(&python).arg(&script).arg(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let two = ["scenarios/rrul.toml", "scenarios/coexistence.toml", "--parquet", path(&one)];
    let said = failure(2, &[&["run"], &two[..], &SHORT].concat());
    assert!(said.contains("figures of one scenario file, and these are 2"), "{said}");
}

const READ: &str = r#"
import json, sys
from pathlib import Path
import pyarrow.parquet as pq

folder = Path(sys.argv[1])
document = json.loads((folder / "rrul.json").read_text())
summary = pq.read_table(folder / "rrul.parquet")
assert summary.equals(pq.read_table(folder / "one.parquet"))
metadata = summary.schema.metadata
assert metadata[b"dualq.name"] == b"rrul" and b"dualq run scenarios/rrul.toml" in metadata[b"dualq.command"]
rows = summary.to_pylist()
runs = document["runs"]
assert len(rows) == len(runs)
for row, run in zip(rows, runs):
    assert all(row[key] == value for key, value in run["settings"].items()), row
    assert (row["world"], row["seed"]) == (run["world"], run["seed"])
    assert (row["link_rate_mbit"], row["base_rtt_ms"]) == (50.0, 30.0)
    assert row["goodput Mbits/sec"] == run["outcome"]["goodput_mbit"]
    assert row["queue drops"] == run["outcome"]["queue"]["drops"]
    assert row["ping RTT (ms) p99"] == run["outcome"]["probe"][0]["p99_ms"]
series = pq.read_table(folder / "rrul-series.parquet").to_pylist()
for run in runs:
    mine = [row for row in series if row["seed"] == run["seed"] and all(row[key] == value for key, value in run["settings"].items())]
    of = run["outcome"]["series"]
    queue = [row for row in mine if row["of"] == "queue"]
    assert [row["t_s"] for row in queue] == of["t_s"]
    assert [row["queue_delay_ms"] for row in queue] == of["queue_delay_ms"]
    for number, values in enumerate(of["rtt_ms"]):
        assert [row["rtt_ms"] for row in mine if row["of"] == "probe" and row["number"] == number] == values
    for name in ["goodput_mbit", "cwnd", "srtt_ms", "retransmits"]:
        for number, values in enumerate(of[name]):
            assert [row[name] for row in mine if row["of"] == "flows" and row["number"] == number] == values, name
    for number, flows in enumerate(of["each_goodput_mbit"]):
        for flow, values in enumerate(flows):
            assert [row["each_goodput_mbit"] for row in mine if (row["of"], row["number"], row["flow"]) == ("flow", number, flow)] == values
    assert all(row["rtt_ms"] is None for row in queue)
"#;
