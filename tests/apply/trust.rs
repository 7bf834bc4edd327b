//! What root is asked to trust: the program that a rule calls, the folder of records, the records. Each test is an attack.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::Path;

use dualq_host::plan::What;
use serde_json::{Value, json};

use tests_skipped::is_the_machines_root;

use crate::namespaces::LINE;
use crate::room::{INSTALLED, Room};
use crate::{file, plan, qdisc, sysctl};

const RULES: &str = "/etc/udev/rules.d/90-dualq.rules";
/// A user who is not root.
const SOMEBODY: u32 = 1234;

/// What has `program` called whenever d0 appears.
fn rule(program: &str, state: &Path) -> What {
    let call = format!("{program} on-boot --state {} d0 '{LINE}'", state.display());
    let rule =
        format!("ACTION==\"add|move\", SUBSYSTEM==\"net\", KERNEL==\"d0\", RUN+=\"{call}\"\n");
    file(RULES, None, &rule)
}

fn room_with(program: &str) -> Option<Room> {
    let room = Room::new()?;
    room.install();
    room.plan(&plan([sysctl("net.ipv4.tcp_ecn", "2", "1"), rule(program, &room.path("state"))]));
    Some(room)
}

/// A plan comes from anywhere. Whoever can write to the program that its rule names is root at the next event.
#[test]
fn a_rule_calls_only_the_program_that_is_installed() {
    if !is_the_machines_root() {
        return;
    }
    let Some(room) = Room::new() else { return };
    room.install();
    fs::create_dir(room.path("x")).unwrap();
    let evil = room.path("x/dualq");
    let evil = evil.to_str().unwrap();
    room.plan(&plan([sysctl("net.ipv4.tcp_ecn", "2", "1"), rule(evil, &room.path("state"))]));
    let before = room.all();
    // It need not even be there yet.
    for words in [&["apply"][..], &["apply", "--dry-run"]] {
        let said = room.refused(room.called(INSTALLED, words));
        assert_eq!(
            said,
            format!(
                "{RULES} would have root run {evil}, and this is {INSTALLED}: sudo install -m 755 {INSTALLED} {evil}, and apply the plan by that"
            )
        );
        assert_eq!(room.all(), before);
    }
    // Nor is it enough to be that program: others may write to its folder.
    room.copy_to(Path::new(evil));
    fs::set_permissions(room.path("x"), fs::Permissions::from_mode(0o777)).unwrap();
    let said = room.refused(room.called(evil, &["apply"]));
    assert!(said.starts_with(&format!("{RULES} would have root run {evil}, but /")), "{said}");
    assert!(
        said.contains(" can be written to by others than root: sudo install -m 755 "),
        "{said}"
    );
    assert!(said.ends_with(&format!("{evil} {INSTALLED}, and make a new plan by that")), "{said}");
    assert_eq!(room.all(), before);
}

#[test]
fn the_installed_program_is_called() {
    if !is_the_machines_root() {
        return;
    }
    let Some(room) = room_with(INSTALLED) else { return };
    let before = room.all();
    let says = |words: &[&str]| {
        let output = room.called(INSTALLED, words).output().unwrap();
        assert!(output.status.success(), "{}", crate::said(&output));
    };
    says(&["apply"]);
    // By the time that it is written, the program may have become another's.
    fs::set_permissions(room.path("bin"), fs::Permissions::from_mode(0o777)).unwrap();
    let said = room.refused(room.called(INSTALLED, &["confirm"]));
    assert!(said.contains("/usr/local/bin can be written to by others than root"), "{said}");
    assert!(!room.etc("udev").exists());
    chown(room.path("bin/dualq"), Some(SOMEBODY), None).unwrap();
    fs::set_permissions(room.path("bin"), fs::Permissions::from_mode(0o755)).unwrap();
    let said = room.refused(room.called(INSTALLED, &["confirm"]));
    assert!(said.contains(&format!("{INSTALLED} does not belong to root")), "{said}");
    chown(room.path("bin/dualq"), Some(0), None).unwrap();
    says(&["confirm"]);
    // What is in the file puts the qdisc there, and finds its records.
    let rules = fs::read_to_string(room.etc("udev/rules.d/90-dualq.rules")).unwrap();
    let command = rules.split_once("RUN+=\"").unwrap().1.split_once('"').unwrap().0;
    assert_eq!(room.sh(command), "");
    assert!(room.sh("tc qdisc show dev d0").contains("tbf"));
    room.sh("tc qdisc del dev d0 root");
    says(&["rollback"]);
    assert_eq!(room.all(), before);
}

