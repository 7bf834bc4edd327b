//! Answers to datagrams: as long as what they answer, to those who have a session.

use std::io::IoSliceMut;
use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;
use std::thread;

use nix::cmsg_space;
use nix::sys::socket::{MsgFlags, SockaddrStorage, recvmsg};

use super::{PATIENCE, Shared};
use crate::datagrams::{ecn_of, send};
use crate::protocol::{DATAGRAM_BYTES, Datagram, Echoed};

/// Answers for ever.
pub(super) fn answer(socket: &UdpSocket, shared: &Shared) {
    loop {
        if answer_one(socket, shared).is_err() {
            // An error is of a datagram before, whose sender has gone, or passes.
            thread::sleep(PATIENCE / 20);
        }
    }
}

fn answer_one(socket: &UdpSocket, shared: &Shared) -> nix::Result<()> {
    let mut bytes = [0; DATAGRAM_BYTES + 1];
    let mut space = cmsg_space!(u8, i32);
    let (length, from, ecn) = {
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let message = recvmsg::<SockaddrStorage>(
            socket.as_raw_fd(),
            &mut parts,
            Some(&mut space),
            MsgFlags::empty(),
        )?;
        (message.bytes, message.address, ecn_of(message.cmsgs()?))
    };
    let Some(from) = from else { return Ok(()) };
    let Some(question) = Datagram::read(&bytes[..length]).filter(|read| read.echoed.is_none())
    else {
        return Ok(());
    };
    let address = match (from.as_sockaddr_in(), from.as_sockaddr_in6()) {
        (Some(v4), _) => v4.ip().into(),
        (_, Some(v6)) => v6.ip().to_canonical(),
        _ => return Ok(()),
    };
    let session = shared.sessions.find(question.cookie, address);
    let Some(arrived) = session.and_then(|session| session.datagram()) else { return Ok(()) };
    let answer = Datagram { echoed: Some(Echoed { arrived_ecn: ecn, arrived }), ..question };
    let is_v6 = address.is_ipv6();
    send(socket, &answer.write(), (is_v6, question.ecn), Some(&from))
}
