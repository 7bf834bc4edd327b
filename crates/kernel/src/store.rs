//! Where built kernels are kept.
//!
//! Each has a folder of its own, `<version>-<hash of its options>`, and behind these `-<hash of its sources>` where they are not a
//! package of the distribution, with the executable `linux`, its `config` and `facts.json`. A folder comes and goes by one rename, so
//! what is there is whole.

use std::cmp::Reverse;
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::error::KernelError;
use crate::options::Options;
use crate::source::Origin;
use crate::version::{Version, means};

const EXECUTABLE: &str = "linux";
const CONFIG: &str = "config";
const FACTS: &str = "facts.json";

/// The kernels that were built.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// A kernel that was built.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// As `make kernelversion` says it: `7.3.4`.
    pub version: String,
    /// The program that is this kernel.
    pub executable: PathBuf,
    /// How it was made.
    pub facts: Facts,
    /// That of its folder.
    name: String,
    /// Its `.config`.
    config: String,
}

/// What is recorded beside a kernel.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Facts {
    /// As `make kernelversion` says it.
    pub version: String,
    /// Where its sources came from.
    pub origin: Origin,
    /// When it was built, in seconds since 1970.
    pub built_s: u64,
    /// Which list of options it was configured with.
    pub options: String,
    /// The options of that list that it is without, as `NAME=value`.
    pub lacking: Vec<String>,
    /// The first line of `gcc --version`.
    pub compiler: String,
    /// The size of the executable in bytes; not known of kernels that older versions of dualq built.
    #[serde(default)]
    pub size: Option<u64>,
}

/// A folder of the store that is not that of a whole kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// The folder's name, by which it can be removed.
    pub name: String,
    /// What is wrong with it.
    pub fault: String,
}

/// Where dualq keeps what can be made again: `dualq` below `$XDG_CACHE_HOME`, or below `~/.cache`.
///
/// # Errors
///
/// If neither `XDG_CACHE_HOME` nor `HOME` is an absolute path.
pub fn cache() -> Result<PathBuf, KernelError> {
    // The specification says that relative paths there are to be ignored.
    let absolute =
        |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .ok_or(KernelError::NoCache)?;
    Ok(cache.join("dualq"))
}

impl Store {
    /// The user's store: `dualq/kernels` below `$XDG_CACHE_HOME`, or below `~/.cache`.
    ///
    /// # Errors
    ///
    /// If neither `XDG_CACHE_HOME` nor `HOME` is an absolute path.
    pub fn open() -> Result<Self, KernelError> {
        Ok(Self::at(&cache()?.join("kernels")))
    }

    /// A store elsewhere. The folder need not be there yet.
    #[must_use]
    pub fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// All kernels, the one to be used by default first.
    ///
    /// # Errors
    ///
    /// If the store's folder cannot be read. One that is not there is empty.
    pub fn kernels(&self) -> Result<Vec<Kernel>, KernelError> {
        let mut kernels: Vec<Kernel> = self.folders()?.into_iter().filter_map(Result::ok).collect();
        kernels.sort_by_cached_key(|kernel| {
            let version = kernel.version.parse::<Version>().ok();
            Reverse((kernel.is_current(), version, kernel.facts.built_s))
        });
        Ok(kernels)
    }

    /// What is there but is no whole kernel, by name.
    ///
    /// # Errors
    ///
    /// If the store's folder cannot be read. One that is not there is empty.
    pub fn damaged(&self) -> Result<Vec<Damaged>, KernelError> {
        let mut damaged: Vec<Damaged> =
            self.folders()?.into_iter().filter_map(Result::err).collect();
        damaged.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(damaged)
    }

