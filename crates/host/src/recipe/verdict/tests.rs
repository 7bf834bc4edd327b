//! Each verdict, by the reason for it.

use std::time::Duration;

use dualq_units::Rate;

use super::super::Recipe;
use super::{Link, Verdict, check};
use crate::Facts;
use crate::facts::{
    Availability, Blocked, Conntrack, DefaultRoute, Distribution, File, Interface, Kernel, Os,
    Qdisc, Setting, Tc,
};

/// A host as Debian 13 makes them: one interface with fq_codel, no dualpi2.
fn debian() -> Facts {
    let sysctls = [
        ("net.core.default_qdisc", "fq_codel"),
        ("net.core.somaxconn", "4096"),
        ("net.ipv4.tcp_congestion_control", "cubic"),
        ("net.ipv4.tcp_ecn", "2"),
        ("net.ipv4.tcp_rmem", "4096\t131072\t6291456"),
        ("net.ipv4.tcp_wmem", "4096\t16384\t4194304"),
        ("net.mptcp.enabled", "1"),
    ];
    Facts {
        kernel: Kernel { release: "6.12.9-amd64".to_owned(), modules: true, ..Kernel::default() },
        distribution: Distribution {
            id: "debian".to_owned(),
            version: "13".to_owned(),
            ..Distribution::default()
        },
        qdiscs: [
            ("dualpi2", Availability::Absent),
            ("fq", Availability::Module),
            ("fq_codel", Availability::Ready),
        ]
        .map(|(kind, there)| (kind.to_owned(), there))
        .into(),
        congestion_controls: [
            ("bbr", Availability::Module),
            ("cubic", Availability::Ready),
            ("prague", Availability::Absent),
        ]
        .map(|(name, there)| (name.to_owned(), there))
        .into(),
        tc: Some(Tc { version: "iproute2-6.15.0".to_owned(), dualpi2: false }),
        interfaces: vec![Interface {
            name: "ens3".to_owned(),
            mtu: 1500,
            up: true,
            tx_queues: 1,
            qdiscs: vec![Qdisc {
                kind: "fq_codel".to_owned(),
                handle: "0:".to_owned(),
                parent: "root".to_owned(),
                options: Some(
                    "limit 10240p flows 1024 quantum 1514 target 5ms interval 100ms memory_limit 32Mb ecn \
                     drop_batch 64"
                        .to_owned(),
                ),
                ..Qdisc::default()
            }],
            ..Interface::default()
        }],
        default_routes: vec![DefaultRoute { family: 4, dev: "ens3".to_owned(), via: None }],
        sysctls: sysctls.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        ..Facts::default()
    }
}

/// The same with a kernel and a tc that have dualpi2.
fn modern() -> Facts {
    let mut facts = debian();
    facts.kernel.release = "7.3.4".to_owned();
    facts.qdiscs.insert("dualpi2".to_owned(), Availability::Module);
    facts.tc = Some(Tc { version: "iproute2-7.0.0".to_owned(), dualpi2: true });
    facts
}

fn freebsd() -> Facts {
    let mut facts = Facts { os: Os::FreeBsd, ..Facts::default() };
    facts.kernel.release = "14.1-RELEASE".to_owned();
    facts.interfaces =
        vec![Interface { name: "vtnet0".to_owned(), mtu: 1500, ..Interface::default() }];
    facts.congestion_controls.insert("dctcp".to_owned(), Availability::Module);
    facts
}

/// The verdict on the last setting of a text, and why.
fn last(text: &str, facts: &Facts, link: Option<Link>) -> (Verdict, String) {
    let recipe = Recipe::read("-", text);
    let mut findings = check(&recipe, facts, link);
    let finding = findings.pop().expect("it has a setting");
    (finding.verdict, finding.why)
}

/// Whether the verdict on the last setting is that, for a reason with these words in it.
#[track_caller]
fn assert_last(text: &str, facts: &Facts, verdict: Verdict, why: &str) {
    let (found, said) = last(text, facts, None);
    assert_eq!(found, verdict, "{said}");
    assert!(said.contains(why), "{said:?} does not say {why:?}");
}

