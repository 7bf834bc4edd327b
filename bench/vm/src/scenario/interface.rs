//! Interfaces that go and come, and programs that configure them anew.

use anyhow::{Context as _, Result};

use super::{Bench, PLAN, READY, expect, in_force, nothing_failed};
use crate::image::Image;
use crate::machine::Running;

/// Waits until the interface has its routes again; IPv6 has its own some seconds later.
const AGAIN: &str = "for i in $(seq 150); do ip -4 route show default | grep -q enp0s1 && ip -6 route show default | grep -q enp0s1 && break; sleep 0.1; done; udevadm settle";
/// A card is pulled out of its slot and put in again, as far as Linux sees.
const REPLUG: &str =
    "echo 1 >/sys/class/net/enp0s1/device/../remove; sleep 1; echo 1 >/sys/bus/pci/rescan; sleep 1";
/// Its driver lets it go and takes it again.
const REBIND: &str = "d=$(basename \"$(readlink -f /sys/class/net/enp0s1/device)\"); cd /sys/bus/virtio/drivers/virtio_net; echo $d >unbind; sleep 1; echo $d >bind; sleep 1";
const DOWN_UP: &str = "ip link set enp0s1 down; sleep 1; ip link set enp0s1 up";

/// What makes anybody read again what they know.
const RELOAD: &str = "systemctl daemon-reload; systemctl daemon-reexec; udevadm control --reload; udevadm trigger; udevadm trigger --action=add; udevadm settle; sysctl --system >/dev/null";
/// Who configures the interface, and what makes them do it anew.
const MANAGERS: [(Image, &str); 3] = [
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
/// `dualq mtu` writes a plan for a host on whose path large packets vanish: who answers for it is QEMU's own router, and the machine itself drops what
/// is large.
const ROUTE: &str = "set -e; nft -f - <<'END'
table ip hole {
    chain out { type nat hook output priority dstnat; ip daddr 192.0.2.7 dnat to 10.0.2.2; }
    chain in { type filter hook prerouting priority raw; ip length > 1400 drop; icmp type destination-unreachable drop; }
}
END
status=0; said=$(dualq mtu 192.0.2.7 -o /root/route.toml) || status=$?
nft delete table ip hole
[ $status = 1 ] && grep -q 'Packets over 1400 bytes vanish' <<<\"$said\" || { echo \"$status: $said\"; exit 1; }
dualq apply route.toml && dualq confirm";
/// That its route is there, or comes.
const IS_THERE: &str = "for i in $(seq 150); do ip route show 192.0.2.7 | grep -q 'mtu 1400' && exit 0; sleep 0.2; done; ip route; dualq status; exit 1";

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
    for (image, command) in MANAGERS {
        let name = image.name();
        let machine = bench.ready(image)?;
        let mut running = machine.resume(READY)?;
        let fresh = running.state()?;
        confirmed(&mut running).context(name)?;
        for command in [command, RELOAD] {
            running.run(&format!("set -e; {command}; sleep 3; {AGAIN}")).context(name)?;
            in_force(&mut running, &format!("{name}: {command}"))?;
        }
        expect(&running.ssh("dualq rollback")?, 0, "all is as it was before").context(name)?;
        for command in [command, RELOAD] {
            running.run(&format!("set -e; {command}; sleep 3; {AGAIN}")).context(name)?;
            running.state()?.expect(&fresh, &format!("{name}, rolled back: {command}"))?;
        }
    }
    Ok("networkd, NetworkManager, ifupdown: the plan stays in force, and does not come back after rollback".to_owned())
}

/// A route of a plan outlives all that takes it away, whoever configures the interface, and a restart; rolled back, it stays away.
pub fn route(bench: &mut Bench) -> Result<String> {
    for (image, command) in MANAGERS {
        let name = image.name();
        let machine = bench.ready(image)?;
        let mut running = machine.resume(READY)?;
        let fresh = running.state()?;
        running.run(ROUTE).context(name)?;
        for way in [DOWN_UP, REBIND, REPLUG, command, RELOAD] {
            running.run(&format!("set -e; {way}; sleep 3; {AGAIN}")).context(name)?;
            running.run(IS_THERE).with_context(|| format!("{name}: {way}"))?;
        }
        let mut running = running.reboot()?;
        running.run(IS_THERE).with_context(|| format!("{name}: after a restart"))?;
        expect(&running.ssh("dualq rollback")?, 0, "all is as it was before").context(name)?;
        running.run(&format!("set -e; {DOWN_UP}; sleep 3; {AGAIN}")).context(name)?;
        running.state()?.expect(&fresh, &format!("{name}, rolled back, down and up"))?;
    }
    Ok("networkd, NetworkManager, ifupdown: back after down and up, unbound, unplugged, configured anew, and a restart; gone after rollback".to_owned())
}

