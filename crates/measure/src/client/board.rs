//! What the threads of a stage write down for each other.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::error::MeasureError;
use super::local::Look;
use super::summary::MSS;
use crate::measurement::{Distribution, Loss, Method, Ping, Sample};
use crate::protocol::FlowSample;

/// What carries nothing for so long after it connected hangs.
const PATIENCE: Duration = Duration::from_secs(1);

/// What a stage has come to so far.
#[derive(Debug)]
pub(super) struct Board {
    pub(super) began: Instant,
    /// How long the stage lasted, once it is over.
    lasted: OnceLock<Duration>,
    /// Probes are so many times as far apart as they would be, in thousandths.
    stretch: AtomicU64,
    failure: Mutex<Option<MeasureError>>,
    records: [Record; Method::ALL.len()],
    pub(super) loss: Mutex<Option<Loss>>,
    /// Looks at this host's own queue, while it sends.
    pub(super) local: Mutex<Vec<Look>>,
    /// All flows that there may be, in the order of their numbers.
    all_flows: Vec<Track>,
    /// How many there are at first in each direction, and by now.
    first: u32,
    begun: AtomicU32,
}

/// Round trips by a method.
#[derive(Debug, Default)]
struct Record {
    sent: AtomicU64,
    samples: Mutex<Vec<Sample>>,
    unable: Mutex<Option<String>>,
}

/// A flow, as this end sees it.
#[derive(Debug)]
pub(super) struct Track {
    pub(super) number: u32,
    pub(super) is_up: bool,
    /// Which of its direction it is, from 0.
    pub(super) place: u32,
    pub(super) seen: Mutex<Seen>,
}