#[test]
fn obsolete() {
    let facts = debian();
    assert_last("net.ipv4.tcp_fack=1", &facts, Verdict::Obsolete, "4.15");
    assert_last("net.ipv4.tcp_tw_recycle=1", &facts, Verdict::Obsolete, "NAT");
    assert_last("net.ipv4.tcp_adv_win_scale=2", &facts, Verdict::Obsolete, "6.6");
    assert_last("net.ipv4.tcp_recovery=0", &modern(), Verdict::Obsolete, "RACK");
    let mut old = debian();
    old.kernel.release = "4.9.0".to_owned();
    assert_last("net.ipv4.tcp_fack=1", &old, Verdict::Harmless, "");
    assert_last("net.ipv4.tcp_tw_recycle=1", &old, Verdict::Harmful, "NAT");
}

#[test]
fn not_yet_there() {
    let facts = debian();
    assert_last("net.ipv4.tcp_ecn_option=1", &facts, Verdict::WrongHere, "came with 6.18");
    assert_last("net.ipv4.tcp_ecn=3", &facts, Verdict::WrongHere, "AccECN");
    let mut old = debian();
    old.kernel.release = "4.4.0".to_owned();
    assert_last("net.ipv4.tcp_congestion_control=bbr", &old, Verdict::WrongHere, "4.9");
}

#[test]
fn applied_harmless_and_bearing_on_latency() {
    let facts = debian();
    assert_last("net.mptcp.enabled=1", &facts, Verdict::Applied, "the default");
    assert_last("net.ipv4.tcp_recovery=1", &facts, Verdict::Harmless, "the default anyway");
    assert_last("net.ipv4.tcp_fin_timeout=30", &facts, Verdict::Harmless, "no effect on latency");
    assert_last(
        "net.ipv4.tcp_notsent_lowat=131072",
        &facts,
        Verdict::BearsOnLatency,
        "4294967295 now",
    );
    assert_last(
        "net.ipv4.tcp_congestion_control=bbr",
        &facts,
        Verdict::BearsOnLatency,
        "cubic now",
    );
    assert_last("net.core.rps_default_mask=1", &facts, Verdict::Unknown, "");
}

#[test]
fn harmful() {
    let facts = debian();
    for line in
        ["net.ipv4.tcp_timestamps=0", "net.ipv4.tcp_sack=0", "net.ipv4.tcp_window_scaling=0"]
    {
        assert_last(line, &facts, Verdict::Harmful, "");
    }
    assert_last(
        "net.ipv4.tcp_rmem=4096 16384 4194304",
        &facts,
        Verdict::Harmful,
        "window of about 8192",
    );
    assert_last(
        "ip route change default via 192.0.2.1 dev ens3 initcwnd 40",
        &facts,
        Verdict::Harmful,
        "9.6 ms",
    );
    let mut tracking = debian();
    tracking.conntrack = Some(Conntrack { count: 5000, max: 65536 });
    assert_last("net.netfilter.nf_conntrack_max=4096", &tracking, Verdict::Harmful, "5000");
}

