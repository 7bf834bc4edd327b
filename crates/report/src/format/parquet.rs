//! Tables for data frames, as Parquet: the figures of each run, and the series. What tells scenarios apart is in columns of their own; names
//! of columns are those of the other formats and have the units.

use std::sync::Arc;

use dualq_worlds::{Results, Run};
use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use crate::figures::base_ms;
use crate::report::Report;

/// A column: its name and its values.
struct Column {
    name: String,
    values: Values,
}

enum Values {
    Text(Vec<String>),
    Whole(Vec<Option<i64>>),
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
///
/// # Errors
/// If the library refuses a name, as of a setting that is there twice.
pub fn summary(report: &Report<'_>) -> Result<Vec<u8>, ParquetError> {
    let runs: Vec<&Run> = report.results.runs().iter().collect();
    let mut columns = keys(&runs);
    for (column, of) in report.figures.columns.iter().zip(crate::figures::each(report.results)) {
        let name = format!("{} {}", column.title(), column.name).trim().to_owned();
        columns.push(Column { name, values: Values::Number(of) });
    }
    write(columns, report.results)
}

/// The series in long form: a row for each time of each group of flows, flow, probe and queue of each run (`of`, counted from 0 in
/// `number`, and in its group in `flow`), a column for each series.
///
/// # Errors
/// As [`summary`].
pub fn series(results: &Results) -> Result<Vec<u8>, ParquetError> {
    let mut rows = Rows::default();
    for run in results.runs() {
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
    write(columns, results)
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

/// The file, with what made it in its metadata.
fn write(columns: Vec<Column>, results: &Results) -> Result<Vec<u8>, ParquetError> {
    let field = |Column { name, values }: &Column| {
        let (physical, repetition) = match values {
            Values::Text(_) => (Physical::BYTE_ARRAY, Repetition::REQUIRED),
            Values::Whole(_) => (Physical::INT64, Repetition::OPTIONAL),
            Values::Number(_) => (Physical::DOUBLE, Repetition::OPTIONAL),
        };
        let builder = Type::primitive_type_builder(name, physical).with_repetition(repetition);
        let builder = match values {
            Values::Text(_) => builder
                .with_converted_type(ConvertedType::UTF8)
                .with_logical_type(Some(LogicalType::String)),
            _ => builder,
        };
        builder.build().map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
    let schema = Arc::new(Type::group_type_builder("dualq").with_fields(fields).build()?);
    let origin = results.origin.clone().unwrap_or_default();
    let said = [
        ("dualq.name", &results.name),
        ("dualq.program", &origin.program),
        ("dualq.command", &origin.command),
    ];
    let said = said.map(|(key, value)| KeyValue::new(key.to_owned(), value.clone()));
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(said.to_vec()));
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties.build()))?;
    let mut group = writer.next_row_group()?;
    let mut columns = columns.into_iter();
    while let (Some(mut to), Some(Column { values, .. })) = (group.next_column()?, columns.next()) {
        match values {
            Values::Text(list) => {
                let list: Vec<ByteArray> =
                    list.iter().map(|text| ByteArray::from(text.as_str())).collect();
                to.typed::<ByteArrayType>().write_batch(&list, None, None)?;
            }
            Values::Whole(list) => {
                let (there, levels) = split(&list);
                to.typed::<Int64Type>().write_batch(&there, Some(&levels), None)?;
            }
            Values::Number(list) => {
                let (there, levels) = split(&list);
                to.typed::<DoubleType>().write_batch(&there, Some(&levels), None)?;
            }
        }
        to.close()?;
    }
    group.close()?;
    writer.into_inner()
}

/// The values that are there, and for each place whether it has one.
fn split<T: Copy>(list: &[Option<T>]) -> (Vec<T>, Vec<i16>) {
    (
        list.iter().flatten().copied().collect(),
        list.iter().map(|value| i16::from(value.is_some())).collect(),
    )
}
