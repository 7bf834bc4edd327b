//! The scenarios of a sweep: all combinations of values, or samples of them.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use dualq_scenario::{Assignment, Overrides, Sweep, SweepError, Variant};
use fastrand::Rng;

use crate::axis::{Axis, AxisError, Values};

/// More scenarios in one sweep would hardly be meant.
pub const MOST_SCENARIOS: usize = 100_000;

/// So often samples of few values are tried to be set apart.
const ROUNDS: usize = 32;

/// Which combinations of the axes' values there are.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Sampling {
    /// All of them, as a full factorial; lists only.
    #[default]
    All,
    /// So many, each value drawn by itself. Those that are the same count once.
    Random {
        /// How many.
        count: usize,
        /// What is drawn follows from it.
        seed: u64,
    },
    /// So many as a Latin hypercube: of each axis' values as many parts as there are samples, and one sample in each part. Those that are
    /// the same, for there are too few values, count once.
    Latin {
        /// How many.
        count: usize,
        /// What is drawn follows from it.
        seed: u64,
    },
    /// Those at these places: for each choice how far it is from its first value to its last, from 0 to 1, in the order in which they are
    /// written; behind them one for all that varies together, if anything does.
    At(Vec<Vec<f64>>),
}

/// A scenario file, and what varies in it.
#[derive(Clone, Debug, Default)]
pub struct Space {
    /// The text of the file.
    pub source: String,
    /// Where the names of other files in it start.
    pub folder: PathBuf,
    /// The texts of those that are not there but here, by their names.
    pub files: BTreeMap<String, String>,
    /// What varies by itself. What has only one value is set to that.
    pub vary: Vec<Axis>,
    /// What varies together: the first values of all, then the second ones.
    pub zip: Vec<Axis>,
    /// Which combinations there are.
    pub sampling: Sampling,
    /// Whether outcomes keep distributions, for curves in reports.
    pub distributions: bool,
}

/// Why there are no scenarios.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpaceError {
    /// An axis makes no sense, by itself or beside the others.
    #[error(transparent)]
    Axis(#[from] AxisError),
    /// A value, or the file, makes no sense.
    #[error(transparent)]
    Scenario(#[from] SweepError),
    /// There are too many.
    #[error(
        "{0} scenarios; a sweep has at most {MOST_SCENARIOS}: fewer values, or a sample of them"
    )]
    TooMany(usize),
}

/// Values of all choices, by axis.
type Chosen = Vec<Vec<String>>;

impl Space {
    /// The scenarios that a file alone says.
    #[must_use]
    pub fn of(source: impl Into<String>) -> Self {
        Self { source: source.into(), ..Self::default() }
    }

    /// The file with the values of the first sample: what all scenarios have in common.
    ///
    /// # Errors
    /// If it makes no sense.
    pub fn file(&self) -> Result<Sweep, SpaceError> {
        self.read(&self.samples()?[0])
    }

    fn read(&self, chosen: &Chosen) -> Result<Sweep, SpaceError> {
        let set = self.axes().zip(chosen).map(|(axis, chosen)| Assignment {
            key: axis.key().to_owned(),
            value: axis.value(chosen),
        });
        let (set, picture) = (set.collect(), self.distributions);
        let overrides = Overrides { set, picture, ..Overrides::default() };
        let files = dualq_scenario::files(&self.files, &self.folder);
        Ok(Sweep::parse_beside(&files, &self.source, &overrides)?)
    }

    /// All scenarios. What is a list in the file is combined with each sample; what is written last changes fastest. Settings have the
    /// names that the file's lists have, and of an axis the key, or the word before a part of a value.
    ///
    /// # Errors
    /// If there are too many or none, or one of them makes no sense: with what would be right.
    pub fn scenarios(&self) -> Result<Vec<Variant>, SpaceError> {
        let samples = self.samples()?;
        let names = self.names();
        let mut all = Vec::new();
        for chosen in samples {
            let variants = self.read(&chosen)?.variants();
            let count = all.len() + variants.len();
            if count > MOST_SCENARIOS {
                return Err(SpaceError::TooMany(count));
            }
            let units = self.axes().flat_map(Axis::units);
            let settings = names.iter().zip(chosen.iter().flatten()).zip(units);
            let settings: Vec<(String, String)> = settings
                .filter_map(|((name, value), unit)| Some((name.clone()?, format!("{value}{unit}"))))
                .collect();
            all.extend(variants.into_iter().map(|mut variant| {
                variant.settings.extend(settings.iter().cloned());
                variant
            }));
        }
        Ok(all)
    }

    /// Those that vary together are the last, and so change fastest.
    fn axes(&self) -> impl Iterator<Item = &Axis> {
        self.vary.iter().chain(&self.zip)
    }

