//! The reference traces through the C interface: what Linux did with every packet, by way of the functions that C calls.
//!
//! The caller here is one who splits aggregates itself, as the header asks.
#![expect(unsafe_code, reason = "the functions under test are those that C calls")]

use std::ffi::c_void;
use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::ptr;

use dualpi2_c::*;
use serde_json::Value;

const GSO_HEADERS: u32 = 66;
const SEGMENT_OVERHEAD: u32 = 768;
const ETHERNET_HEADER: u32 = 14;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/dualpi2-vectors")
}

fn lines(file: &str) -> String {
    let compressed = fs::File::open(data().join(file)).unwrap();
    let mut text = String::new();
    lzma_rust2::XzReader::new(compressed, false).read_to_string(&mut text).unwrap();
    text
}

/// A packet's name in the reference, carried through the queue as the user pointer.
fn name(id: usize, segment: usize) -> *mut c_void {
    ptr::without_provenance_mut(id << 8 | segment)
}

fn show(user: *mut c_void) -> String {
    format!("{}.{}", user.addr() >> 8, user.addr() & 0xff)
}

fn config(vector: &Value) -> Config {
    let mtu = vector["mtu"].as_u64().unwrap() as u32 + ETHERNET_HEADER;
    let mut config = dualpi2_config_default(mtu);
    for (key, value) in vector["options"].as_object().unwrap() {
        let number = value.as_u64().unwrap() as u32;
        match key.as_str() {
            "limit" => config.limit = number,
            "memlimit" => config.memory_limit = number,
            "target_us" => config.target_us = number,
            "tupdate_us" => config.tupdate_us = number,
            "alpha" => config.alpha_256ths = number,
            "beta" => config.beta_256ths = number,
            "step_us" => config.step_threshold = number,
            "step_pkts" => (config.step_threshold, config.step_in_packets) = (number, 1),
            "min_qlen_step" => config.min_qlen_step = number,
            "coupling_factor" => config.coupling_factor = number as u8,
            "drop_overload" => config.drop_on_overload = number as u8,
            "drop_early" => config.drop_at_enqueue = number as u8,
            "classic_protection" => config.classic_protection = number as u8,
            "ecn_mask" => config.any_ect = u8::from(number != 1),
            "split_gso" => config.split_gso = number as u8,
            _ => panic!("unknown option {key} in the index"),
        }
    }
    config
}

/// What the drop callback writes into.
struct Journal {
    text: String,
    now: u64,
    doing: &'static str,
}

unsafe extern "C" fn on_drop(context: *mut c_void, packet: Packet, _: Queue, reason: DropReason) {
    // SAFETY: `run` gives its own journal, which nothing else uses while the queue is called.
    let journal = unsafe { &mut *context.cast::<Journal>() };
    let reason = match reason {
        DropReason::Overlimit => "overlimit",
        DropReason::Congested => "congested",
        DropReason::Step => "step",
        other => panic!("{other:?}"),
    };
    let (now, name, doing) = (journal.now, show(packet.user), journal.doing);
    writeln!(journal.text, "{now},{name},drop_{reason}_{doing}").unwrap();
}

