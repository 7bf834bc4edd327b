//! What the link below makes of a packet: how many bytes it takes there, and how long these take.

use super::{Atm, Config};
use crate::{Device, FlowPacket};

/// Time for each byte: `(bytes × nanos) >> shift`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ByteTime {
    nanos: u64,
    shift: u32,
}

/// No rate is lower, so that every packet leaves some day.
const LOWEST_RATE: u64 = 64;

impl ByteTime {
    /// At so many bytes per second; 0 for no limit.
    pub(super) fn new(rate: u64) -> Self {
        if rate == 0 {
            return Self::default();
        }
        let mut shift = 34;
        let mut nanos = (1_000_000_000 << shift) / rate.max(LOWEST_RATE);
        while nanos >> 34 > 0 {
            nanos >>= 1;
            shift -= 1;
        }
        Self { nanos, shift }
    }

    /// Whether there is no limit.
    #[inline]
    pub(super) const fn is_none(self) -> bool {
        self.nanos == 0
    }

    /// Nanoseconds of so many bytes.
    #[inline]
    pub(super) const fn of(self, bytes: u32) -> u64 {
        (bytes as u64).saturating_mul(self.nanos) >> self.shift
    }
}

/// Which lengths were seen, in 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) least: u16,
    pub(super) most: u16,
}

impl Range {
    pub(super) const NONE: Self = Self { least: u16::MAX, most: 0 };

    #[inline]
    fn see(&mut self, length: u32) {
        self.least = self.least.min(length as u16);
        self.most = self.most.max(length as u16);
    }
}

/// What it adds, and what was seen.
#[derive(Clone, Debug)]
pub(super) struct Framing {
    overhead: i32,
    mpu: u32,
    atm: Atm,
    is_raw: bool,
    /// Of the network layer.
    pub(super) network: Range,
    /// Of the link.
    pub(super) adjusted: Range,
    /// Bytes before the network layer, a moving average in units of 2⁻¹⁶.
    offset: u32,
}

impl Framing {
    pub(super) const fn new(config: &Config) -> Self {
        Self {
            overhead: config.overhead,
            mpu: config.mpu,
            atm: config.atm,
            is_raw: config.raw,
            network: Range::NONE,
            adjusted: Range::NONE,
            offset: 0,
        }
    }

    /// Bytes before the network layer, on average.
    pub(super) const fn header(&self) -> u32 {
        (self.offset + 0x8000) >> 16
    }

    /// Bytes that a packet takes on the link.
    #[inline]
    pub(super) fn length(&mut self, packet: &impl FlowPacket) -> u32 {
        self.offset -= self.offset >> 8;
        self.offset += (Device::ETHERNET_HEADER << 16) >> 8;
        let (segments, each) = packet.segments();
        let before = each * (segments - 1);
        let last = self.segment(packet.length().saturating_sub(before));
        if segments == 1 { last } else { last + (segments - 1) * self.segment(each) }
    }

    #[inline]
    fn segment(&mut self, mut length: u32) -> u32 {
        if !self.is_raw {
            length = length.saturating_sub(Device::ETHERNET_HEADER);
        }
        self.network.see(length);
        length = length.saturating_add_signed(self.overhead).max(self.mpu);
        length = match self.atm {
            Atm::Noatm => length,
            // Cells of 53 bytes carry 48.
            Atm::Atm => length.div_ceil(48) * 53,
            // A byte for each 64, or part of them: a little more than it is (64b/65b coding).
            Atm::Ptm => length + length.div_ceil(64),
        };
        self.adjusted.see(length);
        length
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::cake::Options;
    use crate::{Ecn, Packet};

    struct Sized(u32);

    impl Packet for Sized {
        fn length(&self) -> u32 {
            self.0
        }
        fn memory(&self) -> u32 {
            self.0
        }
        fn ecn(&self) -> Ecn {
            Ecn::NotEct
        }
        fn set_ce(&mut self) {}
    }

    impl FlowPacket for Sized {}

    #[test]
    fn lengths_on_the_link() {
        for (atm, overhead, mpu, length, expected) in [
            (None, None, None, 1514, 1514),
            (None, Some(0), None, 1514, 1500),
            (None, Some(38), Some(84), 1514, 1538),
            (None, Some(38), Some(84), 54, 84),
            (Some(Atm::Atm), Some(40), None, 1514, 33 * 53),
            (Some(Atm::Ptm), Some(30), None, 1514, 1554),
            (None, Some(-64), None, 60, 0),
        ] {
            let options = Options { atm, overhead, mpu, ..Options::default() };
            let mut framing = Framing::new(&Config::new(&options));
            assert_eq!(framing.length(&Sized(length)), expected, "{options:?}");
        }
    }

    #[test]
    fn a_rate_is_what_its_bytes_take() {
        for rate in [1, 64, 125_000, 6_250_000, 1_250_000_000, 12_500_000_000] {
            let time = ByteTime::new(rate).of(1500);
            let exact = 1500.0 * 1e9 / (rate.max(64) as f64);
            // Cut to a nanosecond.
            assert!((time as f64 - exact).abs() <= 1.0 + exact * 1e-6, "{rate}: {time} {exact}");
        }
        assert!(ByteTime::new(0).is_none());
    }
}