/// The same key may be harmless, harmful or impossible: that is up to its value.
#[test]
fn values_and_not_keys() {
    use Verdict::{Applied, BearsOnLatency, Harmful, Harmless, Unknown, WrongHere};
    let facts = debian();
    for (line, verdict, why) in [
        ("net.ipv4.tcp_mem=10 10 10", Harmful, "40 kB for all of them together"),
        ("net.ipv4.tcp_mem=190000 250000 380000", Harmless, ""),
        ("net.ipv4.tcp_mem=16777216 16777216 67108864", WrongHere, "look like bytes"),
        ("net.ipv4.tcp_mem=-1 10 10", WrongHere, "refuses it"),
        ("net.ipv4.tcp_notsent_lowat=1", Harmful, "woken for every packet"),
        ("net.ipv4.tcp_notsent_lowat=8192", Harmful, "woken"),
        ("net.ipv4.tcp_notsent_lowat=16384", BearsOnLatency, ""),
        ("net.ipv4.tcp_notsent_lowat=4294967294", Harmless, "no limit"),
        ("net.ipv4.tcp_notsent_lowat=4294967296", WrongHere, "from 0 to 4294967295"),
        ("net.ipv4.tcp_notsent_lowat=16k", WrongHere, "it takes a number"),
        ("net.core.rmem_max=999999999999", WrongHere, "from 2048 to 2147483647"),
        ("net.core.rmem_max=1024", WrongHere, "from 2048"),
        ("net.core.rmem_max=4096", Harmful, "UDP"),
        ("net.core.rmem_max=0x400000", Harmless, ""),
        ("net.ipv4.tcp_rmem=4096 131072", WrongHere, "Of 2 the kernel sets the first"),
        ("net.ipv4.tcp_rmem=4096 131072 6291456 9", WrongHere, "reads no further"),
        ("net.ipv4.tcp_rmem=131072 4096 6291456", WrongHere, "in this order"),
        ("net.ipv4.tcp_rmem=4096 65536 65536", Harmful, "as if there was no window scaling"),
        ("net.ipv4.tcp_wmem=4096 16384 99999", Harmful, "less than 64 kB"),
        ("net.ipv4.tcp_wmem=4096 16384 99999999999", WrongHere, "refuses it"),
        ("net.ipv4.tcp_sack=0", Harmful, "RACK has nothing"),
        ("net.ipv4.tcp_sack=256", WrongHere, "from 0 to 255"),
        ("net.ipv4.tcp_timestamps=0", Harmful, "(PAWS)"),
        ("net.ipv4.tcp_timestamps=0", Harmful, "(Eifel)"),
        ("net.ipv4.tcp_timestamps=0", Harmful, "of what was retransmitted"),
        ("net.ipv4.tcp_timestamps=0", Harmful, "behind SYN cookies"),
        ("net.ipv4.tcp_slow_start_after_idle=0", BearsOnLatency, "may leave as one burst"),
        ("net.ipv4.tcp_early_retrans=1", Harmful, "no tail loss probes"),
        ("net.ipv4.tcp_early_retrans=4", BearsOnLatency, ""),
        ("net.ipv4.tcp_early_retrans=5", WrongHere, "from 0 to 4"),
        ("net.ipv4.tcp_ecn=0", Harmful, "have to drop"),
        ("net.ipv4.tcp_reordering=1", Harmful, "overtaken"),
        ("net.ipv4.tcp_retries2=3", Harmful, "outage"),
        ("net.ipv4.tcp_retries2=8", Harmless, ""),
        ("net.ipv4.tcp_pacing_ss_ratio=100", Harmful, "does not grow"),
        ("net.ipv4.tcp_pacing_ca_ratio=50", Harmful, "does not fill"),
        ("net.ipv4.tcp_pacing_ca_ratio=1001", WrongHere, "from 0 to 1000"),
        ("net.ipv4.tcp_limit_output_bytes=1", Harmful, "TSO"),
        ("net.ipv4.tcp_limit_output_bytes=262144", BearsOnLatency, ""),
        ("net.ipv4.tcp_limit_output_bytes=-1", Harmless, "no limit"),
        ("net.ipv4.tcp_syncookies=2", Harmful, "fit into a timestamp"),
        ("net.ipv4.tcp_rto_min_us=5000", WrongHere, "came with 6.11"),
        ("net.ipv4.ip_local_port_range=60000 1024", WrongHere, "less than the first"),
        ("net.ipv4.ip_local_port_range=60000 60010", Harmful, "11 connections"),
        ("net.ipv4.ip_local_port_range=10000 65535", Harmless, ""),
        ("net.ipv4.tcp_max_tw_buckets=0", Harmful, "TIME-WAIT"),
        ("net.ipv4.tcp_tw_reuse=3", WrongHere, "from 0 to 2"),
        ("net.core.netdev_max_backlog=1", Harmful, "dropped"),
        ("net.core.netdev_budget=-1", Harmful, "dev_weight"),
        ("net.ipv4.tcp_congestion_control=bbr", BearsOnLatency, "cubic now"),
        ("net.ipv4.tcp_ecn=yes", WrongHere, "it takes a number"),
        ("net.ipv4.tcp_ecn=2", Applied, ""),
        ("net.ipv4.tcp_fin_timeout=$SECONDS", Unknown, "which value"),
        ("vm.swappiness=300", WrongHere, "from 0 to 200"),
    ] {
        if line.contains("rto_min_us") {
            let mut old = debian();
            old.kernel.release = "6.1.0".to_owned();
            assert_last(line, &old, verdict, why);
            assert_last(line, &facts, Harmful, "timeouts for nothing");
        } else {
            assert_last(line, &facts, verdict, why);
        }
    }
}

