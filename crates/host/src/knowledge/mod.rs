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
    /// Values that harm, and how.
    pub(crate) harm: Option<(&'static [&'static str], &'static str)>,
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
            harm: None,
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

    const fn harm(self, values: &'static [&'static str], how: &'static str) -> Self {
        Self { harm: Some((values, how)), ..self }
    }

    const fn source(self, source: &'static str) -> Self {
        Self { source, ..self }
    }

    /// The default in a kernel of that version, if it is the same on all machines.
    pub(crate) fn default_in(&self, version: Version) -> Option<&'static str> {
        self.defaults.iter().rfind(|(since, _)| *since <= version).map(|(_, value)| *value)
    }
}

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
    use super::{Os, freebsd, linux, linux_host, matches, of};

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
    fn a_star_is_one_part() {
        assert!(matches("net.ipv4.conf.*.rp_filter", "net.ipv4.conf.all.rp_filter"));
        assert!(!matches("net.ipv4.conf.*.rp_filter", "net.ipv4.conf.rp_filter"));
        assert!(!matches("net.ipv4.ip_forward", "net.ipv4.ip_forward.x"));
    }
}
