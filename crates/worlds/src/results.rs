//! What came of a sweep in some worlds: the document of `dualq run --json`, but for its summary.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use dualq_scenario::{Outcome, Scenario, Sweep};
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Job, NotSoMany, Watch, World, WorldError, play, whole};

/// What came of a sweep: each of its scenarios in each world with each seed.
///
/// As a document it is an object with the version of its form and `"command": "run"`. Read back, it is what it was; keys that it
/// does not know are left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Document")]
pub struct Results {
    version: Version,
    command: Command,
    /// The sweep's name.
    pub name: String,
    /// What it shows, in a sentence.
    pub about: String,
    /// What was published about it, and where.
    pub published: Vec<String>,
    /// What made it, if that is to be kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    seeds: Seeds,
    runs: Vec<Run>,
    /// How many worlds there are: the runs of a scenario are those of the first world by seed, then those of the next.
    #[serde(skip)]
    worlds: usize,
    /// How many seeds each scenario has in each world.
    #[serde(skip)]
    counts: Vec<usize>,
}

/// What made a document, so that it can be made again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The program and its version.
    pub program: String,
    /// The command as its user typed it.
    pub command: String,
    /// The text of the sweep; empty if there was none.
    pub plan: String,
    /// The text of each file that it names, by its name there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
}

/// The seeds of each scenario in each world: one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Seeds {
    first: u64,
    count: u64,
    /// Where scenarios differ in how many they have: the fewest.
    #[serde(skip_serializing_if = "Option::is_none")]
    least: Option<u64>,
}

impl Seeds {
    /// So many, from the first on.
    ///
    /// # Errors
    /// If it is none, or there are not so many.
    pub const fn new(first: u64, count: u64) -> Result<Self, NotSoMany> {
        match count.checked_sub(1) {
            Some(more) if first.checked_add(more).is_some() => {
                Ok(Self { first, count, least: None })
            }
            _ => Err(NotSoMany { first, count }),
        }
    }

    /// The first.
    #[must_use]
    pub const fn first(self) -> u64 {
        self.first
    }

    /// The last.
    #[must_use]
    pub const fn last(self) -> u64 {
        self.first.saturating_add(self.count.saturating_sub(1))
    }

    /// How many; where scenarios differ in that, the most.
    #[must_use]
    pub const fn count(self) -> u64 {
        self.count
    }

    /// The fewest that a scenario has.
    #[must_use]
    pub fn least(self) -> u64 {
        self.least.unwrap_or(self.count)
    }

    /// All of them.
    #[must_use]
    pub const fn all(self) -> RangeInclusive<u64> {
        self.first..=self.last()
    }
}

/// One run, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// What sets its scenario apart from the sweep's others.
    pub settings: Settings,
    /// The world's name.
    pub world: String,
    /// What all that was random followed from.
    pub seed: u64,
    /// The scenario.
    pub scenario: Scenario,
    /// What came of it.
    pub outcome: Outcome,
    /// The version of the world's Linux kernel, if it has one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub kernel: Option<String>,
}

/// `(what, value)` of each value that was a list in the sweep, in the sweep's order: `("qdisc", "fq_codel")`. In documents an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings(pub Vec<(String, String)>);

/// The runs of one scenario.
#[derive(Clone, Copy, Debug)]
pub struct ScenarioRuns<'a> {
    runs: &'a [Run],
    seeds: usize,
}

impl<'a> ScenarioRuns<'a> {
    /// What sets it apart from others.
    #[must_use]
    pub fn settings(&self) -> &'a Settings {
        &self.runs[0].settings
    }

    /// The scenario.
    #[must_use]
    pub fn scenario(&self) -> &'a Scenario {
        &self.runs[0].scenario
    }

    /// All runs, world by world.
    #[must_use]
    pub const fn runs(&self) -> &'a [Run] {
        self.runs
    }

    /// The runs in each world, by seed.
    pub fn worlds(&self) -> impl ExactSizeIterator<Item = &'a [Run]> + use<'a> {
        self.runs.chunks(self.seeds)
    }

    /// The runs in the world that was named first, by which scenarios are ranked.
    #[must_use]
    pub fn first_world(&self) -> &'a [Run] {
        &self.runs[..self.seeds]
    }
}

