//! What to do about a path that eats packets, as commands for Linux and FreeBSD.

use std::net::IpAddr;

/// Headers of TCP without options and of IP: an MSS does not count them (RFC 9293 §3.7.1).
const TCP: u16 = 20;

/// What Linux's TCP falls back to when it probes (ip-sysctl, tcp_base_mss).
const LINUX_BASE_MSS: u16 = 1024;
/// FreeBSD's (tcp(4), pmtud_blackhole_mss), for both versions of IP.
const FREEBSD_MSS: u16 = 1200;

/// Where a cure is to work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Situation {
    /// The host that large packets do not reach.
    pub host: IpAddr,
    /// What gets through.
    pub mtu: u16,
    /// The interface that leads there.
    pub interface: String,
    /// The first router, if the host is no neighbour.
    pub gateway: Option<IpAddr>,
}

/// Which cure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// A route with the right MTU.
    RouteMtu,
    /// Routers write a smaller MSS into passing SYNs.
    MssClamp,
    /// TCP finds out for itself.
    MtuProbing,
    /// Routers send their ICMP, and let that of others through.
    LetIcmpThrough,
}

/// A cure: what it does, when it is the right one, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cure {
    /// Which.
    pub remedy: Remedy,
    /// What it does.
    pub does: String,
    /// When to prefer it, and what it does not help against.
    pub when: String,
    /// Commands, each a line for a shell.
    pub linux: Vec<String>,
    /// The same.
    pub freebsd: Vec<String>,
}

/// The MSS that makes packets of `mtu` bytes.
#[must_use]
pub fn mss_of(host: IpAddr, mtu: u16) -> u16 {
    mtu.saturating_sub(TCP + if host.is_ipv4() { 20 } else { 40 })
}

/// `192.0.2.1/32`, as routes name a single host.
fn prefix_of(host: IpAddr) -> String {
    format!("{host}/{}", if host.is_ipv4() { 32 } else { 128 })
}

/// What helps, the best first.
#[must_use]
pub fn cures(situation: &Situation) -> Vec<Cure> {
    vec![
        route_mtu(situation),
        mss_clamp(situation),
        mtu_probing(situation),
        let_icmp_through(situation),
    ]
}

fn route_mtu(situation: &Situation) -> Cure {
    let Situation { host, mtu, interface, gateway } = situation;
    let v6 = host.is_ipv6();
    let via = gateway.map_or(String::new(), |gateway| format!("via {gateway} "));
    let ip = if v6 { "ip -6" } else { "ip" };
    let family = if v6 { "-6" } else { "-4" };
    let rc = if v6 { "ipv6_" } else { "" };
    let freebsd = gateway.map_or_else(
        || vec![format!("ifconfig em0 mtu {mtu}  # em0: the interface that leads to {host}")],
        |gateway| {
            vec![
                format!("route {family} add -host {host} {gateway} -mtu {mtu}"),
                format!("sysrc {rc}static_routes+=dualqmtu"),
                format!("sysrc {rc}route_dualqmtu=\"-host {host} {gateway} -mtu {mtu}\""),
            ]
        },
    );
    Cure {
        remedy: Remedy::RouteMtu,
        does: format!(
            "this machine sends {host} no packet over {mtu} bytes, by any protocol, and its TCP asks for none"
        ),
        when: "right for one host or network behind the hole, if this machine is at one end of the traffic; for a network put its \
               prefix in place of the host's"
            .to_owned(),
        linux: vec![format!("{ip} route replace {} {via}dev {interface} mtu {mtu}", prefix_of(*host))],
        freebsd,
    }
}

fn mss_clamp(situation: &Situation) -> Cure {
    let Situation { host, mtu, .. } = situation;
    let mss = mss_of(*host, *mtu);
    let (iptables, family) = if host.is_ipv4() { ("iptables", "ip") } else { ("ip6tables", "ip6") };
    Cure {
        remedy: Remedy::MssClamp,
        does: format!("a router lowers the MSS of passing TCP connections to {mss}, so that both ends send packets of {mtu} bytes at most"),
        when: "right on a gateway, for all machines behind it, which need not know. It helps TCP only, not UDP (QUIC, DNS, a VPN); \
               --clamp-mss-to-pmtu in place of a number suits a router that has the smaller MTU on an interface of its own"
            .to_owned(),
        linux: vec![
            format!("nft add table {family} mss"),
            format!("nft 'add chain {family} mss forward {{ type filter hook forward priority mangle; }}'"),
            format!("nft 'add rule {family} mss forward tcp flags & (syn | rst) == syn tcp option maxseg size set {mss}'"),
            format!("# or: {iptables} -t mangle -A FORWARD -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --set-mss {mss}"),
        ],
        freebsd: vec![
            "# in /etc/pf.conf, before the filter rules; then: pfctl -f /etc/pf.conf".to_owned(),
            format!("scrub all max-mss {mss}"),
        ],
    }
}

