//! All that is known of a machine, as one document.

mod building;
mod connections;
mod distribution;
mod files;
mod gather;
pub(crate) mod interfaces;
mod kernel;
mod layers;
pub(crate) mod modules;
mod reader;
mod routes;
mod saved;
mod sysctl;
mod sysctl_output;
mod tc;
mod tunnels;

use std::collections::BTreeMap;
use std::time::Duration;

pub use building::{MOK, building};
pub use gather::{Sources, gather, here};
pub use layers::Layer;
pub use modules::blocked;
pub use saved::FactsError;
pub(crate) use sysctl::dotted;
pub use sysctl::{KEYS, SYSCTL_CONF, settings};
pub use tc::program as tc_program;
pub use tunnels::{Sight, Tunnel};

use dualq_units::tc_time;
use serde::{Deserialize, Serialize};

/// The version of the document. It grows when a reader of an older one could take something wrongly.
pub const FORMAT: u32 = 1;

/// What is known of a machine: what `dualq doctor --json` prints, and `dualq plan --facts` reads.
///
/// What could not be read is absent, and [`unread`](Self::unread) says why. Times and rates are in tc's words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// [`FORMAT`].
    pub format: u32,
    /// The operating system.
    pub os: Os,
    /// Its kernel.
    pub kernel: Kernel,
    /// Its distribution and what starts and configures things.
    pub distribution: Distribution,
    /// Each queue discipline that dualq knows of, by the kernel's name.
    #[serde(default)]
    pub qdiscs: BTreeMap<String, Availability>,
    /// What it takes beside the qdisc `ingress` to queue what arrives: `ifb`, `matchall` and `mirred`; empty in facts of before
    /// dualq looked.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub redirection: BTreeMap<String, Availability>,
    /// Each congestion control that dualq knows of or the kernel has.
    #[serde(default)]
    pub congestion_controls: BTreeMap<String, Availability>,
    /// The program `tc`, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tc: Option<Tc>,
    /// Where this dualq is, if it is [installed](crate::program::installed): where only root could put it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dualq: Option<String>,
    /// Network interfaces, loopback left out.
    #[serde(default)]
    pub interfaces: Vec<Interface>,
    /// Default routes, the preferred first.
    #[serde(default)]
    pub default_routes: Vec<DefaultRoute>,
    /// Running sysctls: those that matter, and all that configuration files set. On FreeBSD too.
    #[serde(default)]
    pub sysctls: BTreeMap<String, String>,
    /// What configuration files set, in the order in which they are read: of one key the last wins.
    #[serde(default)]
    pub settings: Vec<Setting>,
    /// What such files set that are not read at a start: another hides them, or nothing looks there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored_settings: Vec<Setting>,
    /// Existing TCP connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<Connections>,
    /// Connection tracking, if it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conntrack: Option<Conntrack>,
    /// The files that a plan could write and that are there, with their contents.
    #[serde(default)]
    pub files: BTreeMap<String, File>,
    /// What could not be read, and why: a line each.
    #[serde(default)]
    pub unread: Vec<String>,
}

/// An operating system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Os {
    /// Linux.
    #[default]
    Linux,
    /// FreeBSD.
    FreeBsd,
}

/// A kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// `uname -r`: `6.12.9-amd64`.
    pub release: String,
    /// `uname -m`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// Where its configuration was read: `/boot/config-6.12.9-amd64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    /// Options of its configuration that matter, without `CONFIG_`: `NET_SCH_BPF` is `y`, `m` or `n`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// Whether modules can be loaded at all.
    #[serde(default)]
    pub modules: bool,
    /// What modprobe.d(5) keeps from being loaded: queue disciplines and congestion controls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<Blocked>,
    /// What it runs on, if that is not hardware: `kvm`, `lxc`, `docker`, `uml`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtualization: Option<String>,
    /// What somebody who builds a module for it would find; nothing in facts of before dualq looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub building: Option<Building>,
}

