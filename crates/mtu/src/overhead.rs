//! What tunnels and VPNs leave of a link's MTU, by the sizes of their headers.
//!
//! All sizes are those of IP packets, in bytes. ESP pads to a block, so what fits is not a plain difference.

use std::fmt;

/// IPv4's header without options (RFC 791 §3.1).
const IPV4: u16 = 20;
/// IPv6's (RFC 8200 §3).
const IPV6: u16 = 40;
/// UDP's (RFC 768).
const UDP: u16 = 8;
/// Ethernet's, of a frame inside a tunnel.
const ETHERNET: u16 = 14;
/// A tag of IEEE 802.1Q.
const VLAN: u16 = 4;
/// SPI and sequence number of ESP (RFC 4303 §2).
const ESP: u16 = 8;
/// Pad length and next header, which ESP encrypts with the packet (RFC 4303 §2).
const ESP_TRAILER: u16 = 2;
/// GRE's header (RFC 2784 §2), and its key (RFC 2890 §2).
const GRE: u16 = 4;
const GRE_KEY: u16 = 4;
/// VXLAN's header (RFC 7348 §5) and GENEVE's without options (RFC 8926 §3.4).
const VXLAN: u16 = 8;
/// Type, receiver, counter and authentication tag of WireGuard's data message (its white paper, §5.4.6).
const WIREGUARD: u16 = 32;
/// PPPoE's header and PPP's protocol number (RFC 2516 §4, §7).
const PPPOE: u16 = 8;
/// GTP-U's header without options (3GPP TS 29.281 §5.1).
const GTP: u16 = 8;
/// A label of MPLS (RFC 3032 §2.1).
const MPLS: u16 = 4;

/// How ESP encrypts and authenticates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cipher {
    /// As administrators write it.
    pub name: &'static str,
    /// The initialization vector that each packet carries.
    iv: u16,
    /// What the encrypted part is padded to a multiple of.
    block: u16,
    /// The integrity check value.
    icv: u16,
}

/// What is common. AES-GCM: RFC 4106 §3, §6; ChaCha20-Poly1305: RFC 7634 §2; AES-CBC: RFC 3602 §2, §3; HMAC-SHA-1-96: RFC 2404 §2;
/// HMAC-SHA-2: RFC 4868 §2.6.
pub const CIPHERS: [Cipher; 5] = [
    Cipher { name: "AES-GCM or ChaCha20-Poly1305", iv: 8, block: 4, icv: 16 },
    Cipher { name: "AES-CBC with HMAC-SHA1-96", iv: 16, block: 16, icv: 12 },
    Cipher { name: "AES-CBC with HMAC-SHA2-256-128", iv: 16, block: 16, icv: 16 },
    Cipher { name: "AES-CBC with HMAC-SHA2-384-192", iv: 16, block: 16, icv: 24 },
    Cipher { name: "AES-CBC with HMAC-SHA2-512-256", iv: 16, block: 16, icv: 32 },
];

impl Cipher {
    /// The longest payload for which ESP's header, padding, trailer and check value fit into `room`.
    fn payload(self, room: u16) -> Option<u16> {
        let encrypted = room.checked_sub(ESP + self.iv + self.icv)?;
        (encrypted / self.block * self.block).checked_sub(ESP_TRAILER)
    }
}

/// Which IP carries a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outer {
    /// Version 4.
    V4,
    /// Version 6.
    V6,
}

impl Outer {
    const fn header(self) -> u16 {
        match self {
            Self::V4 => IPV4,
            Self::V6 => IPV6,
        }
    }
}

impl fmt::Display for Outer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        })
    }
}

/// A way to carry packets in others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encapsulation {
    /// ESP in tunnel mode (RFC 4303 §3.1.2), in UDP where there is a NAT (RFC 3948 §2.1).
    EspTunnel {
        /// What encrypts.
        cipher: Cipher,
        /// Whether in UDP.
        nat_t: bool,
        /// The gateways' IP.
        outer: Outer,
    },
    /// ESP in transport mode (RFC 4303 §3.1.1): the packet keeps its own header, which is `outer`.
    EspTransport {
        /// What encrypts.
        cipher: Cipher,
        /// Whether in UDP.
        nat_t: bool,
        /// The packet's IP.
        outer: Outer,
    },
    /// GRE in ESP in transport mode, as routers build VPNs (RFC 2784, RFC 4303).
    GreInEsp {
        /// What encrypts.
        cipher: Cipher,
        /// The gateways' IP.
        outer: Outer,
    },
    /// WireGuard.
    WireGuard(Outer),
    /// GRE (RFC 2784).
    Gre(Outer),
    /// GRE with a key (RFC 2890).
    GreKey(Outer),
    /// VXLAN (RFC 7348).
    Vxlan(Outer),
    /// VXLAN of frames that keep a VLAN tag.
    VxlanTagged(Outer),
    /// GENEVE without options (RFC 8926).
    Geneve(Outer),
    /// Any IP in IPv4: IPIP (RFC 2003), 6in4 (RFC 4213).
    InIpv4,
    /// Any IP in IPv6 (RFC 2473), such as DS-Lite (RFC 6333).
    InIpv6,
    /// GTP-U, of mobile networks.
    Gtp(Outer),
    /// PPPoE (RFC 2516).
    Pppoe,
    /// One MPLS label on a link that has no room for it.
    Mpls,
    /// One VLAN tag on a link that has no room for it.
    Vlan,
}