/// Who is called when an interface is configured: the file that a plan writes where no udev runs, and what makes them configure it anew.
const SCRIPTS: [(Image, &str, &str); 2] = [
    (
        Image::NetworkManager,
        "/etc/NetworkManager/dispatcher.d/90-dualq",
        "nmcli connection up \"$(nmcli -g GENERAL.CONNECTION device show enp0s1)\"",
    ),
    (Image::Ifupdown, IF_UP, IF_DOWN_UP),
];
const IF_UP: &str = "/etc/network/if-up.d/dualq";
const IF_DOWN_UP: &str = "ifdown enp0s1; ifup enp0s1";
/// From now on no udev runs.
const NO_UDEV: &str =
    "systemctl stop 'systemd-udevd*.socket' systemd-udevd; rm -f /run/udev/control";
/// At boot udev ends before the interface is configured, when it has given the card and the bench's own port their names.
const UDEV_ENDS: &str = "cat >/usr/local/sbin/udev-ends <<'END'
#!/bin/sh
[ -e /run/udev/control ] || exit 0
until [ -e /dev/virtio-ports/dualq.bench ] && [ -e /sys/class/net/enp0s1 ]; do sleep 0.2; done
udevadm settle
udevadm control --exit
rm -f /run/udev/control
END
chmod 755 /usr/local/sbin/udev-ends
printf 'auto lo\\niface lo inet loopback\\nauto enp0s1\\niface enp0s1 inet dhcp\\n\\tpre-up /usr/local/sbin/udev-ends\\n' >/etc/network/interfaces; sync";
/// The queue is gone.
const GONE: &str = "tc qdisc del dev enp0s1 root; tc qdisc show dev enp0s1 | { ! grep cake; }";
/// That it comes back. Scripts are called some time after the interface is there.
const COMES: &str = "for i in $(seq 150); do tc qdisc show dev enp0s1 | grep -q cake && exit 0; sleep 0.2; done; tc qdisc; exit 1";

/// Plans without a rule of udev's: the queue is put back by who configures the interface, and by nobody else.
pub fn scripts(bench: &mut Bench) -> Result<String> {
    for (image, script, again) in SCRIPTS {
        let name = image.name();
        let machine = bench.ready(image)?;
        let mut running = machine.resume(READY)?;
        let fresh = running.state()?;
        running.run(NO_UDEV)?;
        planned_by(&mut running, script).context(name)?;
        running.run(&format!("set -e; {GONE}; {again}"))?;
        running.run(COMES).with_context(|| format!("{name}: {again}"))?;
        in_force(&mut running, &format!("{name}: {again}"))?;
        // Now udev runs, which the managers need for a new card, and has no rule of dualq's.
        let mut running = running.reboot()?;
        running.run(COMES).with_context(|| format!("{name}: restarted"))?;
        in_force(&mut running, &format!("{name}: restarted"))?;
        running.run(&format!("{REPLUG}; {AGAIN}"))?;
        running.run(COMES).with_context(|| format!("{name}: unplugged"))?;
        in_force(&mut running, &format!("{name}: unplugged"))?;
        running.run("test ! -e /etc/udev/rules.d/90-dualq.rules")?;
        expect(&running.ssh("dualq rollback")?, 0, "all is as it was before").context(name)?;
        // By the number of the interface, which is another one now, dhcpcd gives routes their metrics.
        let routeless = fresh.without("route");
        running.state()?.without("route").expect(&routeless, &format!("{name}, rolled back"))?;
        running.run(&format!("{REPLUG}; {AGAIN}; sleep 3"))?;
        let when = format!("{name}, rolled back, unplugged");
        running.state()?.without("route").expect(&routeless, &when)?;
        running.reboot()?.state()?.expect(&fresh, &format!("{name}, rolled back, restarted"))?;
    }
    Ok("by NetworkManager's dispatcher and by ifupdown alone: in force when configured anew, unplugged, and after a restart; gone after rollback".to_owned())
}

