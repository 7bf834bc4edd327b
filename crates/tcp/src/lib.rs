//! TCP endpoints without I/O, as Linux has them: packets in, packets and timers out.
//!
//! A sender owns the congestion window, the scoreboard and the timers of one direction of a connection; a receiver
//! acknowledges. Neither knows a socket, a clock or a random device: time is an argument, randomness comes from a seed.
//! The congestion controls are in [`cc`], one file each, in the kernel's integer units.
//!
//! Whoever drives them owns the clock and the path between them: here 10 ms each way, and nothing else.
//!
//! ```
//! use std::collections::VecDeque;
//! use std::time::Duration;
//!
//! use dualq_tcp::{Receiver, ReceiverConfig, Sender, SenderConfig};
//! use dualq_units::Instant;
//!
//! const ONE_WAY: Duration = Duration::from_millis(10);
//! let mut sender = Sender::new(SenderConfig::default());
//! let mut receiver = Receiver::new(ReceiverConfig::default());
//! let (mut there, mut back) = (VecDeque::new(), VecDeque::new());
//! let mut now = Instant::ZERO;
//!
//! // The SYN goes by itself before the first of these bytes.
//! sender.write(1_000_000);
//! while !sender.is_done() {
//!     // After whatever happened. What has left the sender's own queue makes room for more in it.
//!     let mut more = true;
//!     while more {
//!         let mut sent = Vec::new();
//!         // A packet may be an aggregate of many segments: `Data::split_first` takes it apart.
//!         sender.transmit(now, &mut |packet| sent.push(packet.data));
//!         more = false;
//!         for data in sent {
//!             more |= sender.on_departure(data.payload);
//!             there.push_back((now + ONE_WAY, data));
//!         }
//!     }
//!     // What happens next: something arrives, or a timer fires.
//!     let arrival = there.front().map_or(Instant::NEVER, |(at, _)| *at);
//!     let answer = back.front().map_or(Instant::NEVER, |(at, _)| *at);
//!     now = arrival.min(answer).min(sender.next_timer()).min(receiver.next_timer());
//!     let mut acks = Vec::new();
//!     if arrival == now {
//!         let (_, data) = there.pop_front().unwrap();
//!         receiver.on_data(now, &data, &mut |ack| acks.push(ack));
//!     } else if answer == now {
//!         sender.on_ack(now, &back.pop_front().unwrap().1);
//!     } else if receiver.next_timer() == now {
//!         receiver.on_timer(now, &mut |ack| acks.push(ack));
//!     } else {
//!         sender.on_timer(now);
//!     }
//!     back.extend(acks.into_iter().map(|ack| (now + ONE_WAY, ack)));
//! }
//! // The handshake, and then 10, 20, 40, … segments each round trip of 20 ms.
//! assert_eq!(receiver.received(), 1_000_000);
//! assert_eq!(now, Instant::ZERO + 8 * 2 * ONE_WAY);
//! ```
#![forbid(unsafe_code)]

pub mod cc;
mod max_filter;
mod packet;
mod rack;
mod rate;
mod receiver;
mod rtt;
mod scoreboard;
mod sender;
mod tick;

pub use cc::{Algorithm, EcnStyle};
pub use packet::{
    Ack, Data, ETHERNET_BYTES, HEADER_BYTES, MAX_SACK_BLOCKS, PACKET_OVERHEAD, SYN_BYTES,
    SackBlock, Transmission,
};
pub use rate::RateSample;
pub use receiver::{MIN_ACK_DELAY, Receiver, ReceiverConfig, ReceiverStats};
pub use sender::{Pacing, Sender, SenderConfig, SenderStats};
pub use tick::Tick;
