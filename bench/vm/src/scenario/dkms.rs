//! A kernel update, with DualPI2 as a module that DKMS builds.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::{Bench, READY, expect, nothing_failed};
use crate::image::Image;
use crate::machine::Running;

/// How long compilers and the package manager may take; without KVM they are some ten times slower.
const LONG: Duration = Duration::from_secs(1500);

const BUILD: &str = "dualq module build --source /root/linux";
const INSTALL: &str = "dualq module install --from ~/.cache/dualq/modules/$(uname -r) --load";
const PLAN: &str = "dualq plan --rate 20mbit --rtt 40ms --tunnel -o /root/dualpi2.toml";
/// The kernel and its headers, and what they depend on; their hooks call DKMS.
const UPDATE: &str = "DEBIAN_FRONTEND=noninteractive apt-get -qq --yes install /root/update/*.deb";
const NEWEST: &str = "linux-version list | linux-version sort | tail -n 1";
/// What is left of the module on the machine, but for the key that DKMS made.
const LEFT: &str = "find /lib/modules -name 'sch_dualpi2.ko*'; grep -rl sch_dualpi2 /lib/modules/*/modules.dep; \
     ls -d /usr/src/dualq-dualpi2-* /var/lib/dkms/dualq-dualpi2 /var/lib/dualq/module 2>/dev/null; dkms status; lsmod | grep sch_dualpi2; true";

/// The module is built, installed through DKMS and used by a plan; a newer kernel is installed and started, and has both. Then all is taken back.
pub fn dkms(bench: &mut Bench) -> Result<String> {
    let machine = bench.ready(Image::Dkms)?;
    let mut running = machine.resume(READY)?;
    let before = running.state()?;
    let old = release(&mut running)?;

    running.run_within(BUILD, LONG)?;
    expect(&running.ask(INSTALL, LONG)?, 0, "through DKMS")?;
    has_modules(&mut running, &[&old])?;
    let plan = running.run(PLAN)?;
    ensure!(plan.contains("leaf dualpi2"), "another queue is chosen: {plan}");
    expect(&running.ssh("dualq apply dualpi2.toml")?, 0, "applied; `dualq confirm` within 60 s")?;
    expect(&running.ssh("dualq confirm")?, 0, "confirmed")?;
    in_force(&mut running, "after confirm")?;

    running.run_within(UPDATE, LONG)?;
    let new = running.run(NEWEST)?.trim().to_owned();
    has_modules(&mut running, &[&old, &new])?;
    let mut running = running.reboot_into(&new)?;
    ensure!(release(&mut running)? == new, "another kernel than {new} runs");
    nothing_failed(&mut running, "with the new kernel")?;
    has_modules(&mut running, &[&old, &new])?;
    in_force(&mut running, "with the new kernel")?;
    let without_old = format!("dualq module remove --kernel-release {old}");
    expect(&running.ask(&without_old, LONG)?, 0, "sch_dualpi2 is removed")?;
    has_modules(&mut running, &[&new])?;
    in_force(&mut running, "without the old kernel's module")?;

    expect(&running.ssh("dualq rollback")?, 0, "all is as it was before")?;
    expect(&running.ask("dualq module remove", LONG)?, 0, "sch_dualpi2 is removed")?;
    let left = running.run(LEFT)?;
    ensure!(left.is_empty(), "after remove, there is still: {left}");
    let after = running.state()?;
    // The new kernel has other sysctls and defaults than the one before the plan. Which they are is seen after one more start, in which
    // nothing of the plan has a part: but for sysctls all is as before it, and so are all files.
    let mut running = running.reboot()?;
    let fresh = running.state()?;
    fresh.without("sysctl").expect(&before.without("sysctl"), "after rollback and a restart")?;
    after.expect(&fresh, "after rollback")?;
    Ok(format!(
        "from {old} to {new}: built by DKMS during the update, in force after the restart; gone after rollback and remove"
    ))
}

fn release(running: &mut Running) -> Result<String> {
    Ok(running.run("uname -r")?.trim().to_owned())
}

/// That DKMS and dualq name the module for these kernels, and no others.
fn has_modules(running: &mut Running, releases: &[&str]) -> Result<()> {
    let dkms = running.run("dkms status")?;
    let status = running.run("dualq module status")?;
    let named = |release: &&str| {
        dkms.contains(&format!(", {release}, x86_64: installed"))
            && status.contains(&format!("installed: for Linux {release}, by DKMS, signed"))
    };
    ensure!(
        dkms.lines().count() == releases.len() && releases.iter().all(named),
        "expected modules for {releases:?}: {dkms}{status}"
    );
    Ok(())
}

/// That the plan's queue is there, and dualq says so.
fn in_force(running: &mut Running, when: &str) -> Result<()> {
    let found = running.run("tc qdisc show dev enp0s1")?;
    ensure!(found.contains("qdisc dualpi2 "), "{when}, there is: {found}");
    let status = running.run("dualq status")?;
    ensure!(!status.contains("drifted") && !status.contains("as before"), "{when}: {status}");
    Ok(())
}
