//! `dualq run` and `dualq check` as their users run them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

#[path = "run/agreement.rs"]
mod agreement;
#[path = "run/captures.rs"]
mod captures;
#[path = "run/events.rs"]
mod events;

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dualq"));
    command.args(args).current_dir(env!("CARGO_MANIFEST_DIR"));
    // Whoever runs the tests may have a terminal of another width.
    command.env("COLUMNS", "100").stdin(Stdio::null());
    command
}

fn dualq(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn stdout(args: &[&str]) -> String {
    let output = dualq(args);
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&stdout(args)).unwrap()
}

#[test]
fn the_main_job() {
    // As the README shows it: in one piece, for this is no terminal and nobody says how wide it is.
    let output =
        command(&["run", "scenarios/narrow-vps.toml"]).env_remove("COLUMNS").output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    insta::assert_snapshot!("narrow_vps", text(&output.stdout));
}

#[test]
fn the_help_teaches_by_examples() {
    insta::assert_snapshot!("run_help", stdout(&["run", "--help"]));
    insta::assert_snapshot!("check_help", stdout(&["check", "--help"]));
}

/// Without a file, and with lists on the command line.
#[test]
fn a_question_on_one_line() {
    let document = json(&[
        "run",
        "--rate",
        "50mbit",
        "--rtt",
        "48ms",
        "--qdisc",
        "pie",
        "--qdisc",
        "fq_codel",
        "--cc",
        "cubic",
        "--duration",
        "8s",
        "--json",
    ]);
    let runs = document["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[0]["settings"]["qdisc"], "pie");
    assert_eq!(runs[1]["scenario"]["link"]["qdisc"], "fq_codel");
    for run in runs {
        let outcome = &run["outcome"];
        let goodput = outcome["goodput_mbit"].as_f64().unwrap();
        assert!((20.0..=48.0).contains(&goodput), "{goodput}");
        assert!(outcome["probe"][0]["min_ms"].as_f64().unwrap() >= 48.0);
        assert_eq!(outcome["series"]["t_s"].as_array().unwrap().len(), 8);
    }
}

/// The document holds what its users look for, and the figures fit each other.
#[test]
fn the_json_document() {
    let document = json(&[
        "run",
        "scenarios/coexistence.toml",
        "--duration",
        "20s",
        "--rtt",
        "10ms",
        "--interval",
        "500ms",
        "--json",
    ]);
    assert_eq!((&document["version"], &document["command"]), (&1.into(), &"run".into()));
    let run = &document["runs"][0];
    assert_eq!(run["world"], "model");
    assert_eq!(run["seed"], 1);
    let outcome = &run["outcome"];
    let number = |pointer: &str| {
        outcome.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{pointer}"))
    };
    let total = number("/flow/0/total_mbit") + number("/flow/1/total_mbit");
    assert!((total - number("/goodput_mbit")).abs() < 0.01);
    assert!(number("/flow/0/line_mbit") > number("/flow/0/total_mbit"), "headers count");
    assert!(number("/flow/1/ce_marks") > 0.0, "DCTCP is marked");
    assert!(number("/flow/0/cwnd/0") >= 1.0);
    for key in ["srtt_ms/0", "rttvar_ms/0", "srtt_ms_p50", "srtt_ms_p99"] {
        assert!(number(&format!("/flow/0/{key}")) > 0.0, "{key}");
    }
    assert!(number("/queue/delay_p50_ms") <= number("/queue/delay_p99_ms"));
    assert!(number("/fairness") > 0.5 && number("/fairness") <= 1.0);
    assert_eq!(outcome["queue"]["tc"]["kind"], "dualpi2");
    assert_eq!(outcome["queue"]["tc"]["options"]["ecn-mask"], "any-ect");
    let series = &outcome["series"];
    for key in
        ["t_s", "queue_delay_ms", "queue_packets", "queue_drops", "queue_marks", "probability"]
    {
        assert_eq!(series[key].as_array().unwrap().len(), 40, "{key}");
    }
    for key in [
        "goodput_mbit",
        "rtt_ms",
        "cwnd",
        "ssthresh",
        "in_flight",
        "pacing_mbit",
        "srtt_ms",
        "retransmits",
    ] {
        assert_eq!(series[key][1].as_array().unwrap().len(), 40, "{key}");
    }
    // From the warm-up on, a quarter of the time, the intervals add up to the figures.
    let from_warmup = |pointer: &str| -> f64 {
        let list = series.pointer(pointer).and_then(Value::as_array).expect("a list");
        list.iter().skip(10).map(|value| value.as_f64().unwrap()).sum()
    };
    for (parts, whole) in [
        ("/queue_marks", "/queue/marks"),
        ("/queue_drops", "/queue/drops"),
        ("/retransmits/0", "/flow/0/retransmits"),
    ] {
        assert!((from_warmup(parts) - number(whole)).abs() < 0.5, "{parts}");
    }
}

#[test]
fn comma_separated_values() {
    let values = stdout(&["run", "scenarios/narrow-vps.toml", "--duration", "6s", "--csv"]);
    let mut lines = values.lines();
    let header = lines.next().unwrap();
    assert!(header.starts_with("qdisc,cc,goodput Mbits/sec,"), "{header}");
    let columns = header.split(',').count();
    assert_eq!(lines.clone().count(), 12);
    assert!(lines.all(|line| line.split(',').count() == columns));
}

/// A result is a function of scenario and seed, not of how many threads work on it.
#[test]
fn the_same_call_gives_the_same_bytes() {
    let args = ["run", "scenarios/narrow-vps.toml", "--duration", "5s", "--json"];
    let threads = |number: &str| command(&args).env("RAYON_NUM_THREADS", number).output().unwrap();
    let one = threads("1");
    assert!(one.status.success());
    assert_eq!(one.stdout, threads("4").stdout);
    assert_eq!(text(&one.stdout), stdout(&args));
    assert_ne!(text(&one.stdout), stdout(&[&args[..], &["--seed", "2"]].concat()));
}

/// A finite transfer is done, a flow with an end stops, and pings are answered.
#[test]
fn transfers_ends_and_pings() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.toml");
    let plan = "duration = '10s'\nwarmup = '1s'\n[link]\nrate = '20mbit'\nforward = '10ms'\nreverse = '20ms'\n\
                [[flow]]\ncc = 'cubic'\nsize = '1mb'\n[[flow]]\ncc = 'reno'\nstart = '2s'\nstop = '4s'\n\
                [[probe]]\nkind = 'ping'\ninterval = '100ms'\n";
    fs::write(&path, plan).unwrap();
    let document = json(&["run", path.to_str().unwrap(), "--json"]);
    let outcome = &document["runs"][0]["outcome"];
    let took = outcome["flow"][0]["completion_s"][0].as_f64().unwrap();
    assert!((0.4..2.0).contains(&took), "{took}");
    let late = |group: usize| {
        let goodput = outcome["series"]["goodput_mbit"][group].as_array().unwrap();
        goodput[6..].iter().map(|value| value.as_f64().unwrap()).sum::<f64>()
    };
    assert_eq!((late(0), late(1)), (0.0, 0.0), "both have ended");
    let ping = &outcome["probe"][0];
    // Nine seconds of them, and those that were under way when the warm-up ended. The queue drops one or two at random.
    let count = |key: &str| ping[key].as_u64().unwrap();
    assert!((90..95).contains(&count("sent")) && count("lost") <= 3, "{ping}");
    assert_eq!(count("n") + count("lost"), count("sent"), "{ping}");
    let least = ping["min_ms"].as_f64().unwrap();
    assert!((30.0..30.5).contains(&least), "{least}");
}

