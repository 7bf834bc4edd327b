//! A world of which one run is written down while it goes on: packets, their headers, connections.

mod events;
mod pcap;
mod qlog;

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use dualq_scenario::{ConnectionEvent, Event, Headers, Outcome, Scenario, Wants};
use dualq_units::plain;
use dualq_worlds::{Observer, World, WorldError};

use crate::cli::Failure;
use crate::cli::run::RunArgs;
use crate::output::Output;
use events::EventList;
use pcap::Capture;
use qlog::ConnectionLog;

/// What a run is written down as. What goes wrong is told by the call in which it did.
pub(crate) trait Form: Send {
    /// What it is made of.
    fn wants(&self) -> Wants;

    /// Writes what stands above all else.
    fn begin(&mut self, world: &str, scenario: &Scenario, seed: u64) -> io::Result<()>;

    /// A packet was seen.
    fn packet(&mut self, _event: &Event) -> io::Result<()> {
        Ok(())
    }

    /// A packet's headers were seen.
    fn headers(&mut self, _headers: &Headers<'_>) -> io::Result<()> {
        Ok(())
    }

    /// A connection did something.
    fn connection(&mut self, _event: &ConnectionEvent) -> io::Result<()> {
        Ok(())
    }

    /// Writes the last of it, and gives back what it went to.
    fn end(self: Box<Self>) -> io::Result<Output>;
}

/// What happens to packets, line by line.
pub(crate) fn event_list(output: Output) -> Box<dyn Form> {
    Box::new(EventList::new(output))
}

/// The headers of packets, for Wireshark.
pub(crate) fn capture(output: Output) -> Box<dyn Form> {
    Box::new(Capture::new(output))
}

/// An option that asks for one.
struct Choice {
    option: &'static str,
    path: fn(&RunArgs) -> Option<&PathBuf>,
    make: fn(Output) -> Box<dyn Form>,
}

const CHOICES: [Choice; 3] = [
    Choice { option: "--events", path: |args| args.events.as_ref(), make: event_list },
    Choice { option: "--pcap", path: |args| args.pcap.as_ref(), make: capture },
    Choice {
        option: "--qlog",
        path: |args| args.qlog.as_ref(),
        make: |output| Box::new(ConnectionLog::new(output)),
    },
];

/// Those that are asked for, with their files.
fn wanted(args: &RunArgs) -> impl Iterator<Item = (&'static Choice, &PathBuf)> {
    CHOICES.iter().filter_map(|choice| Some((choice, (choice.path)(args)?)))
}

/// Refuses what cannot be written down: several runs at once, or where the document goes.
pub(crate) fn check(args: &RunArgs, runs: usize) -> Result<(), Failure> {
    let refuse = |message: String| Err(Failure::Usage(message));
    for (Choice { option, .. }, path) in wanted(args) {
        if runs != 1 {
            return refuse(format!(
                "{option} writes what happens in one run, and these are {runs}: give one value of each list, one --world and no --seeds"
            ));
        }
        let to_stdout = path == Path::new("-");
        if to_stdout && (args.json || args.csv) {
            let form = if args.json { "--json" } else { "--csv" };
            return refuse(format!(
                "{form} and {option} - both want standard output; give {option} a file"
            ));
        }
    }
    Ok(())
}

/// Whether standard output is taken, so that the table has to go elsewhere.
pub(crate) fn takes_stdout(args: &RunArgs) -> bool {
    wanted(args).any(|(_, path)| path == Path::new("-"))
}

/// A world of which one run is written down.
pub(crate) struct Watched<'w> {
    world: &'w dyn World,
    files: Mutex<Files>,
}

/// What is written where, and why that failed.
struct Files {
    forms: Vec<(PathBuf, Box<dyn Form>)>,
    failed: Option<(PathBuf, io::Error)>,
}

impl<'w> Watched<'w> {
    /// The world as it is watched, if the arguments ask for that.
    pub(crate) fn open(args: &RunArgs, world: &'w dyn World) -> Result<Option<Self>, Failure> {
        let open = |(choice, path): (&Choice, &PathBuf)| {
            Ok((path.clone(), (choice.make)(Output::create(path)?)))
        };
        let forms = wanted(args).map(open).collect::<Result<Vec<_>, Failure>>()?;
        let is_wanted = !forms.is_empty();
        let files = Mutex::new(Files { failed: None, forms });
        Ok(is_wanted.then_some(Self { world, files }))
    }

