//! What holds of every plan: for many machines, any wishes, and whatever somebody wrote into a file.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use dualq_host::facts::{Availability, File, Qdisc, Setting};
use dualq_host::plan::{
    Change, Evidence, Figures, LinkKind, PlanError, Profile, Question, Trial, What, Wishes,
};
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

const LINKS: [LinkKind; 3] = [LinkKind::Dsl, LinkKind::Docsis, LinkKind::Ethernet];

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
    let traffic =
        (any::<bool>(), any::<bool>(), prop::option::of(prop::sample::select(LINKS.to_vec())));
    (profile, rate, cc, rtt, qdisc, traffic).prop_map(
        |(profile, rate, cc, rtt, qdisc, (tunnel, scalable, link))| Wishes {
            tunnel,
            scalable,
            link,
            profile,
            rate,
            rtt,
            cc: cc.map(str::to_owned),
            qdisc: qdisc.map(str::to_owned),
            ..Wishes::default()
        },
    )
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
    // Flows that can be told apart get a queue each, whatever else the kernel has.
    assert_eq!(line_on("arch"), "cake bandwidth 45600kbit");
    assert_eq!(line_on("debian-10"), "cake bandwidth 45600kbit");
    let mut facts = machine("debian-10");
    let wishes = Wishes { rate: Some(Rate::from_mbit(48)), ..Wishes::default() };
    let mut without = |kind: &str| {
        facts.qdiscs.insert(kind.to_owned(), Availability::Absent);
        Plan::make(&facts, &wishes).map(|plan| line(&plan).unwrap().to_owned())
    };
    assert_eq!(without("cake").unwrap(), "htb rate 45600kbit leaf fq_codel");
    let tbf = |leaf| format!("tbf rate 45600kbit burst 22800b latency 50ms leaf {leaf}");
    assert_eq!(without("htb").unwrap(), tbf("fq_codel"));
    assert_eq!(without("fq_codel").unwrap(), tbf("fq"));
    assert_eq!(without("fq").unwrap(), tbf("pie"));
    assert_eq!(without("pie").unwrap(), tbf("codel"));
    assert_eq!(without("codel").unwrap(), tbf("pfifo limit 75"));
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
    let call = "call /usr/local/bin/dualq on-boot ens3 'cake bandwidth 45600kbit'";
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
    assert!(text.contains("ens3 'cake bandwidth 19mbit'"), "{text}");
    assert!(text.contains("ens4 'cake bandwidth 9500kbit'"), "{text}");
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
fn a_link_of_no_speed_is_one_of_unknown_speed() {
    let mut facts = machine("debian-10");
    facts.interfaces[0].speed = Some("0bit".to_owned());
    let unknown = {
        let mut facts = facts.clone();
        facts.interfaces[0].speed = None;
        facts
    };
    let plan = |facts: &Facts| Plan::make(facts, &Wishes::default()).map(|plan| plan.changes);
    assert_eq!(plan(&facts).unwrap(), plan(&unknown).unwrap());
}

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

fn has_note(plan: &Plan, part: &str) -> bool {
    plan.notes.iter().any(|note| note.contains(part))
}

/// Where a queue sees one flow whatever is sent, per-flow queues keep nothing apart; nor are they for scalable senders.
#[test]
fn the_traffic_decides() {
    let line_of = |name, change: &dyn Fn(&mut Wishes)| {
        line(&plan(name, |wishes| change(wishes)).unwrap()).unwrap().to_owned()
    };
    assert_eq!(line_of("arch", &|wishes| wishes.tunnel = true), "htb rate 45600kbit leaf dualpi2");
    assert_eq!(
        line_of("arch", &|wishes| wishes.scalable = true),
        "htb rate 45600kbit leaf dualpi2"
    );
    let dctcp = |wishes: &mut Wishes| wishes.cc = Some("dctcp".to_owned());
    assert_eq!(line_of("arch", &dctcp), "htb rate 45600kbit leaf dualpi2 any_ect");
    // A kernel without dualpi2 takes the nearest that it has.
    assert_eq!(line_of("debian-10", &|wishes| wishes.tunnel = true), "htb rate 45600kbit leaf pie");
    // There, one that does not listen goes with the queue.
    let plan_of = plan("debian-12", |wishes| wishes.tunnel = true).unwrap();
    let cubic = plan_of.changes.iter().any(|change| {
        matches!(&change.what, What::Sysctl { key, after, .. }
            if key == "net.ipv4.tcp_congestion_control" && after == "cubic")
    });
    assert!(cubic, "{plan_of:#?}");
    let without = plan("debian-12", |_| ()).unwrap();
    assert!(
        !without.changes.iter().any(|change| change.why.contains("Internet uses")),
        "{without:#?}"
    );
}

