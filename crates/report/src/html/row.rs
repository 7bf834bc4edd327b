//! A row of the comparison, and all that is drawn of it: a scenario in one world.

use dualq_scenario::{DelayDistribution, Direction, FlowGroup, Outcome, Scenario, Series};
use dualq_worlds::Run;
use serde::Serialize;

use super::data::Head;
use super::thin::{Budget, Line};
use crate::figures::{Samples, base_ms};
use crate::rank;
use crate::report::Report;
use crate::transfers;
use crate::words::{one_line, printable};

/// A longer text of a scenario is not shown: it has a trace in it.
const LONGEST_TEXT: usize = 16_000;

/// What all rows of a page have in common.
pub(super) struct Kept<'a> {
    pub(super) columns: &'a [Head],
    pub(super) settings: &'a [String],
    pub(super) budget: &'a Budget,
    /// Whether they are of several plans.
    pub(super) several: bool,
    /// What sets the plans apart, for each of them.
    pub(super) apart: &'a [Vec<(String, String)>],
}

impl Kept<'_> {
    /// For each of the page's settings the value that a row of this plan has; blank if it has none.
    pub(super) fn settings_of(&self, row: &crate::Row, plan: usize) -> Vec<String> {
        let value = |what: &String| {
            let mut own = row.settings.0.iter().chain(&self.apart[plan]);
            let own = own.find(|(name, _)| one_line(name) == *what);
            own.map_or_else(String::new, |(_, value)| one_line(value))
        };
        self.settings.iter().map(value).collect()
    }
}

#[derive(Serialize)]
pub(super) struct Row {
    label: String,
    /// The number of its plan.
    plan: usize,
    /// Whether it is the best of several on its link.
    best: bool,
    /// For each of the page's settings, its value; blank if it has none.
    settings: Vec<String>,
    world: String,
    /// For each of the page's columns the mean and the standard deviation.
    figures: Vec<Option<(f64, Option<f64>)>>,
    base_ms: f64,
    rate_mbit: f64,
    warmup_s: f64,
    seeds: usize,
    first_seed: u64,
    probes: Vec<Probe>,
    flows: Vec<Flows>,
    queue: Option<Delays>,
    series: Option<Lines>,
    /// The scenario as a file; empty if it is too long.
    text: String,
    limits: Vec<String>,
}

/// Round trips of a probe.
#[derive(Serialize)]
struct Probe {
    title: String,
    /// How many were measured, of all seeds.
    count: u64,
    /// Means over the seeds, in milliseconds: the shortest, the median, percentiles, the longest.
    min: Option<f64>,
    p50: Option<f64>,
    p95: Option<f64>,
    p99: Option<f64>,
    max: Option<f64>,
    /// Of all seeds together.
    distribution: Option<DelayDistribution>,
}

/// Times in the queue of all seeds together.
#[derive(Serialize)]
struct Delays {
    all: Option<DelayDistribution>,
    not_ect: Option<DelayDistribution>,
    ect: Option<DelayDistribution>,
}

/// A group of flows: sums and means over its flows and all seeds.
#[derive(Serialize)]
struct Flows {
    title: String,
    goodput: Vec<f64>,
    share: f64,
    sent: f64,
    retransmits: f64,
    timeouts: f64,
    ce_share: f64,
    srtt_p50: f64,
    srtt_p99: f64,
    completions: Vec<Completion>,
}

/// Transfers of a class of sizes, of all seeds.
#[derive(Serialize)]
struct Completion {
    size: String,
    transfers: u64,
    done: u64,
    p50: Option<f64>,
    p99: Option<f64>,
    /// Shares are of all transfers.
    distribution: Option<DelayDistribution>,
}

/// What is drawn over time, of the first seed.
#[derive(Serialize)]
struct Lines {
    t: Vec<f64>,
    goodput: Vec<Line>,
    /// Of each flow of each group, where that was kept and there are several in it.
    each: Vec<Vec<Line>>,
    rtt: Vec<Line>,
    queue_delay: Line,
    queue_packets: Line,
    probability: Line,
    drops: Line,
    marks: Line,
    cwnd: Vec<Line>,
    srtt: Vec<Line>,
    retransmits: Vec<Line>,
}

