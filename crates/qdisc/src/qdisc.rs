//! What a queue discipline does.

use std::time::Duration;

use dualq_units::Instant;

use crate::show::Stats;
use crate::{Config, Spec};

/// A packet that leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure<P> {
    /// The packet, CE set if it was marked.
    pub packet: P,
    /// Which of [`Qdisc::bands`] it waited in.
    pub band: usize,
    /// How long it waited, in nanoseconds.
    pub sojourn_ns: u64,
    /// Marked by a probability.
    pub marked_by_probability: bool,
    /// Marked by a step.
    pub marked_by_step: bool,
}

impl<P> Departure<P> {
    /// How long it waited.
    #[must_use]
    #[inline]
    pub const fn sojourn(&self) -> Duration {
        Duration::from_nanos(self.sojourn_ns)
    }
}

/// A packet that is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped<P> {
    /// The packet.
    pub packet: P,
    /// Which of [`Qdisc::bands`] it was in or bound for.
    pub band: usize,
    /// Why.
    pub reason: DropReason,
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// A limit was reached.
    Overlimit,
    /// The AQM's probability said so.
    Congested,
    /// A step would have marked it, but it is not ECN-capable.
    Step,
    /// A classifier refused it.
    Refused,
    /// It waited when the discipline was changed or reset.
    Flushed,
    /// An acknowledgement that a later one made superfluous.
    Superseded,
    /// A lossy path lost it at random.
    Random,
}

impl DropReason {
    /// The word for it in lists of events.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Overlimit => "overlimit",
            Self::Congested => "congested",
            Self::Step => "step",
            Self::Refused => "refused",
            Self::Flushed => "flushed",
            Self::Superseded => "superseded",
            Self::Random => "random",
        }
    }
}

/// So many packets from the head is [`Qdisc::upcoming`].
pub(crate) const UPCOMING: usize = 2;

/// A queue discipline. It reads no clock: the time of each call is an argument and never goes backwards.
///
/// Packets that are lost go to `dropped`.
pub trait Qdisc<P> {
    /// The queues inside that packets are told apart by, by name.
    fn bands(&self) -> &'static [&'static str];

    /// Takes in a packet that arrived. Returns how many packets were queued: more than one if an aggregate was split.
    fn enqueue(&mut self, now: Instant, packet: P, dropped: &mut dyn FnMut(Dropped<P>)) -> usize;

    /// The next packet to send; `None` if none waits, or if all that wait are held back
    /// (see [`next_ready`](Self::next_ready)).
    fn dequeue(
        &mut self,
        now: Instant,
        dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Option<Departure<P>>;

    /// Shows the packet that the next [`dequeue`](Self::dequeue) returns.
    fn peek(&mut self, now: Instant, dropped: &mut dyn FnMut(Dropped<P>)) -> Option<&P>;

    /// Whether it decides about a packet as [`peek`](Self::peek) shows it, as Linux does where it takes the packet out for that (`qdisc_peek_dequeued`): how
    /// long the packet has waited then is what its departure tells.
    fn decides_early(&self) -> bool {
        false
    }

    /// A packet that will probably leave soon, for a caller that reads ahead what it knows of its flow. Not all disciplines
    /// tell, and none promises.
    fn upcoming(&self) -> Option<&P> {
        None
    }

    /// Packets waiting.
    fn len(&self) -> usize;

    /// Whether no packet waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// When a link that is free from `now` on should call [`dequeue`](Self::dequeue), if nothing is enqueued before:
    /// `now` if a packet may leave then, later if all are held back (by pacing, a shaper, a delay), and
    /// [`Instant::NEVER`] if none waits. A call before that is no mistake. Where a call at that time or later yields
    /// nothing though packets wait, this has moved on.
    fn next_ready(&self, now: Instant) -> Instant {
        if self.is_empty() { Instant::NEVER } else { now }
    }

    /// When [`on_timer`](Self::on_timer) wants to be called, whether packets wait or not: an AQM updates its probability.
    /// [`Instant::NEVER`] if it need not be. Packets that come and go do not change it.
    fn next_timer(&self) -> Instant;

    /// Does what is due at [`next_timer`](Self::next_timer).
    fn on_timer(&mut self, now: Instant);

    /// As [`on_timer`](Self::on_timer) at each [`next_timer`](Self::next_timer) up to and at `until`, when nothing else
    /// happens until then. While no packet waits, updates that change nothing are skipped, so that years of idle time cost
    /// no more than seconds.
    fn on_idle(&mut self, until: Instant) {
        while self.next_timer() <= until && self.next_timer() < Instant::NEVER {
            self.on_timer(self.next_timer());
        }
    }

    /// Drops all that waits; the counters of what was sent and dropped stay.
    fn reset(&mut self, dropped: &mut dyn FnMut(Dropped<P>));

    /// Changes the parameters that `spec` gives, as `tc qdisc change` does, while packets wait. What a smaller limit of
    /// dualpi2 leaves no room for is dropped at once; a FIFO with a smaller limit drains first.
    ///
    /// # Errors
    /// If `spec` is of another kind, says nothing about a dualpi2, or if this kind cannot be changed. Nothing has changed then.
    fn change(
        &mut self,
        spec: &Spec,
        dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Result<(), ChangeError>;

    /// The parameters in force.
    fn config(&self) -> Config;

    /// The counters, as `tc -s` shows them.
    fn stats(&self, now: Instant) -> Stats;
}

/// Why a discipline was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// Another kind was asked for; tc would have to replace the discipline.
    #[error("this is a {is}, which cannot be changed into a {asked}; replace it instead")]
    OtherKind {
        /// The kind it is.
        is: &'static str,
        /// The kind that was asked for.
        asked: &'static str,
    },
    /// A shaper, whose leaf would have to be changed as well.
    #[error("tbf, htb and netem cannot be changed while they hold packets; replace them instead")]
    Shaper,
    /// Its kind cannot be changed.
    #[error("the kernel changes no {kind}; replace it instead")]
    Fixed {
        /// The kind.
        kind: &'static str,
    },
    /// No option was given that says anything, which the kernel refuses.
    #[error("a change of dualpi2 needs at least one option, such as target 5ms")]
    NothingGiven,
}

impl ChangeError {
    pub(crate) const fn other_kind(is: &'static str, asked: &Spec) -> Self {
        Self::OtherKind { is, asked: asked.kind() }
    }
}
