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
use serde_json::{Map, Value, json};

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

/// What such a file has, whoever measured it.
pub(crate) struct DataFile {
    /// The test, by flent's own name.
    pub(crate) name: &'static str,
    pub(crate) title: String,
    pub(crate) note: String,
    pub(crate) host: String,
    /// The interval of `x_values`, in seconds.
    pub(crate) step_s: f64,
    /// Times, in seconds.
    pub(crate) x_values: Vec<f64>,
    pub(crate) series: Vec<Series>,
    /// Flows down and up.
    pub(crate) flows: [usize; 2],
    pub(crate) ip_version: u8,
    pub(crate) length_s: f64,
}

/// A line of its plots.
pub(crate) struct Series {
    pub(crate) title: String,
    pub(crate) units: &'static str,
    /// What flent would have measured it with.
    pub(crate) runner: &'static str,
    /// One for each of the times.
    pub(crate) values: Vec<Option<f64>>,
    /// Single samples, if these are known.
    pub(crate) raw: Vec<Value>,
}

/// What flent calls the series of a flow; `way` is `download` or `upload`, and flows of each are numbered from 1.
pub(crate) fn flow_title(test: &str, way: &str, flow: usize) -> String {
    match (test, flow) {
        ("rrul_be", 1) => format!("TCP {way} BE"),
        ("rrul_be", flow) => format!("TCP {way} BE{flow}"),
        (_, flow) => format!("TCP {way}::{flow}"),
    }
}

impl DataFile {
    pub(crate) fn gzip(self) -> Vec<u8> {
        let (mut results, mut meta, mut raw) = (Map::new(), Map::new(), Map::new());
        for Series { title, units, runner, values, raw: samples } in self.series {
            let there: Vec<f64> = values.iter().copied().flatten().collect();
            let mean = (!there.is_empty()).then(|| there.iter().sum::<f64>() / there.len() as f64);
            meta.insert(
                title.clone(),
                json!({ "RUNNER": runner, "UNITS": units, "MEAN_VALUE": mean }),
            );
            if !samples.is_empty() {
                raw.insert(title.clone(), samples.into());
            }
            results.insert(title, json!(values));
        }
        let [down, up] = self.flows;
        let document = json!({
            "version": 4,
            "x_values": self.x_values,
            "results": results,
            "raw_values": raw,
            "metadata": {
                "NAME": self.name,
                "TITLE": self.title,
                "NOTE": self.note,
                "HOST": self.host,
                "HOSTS": [self.host],
                "LOCAL_HOST": "dualq",
                "TIME": BEGINNING,
                "T0": BEGINNING,
                "LENGTH": self.length_s,
                "TOTAL_LENGTH": self.length_s,
                "STEP_SIZE": self.step_s,
                "TEST_PARAMETERS": { "download_streams": down.to_string(), "upload_streams": up.to_string() },
                "IP_VERSION": self.ip_version,
                "FLENT_VERSION": "2.3.0",
                "SERIES_META": meta,
            },
        });
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(document.to_string().as_bytes()).expect("memory takes all");
        gzip.finish().expect("memory takes all")
    }
}

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
    let mut lines = Vec::new();
    let mut flows = [0; 2];
    for (group, lists) in scenario.flow.iter().zip(&series.each_goodput_mbit) {
        for list in lists {
            let flow = &mut flows[usize::from(up(group.direction))];
            *flow += 1;
            let way = if up(group.direction) { "upload" } else { "download" };
            let sample = |(t_s, value): (&f64, &f64)| json!({ "t": t_s, "val": value, "dur": series.interval_s });
            lines.push(Series {
                title: flow_title(name, way, *flow),
                units: "Mbits/s",
                runner: "NetperfDemoRunner",
                values: list.iter().copied().map(Some).collect(),
                raw: series.t_s.iter().zip(list).map(sample).collect(),
            });
        }
    }
    for (number, list) in series.rtt_ms.iter().enumerate() {
        let title = match (name, number) {
            (_, 0) => "Ping (ms) ICMP".to_owned(),
            ("rrul_be", probe) => format!("Ping (ms) UDP BE{probe}"),
            (_, probe) => format!("Ping (ms) {}", probe + 1),
        };
        let values = list.clone();
        lines.push(Series { title, units: "ms", runner: "PingRunner", values, raw: Vec::new() });
    }
    lines.push(Series {
        title: "Queue delay (ms)".to_owned(),
        units: "ms",
        runner: "StatsRunner",
        values: series.queue_delay_ms.clone(),
        raw: Vec::new(),
    });
    let qdisc = scenario.link.qdisc.to_string();
    let file = DataFile {
        name,
        title: format!("{}: {qdisc}", scenario.name),
        note: format!("dualq, seed {}, world {}", run.seed, run.world),
        host: run.world.to_string(),
        step_s: series.interval_s,
        x_values: series.t_s.clone(),
        series: lines,
        flows,
        ip_version: 4,
        length_s: scenario.duration.as_secs_f64(),
    };
    Ok(file.gzip())
}
