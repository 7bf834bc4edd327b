//! Network interfaces and their queue disciplines.

use std::collections::BTreeMap;

use dualq_netlink::{Link, Netlink, NetlinkError, Queue};
use dualq_qdisc::show;
use dualq_units::Rate;

use super::reader::Reader;
use super::{Arriving, Class, Interface, Qdisc};

/// What goes by it comes back at once, and no queue of it is anybody's bottleneck.
pub(crate) const LOOPBACK: &str = "lo";

/// `IFF_UP` of `include/uapi/linux/if.h`.
const UP: u32 = 1;

/// All but loopback. Without `netlink`, what `/sys` tells: no queue disciplines, no offloads.
pub(super) fn read(
    reader: &mut Reader<'_>,
    netlink: Option<&mut Netlink>,
    networks: &[String],
) -> Vec<Interface> {
    let mut interfaces = match netlink {
        None => from_files(reader),
        Some(netlink) => match netlink.links() {
            Ok(links) => links
                .iter()
                .filter(|link| link.name != LOOPBACK)
                .map(|link| from_netlink(reader, netlink, &links, link))
                .collect(),
            Err(error) => {
                reader.unread("interfaces", &error.to_string());
                from_files(reader)
            }
        },
    };
    for interface in &mut interfaces {
        interface.configured_by = configured_by(reader, &interface.name, networks);
    }
    interfaces
}

