//! From what was written down in a stage to its figures.

use super::board::{Board, Seen, locked};
use super::far::FarEnd;
use crate::figures::{
    Application, Conditions, INTERVAL_S, Rpm, Steady, WorkingConditions, bytes_at, goodput,
};
use crate::flow::INTERVAL;
use crate::measurement::{
    Direction, Distribution, Load, Loaded, MarksBy, Method, Point, RampUp, Sample,
};
use crate::protocol::{FlowReport, FlowSample};

/// Payload of a full segment where nobody said otherwise: Ethernet's 1500 bytes without the headers of IPv4 and of TCP with timestamps.
pub(super) const MSS: u32 = 1448;
/// Headers of Ethernet, of IP in either version, and of TCP with timestamps, in bytes.
const ETHERNET: u32 = 14;
const IPV4: u32 = 20;
const IPV6: u32 = 40;
const TCP: u32 = 32;

/// What of a series of goodput is steady, of what comes after that time; its beginning counts from the series' own.
pub(super) fn steady(series: &[f64], from_s: f64) -> Option<Steady> {
    let left_out = (from_s / INTERVAL.as_secs_f64()).round() as usize;
    let steady = Steady::of(series.get(left_out..)?)?;
    Some(Steady { begins: steady.begins + left_out, ..steady })
}

/// When the steady state begins, in seconds: when that of each direction has begun.
pub(super) fn begins_s<'a>(ways: impl Iterator<Item = &'a Option<Steady>>) -> f64 {
    let begins = ways.flatten().map(|steady| steady.begins).max().unwrap_or(0);
    begins as f64 * INTERVAL.as_secs_f64()
}

/// The directions that flows load, as whether these go up.
pub(super) const fn ways(direction: Direction) -> &'static [bool] {
    match direction {
        Direction::Download => &[false],
        Direction::Upload => &[true],
        Direction::Both => &[false, true],
    }
}

/// What flows that grow in number have come to so far, and the responsiveness that is the result.
pub(super) fn working(board: &Board, direction: Direction) -> (WorkingConditions, Option<Rpm>) {
    let goodput_mbit: Vec<Vec<f64>> =
        ways(direction).iter().map(|is_up| goodput(&board.curves(*is_up), INTERVAL_S)).collect();
    let intervals = goodput_mbit.iter().map(Vec::len).min().unwrap_or(0);
    let rpms: Vec<Option<Rpm>> = (0..intervals)
        .map(|interval| {
            let (after_s, until_s) = WorkingConditions::rpm_window_s(interval);
            rpm(board, after_s, until_s)
        })
        .collect();
    let values: Vec<Option<f64>> = rpms.iter().map(|rpm| Some(rpm.as_ref()?.rpm)).collect();
    let conditions = WorkingConditions::of(board.begun(), &goodput_mbit, &values);
    let result = conditions.result(intervals).and_then(|interval| rpms[interval]);
    (conditions, result)
}

/// Responsiveness by the probes that were answered in that time.
fn rpm(board: &Board, after_s: f64, until_s: f64) -> Option<Rpm> {
    let times = |method: Method| -> Vec<f64> {
        let samples = board.samples(method, after_s).into_iter();
        samples.filter(|sample| sample.t_s <= until_s).map(|sample| sample.ms).collect()
    };
    Rpm::of(&times(Method::Connect), &times(Method::Request), &times(Method::Loaded))
}

