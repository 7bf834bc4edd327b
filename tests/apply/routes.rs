//! Routes that outlast their interface's going down, and what puts them back.

use std::fs;

use dualq_host::plan::What;
use tests_skipped::is_the_machines_root;

use crate::room::{INSTALLED, Room};
use crate::watchdog::{processes, wait_until};
use crate::{file, plan, said, text};

const RULES: &str = "/etc/udev/rules.d/90-dualq.rules";
const HOST: &str = "192.0.2.1/32";
const UP: &str = "ip addr add 10.0.0.1/24 dev d0; ip route add default via 10.0.0.2";

/// The rule of a plan that has a route by d0 to [`HOST`].
fn rules(room: &Room) -> String {
    format!(
        "# Written by dualq. It puts routes back.\n\n# To {HOST}, larger packets vanish.\n\
         ACTION==\"add|move\", SUBSYSTEM==\"net\", KERNEL==\"d0\", RUN+=\"{INSTALLED} on-boot --state {} --route {HOST} d0 'mtu 1400'\"\n",
        room.path("state").display()
    )
}

/// A room with the program, a way, and a plan for a route that stays.
fn furnish(room: &Room) {
    room.install();
    fs::create_dir_all(room.etc("udev/rules.d")).unwrap();
    room.sh(UP);
    let route = What::Route { to: HOST.parse().unwrap(), mtu: 1400 };
    room.plan(&plan([route, file(RULES, None, &rules(room))]));
}

