//! What two hosts agree on, as the flags of SYN, its answer and the third packet say (RFC 9768 §3.1, tables 2 to 4).

use dualq_units::Ecn;

use super::{EcnFlags, EcnStyle};

/// How the ECN field of a packet of the handshake is told to whom it is from (table 3).
const fn reflected(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0b010,
        Ecn::Ect1 => 0b011,
        Ecn::Ect0 => 0b100,
        Ecn::Ce => 0b110,
    }
}

/// The ECN field that such flags tell of; `None` where they tell of none.
const fn told(bits: u8) -> Option<Ecn> {
    match bits {
        0b010 => Some(Ecn::NotEct),
        0b011 => Some(Ecn::Ect1),
        0b100 => Some(Ecn::Ect0),
        0b110 => Some(Ecn::Ce),
        _ => None,
    }
}

/// What a host that was asked makes of it: the style that it grants, of those up to `most`, and the flags of its answer. The SYN
/// arrived with `syn` in its IP header.
pub(crate) fn answer(most: EcnStyle, asked: EcnFlags, syn: Ecn) -> (EcnStyle, EcnFlags) {
    let classic = |style| (style, EcnFlags::ECE);
    match (most, asked.bits()) {
        (EcnStyle::Off, _) | (_, 0) => (EcnStyle::Off, EcnFlags::NONE),
        (EcnStyle::Accurate, 0b011) => classic(EcnStyle::Classic),
        // Whatever else is set is to be taken for all three (RFC 9768 §3.1.2).
        (EcnStyle::Accurate, _) => (EcnStyle::Accurate, EcnFlags(reflected(syn))),
        // A host that only knows RFC 3168 does not look at AE.
        (style, bits) if bits & 0b011 == 0b011 => classic(style),
        _ => (EcnStyle::Off, EcnFlags::NONE),
    }
}

/// What a host that asked makes of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Granted {
    pub(crate) style: EcnStyle,
    /// The ECN field that the SYN left with has been changed to what it cannot have become by marking: no packet is to be
    /// ECN-capable (RFC 9768 §3.2.2.3).
    pub(crate) mangled: bool,
}

/// `asked` was asked for, by a SYN that left with `sent` in its IP header; the answer has these flags.
pub(crate) fn grant(asked: EcnStyle, sent: Ecn, flags: EcnFlags) -> Granted {
    let plain = |style| Granted { style, mangled: false };
    match (asked, flags.bits()) {
        // 000 is from who knows no ECN, 111 from who mirrors what it does not understand.
        (EcnStyle::Off, _) | (EcnStyle::Accurate, 0b000 | 0b111) => plain(EcnStyle::Off),
        (EcnStyle::Accurate, 0b001) => plain(EcnStyle::Classic),
        (EcnStyle::Accurate, bits) => Granted {
            style: EcnStyle::Accurate,
            mangled: told(bits).is_some_and(|seen| !is_possible(sent, seen)),
        },
        (style, bits) if bits & 0b001 != 0 => plain(style),
        _ => plain(EcnStyle::Off),
    }
}

/// Whether marking can make `seen` of `sent`.
fn is_possible(sent: Ecn, seen: Ecn) -> bool {
    sent == seen || (sent.is_capable() && seen.is_capable() && sent != Ecn::Ce)
}

/// What the third packet's ACE says of the SYN/ACK, which arrived with `ecn` (table 3 again).
pub(crate) const fn third_ace(ecn: Ecn) -> EcnFlags {
    EcnFlags(reflected(ecn))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9768, table 2: who asks and who is asked, the SYN's flags, the answer's flags, and what both then do.
    #[test]
    fn every_line_of_table_2() {
        use EcnStyle::{Accurate, Classic, Off};
        let of = |style| match style {
            Off => EcnFlags::NONE,
            Accurate => EcnFlags::ASKS_ACCURATE,
            _ => EcnFlags::ASKS_CLASSIC,
        };
        for (client, server, syn, flags, style) in [
            (Accurate, Accurate, Ecn::NotEct, 0b010, Accurate),
            (Accurate, Accurate, Ecn::Ect1, 0b011, Accurate),
            (Accurate, Accurate, Ecn::Ect0, 0b100, Accurate),
            (Accurate, Accurate, Ecn::Ce, 0b110, Accurate),
            (Accurate, Classic, Ecn::NotEct, 0b001, Classic),
            (Accurate, Off, Ecn::NotEct, 0b000, Off),
            (Classic, Accurate, Ecn::NotEct, 0b001, Classic),
            (Classic, Classic, Ecn::NotEct, 0b001, Classic),
            (Off, Accurate, Ecn::NotEct, 0b000, Off),
        ] {
            let (granted, answered) = answer(server, of(client), syn);
            assert_eq!((granted, answered.bits()), (style, flags), "{client:?} {server:?}");
            let sent = if syn == Ecn::Ce { Ecn::Ect1 } else { syn };
            assert_eq!(grant(client, sent, answered), Granted { style, mangled: false });
        }
        // A nonce's SYN/ACK is reserved; a mirror is broken.
        assert_eq!(grant(Accurate, Ecn::Ect1, EcnFlags(0b101)).style, Accurate);
        assert_eq!(grant(Accurate, Ecn::Ect1, EcnFlags(0b111)).style, Off);
        // Of flags of the future, the answer is as to 111.
        for bits in [0b001, 0b010, 0b100, 0b101, 0b110] {
            assert_eq!(answer(Accurate, EcnFlags(bits), Ecn::Ect0).1.bits(), 0b100);
        }
    }

    #[test]
    fn what_no_queue_does_to_a_packet_is_mangling() {
        for (sent, seen, mangled) in [
            (Ecn::Ect1, Ecn::NotEct, true),
            (Ecn::NotEct, Ecn::Ect0, true),
            (Ecn::NotEct, Ecn::Ce, true),
            (Ecn::Ect1, Ecn::Ce, false),
            (Ecn::Ect0, Ecn::Ect1, false),
            (Ecn::NotEct, Ecn::NotEct, false),
        ] {
            let answered = answer(EcnStyle::Accurate, EcnFlags::ASKS_ACCURATE, seen).1;
            let granted = grant(EcnStyle::Accurate, sent, answered);
            assert_eq!(
                granted,
                Granted { style: EcnStyle::Accurate, mangled },
                "{sent:?} {seen:?}"
            );
        }
    }

    /// RFC 9768, table 3, which the third packet has too.
    #[test]
    fn the_third_packet_tells_how_the_answer_arrived() {
        for (ecn, bits) in
            [(Ecn::NotEct, 0b010), (Ecn::Ect1, 0b011), (Ecn::Ect0, 0b100), (Ecn::Ce, 0b110)]
        {
            assert_eq!(third_ace(ecn).bits(), bits);
            assert_eq!(told(bits), Some(ecn));
        }
    }
}
