//! What a queue discipline does, and each that does it.

pub(crate) mod bucket;
pub mod cake;
pub mod codel;
mod codel_law;
mod dualpi2;
mod fifo;
pub mod fq;
pub mod fq_codel;
pub mod htb;
pub mod netem;
pub mod pfifo_fast;
pub mod pie;
pub mod pool;
pub mod tbf;

use std::time::Duration;

use ::dualpi2::{Change, DualPi2, Random, SplitMix64};
use dualq_units::Instant;

use self::codel::Codel;
pub(crate) use self::dualpi2::{build as dualpi2, config as dualpi2_config};
pub use self::fifo::Fifo;
use self::fq::Fq;
use self::fq_codel::FqCodel;
use self::htb::Htb;
use self::netem::Netem;
use self::pfifo_fast::PfifoFast;
use self::pie::Pie;
use self::tbf::Tbf;
use crate::show::Stats;
use crate::{Config, FlowPacket, Spec};

/// A packet that leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure<P> {
    /// The packet, CE set if it was marked.
    pub packet: P,
    /// Which of [`Qdisc::bands`] it waited in.
    pub band: usize,
    /// How long it waited.
    pub sojourn: Duration,
    /// Marked by a probability.
    pub marked_by_probability: bool,
    /// Marked by a step.
    pub marked_by_step: bool,
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
    /// A lossy path lost it at random.
    Random,
}

/// So many packets from the head is [`Qdisc::upcoming`].
const UPCOMING: usize = 2;

/// A queue discipline. It reads no clock: the time of each call is an argument and never goes backwards.
///
/// Packets that are lost go to `dropped`.
pub trait Qdisc<P> {
    /// The queues inside that packets are told apart by, by name.
    fn bands(&self) -> &'static [&'static str];

    /// Takes in a packet that arrived. Returns how many packets were queued: more than one if an aggregate was split.
    fn enqueue(&mut self, now: Instant, packet: P, dropped: &mut impl FnMut(Dropped<P>)) -> usize;

    /// The next packet to send; `None` if none waits, or if all that wait are held back
    /// (see [`next_ready`](Self::next_ready)).
    fn dequeue(
        &mut self,
        now: Instant,
        dropped: &mut impl FnMut(Dropped<P>),
    ) -> Option<Departure<P>>;

    /// Shows the packet that the next [`dequeue`](Self::dequeue) returns.
    fn peek(&mut self, now: Instant, dropped: &mut impl FnMut(Dropped<P>)) -> Option<&P>;

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
    /// [`Instant::NEVER`] if it need not be.
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
    fn reset(&mut self, dropped: &mut impl FnMut(Dropped<P>));

    /// The parameters in force.
    fn config(&self) -> Config;

    /// The counters, as `tc -s` shows them.
    fn stats(&self, now: Instant) -> Stats;
}

/// Any of the disciplines. DualPI2 and the FIFOs are at hand; all others lie behind one pointer, so that telling them apart
/// costs the packets of these two nothing.
pub enum Discipline<P, R = SplitMix64> {
    /// DualPI2.
    Dualpi2(DualPi2<P, R>),
    /// `pfifo` or `bfifo`.
    Fifo(Fifo<P>),
    /// Any other.
    Other(Box<Other<P, R>>),
}

/// The disciplines behind a pointer.
#[expect(missing_docs, reason = "named for their kinds")]
pub enum Other<P, R> {
    Codel(Codel<P>),
    FqCodel(FqCodel<P>),
    Pie(Pie<P, R>),
    Tbf(Tbf<P, R>),
    Htb(Htb<P, R>),
    Netem(Netem<P, R>),
    PfifoFast(PfifoFast<P>),
    Fq(Fq<P>),
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
    /// No option was given that says anything, which the kernel refuses.
    #[error("a change of dualpi2 needs at least one option, such as target 5ms")]
    NothingGiven,
}

impl<P: FlowPacket, R: Random> Discipline<P, R> {
    /// Changes the parameters that `spec` gives, as `tc qdisc change` does, while packets wait. What a smaller limit of
    /// dualpi2 leaves no room for is dropped at once; a FIFO with a smaller limit drains first.
    ///
    /// # Errors
    /// If `spec` is of another kind, or says nothing about a dualpi2. Nothing has changed then.
    pub fn change(
        &mut self,
        spec: &Spec,
        dropped: &mut impl FnMut(Dropped<P>),
    ) -> Result<(), ChangeError> {
        match (self, spec) {
            (Self::Dualpi2(_), Spec::Dualpi2(change)) if *change == Change::default() => {
                Err(ChangeError::NothingGiven)
            }
            (Self::Dualpi2(inner), Spec::Dualpi2(change)) => {
                self::dualpi2::change(inner, change, dropped);
                Ok(())
            }
            (Self::Fifo(inner), spec) if inner.limit().kind() == spec.kind() => {
                inner.change(spec);
                Ok(())
            }
            (Self::Other(inner), spec) => inner.change(spec, dropped),
            (other, spec) => {
                let is = other.config().kind();
                Err(ChangeError::OtherKind { is, asked: spec.kind() })
            }
        }
    }
}

