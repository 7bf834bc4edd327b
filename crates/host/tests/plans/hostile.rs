//! What somebody else wrote.

use dualq_host::Plan;
use dualq_host::plan::Requirements;
use dualq_units::Rate;

use crate::{content, machine};

const HOSTILE: [(&str, &str); 42] = [
    ("what = \"module\"\nmodule = \"cls_bpf\"", "no module"),
    ("what = \"ingress\"\ndev = \"eth0\"\nifb = \"ifb0\"\nafter = \"fq\"", "no ifb of a plan"),
    (
        "what = \"ingress\"\ndev = \"eth0\"\nifb = \"dualq-ifb0;reboot\"\nafter = \"fq\"",
        "no ifb of a plan",
    ),
    (
        "what = \"ingress\"\ndev = \"dualq-ifb1\"\nifb = \"dualq-ifb0\"\nafter = \"fq\"",
        "queued there before",
    ),
    (
        "what = \"file\"\npath = \"/etc/udev/rules.d/90-dualq.rules\"\nmode = \"0644\"\nafter = '''\n\
         ACTION==\"add|move\", SUBSYSTEM==\"net\", KERNEL==\"ens3\", RUN+=\"/usr/bin/dualq on-boot --down eth1 ens3 'fq'\"\n'''",
        "no ifb of a plan",
    ),
    (
        "what = \"file\"\npath = \"/etc/udev/rules.d/90-dualq.rules\"\nmode = \"0644\"\nafter = '''\n\
         ACTION==\"add|move\", SUBSYSTEM==\"net\", KERNEL==\"ens3\", RUN+=\"/usr/bin/dualq on-boot --route 192.0.2.1/32 ens3 'mtu 200'\"\n'''",
        "an MTU of 200",
    ),
    (
        "what = \"file\"\npath = \"/etc/udev/rules.d/90-dualq.rules\"\nmode = \"0644\"\nafter = '''\n\
         ACTION==\"add|move\", SUBSYSTEM==\"net\", KERNEL==\"ens3\", RUN+=\"/usr/bin/dualq on-boot --route 192.0.2.1/32 ens3 'via 192.0.2.9'\"\n'''",
        "not what rules say of a route",
    ),
    (
        "what = \"file\"\npath = \"/etc/udev/rules.d/90-dualq.rules\"\nmode = \"0644\"\nafter = '''\n\
         ACTION==\"add|move\", SUBSYSTEM==\"net\", KERNEL==\"ens3\", RUN+=\"/usr/bin/dualq on-boot --route 0.0.0.0/0 ens3 'mtu 1400'\"\n'''",
        "does something that dualq does not write",
    ),
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
    ("what = \"qdisc\"\ndev = \"eth0\"\nbefore = []\nafter = \"fq'; reboot '\"", "unknown qdisc"),
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
    // To a shell the white space before # is a letter of a command.
    (
        "what = \"file\"\npath = \"/etc/network/if-up.d/dualq\"\nafter = \"#!/bin/sh\\n\\u00a0# Written by dualq; reboot\\n\"\nmode = \"0755\"",
        "characters that dualq does not write",
    ),
    (
        "what = \"file\"\npath = \"/etc/network/if-up.d/dualq\"\nafter = \"# x\\u2028reboot\\n\"\nmode = \"0755\"",
        "characters that dualq does not write",
    ),
    ("what = \"route\"\nto = \"2001:db8::1/32\"\nmtu = 1400", "bits beyond its prefix length"),
    (
        "what = \"file\"\npath = \"/etc/udev/rules.d/90-dualq.rules\"\nmode = \"0644\"\nafter = '''\n\
         ACTION==\"add|move\", SUBSYSTEM==\"net\", KERNEL==\"ens3\", RUN+=\"/tmp/evil on-boot ens3 'fq'\"\n'''",
        "no path of dualq",
    ),
    (
        "what = \"qdisc\"\ndev = \"eth0\"\nparent = \"root\"\nbefore = []\nafter = \"fq\"",
        "no class as tc names it",
    ),
    (
        "what = \"qdisc\"\ndev = \"eth0\"\nparent = \"1:10\"\neach = true\nbefore = []\nafter = \"fq\"",
        "two places",
    ),
    (
        "what = \"ingress\"\ndev = \"eth0\"\nparent = \"1:10\"\nifb = \"dualq-ifb0\"\nafter = \"fq\"",
        "parent does not belong",
    ),
    (
        "what = \"file\"\npath = \"/etc/udev/rules.d/90-dualq.rules\"\nmode = \"0644\"\nafter = '''\n\
         ACTION==\"add|move\", SUBSYSTEM==\"net\", KERNEL==\"ens3\", RUN+=\"/usr/bin/dualq on-boot --parent ffff:fff1 ens3 'fq'\"\n'''",
        "does something that dualq does not write",
    ),
    (
        "what = \"file\"\npath = \"/etc/udev/rules.d/90-dualq.rules\"\nmode = \"0644\"\nafter = '''\n\
         ACTION==\"add|move\", SUBSYSTEM==\"net\", KERNEL==\"ens3\", RUN+=\"/usr/bin/dualq on-boot --parent 1:10 ens3 'no_such'\"\n'''",
        "unknown qdisc",
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
    let requirements = |state: Option<&str>| Requirements {
        rate: Some(Rate::from_mbit(48)),
        state: state.map(str::to_owned),
        ..Requirements::default()
    };
    let plan = Plan::make(&facts, &requirements(None)).unwrap();
    assert!(content(&plan, rules).unwrap().contains("RUN+=\"/usr/local/bin/dualq on-boot ens3 '"));
    let how = "first sudo install -m 755 dualq /usr/local/bin/dualq, and apply the plan by that";
    assert!(plan.notes.iter().any(|note| note.contains(how)), "{:?}", plan.notes);
    // The usual folder need not be said.
    let usual = Plan::make(&facts, &requirements(Some("/var/lib/dualq"))).unwrap();
    assert_eq!(usual, plan);
    let plan = Plan::make(&facts, &requirements(Some("/etc/dualq"))).unwrap();
    let call = "RUN+=\"/usr/local/bin/dualq on-boot --state /etc/dualq ens3 '";
    assert!(content(&plan, rules).unwrap().contains(call));
    assert_eq!(Plan::read(&plan.write()).unwrap(), plan);
    for state in ["etc/dualq", "/etc/../tmp", "/a b", "/x'y", "/x\"y", "/x%k"] {
        let error = Plan::make(&facts, &requirements(Some(state))).unwrap_err().to_string();
        assert!(error.starts_with("--state: "), "{error}");
    }
}

#[test]
fn hostile_facts_make_no_plan() {
    let requirements = Requirements { rate: Some(Rate::from_mbit(48)), ..Requirements::default() };
    for name in ["x'; reboot", "a b", "a/b", "", "a-name-that-is-too-long"] {
        let mut facts = machine("debian-10");
        facts.interfaces[0].name = name.to_owned();
        facts.default_routes[0].dev = name.to_owned();
        let error = Plan::make(&facts, &requirements).unwrap_err().to_string();
        assert!(error.contains("is not a name of an interface"), "{error}");
    }
    // The kernel takes these, and rules and scripts do not.
    for name in ["ü0", "a'b", "-x"] {
        let mut facts = machine("debian-10");
        facts.interfaces[0].name = name.to_owned();
        facts.default_routes[0].dev = name.to_owned();
        let error = Plan::make(&facts, &requirements).unwrap_err().to_string();
        assert!(error.contains("dualq changes nothing at interfaces whose names"), "{error}");
    }
    let mut facts = machine("debian-10");
    facts.dualq = Some("/tmp/x'y/dualq".to_owned());
    let plan = Plan::make(&facts, &requirements).unwrap();
    assert!(plan.notes.iter().any(|note| note.contains("nothing puts the qdisc back")));
    let mut facts = machine("debian-10");
    facts.sysctls.insert("net.ipv4.tcp_ecn".to_owned(), "2\nx".to_owned());
    assert!(Plan::make(&facts, &requirements).is_err());
}
