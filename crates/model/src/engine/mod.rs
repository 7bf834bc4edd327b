//! A scenario at work: the clock, and the loop that lets things happen in the order of time.

mod agenda;
mod arrive;
mod send;
mod timers;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use dualq_net::Queue;
use dualq_qdisc::pool::Pool;
use dualq_qdisc::{Device, Discipline, Random, SplitMix64};
use dualq_scenario::{
    CLOCK_AT_START, Direction, Outcome, QUEUES_MADE, RTT_SAMPLE_INTERVAL, RateStep, Scenario,
    TIMER_SLACK, Watch,
};
use dualq_tcp::{Sender, TIMER_LATENCY, Tick};
use dualq_units::hint::{cold_path, unlikely};
use dualq_units::{Instant, Rate};

use crate::error::Unmodelled;
use crate::host::{Connection, Delayed, Interface, Pages};
use crate::network::{Network, Surroundings, back};
use crate::options::Options;
use crate::owner::Owner;
use crate::packet::{ADDRESSES, Outgoing, Packet};
use crate::program::{Moment, SEND_NS, Turn};
use crate::record::Record;
use crate::watcher::Watcher;
use agenda::Agenda;

pub(crate) use agenda::Cause;
use timers::Meanwhile;

/// How often a run is looked at by whoever shows its progress.
const LOOKS: u64 = 500;
/// How much later than it wanted a program wakes at most.
const TIMER_SLACK_NS: u64 = TIMER_SLACK.as_nanos() as u64;
/// So much later than it may a program wakes that pauses between reads, at the latest.
const READER_SLACK_NS: u64 = TIMER_SLACK_NS + TIMER_LATENCY_NS;
const TIMER_LATENCY_NS: u64 = TIMER_LATENCY.as_nanos() as u64;
/// What it takes a program to open a connection: those that begin at one instant do so one after the other.
const CONNECT_NS: u64 = 4;
/// What it takes a program to learn that its connection is open, and to write.
const OPENED_NS: u64 = 2;
/// To push what is written, and once that is done to turn to the next whose connection was found open.
const PUSH_NS: u64 = 1;
const NEXT_PROGRAM_NS: u64 = 2;
/// To ask for such (`epoll_wait`), and after a sleep for the other end to take the connection on, if its handshake is through by then (`accept`).
const POLL_NS: u64 = 1;
const ACCEPT_NS: u64 = 4;
/// In the place of the time up to which others may run out with a timer that has, if none has: they are never due as early as that.
const NOTHING_RAN_OUT: u64 = 0;
/// How often the smoothed round-trip times are sampled.
const SAMPLE_NS: u64 = RTT_SAMPLE_INTERVAL.as_nanos() as u64;

