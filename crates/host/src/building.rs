//! What stands in the way of a module that somebody builds for a kernel: `dualq module`.

use crate::facts::{Availability, Building, Facts, Kernel, MOK};

/// The oldest Linux for which a module of today's `sch_dualpi2.c` was built.
pub const OLDEST: (u32, u32) = (5, 10);

/// The oldest Linux whose `sch_dualpi2.c` has the form that is built, and the fixes that came after the merge.
pub const OLDEST_SOURCE: (u32, u32) = (7, 2);

/// What an obstacle keeps from happening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stops {
    /// It can be built, and may work.
    Nothing,
    /// It can be built, and the kernel will not take it.
    Loading,
    /// It can be built of sources that somebody gives: the distribution's own do not serve.
    Downloading,
    /// It cannot be built.
    Building,
}

/// Something that stands in the way, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// What it keeps from happening.
    pub stops: Stops,
    /// In one line, what it is and what would be right.
    pub text: String,
}

/// Those who have apt and Debian's names of packages, by `ID` of os-release(5).
const APT: [&str; 6] = [DEBIAN, "ubuntu", "linuxmint", "pop", "kali", "devuan"];
const DEBIAN: &str = "debian";

/// Headers by `ID` of os-release(5): the package, and the command that installs it. `{}` is the kernel's release, `{flavour}` its last part.
const HEADERS: [(&[&str], &str); 6] = [
    (&APT, "apt-get install linux-headers-{}"),
    (
        &["fedora", "rhel", "centos", "rocky", "almalinux", "ol", "amzn"],
        "dnf install kernel-devel-{}",
    ),
    (&["arch", "manjaro", "endeavouros"], "pacman -S {arch}"),
    (&["opensuse-tumbleweed", "opensuse-leap", "sles"], "zypper install kernel-{flavour}-devel"),
    (&["alpine"], "apk add linux-{flavour}-dev"),
    (&["void"], "xbps-install linux-headers"),
];

/// The architectures of Debian's kernels, and what else their releases end with.
const DEBIAN_ENDS: [&str; 18] = [
    "amd64",
    "arm64",
    "armmp",
    "lpae",
    "armel",
    "686",
    "pae",
    "i386",
    "riscv64",
    "loong64",
    "s390x",
    "powerpc64le",
    "powerpc64",
    "powerpc",
    "loongson",
    "malta",
    "v8",
    "2712",
];

/// Whether Debian, Ubuntu or those who follow them have kernels of such a release: Debian's end with their architecture (`6.12.9-amd64`,
/// `6.1.0-28-cloud-amd64`, `6.6.51+rpt-rpi-v8`), Ubuntu's have a number behind the version and a flavour behind that (`6.8.0-49-generic`).
/// Of any other kernel no archive has the headers.
fn is_debians(release: &str) -> bool {
    let parts: Vec<&str> = release.split('-').collect();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let is_version =
        parts[0].split('+').next().is_some_and(|version| version.split('.').all(is_number));
    is_version
        && match parts.as_slice() {
            [_, middle @ .., last] => {
                DEBIAN_ENDS.contains(last) || middle.first().is_some_and(|number| is_number(number))
            }
            _ => false,
        }
}

/// The command that installs a kernel's headers, if the distribution has them.
fn install(distribution: &str, release: &str) -> Option<String> {
    let (_, command) = HEADERS.iter().find(|(ids, _)| ids.contains(&distribution))?;
    if command.starts_with("apt-get") && !is_debians(release) {
        return None;
    }
    let flavour = release.rsplit('-').next().unwrap_or_default();
    // Arch's kernels are told apart by the end of their release: 6.12.9-1-lts.
    let arch = match flavour {
        "lts" | "zen" | "hardened" | "rt" => format!("linux-{flavour}-headers"),
        _ => "linux-headers".to_owned(),
    };
    let command = command.replace("{flavour}", flavour).replace("{arch}", &arch);
    Some(command.replace("{}", release))
}

fn too_old(kernel: &Kernel) -> Option<Obstacle> {
    let ((version, patchlevel), release) = (OLDEST, &kernel.release);
    (kernel.version() < OLDEST).then(|| Obstacle {
        stops: Stops::Building,
        text: format!(
            "Linux {release} is older than {version}.{patchlevel}, the oldest for which the module was built: take a newer kernel"
        ),
    })
}

