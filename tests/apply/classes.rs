//! Below a class of an `htb` that somebody else made, and keeps making; trees of other kinds are tried on a [machine](crate::guest) that has them.

use std::fs;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::room::{INSTALLED, Room};
use crate::watchdog::{kill, processes, wait_until};
use crate::{said, skipped, text};

/// What its owner's script does: a class with nothing of its own, and one with something.
const TREE: &str = "\
set -e
tc qdisc add dev d0 root handle 1: htb default 10
tc class add dev d0 parent 1: classid 1:1 htb rate 20mbit
tc class add dev d0 parent 1:1 classid 1:10 htb rate 2mbit ceil 20mbit
tc class add dev d0 parent 1:1 classid 1:20 htb rate 10mbit
tc qdisc add dev d0 parent 1:20 handle 20: bfifo limit 5000
tc filter add dev d0 parent 1: protocol ip u32 match ip dport 22 0xffff flowid 1:20";
const NONE: &str = "tc qdisc del dev d0 root";
const RULES: &str = "udev/rules.d/90-dualq.rules";
const LINE: &str = "pfifo limit 40";

/// A room with the program, udev's folder and that tree.
fn room() -> Option<Room> {
    let room = Room::new()?;
    if !room.has("htb") {
        skipped("this kernel has no htb");
        return None;
    }
    room.install();
    room.sh("mount -t tmpfs none /run; mkdir /run/udev; : >/run/udev/control");
    fs::create_dir_all(room.etc("udev/rules.d")).unwrap();
    room.sh(TREE);
    Some(room)
}

