//! Timers that run out, those that do with them, and who wakes by that (Linux: `hrtimer_interrupt`, `handle_softirqs`).

use dualq_units::hint::{cold_path, unlikely};

use crate::engine::agenda::Taken;
use crate::engine::{Cause, READER_SLACK_NS, Simulation, TIMER_LATENCY_NS, TIMER_SLACK_NS};

/// Who wakes early, and why.
#[derive(Clone, Copy)]
pub(super) struct Meanwhile {
    /// Packets are about to arrive: the first one who reads has only begun when they do.
    pub(super) arrive: bool,
    /// Whether others than those who read wake too.
    pub(super) all: bool,
    /// Whose timer it is, if that has begun to read.
    pub(super) reader: Option<u32>,
}

impl Simulation<'_> {
    /// A timer has run out, and takes along those behind it that may run out a little later: up to the first one that may not yet
    /// (Linux: `__hrtimer_run_queues`). The next timer without such a slack, of those that were set then, is due at `hard_ns`.
    #[inline]
    pub(super) fn wake_early(&mut self, hard_ns: u64, mut meanwhile: Meanwhile) {
        // Who has woken to read, in this order.
        let mut awake = Vec::from_iter(meanwhile.reader);
        let mut departing = std::mem::take(&mut self.departing);
        let arrive = meanwhile.arrive;
        while let Some((deadline_ns, number, cause)) = self.agenda.peek() {
            if deadline_ns > hard_ns {
                break;
            }
            let spare_ns = deadline_ns - self.now_ns;
            let receiver = || &self.connections[number as usize].receiver;
            let anybody_pauses = !self.sleepers.is_empty();
            let reads =
                anybody_pauses && matches!(cause, Cause::Receiver) && receiver().is_next_to_read();
            let slack_ns = match cause {
                Cause::Receiver if reads => READER_SLACK_NS,
                Cause::Departure => self.interface.slack_ns + TIMER_LATENCY_NS,
                _ => 0,
            };
            // Who has begun to read takes what arrives at the instant in which it ends.
            let ends = || matches!(cause, Cause::Receiver) && receiver().is_reading();
            // What is far off is not looked at: with many connections that takes long.
            if spare_ns > slack_ns || ends() || !(reads || meanwhile.all) {
                // A program's own timer lies before it in the same order, and has not run out.
                let is_tcp = matches!(cause, Cause::Sender | Cause::Receiver);
                let is_behind = is_tcp && !reads && !ends();
                if meanwhile.all && unlikely(is_behind || ends()) {
                    departing.extend(self.departing_behind(hard_ns));
                    meanwhile.arrive |= !departing.is_empty();
                }
                // Nor does a queue that lets go later keep those back that are behind it.
                let is_passed = matches!(cause, Cause::Departure) && spare_ns <= slack_ns;
                if unlikely(anybody_pauses) && (is_behind || is_passed) {
                    self.wake_readers_behind(hard_ns, meanwhile, &mut awake);
                }
                break;
            }
            if reads && receiver().is_woken_by_data(self.now()) && (arrive || self.more_comes()) {
                // That is no timer: it runs when all of them have come (Linux: `net_rx_action` before any thread).
                break;
            }
            if reads {
                cold_path();
                if self.agenda.pop().is_some() {
                    self.wake_reader(number, meanwhile, &mut awake);
                }
                self.have_run_out();
            } else if matches!(cause, Cause::Departure) {
                // What goes does when all timers have run out (`NET_TX_SOFTIRQ`).
                departing.extend(self.agenda.pop().map(|(leader, _)| leader));
                meanwhile.arrive = true;
                self.have_run_out();
            } else {
                self.take_timer(None);
            }
        }
        self.depart_together(&departing);
        departing.clear();
        self.departing = departing;
        // Who waits for that sends after what arrives was looked at (`NET_RX_SOFTIRQ`, `tcp_tsq_workfn`).
        if !arrive {
            self.drive_woken();
        }
        // Until it ends nobody else begins.
        for number in awake {
            self.arm_receiver(number);
        }
    }

    /// The same for queues of senders whose timers run out behind one of TCP's.
    #[cold]
    pub(super) fn departing_behind(&mut self, hard_ns: u64) -> Vec<u32> {
        let slack_ns = self.interface.slack_ns + TIMER_LATENCY_NS;
        let latest_ns = self.now_ns.min(hard_ns.saturating_sub(slack_ns));
        let due = self.departs_ns.iter().zip(&self.interfaces).filter(|(it, _)| **it <= latest_ns);
        let mut departing: Vec<_> =
            due.filter_map(|(wakes_ns, queue)| Some((*wakes_ns, queue.leader?))).collect();
        departing.sort_unstable();
        for &(_, leader) in &departing {
            self.agenda.arm(leader, Cause::Departure, u64::MAX);
        }
        departing.into_iter().map(|(_, leader)| leader).collect()
    }

    /// Timers of TCP are not among those that run out in their order (`hrtimer_run_softirq`, `run_timer_softirq`): who reads behind one wakes.
    #[cold]
    fn wake_readers_behind(&mut self, hard_ns: u64, meanwhile: Meanwhile, awake: &mut Vec<u32>) {
        let slack_ns = self.interface.slack_ns + TIMER_LATENCY_NS;
        let later = self.departs_ns.iter().filter(|wakes_ns| **wakes_ns > self.now_ns).min();
        let departs_ns = later.map_or(u64::MAX, |wakes_ns| wakes_ns.saturating_add(slack_ns));
        let latest_ns = hard_ns.min(departs_ns).min(self.now_ns + READER_SLACK_NS);
        loop {
            let wakes = |number: &u32| {
                if awake.contains(number) {
                    return None;
                }
                let receiver = &self.connections[*number as usize].receiver;
                let wakes_ns = receiver.next_timer().as_nanos();
                let is_due = receiver.is_next_to_read() && wakes_ns <= latest_ns;
                is_due.then_some((wakes_ns, self.agenda.place_asleep(*number), *number))
            };
            let Some((.., number)) = self.sleepers.iter().filter_map(wakes).min() else { break };
            self.wake_reader(number, meanwhile, awake);
            self.have_run_out();
        }
    }

    /// Somebody who reads wakes. The first one who does while packets are about to arrive has only begun when they do.
    fn wake_reader(&mut self, number: u32, meanwhile: Meanwhile, awake: &mut Vec<u32>) {
        let now = self.now();
        self.agenda.wake(number);
        self.woke_ns = Some(self.now_ns);
        let receiver = &mut self.connections[number as usize].receiver;
        if !meanwhile.arrive {
            self.begin_read(number);
        } else if !awake.is_empty() {
            // It runs when these have arrived, which wait for the first one alone (Linux: `lock_sock_nested`, whose `local_bh_enable` lets them).
            receiver.wake(now);
        } else if receiver.has_read_all() {
            receiver.wake_with_arrivals(now);
        } else {
            self.begin_read(number);
        }
        awake.push(number);
    }

    /// The next timer has run out, unless its deadline has moved away: then nothing has. Who may wake late and reads has begun before anything arrives that it
    /// lets go, if `hard_ns` is there: as of [`start`](Self::start).
    pub(super) fn take_timer(&mut self, hard_ns: Option<u64>) -> bool {
        self.read_timers_ahead();
        match self.agenda.take() {
            Taken::Due(number, cause) => {
                let receiver = &self.connections[number as usize].receiver;
                if !(matches!(cause, Cause::Receiver) && receiver.is_reading()) {
                    self.interrupted_ns = self.now_ns;
                }
                self.run_timer(number, cause, hard_ns);
            }
            Taken::RunsOut => self.interrupted_ns = self.now_ns,
            Taken::Moved => return false,
        }
        self.have_run_out();
        true
    }

    #[inline]
    fn run_timer(&mut self, number: u32, cause: Cause, hard_ns: Option<u64>) {
        if matches!(cause, Cause::Sender | Cause::Receiver) {
            self.holds_arrivals |= self.agenda.has_coarse_at(self.now_ns);
        }
        if let Some(hard_ns) = hard_ns {
            let spare_ns = self.agenda.next_ns() - self.now_ns;
            if matches!(cause, Cause::Departure) {
                if spare_ns <= TIMER_SLACK_NS {
                    let meanwhile = Meanwhile { arrive: true, all: false, reader: None };
                    self.wake_early(hard_ns, meanwhile);
                }
                let mut leaders = self.departures_up_to(hard_ns);
                if unlikely(!leaders.is_empty()) {
                    leaders.insert(0, number);
                    self.depart_together(&leaders);
                    self.drive_woken();
                    return;
                }
            } else if matches!(cause, Cause::Receiver)
                && spare_ns <= self.interface.slack_ns
                && self.connections[number as usize].receiver.is_next_to_read()
            {
                cold_path();
                // What queues of senders let go comes while who was woken first reads.
                self.begin_read(number);
                let meanwhile = Meanwhile { arrive: false, all: true, reader: Some(number) };
                return self.wake_early(hard_ns, meanwhile);
            } else if matches!(cause, Cause::Program) {
                cold_path();
                self.depart_before(hard_ns);
            }
        }
        self.run_out(number, cause);
    }

    /// The timer of a program has run out, and takes along those of queues that may run out a little later, up to `hard_ns`: what these let go is gone
    /// before the program runs (Linux: `NET_TX_SOFTIRQ`, which comes before any process does).
    pub(super) fn depart_before(&mut self, hard_ns: u64) {
        for leader in self.departures_up_to(hard_ns) {
            self.let_go(leader);
            self.drive_woken();
        }
    }

    /// The queues of senders whose timers are next and run out now, as they may be late: up to `hard_ns`.
    pub(super) fn departures_up_to(&mut self, hard_ns: u64) -> Vec<u32> {
        let latest_ns = hard_ns.min(self.now_ns + self.interface.slack_ns + TIMER_LATENCY_NS);
        let mut leaders = Vec::new();
        while let Some((deadline_ns, _, Cause::Departure)) = self.agenda.peek()
            && deadline_ns <= latest_ns
        {
            leaders.extend(self.agenda.pop().map(|(leader, _)| leader));
        }
        leaders
    }

    /// What several queues of senders let go has left all of them before any of it is looked at where it goes (Linux: `net_tx_action`, and only then
    /// `net_rx_action`).
    pub(super) fn depart_together(&mut self, leaders: &[u32]) {
        let held = std::mem::replace(&mut self.holds_arrivals, true);
        for &leader in leaders {
            self.let_go(leader);
        }
        self.holds_arrivals = held;
        if !held {
            self.let_arrive();
        }
    }

    /// Whoever reads has slept, and begins to, whether there is something to read or not.
    pub(super) fn begin_read(&mut self, number: u32) {
        let now = self.now();
        self.woke_ns = Some(self.now_ns);
        let receiver = &mut self.connections[number as usize].receiver;
        let waits = receiver.has_read_all();
        receiver.begin_read(now);
        if waits {
            self.program_runs();
        }
    }

    /// Coarse timers that run out together do so before anything that they send arrives: the kernel looks at what has arrived
    /// afterwards, in its order (`TIMER_SOFTIRQ`, `NET_RX_SOFTIRQ`).
    #[inline]
    pub(super) fn have_run_out(&mut self) {
        if unlikely(self.holds_arrivals) && !self.agenda.has_coarse_at(self.now_ns) {
            self.let_arrive();
            self.holds_arrivals = false;
        }
    }
}