/// Why the distribution's own sources do not serve, if that is known: only of Debian newer suites are asked, and the sources of a release are not newer
/// than its kernel.
fn no_source(distribution: &str, kernel: &Kernel) -> Option<Obstacle> {
    let (version, patchlevel) = OLDEST_SOURCE;
    let why = if APT.contains(&distribution) {
        let is_older = distribution != DEBIAN && kernel.version() < OLDEST_SOURCE;
        is_older.then(|| format!("the sources that apt has for such a kernel are older than Linux {version}.{patchlevel}"))
    } else {
        let is_known = HEADERS.iter().any(|(ids, _)| ids.contains(&distribution));
        is_known.then(|| "there is no apt here to get Linux's sources with".to_owned())
    };
    let text = format!(
        "{}: give `dualq module build` --source a tarball of Linux {version}.{patchlevel} or later from kernel.org",
        why?
    );
    Some(Obstacle { stops: Stops::Downloading, text })
}

/// The major version of a compiler, by what it says of itself: 12 of `gcc-12 (Debian 12.2.0-14) 12.2.0`.
fn major(compiler: &str) -> Option<u32> {
    compiler.rsplit(' ').next()?.split('.').next()?.parse().ok()
}

impl Building {
    /// The compiler to be named to make, where the headers' own choice is not installed and another one is.
    #[must_use]
    pub fn other_compiler(&self) -> Option<String> {
        let wanted = major(self.compiler.as_deref()?)?;
        let newest = self.gcc.last().filter(|_| !self.gcc.contains(&wanted))?;
        Some(format!("gcc-{newest}"))
    }

    /// What stands in the way, on a machine of the distribution `distribution` (`ID` of os-release(5)).
    #[must_use]
    pub fn obstacles(&self, kernel: &Kernel, distribution: &str) -> Vec<Obstacle> {
        let mut found = Vec::new();
        let mut say = |stops, text: String| found.push(Obstacle { stops, text });
        let release = &kernel.release;
        let option = |name: &str| kernel.options.get(name).map_or("n", String::as_str);
        if matches!(option("NET_SCH_DUALPI2"), "y" | "m") {
            say(
                Stops::Building,
                format!("Linux {release} has dualpi2 of its own: there is nothing to build"),
            );
        }
        if let Some(Obstacle { stops, text }) = too_old(kernel) {
            say(stops, text);
        }
        match (&self.headers, install(distribution, release)) {
            (Some(_), _) => {}
            (None, Some(command)) => {
                say(
                    Stops::Building,
                    format!("the headers of Linux {release} are missing: {command}"),
                );
            }
            (None, None) => say(
                Stops::Building,
                format!(
                    "the headers of Linux {release} are missing: install their package from wherever this kernel came, or name by --headers the folder in \
                     which it was built"
                ),
            ),
        }
        if !self.make {
            say(Stops::Building, "make is missing: install it".to_owned());
        }
        match self.compiler.as_deref() {
            Some(clang) if clang.contains("clang") => say(
                Stops::Building,
                format!(
                    "Linux {release} was built by {clang}; modules for such kernels were not tried"
                ),
            ),
            compiler => self.compilers(compiler.unwrap_or_default(), release, &mut say),
        }
        if let Some(Obstacle { stops, text }) = no_source(distribution, kernel) {
            say(stops, text);
        }
        self.loading(kernel, &mut say);
        found
    }

    fn compilers(&self, compiler: &str, release: &str, say: &mut dyn FnMut(Stops, String)) {
        let wanted = major(compiler);
        match (self.gcc.as_slice(), wanted) {
            ([], Some(major)) => say(
                Stops::Building,
                format!("gcc is missing: install gcc {major}, by which Linux {release} was built"),
            ),
            ([], None) => say(Stops::Building, "gcc is missing: install it".to_owned()),
            (there, Some(major)) if !there.contains(&major) => {
                let there: Vec<String> = there.iter().map(u32::to_string).collect();
                let text = format!(
                    "Linux {release} was built by gcc {major}, here is gcc {}: it mostly works; to be sure, install gcc {major}",
                    there.join(", ")
                );
                say(Stops::Nothing, text);
            }
            _ => {}
        }
    }

    /// What is known of the machine that would load it.
    fn loading(&self, kernel: &Kernel, say: &mut dyn FnMut(Stops, String)) {
        let signing = if self.key {
            format!(
                "DKMS signs it with the key of {MOK}, if the firmware knows that: mokutil --test-key {MOK}"
            )
        } else {
            format!(
                "sign it with a machine owner's key; DKMS makes one and signs with it, and `mokutil --import {MOK}` and a restart make it known"
            )
        };
        let locked = self.lockdown.as_deref().is_some_and(|mode| mode != "none");
        if self.secure_boot == Some(true) {
            say(
                Stops::Loading,
                format!("Secure Boot is on, and lets no unsigned module in: {signing}"),
            );
        } else if locked {
            say(
                Stops::Loading,
                format!(
                    "the kernel is locked down ({}), and lets no unsigned module in: {signing}",
                    self.lockdown.as_deref().unwrap_or_default()
                ),
            );
        } else if self.signatures
            || kernel.options.get("MODULE_SIG_FORCE").is_some_and(|force| force == "y")
        {
            say(
                Stops::Loading,
                "the kernel takes signed modules only (module.sig_enforce): sign it with a key that it knows".to_owned(),
            );
        }
        if !kernel.modules {
            say(
                Stops::Loading,
                "the running kernel loads no modules here: it has none, kernel.modules_disabled is set, or this is a container".to_owned(),
            );
        }
    }
}

