//! What people write: a TOML file whose values may be lists.

use std::time::Duration;

use dualq_qdisc::grammar;
use dualq_units::{Bytes, Rate, tc_time};

use crate::reader::{Placed, PlanError, Table, boolean, line_of, nearest, number, parse, text};
use crate::scenario::{
    CONGESTION_CONTROLS, DEFAULT_INTERVAL, DEFAULT_TICK, FlowGroup, Link, Loss, PROBE_KINDS,
    ProbeGroup, ReceiverSide, Scenario, SenderSide, show_time,
};

/// The plan that stands behind every other: what a file or the command line does not say comes from here.
pub const DEFAULTS: &str = r#"
name = "unnamed"
duration = "40s"
warmup = "10s"
[link]
rate = "50mbit"
rtt = "50ms"
qdisc = "dualpi2"
loss = "0%"
mtu = 1500
[sender]
qdisc = "fq"
gso = true
[receiver]
read_interval = "0ms"
[[flow]]
cc = "cubic"
[[probe]]
kind = "ssh"
"#;

/// One or more scenarios, written as one.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Its name.
    pub name: String,
    /// What it shows, in a sentence.
    pub about: String,
    /// What was published about it, and where.
    pub published: Vec<String>,
    duration: Duration,
    warmup: Duration,
    interval: Duration,
    rate: Vec<Rate>,
    rtt: Vec<Duration>,
    forward: Duration,
    qdisc: Vec<String>,
    loss: Vec<Loss>,
    mtu: Vec<u32>,
    sender_qdisc: Vec<String>,
    gso: Vec<bool>,
    read_interval: Vec<Duration>,
    flows: Vec<Flows>,
    probes: Vec<ProbeGroup>,
}

#[derive(Clone, Debug)]
struct Flows {
    cc: Vec<String>,
    count: Vec<u32>,
    /// Empty if it is left open: only who needs ECN then asks for it.
    ecn: Vec<bool>,
    size: Option<Bytes>,
    start: Duration,
    stop: Option<Duration>,
}

/// What the command line says instead of the file. Empty lists say nothing.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// The bottleneck's queue disciplines.
    pub qdisc: Vec<String>,
    /// The congestion controls of every group of flows.
    pub cc: Vec<String>,
    /// The bottleneck's rates.
    pub rate: Vec<String>,
    /// The base round-trip times.
    pub rtt: Vec<String>,
    /// How long it runs.
    pub duration: Option<String>,
    /// The interval of the time series.
    pub interval: Option<String>,
}

/// One scenario of a plan, and what sets it apart from the others.
#[derive(Clone, Debug)]
pub struct Variant {
    /// `(what, value)` of each value that was a list: `("qdisc", "fq_codel")`.
    pub settings: Vec<(String, String)>,
    /// The scenario.
    pub scenario: Scenario,
}

/// More would hardly be meant, and never be read.
const MOST_VARIANTS: usize = 10_000;

/// The least MTU that IPv4 hosts must take (RFC 791 §3.1); TCP over less is a case of its own.
const LEAST_MTU: u32 = 576;

impl Plan {
    /// Reads a plan from TOML. What it leaves open comes from [`DEFAULTS`].
    ///
    /// # Errors
    /// If it is not TOML, has unknown keys, or a value makes no sense: with the line, and what would be right.
    pub fn parse(source: &str) -> Result<Self, PlanError> {
        let defaults = Self::read(DEFAULTS, None)?;
        Self::read(source, Some(&defaults))
    }

