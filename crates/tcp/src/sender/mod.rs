//! The sending endpoint: window, scoreboard, recovery, timers.
//!
//! `ack.rs` digests acknowledgements, `recovery.rs` moves between the states of congestion avoidance, `transmit.rs`
//! decides what leaves next, `new_data.rs` how much of what is new, `buffer.rs` how much there is to send, `timers.rs` what happens when nothing comes back.

mod ack;
mod both_ways;
mod buffer;
mod new_data;
mod opening;
mod path_mtu;
mod recovery;
mod show;
mod small_queue;
mod timers;
mod transmit;

use std::mem::offset_of;
use std::sync::Arc;

use dualq_units::{Bytes, Ecn, Instant};

use crate::cc::{
    Algorithm, CongestionControl, Context, Controller, INFINITE_SSTHRESH, State, Window,
};
use crate::ecn::{self, Delivered, EcnFlags, EcnOption, EcnStyle, OPTION_BYTES, Received};
use crate::packet::HEADER_BYTES;
use crate::rack::Rack;
use crate::rate::RateEstimator;
use crate::rtt::RttEstimator;
use crate::scoreboard::Scoreboard;
use crate::tick::{Tick, WheelTimer, instant};
use buffer::SendBuffer;
use recovery::Recovery;
use timers::Timers;
use transmit::Write;

/// The room that a packet has for headers (Linux: `MAX_TCP_HEADER`). It depends on what the kernel is configured with: 320 with
/// tunnels or wireless meshes, 256 as recorded.
pub(crate) const HEADER_ROOM: u64 = 256;

/// Who spaces the packets out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pacing {
    /// Nobody, unless the congestion control insists: then TCP's own timer.
    #[default]
    OnDemand,
    /// The queue of the sender's interface (fq), which honours departure times.
    ByQueue,
}

/// What a sender is made of.
#[derive(Clone, Copy, Debug)]
pub struct SenderConfig {
    /// The congestion control.
    pub algorithm: Algorithm,
    /// What is asked for (RFC 3168 §6.1.1, RFC 9768 §3.1.1), if the congestion control does not ask for more.
    pub ecn: EcnStyle,
    /// Whether ECN-capable packets are ECT(1) and not ECT(0).
    pub ect1: bool,
    /// The route is declared to be one whose marks mean a short queue and are echoed exactly, as DCTCP's are (a route's feature
    /// `ecn_low` in Google's tree): all packets are ECN-capable, and BBRv3 heeds marks.
    pub ecn_low: bool,
    /// Prague looks for classic queues and gives way there (the module's `prague_ecn_fallback`).
    pub ecn_fallback: bool,
    /// When packets have the option of Accurate ECN, if the receiver knows it.
    pub ecn_option: EcnOption,
    /// Whether a SYN asks for a cookie of TCP Fast Open or, with one, has the first data (RFC 7413).
    pub fast_open: bool,
    /// The path's MTU in bytes; at least 576.
    pub mtu: u32,
    /// The initial window in packets (RFC 6928: 10).
    pub initial_window: u32,
    /// The largest aggregate in bytes (GSO).
    pub max_gso: Bytes,
    /// Whether the sender's interface takes aggregates: else they are cut into their segments as they leave its queue.
    pub gso: bool,
    /// The send buffer that the program asks for (`SO_SNDBUF`), which never grows; without it, it is tuned.
    pub buffer: Option<Bytes>,
    /// The most memory that the send buffer grows to (Linux: `tcp_wmem`'s maximum).
    pub max_buffer: Bytes,
    /// How many bytes of the send buffer may be unsent while the program writes more (`TCP_NOTSENT_LOWAT`); without it, as many as
    /// there is room for.
    pub notsent_lowat: Option<Bytes>,
    /// Whether what a call wrote last leaves at once, though it is short and another such is under way (`TCP_NODELAY`).
    pub nodelay: bool,
    /// Who paces.
    pub pacing: Pacing,
    /// The coarse clock's step.
    pub tick: Tick,
}

impl Default for SenderConfig {
    fn default() -> Self {
        Self {
            algorithm: Algorithm::Cubic,
            ecn: EcnStyle::Off,
            ect1: false,
            ecn_low: false,
            ecn_fallback: false,
            ecn_option: EcnOption::Full,
            fast_open: false,
            mtu: 1500,
            initial_window: 10,
            max_gso: Bytes(65_536),
            gso: true,
            buffer: None,
            max_buffer: Bytes(64 << 20),
            notsent_lowat: None,
            nodelay: false,
            pacing: Pacing::OnDemand,
            tick: Tick::default(),
        }
    }
}

