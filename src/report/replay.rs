//! What a replay came to: tables for people, one JSON document for programs.

use std::fmt::Write as _;
use std::time::Duration;

use dualq_qdisc::show;
use dualq_replay::{BandOutcome, Delays, Outcome, Timeline};
use dualq_report::replayed::Series;
use dualq_report::words::{folded, thousands};
use dualq_report::{Grid, Group};
use dualq_scenario::DelayDistribution;
use dualq_scenario::summary::thousandths;
use serde_json::{Value, json};

use super::{megabits, milliseconds, nanos, seconds};
use crate::replay::Summary;

/// The version of the JSON document's form.
const JSON_VERSION: u32 = 1;

/// The columns, by what they are of.
const GROUPS: [(&str, &[&str]); 4] = [
    ("packets", &["in", "out"]),
    ("marked", &["coupled", "step"]),
    ("dropped", &["overlimit", "congested", "step"]),
    ("delay (ms)", &["min", "p50", "p95", "p99", "max"]),
];

const CAVEAT: &str = "\
    (A recording sends on as it did, whatever is marked or dropped; live senders would slow down.)";

/// Tables, in as many columns as there is `room` for, and the block of `tc -s qdisc show` of each discipline.
pub(crate) fn text(summary: &Summary, room: Option<usize>) -> String {
    let Summary { trace, settings, arrivals, outcomes, .. } = summary;
    let head = format!(
        "{trace}: {} packets, {} bytes in {} ({}) over a link of {}",
        thousands(arrivals.packets),
        thousands(arrivals.bytes),
        seconds(arrivals.last - arrivals.first),
        megabits(arrivals.rate()),
        megabits(settings.rate)
    );
    let mut text = folded(&head, room) + "\n\n";
    let _ = writeln!(text, "{}\n", table(outcomes, room));
    for outcome in outcomes {
        let _ = writeln!(text, "{}", folded(&sentence(outcome), room));
    }
    let _ = writeln!(text, "{}\n", folded(CAVEAT, room));
    for outcome in outcomes {
        let block = show::text_with_stats(&outcome.config, &outcome.stats);
        let _ = writeln!(text, "{}\n", block.trim_end());
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// The table, in as many columns as there is `room` for.
fn table(outcomes: &[Outcome], room: Option<usize>) -> String {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let groups =
        GROUPS.map(|(title, names)| Group { title: title.to_owned(), names: owned(names) });
    let mut table =
        Grid { heads: owned(&["qdisc", "queue"]), groups: groups.into(), rows: Vec::new() };
    for outcome in outcomes {
        let mut name = outcome.spec.to_string();
        // One queue is all there is.
        let total = (outcome.bands.len() > 1).then_some(&outcome.total);
        for band in outcome.bands.iter().chain(total) {
            table.rows.push(row(std::mem::take(&mut name), band));
        }
    }
    table.lines(room).join("\n")
}

fn row(name: String, band: &BandOutcome) -> Vec<String> {
    let drops = &band.drops;
    let mut row = vec![name, band.name.to_owned()];
    row.extend(
        [
            band.packets_in(),
            band.packets_out,
            band.marked_by_probability,
            band.marked_by_step,
            drops.overlimit,
            drops.congested_at_enqueue + drops.congested_at_dequeue,
            drops.step,
        ]
        .map(thousands),
    );
    match band.delays() {
        Some(Delays { min, p50, p95, p99, max }) => {
            row.extend([min, p50, p95, p99, max].map(milliseconds));
        }
        None => row.extend(std::iter::repeat_n("-".to_owned(), 5)),
    }
    row
}

/// The outcome in plain words.
fn sentence(outcome: &Outcome) -> String {
    let total = &outcome.total;
    let share = |part: u64| match total.packets_in() {
        0 => 0.0,
        all => 100.0 * part as f64 / all as f64,
    };
    let Some(delays) = total.delays() else {
        return format!("{}: no packet left", outcome.spec);
    };
    format!(
        "{}: delivered {}; half of the packets waited {} ms at most, one in a hundred more than {} ms; {:.2}% were \
         dropped",
        outcome.spec,
        megabits(outcome.delivered()),
        milliseconds(delays.p50),
        milliseconds(delays.p99),
        share(total.drops.total())
    )
}

/// One document. Times are in nanoseconds, rates in bits per second, the discipline itself under tc's keys. For pictures it also has what
/// happened over time and how delays are distributed, and then what made it.
pub(crate) fn json(summary: &Summary) -> String {
    let Summary { trace, settings, arrivals, outcomes, origin } = summary;
    let runs: Vec<Value> = outcomes
        .iter()
        .map(|outcome| {
            let pictured = outcome.timeline.is_some();
            let mut run = json!({
                "qdisc": outcome.spec.to_string(),
                "delivered_bps": outcome.delivered().as_bits_per_second(),
                "busy_for_ns": nanos(outcome.busy_for),
                "queues": outcome.bands.iter().map(|one| band(one, pictured)).collect::<Vec<_>>(),
                "total": band(&outcome.total, pictured),
                "tc": show::json_with_stats(&outcome.config, &outcome.stats),
            });
            if let Some(timeline) = &outcome.timeline {
                // Lists of numbers: there is nothing that JSON has not.
                run["series"] = serde_json::to_value(series(timeline)).unwrap_or_default();
            }
            run
        })
        .collect();
    let mut document = json!({
        "version": JSON_VERSION,
        "command": "replay",
        "trace": {
            "name": trace,
            "packets": arrivals.packets,
            "bytes": arrivals.bytes,
            "first_ns": arrivals.first.as_nanos(),
            "last_ns": arrivals.last.as_nanos(),
        },
        "link": { "rate_bps": settings.rate.as_bits_per_second(), "mtu": settings.mtu },
        "seed": settings.seed,
        "runs": runs,
    });
    if let Some(origin) = origin {
        document["origin"] = json!(origin);
    }
    format!("{document:#}\n")
}

fn series(timeline: &Timeline) -> Series {
    let all = timeline.intervals();
    let megabits = |bytes: u64| thousandths(timeline.rate(bytes).as_bits_per_second() as f64 / 1e6);
    let millis = |time: Duration| thousandths(time.as_secs_f64() * 1e3);
    Series {
        interval_s: timeline.interval().as_secs_f64(),
        arrived_mbit: all.iter().map(|one| megabits(one.bytes_in)).collect(),
        delivered_mbit: all.iter().map(|one| megabits(one.bytes_out)).collect(),
        delay_min_ms: all.iter().map(|one| one.delays.map(|(least, _)| millis(least))).collect(),
        delay_max_ms: all.iter().map(|one| one.delays.map(|(_, most)| millis(most))).collect(),
        marks: all.iter().map(|one| one.marks).collect(),
        drops: all.iter().map(|one| one.drops).collect(),
    }
}

fn distribution(band: &BandOutcome) -> DelayDistribution {
    let steps = band.distribution();
    let (ms, share) =
        steps.into_iter().map(|(delay, share)| (delay.as_secs_f64() * 1e3, share)).unzip();
    DelayDistribution { samples: band.packets_out, ms, share }
}

fn band(band: &BandOutcome, pictured: bool) -> Value {
    let drops = &band.drops;
    let mut value = json!({
        "queue": band.name,
        "packets_in": band.packets_in(),
        "packets_out": band.packets_out,
        "bytes_out": band.bytes_out,
        "ce_out": band.ce_out,
        "marked": { "coupled": band.marked_by_probability, "step": band.marked_by_step },
        "dropped": {
            "overlimit": drops.overlimit,
            "congested_enqueue": drops.congested_at_enqueue,
            "congested_dequeue": drops.congested_at_dequeue,
            "step": drops.step,
            "random": drops.random,
            "total": drops.total(),
        },
        "delay_ns": band.delays().map(|delays| json!({
            "min": nanos(delays.min),
            "p50": nanos(delays.p50),
            "p95": nanos(delays.p95),
            "p99": nanos(delays.p99),
            "max": nanos(delays.max),
        })),
    });
    if pictured {
        value["distribution"] = json!(distribution(band));
    }
    value
}