/// What a stage under load has come to.
pub(super) fn loaded(
    board: &Board,
    direction: Direction,
    (grows, stands): (bool, bool),
    reports: &[FlowReport],
    far: &dyn FarEnd,
) -> Loaded {
    let interval_s = INTERVAL.as_secs_f64();
    let series = [false, true].map(|is_up| goodput(&board.curves(is_up), interval_s));
    let (lasted_s, working) =
        (board.lasted().as_secs_f64(), grows.then(|| working(board, direction)));
    let (working_conditions, result) = working.unzip();
    let from_s = working_conditions.map_or(0.0, |working| working.since_s(lasted_s));
    let steady = series.each_ref().map(|series| steady(series, from_s));
    let steady_s = begins_s(steady.iter());
    let [down, up] = [false, true].map(|is_up| {
        let (is_v6, sender_tells) = (far.address().is_ipv6(), far.is_framed());
        let way = Way { board, reports, is_up, steady_s, is_v6, sender_tells };
        way.load(&series[usize::from(is_up)])
    });
    let pings = board.pings(steady_s);
    let times = |method: Method| -> Vec<f64> {
        board.samples(method, steady_s).iter().map(|sample| sample.ms).collect()
    };
    let rpm = result.flatten().or_else(|| rpm(board, steady_s, f64::INFINITY));
    let loss = *locked(&board.loss);
    let slowest = [&down, &up].into_iter().flatten().map(|load: &Load| load.goodput_mbit);
    let of_path = Method::OF_PATH.map(times);
    let mut rtts = of_path.into_iter().find(|rtts| !rtts.is_empty()).unwrap_or_default();
    rtts.sort_unstable_by(f64::total_cmp);
    let conditions = Conditions {
        sorted_rtts_ms: &rtts,
        loss: loss.map_or(0.0, |loss| loss.ratio()),
        goodput_mbit: slowest.min_by(f64::total_cmp).unwrap_or(0.0),
    };
    Loaded {
        direction,
        duration_s: thousandths(lasted_s),
        stands,
        steady_s: thousandths(steady_s),
        qoo: Application::scores(&conditions),
        down,
        up,
        pings,
        loss,
        rpm,
        working_conditions,
        local: None,
    }
}

fn thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// The flows of a direction.
struct Way<'a> {
    board: &'a Board,
    reports: &'a [FlowReport],
    is_up: bool,
    steady_s: f64,
    is_v6: bool,
    /// Whether the server's samples are its senders', and not this end's.
    sender_tells: bool,
}

