//! What figures mean: the page of the documentation that lists them is made of this.

use std::fmt::Write as _;

use dualq_worlds::Unit;

#[cfg(test)]
use super::Column;

/// A figure of the table, the CSV, the report and the summary of the JSON document, where it has these names.
pub(crate) struct Meaning {
    /// What it is of. A word in capitals stands for what the scenario has.
    pub(crate) group: &'static str,
    pub(crate) name: &'static str,
    /// What it is called where it is asked for; `N` is a number from 0.
    key: &'static str,
    pub(crate) unit: Unit,
    meaning: &'static str,
}

/// Figures over time: names of the JSON document's `series`, of the CSV of series and of the report's charts.
pub(crate) struct OverTime {
    pub(crate) name: &'static str,
    unit: &'static str,
    /// What there is a list of each.
    of: &'static str,
    meaning: &'static str,
}

const fn figure(
    group: &'static str,
    name: &'static str,
    key: &'static str,
    unit: Unit,
    meaning: &'static str,
) -> Meaning {
    Meaning { group, name, key, unit, meaning }
}

const fn over_time(
    name: &'static str,
    unit: &'static str,
    of: &'static str,
    meaning: &'static str,
) -> OverTime {
    OverTime { name, unit, of, meaning }
}

use Unit::{Count, Megabits, Millis, Ratio};

pub(crate) const FIGURES: &[Meaning] = &[
    figure(
        "goodput",
        "Mbits/sec",
        "goodput",
        Megabits,
        "payload that was acknowledged, of all flows",
    ),
    figure(
        "CC",
        "Mbits/sec",
        "flow.N.goodput",
        Megabits,
        "the same of a group of flows, where there are several",
    ),
    figure(
        "",
        "fairness",
        "fairness",
        Ratio,
        "Jain's index of the flows that have no size: 1 if they are equal, 1/n if one has everything",
    ),
    figure("PROBE RTT", "mean", "probe.N.mean", Millis, "the mean of the probe's round trips"),
    figure(
        "PROBE RTT",
        "above base",
        "probe.N.above_base",
        Millis,
        "that less the base round-trip time",
    ),
    figure(
        "PROBE RTT",
        "jitter",
        "probe.N.jitter",
        Millis,
        "the standard deviation of the round trips",
    ),
    figure("PROBE RTT", "p99", "probe.N.p99", Millis, "their 99th percentile"),
    figure(
        "PROBE RTT",
        "lost",
        "probe.N.lost",
        Ratio,
        "pings that were never answered, of those that were sent; only of pings",
    ),
    figure(
        "UDP KIND",
        "Mbits/sec",
        "udp.N.goodput",
        Megabits,
        "payload of the streams that arrived",
    ),
    figure(
        "UDP KIND",
        "lost",
        "udp.N.lost",
        Ratio,
        "packets of the streams that were lost, of those that were lost or arrived by the end",
    ),
    figure(
        "UDP KIND",
        "delay p50",
        "udp.N.delay_p50",
        Millis,
        "the median time from one program to the other",
    ),
    figure("UDP KIND", "delay p99", "udp.N.delay_p99", Millis, "its 99th percentile"),
    figure(
        "CC completion",
        "p50",
        "flow.N.completion_p50",
        Millis,
        "the median time that flows with a size took which ended",
    ),
    figure("CC completion", "p99", "flow.N.completion_p99", Millis, "its 99th percentile"),
    figure("CC completion", "max", "flow.N.completion_max", Millis, "the longest"),
    figure(
        "segments",
        "sent",
        "segments.sent",
        Count,
        "segments with payload that left the senders, those sent again included",
    ),
    figure(
        "segments",
        "sent again",
        "segments.sent_again",
        Count,
        "retransmissions of all flows; Retr in iperf3 and ss",
    ),
    figure(
        "segments",
        "CE marks",
        "segments.ce_marks",
        Count,
        "segments that reached the receivers with a congestion mark",
    ),
    figure(
        "Not-ECT delay",
        "p50",
        "not_ect_delay.p50",
        Millis,
        "the median time in the queue of packets that are not ECN-capable: in dualpi2 any_ect the C queue's",
    ),
    figure("Not-ECT delay", "p99", "not_ect_delay.p99", Millis, "its 99th percentile"),
    figure(
        "ECT delay",
        "p50",
        "ect_delay.p50",
        Millis,
        "the same of ECN-capable packets: in dualpi2 any_ect the L queue's",
    ),
    figure("ECT delay", "p99", "ect_delay.p99", Millis, "its 99th percentile"),
    figure(
        "queue",
        "drops",
        "queue.drops",
        Count,
        "packets that the queue under test dropped, an aggregate being one",
    ),
    figure(
        "up queue",
        "p50",
        "up_queue.p50",
        Millis,
        "the median time in the queue of the other direction",
    ),
    figure("up queue", "p99", "up_queue.p99", Millis, "its 99th percentile"),
    figure("up queue", "drops", "up_queue.drops", Count, "packets that it dropped"),
    figure(
        "queue PLACE",
        "p50",
        "other_queues.N.p50",
        Millis,
        "the median time in the queue of an element that is a bottleneck, such as queue behind 1",
    ),
    figure("queue PLACE", "p99", "other_queues.N.p99", Millis, "its 99th percentile"),
    figure("queue PLACE", "drops", "other_queues.N.drops", Count, "packets that it dropped"),
];