/// What a kernel takes has changed.
#[test]
fn values_that_only_some_kernels_take() {
    let kernel = |release: &str| {
        let mut facts = debian();
        facts.kernel.release = release.to_owned();
        facts
    };
    let line = "net.ipv4.tcp_rmem=2048 131072 6291456";
    assert_last(line, &kernel("7.3.4"), Verdict::WrongHere, "from 4096");
    assert_last(line, &kernel("6.12.0"), Verdict::Harmless, "");
    let line = "net.ipv4.tcp_frto=1000";
    assert_last(line, &kernel("5.13.0"), Verdict::WrongHere, "from 0 to 255");
    assert_last(line, &kernel("5.10.0"), Verdict::Harmless, "");
    let line = "net.ipv4.tcp_ecn=4";
    assert_last(line, &kernel("6.12.0"), Verdict::WrongHere, "AccECN");
    assert_last(line, &kernel("7.3.4"), Verdict::BearsOnLatency, "");
    assert_last("net.ipv4.tcp_ecn=6", &kernel("7.3.4"), Verdict::WrongHere, "from 0 to 5");
}

/// The plan would raise what is too little at the link's rate, so the recipe is not called good.
#[test]
fn unsent_beside_the_link() {
    let at = |value: u32, mbit| {
        let link = Some(Link { rate: Rate::from_mbit(mbit), rtt: Duration::from_millis(48) });
        last(&format!("net.ipv4.tcp_notsent_lowat={value}"), &debian(), link)
    };
    let (verdict, why) = at(24_000, 50);
    assert_eq!(verdict, Verdict::Harmful, "{why}");
    assert!(why.contains("At 50Mbit more than 24000 bytes go out in the 4 ms"), "{why}");
    assert_eq!(at(28_672, 50).0, Verdict::BearsOnLatency);
    assert_eq!(at(16_384, 10).0, Verdict::BearsOnLatency);
}

#[test]
fn options_of_queue_disciplines() {
    use Verdict::{BearsOnLatency, Harmful, WrongHere};
    let link = Some(Link { rate: Rate::from_mbit(50), rtt: Duration::from_millis(48) });
    for (words, verdict, why) in [
        ("fq_codel target 100us interval 1s", Harmful, "hundredth of the interval"),
        ("fq_codel target 80ms interval 100ms", Harmful, "half of the interval"),
        ("fq_codel target 1ms interval 20ms", Harmful, "half of a round trip"),
        ("fq_codel target 2ms interval 40ms", BearsOnLatency, ""),
        ("codel target 100us interval 1ms", Harmful, ""),
        ("pie target 100us", Harmful, "less than one packet takes at 50Mbit"),
        ("pie target 5ms", BearsOnLatency, ""),
        ("fq_codel limit 4", Harmful, "ten packets"),
        ("fq limit 4", Harmful, "ten packets"),
        ("pfifo limit 4", Harmful, "ten packets"),
        ("pfifo limit 1000", Harmful, "242ms at 50Mbit"),
        ("pfifo limit 50", BearsOnLatency, "manages nothing"),
        ("bfifo limit 64kb", BearsOnLatency, "manages nothing"),
        ("netem delay 10ms", Harmful, "experiments"),
        ("htb rate 60mbit leaf fq_codel", WrongHere, "more than the link's 50Mbit"),
        ("htb rate 45mbit leaf fq_codel", BearsOnLatency, ""),
        ("htb rate 100kbit leaf fq_codel", Harmful, "less than one packet takes at 100Kbit"),
        ("cake bandwidth 60mbit", WrongHere, "more than the link's"),
    ] {
        let line = format!("tc qdisc replace dev ens3 root {words}");
        let (found, said) = last(&line, &modern(), link);
        assert_eq!(found, verdict, "{words}: {said}");
        assert!(said.contains(why), "{words}: {said}");
    }
    assert_last(
        "tc qdisc replace dev ens3 root pfifo limit 1000",
        &debian(),
        Harmful,
        "1000 packets",
    );
}

