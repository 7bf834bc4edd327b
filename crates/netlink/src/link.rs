//! Devices.

use std::os::fd::{AsRawFd, BorrowedFd};

use dualq_qdisc::Device;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};

use crate::attributes::Writer;
use crate::channel::{Failure, messages};
use crate::error::ENODEV;
use crate::header::IfInfo;
use crate::{Netlink, NetlinkError};

const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
const RTM_GETLINK: u16 = 18;

const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_LINK: u16 = 5;
const IFLA_MASTER: u16 = 10;
const IFLA_TXQLEN: u16 = 13;
const IFLA_LINKINFO: u16 = 18;
const IFLA_STATS64: u16 = 23;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_NUM_TX_QUEUES: u16 = 31;
const IFLA_NUM_RX_QUEUES: u16 = 32;
const IFLA_LINK_NETNSID: u16 = 37;
const IFLA_GSO_MAX_SEGS: u16 = 40;

const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;

const IFF_UP: u32 = 0x1;
const IFF_RUNNING: u32 = 0x40;

const ARPHRD_ETHER: u16 = 1;
const ARPHRD_LOOPBACK: u16 = 772;

/// A device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its number in its network namespace.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// The longest IP packet that it takes, in bytes.
    pub mtu: u32,
    /// `txqueuelen`, in packets.
    pub tx_queue_length: u32,
    /// How many hardware queues it sends from, each of which has a queue discipline of its own if there are several.
    pub tx_queues: u32,
    /// How many hardware queues it receives into.
    pub rx_queues: u32,
    /// How many packets TCP puts into one aggregate for it, at most (`gso_max_segs`).
    pub gso_max_segs: Option<u32>,
    /// Whether it was set up.
    pub up: bool,
    /// Whether it sends: it is up, and so is what it is connected to. A veth device takes a moment for that once both ends are
    /// up, and loses without a word what it is given before.
    pub running: bool,
    /// Its link-layer address, if that is one of Ethernet.
    pub mac: Option<[u8; 6]>,
    /// What sort of virtual device it is, such as `veth`; `None` for most real ones.
    pub kind: Option<String>,
    /// Whether its frames begin with a header of Ethernet.
    pub ethernet: bool,
    /// The number of the device that it is on, as a VLAN is, or bound to; of a veth device in the same namespace its other end.
    pub lower: Option<u32>,
    /// The number of the bridge or bond that it is a part of.
    pub master: Option<u32>,
}

impl Link {
    /// What queue disciplines make of it.
    #[must_use]
    pub const fn device(&self) -> Device {
        let header = if self.ethernet { Device::ETHERNET_HEADER } else { 0 };
        Device { max_frame: self.mtu.saturating_add(header), tx_queue_length: self.tx_queue_length }
    }

    fn read(payload: &[u8]) -> Option<Self> {
        let (header, attributes) = IfInfo::read(payload)?;
        let number = |kind| attributes.u32(kind).unwrap_or(0);
        let info = attributes.nested(IFLA_LINKINFO);
        Some(Self {
            index: header.index,
            name: attributes.string(IFLA_IFNAME)?.to_owned(),
            mtu: number(IFLA_MTU),
            tx_queue_length: number(IFLA_TXQLEN),
            tx_queues: number(IFLA_NUM_TX_QUEUES),
            rx_queues: number(IFLA_NUM_RX_QUEUES),
            gso_max_segs: attributes.u32(IFLA_GSO_MAX_SEGS),
            up: header.flags & IFF_UP != 0,
            running: header.flags & IFF_RUNNING != 0,
            mac: attributes.get(IFLA_ADDRESS).and_then(|address| address.try_into().ok()),
            kind: info.and_then(|info| info.string(IFLA_INFO_KIND).map(str::to_owned)),
            ethernet: matches!(header.kind, ARPHRD_ETHER | ARPHRD_LOOPBACK),
            lower: attributes
                .u32(IFLA_LINK)
                .filter(|lower| *lower != 0 && *lower != header.index)
                .filter(|_| attributes.get(IFLA_LINK_NETNSID).is_none()),
            master: attributes.u32(IFLA_MASTER).filter(|master| *master != 0),
        })
    }
}

/// One end of a pair of virtual Ethernet devices (veth(4)).
#[derive(Clone, Copy, Debug)]
pub struct VethEnd<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its Ethernet address.
    pub mac: [u8; 6],
    /// The longest IP packet that it takes, in bytes.
    pub mtu: u32,
    /// The network namespace in which it is made, as an open file such as `/proc/self/ns/net`; `None` is that of the
    /// conversation.
    pub namespace: Option<BorrowedFd<'a>>,
}

