//! The filter of acknowledgements: where a later one says all that an earlier one does, the earlier one need not be sent ("Piece of
//! CAKE", section III-E).

use super::AckFilter;
use crate::PureAck;

/// Which of the packets that wait need not be sent, now that the last of them has come, by its place.
///
/// As Linux does it: of two such acknowledgements the first goes; of one only where the filter is aggressive, and none is between it
/// and the last; those whose ECN flags differ from the next one's stay. What is selectively acknowledged a packet does not tell here,
/// so that one which does so stays.
pub(super) fn superseded(
    filter: AckFilter,
    earlier: impl Iterator<Item = Option<PureAck>>,
    before_last: usize,
    last: &PureAck,
) -> Option<usize> {
    let mut found: Option<(usize, u8)> = None;
    let mut count = 0;
    for (place, ack) in earlier.enumerate() {
        let Some(ack) = ack.filter(|ack| ack.connection == last.connection) else { continue };
        if found.is_some_and(|(_, flags)| flags != ack.ecn_flags) {
            found = None;
            count -= 1;
        }
        if !says_all(last, &ack) {
            continue;
        }
        found = found.or(Some((place, ack.ecn_flags)));
        count += 1;
        if count > 1 {
            return found.map(|(place, _)| place);
        }
    }
    let (place, flags) = found?;
    let is_next = place + 1 == before_last;
    let goes = filter == AckFilter::Aggressive && is_next && flags == last.ecn_flags;
    goes.then_some(place)
}

fn says_all(later: &PureAck, earlier: &PureAck) -> bool {
    !earlier.is_special
        && !earlier.has_sacks
        && (earlier.number < later.number || earlier.number == later.number && later.has_sacks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(number: u64) -> PureAck {
        PureAck { connection: 1, number, has_sacks: false, ecn_flags: 0, is_special: false }
    }

    fn goes(filter: AckFilter, earlier: &[PureAck], last: PureAck) -> Option<usize> {
        superseded(filter, earlier.iter().copied().map(Some), earlier.len(), &last)
    }

    #[test]
    fn of_two_the_first_goes_and_of_one_it_depends() {
        let (one, two) = ([ack(1)], [ack(1), ack(2)]);
        assert_eq!(goes(AckFilter::Filter, &two, ack(3)), Some(0));
        assert_eq!(goes(AckFilter::Filter, &one, ack(2)), None);
        assert_eq!(goes(AckFilter::Aggressive, &one, ack(2)), Some(0));
        // Others are in between.
        let other = PureAck { connection: 2, ..ack(9) };
        assert_eq!(goes(AckFilter::Aggressive, &[ack(1), other], ack(2)), None);
        assert_eq!(goes(AckFilter::Filter, &[other, ack(1), other, ack(2)], ack(3)), Some(1));
    }

    #[test]
    fn what_another_does_not_say_stays() {
        let all = AckFilter::Aggressive;
        // The same number again, which tells of loss; a later one; what it says besides.
        assert_eq!(goes(all, &[ack(2)], ack(2)), None);
        assert_eq!(goes(all, &[ack(2)], PureAck { has_sacks: true, ..ack(2) }), Some(0));
        assert_eq!(goes(all, &[ack(3)], ack(2)), None);
        assert_eq!(goes(all, &[PureAck { has_sacks: true, ..ack(1) }], ack(2)), None);
        assert_eq!(goes(all, &[PureAck { is_special: true, ..ack(1) }], ack(2)), None);
        // The last one with other ECN flags than the next.
        let marked = PureAck { ecn_flags: 1, ..ack(1) };
        assert_eq!(goes(all, &[marked], ack(2)), None);
        assert_eq!(goes(all, &[marked, PureAck { ecn_flags: 1, ..ack(2) }], ack(3)), Some(0));
        assert_eq!(goes(AckFilter::Filter, &[marked, ack(2)], ack(3)), None);
    }
}
