//! The trials that a plan's choice rests on, run in the worlds.

use std::ops::ControlFlow;
use std::time::Duration;

use dualq_host::plan::{Back, Evidence, FLOWS, Figures, Question, Trial};
use dualq_qdisc::QdiscLine;
use dualq_scenario::{
    CongestionControl, Element, FLOW_SPACING, FlowGroup, Link, Outcome, ProbeGroup, Scenario,
    SenderSide, Setup, Size, UpLink,
};
use dualq_tcp::{ETHERNET_BYTES, HEADER_BYTES};
use dualq_units::Bytes;
use dualq_worlds::{World, on_all_cores};

use crate::cli::Failure;
use crate::progress::Steps;

/// One trial that was run.
pub(crate) struct Run {
    pub(crate) trial: Trial,
    pub(crate) world: String,
    pub(crate) scenario: Scenario,
    pub(crate) outcome: Outcome,
}

/// What was found out.
pub(crate) struct Prediction {
    pub(crate) evidence: Evidence,
    pub(crate) runs: Vec<Run>,
    /// What is assumed, and what could not be run: a line each.
    pub(crate) remarks: Vec<String>,
}

/// What is simulated is cut so that all of it takes a second or two.
const MOST_PACKETS: u64 = 100_000;
const PACKET_BITS: u64 = 12_000;
/// A trial is no longer than this; on slow links packets are few, and longer costs little.
const LONGEST: Duration = Duration::from_secs(20);
const LONGEST_SLOW: Duration = Duration::from_secs(60);
const SLOW_BITS: u64 = 5_000_000;
/// A transfer needs some round trips before it is what it will be.
const ROUND_TRIPS: u32 = 10;
/// Beyond this nothing can be learnt in a trial's time.
const LONGEST_RTT: Duration = Duration::from_secs(2);
/// The most large transfers of a trial.
const MOST_FLOWS: u32 = FLOWS[FLOWS.len() - 1];
/// The most short transfers, and which part of the link's rate they are.
const SHORT: u128 = 100;
const SHORT_SHARE: u64 = 20;
const NANOS: u128 = 1_000_000_000;
/// Between an answer and the next question of ssh.
const PROBE_INTERVAL: Duration = Duration::from_millis(10);
/// A p99 of fewer answers would be the longest of them.
const LEAST_QUESTIONS: u32 = 200;
/// One run in some hundreds has ssh share a queue of `fq_codel` with a transfer, or a lost probe decide the p99: the median of these
/// counts. On a kernel, where a run takes seconds, the first alone.
const SEEDS: [u64; 3] = [1, 2, 3];

/// Runs what the question asks for: all that there is, or what the choice needs.
pub(crate) fn predict(
    question: Question,
    all: bool,
    world: &dyn World,
) -> Result<Prediction, Failure> {
    let mut remarks = Vec::new();
    if question.rtt > LONGEST_RTT {
        remarks.push("Nothing is simulated with a round-trip time above 2 seconds.".to_owned());
        return Ok(Prediction { evidence: Evidence::new(question, []), runs: Vec::new(), remarks });
    }
    let trials = question.trials(all);
    let length = length(&question);
    let steps = Steps::of_time(length * trials.len() as u32, true);
    let results: Result<Vec<_>, Failure> = on_all_cores(trials, |trial| {
        let mut part = steps.part_of_time(length);
        let mut look = |time| part.reach_time(time);
        run(&question, trial, world, &mut look)
    });
    steps.clear();
    let (mut runs, mut figures) = (Vec::new(), Vec::new());
    for result in results? {
        match result {
            Ok((run, found)) => {
                figures.push((run.trial.clone(), found));
                runs.push(run);
            }
            Err(lacks) if !remarks.contains(&lacks) => remarks.push(lacks),
            Err(_) => {}
        }
    }
    Ok(Prediction { evidence: Evidence::new(question, figures), runs, remarks })
}

/// Runs one trial, or says what no world has for it.
fn run(
    question: &Question,
    trial: Trial,
    world: &dyn World,
    look: &mut dyn FnMut(Duration),
) -> Result<Result<(Run, Figures), String>, Failure> {
    let lacks = |what: &str| format!("Not simulated: {what}, which no world here has.");
    let Ok(cc) = trial.sender.cc.parse() else { return Ok(Err(lacks(&trial.sender.cc))) };
    let Ok(qdisc) = trial.queue.parse() else {
        return Ok(Err(lacks(&format!("`{}`", trial.queue))));
    };
    let scenario = scenario(question, &trial, cc, qdisc)?;
    if let Some(reason) = world.refuses(&scenario) {
        return Ok(Err(format!("Not simulated: {reason}.")));
    }
    let base = question.rtt.as_secs_f64() * 1e3;
    let p99_ms = |outcome: &Outcome| {
        let probe = &outcome.probe[0];
        // Whoever was never answered waited to the end.
        if probe.n > 0 { probe.p99_ms - base } else { scenario.duration.as_secs_f64() * 1e3 }
    };
    let seeds = if world.kernel_version().is_none() { &SEEDS[..] } else { &SEEDS[..1] };
    let share = seeds.len() as u32;
    let mut outcomes = Vec::with_capacity(seeds.len());
    for (number, seed) in (0_u32..).zip(seeds) {
        let before = scenario.duration * number / share;
        let mut passed = |time: Duration| {
            look(before + time / share);
            ControlFlow::Continue(())
        };
        outcomes.push(world.run(&scenario, *seed, &mut passed)?);
    }
    outcomes.sort_by(|one, other| p99_ms(one).total_cmp(&p99_ms(other)));
    let outcome = outcomes.swap_remove(outcomes.len() / 2);
    let bulk = &outcome.flow[0];
    let figures = Figures {
        p99_ms: p99_ms(&outcome),
        goodput_mbit: bulk.total_mbit.min(carried_mbit(&scenario, &outcome)),
        fairness: jain(&bulk.goodput_mbit),
        world: world.name().to_owned(),
    };
    Ok(Ok((Run { trial, world: world.name().to_owned(), scenario, outcome }, figures)))
}

