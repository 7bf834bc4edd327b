//! `dualq diff`: the same scenario and seed in both worlds, packet by packet, up to where they part. For developers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use dualq_scenario::{Direction, Event, Limit, Overrides, ProbeKind, Scenario, Seen, Sweep};
use dualq_units::plain;
use dualq_worlds::World;
use serde_json::Value;

use crate::cli::check::DiffArgs;
use crate::cli::{Failure, WorldName, note};
use crate::input::{self, LONGEST_RESULT};
use crate::output::print;
use crate::world;

/// The names of the two worlds, in the order of their events.
const WORLDS: [&str; 2] = ["model", "kernel"];

pub(crate) fn run(args: &DiffArgs) -> Result<(), Failure> {
    let scenarios = scenarios(args)?;
    let worlds = [
        world::open(WorldName::Model, None)?,
        world::open(WorldName::Kernel, args.kernel.as_deref())?,
    ];
    if let [scenario] = scenarios.as_slice() {
        let [model, kernel] = play(args, scenario, &worlds)?;
        return print(&mut io::stdout(), &compare(args, &model, &kernel));
    }
    if args.events.is_some() {
        let message = "--events keeps those of one scenario: name it with --name";
        return Err(Failure::Usage(message.to_owned()));
    }
    let mut alike = 0;
    for scenario in &scenarios {
        let [model, kernel] = play(args, scenario, &worlds)?;
        let name = &scenario.name;
        let parted = parting(args, &model, &kernel);
        alike += u32::from(parted.is_none());
        let line = match parted {
            None => format!("{name}: the same for all of its {:?}\n", scenario.duration),
            Some((at_ns, flow)) => {
                format!("{name}: after {:.3} ms, in flow {flow}\n", at_ns as f64 / 1e6)
            }
        };
        print(&mut io::stdout(), &line)?;
    }
    let all = scenarios.len();
    print(&mut io::stdout(), &format!("{alike} of {all} scenarios have the same packets\n"))
}

/// What both worlds tell of a scenario and can be compared.
fn play(
    args: &DiffArgs,
    scenario: &Scenario,
    worlds: &[Box<dyn World>; 2],
) -> Result<[Vec<Event>; 2], Failure> {
    let mut both = [Vec::new(), Vec::new()];
    for ((world, name), events) in worlds.iter().zip(WORLDS).zip(&mut both) {
        let mut seen: Vec<Event> = Vec::new();
        let outcome = world.run(scenario, args.seed, &mut seen)?;
        // Where the worlds seem to part, packets may be missing that nobody had room to see.
        for limit in Limit::in_words([&outcome]) {
            note(&format!("{}: world {name}: {limit}", scenario.name));
        }
        if let Some(folder) = &args.events {
            let path = folder.join(format!("{name}.jsonl"));
            let written = fs::create_dir_all(folder).and_then(|()| write(&path, &seen));
            written.map_err(|error| {
                Failure::Run(format!("cannot write {}: {}", path.display(), plain(&error)))
            })?;
        }
        // A ping has no place in a stream of bytes, and only the model tells what becomes of packets elsewhere.
        let both_tell = |event: &Event| match event.seen {
            Seen::In | Seen::Out => event.direction.is_down() || goes_up(scenario, event.flow),
            Seen::Ack => !event.direction.is_down(),
            Seen::Drop | Seen::Sent | Seen::Arrive => false,
        };
        seen.retain(|event| both_tell(event) && !is_ping(scenario, event.flow));
        *events = seen;
    }
    Ok(both)
}

/// Whether an event's flow, of TCP or of UDP, is one that goes up, whose data are seen at the queue of that direction.
fn goes_up(scenario: &Scenario, flow: u32) -> bool {
    let flows = scenario.flow.iter().map(|group| (group.count, group.direction));
    let probes = scenario.probe.iter().map(|_| (1, Direction::Down));
    let udp = scenario.udp.iter().map(|group| (group.count, group.direction));
    let mut before = 0;
    let group = flows.chain(probes).chain(udp).find(|(count, _)| {
        before += count;
        flow < before
    });
    group.is_some_and(|(_, direction)| !direction.is_down())
}

/// Whether a flow of an event is a ping; probes are numbered after all flows.
fn is_ping(scenario: &Scenario, flow: u32) -> bool {
    let flows: u32 = scenario.flow.iter().map(|group| group.count).sum();
    let probe = flow.checked_sub(flows).and_then(|number| scenario.probe.get(number as usize));
    probe.is_some_and(|probe| probe.kind == ProbeKind::Ping)
}

fn write(path: &std::path::Path, events: &[Event]) -> io::Result<()> {
    let mut file = io::BufWriter::new(fs::File::create(path)?);
    for event in events {
        writeln!(file, "{}", serde_json::to_string(event)?)?;
    }
    file.flush()
}

