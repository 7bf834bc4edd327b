//! Each sort of change, made and taken back.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use dualq_host::plan::{Offload, What};

use crate::namespaces::LINE;
use crate::room::Room;
use crate::watchdog::wait_until;
use crate::{offload, plan, qdisc, said, sysctl, text};

/// A discipline that somebody chose comes back with its handle and its options, and one with something inside too.
#[test]
fn what_somebody_had_chosen_comes_back() {
    let chosen = [
        (
            "pfifo limit 9",
            "tc qdisc add dev d0 root handle 5: pfifo limit 9",
            "root pfifo limit 9p",
        ),
        (
            "htb",
            "tc qdisc add dev d0 root handle 7: htb default 1; tc class add dev d0 parent 7: classid 7:1 htb rate 7mbit ceil 9mbit burst 20kb; \
             tc qdisc add dev d0 parent 7:1 handle 9: bfifo limit 12345",
            "",
        ),
        (
            "mq",
            "ip link del d0; ip link add d0 numtxqueues 2 type veth peer name d1; ip link set d0 up; ip link set d1 up; \
             tc qdisc add dev d0 root handle 1: mq; tc qdisc replace dev d0 parent 1:2 handle 22: bfifo limit 5000",
            "",
        ),
    ];
    for (what, commands, line) in chosen {
        let Some(room) = Room::new() else { return };
        room.sh(commands);
        let before = room.all();
        // What the plan has to say is what refuses another one.
        room.plan(&plan([qdisc("d0", line, LINE)]));
        let lines = if line.is_empty() {
            let output = room.dualq(&["apply"]);
            let found = text(&output.stdout);
            found.lines().filter_map(|line| line.strip_prefix("+ ")).map(str::to_owned).collect()
        } else {
            vec![line.to_owned()]
        };
        room.plan(&plan([What::Qdisc {
            dev: "d0".to_owned(),
            parent: None,
            before: lines,
            after: LINE.parse().unwrap(),
            each: false,
        }]));
        room.says(&["apply"]);
        room.says(&["confirm"]);
        assert_ne!(room.all(), before, "{what}");
        room.says(&["rollback"]);
        assert_eq!(room.all(), before, "{what}");
    }
}

/// Each transmit queue gets one of its own; the kernel's own mq comes back, and so does somebody's with what was below it.
#[test]
fn each_transmit_queue() {
    let two = "ip link del d0; ip link add d0 numtxqueues 3 type veth peer name d1; ip link set d0 up; ip link set d1 up";
    let own = "tc qdisc add dev d0 root handle 1: mq; tc qdisc replace dev d0 parent 1:2 handle 22: bfifo limit 5000";
    for somebodys in [false, true] {
        let Some(room) = Room::new() else { return };
        room.sh(two);
        // Of veth devices alone the kernel asks for none.
        room.sh(if somebodys {
            own
        } else {
            "tc qdisc add dev d0 root handle 9: mq; tc qdisc del dev d0 root"
        });
        let before = room.all();
        let each = |before: Vec<String>| What::Qdisc {
            dev: "d0".to_owned(),
            parent: None,
            before,
            after: "pfifo limit 33".parse().unwrap(),
            each: true,
        };
        room.plan(&plan([each(vec!["root nothing".to_owned()])]));
        let output = room.dualq(&["apply"]);
        let found = text(&output.stdout);
        let found =
            found.lines().filter_map(|line| line.strip_prefix("+ ")).map(str::to_owned).collect();
        room.plan(&plan([each(found)]));
        assert_eq!(
            room.says(&["apply", "--dry-run"]),
            "would put \"pfifo limit 33\" at each transmit queue of d0\n"
        );
        let there = || room.sh("tc qdisc show dev d0").matches("pfifo").count();
        let left = there();
        room.says(&["apply"]);
        let queues = room.sh("tc qdisc show dev d0");
        assert!(queues.starts_with("qdisc mq d0: root"), "{queues}");
        assert_eq!(queues.matches(" limit 33p").count(), 3, "{queues}");
        assert!(room.says(&["apply"]).starts_with("nothing to change"));
        room.says(&["confirm"]);
        assert!(room.says(&["status"]).contains("as planned     the qdisc of d0\n"));
        // One that is another, and the call that puts it right.
        room.sh("tc qdisc replace dev d0 parent d0:2 pfifo limit 7");
        let status = room.says(&["status"]);
        assert!(status.contains("d0\n- each transmit queue pfifo limit 33\n"), "{status}");
        room.says(&["on-boot", "--each", "d0", "pfifo limit 33"]);
        let queues = room.sh("tc qdisc show dev d0");
        assert_eq!(queues.matches(" limit 33p").count(), 3, "{queues}");
        room.says(&["rollback"]);
        assert_eq!(room.all(), before);
        assert_eq!(there(), left);
        let said = room.refuses(&["on-boot", "--each", "d0", "htb rate 5mbit leaf pfifo"]);
        assert!(said.contains("is not for each transmit queue"), "{said}");
    }
}

