//! A link at work, and what can be asked of it.

use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dualq_qdisc::QdiscLine;
use dualq_scenario::{Direction, Passage};
use dualq_units::Rate;

use crate::LinkError;
use crate::engine::Engine;
use crate::figures::{DirectionSnapshot, Snapshot};
use crate::threads::{self, Ends, Job, Used};
use crate::tun::Tun;
use crate::watch::Watch;
use crate::worker::{Mailbox, Message, Worker, now};

/// The memory that packets of one direction may take, unless it is told: 400 ms at 10 Gbit/s.
const MEMORY: u64 = 512 << 20;

/// Makes who watches a direction's packets.
pub type MakeWatch<'a> = &'a mut dyn FnMut(Direction) -> Box<dyn Watch>;

/// How a link is to be, beside its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// What all follows from that is random on the path.
    pub seed: u64,
    /// Whether every aggregate is taken apart as it comes, so that all queues see packets as they are on the wire. Else aggregates come
    /// whole to queue disciplines, as on a Linux host that forwards them, and those take them apart that do so there.
    pub split: bool,
    /// The memory that packets of one direction may take, in bytes. What comes when it is used up is lost, and told as an error of the link.
    pub memory: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { seed: 1, split: false, memory: MEMORY }
    }
}

/// What can be changed of a direction while it runs.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time, made by hand")]
pub enum Change {
    /// The bottleneck's rate. What waits stays.
    Rate(Rate),
    /// The constant delay at the end. Nothing overtakes.
    Delay(Duration),
    /// The bottleneck's queue discipline: changed as by `tc qdisc change` if it is of the same kind, else replaced, and what waits is lost.
    Qdisc(QdiscLine),
}

/// A bottleneck between two devices.
#[derive(Debug)]
pub struct Link;

impl Link {
    /// Starts the link between two devices: what comes from `far` takes the way `down` to `near`, what comes from `near` the way `up`. It has a
    /// thread of its own, and another one for the way up while there is much to do. Watchers are made if that is wanted.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn start(
        [down, up]: [&Passage; 2],
        near: Tun,
        far: Tun,
        options: &Options,
        watch: Option<MakeWatch<'_>>,
    ) -> Result<Running, LinkError> {
        let start = now();
        let boxes = || Mailbox::new().map_err(|error| system("make an eventfd", error));
        let [near, far] = [near, far].map(Arc::new);
        let mut watch = watch;
        let (down_box, up_box) = (boxes()?, boxes()?);
        let ends = Arc::<Ends>::default();
        let mut job = |direction: Direction, passage: &Passage| {
            let is_down = direction.is_down();
            let seed = options.seed.wrapping_mul(2).wrapping_add(u64::from(!is_down));
            let options = Options { seed, ..*options };
            let watch = watch.as_mut().map(|make| make(direction));
            let pick =
                |one: &Arc<Tun>, other: &Arc<Tun>| Arc::clone(if is_down { one } else { other });
            let mailbox = |down| Arc::clone(if down { &down_box } else { &up_box });
            let to = pick(&near, &far);
            let mut engine = Engine::new(passage, &options, start, watch);
            if to.takes_datagrams() {
                engine.join_datagrams();
            }
            let devices = [pick(&far, &near), to];
            let mailboxes = [mailbox(is_down), mailbox(!is_down)];
            Job::new(Worker::new(direction, engine, devices, mailboxes), Arc::clone(&ends))
        };
        let used = Used::default();
        let (down, up) = (job(Direction::Down, down), job(Direction::Up, up));
        let thread = thread::Builder::new().name("link down".to_owned());
        let thread = thread.spawn({
            let used = used.clone();
            move || threads::work(down, up, &used)
        });
        let thread = Some(thread.map_err(|error| system("start a thread", error))?);
        Ok(Running { mailboxes: [down_box, up_box], ends, used, thread })
    }
}

/// A link at work. It stops when this is dropped.
pub struct Running {
    mailboxes: [Arc<Mailbox>; 2],
    ends: Arc<Ends>,
    used: Used,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn mailbox(&self, direction: Direction) -> &Mailbox {
        &self.mailboxes[usize::from(!direction.is_down())]
    }

    /// How it is now. That stops packets for some ten microseconds.
    ///
    /// # Errors
    /// If a direction has stopped, as a device failed: [`stop`](Self::stop) says why.
    pub fn snapshot(&self) -> Result<Snapshot, LinkError> {
        let ask = |direction| {
            let (answer, answered) = mpsc::channel();
            self.mailbox(direction).put(Message::Snapshot(answer));
            self.wait(direction, &answered)
        };
        let (down, up) = (ask(Direction::Down)?, ask(Direction::Up)?);
        Ok(Snapshot { at: now(), down, up, processor_time: self.used.so_far() })
    }

    /// Changes something of a direction.
    ///
    /// # Errors
    /// If it has no queue to be changed, if its discipline does not change so, or if it has stopped.
    pub fn change(&self, direction: Direction, change: Change) -> Result<(), LinkError> {
        self.ask_for(direction, |answer| Message::Change(change, answer))
    }

    /// Whether [`change`](Self::change) would do that, of which it does nothing: for several changes of which none is to be made if one is
    /// refused.
    ///
    /// # Errors
    /// As of [`change`](Self::change).
    pub fn check(&self, direction: Direction, change: Change) -> Result<(), LinkError> {
        self.ask_for(direction, |answer| Message::Check(change, answer))
    }

    fn ask_for(
        &self,
        direction: Direction,
        message: impl FnOnce(mpsc::Sender<Result<(), LinkError>>) -> Message,
    ) -> Result<(), LinkError> {
        let (answer, answered) = mpsc::channel();
        self.mailbox(direction).put(message(answer));
        self.wait(direction, &answered)?
    }

    /// Whether both directions are at work: they are unless a device failed.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        ![Direction::Down, Direction::Up].into_iter().any(|direction| self.ends.has(direction))
    }

    fn wait<T>(&self, direction: Direction, answered: &mpsc::Receiver<T>) -> Result<T, LinkError> {
        loop {
            match answered.recv_timeout(Duration::from_millis(100)) {
                Ok(answer) => return Ok(answer),
                Err(mpsc::RecvTimeoutError::Disconnected) => return Err(LinkError::Stopped),
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    if self.ends.has(direction) {
                        return Err(LinkError::Stopped);
                    }
                }
            }
        }
    }

    /// Stops it, and says how it was at the end. What was inside is gone.
    #[must_use]
    pub fn stop(mut self) -> Snapshot {
        let [down, up] = self.end();
        Snapshot { at: now(), down, up, processor_time: self.used.so_far() }
    }

    fn end(&mut self) -> [DirectionSnapshot; 2] {
        for mailbox in &self.mailboxes {
            mailbox.put(Message::Stop);
        }
        // A panic is told by the direction's end.
        let _ = self.thread.take().map(JoinHandle::join);
        [Direction::Down, Direction::Up].map(|direction| self.ends.take(direction))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("alive", &self.is_alive()).finish_non_exhaustive()
    }
}

fn system(what: &'static str, error: std::io::Error) -> LinkError {
    LinkError::System { what, error }
}
