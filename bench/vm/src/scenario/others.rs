//! Other people and other troubles.

use anyhow::{Result, ensure};

use super::{Bench, READY, expect, in_force};
use crate::image::Image;
use crate::machine::STEP;

const TAKEN_BACK: &str = "while pgrep -x dualq >/dev/null; do sleep 0.2; done";
const OURS: &str = "/etc/sysctl.d/90-dualq.conf";

/// Somebody else edits the same file and runs tc, before and after confirm.
pub fn second_administrator(bench: &mut Bench) -> Result<String> {
    let machine = bench.ready(Image::Networkd)?;
    let mut running = machine.resume(READY)?;
    let fresh = running.state()?;
    running
        .run(&format!("cd; dualq apply --confirm-within 8s plan.toml; echo '# mine' >{OURS}"))?;
    expect(&running.ask("dualq confirm", STEP)?, 1, "is not as")?;
    running.run(TAKEN_BACK)?;
    ensure!(running.run(&format!("cat {OURS}; rm {OURS}"))? == "# mine\n", "it was not left");
    running.state()?.expect(&fresh, "a file was written meanwhile")?;

    running.run("cd; dualq apply --confirm-within 8s plan.toml; tc qdisc replace dev enp0s1 root pfifo limit 77")?;
    running.run(TAKEN_BACK)?;
    let found = running.run("tc qdisc show dev enp0s1; dualq status")?;
    ensure!(found.contains("pfifo") && found.contains("limit 77p"), "it was not left: {found}");
    ensure!(found.contains("somebody changed it meanwhile"), "it is not said: {found}");
    expect(&running.ask("dualq rollback --force", STEP)?, 0, "all is as it was before")?;
    running.state()?.expect(&fresh, "a queue discipline was replaced meanwhile")?;

    running.run(&format!("cd; dualq apply plan.toml && dualq confirm; echo '# mine' >>{OURS}; tc qdisc replace dev enp0s1 root pfifo limit 77"))?;
    let status = running.run("dualq status")?;
    ensure!(status.matches("drifted").count() == 2, "status does not see both: {status}");
    expect(&running.ask("dualq rollback", STEP)?, 1, "+ # mine")?;
    expect(&running.ask("dualq rollback --force", STEP)?, 0, "all is as it was before")?;
    running.state()?.expect(&fresh, "both were changed after confirm")?;
    Ok("what another administrator did is left and said, and taken back by --force".to_owned())
}

/// The disk is full or read-only before apply, before confirm and before rollback.
pub fn disk(bench: &mut Bench) -> Result<String> {
    let machine = bench.ready(Image::Networkd)?;
    let fill = "cat /dev/zero >/var/full 2>/dev/null; echo >/var/more 2>/dev/null; cat /dev/zero >>/var/more 2>/dev/null; sync; df --output=avail / | tail -1";
    let free = "rm -f /var/full /var/more; sync";
    let mut running = machine.resume(READY)?;
    let fresh = running.state()?;
    running.run_within(fill, STEP * 3)?;
    let said = running.ask("dualq apply /root/plan.toml", STEP)?;
    expect(&said, 1, "No space left on device")?;
    let lines = said.text.lines().count();
    ensure!(lines == 1, "full: {lines} lines: {}", said.text);
    running.state()?.expect(&fresh, "full before apply")?;
    running.run(free)?;

    running.run("dualq apply /root/plan.toml")?;
    running.run_within(fill, STEP * 3)?;
    let said = running.ask("dualq confirm", STEP)?;
    expect(&said, 1, "No space left on device")?;
    // Until it can be recorded that all is taken back, somebody watches over it.
    running.state()?.without("unit").expect(&fresh.without("unit"), "full before confirm")?;
    running.run(free)?;
    running.run(TAKEN_BACK)?;
    running.state()?.expect(&fresh, "full before confirm, and free again")?;
    expect(&running.ask("dualq rollback", STEP)?, 1, "")?;

    running.run("dualq apply /root/plan.toml && dualq confirm")?;
    running.run_within(fill, STEP * 3)?;
    let said = running.ask("dualq rollback", STEP)?;
    let when = format!("full before rollback ({})", said.text.trim());
    running.state()?.without("unit").expect(&fresh.without("unit"), &when)?;
    running.run(free)?;
    running.run(TAKEN_BACK)?;
    running.state()?.expect(&fresh, "full before rollback, and free again")?;

    // Its disk can have one machine only.
    drop(running);
    // As ext4 does upon an error; nothing but a restart makes it writable.
    for (prepare, work) in [
        ("true", "apply --confirm-within 900s plan.toml"),
        ("dualq apply --confirm-within 900s plan.toml", "confirm"),
        ("dualq apply plan.toml && dualq confirm", "rollback"),
    ] {
        let mut running = machine.resume(READY)?;
        running.run(prepare)?;
        let before = running.state()?;
        running.run("sync; echo u >/proc/sysrq-trigger; for i in $(seq 50); do touch /var/x 2>/dev/null || exit 0; sleep 0.1; done; exit 1")?;
        let said = running.ask(&format!("dualq {work}"), STEP)?;
        expect(&said, 1, "Read-only file system")?;
        running.state()?.expect(&before, &format!("read-only before {work}"))?;
        if work == "confirm" {
            // What could not be confirmed is taken back at the next start, where the disk is writable again.
            running.reboot()?.state()?.expect(&fresh, "not confirmed, and started again")?;
        }
    }
    Ok("full or read-only: refused in one line, or taken back; a full disk does not keep rollback"
        .to_owned())
}

