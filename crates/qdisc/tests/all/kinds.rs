//! The words of each kind beside dualpi2: what the real tc makes of them, and what it refuses.

use dualq_qdisc::grammar::{self, RefusedBy};
use dualq_qdisc::{Device, Qdisc, show};
use dualq_units::Instant;

fn shown(line: &str) -> String {
    let parsed = grammar::parse(line).unwrap_or_else(|error| panic!("{error}"));
    show::text(&parsed.spec.configure(&Device::ethernet(1500)))
}

#[test]
fn shown_as_tc_shows_them() {
    for (line, expected) in [
        ("tbf rate 10mbit burst 10kb latency 50ms", "rate 10Mbit burst 10Kb lat 50ms"),
        ("tbf rate 1gbit buffer 10kb/8 latency 50ms", "rate 1Gbit burst 10Kb lat 50ms"),
        ("tbf rate 10mbit maxburst 100 latency 1ms", "rate 10Mbit burst 100b lat 1ms"),
        ("tbf rate 7mbit burst 10001 latency 33ms", "rate 7Mbit burst 10000b lat 33ms"),
        ("tbf rate 10mbit burst 10kb limit 10000", "rate 10Mbit burst 10Kb limit 10000b"),
        ("tbf rate 10mbit burst 10kb latency 5000s", "rate 10Mbit burst 10Kb lat 705s"),
        ("tbf rate 10mbit burst 10kb latency 50ms mtu 2000", "rate 10Mbit burst 10Kb lat 50ms"),
        (
            "tbf rate 10mbit burst 10kb limit 10000 peakrate 20mbit mtu 1540",
            "rate 10Mbit burst 10Kb peakrate 20Mbit minburst 1540b lat 3.38ms",
        ),
        (
            "tbf rate 10mbit burst 10kb latency 50ms peakrate 20mbit minburst 2000",
            "rate 10Mbit burst 10Kb peakrate 20Mbit minburst 2000b lat 50ms",
        ),
        ("netem delay 10ms 5ms loss 1%", "limit 1000 delay 10ms  5ms loss 1%"),
        (
            "netem limit 1k loss random 0.5 0% ecn rate 10mbit seed 7",
            "limit 1024 loss 0.5% rate 10Mbit seed 7 ecn",
        ),
        ("netem latency 10ns", "limit 1000 delay 10ns"),
        ("codel limit 0x10 target 0", "limit 16p target 5ms interval 100ms"),
        (
            "codel ecn ce_threshold 1ms limit 100 target 4ms interval 30ms",
            "limit 100p target 4ms ce_threshold 999us interval 30ms ecn",
        ),
        (
            "fq_codel noecn quantum 100 flows 010 memory_limit 4mb drop_batch 1",
            "limit 10240p flows 8 quantum 256 target 5ms interval 100ms memory_limit 4Mb drop_batch 1",
        ),
        (
            "pie ecn bytemode limit 100 target 20ms tupdate 30ms alpha 1 beta 32",
            "limit 100p target 20ms tupdate 30ms alpha 1 beta 32 ecn bytemode",
        ),
    ] {
        let kind = line.split(' ').next().unwrap();
        let expected = format!("qdisc {kind} 1: root refcnt 2 {expected}");
        assert_eq!(shown(line), expected, "{line}");
    }
    let fq = shown("fq nopacing maxrate 10mbit buckets 1000 ce_threshold 4ms horizon_cap");
    for part in ["orphan_mask 1023 nopacing bands 3", "maxrate 10Mbit", "buckets 1024"] {
        assert!(fq.contains(part), "{fq}");
    }
    assert!(fq.contains("refill_delay 40ms ce_threshold 4ms timer_slack 10us"), "{fq}");
    assert!(fq.ends_with("horizon 10s horizon_cap offload_horizon 0us"), "{fq}");
}

