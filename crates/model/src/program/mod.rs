//! What runs at the sending ends. Programs are told what happens, and say when it is their turn again.

mod bulk;
mod exchange;
mod ping;
mod udp;

use dualq_tcp::Sender;

use crate::packet::Outgoing;
use crate::record::Record;

pub(crate) use bulk::Bulk;
pub(crate) use exchange::{Answer, Ask};
pub(crate) use ping::Ping;
pub(crate) use udp::Udp;

/// What it takes a program to wake and to send what is no stream.
pub(crate) const SEND_NS: u64 = 2;

/// A program.
#[derive(Clone, Debug)]
pub(crate) enum Program {
    /// Sends, to an end or for ever.
    Bulk(Bulk),
    /// Sends an ICMP echo request now and then, whatever is answered.
    Ping(Ping),
    /// Asks, waits for the answer, pauses, asks again.
    Ask(Ask),
    /// Answers what is asked.
    Answer(Answer),
    /// Sends a UDP packet at each interval, whatever the path does.
    Udp(Udp),
}

/// When something happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) now_ns: u64,
    /// Whether the warm-up is over.
    pub(crate) is_measured: bool,
}

/// What a program has at hand when it is its turn.
pub(crate) struct Turn<'a> {
    pub(crate) now_ns: u64,
    pub(crate) sender: &'a mut Sender,
    /// Takes what is no data of TCP.
    pub(crate) out: &'a mut Vec<Outgoing>,
    pub(crate) record: &'a mut Record,
}

impl Program {
    /// It is its turn, or it is started. Returns when it is its turn again, if that is known; so do all that follow.
    pub(crate) fn turn(&mut self, turn: &mut Turn<'_>) -> Option<u64> {
        match self {
            Self::Bulk(bulk) => bulk.turn(turn),
            Self::Ping(ping) => ping.turn(turn),
            Self::Ask(ask) => {
                ask.turn(turn);
                None
            }
            // It waits for questions; the connection opens all the same.
            Self::Answer(_) => None,
            Self::Udp(udp) => udp.turn(turn),
        }
    }

    /// The sender has digested an acknowledgement.
    #[inline]
    pub(crate) fn acknowledged(&mut self, at: Moment, sender: &Sender) -> Option<u64> {
        match self {
            Self::Bulk(bulk) => bulk.acknowledged(at, sender),
            Self::Ping(_) | Self::Udp(_) | Self::Ask(_) | Self::Answer(_) => None,
        }
    }

    /// The connection that it opened is open.
    pub(crate) fn opened(&mut self, turn: &mut Turn<'_>) {
        if let Self::Ask(ask) = self {
            ask.begin(turn);
        }
    }

    /// A reply to an echo request came back, which was sent at `sent_ns`.
    pub(crate) fn replied(&mut self, at: Moment, sent_ns: u64) {
        if let Self::Ping(ping) = self {
            ping.replied(at, sent_ns);
        }
    }

    /// Whether it sends a stream, by TCP; else what it sends leaves as it is.
    pub(crate) const fn is_stream(&self) -> bool {
        !matches!(self, Self::Ping(_) | Self::Udp(_))
    }

    /// The round trips that it measured, if it does so.
    pub(crate) const fn round_trips(&self) -> Option<&RoundTrips> {
        match self {
            Self::Bulk(_) | Self::Udp(_) | Self::Answer(_) => None,
            Self::Ask(ask) => Some(&ask.round_trips),
            Self::Ping(ping) => Some(&ping.round_trips),
        }
    }
}

/// Round trips that a program measured, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoundTrips {
    pub(crate) last_ns: Option<u64>,
    /// From the warm-up on.
    pub(crate) samples: Vec<u64>,
}

impl RoundTrips {
    fn record(&mut self, at: Moment, sent_ns: u64) {
        let round_trip_ns = at.now_ns - sent_ns;
        self.last_ns = Some(round_trip_ns);
        if at.is_measured {
            self.samples.push(round_trip_ns);
        }
    }
}
