//! Interfaces that go and come, and programs that configure them anew.

use anyhow::{Context as _, Result};

use super::{Bench, READY, expect, in_force};
use crate::image::Image;
use crate::machine::Running;

const AGAIN: &str = "for i in $(seq 150); do ip -4 route show default | grep -q enp0s1 && break; sleep 0.1; done; udevadm settle";
/// A card is pulled out of its slot and put in again, as far as Linux sees.
const REPLUG: &str =
    "echo 1 >/sys/class/net/enp0s1/device/../remove; sleep 1; echo 1 >/sys/bus/pci/rescan; sleep 1";
/// Its driver lets it go and takes it again.
const REBIND: &str = "d=$(basename \"$(readlink -f /sys/class/net/enp0s1/device)\"); cd /sys/bus/virtio/drivers/virtio_net; echo $d >unbind; sleep 1; echo $d >bind; sleep 1";
const DOWN_UP: &str = "ip link set enp0s1 down; sleep 1; ip link set enp0s1 up";

fn confirmed(running: &mut Running) -> Result<()> {
    running.run("dualq apply plan.toml && dualq confirm").map(drop)
}

/// Each way of going and coming, with the plan in force, while it waits, and after it was rolled back.
pub fn hotplug(bench: &mut Bench) -> Result<String> {
    let machine = bench.ready(Image::Networkd)?;
    let mut running = machine.resume(READY)?;
    let fresh = running.state()?;
    running.run("cd; dualq apply plan.toml && dualq confirm")?;
    let ways = [("unplugged", REPLUG), ("unbound", REBIND), ("down and up", DOWN_UP)];
    for (way, command) in ways {
        running.run(command)?;
        running.run(AGAIN)?;
        in_force(&mut running, way)?;
    }
    running.run(
        "ip link set enp0s1 down; ip link set enp0s1 name lan7; ip link set lan7 up; sleep 1",
    )?;
    let status = running.run("dualq status; tc qdisc show dev lan7")?;
    anyhow::ensure!(
        status.contains("which is lan7 now") && status.contains("cake d0: root"),
        "renamed: {status}"
    );
    running.run(
        "ip link set lan7 down; ip link set lan7 name enp0s1; ip link set enp0s1 up; sleep 1",
    )?;
    running.run(AGAIN)?;
    in_force(&mut running, "renamed and back")?;
    running.run("dualq rollback")?;
    running.state()?.expect(&fresh, "after rollback")?;
    for (way, command) in ways {
        running.run(command)?;
        running.run(AGAIN)?;
        running.state()?.expect(&fresh, &format!("after rollback, {way}"))?;
    }
    // While it waits to be confirmed, nothing brings it back; and what there is to take back is taken back.
    running.run(&format!("cd; dualq apply --confirm-within 8s plan.toml; {REPLUG}"))?;
    running.run("while pgrep -x dualq >/dev/null; do sleep 0.2; done")?;
    running.run(AGAIN)?;
    running.state()?.expect(&fresh, "unplugged while it waited to be confirmed")?;
    Ok("unplugged, unbound, renamed, down and up: in force with the plan, gone without it"
        .to_owned())
}

/// What people type when they have changed something, with the plan in force and after it was rolled back.
pub fn reload(bench: &mut Bench) -> Result<String> {
    let all = "systemctl daemon-reload; systemctl daemon-reexec; udevadm control --reload; udevadm trigger; udevadm trigger --action=add; udevadm settle; sysctl --system >/dev/null";
    let managers = [
        (
            Image::Networkd,
            "touch /etc/systemd/network; networkctl reload; networkctl reconfigure enp0s1; systemctl restart systemd-networkd",
        ),
        (
            Image::NetworkManager,
            "nmcli connection reload; nmcli device reapply enp0s1; nmcli connection up \"$(nmcli -g GENERAL.CONNECTION device show enp0s1)\"; systemctl restart NetworkManager",
        ),
        (Image::Ifupdown, "ifdown enp0s1; ifup enp0s1; systemctl restart networking"),
    ];
    for (image, command) in managers {
        let name = image.name();
        let machine = bench.ready(image)?;
        let mut running = machine.resume(READY)?;
        let fresh = running.state()?;
        confirmed(&mut running).context(name)?;
        for command in [command, all] {
            running.run(&format!("set -e; {command}; sleep 3; {AGAIN}")).context(name)?;
            in_force(&mut running, &format!("{name}: {command}"))?;
        }
        expect(&running.ssh("dualq rollback")?, 0, "all is as it was before").context(name)?;
        for command in [command, all] {
            running.run(&format!("set -e; {command}; sleep 3; {AGAIN}")).context(name)?;
            running.state()?.expect(&fresh, &format!("{name}, rolled back: {command}"))?;
        }
    }
    Ok("networkd, NetworkManager, ifupdown: the plan stays in force, and does not come back after rollback".to_owned())
}
