//! On a machine of its own: whatever is killed, and whenever the power is cut, what was before is there again.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use dualq_kernel::Store;

use crate::inside::{ROLE, STATE};
use crate::snapshot::files;
use crate::{DUALQ, said, skipped, text};

/// The sequences of the soak, and what they follow from.
const ROUNDS: &str = "200";
const SEED: &str = "DUALQ_SOAK_SEED";

fn possible() -> bool {
    if Store::open().and_then(|store| store.newest()).unwrap().is_none() {
        let why = "no kernel is built; `dualq kernel build` makes one in some minutes";
        assert!(std::env::var_os("DUALQ_REQUIRE_KERNEL").is_none(), "{why}");
        skipped(why);
        return false;
    }
    if !rustix::process::geteuid().is_root() {
        skipped(
            "what the guest writes belongs to its user outside, and records have to belong to root",
        );
        return false;
    }
    if !["/sbin/ip", "/usr/sbin/ip", "/bin/ip"].iter().any(|ip| Path::new(ip).exists()) {
        skipped("there is no program ip");
        return false;
    }
    true
}

/// A folder that stands for /etc, as it may be before a plan.
fn etc() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["sysctl.d", "udev", "udev/rules.d"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    let file = folder.path().join("sysctl.d/90-dualq.conf");
    fs::write(&file, "net.ipv4.tcp_ecn = 2\n").unwrap();
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    // The machine knows whole seconds only.
    let past = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    fs::File::options().write(true).open(&file).unwrap().set_modified(past).unwrap();
    folder
}

/// Runs this program on a machine with this /etc. Another seed is another start of it.
fn run(etc: &Path, role: &str, seed: u32) -> Output {
    let program = std::env::current_exe().unwrap();
    Command::new(DUALQ)
        .args(["kernel", "exec", "--seed", &seed.to_string(), "--etc"])
        .arg(etc)
        .args(["--", "env", &format!("{ROLE}={role}")])
        .arg(program)
        .args(["--ignored", "--exact", "inside::role", "--nocapture"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// The folder of records, seen from outside.
fn state(etc: &Path) -> std::path::PathBuf {
    etc.join(Path::new(STATE).file_name().unwrap())
}

#[test]
fn killed_after_every_step() {
    if !possible() {
        return;
    }
    let etc = etc();
    let before = files(etc.path(), &state(etc.path()));
    let output = run(etc.path(), "sweep", 1);
    assert!(output.status.success(), "{}", said(&output));
    let said = said(&output);
    let line = said.lines().find(|line| line.contains("killed after each step")).unwrap();
    println!("{line}");
    assert_eq!(files(etc.path(), &state(etc.path())), before);
}

#[test]
fn power_cut_after_every_step() {
    if !possible() {
        return;
    }
    let cuts = AtomicU32::new(0);
    for operation in ["Apply", "Confirm", "Rollback"] {
        let (next, done) = (AtomicU32::new(1), Mutex::new(false));
        let work = || {
            while !*done.lock().unwrap() {
                let step = next.fetch_add(1, Ordering::SeqCst);
                if power_cut(operation, step) {
                    cuts.fetch_add(1, Ordering::SeqCst);
                } else {
                    *done.lock().unwrap() = true;
                }
            }
        };
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(work);
            }
        });
    }
    println!("power was cut {} times", cuts.into_inner());
}

/// Whether the operation has that many steps.
fn power_cut(operation: &str, step: u32) -> bool {
    let etc = etc();
    let before = files(etc.path(), &state(etc.path()));
    let output = run(etc.path(), &format!("cut {operation} {step}"), step);
    if output.status.success() {
        return false;
    }
    let what = format!("{operation}, power cut after step {step}");
    let ended = text(&output.stderr);
    assert!(ended.contains("the guest died"), "{what}: {}", said(&output));
    let output = run(etc.path(), "after", 1000 + step);
    assert!(output.status.success(), "{what}: {}", said(&output));
    assert_eq!(files(etc.path(), &state(etc.path())), before, "{what}");
    true
}

/// Two hundred random stories of calls, deaths and waits.
#[test]
fn nothing_is_left_of_two_hundred_sequences() {
    if !possible() {
        return;
    }
    let seed = std::env::var(SEED).unwrap_or_else(|_| "1".to_owned());
    let etc = etc();
    let before = files(etc.path(), &state(etc.path()));
    let output = run(etc.path(), &format!("soak {seed} {ROUNDS}"), 1);
    assert!(output.status.success(), "{}", said(&output));
    let said = said(&output);
    let line = said.lines().find(|line| line.contains("end as they began")).unwrap();
    println!("{line}");
    assert_eq!(files(etc.path(), &state(etc.path())), before);
}

#[test]
fn what_dualq_plans_is_applied() {
    is_taken_back_after("whole");
}

#[test]
fn what_the_kernel_draws_is_as_planned() {
    is_taken_back_after("drawn");
}

#[test]
fn what_arrives_is_not_shared() {
    is_taken_back_after("taken");
}

#[test]
fn what_arrives_is_verified_by_downloads() {
    is_taken_back_after("verified");
}

#[test]
fn below_classes_of_other_kinds() {
    is_taken_back_after("classes");
}

#[test]
fn an_interface_goes_and_comes_back() {
    is_taken_back_after("plugged");
}

fn is_taken_back_after(role: &str) {
    if !possible() {
        return;
    }
    let etc = etc();
    let before = files(etc.path(), &state(etc.path()));
    let output = run(etc.path(), role, 1);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(files(etc.path(), &state(etc.path())), before);
}
