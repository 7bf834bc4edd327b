//! How many connections there may be, in all and of an address.
//!
//! Who knows the token is done with the first lines in two round trips. So where there are too many who have not said anything that
//! matters, the one that has been there longest goes for the one that has just come: who holds connections open keeps nobody out.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Shared;
use super::allow::first_bits;

/// Connections at once.
const MOST: usize = 512;
/// Of one address: some sessions of many flows, and probes.
const MOST_OF_ONE: usize = 192;
/// Of strangers, whose client has not proved anything yet.
const MOST_STRANGERS: usize = 256;
/// Of those from one address.
const MOST_STRANGERS_OF_ONE: usize = 64;
/// Who has one address of IPv6 has all that begin like it.
const IPV6_PREFIX: u8 = 64;

/// Who is there.
#[derive(Debug, Default)]
pub(super) struct Guests(Mutex<Book>);

#[derive(Debug, Default)]
struct Book {
    all: usize,
    by_address: HashMap<u128, usize>,
    /// Those who came first come first.
    strangers: VecDeque<Stranger>,
    /// How many there have ever been.
    number: u64,
}

#[derive(Debug)]
struct Stranger {
    number: u64,
    whose: u128,
    stream: TcpStream,
}

/// A connection that is counted; a stranger at first.
#[derive(Debug)]
pub(super) struct Guest {
    shared: Arc<Shared>,
    whose: u128,
    number: u64,
}

impl Guests {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a connection, if there is room for it.
    pub(super) fn admit(
        shared: &Arc<Shared>,
        address: IpAddr,
        stream: &TcpStream,
    ) -> Option<Guest> {
        let stream = stream.try_clone().ok()?;
        let whose = first_bits(address, if address.is_ipv4() { 32 } else { IPV6_PREFIX });
        let mut book = shared.guests.book();
        let own = book.by_address.get(&whose).copied().unwrap_or(0);
        if book.all >= MOST || own >= MOST_OF_ONE {
            return None;
        }
        book.make_room(whose);
        book.all += 1;
        *book.by_address.entry(whose).or_default() += 1;
        book.number += 1;
        let number = book.number;
        book.strangers.push_back(Stranger { number, whose, stream });
        drop(book);
        Some(Guest { shared: Arc::clone(shared), whose, number })
    }
}

impl Book {
    /// Ends the connection of the stranger who was there first, of this address or of any, if there are as many as may be.
    fn make_room(&mut self, whose: u128) {
        let mut of_this = self.strangers.iter().enumerate().filter(|(_, one)| one.whose == whose);
        let first = of_this.next().map(|(at, _)| at);
        let goes = if 1 + of_this.count() >= MOST_STRANGERS_OF_ONE {
            first
        } else {
            (self.strangers.len() >= MOST_STRANGERS).then_some(0)
        };
        if let Some(stranger) = goes.and_then(|at| self.strangers.remove(at)) {
            // Its thread notices, and takes it out of the books.
            let _ = stranger.stream.shutdown(Shutdown::Both);
        }
    }
}

impl Guest {
    /// The client has proved that it knows the token.
    pub(super) fn is_known(&self) {
        self.shared.guests.book().strangers.retain(|stranger| stranger.number != self.number);
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.is_known();
        let mut book = self.shared.guests.book();
        book.all -= 1;
        if let Some(own) = book.by_address.get_mut(&self.whose) {
            *own -= 1;
            if *own == 0 {
                book.by_address.remove(&self.whose);
            }
        }
    }
}
