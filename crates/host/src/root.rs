//! Where a machine's files are.

use std::path::{Path, PathBuf};

/// The root of a machine's files, `/proc` and `/sys` included: `/`, or a folder that stands for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root(PathBuf);

impl Root {
    /// The files below `folder`.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    /// This machine's.
    #[must_use]
    pub fn host() -> Self {
        Self::new("/")
    }

    /// Where the file is that the machine knows by the absolute path `path`.
    #[must_use]
    pub fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.0.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Where a sysctl is, `net.ipv4.tcp_ecn` or with slashes as sysctl(8) also has it.
    #[must_use]
    pub fn sysctl(&self, key: &str) -> PathBuf {
        // With a slash first, dots are part of names: net/ipv4/conf/eth0.100/mtu.
        let first = key.find(['.', '/']).map(|at| key.as_bytes()[at]);
        let path = if first == Some(b'/') { key.to_owned() } else { swapped(key) };
        self.at("/proc/sys").join(path)
    }
}

/// sysctl(8) lets a dot inside a name be written as a slash.
fn swapped(key: &str) -> String {
    let swap = |c| match c {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    key.chars().map(swap).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sysctls_are_found_in_both_notations() {
        let root = Root::new("/tree");
        let at = |key| root.sysctl(key).to_string_lossy().into_owned();
        assert_eq!(at("net.ipv4.tcp_ecn"), "/tree/proc/sys/net/ipv4/tcp_ecn");
        assert_eq!(at("net/ipv4/tcp_ecn"), "/tree/proc/sys/net/ipv4/tcp_ecn");
        assert_eq!(at("net.ipv4.conf.eth0/100.mtu"), "/tree/proc/sys/net/ipv4/conf/eth0.100/mtu");
        assert_eq!(at("net/ipv4/conf/eth0.100/mtu"), "/tree/proc/sys/net/ipv4/conf/eth0.100/mtu");
    }
}
