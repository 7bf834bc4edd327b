//! `dualq shell`: a command behind a link of dualq's own.

mod control;
mod display;
mod document;
mod gateway;
mod hosts;
pub(crate) mod keeper;
mod live;
mod log;
mod path;
mod place;
mod summary;
mod watch;

use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dualq_namespace::{End, NamespaceError};
use dualq_units::plain;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::cli::shell::{OpenArgs, SetArgs, ShellAction, ShellArgs, WatchArgs};
use crate::cli::{Failure, note, note_qdiscs};
use crate::output::{Named, Output, print, print_as_it_is};
use crate::signals::{Came, Signals};
use control::{Remote, Socket, VARIABLE};
use display::Below;
use gateway::Gateway;
use live::Live;
use path::ShellPath;
use place::Place;

/// How often it is looked whether the link is still there, and how often what is shown is shown anew.
const LOOK: Duration = Duration::from_millis(200);
/// A shell that is there on every Unix (POSIX).
const SHELL: &str = "/bin/sh";

pub(crate) fn run(args: &ShellArgs) -> Result<(), Failure> {
    match &args.action {
        None => open(&args.open),
        Some(ShellAction::Watch(args)) => look(args),
        Some(ShellAction::Set(args)) => set(args),
    }
}

fn look(args: &WatchArgs) -> Result<(), Failure> {
    let mut remote = Remote::find(args.pid)?;
    if args.json {
        let document = remote.look()?;
        return print(&mut io::stdout(), &json(&document));
    }
    watch::watch(&mut remote)
}

fn set(args: &SetArgs) -> Result<(), Failure> {
    // What is wrong whatever shell there is, is said first.
    live::wanted(&args.changes, [Duration::ZERO; 2])?;
    let told = Remote::find(args.pid)?.set(&args.changes)?;
    print(&mut io::stdout(), &format!("{told}\n"))
}

fn json(document: &document::Document) -> String {
    let mut text = serde_json::to_string_pretty(document).expect("a document is JSON");
    text.push('\n');
    text
}

fn open(args: &OpenArgs) -> Result<(), Failure> {
    let path = ShellPath::of(args)?;
    let command = command(args)?;
    log::check(args)?;
    if !args.quiet {
        note_qdiscs([&path.scenario]);
    }
    // Threads are not started before: what is done to this process is to hold for them too.
    let signals = Signals::take(false)
        .map_err(|error| Failure::Run(format!("cannot wait for signals: {}", plain(&error))))?;
    let gateway = args.gateway.then(Gateway::prepare).transpose()?;
    dualq_namespace::become_able()?;
    keeper::adopt()?;
    let files = log::files(args)?;
    args.json.as_deref().map(Output::check).transpose()?;
    let place = Place::make(&path, gateway.is_some())?;
    let terminal = Terminal::here();
    let (place, log) = place.start(&path, args.seed, files)?;
    let live = Arc::new(Live::new(place.running, &path, words(&command)));
    let socket = Socket::open(&live)?;
    let mut company = Company::default();
    let started = start_all(args, (&place.ends, &socket), gateway, &command, &mut company);
    let below = (started.is_ok() && args.watch).then(|| Below::begin(&live)).flatten();
    if started.is_ok() && !args.quiet {
        greet(args, &path, &place.ends);
    }
    let status = started.and_then(|mut keeper| wait(&mut keeper, &signals, &live, below.as_ref()));
    drop(below);
    terminal.restore();
    drop(company);
    // Those of a keeper that was killed.
    keeper::end_all(Duration::ZERO);
    drop(socket);
    let document = live.stop();
    if let Some(log) = log {
        log.finish()?;
    }
    let status = status?;
    let document = document.ok_or_else(|| Failure::Run("the link has stopped".to_owned()))?;
    if let Some(path) = &args.json {
        Named::open(path)?.write(json(&document).as_bytes())?;
    }
    if !args.quiet {
        print_as_it_is(&mut io::stderr(), &summary::text(&document))?;
    }
    match status {
        0 => Ok(()),
        status => Err(Failure::Command(status)),
    }
}

/// The command, or the user's shell, if it is there.
fn command(args: &OpenArgs) -> Result<Vec<OsString>, Failure> {
    let usual = || {
        let shell = env::var_os("SHELL").filter(|shell| is_program(Path::new(shell)));
        vec![shell.unwrap_or_else(|| SHELL.into())]
    };
    let command = if args.command.is_empty() { usual() } else { args.command.clone() };
    let name = PathBuf::from(&command[0]);
    let is_there = match name.components().count() {
        1 if !command[0].to_string_lossy().contains('/') => is_in_path(&name),
        _ => name.exists(),
    };
    if is_there {
        return Ok(command);
    }
    let where_to = if name.components().count() == 1 { " in PATH" } else { "" };
    Failure::Run(format!("cannot run {}: there is no such program{where_to}", name.display()))
        .report();
    Err(Failure::Command(keeper::NOT_FOUND))
}

