//! `dualq measure` and `dualq serve` as their users run them, across links of dualq's own. Where namespaces or TUN are not to be had, tests
//! say so and do nothing.

mod clock;
mod faults;
mod handshakes;
mod hops;
mod links;
mod marks;
#[allow(dead_code, reason = "of the middle there is more to choose from than is of use here")]
#[path = "../mtu/network.rs"]
mod network;
mod others;
mod program;
mod serve;
mod sizes;
#[path = "../mtu/switch.rs"]
mod switch;
mod working;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use dualq_measure::Measurement;
use tests_skipped::skipped;

const DUALQ: &str = env!("CARGO_BIN_EXE_dualq");

/// A folder with a token in it.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, format!("{}\n", "5e".repeat(32))).unwrap();
    std::fs::set_permissions(token, Permissions::from_mode(0o600)).unwrap();
    folder
}

/// What came of a call of dualq in a folder: its output, and both texts.
fn dualq(folder: &Path, args: &[&str]) -> (Output, String, String) {
    let mut command = Command::new(DUALQ);
    command.args(args).current_dir(folder).stdin(Stdio::null());
    command.env("XDG_RUNTIME_DIR", folder).env_remove("DUALQ_SHELL");
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    (output, stdout, stderr)
}

/// Measures across a link; `link` are the options of `dualq shell`, `options` those of `dualq measure`.
fn across(link: &[&str], options: &str) -> Measurement {
    let folder = folder();
    let (output, stdout, stderr) = dualq(folder.path(), &line(link, &measuring(options)));
    assert!(output.status.success(), "{stderr}");
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}"))
}

/// The command at the near end, once the server at the far end listens. All kernels have Reno, and let everybody use it.
fn measuring(options: &str) -> String {
    format!(
        "until echo 2>/dev/null >/dev/tcp/$FAR/9332; do sleep 0.05; done; \
         exec {DUALQ} measure $FAR --token-file token --no-progress --json --cc reno --streams 4 {options}"
    )
}

/// The arguments of a `dualq shell` with a server at the far end.
fn line<'a>(link: &[&'a str], near: &'a str) -> Vec<&'a str> {
    static FAR: OnceLock<String> = OnceLock::new();
    let far = FAR.get_or_init(|| format!("exec {DUALQ} serve --token-file token"));
    [&["shell", "--quiet"], link, &["--far", far, "--", "bash", "-c", near]].concat()
}

/// Runs that test on a machine of its own, in virtual time, whose kernel has everything and whose settings are nobody's: of `what` there is nothing here.
fn anew_in_guest(test: &str, what: &str) {
    if is_guest() {
        return skipped(&format!("this kernel has no {what}"));
    }
    let mut command = Command::new(DUALQ);
    command.args(["kernel", "exec", "--", "env", "DUALQ_IN_GUEST=1"]);
    command.arg(std::env::current_exe().unwrap()).args(["--exact", test, "--nocapture"]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let [said, why] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    if why.contains("there is no kernel yet") {
        return skipped(&format!("neither is there {what} here nor is another kernel built"));
    }
    assert!(output.status.success(), "{said}{why}");
    assert!(said.contains("1 passed") && !said.contains("skipped: "), "{said}{why}");
    print!("{said}");
}

/// Whether this is such a machine.
fn is_guest() -> bool {
    std::env::var_os("DUALQ_IN_GUEST").is_some()
}

/// Whether links can be opened here; says why if not.
fn able() -> bool {
    tests_skipped::can_open_links(DUALQ)
}
