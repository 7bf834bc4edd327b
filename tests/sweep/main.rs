//! `dualq sweep` and `dualq tune` as their users run them: interrupted, killed, shared, in parts; and what they say of bad input.

mod endings;
mod shown;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// Runs of these take some milliseconds each.
const SMALL: [&str; 8] = [
    "--vary",
    "duration=4s",
    "--vary",
    "warmup=1s",
    "--vary",
    "link.qdisc=fq_codel",
    "--vary",
    "flow.0.cc=cubic",
];

/// Twelve runs.
const TWELVE: [&str; 4] = ["--vary", "link.rate=2mbit,4mbit,8mbit", "--seeds", "4"];

fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dualq"));
    command.args(args).current_dir(folder).stdin(Stdio::null());
    command
}

fn dualq(folder: &Path, args: &[&str]) -> Output {
    command(folder, args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What a call prints that goes well.
fn well(folder: &Path, args: &[&str]) -> String {
    let output = dualq(folder, args);
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Runs what must fail, and takes the one line that says why.
fn failure(folder: &Path, status: i32, args: &[&str]) -> String {
    let output = dualq(folder, args);
    let said = text(&output.stderr);
    let errors: Vec<&str> = said.lines().filter(|line| !line.starts_with("note: ")).collect();
    assert_eq!((output.status.code(), errors.len()), (Some(status), 1), "{args:?}: {said}");
    errors[0].to_owned()
}

fn sweep<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [&["sweep"], &SMALL[..], args].concat()
}

fn begun(folder: &Path, args: &[&str]) -> Child {
    command(folder, args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The files of all runs that are there.
fn points(folder: &Path) -> Vec<PathBuf> {
    let Ok(inside) = fs::read_dir(folder.join("points")) else { return Vec::new() };
    let files = inside.flatten().filter_map(|entry| fs::read_dir(entry.path()).ok()).flatten();
    files.flatten().map(|entry| entry.path()).collect()
}

/// Waits until so many runs are there.
fn wait_for(folder: &Path, count: usize) {
    let begun = std::time::Instant::now();
    while points(folder).len() < count {
        assert!(begun.elapsed().as_secs() < 120, "it never got there");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

/// The document of a folder, without the words of the call that made it.
fn document(at: &Path, folder: &str) -> Value {
    let said = well(at, &["sweep", "--show", "--json", "--folder", folder]);
    let mut document: Value = serde_json::from_str(&said).unwrap();
    document["origin"]["command"].take();
    document
}
