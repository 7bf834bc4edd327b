//! What a newcomer sees first: `dualq` alone, its help, the shipped scenarios, completions, pages of the manual.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tests_skipped::skipped;

const DUALQ: &str = env!("CARGO_BIN_EXE_dualq");

fn dualq(folder: &Path, args: &[&str]) -> Output {
    Command::new(DUALQ).args(args).current_dir(folder).output().unwrap()
}

fn stdout(args: &[&str]) -> String {
    let output = dualq(Path::new("."), args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The one line that is said, and the exit status.
fn refused(folder: &Path, args: &[&str]) -> (String, Option<i32>) {
    let output = dualq(folder, args);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.stdout.len(), said.lines().count()), (0, 1), "{args:?}: {said}");
    (said, output.status.code())
}

#[test]
fn it_says_what_it_can_do_and_for_whom() {
    insta::assert_snapshot!("welcome", stdout(&[]));
    insta::assert_snapshot!("help", stdout(&["--help"]));
    insta::assert_snapshot!("examples", stdout(&["examples"]));
    assert!(stdout(&[]).lines().count() <= 12);
    // All that it names is there.
    for line in stdout(&[]).lines().filter(|line| line.starts_with("  dualq ")) {
        let command = line.split_whitespace().nth(1).unwrap();
        assert!(stdout(&[command, "--help"]).contains("Usage: dualq"), "{line}");
    }
}

#[test]
fn shipped_scenarios_are_wherever_the_program_is() {
    let folder = tempfile::tempdir().unwrap();
    let shipped = fs::read_to_string("scenarios/web.toml").unwrap();
    assert_eq!(stdout(&["examples", "web"]), shipped);
    let short = ["--duration", "2s", "--csv", "--no-progress"];
    let inside = dualq(folder.path(), &[&["run", "rrul"], &short[..]].concat());
    let from_file = dualq(Path::new("."), &[&["run", "scenarios/rrul.toml"], &short[..]].concat());
    assert!(inside.status.success() && inside.stdout == from_file.stdout);

    // What needs another file has that inside too.
    for command in
        [&["run", "lte"][..], &["sweep", "lte", "--folder", "runs", "--vary", "link.rtt=20ms,40ms"]]
    {
        let shown = dualq(folder.path(), &[command, &["--csv", "--no-progress"]].concat());
        assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
    }
    // It is copied with it, and nothing else is written over.
    assert!(dualq(folder.path(), &["examples", "lte", "--copy", "."]).status.success());
    let run = dualq(folder.path(), &["run", "lte.toml", "--duration", "2s", "--no-progress"]);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert!(dualq(folder.path(), &["examples", "--copy", "."]).status.success());
    fs::write(folder.path().join("web.toml"), "mine").unwrap();
    let (said, status) = refused(folder.path(), &["examples", "--copy", "."]);
    assert!(said.contains("web.toml is there and is something else") && status == Some(1));
    // A file goes before what is shipped under its name.
    fs::write(folder.path().join("web"), "nothing = 1").unwrap();
    let (said, _) = refused(folder.path(), &["run", "web"]);
    assert!(said.contains("nothing"), "{said}");
}

#[test]
fn a_word_is_looked_for_in_the_documents() {
    assert!(stdout(&["help", "fq_codel"]).starts_with("What it is says: dualq explain fq_codel\n"));
    assert!(stdout(&["help", "narrow-vps"]).contains("dualq examples narrow-vps"));
    let said = stdout(&["help", "black", "hole"]);
    assert!(
        said.contains("\nmtu.md: ") && said.contains("One of these documents: dualq help "),
        "{said}"
    );
    // A document is printed whole.
    for name in ["measure-protocol", "measure.md", "docs/measure.md", "MTU.md"] {
        assert!(stdout(&["help", name]).starts_with("# "), "{name}");
    }
    assert!(
        stdout(&["help", "recipe"])
            .ends_with("\nIt is a shipped scenario: dualq examples recipe\n")
    );
}

