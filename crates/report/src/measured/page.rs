//! The page: all of it in one file that needs no network.

use dualq_measure::{Distribution, Loaded, Measurement, Method};
use dualq_scenario::DelayDistribution;

use super::said::{flows, rates, round_trips, sentences, ways};
use crate::html::still::Still;
use crate::svg::canvas::Canvas;
use crate::svg::distribution::Curves;
use crate::svg::lines::THINNING;
use crate::svg::plot::{Line, Look, Plot, legend};
use crate::svg::{Caption, Picture};
use crate::words::one_line;

/// Methods that have lines, in the order of their colours.
const DRAWN: [Method; 5] =
    [Method::Tcp, Method::Udp, Method::Icmp, Method::Loaded, Method::Connect];

/// A page to look at.
#[must_use]
pub fn page(measured: &Measurement, program: &str) -> String {
    let host = one_line(&measured.host);
    let mut page = Still::new(&format!("The path to {host}"));
    // The grade comes first; all else is for whoever reads on.
    for (number, (of, what)) in sentences(measured).into_iter().enumerate() {
        let sentence = format!("{of}: {what}.");
        if number == 0 { page.headline(&sentence) } else { page.sentence(&sentence) }
    }
    page.begin();
    for (title, table) in [("Rates", rates(measured)), ("Round trips", round_trips(measured))] {
        page.section(title);
        let rows: Vec<(bool, Vec<String>)> =
            table.rows.into_iter().map(|row| (false, row)).collect();
        page.table(title, &table.heads, table.words, &rows);
    }
    page.section("Over time");
    page.paragraph("What is shaded is the ramp-up, which is in no figure.");
    for loaded in &measured.loaded {
        let name = loaded.direction.name();
        page.picture(
            &over_time(measured, loaded),
            &format!("Goodput and round trips over time: {name}"),
        );
    }
    page.section("How round trips are distributed");
    for picture in distributions(measured) {
        page.picture(&picture, "Round trips by TCP, with and without load");
    }
    page.page(program)
}

fn caption(measured: &Measurement) -> Caption {
    let source = vec![format!("{}, {}", measured.address, flows(measured))];
    Caption { name: one_line(&measured.host), source }
}

/// A stage: goodput and round trips.
fn over_time(measured: &Measurement, loaded: &Loaded) -> Picture {
    let title = loaded.direction.name();
    let mut canvas = Canvas::default();
    let top = caption(measured).head(&mut canvas, title);
    let look = |colour: usize| Look { colour, dash: 0 };
    let rates: Vec<Line> = ways(loaded)
        .map(|(way, load)| {
            let points = load.series.iter().map(|point| (point.t_s, Some(point.goodput_mbit)));
            Line {
                points: thinned(points),
                look: Look { colour: 0, dash: usize::from(way == "up") },
            }
        })
        .collect();
    let mut round_trips: Vec<(usize, String, &Distribution)> = DRAWN
        .iter()
        .enumerate()
        // New connections are drawn where there is no better.
        .filter(|(_, method)| **method != Method::Connect || loaded.rtt(Method::Tcp).is_none())
        .filter_map(|(colour, method)| {
            Some((colour, method.name().to_owned(), loaded.rtt(*method)?))
        })
        .collect();
    if round_trips.is_empty() {
        let by_flows = ways(loaded).enumerate();
        round_trips = by_flows
            .filter_map(|(colour, (way, load))| {
                Some((colour, format!("TCP_INFO {way}"), load.srtt.as_ref()?))
            })
            .collect();
    }
    let rtts: Vec<Line> = round_trips
        .iter()
        .map(|(colour, _, rtt)| {
            let points = rtt.samples.iter().map(|(t_s, ms)| (*t_s, Some(*ms)));
            Line { points: thinned(points), look: look(*colour) }
        })
        .collect();
    let mut y = top;
    let most = |lines: &[Line]| {
        let values = lines.iter().flat_map(|line| &line.points).filter_map(|(_, value)| *value);
        values.fold(0.0, f64::max).max(f64::MIN_POSITIVE) * 1.06
    };
    let end = loaded.duration_s;
    let goodput = Plot {
        title: "Goodput",
        unit: "Mbit/s; solid: down, dashed: up",
        y: (0.0, most(&rates), false),
        x: (0.0, end, false),
        warmup: loaded.steady_s,
        lines: rates,
        ..Plot::default()
    };
    y = goodput.draw(&mut canvas, y, 110.0) + 8.0;
    let entries: Vec<(Look, String)> =
        round_trips.iter().map(|(colour, by, _)| (look(*colour), by.clone())).collect();
    y = legend(&mut canvas, y, &entries) + 6.0;
    let base = measured.base_rtt_ms().map(|ms| (ms, "without load".to_owned()));
    let rtt = Plot {
        title: "Round trips",
        unit: "ms, in the steady state",
        y: (0.0, most(&rtts), false),
        x: (0.0, end, false),
        warmup: loaded.steady_s,
        marks: base.into_iter().collect(),
        lines: rtts,
        x_label: Some("time since the stage began (s)"),
        ..Plot::default()
    };
    y = rtt.draw(&mut canvas, y, 110.0) + 8.0;
    caption(measured).finish(canvas, "time", title, y + 8.0, &[])
}

fn thinned(points: impl Iterator<Item = (f64, Option<f64>)>) -> Vec<(f64, Option<f64>)> {
    let (times, values): (Vec<f64>, Vec<Option<f64>>) = points.unzip();
    THINNING.times(&times).into_iter().zip(THINNING.line(values.into_iter())).collect()
}

/// Round trips of each stage by TCP, or by the next best method.
fn distributions(measured: &Measurement) -> Vec<Picture> {
    let methods = [Method::Tcp, Method::Icmp, Method::Connect];
    let Some(by) = methods
        .into_iter()
        .find(|by| measured.loaded.iter().any(|loaded| loaded.rtt(*by).is_some()))
    else {
        return Vec::new();
    };
    let idle = measured.idle.rtt(by).map(|rtt| ("idle", rtt));
    let loaded = measured.loaded.iter();
    let loaded = loaded.filter_map(|loaded| Some((loaded.direction.name(), loaded.rtt(by)?)));
    let (mut curves, mut entries) = (Vec::new(), Vec::new());
    for (colour, (stage, rtt)) in idle.into_iter().chain(loaded).enumerate() {
        let look = Look { colour, dash: 0 };
        curves.push((steps(rtt), 0.0, look));
        entries.push((look, stage.to_owned()));
    }
    let curves = Curves {
        title: match by {
            Method::Tcp => "Round trips by TCP",
            Method::Icmp => "Round trips by ICMP",
            _ => "Handshakes of new connections",
        },
        names: ["rtt-cdf", "rtt-ccdf"],
        curves,
        legend: entries,
        said: Vec::new(),
    };
    curves.pictures(&caption(measured))
}

/// Each time is a step.
fn steps(rtt: &Distribution) -> DelayDistribution {
    let mut ms = rtt.times_ms();
    ms.sort_unstable_by(f64::total_cmp);
    let share = (1..=ms.len()).map(|at| at as f64 / ms.len() as f64).collect();
    DelayDistribution { samples: ms.len() as u64, ms, share }
}
