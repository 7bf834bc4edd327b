//! One program for all tests of the crate: each discipline is compiled for each type of packet in each program that builds one.

mod about;
mod disciplines;
mod kinds;
mod properties;
mod queues;
mod tc;

use dualq_qdisc::{Ecn, FlowPacket, Packet};

/// Of tests that only look at what was configured.
enum Nothing {}

impl Packet for Nothing {
    fn length(&self) -> u32 {
        match *self {}
    }
    fn memory(&self) -> u32 {
        match *self {}
    }
    fn ecn(&self) -> Ecn {
        match *self {}
    }
    fn set_ce(&mut self) {}
}

impl FlowPacket for Nothing {}