fn says(room: &Room, words: &[&str]) -> String {
    let output = room.called(INSTALLED, words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", said(&output));
    text(&output.stdout)
}

/// Makes a plan as its user does.
fn planned(room: &Room, class: &str, line: &str) -> String {
    let words = ["plan", "--dev", "d0", "--profile", "gateway", "-o", "plan.toml"];
    says(room, &[&words[..], &["--parent", class, "--qdisc", line]].concat())
}

/// What is in a class, as tc shows it.
fn inside(room: &Room, class: &str) -> String {
    let all = room.sh("tc qdisc show dev d0");
    let place = format!(" parent {class} ");
    all.lines().filter(|line| line.contains(&place)).collect()
}

fn keepers(room: &Room) -> usize {
    processes(room, "put-back").len()
}

/// What came with the tree goes with it, and comes back with it; what its owner does in the class stays; rollback ends all of it.
#[test]
fn it_comes_back_with_the_tree() {
    let Some(room) = room() else { return };
    let before = room.all();
    let shown = planned(&room, "1:10", LINE);
    assert!(
        shown.contains("queue discipline of d0, below class 1:10:\n+1:10 pfifo limit 40\n"),
        "{shown}"
    );
    assert_eq!(
        says(&room, &["apply", "--dry-run"]),
        "would put \"pfifo limit 40\" below class 1:10 of d0\n\
         would write /etc/udev/rules.d/90-dualq.rules when confirmed\n"
    );
    says(&room, &["apply"]);
    assert!(inside(&room, "1:10").starts_with("qdisc pfifo d0: parent 1:10 limit 40p"));
    assert_eq!(keepers(&room), 0, "until it is confirmed, nothing comes back");
    says(&room, &["confirm"]);
    assert_eq!(keepers(&room), 1);
    let rules = fs::read_to_string(room.etc(RULES)).unwrap();
    assert!(rules.contains("--parent 1:10 d0 'pfifo limit 40'"), "{rules}");
    let status = says(&room, &["status"]);
    assert!(status.contains("as planned     the qdisc below class 1:10 of d0\n"), "{status}");
    assert!(status.contains("d0:\nqdisc pfifo d0: parent 1:10 "), "{status}");

    room.sh(NONE);
    let status = says(&room, &["status"]);
    assert!(status.contains("drifted        the qdisc below class 1:10 of d0\n"), "{status}");
    assert!(
        status.contains("is missing: it comes back by itself when d0 has class 1:10 again\n"),
        "{status}"
    );
    // Half a tree is no place for it.
    room.sh("tc qdisc add dev d0 root handle 1: htb default 10");
    thread::sleep(Duration::from_secs(1));
    room.sh(NONE);
    room.sh(TREE);
    wait_until("it is back", || inside(&room, "1:10").contains("limit 40p"));
    assert!(!says(&room, &["status"]).contains("is missing"));

    // Who wants another has it, until somebody says otherwise.
    room.sh("tc qdisc replace dev d0 parent 1:10 handle 10: bfifo limit 3000");
    thread::sleep(Duration::from_secs(2));
    assert!(inside(&room, "1:10").contains("bfifo 10:"), "{}", inside(&room, "1:10"));
    let status = says(&room, &["status"]);
    let call = format!(
        "`sudo dualq on-boot --state {} --parent 1:10 d0 'pfifo limit 40'`",
        room.path("state").display()
    );
    assert!(
        status.contains("- 1:10 pfifo limit 40\n+ 1:10 bfifo limit 3000b\n")
            && status.contains(&call),
        "{status}"
    );
    let json: Value = serde_json::from_str(&says(&room, &["status", "--json"])).unwrap();
    assert!(json["changes"][0]["remedy"].as_str().unwrap().contains(&call), "{json:#}");
    let refused = room.called(INSTALLED, &["rollback"]).output().unwrap();
    assert_eq!(
        text(&refused.stderr),
        "error: class 1:10 of d0 changed since: --force takes it back all the same\n"
    );
    says(&room, &["on-boot", "--parent", "1:10", "d0", LINE]);
    assert!(inside(&room, "1:10").contains("limit 40p"), "{}", inside(&room, "1:10"));

    says(&room, &["rollback"]);
    assert_eq!(room.all(), before);
    wait_until("nothing keeps it any more", || keepers(&room) == 0);
    room.sh(NONE);
    room.sh(TREE);
    assert_eq!(room.all(), before);
}

/// At boot the rule is called before there is a tree, and the call does not wait for one. If none comes, nothing is broken.
#[test]
fn a_rule_starts_what_waits_for_the_class() {
    let Some(room) = room() else { return };
    planned(&room, "1:10", LINE);
    says(&room, &["apply"]);
    says(&room, &["confirm"]);
    // As after a restart: no process, no tree.
    for process in processes(&room, "put-back") {
        kill(&process);
    }
    wait_until("it is dead", || keepers(&room) == 0);
    room.sh(NONE);
    let status = says(&room, &["status"]);
    let call = "--parent 1:10 d0 'pfifo limit 40'` puts it there\n";
    assert!(
        status.contains("is missing: when d0 has class 1:10 again, `") && status.contains(call),
        "{status}"
    );
    assert_eq!(says(&room, &["on-boot", "--parent", "1:10", "d0", LINE]), "");
    wait_until("it waits", || keepers(&room) == 1);
    // What no rule calls for is not waited for.
    let refused =
        room.refused(room.called(INSTALLED, &["on-boot", "--parent", "1:11", "d0", LINE]));
    assert!(refused.starts_with("d0 has no class 1:11: "), "{refused}");
    room.sh(TREE);
    wait_until("it is there", || inside(&room, "1:10").contains("limit 40p"));

    // The owner's tree goes for good: to take the plan back leaves nothing, and lacks nothing.
    room.sh(NONE);
    let said = says(&room, &["rollback"]);
    assert!(said.ends_with("; all is as it was before\n"), "{said}");
    wait_until("nothing keeps it any more", || keepers(&room) == 0);
    // A rule that was read before it went finds nothing to do.
    room.sh(TREE);
    says(&room, &["on-boot", "--parent", "1:10", "d0", LINE]);
    assert_eq!(inside(&room, "1:10"), "");
}

#[test]
fn what_the_class_had_of_its_owner_comes_back() {
    let Some(room) = room() else { return };
    let before = room.all();
    let shown = planned(&room, "1:20", LINE);
    assert!(
        shown.contains("below class 1:20:\n-1:20 bfifo limit 5000b\n+1:20 pfifo limit 40\n"),
        "{shown}"
    );
    says(&room, &["apply"]);
    says(&room, &["confirm"]);
    // Its owner's script puts another there at each start, with which nothing contends.
    assert!(!room.etc(RULES).exists());
    assert_eq!(keepers(&room), 0);
    assert!(inside(&room, "1:20").contains("pfifo d0: parent 1:20 limit 40p"));
    says(&room, &["rollback"]);
    assert_eq!(room.all(), before);

    // With the tree made anew it is there anew, with what number ever, and rollback does not mind.
    says(&room, &["apply"]);
    says(&room, &["confirm"]);
    room.sh(NONE);
    room.sh(&TREE.replace("handle 20:", "handle 2000:"));
    let status = says(&room, &["status"]);
    assert!(status.contains("as before      the qdisc below class 1:20 of d0\n"), "{status}");
    assert!(status.contains("is missing: `sudo dualq on-boot --state "), "{status}");
    let said = says(&room, &["rollback"]);
    assert!(said.ends_with("; all is as it was before\n"), "{said}");
    assert!(inside(&room, "1:20").contains("limit 5000b"), "{}", inside(&room, "1:20"));
    // Where the owner's is gone, that is said.
    room.sh(NONE);
    room.sh(TREE);
    says(&room, &["apply"]);
    room.sh(NONE);
    let left = room.refused(room.called(INSTALLED, &["rollback"]));
    assert!(
        left.ends_with(
            "but not all is as it was before: the qdisc below class 1:20 of d0: it is gone"
        ),
        "{left}"
    );
}

#[test]
fn taken_back_if_nobody_confirms() {
    let Some(room) = room() else { return };
    let before = room.all();
    for class in ["1:10", "1:20"] {
        planned(&room, class, "htb rate 1mbit leaf pfifo limit 40");
        says(&room, &["apply", "--confirm-within", "5s"]);
        assert!(inside(&room, class).starts_with("qdisc htb d0: "), "{}", inside(&room, class));
        wait_until("it is taken back", || room.all() == before);
        wait_until("that is recorded", || {
            says(&room, &["status"]).contains("not confirmed within")
        });
    }
}

#[test]
fn another_tree_than_the_plans_is_refused() {
    let Some(room) = room() else { return };
    planned(&room, "1:10", LINE);
    let refused = || room.refused(room.called(INSTALLED, &["apply"]));
    room.sh("tc class add dev d0 parent 1:10 classid 1:11 htb rate 1mbit");
    assert_eq!(
        refused(),
        "class 1:10 of d0 is not a leaf, packets go to the classes in it: make a new plan for one of those"
    );
    room.sh(
        "tc class del dev d0 classid 1:11; tc qdisc add dev d0 parent 1:10 handle 7: pfifo limit 9",
    );
    let output = room.called(INSTALLED, &["apply"]).output().unwrap();
    assert_eq!(text(&output.stdout), "class 1:10 of d0\n+ 1:10 pfifo limit 9p\n");
    assert_eq!(
        text(&output.stderr),
        "error: class 1:10 of d0 is not as the plan found it: make a new plan\n"
    );
    room.sh(NONE);
    assert_eq!(
        refused(),
        "d0 has no class 1:10: whoever made its tree can make it again; for another tree, make a new plan"
    );
    // To the whole tree nothing is done without being asked.
    room.sh(TREE);
    let words = ["plan", "--dev", "d0", "--rate", "10mbit", "--profile", "gateway"];
    let whole = room.called(INSTALLED, &words).output().unwrap();
    assert_eq!(whole.status.code(), Some(2));
    let said = text(&whole.stderr);
    assert!(said.contains("put a discipline below one of its classes: --parent 1:10"), "{said}");
}
