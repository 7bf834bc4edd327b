//! Where a discipline is put.

/// The device a discipline is put on, as far as its defaults depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// The largest frame in bytes, link-layer header included (the kernel's `psched_mtu`).
    pub max_frame: u32,
    /// `txqueuelen`, in packets: the default limit of the FIFOs.
    pub tx_queue_length: u32,
}

impl Device {
    /// The 14 bytes before the IP header on Ethernet.
    pub const ETHERNET_HEADER: u32 = 14;

    /// An Ethernet device whose IP packets have at most `mtu` bytes, with Linux's `txqueuelen` of 1000.
    #[must_use]
    pub const fn ethernet(mtu: u32) -> Self {
        Self { max_frame: mtu.saturating_add(Self::ETHERNET_HEADER), tx_queue_length: 1000 }
    }
}
