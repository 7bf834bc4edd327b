//! `dualq verify`: a plan applied and taken back again and again, with measurements in between.

mod path;

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use dualq_host::Plan;
use dualq_host::apply::{Already, Host, Prepared, Record, Rollback, Store};
use dualq_host::plan::Aim;
use dualq_qdisc::QdiscLine;
use dualq_units::{Bytes, plain};
use dualq_verify::{Figures, Judgement, MOST_ROUNDS, Round, Verdict};
use serde::Serialize;

use crate::apply::{self, privileges};
use crate::cli::verify::{HowArgs, VerifyArgs};
use crate::cli::{Failure, note};
use crate::output::print;
use crate::progress::Stages;
use crate::signals::Signals;
use crate::{doctor, report};
use path::{Measured, Measurer};

/// What applying and taking back take beside a measurement, at most.
const CHANGE: Duration = Duration::from_secs(20);
/// What they take as a rule, and finding the host.
const USUAL_CHANGE: Duration = Duration::from_secs(1);

/// What came of it.
#[derive(Debug, Serialize)]
pub(crate) struct Verified {
    /// The version of this document's form.
    verify: u32,
    /// What was verified.
    pub(crate) about: String,
    /// The host to which was measured.
    pub(crate) host: String,
    /// What was to be better.
    pub(crate) aim: Aim,
    #[serde(flatten)]
    pub(crate) judgement: Judgement,
    /// The shortest round trip of all, in milliseconds: the base that latency is above.
    pub(crate) base_rtt_ms: f64,
    pub(crate) seconds: f64,
    pub(crate) bytes: u64,
    /// Each round, and what came first in it.
    pub(crate) measured: Vec<Drawn>,
}

/// A round as it went.
#[derive(Debug, Serialize)]
pub(crate) struct Drawn {
    pub(crate) first: Side,
    #[serde(flatten)]
    pub(crate) round: Round,
}

/// Without the plan, or with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Side {
    Before,
    After,
}

pub(crate) fn run(args: &VerifyArgs) -> Result<(), Failure> {
    let signals = take_signals()?;
    // What is wrong with the arguments is told before anything is read.
    let measurer = Measurer::of(&args.host, &args.how)?;
    let words = Words::of(args)?;
    privileges::check("verify")?;
    let plan = words.plan(args)?;
    let measurer = measurer.of_plan(&plan, &args.how);
    let mut host = apply::host(&args.state)?;
    apply::finish_earlier(&mut host, false)?;
    let mut trials =
        Trials { host: &mut host, plan: &plan, measurer: &measurer, signals: &signals };
    let Some(verified) = trials.verify(&args.how)? else {
        return print(&mut io::stdout(), "nothing to verify: all is as the plan asks for\n");
    };
    let text =
        if args.json { report::verify::json(&verified) } else { report::verify::text(&verified) };
    print(&mut io::stdout(), &text)
}

/// From now on no signal ends this process in the middle of a change.
pub(crate) fn take_signals() -> Result<Signals, Failure> {
    Signals::take(false)
        .map_err(|error| Failure::Run(format!("cannot wait for signals: {}", plain(&error))))
}

/// Tries a plan that is to be kept, and says what came of it; an error if it hurts. Afterwards all is as it was.
pub(crate) fn before_keeping(
    host: &mut Host,
    plan: &Plan,
    (name, how): (&str, &HowArgs),
    signals: &Signals,
) -> Result<(), Failure> {
    let measurer = Measurer::of(name, how)?.of_plan(plan, how);
    let mut trials = Trials { host, plan, measurer: &measurer, signals };
    // Where there is nothing to change, that is said by who would do it.
    let Some(verified) = trials.verify(how)? else { return Ok(()) };
    if verified.judgement.verdict == Verdict::Hurt {
        let line = report::verify::line(&verified);
        return Err(Failure::Run(format!("the plan hurts and is not kept: {line}")));
    }
    // Nobody reads it any more, perhaps: that is no reason to stop half-way.
    let _ = print(&mut io::stdout(), &report::verify::text(&verified));
    Ok(())
}

/// What is to be verified, as it was given.
enum Words<'a> {
    File(&'a Path),
    Qdisc(Box<QdiscLine>),
}

impl<'a> Words<'a> {
    fn of(args: &'a VerifyArgs) -> Result<Self, Failure> {
        if let [one] = &args.what[..] {
            let path = Path::new(one);
            if one == "-" || path.extension().is_some_and(|end| end == "toml") || path.is_file() {
                if args.dev.is_some() {
                    let message = "--dev is for a queue discipline; a plan names its interface";
                    return Err(Failure::Usage(message.to_owned()));
                }
                return Ok(Self::File(path));
            }
        }
        let line = args.what.join(" ");
        let wrong = |error| {
            Failure::Usage(format!("{line:?} is neither a plan (a file) nor a qdisc: {error}"))
        };
        Ok(Self::Qdisc(Box::new(line.parse().map_err(wrong)?)))
    }

    fn plan(self, args: &VerifyArgs) -> Result<Plan, Failure> {
        match self {
            Self::File(path) => apply::read(path),
            Self::Qdisc(line) => Ok(Plan::of_qdisc(&doctor::here()?, args.dev.as_deref(), *line)?),
        }
    }
}

struct Trials<'a> {
    host: &'a mut Host,
    plan: &'a Plan,
    measurer: &'a Measurer,
    signals: &'a Signals,
}

