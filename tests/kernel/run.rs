//! `dualq run` and `dualq check` in the world `kernel`.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{command, json, kernel, stdout, text};

/// Some seconds of a narrow link, whose AQM drops at random.
const SHORT: [&str; 12] = [
    "run",
    "--rate",
    "10mbit",
    "--rtt",
    "20ms",
    "--qdisc",
    "dualpi2",
    "--cc",
    "cubic",
    "--duration",
    "5s",
    "--no-progress",
];

/// Reference scenarios of different kinds, of those that take the least time.
const REFERENCES: [(&str, &str); 5] = [
    ("linux-7.3/coexistence.jsonl", "coexistence-1"),
    ("linux-7.3/loss.jsonl", "loss-17"),
    ("linux-7.3/lossy-lan.jsonl", "lossy-lan-1"),
    ("linux-7.3/narrow.jsonl", "narrow-16"),
    ("linux-7.3/narrow.jsonl", "narrow-24"),
];

/// Scenarios in which no figure tells the model from Linux, of different disciplines, numbers of flows and congestion controls.
const TWINS: [(&str, &str); 6] = [
    ("linux-7.3/coexistence.jsonl", "coexistence-8"),
    ("world-kernel/beside.jsonl", "beside-8"),
    ("world-kernel/loss.jsonl", "loss-9"),
    ("world-kernel/several.jsonl", "several-27"),
    ("world-kernel/single.jsonl", "single-7"),
    ("world-kernel/single.jsonl", "single-20"),
];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    SHORT.iter().chain(more).copied().collect()
}

/// What CUBIC with Accurate ECN knows of its marks, packets and bytes, and what it falls back to where its receiver has less
/// (`tcp_ecn` of 3 beside 3, 1 and 0): in the kernel as in the model.
#[test]
fn accurate_ecn_is_agreed_on_and_counts_as_in_the_kernel() {
    if kernel().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("accurate.toml");
    for (granted, agreed) in [("\"accurate\"", 1), ("true", 0), ("false", 0)] {
        let scenario = format!(
            "duration = '10s'\nwarmup = '2s'\n[link]\nrate = '20mbit'\nrtt = '20ms'\nqdisc = 'fq_codel'\n\
             [sender]\ngso = false\n[receiver]\necn = {granted}\n[[flow]]\ncc = 'cubic'\necn = 'accurate'\n"
        );
        std::fs::write(&path, scenario).unwrap();
        let [model, kernel] = ["model", "kernel"].map(|world| {
            let args = ["run", path.to_str().unwrap(), "--world", world, "--json", "--no-progress"];
            json(&args)["runs"][0]["outcome"]["flow"][0].clone()
        });
        assert_eq!(model["accurate_ecn"]["agreed"], agreed, "{granted}");
        let number = |of: &Value, key: &str| of[key].as_f64().unwrap();
        for world in [&model, &kernel] {
            // Without ECN the queue drops instead.
            assert_eq!(number(world, "ce_marks") > 0.0, granted != "false", "{granted}");
            assert_eq!(number(world, "retransmits") > 0.0, granted == "false", "{granted}");
        }
        let counts = |of: &Value| of["accurate_ecn"].as_object().unwrap().clone();
        for (key, kernel) in counts(&kernel) {
            let (model, kernel) = (number(&model["accurate_ecn"], &key), kernel.as_f64().unwrap());
            // The last packets of the run are counted or not, and a mark is a chance.
            let near = (model - kernel).abs() <= 3.0f64.max(0.01 * kernel) || key.contains("ce");
            assert!(near, "{granted}, {key}: {model} in the model, {kernel} in the kernel");
            assert!((model - kernel).abs() <= 0.2 * kernel.max(15.0), "{key}: {model}, {kernel}");
        }
    }
}

