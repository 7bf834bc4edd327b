//! A netlink socket: one question at a time, and its answer.

use std::io;

use netlink_packet_core::{
    Emitable, NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkBuffer, NetlinkHeader,
};
use netlink_sys::{Socket, SocketAddr};

use crate::attributes::{Attributes, u32_at};

/// The bytes before each payload.
const NETLINK_HEADER_LEN: usize = 16;

const NLMSG_NOOP: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLMSG_OVERRUN: u16 = 4;

/// Something changed between two parts of the answer.
const NLM_F_DUMP_INTR: u16 = 0x10;
/// An error carries the header of the question, not all of it.
const NLM_F_CAPPED: u16 = 0x100;
/// An error has attributes behind it.
const NLM_F_ACK_TLVS: u16 = 0x200;

/// The attribute of an error in which the kernel says why.
const NLMSGERR_ATTR_MSG: u16 = 1;

/// How often an answer is asked for anew when something changed meanwhile.
const ATTEMPTS: u32 = 16;

pub(crate) struct Channel {
    socket: Socket,
    sequence: u32,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    Socket(io::Error),
    Refused { errno: i32, message: Option<String> },
    Malformed,
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Socket(error)
    }
}

/// One message of an answer.
#[derive(Clone, Copy)]
pub(crate) struct Message<'a> {
    pub(crate) kind: u16,
    flags: u16,
    sequence: u32,
    pub(crate) payload: &'a [u8],
    whole: &'a [u8],
}

/// The messages in `bytes`, up to the first that is cut short.
pub(crate) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let (header, length) = {
            let buffer = NetlinkBuffer::new_checked(bytes).ok()?;
            let header = (buffer.message_type(), buffer.flags(), buffer.sequence_number());
            (header, usize::try_from(buffer.length()).ok()?)
        };
        let whole = bytes.get(..length)?;
        let payload = whole.get(NETLINK_HEADER_LEN..)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        let (kind, flags, sequence) = header;
        Some(Message { kind, flags, sequence, payload, whole })
    })
}

impl Channel {
    pub(crate) fn open(protocol: isize) -> io::Result<Self> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        // Both came with Linux 4.12; without them errors have no words.
        let _ = socket.set_ext_ack(true);
        let _ = socket.set_cap_ack(true);
        Ok(Self { socket, sequence: 0 })
    }

    /// Asks for one thing. The answer's messages follow one another, as [`messages`] reads them; most have none.
    pub(crate) fn ask(
        &mut self,
        kind: u16,
        flags: u16,
        payload: &[u8],
    ) -> Result<Vec<u8>, Failure> {
        let (answer, _) = self.exchange(kind, flags | NLM_F_ACK, payload)?;
        Ok(answer)
    }

    /// Asks for all things of a sort.
    pub(crate) fn dump(&mut self, kind: u16, payload: &[u8]) -> Result<Vec<u8>, Failure> {
        for _ in 0..ATTEMPTS {
            let (answer, interrupted) = self.exchange(kind, NLM_F_DUMP, payload)?;
            if !interrupted {
                return Ok(answer);
            }
        }
        Err(Failure::Socket(io::Error::other("it changes faster than it can be read")))
    }

    fn exchange(
        &mut self,
        kind: u16,
        flags: u16,
        payload: &[u8],
    ) -> Result<(Vec<u8>, bool), Failure> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.length = u32::try_from(NETLINK_HEADER_LEN + payload.len()).unwrap_or(u32::MAX);
        header.message_type = kind;
        header.flags = flags | NLM_F_REQUEST;
        header.sequence_number = self.sequence;
        let mut question = vec![0; NETLINK_HEADER_LEN];
        header.emit(&mut question);
        question.extend_from_slice(payload);
        self.socket.send(&question, 0)?;

        let (mut answer, mut interrupted) = (Vec::new(), false);
        loop {
            let datagram = match self.socket.recv_from_full() {
                Ok((datagram, _)) => datagram,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            // What is left of an answer that was given up is not this one's.
            let sequence = self.sequence;
            for message in messages(&datagram).filter(|message| message.sequence == sequence) {
                interrupted |= message.flags & NLM_F_DUMP_INTR != 0;
                match message.kind {
                    NLMSG_NOOP => {}
                    NLMSG_ERROR | NLMSG_DONE => {
                        return verdict(&message).map(|()| (answer, interrupted));
                    }
                    NLMSG_OVERRUN => return Err(Failure::Malformed),
                    _ => {
                        answer.extend_from_slice(message.whole);
                        answer.resize(answer.len().next_multiple_of(4), 0);
                    }
                }
            }
        }
    }
}

/// What the last message of an answer says about all of it.
fn verdict(message: &Message<'_>) -> Result<(), Failure> {
    let code = match u32_at(message.payload, 0) {
        Some(code) => code.cast_signed(),
        None if message.kind == NLMSG_DONE => 0,
        None => return Err(Failure::Malformed),
    };
    if code >= 0 {
        return Ok(());
    }
    let attributes_at = match message.kind {
        NLMSG_DONE => 4,
        _ if message.flags & NLM_F_CAPPED != 0 => 4 + NETLINK_HEADER_LEN,
        _ => 4 + u32_at(message.payload, 4).unwrap_or(0).next_multiple_of(4) as usize,
    };
    let attributes = message.payload.get(attributes_at..).unwrap_or_default();
    let has_words = message.flags & NLM_F_ACK_TLVS != 0;
    let message = has_words.then(|| Attributes::read(attributes).string(NLMSGERR_ATTR_MSG));
    Err(Failure::Refused {
        errno: code.saturating_neg(),
        message: message.flatten().map(|words| words.trim_end_matches('.').to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, flags: u16, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(NETLINK_HEADER_LEN + payload.len()).unwrap();
        let mut bytes = length.to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend([0; 8]);
        bytes.extend(payload);
        bytes
    }

    fn words(kind: u16, flags: u16, payload: &[u8]) -> Option<String> {
        let bytes = message(kind, flags | NLM_F_ACK_TLVS, payload);
        match verdict(&messages(&bytes).next().unwrap()) {
            Err(Failure::Refused { errno: 22, message }) => message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_kernels_words_are_found_behind_the_question() {
        let attribute = [7, 0, 1, 0, b'n', b'o', 0, 0];
        let code = (-22_i32).to_ne_bytes();
        let capped = [&code[..], &message(36, 5, &[])[..], &attribute].concat();
        assert_eq!(words(NLMSG_ERROR, NLM_F_CAPPED, &capped).as_deref(), Some("no"));
        let whole = [&code[..], &message(36, 5, &[1; 20])[..], &attribute].concat();
        assert_eq!(words(NLMSG_ERROR, 0, &whole).as_deref(), Some("no"));
        let done = [&code[..], &attribute].concat();
        assert_eq!(words(NLMSG_DONE, 0, &done).as_deref(), Some("no"));
        assert_eq!(words(NLMSG_ERROR, NLM_F_CAPPED, &code), None);
    }

    #[test]
    fn an_answer_ends_where_it_is_cut_short() {
        let mut bytes = message(16, 0, &[1, 2, 3]);
        bytes.push(0);
        bytes.extend(message(17, 0, &[]));
        bytes.extend(&message(18, 0, &[9; 8])[..20]);
        let kinds: Vec<_> = messages(&bytes).map(|message| message.kind).collect();
        assert_eq!(kinds, [16, 17]);
    }
}
