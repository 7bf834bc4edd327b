//! The sentence on top: what was asked, who does best, by how much, and how sure that is.

use dualq_scenario::{Outcome, ProbeOutcome};
use dualq_worlds::ScenarioRuns;
use dualq_worlds::agreement::cannot_be_told_apart;

use crate::figures::{Samples, base_ms};
use crate::rank;
use crate::remarks::unanswered;
use crate::report::Report;
use crate::words::one_line;
use crate::{Unit, html::worlds};

/// A sentence for each link, with what is uncertain in it. What is `alone` on the page has its name as the title of that.
pub(super) fn of(report: &Report<'_>, alone: bool) -> Vec<String> {
    let mut sentences = Vec::new();
    for link in &report.ranked {
        let scenario = report.scenarios[link[0]].scenario();
        let name = one_line(&report.results.name);
        let link_of = || report.link_in_words(scenario);
        let over = match (alone, report.ranked.len()) {
            (true, 1) => String::new(),
            (true, _) => format!("Over {}: ", link_of()),
            (false, 1) => format!("{name}: "),
            (false, _) => format!("{name} over {}: ", link_of()),
        };
        sentences.push(match link.as_slice() {
            [only] => format!("{over}{}.", said(&report.scenarios[*only])),
            [best, .., worst] => {
                let (best, worst) = (&report.scenarios[*best], &report.scenarios[*worst]);
                let of = if over.is_empty() { "Of" } else { "of" };
                let compared = format!("{over}{of} {} that were compared", link.len());
                match rank::tie(&report.scenarios, link) {
                    Some(tie) => format!("{compared} {tie}. The first is {}.", said(best)),
                    None => format!(
                        "{compared} {}{} is best by power (goodput over round-trip time), {}; {} is worst, {}. {}",
                        one_line(&rank::label(best)),
                        rank::as_well(&report.scenarios, link),
                        figures(best),
                        one_line(&rank::label(worst)),
                        figures(worst),
                        certainty(best, worst)
                    ),
                }
            }
            [] => continue,
        });
    }
    sentences.extend(worlds::sentence(report));
    sentences
}

fn said(runs: &ScenarioRuns<'_>) -> String {
    format!("{}, {}", one_line(&rank::label(runs)), figures(runs))
}

fn samples(runs: &ScenarioRuns<'_>, of: impl Fn(&Outcome) -> Option<f64>) -> Samples {
    Samples(runs.first_world().iter().filter_map(|run| of(&run.outcome)).collect())
}

/// The first probe's figure above the base.
fn above(runs: &ScenarioRuns<'_>, of: fn(&ProbeOutcome) -> f64) -> Samples {
    let base = base_ms(runs.scenario());
    let measured = |outcome: &Outcome| {
        outcome.probe.first().filter(|probe| probe.n > 0).map(|probe| of(probe) - base)
    };
    samples(runs, measured)
}

/// Latency under load and goodput.
fn figures(runs: &ScenarioRuns<'_>) -> String {
    let goodput = rank::mbit(rank::throughput_mbit(runs));
    let p50 = above(runs, |probe| probe.p50_ms).mean();
    let p99 = above(runs, |probe| probe.p99_ms).mean();
    let said = match (p50, p99) {
        (Some(p50), Some(p99)) => format!(
            "with {p50:.2} ms above the base at the median and {p99:.2} ms at the 99th percentile, at {goodput} Mbit/s"
        ),
        _ if runs.scenario().probe.is_empty() => format!("at {goodput} Mbit/s"),
        _ => {
            format!("at {goodput} Mbit/s, and the probe {}", unanswered(runs.scenario()))
        }
    };
    said + &rank::beside(runs, "Mbit/s")
}

/// Whether best and worst differ by more than seeds do.
fn certainty(best: &ScenarioRuns<'_>, worst: &ScenarioRuns<'_>) -> String {
    let (one, other) = (above(best, |probe| probe.p50_ms), above(worst, |probe| probe.p50_ms));
    let seeds = one.0.len().min(other.0.len());
    match seeds {
        0 => "Without answers to the probes of both, their latency is not compared.".to_owned(),
        1 => "One seed: how much of that is chance is not known; --seeds 5 tells.".to_owned(),
        _ if cannot_be_told_apart(Unit::Millis, &one.0, &other.0) => {
            format!("Over {seeds} seeds their medians differ by no more than chance.")
        }
        _ => format!("Over {seeds} seeds their medians differ by more than chance."),
    }
}
