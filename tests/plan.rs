//! `dualq plan` as its users run it, over saved facts of many machines.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const FACTS: &str = "tests/data/facts";

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dualq"));
    command.arg("plan").args(args).current_dir(env!("CARGO_MANIFEST_DIR"));
    // As on a machine where no kernel is built: what is simulated is then the same everywhere.
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command.env("COLUMNS", "100").stdin(Stdio::null());
    command
}

fn plan(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn stdout(args: &[&str]) -> String {
    let output = plan(args);
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// The exit status, and the one line that says why.
fn refusal(args: &[&str]) -> (i32, String) {
    let output = plan(args);
    let line = text(&output.stderr);
    assert_eq!(line.lines().count(), 1, "{args:?}: {line}");
    assert!(output.stdout.is_empty(), "{args:?}");
    (output.status.code().unwrap(), line.trim_end().to_owned())
}

fn facts(name: &str) -> String {
    format!("{FACTS}/{name}")
}

fn names(extension: &str) -> Vec<String> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(FACTS);
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.filter(|path| path.extension().is_some_and(|found| found == extension));
    let name = |path: PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    let mut names: Vec<String> = files.map(name).collect();
    names.sort();
    names
}

/// The changes alone, a line each, or why there are none.
fn brief(facts: &str, requirements: &[&str]) -> String {
    let mut brief = format!("$ dualq plan {}\n", requirements.join(" "));
    let output = plan(&[&["--facts", facts, "--json"], requirements].concat());
    if !output.status.success() {
        brief.push_str(&text(&output.stderr));
        return brief;
    }
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let changes = document["plan"]["change"].as_array();
    for change in changes.into_iter().flatten() {
        let get = |key: &str| change[key].as_str().unwrap_or_default();
        let _ = match get("what") {
            "module" => writeln!(brief, "module {}", get("module")),
            "sysctl" => writeln!(brief, "{} = {}", get("key"), get("after")),
            "qdisc" => writeln!(brief, "{}: {}", get("dev"), get("after")),
            "file" => writeln!(brief, "{}", get("path")),
            "lines" => writeln!(brief, "{}: {}", get("path"), change["after"]),
            what => panic!("{what}"),
        };
    }
    for note in document["plan"]["notes"].as_array().into_iter().flatten() {
        let _ = writeln!(brief, "- {}", note.as_str().unwrap());
    }
    brief
}

const WISHES: [&[&str]; 6] = [
    &[],
    &["--rate", "48mbit", "--cc", "bbr", "--rtt", "60ms"],
    &["--rate", "2mbit", "--profile", "gateway"],
    &["--rate", "900mbit", "--profile", "bulk", "--rtt", "120ms"],
    &["--rate", "900mbit", "--profile", "datacenter"],
    &["--profile", "datacenter"],
];
const WITHOUT_RATES: [&[&str]; 4] =
    [&[], &["--cc", "bbr"], &["--profile", "gateway"], &["--profile", "datacenter"]];

#[test]
fn plans_for_linux() {
    let names = names("json");
    assert!(names.len() >= 7, "{names:?}");
    for name in names {
        let path = facts(&name);
        // What is simulated for rates is much the same everywhere.
        let is_common = ["debian-13", "ubuntu-24.04", "openwrt-24", "linux-7.3"]
            .iter()
            .any(|common| name.starts_with(common));
        let wishes = if is_common { &WISHES[..] } else { &WITHOUT_RATES };
        // Not every machine can.
        let output = plan(&["--facts", &path, "--rate", "16mbit"]);
        let mut all = text(&output.stdout) + &text(&output.stderr);
        for requirements in wishes {
            let _ = write!(all, "\n{}", brief(&path, requirements));
        }
        insta::assert_snapshot!(format!("on_{}", name.trim_end_matches(".json")), all);
    }
}

#[test]
fn downloads_are_planned_for_too() {
    let debian = facts("debian-13.json");
    insta::assert_snapshot!(
        "down",
        stdout(&["--facts", &debian, "--rate", "5mbit", "--down", "20mbit"])
    );
    // Alone, and as it is asked for.
    let only =
        ["--facts", &debian, "--down", "10mbit", "--down-qdisc", "cake ingress bandwidth 9mbit"];
    let (status, error) = refusal(&only);
    assert_eq!((status, error.lines().count()), (2, 1), "{error}");
    let plan = stdout(&["--facts", &debian, "--down", "10mbit", "--down-qdisc", "fq_codel"]);
    assert!(plan.contains("+root htb rate 9500kbit leaf fq_codel"), "{plan}");
}

#[test]
fn plans_for_freebsd() {
    for name in names("sysctl") {
        let path = facts(&name);
        let route = ["--route", "10.4.0.0/16", "--via", "192.0.2.1", "--mtu", "1400"];
        let mut all = stdout(
            &[
                &["--facts", &path, "--os", "freebsd", "--cc", "dctcp", "--rate", "48mbit"],
                &route[..],
            ]
            .concat(),
        );
        for requirements in
            [&["--cc", "cubic"][..], &["--cc", "bbr"], &["--profile", "datacenter"], &[]]
        {
            let _ = write!(all, "\n{}", brief(&path, requirements));
        }
        insta::assert_snapshot!(format!("on_{}", name.trim_end_matches(".sysctl")), all);
    }
}

/// An option without effect would be a promise.
#[test]
fn what_is_for_linux_is_refused_on_freebsd() {
    let freebsd = facts("freebsd-14.sysctl");
    for option in [
        &["--qdisc", "fq_codel"][..],
        &["--parent", "1:10"],
        &["--down", "50mbit"],
        &["--down-qdisc", "cake"],
        &["--offloads"],
        &["--link", "dsl"],
        &["--tunnel"],
        &["--scalable"],
        &["--aim", "fair"],
        &["--state", "/srv/dualq"],
    ] {
        let (status, line) = refusal(&[&["--facts", &freebsd], option].concat());
        let says = format!("error: {} is for Linux: ", option.join(" "));
        let short = format!("error: {} is for Linux: ", option[0]);
        assert!(line.starts_with(&says) || line.starts_with(&short), "{line}");
        assert_eq!(status, 2, "{line}");
    }
    let (status, line) = refusal(&["--facts", &freebsd, "--world", "model"]);
    assert_eq!((status, line.contains("--world: what is simulated")), (2, true), "{line}");
}

/// Facts that somebody shortened have no values to compare with.
#[test]
fn what_facts_of_freebsd_lack_is_told() {
    let path = facts("freebsd-14.sysctl");
    let whole = stdout(&["--facts", &path, "--rate", "1gbit"]);
    assert!(!whole.contains("left out") && whole.contains("maxsockbuf"), "{whole}");
    let text = fs::read_to_string(&path).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with("kern.ipc.maxsockbuf"));
    let short = tempfile::Builder::new().suffix(".sysctl").tempfile().unwrap();
    fs::write(short.path(), lines.collect::<Vec<_>>().join("\n")).unwrap();
    let shown = stdout(&["--facts", short.path().to_str().unwrap(), "--rate", "1gbit", "--json"]);
    assert!(shown.contains("facts do not have these sysctls: kern.ipc.maxsockbuf="), "{shown}");
}

