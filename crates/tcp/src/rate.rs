//! Delivery-rate samples (draft-cheng-iccrg-delivery-rate-estimation-02): how fast the network delivered what one
//! acknowledgement covers.

use dualq_units::hint::unlikely;

use crate::scoreboard::{APP_LIMITED, Segment};
use crate::tick::micros_between;

/// What one acknowledgement tells of the delivery rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateSample {
    /// Packets delivered over the interval; `None` without a valid sample.
    pub delivered: Option<u32>,
    /// Whether something outstanding was delivered, also where that makes no valid sample.
    pub delivers: bool,
    /// Packets that had been delivered when the newest acknowledged packet was sent.
    pub prior_delivered: u64,
    /// The interval in microseconds: the longer of sending and acknowledging time.
    pub interval_us: u64,
    /// The round-trip time of this acknowledgement, if it has one.
    pub rtt_us: Option<u64>,
    /// Packets that were deemed lost on this acknowledgement.
    pub losses: u32,
    /// Packets newly acknowledged, selectively or not.
    pub acked_sacked: u32,
    /// Packets that it tells to have arrived with CE.
    pub marks: u32,
    /// Whether it says that packets arrived with CE, counted or echoed.
    pub ece: bool,
    /// Packets in flight before this acknowledgement.
    pub prior_in_flight: u32,
    /// Whether the sender had too little to send within the interval.
    pub app_limited: bool,
    /// Whether the acknowledgement may have waited for the receiver's timer.
    pub ack_delayed: bool,
    /// Packets in flight when the newest acknowledged packet was sent, with that; only for controls that want to be told of losses
    /// ([`needs_losses`](crate::cc::CongestionControl::needs_losses)), else 0.
    pub tx_in_flight: u32,
    /// Packets deemed lost since then.
    pub lost: u32,
}

/// A packet that is deemed lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostPacket {
    /// Packets in flight when it was sent, with it.
    pub tx_in_flight: u32,
    /// Packets deemed lost since then, with it.
    pub lost: u32,
    /// Whether the sender had too little to send then.
    pub app_limited: bool,
}

/// The connection's side of the samples.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RateEstimator {
    /// Packets delivered so far.
    pub(crate) delivered: u64,
    /// Of these, those that arrived with CE, as far as the receiver has told.
    pub(crate) delivered_ce: u64,
    /// Packets deemed lost so far.
    pub(crate) lost: u64,
    /// When `delivered` last grew.
    pub(crate) delivered_at_ns: u64,
    /// When the packet was sent that starts the current sending interval.
    pub(crate) first_sent_ns: u64,
    /// Samples are limited by the application until that many packets are delivered; 0 if they are not.
    pub(crate) app_limited_until: u64,
}

/// What a packet remembers of the connection when it was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SendStamp {
    pub(crate) sent_ns: u64,
    pub(crate) first_sent_ns: u64,
    pub(crate) delivered_at_ns: u64,
    /// The lower halves of these counts: no more than 2³² packets come between.
    delivered: u32,
    lost: u32,
}

/// The newest acknowledged packet's stamp, found while one acknowledgement is processed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SampleBuilder {
    newest: Option<Segment>,
}

impl SendStamp {
    /// Packets delivered since then, of so many in all.
    #[inline]
    const fn delivered_since(&self, delivered: u64) -> u32 {
        (delivered as u32).wrapping_sub(self.delivered)
    }
}

impl RateEstimator {
    /// The stamp of a packet that is sent at `sent_ns` while `packets_out` packets are outstanding.
    #[inline]
    pub(crate) fn stamp(&mut self, sent_ns: u64, packets_out: u32) -> SendStamp {
        if unlikely(packets_out == 0) {
            self.first_sent_ns = sent_ns;
            self.delivered_at_ns = sent_ns;
        }
        SendStamp {
            sent_ns,
            first_sent_ns: self.first_sent_ns,
            delivered_at_ns: self.delivered_at_ns,
            delivered: self.delivered as u32,
            lost: self.lost as u32,
        }
    }

    /// Packets deemed lost since that was sent.
    #[inline]
    pub(crate) const fn lost_since(lost: u64, stamp: &SendStamp) -> u32 {
        (lost as u32).wrapping_sub(stamp.lost)
    }

    /// Whether the application, and not the network, limits what is sent now.
    #[inline]
    pub(crate) const fn is_app_limited(&self) -> bool {
        self.app_limited_until != 0
    }

    /// An acknowledgement that arrived at `now_ns` has told of the delivery of so many packets.
    #[inline]
    pub(crate) fn acknowledged(&mut self, builder: &SampleBuilder, now_ns: u64, acked_sacked: u32) {
        if self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        if acked_sacked > 0 {
            self.delivered_at_ns = now_ns;
        }
        if let Some(newest) = &builder.newest {
            self.first_sent_ns = newest.stamp.sent_ns;
        }
    }

    /// The sample of the [last](Self::acknowledged) acknowledgement, as far as it follows from when packets were sent and delivered.
    #[inline]
    pub(crate) fn sample(&self, builder: &SampleBuilder, min_rtt_us: u64) -> RateSample {
        let Some(newest) = &builder.newest else {
            return RateSample::default();
        };
        let stamp = &newest.stamp;
        let sending_us = micros_between(stamp.first_sent_ns, stamp.sent_ns);
        let acking_us = micros_between(stamp.delivered_at_ns, self.delivered_at_ns);
        let interval_us = sending_us.max(acking_us);
        // Less than the smallest round trip would mean a rate that nobody saw.
        let valid = interval_us >= min_rtt_us && interval_us > 0;
        let delivered = stamp.delivered_since(self.delivered);
        RateSample {
            delivered: valid.then_some(delivered),
            delivers: delivered > 0,
            prior_delivered: self.delivered - u64::from(delivered),
            tx_in_flight: newest.in_flight(),
            lost: Self::lost_since(self.lost, stamp),
            interval_us: if valid { interval_us } else { 0 },
            app_limited: newest.has(APP_LIMITED),
            ..RateSample::default()
        }
    }
}

impl SampleBuilder {
    /// A packet was delivered. The newest one, by time and then by position, gives the sample.
    #[inline]
    pub(crate) fn deliver(&mut self, segment: &Segment) {
        let is_newer = |newest: &Segment| segment.is_newer(newest.stamp.sent_ns, newest.end);
        if self.newest.as_ref().is_none_or(is_newer) {
            self.newest = Some(*segment);
        }
    }

    /// Of the packets `delivered` so far, those that had been when the newest acknowledged packet was sent.
    #[inline]
    pub(crate) fn prior_delivered(&self, delivered: u64) -> u64 {
        let since = |newest: &Segment| u64::from(newest.stamp.delivered_since(delivered));
        self.newest.as_ref().map_or(0, |newest| delivered - since(newest))
    }
}
