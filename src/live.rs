//! Reading what has no end of its own: `tcpdump -w - | dualq replay -`.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::interrupt;

/// An interrupt from the keyboard reaches the writer as well, which then hands over what it still holds and ends. One that
/// does not end is read for so long.
const GRACE: Duration = Duration::from_secs(1);

/// A pipe or device that is read until it ends or somebody presses Ctrl-C.
pub(crate) struct Live {
    input: File,
    /// The other end is closed by an interrupt.
    stop: OwnedFd,
    interrupted: Arc<AtomicBool>,
    /// When the reading ends at the latest.
    deadline: Option<Instant>,
}

impl Live {
    /// Also what tells whether an interrupt has ended the reading.
    pub(crate) fn new(input: File) -> io::Result<(Self, Arc<AtomicBool>)> {
        let (stop, closed_by_interrupt) = rustix::pipe::pipe()?;
        let interrupted = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&interrupted);
        interrupt::stops_reading_by_closing(closed_by_interrupt);
        Ok((Self { input, stop, interrupted, deadline: None }, told))
    }
}

impl Read for Live {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut descriptors =
                [PollFd::new(&self.input, PollFlags::IN), PollFd::new(&self.stop, PollFlags::IN)];
            let polled = match self.deadline {
                None => poll(&mut descriptors, None),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    let left = Timespec { tv_sec: 0, tv_nsec: left.subsec_nanos().into() };
                    // The pipe to stop by has been closed, and would answer at once.
                    poll(&mut descriptors[..1], Some(&left))
                }
            };
            match polled {
                Err(rustix::io::Errno::INTR) => continue,
                other => other?,
            };
            let [input, stop] = descriptors.map(|descriptor| !descriptor.revents().is_empty());
            if self.deadline.is_none() && stop {
                self.interrupted.store(true, Ordering::Relaxed);
                self.deadline = Some(Instant::now() + GRACE);
                continue;
            }
            let is_over = self.deadline.is_some_and(|deadline| deadline <= Instant::now());
            if is_over {
                return Ok(0);
            }
            if input {
                return self.input.read(buffer);
            }
        }
    }
}
