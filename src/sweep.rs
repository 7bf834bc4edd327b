//! `dualq sweep`: from the arguments to a folder of runs, and what they came to.

mod show;
pub(crate) mod tune;

use std::num::NonZero;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::available_parallelism;

use dualq_report::{Report, html};
use dualq_sweep::{
    Axis, Done, Folder, FolderError, More, Plan, PlanError, PlayError, Sampling, Space, SpaceError,
    Step, Until, Work,
};
use dualq_worlds::{Origin, Progress, World};

use crate::cli::sweep::{SpaceArgs, SweepArgs};
use crate::cli::{Failure, WorldName, note, note_qdiscs};
use crate::interrupt::StopsWork;
use crate::output::{Named, keep_apart};
use crate::progress::Steps;
use crate::run::{PROGRAM, Source, name_by_settings, origin, read, seeds};
use crate::stored::stem;
use crate::world;

impl From<FolderError> for Failure {
    fn from(error: FolderError) -> Self {
        Self::Run(error.to_string())
    }
}

/// A scenario file, and what varies in it, with what it is called in messages.
struct Input<'a> {
    space: Space,
    named: String,
    zip: &'a [Axis],
}

impl<'a> Input<'a> {
    fn read(args: &SpaceArgs, zip: &'a [Axis]) -> Result<Self, Failure> {
        let Source { text, named, folder, shipped } = read(args.scenario.as_deref())?;
        for told in dualq_scenario::notes(&text) {
            note(&format!("{named}{told}"));
        }
        let (vary, zip_axes) = (args.vary.clone(), zip.to_vec());
        let space = Space { folder, files: shipped, vary, zip: zip_axes, ..Space::of(text) };
        Ok(Self { space, named, zip })
    }

    /// Says where it stands: in which option, or in the file.
    fn wrong(&self, error: &SpaceError) -> Failure {
        let option = |key: &str| {
            let zipped = self.zip.iter().any(|axis| key.starts_with(axis.key()));
            if zipped { "--zip" } else { "--vary" }
        };
        Failure::Usage(match error {
            SpaceError::Scenario(error) => match &error.assignment {
                Some(assignment) => format!("{} {error}", option(assignment)),
                None => format!("{}{error}", self.named),
            },
            SpaceError::Axis(error) => format!("{} {error}", option(&error.0)),
            SpaceError::TooMany(_) => error.to_string(),
        })
    }

    fn plan(&self, worlds: &[&dyn World], first_seed: u64, count: u64) -> Result<Plan, Failure> {
        let seeds = seeds(first_seed, count)?;
        let plan = Plan::new(&self.space, worlds, seeds).map_err(|error| match error {
            PlanError::Space(error) => self.wrong(&error),
            PlanError::World(error) => error.into(),
        })?;
        let Origin { program, command, .. } = origin();
        Ok(plan.made_by(program, command))
    }
}

/// The worlds by their names, ready to be used.
fn worlds(names: &[WorldName], kernel: Option<&str>) -> Result<Vec<Box<dyn World>>, Failure> {
    world::make_sense(kernel, names)?;
    names.iter().map(|name| world::open(*name, kernel)).collect()
}

/// So many threads at once: to be called before any work, but after [`world::prepare`], which wants none yet. No more than there are cores:
/// what computes gains nothing by them, and tens of thousands bring the machine to a halt.
fn use_cores(jobs: Option<u16>) -> Result<(), Failure> {
    let Some(jobs) = jobs else { return Ok(()) };
    let threads = available_parallelism().map_or(1, NonZero::get).min(jobs.into());
    let pool = rayon_core::ThreadPoolBuilder::new().num_threads(threads).build_global();
    pool.map_err(|error| Failure::Run(format!("--jobs {jobs}: {error}")))
}

/// Refuses a page where the scenario is, or what tells that the folder is one of sweeps, or where the table goes.
fn keep_page_apart(args: &SweepArgs) -> Result<(), Failure> {
    if args.report.as_deref() == Some(Path::new("-")) && !args.quiet {
        let quiet = if args.show { "" } else { "add --quiet, or " };
        return Err(Failure::Usage(format!(
            "a report on standard output leaves no room for the table: {quiet}give a file"
        )));
    }
    let marker = args.folder.join(dualq_sweep::MARKER);
    let scenario = args.space.scenario.iter().map(|path| ("the scenario", path.as_path()));
    let read = scenario.chain([("what the folder is known by", marker.as_path())]);
    keep_apart(&read.collect::<Vec<_>>(), &[("--report", args.report.as_ref())])
}

/// Says how many samples are left out, for they are the same as others.
fn note_same(args: &SweepArgs, input: &Input<'_>) -> Result<(), Failure> {
    let Some(asked) = args.latin.or(args.random).map(NonZero::get) else { return Ok(()) };
    let drawn = input.space.count().map_err(|error| input.wrong(&error))?;
    if drawn < asked {
        let same = asked - drawn;
        note(&format!(
            "{same} of {asked} samples are the same as others, and are left out: there are few values to draw from"
        ));
    }
    Ok(())
}

