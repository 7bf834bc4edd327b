//! How well a world agrees with recorded runs of real Linux, and whether it can be told from it.
//!
//! A [`Reference`] is a line of a reference file: a scenario, and what repeated runs of real Linux did with it. [`compare`] plays
//! its scenario and puts the figures side by side, twice: those of the behaviour, with wide tolerances, and all that both have, with
//! narrow ones. In the place of the recorded runs a second world can be compared with.

mod figures;

use dualq_scenario::{Limit, Outcome, Scenario};
use serde::Deserialize;
use serde_json::Value;

use crate::play::each;
pub use figures::cannot_be_told_apart;

use crate::{Job, Unit, Watch, World, WorldError};

/// A line of a reference file.
#[derive(Clone, Debug, Deserialize)]
pub struct Reference {
    /// The scenario, which may have what a world does not know.
    pub scenario: Value,
    /// What came of it on real Linux, each time; recorders need not have all that an [`Outcome`] has.
    pub runs: Vec<Value>,
}

/// What came of one reference scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The scenario's name.
    pub name: String,
    /// How the world did.
    pub verdict: Verdict,
}

/// How a world did with a reference scenario.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The figures, side by side.
    Compared(Comparison),
    /// Why this world cannot play it.
    NotPossible(String),
}

/// How a world does beside the reference.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Goodput, retransmissions and round trips, with wide tolerances: whether it is the same behaviour.
    pub quantities: Vec<Quantity>,
    /// Every figure that both have, with narrow ones: whether the worlds can be told apart.
    pub figures: Vec<Quantity>,
    /// Figures that the reference does not have, with their units.
    pub lacking: Vec<String>,
    /// Limits of the machine that the runs met.
    pub limits: Vec<String>,
}

impl Comparison {
    /// Whether the behaviour is the same.
    #[must_use]
    pub fn agrees(&self) -> bool {
        self.quantities.iter().all(|quantity| quantity.agrees)
    }

    /// Whether nothing tells the worlds apart.
    #[must_use]
    pub fn is_twin(&self) -> bool {
        self.figures.iter().all(|quantity| quantity.agrees)
    }
}

/// A figure of which two means are compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantity {
    /// What it is.
    pub what: String,
    /// What it is measured in.
    pub unit: Unit,
    /// The mean of real Linux.
    pub kernel: f64,
    /// The mean of the world that is compared.
    pub here: f64,
    /// Whether they are near enough.
    pub agrees: bool,
}

/// How far two means may be apart, beside the kernel's own spread.
#[derive(Clone, Copy)]
enum Tolerance {
    /// A share of the kernel's, or a difference.
    Share(f64, f64),
    /// A factor either way, or a difference.
    Factor(f64, f64),
}

/// How many different scenarios these are of.
#[must_use]
pub fn count_different(references: &[Reference]) -> usize {
    firsts(references).iter().enumerate().filter(|(number, first)| number == *first).count()
}

/// Of each the number of the first that is of the same scenario.
fn firsts(references: &[Reference]) -> Vec<usize> {
    let alike = |reference: &Reference| {
        references.iter().position(|other| other.scenario == reference.scenario)
    };
    references.iter().filter_map(alike).collect()
}

