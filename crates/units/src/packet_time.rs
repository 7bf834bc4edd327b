use crate::Rate;

/// How long packets take at a rate, as shapers of the kernel count it: with one multiplication of 32 bits, and so at times a nanosecond less than a
/// division gives (Linux: `psched_ratecfg_precompute`, `psched_l2t_ns`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketTime {
    multiplier: u32,
    shift: u8,
}

impl PacketTime {
    /// Of a rate in whole bytes per second, at least one.
    #[must_use]
    pub const fn new(rate: Rate) -> Self {
        let bytes_per_second = match rate.as_bits_per_second() / 8 {
            0 => 1,
            some => some,
        };
        // As exact as 32 bits are.
        let (mut factor, mut shift) = (1_000_000_000_u64, 0);
        loop {
            let multiplier = (factor / bytes_per_second) as u32;
            if multiplier >> 31 > 0 || factor >> 63 > 0 {
                return Self { multiplier, shift };
            }
            factor <<= 1;
            shift += 1;
        }
    }

    /// In nanoseconds. Of more than 4 GB at once the result wraps.
    #[must_use]
    #[inline]
    pub const fn nanos(self, bytes: u64) -> u64 {
        bytes.wrapping_mul(self.multiplier as u64) >> self.shift
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the world kernel's `htb` counts acknowledgements of 66 and 78 bytes at 48 Mbit/s, where a division gives 11,000 and 13,000 ns.
    #[test]
    fn what_no_fraction_of_two_is_is_cut() {
        let time = PacketTime::new(Rate::from_mbit(48));
        assert_eq!([66, 78, 1514].map(|bytes| time.nanos(bytes)), [10_999, 12_999, 252_333]);
        // 160 ns a byte.
        assert_eq!(PacketTime::new(Rate::from_mbit(50)).nanos(1514), 242_240);
    }

    #[test]
    fn the_slowest_and_the_fastest_rate_have_one_too() {
        assert_eq!(PacketTime::new(Rate::from_bits_per_second(0)).nanos(2), 2_000_000_000);
        assert_eq!(PacketTime::new(Rate::from_bits_per_second(8)).nanos(1), 1_000_000_000);
        assert_eq!(PacketTime::new(Rate::from_mbit(1_000_000)).nanos(1514), 12);
        assert_eq!(PacketTime::new(Rate::from_bits_per_second(u64::MAX)).nanos(1514), 0);
    }
}