/// What somebody who builds a module for a kernel would find.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Building {
    /// Where the kernel's headers are, if they are installed: `/lib/modules/6.12.9-amd64/build`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<String>,
    /// What the kernel was built by, as the headers say: `gcc-14 (Debian 14.2.0-19) 14.2.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compiler: Option<String>,
    /// The major versions of gcc that are installed.
    #[serde(default)]
    pub gcc: Vec<u32>,
    /// Whether there is make.
    #[serde(default)]
    pub make: bool,
    /// Whether there is DKMS, which builds modules anew for each new kernel.
    #[serde(default)]
    pub dkms: bool,
    /// Whether the firmware lets only signed code in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secure_boot: Option<bool>,
    /// `none`, `integrity`, `confidentiality`: kernel_lockdown(7).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lockdown: Option<String>,
    /// Whether the kernel takes signed modules only.
    #[serde(default)]
    pub signatures: bool,
    /// Whether DKMS has a key to sign with.
    #[serde(default)]
    pub key: bool,
}

/// A kernel module that a file keeps from being loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blocked {
    /// Its name: `sch_fq`.
    pub module: String,
    /// Whether modprobe(8) refuses it altogether; otherwise only the kernel's own calls for it are in vain.
    pub entirely: bool,
    /// The file that says so.
    pub file: String,
}

impl Kernel {
    /// The first two numbers of its version; (0, 0) if it has none.
    #[must_use]
    pub fn version(&self) -> (u32, u32) {
        let mut numbers = self
            .release
            .split(|c: char| !c.is_ascii_digit())
            .map(|number| number.parse().unwrap_or(0));
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    }
}

/// A distribution, and how it starts things.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Distribution {
    /// `ID` of os-release(5): `debian`.
    #[serde(default)]
    pub id: String,
    /// `VERSION_ID`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// `PRETTY_NAME`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What process 1 is: `systemd`, `openrc`, `procd`, `sysvinit`, or empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub init: String,
    /// Whether udev handles devices that appear.
    #[serde(default)]
    pub udev: bool,
    /// What configures interfaces and is there: `systemd-networkd`, `networkmanager`, `ifupdown`, `netifd`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<String>,
}

/// Whether a kernel has something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Availability {
    /// In the kernel, or a module that is loaded.
    Ready,
    /// A module that can be loaded.
    Module,
    /// Not there.
    Absent,
    /// Nothing tells, or not to this user.
    Unknown,
}

/// The program `tc`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tc {
    /// Its version, as it says: `iproute2-6.1.0`.
    pub version: String,
    /// Whether it knows dualpi2 (since iproute2 6.17).
    pub dualpi2: bool,
}

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// The kernel's driver: `virtio_net`; of virtual devices their kind: `veth`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Its link speed in tc's words, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<String>,
    /// In bytes.
    pub mtu: u32,
    /// `txqueuelen`, in packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tx_queue_len: Option<u32>,
    /// Whether it is set up.
    pub up: bool,
    /// Transmit queues.
    pub tx_queues: u32,
    /// Receive queues.
    #[serde(default)]
    pub rx_queues: u32,
    /// How many packets TCP puts into one aggregate for it, at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gso_max_segs: Option<u32>,
    /// Offloads by ethtool's short names (`tso`, `gso`, `gro`, `rx-gro-hw`, `lro`), and whether they are on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub offloads: BTreeMap<String, bool>,
    /// Its queue disciplines, the root first.
    #[serde(default)]
    pub qdiscs: Vec<Qdisc>,
    /// The classes of its queue disciplines, of kinds whose classes people make or count: `htb`, `hfsc`, `drr`, `qfq`, `ets`, `prio`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<Class>,
    /// The interface that it is on, of a VLAN and the like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower: Option<String>,
    /// The bridge or bond that it is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub master: Option<String>,
    /// What is done with what arrives, before anybody else sees it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arriving: Option<Arriving>,
    /// The network manager's own file for it, where that matters: `/etc/systemd/network/10-ens3.network`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configured_by: Option<String>,
}

/// What is done with what arrives at an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arriving {
    /// All of it is taken to this interface, and nothing else is done.
    Redirected(String),
    /// Something else, in words: `an ingress with filters (u32)`.
    Sorted(String),
}

