//! `dualq apply`, `confirm`, `rollback`, and what comes with them: this machine changed, and taken back.

mod background;
pub(crate) mod privileges;

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::path::Path;
use std::thread;
use std::time::Duration;

use dualq_host::apply::{
    Already, ApplyError, Confirmed, Host, Prepared, Ready, Record, Rollback, Step, Store, name,
};
use dualq_host::plan::{At, Part, What};
use dualq_host::{Plan, Root};
use dualq_netlink::Netlink;
use dualq_report::words::printable;
use dualq_units::plain;

use background::Duty;

use crate::cli::apply::{
    ApplyArgs, ConfirmArgs, OnBootArgs, PutBackArgs, RollbackArgs, StateArgs, StatusArgs,
    WatchOverArgs,
};
use crate::cli::{Failure, note};
use crate::output::{print, shell_word};
use crate::{report, verify};

/// How often `dualq status --watch` looks.
const LOOK: Duration = Duration::from_secs(1);
/// To the top left, and clear what is there (ECMA-48).
const REDRAW: &str = "\x1b[H\x1b[2J";

pub(crate) fn apply(args: &ApplyArgs) -> Result<(), Failure> {
    let plan = read(&args.plan)?;
    // Before there are threads.
    let signals = args.verify.as_ref().map(|_| verify::take_signals()).transpose()?;
    if args.dry_run {
        privileges::check_reading("apply --dry-run", &args.state.state)?;
    } else {
        privileges::check("apply")?;
    }
    let mut host = host(&args.state)?;
    finish_earlier(&mut host, args.dry_run)?;
    if let Some((name, signals)) = args.verify.as_deref().zip(signals.as_ref()) {
        verify::before_keeping(&mut host, &plan, (name, &args.how), signals)?;
    }
    let ready = match host
        .prepare(&plan, args.confirm_within, args.dry_run)
        .map_err(|error| shown(&error))?
    {
        Prepared::Ready(ready) => ready,
        Prepared::Already(Already::There) => {
            return say("nothing to change: all is as the plan asks for\n");
        }
        Prepared::Already(Already::Waiting(left)) => {
            let left = left.as_secs();
            return say(&format!(
                "nothing to change: the plan is applied; `dualq confirm` within {left} s keeps it\n"
            ));
        }
    };
    if args.dry_run {
        return say(&intentions(&ready));
    }
    let state = &args.state.state;
    let store = Store::new(state);
    let mut guard = |record: &Record| guard(record, &store);
    let record = ready.make(&mut guard, &mut told).map_err(|error| shown(&error))?;
    if host.store().is_in_memory() {
        note(&format!(
            "{} is in memory: after a restart nothing could be rolled back; --state puts it elsewhere",
            state.display()
        ));
    }
    if args.verify.is_some() {
        let confirmed = host.confirm(Some(&plan), false, &mut told);
        return confirmed
            .map_err(|error| shown(&error))
            .and_then(|confirmed| say_confirmed(&host, &confirmed));
    }
    let files =
        record.plan.changes.iter().filter(|change| matches!(change.what, What::File { .. }));
    let files = match files.count() {
        0 => String::new(),
        1 => ", and writes 1 file".to_owned(),
        files => format!(", and writes {files} files"),
    };
    say(&format!(
        "applied; `dualq confirm` within {} s keeps it{files}; else all is taken back\n",
        record.within.as_secs()
    ))
}

/// Starts what takes the plan of a record back unless it is confirmed.
pub(crate) fn guard(record: &Record, store: &Store) -> Result<(), ApplyError> {
    background::start(Duty::WatchOver(record.number), store)
}

/// Starts what finishes a rollback if this process is killed, unless it is there; where that fails, the rollback goes on all the same.
pub(crate) fn finisher(record: &Record, store: &Store) {
    let started = match store.is_watched(record.number) {
        Ok(true) => Ok(()),
        _ => guard(record, store),
    };
    if let Err(error) = started {
        note(&error.to_string());
    }
}

pub(crate) fn confirm(args: &ConfirmArgs) -> Result<(), Failure> {
    let named = args.plan.as_deref().map(read).transpose()?;
    privileges::check("confirm")?;
    let mut host = host(&args.state)?;
    finish_earlier(&mut host, args.dry_run)?;
    let confirmed = host.confirm(named.as_ref(), args.dry_run, &mut told);
    match confirmed.map_err(|error| shown(&error))? {
        Confirmed::Now(record) if args.dry_run => {
            say(&format!("it can be confirmed: {}\n", record.plan.about))
        }
        confirmed => say_confirmed(&host, &confirmed),
    }
}

