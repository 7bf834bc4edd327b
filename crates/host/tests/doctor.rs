//! What the doctor finds, and where it finds nothing.

use std::path::Path;

use dualq_host::Facts;
use dualq_host::doctor::{Finding, Harm, findings};
use dualq_host::facts::{Arriving, Availability, Blocked, Conntrack, Interface, Os, Setting};
use dualq_units::Rate;

fn machine(name: &str) -> Facts {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/facts");
    Facts::read(&folder.join(name)).unwrap()
}

/// A machine on which all is well: a shaped dualpi2 on a plain host, and TCP as it should be.
fn healthy() -> Facts {
    let mut facts = machine("linux-7.3.json");
    set(&mut facts, "net.ipv4.tcp_congestion_control", "cubic");
    set(&mut facts, "net.ipv4.tcp_ecn", "2");
    let connections = facts.connections.as_mut().unwrap();
    connections.by_congestion_control = [("cubic".to_owned(), 6)].into();
    facts.settings.retain(|setting| setting.file.starts_with("/usr/lib"));
    facts.kernel.options.clear();
    for (key, value) in
        [("net.ipv4.tcp_notsent_lowat", "131072"), ("net.ipv4.tcp_mtu_probing", "1")]
    {
        facts.settings.push(setting("/etc/sysctl.d/60-x.conf", key, value));
    }
    facts.interfaces[0].tx_queues = 1;
    facts
}

fn setting(file: &str, key: &str, value: &str) -> Setting {
    Setting { file: file.to_owned(), line: 1, key: key.to_owned(), value: value.to_owned() }
}

fn set(facts: &mut Facts, key: &str, value: &str) {
    facts.sysctls.insert(key.to_owned(), value.to_owned());
}

fn only_qdisc(facts: &mut Facts, kind: &str, options: Option<&str>) {
    let interface = &mut facts.interfaces[0];
    interface.qdiscs.truncate(1);
    let root = &mut interface.qdiscs[0];
    root.kind = kind.to_owned();
    root.options = options.map(str::to_owned);
    root.statistics.clear();
}

fn connections(facts: &mut Facts, control: &str, count: u32, min_rtt: &str) {
    let connections = facts.connections.as_mut().unwrap();
    connections.by_congestion_control = [(control.to_owned(), count)].into();
    connections.min_rtt = Some(min_rtt.to_owned());
}

#[test]
fn where_all_is_well_nothing_is_found() {
    for rate in [None, Some(Rate::from_mbit(50))] {
        assert_eq!(findings(&healthy(), rate), []);
    }
}

/// All traffic goes into a tunnel.
fn tunnel_has_all(facts: &mut Facts, driver: &str) {
    let mut tunnel = facts.interfaces[0].clone();
    (tunnel.name, tunnel.driver) = ("vpn0".to_owned(), Some(driver.to_owned()));
    facts.interfaces.push(tunnel);
    facts.interfaces[1].qdiscs.truncate(1);
    facts.interfaces[1].qdiscs[0].kind = "fq_codel".to_owned();
    facts.interfaces[1].qdiscs[0].options = None;
    facts.default_routes[0].dev = "vpn0".to_owned();
}

/// What makes a healthy machine ill.
type Illness = fn(&mut Facts);

