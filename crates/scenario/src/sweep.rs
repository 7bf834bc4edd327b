//! What people write: a TOML file whose values may be lists.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use dualq_mtu::overhead::Encapsulation;
use dualq_qdisc::QdiscLine;
use dualq_units::{Ecn, Exact, Rate, plain};
use toml::de::DeValue;

use crate::assignment::{Assigned, Assignment};
use crate::bounds::{FLOWS, MTUS, SLOT_PACKETS, ScenarioError, check_udp_rate};
use crate::congestion::CongestionControl;
use crate::ecn::{EcnRequest, ecn_option};
use crate::loss::Loss;
use crate::path::{Element, Fields, UpLink};
use crate::reader::{
    Lines, Placed, SweepError, Table, again, boolean, given_twice, number, parse, text,
    without_numbers, word,
};
use crate::scenario::{FlowGroup, ProbeGroup, RateStep, Scenario, Setup};
use crate::sizes::{Distribution, Size};
use crate::trace::{Files, MOST_STEPS, Trace, in_folder};
use crate::traffic::{UdpGroup, UdpKind};
use crate::words::{Word, nearest};

/// A scenario file: one scenario, or one for each combination of the values that are lists.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Its name.
    pub name: String,
    /// What it shows, in a sentence.
    pub about: String,
    /// What was published about it, and where.
    pub published: Vec<String>,
    /// The text of each file that it names, by its name there: traces, and how transfers' sizes are distributed.
    pub files: BTreeMap<String, String>,
    /// What all scenarios have in common; of the lists below it has the first values.
    base: Setup,
    /// Whether the interval of its series was said, not left open.
    has_interval: bool,
    rate: Vec<Rate>,
    rtt: Vec<Duration>,
    qdisc: Vec<QdiscLine>,
    loss: Vec<Loss>,
    mtu: Vec<u32>,
    tunnel: Vec<bool>,
    sender_qdisc: Vec<QdiscLine>,
    gso: Vec<bool>,
    read_interval: Vec<Duration>,
    flows: Vec<Flows>,
    udp: Vec<Udp>,
    /// What says how the rates change, downwards and upwards.
    traces: [Option<Repeated>; 2],
    /// Which values came from the command line, and which from which line of the file.
    options: Vec<(&'static str, &'static str)>,
    lines: Lines,
}

/// What varies in a group of flows.
#[derive(Clone, Debug)]
struct Flows {
    cc: Vec<CongestionControl>,
    count: Vec<u32>,
    /// Empty if it is left open: only who needs ECN then asks for it.
    ecn: Vec<EcnRequest>,
}

/// What varies in a group of UDP streams.
#[derive(Clone, Debug)]
struct Udp {
    /// Empty if the interval is told.
    rate: Vec<Rate>,
    ecn: Vec<Ecn>,
    count: Vec<u32>,
}

/// A trace, which begins again after its end or does not.
#[derive(Clone, Debug)]
struct Repeated {
    trace: Trace,
    repeats: bool,
    /// Where it stands.
    line: Option<usize>,
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
    /// Values of any key, before the options above.
    pub set: Vec<Assignment>,
    /// For pictures: the outcome has distributions, and where nobody says what the interval of the series is, it is
    /// [`PICTURE_INTERVAL`], or as much longer as a long run asks.
    pub picture: bool,
}

/// The interval of series that people look at, where nobody says another.
pub const PICTURE_INTERVAL: Duration = Duration::from_millis(200);

/// So many intervals are as many as a picture can show.
const PICTURE_INTERVALS: u32 = 1500;

/// Rounded up to whole tenths of a second.
fn whole_tenths(time: Duration) -> Duration {
    const TENTH: Duration = Duration::from_millis(100);
    TENTH * u32::try_from(time.as_nanos().div_ceil(TENTH.as_nanos())).unwrap_or(u32::MAX)
}

/// One scenario of a sweep, and what sets it apart from the others.
#[derive(Clone, Debug)]
pub struct Variant {
    /// `(what, value)` of each value that was a list: `("qdisc", "fq_codel")`.
    pub settings: Vec<(String, String)>,
    /// The scenario.
    pub scenario: Scenario,
}

/// More would hardly be meant, and never be read.
pub(crate) const MOST_VARIANTS: usize = 10_000;