fn say_confirmed(host: &Host, confirmed: &Confirmed) -> Result<(), Failure> {
    if let Err(error) = keep_of(host) {
        note(&format!(
            "{error}: what others take away comes back at the next start of the machine only"
        ));
    }
    match confirmed {
        Confirmed::Already(record) => {
            say(&format!("nothing to change: confirmed is {}\n", record.plan.about))
        }
        Confirmed::Now(record) => {
            say(&format!("confirmed: {}; `dualq rollback` takes it back\n", record.plan.about))
        }
    }
}

/// Starts what puts back what others take away, if a plan has such and nobody does it.
fn keep_of(host: &Host) -> Result<(), ApplyError> {
    if host.to_keep()?.is_empty() || host.store().is_kept()? {
        return Ok(());
    }
    background::start(Duty::PutBack, host.store())
}

pub(crate) fn rollback(args: &RollbackArgs) -> Result<(), Failure> {
    privileges::check("rollback")?;
    let mut host = host(&args.state)?;
    if let Some(record) = finish_earlier(&mut host, args.dry_run)?
        && !(args.force && record.is_open())
    {
        return rolled_back(&record);
    }
    let how = Rollback { pretend: args.dry_run, force: args.force };
    let store = host.store().clone();
    let record = host
        .rollback(how, &mut |record| finisher(record, &store), &mut told)
        .map_err(|error| shown(&error))?;
    if args.dry_run {
        return say("it can be rolled back\n");
    }
    rolled_back(&record)
}

/// That all is as it was is said only if it is.
fn rolled_back(record: &Record) -> Result<(), Failure> {
    let about = &record.plan.about;
    if record.left.is_empty() {
        return say(&format!("rolled back: {about}; all is as it was before\n"));
    }
    Err(Failure::Run(format!(
        "rolled back: {about}; but not all is as it was before: {}",
        record.left.join("; ")
    )))
}

pub(crate) fn status(args: &StatusArgs) -> Result<(), Failure> {
    privileges::check_reading("status", &args.state.state)?;
    let mut host = host(&args.state)?;
    let redraw = args.watch && io::stdout().is_terminal();
    loop {
        let status = host.status().map_err(|error| shown(&error))?;
        let text =
            if args.json { report::status::json(&status) } else { report::status::text(&status) };
        let clear = if redraw { REDRAW } else { "" };
        say(&format!("{clear}{text}"))?;
        if !args.watch {
            return Ok(());
        }
        if !redraw {
            say("\n")?;
        }
        thread::sleep(LOOK);
    }
}

pub(crate) fn on_boot(args: &OnBootArgs) -> Result<(), Failure> {
    let mut host = host(&args.state)?;
    match host.recover(&mut |_| {}) {
        // What the caller belongs to was not meant to stay.
        Ok(Some(record)) if is_about(&record.plan, &args.dev) => return Ok(()),
        Ok(_) | Err(ApplyError::Busy) => {}
        Err(error) => {
            note(&error.to_string());
            // What is to be taken back is not put there anew, though it cannot be taken back now.
            if matches!(host.unfinished(), Ok(Some(_))) {
                return Ok(());
            }
        }
    }
    let part = match (args.down.as_deref(), args.route, args.parent) {
        (Some(ifb), ..) => Part::Arriving { ifb },
        (None, Some(to), _) => Part::Route { to },
        (None, None, Some(class)) => Part::Below { class },
        _ if args.offloads => Part::Offloads,
        _ if args.each => Part::Each,
        _ => Part::Leaving,
    };
    let (at, line) = (At { dev: &args.dev, part }, args.line.as_str());
    at.check(line).map_err(Failure::Usage)?;
    // Of one event udev does all that it has read, also if the first of it takes the plan back.
    if host.was_taken_back(at, line).unwrap_or(false) {
        note("nothing is done: the plan that this is of was taken back");
        return Ok(());
    }
    host.on_boot(at, line).map_err(|error| shown(&error))?;
    let is_kept = matches!(part, Part::Route { .. } | Part::Below { .. });
    if is_kept && !host.store().is_kept().unwrap_or(false) {
        background::start_later(Duty::PutBack, host.store()).map_err(|error| shown(&error))?;
    }
    Ok(())
}

pub(crate) fn put_back(args: &PutBackArgs) -> Result<(), Failure> {
    let mut host = host(&args.state)?;
    // A unit of systemd may come before what has the folder is mounted, and waits.
    if !args.unit && host.to_keep().map_err(|error| shown(&error))?.is_empty() {
        return say("nothing to put back: no plan that is applied here has a route or a class\n");
    }
    background::leave(args.unit);
    host.keep().map_err(|error| shown(&error))
}

pub(crate) fn watch_over(args: &WatchOverArgs) -> Result<(), Failure> {
    background::settle(args.unit)?;
    let mut host = host(&args.state)?;
    host.watch_over(args.number, &mut |_| {}).map(drop).map_err(|error| shown(&error))
}

