//! What scenarios came to, side by side.

use std::fmt::Write as _;

use dualq_scenario::Outcome;
use serde_json::{Map, Value, json};

use super::figures::{CLASSIC, Column, ECN_CAPABLE, Values, base_ms, columns, remarks, rounded};
use super::table::{Grid, Group};
use crate::output::one_line;
use crate::run::{Comparison, Run};
use crate::world::World;

/// The version of the JSON document's form.
const JSON_VERSION: u32 = 1;
/// Of more links than this, the best of each is not repeated in words.
const MOST_SENTENCES: usize = 4;

/// A text, and which of its lines are the best.
pub(crate) struct Page {
    pub(crate) text: String,
    /// Counted from 0.
    pub(crate) best: Vec<usize>,
}

impl Comparison {
    /// How many seeds each run has in each world.
    fn seeds(&self) -> u64 {
        let outcomes = self.runs.first().map_or(0, |run| run.outcomes.len());
        (outcomes / self.worlds.len().max(1)).max(1) as u64
    }

    /// What came of a run in one world, for each seed.
    fn outcomes<'a>(&self, run: &'a Run, world: usize) -> &'a [Outcome] {
        let seeds = self.seeds() as usize;
        &run.outcomes[world * seeds..(world + 1) * seeds]
    }

    /// What came of it in the world that was named first, by which runs are ranked and spoken of.
    fn first<'a>(&self, run: &'a Run) -> &'a [Outcome] {
        self.outcomes(run, 0)
    }

    /// A mean over the seeds in that world.
    fn mean(&self, run: &Run, of: impl Fn(&Outcome) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = self.first(run).iter().filter_map(of).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    fn goodput_mbit(&self, run: &Run) -> f64 {
        self.mean(run, |outcome| Some(outcome.goodput_mbit)).unwrap_or(0.0)
    }

    /// The first probe's mean round-trip time.
    fn probe_ms(&self, run: &Run) -> Option<f64> {
        let answered = |outcome: &Outcome| {
            outcome.probe.first().filter(|probe| probe.n > 0).map(|probe| probe.mean_ms)
        };
        self.mean(run, answered)
    }

    /// Throughput over round-trip time, by which runs are ranked: Kleinrock's power. A probe that is never answered makes it none.
    fn power(&self, run: &Run) -> f64 {
        let scenario = &run.variant.scenario;
        let rtt = match self.probe_ms(run) {
            None if scenario.probe.is_empty() => base_ms(scenario),
            rtt => rtt.unwrap_or(0.0),
        };
        if rtt > 0.0 { self.goodput_mbit(run) / rtt } else { 0.0 }
    }

    /// The runs best first, those on the same link together, in the order in which the links were given.
    fn ranked(&self) -> Vec<Vec<&Run>> {
        let link = |run: &Run| {
            let link = &run.variant.scenario.link;
            (link.rate, link.rtt, link.loss, link.mtu, link.tunnel)
        };
        let mut links: Vec<Vec<&Run>> = Vec::new();
        for run in &self.runs {
            match links.iter_mut().find(|runs| link(runs[0]) == link(run)) {
                Some(runs) => runs.push(run),
                None => links.push(vec![run]),
            }
        }
        for runs in &mut links {
            runs.sort_by(|one, other| self.power(other).total_cmp(&self.power(one)));
        }
        links
    }

    /// A run in plain words.
    fn sentence(&self, run: &Run) -> String {
        let (label, goodput) = (run.label(), self.goodput_mbit(run));
        match self.probe_ms(run) {
            Some(probe_ms) => format!(
                "{label}: {goodput:.1} Mbits/sec while the probe is answered in {probe_ms:.2} ms, {:.2} ms above the base",
                probe_ms - base_ms(&run.variant.scenario)
            ),
            None if !run.variant.scenario.probe.is_empty() => {
                format!("{label}: {goodput:.1} Mbits/sec; the probe was never answered")
            }
            None => format!("{label}: {goodput:.1} Mbits/sec"),
        }
    }
}

impl Run {
    /// How this run is told from the others.
    fn label(&self) -> String {
        // A bare number does not tell what it is of.
        let bare = |value: &str| value.parse::<f64>().is_ok() || value.parse::<bool>().is_ok();
        let said = |(what, value): &(String, String)| match bare(value) {
            true => format!("{what} = {value}"),
            false => value.clone(),
        };
        let values: Vec<String> = self.variant.settings.iter().map(said).collect();
        if values.is_empty() {
            let scenario = &self.variant.scenario;
            let flows: Vec<&str> = scenario.flow.iter().map(|group| group.cc.name()).collect();
            format!("{} with {}", scenario.link.qdisc, flows.join(" and "))
        } else {
            values.join(" with ")
        }
    }
}