#[test]
fn the_help_teaches_by_examples() {
    insta::assert_snapshot!("help", stdout(&["--help"]));
}

#[test]
fn what_cannot_be_is_refused_in_one_line() {
    let debian = facts("debian-10.json");
    let freebsd = facts("freebsd-14.sysctl");
    let of_debian = |more: &[&str]| refusal(&[&["--facts", &debian], more].concat());
    let refused = |(status, line): (i32, String), expected: i32, says: &str| {
        assert_eq!(status, expected, "{line}");
        assert!(line.starts_with("error: ") && line.contains(says), "{line}");
    };
    refused(
        of_debian(&["--cc", "prague"]),
        2,
        "does not have the congestion control prague; it has bbr",
    );
    refused(of_debian(&["--dev", "eth9"]), 2, "there is no interface eth9; there are ens3");
    refused(of_debian(&["--dev", "lo"]), 2, "what goes by lo leaves no machine");
    refused(of_debian(&["--rate", "99999gbit"]), 2, "--rate: 99999Gbit is out of bounds");
    refused(of_debian(&["--rate", "fast"]), 2, "\"fast\" is not a rate");
    refused(of_debian(&["--rate", "0"]), 2, "--rate is zero");
    refused(of_debian(&["--rtt", "0ms"]), 2, "--rtt");
    refused(of_debian(&["--qdisc", "fq_codel targt 5ms"]), 2, "did you mean \"target\"?");
    refused(of_debian(&["--qdisc", "fq'; reboot"]), 2, "--qdisc");
    refused(of_debian(&["--os", "freebsd"]), 2, "the facts are of Linux, not of FreeBSD");
    refused(of_debian(&["--profile", "fast"]), 2, "low-latency");
    refused(
        of_debian(&["--route", "10.0.0.0/8", "--via", "192.0.2.1", "--mtu", "1400"]),
        2,
        "FreeBSD",
    );
    refused(
        of_debian(&["--rate", "48mbit", "--qdisc", "cake bandwidth 10mbit"]),
        2,
        "give one of them",
    );
    refused(refusal(&["--facts", &freebsd, "--predict", "--rate", "1mbit"]), 2, "Linux's TCP");
    refused(refusal(&["--facts", "no/such/file"]), 1, "no/such/file");
    refused(refusal(&["--facts", "Cargo.toml"]), 1, "Cargo.toml holds no facts");
    let arch = facts("arch.json");
    refused(refusal(&["--facts", &arch, "--rate", "2gbit"]), 2, "more than eno1 can");
    let nobody = facts("ubuntu-20.04.json");
    refused(refusal(&["--facts", &nobody, "--rtt", "9ms", "--predict"]), 2, "give a --rate");
    refused(of_debian(&["--rate", "5"]), 2, "rates have units, such as 48mbit");
    refused(
        of_debian(&["--rate", "ens3=5mbit"]),
        2,
        "--rate ens3=5mbit: the plan is not for \"ens3\": add --dev ens3",
    );
    let of_one = |more: &[&str]| of_debian(&[&["--dev", "ens3"], more].concat());
    refused(of_one(&["--rate", "ens3=5mbit", "--rate", "ens3=6mbit"]), 2, "given twice for ens3");
    refused(of_one(&["--rate", "5mbit", "--rate", "6mbit"]), 2, "--rate is given twice: ");
    refused(
        of_one(&["--rate", "ens3=5mbit", "--rate", "6mbit"]),
        2,
        "--rate 6mbit is for interfaces without one of their own, and ens3 has one",
    );
    refused(of_one(&["--rate", "ens3=fast"]), 2, "--rate ens3: \"fast\" is not a rate");
    refused(of_one(&["--qdisc", "ens3=fq'; reboot"]), 2, "--qdisc");
    refused(of_one(&["--dev", "ens3", "--rate", "5mbit"]), 2, "ens3 is given twice");
    let nothing = "/dev/null";
    refused(of_one(&["--dev", "ens4", "--from", nothing]), 2, "the plan is for several interfaces");
    refused(of_debian(&["--aim", "speed"]), 2, "latency");
    refused(of_debian(&["--json", "-o", "-"]), 2, "both take standard output");
    refused(of_debian(&["--from", "/dev/zero"]), 1, "cannot read /dev/zero: it is no text");
}