    fn read(source: &str, defaults: Option<&Self>) -> Result<Self, PlanError> {
        let document = parse(source)?;
        let mut top = Table::top(source, document.get_ref());
        let any_text = || text(|word| Ok(word.to_owned()));
        let name = top.one("name", any_text())?;
        let about = top.one("about", any_text())?;
        let published = top.list("published", any_text())?;
        let duration = top.one("duration", text(positive_time))?;
        let warmup = top.one("warmup", text(time))?;
        let interval = top.one("interval", text(positive_time))?;

        let link = top.table("link")?;
        let mut forward = Duration::ZERO;
        let (mut rate, mut rtt, mut qdisc, mut loss, mut mtu) = Default::default();
        if let Some(mut link) = link {
            rate = link.list("rate", text(self::rate))?;
            rtt = link.list("rtt", text(time))?;
            let ways = (link.one("forward", text(time))?, link.one("reverse", text(time))?);
            match ways {
                (None, None) => {}
                (Some(there), Some(back)) if rtt.is_empty() => {
                    let offset = there.offset;
                    rtt.push(Placed { value: there.value + back.value, offset });
                    forward = there.value;
                }
                (Some(way), _) | (None, Some(way)) => {
                    let message = "give either rtt, or both forward and reverse";
                    return Err(link.error(way.offset, message));
                }
            }
            qdisc = link.list("qdisc", text(self::qdisc))?;
            loss = link.list("loss", text(Loss::parse))?;
            mtu = link.list("mtu", number(LEAST_MTU, 65_535))?;
            link.finish()?;
        }
        let (mut sender_qdisc, mut gso, mut read_interval) = Default::default();
        if let Some(mut sender) = top.table("sender")? {
            sender_qdisc = sender.list("qdisc", text(self::qdisc))?;
            gso = sender.list("gso", boolean)?;
            sender.finish()?;
        }
        if let Some(mut receiver) = top.table("receiver")? {
            read_interval = receiver.list("read_interval", text(time))?;
            receiver.finish()?;
        }
        let flows = top.tables("flow")?.into_iter().map(flows).collect::<Result<Vec<_>, _>>()?;
        let probes = top.tables("probe")?.into_iter().map(probe).collect::<Result<Vec<_>, _>>()?;
        top.finish()?;

        let warmup_offset = warmup.as_ref().map(|warmup| warmup.offset);
        let values = |given: Vec<Placed<_>>| given.into_iter().map(|placed| placed.value).collect();
        let plan = Self {
            name: one_or(name, defaults, |plan| plan.name.clone()),
            about: about.map_or(String::new(), |about| about.value),
            published: values(published),
            duration: one_or(duration, defaults, |plan| plan.duration),
            warmup: one_or(warmup, defaults, |plan| plan.warmup),
            interval: interval.map_or(DEFAULT_INTERVAL, |interval| interval.value),
            rate: list_or(rate, defaults, |plan| &plan.rate),
            rtt: list_or(rtt, defaults, |plan| &plan.rtt),
            forward,
            qdisc: list_or(qdisc, defaults, |plan| &plan.qdisc),
            loss: list_or(loss, defaults, |plan| &plan.loss),
            mtu: list_or(mtu, defaults, |plan| &plan.mtu),
            sender_qdisc: list_or(sender_qdisc, defaults, |plan| &plan.sender_qdisc),
            gso: list_or(gso, defaults, |plan| &plan.gso),
            read_interval: list_or(read_interval, defaults, |plan| &plan.read_interval),
            flows: if flows.is_empty() {
                defaults.map_or(flows, |plan| plan.flows.clone())
            } else {
                flows
            },
            probes: if probes.is_empty() {
                defaults.map_or(probes, |plan| plan.probes.clone())
            } else {
                probes
            },
        };
        plan.check().map_err(|message| PlanError {
            line: warmup_offset.map(|offset| line_of(source, offset)),
            message,
        })?;
        Ok(plan)
    }

    /// What no single value can be blamed for.
    fn check(&self) -> Result<(), String> {
        if self.warmup >= self.duration {
            return Err(format!(
                "warmup is {} and duration {}; nothing is left to measure",
                show_time(self.warmup),
                show_time(self.duration)
            ));
        }
        if self.variants_count() > MOST_VARIANTS {
            return Err(format!(
                "{} combinations; a plan has at most {MOST_VARIANTS}",
                self.variants_count()
            ));
        }
        Ok(())
    }

    /// Puts in what the command line says.
    ///
    /// # Errors
    /// If a value makes no sense.
    pub fn apply(&mut self, overrides: &Overrides) -> Result<(), PlanError> {
        fn all<T>(
            option: &str,
            words: &[String],
            read: impl Fn(&str) -> Result<T, String>,
            into: &mut Vec<T>,
        ) -> Result<(), PlanError> {
            if words.is_empty() {
                return Ok(());
            }
            let refuse = |message| PlanError::outside(format!("--{option}: {message}"));
            *into =
                words.iter().map(|word| read(word).map_err(refuse)).collect::<Result<_, _>>()?;
            Ok(())
        }
        all("qdisc", &overrides.qdisc, qdisc, &mut self.qdisc)?;
        all("rate", &overrides.rate, rate, &mut self.rate)?;
        all("rtt", &overrides.rtt, time, &mut self.rtt)?;
        if !overrides.rtt.is_empty() {
            self.forward = Duration::ZERO;
        }
        for flows in &mut self.flows {
            all("cc", &overrides.cc, congestion_control, &mut flows.cc)?;
        }
        if let Some(duration) = &overrides.duration {
            let refuse = |message| PlanError::outside(format!("--duration: {message}"));
            self.duration = positive_time(duration).map_err(refuse)?;
            // A shorter run keeps its proportions.
            if self.warmup >= self.duration {
                self.warmup = self.duration / 4;
            }
        }
        if let Some(interval) = &overrides.interval {
            let refuse = |message| PlanError::outside(format!("--interval: {message}"));
            self.interval = positive_time(interval).map_err(refuse)?;
        }
        self.check().map_err(PlanError::outside)
    }

