//! Datagrams: a question and its answer, which is no longer, so that a server never sends more than it got. A question may go on with zeros.
//!
//! | bytes | what |
//! |---|---|
//! | 0 to 3 | `dqm1` |
//! | 4 to 19 | the session's cookie |
//! | 20 to 27 | the question's number, big-endian; with 0 it does not count |
//! | 28 | 0 for a question, 1 for an answer |
//! | 29 | of a question, the ECN field that its answer is to have; of an answer, the ECN field that the question arrived with |
//! | 30 | of a question, 1 if its answer is to be as long, and not of 40 bytes; of an answer 0 |
//! | 31 | 0 |
//! | 32 to 39 | of an answer, how many questions of the session that count had arrived by then |

use super::Cookie;

/// Bytes of a datagram, at least.
pub const DATAGRAM_BYTES: usize = 40;
/// No question is longer, in bytes: what fits into the frames of most that are larger than Ethernet's.
pub const LONGEST_DATAGRAM: usize = 9_216;
const MAGIC: &[u8; 4] = b"dqm1";

/// A question, or its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The session's.
    pub cookie: Cookie,
    /// The question's number.
    pub number: u64,
    /// The ECN field that the answer is to have.
    pub ecn: u8,
    /// Whether the answer is to be as long as the question.
    pub is_echo: bool,
    /// What an answer says beside.
    pub echoed: Option<Echoed>,
}

/// What a server says of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echoed {
    /// The ECN field that it arrived with.
    pub arrived_ecn: u8,
    /// How many of the session had arrived by then.
    pub arrived: u64,
}

impl Datagram {
    /// As it crosses the path. An answer does not say which ECN field it is to have: it has it.
    #[must_use]
    pub fn write(&self) -> [u8; DATAGRAM_BYTES] {
        let mut bytes = [0; DATAGRAM_BYTES];
        bytes[..4].copy_from_slice(MAGIC);
        bytes[4..20].copy_from_slice(&self.cookie.0);
        bytes[20..28].copy_from_slice(&self.number.to_be_bytes());
        match self.echoed {
            None => bytes[29..31].copy_from_slice(&[self.ecn, self.is_echo.into()]),
            Some(echoed) => {
                bytes[28..30].copy_from_slice(&[1, echoed.arrived_ecn]);
                bytes[32..].copy_from_slice(&echoed.arrived.to_be_bytes());
            }
        }
        bytes
    }

    /// Reads one; `None` for all that is none.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; DATAGRAM_BYTES] = bytes.first_chunk()?;
        let u64_at = |at: usize| Some(u64::from_be_bytes(bytes[at..at + 8].try_into().ok()?));
        let (is_answer, ecn, is_echo) = (bytes[28] == 1, bytes[29], bytes[30] == 1);
        let is_right = &bytes[..4] == MAGIC
            && bytes[28] <= 1
            && ecn <= 3
            && bytes[30] <= u8::from(!is_answer)
            && bytes[31] == 0;
        if !is_right || (!is_answer && u64_at(32)? != 0) {
            return None;
        }
        let echoed = match is_answer {
            true => Some(Echoed { arrived_ecn: ecn, arrived: u64_at(32)? }),
            false => None,
        };
        Some(Self {
            cookie: Cookie(bytes[4..20].try_into().ok()?),
            number: u64_at(20)?,
            ecn: if is_answer { 0 } else { ecn },
            is_echo,
            echoed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_read_back_and_nothing_else_is_one() {
        let cookie = Cookie([7; 16]);
        let question = Datagram { cookie, number: 42, ecn: 1, is_echo: true, echoed: None };
        let echoed = Some(Echoed { arrived_ecn: 3, arrived: 40 });
        let answer = Datagram { ecn: 0, is_echo: false, echoed, ..question };
        for datagram in [question, answer] {
            let bytes = datagram.write();
            assert_eq!(Datagram::read(&bytes), Some(datagram));
            assert_eq!(Datagram::read(&bytes[1..]), None);
            assert_eq!(Datagram::read(&[&bytes[..], &[0; 9]].concat()), Some(datagram));
            for (at, wrong) in [(0, b'D'), (28, 2), (29, 4), (30, 2), (31, 1)] {
                let mut bytes = bytes;
                bytes[at] = wrong;
                assert_eq!(Datagram::read(&bytes), None, "byte {at}");
            }
        }
    }
}
