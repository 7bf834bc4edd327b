//! Putting a module where the kernel looks for it, and taking it away.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use dualq_host::{Root, program};

use crate::MODULE;
use crate::error::ModuleError;
use crate::folder::Folder;
use crate::place::{FOLDERS, Place, stays_inside};
use crate::record::Record;

/// The name under which DKMS knows the module.
pub(crate) const PACKAGE: &str = "dualq-dualpi2";

/// Files to be written: where, and what.
type Files = Vec<(String, Vec<u8>)>;

/// How a module is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Through DKMS, which builds it anew for each new kernel.
    Dkms,
    /// The one file, for one kernel.
    ByHand,
}

/// The modules of a machine.
#[derive(Clone, Debug)]
pub struct Installation {
    pub(crate) root: Root,
}

impl Installation {
    /// Those of the machine whose files are below `root`.
    #[must_use]
    pub fn below(root: Root) -> Self {
        Self { root }
    }

    /// How this machine would have it installed: through DKMS if that is there. Below another root that is never so, as DKMS knows none.
    #[must_use]
    pub fn way(&self) -> Way {
        let folders = program::PATH.split(':');
        let dkms = folders.into_iter().any(|folder| Path::new(folder).join("dkms").exists());
        if self.is_host() && dkms { Way::Dkms } else { Way::ByHand }
    }

    pub(crate) fn is_host(&self) -> bool {
        self.root == Root::host()
    }

    /// Installs what was built. What is put where is recorded before; after a failure it is taken away again.
    ///
    /// # Errors
    ///
    /// If the kernel is not there, a module is there already, a file cannot be written, or DKMS or depmod fail.
    pub fn install(&self, folder: &Folder, way: Way) -> Result<(), ModuleError> {
        let release = &folder.facts.release;
        let modules = self.root.at(format!("/lib/modules/{release}"));
        if !modules.is_dir() {
            return Err(ModuleError::NoKernel { release: release.clone(), folder: modules });
        }
        let there = self.kernels().into_iter().find(|found| found.release == *release);
        if let Some(found) = there {
            return Err(ModuleError::Already { what: found.file });
        }
        let (mut record, files) = match way {
            Way::ByHand => self.by_hand(folder)?,
            Way::Dkms => self.dkms(folder)?,
        };
        for (path, _) in &files {
            if self.root.at(path).exists() {
                return Err(ModuleError::Already { what: path.clone() });
            }
            record.add(&self.root, path);
        }
        record.write(&self.root)?;
        let done = files
            .iter()
            .try_for_each(|(path, bytes)| self.put(path, bytes))
            .and_then(|()| self.make_known(&record));
        if done.is_err() {
            // The first failure is what matters.
            let _ = self.forget(&record, None).and_then(|_| record.remove(&self.root));
        }
        done
    }

    fn by_hand(&self, folder: &Folder) -> Result<(Record, Files), ModuleError> {
        let release = &folder.facts.release;
        let path = format!("{}/{MODULE}.ko", by_hand(release));
        let module = folder.module();
        let bytes = fs::read(&module).map_err(ModuleError::file("read", &module))?;
        Ok((Record::new(release, None), vec![(path, bytes)]))
    }

    fn dkms(&self, folder: &Folder) -> Result<(Record, Files), ModuleError> {
        // One record is kept of it, and DKMS builds each version for each kernel.
        if let Some(what) = Record::all(&self.root)?.into_iter().find_map(|record| record.dkms) {
            return Err(ModuleError::Already { what });
        }
        let version = &folder.facts.version;
        let record = Record::new(&folder.facts.release, Some(format!("{PACKAGE}/{version}")));
        let sources = sources(version);
        let mut files = vec![(
            format!("{sources}/dkms.conf"),
            include_str!("folder/dkms.conf").replace("@VERSION@", version).into_bytes(),
        )];
        for (name, bytes) in folder.sources()? {
            files.push((format!("{sources}/{name}"), bytes));
        }
        Ok((record, files))
    }