/// Plays each reference scenario in the world, with the seeds from 1 to `seeds`, and compares what comes of it with the recorded
/// runs, or with as many runs in the world `beside`. What was recorded several times is played once. What a world does not have is a verdict.
///
/// # Errors
/// If a world breaks, or whoever watches asks to stop.
pub fn compare(
    references: &[Reference],
    world: &dyn World,
    beside: Option<&dyn World>,
    seeds: u64,
    watch: &Watch<'_>,
) -> Result<Vec<Compared>, WorldError> {
    let scenarios: Vec<Result<Scenario, String>> =
        references.iter().map(|reference| playable(reference, world)).collect();
    let firsts = firsts(references);
    let mut jobs = Vec::new();
    // Where the jobs of a scenario begin, which its first reference has.
    let mut begins = vec![0; references.len()];
    for (number, scenario) in scenarios.iter().enumerate() {
        let Some(scenario) = scenario.as_ref().ok().filter(|_| firsts[number] == number) else {
            continue;
        };
        begins[number] = jobs.len();
        for world in [Some(world), beside].into_iter().flatten() {
            jobs.extend((1..=seeds).map(|seed| Job { scenario, world, seed }));
        }
    }
    let outcomes = each(&jobs, watch)?;
    let runs = |from: usize| -> Result<Vec<Outcome>, String> {
        outcomes.iter().skip(from).take(seeds as usize).cloned().collect()
    };
    let mut compared = Vec::new();
    for (number, (reference, scenario)) in references.iter().zip(&scenarios).enumerate() {
        let verdict = scenario.as_ref().map_err(Clone::clone).and_then(|scenario| {
            let from = begins[firsts[number]];
            let there = beside.map(|_| runs(from + seeds as usize)).transpose();
            Ok(side_by_side(scenario, &reference.runs, &runs(from)?, there?.as_deref()))
        });
        let name = reference.scenario["name"].as_str().unwrap_or("unnamed").to_owned();
        let verdict = verdict.map_or_else(Verdict::NotPossible, Verdict::Compared);
        compared.push(Compared { name, verdict });
    }
    Ok(compared)
}

/// The scenario, if it is one that the world has all for.
fn playable(reference: &Reference, world: &dyn World) -> Result<Scenario, String> {
    let scenario = serde_json::from_value::<Scenario>(reference.scenario.clone());
    let scenario = scenario.map_err(|error| error.to_string())?;
    world.refuses(&scenario).map_or(Ok(scenario), Err)
}

/// The figures of the recorded runs, or of those in another world, and of the outcomes.
fn side_by_side(
    scenario: &Scenario,
    recorded: &[Value],
    here: &[Outcome],
    there: Option<&[Outcome]>,
) -> Comparison {
    let others = there.map(values);
    let runs = others.as_deref().unwrap_or(recorded);
    let (figures, lacking) = figures::compare(scenario, there.is_some(), runs, &values(here));
    let mut limits = Limit::in_words(here);
    limits.extend(Limit::in_words(there.unwrap_or(&[])));
    Comparison { quantities: behaviour(scenario, runs, here), figures, lacking, limits }
}