/// Who is stuck is told; who is done is not stuck.
#[test]
fn no_progress_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scenario.toml");
    let shown = |scenario: &str| {
        fs::write(&path, scenario).unwrap();
        stdout(&["run", path.to_str().unwrap(), "--duration", "12s"])
    };
    let stuck = shown("[link]\nloss = '100%'");
    assert!(stuck.contains("1 flow made no progress"), "{stuck}");
    let done = shown("[[flow]]\ncc = 'cubic'\nsize = '100kb'\n[[flow]]\ncc = 'bbr'\nstop = '3s'");
    assert!(!done.contains("no progress"), "{done}");
    assert!(!done.contains("transfers ended"), "{done}");
    let endless = shown("[[flow]]\ncc = 'cubic'\nsize = '10gb'");
    assert!(endless.contains("cubic: none of 1 transfers ended"), "{endless}");
}

/// A scenario in a file of its own.
struct Scenario(tempfile::TempDir);

impl Scenario {
    fn of(source: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("scenario.toml"), source).unwrap();
        Self(folder)
    }

    fn run(&self, args: &[&str]) -> String {
        let path = self.0.path().join("scenario.toml");
        stdout(&[&["run", path.to_str().unwrap(), "--duration", "4s"], args].concat())
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.run(&[args, &["--json"]].concat())).unwrap()
    }

    /// The table of CSV, a map from its titles a line.
    fn csv(&self, args: &[&str]) -> Vec<BTreeMap<String, String>> {
        let values = self.run(&[args, &["--csv"]].concat());
        let mut lines = values.lines().map(|line| line.split(',').map(str::to_owned));
        let titles: Vec<String> = lines.next().unwrap().collect();
        let distinct: BTreeSet<&String> = titles.iter().collect();
        assert_eq!(distinct.len(), titles.len(), "two columns of one name: {titles:?}");
        let line = |values: Vec<String>| {
            assert_eq!(values.len(), titles.len(), "{values:?}");
            titles.iter().cloned().zip(values).collect()
        };
        lines.map(|values| line(values.collect())).collect()
    }
}

