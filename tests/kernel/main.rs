//! The world `kernel` as its users run it. Where no kernel was built, each test says that it was skipped and how to get one, or
//! fails if `DUALQ_REQUIRE_KERNEL` is set.

mod agreement;
mod captures;
mod doctor;
mod endings;
mod exec;
mod live;
mod missing;
mod own_tree;
mod path;
mod regret;
mod run;
mod sysctls;
mod watch;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use dualq_kernel::{Kernel, Store};
use serde_json::Value;
pub(crate) use tests_skipped::skipped;

/// How long what was killed may need to be gone, on a machine with much else to do.
const MOMENT: Duration = Duration::from_secs(60);

/// The kernel that is used by default, or none, which is said.
pub(crate) fn kernel() -> Option<Kernel> {
    let kernel = Store::open().and_then(|store| store.newest()).unwrap();
    if kernel.is_none() {
        let why = "no kernel is built; `dualq kernel build` makes one in some minutes";
        assert!(std::env::var_os("DUALQ_REQUIRE_KERNEL").is_none(), "{why}");
        skipped(why);
    }
    kernel
}

pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dualq"));
    command.args(args).current_dir(env!("CARGO_MANIFEST_DIR"));
    // Whoever runs the tests may have a terminal of another width.
    command.env("COLUMNS", "100").stdin(Stdio::null());
    command
}

pub(crate) fn dualq(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

pub(crate) fn stdout(args: &[&str]) -> String {
    let output = dualq(args);
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

pub(crate) fn json(args: &[&str]) -> Value {
    serde_json::from_str(&stdout(args)).unwrap()
}

/// The line for the user: an error is one line, and all that is on standard error.
pub(crate) fn error(output: &Output) -> String {
    let line = text(&output.stderr);
    assert_eq!(line.lines().count(), 1, "{line}");
    assert!(line.starts_with("error: "), "{line}");
    line
}

/// Waits until nothing works below a folder any more, and nothing is in it.
pub(crate) fn assert_nothing_left(folder: &Path) {
    let deadline = Instant::now() + MOMENT;
    loop {
        let processes = processes_below(folder);
        let files: Vec<PathBuf> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        if processes.is_empty() && files.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "left behind: {processes:?} {files:?}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// The processes whose current directory is below a folder, also if it is gone: a guest's kernel works in the guest's folder, and
/// so do the processes in which it runs the guest's programs.
pub(crate) fn processes_below(folder: &Path) -> Vec<String> {
    let folder = fs::canonicalize(folder).unwrap();
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    processes
        .filter(|process| {
            // What ended, or belongs to somebody else, has none.
            fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(&folder))
        })
        .map(|process| {
            let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
            format!("{} {}", process.display(), name.trim())
        })
        .collect()
}
