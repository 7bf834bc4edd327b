//! Which figures there are. A new one is a line here.

use std::collections::BTreeSet;
use std::slice;

use dualq_scenario::{
    Delays, Direction, FlowGroup, FlowOutcome, Outcome, ProbeKind, ProbeOutcome, QueueOutcome,
    Scenario, UdpGroup, UdpOutcome,
};
use dualq_worlds::{Run, Unit};

use super::Column;

/// A figure that a run has, or has not: then its place is blank.
pub(super) struct Definition {
    pub(super) column: Column,
    /// What it is called where it is asked for: `probe.0.p99`.
    pub(super) key: String,
    /// Whether it is mostly zero, and then of no interest to people.
    pub(super) rare: bool,
    pub(super) of: Of,
}

type Of = Box<dyn Fn(&Run) -> Option<f64> + Send + Sync>;

impl Definition {
    fn new(
        key: impl Into<String>,
        group: &str,
        name: &str,
        unit: Unit,
        of: impl Fn(&Run) -> Option<f64> + Send + Sync + 'static,
    ) -> Self {
        let digits = match unit {
            Unit::Megabits | Unit::Millis => 2,
            Unit::Count => 0,
            Unit::Ratio => 3,
        };
        let (group, name) = (group.to_owned(), name.to_owned());
        let column = Column { group, name, unit, digits, aside: false, family: None };
        Self { column, key: key.into(), rare: false, of: Box::new(of) }
    }

    fn digits(mut self, digits: usize) -> Self {
        self.column.digits = digits;
        self
    }

    fn aside(mut self) -> Self {
        self.column.aside = true;
        self
    }

    fn rare(mut self) -> Self {
        self.rare = true;
        self
    }

    fn family(mut self, family: &'static str) -> Self {
        self.column.family = Some(family);
        self
    }
}

/// The base round-trip time of a scenario, in milliseconds.
#[must_use]
pub fn base_ms(scenario: &Scenario) -> f64 {
    scenario.link.base_rtt().as_secs_f64() * 1e3
}

/// A name of several words as one: `CE marks` is `ce_marks`.
fn word(name: &str) -> String {
    name.to_lowercase().replace(' ', "_")
}

/// What a rate is called in words of iperf3.
const RATE: &str = "Mbits/sec";

/// The figures that some run may have, in their order.
pub(super) fn definitions(scenarios: &[&Scenario]) -> Vec<Definition> {
    let sum = |of: fn(&FlowOutcome) -> u64| {
        move |run: &Run| Some(run.outcome.flow.iter().map(of).sum::<u64>() as f64)
    };
    let mut figures = vec![Definition::new("goodput", "goodput", RATE, Unit::Megabits, |run| {
        Some(run.outcome.goodput_mbit)
    })];
    figures.extend(flows(scenarios));
    figures.push(Definition::new("fairness", "", "fairness", Unit::Ratio, fairness));
    figures.extend(probes(scenarios));
    figures.extend(streams(scenarios));
    figures.extend(completions(scenarios));
    let segments = |name: &'static str, of: fn(&FlowOutcome) -> u64| {
        let key = format!("segments.{}", word(name));
        Definition::new(key, "segments", name, Unit::Count, sum(of))
    };
    figures.push(segments("sent", |flow| flow.data_packets).aside());
    figures.push(segments("sent again", |flow| flow.retransmits));
    figures.push(segments("CE marks", |flow| flow.ce_marks));
    // In `dualpi2 any_ect` packets that cannot be marked have the C queue, those that can the L queue.
    figures.extend(delays("not_ect_delay", "Not-ECT delay", |outcome| outcome.queue.delay_not_ect));
    figures.extend(delays("ect_delay", "ECT delay", |outcome| outcome.queue.delay_ect));
    figures.push(Definition::new("queue.drops", "queue", "drops", Unit::Count, |run| {
        Some(run.outcome.queue.drops as f64)
    }));
    let has_up_queue =
        |scenario: &&Scenario| scenario.link.up.as_ref().is_some_and(|up| up.rate.is_some());
    if scenarios.iter().any(has_up_queue) {
        figures.extend(queue("up_queue", "up queue", |outcome| outcome.up_queue.as_ref()));
    }
    let others = scenarios.iter().map(|scenario| scenario.link.other_bottlenecks());
    let most = others.map(Iterator::collect).max_by_key(Vec::len).unwrap_or_default();
    for (number, other) in most.into_iter().enumerate() {
        let key = format!("other_queues.{number}");
        figures.extend(queue(&key, &format!("queue {}", other.at), move |outcome| {
            outcome.other_queues.get(number).map(|other| &other.queue)
        }));
    }
    figures
}