/// A scenario being simulated.
pub struct Simulation<'a> {
    scenario: &'a Scenario,
    now_ns: u64,
    /// The kernel's coarse clock, and when it ticks next, if it does.
    tick: Tick,
    jiffy_ns: u64,
    tick_ns: u64,
    /// Whether a timer of a program's has run out just now that only observes, or changes a rate, and when the next one does.
    observed: bool,
    observes_ns: u64,
    /// Until when somebody pauses who has read, and then runs in any case.
    wakes_ns: u64,
    pub(crate) agenda: Agenda,
    /// As [`Connection::all`] has them.
    pub(crate) connections: Vec<Connection>,
    interface: Interface,
    /// What waits in the queues of the senders' interfaces.
    pub(crate) waiting: Pool<Outgoing>,
    /// What leaves a sender just now.
    leaving: Vec<Outgoing>,
    /// Whether what arrives is to wait, and what waits.
    holds_arrivals: bool,
    held: VecDeque<(Direction, Packet)>,
    /// Whether what leaves senders' queues does so behind that, and whether something is behind what arrives.
    departs_behind: bool,
    arrives_before: bool,
    /// Whose data have arrived just now, and are read when all has; and how many of these have had their turn. Mostly it is one.
    arrived: Vec<u32>,
    had_turn: usize,
    /// Who was woken to write before all had arrived.
    writers: Vec<u32>,
    /// When a timer last ran out, and when somebody who had paused last woke to read.
    interrupted_ns: u64,
    woke_ns: Option<u64>,
    /// Until when one reads who pauses between reads: others do after that.
    busy_ns: u64,
    /// Those who pause after they have read.
    sleepers: Vec<u32>,
    /// When programs begin, and until when those of one instant do so, one after the other.
    begun: BTreeMap<u64, u64>,
    /// The programs that write as their connections have opened, and when at the earliest; and until when the one before them does so.
    late: VecDeque<(u64, u32)>,
    busy_until_ns: u64,
    /// How many of them were found when it was last asked for such (`epoll_wait`), and whether nobody was there to write before.
    polled: usize,
    has_slept: bool,
    pages: Pages,
    /// The senders' interfaces: one for each group of flows, each probe and each group of UDP streams.
    interfaces: Vec<Delayed>,
    /// When the timers of these want to wake at the earliest; those that are not set at the end of time.
    departs_ns: Vec<u64>,
    /// Whose queues let go together, while they are gathered.
    departing: Vec<u32>,
    /// The longest IP packets that the hosts of these interfaces were told of; routes are shared by all connections of a host.
    path_mtus: Vec<u32>,
    /// Whether these hosts know a cookie of Fast Open of their receiver.
    know_cookies: Vec<bool>,
    /// Senders that wait for what has left their interface's queue.
    woken: VecDeque<u32>,
    pub(crate) network: Network,
    pub(crate) around: Surroundings<'a>,
    warmup_ns: u64,
    /// When the smoothed round-trip times are next sampled.
    sample_ns: u64,
    /// The changes of rates, in the order of time, and how many have happened.
    steps: Vec<Step>,
    next_step: usize,
    /// When the interval of the series ends.
    interval_end_ns: u64,
}

impl<'a> Simulation<'a> {
    /// A scenario at its start; everything random follows from `seed`.
    ///
    /// # Errors
    /// If the scenario asks for what the model does not have.
    pub fn new(scenario: &'a Scenario, seed: u64) -> Result<Self, Unmodelled> {
        let mut random = SplitMix64::new(seed);
        let mut draw = || u64::from(random.next_u32()) << 32 | u64::from(random.next_u32());
        let device = Device::ethernet(scenario.link.mtu);
        let interface = Interface::of(&scenario.sender.qdisc)?;
        let spec = scenario.link.qdisc.spec();
        let queue = spec.build(&device, SplitMix64::new(draw()), Instant::ZERO + QUEUES_MADE);
        let mut connections = Connection::all(scenario, interface, &mut draw);
        let network = Network::new(scenario, &connections, queue, &mut draw);
        let mut agenda = Agenda::new(connections.len());
        let mut interfaces: Vec<Delayed> =
            (0..scenario.groups()).map(|_| Delayed::default()).collect();
        // What makes flows' hashes differ from seed to seed, and from path to path: one seed's collision is not every scenario's.
        let path =
            scenario.link.rate.as_bits_per_second() << 20 ^ scenario.link.rtt.as_nanos() as u64;
        let salt = SplitMix64::new(!seed ^ path).next_u32() & ADDRESSES;
        let mut begun = BTreeMap::new();
        for (number, connection) in (0..).zip(&mut connections) {
            let flow = connection.known_as(number);
            let (owner, flow) = match scenario.link.tunnel {
                true => (Owner::hidden(number), salt),
                false => (Owner::new(number, connection.owner), (flow ^ salt) & ADDRESSES),
            };
            if connection.is_accepted(number) {
                // The other end opens it.
                connection.route.identity = (owner.accepted(), flow);
                continue;
            }
            connection.route.identity = (owner, flow);
            let start_ns = begun.entry(connection.start_ns).or_insert(connection.start_ns);
            *start_ns += if connection.program.is_stream() { CONNECT_NS } else { SEND_NS };
            agenda.arm(number, Cause::Program, *start_ns);
            interfaces[connection.owner].leader.get_or_insert(number);
        }
        let pauses = |number: &u32| connections[*number as usize].receiver.reads_seldom();
        let sleepers = (0..connections.len() as u32).filter(pauses).collect();
        Ok(Self {
            scenario,
            now_ns: 0,
            tick: Tick::new(scenario.tick).starting_at(CLOCK_AT_START),
            jiffy_ns: scenario.tick.as_nanos() as u64,
            tick_ns: u64::MAX,
            observed: false,
            observes_ns: 0,
            wakes_ns: 0,
            agenda,
            interface,
            waiting: Pool::new(),
            leaving: Vec::new(),
            holds_arrivals: false,
            held: VecDeque::new(),
            departs_behind: false,
            arrives_before: false,
            arrived: Vec::new(),
            had_turn: 0,
            writers: Vec::new(),
            interrupted_ns: u64::MAX,
            woke_ns: None,
            busy_ns: 0,
            sleepers,
            begun,
            late: VecDeque::new(),
            pages: Pages::default(),
            busy_until_ns: 0,
            polled: 0,
            has_slept: false,
            departs_ns: vec![u64::MAX; interfaces.len()],
            departing: Vec::new(),
            path_mtus: vec![u32::MAX; interfaces.len()],
            know_cookies: vec![false; interfaces.len()],
            interfaces,
            woken: VecDeque::new(),
            network,
            connections,
            around: Surroundings {
                random,
                record: Record::new(scenario),
                options: Options::default(),
                unsaid: Vec::new(),
                too_long: Vec::new(),
                watcher: None,
            },
            warmup_ns: scenario.warmup.as_nanos() as u64,
            sample_ns: scenario.warmup.as_nanos() as u64,
            steps: Step::all(scenario),
            next_step: 0,
            interval_end_ns: scenario.interval.as_nanos() as u64,
        })
    }

