//! What all formats are made of.

use dualq_scenario::{Link, Scenario};
use dualq_worlds::{Results, ScenarioRuns};

use crate::figures::{Figures, base_ms};
use crate::words::one_line;
use crate::{rank, remarks};

/// Of more links than this, the best of each is not repeated in words.
const MOST_SENTENCES: usize = 4;

/// Results with all that follows from them: figures, which scenario is best, and what there is to say.
#[derive(Clone, Debug)]
pub struct Report<'a> {
    /// What it is of.
    pub results: &'a Results,
    /// The scenarios with their runs.
    pub scenarios: Vec<ScenarioRuns<'a>>,
    /// The figures; the rows of a scenario are one for each world.
    pub figures: Figures,
    /// The scenarios, by their numbers, best first; those on the same link together, in the order in which the links were given.
    pub ranked: Vec<Vec<usize>>,
}

impl<'a> Report<'a> {
    /// Takes the figures and ranks the scenarios.
    #[must_use]
    pub fn of(results: &'a Results) -> Self {
        let scenarios: Vec<ScenarioRuns<'a>> = results.scenarios().collect();
        let ranked = rank::ranked(&scenarios);
        Self { results, scenarios, figures: Figures::of(results), ranked }
    }

    /// What there is to say beside the figures, a line each.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let seeds = self.results.seeds();
        if seeds.count() > 1 {
            let fewest = match seeds.least() {
                least if least < seeds.count() => format!("{least} to "),
                _ => String::new(),
            };
            lines.push(format!(
                "Means over the {fewest}{} seeds from {} to {}; ± is the standard deviation from seed to seed.",
                seeds.count(),
                seeds.first(),
                seeds.last()
            ));
        }
        for (world, version) in self.results.worlds() {
            let Some(version) = version else { continue };
            let time =
                if world == "live" { "real time, across dualq's own link" } else { "virtual time" };
            lines.push(format!("The world {world} is Linux {version} in {time}."));
        }
        lines.extend(self.sentences());
        lines.extend(self.remarks());
        let published = self.results.published.iter();
        lines.extend(published.map(|published| format!("Published: {}", one_line(published))));
        lines
    }

    /// Whether the first of a link's scenarios is the best of several.
    pub(crate) fn has_best(&self, link: &[usize]) -> bool {
        link.len() > 1 && rank::tie(&self.scenarios, link).is_none()
    }

    /// A link, by all that sets it apart from the report's others.
    pub(crate) fn link_in_words(&self, scenario: &Scenario) -> String {
        let link = &scenario.link;
        let mut words = format!(
            "{} Mbit/s and {:.2} ms",
            link.rate.as_bits_per_second() as f64 / 1e6,
            base_ms(scenario)
        );
        let varies = |same: &dyn Fn(&Link) -> bool| {
            self.scenarios.iter().any(|runs| !same(&runs.scenario().link))
        };
        if varies(&|other| other.loss == link.loss) {
            words.push_str(&format!(", loss {}", link.loss));
        }
        if varies(&|other| other.mtu == link.mtu) {
            words.push_str(&format!(", an MTU of {}", link.mtu));
        }
        if varies(&|other| other.tunnel == link.tunnel) {
            words.push_str(if link.tunnel { ", in a tunnel" } else { ", without a tunnel" });
        }
        words
    }

    /// The best and the worst of each link, unless the figures alone are easier to read.
    fn sentences(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let sentence = |number: usize| rank::sentence(&self.scenarios[number]);
        if self.ranked.len() <= MOST_SENTENCES {
            for link in &self.ranked {
                match (link.as_slice(), rank::tie(&self.scenarios, link)) {
                    (_, Some(tie)) => {
                        let scenario = self.scenarios[link[0]].scenario();
                        let of = match self.ranked.len() {
                            1 => "Of".to_owned(),
                            _ => format!("Over {}: of", self.link_in_words(scenario)),
                        };
                        lines.push(format!("{of} {} {tie}.", link.len()));
                    }
                    ([first, .., last], None) => {
                        let others = rank::as_well(&self.scenarios, link);
                        lines.push(format!("Best{others}: {}", sentence(*first)));
                        lines.push(format!("Worst: {}", sentence(*last)));
                    }
                    _ => lines.push(sentence(link[0])),
                }
            }
        }
        if self.ranked.iter().any(|link| link.len() > 1) {
            let within = if self.ranked.len() > 1 { " on each link" } else { "" };
            lines.push(format!(
                "(Ranked{within} by power: throughput over the probe's round-trip time.)"
            ));
        }
        lines
    }

    /// What figures do not tell: transfers that did not end, flows that stood still, limits of the machine.
    fn remarks(&self) -> Vec<String> {
        let ranked = self.ranked.iter().flatten().map(|number| &self.scenarios[*number]);
        let said: Vec<(String, Vec<String>)> =
            ranked.map(|runs| (rank::label(runs), remarks::of(runs))).collect();
        // What is so everywhere is said once.
        let everywhere = said.len() > 1 && said.iter().all(|(_, remarks)| *remarks == said[0].1);
        let mut lines = Vec::new();
        for (label, remarks) in if everywhere { &said[..1] } else { &said } {
            for remark in remarks {
                let whom = if everywhere { "In all of them" } else { label };
                lines.push(format!("{whom}: {remark}"));
            }
        }
        lines
    }
}
