//! What a sweep is of: scenarios, worlds and seeds, and the key of each of their runs.

use std::fmt;

use dualq_scenario::{Scenario, Variant};
use dualq_worlds::{Origin, Seeds, Settings, World, WorldError};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::space::{Space, SpaceError};

/// The version of dualq, with which runs may change.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What a run is kept by: SHA-256 of its scenario, its world, its seed and dualq's version.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key([u8; 32]);

/// SHA-256 of a scenario as JSON has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(String);

/// A world by its name, and the version of its Linux if it has one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The name.
    pub world: String,
    /// Its kernel: the version, or the name of one of own sources.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub kernel: Option<String>,
}

/// Scenarios, worlds and seeds that make sense together.
#[derive(Clone, Debug)]
pub struct Plan {
    scenarios: Vec<Scenario>,
    record: Record,
}

/// What is kept of a plan: enough to find its runs again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The version of dualq.
    pub version: String,
    /// The scenario file's name.
    pub name: String,
    /// What it shows, in a sentence.
    pub about: String,
    /// What was published about it, and where.
    pub published: Vec<String>,
    /// What made it.
    pub origin: Origin,
    /// The seeds that each scenario has at least.
    pub seeds: Span,
    /// Where they run.
    pub places: Vec<Place>,
    /// The scenarios, each by what sets it apart and its fingerprint.
    pub scenarios: Vec<(Settings, Fingerprint)>,
}

/// Seeds one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The first.
    pub first: u64,
    /// How many.
    pub count: u64,
}

/// One run that is to be.
#[derive(Clone, Copy, Debug)]
pub struct Point<'a> {
    /// The number of its scenario.
    pub number: usize,
    /// What sets the scenario apart from others.
    pub settings: &'a Settings,
    /// The scenario.
    pub scenario: &'a Scenario,
    /// Where it runs.
    pub place: &'a Place,
    /// What all that is random follows from.
    pub seed: u64,
    /// What it is kept by.
    pub key: Key,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The space has no scenarios.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// A world does not play a scenario.
    #[error(transparent)]
    World(#[from] WorldError),
}

impl Fingerprint {
    /// That of a scenario.
    #[must_use]
    pub fn of(scenario: &Scenario) -> Self {
        let text = serde_json::to_vec(scenario).unwrap_or_default();
        Self(hex(&Sha256::digest(text)))
    }
}

impl Key {
    /// The key of a run of this version of dualq.
    #[must_use]
    pub fn of(scenario: &Scenario, place: &Place, seed: u64) -> Self {
        Self::with(VERSION, &Fingerprint::of(scenario), place, seed)
    }

    fn with(version: &str, Fingerprint(scenario): &Fingerprint, place: &Place, seed: u64) -> Self {
        let Place { world, kernel } = place;
        let kernel = kernel.as_deref().unwrap_or("-");
        // A line each: none of them has an end of line.
        let text = format!("dualq {version}\n{world}\n{kernel}\n{seed}\n{scenario}\n");
        Self(Sha256::digest(text).into())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Key({self})")
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Place {
    /// Where a world runs.
    #[must_use]
    pub fn of(world: &dyn World) -> Self {
        Self { world: world.name().to_owned(), kernel: world.kernel_version().map(str::to_owned) }
    }
}

impl Plan {
    /// All scenarios of a space, in all worlds, with all seeds.
    ///
    /// # Errors
    /// If the space has no scenarios, or a world refuses one.
    pub fn new(space: &Space, worlds: &[&dyn World], seeds: Seeds) -> Result<Self, PlanError> {
        let file = space.file()?;
        let variants = space.scenarios()?;
        for Variant { scenario, .. } in &variants {
            if let Some(reason) = worlds.iter().find_map(|world| world.refuses(scenario)) {
                return Err(WorldError::Refused(reason).into());
            }
        }
        let of = |variant: &Variant| {
            (Settings(variant.settings.clone()), Fingerprint::of(&variant.scenario))
        };
        let record = Record {
            version: VERSION.to_owned(),
            name: file.name,
            about: file.about,
            published: file.published,
            origin: Origin { plan: space.source.clone(), ..Origin::default() },
            seeds: Span { first: seeds.first(), count: seeds.count() },
            places: worlds.iter().map(|world| Place::of(*world)).collect(),
            scenarios: variants.iter().map(of).collect(),
        };
        let scenarios = variants.into_iter().map(|variant| variant.scenario).collect();
        Ok(Self { scenarios, record })
    }

    /// Says what made it, for whoever reads the folder or a report of it.
    #[must_use]
    pub fn made_by(mut self, program: String, command: String) -> Self {
        (self.record.origin.program, self.record.origin.command) = (program, command);
        self
    }

    /// The scenarios.
    #[must_use]
    pub fn scenarios(&self) -> &[Scenario] {
        &self.scenarios
    }

    /// What a folder keeps of it.
    #[must_use]
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// One run: of the scenario with this number, in the world with this number.
    ///
    /// # Panics
    /// If there are not so many.
    #[must_use]
    pub fn point(&self, number: usize, place: usize, seed: u64) -> Point<'_> {
        Point {
            number,
            settings: &self.record.scenarios[number].0,
            scenario: &self.scenarios[number],
            place: &self.record.places[place],
            seed,
            key: self.record.key(number, place, seed),
        }
    }

    /// All runs: scenario by scenario, world by world, by seed.
    pub fn points(&self) -> impl Iterator<Item = Point<'_>> {
        let Span { first, count } = self.record.seeds;
        (0..self.scenarios.len()).flat_map(move |number| {
            (0..self.record.places.len()).flat_map(move |place| {
                (first..=first.saturating_add(count - 1))
                    .map(move |seed| self.point(number, place, seed))
            })
        })
    }
}

impl Record {
    /// What a run of it is kept by.
    ///
    /// # Panics
    /// If there are not so many scenarios or worlds.
    #[must_use]
    pub fn key(&self, number: usize, place: usize, seed: u64) -> Key {
        Key::with(&self.version, &self.scenarios[number].1, &self.places[place], seed)
    }

    /// Whether a run is the one that is kept by this key.
    pub(crate) fn is_of(&self, key: &Key, run: &dualq_worlds::Run) -> bool {
        let place = Place { world: run.world.clone(), kernel: run.kernel.clone() };
        let of = Fingerprint::of(&run.scenario);
        Key::with(&self.version, &of, &place, run.seed) == *key
    }
}
