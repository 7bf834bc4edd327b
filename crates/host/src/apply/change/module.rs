//! Kernel modules, by modprobe(8).

use std::fs;
use std::io;
use std::process::Command;

use crate::Root;
use crate::apply::{ApplyError, Lock};
use crate::program;

/// Whether the kernel has it, as a module or built in.
pub(crate) fn is_there(root: &Root, module: &str) -> bool {
    let name = module.replace('-', "_");
    // A loaded module always has a folder there; one that is built in only if it has parameters.
    if root.at("/sys/module").join(&name).exists() {
        return true;
    }
    let release = fs::read_to_string(root.sysctl("kernel.osrelease")).unwrap_or_default();
    let builtin = root.at("/lib/modules").join(release.trim()).join("modules.builtin");
    let builtin = fs::read_to_string(builtin).unwrap_or_default();
    builtin.lines().any(|line| {
        let file = line.rsplit('/').next().unwrap_or(line);
        file.strip_suffix(".ko").is_some_and(|file| file.replace('-', "_") == name)
    })
}

/// Loads it.
pub(crate) fn load(module: &str, lock: &Lock) -> Result<(), ApplyError> {
    // The ifb that it makes by itself are nobody's.
    let options: &[&str] = if module == super::ingress::MODULE { &["numifbs=0"] } else { &[] };
    modprobe(lock, &[&["--", module], options].concat(), &format!("load the module {module}"))
}

/// Unloads it, if nothing uses it.
pub(crate) fn unload(module: &str, lock: &Lock) -> Result<(), ApplyError> {
    modprobe(lock, &["-r", "--", module], &format!("unload the module {module}"))
}

/// If this process is killed, modprobe goes on. So it has the lock too: whoever takes back what was begun waits until it has ended.
fn modprobe(lock: &Lock, arguments: &[&str], what: &str) -> Result<(), ApplyError> {
    let output = Command::new("modprobe")
        .env_clear()
        .env("PATH", program::PATH)
        .args(arguments)
        .stdin(lock.held_on().map_err(ApplyError::io(format!("{what} with modprobe")))?)
        .output()
        .map_err(ApplyError::io(format!("{what} with modprobe")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().unwrap_or("modprobe does not say why").to_owned();
    Err(ApplyError::io(what)(io::Error::other(said)))
}
