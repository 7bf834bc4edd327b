//! The distribution's source packages, through apt.
//!
//! On Debian the suite that a system runs may be too old for dualpi2. Newer suites are then asked with lists and caches
//! of our own: nothing of the system's own apt is touched, and no privileges are needed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Origin, Tree};
use crate::error::KernelError;
use crate::process::Runner;
use crate::tools::{families, value};
use crate::version::{FIRST_WITH_DUALPI2, Version, means};

/// Where newer packages are looked for on Debian, in this order. Those of the release's own backports fit it and are tested
/// longer; unstable is there at all times, and has no backports.
fn newer_suites(os_release: &str) -> Vec<String> {
    // Not what is only like it: Ubuntu's packages have other keys and names.
    if families(os_release).first().is_none_or(|id| id != "debian") {
        return Vec::new();
    }
    let codename = value(os_release, "VERSION_CODENAME");
    let backports =
        (!matches!(codename.as_str(), "" | "sid")).then(|| format!("{codename}-backports"));
    backports.into_iter().chain(["sid".to_owned()]).collect()
}

const DEBIAN_MIRROR: &str = "http://deb.debian.org/debian/";
const DEBIAN_KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Which sources are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wanted<'a> {
    /// The newest, of a newer suite where the system's own have no dualpi2.
    Newest,
    /// Those of this version, or of one that begins so.
    Version(&'a str),
    /// The newest, and none that is older than this.
    AtLeast(u32, u32),
}

impl<'a> Wanted<'a> {
    const fn version(self) -> Option<&'a str> {
        match self {
            Self::Version(version) => Some(version),
            Self::Newest | Self::AtLeast(..) => None,
        }
    }

    /// Whether no newer suite has to be asked after one that has these.
    fn is_met_by(self, found: &Version) -> bool {
        match self {
            Self::Newest => *found >= FIRST_WITH_DUALPI2,
            Self::Version(_) => true,
            Self::AtLeast(version, patchlevel) => *found >= Version::release(version, patchlevel),
        }
    }
}

/// A source package that can be downloaded.
pub(crate) struct Package {
    name: String,
    package_version: String,
    /// Of Linux itself.
    pub(crate) version: Version,
    /// In bytes.
    pub(crate) size: u64,
    apt: Apt,
}

/// A way to call apt.
#[derive(Clone)]
struct Apt {
    /// `None` for the system's own sources.
    suite: Option<String>,
    options: Vec<String>,
}

impl Apt {
    fn system() -> Self {
        Self { suite: None, options: Vec::new() }
    }

    /// Of another suite; its lists come to be in `folder`, which is not there yet.
    fn of_suite(suite: &str, folder: &Path, runner: &mut Runner<'_>) -> Result<Self, KernelError> {
        fs::create_dir_all(folder.join("lists/partial"))
            .and_then(|()| fs::create_dir_all(folder.join("cache/archives/partial")))
            .map_err(KernelError::file("write", folder))?;
        let mut mirrors = Command::new("apt-get");
        mirrors.args(["indextargets", "--format", "$(ORIGIN) $(COMPONENT) $(SUITE) $(REPO_URI)"]);
        mirrors.arg("Created-By: Packages");
        // A system without lists has no answer to this.
        let mirrors = runner.answer("asking apt for its sources", &mut mirrors).unwrap_or_default();
        let signed = match Path::new(DEBIAN_KEYRING).exists() {
            true => format!("[signed-by={DEBIAN_KEYRING}] "),
            false => String::new(),
        };
        let list = folder.join("sources.list");
        fs::write(&list, format!("deb {signed}{} {suite} main\n", mirror(&mirrors)))
            .map_err(KernelError::file("write", &list))?;
        let options = [
            format!("Dir::Etc::sourcelist={}", list.display()),
            "Dir::Etc::sourceparts=-".to_owned(),
            format!("Dir::State::lists={}", folder.join("lists").display()),
            format!("Dir::Cache={}", folder.join("cache").display()),
            // Translations and the software centre's data are not needed.
            "Acquire::Languages=none".to_owned(),
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".to_owned(),
            // For root, apt would become another user, who cannot write below root's home.
            "APT::Sandbox::User=root".to_owned(),
            // Else a mirror out of reach would be no more than a warning.
            "APT::Update::Error-Mode=any".to_owned(),
        ];
        let options = options.into_iter().flat_map(|option| ["-o".to_owned(), option]).collect();
        let apt = Self { suite: Some(suite.to_owned()), options };
        let doing = format!("reading the list of packages of {suite}");
        runner.run(&doing, apt.command("apt-get").arg("update"), &mut |_| {})?;
        Ok(apt)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.args(&self.options);
        command
    }

