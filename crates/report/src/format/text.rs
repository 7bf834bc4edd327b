//! A table for people that answers the question: best first, and a few lines in plain words under it.

use std::fmt::Write as _;

use crate::figures::{Column, Samples};
use crate::graphs::Graphs;
use crate::grid::{Grid, Group};
use crate::report::Report;
use crate::words::{folded, marked, one_line, printable};

/// How a text may look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// In lines of at most so many characters, if that is possible; else in one line a row.
    pub width: Option<usize>,
    /// Whether the best rows are in bold, by a terminal's escape sequences. Nothing else in the text can steer a terminal.
    pub colour: bool,
    /// Whether there are small pictures in Unicode where the lines are wide enough.
    pub graphs: bool,
}

/// The table, and what there is to say about it.
#[must_use]
pub fn write(report: &Report<'_>, style: &Style) -> String {
    let results = report.results;
    let mut head = one_line(&results.name);
    if !results.about.is_empty() {
        let _ = write!(head, ": {}", one_line(&results.about));
    }
    let mut text = folded(&head, style.width) + "\n\n";
    let mut best = Vec::new();
    if !report.ranked.is_empty() {
        let (lines, best_lines) = table(report, style);
        let above = text.lines().count();
        best.extend(best_lines.into_iter().map(|line| line + above));
        let _ = writeln!(text, "{}\n", lines.join("\n"));
        for line in report.words() {
            let _ = writeln!(text, "{}", folded(&line, style.width));
        }
    }
    if style.colour { marked(&text, &best) } else { printable(&text).into_owned() }
}

/// The table's lines, and which of them are the best on their link.
fn table(report: &Report<'_>, style: &Style) -> (Vec<String>, Vec<usize>) {
    let figures = &report.figures;
    let worlds = report.results.worlds().len();
    // What no run has takes no room.
    let has = |at: usize| figures.rows.iter().any(|row| !row.values[at].0.is_empty());
    let columns = figures.columns.iter().enumerate();
    let shown: Vec<(usize, &Column)> =
        columns.filter(|(at, column)| !column.aside && has(*at)).collect();
    let settings = &figures.rows[0].settings.0;
    let mut heads: Vec<String> = settings.iter().map(|(what, _)| what.clone()).collect();
    if heads.is_empty() {
        heads.push("qdisc".to_owned());
    }
    if worlds > 1 {
        heads.push("world".to_owned());
    }
    let mut rows = Vec::new();
    let mut best_rows = Vec::new();
    let mut graphs = style.graphs.then(|| Graphs::of(report)).flatten();
    for scenarios in &report.ranked {
        for (place, scenario) in scenarios.iter().enumerate() {
            if place == 0 && report.has_best(scenarios) {
                best_rows.push(rows.len());
            }
            let of_scenario = rows_of(report, *scenario, &shown);
            if let Some(graphs) = &mut graphs {
                graphs.add(report, *scenario, of_scenario.len());
            }
            rows.extend(of_scenario);
        }
    }
    let columns: Vec<&Column> = shown.iter().map(|(_, column)| *column).collect();
    let mut grid = Grid { heads, groups: groups(&columns), rows };
    let mut lines = grid.lines(style.width);
    if let Some(graphs) = graphs {
        graphs.beside(&mut grid);
        // Pictures are for where there is room beside all figures.
        let with_graphs = grid.lines(style.width);
        if with_graphs.len() == grid.rows.len() + 2 {
            lines = with_graphs;
        }
    }
    // A block has two lines of titles, and there is an empty one between two.
    let block = grid.rows.len() + 3;
    let blocks = (lines.len() + 1) / block;
    let in_block = |at: usize| best_rows.iter().map(move |row| at * block + 2 + row);
    let best = (0..blocks).flat_map(in_block).collect();
    (lines, best)
}

/// Columns next to each other that have a common title.
fn groups(columns: &[&Column]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut last: Option<&str> = None;
    for column in columns {
        let name = column.name.clone();
        match groups.last_mut() {
            Some(group) if last == Some(&column.group) => group.names.push(name),
            _ => {
                let relative =
                    |other: &&&Column| other.family == column.family && other.group != column.group;
                let title = match column.family {
                    Some(family) if !columns.iter().any(|other| relative(&other)) => {
                        column.titled(family)
                    }
                    _ => column.title(),
                };
                groups.push(Group { title, names: vec![name] });
            }
        }
        last = Some(&column.group);
    }
    groups
}

/// A scenario: its mean and spread in each world, and how far these are apart.
fn rows_of(report: &Report<'_>, scenario: usize, shown: &[(usize, &Column)]) -> Vec<Vec<String>> {
    let worlds = report.results.worlds().len();
    let of_worlds = &report.figures.rows[scenario * worlds..(scenario + 1) * worlds];
    let settings = of_worlds[0].settings.0.iter();
    let mut words: Vec<String> = settings.map(|(_, value)| value.clone()).collect();
    if words.is_empty() {
        words.push(report.scenarios[scenario].scenario().link.qdisc.to_string());
    }
    let nothing = vec![String::new(); words.len()];
    let mut rows = Vec::new();
    let mut add = |world: &str, cell: &dyn Fn(usize, &Column) -> String| {
        let mut row = std::mem::replace(&mut words, nothing.clone());
        if worlds > 1 {
            row.push(world.to_owned());
        }
        row.extend(shown.iter().map(|(at, column)| cell(*at, column)));
        rows.push(row);
    };
    let reference: &[Samples] = &of_worlds[0].values;
    for (number, row) in of_worlds.iter().enumerate() {
        add(&row.world, &|at, column| column.show(&row.values[at]));
        if report.results.seeds().count() > 1 {
            add("", &|at, column| column.show_spread(&row.values[at]));
        }
        if number > 0 {
            add("apart", &|at, column| column.apart(&reference[at], &row.values[at]));
        }
    }
    rows
}
