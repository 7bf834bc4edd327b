//! What another crate brings along: its own congestion control and queue discipline, and a run that it steps through.

use std::time::Duration;

use dualq_model::{Packet, Simulation};
use dualq_qdisc::show::{Counters, OwnStats, Stats};
use dualq_qdisc::{
    ChangeError, Config, Departure, Discipline, DropReason, Dropped, Foreign, Packet as _, Qdisc,
    Spec,
};
use dualq_scenario::{Algorithm, Scenario, Sweep};
use dualq_tcp::cc::{CongestionControl, Context, NameTaken, Window};
use dualq_units::Instant;

/// A window that nothing changes.
#[derive(Debug)]
struct Constant;

const WINDOW: u32 = 40;

impl CongestionControl for Constant {
    fn start(&mut self, window: &mut Window, _context: &Context) {
        window.cwnd = WINDOW;
    }

    fn ssthresh(&mut self, _window: &Window, _context: &Context) -> u32 {
        WINDOW
    }

    fn increase(&mut self, window: &mut Window, _context: &Context, _acked: u32) {
        window.cwnd = WINDOW;
    }
}

/// Last in, first out, and never more than `LIMIT` packets.
#[derive(Default)]
struct Stack {
    packets: Vec<(Instant, Packet)>,
    counters: Counters,
}

const LIMIT: usize = 20;

impl Qdisc<Packet> for Stack {
    fn bands(&self) -> &'static [&'static str] {
        &["stack"]
    }

    fn enqueue(
        &mut self,
        now: Instant,
        packet: Packet,
        dropped: &mut dyn FnMut(Dropped<Packet>),
    ) -> usize {
        if self.packets.len() == LIMIT {
            self.counters.drops += 1;
            dropped(Dropped { packet, band: 0, reason: DropReason::Overlimit });
            return 0;
        }
        self.counters.backlog_packets += 1;
        self.counters.backlog_bytes += u64::from(packet.length());
        self.packets.push((now, packet));
        1
    }

    fn dequeue(
        &mut self,
        now: Instant,
        _: &mut dyn FnMut(Dropped<Packet>),
    ) -> Option<Departure<Packet>> {
        let (enqueued, packet) = self.packets.pop()?;
        let length = u64::from(packet.length());
        self.counters.backlog_packets -= 1;
        self.counters.backlog_bytes -= length;
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += length;
        let sojourn_ns = now.nanos_since(enqueued);
        Some(Departure {
            packet,
            band: 0,
            sojourn_ns,
            marked_by_probability: false,
            marked_by_step: false,
        })
    }

    fn peek(&mut self, _: Instant, _: &mut dyn FnMut(Dropped<Packet>)) -> Option<&Packet> {
        self.packets.last().map(|(_, packet)| packet)
    }

    fn len(&self) -> usize {
        self.packets.len()
    }

    fn next_timer(&self) -> Instant {
        Instant::NEVER
    }

    fn on_timer(&mut self, _: Instant) {}

    fn reset(&mut self, _: &mut dyn FnMut(Dropped<Packet>)) {
        self.packets.clear();
    }

    fn change(
        &mut self,
        spec: &Spec,
        _: &mut dyn FnMut(Dropped<Packet>),
    ) -> Result<(), ChangeError> {
        Err(ChangeError::OtherKind { is: "stack", asked: spec.kind() })
    }

    fn config(&self) -> Config {
        Config::Foreign(Foreign { kind: "stack", options: format!("limit {LIMIT}p") })
    }

    fn stats(&self, _: Instant) -> Stats {
        Stats { counters: self.counters, own: OwnStats::Nothing }
    }
}

fn scenario(cc: &str) -> Scenario {
    let sweep = format!(
        "duration = \"4s\"\nwarmup = \"1s\"\nsender = {{ gso = false }}\n\
         link = {{ rate = \"50mbit\", rtt = \"20ms\", qdisc = \"fq\" }}\n[[flow]]\ncc = \"{cc}\"\n"
    );
    let sweep = Sweep::parse(&sweep).expect("a sweep");
    sweep.variants().remove(0).scenario
}

#[test]
fn a_registered_congestion_control_has_a_name_in_scenarios() {
    let make = || -> Box<dyn CongestionControl> { Box::new(Constant) };
    assert_eq!(Algorithm::register("cubic", make), Err(NameTaken("cubic")));
    assert!(Algorithm::from_name("constant").is_none());
    let constant = Algorithm::register("constant", make).expect("a free name");
    assert_eq!(Algorithm::register("constant", make), Err(NameTaken("constant")));
    assert_eq!(Algorithm::from_name("constant"), Some(constant));

    let scenario = scenario("constant");
    let outcome = Simulation::new(&scenario, 1).expect("the model has it").run();
    // 40 segments of 1448 bytes in each round trip of 20 ms, and the transmission of one packet.
    let round_trip = 0.020 + 1514.0 * 8.0 / 50e6;
    let expected = f64::from(WINDOW) * 1448.0 * 8.0 / round_trip / 1e6;
    let goodput = outcome.goodput_mbit;
    assert!((goodput / expected - 1.0).abs() < 0.01, "{goodput} against {expected}");
}

#[test]
fn a_discipline_of_another_crate_stands_at_the_bottleneck() {
    let scenario = scenario("cubic");
    let simulation = Simulation::new(&scenario, 1).expect("the model has it");
    let mut simulation = simulation.with_queue(Discipline::Boxed(Box::new(Stack::default())));
    let mut drops = Vec::new();
    let mut longest = 0;
    while simulation.now() < Instant::ZERO + Duration::from_secs(4) {
        simulation.advance(simulation.now() + Duration::from_millis(10));
        longest = longest.max(simulation.queue().len());
        drops.push(simulation.queue().stats(simulation.now()).counters.drops);
    }
    assert_eq!(drops.len(), 400);
    assert!(longest <= LIMIT && drops.last() > drops.first(), "{longest} {drops:?}");
    let flow = simulation.senders().next().expect("the flow, and then the probe");
    assert!(flow.stats().retransmissions > 0);
    assert_eq!(simulation.queue().config().to_string(), "limit 20p");
    let outcome = simulation.run();
    assert!(outcome.goodput_mbit > 25.0, "{}", outcome.goodput_mbit);
}

#[test]
fn stepping_through_a_run_changes_nothing() {
    let scenario = scenario("bbr");
    let whole = Simulation::new(&scenario, 7).expect("the model has it").run();
    let mut stepped = Simulation::new(&scenario, 7).expect("the model has it");
    for step in 0..997 {
        stepped.advance(Instant::ZERO + step * Duration::from_micros(4_321));
    }
    assert_eq!(format!("{:?}", stepped.run()), format!("{whole:?}"));
}
