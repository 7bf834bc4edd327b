//! Whatever ends a session, a process or a machine half-way.

use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::{Bench, CONFIRMED, READY, expect};
use crate::image::Image;
use crate::machine::{Machine, Running, STEP, State};

/// How long an unconfirmed plan is left there, in seconds.
const WITHIN: u64 = 5;
/// What is then needed to take it back, on a slow machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A plan that lets nothing through is applied by the SSH that it cuts off; then the cable is pulled, and the client dies.
pub fn lockout(bench: &mut Bench) -> Result<String> {
    let machine = bench.ready(Image::Networkd)?;
    let mut running = machine.resume(READY)?;
    let fresh = running.state()?;
    running.run("dualq plan --qdisc 'netem loss 100%' -o /root/deaf.toml")?;
    let apply = format!("dualq apply --confirm-within {WITHIN}s ");
    let deaf = running.ssh_command(&format!("{apply} deaf.toml")).stdout(Stdio::null()).spawn()?;
    wait(&mut running, "tc qdisc show dev enp0s1 | grep -q 'netem.*loss 100%'")?;
    back(&mut running, &fresh, "after a plan that lets nothing through")?;
    end(deaf)?;
    expect(&running.ssh("dualq status")?, 0, "not confirmed within 5 s")?;

    for (how, pulled) in [("the cable is pulled", true), ("the SSH client is killed", false)] {
        let client =
            running.ssh_command(&format!("{apply} plan.toml")).stdout(Stdio::null()).spawn()?;
        wait(&mut running, "pgrep -x dualq")?;
        if pulled {
            running.plug(false)?;
        }
        end(client)?;
        back(&mut running, &fresh, how)?;
        running.plug(true)?;
        wait(&mut running, "ip -4 route show default | grep -q .")?;
        expect(&running.ssh("true")?, 0, "")?;
    }
    Ok("locked out, unplugged, client killed: each time all was as before by itself".to_owned())
}

fn end(mut client: std::process::Child) -> Result<()> {
    client.kill()?;
    client.wait()?;
    Ok(())
}

fn wait(running: &mut Running, until: &str) -> Result<()> {
    running
        .run(&format!("for i in $(seq 150); do {until} && exit 0; sleep 0.1; done; exit 1"))
        .map(drop)
}

/// That a machine gets back to how it was, by itself.
fn back(running: &mut Running, before: &State, when: &str) -> Result<()> {
    // Not while something of it is still there: this only waits.
    let _ = running.ask("while pgrep -x dualq >/dev/null; do sleep 0.2; done", PATIENCE);
    let until = Instant::now() + PATIENCE;
    loop {
        let now = running.state()?;
        // A cable that is out has no routes.
        let lines = now.without("route").against(&before.without("route"));
        if lines.is_empty() {
            return Ok(());
        }
        ensure!(Instant::now() < until, "{when}, the machine stays another:\n{}", lines.join("\n"));
        thread::sleep(Duration::from_secs(1));
    }
}

/// What is cut short.
#[derive(Clone, Copy, Debug)]
enum Work {
    Apply,
    Confirm,
    Rollback,
}

impl Work {
    const ALL: [Self; 3] = [Self::Apply, Self::Confirm, Self::Rollback];

    fn command(self) -> String {
        match self {
            Self::Apply => format!("dualq apply --confirm-within {WITHIN}s /root/plan.toml"),
            Self::Confirm => "dualq confirm".to_owned(),
            Self::Rollback => "dualq rollback".to_owned(),
        }
    }

    /// A machine that is about to do it.
    fn resume(self, machine: &Machine) -> Result<Running> {
        match self {
            Self::Apply => machine.resume(READY),
            Self::Confirm => {
                let mut running = machine.resume(READY)?;
                running.run("dualq apply /root/plan.toml && sync")?;
                Ok(running)
            }
            Self::Rollback => machine.resume(CONFIRMED),
        }
    }

    fn takes(self, machine: &Machine) -> Result<Duration> {
        let mut running = self.resume(machine)?;
        let said = running.run(&format!(
            "a=$(date +%s%N); {} >/dev/null; echo $(($(date +%s%N) - a))",
            self.command()
        ))?;
        Ok(Duration::from_nanos(said.trim().parse().context("how long it takes")?))
    }
}