/// What a program that has so much writes with each call, in every world.
pub const WRITE_BYTES: usize = 256 << 10;

/// Counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderStats {
    /// Segments sent, again or for the first time.
    pub segments: u64,
    /// Segments sent again, SYNs too.
    pub retransmissions: u64,
    /// Timeouts, those of SYNs too.
    pub timeouts: u64,
    /// Segments acknowledged with ECE, selectively or not, or counted by the receiver's ACE (Linux: `tcpi_delivered_ce`).
    pub ecn_echoes: u64,
    /// Probes of a closed window.
    pub window_probes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handshake {
    Closed,
    /// The other end opens.
    Listening,
    SynSent,
    Established,
    /// The program ended it before it was open.
    GivenUp,
}

/// What the congestion control of `$sender` may see at `$now_ns`. Its window and what it needs are named apart, for these are lent already to whoever
/// calls it and has no more of this made than it looks at.
macro_rules! context {
    ($sender:ident, $now_ns:expr, $window:expr, $needs_pacing:expr) => {
        $crate::cc::Context {
            now: $crate::tick::instant($now_ns),
            tick: $sender.config.tick,
            mss: $sender.mss + $sender.options,
            state: $sender.recovery.state,
            prior_cwnd: $sender.recovery.prior_cwnd,
            packets_in_flight: $sender.board.in_flight(),
            delivered: $sender.rate.delivered,
            delivered_ce: $sender.rate.delivered_ce,
            ecn_fallback: $sender.config.ecn_fallback,
            low_latency_ecn: $sender.config.ecn_low && $sender.ecn != $crate::cc::EcnStyle::Off,
            lost: $sender.rate.lost,
            delivered_at: $crate::tick::instant($sender.rate.delivered_at_ns),
            departure: $crate::tick::instant($sender.departure_ns),
            last_sent: $crate::tick::instant($sender.last_sent_ns),
            srtt_eighth_us: $sender.rtt.srtt_eighth_us,
            min_rtt_us: $sender.rtt.min_us,
            snd_una: $sender.snd_una,
            snd_nxt: $sender.snd_nxt,
            // In slow start the window may grow to twice what was in use, else only if it was in use.
            cwnd_limited: $sender.cwnd_limited
                || ($window.in_slow_start() && $window.cwnd < 2 * $sender.max_packets_out),
            paced: $sender.config.pacing == $crate::sender::Pacing::ByQueue || $needs_pacing,
            max_gso_bytes: $sender.max_gso_bytes,
            seed: $sender.random,
        }
    };
}
pub(in crate::sender) use context;

// What is due.
/// The answer to the SYN is to be acknowledged.
const OPENING_DUE: u8 = 1;
/// FIN of the other end is.
const FAREWELL_DUE: u8 = 2;
const HEAD_DUE: u8 = 4;
const LOSS_PROBE_DUE: u8 = 8;
const WINDOW_PROBE_DUE: u8 = 16;
/// The reordering timer has run out, and what it found is not yet sent again.
const LOST_DUE: u8 = 32;
/// It was a timer for what may be lost, and the next `transmit` sends nothing new.
const BY_TIMER: u8 = 64;
/// A router's message calls for what was too long.
const TOO_LONG_DUE: u8 = 128;

