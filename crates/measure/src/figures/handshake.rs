//! What becomes of the ECN that TCP's handshake negotiates.

use serde::{Deserialize, Serialize};

use super::{Codepoint, Fate};

/// Which ECN a SYN asks for, or both ends agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TcpEcn {
    /// None.
    Off,
    /// One of both; Linux 6.18 and 6.19 do not tell which.
    On,
    /// That of RFC 3168.
    Classic,
    /// Accurate ECN (RFC 9768).
    Accurate,
}

impl TcpEcn {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "none",
            Self::On => "ECN",
            Self::Classic => "classic ECN",
            Self::Accurate => "Accurate ECN",
        }
    }

    /// The SYN that asks for it (RFC 3168 §6.1.1, RFC 9768 §3.1.1). What may be either is asked for as the older one.
    #[must_use]
    pub const fn syn(self, ip: Codepoint) -> HandshakeEcn {
        let asks = !matches!(self, Self::Off);
        HandshakeEcn { ip, ae: matches!(self, Self::Accurate), cwr: asks, ece: asks }
    }
}

/// The ECN of a SYN or SYN-ACK: the field of IP, and the flags of TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandshakeEcn {
    /// The field of IP.
    pub ip: Codepoint,
    /// Accurate ECN, once NS (RFC 9768 §3.1).
    pub ae: bool,
    /// Congestion window reduced.
    pub cwr: bool,
    /// ECN echo.
    pub ece: bool,
}

impl Crossing {
    /// One of which only that is known.
    #[must_use]
    pub const fn of(arrived: Option<HandshakeEcn>) -> Self {
        Self { arrived, fate: Fate::Unknown }
    }
}

impl HandshakeEcn {
    const fn flags(self) -> [bool; 3] {
        [self.ae, self.cwr, self.ece]
    }

    /// The flags of the SYN-ACK by which a server agrees to Accurate ECN: they say with which value the SYN arrived (RFC 9768 §3.1.2).
    /// In the client's acknowledgement they say the same of the SYN-ACK.
    #[must_use]
    pub const fn accepting(arrived: Codepoint) -> [bool; 3] {
        match arrived {
            Codepoint::NotEct => [false, true, false],
            Codepoint::Ect1 => [false, true, true],
            Codepoint::Ect0 => [true, false, false],
            Codepoint::Ce => [true, true, false],
        }
    }

    /// What a client that asked for `asked` takes this SYN-ACK for (RFC 3168 §6.1.1, RFC 9768 table 2).
    #[must_use]
    pub fn agreed(self, asked: TcpEcn) -> TcpEcn {
        match (asked, self.flags()) {
            (TcpEcn::Off, _) | (_, [false, false, false] | [true, true, true]) => TcpEcn::Off,
            (_, [_, false, true]) => TcpEcn::Classic,
            (TcpEcn::Accurate, _) => TcpEcn::Accurate,
            _ => TcpEcn::Off,
        }
    }
}

/// A packet of the handshake, as it was sent and as it arrived, as far as that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crossing {
    /// With what it arrived, if somebody tells.
    pub arrived: Option<HandshakeEcn>,
    /// What the path did to it.
    pub fate: Fate,
}

/// A handshake, and what came of its ECN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handshake {
    /// Whose it was.
    pub by: Opener,
    /// What its SYN asked for; of a kernel by `net.ipv4.tcp_ecn`, if that can be read.
    pub asked: Option<TcpEcn>,
    /// With which value of IP's field the SYN was sent.
    pub ip: Codepoint,
    /// Whether it was answered.
    pub answered: bool,
    /// How often the SYN was sent again.
    pub sent_again: u32,
    /// The SYN's way up.
    pub syn: Crossing,
    /// The SYN-ACK's way down.
    pub syn_ack: Crossing,
    /// What this end takes to be agreed on.
    pub here: Option<TcpEcn>,
    /// What the server's kernel takes to be agreed on, if the server tells.
    pub there: Option<TcpEcn>,
}

/// Whose handshake it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Opener {
    /// The kernel's, of a connection as programs have it.
    Kernel,
    /// The measuring program's own, by a raw socket.
    Program,
}

impl Handshake {
    /// The same with what the path did, by what arrived; `others` says whether a SYN that asks for nothing was answered.
    #[must_use]
    pub fn judged(self, others: bool) -> Self {
        let Self { asked, ip, answered, sent_again, here, there, .. } = self;
        let asks = asked.is_some_and(|asked| asked != TcpEcn::Off);
        let syn = match (asked, self.syn.arrived) {
            _ if !answered && others => Fate::BlackHole,
            // A kernel asks for nothing any more when it sends a SYN again: what was lost may have been lost by chance.
            (_, Some(arrived)) if asks && sent_again > 0 && arrived.flags() == [false; 3] => {
                Fate::Unknown
            }
            (Some(asked), Some(arrived)) => changed(asked.syn(ip), arrived),
            _ => Fate::Unknown,
        };
        let syn_ack = match (there, self.syn_ack.arrived) {
            (None | Some(TcpEcn::Off), _) => Fate::Unknown,
            (Some(there), Some(arrived)) => {
                let ip = self.syn.arrived.map(|syn| HandshakeEcn::accepting(syn.ip));
                let classic = (there != TcpEcn::Accurate).then_some([false, false, true]);
                let accurate = ip.filter(|_| there != TcpEcn::Classic);
                match arrived.flags() {
                    flags if [classic, accurate].contains(&Some(flags)) => Fate::Passes,
                    [false, false, false] => Fate::Bleached,
                    _ => Fate::Mangled,
                }
            }
            // A kernel keeps the SYN-ACK's flags to itself, but not what it made of them.
            (Some(_), None) => match here {
                Some(TcpEcn::Off) => Fate::Bleached,
                Some(_) => Fate::Passes,
                None => Fate::Unknown,
            },
        };
        Self {
            syn: Crossing { fate: syn, ..self.syn },
            syn_ack: Crossing { fate: syn_ack, ..self.syn_ack },
            ..self
        }
    }

