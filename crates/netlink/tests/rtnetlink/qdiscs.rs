//! Queue disciplines, as they are added, changed, refused and dumped.

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::thread;
use std::time::Duration;

use dualq_netlink::{Handle, NetlinkError, Place, Route};
use dualq_qdisc::show::OwnStats;
use dualq_qdisc::{Config, Spec, grammar, show};
use serde_json::Value;

use crate::{device, has, in_namespace, root, skip, spec, wait_for};

const DUALPI2: &str = "tc-dualpi2.jsonl";

fn data(name: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data").join(name);
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Every line that tc and the kernel accepted: what our netlink makes of it, read back by our netlink, is what tc showed.
#[test]
fn dualpi2_added_as_tc_adds_it() {
    in_namespace(|mut netlink| {
        let link = device(&mut netlink);
        if !has(&mut netlink, &link, "dualpi2") {
            return;
        }
        let place = Place::root(link.index);
        let (mut added, mut with_stats) = (0, 0);
        let answers = data(DUALPI2);
        for answer in answers.iter().filter(|answer| answer.get("args").is_some()) {
            if answer["rc"] != 0 {
                continue;
            }
            let line = format!("dualpi2 {}", answer["args"].as_str().unwrap());
            netlink.add_qdisc(&place, &spec(&line)).unwrap();
            let queue = root(&mut netlink, &link);
            let (config, stats) = (queue.config.unwrap(), queue.stats.unwrap());
            assert_eq!(show::text(&config), answer["show"], "{line}");
            assert_eq!(Value::from(show::json(&config)), answer["json"][0], "{line}");
            if let Some(text) = answer.get("stats_text") {
                assert_eq!(show::text_with_stats(&config, &stats), *text, "{line}");
                let json = Value::from(show::json_with_stats(&config, &stats));
                assert_eq!(json, answer["stats_json"][0], "{line}");
                with_stats += 1;
            }
            netlink.delete_qdisc(&place).unwrap();
            added += 1;
        }
        assert_eq!((added, with_stats), (110, 3));
    });
}

/// What tc and the kernel accepted of cake, likewise.
#[test]
fn cake_added_as_tc_adds_it() {
    in_namespace(|mut netlink| {
        let link = device(&mut netlink);
        if !has(&mut netlink, &link, "cake") {
            return;
        }
        let place = Place::root(link.index);
        let mut added = 0;
        for answer in data("tc-cake.jsonl").iter().filter(|answer| answer["rc"] == 0) {
            let line = answer["line"].as_str().unwrap();
            // Two lines that dualq refuses.
            let Ok(parsed) = grammar::parse(line) else { continue };
            netlink.add_qdisc(&place, &parsed.spec).unwrap();
            let queue = root(&mut netlink, &link);
            let config = queue.config.unwrap();
            assert_eq!(show::text(&config), answer["show"], "{line}");
            assert_eq!(Value::from(show::json(&config)), answer["json"][0], "{line}");
            netlink.delete_qdisc(&place).unwrap();
            added += 1;
        }
        assert_eq!(added, 77);
    });
}

/// What they accepted of red, sfq, fq_pie, fq_codel's selector and cake, with the counters before the first packet.
#[test]
fn queues_added_as_tc_adds_them() {
    in_namespace(|mut netlink| {
        let link = device(&mut netlink);
        let place = Place::root(link.index);
        let mut added = 0;
        for answer in data("tc-queues.jsonl").iter().filter(|answer| answer["rc"] == 0) {
            let line = answer["line"].as_str().unwrap();
            let kind = line.split(' ').next().unwrap();
            // What dualq refuses; and sizes that this iproute2 wrote in its own way.
            let Ok(parsed) = grammar::parse(line) else { continue };
            if line.ends_with(" 1gb") || !has(&mut netlink, &link, kind) {
                continue;
            }
            netlink.add_qdisc(&place, &parsed.spec).unwrap();
            let queue = root(&mut netlink, &link);
            let (config, stats) = (queue.config.unwrap(), queue.stats.unwrap());
            let text = show::text_with_stats(&config, &stats);
            assert_eq!(text.trim_end(), answer["stats"].as_str().unwrap().trim_end(), "{line}");
            let json = Value::from(show::json_with_stats(&config, &stats));
            assert_eq!(json, answer["json"], "{line}");
            netlink.delete_qdisc(&place).unwrap();
            added += 1;
        }
        println!("{added} lines");
    });
}

#[test]
fn dualpi2_changed_as_tc_changes_it() {
    in_namespace(|mut netlink| {
        let link = device(&mut netlink);
        if !has(&mut netlink, &link, "dualpi2") {
            return;
        }
        let place = Place::root(link.index);
        netlink.add_qdisc(&place, &spec("dualpi2 target 5ms any_ect")).unwrap();
        let mut changed = 0;
        for answer in data(DUALPI2).iter().filter(|answer| answer.get("change").is_some()) {
            let line = format!("dualpi2 {}", answer["change"].as_str().unwrap());
            let done = netlink.change_qdisc(&place, &spec(&line));
            assert_eq!(done.is_ok(), answer["rc"] == 0, "{line}: {done:?}");
            let config = root(&mut netlink, &link).config.unwrap();
            assert_eq!(show::text(&config), answer["show"], "{line}");
            changed += 1;
        }
        assert_eq!(changed, 7);
        // As with tc, one of another kind needs another handle.
        let other = Place { handle: Handle::qdisc(2), ..place };
        netlink.replace_qdisc(&other, &spec("pfifo limit 7")).unwrap();
        assert_eq!(root(&mut netlink, &link).kind, "pfifo");
        netlink.replace_qdisc(&other, &spec("pfifo limit 8")).unwrap();
        assert_eq!(root(&mut netlink, &link).config.unwrap().to_string(), "limit 8p");
    });
}

/// What the kernel makes of each line reads as the engine's own configuration does.
#[test]
fn every_kind_reads_back_as_it_was_meant() {
    in_namespace(|mut netlink| {
        let link = device(&mut netlink);
        let place = Place::root(link.index);
        // Times are multiples of the usual ticks (4 ms and 10 ms), to which some are rounded.
        for line in [
            "dualpi2",
            "dualpi2 limit 100 step_thresh 5p no_split_gso overflow drop_enqueue",
            "pfifo",
            "pfifo limit 10",
            "bfifo",
            "bfifo limit 100000",
            "pfifo_fast",
            "codel",
            "codel limit 100 target 4ms interval 30ms ce_threshold 1ms ecn",
            "fq_codel",
            "fq_codel limit 100 flows 8 quantum 300 target 4ms interval 30ms memory_limit 4mb \
             ce_threshold 1ms drop_batch 1 noecn",
            "fq_codel ce_threshold 1ms ce_threshold_selector 0x01/0x03",
            "red limit 60000 avpkt 1000",
            "red limit 400kb min 30kb max 90kb avpkt 1500 burst 30 bandwidth 50mbit probability 0.1 \
             ecn harddrop adaptive",
            "red limit 60000 avpkt 1000 ecn nodrop probability 1",
            "sfq",
            "sfq limit 500 quantum 3028 depth 100 headdrop flows 256 divisor 512 perturb 5",
            "sfq limit 200000 flows 65535 divisor 2048",
            "fq_pie",
            "fq_pie limit 1000 flows 64 target 20ms tupdate 40ms alpha 1 beta 5 quantum 300 \
             memory_limit 4mb ecn_prob 20 ecn bytemode",
            "cake bandwidth 20mbit diffserv4 overhead 38 mpu 84 dual-srchost memlimit 2mb rtt 30ms",
            "pie tupdate 20ms",
            "pie limit 100 target 20ms tupdate 40ms alpha 1 beta 32 ecn bytemode",
            "fq",
            "fq limit 7 flow_limit 8 buckets 512 orphan_mask 255 quantum 2000 initial_quantum 4000 \
             maxrate 10mbit low_rate_threshold 1mbit refill_delay 20ms ce_threshold 4ms \
             timer_slack 20us horizon 2s horizon_cap nopacing weights 70000 80000 90000 \
             bands 3 priomap 0 1 2 0 1 2 0 1 2 0 1 2 0 1 2 0",
            "tbf rate 10mbit burst 10kb latency 50ms",
            "tbf rate 10mbit burst 10kb limit 10000 peakrate 20mbit mtu 1540",
            "tbf rate 40gbit burst 100200 limit 1mb leaf dualpi2 target 5ms",
            "tbf rate 7mbit burst 10001 latency 33ms leaf fq_codel",
            "htb rate 50mbit",
            "htb rate 50mbit ceil 100mbit burst 10001 cburst 20kb leaf dualpi2 max_rtt 100ms",
            "htb rate 40gbit leaf netem seed 1 delay 1ms leaf pfifo limit 3",
            "netem seed 7",
            "netem delay 20ms 5ms 25% distribution normal loss 1% 30% duplicate 2% 10% corrupt 1% 20% reorder 3% 40% gap 7 \
             rate 10mbit 20 48 -5 slot 1ms 3ms packets 4 bytes 9000 seed 1",
            "netem loss state 1% 20% 30% 40% 5% seed 1 slot distribution pareto 5ms 1ms delay 3ns",
            "netem loss gemodel 1% 20% 30% 0.1% ecn rate 50gbit -7 delay 20ms 5ms distribution paretonormal seed 1",
            "prio bands 5 priomap 4 3 2 1 0",
            "prio",
            "netem seed 18446744073709551615 limit 5000 delay 48.33ms 100us loss 1% ecn rate 10mbit",
            "netem seed 7 rate 50gbit delay 10ns leaf codel",
        ] {
            let spec = spec(line);
            match netlink.add_qdisc(&place, &spec) {
                Err(error @ NetlinkError::NoSuchKind { .. }) => {
                    skip(&error.to_string());
                    continue;
                }
                result => result.unwrap(),
            }
            let queue = root(&mut netlink, &link);
            let Some(config) = queue.config else {
                let why = format!("this kernel tells less, or more, of {line} than 7.3 does");
                skip(&why);
                netlink.delete_qdisc(&place).unwrap();
                continue;
            };
            let meant = spec.configure(&link.device());
            assert_eq!(show::text(&config), show::text(&meant), "{line}");
            assert_eq!(show::json(&config), show::json(&meant), "{line}");
            assert!(queue.stats.is_some(), "{line}");
            netlink.delete_qdisc(&place).unwrap();
        }
    });
}

/// Each other kind before the first packet, as tc showed it on Linux 7.3.
#[test]
fn defaults_with_statistics_as_tc_shows_them() {
    in_namespace(|mut netlink| {
        let link = device(&mut netlink);
        let place = Place::root(link.index);
        for answer in data("tc-defaults.jsonl") {
            let line = answer["line"].as_str().unwrap();
            let kind = line.split(' ').next().unwrap();
            if !grammar::KINDS.contains(&kind) || !has(&mut netlink, &link, kind) {
                continue;
            }
            let asked = spec(line);
            netlink.add_qdisc(&place, &asked).unwrap();
            let queue = root(&mut netlink, &link);
            netlink.delete_qdisc(&place).unwrap();
            let Some(mut config) = queue.config else {
                skip(&format!("this kernel tells less, or more, of {line} than 7.3 does"));
                continue;
            };
            if let Config::Netem(config) = &mut config {
                // The kernel's own, which was cut from the record.
                assert!(config.seed.take().is_some());
            }
            let json = Value::from(show::json_with_stats(&config, &queue.stats.unwrap()));
            assert_eq!(json, answer["json"][0], "{line}");
        }
    });
}

#[test]
fn a_kind_that_dualq_does_not_know_has_its_common_counters() {
    in_namespace(|mut netlink| {
        let link = device(&mut netlink);
        let place = Place::root(link.index);
        let kind = "hhf";
        if !has(&mut netlink, &link, kind) {
            return;
        }
        netlink.add_qdisc_kind(&place, kind).unwrap();
        let queue = root(&mut netlink, &link);
        assert_eq!((queue.kind.as_str(), queue.handle), (kind, Handle::qdisc(1)));
        assert_eq!((queue.config, queue.stats), (None, None));
        assert_eq!(queue.counters, show::Counters::default());
    });
}

#[test]
fn leaves_are_listed_and_nested() {
    in_namespace(|mut netlink| {
        let link = device(&mut netlink);
        let place = Place::root(link.index);
        if !["htb", "tbf", "codel"].into_iter().all(|kind| has(&mut netlink, &link, kind)) {
            return;
        }
        netlink.add_qdisc(&place, &spec("htb rate 50mbit leaf tbf rate 10mbit burst 10kb latency 50ms leaf codel limit 9")).unwrap();
        let queues = netlink.qdiscs(link.index).unwrap();
        let places: Vec<_> = queues
            .iter()
            .map(|queue| format!("{} {} in {}", queue.kind, queue.handle, queue.parent))
            .collect();
        assert_eq!(places, ["htb 1: in root", "tbf 2: in 1:1", "codel 3: in 2:1"]);
        let leaf = queues[0].config.as_ref().unwrap().leaf().unwrap();
        assert_eq!(Some(leaf), queues[1].config.as_ref());
        assert_eq!(leaf.leaf(), queues[2].config.as_ref());

        netlink
            .change_qdisc(
                &place,
                &spec("htb rate 20mbit leaf tbf rate 5mbit burst 10kb latency 50ms"),
            )
            .unwrap();
        let queues = netlink.qdiscs(link.index).unwrap();
        let shown = show::text(queues[0].config.as_ref().unwrap());
        for part in [
            "class htb 1:1 root leaf 2: prio 0 rate 20Mbit",
            "rate 5Mbit",
            "codel 3: parent 2:1 limit 9p",
        ] {
            assert!(shown.contains(part), "{shown}");
        }
    });
}

#[test]
fn refusals_say_what_was_asked_for_where_and_why() {
    in_namespace(|mut netlink| {
        let link = device(&mut netlink);
        let place = Place::root(link.index);
        let says = |result: Result<(), NetlinkError>, expected: &str| {
            assert_eq!(result.unwrap_err().to_string(), expected);
        };
        says(
            netlink.add_qdisc_kind(&place, "nonsense"),
            "cannot add qdisc nonsense at the root of d0: this kernel has no qdisc nonsense \
             (Specified qdisc kind is unknown)",
        );
        says(
            netlink.delete_qdisc(&place),
            "cannot delete qdisc 1: at the root of d0: Invalid handle",
        );
        says(netlink.link("d9").map(drop), "no device \"d9\" in this network namespace");
        says(netlink.delete_link("d9"), "no device \"d9\" in this network namespace");
        says(
            netlink.set_segmentation_offload("d9", false),
            "no device \"d9\" in this network namespace",
        );
        says(
            netlink.add_route(&Route::via(([10, 9, 0, 0], 16), [10, 0, 0, 2])),
            "cannot add route to 10.9.0.0/16 via 10.0.0.2: Nexthop has invalid gateway",
        );
        says(netlink.set_up(99), "cannot set device 99 up: No such device");
        let shaped = spec("tbf rate 10mbit burst 10kb latency 50ms leaf pfifo");
        says(
            netlink.add_qdisc(&Place { handle: Handle::UNSPECIFIED, ..place }, &shaped),
            "a tbf with a discipline inside needs a handle from 1: to fffe:, such as 1:",
        );
        netlink.add_qdisc(&place, &spec("pfifo limit 5")).unwrap();
        says(
            netlink.add_qdisc(&place, &spec("pfifo limit 5")),
            "cannot add qdisc pfifo limit 5 at the root of d0: Exclusivity flag on, cannot modify",
        );
    });
}

#[test]
fn a_leaf_that_is_refused_takes_what_is_around_it_along() {
    in_namespace(|mut netlink| {
        let link = device(&mut netlink);
        if !has(&mut netlink, &link, "tbf") {
            return;
        }
        // Beyond the grammar, which refuses it.
        let nonsense = dualpi2::Change { coupling_factor: Some(0), ..dualpi2::Change::default() };
        let Spec::Tbf(mut options) = spec("tbf rate 10mbit burst 10kb latency 50ms") else {
            panic!("not a tbf")
        };
        options.leaf = Some(Box::new(Spec::Dualpi2(nonsense)));
        let refused = netlink.add_qdisc(&Place::root(link.index), &Spec::Tbf(options));
        let text = refused.unwrap_err().to_string();
        assert!(
            text.starts_with("cannot add qdisc dualpi2 coupling_factor 0 in 1:1 of d0: "),
            "{text}"
        );
        assert_eq!(netlink.qdiscs(link.index).unwrap(), []);
    });
}

#[test]
fn htb_counts_its_class() {
    in_namespace(|mut netlink| {
        let link = device(&mut netlink);
        if !has(&mut netlink, &link, "htb") {
            return;
        }
        netlink.add_qdisc(&Place::root(link.index), &spec("htb rate 1gbit leaf pfifo")).unwrap();
        netlink.add_address(link.index, Ipv4Addr::new(10, 0, 0, 1), 24).unwrap();
        netlink.add_neighbour(link.index, Ipv4Addr::new(10, 0, 0, 2), [2, 0, 0, 0, 0, 2]).unwrap();
        let peer = netlink.link("d1").unwrap();
        for index in [link.index, peer.index] {
            netlink.set_up(index).unwrap();
        }
        wait_for(&mut netlink, "d0");
        let sender = UdpSocket::bind("0.0.0.0:0").unwrap();
        for _ in 0..5 {
            sender.send_to(&[0; 100], ("10.0.0.2", 7)).unwrap();
        }
        let stats = root(&mut netlink, &link).stats.unwrap();
        let OwnStats::Htb(own) = &stats.own else { panic!("{stats:?}") };
        assert!(own.lended >= 5 && own.lended == stats.counters.sent_packets, "{stats:?}");
        assert_eq!(own.leaf.counters.sent_packets, own.lended);
        assert_eq!(own.class.sent_packets, own.lended);
        assert!(own.tokens > 0 && own.ctokens > 0, "{stats:?}");
    });
}

#[test]
fn flows_of_fq_codel_tell_how_long_they_wait() {
    in_namespace(|mut netlink| {
        let link = device(&mut netlink);
        if !["tbf", "fq_codel"].into_iter().all(|kind| has(&mut netlink, &link, kind)) {
            return;
        }
        netlink.add_address(link.index, Ipv4Addr::new(10, 0, 0, 1), 24).unwrap();
        let peer = netlink.link("d1").unwrap();
        for device in [&link, &peer] {
            netlink.set_up(device.index).unwrap();
        }
        let far = Ipv4Addr::new(10, 0, 0, 2);
        netlink.add_neighbour(link.index, far, [2, 0, 0, 0, 0, 2]).unwrap();
        wait_for(&mut netlink, "d0");
        let line = "tbf rate 1mbit burst 2kb limit 1mb leaf fq_codel";
        netlink.add_qdisc(&Place::root(link.index), &spec(line)).unwrap();
        // Half a second of two flows.
        let senders = [(); 2].map(|()| UdpSocket::bind("0.0.0.0:0").unwrap());
        for sender in senders.iter().cycle().take(64) {
            sender.send_to(&[0; 958], (far, 9)).unwrap();
        }
        thread::sleep(Duration::from_millis(200));
        let queues = netlink.qdiscs_of(&[peer, link]).unwrap();
        let [none, queues] = &queues[..] else { panic!("{queues:?}") };
        assert!(none.iter().all(|queue| queue.flow_delays.is_empty()), "{none:?}");
        let [tbf, fq_codel] = &queues[..] else { panic!("{queues:?}") };
        assert!(tbf.flow_delays.is_empty());
        // There may be one of IPv6's own beside them.
        let waited = Duration::from_millis(50)..Duration::from_millis(500);
        let long = fq_codel.flow_delays.iter().filter(|delay| waited.contains(delay));
        assert_eq!(long.count(), 2, "{fq_codel:?}");
    });
}
