//! `dualq plan`: from a machine's facts and its user's requirements to a file of changes.

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use dualq_host::facts::Os;
use dualq_host::plan::{
    Evidence, PlanError, Profile, Question, Requirements, StaticRoute, Wish, check_state,
};
use dualq_host::{Facts, Plan};
use dualq_measure::{Bottleneck, Direction};
use dualq_qdisc::grammar;
use dualq_scenario::check_rate;
use dualq_units::{Rate, plain, tc_time};
use dualq_worlds::Model;

use crate::cli::plan::PlanArgs;
use crate::cli::{Failure, WorldName, note, note_units};
use crate::input;
use crate::output::{Output, print, print_marked, text_width, width};
use crate::predict::{self, Prediction};
use crate::world;
use crate::{doctor, report};

/// Nobody's bottleneck is slower: what is given without a unit is in bit/s.
const LEAST_RATE: u64 = 1_000;

pub(crate) fn run(args: &PlanArgs) -> Result<(), Failure> {
    // What is wrong with the arguments is told before anything is read.
    if args.json && args.output.as_deref() == Some(Path::new("-")) {
        let both = "--json and -o - both take standard output: give the plan a file";
        return Err(Failure::Usage(both.to_owned()));
    }
    let mut requirements = requirements(args)?;
    let rates = args.rate.iter().map(|word| scope(word).1.to_owned()).collect::<Vec<_>>();
    note_units(&rates, args.rtt.iter().map(|rtt| ("--rtt", rtt)));
    let facts = match &args.facts {
        Some(path) => doctor::saved(path)?,
        None => doctor::here()?,
    };
    requirements.profile = match args.profile {
        Some(profile) => profile.into(),
        // Whoever gives a congestion control means the machine's own TCP.
        None if args.cc.is_none() => Profile::fitting(&facts),
        None => Profile::default(),
    };
    if let Some(os) = args.os.map(Os::from)
        && os != facts.os
    {
        let name = |os| if os == Os::Linux { "Linux" } else { "FreeBSD" };
        let how = match os {
            Os::FreeBsd => "give by --facts what `sysctl -a` prints there",
            Os::Linux => "give by --facts what `dualq doctor --json` prints there",
        };
        let message =
            format!("--os: the facts are of {}, not of {}; {how}", name(facts.os), name(os));
        return Err(Failure::Usage(message));
    }
    let predictions = predictions(args, &facts, &requirements)?;
    let evidence: Vec<&Evidence> =
        predictions.iter().map(|prediction| &prediction.evidence).collect();
    let mut plan = Plan::make_by(&facts, &requirements, &evidence)?;
    if args.profile.is_none() && requirements.profile == Profile::Gateway {
        plan.notes.push(
            "this machine forwards for others, so this is a gateway's plan: its own TCP stays as it is; --profile low-latency is for a \
             machine that sends itself"
                .to_owned(),
        );
    }
    for word in rates.iter().filter(|word| word.to_ascii_lowercase().ends_with("bps")) {
        if let Ok(rate) = word.parse::<Rate>() {
            plan.notes.push(format!(
                "{word} is {rate} in tc's words, where bps are bytes a second; an eighth of it is {}bit",
                &word[..word.len() - "bps".len()]
            ));
        }
    }
    plan.notes.extend(shared(args));
    match args.output.as_deref() {
        Some(path) if path == Path::new("-") => return print(&mut io::stdout(), &plan.write()),
        Some(path) => write(path, &plan)?,
        None => {}
    }
    // That it makes things worse is not to be passed over.
    let warnings = evidence.iter().filter_map(|evidence| evidence.warning());
    let warns = warnings.into_iter().any(|warning| plan.about.contains(&warning));
    let marked = if warns && !args.json { &[0][..] } else { &[] };
    print_marked(&mut io::stdout(), &text(args, &plan, &predictions), marked)
}

