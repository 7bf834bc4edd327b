//! Options of sockets that no library has, read and set.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Reads one of that level as far as there is room for it, and says how long it is.
#[allow(unsafe_code)]
pub(crate) fn read(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    bytes: &mut [u8],
) -> io::Result<usize> {
    let mut length = bytes.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `bytes`, which are there and ours, and the length to `length`. No
    // library reads options whose length is the kernel's to say.
    let status = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            option,
            bytes.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if status == 0 {
        Ok((length as usize).min(bytes.len()))
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Sets one of that level (`SOL_SOCKET`, `SOL_PACKET`, `IPPROTO_TCP`).
#[allow(unsafe_code)]
pub(crate) fn set(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    value: &[u8],
) -> io::Result<()> {
    // SAFETY: the kernel reads the bytes of `value`, which is there and as long as it is told. No library has these options.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            value.as_ptr().cast(),
            value.len() as libc::socklen_t,
        )
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