/// A table that answers the question: best first, a line in plain words under it; in lines of at most so many characters, if that
/// is possible, and with what is best in it.
pub(crate) fn page(comparison: &Comparison, width: Option<usize>) -> Page {
    let Comparison { plan, worlds, .. } = comparison;
    let mut text = one_line(&plan.name);
    if !plan.about.is_empty() {
        let _ = write!(text, ": {}", one_line(&plan.about));
    }
    text.push_str("\n\n");
    let links = comparison.ranked();
    if links.is_empty() {
        return Page { text, best: Vec::new() };
    }
    let (lines, best) = table(comparison, &links, width);
    let above = text.lines().count();
    let best = best.into_iter().map(|line| line + above).collect();
    let _ = writeln!(text, "{}\n", lines.join("\n"));
    let seeds = comparison.seeds();
    if seeds > 1 {
        let (first, last) = (comparison.seed, comparison.seed.saturating_add(seeds - 1));
        let _ = writeln!(
            text,
            "Means over the {seeds} seeds from {first} to {last}; ± is the standard deviation from seed to seed."
        );
    }
    for version in worlds.iter().filter_map(World::kernel_version) {
        let _ = writeln!(text, "The world kernel is Linux {version} in virtual time.");
    }
    text.push_str(&in_words(comparison, &links));
    let ranked = links.iter().flatten();
    let said: Vec<(String, Vec<String>)> =
        ranked.map(|run| (run.label(), remarks(run, comparison.first(run)))).collect();
    // What is so everywhere is said once.
    let everywhere = said.len() > 1 && said.iter().all(|(_, remarks)| *remarks == said[0].1);
    for (label, remarks) in if everywhere { &said[..1] } else { &said } {
        for remark in remarks {
            let whom = if everywhere { "In all of them" } else { label };
            let _ = writeln!(text, "{whom}: {remark}");
        }
    }
    for published in &plan.published {
        let _ = writeln!(text, "Published: {}", one_line(published));
    }
    Page { text, best }
}

/// The best and the worst of each link, unless the table alone is easier to read.
fn in_words(comparison: &Comparison, links: &[Vec<&Run>]) -> String {
    let mut text = String::new();
    let compared = links.iter().any(|runs| runs.len() > 1);
    if links.len() <= MOST_SENTENCES {
        for runs in links {
            if let [first, .., last] = runs.as_slice() {
                let _ = writeln!(text, "Best: {}", comparison.sentence(first));
                let _ = writeln!(text, "Worst: {}", comparison.sentence(last));
            } else {
                let _ = writeln!(text, "{}", comparison.sentence(runs[0]));
            }
        }
    }
    if compared {
        let within = if links.len() > 1 { " on each link" } else { "" };
        let _ = writeln!(
            text,
            "(Ranked{within} by power: throughput over the probe's round-trip time.)"
        );
    }
    text
}

/// The table's lines, and which of them are the best on their link.
fn table(
    comparison: &Comparison,
    links: &[Vec<&Run>],
    width: Option<usize>,
) -> (Vec<String>, Vec<usize>) {
    let Comparison { worlds, runs, .. } = comparison;
    let mut columns = columns(runs);
    // What no run has takes no room.
    columns.retain(|column| {
        let has = |run: &Run| column.of(run, &run.outcomes).count() > 0;
        !column.aside && runs.iter().any(has)
    });
    let settings = &links[0][0].variant.settings;
    let mut heads: Vec<String> = settings.iter().map(|(what, _)| what.clone()).collect();
    if heads.is_empty() {
        heads.push("qdisc".to_owned());
    }
    if worlds.len() > 1 {
        heads.push("world".to_owned());
    }
    let mut rows = Vec::new();
    let mut best_rows = Vec::new();
    for runs in links {
        for (place, run) in runs.iter().enumerate() {
            if place == 0 && runs.len() > 1 {
                best_rows.push(rows.len());
            }
            rows.extend(rows_of(comparison, run, &columns));
        }
    }
    let grid = Grid { heads, groups: groups(&columns), rows };
    let lines = grid.lines(width);
    // A block has two lines of titles, and there is an empty one between two.
    let block = grid.rows.len() + 3;
    let blocks = (lines.len() + 1) / block;
    let in_block = |at: usize| best_rows.iter().map(move |row| at * block + 2 + row);
    let best = (0..blocks).flat_map(in_block).collect();
    (lines, best)
}

/// Columns next to each other that have a common title.
fn groups(columns: &[Column]) -> Vec<Group> {
    // Where there is one kind of packets only, nobody asks which.
    let has = |class: &str| columns.iter().any(|column| column.group == class);
    let both = has(CLASSIC) && has(ECN_CAPABLE);
    let mut groups: Vec<Group> = Vec::new();
    let mut last: Option<&str> = None;
    for column in columns {
        let name = column.name.to_owned();
        match groups.last_mut() {
            Some(group) if last == Some(&column.group) => group.names.push(name),
            _ => {
                let is_class = column.group == CLASSIC || column.group == ECN_CAPABLE;
                let title = match is_class && !both {
                    true => "queue delay (ms)".to_owned(),
                    false => column.title(),
                };
                groups.push(Group { title, names: vec![name] });
            }
        }
        last = Some(&column.group);
    }
    groups
}

