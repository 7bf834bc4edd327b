//! `dualq replay` as its users run it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

const CAPTURE: &str = "examples/captures/two-hosts.pcap";
const HEADER: &str = "t_ns,len,truesize,ecn,class,gso_size";

/// Runs the program in the project's own folder.
fn dualq(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dualq"));
    command.args(args).current_dir(env!("CARGO_MANIFEST_DIR"));
    // Whoever runs the tests may have a terminal of another width.
    command.env("COLUMNS", "100").stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn stdout(args: &[&str]) -> String {
    let output = dualq(args);
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

fn unpacked(path: &Path) -> String {
    let mut content = String::new();
    let file = fs::File::open(path).unwrap();
    lzma_rust2::XzReader::new(file, false).read_to_string(&mut content).unwrap();
    content
}

/// Writes `content` into a file of its own and gives its path.
fn file(folder: &tempfile::TempDir, name: &str, content: impl AsRef<[u8]>) -> String {
    let path = folder.path().join(name);
    fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The events of the reference traces, line by line, comments included.
#[test]
fn events_equal_the_reference() {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/dualpi2-vectors");
    let index = fs::read_to_string(vectors.join("index.json")).unwrap();
    let index: Vec<Value> = serde_json::from_str(&index).unwrap();
    let mut equal = 0;
    for vector in &index {
        let name = vector["name"].as_str().unwrap();
        if name == "step_packets_0" {
            // tc takes 'step_thresh 0p' for 'not given', so its words cannot ask for this one. The engine's own test,
            // which sets the value as netlink would, has it.
            continue;
        }
        let trace = vectors.join(format!("{name}.trace.csv.xz"));
        let events = stdout(&[
            "replay",
            trace.to_str().unwrap(),
            "--rate",
            &vector["rate_bps"].to_string(),
            "--seed",
            vector["seed"].as_str().unwrap(),
            "--mtu",
            &vector["mtu"].to_string(),
            "--qdisc",
            vector["qdisc"].as_str().unwrap(),
            "--events",
            "-",
        ]);
        let expected = unpacked(&vectors.join(format!("{name}.outcome.csv.xz")));
        let difference = expected.lines().zip(events.lines()).find(|(theirs, ours)| theirs != ours);
        assert_eq!(difference, None, "{name}");
        assert_eq!(expected.len(), events.len(), "{name}");
        println!("{name}: equal");
        equal += 1;
    }
    assert_eq!(equal, 45);
}

#[test]
fn the_tables_for_people() {
    let shown = stdout(&[
        "replay",
        CAPTURE,
        "--rate",
        "30mbit",
        "--qdisc",
        "pfifo",
        "--qdisc",
        "dualpi2 target 5ms",
    ]);
    insta::assert_snapshot!("two_qdiscs", shown);
}

#[test]
fn the_help_teaches_by_examples() {
    insta::assert_snapshot!("help", stdout(&["replay", "--help"]));
}

/// The document holds what the tables show, and tc's own keys.
#[test]
fn the_json_document() {
    let args = ["replay", CAPTURE, "--rate", "30mbit", "--qdisc", "dualpi2", "--qdisc", "pfifo"];
    let document: Value =
        serde_json::from_str(&stdout(&[&args[..], &["--json"]].concat())).unwrap();
    assert_eq!(document["version"], 1);
    assert_eq!(document["trace"]["packets"], 7488);
    assert_eq!(document["link"]["rate_bps"], 30_000_000);
    let runs = document["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    for run in runs {
        let number = |pointer: &str| run.pointer(pointer).unwrap().as_u64().unwrap();
        let queues = run["queues"].as_array().unwrap();
        assert_eq!(number("/total/packets_in"), 7488);
        assert_eq!(
            number("/total/packets_in"),
            number("/total/packets_out") + number("/total/dropped/total")
        );
        assert_eq!(number("/total/packets_out"), number("/tc/packets"));
        assert_eq!(number("/total/bytes_out"), number("/tc/bytes"));
        assert_eq!(number("/total/dropped/total"), number("/tc/drops"));
        let sum = |key: &str| queues.iter().map(|queue| queue[key].as_u64().unwrap()).sum::<u64>();
        assert_eq!(sum("packets_out"), number("/total/packets_out"));
        assert!(number("/total/delay_ns/p50") <= number("/total/delay_ns/p99"));
        assert!(number("/delivered_bps") <= 30_000_000);
    }
    let tc = &runs[0]["tc"];
    assert_eq!(tc["kind"], "dualpi2");
    assert_eq!(tc["options"]["target"], 15_000);
    let marks = runs[0].pointer("/total/marked").unwrap();
    let coupled = marks["coupled"].as_u64().unwrap();
    let step = marks["step"].as_u64().unwrap();
    assert!(coupled > 0 && step > 0);
    // tc counts a packet that was marked by both twice, and so do these two.
    assert_eq!(tc["ecn-mark"], coupled + step);
    assert_eq!(tc["step-mark"], step);
}

#[test]
fn the_same_call_gives_the_same_bytes() {
    let args = ["replay", CAPTURE, "--rate", "28mbit", "--json"];
    assert_eq!(stdout(&args), stdout(&args));
    let other = stdout(&[&args[..], &["--seed", "2"]].concat());
    assert_ne!(stdout(&args), other, "the seed matters");
}

#[test]
fn standard_input_is_a_trace_too() {
    let mut child = command(&["replay", "-", "--rate", "1mbit"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(format!("{HEADER}\n0,1514,2282,1,-1,0\n").as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(text(&output.stdout).starts_with("-: 1 packets, 1,514 bytes"), "{output:?}");
}

/// One clear line and the right exit status for whatever may be wrong.
#[test]
fn bad_input() {
    let folder = tempfile::tempdir().unwrap();
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/dualpi2-vectors");
    let xz = fs::read(vectors.join("defaults.trace.csv.xz")).unwrap();
    let mut damaged = xz.clone();
    damaged[xz.len() / 2] ^= 0xff;
    let capture = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(CAPTURE)).unwrap();
    let bad = |name: &str, lines: &str| file(&folder, name, format!("{HEADER}\n{lines}"));
    let good = bad("good.csv", "0,1514,2282,1,-1,0\n");

    let with_trace = |trace: &str| vec![trace.to_owned(), "--rate".to_owned(), "20mbit".to_owned()];
    let with = |more: &[&str]| {
        let more = more.iter().map(|argument| (*argument).to_owned());
        with_trace(&good).into_iter().chain(more).collect::<Vec<_>>()
    };
    let cases = [
        (1, with_trace("no-such-file"), "cannot open no-such-file: No such file or directory"),
        (1, with_trace("."), "cannot read: Is a directory"),
        (
            1,
            with_trace(&file(&folder, "cut.xz", &xz[..50])),
            "truncated: the compressed data end before the first packet",
        ),
        (1, with_trace(&file(&folder, "bad.xz", &damaged)), "corrupt: "),
        (
            1,
            with_trace(&file(&folder, "cut.pcap", &capture[..70])),
            "truncated: the capture ends in the middle of packet 1",
        ),
        (1, with_trace(&file(&folder, "empty", "")), "empty; a trace begins with the line"),
        (1, with_trace(&file(&folder, "words", "some words\n")), "line 1: expected the header"),
        (1, with_trace(&bad("few", "0,1,1,1,-1,0\n1,2,3\n")), "line 3: 3 fields instead of 6"),
        (
            1,
            with_trace(&bad("back", "5,1,1,1,-1,0\n4,1,1,1,-1,0\n")),
            "line 3: time goes backwards",
        ),
        (1, with_trace(&bad("zero", "5,0,1,1,-1,0\n")), "line 2: len is 0"),
        (
            2,
            vec![good.clone(), "--rate".into(), "0".into()],
            "--rate 0: the link needs a rate above 0",
        ),
        (
            2,
            vec![good.clone(), "--rate".into(), "5 apples".into()],
            "--rate: \"5 apples\" is not a rate",
        ),
        (2, vec![good.clone()], "required arguments were not provided: --rate <RATE>"),
        (2, with(&["--qdisc", "fifo_quick"]), "unknown qdisc \"fifo_quick\""),
        (2, with(&["--qdisc", "dualpi2 targt 5ms"]), "did you mean \"target\"?"),
        (2, with(&["--qdisc", "dualpi2 limit -1"]), "column 15: \"-1\" is no limit"),
        (2, with(&["--mtu", "20"]), "--mtu 20: give 68 to 65535 bytes"),
        (2, with(&["--seed", "0"]), "--seed 0: give a whole number from 1"),
        (2, with(&["--sed", "1"]), "unexpected argument '--sed' found"),
        (2, with(&["--events", "x", "--qdisc", "pfifo", "--qdisc", "bfifo"]), "give one --qdisc"),
        (2, with(&["--events", "-", "--json"]), "both want standard output"),
        (2, with(&["--events", &good]), "this would overwrite the trace"),
        (1, with(&["--events", "/no/such/folder/x"]), "cannot write /no/such/folder/x"),
    ];
    for (status, arguments, message) in cases {
        let arguments: Vec<&str> =
            std::iter::once("replay").chain(arguments.iter().map(String::as_str)).collect();
        let output = dualq(&arguments);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {stderr}");
        assert!(
            stderr.starts_with("error: ") && stderr.contains(message),
            "{arguments:?}: {stderr}"
        );
        assert_eq!(stderr.lines().count(), 1, "{arguments:?}: {stderr}");
        assert!(!stderr.contains("os error"), "{arguments:?}: {stderr}");
        assert_eq!(text(&output.stdout), "", "{arguments:?}");
    }
    assert_eq!(fs::read_to_string(&good).unwrap().lines().count(), 2, "the trace is untouched");
}

/// A file of events is there whole, or as it was before.
#[test]
fn events_are_written_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let events = folder.path().join("events.csv");
    let path = events.to_str().unwrap();
    fs::write(&events, "what was there before").unwrap();
    let broken = file(&folder, "broken.csv", format!("{HEADER}\n0,1514,1,1,-1,0\n0,0,1,1,-1,0\n"));
    let output = dualq(&["replay", &broken, "--rate", "20mbit", "--events", path]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(fs::read_to_string(&events).unwrap(), "what was there before");

    let shown = stdout(&["replay", CAPTURE, "--rate", "30mbit", "--events", path]);
    assert!(shown.contains("delivered"), "the summary is still printed");
    let written = fs::read_to_string(&events).unwrap();
    assert!(written.starts_with("# config limit=10000\n"));
    assert!(written.lines().last().unwrap().starts_with("# stats prob="));
    let out = written.lines().filter(|line| line.contains(",out")).count();
    assert!(shown.contains(&format!("{out} pkt (dropped")), "{out}: {shown}");
    assert_eq!(left_behind(&folder), Vec::<PathBuf>::new());
}

fn left_behind(folder: &tempfile::TempDir) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with('.')).collect()
}

fn interrupt(child: &std::process::Child) {
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
}

#[test]
fn an_interrupt_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let events = folder.path().join("events.csv");
    // One packet waits for the other's 3 hours on the wire, and a billion updates pass meanwhile.
    let trace =
        file(&folder, "trace.csv", format!("{HEADER}\n0,1514,2282,1,-1,0\n0,1514,2282,1,-1,0\n"));
    let events_path = events.to_str().unwrap();
    let args = ["replay", &trace, "--rate", "1bit", "--qdisc", "dualpi2 tupdate 1us"];
    let mut child = command(&[&args[..], &["--events", events_path]].concat()).spawn().unwrap();
    // The file has no name yet, where that can be; it is open all the same.
    let is_open = || {
        let files = fs::read_dir(format!("/proc/{}/fd", child.id())).into_iter().flatten();
        let mut paths = files.flatten().filter_map(|file| fs::read_link(file.path()).ok());
        paths.any(|path| path.starts_with(folder.path()) && path != Path::new(&trace))
    };
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while !is_open() {
        assert!(std::time::Instant::now() < deadline, "it made no file");
        std::thread::sleep(Duration::from_millis(5));
    }
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(left_behind(&folder), Vec::<PathBuf>::new());
    assert!(!events.exists());
}

/// `tcpdump | dualq replay -` and Ctrl-C, the only way to end it: what came is reported, whether the writer ends too or not.
#[test]
fn an_interrupt_ends_the_reading_of_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let capture = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(CAPTURE)).unwrap();
    for writer_ends in [true, false] {
        let events = folder.path().join("events.csv");
        let mut child =
            command(&["replay", "-", "--rate", "30mbit", "--events", events.to_str().unwrap()])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // More than fits into the pipe: when it is written, the reading has begun. The last record is half.
        stdin.write_all(&capture[..capture.len() - 40]).unwrap();
        interrupt(&child);
        let stdin = (!writer_ends).then_some(stdin);
        let mut shown = String::new();
        child.stdout.take().unwrap().read_to_string(&mut shown).unwrap();
        let mut told = String::new();
        child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        assert!(child.wait().unwrap().success(), "{told}");
        drop(stdin);
        assert!(shown.starts_with("-: 7,487 packets, "), "{shown}");
        assert!(told.contains("note: the capture ends in the middle of packet 7488"), "{told}");
        if !writer_ends {
            assert!(told.contains("note: interrupted; this is what came until then"), "{told}");
        }
        assert!(fs::read_to_string(&events).unwrap().contains("\n# stats prob="));
        fs::remove_file(&events).unwrap();
    }
}

/// A reader that has seen enough is no error.
#[test]
fn a_closed_pipe_ends_quietly() {
    let mut child = command(&["replay", CAPTURE, "--rate", "30mbit", "--events", "-"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut some = [0; 100];
    child.stdout.take().unwrap().read_exact(&mut some).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(text(&output.stderr), "");
}

/// What tc would do without a word is said.
#[test]
fn surprises_are_told() {
    let output = dualq(&[
        "replay",
        CAPTURE,
        "--rate",
        "30mbit",
        "--qdisc",
        "dualpi2 limit 0 target 5ms max_rtt 100ms",
    ]);
    let stderr = text(&output.stderr);
    assert!(stderr.contains("limit 0 counts as not given"), "{stderr}");
    assert!(stderr.contains("overrides target"), "{stderr}");
    assert!(stderr.contains("target 16.7ms, tupdate 16.7ms"), "{stderr}");
    assert!(text(&output.stdout).contains("target 16.7ms"));
}
