//! Which values make sense. Everything that reads or makes scenarios asks here, so that a value is right or wrong in a file,
//! on the command line and in code alike.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use dualq_tcp::{Algorithm, EcnOption};
use dualq_units::{Bytes, Exact, Rate};

use crate::ecn::EcnRequest;
use crate::path::{Element, UpLink};
use crate::scenario::{FlowGroup, Link, ProbeGroup, ProbeKind, RateStep, Setup, TIMER_SLACK};
use crate::sizes::Size;
use crate::traffic::UdpGroup;

/// A value that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct ScenarioError {
    /// Which value, as `flow[0].count`.
    pub key: String,
    /// What is wrong with it, and what would be right.
    pub message: String,
}

impl ScenarioError {
    fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { key: key.into(), message: message.into() }
    }
}

/// The least MTU that IPv4 hosts must take (RFC 791 §3.1), and the longest packet that there is.
pub(crate) const MTUS: RangeInclusive<u32> = 576..=65_535;
/// Flows in all groups: each of them takes a kilobyte or two in the model, and sockets in the world `kernel`.
pub(crate) const FLOWS: RangeInclusive<u32> = 1..=100_000;

const RATES: RangeInclusive<Rate> =
    Rate::from_bits_per_second(1_000)..=Rate::from_bits_per_second(1_000_000_000_000);
/// TCP's timestamps, in milliseconds and 32 bits, wrap around after 49 days.
const DURATIONS: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(30 * 86_400);
/// Round trips, and pauses of programs. TCP gives up on what takes longer.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
const WAITS: RangeInclusive<Duration> = Duration::ZERO..=LONGEST_WAIT;
/// Linux is built with 100 to 1000 jiffies a second.
const TICKS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_millis(10);
/// Intervals of series and of probes.
const INTERVALS: RangeInclusive<Duration> = Duration::from_micros(1)..=Duration::from_secs(86_400);
/// Each has an address and a network of its own, which differ in one octet, in the world `kernel`.
const MOST_GROUPS: usize = 250;
/// Elements of a path before, or behind, a queue: each is a host of its own in the world `kernel`.
const MOST_ELEMENTS: usize = 8;
/// What a policer lets pass at once: a packet at least.
const BURSTS: RangeInclusive<Bytes> = Bytes(1_600)..=Bytes(1 << 30);
/// Packets of an element's burst.
pub(crate) const SLOT_PACKETS: RangeInclusive<u32> = 1..=1_000_000;
/// Linux's least receive buffer (`SOCK_MIN_RCVBUF`) is 2304 bytes, doubled by the kernel; and what the worlds allow at most.
const BUFFERS: RangeInclusive<Bytes> = Bytes(2_304)..=Bytes(64 << 20);
/// What may be unsent: 0 would be Linux's way to say that there is no limit.
const UNSENT: RangeInclusive<Bytes> = Bytes(1)..=Bytes(64 << 20);
/// The bytes of an answer to a request.
const ANSWERS: RangeInclusive<Bytes> = Bytes(1)..=Bytes(1 << 30);
/// UDP streams in a group.
const UDP_STREAMS: RangeInclusive<u32> = 1..=1_000;
/// How long after one UDP packet the next of its stream is sent at least: one of 64 bytes at 10 Gbit/s takes as long.
const SHORTEST_INTERVAL: Duration = Duration::from_nanos(50);
/// What is kept of each UDP packet takes less than 1 GB.
const MOST_UDP_PACKETS: u128 = 50_000_000;
/// The shortest IP packet with UDP in it, and a byte.
const SHORTEST_UDP: u32 = 29;
/// What the figures of one run take in memory stays below 200 MB.
const MOST_SAMPLES: u128 = 10_000_000;
/// Lists that the time series has in any case, and at most for each group of flows or probe.
const SERIES: usize = 6;
const SERIES_OF_GROUP: usize = 7;

/// Refuses a link's rate that no world has; `key` is what it is called.
///
/// # Errors
/// If it is below 1 kbit/s or above 1 Tbit/s.
pub fn check_rate(key: &str, rate: Rate) -> Result<(), ScenarioError> {
    within(key, Exact(rate), &RATES)
}

/// Refuses a round trip that no world has; `key` is what it is called.
///
/// # Errors
/// If it is longer than a minute.
pub fn check_rtt(key: &str, rtt: Duration) -> Result<(), ScenarioError> {
    within(key, Exact(rtt), &WAITS)
}

