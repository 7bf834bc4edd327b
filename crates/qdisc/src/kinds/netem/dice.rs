//! Chance: numbers that remember the last one, and models of loss.

use dualpi2::Random;

use super::{CERTAIN, Chance, Loss};

/// Random numbers, each of which has a share of the one before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Correlated {
    correlation: u32,
    last: u32,
}

impl Correlated {
    pub(super) fn new(correlation: u32, dice: &mut impl Random) -> Self {
        // Who does not remember draws no number to begin with.
        let last = if correlation > 0 { dice.next_u32() } else { 0 };
        Self { correlation, last }
    }

    pub(super) const fn is_independent(&self) -> bool {
        self.correlation == 0
    }

    /// The weighted mean of a new number and the last one (tc-netem(8), "correlation").
    pub(super) fn draw(&mut self, dice: &mut impl Random) -> u32 {
        let new = dice.next_u32();
        if self.is_independent() {
            return new;
        }
        let weight = u64::from(self.correlation) + 1;
        let mixed = u64::from(new) * ((1 << 32) - weight) + u64::from(self.last) * weight;
        self.last = (mixed >> 32) as u32;
        self.last
    }
}

/// A chance that is taken again and again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dice {
    share: u32,
    numbers: Correlated,
}

impl Dice {
    pub(super) fn new(chance: Chance, dice: &mut impl Random) -> Self {
        Self { share: chance.share, numbers: Correlated::new(chance.correlation, dice) }
    }

    /// Whether it happens. What never does rolls no dice.
    pub(super) fn strikes(&mut self, dice: &mut impl Random) -> bool {
        self.share > 0 && self.numbers.draw(dice) <= self.share
    }
}

/// Which packets are lost.
#[derive(Clone, Copy, Debug)]
pub(super) enum Losses {
    Never,
    Random(Dice),
    /// A model, and the state that it is in.
    Chain(Loss, State),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Passes packets; the good state.
    Passing,
    /// Passes packets within a burst of losses.
    PassingInBurst,
    /// Loses a burst; the bad state.
    LosingBurst,
    /// Loses one packet alone.
    LosingOne,
}

impl Losses {
    pub(super) fn new(loss: Option<Loss>, dice: &mut impl Random) -> Self {
        match loss {
            None => Self::Never,
            Some(Loss::Random(chance)) => Self::Random(Dice::new(chance, dice)),
            Some(model) => Self::Chain(model, State::Passing),
        }
    }

    /// Whether the next packet is lost.
    pub(super) fn strike(&mut self, dice: &mut impl Random) -> bool {
        match self {
            // Independent losses are no chain.
            Self::Never | Self::Chain(Loss::Random(_), _) => false,
            Self::Random(chance) => chance.strikes(dice),
            Self::Chain(Loss::State { p13, p31, p32, p23, p14 }, state) => {
                let drawn = u64::from(dice.next_u32());
                let (p13, p31, p32) = (u64::from(*p13), u64::from(*p31), u64::from(*p32));
                let (p23, p14) = (u64::from(*p23), u64::from(*p14));
                *state = match *state {
                    State::Passing if drawn < p14 => State::LosingOne,
                    State::Passing if drawn < p14 + p13 => State::LosingBurst,
                    State::PassingInBurst if drawn < p23 => State::LosingBurst,
                    State::LosingBurst if drawn < p32 => State::PassingInBurst,
                    State::LosingBurst if drawn < p32 + p31 => State::Passing,
                    // Alone means that the next one passes.
                    State::LosingOne => State::Passing,
                    stays => stays,
                };
                matches!(*state, State::LosingOne | State::LosingBurst)
            }
            Self::Chain(Loss::Gemodel { p, r, h, one_minus_k }, state) => {
                let (moves, drawn) = (dice.next_u32(), dice.next_u32());
                // The packet is judged by the state before it.
                if *state == State::LosingBurst {
                    if moves < *r {
                        *state = State::Passing;
                    }
                    drawn > *h
                } else {
                    if moves < *p {
                        *state = State::LosingBurst;
                    }
                    drawn < *one_minus_k
                }
            }
        }
    }
}

/// A probability in tc's units.
pub(super) fn units(fraction: f64) -> u32 {
    (fraction * f64::from(CERTAIN)).round_ties_even() as u32
}

#[cfg(test)]
mod tests {
    use dualpi2::SplitMix64;

    use super::*;

    /// What share of packets is lost, and of losses how many follow another loss.
    fn measured(loss: Loss) -> (f64, f64) {
        let mut dice = SplitMix64::new(7);
        let mut losses = Losses::new(Some(loss), &mut dice);
        let (mut lost, mut pairs, mut before) = (0.0, 0.0, false);
        for _ in 0..400_000 {
            let is_lost = losses.strike(&mut dice);
            lost += f64::from(u8::from(is_lost));
            pairs += f64::from(u8::from(is_lost && before));
            before = is_lost;
        }
        (lost / 400_000.0, pairs / lost)
    }

    fn near(is: f64, expected: f64) {
        assert!((is - expected).abs() < 0.05 * expected, "{is}, not {expected}");
    }

    /// In the Gilbert model (h = 0, k = 1) p / (p + r) are lost, and a loss follows a loss with 1 - r.
    #[test]
    fn gilbert_loses_bursts() {
        let (p, r) = (units(0.02), units(0.25));
        let (lost, again) = measured(Loss::Gemodel { p, r, h: 0, one_minus_k: 0 });
        near(lost, 0.02 / 0.27);
        near(again, 0.75);
        let half = Loss::Gemodel { p, r, h: units(0.5), one_minus_k: 0 };
        near(measured(half).0, 0.02 / 0.27 / 2.0);
    }

    /// Without bursts (p13 = 0) losses stand alone: one in every 1 + 1/p14 packets.
    #[test]
    fn four_states_lose_alone_or_in_bursts() {
        let isolated = Loss::State { p13: 0, p31: CERTAIN, p32: 0, p23: CERTAIN, p14: units(0.1) };
        let (lost, again) = measured(isolated);
        near(lost, 0.1 / 1.1);
        assert!(again == 0.0);
        // Two states: as Gilbert.
        let (p13, p31) = (units(0.02), units(0.25));
        let (lost, again) = measured(Loss::State { p13, p31, p32: 0, p23: CERTAIN, p14: 0 });
        near(lost, 0.02 / 0.27);
        near(again, 0.75);
    }

    #[test]
    fn correlated_losses_come_together() {
        let correlation = units(0.5);
        let (rare, again) = measured(Loss::Random(Chance { share: units(0.2), correlation }));
        let (lost, alone) = measured(Loss::Random(Chance::independent(units(0.2))));
        near(lost, 0.2);
        near(alone, 0.2);
        // Means of several numbers are seldom small, so that there are fewer losses than were asked for.
        assert!(rare < 0.5 * lost && again > 2.0 * rare, "{rare} {again}");
    }
}
