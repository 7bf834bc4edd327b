//! The trials that a plan's choice rests on, run in the worlds.

use std::ops::ControlFlow;
use std::time::Duration;

use dualq_host::plan::{Evidence, FLOWS, Figures, Question, Trial};
use dualq_qdisc::grammar;
use dualq_scenario::{CongestionControl, FLOW_SPACING, Outcome, Plan, Scenario};
use dualq_worlds::World;
use rayon::prelude::*;

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
/// Short transfers start 50 ms apart and are so many bytes that they are a twentieth of the link's rate.
const SHORT: u128 = 100;
const SHORT_SHARE: u64 = 3_200;
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
    let results: Result<Vec<_>, Failure> = trials
        .into_par_iter()
        .map(|trial| {
            let mut part = steps.part_of_time(length);
            let mut look = |time| part.reach_time(time);
            run(&question, trial, world, &mut look)
        })
        .collect();
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
    let cc = trial.sender.cc.as_str();
    let lacks = |what: &str| format!("Not simulated: {what}, which no world here has.");
    if cc.parse::<CongestionControl>().is_err() {
        return Ok(Err(lacks(cc)));
    }
    if grammar::parse(&trial.queue).is_err() {
        return Ok(Err(lacks(&format!("`{}`", trial.queue))));
    }
    let scenario = scenario(question, &trial, &trial.queue)?;
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
        goodput_mbit: bulk.total_mbit,
        fairness: jain(&bulk.goodput_mbit),
        world: world.name().to_owned(),
    };
    Ok(Ok((Run { trial, world: world.name().to_owned(), scenario, outcome }, figures)))
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
    let by_packets = Duration::from_secs_f64((MOST_PACKETS * PACKET_BITS) as f64 / bits as f64);
    let all_started = FLOW_SPACING * FLOWS[FLOWS.len() - 1];
    let least = all_started + question.rtt * ROUND_TRIPS + Duration::from_millis(250);
    by_packets.min(longest).max(least)
}

/// Large transfers, short ones beside them, and ssh.
fn scenario(question: &Question, trial: &Trial, queue: &str) -> Result<Scenario, Failure> {
    let bits = question.rate.as_bits_per_second();
    let nanos = length(question).as_nanos();
    let Trial { sender, flows, .. } = trial;
    let (cc, ecn) = (&sender.cc, sender.ecn);
    let (rtt, tunnel) = (question.rtt.as_nanos(), question.one_flow);
    let short = (bits / SHORT_SHARE).clamp(500, 100_000);
    let warmup = nanos / 4;
    // As many as start while there is time.
    let count = ((nanos - warmup) / FLOW_SPACING.as_nanos()).clamp(1, SHORT);
    // What leaves a tunnel is single packets.
    let source = format!(
        "name = \"prediction\"\n\
         duration = \"{nanos}ns\"\nwarmup = \"{warmup}ns\"\n\
         [link]\nrate = \"{bits}bit\"\nrtt = \"{rtt}ns\"\nqdisc = \"{queue}\"\ntunnel = {tunnel}\n\
         [sender]\ngso = {}\n\
         [[flow]]\ncc = \"{cc}\"\ncount = {flows}\necn = {ecn}\n\
         [[flow]]\ncc = \"{cc}\"\ncount = {count}\necn = {ecn}\nsize = \"{short}b\"\nstart = \"{warmup}ns\"\n\
         [[probe]]\nkind = \"ssh\"\ninterval = \"10ms\"\n",
        !tunnel
    );
    let plan =
        Plan::parse(&source).map_err(|error| Failure::Run(format!("prediction: {error}")))?;
    let variant = plan.variants().into_iter().next();
    Ok(variant.expect("a plan without lists has one variant").scenario)
}