/// As iproute2 6.1 and Linux 7.2 answer.
#[test]
fn corners_of_fq_and_tbf() {
    for (line, part) in [
        ("fq buckets 3", "buckets 4 "),
        ("fq buckets 131073", "buckets 262144 "),
        ("fq buckets 0", "buckets 1024 "),
        ("fq timer_slack 16", " timer_slack 16ns "),
        ("fq timer_slack 1500ns", " timer_slack 1.5us "),
        ("fq refill_delay 1ms", " refill_delay 10ms "),
        ("fq refill_delay 0", " refill_delay 0us "),
        ("fq low_rate_threshold 0", " initial_quantum 15140b refill_delay 40ms "),
        ("tbf rate 10mbit burst 32kb latency 0ms limit 10kb", " limit 10Kb"),
        ("tbf rate 10mbit burst 32kb limit 0 latency 5ms", " lat 5ms"),
    ] {
        assert!(shown(line).contains(part), "{line}: {}", shown(line));
    }
    for (line, by) in [
        ("fq buckets 1", RefusedBy::Kernel),
        ("fq buckets 262145", RefusedBy::Kernel),
        ("tbf rate 10mbit burst 32kb limit 10kb latency 0ms", RefusedBy::Tc),
        ("tbf rate 10mbit burst 32kb latency 5ms limit 0", RefusedBy::Tc),
    ] {
        assert_eq!(grammar::parse(line).unwrap_err().refused_by(), by, "{line}");
    }
}

#[test]
fn classes_of_htb() {
    for (line, class) in [
        ("rate 4mbit", "rate 4Mbit ceil 4Mbit burst 1600b cburst 1600b"),
        ("rate 10gbit", "rate 10Gbit ceil 10Gbit burst 1680b cburst 1680b"),
        ("rate 40gbit", "rate 40Gbit ceil 40Gbit burst 1920b cburst 1920b"),
        ("rate 50mbit ceil 60mbit", "rate 50Mbit ceil 60Mbit burst 1600b cburst 1600b"),
        ("rate 50mbit burst 15k cburst 3000", "rate 50Mbit ceil 50Mbit burst 15Kb cburst 3000b"),
        ("rate 1gbit buffer 12345", "rate 1Gbit ceil 1Gbit burst 12352b cburst 1600b"),
        ("rate 50mbit burst 10k burst 20k", "rate 50Mbit ceil 50Mbit burst 20Kb cburst 1600b"),
        ("rate 33333333", "rate 33333Kbit ceil 33333Kbit burst 1600b cburst 1600b"),
        ("rate 50mbit burst 0", "rate 50Mbit ceil 50Mbit burst 1600b cburst 1600b"),
    ] {
        assert_eq!(
            shown(&format!("htb {line}")),
            format!(
                "qdisc htb 1: root refcnt 2 r2q 10 default 0x1 direct_packets_stat 0 direct_qlen \
                 1000\nclass htb 1:1 root prio 0 {class}"
            ),
            "{line}"
        );
    }
    assert_eq!(
        shown("htb rate 50mbit leaf tbf rate 10mbit burst 10kb latency 50ms leaf bfifo limit 3000"),
        "qdisc htb 1: root refcnt 2 r2q 10 default 0x1 direct_packets_stat 0 direct_qlen 1000\n\
         class htb 1:1 root leaf 2: prio 0 rate 50Mbit ceil 50Mbit burst 1600b cburst 1600b\n\
         qdisc tbf 2: parent 1:1 rate 10Mbit burst 10Kb lat 50ms\n\
         qdisc bfifo 3: parent 2:1 limit 3000b"
    );
}

