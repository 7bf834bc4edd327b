//! Congestion controls: one file each, behind one trait whose methods mostly have defaults.
//!
//! A control is told what the acknowledgements say and answers by changing a [`Window`]. It sees the rest of the
//! connection through a [`Context`], reads no clock and owns no timer.
//!
//! One of ours is its file and a line in `algorithm.rs`. One of another crate is [registered](Algorithm::register) and then has a
//! name like the others, in scenarios too.

pub mod about;

mod algorithm;
mod bandwidth;
mod bbr;
mod bbr3;
mod cubic;
mod dctcp;
mod prague;
mod reno;

use std::fmt;

use dualq_units::Instant;

pub use crate::ecn::EcnStyle;
use crate::packet::HEADER_BYTES;
use crate::rate::{LostPacket, RateSample};
use crate::tick::Tick;

pub(crate) use algorithm::Controller;
pub use algorithm::{Algorithm, Foreign, NameTaken};
pub use bbr::Bbr;
pub use bbr3::Bbr3;
pub use cubic::Cubic;
pub use dctcp::Dctcp;
pub use prague::Prague;
pub use reno::Reno;

/// A slow-start threshold that was never set.
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;
/// The smallest window that loss-based controls fall back to, in packets.
pub const MIN_SSTHRESH: u32 = 2;

/// How much may be sent: what a congestion control decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The congestion window, in packets.
    pub cwnd: u32,
    /// Where slow start ends, in packets.
    pub ssthresh: u32,
    /// Packets acknowledged since the window last grew in congestion avoidance.
    pub acked_count: u32,
    /// The pacing rate in bytes per second; `u64::MAX` until there is one.
    pub pacing_rate: u64,
    /// Whether what is in flight now is less than the application would send: set by the sender when it runs dry, and
    /// by a control that holds it back on purpose.
    pub app_limited: bool,
}

impl Window {
    /// Whether the window is below the slow-start threshold.
    #[must_use]
    #[inline]
    pub const fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Slow start: one packet for each acknowledged one, up to the threshold. Returns what is left of `acked`.
    #[inline]
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        let cwnd = self.cwnd.saturating_add(acked).min(self.ssthresh);
        let rest = acked - (cwnd - self.cwnd);
        self.cwnd = cwnd;
        rest
    }

    /// Congestion avoidance: one packet more for each `per_packet` acknowledged.
    #[inline]
    pub fn additive_increase(&mut self, per_packet: u32, acked: u32) {
        // Credit that an earlier, larger divisor left over counts for one packet only.
        if self.acked_count >= per_packet {
            self.acked_count = 0;
            self.cwnd += 1;
        }
        self.acked_count += acked;
        if self.acked_count >= per_packet {
            let growth = self.acked_count / per_packet;
            self.acked_count -= growth * per_packet;
            self.cwnd = self.cwnd.saturating_add(growth);
        }
    }
}

/// The states of a sender (the kernel's `tcp_ca_state`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Nothing unusual.
    #[default]
    Open,
    /// Selective or duplicate acknowledgements came, nothing is deemed lost yet.
    Disorder,
    /// The window is being reduced, but not for loss (ECN).
    Cwr,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

/// What a congestion control may know of the connection.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// Now.
    pub now: Instant,
    /// The coarse clock.
    pub tick: Tick,
    /// Payload of a full segment without options that not all of them have (Linux: `mss_cache`).
    pub mss: u32,
    /// The state of the sender before this event.
    pub state: State,
    /// The window before the last reduction or recovery began.
    pub prior_cwnd: u32,
    /// Packets sent and neither acknowledged, selectively acknowledged nor deemed lost, plus retransmitted ones.
    pub packets_in_flight: u32,
    /// Packets delivered so far.
    pub delivered: u64,
    /// Of these, those that arrived with CE, as far as the receiver has told.
    pub delivered_ce: u64,
    /// Whether ECN was agreed on, and the route is declared to be one whose marks mean a short queue (`ecn_low`).
    pub low_latency_ecn: bool,
    /// Whether a scalable control is to give way where the queue that marks is a classic one.
    pub ecn_fallback: bool,
    /// Packets deemed lost so far.
    pub lost: u64,
    /// When `delivered` last grew.
    pub delivered_at: Instant,
    /// When the newest packet leaves, or left, the sender.
    pub departure: Instant,
    /// When payload was sent last.
    pub last_sent: Instant,
    /// The smoothed round-trip time in eighths of a microsecond; 0 if there is none yet.
    pub srtt_eighth_us: u64,
    /// The smallest round-trip time of the last minutes in microseconds; `u64::MAX` if there is none yet.
    pub min_rtt_us: u64,
    /// The first byte not acknowledged.
    pub snd_una: u64,
    /// The next new byte to send.
    pub snd_nxt: u64,
    /// Whether the window, and nothing else, limited what was sent.
    pub cwnd_limited: bool,
    /// Whether something paces the packets.
    pub paced: bool,
    /// The largest aggregate.
    pub max_gso_bytes: u32,
    /// A number that differs with each acknowledgement, and that [`random`](Self::random) follows from.
    pub seed: u64,
}

impl Context {
    /// A full segment's IP packet in bytes, without those options (Linux: `tcp_mss_to_mtu`).
    #[must_use]
    #[inline]
    pub const fn packet_bytes(&self) -> u32 {
        self.mss + HEADER_BYTES
    }

    /// The jiffy that it is now.
    #[must_use]
    #[inline]
    pub const fn jiffies(&self) -> u32 {
        self.tick.count(self.now.as_nanos())
    }