impl Trials<'_> {
    /// Measures in rounds until there is an answer, or time is up.
    fn verify(&mut self, how: &HowArgs) -> Result<Option<Verified>, Failure> {
        let aim = how.aim.map_or(self.plan.aim, Aim::from);
        let round = (how.each + USUAL_CHANGE) * 2;
        let most = (how.max_time.as_secs_f64() / round.as_secs_f64()) as usize;
        if most == 0 {
            return Err(Failure::Usage(format!(
                "--max-time: a round takes {:.0} s: twice --each, and some for changes",
                round.as_secs_f64()
            )));
        }
        // Nothing is told beforehand of what would not be done.
        if let Prepared::Already(already) = self.prepare(how)? {
            return match already {
                Already::There => Ok(None),
                Already::Waiting(_) => Err(Failure::Run(
                    "the plan is applied and not confirmed: `dualq rollback` first, or `dualq confirm`"
                        .to_owned(),
                )),
            };
        }
        tell(how, most.min(MOST_ROUNDS), round);
        let begin = Instant::now();
        let mut stages = Stages::new(!how.no_progress);
        let mut measured: Vec<(Side, [Measured; 2])> = Vec::new();
        loop {
            let first = if fastrand::bool() { Side::Before } else { Side::After };
            let number = measured.len() + 1;
            let mut take = |side| {
                let word = if side == Side::Before { "before" } else { "after" };
                if !how.no_progress {
                    stages.step(&format!("round {number}, {word}"));
                }
                self.measure(side, how, &mut stages)
            };
            let both = match first {
                Side::Before => [take(Side::Before)?, take(Side::After)?],
                Side::After => {
                    let after = take(Side::After)?;
                    [take(Side::Before)?, after]
                }
            };
            measured.push((first, both));
            stages.clear();
            let (base_rtt_ms, rounds) = rounds(&measured);
            let is_last = begin.elapsed() + round > how.max_time;
            let Some(judgement) = Judgement::of(aim, &rounds, is_last) else { continue };
            let drawn = measured.iter().zip(rounds);
            return Ok(Some(Verified {
                verify: 1,
                about: self.plan.about.clone(),
                host: self.measurer.host().to_owned(),
                aim,
                judgement,
                base_rtt_ms,
                seconds: (begin.elapsed().as_secs_f64() * 10.0).round() / 10.0,
                bytes: measured.iter().flat_map(|(_, both)| both).map(|one| one.bytes).sum(),
                measured: drawn.map(|((first, _), round)| Drawn { first: *first, round }).collect(),
            }));
        }
    }

    fn prepare(&mut self, how: &HowArgs) -> Result<Prepared<'_>, Failure> {
        let prepared = self.host.prepare(self.plan, how.each + CHANGE, false);
        prepared.map_err(|error| apply::shown(&error))
    }

    /// One measurement, without the plan or with it, after which it is taken back whatever came of it.
    fn measure(
        &mut self,
        side: Side,
        how: &HowArgs,
        stages: &mut Stages,
    ) -> Result<Measured, Failure> {
        if side == Side::Before {
            return self.measurer.measure(self.signals, stages);
        }
        let store = Store::new(self.host.store().folder());
        let Prepared::Ready(ready) = self.prepare(how)? else {
            let message = "somebody else has made what the plan asks for meanwhile";
            return Err(Failure::Run(message.to_owned()));
        };
        let mut guard = |record: &Record| apply::guard(record, &store);
        ready.make(&mut guard, &mut |_| {}).map_err(|error| apply::shown(&error))?;
        let measured = self.measurer.measure(self.signals, stages);
        let how = Rollback { pretend: false, force: false };
        let mut finisher = |record: &Record| apply::finisher(record, &store);
        let rolled_back = self.host.rollback(how, &mut finisher, &mut |_| {});
        let record = rolled_back.map_err(|error| apply::shown(&error))?;
        if !record.left.is_empty() {
            let left = record.left.join("; ");
            return Err(Failure::Run(format!("not all is as it was before: {left}")));
        }
        measured
    }
}

/// How much it may be, before it begins.
fn tell(how: &HowArgs, rounds: usize, round: Duration) {
    let seconds = (round.as_secs_f64() * rounds as f64).ceil();
    note(&format!(
        "up to {rounds} rounds of two measurements, {seconds:.0} s and {}; it ends sooner if it is sure",
        size(how.max_bytes)
    ));
}

fn size(Bytes(bytes): Bytes) -> String {
    match bytes {
        1_000_000_000.. => format!("{:.1} GB", bytes as f64 / 1e9),
        _ => format!("{:.0} MB", bytes as f64 / 1e6),
    }
}

/// The base of all, and the rounds with latency above it.
fn rounds(measured: &[(Side, [Measured; 2])]) -> (f64, Vec<Round>) {
    let all = measured.iter().flat_map(|(_, both)| both);
    let base = all.map(|one| one.base_rtt_ms).fold(f64::INFINITY, f64::min);
    let figures = |one: &Measured| Figures {
        latency_ms: one.p95_rtt_ms - base,
        goodput_mbit: one.goodput_mbit,
        fairness: one.fairness,
    };
    let round = |(_, [before, after]): &(Side, [Measured; 2])| Round {
        before: figures(before),
        after: figures(after),
    };
    (base, measured.iter().map(round).collect())
}