/// The sending endpoint of a connection.
// In the order in which it is written: what most packets need comes first, what is needed most within the 128 bytes that the shortest instructions reach.
#[repr(C)]
#[derive(Debug)]
pub struct Sender {
    /// What else the next `transmit` has to do before new data, and after that: nothing, mostly.
    due: u8,
    /// A timer has called for it and `transmit` has not sent it yet; of a connection that was given up, RST is due.
    syn_due: bool,
    handshake: Handshake,
    /// What was agreed on.
    ecn: EcnStyle,
    /// The ECN field is changed on the way: no packet is ECN-capable.
    ecn_mangled: bool,
    /// CWR is due on the next new packet.
    cwr_due: bool,
    /// The receiver knows the option of Accurate ECN.
    option_seen: bool,
    /// FIN of the other end was acknowledged.
    has_parted: bool,
    /// Whether a write that leaves push by push goes on.
    write_due: bool,
    /// The program does not run yet, and whether it was woken meanwhile.
    is_interrupted: bool,
    waits_to_write: bool,
    /// The program writes before what a small queue held back goes on.
    writes_first: bool,
    is_writing: bool,
    /// Whether what leaves holds its memory, as more arrives.
    is_held: bool,
    /// Small queues held something back.
    throttled: bool,
    cwnd_limited: bool,
    mss: u32,
    /// Bytes that TCP options take of it beside the timestamps.
    options: u32,
    snd_una: u64,
    snd_nxt: u64,
    /// Shared by those that are made of the same, for what each of thousands of connections takes is asked for from memory again and again.
    config: Arc<SenderConfig>,
    /// The newest packet's departure, to which pacing adds.
    departure_ns: u64,
    window: Window,
    // What only losses need of the one and of the other lies between these.
    board: Scoreboard,
    recovery: Recovery,

    timers: Timers,
    rtt: RttEstimator,
    rate: RateEstimator,
    /// How far a write has come that leaves push by push, behind that acknowledgement.
    first_write: Option<Write>,
    /// The end of what the application has written so far.
    write_end: u64,
    /// The place of FIN, which ends the stream, if nothing follows any more.
    fin: u64,
    /// The receiver takes bytes up to here.
    window_end: u64,
    receive_window: u64,
    /// The largest that was offered.
    largest_window: u64,
    /// What the connection's clock shows that a router's message leaves as it is; far off if it is read (Linux: `tcp_mstamp_refresh`, which
    /// `tcp_v4_mtu_reduced` does not call).
    clock_ns: u64,
    /// When payload was last sent (Linux: `lsndtime`).
    last_sent_ns: u64,
    /// Bytes of memory in the queue of the sender's own interface (TCP small queues).
    queued: u64,
    /// Of these what the last call of `transmit` sent that need not wait there: it leaves when the kernel has done all that it does by itself, and
    /// at once while the program writes.
    leaving: u64,
    /// What these hold more as segments than they did as aggregates, where the interface takes no aggregates.
    cut_apart: u64,
    /// How much has left that holds its memory.
    backlog: u64,
    cwnd_usage_seq: u64,
    max_packets_out: u32,
    /// The receiver's newest timestamp.
    peer_timestamp_ms: u32,
    /// The longest aggregate, in bytes of payload (Linux: `sk_dst_gso_max_size`).
    max_gso_bytes: u32,
    syns_sent: u32,
    random: u64,
    stats: SenderStats,
    // So do these.
    rack: Rack,
    buffer: SendBuffer,
    control: Controller,

    // What follows is seldom needed.
    /// What is known of what arrived of what was sent, by ECN fields, and what arrived here.
    delivered: Delivered,
    received: Received,
    /// What the program has written up to here was pushed (Linux: `pushed_seq`).
    pushed: u64,
    /// Where the last segment ends that was shorter than the others.
    short_end: u64,
    /// When the last SYN was sent, and the first one.
    syn_sent_ns: u64,
    first_syn_ns: u64,
    /// What is known of the path's MTU.
    path_mtu: u32,
    /// The host knows a cookie of the receiver.
    has_cookie: bool,
    /// When one that came again was acknowledged last.
    challenged_ns: Option<u64>,
    /// Segments that the receiver reported as duplicates.
    duplicates: u64,
}

impl Sender {
    /// The bytes from its beginning that most packets need: of the congestion control they are in the first line of the cache.
    pub const NEAR_BYTES: usize = offset_of!(Self, control) + 64;

    /// Asks for the memory behind this structure that the next acknowledgement needs: for whoever has thousands of connections
    /// and knows which is next. It changes nothing but how long that takes.
    #[inline]
    pub fn read_ahead(&self) {
        self.board.read_ahead();
        if self.board.sacked_out > 0 {
            self.rack.read_ahead(&self.board);
        }
    }