#[test]
fn refused() {
    use RefusedBy::{Dualq, Kernel, Tc, TcIncomplete};
    for (line, refused_by, message) in [
        ("fq limit 1.5", Tc, "column 10: \"1.5\" is no limit: give a number of packets"),
        ("fq limit -1", Tc, "is no limit"),
        ("fq limit", TcIncomplete, "limit needs a value"),
        ("fq quantum 3kb", Tc, "is no quantum"),
        ("fq quantum 0", Kernel, "the kernel refuses this quantum: give 1 to 1048576 bytes"),
        ("fq maxrate 100gbit", Tc, "too large for maxrate"),
        ("fq timer_slack 20s", Tc, "is no timer_slack"),
        ("fq ce_threshold -1ms", Tc, "is no ce_threshold"),
        ("fq weights 1 2 3", Tc, "no weight: give 3 numbers"),
        ("fq weights 70000 x 1", Tc, "is no weight"),
        ("fq bands 2 priomap 1", Tc, "fq has 3 bands"),
        ("fq bands 3", TcIncomplete, "bands needs a value: give 16 bands"),
        ("fq bands 3 priomap 1 2 5", Tc, "no band: give 16 bands from 0 to 2"),
        ("fq priomap 1", Tc, "unknown option \"priomap\""),
        ("fq offload_horizon 1ms", Dualq, "offload_horizon has no effect"),
        ("fq pacng", Tc, "did you mean \"pacing\"?"),
        ("codel target 5x", Tc, "\"5x\" is no target: give a time"),
        ("codel bogus", Tc, "codel takes limit, target, interval, ecn, noecn, ce_threshold"),
        ("codel help", Tc, "codel takes limit"),
        ("fq_codel memory_limit x", Tc, "is no memory_limit"),
        ("fq_codel quantum 1kb", Tc, "is no quantum"),
        ("fq_codel flows 65537", Kernel, "the kernel refuses this flows"),
        (
            "fq_codel ce_threshold_selector 1",
            Tc,
            "is no ce_threshold_selector: give a value and a mask",
        ),
        ("red limit 100kb", Tc, "red needs limit and avpkt"),
        ("red limit 60kb avpkt 1kb min 5kb max 15kb burst 2", Tc, "give burst 6 or more"),
        ("red limit 60kb avpkt 1kb nodrop", Kernel, "nodrop means nothing without ecn"),
        ("red limit 60kb avpkt 1kb qevent mark block 1", Dualq, "no filters for qevents"),
        ("sfq redflowlimit 100kb", Dualq, "take red or fq_codel"),
        ("sfq divisor 1000", Kernel, "give a power of two up to 65536"),
        ("sfq limit 1", Tc, "give a number of packets from 2 on"),
        ("fq_pie quantum 2mb", Kernel, "give a size up to 1mb"),
        ("fq_pie ecn_prob 100", Tc, "give whole percents from 1 to 99"),
        ("pie alpha 33", Tc, "33 is no alpha"),
        ("pie beta -1", Tc, "is no beta"),
        ("pie dq_rate_estimator", Dualq, "measures the delay of each packet"),
        ("tbf rate 10mbit", Tc, "column 1: tbf needs burst"),
        ("tbf rate 10mbit burst 10kb", Tc, "tbf needs latency, such as 50ms, or limit"),
        ("tbf rate 0 burst 10kb latency 1ms", Tc, "tbf needs rate"),
        ("tbf rate 10mbit burst 10kb/7 latency 50ms", Tc, "\"10kb/7\" is no burst"),
        ("tbf rate 10mbit burst 10kb latency 50ms limit 1000", Tc, "give one of them"),
        ("tbf rate 10mbit rate 10mbit", Tc, "rate is given twice"),
        ("tbf rate 10mbit burst 10kb latency 50ms peakrate 20mbit", Tc, "needs mtu beside"),
        ("tbf rate 10mbit burst 9kb latency 5ms peakrate 5mbit mtu 1600", Kernel, "must be above"),
        ("tbf rate 10mbit burst 1000mb latency 1ms", Tc, "is too large for 10Mbit"),
        ("tbf rate 10mbit burst 10kb latency 50ms linklayer atm", Dualq, "links are ethernet"),
        ("tbf rate 10mbit burst 10kb latency 50ms linklayer foo", Tc, "is no linklayer"),
        ("tbf rate 10mbit burst 10kb latency 50ms overhead 10", Dualq, "has no overhead"),
        ("tbf rate 10mbit burst 10kb latency 50ms leaf", Dualq, "tbf … leaf needs a qdisc"),
        ("pfifo_fast limit 3", Tc, "pfifo_fast takes none"),
        ("netem delay", TcIncomplete, "delay needs a value"),
        ("netem delay -5ms", Tc, "is no delay"),
        ("netem delay 10ms 25%", Tc, "\"25%\" is no jitter"),
        ("netem delay 10ms x", Tc, "unknown option \"x\""),
        ("netem delay 10ms 5ms 101%", Tc, "is no correlation"),
        ("netem loss 101%", Tc, "is no loss"),
        ("netem loss 1% loss 2%", Tc, "loss is given twice"),
        ("netem ecn", Tc, "give loss as well"),
        ("netem reorder 25%", Tc, "give others one"),
        ("netem seed 0x10", Tc, "is no seed"),
        ("htb ceil 50mbit", Tc, "htb needs rate"),
        ("htb rate 1bit", Tc, "less than a byte a second counts as no rate"),
        ("htb rate 8bit", Tc, "too large for 8bit"),
        ("htb rate 50mbit rate 60mbit", Tc, "rate is given twice"),
        ("htb rate 50mbit burst x", Tc, "is no burst"),
        ("htb rate 50mbit quantum 3000", Dualq, "quantum has no effect with one class"),
        ("htb rate 5mbit leaf codel limt 3", Tc, "column 27: unknown option \"limt\""),
        ("htb rate 5mbit leaf cak", Tc, "did you mean \"cake\""),
        ("cake rtt 0", Dualq, "tc makes a target of 1us of it"),
        ("cake overhead 300", Tc, "is no overhead: give a number of bytes from -64 to 256"),
        ("cake overhead 250 ethernet", Dualq, "the overheads add up to 288 bytes"),
        ("cake diffserv5", Tc, "did you mean \"diffserv3\""),
    ] {
        let error = grammar::parse(line).expect_err(line);
        let text = error.to_string();
        assert!(text.contains(message), "{text}\ndoes not say: {message}");
        assert_eq!(error.refused_by(), refused_by, "{text}");
    }
    let deep = format!("{}codel", "htb rate 5mbit leaf ".repeat(9));
    assert!(grammar::parse(&deep).unwrap_err().to_string().contains("at most 8 disciplines"));
}

