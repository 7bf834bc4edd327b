//! What is run: the same object that result documents and reference files carry as JSON.

use std::ops::Deref;

use std::time::Duration;

use dualq_qdisc::QdiscLine;
use dualq_tcp::{Algorithm, EcnOption, EcnStyle};
use dualq_units::{Bytes, Rate};
use serde::{Deserialize, Serialize};

use crate::bounds::{self, ScenarioError};
use crate::congestion::CongestionControl;
use crate::ecn::{EcnRequest, ecn_option};
use crate::loss::Loss;
use crate::path::{Direction, Element, UpLink};
use crate::sizes::Size;
use crate::traffic::{Arrivals, UdpGroup};
use crate::words::{named, optional_word, word};

/// How much later than it wanted a program wakes that sleeps, in every world: Linux's default (`PR_SET_TIMERSLACK`, prctl(2)).
pub const TIMER_SLACK: Duration = Duration::from_micros(50);

/// How long a network stands before its first packet: what a kernel that has just started needs at most to switch its fine timers on.
pub const SETTLING: Duration = Duration::from_millis(500);
/// What the clock of the world `kernel` shows as queues are made. It begins with the kernel, and jiffies with its multiples of their
/// length.
pub const QUEUES_MADE: Duration = Duration::from_micros(3);
/// What it shows as the first packet sets out, which waits for that: a little later than it has settled.
pub const CLOCK_AT_START: Duration = Duration::from_micros(500_112);

/// Flows of a group start this far apart unless it says otherwise.
pub const FLOW_SPACING: Duration = Duration::from_millis(50);

/// How often the smoothed round-trip times are looked at, in every world.
pub const RTT_SAMPLE_INTERVAL: Duration = Duration::from_millis(100);

/// Bytes of an `ssh` probe's question, and of its answer.
pub const PROBE_BYTES: u32 = 48;

/// What a TCP segment has beside its payload where line rates are counted: the headers of IP and TCP with timestamps, and
/// Ethernet's.
pub const SEGMENT_HEADERS: u32 = dualq_tcp::HEADER_BYTES + dualq_tcp::ETHERNET_BYTES;

/// One experiment whose values make sense: every world can run it, or says which part it does not have.
///
/// Made from a [`Setup`], in which the fields are described, or read from JSON. They can be read here and not changed:
/// [`into_setup`](Self::into_setup) gives them back.
///
/// ```
/// use dualq_scenario::{Algorithm, FlowGroup, Link, Scenario, Setup};
///
/// let bbr = FlowGroup { count: 4, ..FlowGroup::of(Algorithm::Bbr) };
/// let link = Link { qdisc: "fq_codel".parse()?, ..Link::default() };
/// let scenario = Scenario::try_from(Setup { link, flow: vec![bbr], ..Setup::default() })?;
/// assert_eq!(scenario.flow[0].count, 4);
///
/// let refused = Scenario::try_from(Setup { duration: scenario.warmup, ..Setup::default() });
/// assert_eq!(refused.unwrap_err().to_string(), "warmup: 10s of a duration of 10s leave nothing to measure");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Setup")]
pub struct Scenario(Setup);

impl Scenario {
    /// The fields, to change them.
    #[must_use]
    pub fn into_setup(self) -> Setup {
        self.0
    }
}

impl Setup {
    /// The most that receivers grant of ECN: what they are told, else as much as anybody asks for who has a use for it.
    #[must_use]
    pub fn granted_ecn(&self) -> EcnRequest {
        let flows = self.flow.iter().any(FlowGroup::asks_accurate);
        let probes = self.probe.iter().any(|probe| asks_accurate(probe.cc, probe.ecn));
        let wanted = if flows || probes { EcnRequest::Accurate } else { EcnRequest::Classic };
        self.receiver.ecn.unwrap_or(wanted)
    }
}

impl TryFrom<Setup> for Scenario {
    type Error = ScenarioError;

    fn try_from(setup: Setup) -> Result<Self, ScenarioError> {
        bounds::check(&setup)?;
        Ok(Self(setup))
    }
}

impl Deref for Scenario {
    type Target = Setup;

    fn deref(&self) -> &Setup {
        &self.0
    }
}