/// Outcomes as reference files have them.
fn values(outcomes: &[Outcome]) -> Vec<Value> {
    // Numbers, lists and names: there is nothing that JSON has not.
    outcomes.iter().map(|outcome| serde_json::to_value(outcome).unwrap_or_default()).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

impl Quantity {
    fn new(what: String, unit: Unit, kernel: &[f64], here: &[f64], tolerance: Tolerance) -> Self {
        let spread = kernel.iter().copied().fold(f64::MIN, f64::max)
            - kernel.iter().copied().fold(f64::MAX, f64::min);
        let (kernel, here) = (mean(kernel), mean(here));
        let difference = (kernel - here).abs();
        let agrees = difference <= spread
            || match tolerance {
                Tolerance::Share(share, most) => {
                    difference <= share * kernel.abs() || difference <= most
                }
                Tolerance::Factor(factor, most) => {
                    difference <= most || (here <= kernel * factor && kernel <= here * factor)
                }
            };
        Self { what, unit, kernel, here, agrees }
    }

    /// What it is, with its unit where that has a label.
    #[must_use]
    pub fn label(&self) -> String {
        labelled(&self.what, self.unit)
    }
}

fn labelled(what: &str, unit: Unit) -> String {
    unit.symbol().map_or_else(|| what.to_owned(), |symbol| format!("{what} ({symbol})"))
}

/// Goodput, retransmissions and round trips.
fn behaviour(scenario: &Scenario, runs: &[Value], outcomes: &[Outcome]) -> Vec<Quantity> {
    let mut quantities = Vec::new();
    let mut add = |what: String, unit, at: &str, of: &dyn Fn(&Outcome) -> f64, tolerance| {
        let kernel: Vec<f64> =
            runs.iter().map(|run| run.pointer(at).and_then(Value::as_f64).unwrap_or(0.0)).collect();
        let here: Vec<f64> = outcomes.iter().map(of).collect();
        quantities.push(Quantity::new(what, unit, &kernel, &here, tolerance));
    };
    add(
        "total goodput".to_owned(),
        Unit::Megabits,
        "/goodput_mbit",
        &|outcome| outcome.goodput_mbit,
        Tolerance::Share(0.05, 0.3),
    );
    for (number, group) in scenario.flow.iter().enumerate() {
        add(
            format!("{} {} goodput", group.count, group.cc),
            Unit::Megabits,
            &format!("/flow/{number}/total_mbit"),
            &|outcome| outcome.flow[number].total_mbit,
            Tolerance::Share(0.2, 0.0),
        );
        add(
            format!("{} {} retransmissions", group.count, group.cc),
            Unit::Count,
            &format!("/flow/{number}/retransmits"),
            &|outcome| outcome.flow[number].retransmits as f64,
            Tolerance::Factor(2.0, 30.0),
        );
    }
    for (number, group) in scenario.udp.iter().enumerate() {
        let name = |figure: &str| format!("UDP {} {figure}", group.kind);
        let at = |figure: &str| format!("/udp/{number}/{figure}");
        add(
            name("received"),
            Unit::Count,
            &at("received"),
            &|outcome| outcome.udp.get(number).map_or(0.0, |udp| udp.received as f64),
            Tolerance::Share(0.05, 5.0),
        );
        let delay = |outcome: &Outcome| outcome.udp.get(number).and_then(|udp| udp.delay);
        add(
            name("median delay"),
            Unit::Millis,
            &at("delay/p50_ms"),
            &|outcome| delay(outcome).map_or(0.0, |delay| delay.p50_ms),
            Tolerance::Share(0.25, 1.5),
        );
        add(
            name("p95 delay"),
            Unit::Millis,
            &at("delay/p95_ms"),
            &|outcome| delay(outcome).map_or(0.0, |delay| delay.p95_ms),
            Tolerance::Share(0.5, 5.0),
        );
    }
    let base_ms = scenario.link.base_rtt().as_secs_f64() * 1e3;
    for (number, group) in scenario.probe.iter().enumerate() {
        let name = |figure: &str| format!("{} probe {figure} RTT above base", group.cc);
        let mut above = |figure: &str, key: &str, of: &dyn Fn(&Outcome) -> f64, tolerance| {
            let kernel: Vec<f64> = runs
                .iter()
                .map(|run| &run["probe"][number][key])
                .map(|value| value.as_f64().unwrap_or(0.0) - base_ms)
                .collect();
            let here: Vec<f64> = outcomes.iter().map(|outcome| of(outcome) - base_ms).collect();
            quantities.push(Quantity::new(name(figure), Unit::Millis, &kernel, &here, tolerance));
        };
        above(
            "median",
            "p50_ms",
            &|outcome| outcome.probe[number].p50_ms,
            Tolerance::Share(0.25, 1.5),
        );
        above("p95", "p95_ms", &|outcome| outcome.probe[number].p95_ms, Tolerance::Share(0.5, 5.0));
    }
    quantities
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use dualq_scenario::Sweep;
    use serde_json::json;

    use super::*;
    use crate::{Model, Progress};

    /// A reference that was recorded in the model, with the seeds 1 and 2.
    fn recorded() -> Reference {
        let sweep = Sweep::parse(
            "name = 'small'\nduration = '4s'\nwarmup = '1s'\n[link]\nrate = '5mbit'\nqdisc = 'pie'\n\
             [[flow]]\ncc = 'cubic'\ncount = 2\n[[probe]]\nkind = 'ssh'",
        );
        let scenario = &sweep.unwrap().variants()[0].scenario;
        let runs = [1, 2].map(|seed| {
            let outcome = Model.run(scenario, seed, &mut |_| ControlFlow::Continue(())).unwrap();
            serde_json::to_value(outcome).unwrap()
        });
        Reference { scenario: serde_json::to_value(scenario).unwrap(), runs: runs.to_vec() }
    }

    fn verdict(reference: Reference, beside: Option<&dyn World>) -> Verdict {
        let watch = |_| ControlFlow::Continue(());
        let compared = compare(&[reference], &Model, beside, 2, &watch).unwrap();
        compared.into_iter().next().unwrap().verdict
    }

    /// Whatever stands between: others, and what no world has.
    #[test]
    fn what_was_recorded_twice_is_played_once() {
        let [first, again] = [recorded(), recorded()];
        let mut other = recorded();
        other.scenario["link"]["qdisc"] = json!("fq_codel");
        let mut unknown = recorded();
        unknown.scenario["flow"][0]["cc"] = json!("vegas");
        let all = [unknown, first, other, again];
        assert_eq!(count_different(&all), 3);
        let played = std::sync::atomic::AtomicU64::new(0);
        let watch = |step| {
            if matches!(step, Progress::Run) {
                played.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
            ControlFlow::Continue(())
        };
        let compared = compare(&all, &Model, Some(&Model), 2, &watch).unwrap();
        // Two scenarios, two worlds, two seeds.
        assert_eq!(played.into_inner(), 8);
        assert!(matches!(compared[0].verdict, Verdict::NotPossible(_)));
        assert_eq!(compared[1], compared[3]);
        assert_ne!(compared[1].verdict, compared[2].verdict);
    }

    #[test]
    fn a_world_agrees_with_itself_and_with_nothing_that_is_far() {
        let itself = verdict(recorded(), None);
        let Verdict::Compared(itself) = itself else { panic!("{itself:?}") };
        assert!(itself.agrees(), "{itself:?}");
        // Recorded counters of tc are of the whole run, ours are too.
        assert!(itself.is_twin(), "{itself:?}");
        assert!(itself.lacking.is_empty(), "{itself:?}");
        let labels: Vec<String> = itself.quantities.iter().map(Quantity::label).collect();
        assert_eq!(labels[..2], ["total goodput (Mbit/s)", "2 cubic goodput (Mbit/s)"]);

        let mut far = recorded();
        for run in &mut far.runs {
            run["goodput_mbit"] = json!(1.0);
            run["queue"].as_object_mut().unwrap().remove("delay_p50_ms");
        }
        let far = verdict(far, None);
        let Verdict::Compared(far) = far else { panic!("{far:?}") };
        assert!(!far.agrees() && !far.is_twin());
        assert!(!far.quantities[0].agrees && far.quantities[1..].iter().all(|other| other.agrees));
        assert_eq!(far.lacking, ["queue delay, p50 (ms)"]);
    }

    /// With another world beside it the recorded runs do not count.
    #[test]
    fn two_worlds_are_compared_with_each_other() {
        let reference = Reference { runs: Vec::new(), ..recorded() };
        let twin = verdict(reference, Some(&Model));
        let Verdict::Compared(twin) = twin else { panic!("{twin:?}") };
        assert!(twin.is_twin() && twin.agrees() && !twin.figures.is_empty());
    }

    #[test]
    fn what_a_world_does_not_have_is_a_verdict() {
        let mut reference = recorded();
        reference.scenario["sender"]["qdisc"] = json!("fq_codel");
        let verdict = verdict(reference, None);
        let reason = "sender.qdisc: \"fq_codel\" is not modelled; give fq, a FIFO, or netem with a loss rate, \
                      or run it with --world kernel";
        assert_eq!(verdict, Verdict::NotPossible(reason.to_owned()));
    }
}
