//! Single files of Linux's sources, for whoever builds no kernel.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::build::Event;
use crate::error::KernelError;
use crate::process::{Interrupt, Runner};
use crate::source::{Origin, Package, Source, Wanted};
use crate::version::Version;

/// Files of Linux's own sources.
#[derive(Clone, Debug)]
pub struct Extracted {
    /// Of the sources.
    pub version: Version,
    /// Where they came from.
    pub origin: Origin,
    /// What is in the files, in the order in which they were asked for; `None` of one that the sources do not have.
    pub files: Vec<Option<String>>,
}

/// Takes `paths`, relative to a source tree, out of the sources that [`build`](crate::build()) would build from: those of `given`, a tree or a
/// tarball, or of the distribution's package, which is downloaded only if it is of Linux `least` or later. `work` is a folder for what comes of it
/// meanwhile, which the caller removes.
///
/// # Errors
///
/// If programs or sources are missing, or fail; if `interrupt` was raised.
pub fn extract(
    given: Option<&Path>,
    paths: &[&str],
    least: (u32, u32),
    work: &Path,
    interrupt: &Interrupt,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Extracted, KernelError> {
    let source = Source::of(given)?;
    crate::tools::check_all(&source.tools())?;
    let mut runner = Runner::new(work.join("source.log"), interrupt)?;
    let (root, origin, named) = match source {
        Source::Directory { path } => {
            (path.clone(), Origin::Directory { path: path.clone(), state: None }, path)
        }
        Source::Tarball { origin, path } => {
            tell(Event::Step(&format!("unpacking {}", path.display())));
            (unpack(&path, paths, work, &mut runner)?, origin, path)
        }
        Source::Distribution => {
            tell(Event::Step("looking for the newest linux-source package"));
            let package =
                Package::find(Wanted::AtLeast(least.0, least.1), &work.join("apt"), &mut runner)?;
            tell(Event::Step(&format!("downloading {}", package.title())));
            let tarball = package.download(&work.join("package"), &mut runner)?;
            tell(Event::Step("unpacking it"));
            (unpack(&tarball, paths, work, &mut runner)?, package.origin(), tarball)
        }
    };
    let text = |path: &str| fs::read_to_string(root.join(path)).ok();
    let version = text("Makefile").and_then(|makefile| Version::of_makefile(&makefile));
    let version = version.ok_or_else(|| KernelError::Source {
        path: named,
        fault: "not Linux's sources: there is no Makefile with VERSION".to_owned(),
    })?;
    Ok(Extracted { version, origin, files: paths.iter().map(|path| text(path)).collect() })
}

/// Unpacks these files and the top `Makefile` only; gives the tree's root.
fn unpack(
    tarball: &Path,
    paths: &[&str],
    work: &Path,
    runner: &mut Runner<'_>,
) -> Result<PathBuf, KernelError> {
    let into = work.join("tree");
    fs::create_dir(&into).map_err(KernelError::file("write", &into))?;
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(tarball).arg("-C").arg(&into);
    tar.args(["--no-same-owner", "--wildcards", "--no-wildcards-match-slash", "*/Makefile"]);
    tar.args(paths.iter().map(|path| format!("*/{path}")));
    // What is not in it is missed below, with the name that it has for people.
    let ended = runner.run(&format!("unpacking {}", tarball.display()), &mut tar, &mut |_| {});
    let mut folders = fs::read_dir(&into).map_err(KernelError::file("read", &into))?.flatten();
    match (folders.next(), ended) {
        (Some(only), _) => Ok(only.path()),
        (None, ended) => ended.map(|()| into),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "net/sched/sch_dualpi2.c";

    fn tree(folder: &Path) -> PathBuf {
        let tree = folder.join("linux-7.3");
        fs::create_dir_all(tree.join("net/sched")).unwrap();
        fs::write(tree.join("Makefile"), "VERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 4\n").unwrap();
        fs::write(tree.join("net/Makefile"), "").unwrap();
        fs::write(tree.join(FILE), "the source").unwrap();
        tree
    }

    fn extracted(given: &Path) -> Result<Extracted, KernelError> {
        let work = tempfile::tempdir().unwrap();
        let paths = [FILE, "net/sched/sch_none.c"];
        extract(Some(given), &paths, (0, 0), work.path(), &Interrupt::default(), &mut |_| {})
    }

    #[test]
    fn single_files_come_out_of_trees_and_tarballs() {
        let folder = tempfile::tempdir().unwrap();
        let tree = tree(folder.path());
        let tarball = folder.path().join("linux.tar");
        let mut tar = Command::new("tar");
        tar.arg("-cf").arg(&tarball).arg("-C").arg(folder.path()).arg("linux-7.3");
        assert!(tar.status().unwrap().success());
        for given in [&tree, &tarball] {
            let extracted = extracted(given).unwrap();
            assert_eq!(extracted.version.to_string(), "7.3.4");
            assert_eq!(extracted.files, [Some("the source".to_owned()), None]);
        }
        fs::remove_file(tree.join("Makefile")).unwrap();
        assert!(extracted(&tree).unwrap_err().to_string().contains("no Makefile with VERSION"));
    }
}
