//! Any discipline, built.

use dualpi2::{DualPi2, Random, SplitMix64};
use dualq_units::Instant;

use crate::kinds::fifo::Fifo;
use crate::qdisc::{ChangeError, Departure, Dropped, Qdisc};
use crate::show::Stats;
use crate::{Config, FlowPacket, Spec};

/// Any discipline. DualPI2 and the FIFOs are at hand; all others, those of other crates too, lie behind one pointer, so that telling
/// them apart costs the packets of these two nothing. What takes or gives a packet is always inlined here and in the disciplines: each
/// function more hands it on by way of memory, where what was just written in small parts and is read in large ones is waited for.
// With a tag of its own, which takes less to look at than one in the unused values of a field.
#[repr(u8)]
pub enum Discipline<P, R = SplitMix64> {
    /// DualPI2.
    Dualpi2(DualPi2<P, R>),
    /// `pfifo` or `bfifo`.
    Fifo(Fifo<P>),
    /// Any other.
    Boxed(Box<dyn Qdisc<P> + Send>),
}

impl<P, R> Discipline<P, R> {
    /// One that is not at hand.
    pub(crate) fn boxed(inner: impl Qdisc<P> + Send + 'static) -> Self {
        Self::Boxed(Box::new(inner))
    }
}

/// Hands a call on to what is inside.
macro_rules! inside {
    ($self:ident, $open:ident, $inner:ident => $call:expr) => {
        match $self {
            Self::Dualpi2($inner) => $call,
            Self::Fifo($inner) => $call,
            Self::Boxed($inner) => {
                let $inner = $inner.$open();
                $call
            }
        }
    };
}

impl<P: FlowPacket, R: Random> Qdisc<P> for Discipline<P, R> {
    #[inline]
    fn bands(&self) -> &'static [&'static str] {
        inside!(self, as_ref, inner => Qdisc::<P>::bands(inner))
    }

    #[inline(always)]
    fn enqueue(&mut self, now: Instant, packet: P, dropped: &mut dyn FnMut(Dropped<P>)) -> usize {
        inside!(self, as_mut, inner => Qdisc::enqueue(inner, now, packet, dropped))
    }

    #[inline(always)]
    fn dequeue(
        &mut self,
        now: Instant,
        dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Option<Departure<P>> {
        inside!(self, as_mut, inner => Qdisc::dequeue(inner, now, dropped))
    }

    #[inline]
    fn peek(&mut self, now: Instant, dropped: &mut dyn FnMut(Dropped<P>)) -> Option<&P> {
        inside!(self, as_mut, inner => Qdisc::peek(inner, now, dropped))
    }

    fn decides_early(&self) -> bool {
        inside!(self, as_ref, inner => Qdisc::<P>::decides_early(inner))
    }

    #[inline]
    fn upcoming(&self) -> Option<&P> {
        inside!(self, as_ref, inner => Qdisc::<P>::upcoming(inner))
    }

    #[inline]
    fn len(&self) -> usize {
        inside!(self, as_ref, inner => Qdisc::<P>::len(inner))
    }

    #[inline]
    fn next_ready(&self, now: Instant) -> Instant {
        inside!(self, as_ref, inner => Qdisc::<P>::next_ready(inner, now))
    }

    #[inline]
    fn next_timer(&self) -> Instant {
        inside!(self, as_ref, inner => Qdisc::<P>::next_timer(inner))
    }

    #[inline]
    fn on_timer(&mut self, now: Instant) {
        inside!(self, as_mut, inner => Qdisc::<P>::on_timer(inner, now));
    }

    #[inline]
    fn on_idle(&mut self, until: Instant) {
        inside!(self, as_mut, inner => Qdisc::<P>::on_idle(inner, until));
    }

    fn reset(&mut self, dropped: &mut dyn FnMut(Dropped<P>)) {
        inside!(self, as_mut, inner => Qdisc::reset(inner, dropped));
    }

    fn change(
        &mut self,
        spec: &Spec,
        dropped: &mut dyn FnMut(Dropped<P>),
    ) -> Result<(), ChangeError> {
        inside!(self, as_mut, inner => Qdisc::change(inner, spec, dropped))
    }

    fn config(&self) -> Config {
        inside!(self, as_ref, inner => Qdisc::<P>::config(inner))
    }

    fn stats(&self, now: Instant) -> Stats {
        inside!(self, as_ref, inner => Qdisc::<P>::stats(inner, now))
    }
}