/// Whether a module of dualpi2 could be had here by building it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Buildable {
    /// By all that is known, nothing stands in the way.
    Yes,
    /// These do.
    No(Vec<Obstacle>),
    /// The facts do not tell: they are of a dualq that did not look.
    Unknown,
}

impl Buildable {
    /// How the kernel comes to dualpi2 then: half a sentence.
    #[must_use]
    pub fn advice(&self) -> String {
        match self {
            Self::Yes => "build dualpi2 for this kernel (`dualq module build`, then `dualq module install` as root)".to_owned(),
            Self::No(obstacles) => {
                let texts: Vec<&str> = obstacles.iter().map(|it| it.text.as_str()).collect();
                format!("build dualpi2 for this kernel with `dualq module`, when what stands in the way is gone ({})", texts.join("; "))
            }
            Self::Unknown => "build dualpi2 for this kernel (`dualq module build`, which says what stands in the way)".to_owned(),
        }
    }
}

impl Facts {
    /// Whether `dualq module build` and `install` would give this kernel a dualpi2; nothing if it has one, or if nobody knows.
    #[must_use]
    pub fn buildable(&self) -> Option<Buildable> {
        if self.qdiscs.get("dualpi2") != Some(&Availability::Absent) {
            return None;
        }
        let Some(building) = &self.kernel.building else {
            let known = too_old(&self.kernel);
            return Some(known.map_or(Buildable::Unknown, |known| Buildable::No(vec![known])));
        };
        let obstacles = building.obstacles(&self.kernel, &self.distribution.id);
        let real = obstacles.into_iter().filter(|obstacle| obstacle.stops != Stops::Nothing);
        let real: Vec<Obstacle> = real.collect();
        Some(if real.is_empty() { Buildable::Yes } else { Buildable::No(real) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(release: &str) -> Kernel {
        Kernel { release: release.to_owned(), modules: true, ..Kernel::default() }
    }

    /// A machine on which nothing stands in the way.
    fn ready() -> Building {
        Building {
            headers: Some("/lib/modules/6.12.9-amd64/build".to_owned()),
            compiler: Some("gcc-14 (Debian 14.2.0-19) 14.2.0".to_owned()),
            gcc: vec![14],
            make: true,
            secure_boot: Some(false),
            lockdown: Some("none".to_owned()),
            ..Building::default()
        }
    }

    fn said(building: &Building, kernel: &Kernel) -> Vec<(Stops, String)> {
        let obstacles = building.obstacles(kernel, "debian").into_iter();
        obstacles.map(|obstacle| (obstacle.stops, obstacle.text)).collect()
    }

    #[test]
    fn nothing_is_said_where_nothing_stands_in_the_way() {
        assert_eq!(said(&ready(), &kernel("6.12.9-amd64")), []);
        assert_eq!(ready().other_compiler(), None);
    }

    #[test]
    fn each_obstacle_has_its_line() {
        let linux = kernel("6.12.9-amd64");
        let first = |building: Building| said(&building, &linux).remove(0);
        let (stops, text) = first(Building { headers: None, ..ready() });
        assert_eq!(stops, Stops::Building);
        assert!(text.ends_with("apt-get install linux-headers-6.12.9-amd64"), "{text}");
        assert_eq!(first(Building { make: false, ..ready() }).0, Stops::Building);
        let (stops, text) = first(Building { gcc: Vec::new(), ..ready() });
        assert_eq!((stops, text.contains("install gcc 14")), (Stops::Building, true));
        let other = Building { gcc: vec![12], ..ready() };
        assert_eq!(other.other_compiler().as_deref(), Some("gcc-12"));
        assert_eq!(first(other).0, Stops::Nothing);
        let clang = "Debian clang version 19.1.7".to_owned();
        assert_eq!(first(Building { compiler: Some(clang), ..ready() }).0, Stops::Building);
        let secured = Building { secure_boot: Some(true), ..ready() };
        let (stops, text) = first(secured.clone());
        assert_eq!((stops, text.contains("mokutil --import")), (Stops::Loading, true));
        assert!(first(Building { key: true, ..secured }).1.contains("mokutil --test-key"));
        let locked = Building { lockdown: Some("integrity".to_owned()), ..ready() };
        assert!(first(locked).1.contains("locked down (integrity)"));
        assert_eq!(first(Building { signatures: true, ..ready() }).0, Stops::Loading);
    }

    #[test]
    fn some_kernels_need_none_or_can_have_none() {
        let mut has_it = kernel("7.3.4");
        has_it.options.insert("NET_SCH_DUALPI2".to_owned(), "m".to_owned());
        assert!(said(&ready(), &has_it)[0].1.contains("nothing to build"));
        assert!(said(&ready(), &kernel("4.19.0-27-amd64"))[0].1.contains("older than 5.10"));
        let closed = Kernel { modules: false, ..kernel("6.12.9") };
        assert_eq!(said(&ready(), &closed)[0].0, Stops::Loading);
    }

    #[test]
    fn facts_tell_whether_it_can_be_built() {
        let mut facts = Facts { kernel: kernel("6.12.9-amd64"), ..Facts::default() };
        // Nobody knows whether it has one.
        assert_eq!(facts.buildable(), None);
        facts.qdiscs.insert("dualpi2".to_owned(), Availability::Absent);
        assert_eq!(facts.buildable(), Some(Buildable::Unknown));
        facts.kernel.building = Some(Building { gcc: vec![13], ..ready() });
        assert_eq!(facts.buildable(), Some(Buildable::Yes));
        facts.kernel.building = Some(Building { headers: None, ..ready() });
        let advice = facts.buildable().unwrap().advice();
        assert!(
            advice.contains("is gone (the headers of Linux 6.12.9-amd64 are missing"),
            "{advice}"
        );
        facts.kernel = kernel("4.19.0-27-amd64");
        assert!(matches!(facts.buildable(), Some(Buildable::No(_))));
        facts.qdiscs.insert("dualpi2".to_owned(), Availability::Module);
        assert_eq!(facts.buildable(), None);
    }

    /// Ubuntu's 24.04 has linux-source-6.8.0, 25.10 6.17.0 and 26.04 7.0.0; Debian's unstable is asked from any of its releases.
    #[test]
    fn where_the_distribution_has_no_source_that_serves_it_is_said_before() {
        let of = |distribution: &str, release: &str| {
            ready().obstacles(&kernel(release), distribution).into_iter().next()
        };
        for (distribution, release, says) in [
            ("ubuntu", "6.8.0-49-generic", "apt has for such a kernel are older than Linux 7.2"),
            ("ubuntu", "7.0.0-14-generic", "apt has for such a kernel are older than Linux 7.2"),
            ("fedora", "7.3.1-200.fc45.x86_64", "there is no apt here"),
        ] {
            let obstacle = of(distribution, release).unwrap();
            assert_eq!(obstacle.stops, Stops::Downloading, "{release}");
            let text = obstacle.text;
            assert!(text.contains(says) && text.contains("--source"), "{release}: {text}");
        }
        for (distribution, release) in
            [("debian", "6.1.0-56-amd64"), ("ubuntu", "7.2.0-5-generic"), ("", "6.8.0")]
        {
            assert_eq!(of(distribution, release), None, "{release}");
        }
        let mut facts = Facts { kernel: kernel("6.8.0-49-generic"), ..Facts::default() };
        facts.distribution.id = "ubuntu".to_owned();
        facts.qdiscs.insert("dualpi2".to_owned(), Availability::Absent);
        facts.kernel.building = Some(Building { gcc: vec![], ..ready() });
        let advice = facts.buildable().unwrap().advice();
        assert!(advice.contains("gcc is missing") && advice.contains("--source"), "{advice}");
    }

    #[test]
    fn headers_are_called_by_the_distributions_name_for_them() {
        for (distribution, release, command) in [
            ("ubuntu", "6.8.0-49-generic", "apt-get install linux-headers-6.8.0-49-generic"),
            ("fedora", "6.17.1-300.fc43.x86_64", "dnf install kernel-devel-6.17.1-300.fc43.x86_64"),
            ("arch", "6.12.9-1-lts", "pacman -S linux-lts-headers"),
            ("arch", "6.17.1-arch1-1", "pacman -S linux-headers"),
            ("opensuse-leap", "6.4.0-150600.23-default", "zypper install kernel-default-devel"),
            ("alpine", "6.12.9-0-lts", "apk add linux-lts-dev"),
        ] {
            assert_eq!(install(distribution, release).as_deref(), Some(command));
        }
        assert_eq!(install("plan9", "6.12.9"), None);
        for (release, known) in [
            ("6.12.9-amd64", true),
            ("6.12.9+deb13-cloud-amd64", true),
            ("6.1.0-28-rt-amd64", true),
            ("6.6.51+rpt-rpi-v8", true),
            ("6.8.0-49-lowlatency", true),
            ("6.9.3-76060903-generic", true),
            ("6.18.44-fc-v782", false),
            ("7.3.0-rc2", false),
            ("7.3.0", false),
            ("6.6.87.2-microsoft-standard-WSL2", false),
        ] {
            assert_eq!(install("debian", release).is_some(), known, "{release}");
        }
    }
}