    /// The newest package that fits, and all that there are.
    fn search(
        &self,
        wanted: Option<&str>,
        runner: &mut Runner<'_>,
    ) -> Result<(Option<Package>, Vec<String>), KernelError> {
        let mut search = self.command("apt-cache");
        search.args(["search", "--names-only", "^linux-source-"]);
        let answer = runner.answer("asking apt for linux-source packages", &mut search)?;
        let there = versions(&answer);
        let Some(short) = newest(&there, wanted) else { return Ok((None, there)) };
        let name = format!("linux-source-{short}");
        let mut show = self.command("apt-cache");
        show.args(["show", "--no-all-versions", &name]);
        let shown = runner.answer(&format!("asking apt for {name}"), &mut show)?;
        let package = field(&shown, "Version").and_then(|package_version| {
            let version = upstream(package_version)?;
            let size = field(&shown, "Size").and_then(|size| size.parse().ok()).unwrap_or(0);
            let (package_version, apt) = (package_version.to_owned(), self.clone());
            Some(Package { name, package_version, version, size, apt })
        });
        let fits = |package: &Package| {
            wanted.is_none_or(|wanted| means(wanted, &package.version.to_string()))
        };
        Ok((package.filter(fits), there))
    }
}

impl Package {
    /// The newest that fits: of the system's own suites, else of a newer one. `folder` is for lists, and not there yet.
    pub(crate) fn find(
        wanted: Wanted<'_>,
        folder: &Path,
        runner: &mut Runner<'_>,
    ) -> Result<Self, KernelError> {
        let os_release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        let suites = newer_suites(&os_release);
        let (mut all, mut older, mut failed) = (Vec::new(), None, None);
        for suite in [None].into_iter().chain(suites.iter().map(Some)) {
            let apt = match suite {
                None => Ok(Apt::system()),
                Some(suite) => Apt::of_suite(suite, &folder.join(suite), runner),
            };
            let (package, there) = match apt.and_then(|apt| apt.search(wanted.version(), runner)) {
                Ok(answer) => answer,
                Err(KernelError::Interrupted) => return Err(KernelError::Interrupted),
                Err(error) => {
                    // The next suite may answer.
                    failed = Some(error);
                    continue;
                }
            };
            for version in there {
                if !all.contains(&version) {
                    all.push(version);
                }
            }
            match package {
                Some(package) if wanted.is_met_by(&package.version) => return Ok(package),
                Some(package) => older = older.or(Some(package)),
                None => {}
            }
        }
        // Where the newer suites could not be asked, an older package is not what is wanted.
        if let Some(error) = failed {
            return Err(error);
        }
        let which = match wanted {
            Wanted::Newest => String::new(),
            Wanted::Version(version) => format!(" of Linux {version}"),
            Wanted::AtLeast(version, patchlevel) => {
                format!(" of Linux {version}.{patchlevel} or later")
            }
        };
        // Of nothing else is it known that older sources do as well.
        if let Some(package) = older.filter(|_| matches!(wanted, Wanted::Newest)) {
            return Ok(package);
        }
        let there = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
        let reason = format!("apt has no package linux-source{which} (there are: {there})");
        Err(KernelError::NoPackage { reason })
    }

