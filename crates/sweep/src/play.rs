//! Computing what is missing in a folder, on all cores.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dualq_report::Samples;
use dualq_worlds::{Job, Progress, Run, Settings, Watch, World, WorldError, on_all_cores, play};

use crate::aim::Until;
use crate::folder::{Folder, FolderError};
use crate::plan::{Plan, Point};

/// One of so many equal parts of a sweep, for jobs that know their number and no more: `3/16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 1.
    number: usize,
    of: usize,
}

impl Default for Shard {
    /// All of it.
    fn default() -> Self {
        Self { number: 1, of: 1 }
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let read = word.split_once('/').and_then(|(number, of)| {
            Some(Self { number: number.trim().parse().ok()?, of: of.trim().parse().ok()? })
        });
        read.filter(|shard| (1..=shard.of).contains(&shard.number))
            .ok_or_else(|| format!("{word:?}: give I/N with I from 1 to N, such as 3/16"))
    }
}

impl Shard {
    /// Whether a scenario is in it: all of a scenario's seeds and worlds are in one.
    #[must_use]
    pub fn has(&self, scenario: usize) -> bool {
        scenario % self.of == self.number - 1
    }
}

/// When there are more seeds than the plan has.
#[derive(Debug)]
pub struct More {
    /// A scenario gets more until this holds in the first world,
    pub until: Until,
    /// or it has so many.
    pub most: u64,
}

/// What is to be computed.
pub struct Work<'a> {
    /// Of which plan.
    pub plan: &'a Plan,
    /// Its worlds, in its order.
    pub worlds: &'a [&'a dyn World],
    /// Where runs go.
    pub folder: &'a Folder,
    /// Which part of it.
    pub shard: Shard,
    /// Whether seeds are added.
    pub more: Option<&'a More>,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Runs that were there before, or that another process made meanwhile.
    pub there: u64,
    /// Runs that were computed.
    pub played: u64,
    /// Scenarios whose figure is not known well enough with as many seeds as there may be.
    pub open: usize,
}

/// Why it ended before all was there.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// A run cannot be kept, or one that was cannot be read.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A world broke, or whoever watches asked to stop.
    #[error(transparent)]
    World(#[from] WorldError),
}

fn goes_on(stopped: bool) -> Result<(), PlayError> {
    if stopped { Err(WorldError::Interrupted.into()) } else { Ok(()) }
}

/// One run by its numbers.
type Number = (usize, usize, u64);

/// How far a sweep is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// So many runs are to be computed beside those that were told before, of so much of scenarios' time.
    More(u64, Duration),
    /// As of any list of runs.
    Played(Progress),
}

impl Work<'_> {
    /// Computes what is missing: on all cores, but for worlds that are to be alone. Each run is in the folder once it is over, so that
    /// nothing is kept in memory. The order is drawn anew by each process, so that those that share a folder seldom meet at a run.
    ///
    /// # Errors
    /// The first error that is met. All runs that were over by then are in the folder.
    pub fn play(
        &self,
        watch: &(dyn Fn(Step) -> ControlFlow<()> + Sync),
    ) -> Result<Done, PlayError> {
        let seeds = self.plan.record().seeds;
        let all = self.plan.scenarios().len();
        let scenarios: Vec<usize> = (0..all).filter(|number| self.shard.has(*number)).collect();
        let mut done = Done::default();
        let mut round: Vec<(usize, u64)> = scenarios.iter().map(|number| (*number, 0)).collect();
        let mut samples: HashMap<usize, Samples> = HashMap::new();
        loop {
            // As many again with each round.
            let added = |(number, from): &(usize, u64)| {
                let most = self.more.map_or(seeds.count, |more| more.most.max(seeds.count));
                let to = from.saturating_add(seeds.count).min(most);
                (*number, (*from..to).collect::<Vec<u64>>())
            };
            let wanted: Vec<(usize, Vec<u64>)> = round.iter().map(added).collect();
            let runs = wanted.iter().flat_map(|(number, more)| {
                more.iter().flat_map(move |more| {
                    let seed = seeds.first.saturating_add(*more);
                    (0..self.worlds.len()).map(move |place| (*number, place, seed))
                })
            });
            let runs: Vec<Number> = runs.collect();
            self.round(&runs, watch, &mut done)?;
            let Some(More { until, most }) = self.more else { return Ok(done) };
            let mut next = Vec::new();
            for (number, more) in wanted {
                let known = samples.entry(number).or_default();
                for more in &more {
                    let point = self.plan.point(number, 0, seeds.first.saturating_add(*more));
                    let run = self.folder.get(self.plan.record(), &point.key)?;
                    known.0.extend(run.and_then(|run| until.of(&run)));
                }
                let last = more.last().map_or(*most, |last| last + 1);
                if until.holds(known) {
                    samples.remove(&number);
                } else if last < *most {
                    next.push((number, last));
                } else {
                    done.open += 1;
                }
            }
            if next.is_empty() {
                return Ok(done);
            }
            round = next;
        }
    }

    /// Computes those of these runs that are missing.
    fn round(
        &self,
        runs: &[Number],
        watch: &(dyn Fn(Step) -> ControlFlow<()> + Sync),
        done: &mut Done,
    ) -> Result<(), PlayError> {
        let point = |(number, place, seed): Number| self.plan.point(number, place, seed);
        let missing = runs.iter().copied().filter(|number| !self.folder.has(&point(*number).key));
        let mut missing: Vec<Number> = missing.collect();
        done.there += (runs.len() - missing.len()) as u64;
        fastrand::shuffle(&mut missing);
        let time = missing.iter().map(|number| point(*number).scenario.duration);
        let time = time.fold(Duration::ZERO, Duration::saturating_add);
        goes_on(watch(Step::More(missing.len() as u64, time)).is_break())?;
        let (alone, together): (Vec<Number>, Vec<Number>) =
            missing.into_iter().partition(|(_, place, _)| self.worlds[*place].alone());
        let (played, there) = (AtomicU64::new(0), AtomicU64::new(0));
        let told = |progress| watch(Step::Played(progress));
        let one = |number: Number| -> Result<(), PlayError> {
            let point = point(number);
            // Somebody else may have made it since.
            if self.folder.has(&point.key) {
                there.fetch_add(1, Ordering::Relaxed);
                let time = told(Progress::Time(point.scenario.duration));
                return goes_on(time.is_break() || told(Progress::Run).is_break());
            }
            // A run is over once it is in the folder: who counts and then asks to stop has counted what is kept.
            let before_kept = |progress| match progress {
                Progress::Run => ControlFlow::Continue(()),
                other => told(other),
            };
            let run = self.run(&point, number.1, &before_kept)?;
            self.folder.put(&point.key, &run)?;
            played.fetch_add(1, Ordering::Relaxed);
            goes_on(told(Progress::Run).is_break())
        };
        let ended = on_all_cores(together, one);
        let ended = ended.and_then(|_| alone.into_iter().try_for_each(one));
        done.played += played.into_inner();
        done.there += there.into_inner();
        ended
    }

    fn run(&self, point: &Point<'_>, place: usize, watch: &Watch<'_>) -> Result<Run, PlayError> {
        let world = self.worlds[place];
        let job = Job { scenario: point.scenario, world, seed: point.seed };
        let outcome = play(&[job], watch)?.pop().expect("one job has one outcome");
        Ok(Run {
            settings: Settings::default(),
            world: point.place.world.clone(),
            seed: point.seed,
            scenario: point.scenario.clone(),
            outcome,
            kernel: point.place.kernel.clone(),
        })
    }
}
