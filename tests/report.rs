//! What `dualq run` and `dualq report` write into files, as their users see it; and what they say of bad input.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tests_skipped::skipped;

fn dualq(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dualq"));
    command.args(args).current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null());
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Runs what must fail, and takes the one line that says why.
fn failure(status: i32, args: &[&str]) -> String {
    let output = dualq(args);
    let said = text(&output.stderr);
    let errors: Vec<&str> = said.lines().filter(|line| !line.starts_with("note: ")).collect();
    assert_eq!((output.status.code(), errors.len()), (Some(status), 1), "{args:?}: {said}");
    assert_eq!(text(&output.stdout), "", "{args:?}");
    errors[0].to_owned()
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

const SHORT: [&str; 6] = ["--duration", "3s", "--rate", "5mbit", "--cc", "cubic"];

/// Links are followed, what was there keeps its permissions, and what is open already is written to as it is.
#[test]
fn a_file_is_written_where_its_path_leads() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let run = |to: &Path| {
        let output = dualq(
            &[&["run", "--qdisc", "pie", "--report", path(to), "--quiet"], &SHORT[..]].concat(),
        );
        assert!(output.status.success(), "{}", text(&output.stderr));
    };
    fs::write(at("there"), "").unwrap();
    fs::set_permissions(at("there"), fs::Permissions::from_mode(0o600)).unwrap();
    for (link, target) in [("to-there", "there"), ("to-nothing", "made"), ("to-link", "to-there")] {
        symlink(target, at(link)).unwrap();
        run(&at(link));
        assert!(at(link).is_symlink());
    }
    assert_eq!(at("there").metadata().unwrap().permissions().mode() & 0o777, 0o600);
    for name in ["there", "made"] {
        assert!(fs::read_to_string(at(name)).unwrap().starts_with("<!doctype html>"), "{name}");
    }
    for stream in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dualq"));
        command.args(["run", "--qdisc", "pie", "--report", stream, "--quiet"]).args(SHORT);
        let file = fs::File::create(at("stream")).unwrap();
        assert!(command.stdout(file).stdin(Stdio::null()).status().unwrap().success());
        assert!(
            fs::read_to_string(at("stream")).unwrap().starts_with("<!doctype html>"),
            "{stream}"
        );
        fs::remove_file(at("stream")).unwrap();
    }
    assert!(Path::new("/dev/stdout").is_symlink());
    // Of somebody else's, root alone can make one.
    if rustix::process::geteuid().is_root() {
        symlink("there", at("other")).unwrap();
        std::os::unix::fs::lchown(at("other"), Some(65534), None).unwrap();
        let said = failure(
            1,
            &[&["run", "--qdisc", "pie", "--report", path(&at("other"))], &SHORT[..]].concat(),
        );
        assert!(said.ends_with("/other: it is a link of somebody else's"), "{said}");
    }
}

#[test]
fn what_comes_to_nothing_is_said_before() {
    let said = failure(2, &[&["run", "--quiet"], &SHORT[..]].concat());
    assert!(said.contains("--quiet: nothing would come of it"), "{said}");
    // Nor is a name that is no Unicode more than a name.
    let mut command = Command::new(env!("CARGO_BIN_EXE_dualq"));
    let name = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"nm\xff.toml");
    command.args(["run", "--csv", "--json"]).arg(name).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
}

#[test]
fn several_scenarios_in_one_call() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("all.html");
    let scenarios = ["scenarios/narrow-vps.toml", "scenarios/rrul.toml"];
    let more = ["--report", path(&page), "--save", path(folder.path()), "--quiet"];
    let output = dualq(&[&["run"], &scenarios[..], &SHORT, &more].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!((text(&output.stdout), text(&output.stderr)), (String::new(), String::new()));
    for stem in ["narrow-vps", "rrul"] {
        let read =
            |end: &str| fs::read_to_string(folder.path().join(format!("{stem}{end}"))).unwrap();
        let document: Value = serde_json::from_str(&read(".json")).unwrap();
        assert_eq!(document["name"], stem);
        assert_eq!(read(".csv").lines().count(), document["summary"].as_array().unwrap().len() + 1);
        assert!(read("-series.csv").contains(",queue_delay_ms,"));
        // What made it stands in the page.
        let plan =
            fs::read_to_string(format!("{}/scenarios/{stem}.toml", env!("CARGO_MANIFEST_DIR")));
        assert_eq!(document["origin"]["plan"], plan.unwrap());
    }
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("<title>narrow-vps, rrul</title>"));
    let both = dualq(&[&["run"], &scenarios[..], &SHORT].concat());
    let tables = text(&both.stdout);
    assert!(tables.starts_with("narrow-vps: ") && tables.contains("\nrrul: "), "{tables}");
    let refused = failure(2, &[&["run"], &scenarios[..], &SHORT, &["--json"]].concat());
    assert!(refused.contains("--save DIR for a file each"), "{refused}");
}

