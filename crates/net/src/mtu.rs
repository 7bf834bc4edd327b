/// A hop whose next link takes no longer IP packets than this. Longer ones are lost, for they may not be fragmented (RFC 1191).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mtu {
    /// The longest IP packet, in bytes.
    pub mtu: u32,
    /// Whether senders are told, by ICMP; else the hop is a black hole to them.
    pub icmp: bool,
}