/// A queue that is not the one under test.
fn queue(
    key: &str,
    title: &str,
    of_run: impl Fn(&Outcome) -> Option<&QueueOutcome> + Copy + Send + Sync + 'static,
) -> [Definition; 3] {
    let figure = |name: &'static str, unit, of: fn(&QueueOutcome) -> f64| {
        let key = format!("{key}.{name}");
        Definition::new(key, title, name, unit, move |run| of_run(&run.outcome).map(of))
    };
    [
        figure("p50", Unit::Millis, |queue| queue.delay_p50_ms),
        figure("p99", Unit::Millis, |queue| queue.delay_p99_ms),
        figure("drops", Unit::Count, |queue| queue.drops as f64),
    ]
}

/// What arrived of streams of UDP, what they lost, and how long their packets took.
fn streams(scenarios: &[&Scenario]) -> Vec<Definition> {
    let widest = scenarios.iter().map(|scenario| &scenario.udp).max_by_key(|groups| groups.len());
    let groups = widest.map_or(&[][..], |groups| groups);
    let mut figures = Vec::new();
    for (number, UdpGroup { kind, .. }) in groups.iter().enumerate() {
        let title = match groups.len() {
            1 => format!("UDP {kind}"),
            _ => format!("UDP {} ({kind})", number + 1),
        };
        let mut add = |key: &str, name: &'static str, unit, of: fn(&UdpOutcome) -> Option<f64>| {
            let key = format!("udp.{number}.{key}");
            figures.push(Definition::new(key, &title, name, unit, move |run| {
                run.outcome.udp.get(number).and_then(of)
            }));
        };
        add("goodput", RATE, Unit::Megabits, |udp| Some(udp.goodput_mbit));
        add("lost", "lost", Unit::Ratio, |udp| lost_of_udp(slice::from_ref(udp)));
        add("delay_p50", "delay p50", Unit::Millis, |udp| udp.delay.map(|delay| delay.p50_ms));
        add("delay_p99", "delay p99", Unit::Millis, |udp| udp.delay.map(|delay| delay.p99_ms));
    }
    figures
}

/// The most groups of flows that a scenario has.
fn most_groups(scenarios: &[&Scenario]) -> usize {
    scenarios.iter().map(|scenario| scenario.flow.len()).max().unwrap_or(0)
}

/// The goodput of each group, where there are several.
fn flows(scenarios: &[&Scenario]) -> Vec<Definition> {
    let groups = most_groups(scenarios);
    if groups < 2 {
        return Vec::new();
    }
    let titles = flow_titles(scenarios, groups);
    let figure = |(number, title): (usize, &String)| {
        let key = format!("flow.{number}.goodput");
        Definition::new(key, title, RATE, Unit::Megabits, move |run| {
            run.outcome.flow.get(number).map(|flow| flow.total_mbit)
        })
    };
    titles.iter().enumerate().map(figure).collect()
}

/// Fairness is of at least two.
fn fairness(run: &Run) -> Option<f64> {
    let endless = run.scenario.flow.iter().filter(|group| group.size.is_none());
    run.outcome.fairness.filter(|_| endless.map(|group| group.count).sum::<u32>() > 1)
}

/// What a group of flows is called: its direction belongs to that where flows go both ways.
pub(crate) fn group_name(group: &FlowGroup, both_ways: bool) -> String {
    if both_ways { format!("{} {}", group.cc, group.direction) } else { group.cc.to_string() }
}

/// What each group of flows is called: by its congestion control, and its direction where some go up, if that is one and the same in all
/// runs and no other group's, else by its number.
fn flow_titles(scenarios: &[&Scenario], groups: usize) -> Vec<String> {
    let mut flows = scenarios.iter().flat_map(|scenario| &scenario.flow);
    let both_ways = flows.any(|group| group.direction == Direction::Up);
    let name = |group: &FlowGroup| group_name(group, both_ways);
    let same = |number: usize| {
        let mut all = scenarios.iter().filter_map(|scenario| scenario.flow.get(number));
        let first = name(all.next()?);
        all.all(|group| name(group) == first).then_some(first)
    };
    let names: Vec<Option<String>> = (0..groups).map(same).collect();
    let title = |(number, name): (usize, &Option<String>)| match name {
        Some(name) if names.iter().flatten().filter(|other| *other == name).count() == 1 => {
            name.clone()
        }
        Some(name) => format!("flow {} ({name})", number + 1),
        None => format!("flow {}", number + 1),
    };
    names.iter().enumerate().map(title).collect()
}