/// The same where no udev runs once the interface is configured, not at boot either.
pub fn no_udev(bench: &mut Bench) -> Result<String> {
    let machine = bench.ready(Image::Openrc)?;
    let mut running = machine.resume(READY)?;
    running.run(UDEV_ENDS)?;
    let mut running = running.reboot()?;
    let fresh = running.state()?;
    planned_by(&mut running, IF_UP)?;
    running.run(&format!("set -e; {GONE}; {IF_DOWN_UP}"))?;
    in_force(&mut running, "ifup")?;
    let mut running = running.reboot()?;
    running.run("! pgrep -x udevd && ! pgrep -x systemd-udevd")?;
    in_force(&mut running, "restarted")?;
    expect(&running.ssh("dualq rollback")?, 0, "all is as it was before")?;
    running.state()?.expect(&fresh, "rolled back")?;
    let mut running = running.reboot()?;
    running.state()?.expect(&fresh, "rolled back and restarted")?;
    Ok("by ifupdown: in force when configured anew and after a restart; gone after rollback"
        .to_owned())
}

/// A plan that puts its queue back by this script and no other file is made, applied and confirmed.
fn planned_by(running: &mut Running, script: &str) -> Result<()> {
    running.run(PLAN)?;
    running.run(&format!("grep -q {script} plan.toml && ! grep -q udev/ plan.toml"))?;
    confirmed(running)
}

const SEVERAL: &str = "dualq plan --dev enp0s1 --dev enp0s2 --rate enp0s1=20mbit --down enp0s1=50mbit --rtt 40ms --offloads \
     --qdisc 'enp0s1=htb rate 19mbit leaf fq_codel' --down-qdisc 'enp0s1=htb rate 47500kbit leaf fq_codel' -o /root/several.toml";
/// That all of it is there: a queue for each transmit queue, what arrives behind an ifb, and packets that are not put together.
const ALL_THERE: &str = "state=$(bench-state); has() { grep -q \"$1\" <<<\"$state\"; }; \
     has '^qdisc qdisc htb .* dev enp0s1 root' && has '^qdisc qdisc mq .* dev enp0s2 root' && [ \"$(grep -c '^qdisc qdisc fq_codel .* dev enp0s2 parent' <<<\"$state\")\" = 2 ] && \
     has '^qdisc qdisc htb .* dev dualq-ifb0 root' && has '^filter enp0s1 .*dualq-ifb0' && \
     has '^device enp0s1 gso_max_segs' && ! has '^device enp0s1 gso_max_segs 65535' && has '^offload enp0s1 0x2b 0$' && \
     dualq status | { ! grep -E 'drifted|as before'; }";

/// A plan for two cards, one of which has several transmit queues, for what arrives, and for offloads.
pub fn several(bench: &mut Bench) -> Result<String> {
    let mut running = bench.with_queues()?;
    // What the queues have by themselves would stay if it kept flows apart.
    running.run("echo net.core.default_qdisc = pfifo_fast >/etc/sysctl.d/99-plain.conf; sync")?;
    let mut running = running.reboot()?;
    let fresh = running.state()?;
    running.run(SEVERAL)?;
    expect(&running.ssh("dualq apply several.toml")?, 0, "applied; `dualq confirm` within 60 s")?;
    expect(&running.ssh("dualq confirm")?, 0, "confirmed")?;
    let there = |running: &mut Running, when: &str| {
        // udev may still be at it when the machine is up.
        running
            .run(&format!(
                "for i in $(seq 20); do ({ALL_THERE}) >/dev/null && exit 0; sleep 1; done; bench-state | grep -E '^(qdisc|filter|device|offload)'; dualq status; exit 1"
            ))
            .with_context(|| when.to_owned())
    };
    there(&mut running, "after confirm")?;
    let mut running = running.reboot()?;
    there(&mut running, "after a restart")?;
    for dev in ["enp0s1", "enp0s2"] {
        running.run(&REPLUG.replace("enp0s1", dev))?;
        running.run(AGAIN)?;
        there(&mut running, &format!("{dev} was unplugged"))?;
    }
    nothing_failed(&mut running, "after a restart")?;
    expect(&running.ssh("dualq rollback")?, 0, "all is as it was before")?;
    // The module stays: with it all ifb would go, those of other network namespaces too.
    running.state()?.without("module ifb").expect(&fresh, "after rollback")?;
    for dev in ["enp0s1", "enp0s2"] {
        running.run(&REPLUG.replace("enp0s1", dev))?;
        running.run(AGAIN)?;
        let when = format!("after rollback, {dev} was unplugged");
        running.state()?.without("module ifb").expect(&fresh, &when)?;
    }
    let mut running = running.reboot()?;
    running.state()?.expect(&fresh, "after rollback and a restart")?;
    Ok("in force after a restart and with each card unplugged; after rollback, and after a restart then, all is as it was"
        .to_owned())
}