fn number(reader: &mut Reader<'_>, name: &str, file: &str) -> Option<u32> {
    let text = reader.line(&format!("/sys/class/net/{name}/{file}"))?;
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn from_files(reader: &mut Reader<'_>) -> Vec<Interface> {
    let names = reader.names("/sys/class/net");
    let mut interfaces = Vec::new();
    for name in names.into_iter().filter(|name| name != LOOPBACK) {
        // Some of what is there is a file of a driver's, no interface.
        let Some(flags) = number(reader, &name, "flags") else { continue };
        let queues = reader.names(&format!("/sys/class/net/{name}/queues"));
        let count = |start: &str| {
            u32::try_from(queues.iter().filter(|queue| queue.starts_with(start)).count())
        };
        interfaces.push(Interface {
            driver: driver(reader, &name, None),
            speed: speed(reader, &name, flags & UP != 0),
            mtu: number(reader, &name, "mtu").unwrap_or(0),
            tx_queue_len: number(reader, &name, "tx_queue_len"),
            up: flags & UP != 0,
            tx_queues: count("tx-").unwrap_or(0).max(1),
            rx_queues: count("rx-").unwrap_or(0),
            name,
            ..Interface::default()
        });
    }
    interfaces
}

/// Kinds of devices that are on another: of veth, what the kernel tells in its place is the other end.
const ON_ANOTHER: [&str; 4] = ["ipvlan", "macsec", "macvlan", "vlan"];

fn from_netlink(
    reader: &mut Reader<'_>,
    netlink: &mut Netlink,
    links: &[Link],
    link: &Link,
) -> Interface {
    let name_of = |index: u32| {
        links.iter().find(|other| other.index == index).map(|other| other.name.clone())
    };
    let is_on_another = link.kind.as_deref().is_some_and(|kind| ON_ANOTHER.contains(&kind));
    let name = link.name.as_str();
    let mut offloads = BTreeMap::new();
    match netlink.offloads(name) {
        Ok(on) => {
            let named = [
                ("tso", on.segmentation.tso),
                ("gso", on.segmentation.gso),
                ("gro", on.gro),
                ("rx-gro-hw", on.gro_hw),
                ("lro", on.lro),
            ];
            offloads.extend(named.map(|(name, on)| (name.to_owned(), on)));
        }
        Err(error) => reader.unread(&format!("{name}'s offloads"), &error.to_string()),
    }
    let qdiscs = netlink.qdiscs(link.index).unwrap_or_else(|error| {
        reader.unread(&format!("{name}'s queue disciplines"), &error.to_string());
        Vec::new()
    });
    // Only of some kinds they are somebody's, and cake and fq_codel have one for each flow.
    let has_classes = qdiscs.iter().any(|queue| dualq_netlink::Class::are_of(&queue.kind));
    let classes = if has_classes { netlink.classes(link.index) } else { Ok(Vec::new()) };
    let classes = classes.unwrap_or_else(|error| {
        reader.unread(&format!("{name}'s classes"), &error.to_string());
        Vec::new()
    });
    let qdiscs = self::qdiscs(&qdiscs);
    let arriving = arriving(netlink, link.index).unwrap_or_else(|error| {
        reader.unread(&format!("what becomes of what arrives at {name}"), &error.to_string());
        None
    });
    Interface {
        name: name.to_owned(),
        driver: driver(reader, name, link.kind.as_deref()),
        speed: speed(reader, name, link.up),
        mtu: link.mtu,
        tx_queue_len: Some(link.tx_queue_length),
        up: link.up,
        tx_queues: link.tx_queues.max(1),
        rx_queues: link.rx_queues,
        gso_max_segs: link.gso_max_segs,
        offloads,
        qdiscs,
        classes: classes.iter().map(class).collect(),
        lower: link.lower.filter(|_| is_on_another).and_then(name_of),
        master: link.master.and_then(name_of),
        arriving,
        configured_by: None,
    }
}

fn arriving(netlink: &mut Netlink, link: u32) -> Result<Option<Arriving>, NetlinkError> {
    use dualq_netlink::Arriving as Found;
    Ok(match netlink.arriving(link)? {
        Found::Plain => None,
        Found::Unfiltered => Some(Arriving::Sorted("an ingress with no filters".to_owned())),
        Found::Sorted { by } => Some(Arriving::Sorted(by)),
        Found::Redirected { to } => Some(match netlink.link_at(to) {
            Ok(to) => Arriving::Redirected(to.name),
            Err(_) => Arriving::Sorted("an ingress that redirects to what is gone".to_owned()),
        }),
    })
}

/// The driver of a device, or the kind of a virtual one.
fn driver(reader: &mut Reader<'_>, name: &str, kind: Option<&str>) -> Option<String> {
    let folder = format!("/sys/class/net/{name}");
    let link = reader.link(&format!("{folder}/device/driver"));
    let driver = link.and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
    driver.or_else(|| kind.map(str::to_owned)).or_else(|| {
        // The kernel's name for kinds of devices that netlink calls otherwise or not at all.
        let text = reader.text(&format!("{folder}/uevent"))?;
        text.lines().find_map(|line| line.strip_prefix("DEVTYPE=").map(str::to_owned))
    })
}

/// In tc's words. A device that is down does not tell, and one that does not know says -1.
fn speed(reader: &mut Reader<'_>, name: &str, up: bool) -> Option<String> {
    let megabits = number(reader, name, "speed").filter(|_| up)?;
    (megabits > 0 && megabits < u32::MAX).then(|| Rate::from_mbit(megabits.into()).to_string())
}

fn class(class: &dualq_netlink::Class) -> Class {
    Class {
        kind: class.kind.clone(),
        id: class.handle.to_string(),
        parent: class.parent.to_string(),
        rate: class.rate.map(|rate| rate.to_string()),
    }
}

/// A device's queue disciplines, the root first.
pub(crate) fn qdiscs(queues: &[Queue]) -> Vec<Qdisc> {
    let mut qdiscs: Vec<Qdisc> = queues.iter().map(qdisc).collect();
    qdiscs.sort_by_key(|qdisc| qdisc.parent != "root");
    qdiscs
}

fn qdisc(queue: &Queue) -> Qdisc {
    let mut statistics = BTreeMap::from([
        ("bytes".to_owned(), queue.counters.sent_bytes),
        ("packets".to_owned(), queue.counters.sent_packets),
        ("drops".to_owned(), queue.counters.drops),
        ("overlimits".to_owned(), queue.counters.overlimits),
        ("backlog".to_owned(), queue.counters.backlog_bytes),
        ("qlen".to_owned(), queue.counters.backlog_packets),
    ]);
    if let (Some(config), Some(stats)) = (&queue.config, &queue.stats) {
        let shown = show::json_with_stats(config, stats).into_iter();
        let counted = shown.filter(|(key, _)| key != "refcnt");
        statistics.extend(counted.filter_map(|(key, value)| Some((key, value.as_u64()?))));
    }
    statistics.insert("requeues".to_owned(), queue.requeues);
    Qdisc {
        kind: queue.kind.clone(),
        handle: queue.handle.to_string(),
        parent: queue.parent.to_string(),
        options: queue.config.as_ref().map(|config| config.to_string().trim().to_owned()),
        statistics,
    }
}

/// The file by which the network's manager knows the interface.
fn configured_by(reader: &mut Reader<'_>, name: &str, networks: &[String]) -> Option<String> {
    let has = |network: &str| networks.iter().any(|known| known == network);
    if has("systemd-networkd") {
        let index = number(reader, name, "ifindex").unwrap_or(0);
        let state = reader.text(&format!("/run/systemd/netif/links/{index}")).unwrap_or_default();
        let file = state.lines().find_map(|line| line.strip_prefix("NETWORK_FILE="));
        if let Some(file) = file {
            return Some(file.to_owned());
        }
    }
    if has("ifupdown") {
        let mut files = vec!["/etc/network/interfaces".to_owned()];
        let folder = "/etc/network/interfaces.d";
        let more = reader.names(folder);
        files.extend(more.into_iter().map(|name| format!("{folder}/{name}")));
        for file in files {
            let text = reader.text(&file).unwrap_or_default();
            let names = text.lines().filter_map(|line| line.trim().strip_prefix("iface "));
            if names.filter_map(|rest| rest.split_whitespace().next()).any(|other| other == name) {
                return Some(file);
            }
        }
    }
    if has("netifd") {
        let file = "/etc/config/network";
        let text = reader.text(file).unwrap_or_default();
        let named = |line: &str| {
            let mut words = line.split_whitespace();
            matches!(words.next(), Some("option" | "list"))
                && matches!(words.next(), Some("device" | "ifname" | "ports"))
                && words.any(|word| word.trim_matches(['\'', '"']) == name)
        };
        return text.lines().any(named).then(|| file.to_owned());
    }
    None
}
