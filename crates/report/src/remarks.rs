//! What is to be said of runs that no figure tells.

use dualq_scenario::{FlowGroup, FlowOutcome, Limit, Outcome, Scenario, UdpOutcome};
use dualq_worlds::ScenarioRuns;

/// What is to be said of a scenario's runs beside its figures.
pub(crate) fn of(runs: &ScenarioRuns<'_>) -> Vec<String> {
    let scenario = runs.scenario();
    let outcomes = || runs.first_world().iter().map(|run| &run.outcome);
    let mut remarks = Vec::new();
    for (number, group) in scenario.flow.iter().enumerate() {
        if group.size.is_some() {
            let ended = |outcome: &Outcome| {
                outcome
                    .flow
                    .get(number)
                    .map_or(0, |flow| flow.completion_s.iter().flatten().count())
            };
            let fewest = outcomes().map(ended).min().unwrap_or(0);
            let (cc, all) = (&group.cc, group.count as usize);
            match fewest {
                0 => remarks.push(format!("{cc}: none of {all} transfers ended")),
                ended if ended < all => {
                    remarks.push(format!("{cc}: {ended} of {all} transfers ended"));
                }
                _ => {}
            }
        }
    }
    // Of the first the sentence says it.
    for (number, probe) in scenario.probe.iter().enumerate().skip(1) {
        let answered =
            |outcome: &Outcome| outcome.probe.get(number).is_none_or(|probe| probe.n > 0);
        if !outcomes().any(answered) {
            let unanswered = unanswered(scenario);
            remarks.push(format!("probe {} ({}) {unanswered}", number + 1, probe.kind));
        }
    }
    let stalled = outcomes().map(|outcome| stalled(scenario, outcome)).max().unwrap_or(0);
    if stalled > 0 {
        let flows = if stalled == 1 { "flow" } else { "flows" };
        remarks.push(format!("{stalled} {flows} made no progress"));
    }
    remarks.extend(outcomes().find_map(open_udp));
    remarks.extend(outcomes().find_map(|outcome| unseen_queues(scenario, outcome)));
    // They are told of every world.
    let limits = Limit::in_words(runs.runs().iter().map(|run| &run.outcome));
    remarks.extend(limits.into_iter().map(|limit| format!("limit: {limit}")));
    remarks
}

/// What is said of a probe without answers; those that came before anything was measured do not count.
pub(crate) fn unanswered(scenario: &Scenario) -> &'static str {
    if scenario.warmup.is_zero() {
        "was never answered"
    } else {
        "was never answered after the warm-up"
    }
}

/// Says so where the end came before it was clear what became of most packets of UDP: shares of the others tell little then.
fn open_udp(outcome: &Outcome) -> Option<String> {
    let sum = |of: fn(&UdpOutcome) -> u64| outcome.udp.iter().map(of).fold(0, u64::saturating_add);
    let sent = sum(|udp| udp.sent);
    let open = sent.saturating_sub(sum(|udp| udp.received)).saturating_sub(sum(|udp| udp.lost));
    // No more than hundredths: nearly all is not all.
    let percent = (10_000.0 * open as f64 / sent as f64).floor() / 100.0;
    (open > sent / 2).then(|| {
        format!("at the end it was open whether {percent}% of UDP's packets arrive or are lost: a longer duration tells")
    })
}

/// The queues of elements of the path of which a run has no figures: the bottleneck may be one of them.
fn unseen_queues(scenario: &Scenario, outcome: &Outcome) -> Option<String> {
    let unseen = scenario.link.other_bottlenecks().skip(outcome.other_queues.len());
    let places: Vec<String> = unseen.map(|other| other.at).collect();
    (!places.is_empty()).then(|| {
        format!("figures of the queue are of link.qdisc alone: what waits, is marked or dropped in other queues ({}) is in none of them", places.join(", "))
    })
}

/// How many flows sent nothing that arrived, though they had to.
fn stalled(scenario: &Scenario, outcome: &Outcome) -> usize {
    // What is over before the figures begin is done, not stuck.
    let had_to = |group: &FlowGroup| group.stop.is_none_or(|stop| stop > scenario.warmup);
    let groups = scenario.flow.iter().zip(&outcome.flow).filter(|(group, _)| had_to(group));
    let of_group = |(_, flow): (&FlowGroup, &FlowOutcome)| {
        let flows = flow.goodput_mbit.iter().zip(&flow.completion_s);
        flows.filter(|(goodput, done)| **goodput <= 0.0 && done.is_none()).count()
    };
    groups.map(of_group).sum()
}
