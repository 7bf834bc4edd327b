//! What is known of sysctls: what each does, since and until when, its default, what harms, and who says so.

mod freebsd;
mod linux;
mod linux_host;

use crate::facts::Os;

/// A kernel's version, its first two numbers.
pub(crate) type Version = (u32, u32);

/// A sysctl.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    /// Its key; a `*` stands for any one part.
    pub(crate) key: &'static str,
    /// What it is for, as what follows "it".
    pub(crate) does: &'static str,
    /// Whether it changes how long packets or answers wait.
    pub(crate) latency: bool,
    /// The first kernel that has it.
    pub(crate) since: Version,
    /// The first kernel in which it does nothing, or is not there, and what became of it.
    pub(crate) gone: Option<(Version, &'static str)>,
    /// Defaults, and the first kernels that have them; none if they depend on the machine.
    pub(crate) defaults: &'static [(Version, &'static str)],
    /// What the kernel takes.
    pub(crate) takes: Takes,
    /// What there is to say of some values.
    pub(crate) bands: &'static [Band],
    /// Who says so.
    pub(crate) source: &'static str,
}

impl Known {
    const fn new(key: &'static str, does: &'static str, source: &'static str) -> Self {
        Self {
            key,
            does,
            latency: false,
            since: (0, 0),
            gone: None,
            defaults: &[],
            takes: Takes { count: 1, ranges: INT },
            bands: &[],
            source,
        }
    }

    const fn latency(self) -> Self {
        Self { latency: true, ..self }
    }

    const fn since(self, major: u32, minor: u32) -> Self {
        Self { since: (major, minor), ..self }
    }

    const fn gone(self, major: u32, minor: u32, became: &'static str) -> Self {
        Self { gone: Some(((major, minor), became)), ..self }
    }

    const fn defaults(self, defaults: &'static [(Version, &'static str)]) -> Self {
        Self { defaults, ..self }
    }

    /// What the kernel takes for each of its numbers, from the oldest kernel.
    const fn takes(self, ranges: &'static [(Version, i128, i128)]) -> Self {
        Self { takes: Takes { ranges, ..self.takes }, ..self }
    }

    /// It is a list of so many numbers.
    const fn numbers(self, count: usize) -> Self {
        Self { takes: Takes { count, ..self.takes }, ..self }
    }

    /// It is no number.
    const fn words(self) -> Self {
        Self { takes: Takes { count: 0, ranges: &[] }, ..self }
    }

    const fn bands(self, bands: &'static [Band]) -> Self {
        Self { bands, ..self }
    }

    const fn source(self, source: &'static str) -> Self {
        Self { source, ..self }
    }

    /// What there is to say of a value, if it is one number.
    pub(crate) fn band(&self, value: &str) -> Option<&'static Band> {
        let [number] = self.takes.read(value).ok()?[..] else { return None };
        self.bands.iter().find(|band| (band.least..=band.most).contains(&number))
    }

    /// How a value harms, if it does.
    pub(crate) fn harm(&self, value: &str) -> Option<&'static str> {
        self.band(value).filter(|band| band.effect == Effect::Harms).map(|band| band.how)
    }

    /// The default in a kernel of that version, if it is the same on all machines.
    pub(crate) fn default_in(&self, version: Version) -> Option<&'static str> {
        self.defaults.iter().rfind(|(since, _)| *since <= version).map(|(_, value)| *value)
    }
}

/// What the kernel takes for a sysctl.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Takes {
    /// How many numbers it is; 0 if it is a word.
    pub(crate) count: usize,
    /// The least and the most that each may be, and the first kernels with these bounds.
    pub(crate) ranges: &'static [(Version, i128, i128)],
}

/// A C `int`, as most are.
const INT: &[(Version, i128, i128)] = &[((0, 0), INT_MIN, INT_MAX)];
const INT_MIN: i128 = i32::MIN as i128;
const INT_MAX: i128 = i32::MAX as i128;