    /// What is going to be downloaded, for people.
    pub(crate) fn title(&self) -> String {
        let Self { name, package_version, size, apt, .. } = self;
        let suite = apt.suite.as_ref().map_or(String::new(), |suite| format!(" from {suite}"));
        format!("{name} {package_version}{suite} ({} MB)", size.div_ceil(1_000_000))
    }

    /// Downloads it and takes the tarball out. `folder` is not there yet.
    pub(crate) fn download(
        &self,
        folder: &Path,
        runner: &mut Runner<'_>,
    ) -> Result<PathBuf, KernelError> {
        fs::create_dir(folder).map_err(KernelError::file("write", folder))?;
        let mut download = self.apt.command("apt-get");
        // That very version, which was shown and will be recorded, whatever apt would choose by now.
        let wanted = format!("{}={}", self.name, self.package_version);
        download.args(["download", &wanted]).current_dir(folder);
        runner.run(&format!("downloading {}", self.name), &mut download, &mut |_| {})?;
        let missing = |what: &str| KernelError::NoPackage {
            reason: format!("the package {} has no {what}", self.name),
        };
        let archive =
            files(folder).into_iter().find(|path| path.extension() == Some("deb".as_ref()));
        let archive = archive.ok_or_else(|| missing("archive"))?;
        let mut extract = Command::new("dpkg-deb");
        extract.arg("-x").arg(&archive).arg(folder);
        runner.run(&format!("unpacking {}", archive.display()), &mut extract, &mut |_| {})?;
        // Debian has it there, Ubuntu in a folder there.
        let sources = folder.join("usr/src");
        let below = files(&sources).into_iter().flat_map(|path| files(&path));
        let mut tarballs = files(&sources).into_iter().chain(below);
        tarballs
            .find(|path| super::tree::compression(path).is_some() && !path.is_symlink())
            .ok_or_else(|| missing("tarball below usr/src"))
    }

    /// Unpacks what was downloaded.
    pub(crate) fn unpack(
        &self,
        tarball: &Path,
        into: &Path,
        runner: &mut Runner<'_>,
    ) -> Result<Tree, KernelError> {
        Tree::unpack(tarball, into, self.origin(), runner)
    }

    pub(crate) fn origin(&self) -> Origin {
        let (name, package_version) = (self.name.clone(), self.package_version.clone());
        Origin::Package { name, package_version }
    }
}

/// What a folder holds; nothing if it is none.
fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .map_or(Vec::new(), |entries| entries.flatten().map(|entry| entry.path()).collect())
}

/// The versions in the names of packages, from the answer of `apt-cache search`.
fn versions(answer: &str) -> Vec<String> {
    let names = answer.lines().filter_map(|line| line.split(" - ").next());
    let versions = names.filter_map(|name| name.trim().strip_prefix("linux-source-"));
    // Not `linux-source-6.1-rt` and the like.
    let plain = versions.filter(|version| version.chars().all(|c| c.is_ascii_digit() || c == '.'));
    plain.filter(|version| version.parse::<Version>().is_ok()).map(str::to_owned).collect()
}

/// The newest of those that can be what is wanted: `7.3` stands for all of 7.3, of which one may be wanted.
fn newest<'a>(versions: &'a [String], wanted: Option<&str>) -> Option<&'a str> {
    let fitting = versions.iter().filter(|version| {
        wanted.is_none_or(|wanted| means(wanted, version) || means(version, wanted))
    });
    fitting.max_by_key(|version| version.parse::<Version>().ok()).map(String::as_str)
}

/// A field of what `apt-cache show` prints.
fn field<'a>(shown: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = shown.lines().filter_map(|line| line.split_once(": "));
    fields.find(|(key, _)| *key == name).map(|(_, value)| value.trim())
}

/// Linux's own version in a package's: 7.3.4 of `7.3.4-1~bpo13+1`, 7.4.0-rc1 of `7.4~rc1-1~exp1`.
fn upstream(package_version: &str) -> Option<Version> {
    let upstream = package_version.rsplit_once('-').map_or(package_version, |(front, _)| front);
    upstream.replace('~', "-").parse().ok()
}

