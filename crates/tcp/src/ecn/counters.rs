//! The counters of Accurate ECN at both ends (RFC 9768 §3.2, appendix A).

use dualq_units::Ecn;

use super::{EcnFlags, EcnOption, place};
use crate::tick::micros_between;

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

/// Packets that an acknowledgement delivers on average are counted in parts of a packet, and the last one has this share of the
/// average (Linux: `PKTS_ACKED_PREC`, `PKTS_ACKED_WEIGHT`).
const AVERAGE_PARTS: u32 = 64;
const AVERAGE_WEIGHT: u32 = 64;
/// With more than so many on average it is usual that an acknowledgement delivers many, and none is missing that told of a wrap (Linux:
/// `ACK_COMP_THRESH`).
const USUALLY_MANY: u32 = 4;

/// A count of bytes that grows past a multiple of this is told in an option (Linux: `tcp_ecn_received_counters`).
const TOLD_BYTES: u64 = 1 << 22;
/// After marks, and when they begin or end, so many packets have the option: the last one cannot be mistaken.
const OPTIONS_OF_CHANGE: u8 = 2;
/// So often in a round trip one has it in any case (Linux: `tcp_ecn_option_beacon`).
const BEACONS: u64 = 3;

/// How many fields it takes to tell of bytes with ECT(0), CE or ECT(1): Linux writes those of ECT(1) first, then of CE, then of ECT(0) (`tcp_ecnfield_to_accecn_optfield`).
const FIELDS_WITH: [u8; 3] = [3, 2, 1];
/// So many there is room for beside two SACK blocks.
const FIELDS_BESIDE_TWO: u8 = 2;

/// What an AccECN option with all its fields takes of the header, padding included.
pub const OPTION_BYTES: u32 = 12;

/// The counts of bytes in an AccECN option, as they travel: of ECT(0), CE and ECT(1), each of 24 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnBytes([u32; 3]);

