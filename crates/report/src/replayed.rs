//! What `dualq replay` found as a page and as pictures: of the document that it writes.

use dualq_scenario::DelayDistribution;
use dualq_worlds::Origin;
use serde::{Deserialize, Serialize};

use crate::html::still::Still;
use crate::svg::canvas::Canvas;
use crate::svg::distribution::Curves;
use crate::svg::lines::{MOST_ROWS, THINNING};
use crate::svg::plot::{Line, Look, Plot, legend};
use crate::svg::{Caption, Picture};
use crate::words::{one_line, thousands};

/// The document of `dualq replay --json`, as far as a page needs it.
#[derive(Debug, Deserialize)]
pub struct Document {
    version: u32,
    command: String,
    #[serde(default)]
    origin: Option<Origin>,
    trace: Trace,
    link: Link,
    seed: u64,
    runs: Vec<Run>,
}

#[derive(Debug, Deserialize)]
struct Trace {
    name: String,
    packets: u64,
    bytes: u64,
    first_ns: u64,
    last_ns: u64,
}

#[derive(Debug, Deserialize)]
struct Link {
    rate_bps: u64,
}

#[derive(Debug, Deserialize)]
struct Run {
    qdisc: String,
    delivered_bps: u64,
    queues: Vec<Queue>,
    total: Queue,
    #[serde(default)]
    series: Option<Series>,
}

#[derive(Debug, Deserialize)]
struct Queue {
    queue: String,
    packets_in: u64,
    packets_out: u64,
    marked: Marked,
    dropped: Dropped,
    delay_ns: Option<Delays>,
    #[serde(default)]
    distribution: Option<DelayDistribution>,
}

#[derive(Debug, Deserialize)]
struct Marked {
    coupled: u64,
    step: u64,
}

#[derive(Debug, Deserialize)]
struct Dropped {
    total: u64,
}

#[derive(Debug, Deserialize)]
struct Delays {
    min: u64,
    p50: u64,
    p95: u64,
    p99: u64,
    max: u64,
}

/// What happened on a link over time, in intervals of one length; lists have an entry for each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The interval, in seconds.
    pub interval_s: f64,
    /// What arrived before the queue, in Mbit/s.
    pub arrived_mbit: Vec<f64>,
    /// What left it, in Mbit/s.
    pub delivered_mbit: Vec<f64>,
    /// The shortest delay of the packets that left, in milliseconds; `null` if none did.
    pub delay_min_ms: Vec<Option<f64>>,
    /// The longest.
    pub delay_max_ms: Vec<Option<f64>>,
    /// How many of these packets the queue had marked.
    pub marks: Vec<u64>,
    /// How many it dropped.
    pub drops: Vec<u64>,
}

/// What a chart has of a series: lines, each with how it is dashed.
type Lists = fn(&Series) -> Vec<(usize, Vec<Option<f64>>)>;

fn numbers(list: &[f64]) -> Vec<Option<f64>> {
    list.iter().copied().map(Some).collect()
}

fn counts(list: &[u64]) -> Vec<Option<f64>> {
    list.iter().map(|count| Some(*count as f64)).collect()
}