    /// A connection that is not yet open.
    #[must_use]
    pub fn new(config: impl Into<Arc<SenderConfig>>) -> Self {
        let config = config.into();
        let control = Controller::new(config.algorithm);
        let max_gso_bytes = config.max_gso.0.saturating_sub(HEADER_ROOM + 1);
        Self {
            max_gso_bytes: u32::try_from(max_gso_bytes).unwrap_or(u32::MAX),
            path_mtu: config.mtu,
            mss: config.mtu.max(576) - HEADER_BYTES,
            window: Window {
                cwnd: config.initial_window.max(1),
                ssthresh: INFINITE_SSTHRESH,
                acked_count: 0,
                pacing_rate: u64::MAX,
                app_limited: false,
            },
            control,
            options: 0,
            option_seen: false,
            ecn: EcnStyle::Off,
            ecn_mangled: false,
            received: Received::default(),
            delivered: Delivered::default(),
            syns_sent: 0,
            cwr_due: false,
            handshake: Handshake::Closed,
            syn_sent_ns: 0,
            first_syn_ns: 0,
            has_cookie: false,
            syn_due: false,
            due: 0,
            has_parted: false,
            first_write: None,
            write_due: false,
            is_interrupted: false,
            waits_to_write: false,
            writes_first: false,
            challenged_ns: None,
            board: Scoreboard::new(),
            snd_una: 0,
            snd_nxt: 0,
            short_end: 0,
            write_end: 0,
            fin: u64::MAX,
            buffer: SendBuffer::new(config.buffer, config.notsent_lowat),
            pushed: 0,
            window_end: 0,
            receive_window: 0,
            largest_window: 0,
            rtt: RttEstimator::new(config.tick),
            rate: RateEstimator::default(),
            rack: Rack::new(),
            recovery: Recovery::default(),
            timers: Timers::default(),
            departure_ns: 0,
            clock_ns: u64::MAX,
            last_sent_ns: 0,
            queued: 0,
            leaving: 0,
            cut_apart: 0,
            is_held: false,
            backlog: 0,
            is_writing: false,
            throttled: false,
            cwnd_limited: false,
            max_packets_out: 0,
            cwnd_usage_seq: 0,
            duplicates: 0,
            peer_timestamp_ms: 0,
            random: 1,
            stats: SenderStats::default(),
            config,
        }
    }

