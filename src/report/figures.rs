//! The figures of a run: which there are in a comparison, what they are measured in, and how they are written.

use dualq_scenario::summary::thousandths;
use dualq_scenario::{
    CongestionControl, Delays, FlowGroup, FlowOutcome, Limit, Outcome, ProbeKind, ProbeOutcome,
    Scenario,
};

use super::thousands;
use crate::run::Run;

/// What a figure is measured in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// 10⁶ bits a second.
    Megabits,
    /// Milliseconds.
    Millis,
    /// Packets or segments.
    Count,
    /// A share of 1.
    Ratio,
}

impl Unit {
    /// As JSON has it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Megabits => "Mbit/s",
            Self::Millis => "ms",
            Self::Count => "count",
            Self::Ratio => "ratio",
        }
    }
}

/// Where a figure is looked for.
type Source<'a> = (&'a Scenario, &'a Outcome);

/// A figure that each run has, or has not: then its place is blank.
pub(super) struct Column {
    pub(super) group: String,
    pub(super) name: &'static str,
    pub(super) unit: Unit,
    digits: usize,
    /// Too much for a table: in CSV and JSON only.
    pub(super) aside: bool,
    of: Box<dyn Fn(Source<'_>) -> Option<f64>>,
}

impl Column {
    /// The group with its unit, where the figures' names do not tell it.
    pub(super) fn title(&self) -> String {
        match self.unit {
            Unit::Millis => format!("{} (ms)", self.group),
            Unit::Megabits | Unit::Count | Unit::Ratio => self.group.clone(),
        }
    }

    /// The figure of a run in one world, over all its seeds.
    pub(super) fn of(&self, run: &Run, outcomes: &[Outcome]) -> Values {
        let scenario = &run.variant.scenario;
        Values(outcomes.iter().filter_map(|outcome| (self.of)((scenario, outcome))).collect())
    }

    /// The mean as a table shows it. With several seeds a small count has a digit after the point.
    pub(super) fn show(&self, values: &Values) -> String {
        let Some(mean) = values.mean() else { return String::new() };
        match self.unit {
            Unit::Count if values.0.len() > 1 && mean < 100.0 => format!("{mean:.1}"),
            Unit::Count => thousands(mean.round() as u64),
            _ => format!("{mean:.*}", self.digits),
        }
    }

    /// How far seeds spread.
    pub(super) fn show_spread(&self, values: &Values) -> String {
        let Some(deviation) = values.deviation() else { return String::new() };
        let digits = match self.unit {
            Unit::Count if deviation < 100.0 => 1,
            _ => self.digits,
        };
        format!("±{deviation:.digits$}")
    }

    /// The number as CSV has it.
    pub(super) fn write(&self, number: Option<f64>, of: &Values) -> String {
        // The mean of counts is none.
        let digits = if self.unit == Unit::Count && of.0.len() > 1 { 3 } else { self.digits };
        number.map_or(String::new(), |number| format!("{number:.digits$}"))
    }

    /// How far it is from the same figure of another world: times as a difference, all else as a share.
    pub(super) fn apart(&self, reference: &Values, values: &Values) -> String {
        let Some((reference, value)) = reference.mean().zip(values.mean()) else {
            return String::new();
        };
        let difference = value - reference;
        if self.unit == Unit::Millis {
            return format!("{difference:+.*}", self.digits);
        }
        let share = if difference == 0.0 { 0.0 } else { (100.0 * difference / reference).round() };
        match share {
            _ if share.is_infinite() => "-".to_owned(),
            0.0 => "0%".to_owned(),
            _ => format!("{share:+.0}%"),
        }
    }
}

/// A figure of each seed that has it.
pub(super) struct Values(Vec<f64>);

impl Values {
    pub(super) const fn count(&self) -> usize {
        self.0.len()
    }

    pub(super) fn mean(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.iter().sum::<f64>() / self.0.len() as f64)
    }

    /// The standard deviation of the sample, which takes two.
    pub(super) fn deviation(&self) -> Option<f64> {
        let mean = self.mean().filter(|_| self.0.len() > 1)?;
        let squares = self.0.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        Some((squares / (self.0.len() - 1) as f64).sqrt())
    }

    pub(super) fn least(&self) -> Option<f64> {
        self.0.iter().copied().reduce(f64::min)
    }

