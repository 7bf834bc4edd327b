//! Comma-separated values: a line for each scenario in each world, in the plan's order.

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
