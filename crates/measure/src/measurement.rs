//! The document: what a measurement found. Names end in their unit: `_ms`, `_s`, `_mbit` (10⁶ bits a second), `_ratio` (of 1).

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use crate::figures::{Codepoint, Fate, Figures, Grade, Handshake, Qoo, Rpm, WorkingConditions};

/// What a measurement found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// The version of this document's form.
    pub measurement: u32,
    /// The host, as it was asked for.
    pub host: String,
    /// Its address and port.
    pub address: SocketAddr,
    /// What answers there.
    #[serde(default)]
    pub server: Server,
    /// How many flows loaded each direction; of those that grew in number, the most.
    pub streams: u32,
    /// Their congestion control, if one was asked for.
    pub cc: Option<String>,
    /// The greatest rate of each direction, in Mbit/s, if this end or the server had a limit.
    pub rate_limit_mbit: Option<f64>,
    /// Round trips without load.
    pub idle: Idle,
    /// What the path does to the ECN field; empty if no datagrams are answered.
    pub ecn: Vec<EcnFate>,
    /// What it does to the ECN that TCP's handshakes negotiate.
    #[serde(default)]
    pub handshakes: Handshakes,
    /// How large packets may be; nothing if no datagrams are answered.
    #[serde(default)]
    pub mtu: Option<PathMtu>,
    /// Under load.
    pub loaded: Vec<Loaded>,
    /// Where what this host sends has to wait, if that is known.
    pub bottleneck: Option<Bottleneck>,
    /// The grade for bufferbloat, on the scale of DSLReports.
    pub grade: Option<Grade>,
    /// Bytes of payload that flows carried, both directions together.
    pub bytes: u64,
}

impl Measurement {
    /// The version that is written.
    pub const VERSION: u32 = 1;

    /// What was found under load in a direction.
    #[must_use]
    pub fn under(&self, direction: Direction) -> Option<&Loaded> {
        self.loaded.iter().find(|loaded| loaded.direction == direction)
    }

    /// The shortest round trip of all without load, in milliseconds: the path's own. Where none was answered, the shortest that the flows' kernels saw.
    #[must_use]
    pub fn base_rtt_ms(&self) -> Option<f64> {
        let all = self.idle.pings.iter().filter_map(|ping| self.idle.min_ms(ping));
        let of_flows = self.loaded.iter().flat_map(|loaded| [&loaded.down, &loaded.up]);
        let of_flows = of_flows.filter_map(|load| load.as_ref()?.min_rtt_ms);
        all.min_by(f64::total_cmp).or_else(|| of_flows.min_by(f64::total_cmp))
    }
}

impl Measurement {
    /// The shortest round trip without what a question and its answer take to be sent at the rates that were measured, in milliseconds: on a slow
    /// link that is a good part of it. None where not both rates are known.
    #[must_use]
    pub fn propagation_ms(&self) -> Option<f64> {
        let rate = |direction| {
            let loaded = self.under(direction).or_else(|| self.under(Direction::Both))?;
            let load = if direction == Direction::Upload { &loaded.up } else { &loaded.down };
            Some(load.as_ref()?.line_mbit).filter(|mbit| *mbit > 0.0)
        };
        let (down, up) = (rate(Direction::Download)?, rate(Direction::Upload)?);
        let is_v6 = self.address.is_ipv6();
        let sent = self.idle.pings.iter().filter_map(|ping| {
            let bits = f64::from(ping.method.frame_bytes(is_v6)?) * 8.0;
            Some(self.idle.min_ms(ping)? - bits / 1e3 * (1.0 / down + 1.0 / up))
        });
        sent.min_by(f64::total_cmp).map(|ms| ms.max(0.0))
    }
}

/// What answers at the other end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Server {
    /// `dualq serve`.
    #[default]
    Dualq,
    /// A stock `iperf3 --server`.
    Iperf3,
    /// A web server.
    Http,
}

