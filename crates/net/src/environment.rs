use dualq_qdisc::{Departure, DropReason, Dropped};
use dualq_units::Instant;

/// What a path has around it. Elements draw no random numbers of their own and copy no packets, so that a run follows from
/// one seed and packets may hold what only their owner can copy.
pub trait Environment<P> {
    /// 32 random bits.
    fn random(&mut self) -> u32;

    /// A copy of a packet, which goes on beside it.
    fn copy(&mut self, packet: &P) -> P;

    /// A packet is lost on the way.
    fn lost(&mut self, packet: P, why: Lost);

    /// A packet reaches an observed queue, which may drop it.
    fn arrived(&mut self, queue: usize, now: Instant, packet: &P) {
        let _ = (queue, now, packet);
    }

    /// A packet leaves an observed queue for the link.
    fn departed(&mut self, queue: usize, now: Instant, departure: &Departure<P>) {
        let _ = (queue, now, departure);
    }

    /// An observed queue drops a packet; the same is told to [`lost`](Self::lost) next.
    fn dropped(&mut self, queue: usize, now: Instant, dropped: &Dropped<P>) {
        let _ = (queue, now, dropped);
    }
}

/// Why a packet is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// A queue discipline dropped it.
    Queue(DropReason),
    /// At random.
    Random,
    /// It is longer than what follows takes.
    TooLong {
        /// The longest IP packet that passes, in bytes.
        mtu: u32,
        /// Whether its sender is told (RFC 1191).
        told: bool,
        /// The place of that hop in its path.
        place: usize,
    },
    /// A policer found it above its rate.
    Policed,
}

impl Lost {
    /// The reason by which a list of events tells it, if it has a word of its own.
    #[must_use]
    pub const fn drop_reason(self) -> Option<DropReason> {
        match self {
            Self::Queue(reason) => Some(reason),
            Self::Random => Some(DropReason::Random),
            Self::TooLong { .. } | Self::Policed => None,
        }
    }
}
