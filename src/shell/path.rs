//! The path that a shell's link has, from the arguments.

use std::path::Path;
use std::time::Duration;

use dualq_qdisc::QdiscLine;
use dualq_scenario::{
    Direction, Link, Loss, Overrides, Passage, Scenario, Setup, Sweep, Trace, UpLink,
};
use dualq_units::{Exact, Rate, plain, tc_time};

use crate::cli::shell::OpenArgs;
use crate::cli::{Failure, note, note_units};
use crate::input;
use crate::run::{self, Source};

/// For so long traces are played over and over, and rates change; what the last of them is then stays. A week would be ten million
/// changes.
const LONGEST: Duration = Duration::from_secs(7200);
const LONGEST_WORD: &str = "7200s";
/// A link without a rate: packets only take time.
const UNLIMITED: &str = "unlimited";

/// What a link is to be like.
#[derive(Clone, Debug)]
pub(crate) struct ShellPath {
    /// Downwards, from far to near, and upwards.
    pub(crate) passages: [Passage; 2],
    /// What it is made of.
    pub(crate) scenario: Scenario,
}

/// A rate and a queue discipline, or one of them, where the other stays: `20mbit fq_codel limit 100`, `20mbit`, `fq_codel`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bottleneck {
    pub(crate) rate: Option<Capacity>,
    pub(crate) qdisc: Option<QdiscLine>,
}

/// What is said of a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Capacity {
    Unlimited,
    Rate(Rate),
}

impl Bottleneck {
    /// Reads it; `option` is where it stands.
    pub(crate) fn read(option: &str, words: &str) -> Result<Self, Failure> {
        let words = words.trim();
        let (first, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
        // No rate begins with a letter, and every discipline does.
        if first != UNLIMITED && first.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Ok(Self { rate: None, qdisc: Some(qdisc(option, words)?) });
        }
        let qdisc = (!rest.trim().is_empty()).then(|| qdisc(option, rest.trim())).transpose()?;
        let rate = rate(option, first)?;
        if rate == Capacity::Unlimited && qdisc.is_some() {
            return Err(nothing_queues(option, words));
        }
        Ok(Self { rate: Some(rate), qdisc })
    }
}

fn nothing_queues(option: &str, words: &str) -> Failure {
    Failure::Usage(format!("{option} {words:?}: without a rate nothing queues"))
}

/// A rate in tc's words, or `unlimited`.
pub(crate) fn rate(option: &str, word: &str) -> Result<Capacity, Failure> {
    if word == UNLIMITED {
        return Ok(Capacity::Unlimited);
    }
    word.parse().map(Capacity::Rate).map_err(|error| wrong(option, &error))
}

pub(crate) fn qdisc(option: &str, words: &str) -> Result<QdiscLine, Failure> {
    words.parse().map_err(|error| wrong(option, &error))
}

pub(crate) fn time(option: &str, word: &str) -> Result<Duration, Failure> {
    tc_time::parse_span(word).map_err(|error| wrong(option, &error))
}

fn wrong(option: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::Usage(format!("{option}: {error}"))
}

