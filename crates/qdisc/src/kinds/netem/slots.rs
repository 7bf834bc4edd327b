//! When packets may leave that leave in slots.

use std::time::Duration;

use dualpi2::Random;
use dualq_units::Instant;

use super::dice::Correlated;
use super::distribution::{Distribution, SCALE};
use super::{Distance, Slots};

/// The slot that is next or now, and what still fits into it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slotted {
    slots: Slots,
    distribution: Option<Distribution>,
    /// When it begins.
    next: Instant,
    packets: i64,
    bytes: i64,
}

impl Slotted {
    /// One that begins at `now`.
    pub(super) fn new(slots: Slots, distribution: Option<Distribution>, now: Instant) -> Self {
        let mut this = Self { slots, distribution, next: now, packets: 0, bytes: 0 };
        this.refill();
        this
    }

    fn refill(&mut self) {
        let most = |most: u32| if most == 0 { i64::MAX } else { i64::from(most) };
        (self.packets, self.bytes) = (most(self.slots.packets), most(self.slots.bytes));
    }

    /// When it begins.
    pub(super) const fn next(&self) -> Instant {
        self.next
    }

    /// A packet is due at `due`: if that is after the slot has begun, there is another one.
    pub(super) fn look(&mut self, now: Instant, due: Instant, dice: &mut impl Random) {
        if self.next < due {
            self.advance(now, dice);
        }
    }

    /// A packet has left in it.
    pub(super) fn left(&mut self, now: Instant, length: u32, dice: &mut impl Random) {
        self.packets -= 1;
        self.bytes -= i64::from(length);
        if self.packets <= 0 || self.bytes <= 0 {
            self.advance(now, dice);
        }
    }

    fn advance(&mut self, now: Instant, dice: &mut impl Random) {
        let distance = match self.slots.distance {
            Distance::Uniform(least, most) => {
                let span = most.saturating_sub(least).as_nanos();
                least + Duration::from_nanos(((u128::from(dice.next_u32()) * span) >> 32) as u64)
            }
            Distance::Distributed(mean, deviation) => {
                let mut numbers = Correlated::new(0, dice);
                distributed(mean, deviation, self.distribution, &mut numbers, dice)
            }
        };
        self.next = now + distance;
        self.refill();
    }
}

/// A time around `mean`: uniform within `deviation` to either side, or as the distribution has it. What would be before 0 is 0.
pub(super) fn distributed(
    mean: Duration,
    deviation: Duration,
    distribution: Option<Distribution>,
    numbers: &mut Correlated,
    dice: &mut impl Random,
) -> Duration {
    let signed = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    let (mean, sigma) = (signed(mean), signed(deviation));
    if sigma == 0 {
        return Duration::from_nanos(mean.unsigned_abs());
    }
    let drawn = i64::from(numbers.draw(dice));
    // As Linux: the remainder keeps little of what a number remembers.
    let away = match distribution {
        None => drawn % (2 * sigma) - sigma,
        Some(distribution) => {
            let table = distribution.table();
            let deviations = i64::from(table[drawn as usize % table.len()]);
            // Rounded to the nearest, away from 0 in the middle.
            let rest = sigma % SCALE * deviations;
            let rest = (rest + if rest >= 0 { SCALE / 2 } else { -SCALE / 2 }) / SCALE;
            rest + sigma / SCALE * deviations
        }
    };
    Duration::from_nanos(u64::try_from(mean.saturating_add(away)).unwrap_or(0))
}
