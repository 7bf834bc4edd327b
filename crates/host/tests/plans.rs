//! What holds of every plan: for many machines, any wishes, and whatever somebody wrote into a file.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use dualq_host::facts::{Availability, File, Qdisc, Setting};
use dualq_host::plan::{Change, PlanError, Profile, What, Wishes};
use dualq_host::{Facts, Plan};
use dualq_qdisc::{Device, grammar};
use dualq_units::Rate;
use proptest::prelude::*;

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/facts"))
}

/// Each saved machine with its name.
fn machines() -> Vec<(String, Facts)> {
    let mut machines = Vec::new();
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        if path.extension().is_some_and(|extension| extension != "md") {
            machines.push((name.clone(), Facts::parse(&name, &text).unwrap()));
        }
    }
    machines.sort_by(|one, other| one.0.cmp(&other.0));
    assert!(machines.len() >= 15, "{machines:?}");
    machines
}

fn machine(name: &str) -> Facts {
    let machines = machines();
    machines.into_iter().find(|(file, _)| file.starts_with(name)).unwrap().1
}

/// The machine after the plan, as its facts would then say.
fn applied(mut facts: Facts, plan: &Plan) -> Facts {
    for change in &plan.changes {
        match change.what.clone() {
            What::Module { module } => {
                let (kind, name) = module.split_once('_').unwrap();
                let list = match kind {
                    "sch" => &mut facts.qdiscs,
                    _ => &mut facts.congestion_controls,
                };
                list.insert(name.to_owned(), Availability::Ready);
            }
            What::Sysctl { key, before, after } => {
                assert_eq!(facts.sysctls.insert(key, after), Some(before));
            }
            What::Qdisc { dev, before, after } => {
                let interface =
                    facts.interfaces.iter_mut().find(|interface| interface.name == dev).unwrap();
                assert_eq!(interface.qdisc_lines(), before);
                interface.qdiscs.clear();
                let mut spec = Some(grammar::parse(&after).unwrap().spec);
                let mut parent = "root".to_owned();
                for number in 1.. {
                    let Some(outer) = spec else { break };
                    let config = outer.configure(&Device::ethernet(interface.mtu));
                    interface.qdiscs.push(Qdisc {
                        kind: outer.kind().to_owned(),
                        handle: format!("{number}:"),
                        parent,
                        options: Some(config.to_string().trim().to_owned()),
                        ..Qdisc::default()
                    });
                    parent = format!("{number}:1");
                    spec = outer.leaf().cloned();
                }
            }
            What::File { path, before, after, mode } => {
                if path.contains("sysctl.d") {
                    facts.settings.retain(|setting| setting.file != path);
                    let entries =
                        after.lines().enumerate().filter(|(_, line)| line.contains(" = "));
                    let entries = entries.filter(|(_, line)| !line.starts_with('#'));
                    for (number, line) in entries {
                        let (key, value) = line.split_once(" = ").unwrap();
                        facts.settings.push(Setting {
                            file: path.clone(),
                            line: number as u32 + 1,
                            key: key.to_owned(),
                            value: value.to_owned(),
                        });
                    }
                }
                let file = facts.files.insert(path, File { mode, content: after });
                assert_eq!(file.map(|file| file.content), before);
            }
            What::Lines { path, after } => {
                let new = File { mode: "0644".to_owned(), content: String::new() };
                let file = facts.files.entry(path).or_insert(new);
                file.content.push_str(&(after.join("\n") + "\n"));
            }
            What::Route { .. } => panic!("not planned"),
        }
    }
    facts
}