impl ShellPath {
    pub(crate) fn of(args: &OpenArgs) -> Result<Self, Failure> {
        if !args.quiet {
            let rates = args.rate.iter().filter(|word| *word != UNLIMITED);
            note_units(rates, args.rtt.iter().map(|rtt| ("--rtt", rtt)));
        }
        let mut setup = match &args.scenario {
            Some(file) => read(file, args)?,
            None => own(args)?,
        };
        // What is to be sent, the user decides.
        (setup.flow, setup.udp, setup.probe) = Default::default();
        let link = &mut setup.link;
        let is_unlimited = args.rate.as_deref() == Some(UNLIMITED);
        let mut unlimited = [is_unlimited; 2];
        if let Some(word) = &args.loss {
            let loss = Loss::parse(word).map_err(|error| wrong("--loss", &error))?;
            (link.loss, up(link).loss) = (loss, loss);
        }
        if let Some(mtu) = args.mtu {
            link.mtu = mtu;
        }
        for (direction, (option, words), (trace_option, trace)) in [
            (Direction::Down, ("--down", &args.down), ("--down-trace", &args.down_trace)),
            (Direction::Up, ("--up", &args.up), ("--up-trace", &args.up_trace)),
        ] {
            let unlimited = &mut unlimited[usize::from(!direction.is_down())];
            let trace = trace.as_ref().map(|file| (trace_option, file));
            let trace = trace.or(args.trace.as_ref().map(|file| ("--trace", file)));
            let given = words.as_ref().map(|words| Bottleneck::read(option, words)).transpose()?;
            if let (Some(words), Some(given)) = (words, &given) {
                if let (Some(_), Some((trace, _))) = (given.rate, trace) {
                    return Err(Failure::Usage(format!(
                        "{option} {words:?}: {trace} says the rates of that way; give a queue discipline alone, such as {option} fq_codel"
                    )));
                }
                *unlimited = given.rate.map_or(*unlimited, |rate| rate == Capacity::Unlimited);
                put(link, direction, given);
            }
            if let Some((option, file)) = trace {
                play(link, direction, option, file)?;
            }
            if let (Some(words), Some(Bottleneck { qdisc: Some(_), .. })) = (words, &given)
                && (*unlimited || !has_rate(link, direction))
            {
                return Err(nothing_queues(option, words));
            }
        }
        if let Some(words) = &args.qdisc
            && unlimited[0]
            && (unlimited[1] || !has_rate(link, Direction::Up))
        {
            return Err(nothing_queues("--qdisc", words));
        }
        setup.duration = LONGEST.max(setup.duration);
        setup.interval = setup.duration;
        let scenario =
            Scenario::try_from(setup).map_err(|error| refused(&error.key, &error.message))?;
        let passages = [Direction::Down, Direction::Up].map(|direction| {
            let mut passage = scenario.link.passage(direction);
            if unlimited[usize::from(!direction.is_down())] {
                (passage.bottleneck, passage.step) = (None, Vec::new());
            }
            passage
        });
        Ok(Self { passages, scenario })
    }

    /// The path in a line.
    pub(crate) fn words(&self) -> String {
        let way = |passage: &Passage| match &passage.bottleneck {
            Some((rate, qdisc)) => format!("{} {}", Exact(*rate), qdisc.text()),
            None => "no rate".to_owned(),
        };
        let [down, up] = self.passages.each_ref().map(way);
        let rtt = Exact(self.scenario.link.base_rtt());
        let ways =
            if down == up { format!("{down} each way") } else { format!("{down} down, {up} up") };
        format!("{ways}, {rtt} round trip")
    }
}

/// What the options say where no scenario does: alike in both directions.
fn own(args: &OpenArgs) -> Result<Setup, Failure> {
    let mut setup = Setup { name: "shell".to_owned(), ..Setup::default() };
    let link = &mut setup.link;
    if let Some(rtt) = &args.rtt {
        link.rtt = time("--rtt", rtt)?;
    }
    link.forward = link.rtt / 2;
    if let Some(word) = &args.rate
        && let Capacity::Rate(rate) = rate("--rate", word)?
    {
        link.rate = rate;
    }
    if let Some(words) = &args.qdisc {
        link.qdisc = qdisc("--qdisc", words)?;
    }
    let (rate, qdisc) = (Some(link.rate), Some(link.qdisc.clone()));
    link.up = Some(UpLink { rate, qdisc, ..UpLink::default() });
    Ok(setup)
}

/// The scenario of a file, of which there must be one.
fn read(file: &Path, args: &OpenArgs) -> Result<Setup, Failure> {
    let named = file.display();
    let Source { text, folder, shipped, .. } = run::read(Some(file))?;
    if !args.quiet {
        for told in dualq_scenario::notes(&text) {
            note(&format!("{named}: {told}"));
        }
    }
    let list = |word: &Option<String>| word.iter().cloned().collect::<Vec<_>>();
    // A scenario has a rate; without one it is left out of the path afterwards.
    let rate = args.rate.as_deref().map(|word| match word {
        UNLIMITED => Exact(Link::default().rate).to_string(),
        word => word.to_owned(),
    });
    let as_it_is = Overrides {
        qdisc: list(&args.qdisc),
        rate: list(&rate),
        rtt: list(&args.rtt),
        ..Overrides::default()
    };
    let longer = Overrides {
        duration: Some(LONGEST_WORD.to_owned()),
        interval: Some(LONGEST_WORD.to_owned()),
        ..as_it_is.clone()
    };
    let files = dualq_scenario::files(&shipped, &folder);
    // Its traces are to last, unless its own programs are too much for so long.
    let sweep = Sweep::parse_beside(&files, &text, &longer)
        .or_else(|_| Sweep::parse_beside(&files, &text, &as_it_is))
        .map_err(|error| {
            let named = if error.option.is_some() { String::new() } else { format!("{named}: ") };
            Failure::Usage(format!("{named}{error}"))
        })?;
    // Lists of what is sent do not matter here.
    let mut links: Vec<Link> = Vec::new();
    let mut first = None;
    for variant in sweep.variants() {
        let mut setup = variant.scenario.into_setup();
        each_way(&mut setup.link, args);
        if !links.contains(&setup.link) {
            links.push(setup.link.clone());
        }
        first.get_or_insert(setup);
    }
    match (links.len(), first) {
        (1, Some(setup)) => Ok(setup),
        (count, _) => Err(Failure::Usage(format!(
            "{named}: these are {count} different links, and a shell has one: say which by --rate, --rtt or --qdisc"
        ))),
    }
}