/// With an interface goes what was put there; all else comes back.
#[test]
fn an_interface_that_went_away() {
    let Some(room) = Room::new() else { return };
    room.sh("ip link add e0 type veth peer name e1; ip link set e0 up; ip link set e1 up");
    room.plan(&plan([sysctl("net.ipv4.tcp_ecn", "2", "1"), qdisc("e0", "root noqueue", LINE)]));
    room.says(&["apply"]);
    room.says(&["confirm"]);
    room.sh("ip link del e0");
    let status = room.says(&["status"]);
    assert!(status.contains(&format!("\ne0\n- root {LINE}\n+ (it is gone)\n")), "{status}");
    assert_eq!(
        room.refuses(&["rollback"]),
        "rolled back: a plan for tests; but not all is as it was before: the qdisc of e0: it is gone"
    );
    assert_eq!(room.sh("sysctl -n net.ipv4.tcp_ecn"), "2\n");
    assert_eq!(room.refuses(&["rollback"]), "no plan is applied here");
}

/// An interface is the same under another name.
#[test]
fn an_interface_that_was_renamed() {
    let Some(room) = Room::new() else { return };
    room.plan(&plan([sysctl("net.ipv4.tcp_ecn", "2", "1"), qdisc("d0", "root noqueue", LINE)]));
    room.says(&["apply"]);
    room.says(&["confirm"]);
    room.sh("ip link set d0 down; ip link set d0 name ens9; ip link set ens9 up");
    // Somebody else has the name now.
    room.sh("ip link add d0 type veth peer name d9; ip link set d0 up");
    assert!(room.sh("tc qdisc show dev ens9").contains("tbf"));
    let status = room.says(&["status"]);
    assert!(status.contains("as planned     the qdisc of d0, which is ens9 now\n"), "{status}");
    assert!(status.contains("\nens9:\nqdisc tbf d0: root "), "{status}");
    let said = room.says(&["rollback"]);
    assert!(said.contains("restored the qdisc of d0, which is ens9 now\n"), "{said}");
    assert!(!room.sh("tc qdisc show dev ens9").contains("tbf"));
    assert!(room.sh("tc qdisc show dev d0").contains("noqueue"));
}

/// As `tc -s qdisc` has them.
/// It has another number then, and is known by that.
#[test]
fn an_interface_that_came_back_and_was_renamed() {
    let Some(room) = Room::new() else { return };
    let add = "ip link add e0 type veth peer name e1; ip link set e0 up; ip link set e1 up";
    room.sh(add);
    room.plan(&plan([qdisc("e0", "root noqueue", LINE)]));
    room.says(&["apply"]);
    room.says(&["confirm"]);
    room.sh(&format!("ip link del e0; {add}"));
    room.says(&["on-boot", "e0", LINE]);
    room.sh("ip link set e0 down; ip link set e0 name ens9; ip link set ens9 up");
    let status = room.says(&["status"]);
    assert!(status.contains("as planned     the qdisc of e0, which is ens9 now\n"), "{status}");
    let said = room.says(&["rollback"]);
    assert!(said.contains("restored the qdisc of e0, which is ens9 now\n"), "{said}");
    assert!(!room.sh("tc qdisc show dev ens9").contains("tbf"));
}

