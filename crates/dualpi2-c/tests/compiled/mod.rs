//! What it takes to compile an example and link it with the library.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tests_skipped::skipped;

/// The compiler to use, if it is there.
pub(crate) fn compiler(variable: &str, default: &str) -> Option<String> {
    let name = env::var(variable).unwrap_or_else(|_| default.to_owned());
    let found = Command::new(&name)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !found {
        skipped(&format!("there is no compiler {name:?} (set {variable} to name another)"));
    }
    found.then_some(name)
}

pub(crate) fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("include")
}

pub(crate) fn scratch() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

pub(crate) fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// The library of that ending, `a` or `so`, built as this test was. Cargo builds it for a test only in passing and under a
/// name of its own, so cargo is asked for it, and tells where it is.
pub(crate) fn library(ending: &str) -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--message-format=json", "--lib", "--manifest-path"]);
    cargo.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"));
    cargo.arg("--target-dir").arg(scratch().parent().unwrap());
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    succeed(&mut cargo)
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|message| message["target"]["name"] == "dualpi2_c")
        .flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default())
        .filter_map(|file| file.as_str().map(PathBuf::from))
        .find(|file| file.extension().is_some_and(|extension| extension == ending))
        .expect("cargo built the library")
}
