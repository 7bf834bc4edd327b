//! From one base probability to two: squared for classic, times the coupling factor for L4S (RFC 9332 §2.1,
//! equation 1), and what happens when the second would pass 100 % (RFC 9332 §4.2.3, Figure 7).

use crate::config::Overload;
use crate::packet::{Class, Ecn};
use crate::pi2::MAX_PROBABILITY;
use crate::random::Random;

/// What the AQM does with one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    Mark,
    Drop,
}

/// The two probabilities, computed once an update rather than once a packet.
#[derive(Clone, Debug)]
pub(crate) struct Coupling {
    /// p', rolled twice for classic: p_C = p'².
    base: u32,
    /// p_CL = k p', meaningless in overload.
    coupled: u32,
    /// p_CL would be above 100 %.
    overload: bool,
    factor: u8,
    on_overload: Overload,
}

impl Coupling {
    pub(crate) fn new(base: u32, factor: u8, on_overload: Overload) -> Self {
        let coupled = u64::from(base) * u64::from(factor);
        Self {
            base,
            coupled: coupled as u32,
            overload: coupled > u64::from(MAX_PROBABILITY),
            factor,
            on_overload,
        }
    }

    pub(crate) const fn factor(&self) -> u8 {
        self.factor
    }

    pub(crate) const fn on_overload(&self) -> Overload {
        self.on_overload
    }

    /// The highest base probability that the configuration lets the controller reach: without drops on overload,
    /// L4S marking stops at 100 %, and classic must not be treated worse than that (RFC 9332 Figure 2, line 11).
    pub(crate) fn base_limit(&self) -> u32 {
        match self.on_overload {
            Overload::Drop => MAX_PROBABILITY,
            Overload::Overflow => MAX_PROBABILITY / u32::from(self.factor),
        }
    }

    /// Rolls the dice for a packet. Draws no number that the decision does not need.
    ///
    /// Most packets pass by their first roll; that way there is kept free of branches on the class, which changes from
    /// packet to packet as no branch predictor can foresee.
    #[inline]
    pub(crate) fn roll(&self, class: Class, ecn: Ecn, random: &mut impl Random) -> Verdict {
        if self.overload || class == Class::LowLatency {
            return self.roll_specially(class, ecn, random);
        }
        let first = if class == Class::Classic { self.base } else { self.coupled };
        if random.next_u32() > first {
            return Verdict::Pass;
        }
        // p_C = p'^2: classic needs to roll below p' twice.
        if class == Class::Classic && random.next_u32() > self.base {
            return Verdict::Pass;
        }
        if ecn == Ecn::NotEct { Verdict::Drop } else { Verdict::Mark }
    }

    /// In overload, ECN no longer saves classic packets, and L4S packets are dropped as classic ones are, or not at all
    /// (RFC 9332 Figure 7, lines 8c to 8i and 12b).
    #[inline(never)]
    fn roll_specially(&self, class: Class, ecn: Ecn, random: &mut impl Random) -> Verdict {
        let mut squared = || random.next_u32() <= self.base && random.next_u32() <= self.base;
        match class {
            Class::Classic if squared() => Verdict::Drop,
            Class::L4s if self.on_overload == Overload::Drop && squared() => Verdict::Drop,
            Class::L4s if ecn != Ecn::NotEct => Verdict::Mark,
            Class::Classic | Class::L4s | Class::LowLatency => Verdict::Pass,
        }
    }
}