impl Encapsulation {
    /// Those that are considered, simple ones first.
    #[must_use]
    pub fn all() -> Vec<Self> {
        use Outer::{V4, V6};
        let mut all = vec![Self::Pppoe, Self::InIpv4, Self::InIpv6, Self::Mpls, Self::Vlan];
        for outer in [V4, V6] {
            all.extend([Self::WireGuard(outer), Self::Gre(outer), Self::GreKey(outer)]);
            all.extend([Self::Vxlan(outer), Self::VxlanTagged(outer), Self::Geneve(outer)]);
            all.push(Self::Gtp(outer));
            for cipher in CIPHERS {
                for nat_t in [false, true] {
                    all.push(Self::EspTunnel { cipher, nat_t, outer });
                    all.push(Self::EspTransport { cipher, nat_t, outer });
                }
                all.push(Self::GreInEsp { cipher, outer });
            }
        }
        all
    }

    /// Those that have a name of one word, over IPv4, and those over IPv6 where there is a `6` at its end. ESP is tunnel mode with
    /// AES-GCM.
    pub const NAMED: [(&str, Self); 17] = [
        ("wireguard", Self::WireGuard(Outer::V4)),
        ("wireguard6", Self::WireGuard(Outer::V6)),
        ("ipsec", Self::esp(false, Outer::V4)),
        ("ipsec6", Self::esp(false, Outer::V6)),
        ("ipsec-nat", Self::esp(true, Outer::V4)),
        ("gre", Self::Gre(Outer::V4)),
        ("gre6", Self::Gre(Outer::V6)),
        ("vxlan", Self::Vxlan(Outer::V4)),
        ("vxlan6", Self::Vxlan(Outer::V6)),
        ("geneve", Self::Geneve(Outer::V4)),
        ("geneve6", Self::Geneve(Outer::V6)),
        ("ipip", Self::InIpv4),
        ("ds-lite", Self::InIpv6),
        ("gtp", Self::Gtp(Outer::V4)),
        ("pppoe", Self::Pppoe),
        ("mpls", Self::Mpls),
        ("vlan", Self::Vlan),
    ];

    const fn esp(nat_t: bool, outer: Outer) -> Self {
        Self::EspTunnel { cipher: CIPHERS[0], nat_t, outer }
    }

    /// The longest IP packet that can be carried over a link of this MTU; `None` if none can.
    #[must_use]
    pub fn inner_mtu(self, link: u16) -> Option<u16> {
        let udp = |nat_t| if nat_t { UDP } else { 0 };
        match self {
            Self::EspTunnel { cipher, nat_t, outer } => {
                cipher.payload(link.checked_sub(outer.header() + udp(nat_t))?)
            }
            Self::EspTransport { cipher, nat_t, outer } => {
                let payload = cipher.payload(link.checked_sub(outer.header() + udp(nat_t))?)?;
                Some(payload + outer.header())
            }
            Self::GreInEsp { cipher, outer } => {
                cipher.payload(link.checked_sub(outer.header())?)?.checked_sub(GRE)
            }
            Self::WireGuard(outer) => link.checked_sub(outer.header() + UDP + WIREGUARD),
            Self::Gre(outer) => link.checked_sub(outer.header() + GRE),
            Self::GreKey(outer) => link.checked_sub(outer.header() + GRE + GRE_KEY),
            Self::Vxlan(outer) | Self::Geneve(outer) => {
                link.checked_sub(outer.header() + UDP + VXLAN + ETHERNET)
            }
            Self::VxlanTagged(outer) => {
                link.checked_sub(outer.header() + UDP + VXLAN + ETHERNET + VLAN)
            }
            Self::InIpv4 => link.checked_sub(IPV4),
            Self::InIpv6 => link.checked_sub(IPV6),
            Self::Gtp(outer) => link.checked_sub(outer.header() + UDP + GTP),
            Self::Pppoe => link.checked_sub(PPPOE),
            Self::Mpls => link.checked_sub(MPLS),
            Self::Vlan => link.checked_sub(VLAN),
        }
    }
}

