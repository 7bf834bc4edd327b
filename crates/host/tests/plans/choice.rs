//! What is chosen, and what is said of it.

use std::time::Duration;

use dualq_host::facts::Availability;
use dualq_host::plan::{LinkKind, Profile, Question, Requirements, What};
use dualq_host::{Facts, Plan};
use dualq_units::Rate;

use crate::{applied, has_note, line, machine, machines, plan};

#[test]
fn what_the_kernel_has_decides() {
    let line_on = |name| line(&plan(name, |_| ()).unwrap()).unwrap().to_owned();
    // Flows that can be told apart get a queue each, whatever else the kernel has.
    assert_eq!(line_on("arch"), "cake bandwidth 45600kbit");
    assert_eq!(line_on("debian-10"), "cake bandwidth 45600kbit");
    let mut facts = machine("debian-10");
    let requirements = Requirements { rate: Some(Rate::from_mbit(48)), ..Requirements::default() };
    let mut without = |kind: &str| {
        facts.qdiscs.insert(kind.to_owned(), Availability::Absent);
        Plan::make(&facts, &requirements).map(|plan| line(&plan).unwrap().to_owned())
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
    let error = |name, change: &dyn Fn(&mut Requirements)| {
        plan(name, |requirements| change(requirements)).unwrap_err().to_string()
    };
    let text = error("debian-10", &|requirements| requirements.cc = Some("prague".to_owned()));
    assert!(
        text.contains("does not have the congestion control prague; it has bbr, bic, cubic"),
        "{text}"
    );
    let text = error("debian-10", &|requirements| requirements.dev = Some("eth9".to_owned()));
    assert_eq!(text, "there is no interface eth9; there are ens3");
    let text = error("arch", &|requirements| requirements.rate = Some(Rate::from_mbit(2000)));
    assert!(text.contains("more than eno1 can"), "{text}");
    let text = error("debian-10", &|requirements| requirements.qdisc = Some("dualpi2".to_owned()));
    assert!(text.contains("does not have the qdisc dualpi2; it has"), "{text}");
    let text = error("debian-10", &|requirements| {
        requirements.qdisc = Some("fq_codel targt 5ms".to_owned());
    });
    assert!(text.contains("did you mean \"target\"?"), "{text}");
    let text = error("freebsd-14", &|requirements| requirements.cc = Some("prague".to_owned()));
    assert!(text.contains("net.inet.tcp.cc.available has cubic, newreno"), "{text}");
}

/// Buffers and what may wait unsent follow from rate and round-trip time.
#[test]
fn buffers_follow_from_the_path() {
    let of = |mbit, rtt_ms| {
        let requirements = |requirements: &mut Requirements| {
            requirements.rate = Some(Rate::from_mbit(mbit));
            requirements.rtt = Some(Duration::from_millis(rtt_ms));
        };
        let plan = plan("debian-10", requirements).unwrap();
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
    let plan = |facts: &Facts| Plan::make(facts, &Requirements::default()).map(|plan| plan.changes);
    assert_eq!(plan(&facts).unwrap(), plan(&unknown).unwrap());
}

/// Where a queue sees one flow whatever is sent, per-flow queues keep nothing apart; nor are they for scalable senders.
#[test]
fn the_traffic_decides() {
    let line_of = |name, change: &dyn Fn(&mut Requirements)| {
        line(&plan(name, |requirements| change(requirements)).unwrap()).unwrap().to_owned()
    };
    assert_eq!(
        line_of("arch", &|requirements| requirements.tunnel = true),
        "htb rate 45600kbit leaf dualpi2"
    );
    assert_eq!(
        line_of("arch", &|requirements| requirements.scalable = true),
        "htb rate 45600kbit leaf dualpi2"
    );
    let dctcp = |requirements: &mut Requirements| requirements.cc = Some("dctcp".to_owned());
    assert_eq!(line_of("arch", &dctcp), "htb rate 45600kbit leaf dualpi2 any_ect");
    // A kernel without dualpi2 takes the nearest that it has.
    assert_eq!(
        line_of("debian-10", &|requirements| requirements.tunnel = true),
        "htb rate 45600kbit leaf pie"
    );
    // fq has nothing that keeps the queue of one flow short.
    for (kinds, chosen) in [
        (&["pie"][..], "codel"),
        (&["pie", "codel"], "cake"),
        (&["pie", "codel", "cake"], "fq_codel"),
        (&["pie", "codel", "cake", "fq_codel"], "fq"),
    ] {
        let mut facts = machine("ubuntu-24.04");
        for kind in kinds {
            facts.qdiscs.insert((*kind).to_owned(), Availability::Absent);
        }
        let requirements = Requirements {
            rate: Some(Rate::from_mbit(50)),
            tunnel: true,
            ..Requirements::default()
        };
        let plan = Plan::make(&facts, &requirements).unwrap();
        assert!(line(&plan).unwrap().contains(chosen), "{chosen}: {plan:#?}");
        assert!(!has_note(&plan, "keeps each flow's queue apart"), "{plan:#?}");
        let questions = Question::each(&facts, &requirements, false).unwrap();
        let is_fq = |option: &String| option.ends_with("leaf fq");
        let fitting = &questions[0].options[..questions[0].fitting];
        assert_eq!(fitting.iter().any(is_fq), chosen == "fq", "{fitting:?}");
    }
    // There, one that does not listen goes with the queue.
    let plan_of = plan("debian-12", |requirements| requirements.tunnel = true).unwrap();
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
    let requirements = Requirements {
        rate: Some(Rate::from_mbit(48)),
        dev: Some("eno1".to_owned()),
        ..Requirements::default()
    };
    let of = |driver, default| {
        let plan = Plan::make(&facts_with(driver, default), &requirements).unwrap();
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
    let plan = Plan::make(&facts_with("tun", true), &requirements).unwrap();
    assert_eq!(line(&plan), Some("htb rate 45600kbit leaf dualpi2"));
    assert!(has_note(&plan, "the default route is by wg0"), "{:?}", plan.notes);
    // The tunnel's own queue sees the flows before they are put into it.
    let inside = Requirements { dev: Some("wg0".to_owned()), ..requirements.clone() };
    let plan = Plan::make(&facts_with("tun", true), &inside).unwrap();
    assert_eq!(line(&plan), Some(cake.as_str()));
    // Before Linux 5.7 the hash was lost.
    let mut old = facts_with("wireguard", true);
    old.kernel.release = "5.4.0-216-generic".to_owned();
    assert_eq!(
        line(&Plan::make(&old, &requirements).unwrap()),
        Some("htb rate 45600kbit leaf dualpi2")
    );
}

/// Targets are no shorter than what packets take.
#[test]
fn slow_links_have_longer_targets() {
    let line_at = |name, kbit: u64, tunnel, without: &[&str]| {
        let mut facts = machine(name);
        for kind in without {
            facts.qdiscs.insert((*kind).to_owned(), Availability::Absent);
        }
        let requirements = Requirements {
            rate: Some(Rate::from_bits_per_second(kbit * 1000)),
            tunnel,
            ..Requirements::default()
        };
        line(&Plan::make(&facts, &requirements).unwrap()).unwrap().to_owned()
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
        let requirements = Requirements {
            profile: Profile::Datacenter,
            rate: Some(Rate::from_mbit(mbit)),
            rtt: Some(Duration::from_micros(rtt_us)),
            ..Requirements::default()
        };
        line(&Plan::make(&machine("arch"), &requirements).unwrap()).unwrap().to_owned()
    };
    assert_eq!(of(1000, 700), "dualpi2 any_ect step_thresh 625us");
    assert_eq!(of(1000, 70_000), "dualpi2 any_ect step_thresh 10525us");
    assert_eq!(of(500, 700), "htb rate 475mbit leaf dualpi2 any_ect step_thresh 1100us");
    // Who gives the link's own rate means the link.
    let plain =
        plan("arch", |requirements| requirements.rate = Some(Rate::from_mbit(1000))).unwrap();
    assert_eq!(line(&plain), None, "{plain:#?}");
    assert!(has_note(&plain, "needs no shaper"), "{:?}", plain.notes);
}

#[test]
fn what_is_to_be_known_is_said() {
    let gateway =
        plan("openwrt-24", |requirements| requirements.profile = Profile::Gateway).unwrap();
    assert!(has_note(&gateway, "downloads stay unshaped"), "{:?}", gateway.notes);
    assert!(has_note(&gateway, "--link dsl, docsis or ethernet"), "{:?}", gateway.notes);
    let cable =
        plan("openwrt-24", |requirements| requirements.link = Some(LinkKind::Docsis)).unwrap();
    assert_eq!(line(&cable), Some("cake bandwidth 45600kbit docsis"));
    let dsl = plan("debian-10", |requirements| requirements.link = Some(LinkKind::Dsl)).unwrap();
    assert_eq!(line(&dsl), Some("cake bandwidth 45600kbit pppoe-ptm"));

    let make = |change: &dyn Fn(&mut Facts)| {
        let mut facts = machine("debian-10");
        change(&mut facts);
        let requirements =
            Requirements { rate: Some(Rate::from_mbit(48)), ..Requirements::default() };
        Plan::make(&facts, &requirements)
    };
    let down = make(&|facts| facts.interfaces[0].up = false).unwrap();
    assert!(has_note(&down, "ens3 is down"), "{:?}", down.notes);
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
        let requirements = Requirements {
            rate: Some(Rate::from_mbit(1000)),
            rtt: Some(Duration::from_secs(60)),
            ..Requirements::default()
        };
        let plan = Plan::make(&facts, &requirements).unwrap();
        let change = |wanted: &str| {
            let mut changes = plan.changes.iter();
            changes.find_map(|change| match &change.what {
                What::Sysctl { key, after, .. } if key == wanted => {
                    Some((after.clone(), change.why.clone()))
                }
                _ => None,
            })
        };
        (change("net.ipv4.tcp_wmem").unwrap(), change("net.ipv4.tcp_notsent_lowat").unwrap())
    };
    // 94 MB for all of TCP, as a machine of 1 GB has.
    let ((wmem, why), (lowat, why_unsent)) = of(Some("11373\t15164\t22746"));
    assert_eq!(wmem, "4096 16384 46583808");
    assert!(why.contains("no more than 44 MiB, half of the memory"), "{why}");
    assert_eq!(lowat, "2912256");
    assert!(why_unsent.contains("a sixteenth of the largest buffer"), "{why_unsent}");
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
            let requirements = Requirements {
                rate: Some(rate),
                tunnel,
                profile: Profile::fitting(&facts),
                ..Requirements::default()
            };
            let Ok(plan) = Plan::make(&facts, &requirements) else { continue };
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

#[test]
fn interfaces_on_others_are_told_apart() {
    let mut facts = machine("arch");
    let mut part = facts.interfaces[0].clone();
    part.name = "eno2".to_owned();
    facts.interfaces.push(part);
    let upper = |facts: &mut Facts, name: &str, kind: &str| {
        let mut interface = facts.interfaces[0].clone();
        interface.name = name.to_owned();
        interface.driver = Some(kind.to_owned());
        interface.speed = None;
        facts.interfaces.push(interface);
    };
    upper(&mut facts, "eno1.7", "vlan");
    upper(&mut facts, "bond0", "bond");
    upper(&mut facts, "br0", "bridge");
    let plan = |facts: &Facts, dev: &str| {
        let rate = Some(Rate::from_mbit(48));
        Plan::make(
            facts,
            &Requirements { rate, dev: Some(dev.to_owned()), ..Requirements::default() },
        )
    };
    let says = |facts: &Facts, dev: &str, part: &str| {
        let plan = plan(facts, dev).unwrap();
        assert!(has_note(&plan, part), "{:?}", plan.notes);
    };
    for vlan in facts.interfaces.iter_mut().filter(|it| it.name == "eno1.7") {
        vlan.lower = Some("eno1".to_owned());
    }
    says(&facts, "eno1.7", "eno1.7 is a VLAN on eno1: a queue here sees only what this VLAN sends");
    for part in
        facts.interfaces.iter_mut().filter(|it| ["eno1", "eno2"].contains(&it.name.as_str()))
    {
        part.master = Some("bond0".to_owned());
    }
    says(&facts, "bond0", "bond0 is a bond of eno1 and eno2: a shaper here is before all of them");
    assert_eq!(
        plan(&facts, "eno2").unwrap_err().to_string(),
        "eno2 is a part of the bond bond0, which chooses for each flow by which of its parts it goes: a rate is kept at bond0 (--dev bond0)"
    );
    for port in facts.interfaces.iter_mut().filter(|it| it.name == "eno1") {
        port.master = Some("br0".to_owned());
    }
    says(
        &facts,
        "br0",
        "br0 is a bridge of eno1: a queue here sees what this machine itself sends",
    );
    // A port of a bridge is where packets wait.
    assert!(plan(&facts, "eno1").is_ok());
}

#[test]
fn without_dualpi2_scalable_senders_are_marked_where_that_can_be() {
    let scalable = |facts: &Facts, cc: Option<&str>| {
        let requirements = Requirements {
            rate: Some(Rate::from_mbit(48)),
            scalable: true,
            cc: cc.map(str::to_owned),
            ..Requirements::default()
        };
        Plan::make(facts, &requirements).unwrap()
    };
    let mut facts = machine("debian-13");
    facts.qdiscs.insert("dualpi2".to_owned(), Availability::Absent);
    // cake comes first, as in the order of preference; then fq_codel with a threshold for ECT(1).
    assert_eq!(line(&scalable(&facts, None)), Some("cake bandwidth 45600kbit"));
    facts.qdiscs.insert("cake".to_owned(), Availability::Absent);
    let plan = scalable(&facts, None);
    let marks =
        "htb rate 45600kbit leaf fq_codel ce_threshold 1000us ce_threshold_selector 0x1/0x3";
    assert_eq!(line(&plan), Some(marks));
    assert!(has_note(&plan, "the coupling of both queues"), "{:?}", plan.notes);
    assert!(has_note(&plan, "lost is the L4S queue"), "{:?}", plan.notes);
    // It came with Linux 5.16.
    facts.kernel.release = "5.15.0".to_owned();
    assert_eq!(line(&scalable(&facts, None)), Some("htb rate 45600kbit leaf fq_codel"));
}
