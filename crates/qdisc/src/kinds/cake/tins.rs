//! Tins: which packets go where (tc-cake(8), RFC 4594), and what each tin's flows are allowed.

use super::cobalt::Parameters;
use super::link::ByteTime;
use super::{Config, Diffserv};
use crate::Device;

/// What a tin is set to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    /// Bytes per second up to which it comes first; 0 for no limit.
    pub(super) rate: u64,
    pub(super) byte_time: ByteTime,
    /// Bytes that a flow may send in its turn.
    pub(super) flow_quantum: u32,
    /// Its weight where there is no limit.
    pub(super) tin_quantum: i64,
    pub(super) law: Parameters,
}

impl Share {
    fn new(rate: u64, weight: u32, config: &Config, device: &Device) -> Self {
        let byte_time = ByteTime::new(rate);
        let mtu_time = byte_time.of(device.max_frame);
        let rtt = config.rtt.as_nanos() as u64;
        let base = u64::from(config.target_us()) * 1000;
        let target = (mtu_time * 3 / 2).max(base);
        let interval = (rtt + target - base).max(target * 2);
        let quantum = if rate == 0 { LONGEST_QUANTUM } else { rate >> 12 };
        Self {
            rate,
            byte_time,
            flow_quantum: quantum.clamp(SHORTEST_QUANTUM, LONGEST_QUANTUM) as u32,
            tin_quantum: weight.max(1).into(),
            law: Parameters { target, interval, mtu_time },
        }
    }
}

const SHORTEST_QUANTUM: u64 = 300;
const LONGEST_QUANTUM: u64 = 1514;

/// The shares of all tins, as the kernel numbers them, the first of which has the whole rate.
pub(super) fn shares(config: &Config, device: &Device) -> Vec<Share> {
    let rate = config.bandwidth.map_or(0, |rate| rate.as_bits_per_second() / 8);
    let share = |rate, weight| Share::new(rate, weight, config, device);
    let shifted =
        |shifts: &[u32]| shifts.iter().map(|shift| share(rate >> shift, 1024 >> shift)).collect();
    match config.diffserv {
        Diffserv::Besteffort => vec![share(rate, 65_535)],
        Diffserv::Diffserv3 => shifted(&[0, 4, 2]),
        Diffserv::Diffserv4 => shifted(&[0, 4, 1, 2]),
        // Each has 7/8 of the one before.
        Diffserv::Precedence | Diffserv::Diffserv8 => {
            let next = |(rate, weight): &(u64, u32)| Some(((rate * 7) >> 3, (weight * 7) >> 3));
            let steps = std::iter::successors(Some((rate, 256)), next).take(8);
            steps.map(|(rate, weight)| share(rate, weight)).collect()
        }
    }
}

/// The tin of a DSCP, by the kernel's number.
#[inline]
pub(super) fn tin(diffserv: Diffserv, dscp: u8) -> usize {
    let class = usize::from(dscp >> 3);
    let is_selector = dscp & 7 == 0;
    match diffserv {
        Diffserv::Besteffort => 0,
        Diffserv::Precedence => class,
        Diffserv::Diffserv3 => match dscp {
            LE | CS1 => 1,
            TOS4 | VA | EF | CS6 | CS7 => 2,
            _ => 0,
        },
        Diffserv::Diffserv4 => match dscp {
            LE | CS1 => 1,
            TOS4 => 2,
            VA | EF => 3,
            _ if is_selector && class >= 4 => 3,
            // CS2, CS3, AF2x, AF3x, AF4x.
            _ if (2..=4).contains(&class) && dscp & 1 == 0 => 2,
            _ => 0,
        },
        Diffserv::Diffserv8 => match dscp {
            LE => 0,
            TOS2 | CS1 => 1,
            TOS4 => 4,
            VA | EF => 6,
            CS2 => 5,
            CS6 | CS7 => 7,
            _ if is_selector && (4..=5).contains(&class) => 6,
            _ if dscp & 1 == 0 => match class {
                // AF1x.
                1 => 1,
                // AF2x.
                2 => 4,
                // CS3, AF3x, AF4x.
                3 | 4 => 3,
                _ => 2,
            },
            _ => 2,
        },
    }
}

/// Code points, by the names of their RFCs (2474, 2597, 3246, 5865, 8622), and two of the older field's (RFC 1349).
const LE: u8 = 0b00_0001;
const TOS2: u8 = 0b00_0010;
const TOS4: u8 = 0b00_0100;
const CS1: u8 = 0b00_1000;
const CS2: u8 = 0b01_0000;
const VA: u8 = 0b10_1100;
const EF: u8 = 0b10_1110;
const CS6: u8 = 0b11_0000;
const CS7: u8 = 0b11_1000;

/// The tins' numbers in the order in which tc shows them.
pub(super) const fn shown(diffserv: Diffserv) -> &'static [usize] {
    match diffserv {
        Diffserv::Besteffort => &[0],
        Diffserv::Diffserv3 => &[1, 0, 2],
        Diffserv::Diffserv4 => &[1, 0, 2, 3],
        Diffserv::Precedence | Diffserv::Diffserv8 => &[0, 1, 2, 3, 4, 5, 6, 7],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of the 64 code points go to each tin, and where the named ones go.
    #[test]
    fn code_points_find_their_tins() {
        let counts = |diffserv| {
            let mut counts = [0; 8];
            (0..64).for_each(|dscp| counts[tin(diffserv, dscp)] += 1);
            counts
        };
        assert_eq!(counts(Diffserv::Besteffort), [64, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(counts(Diffserv::Precedence), [8; 8]);
        assert_eq!(counts(Diffserv::Diffserv3), [57, 2, 5, 0, 0, 0, 0, 0]);
        assert_eq!(counts(Diffserv::Diffserv4), [44, 2, 12, 6, 0, 0, 0, 0]);
        assert_eq!(counts(Diffserv::Diffserv8), [1, 5, 40, 7, 4, 1, 4, 2]);
        assert_eq!([0, LE, EF, CS1].map(|dscp| tin(Diffserv::Diffserv3, dscp)), [0, 1, 2, 1]);
    }
}
