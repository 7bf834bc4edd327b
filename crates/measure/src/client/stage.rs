//! Stages of a measurement, one after the other: who sends, who asks, and when it is enough.

use std::collections::VecDeque;
use std::thread;
use std::time::{Duration, Instant};

use dualq_socket::TcpInfo;

use super::board::{Board, Seen, Track, locked};
use super::far::{self, FarEnd};
use super::local::Local;
use super::probes::{self, Intervals, Probes};
use super::summary::{self, MSS};
use super::{MeasureError, Options, Progress, Stage};
use crate::figures::{Figures, INTERVAL_S, Steady, WorkingConditions, goodput};
use crate::flow::{self, End, INTERVAL, Owner};
use crate::measurement::{Direction, Idle, Loaded, Loss, Method};
use crate::protocol::FlowSample;

/// Without load so many round trips are enough.
const ENOUGH_IDLE: usize = 40;
/// When the mean goodput is known to this share of it, and the mean round trip to that or to a millisecond, the figures stand.
const GOODPUT_STANDS: f64 = 0.03;
const RTT_STANDS: f64 = 0.1;
const RTT_STANDS_MS: f64 = 1.0;
/// No steady state is shorter, nor shorter than so many of its round trips.
const SHORTEST_STEADY_S: f64 = 3.0;
const FEWEST_ROUND_TRIPS: f64 = 20.0;
/// Who is not heard of for so long has vanished.
const SILENCE: Duration = Duration::from_secs(5);
/// Queues of the stage before are empty when round trips are again as they were without load, and this much more; or after a while.
const EMPTY_MS: f64 = 2.0;
const SETTLING: Duration = Duration::from_secs(5);
/// Datagrams that tell of loss alone are at least so far apart, take no larger share of a path than that, and are so long with the headers of
/// UDP, IPv6 and Ethernet.
const QUIET_INTERVAL: Duration = Duration::from_millis(2);
const QUIET_SHARE: f64 = 0.05;
const DATAGRAM_FRAME: u32 = 102;
/// New connections are so far apart, in each of so many threads.
const CONNECTIONS: Duration = Duration::from_millis(500);
const CONNECTORS: u32 = 2;
/// Where no other question is answered, new connections without load are so far apart.
const IDLE_CONNECTIONS: Duration = Duration::from_millis(200);
/// By which round trips without load are counted: the first of these that is answered.
const IDLE_BY: [Method; 4] = [Method::Tcp, Method::Udp, Method::Icmp, Method::Connect];
/// Questions on loaded connections, of all flows of a direction together.
const QUESTIONS: Duration = Duration::from_millis(100);
/// Questions of a flow that have no answer yet.
const MOST_OPEN: usize = 32;
/// What probes at their full number take of a path, in Mbit/s each way, and the share of its goodput that they may take.
const PROBES_MBIT: f64 = 0.06;
const PROBES_SHARE: f64 = 0.01;

/// All that stages have in common.
pub(super) struct Course<'a> {
    pub(super) far: &'a dyn FarEnd,
    pub(super) probes: &'a mut Probes,
    pub(super) options: &'a Options,
    pub(super) on_progress: &'a mut dyn FnMut(&Progress),
    /// How many flows there were so far, all of which have numbers of their own.
    pub(super) flows: u32,
}

/// How far a stage may go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) most: Duration,
    pub(super) bytes: Option<u64>,
}

