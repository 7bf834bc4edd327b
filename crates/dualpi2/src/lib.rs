//! DualPI2, the Dual-Queue Coupled AQM of [RFC 9332], as an engine to embed.
//!
//! One bottleneck, two queues: *classic* traffic (Reno, CUBIC, BBR, anything Not-ECT or ECT(0)) is kept near a
//! target delay by a PI controller; *low latency* traffic (L4S: ECT(1) and CE) waits next to nothing and is told of
//! congestion by ECN marks. Both feel the same controller, classic with its probability squared, L4S with it coupled
//! by a factor k, so that a flow of either kind gets about the same rate (RFC 9332 §2.1).
//!
//! The arithmetic, its rounding and the order of every random draw are those of `net/sched/sch_dualpi2.c` in
//! Linux 7.3: fed the same arrivals and random numbers, this crate drops and marks the same packets.
//!
//! The crate reads no clock, no random device and allocates only when a queue grows beyond what it ever held. Time is
//! an argument (`now_ns`: nanoseconds on any clock that does not go backwards; where one does, packets count as if they had
//! not waited), randomness a [`Random`].
//!
//! ```
//! use dualpi2::{Config, DualPi2, Ecn, Packet, SplitMix64};
//!
//! struct Frame { bytes: Vec<u8>, ecn: Ecn }
//!
//! impl Packet for Frame {
//!     fn length(&self) -> u32 { self.bytes.len() as u32 }
//!     fn memory(&self) -> u32 { self.bytes.capacity() as u32 }
//!     fn ecn(&self) -> Ecn { self.ecn }
//!     fn set_ce(&mut self) { self.ecn = Ecn::Ce } // and the checksum, in a real one
//! }
//!
//! let mtu = 1514; // the largest frame, its 14-byte Ethernet header included
//! let mut queue = DualPi2::new(Config::for_mtu(mtu), mtu, SplitMix64::new(1), 0)?;
//! let mut lost = 0;
//!
//! // A 20 Mbit/s link, and a sender of ECT(0) packets at 1.2 times its rate, for a fifth of a second.
//! let (mut next_arrival, mut link_free, mut marked) = (0, 0, 0);
//! for now_ns in (0..200_000_000_u64).step_by(1_000) {
//!     queue.poll(now_ns); // updates the probability when that is due
//!     if now_ns >= next_arrival {
//!         next_arrival += 500_000;
//!         queue.enqueue(now_ns, Frame { bytes: vec![0; 1514], ecn: Ecn::Ect0 }, &mut |_| lost += 1);
//!     }
//!     if now_ns >= link_free {
//!         if let Some(departure) = queue.dequeue(now_ns, &mut |_| lost += 1) {
//!             link_free = now_ns + u64::from(departure.packet.length()) * 8 * 50; // 50 ns a bit
//!             marked += u32::from(departure.packet.ecn == Ecn::Ce);
//!         }
//!     }
//! }
//! assert!(marked > 0 && lost == 0, "ECN-capable traffic is marked, not dropped");
//! # Ok::<(), dualpi2::ConfigError>(())
//! ```
//!
//! Where to find what: [`Config`] and [`Change`] the parameters; `pi2.rs` the control law; `coupling.rs` the marking and
//! dropping decisions; `scheduler.rs` the choice between the queues; [`DualPi2`] the whole.
//!
//! [RFC 9332]: https://www.rfc-editor.org/rfc/rfc9332
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod config;
mod coupling;
mod packet;
mod pi2;
mod queue;
mod random;
mod scheduler;
mod stats;

pub use config::{
    Change, Config, ConfigError, DropPoint, EcnMask, Gain, MAX_GAIN, Overload, StepThreshold,
};
pub use packet::{Class, Ecn, Packet, Queue};
pub use queue::{Departure, DropReason, Dropped, DualPi2};
pub use random::{Random, SplitMix64, XorShift64};
pub use stats::Stats;
