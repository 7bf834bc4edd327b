//! Scenarios drawn at random from the whole language: what tests of worlds against each other, and of the model against its own rules, are
//! made of.

use std::time::Duration;

use dualq_qdisc::{Random as _, SplitMix64};
use dualq_tcp::{Algorithm, EcnOption};
use dualq_units::{Bytes, Ecn, Exact, Rate};

use crate::ecn::EcnRequest;
use crate::loss::Loss;
use crate::path::{Direction, Element, UpLink};
use crate::scenario::{
    FlowGroup, Link, ProbeGroup, ProbeKind, RateStep, ReceiverSide, Scenario, SenderSide, Setup,
};
use crate::sizes::Size;
use crate::traffic::{Arrivals, UdpGroup, UdpKind};

/// What a drawn scenario has beside flows and probes across one bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Nothing.
    Dumbbell,
    /// A bottleneck in each direction, and flows both ways.
    TwoWay,
    /// A rate that changes.
    Steps,
    /// More hops: queues, delays with jitter, loss, copies, smaller packets.
    Hops,
    /// Streams of UDP.
    Udp,
    /// Transfers at random, of different sizes, or again and again.
    Transfers,
    /// Receivers with limits of their own.
    Receivers,
    /// Nothing, but queue disciplines that the other classes do not draw: one after the other by the seed.
    Queues,
    /// Nothing, but shapers, paths and bands: `htb`, `tbf`, `netem` and `prio`, one after the other by the seed.
    Shapers,
    /// Programs that ask for answers of many packets, beside bulk transfers or alone.
    Requests,
    /// Accurate ECN through queues that mark, also with receivers that grant less or leave its option out.
    Accurate,
    /// Nothing that chance decides, and something of most other classes: two worlds can send the same packets at the same times.
    Exact,
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Dumbbell,
        Self::TwoWay,
        Self::Steps,
        Self::Hops,
        Self::Udp,
        Self::Transfers,
        Self::Receivers,
        Self::Queues,
        Self::Shapers,
        Self::Requests,
        Self::Accurate,
        Self::Exact,
    ];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dumbbell => "dumbbell",
            Self::TwoWay => "two-way",
            Self::Steps => "steps",
            Self::Hops => "hops",
            Self::Udp => "udp",
            Self::Transfers => "transfers",
            Self::Receivers => "receivers",
            Self::Queues => "queues",
            Self::Shapers => "shapers",
            Self::Requests => "requests",
            Self::Accurate => "accurate",
            Self::Exact => "exact",
        }
    }
}

/// What the class [`Class::Queues`] goes through.
const QUEUES: [&str; 5] = ["fq_codel", "red", "sfq", "fq_pie", "cake"];
/// What the class [`Class::Shapers`] goes through; of paths there is most to draw.
const SHAPERS: [&str; 5] = ["netem", "htb", "netem", "tbf", "prio"];

/// What is on its way at once is no more than real senders' buffers hold.
const MOST_IN_FLIGHT: f64 = 40e6;
/// What is sent in a run is no more than takes a few seconds to simulate.
const MOST_BYTES: f64 = 1.5e9;

