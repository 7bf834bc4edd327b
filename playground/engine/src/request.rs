//! What may be asked of the engine.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::time::Duration;

use dualq_report::{Report, html, json};
use dualq_scenario::{Overrides, Scenario, Sweep, SweepError, Variant};
use dualq_worlds::{Model, Origin, Progress, Results, Seeds, World as _, WorldError};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::packed;
use crate::stepwise::{Stepwise, Wanted};

/// The engine by name and version, as documents name what made them.
const PROGRAM: &str = concat!("dualq ", env!("CARGO_PKG_VERSION"));

/// What may be asked. Keys that are not known are refused.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// The version, and the words for the numbers in packets' records.
    About {},
    /// What a scenario comes to, without running it.
    Check(Input),
    /// Runs it: the document of `dualq run --json`, byte for byte.
    Run(Input),
    /// Runs it for people to look at, as `dualq run --report` does: the data of that page.
    Page(Input),
    /// Begins a simulation of one scenario, to be looked at between its steps.
    Begin {
        /// Which.
        scenario: Input,
        /// What is to be told of it.
        #[serde(default)]
        observe: Wanted,
    },
    /// Lets all happen that happens until then.
    Advance {
        /// In seconds from the start.
        until_s: f64,
    },
    /// What came of it so far: the outcome of the same scenario with a duration that is over now, or null within its warm-up.
    SoFar {},
    /// Runs the simulation to its end, and gives its outcome.
    Finish {},
}

/// A scenario file with all that the command line has beside it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The text of the file.
    scenario: String,
    /// Files that it names, by their names there.
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default = "one")]
    seed: u64,
    #[serde(default = "one")]
    seeds: u64,
    #[serde(default)]
    qdisc: Vec<String>,
    #[serde(default)]
    cc: Vec<String>,
    #[serde(default)]
    rate: Vec<String>,
    #[serde(default)]
    rtt: Vec<String>,
    duration: Option<String>,
    interval: Option<String>,
    /// Whether the document has distributions and the intervals that pictures need.
    #[serde(default)]
    distributions: bool,
    /// What may have more packets than this is refused.
    most_packets: Option<u64>,
}

fn one() -> u64 {
    1
}

/// A reply.
pub(crate) struct Answer {
    pub(crate) text: String,
    /// Packets that were seen, packed.
    pub(crate) events: Vec<u8>,
}

/// Why there is none.
pub(crate) struct Refusal {
    pub(crate) status: Status,
    /// In one line.
    pub(crate) message: String,
}

/// Whose fault it is, as a process's exit status says it.
#[derive(Clone, Copy)]
pub(crate) enum Status {
    /// The run failed.
    Failed = 1,
    /// What was asked makes no sense.
    Usage = 2,
    /// Somebody asked to stop.
    Interrupted = 3,
}

impl Refusal {
    fn usage(message: impl Into<String>) -> Self {
        Self { status: Status::Usage, message: message.into() }
    }
}

