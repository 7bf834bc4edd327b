//! Transfers that are made again and again on one connection. When all of one has been acknowledged, the kernel says by a timestamp.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsRawFd as _;
use std::time::Duration;

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, TimestampingFlag, Timestamps, recvmsg, setsockopt, sockopt,
};
use socket2::Socket;

use crate::LabError;

/// Software timestamps of when what was written with one call has been acknowledged, numbered by the place of its last byte, without
/// the data (Documentation/networking/timestamping.rst).
const STAMPS: u32 = libc::SOF_TIMESTAMPING_SOFTWARE
    | libc::SOF_TIMESTAMPING_TX_ACK
    | libc::SOF_TIMESTAMPING_OPT_ID
    | OPT_ID_TCP
    | libc::SOF_TIMESTAMPING_OPT_TSONLY;
/// Counts from what is written next (Linux 6.2).
const OPT_ID_TCP: u32 = 1 << 16;

/// The books of such a connection's transfers. Times count from the start of the experiment.
#[derive(Debug)]
pub(crate) struct Repeats {
    size: u64,
    /// How many bytes all transfers so far have.
    asked: u64,
    /// How many of these are acknowledged.
    acknowledged: u64,
    /// Those that are under way: where they end, and when they were due.
    pending: VecDeque<(u64, Duration)>,
    /// How long the others took.
    took: Vec<Duration>,
}

impl Repeats {
    /// The books of a connection on which nothing was written so far.
    pub(crate) fn open(socket: &Socket, size: u64) -> io::Result<Self> {
        let stamps = TimestampingFlag::from_bits_retain(STAMPS);
        setsockopt(socket, sockopt::Timestamping, &stamps)?;
        Ok(Self { size, asked: 0, acknowledged: 0, pending: VecDeque::new(), took: Vec::new() })
    }

    /// One more is due. Says how many bytes it has.
    pub(crate) fn ask(&mut self, due: Duration) -> u64 {
        self.asked += self.size;
        self.pending.push_back((self.asked, due));
        self.size
    }

    /// Reads what the kernel says of those that are done; `began` is the start on the system's clock.
    pub(crate) fn read(&mut self, socket: &Socket, began: Duration) -> Result<(), LabError> {
        let mut space = cmsg_space!(Timestamps, libc::sock_extended_err, libc::sockaddr_in);
        loop {
            let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
            let message = match recvmsg::<()>(socket.as_raw_fd(), &mut [], Some(&mut space), flags)
            {
                Ok(message) => message,
                Err(Errno::EAGAIN) => return Ok(()),
                Err(error) => return Err(LabError::system("cannot read timestamps", error)),
            };
            let cmsgs = message.cmsgs().map_err(|error| LabError::system("timestamps", error))?;
            let (mut at, mut last_byte) = (None, None);
            for cmsg in cmsgs {
                match cmsg {
                    ControlMessageOwned::ScmTimestampsns(stamps) => {
                        at = Some(Duration::from(stamps.system));
                    }
                    ControlMessageOwned::Ipv4RecvErr(error, _) => last_byte = Some(error.ee_data),
                    _ => {}
                }
            }
            if let Some((at, last_byte)) = at.zip(last_byte) {
                self.acknowledged(last_byte, at.saturating_sub(began));
            }
        }
    }

    /// All is acknowledged up to a byte, of whose place these are the last 32 bits.
    fn acknowledged(&mut self, last_byte: u32, at: Duration) {
        let step = last_byte.wrapping_add(1).wrapping_sub(self.acknowledged as u32).cast_signed();
        self.acknowledged = self.acknowledged.saturating_add_signed(step.max(0).into());
        let reached = self.acknowledged;
        while let Some((_, due)) = self.pending.front().filter(|(end, _)| *end <= reached) {
            self.took.push(at.saturating_sub(*due));
            self.pending.pop_front();
        }
    }

    /// How long the last one took that is done.
    pub(crate) fn last(&self) -> Option<Duration> {
        self.took.last().copied()
    }

    /// All of them with their bytes, and the time that those took which are done.
    pub(crate) fn transfers(&self) -> impl Iterator<Item = (u64, Option<Duration>)> {
        let done = self.took.iter().copied().map(Some);
        done.chain(self.pending.iter().map(|_| None)).map(|took| (self.size, took))
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn places_of_bytes_wrap_around() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is there");
        let stream = TcpStream::connect(listener.local_addr().expect("it is bound"));
        let socket = Socket::from(stream.expect("somebody listens"));
        let mut repeats = Repeats::open(&socket, 3 << 30).expect("such timestamps are there");
        for due in 1..5 {
            assert_eq!(repeats.ask(secs(due)), 3 << 30);
        }
        // The places of bytes wrap around within the second.
        for (gibibytes, done) in
            [(1, 0), (2, 0), (3, 1), (4, 1), (5, 1), (6, 2), (7, 2), (8, 2), (9, 3)]
        {
            repeats.acknowledged(((gibibytes << 30) - 2_u64) as u32, secs(20));
            repeats.acknowledged(((gibibytes << 30) - 1) as u32, secs(10 + gibibytes));
            // An old one once more.
            repeats.acknowledged(((gibibytes << 30) - 2) as u32, secs(21));
            assert_eq!(repeats.took.len(), done, "{gibibytes}");
        }
        let took: Vec<_> = repeats.transfers().map(|(_, took)| took).collect();
        assert_eq!(took, [Some(secs(12)), Some(secs(14)), Some(secs(16)), None]);
    }

    #[test]
    fn the_kernel_tells_what_was_acknowledged() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is there");
        let stream = TcpStream::connect(listener.local_addr().expect("it is bound"));
        let socket = Socket::from(stream.expect("somebody listens"));
        let mut repeats = Repeats::open(&socket, 100).expect("such timestamps are there");
        repeats.ask(Duration::ZERO);
        for part in [60, 40] {
            repeats.read(&socket, Duration::ZERO).expect("there may be none");
            assert_eq!(repeats.last(), None);
            socket.send(&[0; 100][..part]).expect("there is room");
        }
        while repeats.last().is_none() {
            repeats.read(&socket, Duration::ZERO).expect("there may be none");
        }
    }
}