/// A scenario of a class, which follows from `seed`; it is called by both.
#[must_use]
pub fn draw(class: Class, seed: u64) -> Scenario {
    let mut dice = Dice(SplitMix64::new(seed ^ (class as u64) << 56));
    let dice = &mut dice;
    let name = format!("{}-{seed}", class.name());
    // What does not listen is not slowed down by anything, and each packet is sent by a program.
    let rate = dice.log_uniform(1e6, if class == Class::Udp { 1e8 } else { 1e9 });
    let longest = (MOST_IN_FLIGHT * 8e3 / rate).min(300.0);
    let rtt_ms = dice.log_uniform(0.3, longest);
    let seconds = (MOST_BYTES * 8.0 / rate).clamp(8.0, 24.0).round() as u64;
    let in_flight = (rate * rtt_ms / 8e3).max(15_000.0);
    let rtt = micros(rtt_ms * 1e3);
    let mut setup = Setup {
        name,
        duration: Duration::from_secs(seconds),
        warmup: Duration::from_secs(seconds / 4),
        link: Link {
            rate: round_rate(rate),
            rtt,
            forward: if dice.one_in(3) { rtt / 3 } else { Duration::ZERO },
            qdisc: match class {
                Class::Queues => dice.other_qdisc(seed, rate, in_flight),
                Class::Shapers => dice.shaper(seed, rate, in_flight),
                Class::Accurate => dice.marking_qdisc(rate, in_flight),
                Class::Exact => dice.certain_qdisc(in_flight),
                _ => dice.qdisc(in_flight),
            }
            .parse()
            .expect("a qdisc"),
            loss: if class != Class::Exact && dice.one_in(6) { dice.loss() } else { Loss::NONE },
            mtu: dice.pick(&[1500, 1500, 1500, 1280, 9000]),
            ..Link::default()
        },
        sender: SenderSide {
            qdisc: dice.pick(&["fq", "fq", "fq", "pfifo_fast"]).parse().expect("a qdisc"),
            gso: !dice.one_in(3),
        },
        receiver: ReceiverSide::default(),
        flow: (0..dice.pick(&[1, 1, 2])).map(|_| dice.flow(seconds)).collect(),
        probe: vec![dice.probe()],
        ..Setup::default()
    };
    match class {
        Class::Dumbbell | Class::Queues | Class::Shapers => {}
        Class::TwoWay => dice.two_ways(&mut setup, rate, in_flight),
        Class::Steps => dice.steps(&mut setup, rate),
        Class::Hops => dice.hops(&mut setup, rate),
        Class::Udp => dice.udp(&mut setup, rate),
        Class::Transfers => dice.transfers(&mut setup, rate),
        Class::Receivers => dice.receivers(&mut setup, in_flight),
        Class::Requests => dice.requests(&mut setup, rate),
        Class::Accurate => dice.accurate(&mut setup),
        Class::Exact => dice.exact(&mut setup, rate, in_flight),
    }
    for group in &mut setup.flow {
        if group.cc.needs_ecn() {
            group.ecn = true.into();
        }
    }
    let words = setup.link.qdisc.text().to_owned();
    // DCTCP's packets are ECT(0).
    let has_dctcp = setup.flow.iter().any(|group| group.cc.needs_ecn());
    if has_dctcp && words.starts_with("dualpi2") && !words.contains("any_ect") {
        setup.link.qdisc = format!("{words} any_ect").parse().expect("a qdisc");
    }
    Scenario::try_from(setup).expect("what is drawn makes sense")
}

struct Dice(SplitMix64);

impl Dice {
    /// Within [0, 1).
    fn share(&mut self) -> f64 {
        f64::from(self.0.next_u32()) / 2_f64.powi(32)
    }

    fn one_in(&mut self, many: u32) -> bool {
        self.below(many) == 0
    }