impl Default for Sweep {
    /// The sweep that an empty file is.
    fn default() -> Self {
        Self::parse("").expect("the defaults make sense")
    }
}

impl Sweep {
    /// Reads a sweep from TOML. What it leaves open is that of [`Setup::default`].
    ///
    /// # Errors
    /// If it is not TOML, has unknown keys, or a value makes no sense: with the line, and what would be right.
    pub fn parse(source: &str) -> Result<Self, SweepError> {
        Self::parse_with(source, &Overrides::default())
    }

    /// Reads a sweep of which some values are overridden.
    ///
    /// # Errors
    /// As [`parse`](Self::parse); what is wrong with an override names its option.
    pub fn parse_with(source: &str, overrides: &Overrides) -> Result<Self, SweepError> {
        Self::parse_in(Path::new(""), source, overrides)
    }

    /// The same, of a file in `folder`: the names of other files in it start there.
    ///
    /// # Errors
    /// As [`parse_with`](Self::parse_with), and if a file that it names cannot be read.
    pub fn parse_in(
        folder: &Path,
        source: &str,
        overrides: &Overrides,
    ) -> Result<Self, SweepError> {
        Self::parse_beside(&in_folder(folder), source, overrides)
    }

    /// The same, with the files that it names from anywhere.
    ///
    /// # Errors
    /// As [`parse_with`](Self::parse_with), and if it names a file that is not there.
    pub fn parse_beside(
        files: &Files<'_>,
        source: &str,
        overrides: &Overrides,
    ) -> Result<Self, SweepError> {
        let assigned = Assigned::behind(source, &overrides.set);
        let named = RefCell::new(BTreeMap::new());
        let kept = |name: &str| {
            let contents = files(name)?;
            named.borrow_mut().insert(name.to_owned(), contents.clone());
            Ok(contents)
        };
        let read = || {
            let mut sweep = Self::read(&assigned, &kept)?;
            sweep.files = named.take();
            sweep.apply(overrides)?;
            sweep.check()?;
            Ok(sweep)
        };
        read().map_err(|error| assigned.blame(error))
    }

