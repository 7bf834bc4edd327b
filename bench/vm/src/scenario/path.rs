//! Paths between two machines.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::{Bench, expect};
use crate::machine::{Running, STEP};

/// The longest packet that the path lets through, in bytes of IP.
const WHOLE: u32 = 1400;
/// A tunnel: its name, what makes it, also at boot, between the addresses `$L` and `$R` with `$I` inside, and what is left of [`WHOLE`] in it.
const TUNNELS: [(&str, &str, u32); 4] = [
    // Without regard to what the path may say, as where a router in between is none of ours.
    (
        "GRE",
        "netdev gre 1476 \"[Tunnel]\\nLocal=$L\\nRemote=$R\\nIndependent=yes\\nDiscoverPathMTU=no\\nIgnoreDontFragment=yes\\n\"",
        WHOLE - 24,
    ),
    (
        "VXLAN",
        "netdev vxlan 1450 \"[VXLAN]\\nVNI=7\\nLocal=$L\\nRemote=$R\\nDestinationPort=4789\\nIndependent=yes\\n\"",
        WHOLE - 50,
    ),
    // IP 20, UDP 8, its header 16, the tag 16; what is inside is padded to 16.
    (
        "WireGuard",
        "netdev wireguard 1420 \"[WireGuard]\\nListenPort=51820\\nPrivateKey=$(cat /root/wg)\\n[WireGuardPeer]\\nPublicKey=$P\\nEndpoint=$R:51820\\nAllowedIPs=0.0.0.0/0\\n\"",
        (WHOLE - 60) / 16 * 16,
    ),
    // A route to exactly the far end would be somebody's own, which no plan replaces. AES-GCM: IP 20, SPI and sequence 8, IV 8, ICV 16; what is inside and 2 bytes are padded to 4.
    (
        "ESP",
        "cat >/usr/local/sbin/esp <<END
#!/bin/sh
set -e
until ip -4 addr show enp0s2 | grep -q $L/; do sleep 0.2; done
ip link add t0 type dummy; ip addr add $I/32 dev t0; ip link set t0 up; ip route add 10.8.0.0/24 dev enp0s2 src $I
esp() { # FROM TO SPI INNER INNER WAY
    ip xfrm state add src \\$1 dst \\$2 proto esp spi \\$3 mode tunnel aead 'rfc4106(gcm(aes))' 0x000102030405060708090a0b0c0d0e0f10111213 128 flag nopmtudisc
    ip xfrm policy add src \\$4/32 dst \\$5/32 dir \\$6 tmpl src \\$1 dst \\$2 proto esp mode tunnel
}
esp $L $R $out $I $J out
esp $R $L $in $J $I in
END
printf '[Unit]\\nAfter=systemd-networkd.service\\n[Service]\\nType=oneshot\\nRemainAfterExit=yes\\nExecStart=/usr/local/sbin/esp\\n[Install]\\nWantedBy=multi-user.target\\n' >/etc/systemd/system/esp.service
chmod 755 /usr/local/sbin/esp; systemctl enable --now esp",
        (WHOLE - 20 - 8 - 8 - 16) / 4 * 4 - 2,
    ),
];
/// What networkd makes: its kind, its MTU, and the rest, as printf(1) has it. (Others may not read the key.)
const NETDEV: &str = "netdev() { \
     (umask 27; printf \"[NetDev]\\nName=t0\\nKind=$1\\nMTUBytes=$2\\n$3\" >/etc/systemd/network/06-t0.netdev; chgrp systemd-network /etc/systemd/network/06-t0.netdev); \
     printf \"[Match]\\nName=t0\\n[Network]\\nAddress=$I/24\\n\" >/etc/systemd/network/06-t0.network; networkctl reload; }";
/// That small packets get through.
const THROUGH: &str = "for i in $(seq 10); do ping -c 1 -W 1 10.8.0.2 && exit 0; done; ip addr; ip route; ip xfrm policy; exit 1";
/// Sends 200 kB through the tunnel, and says how many the other end got.
const BULK: &str = "timeout 20 bash -c 'exec 3<>/dev/tcp/10.8.0.2/7; head -c 200000 /dev/zero >&3; read -r got <&3; echo got $got'";

/// `mtu` finds what gets through and that the rest vanishes; what it plans lets bulk through.
pub fn tunnels(bench: &mut Bench) -> Result<String> {
    let (mut near, mut far) = bench.pair()?;
    far.run(&format!(
        "nft 'add table netdev path'; nft 'add chain netdev path in {{ type filter hook ingress device enp0s2 priority 0; }}'; \
         nft 'add rule netdev path in ip length > {WHOLE} drop'; nft 'add rule netdev path in ip frag-off & 0x3fff != 0 drop'; \
         systemd-run -q --unit=sink systemd-socket-activate -l 7 --accept --inetd sh -c 'head -c 200000 | wc -c'"
    ))?;
    let keys = "umask 77; wg genkey >/root/wg; wg pubkey </root/wg";
    let keys = [near.run(keys)?, far.run(keys)?];
    let mut seen = Vec::new();
    for tunnel in TUNNELS {
        near = cured(near, &mut far, &keys, tunnel).context(tunnel.0)?;
        seen.push(format!("{} {}", tunnel.0, tunnel.2));
        for machine in [&mut near, &mut far] {
            machine.run("systemctl disable --now esp; rm -f /etc/systemd/system/esp.service /usr/local/sbin/esp /etc/systemd/network/06-t0.*; networkctl reload; \
                         ip link del t0; ip xfrm policy flush; ip xfrm state flush; ip route flush cache; true")?;
        }
    }
    Ok(format!("found, and cured by its plan, also after a restart: {}", seen.join(", ")))
}

