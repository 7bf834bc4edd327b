//! The process that takes a plan back when nobody confirms it: as a unit of systemd, which a script plays, and as a plain
//! process.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use tests_skipped::is_the_machines_root;

use crate::namespaces::LINE;
use crate::room::{INSTALLED, Room};
use crate::{plan, qdisc, said, sysctl, text};

/// Starts what it is told to in a session of its own, and again if it fails, as a unit with `Restart=on-failure`. What it was asked
/// for is written down; `FOLDER` is where.
const SYSTEMD_RUN: &str = r#"
echo "$*" > FOLDER/asked
while [ "$1" != -- ]; do shift; done
shift
setsid sh -c '
    until "$@"; do echo again >> FOLDER/again; sleep 1; done
    echo ended >> FOLDER/again
' unit "$@" > /dev/null 2>&1 &
"#;

fn room(systemd_run: &str) -> Option<Room> {
    let room = Room::with_systemd()?;
    let folder = room.path(".");
    room.script("systemd-run", &systemd_run.replace("FOLDER", folder.to_str().unwrap()));
    room.plan(&plan([sysctl("net.ipv4.tcp_ecn", "2", "1"), qdisc("d0", "root noqueue", LINE)]));
    room.install();
    Some(room)
}

pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// What the watchdogs of a room are, by their folders in /proc.
fn watchdogs(room: &Room) -> Vec<PathBuf> {
    processes(room, "watch-over")
}

/// The processes of a room that were started by this word.
pub(crate) fn processes(room: &Room, word: &str) -> Vec<PathBuf> {
    let state = room.path("state");
    let is_one = |process: &PathBuf| {
        let words = fs::read_to_string(process.join("cmdline")).unwrap_or_default();
        let words: Vec<&str> = words.split('\0').collect();
        words.get(1) == Some(&word) && words.contains(&state.to_str().unwrap())
    };
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    processes.filter(is_one).collect()
}

pub(crate) fn kill(process: &std::path::Path) {
    let number = process.file_name().unwrap();
    let killed = std::process::Command::new("kill").arg("-KILL").arg(number).status();
    assert!(killed.unwrap().success());
}

const APPLY: [&str; 3] = ["apply", "--confirm-within", "5s"];

/// It is asked for so that it is started again however often it dies, and it is there when apply ends.
#[test]
fn a_unit_of_systemd_watches() {
    if !is_the_machines_root() {
        return;
    }
    let Some(room) = room(SYSTEMD_RUN) else { return };
    let before = room.all();
    // Long enough for all its deaths.
    let output = room.called(INSTALLED, &["apply", "--confirm-within", "30s"]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(text(&output.stderr), "");
    let asked = fs::read_to_string(room.path("asked")).unwrap();
    for words in [
        "--property=Restart=on-failure",
        "--property=StartLimitIntervalSec=0",
        "--service-type=exec",
    ] {
        assert!(asked.contains(words), "{asked}");
    }
    let call = format!("-- {INSTALLED} watch-over 1 --unit --state ");
    assert!(asked.contains(&call), "{asked}");
    // More often than systemd lets a unit fail by default.
    for deaths in 1..=6 {
        wait_until("it is started again", || watchdogs(&room).len() == 1);
        kill(&watchdogs(&room)[0]);
        let again = || fs::read_to_string(room.path("again")).unwrap_or_default();
        wait_until("its death is seen", || again().matches("again").count() == deaths);
    }
    wait_until("it is taken back", || room.all() == before);
    wait_until("it ends then", || {
        fs::read_to_string(room.path("again")).is_ok_and(|text| text.contains("ended"))
    });
}

/// That systemd takes an order does not mean that somebody watches.
#[test]
fn a_unit_that_never_watches_is_not_relied_on() {
    if !is_the_machines_root() {
        return;
    }
    let Some(room) = room("exit 0") else { return };
    let before = room.all();
    let output = room.called(INSTALLED, &APPLY).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(
        text(&output.stderr),
        "note: systemd did not start a unit that watches over the plan; a plain process does it\n"
    );
    assert_eq!(watchdogs(&room).len(), 1);
    wait_until("it is taken back", || room.all() == before);
}

/// systemd is told to start only what nobody but root can have put there.
#[test]
fn a_program_that_is_not_installed_is_no_unit() {
    let Some(room) = room(SYSTEMD_RUN) else { return };
    let before = room.all();
    let program = room.path("dualq");
    room.copy_to(&program);
    let output = room.called(program.to_str().unwrap(), &APPLY).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let line = text(&output.stderr);
    assert!(
        line.starts_with(
            "note: what watches over the plan is a plain process and no unit of systemd, for /"
        ),
        "{line}"
    );
    assert!(!room.path("asked").exists());
    assert_eq!(watchdogs(&room).len(), 1);
    room.says(&["rollback"]);
    assert_eq!(room.all(), before);
}

/// A record that cannot be read for a while is no reason to give up.
#[test]
fn what_fails_is_tried_again() {
    let Some(room) = Room::new() else { return };
    room.plan(&plan([sysctl("net.ipv4.tcp_ecn", "2", "1"), qdisc("d0", "root noqueue", LINE)]));
    let before = room.all();
    room.says(&APPLY);
    let applied = room.all();
    let record = room.path("state/record-000001.json");
    let content = fs::read(&record).unwrap();
    fs::write(&record, "{").unwrap();
    // Until after its time.
    thread::sleep(Duration::from_secs(7));
    assert_eq!(room.all(), applied);
    assert_eq!(watchdogs(&room).len(), 1, "it is still there");
    fs::write(&record, content).unwrap();
    wait_until("it is taken back", || room.all() == before);
}