impl fmt::Display for Encapsulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let udp = |nat_t: bool| if nat_t { " in UDP (NAT-T)" } else { "" };
        match self {
            Self::EspTunnel { cipher, nat_t, outer } => {
                write!(f, "IPsec ESP tunnel{} over {outer}, {}", udp(*nat_t), cipher.name)
            }
            Self::EspTransport { cipher, nat_t, outer } => {
                write!(f, "IPsec ESP transport{} over {outer}, {}", udp(*nat_t), cipher.name)
            }
            Self::GreInEsp { cipher, outer } => {
                write!(f, "GRE in IPsec ESP transport over {outer}, {}", cipher.name)
            }
            Self::WireGuard(outer) => write!(f, "WireGuard over {outer}"),
            Self::Gre(outer) => write!(f, "GRE over {outer}"),
            Self::GreKey(outer) => write!(f, "GRE with a key over {outer}"),
            Self::Vxlan(outer) => write!(f, "VXLAN over {outer}"),
            Self::VxlanTagged(outer) => write!(f, "VXLAN with a VLAN tag over {outer}"),
            Self::Geneve(outer) => write!(f, "GENEVE over {outer}"),
            Self::InIpv4 => f.write_str("IP in IPv4 (IPIP, 6in4)"),
            Self::InIpv6 => f.write_str("IP in IPv6 (DS-Lite)"),
            Self::Gtp(outer) => write!(f, "GTP-U over {outer}"),
            Self::Pppoe => f.write_str("PPPoE"),
            Self::Mpls => f.write_str("an MPLS label"),
            Self::Vlan => f.write_str("a VLAN tag"),
        }
    }
}

/// The MTU of Ethernet (RFC 894).
pub const ETHERNET_MTU: u16 = 1500;
/// What PPPoE leaves of it (RFC 2516 §7).
pub const PPPOE_MTU: u16 = ETHERNET_MTU - PPPOE;
/// Up to here an MTU may be set below what an encapsulation leaves, by who rounds.
const NEAR: u16 = 10;

/// An explanation of a path MTU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// What takes the bytes.
    pub encapsulation: Encapsulation,
    /// The MTU of the link that carries it.
    pub link: u16,
    /// What it leaves.
    pub leaves: u16,
}

/// What leaves exactly `mtu` over Ethernet, or over PPPoE; if nothing does, what leaves up to 10 bytes more, the nearest first,
/// over PPPoE only if nothing does over Ethernet.
#[must_use]
pub fn explain(mtu: u16) -> Vec<Candidate> {
    let mut near: Vec<Candidate> = [ETHERNET_MTU, PPPOE_MTU]
        .into_iter()
        .flat_map(|link| Encapsulation::all().into_iter().map(move |kind| (link, kind)))
        .filter_map(|(link, encapsulation)| {
            let leaves = encapsulation.inner_mtu(link)?;
            // A tag on a PPPoE line, or PPPoE in PPPoE, is nothing that anybody has.
            let likely = link == ETHERNET_MTU
                || !matches!(
                    encapsulation,
                    Encapsulation::Pppoe | Encapsulation::Mpls | Encapsulation::Vlan
                );
            let fits = leaves.checked_sub(mtu).is_some_and(|surplus| surplus <= NEAR);
            (likely && fits).then_some(Candidate { encapsulation, link, leaves })
        })
        .collect();
    near.sort_by_key(|candidate| candidate.leaves);
    if near.iter().any(|candidate| candidate.leaves == mtu) {
        near.retain(|candidate| candidate.leaves == mtu);
    } else if near.iter().any(|candidate| candidate.link == ETHERNET_MTU) {
        near.retain(|candidate| candidate.link == ETHERNET_MTU);
    }
    near
}

#[cfg(test)]
mod tests {
    use super::*;

    const GCM: Cipher = CIPHERS[0];
    const SHA1: Cipher = CIPHERS[1];
    const SHA256: Cipher = CIPHERS[2];
    const SHA384: Cipher = CIPHERS[3];
    const SHA512: Cipher = CIPHERS[4];

