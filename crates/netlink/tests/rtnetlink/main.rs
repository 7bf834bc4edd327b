//! The real kernel's answers. Each test works in a network namespace of its own, so it needs root or user namespaces; what this kernel does not
//! have is skipped and said, or fails if `DUALQ_IN_GUEST` is set: the kernels that `dualq kernel build` makes have everything, and
//! the program's own tests run these tests on such a one (`tests/kernel/exec.rs` at the root).
#![cfg(target_os = "linux")]

mod arrivals;
mod ingress;
mod links;
mod qdiscs;
mod routes;
mod trees;

use std::thread;
use std::time::{Duration, Instant};

use dualq_netlink::{Handle, Link, Netlink, NetlinkError, Place, Queue, VethEnd};
use dualq_qdisc::{Spec, grammar};
use nix::sched::{CloneFlags, unshare};

/// Runs a test in a new network namespace, where it is alone.
pub(crate) fn in_namespace(test: impl FnOnce(Netlink) + Send + 'static) {
    if !tests_skipped::is_root() {
        return tests_skipped::again_as_root("true");
    }
    let alone = move || match unshare(CloneFlags::CLONE_NEWNET) {
        Ok(()) => test(Netlink::open().unwrap()),
        Err(errno) => skip(&format!("no network namespace can be made here: {errno}")),
    };
    // Its own thread, because a thread that is entered a namespace stays there; under the name of the test's.
    let name = thread::current().name().unwrap_or_default().to_owned();
    let alone = thread::Builder::new().name(name).spawn(alone).unwrap();
    if let Err(panic) = alone.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Whether this is a kernel in virtual time: nothing takes time there, and nothing that spins ends.
pub(crate) fn is_virtual_time() -> bool {
    std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains("User Mode Linux"))
}

pub(crate) fn skip(why: &str) {
    assert!(std::env::var_os("DUALQ_IN_GUEST").is_none(), "{why}");
    tests_skipped::skipped(why);
}

/// A device with Linux's usual MTU and queue length, as the one whose answers were recorded.
pub(crate) fn device(netlink: &mut Netlink) -> Link {
    let (one, other) = (end("d0", 1), end("d1", 2));
    netlink.add_veth(&one, &other).unwrap();
    netlink.link("d0").unwrap()
}

pub(crate) fn end(name: &str, last: u8) -> VethEnd<'_> {
    VethEnd { name, mac: [2, 0, 0, 0, 0, last], mtu: 1500, namespace: None }
}

pub(crate) fn spec(line: &str) -> Spec {
    grammar::parse(line).unwrap_or_else(|error| panic!("{error}")).spec
}

/// Whether this kernel has a kind; says so if not.
pub(crate) fn has(netlink: &mut Netlink, link: &Link, kind: &str) -> bool {
    match netlink.add_qdisc_kind(&Place::root(link.index), kind) {
        Err(NetlinkError::NoSuchKind { .. }) => {
            skip(&format!("this kernel has no {kind}"));
            false
        }
        result => {
            // Some want options, which is another matter.
            if result.is_ok() {
                netlink.delete_qdisc(&Place::root(link.index)).unwrap();
            }
            true
        }
    }
}

pub(crate) fn root(netlink: &mut Netlink, link: &Link) -> Queue {
    let queues = netlink.qdiscs(link.index).unwrap();
    queues.into_iter().find(|queue| queue.parent == Handle::ROOT).unwrap()
}

/// Waits until a device that was set up sends.
pub(crate) fn wait_for(netlink: &mut Netlink, name: &str) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while !netlink.link(name).unwrap().running {
        assert!(Instant::now() < deadline, "{name} does not run");
        thread::sleep(Duration::from_millis(1));
    }
}