impl Course<'_> {
    /// Without load.
    pub(super) fn idle(&mut self, most: Duration) -> Result<Idle, MeasureError> {
        let board = Board::new(Vec::new(), 0);
        let (far, on_progress) = (self.far, &mut *self.on_progress);
        let probes = &mut *self.probes;
        thread::scope(|scope| {
            if probes.echo.is_err() {
                scope.spawn(|| probes::connections(&board, far, IDLE_CONNECTIONS));
            }
            start_probes(scope, probes, &board, far, Intervals::IDLE);
            while !board.is_over() {
                thread::sleep(INTERVAL);
                let elapsed = board.began.elapsed();
                let answers = IDLE_BY
                    .map(|method| board.samples(method, 0.0))
                    .into_iter()
                    .find(|samples| !samples.is_empty())
                    .unwrap_or_default();
                on_progress(&Progress {
                    stage: Stage::Idle,
                    share: elapsed.as_secs_f64() / most.as_secs_f64(),
                    down_mbit: None,
                    up_mbit: None,
                    rtt_ms: Figures::of(answers.iter().map(|sample| sample.ms)).map(|rtt| rtt.p50),
                });
                // On a long path some may do.
                let is_enough =
                    answers.len() >= ENOUGH_IDLE || (elapsed >= most && !answers.is_empty());
                if is_enough {
                    board.end();
                } else if elapsed >= most && !far.is_framed() {
                    // Where neither questions nor ICMP are answered, flows tell what there is to know.
                    board.end();
                } else if elapsed > most + SILENCE {
                    board.fail(
                        far.vanished(format!("it answered nothing for {} s", SILENCE.as_secs())),
                    );
                }
            }
        });
        if let Some(error) = board.failure() {
            return Err(far.farewell().unwrap_or(error));
        }
        let (duration_s, loss) = (board.lasted().as_secs_f64(), *locked(&board.loss));
        Ok(Idle { duration_s, pings: board.pings(0.0), loss, end_min_ms: None })
    }

    /// Loss without load and the shortest round trip, by more datagrams than a round trip takes to be known: so many that they take a small share of a path of that rate.
    pub(super) fn quiet(
        &mut self,
        lasts: Duration,
        slowest_mbit: f64,
    ) -> Option<(Loss, Option<f64>)> {
        let Ok(datagrams) = &mut self.probes.udp else { return None };
        let board = Board::new(Vec::new(), 0);
        let bits = f64::from(8 * DATAGRAM_FRAME);
        let spacing_s = bits / 1e6 / (QUIET_SHARE * slowest_mbit.max(0.01));
        let interval = Duration::from_secs_f64(spacing_s.min(1.0)).max(QUIET_INTERVAL);
        thread::scope(|scope| {
            scope.spawn(|| datagrams.run(&board, interval));
            while board.began.elapsed() < lasts {
                thread::sleep(INTERVAL);
            }
            board.end();
        });
        let loss = *locked(&board.loss);
        let shortest = board.samples(Method::Udp, 0.0).into_iter().map(|sample| sample.ms);
        Some((loss?, shortest.min_by(f64::total_cmp)))
    }

    /// Waits until queues are empty again.
    pub(super) fn settle(&mut self, idle: &Idle) -> Result<(), MeasureError> {
        let idle_ms = |method| idle.rtt(method).map(|rtt| rtt.p50_ms);
        let idle_ms = IDLE_BY.into_iter().find_map(idle_ms);
        let began = Instant::now();
        while began.elapsed() < SETTLING {
            let took = self.probes.once(self.far)?;
            let is_empty = |took: Duration| {
                idle_ms.is_none_or(|idle_ms| took.as_secs_f64() * 1e3 < idle_ms + EMPTY_MS)
            };
            match took {
                Some(took) if is_empty(took) => break,
                Some(_) => {}
                None => thread::sleep(INTERVAL),
            }
        }
        Ok(())
    }

    /// Under load; and how many bytes flows carried.
    pub(super) fn loaded(
        &mut self,
        direction: Direction,
        bounds: &Bounds,
    ) -> Result<(Loaded, u64), MeasureError> {
        let ways = summary::ways(direction);
        let fixed = self.options.fixed_streams();
        let most_flows = fixed.unwrap_or_else(|| {
            let allowed = self.far.most_flows().map_or(u32::MAX, |all| all / ways.len() as u32);
            WorkingConditions::flows_after(u32::MAX, allowed)
        });
        let first = fixed.unwrap_or_else(|| WorkingConditions::flows_after(0, most_flows));
        let board = Board::new(self.tracks(ways, most_flows), first);
        let far = self.far;
        let at_first: Vec<&Track> = board.flows().collect();
        far.prepare(far::Stage { direction, flows: &at_first, most: bounds.most })?;
        // A host whose own queues are not told has none that are known.
        let mut local = Local::open(far.address()).filter(|_| direction != Direction::Download);
        let options = self.options;
        let on_progress = &mut *self.on_progress;
        let probes = &mut *self.probes;
        let (mut stands, mut is_spent) = (false, false);
        thread::scope(|scope| {
            start_probes(scope, probes, &board, far, Intervals::LOADED);
            for number in 0..CONNECTORS {
                let board = &board;
                scope.spawn(move || {
                    // Not all at once.
                    thread::sleep(CONNECTIONS / CONNECTORS * number);
                    probes::connections(board, far, CONNECTIONS);
                });
            }
            let begin = |track| {
                let board = &board;
                scope.spawn(move || {
                    if let Err(error) = run_flow(board, track, far, options)
                        && !board.is_over()
                    {
                        board.fail(error);
                    }
                });
            };
            at_first.into_iter().for_each(begin);
            let mut heard = (0, 0, Instant::now());
            while !board.is_over() {
                thread::sleep(INTERVAL);
                let elapsed = board.began.elapsed();
                if let Some(look) = local.as_mut().and_then(|local| local.look(elapsed)) {
                    locked(&board.local).push(look);
                }
                let working = fixed.is_none().then(|| summary::working(&board, direction).0);
                let from_s = working.map_or(0.0, |now| now.since_s(elapsed.as_secs_f64()));
                let now = Now::of(&board, ways, from_s);
                on_progress(
                    &now.progress(direction, elapsed.as_secs_f64() / bounds.most.as_secs_f64()),
                );
                let slowest =
                    [now.down_mbit, now.up_mbit].into_iter().flatten().min_by(f64::total_cmp);
                if let Some(slowest) = slowest {
                    board.set_stretch(
                        (PROBES_MBIT / PROBES_SHARE / slowest.max(0.01)).clamp(1.0, 20.0),
                    );
                }
                let (bytes, answers) = (board.bytes(), now.answers);
                if (bytes, answers) != (heard.0, heard.1) {
                    heard = (bytes, answers, Instant::now());
                } else if heard.2.elapsed() > SILENCE {
                    board.fail(far.vanished(format!(
                        "nothing was heard of it for {} s of {}",
                        SILENCE.as_secs(),
                        direction.name()
                    )));
                }
                is_spent = bounds.bytes.is_some_and(|most| bytes >= most);
                let is_reached = working.is_none_or(|working| working.are_reached());
                if (now.stands && is_reached) || is_spent || elapsed >= bounds.most {
                    stands = now.stands;
                    board.end();
                } else if !is_reached {
                    let intervals = (elapsed.as_secs_f64() / INTERVAL_S) as u32;
                    let flows = WorkingConditions::flows_after(intervals, most_flows);
                    board.grow(flows).for_each(begin);
                }
            }
        });
        if let Some(error) = board.failure() {
            return Err(far.farewell().unwrap_or(error));
        }
        // Probes are small, and flows may hang where they pass: that is no rate of 0.
        if !is_spent && let Some(is_up) = ways.iter().find(|is_up| board.hang(**is_up)) {
            let way = if *is_up { "upload" } else { "download" };
            return Err(far.vanished(format!("flows of {way} carried nothing")));
        }
        let reports = far.collect(&board)?;
        let mut loaded =
            summary::loaded(&board, direction, (fixed.is_none(), stands), &reports, far);
        loaded.local =
            local.and_then(|local| local.figures(&locked(&board.local), loaded.steady_s));
        Ok((loaded, board.bytes()))
    }

    /// So many flows each way.
    fn tracks(&mut self, ways: &[bool], flows: u32) -> Vec<Track> {
        let mut tracks = Vec::new();
        for is_up in ways {
            for place in 0..flows {
                self.flows += 1;
                let seen = Seen { mss: MSS, ..Seen::default() };
                tracks.push(Track { number: self.flows, is_up: *is_up, place, seen: seen.into() });
            }
        }
        tracks
    }
}