fn is_about(plan: &Plan, interface: &str) -> bool {
    plan.changes.iter().any(|change| change.what.interface() == Some(interface))
}

pub(crate) fn host(state: &StateArgs) -> Result<Host, Failure> {
    let netlink = Netlink::open().map_err(|error| Failure::Run(error.to_string()))?;
    let host = Host::new(Root::host(), netlink, &state.state);
    Ok(match std::env::current_exe() {
        Ok(program) => host.program(program),
        Err(_) => host,
    })
}

pub(crate) fn read(path: &Path) -> Result<Plan, Failure> {
    let mut text = String::new();
    // Of a longer one enough is read to be refused.
    let most = Plan::LONGEST as u64 + 1;
    let read = if path == Path::new("-") {
        io::stdin().take(most).read_to_string(&mut text)
    } else {
        File::open(path).and_then(|file| file.take(most).read_to_string(&mut text))
    };
    let shown = path.display();
    read.map_err(|error| {
        let hint = match error.kind() {
            io::ErrorKind::NotFound => {
                let word = shell_word(&path.to_string_lossy());
                format!("; `dualq plan -o {word}` makes one")
            }
            _ => String::new(),
        };
        Failure::Run(format!("cannot read the plan {shown}: {}{hint}", plain(&error)))
    })?;
    Plan::read(&text).map_err(|error| {
        // Each plan says by which rules it is written; of one that is too long it does not matter what it is.
        let is_plan =
            text.len() > Plan::LONGEST || text.lines().any(|line| line.starts_with("format"));
        Failure::Usage(match is_plan {
            true => format!("the plan {shown}: {error}"),
            false => format!("{shown} is no plan, which `dualq plan -o plan.toml` makes ({error})"),
        })
    })
}

/// Finishes what an earlier call left unfinished, and gives its record if there was something. A call that must not change anything only says
/// that it cannot go on.
pub(crate) fn finish_earlier(host: &mut Host, pretend: bool) -> Result<Option<Record>, Failure> {
    match host.unfinished().map_err(|error| shown(&error))? {
        None => Ok(None),
        Some(why) if pretend => Err(Failure::Run(format!(
            "an earlier plan is to be taken back first ({why}): `dualq rollback` does that"
        ))),
        Some(_) => recover(host).map_err(|error| shown(&error)),
    }
}

fn recover(host: &mut Host) -> Result<Option<Record>, ApplyError> {
    let Some(record) = host.recover(&mut |_| {})? else { return Ok(None) };
    let why = record.why.as_deref().unwrap_or_default();
    note(&format!("{} was taken back: {why}", record.plan.about));
    warn_of(&record);
    Ok(Some(record))
}

fn warn_of(record: &Record) {
    record.left.iter().for_each(|left| note(&format!("left as it is: {left}")));
}

/// The error in one line, below what is not as it should be.
pub(crate) fn shown(error: &ApplyError) -> Failure {
    for difference in error.differences() {
        // The line below says it in short.
        let _ = write!(io::stdout(), "{}", printable(&difference.to_string()));
    }
    Failure::Run(error.to_string())
}

fn say(text: &str) -> Result<(), Failure> {
    print(&mut io::stdout(), text)
}

/// Nobody reads it any more, perhaps: that is no reason to stop half-way.
fn told(step: &Step) {
    let (word, what) = match step {
        Step::Made(what) => ("changed", what),
        Step::Restored(what) => ("restored", what),
        Step::Recorded | Step::Part(_) => return,
    };
    let _ = writeln!(io::stdout(), "{word} {}", printable(what));
}

/// What would be done.
fn intentions(ready: &Ready<'_>) -> String {
    let mut text = String::new();
    for (change, due) in ready.plan().changes.iter().zip(ready.due()) {
        let what = name(&change.what);
        let line = match &change.what {
            _ if !due => format!("{what} is as the plan asks for"),
            What::Module { module } => format!("would load the module {module}"),
            What::Sysctl { before, after, .. } | What::Offload { before, after, .. } => {
                format!("would set {what} from {before} to {after}")
            }
            What::Qdisc { dev, after, each: true, .. } => {
                format!("would put {:?} at each transmit queue of {dev}", after.text())
            }
            What::Qdisc { dev, parent: Some(class), after, .. } => {
                format!("would put {:?} below class {class} of {dev}", after.text())
            }
            What::Qdisc { dev, after, .. } => {
                format!("would put {:?} at the root of {dev}", after.text())
            }
            What::Ingress { ifb, after, .. } => {
                format!("would take {what} through {ifb}, with {:?} at its root", after.text())
            }
            What::Route { to, mtu } => format!("would add a route to {to} with an MTU of {mtu}"),
            What::File { path, .. } | What::Lines { path, .. } => {
                format!("would write {path} when confirmed")
            }
        };
        text.push_str(&line);
        text.push('\n');
    }
    text
}