/// What a [`Scenario`] is made of: flows, streams of UDP and probes from senders of their own to one receiver, across a path whose
/// bottleneck has the queue under test; and some the other way.
///
/// The default is 40 s of one CUBIC flow and an `ssh` probe over 50 Mbit/s and 50 ms, through `dualpi2`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// Its name.
    pub name: String,
    /// How long it runs.
    #[serde(with = "word")]
    pub duration: Duration,
    /// Figures are taken from here to the end.
    #[serde(with = "word")]
    pub warmup: Duration,
    /// The bottleneck.
    pub link: Link,
    /// The senders' interfaces.
    pub sender: SenderSide,
    /// The receiving program.
    pub receiver: ReceiverSide,
    /// Groups of flows.
    pub flow: Vec<FlowGroup>,
    /// Groups of UDP streams.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub udp: Vec<UdpGroup>,
    /// Probes.
    pub probe: Vec<ProbeGroup>,
    /// The interval of the time series.
    #[serde(
        default = "default_interval",
        skip_serializing_if = "is_default_interval",
        with = "word"
    )]
    pub interval: Duration,
    /// Whether the outcome has the distributions of delays beside their percentiles.
    #[serde(default, skip_serializing_if = "is_false")]
    pub distributions: bool,
    /// The length of a jiffy: the senders' kernels look at some things only so often. The reference kernel's is 10 ms.
    #[serde(default = "default_tick", skip_serializing_if = "is_default_tick", with = "word")]
    pub tick: Duration,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            name: "unnamed".to_owned(),
            duration: Duration::from_secs(40),
            warmup: Duration::from_secs(10),
            link: Link::default(),
            sender: SenderSide::default(),
            receiver: ReceiverSide::default(),
            flow: vec![FlowGroup::of(Algorithm::Cubic)],
            udp: Vec::new(),
            probe: vec![ProbeGroup::default()],
            interval: DEFAULT_INTERVAL,
            distributions: false,
            tick: DEFAULT_TICK,
        }
    }
}

const DEFAULT_TICK: Duration = Duration::from_millis(10);

const DEFAULT_INTERVAL: Duration = Duration::from_secs(1);

const fn default_interval() -> Duration {
    DEFAULT_INTERVAL
}

fn is_default_interval(interval: &Duration) -> bool {
    *interval == DEFAULT_INTERVAL
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_false(value: &bool) -> bool {
    !*value
}

const fn default_tick() -> Duration {
    DEFAULT_TICK
}

fn is_default_tick(tick: &Duration) -> bool {
    *tick == DEFAULT_TICK
}

const fn default_spacing() -> Duration {
    FLOW_SPACING
}

fn is_default_spacing(spacing: &Duration) -> bool {
    *spacing == FLOW_SPACING
}

/// The bottleneck link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Its rate, Ethernet headers included.
    #[serde(with = "word")]
    pub rate: Rate,
    /// The base round-trip time.
    #[serde(with = "word")]
    pub rtt: Duration,
    /// How much of it is on the way there, behind the queue; the rest is on the way back.
    #[serde(default, skip_serializing_if = "Duration::is_zero", with = "word")]
    pub forward: Duration,
    /// The queue discipline.
    #[serde(with = "word")]
    pub qdisc: QdiscLine,
    /// Random loss of packets behind the queue.
    #[serde(with = "word")]
    pub loss: Loss,
    /// The largest IP packet, in bytes.
    pub mtu: u32,
    /// Whether all flows and probes travel inside one tunnel: the queue sees one flow.
    #[serde(default, skip_serializing_if = "is_false")]
    pub tunnel: bool,
    /// Other rates that it has later, in the order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub step: Vec<RateStep>,
    /// What packets pass before the queue, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<Element>,
    /// What packets pass behind the queue and its loss, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub behind: Vec<Element>,
    /// What packets pass the other way; without it that way only delays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<UpLink>,
}

impl Link {
    /// The round-trip time when nothing waits: of the link itself and of all elements.
    #[must_use]
    pub fn base_rtt(&self) -> Duration {
        let up = self.up.iter().flat_map(|up| up.before.iter().chain(&up.behind));
        let delay = |element: &Element| match element {
            Element::Delay { delay, .. } => *delay,
            _ => Duration::ZERO,
        };
        self.rtt + self.before.iter().chain(&self.behind).chain(up).map(delay).sum::<Duration>()
    }

