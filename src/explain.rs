//! `dualq explain`: what a queue discipline or a congestion control is, and what its parameters do.

use std::io;

use clap::Args;
use dualq_qdisc::about::Explained;
use dualq_qdisc::grammar::{self, KINDS, did_you_mean};
use dualq_tcp::Algorithm;

use crate::cli::{Failure, note};
use crate::output::{print, text_width};
use crate::{help, report};

pub(crate) const EXAMPLES: &str = "\
Examples:
  dualq explain dualpi2
  dualq explain fq_codel target 2ms
  dualq explain htb rate 50mbit leaf cake
  dualq explain prague";

#[derive(Args)]
pub(crate) struct ExplainArgs {
    /// A queue discipline in tc's words, or a congestion control; all are listed without
    #[arg(value_name = "NAME", allow_negative_numbers = true)]
    pub(crate) name: Vec<String>,

    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Explains what was named, or lists what there is.
pub(crate) fn run(args: &ExplainArgs) -> Result<(), Failure> {
    let line = args.name.join(" ");
    let line = line.trim();
    let text = if line.is_empty() {
        if args.json { report::explain::list_json() } else { report::explain::list() }
    } else if let Some(about) = Algorithm::from_name(line).and_then(Algorithm::about) {
        if args.json {
            report::explain::control_json(line, about)
        } else {
            report::explain::control(line, about, text_width())
        }
    } else {
        let levels = levels(line)?;
        if args.json {
            report::explain::queue_json(&levels)
        } else {
            report::explain::queue(&levels, text_width())
        }
    };
    print(&mut io::stdout(), &text)
}

/// A kind alone, which need not be a whole line, or a line.
fn levels(line: &str) -> Result<Vec<Explained>, Failure> {
    if let Some(explained) = Explained::kind(line) {
        return Ok(vec![explained]);
    }
    let kind = line.split_whitespace().next().unwrap_or_default();
    if Algorithm::from_name(kind).is_some() {
        return Err(Failure::Usage(format!(
            "{kind} is a congestion control, which takes no options: dualq explain {kind}"
        )));
    }
    if !KINDS.contains(&kind) {
        let controls = Algorithm::ALL.iter().map(|algorithm| algorithm.name());
        let known: Vec<&str> = KINDS.iter().copied().chain(controls).collect();
        let mut hint = did_you_mean(kind, &known);
        if hint.is_empty() && help::is_known(line) {
            hint = format!("the documents speak of it: `dualq help {line}`; ");
        }
        return Err(Failure::Usage(format!(
            "unknown queue discipline or congestion control {kind:?}; {hint}known are {}",
            known.join(", ")
        )));
    }
    let parsed = grammar::parse(line).map_err(|error| Failure::Usage(error.to_string()))?;
    for notice in &parsed.notices {
        note(notice);
    }
    Ok(Explained::spec(&parsed.spec))
}