    /// Tells what happens, as far as that is wanted.
    #[must_use]
    pub fn watched(mut self, watch: &'a mut dyn Watch) -> Self {
        self.around.watcher = Watcher::new(self.scenario, &self.connections, watch).map(Box::new);
        self
    }

    /// Puts another discipline at the bottleneck, in the place of the scenario's: one of another crate, as
    /// [`Discipline::Boxed`]. To be called before the first packet.
    #[must_use]
    pub fn with_queue(mut self, queue: Discipline<Packet>) -> Self {
        self.network.tested_mut().replace(queue);
        self
    }

    /// The time up to which all has happened.
    #[must_use]
    pub fn now(&self) -> Instant {
        Instant::from_nanos(self.now_ns)
    }

    /// The queue at the bottleneck.
    #[must_use]
    pub fn queue(&self) -> &Queue<Packet> {
        self.network.tested()
    }

    /// The queues that figures are taken of: that at the bottleneck, and that of the other direction if it has one.
    pub fn queues(&self) -> impl Iterator<Item = &Queue<Packet>> {
        self.network.queues()
    }

    /// The senders: of the flows in the order of their groups, then of the probes.
    pub fn senders(&self) -> impl ExactSizeIterator<Item = &Sender> {
        let flows = self.scenario.flow.iter().map(|group| group.count as usize).sum::<usize>();
        let connections = &self.connections[..flows + self.scenario.probe.len()];
        connections.iter().map(|connection| &connection.sender)
    }

    /// Lets all happen that happens before `until`, or before the end of the scenario if that is sooner.
    pub fn advance(&mut self, until: Instant) {
        let end_ns = self.end_ns();
        let until_ns = until.as_nanos().min(end_ns);
        while self.now_ns < until_ns {
            // At the end of a scenario no sample is due any more.
            if self.now_ns == self.sample_ns {
                self.take_sample();
            }
            let steps = &self.steps[self.next_step..];
            let is_later = |at_ns: &u64| *at_ns > self.now_ns;
            let wakes_ns = steps.iter().map(|step| step.at_ns).find(is_later).unwrap_or(u64::MAX);
            let changes_ns = steps.first().map_or(u64::MAX, Step::changes_ns);
            self.observes_ns = self.interval_end_ns.min(self.sample_ns).min(wakes_ns);
            let next_ns = self.observes_ns.min(changes_ns).min(until_ns);
            self.run_until(next_ns);
            while let Some(step) = self.steps.get(self.next_step).copied()
                && step.changes_ns() == next_ns
            {
                self.change_rate(step);
                self.next_step += 1;
            }
            if wakes_ns == next_ns {
                self.observes();
            }
            if next_ns == self.interval_end_ns || next_ns == end_ns {
                let queue = self.network.tested();
                self.around.record.end_interval(next_ns, &self.connections, queue);
                self.observes();
                let interval_ns = self.scenario.interval.as_nanos() as u64;
                self.interval_end_ns = self.interval_end_ns.saturating_add(interval_ns);
            }
        }
    }