/// Why the kernel does not take a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It is no number.
    NoNumber,
    /// It is not within these bounds.
    Beyond(i128, i128),
}

impl Takes {
    /// The numbers of a value as the kernel reads them: in C's notation, and no more of them than there are places.
    fn read(&self, value: &str) -> Result<Vec<i128>, Refused> {
        let words = value.split_whitespace().take(self.count);
        let numbers: Option<Vec<i128>> = words.map(c_number).collect();
        numbers.filter(|numbers| !numbers.is_empty()).ok_or(Refused::NoNumber)
    }

    /// The numbers of a value, if a kernel of that version takes them.
    pub(crate) fn check(&self, value: &str, version: Version) -> Result<Vec<i128>, Refused> {
        let numbers = self.read(value)?;
        // What is said of a kernel of no known version has to hold for all.
        let range = self.ranges.iter().rfind(|(since, ..)| *since <= version);
        if let Some((_, least, most)) = range
            && numbers.iter().any(|number| !(*least..=*most).contains(number))
        {
            return Err(Refused::Beyond(*least, *most));
        }
        Ok(numbers)
    }
}

/// `0x10`, `010`, `-3`.
fn c_number(word: &str) -> Option<i128> {
    let (sign, digits) = word.strip_prefix('-').map_or((1, word), |digits| (-1, digits));
    let (radix, digits) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => (16, digits),
        None if digits.len() > 1 && digits.starts_with('0') => (8, &digits[1..]),
        None => (10, digits),
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    // More digits than any bound has are beyond all of them.
    let number = i128::from_str_radix(digits, radix).unwrap_or(i128::MAX);
    Some(sign * number)
}

/// Some values of a sysctl, and what there is to say of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Band {
    pub(crate) least: i128,
    pub(crate) most: i128,
    pub(crate) effect: Effect,
    /// As what follows "with 0,".
    pub(crate) how: &'static str,
}

/// What values do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// They make something worse.
    Harms,
    /// They do nothing for latency, though others may.
    Neutral,
    /// They do what the sysctl is for, and something else that is to be known.
    Told,
}

const fn harm(least: i128, most: i128, how: &'static str) -> Band {
    Band { least, most, effect: Effect::Harms, how }
}

const fn neutral(least: i128, most: i128, how: &'static str) -> Band {
    Band { least, most, effect: Effect::Neutral, how }
}

const fn told(least: i128, most: i128, how: &'static str) -> Band {
    Band { least, most, effect: Effect::Told, how }
}

/// The least that `tcp_notsent_lowat` can be without harm, in bytes: less than this is less than what TCP hands down at once.
pub(crate) const LEAST_UNSENT: u64 = 16 << 10;

/// How long a sleeping program takes to write again: within a jiffy (HZ=250).
pub(crate) const WAKE: std::time::Duration = std::time::Duration::from_millis(4);

/// What is known of a sysctl of that system.
pub(crate) fn of(os: Os, key: &str) -> Option<&'static Known> {
    let tables: &[&[Known]] = match os {
        Os::Linux => &[&linux::TCP, &linux_host::HOST],
        Os::FreeBsd => &[&freebsd::SYSCTLS],
    };
    tables.iter().copied().flatten().find(|known| matches(known.key, key))
}

/// Whether a key is one of a system's: known there, or below what only that system has.
pub(crate) fn belongs_to(os: Os, key: &str) -> bool {
    let roots: &[&str] = match os {
        Os::Linux => {
            &["net.ipv4.", "net.ipv6.", "net.core.", "net.mptcp.", "net.netfilter.", "vm.", "fs."]
        }
        Os::FreeBsd => {
            &["net.inet.", "net.inet6.", "net.link.", "net.isr.", "kern.", "hw.", "dev."]
        }
    };
    roots.iter().any(|root| key.starts_with(root)) || of(os, key).is_some()
}

