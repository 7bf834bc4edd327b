//! `dualq kernel`: the kernels that scenarios run on.

use std::env;
use std::fs;
use std::io::{self, Write as _};
use std::num::NonZero;
use std::thread;

use dualq_kernel::{Built, Event, Interrupt, Kernel, KernelError, Request, Store};
use dualq_report::words::printable;
use dualq_units::plain;
use dualq_worlds::kernel::Command;

use crate::cli::kernel::{BuildArgs, ExecArgs, KernelCommand, ListArgs, RemoveArgs};
use crate::cli::{Failure, note};
use crate::output::print;
use crate::progress::Stages;
use crate::report;
use crate::world;

pub(crate) fn run(command: &KernelCommand) -> Result<(), Failure> {
    match command {
        KernelCommand::Build(args) => build(args),
        KernelCommand::List(args) => list(args),
        KernelCommand::Remove(args) => remove(args),
        KernelCommand::Exec(args) => exec(args),
    }
}

fn build(args: &BuildArgs) -> Result<(), Failure> {
    let store = Store::open()?;
    let cpus = thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    let request = Request {
        source: args.source.clone(),
        version: args.version.clone(),
        // Compilers gain nothing by more, and thousands at once take all memory.
        jobs: args.jobs.map_or(cpus, |jobs| jobs.min(cpus)),
    };
    let interrupt = Interrupt::default();
    raise_on_ctrl_c(&interrupt);
    let mut stages = Stages::new(!args.no_progress);
    let built = dualq_kernel::build(&store, &request, &interrupt, &mut |event| match event {
        Event::Step(text) => stages.step(text),
        Event::Progress(share, what) => stages.progress(share, what),
        Event::Note(text) => stages.aside(|| note(text)),
    });
    stages.clear();
    let text = match built? {
        Built::New(kernel) => format!("{} is built\n", title(&kernel)),
        Built::Already(kernel) => {
            let (title, name) = (title(&kernel), kernel.name());
            format!("{title} is there already; to build it anew: dualq kernel remove {name}\n")
        }
    };
    print(&mut io::stdout(), &text)
}

/// Ends what a build runs when the user has had enough.
pub(crate) fn raise_on_ctrl_c(interrupt: &Interrupt) {
    let raised = interrupt.clone();
    // Without a handler, a Ctrl-C ends this program, and make as soon as it finds nobody to talk to.
    let _ = ctrlc::set_handler(move || {
        raised.raise();
        let _ = writeln!(io::stderr(), "interrupted, cleaning up");
    });
}

fn list(args: &ListArgs) -> Result<(), Failure> {
    let store = Store::open()?;
    let (kernels, damaged) = (store.kernels()?, store.damaged()?);
    let text = if args.json {
        report::kernel::json(&kernels, &damaged)
    } else if kernels.is_empty() && damaged.is_empty() {
        format!("{}\n", KernelError::NoKernel)
    } else {
        report::kernel::text(&kernels, damaged)
    };
    print(&mut io::stdout(), &text)
}

fn remove(args: &RemoveArgs) -> Result<(), Failure> {
    let store = Store::open()?;
    let mut damaged = store.damaged()?;
    let kernels = match &args.version {
        Some(version) => {
            damaged.retain(|damaged| damaged.is_meant_by(version));
            match store.named(version) {
                Err(_) if !damaged.is_empty() => Vec::new(),
                named => named?,
            }
        }
        None => store.kernels()?,
    };
    for kernel in &kernels {
        store.remove(kernel)?;
        print(&mut io::stdout(), &format!("{} is removed\n", title(kernel)))?;
    }
    for damaged in &damaged {
        store.remove_damaged(damaged)?;
        let text = format!("the damaged kernel {} is removed\n", damaged.name);
        print(&mut io::stdout(), &text)?;
    }
    Ok(())
}

fn exec(args: &ExecArgs) -> Result<(), Failure> {
    let kernel = world::kernel(args.kernel.as_deref())?;
    let cannot = |what: &str, error: io::Error| Failure::Run(format!("{what}: {}", plain(&error)));
    let directory = env::current_dir().map_err(|error| cannot("the current folder", error))?;
    let etc = args.etc.as_ref().map(|etc| {
        fs::canonicalize(etc).map_err(|error| cannot(&etc.display().to_string(), error))
    });
    let (words, etc) = (args.command.clone(), etc.transpose()?);
    let command = Command { words, directory, etc };
    let status = kernel
        .execute(&command, args.seed, &mut io::stdout(), &mut io::stderr())
        .map_err(|error| Failure::Run(error.to_string()))?;
    match status {
        Some(0) => Ok(()),
        Some(status) => Err(Failure::Command(status as u8)),
        None => Err(Failure::Run("the command was ended by a signal".to_owned())),
    }
}

fn title(kernel: &Kernel) -> String {
    format!("Linux {} ({})", kernel.version, kernel.executable.display())
}

impl From<KernelError> for Failure {
    fn from(error: KernelError) -> Self {
        match &error {
            KernelError::Interrupted => return Self::Interrupted(error.to_string()),
            // Of what a program said, some lines tell more than any summary.
            KernelError::Step { lines, .. } => {
                for line in lines {
                    let _ = writeln!(io::stderr(), "  {}", printable(line.trim()));
                }
            }
            _ => {}
        }
        Self::Run(error.to_string())
    }
}