    fn folders(&self) -> Result<Vec<Result<Kernel, Damaged>>, KernelError> {
        match fs::read_dir(&self.folder) {
            Ok(entries) => {
                Ok(entries.flatten().filter_map(|entry| Kernel::read(&entry.path())).collect())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(KernelError::file("read", &self.folder)(error)),
        }
    }

    /// The kernel to use where none is named: the newest of those with today's options, else of the others.
    ///
    /// # Errors
    ///
    /// If the store's folder cannot be read, or holds nothing but what is damaged.
    pub fn newest(&self) -> Result<Option<Kernel>, KernelError> {
        if let Some(kernel) = self.kernels()?.into_iter().next() {
            return Ok(Some(kernel));
        }
        self.damaged()?.into_iter().next().map_or(Ok(None), |damaged| Err(damaged.into()))
    }

    /// The kernel somebody names by its version, the first numbers of it (`7.3`), or the name of its folder.
    ///
    /// # Errors
    ///
    /// If there is none, or the store's folder cannot be read.
    pub fn find(&self, version: &str) -> Result<Kernel, KernelError> {
        Ok(self.named(version)?.swap_remove(0))
    }

    /// All that [`Store::find`] might mean, at least one.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn named(&self, version: &str) -> Result<Vec<Kernel>, KernelError> {
        let kernels = self.kernels()?;
        let (named, others): (Vec<Kernel>, Vec<Kernel>) =
            kernels.into_iter().partition(|kernel| kernel.is_meant_by(version));
        if !named.is_empty() {
            return Ok(named);
        }
        let mut damaged = self.damaged()?.into_iter();
        if let Some(damaged) = damaged.find(|damaged| damaged.is_meant_by(version)) {
            return Err(damaged.into());
        }
        if others.is_empty() {
            return Err(KernelError::NoKernel);
        }
        let there = others.into_iter().map(|kernel| kernel.version).collect();
        Err(KernelError::Unknown { wanted: version.to_owned(), there })
    }

    /// Removes a kernel. Guests that run it go on.
    ///
    /// # Errors
    ///
    /// If its folder cannot be removed.
    pub fn remove(&self, kernel: &Kernel) -> Result<(), KernelError> {
        self.remove_folder(kernel.name())
    }

    /// Removes what is damaged.
    ///
    /// # Errors
    ///
    /// If its folder cannot be removed.
    pub fn remove_damaged(&self, damaged: &Damaged) -> Result<(), KernelError> {
        self.remove_folder(&damaged.name)
    }

    fn remove_folder(&self, name: &str) -> Result<(), KernelError> {
        let folder = self.folder.join(name);
        let going = self.folder.join(format!(".removed-{name}-{}", std::process::id()));
        fs::rename(&folder, &going)
            .and_then(|()| fs::remove_dir_all(&going))
            .map_err(KernelError::file("remove", &folder))
    }

    /// Takes in a kernel that `folder`, on the same file system, has been filled with by [`Facts::write`].
    pub(crate) fn keep(&self, folder: &Path, facts: &Facts) -> Result<Kernel, KernelError> {
        let kept = self.folder.join(facts.name());
        // Only a damaged one can be there; a whole one would not have been built again.
        if kept.exists() {
            fs::remove_dir_all(&kept).map_err(KernelError::file("remove", &kept))?;
        }
        fs::rename(folder, &kept).map_err(KernelError::file("write", &kept))?;
        let invalid =
            || KernelError::file("read", &kept)(io::Error::from(io::ErrorKind::InvalidData));
        Kernel::read(&kept).ok_or_else(invalid)?.map_err(KernelError::from)
    }
}

impl Facts {
    fn name(&self) -> String {
        let Self { version, options, .. } = self;
        match self.origin.hash() {
            Some(source) => format!("{version}-{options}-{source}"),
            None => format!("{version}-{options}"),
        }
    }

    pub(crate) const fn is_of_package(&self) -> bool {
        matches!(self.origin, Origin::Package { .. })
    }

    /// Fills a folder with a kernel: moves the executable there, and writes its configuration and these facts.
    pub(crate) fn write(
        &self,
        folder: &Path,
        executable: &Path,
        config: &str,
    ) -> Result<(), KernelError> {
        let write = KernelError::file("write", folder);
        let facts = serde_json::to_string_pretty(self).map_err(io::Error::from);
        let written = fs::create_dir(folder)
            .and_then(|()| fs::rename(executable, folder.join(EXECUTABLE)))
            .and_then(|()| fs::write(folder.join(CONFIG), config))
            .and_then(|()| fs::write(folder.join(FACTS), facts? + "\n"));
        written.map_err(write)
    }
}

impl Kernel {
    /// `None` if this is no kernel's folder at all.
    fn read(folder: &Path) -> Option<Result<Self, Damaged>> {
        let name = folder.file_name()?.to_str()?;
        // Work under way, what is being removed, and the log.
        if name.starts_with('.') || !folder.is_dir() {
            return None;
        }
        let name = name.to_owned();
        Some(Self::read_whole(folder, &name).map_err(|fault| Damaged { name, fault }))
    }

