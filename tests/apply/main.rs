//! `dualq apply`, `confirm`, `rollback` and `status`, for real: in network and mount namespaces of this machine, and on a machine
//! of its own with a kernel that has `sch_dualpi2`, where processes are killed and power is cut at every step. What is missing
//! for that (root, a kernel, a program) is said, and the test does nothing; if `DUALQ_REQUIRE_KERNEL` is set, a missing kernel
//! fails.
#![cfg(target_os = "linux")]

mod changes;
mod classes;
mod guest;
mod hostile;
mod inside;
mod namespaces;
mod room;
mod routes;
mod several;
mod snapshot;
mod soak;
mod trust;
mod watchdog;

use std::fs;
use std::process::Output;

use dualq_host::Plan;
use dualq_host::facts::Os;
use dualq_host::plan::{Aim, Change, FORMAT, Mode, Offload, What};
pub(crate) use tests_skipped::skipped;

pub(crate) const DUALQ: &str = env!("CARGO_BIN_EXE_dualq");

/// A plan for the kernel that runs here.
pub(crate) fn plan(changes: impl IntoIterator<Item = What>) -> Plan {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap().trim().to_owned();
    let change = |what| Change { why: "a test".to_owned(), source: "no one".to_owned(), what };
    Plan {
        format: FORMAT,
        about: "a plan for tests".to_owned(),
        os: Os::Linux,
        kernel,
        aim: Aim::default(),
        evidence: Vec::new(),
        notes: Vec::new(),
        changes: changes.into_iter().map(change).collect(),
    }
}

pub(crate) fn sysctl(key: &str, before: &str, after: &str) -> What {
    What::Sysctl { key: key.to_owned(), before: before.to_owned(), after: after.to_owned() }
}

pub(crate) fn qdisc(dev: &str, before: &str, after: &str) -> What {
    What::Qdisc {
        dev: dev.to_owned(),
        before: vec![before.to_owned()],
        after: after.parse().unwrap(),
        each: false,
        parent: None,
    }
}

pub(crate) fn ingress(dev: &str, ifb: &str, after: &str) -> What {
    What::Ingress { dev: dev.to_owned(), ifb: ifb.to_owned(), after: after.parse().unwrap() }
}

pub(crate) fn offload(dev: &str, key: Offload, before: &str, after: &str) -> What {
    What::Offload { dev: dev.to_owned(), key, before: before.to_owned(), after: after.to_owned() }
}

pub(crate) fn file(path: &str, before: Option<&str>, after: &str) -> What {
    What::File {
        path: path.to_owned(),
        before: before.map(str::to_owned),
        after: after.to_owned(),
        mode: Mode::READ,
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a call says, all of it.
pub(crate) fn said(output: &Output) -> String {
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}
