//! Delay against goodput, a dot for each scenario, and which of them nothing beats in both.

use super::canvas::Canvas;
use super::plot::{Line, Look, Plot, Spread};
use super::{Caption, Picture};
use crate::front::Front;
use crate::report::Report;

const ON_FRONT: Look = Look { colour: 0, dash: 0 };
const BEATEN: Look = Look { colour: 1, dash: 0 };

/// The picture; none of few scenarios, or without a probe.
pub(super) fn front(report: &Report<'_>, caption: &Caption) -> Option<Picture> {
    let front = Front::drawn(report)?;
    let spread = |(number, delay, goodput): &(usize, f64, f64)| {
        let look = if front.scenarios.contains(number) { ON_FRONT } else { BEATEN };
        Spread { x: *delay, from: *goodput, to: *goodput, look }
    };
    // What nothing beats is drawn last, above the others.
    let mut spreads: Vec<Spread> = front.points.iter().map(spread).collect();
    spreads.sort_by_key(|spread| spread.look == ON_FRONT);
    let place = |number: &usize| {
        let (_, delay, goodput) = front.points.iter().find(|(other, ..)| other == number)?;
        Some((*delay, Some(*goodput)))
    };
    let line = Line { points: front.scenarios.iter().filter_map(place).collect(), look: ON_FRONT };
    let top = spreads.iter().map(|spread| spread.to).fold(0.0, f64::max);
    let (delay, goodput) = (front.delay.column().words(), front.goodput.column().words());
    let title = "Delay and goodput";
    let mut canvas = Canvas::default();
    let y = caption.head(&mut canvas, title);
    let plot = Plot {
        title: &goodput,
        lines: vec![line],
        spreads,
        x: front.delays(),
        y: (0.0, if top > 0.0 { top * 1.06 } else { 1.0 }, false),
        stepped: true,
        x_label: Some(&delay),
        ..Plot::default()
    };
    let below = plot.draw(&mut canvas, y, 300.0) + 8.0;
    Some(caption.finish(canvas, "front", title, below, &[front.words(report)]))
}