    fn read_whole(folder: &Path, name: &str) -> Result<Self, String> {
        let cannot = |name: &str, error: &dyn std::fmt::Display| format!("{name}: {error}");
        let facts = fs::read(folder.join(FACTS)).map_err(|error| cannot(FACTS, &error.kind()))?;
        let facts: Facts = serde_json::from_slice(&facts).map_err(|error| cannot(FACTS, &error))?;
        let executable = folder.join(EXECUTABLE);
        let there = executable.metadata().map_err(|error| cannot(EXECUTABLE, &error.kind()))?;
        let (is, was) = (there.len(), facts.size.unwrap_or(there.len()));
        if is != was || !there.is_file() {
            return Err(format!(
                "{EXECUTABLE}: it has {is} bytes, and had {was} when it was built"
            ));
        }
        let config = fs::read_to_string(folder.join(CONFIG))
            .map_err(|error| cannot(CONFIG, &error.kind()))?;
        let (version, name) = (facts.version.clone(), name.to_owned());
        Ok(Self { version, executable, facts, name, config })
    }

    /// The name of its folder: no other kernel has it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What tells it from others in what came of it: its version, where it is of a distribution's sources; else its name, as nobody
    /// knows what own sources make of a version.
    #[must_use]
    pub fn title(&self) -> &str {
        if self.facts.is_of_package() { &self.version } else { &self.name }
    }

    /// Whether it was configured with the options that this version of dualq asks for.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.facts.options == Options::ours().hash()
    }

    pub(crate) fn is_meant_by(&self, wanted: &str) -> bool {
        means(wanted, &self.version) || self.name == wanted
    }

    /// The size of the executable, in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.executable.metadata().map_or(0, |metadata| metadata.len())
    }

    /// The queue disciplines that it has, by tc's names, in alphabetical order.
    #[must_use]
    pub fn qdiscs(&self) -> Vec<String> {
        Config(&self.config).qdiscs()
    }

    /// The congestion controls that it has, by the kernel's names, in alphabetical order.
    #[must_use]
    pub fn congestion_controls(&self) -> Vec<String> {
        Config(&self.config).congestion_controls()
    }
}

impl Damaged {
    /// Whether somebody means it by a version, the first numbers of one, or its name.
    #[must_use]
    pub fn is_meant_by(&self, wanted: &str) -> bool {
        let version = self.name.rsplit_once('-').map_or(self.name.as_str(), |(version, _)| version);
        means(wanted, version) || self.name == wanted
    }
}

impl From<Damaged> for KernelError {
    fn from(Damaged { name, fault }: Damaged) -> Self {
        Self::Damaged { name, fault }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(store: &Store, version: &str, options: &str, built_s: u64) {
        let package_version = format!("{version}-1");
        let origin = Origin::Package { name: "linux-source".to_owned(), package_version };
        add_of(store, origin, version, options, built_s);
    }

    fn add_of(store: &Store, origin: Origin, version: &str, options: &str, built_s: u64) {
        let facts = Facts {
            version: version.to_owned(),
            origin,
            built_s,
            options: options.to_owned(),
            lacking: Vec::new(),
            compiler: "gcc".to_owned(),
            size: Some(4),
        };
        fs::create_dir_all(store.folder()).unwrap();
        let executable = store.folder().join(".linux");
        fs::write(&executable, "\x7fELF").unwrap();
        let config = "CONFIG_NET_SCHED=y\nCONFIG_NET_SCH_FQ=y\nCONFIG_TCP_CONG_CUBIC=y\n";
        facts.write(&store.folder().join(".new"), &executable, config).unwrap();
        store.keep(&store.folder().join(".new"), &facts).unwrap();
    }

    fn names(kernels: &[Kernel]) -> Vec<&str> {
        kernels.iter().map(Kernel::name).collect()
    }

    #[test]
    fn the_newest_with_the_options_of_today_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(&folder.path().join("not/there/yet"));
        assert!(store.newest().unwrap().is_none());
        let ours = Options::ours().hash();
        add(&store, "6.9.1", &ours, 30);
        add(&store, "6.12.2", &ours, 10);
        add(&store, "7.3.4", "00000000", 20);
        assert_eq!(
            names(&store.kernels().unwrap()),
            [&format!("6.12.2-{ours}"), &format!("6.9.1-{ours}"), "7.3.4-00000000"]
        );
        let newest = store.newest().unwrap().unwrap();
        assert_eq!((newest.version.as_str(), newest.is_current()), ("6.12.2", true));
        assert!(newest.qdiscs().contains(&"fq".to_owned()));
        assert_eq!(newest.congestion_controls(), ["cubic", "reno"]);
    }

