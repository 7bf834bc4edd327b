//! Where a shell's command is: two namespaces, the link between them, and what is started in them.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use dualq_link::{Link, Options, Running, Tun, TunOptions};
use dualq_namespace::{End, Ends};
use dualq_scenario::{Direction, Scenario};
use dualq_units::plain;

use super::log::Log;
use super::path::ShellPath;
use super::{keeper, until};
use crate::cli::{Failure, note};
use crate::watched::Form;

/// What the devices are called, each in its namespace.
const DEVICE: &str = "dualq0";
const IPERF3: &str = "iperf3";
const IPERF3_PORT: u16 = 5201;
/// How long a server at the far end has to listen before the command begins anyway: not all that runs there is a server.
const PATIENCE: Duration = Duration::from_secs(1);

/// Both ends, and their devices.
pub(crate) struct Place {
    ends: Ends,
    near: Tun,
    far: Tun,
}

/// The same with a link between.
pub(crate) struct Joined {
    pub(crate) ends: Ends,
    pub(crate) running: Running,
}

impl Place {
    /// What is for others leaves the far end by the link too, unless there is to be a gateway.
    pub(crate) fn make(path: &ShellPath, gateway: bool) -> Result<Self, Failure> {
        let ends = Ends::create()?;
        let mtu = path.scenario.link.mtu;
        let device = |end| -> Result<Tun, Failure> {
            let options = TunOptions { name: DEVICE.to_owned(), mtu, addresses: ends.of(end) };
            let tun = ends.namespace(end).inside(|| Tun::open(&options))??;
            if end == End::Near || !gateway {
                ends.lead_out(end, DEVICE)?;
            }
            Ok(tun)
        };
        let (near, far) = (device(End::Near)?, device(End::Far)?);
        Ok(Self { ends, near, far })
    }

    /// Starts the link, of which the files have all if there are any.
    pub(crate) fn start(
        self,
        path: &ShellPath,
        seed: u64,
        files: Vec<(std::path::PathBuf, Box<dyn Form>)>,
    ) -> Result<(Joined, Option<Log>), Failure> {
        let Self { ends, near, far } = self;
        let scenario: &Scenario = &path.scenario;
        let log = Log::start(files, scenario, seed, now())?;
        let [down, up] = &path.passages;
        let options = Options { seed, ..Options::default() };
        let running = match &log {
            None => Link::start([down, up], near, far, &options, None),
            Some(log) => {
                let mut watcher = |direction: Direction| log.watcher(direction);
                Link::start([down, up], near, far, &options, Some(&mut watcher))
            }
        };
        Ok((Joined { ends, running: running? }, log))
    }
}

/// The time by the link's clock.
fn now() -> dualq_units::Instant {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    dualq_units::Instant::from_nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// What programs are told at an end: the addresses of the other one.
pub(crate) fn environment(ends: &Ends, end: End) -> Vec<(&'static str, String)> {
    let addresses = &ends.addresses;
    let (names, v4, v6) = match end {
        End::Near => (["FAR", "FAR6"], addresses.far(), addresses.far6()),
        End::Far => (["NEAR", "NEAR6"], addresses.near(), addresses.near6()),
    };
    let mut variables = vec![(names[0], v4.to_string())];
    if ends.has_ipv6 {
        variables.push((names[1], v6.to_string()));
    }
    variables
}

/// An argument in which the far end's addresses are named as in a shell: outside these have no value yet, so that whoever quotes them means
/// them.
pub(crate) fn with_addresses(word: &OsStr, ends: &Ends) -> OsString {
    let mut rest = word.as_bytes();
    let mut done = Vec::new();
    let variables = environment(ends, End::Near);
    while let Some(at) = rest.iter().position(|byte| *byte == b'$') {
        done.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let found = variables.iter().find_map(|(name, value)| Some((value, behind(rest, name)?)));
        match found {
            Some((value, behind)) => {
                done.extend_from_slice(value.as_bytes());
                rest = behind;
            }
            None => {
                done.push(b'$');
                rest = &rest[1..];
            }
        }
    }
    done.extend_from_slice(rest);
    OsString::from_vec(done)
}

/// What is behind `$NAME` or `${NAME}`, if `text` begins with that.
fn behind<'t>(text: &'t [u8], name: &str) -> Option<&'t [u8]> {
    let text = text.strip_prefix(b"$")?;
    if let Some(inside) = text.strip_prefix(b"{") {
        return inside.strip_prefix(name.as_bytes())?.strip_prefix(b"}");
    }
    let behind = text.strip_prefix(name.as_bytes())?;
    let goes_on = behind.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    (!goes_on).then_some(behind)
}

