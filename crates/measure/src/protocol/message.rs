//! What both ends say to each other in lines of JSON.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::figures::{HandshakeEcn, TcpEcn};
use crate::token::{NONCE_BYTES, PROOF_BYTES, from_hex, to_hex};

/// A line that means nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a line is no message of this protocol: {0}")]
pub struct ProtocolError(String);

macro_rules! hexadecimal {
    ($(#[$about:meta])* $name:ident, $bytes:expr) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $name(pub [u8; $bytes]);

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&to_hex(&self.0))
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                from_hex(&text).map(Self).ok_or_else(|| {
                    serde::de::Error::custom(format!("{} hexadecimal digits are wanted", 2 * $bytes))
                })
            }
        }
    };
}

hexadecimal!(
    /// A number that was never used before.
    Nonce,
    NONCE_BYTES
);
hexadecimal!(
    /// What shows that the other end knows the token.
    Proof,
    PROOF_BYTES
);
hexadecimal!(
    /// What names a session, to its connections and in its datagrams.
    Cookie,
    NONCE_BYTES
);

/// What a server says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FromServer {
    /// The first line of every connection.
    Hello {
        /// The version of the protocol.
        dualq_measure: u32,
        /// What the client is to prove something of.
        challenge: Nonce,
    },
    /// The client may; the connection is now what it asked for.
    Welcome {
        /// That the server knows the token too.
        proof: Proof,
        /// What names the session.
        session: Cookie,
        /// What the server allows.
        limits: Limits,
    },
    /// What the server saw of the flows that have ended since it was last asked.
    Flows {
        /// One for each.
        flows: Vec<FlowReport>,
    },
    /// What the server saw of handshakes.
    Handshakes {
        /// That of this connection; none where its kernel keeps no SYNs.
        own: Option<ArrivedSyn>,
        /// Of those that were asked for, the ones whose connections are there.
        others: Vec<ArrivedSyn>,
    },
    /// Why the server ends this connection.
    Refusal {
        /// In words.
        reason: String,
    },
}

/// What a client says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FromClient {
    /// Its first line of every connection.
    Prove {
        /// The version of the protocol.
        dualq_measure: u32,
        /// What the server is to prove something of.
        challenge: Nonce,
        /// That the client knows the token.
        proof: Proof,
        /// What the connection is to be.
        role: Role,
    },
    /// Asks for what the server saw of so many flows, by their numbers; it answers when all of them have ended.
    Collect {
        /// The numbers that the client gave them.
        flows: Vec<u32>,
    },
    /// Asks how SYNs arrived: that of this connection, and others of this address.
    Handshakes {
        /// The sequence numbers of the others: on the way, ports may be changed.
        numbers: Vec<u32>,
    },
}

/// What a connection is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Role {
    /// Begins a session, which lasts as long as this connection.
    Control,
    /// What the client sends comes back.
    Echo {
        /// The session that it belongs to.
        session: Cookie,
    },
    /// The server sends as fast as it can.
    Down {
        /// The session that it belongs to.
        session: Cookie,
        /// The flow's number, which the client chose.
        flow: u32,
        /// The congestion control that the server is to use; its default without.
        cc: Option<String>,
        /// The greatest rate, in bits per second.
        rate: Option<u64>,
    },
    /// The client sends as fast as it can.
    Up {
        /// The session that it belongs to.
        session: Cookie,
        /// The flow's number, which the client chose.
        flow: u32,
    },
}

impl Role {
    /// The session that the connection belongs to, if it does not begin one.
    #[must_use]
    pub const fn session(&self) -> Option<Cookie> {
        match self {
            Self::Control => None,
            Self::Echo { session } | Self::Down { session, .. } | Self::Up { session, .. } => {
                Some(*session)
            }
        }
    }
}

/// What a server allows a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// How long it may last, in milliseconds.
    pub duration_ms: u64,
    /// How fast the flows of each direction may be altogether, in bits per second, if the server limits that.
    pub rate: Option<u64>,
    /// How many flows it may have at once.
    pub flows: u32,
}

