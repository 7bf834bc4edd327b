//! What stands before each packet that a TUN device with `IFF_VNET_HDR` gives and takes: `struct virtio_net_hdr` (virtio 1.2 §5.1.6,
//! Linux: include/uapi/linux/virtio_net.h), in the machine's own byte order, as a TUN device has it unless it is told otherwise.

/// Its bytes.
pub(crate) const VNET_BYTES: usize = 10;

/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`: from `checksum_start` on a checksum is still to be made.
pub(crate) const NEEDS_CHECKSUM: u8 = 1;

const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP: u8 = 5;
/// Beside one of TCP: the first segment has CWR set, and no other shall.
const GSO_ECN: u8 = 0x80;

/// What an aggregate is one of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gso {
    /// It is none.
    None,
    /// Segments of TCP over IPv4.
    Tcp4,
    /// Segments of TCP over IPv6.
    Tcp6,
    /// Datagrams of UDP (`UDP_SEGMENT`).
    Udp,
    /// Anything that this crate does not take apart.
    Other,
}

/// The header, read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Vnet {
    pub(crate) flags: u8,
    pub(crate) gso_type: u8,
    /// Bytes of all headers, as a hint to whoever copies them.
    pub(crate) header_bytes: u16,
    /// Bytes of payload in each segment but the last.
    pub(crate) gso_size: u16,
    pub(crate) checksum_start: u16,
    pub(crate) checksum_offset: u16,
}

impl Vnet {
    /// Reads the header in front of a packet, and gives what is behind it.
    pub(crate) fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (header, rest) = bytes.split_first_chunk::<VNET_BYTES>()?;
        let number = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        let header = Self {
            flags: header[0],
            gso_type: header[1],
            header_bytes: number(2),
            gso_size: number(4),
            checksum_start: number(6),
            checksum_offset: number(8),
        };
        Some((header, rest))
    }

    /// Its bytes.
    pub(crate) fn write(&self) -> [u8; VNET_BYTES] {
        let mut bytes = [0; VNET_BYTES];
        bytes[0] = self.flags;
        bytes[1] = self.gso_type;
        let numbers = [self.header_bytes, self.gso_size, self.checksum_start, self.checksum_offset];
        for (place, number) in bytes[2..].chunks_exact_mut(2).zip(numbers) {
            place.copy_from_slice(&number.to_ne_bytes());
        }
        bytes
    }

    pub(crate) const fn gso(&self) -> Gso {
        match self.gso_type & !GSO_ECN {
            0 => Gso::None,
            GSO_TCPV4 => Gso::Tcp4,
            GSO_TCPV6 => Gso::Tcp6,
            GSO_UDP => Gso::Udp,
            _ => Gso::Other,
        }
    }

    pub(crate) const fn needs_checksum(&self) -> bool {
        self.flags & NEEDS_CHECKSUM != 0
    }

    /// The header of a packet that is no aggregate.
    pub(crate) const fn single(self) -> Self {
        Self { gso_type: 0, gso_size: 0, ..self }
    }

    /// The header of an aggregate of datagrams of so many bytes each, behind headers of so many.
    pub(crate) const fn datagrams(self, header_bytes: u16, gso_size: u16) -> Self {
        Self { gso_type: GSO_UDP, header_bytes, gso_size, ..self }
    }

    /// The header of an aggregate of TCP whose first segment has CWR set, or has not.
    pub(crate) const fn with_cwr(self, is_set: bool) -> Self {
        let gso_type = self.gso_type & !GSO_ECN;
        Self { gso_type: if is_set { gso_type | GSO_ECN } else { gso_type }, ..self }
    }
}