#[test]
fn figures_of_interfaces_and_routes() {
    use Verdict::{Harmful, Harmless, Unknown, WrongHere};
    let fifo = "tc qdisc replace dev ens3 root pfifo_fast\n";
    for (line, verdict, why) in [
        ("ip link set dev ens3 mtu 1000", Harmful, "IPv6"),
        ("ip link set dev ens3 mtu 70000", WrongHere, "65535"),
        ("ip link set dev ens3 mtu $MTU", Unknown, "no number"),
        (&format!("{fifo}ip link set dev ens3 txqueuelen 10000"), Harmful, "longer queue"),
        (&format!("{fifo}ip link set dev ens3 txqueuelen 2"), Harmful, "dropped"),
        ("ip route change default via 192.0.2.1 dev ens3 initcwnd 2", Harmful, "instead of ten"),
        ("ip route change default via 192.0.2.1 dev ens3 initcwnd 10", Harmless, ""),
        ("ip route change default via 192.0.2.1 dev ens3 mtu 500", Harmful, "576"),
    ] {
        assert_last(line, &debian(), verdict, why);
    }
}

/// What the fuzzer found: a route without anything that could be said of it.
#[test]
fn a_route_that_is_cut_short() {
    let text = "# DCTCP and a smaller MTU for one network, on FreeBSD\n\nIn `/etc/rc.conf`:\n\n```\nstatic_routes=\"aws\"\n\
                route_aws=\"10.4.0.0/16 -interface vtnet0 -mtu ; the words around them are ours.\n\nIn `/etc/rc.conf`:\n\n\
                ```\nstatic_routes=\"aws\"\nroute_aws=\"10.4.0.0/16 -interface vtnet0 -mtu 1400\"\n```\n\nAt once:\n\n```\n\
                sudo kldload cc_dctcp\nsudo sysctl nep.cc.algorithm=dctcp' | sudo tee -a /etc/sysctl.conf";
    let recipe = Recipe::read("-", text);
    assert!(!recipe.steps.is_empty());
    let nothing = Facts { os: Os::FreeBsd, ..Facts::default() };
    for facts in [freebsd(), nothing, debian()] {
        for finding in check(&recipe, &facts, None) {
            assert!(!finding.why.is_empty() && !finding.source.is_empty(), "{finding:?}");
        }
    }
    let open = "static_routes=\"a b\"\nroute_a=\"10.4.0.0/16\"\nroute_b=\"10.5.0.0/16 -mtu many\"";
    let recipe = Recipe::read("/etc/rc.conf", open);
    let facts = freebsd();
    let findings = check(&recipe, &facts, None);
    let verdicts: Vec<Verdict> = findings.iter().map(|finding| finding.verdict).collect();
    assert_eq!(verdicts, [Verdict::Harmless, Verdict::WrongHere], "{findings:?}");
}

#[test]
fn a_limit_that_is_lowered() {
    assert_last("net.core.somaxconn=2048", &debian(), Verdict::WrongHere, "from 4096 to 2048");
    assert_last("net.core.rmem_max=4194304", &debian(), Verdict::Harmless, "212992");
}

#[test]
fn buffers_beside_the_link() {
    let line = "net.ipv4.tcp_wmem=4096 65536 4194304";
    let link =
        |mbit, ms| Some(Link { rate: Rate::from_mbit(mbit), rtt: Duration::from_millis(ms) });
    let (verdict, why) = last(line, &debian(), link(50, 50));
    assert_eq!(verdict, Verdict::Harmless, "{why}");
    assert!(why.contains("about 336 Mbit/s at 50 ms"), "{why}");
    let (verdict, why) = last(line, &debian(), link(1000, 100));
    assert_eq!(verdict, Verdict::WrongHere, "{why}");
    assert!(why.contains("about 168 Mbit/s at 100 ms, less than the link's 1Gbit"), "{why}");
}

