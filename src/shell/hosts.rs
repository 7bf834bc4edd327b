//! The far end by its name, for programs that look names up.

use std::fs;
use std::path::Path;

use dualq_namespace::{End, Ends};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};

const HOSTS: &str = "/etc/hosts";
/// A folder that is always there, and is covered for a moment, for the calling thread alone.
const COVERED: &str = "/tmp";
/// What ends the lines that are dualq's.
const MARK: &str = " # dualq shell";
const NONE: Option<&str> = None;

/// Gives the calling thread, and what it starts, mounts of its own, in which `/etc/hosts` knows `near` and `far` too. Nobody else sees
/// that, and it is gone with them.
///
/// # Errors
/// If the system refuses, as where mounts are forbidden; then names are not known, and nothing else is different.
pub(crate) fn name(ends: &Ends) -> Result<(), nix::Error> {
    let before = fs::read_to_string(HOSTS).unwrap_or_default();
    // In a shell inside another one, the nearest is meant.
    let others = before.lines().filter(|line| !line.ends_with(MARK)).map(str::to_owned);
    let own = End::ALL.into_iter().flat_map(|end| {
        ends.of(end).into_iter().map(move |(address, _)| format!("{address} {}{MARK}", end.name()))
    });
    let lines: String = own.chain(others).map(|line| line + "\n").collect();
    unshare(CloneFlags::CLONE_NEWNS)?;
    // What is mounted outside later is seen here, and not the other way round.
    mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_SLAVE, NONE)?;
    mount(Some("dualq"), COVERED, Some("tmpfs"), MsFlags::empty(), Some("mode=0755,size=64k"))?;
    let file = Path::new(COVERED).join("hosts");
    let done = fs::write(&file, lines)
        .map_err(|error| nix::Error::from_raw(error.raw_os_error().unwrap_or_default()))
        .and_then(|()| mount(Some(&file), HOSTS, NONE, MsFlags::MS_BIND, NONE));
    umount2(COVERED, MntFlags::MNT_DETACH)?;
    done
}
