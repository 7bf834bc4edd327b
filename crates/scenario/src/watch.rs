//! Who looks at a run more closely than its outcome does: at packets, at their headers, at connections.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::event::Event;
use crate::summary::Look;

/// What somebody wants to be told of. Each takes time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wants {
    /// What happens to packets: [`Watch::packet`].
    pub packets: bool,
    /// Their headers: [`Watch::headers`].
    pub headers: bool,
    /// What connections do: [`Watch::connection`].
    pub connections: bool,
}

impl Wants {
    /// Whether anything is wanted.
    #[must_use]
    pub const fn any(self) -> bool {
        self.packets || self.headers || self.connections
    }
}

/// Sees what happens in a run. A closure that takes events is one that looks at nothing else.
pub trait Watch {
    /// What is to be told. It is asked once, before the run.
    fn wants(&self) -> Wants;

    /// A packet was seen.
    fn packet(&mut self, event: Event) {
        let _ = event;
    }

    /// A packet passed a place where its headers are looked at.
    fn headers(&mut self, headers: &Headers<'_>) {
        let _ = headers;
    }

    /// A connection did something.
    fn connection(&mut self, event: &ConnectionEvent) {
        let _ = event;
    }
}

impl<F: FnMut(Event)> Watch for F {
    fn wants(&self) -> Wants {
        Wants { packets: true, ..Wants::default() }
    }

    fn packet(&mut self, event: Event) {
        self(event);
    }
}

/// Where the headers of packets are looked at, as a capture does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Point {
    /// At the hosts that the queue under test stands before: all that they send and get.
    Near,
    /// At the hosts on the other side.
    Far,
    /// On the way into the queue under test, which may drop it.
    In,
    /// On the way out of it.
    Out,
    /// The same of the queue of the other direction.
    UpIn,
    /// And out of that.
    UpOut,
}

impl Point {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Near, Self::Far, Self::In, Self::Out, Self::UpIn, Self::UpOut];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Far => "far",
            Self::In => "in",
            Self::Out => "out",
            Self::UpIn => "up-in",
            Self::UpOut => "up-out",
        }
    }
}

/// The headers of a packet, at a place and time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Headers<'a> {
    /// When, in nanoseconds since the start.
    pub at_ns: u64,
    /// Where.
    pub point: Point,
    /// Bytes of the whole IP packet.
    pub length: u32,
    /// From the IP header on, without payload.
    #[serde(with = "hexadecimal")]
    pub bytes: Cow<'a, [u8]>,
}

/// Bytes as text: a quarter of what they take as a list of numbers.
mod hexadecimal {
    use std::borrow::Cow;
    use std::fmt::Write as _;

    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    #[expect(clippy::ptr_arg, reason = "serde gives the field as it is")]
    pub(super) fn serialize<S: Serializer>(
        bytes: &Cow<'_, [u8]>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(2 * bytes.len());
        for byte in bytes.iter() {
            let _ = write!(text, "{byte:02x}");
        }
        serializer.serialize_str(&text)
    }

    pub(super) fn deserialize<'de, 'a, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Cow<'a, [u8]>, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digit = |at: &u8| char::from(*at).to_digit(16).map(|digit| digit as u8);
        let byte = |pair: &[u8]| Some(digit(pair.first()?)? << 4 | digit(pair.get(1)?)?);
        let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(byte).collect();
        bytes.map(Cow::Owned).ok_or_else(|| D::Error::custom("not pairs of hexadecimal digits"))
    }
}

/// Something that happened to a connection at its sender of data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionEvent {
    /// When, in nanoseconds since the start.
    pub at_ns: u64,
    /// The number of its flow, as that of an [`Event`].
    pub flow: u32,
    /// What.
    pub change: Change,
}

/// What happened to a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// A packet left its sender's interface: the bytes `start` to `end` of the stream, and bytes of the IP packet.
    Sent {
        /// The place of the first payload byte.
        start: u64,
        /// The place after the last one.
        end: u64,
        /// Bytes of the IP packet, or aggregate.
        length: u32,
    },
    /// An acknowledgement came back.
    Acknowledged {
        /// Everything before this place has arrived.
        ack: u64,
        /// Bytes that the receiver takes beyond that.
        window: u64,
        /// What has arrived behind gaps, from a place to another; a reported duplicate may be among it.
        blocks: Vec<(u64, u64)>,
        /// Whether it echoes congestion.
        ece: bool,
    },
    /// These bytes of the stream are deemed lost.
    Lost {
        /// The place of the first one.
        start: u64,
        /// The place after the last one.
        end: u64,
    },
    /// How it is now. It may be as it was.
    Metrics(Metrics),
}

/// A connection's congestion control and recovery at a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metrics {
    /// Window, flight, rate and the rest that `ss -ti` shows first.
    pub look: Look,
    /// Payload of a full segment, in bytes: what windows are counted in.
    pub mss: u32,
    /// The mean deviation of the round-trip time in microseconds, if one was measured.
    pub rttvar_us: Option<u64>,
    /// The smallest round-trip time of the last minutes in microseconds, if one was measured.
    pub min_rtt_us: Option<u64>,
    /// What its congestion control is doing, in one word.
    pub phase: Cow<'static, str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive_their_text() {
        let bytes: Vec<u8> = (0..=255).collect();
        let headers = Headers { at_ns: 7, point: Point::UpIn, length: 1500, bytes: bytes.into() };
        let text = serde_json::to_string(&headers).unwrap();
        assert!(text.contains("up-in") && text.contains("000102"), "{text}");
        let back: Headers<'_> = serde_json::from_str(&text).unwrap();
        assert_eq!(back, headers);
        for wrong in ["0", "0g", "é"] {
            let text = text.replace("000102", wrong);
            assert!(serde_json::from_str::<Headers<'_>>(&text).is_err(), "{wrong}");
        }
    }
}
