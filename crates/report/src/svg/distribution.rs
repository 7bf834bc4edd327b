//! Pictures of how delays are distributed: CDF and CCDF.

use dualq_scenario::DelayDistribution;
use dualq_worlds::Run;

use super::canvas::Canvas;
use super::lines::{MOST_ROWS, entries};
use super::plot::{Line, Look, Plot, legend};
use super::rows::{Shown, some};
use super::{Caption, Picture};
use crate::figures::base_ms;

/// Shorter is as short on a logarithmic axis.
const SHORTEST_MS: f64 = 0.01;

/// What curves are of.
pub(crate) struct Curves {
    /// What is measured.
    pub(crate) title: &'static str,
    /// The ends of the names of files: of the CDF, of the CCDF.
    pub(crate) names: [&'static str; 2],
    /// The distributions, the base that is taken off, and how each line looks.
    pub(crate) curves: Vec<(DelayDistribution, f64, Look)>,
    pub(crate) legend: Vec<(Look, String)>,
    pub(crate) said: Vec<String>,
}

/// CDF and CCDF of the probe's delay and of the queue's.
pub(super) fn distributions(all: &[Shown<'_>], caption: &Caption) -> Vec<Picture> {
    let (rows, left_out) = some(all, MOST_ROWS);
    let several = rows.iter().any(|row| row.runs.len() > 1);
    let mut also: Vec<String> =
        several.then(|| "All seeds together.".to_owned()).into_iter().collect();
    also.extend(left_out);
    let probe = rows.iter().enumerate().filter_map(|(colour, row)| {
        Some((of_probe(row.runs)?, base_ms(&row.runs[0].scenario), Look { colour, dash: 0 }))
    });
    let probe = Curves {
        title: "Probe's delay above the base round-trip time",
        names: ["probe-cdf", "probe-ccdf"],
        curves: probe.collect(),
        legend: entries(&rows),
        said: also.clone(),
    };
    let ect = |runs: &[Run]| {
        DelayDistribution::pooled(
            runs.iter().filter_map(|run| run.outcome.queue.distribution_ect.as_ref()),
        )
    };
    let not_ect = |runs: &[Run]| {
        DelayDistribution::pooled(
            runs.iter().filter_map(|run| run.outcome.queue.distribution_not_ect.as_ref()),
        )
    };
    let has_ect = rows.iter().any(|row| ect(row.runs).is_some());
    let has_not_ect = rows.iter().any(|row| not_ect(row.runs).is_some());
    let mut curves = Vec::new();
    for (colour, row) in rows.iter().enumerate() {
        let looks = [(ect(row.runs), 0), (not_ect(row.runs), usize::from(has_ect))];
        for (distribution, dash) in looks {
            curves.extend(distribution.map(|all| (all, 0.0, Look { colour, dash })));
        }
    }
    let kinds = match (has_ect, has_not_ect) {
        (true, true) => {
            "Solid: ECT packets, in dualpi2 any_ect the L queue; dashed: Not-ECT packets, there the C queue."
        }
        (true, false) => "All packets were ECN-capable.",
        (false, _) => "No packet was ECN-capable.",
    };
    let mut said = vec![kinds.to_owned()];
    said.extend(also);
    let queue = Curves {
        title: "Queue delay",
        names: ["queue-cdf", "queue-ccdf"],
        curves,
        legend: entries(&rows),
        said,
    };
    [probe.pictures(caption), queue.pictures(caption)].concat()
}

fn of_probe(runs: &[Run]) -> Option<DelayDistribution> {
    DelayDistribution::pooled(
        runs.iter().filter_map(|run| run.outcome.probe.first()?.distribution.as_ref()),
    )
}

impl Curves {
    /// The CDF and the CCDF; none without a curve.
    pub(crate) fn pictures(&self, caption: &Caption) -> Vec<Picture> {
        [false, true].into_iter().filter_map(|tail| self.picture(caption, tail)).collect()
    }

    fn picture(&self, caption: &Caption, tail: bool) -> Option<Picture> {
        let line = |(distribution, base, look): &(DelayDistribution, f64, Look)| Line {
            points: steps(distribution, *base, tail),
            look: *look,
        };
        let lines: Vec<Line> = self.curves.iter().map(line).collect();
        let points = || lines.iter().flat_map(|line| &line.points);
        let longest = points().map(|(ms, _)| *ms).reduce(f64::max)?;
        let shortest = points().map(|(ms, _)| *ms).fold(longest, f64::min);
        let shares = points().filter_map(|(_, share)| *share).filter(|share| *share > 0.0);
        let rarest = shares.fold(0.1, f64::min);
        let (curve, unit) = match tail {
            true => ("CCDF", "share that waited longer"),
            false => ("CDF", "share that waited no longer"),
        };
        let title = format!("{}, {curve}", self.title);
        let mut canvas = Canvas::default();
        let top = caption.head(&mut canvas, &title);
        let y = legend(&mut canvas, top, &self.legend) + 6.0;
        let plot = Plot {
            title: curve,
            unit,
            lines,
            x: (shortest, longest.max(shortest * 2.0), true),
            y: if tail { (rarest, 1.0, true) } else { (0.0, 1.0, false) },
            stepped: true,
            x_label: Some("delay (ms)"),
            ..Plot::default()
        };
        let y = plot.draw(&mut canvas, y, 220.0) + 8.0;
        let mut said = self.said.clone();
        if shortest <= SHORTEST_MS {
            said.push(format!("What is below {SHORTEST_MS} ms stands there."));
        }
        Some(caption.finish(canvas, self.names[usize::from(tail)], &title, y, &said))
    }
}

/// The steps of a distribution: delays above the base, and the share that was no longer, or that was longer.
pub(super) fn steps(
    distribution: &DelayDistribution,
    base: f64,
    tail: bool,
) -> Vec<(f64, Option<f64>)> {
    let mut points: Vec<(f64, Option<f64>)> = Vec::new();
    for (ms, share) in distribution.ms.iter().zip(&distribution.share) {
        let x = (ms - base).max(SHORTEST_MS);
        // The last of the tail is nothing, which no logarithm has.
        let value = match tail {
            true => Some(1.0 - share).filter(|share| *share > 1e-9),
            false => Some(*share),
        };
        match points.last_mut() {
            Some(last) if last.0 >= x => last.1 = value,
            _ => points.push((x, value)),
        }
    }
    points
}