#[test]
fn both_worlds_are_in_one_table() {
    let Some(kernel) = kernel() else { return };
    let table = stdout(&with(&["--world", "model,kernel"]));
    let mut lines = table.lines().skip_while(|line| !line.contains("Mbits/sec"));
    let [title, model, real, apart] = [(); 4].map(|()| lines.next().unwrap());
    // All of them stand below each other, though only the first of a run names its setting.
    let worlds = title.find("world").unwrap();
    for (line, world) in [(model, "model "), (real, "kernel "), (apart, "apart ")] {
        assert!(line[worlds..].starts_with(world), "{table}");
    }
    let figure = |line: &str| {
        let figure = line[worlds..].split_whitespace().nth(1).unwrap().trim_end_matches('%');
        figure.parse::<f64>().unwrap_or_else(|error| panic!("{figure}: {error}"))
    };
    assert!(figure(model) > 5.0 && figure(real) > 5.0, "{table}");
    let expected = 100.0 * (figure(real) - figure(model)) / figure(model);
    assert!((figure(apart) - expected).abs() < 1.0, "{expected} {table}");
    assert!(
        table.contains(&format!("The world kernel is Linux {} in virtual time.", kernel.title()))
    );
}

/// The names of all that a document says, lists without their numbers.
fn keys(value: &Value, at: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let at = format!("{at}/{name}");
                keys(member, &at, found);
                found.insert(at);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| keys(value, at, found)),
        _ => {}
    }
}

#[test]
fn both_worlds_give_the_same_document() {
    let Some(kernel) = kernel() else { return };
    let document = json(&with(&["--world", "model,kernel", "--seed", "3", "--json"]));
    let [model, real] = document["runs"].as_array().unwrap().as_slice() else {
        panic!("{document:#}");
    };
    assert_eq!((&model["world"], &real["world"]), (&"model".into(), &"kernel".into()));
    assert_eq!((&model["seed"], &real["seed"]), (&3.into(), &3.into()));
    assert_eq!((&model["kernel"], &real["kernel"]), (&Value::Null, &kernel.title().into()));
    assert_eq!(model["scenario"], real["scenario"]);
    let [in_model, in_kernel] = [model, real].map(|run| {
        let mut found = BTreeSet::new();
        keys(&run["outcome"], "", &mut found);
        found
    });
    assert_eq!(in_model, in_kernel);
    assert!(in_model.contains("/queue/tc/prob"), "{in_model:?}");
    for (at, list) in document["runs"][0]["outcome"]["series"].as_object().unwrap() {
        let real = &real["outcome"]["series"][at];
        assert_eq!(list.as_array().map(Vec::len), real.as_array().map(Vec::len), "{at}");
    }
}

