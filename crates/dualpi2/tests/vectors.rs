//! Every event of every reference trace: what Linux 7.3's `sch_dualpi2.c` did with the same packets and random numbers.
//!
//! `tests/data/dualpi2-vectors/README.md` has the formats and the link these were recorded on.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dualpi2::{
    Change, Class, Config, Departure, DropPoint, DropReason, Dropped, DualPi2, Ecn, EcnMask, Gain,
    Overload, Packet, StepThreshold, XorShift64,
};
use serde_json::Value;

const GSO_HEADERS: u32 = 66;
const ETHERNET_HEADER: u32 = 14;

#[derive(Clone)]
struct Arrival {
    id: u64,
    segment: u32,
    t_ns: u64,
    length: u32,
    truesize: u32,
    ecn: Ecn,
    class: Option<Class>,
    gso_size: u32,
}

impl Packet for Arrival {
    fn length(&self) -> u32 {
        self.length
    }
    fn memory(&self) -> u32 {
        self.truesize
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn set_ce(&mut self) {
        assert_ne!(self.ecn, Ecn::NotEct, "a packet that is not ECN-capable was marked");
        self.ecn = Ecn::Ce;
    }
    fn class(&self) -> Option<Class> {
        self.class
    }
    fn is_gso(&self) -> bool {
        self.gso_size > 0
    }
    fn split(self, segment: &mut impl FnMut(Self)) {
        let mut payload = self.length - GSO_HEADERS;
        let mut number = 0;
        while payload > 0 {
            let part = payload.min(self.gso_size);
            payload -= part;
            number += 1;
            let length = GSO_HEADERS + part;
            segment(Self {
                segment: number,
                length,
                truesize: length + 768,
                gso_size: 0,
                ..self.clone()
            });
        }
    }
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/dualpi2-vectors")
}

fn lines(file: &str) -> String {
    let compressed = fs::File::open(data().join(file)).unwrap();
    let mut text = String::new();
    lzma_rust2::XzReader::new(compressed, false).read_to_string(&mut text).unwrap();
    text
}

fn arrivals(name: &str) -> Vec<Arrival> {
    let text = lines(&format!("{name}.trace.csv.xz"));
    text.lines()
        .skip(1)
        .zip(1..)
        .map(|(line, id)| {
            let fields: Vec<i64> = line.split(',').map(|field| field.parse().unwrap()).collect();
            Arrival {
                id,
                segment: 0,
                t_ns: fields[0] as u64,
                length: fields[1] as u32,
                truesize: fields[2] as u32,
                ecn: Ecn::from_bits(fields[3] as u8),
                class: u16::try_from(fields[4]).ok().and_then(Class::from_minor),
                gso_size: fields[5] as u32,
            }
        })
        .collect()
}

/// `options` of the index: the values as they went over netlink.
fn change(options: &Value) -> Change {
    let mut change = Change::default();
    for (key, value) in options.as_object().unwrap() {
        let number = value.as_u64().unwrap() as u32;
        let micros = Duration::from_micros(number.into());
        match key.as_str() {
            "limit" => change.limit = Some(number),
            "memlimit" => change.memory_limit = Some(number),
            "target_us" => change.target = Some(micros),
            "tupdate_us" => change.tupdate = Some(micros),
            "alpha" => change.alpha = Some(Gain::from_256ths(number)),
            "beta" => change.beta = Some(Gain::from_256ths(number)),
            "step_us" => change.step_threshold = Some(StepThreshold::Time(micros)),
            "step_pkts" => change.step_threshold = Some(StepThreshold::Packets(number)),
            "min_qlen_step" => change.min_qlen_step = Some(number),
            "coupling_factor" => change.coupling_factor = Some(number as u8),
            "drop_overload" => {
                change.overload = Some([Overload::Overflow, Overload::Drop][number as usize]);
            }
            "drop_early" => {
                change.drop_point = Some([DropPoint::Dequeue, DropPoint::Enqueue][number as usize]);
            }
            "classic_protection" => change.classic_protection = Some(number as u8),
            "ecn_mask" => {
                change.ecn_mask = Some(if number == 1 { EcnMask::L4s } else { EcnMask::Any });
            }
            "split_gso" => change.split_gso = Some(number == 1),
            _ => panic!("unknown option {key} in the index"),
        }
    }
    change
}

/// The configuration as the reference writes it down, from what the engine reads back.
fn dump(config: &Config) -> String {
    let mut text = String::new();
    let mut line = |key: &str, value: u128| writeln!(text, "# config {key}={value}").unwrap();
    line("limit", config.limit.into());
    line("memlimit", config.memory_limit.into());
    line("target_us", config.target.as_micros());
    line("tupdate_us", config.tupdate.as_micros());
    line("alpha", config.alpha.as_256ths().into());
    line("beta", config.beta.as_256ths().into());
    match config.step_threshold {
        StepThreshold::Time(time) => line("step_us", time.as_micros()),
        StepThreshold::Packets(packets) => line("step_pkts", packets.into()),
    }
    line("min_qlen_step", config.min_qlen_step.into());
    line("coupling_factor", config.coupling_factor.into());
    line("drop_overload", (config.overload == Overload::Drop).into());
    line("drop_early", (config.drop_point == DropPoint::Enqueue).into());
    line("classic_protection", config.classic_protection.into());
    line("ecn_mask", if config.ecn_mask == EcnMask::L4s { 1 } else { 3 });
    line("split_gso", config.split_gso.into());
    text
}

/// Runs one trace over its link and writes down what happens in the reference's words.
fn run(vector: &Value) -> String {
    let name = vector["name"].as_str().unwrap();
    let rate_bps = vector["rate_bps"].as_u64().unwrap();
    let seed = vector["seed"].as_str().unwrap();
    let device_mtu = vector["mtu"].as_u64().unwrap();
    let mtu = device_mtu as u32 + ETHERNET_HEADER;
    let random = XorShift64::new(seed.parse::<NonZeroU64>().unwrap());
    let config = Config::for_mtu(mtu).with(&change(&vector["options"]), mtu).unwrap();
    let mut queue = DualPi2::new(config, mtu, random, 0).unwrap();

    let mut log = dump(&queue.config());
    writeln!(log, "# rate_bps={rate_bps} seed={seed} mtu={device_mtu}").unwrap();
    log.push_str("t_ns,packet,event\n");

    let drop_event = |log: &mut String, now: u64, lost: &Dropped<Arrival>, at: &str| {
        let reason = match lost.reason {
            DropReason::Overlimit => "overlimit",
            DropReason::Congested => "congested",
            DropReason::Step => "step",
            other => panic!("{other:?}"),
        };
        let Arrival { id, segment, .. } = lost.packet;
        writeln!(log, "{now},{id}.{segment},drop_{reason}_{at}").unwrap();
    };

    let mut arrivals = arrivals(name).into_iter().peekable();
    let (mut link_free, mut out, mut ce) = (0_u64, 0, 0);
    loop {
        // What comes next? At one instant: the timer, then the link, then arrivals.
        let arrival = arrivals.peek().map(|arrival| arrival.t_ns);
        if queue.is_empty() && arrival.is_none() {
            break;
        }
        let timer = queue.next_update_ns();
        let departure = if queue.is_empty() { u64::MAX } else { link_free };
        let now = timer.min(departure).min(arrival.unwrap_or(u64::MAX));
        if now == timer {
            queue.update(now);
            let stats = queue.stats(now);
            writeln!(
                log,
                "{now},timer,prob={} credit={} delay_c_us={} delay_l_us={}",
                stats.probability,
                stats.credit,
                stats.classic_delay.as_micros(),
                stats.low_latency_delay.as_micros()
            )
            .unwrap();
            continue;
        }
        if now != departure {
            let packet = arrivals.next().unwrap();
            queue.enqueue(now, packet, &mut |lost| drop_event(&mut log, now, &lost, "enqueue"));
            if now < link_free {
                continue;
            }
        }
        let leaving = queue.dequeue(now, &mut |lost| drop_event(&mut log, now, &lost, "dequeue"));
        if let Some(Departure { packet, .. }) = leaving {
            let Arrival { id, segment, ecn, length, .. } = packet;
            let event = if ecn == Ecn::Ce { "out_ce" } else { "out" };
            writeln!(log, "{now},{id}.{segment},{event}").unwrap();
            out += 1;
            ce += u64::from(ecn == Ecn::Ce);
            link_free = now + (u64::from(length) * 8 * 1_000_000_000).div_ceil(rate_bps);
        }
    }

    let stats = queue.stats(0);
    writeln!(
        log,
        "# stats prob={} packets_in_c={} packets_in_l={} maxq={} ecn_mark={} step_marks={} credit={} \
         memory_used={} max_memory_used={} memory_limit={} drops={} overlimits={} out={out} ce={ce} \
         sent_packets={} sent_bytes={} backlog={}",
        stats.probability,
        stats.packets_in_classic,
        stats.packets_in_low_latency,
        stats.max_queue_length,
        stats.ecn_marks,
        stats.step_marks,
        stats.credit,
        stats.memory_used,
        stats.max_memory_used,
        stats.memory_limit,
        stats.drops,
        stats.overlimits,
        stats.sent_packets,
        stats.sent_bytes,
        stats.backlog_bytes
    )
    .unwrap();
    log
}

#[test]
fn every_event_of_every_trace() {
    let index = fs::read_to_string(data().join("index.json")).unwrap();
    let vectors: Vec<Value> = serde_json::from_str(&index).unwrap();
    let mut failures = Vec::new();
    let mut seen: HashMap<&str, u32> = HashMap::new();
    for vector in &vectors {
        let name = vector["name"].as_str().unwrap();
        let expected = lines(&format!("{name}.outcome.csv.xz"));
        let actual = run(vector);
        let difference = expected
            .lines()
            .zip(actual.lines())
            .zip(1..)
            .find(|((expected, actual), _)| expected != actual);
        if let Some(((expected, actual), line)) = difference {
            failures.push(format!("{name}, line {line}:\n  Linux {expected}\n  ours  {actual}"));
        } else if expected.lines().count() == actual.lines().count() {
            println!("{name}: {} lines equal", expected.lines().count());
            for event in ["out", "out_ce", "congested", "overlimit", "step", "timer"] {
                *seen.entry(event).or_default() += actual.matches(event).count() as u32;
            }
        } else {
            failures.push(format!("{name}: one log is longer than the other"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(vectors.len(), 46, "traces in the index");
    // Data that exercised nothing would prove nothing.
    assert!(seen.values().all(|&count| count > 100), "{seen:?}");
}