    fn below(&mut self, bound: u32) -> u32 {
        ((u64::from(self.0.next_u32()) * u64::from(bound)) >> 32) as u32
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u32) as usize]
    }

    fn log_uniform(&mut self, least: f64, most: f64) -> f64 {
        least * (most / least).powf(self.share())
    }

    fn millis(&mut self, least: f64, most: f64) -> Exact<Duration> {
        Exact(micros(self.log_uniform(least, most) * 1e3))
    }

    fn loss(&mut self) -> Loss {
        Loss::from_percent((self.log_uniform(0.01, 3.0) * 1e3).round() / 1e3)
    }

    /// A discipline in tc's words, for a link on which so many bytes are on their way.
    fn qdisc(&mut self, in_flight: f64) -> String {
        let kind = self.pick(&[
            "fq",
            "fq_codel",
            "codel",
            "pie",
            "dualpi2",
            "dualpi2",
            "bfifo",
            "pfifo",
            "pfifo_fast",
        ]);
        let options = match kind {
            "fq_codel" if self.one_in(2) => {
                let (target, interval) = (self.millis(1.0, 20.0), self.millis(20.0, 200.0));
                let more = self.pick(&["", " noecn", " ce_threshold 1ms", " flows 32"]);
                format!(" target {target} interval {interval}{more}")
            }
            "codel" if self.one_in(2) => {
                let (target, interval) = (self.millis(1.0, 20.0), self.millis(30.0, 200.0));
                format!(" target {target} interval {interval} ecn")
            }
            "codel" => self.pick(&["", " ecn"]).to_owned(),
            "pie" if self.one_in(2) => format!(" target {} ecn", self.millis(2.0, 40.0)),
            "pie" => self.pick(&["", " ecn", " bytemode"]).to_owned(),
            "dualpi2" => self
                .pick(&[
                    "",
                    " any_ect",
                    " target 5ms",
                    " max_rtt 100ms typical_rtt 10ms",
                    " drop_enqueue",
                    " coupling_factor 4",
                    " step_thresh 5ms",
                    " limit 400",
                    " no_split_gso",
                    " classic_protection 25%",
                ])
                .to_owned(),
            "bfifo" => format!(" limit {}", (in_flight * self.log_uniform(0.3, 6.0)) as u64),
            "pfifo" => {
                let packets = (in_flight / 1500.0 * self.log_uniform(0.3, 6.0)) as u64;
                format!(" limit {}", packets.max(5))
            }
            _ => String::new(),
        };
        kind.to_owned() + &options
    }

    /// A discipline of the class [`Class::Queues`], for a link of `rate` bits per second on which so many bytes are on their way.
    fn other_qdisc(&mut self, seed: u64, rate: f64, in_flight: f64) -> String {
        let kind = QUEUES[(seed % QUEUES.len() as u64) as usize];
        let options = match kind {
            "fq_codel" => {
                let selector = self.pick(&["0x02/0x03", "0x01/0x03", "0x02/0x02"]);
                let more = self.pick(&["", "", " noecn", " flows 32"]);
                format!(
                    " ce_threshold {} ce_threshold_selector {selector}{more}",
                    self.millis(0.5, 8.0)
                )
            }
            "red" => {
                let packets = in_flight / 1500.0 * self.log_uniform(0.1, 1.5);
                let min = packets.clamp(4.0, 200.0) as u64 * 1500;
                let words = ["", "", " ecn", " ecn harddrop", " adaptive", " ecn adaptive"];
                format!(
                    " limit {} min {min} max {} avpkt 1500 bandwidth {}{}",
                    min * self.pick(&[4, 8, 12]),
                    min * 3,
                    Exact(round_rate(rate)),
                    self.pick(&words)
                )
            }
            "sfq" => {
                let words = ["", "", " perturb 5", " headdrop", " quantum 3028 depth 60"];
                let limit = (in_flight / 1500.0 * self.log_uniform(0.3, 3.0)).max(20.0) as u64;
                let limited =
                    if self.one_in(2) { format!(" limit {limit}") } else { String::new() };
                limited + self.pick(&words)
            }
            "fq_pie" if self.one_in(2) => {
                let more = self.pick(&["", " ecn", " ecn", " flows 32", " bytemode"]);
                format!(" target {}{more}", self.millis(2.0, 40.0))
            }
            "fq_pie" => self.pick(&["", " ecn"]).to_owned(),
            _ => {
                let share = self.pick(&[0.95, 0.9, 0.8]);
                let shaped = format!(" bandwidth {}", Exact(round_rate(rate * share)));
                let mode =
                    self.pick(&["", "", " besteffort", " besteffort flows", " dual-srchost"]);
                let link = self.pick(&["", "", " overhead 38 mpu 84", " atm overhead 40"]);
                let more = self.pick(&["", "", " rtt 30ms", " ingress", " no-split-gso"]);
                let shaped = if self.one_in(4) { "" } else { &shaped };
                format!("{shaped}{mode}{link}{more}")
            }
        };
        kind.to_owned() + &options
    }

    /// A discipline of the class [`Class::Accurate`], which marks.
    fn marking_qdisc(&mut self, rate: f64, in_flight: f64) -> String {
        match self.below(7) {
            0 => "fq_codel".to_owned(),
            1 => "codel ecn".to_owned(),
            2 => format!("pie target {} ecn", self.millis(2.0, 40.0)),
            3 => "dualpi2".to_owned(),
            4 => "dualpi2 any_ect".to_owned(),
            5 => "cake".to_owned(),
            _ => {
                let packets = in_flight / 1500.0 * self.log_uniform(0.2, 1.0);
                let min = packets.clamp(4.0, 200.0) as u64 * 1500;
                let (limit, max, bandwidth) = (min * 12, min * 3, Exact(round_rate(rate)));
                format!(
                    "red limit {limit} min {min} max {max} avpkt 1500 bandwidth {bandwidth} ecn"
                )
            }
        }
    }

    /// A discipline of the class [`Class::Exact`], for a link on which so many bytes are on their way: it draws no random numbers.
    fn certain_qdisc(&mut self, in_flight: f64) -> String {
        let bytes = in_flight * self.log_uniform(0.3, 6.0);
        match self.below(8) {
            0 | 1 => format!("bfifo limit {}", bytes as u64),
            2 | 3 => format!("pfifo limit {}", (bytes / 1500.0).max(5.0) as u64),
            4 => "pfifo_fast".to_owned(),
            5 => "fq_codel".to_owned(),
            6 => "fq".to_owned(),
            _ => self.pick(&["codel", "codel ecn", "codel ecn ce_threshold 1ms"]).to_owned(),
        }
    }

    /// A discipline of the class [`Class::Shapers`]. Shapers send less than the link, so that what is inside them holds the queue.
    fn shaper(&mut self, seed: u64, rate: f64, in_flight: f64) -> String {
        let kind = SHAPERS[(seed % SHAPERS.len() as u64) as usize];
        let shaped = rate * self.pick(&[0.95, 0.9, 0.7]);
        let at = Exact(round_rate(shaped));
        let packets = (in_flight / 1500.0 * self.log_uniform(0.5, 4.0)).max(20.0) as u64;
        let leaf = match self.below(4) {
            0 => "dualpi2 target 5ms".to_owned(),
            1 => "fq_codel".to_owned(),
            2 => format!("pfifo limit {packets}"),
            _ => "codel ecn".to_owned(),
        };
        // What is sent at once: some packets, or some milliseconds.
        let burst = (shaped / 8e3 * self.log_uniform(0.2, 8.0)).max(10_000.0) as u64;
        match kind {
            "htb" => {
                let ceil = self.pick(&["", "", " ceil"]);
                let ceil = if ceil.is_empty() {
                    String::new()
                } else {
                    format!("{ceil} {}", Exact(round_rate(rate)))
                };
                let bursts = self.pick(&[0, 1, 2]);
                let bursts = match bursts {
                    0 => String::new(),
                    1 => format!(" burst {burst}"),
                    _ => format!(" burst {burst} cburst {}", burst / 2),
                };
                format!("htb rate {at}{ceil}{bursts} leaf {leaf}")
            }
            // An aggregate that is longer than the bucket is cut.
            "tbf" => {
                let limit = match self.below(3) {
                    0 => format!(" limit {}", packets * 1500),
                    _ => format!(" latency {}", self.millis(10.0, 200.0)),
                };
                let peak = match self.below(3) {
                    0 => format!(" peakrate {} mtu 10000", Exact(round_rate(shaped * 2.0))),
                    _ => String::new(),
                };
                let inside = if self.one_in(2) { format!(" leaf {leaf}") } else { String::new() };
                format!("tbf rate {at} burst {burst}{limit}{peak}{inside}")
            }
            "prio" => {
                self.pick(&["prio", "prio bands 5", "prio priomap 2 2 2 2 2 2 0 0"]).to_owned()
            }
            _ => {
                let limit = packets.max(1000) * 4;
                let delay = self.log_uniform(1.0, 20.0);
                let (delay, jitter) =
                    (micros(delay * 1e3), micros(delay * 1e3 / self.log_uniform(3.0, 20.0)));
                let (delay, jitter) = (Exact(delay), Exact(jitter));
                let share = self.loss();
                let more = match self.below(10) {
                    0 => format!(" loss gemodel {share} 20%"),
                    1 => format!(" loss gemodel {share} 30% 50% 0.01%"),
                    2 => format!(" loss state {share} 30% 50% 40% 0.05%"),
                    3 => format!(" loss {share} 25%"),
                    4 => format!(" corrupt {share}"),
                    5 => format!(" duplicate {share}"),
                    6 => format!(" delay {delay} reorder {share} gap 3"),
                    7 => format!(" delay {delay} {jitter} distribution normal"),
                    8 => format!(" delay {delay} {jitter} distribution paretonormal rate {at}"),
                    _ => format!(" rate {at} 20 48 5"),
                };
                let slots = if self.one_in(5) { " slot 1ms 3ms" } else { "" };
                format!("netem limit {limit}{more}{slots}")
            }
        }
    }

    fn flow(&mut self, seconds: u64) -> FlowGroup {
        let cc = self.pick(&[
            Algorithm::Reno,
            Algorithm::Cubic,
            Algorithm::Cubic,
            Algorithm::Bbr,
            Algorithm::Bbr,
            Algorithm::Dctcp,
        ]);
        let half = seconds as u32 / 2;
        FlowGroup {
            count: self.pick(&[1, 1, 1, 2, 4, 8]),
            ecn: self.one_in(3).into(),
            start: Duration::from_secs(if self.one_in(5) { self.below(half).into() } else { 0 }),
            stop: self.one_in(6).then(|| Duration::from_secs((half + 1 + self.below(half)).into())),
            extra_rtt: if self.one_in(5) { self.millis(1.0, 100.0).0 } else { Duration::ZERO },
            ..FlowGroup::of(cc)
        }
    }

    fn probe(&mut self) -> ProbeGroup {
        ProbeGroup {
            kind: self.pick(&[ProbeKind::Ssh, ProbeKind::Ssh, ProbeKind::Ping]),
            interval: Duration::from_millis(self.pick(&[20, 50, 100])),
            ..ProbeGroup::default()
        }
    }

    fn two_ways(&mut self, setup: &mut Setup, rate: f64, in_flight: f64) {
        let up = round_rate(rate / self.pick(&[1.0, 2.0, 5.0, 10.0, 20.0]));
        let own = self.one_in(2).then(|| self.qdisc(in_flight).parse().expect("a qdisc"));
        let loss = if self.one_in(5) { self.loss() } else { Loss::NONE };
        setup.link.up = Some(UpLink { rate: Some(up), qdisc: own, loss, ..UpLink::default() });
        let seconds = setup.duration.as_secs();
        for _ in 0..self.pick(&[0, 1, 1, 2]) {
            let group = self.flow(seconds);
            setup.flow.push(FlowGroup { direction: Direction::Up, ..group });
        }
    }

    fn steps(&mut self, setup: &mut Setup, rate: f64) {
        let count = self.pick(&[1, 2, 4, 40]);
        setup.link.step = (1..=count)
            .map(|number| RateStep {
                at: setup.duration * number / (count + 1),
                rate: round_rate(rate * self.log_uniform(0.1, 1.0)),
            })
            .collect();
    }

    fn hops(&mut self, setup: &mut Setup, rate: f64) {
        let mut element = || match self.below(6) {
            0 | 1 => {
                let delay = self.millis(0.2, 30.0).0;
                let jitter = self.pick(&[0, 0, 1, 3]);
                Element::Delay { delay, jitter: delay * jitter / 10, reorder: true }
            }
            2 => Element::Loss(self.loss()),
            3 => Element::Duplicate(self.loss()),
            4 => Element::Queue {
                rate: round_rate(rate * self.log_uniform(0.5, 2.0)),
                qdisc: self.pick(&["pfifo limit 200", "fq_codel", "codel"]).parse().expect("one"),
            },
            _ => Element::Mtu { mtu: self.pick(&[1280, 1400, 1500]), icmp: true },
        };
        let (first, second) = (element(), element());
        let third = element();
        setup.link.behind = vec![first];
        match self.below(3) {
            0 => setup.link.before = vec![second],
            1 => setup.link.behind.push(second),
            _ => {
                let up = UpLink { behind: vec![second, third], ..UpLink::default() };
                setup.link.up = Some(up);
            }
        }
    }

    fn udp(&mut self, setup: &mut Setup, rate: f64) {
        for _ in 0..self.pick(&[1, 1, 2]) {
            let kind = self.pick(&UdpKind::ALL);
            let (packet, every) = kind.pattern();
            let packet = match kind {
                UdpKind::Cbr => self.pick(&[100, 600, 1200]),
                _ => packet,
            };
            let share = self.pick(&[0.05, 0.2, 0.5, 0.9, 1.2, 2.0]);
            let interval =
                every.unwrap_or_else(|| UdpGroup::interval_for(round_rate(rate * share), packet));
            setup.udp.push(UdpGroup {
                kind,
                packet,
                interval,
                count: if kind == UdpKind::Cbr { 1 } else { self.pick(&[1, 4]) },
                ecn: self.pick(&[Ecn::NotEct, Ecn::NotEct, Ecn::Ect0, Ecn::Ect1]),
                direction: Direction::Down,
                ..UdpGroup::default()
            });
        }
    }

    fn transfers(&mut self, setup: &mut Setup, rate: f64) {
        let template = self.flow(setup.duration.as_secs());
        let short = FlowGroup { start: Duration::ZERO, stop: None, ..template };
        let size = |bytes: f64| Size::Fixed(Bytes(bytes.round() as u64));
        setup.flow.push(if self.one_in(3) {
            let every = Duration::from_secs(self.pick(&[1, 2, 4]));
            let share = self.pick(&[0.1, 0.3]);
            let bytes = rate / 8.0 * share * every.as_secs_f64();
            FlowGroup { size: Some(size(bytes)), every: Some(every), count: 1, ..short }
        } else {
            let spacing = Duration::from_millis(self.pick(&[50, 200, 500]));
            let fitting = setup.duration.as_millis() / spacing.as_millis() / 2;
            let bytes = (rate / 8.0 * spacing.as_secs_f64() * 0.6).max(4_000.0);
            let size = match self.below(2) {
                0 => size(bytes),
                _ => Size::LogUniform(Bytes(2_000), Bytes(bytes as u64 * 3)),
            };
            let count = u32::try_from(fitting).unwrap_or(u32::MAX).clamp(2, 200);
            let arrivals = self.pick(&[Arrivals::Even, Arrivals::Poisson]);
            let mut group = FlowGroup { size: Some(size), count, spacing, arrivals, ..short };
            while group.count > 1 && group.last_start(setup.flow.len()) >= setup.duration {
                group.count -= 1;
            }
            group
        });
    }

    fn receivers(&mut self, setup: &mut Setup, in_flight: f64) {
        for group in &mut setup.flow {
            if self.one_in(2) {
                group.read_interval = Some(self.millis(1.0, 50.0).0);
            } else {
                let bytes = (in_flight * self.log_uniform(0.5, 4.0)).clamp(10_000.0, 30e6);
                group.receive_buffer = Some(Bytes(bytes as u64));
            }
        }
    }

    fn accurate(&mut self, setup: &mut Setup) {
        let options = [EcnOption::Full, EcnOption::Full, EcnOption::Minimum, EcnOption::Disabled];
        for (number, group) in setup.flow.iter_mut().enumerate() {
            group.cc = self.pick(&[Algorithm::Reno, Algorithm::Cubic]).into();
            // One asks for it at least.
            group.ecn = match number {
                0 => EcnRequest::Accurate,
                _ => self.pick(&[EcnRequest::Accurate, EcnRequest::Classic, EcnRequest::Off]),
            };
            if group.asks_accurate() {
                group.ecn_option = self.pick(&options);
            }
        }
        // Most receivers grant it, and only then is there an option to leave out.
        if self.one_in(4) {
            setup.receiver.ecn = Some(self.pick(&[EcnRequest::Classic, EcnRequest::Off]));
        } else {
            setup.receiver.ecn_option = self.pick(&options);
        }
    }

    /// A few seconds of flows whose controllers draw no random numbers either.
    fn exact(&mut self, setup: &mut Setup, rate: f64, in_flight: f64) {
        setup.duration = Duration::from_secs(4);
        setup.warmup = Duration::from_secs(1);
        let up = round_rate(rate / self.pick(&[1.0, 2.0, 10.0]));
        setup.link.up = self.one_in(4).then(|| UpLink { rate: Some(up), ..UpLink::default() });
        setup.flow = (0..self.pick(&[1, 1, 2, 3])).map(|_| self.exact_flow(in_flight)).collect();
        for group in &mut setup.flow {
            if setup.link.up.is_some() && self.one_in(2) {
                group.direction = Direction::Up;
            }
        }
        setup.probe[0].kind =
            self.pick(&[ProbeKind::Ssh, ProbeKind::Ssh, ProbeKind::Ping, ProbeKind::Request]);
        if setup.probe[0].kind == ProbeKind::Request {
            let bytes = self.log_uniform(1e3, (rate / 80.0).clamp(4e3, 1e6));
            setup.probe[0].size = Some(Bytes(bytes as u64));
        }
    }

    fn exact_flow(&mut self, in_flight: f64) -> FlowGroup {
        let cc =
            self.pick(&[Algorithm::Reno, Algorithm::Cubic, Algorithm::Cubic, Algorithm::Dctcp]);
        let mut group = FlowGroup {
            count: self.pick(&[1, 1, 1, 2, 5]),
            ecn: self.pick(&[
                EcnRequest::Off,
                EcnRequest::Off,
                EcnRequest::Classic,
                EcnRequest::Accurate,
            ]),
            spacing: Duration::from_millis(self.pick(&[0, 0, 50])),
            ..FlowGroup::of(cc)
        };
        if self.one_in(4) {
            group.start = Duration::from_millis(self.below(2000).into());
        }
        if self.one_in(6) {
            group.stop = Some(Duration::from_millis(u64::from(2500 + self.below(1000))));
        }
        if self.one_in(6) {
            group.extra_rtt = self.millis(1.0, 100.0).0;
        }
        let room = Bytes((in_flight * self.log_uniform(0.5, 4.0)).clamp(20_000.0, 30e6) as u64);
        match self.below(12) {
            0 | 1 => group.read_interval = Some(Duration::from_millis(self.pick(&[2, 10]))),
            2 => group.receive_buffer = Some(room),
            3 => group.send_buffer = Some(room),
            4 => group.notsent_lowat = Some(Bytes(self.pick(&[16_384, 131_072]))),
            5 | 6 => {
                let bytes = self.log_uniform(2e3, in_flight * 4.0);
                group.size = Some(Size::Fixed(Bytes(bytes as u64)));
                if self.one_in(2) {
                    group.every = Some(Duration::from_secs(1));
                    group.count = 1;
                }
            }
            _ => {}
        }
        group
    }

    fn requests(&mut self, setup: &mut Setup, rate: f64) {
        if self.one_in(3) {
            setup.flow.clear();
        }
        for _ in 0..self.pick(&[1, 1, 2, 3]) {
            // At most a second of the link for each answer, so that there are some.
            let bytes = self.log_uniform(1e3, (rate / 8.0).clamp(4e3, 10e6));
            setup.probe.push(ProbeGroup {
                kind: ProbeKind::Request,
                interval: Duration::from_millis(self.pick(&[50, 200, 500])),
                cc: self.pick(&[Algorithm::Cubic, Algorithm::Cubic, Algorithm::Bbr]).into(),
                ecn: self.one_in(3).into(),
                size: Some(Bytes(bytes.round() as u64)),
            });
        }
    }
}

