//! Which queue is served: weighted round robin by bytes, so that low latency goes first yet classic never starves
//! (RFC 9332 §4.2.2).

use crate::packet::Queue;

/// The scheduler's account. While both queues hold packets, each byte served moves the credit towards the other queue
/// by that other queue's weight; the sign says whose turn it is.
#[derive(Clone, Debug)]
pub(crate) struct Scheduler {
    /// Above zero it is classic's turn.
    pub(crate) credit: i32,
    initial_credit: i32,
    /// Percent of the bytes that classic gets at least, while it has any.
    classic_weight: u8,
}

/// The weights are percentages: classic's and low latency's add up to this.
pub(crate) const TOTAL_WEIGHT: u8 = 100;

impl Scheduler {
    pub(crate) fn new(classic_weight: u8, mtu: u32) -> Self {
        let difference = i32::from(classic_weight) - i32::from(TOTAL_WEIGHT - classic_weight);
        let initial_credit = (mtu as i32).wrapping_mul(difference);
        Self { credit: initial_credit, initial_credit, classic_weight }
    }

    pub(crate) const fn classic_weight(&self) -> u8 {
        self.classic_weight
    }

    #[inline]
    pub(crate) const fn prefers_low_latency(&self) -> bool {
        self.credit <= 0
    }

    /// Both queues ran empty: the next busy period starts afresh.
    #[inline]
    pub(crate) const fn reset(&mut self) {
        self.credit = self.initial_credit;
    }

    /// `queue` sent `bytes` while the other had to wait. The kernel's credit is a C `int`: packets of many megabytes would
    /// wrap it there, and do here.
    #[inline]
    pub(crate) fn served(&mut self, queue: Queue, bytes: u32) {
        let weight = match queue {
            Queue::Classic => -i32::from(TOTAL_WEIGHT - self.classic_weight),
            Queue::LowLatency => i32::from(self.classic_weight),
        };
        self.credit = self.credit.wrapping_add(weight.wrapping_mul(bytes as i32));
    }
}
