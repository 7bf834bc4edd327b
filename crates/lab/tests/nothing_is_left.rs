//! Whoever runs scenarios live in one process, such as one of many seeds, has no more threads and namespaces afterwards than before.
#![cfg(target_os = "linux")]

use std::fs;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use dualq_lab::{LabError, Where};
use dualq_namespace::Namespace;
use dualq_scenario::{Algorithm, FlowGroup, Scenario, Setup};

/// The kernel takes its time to remove a namespace, but less than it takes to give up a connection whose other end is gone.
const PATIENCE: Duration = Duration::from_secs(20);
/// The kernel lets a user namespace have so many network namespaces, which is a way to count them: one is the test's.
const MOST: usize = 40;
const MOST_SETTING: &str = "/proc/sys/user/max_net_namespaces";

fn threads() -> usize {
    fs::read_dir("/proc/self/task").expect("it is there").count()
}

/// How many namespaces can still be made.
fn room() -> usize {
    std::iter::from_fn(|| Namespace::create().ok()).collect::<Vec<_>>().len()
}

fn is_soon(what: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    loop {
        if what() {
            return true;
        }
        if begun.elapsed() > PATIENCE {
            return false;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn live_runs_leave_no_threads_and_no_namespaces() {
    if let Err(error) = fs::File::options().read(true).write(true).open("/dev/net/tun") {
        return tests_skipped::skipped(&format!("/dev/net/tun: {error}"));
    }
    let most = fs::read_to_string(MOST_SETTING).expect("it is there");
    if most.trim() != MOST.to_string() {
        return tests_skipped::again_as_root(&format!("echo {MOST} > {MOST_SETTING}"));
    }
    let before = threads();
    let slow = FlowGroup {
        count: 4,
        // Asleep when all is over.
        read_interval: Some(Duration::from_secs(9)),
        ..FlowGroup::of(Algorithm::Cubic)
    };
    let fast = FlowGroup { count: 4, ..FlowGroup::of(Algorithm::Cubic) };
    let setup = Setup {
        duration: Duration::from_millis(1500),
        warmup: Duration::from_millis(500),
        flow: vec![fast, slow],
        ..Setup::default()
    };
    let scenario = Scenario::try_from(setup).expect("it makes sense");
    let outcome = dualq_lab::run(Where::Live, &scenario, 1, &mut |_| ControlFlow::Continue(()));
    let outcome = outcome.expect("it runs");
    assert!(outcome.flow.iter().all(|flow| flow.total_mbit > 0.0), "{outcome:?}");
    assert_eq!(threads(), before);
    // Nor does one that somebody ends.
    let ended = dualq_lab::run(Where::Live, &scenario, 1, &mut |_| ControlFlow::Break(()));
    assert!(matches!(ended, Err(LabError::Interrupted)), "{ended:?}");
    assert_eq!(threads(), before);
    assert!(is_soon(|| room() == MOST - 1), "namespaces stay");
}
