//! The end that measures.

mod board;
mod ecn;
pub(crate) mod error;
mod far;
mod handshakes;
mod local;
mod probes;
mod sizes;
mod stage;
mod summary;

use std::time::{Duration, Instant};

use dualq_units::{Bytes, Rate};

pub use error::MeasureError;
pub use far::{Url, UrlError};

use crate::measurement::{Bottleneck, Direction, Idle, Loaded, Measurement, Method};
use crate::{Token, figures::Grade};
use probes::Probes;
use stage::{Bounds, Course};

/// Times of stages without load: no longer than it takes to know the round trip.
const IDLE: Duration = Duration::from_secs(3);
/// At the end datagrams tell of loss without load, for so long or this share of the time.
const QUIET: Duration = Duration::from_secs(2);
const QUIET_SHARE: u32 = 10;
/// Flows in each direction where nobody says how many, and they do not grow in number.
const STREAMS: u32 = 4;
/// The shortest time that a measurement under load may be given.
const SHORTEST: Duration = Duration::from_secs(1);

/// What is measured, and how far it may go.
#[derive(Clone, Debug)]
pub struct Options {
    /// The host, a name or an address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Only addresses of this family of IP, 4 or 6; either without.
    pub family: Option<Family>,
    /// What answers there.
    pub far: Far,
    /// What is loaded, in this order.
    pub directions: Vec<Direction>,
    /// Flows in each direction. Without, they grow in number until the path is in [working conditions](crate::figures::WorkingConditions), where that can be told:
    /// `dualq serve` answers, and no rate is given; else they are 4.
    pub streams: Option<u32>,
    /// Their congestion control; each kernel's default without.
    pub cc: Option<String>,
    /// The greatest rate of each direction.
    pub rate: Option<Rate>,
    /// How long it may take altogether. It ends sooner once the figures stand.
    pub max_time: Duration,
    /// How much flows may carry altogether.
    pub max_bytes: Option<Bytes>,
}

impl Options {
    /// How many flows each direction has, if they do not grow in number.
    fn fixed_streams(&self) -> Option<u32> {
        // Only where questions are answered on loaded connections there is RPM; and a flow's share of a rate is fixed when it begins.
        let can_grow = matches!(self.far, Far::Dualq(_)) && self.rate.is_none();
        self.streams.or((!can_grow).then_some(STREAMS))
    }

    /// The greatest rate of each flow, in bits per second.
    fn flow_rate(&self) -> Option<u64> {
        let rate = self.rate?.as_bits_per_second();
        Some((rate / u64::from(self.fixed_streams()?)).max(8))
    }
}

/// What answers at the other end, and what it wants to know.
#[derive(Clone, Debug)]
pub enum Far {
    /// `dualq serve`, which wants the token.
    Dualq(Token),
    /// A stock iperf3 server, which tells of its own flows at the end, and answers no other question.
    Iperf3,
    /// A web server with a large file, which can only be downloaded.
    Http {
        /// The file's path there.
        path: String,
    },
}

/// A family of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// What is being measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Round trips without load.
    Idle,
    /// Under load.
    Loaded(Direction),
}

impl Stage {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Loaded(direction) => direction.name(),
        }
    }
}

/// How far it is, and the figures so far.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// What is being measured.
    pub stage: Stage,
    /// How much of the time that it may take at most is over, of 1.
    pub share: f64,
    /// What comes down, in Mbit/s.
    pub down_mbit: Option<f64>,
    /// What goes up.
    pub up_mbit: Option<f64>,
    /// The median round trip of this stage, in milliseconds.
    pub rtt_ms: Option<f64>,
}

/// Measures the path to a host: first without load, then with. `on_progress` is called ten times a second.
///
/// # Errors
/// If the host is not found, does not answer or refuses, or if it vanishes meanwhile.
pub fn measure(
    options: &Options,
    on_progress: &mut dyn FnMut(&Progress),
) -> Result<Measurement, MeasureError> {
    let began = Instant::now();
    let far = far::reach(options)?;
    let most = far.most().map_or(options.max_time, |most| most.min(options.max_time));
    let mut probes = Probes::open(&*far)?;
    let mut course = Course { far: &*far, probes: &mut probes, options, on_progress, flows: 0 };
    let quiet = far.datagrams().map_or(Duration::ZERO, |_| QUIET.min(most / QUIET_SHARE));
    let left = |stages: usize| most.saturating_sub(quiet + began.elapsed()) / stages as u32;
    let stages = options.directions.len();
    let mut idle = course.idle(IDLE.min(left(stages + 1)))?;
    let mut ecn = match &mut course.probes.udp {
        Ok(datagrams) => ecn::fates(datagrams),
        Err(_) => Vec::new(),
    };
    ecn::place(&mut ecn, far.address().ip());
    let is_answered = idle.pings.iter().any(|p| p.method == Method::Udp && p.rtt.is_some());
    let mtu = far.datagrams().filter(|_| is_answered);
    let mtu = mtu.map(|cookie| sizes::largest(far.address(), cookie)).transpose()?.flatten();
    let handshakes = handshakes::seen(&*far)?;
    let mut loaded: Vec<Loaded> = Vec::new();
    let mut bytes = 0;
    for (done, direction) in options.directions.iter().enumerate() {
        let left_out = stages - done;
        let bounds = Bounds {
            most: left(left_out).max(SHORTEST),
            bytes: options.max_bytes.map(|all| all.0.saturating_sub(bytes) / left_out as u64),
        };
        if done > 0 {
            course.settle(&idle)?;
        }
        let under_load = course.loaded(*direction, &bounds);
        let (under_load, carried) = under_load.map_err(|error| sizes::explained(error, mtu))?;
        loaded.push(under_load);
        bytes += carried;
    }
    if let Some(known) = idle.loss {
        course.settle(&idle)?;
        let slowest = loaded.iter().filter_map(Loaded::slowest_mbit).min_by(f64::total_cmp);
        if let Some((more, shortest_ms)) = course.quiet(quiet, slowest.unwrap_or_default()) {
            (idle.loss, idle.end_min_ms) = (Some(known.with(more)), shortest_ms);
        }
    }
    let asked = options.rate.map(Rate::as_bits_per_second);
    let limit = [asked, far.most_rate()].into_iter().flatten().min();
    let bottleneck = Bottleneck::of(&idle, &loaded);
    let grown = loaded.iter().filter_map(|loaded| Some(loaded.working_conditions?.flows)).max();
    Ok(Measurement {
        measurement: Measurement::VERSION,
        host: options.host.clone(),
        address: far.address(),
        server: far.server(),
        streams: options.fixed_streams().or(grown).unwrap_or_default(),
        cc: options.cc.clone(),
        rate_limit_mbit: limit.map(|bits| bits as f64 / 1e6),
        grade: grade(&idle, &loaded),
        idle,
        ecn,
        handshakes,
        mtu,
        loaded,
        bottleneck,
        bytes,
    })
}

/// The grade for how much longer round trips are under load in one direction or the other, by the best method that worked in each.
fn grade(idle: &Idle, loaded: &[Loaded]) -> Option<Grade> {
    let one_way = loaded.iter().filter(|loaded| loaded.direction != Direction::Both);
    let increases: Vec<f64> = one_way
        .filter_map(|loaded| {
            let (without, with) = idle.beside(loaded)?;
            Some((with.mean_ms - without.p50_ms).max(0.0))
        })
        .collect();
    Grade::of(&increases)
}
