//! A packet socket on a router: what arrives there and what leaves, each with its time.

use std::io::IoSliceMut;
use std::os::fd::AsRawFd as _;
use std::time::Duration;

use dualq_namespace::Namespace;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessageOwned, LinkAddr, MsgFlags, MultiHeaders, recvmmsg, setsockopt, sockopt,
};
use nix::sys::time::TimeSpec;
use socket2::{Domain, Protocol, SockFilter, Socket, Type};

use crate::LabError;

/// So many are read with one system call.
const BATCH: usize = 64;

/// A packet, as far as it was wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Captured<'a> {
    /// When it passed, on the system's clock.
    pub(crate) at: Duration,
    /// Whether it leaves the router; else it arrives.
    pub(crate) leaves: bool,
    /// From the IP header on.
    pub(crate) bytes: &'a [u8],
}

/// The socket, which sees the first `SNAP` bytes of each packet.
#[derive(Debug)]
pub(crate) struct Capture<const SNAP: usize> {
    socket: Socket,
    /// Packets that passed while the buffer was full, up to the last that was read.
    pub(crate) unseen: u32,
}

impl<const SNAP: usize> Capture<SNAP> {
    /// Sees what passes a router and `filter`, if there is one. Of what is not read yet, `buffer` bytes are kept; aggregates
    /// count with their full size.
    pub(crate) fn open(
        router: &Namespace,
        filter: &[SockFilter],
        buffer: usize,
    ) -> Result<Self, LabError> {
        let open = || -> std::io::Result<Socket> {
            let all = Protocol::from(i32::from((libc::ETH_P_ALL as u16).to_be()));
            let socket = Socket::new(Domain::PACKET, Type::DGRAM, Some(all))?;
            if !filter.is_empty() {
                socket.attach_filter(filter)?;
            }
            socket.set_nonblocking(true)?;
            setsockopt(&socket, sockopt::RcvBufForce, &buffer)?;
            setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
            setsockopt(&socket, sockopt::RxqOvfl, &1)?;
            Ok(socket)
        };
        let cannot = |error| LabError::system("cannot watch a router's packets", error);
        Ok(Self { socket: router.inside(open)?.map_err(cannot)?, unseen: 0 })
    }

    /// Tells what was seen since the last call.
    pub(crate) fn read(&mut self, tell: &mut impl FnMut(Captured<'_>)) -> Result<(), LabError> {
        loop {
            let mut bytes = [[0; SNAP]; BATCH];
            let mut parts: Vec<_> = bytes.iter_mut().map(|one| [IoSliceMut::new(one)]).collect();
            let mut headers = MultiHeaders::preallocate(BATCH, Some(cmsg_space!(TimeSpec, u32)));
            let fd = self.socket.as_raw_fd();
            let dont_wait = MsgFlags::MSG_DONTWAIT;
            let messages =
                match recvmmsg::<_, LinkAddr, _>(fd, &mut headers, &mut parts, dont_wait, None) {
                    Ok(messages) => messages,
                    Err(Errno::EAGAIN) => return Ok(()),
                    Err(error) => return Err(LabError::system("cannot read packets", error)),
                };
            let mut read = 0;
            for message in messages {
                read += 1;
                let leaves =
                    message.address.is_some_and(|from| from.pkttype() == libc::PACKET_OUTGOING);
                let cmsgs =
                    message.cmsgs().map_err(|error| LabError::system("timestamps", error))?;
                let mut stamp = None;
                for cmsg in cmsgs {
                    match cmsg {
                        ControlMessageOwned::ScmTimestampns(time) => {
                            stamp = Some(Duration::from(time));
                        }
                        ControlMessageOwned::RxqOvfl(unseen) => self.unseen = unseen,
                        _ => {}
                    }
                }
                if let Some((at, bytes)) = stamp.zip(message.iovs().next()) {
                    tell(Captured { at, leaves, bytes });
                }
            }
            if read < BATCH {
                return Ok(());
            }
        }
    }
}
