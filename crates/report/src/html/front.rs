//! Delay against goodput, as the page holds it.

use serde::Serialize;

use crate::front;
use crate::report::Report;
use crate::words::one_line;

/// The scenarios of a report by their delay and goodput.
#[derive(Serialize)]
pub(super) struct Front {
    /// The report.
    name: String,
    /// The axes in words, with their units.
    delay: String,
    goodput: String,
    /// The axis of delays: from where to where, and whether by its logarithm.
    delays: (f64, f64, bool),
    /// Which are best, in a sentence.
    words: String,
    /// By delay.
    points: Vec<Point>,
}

/// A scenario.
#[derive(Serialize)]
struct Point {
    /// What sets it apart from the others.
    name: String,
    delay: f64,
    goodput: f64,
    /// Whether no other has both less delay and more goodput.
    leads: bool,
}

impl Front {
    /// None of few scenarios, or without a probe.
    pub(super) fn of(report: &Report<'_>) -> Option<Self> {
        let front = front::Front::drawn(report)?;
        let point = |(number, delay, goodput): &(usize, f64, f64)| {
            let settings = &report.scenarios[*number].settings().0;
            let words = settings.iter().map(|(what, value)| format!("{what} {value}"));
            Point {
                name: one_line(&words.collect::<Vec<_>>().join(", ")),
                delay: *delay,
                goodput: *goodput,
                leads: front.scenarios.contains(number),
            }
        };
        let mut points: Vec<Point> = front.points.iter().map(point).collect();
        points.sort_by(|one, other| one.delay.total_cmp(&other.delay));
        Some(Self {
            name: one_line(&report.results.name),
            delay: one_line(&front.delay.column().words()),
            goodput: one_line(&front.goodput.column().words()),
            delays: front.delays(),
            words: front.words(report),
            points,
        })
    }
}