/// What `-o` writes is whole, is a plan, and takes the place of nothing but a plan.
#[test]
fn the_plan_as_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.toml");
    let path = path.to_str().unwrap();
    let debian = facts("debian-10.json");
    let args = ["--facts", debian.as_str(), "--rate", "48mbit", "-o", path];
    assert!(stdout(&args).contains(&format!("dualq apply {path}")));
    let first = fs::read_to_string(path).unwrap();
    assert!(first.contains("after = \"cake bandwidth 45600kbit\""), "{first}");
    assert_eq!(stdout(&["--facts", &debian, "--rate", "48mbit", "-o", "-"]), first);

    // Another plan may take its place.
    stdout(&["--facts", &debian, "--rate", "15mbit", "-o", path]);
    assert!(fs::read_to_string(path).unwrap().contains("htb rate 14250kbit leaf fq_codel"));

    fs::write(path, "precious\n").unwrap();
    let (status, line) = refusal(&args);
    assert_eq!(status, 1);
    assert!(line.ends_with("is there and is no plan: it is left as it is"), "{line}");
    assert_eq!(fs::read_to_string(path).unwrap(), "precious\n");

    let (status, _) = refusal(&["--facts", &debian, "-o", "no/such/folder/plan.toml"]);
    assert_eq!(status, 1);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "something was left behind");
}

#[test]
fn facts_from_standard_input() {
    let mut child = command(&["--facts", "-", "--json", "--rate", "16mbit"]);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let saved = fs::read(format!("{}/{FACTS}/arch.json", env!("CARGO_MANIFEST_DIR"))).unwrap();
    child.stdin.take().unwrap().write_all(&saved).unwrap();
    let output = child.wait_with_output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["plan"]["kernel"], "6.17.9-arch1-1");
}

/// The machine that the tests run on can be planned for, whatever it is.
#[test]
fn this_machine() {
    let output = plan(&["--json"]);
    match output.status.code() {
        Some(0) => {
            let document: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(document["plan"]["os"], "linux");
        }
        // It may have no interface, or no route out.
        Some(2) => assert_eq!(text(&output.stderr).lines().count(), 1),
        status => panic!("{status:?}: {}", text(&output.stderr)),
    }
}