/// A command is a command, whatever options are typed behind it, and its help says where more is.
#[test]
fn help_is_of_commands_too() {
    for words in [&["measure"][..], &["measure", "--rate"], &["--", "measure"]] {
        let said = stdout(&[&["help"], words].concat());
        assert!(said.contains("Usage: dualq measure"), "{words:?}");
        assert!(said.ends_with("\nMore: dualq help measure.md\n"), "{words:?}");
        assert_eq!(said, stdout(&["measure", "--help"]));
    }
    assert!(stdout(&["help", "kernel", "build"]).contains("Usage: dualq kernel build"));
    assert!(stdout(&["run", "--help"]).ends_with("\nMore: dualq help scenario.md\n"));
    assert_eq!(stdout(&["help"]), stdout(&["--help"]));
    for words in [&["help", "help"][..], &["help", "-h"]] {
        assert!(stdout(words).contains("Usage: dualq help [WORD]..."), "{words:?}");
    }
}

/// Of an option which commands have it, and what it does there.
#[test]
fn help_is_of_options_too() {
    for option in ["--rate", "--rate=50mbit"] {
        let said = stdout(&["help", option]);
        assert!(said.contains("\n  doctor     The rate of the bottleneck"), "{said}");
        assert!(said.contains("\n  plan     ") && !said.contains("\n  explain"), "{said}");
    }
    assert!(stdout(&["help", "-o"]).contains("\n  report  The HTML file to write"));
    // Commands have commands.
    assert!(stdout(&["help", "--etc"]).contains("\n  kernel exec  A folder to be /etc"));
    let (said, status) = refused(Path::new("."), &["help", "--rtae"]);
    assert!(said.contains("no command has an option --rtae; did you mean \"--rate\"?"), "{said}");
    assert_eq!(status, Some(2));
}

/// Not what is a part of other words, and a sentence of each place.
#[test]
fn words_are_found_whole() {
    for (word, others) in [("red", ["shared", "measured"]), ("pie", ["fq_pie:", "copied"])] {
        let said = stdout(&["help", word]);
        let first = said.lines().find(|line| line.contains(".md: ")).unwrap();
        assert!(!others.iter().any(|other| first.contains(other)), "{first}");
        assert!(first.contains(&format!(": {word}: ")), "{first}");
    }
    assert!(!stdout(&["help", "ack"]).contains("packages.md: "));
    let said = stdout(&["help", "black", "hole"]);
    assert!(said.contains("larger\n    packets vanish: a black hole.\n"), "{said}");
    // What says what it is comes first: a row of a table, not the titles above.
    for (word, is) in [
        ("jitter", "\nfigures.md: Figures\n    PROBE RTT | jitter | ms | the standard deviation"),
        ("RPM", "\nmeasure.md: What is measured\n    RPM | round trips per minute"),
        (
            "goodput",
            "\nfigures.md: Figures\n    goodput | Mbits/sec | Mbit/s | payload that was ack",
        ),
    ] {
        let said = format!("\n{}", stdout(&["help", word]));
        assert!(said.starts_with(is), "{word}: {said}");
    }
    // Where nothing has it whole, its parts do.
    assert!(stdout(&["help", "acknowledgem"]).contains("acknowledgement"));
}

