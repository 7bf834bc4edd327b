//! `dualq kernel`: the kernels that scenarios run on.

use std::env;
use std::fs::{self, File};
use std::io::{self, Seek as _, SeekFrom, Write};
use std::num::NonZero;
use std::thread;

use dualq_kernel::{Built, Event, Interrupt, Kernel, KernelError, Request, Store};

use crate::cli::kernel::{BuildArgs, ExecArgs, KernelCommand, ListArgs, RemoveArgs};
use crate::cli::{Failure, note};
use crate::inside::{self, Task};
use crate::output::{plain, print, printable};
use crate::progress::Stages;
use crate::report;
use crate::world::{self, GuestFolder};

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
        jobs: args.jobs.unwrap_or(cpus),
    };
    let interrupt = Interrupt::default();
    let raised = interrupt.clone();
    // Without a handler, a Ctrl-C ends this program, and make as soon as it finds nobody to talk to.
    let _ = ctrlc::set_handler(move || {
        raised.raise();
        let _ = writeln!(io::stderr(), "interrupted, cleaning up");
    });
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
            let (title, version) = (title(&kernel), &kernel.version);
            format!("{title} is there already; to build it anew: dualq kernel remove {version}\n")
        }
    };
    print(&mut io::stdout(), &text)
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
    let mut machine = world::guest(&kernel)?.seed(args.seed);
    if let Some(etc) = &etc {
        machine = machine.writable(etc);
    }
    let task = Task::Command { words, directory, etc };
    let folder = GuestFolder::create()?;
    // What the command says is in files that grow; they are passed on as they do.
    let pass_on = |name: &str, from: &mut u64, to: &mut dyn Write| -> io::Result<()> {
        let mut file = match File::open(folder.path().join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            file => file?,
        };
        file.seek(SeekFrom::Start(*from))?;
        *from += io::copy(&mut file, to)?;
        to.flush()
    };
    let (mut out, mut err) = (0, 0);
    let mut look = |_: &str| {
        // Whoever closed the other end of a pipe wants no more; the command's status still counts.
        let _ = pass_on(inside::STDOUT, &mut out, &mut io::stdout());
        let _ = pass_on(inside::STDERR, &mut err, &mut io::stderr());
    };
    let status: Option<i32> = world::start(&machine, &task, &folder, &mut look)
        .map_err(|error| Failure::Run(error.to_string()))?;
    look("");
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
