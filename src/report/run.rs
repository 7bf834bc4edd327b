//! What scenarios came to, side by side.

use std::fmt::Write as _;

use comfy_table::Table;
use dualq_scenario::{FlowOutcome, Outcome, ProbeKind, ProbeOutcome};
use serde_json::{Map, Value, json};

use super::{render, thousands};
use crate::run::{Comparison, Run};
use crate::world::World;

/// The version of the JSON document's form.
const JSON_VERSION: u32 = 1;

/// One figure of a run, under the name that it has in the table and in CSV.
struct Figure {
    group: String,
    name: &'static str,
    value: Option<f64>,
    digits: usize,
    is_time: bool,
}

impl Figure {
    fn show(&self) -> String {
        match self.value {
            None => "-".to_owned(),
            Some(value) if self.digits == 0 => thousands(value as u64),
            Some(value) => format!("{value:.*}", self.digits),
        }
    }

    /// How far it is from the same figure of another world: times as a difference, all else as a share.
    fn apart(&self, reference: &Self) -> String {
        let Some((value, reference)) = self.value.zip(reference.value) else {
            return "-".to_owned();
        };
        let difference = value - reference;
        if self.is_time {
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

impl Run {
    /// What came of it in the world that was named first, by which runs are ranked and spoken of.
    fn outcome(&self) -> &Outcome {
        &self.outcomes[0]
    }

    fn base_ms(&self) -> f64 {
        self.variant.scenario.link.rtt.as_secs_f64() * 1e3
    }

    /// Throughput over round-trip time, by which runs are ranked: Kleinrock's power.
    fn power(&self) -> f64 {
        let outcome = self.outcome();
        let rtt = outcome.probe.first().map_or(self.base_ms(), |probe| probe.mean_ms);
        if rtt > 0.0 { outcome.goodput_mbit / rtt } else { 0.0 }
    }

    fn figures(&self, outcome: &Outcome) -> Vec<Figure> {
        let scenario = &self.variant.scenario;
        let mut figures = Vec::new();
        let mut add = |group: &str, name, value: Option<f64>, digits| {
            let is_time = group.ends_with("(ms)");
            figures.push(Figure { group: group.to_owned(), name, value, digits, is_time });
        };
        add("goodput", "Mbits/sec", Some(outcome.goodput_mbit), 2);
        if scenario.flow.len() > 1 {
            for (group, flow) in scenario.flow.iter().zip(&outcome.flow) {
                add(group.cc.name(), "Mbits/sec", Some(flow.total_mbit), 2);
            }
        }
        if outcome.flow.iter().map(|flow| flow.goodput_mbit.len()).sum::<usize>() > 1 {
            add("", "fairness", outcome.fairness, 3);
        }
        for (number, (group, probe)) in scenario.probe.iter().zip(&outcome.probe).enumerate() {
            let title = match scenario.probe.len() {
                1 => format!("{} RTT (ms)", group.kind),
                _ if group.kind == ProbeKind::Ping => format!("ping {} RTT (ms)", number + 1),
                _ => format!("{} {} ({}) RTT (ms)", group.kind, number + 1, group.cc),
            };
            let measured = (probe.n > 0).then_some(probe);
            let get = |of: fn(&ProbeOutcome) -> f64| measured.map(of);
            add(&title, "mean", get(|probe| probe.mean_ms), 2);
            add(&title, "above base", get(|probe| probe.mean_ms).map(|ms| ms - self.base_ms()), 2);
            add(&title, "jitter", get(|probe| probe.std_ms), 2);
            add(&title, "p99", get(|probe| probe.p99_ms), 2);
        }
        let sum = |of: fn(&FlowOutcome) -> u64| outcome.flow.iter().map(of).sum::<u64>() as f64;
        add("segments", "sent again", Some(sum(|flow| flow.retransmits)), 0);
        add("segments", "CE marks", Some(sum(|flow| flow.ce_marks)), 0);
        add("queue", "drops", Some(outcome.queue.drops as f64), 0);
        figures
    }

    /// How this run is told from the others.
    fn label(&self) -> String {
        let values: Vec<&str> =
            self.variant.settings.iter().map(|(_, value)| value.as_str()).collect();
        if values.is_empty() {
            let scenario = &self.variant.scenario;
            let flows: Vec<&str> = scenario.flow.iter().map(|group| group.cc.name()).collect();
            format!("{} with {}", scenario.link.qdisc, flows.join(" and "))
        } else {
            values.join(" with ")
        }
    }
}

/// The runs best first: by power, but only among those on the same link, in the order in which the links were given.
fn ranked(runs: &[Run]) -> Vec<&Run> {
    let link = |run: &Run| {
        let link = &run.variant.scenario.link;
        (link.rate, link.rtt, link.loss, link.mtu)
    };
    let mut links = Vec::new();
    for run in runs {
        if !links.contains(&link(run)) {
            links.push(link(run));
        }
    }
    let place = |run: &Run| links.iter().position(|known| *known == link(run));
    let mut ranked: Vec<&Run> = runs.iter().collect();
    ranked.sort_by(|one, other| {
        place(one).cmp(&place(other)).then(other.power().total_cmp(&one.power()))
    });
    ranked
}

/// A table that answers the question: best first, a line in plain words under it.
pub(crate) fn text(comparison: &Comparison) -> String {
    let Comparison { plan, worlds, runs, .. } = comparison;
    let mut text = String::new();
    if plan.about.is_empty() {
        let _ = writeln!(text, "{}\n", plan.name);
    } else {
        let _ = writeln!(text, "{}: {}\n", plan.name, plan.about);
    }
    let ranked = ranked(runs);
    let Some((first, last)) = ranked.first().zip(ranked.last()) else { return text };

    let settings: Vec<&str> =
        first.variant.settings.iter().map(|(what, _)| what.as_str()).collect();
    let settings = if settings.is_empty() { vec!["qdisc"] } else { settings };
    let mut table = Table::new();
    let mut names: Vec<&str> = settings.clone();
    if worlds.len() > 1 {
        names.push("world");
    }
    let first_number = names.len();
    let mut groups = vec![String::new(); first_number];
    let mut previous = String::new();
    for figure in first.figures(first.outcome()) {
        let title = if figure.group == previous { "" } else { figure.group.as_str() };
        groups.push(title.to_owned());
        previous.clone_from(&figure.group);
        names.push(figure.name);
    }
    table.add_row(groups);
    table.add_row(names);
    for run in &ranked {
        let values = run.variant.settings.iter().map(|(_, value)| value.clone());
        let mut row: Vec<String> = values.collect();
        if row.is_empty() {
            row.push(run.variant.scenario.link.qdisc.text().to_owned());
        }
        let nothing = vec![String::new(); row.len()];
        if let [_] = worlds.as_slice() {
            row.extend(run.figures(run.outcome()).iter().map(Figure::show));
            table.add_row(row);
            continue;
        }
        let reference = run.figures(run.outcome());
        for (number, (world, outcome)) in worlds.iter().zip(&run.outcomes).enumerate() {
            let figures = run.figures(outcome);
            let mut line = std::mem::replace(&mut row, nothing.clone());
            line.push(world.name().to_owned());
            line.extend(figures.iter().map(Figure::show));
            table.add_row(line);
            if number > 0 {
                let mut line = nothing.clone();
                line.push("apart".to_owned());
                let apart = reference.iter().zip(&figures);
                line.extend(apart.map(|(reference, figure)| figure.apart(reference)));
                table.add_row(line);
            }
        }
    }
    let _ = writeln!(text, "{}\n", render(table, first_number));
    for version in worlds.iter().filter_map(World::kernel_version) {
        let _ = writeln!(text, "The world kernel is Linux {version} in virtual time.");
    }

    if ranked.len() == 1 {
        let _ = writeln!(text, "{}", sentence(first));
    } else if first.variant.scenario.link.rtt == last.variant.scenario.link.rtt
        && first.variant.scenario.link.rate == last.variant.scenario.link.rate
    {
        let _ = writeln!(text, "Best: {}", sentence(first));
        let _ = writeln!(text, "Worst: {}", sentence(last));
        text.push_str("(Ranked by power: throughput over the probe's round-trip time.)\n");
    } else {
        for run in &ranked {
            let _ = writeln!(text, "{}", sentence(run));
        }
    }
    for run in &ranked {
        for (group, flow) in run.variant.scenario.flow.iter().zip(&run.outcome().flow) {
            // Only a size is an end of its own; goodput says little of a transfer that was over before the figures begin.
            if group.size.is_some() {
                let done: Vec<f64> = flow.completion_s.iter().flatten().copied().collect();
                let slowest = done.iter().copied().fold(0.0, f64::max);
                let (label, cc, all) = (run.label(), group.cc, flow.completion_s.len());
                let _ = match done.len() {
                    0 => writeln!(text, "{label}: {cc}: none of {all} transfers ended"),
                    ended => writeln!(
                        text,
                        "{label}: {cc}: {ended} of {all} transfers ended, the slowest after {slowest:.3} s"
                    ),
                };
            }
        }
    }
    for run in &ranked {
        let mut stalled = 0;
        let scenario = &run.variant.scenario;
        for (group, flow) in scenario.flow.iter().zip(&run.outcome().flow) {
            // What has sent all it had to before the figures begin is done, not stuck.
            if group.stop.is_some_and(|stop| stop <= scenario.warmup) {
                continue;
            }
            let flows = flow.goodput_mbit.iter().zip(&flow.completion_s);
            stalled += flows.filter(|(goodput, done)| **goodput <= 0.0 && done.is_none()).count();
        }
        if stalled > 0 {
            let flows = if stalled == 1 { "flow" } else { "flows" };
            let _ = writeln!(text, "{}: {stalled} {flows} made no progress", run.label());
        }
    }
    for published in &plan.published {
        let _ = writeln!(text, "Published: {published}");
    }
    text
}

fn sentence(run: &Run) -> String {
    let goodput = run.outcome().goodput_mbit;
    let label = run.label();
    match run.outcome().probe.first() {
        Some(probe) if probe.n > 0 => format!(
            "{label}: {goodput:.1} Mbits/sec while the probe is answered in {:.2} ms, {:.2} ms above the base",
            probe.mean_ms,
            probe.mean_ms - run.base_ms()
        ),
        Some(_) => format!("{label}: {goodput:.1} Mbits/sec; the probe was never answered"),
        None => format!("{label}: {goodput:.1} Mbits/sec"),
    }
}

/// One document: each run with its scenario and its outcome.
pub(crate) fn json(comparison: &Comparison) -> String {
    let Comparison { plan, seed, worlds, runs } = comparison;
    let runs: Vec<Value> = runs
        .iter()
        .flat_map(|run| {
            worlds.iter().zip(&run.outcomes).map(move |(world, outcome)| (run, world, outcome))
        })
        .map(|(run, world, outcome)| {
            let settings: Map<String, Value> = run
                .variant
                .settings
                .iter()
                .map(|(what, value)| (what.clone(), Value::from(value.clone())))
                .collect();
            let mut object = json!({
                "settings": settings,
                "world": world.name(),
                "seed": seed,
                "scenario": run.variant.scenario,
                "outcome": outcome,
            });
            if let Some(version) = world.kernel_version() {
                object["kernel"] = version.into();
            }
            object
        })
        .collect();
    let document = json!({
        "version": JSON_VERSION,
        "command": "run",
        "name": plan.name,
        "about": plan.about,
        "published": plan.published,
        "runs": runs,
    });
    format!("{document:#}\n")
}

/// One line a run and world, in the plan's order.
pub(crate) fn csv(comparison: &Comparison) -> String {
    let Comparison { worlds, runs, .. } = comparison;
    let mut writer = csv::Writer::from_writer(Vec::new());
    let which = |name: &str| (worlds.len() > 1).then(|| name.to_owned());
    if let Some(run) = runs.first() {
        let title = |figure: Figure| format!("{} {}", figure.group, figure.name).trim().to_owned();
        let settings = run.variant.settings.iter().map(|(what, _)| what.clone());
        let figures = run.figures(run.outcome()).into_iter().map(title);
        let names = settings.chain(which("world")).chain(figures);
        writer.write_record(names).expect("memory takes all");
    }
    for run in runs {
        for (world, outcome) in worlds.iter().zip(&run.outcomes) {
            let show = |figure: Figure| {
                figure.value.map_or(String::new(), |value| format!("{value:.*}", figure.digits))
            };
            let settings = run.variant.settings.iter().map(|(_, value)| value.clone());
            let figures = run.figures(outcome).into_iter().map(show);
            let values = settings.chain(which(world.name())).chain(figures);
            writer.write_record(values).expect("memory takes all");
        }
    }
    let bytes = writer.into_inner().expect("memory takes all");
    String::from_utf8(bytes).expect("only text was written")
}