const ILLNESSES: &[(&str, Harm, Illness)] = &[
    ("no-local-rate", Harm::High, |facts| only_qdisc(facts, "dualpi2", Some("target 5ms"))),
    ("shaper-not-below", Harm::High, |facts| {
        facts.interfaces[0].qdiscs[0].options = Some("rate 50Mbit burst 1598b".to_owned());
    }),
    ("several-bbr", Harm::High, |facts| connections(facts, "bbr", 2, "48ms")),
    // Kept apart, it harms nobody else.
    ("several-bbr", Harm::Note, |facts| {
        set(facts, "net.ipv4.tcp_congestion_control", "bbr");
        facts.interfaces[0].qdiscs[1].kind = "fq_codel".to_owned();
    }),
    // Inside a tunnel that hides them, nothing keeps them apart.
    ("several-bbr", Harm::High, |facts| {
        set(facts, "net.ipv4.tcp_congestion_control", "bbr");
        tunnel_has_all(facts, "tun");
        facts.interfaces[1].qdiscs[0].kind = "fq_codel".to_owned();
    }),
    ("tunnel-is-one-flow", Harm::Medium, |facts| {
        tunnel_has_all(facts, "tun");
        facts.interfaces[0].qdiscs[1].kind = "fq_codel".to_owned();
    }),
    ("tunnel-is-one-flow", Harm::Note, |facts| {
        tunnel_has_all(facts, "tun");
        facts.default_routes[0].dev = facts.interfaces[0].name.clone();
        facts.interfaces[0].qdiscs[1].kind = "fq_codel".to_owned();
    }),
    // WireGuard hides them before Linux 5.7.
    ("tunnel-is-one-flow", Harm::Medium, |facts| {
        facts.kernel.release = "5.4.0-generic".to_owned();
        tunnel_has_all(facts, "wireguard");
        facts.interfaces[0].qdiscs[1].kind = "fq_codel".to_owned();
    }),
    ("bbr3-ignores-marks", Harm::High, |facts| {
        set(facts, "net.ipv4.tcp_ecn", "1");
        connections(facts, "bbr3", 1, "48ms");
    }),
    ("bbr3-ignores-marks", Harm::Medium, |facts| {
        set(facts, "net.ipv4.tcp_ecn", "1");
        set(facts, "net.ipv4.tcp_congestion_control", "bbr3");
        facts.interfaces[0].qdiscs[1].kind = "fq_codel".to_owned();
    }),
    // The healthy machine has it in a class of htb.
    ("dualpi2-below-classful", Harm::High, |facts| {
        facts.interfaces[0].qdiscs[0].kind = "qfq".to_owned();
    }),
    ("dctcp-on-the-internet", Harm::High, |facts| connections(facts, "dctcp", 1, "48ms")),
    ("dctcp-in-classic-queue", Harm::Medium, |facts| connections(facts, "dctcp", 1, "100us")),
    ("prague-needs-receivers", Harm::Low, |facts| connections(facts, "prague", 1, "48ms")),
    ("setting-names-what-is-absent", Harm::High, |facts| {
        facts.qdiscs.insert("cake".to_owned(), Availability::Absent);
        facts.settings.push(setting("/etc/sysctl.d/9.conf", "net.core.default_qdisc", "cake"));
    }),
    ("conntrack-nearly-full", Harm::High, |facts| {
        facts.conntrack = Some(Conntrack { count: 900, max: 1000 });
    }),
    ("no-local-rate", Harm::High, |facts| only_qdisc(facts, "pfifo_fast", None)),
    ("long-fifo", Harm::Low, |facts| only_qdisc(facts, "pfifo_fast", None)),
    ("long-fifo", Harm::High, |facts| {
        only_qdisc(facts, "pfifo_fast", None);
        facts.interfaces[0].speed = Some("100Mbit".to_owned());
    }),
    ("long-fifo", Harm::High, |facts| facts.interfaces[0].qdiscs[1].kind = "pfifo".to_owned()),
    ("long-fifo", Harm::High, |facts| {
        only_qdisc(facts, "htb", Some("rate 48Mbit burst 1598b cburst 1598b"));
    }),
    ("long-fifo", Harm::High, |facts| {
        facts.interfaces[0].qdiscs[1].kind = "bfifo".to_owned();
        facts.interfaces[0].qdiscs[1].options = Some("limit 1500Kb".to_owned());
    }),
    ("long-fifo", Harm::Medium, |facts| {
        only_qdisc(facts, "pfifo_fast", None);
        facts.interfaces[0].speed = None;
    }),
    ("default-qdisc-not-applied", Harm::Medium, |facts| {
        only_qdisc(facts, "pfifo_fast", None);
        facts.interfaces[0].qdiscs[0].handle = "0:".to_owned();
    }),
    // Where flows are kept apart, nothing is lost.
    ("no-dualpi2", Harm::Note, |facts| {
        facts.qdiscs.insert("dualpi2".to_owned(), Availability::Absent);
    }),
    ("no-dualpi2", Harm::Medium, |facts| {
        for kind in ["dualpi2", "cake", "fq_codel", "fq"] {
            facts.qdiscs.insert(kind.to_owned(), Availability::Absent);
        }
    }),
    ("no-dualpi2", Harm::Medium, |facts| {
        facts.qdiscs.insert("dualpi2".to_owned(), Availability::Absent);
        tunnel_has_all(facts, "tun");
    }),
    // It is what these senders are for, whatever keeps them apart.
    ("no-dualpi2", Harm::Medium, |facts| {
        facts.qdiscs.insert("dualpi2".to_owned(), Availability::Absent);
        set(facts, "net.ipv4.tcp_congestion_control", "prague");
    }),
    ("tc-without-dualpi2", Harm::Medium, |facts| facts.tc.as_mut().unwrap().dualpi2 = false),
    ("module-blocked", Harm::Medium, |facts| {
        let file = "/etc/modprobe.d/x.conf".to_owned();
        facts.kernel.blocked.push(Blocked { module: "sch_fq".to_owned(), entirely: true, file });
    }),
    ("setting-ignored", Harm::Medium, |facts| {
        facts.ignored_settings.push(setting("/etc/sysctl.conf", "net.ipv4.tcp_ecn", "1"));
    }),
    ("setting-not-running", Harm::Medium, |facts| {
        facts.settings.push(setting("/etc/sysctl.d/9.conf", "net.ipv4.tcp_ecn", "1"));
    }),
    ("mtu-probing-off", Harm::Medium, |facts| {
        set(facts, "net.ipv4.tcp_mtu_probing", "0");
        let mut tunnel = facts.interfaces[0].clone();
        tunnel.driver = Some("wireguard".to_owned());
        facts.interfaces.push(tunnel);
    }),
    ("tcp-feature-off", Harm::Medium, |facts| set(facts, "net.ipv4.tcp_sack", "0")),
    ("drops", Harm::Medium, |facts| {
        facts.interfaces[0].qdiscs[1].statistics.insert("drops".to_owned(), 2000);
    }),
    ("aggregates-behind-shaper", Harm::Low, |facts| {
        facts.interfaces[0].qdiscs[1].kind = "fq_codel".to_owned();
    }),
    ("one-queue-for-all", Harm::Note, |facts| facts.interfaces[0].tx_queues = 4),
    ("ecn-off", Harm::Low, |facts| set(facts, "net.ipv4.tcp_ecn", "0")),
    ("setting-overridden", Harm::Low, |facts| {
        let first = setting("/etc/sysctl.d/1.conf", "net.ipv4.tcp_mtu_probing", "2");
        facts.settings.insert(0, first);
    }),
    ("setting-in-no-file", Harm::Low, |facts| set(facts, "net.ipv4.tcp_fastopen", "3")),
    ("setting-removed", Harm::Low, |facts| {
        facts.settings.push(setting("/etc/sysctl.conf", "net.ipv4.tcp_tw_recycle", "1"));
    }),
    ("oversize-buffers", Harm::Low, |facts| {
        set(facts, "net.ipv4.tcp_wmem", "4096 65536 67108864");
    }),
    ("notsent-lowat-unset", Harm::Low, |facts| {
        set(facts, "net.ipv4.tcp_notsent_lowat", "4294967295");
    }),
    ("bbr-without-fq", Harm::Note, |facts| connections(facts, "bbr", 1, "48ms")),
    ("ecn-is-classic", Harm::Note, |facts| set(facts, "net.ipv4.tcp_ecn", "1")),
    ("dualpi2-default-target", Harm::Note, |facts| {
        facts.interfaces[0].qdiscs[1].options = Some("limit 10000p target 15ms".to_owned());
    }),
    ("no-queue", Harm::High, |facts| only_qdisc(facts, "noqueue", None)),
];

