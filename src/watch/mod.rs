//! `dualq watch`: what this machine's queues and connections do now.

mod display;

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use dualq_netlink::{Netlink, NetlinkError};
use dualq_units::plain;
use dualq_watch::{Endpoint, Figures, Look, Metrics, Watcher};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::cli::watch::{Target, WatchArgs};
use crate::cli::{Failure, note};
use crate::output::{Named, print, width};
use crate::screen::{CTRL_C, CTRL_D, Screen};
use crate::signals::Signals;
use display::Display;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// How wide lines are that no terminal shows.
const COLUMNS: usize = 100;

pub(crate) fn run(args: &WatchArgs) -> Result<(), Failure> {
    let failed = |error: NetlinkError| Failure::Run(error.to_string());
    // Threads are not started before: what is done to this process is to hold for them too.
    let signals = Signals::take(false)
        .map_err(|error| Failure::Run(format!("cannot wait for signals: {}", plain(&error))))?;
    let mut watcher = Watcher::open(&args.devices).map_err(|error| match error {
        NetlinkError::NoLink { .. } => Failure::Run(format!("{error}{}", there_are())),
        error => failed(error),
    })?;
    let mut before = watcher.look().map_err(failed)?;
    if let Err(why) = &before.connections {
        note(&format!("nothing is told of TCP connections: {why}"));
    }
    let mut view = View::open(args, &before)?;
    let begin = Instant::now();
    let end = args.whole.map(|whole| begin + whole);
    let mut due = begin;
    let mut left = args.count;
    loop {
        // Whoever was asleep does not look several times at once.
        due = (due + args.interval).max(Instant::now());
        due = end.map_or(due, |end| due.min(end));
        if view.wait(due, &signals)? {
            break;
        }
        let now = watcher.look().map_err(failed)?;
        let figures = Figures::between(&before, &now);
        view.show(begin.elapsed().as_secs_f64(), &now, &figures)?;
        before = now;
        left = left.map(|left| left - 1);
        if left == Some(0) || end.is_some_and(|end| Instant::now() >= end) {
            break;
        }
    }
    view.close()
}

/// The devices that there are, to say behind what is wrong with another one.
fn there_are() -> String {
    let links = Netlink::open().and_then(|mut netlink| netlink.links()).unwrap_or_default();
    let names: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
    if names.is_empty() { String::new() } else { format!("; there are {}", names.join(", ")) }
}

/// Who is shown what happens.
enum View {
    Lines,
    Text(Display),
    Screen(Screen, Display),
    File(Metrics, PathBuf),
    Endpoint(Arc<Mutex<Metrics>>),
}

impl View {
    fn open(args: &WatchArgs, first: &Look) -> Result<Self, Failure> {
        let mut metrics = Metrics::default();
        metrics.add(first, None);
        match &args.prometheus {
            Some(Target::Address(address)) => return Self::serve(*address, metrics),
            Some(Target::File(path)) => {
                write(path, &metrics)?;
                return Ok(Self::File(metrics, path.clone()));
            }
            None => {}
        }
        if args.json {
            return Ok(Self::Lines);
        }
        let display = Display::new(!args.devices.is_empty());
        if !Screen::is_there() {
            return Ok(Self::Text(display));
        }
        let screen = Screen::take()?;
        screen.draw(&display.page(&Screen::size()));
        Ok(Self::Screen(screen, display))
    }

    fn serve(address: SocketAddr, metrics: Metrics) -> Result<Self, Failure> {
        let cannot = |error: io::Error| {
            Failure::Run(format!("--prometheus: cannot listen at {address}: {}", plain(&error)))
        };
        let endpoint = Endpoint::bind(address).map_err(cannot)?;
        let real = endpoint.address().map_err(cannot)?;
        let shared = Arc::new(Mutex::new(metrics));
        let metrics = Arc::clone(&shared);
        let text = move || metrics.lock().unwrap_or_else(PoisonError::into_inner).text(VERSION);
        endpoint.serve(text).map_err(cannot)?;
        note(&format!("metrics are at http://{real}/metrics"));
        Ok(Self::Endpoint(shared))
    }

    /// Waits until then; says whether somebody has had enough before.
    fn wait(&self, until: Instant, signals: &Signals) -> Result<bool, Failure> {
        loop {
            let keys = match self {
                Self::Screen(screen, _) => {
                    let keys = screen.keys(until, Some(signals.as_fd()));
                    // A terminal that is gone has seen enough.
                    keys.unwrap_or_else(|| vec![CTRL_D])
                }
                _ => {
                    let left = until.saturating_duration_since(Instant::now());
                    let timeout = Timespec::try_from(left).ok();
                    let _ = poll(&mut [PollFd::new(signals, PollFlags::IN)], timeout.as_ref());
                    Vec::new()
                }
            };
            let signal = signals.next();
            let signal = signal.map_err(|error| Failure::Run(plain(&error)))?;
            if signal.is_some() || keys.iter().any(|key| matches!(*key, b'q' | CTRL_C | CTRL_D)) {
                return Ok(true);
            }
            if Instant::now() >= until {
                return Ok(false);
            }
        }
    }

    fn show(&mut self, seconds: f64, look: &Look, figures: &Figures) -> Result<(), Failure> {
        match self {
            Self::Lines => {
                let line = serde_json::to_string(figures).expect("figures are plain data");
                print(&mut io::stdout(), &format!("{line}\n"))
            }
            Self::Text(display) => {
                display.add(figures);
                let lines = display.lines(width().unwrap_or(COLUMNS));
                print(&mut io::stdout(), &format!("{seconds:.1} s\n{}\n\n", lines.join("\n")))
            }
            Self::Screen(screen, display) => {
                display.add(figures);
                screen.draw(&display.page(&Screen::size()));
                Ok(())
            }
            Self::File(metrics, path) => {
                metrics.add(look, Some(figures));
                write(path, metrics)
            }
            Self::Endpoint(metrics) => {
                let mut metrics = metrics.lock().unwrap_or_else(PoisonError::into_inner);
                metrics.add(look, Some(figures));
                Ok(())
            }
        }
    }

    /// What was on the other page last stays on this one.
    fn close(self) -> Result<(), Failure> {
        let Self::Screen(screen, display) = self else { return Ok(()) };
        drop(screen);
        let lines = display.lines(Screen::size().columns);
        print(&mut io::stdout(), &format!("{}\n", lines.join("\n")))
    }
}

/// Whole or not at all, so that nobody reads half of it.
fn write(path: &Path, metrics: &Metrics) -> Result<(), Failure> {
    Named::open(path)?.write(metrics.text(VERSION).as_bytes())
}