/// What a simulation says, where there is something to choose, or where it was asked for.
fn predictions(
    args: &PlanArgs,
    facts: &Facts,
    requirements: &Requirements,
) -> Result<Vec<Prediction>, Failure> {
    if facts.os != Os::Linux {
        let asked = if args.predict {
            "--predict"
        } else if args.world.is_some() {
            "--world"
        } else {
            return Ok(Vec::new());
        };
        let message = format!("{asked}: what is simulated has Linux's TCP, not FreeBSD's");
        return Err(Failure::Usage(message));
    }
    let questions = Question::each(facts, requirements, args.predict)?.into_iter();
    match args.world {
        Some(WorldName::Live) => {
            let hint =
                "a plan is found by hundreds of runs, which live would take hours: model or kernel";
            Err(Failure::Usage(format!("--world live: {hint}")))
        }
        Some(WorldName::Kernel) => {
            let kernel = world::kernel(None)?;
            questions.map(|question| predict::predict(question, args.predict, &kernel)).collect()
        }
        Some(WorldName::Model) | None => {
            questions.map(|question| predict::predict(question, args.predict, &Model)).collect()
        }
    }
}

fn text(args: &PlanArgs, plan: &Plan, predictions: &[Prediction]) -> String {
    let shown = if args.predict { predictions } else { &[] };
    if args.json {
        return report::plan::json(plan, shown);
    }
    let mut text = report::plan::text(plan, args.predict, text_width());
    for prediction in shown {
        text.push('\n');
        text.push_str(&report::plan::prediction(prediction, text_width(), width()));
    }
    if plan.os == Os::Linux && !plan.changes.is_empty() {
        text.push_str(&match &args.output {
            Some(path) => report::plan::written(path),
            None => "\nNothing is changed yet. With -o plan.toml this becomes a file: sudo dualq apply plan.toml\n"
                .to_owned(),
        });
    }
    text
}

/// Reads a word of the command line.
fn read<T, E: std::fmt::Display>(
    option: &str,
    word: Option<&str>,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<Option<T>, Failure> {
    let refuse = |error| Failure::Usage(format!("{option}: {error}"));
    word.map(|word| parse(word).map_err(refuse)).transpose()
}

/// A rate that a link can have, of a machine's own; 0 is for who reads it.
pub(crate) fn rate(option: &str, word: Option<&str>) -> Result<Option<Rate>, Failure> {
    let rate = read(option, word, str::parse::<Rate>)?;
    if let Some(word) = word
        && rate.is_some_and(|rate| (1..LEAST_RATE).contains(&rate.as_bits_per_second()))
    {
        return Err(Failure::Usage(format!(
            "{option}: {word:?} is less than {LEAST_RATE} bit/s; rates have units, such as 48mbit"
        )));
    }
    if let Some(rate) = rate.filter(|rate| rate.as_bits_per_second() > 0) {
        check_rate(option, rate).map_err(|error| Failure::Usage(error.to_string()))?;
    }
    Ok(rate)
}

/// The interface for which a word is alone, if it says one, and the rest: `eth0=50mbit`.
fn scope(word: &str) -> (Option<&str>, &str) {
    match word.split_once('=') {
        Some((dev, rest)) => (Some(dev), rest),
        None => (None, word),
    }
}

/// Words of an option, each for one interface or for those that have none of their own.
struct Scoped<'a> {
    option: &'static str,
    words: &'a [String],
}

impl<'a> Scoped<'a> {
    /// Refuses a word for an interface that no plan is for, and two for the same.
    fn of(option: &'static str, words: &'a [String], devs: &[String]) -> Result<Self, Failure> {
        for (index, word) in words.iter().enumerate() {
            let (dev, _) = scope(word);
            if dev == Some("") {
                let message = format!("{option} {word}: there is no interface before the \"=\"");
                return Err(Failure::Usage(message));
            }
            if let Some(dev) = dev.filter(|dev| !devs.iter().any(|known| known == dev)) {
                return Err(Failure::Usage(format!(
                    "{option} {word}: the plan is not for {dev:?}: add --dev {dev}, or leave that out where there is one interface"
                )));
            }
            if words[..index].iter().any(|other| scope(other).0 == dev) {
                let whom = dev.map_or(String::new(), |dev| format!(" for {dev}"));
                let message = format!("{option} is given twice{whom}: one of them is to go");
                return Err(Failure::Usage(message));
            }
        }
        let for_all = words.iter().find(|word| scope(word).0.is_none());
        let has_own = |dev: &String| words.iter().any(|word| scope(word).0 == Some(dev));
        if let Some(word) = for_all.filter(|_| !devs.is_empty() && devs.iter().all(has_own)) {
            let each = if devs.len() > 1 { "each of them" } else { &devs[0] };
            return Err(Failure::Usage(format!(
                "{option} {word} is for interfaces without one of their own, and {each} has one: one of them is to go"
            )));
        }
        Ok(Self { option, words })
    }