/// The one that is named, or all of the file.
fn scenarios(args: &DiffArgs) -> Result<Vec<Scenario>, Failure> {
    let named = args.file.display();
    let text = input::text(&args.file, LONGEST_RESULT)
        .map_err(|error| Failure::Run(format!("cannot read {named}: {}", plain(&error))))?;
    let lines_of_json = text.trim_start().starts_with('{')
        || args.file.extension().is_some_and(|extension| extension == "jsonl");
    let mut scenarios = Vec::new();
    if lines_of_json {
        for (number, line) in (1..).zip(text.lines()) {
            if line.trim().is_empty() {
                continue;
            }
            let mut line: Value = serde_json::from_str(line)
                .map_err(|error| Failure::Usage(format!("{named}: line {number}: {error}")))?;
            let line = line["scenario"].take();
            let name = line["name"].as_str().unwrap_or_default().to_owned();
            if args.name.as_ref().is_some_and(|wanted| *wanted != name) {
                continue;
            }
            let scenario = serde_json::from_value(line)
                .map_err(|error| Failure::Usage(format!("{named}: line {number}: {error}")))?;
            scenarios.push(scenario);
        }
    } else {
        let folder = args.file.parent().unwrap_or(Path::new(""));
        let sweep = Sweep::parse_in(folder, &text, &Overrides::default())
            .map_err(|error| Failure::Usage(format!("{named}: {error}")))?;
        if args.name.is_some() {
            let message = "--name is for files of references: a scenario (TOML) is one";
            return Err(Failure::Usage(message.to_owned()));
        }
        let variants = sweep.variants();
        if let [first, _, ..] = variants.as_slice() {
            let settings = first.settings.iter().map(|(what, value)| format!("{what} {value}"));
            let settings = settings.collect::<Vec<_>>().join(", ");
            note(&format!(
                "{named} has {} scenarios; this is the first: {settings}",
                variants.len()
            ));
        }
        scenarios.extend(variants.into_iter().next().map(|variant| variant.scenario));
    }
    if scenarios.is_empty() {
        let name = args.name.as_deref().unwrap_or("at all");
        return Err(Failure::Usage(format!("{named} has no scenario {name}")));
    }
    Ok(scenarios)
}

/// The events of each flow at one place.
type Streams<'a> = BTreeMap<(u32, u8), Vec<&'a Event>>;

fn streams<'a>(args: &DiffArgs, events: &'a [Event]) -> Streams<'a> {
    let mut streams = Streams::new();
    for event in events {
        // Segments that carry nothing are in the model only where something hangs on them.
        let empty = event.bytes == 0 && event.seen != Seen::Ack;
        let wanted = args.flow.is_none_or(|flow| flow == event.flow);
        if wanted && !empty && event.at_ns >= args.from.saturating_mul(1_000_000) {
            streams.entry((event.flow, event.seen as u8)).or_default().push(event);
        }
    }
    streams
}

fn same(one: &Event, other: &Event, slack_ns: u64) -> bool {
    let alike = |event: &Event| (event.seq, event.bytes, event.ecn, event.sacks);
    alike(one) == alike(other) && one.at_ns.abs_diff(other.at_ns) <= slack_ns
}

/// When the worlds part first, and in which flow.
fn parting(args: &DiffArgs, model: &[Event], kernel: &[Event]) -> Option<(u64, u32)> {
    let slack_ns = args.slack.saturating_mul(1_000);
    let (ours, theirs) = (streams(args, model), streams(args, kernel));
    let keys: BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
    let parted = keys.into_iter().filter_map(|key| {
        let own = ours.get(key).map(Vec::as_slice).unwrap_or_default();
        let other = theirs.get(key).map(Vec::as_slice).unwrap_or_default();
        let alike = own.iter().zip(other).take_while(|(a, b)| same(a, b, slack_ns)).count();
        let parted = own.get(alike).into_iter().chain(other.get(alike)).map(|event| event.at_ns);
        Some((parted.min()?, key.0))
    });
    parted.min()
}

fn compare(args: &DiffArgs, model: &[Event], kernel: &[Event]) -> String {
    let slack_ns = args.slack.saturating_mul(1_000);
    let mut text = String::new();
    if streams(args, model).is_empty() && streams(args, kernel).is_empty() {
        let flow = args.flow.map(|flow| format!(" of flow {flow}")).unwrap_or_default();
        return format!("no packets{flow} in either world after {} ms\n", args.from);
    }
    let Some((at_ns, flow)) = parting(args, model, kernel) else {
        return "the same packets in both worlds\n".to_owned();
    };
    let at_ms = at_ns as f64 / 1e6;
    let _ = writeln!(text, "the worlds part after {at_ms:.3} ms, in flow {flow}");
    for (name, events) in WORLDS.iter().zip([model, kernel]) {
        let _ =
            writeln!(text, "\n{name}: ms, flow, where, place, bytes or window, ECN, SACK blocks");
        let wanted: Vec<&Event> = events
            .iter()
            .filter(|event| args.flow.map_or(event.flow == flow, |only| event.flow == only))
            .collect();
        let middle = wanted.partition_point(|event| event.at_ns.saturating_add(slack_ns) < at_ns);
        let shown = &wanted[middle.saturating_sub(args.context)..];
        for event in shown.iter().take(args.context.saturating_mul(2)) {
            let seen = event.seen.name();
            let Event { at_ns, flow, seq, bytes, ecn, sacks, .. } = event;
            let at_ms = *at_ns as f64 / 1e6;
            let _ = writeln!(
                text,
                "{at_ms:12.3} {flow:>4} {seen:<4} {seq:>12} {bytes:>9} {ecn} {sacks}"
            );
        }
    }
    text
}
