//! The end that measures.

mod board;
mod ecn;
mod error;
mod local;
mod peer;
mod probes;
mod stage;
mod summary;

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::time::{Duration, Instant};

use dualq_units::{Bytes, Rate};

pub use error::MeasureError;

use crate::measurement::{Bottleneck, Direction, Idle, Loaded, Measurement, Method};
use crate::protocol::Role;
use crate::{Token, figures::Grade};
use peer::{Control, Peer};
use probes::Probes;
use stage::{Bounds, Course};

/// Times of stages without load: no longer than it takes to know the round trip.
const IDLE: Duration = Duration::from_secs(3);
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
    /// What the server wants to know.
    pub token: Token,
    /// What is loaded, in this order.
    pub directions: Vec<Direction>,
    /// Flows in each direction.
    pub streams: u32,
    /// Their congestion control; each kernel's default without.
    pub cc: Option<String>,
    /// The greatest rate of each direction.
    pub rate: Option<Rate>,
    /// How long it may take altogether. It ends sooner once the figures stand.
    pub max_time: Duration,
    /// How much flows may carry altogether.
    pub max_bytes: Option<Bytes>,
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

/// Measures the path to a host where `dualq serve` runs: first without load, then with. `on_progress` is called ten times a second.
///
/// # Errors
/// If the host is not found, does not answer or refuses, or if it vanishes meanwhile.
pub fn measure(
    options: &Options,
    on_progress: &mut dyn FnMut(&Progress),
) -> Result<Measurement, MeasureError> {
    let began = Instant::now();
    let (peer, control) = connect(options)?;
    let limits = control.limits();
    let most = options.max_time.min(Duration::from_millis(limits.duration_ms.saturating_sub(1000)));
    let mut probes = Probes::open(&peer, control.session())?;
    let mut course =
        Course { peer: &peer, control, probes: &mut probes, options, on_progress, flows: 0 };
    let left = |stages: usize| most.saturating_sub(began.elapsed()) / stages as u32;
    let stages = options.directions.len();
    let idle = course.idle(IDLE.min(left(stages + 1)))?;
    let ecn = match &mut course.probes.udp {
        Ok(datagrams) => ecn::fates(datagrams),
        Err(_) => Vec::new(),
    };
    let mut loaded: Vec<Loaded> = Vec::new();
    let mut bytes = 0;
    for (done, direction) in options.directions.iter().enumerate() {
        let left_out = stages - done;
        let bounds = Bounds {
            most: left(left_out).max(SHORTEST),
            bytes: options.max_bytes.map(|all| all.0.saturating_sub(bytes) / left_out as u64),
        };
        if done > 0 {
            course.settle(median_ms(&idle, Method::Tcp))?;
        }
        let (under_load, carried) = course.loaded(*direction, &bounds)?;
        loaded.push(under_load);
        bytes += carried;
    }
    let bottleneck = Bottleneck::of(&idle, &loaded);
    Ok(Measurement {
        measurement: Measurement::VERSION,
        host: options.host.clone(),
        address: peer.address(),
        streams: options.streams,
        cc: options.cc.clone(),
        rate_limit_mbit: options.rate.map(|rate| rate.as_bits_per_second() as f64 / 1e6),
        grade: grade(&idle, &loaded),
        idle,
        ecn,
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
            [Method::Udp, Method::Tcp].into_iter().find_map(|method| {
                Some((loaded.rtt(method)?.mean_ms - median_ms(idle, method)?).max(0.0))
            })
        })
        .collect();
    Grade::of(&increases)
}

fn median_ms(idle: &Idle, method: Method) -> Option<f64> {
    let ping = idle.pings.iter().find(|ping| ping.method == method)?;
    ping.rtt.as_ref().map(|rtt| rtt.p50_ms)
}

/// The first of the host's addresses that answers.
fn connect(options: &Options) -> Result<(Peer, Control), MeasureError> {
    let bare = options.host.trim_start_matches('[').trim_end_matches(']');
    let unknown = |reason: String| MeasureError::Unknown { host: bare.to_owned(), reason };
    let found = (bare, options.port).to_socket_addrs().map_err(|error| {
        let reason = error::plain(&error);
        unknown(reason.rsplit(": ").next().unwrap_or_default().to_owned())
    })?;
    let wanted = |address: &SocketAddr| match options.family {
        None => true,
        Some(Family::V4) => address.is_ipv4(),
        Some(Family::V6) => address.is_ipv6(),
    };
    let mut failure = None;
    for address in found.filter(wanted) {
        let peer = Peer::new(address, options.token.clone());
        match peer.open(Role::Control, None) {
            Ok(opened) => return Ok((peer, Control::new(opened))),
            // Whoever answers is the host, whatever is said.
            Err(error) if !matches!(error, MeasureError::Unreachable { .. }) => return Err(error),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    Err(failure.unwrap_or_else(|| unknown("it has no address of that family of IP".to_owned())))
}