#[test]
fn status_shows_the_kernels_numbers() {
    let Some(room) = Room::new() else { return };
    room.plan(&plan([qdisc("d0", "root noqueue", "htb rate 48mbit leaf pfifo limit 7")]));
    room.says(&["apply"]);
    let status = room.says(&["status"]);
    let kernels = room.sh("tc -s qdisc show dev d0; tc class show dev d0");
    for part in
        ["qdisc htb d0: root", "qdisc pfifo d1: parent d0:1", "class htb d0:1 root leaf d1:"]
    {
        assert!(kernels.contains(part), "{kernels}");
        assert!(status.contains(part), "{status}");
    }
    room.says(&["rollback"]);
}

#[test]
fn what_could_not_be_put_back_is_not_replaced() {
    let Some(room) = Room::new() else { return };
    room.sh(
        "tc qdisc add dev d0 root handle 7: htb default 1; tc class add dev d0 parent 7: classid 7:1 htb rate 7mbit; \
         tc class add dev d0 parent 7: classid 7:2 htb rate 7mbit",
    );
    let before = room.all();
    room.plan(&plan([qdisc("d0", "root htb", LINE)]));
    assert_eq!(
        room.refuses(&["apply"]),
        "the classes of the htb 7: of d0 (7:1, 7:2) could not be put back exactly: `tc qdisc delete dev d0 root` takes all of it away, with what it \
         is for; then make a new plan"
    );
    assert_eq!(room.all(), before);
}

/// The kernel has the last word; what was there before it stays.
#[test]
fn a_line_that_the_kernel_refuses_changes_nothing() {
    let Some(room) = Room::new() else { return };
    if room.has("dualpi2") {
        return crate::skipped("this kernel has everything");
    }
    let before = room.all();
    room.plan(&plan([
        sysctl("net.ipv4.tcp_ecn", "2", "1"),
        qdisc("d0", "root noqueue", "htb rate 48mbit leaf dualpi2"),
    ]));
    let said = room.refuses(&["apply"]);
    assert!(said.contains("this kernel has no qdisc dualpi2"), "{said}");
    assert_eq!(room.all(), before);
    assert_eq!(room.says(&["status"]), "no plan is applied here\n");
    // There can be no second device of this name, so that it turns out half-way.
    room.plan(&plan([
        sysctl("net.ipv4.tcp_ecn", "2", "1"),
        qdisc("lo", "root noqueue", "htb rate 48mbit leaf dualpi2"),
    ]));
    let said = room.refuses(&["apply"]);
    let end = "in d0:1 of lo: this kernel has no qdisc dualpi2 (Specified qdisc kind is unknown); all is as it was before";
    assert!(said.ends_with(end), "{said}");
    assert_eq!(room.all(), before);
    let status = room.says(&["status"]);
    assert!(status.starts_with("last plan: a plan for tests\n"), "{status}");
    assert!(status.contains("the last was taken back "), "{status}");
    // Who is to keep routes and classes there has none, and does not wait for any.
    assert!(room.says(&["put-back"]).starts_with("nothing to put back: "));
    assert!(status.contains(" ago: it failed: "), "{status}");
}

