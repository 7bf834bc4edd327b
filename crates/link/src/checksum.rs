//! The internet checksum (RFC 1071).

/// The sum of `bytes` in 16-bit words, in the network's order, added to `sum` and not folded.
pub(crate) fn add(sum: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<2>();
    let words: u64 = words.iter().map(|word| u64::from(u16::from_be_bytes(*word))).sum();
    let last = rest.first().map_or(0, |byte| u64::from(*byte) << 8);
    sum + words + last
}

/// The sum in 16 bits, each carry added again (RFC 1071 §2).
pub(crate) const fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

/// The checksum of `bytes`.
pub(crate) fn checksum(bytes: &[u8]) -> u16 {
    !fold(add(0, bytes))
}

/// What a checksum becomes when a word that it covers changes from `old` to `new` (RFC 1624, Eqn. 3).
pub(crate) const fn update(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = !checksum as u64 + !old as u64 + new as u64;
    !fold(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(fold(add(0, &bytes)), 0xddf2);
        assert_eq!(checksum(&bytes), !0xddf2);
        assert_eq!(fold(add(0, &bytes[..7])), fold(add(0, &[&bytes[..7], &[0]].concat())));
    }

    #[test]
    fn the_example_of_rfc_1624() {
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
    }
}