impl Server {
    /// What it is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dualq => "`dualq serve`",
            Self::Iperf3 => "iperf3 server",
            Self::Http => "web server",
        }
    }

    /// What to look for if it is not to be reached.
    #[must_use]
    pub const fn hint(self) -> &'static str {
        match self {
            Self::Dualq => "is `dualq serve` running there, and its port open for TCP and UDP?",
            Self::Iperf3 => "is `iperf3 -s` running there, and its port open for TCP?",
            Self::Http => "is a web server running there?",
        }
    }
}

/// Which directions were loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the server here.
    Download,
    /// From here to the server.
    Upload,
    /// Both at once.
    Both,
}

impl Direction {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Download => "download",
            Self::Upload => "upload",
            Self::Both => "both",
        }
    }
}

/// Without load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Idle {
    /// How long, in seconds.
    pub duration_s: f64,
    /// Round trips by each method.
    pub pings: Vec<Ping>,
    /// Datagrams that were lost, of these and of those that were sent when all load was over: at random, for nothing waits.
    pub loss: Option<Loss>,
    /// The shortest round trip of the datagrams at the end, in milliseconds: of hundreds, one meets two idle kernels.
    #[serde(default)]
    pub end_min_ms: Option<f64>,
}

impl Idle {
    /// The shortest round trip by a method.
    fn min_ms(&self, ping: &Ping) -> Option<f64> {
        let at_end = self.end_min_ms.filter(|_| ping.method == Method::Udp);
        ping.rtt.iter().map(|rtt| rtt.min_ms).chain(at_end).min_by(f64::total_cmp)
    }

    /// Round trips without load and with, by the best method of those that worked in both.
    #[must_use]
    pub fn beside<'a>(&'a self, under: &'a Loaded) -> Option<(&'a Distribution, &'a Distribution)> {
        Method::OF_PATH.into_iter().find_map(|method| Some((self.rtt(method)?, under.rtt(method)?)))
    }

    /// Round trips by a method, if there were any.
    #[must_use]
    pub fn rtt(&self, by: Method) -> Option<&Distribution> {
        rtt(&self.pings, by)
    }
}

fn rtt(pings: &[Ping], by: Method) -> Option<&Distribution> {
    pings.iter().find(|ping| ping.method == by)?.rtt.as_ref()
}

/// What becomes of a value of the ECN field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EcnFate {
    /// Which way: up or down.
    pub direction: Direction,
    /// With which value datagrams were sent.
    pub sent: Codepoint,
    /// How many.
    pub datagrams: u64,
    /// How many arrived as Not-ECT, ECT(1), ECT(0) and CE.
    pub arrived: [u64; 4],
    /// What that means.
    pub fate: Fate,
    /// Where it happens on the way up, if routers tell.
    #[serde(default)]
    pub place: Option<Place>,
}

/// Where packets are changed or lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// The last hop that they reached as they were sent; this host without.
    pub after: Option<Hop>,
    /// The first that they did not reach so.
    pub before: Hop,
}

/// A router on the way, or the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hop {
    /// Its number, the first being 1.
    pub number: u8,
    /// Its address.
    pub address: IpAddr,
}

/// How large packets may be, each way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathMtu {
    /// The largest that were tried, in bytes with the header of IP: what the interface here sends.
    pub interface_bytes: u16,
    /// From here to the server.
    pub up: LargestPacket,
    /// From the server here, where nothing larger could be tried than what arrives on the way up.
    pub down: LargestPacket,
}

/// The largest packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LargestPacket {
    /// Its size in bytes, with the header of IP.
    pub bytes: u16,
    /// What becomes of larger ones.
    pub larger: Larger,
    /// Who says that they are too big, if somebody does.
    pub said_by: Option<IpAddr>,
    /// Where they vanish, if routers tell.
    pub place: Option<Place>,
}