fn wishes() -> impl Strategy<Value = Wishes> {
    let profile = prop::sample::select(vec![
        Profile::LowLatency,
        Profile::Bulk,
        Profile::Datacenter,
        Profile::Gateway,
    ]);
    let rate = prop::option::of((100_u64..2_000_000_000).prop_map(Rate::from_bits_per_second));
    let cc = prop::option::of(prop::sample::select(vec!["cubic", "bbr", "reno", "dctcp"]));
    let rtt = prop::option::of((1_u64..500_000).prop_map(Duration::from_micros));
    let lines = vec![
        "fq",
        "fq_codel",
        "dualpi2 target 5ms",
        "pie",
        "cake",
        "tbf rate 10mbit burst 10kb latency 9ms",
    ];
    let qdisc = prop::option::weighted(0.3, prop::sample::select(lines));
    (profile, rate, cc, rtt, qdisc).prop_map(|(profile, rate, cc, rtt, qdisc)| Wishes {
        profile,
        rate,
        rtt,
        cc: cc.map(str::to_owned),
        qdisc: qdisc.map(str::to_owned),
        ..Wishes::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// A plan reads back as it was written, its lines are tc's, and once it is applied there is nothing left to plan.
    #[test]
    fn plans_read_back_and_are_enough(number in 0_usize..64, wishes in wishes()) {
        let machines = machines();
        let (name, facts) = &machines[number % machines.len()];
        match Plan::make(facts, &wishes) {
            Err(error) => prop_assert!(!error.to_string().contains('\n')),
            Ok(plan) => {
                let text = plan.write();
                let again = Plan::read(&text).map_err(|error| TestCaseError::fail(format!("{error}: {text}")))?;
                prop_assert_eq!(&again, &plan);
                prop_assert_eq!(again.write(), text);
                for change in &plan.changes {
                    prop_assert!(!change.why.is_empty() && !change.source.is_empty());
                    if let What::Qdisc { after, .. } = &change.what {
                        prop_assert!(grammar::parse(after).is_ok(), "{after}");
                    }
                }
                let after = applied(facts.clone(), &plan);
                let rest = Plan::make(&after, &wishes).unwrap();
                prop_assert!(rest.changes.is_empty(), "{name}, {wishes:?}: {rest:#?}");
            }
        }
    }

    /// From one plan to the next, too, nothing of the first is left to undo the second.
    #[test]
    fn one_plan_after_another(number in 0_usize..64, first in wishes(), second in wishes()) {
        let machines = machines();
        let (name, facts) = &machines[number % machines.len()];
        let Ok(plan) = Plan::make(facts, &first) else { return Ok(()) };
        let facts = applied(facts.clone(), &plan);
        let Ok(plan) = Plan::make(&facts, &second) else { return Ok(()) };
        let facts = applied(facts, &plan);
        let rest = Plan::make(&facts, &second).unwrap();
        prop_assert!(rest.changes.is_empty(), "{name}, {first:?}, {second:?}: {rest:#?}");
    }

    /// What is accepted of a plan that somebody changed is still a plan of dualq's.
    #[test]
    fn changed_plans(number in 0_usize..64, edits in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..4)) {
        let machines = machines();
        let (_, facts) = &machines[number % machines.len()];
        let wishes = Wishes { profile: Profile::Bulk, ..Wishes::default() };
        let mut text: Vec<char> = Plan::make(facts, &wishes).unwrap().write().chars().collect();
        let letters = text.clone();
        for (at, from) in edits {
            *at.get_mut(&mut text) = *from.get(&letters);
        }
        let text: String = text.into_iter().collect();
        match Plan::read(&text) {
            Err(error) => prop_assert!(!error.to_string().contains('\n')),
            Ok(plan) => prop_assert_eq!(Plan::read(&plan.write()), Ok(plan)),
        }
    }

    #[test]
    fn any_text_is_read_or_refused_in_one_line(text in ".{0,200}") {
        if let Err(error) = Plan::read(&text) {
            prop_assert!(!error.to_string().contains('\n'));
        }
    }
}

fn plan(name: &str, change: impl FnOnce(&mut Wishes)) -> Result<Plan, PlanError> {
    let mut wishes = Wishes { rate: Some(Rate::from_mbit(48)), ..Wishes::default() };
    change(&mut wishes);
    Plan::make(&machine(name), &wishes)
}

fn line(plan: &Plan) -> Option<&str> {
    plan.changes.iter().find_map(|change| match &change.what {
        What::Qdisc { after, .. } => Some(after.as_str()),
        _ => None,
    })
}

#[test]
fn what_the_kernel_has_decides() {
    let line_on = |name| line(&plan(name, |_| ()).unwrap()).unwrap().to_owned();
    assert_eq!(line_on("arch"), "htb rate 48mbit leaf dualpi2");
    assert_eq!(line_on("debian-10"), "cake bandwidth 48mbit");
    let mut facts = machine("debian-10");
    let wishes = Wishes { rate: Some(Rate::from_mbit(48)), ..Wishes::default() };
    let mut without = |kind: &str| {
        facts.qdiscs.insert(kind.to_owned(), Availability::Absent);
        Plan::make(&facts, &wishes).map(|plan| line(&plan).unwrap().to_owned())
    };
    assert_eq!(without("cake").unwrap(), "htb rate 48mbit leaf fq_codel");
    let tbf = "tbf rate 48mbit burst 24000b latency 50ms leaf fq_codel";
    assert_eq!(without("htb").unwrap(), tbf);
    let fifo = "tbf rate 48mbit burst 24000b latency 50ms leaf pfifo limit 79";
    assert_eq!(without("fq_codel").unwrap(), fifo);
    let error = without("tbf").unwrap_err().to_string();
    assert!(error.contains("no shaper"), "{error}");
}

#[test]
fn what_cannot_be_had_is_said_with_what_can() {
    let error = |name, change: &dyn Fn(&mut Wishes)| {
        plan(name, |wishes| change(wishes)).unwrap_err().to_string()
    };
    let text = error("debian-10", &|wishes| wishes.cc = Some("prague".to_owned()));
    assert!(
        text.contains("does not have the congestion control prague; it has bbr, bic, cubic"),
        "{text}"
    );
    let text = error("debian-10", &|wishes| wishes.dev = Some("eth9".to_owned()));
    assert_eq!(text, "there is no interface eth9; there are ens3");
    let text = error("arch", &|wishes| wishes.rate = Some(Rate::from_mbit(2000)));
    assert!(text.contains("more than eno1 can"), "{text}");
    let text = error("debian-10", &|wishes| wishes.qdisc = Some("dualpi2".to_owned()));
    assert!(text.contains("does not have the qdisc dualpi2; it has"), "{text}");
    let text = error("debian-10", &|wishes| wishes.qdisc = Some("fq_codel targt 5ms".to_owned()));
    assert!(text.contains("did you mean \"target\"?"), "{text}");
    let text = error("freebsd-14", &|wishes| wishes.cc = Some("prague".to_owned()));
    assert!(text.contains("net.inet.tcp.cc.available has cubic, newreno"), "{text}");
}

fn content<'a>(plan: &'a Plan, wanted: &str) -> Option<&'a str> {
    plan.changes.iter().find_map(|change| match &change.what {
        What::File { path, after, .. } if path == wanted => Some(after.as_str()),
        _ => None,
    })
}

