//! A packet socket on a router: what arrives there and what leaves, each with its time.

use dualq_namespace::Namespace;
use dualq_socket::{PacketRing, RingPacket};
use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, Protocol, SockFilter, Socket, Type};

use crate::LabError;

/// The socket, which sees the first bytes of each packet.
#[derive(Debug)]
pub(crate) struct Capture {
    ring: PacketRing<Socket>,
}

impl Capture {
    /// Sees the first `snap` bytes of what passes a router and `filter`, if there is one. Of what is not read yet, `packets` packets
    /// are kept.
    pub(crate) fn open(
        router: &Namespace,
        filter: &[SockFilter],
        packets: usize,
        snap: usize,
    ) -> Result<Self, LabError> {
        let open = || -> std::io::Result<PacketRing<Socket>> {
            let all = Protocol::from(i32::from((libc::ETH_P_ALL as u16).to_be()));
            let socket = Socket::new(Domain::PACKET, Type::DGRAM, Some(all))?;
            if !filter.is_empty() {
                socket.attach_filter(filter)?;
            }
            setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
            PacketRing::new(socket, packets, snap)
        };
        let cannot = |error| LabError::system("cannot watch a router's packets", error);
        Ok(Self { ring: router.inside(open)?.map_err(cannot)? })
    }

    /// Tells what was seen since the last call.
    pub(crate) fn read(&mut self, tell: impl FnMut(RingPacket<'_>)) {
        self.ring.read(tell);
    }

    /// Packets that passed unseen, as there was no room for them.
    pub(crate) fn unseen(&mut self) -> Result<u64, LabError> {
        self.ring.unseen().map_err(|error| LabError::system("packets unseen", error))
    }
}
