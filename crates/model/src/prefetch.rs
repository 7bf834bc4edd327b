//! Hints for the cache. Memory is slower than the loop: with many connections, what is known of each is asked for before its turn,
//! and what that points to a turn later. They change nothing but how long a run takes.

use std::mem::offset_of;
use std::slice;

use dualq_tcp::{Receiver, Sender};
use prefetch_index::prefetch_index;

use crate::engine::{Cause, Simulation};
use crate::host::Connection;

/// From so many connections on the near caches do not hold them.
const MANY: usize = 512;
/// Packets themselves are asked for so many before their turn.
const LATER: usize = 8;
/// The bytes that come from memory at a time.
const CACHE_LINE: usize = 64;

/// Whose part of a connection is needed.
#[derive(Clone, Copy, Debug)]
enum Side {
    /// The sender, its program and its interface.
    Sender,
    /// The receiver.
    Receiver,
}

/// Asks for what is mostly needed of one side of a connection from memory, without waiting.
#[inline]
fn ask(connection: &Connection, side: Side) {
    // What is behind the beginning of the program is seldom needed, and so are runs of what was written, before what is known of the most recent one.
    const SENDER: usize = offset_of!(Connection, sender);
    const BOTH: usize = offset_of!(Connection, route);
    const RECEIVER: usize = offset_of!(Connection, receiver);
    let start = slice::from_ref(&connection.line_bytes);
    let read = |from: usize, to: usize| {
        for line in from / CACHE_LINE..to.div_ceil(CACHE_LINE) {
            prefetch_index(start, line * (CACHE_LINE / size_of::<u64>()));
        }
    };
    match side {
        Side::Sender => {
            read(0, CACHE_LINE);
            read(SENDER, SENDER + Sender::NEAR_BYTES);
            read(BOTH, RECEIVER);
        }
        Side::Receiver => read(BOTH, RECEIVER + Receiver::NEAR_BYTES),
    }
}

impl Simulation<'_> {
    #[inline]
    fn read_ahead(&self, connection: u32, side: Side) {
        ask(&self.connections[connection as usize], side);
        self.agenda.read_ahead(connection);
    }

    /// A packet comes out of the path down.
    #[inline]
    pub(crate) fn read_receivers_ahead(&self) {
        if self.connections.len() >= MANY {
            self.read_next_receiver_ahead();
        }
    }

    #[inline(never)]
    fn read_next_receiver_ahead(&self) {
        if let Some(packet) = self.network.upcoming() {
            self.read_ahead(packet.owner.number(), Side::Receiver);
        }
    }

    /// A packet comes out of the path up.
    #[inline]
    pub(crate) fn read_senders_ahead(&self) {
        if self.connections.len() >= MANY {
            self.read_next_senders_ahead();
        }
    }

    #[inline(never)]
    fn read_next_senders_ahead(&self) {
        let up = &self.network.up;
        if let Some(first) = up.upcoming(0) {
            self.connections[first.owner.number() as usize].sender.read_ahead();
        }
        if let Some(second) = up.upcoming(1) {
            self.read_ahead(second.owner.number(), Side::Sender);
            if let Some(stored) = second.body.stored() {
                self.around.options.read_ahead(stored);
            }
        }
        if let Some(later) = up.upcoming(LATER) {
            prefetch_index(slice::from_ref(later), 0);
        }
    }

    /// A queue of an interface lets go what is due of one connection, and of this one next.
    #[inline]
    pub(crate) fn read_next_due_ahead(&self, connection: Option<u32>) {
        if self.connections.len() >= MANY
            && let Some(connection) = connection
        {
            self.read_sender_ahead(connection);
        }
    }

    #[inline(never)]
    fn read_sender_ahead(&self, connection: u32) {
        self.read_ahead(connection, Side::Sender);
    }

    /// A timer runs out.
    #[inline]
    pub(crate) fn read_timers_ahead(&self) {
        if self.connections.len() >= MANY {
            self.read_next_timers_ahead();
        }
    }

    #[inline(never)]
    fn read_next_timers_ahead(&self) {
        if let Some((second, Cause::Departure)) = self.agenda.upcoming(1) {
            self.waiting.read_ahead(&self.connections[second as usize].device);
        }
        if let Some((third, cause)) = self.agenda.upcoming(2) {
            let receiver = cause == Cause::Receiver;
            self.read_ahead(third, if receiver { Side::Receiver } else { Side::Sender });
        }
    }
}