/// What puts packets together is limited, comes back with the interface, and is let go again.
#[test]
fn offloads_of_an_interface() {
    let Some(room) = Room::new() else { return };
    let e0 = "ip link add e0 type veth peer name e1; ip link set e0 up; ip link set e1 up; ethtool -K e0 gro on";
    if !room.sh("command -v ethtool || true").contains("ethtool") {
        return crate::skipped("there is no program ethtool");
    }
    room.sh(e0);
    let now = || {
        room.sh("ethtool -k e0 | grep -w generic-receive-offload; ip -d link show dev e0 | grep -o 'gso_max_segs [0-9]*'")
    };
    let before = now();
    assert_eq!(before, "generic-receive-offload: on\ngso_max_segs 65535\n");
    let (gro, segs) = (Offload::Gro, Offload::GsoMaxSegs);
    room.plan(&plan([offload("e0", gro, "on", "off"), offload("e0", segs, "65535", "3")]));
    assert_eq!(
        room.says(&["apply", "--dry-run"]),
        "would set gro of e0 from on to off\nwould set gso_max_segs of e0 from 65535 to 3\n"
    );
    room.says(&["apply"]);
    let limited = "generic-receive-offload: off\ngso_max_segs 3\n";
    assert_eq!(now(), limited);
    room.says(&["confirm"]);
    assert!(room.says(&["status"]).contains("as planned     gso_max_segs of e0\n"));
    room.sh("ip link set e0 gso_max_segs 7");
    let status = room.says(&["status"]);
    assert!(status.contains("gso_max_segs of e0\n- 3\n+ 7\n"), "{status}");
    assert!(room.refuses(&["rollback"]).starts_with("gso_max_segs of e0 changed since"));
    // It comes again, and what brings it back is called.
    room.sh(&format!("ip link del e0; {e0}"));
    assert_eq!(now(), before);
    room.says(&["on-boot", "--offloads", "e0", "gso_max_segs 3 gro off"]);
    assert_eq!(now(), limited);
    let status = room.says(&["status"]);
    assert!(status.contains("as planned     gro of e0\n"), "{status}");
    room.says(&["rollback"]);
    assert_eq!(now(), before);
    for line in ["tso off", "gro off; reboot", "gro", "lro on"] {
        let said = room.refuses(&["on-boot", "--offloads", "e0", line]);
        assert!(said.contains(line.split(' ').next().unwrap()), "{said}");
    }
    assert_eq!(now(), before);
}

#[test]
fn a_route_with_a_smaller_mtu() {
    let Some(room) = Room::new() else { return };
    room.sh("ip addr add 10.0.0.1/24 dev d0; ip route add default via 10.0.0.2");
    let before = room.all();
    room.plan(&plan([What::Route { to: "192.0.2.1/32".parse().unwrap(), mtu: 1400 }]));
    room.says(&["apply"]);
    let route = room.sh("ip route show 192.0.2.1");
    assert!(route.contains("via 10.0.0.2 dev d0") && route.contains("mtu 1400"), "{route}");
    assert!(room.sh("ip route").contains("default via 10.0.0.2"));
    assert!(room.says(&["apply"]).starts_with("nothing to change"));
    room.says(&["confirm"]);
    room.says(&["rollback"]);
    assert_eq!(room.all(), before);
}

/// A kernel's modules, as far as they can be seen, and a program that loads them.
#[test]
fn a_module_is_loaded_and_unloaded_if_it_was_not_there() {
    let Some(room) = Room::new() else { return };
    for folder in ["modules", "modules/sch_tbf"] {
        fs::create_dir(room.path(folder)).unwrap();
    }
    let modprobe = |script: &str| room.script("modprobe", script);
    // What is first on the caller's path is of no interest to root.
    let elsewhere = room.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let evil = elsewhere.join("modprobe");
    fs::write(&evil, format!("#!/bin/sh\ntouch {}\n", elsewhere.join("called").display())).unwrap();
    fs::set_permissions(&evil, fs::Permissions::from_mode(0o755)).unwrap();
    modprobe("case \"$1\" in -r) rmdir \"/sys/module/$3\" ;; *) mkdir \"/sys/module/$2\" ;; esac");
    room.sh(&format!("mount --bind {} /sys/module", room.path("modules").display()));
    let call = |words: &[&str]| {
        let path = format!("{}:{}", elsewhere.display(), std::env::var("PATH").unwrap());
        room.prepared(words).env("PATH", path).output().unwrap()
    };
    let module = |name: &str| What::Module { module: name.to_owned() };
    room.plan(&plan([module("sch_tbf"), module("sch_dualpi2")]));
    for (word, modules) in [
        ("apply", "sch_dualpi2\nsch_tbf\n"),
        ("confirm", "sch_dualpi2\nsch_tbf\n"),
        ("rollback", "sch_tbf\n"),
    ] {
        let output = call(&[word]);
        assert!(output.status.success(), "{word}: {}", said(&output));
        assert_eq!(room.sh("ls /sys/module"), modules);
        assert!(!elsewhere.join("called").exists());
    }
    // One that cannot be loaded takes all else along.
    room.plan(&plan([sysctl("net.ipv4.tcp_ecn", "2", "1"), module("sch_dualpi2")]));
    let before = room.all();
    modprobe("echo not here >&2; exit 1");
    assert_eq!(
        text(&call(&["apply"]).stderr),
        "error: cannot load the module sch_dualpi2: not here; all is as it was before\n"
    );
    assert_eq!(room.all(), before);
}

