//! The thread of a direction: it reads, waits and writes.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use dualq_scenario::Direction;
use dualq_units::Instant;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use crate::engine::{Engine, QUANTUM, RouterMessage};
use crate::figures::DirectionSnapshot;
use crate::running::Change;
use crate::tun::Tun;
use crate::urgent::Urgent;
use crate::{ChangeFault, LinkError};

/// So many frames are read before other things have their turn.
const BATCH: usize = 32;

/// So long what may leave waits for what is still to be read.
const GATHER: Duration = Duration::from_micros(20);

/// So many frames between two waits that are no longer than [`SMALL`] are many. What comes then is fetched after [`QUANTUM`], however soon it
/// is there, as network cards moderate their interrupts: to wake for each few small packets costs as much as to move them.
const MANY: usize = 8;
const SMALL: usize = 2048;

/// A device that has something to read for so long without a break is filled faster than its link reads: what waits in it waits for no queue of the
/// path's. A thread that was not run for some milliseconds catches up sooner.
const BEHIND: Duration = Duration::from_millis(10);

/// The time now, by the clock that only goes on (`CLOCK_MONOTONIC`).
pub(crate) fn now() -> Instant {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Instant::from_nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// What a thread is asked for.
pub(crate) enum Message {
    /// An ICMP message of the other direction's routers.
    Icmp(RouterMessage),
    Change(Change, mpsc::Sender<Result<(), LinkError>>),
    /// Whether that change could be made.
    Check(Change, mpsc::Sender<Result<(), LinkError>>),
    Snapshot(mpsc::Sender<DirectionSnapshot>),
    Stop,
}

/// Where a thread finds what it is asked for.
pub(crate) struct Mailbox {
    messages: Mutex<Vec<Message>>,
    is_there: AtomicBool,
    bell: OwnedFd,
}

impl Mailbox {
    pub(crate) fn new() -> io::Result<Arc<Self>> {
        let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        let (messages, is_there) = (Mutex::default(), AtomicBool::new(false));
        Ok(Arc::new(Self { messages, is_there, bell }))
    }

    pub(crate) fn put(&self, message: Message) {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).push(message);
        self.is_there.store(true, Ordering::Release);
        // It fails only where it would count beyond 64 bits.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    /// What has come. A message may be seen before its bell rings, so what `rang` is silenced whether there is a message or not: else it would ring until the
    /// next one, and the thread never wait.
    fn take(&self, rang: bool) -> Vec<Message> {
        if rang {
            let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        }
        if !self.is_there.swap(false, Ordering::Acquire) {
            return Vec::new();
        }
        std::mem::take(&mut *self.messages.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What ended a wait.
#[derive(Clone, Copy)]
struct Heard {
    /// There may be a frame.
    frame: bool,
    bell: bool,
}

/// One direction, at work.
pub(crate) struct Worker {
    pub(crate) direction: Direction,
    pub(crate) engine: Engine,
    pub(crate) from: Arc<Tun>,
    pub(crate) to: Arc<Tun>,
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) other: Arc<Mailbox>,
    /// Packets that were read when the device had not been empty for longer than [`BEHIND`].
    pub(crate) behind: u64,
}

impl Worker {
    /// Works until it is told to stop, or a device fails. Returns how it is then.
    pub(crate) fn run(mut self) -> DirectionSnapshot {
        let _urgent = Urgent::new();
        // Timers are to be as exact as they can; where that is refused they are late by 50 us more.
        let _ = nix::sys::prctl::set_timerslack(1);
        let failed = self.work().err().map(|error| {
            let name = self.from.name();
            format!("TUN device {name}: cannot read: {}", io::Error::from(error))
        });
        DirectionSnapshot { failed, ..self.snapshot() }
    }

    fn work(&mut self) -> Result<(), Errno> {
        let mut bytes = self.engine.buffer();
        let (mut woke, mut heard) = (now(), Heard { frame: true, bell: false });
        // When there was nothing more to read.
        let mut empty = woke;
        let mut small = 0;
        loop {
            let (mut time, mut read) = (now(), 0);
            let came = self.engine.came();
            self.engine.advance(time);
            self.write();
            while heard.frame && read < BATCH && self.from.read(&mut bytes)? {
                read += 1;
                small += usize::from(bytes.len() <= SMALL);
                time = now();
                self.engine.enter(time, &mut bytes);
                // What may leave at once hardly waits for what is read next, and may be written together with it.
                if self.engine.waiting_since().is_some_and(|since| time - since >= GATHER) {
                    self.write();
                }
            }
            self.write();
            if time - empty > BEHIND {
                self.behind += self.engine.came() - came;
            }
            if read < BATCH {
                empty = time;
            }
            for message in self.engine.take_messages() {
                self.other.put(Message::Icmp(message));
            }
            for message in self.mailbox.take(heard.bell) {
                if matches!(message, Message::Stop) {
                    self.engine.advance(now());
                    self.write();
                    return Ok(());
                }
                self.obey(message);
                self.write();
            }
            let due = self.engine.next_wake();
            if read == BATCH || due <= time {
                heard = Heard { frame: true, bell: false };
                continue;
            }
            // A fast link does not wake for each packet.
            let mut until = due.max(woke + QUANTUM);
            let listens = small < MANY;
            if !listens {
                until = until.min(time + QUANTUM);
            }
            heard = self.wait(until, listens)?;
            small = 0;
            let after = now();
            empty = after;
            if after >= until {
                woke = until;
            }
        }
    }

    fn write(&mut self) {
        self.engine.write(now, |pieces| self.to.write(pieces).is_ok());
    }

    /// Waits until a message comes, or a frame if it `listens` for that, or until that time.
    fn wait(&self, until: Instant, listens: bool) -> Result<Heard, Errno> {
        let fds = [self.mailbox.bell.as_fd(), self.from.as_fd()];
        let mut fds = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let listened = if listens { &mut fds[..] } else { &mut fds[..1] };
        let timeout = (until < Instant::NEVER).then(|| {
            let rest = until - now();
            Timespec { tv_sec: rest.as_secs().cast_signed(), tv_nsec: rest.subsec_nanos().into() }
        });
        match poll(listened, timeout.as_ref()) {
            Ok(_) => {
                let [bell, frame] = fds.map(|fd| !fd.revents().is_empty());
                Ok(Heard { frame: !listens || frame, bell })
            }
            Err(Errno::INTR) => Ok(Heard { frame: true, bell: true }),
            Err(error) => Err(error),
        }
    }

    fn obey(&mut self, message: Message) {
        match message {
            Message::Icmp(message) => self.engine.enter_message(now(), &message),
            // Who asked and does not wait for the answer needs none.
            Message::Change(change, answer) => {
                let done = self.engine.change(now(), &change);
                let _ = answer.send(done.map_err(|fault| self.refused(fault)));
            }
            Message::Check(change, answer) => {
                let possible = self.engine.check(&change);
                let _ = answer.send(possible.map_err(|fault| self.refused(fault)));
            }
            Message::Snapshot(answer) => {
                self.engine.advance(now());
                let _ = answer.send(self.snapshot());
            }
            Message::Stop => {}
        }
    }

    const fn refused(&self, fault: ChangeFault) -> LinkError {
        LinkError::Change { direction: self.direction, fault }
    }

    fn snapshot(&self) -> DirectionSnapshot {
        let device_dropped = self.from.dropped().unwrap_or(0);
        DirectionSnapshot { device_dropped, behind: self.behind, ..self.engine.snapshot() }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Whoever waits for the bell wakes for each message, and for nothing once all are taken.
    #[test]
    fn a_bell_rings_no_longer_than_there_are_messages() {
        let mailbox = Mailbox::new().unwrap();
        let rings = || {
            let mut fds = [PollFd::from_borrowed_fd(mailbox.bell.as_fd(), PollFlags::IN)];
            poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() > 0
        };
        for _ in 0..20_000 {
            thread::scope(|scope| {
                let putting = scope.spawn(|| mailbox.put(Message::Stop));
                while mailbox.take(rings()).is_empty() {}
                putting.join().unwrap();
            });
            mailbox.take(rings());
            assert!(!rings());
        }
        mailbox.put(Message::Stop);
        assert!(rings());
    }
}