impl From<SweepError> for Refusal {
    fn from(error: SweepError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<WorldError> for Refusal {
    fn from(error: WorldError) -> Self {
        let status = match error {
            WorldError::Refused(_) => Status::Usage,
            WorldError::Interrupted => Status::Interrupted,
            _ => Status::Failed,
        };
        Self { status, message: error.to_string() }
    }
}

impl Request {
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Refusal> {
        serde_json::from_slice(bytes)
            .map_err(|error| Refusal::usage(format!("the request is not understood: {error}")))
    }

    pub(crate) fn answer(self, simulation: &mut Option<Stepwise>) -> Result<Answer, Refusal> {
        let mut events = Vec::new();
        let under_way = "no simulation is under way";
        let text = match self {
            Self::About {} => {
                json!({ "version": env!("CARGO_PKG_VERSION"), "words": packed::words() })
                    .to_string()
            }
            Self::Check(input) => input.check()?,
            Self::Run(input) => json::write(&Report::of(&input.play()?)),
            Self::Page(input) => {
                let input = Input { distributions: true, ..input };
                let mut results = input.play()?;
                results.origin = Some(Origin {
                    program: PROGRAM.to_owned(),
                    command: String::new(),
                    plan: input.scenario,
                    files: input.files,
                });
                html::data(&[Report::of(&results)], PROGRAM)
            }
            Self::Begin { scenario, observe } => {
                *simulation = None;
                let begun = Stepwise::begin(scenario.single()?, scenario.seed, observe)?;
                simulation.insert(begun).state()
            }
            Self::Advance { until_s } => {
                let simulation = simulation.as_mut().ok_or_else(|| Refusal::usage(under_way))?;
                if !(until_s.is_finite() && until_s >= 0.0) {
                    let message = format!("until_s: {until_s} is no time in seconds");
                    return Err(Refusal::usage(message));
                }
                simulation.advance(Duration::try_from_secs_f64(until_s).unwrap_or(Duration::MAX));
                events = simulation.take_packets();
                simulation.state()
            }
            Self::SoFar {} => {
                let simulation = simulation.as_mut().ok_or_else(|| Refusal::usage(under_way))?;
                text(&simulation.so_far())
            }
            Self::Finish {} => {
                let simulation = simulation.take().ok_or_else(|| Refusal::usage(under_way))?;
                let (outcome, packets) = simulation.finish();
                events = packets;
                text(&outcome)
            }
        };
        Ok(Answer { text, events })
    }
}

/// JSON of what has nothing in it that JSON cannot say.
pub(crate) fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("memory takes all, and all keys are strings")
}

/// What a scenario file comes to.
#[derive(Serialize)]
struct Checked {
    name: String,
    about: String,
    runs: usize,
    /// Simulated seconds of all runs.
    seconds: f64,
    /// So many packets at most cross their bottlenecks.
    packets: f64,
    notes: Vec<String>,
    scenarios: Vec<Single>,
}

#[derive(Serialize)]
struct Single {
    settings: Vec<(String, String)>,
    scenario: Scenario,
}

impl Input {
    fn sweep(&self) -> Result<Sweep, Refusal> {
        let files = |name: &str| {
            self.files.get(name).cloned().ok_or_else(|| {
                io::Error::new(io::ErrorKind::NotFound, "there is no such file beside the scenario")
            })
        };
        let overrides = Overrides {
            qdisc: self.qdisc.clone(),
            cc: self.cc.clone(),
            rate: self.rate.clone(),
            rtt: self.rtt.clone(),
            duration: self.duration.clone(),
            interval: self.interval.clone(),
            picture: self.distributions,
            set: Vec::new(),
        };
        let sweep = Sweep::parse_beside(&files, &self.scenario, &overrides)?;
        if let Some(most) = self.most_packets {
            let packets = self.packets(&sweep.variants());
            if packets > most as f64 {
                return Err(Refusal::usage(format!(
                    "it has up to {:.0} million packets, and here at most {:.1} million are simulated: save it and use `dualq run FILE`, or make it shorter or slower",
                    packets / 1e6,
                    most as f64 / 1e6
                )));
            }
        }
        Ok(sweep)
    }

    /// How many full packets the bottlenecks of all runs let pass at most.
    fn packets(&self, variants: &[Variant]) -> f64 {
        let of = |Variant { scenario, .. }: &Variant| {
            let up = scenario.link.up.as_ref().and_then(|up| up.rate);
            let bits = [Some(scenario.link.highest_rate()), up].into_iter().flatten();
            let bits: f64 = bits.map(|rate| rate.as_bits_per_second() as f64).sum();
            bits * scenario.duration.as_secs_f64() / f64::from(scenario.link.mtu * 8)
        };
        variants.iter().map(of).sum::<f64>() * self.seeds as f64
    }

    fn check(&self) -> Result<String, Refusal> {
        let sweep = self.sweep()?;
        let variants = sweep.variants();
        let refused = variants.iter().find_map(|variant| Model.refuses(&variant.scenario));
        if let Some(reason) = refused {
            return Err(Refusal::usage(reason));
        }
        let seconds: f64 = variants.iter().map(|one| one.scenario.duration.as_secs_f64()).sum();
        Ok(text(&Checked {
            packets: self.packets(&variants),
            runs: variants.len() * self.seeds as usize,
            seconds: seconds * self.seeds as f64,
            notes: dualq_scenario::notes(&self.scenario),
            name: sweep.name.clone(),
            about: sweep.about,
            scenarios: variants
                .into_iter()
                .map(|Variant { settings, scenario }| Single { settings, scenario })
                .collect(),
        }))
    }

    fn play(&self) -> Result<Results, Refusal> {
        let sweep = self.sweep()?;
        let seeds =
            Seeds::new(self.seed, self.seeds).map_err(|error| Refusal::usage(error.to_string()))?;
        let each = sweep.variants().iter().map(|one| one.scenario.duration).sum::<Duration>();
        let total_s = each.as_secs_f64() * self.seeds as f64;
        // A lock because worlds may play on several threads; here there is one.
        let passed = Mutex::new(Duration::ZERO);
        let watch = |progress| {
            let mut passed = passed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if let Progress::Time(more) = progress {
                *passed += more;
            }
            crate::tell(passed.as_secs_f64(), total_s)
        };
        if watch(Progress::Time(Duration::ZERO)) == ControlFlow::Break(()) {
            return Err(WorldError::Interrupted.into());
        }
        Ok(Results::play(&sweep, &[&Model], seeds, &watch)?)
    }

    /// The one scenario that it is.
    fn single(&self) -> Result<Scenario, Refusal> {
        let mut variants = self.sweep()?.variants();
        match (variants.pop(), variants.len()) {
            (Some(variant), 0) => Ok(variant.scenario),
            (_, more) => Err(Refusal::usage(format!(
                "these are {} scenarios, and one at a time is simulated step by step: give one value of each list",
                more + 1
            ))),
        }
    }
}