impl Row {
    /// The rows of a report, best first on each link.
    pub(super) fn all(report: &Report<'_>, plan: usize, kept: &Kept<'_>) -> Vec<Self> {
        let worlds = report.results.worlds().len();
        let mut rows = Vec::new();
        for link in &report.ranked {
            for (place, scenario) in link.iter().enumerate() {
                let best = place == 0 && report.has_best(link);
                for (world, runs) in report.scenarios[*scenario].worlds().enumerate() {
                    let at = scenario * worlds + world;
                    let is_drawn = rows.len() < kept.budget.drawn;
                    rows.push(Self::of(report, (plan, best), at, runs, kept, is_drawn));
                }
            }
        }
        rows
    }

    fn of(
        report: &Report<'_>,
        (plan, best): (usize, bool),
        at: usize,
        runs: &[Run],
        kept: &Kept<'_>,
        is_drawn: bool,
    ) -> Self {
        let figures = &report.figures;
        let (row, worlds) = (&figures.rows[at], report.results.worlds().len());
        let (scenario, first) = (&runs[0].scenario, &runs[0].outcome);
        let mut label = rank::label(&report.scenarios[at / worlds]);
        if worlds > 1 {
            label = format!("{label} · {}", row.world);
        }
        if kept.several {
            label = format!("{}: {label}", report.results.name);
        }
        let figure = |head: &Head| {
            let same = |(_, column): &(usize, &crate::Column)| {
                one_line(&column.group) == head.group && column.name == head.name
            };
            let (number, _) = figures.columns.iter().enumerate().find(same)?;
            let samples = &row.values[number];
            Some((rounded(samples.mean()?), samples.deviation().map(rounded)))
        };
        let text = printable(&toml::to_string(scenario).unwrap_or_default()).into_owned();
        Self {
            label: one_line(&label),
            plan,
            best,
            settings: kept.settings_of(row, plan),
            world: one_line(&row.world),
            figures: kept.columns.iter().map(figure).collect(),
            base_ms: rounded(base_ms(scenario)),
            rate_mbit: scenario.link.rate.as_bits_per_second() as f64 / 1e6,
            warmup_s: scenario.warmup.as_secs_f64(),
            seeds: runs.len(),
            first_seed: runs[0].seed,
            probes: probes(scenario, runs, is_drawn),
            flows: flows(scenario, runs, is_drawn),
            queue: is_drawn.then(|| Delays::of(runs)),
            series: is_drawn.then(|| Lines::of(&first.series, kept.budget)),
            text: if text.len() > LONGEST_TEXT { String::new() } else { text },
            limits: dualq_scenario::Limit::in_words(runs.iter().map(|run| &run.outcome)),
        }
    }
}

/// To a thousandth, which is as exact as outcomes are.
fn rounded(number: f64) -> f64 {
    dualq_scenario::summary::thousandths(number)
}

fn outcomes(runs: &[Run]) -> impl Iterator<Item = &Outcome> {
    runs.iter().map(|run| &run.outcome)
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    rounded(Samples(values.collect()).mean().unwrap_or(0.0))
}

fn probes(scenario: &Scenario, runs: &[Run], is_drawn: bool) -> Vec<Probe> {
    let mut probes = Vec::new();
    for (number, probe) in scenario.probe.iter().enumerate() {
        let of = || outcomes(runs).filter_map(|outcome| outcome.probe.get(number));
        let measured = || of().filter(|probe| probe.n > 0);
        let figure = |figure: fn(&dualq_scenario::ProbeOutcome) -> f64| {
            Samples(measured().map(figure).collect()).mean().map(rounded)
        };
        let distributions = measured().filter_map(|probe| probe.distribution.as_ref());
        probes.push(Probe {
            title: match scenario.probe.len() {
                1 => format!("{} RTT", probe.kind),
                _ => format!("{} {} RTT", probe.kind, number + 1),
            },
            count: of().map(|probe| probe.n).sum(),
            min: figure(|probe| probe.min_ms),
            p50: figure(|probe| probe.p50_ms),
            p95: figure(|probe| probe.p95_ms),
            p99: figure(|probe| probe.p99_ms),
            max: figure(|probe| probe.max_ms),
            distribution: is_drawn.then(|| DelayDistribution::pooled(distributions)).flatten(),
        });
    }
    probes
}