/// A SYN as it reached the server, and what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrivedSyn {
    /// Its sequence number.
    pub number: u32,
    /// With what it arrived.
    pub ecn: HandshakeEcn,
    /// What the server's kernel agreed on.
    pub agreed: TcpEcn,
}

/// What the server saw of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowReport {
    /// The flow's number.
    pub flow: u32,
    /// The congestion control of the server's end, by its kernel's name.
    pub cc: Option<String>,
    /// In the order of time.
    pub samples: Vec<FlowSample>,
}

/// What one end saw of a flow at one time: the sender's `TCP_INFO`, or what the receiver counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Row", into = "Row")]
pub struct FlowSample {
    /// Microseconds since the flow began, on this end's clock.
    pub t_us: u64,
    /// Payload that was acknowledged to a sender, or that reached a receiver, in bytes.
    pub bytes: u64,
    /// A sender's smoothed round-trip time, in microseconds.
    pub srtt_us: u32,
    /// The smallest one that it has seen lately.
    pub min_rtt_us: u32,
    /// The congestion window, in segments.
    pub cwnd: u32,
    /// Segments that were sent, again or not.
    pub segments: u32,
    /// Segments that were sent again.
    pub retransmits: u32,
    /// Segments that were marked CE: of which a sender was told, or that reached a receiver whose kernel counts them (Linux 6.18).
    pub ce: u32,
}

/// A sample as a list of numbers: a report has hundreds.
type Row = (u64, u64, u32, u32, u32, u32, u32, u32);

impl From<Row> for FlowSample {
    fn from((t_us, bytes, srtt_us, min_rtt_us, cwnd, segments, retransmits, ce): Row) -> Self {
        Self { t_us, bytes, srtt_us, min_rtt_us, cwnd, segments, retransmits, ce }
    }
}

impl From<FlowSample> for Row {
    fn from(s: FlowSample) -> Self {
        (s.t_us, s.bytes, s.srtt_us, s.min_rtt_us, s.cwnd, s.segments, s.retransmits, s.ce)
    }
}

/// A message as a line, with its end.
#[must_use]
pub fn write(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("messages have only what JSON has");
    line.push(b'\n');
    line
}

/// Reads a line without its end.
///
/// # Errors
/// If it is no such message.
pub fn read<Message: DeserializeOwned>(line: &str) -> Result<Message, ProtocolError> {
    serde_json::from_str(line).map_err(|error| {
        let text = error.to_string();
        // The line is always the first, and a column helps nobody.
        ProtocolError(text.split(" at line").next().unwrap_or(&text).to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_read_back() {
        let session = Cookie([0x1f; 16]);
        let role = Role::Down { session, flow: 3, cc: Some("cubic".into()), rate: Some(1_000_000) };
        let prove = FromClient::Prove {
            dualq_measure: 1,
            challenge: Nonce([2; 16]),
            proof: Proof([3; 32]),
            role,
        };
        let line = String::from_utf8(write(&prove)).unwrap();
        assert_eq!(read::<FromClient>(line.trim_end()).unwrap(), prove);
        let sample =
            FlowSample { t_us: 5, bytes: 1_000_000, srtt_us: 20_000, ..Default::default() };
        let flows = FromServer::Flows {
            flows: vec![FlowReport { flow: 3, cc: None, samples: vec![sample] }],
        };
        let line = String::from_utf8(write(&flows)).unwrap();
        assert_eq!(
            line,
            "{\"flows\":{\"flows\":[{\"flow\":3,\"cc\":null,\"samples\":[[5,1000000,20000,0,0,0,0,0]]}]}}\n"
        );
        assert_eq!(read::<FromServer>(line.trim_end()).unwrap(), flows);
    }

    #[test]
    fn what_means_nothing_is_refused_in_one_line() {
        for line in [
            "",
            "GET / HTTP/1.1",
            "{\"hello\":{}}",
            "{\"prove\":{\"dualq_measure\":1}}",
            "[1,2]",
            "{\"collect\":{\"flows\":[-1]}}",
            "{\"handshakes\":{\"numbers\":[4294967296]}}",
        ] {
            let error = read::<FromClient>(line).unwrap_err().to_string();
            assert!(error.starts_with("a line is no message") && error.lines().count() == 1);
        }
    }
}
