//! The hosts at both ends of the network: connections, and the interfaces of their senders.

mod connection;
mod interface;
mod pages;

pub(crate) use connection::{Connection, Route};
pub(crate) use interface::{Delayed, Interface};
pub(crate) use pages::{Pages, Written};