/// modprobe goes on when dualq is killed; what it loads is taken back once it has ended.
#[test]
fn a_module_that_is_loaded_after_a_death_is_unloaded() {
    let Some(room) = Room::new() else { return };
    fs::create_dir(room.path("modules")).unwrap();
    let [begun, go, ended] = ["begun", "go", "ended"].map(|name| room.path(name));
    room.script(
        "modprobe",
        &format!(
            "case \"$1\" in -r) rmdir \"/sys/module/$3\" ;; *) touch {}; while [ ! -e {} ]; do sleep 0.05; done; mkdir \"/sys/module/$2\"; touch {} ;; esac",
            begun.display(),
            go.display(),
            ended.display()
        ),
    );
    room.sh(&format!("mount --bind {} /sys/module", room.path("modules").display()));
    room.plan(&plan([What::Module { module: "sch_dualpi2".to_owned() }]));
    let mut apply = room.prepared(&["apply"]).stdout(Stdio::null()).spawn().unwrap();
    wait_until("modprobe is called", || begun.exists());
    apply.kill().unwrap();
    apply.wait().unwrap();
    // Time enough for a watchdog that does not wait.
    thread::sleep(Duration::from_secs(3));
    fs::write(&go, "").unwrap();
    wait_until("it is loaded", || ended.exists());
    wait_until("it is unloaded", || !room.path("modules/sch_dualpi2").exists());
    wait_until("it is said", || {
        room.says(&["status"]).contains("it was interrupted while it was applied")
    });
}

/// To rehearse a queue discipline has the kernel load its module, which would stay if nobody had written down that it was begun.
#[test]
fn a_module_is_loaded_before_its_discipline_is_rehearsed() {
    let Some(room) = Room::new() else { return };
    if room.has("dualpi2") {
        return crate::skipped("this kernel has everything");
    }
    fs::create_dir(room.path("modules")).unwrap();
    let calls = room.path("calls");
    room.script(
        "modprobe",
        &format!(
            "echo \"$@\" >>{}; case \"$1\" in -r) rmdir \"/sys/module/$3\" ;; *) mkdir \"/sys/module/$2\" ;; esac",
            calls.display()
        ),
    );
    room.sh(&format!("mount --bind {} /sys/module", room.path("modules").display()));
    let before = room.all();
    room.plan(&plan([
        qdisc("d0", "root noqueue", "dualpi2"),
        What::Module { module: "sch_dualpi2".to_owned() },
    ]));
    let said = room.refuses(&["apply"]);
    assert!(said.contains("this kernel has no qdisc dualpi2"), "{said}");
    assert!(said.ends_with("; all is as it was before"), "{said}");
    assert_eq!(fs::read_to_string(calls).unwrap(), "-- sch_dualpi2\n-r -- sch_dualpi2\n");
    assert_eq!(room.sh("ls /sys/module"), "");
    assert_eq!(room.all(), before);
}

#[test]
fn an_interface_that_has_just_appeared_gets_its_discipline() {
    let Some(room) = Room::new() else { return };
    assert_eq!(room.says(&["on-boot", "d0", LINE]), "");
    let first = room.sh("tc qdisc show dev d0");
    assert!(first.contains("qdisc tbf d0: root"), "{first}");
    // Twice is once.
    assert_eq!(room.says(&["on-boot", "d0", LINE]), "");
    assert_eq!(room.sh("tc qdisc show dev d0"), first);
    assert_eq!(
        room.refuses(&["on-boot", "d9", LINE]),
        "no device \"d9\" in this network namespace"
    );
    assert!(room.refuses(&["on-boot", "d0", "tbf; reboot"]).starts_with("qdisc "));
}