    /// The highest rate that it ever has.
    #[must_use]
    pub fn highest_rate(&self) -> Rate {
        self.step.iter().map(|step| step.rate).fold(self.rate, Rate::max)
    }
}

/// A change of a link's rate. What waits then stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateStep {
    /// When.
    #[serde(with = "word")]
    pub at: Duration,
    /// The rate from then on.
    #[serde(with = "word")]
    pub rate: Rate,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            rate: Rate::from_mbit(50),
            rtt: Duration::from_millis(50),
            forward: Duration::ZERO,
            qdisc: "dualpi2".parse().expect("a qdisc"),
            loss: Loss::NONE,
            mtu: 1500,
            tunnel: false,
            step: Vec::new(),
            before: Vec::new(),
            behind: Vec::new(),
            up: None,
        }
    }
}

/// The interface of each sender.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SenderSide {
    /// Its queue discipline.
    #[serde(with = "word")]
    pub qdisc: QdiscLine,
    /// Whether whole aggregates reach the bottleneck.
    pub gso: bool,
}

impl Default for SenderSide {
    fn default() -> Self {
        Self { qdisc: "fq".parse().expect("a qdisc"), gso: true }
    }
}

/// The receiving program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiverSide {
    /// It reads at most this often.
    #[serde(with = "word")]
    pub read_interval: Duration,
    /// The most that it grants of ECN (`tcp_ecn`); without it, what its flows want.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn: Option<EcnRequest>,
    /// When its acknowledgements have the option of Accurate ECN, if that is agreed on (`tcp_ecn_option`).
    #[serde(default, skip_serializing_if = "ecn_option::is_full", with = "ecn_option")]
    pub ecn_option: EcnOption,
}

/// Flows that are alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowGroup {
    /// The congestion control.
    #[serde(with = "word")]
    pub cc: CongestionControl,
    /// How many.
    pub count: u32,
    /// Which ECN they ask for. Prague asks for Accurate ECN in any case.
    pub ecn: EcnRequest,
    /// Whether their routes are declared to be ones whose marks mean a short queue (`ecn_low`), so that BBRv3 heeds marks.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ecn_low: bool,
    /// Whether Prague looks for classic queues that mark, and gives way there (`prague_ecn_fallback`).
    #[serde(default, skip_serializing_if = "is_false")]
    pub ecn_fallback: bool,
    /// When their packets have the option of Accurate ECN, if that is agreed on (`tcp_ecn_option`).
    #[serde(default, skip_serializing_if = "ecn_option::is_full", with = "ecn_option")]
    pub ecn_option: EcnOption,
    /// Whether their packets are ECT(1) and not ECT(0) where ECN is agreed on, whatever their congestion control is (the experiment
    /// of RFC 9332 §4.2).
    #[serde(default, skip_serializing_if = "is_false")]
    pub ect1: bool,
    /// Which way their data go.
    #[serde(default, skip_serializing_if = "Direction::is_down", with = "word")]
    pub direction: Direction,
    /// Bytes to send; no end without.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "optional_word")]
    pub size: Option<Size>,
    /// How long after one transfer of that size the next is due on the same connection; without it there is one.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "optional_word")]
    pub every: Option<Duration>,
    /// When the first of them starts.
    #[serde(default, skip_serializing_if = "Duration::is_zero", with = "word")]
    pub start: Duration,
    /// Whether they start evenly or at random.
    #[serde(default, skip_serializing_if = "Arrivals::is_even", with = "word")]
    pub arrivals: Arrivals,
    /// How far apart they start, or the mean of that.
    #[serde(
        default = "default_spacing",
        skip_serializing_if = "is_default_spacing",
        with = "word"
    )]
    pub spacing: Duration,
    /// What their round trips take longer than those of others, on the way back.
    #[serde(default, skip_serializing_if = "Duration::is_zero", with = "word")]
    pub extra_rtt: Duration,
    /// When they have nothing more to send; no end without.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "optional_word")]
    pub stop: Option<Duration>,
    /// How often their receivers read; that of [`ReceiverSide`] without.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "optional_word")]
    pub read_interval: Option<Duration>,
    /// The size of their receivers' buffers as programs ask for it (`SO_RCVBUF`, which Linux doubles); without it Linux tunes it.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "optional_word")]
    pub receive_buffer: Option<Bytes>,
    /// The size of their send buffers as programs ask for it (`SO_SNDBUF`, which Linux doubles); without it Linux tunes it.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "optional_word")]
    pub send_buffer: Option<Bytes>,
    /// How many bytes of what they have written may be unsent while they write more (`TCP_NOTSENT_LOWAT`); as many as the send buffer
    /// takes without.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "optional_word")]
    pub notsent_lowat: Option<Bytes>,
    /// Whether they use TCP Fast Open (RFC 7413): the first of them asks the receiver for a cookie, and whoever starts when it is there
    /// sends the first data with the SYN.
    #[serde(default, skip_serializing_if = "is_false")]
    pub fast_open: bool,
}