    /// What it says for this interface.
    fn word(&self, dev: Option<&str>) -> Option<&'a str> {
        let all = || self.words.iter().map(|word| scope(word));
        let own = all().find(|(whose, _)| whose.is_some() && *whose == dev);
        own.or_else(|| all().find(|(whose, _)| whose.is_none())).map(|(_, word)| word)
    }

    fn rate(&self, dev: Option<&str>) -> Result<Option<Rate>, Failure> {
        let option =
            match dev.filter(|dev| self.words.iter().any(|word| scope(word).0 == Some(dev))) {
                Some(dev) => &format!("{} {dev}", self.option),
                None => self.option,
            };
        rate(option, self.word(dev))
    }
}

/// Rates that several interfaces have each.
fn shared(args: &PlanArgs) -> Vec<String> {
    let mut notes = Vec::new();
    for (option, words) in [("--rate", &args.rate), ("--down", &args.down)] {
        let is_own = |dev: &&String| words.iter().any(|word| scope(word).0 == Some(dev.as_str()));
        let without: Vec<&str> =
            args.dev.iter().filter(|dev| !is_own(dev)).map(String::as_str).collect();
        let word = words.iter().map(|word| scope(word)).find(|(dev, _)| dev.is_none());
        if let Some((_, word)) = word.filter(|_| without.len() > 1) {
            notes.push(format!(
                "{option} {word} is the rate of each of {}: what they have in common further on may be less than the sum, and is kept only \
                 where they meet",
                without.join(", ")
            ));
        }
    }
    notes
}

fn requirements(args: &PlanArgs) -> Result<Requirements, Failure> {
    let scoped = |option, words| Scoped::of(option, words, &args.dev);
    let rates = scoped("--rate", &args.rate)?;
    let downs = scoped("--down", &args.down)?;
    let qdiscs = scoped("--qdisc", &args.qdisc)?;
    let parents = scoped("--parent", &args.parent)?;
    let down_qdiscs = scoped("--down-qdisc", &args.down_qdisc)?;
    let wish = |dev: &str| -> Result<Wish, Failure> {
        let word = |scoped: &Scoped<'_>| scoped.word(Some(dev)).map(str::to_owned);
        Ok(Wish {
            dev: dev.to_owned(),
            parent: read("--parent", parents.word(Some(dev)), str::parse)?,
            rate: rates.rate(Some(dev))?,
            down: downs.rate(Some(dev))?,
            qdisc: word(&qdiscs),
            down_qdisc: word(&down_qdiscs),
        })
    };
    for (option, scoped) in [("--qdisc", &qdiscs), ("--down-qdisc", &down_qdiscs)] {
        let devs = args.dev.iter().map(|dev| Some(dev.as_str())).chain([None]);
        let lines: BTreeSet<&str> = devs.filter_map(|dev| scoped.word(dev)).collect();
        // What is wrong with a line is said where it is planned for.
        for parsed in lines.into_iter().filter_map(|line| grammar::parse(line).ok()) {
            parsed.notices.iter().for_each(|notice| note(&format!("{option}: {notice}")));
        }
    }
    let others: Result<Vec<Wish>, Failure> = args.dev.iter().skip(1).map(|dev| wish(dev)).collect();
    let others = others?;
    if !others.is_empty() && args.from.is_some() {
        let message = "--from: one path was measured, and the plan is for several interfaces: give --rate DEV=RATE for each, and --rtt";
        return Err(Failure::Usage(message.to_owned()));
    }
    let first = args.dev.first().map(String::as_str);
    let rate = rates.rate(first)?;
    let rtt = read("--rtt", args.rtt.as_deref(), tc_time::parse)?;
    let (rate, rtt) = match &args.from {
        Some(path) => {
            let (measured_rate, measured_rtt) = measured(path)?;
            (rate.or(measured_rate), rtt.or(Some(measured_rtt)))
        }
        None => (rate, rtt),
    };
    if rtt.is_some_and(|rtt| rtt.is_zero() || rtt > Duration::from_secs(60)) {
        return Err(Failure::Usage("--rtt: give a time above 0 and up to 60s".to_owned()));
    }
    let route = match (&args.route, &args.via, args.mtu) {
        (Some(to), Some(via), Some(mtu)) => {
            let to = read("--route", Some(to), str::parse)?;
            let via = read("--via", Some(via), str::parse)?;
            to.zip(via).map(|(to, via)| StaticRoute { to, via, mtu })
        }
        _ => None,
    };
    Ok(Requirements {
        profile: Profile::default(),
        aim: args.aim.into(),
        rate,
        down: downs.rate(first)?,
        dev: first.map(str::to_owned),
        parent: read("--parent", parents.word(first), str::parse)?,
        cc: args.cc.clone(),
        qdisc: qdiscs.word(first).map(str::to_owned),
        down_qdisc: down_qdiscs.word(first).map(str::to_owned),
        rtt,
        state: state(args.state.as_deref())?,
        tunnel: args.tunnel,
        scalable: args.scalable,
        link: args.link.map(Into::into),
        offloads: args.offloads,
        route,
        others,
    })
}

