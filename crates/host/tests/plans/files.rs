//! What brings it back at boot.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::Duration;

use dualq_host::Plan;
use dualq_host::facts::{Availability, Os};
use dualq_host::plan::{Change, Profile, Requirements, What};
use dualq_units::Rate;

use crate::{applied, content, machine, machines, plan};

/// What calls dualq when an interface appears, wherever the system looks.
#[test]
fn each_system_has_its_file() {
    let script = |when: &str| {
        format!(
            "# On ens3, as it was asked for.\n{when}; then\n\t/usr/local/bin/dualq on-boot ens3 \
                 'htb rate 45600kbit leaf dualpi2 classic_protection 12%'\nfi\n"
        )
    };
    let rule = "# On ens3, as it was asked for.\nACTION==\"add|move\", SUBSYSTEM==\"net\", KERNEL==\"ens3\", \
                RUN+=\"/usr/local/bin/dualq on-boot ens3 'htb rate 45600kbit leaf dualpi2 classic_protection 12%%'\"\n";
    let cases = [
        (true, "ifupdown", "/etc/udev/rules.d/90-dualq.rules", rule.to_owned()),
        (
            false,
            "networkmanager",
            "/etc/NetworkManager/dispatcher.d/90-dualq",
            script("if [ \"$1\" = 'ens3' ] && [ \"$2\" = up ]"),
        ),
        (false, "ifupdown", "/etc/network/if-up.d/dualq", script("if [ \"$IFACE\" = 'ens3' ]")),
        (
            false,
            "netifd",
            "/etc/hotplug.d/iface/90-dualq",
            script("if [ \"$ACTION\" = ifup ] && [ \"$DEVICE\" = 'ens3' ]"),
        ),
    ];
    for (udev, network, path, expected) in cases {
        let mut facts = machine("debian-10");
        facts.qdiscs.insert("dualpi2".to_owned(), Availability::Ready);
        facts.distribution.udev = udev;
        facts.distribution.network = vec![network.to_owned()];
        let requirements = Requirements {
            rate: Some(Rate::from_mbit(48)),
            qdisc: Some("dualpi2 classic_protection 12%".to_owned()),
            ..Requirements::default()
        };
        let plan = Plan::make(&facts, &requirements).unwrap();
        let text = content(&plan, path).unwrap_or_else(|| panic!("{path}: {plan:#?}"));
        assert!(text.ends_with(&format!("\n\n{expected}")), "{text}");
        assert_eq!(Plan::read(&plan.write()).unwrap(), plan);
    }
    let mut facts = machine("debian-10");
    facts.distribution.udev = false;
    facts.distribution.network.clear();
    let requirements = Requirements { rate: Some(Rate::from_mbit(48)), ..Requirements::default() };
    let plan = Plan::make(&facts, &requirements).unwrap();
    let call = "call /usr/local/bin/dualq on-boot ens3 'cake bandwidth 45600kbit'";
    assert!(plan.notes.iter().any(|note| note.contains(call)), "{:?}", plan.notes);
}

/// What calls dualq when an interface appears also takes back what a power cut left half confirmed: so it is there before any other file, and
/// goes after all of them. systemd-networkd would keep in memory what a removed drop-in said, and so gets none.
#[test]
fn the_call_is_the_first_file() {
    for (name, facts) in machines() {
        if facts.os != Os::Linux {
            continue;
        }
        let requirements =
            Requirements { rate: Some(Rate::from_mbit(48)), ..Requirements::default() };
        let Ok(plan) = Plan::make(&facts, &requirements) else { continue };
        let mut files = plan.changes.iter().filter_map(|change| match &change.what {
            What::File { path, after, .. } => Some((path.as_str(), after.contains(" on-boot "))),
            _ => None,
        });
        let (first, calls) = files.next().unwrap_or_else(|| panic!("{name}: {plan:#?}"));
        assert!(calls, "{name}: {first}");
        for (path, calls) in files {
            assert!(!calls && !path.starts_with("/etc/systemd/"), "{name}: {path}");
        }
    }
}