/// What calls dualq when an interface appears, wherever the system looks.
#[test]
fn each_system_has_its_file() {
    let script = |when: &str| {
        format!(
            "# On ens3, as it was asked for.\n{when}; then\n\t/usr/local/bin/dualq on-boot ens3 \
                 'htb rate 48mbit leaf dualpi2 classic_protection 12%'\nfi\n"
        )
    };
    let rule = "# On ens3, as it was asked for.\nACTION==\"add|move\", SUBSYSTEM==\"net\", KERNEL==\"ens3\", \
                RUN+=\"/usr/local/bin/dualq on-boot ens3 'htb rate 48mbit leaf dualpi2 classic_protection 12%%'\"\n";
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
        let wishes = Wishes {
            rate: Some(Rate::from_mbit(48)),
            qdisc: Some("dualpi2 classic_protection 12%".to_owned()),
            ..Wishes::default()
        };
        let plan = Plan::make(&facts, &wishes).unwrap();
        let text = content(&plan, path).unwrap_or_else(|| panic!("{path}: {plan:#?}"));
        assert!(text.ends_with(&format!("\n\n{expected}")), "{text}");
        assert_eq!(Plan::read(&plan.write()).unwrap(), plan);
    }
    let mut facts = machine("debian-10");
    facts.distribution.udev = false;
    facts.distribution.network.clear();
    let wishes = Wishes { rate: Some(Rate::from_mbit(48)), ..Wishes::default() };
    let plan = Plan::make(&facts, &wishes).unwrap();
    let call = "call /usr/local/bin/dualq on-boot ens3 'cake bandwidth 48mbit'";
    assert!(plan.notes.iter().any(|note| note.contains(call)), "{:?}", plan.notes);
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
        let wishes = Wishes { rate: Some(Rate::from_mbit(48)), ..Wishes::default() };
        let plan = Plan::make(&facts, &wishes).unwrap();
        let file = folder.path().join("file");
        fs::write(&file, content(&plan, path).unwrap()).unwrap();
        for (dev, expected) in
            [("ens3", Some("on-boot|ens3|cake bandwidth 48mbit|")), ("ens30", None)]
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
    let wishes = |dev: &str, mbit| Wishes {
        rate: Some(Rate::from_mbit(mbit)),
        rtt: Some(Duration::from_millis(10)),
        dev: Some(dev.to_owned()),
        profile: Profile::Gateway,
        ..Wishes::default()
    };
    let path = "/etc/udev/rules.d/90-dualq.rules";
    for (dev, mbit) in [("ens4", 10), ("ens3", 20)] {
        let plan = Plan::make(&facts, &wishes(dev, mbit)).unwrap();
        facts = applied(facts, &plan);
    }
    let text = &facts.files[path].content;
    assert!(text.contains("ens3 'cake bandwidth 20mbit'"), "{text}");
    assert!(text.contains("ens4 'cake bandwidth 10mbit'"), "{text}");
    for (dev, mbit) in [("ens4", 10), ("ens3", 20)] {
        let plan = Plan::make(&facts, &wishes(dev, mbit)).unwrap();
        assert!(plan.changes.is_empty(), "{plan:#?}");
    }
}

