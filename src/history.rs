//! How figures went, as small pictures, two in a row where there is room for both.

use std::collections::VecDeque;

use dualq_report::sparkline;

/// So many looks are kept, of which as many are shown as there is room for.
const KEPT: usize = 120;
/// A picture is no longer.
const WIDEST: usize = 40;
const NARROWEST: usize = 8;
/// What stands beside a picture: its name and its last value.
const WORDS: usize = 35;

/// A figure at one look after the other; none where there was none.
#[derive(Default)]
pub(crate) struct Series(VecDeque<Option<f64>>);

impl Series {
    pub(crate) fn push(&mut self, value: Option<f64>) {
        self.0.push_back(value);
        if self.0.len() > KEPT {
            self.0.pop_front();
        }
    }

    /// A name, how it went, and what it is now.
    fn picture(&self, name: &str, unit: &str, room: usize) -> String {
        let skipped = self.0.len().saturating_sub(room);
        let values: Vec<Option<f64>> = self.0.iter().skip(skipped).copied().collect();
        let most = values.iter().flatten().copied().fold(0.0, f64::max);
        let line = padded(&sparkline(&values, most), room);
        match values.last().copied().flatten() {
            Some(now) => format!("  {name:<13} {line} {now:>8.2} {unit}"),
            None => format!("  {name:<13} {line}        - {unit}"),
        }
    }
}

/// Pictures that stand together.
pub(crate) struct Row {
    columns: usize,
    cells: Vec<String>,
}

impl Row {
    /// For lines of so many columns.
    pub(crate) const fn of(columns: usize) -> Self {
        Self { columns, cells: Vec::new() }
    }

    /// How many stand beside each other: a picture whose last value is cut off says less than one below the other.
    const fn beside(&self) -> usize {
        if self.columns / 2 < WORDS + NARROWEST - 3 { 1 } else { 2 }
    }

    pub(crate) fn add(&mut self, name: &str, unit: &str, series: &Series) {
        let room = (self.columns / self.beside()).saturating_sub(WORDS).clamp(NARROWEST, WIDEST);
        self.cells.push(series.picture(name, unit, room));
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.cells.chunks(self.beside()).map(|pair| {
            let right = pair.get(1).map_or("", String::as_str);
            format!("{}{right}", padded(&pair[0], self.columns / self.beside()))
        })
    }
}

fn padded(text: &str, columns: usize) -> String {
    let blank = columns.saturating_sub(text.chars().count());
    text.to_owned() + &" ".repeat(blank)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_is_always_there() {
        let mut series = Series::default();
        series.push(Some(12_345.67));
        for columns in [40, 60, 79, 80, 132, 300] {
            let mut row = Row::of(columns);
            for name in ["rate", "goodput", "marks"] {
                row.add(name, "Mbit/s", &series);
            }
            let lines: Vec<String> = row.lines().collect();
            assert_eq!(lines.len(), if columns < 80 { 3 } else { 2 }, "{columns}");
            let shown = |line: &String| line.chars().take(columns).collect::<String>();
            let values =
                lines.iter().map(shown).collect::<String>().matches("12345.67 Mbit/s").count();
            assert_eq!(values, 3, "{columns}: {lines:?}");
        }
    }
}