    fn read(assigned: &Assigned<'_>, files: &Files<'_>) -> Result<Self, SweepError> {
        let mut document = parse(assigned.file())?;
        assigned.apply(document.get_mut())?;
        let lines = RefCell::new(Lines::new());
        let mut top = Table::top(assigned.text(), document.get_ref(), &lines);
        let mut base = Setup::default();
        set(&mut base.name, top.one("name", text)?);
        let mut about = String::new();
        set(&mut about, top.one("about", text)?);
        let published = values(top.list("published", text)?);
        set(&mut base.duration, top.one("duration", word)?);
        if base.warmup >= base.duration {
            base.warmup = base.duration / 4;
        }
        set(&mut base.warmup, top.one("warmup", word)?);
        let interval = top.one("interval", word)?;
        let has_interval = interval.is_some();
        set(&mut base.interval, interval);
        set(&mut base.distributions, top.one("distributions", boolean)?);

        let link = &mut base.link;
        let (mut rate, mut rtt, mut qdisc, mut loss, mut mtu, mut tunnel) = Default::default();
        let mut traces = [None, None];
        if let Some(mut table) = top.table("link")? {
            rate = values(table.list("rate", word)?);
            rtt = values(table.list("rtt", word)?);
            match (table.one("forward", word)?, table.one("reverse", word)?) {
                (None, None) => {}
                (Some(there), Some(back)) if rtt.is_empty() => {
                    link.forward = there.value;
                    rtt.push(there.value.saturating_add(back.value));
                    table.stands_for("rtt", "reverse");
                }
                (Some(Placed { offset, .. }), _) | (None, Some(Placed { offset, .. })) => {
                    let message = "give either rtt, or both forward and reverse";
                    return Err(table.error(offset, message));
                }
            }
            qdisc = values(table.list("qdisc", word)?);
            loss = values(table.list("loss", word)?);
            mtu = values(table.list("mtu", number(MTUS))?);
            tunnel = values(table.list("tunnel", boolean)?);
            link.step = all(table.tables("step")?, step)?;
            traces[0] = trace(&mut table, files, !rate.is_empty() || !link.step.is_empty())?;
            let element = |table: Table<'_, '_>| element(table, &list_or(mtu.clone(), &link.mtu));
            link.before = all(table.tables("before")?, element)?;
            link.behind = all(table.tables("behind")?, element)?;
            if let Some(up) = table.table("up")? {
                let (up, upwards) = up_link(up, files, element)?;
                (link.up, traces[1]) = (Some(up), upwards);
            }
            table.finish()?;
        }
        let (mut sender_qdisc, mut gso, mut read_interval) = Default::default();
        if let Some(mut table) = top.table("sender")? {
            sender_qdisc = values(table.list("qdisc", word)?);
            gso = values(table.list("gso", boolean)?);
            table.finish()?;
        }
        if let Some(mut table) = top.table("receiver")? {
            read_interval = values(table.list("read_interval", word)?);
            let ecn = table.one("ecn", EcnRequest::read)?;
            base.receiver.ecn = ecn.map(|ecn| ecn.value);
            set(&mut base.receiver.ecn_option, table.one("ecn_option", ecn_option::read)?);
            table.finish()?;
        }
        let groups = all(top.tables("flow")?, |table| flows(table, files))?;
        let streams = all(top.tables("udp")?, udp)?;
        let probes = all(top.tables("probe")?, probe)?;
        let (has_flows, has_probes) = (top.has("flow"), top.has("probe"));
        top.finish()?;

        let mut flows: Vec<Flows> = base.flow.iter().map(Flows::of).collect();
        // Whoever says what there is means that and no more.
        if has_flows || !streams.is_empty() {
            (base.flow, flows) = groups.into_iter().unzip();
        }
        let (streams, udp) = streams.into_iter().unzip();
        base.udp = streams;
        if has_probes {
            base.probe = probes;
        }
        if flows.is_empty() && base.udp.is_empty() && base.probe.is_empty() {
            let message = "nothing is sent: give a [[flow]], a [[udp]] or a [[probe]]";
            return Err(SweepError::on_line(lines.borrow().get("flow").copied(), message));
        }
        let sweep = Self {
            name: base.name.clone(),
            about,
            published,
            files: BTreeMap::new(),
            rate: list_or(rate, &base.link.rate),
            rtt: list_or(rtt, &base.link.rtt),
            qdisc: list_or(qdisc, &base.link.qdisc),
            loss: list_or(loss, &base.link.loss),
            mtu: list_or(mtu, &base.link.mtu),
            tunnel: list_or(tunnel, &base.link.tunnel),
            sender_qdisc: list_or(sender_qdisc, &base.sender.qdisc),
            gso: list_or(gso, &base.sender.gso),
            read_interval: list_or(read_interval, &base.receiver.read_interval),
            flows,
            udp,
            traces,
            base,
            has_interval,
            options: Vec::new(),
            lines: lines.into_inner(),
        };
        Ok(sweep)
    }

    /// Makes sure that all its scenarios make sense.
    fn check(&self) -> Result<(), SweepError> {
        let count = self.variants_count();
        if count > MOST_VARIANTS {
            let message =
                format!("{count} combinations; a scenario file has at most {MOST_VARIANTS}");
            return Err(SweepError::on_line(None, message));
        }
        self.check_traces()?;
        for (_, setup) in self.setups() {
            Scenario::try_from(setup).map_err(|error| self.blame(&error))?;
        }
        Ok(())
    }

    fn check_traces(&self) -> Result<(), SweepError> {
        for Repeated { trace, repeats, line } in self.traces.iter().flatten() {
            if trace.steps(self.base.duration, *repeats).is_none() {
                let message = format!(
                    "trace: more than {MOST_STEPS} changes of the rate in {}",
                    Exact(self.base.duration)
                );
                return Err(SweepError::on_line(*line, message));
            }
        }
        Ok(())
    }

    /// Says where a value stands that makes no sense.
    fn blame(&self, error: &ScenarioError) -> SweepError {
        let ScenarioError { key, message } = error;
        if let Some((option, _)) = self.options.iter().find(|(_, of)| *of == without_numbers(key)) {
            return SweepError::of_option(option, message);
        }
        // What a table leaves open is told on the table's own line.
        let table = key.rsplit_once('.').map_or("", |(table, _)| table);
        let line = self.lines.get(key).or_else(|| self.lines.get(table));
        SweepError::on_line(line.copied(), format!("{}: {message}", without_numbers(key)))
    }