#[test]
fn typing_errors_have_an_answer() {
    let here = Path::new(".");
    let answers: [(&[&str], &str, i32); 35] = [
        (&["help", "buferbloated"], "no command is called \"buferbloated\"", 2),
        (&["examples", "narow-vps"], "did you mean \"narrow-vps\"?", 2),
        (&["run", "narow-vps"], "did you mean \"narrow-vps\"?", 1),
        (&["run", "elsewhere/web.toml"], "`dualq run web` has the shipped one", 1),
        (&["mesure", "x"], "did you mean \"measure\"? dualq --help lists", 2),
        (&["plna"], "'plna'; did you mean \"plan\"? dualq --help lists", 2),
        (&["version"], "'version'; dualq --version prints it", 2),
        (&["run", "--bogus"], "; see dualq run --help", 2),
        (&["run", "nosuch"], "; `dualq examples` lists the shipped scenarios", 1),
        (&["run", "NARROW-VPS"], "did you mean \"narrow-vps\"?", 1),
        (&["examples", "narrow-vps.toml"], "did you mean \"narrow-vps\"?", 2),
        (&["explain", "BBR"], "did you mean \"bbr\"?", 2),
        (&["explain", "bbr", "foo"], "bbr is a congestion control, which takes no options", 2),
        (&["explain", "tcp_notsent_lowat"], "`dualq help tcp_notsent_lowat`", 2),
        (&["plan", "--link", "dls"], "did you mean \"dsl\"? see dualq plan --help", 2),
        (
            &["plan", "--from", "/dev/null"],
            "--from /dev/null: it is empty; `dualq measure --json`",
            1,
        ),
        (
            &["report", "/dev/null", "-o", "x.html"],
            "/dev/null is empty; `dualq run SCENARIO --save DIR`",
            1,
        ),
        (&["report", "/dev/zero", "-o", "x.html"], "cannot read /dev/zero: it is no text", 1),
        (&["report", "-", "-", "-o", "x.html"], "- is given twice; give each result once", 2),
        (&["check", "/dev/zero"], "cannot read /dev/zero: it is no text", 1),
        (&["diff", "/dev/zero"], "cannot read /dev/zero: it is no text", 1),
        (
            &["sweep", "--show", "--folder", "nowhere"],
            "--folder nowhere: there is no such folder",
            1,
        ),
        (&["apply", "nowhere.toml"], "; `dualq plan -o nowhere.toml` makes one", 1),
        (&["apply", "my plän.toml"], "; `dualq plan -o 'my plän.toml'` makes one", 1),
        (
            &["apply", "--dry-run", "README.md"],
            "README.md is no plan, which `dualq plan -o plan.toml` makes",
            2,
        ),
        (&["watch", "nosuch0"], "no device \"nosuch0\" in this network namespace; there are lo", 1),
        (&["doctor", "--rate", "50mbit", "--rtt", "48ms"], "--rtt 48ms: it is for --recipe", 2),
        (&["module", "status", "--root", "nowhere"], "--root nowhere: there is no such folder", 2),
        (&["check", "README.md"], "README.md: line 1: it is no recorded run, {\"scenario\": ", 1),
        (
            &["run", "tests/data/facts/arch.json"],
            "arch.json: it is JSON, and a scenario is TOML; `dualq report` takes results",
            2,
        ),
        (&["run", "--cc", "cubic,bbr"], "; several are given one by one: --cc cubic --cc bbr", 2),
        (
            &["run", "--qdisc", "dualpi2 target 5ms,pie"],
            "; several are given one by one: --qdisc 'dualpi2 target 5ms' --qdisc pie",
            2,
        ),
        (&["run", "--rate", "10mbit,20mbit"], "one by one: --rate 10mbit --rate 20mbit", 2),
        (&["watch", "--for", "10"], "it is 10ms to 366 days; 10 is 10 microseconds, for a bare", 2),
        (&["help", "fq_coddel"], "did you mean \"fq_codel\"?", 2),
    ];
    for (args, what, wanted) in answers {
        let (said, status) = refused(here, args);
        assert!(said.contains(what) && status == Some(wanted), "{args:?}: {status:?} {said}");
    }
}

/// As bash asks when somebody presses Tab behind these words.
fn completed(line: &str) -> Vec<String> {
    let script = format!(
        r#"source <("{DUALQ}" completions bash); PATH=$(dirname "{DUALQ}"):$PATH
        COMP_WORDS=({line}); [[ "{line}" == *' ' ]] && COMP_WORDS+=('')
        COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        _dualq dualq "${{COMP_WORDS[$COMP_CWORD]}}"
        printf '%s\n' "${{COMPREPLY[@]}}""#
    );
    let output = Command::new("bash").args(["-c", &script]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.is_empty(), "{said}");
    String::from_utf8(output.stdout).unwrap().lines().map(|word| word.trim().to_owned()).collect()
}