/// A FIFO of whole aggregates is worth a note; who wants quiet has none.
#[test]
fn scenarios_of_like_names_have_files_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("other")).unwrap();
    let names = ["a-3.toml", "a.toml", "other/a.toml", "other/a-series.toml"];
    for name in names {
        fs::write(at(name), "[link]\nqdisc = 'pfifo'\n[[flow]]\ncc = 'cubic'\ndirection = 'up'\n")
            .unwrap();
    }
    let scenarios = names.map(|name| at(name).display().to_string());
    let scenarios: Vec<&str> = scenarios.iter().map(String::as_str).collect();
    let saved = at("saved");
    let call = [&["run"], &scenarios[..], &SHORT, &["--save", path(&saved)]].concat();
    let output = dualq(&call);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let entries = fs::read_dir(&saved).unwrap();
    assert_eq!(entries.count(), 3 * names.len());
    // What holds of all of them is said once.
    assert_eq!(text(&output.stderr).matches("flows go up").count(), 1);
    assert_eq!(text(&output.stderr).matches("a FIFO's limit").count(), 1);
}

#[test]
fn quiet_is_quiet() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let noted = ["run", "--qdisc", "pfifo", "--report", path(&page)];
    let output = dualq(&[&noted, &SHORT[..]].concat());
    assert!(text(&output.stderr).contains("note: "), "{}", text(&output.stderr));
    let output = dualq(&[&noted, &SHORT[..], &["--quiet"]].concat());
    assert_eq!((text(&output.stdout), text(&output.stderr)), (String::new(), String::new()));
}