#[test]
fn default_qdisc() {
    assert_last("net.core.default_qdisc=dualpi2", &debian(), Verdict::WrongHere, "has no dualpi2");
    assert_last("net.core.default_qdisc=fq", &debian(), Verdict::WrongHere, "ens3 has fq_codel");
    assert_last("net.core.default_qdisc=fq_codel", &debian(), Verdict::Applied, "");
    let both = "tc qdisc replace dev ens3 root fq\nnet.core.default_qdisc=fq";
    assert_last(both, &debian(), Verdict::Harmless, "come up later");
    // One that the kernel refuses leaves the interface as it is.
    let refused = "tc qdisc replace dev ens3 root dualpi2\nnet.core.default_qdisc=fq";
    assert_last(refused, &debian(), Verdict::WrongHere, "ens3 has fq_codel");
    assert_last("net.core.default_qdisc=fq # x", &debian(), Verdict::WrongHere, "line of its own");
    assert_last(
        "net.ipv4.tcp_ecn=1 # x",
        &debian(),
        Verdict::BearsOnLatency,
        "stops at the number",
    );
}

#[test]
fn ecn_and_scalable_congestion_controls() {
    let bbr = "net.ipv4.tcp_congestion_control=bbr\nnet.ipv4.tcp_ecn=1";
    assert_last(bbr, &debian(), Verdict::WrongHere, "does not answer marks");
    assert_last("net.ipv4.tcp_ecn=1", &debian(), Verdict::BearsOnLatency, "2 now");
    assert_last("net.ipv4.tcp_congestion_control=dctcp", &debian(), Verdict::WrongHere, "Reno");
    assert_last(
        "net.ipv4.tcp_congestion_control=prague",
        &debian(),
        Verdict::WrongHere,
        "setting it fails",
    );
    // One that cannot be had does not count.
    let lost = "net.ipv4.tcp_congestion_control=prague\nnet.ipv4.tcp_ecn=1";
    assert_last(lost, &debian(), Verdict::BearsOnLatency, "");
}

#[test]
fn bbr_before_its_own_pacing() {
    let mut old = debian();
    old.kernel.release = "4.9.0".to_owned();
    assert_last(
        "net.ipv4.tcp_congestion_control=bbr",
        &old,
        Verdict::WrongHere,
        "only the queue discipline fq",
    );
    let with_fq = "net.core.default_qdisc=fq\nnet.ipv4.tcp_congestion_control=bbr";
    assert_last(with_fq, &old, Verdict::BearsOnLatency, "");
}

#[test]
fn queue_disciplines() {
    let qdisc = |words: &str| format!("tc qdisc replace dev ens3 root {words}");
    assert_last(&qdisc("dualpi2"), &debian(), Verdict::WrongHere, "has no dualpi2");
    assert_last(&qdisc("dualpi2"), &modern(), Verdict::BearsOnLatency, "further on");
    assert_last(&qdisc("fq_codel"), &modern(), Verdict::Applied, "already");
    assert_last(&qdisc("fq_codel target 10ms"), &modern(), Verdict::BearsOnLatency, "");
    assert_last(&qdisc("dualpi2 targt 5ms"), &modern(), Verdict::WrongHere, "did you mean");
    assert_last(
        &qdisc("dualpi2 target 5ms max_rtt 50ms"),
        &modern(),
        Verdict::WrongHere,
        "overrides target",
    );
    assert_last(
        &qdisc("dualpi2 target 0"),
        &modern(),
        Verdict::WrongHere,
        "target 0 counts as not given",
    );
    assert_last(&qdisc("dualpi2 max_rtt 120ms"), &modern(), Verdict::BearsOnLatency, "target 20ms");
    assert_last(&qdisc("sfb"), &modern(), Verdict::Unknown, "");
    assert_last(&qdisc("sfq"), &modern(), Verdict::BearsOnLatency, "");
    assert_last(
        "tc qdisc replace dev eth7 root fq",
        &modern(),
        Verdict::WrongHere,
        "here, but ens3",
    );
    let mut old_tc = modern();
    old_tc.tc = debian().tc;
    assert_last(&qdisc("dualpi2"), &old_tc, Verdict::WrongHere, "6.17");
    let mut queues = modern();
    queues.interfaces[0].tx_queues = 8;
    assert_last(&qdisc("dualpi2"), &queues, Verdict::BearsOnLatency, "8 transmit queues");
}