/// Starts the servers at the far end, and waits until they listen.
pub(crate) fn start_far(
    commands: &[String],
    ends: &Ends,
    company: &mut Vec<Child>,
) -> Result<(), Failure> {
    let start = |mut command: Command,
                 output: fn() -> io::Result<Stdio>|
     -> Result<Child, Failure> {
        let cannot =
            |error: io::Error| Failure::Run(format!("cannot start a keeper: {}", plain(&error)));
        command.envs(environment(ends, End::Far));
        let mut keeper = keeper::of(&command, None);
        // Ctrl-C is for the command, and not for what runs at the other end.
        keeper.process_group(0).stdin(Stdio::null());
        keeper.stdout(output().map_err(cannot)?).stderr(output().map_err(cannot)?);
        ends.far.inside(|| keeper.spawn())?.map_err(cannot)
    };
    let errors = || Ok(Stdio::from(io::stderr().as_fd().try_clone_to_owned()?));
    let listening = || ends.far.inside(listening).unwrap_or_default();
    let wait = |company: &mut Vec<Child>, is_there: &dyn Fn(&[u16]) -> bool| {
        until(Instant::now() + PATIENCE, || {
            let mut has_ended = || {
                company
                    .last_mut()
                    .is_some_and(|last| last.try_wait().is_ok_and(|status| status.is_some()))
            };
            is_there(&listening()) || has_ended()
        });
    };
    for words in commands {
        let before = listening();
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(words);
        company.push(start(command, errors)?);
        wait(company, &|ports| ports.iter().any(|port| !before.contains(port)));
        let ended = company.last_mut().and_then(|far| far.try_wait().ok().flatten());
        // One that ends well has done what it was for, or goes on in the background.
        if let Some(status) = ended.map(keeper::status_of).filter(|status| *status != 0) {
            note(&format!("--far {words:?} ended at once, with status {status}"));
        }
    }
    if super::is_in_path(Path::new(IPERF3)) && !listening().contains(&IPERF3_PORT) {
        let mut command = Command::new(IPERF3);
        command.arg("-s");
        company.push(start(command, || Ok(Stdio::null()))?);
        wait(company, &|ports| ports.contains(&IPERF3_PORT));
    }
    Ok(())
}

/// The TCP ports that somebody listens at in the calling thread's namespace.
fn listening() -> Vec<u16> {
    const LISTEN: &str = "0A";
    let read = |table: &str| {
        fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap_or_default()
    };
    let ports = |table: String| -> Vec<u16> {
        let port = |line: &str| {
            let mut fields = line.split_whitespace().skip(1);
            let (_, port) = fields.next()?.rsplit_once(':')?;
            (fields.nth(1)? == LISTEN).then(|| u16::from_str_radix(port, 16).ok())?
        };
        table.lines().filter_map(port).collect()
    };
    [ports(read("tcp")), ports(read("tcp6"))].concat()
}

/// Starts the command's keeper at the near end, where the far one has a name, and others are asked of `resolver`. If this process ends, `forget` goes with it.
pub(crate) fn start_near(
    command: Command,
    ends: &Ends,
    resolver: Option<Ipv4Addr>,
    forget: &Path,
) -> Result<Child, Failure> {
    let namespace = ends.near.try_clone()?;
    let (send, received) = mpsc::channel();
    let ends_of = Ends {
        near: ends.near.try_clone()?,
        far: ends.far.try_clone()?,
        addresses: ends.addresses,
        has_ipv6: ends.has_ipv6,
    };
    let forget = forget.to_owned();
    // Mounts are a thread's own; and the death of a parent is told when the thread ends that started a child, so this one stays.
    let spawning = thread::Builder::new().name("spawner".to_owned()).spawn(move || {
        let started = namespace.enter().map_err(Failure::from).and_then(|()| {
            if let Err(error) = super::hosts::name(&ends_of, resolver) {
                let why = error.desc();
                note(&format!(
                    "the name far is not known here ($FAR is): no mounts of one's own: {why}"
                ));
            }
            let cannot = |error: io::Error| {
                Failure::Run(format!("cannot start a keeper: {}", plain(&error)))
            };
            keeper::of(&command, Some(&forget)).spawn().map_err(cannot)
        });
        let _ = send.send(started);
        // Else both namespaces would be held by whoever only waits.
        drop(ends_of);
        loop {
            thread::park();
        }
    });
    spawning.map_err(|error| Failure::Run(format!("cannot start a thread: {}", plain(&error))))?;
    received.recv().unwrap_or_else(|_| Err(Failure::Run("no keeper was started".to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_addresses_are_whole_words() {
        for (text, name, expected) in [
            ("$FAR:80", "FAR", Some(":80")),
            ("${FAR}x", "FAR", Some("x")),
            ("$FAR6", "FAR", None),
            ("$FAR_", "FAR", None),
            ("${FAR", "FAR", None),
            ("$FAR", "FAR6", None),
        ] {
            let found = behind(text.as_bytes(), name);
            assert_eq!(found, expected.map(str::as_bytes), "{text}");
        }
    }
}
