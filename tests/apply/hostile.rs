//! Plans that somebody else wrote, and machines that are in the way: refused in one line, and nothing is changed.

use std::fs;
use std::os::unix::fs::symlink;

use dualq_host::plan::What;

use crate::room::Room;
use crate::{file, plan, qdisc, sysctl};

const FILE: &str = "/etc/sysctl.d/90-dualq.conf";
const CONTENT: &str = "net.ipv4.tcp_ecn = 1\n";

/// Says why the change is refused, after one that would be made.
fn refused(room: &Room, what: What) -> String {
    room.plan(&plan([sysctl("net.ipv4.tcp_ecn", "2", "1"), what]));
    let before = room.all();
    let said = room.refuses(&["apply"]);
    assert_eq!(room.all(), before, "{said}");
    assert_eq!(room.says(&["status"]), "no plan is applied here\n");
    said
}

#[test]
fn plans_that_ask_for_what_no_plan_does() {
    let Some(room) = Room::new() else { return };
    for path in [
        "/etc/passwd",
        "/etc/sysctl.d/../passwd",
        "/etc/cron.d/x",
        "/root/.ssh/authorized_keys",
        "etc/sysctl.d/90-dualq.conf",
        "",
    ] {
        let said = refused(&room, file(path, None, CONTENT));
        assert!(said.contains("is no file that a plan writes"), "{said}");
    }
    for key in ["kernel.core_pattern", "net.ipv4/../../kernel.core_pattern", "net.../kernel/x"] {
        let said = refused(&room, sysctl(key, "core", "|/bin/sh"));
        assert!(said.contains("is no sysctl that a plan sets"), "{said}");
    }
    for dev in ["eth0; rm -rf /", "$(reboot)", "../d0", "a-name-that-is-too-long", ""] {
        let said = refused(&room, qdisc(dev, "root noqueue", "pfifo"));
        // One that the kernel would take has a reason of its own.
        let why = if dev == "$(reboot)" {
            "changes nothing at interfaces whose names have more than letters of ASCII"
        } else {
            "is not a name of an interface"
        };
        assert!(said.contains(why), "{said}");
    }
    // Values that no plan in memory can have, and a file can.
    let route = What::Route { to: "192.0.2.1/32".parse().unwrap(), mtu: 1400 };
    let text = plan([qdisc("d0", "root noqueue", "pfifo limit 77"), route]).write();
    for (sane, hostile, why) in [
        ("limit 77", "limit 77; reboot", "77;"),
        ("192.0.2.1/32", "0.0.0.0/0", "is everybody"),
        ("192.0.2.1/32", "192.0.2.1 dev lo", "is no destination"),
    ] {
        assert!(text.contains(sane));
        fs::write(room.path("plan.toml"), text.replace(sane, hostile)).unwrap();
        let said = room.refuses(&["apply"]);
        assert!(said.contains(why), "{said}");
    }
    let said = refused(&room, What::Module { module: "../../tmp/evil".to_owned() });
    assert!(said.contains("is no module that a plan loads"), "{said}");
    let said = refused(&room, qdisc("d9", "root noqueue", "pfifo"));
    assert_eq!(said, "no device \"d9\" in this network namespace");
    // Only a machine's first network namespace has it.
    let said = refused(&room, sysctl("net.core.default_qdisc", "fq", "codel"));
    assert_eq!(said, "there is no sysctl net.core.default_qdisc here: make a new plan");
    let said = refused(&room, sysctl("net.ipv4.tcp_ecn", "2", "0"));
    assert_eq!(said, "the plan changes net.ipv4.tcp_ecn twice");
    fs::write(room.path("plan.toml"), "format = 1\nabout = [").unwrap();
    assert!(room.refuses(&["apply"]).starts_with("the plan plan.toml: line 2: "));
}

#[test]
fn links_in_the_way_are_not_followed() {
    let Some(room) = Room::new() else { return };
    fs::write(room.path("victim"), "somebody's").unwrap();
    symlink(room.path("victim"), room.etc("sysctl.d/90-dualq.conf")).unwrap();
    let said = refused(&room, file(FILE, Some("somebody's"), CONTENT));
    assert_eq!(said, "/etc/sysctl.d/90-dualq.conf is not written: it is a symbolic link");
    fs::remove_file(room.etc("sysctl.d/90-dualq.conf")).unwrap();
    fs::remove_dir(room.etc("sysctl.d")).unwrap();
    fs::create_dir(room.path("elsewhere")).unwrap();
    symlink(room.path("elsewhere"), room.etc("sysctl.d")).unwrap();
    let said = refused(&room, file(FILE, None, CONTENT));
    assert_eq!(
        said,
        "/etc/sysctl.d/90-dualq.conf is not written: /etc/sysctl.d on the way is a link or no folder"
    );
    assert_eq!(fs::read_to_string(room.path("victim")).unwrap(), "somebody's");
    assert_eq!(fs::read_dir(room.path("elsewhere")).unwrap().count(), 0);
}