/// What a run does not have leaves its place blank, and every figure stands under its own title.
#[test]
fn figures_stay_in_their_columns() {
    let scenario = Scenario::of("[[flow]]\ncc = 'cubic'\ncount = [1, 4]");
    let lines = scenario.csv(&[]);
    let document = scenario.json(&[]);
    for (line, run) in lines.iter().zip(document["runs"].as_array().unwrap()) {
        let outcome = &run["outcome"];
        let number = |title: &str| line[title].parse::<f64>().unwrap_or_else(|_| panic!("{title}"));
        let (mean, above) = (number("ssh RTT (ms) mean"), number("ssh RTT (ms) above base"));
        assert!((mean - above - 50.0).abs() < 0.011, "{line:?}");
        assert_eq!(number("queue drops") as u64, outcome["queue"]["drops"].as_u64().unwrap());
        let sent = outcome["flow"][0]["data_packets"].as_u64().unwrap();
        assert_eq!(number("segments sent") as u64, sent);
        assert_eq!(line["fairness"].is_empty(), line["flows"] == "1", "{line:?}");
    }
    // In the table a blank is as wide as what others have there.
    let table = scenario.run(&[]);
    let row = |start: &str| table.lines().find(|line| line.starts_with(start)).unwrap();
    let [titles, one, four] = ["flows  ", "1  ", "4  "].map(row);
    let fairness = titles.find("fairness").unwrap();
    assert_eq!(one[fairness..fairness + "fairness".len()].trim(), "", "{table}");
    assert!(
        four[fairness..].trim_start().starts_with("0.")
            || four[fairness..].trim_start().starts_with("1."),
        "{table}"
    );
}

#[test]
fn groups_are_titled_by_what_all_their_runs_have() {
    let scenario = Scenario::of(
        "[[flow]]\ncc = ['cubic', 'bbr']\n[[flow]]\ncc = 'reno'\n[[flow]]\ncc = 'dctcp'\n\
         [[flow]]\ncc = 'dctcp'\nsize = '10kb'",
    );
    let lines = scenario.csv(&[]);
    let titles: Vec<&String> = lines[0].keys().filter(|title| title.ends_with("sec")).collect();
    let groups = ["flow 1", "flow 3 (dctcp)", "flow 4 (dctcp)", "goodput", "reno"];
    assert_eq!(titles, groups.map(|group| format!("{group} Mbits/sec")).each_ref());
    assert!(lines[0].contains_key("flow 4 (dctcp) completion (ms) p99"), "{:?}", lines[0]);
    let document = scenario.json(&[]);
    for (number, line) in lines.iter().enumerate() {
        let first = document["runs"][number]["outcome"]["flow"][0]["total_mbit"].as_f64().unwrap();
        let shown: f64 = line["flow 1 Mbits/sec"].parse().unwrap();
        assert!((first - shown).abs() <= 0.005, "{line:?}");
    }
}