    /// What the choices are called; none of what has one value.
    fn names(&self) -> Vec<Option<String>> {
        let choices: Vec<_> = self
            .axes()
            .flat_map(|axis| axis.choices().iter().map(move |choice| (axis.key(), choice)))
            .collect();
        let name = |at: usize| {
            let (key, choice) = choices[at];
            let others = choices.iter().enumerate().filter(|(other, _)| *other != at);
            let mut named = others.filter(|(_, (_, other))| other.name == choice.name);
            let taken = named.any(|(_, (_, other))| !other.values.is_fixed());
            match (choice.values.is_fixed(), taken && choice.name != key) {
                (true, _) => None,
                (false, false) => Some(choice.name.clone()),
                (false, true) => Some(format!("{key} {} {}", choice.name, at + 1)),
            }
        };
        (0..choices.len()).map(name).collect()
    }

    /// How many different samples there are: fewer than are asked for, if there are too few values for so many.
    ///
    /// # Errors
    /// If it makes no sense.
    pub fn count(&self) -> Result<usize, SpaceError> {
        Ok(self.samples()?.len())
    }

    fn samples(&self) -> Result<Vec<Chosen>, SpaceError> {
        self.check()?;
        let dimensions = self.dimensions();
        let rows: Vec<Vec<f64>> = match &self.sampling {
            Sampling::All => return self.factorial(),
            Sampling::Random { count, seed } => {
                let mut rng = Rng::with_seed(*seed);
                let rows = (0..bounded(*count)?)
                    .map(|_| (0..dimensions).map(|_| rng.f64()).collect::<Vec<f64>>());
                return Ok(different(rows.map(|row| self.chosen(&row))));
            }
            Sampling::Latin { count, seed } => return Ok(self.hypercube(bounded(*count)?, *seed)),
            Sampling::At(rows) => {
                bounded(rows.len())?;
                if let Some(row) = rows.iter().find(|row| row.len() != dimensions) {
                    let given = row.len();
                    let what =
                        format!("a sample of {given} values, and there are {dimensions} choices");
                    return Err(AxisError(what).into());
                }
                rows.clone()
            }
        };
        Ok(rows.iter().map(|row| self.chosen(row)).collect())
    }

    /// The values that are so far from the first to the last.
    fn chosen(&self, shares: &[f64]) -> Chosen {
        let mut left = shares.iter().copied();
        let mut at = |values: &Values| values.at(left.next().unwrap_or(0.0));
        let vary: Vec<Vec<String>> = self
            .vary
            .iter()
            .map(|axis| axis.choices().iter().map(|choice| at(&choice.values)).collect())
            .collect();
        let together = shares.last().copied().unwrap_or(0.0);
        let zip = self
            .zip
            .iter()
            .map(|axis| axis.choices().iter().map(|choice| choice.values.at(together)).collect());
        vary.into_iter().chain(zip).collect()
    }

    fn hypercube(&self, count: usize, seed: u64) -> Vec<Chosen> {
        let mut rng = Rng::with_seed(seed);
        let choices = self.vary.iter().flat_map(Axis::choices);
        let mut single: Vec<bool> = choices.map(|choice| choice.values.are_single()).collect();
        single.resize(self.dimensions(), true);
        let mut columns: Vec<Vec<f64>> =
            single.iter().map(|single| latin(count, *single, &mut rng)).collect();
        let sample = |columns: &[Vec<f64>], row: usize| {
            self.chosen(&columns.iter().map(|column| column[row]).collect::<Vec<f64>>())
        };
        // Where two samples are the same, one of them gets a value of another: each part still has one.
        for _ in 0..if columns.len() > 1 { ROUNDS } else { 0 } {
            let mut there = HashSet::new();
            let again: Vec<usize> =
                (0..count).filter(|row| !there.insert(sample(&columns, *row))).collect();
            if again.is_empty() {
                break;
            }
            for row in again {
                let column = rng.usize(..columns.len());
                columns[column].swap(row, rng.usize(..count));
            }
        }
        different((0..count).map(|row| sample(&columns, row)))
    }

    /// How many choices there are: all that varies together is one.
    pub(crate) fn dimensions(&self) -> usize {
        let choices = self.vary.iter().map(|axis| axis.choices().len()).sum::<usize>();
        choices + usize::from(!self.zip.is_empty())
    }