/// A line that is said again, as in the tables of results: short where that loses nothing.
#[test]
fn said_again() {
    for line in [
        "tbf rate 20Mbit burst 10Kb latency 50ms",
        "tbf rate 1234567bps burst 10001b limit 100000b peakrate 20Mbit mtu 1514b leaf codel ecn",
        "htb rate 50Mbit ceil 60Mbit burst 15Kb cburst 3000b leaf fq_codel limit 100 noecn",
        "netem delay 10ms 2500us loss 1% ecn rate 10Mbit seed 5",
        "netem delay 7ns loss 33.3333%",
        "fq limit 5 maxrate 10Mbit timer_slack 10us horizon_cap nopacing",
        "pie target 20ms tupdate 16666us ecn",
        "pfifo_fast",
    ] {
        let spec = grammar::parse(line).unwrap().spec;
        let again = spec.to_string();
        assert_eq!(grammar::parse(&again).unwrap().spec, spec, "{again}");
        if !line.contains("bps") {
            assert_eq!(again, line);
        }
    }
}

enum Nothing {}

impl dualq_qdisc::Packet for Nothing {
    fn length(&self) -> u32 {
        match *self {}
    }
    fn memory(&self) -> u32 {
        match *self {}
    }
    fn ecn(&self) -> dualq_qdisc::Ecn {
        match *self {}
    }
    fn set_ce(&mut self) {}
}

impl dualq_qdisc::FlowPacket for Nothing {}

/// What `tc -s` shows below the counters that every kind has.
#[test]
fn counters_of_each_kind() {
    for (line, lines) in [
        ("pfifo_fast", ""),
        (
            "fq",
            "  flows 0 (inactive 0 throttled 0) band0_pkts 0 band1_pkts 0 band2_pkts 0\n  \
             gc 0 highprio 0 throttled 0\n",
        ),
        (
            "codel",
            "  count 0 lastcount 0 ldelay 0us drop_next 0us\n  \
             maxpacket 0 ecn_mark 0 drop_overlimit 0\n",
        ),
        (
            "fq_codel",
            "  maxpacket 0 drop_overlimit 0 new_flow_count 0 ecn_mark 0\n  \
             new_flows_len 0 old_flows_len 0\n",
        ),
        ("pie", "  prob 0 delay 0us\n  pkts_in 0 overlimit 0 dropped 0 maxq 0 ecn_mark 0\n"),
        ("tbf rate 10mbit burst 10kb latency 50ms", ""),
        (
            "netem delay 10ms",
            "  delayed 0 dropped 0 corrupted 0 duplicated 0 reordered 0 ecn_marked 0\n",
        ),
        (
            "htb rate 50mbit leaf pfifo limit 30",
            "class htb 1:1 root leaf 2: prio 0 rate 50Mbit ceil 50Mbit burst 1600b cburst 1600b\n \
             Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0) \n backlog 0b 0p requeues 0\n \
             lended: 0 borrowed: 0 giants: 0\n tokens: 4000 ctokens: 4000\n\n\
             qdisc pfifo 2: parent 1:1 limit 30p\n \
             Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0) \n backlog 0b 0p requeues 0\n",
        ),
    ] {
        let spec = grammar::parse(line).unwrap().spec;
        let device = Device::ethernet(1500);
        let random = dualq_qdisc::SplitMix64::new(1);
        let discipline = spec.build::<Nothing, _>(&device, random, Instant::ZERO);
        let (config, stats) = (discipline.config(), discipline.stats(Instant::ZERO));
        let text = show::text_with_stats(&config, &stats);
        let own: String = text.split_inclusive('\n').skip(3).collect();
        assert_eq!(own, lines, "{line}");
    }
}