    fn put(&self, path: &str, bytes: &[u8]) -> Result<(), ModuleError> {
        let put = Place::make(&self.root, path, FOLDERS).and_then(|at| at.write(bytes, 0o644));
        put.map_err(ModuleError::file("write", &self.root.at(path)))
    }

    /// Tells the kernel's tools of it.
    fn make_known(&self, record: &Record) -> Result<(), ModuleError> {
        match &record.dkms {
            Some(name) => self.run_dkms(&["install", name, "-k", &record.release]),
            None => self.depmod(&record.release),
        }
    }

    /// The machine's own, which knows nothing of what is in an image.
    fn run_dkms(&self, arguments: &[&str]) -> Result<(), ModuleError> {
        if self.is_host() {
            return run("dkms", arguments);
        }
        let command = format!("dkms {}", arguments.join(" "));
        Err(ModuleError::Inside { command, root: self.root.at("/") })
    }

    fn depmod(&self, release: &str) -> Result<(), ModuleError> {
        let root = self.root.at("/");
        if !self.is_host() && !stays_inside(&self.root, &format!("/lib/modules/{release}")) {
            let command = format!("depmod {release}");
            return Err(ModuleError::Inside { command, root });
        }
        run("depmod", &["-b", &root.to_string_lossy(), release])
    }

    /// The opposite of all that `install` did but for the record; of what DKMS has, only the module for the kernel `release` if that is
    /// named. Gives whether nothing of it is left.
    fn forget(&self, record: &Record, release: Option<&str>) -> Result<bool, ModuleError> {
        if let Some(name) = &record.dkms
            && self.known(name).exists()
        {
            match release {
                Some(release) => {
                    self.run_dkms(&["remove", name, "-k", release])?;
                    // DKMS forgets it with the last kernel.
                    if self.known(name).exists() {
                        return Ok(false);
                    }
                }
                None => self.run_dkms(&["remove", name, "--all"])?,
            }
        }
        record.take_back(&self.root)?;
        // A kernel that is gone needs no lists.
        let is_there = self.root.at(format!("/lib/modules/{}", record.release)).is_dir();
        if record.dkms.is_none() && is_there {
            self.depmod(&record.release)?;
        }
        Ok(true)
    }

    /// Where DKMS has what it knows by this name and version, with a folder for each kernel.
    fn known(&self, name: &str) -> PathBuf {
        self.root.at("/var/lib/dkms").join(name)
    }

    /// Whether a kernel has a module by it.
    fn is_for(&self, record: &Record, release: &str) -> bool {
        match &record.dkms {
            Some(name) => self.known(name).join(release).is_dir(),
            None => record.release == release,
        }
    }

    /// Loads the module into the running kernel, and records it if it was not loaded before.
    ///
    /// # Errors
    ///
    /// If modprobe fails: what the kernel says to unsigned modules, for one.
    pub fn load(&self) -> Result<(), ModuleError> {
        if self.is_loaded() {
            return Ok(());
        }
        run("modprobe", &[MODULE])?;
        for mut record in Record::all(&self.root)? {
            record.loaded = true;
            record.write(&self.root)?;
        }
        Ok(())
    }

    /// Takes away all that `install` has put on this machine, or what it has put there for one kernel; gives their names. A module that `load`
    /// has loaded is unloaded, unless a queue uses it: then the second value is true.
    ///
    /// # Errors
    ///
    /// If nothing is installed, or it cannot be removed.
    pub fn remove(&self, release: Option<&str>) -> Result<(Vec<String>, bool), ModuleError> {
        let mut records = Record::all(&self.root)?;
        records.retain(|record| release.is_none_or(|release| self.is_for(record, release)));
        if records.is_empty() {
            let below = (!self.is_host()).then(|| self.root.at("/").display().to_string());
            return Err(ModuleError::NotInstalled { below });
        }
        let is_running = release.is_none_or(|release| release == self.running());
        let loaded = self.is_host() && is_running && records.iter().any(|record| record.loaded);
        let stays = loaded && run("modprobe", &["-r", MODULE]).is_err();
        let mut removed = Vec::new();
        for record in &records {
            if self.forget(record, release)? {
                record.remove(&self.root)?;
            }
            let name = release.map(str::to_owned).or_else(|| record.dkms.clone());
            removed.push(name.unwrap_or_else(|| record.release.clone()));
        }
        Ok((removed, stays))
    }
}