/// DCTCP waits in a queue that the probe never meets.
#[test]
fn the_queues_own_delay_of_both_classes() {
    let scenario = Scenario::of(
        "[link]\nrate = '100mbit'\nrtt = '10ms'\nqdisc = 'dualpi2 any_ect'\n[[flow]]\ncc = 'dctcp'",
    );
    let queue = &scenario.json(&[])["runs"][0]["outcome"]["queue"];
    let line = &scenario.csv(&[])[0];
    for (title, key) in [("Not-ECT delay (ms)", "delay_not_ect"), ("ECT delay (ms)", "delay_ect")] {
        for figure in ["p50", "p99"] {
            let shown: f64 = line[&format!("{title} {figure}")].parse().unwrap();
            let exact = queue[key][format!("{figure}_ms")].as_f64().unwrap();
            assert!((shown - exact).abs() <= 0.0051, "{title} {figure}: {shown} {exact}");
        }
    }
    assert!(queue["delay_ect"]["p99_ms"].as_f64() > Some(0.2), "{queue}");
    let table = scenario.run(&[]);
    assert!(table.contains("Not-ECT delay (ms)  ECT delay (ms)"), "{table}");
    // One class only needs no name.
    let classic = Scenario::of("").run(&[]);
    assert!(classic.contains("  queue delay (ms)") && !classic.contains("ECT"), "{classic}");
}

#[test]
fn several_seeds_have_a_mean_and_a_spread() {
    let scenario = Scenario::of("[link]\nqdisc = ['pie', 'fq_codel']\nloss = '0.5%'");
    let document = scenario.json(&["--seed", "7", "--seeds", "3"]);
    assert_eq!(document["seeds"], serde_json::json!({ "first": 7, "count": 3 }));
    let runs = document["runs"].as_array().unwrap();
    let seeds: Vec<u64> = runs.iter().map(|run| run["seed"].as_u64().unwrap()).collect();
    assert_eq!(seeds, [7, 8, 9, 7, 8, 9]);
    // A seed gives what it gives alone.
    assert_eq!(scenario.json(&["--seed", "8"])["runs"][0], runs[1]);
    let goodput: Vec<f64> =
        runs[..3].iter().map(|run| run["outcome"]["goodput_mbit"].as_f64().unwrap()).collect();
    let mean = goodput.iter().sum::<f64>() / 3.0;
    let deviation = (goodput.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 2.0).sqrt();
    assert!(deviation > 0.0);
    let figure = &document["summary"][0]["figures"][0];
    assert_eq!((&figure["group"], &figure["unit"]), (&"goodput".into(), &"Mbit/s".into()));
    assert_eq!(figure["seeds"], 3);
    assert!((figure["mean"].as_f64().unwrap() - mean).abs() < 0.001, "{figure} {mean}");
    assert!((figure["deviation"].as_f64().unwrap() - deviation).abs() < 0.001, "{figure}");
    assert!(figure["min"].as_f64() < figure["mean"].as_f64(), "{figure}");
    assert!(figure["mean"].as_f64() < figure["max"].as_f64(), "{figure}");

    let line = &scenario.csv(&["--seed", "7", "--seeds", "3"])[0];
    assert_eq!(line["goodput Mbits/sec"], format!("{mean:.2}"));
    assert_eq!(line["goodput Mbits/sec deviation"], format!("{deviation:.2}"));

    let table = scenario.run(&["--seed", "7", "--seeds", "3"]);
    let spread = table.lines().skip_while(|line| !line.starts_with("pie")).nth(1).unwrap();
    assert!(spread.trim_start().starts_with(&format!("±{deviation:.2}")), "{table}");
    assert!(table.contains("Means over the 3 seeds from 7 to 9;"), "{table}");
}

