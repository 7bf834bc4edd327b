//! Links whose rate changes all the time: mahimahi's trace files (Netravali et al., USENIX ATC 2015). Each line is a time in whole
//! milliseconds at which one packet of full size may leave; the last one says where the file begins again.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use dualq_units::{Rate, bounded};

use crate::scenario::RateStep;

/// How long a rate lasts at least. All worlds change a shaper's rate; none has single opportunities.
const STEP_MS: u64 = 10;
/// What may leave at an opportunity, Ethernet header included.
const OPPORTUNITY: u64 = 1514;
/// More would hardly be meant, and take long to read.
const MOST_LINES: usize = 10_000_000;
/// No trace makes more steps than this.
pub(crate) const MOST_STEPS: usize = 1_000_000;

/// No file with a trace is longer: ten million lines.
const MOST_BYTES: u64 = 100 << 20;

/// What is in a file that a scenario names.
pub type Files<'a> = dyn Fn(&str) -> io::Result<String> + 'a;

/// The files of which somebody has the text, by their names, and those of a folder.
pub fn files<'a>(
    texts: &'a BTreeMap<String, String>,
    folder: &'a Path,
) -> impl Fn(&str) -> io::Result<String> + 'a {
    let in_folder = in_folder(folder);
    move |name| texts.get(name).map_or_else(|| in_folder(name), |text| Ok(text.clone()))
}

/// The files of a folder.
pub(crate) fn in_folder(folder: &Path) -> impl Fn(&str) -> io::Result<String> {
    move |name| {
        let path = folder.join(name);
        // Opening a pipe waits until somebody writes into it.
        if !fs::metadata(&path)?.is_file() {
            return Err(io::Error::other("it is no file"));
        }
        bounded::text(&path, MOST_BYTES)
    }
}

/// The rates that a trace offers, one after the other.
///
/// ```
/// use std::time::Duration;
///
/// use dualq_scenario::Trace;
///
/// // One packet of full size each millisecond, and in the second ten milliseconds two.
/// let text: String = (1..=10).chain((11..=20).flat_map(|ms| [ms, ms])).map(|ms| format!("{ms}\n")).collect();
/// let (first, steps) = Trace::read(&text)?.steps(Duration::from_millis(20), true).expect("few steps");
/// assert_eq!(first.as_bits_per_second(), 9 * 1514 * 800);
/// assert_eq!((steps.len(), steps[0].at), (1, Duration::from_millis(10)));
/// # Ok::<(), dualq_scenario::TraceError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// For how long each lasts.
    rates: Vec<(Duration, Rate)>,
}

/// What is wrong with a trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {wrong}")]
pub struct TraceError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub wrong: TraceFault,
}

/// What may be wrong with a line of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceFault {
    /// It is no number.
    #[error("a line of a trace is a time in whole milliseconds")]
    NoTime,
    /// Its time is before that of the line before.
    #[error("the times of a trace do not fall")]
    Falling,
    /// There are too many.
    #[error("a trace has at most ten million lines")]
    TooMany,
    /// There is none.
    #[error("a trace has at least one line")]
    Empty,
    /// The last time is zero.
    #[error("a trace lasts at least a millisecond")]
    NoLength,
}

impl Trace {
    /// Reads the text of a trace.
    ///
    /// # Errors
    /// If a line is no time, times fall, or there is nothing in it.
    pub fn read(text: &str) -> Result<Self, TraceError> {
        let mut times: Vec<u64> = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let fault = |wrong| Err(TraceError { line: number, wrong });
            let Ok(time) = line.parse::<u32>() else { return fault(TraceFault::NoTime) };
            if times.last().is_some_and(|last| u64::from(time) < *last) {
                return fault(TraceFault::Falling);
            }
            if times.len() == MOST_LINES {
                return fault(TraceFault::TooMany);
            }
            times.push(time.into());
        }
        match times.last() {
            None => Err(TraceError { line: 1, wrong: TraceFault::Empty }),
            Some(0) => Err(TraceError { line: 1, wrong: TraceFault::NoLength }),
            Some(_) => Ok(Self { rates: rates(&times) }),
        }
    }

    /// The rate at the start, and all later ones up to `end`. The trace begins again after its end if it `repeats`; else its last rate
    /// stays. None if there are more than a million.
    #[must_use]
    pub fn steps(&self, end: Duration, repeats: bool) -> Option<(Rate, Vec<RateStep>)> {
        let mut steps: Vec<RateStep> = Vec::new();
        let mut at = Duration::ZERO;
        while at < end {
            for (length, rate) in &self.rates {
                if steps.last().is_none_or(|step| step.rate != *rate) && at < end {
                    steps.push(RateStep { at, rate: *rate });
                }
                at += *length;
            }
            if steps.len() > MOST_STEPS {
                return None;
            }
            if !repeats {
                break;
            }
        }
        let first = self.rates[0].1;
        Some((first, steps.into_iter().skip(1).collect()))
    }
}