    /// Puts in what the command line says.
    fn apply(&mut self, overrides: &Overrides) -> Result<(), SweepError> {
        let Overrides { qdisc, cc, rate, rtt, duration, interval, set: _, picture } = overrides;
        let options = &mut self.options;
        put_all(options, ("qdisc", "link.qdisc"), qdisc, &mut self.qdisc)?;
        put_all(options, ("rate", "link.rate"), rate, &mut self.rate)?;
        if !rate.is_empty() {
            self.traces[0] = None;
        }
        put_all(options, ("rtt", "link.rtt"), rtt, &mut self.rtt)?;
        if !rtt.is_empty() {
            self.base.link.forward = Duration::ZERO;
        }
        for flows in &mut self.flows {
            put_all(options, ("cc", "flow.cc"), cc, &mut flows.cc)?;
        }
        put(options, ("interval", "interval"), interval.as_deref(), &mut self.base.interval)?;
        let Setup { duration: all, warmup, .. } = &mut self.base;
        put(options, ("duration", "duration"), duration.as_deref(), all)?;
        // A shorter run keeps its proportions.
        if duration.is_some() && *warmup >= *all {
            *warmup = *all / 4;
        }
        if *picture {
            self.base.distributions = true;
            if interval.is_none() && !self.has_interval {
                let least = self.base.duration / PICTURE_INTERVALS;
                self.base.interval = PICTURE_INTERVAL.max(whole_tenths(least));
            }
        }
        Ok(())
    }

    fn variants_count(&self) -> usize {
        let link =
            [self.rate.len(), self.rtt.len(), self.qdisc.len(), self.loss.len(), self.mtu.len()];
        let ends =
            [self.tunnel.len(), self.sender_qdisc.len(), self.gso.len(), self.read_interval.len()];
        let flows = self
            .flows
            .iter()
            .flat_map(|flows| [flows.cc.len(), flows.count.len(), flows.ecn.len().max(1)]);
        let udp =
            self.udp.iter().flat_map(|udp| [udp.rate.len().max(1), udp.ecn.len(), udp.count.len()]);
        link.into_iter().chain(ends).chain(flows).chain(udp).fold(1, usize::saturating_mul)
    }

    /// One scenario for each combination of the values that are lists, those that are written last changing fastest.
    #[must_use]
    pub fn variants(&self) -> Vec<Variant> {
        let variant = |(settings, setup)| {
            let scenario = Scenario::try_from(setup).expect("a sweep was checked when it was read");
            Variant { settings, scenario }
        };
        self.setups().into_iter().map(variant).collect()
    }

