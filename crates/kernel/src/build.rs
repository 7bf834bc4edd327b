//! From sources to a kernel that is kept.

use std::fs::{self, File};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};

use crate::clock;
use crate::config::Config;
use crate::error::KernelError;
use crate::options::Options;
use crate::process::{Interrupt, Runner};
use crate::source::{Package, Source, Tree, Wanted};
use crate::store::{Facts, Kernel, Store};
use crate::version::means;

/// How many lines make prints, one a file: Linux 7.3 with our options. Others differ by some percent.
const TYPICAL_LINES: f64 = 1460.0;

/// What is to be built.
#[derive(Clone, Debug)]
pub struct Request {
    /// A source tree or a tarball; without it, the distribution's source package.
    pub source: Option<PathBuf>,
    /// The version that the sources must have, or its first numbers.
    pub version: Option<String>,
    /// How many compilers run at once.
    pub jobs: NonZero<usize>,
}

/// What happens meanwhile.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A new step begins.
    Step(&'a str),
    /// How much of this step may be done, of 1, and what is at hand.
    Progress(f64, &'a str),
    /// What somebody may not have expected.
    Note(&'a str),
}

/// What came of it.
#[derive(Debug)]
pub enum Built {
    /// A new kernel.
    New(Kernel),
    /// It was there before.
    Already(Kernel),
}

/// Builds a kernel and keeps it in the store; does nothing if it is there already.
///
/// One build runs at a time for a store, others wait. Until all is done, nothing can be seen in the store; afterwards,
/// and after a failure, only the kernel and the log of the last build are left.
///
/// # Errors
///
/// If programs or sources are missing, do not fit, or fail; if `interrupt` was raised.
pub fn build(
    store: &Store,
    request: &Request,
    interrupt: &Interrupt,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Built, KernelError> {
    let source = Source::of(request.source.as_deref());
    // One that is there needs no tools, nor the apt that it came from.
    if let Some(kernel) = already(store, request, source.as_ref().ok())? {
        return Ok(Built::Already(kernel));
    }
    let source = source?;
    crate::tools::check(&source.tools())?;
    fs::create_dir_all(store.folder()).map_err(KernelError::file("write", store.folder()))?;
    let _lock = lock(store, interrupt, tell)?;
    if let Some(kernel) = already(store, request, Some(&source))? {
        return Ok(Built::Already(kernel));
    }
    let work = Work::new(store)?;
    let runner = Runner::new(store.folder().join("build.log"), interrupt)?;
    let mut building = Building { request, store, work, runner, tell };
    let tree = match building.fetch(&source)? {
        Fetched::Tree(tree) => tree,
        Fetched::Already(kernel) => return Ok(Built::Already(kernel)),
    };
    let kernel = building.make(&tree)?;
    building.step("cleaning up");
    Ok(Built::New(kernel))
}

/// The kernel that was asked for, if that can be told without unpacking anything.
fn already(
    store: &Store,
    request: &Request,
    source: Option<&Source>,
) -> Result<Option<Kernel>, KernelError> {
    let wanted = request.version.as_deref();
    // One of the same version may have other controllers: what it was built from counts.
    let origin = match source {
        Some(Source::Directory { path }) => Some(Tree::open(path)?.origin),
        Some(Source::Tarball { origin, .. }) => Some(origin.clone()),
        Some(Source::Distribution) | None => None,
    };
    let is_it = |kernel: &Kernel| match &origin {
        Some(origin) => kernel.facts.origin == *origin,
        None => request.source.is_none() && kernel.facts.is_of_package(),
    };
    let fits = |kernel: &Kernel| wanted.is_none_or(|wanted| means(wanted, &kernel.version));
    let kernels = store.kernels()?.into_iter();
    Ok(kernels.filter(Kernel::is_current).find(|kernel| is_it(kernel) && fits(kernel)))
}

/// Waits until no other build runs. The lock ends with this process at the latest.
fn lock(
    store: &Store,
    interrupt: &Interrupt,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<File, KernelError> {
    let path = store.folder().join(".lock");
    let file = File::create(&path).map_err(KernelError::file("write", &path))?;
    let mut told = false;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(error) if error == rustix::io::Errno::WOULDBLOCK => {}
            Err(error) => return Err(KernelError::file("lock", &path)(error.into())),
        }
        if !told {
            tell(Event::Step("waiting for another build to end"));
            told = true;
        }
        interrupt.check()?;
        thread::sleep(Duration::from_millis(200));
    }
}

/// The folder of a build under way.
struct Work(PathBuf);

impl Work {
    /// Takes away what a killed build has left; nobody else can be at work there, by the lock.
    fn new(store: &Store) -> Result<Self, KernelError> {
        let folder = store.folder().join(".work");
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(KernelError::file("remove", &folder))?;
        }
        fs::create_dir(&folder).map_err(KernelError::file("write", &folder))?;
        Ok(Self(folder))
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // What stays is removed by the next build.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Sources that were looked for.
enum Fetched {
    Tree(Tree),
    /// They are those of this kernel.
    Already(Kernel),
}

struct Building<'a> {
    request: &'a Request,
    store: &'a Store,
    work: Work,
    runner: Runner<'a>,
    tell: &'a mut dyn FnMut(Event<'_>),
}

impl Building<'_> {
    fn step(&mut self, text: &str) {
        (self.tell)(Event::Step(text));
    }

    /// A kernel of today's options and the distribution's sources of this very version.
    fn built(&self, version: &str) -> Result<Option<Kernel>, KernelError> {
        let mut kernels = self.store.kernels()?.into_iter();
        Ok(kernels.find(|kernel| {
            kernel.is_current() && kernel.facts.is_of_package() && kernel.version == version
        }))
    }

    /// Gets the sources and unpacks them.
    fn fetch(&mut self, source: &Source) -> Result<Fetched, KernelError> {
        let unpacked = self.work.0.join("tree");
        let tree = match source {
            Source::Directory { path } => Tree::open(path)?,
            Source::Tarball { origin, path } => {
                self.step(&format!("unpacking {}", path.display()));
                Tree::unpack(path, &unpacked, origin.clone(), &mut self.runner)?
            }
            Source::Distribution => {
                self.step("looking for the newest linux-source package");
                let wanted =
                    self.request.version.as_deref().map_or(Wanted::Newest, Wanted::Version);
                let package = Package::find(wanted, &self.work.0.join("apt"), &mut self.runner)?;
                if let Some(kernel) = self.built(&package.version.to_string())? {
                    return Ok(Fetched::Already(kernel));
                }
                self.step(&format!("downloading {}", package.title()));
                let folder = self.work.0.join("package");
                let tarball = package.download(&folder, &mut self.runner)?;
                self.step("unpacking it");
                let tree = package.unpack(&tarball, &unpacked, &mut self.runner)?;
                // It is as large as some hundred kernels.
                fs::remove_dir_all(&folder).map_err(KernelError::file("remove", &folder))?;
                tree
            }
        };
        let version = tree.version.to_string();
        if let Some(wanted) = self.request.version.as_deref().filter(|it| !means(it, &version)) {
            return Err(KernelError::OtherVersion { wanted: wanted.to_owned(), found: version });
        }
        Ok(Fetched::Tree(tree))
    }

    /// Configures and compiles, and keeps what comes of it.
    fn make(&mut self, tree: &Tree) -> Result<Kernel, KernelError> {
        let version = tree.version.to_string();
        self.step(&format!("configuring Linux {version}"));
        let out = self.work.0.join("out");
        fs::create_dir(&out).map_err(KernelError::file("write", &out))?;
        let fine = clock::made_fine(tree, &self.work.0.join("fine"))?;
        let tree = fine.as_ref().unwrap_or(tree);
        let (config, mut lacking) = self.configure(tree, &out)?;
        if fine.is_none() {
            let note = format!("Linux {version} has a clock of its own, whose readings take time");
            (self.tell)(Event::Note(&note));
            lacking.push(clock::SETTING.to_owned());
        }
        let jobs = self.request.jobs;
        self.step(&format!("building Linux {version} with {jobs} jobs"));
        let tell = &mut self.tell;
        let mut lines = 0.0;
        let doing = format!("building Linux {version}");
        let mut make = make(tree, &out);
        make.arg(format!("-j{jobs}"));
        self.runner.run(&doing, &mut make, &mut |line| {
            // "  CC      net/sched/sch_api.o"
            if line.starts_with("  ") {
                lines += 1.0;
                let file = line.split_whitespace().last().unwrap_or_default();
                tell(Event::Progress(f64::min(lines / TYPICAL_LINES, 0.99), file));
            }
        })?;
        let compiler = self.runner.answer("asking gcc", Command::new("gcc").arg("--version"))?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let linux = out.join("linux");
        let size = linux.metadata().map_err(KernelError::file("read", &linux))?.len();
        let facts = Facts {
            size: Some(size),
            version,
            origin: tree.origin.clone(),
            built_s: since.as_secs(),
            options: Options::ours().hash(),
            lacking,
            compiler: compiler.lines().next().unwrap_or_default().to_owned(),
        };
        let folder = self.work.0.join("kernel");
        facts.write(&folder, &linux, &config)?;
        self.store.keep(&folder, &facts)
    }

    /// Writes `.config`; gives its text, and what of our options the version is without.
    fn configure(&mut self, tree: &Tree, out: &Path) -> Result<(String, Vec<String>), KernelError> {
        let version = &tree.version;
        let doing = format!("configuring Linux {version}");
        let path = out.join(".config");
        let (options, read) = (Options::ours(), || {
            fs::read_to_string(&path).map_err(KernelError::file("read", &path))
        });
        self.runner.run(&doing, make(tree, out).arg("defconfig"), &mut |_| {})?;
        fs::write(&path, options.apply(&read()?)).map_err(KernelError::file("write", &path))?;
        self.runner.run(&doing, make(tree, out).arg("olddefconfig"), &mut |_| {})?;
        let config = read()?;
        let unmet = options.unmet(&Config(&config));
        if !unmet.required.is_empty() {
            let (version, log) = (version.to_string(), self.runner.log_path().to_owned());
            return Err(KernelError::Required { version, options: unmet.required, log });
        }
        if !unmet.wanted.is_empty() {
            let note = format!("Linux {version} does not offer {}", unmet.wanted.join(", "));
            (self.tell)(Event::Note(&note));
        }
        Ok((config, unmet.wanted))
    }
}

/// make, which writes nothing outside of `out`.
fn make(tree: &Tree, out: &Path) -> Command {
    let mut output = std::ffi::OsString::from("O=");
    output.push(out);
    let mut make = Command::new("make");
    make.current_dir(&tree.root).arg(output).args(["ARCH=um", "--no-print-directory"]);
    // What goes into the kernel's own banner: nothing of this machine or day. The banner feeds the kernel's random numbers, so
    // the same sources and compiler give the same runs everywhere.
    make.env("KBUILD_BUILD_USER", "dualq").env("KBUILD_BUILD_HOST", "dualq");
    make.env("KBUILD_BUILD_TIMESTAMP", "1970-01-01").env("KBUILD_BUILD_VERSION", "1");
    make
}
