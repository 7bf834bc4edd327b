//! Facts of machines that are trees of files.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use dualq_host::facts::{self, Availability, Os, Setting, Sources};
use dualq_host::{Facts, Root};
use tempfile::TempDir;

/// A machine, made of files.
struct Machine(TempDir);

impl Machine {
    fn new(files: &[(&str, &str)]) -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        files.iter().for_each(|(path, text)| machine.put(path, text));
        machine
    }

    fn put(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn link(&self, path: &str, to: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(to, path).unwrap();
    }

    fn facts(&self) -> Facts {
        facts::gather(&Root::new(self.0.path()), Sources::default())
    }
}

fn debian() -> Machine {
    let machine = Machine::new(&[
        ("proc/sys/kernel/osrelease", "6.12.9-amd64\n"),
        ("proc/sys/kernel/arch", "x86_64\n"),
        ("proc/modules", "tcp_bbr 20480 4 - Live 0x0000000000000000\n"),
        ("proc/sys/net/ipv4/tcp_available_congestion_control", "reno cubic bbr\n"),
        ("proc/sys/net/ipv4/tcp_congestion_control", "bbr\n"),
        ("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
        ("proc/sys/net/ipv4/tcp_ecn", "2\n"),
        ("proc/sys/net/core/default_qdisc", "fq_codel\n"),
        (
            "etc/os-release",
            "PRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\nID=debian\nVERSION_ID=\"13\"\n",
        ),
        ("run/systemd/system/x", ""),
        (
            "run/systemd/netif/links/2",
            "ADMIN_STATE=configured\nNETWORK_FILE=/etc/systemd/network/10-ens3.network\n",
        ),
        ("run/udev/control", ""),
        (
            "boot/config-6.12.9-amd64",
            "CONFIG_MODULES=y\nCONFIG_NET_SCHED=y\nCONFIG_NET_SCH_HTB=m\nCONFIG_NET_SCH_FQ=m\nCONFIG_NET_SCH_FQ_CODEL=y\n# CONFIG_NET_SCH_BPF is not set\nCONFIG_TCP_CONG_BBR=m\nCONFIG_TCP_CONG_CUBIC=y\nCONFIG_TCP_CONG_DCTCP=m\n",
        ),
        (
            "lib/modules/6.12.9-amd64/modules.dep",
            "kernel/net/sched/sch_htb.ko.xz:\nkernel/net/sched/sch_fq.ko.xz:\nkernel/net/ipv4/tcp_bbr.ko.xz: \nkernel/net/ipv4/tcp_dctcp.ko.xz:\nkernel/net/ipv4/tcp_diag.ko.xz: kernel/net/ipv4/inet_diag.ko.xz\nkernel/net/ipv4/tcp_vegas.ko.xz:\n",
        ),
        ("lib/modules/6.12.9-amd64/modules.builtin", "kernel/net/sched/sch_fq_codel.ko\n"),
        ("etc/modprobe.d/x.conf", "# no\ninstall sch_fq /bin/false\nblacklist tcp-dctcp\n"),
        ("sys/class/net/ens3/flags", "0x1003\n"),
        ("sys/class/net/ens3/ifindex", "2\n"),
        ("sys/class/net/ens3/mtu", "1500\n"),
        ("sys/class/net/ens3/speed", "-1\n"),
        ("sys/class/net/ens3/tx_queue_len", "1000\n"),
        ("sys/class/net/ens3/queues/tx-0/x", ""),
        ("sys/class/net/ens3/queues/tx-1/x", ""),
        ("sys/class/net/ens3/queues/rx-0/x", ""),
        ("sys/class/net/lo/flags", "0x9\n"),
        ("sys/class/net/bonding_masters", "\n"),
        ("sys/class/dmi/id/sys_vendor", "QEMU\n"),
        (
            "proc/net/route",
            "Iface\tDestination\nens3\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n",
        ),
        ("etc/sysctl.d/90-dualq.conf", "net.core.default_qdisc = fq\n"),
    ]);
    machine.link("sys/class/net/ens3/device/driver", "../../../../bus/virtio/drivers/virtio_net");
    machine
}

#[test]
fn a_usual_machine_is_described() {
    let facts = debian().facts();
    assert_eq!(facts.unread, Vec::<String>::new());
    assert_eq!(facts.kernel.version(), (6, 12));
    assert_eq!(facts.kernel.config.as_deref(), Some("/boot/config-6.12.9-amd64"));
    assert_eq!(facts.kernel.options["NET_SCH_BPF"], "n");
    assert_eq!(facts.kernel.virtualization.as_deref(), Some("qemu"));
    let distribution = &facts.distribution;
    assert_eq!((distribution.id.as_str(), distribution.version.as_str()), ("debian", "13"));
    assert_eq!((distribution.init.as_str(), distribution.udev), ("systemd", true));
    assert_eq!(distribution.network, ["systemd-networkd"]);

    let [interface] = facts.interfaces.as_slice() else { panic!("{:?}", facts.interfaces) };
    assert_eq!((interface.name.as_str(), interface.mtu, interface.up), ("ens3", 1500, true));
    assert_eq!(
        (interface.driver.as_deref(), interface.speed.as_deref()),
        (Some("virtio_net"), None)
    );
    assert_eq!(
        (interface.tx_queues, interface.rx_queues, interface.tx_queue_len),
        (2, 1, Some(1000))
    );
    assert_eq!(interface.configured_by.as_deref(), Some("/etc/systemd/network/10-ens3.network"));
    assert_eq!(facts.default_routes[0].dev, "ens3");
    assert_eq!(facts.sysctls["net.ipv4.tcp_rmem"], "4096 131072 6291456");
    let file = &facts.files["/etc/sysctl.d/90-dualq.conf"];
    assert_eq!((file.content.as_str(), file.mode.len()), ("net.core.default_qdisc = fq\n", 4));
}

#[test]
fn what_the_kernel_has_follows_from_its_modules_and_configuration() {
    use Availability::{Absent, Module, Ready};
    let facts = debian().facts();
    for (qdisc, expected) in [
        ("fq_codel", Ready),
        ("htb", Module),
        ("dualpi2", Absent),
        ("pfifo_fast", Ready),
        // Its module is there, but may not be loaded.
        ("fq", Absent),
    ] {
        assert_eq!(facts.qdiscs[qdisc], expected, "{qdisc}");
    }
    for (control, expected) in
        [("reno", Ready), ("cubic", Ready), ("bbr", Ready), ("dctcp", Module), ("vegas", Module)]
    {
        assert_eq!(facts.congestion_controls[control], expected, "{control}");
    }
    assert!(!facts.congestion_controls.contains_key("diag"));
    let blocked: Vec<_> =
        facts.kernel.blocked.iter().map(|it| (it.module.as_str(), it.entirely)).collect();
    assert_eq!(blocked, [("sch_fq", true), ("tcp_dctcp", false)]);
}

#[test]
fn where_nothing_tells_nothing_is_claimed() {
    // A container: the kernel's modules are not in it.
    let machine = Machine::new(&[
        ("proc/sys/kernel/osrelease", "6.12.9-amd64\n"),
        ("proc/modules", "overlay 1 0 - Live 0x0\n"),
        ("run/.containerenv", ""),
    ]);
    let facts = machine.facts();
    assert_eq!(facts.qdiscs["dualpi2"], Availability::Unknown);
    assert_eq!(facts.congestion_controls["bbr"], Availability::Unknown);
    assert_eq!(facts.kernel.virtualization.as_deref(), Some("podman"));
    // A machine that was made of a container's files is none.
    machine.put("proc/2/comm", "kthreadd\n");
    assert_eq!(machine.facts().kernel.virtualization, None);
    assert_eq!(
        facts.unread,
        [
            "net.core.default_qdisc: this kernel or container does not show it",
            "net.ipv4.tcp_congestion_control: this kernel or container does not show it",
            "net.ipv4.tcp_ecn: this kernel or container does not show it",
        ]
    );
}

#[test]
fn openwrt_has_its_modules_beside_one_another() {
    let machine = Machine::new(&[
        ("proc/sys/kernel/osrelease", "6.6.93\n"),
        ("proc/modules", ""),
        ("proc/1/comm", "procd\n"),
        ("lib/modules/6.6.93/sch_cake.ko", ""),
        ("lib/modules/6.6.93/tcp_bbr.ko", ""),
        (
            "etc/config/network",
            "config device\n\toption name 'br-lan'\nconfig interface 'wan'\n\toption device 'eth1'\n",
        ),
        ("sys/class/net/eth1/flags", "0x1003\n"),
        ("sys/class/net/eth1/mtu", "1500\n"),
        ("etc/sysctl.conf", "net.ipv4.tcp_ecn=1\n"),
        ("etc/sysctl.d/10-default.conf", "net.ipv4.tcp_ecn=0\n"),
    ]);
    let facts = machine.facts();
    assert_eq!(facts.qdiscs["cake"], Availability::Module);
    assert_eq!(facts.qdiscs["dualpi2"], Availability::Absent);
    assert_eq!(facts.congestion_controls["bbr"], Availability::Module);
    assert_eq!(facts.distribution.network, ["netifd"]);
    assert_eq!(facts.interfaces[0].configured_by.as_deref(), Some("/etc/config/network"));
    let files: Vec<_> = facts.settings.iter().map(|setting| setting.file.as_str()).collect();
    assert_eq!(files, ["/etc/sysctl.d/10-default.conf", "/etc/sysctl.conf"]);
}

/// The file and value of each setting.
fn told(settings: &[Setting]) -> Vec<(&str, &str)> {
    settings.iter().map(|setting| (setting.file.as_str(), setting.value.as_str())).collect()
}

fn with_files(init: &str) -> Machine {
    let machine = Machine::new(&[
        ("etc/sysctl.d/50-b.conf", "net.ipv4.tcp_ecn = 1\n"),
        ("usr/lib/sysctl.d/50-b.conf", "net.ipv4.tcp_ecn = hidden\n"),
        ("run/sysctl.d/10-a.conf", "net.ipv4.tcp_ecn = 2\n"),
        ("usr/lib/sysctl.d/99-z.conf", "net.ipv4.tcp_ecn = 3\n"),
        ("etc/sysctl.d/README", "net.ipv4.tcp_ecn = readme\n"),
        ("etc/sysctl.conf", "net.ipv4.tcp_ecn = 4\n"),
    ]);
    machine.put(if init == "systemd" { "run/systemd/system/x" } else { "run/openrc/x" }, "");
    machine.link("lib", "usr/lib");
    machine
}

#[test]
fn files_are_read_in_the_order_of_their_names_and_hide_one_another() {
    let in_order = [
        ("/run/sysctl.d/10-a.conf", "2"),
        ("/etc/sysctl.d/50-b.conf", "1"),
        ("/usr/lib/sysctl.d/99-z.conf", "3"),
    ];
    let hidden = ("/usr/lib/sysctl.d/50-b.conf", "hidden");
    let old = ("/etc/sysctl.conf", "4");

    let facts = with_files("systemd").facts();
    assert_eq!(told(&facts.settings), in_order);
    assert_eq!(told(&facts.ignored_settings), [hidden, old]);

    let facts = with_files("openrc").facts();
    assert_eq!(told(&facts.settings), [&in_order[..], &[old]].concat());
    assert_eq!(told(&facts.ignored_settings), [hidden]);
}

#[test]
fn a_link_lets_systemd_read_the_old_file() {
    let machine = with_files("systemd");
    machine.link("etc/sysctl.d/99-sysctl.conf", "../sysctl.conf");
    let facts = machine.facts();
    assert_eq!(told(&facts.settings)[2], ("/etc/sysctl.d/99-sysctl.conf", "4"));
    assert_eq!(told(&facts.ignored_settings), [("/usr/lib/sysctl.d/50-b.conf", "hidden")]);
}

#[test]
fn a_line_of_a_file_is_read_as_sysctl_does() {
    let text = "# comment\n; comment\n\n net/ipv4/tcp_ecn=1\n-net.x = 5  6\t7 \n-net.*.left_out\nnonsense\n=1\n";
    let (settings, wrong) = facts::settings("f", text);
    let told: Vec<_> =
        settings.iter().map(|it| (it.line, it.key.as_str(), it.value.as_str())).collect();
    assert_eq!(told, [(4, "net.ipv4.tcp_ecn", "1"), (5, "net.x", "5 6 7")]);
    assert_eq!(wrong, [7, 8]);
}

#[test]
fn tc_is_asked_where_somebody_says_it_is() {
    let machine = Machine::new(&[]);
    let asked = |script: &str| {
        machine.put("tc", script);
        let tc = machine.0.path().join("tc");
        fs::set_permissions(&tc, Permissions::from_mode(0o755)).unwrap();
        let sources = Sources { tc: Some(&tc), ..Sources::default() };
        facts::gather(&Root::new(machine.0.path()), sources)
    };
    let facts = asked("#!/bin/sh\ntest \"$*\" = -V && echo 'tc utility, iproute2-6.17.0'\n");
    assert!(facts.tc.is_some_and(|tc| tc.dualpi2 && tc.version == "iproute2-6.17.0"));
    let facts = asked("#!/bin/sh\nexit 1\n");
    assert_eq!(facts.tc, None);
    assert!(facts.unread.iter().any(|line| line.ends_with("/tc: it does not tell its version")));
}

#[test]
fn a_setting_cannot_name_a_file_elsewhere() {
    let machine = Machine::new(&[
        ("etc/sysctl.conf", "/etc/secret=1\n.etc.secret=1\nnet/../../../etc/secret=1\nnet.*.x=1\n"),
        ("etc/secret", "secret\n"),
    ]);
    let facts = machine.facts();
    assert_eq!(facts.settings.len(), 4);
    assert!(facts.sysctls.is_empty(), "{:?}", facts.sysctls);
}

#[test]
fn facts_are_read_as_they_were_written() {
    let facts = debian().facts();
    let mut document = serde_json::to_value(&facts).unwrap();
    document["findings"] = serde_json::json!([{ "id": "x" }]);
    assert_eq!(Facts::parse("f", &document.to_string()).unwrap(), facts);
    // As an editor on Windows saves it.
    assert_eq!(Facts::parse("f", &format!("\u{feff}{document}")).unwrap(), facts);
}

#[test]
fn what_is_no_facts_is_refused_in_one_line() {
    let mut document = serde_json::to_value(debian().facts()).unwrap();
    document["format"] = 2.into();
    let newer = document.to_string();
    document["format"] = 1.into();
    document["kernal"] = 1.into();
    let misspelt = document.to_string();
    for (text, part) in [
        ("", "holds no facts"),
        ("[]", "it is no JSON object"),
        ("{}", "it has no number \"format\""),
        (newer.as_str(), "has facts of format 2, this dualq reads 1"),
        (misspelt.as_str(), "unknown field `kernal`"),
        ("{\"format\": 1, \"two\\nlines\": 1}", "unknown field `two lines`"),
    ] {
        let error = Facts::parse("x.json", text).unwrap_err().to_string();
        assert!(error.starts_with("x.json ") && error.contains(part), "{error}");
        assert_eq!(error.lines().count(), 1);
    }
    let error = Facts::read(Path::new("/nowhere.json")).unwrap_err().to_string();
    assert!(error.starts_with("cannot read /nowhere.json: "), "{error}");
}

#[test]
fn the_saved_machines_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/facts");
    let mut read = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            continue;
        }
        let facts = Facts::read(&path).unwrap_or_else(|error| panic!("{error}"));
        // FreeBSD's sysctls do not tell.
        assert!(facts.os == Os::FreeBsd || !facts.interfaces.is_empty(), "{}", path.display());
        read += 1;
    }
    assert!(read >= 5);
}