impl Way<'_> {
    fn load(&self, series: &[f64]) -> Option<Load> {
        let seen: Vec<(u32, Seen)> = self.board.seen(self.is_up).collect();
        if seen.is_empty() {
            return None;
        }
        let interval_s = INTERVAL.as_secs_f64();
        let begins = (self.steady_s / interval_s).round() as usize;
        let (ramp, rest) = series.split_at(begins.min(series.len()));
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len().max(1) as f64;
        let goodput_mbit = mean(rest);
        // The part is steady as it is: nothing more is left out of it.
        let steady = Steady::of_all(rest);
        let mss = seen.iter().map(|(_, seen)| seen.mss).max().unwrap_or(MSS);
        let headers = ETHERNET + TCP + if self.is_v6 { IPV6 } else { IPV4 };
        let senders: Vec<Seen> =
            seen.iter().map(|(number, seen)| self.sender(*number, seen)).collect();
        let (mut ramp_retransmits, mut last) = (0, FlowSample::default());
        let (mut segments, mut retransmits) = (0, 0);
        for sender in &senders {
            let before = sender.at(self.steady_s);
            last = sender.samples.last().copied().unwrap_or(last);
            ramp_retransmits += u64::from(before.retransmits);
            segments += u64::from(last.segments.saturating_sub(before.segments));
            retransmits += u64::from(last.retransmits.saturating_sub(before.retransmits));
        }
        // A receiver that counts none may be one whose kernel does not count.
        let (ce, ce_by) = match [self.marks_received(&seen), self.marks_echoed(&senders)] {
            [0, 0] => (0, None),
            [0, told] => (told, Some(MarksBy::Senders)),
            [arrived, _] => (arrived, Some(MarksBy::Receivers)),
        };
        let cc = if self.is_up {
            seen.iter().find_map(|(_, seen)| seen.cc.clone())
        } else {
            seen.iter().find_map(|(number, _)| self.report(*number)?.cc.clone())
        };
        // All along, or only at the end.
        let is_told = self.is_up || self.sender_tells;
        let is_told_at_end =
            is_told || seen.iter().all(|(number, _)| self.report(*number).is_some());
        let srtts: Vec<Sample> =
            senders.iter().flat_map(|sender| sender.srtts(self.steady_s)).collect();
        let min_rtts =
            senders.iter().flat_map(|sender| &sender.samples).map(|sample| sample.min_rtt_us);
        let end_s = series.len() as f64 * interval_s;
        let of_flow = |(_, seen): &(u32, Seen)| -> Vec<f64> {
            let own = goodput(&[seen.curve()], interval_s);
            own.into_iter().take(series.len()).map(thousandths).collect()
        };
        Some(Load {
            goodput_mbit: thousandths(goodput_mbit),
            goodput_interval_mbit: steady.and_then(|steady| steady.interval).map(thousandths),
            variation_ratio: thousandths(
                steady.map_or(0.0, |s| s.deviation / s.mean.max(f64::MIN_POSITIVE)),
            ),
            line_mbit: thousandths(goodput_mbit * f64::from(mss + headers) / f64::from(mss)),
            flow_goodput_mbit: seen.iter().map(|(_, seen)| self.goodput_of(seen, end_s)).collect(),
            ramp_up: RampUp {
                duration_s: thousandths(self.steady_s),
                goodput_mbit: (!ramp.is_empty()).then(|| thousandths(mean(ramp))),
                retransmits: is_told.then_some(ramp_retransmits),
            },
            segments: is_told.then_some(segments),
            retransmits: is_told_at_end.then_some(retransmits),
            ce: (is_told || ce_by == Some(MarksBy::Receivers)).then_some(ce),
            ce_by,
            cc,
            mss_bytes: mss,
            flow_series_mbit: seen.iter().map(of_flow).collect(),
            srtt: Distribution::of(&srtts),
            min_rtt_ms: min_rtts.filter(|us| *us > 0).min().map(|us| f64::from(us) / 1e3),
            series: series
                .iter()
                .enumerate()
                .map(|(n, mbit)| Point {
                    t_s: thousandths((n + 1) as f64 * interval_s),
                    goodput_mbit: thousandths(*mbit),
                })
                .collect(),
        })
    }

    fn goodput_of(&self, seen: &Seen, end_s: f64) -> f64 {
        let curve = seen.curve();
        let bytes = bytes_at(&curve, end_s) - bytes_at(&curve, self.steady_s);
        thousandths(bytes * 8.0 / 1e6 / (end_s - self.steady_s).max(INTERVAL.as_secs_f64()))
    }

    /// Who sends knows round trips and retransmissions: this end of what goes up, the server of what comes down, if it tells.
    fn sender(&self, number: u32, seen: &Seen) -> Seen {
        match self.report(number) {
            Some(report) if !self.is_up => Seen { samples: report.samples.clone(), ..seen.clone() },
            _ => seen.clone(),
        }
    }

    /// What the other end of a flow saw, if it tells.
    fn receiver(&self, number: u32, seen: &Seen) -> Option<Seen> {
        if !self.is_up {
            return Some(seen.clone());
        }
        let report = self.report(number)?;
        Some(Seen { samples: report.samples.clone(), ..seen.clone() })
    }

    /// Segments marked since the steady state began, as receivers count them. Their clocks are those of another machine, which may have been late
    /// to begin: what a flow was like then is found by its bytes.
    fn marks_received(&self, seen: &[(u32, Seen)]) -> u64 {
        let of = |(number, own): &(u32, Seen)| {
            let receiver = self.receiver(*number, own)?;
            let before = own.at(self.steady_s).bytes;
            let next = receiver.samples.partition_point(|sample| sample.bytes <= before);
            let begun = next.checked_sub(1).map_or(0, |at| receiver.samples[at].ce);
            Some(u64::from(receiver.samples.last()?.ce.saturating_sub(begun)))
        };
        seen.iter().filter_map(of).sum()
    }

    /// The same, as senders are told.
    fn marks_echoed(&self, senders: &[Seen]) -> u64 {
        let of = |sender: &Seen| {
            let last = sender.samples.last().map_or(0, |last| last.ce);
            u64::from(last.saturating_sub(sender.at(self.steady_s).ce))
        };
        senders.iter().map(of).sum()
    }

    fn report(&self, number: u32) -> Option<&FlowReport> {
        self.reports.iter().find(|report| report.flow == number)
    }
}
