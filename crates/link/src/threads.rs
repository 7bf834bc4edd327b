//! The two threads of a link, and which of them works for which direction.
//!
//! The first works for both while that takes less than half of its time: what it writes is often answered at once, in the other direction, and it finds
//! the answer without being woken, which on a virtual machine costs more than a packet does. When there is more to do it starts the second for the way
//! up, and takes that back once both have little to do.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;
use std::{io, thread};

use dualq_scenario::Direction;
use dualq_units::Instant;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::figures::DirectionSnapshot;
use crate::urgent::Urgent;
use crate::worker::{Mailbox, Message, Turn, Wait, Worker, now};

/// How busy a thread is, is asked of times as long as this at least.
const WINDOW: Duration = Duration::from_millis(10);
/// As busy as that, in thousandths of its time, a thread needs another one.
const BUSY: u32 = 500;
/// If both together are less busy than that ...
const QUIET: u32 = 250;
/// ... so many times in a row, one is enough.
const QUIET_WINDOWS: u32 = 100;

/// How each direction was when it ended.
#[derive(Default)]
pub(crate) struct Ends([Mutex<Option<DirectionSnapshot>>; 2]);

impl Ends {
    fn of(&self, direction: Direction) -> &Mutex<Option<DirectionSnapshot>> {
        &self.0[usize::from(!direction.is_down())]
    }

    /// Whether that direction has ended.
    pub(crate) fn has(&self, direction: Direction) -> bool {
        self.of(direction).lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Takes how it was.
    pub(crate) fn take(&self, direction: Direction) -> DirectionSnapshot {
        let end = self.of(direction).lock().unwrap_or_else(PoisonError::into_inner).take();
        end.unwrap_or_else(broken)
    }
}

/// A direction that has to be worked for. It has ended when this is gone, if its thread panics too.
pub(crate) struct Job {
    worker: Worker,
    ends: Arc<Ends>,
}

impl Job {
    pub(crate) const fn new(worker: Worker, ends: Arc<Ends>) -> Self {
        Self { worker, ends }
    }

