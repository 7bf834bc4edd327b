//! `dualq.run` in the model: scenarios in, results out.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dualq_scenario::{Overrides, Sweep, SweepError};
use dualq_worlds::{Model, Origin, Progress, Seeds, WorldError};
use pyo3::prelude::*;
use rayon::ThreadPoolBuilder;

use crate::interrupt::{Stop, beside};
use crate::results::Results;
use crate::{PROGRAM, RunError, ScenarioError, control};

/// A scenario as Python hands it over.
#[derive(FromPyObject)]
pub(crate) struct Source {
    /// TOML.
    pub(crate) text: String,
    /// What complaints call it: its file, and a colon. If it is empty, so are its lines' numbers: nobody has seen the text.
    named: Option<String>,
    /// Where the names of other files in it start.
    pub(crate) folder: PathBuf,
}

/// What the options of `dualq run` say, by their names.
#[derive(FromPyObject, Default)]
#[pyo3(from_item_all)]
pub(crate) struct Options {
    qdisc: Vec<String>,
    cc: Vec<String>,
    rate: Vec<String>,
    rtt: Vec<String>,
    duration: Option<String>,
    interval: Option<String>,
    distributions: bool,
}

impl Source {
    /// Reads it; complaints are those of the command line.
    pub(crate) fn sweep(&self, options: &Options) -> PyResult<Sweep> {
        let Options { qdisc, cc, rate, rtt, duration, interval, distributions } = options;
        let overrides = Overrides {
            qdisc: qdisc.clone(),
            cc: cc.clone(),
            rate: rate.clone(),
            rtt: rtt.clone(),
            duration: duration.clone(),
            interval: interval.clone(),
            picture: *distributions,
            ..Overrides::default()
        };
        Sweep::parse_in(&self.folder, &self.text, &overrides).map_err(|error| {
            let SweepError { option, message, .. } = &error;
            ScenarioError::new_err(match (option, &self.named) {
                (Some(option), _) => format!("{option}: {message}"),
                (None, None) => message.clone(),
                (None, Some(named)) => format!("{named}{error}"),
            })
        })
    }
}

/// The words for why nothing came of it: the scenario is at fault, or the run.
pub(crate) fn failure(error: WorldError) -> PyErr {
    match error {
        WorldError::Refused(reason) => ScenarioError::new_err(reason),
        error => RunError::new_err(error.to_string()),
    }
}

/// Plays each scenario with all seeds in the model, on so many threads. `watch` is told the share that is done.
#[pyfunction]
pub(crate) fn run(
    py: Python<'_>,
    sources: Vec<Source>,
    options: Options,
    seeds: (u64, u64),
    threads: Option<usize>,
    watch: Option<Bound<'_, PyAny>>,
) -> PyResult<Vec<Results>> {
    let seeds = Seeds::new(seeds.0, seeds.1)
        .map_err(|error| ScenarioError::new_err(format!("seeds: {error}")))?;
    let sweeps: Vec<Sweep> =
        sources.iter().map(|source| source.sweep(&options)).collect::<PyResult<_>>()?;
    let durations = sweeps.iter().flat_map(Sweep::variants).map(|one| one.scenario.duration);
    let total = durations.sum::<Duration>().as_secs_f64() * seeds.count() as f64;
    let (stop, passed_us) = (Arc::new(Stop::default()), AtomicU64::new(0));
    let look = |_: Python<'_>| match &watch {
        None => Ok(()),
        Some(watch) => {
            let share = passed_us.load(Ordering::Relaxed) as f64 / 1e6 / total;
            watch.call1((share.min(1.0),)).map(drop)
        }
    };
    let note = |progress: Progress| {
        if let Progress::Time(more) = progress {
            let more_us = u64::try_from(more.as_micros()).unwrap_or(u64::MAX);
            passed_us.fetch_add(more_us, Ordering::Relaxed);
        }
        if stop.is_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let play = || {
        // Threads of its own each time: a process that is forked from this one has none of them.
        let (pool, raised) = (ThreadPoolBuilder::new(), Arc::clone(&stop));
        let pool = pool.start_handler(move |_| control::raise_to(&raised));
        let pool = pool.num_threads(threads.unwrap_or(0)).build();
        let pool = pool.map_err(|error| WorldError::Other(format!("no threads: {error}")))?;
        let play = |sweep: &Sweep| dualq_worlds::Results::play(sweep, &[&Model], seeds, &note);
        pool.install(|| sweeps.iter().map(play).collect())
    };
    let played: Result<Vec<_>, WorldError> = beside(py, &stop, look, play)?;
    let played = played.map_err(failure)?;
    let origin = |source: &Source, sweep: &Sweep| Origin {
        program: PROGRAM.to_owned(),
        command: String::new(),
        plan: source.text.clone(),
        files: sweep.files.clone(),
    };
    let named = played.into_iter().zip(sources.iter().zip(&sweeps)).map(
        |(mut results, (source, sweep))| {
            results.origin = Some(origin(source, sweep));
            Results::of(results)
        },
    );
    if let Some(watch) = watch {
        watch.call1((1.0,))?;
    }
    Ok(named.collect())
}