    /// Runs to the end and reports.
    #[must_use]
    pub fn run(self) -> Outcome {
        self.run_watched(&mut |_| ())
    }

    /// Runs to the end and reports. `look` is called now and then with the simulated time that has passed.
    #[must_use]
    pub fn run_watched(mut self, look: &mut dyn FnMut(Duration)) -> Outcome {
        let end_ns = self.end_ns();
        let look_ns = (end_ns / LOOKS).max(1);
        while self.now_ns < end_ns {
            self.advance(Instant::from_nanos(self.now_ns.saturating_add(look_ns)));
            look(Duration::from_nanos(self.now_ns));
        }
        self.take_samples();
        let queues = self.network.observed();
        self.around.record.close(end_ns, self.scenario, &self.connections, queues)
    }

    /// What came of it so far: the outcome of the same scenario with a duration that is over now. None before the warm-up is over.
    #[must_use]
    pub fn outcome(&mut self) -> Option<Outcome> {
        let now_ns = self.now_ns;
        if now_ns <= self.warmup_ns {
            return None;
        }
        self.take_samples();
        // The books go on.
        let mut record = self.around.record.clone();
        if record.is_within_interval(now_ns) {
            record.end_interval(now_ns, &self.connections, self.network.tested());
        }
        let queues = self.network.observed();
        Some(record.close(now_ns, self.scenario, &self.connections, queues))
    }

    fn take_samples(&mut self) {
        for connection in &mut self.connections {
            self.around.record.take_samples(connection);
        }
    }

    fn change_rate(&mut self, step: Step) {
        let link = match step.direction {
            Direction::Down => Some(self.network.tested_mut()),
            Direction::Up => self.network.up_queue_mut(),
        };
        if let Some(link) = link {
            link.change_rate(step.rate);
        }
    }

    fn end_ns(&self) -> u64 {
        self.scenario.duration.as_nanos() as u64
    }

    #[inline]
    fn moment(&self) -> Moment {
        let is_measured = self.now_ns >= self.warmup_ns;
        Moment { now_ns: self.now_ns, is_measured }
    }

    /// The first at the end of the warm-up.
    fn take_sample(&mut self) {
        if self.sample_ns == self.warmup_ns {
            self.around.record.mark_warmup(self.network.observed());
            for connection in &mut self.connections {
                connection.at_warmup = connection.marker();
            }
        }
        self.around.record.sample_rtts();
        self.sample_ns += SAMPLE_NS;
        self.observes();
    }

    /// Whoever observes, or changes the link, has woken for it.
    fn observes(&mut self) {
        self.observed = true;
        self.program_runs();
    }

    /// A program runs, of which there are those that observe too. The kernel's clock stands still while nobody does, but for timers of its own; it ticks once
    /// more after somebody has (Linux: `tick_nohz_idle_retain_tick`).
    #[inline]
    fn program_runs(&mut self) {
        if unlikely(self.tick_ns > self.now_ns + self.jiffy_ns) {
            self.tick_ns = self.tick.next(self.now()).as_nanos();
        }
    }

    /// The next timer that belongs to nothing of the network, and may not run out early: the clock's, or that of whoever observes.
    #[inline]
    fn hard_tick_ns(&self) -> u64 {
        self.tick_ns.min(self.observes_ns)
    }

