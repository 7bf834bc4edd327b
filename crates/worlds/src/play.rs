//! Lists of runs, on all cores.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use dualq_scenario::{Outcome, Scenario};

use crate::{World, WorldError};

/// One run: a scenario in a world with a seed.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// What is played.
    pub scenario: &'a Scenario,
    /// Where.
    pub world: &'a dyn World,
    /// What all that is random follows from.
    pub seed: u64,
}

/// How far a list of runs has come since the last time that it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// So much more of the scenarios' time has passed. All of it together is the sum of the runs' durations.
    Time(Duration),
    /// One more run is over.
    Run,
}

/// Is told how far it is, by whichever thread. Whoever breaks ends all runs, with [`WorldError::Interrupted`].
pub type Watch<'a> = dyn Fn(Progress) -> ControlFlow<()> + Sync + 'a;

/// Plays all of the list: on all cores, but for worlds that are to be alone, which have their turn after the others and one run
/// after the other. The outcomes are in the list's order. How many run at once changes nothing in them.
///
/// # Errors
/// The first error that was met; runs that have not begun by then do not begin.
pub fn play(jobs: &[Job<'_>], watch: &Watch<'_>) -> Result<Vec<Outcome>, WorldError> {
    each(jobs, watch)?.into_iter().collect::<Result<_, String>>().map_err(WorldError::Refused)
}

/// The same, with the reason in the place of what a world refuses.
pub(crate) fn each(
    jobs: &[Job<'_>],
    watch: &Watch<'_>,
) -> Result<Vec<Result<Outcome, String>>, WorldError> {
    let (alone, together): (Vec<_>, Vec<_>) =
        jobs.iter().enumerate().partition(|(_, job)| job.world.alone());
    let numbered = |(number, job): (usize, &Job<'_>)| Ok((number, one(job, watch)?));
    let mut outcomes = on_all_cores(together, numbered)?;
    for job in alone {
        outcomes.push(numbered(job)?);
    }
    outcomes.sort_unstable_by_key(|(number, _)| *number);
    Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
}

/// Does something with each of a list, on all cores; what comes of it is in the list's order. Of rayon it wants the threads alone: its parallel iterators
/// cost four seconds to compile.
///
/// # Errors
/// The first error that was met; what has not begun by then does not begin.
pub fn on_all_cores<T: Send, R: Send, E: Send>(
    list: Vec<T>,
    one: impl Fn(T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let results = Mutex::new(Ok(Vec::with_capacity(list.len())));
    let results_now = || results.lock().unwrap_or_else(PoisonError::into_inner);
    let numbered = |number: usize, item: T| {
        if results_now().is_err() {
            return;
        }
        let result = one(item);
        let mut results = results_now();
        match (&mut *results, result) {
            (Ok(results), Ok(result)) => results.push((number, result)),
            (Ok(_), Err(error)) => *results = Err(error),
            (Err(_), _) => {}
        }
    };
    let numbered = &numbered;
    rayon_core::scope_fifo(|scope| {
        for (number, item) in list.into_iter().enumerate() {
            scope.spawn_fifo(move |_| numbered(number, item));
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner)?;
    results.sort_unstable_by_key(|(number, _)| *number);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

fn one(job: &Job<'_>, watch: &Watch<'_>) -> Result<Result<Outcome, String>, WorldError> {
    let length = job.scenario.duration;
    let mut told = Duration::ZERO;
    let mut tell = |time: Duration| {
        let time = time.min(length);
        match time.checked_sub(told).filter(|more| !more.is_zero()) {
            None => ControlFlow::Continue(()),
            Some(more) => {
                told = time;
                watch(Progress::Time(more))
            }
        }
    };
    // Before it begins: who has asked to stop is not to wait for what takes long to start.
    let goes_on = |flow: ControlFlow<()>| match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(WorldError::Interrupted),
    };
    goes_on(watch(Progress::Time(Duration::ZERO)))?;
    let outcome = match job.world.run(job.scenario, job.seed, &mut tell) {
        Ok(outcome) => Ok(outcome),
        Err(WorldError::Refused(reason)) => Err(reason),
        Err(error) => return Err(error),
    };
    goes_on(tell(length))?;
    goes_on(watch(Progress::Run))?;
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use dualq_scenario::Setup;

    use super::*;
    use crate::{Model, Observer};

    /// Tells in its outcomes which seed it was, and notes how many ran at once.
    #[derive(Default)]
    struct Probe {
        alone: bool,
        now: AtomicUsize,
        most: AtomicUsize,
        seeds: Mutex<Vec<u64>>,
    }

    impl World for Probe {
        fn name(&self) -> &'static str {
            "probe"
        }

        fn alone(&self) -> bool {
            self.alone
        }

        fn refuses(&self, _: &Scenario) -> Option<String> {
            None
        }

        fn run(
            &self,
            scenario: &Scenario,
            seed: u64,
            observer: &mut dyn Observer,
        ) -> Result<Outcome, WorldError> {
            self.most.fetch_max(1 + self.now.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
            self.seeds.lock().unwrap().push(seed);
            let half = observer.passed(scenario.duration / 2);
            self.now.fetch_sub(1, Ordering::SeqCst);
            match half {
                ControlFlow::Break(()) => Err(WorldError::Interrupted),
                ControlFlow::Continue(()) => {
                    Ok(Outcome { data_packets: seed, ..Outcome::default() })
                }
            }
        }
    }

    fn scenario() -> Scenario {
        Scenario::try_from(Setup::default()).unwrap()
    }

    fn jobs<'a>(scenario: &'a Scenario, world: &'a dyn World) -> Vec<Job<'a>> {
        (1..=8).map(|seed| Job { scenario, world, seed }).collect()
    }

    #[test]
    fn outcomes_are_in_the_order_of_the_list_and_all_time_is_told() {
        let (scenario, alone, together) =
            (scenario(), Probe { alone: true, ..Probe::default() }, Probe::default());
        let mut jobs = jobs(&scenario, &alone);
        jobs.insert(3, Job { scenario: &scenario, world: &together, seed: 100 });
        let (time, runs) = (Mutex::new(Duration::ZERO), AtomicUsize::new(0));
        let watch = |progress| {
            match progress {
                Progress::Time(more) => *time.lock().unwrap() += more,
                Progress::Run => {
                    runs.fetch_add(1, Ordering::SeqCst);
                }
            }
            ControlFlow::Continue(())
        };
        let outcomes = play(&jobs, &watch).unwrap();
        let seeds: Vec<u64> = outcomes.iter().map(|outcome| outcome.data_packets).collect();
        assert_eq!(seeds, [1, 2, 3, 100, 4, 5, 6, 7, 8]);
        assert_eq!(time.into_inner().unwrap(), scenario.duration * 9);
        assert_eq!(runs.into_inner(), 9);
        // One after the other, as they were given.
        assert_eq!(alone.most.into_inner(), 1);
        assert_eq!(alone.seeds.into_inner().unwrap(), [1, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn what_comes_of_a_list_is_in_its_order_and_an_error_ends_it() {
        let doubled = on_all_cores((0..1000).collect(), |number: u32| Ok::<_, ()>(2 * number));
        assert_eq!(doubled, Ok((0..2000).step_by(2).collect()));
        let third = |number: u32| if number == 3 { Err(number) } else { Ok(()) };
        assert_eq!(on_all_cores((0..1000).collect(), third), Err(3));
        assert_eq!(on_all_cores(Vec::new(), third), Ok(Vec::new()));
    }

    #[test]
    fn who_watches_can_end_all() {
        let (scenario, world) = (scenario(), Probe { alone: true, ..Probe::default() });
        let error = play(&jobs(&scenario, &world), &|progress| match progress {
            Progress::Time(time) if time.is_zero() => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        });
        assert!(matches!(error, Err(WorldError::Interrupted)), "{error:?}");
        assert_eq!(world.seeds.into_inner().unwrap(), [1]);
        let model = play(&jobs(&scenario, &Model), &|_| ControlFlow::Break(()));
        assert!(matches!(model, Err(WorldError::Interrupted)), "{model:?}");
    }
}