fn start_probes<'scope, 'env>(
    scope: &'scope thread::Scope<'scope, 'env>,
    probes: &'env mut Probes,
    board: &'env Board,
    far: &'env dyn FarEnd,
    intervals: Intervals,
) {
    let Probes { echo, udp, icmp } = probes;
    match echo {
        Ok(echo) => drop(scope.spawn(move || echo.run(board, far, intervals.tcp))),
        Err(why) => board.unable(Method::Tcp, why),
    }
    match udp {
        Ok(udp) => drop(scope.spawn(move || udp.run(board, intervals.udp))),
        Err(why) => board.unable(Method::Udp, why),
    }
    match icmp {
        Ok(icmp) => drop(scope.spawn(move || icmp.run(board, intervals.icmp))),
        Err(why) => board.unable(Method::Icmp, why),
    }
}

/// The figures so far.
struct Now {
    down_mbit: Option<f64>,
    up_mbit: Option<f64>,
    rtt_ms: Option<f64>,
    answers: usize,
    stands: bool,
}

impl Now {
    /// Of what came after that time.
    fn of(board: &Board, ways: &[bool], from_s: f64) -> Self {
        let steady = |is_up: bool| {
            let series = goodput(&board.curves(is_up), INTERVAL.as_secs_f64());
            ways.contains(&is_up).then(|| (summary::steady(&series, from_s), series.len()))
        };
        let (down, up) = (steady(false), steady(true));
        let begins_s =
            summary::begins_s([&down, &up].into_iter().flatten().map(|(steady, _)| steady));
        let answers = Method::OF_PATH.map(|method| board.samples(method, 0.0));
        let rtts: Vec<f64> = match answers.iter().find(|samples| !samples.is_empty()) {
            Some(samples) => {
                let steady = samples.iter().filter(|sample| sample.t_s >= begins_s);
                steady.map(|sample| sample.ms).collect()
            }
            None => board.srtts_ms(begins_s),
        };
        let rtt = Steady::of(&rtts);
        let rtt_ms = Figures::of(rtts).map(|rtt| rtt.p50);
        let needed_s = (FEWEST_ROUND_TRIPS * rtt_ms.unwrap_or(0.0) / 1e3).max(SHORTEST_STEADY_S);
        let stand = |way: &Option<(Option<Steady>, usize)>| {
            way.as_ref().is_none_or(|(steady, samples)| {
                let lasts_s = *samples as f64 * INTERVAL.as_secs_f64() - begins_s;
                steady.is_some_and(|steady| steady.stands(GOODPUT_STANDS, 0.0))
                    && lasts_s >= needed_s
            })
        };
        let stands = stand(&down)
            && stand(&up)
            && rtt.is_some_and(|rtt| rtt.stands(RTT_STANDS, RTT_STANDS_MS));
        let mbit =
            |way: &Option<(Option<Steady>, usize)>| way.as_ref()?.0.map(|steady| steady.mean);
        let answers = answers.iter().map(Vec::len).sum();
        Self { down_mbit: mbit(&down), up_mbit: mbit(&up), rtt_ms, answers, stands }
    }

