//! What `dualq measure` found, of its document: tables and sentences, a page to look at, a data file of flent.

mod page;
mod said;

pub use page::page;
pub use said::{Table, flows, rates, round_trips, sentences};

use std::fmt::Write as _;

use dualq_measure::{Direction, Loaded, Measurement, Method};
use serde_json::json;

use crate::format::flent::{DataFile, FlentError, Series};

/// The stage under load that a file of one test is of: both ways at once if that was measured, else the last.
fn of_one_test(measured: &Measurement) -> Option<&Loaded> {
    measured.under(Direction::Both).or(measured.loaded.last())
}

/// A data file of flent of the stage with both ways loaded, or of the last stage if there is none: `rrul_be`, `tcp_ndown` or `tcp_nup`.
///
/// # Errors
/// If nothing was measured under load.
pub fn flent(measured: &Measurement) -> Result<Vec<u8>, FlentError> {
    let loaded = of_one_test(measured).ok_or(FlentError::NoFlows)?;
    let name = match loaded.direction {
        Direction::Download => "tcp_ndown",
        Direction::Upload => "tcp_nup",
        Direction::Both => "rrul_be",
    };
    let ways = [("download", &loaded.down), ("upload", &loaded.up)];
    let lengths = ways.iter().filter_map(|(_, load)| Some(load.as_ref()?.series.len()));
    let length = lengths.min().unwrap_or(0);
    let step_s = 0.1;
    let x_values: Vec<f64> = (1..=length).map(|at| at as f64 * step_s).collect();
    let mut series = Vec::new();
    let mut flows = [0; 2];
    for (way, (word, load)) in ways.iter().enumerate() {
        let each = load.as_ref().map_or(&[][..], |load| &load.flow_series_mbit);
        flows[way] = each.len();
        for (number, list) in each.iter().enumerate() {
            let values = list.iter().take(length);
            let raw = x_values
                .iter()
                .zip(values.clone())
                .map(|(t_s, mbit)| json!({ "t": t_s, "val": mbit, "dur": step_s }));
            series.push(Series {
                title: crate::format::flent::flow_title(name, word, number + 1),
                units: "Mbits/s",
                runner: "NetperfDemoRunner",
                raw: raw.collect(),
                values: values.copied().map(Some).collect(),
            });
        }
    }
    let mut note = "dualq measure".to_owned();
    let has_icmp = loaded.rtt(Method::Icmp).is_some();
    for ping in &loaded.pings {
        let title = match ping.method {
            Method::Icmp => "Ping (ms) ICMP",
            Method::Udp => "Ping (ms) UDP BE1",
            Method::Tcp if name == "rrul_be" => "Ping (ms) UDP BE2",
            _ => continue,
        };
        let Some(rtt) = &ping.rtt else { continue };
        series.push(round_trip_series(title, &rtt.samples, &x_values));
    }
    // flent's plots want that series; where ICMP is not to be had, TCP's are the nearest.
    let instead =
        [Method::Tcp, Method::Connect].into_iter().find_map(|by| Some((by, loaded.rtt(by)?)));
    if !has_icmp && let Some((by, rtt)) = instead {
        series.push(round_trip_series("Ping (ms) ICMP", &rtt.samples, &x_values));
        let by = by.name();
        let _ =
            write!(note, "; ICMP was not to be had: what bears its name are round trips by {by}");
    }
    let file = DataFile {
        name,
        title: format!("{}: {}", measured.host, loaded.direction.name()),
        note,
        host: measured.host.clone(),
        step_s,
        x_values,
        series,
        flows,
        ip_version: if measured.address.is_ipv6() { 6 } else { 4 },
        length_s: loaded.duration_s,
    };
    Ok(file.gzip())
}

/// Round trips as flent has them: the last of each interval, and all as raw values.
fn round_trip_series(title: &str, samples: &[(f64, f64)], x_values: &[f64]) -> Series {
    let last_before = |end: &f64| {
        let next = samples.partition_point(|(t_s, _)| t_s <= end);
        next.checked_sub(1).map(|at| samples[at].1)
    };
    Series {
        title: title.to_owned(),
        units: "ms",
        runner: "PingRunner",
        raw: samples.iter().map(|(t_s, ms)| json!({ "t": t_s, "val": ms })).collect(),
        values: x_values.iter().map(last_before).collect(),
    }
}
