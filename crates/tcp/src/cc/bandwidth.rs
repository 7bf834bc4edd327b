//! What both versions of BBR have: bandwidths and gains in the integer units of Linux's `tcp_bbr.c`, and what follows from them.

use dualq_units::hint::unlikely;

use super::{Context, Window};
use crate::rate::RateSample;

/// Bandwidths are packets per microsecond times 2²⁴.
pub(super) const BW_SCALE: u32 = 24;
pub(super) const BW_UNIT: u64 = 1 << BW_SCALE;
/// Gains are in units of 1/256.
pub(super) const UNIT: u64 = 256;
/// The window before anything is known of the path, in packets.
pub(super) const INITIAL_CWND: u32 = 10;
/// Below this pacing rate, in bytes per second, aggregates are of one segment.
const LOW_RATE: u64 = 1_200_000 / 8;
/// Largest aggregate that the window leaves room for.
const MAX_AGGREGATE_BYTES: u64 = 65_536 - 1 - crate::sender::HEADER_ROOM;
/// No more is allowed for acknowledgements that come at once than the path delivers in this time.
const EXTRA_ACKED_MAX_MICROS: u64 = 100_000;
/// So many acknowledged packets are counted at most.
const EXTRA_ACKED_RESET: u64 = 1 << 20;

/// A bandwidth times `gain`, less the 1 % that pacing leaves free, in bytes per second.
#[inline]
pub(super) fn bytes_per_second(bandwidth: u64, gain: u64, mss: u32) -> u64 {
    let rate = (bandwidth * u64::from(mss) * gain) >> 8;
    // In 128 bits only for what 64 cannot hold.
    let scaled = u128::from(rate) * (1_000_000 / 100 * 99);
    (scaled >> BW_SCALE) as u64
}

/// The bandwidth-delay product times `gain`, in packets.
#[inline]
pub(super) fn bdp(bandwidth: u64, min_rtt_us: u64, gain: u64) -> u32 {
    if unlikely(min_rtt_us == u64::MAX) {
        return INITIAL_CWND;
    }
    let product = bandwidth.saturating_mul(min_rtt_us);
    let scaled = (u128::from(product) * u128::from(gain)) >> 8;
    u32::try_from(scaled.div_ceil(BW_UNIT.into())).unwrap_or(u32::MAX / 4)
}

#[inline]
pub(super) fn gso_segments_goal(window: &Window, mss: u32) -> u32 {
    let bytes = (window.pacing_rate >> 10).min(MAX_AGGREGATE_BYTES);
    ((bytes / u64::from(mss)) as u32).max(min_gso_segments(window)).min(127)
}

#[inline]
pub(super) const fn min_gso_segments(window: &Window) -> u32 {
    if window.pacing_rate < LOW_RATE { 1 } else { 2 }
}

/// What of `in_flight` will be in the network when the newest packet has left the sender's queue.
#[inline]
pub(super) fn in_network(
    in_flight: u32,
    bandwidth: u64,
    pacing_gain: u64,
    window: &Window,
    context: &Context,
) -> u32 {
    let wait_us = context.departure.as_nanos().saturating_sub(context.now.as_nanos()) / 1_000;
    let delivered = (bandwidth * wait_us) >> BW_SCALE;
    let mut at_departure = u64::from(in_flight);
    if pacing_gain > UNIT {
        at_departure += u64::from(gso_segments_goal(window, context.mss));
    }
    at_departure.saturating_sub(delivered) as u32
}

/// How many more packets than expected are acknowledged at once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregation {
    epoch_start_us: u64,
    epoch_acked: u64,
    extra: [u32; 2],
    rounds: u32,
    index: usize,
}

impl Aggregation {
    /// What was acknowledged so far tells nothing of what follows.
    pub(super) const fn restart(&mut self, now_ns: u64) {
        self.epoch_start_us = now_ns / 1_000;
        self.epoch_acked = 0;
    }

    /// Takes an acknowledgement into the maximum of so many round trips, of which one may begin.
    #[inline]
    pub(super) fn update(
        &mut self,
        window: &Window,
        context: &Context,
        sample: &RateSample,
        bandwidth: u64,
        (round_start, rounds): (bool, u32),
    ) {
        if unlikely(
            sample.acked_sacked == 0 || sample.delivered.is_none() || sample.interval_us == 0,
        ) {
            return;
        }
        if round_start {
            self.rounds += 1;
            if self.rounds >= rounds {
                self.rounds = 0;
                self.index ^= 1;
                self.extra[self.index] = 0;
            }
        }
        let delivered_at_us = context.delivered_at.as_nanos() / 1_000;
        let epoch_us = delivered_at_us.saturating_sub(self.epoch_start_us);
        let mut expected = bandwidth.saturating_mul(epoch_us) >> BW_SCALE;
        let acked = u64::from(sample.acked_sacked);
        if self.epoch_acked <= expected || self.epoch_acked + acked >= EXTRA_ACKED_RESET {
            self.epoch_acked = 0;
            self.epoch_start_us = delivered_at_us;
            expected = 0;
        }
        self.epoch_acked = (self.epoch_acked + acked).min(EXTRA_ACKED_RESET - 1);
        let extra = self.epoch_acked.saturating_sub(expected).min(window.cwnd.into()) as u32;
        let best = &mut self.extra[self.index];
        *best = (*best).max(extra);
    }

    /// What the window leaves room for.
    #[inline]
    pub(super) fn extra(&self, bandwidth: u64) -> u32 {
        let most = (bandwidth * EXTRA_ACKED_MAX_MICROS) >> BW_SCALE;
        self.extra[0].max(self.extra[1]).min(most as u32)
    }
}