/// Whether a key is the pattern's, in which `*` stands for one part.
fn matches(pattern: &str, key: &str) -> bool {
    let mut parts = key.split('.');
    pattern
        .split('.')
        .all(|wanted| parts.next().is_some_and(|part| wanted == "*" || wanted == part))
        && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::{Os, c_number, freebsd, linux, linux_host, matches, of};

    #[test]
    fn no_key_is_in_the_tables_twice() {
        let mut keys: Vec<&str> = [&linux::TCP[..], &linux_host::HOST, &freebsd::SYSCTLS]
            .concat()
            .iter()
            .map(|known| known.key)
            .collect();
        let all = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), all);
    }

    #[test]
    fn of_several_defaults_the_kernels_own_counts() {
        let backlog = of(Os::Linux, "net.core.somaxconn").unwrap();
        assert_eq!(backlog.default_in((4, 19)), Some("128"));
        assert_eq!(backlog.default_in((5, 4)), Some("4096"));
        assert!(of(Os::FreeBsd, "net.core.somaxconn").is_none());
    }

    #[test]
    fn defaults_are_listed_from_the_oldest() {
        for known in [&linux::TCP[..], &linux_host::HOST, &freebsd::SYSCTLS].concat() {
            assert!(known.defaults.is_sorted_by_key(|(since, _)| *since), "{}", known.key);
            assert!(!known.source.is_empty() && !known.does.is_empty(), "{}", known.key);
        }
    }

    #[test]
    fn numbers_are_read_as_c_reads_them() {
        for (word, number) in [("0x10", 16), ("010", 8), ("-3", -3), ("0", 0), ("08", -1)] {
            assert_eq!(c_number(word).unwrap_or(-1), number, "{word}");
        }
        for word in ["", "-", "1x", "0x", "+1", "yes", "1,2"] {
            assert_eq!(c_number(word), None, "{word}");
        }
        assert_eq!(c_number(&"9".repeat(1000)), Some(i128::MAX));
    }

    /// Bands and defaults lie within what the newest kernel takes; bands do not overlap, and no default harms.
    #[test]
    fn what_is_said_of_values_fits_what_the_kernel_takes() {
        let newest = (u32::MAX, 0);
        for known in [&linux::TCP[..], &linux_host::HOST, &freebsd::SYSCTLS].concat() {
            let ranges = known.takes.ranges;
            assert!(ranges.is_sorted_by_key(|(since, ..)| *since), "{}", known.key);
            assert_eq!(ranges.is_empty(), known.takes.count == 0, "{}", known.key);
            assert!(known.takes.count > 0 || known.bands.is_empty(), "{}", known.key);
            let widest = ranges.iter().map(|(_, least, most)| (*least, *most));
            let widest = widest.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
            for (band, next) in known.bands.iter().zip(known.bands.iter().skip(1)) {
                assert!(band.most < next.least, "{}", known.key);
            }
            for band in known.bands {
                let (least, most) = widest.unwrap();
                assert!(least <= band.least && band.least <= band.most, "{}", known.key);
                assert!(band.most <= most, "{}", known.key);
            }
            for (since, default) in known.defaults {
                assert_eq!(known.harm(default), None, "{} = {default}", known.key);
                if known.takes.count > 0 {
                    assert!(known.takes.check(default, *since).is_ok(), "{}", known.key);
                }
            }
            if let Some((_, default)) = known.defaults.last().filter(|_| known.takes.count > 0) {
                assert!(known.takes.check(default, newest).is_ok(), "{} = {default}", known.key);
            }
        }
    }

    #[test]
    fn a_star_is_one_part() {
        assert!(matches("net.ipv4.conf.*.rp_filter", "net.ipv4.conf.all.rp_filter"));
        assert!(!matches("net.ipv4.conf.*.rp_filter", "net.ipv4.conf.rp_filter"));
        assert!(!matches("net.ipv4.ip_forward", "net.ipv4.ip_forward.x"));
    }
}
