//! What `dualq verify` says: a few lines for people, a document for programs.

use std::fmt::Write as _;

use dualq_host::plan::{Aim, EQUAL};
use dualq_verify::{Figures, Interval, Verdict};

use crate::verify::{Drawn, Verified};

/// One JSON document.
pub(crate) fn json(verified: &Verified) -> String {
    let mut text = serde_json::to_string(verified).expect("it has only what JSON has");
    text.push('\n');
    text
}

/// For people.
pub(crate) fn text(verified: &Verified) -> String {
    let Verified { about, host, judgement, measured, .. } = verified;
    let mut text = format!("{}: {about}\n", judgement.verdict.words());
    let _ = writeln!(text, "{}", line(verified));
    let values = |side: fn(&Drawn) -> Figures| {
        let mut values: Vec<f64> =
            measured.iter().map(|drawn| figure(verified.aim, &side(drawn))).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let (before, after) = (values(|drawn| drawn.round.before), values(|drawn| drawn.round.after));
    let unit = unit(verified.aim);
    let _ =
        writeln!(text, "median of the rounds: {before:.2}{unit} before, {after:.2}{unit} after");
    if verified.aim != Aim::Throughput {
        let _ = writeln!(text, "goodput: {} of before", interval(&judgement.goodput));
    }
    if judgement.verdict == Verdict::CannotBeTold {
        text.push_str(why(&judgement.change));
    }
    let _ = writeln!(
        text,
        "{} rounds, {:.0} s, {:.1} MB to {host}; base round trip {:.1} ms; intervals hold in {:.1} of 100 cases",
        judgement.rounds,
        verified.seconds,
        verified.bytes as f64 / 1e6,
        verified.base_rtt_ms,
        judgement.confidence * 100.0
    );
    text
}

/// The figure of the aim, in a line.
pub(crate) fn line(verified: &Verified) -> String {
    let what = match verified.aim {
        Aim::Latency => "p95 of round trips under load, above the base",
        Aim::Throughput => "goodput",
        Aim::Fair => "fairness of the flows (Jain)",
    };
    let judgement = &verified.judgement;
    let goodput = match (verified.aim, judgement.verdict) {
        (Aim::Latency | Aim::Fair, Verdict::Hurt) => {
            format!("; goodput {} of before", interval(&judgement.goodput))
        }
        _ => String::new(),
    };
    format!("{what}: {} of before{goodput}", interval(&judgement.change))
}

fn interval(interval: &Interval) -> String {
    let bound = |bound: Option<f64>| bound.map_or("?".to_owned(), |ratio| format!("{ratio:.2}"));
    format!("{:.2} ({} to {})", interval.ratio, bound(interval.low), bound(interval.high))
}

fn why(change: &Interval) -> &'static str {
    match (change.low, change.high) {
        (Some(low), Some(high)) if low > 1.0 / EQUAL && high < EQUAL => {
            "the difference is less than a fifth, either way\n"
        }
        (Some(_), Some(_)) => "the rounds differ more than before and after do\n",
        _ => "there were too few rounds: give more by --max-time\n",
    }
}

const fn figure(aim: Aim, figures: &Figures) -> f64 {
    match aim {
        Aim::Latency => figures.latency_ms,
        Aim::Throughput => figures.goodput_mbit,
        Aim::Fair => figures.fairness,
    }
}

const fn unit(aim: Aim) -> &'static str {
    match aim {
        Aim::Latency => " ms",
        Aim::Throughput => " Mbit/s",
        Aim::Fair => "",
    }
}