#[test]
fn a_target_taken_for_5_ms() {
    let claim = "# dualpi2: the target is 5ms by default\ntc qdisc replace dev ens3 root dualpi2";
    assert_last(claim, &modern(), Verdict::WrongHere, "It is 15 ms unless");
    assert_last(&format!("{claim} target 5ms"), &modern(), Verdict::BearsOnLatency, "");
}

#[test]
fn bbr_in_dualpi2() {
    let both = "net.ipv4.tcp_congestion_control=bbr\ntc qdisc replace dev ens3 root dualpi2";
    assert_last(both, &modern(), Verdict::BearsOnLatency, "neither marks nor loss");
}

#[test]
fn modules() {
    assert_last("modprobe sch_dualpi2", &debian(), Verdict::WrongHere, "neither built in");
    assert_last("modprobe sch_fq", &debian(), Verdict::Harmless, "by itself");
    assert_last("modprobe sch_fq_codel", &debian(), Verdict::Applied, "");
    assert_last("modprobe cc_dctcp", &debian(), Verdict::OtherSystem, "FreeBSD");
}

#[test]
fn a_module_that_a_file_blocks() {
    let mut facts = modern();
    let file = "/etc/modprobe.d/no.conf".to_owned();
    let module = "sch_dualpi2".to_owned();
    facts.kernel.blocked = vec![Blocked { module, entirely: true, file }];
    for line in [
        "net.core.default_qdisc=dualpi2",
        "modprobe sch_dualpi2",
        "tc qdisc add dev ens3 root dualpi2",
    ] {
        assert_last(line, &facts, Verdict::WrongHere, "no.conf keeps");
    }
}

#[test]
fn what_a_missing_interface_hides() {
    let claim = "# the default target is 5ms\ntc qdisc replace dev eth7 root dualpi2";
    assert_last(
        claim,
        &modern(),
        Verdict::WrongHere,
        "here, but ens3. Apart from that: The recipe takes",
    );
    assert_last("ip link set dev eth7 mtu 1500", &modern(), Verdict::WrongHere, "here, but ens3.");
    assert_last(
        "modprobe ifb\ntc qdisc add dev ifb0 root fq",
        &modern(),
        Verdict::BearsOnLatency,
        "",
    );
    // Nothing is known of interfaces, so nothing is said of them.
    let nothing = Facts { interfaces: Vec::new(), ..modern() };
    assert_last("tc qdisc replace dev eth7 root dualpi2", &nothing, Verdict::BearsOnLatency, "");
}

#[test]
fn interfaces() {
    assert_last("ip link set dev ens3 mtu 1500", &debian(), Verdict::Applied, "");
    assert_last("ip link set dev ens3 mtu 1400", &debian(), Verdict::Harmless, "1500 now");
    assert_last(
        "ip link set dev ens3 txqueuelen 100",
        &debian(),
        Verdict::Harmless,
        "limit of its own",
    );
    let fifo = "tc qdisc replace dev ens3 root pfifo_fast\nip link set dev ens3 txqueuelen 100";
    assert_last(fifo, &debian(), Verdict::BearsOnLatency, "how many packets");
    assert_last("ethtool -K ens3 gso off", &debian(), Verdict::WrongHere, "10.5 ms");
    let mut old = debian();
    old.kernel.release = "4.16.0".to_owned();
    assert_last("ethtool -K ens3 gso off", &old, Verdict::BearsOnLatency, "10.5 ms");
    let split = "tc qdisc replace dev ens3 root dualpi2\nethtool -K ens3 gso off";
    assert_last(split, &modern(), Verdict::Harmless, "dualpi2 splits");
}

#[test]
fn what_is_set_twice() {
    let text = "net.ipv4.tcp_ecn=1\nnet.ipv4.tcp_ecn=2";
    let recipe = Recipe::read("-", text);
    let facts = debian();
    let findings = check(&recipe, &facts, None);
    assert_eq!(findings[0].why, "Line 2 sets it again, to another value.");
    let mut facts = debian();
    facts.settings = vec![Setting {
        file: "/etc/sysctl.d/99-z.conf".to_owned(),
        line: 3,
        key: "net.ipv4.tcp_ecn".to_owned(),
        value: "0".to_owned(),
    }];
    assert_last(
        "net.ipv4.tcp_ecn=1",
        &facts,
        Verdict::BearsOnLatency,
        "99-z.conf, line 3, sets it to 0",
    );
}

