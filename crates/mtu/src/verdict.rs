//! What all that was seen means.

use crate::search::{Found, Limit};

/// What is wrong with the path, if anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Whatever the interface can send gets through.
    Whole,
    /// The path carries less, and a router says so: TCP and others adapt.
    Signalled {
        /// What gets through.
        mtu: u16,
    },
    /// Larger packets vanish.
    BlackHole {
        /// What gets through.
        mtu: u16,
    },
    /// As seen by TCP alone, which does not tell to the byte: packets of `mtu` bytes arrive, those of `lost` do not.
    TcpHangs {
        /// What gets through.
        mtu: u16,
        /// What does not.
        lost: u16,
    },
    /// At least this gets through, and too many packets are lost to tell more.
    Lossy {
        /// What gets through.
        mtu: u16,
    },
    /// Only TCP is answered, and a full segment arrives.
    TcpWorks {
        /// What gets through.
        mtu: u16,
    },
    /// Nothing is answered to that would tell.
    NoAnswer,
}

impl Verdict {
    /// What is known to get through.
    #[must_use]
    pub const fn mtu(self, interface: u16) -> Option<u16> {
        match self {
            Self::Whole => Some(interface),
            Self::Signalled { mtu }
            | Self::BlackHole { mtu }
            | Self::TcpHangs { mtu, .. }
            | Self::Lossy { mtu }
            | Self::TcpWorks { mtu } => Some(mtu),
            Self::NoAnswer => None,
        }
    }

    /// Whether nothing needs to be done.
    #[must_use]
    pub const fn is_fine(self) -> bool {
        matches!(self, Self::Whole | Self::Signalled { .. } | Self::TcpWorks { .. })
    }

    /// Whether large packets vanish.
    #[must_use]
    pub const fn is_black_hole(self) -> bool {
        matches!(self, Self::BlackHole { .. } | Self::TcpHangs { .. })
    }
}

/// Judges by what the methods found, and by the largest segment of TCP that arrived and the smallest that did not.
///
/// A packet that arrived proves that the path carries its size; one that did not may have been stopped for what it was.
/// So the method that got the largest packet through decides.
#[must_use]
pub fn judge(
    interface: u16,
    methods: [Option<&Found>; 2],
    tcp: &(Option<u16>, Option<u16>),
) -> Verdict {
    let (arrived, lost) = *tcp;
    let found = || methods.into_iter().flatten().filter(|found| found.largest.is_some());
    let Some(mtu) = found().filter_map(|found| found.largest).max() else {
        return match (arrived, lost) {
            (Some(mtu), Some(lost)) => Verdict::TcpHangs { mtu, lost },
            (Some(mtu), None) => Verdict::TcpWorks { mtu },
            (None, _) => Verdict::NoAnswer,
        };
    };
    if arrived.is_some_and(|arrived| arrived > mtu) && lost.is_none() {
        return Verdict::TcpWorks { mtu: arrived.unwrap_or(mtu) };
    }
    let limits: Vec<Limit> =
        found().filter(|found| found.largest == Some(mtu)).map(|found| found.limit).collect();
    if mtu >= interface || limits.contains(&Limit::Nothing) {
        Verdict::Whole
    } else if limits.contains(&Limit::Refused) {
        Verdict::Signalled { mtu }
    } else if limits.iter().any(|limit| matches!(limit, Limit::Silence(_))) {
        Verdict::BlackHole { mtu }
    } else {
        Verdict::Lossy { mtu }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(largest: u16, limit: Limit) -> Found {
        Found { largest: Some(largest), limit, refusals: Vec::new(), sent: 0, fitting: (0, 0) }
    }

    fn verdict(echo: (u16, Limit), udp: (u16, Limit), tcp: (Option<u16>, Option<u16>)) -> Verdict {
        judge(1500, [Some(&found(echo.0, echo.1)), Some(&found(udp.0, udp.1))], &tcp)
    }

    const SILENCE: Limit = Limit::Silence(9);

    #[test]
    fn the_larger_proof_decides() {
        // Somebody filters large pings.
        let filtered = verdict((576, SILENCE), (1500, Limit::Nothing), (None, None));
        assert_eq!(filtered, Verdict::Whole);
        let both = verdict((1400, SILENCE), (1400, SILENCE), (None, None));
        assert_eq!(both, Verdict::BlackHole { mtu: 1400 });
        // One router's word is enough.
        let said = verdict((1400, SILENCE), (1400, Limit::Refused), (None, None));
        assert_eq!(said, Verdict::Signalled { mtu: 1400 });
        let unsure = verdict((1400, Limit::Unclear), (68, Limit::Unclear), (None, None));
        assert_eq!(unsure, Verdict::Lossy { mtu: 1400 });
    }

    #[test]
    fn a_segment_that_arrived_is_a_proof_too() {
        let works = verdict((1400, SILENCE), (1400, SILENCE), (Some(1500), None));
        assert_eq!(works, Verdict::TcpWorks { mtu: 1500 });
        let hangs = verdict((1400, SILENCE), (1400, SILENCE), (Some(1400), Some(1500)));
        assert_eq!(hangs, Verdict::BlackHole { mtu: 1400 });
    }

    #[test]
    fn tcp_alone() {
        assert_eq!(judge(1500, [None, None], &(None, None)), Verdict::NoAnswer);
        let hangs = judge(1500, [None, None], &(Some(1400), Some(1500)));
        assert_eq!(hangs, Verdict::TcpHangs { mtu: 1400, lost: 1500 });
        assert_eq!(judge(1500, [None, None], &(Some(1500), None)), Verdict::TcpWorks { mtu: 1500 });
        assert_eq!(judge(1500, [None, None], &(None, Some(256))), Verdict::NoAnswer);
    }
}
