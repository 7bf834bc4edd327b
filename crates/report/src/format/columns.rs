//! Tables for data frames, column by column: the figures of each run, and the series. What tells scenarios apart is in columns of their
//! own; names of columns are those of the other formats and have the units.

use dualq_worlds::Run;

use crate::figures::base_ms;
use crate::report::Report;

/// A column: its name and its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name, with the unit.
    pub name: String,
    /// A value for each row.
    pub values: Values,
}

/// The values of a column. What is not there is `None`.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Words.
    Text(Vec<String>),
    /// Whole numbers.
    Whole(Vec<Option<i64>>),
    /// Any numbers.
    Number(Vec<Option<f64>>),
}

/// What sets each row's run apart, for rows of these runs.
fn keys(runs: &[&Run]) -> Vec<Column> {
    let text = |name: &str, of: &dyn Fn(&Run) -> String| Column {
        name: name.to_owned(),
        values: Values::Text(runs.iter().map(|run| of(run)).collect()),
    };
    let number = |name: &str, of: &dyn Fn(&Run) -> f64| Column {
        name: name.to_owned(),
        values: Values::Number(runs.iter().map(|run| Some(of(run))).collect()),
    };
    let settings = runs.first().map_or(&[][..], |run| &run.settings.0);
    let mut columns: Vec<Column> = settings
        .iter()
        .enumerate()
        .map(|(at, (name, _))| {
            text(name, &|run| {
                run.settings.0.get(at).map_or_else(String::new, |(_, value)| value.clone())
            })
        })
        .collect();
    columns.push(text("world", &|run| run.world.clone()));
    columns.push(Column {
        name: "seed".to_owned(),
        // Larger seeds are what i64 makes of the same bits, as other writers have them.
        values: Values::Whole(runs.iter().map(|run| Some(run.seed.cast_signed())).collect()),
    });
    columns.push(number("link_rate_mbit", &|run| {
        run.scenario.link.rate.as_bits_per_second() as f64 / 1e6
    }));
    columns.push(number("base_rtt_ms", &|run| base_ms(&run.scenario)));
    columns
}

/// The figures: a row for each run, a column for each figure, named as in the CSV.
#[must_use]
pub fn summary(report: &Report<'_>) -> Vec<Column> {
    let runs: Vec<&Run> = report.results.runs().iter().collect();
    let mut columns = keys(&runs);
    for (column, of) in report.figures.columns.iter().zip(crate::figures::each(report.results)) {
        let name = format!("{} {}", column.title(), column.name).trim().to_owned();
        columns.push(Column { name, values: Values::Number(of) });
    }
    columns
}

/// The series in long form: a row for each time of each group of flows, flow, probe and queue of each run (`of`, counted from 0 in
/// `number`, and in its group in `flow`), a column for each series.
#[must_use]
pub fn series(runs: &[Run]) -> Vec<Column> {
    let mut rows = Rows::default();
    for run in runs {
        rows.add(run);
    }
    let Rows { runs, t_s, of, number, flow, values } = rows;
    let mut columns = keys(&runs);
    let named = |name: &str, values: Values| Column { name: name.to_owned(), values };
    columns.push(named("t_s", Values::Number(t_s.into_iter().map(Some).collect())));
    columns.push(named("of", Values::Text(of.into_iter().map(str::to_owned).collect())));
    columns.push(named("number", Values::Whole(number)));
    columns.push(named("flow", Values::Whole(flow)));
    for (name, mut list) in values {
        list.resize(runs.len(), None);
        columns.push(named(name, Values::Number(list)));
    }
    columns
}

/// Rows of series as they grow. A list that ends early has nothing in the rows that follow.
#[derive(Default)]
struct Rows<'a> {
    runs: Vec<&'a Run>,
    t_s: Vec<f64>,
    of: Vec<&'static str>,
    number: Vec<Option<i64>>,
    flow: Vec<Option<i64>>,
    values: Vec<(&'static str, Vec<Option<f64>>)>,
}

/// Whose rows they are: what, its number, its flow.
type Whose = (&'static str, Option<usize>, Option<usize>);

impl<'a> Rows<'a> {
    fn add(&mut self, run: &'a Run) {
        let series = &run.outcome.series;
        let there = |list: &[f64]| list.iter().copied().map(Some).collect::<Vec<_>>();
        let counts =
            |list: &[u64]| list.iter().map(|count| Some(*count as f64)).collect::<Vec<_>>();
        for group in 0..run.scenario.flow.len() {
            let list = |lists: &[Vec<Option<f64>>]| lists.get(group).cloned().unwrap_or_default();
            self.block(
                run,
                ("flows", Some(group), None),
                vec![
                    (
                        "goodput_mbit",
                        series.goodput_mbit.get(group).map(|list| there(list)).unwrap_or_default(),
                    ),
                    ("cwnd", list(&series.cwnd)),
                    ("ssthresh", list(&series.ssthresh)),
                    ("in_flight", list(&series.in_flight)),
                    ("pacing_mbit", list(&series.pacing_mbit)),
                    ("srtt_ms", list(&series.srtt_ms)),
                    (
                        "retransmits",
                        series.retransmits.get(group).map(|list| counts(list)).unwrap_or_default(),
                    ),
                ],
            );
        }
        for (group, flows) in series.each_goodput_mbit.iter().enumerate() {
            for (flow, list) in flows.iter().enumerate() {
                self.block(
                    run,
                    ("flow", Some(group), Some(flow)),
                    vec![("each_goodput_mbit", there(list))],
                );
            }
        }
        for (probe, list) in series.rtt_ms.iter().enumerate() {
            self.block(run, ("probe", Some(probe), None), vec![("rtt_ms", list.clone())]);
        }
        self.block(
            run,
            ("queue", None, None),
            vec![
                ("queue_delay_ms", series.queue_delay_ms.clone()),
                ("queue_packets", counts(&series.queue_packets)),
                ("probability", series.probability.clone()),
                ("queue_drops", counts(&series.queue_drops)),
                ("queue_marks", counts(&series.queue_marks)),
            ],
        );
    }

    fn block(
        &mut self,
        run: &'a Run,
        (of, number, flow): Whose,
        lists: Vec<(&'static str, Vec<Option<f64>>)>,
    ) {
        let begins = self.runs.len();
        let whole = |number: Option<usize>| number.and_then(|number| i64::try_from(number).ok());
        for t_s in &run.outcome.series.t_s {
            self.runs.push(run);
            self.t_s.push(*t_s);
            self.of.push(of);
            self.number.push(whole(number));
            self.flow.push(whole(flow));
        }
        for (name, list) in lists {
            let at =
                self.values.iter().position(|(other, _)| *other == name).unwrap_or_else(|| {
                    self.values.push((name, Vec::new()));
                    self.values.len() - 1
                });
            let values = &mut self.values[at].1;
            values.resize(begins, None);
            values.extend(list.into_iter().take(self.runs.len() - begins));
        }
    }
}