/// Leaves the snapshot of a machine with the plan confirmed.
fn confirmed(machine: &Machine) -> Result<State> {
    let mut running = machine.resume(READY)?;
    running.run("dualq apply /root/plan.toml && dualq confirm && sync")?;
    running.snapshot(CONFIRMED)?;
    running.state()
}

/// The process that works, or every process of dualq, is killed.
pub fn killed(bench: &mut Bench) -> Result<String> {
    let machine = bench.ready(Image::Networkd)?;
    let fresh = machine.resume(READY)?.state()?;
    let planned = confirmed(&machine)?;
    let (mut before, mut after) = (0, 0);
    for work in Work::ALL {
        let all = work.takes(&machine)?;
        for round in 0..bench.moments {
            if bench.is_late() {
                break;
            }
            let moment = bench.moment(all);
            let whom = if round % 2 == 0 { "kill -9 $!" } else { "pkill -9 -x dualq" };
            let when = format!("{work:?}, {whom} after {moment:?} of {all:?}");
            let mut running = work.resume(&machine)?;
            running.run(&format!(
                "{} >/tmp/said 2>&1 & sleep {}; {whom}; true",
                work.command(),
                moment.as_secs_f64()
            ))?;
            match settled(&mut running, &fresh, &planned).context(when)? {
                true => after += 1,
                false => before += 1,
            }
        }
    }
    Ok(format!(
        "{} times: {before} times wholly as before, {after} times wholly as planned",
        before + after
    ))
}

/// Waits until a machine is wholly as planned or wholly as before; whether it is as planned.
fn settled(running: &mut Running, before: &State, planned: &State) -> Result<bool> {
    let _ = running.ask("while pgrep -x dualq >/dev/null; do sleep 0.2; done", STEP);
    let until = Instant::now() + PATIENCE;
    loop {
        let now = running.state()?;
        // The watchdog's unit may not be over yet.
        if now.against(before).is_empty() {
            return Ok(false);
        }
        let now_planned = now.timeless().against(&planned.timeless());
        if now_planned.is_empty() {
            return Ok(true);
        }
        if Instant::now() > until {
            let said = running.run("cat /tmp/said; dualq status")?;
            bail!(
                "against before:\n  {}\nagainst the plan:\n  {}\nwhat is said: {said}",
                now.against(before).join("\n  "),
                now_planned.join("\n  ")
            );
        }
        thread::sleep(Duration::from_secs(1));
    }
}

/// How a machine ends.
#[derive(Clone, Copy, Debug)]
pub enum End {
    Power,
    Panic,
}

/// The machine ends at a random moment, and is started again.
pub fn ended(bench: &mut Bench, how: End) -> Result<String> {
    let machine = bench.ready(Image::Networkd)?;
    let fresh = machine.resume(READY)?.reboot()?.state()?;
    confirmed(&machine)?;
    let planned = machine.resume(CONFIRMED)?.reboot()?.state()?;
    let (mut before, mut after) = (0, 0);
    for work in Work::ALL {
        let all = work.takes(&machine)?;
        for _ in 0..bench.moments {
            if bench.is_late() {
                break;
            }
            let moment = bench.moment(all);
            let mut running = work.resume(&machine)?;
            let seconds = moment.as_secs_f64();
            let panic = match how {
                End::Power => String::new(),
                End::Panic => format!("(sleep {seconds}; echo c >/proc/sysrq-trigger) & "),
            };
            // The answer comes at once, if the machine still gives one.
            let begun = format!("{panic} {} >/tmp/said 2>&1 </dev/null &", work.command());
            let asked = running.ask(&begun, STEP);
            let ended = match how {
                End::Power => {
                    asked?;
                    thread::sleep(moment);
                    running.cut_power()?
                }
                End::Panic => running.wait_until_off()?,
            };
            let mut running = ended.boot()?;
            let state = running.state()?;
            let lines = [state.against(&fresh), state.timeless().against(&planned.timeless())];
            match lines.each_ref().map(Vec::is_empty) {
                [true, _] => before += 1,
                [_, true] => after += 1,
                _ => bail!(
                    "{work:?}, {how:?} after {moment:?} of {all:?}, then started again: against before:\n  {}\nagainst the plan:\n  {}\n{}",
                    lines[0].join("\n  "),
                    lines[1].join("\n  "),
                    running.run("dualq status; journalctl -b --no-pager | grep -i dualq; true")?
                ),
            }
        }
    }
    Ok(format!(
        "{} times: {before} times wholly as before, {after} times wholly as planned",
        before + after
    ))
}
