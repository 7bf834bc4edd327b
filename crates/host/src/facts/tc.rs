//! The program `tc`.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{Access, access};
use rustix::process::geteuid;

use super::Tc;
use crate::program::PATH;

/// The first that knows dualpi2.
const DUALPI2: (u32, u32) = (6, 17);

/// Where this machine's is.
#[must_use]
pub fn program() -> Option<PathBuf> {
    // Whoever was root's caller may have named any folder there.
    let own = match geteuid().is_root() {
        true => OsString::new(),
        false => env::var_os("PATH").unwrap_or_default(),
    };
    let others = OsString::from(PATH);
    let folders = env::split_paths(&own).chain(env::split_paths(&others));
    let absolute = folders.filter(|folder| folder.is_absolute());
    absolute
        .map(|folder| folder.join("tc"))
        .find(|path| path.is_file() && access(path, Access::EXEC_OK).is_ok())
}

/// Asks it for its version.
pub(super) fn ask(program: &Path) -> Result<Tc, String> {
    let answer = Command::new(program).arg("-V").stdin(Stdio::null()).output();
    let answer = answer.map_err(|error| error.to_string())?;
    read(&String::from_utf8_lossy(&answer.stdout))
        .ok_or_else(|| "it does not tell its version".to_owned())
}

/// `tc utility, iproute2-6.1.0, libbpf 1.1.2`; before 5.5 a date: `iproute2-ss190107`. BusyBox has one too, that tells none.
fn read(text: &str) -> Option<Tc> {
    let version = text.split([',', ' ', '\n']).find(|word| word.starts_with("iproute2-"))?;
    let mut numbers = version["iproute2-".len()..]
        .trim_start_matches('v')
        .split('.')
        .map_while(|number| number.split('-').next()?.parse().ok());
    let number = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    Some(Tc { version: version.to_owned(), dualpi2: number >= DUALPI2 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_tell_what_it_knows() {
        for (text, version, dualpi2) in [
            ("tc utility, iproute2-6.1.0, libbpf 1.1.2\n", "iproute2-6.1.0", false),
            ("tc utility, iproute2-6.17.0\n", "iproute2-6.17.0", true),
            ("tc utility, iproute2-7.0.0-rc1, libbpf 1.5.0", "iproute2-7.0.0-rc1", true),
            ("tc utility, iproute2-ss190107", "iproute2-ss190107", false),
            ("tc utility, iproute2-6.9.0", "iproute2-6.9.0", false),
        ] {
            assert_eq!(read(text), Some(Tc { version: version.to_owned(), dualpi2 }), "{text}");
        }
        assert_eq!(read("BusyBox v1.36.1\n"), None);
    }
}
