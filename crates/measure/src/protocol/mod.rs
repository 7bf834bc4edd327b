//! What crosses the path, without I/O: lines of JSON until both ends know what a connection is for, then bulk data or echoes; and
//! datagrams. `docs/measure-protocol.md` is its description.

mod block;
mod datagram;
mod line;
mod message;

pub use block::{BLOCK_HEADER_BYTES, BlockReader, LONGEST_BLOCK, block_header};
pub use datagram::{DATAGRAM_BYTES, Datagram, Echoed, LONGEST_DATAGRAM};
pub use line::{LONGEST_LINE, LineError, LineReader};
pub use message::{
    ArrivedSyn, Cookie, FlowReport, FlowSample, FromClient, FromServer, Limits, Nonce, Proof,
    ProtocolError, Role, read, write,
};

/// The version of all of it. An end that speaks another says so and goes.
pub const VERSION: u32 = 1;

/// The port where servers listen by default, for TCP and UDP: the number of the RFC of DualPI2.
pub const PORT: u16 = 9332;

/// How long an echo's question and answer are, in bytes.
pub const ECHO_BYTES: usize = 16;