pub(crate) const SERIES: &[OverTime] = &[
    over_time("goodput_mbit", "Mbit/s", "group of flows", "acknowledged payload in the interval"),
    over_time(
        "each_goodput_mbit",
        "Mbit/s",
        "flow of each group",
        "the same; only with distributions, and of at most 128 flows",
    ),
    over_time("rtt_ms", "ms", "probe", "the last round trip that had ended by then"),
    over_time(
        "queue_delay_ms",
        "ms",
        "",
        "the mean time in the queue of what left it in the interval",
    ),
    over_time("queue_packets", "packets", "", "in the queue at that moment"),
    over_time("probability", "of 1", "", "with which the queue drops or marks, where it has one"),
    over_time("queue_drops", "packets", "", "what the queue dropped in the interval"),
    over_time("queue_marks", "marks", "", "how often it marked in the interval"),
    over_time(
        "cwnd",
        "segments",
        "group of flows",
        "the congestion window, the mean of the flows that have started, as of all that follow",
    ),
    over_time("ssthresh", "segments", "group of flows", "the slow-start threshold"),
    over_time("in_flight", "segments", "group of flows", "what is in flight"),
    over_time("pacing_mbit", "Mbit/s", "group of flows", "the pacing rate"),
    over_time("srtt_ms", "ms", "group of flows", "the smoothed round-trip time"),
    over_time("retransmits", "segments", "group of flows", "sent again in the interval"),
];

impl Meaning {
    /// Whether it is what the column has.
    #[cfg(test)]
    pub(crate) fn is_of(&self, column: &Column) -> bool {
        let group = column.group.as_str();
        let fits = match self.group {
            // Any name of a group of flows, which no other figure has in this unit.
            "CC" => group != "goodput" && !group.starts_with("UDP "),
            "CC completion" => group.ends_with("completion"),
            "PROBE RTT" => group.ends_with(" RTT"),
            "UDP KIND" => group.starts_with("UDP "),
            "queue PLACE" => {
                group.strip_prefix("queue ").is_some_and(|place| place.ends_with(char::is_numeric))
            }
            exact => group == exact,
        };
        fits && column.name == self.name && column.unit == self.unit
    }
}