/// What becomes of packets that are larger than the largest that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Larger {
    /// None were tried.
    Untried,
    /// Somebody says that they are too big: TCP and others adapt.
    Refused,
    /// They vanish without a word, so that transfers hang: a black hole.
    Vanish,
    /// They do not arrive. Whether their sender is told nobody says.
    Lost,
    /// Too many of all sizes are lost to tell.
    Unclear,
}

/// Handshakes of TCP, of which all but the kernel's own ask for each sort of ECN.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handshakes {
    /// What was seen of them.
    pub seen: Vec<Handshake>,
    /// Why there are none but the kernel's, if so.
    pub unable: Option<String>,
}

/// How round trips were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Questions and answers of 16 bytes on a TCP connection of their own.
    Tcp,
    /// Datagrams of 40 bytes.
    Udp,
    /// ICMP echo.
    Icmp,
    /// Handshakes of TCP connections (`tcp_f` of RPM).
    Connect,
    /// The first question on these connections (`http_f` of RPM).
    Request,
    /// Questions and answers on the loaded connections themselves (`http_l` of RPM): with what waits in their send buffers.
    Loaded,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Tcp, Self::Udp, Self::Icmp, Self::Connect, Self::Request, Self::Loaded];
    /// Those that tell of the path and of nothing else, the best first.
    pub const OF_PATH: [Self; 4] = [Self::Udp, Self::Tcp, Self::Icmp, Self::Connect];

    /// How long its packets are with the headers of Ethernet, in bytes; none where they are several.
    const fn frame_bytes(self, is_v6: bool) -> Option<u32> {
        let ip = if is_v6 { 40 } else { 20 };
        let behind = match self {
            // Header and payload; both are as long together.
            Self::Tcp | Self::Udp => 48,
            Self::Icmp => 64,
            Self::Connect => 40,
            Self::Request | Self::Loaded => return None,
        };
        Some(14 + ip + behind)
    }

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Icmp => "ICMP",
            Self::Connect => "connect",
            Self::Request => "request",
            Self::Loaded => "loaded flow",
        }
    }
}

/// Round trips by one method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ping {
    /// By which.
    pub method: Method,
    /// How many were begun, of which some may have no answer.
    pub sent: u64,
    /// Those that were answered; none if none was.
    pub rtt: Option<Distribution>,
    /// Why it could not be used, if it could not.
    pub unable: Option<String>,
}

/// Times in milliseconds: their figures, and all of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Distribution {
    /// How many.
    pub n: usize,
    /// The shortest.
    pub min_ms: f64,
    /// The mean.
    pub mean_ms: f64,
    /// The standard deviation.
    pub std_ms: f64,
    /// The median.
    pub p50_ms: f64,
    /// The 95th percentile.
    pub p95_ms: f64,
    /// The 99th percentile.
    pub p99_ms: f64,
    /// The longest.
    pub max_ms: f64,
    /// Each of them: when it ended, in seconds since its stage began, and how long it took, in milliseconds.
    pub samples: Vec<(f64, f64)>,
}

impl Distribution {
    /// That of samples, if there are any.
    #[must_use]
    pub fn of(samples: &[Sample]) -> Option<Self> {
        let figures = Figures::of(samples.iter().map(|sample| sample.ms))?;
        let us = |ms: f64| (ms * 1e3).round() / 1e3;
        Some(Self {
            n: samples.len(),
            min_ms: us(figures.min),
            mean_ms: us(figures.mean),
            std_ms: us(figures.std),
            p50_ms: us(figures.p50),
            p95_ms: us(figures.p95),
            p99_ms: us(figures.p99),
            max_ms: us(figures.max),
            samples: samples.iter().map(|sample| (us(sample.t_s), us(sample.ms))).collect(),
        })
    }

    /// The times in milliseconds.
    #[must_use]
    pub fn times_ms(&self) -> Vec<f64> {
        self.samples.iter().map(|(_, ms)| *ms).collect()
    }
}

/// A time that was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// When it ended, in seconds since its stage began.
    pub t_s: f64,
    /// How long it took, in milliseconds.
    pub ms: f64,
}