    const fn progress(&self, direction: Direction, share: f64) -> Progress {
        let stage = Stage::Loaded(direction);
        let Self { down_mbit, up_mbit, rtt_ms, .. } = *self;
        Progress { stage, share, down_mbit, up_mbit, rtt_ms }
    }
}

/// A flow, from its connection to the end of the stage.
fn run_flow(
    board: &Board,
    track: &Track,
    far: &dyn FarEnd,
    options: &Options,
) -> Result<(), MeasureError> {
    let way = if track.is_up { "upload" } else { "download" };
    let mut own = Own {
        board,
        track,
        is_framed: far.is_framed(),
        before: FlowSample::default(),
        open: VecDeque::new(),
        number: 0,
        due: Instant::now(),
        rate: options.flow_rate().filter(|_| track.is_up),
        most: far.most_rate().filter(|_| track.is_up),
    };
    loop {
        let far::Opened { stream, rest } = match far.flow(track) {
            // A path that is full loses handshakes. If nothing else is heard either, the stage ends by that.
            Err(MeasureError::Unreachable { .. } | MeasureError::Vanished { .. })
                if board.came_later(track) && !board.is_over() =>
            {
                thread::sleep(INTERVAL);
                continue;
            }
            opened => opened?,
        };
        let began = Instant::now();
        {
            let began_s = board.began.elapsed().as_secs_f64();
            let mut seen = locked(&track.seen);
            match seen.samples.last() {
                None => seen.began_s = began_s,
                Some(last) => {
                    let t_us = ((began_s - seen.began_s) * 1e6) as u64;
                    own.before = FlowSample { t_us, ..*last };
                }
            }
            seen.cc = flow::congestion_control(&stream).filter(|_| track.is_up);
        }
        let ended = if track.is_up {
            flow::send(&stream, &rest, &mut own)
        } else {
            flow::receive(&stream, &rest, &mut own)
        };
        match ended {
            Ok(End::Over) => return Ok(()),
            Ok(End::Closed) => far.ended(track, began.elapsed())?,
            Ok(End::Nonsense) => {
                return Err(far.nonsense(&format!("a flow of {way} has what no flow has")));
            }
            Err(error) => {
                let reason = dualq_units::plain(&error);
                return Err(far.vanished(format!("a flow of {way} broke: {reason}")));
            }
        }
    }
}