/// Another profile takes out what only the first wanted, but for one that is about queues alone.
#[test]
fn what_is_no_longer_wanted_goes() {
    let wishes = |profile| Wishes { profile, rate: Some(Rate::from_mbit(48)), ..Wishes::default() };
    let path = "/etc/sysctl.d/90-dualq.conf";
    let first = machine("debian-10");
    let plan = Plan::make(&first, &wishes(Profile::LowLatency)).unwrap();
    let facts = applied(first, &plan);
    let plan = Plan::make(&facts, &wishes(Profile::Bulk)).unwrap();
    let text = content(&plan, path).unwrap();
    assert!(text.contains("tcp_ecn = 1") && !text.contains("notsent_lowat"), "{text}");
    assert!(plan.notes.iter().any(|note| note.contains("tcp_notsent_lowat is no longer set")));
    let plan = Plan::make(&facts, &wishes(Profile::Gateway)).unwrap();
    assert!(plan.changes.is_empty(), "{plan:#?}");
}

/// A file that is read later would win at boot.
#[test]
fn other_files_do_not_win_unseen() {
    let wish = |wishes: &mut Wishes| wishes.cc = Some("cubic".to_owned());
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
    let wishes = Wishes {
        rtt: Some(Duration::from_secs(1)),
        rate: Some(Rate::from_mbit(500)),
        ..Wishes::default()
    };
    let plan = Plan::make(&facts, &wishes).unwrap();
    let note = "/etc/sysctl.conf, line 72, sets net.ipv4.tcp_notsent_lowat to 16384 at boot and is read last";
    assert!(plan.notes.iter().any(|text| text.contains(note)), "{:?}", plan.notes);
}

/// Buffers and what may wait unsent follow from rate and round-trip time.
#[test]
fn buffers_follow_from_the_path() {
    let of = |mbit, rtt_ms| {
        let wishes = |wishes: &mut Wishes| {
            wishes.rate = Some(Rate::from_mbit(mbit));
            wishes.rtt = Some(Duration::from_millis(rtt_ms));
        };
        let plan = plan("debian-10", wishes).unwrap();
        let get = |wanted: &str| {
            plan.changes.iter().find_map(|change| match &change.what {
                What::Sysctl { key, after, .. } if key == wanted => Some(after.clone()),
                _ => None,
            })
        };
        (get("net.ipv4.tcp_rmem"), get("net.ipv4.tcp_notsent_lowat"))
    };
    // 48 Mbit/s x 48 ms = 288,000 bytes: the kernel's buffers are enough, 72,000 may wait.
    assert_eq!(of(48, 48), (None, Some("73728".to_owned())));
    // 1 Gbit/s x 200 ms = 25 MB; four of them.
    let (rmem, lowat) = of(1000, 200);
    assert_eq!(rmem.as_deref(), Some("4096 87380 100007936"));
    assert_eq!(lowat.as_deref(), Some("6250496"));
}