/// Turns opportunities into rates, each of which lasts for at least one of them: a shaper counts in bytes that it has sent, so that no
/// rate can be none. A time without any has one of those behind it.
fn rates(times: &[u64]) -> Vec<(Duration, Rate)> {
    let end_ms = times.last().copied().unwrap_or_default();
    // How many milliseconds have how many opportunities.
    let mut steps: Vec<(u64, u64)> = Vec::new();
    let mut times = times.iter().peekable();
    // Milliseconds so far without an opportunity.
    let mut idle_ms = 0;
    let mut start_ms = 0;
    while start_ms < end_ms {
        // Steps without any go by at once: a line may be weeks behind the one before it.
        let next_ms = times.peek().map_or(end_ms, |time| **time).min(end_ms - 1);
        let with_some_ms = next_ms / STEP_MS * STEP_MS;
        idle_ms += with_some_ms - start_ms;
        start_ms = with_some_ms;
        let stop_ms = (start_ms + STEP_MS).min(end_ms);
        let mut count = 0;
        // What is due at the very end belongs to the last step.
        while times.next_if(|time| **time < stop_ms || stop_ms == end_ms).is_some() {
            count += 1;
        }
        if count > 0 && idle_ms > 0 {
            steps.push((idle_ms, 1));
            (idle_ms, count) = (0, count - 1);
        }
        if count == 0 {
            idle_ms += stop_ms - start_ms;
        } else {
            steps.push((stop_ms - start_ms, count));
        }
        start_ms = stop_ms;
    }
    // The last opportunity was needed before.
    if let Some((length_ms, _)) = steps.last_mut() {
        *length_ms += idle_ms;
    }
    let mut rates: Vec<(Duration, Rate)> = Vec::new();
    for (length_ms, count) in steps {
        let bits = count * OPPORTUNITY * 8 * 1000 / length_ms;
        let rate = Rate::from_bits_per_second(bits.max(1));
        let length = Duration::from_millis(length_ms);
        match rates.last_mut() {
            Some((before, same)) if *same == rate => *before += length,
            _ => rates.push((length, rate)),
        }
    }
    rates
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// How many bytes a trace offers in a round.
    fn offered(trace: &Trace) -> u64 {
        let bits = |(length, rate): &(Duration, Rate)| {
            length.as_secs_f64() * rate.as_bits_per_second() as f64
        };
        (trace.rates.iter().map(bits).sum::<f64>() / 8.0).round() as u64
    }

    #[test]
    fn one_packet_a_millisecond_is_twelve_megabits() {
        let text: String = (1..=100).map(|ms| format!("{ms}\n")).collect();
        let trace = Trace::read(&text).unwrap();
        let (rate, steps) = trace.steps(Duration::from_secs(1), true).unwrap();
        // The first ten milliseconds have nine opportunities, the last eleven.
        assert_eq!(rate.as_bits_per_second(), 9 * 1514 * 800);
        assert_eq!(steps[0].at, Duration::from_millis(10));
        assert_eq!(steps[0].rate.as_bits_per_second(), 12_112_000);
        assert_eq!(offered(&trace), 100 * 1514);
    }

    #[test]
    fn an_outage_is_one_opportunity_long() {
        let trace = Trace::read("# a train in a tunnel\n5\n500\n500\n500\n510\n").unwrap();
        let (_, steps) = trace.steps(Duration::from_secs(1), false).unwrap();
        assert_eq!(steps[0].at, Duration::from_millis(10));
        assert_eq!(steps[0].rate.as_bits_per_second(), 1514 * 8 * 1000 / 490);
        assert_eq!(steps[1].at, Duration::from_millis(500));
        assert_eq!(steps[1].rate.as_bits_per_second(), 3 * 1514 * 800);
        assert_eq!(steps.len(), 2);
    }

    #[test]
    fn a_line_may_be_weeks_behind_the_one_before() {
        let trace = Trace::read("5\n4000000000\n").unwrap();
        let lengths: Vec<u128> = trace.rates.iter().map(|(length, _)| length.as_millis()).collect();
        assert_eq!(lengths, [10, 3_999_999_990]);
    }

    #[test]
    fn it_begins_again() {
        let trace = Trace::read("5\n12\n13\n20\n").unwrap();
        let (_, steps) = trace.steps(Duration::from_millis(60), true).unwrap();
        let at: Vec<u128> = steps.iter().map(|step| step.at.as_millis()).collect();
        assert_eq!(at, [10, 20, 30, 40, 50]);
    }

    #[test]
    fn what_is_no_trace_is_refused_with_its_line() {
        for (text, line) in [("", 1), ("0\n", 1), ("1\nfoo\n", 2), ("5\n\n4\n", 3), ("-1", 1)] {
            assert_eq!(Trace::read(text).unwrap_err().line, line, "{text:?}");
        }
    }

    proptest! {
        /// Within the rounding of rates to whole bits.
        #[test]
        fn nothing_is_lost_or_won(gaps in prop::collection::vec(0..400_u64, 1..60)) {
            let times = gaps.iter().scan(1, |time, gap| { *time += gap; Some(*time) });
            let text: String = times.map(|ms| format!("{ms}\n")).collect();
            let offered = offered(&Trace::read(&text).unwrap());
            prop_assert!(offered.abs_diff(gaps.len() as u64 * OPPORTUNITY) <= 5, "{offered:?}");
        }
    }
}