/// Under load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loaded {
    /// Which way.
    pub direction: Direction,
    /// How long, in seconds.
    pub duration_s: f64,
    /// Whether the figures stood when it ended; otherwise time or bytes ran out.
    pub stands: bool,
    /// When the steady state began, in seconds; all figures but those of the ramp-up are of what came after.
    pub steady_s: f64,
    /// What came down, if that way was loaded.
    pub down: Option<Load>,
    /// What went up.
    pub up: Option<Load>,
    /// Round trips by each method.
    pub pings: Vec<Ping>,
    /// Datagrams that were lost.
    pub loss: Option<Loss>,
    /// Responsiveness: of the steady state, or where flows grew in number of the intervals that the draft has it of.
    pub rpm: Option<Rpm>,
    /// Whether flows that grew in number have loaded the path to the full; nothing of flows whose number was given.
    #[serde(default)]
    pub working_conditions: Option<WorkingConditions>,
    /// What the path under this load is good for.
    pub qoo: Vec<Qoo>,
    /// This host's own queue, where it is known and was sent through.
    pub local: Option<LocalQueue>,
}

/// What waited in the queue discipline of the interface that this host sends by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalQueue {
    /// The interface.
    pub interface: String,
    /// How fast it says that its link is, in Mbit/s.
    pub speed_mbit: Option<f64>,
    /// The kind of its queue discipline, the root.
    pub qdisc: String,
    /// What waited, in the median, in bytes.
    pub backlog_p50_bytes: f64,
    /// What left it while the state was steady, in Mbit/s.
    pub sent_mbit: f64,
    /// Packets that it dropped in that time.
    pub drops: u64,
}

impl LocalQueue {
    /// How long what waited, in the median, took to leave, in milliseconds.
    #[must_use]
    pub fn delay_ms(&self) -> f64 {
        if self.sent_mbit > 0.0 { self.backlog_p50_bytes * 8e-3 / self.sent_mbit } else { 0.0 }
    }
}

/// Where what this host sends has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bottleneck {
    /// In this host's own queue discipline.
    LocalQueue,
    /// The link of this host's own interface is as slow.
    Interface,
    /// Further on: nothing waits here.
    Beyond,
}

impl Bottleneck {
    /// Packets that wait for less than this, in milliseconds, do not wait: they are on their way through.
    const WAITS_MS: f64 = 1.0;
    /// What a link carries is this share of its speed, at least, if it is the bottleneck.
    const FULL: f64 = 0.9;

    /// Where it is by what was seen while this host sent, alone if that was measured, else both ways; `None` if that is not known.
    #[must_use]
    pub fn of(idle: &Idle, loaded: &[Loaded]) -> Option<Self> {
        let sending = loaded.iter().filter(|loaded| loaded.local.is_some());
        let under = sending.min_by_key(|loaded| loaded.direction == Direction::Both)?;
        let local = under.local.as_ref()?;
        if local.speed_mbit.is_some_and(|mbit| local.sent_mbit >= Self::FULL * mbit) {
            return Some(Self::Interface);
        }
        let (without, with) = idle.beside(under)?;
        let longer_ms = (with.p50_ms - without.p50_ms).max(0.0);
        let waits_ms = local.delay_ms();
        // With queues here and there the greater one is the one to look at.
        let is_here = waits_ms >= Self::WAITS_MS && 2.0 * waits_ms >= longer_ms;
        Some(if is_here { Self::LocalQueue } else { Self::Beyond })
    }
}

impl Loaded {
    /// Round trips by a method, if there were any.
    #[must_use]
    pub fn rtt(&self, by: Method) -> Option<&Distribution> {
        rtt(&self.pings, by)
    }

    /// The goodput of the slower direction of those that were loaded, in Mbit/s.
    #[must_use]
    pub fn slowest_mbit(&self) -> Option<f64> {
        let goodput = [&self.down, &self.up].into_iter().flatten().map(|load| load.goodput_mbit);
        goodput.min_by(f64::total_cmp)
    }

