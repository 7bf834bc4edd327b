//! Tunnels, and what a queue discipline below one sees of the flows in it.

use super::{Facts, Interface};

/// What the queue of the device that a tunnel's packets leave by sees of the flows inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// Each flow by itself.
    Apart,
    /// The machine's own flows each by itself, for their packets keep the hash of their socket; of forwarded ones it depends on
    /// whether somebody looked at them before.
    OwnApart,
    /// One flow, whatever is inside.
    OneFlow,
}

/// A tunnel that ends on this machine.
#[derive(Clone, Copy, Debug)]
pub struct Tunnel<'a> {
    /// Its interface.
    pub interface: &'a Interface,
    /// What kind of tunnel, in words.
    pub kind: &'static str,
    /// What the queue below it sees.
    pub sight: Sight,
}

/// WireGuard keeps the hash of the inner packet since then (`wireguard: queueing: preserve flow hash across packet scrubbing`).
const WIREGUARD_KEEPS_THE_HASH: (u32, u32) = (5, 7);

impl Facts {
    /// The tunnels that are up.
    pub fn tunnels(&self) -> impl Iterator<Item = Tunnel<'_>> {
        self.interfaces
            .iter()
            .filter(|interface| interface.up)
            .filter_map(|interface| self.tunnel(interface))
    }

    /// What `interface` is, if it is a tunnel.
    pub(crate) fn tunnel<'a>(&self, interface: &'a Interface) -> Option<Tunnel<'a>> {
        let (kind, sight) = match interface.driver.as_deref()? {
            "wireguard" | "amneziawg" if self.kernel.version() < WIREGUARD_KEEPS_THE_HASH => {
                ("WireGuard", Sight::OneFlow)
            }
            "wireguard" | "amneziawg" => ("WireGuard", Sight::Apart),
            // A program sends what it has read from the device by a socket of its own.
            "tun" => ("a program's, such as OpenVPN's", Sight::OneFlow),
            "ovpn" | "ovpn-dco" => ("OpenVPN in the kernel", Sight::OneFlow),
            "xfrm" | "vti" | "vti6" => ("IPsec", Sight::OwnApart),
            // The kernel's flow dissector looks into them.
            "gre" | "gretap" | "ip6gre" | "ip6gretap" => ("GRE", Sight::Apart),
            "ipip" | "ip6tnl" | "sit" => ("IP in IP", Sight::Apart),
            // Their UDP source port is made from the inner flow.
            "vxlan" => ("VXLAN", Sight::Apart),
            "geneve" => ("Geneve", Sight::Apart),
            _ => return None,
        };
        Some(Tunnel { interface, kind, sight })
    }

    /// The tunnel, if one has the default route and hides its flows: all that other devices send is then one flow, or little else.
    pub(crate) fn hidden_in(&self) -> Option<Tunnel<'_>> {
        let route = self.default_routes.first()?;
        self.tunnels()
            .find(|tunnel| tunnel.interface.name == route.dev && tunnel.sight == Sight::OneFlow)
    }
}