    fn variants_count(&self) -> usize {
        let link =
            [self.rate.len(), self.rtt.len(), self.qdisc.len(), self.loss.len(), self.mtu.len()];
        let ends = [self.sender_qdisc.len(), self.gso.len(), self.read_interval.len()];
        let flows = self
            .flows
            .iter()
            .flat_map(|flows| [flows.cc.len(), flows.count.len(), flows.ecn.len().max(1)]);
        link.into_iter().chain(ends).chain(flows).fold(1, usize::saturating_mul)
    }

    /// One scenario for each combination of the values that are lists, those that are written last changing fastest.
    #[must_use]
    pub fn variants(&self) -> Vec<Variant> {
        let base = Scenario {
            name: self.name.clone(),
            duration: self.duration,
            warmup: self.warmup,
            link: Link {
                rate: self.rate[0],
                rtt: self.rtt[0],
                forward: self.forward,
                qdisc: self.qdisc[0].clone(),
                loss: self.loss[0],
                mtu: self.mtu[0],
            },
            sender: SenderSide { qdisc: self.sender_qdisc[0].clone(), gso: self.gso[0] },
            receiver: ReceiverSide { read_interval: self.read_interval[0] },
            flow: self.flows.iter().map(Flows::first).collect(),
            probe: self.probes.clone(),
            interval: self.interval,
            tick: DEFAULT_TICK,
        };
        let mut variants = vec![Variant { settings: Vec::new(), scenario: base }];
        vary(&mut variants, "rate", &self.rate, |s, v| s.link.rate = *v, Rate::to_string);
        vary(&mut variants, "rtt", &self.rtt, |s, v| s.link.rtt = *v, |v| show_time(*v));
        vary(&mut variants, "loss", &self.loss, |s, v| s.link.loss = *v, Loss::to_string);
        vary(&mut variants, "mtu", &self.mtu, |s, v| s.link.mtu = *v, u32::to_string);
        let set = |s: &mut Scenario, v: &String| s.sender.qdisc.clone_from(v);
        vary(&mut variants, "sender qdisc", &self.sender_qdisc, set, String::clone);
        vary(&mut variants, "gso", &self.gso, |s, v| s.sender.gso = *v, bool::to_string);
        let set = |s: &mut Scenario, v: &Duration| s.receiver.read_interval = *v;
        vary(&mut variants, "read interval", &self.read_interval, set, |v| show_time(*v));
        let set = |s: &mut Scenario, v: &String| s.link.qdisc.clone_from(v);
        vary(&mut variants, "qdisc", &self.qdisc, set, String::clone);
        for (group, flows) in self.flows.iter().enumerate() {
            let called = |what: &str| match self.flows.len() {
                1 => what.to_owned(),
                _ => format!("{what} {}", group + 1),
            };
            let set = |s: &mut Scenario, v: &String| s.flow[group].cc.clone_from(v);
            vary(&mut variants, &called("cc"), &flows.cc, set, String::clone);
            let set = |s: &mut Scenario, v: &u32| s.flow[group].count = *v;
            vary(&mut variants, &called("flows"), &flows.count, set, u32::to_string);
            let set = |s: &mut Scenario, v: &bool| s.flow[group].ecn = *v;
            vary(&mut variants, &called("ecn"), &flows.ecn, set, bool::to_string);
            if flows.ecn.is_empty() {
                for variant in &mut variants {
                    let flow = &mut variant.scenario.flow[group];
                    flow.ecn = flow.cc == "dctcp";
                }
            }
        }
        variants
    }
}

/// Turns each variant into one for each of `values`, and says so if there are several.
fn vary<T>(
    variants: &mut Vec<Variant>,
    what: &str,
    values: &[T],
    set: impl Fn(&mut Scenario, &T),
    show: impl Fn(&T) -> String,
) {
    if values.len() < 2 {
        return;
    }
    let each = |variant: Variant| {
        let mut more = Vec::with_capacity(values.len());
        for value in values {
            let mut variant = variant.clone();
            set(&mut variant.scenario, value);
            variant.settings.push((what.to_owned(), show(value)));
            more.push(variant);
        }
        more
    };
    *variants = std::mem::take(variants).into_iter().flat_map(each).collect();
}