/// The page, in Markdown.
#[must_use]
pub fn page() -> String {
    let mut page = String::from(
        "# Figures\n\n\
         Made from `crates/report/src/figures/meaning.rs`; a test keeps it as that says. The names are the same in the table, in `--csv`, in the\n\
         `summary` of `--json` and in reports. A word in capitals stands for what the scenario has: a congestion control, a probe, a kind of stream, a place on the path.\n\
         [Results](results.md) says when what is counted. `--until` and `--aim` of [sweeps](sweep.md) call a figure by the last column, where N counts\n\
         groups of flows, probes, streams or such queues from 0 and may be left out if it is 0: `probe.p99`.\n\n\
         | group | name | unit | what it is | asked for as |\n|---|---|---|---|---|\n",
    );
    for Meaning { group, name, key, unit, meaning } in FIGURES {
        let unit = unit.symbol().unwrap_or(if *unit == Count { "count" } else { "of 1" });
        let _ = writeln!(page, "| {group} | {name} | {unit} | {meaning} | `{key}` |");
    }
    page.push_str(
        "\n## Over time\n\nNames of the lists in `series` of the JSON document, and of the column `series` in the CSV that `--save` writes.\n\n\
         | name | unit | one for each | what it is |\n|---|---|---|---|\n",
    );
    for OverTime { name, unit, of, meaning } in SERIES {
        let _ = writeln!(page, "| `{name}` | {unit} | {of} | {meaning} |");
    }
    page
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use dualq_scenario::Sweep;
    use dualq_worlds::{Model, Results, Seeds};
    use serde_json::Value;

    use super::*;
    use crate::{Figures, Measure};

    #[test]
    fn the_page_is_as_the_code_says() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/figures.md");
        if std::env::var_os("DUALQ_BLESS").is_some() {
            std::fs::write(path, page()).unwrap();
        }
        let there = std::fs::read_to_string(path).unwrap_or_default();
        assert_eq!(there, page(), "DUALQ_BLESS=1 cargo test -p dualq-report writes it anew");
    }

    /// Of everything that a scenario can have.
    #[test]
    fn each_figure_has_one_meaning() {
        let sweep = Sweep::parse(
            "duration = '3s'\nwarmup = '1s'\n[link]\nrate = '5mbit'\nqdisc = 'dualpi2'\nbehind = [{ rate = '4mbit' }]\n[link.up]\nrate = '2mbit'\n\
             [[flow]]\ncc = 'cubic'\ncount = 2\n[[flow]]\ncc = 'dctcp'\nsize = '50kb'\n[[udp]]\nkind = 'voice'\n[[probe]]\nkind = 'ping'",
        );
        let seeds = Seeds::new(1, 1).unwrap();
        let results =
            Results::play(&sweep.unwrap(), &[&Model], seeds, &|_| ControlFlow::Continue(()));
        let results = results.unwrap();
        for column in &Figures::of(&results).columns {
            let meanings = FIGURES.iter().filter(|meaning| meaning.is_of(column));
            assert_eq!(meanings.count(), 1, "{column:?}");
        }
        // What it is asked for as leads to it.
        let scenarios: Vec<_> = results.scenarios().map(|runs| runs.scenario()).collect();
        for meaning in FIGURES {
            let is_found = (0..2).any(|number| {
                let key = meaning.key.replace('N', &number.to_string());
                Measure::find(&key, &scenarios).is_ok_and(|found| meaning.is_of(found.column()))
            });
            assert!(is_found, "{}", meaning.key);
        }
        let columns = Figures::of(&results).columns;
        for meaning in FIGURES {
            let (group, name) = (meaning.group, meaning.name);
            assert!(columns.iter().any(|column| meaning.is_of(column)), "no {group} {name}");
        }
        let mut series = results.runs()[0].outcome.series.clone();
        series.each_goodput_mbit = vec![Vec::new()];
        let Value::Object(series) = serde_json::to_value(series).unwrap() else { unreachable!() };
        let mut keys: Vec<&str> = series.keys().map(String::as_str).collect();
        keys.retain(|key| !["interval_s", "t_s"].contains(key));
        let mut names: Vec<&str> = SERIES.iter().map(|series| series.name).collect();
        keys.sort_unstable();
        names.sort_unstable();
        assert_eq!(keys, names);
    }
}