/// The call at boot looks where the records are, or an unfinished plan stays for good.
#[test]
fn a_rule_that_looks_for_records_elsewhere() {
    if !is_the_machines_root() {
        return;
    }
    let Some(room) = Room::new() else { return };
    room.install();
    let state = room.path("state");
    let refused = |what: What| {
        room.plan(&plan([what]));
        room.refused(room.called(INSTALLED, &["apply"]))
    };
    let usual = format!(
        "ACTION==\"add|move\", SUBSYSTEM==\"net\", KERNEL==\"d0\", RUN+=\"{INSTALLED} on-boot d0 '{LINE}'\"\n"
    );
    assert_eq!(
        refused(file(RULES, None, &usual)),
        format!(
            "{RULES} would look for records in /var/lib/dualq, and --state is {}: give both the same folder, a plan by `dualq plan --state`",
            state.display()
        )
    );
    let said = refused(rule(INSTALLED, Path::new("/etc/elsewhere")));
    assert!(said.contains("would look for records in /etc/elsewhere, and"), "{said}");
    let said = refused(rule(INSTALLED, Path::new("/etc/../tmp/x")));
    assert!(said.contains("is no absolute path of plain letters"), "{said}");
}

/// Settings that do more than can be put back.
#[test]
fn sysctls_that_dualq_does_not_plan() {
    let Some(room) = Room::new() else { return };
    let before = room.all();
    for key in [
        "net.ipv6.conf.all.disable_ipv6",
        "net.ipv6.conf.d0.disable_ipv6",
        "net.ipv4.ip_forward",
        "net.ipv4.conf.all.forwarding",
        "net.ipv4.conf.all.rp_filter",
        "net.ipv4.tcp_mem",
        "net.netfilter.nf_conntrack_max",
        "net.ipv4.ip_local_port_range",
    ] {
        for what in [
            sysctl(key, "0", "1"),
            file("/etc/sysctl.d/90-dualq.conf", None, &format!("{key} = 1\n")),
        ] {
            room.plan(&plan([what]));
            let said = room.refuses(&["apply"]);
            let list = format!(
                "{key:?} is no sysctl that a plan sets: these are net.core.default_qdisc, "
            );
            assert!(said.contains(&list), "{said}");
            assert_eq!(room.all(), before);
        }
    }
}

/// A record as somebody else would like it: taken back by force, a file and a sysctl become what he wants.
fn forged(room: &Room, change: impl FnOnce(&mut Value)) {
    room.plan(&plan([
        qdisc("d0", "root noqueue", LINE),
        file("/etc/sysctl.d/90-dualq.conf", None, "net.ipv4.tcp_ecn = 1\n"),
    ]));
    room.says(&["apply"]);
    room.says(&["confirm"]);
    let path = room.path("state/record-000001.json");
    let mut record: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    record["phase"] = json!("rolling-back");
    record["why"] = json!("x");
    record["force"] = json!(true);
    change(&mut record);
    fs::write(&path, record.to_string()).unwrap();
}

#[test]
fn a_record_asks_for_what_no_plan_does() {
    let evil = json!({"content": "* * * * * root evil\n", "mode": 0o644, "owner": [0, 0], "changed": [0, 0]});
    type Attack<'a> = Box<dyn Fn(&mut Value) + 'a>;
    let attacks: [(&str, Attack); 12] = [
        (
            "is no file that a plan writes",
            Box::new(|record| {
                record["plan"]["change"][1]["path"] = json!("/etc/cron.d/x");
                record["entries"][1]["before"]["file"] = evil.clone();
            }),
        ),
        (
            "dualq would not have recorded",
            Box::new(|record| {
                record["entries"][1]["before"]["file"] = evil.clone();
                record["entries"][1]["before"]["file"]["mode"] = json!(0o100_4755);
            }),
        ),
        (
            "is no sysctl that a plan sets",
            Box::new(|record| {
                record["plan"]["change"][0] = json!({"why": "x", "source": "x", "what": "sysctl", "key": "kernel.core_pattern", "before": "core", "after": "x"});
                record["entries"][0]["before"] = json!({"what": "sysctl", "value": "|/tmp/evil"});
            }),
        ),
        (
            "is no value of such a sysctl",
            Box::new(|record| {
                record["plan"]["change"][0] = json!({"why": "x", "source": "x", "what": "sysctl", "key": "net.ipv4.tcp_ecn", "before": "2", "after": "1"});
                record["entries"][0]["before"] = json!({"what": "sysctl", "value": "1\n2"});
            }),
        ),
        (
            "is no value of gso_max_segs",
            Box::new(|record| {
                record["plan"]["change"][0] = json!({"why": "x", "source": "x", "what": "offload", "dev": "d0", "key": "gso_max_segs", "before": "65535", "after": "1"});
                record["entries"][0]["before"] = json!({"what": "offload", "value": "0"});
            }),
        ),
        (
            "plans switch nothing on",
            Box::new(|record| {
                record["plan"]["change"][0] = json!({"why": "x", "source": "x", "what": "offload", "dev": "d0", "key": "lro", "before": "off", "after": "on"});
                record["entries"][0]["before"] = json!({"what": "offload", "value": "off"});
            }),
        ),
        ("is to become what is no name", Box::new(|record| record["borrowed"] = json!("fq\n../x"))),
        (
            "the record of the tbf is damaged",
            Box::new(|record| {
                record["entries"][0]["before"]["tree"] =
                    json!([{"kind": "tbf", "handle": 1, "parent": u32::MAX, "options": "0011zz"}]);
            }),
        ),
        (
            "is no kind of qdisc",
            Box::new(|record| {
                record["entries"][0]["before"]["tree"] =
                    json!([{"kind": "a b", "handle": 1, "parent": u32::MAX}]);
            }),
        ),
        (
            "not one entry for each change",
            Box::new(|record| drop(record["entries"].as_array_mut().unwrap().pop())),
        ),
        (
            "not of the kinds of its changes",
            Box::new(|record| record["entries"].as_array_mut().unwrap().reverse()),
        ),
        ("its number is another", Box::new(|record| record["number"] = json!(7))),
    ];
    for (reason, attack) in &attacks {
        let Some(room) = Room::new() else { return };
        forged(&room, attack);
        let before = room.all();
        for words in [&["rollback"][..], &["rollback", "--force"], &["status"], &["confirm"]] {
            let said = room.refuses(words);
            assert!(said.contains("record-000001.json") && said.contains(reason), "{said}");
        }
        assert_eq!(room.all(), before, "{reason}");
        assert!(!room.etc("cron.d").exists());
    }
}

