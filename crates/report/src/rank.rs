//! Which scenario does best, and how that is said. It is judged by the world that was named first.

use dualq_scenario::{Direction, FlowGroup, Outcome};
use dualq_worlds::ScenarioRuns;

use crate::figures::{Samples, base_ms, group_name, lost_of_udp, lost_share};
use crate::remarks::unanswered;
use crate::svg::axis::plain;

/// A mean over the seeds in the first world.
fn mean(runs: &ScenarioRuns<'_>, of: impl Fn(&Outcome) -> Option<f64>) -> Option<f64> {
    Samples(runs.first_world().iter().filter_map(|run| of(&run.outcome)).collect()).mean()
}

fn udp_mbit(outcome: &Outcome) -> f64 {
    outcome.udp.iter().map(|udp| udp.goodput_mbit).sum()
}

/// What arrives: the goodput of flows; where there are none, that of UDP.
pub(crate) fn throughput_mbit(runs: &ScenarioRuns<'_>) -> f64 {
    let flows = !runs.scenario().flow.is_empty();
    let of = |outcome: &Outcome| if flows { outcome.goodput_mbit } else { udp_mbit(outcome) };
    mean(runs, |outcome| Some(of(outcome))).unwrap_or(0.0)
}

/// A rate as sentences have it: to a tenth; less than 1 by what it has of digits, for 0.0 would say that nothing arrives.
pub(crate) fn mbit(rate: f64) -> String {
    if rate >= 1.0 || rate <= 0.0 { format!("{rate:.1}") } else { plain(rate) }
}

/// A share in per cent, by what it has of digits: of 1 in 400 that a table has as 0.003 no other tenth may come.
fn percent(share: f64) -> String {
    format!("{}%", plain(100.0 * share))
}

/// What the throughput and the answers to the probe do not tell: UDP beside flows, and what was lost of UDP and of the first probe's pings.
/// `mbit` is what a rate is called.
pub(crate) fn beside(runs: &ScenarioRuns<'_>, mbit: &str) -> String {
    let mut words = String::new();
    let share = |of: &dyn Fn(&Outcome) -> Option<f64>| {
        mean(runs, of).filter(|share| *share > 0.0).map(percent)
    };
    let scenario = runs.scenario();
    if !scenario.udp.is_empty() && !scenario.flow.is_empty() {
        let arrived = mean(runs, |outcome| Some(udp_mbit(outcome))).unwrap_or(0.0);
        words += &format!("; of UDP arrived {} {mbit}", self::mbit(arrived));
    }
    if let Some(lost) = share(&|outcome| lost_of_udp(&outcome.udp)) {
        words += &format!("; {lost} of UDP's packets were lost");
    }
    // Where none was answered, that is said already.
    let pings =
        |outcome: &Outcome| outcome.probe.first().filter(|probe| probe.n > 0).and_then(lost_share);
    if let Some(lost) = share(&pings) {
        words += &format!("; {lost} of the pings were lost");
    }
    words
}

/// The first probe's mean round-trip time.
fn probe_ms(runs: &ScenarioRuns<'_>) -> Option<f64> {
    let answered = |outcome: &Outcome| {
        outcome.probe.first().filter(|probe| probe.n > 0).map(|probe| probe.mean_ms)
    };
    mean(runs, answered)
}

/// Throughput over round-trip time, by which scenarios are ranked: Kleinrock's power. A probe that is never answered makes it none.
fn power(runs: &ScenarioRuns<'_>) -> f64 {
    let scenario = runs.scenario();
    let rtt = match probe_ms(runs) {
        None if scenario.probe.is_empty() => base_ms(scenario),
        rtt => rtt.unwrap_or(0.0),
    };
    if rtt > 0.0 { throughput_mbit(runs) / rtt } else { 0.0 }
}