    fn setups(&self) -> Vec<Draft> {
        let mut base = self.base.clone();
        base.link.rate = self.rate[0];
        base.link.rtt = self.rtt[0];
        base.link.qdisc.clone_from(&self.qdisc[0]);
        base.link.loss = self.loss[0];
        base.link.mtu = self.mtu[0];
        base.link.tunnel = self.tunnel[0];
        base.sender.qdisc.clone_from(&self.sender_qdisc[0]);
        base.sender.gso = self.gso[0];
        base.receiver.read_interval = self.read_interval[0];
        for (group, flows) in base.flow.iter_mut().zip(&self.flows) {
            group.cc = flows.cc[0];
            group.count = flows.count[0];
            group.ecn = flows.ecn.first().copied().unwrap_or_default();
        }
        for (group, udp) in base.udp.iter_mut().zip(&self.udp) {
            (group.ecn, group.count) = (udp.ecn[0], udp.count[0]);
            if let Some(rate) = udp.rate.first() {
                group.interval = UdpGroup::interval_for(*rate, group.packet);
            }
        }
        self.play_traces(&mut base);
        let mut drafts = vec![(Vec::new(), base)];
        vary(&mut drafts, "rate", &self.rate, |s, v| s.link.rate = *v, Word::write);
        vary(&mut drafts, "rtt", &self.rtt, |s, v| s.link.rtt = *v, Word::write);
        vary(&mut drafts, "loss", &self.loss, |s, v| s.link.loss = *v, Word::write);
        vary(&mut drafts, "mtu", &self.mtu, |s, v| s.link.mtu = *v, u32::to_string);
        vary(&mut drafts, "tunnel", &self.tunnel, |s, v| s.link.tunnel = *v, bool::to_string);
        let set = |s: &mut Setup, v: &QdiscLine| s.sender.qdisc.clone_from(v);
        vary(&mut drafts, "sender qdisc", &self.sender_qdisc, set, Word::write);
        vary(&mut drafts, "gso", &self.gso, |s, v| s.sender.gso = *v, bool::to_string);
        let set = |s: &mut Setup, v: &Duration| s.receiver.read_interval = *v;
        vary(&mut drafts, "read interval", &self.read_interval, set, Word::write);
        let set = |s: &mut Setup, v: &QdiscLine| s.link.qdisc.clone_from(v);
        vary(&mut drafts, "qdisc", &self.qdisc, set, Word::write);
        for (group, flows) in self.flows.iter().enumerate() {
            let called = |what: &str| match self.flows.len() {
                1 => what.to_owned(),
                _ => format!("{what} {}", group + 1),
            };
            let set = |s: &mut Setup, v: &CongestionControl| s.flow[group].cc = *v;
            vary(&mut drafts, &called("cc"), &flows.cc, set, Word::write);
            let set = |s: &mut Setup, v: &u32| s.flow[group].count = *v;
            vary(&mut drafts, &called("flows"), &flows.count, set, u32::to_string);
            let set = |s: &mut Setup, v: &EcnRequest| s.flow[group].ecn = *v;
            let text = |ecn: &EcnRequest| ecn.text().to_owned();
            vary(&mut drafts, &called("ecn"), &flows.ecn, set, text);
            if flows.ecn.is_empty() {
                for (_, setup) in &mut drafts {
                    let flow = &mut setup.flow[group];
                    flow.ecn = (flow.cc.needs_ecn() || flow.ect1 || flow.ecn_low).into();
                }
            }
        }
        for (group, udp) in self.udp.iter().enumerate() {
            let called = |what: &str| match self.udp.len() {
                1 => format!("udp {what}"),
                _ => format!("udp {what} {}", group + 1),
            };
            let set = |s: &mut Setup, v: &Rate| {
                let udp = &mut s.udp[group];
                udp.interval = UdpGroup::interval_for(*v, udp.packet);
            };
            vary(&mut drafts, &called("rate"), &udp.rate, set, Word::write);
            let set = |s: &mut Setup, v: &Ecn| s.udp[group].ecn = *v;
            vary(&mut drafts, &called("ecn"), &udp.ecn, set, Word::write);
            let set = |s: &mut Setup, v: &u32| s.udp[group].count = *v;
            vary(&mut drafts, &called("count"), &udp.count, set, u32::to_string);
        }
        drafts
    }

    /// Puts the rates of traces where rates are.
    fn play_traces(&self, setup: &mut Setup) {
        let steps = |repeated: &Option<Repeated>| {
            let Repeated { trace, repeats, .. } = repeated.as_ref()?;
            trace.steps(setup.duration, *repeats)
        };
        let [down, up] = self.traces.each_ref().map(steps);
        if let Some((rate, steps)) = down {
            (setup.link.rate, setup.link.step) = (rate, steps);
        }
        if let (Some(link), Some((rate, steps))) = (&mut setup.link.up, up) {
            (link.rate, link.step) = (Some(rate), steps);
        }
    }
}

/// A scenario before it is checked, with what sets it apart.
type Draft = (Vec<(String, String)>, Setup);

/// Turns each draft into one for each of `values`, and says so if there are several.
fn vary<T>(
    drafts: &mut Vec<Draft>,
    what: &str,
    values: &[T],
    set: impl Fn(&mut Setup, &T),
    show: impl Fn(&T) -> String,
) {
    if values.len() < 2 {
        return;
    }
    let each = |draft: Draft| {
        let mut more = Vec::with_capacity(values.len());
        for value in values {
            let (mut settings, mut setup) = draft.clone();
            set(&mut setup, value);
            settings.push((what.to_owned(), show(value)));
            more.push((settings, setup));
        }
        more
    };
    *drafts = std::mem::take(drafts).into_iter().flat_map(each).collect();
}

impl Flows {
    fn of(group: &FlowGroup) -> Self {
        Self { cc: vec![group.cc], count: vec![group.count], ecn: Vec::new() }
    }
}