    /// Both ways, with their names.
    #[must_use]
    pub const fn ways(&self) -> [(&'static str, &Crossing); 2] {
        [("up", &self.syn), ("down", &self.syn_ack)]
    }
}

/// What was done to a packet that was sent so and arrived so.
fn changed(sent: HandshakeEcn, arrived: HandshakeEcn) -> Fate {
    if arrived == sent {
        return Fate::Passes;
    }
    let flags = arrived.flags() == sent.flags();
    let no_flags = arrived.flags() == [false; 3];
    let ip = arrived.ip == sent.ip;
    let no_ip = arrived.ip == Codepoint::NotEct;
    if (flags || no_flags) && (ip || no_ip) { Fate::Bleached } else { Fate::Mangled }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(ip: Codepoint, flags: [bool; 3]) -> HandshakeEcn {
        let [ae, cwr, ece] = flags;
        HandshakeEcn { ip, ae, cwr, ece }
    }

    const PLAIN: HandshakeEcn =
        HandshakeEcn { ip: Codepoint::NotEct, ae: false, cwr: false, ece: false };

    /// A handshake that asked for classic ECN, of which nothing was changed.
    fn classic() -> Handshake {
        let ip = Codepoint::NotEct;
        Handshake {
            by: Opener::Program,
            asked: Some(TcpEcn::Classic),
            ip,
            answered: true,
            sent_again: 0,
            syn: Crossing::of(Some(packet(ip, [false, true, true]))),
            syn_ack: Crossing::of(Some(packet(ip, [false, false, true]))),
            here: Some(TcpEcn::Classic),
            there: Some(TcpEcn::Classic),
        }
    }

    fn fates(seen: Handshake) -> (Fate, Fate) {
        let judged = seen.judged(true);
        (judged.syn.fate, judged.syn_ack.fate)
    }

    #[test]
    fn what_was_changed_is_told_by_its_way() {
        use Fate::{BlackHole, Bleached, Mangled, Passes, Unknown};
        let seen = classic();
        assert_eq!(fates(seen), (Passes, Passes));
        let cleared =
            Handshake { syn: Crossing::of(Some(PLAIN)), there: Some(TcpEcn::Off), ..seen };
        assert_eq!(fates(cleared), (Bleached, Unknown));
        let answer = Handshake { syn_ack: Crossing::of(Some(PLAIN)), ..seen };
        assert_eq!(fates(answer), (Passes, Bleached));
        let odd = Some(packet(Codepoint::NotEct, [false, true, true]));
        assert_eq!(fates(Handshake { syn_ack: Crossing::of(odd), ..seen }), (Passes, Mangled));
        let marked = Some(packet(Codepoint::Ce, [false, true, true]));
        assert_eq!(fates(Handshake { syn: Crossing::of(marked), ..seen }), (Mangled, Passes));
        let lost = Handshake { answered: false, syn: Crossing::of(None), there: None, ..seen };
        assert_eq!(fates(lost), (BlackHole, Unknown));
        // Where nothing is answered, ECN is not what is wrong.
        assert_eq!(lost.judged(false).syn.fate, Unknown);
        // What no server tells is not known.
        let alone = Handshake { syn: Crossing::of(None), there: None, ..seen };
        assert_eq!(fates(alone), (Unknown, Unknown));
    }

    #[test]
    fn a_kernel_tells_less() {
        use Fate::{Bleached, Passes, Unknown};
        let seen = Handshake { by: Opener::Kernel, syn_ack: Crossing::of(None), ..classic() };
        assert_eq!(fates(seen), (Passes, Passes));
        assert_eq!(fates(Handshake { here: Some(TcpEcn::Off), ..seen }), (Passes, Bleached));
        let again = Handshake { sent_again: 1, syn: Crossing::of(Some(PLAIN)), ..seen };
        assert_eq!(fates(again).0, Unknown);
    }

    #[test]
    fn accurate_ecn_tells_how_the_syn_arrived() {
        for ip in Codepoint::ALL {
            let answer = packet(Codepoint::NotEct, HandshakeEcn::accepting(ip));
            assert_eq!(answer.agreed(TcpEcn::Accurate), TcpEcn::Accurate, "{ip:?}");
            let seen = Handshake {
                asked: Some(TcpEcn::Accurate),
                ip,
                syn: Crossing::of(Some(TcpEcn::Accurate.syn(ip))),
                syn_ack: Crossing::of(Some(answer)),
                there: Some(TcpEcn::Accurate),
                ..classic()
            };
            assert_eq!(fates(seen), (Fate::Passes, Fate::Passes), "{ip:?}");
            // Before Linux 7.0 a server does not say which it is.
            let older = Handshake { there: Some(TcpEcn::On), ..seen };
            assert_eq!(fates(older), (Fate::Passes, Fate::Passes), "{ip:?}");
        }
        let echo = packet(Codepoint::NotEct, [true; 3]);
        assert_eq!(echo.agreed(TcpEcn::Accurate), TcpEcn::Off);
        let classic = packet(Codepoint::NotEct, [false, false, true]);
        assert_eq!(classic.agreed(TcpEcn::Accurate), TcpEcn::Classic);
        assert_eq!(classic.agreed(TcpEcn::Off), TcpEcn::Off);
    }
}