/// The payload of what the queue let through. When a hole is filled, what arrived before the measurement began is delivered too, and
/// goodput seems more than this.
fn carried_mbit(scenario: &Scenario, outcome: &Outcome) -> f64 {
    let seconds = (scenario.duration - scenario.warmup).as_secs_f64();
    let share =
        f64::from(scenario.link.mtu - HEADER_BYTES) / f64::from(scenario.link.mtu + ETHERNET_BYTES);
    outcome.queue.sent_bytes as f64 * 8.0 / 1e6 / seconds * share
}

/// Jain's index: 1 if all are equal, 1/n if one has everything.
fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) =
        (shares.iter().sum::<f64>(), shares.iter().map(|share| share * share).sum::<f64>());
    if squares > 0.0 { sum * sum / (shares.len() as f64 * squares) } else { 0.0 }
}

/// How long a trial is, in the scenario's time.
fn length(question: &Question) -> Duration {
    let bits = question.rate.as_bits_per_second().max(1);
    let longest = if bits < SLOW_BITS { LONGEST_SLOW } else { LONGEST };
    let least =
        spacing(question) * MOST_FLOWS + question.rtt * ROUND_TRIPS + Duration::from_millis(250);
    by_packets(question).min(longest).max(least)
}

/// How long the link takes for as many packets as a trial has.
fn by_packets(question: &Question) -> Duration {
    let bits = question.rate.as_bits_per_second().max(1);
    Duration::from_secs_f64((MOST_PACKETS * PACKET_BITS) as f64 / bits as f64)
}

/// How far apart flows start: on fast links closer, so that all of them are there for most of those packets.
fn spacing(question: &Question) -> Duration {
    FLOW_SPACING.min(by_packets(question) / MOST_FLOWS).max(Duration::from_micros(1))
}

/// Large transfers, short ones beside them, and ssh.
fn scenario(
    question: &Question,
    trial: &Trial,
    cc: CongestionControl,
    qdisc: QdiscLine,
) -> Result<Scenario, Failure> {
    let duration = length(question);
    let warmup = duration / 4;
    let spacing = spacing(question);
    let between_bits = u128::from(question.rate.as_bits_per_second()) * spacing.as_nanos() / NANOS;
    let short = (between_bits as u64 / 8 / SHORT_SHARE).clamp(500, 100_000);
    // As many as start while there is time.
    let count = ((duration - warmup).as_nanos() / spacing.as_nanos()).clamp(1, SHORT);
    let bulk = FlowGroup {
        count: trial.flows,
        ecn: trial.sender.ecn.into(),
        spacing,
        ..FlowGroup::of(cc)
    };
    let transfers = FlowGroup {
        count: count as u32,
        size: Some(Size::Fixed(Bytes(short))),
        start: warmup,
        ..bulk
    };
    let interval = PROBE_INTERVAL.min(duration / LEAST_QUESTIONS);
    let probe = ProbeGroup { interval, ..ProbeGroup::default() };
    let is_now = trial.queue == question.now;
    let words = |words: &str| {
        words.parse::<QdiscLine>().map_err(|error| Failure::Run(format!("prediction: {error}")))
    };
    // What is behind the link changes nothing before it.
    let far = (question.arriving && trial.queue != Question::far_queue())
        .then(|| words(Question::far_queue()))
        .transpose()?;
    let before = far.map(|qdisc| Element::Queue { rate: question.rate, qdisc });
    let back = |back: &Back| -> Result<UpLink, Failure> {
        let qdisc = words(if is_now { &back.now } else { &back.then })?;
        Ok(UpLink { rate: Some(back.rate), qdisc: Some(qdisc), ..UpLink::default() })
    };
    let link = Link {
        rate: question.rate,
        rtt: question.rtt,
        qdisc,
        tunnel: question.one_flow,
        before: before.into_iter().collect(),
        up: question.back.as_ref().map(back).transpose()?,
        ..Link::default()
    };
    let setup = Setup {
        name: "prediction".to_owned(),
        duration,
        warmup,
        link,
        // What leaves a tunnel is single packets.
        sender: SenderSide { gso: !question.one_flow, ..SenderSide::default() },
        flow: vec![bulk, transfers],
        probe: vec![probe],
        ..Setup::default()
    };
    Scenario::try_from(setup).map_err(|error| Failure::Run(format!("prediction: {error}")))
}
