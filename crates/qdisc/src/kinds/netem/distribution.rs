//! The distributions that tc ships for `netem`, computed.
//!
//! Each is a table of 4096 equally likely deviations, in units of 1/8192 of the jitter (NIST Net's tables, in the public domain; the
//! generators in iproute2's `netem/`): the inverse of the distribution function.

use std::sync::OnceLock;

/// A distribution of delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// The normal distribution.
    Normal,
    /// Pareto's with an exponent of 3, of which each delay is 1.5 less and the rest 4/3 as long.
    Pareto,
    /// A quarter of the first and three of the second.
    Paretonormal,
}

/// How many deviations a table has.
const ENTRIES: usize = 4096;
/// A deviation of once the jitter (`NETEM_DIST_SCALE`).
pub(super) const SCALE: i64 = 8192;
/// The tables are made of four times as many values, of which each fourth is there.
const VALUES: usize = 4 * ENTRIES;
/// Pareto's exponent.
const EXPONENT: f64 = 3.0;

impl Distribution {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Normal, Self::Pareto, Self::Paretonormal];

    /// tc's word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Pareto => "pareto",
            Self::Paretonormal => "paretonormal",
        }
    }

    /// The table, as tc sends it.
    #[must_use]
    pub fn table(self) -> &'static [i16] {
        static TABLES: [OnceLock<Vec<i16>>; 3] = [const { OnceLock::new() }; 3];
        TABLES[self as usize].get_or_init(|| match self {
            Self::Normal => normal().into_iter().map(short).collect(),
            Self::Pareto => (0..ENTRIES).map(|entry| short(pareto(entry))).collect(),
            Self::Paretonormal => {
                let mixed = |(entry, normal)| short((normal + 3 * pareto(entry)) / 4);
                normal().into_iter().enumerate().map(mixed).collect()
            }
        })
    }
}

fn short(value: i32) -> i16 {
    value.clamp(i16::MIN.into(), i16::MAX.into()) as i16
}

/// The greatest multiple of a small step whose share of the normal distribution rounds to that of each entry.
fn normal() -> Vec<i32> {
    const STEP: f64 = 0.000_05;
    let mut values = vec![0.0; VALUES + 1];
    let mut deviation = -10.0;
    while deviation < 10.05 {
        let share = 0.5 + 0.5 * libm::erf(deviation / 2_f64.sqrt());
        values[(VALUES as f64 * share).round_ties_even() as usize] = deviation;
        deviation += STEP;
    }
    let scaled = |value: &f64| (value * SCALE as f64).round_ties_even() as i32;
    values.iter().step_by(4).take(ENTRIES).map(scaled).collect()
}

fn pareto(entry: usize) -> i32 {
    let share = 1.0 - entry as f64 / ENTRIES as f64;
    let deviation = (libm::pow(share, -1.0 / EXPONENT) - 1.5) * 4.0 / 3.0;
    (deviation * SCALE as f64).min(f64::from(i16::MAX)).round_ties_even() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the numbers that iproute2 6.1 ships: their sum, their sum of squares, the first, the last and some between.
    #[test]
    fn tables_are_those_of_tc() {
        for (distribution, sum, squares, some) in SHIPPED {
            let table = distribution.table();
            assert_eq!(table.len(), ENTRIES);
            let total: i64 = table.iter().map(|value| i64::from(*value)).sum();
            let squared: i64 = table.iter().map(|value| i64::from(*value).pow(2)).sum();
            let at = [0, 1, 1000, 2048, 3000, 4000, 4094, 4095].map(|entry| table[entry]);
            assert_eq!((total, squared, at), (sum, squares, some), "{}", distribution.name());
        }
    }

    const SHIPPED: [(Distribution, i64, i64, [i16; 8]); 3] = [
        (
            Distribution::Normal,
            -26163,
            274907053073,
            [-32768, -28307, -5677, 0, 5081, 16285, 27159, 28858],
        ),
        (
            Distribution::Pareto,
            -1123786,
            184990749388,
            [-5461, -5460, -4393, -2622, 566, 21783, 32767, 32767],
        ),
        (
            Distribution::Paretonormal,
            -848968,
            191343507090,
            [-12305, -11171, -4714, -1966, 1694, 20408, 31365, 31789],
        ),
    ];
}
