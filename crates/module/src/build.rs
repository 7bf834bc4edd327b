//! From Linux's source and a kernel's headers to a module.

use std::fs;
use std::path::{self, Path, PathBuf};
use std::process::Command;

use dualq_host::Root;
use dualq_host::building::{OLDEST_SOURCE, Obstacle, Stops};
use dualq_host::facts::{self, Building};
use dualq_kernel::{Event, Interrupt, KernelError, Runner, extract};

use crate::MODULE;
use crate::error::ModuleError;
use crate::folder::{self, Facts, Folder};
use crate::source;

/// What is to be built.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Linux's sources: a tree or a tarball, or a folder that `build` made before; without it, those of the distribution.
    pub source: Option<PathBuf>,
    /// The kernel's headers; without them, those that are installed for it.
    pub headers: Option<PathBuf>,
    /// The kernel, as `uname -r` calls it; without it, the one that the headers are of, else the running one.
    pub release: Option<String>,
    /// Where the folder is made; without it, below the user's cache.
    pub out: Option<PathBuf>,
}

/// What came of it.
#[derive(Debug)]
pub enum Built {
    /// A new module.
    New(Folder),
    /// It was there before.
    Already(Folder),
}

/// Builds the module for a kernel. What may matter and stops nothing is told as a note. After a failure all is as it was, but for the log.
///
/// # Errors
///
/// If something stands in the way, if programs or sources are missing, do not fit, or fail; if `interrupt` was raised.
pub fn build(
    request: &Request,
    interrupt: &Interrupt,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Built, ModuleError> {
    let root = Root::host();
    let (release, headers) = target(&root, request)?;
    let out = match &request.out {
        Some(out) => path::absolute(out).map_err(ModuleError::file("find", out))?,
        None => folder::store()?.join(&release),
    };
    let before = Folder::open(&out);
    match before {
        Some(before) if request.source.is_none() && before.facts.release == release => {
            return Ok(Built::Already(before));
        }
        None if fs::read_dir(&out).is_ok_and(|mut entries| entries.next().is_some()) => {
            return Err(ModuleError::Occupied { path: out });
        }
        _ => {}
    }
    let compiler = obstacles(&root, &release, headers.as_deref(), request, tell)?;
    let parent = out.parent().unwrap_or(Path::new("/"));
    if out.to_string_lossy().contains([' ', ':', '\t', '\n']) {
        return Err(ModuleError::Name { path: out });
    }
    fs::create_dir_all(parent).map_err(ModuleError::file("write", parent))?;
    let work = tempfile::Builder::new().prefix(".module-").tempdir_in(parent);
    let work = work.map_err(ModuleError::file("write", parent))?;
    let (text, facts) = sources(request, &release, work.path(), interrupt, tell)
        .map_err(|error| with_log(error, parent))?;
    let lacking = source::lacking(&text);
    if !lacking.is_empty() {
        tell(Event::Note(&format!("this source is without later fixes: {}", lacking.join("; "))));
    }
    let [made, building] = ["module", "building"].map(|name| work.path().join(name));
    for folder in [&made, &building] {
        fs::create_dir(folder).map_err(ModuleError::file("write", folder))?;
        Folder::write(folder, &text)?;
    }
    let headers = headers.unwrap_or_else(|| format!("/lib/modules/{release}/build"));
    tell(Event::Step(&format!("building {MODULE} of Linux {} for Linux {release}", facts.version)));
    let mut runner = Runner::new(work.path().join("build.log"), interrupt)?;
    make(&building, &headers, compiler.as_deref(), &mut runner)
        .map_err(|error| with_log(error, parent))?;
    // Without what else make has left.
    let name = format!("{MODULE}.ko");
    let (built, module) = (building.join(&name), made.join(&name));
    fs::rename(&built, &module).map_err(ModuleError::file("find", &built))?;
    let says = vermagic(&module)?;
    if says.split(' ').next() != Some(release.as_str()) {
        return Err(ModuleError::OtherModule { found: says, wanted: release });
    }
    Folder::seal(&made, &facts)?;
    replace(&made, &out)?;
    let folder = Folder::open(&out).ok_or(ModuleError::NotBuilt { release, folder: out })?;
    Ok(Built::New(folder))
}

/// The kernel that it is for, and its headers if they were named.
fn target(root: &Root, request: &Request) -> Result<(String, Option<String>), ModuleError> {
    let Some(headers) = &request.headers else {
        let running = || fs::read_to_string(root.sysctl("kernel.osrelease")).unwrap_or_default();
        let release = request.release.clone().unwrap_or_else(|| running().trim().to_owned());
        return Ok((release, None));
    };
    let headers = path::absolute(headers).map_err(ModuleError::file("find", headers))?;
    // Where modules take it from. Debian's include/config/kernel.release is another: 6.1.192 of 6.1.0-56-amd64.
    let says = fs::read_to_string(headers.join("include/generated/utsrelease.h"));
    let headers = headers.display().to_string();
    let found = says.ok().and_then(|says| Some(says.split('"').nth(1)?.to_owned()));
    let Some(found) = found else { return Err(ModuleError::NoHeaders { headers }) };
    match &request.release {
        Some(wanted) if *wanted != found => {
            Err(ModuleError::OtherHeaders { headers, found, wanted: wanted.clone() })
        }
        _ => Ok((found, Some(headers))),
    }
}

/// What stands in the way of a module for a kernel, and what there is to build it with. `headers` are those that were named.
pub(crate) fn in_the_way(
    root: &Root,
    release: &str,
    headers: Option<&str>,
) -> (Vec<Obstacle>, Building) {
    let os_release = fs::read_to_string(root.at("/etc/os-release")).unwrap_or_default();
    let families = dualq_kernel::families(&os_release);
    let distribution = families.first().map_or("", String::as_str);
    let (kernel, building) = facts::building(root, release, headers);
    (building.obstacles(&kernel, distribution), building)
}

/// Says what stands in the way; gives the compiler to use if it is not the headers' own choice.
fn obstacles(
    root: &Root,
    release: &str,
    headers: Option<&str>,
    request: &Request,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Option<String>, ModuleError> {
    let (found, building) = in_the_way(root, release, headers);
    // A module for another machine says nothing about what this one loads.
    let elsewhere = request.headers.is_some() || request.release.is_some();
    let mut lines = Vec::new();
    for obstacle in found {
        match obstacle.stops {
            Stops::Building => lines.push(obstacle.text),
            Stops::Loading if elsewhere => {}
            // apt itself is asked before anything is downloaded, if no source is given.
            Stops::Downloading => {}
            Stops::Loading | Stops::Nothing => tell(Event::Note(&obstacle.text)),
        }
    }
    if lines.is_empty() {
        Ok(building.other_compiler())
    } else {
        Err(ModuleError::Obstacles { lines })
    }
}

/// The source, and what will be said of the module.
fn sources(
    request: &Request,
    release: &str,
    work: &Path,
    interrupt: &Interrupt,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<(String, Facts), ModuleError> {
    if let Some(earlier) = request.source.as_deref().and_then(Folder::open) {
        let path = earlier.source();
        let text = fs::read_to_string(&path).map_err(ModuleError::file("read", &path))?;
        let Facts { version, origin, .. } = earlier.facts;
        source::check(&version, &text)?;
        return Ok((text, Facts::new(release, &version, origin)));
    }
    let given = request.source.as_deref();
    let got = extract(given, &[source::PATH], OLDEST_SOURCE, work, interrupt, tell)?;
    let version = got.version.to_string();
    let text = got.files.into_iter().next().flatten();
    let text = text.ok_or_else(|| ModuleError::NoDualpi2 { version: version.clone() })?;
    source::check(&version, &text)?;
    Ok((text, Facts::new(release, &version, got.origin)))
}

fn make(
    folder: &Path,
    headers: &str,
    compiler: Option<&str>,
    runner: &mut Runner<'_>,
) -> Result<(), ModuleError> {
    let mut make = Command::new("make");
    make.arg("-C").arg(folder).arg(format!("KDIR={headers}")).arg("modules");
    make.args(compiler.map(|compiler| format!("CC={compiler}")));
    runner.run("building the module", &mut make, &mut |_| {})?;
    // Nine tenths of it are for debuggers; DKMS takes them off too.
    let mut strip = Command::new("strip");
    strip.arg("--strip-debug").arg(folder.join(format!("{MODULE}.ko")));
    runner.run("stripping the module", &mut strip, &mut |_| {})?;
    Ok(())
}

/// Keeps the log of a program that failed, which would go with the folder of the build. It gets a name that nothing else has: the folder may be
/// anybody's.
fn with_log(error: ModuleError, folder: &Path) -> ModuleError {
    let ModuleError::Kernel(KernelError::Step { doing, how, lines, log }) = error else {
        return error;
    };
    let named = format!("{MODULE}-");
    let place = tempfile::Builder::new().prefix(&named).suffix(".log").tempfile_in(folder);
    let kept = place.and_then(|place| {
        fs::rename(&log, place.path())?;
        Ok(place.into_temp_path().keep()?)
    });
    let log = kept.unwrap_or(log);
    KernelError::Step { doing, how, lines, log }.into()
}

/// Which kernel a module says it is for: `6.12.9-amd64 SMP preempt mod_unload`.
fn vermagic(module: &Path) -> Result<String, ModuleError> {
    const KEY: &[u8] = b"vermagic=";
    let bytes = fs::read(module).map_err(ModuleError::file("read", module))?;
    let start = bytes.windows(KEY.len()).position(|window| window == KEY);
    let value = start.map_or(&[][..], |start| &bytes[start + KEY.len()..]);
    let value = value.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(value).into_owned())
}

/// Puts the new folder where an earlier one may be.
fn replace(made: &Path, out: &Path) -> Result<(), ModuleError> {
    if out.exists() {
        fs::remove_dir_all(out).map_err(ModuleError::file("remove", out))?;
    }
    fs::rename(made, out).map_err(ModuleError::file("write", out))
}