#[test]
fn other_things_than_files_in_the_way() {
    let Some(room) = Room::new() else { return };
    fs::create_dir(room.etc("sysctl.d/90-dualq.conf")).unwrap();
    let said = refused(&room, file(FILE, None, CONTENT));
    assert_eq!(said, "/etc/sysctl.d/90-dualq.conf is not written: it is a folder");
    fs::remove_dir(room.etc("sysctl.d/90-dualq.conf")).unwrap();
    room.sh("mkfifo /etc/sysctl.d/90-dualq.conf");
    // Whoever opened it would wait for ever.
    room.plan(&plan([file(FILE, None, CONTENT)]));
    let said = room.refuses(&["apply"]);
    assert_eq!(said, "/etc/sysctl.d/90-dualq.conf is not written: it is no regular file");
    room.sh("rm /etc/sysctl.d/90-dualq.conf");
    fs::write(room.etc("sysctl.d/90-dualq.conf"), b"\xff\xfe").unwrap();
    let said = refused(&room, file(FILE, None, CONTENT));
    assert_eq!(said, "/etc/sysctl.d/90-dualq.conf is not written: it is no text now");
    fs::remove_file(room.etc("sysctl.d/90-dualq.conf")).unwrap();
    fs::remove_dir(room.etc("sysctl.d")).unwrap();
    fs::write(room.etc("sysctl.d"), "").unwrap();
    let said = refused(&room, file(FILE, None, CONTENT));
    assert_eq!(
        said,
        "/etc/sysctl.d/90-dualq.conf is not written: /etc/sysctl.d on the way is a link or no folder"
    );
}

#[test]
fn a_read_only_etc() {
    let Some(room) = Room::new() else { return };
    room.sh("mount -o remount,bind,ro /etc");
    let said = refused(&room, file(FILE, None, CONTENT));
    assert_eq!(said, "cannot write /etc/sysctl.d/90-dualq.conf: Read-only file system");
    let said = refused(&room, file("/etc/modules-load.d/dualq.conf", None, "sch_tbf\n"));
    assert_eq!(said, "cannot write /etc/modules-load.d/dualq.conf: Read-only file system");
}

#[test]
fn a_full_disk() {
    let Some(room) = Room::new() else { return };
    room.sh("mount -t tmpfs -o size=64k none /etc/sysctl.d; dd if=/dev/zero of=/etc/sysctl.d/all bs=64k count=1 2>&1");
    let said = refused(&room, file(FILE, None, CONTENT));
    assert_eq!(said, "cannot write /etc/sysctl.d/90-dualq.conf: No space left on device");
}

/// The disk fills up, or becomes read-only, after the plan was applied: what was begun comes off again.
#[test]
fn a_disk_that_is_full_when_it_comes_to_confirming() {
    let Some(room) = Room::new() else { return };
    room.sh("mkdir /etc/modules-load.d; mount -t tmpfs -o size=64k none /etc/modules-load.d");
    let before = room.all();
    room.plan(&plan([
        sysctl("net.ipv4.tcp_ecn", "2", "1"),
        file(FILE, None, CONTENT),
        file("/etc/modules-load.d/dualq.conf", None, "sch_tbf\n"),
    ]));
    room.says(&["apply"]);
    room.sh("dd if=/dev/zero of=/etc/modules-load.d/all bs=64k count=1 2>&1");
    let said = room.refuses(&["confirm"]);
    assert_eq!(
        said,
        "cannot write /etc/modules-load.d/dualq.conf: No space left on device; all is as it was before"
    );
    room.sh("rm /etc/modules-load.d/all");
    assert_eq!(room.all(), before);
    assert_eq!(
        room.sh("ls -A /etc/modules-load.d /etc/sysctl.d"),
        "/etc/modules-load.d:\n\n/etc/sysctl.d:\n"
    );
}

#[test]
fn records_that_cannot_be_written() {
    let Some(room) = Room::new() else { return };
    room.plan(&plan([sysctl("net.ipv4.tcp_ecn", "2", "1")]));
    let before = room.all();
    let state = room.path("state");
    let state = state.display();
    room.sh(&format!("mount --bind {state} {state}; mount -o remount,bind,ro {state}"));
    let said = room.refuses(&["apply"]);
    assert_eq!(
        said,
        format!("cannot use {state}, where dualq records what it changes: Read-only file system")
    );
    room.sh(&format!("umount {state}; mount -t tmpfs -o size=4k,mode=755 none {state}; dd if=/dev/zero of={state}/all bs=4k count=1 2>&1"));
    let said = room.refuses(&["apply"]);
    assert!(said.ends_with(": No space left on device"), "{said}");
    assert_eq!(room.all(), before);
}
