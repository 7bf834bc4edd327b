//! `dualq explain` as its user runs it, and the page of the docs that is made of the same tables.

use std::fmt::Write as _;
use std::process::{Command, Output};

use dualq_qdisc::about::Explained;
use dualq_qdisc::grammar::KINDS;
use dualq_tcp::Algorithm;
use serde_json::Value;

fn explain(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dualq")).arg("explain").args(arguments).output().unwrap()
}

fn stdout(arguments: &[&str]) -> String {
    let output = explain(arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&stdout(&[arguments, &["--json"]].concat())).unwrap()
}

#[test]
fn values_given_stand_beside_the_defaults() {
    let text = stdout(&["fq_codel target 2ms noecn"]);
    insta::assert_snapshot!(text);
    // Without quotes it is the same.
    assert_eq!(stdout(&["fq_codel", "target", "2ms", "noecn"]), text);
}

#[test]
fn a_congestion_control() {
    insta::assert_snapshot!(stdout(&["prague"]));
}

#[test]
fn the_list() {
    insta::assert_snapshot!(stdout(&[]));
    let listed = json(&[]);
    assert_eq!(listed.as_array().unwrap().len(), KINDS.len() + Algorithm::ALL.len());
}

#[test]
fn what_is_inside_is_explained_too() {
    let explained = json(&["htb rate 50mbit leaf dualpi2 target 5ms"]);
    assert_eq!(explained["name"], "htb");
    let leaf = &explained["leaf"];
    assert_eq!(leaf["name"], "dualpi2");
    let target = leaf["parameters"].as_array().unwrap();
    let target = target.iter().find(|parameter| parameter["words"][0] == "target").unwrap();
    assert_eq!((&target["given"], &target["default"]), (&"5ms".into(), &"15ms".into()));
}

#[test]
fn typos_are_refused_with_a_suggestion() {
    for (line, suggestion) in [
        ("dualpi", "did you mean \"dualpi2\"?"),
        ("pragu", "did you mean \"prague\"?"),
        ("fq_codel tarket 2ms", "did you mean \"target\"?"),
    ] {
        let output = explain(&[line]);
        assert_eq!(output.status.code(), Some(2));
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(suggestion) && error.lines().count() == 1, "{error}");
    }
}

/// The page, as the tables say.
fn page() -> String {
    let mut page = String::from(
        "# Queue disciplines and congestion controls\n\n\
         Made from the tables in the code (`crates/qdisc/src/kinds/*/about.rs`, `ABOUT` in `crates/tcp/src/cc/`); a test keeps it as these\n\
         say. `dualq explain NAME` says the same, with the values of a line: `dualq explain fq_codel target 2ms`. Defaults are on an\n\
         Ethernet device with an MTU of 1500 bytes.\n\n## Queue disciplines\n",
    );
    for kind in KINDS {
        let Explained { about, parameters, .. } = Explained::kind(kind).unwrap();
        let _ = write!(page, "\n### {kind}: {}\n\n{}\n\n", about.title, about.what);
        if !parameters.is_empty() {
            page.push_str("| option | default | what it does |\n|---|---|---|\n");
        }
        for valued in &parameters {
            let parameter = valued.parameter;
            let words = parameter.words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>();
            let value = match parameter.expected() {
                "" => String::new(),
                value => format!("; {value}"),
            };
            let (words, default) = (words.join(", "), &valued.default);
            let _ = writeln!(page, "| {words} | {default} | {}{value} |", parameter.does);
        }
        if !parameters.is_empty() {
            page.push('\n');
        }
        let _ = writeln!(page, "- **Acts on.** {}", about.acts_on);
        let _ = writeln!(page, "- **Source.** {}", about.source);
        let _ = writeln!(page, "- **Not for.** {}", about.not_for);
    }
    page.push_str("\n## Congestion controls\n\nTheir constants are no options of a flow.\n");
    for control in Algorithm::ALL {
        let about = control.about().unwrap();
        let _ = write!(page, "\n### {}: {}\n\n{}\n\n", control.name(), about.title, about.what);
        if !about.constants.is_empty() {
            page.push_str("| constant | value | what it does |\n|---|---|---|\n");
        }
        for constant in about.constants {
            let value = (constant.value)();
            let _ = writeln!(page, "| `{}` | {value} | {} |", constant.name, constant.does);
        }
        if !about.constants.is_empty() {
            page.push('\n');
        }
        let _ = writeln!(page, "- **Reacts to.** {}", about.reacts_to);
        let _ = writeln!(page, "- **Source.** {}", about.source);
        let _ = writeln!(page, "- **Not for.** {}", about.not_for);
    }
    page
}

#[test]
fn the_page_is_as_the_code_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/queues-and-controls.md");
    if std::env::var_os("DUALQ_BLESS").is_some() {
        std::fs::write(path, page()).unwrap();
    }
    let there = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(there, page(), "DUALQ_BLESS=1 cargo test -p dualq --test explain writes it anew");
}