/// Whoever writes a file that others look at does not get hold of their terminals.
#[test]
fn nothing_in_a_file_steers_the_terminal() {
    let name = "evil \u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\rgood";
    let source = format!(
        "name = {0}\nabout = {0}\npublished = [{0}]\n",
        serde_json::to_string(name).unwrap().replace('\u{9b}', "\\u009b")
    );
    let scenario = Scenario::of(&source);
    let shown = scenario.run(&[]);
    let steers = |c: char| c.is_control() && c != '\n';
    assert!(!shown.contains(steers), "{shown:?}");
    assert_eq!(shown.matches("\\u001b[2J\\u009b31m\\u000dgood").count(), 3, "{shown}");
    // A document is for programs: it says exactly what the file does.
    let document = scenario.json(&[]);
    for key in ["name", "about"] {
        assert_eq!(document[key], name);
    }
    for args in [&["run", "--qdisc", name][..], &["run", name], &["check", name]] {
        let stderr = text(&dualq(args).stderr);
        assert!(stderr.starts_with("error: ") && !stderr.contains(steers), "{stderr:?}");
    }
}

#[test]
fn errors_do_not_repeat_what_is_endless() {
    let output = dualq(&["run", "--qdisc", &"fq ".repeat(5000)]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr.len() < 1500 && stderr.contains(" more characters] "), "{stderr}");
}

