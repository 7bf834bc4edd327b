//! The counters of Accurate ECN at both ends (RFC 9768 §3.2, appendix A).

use dualq_units::Ecn;

use super::{EcnFlags, place};

/// Where the count of packets starts (RFC 9768 §3.2.1).
const FIRST_COUNT: u32 = 5;
/// A count of packets wraps here: it has three bits.
const ACE_RANGE: u32 = 8;
/// A count of bytes wraps here: it has 24 bits.
const BYTES_RANGE: u32 = 1 << 24;
/// Where the counts of bytes start, so that zeros on the way are seen (RFC 9768 §3.2.1).
const FIRST_BYTES: [u32; 3] = [1, 0, 1];
/// So many marks may wait for an acknowledgement: one more, and the field may wrap (Linux: `TCP_ACCECN_ACE_MAX_DELTA`).
const MAX_PENDING: u32 = 6;
/// Where a mark's packet is smaller than half a segment on average, it is not believed that the field wrapped (RFC 9768 A.2.1).
const SAFETY_SHIFT: u32 = 1;

/// What an AccECN option with all its fields takes of the header, padding included.
pub const OPTION_BYTES: u32 = 12;

/// The counts of bytes in an AccECN option, as they travel: of ECT(0), CE and ECT(1), each of 24 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnBytes([u32; 3]);

impl EcnBytes {
    /// The option's nine bytes, of the first order (RFC 9768 §3.2.3).
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 9] {
        let [[_, a, b, c], [_, d, e, f], [_, g, h, i]] =
            [self.0[0].to_be_bytes(), self.0[1].to_be_bytes(), self.0[2].to_be_bytes()];
        [a, b, c, d, e, f, g, h, i]
    }

    /// Reads these.
    #[must_use]
    pub const fn from_bytes([a, b, c, d, e, f, g, h, i]: [u8; 9]) -> Self {
        Self([
            u32::from_be_bytes([0, a, b, c]),
            u32::from_be_bytes([0, d, e, f]),
            u32::from_be_bytes([0, g, h, i]),
        ])
    }
}

/// What a host counts of what arrives (Linux: `received_ce`, `received_ecn_bytes`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    /// Packets with CE.
    pub(crate) ce: u32,
    /// Bytes of payload with ECT(0), CE and ECT(1).
    bytes: [u64; 3],
    last: Ecn,
    /// Marks that no packet has told of yet.
    pending: u32,
}

impl Default for Received {
    fn default() -> Self {
        Self { ce: 0, bytes: [0; 3], last: Ecn::NotEct, pending: 0 }
    }
}

impl Received {
    /// The handshake's packet arrived with `ecn`: what comes next is compared with that.
    pub(crate) fn begin(ecn: Ecn) -> Self {
        Self { last: ecn, ..Self::default() }
    }

    /// The ECN field of what arrived last.
    pub(crate) const fn last(&self) -> Ecn {
        self.last
    }

    /// The answer to the SYN arrived with that: CE counts.
    pub(crate) fn count_handshake(&mut self, ecn: Ecn) {
        self.ce += u32::from(ecn == Ecn::Ce);
    }

    /// Packets arrive together. Returns whether they are to be acknowledged at once: marks begin or end with them, or so many
    /// wait that the field may wrap (RFC 9768 §3.2.2.5.1).
    #[inline]
    pub(crate) fn count(&mut self, ecn: Ecn, packets: u32, payload: u32) -> bool {
        if let Some(place) = place(ecn) {
            self.bytes[place] += u64::from(payload);
        }
        if ecn == Ecn::Ce {
            self.ce = self.ce.wrapping_add(packets);
            self.pending += packets;
        }
        let changes = ecn != self.last;
        self.last = ecn;
        changes || self.pending >= MAX_PENDING
    }

    /// The field of a packet that leaves now.
    #[inline]
    pub(crate) const fn field(&mut self) -> EcnFlags {
        self.pending = 0;
        EcnFlags::count(self.ce.wrapping_add(FIRST_COUNT))
    }

    /// The option of a packet that leaves now.
    #[inline]
    pub(crate) fn option(&self) -> EcnBytes {
        let [e0, ce, e1] = self.bytes;
        let [first0, first_ce, first1] = FIRST_BYTES;
        let field = |bytes: u64, first: u32| (bytes as u32).wrapping_add(first) % BYTES_RANGE;
        EcnBytes([field(e0, first0), field(ce, first_ce), field(e1, first1)])
    }

    /// Bytes that arrived with ECT(0), CE and ECT(1).
    pub(crate) const fn bytes(&self) -> [u64; 3] {
        self.bytes
    }
}

/// What an acknowledgement delivers, for the field's meaning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    pub(crate) packets: u32,
    pub(crate) bytes: u64,
    /// Payload of a full segment.
    pub(crate) mss: u32,
}

/// What a host knows of what it sent (Linux: `delivered_ce`, `delivered_ecn_bytes`). The count of packets is kept where all
/// deliveries are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delivered {
    bytes: [u64; 3],
}

impl Delivered {
    /// Bytes that were delivered with ECT(0), CE and ECT(1).
    pub(crate) const fn bytes(&self) -> [u64; 3] {
        self.bytes
    }