impl Results {
    /// Plays every scenario of a sweep, in every world with every seed; see [`play`].
    ///
    /// # Errors
    /// If a world refuses a scenario, before anything runs; and as of `play`.
    pub fn play(
        sweep: &Sweep,
        worlds: &[&dyn World],
        seeds: Seeds,
        watch: &Watch<'_>,
    ) -> Result<Self, WorldError> {
        let variants = sweep.variants();
        for variant in &variants {
            if let Some(reason) = worlds.iter().find_map(|world| world.refuses(&variant.scenario)) {
                return Err(WorldError::Refused(reason));
            }
        }
        let mut jobs = Vec::new();
        for variant in &variants {
            for world in worlds {
                let scenario = &variant.scenario;
                jobs.extend(seeds.all().map(|seed| Job { scenario, world: *world, seed }));
            }
        }
        let counts = vec![usize::try_from(seeds.count).unwrap_or(usize::MAX); variants.len()];
        let outcomes = play(&jobs, watch)?;
        let each = jobs.len() / variants.len().max(1);
        let runs = jobs.iter().zip(outcomes).enumerate().map(|(number, (job, outcome))| Run {
            settings: Settings(variants[number / each].settings.clone()),
            world: job.world.name().to_owned(),
            seed: job.seed,
            scenario: job.scenario.clone(),
            outcome,
            kernel: job.world.kernel_version().map(str::to_owned),
        });
        Ok(Self {
            version: Version,
            command: Command::Run,
            name: sweep.name.clone(),
            about: sweep.about.clone(),
            published: sweep.published.clone(),
            origin: None,
            seeds,
            runs: runs.collect(),
            worlds: worlds.len(),
            counts,
        })
    }

    /// What came of a sweep, of runs that were played one by one. Scenarios may have more seeds or fewer, each from the same first one on.
    ///
    /// # Errors
    /// If there is none, or they are not all scenarios in all worlds, world by world and by seed.
    pub fn of_runs(
        name: String,
        about: String,
        published: Vec<String>,
        runs: Vec<Run>,
    ) -> Result<Self, String> {
        let Some(first) = runs.first().map(|run| run.seed) else {
            return Err("there are no runs".to_owned());
        };
        let counts: Vec<u64> = blocks(&runs, first).into_iter().map(|count| count as u64).collect();
        let most = counts.iter().copied().max().unwrap_or(0);
        let least = counts.iter().copied().min().filter(|least| *least < most);
        let (version, command, origin) = (Version, Command::Run, None);
        let seeds = Span { first, count: most, least };
        let document = Document { version, command, name, about, published, origin, seeds, runs };
        document.try_into().map_err(|fault: Fault| fault.to_string())
    }

    /// The seeds of each scenario in each world.
    #[must_use]
    pub const fn seeds(&self) -> Seeds {
        self.seeds
    }

    /// All runs: scenario by scenario in the sweep's order, in each world by world, in each by seed.
    #[must_use]
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The scenarios, each with its runs.
    pub fn scenarios(&self) -> impl ExactSizeIterator<Item = ScenarioRuns<'_>> {
        let mut rest = self.runs.as_slice();
        self.counts.iter().map(move |seeds| {
            let (runs, others) = rest.split_at(self.worlds * seeds);
            rest = others;
            ScenarioRuns { runs, seeds: *seeds }
        })
    }

    /// The names of the worlds, each with the version of its kernel if it has one.
    pub fn worlds(&self) -> impl ExactSizeIterator<Item = (&str, Option<&str>)> {
        let seeds = self.counts.first().copied().unwrap_or(1);
        let first = self.runs.chunks(seeds).take(self.worlds);
        first.map(|runs| (runs[0].world.as_str(), runs[0].kernel.as_deref()))
    }
}

/// Whether runs are of one and the same of a sweep's scenarios.
fn same(one: &Run, other: &Run) -> bool {
    one.settings == other.settings && one.scenario == other.scenario
}

/// How many runs follow each other that are of one scenario in one world, by seed from the first on.
fn blocks(runs: &[Run], first: u64) -> Vec<usize> {
    let goes_on = |one: &Run, next: &Run| {
        let follows = next.seed != first && one.seed.checked_add(1) == Some(next.seed);
        follows && one.world == next.world && one.kernel == next.kernel && same(one, next)
    };
    runs.chunk_by(goes_on).map(<[Run]>::len).collect()
}