impl Flows {
    fn first(&self) -> FlowGroup {
        FlowGroup {
            cc: self.cc[0].clone(),
            count: self.count[0],
            ecn: self.ecn.first().copied().unwrap_or(false),
            size: self.size,
            start: self.start,
            stop: self.stop,
        }
    }
}

fn one_or<T>(given: Option<Placed<T>>, defaults: Option<&Plan>, of: impl Fn(&Plan) -> T) -> T {
    let default = || defaults.map(of).expect("the defaults say everything");
    given.map_or_else(default, |placed| placed.value)
}

fn list_or<T: Clone>(
    given: Vec<Placed<T>>,
    defaults: Option<&Plan>,
    of: impl Fn(&Plan) -> &Vec<T>,
) -> Vec<T> {
    if given.is_empty() {
        defaults.map_or(Vec::new(), |plan| of(plan).clone())
    } else {
        given.into_iter().map(|placed| placed.value).collect()
    }
}

fn flows(mut table: Table<'_, '_>) -> Result<Flows, PlanError> {
    let cc = table.list("cc", text(congestion_control))?;
    let count = table.list("count", number(1, 100_000))?;
    let ecn = table.list("ecn", boolean)?;
    let size = table.one("size", text(size))?;
    let start = table.one("start", text(time))?;
    let stop = table.one("stop", text(positive_time))?;
    if cc.is_empty() {
        let message = "a flow needs a congestion control, such as cc = \"cubic\"";
        return Err(table.error(table.offset(), message));
    }
    let start_at = start.map_or(Duration::ZERO, |start| start.value);
    if let Some(stop) = &stop
        && stop.value <= start_at
    {
        return Err(table.error(stop.offset, "stop must be after start"));
    }
    let values = |given: Vec<Placed<_>>| given.into_iter().map(|placed| placed.value).collect();
    let flows = Flows {
        cc: values(cc),
        count: if count.is_empty() {
            vec![1]
        } else {
            count.into_iter().map(|c| c.value).collect()
        },
        ecn: ecn.into_iter().map(|ecn| ecn.value).collect(),
        size: size.map(|size| size.value),
        start: start_at,
        stop: stop.map(|stop| stop.value),
    };
    table.finish()?;
    Ok(flows)
}

fn probe(mut table: Table<'_, '_>) -> Result<ProbeGroup, PlanError> {
    let kind = table.one("kind", text(probe_kind))?;
    let interval = table.one("interval", text(positive_time))?;
    let cc = table.one("cc", text(congestion_control))?;
    let ecn = table.one("ecn", boolean)?;
    table.finish()?;
    Ok(ProbeGroup {
        kind: kind.map_or_else(|| "ssh".to_owned(), |kind| kind.value),
        interval: interval.map_or(Duration::from_millis(50), |interval| interval.value),
        cc: cc.map_or_else(|| "cubic".to_owned(), |cc| cc.value),
        ecn: ecn.is_some_and(|ecn| ecn.value),
    })
}

fn time(word: &str) -> Result<Duration, String> {
    tc_time::parse_span(word).map_err(|error| error.to_string())
}

fn positive_time(word: &str) -> Result<Duration, String> {
    match time(word)? {
        Duration::ZERO => Err("it must be longer than 0".to_owned()),
        time => Ok(time),
    }
}

fn rate(word: &str) -> Result<Rate, String> {
    let rate: Rate = word.parse().map_err(|error| format!("{error}"))?;
    if rate.as_bits_per_second() == 0 {
        return Err("a link needs a rate above 0, such as 50mbit".to_owned());
    }
    Ok(rate)
}

fn size(word: &str) -> Result<Bytes, String> {
    match word.parse::<Bytes>() {
        Ok(Bytes(0)) => Err("a transfer has at least 1 byte".to_owned()),
        Ok(size) => Ok(size),
        Err(error) => Err(error.to_string()),
    }
}

/// A line that the grammar takes. It is kept as it was written: that is how its author will look for it in the table.
fn qdisc(line: &str) -> Result<String, String> {
    grammar::parse(line).map_err(|error| error.to_string())?;
    Ok(line.to_owned())
}

fn congestion_control(name: &str) -> Result<String, String> {
    known("congestion control", name, &CONGESTION_CONTROLS)
}

fn probe_kind(name: &str) -> Result<String, String> {
    known("kind of probe", name, &PROBE_KINDS)
}

fn known(what: &str, name: &str, all: &[&str]) -> Result<String, String> {
    if all.contains(&name) {
        return Ok(name.to_owned());
    }
    let near = nearest(name, all.iter().copied());
    let hint = near.map_or(String::new(), |near| format!("did you mean {near:?}? "));
    Err(format!("unknown {what} {name:?}; {hint}known are {}", all.join(", ")))
}
