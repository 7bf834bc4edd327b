//! Versions of Linux.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// The first Linux with `sch_dualpi2`.
pub(crate) const FIRST_WITH_DUALPI2: Version = Version::release(6, 17);

/// A version as `make kernelversion` prints it: `7.3.4`, `7.4.0-rc1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    numbers: [u32; 3],
    /// What a tree adds: `-rc1`, or a name of its own.
    extra: String,
}

impl Version {
    /// The first of a series: 7.2.0 of 7 and 2.
    pub(crate) const fn release(version: u32, patchlevel: u32) -> Self {
        Self { numbers: [version, patchlevel, 0], extra: String::new() }
    }

    /// From the first lines of a tree's top `Makefile`.
    pub(crate) fn of_makefile(text: &str) -> Option<Self> {
        let value = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once('='));
            lines.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
        };
        let number = |name: &str| value(name)?.parse().ok();
        let numbers = [number("VERSION")?, number("PATCHLEVEL")?, number("SUBLEVEL").unwrap_or(0)];
        let extra = value("EXTRAVERSION").unwrap_or_default().to_owned();
        well_formed(&extra).then_some(Self { numbers, extra })
    }

    /// The `N` of `-rcN`; a release comes after all of them.
    fn candidate(&self) -> u32 {
        self.extra.strip_prefix("-rc").map_or(u32::MAX, |rest| {
            let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
            digits.and_then(|digits| digits.parse().ok()).unwrap_or(u32::MAX)
        })
    }
}

/// It becomes the name of a folder.
fn well_formed(extra: &str) -> bool {
    extra.chars().all(|c| c.is_ascii_alphanumeric() || "-+._".contains(c))
}

/// Whether somebody who says `wanted` may mean `version`: `7.3` means 7.3.4 too.
#[must_use]
pub fn means(wanted: &str, version: &str) -> bool {
    version.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-']))
}

impl FromStr for Version {
    type Err = ();

    /// Of one to three numbers and what follows them.
    fn from_str(text: &str) -> Result<Self, ()> {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (front, extra) = text.split_at(end);
        let mut numbers = [0; 3];
        let mut parts = front.split('.');
        for (number, part) in numbers.iter_mut().zip(parts.by_ref()) {
            *number = part.parse().map_err(|_| ())?;
        }
        let complete = parts.next().is_none() && well_formed(extra);
        complete.then(|| Self { numbers, extra: extra.to_owned() }).ok_or(())
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [version, patchlevel, sublevel] = self.numbers;
        write!(f, "{version}.{patchlevel}.{sublevel}{}", self.extra)
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |of: &Self| (of.numbers, of.candidate());
        key(self).cmp(&key(other)).then_with(|| self.extra.cmp(&other.extra))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    #[test]
    fn a_makefile_says_its_version() {
        let read = |text: &str| Version::of_makefile(text).map(|version| version.to_string());
        let stable =
            "# SPDX\nVERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 4\nEXTRAVERSION =\nNAME = X\n";
        assert_eq!(read(stable).as_deref(), Some("7.3.4"));
        let candidate = "VERSION = 7\nPATCHLEVEL = 4\nSUBLEVEL = 0\nEXTRAVERSION = -rc1\n";
        assert_eq!(read(candidate).as_deref(), Some("7.4.0-rc1"));
        assert_eq!(read("all:\n\techo VERSION = 7\n"), None);
        assert_eq!(read("VERSION = 7\nPATCHLEVEL = 4\nEXTRAVERSION = /../x\n"), None);
    }

    #[test]
    fn versions_have_an_order() {
        let ordered = ["6.9.12", "6.17", "7.4.0-rc2", "7.4.0-rc10", "7.4.0", "7.4.1"];
        assert!(ordered.windows(2).all(|pair| version(pair[0]) < version(pair[1])));
        assert!(version("6.17") >= FIRST_WITH_DUALPI2 && version("6.16.9") < FIRST_WITH_DUALPI2);
    }

    #[test]
    fn what_is_no_version_is_refused() {
        for text in ["", "newest", "7.3.4.5", "7..3", "7.3/..", "-rc1"] {
            assert!(text.parse::<Version>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_short_version_means_the_long_ones() {
        assert!(means("7.3", "7.3.4") && means("7.3.4", "7.3.4") && means("7", "7.3.4"));
        assert!(means("7.4.0", "7.4.0-rc1"));
        assert!(!means("7.3", "7.30.1") && !means("7.3.4", "7.3"));
    }
}
