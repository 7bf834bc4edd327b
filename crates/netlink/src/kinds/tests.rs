//! What is written reads back as what was meant, without a kernel.

use dualq_qdisc::{Config, Device, Spec, grammar, show};

use super::*;

const DEVICE: Device = Device::ethernet(1500);

fn spec(line: &str) -> Spec {
    grammar::parse(line).unwrap_or_else(|error| panic!("{error}")).spec
}

/// The attributes that `spec` is sent with.
fn written(spec: &Spec) -> Vec<u8> {
    let mut writer = Writer::default();
    write(spec, &mut writer);
    writer.finish()
}

fn parameters<'a>(options: &'a [u8], class: Option<&'a [u8]>) -> Parameters<'a> {
    Parameters { options, class, tx_queue_length: DEVICE.tx_queue_length }
}

fn statistics<'a>(own: Option<&'a [u8]>, counters: &'a Counters) -> Statistics<'a> {
    Statistics { own, counters, leaf: None }
}

/// Lines that give every option, since an answer has them all, in values that the kernel would not round.
#[test]
fn what_is_written_reads_back() {
    for line in [
        "dualpi2 limit 7 memlimit 99999 target 5ms tupdate 6ms alpha 0.5 beta 8388607 step_thresh 2ms \
         min_qlen_step 3 coupling_factor 255 overflow drop_enqueue any_ect classic_protection 100% \
         no_split_gso",
        "dualpi2 limit 7 memlimit 99999 max_rtt 100ms typical_rtt 20ms step_thresh 4294967295p \
         min_qlen_step 0 coupling_factor 1 drop_on_overload drop_dequeue l4s_ect \
         classic_protection 0% split_gso",
        "pfifo limit 10",
        "bfifo limit 4294967295",
        "codel limit 100 target 4096us interval 30720us ce_threshold 1024us ecn",
        "codel limit 100 target 4096us interval 30720us noecn",
        "fq_codel limit 100 flows 8 quantum 300 target 4096us interval 30720us memory_limit 4mb \
         ce_threshold 1024us drop_batch 1 noecn",
        "fq_codel limit 100 flows 8 quantum 300 target 4096us interval 30720us memory_limit 4mb \
         ce_threshold 1024us ce_threshold_selector 0x01/0x03 drop_batch 1 noecn",
        "red limit 400kb min 30kb max 90kb avpkt 1500 burst 30 bandwidth 50mbit probability 0.1",
        "red limit 60000 avpkt 1000 ecn harddrop adaptive nodrop",
        "sfq limit 500 quantum 3028 depth 100 headdrop flows 256 divisor 512 perturb 5",
        "fq_pie limit 1000 flows 64 target 20ms tupdate 40ms alpha 1 beta 5 quantum 300 \
         memory_limit 4mb ecn_prob 20 ecn bytemode",
        "pie limit 100 target 20ms tupdate 40ms alpha 1 beta 32 ecn nobytemode",
        "fq limit 7 flow_limit 8 buckets 512 orphan_mask 255 quantum 2000 initial_quantum 4000 \
         maxrate 10mbit low_rate_threshold 1mbit refill_delay 20ms ce_threshold 4ms \
         timer_slack 20us horizon 2s horizon_cap nopacing weights 70000 80000 90000 \
         bands 3 priomap 0 1 2 0 1 2 0 1 2 0 1 2 0 1 2 0",
        "tbf rate 10mbit burst 10kb latency 50ms",
        "tbf rate 40gbit burst 10mb limit 1mb peakrate 80gbit mtu 9014",
        "netem seed 18446744073709551615 limit 5000 delay 48.33ms 100us loss 1% ecn rate 10mbit",
        "netem seed 0 delay 10ns 0ns rate 50gbit",
        "netem delay 20ms 5ms 25% loss 1% 30% duplicate 2% 10% corrupt 1% 20% reorder 3% 40% gap 7 rate 10mbit 20 48 -5 \
         slot 1ms 3ms packets 4 bytes 9000 seed 1",
        "netem loss state 1% 20% 30% 40% 5% seed 1 slot distribution pareto 5ms 1ms delay 3ns 0ns",
        "netem loss gemodel 1% 20% 30% 0.1% ecn rate 50gbit -7 delay 20ms 5ms distribution normal seed 1",
        "prio bands 5 priomap 4 3 2 1 0",
        "prio",
    ] {
        let spec = spec(line);
        let bytes = written(&spec);
        let options = Attributes::read(&bytes).get(TCA_OPTIONS).unwrap_or_default();
        let read = config(spec.kind(), &parameters(options, None));
        let read = read.unwrap_or_else(|| panic!("{line} does not read back"));
        let meant = match &spec {
            // Its gains are rounded by the kernel, not on the way there.
            Spec::Dualpi2(change) => {
                let mtu = DEVICE.max_frame;
                Config::Dualpi2(::dualpi2::Config::for_mtu(mtu).with(change, mtu).unwrap())
            }
            other => other.configure(&DEVICE),
        };
        assert_eq!(show::text(&read), show::text(&meant), "{line}");
        assert_eq!(show::json(&read), show::json(&meant), "{line}");
    }
}