/// A shell makes of the files what was meant: one call, for this interface, with the line in one piece.
#[test]
fn scripts_call_dualq() {
    let folder = tempfile::tempdir().unwrap();
    let (program, said) = (folder.path().join("dualq"), folder.path().join("said"));
    let shown = format!("#!/bin/sh\nprintf '%s|' \"$@\" > {}\n", said.display());
    fs::write(&program, shown).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    for (network, path, run) in [
        ("networkmanager", "/etc/NetworkManager/dispatcher.d/90-dualq", "sh $FILE $DEV up"),
        ("ifupdown", "/etc/network/if-up.d/dualq", "IFACE=$DEV sh $FILE"),
        ("netifd", "/etc/hotplug.d/iface/90-dualq", "ACTION=ifup; DEVICE=$DEV; . $FILE"),
    ] {
        let mut facts = machine("debian-10");
        facts.distribution.udev = false;
        facts.distribution.network = vec![network.to_owned()];
        facts.dualq = Some(program.to_str().unwrap().to_owned());
        let requirements =
            Requirements { rate: Some(Rate::from_mbit(48)), ..Requirements::default() };
        let plan = Plan::make(&facts, &requirements).unwrap();
        let file = folder.path().join("file");
        fs::write(&file, content(&plan, path).unwrap()).unwrap();
        for (dev, expected) in
            [("ens3", Some("on-boot|ens3|cake bandwidth 45600kbit|")), ("ens30", None)]
        {
            let _ = fs::remove_file(&said);
            let mut shell = Command::new("sh");
            let status =
                shell.args(["-c", run]).env("FILE", &file).env("DEV", dev).status().unwrap();
            assert!(status.success(), "{path}");
            assert_eq!(fs::read_to_string(&said).ok().as_deref(), expected, "{path}");
        }
    }
}

/// A plan for one interface leaves what another's put in the same file.
#[test]
fn interfaces_do_not_disturb_each_other() {
    let mut facts = machine("debian-10");
    let mut second = facts.interfaces[0].clone();
    second.name = "ens4".to_owned();
    facts.interfaces.push(second);
    let requirements = |dev: &str, mbit| Requirements {
        rate: Some(Rate::from_mbit(mbit)),
        rtt: Some(Duration::from_millis(10)),
        dev: Some(dev.to_owned()),
        profile: Profile::Gateway,
        ..Requirements::default()
    };
    let path = "/etc/udev/rules.d/90-dualq.rules";
    for (dev, mbit) in [("ens4", 10), ("ens3", 20)] {
        let plan = Plan::make(&facts, &requirements(dev, mbit)).unwrap();
        facts = applied(facts, &plan);
    }
    let text = &facts.files[path].content;
    assert!(text.contains("ens3 'cake bandwidth 19mbit'"), "{text}");
    assert!(text.contains("ens4 'cake bandwidth 9500kbit'"), "{text}");
    for (dev, mbit) in [("ens4", 10), ("ens3", 20)] {
        let plan = Plan::make(&facts, &requirements(dev, mbit)).unwrap();
        assert!(plan.changes.is_empty(), "{plan:#?}");
    }
}

/// Another profile takes out what only the first wanted, but for one that is about queues alone.
#[test]
fn what_is_no_longer_wanted_goes() {
    let requirements = |profile| Requirements {
        profile,
        rate: Some(Rate::from_mbit(48)),
        ..Requirements::default()
    };
    let path = "/etc/sysctl.d/90-dualq.conf";
    let first = machine("debian-10");
    let plan = Plan::make(&first, &requirements(Profile::LowLatency)).unwrap();
    let facts = applied(first, &plan);
    let plan = Plan::make(&facts, &requirements(Profile::Bulk)).unwrap();
    let text = content(&plan, path).unwrap();
    assert!(text.contains("tcp_ecn = 1") && !text.contains("notsent_lowat"), "{text}");
    assert!(plan.notes.iter().any(|note| note.contains("tcp_notsent_lowat is no longer set")));
    let plan = Plan::make(&facts, &requirements(Profile::Gateway)).unwrap();
    assert!(plan.changes.is_empty(), "{plan:#?}");
}

/// A file that is read later would win at boot.
#[test]
fn other_files_do_not_win_unseen() {
    let wish = |requirements: &mut Requirements| requirements.cc = Some("cubic".to_owned());
    let plan = plan("debian-12", wish).unwrap();
    assert!(plan.notes.iter().any(|note| note.contains("/etc/sysctl.d/99-bbr.conf, line 2")));
    let path = "/etc/sysctl.d/zz-dualq.conf";
    let written =
        |change: &Change| matches!(&change.what, What::File { path: file, .. } if file == path);
    assert!(plan.changes.iter().any(written));

    let mut facts = machine("debian-12");
    // Not every system reads it by a link with a number.
    facts.distribution.init = "sysvinit".to_owned();
    facts.settings.last_mut().unwrap().file = "/etc/sysctl.conf".to_owned();
    let requirements = Requirements {
        rtt: Some(Duration::from_secs(1)),
        rate: Some(Rate::from_mbit(500)),
        ..Requirements::default()
    };
    let plan = Plan::make(&facts, &requirements).unwrap();
    let note = "/etc/sysctl.conf, line 72, sets net.ipv4.tcp_notsent_lowat to 16384 at boot and is read last";
    assert!(plan.notes.iter().any(|text| text.contains(note)), "{:?}", plan.notes);
}