impl Delays {
    fn of(runs: &[Run]) -> Self {
        let pooled = |of: fn(&Outcome) -> &Option<DelayDistribution>| {
            DelayDistribution::pooled(outcomes(runs).filter_map(|outcome| of(outcome).as_ref()))
        };
        Self {
            all: pooled(|outcome| &outcome.queue.distribution),
            not_ect: pooled(|outcome| &outcome.queue.distribution_not_ect),
            ect: pooled(|outcome| &outcome.queue.distribution_ect),
        }
    }
}

fn flows(scenario: &Scenario, runs: &[Run], is_drawn: bool) -> Vec<Flows> {
    let title = |number: usize, group: &FlowGroup| {
        let up = if group.direction == Direction::Up { " up" } else { "" };
        let count = if group.count > 1 { format!("{} × ", group.count) } else { String::new() };
        let place =
            if scenario.flow.len() > 1 { format!("{}: ", number + 1) } else { String::new() };
        one_line(&format!("{place}{count}{}{up}", group.cc))
    };
    let total = mean(outcomes(runs).map(|outcome| outcome.goodput_mbit));
    let mut flows = Vec::new();
    for (number, group) in scenario.flow.iter().enumerate() {
        let of = || outcomes(runs).filter_map(|outcome| outcome.flow.get(number));
        let each = |at: usize| mean(of().filter_map(|flow| flow.goodput_mbit.get(at).copied()));
        let goodput = mean(of().map(|flow| flow.total_mbit));
        let sent = mean(of().map(|flow| flow.data_packets as f64));
        let marked = mean(of().map(|flow| flow.ce_marks as f64));
        let share = |part: f64, all: f64| if all > 0.0 { rounded(part / all) } else { 0.0 };
        let classes = transfers::classes(scenario, runs, number);
        flows.push(Flows {
            title: title(number, group),
            goodput: (0..of().next().map_or(0, |flow| flow.goodput_mbit.len())).map(each).collect(),
            share: share(goodput, total),
            sent,
            retransmits: mean(of().map(|flow| flow.retransmits as f64)),
            timeouts: mean(of().map(|flow| flow.timeouts as f64)),
            ce_share: share(marked, sent),
            srtt_p50: mean(of().map(|flow| flow.srtt_ms_p50)),
            srtt_p99: mean(of().map(|flow| flow.srtt_ms_p99)),
            completions: classes
                .iter()
                .map(|class| Completion {
                    size: class.sizes.words(),
                    transfers: class.transfers,
                    done: class.done,
                    p50: class.p50_ms.map(rounded),
                    p99: class.p99_ms.map(rounded),
                    distribution: is_drawn.then(|| class.of_all()).flatten(),
                })
                .collect(),
        });
    }
    flows
}

impl Lines {
    fn of(series: &Series, budget: &Budget) -> Self {
        let numbers = |list: &[f64]| budget.line(list.iter().copied().map(Some));
        let gaps = |list: &Vec<Option<f64>>| budget.line(list.iter().copied());
        let counts = |list: &Vec<u64>| budget.line(list.iter().map(|count| Some(*count as f64)));
        Self {
            t: budget.times(&series.t_s),
            goodput: series.goodput_mbit.iter().map(|list| numbers(list)).collect(),
            each: series
                .each_goodput_mbit
                .iter()
                .map(|flows| flows.iter().map(|list| numbers(list)).collect())
                .collect(),
            rtt: series.rtt_ms.iter().map(gaps).collect(),
            queue_delay: gaps(&series.queue_delay_ms),
            queue_packets: counts(&series.queue_packets),
            probability: gaps(&series.probability),
            drops: counts(&series.queue_drops),
            marks: counts(&series.queue_marks),
            cwnd: series.cwnd.iter().map(gaps).collect(),
            srtt: series.srtt_ms.iter().map(gaps).collect(),
            retransmits: series.retransmits.iter().map(counts).collect(),
        }
    }
}