/// Who could write to the folder of records could have root write anything.
#[test]
fn a_folder_of_records_that_is_somebody_elses() {
    if !is_the_machines_root() {
        return;
    }
    let Some(room) = Room::new() else { return };
    forged(&room, |_| {});
    let before = room.all();
    let (state, record) = (room.path("state"), room.path("state/record-000001.json"));
    let refuses = |reason: &str| {
        for words in [&["rollback"][..], &["status"], &["apply"], &["on-boot", "d1", LINE]] {
            let output = room.dualq(words);
            let said = crate::said(&output);
            assert!(said.contains(reason), "{words:?}: {said}");
            assert!(!output.status.success() || words[0] == "on-boot", "{words:?}: {said}");
        }
        let on_boot = room.sh("tc qdisc del dev d1 root 2>/dev/null || true");
        assert_eq!((on_boot.as_str(), room.all()), ("", before.clone()));
    };
    chown(&state, Some(SOMEBODY), None).unwrap();
    refuses("it belongs to user 1234, not to root");
    chown(&state, Some(0), None).unwrap();
    for mode in [0o777, 0o1777, 0o775] {
        fs::set_permissions(&state, fs::Permissions::from_mode(mode)).unwrap();
        refuses(&format!("others than its owner may write to it (mode {mode:04o})"));
    }
    fs::set_permissions(&state, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(&state, room.path("real")).unwrap();
    symlink(room.path("real"), &state).unwrap();
    refuses("it is a symbolic link or no folder");
    fs::remove_file(&state).unwrap();
    fs::rename(room.path("real"), &state).unwrap();
    // The same of the record itself.
    chown(&record, Some(SOMEBODY), None).unwrap();
    refuses("record-000001.json: it belongs to user 1234, not to root");
    chown(&record, Some(0), None).unwrap();
    fs::set_permissions(&record, fs::Permissions::from_mode(0o666)).unwrap();
    refuses("record-000001.json: others than its owner may write to it");
    fs::rename(&record, room.path("elsewhere")).unwrap();
    symlink(room.path("elsewhere"), &record).unwrap();
    refuses("record-000001.json: it is a symbolic link");
    fs::remove_file(&record).unwrap();
    // Whoever opened it would wait for ever.
    room.sh("mkfifo state/record-000001.json");
    refuses("record-000001.json: ");
}

#[test]
fn plans_and_facts_that_do_not_end() {
    let Some(room) = Room::new() else { return };
    assert_eq!(
        room.refuses(&["apply", "/dev/zero"]),
        "the plan /dev/zero: a plan has at most 256 KiB, this file is longer"
    );
    assert!(room.refuses(&["confirm", "/dev/zero"]).contains("a plan has at most 256 KiB"));
    for words in [&["plan", "--facts", "/dev/zero"][..], &["doctor", "--facts", "/dev/zero"]] {
        let mut command = room.command(crate::DUALQ);
        command.args(words);
        let said = room.refused(command);
        assert!(said.starts_with("/dev/zero holds no facts: it is larger than 4 MiB; "), "{said}");
    }
}
