//! `dualq regret`: how far what a plan picks is from the best that the machine's kernel has, on real Linux.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use comfy_table::Table;
use dualq_host::plan::{Profile, Question, Requirements, What, disciplines};
use dualq_host::{Facts, Plan};
use dualq_scenario::{Outcome, Scenario, Sweep};
use dualq_units::Rate;
use dualq_worlds::{Job, Model, World as _, play};

use crate::cli::Failure;
use crate::cli::plan::RegretArgs;
use crate::output::print;
use crate::predict;
use crate::progress::Steps;
use crate::{doctor, report, world};

/// The links, as rate and round-trip time.
const LINKS: [(Rate, Duration); 2] = [
    (Rate::from_mbit(10), Duration::from_millis(30)),
    (Rate::from_mbit(48), Duration::from_millis(48)),
];
/// Who sends, four at once: the worse of them counts.
const SENDERS: [&str; 2] = ["cubic", "bbr"];
/// Less than that nobody feels.
const FELT_MS: f64 = 1.0;
const LENGTH: Duration = Duration::from_secs(40);

/// What is run: a queue, a link, a sender.
type Key = (String, Rate, Duration, &'static str);

/// One machine on one link.
pub(crate) struct Row {
    pub(crate) host: String,
    pub(crate) rate: Rate,
    pub(crate) rtt: Duration,
    pub(crate) picked: String,
    pub(crate) best: String,
    /// The p99 above the base, in milliseconds, of what was picked and of the best: with the worse of the senders.
    pub(crate) p99_ms: (f64, f64),
}

impl Row {
    /// How much longer than the best, both with a millisecond that nobody feels.
    pub(crate) fn regret(&self) -> f64 {
        (self.p99_ms.0 + FELT_MS) / (self.p99_ms.1 + FELT_MS)
    }
}

pub(crate) fn run(args: &RegretArgs) -> Result<(), Failure> {
    let world = world::kernel(None)?;
    let (mut cases, mut skipped) = (Vec::new(), Vec::new());
    for file in &args.facts {
        let facts = doctor::saved(file)?;
        let name =
            file.file_stem().map_or(String::new(), |name| name.to_string_lossy().into_owned());
        for (rate, rtt) in LINKS {
            match case(&name, &facts, rate, rtt) {
                Ok(case) => cases.push(case),
                // Such a machine has no plan either.
                Err(Failure::Usage(message)) => skipped.push(format!("{name}: {message}")),
                Err(other) => return Err(other),
            }
        }
    }
    skipped.dedup();
    // Machines have much in common: each run is done once.
    let mut keys: Vec<Key> = Vec::new();
    for case in &cases {
        for queue in case.lines.iter().chain([&case.picked]) {
            for cc in SENDERS {
                let key = (queue.clone(), case.rate, case.rtt, cc);
                if !keys.contains(&key) {
                    keys.push(key);
                }
            }
        }
    }
    let mut scenarios = Vec::new();
    for (queue, rate, rtt, cc) in &keys {
        scenarios.push(scenario(queue, *rate, *rtt, cc)?);
    }
    // Not every kernel has every queue.
    let possible = keys.iter().zip(&scenarios).filter(|(_, one)| world.refuses(one).is_none());
    let (keys, jobs): (Vec<&Key>, Vec<Job<'_>>) =
        possible.map(|(key, scenario)| (key, Job { scenario, world: &world, seed: 1 })).unzip();
    let steps = Steps::of_time(LENGTH * jobs.len() as u32, !args.no_progress);
    let outcomes = play(&jobs, &|more| steps.watch(more));
    steps.clear();
    let figures: HashMap<&Key, f64> =
        keys.into_iter().zip(outcomes?).map(|(key, outcome)| (key, p99(key, &outcome))).collect();
    let worse = |queue: &str, rate: Rate, rtt: Duration| {
        SENDERS
            .iter()
            .map(|cc| figures.get(&(queue.to_owned(), rate, rtt, *cc)).copied())
            .try_fold(0.0, |worst, p99| Some(f64::max(worst, p99?)))
    };
    let mut rows = Vec::new();
    for case in cases {
        let of = |queue: &str| worse(queue, case.rate, case.rtt);
        let Some(picked) = of(&case.picked) else {
            let message = format!("{}: this kernel does not have {}", case.host, case.picked);
            return Err(Failure::Run(message));
        };
        let known = case.lines.iter().filter_map(|line| Some((line, of(line)?)));
        let best = known.min_by(|one, other| one.1.total_cmp(&other.1));
        let (best, least) =
            best.map_or((case.picked.clone(), picked), |(line, p99)| (line.clone(), p99));
        rows.push(Row {
            host: case.host,
            rate: case.rate,
            rtt: case.rtt,
            picked: case.picked,
            best,
            p99_ms: (picked, least),
        });
    }
    print(&mut io::stdout(), &if args.json { json(&rows, &skipped) } else { text(&rows, &skipped) })
}

/// A machine on a link: what a plan picks, and all that could be there in its place.
struct Case {
    host: String,
    rate: Rate,
    rtt: Duration,
    picked: String,
    lines: Vec<String>,
}

fn case(host: &str, facts: &Facts, rate: Rate, rtt: Duration) -> Result<Case, Failure> {
    let requirements = Requirements {
        rate: Some(rate),
        rtt: Some(rtt),
        profile: Profile::fitting(facts),
        ..Requirements::default()
    };
    let question = Question::each(facts, &requirements, false)?.swap_remove(0);
    let now = question.now.clone();
    let prediction = predict::predict(question, false, &Model)?;
    let plan = Plan::make_by(facts, &requirements, &[&prediction.evidence])?;
    let picked = plan.changes.iter().find_map(|change| match &change.what {
        What::Qdisc { after, .. } => Some(after.to_string()),
        _ => None,
    });
    let lines = disciplines(facts, &requirements)?;
    Ok(Case { host: host.to_owned(), rate, rtt, picked: picked.unwrap_or(now), lines })
}

/// The p99 of ssh's round trips above the base.
fn p99((_, _, rtt, _): &Key, outcome: &Outcome) -> f64 {
    let probe = &outcome.probe[0];
    let waited = if probe.n > 0 { probe.p99_ms } else { LENGTH.as_secs_f64() * 1e3 };
    (waited - rtt.as_secs_f64() * 1e3).max(0.0)
}

fn scenario(queue: &str, rate: Rate, rtt: Duration, cc: &str) -> Result<Scenario, Failure> {
    let source = format!(
        "name = \"regret\"\nduration = \"{}s\"\nwarmup = \"10s\"\n\
         [link]\nrate = \"{}bit\"\nrtt = \"{}ns\"\nqdisc = \"{queue}\"\n\
         [[flow]]\ncc = \"{cc}\"\ncount = 4\n",
        LENGTH.as_secs(),
        rate.as_bits_per_second(),
        rtt.as_nanos()
    );
    let plan = Sweep::parse(&source).map_err(|error| Failure::Run(format!("regret: {error}")))?;
    let variant = plan.variants().into_iter().next();
    Ok(variant.expect("a plan without lists has one variant").scenario)
}

fn text(rows: &[Row], skipped: &[String]) -> String {
    let mut table = Table::new();
    table.set_header(["host", "link", "picked", "best", "p99 picked", "p99 best", "regret"]);
    for row in rows {
        table.add_row([
            row.host.clone(),
            format!("{}, {} ms", row.rate, row.rtt.as_secs_f64() * 1e3),
            row.picked.clone(),
            row.best.clone(),
            format!("{:.2}", row.p99_ms.0),
            format!("{:.2}", row.p99_ms.1),
            format!("{:.2}", row.regret()),
        ]);
    }
    let table = report::render(table, 4);
    let skipped = skipped.iter().map(|line| format!("\nno plan: {line}")).collect::<String>();
    format!(
        "ssh's p99 above the base in ms, the worse of 4 cubic and 4 bbr flows, on real Linux; regret is (picked + 1) / (best + 1).\n\n{table}{skipped}\n"
    )
}

fn json(rows: &[Row], skipped: &[String]) -> String {
    let rows = rows.iter().map(|row| {
        serde_json::json!({
            "host": row.host,
            "rate": row.rate.to_string(),
            "rtt_ms": row.rtt.as_secs_f64() * 1e3,
            "picked": row.picked,
            "best": row.best,
            "p99_picked_ms": row.p99_ms.0,
            "p99_best_ms": row.p99_ms.1,
            "regret": row.regret(),
        })
    });
    let document = serde_json::json!({ "version": 1, "command": "regret", "rows": rows.collect::<Vec<_>>(), "skipped": skipped });
    format!("{document:#}\n")
}
