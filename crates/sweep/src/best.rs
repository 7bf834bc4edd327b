//! Which scenarios of a sweep are the best, and how sure that is.

use dualq_report::{Measure, Samples};
use dualq_worlds::{Run, ScenarioRuns};

use crate::aim::Aim;

/// What is best by an aim.
#[derive(Clone, Debug, PartialEq)]
pub struct Best {
    /// The number of the best scenario.
    pub number: usize,
    /// Whether it keeps all limits.
    pub keeps: bool,
    /// How many do.
    pub keeping: usize,
    /// How many there are.
    pub of: usize,
    /// The others that keep the limits, and whose last figure may be as good: their intervals meet.
    pub as_good: Vec<usize>,
    words: Vec<String>,
}

/// A figure over the seeds in the first world.
fn samples(measure: &Measure, runs: &[Run]) -> Samples {
    Samples(runs.iter().filter_map(|run| measure.of(run)).collect())
}

/// What sets a scenario apart from the others, in words.
#[must_use]
pub fn named(runs: &ScenarioRuns<'_>) -> String {
    let settings = &runs.settings().0;
    if settings.is_empty() {
        return runs.scenario().link.qdisc.to_string();
    }
    let words: Vec<String> =
        settings.iter().map(|(what, value)| format!("{what}={value}")).collect();
    words.join(" ")
}

/// The best of these by an aim, in the first world.
///
/// # Panics
/// If there are none.
#[must_use]
pub fn of(aim: &Aim, scenarios: &[ScenarioRuns<'_>]) -> Best {
    let scores: Vec<_> = scenarios.iter().map(|runs| aim.score(runs.first_world())).collect();
    let number = (0..scores.len())
        .min_by(|one, other| scores[*one].compare(&scores[*other]))
        .expect("a document has scenarios");
    let keeping = scores.iter().filter(|score| score.keeps()).count();
    let ends = |number: usize| {
        let goal = aim.goal();
        let of = samples(goal, scenarios[number].first_world());
        let (mean, far) = (of.mean()?, of.interval()?);
        Some((mean - far, mean + far))
    };
    let meets = |other: &usize| {
        let both = ends(number).zip(ends(*other));
        both.is_some_and(|((from, to), (other_from, other_to))| {
            from <= other_to && other_from <= to
        })
    };
    let alike =
        |other: &usize| *other != number && scores[*other].keeps() == scores[number].keeps();
    let as_good: Vec<usize> = (0..scores.len()).filter(alike).filter(meets).collect();
    let runs = &scenarios[number];
    let keeps = scores[number].keeps();
    let has_goal = scores[number].has_goal();
    let mut words = vec![match (has_goal, keeps) {
        (false, _) => format!("None is the best by {:?}", aim.words()),
        (true, true) => format!("Best by {:?}: {}", aim.words(), named(runs)),
        (true, false) => {
            format!("None keeps all limits. Nearest by {:?}: {}", aim.words(), named(runs))
        }
    }];
    let mut told: Vec<&str> = Vec::new();
    for measure in aim.measures() {
        if told.contains(&measure.name()) {
            continue;
        }
        told.push(measure.name());
        words.push(format!("  {}", figure(measure, runs.first_world())));
    }
    if !has_goal {
        return Best { number, keeps, keeping, of: scores.len(), as_good: Vec::new(), words };
    }
    words.push(match (keeping, scores.len()) {
        (_, 1) => "  There is nothing to compare it with.".to_owned(),
        (keeping, of) => format!("  {keeping} of {of} keep the limits."),
    });
    if runs.first_world().len() < 2 {
        words.push("  How sure that is takes more seeds than one.".to_owned());
    } else if as_good.is_empty() {
        words.push("  No other's 95 % interval meets its own.".to_owned());
    } else {
        let names: Vec<String> = as_good.iter().take(3).map(|at| named(&scenarios[*at])).collect();
        let more = as_good.len().saturating_sub(3);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        words.push(format!(
            "  As good as far as {} seeds tell: {}{more}.",
            runs.first_world().len(),
            names.join("; ")
        ));
    }
    Best { number, keeps, keeping, of: scores.len(), as_good, words }
}

/// A figure with its interval.
#[must_use]
pub fn figure(measure: &Measure, runs: &[Run]) -> String {
    let column = measure.column();
    let of = samples(measure, runs);
    let interval = match of.interval() {
        Some(far) => format!(" ± {far:.*}", column.digits.max(1)),
        None => String::new(),
    };
    match of.mean() {
        Some(_) => format!("{}: {}{interval}", column.words(), column.show(&of)),
        None => format!("{}: no run has it", column.words()),
    }
}

impl Best {
    /// What there is to say of it.
    #[must_use]
    pub fn lines(&self) -> &[String] {
        &self.words
    }
}
