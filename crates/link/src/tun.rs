//! TUN devices.

use std::fs::OpenOptions;
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::{Mutex, PoisonError};

use dualq_netlink::{Handle, Netlink, Place};
use dualq_qdisc::grammar;
use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::ioctl::{self, IntegerSetter, Setter};

use crate::LinkError;

const TUN: &str = "/dev/net/tun";
const NAME_BYTES: usize = 16;

const TUNSETIFF: ioctl::Opcode = ioctl::opcode::write::<i32>(b'T', 202);
const TUNSETOFFLOAD: ioctl::Opcode = ioctl::opcode::write::<u32>(b'T', 208);

const IFF_TUN: u16 = 0x0001;
const IFF_NO_PI: u16 = 0x1000;
const IFF_VNET_HDR: u16 = 0x4000;

/// What the device may leave to whoever reads from it: checksums, and cutting of TCP, with CWR too.
const OFFLOADS: usize = 0x01 | 0x02 | 0x04 | 0x08;
/// And of UDP (Linux 6.2).
const UDP_OFFLOADS: usize = 0x20 | 0x40;

/// `txqueuelen`: what the device keeps for a link that is busy. Linux's default of 500 packets loses some at a few Gbit/s.
const QUEUE_PACKETS: u32 = 10_000;

/// The front of `struct ifreq` (netdevice(7)), as long as that is.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; NAME_BYTES],
    flags: u16,
    rest: [u8; 22],
}

/// What a [`Tun`] is to be like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunOptions {
    /// Its name.
    pub name: String,
    /// The longest IP packet that it takes, in bytes.
    pub mtu: u32,
    /// Its addresses, and how many bits of each are common to its network.
    pub addresses: Vec<(IpAddr, u8)>,
}

/// A TUN device of this process, up, through which whole aggregates come and go. It is gone once this is dropped, however the process ends.
#[derive(Debug)]
pub struct Tun {
    fd: OwnedFd,
    name: String,
    index: u32,
    takes_datagrams: bool,
    /// A conversation about the namespace in which the device is.
    netlink: Mutex<Conversation>,
}

struct Conversation(Netlink);

impl std::fmt::Debug for Conversation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Netlink")
    }
}

impl Tun {
    /// Makes a device in the network namespace in which the calling thread is. It stays there, whichever thread uses it then.
    ///
    /// # Errors
    /// If there is no TUN, or no permission, or if the kernel refuses something.
    pub fn open(options: &TunOptions) -> Result<Self, LinkError> {
        let name = &options.name;
        let is_name = !name.is_empty()
            && name.len() < NAME_BYTES
            && !matches!(name.as_str(), "." | "..")
            && name
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'/' | b':' | b'%'));
        if !is_name {
            return Err(LinkError::Name(name.clone()));
        }
        let node = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
            .open(TUN);
        let fd = OwnedFd::from(node.map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => LinkError::MayNotOpen(error),
            // ENODEV and ENXIO: the node is there, and nothing behind it.
            _ if matches!(error.raw_os_error(), Some(2 | 6 | 19)) => LinkError::NoTun,
            io::ErrorKind::IsADirectory => LinkError::NotTun(error),
            _ => LinkError::System { what: "open /dev/net/tun", error },
        })?);
        attach(&fd, name)?;
        let takes_datagrams = offload(&fd, OFFLOADS | UDP_OFFLOADS).is_ok();
        if !takes_datagrams {
            offload(&fd, OFFLOADS).map_err(|error| LinkError::Device {
                name: name.clone(),
                what: "switch its offloads on",
                error: error.into(),
            })?;
        }
        let mut netlink = Netlink::open()?;
        let index = netlink.link(name)?.index;
        netlink.set_mtu(index, options.mtu)?;
        netlink.set_queue_length(index, QUEUE_PACKETS)?;
        // Else an AQM of the kernel's stands before the one that is asked for.
        let place = Place { link: index, parent: Handle::ROOT, handle: Handle::qdisc(1) };
        let fifo = grammar::parse(&format!("pfifo limit {QUEUE_PACKETS}"));
        netlink.add_qdisc(&place, &fifo.expect("a qdisc").spec)?;
        for (address, prefix) in &options.addresses {
            netlink.add_address(index, *address, *prefix)?;
        }
        netlink.set_up(index)?;
        let netlink = Mutex::new(Conversation(netlink));
        Ok(Self { fd, name: name.clone(), index, takes_datagrams, netlink })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its number in its network namespace.
    #[must_use]
    pub const fn index(&self) -> u32 {
        self.index
    }

    /// Whether it takes aggregates of datagrams.
    pub(crate) const fn takes_datagrams(&self) -> bool {
        self.takes_datagrams
    }

    /// Packets that it dropped because the link did not read them in time.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn dropped(&self) -> Result<u64, LinkError> {
        let mut netlink = self.netlink.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(netlink.0.traffic(self.index)?.send_dropped)
    }

    /// Reads a frame into `bytes`, which is empty and has room; says whether there was one.
    pub(crate) fn read(&self, bytes: &mut Vec<u8>) -> Result<bool, Errno> {
        match rustix::io::read(&self.fd, spare_capacity(bytes)) {
            Ok(read) => Ok(read > 0),
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Writes a frame that is in two pieces.
    pub(crate) fn write(&self, pieces: [&[u8]; 2]) -> Result<(), Errno> {
        let [head, rest] = pieces;
        if rest.is_empty() {
            rustix::io::write(&self.fd, head)?;
        } else {
            rustix::io::writev(&self.fd, &[IoSlice::new(head), IoSlice::new(rest)])?;
        }
        Ok(())
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Makes the device that `fd` is to be.
#[allow(unsafe_code)]
fn attach(fd: &OwnedFd, name: &str) -> Result<(), LinkError> {
    let mut request = InterfaceRequest {
        name: [0; NAME_BYTES],
        flags: IFF_TUN | IFF_NO_PI | IFF_VNET_HDR,
        rest: [0; 22],
    };
    request.name[..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: TUNSETIFF reads a `struct ifreq`, which this is as long as and laid out like, whatever its number says of an int.
    let done = unsafe {
        let request = Setter::<TUNSETIFF, InterfaceRequest>::new(request);
        ioctl::ioctl(fd, request)
    };
    done.map_err(|error| match error {
        Errno::PERM | Errno::ACCESS => LinkError::MayNotMake(error.into()),
        // What it was asked for, only TUN knows.
        Errno::NOTTY => LinkError::NotTun(error.into()),
        _ => LinkError::Device { name: name.to_owned(), what: "make it", error: error.into() },
    })
}

/// Says what the device may leave to its reader.
#[allow(unsafe_code)]
fn offload(fd: &OwnedFd, offloads: usize) -> Result<(), Errno> {
    // SAFETY: TUNSETOFFLOAD takes a number, and touches no memory.
    unsafe { ioctl::ioctl(fd, IntegerSetter::<TUNSETOFFLOAD>::new_usize(offloads)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_tun_is_said_to_be_none() {
        let null = OpenOptions::new().read(true).write(true).open("/dev/null").unwrap();
        let error = attach(&null.into(), "any").unwrap_err();
        assert!(matches!(error, LinkError::NotTun(_)), "{error:?}");
        assert!(error.to_string().contains("not the kernel's TUN"), "{error}");
    }
}