/// Round trips.
fn probes(scenarios: &[&Scenario]) -> Vec<Definition> {
    let widest = scenarios.iter().map(|scenario| &scenario.probe).max_by_key(|probes| probes.len());
    let probes = widest.map_or(&[][..], |probes| probes);
    let mut figures = Vec::new();
    for (number, probe) in probes.iter().enumerate() {
        let kind = probe.kind;
        // How long a large answer takes is more than a round trip.
        let what = if kind == ProbeKind::Request { "time" } else { "RTT" };
        let title = match probes.len() {
            1 => format!("{kind} {what}"),
            _ if kind == ProbeKind::Ping => format!("ping {} RTT", number + 1),
            _ => format!("{kind} {} ({}) {what}", number + 1, probe.cc),
        };
        let mut add = |name: &'static str, of: fn(&Scenario, &ProbeOutcome) -> f64| {
            let key = format!("probe.{number}.{}", word(name));
            figures.push(Definition::new(key, &title, name, Unit::Millis, move |run| {
                let measured = run.outcome.probe.get(number).filter(|probe| probe.n > 0);
                measured.map(|probe| of(&run.scenario, probe))
            }));
        };
        add("mean", |_, probe| probe.mean_ms);
        add("above base", |scenario, probe| probe.mean_ms - base_ms(scenario));
        add("jitter", |_, probe| probe.std_ms);
        add("p99", |_, probe| probe.p99_ms);
        if kind == ProbeKind::Ping {
            let key = format!("probe.{number}.lost");
            let of = move |run: &Run| run.outcome.probe.get(number).and_then(lost_share);
            figures.push(Definition::new(key, &title, "lost", Unit::Ratio, of).rare());
        }
    }
    figures
}

/// The share of UDP's packets that were lost, of those of which it is known: what was still on its way at the end is no success, and in
/// runs hardly longer than the delay it is nearly all.
pub(crate) fn lost_of_udp(groups: &[UdpOutcome]) -> Option<f64> {
    let sum = |of: fn(&UdpOutcome) -> u64| groups.iter().map(of).fold(0, u64::saturating_add);
    let lost = sum(|udp| udp.lost);
    let known = lost.saturating_add(sum(|udp| udp.received));
    (known > 0).then(|| lost as f64 / known as f64)
}

/// The share of a ping's requests that nothing answered.
pub(crate) fn lost_share(probe: &ProbeOutcome) -> Option<f64> {
    let (sent, lost) = (probe.sent.filter(|sent| *sent > 0)?, probe.lost?);
    Some(lost as f64 / sent as f64)
}

/// How long transfers took that have a size.
fn completions(scenarios: &[&Scenario]) -> Vec<Definition> {
    let groups = most_groups(scenarios);
    let titles = flow_titles(scenarios, groups);
    let is_sized = |scenario: &&Scenario| {
        let sized = |(number, group): (usize, &dualq_scenario::FlowGroup)| {
            group.size.is_some().then_some(number)
        };
        scenario.flow.iter().enumerate().filter_map(sized).collect::<Vec<_>>()
    };
    let sized: BTreeSet<usize> = scenarios.iter().flat_map(is_sized).collect();
    let mut figures = Vec::new();
    for number in sized {
        let title = match groups {
            1 => "completion".to_owned(),
            _ => format!("{} completion", titles[number]),
        };
        for (name, quantile) in [("p50", 0.5), ("p99", 0.99), ("max", 1.0)] {
            let of =
                move |run: &Run| completion(run, number, quantile).map(|seconds| seconds * 1e3);
            let key = format!("flow.{number}.completion_{name}");
            figures.push(Definition::new(key, &title, name, Unit::Millis, of).digits(3));
        }
    }
    figures
}

/// The time within which so many of the transfers ended that did end. Those that are made again and again are of one size.
fn completion(run: &Run, number: usize, quantile: f64) -> Option<f64> {
    let flow = run.outcome.flow.get(number)?;
    if run.scenario.flow.get(number).is_some_and(|group| group.every.is_some()) {
        let all = flow.completions.first().filter(|all| all.done > 0)?;
        return match quantile {
            0.5 => all.p50_s,
            0.99 => all.p99_s,
            _ => all.max_s,
        };
    }
    let mut ended: Vec<f64> = flow.completion_s.iter().flatten().copied().collect();
    ended.sort_unstable_by(f64::total_cmp);
    let rank = (ended.len() as f64 * quantile).ceil() as usize;
    ended.get(rank.saturating_sub(1)).copied()
}

/// How long packets of a kind were in the queue.
fn delays(key: &str, class: &str, of: fn(&Outcome) -> Option<Delays>) -> [Definition; 2] {
    let figure = |name, figure: fn(Delays) -> f64| {
        let of = move |run: &Run| of(&run.outcome).map(figure);
        Definition::new(format!("{key}.{name}"), class, name, Unit::Millis, of)
            .family("queue delay")
    };
    [figure("p50", |delays| delays.p50_ms), figure("p99", |delays| delays.p99_ms)]
}