/// The document before it is known to be in order.
#[derive(Deserialize)]
struct Document {
    version: Version,
    command: Command,
    name: String,
    about: String,
    published: Vec<String>,
    #[serde(default)]
    origin: Option<Origin>,
    seeds: Span,
    runs: Vec<Run>,
}

/// Seeds before it is known that there are so many.
#[derive(Deserialize)]
struct Span {
    first: u64,
    count: u64,
    #[serde(default)]
    least: Option<u64>,
}

/// What is wrong with a document whose values are of the right types.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("seeds: {0}")]
    Seeds(#[from] NotSoMany),
    #[error("runs: they are not all scenarios in all worlds with all seeds, in this order")]
    Incomplete,
    #[error("runs[{0}]: outcome.{1} does not fit its scenario, or its lists are not of one length")]
    Uneven(usize, &'static str),
}

impl TryFrom<Document> for Results {
    type Error = Fault;

    fn try_from(document: Document) -> Result<Self, Fault> {
        let Document { version, command, name, about, published, origin, seeds, runs } = document;
        let seeds = Seeds { least: seeds.least, ..Seeds::new(seeds.first, seeds.count)? };
        let blocks = blocks(&runs, seeds.first);
        let mut begins = 0;
        let blocks: Vec<&[Run]> = blocks
            .into_iter()
            .map(|count| {
                begins += count;
                &runs[begins - count..begins]
            })
            .collect();
        // A scenario's next world has another name: what is the same in all is a scenario that the sweep has twice.
        let worlds = blocks.first().map_or(0, |first| {
            let more =
                |block: &&&[Run]| same(&block[0], &first[0]) && block[0].world != first[0].world;
            1 + blocks[1..].iter().take_while(more).count()
        });
        let named_alike = |(one, other): (&Run, &Run)| {
            let (one, other) = (one.settings.0.iter(), other.settings.0.iter());
            one.map(|(what, _)| what).eq(other.map(|(what, _)| what))
        };
        let is_right = |(number, block): (usize, &&[Run])| {
            let first = blocks[number / worlds * worlds];
            let of = |block: &[Run]| (block[0].world.clone(), block[0].kernel.clone());
            let count = block.len() as u64;
            block[0].seed == seeds.first
                && block.len() == first.len()
                && (seeds.least()..=seeds.count).contains(&count)
                && same(&block[0], &first[0])
                && of(block) == of(blocks[number % worlds])
        };
        let whole = blocks.len().is_multiple_of(worlds.max(1));
        let alike = runs.iter().zip(runs.iter().skip(1)).all(named_alike);
        if !whole || !alike || !blocks.iter().enumerate().all(is_right) {
            return Err(Fault::Incomplete);
        }
        let counts = blocks.iter().step_by(worlds.max(1)).map(|block| block.len()).collect();
        let results =
            Self { version, command, name, about, published, origin, seeds, runs, worlds, counts };
        for (number, run) in results.runs.iter().enumerate() {
            if let Some(key) = whole::fault(run) {
                return Err(Fault::Uneven(number, key));
            }
        }
        Ok(results)
    }
}

/// The version of the document's form, of which there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
struct Version;

/// The version of the form.
const VERSION: u32 = 1;

impl From<Version> for u32 {
    fn from(_: Version) -> Self {
        VERSION
    }
}

impl TryFrom<u32> for Version {
    type Error = String;

    fn try_from(version: u32) -> Result<Self, String> {
        match version {
            VERSION => Ok(Self),
            _ => Err(format!("the document has version {version}, and this dualq reads {VERSION}")),
        }
    }
}

/// What wrote the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Command {
    Run,
}