    /// Handles all that happens before `end_ns`. Of what happens at one instant, elements of the path down come first, in the order
    /// of the path, then those of the path up, then timers; but what only goes on in the path up comes before what arrives from that down.
    fn run_until(&mut self, end_ns: u64) {
        // What may wake late wakes with a timer, unless it is due behind the next one that may not, of those that were set when that
        // ran out. Seldom is anything near enough.
        let slack_ns = self.interface.slack_ns.max(TIMER_SLACK_NS) + TIMER_LATENCY_NS;
        let mut hard_ns = NOTHING_RAN_OUT;
        if std::mem::take(&mut self.observed) {
            let (down_ns, _) = self.network.next_start(Direction::Down);
            let (up_ns, _) = self.network.next_start(Direction::Up);
            hard_ns = down_ns.min(up_ns).min(self.hard_tick_ns());
        }
        loop {
            if !self.around.too_long.is_empty() {
                self.tell_too_long();
            }
            // Most often nothing else happens at the instant at which data arrive.
            if !self.arrived.is_empty() && self.is_over(slack_ns) {
                self.read_arrived();
            }
            let mut agenda_ns = self.agenda.next_ns();
            // One comparison, which seldom holds: each by itself would often be mispredicted.
            if unlikely(agenda_ns <= hard_ns.min(self.now_ns + slack_ns)) {
                self.wake_early(hard_ns, Meanwhile { arrive: false, all: true, reader: None });
                agenda_ns = self.agenda.next_ns();
            }
            let (mut down_ns, down) = self.network.next_start(Direction::Down);
            let (mut up_ns, up) = self.network.next_start(Direction::Up);
            let mut late_ns = u64::MAX;
            if unlikely(!self.late.is_empty()) {
                late_ns = self.late_ns();
            }
            let path_ns = down_ns.min(up_ns);
            let mut next_ns = path_ns.min(agenda_ns).min(self.tick_ns).min(late_ns);
            // Seldom is an element due so soon behind something else.
            let now_ns = path_ns.saturating_sub(TIMER_LATENCY_NS);
            if unlikely(now_ns == next_ns || now_ns == self.now_ns) {
                if self.agenda.skip_moved() {
                    continue;
                }
                if self.is_interrupt(now_ns, agenda_ns) {
                    [down_ns, up_ns] = [
                        self.network.ripe_ns(Direction::Down, (down_ns, down), now_ns),
                        self.network.ripe_ns(Direction::Up, (up_ns, up), now_ns),
                    ];
                    next_ns = next_ns.min(down_ns).min(up_ns);
                }
            }
            if unlikely(!self.writers.is_empty()) && down_ns.min(up_ns) > self.now_ns {
                self.write_on();
                continue;
            }
            if unlikely(next_ns > self.now_ns && !self.arrived.is_empty()) {
                // Who woke before all this came has its turn before, and so has a program that writes.
                let somebody_woke = self.woke_ns == Some(self.now_ns);
                if late_ns < u64::MAX && self.has_turn() {
                    if self.passes_on() {
                        continue;
                    }
                } else if !(somebody_woke && next_ns == agenda_ns && self.ends_reading()) {
                    self.read_arrived();
                    continue;
                }
            }
            if next_ns >= end_ns {
                self.now_ns = end_ns;
                return;
            }
            debug_assert!(
                next_ns >= self.now_ns,
                "time goes back from {} to {next_ns}",
                self.now_ns
            );
            let before_ns = std::mem::replace(&mut self.now_ns, next_ns);
            let is_early = |beside_ns: u64| agenda_ns <= beside_ns.min(next_ns + slack_ns);
            // What only goes on is gone before anything arrives (`net_tx_action`): mostly that is the path down.
            let up_first = unlikely(down_ns == up_ns) && self.network.goes_on_up(down, up);
            if next_ns == down_ns && !up_first {
                let beside_ns = self
                    .network
                    .down
                    .next_due_beside()
                    .as_nanos()
                    .min(up_ns)
                    .min(self.hard_tick_ns());
                hard_ns = self.start(Direction::Down, down, beside_ns, is_early(beside_ns));
            } else if next_ns == up_ns {
                let beside_ns = self
                    .network
                    .up
                    .next_due_beside()
                    .as_nanos()
                    .min(down_ns)
                    .min(self.hard_tick_ns());
                hard_ns = self.start(Direction::Up, up, beside_ns, is_early(beside_ns));
            } else if next_ns == agenda_ns {
                let beside_ns = down_ns.min(up_ns).min(self.hard_tick_ns());
                // What only seems to be due lets nothing run out with it.
                if self.take_timer(Some(beside_ns)) {
                    hard_ns = beside_ns;
                } else {
                    self.now_ns = before_ns;
                }
            } else if next_ns == late_ns {
                cold_path();
                self.catch_up();
            } else {
                cold_path();
                self.interrupted_ns = next_ns;
                // It takes along who may wake a little later.
                let wakes = Instant::from_nanos(self.wakes_ns);
                self.tick_ns = match wakes > self.now() {
                    true => self.tick.next(wakes).as_nanos(),
                    false => u64::MAX,
                };
                hard_ns = down_ns.min(up_ns).min(self.observes_ns);
            }
        }
    }