fn found<'a>(findings: &'a [Finding], id: &str) -> Option<&'a Finding> {
    findings.iter().find(|finding| finding.id == id)
}

#[test]
fn each_illness_is_found_by_its_name() {
    for (id, harm, illness) in ILLNESSES {
        let mut facts = healthy();
        illness(&mut facts);
        let all = findings(&facts, Some(Rate::from_mbit(50)));
        let finding = found(&all, id).unwrap_or_else(|| panic!("no {id} in {all:#?}"));
        assert_eq!(finding.harm, *harm, "{id}");
        for text in [&finding.seen, &finding.why, &finding.cure] {
            assert!(
                text.ends_with(['.', ':']) && !text.contains('\n') && !text.contains("  "),
                "{text}"
            );
        }
    }
}

/// Whoever switches one of TCP's features off has mostly switched off several.
#[test]
fn each_feature_that_is_off_is_told() {
    let mut facts = healthy();
    let off = ["net.ipv4.tcp_sack", "net.ipv4.tcp_timestamps", "net.ipv4.tcp_recovery"];
    for key in off {
        set(&mut facts, key, "0");
    }
    let all = findings(&facts, None);
    let finding = found(&all, "tcp-feature-off").unwrap();
    for key in off {
        assert!(finding.seen.contains(key) && finding.why.contains(key), "{finding:#?}");
        assert!(finding.cure.contains(&format!("{key}=1")), "{finding:#?}");
    }
    assert_eq!(all.iter().filter(|finding| finding.id == "tcp-feature-off").count(), 1);
    let mut facts = machine("freebsd-14.sysctl");
    let keys = ["sack.enable", "rfc1323", "recvbuf_auto", "sendbuf_auto"];
    for key in keys {
        set(&mut facts, &format!("net.inet.tcp.{key}"), "0");
    }
    let all = findings(&facts, None);
    let finding = found(&all, "tcp-feature-off").unwrap();
    assert!(keys.iter().all(|key| finding.seen.contains(key)), "{finding:#?}");
}

