//! The programs that a build calls, and how a distribution installs them.

use std::env;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use crate::error::KernelError;

/// What every build needs. Linux 7.3 asks for no more in this configuration.
const COMPILING: [&str; 6] = ["gcc", "ld", "make", "flex", "bison", "bc"];

/// What `make` needs before the first file is compiled; not a program, but missing as often.
const HEADERS: &str = "the C library's and Linux's headers";

/// How a distribution calls what is installed.
struct Packager {
    /// `ID` or a word of `ID_LIKE` in os-release.
    families: &'static [&'static str],
    command: &'static str,
    /// Where a package has another name than its program.
    names: &'static [(&'static str, &'static str)],
}

const PACKAGERS: [Packager; 5] = [
    Packager {
        families: &["debian", "ubuntu"],
        command: "apt-get install",
        names: &[
            ("ld", "binutils"),
            ("xz", "xz-utils"),
            ("dpkg-deb", "dpkg"),
            (HEADERS, "libc6-dev"),
        ],
    },
    Packager {
        families: &["fedora", "rhel", "centos"],
        command: "dnf install",
        names: &[("ld", "binutils"), (HEADERS, "glibc-devel")],
    },
    Packager {
        families: &["arch"],
        command: "pacman -S",
        names: &[("ld", "binutils"), (HEADERS, "glibc linux-api-headers")],
    },
    Packager {
        families: &["suse", "opensuse"],
        command: "zypper install",
        names: &[("ld", "binutils"), (HEADERS, "glibc-devel")],
    },
    Packager {
        families: &["alpine"],
        command: "apk add",
        names: &[("ld", "binutils"), (HEADERS, "musl-dev linux-headers")],
    },
];

/// Whether a program is on the `PATH`.
pub(crate) fn is_there(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| {
        folder
            .join(program)
            .metadata()
            .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    })
}

/// Names all that is missing of what compiling and `others` need, at once.
pub(crate) fn check(others: &[&'static str]) -> Result<(), KernelError> {
    let needed = COMPILING.iter().chain(others).copied();
    let mut missing: Vec<&str> = needed.filter(|program| !is_there(program)).collect();
    if !missing.contains(&"gcc") && !headers_are_there() {
        missing.push(HEADERS);
    }
    report(&missing)
}

/// Names all that is missing of these programs, at once.
pub(crate) fn check_all(programs: &[&str]) -> Result<(), KernelError> {
    let missing: Vec<&str> =
        programs.iter().copied().filter(|program| !is_there(program)).collect();
    report(&missing)
}

fn report(missing: &[&str]) -> Result<(), KernelError> {
    if missing.is_empty() {
        return Ok(());
    }
    let os_release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    Err(KernelError::ToolsMissing {
        install: install_command(&os_release, missing),
        missing: missing.iter().map(|program| (*program).to_owned()).collect(),
    })
}

/// A compiler can be installed without them.
fn headers_are_there() -> bool {
    let mut gcc = Command::new("gcc");
    gcc.args(["-fsyntax-only", "-x", "c", "-"]).stdin(Stdio::piped());
    gcc.stdout(Stdio::null()).stderr(Stdio::null());
    let checked = gcc.spawn().and_then(|mut child| {
        if let Some(mut stdin) = child.stdin.take() {
            // One that does not read has an opinion already.
            let _ = stdin.write_all(b"#include <stdio.h>\n#include <linux/types.h>\n");
        }
        child.wait()
    });
    checked.is_ok_and(|status| status.success())
}

/// The command that installs what is missing, by the text of `/etc/os-release`.
fn install_command(os_release: &str, missing: &[&str]) -> Option<String> {
    let families = families(os_release);
    let packager = PACKAGERS.iter().find(|packager| {
        packager.families.iter().any(|family| families.iter().any(|word| word == family))
    })?;
    let packages = missing.iter().map(|program| {
        let named = packager.names.iter().find(|(name, _)| name == program);
        named.map_or(*program, |(_, package)| package)
    });
    let packages: Vec<&str> = packages.collect();
    Some(format!("{} {}", packager.command, packages.join(" ")))
}

/// What a system is, and what it is like: `ID` and `ID_LIKE`.
#[must_use]
pub fn families(os_release: &str) -> Vec<String> {
    let words = format!("{} {}", value(os_release, "ID"), value(os_release, "ID_LIKE"));
    words.split_whitespace().map(str::to_owned).collect()
}

/// What `/etc/os-release` says under `key`; nothing if it does not.
pub(crate) fn value(os_release: &str, key: &str) -> String {
    let mut lines = os_release.lines().filter_map(|line| line.split_once('='));
    let value = lines.find(|(name, _)| *name == key).map(|(_, value)| value);
    value.unwrap_or_default().trim_matches(['"', '\'']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_distribution_has_its_command() {
        let missing = ["flex", "ld", "xz"];
        let command = |os_release: &str| install_command(os_release, &missing);
        for (os_release, expected) in [
            ("NAME=\"Debian\"\nID=debian\n", "apt-get install flex binutils xz-utils"),
            ("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", "apt-get install flex binutils xz-utils"),
            ("ID=fedora\n", "dnf install flex binutils xz"),
            ("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", "dnf install flex binutils xz"),
            ("ID=arch\n", "pacman -S flex binutils xz"),
            (
                "ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\n",
                "zypper install flex binutils xz",
            ),
            ("ID=alpine\n", "apk add flex binutils xz"),
        ] {
            assert_eq!(command(os_release).as_deref(), Some(expected));
        }
        assert_eq!(command("ID=plan9\n"), None);
        assert_eq!(command(""), None);
    }

    #[test]
    fn headers_are_packages_of_their_own() {
        let command = install_command("ID=alpine\n", &["gcc", HEADERS]);
        assert_eq!(command.as_deref(), Some("apk add gcc musl-dev linux-headers"));
    }
}