    /// Whether nothing is left that may happen at this instant, for which nobody need look closer: no timer is so near that it may run out early.
    #[inline]
    fn is_over(&mut self, slack_ns: u64) -> bool {
        self.agenda.next_ns() > self.now_ns + slack_ns
            && !self.more_comes()
            && self.tick_ns > self.now_ns
            && self.woke_ns != Some(self.now_ns)
            && self.late.is_empty()
            && self.writers.is_empty()
    }

    /// Whether more packets come at this instant.
    #[inline]
    fn more_comes(&self) -> bool {
        let due = |path| self.network.next_start(path).0;
        due(Direction::Down).min(due(Direction::Up)) <= self.now_ns + TIMER_LATENCY_NS
    }

    /// Whether a timer runs out at `now_ns`, of which others make use that were set for no later, though they would run out a little later by themselves (Linux:
    /// `hrtimer_interrupt`). A program that ends what it does is none.
    fn is_interrupt(&mut self, now_ns: u64, agenda_ns: u64) -> bool {
        self.interrupted_ns == now_ns
            || self.tick_ns == now_ns
            || (agenda_ns == now_ns && !self.ends_reading())
    }

    /// Whether what is next on the agenda is that a program ends to read.
    fn ends_reading(&mut self) -> bool {
        self.agenda.peek().is_some_and(|(_, number, cause)| {
            let receiver = &self.connections[number as usize].receiver;
            matches!(cause, Cause::Receiver) && receiver.is_reading()
        })
    }

    /// An element of a path is due; the next timer beside it is at `beside_ns`. Timers behind it may run out with it up to then: here before
    /// what it lets go arrives (`early`), or afterwards, up to the time that is returned.
    ///
    /// The link has sent before these do. Who reads has begun before what arrives is looked at, for `net_rx_action` waits as soon as there is somebody to run;
    /// and what queues of senders let go is gone before that, and so before acknowledgements of what arrives (`net_tx_action`).
    #[inline(always)]
    fn start(&mut self, direction: Direction, place: usize, beside_ns: u64, early: bool) -> u64 {
        self.interrupted_ns = self.now_ns;
        self.network.path(direction).start(place);
        let arrives_behind = early && self.network.is_last(direction, place);
        if arrives_behind {
            self.arrive_behind(direction, place, beside_ns);
        }
        self.take_arrivals(direction);
        // Without a delay acknowledgements of what arrived do so too, before who waits for a queue sends, and before anybody reads (`NET_RX_SOFTIRQ`).
        self.take_arrivals(back(direction));
        self.drive_woken();
        if arrives_behind { NOTHING_RAN_OUT } else { beside_ns }
    }

    /// When the next program whose connection has opened has its turn.
    #[cold]
    fn late_ns(&self) -> u64 {
        self.late.front().map_or(u64::MAX, |(late_ns, _)| self.busy_until_ns.max(*late_ns))
    }

    /// Whether a program whose connection has opened has its turn: those that read have theirs when it sleeps.
    #[cold]
    fn has_turn(&self) -> bool {
        self.late.front().is_some_and(|(late_ns, _)| *late_ns <= self.now_ns)
    }

    /// What receivers have answered goes its way before they read. Returns whether something did.
    #[cold]
    fn passes_on(&mut self) -> bool {
        let mut passes = false;
        for direction in [Direction::Down, Direction::Up] {
            passes |= !self.network.path(direction).is_quiet();
            self.take_arrivals(direction);
        }
        passes
    }

