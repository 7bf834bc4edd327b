//! `dualq shell` as its user runs it. Where namespaces or TUN are not to be had, tests say so and do nothing.

mod ends;
mod far;
mod leftovers;
mod settings;
mod verify;
mod watched;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A call of `dualq shell` whose sockets are in a folder of the test's own.
fn shell(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dualq"));
    command.arg("shell").args(args).stdin(Stdio::null());
    command.env("XDG_RUNTIME_DIR", folder).env_remove("DUALQ_SHELL");
    command
}

/// What came of one, and its two texts.
fn run(args: &[&str]) -> (Output, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let output = shell(folder.path(), args).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(sockets(folder.path()), Vec::<PathBuf>::new());
    (output, stdout, stderr)
}

/// The sockets that are in the folder of a test.
fn sockets(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder.join("dualq")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Whether shells can be opened here; says why if not.
fn able() -> bool {
    tests_skipped::can_open_links(env!("CARGO_BIN_EXE_dualq"))
}