    /// Completes what was written, if the run came to its end.
    pub(crate) fn finish(self, has_ended: bool) -> Result<(), Failure> {
        let Files { forms, failed } =
            self.files.into_inner().unwrap_or_else(PoisonError::into_inner);
        let cannot_write = |path: &Path, error: &io::Error| match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::BrokenPipe,
            _ => Failure::Run(format!("cannot write {}: {}", path.display(), plain(error))),
        };
        if let Some((path, error)) = failed {
            return Err(cannot_write(&path, &error));
        }
        if !has_ended {
            return Ok(());
        }
        // None takes its name before all are complete.
        let mut ended = Vec::new();
        for (path, form) in forms {
            ended.push((form.end().map_err(|error| cannot_write(&path, &error))?, path));
        }
        for (output, path) in ended {
            output.finish().map_err(|error| cannot_write(&path, &error))?;
        }
        Ok(())
    }
}

impl World for Watched<'_> {
    fn name(&self) -> &str {
        self.world.name()
    }

    fn kernel_version(&self) -> Option<&str> {
        self.world.kernel_version()
    }

    fn alone(&self) -> bool {
        self.world.alone()
    }

    fn refuses(&self, scenario: &Scenario) -> Option<String> {
        self.world.refuses(scenario)
    }

    fn run(
        &self,
        scenario: &Scenario,
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<Outcome, WorldError> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.each(|form| form.begin(self.world.name(), scenario, seed));
        self.world.run(scenario, seed, &mut Both { observer, files: &mut files })
    }
}

impl Files {
    /// Writes to each of them, unless writing has failed before.
    fn each(&mut self, mut write: impl FnMut(&mut dyn Form) -> io::Result<()>) {
        for (path, form) in &mut self.forms {
            if self.failed.is_none()
                && let Err(error) = write(&mut **form)
            {
                self.failed = Some((path.clone(), error));
            }
        }
    }
}

/// Tells one observer of the time, and writes all else down.
struct Both<'a> {
    observer: &'a mut dyn Observer,
    files: &'a mut Files,
}

impl Observer for Both<'_> {
    fn passed(&mut self, time: Duration) -> ControlFlow<()> {
        if self.files.failed.is_some() {
            return ControlFlow::Break(());
        }
        self.observer.passed(time)
    }

    fn wants(&self) -> Wants {
        let all = self.files.forms.iter().map(|(_, form)| form.wants());
        all.fold(Wants::default(), |one, other| Wants {
            packets: one.packets || other.packets,
            headers: one.headers || other.headers,
            connections: one.connections || other.connections,
        })
    }

    fn packet(&mut self, event: Event) {
        self.files.each(|form| form.packet(&event));
    }

    fn headers(&mut self, headers: &Headers<'_>) {
        self.files.each(|form| form.headers(headers));
    }

    fn connection(&mut self, event: &ConnectionEvent) {
        self.files.each(|form| form.connection(event));
    }
}

/// Whose the numbers of flows are.
struct Numbered<'s> {
    /// The first, and how many there are.
    first: u32,
    count: u32,
    group: Group<'s>,
}

/// A group of flows, a probe or a group of UDP streams, numbered from 1.
enum Group<'s> {
    Flow(usize, &'s dualq_scenario::FlowGroup),
    Probe(usize, &'s dualq_scenario::ProbeGroup),
    Udp(usize, &'s dualq_scenario::UdpGroup),
}

/// All groups of a scenario in the order of their numbers.
fn numbered(scenario: &Scenario) -> impl Iterator<Item = Numbered<'_>> {
    let flows = scenario.flow.iter().zip(1..);
    let flows = flows.map(|(group, number)| (group.count, Group::Flow(number, group)));
    let probes = scenario.probe.iter().zip(1..);
    let probes = probes.map(|(probe, number)| (1, Group::Probe(number, probe)));
    let udp = scenario.udp.iter().zip(1..);
    let udp = udp.map(|(group, number)| (group.count, Group::Udp(number, group)));
    flows.chain(probes).chain(udp).scan(0, |next, (count, group)| {
        let first = *next;
        *next += count;
        Some(Numbered { first, count, group })
    })
}
