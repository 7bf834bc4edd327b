//! Figures with their units, of every scenario in every world: what all formats are made of.

mod list;
mod meaning;

use dualq_scenario::Scenario;
use dualq_scenario::summary::thousandths;
use dualq_units::student;
use dualq_worlds::{Results, Run, Settings, Unit};
use serde::{Deserialize, Serialize};

use crate::words::thousands;

pub(crate) use list::{group_name, lost_of_udp, lost_share};

pub use list::base_ms;
pub use meaning::page;

/// A table of figures: each row has a place for each column.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// What is measured. All rows have the same columns, whatever their scenarios have.
    pub columns: Vec<Column>,
    /// Scenario by scenario, in each world by world.
    pub rows: Vec<Row>,
}

/// What is measured, and how it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// What it is of. Columns next to each other may be of the same.
    pub group: String,
    /// Which figure of that it is.
    pub name: String,
    /// What it is measured in.
    pub unit: Unit,
    /// How many digits stand after the point.
    pub digits: usize,
    /// Whether it is too much for a table that people read, or says there only that nothing happened.
    pub aside: bool,
    /// What to call the group where no other group of this family has figures, as nobody then asks which of them it is.
    pub family: Option<&'static str>,
}

/// The figures of a scenario in one world.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What sets the scenario apart from others.
    pub settings: Settings,
    /// The world's name.
    pub world: String,
    /// What was measured, for each column.
    pub values: Vec<Samples>,
}

/// A figure of each seed that has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples(pub Vec<f64>);

/// A figure over all seeds, as documents have it. Numbers are rounded to thousandths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What it is of.
    pub group: String,
    /// Which figure of that it is.
    pub name: String,
    /// What it is measured in.
    pub unit: Unit,
    /// How many seeds have it.
    pub seeds: usize,
    /// Their mean.
    pub mean: Option<f64>,
    /// Their standard deviation.
    pub deviation: Option<f64>,
    /// The least.
    pub min: Option<f64>,
    /// The greatest.
    pub max: Option<f64>,
}

/// Each figure of each run, in the order of [`Results::runs`]; the figures as the columns of [`Figures`].
pub(crate) fn each(results: &Results) -> Vec<Vec<Option<f64>>> {
    let definitions = list::definitions(&scenarios(results));
    definitions
        .iter()
        .map(|figure| results.runs().iter().map(|run| (figure.of)(run)).collect())
        .collect()
}

fn scenarios(results: &Results) -> Vec<&Scenario> {
    results.scenarios().map(|runs| runs.scenario()).collect()
}

/// A figure that is asked for by its name: `goodput`, `probe.p99`, `flow.1.goodput`.
pub struct Measure(list::Definition);

impl Measure {
    /// The figure of that name. Probes, streams and groups of flows are counted from 0, which may be left out.
    ///
    /// # Errors
    /// If no run of these scenarios has such a figure: which there are.
    pub fn find(name: &str, scenarios: &[&Scenario]) -> Result<Self, String> {
        let mut known = list::definitions(scenarios);
        let first = |key: &str| key.replacen(".0.", ".", 1);
        match known.iter().position(|figure| figure.key == name || first(&figure.key) == name) {
            Some(at) => Ok(Self(known.swap_remove(at))),
            None => {
                let known: Vec<String> = known.iter().map(|figure| first(&figure.key)).collect();
                Err(format!("no figure is called {name:?}; there are {}", known.join(", ")))
            }
        }
    }

    /// What it is called in full.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.key
    }

    /// How it is written, and its unit.
    #[must_use]
    pub fn column(&self) -> &Column {
        &self.0.column
    }

    /// Its value; none where the run has none.
    #[must_use]
    pub fn of(&self, run: &Run) -> Option<f64> {
        (self.0.of)(run)
    }
}

impl std::fmt::Debug for Measure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Measure").field(&self.0.key).finish()
    }
}

impl Figures {
    /// Takes the figures of what has come of a plan.
    #[must_use]
    pub fn of(results: &Results) -> Self {
        let mut definitions = list::definitions(&scenarios(results));
        let mut rows: Vec<Row> = Vec::new();
        for scenario in results.scenarios() {
            for runs in scenario.worlds() {
                let values = definitions.iter().map(|figure| {
                    Samples(runs.iter().filter_map(|run| (figure.of)(run)).collect())
                });
                rows.push(Row {
                    settings: scenario.settings().clone(),
                    world: runs[0].world.clone(),
                    values: values.collect(),
                });
            }
        }
        for (at, figure) in definitions.iter_mut().enumerate() {
            let happened = || rows.iter().any(|row| row.values[at].most() > Some(0.0));
            figure.column.aside |= figure.rare && !happened();
        }
        Self { columns: definitions.into_iter().map(|figure| figure.column).collect(), rows }
    }
}

impl Row {
    /// Its figures over all seeds.
    #[must_use]
    pub fn figures(&self, columns: &[Column]) -> Vec<Figure> {
        let rounded = |number: Option<f64>| number.map(thousandths);
        let figure = |(column, values): (&Column, &Samples)| Figure {
            group: column.group.clone(),
            name: column.name.clone(),
            unit: column.unit,
            seeds: values.0.len(),
            mean: rounded(values.mean()),
            deviation: rounded(values.deviation()),
            min: rounded(values.least()),
            max: rounded(values.most()),
        };
        columns.iter().zip(&self.values).map(figure).collect()
    }
}

