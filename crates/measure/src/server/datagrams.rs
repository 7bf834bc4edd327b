//! Answers to datagrams: no longer than what they answer, to those who have a session.

use std::net::UdpSocket;
use std::thread;

use super::{PATIENCE, Shared};
use crate::datagrams::{receive, send};
use crate::protocol::{Datagram, Echoed, LONGEST_DATAGRAM};

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
    let mut bytes = [0; LONGEST_DATAGRAM];
    let arrival = receive(socket, &mut bytes)?;
    let Some(from) = arrival.from else { return Ok(()) };
    let question = Datagram::read(&bytes[..arrival.length.min(LONGEST_DATAGRAM)]);
    let Some(question) = question.filter(|read| read.echoed.is_none()) else { return Ok(()) };
    let address = match (from.as_sockaddr_in(), from.as_sockaddr_in6()) {
        (Some(v4), _) => v4.ip().into(),
        (_, Some(v6)) => v6.ip().to_canonical(),
        _ => return Ok(()),
    };
    let session = shared.sessions.find(question.cookie, address);
    let answers = session.and_then(|session| session.datagram(question.number > 0));
    let Some(arrived) = answers else { return Ok(()) };
    let echoed = Some(Echoed { arrived_ecn: arrival.ecn, arrived });
    let mut answer = Datagram { echoed, ..question }.write().to_vec();
    if question.is_echo {
        answer.resize(arrival.length, 0);
    }
    let field = (address.is_ipv6(), question.ecn);
    send(socket, &answer, field, (arrival.here.as_ref(), Some(&from)))
}
