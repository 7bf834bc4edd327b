//! A data file of flent (<https://flent.org>), which its own plots read: gzip of one JSON object, version 4 of the form.
//!
//! What flent asks of a file was found by giving it files: it knows only the names of its own tests, wants series as long as their times,
//! computes sums and averages itself, and plots nothing of a file without raw values. So the flows have theirs, which are those of the
//! intervals; the probe has none, as its single samples are not kept in time, and incomplete ones would be taken for all.

use std::io::Write as _;

use dualq_scenario::Direction;
use dualq_worlds::Run;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Map, json};

/// Why there is no such file of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlentError {
    /// flent's tests are of flows.
    #[error("the scenario has no flows, and flent's tests are of flows")]
    NoFlows,
    /// A series for each flow was not kept.
    #[error(
        "flent has a series for each flow, and the run kept none: at most 128 flows, and dualq run --flent or --distributions"
    )]
    NoSingleFlows,
}

/// flent has times of day; a run of virtual time has none, and two runs are to give the same bytes.
const BEGINNING: &str = "1970-01-01T00:00:00.000000Z";

/// The file: `tcp_ndown` if all flows go down, through the queue under test, `tcp_nup` if all go up, `rrul_be` if some go either way.
///
/// # Errors
/// If the run has no flows, or no series of single ones.
///
/// # Panics
/// Never: memory takes all.
pub fn write(run: &Run) -> Result<Vec<u8>, FlentError> {
    let (scenario, series) = (&run.scenario, &run.outcome.series);
    let up = |direction: Direction| direction == Direction::Up;
    let ups = scenario.flow.iter().filter(|group| up(group.direction)).count();
    let name = match ups {
        _ if scenario.flow.is_empty() => return Err(FlentError::NoFlows),
        _ if series.each_goodput_mbit.is_empty() => return Err(FlentError::NoSingleFlows),
        0 => "tcp_ndown",
        ups if ups == scenario.flow.len() => "tcp_nup",
        _ => "rrul_be",
    };
    let mut results = Map::new();
    let mut meta = Map::new();
    let mut add = |title: String, units: &str, runner: &str, values: Vec<Option<f64>>| {
        let there: Vec<f64> = values.iter().copied().flatten().collect();
        let mean = (!there.is_empty()).then(|| there.iter().sum::<f64>() / there.len() as f64);
        meta.insert(title.clone(), json!({ "RUNNER": runner, "UNITS": units, "MEAN_VALUE": mean }));
        results.insert(title, json!(values));
    };
    let mut raw = Map::new();
    let mut flows = [0; 2];
    for (group, lists) in scenario.flow.iter().zip(&series.each_goodput_mbit) {
        for list in lists {
            let flow = &mut flows[usize::from(up(group.direction))];
            *flow += 1;
            let way = if up(group.direction) { "upload" } else { "download" };
            let title = match (name, *flow) {
                ("rrul_be", 1) => format!("TCP {way} BE"),
                ("rrul_be", flow) => format!("TCP {way} BE{flow}"),
                (_, flow) => format!("TCP {way}::{flow}"),
            };
            let values = list.iter().copied().map(Some).collect();
            let sample = |(t_s, value): (&f64, &f64)| json!({ "t": t_s, "val": value, "dur": series.interval_s });
            raw.insert(title.clone(), series.t_s.iter().zip(list).map(sample).collect());
            add(title, "Mbits/s", "NetperfDemoRunner", values);
        }
    }
    for (number, list) in series.rtt_ms.iter().enumerate() {
        let title = match (name, number) {
            (_, 0) => "Ping (ms) ICMP".to_owned(),
            ("rrul_be", probe) => format!("Ping (ms) UDP BE{probe}"),
            (_, probe) => format!("Ping (ms) {}", probe + 1),
        };
        add(title, "ms", "PingRunner", list.clone());
    }
    add("Queue delay (ms)".to_owned(), "ms", "StatsRunner", series.queue_delay_ms.clone());
    let qdisc = scenario.link.qdisc.to_string();
    let seconds = scenario.duration.as_secs_f64();
    let document = json!({
        "version": 4,
        "x_values": series.t_s,
        "results": results,
        "raw_values": raw,
        "metadata": {
            "NAME": name,
            "TITLE": format!("{}: {qdisc}", scenario.name),
            "NOTE": format!("dualq, seed {}, world {}", run.seed, run.world),
            "HOST": run.world,
            "HOSTS": [run.world],
            "LOCAL_HOST": "dualq",
            "TIME": BEGINNING,
            "T0": BEGINNING,
            "LENGTH": seconds,
            "TOTAL_LENGTH": seconds,
            "STEP_SIZE": series.interval_s,
            "TEST_PARAMETERS": { "download_streams": flows[0].to_string(), "upload_streams": flows[1].to_string() },
            "IP_VERSION": 4,
            "FLENT_VERSION": "2.3.0",
            "SERIES_META": meta,
        },
    });
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(document.to_string().as_bytes()).expect("memory takes all");
    Ok(gzip.finish().expect("memory takes all"))
}
