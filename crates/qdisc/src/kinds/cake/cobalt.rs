//! COBALT, for one queue: CoDel for flows that answer to signals, and beside it BLUE for those that do not (Høiland-Jørgensen, Täht,
//! Morton, "Piece of CAKE", 2018, section III-C; RFC 8289; Feng et al., "BLUE", 2002).
//!
//! As Linux does it: times are nanoseconds; the drop interval counts down again as it counted up; a delay counts only if it is above
//! four times what the largest packet takes on the link.

use dualpi2::Random;

use crate::Packet;

/// Probabilities of BLUE have 32 bits: what a full queue adds, 1/256, and what an empty one takes away, 1/4096.
const INCREMENT: u32 = 1 << 24;
const DECREMENT: u32 = 1 << 20;

/// From here on one step of Newton's method is enough from one count to the next.
const EXACT: usize = 16;

/// 1/√count in units of 2⁻³², with the same for 0 as for 1: as near to 1 as there is.
const INVERSE_ROOTS: [u32; EXACT] = {
    let mut roots = [u32::MAX; EXACT];
    let mut count = 2;
    while count < EXACT {
        // √(2⁶⁴ / count), which is 2³² / √count.
        roots[count] = ((u128::MAX / 2 / count as u128) >> 63).isqrt() as u32;
        count += 1;
    }
    roots
};

/// What the law is set to, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Parameters {
    pub(super) target: u64,
    pub(super) interval: u64,
    /// What the largest packet takes on the link.
    pub(super) mtu_time: u64,
}

/// What becomes of a packet that has come to the head of its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Leaves,
    LeavesMarked,
    Goes,
}

/// The state of one queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Cobalt {
    /// Signals since the delay was above the target.
    pub(super) count: u32,
    inverse_root: u32,
    pub(super) dropping: bool,
    /// BLUE's probability.
    pub(super) probability: u32,
    /// When the next signal is due; before there was any, until when the queue is remembered.
    pub(super) next: u64,
    /// When BLUE last moved.
    moved: u64,
}

impl Cobalt {
    fn find_root(&mut self) {
        if let Some(root) = INVERSE_ROOTS.get(self.count as usize) {
            self.inverse_root = *root;
            return;
        }
        // x ← x (3 - count x²) / 2
        let x = u64::from(self.inverse_root);
        let square = (x * x) >> 32;
        let bracket = (3_u64 << 32).saturating_sub(u64::from(self.count) * square);
        self.inverse_root = (((bracket >> 2) * x) >> 31) as u32;
    }

    /// The signal after one at `time`: interval/√count later (RFC 8289 §4.3).
    const fn after(&self, time: u64, parameters: &Parameters) -> u64 {
        time + ((parameters.interval as u32 as u64 * self.inverse_root as u64) >> 32)
    }

    /// The count falls, and the next signal is due that much later.
    fn count_down(&mut self, parameters: &Parameters) {
        self.count -= 1;
        self.find_root();
        self.next = self.after(self.next, parameters);
    }

    /// A packet had to go as there was no room. Says whether BLUE begins.
    pub(super) fn is_full(&mut self, parameters: &Parameters, now: u64) -> bool {
        let mut begins = false;
        if now.saturating_sub(self.moved) > parameters.target {
            begins = self.probability == 0;
            self.probability = self.probability.saturating_add(INCREMENT);
            self.moved = now;
        }
        (self.dropping, self.next) = (true, now);
        self.count = self.count.max(1);
        begins
    }

    /// The queue was found empty. Says whether BLUE ends.
    pub(super) fn is_empty(&mut self, parameters: &Parameters, now: u64) -> bool {
        let mut ends = false;
        if self.probability > 0 && now.saturating_sub(self.moved) > parameters.target {
            self.probability = self.probability.saturating_sub(DECREMENT);
            self.moved = now;
            ends = self.probability == 0;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.next {
            self.count_down(parameters);
        }
        ends
    }

    /// Whether it has to be remembered though its queue is empty.
    pub(super) const fn is_remembered(&self, now: u64) -> bool {
        self.probability > 0 || self.count > 0 || now < self.next
    }

    /// Judges a packet that waited since `enqueued`, and marks it if that is how it is told. `bulk_flows` share a link that the packet has
    /// already passed.
    pub(super) fn judge(
        &mut self,
        parameters: &Parameters,
        (now, enqueued): (u64, u64),
        packet: &mut impl Packet,
        bulk_flows: u32,
        random: &mut impl Random,
    ) -> Verdict {
        let waited = now - enqueued;
        let is_due = self.count > 0 && now >= self.next;
        let mut passed = now.checked_sub(self.next);
        let Parameters { target, mtu_time, .. } = *parameters;
        let is_above = waited > target
            && waited > mtu_time * u64::from(bulk_flows) * 2
            && waited > mtu_time * 4;
        if is_above {
            if !self.dropping {
                self.dropping = true;
                self.next = self.after(now, parameters);
            }
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }
        let mut verdict = Verdict::Leaves;
        if is_due && self.dropping {
            verdict = Verdict::Goes;
            if packet.ecn().is_capable() {
                packet.set_ce();
                verdict = Verdict::LeavesMarked;
            }
            self.count = self.count.saturating_add(1);
            self.find_root();
            self.next = self.after(self.next, parameters);
            passed = now.checked_sub(self.next);
        } else if is_due {
            while self.count > 0 && now >= self.next {
                self.count_down(parameters);
                passed = now.checked_sub(self.next);
            }
        }
        // Who does not answer to marks either is not asked whether it knows them.
        if self.probability > 0 && verdict != Verdict::Goes && random.next_u32() < self.probability
        {
            verdict = Verdict::Goes;
        }
        if self.count == 0 {
            self.next = now + parameters.interval;
        } else if passed.is_some_and(|passed| passed > 0) && verdict != Verdict::Goes {
            self.next = now;
        }
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the paper's authors computed by eight steps of Newton's method.
    #[test]
    fn roots_are_exact_at_first() {
        let known = [3_037_000_500, 2_479_700_525, 2_147_483_647];
        for (root, known) in INVERSE_ROOTS[2..].iter().zip(known) {
            assert!(root.abs_diff(known) <= 1, "{root} {known}");
        }
        let mut law = Cobalt::default();
        for count in (1..2000).chain((1..1999).rev()) {
            law.count = count;
            law.find_root();
            let exact = 2_f64.powi(32) / f64::from(count).sqrt();
            let error = (f64::from(law.inverse_root) / exact - 1.0).abs();
            assert!(error < 0.003, "{count}: {error}");
        }
    }
}
