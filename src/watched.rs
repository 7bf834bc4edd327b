//! A world whose packets are written down while it runs.

mod events;

use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use dualq_scenario::{Event, Outcome, Scenario};
use dualq_worlds::{Observer, World, WorldError};

use crate::cli::{Failure, RunArgs};
use crate::output::{Output, plain};
use events::EventList;

/// Refuses what cannot be written down: several runs at once, or where something else is to go or stay.
pub(crate) fn check(args: &RunArgs, runs: usize) -> Result<(), Failure> {
    let Some(events) = args.events.as_deref() else { return Ok(()) };
    if runs != 1 {
        return Err(Failure::Usage(format!(
            "--events writes what happens in one run, and these are {runs}: give one value of each list, one --world and no --seeds"
        )));
    }
    let document = args.json || args.csv;
    if document && events == Path::new("-") {
        let form = if args.json { "--json" } else { "--csv" };
        return Err(Failure::Usage(format!(
            "{form} and --events - both want standard output; give --events a file"
        )));
    }
    let same = |path: &Path| path.canonicalize().ok();
    if let Some(events_file) = same(events)
        && args.scenario.iter().any(|scenario| same(scenario).as_ref() == Some(&events_file))
    {
        let path = events.display();
        return Err(Failure::Usage(format!("--events {path}: this would overwrite the scenario")));
    }
    Ok(())
}

/// Whether standard output is taken, so that the table has to go elsewhere.
pub(crate) fn takes_stdout(args: &RunArgs) -> bool {
    args.events.as_deref() == Some(Path::new("-"))
}

/// A world of which one run is written down.
pub(crate) struct Watched<'w> {
    world: &'w dyn World,
    files: Mutex<Files>,
}

/// What is written, and why that failed.
struct Files {
    events: Option<EventList<Output>>,
    failed: Option<io::Error>,
}

impl<'w> Watched<'w> {
    /// The world as it is watched, if the arguments ask for that.
    pub(crate) fn open(args: &RunArgs, world: &'w dyn World) -> Result<Option<Self>, Failure> {
        let Some(path) = &args.events else { return Ok(None) };
        let events = Some(EventList::new(Output::create(path)?));
        Ok(Some(Self { world, files: Mutex::new(Files { events, failed: None }) }))
    }

    /// Completes what was written, if the run came to its end.
    pub(crate) fn finish(self, args: &RunArgs, has_ended: bool) -> Result<(), Failure> {
        let Files { events, failed } =
            self.files.into_inner().unwrap_or_else(PoisonError::into_inner);
        let cannot_write = |error: io::Error| match (error.kind(), &args.events) {
            (io::ErrorKind::BrokenPipe, _) | (_, None) => Failure::BrokenPipe,
            (_, Some(path)) => {
                Failure::Run(format!("cannot write {}: {}", path.display(), plain(&error)))
            }
        };
        if let Some(error) = failed {
            return Err(cannot_write(error));
        }
        if let Some(events) = events
            && has_ended
        {
            events.end().and_then(Output::finish).map_err(cannot_write)?;
        }
        Ok(())
    }
}

impl World for Watched<'_> {
    fn name(&self) -> &str {
        self.world.name()
    }

    fn kernel_version(&self) -> Option<&str> {
        self.world.kernel_version()
    }

    fn alone(&self) -> bool {
        self.world.alone()
    }

    fn refuses(&self, scenario: &Scenario) -> Option<String> {
        self.world.refuses(scenario)
    }

    fn run(
        &self,
        scenario: &Scenario,
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<Outcome, WorldError> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.begin(self.world.name(), scenario, seed);
        self.world.run(scenario, seed, &mut Both { observer, files: &mut files })
    }
}

impl Files {
    fn note(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.failed.get_or_insert(error);
        }
    }

    fn begin(&mut self, world: &str, scenario: &Scenario, seed: u64) {
        if let Some(events) = &mut self.events {
            let result = events.begin(world, scenario, seed);
            self.note(result);
        }
    }
}

/// Tells one observer of the time, and writes the packets down.
struct Both<'a> {
    observer: &'a mut dyn Observer,
    files: &'a mut Files,
}

impl Observer for Both<'_> {
    fn passed(&mut self, time: Duration) -> ControlFlow<()> {
        if self.files.failed.is_some() {
            return ControlFlow::Break(());
        }
        self.observer.passed(time)
    }

    fn wants_packets(&self) -> bool {
        self.files.events.is_some()
    }

    fn packet(&mut self, event: Event) {
        if let Files { events: Some(events), failed: None } = self.files {
            let result = events.write(&event);
            self.files.note(result);
        }
    }
}