/// A run: its mean and spread in each world, and how far these are apart.
fn rows_of(comparison: &Comparison, run: &Run, columns: &[Column]) -> Vec<Vec<String>> {
    let Comparison { worlds, .. } = comparison;
    let mut words: Vec<String> =
        run.variant.settings.iter().map(|(_, value)| value.clone()).collect();
    if words.is_empty() {
        words.push(run.variant.scenario.link.qdisc.to_string());
    }
    let nothing = vec![String::new(); words.len()];
    let figures = |world| -> Vec<Values> {
        let outcomes = comparison.outcomes(run, world);
        columns.iter().map(|column| column.of(run, outcomes)).collect()
    };
    let reference = figures(0);
    let mut rows = Vec::new();
    let mut add = |world: &str, cells: &dyn Fn(usize) -> String| {
        let mut row = std::mem::replace(&mut words, nothing.clone());
        if worlds.len() > 1 {
            row.push(world.to_owned());
        }
        row.extend((0..columns.len()).map(cells));
        rows.push(row);
    };
    for (number, world) in worlds.iter().enumerate() {
        let figures = figures(number);
        add(world.name(), &|at| columns[at].show(&figures[at]));
        if comparison.seeds() > 1 {
            add("", &|at| columns[at].show_spread(&figures[at]));
        }
        if number > 0 {
            add("apart", &|at| columns[at].apart(&reference[at], &figures[at]));
        }
    }
    rows
}

fn settings(run: &Run) -> Map<String, Value> {
    let settings = run.variant.settings.iter();
    settings.map(|(what, value)| (what.clone(), Value::from(value.clone()))).collect()
}

/// One document: each run with its scenario and its outcome, and the figures of the table over all seeds.
pub(crate) fn json(comparison: &Comparison) -> String {
    let Comparison { plan, seed, worlds, runs } = comparison;
    let columns = columns(runs);
    let mut listed = Vec::new();
    let mut summary = Vec::new();
    for run in runs {
        for (number, world) in worlds.iter().enumerate() {
            let outcomes = comparison.outcomes(run, number);
            for (outcome, seed) in outcomes.iter().zip(*seed..) {
                let mut object = json!({
                    "settings": settings(run),
                    "world": world.name(),
                    "seed": seed,
                    "scenario": run.variant.scenario,
                    "outcome": outcome,
                });
                if let Some(version) = world.kernel_version() {
                    object["kernel"] = version.into();
                }
                listed.push(object);
            }
            let figures: Vec<Value> =
                columns.iter().map(|column| figure(column, &column.of(run, outcomes))).collect();
            summary.push(json!({
                "settings": settings(run),
                "world": world.name(),
                "figures": figures,
            }));
        }
    }
    let document = json!({
        "version": JSON_VERSION,
        "command": "run",
        "name": plan.name,
        "about": plan.about,
        "published": plan.published,
        "seeds": { "first": seed, "count": comparison.seeds() },
        "runs": listed,
        "summary": summary,
    });
    format!("{document:#}\n")
}

fn figure(column: &Column, values: &Values) -> Value {
    json!({
        "group": column.group,
        "name": column.name,
        "unit": column.unit.name(),
        "seeds": values.count(),
        "mean": rounded(values.mean()),
        "deviation": rounded(values.deviation()),
        "min": rounded(values.least()),
        "max": rounded(values.most()),
    })
}

/// One line a run and world, in the plan's order. With several seeds it has the means, and each figure's standard deviation behind it.
pub(crate) fn csv(comparison: &Comparison) -> String {
    let Comparison { worlds, runs, .. } = comparison;
    let mut writer = csv::Writer::from_writer(Vec::new());
    let which = |name: &str| (worlds.len() > 1).then(|| name.to_owned());
    let several = comparison.seeds() > 1;
    let columns = columns(runs);
    if let Some(run) = runs.first() {
        let title =
            |column: &Column| format!("{} {}", column.title(), column.name).trim().to_owned();
        let titles = |column: &Column| {
            let title = title(column);
            let spread = several.then(|| format!("{title} deviation"));
            [Some(title), spread].into_iter().flatten()
        };
        let settings = run.variant.settings.iter().map(|(what, _)| what.clone());
        let names = settings.chain(which("world")).chain(columns.iter().flat_map(titles));
        writer.write_record(names).expect("memory takes all");
    }
    for run in runs {
        for (number, world) in worlds.iter().enumerate() {
            let outcomes = comparison.outcomes(run, number);
            let numbers = |column: &Column| {
                let values = column.of(run, outcomes);
                let spread = several.then(|| column.write(values.deviation(), &values));
                [Some(column.write(values.mean(), &values)), spread].into_iter().flatten()
            };
            let settings = run.variant.settings.iter().map(|(_, value)| value.clone());
            let figures = columns.iter().flat_map(numbers);
            let values = settings.chain(which(world.name())).chain(figures);
            writer.write_record(values).expect("memory takes all");
        }
    }
    let bytes = writer.into_inner().expect("memory takes all");
    String::from_utf8(bytes).expect("only text was written")
}