/// A short FIFO may be worse than a long one, so that a plan leaves it; the doctor does not ask for it then.
#[test]
fn where_nothing_manages_a_queue_the_cure_is_another_kernel() {
    let mut facts = healthy();
    only_qdisc(&mut facts, "pfifo_fast", None);
    for kind in ["fq_codel", "fq", "dualpi2", "pie"] {
        facts.qdiscs.insert(kind.to_owned(), Availability::Absent);
    }
    let all = findings(&facts, None);
    let cure = &found(&all, "long-fifo").unwrap().cure;
    assert!(cure.starts_with("A kernel with fq_codel") && cure.contains("dualq module"), "{cure}");
    assert!(cure.contains("leaves the queue alone where it would be worse"), "{cure}");
    // Nor does a shaper help that has nothing inside.
    facts.qdiscs.insert("cake".to_owned(), Availability::Absent);
    let cure = |facts: &Facts| {
        let all = findings(facts, Some(Rate::from_mbit(50)));
        found(&all, "no-local-rate").unwrap().cure.clone()
    };
    assert!(cure(&facts).contains("this kernel has nothing that manages one"), "{}", cure(&facts));
    facts.qdiscs.insert("pie".to_owned(), Availability::Module);
    assert!(
        cure(&facts).ends_with("by hand, htb at 47500Kbit with pie inside."),
        "{}",
        cure(&facts)
    );
}

/// One at the root would take the place of all transmit queues.
#[test]
fn below_mq_each_transmit_queue_gets_one() {
    let mut facts = healthy();
    only_qdisc(&mut facts, "mq", None);
    let interface = &mut facts.interfaces[0];
    let mut leaf = interface.qdiscs[0].clone();
    (leaf.kind, leaf.parent) = ("pfifo_fast".to_owned(), ":1".to_owned());
    interface.qdiscs.push(leaf);
    let all = findings(&facts, None);
    let cure = &found(&all, "long-fifo").unwrap().cure;
    assert!(cure.contains("below mq for each transmit queue"), "{cure}");
    assert!(!cure.contains(" root "), "{cure}");
}