/// What was seen of a flow.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// When it began, in seconds since the stage did.
    pub(super) began_s: f64,
    pub(super) samples: Vec<FlowSample>,
    /// Payload of a full segment, in bytes.
    pub(super) mss: u32,
    /// The congestion control of this end, if it sends.
    pub(super) cc: Option<String>,
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Board {
    /// A stage with so many of these flows in each direction at first.
    pub(super) fn new(all_flows: Vec<Track>, first: u32) -> Self {
        Self {
            began: Instant::now(),
            lasted: OnceLock::new(),
            stretch: AtomicU64::new(1000),
            failure: Mutex::default(),
            records: Default::default(),
            loss: Mutex::default(),
            local: Mutex::default(),
            all_flows,
            first,
            begun: first.into(),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.lasted.get().is_some()
    }

    pub(super) fn end(&self) {
        self.lasted.get_or_init(|| self.began.elapsed());
    }

    /// How long the stage lasted, until now if it is not over: what was on its way then came later.
    pub(super) fn lasted(&self) -> Duration {
        self.lasted.get().copied().unwrap_or_else(|| self.began.elapsed())
    }

    /// Something failed, which ends the stage. What only comes of its end is not to be told here.
    pub(super) fn fail(&self, error: MeasureError) {
        self.end();
        locked(&self.failure).get_or_insert(error);
    }

    pub(super) fn failure(&self) -> Option<MeasureError> {
        locked(&self.failure).take()
    }

    pub(super) fn set_stretch(&self, stretch: f64) {
        self.stretch.store((stretch * 1000.0) as u64, Ordering::Relaxed);
    }

    /// An interval between probes, which are fewer where they would be too much of the path's rate.
    pub(super) fn stretched(&self, interval: Duration) -> Duration {
        interval * self.stretch.load(Ordering::Relaxed) as u32 / 1000
    }

    const fn record(&self, method: Method) -> &Record {
        &self.records[method as usize]
    }

    pub(super) fn sent(&self, method: Method) {
        self.record(method).sent.fetch_add(1, Ordering::Relaxed);
    }

    /// A round trip has ended now.
    pub(super) fn answered(&self, method: Method, took: Duration) {
        let sample =
            Sample { t_s: self.began.elapsed().as_secs_f64(), ms: took.as_secs_f64() * 1e3 };
        locked(&self.record(method).samples).push(sample);
    }

    pub(super) fn unable(&self, method: Method, why: &str) {
        *locked(&self.record(method).unable) = Some(why.to_owned());
    }

    /// The round trips from a time on.
    pub(super) fn samples(&self, method: Method, from_s: f64) -> Vec<Sample> {
        let all = locked(&self.record(method).samples);
        all.iter().filter(|sample| sample.t_s >= from_s).copied().collect()
    }

    /// Round trips from a time on, by all methods of which there is something to say.
    pub(super) fn pings(&self, from_s: f64) -> Vec<Ping> {
        let ping = |method: Method| {
            let record = self.record(method);
            let (sent, unable) =
                (record.sent.load(Ordering::Relaxed), locked(&record.unable).clone());
            let rtt = Distribution::of(&self.samples(method, from_s));
            (sent > 0 || unable.is_some()).then_some(Ping { method, sent, rtt, unable })
        };
        Method::ALL.into_iter().filter_map(ping).collect()
    }

    /// How many flows each direction has by now.
    pub(super) fn begun(&self) -> u32 {
        self.begun.load(Ordering::Relaxed)
    }

    /// The flows that have begun.
    pub(super) fn flows(&self) -> impl Iterator<Item = &Track> {
        let begun = self.begun();
        self.all_flows.iter().filter(move |flow| flow.place < begun)
    }

    /// Each direction is to have so many flows; says which come with that.
    pub(super) fn grow(&self, flows: u32) -> impl Iterator<Item = &Track> {
        let before = self.begun.fetch_max(flows, Ordering::Relaxed);
        self.all_flows.iter().filter(move |flow| (before..flows).contains(&flow.place))
    }

    /// Whether a flow was not there at first.
    pub(super) const fn came_later(&self, flow: &Track) -> bool {
        flow.place >= self.first
    }

    /// What was seen of the flows of a direction, with their numbers; of those that came later, once there is something.
    pub(super) fn seen(&self, is_up: bool) -> impl Iterator<Item = (u32, Seen)> {
        let of_way = self.flows().filter(move |flow| flow.is_up == is_up);
        of_way.filter_map(|flow| {
            let seen = locked(&flow.seen);
            let is_there = !self.came_later(flow) || !seen.samples.is_empty();
            is_there.then(|| (flow.number, seen.clone()))
        })
    }

    /// Each flow's payload over time, of one direction.
    pub(super) fn curves(&self, is_up: bool) -> Vec<Vec<(f64, u64)>> {
        self.seen(is_up).map(|(_, seen)| seen.curve()).collect()
    }

    /// The smoothed round trips of all flows from a time on, in milliseconds.
    pub(super) fn srtts_ms(&self, from_s: f64) -> Vec<f64> {
        let mut all: Vec<Sample> = Vec::new();
        for flow in self.flows() {
            all.extend(locked(&flow.seen).srtts(from_s));
        }
        all.sort_unstable_by(|a, b| a.t_s.total_cmp(&b.t_s));
        all.iter().map(|sample| sample.ms).collect()
    }

    /// Payload of all flows so far, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.flows().map(|flow| locked(&flow.seen).bytes()).sum()
    }

    /// Whether flows of a direction hang: none has carried as much as a full segment, and each had the time.
    pub(super) fn hang(&self, is_up: bool) -> bool {
        let began_s = (self.lasted().saturating_sub(PATIENCE)).as_secs_f64();
        let mut of_way = self.flows().filter(|flow| flow.is_up == is_up);
        of_way.all(|flow| {
            let seen = locked(&flow.seen);
            let had_time = !seen.samples.is_empty() && seen.began_s <= began_s;
            had_time && seen.bytes() < MSS.into()
        })
    }
}

impl Seen {
    fn t_s(&self, sample: &FlowSample) -> f64 {
        self.began_s + sample.t_us as f64 / 1e6
    }

    /// Payload so far, in bytes.
    fn bytes(&self) -> u64 {
        self.samples.last().map_or(0, |sample| sample.bytes)
    }

    /// The last sample before a time.
    pub(super) fn at(&self, t_s: f64) -> FlowSample {
        let next = self.samples.partition_point(|sample| self.t_s(sample) < t_s);
        next.checked_sub(1).map(|before| self.samples[before]).unwrap_or_default()
    }

    /// Smoothed round trips from a time on.
    pub(super) fn srtts(&self, from_s: f64) -> impl Iterator<Item = Sample> {
        let measured = self.samples.iter().filter(|sample| sample.srtt_us > 0);
        let samples = measured
            .map(|sample| Sample { t_s: self.t_s(sample), ms: f64::from(sample.srtt_us) / 1e3 });
        samples.filter(move |sample| sample.t_s >= from_s)
    }

    /// Payload over time, from nothing on.
    pub(super) fn curve(&self) -> Vec<(f64, u64)> {
        let at = |sample: &FlowSample| (self.t_s(sample), sample.bytes);
        let begins = (!self.samples.is_empty()).then_some((self.began_s, 0));
        begins.into_iter().chain(self.samples.iter().map(at)).collect()
    }
}