fn stats_line(stats: &Stats, out: u64, ce: u64) -> String {
    format!(
        "# stats prob={} packets_in_c={} packets_in_l={} maxq={} ecn_mark={} step_marks={} credit={} \
         memory_used={} max_memory_used={} memory_limit={} drops={} overlimits={} out={out} ce={ce} \
         sent_packets={} sent_bytes={} backlog={}\n",
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
}

/// The events and the last statistics of one trace, in the reference's words.
fn run(vector: &Value) -> String {
    let trace = lines(&format!("{}.trace.csv.xz", vector["name"].as_str().unwrap()));
    let rate_bps = vector["rate_bps"].as_u64().unwrap();
    let random = Random {
        kind: RandomKind::Xorshift64 as u32,
        seed: vector["seed"].as_str().unwrap().parse().unwrap(),
        next: None,
        context: ptr::null_mut(),
    };
    let mut journal = Journal { text: String::new(), now: 0, doing: "" };
    let journal: *mut Journal = &raw mut journal;
    let mut queue = ptr::null_mut();
    // SAFETY: all pointers are to variables that outlive the calls.
    unsafe {
        let (drop, context) = (Some(on_drop as _), journal.cast());
        let error = dualpi2_create(&mut queue, &config(vector), &random, drop, context, 0);
        assert_eq!(error, Error::Ok);
    }

    let mut arrivals = trace.lines().skip(1).zip(1..).map(|(line, id)| {
        let fields: Vec<i64> = line.split(',').map(|field| field.parse().unwrap()).collect();
        (id, fields)
    });
    let mut arrival = arrivals.next();
    let (mut link_free, mut out, mut ce) = (0_u64, 0, 0);
    loop {
        // SAFETY: the queue is alive, and the journal is used by the callback or here, never both.
        unsafe {
            // At one instant: the timer, then the link, then arrivals.
            let empty = dualpi2_length(queue) == 0;
            if empty && arrival.is_none() {
                break;
            }
            let timer = dualpi2_next_update(queue);
            let departure = if empty { u64::MAX } else { link_free };
            let arrives = arrival.as_ref().map_or(u64::MAX, |(_, fields)| fields[0] as u64);
            let now = timer.min(departure).min(arrives);
            (*journal).now = now;
            if now == timer {
                dualpi2_update(queue, now);
                let stats = dualpi2_get_stats(queue, now);
                writeln!(
                    (*journal).text,
                    "{now},timer,prob={} credit={} delay_c_us={} delay_l_us={}",
                    stats.probability,
                    stats.credit,
                    stats.classic_delay_us,
                    stats.low_latency_delay_us
                )
                .unwrap();
                continue;
            }
            if now != departure {
                (*journal).doing = "enqueue";
                let (id, fields) = arrival.take().unwrap();
                let whole = Packet {
                    user: name(id, 0),
                    length: fields[1] as u32,
                    memory: fields[2] as u32,
                    ecn: fields[3] as u8,
                    priority_class: u8::try_from(fields[4]).unwrap_or(0),
                };
                let gso_size = fields[5] as u32;
                if gso_size > 0 && dualpi2_splits_gso(queue) {
                    let payload = whole.length - GSO_HEADERS;
                    for segment in 1..=payload.div_ceil(gso_size) {
                        let part = gso_size.min(payload - (segment - 1) * gso_size);
                        let length = GSO_HEADERS + part;
                        let memory = length + SEGMENT_OVERHEAD;
                        let user = name(id, segment as usize);
                        dualpi2_enqueue(queue, now, Packet { user, length, memory, ..whole });
                    }
                } else {
                    dualpi2_enqueue(queue, now, whole);
                }
                arrival = arrivals.next();
                if now < link_free {
                    continue;
                }
            }
            (*journal).doing = "dequeue";
            let mut leaving = std::mem::MaybeUninit::<Departure>::uninit();
            if dualpi2_dequeue(queue, now, leaving.as_mut_ptr()) {
                let Departure { packet, .. } = leaving.assume_init();
                let carries_ce = packet.ecn & 3 == Ecn::Ce as u8;
                let event = if carries_ce { "out_ce" } else { "out" };
                writeln!((*journal).text, "{now},{},{event}", show(packet.user)).unwrap();
                out += 1;
                ce += u64::from(carries_ce);
                link_free = now + (u64::from(packet.length) * 8 * 1_000_000_000).div_ceil(rate_bps);
            }
        }
    }
    // SAFETY: as above; the queue is not used again.
    unsafe {
        let stats = stats_line(&dualpi2_get_stats(queue, 0), out, ce);
        (*journal).text.push_str(&stats);
        dualpi2_destroy(queue);
        std::mem::take(&mut (*journal).text)
    }
}

#[test]
fn every_event_of_every_trace() {
    let index = fs::read_to_string(data().join("index.json")).unwrap();
    let vectors: Vec<Value> = serde_json::from_str(&index).unwrap();
    for vector in &vectors {
        let name = vector["name"].as_str().unwrap();
        let expected = lines(&format!("{name}.outcome.csv.xz"));
        let (_, expected) = expected.split_once("t_ns,packet,event\n").unwrap();
        let actual = run(vector);
        for (line, (expected, actual)) in expected.lines().zip(actual.lines()).enumerate() {
            assert_eq!(actual, expected, "{name}, event {line}");
        }
        assert_eq!(actual.len(), expected.len(), "{name}");
        println!("{name}: {} lines equal", expected.lines().count());
    }
    assert_eq!(vectors.len(), 46, "traces in the index");
}