fn mtu_probing(situation: &Situation) -> Cure {
    let mss = mss_of(situation.host, situation.mtu);
    let mut linux = vec![
        "sysctl -w net.ipv4.tcp_mtu_probing=1".to_owned(),
        "echo net.ipv4.tcp_mtu_probing=1 > /etc/sysctl.d/90-mtu-probing.conf".to_owned(),
    ];
    let mut freebsd = vec![
        "sysctl net.inet.tcp.pmtud_blackhole_detection=1".to_owned(),
        "echo net.inet.tcp.pmtud_blackhole_detection=1 >> /etc/sysctl.conf".to_owned(),
    ];
    if mss < LINUX_BASE_MSS {
        linux.insert(0, format!("sysctl -w net.ipv4.tcp_base_mss={mss}"));
    }
    if mss < FREEBSD_MSS {
        let key = if situation.host.is_ipv4() { "pmtud" } else { "v6pmtud" };
        freebsd.insert(0, format!("sysctl net.inet.tcp.{key}_blackhole_mss={mss}"));
    }
    Cure {
        remedy: Remedy::MtuProbing,
        does: "this machine's TCP sends smaller segments once several were lost in a row (RFC 4821), over IPv4 and IPv6".to_owned(),
        when: "right on servers that many reach over paths nobody knows. Each connection still hangs for some seconds first; it helps \
               what this machine sends, by TCP, and nothing else"
            .to_owned(),
        linux,
        freebsd,
    }
}

fn let_icmp_through(situation: &Situation) -> Cure {
    let v4 = situation.host.is_ipv4();
    let (linux, freebsd, what) = if v4 {
        (
            "nft insert rule inet filter forward icmp type destination-unreachable accept",
            "pass quick inet proto icmp icmp-type unreach",
            "\"fragmentation needed\" (RFC 1191)",
        )
    } else {
        (
            "nft insert rule inet filter forward icmpv6 type packet-too-big accept",
            "pass quick inet6 proto icmp6 icmp6-type toobig",
            "\"packet too big\" (RFC 4890 §4.3.1)",
        )
    };
    Cure {
        remedy: Remedy::LetIcmpThrough,
        does: format!("routers and firewalls on the way let {what} through, and every sender adapts by itself"),
        when: "right if the place where packets vanish is yours: then also give the tunnel's interface there its true MTU, \
               since a link that drops frames without a word knows of no ICMP"
            .to_owned(),
        linux: vec!["# table and chain: those of the ruleset that filters there".to_owned(), linux.to_owned()],
        freebsd: vec!["# in /etc/pf.conf; then: pfctl -f /etc/pf.conf".to_owned(), freebsd.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    fn situation(host: IpAddr, mtu: u16, gateway: Option<IpAddr>) -> Situation {
        Situation { host, mtu, interface: "eth0".to_owned(), gateway }
    }

    fn commands(situation: &Situation, remedy: Remedy) -> (Vec<String>, Vec<String>) {
        let cure = cures(situation).into_iter().find(|cure| cure.remedy == remedy).unwrap();
        (cure.linux, cure.freebsd)
    }

    #[test]
    fn numbers_fit_the_value_found() {
        let host = Ipv4Addr::new(192, 0, 2, 7);
        let there = situation(host.into(), 1400, Some(Ipv4Addr::new(10, 0, 0, 1).into()));
        let (linux, freebsd) = commands(&there, Remedy::RouteMtu);
        assert_eq!(linux, ["ip route replace 192.0.2.7/32 via 10.0.0.1 dev eth0 mtu 1400"]);
        assert_eq!(freebsd[0], "route -4 add -host 192.0.2.7 10.0.0.1 -mtu 1400");
        let (linux, freebsd) = commands(&there, Remedy::MssClamp);
        assert!(linux[2].ends_with("maxseg size set 1360'"), "{linux:?}");
        assert!(freebsd[1].ends_with("max-mss 1360"), "{freebsd:?}");
        let (linux, freebsd) = commands(&there, Remedy::MtuProbing);
        assert_eq!((linux.len(), freebsd.len()), (2, 2));
    }

    #[test]
    fn ipv6_has_other_headers_and_commands() {
        let there = situation(Ipv6Addr::LOCALHOST.into(), 1280, None);
        let (linux, freebsd) = commands(&there, Remedy::RouteMtu);
        assert_eq!(linux, ["ip -6 route replace ::1/128 dev eth0 mtu 1280"]);
        assert!(freebsd[0].starts_with("ifconfig em0 mtu 1280"), "{freebsd:?}");
        let (linux, _) = commands(&there, Remedy::MssClamp);
        assert!(linux[2].contains("ip6 mss") && linux[2].ends_with("set 1220'"), "{linux:?}");
    }

    /// What the systems fall back to must itself fit.
    #[test]
    fn a_very_small_path_needs_smaller_fallbacks() {
        let there = situation(Ipv4Addr::LOCALHOST.into(), 576, None);
        let (linux, freebsd) = commands(&there, Remedy::MtuProbing);
        assert_eq!(linux[0], "sysctl -w net.ipv4.tcp_base_mss=536");
        assert_eq!(freebsd[0], "sysctl net.inet.tcp.pmtud_blackhole_mss=536");
    }
}
