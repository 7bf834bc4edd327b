//! For the program that is a guest's init.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::thread;
use std::time::Duration;

use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};

/// Where the folder is, inside.
const FOLDER: &str = "/mnt";
/// Says on the kernel's command line that a guest of ours is meant, and reaches init's environment. Its value is the seed.
const MARK: &str = "DUALQ_GUEST";
/// The files in the folder: init's program, the console, what init has to say at its end, and its signs of life.
pub(crate) const INIT: &str = "init";
pub(crate) const CONSOLE: &str = "console";
pub(crate) const STATUS: &str = "status";
pub(crate) const PULSE: &str = "pulse";

/// Whether this process is the init of a guest.
#[must_use]
pub fn is_init() -> bool {
    process::id() == 1 && env::var_os(MARK).is_some()
}

/// Makes the guest habitable: `/proc`, `/sys`, an empty `/run`, and the folder. Gives the folder's place.
///
/// # Errors
/// If the kernel refuses a mount, or the host lacks one of these directories.
pub fn prepare() -> io::Result<PathBuf> {
    mount_at("proc", "/proc", None)?;
    mount_at("sysfs", "/sys", None)?;
    mount_at("tmpfs", "/run", None)?;
    // The host's view of the kernel's own process, which was started in the folder.
    mount_at("hostfs", FOLDER, Some("/proc/self/cwd/."))?;
    Ok(PathBuf::from(FOLDER))
}

/// Puts a folder of the host's, which may be written to, in place of `at`.
///
/// # Errors
/// If the kernel refuses.
pub fn mount_host_folder(folder: &Path, at: &str) -> io::Result<()> {
    mount_at("hostfs", at, folder.to_str())
}

fn mount_at(kind: &str, at: &str, options: Option<&str>) -> io::Result<()> {
    mount(Some(kind), at, Some(kind), MsFlags::empty(), options).map_err(|error| {
        io::Error::other(format!("the guest cannot mount {kind} at {at}: {}", error.desc()))
    })
}

/// Tells the host that the guest is alive, and how far it is.
pub fn pulse(text: &str) {
    // A sign of life that gets lost is followed by another.
    let _ = fs::write(Path::new(FOLDER).join(PULSE), text);
}

/// Powers the guest off, and tells the host that all went well, or what did not.
pub fn power_off(outcome: Result<(), String>) -> ! {
    let status = match outcome {
        Ok(()) => String::new(),
        Err(message) if message.is_empty() => "the guest failed without a message".to_owned(),
        Err(message) => message,
    };
    if let Err(error) = fs::write(Path::new(FOLDER).join(STATUS), status) {
        eprintln!("cannot write the guest's status: {error}");
    }
    match reboot(RebootMode::RB_POWER_OFF) {
        Ok(never) => match never {},
        // Without init the kernel panics, which ends the guest as well.
        Err(error) => eprintln!("the guest cannot power off: {error}"),
    }
    loop {
        thread::sleep(Duration::from_secs(1));
    }
}