/// What facts tell of tunnels: of one that hides its flows, of one that does not, and of one that has all there is.
#[test]
fn tunnels_are_known() {
    let facts_with = |driver: &str, default: bool| {
        let mut facts = machine("arch");
        let tunnel = facts.interfaces.iter_mut().find(|it| it.name == "wg0").unwrap();
        tunnel.driver = Some(driver.to_owned());
        if default {
            facts.default_routes[0].dev = "wg0".to_owned();
        }
        facts
    };
    let wishes = Wishes {
        rate: Some(Rate::from_mbit(48)),
        dev: Some("eno1".to_owned()),
        ..Wishes::default()
    };
    let of = |driver, default| {
        let plan = Plan::make(&facts_with(driver, default), &wishes).unwrap();
        (line(&plan).unwrap().to_owned(), has_note(&plan, "--tunnel"))
    };
    let cake = "cake bandwidth 45600kbit".to_owned();
    // Linux 6.17 keeps the hash of what WireGuard encrypts, and looks into GRE: nothing to say.
    for driver in ["wireguard", "gre", "ipip", "vxlan"] {
        assert_eq!(of(driver, true), (cake.clone(), false), "{driver}");
    }
    // Of a program's tunnel nobody knows how much of the traffic is in it, unless it has the default route.
    assert_eq!(of("tun", false), (cake.clone(), true));
    assert_eq!(of("xfrm", false), (cake.clone(), true));
    let plan = Plan::make(&facts_with("tun", true), &wishes).unwrap();
    assert_eq!(line(&plan), Some("htb rate 45600kbit leaf dualpi2"));
    assert!(has_note(&plan, "the default route is by wg0"), "{:?}", plan.notes);
    // The tunnel's own queue sees the flows before they are put into it.
    let inside = Wishes { dev: Some("wg0".to_owned()), ..wishes.clone() };
    let plan = Plan::make(&facts_with("tun", true), &inside).unwrap();
    assert_eq!(line(&plan), Some(cake.as_str()));
    // Before Linux 5.7 the hash was lost.
    let mut old = facts_with("wireguard", true);
    old.kernel.release = "5.4.0-216-generic".to_owned();
    assert_eq!(line(&Plan::make(&old, &wishes).unwrap()), Some("htb rate 45600kbit leaf dualpi2"));
}

/// Targets are no shorter than what packets take.
#[test]
fn slow_links_have_longer_targets() {
    let line_at = |name, kbit: u64, tunnel, without: &[&str]| {
        let mut facts = machine(name);
        for kind in without {
            facts.qdiscs.insert((*kind).to_owned(), Availability::Absent);
        }
        let wishes = Wishes {
            rate: Some(Rate::from_bits_per_second(kbit * 1000)),
            tunnel,
            ..Wishes::default()
        };
        line(&Plan::make(&facts, &wishes).unwrap()).unwrap().to_owned()
    };
    // A packet takes 12.7 ms at 950 kbit/s, and 199 ms at 60.8.
    assert_eq!(
        line_at("arch", 1000, true, &[]),
        "htb rate 950kbit leaf dualpi2 target 20ms step_thresh 25499us"
    );
    assert_eq!(
        line_at("arch", 64, true, &[]),
        "htb rate 60800bit leaf dualpi2 target 299ms step_thresh 398422us"
    );
    assert_eq!(
        line_at("debian-10", 1000, false, &["cake"]),
        "htb rate 950kbit leaf fq_codel target 20ms interval 200ms"
    );
    assert_eq!(line_at("debian-10", 1000, true, &[]), "htb rate 950kbit leaf pie target 20ms");
}

