//! The SYN that a connection began with, as it arrived: for servers, and without privileges (Linux: `TCP_SAVE_SYN`).

use std::io;
use std::os::fd::BorrowedFd;

use crate::option;

/// The longest headers of IPv4 or IPv6, some extension headers, and TCP's.
const LONGEST: usize = 256;

/// Has the kernel keep the SYN of each connection that comes to a listening socket.
///
/// # Errors
/// If it is no TCP socket.
pub fn save_syns(listener: BorrowedFd<'_>) -> io::Result<()> {
    option::set(listener, libc::IPPROTO_TCP, libc::TCP_SAVE_SYN, &1_i32.to_ne_bytes())
}

/// The headers of IP and TCP of the SYN that an accepted connection began with; none where none was kept. It is told once.
///
/// # Errors
/// If it is no TCP socket.
pub fn saved_syn(accepted: BorrowedFd<'_>) -> io::Result<Vec<u8>> {
    let mut bytes = [0; LONGEST];
    let length = option::read(accepted, libc::IPPROTO_TCP, libc::TCP_SAVED_SYN, &mut bytes)?;
    Ok(bytes[..length].to_vec())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn a_syn_is_kept_once_and_only_where_that_was_asked_for() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let accept = || {
            let client = TcpStream::connect(address).unwrap();
            (listener.accept().unwrap().0, client)
        };
        let (before, _client) = accept();
        assert_eq!(saved_syn(before.as_fd()).unwrap(), [0; 0]);
        save_syns(listener.as_fd()).unwrap();
        let (accepted, client) = accept();
        let syn = saved_syn(accepted.as_fd()).unwrap();
        let port = client.local_addr().unwrap().port();
        // Version 4, 20 bytes of header; behind it the source port, and SYN without ACK.
        assert_eq!((syn[0], &syn[20..22], syn[33] & 0x12), (0x45, &port.to_be_bytes()[..], 2));
        assert_eq!(saved_syn(accepted.as_fd()).unwrap(), [0; 0]);
    }
}