/// Puts the words of an option in the place of what the file says.
fn put_all<T: Word + PartialEq>(
    options: &mut Vec<(&'static str, &'static str)>,
    (option, key): (&'static str, &'static str),
    words: &[String],
    into: &mut Vec<T>,
) -> Result<(), SweepError> {
    if !words.is_empty() {
        let read = |word: &String| T::read(word).map_err(|m| SweepError::of_option(option, m));
        *into = words.iter().map(read).collect::<Result<_, _>>()?;
        if let Some(at) = again(into, PartialEq::eq) {
            return Err(SweepError::of_option(option, given_twice(&words[at])));
        }
        options.push((option, key));
    }
    Ok(())
}

/// The same for an option that is given once.
fn put<T: Word>(
    options: &mut Vec<(&'static str, &'static str)>,
    (option, key): (&'static str, &'static str),
    given: Option<&str>,
    into: &mut T,
) -> Result<(), SweepError> {
    if let Some(given) = given {
        *into = T::read(given).map_err(|message| SweepError::of_option(option, message))?;
        options.push((option, key));
    }
    Ok(())
}

fn set<T>(into: &mut T, given: Option<Placed<T>>) {
    if let Some(placed) = given {
        *into = placed.value;
    }
}

fn values<T>(given: Vec<Placed<T>>) -> Vec<T> {
    given.into_iter().map(|placed| placed.value).collect()
}

fn list_or<T: Clone>(given: Vec<T>, default: &T) -> Vec<T> {
    if given.is_empty() { vec![default.clone()] } else { given }
}

fn all<'a, 'i, T>(
    tables: Vec<Table<'a, 'i>>,
    read: impl Fn(Table<'a, 'i>) -> Result<T, SweepError>,
) -> Result<Vec<T>, SweepError> {
    tables.into_iter().map(read).collect()
}

/// The keys of a trace; `has_rates` if the rates are told otherwise.
fn trace(
    table: &mut Table<'_, '_>,
    files: &Files<'_>,
    has_rates: bool,
) -> Result<Option<Repeated>, SweepError> {
    let (name, repeats) = (table.one("trace", text)?, table.one("trace_repeats", boolean)?);
    let Some(Placed { value: name, offset }) = name else {
        return match repeats {
            Some(Placed { offset, .. }) => {
                Err(table.error(offset, "trace_repeats needs a trace = \"FILE\""))
            }
            None => Ok(None),
        };
    };
    if has_rates {
        return Err(table.error(offset, "give either a trace, or a rate and its steps"));
    }
    let trace = read_file(table, files, ("trace", &name, offset), Trace::read)?;
    let line = Some(table.line(offset));
    Ok(Some(Repeated { trace, repeats: repeats.is_none_or(|repeats| repeats.value), line }))
}

/// What a file says of how large transfers are; `has_size` if that is told otherwise.
fn sizes(
    table: &mut Table<'_, '_>,
    files: &Files<'_>,
    has_size: bool,
) -> Result<Option<Size>, SweepError> {
    let Some(Placed { value: name, offset }) = table.one("sizes", text)? else { return Ok(None) };
    if has_size {
        return Err(table.error(offset, "give either a size, or sizes = \"FILE\""));
    }
    let distribution = read_file(table, files, ("sizes", &name, offset), Distribution::read)?;
    Ok(Some(distribution.into()))
}

/// What is in the file that a key names.
fn read_file<T, E: std::fmt::Display>(
    table: &Table<'_, '_>,
    files: &Files<'_>,
    (key, name, offset): (&str, &str, usize),
    read: impl Fn(&str) -> Result<T, E>,
) -> Result<T, SweepError> {
    let wrong = |what: String| table.error(offset, format!("{key} {name:?}: {what}"));
    let contents = files(name).map_err(|error| wrong(plain(&error)))?;
    read(&contents).map_err(|error| wrong(error.to_string()))
}

fn up_link(
    mut table: Table<'_, '_>,
    files: &Files<'_>,
    element: impl Fn(Table<'_, '_>) -> Result<Element, SweepError> + Copy,
) -> Result<(UpLink, Option<Repeated>), SweepError> {
    let mut up = UpLink {
        rate: table.one("rate", word)?.map(|rate| rate.value),
        qdisc: table.one("qdisc", word)?.map(|qdisc| qdisc.value),
        ..UpLink::default()
    };
    set(&mut up.loss, table.one("loss", word)?);
    up.step = all(table.tables("step")?, step)?;
    let trace = trace(&mut table, files, up.rate.is_some() || !up.step.is_empty())?;
    up.before = all(table.tables("before")?, element)?;
    up.behind = all(table.tables("behind")?, element)?;
    table.finish()?;
    Ok((up, trace))
}

