//! `dualq replay`: from the arguments to the outcome.

use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroU64;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dualq_qdisc::{Spec, grammar};
use dualq_replay::trace::{self, Arrivals, TraceError};
use dualq_replay::{EventLog, Outcome, Replay, Settings};
use dualq_report::replayed::Document;
use dualq_units::{Bytes, Instant, Rate, plain};
use dualq_worlds::Origin;

use crate::cli::replay::ReplayArgs;
use crate::cli::{Failure, note, note_units};
use crate::live::Live;
use crate::output::{Named, Output, keep_apart, print, width};
use crate::pictures::Pictures;
use crate::progress::{Counted, Progress};
use crate::report;
use crate::run::{PROGRAM, origin};
use crate::stored::stem;

/// What was replayed, and what came of it.
pub(crate) struct Summary {
    pub(crate) trace: String,
    pub(crate) settings: Settings,
    pub(crate) arrivals: Totals,
    pub(crate) outcomes: Vec<Outcome>,
    /// What made it, where that is to be kept.
    pub(crate) origin: Option<Origin>,
}

/// What arrived.
#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) first: Instant,
    pub(crate) last: Instant,
}

/// How many packets go by between two looks at the clock.
const TICK: u64 = 1 << 16;

pub(crate) fn run(args: &ReplayArgs) -> Result<(), Failure> {
    let settings = settings(args)?;
    let (specs, notices) = specs(&args.qdisc)?;
    check_outputs(args)?;
    note_units([&args.rate], []);
    for notice in notices {
        note(&notice);
    }

    let name = args.trace.display().to_string();
    let failed = |error: TraceError| Failure::Run(format!("{name}: {error}"));
    let (mut progress, input, interrupted) = open(args)?;
    let mut stream = trace::read(input, settings.mtu).map_err(failed)?;
    if let Some(name) = &args.interface {
        stream = stream.of_interface(name).map_err(failed)?;
    }
    let events = args.events.as_deref().map(Output::create).transpose()?;
    let report = args.report.as_deref().map(Named::open).transpose()?;
    let pictures = Pictures::open(&args.pictures)?;
    let pictured = args.distributions || report.is_some() || pictures.is_any();
    let mut replay = Replay::new(&specs, &settings, events.map(EventLog::new));
    if pictured {
        replay = replay.over_time();
    }
    let arrivals = feed(&mut replay, &mut stream, &mut progress).map_err(failed)?;
    let cannot_write = |error: io::Error| match (error.kind(), &args.events) {
        (io::ErrorKind::BrokenPipe, _) | (_, None) => Failure::BrokenPipe,
        (_, Some(path)) => {
            Failure::Run(format!("cannot write {}: {}", path.display(), plain(&error)))
        }
    };
    let (outcomes, events) = replay.finish().map_err(cannot_write)?;
    progress.clear();
    if let Some(events) = events {
        events.finish().map_err(cannot_write)?;
    }
    for notice in stream.notices() {
        note(&notice);
    }
    if interrupted.is_some_and(|interrupted| interrupted.load(Ordering::Relaxed)) {
        note("interrupted; this is what came until then");
    }

    let origin = pictured.then(origin);
    let summary = Summary { trace: name.clone(), settings, arrivals, outcomes, origin };
    if report.is_some() || pictures.is_any() {
        let document = Document::read(&report::replay::json(&summary))
            .map_err(|error| Failure::Run(error.to_string()))?;
        pictures.write(std::iter::once((stem(&args.trace).as_str(), document.pictures())))?;
        report.map_or(Ok(()), |file| file.write(document.page(PROGRAM).as_bytes()))?;
    }
    let text = if args.json {
        report::replay::json(&summary)
    } else {
        report::replay::text(&summary, width())
    };
    if args.events.as_deref() == Some(Path::new("-")) {
        print(&mut io::stderr(), &text)
    } else {
        print(&mut io::stdout(), &text)
    }
}

