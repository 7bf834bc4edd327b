//! What is done with a connection.

use std::io::{self, Read, Write as _};
use std::net::TcpStream;
use std::os::fd::AsRawFd as _;

use nix::sys::socket::{MsgFlags, recv};

use crate::bytes::Letters;
use crate::http;

const BUFFER_BYTES: usize = 128 << 10;

/// What there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Sends back what comes (RFC 862).
    Echo,
    /// Throws away what comes (RFC 863).
    Sink,
    /// Sends all the time (RFC 864).
    Source,
    /// HTTP/1.1 (RFC 9112).
    Http,
}

impl Service {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Echo, Self::Sink, Self::Source, Self::Http];

    /// Its port, as IANA has it.
    #[must_use]
    pub const fn port(self) -> u16 {
        match self {
            Self::Echo => 7,
            Self::Sink => 9,
            Self::Source => 19,
            Self::Http => 80,
        }
    }

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Sink => "sink",
            Self::Source => "source",
            Self::Http => "http",
        }
    }
}

/// Does that with the connection until its client has enough.
///
/// # Errors
/// If the connection breaks.
pub fn serve(service: Service, connection: &TcpStream) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let mut connection = connection;
    match service {
        Service::Echo => {
            let mut bytes = vec![0; BUFFER_BYTES];
            loop {
                match connection.read(&mut bytes)? {
                    0 => return Ok(()),
                    length => connection.write_all(&bytes[..length])?,
                }
            }
        }
        Service::Sink => discard(connection, u64::MAX).map(drop),
        Service::Source => Letters::new().write(&mut connection, 0, u64::MAX),
        Service::Http => http::serve(connection),
    }
}

/// Takes so many bytes and throws them away, without looking at them, and says how many came before the end.
pub(crate) fn discard(connection: &TcpStream, count: u64) -> io::Result<u64> {
    // With MSG_TRUNC the kernel copies nothing (tcp(7)); it only reads how long this is.
    let mut nowhere = vec![0; BUFFER_BYTES];
    let mut taken = 0;
    while taken < count {
        let most =
            usize::try_from(count - taken).map_or(BUFFER_BYTES, |left| left.min(BUFFER_BYTES));
        match recv(connection.as_raw_fd(), &mut nowhere[..most], MsgFlags::MSG_TRUNC) {
            Ok(0) => break,
            Ok(length) => taken += length as u64,
            Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(taken)
}