/// Who asks for no more has the same document as ever.
#[test]
fn distributions_are_there_if_they_are_asked_for() {
    let run = |more: &[&str]| -> Value {
        let output = dualq(&[&["run", "--json", "--interval", "1s"], &SHORT[..], more].concat());
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let (plain, mut with) = (run(&[]), run(&["--distributions"]));
    assert!(plain.get("origin").is_none());
    let outcome = &mut with["runs"][0]["outcome"];
    let probe = outcome["probe"][0].as_object_mut().unwrap().shift_remove("distribution").unwrap();
    // They are those of the percentiles.
    let at = |share: f64| {
        let number = |value: &Value| value.as_f64().unwrap();
        let shares = probe["share"].as_array().unwrap();
        let step = shares.iter().position(|below| number(below) >= share).unwrap();
        number(&probe["ms"][step])
    };
    let plain_probe = &plain["runs"][0]["outcome"]["probe"][0];
    assert_eq!(Value::from(at(1.0)), plain_probe["max_ms"]);
    assert_eq!(probe["samples"], plain_probe["n"]);
    let queue = outcome["queue"].as_object_mut().unwrap();
    for key in ["distribution", "distribution_not_ect"] {
        assert!(queue.shift_remove(key).is_some(), "{key}");
    }
    outcome["series"].as_object_mut().unwrap().shift_remove("each_goodput_mbit");
    with["runs"][0]["scenario"].as_object_mut().unwrap().shift_remove("distributions");
    let origin = with.as_object_mut().unwrap().shift_remove("origin").unwrap();
    assert!(origin["command"].as_str().unwrap().starts_with("dualq run --json"));
    assert_eq!(with, plain);
}

#[test]
fn bad_input_is_one_line_and_what_was_there_stays() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (good, page) = (at("good.json"), at("page.html"));
    let output = dualq(&[&["run", "--json"], &SHORT[..]].concat());
    fs::write(&good, &output.stdout).unwrap();
    fs::write(&page, "what was there").unwrap();
    let document = text(&output.stdout);
    let bad = at("bad.json");
    let report = |content: &str| {
        fs::write(&bad, content).unwrap();
        let said = failure(1, &["report", path(&good), path(&bad), "-o", path(&page)]);
        assert_eq!(fs::read_to_string(&page).unwrap(), "what was there");
        said
    };
    let newer = report(&document.replacen("\"version\": 1", "\"version\": 2", 1));
    assert!(newer.contains("the document has version 2, and this dualq reads 1"), "{newer}");
    let cut = report(&document[..document.len() / 2]);
    assert!(cut.contains("bad.json: not a result of dualq run --json: EOF"), "{cut}");
    let tampered = report(&document.replacen("\"rate\": \"5Mbit\"", "\"rate\": \"-5Mbit\"", 1));
    assert!(tampered.contains("not a result of dualq run --json"), "{tampered}");
    assert!(report("").contains("is empty"));
    assert!(report("[1, 2]").contains("not a result"));
    let none = failure(1, &["report", path(&at("none.json")), "-o", path(&page)]);
    assert!(none.contains("none.json: No such file"), "{none}");

    let missing = at("missing/page.html");
    let said = failure(1, &["report", path(&good), "-o", path(&missing)]);
    assert!(said.starts_with("error: cannot write") && said.contains("No such file"), "{said}");
    // It is said before anything runs.
    let long = ["run", "--duration", "100000s", "--interval", "1000s", "--save", path(&good)];
    assert!(failure(1, &long).contains("cannot write into"));
    let full = failure(1, &["report", path(&good), "-o", "/dev/full"]);
    assert!(full.contains("cannot write /dev/full: No space left on device"), "{full}");
    let several = failure(
        2,
        &[&["run", "--qdisc", "pie", "--qdisc", "fq", "--flent", "x"], &SHORT[..]].concat(),
    );
    assert!(several.contains("--flent writes one run, and these are 2"), "{several}");
    let one = path(&page);
    let same = failure(2, &[&["run", "--report", one, "--flent", one], &SHORT[..]].concat());
    assert!(same.contains("--report and --flent both go to "), "{same}");
    // What is read stays, by whatever name it is given, and whatever would be written.
    let link = at("link");
    std::os::unix::fs::symlink(&good, &link).unwrap();
    let said = failure(2, &["report", path(&good), "-o", path(&link)]);
    assert!(said.contains("this would overwrite a result"), "{said}");
    let (scenario, trace) = (at("traced.toml"), at("rate.trace"));
    let traced =
        "duration = '2s'\nwarmup = '0s'\n[link]\ntrace = 'rate.trace'\n[[flow]]\ncc = 'cubic'\n";
    fs::write(&scenario, traced).unwrap();
    fs::write(&trace, "1\n2\n3\n").unwrap();
    let read = [&scenario, &trace, &good].map(|path| (path, fs::read(path).unwrap()));
    let reference = at("reference.jsonl");
    fs::write(&reference, "").unwrap();
    for (option, target, says) in [
        ("--report", &scenario, "the scenario"),
        ("--flent", &scenario, "the scenario"),
        ("--events", &trace, "a trace of the scenario"),
        ("--report", &trace, "a trace of the scenario"),
    ] {
        let said = failure(2, &["run", path(&scenario), option, path(target)]);
        assert!(said.ends_with(&format!("this would overwrite {says}")), "{said}");
    }
    let both = ["run", path(&scenario), "--report", "both", "--events", "./both"];
    assert!(
        failure(2, &both)
            .ends_with("--report and --events both go to ./both; give each its own file")
    );
    for (path, bytes) in read {
        assert!(fs::read(path).unwrap() == bytes, "{}", path.display());
    }
    let empty = failure(1, &["check", path(&reference)]);
    assert!(empty.contains("reference.jsonl is empty"), "{empty}");
    let token = at("token");
    fs::write(&token, "0123456789abcdef".repeat(4)).unwrap();
    let token = path(&token);
    let said = failure(2, &["measure", "192.0.2.1", "--token-file", token, "--report", token]);
    assert!(said.ends_with("this would overwrite the token"), "{said}");
    let one_way = [
        "measure",
        "192.0.2.1",
        "--token-file",
        token,
        "--direction",
        "download",
        "--scenario",
        "s.toml",
    ];
    assert!(failure(2, &one_way).contains("a scenario has both ways"));
    let no_flows = at("udp.toml");
    fs::write(&no_flows, "duration = '2s'\nwarmup = '0s'\n[[udp]]\nkind = 'voice'\n").unwrap();
    let flent = at("out.flent.gz");
    let said = failure(1, &["run", path(&no_flows), "--flent", path(&flent)]);
    assert!(said.contains("the scenario has no flows"), "{said}");
    assert!(!flent.exists());
    // Where there is no room for all of it, or nobody may write, the same: in a mount namespace of the test's own.
    let (here, small) = (path(&good), at("small"));
    fs::create_dir(&small).unwrap();
    for (options, says) in
        [("size=16k", "No space left on device"), ("size=1m,ro", "Read-only file system")]
    {
        let script = "mount -t tmpfs none \"$1\" && echo there > \"$1/page.html\" && mount -o remount,$2 \"$1\" && shift 2 && \"$@\"; status=$?; cat small/page.html; ls -A small; exit $status";
        let mut own = Command::new("unshare");
        own.args(["-rm", "sh", "-c", script, "sh", "small", options, env!("CARGO_BIN_EXE_dualq")]);
        own.args(["report", here, "-o", "small/page.html", "--svg", "small"])
            .current_dir(folder.path());
        let output = own.output().unwrap();
        let said = text(&output.stderr);
        if said.contains("unshare") || said.contains("mount:") {
            skipped("no mount namespace of one's own: root, or user namespaces");
            break;
        }
        assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
        assert!(said.contains(says), "{said}");
        assert_eq!(
            text(&output.stdout),
            "there\npage.html\n",
            "what was there stays, and nothing else is left"
        );
    }
    let left = fs::read_dir(folder.path()).unwrap().flatten().map(|file| file.file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().starts_with(".dualq")));
}