/// Refuses what makes no sense.
pub(crate) fn check(setup: &Setup) -> Result<(), ScenarioError> {
    let Setup { duration, warmup, interval, flow, probe, .. } = setup;
    within("duration", Exact(*duration), &DURATIONS)?;
    if warmup >= duration {
        let (warmup, duration) = (Exact(*warmup), Exact(*duration));
        let message = format!("{warmup} of a duration of {duration} leave nothing to measure");
        return Err(ScenarioError::new("warmup", message));
    }
    within("tick", Exact(setup.tick), &TICKS)?;
    check_link(&setup.link)?;
    check_steps("link", &setup.link.step, *duration)?;
    check_elements("link", &setup.link.before, &setup.link.behind)?;
    if let Some(up) = &setup.link.up {
        check_up(up, *duration)?;
    }
    within("receiver.read_interval", Exact(setup.receiver.read_interval), &WAITS)?;
    if setup.receiver.ecn_option != EcnOption::Full && setup.granted_ecn() != EcnRequest::Accurate {
        let message =
            "the option is Accurate ECN's, which nobody asks for, or which is not granted";
        return Err(ScenarioError::new("receiver.ecn_option", message));
    }
    let groups = setup.groups();
    if groups > MOST_GROUPS {
        let key = match setup {
            _ if flow.len() > MOST_GROUPS => "flow",
            _ if setup.udp.len() > probe.len() => "udp",
            _ => "probe",
        };
        let message =
            format!("at most {MOST_GROUPS} groups of flows, UDP and probes, not {groups}");
        return Err(ScenarioError::new(key, message));
    }
    check_series(*interval, *duration, groups)?;
    check_flows(flow, *duration)?;
    check_udp(setup)?;
    check_probes(probe, *duration)
}

fn check_link(link: &Link) -> Result<(), ScenarioError> {
    check_rate("link.rate", link.rate)?;
    check_rtt("link.rtt", link.rtt)?;
    if link.forward > link.rtt {
        let (forward, rtt) = (Exact(link.forward), Exact(link.rtt));
        let message = format!("{forward} is more than the whole round-trip time, {rtt}");
        return Err(ScenarioError::new("link.forward", message));
    }
    whole_within("link.mtu", link.mtu, &MTUS)
}

fn check_up(up: &UpLink, duration: Duration) -> Result<(), ScenarioError> {
    match up.rate {
        Some(rate) => check_rate("link.up.rate", rate)?,
        None if up.qdisc.is_some() || !up.step.is_empty() => {
            let message = "a queue needs a rate: rate = \"10mbit\"";
            return Err(ScenarioError::new("link.up.rate", message));
        }
        None => {}
    }
    check_steps("link.up", &up.step, duration)?;
    check_elements("link.up", &up.before, &up.behind)
}

fn check_elements(link: &str, before: &[Element], behind: &[Element]) -> Result<(), ScenarioError> {
    for (list, elements) in [("before", before), ("behind", behind)] {
        if elements.len() > MOST_ELEMENTS {
            let message = format!("at most {MOST_ELEMENTS} elements, not {}", elements.len());
            return Err(ScenarioError::new(format!("{link}.{list}"), message));
        }
        for (number, element) in elements.iter().enumerate() {
            let key = |name: &str| format!("{link}.{list}[{number}].{name}");
            match element {
                Element::Delay { delay, jitter, .. } => {
                    within(&key("delay"), Exact(*delay), &WAITS)?;
                    if jitter > delay {
                        let (jitter, delay) = (Exact(*jitter), Exact(*delay));
                        let message = format!("{jitter} is more than the delay itself, {delay}");
                        return Err(ScenarioError::new(key("jitter"), message));
                    }
                }
                Element::Slot { least, most, packets, bytes } => {
                    within(&key("slot"), Exact(*least), &WAITS)?;
                    within(&key("slot_max"), Exact(*most), &WAITS)?;
                    if most < least {
                        let (most, least) = (Exact(*most), Exact(*least));
                        let message = format!("{most} is less than the slot itself, {least}");
                        return Err(ScenarioError::new(key("slot_max"), message));
                    }
                    if let Some(packets) = packets {
                        whole_within(&key("packets"), *packets, &SLOT_PACKETS)?;
                    }
                    if let Some(bytes) = bytes {
                        within(&key("bytes"), Exact(*bytes), &BURSTS)?;
                    }
                }
                Element::Queue { rate, .. } => within(&key("rate"), Exact(*rate), &RATES)?,
                Element::Police { rate, burst } => {
                    within(&key("police"), Exact(*rate), &RATES)?;
                    within(&key("burst"), Exact(*burst), &BURSTS)?;
                }
                Element::Mtu { mtu, .. } => whole_within(&key("mtu"), *mtu, &MTUS)?,
                Element::Loss(_) | Element::Duplicate(_) | Element::Bleach => {}
            }
        }
    }
    Ok(())
}

