//! Default routes of the main table.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::DefaultRoute;
use super::reader::Reader;

/// Flags of `include/uapi/linux/route.h`.
const RTF_UP: u32 = 1;
const RTF_REJECT: u32 = 0x200;

/// Together these are all destinations, and as each is narrower than a default route they come before it: how OpenVPN's
/// `redirect-gateway def1` takes all traffic without touching the default route (openvpn(8)). Of IPv6, what is in use of it.
const IN_PARTS: [&[(IpAddr, u32)]; 3] = [
    &[(IpAddr::V4(Ipv4Addr::new(0, 0, 0, 0)), 1), (IpAddr::V4(Ipv4Addr::new(128, 0, 0, 0)), 1)],
    &[
        (IpAddr::V6(Ipv6Addr::UNSPECIFIED), 1),
        (IpAddr::V6(Ipv6Addr::new(0x8000, 0, 0, 0, 0, 0, 0, 0)), 1),
    ],
    &[
        (IpAddr::V6(Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0)), 4),
        (IpAddr::V6(Ipv6Addr::new(0x3000, 0, 0, 0, 0, 0, 0, 0)), 4),
    ],
];

/// A route of the main table.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    to: IpAddr,
    length: u32,
    /// The smallest is preferred.
    metric: u32,
    route: DefaultRoute,
}

/// The preferred first, IPv4 before IPv6.
pub(super) fn read(reader: &mut Reader<'_>) -> Vec<DefaultRoute> {
    let mut routes = Vec::new();
    for (file, line) in
        [("/proc/net/route", ipv4 as fn(&str) -> Option<Entry>), ("/proc/net/ipv6_route", ipv6)]
    {
        let text = reader.text(file).unwrap_or_default();
        routes.extend(defaults(text.lines().filter_map(line).collect()));
    }
    routes
}

/// Those by which everything goes, of one family.
fn defaults(mut entries: Vec<Entry>) -> Vec<DefaultRoute> {
    entries.sort_by_key(|entry| entry.metric);
    let first = |part: &(IpAddr, u32)| {
        entries.iter().find(|entry| (entry.to, entry.length) == *part).map(|entry| &entry.route)
    };
    let in_parts = IN_PARTS.iter().find_map(|parts| {
        let route = first(parts.first()?)?;
        parts
            .iter()
            .all(|part| first(part).is_some_and(|other| other.dev == route.dev))
            .then_some(route)
    });
    let whole = entries.iter().filter(|entry| entry.length == 0).map(|entry| &entry.route);
    in_parts.into_iter().chain(whole).cloned().collect()
}

/// A line of `/proc/net/route`: interface, destination, gateway, flags, …, metric, mask; addresses as the machine has them in
/// memory.
fn ipv4(line: &str) -> Option<Entry> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [dev, destination, gateway, flags, _, _, metric, mask, ..] = *fields.as_slice() else {
        return None;
    };
    let hex = |field| u32::from_str_radix(field, 16).ok();
    if !usable(hex(flags)?) {
        return None;
    }
    let address = |field| Some(Ipv4Addr::from(hex(field)?.to_ne_bytes()));
    let gateway = address(gateway)?;
    let via = (!gateway.is_unspecified()).then(|| gateway.to_string());
    Some(Entry {
        to: address(destination)?.into(),
        length: hex(mask)?.count_ones(),
        metric: metric.parse().ok()?,
        route: DefaultRoute { family: 4, dev: dev.to_owned(), via },
    })
}

/// A line of `/proc/net/ipv6_route`: destination, its prefix length, source, its prefix length, gateway, metric, …, flags,
/// interface; all numbers in hexadecimal.
fn ipv6(line: &str) -> Option<Entry> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [destination, length, _, source_length, gateway, metric, _, _, flags, dev] =
        *fields.as_slice()
    else {
        return None;
    };
    let hex = |field| u32::from_str_radix(field, 16).ok();
    if hex(source_length)? != 0 || !usable(hex(flags)?) || dev == "lo" {
        return None;
    }
    let address = |field| Some(Ipv6Addr::from(u128::from_str_radix(field, 16).ok()?));
    let gateway = address(gateway)?;
    let via = (!gateway.is_unspecified()).then(|| gateway.to_string());
    Some(Entry {
        to: address(destination)?.into(),
        length: hex(length)?,
        metric: hex(metric)?,
        route: DefaultRoute { family: 6, dev: dev.to_owned(), via },
    })
}

fn usable(flags: u32) -> bool {
    flags & RTF_UP != 0 && flags & RTF_REJECT == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, line: fn(&str) -> Option<Entry>) -> Vec<(String, Option<String>)> {
        let routes = defaults(text.lines().filter_map(line).collect());
        routes.into_iter().map(|route| (route.dev, route.via)).collect()
    }

    fn dev(name: &str, via: &str) -> (String, Option<String>) {
        (name.to_owned(), Some(via.to_owned()))
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn default_routes_are_told_from_others() {
        let text = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT
                    wlan0 00000000 010200C0 0003 0 0 600 00000000 0 0 0
                    eth0 00000000 010200C0 0003 0 0 100 00000000 0 0 0
                    eth0 000200C0 00000000 0001 0 0 100 00FFFFFF 0 0 0";
        assert_eq!(found(text, ipv4), [dev("eth0", "192.0.2.1"), dev("wlan0", "192.0.2.1")]);
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn two_halves_come_before_the_whole() {
        let eth0 = "eth0 00000000 010200C0 0003 0 0 0 00000000 0 0 0";
        let lower = "tun0 00000000 0100080A 0003 0 0 0 00000080 0 0 0";
        let upper = "tun0 00000080 0100080A 0003 0 0 0 00000080 0 0 0";
        let text = [eth0, lower, upper].join("\n");
        assert_eq!(found(&text, ipv4), [dev("tun0", "10.8.0.1"), dev("eth0", "192.0.2.1")]);
        // One half is not everything, nor are halves by two devices.
        let elsewhere = upper.replace("tun0", "tun1");
        for text in [[eth0, lower].join("\n"), [eth0, lower, &elsewhere].join("\n")] {
            assert_eq!(found(&text, ipv4), [dev("eth0", "192.0.2.1")]);
        }
    }

    #[test]
    fn default_routes_of_ipv6() {
        let zero = "00000000000000000000000000000000";
        let gateway = "fe800000000000000000000000000001";
        let eth0 =
            format!("{zero} 00 {zero} 00 {gateway} 00000400 00000001 00000000 00450003 eth0");
        // The kernel's own, that refuses everything.
        let refusing = format!("{zero} 00 {zero} 00 {zero} ffffffff 00000001 00000000 00200200 lo");
        assert_eq!(found(&format!("{refusing}\n{eth0}"), ipv6), [dev("eth0", "fe80::1")]);
        let part = |to: &str| {
            format!("{to}{} 04 {zero} 00 {gateway} 00000400 1 0 00450003 tun0", &zero[1..])
        };
        let text = [eth0, part("2"), part("3")].join("\n");
        assert_eq!(found(&text, ipv6), [dev("tun0", "fe80::1"), dev("eth0", "fe80::1")]);
    }
}