const HOSTILE: [(&str, &str); 26] = [
    ("what = \"module\"\nmodule = \"../../evil\"", "no module"),
    ("what = \"module\"\nmodule = \"usb_storage\"", "no module"),
    ("what = \"module\"\nmodule = \"sch_\"", "no module"),
    (
        "what = \"sysctl\"\nkey = \"kernel.core_pattern\"\nbefore = \"core\"\nafter = \"1\"",
        "no sysctl",
    ),
    (
        "what = \"sysctl\"\nkey = \"net.ipv4/../../kernel.x\"\nbefore = \"\"\nafter = \"1\"",
        "no sysctl",
    ),
    (
        "what = \"sysctl\"\nkey = \"net.ipv6.conf.all.disable_ipv6\"\nbefore = \"0\"\nafter = \"1\"",
        "no sysctl that a plan sets: these are net.core.default_qdisc, ",
    ),
    (
        "what = \"sysctl\"\nkey = \"net.ipv4.ip_forward\"\nbefore = \"1\"\nafter = \"0\"",
        "no sysctl",
    ),
    (
        "what = \"file\"\npath = \"/etc/sysctl.d/90-dualq.conf\"\nafter = \"net.ipv4.ip_forward = 1\"\nmode = \"0644\"",
        "no sysctl",
    ),
    (
        "what = \"file\"\npath = \"/etc/udev/rules.d/90-dualq.rules\"\nmode = \"0644\"\nafter = '''\n\
         ACTION==\"add|move\", SUBSYSTEM==\"net\", KERNEL==\"ens3\", RUN+=\"/usr/bin/dualq on-boot --state /a/../b ens3 'fq'\"\n'''",
        "no absolute path of plain letters",
    ),
    ("what = \"sysctl\"\nkey = \"net..x\"\nbefore = \"\"\nafter = \"1\"", "no sysctl"),
    ("what = \"sysctl\"\nkey = \"net.ipv4.tcp_ecn\"\nbefore = \"\"\nafter = \"1\\n2\"", "no value"),
    ("what = \"qdisc\"\ndev = \"eth0;reboot\"\nbefore = []\nafter = \"fq\"", "interface"),
    ("what = \"qdisc\"\ndev = \"../eth0\"\nbefore = []\nafter = \"fq\"", "interface"),
    ("what = \"qdisc\"\ndev = \"a2345678901234567\"\nbefore = []\nafter = \"fq\"", "interface"),
    ("what = \"qdisc\"\ndev = \"eth0\"\nbefore = []\nafter = \"fq'; reboot '\"", "no qdisc"),
    ("what = \"qdisc\"\ndev = \"eth0\"\nbefore = []\nafter = \"no_such\"", "unknown qdisc"),
    (
        "what = \"file\"\npath = \"/etc/shadow\"\nafter = \"\"\nmode = \"0644\"",
        "no file that a plan writes",
    ),
    (
        "what = \"file\"\npath = \"/etc/sysctl.d/../shadow\"\nafter = \"\"\nmode = \"0644\"",
        "no file that a plan writes",
    ),
    (
        "what = \"file\"\npath = \"/etc/systemd/network/../x.network.d/90-dualq.conf\"\nafter = \"\"\nmode = \"0644\"",
        "no file that a plan writes",
    ),
    (
        "what = \"file\"\npath = \"/etc/sysctl.d/90-dualq.conf\"\nafter = \"kernel.x = 1\"\nmode = \"0644\"",
        "no sysctl",
    ),
    (
        "what = \"file\"\npath = \"/etc/network/if-up.d/dualq\"\nafter = \"\"\nmode = \"4755\"",
        "mode",
    ),
    (
        "what = \"file\"\npath = \"/etc/network/if-up.d/dualq\"\nafter = \"reboot\"\nmode = \"0755\"",
        "does not write",
    ),
    (
        "what = \"file\"\npath = \"/etc/network/if-up.d/dualq\"\nafter = \"#!/bin/evil\\n\"\nmode = \"0755\"",
        "not how",
    ),
    (
        "what = \"file\"\npath = \"/etc/udev/rules.d/90-dualq.rules\"\nmode = \"0644\"\nafter = '''\n\
         ACTION==\"add|move\", SUBSYSTEM==\"net\", KERNEL==\"ens3\", RUN+=\"/tmp/evil on-boot ens3 'fq'\"\n'''",
        "no path of dualq",
    ),
    ("what = \"route\"\nto = \"192.0.2.1/33\"\nmtu = 1400", "no destination"),
    ("what = \"route\"\nto = \"192.0.2.1/32\"\nmtu = 60", "MTU"),
];

