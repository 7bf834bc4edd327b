//! What the kernel tells without being asked: `ip monitor route`, `tc monitor`.

use std::io;
use std::time::Duration;

use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_ROUTE;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::NetlinkError;

/// `RTNLGRP_TC`, `RTNLGRP_IPV4_ROUTE` and `RTNLGRP_IPV6_ROUTE`.
const GROUPS: [u32; 3] = [4, 7, 11];
/// The message itself is of no interest.
const FIRST_BYTES: usize = 16;

/// Hears of routes of both families, queue disciplines and their classes that come and go.
pub struct Monitor {
    socket: Socket,
}

impl Monitor {
    /// Begins to listen in the network namespace in which the calling thread is now.
    ///
    /// # Errors
    /// If the kernel gives no socket.
    pub fn open() -> Result<Self, NetlinkError> {
        let open = || -> io::Result<Socket> {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            socket.bind_auto()?;
            socket.set_non_blocking(true)?;
            GROUPS.into_iter().try_for_each(|group| socket.add_membership(group))?;
            Ok(socket)
        };
        open().map(|socket| Self { socket }).map_err(NetlinkError::Open)
    }

    /// Waits until something of it has come or gone since the last call, for `at_most` that long; whether it did. Of IPv4 the kernel does not tell
    /// which routes went with an interface that was set down: who wants these back hears of what comes when it is up again.
    ///
    /// # Errors
    /// If the socket fails.
    pub fn wait(&self, at_most: Duration) -> Result<bool, NetlinkError> {
        let failed = |source| NetlinkError::Socket {
            what: "listen to changes of routes and queues".to_owned(),
            source,
        };
        let limit = Timespec::try_from(at_most).ok();
        let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
        match poll(&mut fds, limit.as_ref()) {
            Ok(0) | Err(Errno::INTR) => return Ok(false),
            Ok(_) => {}
            Err(error) => return Err(failed(error.into())),
        }
        loop {
            let mut first = Vec::with_capacity(FIRST_BYTES);
            match self.socket.recv(&mut first, 0) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // There were more than the socket holds.
                Err(error) if error.raw_os_error() == Some(Errno::NOBUFS.raw_os_error()) => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }
}