    /// Round trips by the best method that worked.
    #[must_use]
    pub fn path_rtt(&self) -> Option<&Distribution> {
        Method::OF_PATH.into_iter().find_map(|method| self.rtt(method))
    }
}

/// Flows of one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Payload, in Mbit/s.
    pub goodput_mbit: f64,
    /// That is so much more or less, with 95 % confidence; none where there was too little time to tell.
    pub goodput_interval_mbit: Option<f64>,
    /// How much it varies: the standard deviation of half seconds, as a share of the mean.
    pub variation_ratio: f64,
    /// The same with the headers of TCP, IP and Ethernet: what a link's rate is counted in.
    pub line_mbit: f64,
    /// Goodput of each flow.
    pub flow_goodput_mbit: Vec<f64>,
    /// Before the steady state.
    pub ramp_up: RampUp,
    /// Segments that were sent, again or not, if the sender tells.
    pub segments: Option<u64>,
    /// Segments that were sent again.
    pub retransmits: Option<u64>,
    /// Segments that arrived with CE, or what stands for them.
    pub ce: Option<u64>,
    /// Who counted these; none where none came.
    #[serde(default)]
    pub ce_by: Option<MarksBy>,
    /// The senders' congestion control, by the kernel's name.
    pub cc: Option<String>,
    /// Payload of a full segment, in bytes.
    pub mss_bytes: u32,
    /// The flows' own smoothed round-trip time, of `TCP_INFO`, as `ss -ti` shows it: the senders' `rtt`, or if these do not tell the receivers' `rcv_rtt`.
    pub srtt: Option<Distribution>,
    /// The shortest round trip that the flows' kernels saw, in milliseconds.
    pub min_rtt_ms: Option<f64>,
    /// Over time, the ramp-up included.
    pub series: Vec<Point>,
    /// The same of each flow: payload in Mbit/s in each interval of `series`.
    pub flow_series_mbit: Vec<Vec<f64>>,
}

/// Whose kernel counted marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MarksBy {
    /// The receivers': each segment that arrived with CE (Linux 6.18).
    Receivers,
    /// The senders': each segment whose acknowledgement told of congestion. By Accurate ECN these are the marks; a receiver of classic ECN tells of one
    /// mark until the sender has answered it (RFC 3168 §6.1.3), so that they are several times as many.
    Senders,
}

/// Before the steady state.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RampUp {
    /// How long it took, in seconds.
    pub duration_s: f64,
    /// Payload, in Mbit/s; none without a ramp-up.
    pub goodput_mbit: Option<f64>,
    /// Segments that were sent again, if that is known.
    pub retransmits: Option<u64>,
}

/// All flows of a direction in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// The end of the interval, in seconds since the stage began.
    pub t_s: f64,
    /// Payload, in Mbit/s.
    pub goodput_mbit: f64,
}

/// Datagrams that were lost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    /// How many were sent.
    pub sent: u64,
    /// On the way there.
    pub up: u64,
    /// On the way back, of those that got there.
    pub down: u64,
}

impl Loss {
    /// Both together.
    #[must_use]
    pub const fn with(self, more: Self) -> Self {
        let Self { sent, up, down } = more;
        Self { sent: self.sent + sent, up: self.up + up, down: self.down + down }
    }

    /// The share that was lost on the way up.
    #[must_use]
    pub fn up_ratio(&self) -> f64 {
        self.up as f64 / self.sent.max(1) as f64
    }

    /// The share of those that got there which was lost on the way back.
    #[must_use]
    pub fn down_ratio(&self) -> f64 {
        self.down as f64 / self.sent.saturating_sub(self.up).max(1) as f64
    }

    /// The share of round trips that failed.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        if self.sent == 0 { 0.0 } else { (self.up + self.down) as f64 / self.sent as f64 }
    }
}