#[test]
fn a_shell_completes_what_is_there() {
    assert_eq!(completed("dualq exa"), ["examples"]);
    assert_eq!(completed("dualq run narrow-v"), ["narrow-vps"]);
    assert_eq!(completed("dualq run --qdisc dualp"), ["dualpi2"]);
    assert_eq!(completed("dualq run --cc bbr"), ["bbr", "bbr3"]);
    assert_eq!(completed("dualq run --world "), ["model", "kernel", "live"]);
    for (begun, left) in [("model,", &["kernel", "live"][..]), ("kernel,model,l", &["live"])] {
        let before = begun.trim_end_matches('l');
        let whole = |word: &&str| format!("{before}{word}");
        assert_eq!(
            completed(&format!("dualq run --world {begun}")),
            left.iter().map(whole).collect::<Vec<_>>()
        );
    }
    assert_eq!(completed("dualq sweep --world = model,k"), ["model,kernel"]);
    assert_eq!(completed("dualq measure --direction up"), ["upload"]);
    assert_eq!(completed("dualq explain pra"), ["prague"]);
    assert_eq!(completed("dualq plan --pre"), ["--predict"]);
    assert_eq!(completed("dualq plan --down-qdisc fq_pi"), ["fq_pie"]);
    assert_eq!(completed("dualq verify dualp"), ["dualpi2"]);
    assert_eq!(completed("dualq measure --cc dc"), ["dctcp"]);
    assert_eq!(completed("dualq watch l"), ["lo"]);
    assert_eq!(completed("dualq help mtu."), ["mtu.md"]);
    assert_eq!(completed("dualq help confi"), ["confirm"]);
    // As bash cuts `--qdisc=dualp`.
    assert_eq!(completed("dualq run --qdisc = dualp"), ["dualpi2"]);
    assert_eq!(completed("dualq run --cc ="), ["reno", "cubic", "dctcp", "bbr", "bbr3", "prague"]);
    assert_eq!(completed(r"dualq run --qdisc \'dualpi2\ tar"), ["dualpi2 target"]);
    // Files too, where a file is what is asked for.
    assert!(completed("dualq run scenarios/na").contains(&"scenarios/narrow-vps.toml".to_owned()));
    for (shell, word) in [("zsh", "#compdef dualq"), ("fish", "complete "), ("nushell", "extern")] {
        assert!(stdout(&["completions", shell]).contains(word), "{shell}");
    }
}

/// For compinit a file `_dualq` is the body of the function that the first Tab calls.
#[test]
fn zsh_completes_at_the_first_tab() {
    if Command::new("zsh").arg("--version").output().is_err() {
        return skipped("there is no zsh");
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("_dualq"), stdout(&["completions", "zsh"])).unwrap();
    // What compinit has, and what shows words.
    let script = format!(
        r#"compdef() {{ : }}; _describe() {{ print -l ${{(P)argv[-1]}} }}
        path=("{}" $path); fpath=("{}"); autoload _dualq
        words=(dualq exa); CURRENT=2; _dualq"#,
        Path::new(DUALQ).parent().unwrap().display(),
        folder.path().display()
    );
    let output = Command::new("zsh").args(["-fc", &script]).output().unwrap();
    let (shown, said) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(shown.starts_with("examples") && shown.lines().count() == 1, "{shown} {said}");
}

#[test]
fn each_command_has_a_page_of_the_manual() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    stdout(&["man", &pages.display().to_string()]);
    for command in ["dualq", "dualq-run", "dualq-plan", "dualq-kernel-build", "dualq-examples"] {
        let page = fs::read_to_string(pages.join(format!("{command}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS"), "{page}");
    }
    let page = fs::read_to_string(pages.join("dualq-run.1")).unwrap();
    // Examples are as they are typed, and a footer says of which version it is.
    assert!(page.contains(".EX\n  dualq run narrow\\-vps \\-\\-seeds 5\n"), "{page}");
    assert!(page.contains(".SH EXAMPLES\n") && !page.contains("EXTRA"), "{page}");
    assert!(page.contains(concat!("\"dualq ", env!("CARGO_PKG_VERSION"), "\"")), "{page}");
    assert!(page.contains(".SH \"SEE ALSO\"\ndualq(1), dualq\\-sweep(1), "), "{page}");
    assert_eq!(page.matches(".ds Aq").count(), 2, "{page}");
    let first = fs::read_to_string(pages.join("dualq.1")).unwrap();
    assert!(first.contains(".SS \"Find out\"\n.TP\n\\fBdualq\\-doctor\\fR(1)\n"), "{first}");
    assert_eq!(stdout(&["man"]), first);
    let hidden = ["dualq-regret.1", "dualq-on-boot.1", "dualq-watch-over.1", "dualq-put-back.1"];
    assert!(hidden.iter().all(|page| !pages.join(page).exists()));
}