#[test]
fn a_class_of_htb_reads_back() {
    for line in [
        "htb rate 50mbit",
        "htb rate 50mbit ceil 100mbit burst 10001 cburst 20kb",
        "htb rate 35gbit ceil 40gbit",
    ] {
        let spec = spec(line);
        let Spec::Htb(options) = &spec else { panic!("{line}") };
        let mut class = Writer::default();
        write_class(options, &mut class);
        let class = class.finish();
        let class = Attributes::read(&class).get(TCA_OPTIONS).unwrap();
        // The kernel adds the length of the queue of what is not classified.
        let qdisc = written(&spec);
        let mut qdisc = Writer::after(Attributes::read(&qdisc).get(TCA_OPTIONS).unwrap().to_vec());
        qdisc.u32(5, DEVICE.tx_queue_length);
        let qdisc = qdisc.finish();
        assert_eq!(
            config("htb", &parameters(&qdisc, Some(class))),
            Some(spec.configure(&DEVICE)),
            "{line}"
        );
        // Another default class takes the packets, so that this is not ours.
        let position = qdisc.len() - 8 - 12;
        let mut other = qdisc;
        other[position] = 2;
        assert_eq!(config("htb", &parameters(&other, Some(class))), None);
    }
}

/// Only options that were given are sent, each in its own width.
#[test]
fn known_bytes() {
    let empty: [u8; 4] = [4, 0, 2, 0x80];
    for (line, bytes) in [
        ("dualpi2", &empty[..]),
        // A zero counts as not given.
        ("dualpi2 limit 0", &empty),
        ("fq_codel", &empty),
        ("pfifo", &[]),
        ("pfifo_fast", &[]),
        ("pfifo limit 258", &[8, 0, 2, 0, 2, 1, 0, 0]),
        (
            "dualpi2 target 5ms any_ect",
            &[20, 0, 2, 0x80, 8, 0, 3, 0, 0x88, 0x13, 0, 0, 5, 0, 14, 0, 3, 0, 0, 0],
        ),
        ("fq buckets 1000", &[12, 0, 2, 0x80, 8, 0, 8, 0, 10, 0, 0, 0]),
        (
            "netem loss 100% seed 1",
            &[
                40, 0, 2, 0, 0, 0, 0, 0, 0xe8, 3, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0,
                0, 0, 0, 0, 12, 0, 14, 0, 1, 0, 0, 0, 0, 0, 0, 0,
            ],
        ),
    ] {
        if cfg!(target_endian = "little") {
            assert_eq!(written(&spec(line)), bytes, "{line}");
        }
    }
}

/// What tc would show and our types cannot say makes no configuration.
#[test]
fn what_cannot_be_said_is_not_made_up() {
    let netem = written(&spec("netem seed 7 delay 1ms 0ms"));
    let options = Attributes::read(&netem).get(TCA_OPTIONS).unwrap();
    assert!(config("netem", &parameters(options, None)).is_some());
    // A model of losses that nobody knows yet.
    let mut model = Writer::after(options.to_vec());
    model.nest(5, |nested| nested.put(3, &[0; 16]));
    assert_eq!(config("netem", &parameters(&model.finish(), None)), None);
    let mut short = Writer::after(options.to_vec());
    short.put(12, &[1; 24]);
    assert_eq!(config("netem", &parameters(&short.finish(), None)), None);

    let pie = written(&spec("pie limit 1 target 1ms tupdate 10ms alpha 1 beta 1 ecn bytemode"));
    let options = Attributes::read(&pie).get(TCA_OPTIONS).unwrap();
    assert!(matches!(config("pie", &parameters(options, None)), Some(Config::Pie(_))));
    let mut estimates = Writer::after(options.to_vec());
    estimates.u32(8, 1);
    assert_eq!(config("pie", &parameters(&estimates.finish(), None)), None);
    // An older kernel that does not tell all.
    assert_eq!(config("pie", &parameters(&options[8..], None)), None);
    assert_eq!(config("cake", &parameters(&[], None)), None);
    assert_eq!(config("sfq", &parameters(&[], None)), None);
    // A RED inside of it.
    let sfq = written(&spec("sfq limit 5 quantum 3028 depth 7 flows 9 divisor 16"));
    let options = Attributes::read(&sfq).get(TCA_OPTIONS).unwrap();
    assert!(matches!(config("sfq", &parameters(options, None)), Some(Config::Sfq(_))));
    let mut red = options.to_vec();
    red[32] = 1;
    assert_eq!(config("sfq", &parameters(&red, None)), None);
    assert_eq!(config("choke", &parameters(&[], None)), None);
    assert_eq!(config("pfifo", &parameters(&[], None)), None);
}

/// Fields that an older kernel's structure does not have count as nothing.
#[test]
fn statistics_may_be_shorter() {
    let counters = Counters { sent_packets: 5, ..Counters::default() };
    let words: Vec<u8> = (1..=12_u32).flat_map(u32::to_ne_bytes).collect();
    let Some(OwnStats::Dualpi2(whole)) = own_stats("dualpi2", statistics(Some(&words), &counters))
    else {
        panic!("not dualpi2's")
    };
    assert_eq!((whole.probability, whole.step_marks, whole.memory_limit), (1, 8, 12));
    assert_eq!((whole.credit, whole.sent_packets), (9, 5));
    assert_eq!(whole.low_latency_delay, Duration::from_micros(3));
    let short = own_stats("dualpi2", statistics(Some(&words[..32]), &counters));
    let Some(OwnStats::Dualpi2(short)) = short else { panic!("not dualpi2's") };
    assert_eq!((short.step_marks, short.credit, short.memory_limit), (8, 0, 0));
    assert_eq!(own_stats("dualpi2", statistics(None, &counters)), None);
    // Those of a flow are not those of the discipline.
    assert_eq!(own_stats("fq_codel", statistics(Some(&[1, 0, 0, 0]), &counters)), None);
}