/// The rate and the round trip of a measured path. What this machine sends is what its queue disciplines see; where its own interface is as
/// slow they need no rate.
fn measured(path: &Path) -> Result<(Option<Rate>, Duration), Failure> {
    let measured = crate::measure::stored(path)?;
    let up = [Direction::Upload, Direction::Both]
        .into_iter()
        .find_map(|direction| measured.under(direction)?.up.as_ref());
    let (Some(up), Some(base_ms)) = (up, measured.base_rtt_ms()) else {
        let name = path.display();
        let message = format!(
            "--from {name}: no upload was measured, and that is what this machine's queue sees"
        );
        return Err(Failure::Run(message));
    };
    let is_slow_here = measured.bottleneck == Some(Bottleneck::Interface);
    let rate = (!is_slow_here).then(|| Rate::from_bits_per_second((up.line_mbit * 1e6) as u64));
    Ok((rate, Duration::from_micros((base_ms * 1e3).round() as u64)))
}

/// The folder of records as rules are to name it.
pub(crate) fn state(folder: Option<&Path>) -> Result<Option<String>, Failure> {
    let Some(folder) = folder else { return Ok(None) };
    let wrong = |why: &str| Failure::Usage(format!("--state: {}: {why}", folder.display()));
    if !folder.is_absolute() {
        return Err(wrong("what runs at boot needs an absolute path"));
    }
    let name = folder.to_str().ok_or_else(|| wrong("it is no text"))?;
    check_state(name).map_err(|message| Failure::Usage(format!("--state: {message}")))?;
    Ok(Some(name.to_owned()))
}

/// Writes the plan; a file that is something else is left alone.
pub(crate) fn write(path: &Path, plan: &Plan) -> Result<(), Failure> {
    let name = path.display();
    if path.is_file() {
        let is_plan =
            input::text(path, Plan::LONGEST as u64).is_ok_and(|text| Plan::read(&text).is_ok());
        if !is_plan {
            return Err(Failure::Run(format!(
                "{name} is there and is no plan: it is left as it is"
            )));
        }
    }
    let cannot = |error: io::Error| Failure::Run(format!("cannot write {name}: {}", plain(&error)));
    let mut output = Output::create(path)?;
    output.write_all(plan.write().as_bytes()).map_err(cannot)?;
    output.finish().map_err(cannot)
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Requirement(message) => Self::Usage(message),
            PlanError::Refused { .. } => Self::Run(error.to_string()),
        }
    }
}