#[test]
fn a_recipe_for_freebsd() {
    let facts = freebsd();
    let routes = "static_routes=\"aws\"\nroute_aws=\"10.4.0.0/16 -interface vtnet0 -mtu 1400\"";
    assert_last(routes, &facts, Verdict::BearsOnLatency, "1400 bytes at most");
    assert_last(&routes[20..], &facts, Verdict::WrongHere, "static_routes lists aws");
    assert_last(&routes.replace("vtnet0", "em0"), &facts, Verdict::WrongHere, "here, but vtnet0");
    let set = "net.inet.tcp.cc.algorithm=dctcp";
    assert_last(set, &facts, Verdict::WrongHere, "until the module cc_dctcp is loaded");
    assert_last(
        &format!("kldload cc_dctcp\n{set}"),
        &facts,
        Verdict::WrongHere,
        "do not negotiate ECN",
    );
    assert_last("cc_dctcp_load=\"YES\"", &facts, Verdict::BearsOnLatency, "next start");
    assert_last("net.ipv4.tcp_ecn=1", &facts, Verdict::OtherSystem, "Linux");
    assert_last("tc qdisc add dev ens3 root fq", &facts, Verdict::OtherSystem, "Linux");
    for line in [routes, set, "cc_dctcp_load=\"YES\""] {
        assert_last(line, &debian(), Verdict::OtherSystem, "FreeBSD");
    }
    let mut done = freebsd();
    let mut put = |path: &str, content: &str| {
        let file = File { mode: "0644".to_owned(), content: content.to_owned() };
        done.files.insert(path.to_owned(), file);
    };
    put("/etc/rc.conf", routes);
    put("/boot/loader.conf", "cc_dctcp_load=\"YES\"\n");
    assert_last(routes, &done, Verdict::Applied, "rc.conf");
    assert_last("cc_dctcp_load=\"YES\"", &done, Verdict::Applied, "loader.conf");
}

#[test]
fn a_file_that_nobody_reads() {
    let recipe = Recipe::read("-", "echo net.ipv4.tcp_ecn=1 >> /etc/sysctl.conf");
    assert_eq!(recipe.notes(&debian()).len(), 1);
    let mut older = debian();
    older.distribution.version = "12".to_owned();
    assert!(recipe.notes(&older).is_empty());
}

proptest::proptest! {
    /// Whatever is read is judged, with a reason and a source.
    #[test]
    fn every_setting_gets_a_verdict(
        key in proptest::sample::select(vec![
            "net.ipv4.tcp_rmem", "net.ipv4.tcp_mem", "net.ipv4.tcp_ecn", "net.core.default_qdisc",
            "net.ipv4.tcp_congestion_control", "net.core.somaxconn", "net.inet.tcp.cc.algorithm", "net.x.y",
        ]),
        value in "[0-9]{1,25}( [0-9]{1,25}){0,3}|[a-z]{1,8}( #[a-z ]{0,9})?",
        words in "(dualpi2|fq|cake|htb|netem)( (target|limit|bandwidth|default|max_rtt) [0-9]{1,12}(ms|s|mbit)?){0,3}",
        window in "[0-9]{1,12}",
    ) {
        let text = format!(
            "{key} = {value}\nsysctl -w {key}='{value}'\ntc qdisc add dev ens3 root {words}\n\
             ip route change default dev ens3 initcwnd {window} mtu {window}\n"
        );
        let recipe = Recipe::read("-", &text);
        let link = Some(Link { rate: Rate::from_mbit(1), rtt: Duration::from_millis(1) });
        for facts in [debian(), modern(), freebsd(), Facts::default()] {
            for finding in check(&recipe, &facts, link) {
                proptest::prop_assert!(!finding.why.is_empty() && !finding.source.is_empty());
            }
        }
    }
}