    /// The next program whose connection has opened has its turn, or goes on: between its pushes is what is due.
    #[cold]
    fn catch_up(&mut self) {
        let Some(&(_, number)) = self.late.front() else { return };
        if self.polled == 0 {
            self.has_slept = self.now_ns > self.busy_until_ns;
            let ready = |&&(late_ns, _): &&(u64, u32)| late_ns + POLL_NS <= self.now_ns + OPENED_NS;
            self.polled = self.late.iter().take_while(ready).count().max(1);
        }
        let Connection { program, sender, .. } = &mut self.connections[number as usize];
        program.opened(&mut Turn {
            now_ns: self.now_ns,
            sender,
            out: &mut self.leaving,
            record: &mut self.around.record,
        });
        self.connections[number as usize].sender.write_on();
        self.drive(number);
        let Connection { sender, receiver, .. } = &self.connections[number as usize];
        let mut takes_ns = PUSH_NS;
        if !sender.is_in_first_write() {
            self.late.pop_front();
            self.polled -= 1;
            takes_ns = NEXT_PROGRAM_NS;
            if self.polled == 0 {
                let accepts = self.has_slept && receiver.is_established();
                takes_ns += POLL_NS + if accepts { ACCEPT_NS } else { 0 };
            }
        }
        self.busy_until_ns = self.now_ns + takes_ns;
    }

    /// The queue of an interface lets go what is due.
    fn let_go(&mut self, leader: u32) {
        let interface = self.connections[leader as usize].owner;
        self.departs_ns[interface] = u64::MAX;
        self.release_due(interface);
    }

    fn run_out(&mut self, number: u32, cause: Cause) {
        let now = self.now();
        match cause {
            Cause::Sender => {
                self.connections[number as usize].sender.on_timer(now);
                self.look_at_sender(number);
                self.drive(number);
            }
            Cause::Receiver => self.receiver_is_due(number),
            Cause::Departure => {
                self.let_go(number);
                self.drive_woken();
            }
            Cause::Program => self.run_program(number),
        }
    }

    /// A program has its turn.
    #[cold]
    fn run_program(&mut self, number: u32) {
        let now = self.now();
        self.program_runs();
        let connection = &mut self.connections[number as usize];
        if !connection.started {
            // Whoever begins knows the route that others of the host have found (Linux: `fnhe_pmtu`).
            connection.sender.reduce_mtu(now, self.path_mtus[connection.owner]);
            if self.know_cookies[connection.owner] {
                connection.sender.know_cookie();
            }
        }
        let (out, record) = (&mut self.leaving, &mut self.around.record);
        if let Some(mut next_ns) = connection.run_program(self.now_ns, out, record) {
            // Who begins then does so before.
            let due_ns = next_ns.saturating_sub(SEND_NS);
            if !connection.program.is_stream()
                && let Some((_, until_ns)) = self.begun.range(..=due_ns).next_back()
                && *until_ns > due_ns
            {
                next_ns = until_ns + SEND_NS;
            }
            self.agenda.arm(number, Cause::Program, next_ns);
        }
        if self.connections[number as usize].program.is_stream() {
            self.drive(number);
        } else {
            self.send(number);
        }
    }
}

/// A rate changes so much behind its time. Whoever changes it in the world `kernel` wakes with a timer, which lets go before what may go with it, and
/// then does first what else is to be done at that time, such as to ask for a probe.
const RATES_CHANGE_BEHIND_NS: u64 = 3;

/// A change of the rate of the link in one direction.
#[derive(Clone, Copy, Debug)]
struct Step {
    at_ns: u64,
    direction: Direction,
    rate: Rate,
}

impl Step {
    const fn changes_ns(&self) -> u64 {
        self.at_ns + RATES_CHANGE_BEHIND_NS
    }

    fn all(scenario: &Scenario) -> Vec<Self> {
        let up = scenario.link.up.iter().flat_map(|up| &up.step);
        let down = scenario.link.step.iter().map(|step| (Direction::Down, step));
        let all = down.chain(up.map(|step| (Direction::Up, step)));
        let step = |(direction, step): (Direction, &RateStep)| Self {
            at_ns: step.at.as_nanos() as u64,
            direction,
            rate: step.rate,
        };
        let mut all: Vec<Self> = all.map(step).collect();
        all.sort_by_key(|step| step.at_ns);
        all
    }
}
