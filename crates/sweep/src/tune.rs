//! Values of parameters that are best for an aim, found with few runs.
//!
//! A Latin hypercube looks at all of the space, then COBYLA (M. J. D. Powell, 1994) goes on from the best of it: a search by linear models of
//! the figures, without derivatives, that knows limits for what they are. Every candidate has the same seeds (common random numbers), so that
//! what differs between two is less by what both owe to chance.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::ControlFlow;

use cobyla::{RhoBeg, StopTols, minimize};
use dualq_report::Samples;
use dualq_scenario::Scenario;
use dualq_worlds::{Run, Seeds, Settings, World, WorldError};
use fastrand::Rng;

use crate::aim::{Aim, AimError, Score};
use crate::axis::{AxisError, Values};
use crate::folder::{Folder, FolderError};
use crate::plan::{Plan, PlanError};
use crate::play::{PlayError, Shard, Step, Work};
use crate::space::{Sampling, Space, latin};

/// The first steps from the best of the samples, as a share of each range.
const FIRST_STEP: f64 = 0.2;

/// Steps that are shorter end the search.
const LAST_STEP: f64 = 0.01;

/// The optimizer looks at places no more often than that for each try.
const LOOKS_PER_TRY: usize = 10;

/// What a place costs that is not tried any more.
const WALL: f64 = 1e9;

/// What is searched.
pub struct Search<'a> {
    /// The scenario, and the ranges in it.
    pub space: &'a Space,
    /// Where candidates run.
    pub world: &'a dyn World,
    /// With which seeds, each of them.
    pub seeds: Seeds,
    /// What is best.
    pub aim: &'a str,
    /// No more candidates than that.
    pub most: usize,
    /// Where their runs are kept.
    pub folder: &'a Folder,
}

/// A candidate that was tried.
#[derive(Clone, Debug)]
pub struct Try {
    /// Its values.
    pub settings: Settings,
    /// Its scenario.
    pub scenario: Scenario,
    /// Its runs, by seed.
    pub runs: Vec<Run>,
    /// How good it is.
    pub score: Score,
}

/// What a search found.
#[derive(Debug)]
pub struct Tuned {
    /// What was searched for.
    pub aim: Aim,
    /// All that was tried, in that order.
    pub tries: Vec<Try>,
    /// Which of these is the best.
    pub best: usize,
    /// Whether it ended before there were as many tries as allowed.
    pub settled: bool,
}

/// Why nothing was found.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// There is nothing to search in.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The aim makes no sense.
    #[error(transparent)]
    Aim(#[from] AimError),
    /// A candidate could not be run.
    #[error(transparent)]
    Play(#[from] PlayError),
    /// The scenario file is of several scenarios.
    #[error("{0} scenarios; what is tuned is one: give one value for each list")]
    Several(usize),
}

impl From<FolderError> for TuneError {
    fn from(error: FolderError) -> Self {
        Self::Play(error.into())
    }
}

/// A search under way.
struct Going<'a> {
    search: &'a Search<'a>,
    aim: Aim,
    tries: Vec<Try>,
    /// The tries by their values: different places may be the same in words.
    known: HashMap<Vec<(String, String)>, usize>,
    watch: &'a (dyn Fn(Step) -> ControlFlow<()> + Sync),
    told: &'a mut dyn FnMut(&Aim, usize, &Try),
    /// Why it ended before its time.
    ended: Option<TuneError>,
    /// Whether there was to be another try, and there are as many as allowed.
    used_up: bool,
}

impl Search<'_> {
    /// Searches. Each try is told, with its number from 0.
    ///
    /// # Errors
    /// If there is nothing to search in, a candidate cannot be run, or whoever watches asks to stop.
    pub fn run(
        &self,
        watch: &(dyn Fn(Step) -> ControlFlow<()> + Sync),
        told: &mut dyn FnMut(&Aim, usize, &Try),
    ) -> Result<Tuned, TuneError> {
        let dimensions = self.check()?;
        // As many looks at the whole as a linear model of it has numbers, twice.
        let looks = (2 * (dimensions + 1)).max(self.most / 3).min(self.most);
        let mut rng = Rng::with_seed(self.seeds.first());
        let columns: Vec<Vec<f64>> =
            (0..dimensions).map(|_| latin(looks, false, &mut rng)).collect();
        let places: Vec<Vec<f64>> =
            (0..looks).map(|row| columns.iter().map(|column| column[row]).collect()).collect();
        let plan = self.plan(places.clone())?;
        let aim = Aim::parse(self.aim, &plan.scenarios().iter().collect::<Vec<_>>())?;
        let (tries, known) = (Vec::new(), HashMap::new());
        let (ended, used_up) = (None, false);
        let mut going = Going { search: self, aim, tries, known, watch, told, ended, used_up };
        let first = going.all(&plan)?;
        let from = (0..looks).min_by(|one, other| {
            going.tries[first[*one]].score.compare(&going.tries[first[*other]].score)
        });
        let from = places[from.unwrap_or(0)].clone();
        let settled = going.descend(&from)?;
        let scores: Vec<Score> = going.tries.iter().map(|one| one.score).collect();
        let best = (0..scores.len()).min_by(|one, other| scores[*one].compare(&scores[*other]));
        Ok(Tuned { aim: going.aim, tries: going.tries, best: best.unwrap_or(0), settled })
    }

    /// How many ranges there are.
    fn check(&self) -> Result<usize, TuneError> {
        let wrong = |what: String| TuneError::Plan(PlanError::Space(AxisError(what).into()));
        let mut ranges = 0;
        for axis in &self.space.vary {
            for choice in axis.choices() {
                match &choice.values {
                    Values::Range(_) => ranges += 1,
                    Values::List(values) if values.len() > 1 => {
                        let key = axis.key();
                        let what = format!(
                            "{key}: a search is in ranges LEAST..MOST; values of a list are compared by dualq sweep"
                        );
                        return Err(wrong(what));
                    }
                    Values::List(_) => {}
                }
            }
        }
        match ranges {
            0 => Err(wrong(
                "needs a range LEAST..MOST to search in, such as link.rate=10mbit..1gbit"
                    .to_owned(),
            )),
            _ => Ok(self.space.dimensions()),
        }
    }

    fn plan(&self, places: Vec<Vec<f64>>) -> Result<Plan, TuneError> {
        let candidates = places.len();
        let space = Space { sampling: Sampling::At(places), ..self.space.clone() };
        let plan = Plan::new(&space, &[self.world], self.seeds)?;
        match plan.scenarios().len() / candidates.max(1) {
            1 => Ok(plan),
            several => Err(TuneError::Several(several)),
        }
    }
}

