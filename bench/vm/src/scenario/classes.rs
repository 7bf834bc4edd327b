//! Trees of classes that somebody else makes.

use anyhow::Result;

use super::{Bench, READY, expect, nothing_failed};
use crate::image::Image;
use crate::machine::STEP;

/// A unit that makes a tree some seconds after everything else, as somebody's own script would.
const UNIT: &str = "cat >/usr/local/sbin/shaper <<'END'
#!/bin/sh
set -e
tc qdisc del dev enp0s1 root 2>/dev/null || true
tc qdisc add dev enp0s1 root handle 1: htb default 10
tc class add dev enp0s1 parent 1: classid 1:1 htb rate 20mbit
tc class add dev enp0s1 parent 1:1 classid 1:10 htb rate 15mbit
tc class add dev enp0s1 parent 1:1 classid 1:20 htb rate 5mbit
END
cat >/etc/systemd/system/shaper.service <<'END'
[Unit]
Wants=sys-subsystem-net-devices-enp0s1.device
After=sys-subsystem-net-devices-enp0s1.device
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStartPre=/bin/sleep 3
ExecStart=/usr/local/sbin/shaper
[Install]
WantedBy=multi-user.target
END
chmod 755 /usr/local/sbin/shaper; systemctl daemon-reload; systemctl enable --now shaper 2>/dev/null; sync";
const IS_THERE: &str = "for i in $(seq 150); do tc qdisc show dev enp0s1 | grep -q 'fq_codel d0: parent 1:10 ' && exit 0; sleep 0.2; done; tc qdisc show dev enp0s1; dualq status; systemctl status --no-pager shaper; exit 1";

/// Trees of kinds that other kernels than Debian's often lack, in the class of which something is put and taken back.
const KINDS: &str = "set -e; modprobe dummy numdummies=0; ip link add k0 type dummy; ip link set k0 up; \
     for tree in 'hfsc;hfsc sc rate 5mbit ul rate 5mbit' 'drr;drr' 'qfq;qfq weight 10' 'ets bands 3;' 'prio;'; do \
         tc qdisc replace dev k0 root handle 1: ${tree%;*}; \
         class=${tree#*;}; [ -z \"$class\" ] || tc class add dev k0 parent 1: classid 1:1 $class; \
         for own in '' 'bfifo limit 9000'; do \
             [ -z \"$own\" ] || tc qdisc add dev k0 parent 1:1 handle 20: $own; \
             show() { tc qdisc show dev k0; tc class show dev k0; }; before=$(show); \
             dualq plan --dev k0 --parent 1:1 --profile gateway --qdisc fq_codel -o /root/kind.toml >/dev/null; \
             dualq apply /root/kind.toml >/dev/null; \
             tc qdisc show dev k0 | grep -q 'fq_codel d0: parent 1:1 '; \
             dualq rollback >/dev/null; \
             [ \"$(show)\" = \"$before\" ] || { echo \"$tree, $own: $before\"; show; exit 1; }; \
         done; \
         tc qdisc del dev k0 root; \
     done; ip link del k0";

/// The plan is put back when the class comes at boot, when the tree is made anew, and when the card was away; where no class comes, that is said,
/// and nothing fails.
pub fn classes(bench: &mut Bench) -> Result<String> {
    let machine = bench.ready(Image::Networkd)?;
    let mut running = machine.resume(READY)?;
    running.run(UNIT)?;
    let fresh = running.state()?;
    running
        .run("dualq plan --parent 1:10 --profile gateway --qdisc fq_codel -o /root/class.toml")?;
    expect(&running.ssh("dualq apply class.toml")?, 0, "applied; `dualq confirm` within 60 s")?;
    expect(&running.ssh("dualq confirm")?, 0, "confirmed")?;
    running.run(IS_THERE)?;

    let mut running = running.reboot()?;
    running.run(IS_THERE)?;
    running.run("systemctl restart shaper")?;
    running.run(IS_THERE)?;
    running.run("tc qdisc del dev enp0s1 root")?;
    expect(
        &running.ask("dualq status", STEP)?,
        0,
        "comes back by itself when enp0s1 has class 1:10 again",
    )?;
    running.run("echo 1 >/sys/class/net/enp0s1/device/../remove; sleep 1; echo 1 >/sys/bus/pci/rescan; sleep 1; udevadm settle; systemctl restart shaper")?;
    running.run(IS_THERE)?;
    nothing_failed(&mut running, "with the tree")?;

    running.run("systemctl disable shaper 2>/dev/null; sync")?;
    let mut running = running.reboot()?;
    expect(
        &running.ssh("dualq status")?,
        0,
        "comes back by itself when enp0s1 has class 1:10 again",
    )?;
    nothing_failed(&mut running, "without the tree")?;
    running.run("systemctl enable --now shaper 2>/dev/null")?;
    running.run(IS_THERE)?;

    expect(&running.ssh("dualq rollback")?, 0, "all is as it was before")?;
    running.state()?.expect(&fresh, "after rollback")?;
    let mut running = running.reboot()?;
    running.run("systemctl is-active --wait shaper")?;
    running.state()?.expect(&fresh, "after rollback and a restart")?;
    // Last: what modules these load would have been there before, and not after a restart.
    running.run(KINDS)?;
    Ok("below classes of hfsc, drr, qfq, ets and prio; of htb, in the class after restarts, with the tree made anew, with the card unplugged; without a tree nothing fails, and status says it".to_owned())
}
