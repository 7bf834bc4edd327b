//! The path that a shell's link has, from the arguments.

use std::fs;
use std::path::Path;
use std::time::Duration;

use dualq_qdisc::QdiscLine;
use dualq_scenario::{
    Direction, Link, Loss, Overrides, Passage, Scenario, Setup, Sweep, Trace, UpLink,
};
use dualq_units::{Exact, Rate, tc_time};

use crate::cli::shell::OpenArgs;
use crate::cli::{Failure, note, note_units};
use crate::output::plain;
use crate::run::source;

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

/// A rate, or none, and a queue discipline, or the one that there is: `20mbit fq_codel limit 100`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bottleneck {
    pub(crate) rate: Option<Rate>,
    pub(crate) qdisc: Option<QdiscLine>,
}

impl Bottleneck {
    /// Reads it; `option` is where it stands.
    pub(crate) fn read(option: &str, words: &str) -> Result<Self, Failure> {
        let words = words.trim();
        let (first, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
        let qdisc = (!rest.trim().is_empty()).then(|| qdisc(option, rest.trim())).transpose()?;
        let rate = rate(option, first)?;
        if rate.is_none() && qdisc.is_some() {
            let message = format!("{option} {words:?}: without a rate nothing queues");
            return Err(Failure::Usage(message));
        }
        Ok(Self { rate, qdisc })
    }
}

/// A rate in tc's words, or `unlimited`.
pub(crate) fn rate(option: &str, word: &str) -> Result<Option<Rate>, Failure> {
    if word == UNLIMITED {
        return Ok(None);
    }
    word.parse().map(Some).map_err(|error| wrong(option, &error))
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
        let mut unlimited = [false, false];
        if let Some(word) = &args.rate
            && args.scenario.is_none()
        {
            unlimited = [rate("--rate", word)?.is_none(); 2];
        }
        if let Some(word) = &args.loss {
            let loss = Loss::parse(word).map_err(|error| wrong("--loss", &error))?;
            (link.loss, up(link).loss) = (loss, loss);
        }
        if let Some(mtu) = args.mtu {
            link.mtu = mtu;
        }
        for (direction, option, words) in
            [(Direction::Down, "--down", &args.down), (Direction::Up, "--up", &args.up)]
        {
            if let Some(words) = words {
                let given = Bottleneck::read(option, words)?;
                unlimited[usize::from(!direction.is_down())] = given.rate.is_none();
                put(link, direction, &given);
            }
        }
        let traces = [("--down-trace", &args.down_trace), ("--up-trace", &args.up_trace)];
        for (direction, (option, file)) in [Direction::Down, Direction::Up].into_iter().zip(traces)
        {
            let named = file.as_ref().map(|file| (option, file));
            if let Some((option, file)) =
                named.or(args.trace.as_ref().map(|file| ("--trace", file)))
            {
                play(link, direction, option, file)?;
            }
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
    if let Some(rate) = args.rate.as_ref().map(|word| rate("--rate", word)).transpose()?.flatten() {
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
    let (source, _) = source(Some(file))?;
    if !args.quiet {
        for told in dualq_scenario::notes(&source) {
            note(&format!("{named}: {told}"));
        }
    }
    let list = |word: &Option<String>| word.iter().cloned().collect::<Vec<_>>();
    let as_it_is = Overrides {
        qdisc: list(&args.qdisc),
        rate: list(&args.rate),
        rtt: list(&args.rtt),
        ..Overrides::default()
    };
    let longer = Overrides {
        duration: Some(LONGEST_WORD.to_owned()),
        interval: Some(LONGEST_WORD.to_owned()),
        ..as_it_is.clone()
    };
    let folder = file.parent().unwrap_or(Path::new(""));
    // Its traces are to last, unless its own programs are too much for so long.
    let sweep = Sweep::parse_in(folder, &source, &longer)
        .or_else(|_| Sweep::parse_in(folder, &source, &as_it_is))
        .map_err(|error| {
            let named = if error.option.is_some() { String::new() } else { format!("{named}: ") };
            Failure::Usage(format!("{named}{error}"))
        })?;
    // Lists of what is sent do not matter here.
    let mut links: Vec<Link> = Vec::new();
    let mut first = None;
    for variant in sweep.variants() {
        let setup = variant.scenario.into_setup();
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

fn up(link: &mut Link) -> &mut UpLink {
    link.up.get_or_insert_default()
}

/// Puts a bottleneck into a direction.
fn put(link: &mut Link, direction: Direction, given: &Bottleneck) {
    let Bottleneck { rate, qdisc } = given;
    match direction {
        Direction::Down => {
            link.rate = rate.unwrap_or(link.rate);
            link.qdisc = qdisc.clone().unwrap_or_else(|| link.qdisc.clone());
            link.step.clear();
        }
        Direction::Up => {
            let usual = link.rate;
            let up = up(link);
            up.rate = rate.or(up.rate).or(Some(usual));
            up.qdisc = qdisc.clone().or_else(|| up.qdisc.clone());
            up.step.clear();
        }
    }
}

/// Gives a direction the rates of a trace.
fn play(link: &mut Link, direction: Direction, option: &str, file: &Path) -> Result<(), Failure> {
    let named = file.display();
    let text = fs::read_to_string(file)
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
