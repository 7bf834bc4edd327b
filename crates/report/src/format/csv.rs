//! Comma-separated values: the figures, a line for each scenario in each world, in the plan's order; and the series in long form.

use dualq_worlds::Results;

use crate::figures::Column;
use crate::report::Report;

/// A line of titles, and one for each scenario in each world. With several seeds it has the means, and each figure's standard deviation
/// behind it; with several worlds their names.
///
/// # Panics
/// Never: memory takes all.
#[must_use]
pub fn write(report: &Report<'_>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let results = report.results;
    let worlds = results.worlds().len();
    let which = |name: &str| (worlds > 1).then(|| name.to_owned());
    let several = results.seeds().count() > 1;
    let columns = &report.figures.columns;
    if let Some(row) = report.figures.rows.first() {
        let titles = |column: &Column| {
            let title = format!("{} {}", column.title(), column.name).trim().to_owned();
            let spread = several.then(|| format!("{title} deviation"));
            [Some(title), spread].into_iter().flatten()
        };
        let settings = row.settings.0.iter().map(|(what, _)| what.clone());
        let names = settings.chain(which("world")).chain(columns.iter().flat_map(titles));
        writer.write_record(names).expect("memory takes all");
    }
    for row in &report.figures.rows {
        let figures = columns.iter().zip(&row.values).flat_map(|(column, values)| {
            let spread = several.then(|| column.write(values.deviation(), values));
            [Some(column.write(values.mean(), values)), spread].into_iter().flatten()
        });
        let settings = row.settings.0.iter().map(|(_, value)| value.clone());
        let values = settings.chain(which(&row.world)).chain(figures);
        writer.write_record(values).expect("memory takes all");
    }
    let bytes = writer.into_inner().expect("memory takes all");
    String::from_utf8(bytes).expect("only text was written")
}

/// The series of all runs in long form: a line of titles, and one for each value. The names are those of the JSON document, `of` is the
/// number of the group of flows or of the probe, `flow` that of the flow in its group, all from 0; blank where there is none.
///
/// # Panics
/// Never: memory takes all.
#[must_use]
pub fn series(results: &Results) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let settings = results.runs().first().map_or(&[][..], |run| &run.settings.0);
    let names = settings.iter().map(|(what, _)| what.as_str());
    let titles = names.chain(["world", "seed", "t_s", "series", "of", "flow", "value"]);
    writer.write_record(titles).expect("memory takes all");
    for run in results.runs() {
        let seed = run.seed.to_string();
        let series = &run.outcome.series;
        let mut add =
            |name: &str, of: Option<usize>, flow: Option<usize>, values: &[Option<f64>]| {
                let number = |of: Option<usize>| of.map_or_else(String::new, |of| of.to_string());
                let (of, flow) = (number(of), number(flow));
                for (t_s, value) in series.t_s.iter().zip(values) {
                    let Some(value) = value else { continue };
                    let (t_s, value) = (t_s.to_string(), value.to_string());
                    let words = run.settings.0.iter().map(|(_, value)| value.as_str());
                    let rest = [&*run.world, &seed, &t_s, name, &of, &flow, &value];
                    writer.write_record(words.chain(rest)).expect("memory takes all");
                }
            };
        let there = |list: &[f64]| list.iter().copied().map(Some).collect::<Vec<_>>();
        let counts =
            |list: &[u64]| list.iter().map(|count| Some(*count as f64)).collect::<Vec<_>>();
        for (group, list) in series.goodput_mbit.iter().enumerate() {
            add("goodput_mbit", Some(group), None, &there(list));
        }
        for (group, flows) in series.each_goodput_mbit.iter().enumerate() {
            for (flow, list) in flows.iter().enumerate() {
                add("each_goodput_mbit", Some(group), Some(flow), &there(list));
            }
        }
        for (name, lists) in [
            ("rtt_ms", &series.rtt_ms),
            ("cwnd", &series.cwnd),
            ("ssthresh", &series.ssthresh),
            ("in_flight", &series.in_flight),
            ("pacing_mbit", &series.pacing_mbit),
            ("srtt_ms", &series.srtt_ms),
        ] {
            for (number, list) in lists.iter().enumerate() {
                add(name, Some(number), None, list);
            }
        }
        for (group, list) in series.retransmits.iter().enumerate() {
            add("retransmits", Some(group), None, &counts(list));
        }
        add("queue_delay_ms", None, None, &series.queue_delay_ms);
        add("queue_packets", None, None, &counts(&series.queue_packets));
        add("probability", None, None, &series.probability);
        add("queue_drops", None, None, &counts(&series.queue_drops));
        add("queue_marks", None, None, &counts(&series.queue_marks));
    }
    let bytes = writer.into_inner().expect("memory takes all");
    String::from_utf8(bytes).expect("only text was written")
}