/// RFC 8257 §4.1: K > RTT·C/7. And no shaper where the link itself is the bottleneck.
#[test]
fn the_step_follows_from_the_path() {
    let of = |mbit, rtt_us| {
        let wishes = Wishes {
            profile: Profile::Datacenter,
            rate: Some(Rate::from_mbit(mbit)),
            rtt: Some(Duration::from_micros(rtt_us)),
            ..Wishes::default()
        };
        line(&Plan::make(&machine("arch"), &wishes).unwrap()).unwrap().to_owned()
    };
    assert_eq!(of(1000, 700), "dualpi2 any_ect step_thresh 625us");
    assert_eq!(of(1000, 70_000), "dualpi2 any_ect step_thresh 10525us");
    assert_eq!(of(500, 700), "htb rate 475mbit leaf dualpi2 any_ect step_thresh 1100us");
    // Who gives the link's own rate means the link.
    let plain = plan("arch", |wishes| wishes.rate = Some(Rate::from_mbit(1000))).unwrap();
    assert_eq!(line(&plain), None, "{plain:#?}");
    assert!(has_note(&plain, "needs no shaper"), "{:?}", plain.notes);
}

#[test]
fn what_is_to_be_known_is_said() {
    let gateway = plan("openwrt-24", |wishes| wishes.profile = Profile::Gateway).unwrap();
    assert!(has_note(&gateway, "downloads stay unshaped"), "{:?}", gateway.notes);
    assert!(has_note(&gateway, "--link dsl, docsis or ethernet"), "{:?}", gateway.notes);
    let cable = plan("openwrt-24", |wishes| wishes.link = Some(LinkKind::Docsis)).unwrap();
    assert_eq!(line(&cable), Some("cake bandwidth 45600kbit docsis"));
    let dsl = plan("debian-10", |wishes| wishes.link = Some(LinkKind::Dsl)).unwrap();
    assert_eq!(line(&dsl), Some("cake bandwidth 45600kbit pppoe-ptm"));

    let make = |change: &dyn Fn(&mut Facts)| {
        let mut facts = machine("debian-10");
        change(&mut facts);
        let wishes = Wishes { rate: Some(Rate::from_mbit(48)), ..Wishes::default() };
        Plan::make(&facts, &wishes)
    };
    let down = make(&|facts| facts.interfaces[0].up = false).unwrap();
    assert!(has_note(&down, "ens3 is down"), "{:?}", down.notes);
    let classes = make(&|facts| {
        let qdisc = |parent: &str, handle: &str, kind: &str| Qdisc {
            kind: kind.to_owned(),
            parent: parent.to_owned(),
            handle: handle.to_owned(),
            ..Qdisc::default()
        };
        facts.interfaces[0].qdiscs = vec![
            qdisc("root", "1:", "htb"),
            qdisc("1:10", "10:", "fq"),
            qdisc("1:20", "20:", "fq"),
        ];
    })
    .unwrap();
    assert!(has_note(&classes, "htb with 2 classes"), "{:?}", classes.notes);
    let nothing = make(&|facts| {
        facts.default_routes.clear();
        facts.interfaces.clear();
    });
    let message = nothing.unwrap_err().to_string();
    assert_eq!(message, "there is no default route, and no interface to plan for");
}