/// Where there is no room for all pages, in a mount namespace of the test's own, there is none of them.
#[test]
fn pages_are_there_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("small")).unwrap();
    let script = "mount -t tmpfs -o size=32k none small && \"$1\" man small; status=$?; ls -A small; exit $status";
    let mut own = Command::new("unshare");
    own.args(["-rm", "sh", "-c", script, "sh", DUALQ]).current_dir(folder.path());
    let output = own.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("unshare") || said.contains("mount:") {
        return skipped("no mount namespace of one's own: root, or user namespaces");
    }
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    assert!(said.contains("small/dualq") && said.contains("No space left on device"), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
}

#[test]
fn scripts_say_how_they_are_called() {
    let called = |script: &str, option: &str| {
        let output = Command::new(script).arg(option).output().unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        (said, output.status.code())
    };
    for entry in fs::read_dir("packaging").unwrap().flatten() {
        let path = entry.path();
        if path.extension().is_none() {
            let (said, status) = called(&path.display().to_string(), "--help");
            assert!(
                said.contains(&*path.to_string_lossy()) && status == Some(0),
                "{path:?}: {said}"
            );
            assert!(!said.contains("common.sh"), "{said}");
        }
    }
    let (said, status) = called("python/build", "--foo");
    assert!(said.starts_with("error: --foo is no option\nBuilds the wheel"), "{said}");
    assert_eq!(status, Some(2));
}

/// Each crate with the features that it is compiled with.
fn crates(args: &[&str]) -> BTreeSet<String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["tree", "--locked", "--offline", "--prefix", "none", "--format", "{p} {f}"])
        .args(args);
    let output = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // What it has said before it marks.
    String::from_utf8(output.stdout).unwrap().lines().map(|line| line.replace(" (*)", "")).collect()
}

/// Else most of the workspace is compiled a second time when the README's second command follows its first, and what runs the tests
/// beside them.
#[test]
fn the_tests_take_what_the_program_has_compiled() {
    let tests = crates(&["--workspace", "--edges", "normal,build,dev"]);
    for (package, least) in [("dualq", 100), ("all-tests", 5)] {
        let program = crates(&["--package", package, "--edges", "normal,build"]);
        let again: Vec<_> = program.difference(&tests).collect();
        assert!(
            again.is_empty(),
            "in tests these have other features; name them in Cargo.toml's [dependencies] of {package} too: {again:?}"
        );
        assert!(program.len() > least);
    }
}

/// Before any kernel is asked for.
#[test]
fn a_file_of_scenarios_that_is_none_is_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drawn.jsonl");
    let drawn = stdout(&["draw", "exact", "--count", "2"]);
    for (text, more, wanted) in [
        ("", &[][..], "drawn.jsonl has no scenario at all"),
        ("\n{\"scenario\":", &[], "drawn.jsonl: line 2: EOF"),
        (&drawn, &["--name", "exact-7"], "drawn.jsonl has no scenario exact-7"),
    ] {
        fs::write(&path, text).unwrap();
        let (said, status) = refused(folder.path(), &[&["diff", "drawn.jsonl"], more].concat());
        assert!(said.contains(wanted) && status == Some(2), "{said}");
    }
}

/// Names of what is drawn are unique, and no number of them ends in a lack of memory.
#[test]
fn classes_are_drawn_once_and_in_numbers_that_fit() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    assert_eq!(stdout(&["draw", "udp", "udp", "--count", "2"]).lines().count(), 2);
    for count in ["0", "10001", "99999999999"] {
        let (said, status) = refused(here, &["draw", "udp", "--count", count]);
        assert!(said.contains("is not in 1..=10000") && status == Some(2), "{said}");
    }
    let help = stdout(&["draw", "--help"]).split_whitespace().collect::<Vec<_>>().join(" ");
    for line in stdout(&["draw", "--count", "1"]).lines() {
        let name = line.split('"').nth(5).unwrap();
        let class = name.rsplit_once('-').unwrap().0;
        assert!(
            help.contains(&format!("{class}, ")) || help.contains(&format!("{class};")),
            "{class}"
        );
    }
}
