//! The far end by its name, for programs that look names up.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

use dualq_namespace::{End, Ends};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};

const HOSTS: &str = "/etc/hosts";
const RESOLVER: &str = "/etc/resolv.conf";
/// A folder that is always there, and is covered for a moment, for the calling thread alone.
const COVERED: &str = "/tmp";
/// What ends the lines that are dualq's.
const MARK: &str = " # dualq shell";
const NONE: Option<&str> = None;

/// Gives the calling thread, and what it starts, mounts of its own, in which `/etc/hosts` knows `near` and `far` too, and
/// `/etc/resolv.conf` the resolver, if there is one. Nobody else sees
/// that, and it is gone with them.
///
/// # Errors
/// If the system refuses, as where mounts are forbidden; then names are not known, and nothing else is different.
pub(crate) fn name(ends: &Ends, resolver: Option<Ipv4Addr>) -> Result<(), nix::Error> {
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
    let put = |name: &str, text: String, over: &str| {
        let file = Path::new(COVERED).join(name);
        fs::write(&file, text)
            .map_err(|error| nix::Error::from_raw(error.raw_os_error().unwrap_or_default()))
            .and_then(|()| mount(Some(&file), over, NONE, MsFlags::MS_BIND, NONE))
    };
    let done = put("hosts", lines, HOSTS).and_then(|()| match resolver {
        Some(resolver) => put("resolv.conf", format!("nameserver {resolver}\n"), RESOLVER),
        None => Ok(()),
    });
    umount2(COVERED, MntFlags::MNT_DETACH)?;
    done
}