/// No socket gets more than the machine has for all of TCP.
#[test]
fn buffers_are_bounded_by_memory() {
    let of = |pages: Option<&str>| {
        let mut facts = machine("debian-10");
        facts.sysctls.extend(pages.map(|pages| ("net.ipv4.tcp_mem".to_owned(), pages.to_owned())));
        let wishes = Wishes {
            rate: Some(Rate::from_mbit(1000)),
            rtt: Some(Duration::from_secs(60)),
            ..Wishes::default()
        };
        let plan = Plan::make(&facts, &wishes).unwrap();
        let change = |wanted: &str| {
            let mut changes = plan.changes.iter();
            changes.find_map(|change| match &change.what {
                What::Sysctl { key, after, .. } if key == wanted => {
                    Some((after.clone(), change.why.clone()))
                }
                _ => None,
            })
        };
        (change("net.ipv4.tcp_wmem").unwrap(), change("net.ipv4.tcp_notsent_lowat").unwrap().0)
    };
    // 94 MB for all of TCP, as a machine of 1 GB has.
    let ((wmem, why), lowat) = of(Some("11373\t15164\t22746"));
    assert_eq!(wmem, "4096 16384 46583808");
    assert!(why.contains("no more than 44 MiB, half of the memory"), "{why}");
    assert_eq!(lowat, "2912256");
    let ((wmem, why), _) = of(None);
    assert_eq!(wmem, "4096 16384 268435456");
    assert!(why.contains("is not known"), "{why}");
}

/// The doctor finds nothing wrong with what a plan has put there, when both are told the same rate.
#[test]
fn the_doctor_agrees_with_the_plan() {
    use dualq_host::doctor::{Harm, findings};
    let mut looked_at = 0;
    for (name, facts) in machines() {
        for (mbit, tunnel) in [(1, false), (10, false), (50, false), (50, true), (1000, false)] {
            let rate = Rate::from_mbit(mbit);
            let wishes = Wishes {
                rate: Some(rate),
                tunnel,
                profile: Profile::fitting(&facts),
                ..Wishes::default()
            };
            let Ok(plan) = Plan::make(&facts, &wishes) else { continue };
            let before = findings(&facts, Some(rate));
            let mut then = applied(facts.clone(), &plan);
            let key = "net.ipv4.tcp_congestion_control";
            if then.sysctls.get(key) != facts.sysctls.get(key) {
                // Connections that are there keep theirs, as the plan says; these are others.
                then.connections = None;
            }
            let after = findings(&then, Some(rate));
            for finding in &after {
                // What was wrong before and no plan was asked to cure may stay wrong.
                let stays = before.iter().any(|other| other.id == finding.id)
                    && !["no-local-rate", "shaper-not-below", "no-queue", "long-fifo"]
                        .contains(&finding.id);
                assert!(
                    stays || finding.harm > Harm::Medium,
                    "{name} at {rate}, tunnel {tunnel}: {finding:#?}"
                );
                looked_at += 1;
            }
        }
    }
    assert!(looked_at > 100, "{looked_at}");
}

/// Answers as a simulation might give them, by the words of the queue.
fn answers(question: Question, p99_ms: impl Fn(&Trial) -> Option<(f64, f64, f64)>) -> Evidence {
    let trials = question.trials(true);
    let known = trials.into_iter().filter_map(|trial| {
        let (p99_ms, goodput_mbit, fairness) = p99_ms(&trial)?;
        let world = "model".to_owned();
        Some((trial, Figures { p99_ms, goodput_mbit, fairness, world, stand_in: None }))
    });
    let known: Vec<_> = known.collect();
    Evidence::new(question, known)
}

