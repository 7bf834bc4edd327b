//! TCP that paces itself, where the interface has no fq.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// All but what stands for no limit at all, in bytes per second.
const NO_LIMIT: u64 = u32::MAX as u64 - 1;

/// Lets the socket pace what it sends, at no more than a rate of payload and headers if one is given, by a timer of its own: what fq makes of every connection as its first packet comes by, whatever
/// the congestion control (Linux: `fq_enqueue`; `SO_MAX_PACING_RATE` in socket(7)).
///
/// # Errors
/// If it is no socket.
#[allow(unsafe_code)]
pub fn pace(socket: BorrowedFd<'_>, bytes_per_second: Option<u64>) -> io::Result<()> {
    let rate = bytes_per_second.unwrap_or(NO_LIMIT);
    // SAFETY: the kernel reads the bytes of `rate`, which is there and as long as it is told. No library has this option.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            (&raw const rate).cast(),
            size_of_val(&rate) as libc::socklen_t,
        )
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