/// Whether there is a program of that name where programs are looked for.
fn is_in_path(name: &Path) -> bool {
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&folders).any(|folder| is_program(&folder.join(name)))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|is| is.is_file() && is.permissions().mode() & 0o111 != 0)
}

fn words(command: &[OsString]) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

/// What is said before a shell that somebody types into.
fn greet(args: &OpenArgs, path: &ShellPath, ends: &dualq_namespace::Ends) {
    if args.command.is_empty() && io::stdin().is_terminal() {
        let far = ends.addresses.far();
        let _ = writeln!(
            io::stderr(),
            "dualq: behind {}. The far end is $FAR ({far}); `dualq shell watch` shows the link, `exit` leaves.",
            path.words()
        );
    }
}

/// What runs at the far end; it ends with this.
#[derive(Default)]
struct Company(Vec<Child>);

impl Drop for Company {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(keeper::end);
    }
}

/// Starts what is to be at the far end, and then the command.
fn start_all(
    args: &OpenArgs,
    (ends, socket): (&dualq_namespace::Ends, &Socket),
    gateway: Option<Gateway>,
    words: &[OsString],
    company: &mut Company,
) -> Result<Child, Failure> {
    let cannot = |error: NamespaceError| Failure::Run(error.to_string());
    ends.far
        .inside(|| dualq_far::start(ends.has_ipv6))
        .map_err(cannot)?
        .map_err(|error| Failure::Run(format!("cannot open the far end: {}", plain(&error))))?;
    let resolver = gateway.is_some().then(|| ends.addresses.resolver());
    if let Some(gateway) = gateway {
        gateway.open(ends, &mut company.0)?;
    }
    place::start_far(&args.far, ends, &mut company.0)?;
    let mut command = Command::new(&words[0]);
    let own = std::process::id().to_string();
    // What stands behind a `--` of its own, another command's, may be a link's that nests in this one.
    let nested = words.iter().position(|word| word == "--").unwrap_or(words.len());
    command.args(words[1..nested].iter().map(|word| place::with_addresses(word, ends)));
    command.args(&words[nested..]);
    command.env(VARIABLE, own).envs(place::environment(ends, End::Near));
    place::start_near(command, ends, resolver, socket.path())
}

/// Waits for the command's end, and passes signals on to it.
fn wait(
    keeper: &mut Child,
    signals: &Signals,
    live: &Live,
    below: Option<&Below>,
) -> Result<u8, Failure> {
    let failed =
        |error: io::Error| Failure::Run(format!("cannot wait for the command: {}", plain(&error)));
    let pid = Pid::from_child(keeper);
    let ended: OwnedFd =
        pidfd_open(pid, PidfdFlags::empty()).map_err(|error| failed(error.into()))?;
    let mut is_alive = true;
    loop {
        if let Some(status) = keeper.try_wait().map_err(failed)? {
            return Ok(keeper::status_of(status));
        }
        let mut fds =
            [signals.as_fd(), ended.as_fd()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let timeout = Timespec { tv_sec: 0, tv_nsec: LOOK.subsec_nanos().into() };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(failed(error.into())),
        }
        while let Some(Came { signal, by_terminal }) = signals.next().map_err(failed)? {
            // The command and its keeper have it too if it is a key's.
            if !by_terminal || signal == Signal::HUP {
                let _ = kill_process(pid, signal);
            }
        }
        if is_alive && !live.is_alive() {
            is_alive = false;
            note("the link has stopped: nothing passes any more");
        }
        if let Some(below) = below {
            below.draw(live);
        }
    }
}

/// Whose keys the terminal's are, as it was before: a shell that is killed does not give them back.
struct Terminal(Option<Pid>);

impl Terminal {
    fn here() -> Self {
        Self(rustix::termios::tcgetpgrp(io::stdin()).ok())
    }

    fn restore(&self) {
        let Some(group) = self.0 else { return };
        // Else this process, in the background, would be stopped.
        let stops: nix::sys::signal::SigSet = [nix::sys::signal::SIGTTOU].into_iter().collect();
        if stops.thread_block().is_ok() {
            let _ = rustix::termios::tcsetpgrp(io::stdin(), group);
        }
    }
}

impl From<NamespaceError> for Failure {
    fn from(error: NamespaceError) -> Self {
        Self::Run(error.to_string())
    }
}

impl From<dualq_link::LinkError> for Failure {
    fn from(error: dualq_link::LinkError) -> Self {
        Self::Run(error.to_string())
    }
}

/// Since when something is waited for, and until when.
pub(super) fn until(deadline: Instant, mut is_there: impl FnMut() -> bool) -> bool {
    while !is_there() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    true
}