    /// Each worked out by hand from the headers that the RFCs draw.
    #[test]
    fn what_is_left_of_1500() {
        use Encapsulation::*;
        use Outer::{V4, V6};
        let tunnel = |cipher, nat_t, outer| EspTunnel { cipher, nat_t, outer };
        let transport = |cipher, nat_t, outer| EspTransport { cipher, nat_t, outer };
        for (encapsulation, left) in [
            // 1500 - 20 - 8 (SPI, sequence) - 8 (IV) - 16 (ICV) = 1448, a multiple of 4; - 2.
            (tunnel(GCM, false, V4), 1446),
            // 8 less: 1440; - 2.
            (tunnel(GCM, true, V4), 1438),
            // 1500 - 40 - 8 - 8 - 16 = 1428; - 2.
            (tunnel(GCM, false, V6), 1426),
            (tunnel(GCM, true, V6), 1418),
            // 1500 - 20 - 8 - 16 - 12 = 1444, down to 90 blocks: 1440; - 2.
            (tunnel(SHA1, false, V4), 1438),
            // 1436, down to 89 blocks: 1424; - 2.
            (tunnel(SHA1, true, V4), 1422),
            // 1500 - 20 - 8 - 16 - 16 = 1440, 90 blocks; - 2.
            (tunnel(SHA256, false, V4), 1438),
            // 1432: 89 blocks, 1424; - 2.
            (tunnel(SHA256, true, V4), 1422),
            // 1500 - 20 - 8 - 16 - 24 = 1432: 1424; - 2.
            (tunnel(SHA384, false, V4), 1422),
            // 1500 - 20 - 8 - 16 - 32 = 1424; - 2.
            (tunnel(SHA512, false, V4), 1422),
            // 1416: 88 blocks, 1408; - 2.
            (tunnel(SHA512, true, V4), 1406),
            // 1500 - 40 - 8 - 16 - 12 = 1424; - 2.
            (tunnel(SHA1, false, V6), 1422),
            // The packet keeps its header of 20: 1446 + 20.
            (transport(GCM, false, V4), 1466),
            (transport(GCM, true, V4), 1458),
            (transport(SHA1, false, V4), 1458),
            // 1426 + 40.
            (transport(GCM, false, V6), 1466),
            // 1446 - 4, 1438 - 4.
            (GreInEsp { cipher: GCM, outer: V4 }, 1442),
            (GreInEsp { cipher: SHA1, outer: V4 }, 1434),
            // 60 and 80 bytes.
            (WireGuard(V4), 1440),
            (WireGuard(V6), 1420),
            (Gre(V4), 1476),
            (GreKey(V4), 1472),
            (Gre(V6), 1456),
            // 50 and 70 bytes.
            (Vxlan(V4), 1450),
            (Vxlan(V6), 1430),
            (VxlanTagged(V4), 1446),
            (Geneve(V4), 1450),
            (Gtp(V4), 1464),
            (InIpv4, 1480),
            (InIpv6, 1460),
            (Pppoe, 1492),
            (Mpls, 1496),
            (Vlan, 1496),
        ] {
            assert_eq!(encapsulation.inner_mtu(1500), Some(left), "{encapsulation}");
        }
    }

    /// Whatever is put in, what goes out fits, and a byte more would not.
    #[test]
    fn padding_never_breaks_the_link() {
        for cipher in CIPHERS {
            for link in 200..1600 {
                let on_the_wire = |inner: u16| {
                    let encrypted = (inner + ESP_TRAILER).next_multiple_of(cipher.block);
                    IPV4 + ESP + cipher.iv + encrypted + cipher.icv
                };
                let tunnel = Encapsulation::EspTunnel { cipher, nat_t: false, outer: Outer::V4 };
                let inner = tunnel.inner_mtu(link).unwrap();
                assert!(on_the_wire(inner) <= link && on_the_wire(inner + 1) > link, "{link}");
            }
        }
    }

    #[test]
    fn a_link_with_no_room_carries_nothing() {
        for encapsulation in Encapsulation::all() {
            assert_eq!(encapsulation.inner_mtu(3), None, "{encapsulation}");
        }
    }

    fn names(mtu: u16) -> Vec<String> {
        let name = |found: &Candidate| format!("{} of {}", found.encapsulation, found.link);
        explain(mtu).iter().map(name).collect()
    }

    #[test]
    fn explanations_are_exact_where_they_can_be() {
        assert_eq!(names(1492), ["PPPoE of 1500"]);
        assert_eq!(names(1476), ["GRE over IPv4 of 1500"]);
        let esp = names(1438);
        assert!(
            esp.iter().any(|name| name.contains("NAT-T") && name.contains("AES-GCM")),
            "{esp:?}"
        );
        assert!(esp.iter().any(|name| name.contains("SHA1-96")), "{esp:?}");
        assert!(esp.iter().all(|name| !name.contains("WireGuard")), "{esp:?}");
        assert!(names(1420).contains(&"WireGuard over IPv6 of 1500".to_owned()));
        assert!(names(1432).contains(&"WireGuard over IPv4 of 1492".to_owned()));
    }

    #[test]
    fn a_rounded_mtu_is_explained_by_what_leaves_a_little_more() {
        let near = explain(1400);
        assert!(!near.is_empty());
        assert!(near.iter().all(|found| (1401..=1410).contains(&found.leaves)), "{near:?}");
        assert!(near.is_sorted_by_key(|found| found.leaves));
        assert_eq!(explain(1500), []);
        assert_eq!(explain(700), []);
    }
}