/// Whether these words come in this order.
fn in_order(text: &str, words: &[&str]) -> bool {
    let mut rest = text;
    words.iter().all(|word| match rest.split_once(word) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

/// As a plan has it: the module, cake, fq_codel with a threshold for scalable senders, fq_codel.
#[test]
fn without_dualpi2_the_next_best_is_named_in_order() {
    let mut facts = healthy();
    facts.kernel.release = "6.12.9-amd64".to_owned();
    facts.qdiscs.insert("dualpi2".to_owned(), Availability::Absent);
    for kind in ["cake", "fq_codel", "htb", "pie", "codel"] {
        facts.qdiscs.insert(kind.to_owned(), Availability::Module);
    }
    let cure = |facts: &Facts| found(&findings(facts, None), "no-dualpi2").unwrap().cure.clone();
    let (build, selector) = ("Build dualpi2 for this kernel", "ce_threshold_selector 0x1/0x3");
    assert!(cure(&facts).starts_with("Nothing: cake"), "{}", cure(&facts));

    let mut prague = facts.clone();
    set(&mut prague, "net.ipv4.tcp_congestion_control", "prague");
    let said = cure(&prague);
    let order =
        ["cake", selector, "it lacks the coupling", "fq_codel alone", "--scalable` simulates"];
    assert!(said.starts_with(build) && in_order(&said, &order), "{said}");
    // Connections tell as well as the default.
    let mut running = facts.clone();
    connections(&mut running, "prague", 1, "48ms");
    assert_eq!(cure(&running), said);
    prague.kernel.release = "5.15.0-204-generic".to_owned();
    assert!(!cure(&prague).contains(selector), "{}", cure(&prague));
    prague.qdiscs.insert("cake".to_owned(), Availability::Absent);
    assert!(cure(&prague).contains("Without it fq_codel alone."), "{}", cure(&prague));
    prague.qdiscs.insert("fq_codel".to_owned(), Availability::Absent);
    prague.qdiscs.insert("fq".to_owned(), Availability::Ready);
    assert!(cure(&prague).ends_with("Without it fq."), "{}", cure(&prague));

    // DCTCP's packets are ECT(0), as those of classic senders with ECN.
    let mut dctcp = facts.clone();
    set(&mut dctcp, "net.ipv4.tcp_congestion_control", "dctcp");
    let said = cure(&dctcp);
    let order = ["cake", "ce_threshold", selector, "leave out DCTCP", "--profile datacenter"];
    assert!(said.starts_with(build) && in_order(&said, &order), "{said}");

    // All is one flow: as `plan --tunnel`, which simulates.
    let mut tunnel = facts.clone();
    tunnel_has_all(&mut tunnel, "tun");
    let said = cure(&tunnel);
    let order = ["pie, codel, cake or fq_codel", "vpn0", "--tunnel` simulates", selector, "lacks"];
    assert!(said.starts_with(build) && in_order(&said, &order), "{said}");
}

#[test]
fn the_worst_comes_first() {
    for name in ["debian-13.json", "openwrt-24.json", "linux-7.3.json"] {
        let all = findings(&machine(name), Some(Rate::from_mbit(50)));
        assert!(all.len() > 2 && all.is_sorted_by_key(|finding| finding.harm), "{name}: {all:#?}");
    }
}

#[test]
fn who_knows_no_rate_is_asked_for_it() {
    let facts = machine("debian-13.json");
    let without = findings(&facts, None);
    let finding = found(&without, "no-local-rate").unwrap();
    assert_eq!(finding.harm, Harm::Medium);
    assert!(finding.cure.contains("--rate"), "{}", finding.cure);
    let with = findings(&facts, Some(Rate::from_mbit(50)));
    let finding = found(&with, "no-local-rate").unwrap();
    assert_eq!(finding.harm, Harm::High);
    assert!(finding.cure.contains("47500Kbit"), "{}", finding.cure);
}

#[test]
fn a_link_that_is_the_bottleneck_needs_no_rate_of_its_own() {
    let mut facts = healthy();
    only_qdisc(&mut facts, "fq_codel", None);
    facts.interfaces[0].speed = Some("100mbit".to_owned());
    let all = findings(&facts, Some(Rate::from_mbit(100)));
    assert_eq!(found(&all, "no-local-rate"), None);
}

#[test]
fn a_short_fifo_is_no_trouble() {
    let mut facts = healthy();
    facts.interfaces[0].qdiscs[1].kind = "pfifo".to_owned();
    facts.interfaces[0].qdiscs[1].options = Some("limit 100p".to_owned());
    assert_eq!(found(&findings(&facts, None), "long-fifo"), None);
}

/// Who asks nobody for ECN marks nothing as capable of it.
#[test]
fn bbr3_without_ecn_is_no_trouble() {
    let mut facts = healthy();
    connections(&mut facts, "bbr3", 1, "48ms");
    assert_eq!(found(&findings(&facts, None), "bbr3-ignores-marks"), None);
}

#[test]
fn a_distributions_own_settings_may_be_overridden() {
    let mut facts = healthy();
    set(&mut facts, "net.core.default_qdisc", "fq");
    facts.settings.push(setting("/etc/sysctl.d/9.conf", "net.core.default_qdisc", "fq"));
    // And however a number is written, it is the same.
    facts.settings.push(setting("/etc/sysctl.d/9.conf", "net.ipv4.tcp_recovery", "0x1"));
    assert_eq!(findings(&facts, None), []);
}

#[test]
fn nothing_known_means_nothing_found() {
    assert_eq!(findings(&Facts::default(), Some(Rate::from_mbit(50))), []);
    let facts = Facts { os: Os::FreeBsd, ..machine("debian-13.json") };
    assert_eq!(findings(&facts, None), []);
}

#[test]
fn who_else_takes_what_arrives_is_told() {
    let mut facts = healthy();
    let of =
        |facts: &Facts| findings(facts, None).into_iter().map(|found| found.id).collect::<Vec<_>>();
    let taken = "arriving-is-sorted";
    facts.interfaces[0].arriving = Some(Arriving::Sorted("a clsact with filters (bpf)".to_owned()));
    assert_eq!(of(&facts), [taken]);
    facts.interfaces[0].arriving = Some(Arriving::Redirected("ifb0".to_owned()));
    assert_eq!(of(&facts), [taken]);
    // One of dualq's own.
    let own = Interface { name: "dualq-ifb0".to_owned(), up: true, ..Interface::default() };
    facts.interfaces[0].arriving = Some(Arriving::Redirected(own.name.clone()));
    facts.interfaces.push(own);
    assert_eq!(of(&facts), Vec::<&str>::new());
}

#[test]
fn what_the_kernel_lacks_for_what_arrives_is_told() {
    let mut facts = healthy();
    let of = |facts: &Facts| findings(facts, None);
    for (name, availability) in [
        ("ifb", Availability::Module),
        ("matchall", Availability::Absent),
        ("mirred", Availability::Ready),
    ] {
        facts.redirection.insert(name.to_owned(), availability);
    }
    let found = of(&facts);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].id, "downloads-have-no-queue");
    assert_eq!(found[0].seen, "This kernel has no matchall.");
    assert!(found[0].cure.contains("CONFIG_NET_CLS_MATCHALL"), "{found:?}");
    facts.redirection.insert("matchall".to_owned(), Availability::Module);
    assert_eq!(of(&facts), []);
    // What modprobe refuses is not there.
    facts.kernel.blocked.push(Blocked {
        module: "cls_matchall".to_owned(),
        entirely: true,
        file: "/etc/modprobe.d/x.conf".to_owned(),
    });
    assert!(of(&facts).iter().any(|found| found.id == "downloads-have-no-queue"));
}

#[test]
fn freebsd_has_findings_of_its_own() {
    for name in ["freebsd-12.sysctl", "freebsd-13.sysctl", "freebsd-14.sysctl", "freebsd-15.sysctl"]
    {
        let of = |facts: &Facts, rate| {
            findings(facts, rate).into_iter().map(|found| found.id).collect::<Vec<_>>()
        };
        let facts = machine(name);
        assert_eq!(of(&facts, Some(Rate::from_mbit(50))), ["no-dualpi2"], "{name}");
        // 2 MiB are 17 ms of it.
        assert_eq!(of(&facts, Some(Rate::from_mbit(1000))), ["buffers-too-small", "no-dualpi2"]);
        for (key, value, id) in [
            ("net.inet.tcp.ecn.enable", "0", "ecn-off"),
            ("net.inet.tcp.cc.algorithm", "dctcp", "dctcp-for-all"),
            ("net.inet.tcp.sack.enable", "0", "tcp-feature-off"),
            ("kern.ipc.maxsockbuf", "262144", "buffers-bounded-by-maxsockbuf"),
        ] {
            let mut facts = facts.clone();
            set(&mut facts, key, value);
            assert_eq!(of(&facts, None), [id, "no-dualpi2"], "{name}: {key}");
        }
    }
}