    fn end(self, how: DirectionSnapshot) {
        let end = self.ends.of(self.worker.direction());
        *end.lock().unwrap_or_else(PoisonError::into_inner) = Some(how);
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let end = self.ends.of(self.worker.direction());
        let mut end = end.lock().unwrap_or_else(PoisonError::into_inner);
        end.get_or_insert_with(broken);
    }
}

fn broken() -> DirectionSnapshot {
    let failed = Some("its thread came to no good end".to_owned());
    DirectionSnapshot { failed, ..DirectionSnapshot::default() }
}

/// The time of processors that a link's threads have used, to some ten milliseconds.
#[derive(Clone, Default)]
pub(crate) struct Used(Arc<AtomicU64>);

impl Used {
    pub(crate) fn so_far(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

/// How busy the calling thread is.
struct Load {
    since: Instant,
    waited: Duration,
    /// What it has used that is counted.
    counted: Duration,
    used: Used,
}

impl Load {
    fn new(used: &Used) -> Self {
        let used = used.clone();
        Self { since: now(), waited: Duration::ZERO, counted: Duration::ZERO, used }
    }

    fn count(&mut self) {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let all = Duration::new(time.tv_sec as u64, time.tv_nsec as u32);
        let new = all.saturating_sub(std::mem::replace(&mut self.counted, all));
        self.used.0.fetch_add(new.as_nanos() as u64, Ordering::Relaxed);
    }

    /// In thousandths of the time since it last said so, if that is long enough.
    fn share(&mut self, now: Instant) -> Option<u32> {
        let window = now - self.since;
        if window < WINDOW {
            return None;
        }
        let idle = self.waited.as_nanos() * 1000 / window.as_nanos();
        (self.since, self.waited) = (now, Duration::ZERO);
        self.count();
        Some(1000_u32.saturating_sub(u32::try_from(idle).unwrap_or(1000)))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.count();
    }
}

/// Does what there is to do for all of `jobs`, of which there are one or two. If that was all, waits for more. Those that end are there no more.
/// Returns the time.
fn round(jobs: &mut Vec<Job>, load: &mut Load) -> Instant {
    let mut waits = [None; 2];
    let mut has_more = false;
    for place in 0..jobs.len() {
        let how = match jobs[place].worker.turn() {
            Ok(Turn::Stopped) => jobs[place].worker.snapshot(),
            Err(error) => jobs[place].worker.failed(error),
            Ok(turn) => {
                match turn {
                    Turn::Waits(wait) => waits[place] = Some(wait),
                    _ => has_more = true,
                }
                if jobs[place].worker.has_written()
                    && let Some(other) = jobs.get_mut(1 - place)
                {
                    other.worker.look();
                    has_more |= place == 1;
                }
                continue;
            }
        };
        jobs.remove(place).end(how);
        return now();
    }
    let time = now();
    if has_more {
        return time;
    }
    let readable = match wait(jobs, waits, time) {
        Ok(readable) => readable,
        Err(error) => {
            for job in jobs.drain(..) {
                let how = job.worker.failed(error);
                job.end(how);
            }
            return time;
        }
    };
    let after = now();
    load.waited += after - time;
    for ((job, wait), readable) in jobs.iter_mut().zip(waits).zip(readable) {
        if let Some(wait) = wait {
            job.worker.waited(wait, after, readable);
        }
    }
    after
}

/// Waits from `time` on. Says of which there may be a frame.
fn wait(jobs: &[Job], waits: [Option<Wait>; 2], time: Instant) -> Result<[bool; 2], Errno> {
    let mut fds = Vec::with_capacity(4);
    let mut until = Instant::NEVER;
    for (job, wait) in jobs.iter().zip(waits) {
        let [bell, from] = job.worker.fds();
        fds.push(PollFd::from_borrowed_fd(bell, PollFlags::IN));
        let listens = wait.is_none_or(|wait| wait.listens);
        fds.push(PollFd::from_borrowed_fd(
            from,
            if listens { PollFlags::IN } else { PollFlags::empty() },
        ));
        until = until.min(wait.map_or(Instant::NEVER, |wait| wait.until));
    }
    let timeout = (until < Instant::NEVER).then(|| {
        let rest = until - time;
        Timespec { tv_sec: rest.as_secs().cast_signed(), tv_nsec: rest.subsec_nanos().into() }
    });
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) => Ok([1, 3].map(|place| fds.get(place).is_some_and(|fd| !fd.revents().is_empty()))),
        Err(Errno::INTR) => Ok([true; 2]),
        Err(error) => Err(error),
    }
}

/// Works for both directions until they have ended: for one of them by a second thread, while there is much to do.
pub(crate) fn work(down: Job, up: Job, used: &Used) {
    // The second thread is as this one is.
    let _urgent = Urgent::new();
    // Timers are to be as exact as they can; where that is refused they are late by 50 us more.
    let _ = nix::sys::prctl::set_timerslack(1);
    let bell = down.worker.mailbox();
    let busy = Arc::new(AtomicU32::new(0));
    let (mut jobs, mut load) = (vec![down, up], Load::new(used));
    let mut second: Option<mpsc::Receiver<Job>> = None;
    loop {
        if let Some(second_has) = &second {
            // With nothing else to do, it waits for that.
            let job =
                if jobs.is_empty() { second_has.recv().ok() } else { second_has.try_recv().ok() };
            if job.is_some() {
                second = None;
            }
            jobs.extend(job);
        }
        if jobs.is_empty() {
            return;
        }
        let time = round(&mut jobs, &mut load);
        let Some(share) = load.share(time) else { continue };
        busy.store(share, Ordering::Relaxed);
        if share >= BUSY && jobs.len() == 2 {
            // If there is no other thread to be had, this one goes on as it can.
            if let Ok((give, given_back)) = start_second(&bell, &busy, used)
                && let Some(up) = jobs.pop()
            {
                match give.send(up) {
                    Ok(()) => second = Some(given_back),
                    Err(mpsc::SendError(up)) => jobs.push(up),
                }
            }
        }
    }
}

/// Starts the second thread: it takes one job, which comes back if there is little to do, and is then gone.
fn start_second(
    bell: &Arc<Mailbox>,
    busy: &Arc<AtomicU32>,
    used: &Used,
) -> io::Result<(mpsc::Sender<Job>, mpsc::Receiver<Job>)> {
    let (give, given) = mpsc::channel();
    let (give_back, given_back) = mpsc::channel();
    let (bell, busy, used) = (Arc::clone(bell), Arc::clone(busy), used.clone());
    let second = move || {
        if let Ok(job) = given.recv()
            && let Some(job) = work_alone(job, &busy, &used)
        {
            // The first thread waits for this one before it ends.
            let _ = give_back.send(job);
            bell.put(Message::Wake);
        }
    };
    thread::Builder::new().name("link up".to_owned()).spawn(second)?;
    Ok((give, given_back))
}

/// Works until the job has ended, or is so little work that whoever is as `busy` as that can do it too: then it is returned.
fn work_alone(job: Job, busy: &AtomicU32, used: &Used) -> Option<Job> {
    let (mut jobs, mut load) = (vec![job], Load::new(used));
    let mut quiet = 0;
    while !jobs.is_empty() && quiet < QUIET_WINDOWS {
        let time = round(&mut jobs, &mut load);
        if let Some(share) = load.share(time) {
            let is_quiet = share + busy.load(Ordering::Relaxed) < QUIET;
            quiet = if is_quiet { quiet + 1 } else { 0 };
        }
    }
    jobs.pop()
}
