//! What is done for one direction whenever there may be something to do: reading, advancing, writing. Which thread does it, `threads.rs` says.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use dualq_scenario::Direction;
use dualq_units::Instant;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use crate::engine::{Engine, QUANTUM};
use crate::figures::DirectionSnapshot;
use crate::running::Change;
use crate::tun::Tun;
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

/// What is asked for.
pub(crate) enum Message {
    /// An ICMP message of the other direction's routers.
    Icmp(Vec<u8>),
    Change(Change, mpsc::Sender<Result<(), LinkError>>),
    /// Whether that change could be made.
    Check(Change, mpsc::Sender<Result<(), LinkError>>),
    Snapshot(mpsc::Sender<DirectionSnapshot>),
    /// Nothing: it only wakes the thread.
    Wake,
    Stop,
}

/// Where a direction finds what it is asked for.
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

    fn take(&self) -> Vec<Message> {
        if !self.is_there.swap(false, Ordering::Acquire) {
            return Vec::new();
        }
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        std::mem::take(&mut *self.messages.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What a direction waits for once all has been done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    /// A message, or this time.
    pub(crate) until: Instant,
    /// Or a frame.
    pub(crate) listens: bool,
}

/// How a direction was left.
pub(crate) enum Turn {
    /// There is more to do at once.
    More,
    /// There is nothing to do until then.
    Waits(Wait),
    /// It was told to stop.
    Stopped,
}

/// One direction, at work.
pub(crate) struct Worker {
    direction: Direction,
    engine: Engine,
    from: Arc<Tun>,
    to: Arc<Tun>,
    mailbox: Arc<Mailbox>,
    other: Arc<Mailbox>,
    /// Where frames are read to.
    bytes: Vec<u8>,
    /// There may be a frame to read.
    may_read: bool,
    /// Something was written since [`has_written`](Self::has_written) was asked.
    wrote: bool,
    /// When it last woke for something that was due.
    woke: Instant,
    /// When there was nothing more to read.
    empty: Instant,
    /// Frames no longer than [`SMALL`] since it last waited.
    small: usize,
    /// Packets that were read when the device had not been empty for longer than [`BEHIND`].
    behind: u64,
}

impl Worker {
    /// `engine`, which takes what comes from one device to another. Messages of its routers go to the mailbox of the `other` direction.
    pub(crate) fn new(
        direction: Direction,
        engine: Engine,
        [from, to]: [Arc<Tun>; 2],
        [mailbox, other]: [Arc<Mailbox>; 2],
    ) -> Self {
        let (bytes, now) = (engine.buffer(), now());
        Self {
            direction,
            engine,
            from,
            to,
            mailbox,
            other,
            bytes,
            may_read: true,
            wrote: false,
            woke: now,
            empty: now,
            small: 0,
            behind: 0,
        }
    }

    pub(crate) const fn direction(&self) -> Direction {
        self.direction
    }

    pub(crate) fn mailbox(&self) -> Arc<Mailbox> {
        Arc::clone(&self.mailbox)
    }

    /// What to wait for: messages, and frames.
    pub(crate) fn fds(&self) -> [BorrowedFd<'_>; 2] {
        [self.mailbox.bell.as_fd(), self.from.as_fd()]
    }

    /// Does what there is to do, some of it if there is much.
    ///
    /// # Errors
    /// If the device cannot be read.
    pub(crate) fn turn(&mut self) -> Result<Turn, Errno> {
        let (mut time, mut read) = (now(), 0);
        let came = self.engine.came();
        self.engine.advance(time);
        self.write();
        while self.may_read && read < BATCH && self.from.read(&mut self.bytes)? {
            read += 1;
            self.small += usize::from(self.bytes.len() <= SMALL);
            time = now();
            self.engine.enter(time, &mut self.bytes);
            // What may leave at once hardly waits for what is read next, and may be written together with it.
            if self.engine.waiting_since().is_some_and(|since| time - since >= GATHER) {
                self.write();
            }
        }
        self.write();
        if time - self.empty > BEHIND {
            self.behind += self.engine.came() - came;
        }
        if read < BATCH {
            self.empty = time;
        }
        for message in self.engine.take_messages() {
            self.other.put(Message::Icmp(message));
        }
        for message in self.mailbox.take() {
            if matches!(message, Message::Stop) {
                self.engine.advance(now());
                self.write();
                return Ok(Turn::Stopped);
            }
            self.obey(message);
            self.write();
        }
        let due = self.engine.next_wake();
        self.may_read = read == BATCH || due <= time;
        if self.may_read {
            return Ok(Turn::More);
        }
        // A fast link does not wake for each packet.
        let until = due.max(self.woke + QUANTUM);
        let listens = self.small < MANY;
        let until = if listens { until } else { until.min(time + QUANTUM) };
        Ok(Turn::Waits(Wait { until, listens }))
    }

    /// Says that it waited until `now`, and whether there may be a frame.
    pub(crate) fn waited(&mut self, wait: Wait, now: Instant, may_read: bool) {
        self.may_read = may_read || !wait.listens;
        self.small = 0;
        self.empty = now;
        if now >= wait.until {
            self.woke = wait.until;
        }
    }

    /// Says that there may be a frame to read.
    pub(crate) const fn look(&mut self) {
        self.may_read = true;
    }

    /// Whether something was written since this was last asked. Who got it may have answered already, in the other direction.
    pub(crate) const fn has_written(&mut self) -> bool {
        std::mem::replace(&mut self.wrote, false)
    }

    fn write(&mut self) {
        self.wrote |= self.engine.waiting_since().is_some();
        self.engine.write(now, |pieces| self.to.write(pieces).is_ok());
    }

    fn obey(&mut self, message: Message) {
        match message {
            Message::Icmp(packet) => self.engine.enter_message(now(), &packet),
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
            Message::Wake | Message::Stop => {}
        }
    }

    const fn refused(&self, fault: ChangeFault) -> LinkError {
        LinkError::Change { direction: self.direction, fault }
    }

    /// How it is now.
    pub(crate) fn snapshot(&self) -> DirectionSnapshot {
        let device_dropped = self.from.dropped().unwrap_or(0);
        DirectionSnapshot { device_dropped, behind: self.behind, ..self.engine.snapshot() }
    }

    /// How it is now that its device cannot be read.
    pub(crate) fn failed(&self, error: Errno) -> DirectionSnapshot {
        let why = io::Error::from(error);
        let failed = format!("TUN device {}: cannot read: {why}", self.from.name());
        DirectionSnapshot { failed: Some(failed), ..self.snapshot() }
    }
}
