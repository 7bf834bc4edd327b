//! TCP that paces itself, where the interface has no fq.

use std::io;
use std::os::fd::BorrowedFd;

use crate::option;

/// All but what stands for no limit at all, in bytes per second.
const NO_LIMIT: u64 = u32::MAX as u64 - 1;

/// Lets the socket pace what it sends, at no more than a rate of payload and headers if one is given, by a timer of its own: what fq makes of every connection as its first packet comes by, whatever
/// the congestion control (Linux: `fq_enqueue`; `SO_MAX_PACING_RATE` in socket(7)).
///
/// # Errors
/// If it is no socket.
pub fn pace(socket: BorrowedFd<'_>, bytes_per_second: Option<u64>) -> io::Result<()> {
    let rate = bytes_per_second.unwrap_or(NO_LIMIT);
    option::set(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &rate.to_ne_bytes())
}