/// What the tunnel of that name leaves of a link's MTU.
fn mtu_of_tunnel(name: &str, link_mtus: &[u32]) -> Result<u32, String> {
    let names = || Encapsulation::NAMED.iter().map(|(name, _)| *name);
    let Some((_, tunnel)) = Encapsulation::NAMED.iter().find(|(known, _)| *known == name) else {
        return Err(match nearest(name, names()) {
            Some(near) => format!("there is no tunnel {name:?}; did you mean {near:?}?"),
            None => format!("give bytes, or one of {}", names().collect::<Vec<_>>().join(", ")),
        });
    };
    let [link_mtu] = *link_mtus else {
        return Err("of several link.mtu no tunnel leaves the same; give bytes".to_owned());
    };
    let left = u16::try_from(link_mtu).ok().and_then(|link_mtu| tunnel.inner_mtu(link_mtu));
    let left = left.map(u32::from).filter(|left| MTUS.contains(left));
    left.ok_or_else(|| format!("{tunnel} leaves less than {} bytes", MTUS.start()))
}

/// An element of a link that has these MTUs.
fn element(mut table: Table<'_, '_>, link_mtus: &[u32]) -> Result<Element, SweepError> {
    fn value<T>(placed: Option<Placed<T>>) -> Option<T> {
        placed.map(|placed| placed.value)
    }
    let fields = Fields {
        delay: value(table.one("delay", word)?),
        jitter: value(table.one("jitter", word)?),
        reorder: value(table.one("reorder", boolean)?),
        slot: value(table.one("slot", word)?),
        slot_max: value(table.one("slot_max", word)?),
        packets: value(table.one("packets", number(SLOT_PACKETS))?),
        bytes: value(table.one("bytes", word)?),
        loss: value(table.one("loss", word)?),
        duplicate: value(table.one("duplicate", word)?),
        rate: value(table.one("rate", word)?),
        qdisc: value(table.one("qdisc", word)?),
        mtu: value(table.one("mtu", |value| match value {
            DeValue::String(name) => mtu_of_tunnel(name, link_mtus),
            _ => number(MTUS)(value).map_err(|what| format!("{what}, or a tunnel's name")),
        })?),
        icmp: value(table.one("icmp", boolean)?),
        bleach: value(table.one("bleach", boolean)?),
        police: value(table.one("police", word)?),
        burst: value(table.one("burst", word)?),
    };
    let element = Element::try_from(fields).map_err(|what| table.error(table.offset(), what));
    table.finish()?;
    element
}

fn udp(mut table: Table<'_, '_>) -> Result<(UdpGroup, Udp), SweepError> {
    let kind: UdpKind = table.one("kind", word)?.map(|kind| kind.value).unwrap_or_default();
    let (usual, every) = kind.pattern();
    let packet = table.one("packet", number(1..=*MTUS.end()))?.map_or(usual, |packet| packet.value);
    let rate: Vec<Placed<Rate>> = table.list("rate", word)?;
    // Told of the rate, as nobody wrote the interval that it makes.
    for Placed { value, offset } in &rate {
        check_udp_rate(*value, packet).map_err(|ScenarioError { key, message }| {
            table.error(*offset, format!("{key}: {message}"))
        })?;
    }
    let rate = values(rate);
    let interval = table.one("interval", word)?;
    let ecn = values(table.list("ecn", word)?);
    let count = values(table.list("count", number(1..=*FLOWS.end()))?);
    let direction = table.one("direction", word)?;
    let (start, stop) = (table.one("start", word)?, table.one("stop", word)?);
    let offset = table.offset();
    let two = interval.as_ref().filter(|_| !rate.is_empty()).map(|interval| {
        table.error(interval.offset, "give either a rate or an interval between packets")
    });
    let needs = "udp needs a rate, such as rate = \"2mbit\", an interval between packets, or a kind that has one: voice, game";
    let incomplete = table.error(offset, needs);
    table.finish()?;
    if let Some(two) = two {
        return Err(two);
    }
    let mut group = UdpGroup { kind, packet, ..UdpGroup::default() };
    match (interval, every) {
        (Some(interval), _) => group.interval = interval.value,
        (None, Some(every)) if rate.is_empty() => group.interval = every,
        (None, _) if rate.is_empty() => return Err(incomplete),
        (None, _) => {}
    }
    set(&mut group.direction, direction);
    set(&mut group.start, start);
    group.stop = stop.map(|stop| stop.value);
    let (ecn, count) = (list_or(ecn, &group.ecn), list_or(count, &group.count));
    Ok((group, Udp { rate, ecn, count }))
}

