//! One plan for several interfaces, as its user makes it: one record, one confirmation, one rollback.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use crate::room::{INSTALLED, Room};

const RULES: &str = "udev/rules.d/90-dualq.rules";
const E0: &str = "ip link add e0 type veth peer name e1; ip link set e0 up; ip link set e1 up";

/// A room with two ways out and udev's folder, and a plan for both in it.
fn room() -> Option<Room> {
    let room = Room::new()?;
    room.install();
    room.sh(E0);
    room.sh("tc qdisc add dev e0 root handle 5: pfifo limit 9");
    room.sh("mount -t tmpfs none /run; mkdir /run/udev; : >/run/udev/control");
    fs::create_dir_all(room.etc("udev/rules.d")).unwrap();
    let words = ["plan", "--dev", "d0", "--dev", "e0", "--profile", "gateway"];
    let own = ["--qdisc", "d0=pfifo limit 40", "--qdisc", "e0=bfifo limit 30000"];
    let output = room
        .called(INSTALLED, &[&words[..], &own, &["--rate", "e0=8mbit", "-o", "plan.toml"]].concat())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", crate::said(&output));
    Some(room)
}

fn says(room: &Room, words: &[&str]) -> String {
    let output = room.called(INSTALLED, words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", crate::said(&output));
    crate::text(&output.stdout)
}

/// What each has, without what the kernel counts.
fn queues(room: &Room) -> [bool; 2] {
    let has = |dev: &str, kind: &str| {
        room.sh(&format!("tc qdisc show dev {dev}")).contains(&format!("qdisc {kind} "))
    };
    [has("d0", "pfifo"), has("e0", "htb") && has("e0", "bfifo")]
}

#[test]
fn one_plan_for_two_interfaces() {
    let Some(room) = room() else { return };
    let before = room.all();
    assert_eq!(
        says(&room, &["apply", "--dry-run"]),
        "would put \"pfifo limit 40\" at the root of d0\n\
         would put \"htb rate 7600kbit leaf bfifo limit 30000\" at the root of e0\n\
         would write /etc/udev/rules.d/90-dualq.rules when confirmed\n"
    );
    says(&room, &["apply"]);
    assert_eq!(queues(&room), [true, true]);
    says(&room, &["confirm"]);
    let status = says(&room, &["status"]);
    for part in [
        "as planned     the qdisc of d0\n",
        "as planned     the qdisc of e0\n",
        "\nd0:\nqdisc pfifo",
        "\ne0:\nqdisc htb",
    ] {
        assert!(status.contains(part), "{status}");
    }
    // Each is called for by its own name, so that one that comes again is as it was.
    let rules = fs::read_to_string(room.etc(RULES)).unwrap();
    let call = |dev: &str| {
        let named = rules.lines().filter(|line| line.contains(&format!("KERNEL==\"{dev}\"")));
        let calls: Vec<&str> =
            named.filter_map(|line| line.split("RUN+=\"").nth(1)?.strip_suffix('"')).collect();
        let [call] = calls[..] else { panic!("{rules}") };
        room.sh(call);
    };
    room.sh(&format!("ip link del e0; {E0}"));
    assert_eq!(queues(&room), [true, false]);
    let status = says(&room, &["status"]);
    assert!(status.contains("as planned     the qdisc of d0\n"), "{status}");
    assert!(!status.contains("as planned     the qdisc of e0\n"), "{status}");
    call("e0");
    call("d0");
    assert_eq!(queues(&room), [true, true]);
    let status = says(&room, &["status"]);
    assert!(status.contains("as planned     the qdisc of e0\n"), "{status}");
    says(&room, &["rollback"]);
    assert_eq!(room.all(), before);
}

#[test]
fn both_are_taken_back_if_nobody_confirms() {
    let Some(room) = room() else { return };
    let before = room.all();
    says(&room, &["apply", "--confirm-within", "5s"]);
    assert_eq!(queues(&room), [true, true]);
    let deadline = Instant::now() + Duration::from_secs(60);
    while room.all() != before {
        assert!(Instant::now() < deadline, "it is not taken back");
        thread::sleep(Duration::from_millis(100));
    }
}

/// What is not as the plan found it at one of them leaves the other alone too.
#[test]
fn one_that_changed_keeps_all_from_being_changed() {
    let Some(room) = room() else { return };
    room.sh("tc qdisc replace dev e0 root handle 5: pfifo limit 11");
    let before = room.all();
    let output = room.called(INSTALLED, &["apply"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        crate::text(&output.stderr),
        "error: e0 is not as the plan found it: make a new plan\n"
    );
    assert_eq!(room.all(), before);
}