impl Column {
    /// The group with its unit, where the figures' names do not tell it.
    #[must_use]
    pub fn title(&self) -> String {
        self.titled(&self.group)
    }

    /// The figure with its unit, where it stands alone.
    #[must_use]
    pub fn words(&self) -> String {
        let named = match self.unit {
            // Its name is its unit, in iperf3's words.
            Unit::Megabits => self.group.clone(),
            _ => format!("{} {}", self.group, self.name).trim().to_owned(),
        };
        match self.unit.symbol() {
            Some(symbol) => format!("{named} ({symbol})"),
            None => named,
        }
    }

    /// A title for its group, with the unit where the figures' names do not tell it.
    #[must_use]
    pub fn titled(&self, group: &str) -> String {
        match (self.unit, self.unit.symbol()) {
            (Unit::Millis, Some(symbol)) => format!("{group} ({symbol})"),
            _ => group.to_owned(),
        }
    }

    /// The mean as a table shows it. With several seeds a small count has a digit after the point.
    #[must_use]
    pub fn show(&self, values: &Samples) -> String {
        let Some(mean) = values.mean() else { return String::new() };
        match self.unit {
            Unit::Count if values.0.len() > 1 && mean < 100.0 => format!("{mean:.1}"),
            Unit::Count => thousands(mean.round() as u64),
            _ => format!("{mean:.*}", self.digits),
        }
    }

    /// How far seeds spread.
    #[must_use]
    pub fn show_spread(&self, values: &Samples) -> String {
        let Some(deviation) = values.deviation() else { return String::new() };
        let digits = match self.unit {
            Unit::Count if deviation < 100.0 => 1,
            _ => self.digits,
        };
        format!("±{deviation:.digits$}")
    }

    /// A mean or a deviation of these as programs read it.
    #[must_use]
    pub fn write(&self, number: Option<f64>, of: &Samples) -> String {
        // The mean of counts is none.
        let digits = if self.unit == Unit::Count && of.0.len() > 1 { 3 } else { self.digits };
        number.map_or(String::new(), |number| format!("{number:.digits$}"))
    }

    /// How far it is from the same figure of another world: times as a difference, all else as a share.
    #[must_use]
    pub fn apart(&self, reference: &Samples, values: &Samples) -> String {
        let Some((reference, value)) = reference.mean().zip(values.mean()) else {
            return String::new();
        };
        let difference = value - reference;
        if self.unit == Unit::Millis {
            return format!("{difference:+.*}", self.digits);
        }
        let share = if difference == 0.0 { 0.0 } else { (100.0 * difference / reference).round() };
        match share {
            _ if share.is_infinite() => "-".to_owned(),
            0.0 => "0%".to_owned(),
            _ => format!("{share:+.0}%"),
        }
    }
}

impl Samples {
    /// The mean.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.iter().sum::<f64>() / self.0.len() as f64)
    }

    /// The standard deviation of the sample, which takes two.
    #[must_use]
    pub fn deviation(&self) -> Option<f64> {
        let mean = self.mean().filter(|_| self.0.len() > 1)?;
        let squares = self.0.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        Some((squares / (self.0.len() - 1) as f64).sqrt())
    }

    /// The mean is known to so much more or less, with 95 % confidence (Student's t); of two or more.
    #[must_use]
    pub fn interval(&self) -> Option<f64> {
        let count = self.0.len();
        Some(student(count) * self.deviation()? / (count as f64).sqrt())
    }

    /// The least.
    #[must_use]
    pub fn least(&self) -> Option<f64> {
        self.0.iter().copied().reduce(f64::min)
    }

    /// The greatest.
    #[must_use]
    pub fn most(&self) -> Option<f64> {
        self.0.iter().copied().reduce(f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(unit: Unit, digits: usize) -> Column {
        let (group, name) = ("rtt".to_owned(), "mean".to_owned());
        Column { group, name, unit, digits, aside: false, family: None }
    }

    #[test]
    fn the_unit_decides_how_a_figure_is_written() {
        let (one, two) = (Samples(vec![1234.0]), Samples(vec![1.0, 2.0]));
        let (count, millis) = (column(Unit::Count, 0), column(Unit::Millis, 2));
        assert_eq!((count.show(&one), millis.show(&one)), ("1,234".into(), "1234.00".into()));
        assert_eq!((count.show(&two), millis.show(&two)), ("1.5".into(), "1.50".into()));
        assert_eq!(count.show_spread(&two), "±0.7");
        assert_eq!(
            (count.write(one.mean(), &one), count.write(two.mean(), &two)),
            ("1234".into(), "1.500".into())
        );
        assert_eq!((count.title(), millis.title()), ("rtt".into(), "rtt (ms)".into()));
        assert_eq!(millis.apart(&two, &one), "+1232.50");
        assert_eq!(count.apart(&two, &Samples(vec![3.0])), "+100%");
        assert_eq!(count.apart(&Samples(vec![0.0]), &one), "-");
        assert_eq!(count.show(&Samples::default()), "");
    }

    #[test]
    fn a_mean_of_few_is_known_badly() {
        // 12.706 times 0.7071 over the root of two.
        assert_eq!(
            Samples(vec![1.0, 2.0]).interval().map(|far| format!("{far:.3}")),
            Some("6.353".into())
        );
        assert_eq!(
            Samples([1.0, 2.0].repeat(20)).interval().map(|far| format!("{far:.3}")),
            Some("0.160".into())
        );
        assert_eq!(Samples(vec![1.0]).interval(), None);
    }
}