pub(crate) fn run(args: &SweepArgs) -> Result<(), Failure> {
    if args.show {
        keep_page_apart(args)?;
        if !args.folder.exists() {
            let dir = args.folder.display();
            return Err(Failure::Run(format!(
                "--folder {dir}: there is no such folder; without --show a sweep makes it"
            )));
        }
        let folder = Folder::read(&args.folder)?;
        let mut plans = folder.plans()?;
        if plans.len() > 1 {
            note(&format!("{} sweeps are in it; this is the last", plans.len()));
        }
        return show::show(args, &folder, &plans.swap_remove(0));
    }
    let mut input = Input::read(&args.space, &args.zip)?;
    input.space.distributions = args.distributions;
    input.space.sampling = match (args.latin, args.random) {
        (Some(count), _) => Sampling::Latin { count: count.get(), seed: args.draw },
        (None, Some(count)) => Sampling::Random { count: count.get(), seed: args.draw },
        (None, None) => Sampling::All,
    };
    world::prepare(&args.world)?;
    use_cores(args.space.jobs)?;
    let worlds = worlds(&args.world, args.space.kernel.as_deref())?;
    let worlds: Vec<&dyn World> = worlds.iter().map(AsRef::as_ref).collect();
    let plan = input.plan(&worlds, args.space.seed, args.seeds)?;
    note_same(args, &input)?;
    let scenarios: Vec<_> = plan.scenarios().iter().collect();
    note_qdiscs(scenarios.iter().copied());
    // What is asked of figures, and what cannot be written, is said before anything runs.
    show::aim(args, &scenarios)?;
    let more = args.until.as_deref().map(|words| Until::parse(words, &scenarios)).transpose();
    let more = more.map_err(|error| Failure::Usage(format!("--until: {error}")))?;
    if more.is_some() && args.most_seeds < args.seeds {
        let (most, least) = (args.most_seeds, args.seeds);
        return Err(Failure::Usage(format!(
            "--most-seeds {most}: each scenario gets {least} already, by --seeds; give as many or more"
        )));
    }
    let more = more.map(|until| More { until, most: args.most_seeds });
    keep_page_apart(args)?;
    let folder = Folder::open(&args.folder)?;
    let page = args.report.as_deref().map(Named::open).transpose()?;
    folder.keep(plan.record())?;
    let work = Work {
        plan: &plan,
        worlds: &worlds,
        folder: &folder,
        shard: args.shard,
        more: more.as_ref(),
    };
    let done = play(args, &work)?;
    if done.open > 0 {
        let (open, all, most) = (done.open, scenarios.len(), args.most_seeds);
        let until = args.until.as_deref().unwrap_or_default();
        note(&format!(
            "{until} does not hold in {open} of {all} scenarios with {most} seeds, the most"
        ));
    }
    if let Some(page) = page {
        let mut results = folder.results(plan.record())?.results;
        name_by_settings(&mut results, &stem(folder.path()));
        let report = Report::of(&results);
        page.write(html::write(&[report], PROGRAM, None).as_bytes())?;
    }
    if args.quiet {
        return Ok(());
    }
    if !args.json && !args.csv {
        let Done { there, played, .. } = done;
        let dir = args.folder.display();
        crate::output::print(
            &mut std::io::stdout(),
            &format!("{played} runs were computed, {there} were there; all are in {dir}\n"),
        )?;
    }
    show::show(args, &folder, plan.record())
}

/// Computes what is missing, with a bar, until it is interrupted.
fn play(args: &SweepArgs, work: &Work<'_>) -> Result<Done, Failure> {
    let steps = Steps::of_time(std::time::Duration::ZERO, !args.space.no_progress && !args.quiet);
    let stops = StopsWork::begin();
    let (over, wanted) = (AtomicU64::new(0), AtomicU64::new(0));
    let watch = |step: Step| {
        match step {
            Step::More(runs, time) => {
                wanted.fetch_add(runs, Ordering::Relaxed);
                steps.add_time(time);
            }
            Step::Played(progress) => {
                if progress == Progress::Run {
                    over.fetch_add(1, Ordering::Relaxed);
                }
                if steps.watch(progress).is_break() {
                    return ControlFlow::Break(());
                }
            }
        }
        if stops.came() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let played = work.play(&watch);
    steps.clear();
    let how_far = || {
        let (over, wanted) = (over.load(Ordering::Relaxed), wanted.load(Ordering::Relaxed));
        let dir = args.folder.display();
        format!(
            "{over} of {wanted} runs were computed and are in {dir}; the same command goes on from there"
        )
    };
    match played {
        // What else failed then, failed because of it.
        Err(_) if stops.came() => Err(Failure::Interrupted(format!("interrupted: {}", how_far()))),
        Err(PlayError::World(error)) => Err(match error.into() {
            Failure::Run(message) => Failure::Run(format!("{message}; {}", how_far())),
            other => other,
        }),
        Err(PlayError::Folder(error)) => Err(Failure::Run(format!("{error}; {}", how_far()))),
        Ok(done) => Ok(done),
    }
}