/// Why a document is none of these.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// It is not JSON, or not of this form.
    #[error("{0}")]
    Form(#[from] serde_json::Error),
    /// It is of another program's version, or of another command.
    #[error("version {0} of the document of {1} is not known, 1 of replay is")]
    Version(u32, String),
    /// What it has cannot be drawn.
    #[error("runs[{0}]: {1}")]
    Uneven(usize, &'static str),
}

fn ms(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

impl Document {
    /// Reads it.
    ///
    /// # Errors
    /// If it is another document, or none.
    pub fn read(text: &str) -> Result<Self, DocumentError> {
        let document: Self = serde_json::from_str(text)?;
        if document.version != 1 || document.command != "replay" {
            return Err(DocumentError::Version(document.version, document.command));
        }
        for (number, run) in document.runs.iter().enumerate() {
            if run.series.as_ref().is_some_and(|series| !series.is_even()) {
                return Err(DocumentError::Uneven(
                    number,
                    "the lists of its series are not of one length, or its interval is none",
                ));
            }
            let mut distributions = run
                .queues
                .iter()
                .chain([&run.total])
                .filter_map(|queue| queue.distribution.as_ref());
            // Of a queue without packets it is empty.
            if distributions
                .any(|one| !(one.is_sound() || one.ms.is_empty() && one.share.is_empty()))
            {
                return Err(DocumentError::Uneven(number, "its distributions are none"));
            }
        }
        Ok(document)
    }

    fn caption(&self) -> Caption {
        let Trace { name, packets, .. } = &self.trace;
        let name = one_line(name);
        let short = name.rsplit('/').next().unwrap_or(&name).to_owned();
        let rate = self.link.rate_bps as f64 / 1e6;
        let what = format!(
            "{name}, {} packets · link of {rate} Mbit/s · seed {}",
            thousands(*packets),
            self.seed
        );
        let mut source = vec![what];
        let origin = self.origin.iter();
        source.extend(origin.flat_map(|origin| [origin.program.clone(), origin.command.clone()]));
        source.retain(|line| !line.is_empty());
        Caption { name: short, source }
    }

    /// Those of which there are lines: of more the page has figures.
    fn drawn(&self) -> &[Run] {
        &self.runs[..self.runs.len().min(MOST_ROWS)]
    }

    fn left_out(&self) -> Option<String> {
        let all = self.runs.len();
        (all > MOST_ROWS).then(|| format!("The first {MOST_ROWS} of {all} queue disciplines."))
    }

    fn entries(&self) -> Vec<(Look, String)> {
        let entry = |(colour, run): (usize, &Run)| (Look { colour, dash: 0 }, one_line(&run.qdisc));
        self.drawn().iter().enumerate().map(entry).collect()
    }

    /// All pictures that the document has something for.
    #[must_use]
    pub fn pictures(&self) -> Vec<Picture> {
        let caption = self.caption();
        let mut pictures: Vec<Picture> = self.over_time(&caption).into_iter().collect();
        let mut curves = Vec::new();
        for (colour, run) in self.drawn().iter().enumerate() {
            let queues = run.queues.iter().filter(|queue| queue.packets_out > 0);
            for (dash, queue) in queues.enumerate() {
                let distribution = queue.distribution.clone().filter(|one| !one.ms.is_empty());
                curves.extend(distribution.map(|one| (one, 0.0, Look { colour, dash })));
            }
        }
        let names: Vec<String> = self
            .drawn()
            .iter()
            .filter(|run| run.queues.len() > 1)
            .map(|run| {
                let queues: Vec<&str> = run
                    .queues
                    .iter()
                    .filter(|queue| queue.packets_out > 0)
                    .map(|queue| queue.queue.as_str())
                    .collect();
                format!("{}: {}", one_line(&run.qdisc), queues.join(", "))
            })
            .collect();
        let mut said = match names.is_empty() {
            true => Vec::new(),
            false => vec![format!(
                "Queues of one discipline, solid first, then dashed: {}.",
                names.join("; ")
            )],
        };
        said.extend(self.left_out());
        let curves = Curves {
            title: "Queue delay",
            names: ["queue-cdf", "queue-ccdf"],
            curves,
            legend: self.entries(),
            said,
        };
        pictures.extend(curves.pictures(&caption));
        pictures
    }

    fn over_time(&self, caption: &Caption) -> Option<Picture> {
        let all: Vec<(usize, &Series)> = self
            .drawn()
            .iter()
            .enumerate()
            .filter_map(|(at, run)| Some((at, run.series.as_ref()?)))
            .collect();
        let end = all
            .iter()
            .map(|(_, series)| series.interval_s * series.marks.len() as f64)
            .fold(0.0, f64::max);
        if end <= 0.0 {
            return None;
        }
        let charts: [(&str, &str, Lists); 4] = [
            ("Rates", "Mbit/s; solid: delivered, dashed: arrived", |series| {
                vec![(0, numbers(&series.delivered_mbit)), (1, numbers(&series.arrived_mbit))]
            }),
            ("Queue delay", "ms; the shortest and the longest of each interval", |series| {
                vec![(0, series.delay_max_ms.clone()), (0, series.delay_min_ms.clone())]
            }),
            ("Marks", "in each interval", |series| vec![(0, counts(&series.marks))]),
            ("Drops", "packets in each interval", |series| vec![(0, counts(&series.drops))]),
        ];
        let title = "over time";
        let mut canvas = Canvas::default();
        let top = caption.head(&mut canvas, title);
        let mut y = legend(&mut canvas, top, &self.entries()) + 6.0;
        let mut drawn = Vec::new();
        for (title, unit, lists) in charts {
            let mut lines = Vec::new();
            for (colour, series) in &all {
                // What all have in common is drawn once.
                let once =
                    |(dash, _): &(usize, Vec<Option<f64>>)| *dash == 0 || *colour == all[0].0;
                for (dash, values) in lists(series).into_iter().filter(once) {
                    let times = (0..values.len()).map(|at| (at as f64 + 0.5) * series.interval_s);
                    let times = THINNING.times(&times.collect::<Vec<_>>());
                    let values = THINNING.line(values.into_iter());
                    let colour = if dash > 0 { 4 } else { *colour };
                    lines.push(Line {
                        points: times.into_iter().zip(values).collect(),
                        look: Look { colour, dash },
                    });
                }
            }
            let values = lines.iter().flat_map(|line| &line.points).filter_map(|(_, value)| *value);
            let most = values.fold(0.0, f64::max);
            // Where nothing ever happens there is no chart.
            if most > 0.0 {
                drawn.push((title, unit, lines, most));
            }
        }
        let count = drawn.len();
        for (number, (title, unit, lines, most)) in drawn.into_iter().enumerate() {
            let plot = Plot {
                title,
                unit,
                lines,
                x: (0.0, end, false),
                y: (0.0, most * 1.06, false),
                x_label: (number + 1 == count).then_some("time since the first packet (s)"),
                ..Plot::default()
            };
            y = plot.draw(&mut canvas, y, 110.0) + 8.0;
        }
        Some(caption.finish(
            canvas,
            "time",
            title,
            y + 8.0,
            &self.thinned().into_iter().chain(self.left_out()).collect::<Vec<_>>(),
        ))
    }

    /// How many packets share an interval.
    fn thinned(&self) -> Option<String> {
        let series = self.runs.iter().find_map(|run| run.series.as_ref())?;
        let interval = series.interval_s * 1e3;
        Some(format!(
            "{} packets in {} intervals of {interval:.0} ms: of the delays in each the least and the greatest are kept.",
            thousands(self.trace.packets),
            thousands(series.marks.len() as u64)
        ))
    }

    /// The page.
    #[must_use]
    pub fn page(&self, program: &str) -> String {
        let Trace { name, packets, bytes, first_ns, last_ns } = &self.trace;
        let mut page = Still::new(&format!("{name}, replayed"));
        let seconds = last_ns.saturating_sub(*first_ns) as f64 / 1e9;
        page.headline(&format!(
            "{} packets, {} bytes in {seconds:.3} s over a link of {} Mbit/s.",
            thousands(*packets),
            thousands(*bytes),
            self.link.rate_bps as f64 / 1e6
        ));
        for run in &self.runs {
            let delivered = run.delivered_bps as f64 / 1e6;
            let total = &run.total;
            let dropped = 100.0 * total.dropped.total as f64 / total.packets_in.max(1) as f64;
            page.headline(&match &total.delay_ns {
                None => format!("{}: no packet left.", run.qdisc),
                Some(delays) => format!(
                    "{}: delivered {delivered:.2} Mbit/s; half of the packets waited {:.3} ms at most, one in a hundred more than {:.3} ms; {dropped:.2} % were dropped.",
                    run.qdisc,
                    ms(delays.p50),
                    ms(delays.p99)
                ),
            });
        }
        page.paragraph("A recording sends on as it did, whatever is marked or dropped; live senders would slow down.");
        page.begin();
        page.section("Queues");
        let mut rows = Vec::new();
        for run in &self.runs {
            let several = (run.queues.len() > 1).then_some(&run.total);
            for queue in run.queues.iter().chain(several) {
                let counts = [
                    queue.packets_in,
                    queue.packets_out,
                    queue.marked.coupled,
                    queue.marked.step,
                    queue.dropped.total,
                ];
                let mut row = vec![run.qdisc.clone(), queue.queue.clone()];
                row.extend(counts.map(thousands));
                match &queue.delay_ns {
                    Some(Delays { min, p50, p95, p99, max }) => {
                        row.extend(
                            [min, p50, p95, p99, max].map(|nanos| format!("{:.3}", ms(*nanos))),
                        );
                    }
                    None => row.extend(std::iter::repeat_n("–".to_owned(), 5)),
                }
                rows.push((false, row));
            }
        }
        let heads = [
            "qdisc",
            "queue",
            "packets in",
            "out",
            "marked coupled",
            "by step",
            "dropped",
            "delay min (ms)",
            "p50",
            "p95",
            "p99",
            "max",
        ];
        page.table("Queues", &heads, 2, &rows);
        let pictures = self.pictures();
        if pictures.is_empty() {
            page.paragraph("The document holds neither series nor distributions: dualq replay --report keeps them, and dualq replay --json --distributions.");
        } else {
            page.section("Over time, and how delays are distributed");
            page.paragraph(&self.thinned().unwrap_or_default());
        }
        for picture in pictures {
            page.picture(
                &picture,
                match picture.name.as_ref() {
                    "time" => "Rates, queue delay, marks and drops over time",
                    "queue-cdf" => "Queue delay, CDF",
                    _ => "Queue delay, CCDF",
                },
            );
        }
        if let Some(origin) = &self.origin {
            page.section("Make it again");
            page.paragraph(&origin.program);
            page.code(&origin.command);
        }
        page.page(program)
    }
}

impl Series {
    fn is_even(&self) -> bool {
        let lengths = [
            self.arrived_mbit.len(),
            self.delivered_mbit.len(),
            self.delay_min_ms.len(),
            self.delay_max_ms.len(),
            self.drops.len(),
        ];
        // No recording is a billion years long.
        let seconds = self.interval_s * self.marks.len() as f64;
        self.interval_s > 0.0
            && seconds < 3e16
            && lengths.into_iter().all(|length| length == self.marks.len())
    }
}