    pub(super) fn most(&self) -> Option<f64> {
        self.0.iter().copied().reduce(f64::max)
    }
}

/// The base round-trip time of a scenario.
pub(super) fn base_ms(scenario: &Scenario) -> f64 {
    scenario.link.rtt.as_secs_f64() * 1e3
}

/// The columns that some run may have something for, in their order. All runs have the same columns, whatever their lists say.
pub(super) fn columns(runs: &[Run]) -> Vec<Column> {
    let mut columns = Vec::new();
    let mut add = |group: &str, name, unit, digits, of: Box<dyn Fn(Source<'_>) -> Option<f64>>| {
        let group = group.to_owned();
        columns.push(Column { group, name, unit, digits, aside: name == SENT, of });
    };
    let scenarios = || runs.iter().map(|run| &run.variant.scenario);
    let groups = scenarios().map(|scenario| scenario.flow.len()).max().unwrap_or(0);
    add(
        "goodput",
        "Mbits/sec",
        Unit::Megabits,
        2,
        Box::new(|(_, outcome)| Some(outcome.goodput_mbit)),
    );
    if groups > 1 {
        for (number, title) in flow_titles(runs, groups).iter().enumerate() {
            let of = move |(_, outcome): Source<'_>| {
                outcome.flow.get(number).map(|flow| flow.total_mbit)
            };
            add(title, "Mbits/sec", Unit::Megabits, 2, Box::new(of));
        }
    }
    add("", "fairness", Unit::Ratio, 3, Box::new(fairness));
    probes(runs, &mut add);
    completions(runs, groups, &mut add);
    let sum = |of: fn(&FlowOutcome) -> u64| {
        Box::new(move |(_, outcome): Source<'_>| {
            Some(outcome.flow.iter().map(of).sum::<u64>() as f64)
        })
    };
    add("segments", SENT, Unit::Count, 0, sum(|flow| flow.data_packets));
    add("segments", "sent again", Unit::Count, 0, sum(|flow| flow.retransmits));
    add("segments", "CE marks", Unit::Count, 0, sum(|flow| flow.ce_marks));
    type DelaysOf = fn(&Outcome) -> Option<Delays>;
    let classes: [(&str, DelaysOf); 2] = [
        (CLASSIC, |outcome| outcome.queue.delay_not_ect),
        (ECN_CAPABLE, |outcome| outcome.queue.delay_ect),
    ];
    for (class, of) in classes {
        let get = |figure: fn(Delays) -> f64| {
            Box::new(move |(_, outcome): Source<'_>| of(outcome).map(figure))
        };
        add(class, "p50", Unit::Millis, 2, get(|delays| delays.p50_ms));
        add(class, "p99", Unit::Millis, 2, get(|delays| delays.p99_ms));
    }
    add(
        "queue",
        "drops",
        Unit::Count,
        0,
        Box::new(|(_, outcome)| Some(outcome.queue.drops as f64)),
    );
    columns
}

type Add<'a> =
    dyn FnMut(&str, &'static str, Unit, usize, Box<dyn Fn(Source<'_>) -> Option<f64>>) + 'a;

const SENT: &str = "sent";
/// Packets that cannot be marked; in `dualpi2` they have the C queue.
pub(super) const CLASSIC: &str = "Not-ECT delay";
/// Packets that can. In `dualpi2 any_ect` they have the L queue.
pub(super) const ECN_CAPABLE: &str = "ECT delay";

/// Fairness is of at least two.
fn fairness((scenario, outcome): Source<'_>) -> Option<f64> {
    let endless = scenario.flow.iter().filter(|group| group.size.is_none());
    outcome.fairness.filter(|_| endless.map(|group| group.count).sum::<u32>() > 1)
}

/// What each group of flows is called: by its congestion control where that is one and the same in all runs and no other group's, else
/// by its number.
fn flow_titles(runs: &[Run], groups: usize) -> Vec<String> {
    let same = |number: usize| {
        let mut all = runs.iter().filter_map(|run| run.variant.scenario.flow.get(number));
        let first = all.next()?.cc;
        all.all(|group| group.cc == first).then_some(first)
    };
    let names: Vec<Option<CongestionControl>> = (0..groups).map(same).collect();
    let title = |(number, name): (usize, &Option<CongestionControl>)| match name {
        Some(cc) if names.iter().flatten().filter(|other| *other == cc).count() == 1 => {
            cc.to_string()
        }
        Some(name) => format!("flow {} ({name})", number + 1),
        None => format!("flow {}", number + 1),
    };
    names.iter().enumerate().map(title).collect()
}

