//! The control law: a proportional-integral controller on queueing delay (RFC 9332 Appendix A.1, Figure 6), in the
//! kernel's fixed point.

use crate::config::Gain;

/// 100 % in the controller's probabilities.
pub(crate) const MAX_PROBABILITY: u32 = u32::MAX;

/// Gains come in 1/256 Hz but are applied per 1/64 ns of delay error: two bits are kept back when they are scaled and
/// six when they are used, so that the smallest gain does not round to nothing.
const GAIN_SCALE_SHIFT: u32 = 2;
const GAIN_USE_SHIFT: u32 = 6;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A gain as the controller multiplies with it: the change of the probability, in 2⁻³² units, that one nanosecond of
/// delay error makes, times 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScaledGain(u32);

impl ScaledGain {
    pub(crate) const fn new(gain: Gain) -> Self {
        let scaled = (gain.as_256ths() as u64 * MAX_PROBABILITY as u64) >> GAIN_SCALE_SHIFT;
        // Fits for every gain up to MAX_GAIN (2³¹ - 1): about 2.3e9.
        Self((scaled / NANOS_PER_SECOND) as u32)
    }

    /// The gain as the kernel reads it back, rounded down twice: 41/256 Hz comes back as 40/256 Hz.
    pub(crate) const fn unscale(self) -> Gain {
        let unscaled = (self.0 as u64 * NANOS_PER_SECOND) << GAIN_SCALE_SHIFT;
        Gain::from_256ths((unscaled / MAX_PROBABILITY as u64) as u32)
    }
}

/// The PI controller: the base probability p' and what it was computed from.
#[derive(Clone, Debug)]
pub(crate) struct Controller {
    /// p' in units of 2⁻³², 0 to [`MAX_PROBABILITY`].
    pub(crate) probability: u32,
    pub(crate) target_ns: u64,
    pub(crate) alpha: ScaledGain,
    pub(crate) beta: ScaledGain,
    previous_delay_ns: u64,
}

impl Controller {
    pub(crate) const fn new(target_ns: u64, alpha: ScaledGain, beta: ScaledGain) -> Self {
        Self { probability: 0, target_ns, alpha, beta, previous_delay_ns: 0 }
    }

    /// p' += alpha * (delay - target) + beta * (delay - previous delay), clamped to [0, 1] (RFC 9332 Figure 6, line 3).
    ///
    /// With the largest gains a step outgrows 32 bits; the kernel then keeps the low 32 and compares those, and so
    /// does this.
    pub(crate) fn update(&mut self, delay_ns: u64) {
        let error = delay_ns.wrapping_sub(self.target_ns) as i64;
        let trend = delay_ns.wrapping_sub(self.previous_delay_ns) as i64;
        let step = error
            .wrapping_mul(i64::from(self.alpha.0))
            .wrapping_add(trend.wrapping_mul(i64::from(self.beta.0)));
        self.previous_delay_ns = delay_ns;

        let magnitude = (step.unsigned_abs() >> GAIN_USE_SHIFT) as u32;
        let old = self.probability;
        self.probability = if step > 0 {
            let raised = old.wrapping_add(magnitude);
            if raised < old { MAX_PROBABILITY } else { raised }
        } else {
            let lowered = old.wrapping_sub(magnitude);
            if lowered > old { 0 } else { lowered }
        };
    }

    /// What the next update starts from, beside the delay that it is given.
    pub(crate) const fn state(&self) -> (u32, u64) {
        (self.probability, self.previous_delay_ns)
    }
}
