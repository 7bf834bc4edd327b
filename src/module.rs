//! `dualq module`: DualPI2 for a kernel that lacks it.

use std::io::{self, Write as _};
use std::path::Path;

use dualq_host::Root;
use dualq_kernel::{Event, Interrupt};
use dualq_module::{Built, Folder, Installation, MODULE, ModuleError, Request, Way};
use dualq_report::words::printable;

use crate::cli::module::{BuildArgs, InstallArgs, ModuleCommand, RemoveArgs, StatusArgs};
use crate::cli::{Failure, note};
use crate::output::{print, shell_word};
use crate::progress::Stages;
use crate::report;

pub(crate) fn run(command: &ModuleCommand) -> Result<(), Failure> {
    match command {
        ModuleCommand::Build(args) => build(args),
        ModuleCommand::Install(args) => install(args),
        ModuleCommand::Status(args) => status(args),
        ModuleCommand::Remove(args) => remove(args),
    }
}

fn build(args: &BuildArgs) -> Result<(), Failure> {
    let request = Request {
        source: args.source.clone(),
        headers: args.headers.clone(),
        release: args.kernel_release.clone(),
        out: args.out.clone(),
    };
    let interrupt = Interrupt::default();
    crate::kernel::raise_on_ctrl_c(&interrupt);
    let mut stages = Stages::new(true);
    let built = dualq_module::build(&request, &interrupt, &mut |event| match event {
        Event::Step(text) => stages.step(text),
        Event::Progress(share, what) => stages.progress(share, what),
        Event::Note(text) => stages.aside(|| note(text)),
    });
    stages.clear();
    let text = match built? {
        Built::New(folder) => {
            // Root has another home.
            let path = shell_word(&folder.path().to_string_lossy());
            let install = format!("sudo dualq module install --from {path}");
            format!("{} is built; next: {install}\n", title(&folder))
        }
        Built::Already(folder) => format!(
            "{} is there already; to build it anew, remove that folder or name a --source\n",
            title(&folder)
        ),
    };
    print(&mut io::stdout(), &text)
}

fn install(args: &InstallArgs) -> Result<(), Failure> {
    let installation = installation(args.root.as_deref());
    let folder = match &args.from {
        Some(from) => Folder::open(from).ok_or_else(|| {
            let from = from.display();
            Failure::Run(format!("{from} is no folder that `dualq module build` made"))
        })?,
        None => {
            let release = args.kernel_release.clone().unwrap_or_else(|| installation.running());
            Folder::of(&release)?
        }
    };
    let way = if args.no_dkms { Way::ByHand } else { installation.way() };
    installation.install(&folder, way)?;
    let how = match way {
        Way::Dkms => "through DKMS, which builds it anew for new kernels",
        Way::ByHand => "for this kernel only: build and install it again after a kernel update",
    };
    let release = &folder.facts.release;
    print(&mut io::stdout(), &format!("{MODULE} is installed for Linux {release}, {how}\n"))?;
    if args.load {
        if *release != installation.running() {
            let text = format!("it cannot be loaded: Linux {release} is not the running kernel");
            return Err(Failure::Run(text));
        }
        installation.load()?;
        print(&mut io::stdout(), &format!("{MODULE} is loaded\n"))?;
    }
    Ok(())
}

fn status(args: &StatusArgs) -> Result<(), Failure> {
    if let Some(root) = args.root.as_deref().filter(|root| !root.is_dir()) {
        let root = root.display();
        return Err(Failure::Usage(format!("--root {root}: there is no such folder")));
    }
    let installation = installation(args.root.as_deref());
    // Without a home, nothing was built in it.
    let built = dualq_module::built().unwrap_or_default();
    let text = if args.json {
        report::module::json(&installation, &built)
    } else {
        report::module::text(&installation, &built)
    };
    print(&mut io::stdout(), &text)
}

fn remove(args: &RemoveArgs) -> Result<(), Failure> {
    let installation = installation(args.root.as_deref());
    let (removed, stays) = installation.remove(args.kernel_release.as_deref())?;
    for name in removed {
        print(&mut io::stdout(), &format!("{MODULE} is removed: {name}\n"))?;
    }
    if stays {
        note("it stays loaded until the next start, as a queue uses it");
    }
    Ok(())
}

fn installation(root: Option<&Path>) -> Installation {
    Installation::below(root.map_or_else(Root::host, Root::new))
}

fn title(folder: &Folder) -> String {
    let facts = &folder.facts;
    let (release, version) = (&facts.release, &facts.version);
    format!("{MODULE} of Linux {version} for Linux {release} ({})", folder.path().display())
}

impl From<ModuleError> for Failure {
    fn from(error: ModuleError) -> Self {
        match error {
            ModuleError::Kernel(error) => error.into(),
            // Each is a thing to be done, and has its line.
            ModuleError::Obstacles { mut lines } => {
                let last = lines.pop().unwrap_or_default();
                for line in lines {
                    let _ = writeln!(io::stderr(), "error: {}", printable(&line));
                }
                Self::Run(last)
            }
            error => Self::Run(error.to_string()),
        }
    }
}
