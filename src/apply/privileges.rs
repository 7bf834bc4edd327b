//! Who may change a machine.

use std::fs;
use std::io;
use std::path::Path;

use crate::cli::Failure;
use crate::output::shell_word;

/// `CAP_NET_ADMIN` (capabilities(7)).
const NET_ADMIN: u64 = 1 << 12;

/// Says what a command needs if this process does not have it.
pub(crate) fn check(command: &str) -> Result<(), Failure> {
    if capabilities() & NET_ADMIN != 0 {
        return Ok(());
    }
    Err(Failure::Run(format!(
        "dualq {command} changes sysctls, queue disciplines and files in /etc, which takes root: {}",
        as_root()
    )))
}

/// Says so if the records are somebody else's.
pub(crate) fn check_reading(command: &str, state: &Path) -> Result<(), Failure> {
    match fs::read_dir(state) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(Failure::Run(
            format!("dualq {command} reads {}, which takes root: {}", state.display(), as_root()),
        )),
        _ => Ok(()),
    }
}

/// This very call, by root.
fn as_root() -> String {
    let words = std::env::args_os()
        .skip(1)
        .map(|word| shell_word(&word.to_string_lossy().replace(char::is_control, "?")));
    ["sudo dualq".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

/// Those that are in effect, as bits.
fn capabilities() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