    #[test]
    fn kernels_are_found_by_the_names_people_give_them() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        assert_eq!(
            store.find("7").unwrap_err().to_string(),
            "there is no kernel yet; `dualq kernel build` makes one in some minutes"
        );
        add(&store, "7.3.4", "00000000", 1);
        add(&store, "7.3.5", "00000000", 1);
        for (wanted, found) in [("7.3", "7.3.5"), ("7.3.4", "7.3.4"), ("7.3.4-00000000", "7.3.4")] {
            assert_eq!(store.find(wanted).unwrap().version, found);
        }
        assert_eq!(
            store.find("7.4").unwrap_err().to_string(),
            "there is no kernel 7.4; there are: 7.3.5, 7.3.4"
        );
        store.remove(&store.find("7.3.5").unwrap()).unwrap();
        assert_eq!(names(&store.kernels().unwrap()), ["7.3.4-00000000"]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn kernels_of_one_version_stand_side_by_side() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        let tree = |state: Option<&str>| Origin::Directory {
            path: "/src/linux".into(),
            state: state.map(str::to_owned),
        };
        add(&store, "7.3.4", "00000000", 1);
        add_of(&store, tree(Some("01234567")), "7.3.4", "00000000", 2);
        add_of(&store, tree(Some("89abcdef")), "7.3.4", "00000000", 3);
        // As older versions of dualq kept one.
        add_of(&store, tree(None), "7.3.3", "00000000", 4);
        let old = store.find("7.3.3").unwrap();
        fs::rename(folder.path().join(old.name()), folder.path().join("7.3.3-00000000")).unwrap();
        let kernels = store.kernels().unwrap();
        let names = names(&kernels);
        assert_eq!((names.len(), names[2], names[3]), (4, "7.3.4-00000000", "7.3.3-00000000"));
        for name in &names {
            assert_eq!(store.find(name).unwrap().name(), *name);
            assert_eq!(store.named(name).unwrap().len(), 1);
        }
        let titles: Vec<&str> = kernels.iter().map(Kernel::title).collect();
        assert_eq!(titles, [names[0], names[1], "7.3.4", "7.3.3-00000000"]);
        store.remove(&kernels[0]).unwrap();
        store.remove(&kernels[3]).unwrap();
        let left: Vec<String> =
            store.kernels().unwrap().iter().map(|kernel| kernel.name().to_owned()).collect();
        assert_eq!(left, [names[1], names[2]]);
    }

    #[test]
    fn what_is_not_whole_is_damaged_and_removable() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        for patch in 1..=5 {
            add(&store, &format!("7.3.{patch}"), "00000000", 1);
        }
        let path = |name: &str| folder.path().join(name);
        fs::remove_file(path("7.3.1-00000000/linux")).unwrap();
        fs::write(path("7.3.2-00000000/linux"), "\x7fEL").unwrap();
        fs::write(path("7.3.3-00000000/facts.json"), "{").unwrap();
        fs::remove_file(path("7.3.4-00000000/facts.json")).unwrap();
        fs::rename(path("7.3.5-00000000"), path(".work")).unwrap();
        assert!(store.kernels().unwrap().is_empty());
        let damaged = store.damaged().unwrap();
        let faults: Vec<&str> = damaged.iter().map(|damaged| damaged.fault.as_str()).collect();
        assert_eq!(faults[0], "linux: entity not found");
        assert_eq!(faults[1], "linux: it has 3 bytes, and had 4 when it was built");
        assert!(faults[2].starts_with("facts.json: EOF while parsing"), "{faults:?}");
        assert_eq!(faults[3], "facts.json: entity not found");
        let advice = "the kernel 7.3.2-00000000 is damaged (linux: it has 3 bytes, and had 4 when it was built): \
                      dualq kernel remove 7.3.2-00000000; dualq kernel build";
        assert_eq!(store.find("7.3.2").unwrap_err().to_string(), advice);
        assert!(matches!(store.newest(), Err(KernelError::Damaged { .. })));
        assert!(matches!(store.find("7.4"), Err(KernelError::NoKernel)));
        for damaged in &damaged {
            store.remove_damaged(damaged).unwrap();
        }
        assert!(store.damaged().unwrap().is_empty());

        // Kernels that were built before their size was recorded are taken as they are.
        add(&store, "7.3.6", "00000000", 1);
        let facts = path("7.3.6-00000000/facts.json");
        let text = fs::read_to_string(&facts).unwrap();
        assert!(text.contains("\"size\": 4"));
        fs::write(facts, text.replace(",\n  \"size\": 4", "")).unwrap();
        assert_eq!(store.kernels().unwrap().len(), 1);
    }
}