/// A rate of two digits.
fn round_rate(bits: f64) -> Rate {
    let unit = 10_f64.powf(bits.log10().floor() - 1.0);
    Rate::from_bits_per_second(((bits / unit).round() * unit).round() as u64)
}

/// Whole microseconds.
fn micros(micros: f64) -> Duration {
    Duration::from_micros(micros.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a scenario has what its class promises and no other class does.
    fn has_what_it_promises(class: Class, setup: &Setup) -> bool {
        let Setup { link, flow, udp, probe, .. } = setup;
        let up = link.up.as_ref();
        let is_plain = |group: &FlowGroup| {
            group.arrivals.is_even() && group.size.is_none() && group.every.is_none()
        };
        if class == Class::Exact {
            return flow.iter().all(|group| !matches!(group.cc.name(), "bbr" | "bbr3" | "prague"))
                && link.loss.is_none()
                && ["pie", "red", "dualpi2", "cake", "sfq", "netem"]
                    .iter()
                    .all(|kind| !link.qdisc.text().contains(kind));
        }
        let has = [
            (Class::TwoWay, up.is_some_and(|up| up.rate.is_some())),
            (Class::Steps, !link.step.is_empty()),
            (Class::Hops, !link.behind.is_empty()),
            (Class::Udp, !udp.is_empty()),
            (Class::Transfers, !flow.iter().all(is_plain)),
            (
                Class::Receivers,
                flow.iter()
                    .any(|group| group.read_interval.is_some() || group.receive_buffer.is_some()),
            ),
            (Class::Requests, probe.iter().any(|probe| probe.kind == ProbeKind::Request)),
            (Class::Accurate, flow.iter().any(|group| group.ecn == EcnRequest::Accurate)),
            (
                Class::Queues,
                class != Class::Accurate && {
                    let words = link.qdisc.text();
                    ["red", "sfq", "fq_pie", "cake"].iter().any(|kind| words.starts_with(kind))
                        || words.contains("ce_threshold_selector")
                },
            ),
        ];
        has.into_iter().all(|(other, has)| has == (other == class))
    }

    #[test]
    fn what_is_drawn_makes_sense_and_has_what_its_class_promises() {
        for class in Class::ALL {
            for seed in 0..200 {
                let scenario = draw(class, seed);
                assert_eq!(scenario, draw(class, seed));
                let json = serde_json::to_string(&scenario).unwrap();
                assert_eq!(serde_json::from_str::<Scenario>(&json).unwrap(), scenario);
                assert!(has_what_it_promises(class, &scenario), "{} {seed}", class.name());
            }
        }
    }
}