/// Documents of one scenario are told apart by their files.
#[test]
fn before_and_after() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (before, after, page) = (at("before.json"), at("after.json"), at("page.html"));
    for file in [&before, &after] {
        fs::write(file, dualq(&[&["run", "--json"], &SHORT[..]].concat()).stdout).unwrap();
    }
    let output = dualq(&["report", path(&before), path(&after), "-o", path(&page)]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = fs::read_to_string(page).unwrap();
    for file in [&before, &after] {
        let label = format!("\"label\":\"unnamed ({}): ", path(file));
        assert_eq!(page.matches(&label).count(), 1, "{label}");
    }
}

/// A folder of documents, as `--save` leaves it, stands for all of them.
#[test]
fn a_folder_of_documents() {
    let folder = tempfile::tempdir().unwrap();
    let (saved, page) = (folder.path().join("saved"), folder.path().join("page.html"));
    let said = failure(1, &["report", path(folder.path()), "-o", path(&page)]);
    assert!(
        said.contains(": no folder of dualq sweep: ")
            && said
                .ends_with("and no JSON document, as `dualq run SCENARIO --save DIR` writes them"),
        "{said}"
    );
    let scenarios = ["run", "narrow-vps", "rrul", "--save", path(&saved), "--quiet"];
    assert!(dualq(&[&scenarios, &SHORT[..]].concat()).status.success());
    let output = dualq(&["report", path(&saved), "-o", path(&page)]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(fs::read_to_string(&page).unwrap().contains("<title>narrow-vps, rrul</title>"));
    let document = saved.join("rrul.json");
    let said = failure(2, &["report", path(&saved), path(&document), "-o", path(&page)]);
    assert!(said.ends_with("rrul.json is given twice; give each result once"), "{said}");
    let said = failure(2, &["report", path(&saved), "-o", path(&document)]);
    assert!(said.contains("this would overwrite a result"), "{said}");
    fs::write(saved.join("a.json"), "{}").unwrap();
    let said = failure(1, &["report", path(&saved), "-o", path(&page)]);
    assert!(said.contains("a.json: not a result of dualq run --json"), "{said}");
}

/// The real flent reads and plots what we write. It exits 0 on errors of its own.
#[test]
fn flent_reads_its_files() {
    let flent = std::env::var("DUALQ_FLENT").unwrap_or_else(|_| "flent".to_owned());
    if Command::new(&flent).arg("--version").output().is_err() {
        assert!(std::env::var_os("DUALQ_REQUIRE_FLENT").is_none(), "no flent");
        return skipped("no flent: pip install flent matplotlib, and DUALQ_FLENT=path/to/flent");
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let up = at("up.toml");
    fs::write(&up, "name = 'up'\n[link]\nrate = '20mbit'\n[link.up]\nrate = '5mbit'\n[[flow]]\ncc = 'cubic'\ncount = 2\ndirection = 'up'\n").unwrap();
    for (scenario, plots, rows) in [
        (
            "scenarios/rrul.toml",
            &["all_scaled", "totals"][..],
            &["TCP upload BE2", "TCP download sum", "Ping (ms) ICMP"][..],
        ),
        (path(&up), &["totals"], &["TCP upload::2", "TCP upload sum", "Ping (ms) ICMP"]),
        (
            "scenarios/ten-flows.toml",
            &["totals"],
            &["TCP download::1", "TCP download sum", "Ping (ms) ICMP"],
        ),
    ] {
        let file = at("out.flent.gz");
        let one = ["--qdisc", "dualpi2", "--duration", "10s", "--quiet", "--flent", path(&file)];
        let output = dualq(&[&["run", scenario], &one[..], &["--cc", "cubic"]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let ask = |args: &[&str]| {
            let output =
                Command::new(&flent).args(args).current_dir(folder.path()).output().unwrap();
            let said = text(&output.stdout) + &text(&output.stderr);
            assert!(!said.contains("ERROR") && !said.contains("Traceback"), "{args:?}: {said}");
            said
        };
        let summary = ask(&["-i", path(&file), "-f", "summary"]);
        for row in rows {
            assert!(summary.contains(row), "{row}: {summary}");
        }
        for plot in plots {
            let picture = at(&format!("{plot}.png"));
            let _ = fs::remove_file(&picture);
            ask(&["-i", path(&file), "-p", plot, "-o", path(&picture)]);
            assert!(fs::metadata(&picture).unwrap().len() > 1000, "{scenario}: {plot}");
        }
    }
}