/// One of them: not whole, found, cured, also when it was down and after a restart, and rolled back.
fn cured(
    mut near: Running,
    far: &mut Running,
    keys: &[String; 2],
    (name, make, inside): (&str, &str, u32),
) -> Result<Running> {
    tunnel(&mut near, make, 1, &keys[1])?;
    tunnel(far, make, 2, &keys[0])?;
    near.run(THROUGH)?;
    let before = near.ask(BULK, STEP)?;
    ensure!(!before.text.contains("got 200000"), "nothing vanishes: {}", before.text);
    let said = near.ask("dualq mtu 10.8.0.2 -o /root/mtu.toml", STEP)?;
    expect(&said, 1, &format!("Packets over {inside} bytes vanish"))?;
    let fresh = near.run("ip route show")?;
    near.run("dualq apply /root/mtu.toml && dualq confirm")?;
    let after = near.ask(BULK, STEP)?;
    expect(&after, 0, "got 200000").context("after the plan")?;
    // The route of the tunnel that is none of its own goes with the card.
    if name != "ESP" {
        near.run("ip link set t0 down; ip link set t0 up; sleep 2")?;
        let again = near.ask(BULK, STEP)?;
        expect(&again, 0, "got 200000").context("after the tunnel was down")?;
    }
    near = near.reboot()?;
    near.run(THROUGH)?;
    let again = near.ask(BULK, STEP)?;
    expect(&again, 0, "got 200000").context("after a restart")?;
    near.run("dualq rollback")?;
    let left = near.run("ip route show")?;
    ensure!(left == fresh, "after rollback, other routes are there: {left}, in place of: {fresh}");
    Ok(near)
}

fn tunnel(end: &mut Running, make: &str, number: u8, peer: &str) -> Result<()> {
    let other = 3 - number;
    end.run(&format!(
        "set -e; L=10.9.0.{number} R=10.9.0.{other} I=10.8.0.{number} J=10.8.0.{other} P={}; in=$(( {number} + 10 )) out=$(( {other} + 10 )); {NETDEV}; {make}",
        peer.trim()
    ))
    .map(drop)
}

/// The path that is measured: at the far end, 10 Mbit/s through a FIFO that holds a second, 20 ms each way.
const NARROW: &str = "ip link add ifb0 type ifb; ip link set ifb0 up; tc qdisc add dev enp0s2 ingress; \
     tc filter add dev enp0s2 parent ffff: protocol all matchall action mirred egress redirect dev ifb0; \
     tc qdisc add dev ifb0 root tbf rate 10mbit burst 20kb limit 1250kb; \
     tc qdisc replace dev enp0s2 root netem delay 40ms limit 10000";

/// An upload over a provider's bloated queue, before the plan and with it; `verify` decides by itself.
pub fn measure(bench: &mut Bench) -> Result<String> {
    let (mut near, mut far) = bench.pair()?;
    far.run(NARROW)?;
    far.run("systemd-run -q --unit=serve /usr/local/bin/dualq serve --new /root/token; sleep 3; systemctl is-active serve")?;
    let token = far.run("cat /root/token")?;
    near.run(&format!("umask 77; cat >/root/token <<'END'\n{}\nEND", token.trim()))?;
    let before = upload_p99(&mut near)?;
    near.run("dualq plan --dev enp0s2 --rate 10mbit --rtt 40ms -o plan.toml")?;
    let verified =
        near.ask("dualq apply plan.toml --verify 10.9.0.2 --token-file token", STEP * 10)?;
    expect(&verified, 0, "confirmed")?;
    let after = upload_p99(&mut near)?;
    let seen = format!("p99 of round trips under load {before:.0} ms before, {after:.0} ms after");
    // Most of a second waits in the path's own queue, and tens of milliseconds in the plan's.
    ensure!(after < before / 2.0, "{seen}; verify: {}", verified.text.trim());
    near.run("dualq rollback")?;
    let verdict =
        verified.text.lines().find(|line| line.starts_with("helped")).context("verify")?;
    Ok(format!("{seen}; {verdict}"))
}

/// The 99th percentile of a TCP probe's round trips beside an upload, in milliseconds.
fn upload_p99(near: &mut Running) -> Result<f64> {
    near.run_within(
        "dualq measure 10.9.0.2 --token-file token --direction upload --streams 4 --json >measured.json",
        STEP * 3,
    )?;
    let measured: Value = serde_json::from_str(&near.run("cat measured.json")?)?;
    let pings = measured["loaded"][0]["pings"].as_array().into_iter().flatten();
    let tcp = pings.into_iter().find(|ping| ping["method"] == "tcp");
    tcp.and_then(|ping| ping["rtt"]["p99_ms"].as_f64()).context("no round trips by TCP")
}