    /// The same whose random choices follow from `seed`.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { random: seed, ..self }
    }

    /// The application has `bytes` more to send; `u64::MAX` for no end. Nothing follows what was [closed](Self::close).
    pub fn write(&mut self, bytes: u64) {
        if self.fin == u64::MAX {
            self.write_end = self.write_end.saturating_add(bytes);
            self.buffer.is_tried = true;
        }
    }

    /// The host has had a cookie of Fast Open from the receiver ([`Control::COOKIE`](crate::Control::COOKIE)): to be told before the SYN is sent.
    pub const fn know_cookie(&mut self) {
        self.has_cookie = true;
    }

    /// The program has nothing more to send than what it has written so far: that is in the send buffer, and still leaves.
    pub fn stop(&mut self) {
        if self.buffer.end > self.fin {
            return;
        }
        self.write_end = self.write_end.min(self.buffer.end);
        if self.fin < u64::MAX {
            self.fin = self.write_end;
            self.write_end += 1;
        }
    }

    /// Nothing more is written: what is, still leaves, and FIN behind it (RFC 9293 §3.6).
    pub fn close(&mut self) {
        if self.write_end == u64::MAX {
            self.stop();
        }
        if self.fin == u64::MAX {
            self.fin = self.write_end;
            self.write_end += 1;
        }
    }

    /// The program ends a connection that is not open yet: no SYN comes again, and whoever answers the last one is told that nobody is there
    /// (Linux: `inet_shutdown` of `TCP_SYN_SENT`, `tcp_disconnect`).
    #[cold]
    pub const fn give_up(&mut self) {
        if matches!(self.handshake, Handshake::SynSent) {
            self.handshake = Handshake::GivenUp;
            self.syn_due = false;
            self.timers.clear();
        }
    }

    /// Whether FIN is in the send buffer, or was: the program has closed its side.
    #[must_use]
    pub const fn has_closed(&self) -> bool {
        self.buffer.end > self.fin
    }

    /// Whether FIN has arrived, and so all before it.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.snd_una > self.fin
    }

    /// When the sender's timer fires: when [`on_timer`](Self::on_timer) is to be called next.
    #[must_use]
    #[inline]
    pub fn next_timer(&self) -> Instant {
        instant(self.timers.next_ns())
    }

    /// The coarse one of its timers.
    #[must_use]
    #[inline]
    pub const fn wheel_timer(&self) -> &WheelTimer {
        &self.timers.wheel
    }

    /// Bytes sent so far, those sent again counted once (Linux: `snd_nxt`).
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.snd_nxt.min(self.fin)
    }

    /// Bytes that the program has written into the send buffer so far.
    #[must_use]
    #[inline]
    pub const fn written(&self) -> u64 {
        self.buffer.end
    }

    /// Bytes acknowledged so far.
    #[must_use]
    #[inline]
    pub fn acknowledged(&self) -> u64 {
        self.snd_una.min(self.fin)
    }

    /// The congestion window in packets.
    #[must_use]
    #[inline]
    pub const fn cwnd(&self) -> u32 {
        self.window.cwnd
    }

    /// The slow-start threshold in packets; `None` if it was never set.
    #[must_use]
    pub fn ssthresh(&self) -> Option<u32> {
        Some(self.window.ssthresh).filter(|ssthresh| *ssthresh < INFINITE_SSTHRESH)
    }

    /// Packets sent and neither acknowledged, selectively acknowledged nor deemed lost, plus retransmitted ones.
    #[must_use]
    pub const fn in_flight(&self) -> u32 {
        self.board.in_flight()
    }

    /// What was agreed on; [`EcnStyle::Off`] before.
    #[must_use]
    pub const fn ecn(&self) -> EcnStyle {
        self.ecn
    }

    /// Whether the ECN field of the SYN was changed on the way to what marking does not make of it, so that no packet is
    /// ECN-capable (RFC 9768 §3.2.2.3).
    #[must_use]
    pub const fn is_ecn_mangled(&self) -> bool {
        self.ecn_mangled
    }

    /// Bytes of payload that were delivered with ECT(0), with CE and with ECT(1), as the option of Accurate ECN tells (Linux:
    /// `tcpi_delivered_e0_bytes` and so on).
    #[must_use]
    pub const fn ecn_bytes(&self) -> [u64; 3] {
        self.delivered.bytes()
    }

    /// Whether Reno runs in place of what was configured, because the other end lacks the ECN that this needs.
    #[must_use]
    pub fn is_fallback(&self) -> bool {
        matches!(self.control, Controller::Reno(_))
            && !matches!(self.config.algorithm, Algorithm::Reno)
    }

    /// The ECN field of a segment without data (Linux: `tcp_ecn_send`).
    #[must_use]
    pub fn empty_segment_ecn(&self) -> Ecn {
        self.codepoint(self.marks_all())
    }

    /// The flags of a segment that is no SYN.
    #[inline]
    const fn ecn_flags(&mut self, cwr: bool) -> EcnFlags {
        match (self.ecn, cwr) {
            (EcnStyle::Accurate, _) => self.received.field(),
            (_, true) => EcnFlags::CWR,
            (_, false) => EcnFlags::NONE,
        }
    }

    /// The ECN field of what is ECN-capable, or not.
    #[inline]
    fn codepoint(&self, capable: bool) -> Ecn {
        if !capable {
            Ecn::NotEct
        } else if self.config.ect1 || self.control.ecn_style() == EcnStyle::Accurate {
            Ecn::Ect1
        } else {
            Ecn::Ect0
        }
    }

    /// Whether everything written is acknowledged, and FIN if there is one.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.snd_una == self.write_end
    }

    /// The smoothed round-trip time and its mean deviation in microseconds, as `ss -ti` shows them; `None` before the
    /// first measurement.
    #[must_use]
    pub fn rtt_us(&self) -> Option<(f64, f64)> {
        (self.rtt.srtt_eighth_us > 0).then(|| {
            (self.rtt.srtt_eighth_us as f64 / 8.0, self.rtt.deviation_quarter_us as f64 / 4.0)
        })
    }

    /// The counters.
    #[must_use]
    #[inline]
    pub const fn stats(&self) -> &SenderStats {
        &self.stats
    }

    /// How often the connection was given another hash, by which queues tell flows apart: with each timeout, those of SYNs too (Linux:
    /// `sk_rethink_txhash`).
    #[must_use]
    pub const fn rehashes(&self) -> u64 {
        self.stats.timeouts
    }

    /// The coarse clock's step.
    #[must_use]
    pub fn tick(&self) -> Tick {
        self.config.tick
    }

    /// Payload of a full segment.
    #[must_use]
    pub const fn mss(&self) -> u32 {
        self.mss
    }

    /// The pacing rate in bytes per second; `u64::MAX` before there is one.
    #[must_use]
    pub const fn pacing_rate(&self) -> u64 {
        self.window.pacing_rate
    }

    /// Whether all its packets are ECN-capable, and not only new data.
    #[inline]
    const fn marks_all(&self) -> bool {
        matches!(self.ecn, EcnStyle::Dctcp | EcnStyle::Accurate) && !self.ecn_mangled
    }

    /// What is asked for: by the configuration, or by a control that needs it.
    fn asked_ecn(&self) -> EcnStyle {
        match (self.control.ecn_style(), self.config.ecn) {
            (EcnStyle::Off | EcnStyle::Classic, asked) => asked,
            (_, EcnStyle::Accurate) | (EcnStyle::Accurate, _) => EcnStyle::Accurate,
            (EcnStyle::Dctcp, _) => EcnStyle::Dctcp,
        }
    }

    /// Whether the congestion control needs ECN, so that its SYN is ECN-capable too.
    fn needs_ecn(&self) -> bool {
        matches!(self.control.ecn_style(), EcnStyle::Dctcp | EcnStyle::Accurate)
    }

    #[inline]
    fn is_paced(&self) -> bool {
        self.config.pacing == Pacing::ByQueue || self.control.needs_pacing()
    }

    /// What the congestion control may see, at `now_ns`.
    #[inline]
    fn context(&self, now_ns: u64) -> Context {
        context!(self, now_ns, self.window, self.control.needs_pacing())
    }

    /// Whether the SYN was answered.
    #[must_use]
    #[inline]
    pub fn is_established(&self) -> bool {
        self.handshake == Handshake::Established
    }

    /// Whether the sender reduces its window by proportional rate reduction.
    #[inline]
    fn in_reduction(&self) -> bool {
        matches!(self.recovery.state, State::Cwr | State::Recovery)
    }
}

