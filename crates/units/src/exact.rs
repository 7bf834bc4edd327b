//! Quantities printed so that they read back as what they were. tc's own way to show them rounds: 1,999,900,000 bit/s is
//! `1999Mbit` there.

use std::fmt;
use std::time::Duration;

use crate::{Bytes, Rate};

/// A quantity in tc's words without any rounding: what reads rates, sizes and times reads the same value back.
///
/// ```
/// use dualq_units::{Exact, Rate};
///
/// let rate: Rate = "1.9999gbit".parse()?;
/// assert_eq!(rate.to_string(), "1999Mbit");
/// assert_eq!(Exact(rate).to_string(), "1999900Kbit");
/// assert_eq!(Exact(rate).to_string().parse(), Ok(rate));
/// # Ok::<(), dualq_units::ParseUnitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exact<T>(pub T);

/// A number in the largest unit of which it is a whole multiple. Units are `step` times as large as the one before.
fn whole(f: &mut fmt::Formatter<'_>, number: u64, step: u64, units: &[&str]) -> fmt::Result {
    let (mut number, mut name) = (number, units[0]);
    for larger in &units[1..] {
        if number == 0 || !number.is_multiple_of(step) {
            break;
        }
        number /= step;
        name = larger;
    }
    write!(f, "{number}{name}")
}

impl fmt::Display for Exact<Rate> {
    /// In the largest unit of which it is a whole multiple: `50Mbit`, `1500Kbit`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        whole(f, self.0.as_bits_per_second(), 1000, &["bit", "Kbit", "Mbit", "Gbit", "Tbit"])
    }
}

impl fmt::Display for Exact<Bytes> {
    /// In the largest unit of which it is a whole multiple: `10Mb`, `1500b`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        whole(f, self.0.0, 1024, &["b", "Kb", "Mb", "Gb"])
    }
}

impl fmt::Display for Exact<Duration> {
    /// In seconds from one on, in milliseconds below: `2.5s`, `48.33ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest, digits, unit) = match self.0.as_secs() {
            0 => {
                let nanos = self.0.subsec_nanos();
                (u64::from(nanos / 1_000_000), nanos % 1_000_000, 6, "ms")
            }
            seconds => (seconds, self.0.subsec_nanos(), 9, "s"),
        };
        if rest == 0 {
            return write!(f, "{whole}{unit}");
        }
        let fraction = format!("{rest:0digits$}");
        write!(f, "{whole}.{}{unit}", fraction.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tc_time;

    #[test]
    fn the_largest_whole_unit() {
        for (bits, text) in [
            (0, "0bit"),
            (50_000_000, "50Mbit"),
            (1_500_000, "1500Kbit"),
            (1_999_900_000, "1999900Kbit"),
            (123_456_789, "123456789bit"),
            (4_000_000_000_000_000, "4000Tbit"),
        ] {
            assert_eq!(Exact(Rate::from_bits_per_second(bits)).to_string(), text);
        }
        for (bytes, text) in [(0, "0b"), (10_230, "10230b"), (10_240, "10Kb"), (1 << 40, "1024Gb")]
        {
            assert_eq!(Exact(Bytes(bytes)).to_string(), text);
        }
        for (nanos, text) in [
            (0, "0ms"),
            (1, "0.000001ms"),
            (48_330_000, "48.33ms"),
            (2_500_000_000, "2.5s"),
            (40_000_000_000, "40s"),
        ] {
            assert_eq!(Exact(Duration::from_nanos(nanos)).to_string(), text);
        }
    }

    /// Numbers of every size, and round ones.
    fn numbers() -> impl Strategy<Value = u64> {
        let sized = (any::<u64>(), 0..64_u32).prop_map(|(number, shift)| number >> shift);
        let scale = prop::sample::select(vec![1, 1_000, 1 << 10, 1_000_000, 1 << 20, 1 << 30]);
        (sized, scale).prop_map(|(number, scale)| number.checked_mul(scale).unwrap_or(number))
    }

    proptest! {
        #[test]
        fn reads_back_as_what_it_was(number in numbers()) {
            let rate = Rate::from_bits_per_second(number);
            prop_assert_eq!(Exact(rate).to_string().parse(), Ok(rate));
            let size = Bytes(number);
            prop_assert_eq!(Exact(size).to_string().parse(), Ok(size));
            let time = Duration::from_nanos(number);
            prop_assert_eq!(tc_time::parse(&Exact(time).to_string()), Ok(time));
        }
    }

    #[test]
    fn so_do_the_largest() {
        let rate = Rate::from_bits_per_second(u64::MAX);
        assert_eq!(Exact(rate).to_string().parse(), Ok(rate));
        assert_eq!(Exact(Bytes(u64::MAX)).to_string().parse(), Ok(Bytes(u64::MAX)));
        let time = Duration::from_nanos(u64::MAX);
        assert_eq!(tc_time::parse(&Exact(time).to_string()), Ok(time));
    }
}