fn check_steps(link: &str, steps: &[RateStep], duration: Duration) -> Result<(), ScenarioError> {
    let mut before = Duration::ZERO;
    for (number, step) in steps.iter().enumerate() {
        let key = |name: &str| format!("{link}.step[{number}].{name}");
        within(&key("rate"), Exact(step.rate), &RATES)?;
        if step.at <= before || step.at >= duration {
            let (at, before, duration) = (Exact(step.at), Exact(before), Exact(duration));
            let message = format!("{at} is not after {before} and before the end, {duration}");
            return Err(ScenarioError::new(key("at"), message));
        }
        before = step.at;
    }
    Ok(())
}

fn check_series(
    interval: Duration,
    duration: Duration,
    groups: usize,
) -> Result<(), ScenarioError> {
    within("interval", Exact(interval), &INTERVALS)?;
    let lists = (groups * SERIES_OF_GROUP + SERIES) as u128;
    let intervals = duration.as_nanos().div_ceil(interval.as_nanos());
    if intervals * lists > MOST_SAMPLES {
        let least = micros_at_least(duration.as_nanos() * lists / MOST_SAMPLES);
        let (interval, duration) = (Exact(interval), Exact(duration));
        let message = format!(
            "{interval} gives {intervals} intervals in {duration}, more than fit into memory; give {least} or more"
        );
        return Err(ScenarioError::new("interval", message));
    }
    Ok(())
}

/// A round time that is a little longer.
fn micros_at_least(nanos: u128) -> Exact<Duration> {
    let micros = nanos / 1_000 + 1;
    let round = 10_u128.pow(micros.ilog10().saturating_sub(1));
    let micros = micros.div_ceil(round) * round;
    Exact(Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX)))
}

fn check_flows(groups: &[FlowGroup], duration: Duration) -> Result<(), ScenarioError> {
    let mut flows = 0_u32;
    for (number, group) in groups.iter().enumerate() {
        let key = |name: &str| format!("flow[{number}].{name}");
        whole_within(&key("count"), group.count, &FLOWS)?;
        flows = flows.saturating_add(group.count);
        if !FLOWS.contains(&flows) {
            let message =
                format!("at most {} flows in all groups, not {flows} or more", FLOWS.end());
            return Err(ScenarioError::new(key("count"), message));
        }
        if matches!(group.size, Some(Size::Fixed(Bytes(0)) | Size::LogUniform(Bytes(0), _))) {
            return Err(ScenarioError::new(key("size"), "a transfer has at least 1 byte"));
        }
        if let Some(every) = group.every {
            within(&key("every"), Exact(every), &INTERVALS)?;
            if !group.size.as_ref().is_some_and(Size::is_fixed) {
                let message = "what is sent again and again is of one size: size = \"1mb\"";
                return Err(ScenarioError::new(key("size"), message));
            }
        }
        if group.ecn_low && (group.cc != Algorithm::Bbr3.into() || !group.ecn.is_on()) {
            let message = "only bbr3 with ECN heeds such a route: cc = \"bbr3\", ecn = true";
            return Err(ScenarioError::new(key("ecn_low"), message));
        }
        if group.ecn_fallback && group.cc != Algorithm::Prague.into() {
            let message = "only prague looks for classic queues: cc = \"prague\"";
            return Err(ScenarioError::new(key("ecn_fallback"), message));
        }
        if group.ecn_option != EcnOption::Full && !group.asks_accurate() {
            let message = "the option is Accurate ECN's: ecn = \"accurate\"";
            return Err(ScenarioError::new(key("ecn_option"), message));
        }
        if group.ect1 && !group.ecn.is_on() {
            let message = "ECT(1) is for flows that ask for ECN: ecn = true";
            return Err(ScenarioError::new(key("ect1"), message));
        }
        if let Some(interval) = group.read_interval {
            within(&key("read_interval"), Exact(interval), &WAITS)?;
        }
        for (name, buffer) in
            [("receive_buffer", group.receive_buffer), ("send_buffer", group.send_buffer)]
        {
            if let Some(buffer) = buffer {
                within(&key(name), Exact(buffer), &BUFFERS)?;
            }
        }
        if group.fast_open && group.every.is_some() {
            let message = "what is sent again and again opens one connection only; leave out fast_open or every";
            return Err(ScenarioError::new(key("fast_open"), message));
        }
        if let Some(unsent) = group.notsent_lowat {
            within(&key("notsent_lowat"), Exact(unsent), &UNSENT)?;
        }
        within(&key("extra_rtt"), Exact(group.extra_rtt), &WAITS)?;
        let last = group.last_start(number);
        let who = match group.count {
            1 => "the flow starts".to_owned(),
            count => {
                let mean = if group.arrivals.is_even() { "" } else { " on average" };
                let spacing = Exact(group.spacing);
                format!("{count} flows start {spacing} apart{mean}, the last of them")
            }
        };
        if last >= duration {
            let message =
                format!("{who} at {}, and all is over at {}", Exact(last), Exact(duration));
            let name = if group.start >= duration { "start" } else { "count" };
            return Err(ScenarioError::new(key(name), message));
        }
        if let Some(stop) = group.stop
            && stop <= last
        {
            let message = format!(
                "{who} at {}; stop must be after that, not at {}",
                Exact(last),
                Exact(stop)
            );
            return Err(ScenarioError::new(key("stop"), message));
        }
    }
    Ok(())
}