fn probes(runs: &[Run], add: &mut Add<'_>) {
    let widest =
        runs.iter().map(|run| &run.variant.scenario.probe).max_by_key(|probes| probes.len());
    let probes = widest.map_or(&[][..], |probes| probes);
    for (number, probe) in probes.iter().enumerate() {
        let kind = probe.kind;
        let title = match probes.len() {
            1 => format!("{kind} RTT"),
            _ if probe.kind == ProbeKind::Ping => format!("ping {} RTT", number + 1),
            _ => format!("{kind} {} ({}) RTT", number + 1, probe.cc),
        };
        let get = |of: fn(&Scenario, &ProbeOutcome) -> f64| {
            Box::new(move |(scenario, outcome): Source<'_>| {
                let measured = outcome.probe.get(number).filter(|probe| probe.n > 0);
                measured.map(|probe| of(scenario, probe))
            })
        };
        add(&title, "mean", Unit::Millis, 2, get(|_, probe| probe.mean_ms));
        let above = get(|scenario, probe| probe.mean_ms - base_ms(scenario));
        add(&title, "above base", Unit::Millis, 2, above);
        add(&title, "jitter", Unit::Millis, 2, get(|_, probe| probe.std_ms));
        add(&title, "p99", Unit::Millis, 2, get(|_, probe| probe.p99_ms));
    }
}

/// How long transfers took that have a size.
fn completions(runs: &[Run], groups: usize, add: &mut Add<'_>) {
    let is_sized = |number: usize| {
        let mut scenarios = runs.iter().map(|run| &run.variant.scenario);
        scenarios
            .any(|scenario| scenario.flow.get(number).is_some_and(|group| group.size.is_some()))
    };
    let sized: Vec<usize> = (0..groups).filter(|number| is_sized(*number)).collect();
    let titles = flow_titles(runs, groups);
    for number in sized {
        let title = match groups {
            1 => "completion".to_owned(),
            _ => format!("{} completion", titles[number]),
        };
        for (name, quantile) in [("p50", 0.5), ("p99", 0.99), ("max", 1.0)] {
            let of = move |(_, outcome): Source<'_>| {
                completion(outcome.flow.get(number)?, quantile).map(|seconds| seconds * 1e3)
            };
            add(&title, name, Unit::Millis, 3, Box::new(of));
        }
    }
}

/// The time within which so many of the transfers ended that did end.
fn completion(flow: &FlowOutcome, quantile: f64) -> Option<f64> {
    let mut ended: Vec<f64> = flow.completion_s.iter().flatten().copied().collect();
    ended.sort_unstable_by(f64::total_cmp);
    let rank = (ended.len() as f64 * quantile).ceil() as usize;
    ended.get(rank.saturating_sub(1)).copied()
}

/// What is to be said of a run beside its figures.
pub(super) fn remarks(run: &Run, outcomes: &[Outcome]) -> Vec<String> {
    let scenario = &run.variant.scenario;
    let mut remarks = Vec::new();
    for (number, group) in scenario.flow.iter().enumerate() {
        if group.size.is_some() {
            let ended = |outcome: &Outcome| {
                outcome
                    .flow
                    .get(number)
                    .map_or(0, |flow| flow.completion_s.iter().flatten().count())
            };
            let fewest = outcomes.iter().map(ended).min().unwrap_or(0);
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
    let stalled = outcomes.iter().map(|outcome| stalled(scenario, outcome)).max().unwrap_or(0);
    if stalled > 0 {
        let flows = if stalled == 1 { "flow" } else { "flows" };
        remarks.push(format!("{stalled} {flows} made no progress"));
    }
    // They are told of every world.
    remarks
        .extend(Limit::in_words(&run.outcomes).into_iter().map(|limit| format!("limit: {limit}")));
    remarks
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

/// A number as JSON has it.
pub(super) fn rounded(number: Option<f64>) -> Option<f64> {
    number.map(thousandths)
}