impl Going<'_> {
    /// Tries all candidates of a plan, and says which tries they are.
    fn all(&mut self, plan: &Plan) -> Result<Vec<usize>, TuneError> {
        let Search { world, folder, .. } = self.search;
        let (worlds, shard) = ([*world], Shard::default());
        Work { plan, worlds: &worlds, folder, shard, more: None }.play(self.watch)?;
        let mut found = Vec::new();
        for (number, scenario) in plan.scenarios().iter().enumerate() {
            let settings = plan.record().scenarios[number].0.clone();
            if let Some(at) = self.known.get(&settings.0) {
                found.push(*at);
                continue;
            }
            let mut runs = Vec::new();
            for seed in self.search.seeds.all() {
                runs.extend(folder.get(plan.record(), &plan.point(number, 0, seed).key)?);
            }
            let score = self.aim.score(&runs);
            let scenario = scenario.clone();
            self.known.insert(settings.0.clone(), self.tries.len());
            found.push(self.tries.len());
            let tried = Try { settings, scenario, runs, score };
            (self.told)(&self.aim, self.tries.len(), &tried);
            self.tries.push(tried);
        }
        Ok(found)
    }

    /// Tries one place.
    fn at(&mut self, place: &[f64]) -> Option<usize> {
        if self.ended.is_some() {
            return None;
        }
        let place = place.iter().map(|share| share.clamp(0.0, 1.0)).collect();
        let tried = self.search.plan(vec![place]).and_then(|plan| {
            let settings = &plan.record().scenarios[0].0.0;
            if self.tries.len() >= self.search.most && !self.known.contains_key(settings) {
                self.used_up = true;
                return Ok(Vec::new());
            }
            self.all(&plan)
        });
        match tried {
            Ok(found) => found.first().copied(),
            Err(error) => {
                self.ended = Some(error);
                None
            }
        }
    }

    /// Goes on from a place to better ones, and says whether it came to an end by itself.
    fn descend(&mut self, from: &[f64]) -> Result<bool, TuneError> {
        let Some(start) = self.at(from) else {
            return self.ended.take().map_or(Ok(false), Err);
        };
        // The size of what is to be least is not to matter beside limits, which are shares of theirs.
        let size = self.tries[start].score.cost.abs().max(f64::MIN_POSITIVE);
        let limits = self.aim.limits();
        let going = RefCell::new(self);
        let tried = |place: &[f64], of: &dyn Fn(&Going<'_>, &Try) -> f64| {
            let mut going = going.borrow_mut();
            match going.at(place) {
                Some(at) => of(&going, &going.tries[at]),
                // Nobody goes there.
                None => WALL,
            }
        };
        let cost = |place: &[f64], (): &mut ()| tried(place, &|_, one| one.score.cost / size);
        let kept = (0..limits).map(|limit| {
            let tried = &tried;
            move |place: &[f64], (): &mut ()| {
                tried(place, &|going, one| going.aim.room(limit, &one.runs))
            }
        });
        let kept: Vec<_> = kept.collect();
        let bounds = vec![(0.0, 1.0); from.len()];
        let stop = StopTols { xtol_abs: vec![LAST_STEP; from.len()], ..StopTols::default() };
        // Looks at what is known already are no tries.
        let looks = LOOKS_PER_TRY * going.borrow().search.most;
        // Why it ended, the tries tell.
        let _ =
            minimize(cost, from, &bounds, &kept, (), looks, RhoBeg::All(FIRST_STEP), Some(stop));
        drop(kept);
        let going = going.into_inner();
        let settled = !going.used_up;
        going.ended.take().map_or(Ok(settled), Err)
    }
}

impl Tuned {
    /// The others that keep as many limits as the best and whose last figure may be as good: the interval of what they differ by, seed by
    /// seed, has 0 in it. None of one seed alone.
    #[must_use]
    pub fn as_good(&self) -> Vec<usize> {
        let goal = |one: &Try| -> Vec<Option<f64>> {
            one.runs.iter().map(|run| self.aim.goal().of(run)).collect()
        };
        let best = &self.tries[self.best];
        let mine = goal(best);
        let alike = |at: &usize| {
            let other = &self.tries[*at];
            let pairs = goal(other).into_iter().zip(&mine);
            let apart =
                Samples(pairs.filter_map(|(other, mine)| Some(other? - (*mine)?)).collect());
            let none = apart.mean().zip(apart.interval());
            let keeps = other.score.keeps() == best.score.keeps();
            *at != self.best && keeps && none.is_some_and(|(mean, far)| mean.abs() <= far)
        };
        (0..self.tries.len()).filter(alike).collect()
    }
}

impl TuneError {
    /// Whether it is because whoever watched asked to stop.
    #[must_use]
    pub fn is_interrupt(&self) -> bool {
        matches!(self, Self::Play(PlayError::World(WorldError::Interrupted)))
    }
}