fn settings(args: &ReplayArgs) -> Result<Settings, Failure> {
    let usage = |message: String| Failure::Usage(message);
    let rate: Rate = args.rate.parse().map_err(|error| usage(format!("--rate: {error}")))?;
    if rate.as_bits_per_second() == 0 {
        let given = &args.rate;
        return Err(usage(format!(
            "--rate {given}: the link needs a rate above 0, such as 50mbit"
        )));
    }
    let mtu = args.mtu.parse().ok().filter(|mtu| (68..=65_535).contains(mtu)).ok_or_else(|| {
        let given = &args.mtu;
        usage(format!("--mtu {given}: give 68 to 65535 bytes, such as 1500"))
    })?;
    let seed = match &args.seed {
        None => Settings::DEFAULT_SEED,
        Some(seed) => seed.parse::<NonZeroU64>().map_err(|_| {
            usage(format!("--seed {seed}: give a whole number from 1 to {}", u64::MAX))
        })?,
    };
    Ok(Settings { rate, mtu, seed })
}

fn specs(lines: &[String]) -> Result<(Vec<Spec>, Vec<String>), Failure> {
    let mut specs = Vec::new();
    let mut notices = Vec::new();
    for line in lines {
        let parsed =
            grammar::parse(line).map_err(|error| Failure::Usage(format!("--qdisc: {error}")))?;
        specs.push(parsed.spec);
        notices.extend(parsed.notices.iter().map(|notice| format!("{line}: {notice}")));
    }
    Ok((specs, notices))
}

/// Refuses outputs that get into each other's way.
fn check_outputs(args: &ReplayArgs) -> Result<(), Failure> {
    if args.report.as_deref() == Some(Path::new("-")) {
        let message = "a report on standard output leaves no room for the summary: give a file";
        return Err(Failure::Usage(message.to_owned()));
    }
    let written = [("--report", args.report.as_ref()), ("--events", args.events.as_ref())];
    keep_apart(&[("the trace", &args.trace)], &written)?;
    let Some(events) = &args.events else { return Ok(()) };
    if args.qdisc.len() > 1 {
        let message = "--events writes what one queue discipline does; give one --qdisc";
        return Err(Failure::Usage(message.to_owned()));
    }
    if args.json && events == Path::new("-") {
        let message = "--json and --events - both want standard output; give --events a file";
        return Err(Failure::Usage(message.to_owned()));
    }
    Ok(())
}

/// What is read, and if an interrupt ends the reading, what tells so.
type Input = (Progress, Counted<Box<dyn Read + Send>>, Option<Arc<AtomicBool>>);

fn open(args: &ReplayArgs) -> Result<Input, Failure> {
    let wanted = !args.no_progress;
    let cannot = |error: io::Error| {
        Failure::Run(format!("cannot open {}: {}", args.trace.display(), plain(&error)))
    };
    let file = if args.trace == Path::new("-") {
        File::from(io::stdin().as_fd().try_clone_to_owned().map_err(cannot)?)
    } else {
        File::open(&args.trace).map_err(cannot)?
    };
    let metadata = file.metadata().map_err(cannot)?;
    if metadata.is_file() || metadata.is_dir() {
        let (progress, input) = Progress::of(Box::new(file) as _, Some(metadata.len()), wanted);
        return Ok((progress, input, None));
    }
    let (live, interrupted) = Live::new(file).map_err(cannot)?;
    let (progress, input) = Progress::of(Box::new(live) as _, None, wanted);
    Ok((progress, input, Some(interrupted)))
}

fn feed(
    replay: &mut Replay<Output>,
    stream: &mut Arrivals<'_>,
    progress: &mut Progress,
) -> Result<Totals, TraceError> {
    let mut totals = Totals::default();
    while let Some(arrival) = stream.next_arrival()? {
        if totals.packets == 0 {
            totals.first = arrival.at;
        }
        totals.last = arrival.at;
        totals.packets += 1;
        totals.bytes += u64::from(arrival.length);
        replay.arrive(&arrival);
        if totals.packets.is_multiple_of(TICK) {
            progress.tick(totals.packets);
            if replay.has_failed() {
                break;
            }
        }
    }
    Ok(totals)
}

impl Totals {
    /// The rate at which packets arrived, from the first to the last.
    pub(crate) fn rate(&self) -> Rate {
        Rate::of(Bytes(self.bytes), self.last - self.first)
    }
}
