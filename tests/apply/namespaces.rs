//! The program as its user runs it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use dualq_host::Plan;
use serde_json::Value;

use tests_skipped::{for_anybody, is_the_machines_root};

use crate::room::Room;
use crate::{DUALQ, file, plan, qdisc, said, sysctl, text};

const FILE: &str = "/etc/sysctl.d/90-dualq.conf";
/// What every kernel with queue disciplines has.
pub(crate) const LINE: &str = "tbf rate 48mbit burst 10kb latency 50ms";

fn usual() -> Plan {
    plan([
        sysctl("net.ipv4.tcp_ecn", "2", "1"),
        qdisc("d0", "root noqueue", LINE),
        file(FILE, None, "net.ipv4.tcp_ecn = 1\n"),
        file("/etc/modules-load.d/dualq.conf", None, "sch_tbf\n"),
    ])
}

/// What a room needs for a plan, with the plan in it.
fn room(plan: &Plan) -> Option<Room> {
    let room = Room::new()?;
    room.plan(plan);
    Some(room)
}

#[test]
fn applied_confirmed_and_taken_back_a_later_day() {
    let Some(room) = room(&usual()) else { return };
    let before = room.all();
    // Who only asks leaves no trace.
    fs::remove_dir(room.path("state")).unwrap();
    assert_eq!(room.says(&["status"]), "no plan is applied here\n");
    assert_eq!(room.refuses(&["confirm"]), "no plan is applied here");
    assert_eq!(room.refuses(&["rollback", "--dry-run"]), "no plan is applied here");

    let would = room.says(&["apply", "--dry-run"]);
    assert_eq!(
        would,
        "would set net.ipv4.tcp_ecn from 2 to 1\n\
         would put \"tbf rate 48mbit burst 10kb latency 50ms\" at the root of d0\n\
         would write /etc/sysctl.d/90-dualq.conf when confirmed\n\
         would write /etc/modules-load.d/dualq.conf when confirmed\n"
    );
    assert_eq!(room.all(), before);
    assert!(!room.path("state").exists());

    let applied = room.says(&["apply"]);
    assert!(
        applied.ends_with(
            "`dualq confirm` within 60 s keeps it, and writes 2 files; else all is taken back\n"
        ),
        "{applied}"
    );
    assert!(room.sh("tc qdisc show dev d0").contains("qdisc tbf d0: root"));
    assert_eq!(room.sh("sysctl -n net.ipv4.tcp_ecn"), "1\n");
    // Nothing that outlasts a restart is there yet.
    assert_eq!(fs::read_dir(room.etc("sysctl.d")).unwrap().count(), 0);
    let status = room.says(&["status"]);
    for part in [
        "plan: a plan for tests\n",
        "as planned     the qdisc of d0\n",
        "to be written  /etc/sysctl.d/90-dualq.conf\n",
        "d0:\nqdisc tbf",
        " Sent ",
    ] {
        assert!(status.contains(part), "{status}");
    }
    let again = room.says(&["apply"]);
    assert!(again.starts_with("nothing to change: the plan is applied; "), "{again}");

    assert_eq!(room.says(&["confirm", "--dry-run"]), "it can be confirmed: a plan for tests\n");
    assert!(!room.etc("modules-load.d").exists());
    let said = room.says(&["confirm"]);
    assert!(
        said.ends_with("confirmed: a plan for tests; `dualq rollback` takes it back\n"),
        "{said}"
    );
    let written = room.etc("sysctl.d/90-dualq.conf");
    assert_eq!(fs::read_to_string(&written).unwrap(), "net.ipv4.tcp_ecn = 1\n");
    assert_eq!(written.metadata().unwrap().permissions().mode() & 0o7777, 0o644);
    assert_eq!(room.says(&["confirm"]), "nothing to change: confirmed is a plan for tests\n");
    let after = room.all();
    assert_eq!(room.says(&["apply"]), "nothing to change: all is as the plan asks for\n");
    assert_eq!(room.all(), after);

    assert_eq!(room.says(&["rollback", "--dry-run"]), "it can be rolled back\n");
    assert_eq!(room.all(), after);
    room.says(&["rollback"]);
    assert_eq!(room.all(), before);
    assert_eq!(room.refuses(&["rollback"]), "no plan is applied here");
    let said = room.refuses(&["confirm"]);
    assert!(said.starts_with("a plan for tests was taken back "), "{said}");
    assert!(said.ends_with(" ago: somebody asked for it; no plan is in force"), "{said}");
}