/// The clock jumps by years, both ways, while a plan waits.
pub fn clock(bench: &mut Bench) -> Result<String> {
    let machine = bench.ready(Image::Networkd)?;
    for jump in ["2001-01-01", "2061-01-01"] {
        let mut running = machine.resume(READY)?;
        let fresh = running.state()?;
        running.run(&format!(
            "cd; dualq apply --confirm-within 30s plan.toml; date -s {jump}; sleep 3"
        ))?;
        in_force_but_files(&mut running)?;
        running.run("dualq confirm")?;
        in_force(&mut running, jump)?;
        expect(&running.ask("dualq rollback", STEP)?, 0, "all is as it was before")?;
        running.state()?.expect(&fresh, jump)?;
        running.run(&format!("cd; dualq apply --confirm-within 8s plan.toml; date -s {jump}; sleep 4; tc qdisc show dev enp0s1 | grep cake"))?;
        running.run(TAKEN_BACK)?;
        running.state()?.expect(&fresh, &format!("{jump}, not confirmed"))?;
    }
    Ok("a clock that jumps takes nothing back too early or too late".to_owned())
}

fn in_force_but_files(running: &mut crate::machine::Running) -> Result<()> {
    let status = running.run("dualq status")?;
    ensure!(status.contains("within 2") && !status.contains("drifted"), "after the jump: {status}");
    Ok(())
}

/// After a kernel update the queue discipline's module is not there any more.
pub fn module_missing(bench: &mut Bench) -> Result<String> {
    let machine = bench.ready(Image::Networkd)?;
    let mut running = machine.resume(READY)?;
    let fresh = running.state()?;
    running.run("cd; dualq apply plan.toml && dualq confirm; rm /lib/modules/*/kernel/net/sched/sch_cake.ko*; depmod")?;
    let mut running = running.reboot()?;
    expect(&running.ssh("true")?, 0, "")?;
    let failed = running.run("systemctl --failed --plain --no-legend; true")?;
    let status = running.run("dualq status")?;
    let journal = running.run("journalctl -b --no-pager | grep -iE 'dualq|sch_cake'; true")?;
    ensure!(status.contains("sch_cake"), "status does not say it: {status}");
    let rolled_back = running.ask("dualq rollback", STEP)?;
    ensure!(
        failed.is_empty(),
        "a unit failed: {failed}\nstatus:\n{status}\nrollback: {rolled_back:?}\njournal:\n{journal}"
    );
    expect(&rolled_back, 0, "all is as it was before")?;
    running.state()?.expect(&fresh, "after rollback without the module")?;
    Ok(format!("the machine is up; status: {}", status.lines().next().unwrap_or_default()))
}

/// The recipe that this project began with, as it was published, but for the name of the interface.
pub fn recipe(bench: &mut Bench) -> Result<String> {
    let recipe =
        include_str!("../../../../tests/data/recipes/dualpi2-bbr.md").replace("ens3", "enp0s1");
    let machine = bench.ready(Image::Networkd)?;
    let mut running = machine.resume(READY)?;
    running.run(&format!("cat >/root/recipe.md <<'END'\n{recipe}END"))?;
    let release = running.run("uname -r")?.trim().to_owned();
    let before = running.state()?;
    let said = running.run("dualq doctor --recipe /root/recipe.md --rate 50mbit --rtt 40ms")?;
    running.state()?.expect(&before, "after judging a recipe")?;
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let settings = recipe.lines().filter(|line| line.starts_with("net."));
    let settings = settings.map(|line| line.split('#').next().unwrap_or_default().trim());
    let mut tried: Vec<(&str, String)> =
        settings.map(|setting| (setting, format!("sysctl -w '{setting}'"))).collect();
    tried.push(("sch_dualpi2", "modprobe sch_dualpi2".to_owned()));
    for tc in [
        "/sbin/tc qdisc replace dev enp0s1 root dualpi2",
        "sudo tc qdisc replace dev enp0s1 root dualpi2",
    ] {
        tried.push((tc, tc.trim_start_matches("sudo ").to_owned()));
    }
    ensure!(said.contains(&format!("Of {} settings", tried.len())), "other settings: {said}");
    // What is called refused is what this machine refuses, and nothing else.
    let mut refused = 0;
    for (setting, command) in &tried {
        ensure!(said.contains(setting), "nothing is said of {setting}: {said}");
        let told = said.contains(&format!("{setting} The kernel {release} has no "));
        let done = running.ask(command, STEP)?;
        ensure!(told == (done.status != 0), "{command}: {done:?}, and of it is said: {said}");
        refused += u32::from(told);
    }
    Ok(format!(
        "of {} settings the machine refuses {refused}, those of which it is said",
        tried.len()
    ))
}