fn step(mut table: Table<'_, '_>) -> Result<RateStep, SweepError> {
    let (at, rate) = (table.one("at", word)?, table.one("rate", word)?);
    let message = "a step of the rate needs both: at = \"10s\", rate = \"20mbit\"";
    let incomplete = table.error(table.offset(), message);
    // A word that is misspelt is the better explanation.
    table.finish()?;
    let (Some(at), Some(rate)) = (at, rate) else { return Err(incomplete) };
    Ok(RateStep { at: at.value, rate: rate.value })
}

fn flows(mut table: Table<'_, '_>, files: &Files<'_>) -> Result<(FlowGroup, Flows), SweepError> {
    let cc = values(table.list("cc", word)?);
    let count = values(table.list("count", number(FLOWS))?);
    let ecn = values(table.list("ecn", EcnRequest::read)?);
    let ecn_option = table.one("ecn_option", ecn_option::read)?;
    let ecn_low = table.one("ecn_low", boolean)?;
    let ecn_fallback = table.one("ecn_fallback", boolean)?;
    let (ect1, direction) = (table.one("ect1", boolean)?, table.one("direction", word)?);
    let (size, every) = (table.one("size", word)?, table.one("every", word)?);
    let sizes = sizes(&mut table, files, size.is_some())?;
    let arrivals = table.one("arrivals", word)?;
    let read_interval = table.one("read_interval", word)?;
    let receive_buffer = table.one("receive_buffer", word)?;
    let send_buffer = table.one("send_buffer", word)?;
    let notsent_lowat = table.one("notsent_lowat", word)?;
    let fast_open = table.one("fast_open", boolean)?;
    let (start, stop) = (table.one("start", word)?, table.one("stop", word)?);
    let (spacing, extra_rtt) = (table.one("spacing", word)?, table.one("extra_rtt", word)?);
    let message = "a flow needs a congestion control, such as cc = \"cubic\"";
    let incomplete = table.error(table.offset(), message);
    table.finish()?;
    let Some(first) = cc.first() else { return Err(incomplete) };
    let mut group = FlowGroup::of(*first);
    group.size = sizes.or(size.map(|size| size.value));
    group.every = every.map(|every| every.value);
    group.read_interval = read_interval.map(|interval| interval.value);
    group.receive_buffer = receive_buffer.map(|buffer| buffer.value);
    group.send_buffer = send_buffer.map(|buffer| buffer.value);
    group.notsent_lowat = notsent_lowat.map(|bytes| bytes.value);
    set(&mut group.ecn_option, ecn_option);
    set(&mut group.ecn_low, ecn_low);
    set(&mut group.ecn_fallback, ecn_fallback);
    set(&mut group.ect1, ect1);
    set(&mut group.fast_open, fast_open);
    set(&mut group.direction, direction);
    set(&mut group.arrivals, arrivals);
    set(&mut group.start, start);
    set(&mut group.spacing, spacing);
    set(&mut group.extra_rtt, extra_rtt);
    group.stop = stop.map(|stop| stop.value);
    let count = list_or(count, &group.count);
    Ok((group, Flows { cc, count, ecn }))
}

fn probe(mut table: Table<'_, '_>) -> Result<ProbeGroup, SweepError> {
    let mut probe = ProbeGroup::default();
    set(&mut probe.kind, table.one("kind", word)?);
    set(&mut probe.interval, table.one("interval", word)?);
    set(&mut probe.cc, table.one("cc", word)?);
    set(&mut probe.ecn, table.one("ecn", EcnRequest::read)?);
    probe.size = table.one("size", word)?.map(|size| size.value);
    table.finish()?;
    Ok(probe)
}