impl VethEnd<'_> {
    fn write(&self, message: &mut Writer) {
        message.string(IFLA_IFNAME, self.name);
        message.put(IFLA_ADDRESS, &self.mac);
        message.u32(IFLA_MTU, self.mtu);
        // Else there are as many as processors, which shows in the reference counts of its disciplines.
        message.u32(IFLA_NUM_TX_QUEUES, 1);
        message.u32(IFLA_NUM_RX_QUEUES, 1);
        if let Some(namespace) = self.namespace {
            message.u32(IFLA_NET_NS_FD, namespace.as_raw_fd().cast_unsigned());
        }
    }
}

/// What a device has counted (`struct rtnl_link_stats64`), as far as anybody here asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Packets that it received.
    pub received: u64,
    /// Packets that it sent.
    pub sent: u64,
    /// Packets that came and were dropped by it, for want of room for example.
    pub receive_dropped: u64,
    /// Packets that were to be sent and were dropped by it. What its queue discipline drops is not among them.
    pub send_dropped: u64,
}

impl Traffic {
    fn read(counters: &[u8]) -> Option<Self> {
        let counter = |number: usize| {
            let bytes = counters.get(8 * number..8 * number + 8)?;
            Some(u64::from_ne_bytes(bytes.try_into().ok()?))
        };
        Some(Self {
            received: counter(0)?,
            sent: counter(1)?,
            receive_dropped: counter(6)?,
            send_dropped: counter(7)?,
        })
    }
}

impl Netlink {
    /// The device of that name.
    ///
    /// # Errors
    /// [`NetlinkError::NoLink`] if there is none.
    pub fn link(&mut self, name: &str) -> Result<Link, NetlinkError> {
        let mut question = Writer::after(IfInfo::default().bytes());
        question.string(IFLA_IFNAME, name);
        let what = || format!("look up device {name}");
        match self.route.ask(RTM_GETLINK, 0, &question.finish()) {
            Err(Failure::Refused { errno: ENODEV, .. }) => {
                Err(NetlinkError::NoLink { name: name.to_owned() })
            }
            Err(failure) => Err(failure.of(what())),
            Ok(answer) => read(&answer).next().ok_or_else(|| Failure::Malformed.of(what())),
        }
    }