/// The mirror that the system uses, from lines of origin, component, suite and address.
fn mirror(lines: &str) -> &str {
    let mut mirrors = lines.lines().filter_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["Debian", "main", suite, address] if !suite.contains("security") => Some(address),
            _ => None,
        }
    });
    mirrors.next().unwrap_or(DEBIAN_MIRROR)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEBIAN: &str = "\
linux-source-6.1 - Linux kernel source for version 6.1 with Debian patches
linux-source-7.3 - Linux kernel source for version 7.3 with Debian patches
W: a warning - of apt
linux-source-6.12 - Linux kernel source for version 6.12 with Debian patches
linux-source-7.4-rt - something else
";

    #[test]
    fn the_newest_of_apts_answers_is_chosen() {
        let there = versions(DEBIAN);
        assert_eq!(there, ["6.1", "7.3", "6.12"]);
        assert_eq!(newest(&there, None), Some("7.3"));
        assert_eq!(newest(&there, Some("6")), Some("6.12"));
        assert_eq!(newest(&there, Some("6.1")), Some("6.1"));
        assert_eq!(newest(&there, Some("7.3.4")), Some("7.3"));
        assert_eq!(newest(&there, Some("7.4")), None);
        let ubuntu =
            "linux-source-6.8.0 - Linux kernel source for version 6.8.0 with Ubuntu patches\n";
        assert_eq!(newest(&versions(ubuntu), Some("6.8")), Some("6.8.0"));
        assert_eq!(newest(&versions(""), None), None);
    }

    #[test]
    fn packages_tell_the_version_of_linux() {
        let shown = "Package: linux-source-7.3\nVersion: 7.3.4-1~bpo13+1\nSize: 166780612\n";
        let version = |package_version| upstream(package_version).unwrap().to_string();
        assert_eq!(field(shown, "Version"), Some("7.3.4-1~bpo13+1"));
        assert_eq!(field(shown, "Size"), Some("166780612"));
        assert_eq!(version("7.3.4-1~bpo13+1"), "7.3.4");
        assert_eq!(version("6.8.0-49.49"), "6.8.0");
        assert_eq!(version("7.4~rc1-1~exp1"), "7.4.0-rc1");
        assert_eq!(upstream("nonsense"), None);
    }

    #[test]
    fn what_is_older_than_wanted_ends_no_search() {
        let met = |wanted: Wanted<'_>, found: &str| wanted.is_met_by(&found.parse().unwrap());
        let least = Wanted::AtLeast(7, 2);
        assert!(met(least, "7.2.0") && met(least, "7.10.1") && !met(least, "7.2.0-rc3"));
        for found in ["6.8.0", "6.17.0", "7.1.9"] {
            assert!(!met(least, found), "{found}");
        }
        assert!(met(Wanted::Newest, "6.17.0") && !met(Wanted::Newest, "6.16.9"));
        assert!(met(Wanted::Version("6.1"), "6.1.192"));
    }

    #[test]
    fn newer_suites_are_those_of_the_release() {
        let trixie = "ID=debian\nVERSION_CODENAME=trixie\n";
        assert_eq!(newer_suites(trixie), ["trixie-backports", "sid"]);
        let next = "VERSION_CODENAME=\"forky\"\nID=debian\n";
        assert_eq!(newer_suites(next), ["forky-backports", "sid"]);
        assert_eq!(newer_suites("ID=debian\n"), ["sid"]);
        let like = "ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble\n";
        assert!(newer_suites(like).is_empty());
    }

    #[test]
    fn the_systems_own_mirror_is_used() {
        let lines = "Debian main oldstable-security http://security.example/\n\
            Debian main oldstable http://mirror.example/debian/\n";
        assert_eq!(mirror(lines), "http://mirror.example/debian/");
        assert_eq!(mirror("Node.js main nodistro https://deb.example/\n"), DEBIAN_MIRROR);
    }
}