    /// A random number that follows from the seed alone, for controls that throw dice: SplitMix64's output.
    #[must_use]
    pub const fn random(&self) -> u32 {
        let mut mixed = self.seed;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 32) as u32
    }
}

/// Something that happened besides an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Transmission begins with nothing in flight.
    TransmitStart,
    /// A window reduction is complete.
    ReductionComplete,
    /// A retransmission timeout that reduces the window.
    Loss,
}

/// A congestion control. Its calls come in the order of time; a connection begins with [`start`](Self::start), and each
/// acknowledgement is first [`on_rtt`](Self::on_rtt) if it measured one, then [`on_ack_event`](Self::on_ack_event), then what it
/// changes of the state, and at last [`control`](Self::control) or [`increase`](Self::increase).
pub trait CongestionControl: fmt::Debug + Send {
    /// The connection is established.
    fn start(&mut self, _window: &mut Window, _context: &Context) {}

    /// The slow-start threshold after a loss or an ECN signal.
    fn ssthresh(&mut self, window: &Window, context: &Context) -> u32;

    /// `acked` packets were delivered outside of recovery: grow the window.
    fn increase(&mut self, window: &mut Window, context: &Context, acked: u32);

    /// An acknowledgement arrived; called before anything else is done with it.
    fn on_ack_event(&mut self, _window: &mut Window, _context: &Context) {}

    /// A round-trip time was measured.
    fn on_rtt(&mut self, _window: &mut Window, _context: &Context, _rtt_us: u64) {}

    /// The sender changes to `next`.
    fn on_state(&mut self, _window: &mut Window, _context: &Context, _next: State) {}

    /// A packet is deemed lost.
    fn on_lost(&mut self, _window: &mut Window, _context: &Context, _packet: &LostPacket) {}

    /// Something else happened.
    fn on_event(&mut self, _window: &mut Window, _context: &Context, _event: Event) {}

    /// For controls that decide window and pacing rate on each acknowledgement by themselves; returns whether this is one.
    fn control(&mut self, _window: &mut Window, _context: &Context, _sample: &RateSample) -> bool {
        false
    }

    /// Whether [`control`](Self::control) decides, so that nothing else may set the window.
    fn sets_window(&self) -> bool {
        false
    }

    /// The window to return to when a reduction turns out to have been wrong.
    fn undo(&mut self, window: &mut Window, context: &Context) -> u32 {
        window.cwnd.max(context.prior_cwnd)
    }

    /// The fewest segments in an aggregate, if the control has a say.
    fn min_gso_segments(&self, _window: &Window) -> u32 {
        2
    }

    /// The most segments in an aggregate, if the control decides that by itself.
    fn gso_segments(&self) -> Option<u32> {
        None
    }

    /// The longest IP packets in bytes that the control wants, if it has a say. The path may allow shorter ones only.
    fn packet_bytes(&self) -> Option<u32> {
        None
    }

    /// How many windows the send buffer is to hold at least (Linux: `sndbuf_expand`).
    fn send_buffer_windows(&self) -> u32 {
        2
    }

    /// What it is made for. [`EcnStyle::Classic`] leaves to the connection whether there is ECN, and which; with any other, its
    /// connections ask for that style and all their packets are ECN-capable. With [`EcnStyle::Accurate`] these are ECT(1).
    fn ecn_style(&self) -> EcnStyle {
        EcnStyle::Classic
    }

    /// Whether [`on_ack_event`](Self::on_ack_event) is to be called. A control that does nothing there saves the sender the work
    /// of telling it with each acknowledgement.
    fn needs_ack_events(&self) -> bool {
        true
    }

    /// The same of [`on_rtt`](Self::on_rtt), of a round trip that took so long.
    fn needs_rtt(&self, _window: &Window, _rtt_us: u64) -> bool {
        true
    }

    /// The same of [`control`](Self::control).
    fn needs_samples(&self) -> bool {
        true
    }

    /// Whether [`on_lost`](Self::on_lost) is to be called.
    fn needs_losses(&self) -> bool {
        false
    }

    /// Whether the control insists on pacing.
    fn needs_pacing(&self) -> bool {
        false
    }

    /// What it is doing, in a word, if it has states of its own: for logs.
    fn phase(&self) -> Option<&'static str> {
        None
    }
}

#[cfg(test)]
pub(crate) mod test_support {
    use dualq_units::Instant;

    use super::{Context, INFINITE_SSTHRESH, State, Window};
    use crate::tick::Tick;

    /// A window of `cwnd` packets in slow start.
    pub(crate) fn window(cwnd: u32) -> Window {
        Window {
            cwnd,
            ssthresh: INFINITE_SSTHRESH,
            acked_count: 0,
            pacing_rate: u64::MAX,
            app_limited: false,
        }
    }

    /// A path of 50 ms that uses its window.
    pub(crate) fn context() -> Context {
        Context {
            now: Instant::from_nanos(1_000_000_000),
            tick: Tick::default(),
            mss: 1448,
            state: State::Open,
            prior_cwnd: 0,
            packets_in_flight: 10,
            delivered: 0,
            delivered_ce: 0,
            low_latency_ecn: false,
            ecn_fallback: false,
            lost: 0,
            delivered_at: Instant::from_nanos(1_000_000_000),
            departure: Instant::from_nanos(1_000_000_000),
            last_sent: Instant::from_nanos(1_000_000_000),
            srtt_eighth_us: 400_000,
            min_rtt_us: 50_000,
            snd_una: 0,
            snd_nxt: 14_480,
            cwnd_limited: true,
            paced: true,
            max_gso_bytes: 65_536,
            seed: 0,
        }
    }
}