    fn factorial(&self) -> Result<Vec<Chosen>, SpaceError> {
        let mut count = 1_usize;
        for choice in self.vary.iter().flat_map(Axis::choices) {
            let Some(values) = choice.values.count() else {
                let message = format!(
                    "{}: a range has no end of values; draw a sample of it (--latin 20, in Python sample=20), or give a list",
                    choice.name
                );
                return Err(AxisError(message).into());
            };
            count = count.saturating_mul(values);
        }
        let together = self.together();
        count = count.saturating_mul(together);
        if count > MOST_SCENARIOS {
            return Err(SpaceError::TooMany(count));
        }
        let sample = |number: usize| -> Chosen {
            // As the digits of the number, the last the fastest.
            let mut rest = number / together;
            let mut vary: Vec<Vec<String>> = Vec::new();
            for axis in self.vary.iter().rev() {
                let mut chosen = Vec::new();
                for choice in axis.choices().iter().rev() {
                    let values = choice.values.count().unwrap_or(1);
                    chosen.insert(0, choice.values.numbered(rest % values));
                    rest /= values;
                }
                vary.insert(0, chosen);
            }
            let zip = self.zip.iter().map(|axis| {
                let choices = axis.choices().iter();
                choices.map(|choice| choice.values.numbered(number % together)).collect()
            });
            vary.into_iter().chain(zip).collect()
        };
        Ok((0..count).map(sample).collect())
    }

    /// How many values each of those has that vary together.
    fn together(&self) -> usize {
        let first = self.zip.iter().flat_map(Axis::choices).next();
        first.and_then(|choice| choice.values.count()).unwrap_or(1)
    }

    /// What one axis does not tell.
    fn check(&self) -> Result<(), AxisError> {
        let keys: Vec<&str> = self.axes().map(Axis::key).collect();
        if let Some(twice) = (1..keys.len()).find(|at| keys[..*at].contains(&keys[*at])) {
            return Err(AxisError(format!("{} is given twice", keys[twice])));
        }
        for axis in &self.vary {
            if let Some(value) = axis.choices().iter().find_map(|choice| choice.values.again()) {
                let key = axis.key();
                let message = format!("{key}: {value} is given twice; give each value once");
                return Err(AxisError(message));
            }
        }
        let together = self.together();
        for axis in &self.zip {
            for choice in axis.choices() {
                match choice.values.count() {
                    None => {
                        let key = axis.key();
                        let message = format!("{key}: what varies together is lists, no ranges");
                        return Err(AxisError(message));
                    }
                    Some(count) if count != together => {
                        let message = format!(
                            "{} has {count} values, and {} that varies with it has {together}; give as many",
                            axis.key(),
                            self.zip[0].key()
                        );
                        return Err(AxisError(message));
                    }
                    Some(_) => {}
                }
            }
        }
        // Here one value may stand beside several of another key.
        let mut steps = HashSet::new();
        let step = |number: usize| -> Vec<String> {
            let choices = self.zip.iter().flat_map(Axis::choices);
            choices.map(|choice| choice.values.numbered(number)).collect()
        };
        match (0..together).find(|number| !steps.insert(step(*number))) {
            Some(again) if !self.zip.is_empty() => Err(AxisError(format!(
                "{}: {} is given twice with the same values beside it; give each step once",
                self.zip[0].key(),
                step(again)[0]
            ))),
            _ => Ok(()),
        }
    }
}

/// A number of samples that makes sense.
fn bounded(count: usize) -> Result<usize, SpaceError> {
    match count {
        0 => Err(AxisError("a sample of 0 scenarios; give 1 or more".to_owned()).into()),
        count if count > MOST_SCENARIOS => Err(SpaceError::TooMany(count)),
        count => Ok(count),
    }
}

/// Each sample once, in the order of the first.
fn different(samples: impl Iterator<Item = Chosen>) -> Vec<Chosen> {
    let mut there = HashSet::new();
    samples.filter(|sample| there.insert(sample.clone())).collect()
}

/// A number from each of so many equal parts of what is between 0 and 1, in random order. If they are for `single` values, each lies at the
/// same place of its part: then no two are of one value, unless there are fewer values than parts.
pub(crate) fn latin(count: usize, single: bool, rng: &mut Rng) -> Vec<f64> {
    let mut parts: Vec<usize> = (0..count).collect();
    rng.shuffle(&mut parts);
    let same = single.then(|| rng.f64());
    let mut within = || same.unwrap_or_else(|| rng.f64());
    parts.into_iter().map(|part| (part as f64 + within()) / count as f64).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_latin_hypercube_has_one_sample_in_each_part(count in 1_usize..500, single in any::<bool>(), seed in any::<u64>()) {
            let drawn = latin(count, single, &mut fastrand::Rng::with_seed(seed));
            let mut parts: Vec<usize> = drawn.iter().map(|share| (share * count as f64) as usize).collect();
            parts.sort_unstable();
            prop_assert_eq!(parts, (0..count).collect::<Vec<_>>());
        }
    }
}