/// What options say of a scenario's way down is meant of both here.
fn each_way(link: &mut Link, args: &OpenArgs) {
    if args.rtt.is_some() {
        link.forward = link.rtt / 2;
    }
    if args.rate.as_deref() == Some(UNLIMITED) {
        // Links that differ in what waits nowhere are one.
        link.qdisc = Link::default().qdisc;
    }
    let (rate, qdisc) = (link.rate, link.qdisc.clone());
    if args.rate.is_some() {
        link.step.clear();
        up(link).step.clear();
        up(link).rate = Some(rate);
    }
    if args.qdisc.is_some() && has_rate(link, Direction::Up) {
        up(link).qdisc = Some(qdisc);
    }
}

fn has_rate(link: &Link, direction: Direction) -> bool {
    direction.is_down() || link.up.as_ref().is_some_and(|up| up.rate.is_some())
}

fn up(link: &mut Link) -> &mut UpLink {
    link.up.get_or_insert_default()
}

/// Puts a bottleneck into a direction. A rate that is given stays.
fn put(link: &mut Link, direction: Direction, given: &Bottleneck) {
    let rate = match given.rate {
        Some(Capacity::Rate(rate)) => Some(rate),
        Some(Capacity::Unlimited) | None => None,
    };
    let (usual, usual_qdisc) = (link.rate, link.qdisc.clone());
    match direction {
        Direction::Down => {
            // What goes up has the discipline of what goes down if nothing else is said, and keeps it.
            if let Some(up) = link.up.as_mut().filter(|up| up.rate.is_some()) {
                up.qdisc.get_or_insert(usual_qdisc);
            }
            link.rate = rate.unwrap_or(usual);
            link.qdisc = given.qdisc.clone().unwrap_or_else(|| link.qdisc.clone());
            if given.rate.is_some() {
                link.step.clear();
            }
        }
        Direction::Up => {
            let up = up(link);
            up.qdisc = given.qdisc.clone().or_else(|| up.qdisc.clone());
            if given.rate.is_some() {
                // One that is left out of the path afterwards has to be there too.
                up.rate = rate.or(up.rate).or(Some(usual));
                up.step.clear();
            }
        }
    }
}

/// Gives a direction the rates of a trace.
fn play(link: &mut Link, direction: Direction, option: &str, file: &Path) -> Result<(), Failure> {
    let named = file.display();
    let text = input::text(file, input::LONGEST)
        .map_err(|error| Failure::Run(format!("cannot read {named}: {}", plain(&error))))?;
    let trace =
        Trace::read(&text).map_err(|error| Failure::Usage(format!("{option} {named}: {error}")))?;
    let (rate, steps) = trace.steps(LONGEST, true).ok_or_else(|| {
        Failure::Usage(format!(
            "{option} {named}: more than a million changes of the rate in two hours"
        ))
    })?;
    match direction {
        Direction::Down => (link.rate, link.step) = (rate, steps),
        Direction::Up => {
            let up = up(link);
            (up.rate, up.step) = (Some(rate), steps);
        }
    }
    Ok(())
}

/// What a scenario refuses, in the words of the options.
fn refused(key: &str, message: &str) -> Failure {
    let option = match key {
        "link.rate" => "--rate",
        "link.up.rate" => "--up",
        "link.rtt" => "--rtt",
        "link.mtu" => "--mtu",
        other => other,
    };
    Failure::Usage(format!("{option}: {message}"))
}