/// Another folder, another way to the program, another time: the same bytes. Another seed: others.
#[test]
fn runs_repeat() {
    if kernel().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = folder.path().join("another name");
    symlink(env!("CARGO_BIN_EXE_dualq"), &elsewhere).unwrap();
    let document = |program: &Path, directory: &Path, seed: &str| {
        let mut command = Command::new(program);
        command.args(with(&["--world", "kernel", "--json", "--seed", seed]));
        command.current_dir(directory).env("TMPDIR", directory).stdin(Stdio::null());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let temporary = tempfile::tempdir().unwrap();
    let one = command(&with(&["--world", "kernel", "--json", "--seed", "1"])).output().unwrap();
    let one = text(&one.stdout);
    assert!(one.contains("goodput_mbit"), "{one}");
    let program = fs::canonicalize(env!("CARGO_BIN_EXE_dualq")).unwrap();
    assert_eq!(one, document(&program, temporary.path(), "1"), "in another folder");
    assert_eq!(one, document(&elsewhere, folder.path(), "1"), "through a link");
    let outcome =
        |text: &str| serde_json::from_str::<Value>(text).unwrap()["runs"][0]["outcome"].clone();
    assert_ne!(outcome(&one), outcome(&document(&program, temporary.path(), "2")), "another seed");
}

/// Writes these scenarios of the reference files into a file of their own.
fn chosen(folder: &Path, references: &[(&str, &str)]) -> String {
    let chosen = folder.join("chosen.jsonl");
    let mut lines = String::new();
    for (file, name) in references {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(file);
        let text = fs::read_to_string(path).unwrap();
        let named =
            |line: &&str| serde_json::from_str::<Value>(line).unwrap()["scenario"]["name"] == *name;
        lines.push_str(text.lines().find(named).unwrap());
        lines.push('\n');
    }
    fs::write(&chosen, lines).unwrap();
    chosen.to_str().unwrap().to_owned()
}

/// A few of the recorded runs, in this world. `dualq check --world kernel` with all of them takes minutes. These are
/// none in which a single event decides: on another build of the kernel, seeds mean other runs.
#[test]
fn recorded_runs_are_repeated() {
    if kernel().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let chosen = chosen(folder.path(), &REFERENCES);
    let document = json(&["check", &chosen, "--world", "kernel", "--json", "--no-progress"]);
    assert_eq!(document["world"], "kernel");
    let runs = document["runs"].as_array().unwrap();
    assert_eq!(runs.len(), REFERENCES.len(), "{document:#}");
    for run in runs {
        assert_eq!(run["agrees"], true, "{run:#}");
    }
}

/// Every figure of the outcome, in both worlds, with three seeds in each.
#[test]
fn twins_stay_twins() {
    if kernel().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let chosen = chosen(folder.path(), &TWINS);
    let twin = ["check", &chosen, "--twin", "--seeds", "3", "--json", "--no-progress"];
    let document = json(&twin);
    let runs = document["runs"].as_array().unwrap();
    assert_eq!(runs.len(), TWINS.len(), "{document:#}");
    for run in runs {
        assert!(run["figures"].as_array().unwrap().len() > 10, "{run:#}");
        assert_eq!(run["twin"], true, "{run:#}");
    }
}

/// How marks are echoed is a matter of each connection: a DCTCP flow to come changes nothing for the CUBIC flow before it.
/// And who is stopped has completed nothing, in either world.
#[test]
fn dctcps_receiver_is_that_of_its_own_flows() {
    if kernel().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.toml");
    let outcomes = |late: &str| {
        let plan = format!(
            "duration = '6s'\nwarmup = '1s'\ninterval = '250ms'\n\
             [link]\nrate = '20mbit'\nrtt = '10ms'\n\
             [[flow]]\ncc = 'cubic'\necn = true\nstop = '5.8s'\n\
             [[flow]]\ncc = '{late}'\necn = true\nstart = '5.5s'\n"
        );
        fs::write(&path, plan).unwrap();
        let worlds = ["run", path.to_str().unwrap(), "--world", "model,kernel", "--json"];
        let document = json(&[&worlds[..], &["--no-progress"]].concat());
        let runs = document["runs"].as_array().unwrap().iter();
        runs.map(|run| run["outcome"].clone()).collect::<Vec<_>>()
    };
    let (dctcp, reno) = (outcomes("dctcp"), outcomes("reno"));
    for (world, (with_dctcp, with_reno)) in dctcp.iter().zip(&reno).enumerate() {
        let before = |outcome: &Value| {
            let series = outcome["series"]["goodput_mbit"][0].as_array().unwrap();
            series[..21].to_vec()
        };
        assert!(with_dctcp["flow"][0]["ce_marks"].as_u64().unwrap() > 0, "nothing to echo");
        assert_eq!(before(with_dctcp), before(with_reno), "world {world}");
        assert_eq!(with_dctcp["flow"][0]["completion_s"][0], Value::Null, "world {world}");
        assert_eq!(with_dctcp["flow"][1]["completion_s"][0], Value::Null, "world {world}");
    }
}

/// What starts together, is farther away or changes does so in either world.
#[test]
fn spacing_distance_and_steps_are_those_of_linux() {
    if kernel().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.toml");
    let plan = "duration = '8s'\nwarmup = '1s'\n[link]\nrate = '20mbit'\nrtt = '20ms'\nqdisc = 'bfifo limit 100000'\n\
                [[link.step]]\nat = '4s'\nrate = '5mbit'\n[[link.step]]\nat = '6s'\nrate = '10mbit'\n\
                [[flow]]\ncc = 'cubic'\nstart = '2s'\n\
                [[flow]]\ncc = 'reno'\ncount = 4\nspacing = '0ms'\nsize = '30kb'\nstart = '100ms'\n\
                [[flow]]\ncc = 'reno'\nsize = '30kb'\nstart = '1s'\nextra_rtt = '30ms'\n";
    fs::write(&path, plan).unwrap();
    let worlds = ["run", path.to_str().unwrap(), "--world", "model,kernel", "--json"];
    let document = json(&[&worlds[..], &["--no-progress"]].concat());
    let [model, linux] = [0, 1].map(|run| &document["runs"][run]["outcome"]);
    let figures = |outcome: &Value, pointer: &str| -> Vec<f64> {
        let list = outcome.pointer(pointer).and_then(Value::as_array).expect("figures");
        list.iter().map(|figure| figure.as_f64().expect("a figure")).collect()
    };
    for (pointer, apart) in [
        ("/flow/1/completion_s", 0.002),
        ("/flow/2/completion_s", 0.002),
        ("/flow/2/srtt_ms", 1.0),
        // Mbit/s, a second each.
        ("/series/goodput_mbit/0", 1.0),
    ] {
        let (model, linux) = (figures(model, pointer), figures(linux, pointer));
        assert_eq!(model.len(), linux.len());
        for (model, linux) in model.iter().zip(&linux) {
            assert!((model - linux).abs() <= apart, "{pointer}: {model} here, {linux} on Linux");
        }
    }
    let far = figures(linux, "/flow/2/completion_s")[0];
    // The handshake, three windows, and the longer way.
    assert!((0.150..0.230).contains(&far), "{far}");
}

/// The model takes these for the same; so they must be on Linux.
#[test]
fn limits_at_the_senders_change_nothing() {
    if kernel().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.toml");
    let plan = "duration = '3s'\nwarmup = '1s'\n[link]\nrate = '50mbit'\nrtt = '10ms'\n\
                [sender]\nqdisc = ['pfifo', 'pfifo limit 1', 'bfifo limit 9000', 'fq nopacing', 'fq', 'fq quantum 1514']\n\
                [[flow]]\ncc = 'cubic'\ncount = 2\n[[flow]]\ncc = 'bbr'\n";
    fs::write(&path, plan).unwrap();
    let worlds = ["run", path.to_str().unwrap(), "--world", "kernel", "--json", "--no-progress"];
    let document = json(&worlds);
    let outcomes: Vec<&Value> =
        document["runs"].as_array().unwrap().iter().map(|run| &run["outcome"]).collect();
    for same in &outcomes[1..4] {
        assert_eq!(outcomes[0], *same);
    }
    assert_ne!(outcomes[0], outcomes[4], "pacing");
    assert_eq!(outcomes[4], outcomes[5]);
}

/// Two packets of a flow do not hold what it sends: that is no matter of the bottleneck, and said wherever figures are.
#[test]
fn limits_of_the_machine_are_told() {
    if kernel().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [plan, reference] = ["plan.toml", "reference.jsonl"].map(|name| folder.path().join(name));
    let text = "duration = '3s'\nwarmup = '1s'\n[link]\nrate = '500mbit'\nrtt = '20ms'\n\
                [sender]\nqdisc = ['fq flow_limit 2', 'fq']\n\
                [[flow]]\ncc = 'cubic'\ncount = 3\n";
    fs::write(&plan, text).unwrap();
    let run = ["run", plan.to_str().unwrap(), "--world", "kernel", "--no-progress"];
    let table = stdout(&run);
    let told: Vec<&str> = table.lines().filter(|line| line.contains("limit: ")).collect();
    let [line] = told.as_slice() else { panic!("{table}") };
    assert!(line.starts_with("fq flow_limit 2: limit: sender 0: packets were dropped"), "{line}");
    let document = json(&[&run[..], &["--json"]].concat());
    let outcome = |number: usize| &document["runs"][number]["outcome"];
    let limit = &outcome(0)["limits"][0];
    assert_eq!((&limit["at"], &limit["counter"]), (&"sender 0".into(), &"fq dropped".into()));
    assert!(limit["count"].as_u64().unwrap() > 0, "{limit}");
    assert_eq!(outcome(1)["limits"], Value::Array(Vec::new()));

    let scenario = &document["runs"][0]["scenario"];
    let line = serde_json::json!({ "scenario": scenario, "runs": [outcome(0)] });
    fs::write(&reference, line.to_string()).unwrap();
    let check = ["check", reference.to_str().unwrap(), "--seeds", "1", "--world", "kernel"];
    let said = stdout(&[&check[..], &["--no-progress"]].concat());
    assert!(said.contains("\n  limit: sender 0: packets were dropped by the queue"), "{said}");
    let checked = json(&[&check[..], &["--no-progress", "--json"]].concat());
    assert_eq!(checked["runs"][0]["limits"].as_array().unwrap().len(), 1, "{checked:#}");
}