impl Serialize for Settings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (what, value) in &self.0 {
            map.serialize_entry(what, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Settings;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object of strings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Settings, A::Error> {
                let mut settings = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    settings.push(entry);
                }
                Ok(Settings(settings))
            }
        }

        deserializer.deserialize_map(Entries)
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use serde_json::{Value, json};

    use super::*;
    use crate::{Model, Observer};

    /// The model by another name, with a kernel.
    struct Twin;

    impl World for Twin {
        fn name(&self) -> &'static str {
            "twin"
        }

        fn kernel_version(&self) -> Option<&str> {
            Some("7.3")
        }

        fn refuses(&self, scenario: &Scenario) -> Option<String> {
            Model.refuses(scenario)
        }

        fn run(
            &self,
            scenario: &Scenario,
            seed: u64,
            observer: &mut dyn Observer,
        ) -> Result<Outcome, WorldError> {
            Model.run(scenario, seed, observer)
        }
    }

    fn results(worlds: &[&dyn World], count: u64) -> Results {
        let sweep = Sweep::parse(
            "duration = '2s'\nwarmup = '0s'\n[link]\nrate = '5mbit'\nqdisc = ['pfifo', 'dualpi2']\n[[flow]]\ncc = 'bbr'",
        );
        let seeds = Seeds::new(3, count).unwrap();
        Results::play(&sweep.unwrap(), worlds, seeds, &|_| ControlFlow::Continue(())).unwrap()
    }

    #[test]
    fn a_document_reads_back_as_it_was_written() {
        for (worlds, count) in [(&[&Model as &dyn World][..], 1), (&[&Model, &Twin], 2)] {
            let results = results(worlds, count);
            let text = serde_json::to_string(&results).unwrap();
            let read: Results = serde_json::from_str(&text).unwrap();
            assert_eq!(read, results);
            assert_eq!(serde_json::to_string(&read).unwrap(), text);
            let names: Vec<_> = read.worlds().map(|(name, _)| name).collect();
            assert_eq!(names, ["model", "twin"][..worlds.len()]);
            let scenarios: Vec<_> = read.scenarios().collect();
            assert_eq!(scenarios.len(), 2);
            assert_eq!(scenarios[1].settings().0, [("qdisc".to_owned(), "dualpi2".to_owned())]);
            assert_eq!(scenarios[1].worlds().len(), worlds.len());
        }
    }

    #[test]
    fn a_document_that_is_not_in_order_is_refused() {
        let document = serde_json::to_value(results(&[&Model, &Twin], 2)).unwrap();
        let read = |change: &dyn Fn(&mut Value)| {
            let mut document = document.clone();
            change(&mut document);
            serde_json::from_value::<Results>(document).map_err(|error| error.to_string())
        };
        assert!(read(&|_| ()).is_ok());
        let incomplete =
            "runs: they are not all scenarios in all worlds with all seeds, in this order";
        assert_eq!(
            read(&|d| drop(d["runs"].as_array_mut().unwrap().pop())).unwrap_err(),
            incomplete
        );
        assert_eq!(
            read(&|d| d["runs"].as_array_mut().unwrap().swap(0, 1)).unwrap_err(),
            incomplete
        );
        assert_eq!(read(&|d| d["runs"][2]["kernel"] = json!("7.2")).unwrap_err(), incomplete);
        assert_eq!(read(&|d| d["runs"][5]["settings"] = json!({})).unwrap_err(), incomplete);
        let none = read(&|d| d["seeds"]["count"] = json!(0)).unwrap_err();
        assert_eq!(none, "seeds: 0 seeds: there are not so many from 3 on, or it is none");
        let version = read(&|d| d["version"] = json!(2)).unwrap_err();
        assert_eq!(version, "the document has version 2, and this dualq reads 1");
        assert!(read(&|d| d["command"] = json!("check")).is_err());
        let short = |d: &mut Value| {
            drop(d["runs"][1]["outcome"]["series"]["cwnd"][0].as_array_mut().unwrap().pop());
        };
        let uneven =
            "runs[1]: outcome.series does not fit its scenario, or its lists are not of one length";
        assert_eq!(read(&short).unwrap_err(), uneven);
        assert!(read(&|d| d["runs"][1]["outcome"]["probe"] = json!([])).is_ok());
    }

    #[test]
    fn seeds_do_not_run_out() {
        assert_eq!(Seeds::new(u64::MAX, 1).unwrap().all(), u64::MAX..=u64::MAX);
        assert!(Seeds::new(u64::MAX, 2).is_err());
        assert!(Seeds::new(1, 0).is_err());
    }
}
