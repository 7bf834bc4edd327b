//! Any calls in any order, with deaths and waits between them.

use std::fs;
use std::thread;
use std::time::Duration;

use dualq_host::apply::Phase;
use dualq_netlink::{Handle, Netlink, Place};
use dualq_qdisc::{Random as _, SplitMix64};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::inside::{LINE, Operation, PLAN, assert_same, begin, dualq, host, phase, victim};
use crate::said;

/// Does everything in any order, and ends everything at any time.
pub(crate) fn run(seed: u64, rounds: u32) {
    let fresh = begin();
    let mut random = SplitMix64::new(seed);
    let (mut below, mut deaths, mut calls) = (move |most: u32| random.next_u32() % most, 0, 0);
    for round in 0..rounds {
        let mut story = Vec::new();
        for _ in 0..=below(6) {
            let choice = below(10);
            calls += 1;
            match choice {
                0..=2 => {
                    let operation = [Operation::Apply, Operation::Confirm, Operation::Rollback]
                        [choice as usize];
                    let step = 1 + below(40);
                    story.push(format!("{operation:?} killed at {step}"));
                    deaths += u32::from(attempt(operation, step));
                }
                3 => {
                    let seconds = below(90);
                    story.push(format!("wait {seconds} s"));
                    thread::sleep(Duration::from_secs(seconds.into()));
                }
                4 => {
                    story.push("the watchdog is killed".to_owned());
                    deaths += kill_watchdogs();
                }
                5..=8 => {
                    let words: &[&str] =
                        [&["apply", PLAN][..], &["confirm"], &["rollback"], &["status"]]
                            [choice as usize - 5];
                    let output = dualq(words);
                    story.push(format!("{words:?}: {}", said(&output)));
                    assert!(output.status.code().is_some_and(|code| code < 2), "{story:#?}");
                }
                _ => {
                    story.push("on-boot".to_owned());
                    let output = dualq(&["on-boot", "d0", LINE]);
                    // Then there is what nobody can tell from the plan's own.
                    let output = if phase().is_none_or(|phase| phase == Phase::RolledBack) {
                        let mut netlink = Netlink::open().unwrap();
                        let link = netlink.link("d0").unwrap().index;
                        let _ = netlink.delete_qdisc(&Place {
                            handle: Handle::UNSPECIFIED,
                            ..Place::root(link)
                        });
                        output
                    } else {
                        output
                    };
                    assert!(output.status.success(), "{story:#?}: {}", said(&output));
                }
            }
        }
        // What is unfinished is finished, what is there is taken back.
        let output = dualq(&["status"]);
        assert!(output.status.success(), "{story:#?}: {}", said(&output));
        if phase().is_some_and(|phase| phase != Phase::RolledBack) {
            let output = dualq(&["rollback"]);
            // A watchdog may have been quicker.
            let nothing = said(&output).contains("no plan is applied here");
            assert!(output.status.success() || nothing, "{story:#?}: {}", said(&output));
        }
        assert!(phase().is_none_or(|phase| phase == Phase::RolledBack), "{story:#?}");
        assert_same(&fresh, &format!("round {round}: {story:#?}"));
    }
    println!("{rounds} rounds with {calls} calls and {deaths} deaths end as they began");
}

/// An operation in a process that is killed on its way, if it can be done now. Whether it died.
fn attempt(operation: Operation, step: u32) -> bool {
    let possible = match operation {
        Operation::Apply => phase().is_none_or(|phase| phase == Phase::RolledBack),
        Operation::Confirm => phase() == Some(Phase::Applied),
        Operation::Rollback => matches!(phase(), Some(Phase::Applied | Phase::Confirmed)),
    };
    // What is overdue has to be finished first.
    possible && host().unfinished().unwrap().is_none() && victim(operation, step)
}

fn kill_watchdogs() -> u32 {
    let mut killed = 0;
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(number) = process.file_name().to_string_lossy().parse() else { continue };
        let words = fs::read_to_string(process.path().join("cmdline")).unwrap_or_default();
        if words.contains("watch-over") && kill(Pid::from_raw(number), Signal::SIGKILL).is_ok() {
            killed += 1;
        }
    }
    killed
}