fn says(room: &Room, words: &[&str]) -> String {
    let output = room.called(INSTALLED, words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", said(&output));
    said(&output)
}

fn route(room: &Room) -> String {
    room.sh(&format!("ip route show {HOST}"))
}

fn keepers(room: &Room) -> usize {
    processes(room, "put-back").len()
}

/// It is there again when the way is, with the router that there is then; what somebody has put there instead stays; and rollback ends
/// all of it.
#[test]
fn a_route_comes_back_with_its_interface() {
    let Some(room) = Room::new() else { return };
    furnish(&room);
    let before = room.all();
    says(&room, &["apply"]);
    assert_eq!(keepers(&room), 0, "until it is confirmed, nothing comes back");
    says(&room, &["confirm"]);
    assert_eq!(keepers(&room), 1);
    // Whoever asks again gets no second process.
    says(&room, &["confirm"]);
    says(&room, &["on-boot", "--route", HOST, "d0", "mtu 1400"]);
    assert_eq!(keepers(&room), 1);

    room.sh("ip link set d0 down; ip addr flush dev d0; ip link set d0 up");
    assert_eq!(route(&room), "");
    // By another interface it is no way of this route's.
    room.sh("ip link set d1 up; ip addr add 10.1.0.1/24 dev d1; ip route add default via 10.1.0.2 metric 100");
    assert!(says(&room, &["status"]).contains("as before"));
    room.sh("ip addr add 10.0.0.1/24 dev d0; ip route add default via 10.0.0.3");
    wait_until("the route is back", || route(&room).contains("via 10.0.0.3 dev d0"));
    assert!(route(&room).contains("mtu 1400"), "{}", route(&room));
    assert!(!says(&room, &["status"]).contains("as before"));
    room.sh("ip addr del 10.1.0.1/24 dev d1");

    // Who wants another has it.
    room.sh(&format!("ip route change {HOST} via 10.0.0.2 mtu 1300"));
    room.sh("ip route replace default via 10.0.0.2");
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert!(route(&room).contains("mtu 1300"), "{}", route(&room));
    room.sh(&format!("ip route del {HOST}"));
    wait_until("the route is back", || route(&room).contains("via 10.0.0.2 dev d0"));

    says(&room, &["rollback"]);
    assert_eq!(room.all(), before);
    wait_until("nothing keeps it any more", || keepers(&room) == 0);
    assert_eq!(room.all(), before);
}

/// One of somebody's own to the same place is neither taken for the plan's nor away with it; what somebody made of the plan's is left unless by force.
#[test]
fn somebodys_own_route_stays() {
    let Some(room) = Room::new() else { return };
    room.install();
    room.sh(UP);
    room.sh("ip link set d1 up; ip addr add 10.1.0.1/24 dev d1");
    let what = What::Route { to: HOST.parse().unwrap(), mtu: 1400 };
    let plan = plan([what]);
    room.plan(&plan);
    let before = room.all();
    says(&room, &["apply"]);
    room.sh(&format!("ip route add {HOST} via 10.1.0.2 metric 50"));
    assert!(!says(&room, &["status"]).contains("as before"));
    says(&room, &["rollback"]);
    assert_eq!(route(&room), "192.0.2.1 via 10.1.0.2 dev d1 metric 50 \n");
    room.sh(&format!("ip route del {HOST}"));
    assert_eq!(room.all(), before);

    says(&room, &["apply"]);
    room.sh(&format!("ip route change {HOST} via 10.1.0.2 mtu 1400"));
    let said = room.refuses(&["rollback"]);
    assert!(said.contains("the route to 192.0.2.1/32 changed since"), "{said}");
    let said = says(&room, &["status"]);
    assert!(said.contains("dev d0 mtu 1400") && said.contains("dev d1 mtu 1400"), "{said}");
    assert!(route(&room).contains("dev d1"), "{}", route(&room));
    says(&room, &["rollback", "--force"]);
    assert_eq!(room.all(), before);
}

/// At boot the rule is called before there is a way, and the call does not wait for one.
#[test]
fn a_rule_starts_what_waits_for_the_way() {
    let Some(room) = Room::new() else { return };
    furnish(&room);
    says(&room, &["apply"]);
    says(&room, &["confirm"]);
    // As after a restart: no process, no route.
    for process in processes(&room, "put-back") {
        crate::watchdog::kill(&process);
    }
    wait_until("it is dead", || keepers(&room) == 0);
    room.sh("ip link set d0 down; ip addr flush dev d0; ip link set d0 up");
    assert_eq!(says(&room, &["on-boot", "--route", HOST, "d0", "mtu 1400"]), "");
    wait_until("it waits", || keepers(&room) == 1);
    assert_eq!(route(&room), "");
    room.sh(UP);
    wait_until("the route is back", || route(&room).contains("mtu 1400"));
    says(&room, &["rollback"]);
    wait_until("nothing keeps it any more", || keepers(&room) == 0);
    // A rule that was read before it went finds nothing to do.
    says(&room, &["on-boot", "--route", HOST, "d0", "mtu 1400"]);
    assert_eq!(route(&room), "");
}

/// As a unit of systemd, which a call by a rule must not wait for.
#[test]
fn a_unit_of_systemd_puts_it_back() {
    if !is_the_machines_root() {
        return;
    }
    let Some(room) = Room::with_systemd() else { return };
    let asked = room.path("asked");
    room.script(
        "systemd-run",
        &format!(
            "echo \"$*\" >> {}; while [ \"$1\" != -- ]; do shift; done; shift; setsid \"$@\" > /dev/null 2>&1 &",
            asked.display()
        ),
    );
    furnish(&room);
    assert!(says(&room, &["apply"]).contains("applied"));
    says(&room, &["confirm"]);
    let call = format!("-- {INSTALLED} put-back --unit --state ");
    let last = || text(&fs::read(&asked).unwrap()).lines().last().unwrap().to_owned();
    assert!(last().contains(&call) && !last().contains("--no-block"), "{}", last());
    wait_until("it runs", || keepers(&room) == 1);
    for process in processes(&room, "put-back") {
        crate::watchdog::kill(&process);
    }
    wait_until("it is dead", || keepers(&room) == 0);
    says(&room, &["on-boot", "--route", HOST, "d0", "mtu 1400"]);
    assert!(last().contains(&call) && last().contains("--no-block"), "{}", last());
    wait_until("it runs again", || keepers(&room) == 1);
    says(&room, &["rollback"]);
    wait_until("nothing keeps it any more", || keepers(&room) == 0);
}

#[test]
fn what_is_no_route_is_refused() {
    let Some(room) = Room::new() else { return };
    furnish(&room);
    let before = room.all();
    for (to, line, why) in [
        (HOST, "mtu 100", "an MTU of 100"),
        (HOST, "mtu", "mtu 1400"),
        (HOST, "mtu 01400", "mtu 1400"),
        (HOST, "via 10.0.0.9", "mtu 1400"),
        ("0.0.0.0/0", "mtu 1400", "is everybody"),
        ("192.0.2.1", "mtu 1400", "is no destination"),
        ("192.0.2.1/24", "mtu 1400", "beyond its prefix length"),
        ("2001:db8::1/32", "mtu 1400", "beyond its prefix length"),
    ] {
        let output = room.dualq(&["on-boot", "--route", to, "d0", line]);
        assert_eq!(output.status.code(), Some(2), "{to} {line}: {}", said(&output));
        assert!(text(&output.stderr).contains(why), "{to} {line}: {}", said(&output));
    }
    let gone = room.refuses(&["on-boot", "--route", HOST, "d9", "mtu 1400"]);
    assert!(gone.contains("no device \"d9\""), "{gone}");
    assert_eq!((room.all(), keepers(&room)), (before, 0));
}