/// Where the queue stays as it is, nothing else is shown as chosen.
#[test]
fn what_is_left_is_not_chosen() {
    let mut facts: Value =
        serde_json::from_str(&fs::read_to_string(facts("ubuntu-20.04.json")).unwrap()).unwrap();
    for (kind, state) in facts["qdiscs"].as_object_mut().unwrap() {
        if !["htb", "pfifo", "bfifo", "pfifo_fast", "tbf", "noqueue", "mq"].contains(&kind.as_str())
        {
            *state = "absent".into();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("facts.json");
    fs::write(&path, facts.to_string()).unwrap();
    let args =
        ["--facts", path.to_str().unwrap(), "--rate", "50mbit", "--predict", "--world", "model"];
    let said = stdout(&args);
    assert!(said.contains("stays: this kernel") && !said.contains("\nchosen "), "{said}");
    let document: Value =
        serde_json::from_str(&stdout(&[&args[..], &["--json"]].concat())).unwrap();
    let prediction = &document["predictions"][0];
    assert!(prediction["chosen"].is_null(), "{prediction}");
    let runs = prediction["runs"].as_array().unwrap();
    assert!(!runs.is_empty() && runs.iter().all(|run| run["is_chosen"] == false));
}

/// The model says what the plan would bring: a deep queue now, a short one after, with one flow and with twenty.
#[test]
fn the_prediction() {
    let arch = facts("arch.json");
    let args = [
        "--facts",
        &arch,
        "--rate",
        "15mbit",
        "--rtt",
        "40ms",
        "--predict",
        "--world",
        "model",
        "--json",
    ];
    let document: Value = serde_json::from_str(&stdout(&args)).unwrap();
    let prediction = &document["predictions"][0];
    // With ECN cake has half a percent less goodput, which is just above the 95 % of the most that an aim of latency asks for.
    assert_eq!(prediction["chosen"], "cake bandwidth 14250kbit");
    let runs = prediction["runs"].as_array().unwrap();
    let p99 = |queue: &str, flows: u64| {
        let found = runs
            .iter()
            .find(|run| run["queue"].as_str().unwrap().starts_with(queue) && run["flows"] == flows);
        found.unwrap_or_else(|| panic!("{queue}, {flows}"))["p99_above_base_ms"].as_f64().unwrap()
    };
    for flows in [1, 4, 20] {
        assert!(p99("bfifo limit 1514000", flows) > 100.0);
        assert!(p99("htb rate 14250kbit leaf fq_codel", flows) < 10.0);
        assert!(p99("cake bandwidth 14250kbit", flows) < 10.0);
    }
    assert!(p99("htb rate 14250kbit leaf dualpi2", 4) > p99("htb rate 14250kbit leaf fq_codel", 4));
    let cake = runs.iter().find(|run| run["queue"] == "cake bandwidth 14250kbit").unwrap();
    assert_eq!(cake["world"], "model");
    assert_eq!(cake["scenario"]["link"]["qdisc"], "cake bandwidth 14250kbit");
    assert!(cake["is_chosen"] == true && cake["is_now"] == false);

    // A table for people; who gives no round-trip time is told which was taken.
    let nobody = facts("ubuntu-20.04.json");
    let args = ["--facts", &nobody, "--rate", "15mbit", "--predict", "--world", "model"];
    let shown = stdout(&args);
    for part in [
        "100 ms (assumed; give --rtt)",
        "now     bfifo limit 1514000",
        "chosen  htb rate 14250kbit leaf fq_codel",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // In a narrow terminal no line of the table is broken.
    let narrow = command(&args).env("COLUMNS", "80").output().unwrap();
    let narrow = text(&narrow.stdout);
    let table: Vec<&str> = narrow.lines().filter(|line| line.contains("leaf fq_codel  ")).collect();
    assert!(table.len() >= 2 && table.iter().all(|line| line.chars().count() <= 80), "{narrow}");
    // The plan as a file has the table too, and the same choice without --predict.
    let plan = stdout(&["--facts", &nobody, "--rate", "15mbit", "-o", "-"]);
    assert!(plan.contains("chosen, htb rate 14250kbit leaf fq_codel; "), "{plan}");

    // Twice the same bytes.
    assert_eq!(stdout(&args), shown);
}

/// BBR in a tunnel: the congestion control goes with the queue, and the table shows which of the two cures.
#[test]
fn in_a_tunnel_the_congestion_control_goes_with_the_queue() {
    let mut saved: Value = serde_json::from_str(
        &fs::read_to_string(format!("{}/{FACTS}/arch.json", env!("CARGO_MANIFEST_DIR"))).unwrap(),
    )
    .unwrap();
    saved["sysctls"]["net.ipv4.tcp_congestion_control"] = "bbr".into();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("relay.json");
    fs::write(&path, saved.to_string()).unwrap();
    let path = path.to_str().unwrap();
    let args = [
        "--facts",
        path,
        "--rate",
        "50mbit",
        "--rtt",
        "48ms",
        "--tunnel",
        "--predict",
        "--world",
        "model",
        "--json",
    ];
    let document: Value = serde_json::from_str(&stdout(&args)).unwrap();
    let changes = document["plan"]["change"].as_array().unwrap();
    let line =
        changes.iter().find(|change| change["what"] == "qdisc").unwrap()["after"].as_str().unwrap();
    assert!(line.starts_with("htb rate 47500kbit leaf dualpi2"), "{line}");
    let cc = changes.iter().find(|change| change["key"] == "net.ipv4.tcp_congestion_control");
    assert_eq!(cc.unwrap()["after"], "cubic");
    let runs = document["predictions"][0]["runs"].as_array().unwrap();
    let p99 = |cc: &str| {
        let of = |run: &&Value| run["queue"] == line && run["cc"] == cc && run["flows"] == 4;
        runs.iter().find(of).unwrap()["p99_above_base_ms"].as_f64().unwrap()
    };
    assert!(p99("bbr") > 100.0 && p99("cubic") < 40.0, "{} {}", p99("bbr"), p99("cubic"));
}

/// Without dualpi2, a queue that sees one flow gets what drops early within a flow, which fq does not.
#[test]
fn in_a_tunnel_fq_is_no_choice() {
    let ubuntu = facts("ubuntu-24.04.json");
    let args = ["--facts", &ubuntu, "--rate", "12mbit", "--rtt", "5ms", "--tunnel"];
    let shown = stdout(&args);
    let queue = shown.lines().find(|line| line.starts_with("+root htb rate 11400kbit leaf "));
    let leaf = queue.expect("it is shaped").rsplit(' ').next().unwrap();
    assert!(["pie", "codel", "fq_codel"].contains(&leaf), "{shown}");
    assert!(!shown.contains("neither cake nor fq_codel"), "{shown}");
    // The FIFO of 100 packets that fq is then does better beside twenty flows on so short a path, which is told.
    let all = stdout(&[&args[..], &["--predict"]].concat()).replace("\n    ", " ");
    assert!(all.contains("leaf fq is better") && all.contains("a FIFO of 100 packets"), "{all}");
}

/// Twenty transfers start 50 ms apart, which on fast links is longer than the packets of a trial take.
#[test]
fn fast_links_have_plans_too() {
    let debian = facts("debian-10.json");
    for rate in ["2gbit", "25gbit"] {
        let shown = stdout(&["--facts", &debian, "--rate", rate, "--rtt", "1ms"]);
        assert!(shown.contains("the worst of 1, 4 and 20 large transfers"), "{shown}");
    }
}

/// That ssh shares a queue of fq_codel with a transfer is chance, and cake's sets keep them apart: no seed decides.
#[test]
fn chance_does_not_decide() {
    let arch = facts("arch.json");
    let shown = stdout(&["--facts", &arch, "--rate", "400mbit", "--rtt", "21ms"]);
    assert!(!shown.starts_with("worse than now"), "{shown}");
    assert!(shown.contains("+root cake bandwidth 380mbit"), "{shown}");
}

/// A rate in bytes is tc's word, and a trap.
#[test]
fn bytes_are_told_from_bits() {
    let debian = facts("debian-10.json");
    let shown = stdout(&["--facts", &debian, "--rate", "6mbps"]);
    assert!(shown.contains("6mbps is 48Mbit in tc's words"), "{shown}");
}

/// Whoever asks for a queue that is worse than what is there is told so first.
#[test]
fn worse_than_now_is_the_first_line() {
    let debian = facts("debian-12.json");
    // Four BBR flows keep their own queue where nothing drops; dualpi2 and pie drop, and they do not listen.
    let args =
        ["--facts", &debian, "--rate", "50mbit", "--rtt", "48ms", "--qdisc", "pie", "--cc", "bbr"];
    let shown = stdout(&args);
    assert!(shown.starts_with("worse than now in the simulation"), "{shown}");
    let plan = stdout(&[&args[..], &["-o", "-"]].concat());
    assert!(plan.contains("about = \"worse than now in the simulation"), "{plan}");
}