/// What a SYN asks for, and what the third packet tells.
impl Sender {
    /// The flags of the next SYN. Perhaps it was asking for ECN that nobody answers: classic ECN is asked for once (RFC 3168
    /// §6.1.1.1; Linux: `tcp_ecn_fallback`), Accurate ECN twice (RFC 9768 §3.1.4.1).
    fn syn_flags(&self) -> EcnFlags {
        match (self.asked_ecn(), self.syns_sent) {
            (EcnStyle::Accurate, 0..=2) => EcnFlags::ASKS_ACCURATE,
            (EcnStyle::Classic | EcnStyle::Dctcp, 0..=1) => EcnFlags::ASKS_CLASSIC,
            _ => EcnFlags::NONE,
        }
    }

    /// Segments that are made now have room for the option of Accurate ECN, if a packet has it that leaves now (Linux:
    /// `tcp_current_mss`).
    #[inline(never)]
    fn make_room_for_option(&mut self, now_ns: u64) {
        let options = if self.is_option_due(now_ns) { OPTION_BYTES } else { 0 };
        self.mss = self.mss + self.options - options;
        self.options = options;
    }

    /// The same where that changes while the connection is open.
    #[inline]
    fn keep_room_for_option(&mut self, now_ns: u64) {
        if self.config.ecn_option == EcnOption::Minimum {
            self.make_room_for_option(now_ns);
        }
    }

    /// The bytes of options of a packet that leaves now.
    fn take_options(&mut self, now_ns: u64) -> u8 {
        if !self.is_option_due(now_ns) {
            return 0;
        }
        self.received.tell(now_ns);
        OPTION_BYTES as u8
    }

    /// Whether a packet that leaves now has the option of Accurate ECN.
    fn is_option_due(&self, now_ns: u64) -> bool {
        let (when, clock_ns) = (self.config.ecn_option, now_ns.min(self.clock_ns));
        let srtt_us = self.rtt.srtt_eighth_us / 8;
        self.option_seen && self.received.is_option_due(when, clock_ns, srtt_us)
    }

    /// The flags of the third packet: with Accurate ECN, how the answer arrived.
    const fn opening_flags(&self) -> EcnFlags {
        match self.ecn {
            EcnStyle::Accurate => ecn::third_ace(self.received.last()),
            _ => EcnFlags::NONE,
        }
    }
}
