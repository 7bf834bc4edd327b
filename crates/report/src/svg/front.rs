//! Delay against goodput, a dot for each scenario, and which of them nothing beats in both.

use super::canvas::Canvas;
use super::plot::{Line, Look, Plot, Spread};
use super::{Caption, Picture};
use crate::front::Front;
use crate::report::Report;

/// Fewer scenarios have no front worth a picture.
const FEWEST: usize = 3;

const ON_FRONT: Look = Look { colour: 0, dash: 0 };
const BEATEN: Look = Look { colour: 1, dash: 0 };

/// The picture; none of few scenarios, or without a probe.
pub(super) fn front(report: &Report<'_>, caption: &Caption) -> Option<Picture> {
    let front = Front::of(&report.scenarios).filter(|front| front.points.len() >= FEWEST)?;
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
    let least = spreads.iter().map(|spread| spread.x).fold(f64::MAX, f64::min);
    let most = spreads.iter().map(|spread| spread.x).fold(f64::MIN, f64::max);
    let top = spreads.iter().map(|spread| spread.to).fold(0.0, f64::max);
    let log = crate::sweep::is_wide((least, most));
    // So that no dot stands on the edge.
    let beside = 0.04 * (most - least).max(0.01 * most);
    let x = if log {
        (least / 1.2, most * 1.2, true)
    } else {
        ((least - beside).max(0.0), most + beside, false)
    };
    let (delay, goodput) = (front.delay.column().words(), front.goodput.column().words());
    let title = "Delay and goodput";
    let mut canvas = Canvas::default();
    let y = caption.head(&mut canvas, title);
    let plot = Plot {
        title: &goodput,
        lines: vec![line],
        spreads,
        x,
        y: (0.0, if top > 0.0 { top * 1.06 } else { 1.0 }, false),
        stepped: true,
        x_label: Some(&delay),
        ..Plot::default()
    };
    let below = plot.draw(&mut canvas, y, 300.0) + 8.0;
    let (on, all) = (front.scenarios.len(), front.points.len());
    let said = format!(
        "On the line are {on} of {all} scenarios: no other has both less delay and more goodput."
    );
    Some(caption.finish(canvas, "front", title, below, &[said]))
}