/// Where the one file is put for a kernel,
pub(crate) fn by_hand(release: &str) -> String {
    format!("/lib/modules/{release}/updates/dualq")
}

/// and where DKMS finds a source.
pub(crate) fn sources(version: &str) -> String {
    format!("/usr/src/{PACKAGE}-{version}")
}

/// Runs a program of root's, quietly.
fn run(name: &str, arguments: &[&str]) -> Result<(), ModuleError> {
    let command = format!("{name} {}", arguments.join(" "));
    let output = Command::new(name)
        .env_clear()
        .env("PATH", program::PATH)
        .env("LC_ALL", "C")
        .args(arguments)
        .stdin(Stdio::null())
        .output();
    let said = match output {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let last = said.lines().map(str::trim).rfind(|line| !line.is_empty());
            last.map_or_else(|| output.status.to_string(), str::to_owned)
        }
        Err(error) => format!("cannot start {name}: {error}"),
    };
    Err(ModuleError::Program { command, said })
}

#[cfg(test)]
mod tests {
    use dualq_kernel::Origin;

    use super::*;
    use crate::folder::Facts;

    /// What DKMS of this machine does not know, should it be there.
    const VERSION: &str = "0.0.1-test";

    /// An image's record is somebody else's: root removes nothing that no `install` has put there.
    #[test]
    fn records_name_only_what_is_installed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("image");
        let records = root.join("var/lib/dualq/module");
        fs::create_dir_all(&records).unwrap();
        fs::create_dir_all(root.join("lib/modules")).unwrap();
        fs::write(folder.path().join("passwd"), "x").unwrap();
        let own = "/lib/modules/1/updates/dualq";
        let hand = |file: &str, above: &str| {
            format!(
                "{{\"format\":1,\"release\":\"1\",\"files\":[\"{file}\"],\"folders\":[\"{above}\"]}}"
            )
        };
        let dkms = |name: &str| {
            format!(
                "{{\"format\":1,\"dkms\":\"{name}\",\"release\":\"1\",\"files\":[],\"folders\":[]}}"
            )
        };
        let right = hand(&format!("{own}/sch_dualpi2.ko"), own);
        for (record, why) in [
            (hand("/../passwd", own), "the file"),
            (hand("/etc/passwd", "/etc"), "the file"),
            (hand(&format!("{own}/../../x"), own), "the file"),
            (hand(own, "/lib"), "the file"),
            (hand(&format!("{own}/x"), "/var"), "the folder"),
            (hand(&format!("{own}/x"), "/lib/mod"), "the folder"),
            (hand(&format!("{own}/x"), ""), "the folder"),
            (right.replace("\"1\"", "\"../1\""), "for a kernel"),
            (dkms("other/1"), "DKMS"),
            (dkms("dualq-dualpi2/../1"), "DKMS"),
            (dkms("dualq-dualpi2/1 --all"), "DKMS"),
            ("x".repeat(2 << 20), "longer than"),
        ] {
            fs::write(records.join("1.json"), &record).unwrap();
            let said = Installation::below(Root::new(&root)).remove(None).unwrap_err().to_string();
            assert!(said.contains(why), "{record}: {said}");
            assert!(folder.path().join("passwd").exists());
        }
        // Nor by a link on the way.
        fs::write(records.join("1.json"), &right).unwrap();
        std::os::unix::fs::symlink(folder.path(), root.join("lib/modules/1")).unwrap();
        fs::create_dir_all(folder.path().join("updates/dualq")).unwrap();
        let file = folder.path().join("updates/dualq/sch_dualpi2.ko");
        fs::write(&file, "x").unwrap();
        let said = Installation::below(Root::new(&root)).remove(None).unwrap_err().to_string();
        assert!(said.contains("`depmod 1`"), "{said}");
        assert!(file.exists());
    }

    /// A machine with two kernels, of which the second has a module by DKMS, and a record of it.
    fn machine() -> (tempfile::TempDir, Installation) {
        let folder = tempfile::tempdir().unwrap();
        for release in ["1", "2"] {
            fs::create_dir_all(folder.path().join("lib/modules").join(release)).unwrap();
        }
        let installation = Installation::below(Root::new(folder.path()));
        let name = format!("{PACKAGE}/{VERSION}");
        fs::create_dir_all(folder.path().join(format!("var/lib/dkms/{name}/2"))).unwrap();
        Record::new("2", Some(name)).write(&installation.root).unwrap();
        (folder, installation)
    }

    /// As after a power cut while the record was written anew, and while the module was.
    #[test]
    fn writes_that_were_cut_short_hinder_nothing_and_leave_nothing() {
        let machine = tempfile::tempdir().unwrap();
        let at = |path: &str| machine.path().join(path);
        fs::create_dir_all(at("lib/modules/1")).unwrap();
        let root = Root::new(machine.path());
        let mut record = Record::new("1", None);
        record.add(&root, &format!("{}/{MODULE}.ko", by_hand("1")));
        record.write(&root).unwrap();
        fs::write(at("var/lib/dualq/module/.1.json.dualq"), "{").unwrap();
        fs::create_dir_all(at("lib/modules/1/updates/dualq")).unwrap();
        fs::write(at("lib/modules/1/updates/dualq/.sch_dualpi2.ko.dualq"), "x").unwrap();
        assert_eq!(Record::all(&root).unwrap(), [record.clone()]);
        record.take_back(&root).unwrap();
        record.remove(&root).unwrap();
        assert_eq!(fs::read_dir(at("lib/modules/1")).unwrap().count(), 0);
        assert_eq!(fs::read_dir(at("var/lib")).unwrap().count(), 0);
    }

    #[test]
    fn a_newer_source_does_not_replace_what_dkms_has() {
        let (machine, installation) = machine();
        let newer = machine.path().join("newer");
        fs::create_dir(&newer).unwrap();
        fs::write(newer.join("sch_dualpi2.ko"), "").unwrap();
        fs::write(newer.join("sch_dualpi2.c"), "").unwrap();
        let origin = Origin::Directory { path: "/x".into(), state: None };
        Folder::seal(&newer, &Facts::new("1", "0.0.2-test", origin)).unwrap();
        let before = Record::all(&installation.root).unwrap();
        let said = installation.install(&Folder::open(&newer).unwrap(), Way::Dkms).unwrap_err();
        assert!(said.to_string().contains("dualq-dualpi2/0.0.1-test is there already"), "{said}");
        assert_eq!(Record::all(&installation.root).unwrap(), before);
    }

    #[test]
    fn for_one_kernel_dkms_is_asked_of_that_one() {
        let (_machine, installation) = machine();
        let before = Record::all(&installation.root).unwrap();
        assert!(matches!(installation.remove(Some("1")), Err(ModuleError::NotInstalled { .. })));
        // This machine's DKMS is not asked of an image.
        for (release, words) in [(Some("2"), "-k 2"), (None, "--all")] {
            let said = installation.remove(release).unwrap_err().to_string();
            let command = format!("`dkms remove dualq-dualpi2/0.0.1-test {words}`");
            assert!(said.contains(&command) && said.contains("chroot"), "{said}");
        }
        assert_eq!(Record::all(&installation.root).unwrap(), before);
    }
}