/// The numbers of the scenarios, best first, those on the same link together, in the order in which the links were given.
pub(crate) fn ranked(scenarios: &[ScenarioRuns<'_>]) -> Vec<Vec<usize>> {
    let link = |number: usize| {
        let link = &scenarios[number].scenario().link;
        (link.rate, link.rtt, link.loss, link.mtu, link.tunnel)
    };
    let mut links: Vec<Vec<usize>> = Vec::new();
    for number in 0..scenarios.len() {
        match links.iter_mut().find(|others| link(others[0]) == link(number)) {
            Some(others) => others.push(number),
            None => links.push(vec![number]),
        }
    }
    let powers: Vec<f64> = scenarios.iter().map(power).collect();
    for numbers in &mut links {
        numbers.sort_by(|one, other| powers[*other].total_cmp(&powers[*one]));
    }
    links
}

/// How many of a link's scenarios, best first, do as well as the first.
pub(crate) fn alike(scenarios: &[ScenarioRuns<'_>], link: &[usize]) -> usize {
    let powers = || link.iter().map(|number| power(&scenarios[*number]));
    let best = powers().next().unwrap_or(0.0);
    powers().take_while(|power| *power >= best).count()
}

/// Why none of a link's scenarios is the best, if all of several do alike.
pub(crate) fn tie(scenarios: &[ScenarioRuns<'_>], link: &[usize]) -> Option<&'static str> {
    let is_tie = link.len() > 1 && alike(scenarios, link) == link.len();
    is_tie.then(|| match power(&scenarios[link[0]]) > 0.0 {
        true => "none is best: all have the same power",
        false => "none is best: power takes goodput, of flows or without them of UDP, and answers to the probe",
    })
}

/// Who else does as well as the best.
pub(crate) fn as_well(scenarios: &[ScenarioRuns<'_>], link: &[usize]) -> String {
    match alike(scenarios, link) {
        0 | 1 => String::new(),
        2 => " (and one other)".to_owned(),
        alike => format!(" (and {} others)", alike - 1),
    }
}

/// How a scenario is told from the others.
pub(crate) fn label(runs: &ScenarioRuns<'_>) -> String {
    // A bare number does not tell what it is of.
    let bare = |value: &str| value.parse::<f64>().is_ok() || value.parse::<bool>().is_ok();
    let said = |(what, value): &(String, String)| match bare(value) {
        true => format!("{what} = {value}"),
        false => value.clone(),
    };
    let values: Vec<String> = runs.settings().0.iter().map(said).collect();
    if values.is_empty() {
        let scenario = runs.scenario();
        let both_ways = scenario.flow.iter().any(|group| group.direction == Direction::Up);
        let name = |group: &FlowGroup| group_name(group, both_ways);
        let mut flows: Vec<String> = scenario.flow.iter().map(name).collect();
        if !scenario.udp.is_empty() {
            flows.push("UDP".to_owned());
        }
        if flows.is_empty() {
            flows.push("the probe alone".to_owned());
        }
        format!("{} with {}", scenario.link.qdisc, flows.join(" and "))
    } else {
        values.join(" with ")
    }
}

/// What came of a scenario, in plain words.
pub(crate) fn sentence(runs: &ScenarioRuns<'_>) -> String {
    let (label, throughput) = (label(runs), mbit(throughput_mbit(runs)));
    let probe = match probe_ms(runs) {
        Some(probe_ms) => format!(
            " while the probe is answered in {probe_ms:.2} ms, {:.2} ms above the base",
            probe_ms - base_ms(runs.scenario())
        ),
        None if !runs.scenario().probe.is_empty() => {
            format!("; the probe {}", unanswered(runs.scenario()))
        }
        None => String::new(),
    };
    format!("{label}: {throughput} Mbits/sec{probe}{}", beside(runs, "Mbits/sec"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_is_not_nothing() {
        assert_eq!([47.81, 1.0, 0.008, 0.0].map(mbit), ["47.8", "1.0", "0.008", "0.0"]);
        let shares = [0.0025, 0.000_04, 0.123_45, 1.0].map(percent);
        assert_eq!(shares, ["0.25%", "0.004%", "12.3%", "100%"]);
    }
}