#[test]
fn what_dualq_does_not_plan_is_refused() {
    let head = "format = 1\nabout = \"x\"\nos = \"linux\"\nkernel = \"6.1\"\n";
    for (change, says) in HOSTILE {
        let text = format!("{head}\n[[change]]\nwhy = \"x\"\nsource = \"x\"\n{change}\n");
        let error = Plan::read(&text).expect_err(change).to_string();
        assert!(error.contains(says) && !error.contains('\n'), "{change}: {error}");
        assert!(error.starts_with("line 6: "), "{change}: {error}");
    }
    let wrong = [
        (
            "format = 2\nabout = \"x\"\nos = \"linux\"\nkernel = \"6.1\"\n".to_owned(),
            "format 2 is not known",
        ),
        (format!("{head}evil = 1\n"), "line 5: unknown field `evil`"),
        (
            format!(
                "{head}[[change]]\nwhy = \"x\"\nsource = \"x\"\nwhat = \"module\"\nmodul = \"y\"\n"
            ),
            "line 9: unknown field `modul`",
        ),
        (
            format!("{head}[[change]]\nwhy = \"x\"\nsource = \"x\"\nwhat = \"module\"\n"),
            "line 5: this change lacks module",
        ),
        (
            format!(
                "{head}[[change]]\nwhy = \"x\"\nsource = \"x\"\nwhat = \"module\"\nmodule = \"sch_fq\"\nmtu = 5\n"
            ),
            "line 5: mtu does not belong",
        ),
        (format!("{head}notes = [\"\\u001b[2J\"]\n"), "control character"),
        ("x".repeat(1 << 20), "at most"),
    ];
    for (text, says) in wrong {
        let error = Plan::read(&text).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

/// Root runs at boot what only root can have put there, and looks for records where they are.
#[test]
fn what_runs_at_boot() {
    let rules = "/etc/udev/rules.d/90-dualq.rules";
    let mut facts = machine("debian-10");
    facts.dualq = None;
    let wishes = |state: Option<&str>| Wishes {
        rate: Some(Rate::from_mbit(48)),
        state: state.map(str::to_owned),
        ..Wishes::default()
    };
    let plan = Plan::make(&facts, &wishes(None)).unwrap();
    assert!(content(&plan, rules).unwrap().contains("RUN+=\"/usr/local/bin/dualq on-boot ens3 '"));
    let how = "first sudo install -m 755 dualq /usr/local/bin/dualq, and apply the plan by that";
    assert!(plan.notes.iter().any(|note| note.contains(how)), "{:?}", plan.notes);
    // The usual folder need not be said.
    let usual = Plan::make(&facts, &wishes(Some("/var/lib/dualq"))).unwrap();
    assert_eq!(usual, plan);
    let plan = Plan::make(&facts, &wishes(Some("/etc/dualq"))).unwrap();
    let call = "RUN+=\"/usr/local/bin/dualq on-boot --state /etc/dualq ens3 '";
    assert!(content(&plan, rules).unwrap().contains(call));
    assert_eq!(Plan::read(&plan.write()).unwrap(), plan);
    for state in ["etc/dualq", "/etc/../tmp", "/a b", "/x'y", "/x\"y", "/x%k"] {
        let error = Plan::make(&facts, &wishes(Some(state))).unwrap_err().to_string();
        assert!(error.starts_with("--state: "), "{error}");
    }
}

/// Facts come as files too: what is in them goes into rules and scripts.
#[test]
fn hostile_facts_make_no_plan() {
    let wishes = Wishes { rate: Some(Rate::from_mbit(48)), ..Wishes::default() };
    for name in ["x'; reboot", "a b", "$(x)", "%k", "x\"y"] {
        let mut facts = machine("debian-10");
        facts.interfaces[0].name = name.to_owned();
        facts.default_routes[0].dev = name.to_owned();
        let error = Plan::make(&facts, &wishes).unwrap_err().to_string();
        assert!(error.contains("is not a name of an interface"), "{error}");
    }
    let mut facts = machine("debian-10");
    facts.dualq = Some("/tmp/x'y/dualq".to_owned());
    let plan = Plan::make(&facts, &wishes).unwrap();
    assert!(plan.notes.iter().any(|note| note.contains("nothing puts the qdisc back")));
    let mut facts = machine("debian-10");
    facts.sysctls.insert("net.ipv4.tcp_ecn".to_owned(), "2\nx".to_owned());
    assert!(Plan::make(&facts, &wishes).is_err());
}