/// Without a name, the call is the title; without a file, standard input may be one.
#[test]
fn a_scenario_from_standard_input() {
    let args = ["run", "-", "--duration", "2s", "--qdisc", "bfifo limit 1mb"];
    let run = |source: &str| {
        let mut child = command(&args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(source.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let shown = text(&run("[[flow]]\ncc = 'bbr'").stdout);
    assert!(
        shown.starts_with("dualq run - --duration 2s --qdisc 'bfifo limit 1mb'\n\n"),
        "{shown}"
    );
    assert!(shown.contains("bfifo limit 1mb with bbr: "), "{shown}");
    let wrong = text(&run("[[flow]]\ncc = 'bbrr'").stderr);
    assert!(wrong.starts_with("error: standard input: line 2: flow.cc: "), "{wrong}");
}

/// tc's grammar is kept, and what surprises in it is told: bytes a second, and microseconds.
#[test]
fn what_tc_makes_of_a_word_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.toml");
    fs::write(&path, "duration = '1s'\nwarmup = '100ms'\n[link]\nrate = '5mbps'\nrtt = '50'\n")
        .unwrap();
    let path = path.to_str().unwrap();
    let told = |args: &[&str]| {
        let output = dualq(args);
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        text(&output.stderr)
    };
    let notes = told(&["run", path]);
    let bytes = "5mbps is 40Mbit/s, for bps are bytes per second in tc's words; 5mbit?";
    assert!(notes.contains(&format!("note: {path}: line 4: rate: {bytes}\n")), "{notes}");
    assert!(notes.contains(": line 5: rtt: 50 is 50 microseconds, "), "{notes}");
    let notes =
        told(&["run", "--duration", "1s", "--rate", "1Gbps", "--rtt", "50", "--interval", "5000"]);
    assert!(notes.contains("note: --rate: 1Gbps is 8Gbit/s, "), "{notes}");
    assert!(notes.contains("note: --rtt: 50 is 50 microseconds, "), "{notes}");
    assert!(notes.contains("note: --interval: 5000 is 5000 microseconds, "), "{notes}");
    let output = dualq(&["run", "--duration", "60"]);
    let note = String::from_utf8_lossy(&output.stderr);
    assert!(
        note.contains("note: --duration: 60 is 60 microseconds, ") && note.contains("; 60s?"),
        "{note}"
    );
    assert_eq!(told(&["run", "--duration", "1s", "--rate", "50mbit", "--rtt", "50ms"]), "");
    let notes = told(&["run", "--duration", "1s", "--qdisc", "pfifo limit 100"]);
    assert!(notes.contains("note: a packet in a FIFO's limit may be an aggregate"), "{notes}");
    let mixed =
        Scenario::of("[link]\nqdisc = 'dualpi2 any_ect'\n[[flow]]\ncc = 'cubic'\necn = true\n");
    let mixed = mixed.0.path().join("scenario.toml");
    let notes = told(&["run", mixed.to_str().unwrap(), "--duration", "12s"]);
    assert!(notes.contains("note: with any_ect, flows of classic"), "{notes}");
    let up = "duration = '150ms'\nwarmup = '50ms'\n[link]\nrtt = '20ms'\n[[flow]]\ncc = 'cubic'\ndirection = 'up'\n";
    let limited = up.replace("[[flow]]", "[link.up]\nrate = '5mbit'\n[[flow]]");
    for (text, is_told) in [(up, true), (&limited, false)] {
        let up = Scenario::of(text);
        let up = up.0.path().join("scenario.toml");
        let notes = told(&["run", up.to_str().unwrap()]);
        assert_eq!(notes.contains("note: flows go up, where nothing limits"), is_told, "{notes}");
    }
    // The last word is the one that counts.
    let last = Scenario::of(
        "[link]\nqdisc = 'dualpi2 any_ect l4s_ect'\n[[flow]]\ncc = 'cubic'\necn = true\n",
    );
    let last = last.0.path().join("scenario.toml");
    assert_eq!(told(&["run", last.to_str().unwrap(), "--duration", "12s"]), "");
    // What is refused is explained, too.
    let refused = text(&dualq(&["run", "--rate", "5"]).stderr);
    assert!(
        refused.starts_with("note: --rate: 5 is 5 bit/s; 5mbit?\nerror: --rate: "),
        "{refused}"
    );
    let facts = "tests/data/facts/debian-12.json";
    let notes = told(&["plan", "--facts", facts, "--rate", "50mbps", "--rtt", "50000"]);
    assert!(notes.contains("note: --rate: 50mbps is 400Mbit/s, "), "{notes}");
    assert!(notes.contains("note: --rtt: 50000 is 50000 microseconds, "), "{notes}");
    let notes = told(&["doctor", "--facts", facts, "--rate", "50mbps"]);
    assert!(notes.contains("note: --rate: 50mbps is 400Mbit/s, "), "{notes}");
    let notes =
        told(&["replay", "examples/captures/two-hosts.pcap", "--rate", "20mbps", "--no-progress"]);
    assert!(notes.contains("note: --rate: 20mbps is 160Mbit/s, "), "{notes}");
}

/// Groups that do not fit side by side go below each other; nothing is cut off.
#[test]
fn a_table_fits_the_terminal() {
    let scenario = Scenario::of("[[probe]]\nkind = 'ssh'\n[[probe]]\nkind = 'ping'\n");
    let shown = |columns: &str| {
        let path = scenario.0.path().join("scenario.toml");
        let args = ["run", path.to_str().unwrap(), "--duration", "4s"];
        text(&command(&args).env("COLUMNS", columns).output().unwrap().stdout)
    };
    let table = |text: &str| -> Vec<String> {
        let lines = text.lines().skip(2).take_while(|line| !line.contains(" with "));
        lines.map(str::to_owned).collect()
    };
    let (wide, narrow) = (table(&shown("300")), table(&shown("60")));
    assert!(wide.iter().any(|line| line.len() > 100), "{wide:#?}");
    assert!(narrow.iter().all(|line| line.len() <= 60), "{narrow:#?}");
    let words = |lines: &[String]| {
        let mut words: Vec<String> =
            lines.iter().flat_map(|line| line.split_whitespace()).map(str::to_owned).collect();
        words.sort();
        words.dedup();
        words
    };
    assert_eq!(words(&wide), words(&narrow));
}

/// With many links, the table alone is easier to read than the same in words.
#[test]
fn many_links_are_not_told_twice() {
    let rates = ["1mbit", "2mbit", "5mbit", "10mbit", "20mbit"];
    let rates = rates.iter().flat_map(|rate| ["--rate", rate]);
    let args =
        ["run", "--duration", "2s", "--rtt", "10ms", "--rtt", "20ms"].into_iter().chain(rates);
    let shown = stdout(&args.collect::<Vec<_>>());
    assert!(!shown.contains("while the probe"), "{shown}");
    let two = stdout(&["run", "--duration", "2s", "--rtt", "10ms", "--rtt", "20ms"]);
    assert_eq!(two.matches("while the probe").count(), 2, "{two}");
}

/// Who prints help into a full disk hears of it.
#[test]
fn help_that_cannot_be_printed_is_a_failure() {
    for args in [&["--help"][..], &["run", "--help"], &["--version"]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = command(args).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(text(&output.stderr).starts_with("error: cannot print: No space left"), "{args:?}");
    }
}

#[test]
fn bad_input() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let run = |argument: &str| vec!["run".to_owned(), argument.to_owned()];
    let option = |name: &str, value: &str| vec!["run".into(), name.to_owned(), value.to_owned()];
    let cases = [
        (1, run("no-such.toml"), "cannot read no-such.toml: No such file or directory"),
        (
            2,
            run(&file("a", "[link]\nqdsic = 'fq'")),
            "line 2: unknown key \"link.qdsic\"; did you mean \"qdisc\"?",
        ),
        (
            2,
            run(&file("b", "[[flow]]\ncc = 'qubic'")),
            "line 2: flow.cc: unknown congestion control \"qubic\"",
        ),
        (2, run(&file("c", "[link]\nqdisc = 'fq_coddle'")), "did you mean \"fq_codel\"?"),
        (
            2,
            run(&file("d", "[link]\nrate = '0'")),
            "line 2: link.rate: 0bit is out of bounds; give 1Kbit to 1Tbit",
        ),
        (2, run(&file("e", "duration = '-3s'")), "line 1: duration: \"-3s\" is not a time"),
        (
            2,
            run(&file("f", "warmup = '60s'")),
            "line 1: warmup: 60s of a duration of 40s leave nothing to measure",
        ),
        (
            2,
            run(&file("g", "[link]\nmtu = 500")),
            "line 2: link.mtu: give a whole number from 576 to 65535",
        ),
        (2, option("--qdisc", "fq_coddle"), "--qdisc: qdisc \"fq_coddle\""),
        (
            2,
            [option("--cc", "bbr"), vec!["--cc".into(), "bbr".into()]].concat(),
            "--cc: bbr is given twice; give",
        ),
        (
            2,
            option("--world", "model,model"),
            "--world: model is given twice; give each world once",
        ),
        (2, option("--rate", "0"), "--rate: 0bit is out of bounds; give 1Kbit to 1Tbit"),
        (2, option("--duration", "-1s"), "--duration: \"-1s\" is not a time"),
        (2, option("--rtt", "-5ms"), "--rtt: \"-5ms\" is not a time"),
        (2, option("--duration", "0s"), "--duration: 0ms is out of bounds; give 1ms to 2592000s"),
        (2, option("--cc", "vegas"), "--cc: unknown congestion control \"vegas\""),
        (2, vec!["run".into(), "--json".into(), "--csv".into()], "cannot be used with"),
        (2, option("--seeds", "0"), "0 is not in 1..=1000"),
        (1, vec!["check".into(), file("h", "not json\n")], "line 1: "),
        (2, vec!["check".into()], "required arguments were not provided"),
    ];
    for (status, arguments, message) in cases {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = dualq(&arguments);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {stderr}");
        assert!(
            stderr.starts_with("error: ") && stderr.contains(message),
            "{arguments:?}: {stderr}"
        );
        assert_eq!(stderr.lines().count(), 1, "{arguments:?}: {stderr}");
        assert_eq!(text(&output.stdout), "", "{arguments:?}");
    }
}

/// Who reads a document finds each of its fields in the manual.
#[test]
fn every_field_is_documented() {
    let manual = fs::read_to_string("docs/results.md").unwrap();
    let document =
        json(&["run", "scenarios/coexistence.toml", "--duration", "4s", "--seeds", "2", "--json"]);
    let mut names = BTreeSet::new();
    fields(&document, &mut names);
    assert!(names.len() > 60, "{names:?}");
    for name in names {
        assert!(manual.contains(&format!("`{name}`")), "docs/results.md lacks {name}");
    }
}

/// The names of all fields, but for those that are the user's (`settings`), the scenario's or tc's.
fn fields(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                names.insert(name.clone());
                if !["settings", "scenario", "tc"].contains(&name.as_str()) {
                    fields(value, names);
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| fields(value, names)),
        _ => {}
    }
}
