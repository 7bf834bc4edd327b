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
    /// thread for each direction. Watchers are made if that is wanted.
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
        let mut worker = |direction: Direction, passage: &Passage| {
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
            let worker = Worker {
                direction,
                engine,
                from: pick(&far, &near),
                to,
                mailbox: mailbox(is_down),
                other: mailbox(!is_down),
                behind: 0,
            };
            let name = format!("link {}", direction.name());
            let thread = thread::Builder::new().name(name).spawn(move || worker.run());
            thread.map_err(|error| system("start a thread", error))
        };
        let threads = [worker(Direction::Down, down)?];
        // If this one does not start, the other ends with its mailbox: `Running` is dropped.
        let mut running =
            Running { mailboxes: [down_box.clone(), up_box.clone()], threads: threads.into() };
        running.threads.push(worker(Direction::Up, up)?);
        Ok(running)
    }
}

/// A link at work. It stops when this is dropped.
pub struct Running {
    mailboxes: [Arc<Mailbox>; 2],
    threads: Vec<JoinHandle<DirectionSnapshot>>,
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
        Ok(Snapshot { at: now(), down: ask(Direction::Down)?, up: ask(Direction::Up)? })
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
        self.threads.iter().all(|thread| !thread.is_finished())
    }

    fn wait<T>(&self, direction: Direction, answered: &mpsc::Receiver<T>) -> Result<T, LinkError> {
        loop {
            match answered.recv_timeout(Duration::from_millis(100)) {
                Ok(answer) => return Ok(answer),
                Err(mpsc::RecvTimeoutError::Disconnected) => return Err(LinkError::Stopped),
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    let thread = &self.threads[usize::from(!direction.is_down())];
                    if thread.is_finished() {
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
        Snapshot { at: now(), down, up }
    }

    fn end(&mut self) -> [DirectionSnapshot; 2] {
        for mailbox in &self.mailboxes {
            mailbox.put(Message::Stop);
        }
        let broke = || DirectionSnapshot {
            failed: Some("its thread came to no good end".to_owned()),
            ..DirectionSnapshot::default()
        };
        let mut ends =
            self.threads.drain(..).map(|thread| thread.join().unwrap_or_else(|_| broke()));
        [ends.next().unwrap_or_default(), ends.next().unwrap_or_default()]
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
