//! Default routes of the main table.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::DefaultRoute;
use super::reader::Reader;

/// Flags of `include/uapi/linux/route.h`.
const RTF_UP: u32 = 1;
const RTF_REJECT: u32 = 0x200;

/// A route and its metric: the smallest is preferred.
type Ranked = (u32, DefaultRoute);

/// The preferred first, IPv4 before IPv6.
pub(super) fn read(reader: &mut Reader<'_>) -> Vec<DefaultRoute> {
    let mut routes = Vec::new();
    for (file, line) in
        [("/proc/net/route", ipv4 as fn(&str) -> Option<Ranked>), ("/proc/net/ipv6_route", ipv6)]
    {
        let text = reader.text(file).unwrap_or_default();
        let mut found: Vec<_> = text.lines().filter_map(line).collect();
        found.sort_by_key(|(metric, _)| *metric);
        routes.extend(found.into_iter().map(|(_, route)| route));
    }
    routes
}

/// A line of `/proc/net/route`: interface, destination, gateway, flags, …, metric, mask; addresses as the machine has them in
/// memory.
fn ipv4(line: &str) -> Option<Ranked> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [dev, destination, gateway, flags, _, _, metric, mask, ..] = *fields.as_slice() else {
        return None;
    };
    let hex = |field| u32::from_str_radix(field, 16).ok();
    if hex(destination)? != 0 || hex(mask)? != 0 || !usable(hex(flags)?) {
        return None;
    }
    let gateway = Ipv4Addr::from(hex(gateway)?.to_ne_bytes());
    let via = (!gateway.is_unspecified()).then(|| gateway.to_string());
    Some((metric.parse().ok()?, DefaultRoute { family: 4, dev: dev.to_owned(), via }))
}

/// A line of `/proc/net/ipv6_route`: destination, its prefix length, source, its prefix length, gateway, metric, …, flags,
/// interface; all numbers in hexadecimal.
fn ipv6(line: &str) -> Option<Ranked> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [_, prefix, _, source_prefix, gateway, metric, _, _, flags, dev] = *fields.as_slice()
    else {
        return None;
    };
    let hex = |field| u32::from_str_radix(field, 16).ok();
    if hex(prefix)? != 0 || hex(source_prefix)? != 0 || !usable(hex(flags)?) || dev == "lo" {
        return None;
    }
    let gateway = Ipv6Addr::from(u128::from_str_radix(gateway, 16).ok()?);
    let via = (!gateway.is_unspecified()).then(|| gateway.to_string());
    Some((hex(metric)?, DefaultRoute { family: 6, dev: dev.to_owned(), via }))
}

fn usable(flags: u32) -> bool {
    flags & RTF_UP != 0 && flags & RTF_REJECT == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_routes_are_told_from_others() {
        let line = "eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0";
        let route = |family, via: &str| DefaultRoute {
            family,
            dev: "eth0".to_owned(),
            via: Some(via.to_owned()),
        };
        #[cfg(target_endian = "little")]
        assert_eq!(ipv4(line), Some((100, route(4, "192.0.2.1"))));
        assert_eq!(ipv4(&line.replace("\t00000000\t0\t0", "\t00FFFFFF\t0\t0")), None);
        assert_eq!(
            ipv4("Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT"),
            None
        );
        let zero = "00000000000000000000000000000000";
        let gateway = "fe800000000000000000000000000001";
        let line =
            format!("{zero} 00 {zero} 00 {gateway} 00000400 00000001 00000000 00450003 eth0");
        assert_eq!(ipv6(&line), Some((1024, route(6, "fe80::1"))));
        // The kernel's own, that refuses everything.
        let refusing = format!("{zero} 00 {zero} 00 {zero} ffffffff 00000001 00000000 00200200 lo");
        assert_eq!(ipv6(&refusing), None);
    }
}