#[test]
fn evidence_chooses_among_what_the_traffic_calls_for() {
    use dualq_host::plan::Aim;
    let facts = machine("arch");
    let wishes = |aim| Wishes { aim, rate: Some(Rate::from_mbit(48)), ..Wishes::default() };
    let chosen = |aim, figures: &dyn Fn(&str) -> (f64, f64, f64)| {
        let question = Question::of(&facts, &wishes(aim)).unwrap();
        let evidence = answers(question, |trial| Some(figures(&trial.queue)));
        let plan = Plan::make_by(&facts, &wishes(aim), Some(&evidence)).unwrap();
        (line(&plan).unwrap().to_owned(), plan)
    };
    let kind = |queue: &str| {
        ["fq_codel", "cake", "dualpi2", "fq", "pie", "codel"]
            .into_iter()
            .find(|kind| queue.split(' ').any(|word| word == *kind))
            .unwrap_or("now")
    };
    // Equals: the first. Apart: the best; of those that the traffic does not call for none, but it is said.
    let (line, _) = chosen(Aim::Latency, &|_| (1.0, 40.0, 1.0));
    assert_eq!(line, "cake bandwidth 45600kbit");
    let (line, plan) = chosen(Aim::Latency, &|queue| match kind(queue) {
        "fq_codel" => (2.0, 40.0, 1.0),
        "pie" => (0.1, 45.0, 1.0),
        _ => (9.0, 40.0, 1.0),
    });
    assert_eq!(line, "htb rate 45600kbit leaf fq_codel");
    assert!(has_note(&plan, "leaf pie is better"), "{:?}", plan.notes);
    assert!(
        plan.evidence
            .iter()
            .any(|line| line.starts_with("chosen, htb rate 45600kbit leaf fq_codel;"))
    );
    // More than a twentieth of the throughput is too much for latency, and for throughput it is all that counts.
    let dear = |queue: &str| match kind(queue) {
        "cake" => (1.0, 30.0, 1.0),
        "fq_codel" => (2.0, 39.0, 0.7),
        "fq" => (8.0, 40.0, 1.0),
        _ => (9.0, 40.0, 1.0),
    };
    assert_eq!(chosen(Aim::Latency, &dear).0, "htb rate 45600kbit leaf fq_codel");
    assert_eq!(chosen(Aim::Throughput, &dear).0, "htb rate 45600kbit leaf fq");
    assert_eq!(chosen(Aim::Fair, &dear).0, "cake bandwidth 45600kbit");
    // Worse than now: in the first line.
    let (_, plan) = chosen(Aim::Latency, &|queue| match kind(queue) {
        "now" => (3.0, 46.0, 1.0),
        _ => (9.0, 44.0, 1.0),
    });
    assert!(
        plan.about.starts_with("worse than now in the simulation: ssh's p99 is 9.0 ms"),
        "{}",
        plan.about
    );
    let (_, plan) = chosen(Aim::Latency, &|queue| match kind(queue) {
        "now" => (300.0, 46.0, 1.0),
        _ => (9.0, 33.0, 1.0),
    });
    assert!(plan.about.starts_with("less throughput than now"), "{}", plan.about);
    let (_, plan) = chosen(Aim::Latency, &|queue| match kind(queue) {
        "now" => (300.0, 46.0, 1.0),
        _ => (9.0, 44.0, 1.0),
    });
    assert!(plan.about.starts_with("low-latency on eno1"), "{}", plan.about);
    assert_eq!(Plan::read(&plan.write()).unwrap(), plan);
    // What nobody could run decides nothing.
    let question = Question::of(&facts, &wishes(Aim::Latency)).unwrap();
    let evidence = answers(question, |_| None);
    assert_eq!(evidence.chosen(), "cake bandwidth 45600kbit");
    assert_eq!((evidence.warning(), evidence.lines()), (None, Vec::new()));
}

/// Whoever forwards for others does not know who sends.
#[test]
fn a_gateway_has_all_senders() {
    let wishes = |profile| Wishes { profile, rate: Some(Rate::from_mbit(48)), ..Wishes::default() };
    let of = |profile| {
        let question = Question::of(&machine("debian-10"), &wishes(profile)).unwrap();
        question.after.into_iter().map(|sender| sender.cc).collect::<Vec<_>>()
    };
    assert_eq!(of(Profile::Gateway), ["cubic", "bbr"]);
    assert_eq!(of(Profile::LowLatency), ["cubic"]);
    assert_eq!(Profile::fitting(&machine("openwrt-24")), Profile::Gateway);
    assert_eq!(Profile::fitting(&machine("debian-13")), Profile::Gateway);
    assert_eq!(Profile::fitting(&machine("debian-10")), Profile::LowLatency);
}