/// This end of a flow.
struct Own<'a> {
    board: &'a Board,
    track: &'a Track,
    is_framed: bool,
    /// What was on the connections before this one, when this one began.
    before: FlowSample,
    /// Questions without an answer, by their numbers.
    open: VecDeque<(u64, Instant)>,
    number: u64,
    due: Instant,
    /// What this flow may send, and all of its direction together, in bits per second.
    rate: Option<u64>,
    most: Option<u64>,
}

impl Owner for Own<'_> {
    fn is_over(&mut self) -> bool {
        self.board.is_over()
    }

    fn is_framed(&self) -> bool {
        self.is_framed
    }

    fn sample(&mut self, sample: FlowSample, info: &TcpInfo) {
        let (t_us, bytes) = (self.before.t_us + sample.t_us, self.before.bytes + sample.bytes);
        let sample = FlowSample { t_us, bytes, ..sample };
        let mut seen = locked(&self.track.seen);
        let mss = if self.track.is_up { info.snd_mss } else { info.rcv_mss };
        if mss > 0 {
            seen.mss = mss;
        }
        seen.samples.push(sample);
    }

    fn next_number(&mut self) -> Option<u64> {
        let now = Instant::now();
        if !self.is_framed || now < self.due || self.open.len() >= MOST_OPEN {
            return None;
        }
        self.due = now + self.board.stretched(QUESTIONS * self.board.begun());
        self.number += 1;
        self.open.push_back((self.number, now));
        self.board.sent(Method::Loaded);
        Some(self.number)
    }

    /// Answers come in the order of their questions, for TCP keeps it.
    fn number(&mut self, number: u64) -> bool {
        let Some((asked, when)) = self.open.pop_front() else { return false };
        self.board.answered(Method::Loaded, when.elapsed());
        asked == number
    }

    fn rate(&mut self) -> Option<u64> {
        let share = self.most.map(|most| most / u64::from(self.board.begun().max(1)));
        let bits = [self.rate, share].into_iter().flatten().min()?;
        Some((bits / 8).max(1))
    }
}