impl<P: FlowPacket, R: Random> Other<P, R> {
    fn change(
        &mut self,
        spec: &Spec,
        dropped: &mut impl FnMut(Dropped<P>),
    ) -> Result<(), ChangeError> {
        match (self, spec) {
            (Self::Codel(inner), Spec::Codel(options)) => inner.change(options, dropped),
            (Self::FqCodel(inner), Spec::FqCodel(options)) => inner.change(options, dropped),
            (Self::Pie(inner), Spec::Pie(options)) => inner.change(options, dropped),
            (Self::Fq(inner), Spec::Fq(options)) => inner.change(options, dropped),
            (Self::Tbf(_), Spec::Tbf(_))
            | (Self::Htb(_), Spec::Htb(_))
            | (Self::Netem(_), Spec::Netem(_)) => return Err(ChangeError::Shaper),
            // There is nothing to change.
            (Self::PfifoFast(_), Spec::PfifoFast(_)) => {}
            (other, spec) => {
                let is = other.config().kind();
                return Err(ChangeError::OtherKind { is, asked: spec.kind() });
            }
        }
        Ok(())
    }
}

/// Hands every call on to the discipline inside; those in a box are opened.
macro_rules! forward {
    ($type:ident, $inline:meta, [$($direct:ident),*], [$($boxed:ident),*]) => {
        impl<P: FlowPacket, R: Random> Qdisc<P> for $type<P, R> {
            #[$inline]
            fn bands(&self) -> &'static [&'static str] {
                match self {
                    $(Self::$direct(inner) => Qdisc::<P>::bands(inner),)*
                    $(Self::$boxed(inner) => Qdisc::<P>::bands(inner.as_ref()),)*
                }
            }

            #[$inline]
            fn enqueue(&mut self, now: Instant, packet: P, dropped: &mut impl FnMut(Dropped<P>)) -> usize {
                match self {
                    $(Self::$direct(inner) => Qdisc::enqueue(inner, now, packet, dropped),)*
                    $(Self::$boxed(inner) => Qdisc::enqueue(inner.as_mut(), now, packet, dropped),)*
                }
            }

            #[$inline]
            fn dequeue(&mut self, now: Instant, dropped: &mut impl FnMut(Dropped<P>)) -> Option<Departure<P>> {
                match self {
                    $(Self::$direct(inner) => Qdisc::dequeue(inner, now, dropped),)*
                    $(Self::$boxed(inner) => Qdisc::dequeue(inner.as_mut(), now, dropped),)*
                }
            }

            #[$inline]
            fn peek(&mut self, now: Instant, dropped: &mut impl FnMut(Dropped<P>)) -> Option<&P> {
                match self {
                    $(Self::$direct(inner) => Qdisc::peek(inner, now, dropped),)*
                    $(Self::$boxed(inner) => Qdisc::peek(inner.as_mut(), now, dropped),)*
                }
            }

            #[$inline]
            fn upcoming(&self) -> Option<&P> {
                match self {
                    $(Self::$direct(inner) => Qdisc::<P>::upcoming(inner),)*
                    $(Self::$boxed(inner) => Qdisc::<P>::upcoming(inner.as_ref()),)*
                }
            }

            #[$inline]
            fn len(&self) -> usize {
                match self {
                    $(Self::$direct(inner) => Qdisc::<P>::len(inner),)*
                    $(Self::$boxed(inner) => Qdisc::<P>::len(inner.as_ref()),)*
                }
            }

            #[$inline]
            fn next_ready(&self, now: Instant) -> Instant {
                match self {
                    $(Self::$direct(inner) => Qdisc::<P>::next_ready(inner, now),)*
                    $(Self::$boxed(inner) => Qdisc::<P>::next_ready(inner.as_ref(), now),)*
                }
            }

            #[$inline]
            fn next_timer(&self) -> Instant {
                match self {
                    $(Self::$direct(inner) => Qdisc::<P>::next_timer(inner),)*
                    $(Self::$boxed(inner) => Qdisc::<P>::next_timer(inner.as_ref()),)*
                }
            }

            #[$inline]
            fn on_timer(&mut self, now: Instant) {
                match self {
                    $(Self::$direct(inner) => Qdisc::<P>::on_timer(inner, now),)*
                    $(Self::$boxed(inner) => Qdisc::<P>::on_timer(inner.as_mut(), now),)*
                }
            }

            #[$inline]
            fn on_idle(&mut self, until: Instant) {
                match self {
                    $(Self::$direct(inner) => Qdisc::<P>::on_idle(inner, until),)*
                    $(Self::$boxed(inner) => Qdisc::<P>::on_idle(inner.as_mut(), until),)*
                }
            }

            #[$inline]
            fn reset(&mut self, dropped: &mut impl FnMut(Dropped<P>)) {
                match self {
                    $(Self::$direct(inner) => Qdisc::reset(inner, dropped),)*
                    $(Self::$boxed(inner) => Qdisc::reset(inner.as_mut(), dropped),)*
                }
            }

            #[$inline]
            fn config(&self) -> Config {
                match self {
                    $(Self::$direct(inner) => Qdisc::<P>::config(inner),)*
                    $(Self::$boxed(inner) => Qdisc::<P>::config(inner.as_ref()),)*
                }
            }

            #[$inline]
            fn stats(&self, now: Instant) -> Stats {
                match self {
                    $(Self::$direct(inner) => Qdisc::<P>::stats(inner, now),)*
                    $(Self::$boxed(inner) => Qdisc::<P>::stats(inner.as_ref(), now),)*
                }
            }
        }
    };
}

forward!(Discipline, inline, [Dualpi2, Fifo], [Other]);
forward!(Other, inline(never), [Codel, FqCodel, Pie, Tbf, Htb, Netem, PfifoFast, Fq], []);
