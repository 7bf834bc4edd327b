//! The way that most will go.

use anyhow::{Result, ensure};

use super::{Bench, READY, expect, in_force};
use crate::image::Image;

/// A plan is applied by SSH over the interface that it changes, confirmed, restarted, rolled back and restarted.
pub fn usual(bench: &mut Bench, image: Image) -> Result<String> {
    let machine = bench.ready(image)?;
    let mut running = machine.resume(READY)?;
    let fresh = running.state()?;

    expect(&running.ssh("dualq apply plan.toml")?, 0, "applied; `dualq confirm` within 60 s")?;
    if image.has_systemd() {
        let units = running.run("systemctl list-units --plain --no-legend 'run-*.service'")?;
        ensure!(units.contains("Takes a plan of dualq back"), "no unit watches: {units}");
    }
    expect(&running.ssh("dualq confirm")?, 0, "confirmed")?;
    in_force(&mut running, "after confirm")?;

    let mut running = running.reboot()?;
    in_force(&mut running, "after a restart")?;
    let rolled_back = running.ssh("dualq rollback")?;
    expect(&rolled_back, 0, "all is as it was before")?;
    running.state()?.expect(&fresh, "after rollback")?;

    let mut running = running.reboot()?;
    running.state()?.expect(&fresh, "after rollback and a restart")?;
    Ok("in force after a restart; after rollback, and after a restart then, all is as it was"
        .to_owned())
}