/// Whether packets of this size can make up a rate.
pub(crate) fn check_udp_rate(rate: Rate, packet: u32) -> Result<(), ScenarioError> {
    let of = |each| Rate::of(UdpGroup::bytes_on_the_wire(packet), each);
    let least = Rate::from_bits_per_second(of(*INTERVALS.end()).as_bits_per_second() + 1);
    within("udp.rate", Exact(rate), &(least..=of(SHORTEST_INTERVAL)))
}

fn check_udp(setup: &Setup) -> Result<(), ScenarioError> {
    let duration = setup.duration;
    let mut packets = 0;
    for (number, group) in setup.udp.iter().enumerate() {
        let UdpGroup { packet, interval, count, start, stop, .. } = group;
        let key = |name: &str| format!("udp[{number}].{name}");
        whole_within(&key("packet"), *packet, &(SHORTEST_UDP..=setup.link.mtu))?;
        within(&key("interval"), Exact(*interval), &(SHORTEST_INTERVAL..=*INTERVALS.end()))?;
        whole_within(&key("count"), *count, &UDP_STREAMS)?;
        if *start >= duration {
            let (start, duration) = (Exact(*start), Exact(duration));
            let message = format!("it starts at {start}, and all is over at {duration}");
            return Err(ScenarioError::new(key("start"), message));
        }
        if let Some(stop) = stop
            && *stop <= *start + *interval
        {
            let message = format!(
                "all streams have started at {}; stop must be after that, not at {}",
                Exact(*start + *interval),
                Exact(*stop)
            );
            return Err(ScenarioError::new(key("stop"), message));
        }
        packets += duration.as_nanos() / interval.as_nanos() * u128::from(*count);
        if packets > MOST_UDP_PACKETS {
            let (interval, duration) = (Exact(*interval), Exact(duration));
            let message = format!(
                "a packet each {interval} for {duration} gives more than fit into memory; give fewer"
            );
            return Err(ScenarioError::new(key("interval"), message));
        }
    }
    Ok(())
}

fn check_probes(probes: &[ProbeGroup], duration: Duration) -> Result<(), ScenarioError> {
    let mut samples = 0;
    for (number, probe) in probes.iter().enumerate() {
        let key = format!("probe[{number}].interval");
        within(&key, Exact(probe.interval), &INTERVALS)?;
        if let Some(size) = probe.size {
            let key = format!("probe[{number}].size");
            if probe.kind != ProbeKind::Request {
                let message = format!("{} has none; a request has", probe.kind);
                return Err(ScenarioError::new(key, message));
            }
            within(&key, Exact(size), &ANSWERS)?;
        }
        let pause = match probe.kind {
            ProbeKind::Ssh | ProbeKind::Request => probe.interval + TIMER_SLACK,
            ProbeKind::Ping => probe.interval,
        };
        samples += duration.as_nanos() / pause.as_nanos();
        if samples > MOST_SAMPLES {
            let least = micros_at_least(duration.as_nanos() * probes.len() as u128 / MOST_SAMPLES);
            let (interval, duration) = (Exact(probe.interval), Exact(duration));
            let message = format!(
                "{interval} for {duration} gives more round trips than fit into memory; give {least} or more"
            );
            return Err(ScenarioError::new(key, message));
        }
    }
    Ok(())
}

fn within<T: PartialOrd + Copy>(
    key: &str,
    value: Exact<T>,
    bounds: &RangeInclusive<T>,
) -> Result<(), ScenarioError>
where
    Exact<T>: Display,
{
    if bounds.contains(&value.0) {
        return Ok(());
    }
    let (least, most) = (Exact(*bounds.start()), Exact(*bounds.end()));
    Err(ScenarioError::new(key, format!("{value} is out of bounds; give {least} to {most}")))
}

fn whole_within(key: &str, value: u32, bounds: &RangeInclusive<u32>) -> Result<(), ScenarioError> {
    if bounds.contains(&value) {
        return Ok(());
    }
    Err(ScenarioError::new(key, whole_number(bounds)))
}

/// What is said of something that is no whole number within `bounds`.
pub(crate) fn whole_number(bounds: &RangeInclusive<u32>) -> String {
    format!("give a whole number from {} to {}", bounds.start(), bounds.end())
}
