//! How figures went, as small pictures two in a row.

use std::collections::VecDeque;

use dualq_report::sparkline;

/// So many looks are kept, of which as many are shown as there is room for.
const KEPT: usize = 120;
/// A picture is no longer.
const WIDEST: usize = 40;
const NARROWEST: usize = 8;
/// What stands beside a picture: its name and its last value.
const WORDS: usize = 34;

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
            Some(now) => format!("  {name:<12} {line} {now:>8.2} {unit}"),
            None => format!("  {name:<12} {line}        - {unit}"),
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

    pub(crate) fn add(&mut self, name: &str, unit: &str, series: &Series) {
        let room = (self.columns / 2).saturating_sub(WORDS).clamp(NARROWEST, WIDEST);
        self.cells.push(series.picture(name, unit, room));
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.cells.chunks(2).map(|pair| {
            let right = pair.get(1).map_or("", String::as_str);
            format!("{}{right}", padded(&pair[0], self.columns / 2))
        })
    }
}

fn padded(text: &str, columns: usize) -> String {
    let blank = columns.saturating_sub(text.chars().count());
    text.to_owned() + &" ".repeat(blank)
}