impl FlowGroup {
    /// Whether they ask for Accurate ECN.
    #[must_use]
    pub fn asks_accurate(&self) -> bool {
        asks_accurate(self.cc, self.ecn)
    }

    /// One flow from the beginning to the end, with ECN if `cc` needs it.
    #[must_use]
    pub fn of(cc: impl Into<CongestionControl>) -> Self {
        let cc = cc.into();
        let ecn = cc.needs_ecn().into();
        Self {
            cc,
            count: 1,
            ecn,
            ecn_low: false,
            ecn_fallback: false,
            ecn_option: EcnOption::Full,
            ect1: false,
            direction: Direction::Down,
            size: None,
            every: None,
            start: Duration::ZERO,
            arrivals: Arrivals::Even,
            spacing: FLOW_SPACING,
            extra_rtt: Duration::ZERO,
            stop: None,
            read_interval: None,
            receive_buffer: None,
            send_buffer: None,
            notsent_lowat: None,
            fast_open: false,
        }
    }

    /// When the last of them starts, which are the group of a number.
    #[must_use]
    pub fn last_start(&self, number: usize) -> Duration {
        match self.arrivals {
            Arrivals::Even => {
                let others = self.count.saturating_sub(1);
                self.start.saturating_add(self.spacing.saturating_mul(others))
            }
            Arrivals::Poisson => {
                self.transfers(number).last().map_or(self.start, |transfer| transfer.start)
            }
        }
    }
}

/// By themselves, or by their congestion control.
fn asks_accurate(cc: CongestionControl, ecn: EcnRequest) -> bool {
    ecn == EcnRequest::Accurate || cc.ecn_style() == EcnStyle::Accurate
}

/// What measures round trips, as a person at a terminal, `ping` or a browser does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeGroup {
    /// What kind.
    #[serde(with = "word")]
    pub kind: ProbeKind,
    /// The pause after each answer of `ssh` and `request`; between one `ping` and the next.
    #[serde(with = "word")]
    pub interval: Duration,
    /// The congestion control.
    #[serde(with = "word")]
    pub cc: CongestionControl,
    /// Which ECN it asks for.
    pub ecn: EcnRequest,
    /// How many bytes the answer to a `request` has. What the other kinds send is given by their kind.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "optional_word")]
    pub size: Option<Bytes>,
}

impl ProbeGroup {
    /// The answer's bytes, of those of kind [`Request`](ProbeKind::Request) that leave it open.
    pub const REQUEST_SIZE: Bytes = Bytes(64 << 10);

    /// The bytes of each answer to a `request`.
    #[must_use]
    pub fn answer_size(&self) -> Bytes {
        self.size.unwrap_or(Self::REQUEST_SIZE)
    }
}

impl Default for ProbeGroup {
    fn default() -> Self {
        Self {
            kind: ProbeKind::Ssh,
            interval: Duration::from_millis(50),
            cc: Algorithm::Cubic.into(),
            ecn: EcnRequest::Off,
            size: None,
        }
    }
}

/// The kinds of probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProbeKind {
    /// A small request and response over TCP.
    Ssh,
    /// An ICMP echo.
    Ping,
    /// A small question over TCP, whose answer is so large that it takes some packets, through the queue under test: from the
    /// question to the answer's last byte.
    Request,
}

impl ProbeKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Ssh, Self::Ping, Self::Request];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ssh => "ssh",
            Self::Ping => "ping",
            Self::Request => "request",
        }
    }
}

named!(ProbeKind, "kind of probe");