    /// Takes an option. Returns by how much the count of CE grew. Counts that shrink are of an older packet.
    fn take(&mut self, EcnBytes(fields): EcnBytes) -> u64 {
        let before = self.bytes[1];
        for ((known, field), first) in self.bytes.iter_mut().zip(fields).zip(FIRST_BYTES) {
            let count = field.wrapping_sub(first);
            let growth = count.wrapping_sub(*known as u32) % BYTES_RANGE;
            if growth < BYTES_RANGE / 2 {
                *known += u64::from(growth);
            }
        }
        self.bytes[1] - before
    }

    /// How many packets more are marked, by an acknowledgement's field and option. `counted` were before; where so many packets
    /// are delivered at once that the field may have wrapped, the bytes decide how often (RFC 9768, appendix A.2).
    #[inline]
    pub(crate) fn marks(
        &mut self,
        flags: EcnFlags,
        option: Option<EcnBytes>,
        counted: u64,
        progress: Progress,
    ) -> u32 {
        let ce_bytes = option.map(|option| self.take(option));
        let known = counted as u32;
        let delta =
            u32::from(flags.bits()).wrapping_sub(FIRST_COUNT).wrapping_sub(known) % ACE_RANGE;
        let Progress { packets, bytes, mss } = progress;
        if packets < ACE_RANGE {
            return delta;
        }
        // The most that it can be, if all that was delivered was marked.
        let most = packets - (packets - delta) % ACE_RANGE;
        match ce_bytes {
            Some(0) => delta,
            Some(marked) if packets >= 2 * ACE_RANGE => {
                if bytes <= marked {
                    return most;
                }
                let share = (marked * u64::from(packets)).div_ceil(bytes) as u32;
                most.min(delta + share / ACE_RANGE * ACE_RANGE)
            }
            Some(marked) if marked > u64::from(delta) * u64::from(mss) => most,
            Some(marked) if marked < (u64::from(most) * u64::from(mss)) >> SAFETY_SHIFT => delta,
            _ => most,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1_436;

    fn progress(packets: u32) -> Progress {
        Progress { packets, bytes: u64::from(packets * MSS), mss: MSS }
    }

    /// RFC 9768 §3.2.1: the first counts.
    #[test]
    fn counts_start_at_five_one_zero_and_one() {
        let mut received = Received::default();
        assert_eq!(received.field().bits(), 5);
        assert_eq!(received.option().to_bytes(), [0, 0, 1, 0, 0, 0, 0, 0, 1]);
        assert_eq!(Delivered::default().marks(EcnFlags::count(5), None, 0, progress(2)), 0);
    }

    #[test]
    fn the_options_bytes_are_what_they_were() {
        let mut received = Received::default();
        received.count(Ecn::Ect1, 1, 0x0001_0203);
        received.count(Ecn::Ce, 3, 0x00ff_ffff);
        received.count(Ecn::Ect0, 1, 7);
        let bytes = received.option().to_bytes();
        assert_eq!(bytes, [0, 0, 8, 0xff, 0xff, 0xff, 1, 2, 4]);
        assert_eq!(EcnBytes::from_bytes(bytes), received.option());
        assert_eq!(received.field().bits(), 0, "5 + 3 wraps");
    }

    #[test]
    fn acknowledged_at_once_where_marks_begin_and_end_and_before_the_field_wraps() {
        let mut received = Received::begin(Ecn::Ect1);
        let arrivals = [Ecn::Ect1, Ecn::Ce, Ecn::Ce, Ecn::Ect1, Ecn::Ect1];
        let at_once = arrivals.map(|ecn| received.count(ecn, 1, MSS));
        assert_eq!(at_once, [false, true, false, true, false]);
        received.field();
        let run = [(); 8].map(|()| received.count(Ecn::Ce, 1, MSS));
        assert_eq!(run, [true, false, false, false, false, true, true, true]);
    }

    /// RFC 9768, appendix A.2.2: by the bytes, the field wrapped as often as it did.
    #[test]
    fn bytes_tell_how_often_the_field_wrapped() {
        for packets in 1..200_u32 {
            for marked in 0..=packets {
                let mut received = Received::default();
                for number in 0..packets {
                    let ecn = if number < marked { Ecn::Ce } else { Ecn::Ect1 };
                    received.count(ecn, 1, MSS);
                }
                let (field, option) = (received.field(), received.option());
                let told = Delivered::default().marks(field, Some(option), 0, progress(packets));
                // Between one wrap and two what is safe is taken: nothing else tells them apart.
                let exact =
                    !(ACE_RANGE..2 * ACE_RANGE).contains(&packets) || marked < ACE_RANGE / 2;
                assert!(!exact || told == marked, "{marked} of {packets}: {told}");
                let plain = Delivered::default().marks(field, None, 0, progress(packets));
                assert!(plain >= marked && plain <= packets, "{marked} of {packets}: {plain}");
            }
        }
    }

    #[test]
    fn counts_of_bytes_wrap_and_older_ones_change_nothing() {
        let (mut received, mut delivered) = (Received::default(), Delivered::default());
        let mut total = 0;
        for round in 0..40_u64 {
            let old = received.option();
            received.count(Ecn::Ect1, 1_000, 1_000_000);
            received.count(Ecn::Ce, 1, MSS);
            total = (round + 1) * 1_000_000;
            delivered.take(received.option());
            delivered.take(old);
        }
        assert_eq!(delivered.bytes(), [0, 40 * u64::from(MSS), total]);
        assert!(total > u64::from(BYTES_RANGE));
    }
}
