//! Packets that a packet socket sees, through memory that it shares with the kernel (packet(7), `PACKET_RX_RING`).

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::option;

/// The kernel's `TPACKET_V2`, and the multiple that its headers' lengths are of.
const VERSION: libc::c_int = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
const ALIGNMENT: usize = 16;
/// Before the IP header: the frame's own header, the address, and the 16 bytes that stand for a link's header.
const ADDRESS_AT: usize = size_of::<libc::tpacket2_hdr>().next_multiple_of(ALIGNMENT);
const BYTES_AT: usize =
    (ADDRESS_AT + size_of::<libc::sockaddr_ll>()).next_multiple_of(ALIGNMENT) + ALIGNMENT;
/// `sll_pkttype` in the address, behind family, protocol, interface and the kind of hardware.
const KIND_AT: usize = 10;
/// Memory is had in blocks of so many bytes.
const BLOCK_BYTES: usize = 1 << 16;

/// A packet, as far as it was wanted.
#[derive(Clone, Copy, Debug)]
pub struct RingPacket<'a> {
    /// When it passed, on the system's clock.
    pub at: Duration,
    /// Whether it leaves this host; else it arrives.
    pub leaves: bool,
    /// From the network layer's header on.
    pub bytes: &'a [u8],
}

/// The packets of a packet socket (`SOCK_DGRAM`). The kernel copies them as they pass and keeps nothing of them: a socket without
/// such a ring holds a clone of each until it is read, and what is cloned cannot be joined to its neighbours at a receiver (Linux:
/// `skb_try_coalesce`), so that who looks changes what is seen.
#[derive(Debug)]
pub struct PacketRing<S> {
    socket: S,
    memory: NonNull<u8>,
    length: usize,
    frame_bytes: usize,
    frames: usize,
    next: usize,
    unseen: u64,
}

// SAFETY: the memory belongs to the ring alone, and whoever has the ring reads it.
#[allow(unsafe_code)]
unsafe impl<S: Send> Send for PacketRing<S> {}

impl<S: AsFd> PacketRing<S> {
    /// A ring for `socket` that keeps at least `packets` packets until they are read, the first `snap` bytes of each.
    ///
    /// # Errors
    /// If it is no packet socket, has a ring already, or there is no memory.
    #[allow(unsafe_code)]
    pub fn new(socket: S, packets: usize, snap: usize) -> io::Result<Self> {
        let frame_bytes = (BYTES_AT + snap).next_multiple_of(ALIGNMENT);
        let in_block = BLOCK_BYTES / frame_bytes;
        let blocks = packets.div_ceil(in_block.max(1)).max(1);
        let length = blocks * BLOCK_BYTES;
        // `struct tpacket_req`: the blocks' length and number, the frames' length and number.
        let numbers = [BLOCK_BYTES, blocks, frame_bytes, blocks * in_block];
        let mut request = [0; 16];
        for (bytes, number) in request.chunks_exact_mut(4).zip(numbers) {
            let number = u32::try_from(number).map_err(|_| io::ErrorKind::InvalidInput)?;
            bytes.copy_from_slice(&number.to_ne_bytes());
        }
        option::set(
            socket.as_fd(),
            libc::SOL_PACKET,
            libc::PACKET_VERSION,
            &VERSION.to_ne_bytes(),
        )?;
        option::set(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let fd = socket.as_fd().as_raw_fd();
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a mapping of its own at an address that the kernel chooses.
        let memory =
            unsafe { libc::mmap(std::ptr::null_mut(), length, access, libc::MAP_SHARED, fd, 0) };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let frames = blocks * in_block;
        Ok(Self { socket, memory, length, frame_bytes, frames, next: 0, unseen: 0 })
    }

    /// Tells what was seen since the last call, in order, and makes room for others.
    #[allow(unsafe_code)]
    pub fn read(&mut self, mut tell: impl FnMut(RingPacket<'_>)) {
        let in_block = BLOCK_BYTES / self.frame_bytes;
        // No more than there were at the start: it ends, whatever comes in meanwhile.
        for _ in 0..self.frames {
            let (block, place) = (self.next / in_block, self.next % in_block);
            let offset = block * BLOCK_BYTES + place * self.frame_bytes;
            // SAFETY: frames lie in the mapping, blocks and frames are aligned for their header, and the status is the only part
            // that both sides touch at a time: the kernel leaves a frame alone until it is given back (packet_mmap.rst).
            let (status, header, behind) = unsafe {
                let frame = self.memory.add(offset);
                let status = AtomicU32::from_ptr(frame.cast().as_ptr());
                if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                    return;
                }
                let header = frame.cast::<libc::tpacket2_hdr>().read();
                let behind = self.frame_bytes - ADDRESS_AT;
                (status, header, std::slice::from_raw_parts(frame.add(ADDRESS_AT).as_ptr(), behind))
            };
            let from = usize::from(header.tp_net).saturating_sub(ADDRESS_AT);
            let bytes = behind.get(from..from + header.tp_snaplen as usize).unwrap_or_default();
            let leaves = behind.get(KIND_AT) == Some(&libc::PACKET_OUTGOING);
            tell(RingPacket {
                at: Duration::new(header.tp_sec.into(), header.tp_nsec),
                leaves,
                bytes,
            });
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = (self.next + 1) % self.frames;
        }
    }

    /// Packets that passed while the ring was full, so far.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn unseen(&mut self) -> io::Result<u64> {
        // Packets and drops since the last call.
        let mut counts = [0; 8];
        option::read(self.socket.as_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut counts)?;
        let [.., a, b, c, d] = counts;
        self.unseen += u64::from(u32::from_ne_bytes([a, b, c, d]));
        Ok(self.unseen)
    }
}

impl<S> Drop for PacketRing<S> {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: it is the mapping of `new`, and nobody has a reference into it.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.length) };
    }
}