    /// All devices of the network namespace.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn links(&mut self) -> Result<Vec<Link>, NetlinkError> {
        let answer = self.route.dump(RTM_GETLINK, &IfInfo::default().bytes());
        Ok(read(&answer.map_err(|failure| failure.of("list devices"))?).collect())
    }

    /// The device of that index.
    ///
    /// # Errors
    /// If there is none.
    pub fn link_at(&mut self, index: u32) -> Result<Link, NetlinkError> {
        let what = || format!("look up the device of index {index}");
        let answer = self.route.ask(RTM_GETLINK, 0, &IfInfo::of(index).bytes());
        let answer = answer.map_err(|failure| failure.of(what()))?;
        read(&answer).next().ok_or_else(|| Failure::Malformed.of(what()))
    }

    /// What the device of that index has counted so far.
    ///
    /// # Errors
    /// If there is none, or the kernel does not tell.
    pub fn traffic(&mut self, index: u32) -> Result<Traffic, NetlinkError> {
        let what = || format!("read the counters of the device of index {index}");
        let answer = self.route.ask(RTM_GETLINK, 0, &IfInfo::of(index).bytes());
        let answer = answer.map_err(|failure| failure.of(what()))?;
        let counters = |payload: &[u8]| {
            let (_, attributes) = IfInfo::read(payload)?;
            Traffic::read(attributes.get(IFLA_STATS64)?)
        };
        let read = messages(&answer).find_map(|message| counters(message.payload));
        read.ok_or_else(|| Failure::Malformed.of(what()))
    }

    /// What to call a device in an error.
    pub(crate) fn name_of(&mut self, index: u32) -> String {
        self.link_at(index).map_or_else(|_| format!("device {index}"), |link| link.name)
    }

    /// Makes two devices, of which each receives what the other sends. Both are down, and have one queue.
    ///
    /// # Errors
    /// If the kernel refuses: a name is taken, or the process lacks privileges in one of the namespaces.
    pub fn add_veth(&mut self, one: &VethEnd<'_>, other: &VethEnd<'_>) -> Result<(), NetlinkError> {
        let mut message = Writer::after(IfInfo::default().bytes());
        one.write(&mut message);
        message.nest(IFLA_LINKINFO, |info| {
            info.string(IFLA_INFO_KIND, "veth");
            info.nest(IFLA_INFO_DATA, |data| {
                let mut peer = Writer::after(IfInfo::default().bytes());
                other.write(&mut peer);
                data.put(VETH_INFO_PEER, &peer.finish());
            });
        });
        self.add_link(message, || format!("add veth pair {} and {}", one.name, other.name))
    }

    /// Makes a device that swallows what it is given.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn add_dummy(&mut self, name: &str) -> Result<(), NetlinkError> {
        self.add_kind("dummy", name)
    }

    /// Makes a device that has what other devices received leave by a queue discipline before it is taken for received: an
    /// intermediate functional block.
    ///
    /// # Errors
    /// If the kernel refuses, or has none.
    pub fn add_ifb(&mut self, name: &str) -> Result<(), NetlinkError> {
        self.add_kind("ifb", name)
    }

    fn add_kind(&mut self, kind: &str, name: &str) -> Result<(), NetlinkError> {
        let mut message = Writer::after(IfInfo::default().bytes());
        message.string(IFLA_IFNAME, name);
        message.nest(IFLA_LINKINFO, |info| info.string(IFLA_INFO_KIND, kind));
        self.add_link(message, || format!("add {kind} device {name}"))
    }

    fn add_link(
        &mut self,
        message: Writer,
        what: impl FnOnce() -> String,
    ) -> Result<(), NetlinkError> {
        let answer = self.route.ask(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &message.finish());
        answer.map(drop).map_err(|failure| failure.of(what()))
    }

    /// Removes a device, and with one end of a veth pair the other.
    ///
    /// # Errors
    /// [`NetlinkError::NoLink`] if there is none; another if the kernel refuses.
    pub fn delete_link(&mut self, name: &str) -> Result<(), NetlinkError> {
        let index = self.link(name)?.index;
        let answer = self.route.ask(RTM_DELLINK, 0, &IfInfo::of(index).bytes());
        answer.map(drop).map_err(|failure| failure.of(format!("delete device {name}")))
    }

    /// Gives a device another `txqueuelen`, in packets.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn set_queue_length(&mut self, index: u32, packets: u32) -> Result<(), NetlinkError> {
        self.set_number(index, IFLA_TXQLEN, packets, "txqueuelen")
    }

    /// Gives a device another MTU: the longest IP packet that it takes, in bytes.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn set_mtu(&mut self, index: u32, mtu: u32) -> Result<(), NetlinkError> {
        self.set_number(index, IFLA_MTU, mtu, "mtu")
    }

    fn set_number(
        &mut self,
        index: u32,
        attribute: u16,
        number: u32,
        name: &str,
    ) -> Result<(), NetlinkError> {
        let mut message = Writer::after(IfInfo::of(index).bytes());
        message.u32(attribute, number);
        let answer = self.route.ask(RTM_NEWLINK, 0, &message.finish());
        answer.map(drop).map_err(|failure| {
            failure.of(format!("set {name} of {} to {number}", self.name_of(index)))
        })
    }

    /// Sets a device up.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn set_up(&mut self, index: u32) -> Result<(), NetlinkError> {
        let header = IfInfo { flags: IFF_UP, change: IFF_UP, ..IfInfo::of(index) };
        let answer = self.route.ask(RTM_NEWLINK, 0, &header.bytes());
        answer.map(drop).map_err(|failure| failure.of(format!("set {} up", self.name_of(index))))
    }

    /// Says how many packets TCP may put into one aggregate for a device: `ip link set NAME gso_max_segs SEGS`. What is connected already
    /// does not hear of it.
    ///
    /// # Errors
    /// If there is no such device, or the kernel refuses.
    pub fn set_gso_max_segs(&mut self, index: u32, segs: u32) -> Result<(), NetlinkError> {
        self.set_number(index, IFLA_GSO_MAX_SEGS, segs, "gso_max_segs")
    }
}

fn read(answer: &[u8]) -> impl Iterator<Item = Link> {
    messages(answer)
        .filter(|message| message.kind == RTM_NEWLINK)
        .filter_map(|message| Link::read(message.payload))
}