/// A queue discipline of an interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Qdisc {
    /// Its kind: `fq_codel`.
    pub kind: String,
    /// As tc writes it: `8001:`; `0:` if the kernel put it there by itself.
    pub handle: String,
    /// `root`, or the class that it is in.
    pub parent: String,
    /// What tc says of its options, if dualq knows the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<String>,
    /// What it has counted, under tc's own keys.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub statistics: BTreeMap<String, u64>,
}

/// A class of a queue discipline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// The kind of its discipline: `htb`.
    pub kind: String,
    /// As tc writes it: `1:10`.
    pub id: String,
    /// `root` if it is right below its discipline, or the class that it is in.
    pub parent: String,
    /// The rate that it has for itself, in tc's words: of `htb` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
}

/// A default route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DefaultRoute {
    /// 4 or 6.
    pub family: u8,
    /// The interface.
    pub dev: String,
    /// The router, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
}

/// A line of a configuration file that sets a sysctl.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// The file.
    pub file: String,
    /// Its line, from 1.
    pub line: u32,
    /// `net.ipv4.tcp_ecn`.
    pub key: String,
    /// What it is set to.
    pub value: String,
}

/// Existing TCP connections to other machines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connections {
    /// How many are established.
    pub established: u32,
    /// How many of them under each congestion control.
    #[serde(default)]
    pub by_congestion_control: BTreeMap<String, u32>,
    /// The median of the smallest round-trip time that each of them has seen, in tc's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_rtt: Option<String>,
}

/// Connection tracking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conntrack {
    /// Connections that are tracked now.
    pub count: u64,
    /// How many can be.
    pub max: u64,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Its permissions, in octal: `0644`.
    pub mode: String,
    /// What is in it; bytes that are no text are refused before.
    pub content: String,
}

impl Facts {
    /// The median of the smallest round-trip times that the connections have seen, if there are any.
    #[must_use]
    pub fn min_rtt(&self) -> Option<Duration> {
        tc_time::parse(self.connections.as_ref()?.min_rtt.as_deref()?).ok()
    }
}

impl Interface {
    /// Its queue disciplines as plans name them, a line each: place, kind and options. Those of what arrives are apart.
    #[must_use]
    pub fn qdisc_lines(&self) -> Vec<String> {
        self.leaving().map(Qdisc::line).collect()
    }

    /// The discipline in a class, with what is inside that, as [`qdisc_lines`](Self::qdisc_lines): nothing where only the kernel's own is.
    #[must_use]
    pub fn lines_in(&self, class: &str) -> Vec<String> {
        in_class(&self.qdiscs, class).into_iter().map(Qdisc::line).collect()
    }

    /// The queue disciplines of what leaves.
    pub fn leaving(&self) -> impl Iterator<Item = &Qdisc> + Clone {
        self.qdiscs.iter().filter(|qdisc| qdisc.queues())
    }
}

/// The discipline in a class, if there is one, and those inside it.
pub(crate) fn in_class<'a>(qdiscs: &'a [Qdisc], class: &str) -> Vec<&'a Qdisc> {
    let mut found: Vec<&Qdisc> = qdiscs.iter().filter(|qdisc| qdisc.parent == class).collect();
    let mut next = 0;
    while let Some(outer) = found.get(next).copied() {
        next += 1;
        for qdisc in qdiscs {
            // Facts are files too, and may say that something is inside itself.
            let is_new = !found.iter().any(|known| std::ptr::eq(*known, qdisc));
            if is_new && outer.handle != "0:" && qdisc.parent.starts_with(&outer.handle) {
                found.push(qdisc);
            }
        }
    }
    found
}

impl Qdisc {
    /// Whether packets wait in it: `ingress` and `clsact` only hold filters.
    pub(crate) fn queues(&self) -> bool {
        !matches!(self.kind.as_str(), "ingress" | "clsact")
    }

    /// Its place, kind and options: `root fq_codel limit 10240p flows 1024 …`.
    #[must_use]
    pub fn line(&self) -> String {
        let options = self.options.as_deref().unwrap_or_default();
        format!("{} {} {options}", self.parent, self.kind).trim_end().to_owned()
    }
}
