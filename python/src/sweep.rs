//! What `dualq.sweep` hands out and takes back: points of a plan, and the folder that keeps their runs.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use dualq_scenario::Scenario;
use dualq_sweep::{Axis, Folder, Point, Sampling, Space};
use dualq_worlds::{Job, Model, Run, Seeds, Settings, WorldError};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rayon::ThreadPoolBuilder;

use crate::interrupt::{Stop, beside};
use crate::results::Results;
use crate::run::{Source, failure};
use crate::{PROGRAM, RunError, ScenarioError, control};

/// Scenarios and seeds, whose runs a folder keeps.
#[pyclass(frozen, module = "dualq")]
pub(crate) struct Plan {
    plan: dualq_sweep::Plan,
    folder: Folder,
    seeds: u64,
}

fn wrong(error: impl std::fmt::Display) -> PyErr {
    ScenarioError::new_err(error.to_string())
}

fn failed(error: impl std::fmt::Display) -> PyErr {
    RunError::new_err(error.to_string())
}

impl Plan {
    fn point(&self, number: u64) -> PyResult<Point<'_>> {
        let scenario = usize::try_from(number / self.seeds).ok();
        let scenario = scenario.filter(|number| *number < self.plan.scenarios().len());
        let first = self.plan.record().seeds.first;
        let point = |scenario| self.plan.point(scenario, 0, first + number % self.seeds);
        scenario.map(point).ok_or_else(|| PyValueError::new_err("the plan has no such point"))
    }
}

#[pymethods]
impl Plan {
    #[new]
    fn new(
        source: Source,
        vary: Vec<String>,
        zip: Vec<String>,
        sample: Option<(usize, u64, bool)>,
        seeds: (u64, u64),
        distributions: bool,
        folder: PathBuf,
    ) -> PyResult<Self> {
        let axes = |words: Vec<String>| -> PyResult<Vec<Axis>> {
            words.iter().map(|word| Axis::parse(word).map_err(wrong)).collect()
        };
        let space = Space {
            folder: source.folder,
            vary: axes(vary)?,
            zip: axes(zip)?,
            sampling: match sample {
                None => Sampling::All,
                Some((count, seed, true)) => Sampling::Latin { count, seed },
                Some((count, seed, false)) => Sampling::Random { count, seed },
            },
            distributions,
            ..Space::of(&source.text)
        };
        let count = seeds.1;
        let seeds = Seeds::new(seeds.0, seeds.1)
            .map_err(|error| ScenarioError::new_err(format!("seeds: {error}")))?;
        let plan = dualq_sweep::Plan::new(&space, &[&Model], seeds).map_err(wrong)?;
        let plan = plan.made_by(PROGRAM.to_owned(), "dualq.sweep".to_owned());
        let folder = Folder::open(folder).map_err(failed)?;
        folder.keep(plan.record()).map_err(failed)?;
        Ok(Self { plan, folder, seeds: count })
    }

    fn __len__(&self) -> usize {
        self.plan.points().count()
    }

    /// The numbers of the points whose runs are not there yet.
    fn missing(&self, py: Python<'_>) -> Vec<usize> {
        let missing = |point: &Point<'_>| !self.folder.has(&point.key);
        py.detach(|| {
            let points = self.plan.points().enumerate();
            points.filter(|(_, point)| missing(point)).map(|(number, _)| number).collect()
        })
    }

    /// What is played for a point: the scenario as JSON, and the seed.
    fn job(&self, number: u64) -> PyResult<(String, u64)> {
        let point = self.point(number)?;
        Ok((serde_json::to_string(point.scenario).map_err(failed)?, point.seed))
    }

    /// Keeps the run of a point, and says in which file under the folder.
    fn put(&self, number: u64, run: &str) -> PyResult<String> {
        let point = self.point(number)?;
        let run: Run = serde_json::from_str(run).map_err(failed)?;
        if run.scenario != *point.scenario || run.seed != point.seed {
            return Err(failed("a worker sent back the run of something else"));
        }
        self.folder.put(&point.key, &run).map_err(failed)
    }

    /// What came of it so far.
    fn results(&self, py: Python<'_>) -> PyResult<Results> {
        let gathered = py.detach(|| self.folder.results(self.plan.record()));
        gathered.map(|gathered| Results::of(gathered.results)).map_err(failed)
    }
}

/// Plays scenarios in the model: what a worker does. Gives each run as documents have it.
#[pyfunction]
pub(crate) fn play(
    py: Python<'_>,
    jobs: Vec<(String, u64)>,
    threads: usize,
) -> PyResult<Vec<String>> {
    let read = |(scenario, seed): (String, u64)| -> PyResult<(Scenario, u64)> {
        Ok((serde_json::from_str(&scenario).map_err(wrong)?, seed))
    };
    let scenarios: Vec<(Scenario, u64)> = jobs.into_iter().map(read).collect::<PyResult<_>>()?;
    let stop = Arc::new(Stop::default());
    let work = || {
        let raised = Arc::clone(&stop);
        let pool = ThreadPoolBuilder::new().start_handler(move |_| control::raise_to(&raised));
        let pool = pool.num_threads(threads).build();
        let pool = pool.map_err(|error| WorldError::Other(format!("no threads: {error}")))?;
        let job =
            scenarios.iter().map(|(scenario, seed)| Job { scenario, world: &Model, seed: *seed });
        let jobs: Vec<Job<'_>> = job.collect();
        let goes_on =
            |_| if stop.is_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        pool.install(|| dualq_worlds::play(&jobs, &goes_on))
    };
    let outcomes: Result<Vec<_>, WorldError> = beside(py, &stop, |_| Ok(()), work)?;
    let runs =
        outcomes.map_err(failure)?.into_iter().zip(scenarios).map(|(outcome, (scenario, seed))| {
            let (settings, world, kernel) = (Settings::default(), "model".to_owned(), None);
            let run = Run { settings, world, seed, scenario, outcome, kernel };
            serde_json::to_string(&run).map_err(failed)
        });
    runs.collect()
}