impl EcnBytes {
    /// The option's nine bytes in its second order, as Linux writes them: of ECT(1), CE and ECT(0) (RFC 9768 §3.2.3, `AccECN1`).
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 9] {
        let [e0, ce, e1] = self.0;
        let [[_, a, b, c], [_, d, e, f], [_, g, h, i]] =
            [e1.to_be_bytes(), ce.to_be_bytes(), e0.to_be_bytes()];
        [a, b, c, d, e, f, g, h, i]
    }

    /// Reads these.
    #[must_use]
    pub const fn from_bytes([a, b, c, d, e, f, g, h, i]: [u8; 9]) -> Self {
        Self([
            u32::from_be_bytes([0, g, h, i]),
            u32::from_be_bytes([0, d, e, f]),
            u32::from_be_bytes([0, a, b, c]),
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
    /// How many fields of the option it takes to tell of all that has come since it was last sent (Linux: `accecn_minlen`).
    fields: u8,
    /// So many packets are to have the option (Linux: `accecn_opt_demand`), and when one last had it.
    demanded: u8,
    told_ns: u64,
}

impl Default for Received {
    fn default() -> Self {
        Self {
            ce: 0,
            bytes: [0; 3],
            last: Ecn::NotEct,
            pending: 0,
            fields: 0,
            demanded: 0,
            told_ns: 0,
        }
    }
}

impl Received {
    /// The handshake's packet arrived with `ecn`: what comes next is compared with that. So many packets have the option at first.
    pub(crate) fn begin(ecn: Ecn, demanded: u8) -> Self {
        Self { last: ecn, demanded, ..Self::default() }
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
            let before = self.bytes[place];
            self.bytes[place] += u64::from(payload);
            if payload > 0 {
                self.fields = self.fields.max(FIELDS_WITH[place]);
            }
            if self.bytes[place] / TOLD_BYTES != before / TOLD_BYTES {
                self.demanded = self.demanded.max(1);
            }
        }
        if ecn == Ecn::Ce {
            self.ce = self.ce.wrapping_add(packets);
            self.pending += packets;
        }
        let changes = ecn != self.last;
        self.last = ecn;
        if changes || ecn == Ecn::Ce {
            self.demanded = OPTIONS_OF_CHANGE;
        }
        changes || self.pending >= MAX_PENDING
    }

    /// The field of a packet that leaves now.
    #[inline]
    pub(crate) const fn field(&mut self) -> EcnFlags {
        self.pending = 0;
        EcnFlags::count(self.ce.wrapping_add(FIRST_COUNT))
    }

    /// Whether a packet that leaves now has the option; the smoothed round trip takes `srtt_us` (Linux:
    /// `tcp_accecn_option_beacon_check`).
    #[inline]
    pub(crate) const fn is_option_due(&self, when: EcnOption, now_ns: u64, srtt_us: u64) -> bool {
        match when {
            EcnOption::Disabled => false,
            EcnOption::Minimum => {
                let since_us = micros_between(self.told_ns, now_ns);
                self.demanded > 0 || since_us * BEACONS >= srtt_us
            }
            EcnOption::Full => true,
        }
    }

    /// How many of `blocks` SACK blocks leave room for the option. There is none where what is to be told does not even fit in
    /// beside two (Linux: `tcp_options_fit_accecn`).
    pub(crate) const fn beside(&self, blocks: usize) -> Option<usize> {
        match (blocks, self.fields) {
            (0 | 1, _) | (2, 0..=FIELDS_BESIDE_TWO) => Some(blocks),
            (_, 1..=FIELDS_BESIDE_TWO) => Some(2),
            // If there is nothing to tell, the third block comes first.
            _ => None,
        }
    }

    /// The option of a packet that leaves now.
    #[inline]
    pub(crate) fn tell(&mut self, now_ns: u64) -> EcnBytes {
        self.told_ns = now_ns;
        self.fields = 0;
        self.demanded = self.demanded.saturating_sub(1);
        self.counts()
    }

    /// The counts as they travel.
    #[inline]
    pub(crate) fn counts(&self) -> EcnBytes {
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
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivered {
    bytes: [u64; 3],
    /// Which of them was the only one to grow of late, or the first (Linux: `est_ecnfield`).
    growing: Option<usize>,
    /// Packets that an acknowledgement delivers, on average, in [`AVERAGE_PARTS`] (Linux: `pkts_acked_ewma`).
    at_once: u32,
}

impl Default for Delivered {
    /// The SYN is the first packet that was delivered, by itself.
    fn default() -> Self {
        Self { bytes: [0; 3], growing: None, at_once: AVERAGE_PARTS }
    }
}

impl Delivered {
    /// Bytes that were delivered with ECT(0), CE and ECT(1).
    pub(crate) const fn bytes(&self) -> [u64; 3] {
        self.bytes
    }

    /// Takes an option. Returns by how much the count of CE grew. Counts that shrink are of an older packet.
    fn take(&mut self, EcnBytes(fields): EcnBytes) -> u64 {
        let before = self.bytes;
        let mut shrinks = false;
        for ((known, field), first) in self.bytes.iter_mut().zip(fields).zip(FIRST_BYTES) {
            let count = field.wrapping_sub(first);
            let growth = count.wrapping_sub(*known as u32) % BYTES_RANGE;
            shrinks |= growth >= BYTES_RANGE / 2;
            if growth < BYTES_RANGE / 2 {
                *known += u64::from(growth);
            }
        }
        let mut others = (0..before.len())
            .filter(|&place| self.bytes[place] > before[place] && self.growing != Some(place));
        self.growing = match (others.next(), others.next()) {
            _ if shrinks => None,
            (Some(_), Some(_)) => None,
            (other, _) => other.or(self.growing),
        };
        self.bytes[1] - before[1]
    }

    /// An acknowledgement delivers so many bytes and has no option: they are taken to have arrived as those before, where that was clear.
    /// Returns how many of them with CE.
    fn guess(&mut self, bytes: u64) -> Option<u64> {
        let place = self.growing?;
        self.bytes[place] += bytes;
        Some(if place == 1 { bytes } else { 0 })
    }

    /// An acknowledgement delivers so many packets.
    #[inline]
    fn average(&mut self, packets: u32) {
        if packets > 0 {
            let parts = packets.saturating_mul(AVERAGE_PARTS);
            let sum = (self.at_once * (AVERAGE_WEIGHT - 1)).saturating_add(parts);
            self.at_once = (sum / AVERAGE_WEIGHT).min(u16::MAX.into());
        }
    }

    /// How many packets more are marked, by an acknowledgement's field and option. `counted` were before; where so many packets
    /// are delivered at once that the field may have wrapped, the bytes decide how often (RFC 9768, appendix A.2), and without them
    /// whether that is usual.
    #[inline]
    pub(crate) fn marks(
        &mut self,
        flags: EcnFlags,
        option: Option<EcnBytes>,
        counted: u64,
        progress: Progress,
    ) -> u32 {
        let ce_bytes = match option {
            Some(option) => Some(self.take(option)),
            None => self.guess(progress.bytes),
        };
        let known = counted as u32;
        let delta =
            u32::from(flags.bits()).wrapping_sub(FIRST_COUNT).wrapping_sub(known) % ACE_RANGE;
        let Progress { packets, bytes, mss } = progress;
        self.average(packets);
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
            None if self.at_once > USUALLY_MANY * AVERAGE_PARTS => delta,
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
        assert_eq!(received.counts().to_bytes(), [0, 0, 1, 0, 0, 0, 0, 0, 1]);
        assert_eq!(Delivered::default().marks(EcnFlags::count(5), None, 0, progress(2)), 0);
    }

    #[test]
    fn the_options_bytes_are_what_they_were() {
        let mut received = Received::default();
        received.count(Ecn::Ect1, 1, 0x0001_0203);
        received.count(Ecn::Ce, 3, 0x00ff_ffff);
        received.count(Ecn::Ect0, 1, 7);
        let bytes = received.counts().to_bytes();
        assert_eq!(bytes, [1, 2, 4, 0xff, 0xff, 0xff, 0, 0, 8]);
        assert_eq!(EcnBytes::from_bytes(bytes), received.counts());
        assert_eq!(received.field().bits(), 0, "5 + 3 wraps");
    }

    #[test]
    fn acknowledged_at_once_where_marks_begin_and_end_and_before_the_field_wraps() {
        let mut received = Received::begin(Ecn::Ect1, 0);
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
                let (field, option) = (received.field(), received.counts());
                let told = Delivered::default().marks(field, Some(option), 0, progress(packets));
                // Between one wrap and two what is safe is taken: nothing else tells them apart.
                let exact =
                    !(ACE_RANGE..2 * ACE_RANGE).contains(&packets) || marked < ACE_RANGE / 2;
                assert!(!exact || told == marked, "{marked} of {packets}: {told}");
                // Where few packets are delivered at once as a rule, many are taken for a sign of acknowledgements that were lost.
                let mut seldom = Delivered { at_once: 1, ..Delivered::default() };
                let plain = seldom.marks(field, None, 0, progress(packets));
                assert!(plain >= marked && plain <= packets, "{marked} of {packets}: {plain}");
            }
        }
    }

    /// Linux: `__tcp_accecn_process`. What is acknowledged in whole aggregates all along is not taken for marks.
    #[test]
    fn many_packets_at_once_are_no_marks_where_that_is_usual() {
        let field = EcnFlags::count(FIRST_COUNT);
        let mut delivered = Delivered::default();
        let told = (0..100).map(|_| delivered.marks(field, None, 0, progress(2)));
        assert_eq!(told.sum::<u32>(), 0);
        // The average follows; it is rounded down, so two each time leave it near one, and from there it takes 40 of 8 to be above 4.
        let told: Vec<_> = (0..100).map(|_| delivered.marks(field, None, 0, progress(8))).collect();
        assert_eq!(told[..39], [8; 39]);
        assert_eq!(told[39..], [0; 61]);
    }

    #[test]
    fn counts_of_bytes_wrap_and_older_ones_change_nothing() {
        let (mut received, mut delivered) = (Received::default(), Delivered::default());
        let mut total = 0;
        for round in 0..40_u64 {
            let old = received.counts();
            received.count(Ecn::Ect1, 1_000, 1_000_000);
            received.count(Ecn::Ce, 1, MSS);
            total = (round + 1) * 1_000_000;
            delivered.take(received.counts());
            delivered.take(old);
        }
        assert_eq!(delivered.bytes(), [0, 40 * u64::from(MSS), total]);
        assert!(total > u64::from(BYTES_RANGE));
    }

    /// Linux: `tcp_established_options`. One at first, two after marks or a change, and three in a round trip.
    #[test]
    fn few_packets_have_the_option_where_that_is_enough() {
        const RTT_US: u64 = 30_000;
        fn told(received: &mut Received, now_ns: u64) -> usize {
            let due = |received: &mut Received| {
                let due = received.is_option_due(EcnOption::Minimum, now_ns, RTT_US);
                due.then(|| received.tell(now_ns)).is_some()
            };
            (0..5).filter(|_| due(received)).count()
        }
        let (mut received, start) = (Received::begin(Ecn::Ect0, 1), 1_000_000_000);
        assert_eq!(told(&mut received, start), 1);
        received.count(Ecn::Ect0, 2, 2 * MSS);
        assert_eq!(told(&mut received, start + 9_999_999), 0);
        assert_eq!(told(&mut received, start + 10_000_000), 1);
        let now = start + 10_500_000;
        for ecn in [Ecn::Ce, Ecn::Ce, Ecn::Ect0] {
            received.count(ecn, 1, MSS);
            assert_eq!(told(&mut received, now), 2, "{ecn:?}");
        }
        received.count(Ecn::Ect0, 1, MSS);
        assert_eq!(told(&mut received, now), 0);
        received.count(Ecn::Ect0, 1, 1 << 22);
        assert_eq!(told(&mut received, now), 1, "a count has grown far");
        for (when, due) in [(EcnOption::Disabled, false), (EcnOption::Full, true)] {
            assert_eq!(received.is_option_due(when, now + 1_000_000_000, RTT_US), due);
        }
    }

    /// As in the world `kernel`: behind three gaps, acknowledgements of packets with ECT(0) have three SACK blocks and no option, those of
    /// ECT(1) two blocks and an option.
    #[test]
    fn the_option_takes_the_place_of_a_block_only_where_it_can_tell_all() {
        let after = |ecn| {
            let mut received = Received::default();
            received.count(ecn, 1, 1_436);
            received
        };
        let room = |received: &Received| [1, 2, 3].map(|blocks| received.beside(blocks));
        assert_eq!(room(&after(Ecn::Ect0)), [Some(1), None, None]);
        assert_eq!(room(&after(Ecn::Ect1)), [Some(1), Some(2), Some(2)]);
        let mut marked = after(Ecn::Ce);
        assert_eq!(room(&marked), [Some(1), Some(2), Some(2)]);
        // All has been told.
        marked.tell(0);
        assert_eq!(room(&marked), [Some(1), Some(2), None]);
    }

    /// Linux: `est_ecnfield`. Where all that came of late was alike, so is what no option tells of.
    #[test]
    fn without_an_option_bytes_arrive_as_those_before() {
        let (mut received, mut delivered) = (Received::default(), Delivered::default());
        let one_more = EcnFlags::count(FIRST_COUNT + 1);
        // Nobody knows, and seldom are there so many: as many as there can be.
        assert_eq!(delivered.marks(one_more, None, 0, progress(20)), 17);
        received.count(Ecn::Ect1, 20, 20 * MSS);
        delivered.take(received.counts());
        assert_eq!(delivered.marks(one_more, None, 0, progress(20)), 1);
        assert_eq!(delivered.bytes(), [0, 0, u64::from(40 * MSS)]);
        // All of them are marked from now on.
        received.count(Ecn::Ect1, 20, 20 * MSS);
        received.count(Ecn::Ce, 1, MSS);
        delivered.take(received.counts());
        assert_eq!(delivered.marks(one_more, None, 0, progress(20)), 17);
        assert_eq!(delivered.bytes()[1], u64::from(21 * MSS));
        // Two have begun to grow at once.
        let (mut received, mut delivered) = (Received::default(), Delivered::default());
        for ecn in [Ecn::Ect0, Ecn::Ect1] {
            received.count(ecn, 1, MSS);
        }
        delivered.take(received.counts());
        assert_eq!(delivered.marks(one_more, None, 0, progress(20)), 17);
        assert_eq!(delivered.bytes(), [u64::from(MSS), 0, u64::from(MSS)]);
    }
}
