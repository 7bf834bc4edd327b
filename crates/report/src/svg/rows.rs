//! Which rows are drawn, and how they are called.

use dualq_worlds::Run;

use crate::rank;
use crate::report::Report;

/// A scenario in a world, with all its seeds.
pub(super) struct Shown<'a> {
    pub(super) label: String,
    pub(super) runs: &'a [Run],
}

/// All rows, best first on each link.
pub(super) fn all<'a>(report: &'a Report<'a>) -> Vec<Shown<'a>> {
    let worlds = report.results.worlds().len();
    let mut rows = Vec::new();
    for scenario in report.ranked.iter().flatten() {
        let label = rank::label(&report.scenarios[*scenario]);
        for runs in report.scenarios[*scenario].worlds() {
            let label = match worlds {
                1 => label.clone(),
                _ => format!("{label} · {}", runs[0].world),
            };
            rows.push(Shown { label, runs });
        }
    }
    rows
}

/// Of more rows than `most`, the first ones, which are the best, and the last to compare with; and what to say of that.
pub(super) fn some<'r, 'a>(
    rows: &'r [Shown<'a>],
    most: usize,
) -> (Vec<&'r Shown<'a>>, Option<String>) {
    if rows.len() <= most {
        return (rows.iter().collect(), None);
    }
    let best = rows.iter().take(most - 1);
    let said =
        format!("The first {} and the last of {} rows, as they are ranked.", most - 1, rows.len());
    (best.chain(rows.last()).collect(), Some(said))
}
