//! `dualq plan`: from a machine's facts and its user's wishes to a file of changes.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use dualq_host::Plan;
use dualq_host::facts::Os;
use dualq_host::plan::{PlanError, StaticRoute, Wishes};
use dualq_units::{Rate, tc_time};

use crate::cli::plan::PlanArgs;
use crate::cli::{Failure, note_units};
use crate::output::{Output, plain, print};
use crate::predict::{self, Prediction};
use crate::{doctor, report};

pub(crate) fn run(args: &PlanArgs) -> Result<(), Failure> {
    let wishes = wishes(args)?;
    note_units(&args.rate, args.rtt.iter().map(|rtt| ("--rtt", rtt)));
    let facts = match &args.facts {
        Some(path) => doctor::saved(path)?,
        None => doctor::here()?,
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
    let plan = Plan::make(&facts, &wishes)?;
    let prediction = if args.predict { Some(predict::predict(&facts, &wishes)?) } else { None };
    match args.output.as_deref() {
        Some(path) if path == Path::new("-") => return print(&mut io::stdout(), &plan.write()),
        Some(path) => write(path, &plan)?,
        None => {}
    }
    print(&mut io::stdout(), &text(args, &plan, prediction.as_ref()))
}

fn text(args: &PlanArgs, plan: &Plan, prediction: Option<&Prediction>) -> String {
    if args.json {
        return report::plan::json(plan, prediction);
    }
    let mut text = report::plan::text(plan);
    if let Some(prediction) = prediction {
        text.push('\n');
        text.push_str(&report::plan::prediction(prediction));
    }
    if plan.os == Os::Linux && !plan.changes.is_empty() {
        text.push_str(&match &args.output {
            Some(path) => report::plan::written(path),
            None => "\nNothing is changed yet. With -o plan.toml this becomes a file: dualq apply plan.toml\n"
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

fn wishes(args: &PlanArgs) -> Result<Wishes, Failure> {
    let rate = read("--rate", args.rate.as_deref(), str::parse::<Rate>)?;
    let rtt = read("--rtt", args.rtt.as_deref(), tc_time::parse)?;
    if rtt.is_some_and(|rtt| rtt.is_zero() || rtt > Duration::from_secs(60)) {
        return Err(Failure::Usage("--rtt: give a time above 0 and up to 60s".to_owned()));
    }
    let route = match (&args.route, &args.via, args.mtu) {
        (Some(to), Some(via), Some(mtu)) => {
            Some(StaticRoute { to: to.clone(), via: via.clone(), mtu })
        }
        _ => None,
    };
    Ok(Wishes {
        profile: args.profile.into(),
        rate,
        dev: args.dev.clone(),
        cc: args.cc.clone(),
        qdisc: args.qdisc.clone(),
        rtt,
        state: state(args)?,
        route,
    })
}

/// The folder of records as rules are to name it.
fn state(args: &PlanArgs) -> Result<Option<String>, Failure> {
    let Some(state) = &args.state else { return Ok(None) };
    let wrong = |why: &str| Failure::Usage(format!("--state: {}: {why}", state.display()));
    if !state.is_absolute() {
        return Err(wrong("what runs at boot needs an absolute path"));
    }
    state.to_str().map(|state| Some(state.to_owned())).ok_or_else(|| wrong("it is no text"))
}

/// Writes the plan; a file that is something else is left alone.
pub(crate) fn write(path: &Path, plan: &Plan) -> Result<(), Failure> {
    let name = path.display();
    if path.is_file() {
        let is_plan = fs::read_to_string(path).is_ok_and(|text| Plan::read(&text).is_ok());
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
            PlanError::Wish(message) => Self::Usage(message),
            PlanError::Refused { .. } => Self::Run(error.to_string()),
        }
    }
}
