//! What a newcomer sees first: `dualq` alone, its help, the shipped scenarios, completions, pages of the manual.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

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

    // What needs another file is copied with it, and nothing else is written over.
    let (said, status) = refused(folder.path(), &["run", "lte"]);
    assert!(said.contains("dualq examples lte --copy .") && status == Some(1), "{said}");
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
    // By its heading before all others.
    for name in ["measure-protocol", "measure.md", "docs/measure.md"] {
        assert!(stdout(&["help", name]).starts_with("# "), "{name}");
    }
    // A command is a command.
    assert!(stdout(&["help", "measure"]).contains("Usage: dualq measure"));
}

#[test]
fn typing_errors_have_an_answer() {
    let here = Path::new(".");
    let answers: [(&[&str], &str, i32); 6] = [
        (&["help", "buferbloated"], "no command is called \"buferbloated\"", 2),
        (&["examples", "narow-vps"], "did you mean \"narrow-vps\"?", 2),
        (&["run", "narow-vps"], "did you mean \"narrow-vps\"?", 1),
        (&["run", "elsewhere/web.toml"], "`dualq run web` has the shipped one", 1),
        (&["mesure", "x"], "'measure'", 2),
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
        _clap_complete_dualq dualq "${{COMP_WORDS[$COMP_CWORD]}}"
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
    assert_eq!(completed("dualq explain pra"), ["prague"]);
    assert_eq!(completed("dualq plan --pre"), ["--predict"]);
    // Files too, where a file is what is asked for.
    assert!(completed("dualq run scenarios/na").contains(&"scenarios/narrow-vps.toml".to_owned()));
    for (shell, word) in [("zsh", "#compdef dualq"), ("fish", "complete "), ("nushell", "extern")] {
        assert!(stdout(&["completions", shell]).contains(word), "{shell}");
    }
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
    let hidden = ["dualq-regret.1", "dualq-on-boot.1", "dualq-watch-over.1", "dualq-put-back.1"];
    assert!(hidden.iter().all(|page| !pages.join(page).exists()));
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

/// Else most of the workspace is compiled a second time when the README's second command follows its first.
#[test]
fn the_tests_take_what_the_program_has_compiled() {
    let program = crates(&["--package", "dualq", "--edges", "normal,build"]);
    let tests = crates(&["--workspace", "--edges", "normal,build,dev"]);
    let again: Vec<_> = program.difference(&tests).collect();
    assert!(
        again.is_empty(),
        "in tests these have other features; name them in Cargo.toml's [dependencies] too: {again:?}"
    );
    assert!(program.len() > 100);
}
