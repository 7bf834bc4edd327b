//! Queue disciplines, and tc's way to write and show them.
//!
//! - [`grammar`]: `"dualpi2 target 5ms"` to a [`Spec`] and back, refusing what tc and the kernel refuse. The one parser of
//!   such words in dualq.
//! - [`Qdisc`]: what every discipline does; [`Discipline`]: any of them.
//! - [`show`]: `tc qdisc show`, `tc -s` and `tc -j` for what a discipline is and did.
//!
//! ```
//! use dualq_qdisc::{Device, Spec, grammar};
//!
//! let parsed = grammar::parse("dualpi2 limit 100 target 5ms")?;
//! let config = parsed.spec.configure(&Device::ethernet(1500));
//! assert!(config.to_string().starts_with("limit 100p memlimit 302800B target 5ms tupdate 16ms"));
//!
//! let refused = grammar::parse("dualpi2 targt 5ms").unwrap_err();
//! assert!(refused.to_string().contains("did you mean \"target\"?"));
//! # Ok::<(), grammar::ParseError>(())
//! ```
//!
//! A discipline has no clock and no link: whoever drives it calls it at the times that it asks for. A link of 10 Mbit/s,
//! 1000 packets that arrive twice as fast as it sends:
//!
//! ```
//! use std::time::Duration;
//!
//! use dualq_qdisc::{Device, Discipline, Ecn, FlowPacket, Packet, Qdisc, SplitMix64, grammar};
//! use dualq_units::{Bytes, Instant, Rate};
//!
//! struct Frame { length: u32, ecn: Ecn }
//!
//! impl Packet for Frame {
//!     fn length(&self) -> u32 { self.length }
//!     fn memory(&self) -> u32 { self.length }
//!     fn ecn(&self) -> Ecn { self.ecn }
//!     fn set_ce(&mut self) { self.ecn = Ecn::Ce }
//! }
//! impl FlowPacket for Frame {}
//!
//! let spec = grammar::parse("dualpi2 target 5ms")?.spec;
//! let device = Device::ethernet(1500);
//! let mut queue: Discipline<Frame> = spec.build(&device, SplitMix64::new(1), Instant::ZERO)?;
//!
//! let rate = Rate::from_mbit(10);
//! let (mut link_free, mut arrival, mut arrived) = (Instant::ZERO, Instant::ZERO, 0);
//! let (mut sent, mut lost) = (0, 0);
//! while arrived < 1000 || !queue.is_empty() {
//!     // What comes next: the discipline's timer, a packet that may leave, or one that arrives.
//!     let ready = queue.next_ready(link_free);
//!     let next_arrival = if arrived < 1000 { arrival } else { Instant::NEVER };
//!     let now = queue.next_timer().min(ready).min(next_arrival);
//!     if now == queue.next_timer() {
//!         queue.on_timer(now);
//!     } else if now == ready {
//!         if let Some(departure) = queue.dequeue(now, &mut |_| lost += 1) {
//!             link_free = now + rate.transmission_time(Bytes(departure.packet.length.into()));
//!             sent += 1;
//!         }
//!     } else {
//!         queue.enqueue(now, Frame { length: 1514, ecn: Ecn::NotEct }, &mut |_| lost += 1);
//!         arrived += 1;
//!         arrival = now + Duration::from_micros(605);
//!         link_free = link_free.max(now);
//!     }
//! }
//! assert_eq!(sent + lost, 1000);
//! assert!(lost > 0, "the AQM tells the sender to slow down");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod grammar;
pub mod kinds;
pub mod pool;
pub mod show;

mod bucket;
mod device;
mod discipline;
mod packet;
mod qdisc;

pub use device::Device;
pub use discipline::Discipline;
pub use dualpi2::{Class, Ecn, EcnMask, Packet, Random, SplitMix64, XorShift64};

pub use grammar::QdiscLine;
pub use kinds::{Config, Foreign, Spec, Unmodelled};
pub use packet::FlowPacket;
pub(crate) use packet::hash;
pub(crate) use qdisc::UPCOMING;
pub use qdisc::{ChangeError, Departure, DropReason, Dropped, Qdisc};