/// Who confirms too late hears that, even if an earlier plan is there to stay; and nobody confirms what somebody else applied
/// if he names his own.
#[test]
fn a_late_confirm_fails() {
    let Some(room) = room(&usual()) else { return };
    room.says(&["apply"]);
    room.says(&["confirm", "plan.toml"]);
    let first = room.all();
    let second = Plan {
        about: "the second plan".to_owned(),
        ..plan([sysctl("net.ipv4.tcp_mtu_probing", "0", "1")])
    };
    room.plan(&second);
    room.says(&["apply", "--confirm-within", "5s"]);
    assert_ne!(room.sh("sysctl -n net.ipv4.tcp_mtu_probing"), "0\n");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !room.says(&["status"]).contains("after it: the second plan, taken back ") {
        assert!(Instant::now() < deadline, "it is not taken back");
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(room.all(), first);
    let status = room.says(&["status"]);
    assert!(status.starts_with("plan: a plan for tests\nconfirmed; applied "), "{status}");
    assert!(status.contains(" ago: it was not confirmed within 5 s\n"), "{status}");
    let said = room.refuses(&["confirm"]);
    assert!(said.starts_with("the second plan was taken back "), "{said}");
    assert!(
        said.ends_with(": it was not confirmed within 5 s; in force is a plan for tests"),
        "{said}"
    );
    // What was taken back last is told of, though it was applied before.
    room.says(&["rollback"]);
    let status = room.says(&["status"]);
    assert!(status.starts_with("last plan: a plan for tests\n"), "{status}");
    assert!(status.contains("somebody asked for it"), "{status}");
    // A colleague's.
    let third = Plan { about: "a colleague's plan".to_owned(), ..second };
    room.plan(&third);
    room.says(&["apply"]);
    fs::write(room.path("mine.toml"), usual().write()).unwrap();
    assert_eq!(
        room.refuses(&["confirm", "mine.toml"]),
        "that plan is not the one that is applied here, which is a colleague's plan"
    );
    assert!(room.says(&["status"]).contains("`dualq confirm` within "));
    room.says(&["confirm", "plan.toml"]);
}

/// To look changes nothing, also if something is to be finished.
#[test]
fn status_says_what_is_unfinished_and_leaves_it() {
    let Some(room) = room(&usual()) else { return };
    let before = room.all();
    room.says(&["apply", "--confirm-within", "5s"]);
    let state = room.path("state");
    // Nobody is left who would take it back.
    for process in fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path()) {
        let words = fs::read_to_string(process.join("cmdline")).unwrap_or_default();
        if words.contains("watch-over") && words.contains(state.to_str().unwrap()) {
            let number = process.file_name().unwrap().to_owned();
            assert!(Command::new("kill").arg("-KILL").arg(number).status().unwrap().success());
        }
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    let line = "is to be taken back, `dualq rollback` does that: it was not confirmed within 5 s\n";
    while !room.says(&["status"]).contains(line) {
        assert!(Instant::now() < deadline, "{}", room.says(&["status"]));
        thread::sleep(Duration::from_millis(100));
    }
    assert_ne!(room.all(), before);
    let json: Value = serde_json::from_str(&room.says(&["status", "--json"])).unwrap();
    assert_eq!(json["unfinished"], "it was not confirmed within 5 s");
    room.says(&["rollback"]);
    assert_eq!(room.all(), before);
}

/// Nobody is there who could: the program has ended, and its watchdog does it.
#[test]
fn taken_back_if_nobody_confirms() {
    let Some(room) = room(&usual()) else { return };
    let before = room.all();
    room.says(&["apply", "--confirm-within", "5s"]);
    assert_ne!(room.all(), before);
    let deadline = Instant::now() + Duration::from_secs(60);
    while room.all() != before {
        assert!(Instant::now() < deadline, "it is not taken back");
        thread::sleep(Duration::from_millis(100));
    }
    // Its last act is to say why.
    let why = "was not confirmed within 5 s";
    while !room.says(&["status"]).contains(why) {
        assert!(Instant::now() < deadline, "{}", room.says(&["status"]));
    }
    let said = room.refuses(&["confirm"]);
    assert!(said.starts_with("a plan for tests was taken back "), "{said}");
}

/// The watchdog gets no signal of the terminal's, and takes no notice of those that it gets.
#[test]
fn the_watchdog_outlives_the_session() {
    let Some(room) = room(&usual()) else { return };
    let before = room.all();
    room.says(&["apply", "--confirm-within", "5s"]);
    let state = room.path("state");
    let is_ours =
        |words: &str| words.contains("watch-over") && words.contains(state.to_str().unwrap());
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let watchdog = processes
        .filter(|path| fs::read_to_string(path.join("cmdline")).is_ok_and(|words| is_ours(&words)))
        .collect::<Vec<_>>();
    let [watchdog] = watchdog.as_slice() else { panic!("{watchdog:?}") };
    let number = watchdog.file_name().unwrap().to_str().unwrap();
    // Its own session: the first number behind the name's parenthesis but three.
    let stat = fs::read_to_string(watchdog.join("stat")).unwrap();
    let session = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(3).unwrap().to_owned();
    assert_eq!(session, number);
    for signal in ["-HUP", "-INT", "-TERM", "-PIPE"] {
        assert!(Command::new("kill").args([signal, number]).status().unwrap().success());
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    while room.all() != before {
        assert!(Instant::now() < deadline, "it is not taken back");
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn the_second_of_two_is_refused() {
    let Some(room) = room(&usual()) else { return };
    let before = room.all();
    // Whoever has the lock is at work.
    let refused_meanwhile = |calls: &[&[&str]]| {
        let mut other = Command::new("flock")
            .arg(room.path("state/lock"))
            .args(["sh", "-c", "echo locked; exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = [0; 7];
        std::io::Read::read_exact(other.stdout.as_mut().unwrap(), &mut line).unwrap();
        for words in calls {
            let said = room.refuses(words);
            assert_eq!(said, "another dualq is changing this machine; try again when it is done");
        }
        drop(other.stdin.take());
        other.wait().unwrap();
    };
    refused_meanwhile(&[&["apply"], &["apply", "--dry-run"]]);
    assert_eq!(room.all(), before);
    // For real: of many at once, one does it.
    let calls: Vec<_> = (0..8)
        .map(|_| {
            room.prepared(&["apply"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let mut applied = 0;
    for call in calls {
        let output = call.wait_with_output().unwrap();
        let said = said(&output);
        if said.contains("\napplied; ") {
            applied += 1;
        } else {
            assert!(said.contains("another dualq") || said.contains("nothing to change"), "{said}");
        }
    }
    assert_eq!(applied, 1);
    refused_meanwhile(&[&["apply"], &["confirm"], &["rollback"]]);
    room.says(&["rollback"]);
    assert_eq!(room.all(), before);
}

#[test]
fn what_somebody_changed_since_is_not_overwritten() {
    let Some(room) = room(&usual()) else { return };
    let before = room.all();
    room.says(&["apply"]);
    room.says(&["confirm"]);
    let written = room.etc("sysctl.d/90-dualq.conf");
    fs::write(&written, "net.ipv4.tcp_ecn = 1\nnet.ipv4.tcp_sack = 1\n").unwrap();
    room.sh("tc qdisc replace dev d0 root handle 77: pfifo limit 7");
    let after = room.all();
    let output = room.dualq(&["rollback"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        text(&output.stderr),
        "error: d0, /etc/sysctl.d/90-dualq.conf changed since: --force takes it back all the same\n"
    );
    assert_eq!(
        text(&output.stdout),
        "d0\n- root tbf rate 48mbit burst 10kb latency 50ms\n+ root pfifo limit 7p\n\
         /etc/sysctl.d/90-dualq.conf\n+ net.ipv4.tcp_sack = 1\n"
    );
    assert_eq!(room.all(), after);
    let status = room.says(&["status"]);
    assert!(status.contains("drifted        the qdisc of d0\n"), "{status}");
    let json: Value = serde_json::from_str(&room.says(&["status", "--json"])).unwrap();
    assert_eq!(json["phase"], "confirmed");
    let standing: Vec<_> =
        json["changes"].as_array().unwrap().iter().map(|change| &change["standing"]).collect();
    assert_eq!(standing, ["as-planned", "drifted", "drifted", "as-planned"]);
    assert_eq!(json["interfaces"][0]["qdiscs"][0]["kind"], "pfifo");
    room.says(&["rollback", "--force"]);
    assert_eq!(room.all(), before);
}

#[test]
fn a_plan_for_another_machine_is_refused_with_what_differs() {
    let Some(room) = room(&usual()) else { return };
    room.sh("sysctl -q net.ipv4.tcp_ecn=0; tc qdisc add dev d0 root handle 5: pfifo limit 9");
    let before = room.all();
    let output = room.dualq(&["apply"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        text(&output.stderr),
        "error: net.ipv4.tcp_ecn, d0 is not as the plan found it: make a new plan\n"
    );
    assert_eq!(
        text(&output.stdout),
        "net.ipv4.tcp_ecn\n- 2\n+ 0\nd0\n- root noqueue\n+ root pfifo limit 9p\n"
    );
    let other = Plan { kernel: "1.2.3".to_owned(), ..usual() };
    room.plan(&other);
    let said = room.refuses(&["apply"]);
    assert!(said.starts_with("the plan was made for Linux 1.2.3, this is "), "{said}");
    assert_eq!(room.all(), before);
}

/// Two plans, one over the other, come off one at a time.
#[test]
fn plans_are_taken_back_in_turn() {
    let Some(room) = room(&usual()) else { return };
    let before = room.all();
    room.says(&["apply"]);
    room.plan(&plan([sysctl("net.ipv4.tcp_mtu_probing", "0", "1")]));
    let said = room.refuses(&["apply"]);
    assert_eq!(
        said,
        "another plan waits to be confirmed (a plan for tests): `dualq confirm` or `dualq rollback` first"
    );
    room.says(&["confirm"]);
    let first = room.all();
    room.plan(&plan([sysctl("net.ipv4.tcp_ecn", "1", "0")]));
    room.says(&["apply"]);
    room.says(&["confirm"]);
    assert!(room.says(&["status"]).contains("below it: a plan for tests"));
    room.says(&["rollback"]);
    assert_eq!(room.all(), first);
    room.says(&["rollback"]);
    assert_eq!(room.all(), before);
}

#[test]
fn others_than_root_are_told_what_it_takes() {
    use std::os::unix::process::CommandExt as _;
    if !is_the_machines_root() {
        return;
    }
    let Some(room) = room(&usual()) else { return };
    fs::set_permissions(room.path("state"), fs::Permissions::from_mode(0o700)).unwrap();
    let program = for_anybody(DUALQ, &room.path("."));
    let nobody = 65534;
    assert_eq!(room.path("state").metadata().unwrap().uid(), 0);
    let changes = "changes sysctls, queue disciplines and files in /etc, which takes root: ";
    for (words, reason) in [
        (&["apply", "plan.toml"][..], changes),
        (&["confirm"], changes),
        (&["rollback"], changes),
        (&["status"], "takes root: "),
        (&["apply", "--dry-run", "plan.toml"], "takes root: "),
    ] {
        let state = room.path("state");
        let output = Command::new(&program)
            .args(words)
            .arg("--state")
            .arg(&state)
            .current_dir(room.path("."))
            .uid(nobody)
            .gid(nobody)
            .output()
            .unwrap();
        // What is to be typed then is what was typed.
        let again = format!("sudo dualq {} --state {}", words.join(" "), state.display());
        let reason = format!("{reason}{again}");
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        let line = text(&output.stderr);
        assert!(line.starts_with("error: ") && line.ends_with(&format!("{reason}\n")), "{line}");
    }
}

#[test]
fn words_that_are_wrong() {
    let Some(room) = room(&usual()) else { return };
    for time in ["4s", "2h", "3601s", "soon", "-5s"] {
        let output = room.dualq(&["apply", &format!("--confirm-within={time}")]);
        assert_eq!(output.status.code(), Some(2), "{time}: {}", said(&output));
    }
    assert!(
        room.refuses(&["apply", "no-such-plan.toml"])
            .starts_with("cannot read the plan no-such-plan.toml: ")
    );
}

/// Whoever listens to the kernel hears of no device that goes down, and of no route that goes away.
#[test]
fn the_way_out_is_there_all_the_time() {
    let Some(room) = room(&usual()) else { return };
    room.sh("ip addr add 10.0.0.1/24 dev d0; ip route add default via 10.0.0.2");
    let mut listener = room.command("ip");
    let mut listener = listener
        .args(["-o", "monitor", "link", "address", "route"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // It hears of what comes after it began.
    let mark = |name: &str| {
        room.sh(&format!("ip link add {name} type ifb || ip link add {name} type veth"))
    };
    let mut heard = BufReader::new(listener.stdout.take().unwrap()).lines().map(Result::unwrap);
    let deadline = Instant::now() + Duration::from_secs(20);
    thread::scope(|scope| {
        let marked = scope.spawn(|| {
            for number in 0.. {
                mark(&format!("m{number}"));
                thread::sleep(Duration::from_millis(50));
                if number >= 5 || Instant::now() > deadline {
                    return;
                }
            }
        });
        heard.by_ref().find(|line| line.contains(": m")).unwrap();
        marked.join().unwrap();
    });
    room.says(&["apply"]);
    room.says(&["confirm"]);
    room.says(&["rollback"]);
    mark("end");
    let between: Vec<String> = heard.take_while(|line| !line.contains(": end")).collect();
    let lost = |line: &&String| {
        let is_its = line.contains("d0");
        is_its && (line.contains("Deleted") || (line.contains(": d0@") && !line.contains(",UP,")))
    };
    let lost: Vec<&String> = between.iter().filter(lost).collect();
    assert!(lost.is_empty(), "{lost:#?}");
    let _ = listener.kill();
    let _ = listener.wait();
}

#[test]
fn status_looks_again_and_again() {
    let Some(room) = room(&usual()) else { return };
    room.says(&["apply"]);
    let mut watching = room.prepared(&["status", "--watch"]);
    let mut watching = watching.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(watching.stdout.take().unwrap()).lines().map(Result::unwrap);
    let looks = lines.filter(|line| line == "plan: a plan for tests").take(3);
    assert_eq!(looks.count(), 3);
    let _ = watching.kill();
    let _ = watching.wait();
    room.says(&["rollback"]);
}
