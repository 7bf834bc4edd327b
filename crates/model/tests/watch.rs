//! What is told of a run is what its outcome counts, whatever the scenario; and to look changes nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use dualq_model::{simulate, simulate_watched};
use dualq_scenario::draw::{Class, draw};
use dualq_scenario::{
    Change, ConnectionEvent, Event, Headers, Kind, Point, Scenario, Seen, Wants, Watch,
};
use dualq_units::Rate;
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use proptest::prelude::*;
use serde_json::json;

/// All that is told.
#[derive(Default)]
struct All {
    packets: BTreeMap<(&'static str, &'static str), u64>,
    points: BTreeMap<&'static str, u64>,
    data_sent: u64,
    faults: Vec<String>,
    last_ns: u64,
}

impl All {
    fn count(&self, seen: Seen, direction: &str) -> u64 {
        let direction = if direction == "down" { "down" } else { "up" };
        self.packets.get(&(seen.name(), direction)).copied().unwrap_or(0)
    }

    fn at(&self, point: Point) -> u64 {
        self.points.get(point.name()).copied().unwrap_or(0)
    }

    fn note(&mut self, fault: impl Into<String>) {
        if self.faults.len() < 10 {
            self.faults.push(fault.into());
        }
    }
}

impl Watch for All {
    fn wants(&self) -> Wants {
        Wants { packets: true, headers: true, connections: true }
    }

    fn packet(&mut self, event: Event) {
        let direction = if event.direction.is_down() { "down" } else { "up" };
        *self.packets.entry((event.seen.name(), direction)).or_default() += 1;
        if event.seen == Seen::In && event.kind == Kind::Error {
            self.note("routers' messages pass no queue");
        }
    }

    fn headers(&mut self, headers: &Headers<'_>) {
        *self.points.entry(headers.point.name()).or_default() += 1;
        if headers.at_ns < self.last_ns {
            self.note("time goes back");
        }
        self.last_ns = headers.at_ns;
        if let Err(fault) = check(headers) {
            self.note(fault);
        }
    }

    fn connection(&mut self, event: &ConnectionEvent) {
        if let Change::Sent { start, end, .. } = event.change {
            self.data_sent += u64::from(start < end);
        }
    }
}

/// The whole packet is made of its headers and zeros; then all must be right.
fn check(headers: &Headers<'_>) -> Result<(), String> {
    let mut packet = headers.bytes.to_vec();
    if packet.len() > headers.length as usize {
        return Err(format!("{} bytes of headers in {} bytes", packet.len(), headers.length));
    }
    packet.resize(headers.length as usize, 0);
    let sliced = SlicedPacket::from_ip(&packet).map_err(|error| format!("{error}"))?;
    let Some(NetSlice::Ipv4(ip)) = &sliced.net else { return Err("no IPv4".to_owned()) };
    let header = ip.header().to_header();
    if header.header_checksum != header.calc_header_checksum() {
        return Err("a wrong checksum of IP".to_owned());
    }
    let right = match &sliced.transport {
        Some(TransportSlice::Tcp(tcp)) => {
            tcp.to_header().calc_checksum_ipv4(&header, tcp.payload()) == Ok(tcp.checksum())
        }
        Some(TransportSlice::Udp(udp)) => {
            udp.to_header().calc_checksum_ipv4(&header, udp.payload()) == Ok(udp.checksum())
        }
        Some(TransportSlice::Icmpv4(icmp)) => {
            icmp.icmp_type().calc_checksum(icmp.payload()) == icmp.checksum()
        }
        other => return Err(format!("no transport: {other:?}")),
    };
    if right { Ok(()) } else { Err(format!("a wrong checksum: {:?}", sliced.transport)) }
}

/// More than so many bytes take too long to look at.
const MOST_BYTES: f64 = 6e7;

fn bytes(scenario: &Scenario) -> f64 {
    let steps = scenario.link.step.iter().map(|step| step.rate);
    let rate = steps.chain([scenario.link.rate]).map(Rate::as_bits_per_second).max();
    rate.unwrap_or(0) as f64 / 8.0 * scenario.duration.as_secs_f64()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_packet_that_goes_in_comes_out_or_is_dropped(
        class in prop::sample::select(&Class::ALL[..]),
        seed in 0_u64..1_000,
    ) {
        let mut setup = draw(class, seed).into_setup();
        // All is counted then.
        setup.warmup = Duration::ZERO;
        let scenario = Scenario::try_from(setup).unwrap();
        prop_assume!(bytes(&scenario) < MOST_BYTES);
        let mut all = All::default();
        let outcome = simulate_watched(&scenario, seed, &mut all).unwrap();
        let unseen = simulate(&scenario, seed).unwrap();
        prop_assert!(json!(outcome) == json!(unseen), "to look changes nothing");
        prop_assert!(all.faults.is_empty(), "{:#?}", all.faults);

        for (direction, into, out, queue) in [
            ("down", Point::In, Point::Out, Some(&outcome.queue)),
            ("up", Point::UpIn, Point::UpOut, outcome.up_queue.as_ref()),
        ] {
            let [arrived, departed, dropped] =
                [Seen::In, Seen::Out, Seen::Drop].map(|seen| all.count(seen, direction));
            prop_assert_eq!((all.at(into), all.at(out)), (arrived, departed), "{}", direction);
            prop_assert_eq!(dropped, queue.map_or(0, |queue| queue.drops), "{}", direction);
            // Aggregates are taken apart in some queues.
            if !scenario.sender.gso {
                prop_assert!(departed + dropped <= arrived, "{direction}: {arrived} in, {departed} out, {dropped} dropped");
            }
        }
        prop_assert!(all.at(Point::Near) > 0 && all.at(Point::Far) > 0);
        prop_assert!(all.data_sent > 0);
    }
}
