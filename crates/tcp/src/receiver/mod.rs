//! The receiving endpoint: reassembly, acknowledgements, window.

mod acknowledge;
mod both_ways;
mod buffer;
mod farewell;
mod handshake;
mod marks;
mod reading;
mod reassembly;
mod refuse;

use std::mem::offset_of;
use std::sync::Arc;
use std::time::Duration;

use dualq_units::hint::unlikely;
use dualq_units::{Bytes, Ecn, Instant};

use crate::control::Control;
use crate::ecn::{self, EcnFlags, EcnOption, EcnStyle, Received};
use crate::packet::{Ack, Data, HEADER_BYTES, SackBlock, pieces};
use crate::tick::{Tick, WheelTimer, instant};
use buffer::Buffer;
pub use buffer::WINDOW_SCALE;
use farewell::Farewell;
use handshake::Handshake;
use reassembly::{Arrival, Reassembly};

/// Acknowledgements at once when a connection starts or something went wrong (Linux: `TCP_MAX_QUICKACKS`).
const MAX_QUICK_ACKS: u32 = 16;
/// The shortest and longest delay of an acknowledgement (Linux: `TCP_DELACK_MIN`, `TCP_ATO_MIN`, `TCP_DELACK_MAX`).
const MIN_ACK_DELAY_US: u64 = 40_000;
const MAX_ACK_DELAY_US: u64 = 200_000;
/// The islands that an acknowledgement tells of even where one is lost (Linux: `TCP_SACK_BLOCKS_EXPECTED`).
const EXPECTED_ISLANDS: usize = 2;

/// What a receiver is made of.
#[derive(Clone, Copy, Debug)]
pub struct ReceiverConfig {
    /// The path's MTU in bytes; at least 576.
    pub mtu: u32,
    /// The most that is granted to those who ask for ECN. [`EcnStyle::Dctcp`] grants what classic ECN is asked by, and echoes as the
    /// sender's congestion control expects it.
    pub ecn: EcnStyle,
    /// Whether it tells of marks that begin and end under Accurate ECN too, as DCTCP's receivers do (Linux: `dctcp_ece_ack_update`).
    pub tells_changes: bool,
    /// When Accurate ECN tells its counts of bytes too, in a TCP option.
    pub ecn_option: EcnOption,
    /// Whether this end's packets that are ECN-capable have ECT(1), because it sends too, under a congestion control for L4S.
    pub ect1: bool,
    /// Whether cookies of TCP Fast Open are given, and data taken of SYNs that have one (RFC 7413).
    pub fast_open: bool,
    /// The most memory that the receive buffer grows to (Linux: `tcp_rmem`'s maximum).
    pub max_buffer: Bytes,
    /// The receive buffer that the program asks for (`SO_RCVBUF`), which never grows; without it, it is tuned.
    pub fixed_buffer: Option<Bytes>,
    /// The program reads at most this often.
    pub read_interval: Duration,
    /// Whether the program closes its side, to which nothing was ever written, as it reads the end of the stream.
    pub closes: bool,
    /// The coarse clock's step.
    pub tick: Tick,
}

impl Default for ReceiverConfig {
    fn default() -> Self {
        Self {
            mtu: 1500,
            ecn: EcnStyle::Classic,
            tells_changes: false,
            ecn_option: EcnOption::Full,
            ect1: false,
            fast_open: false,
            max_buffer: Bytes(64 << 20),
            fixed_buffer: None,
            read_interval: Duration::ZERO,
            closes: false,
            tick: Tick::default(),
        }
    }
}

/// A time, and the jiffy that it lies in, as [`Tick::since_start`] counts them: that is worked out once for all that a packet brings about.
#[derive(Clone, Copy)]
struct Moment {
    now_ns: u64,
    jiffy: u64,
}

/// Counters of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverStats {
    /// Segments that arrived.
    pub segments: u64,
    /// Payload bytes that had arrived before.
    pub duplicate_bytes: u64,
    /// Segments that arrived with CE (Linux: `tcpi_received_ce`).
    pub ce_segments: u64,
    /// Whether the answer to the SYN arrived with CE, by what the third packet tells (Linux: `tcpi_delivered_ce`).
    pub answers_marked: u64,
}

/// The receiving endpoint of a connection.
// In the order in which it is written: what each packet needs comes first, within the 128 bytes that the shortest instructions reach.
#[repr(C)]
#[derive(Clone, Debug)]
pub struct Receiver {
    /// The stream's edge and the window in the last acknowledgement.
    acked: u64,
    window: u64,
    ack_timer_ns: u64,
    echo_ms: u32,
    /// In jiffies; 0 before the first data.
    ack_delay: u32,
    /// The shortest delay of an acknowledgement in jiffies.
    min_ack_delay: u32,
    /// When data came last in order, or else when the connection opened.
    last_arrival: u32,
    quick: u32,
    /// What was granted.
    ecn: EcnStyle,
    /// Whether data have come since the last acknowledgement.
    scheduled: bool,
    ack_now: bool,
    /// The sender paused after what arrived last: acknowledge when it is read.
    pushed: bool,
    /// This end sends soon after it has received, so that acknowledgements may wait for what it sends (Linux: pingpong mode).
    converses: bool,
    /// Whether the sender knows the option of Accurate ECN.
    option_seen: bool,
    /// ECE is to be set.
    echo: bool,
    buffer: Buffer,

    // What only gaps need of the buffer and of this lies between the rest of both.
    stream: Reassembly,
    /// Where the stream ends, as FIN says; its last place is FIN's own.
    fin: u64,
    /// Until when a program reads that has slept, if it does: what arrives meanwhile waits.
    reading_until_ns: u64,
    /// Where in the stream the call ends that a program reads with; one that pauses reads no more than there is.
    call_end: u64,
    /// The program reads at most this often.
    read_interval_ns: u64,
    read_ns: u64,
    last_read_ns: Option<u64>,
    compression_timer_ns: u64,
    compressed: u32,
    /// No acknowledgement waits longer in the end: a tick less than a sender's shortest timeout, which is as long as the longest delay (Linux:
    /// `tcp_delack_max`).
    longest_wait: u32,
    ack_wheel: WheelTimer,
    config: Arc<ReceiverConfig>,
    farewell: Farewell,
    /// A duplicate to be reported.
    duplicate: Option<SackBlock>,
    stats: ReceiverStats,
    handshake: Handshake,

    mss: u32,
    /// The longest delay of an acknowledgement in jiffies.
    max_ack_delay: u32,
    /// Bytes that came with the SYN.
    opening: u64,
    /// The flags of the answer to the SYN, which say what was granted.
    granted: EcnFlags,
    /// What arrived, by ECN fields.
    received: Received,
    duplicates: u32,
    compressed_at: u64,
    /// Whether it has woken and waits for what comes.
    is_awake: bool,
    /// Whether it has begun to read and found nothing yet.
    found_nothing: bool,
    /// Whether it has begun to read and finds nothing but the end of the stream, and whether it has closed its side for that.
    finds_end: bool,
    has_ended: bool,
    /// What came meanwhile, but for what was taken in since, and the pieces that it lies in.
    backlog: Option<(Data, u64)>,
    /// Whether something came meanwhile that is to be acknowledged at once.
    deferred: bool,
    last_probe_answer_ns: Option<u64>,
    ecn_seen: bool,
    /// DCTCP: the last packet was marked, and where the stream's edge was with it.
    ce_state: bool,
    ce_prior: u64,
}

/// As much as a program that reads all there is takes with each call, in every world. As many as there can be, for where a call ends within a
/// packet, one acknowledgement tells of a smaller window; a guest of the world `kernel` dies of a gigabyte.
pub const READ_BYTES: usize = 256 << 20;

impl Receiver {
    /// The bytes from its beginning that most packets need.
    pub const NEAR_BYTES: usize = offset_of!(Self, mss);

    /// A receiver that waits for a SYN.
    #[must_use]
    pub fn new(config: impl Into<Arc<ReceiverConfig>>) -> Self {
        let config = config.into();
        let mss = config.mtu.max(576) - HEADER_BYTES;
        let buffer = match config.fixed_buffer {
            Some(asked) => Buffer::fixed(asked, config.max_buffer, mss),
            None => Buffer::new(config.max_buffer, mss),
        };
        let max_ack_delay = config.tick.jiffies_in(MAX_ACK_DELAY_US);
        Self {
            mss,
            read_interval_ns: u64::try_from(config.read_interval.as_nanos()).unwrap_or(u64::MAX),
            min_ack_delay: config.tick.jiffies_in(MIN_ACK_DELAY_US),
            max_ack_delay,
            longest_wait: max_ack_delay.max(2) - 1,
            stream: Reassembly::default(),
            fin: u64::MAX,
            window: buffer.initial_window(mss),
            buffer,
            opening: 0,
            ecn: EcnStyle::Off,
            granted: EcnFlags::NONE,
            received: Received::default(),
            option_seen: false,
            acked: 0,
            echo_ms: 0,
            duplicate: None,
            quick: 0,
            scheduled: false,
            ack_now: false,
            pushed: false,
            converses: false,
            ack_delay: 0,
            last_arrival: 0,
            handshake: Handshake::default(),
            ack_timer_ns: u64::MAX,
            ack_wheel: WheelTimer::default(),
            compression_timer_ns: u64::MAX,
            compressed: 0,
            duplicates: 0,
            compressed_at: 0,
            read_ns: u64::MAX,
            last_read_ns: None,
            call_end: if config.read_interval.is_zero() { READ_BYTES as u64 } else { u64::MAX },
            reading_until_ns: u64::MAX,
            is_awake: false,
            found_nothing: false,
            finds_end: false,
            has_ended: false,
            farewell: Farewell::default(),
            backlog: None,
            deferred: false,
            last_probe_answer_ns: None,
            echo: false,
            ecn_seen: false,
            ce_state: false,
            ce_prior: 0,
            stats: ReceiverStats::default(),
            config,
        }
    }

    /// The window scale option that the answer to the SYN has (RFC 7323 §2.2).
    #[must_use]
    pub const fn window_scale(&self) -> u32 {
        self.buffer.scale
    }

    /// Bytes received without a gap.
    #[must_use]
    #[inline]
    pub fn received(&self) -> u64 {
        self.stream.next.min(self.fin)
    }

    /// Whether all has come up to the end of the stream.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.stream.next > self.fin
    }

    /// How many bytes behind these the last acknowledgement offered to take.
    #[must_use]
    pub const fn offered(&self) -> u64 {
        (self.acked + self.window).saturating_sub(self.stream.next)
    }

    /// Whether something came after the SYN, so that the sender has heard of its answer.
    #[must_use]
    #[inline]
    pub const fn is_established(&self) -> bool {
        self.handshake.is_done()
    }

    /// What was granted; [`EcnStyle::Off`] before anybody asked.
    #[must_use]
    pub const fn ecn(&self) -> EcnStyle {
        self.ecn
    }

    /// Bytes of payload that arrived with ECT(0), with CE and with ECT(1), as Accurate ECN counts them (Linux:
    /// `tcpi_received_e0_bytes` and so on).
    #[must_use]
    pub const fn ecn_bytes(&self) -> [u64; 3] {
        self.received.bytes()
    }

    /// The counters.
    #[must_use]
    #[inline]
    pub const fn stats(&self) -> &ReceiverStats {
        &self.stats
    }

    /// When [`on_timer`](Self::on_timer) is to be called next.
    #[must_use]
    #[inline]
    pub fn next_timer(&self) -> Instant {
        let read_ns = self.read_ns.min(self.reading_until_ns);
        instant(self.ack_timer_ns.min(self.compression_timer_ns).min(read_ns))
    }

    /// The coarse one of its timers: of acknowledgements that wait.
    #[must_use]
    #[inline]
    pub const fn wheel_timer(&self) -> &WheelTimer {
        &self.ack_wheel
    }

    /// Whether what [`next_timer`](Self::next_timer) tells is when the program begins to read.
    #[must_use]
    #[inline]
    pub fn is_next_to_read(&self) -> bool {
        self.read_ns < self.ack_timer_ns.min(self.compression_timer_ns).min(self.reading_until_ns)
    }

    /// Whether the program pauses after it has read.
    #[must_use]
    #[inline]
    pub const fn reads_seldom(&self) -> bool {
        self.read_interval_ns > 0
    }

    /// Data arrive at `now`; acknowledgements go to `out`. Whatever the data say, nothing panics: those beyond the window are
    /// dropped.
    #[inline]
    pub fn on_data(&mut self, now: Instant, data: &Data, out: &mut impl FnMut(Ack)) {
        self.on_data_in(now, data, pieces(data.seq, data.end()), out);
        self.read_arrived(now, out);
    }

    /// The same with data that lie in so many pieces of memory, because the sender's program has written other streams too, and before
    /// others that arrive at the same instant: [`read_arrived`](Self::read_arrived) is called after the last of them.
    #[inline(always)]
    pub fn on_data_in(
        &mut self,
        now: Instant,
        data: &Data,
        pieces: u64,
        out: &mut impl FnMut(Ack),
    ) {
        let now_ns = now.as_nanos();
        if unlikely(data.has(Control::SYN)) {
            return self.take_syn(now_ns, data, out);
        }
        if data.options > 0 {
            self.option_seen = true;
        }
        if unlikely(!self.handshake.is_done()) {
            self.open(now, data);
        }
        if unlikely(data.payload == 0) {
            return self.take_empty(now_ns, data, out);
        }
        if unlikely(self.is_reading()) {
            return self.put_off(now_ns, data, pieces, out);
        }
        self.take(now_ns, data, pieces, out);
    }

    #[cold]
    fn take_syn(&mut self, now_ns: u64, data: &Data, out: &mut impl FnMut(Ack)) {
        if self.stream.next > self.opening || self.stream.has_islands() {
            // An old one, overtaken by data: answered as what is out of the window (RFC 9293 §3.10.7.4).
            return self.answer_window_probe(now_ns, out);
        }
        self.answer_syn(now_ns, data, out);
    }

    /// Nothing is in it.
    #[cold]
    fn take_empty(&mut self, now_ns: u64, data: &Data, out: &mut impl FnMut(Ack)) {
        if data.seq < self.stream.next {
            return self.answer_window_probe(now_ns, out);
        }
        // An acknowledgement: of the answer to the SYN, for one.
        if self.ecn == EcnStyle::Accurate && data.flags == ecn::third_ace(Ecn::Ce) {
            self.stats.answers_marked = 1;
        }
        self.count(data);
        if self.has_ended {
            self.hear_farewell(data, out);
        }
    }

    #[inline(never)]
    fn take(&mut self, now_ns: u64, data: &Data, pieces: u64, out: &mut impl FnMut(Ack)) {
        if unlikely(self.is_overtaken(data)) {
            return self.refuse(now_ns, data, out);
        }
        if unlikely(data.end() > self.acked + self.window) {
            // Beyond what was offered: dropped, and told what is expected (RFC 9293 §3.10.7.4).
            return self.answer_window_probe(now_ns, out);
        }
        self.stats.segments += u64::from(data.segments);
        self.count(data);
        if unlikely(data.end() < self.acked) {
            // All of it was acknowledged before. Its time says nothing of when the stream's edge moved: what was sent before it
            // and comes later is not overtaken by it (Linux: `tcp_sequence`, before `tcp_replace_ts_recent`).
            self.stats.duplicate_bytes += u64::from(data.payload);
            return self.refuse(now_ns, data, out);
        }
        if unlikely(data.has(Control::FIN)) {
            self.fin = data.end() - 1;
        }
        if data.flags.cwr() && self.ecn != EcnStyle::Accurate {
            self.echo = false;
            // The sender's window may be down to one packet.
            self.ack_now = true;
        }
        // Without a branch, which would be mispredicted with every second packet.
        let moves_edge = data.seq <= self.acked;
        self.echo_ms = self.echo_ms.max(if moves_edge { data.timestamp_ms } else { 0 });
        // Behind a gap too (Linux: `tcp_rcv_established`).
        self.buffer.measure_echo((self.config.tick, now_ns), data, self.stream.next);
        self.buffer.arrived(now_ns);
        let at = Moment { now_ns, jiffy: self.config.tick.since_start(now_ns) };
        let told = if self.stream.is_next(data.seq) {
            self.duplicate = None;
            self.stream.reach_to(data.end());
            self.scheduled = true;
            self.go_on(at, (data, pieces), false, out);
            false
        } else {
            self.take_astray(at, (data, pieces), out)
        };
        if !told {
            self.decide(at, out);
        }
        if unlikely(self.reads_seldom()) {
            self.schedule_read(now_ns);
        }
    }

    /// Takes what is not just the next of a stream without gaps. Returns whether it was told already what came.
    #[inline(never)]
    fn take_astray(
        &mut self,
        at: Moment,
        (data, pieces): (&Data, u64),
        out: &mut impl FnMut(Ack),
    ) -> bool {
        let now_ns = at.now_ns;
        let gap_before = self.stream.has_islands();
        // It is told with what is sent before other data arrive, or not at all (Linux: `tcp_data_queue`).
        self.duplicate = self.stream.overlap(data.seq, data.end());
        let mut told = false;
        if data.seq > self.stream.next {
            if self.heeds_marks() {
                self.look_at_mark(now_ns, data, out);
            }
            // An acknowledgement has room for few islands: what waited to be told is told before there is one more, or another one comes first, and with
            // what that has grown by. No other is due then (Linux: `tcp_sack_new_ofo_skb`).
            told =
                self.compressed > 0 && self.stream.extend(data.seq, data.end()) >= EXPECTED_ISLANDS;
            if told {
                self.send(now_ns, out);
            }
        }
        let arrival = self.stream.take(data.seq, data.end());
        self.scheduled = true;
        match arrival {
            Arrival::InOrder => self.fill_gap(at, (data, pieces), gap_before, out),
            Arrival::Beyond => {
                self.buffer.measure_segment(data);
                // What it takes of the buffer counts only after this, unless it becomes part of another packet, and lets the buffer
                // grow in any case after it (`tcp_data_queue_ofo`).
                let place = self.buffer.place_beyond(data, pieces);
                if !place.joins {
                    self.raise_window_beyond(data.payload, false);
                }
                self.buffer.hold_beyond(data, place);
                if place.joins {
                    self.raise_window_beyond(data.payload, true);
                }
                self.reach_beyond(now_ns);
            }
            Arrival::Duplicate => {
                self.stats.duplicate_bytes += u64::from(data.payload);
                self.reach_beyond(now_ns);
            }
            Arrival::Old => {
                self.stats.duplicate_bytes += u64::from(data.payload);
                self.answer_quickly(MAX_QUICK_ACKS);
                if !self.stream.has_islands() {
                    self.ack_now = true;
                }
            }
        }
        told
    }

    /// The stream's edge has moved, perhaps up to what waited behind a gap.
    #[inline(never)]
    fn fill_gap(
        &mut self,
        at: Moment,
        (data, pieces): (&Data, u64),
        gap_before: bool,
        out: &mut impl FnMut(Ack),
    ) {
        self.go_on(at, (data, pieces), gap_before, out);
        // A filled gap is told at once (RFC 5681 §4.2).
        self.ack_now |= gap_before && !self.stream.has_islands();
    }

    /// The stream's edge has moved.
    #[inline(always)]
    fn go_on(
        &mut self,
        at: Moment,
        (data, pieces): (&Data, u64),
        gap_before: bool,
        out: &mut impl FnMut(Ack),
    ) {
        if unlikely(self.is_closed()) {
            return self.take_last(at, (data, pieces), gap_before, out);
        }
        self.take_in_order(at, (data, pieces), gap_before, out);
    }

    /// The buffer grows by what lies beyond a gap, but not before the program has the connection: it runs when all is taken in that
    /// arrives together with its end of the handshake.
    fn reach_beyond(&mut self, now_ns: u64) {
        if now_ns > self.handshake.opened_ns {
            self.buffer.reach_beyond(self.stream.reach());
        }
    }

    /// A deadline of [`next_timer`](Self::next_timer) has come.
    #[inline(never)]
    pub fn on_timer(&mut self, now: Instant, out: &mut impl FnMut(Ack)) {
        let now_ns = now.as_nanos();
        if self.reading_until_ns <= now_ns {
            self.go_on_reading(now_ns, out);
        } else if self.read_ns <= now_ns {
            self.begin_read(now);
        }
        if self.ack_timer_ns <= now_ns && !self.handshake.is_done() {
            return self.answer_again(now_ns, out);
        }
        if self.farewell.due_ns <= now_ns && self.has_ended {
            return self.part_again(now_ns, out);
        }
        if self.ack_timer_ns <= now_ns && self.compressed == 0 {
            self.waited_in_vain();
        }
        if self.ack_timer_ns <= now_ns || self.compression_timer_ns <= now_ns {
            self.send(now_ns, out);
        }
    }

    #[inline(always)]
    fn take_in_order(
        &mut self,
        at: Moment,
        (data, pieces): (&Data, u64),
        gap_before: bool,
        out: &mut impl FnMut(Ack),
    ) {
        let now_ns = at.now_ns;
        // What this packet joins is not counted yet (Linux: `tcp_ofo_queue` comes after `tcp_event_data_recv`).
        self.pushed |= self.buffer.hold(data, pieces);
        self.buffer.measure_window(now_ns, data.end(), self.window);
        self.adapt_delay(at.jiffy as u32);
        // Behind that, so that a mark on the first data does not end what these begin.
        if self.heeds_marks() {
            self.look_at_mark(now_ns, data, out);
        }
        self.raise_window(data.payload);
        if gap_before {
            self.buffer.join(data, self.stream.next);
        }
    }

    /// While the window can grow, acknowledgements tell it soon.
    #[inline]
    fn raise_window(&mut self, payload: u32) {
        if self.buffer.grow_threshold(self.mss, payload) {
            self.quick |= 1;
        }
    }

    /// The same for a packet behind a gap, alone or as part of another.
    fn raise_window_beyond(&mut self, payload: u32, joins: bool) {
        if self.buffer.grow_threshold_beyond(self.mss, payload, joins) {
            self.quick |= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn data(seq: u64, echo_ms: u32) -> Data {
        Data {
            seq,
            payload: 1_448,
            segments: 1,
            mss: 1_448,
            timestamp_ms: 0,
            echo_ms,
            ecn: Ecn::NotEct,
            flags: EcnFlags::NONE,
            options: 0,
            control: Control::NONE,
        }
    }

    /// Linux: `tcp_rtt_tsopt_us`, `tcp_rcv_rtt_measure_ts`. As in the world `kernel` in `wild-2-102`: of two flows that begin
    /// 84 µs after one another, one knows the round trip before its program reads for the second time, the other does not.
    #[test]
    fn a_round_trip_within_a_millisecond_of_the_clock_tells_nothing() {
        for (start_us, expected) in [(500_000, 0), (500_112, 0), (500_250, 1_000)] {
            let tick = Tick::default().starting_at(Duration::from_micros(start_us));
            let mut receiver = Receiver::new(ReceiverConfig { tick, ..ReceiverConfig::default() });
            let mut answers = Vec::new();
            let syn = Data { control: Control::SYN, payload: 0, ..data(0, 0) };
            receiver.on_data(Instant::ZERO, &syn, &mut |ack| answers.push(ack));
            let echo_ms = answers[0].timestamp_ms;
            let now = Instant::from_nanos(854_000);
            receiver.on_data(now, &data(0, echo_ms), &mut |_| ());
            assert_eq!(receiver.buffer.rtt_us(), expected, "{start_us}");
        }
    }

    /// Linux: `tcp_data_queue_ofo` does not count as an arrival, and its acknowledgement ends what waiting there was. As in the world `kernel` in
    /// `exact-54`, whose first nine packets were lost.
    #[test]
    fn a_connection_that_begins_with_a_gap_does_not_hurry() {
        for (gap, quick) in [(false, MAX_QUICK_ACKS), (true, 0)] {
            // A window that does not grow.
            let fixed_buffer = Some(Bytes(60_000));
            let mut receiver =
                Receiver::new(ReceiverConfig { fixed_buffer, ..ReceiverConfig::default() });
            let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
            let syn = Data { control: Control::SYN, payload: 0, ..data(0, 0) };
            receiver.on_data(at(1_000), &syn, &mut |_| ());
            receiver.on_data(at(1_020), &Data { payload: 0, ..data(0, 0) }, &mut |_| ());
            receiver.quick = 1;
            if gap {
                receiver.on_data(at(1_021), &data(14_480, 0), &mut |_| ());
            }
            receiver.adapt_delay(Tick::default().count(at(1_022).as_nanos()));
            assert_eq!(receiver.quick, quick, "{gap}");
        }
    }

    /// Linux: `tcp_init_buffer_space`. As in the world `kernel` in `exact-10`: a queue holds the first data back, not what opens the connection.
    #[test]
    fn what_is_read_in_a_round_trip_counts_from_the_opening() {
        let mut receiver = Receiver::new(ReceiverConfig::default());
        let at = |us: u64| Instant::from_nanos(us * 1_000);
        receiver.on_data(
            at(0),
            &Data { control: Control::SYN, payload: 0, ..data(0, 0) },
            &mut |_| (),
        );
        receiver.on_data(at(10_000), &Data { payload: 0, ..data(0, 0) }, &mut |_| ());
        receiver.buffer.rtt_eighth_us = 11_000 << 3;
        // 11 ms after the opening, and 10.4 after the first data: measured by then, and not again 0.5 ms later.
        receiver.on_data(at(10_600), &data(0, 0), &mut |_| ());
        receiver.on_data(at(21_000), &data(1_448, 0), &mut |_| ());
        assert_eq!(receiver.buffer.measure_seq, 2_896);
        receiver.on_data(at(21_600), &data(2_896, 0), &mut |_| ());
        assert_eq!(receiver.buffer.measure_seq, 2_896);
    }

    #[test]
    fn what_lies_behind_a_gap_tells_the_round_trip_too() {
        let mut receiver = Receiver::new(ReceiverConfig::default());
        receiver.on_data(Instant::from_nanos(20_000_000), &data(0, 10), &mut |_| ());
        assert_eq!(receiver.buffer.rtt_us(), 10_000);
        // 18 ms, of which an eighth counts.
        receiver.on_data(Instant::from_nanos(40_000_000), &data(2_896, 22), &mut |_| ());
        assert_eq!(receiver.buffer.rtt_us(), 11_000);
    }

    /// Linux: `tcp_delack_timer_handler`.
    #[test]
    fn an_acknowledgement_that_waited_in_vain_lets_the_next_one_wait_longer() {
        // While a window grows, nothing waits.
        let fixed_buffer = Some(Bytes(8_000));
        let mut receiver =
            Receiver::new(ReceiverConfig { fixed_buffer, ..ReceiverConfig::default() });
        receiver.on_data(
            Instant::ZERO,
            &Data { control: Control::SYN, payload: 0, ..data(0, 0) },
            &mut |_| (),
        );
        let mut now = Instant::ZERO + Duration::from_millis(300);
        let mut waits = Vec::new();
        for number in 0..22 {
            receiver.on_data(now, &data(number * 1_448, 0), &mut |_| ());
            let timer = receiver.next_timer();
            if timer < Instant::NEVER {
                waits.push((timer - now).as_millis());
                receiver.on_timer(timer, &mut |_| ());
                now = timer;
            }
            // After a longer pause than that, which does not change it.
            now = now + Duration::from_millis(90);
        }
        // After the quick ones: 40, 80, 160 and 190 ms, a tick less than the shortest timeout (`tcp_delack_max`), to which the wheel adds one.
        assert_eq!(waits[..4], [50, 90, 170, 200]);
    }

    /// Linux: `tcp_delack_timer_handler`; no timer is stopped as an acknowledgement leaves (`inet_csk_clear_xmit_timer`).
    #[test]
    fn the_timer_of_an_acknowledgement_that_has_left_sends_what_is_held_back() {
        let fixed_buffer = Some(Bytes(60_000));
        let mut receiver =
            Receiver::new(ReceiverConfig { fixed_buffer, ..ReceiverConfig::default() });
        receiver.on_data(
            Instant::ZERO,
            &Data { control: Control::SYN, payload: 0, ..data(0, 0) },
            &mut |_| (),
        );
        let mut now = Instant::ZERO + Duration::from_millis(300);
        let mut next = 0;
        // One after the other until one waits; the next one takes it along.
        loop {
            receiver.on_data(now, &data(next, 0), &mut |_| ());
            next += 1_448;
            now = now + Duration::from_micros(100);
            if receiver.next_timer() < Instant::NEVER {
                break;
            }
        }
        let left = receiver.next_timer();
        let mut acks = 0;
        receiver.on_data(now, &data(next, 0), &mut |_| acks += 1);
        assert_eq!((acks, receiver.next_timer()), (1, Instant::NEVER));
        // Behind a gap the first ones are told at once, and the next is held back: until that timer comes, 5 µs before its own would.
        let near = Instant::from_nanos(left.as_nanos() - 5_000);
        for island in 2.. {
            receiver.on_data(near, &data(next + island * 1_448, 0), &mut |_| acks += 1);
            if receiver.next_timer() < Instant::NEVER {
                break;
            }
        }
        assert_eq!(receiver.next_timer(), left);
        acks = 0;
        receiver.on_timer(left, &mut |_| acks += 1);
        assert_eq!((acks, receiver.next_timer()), (1, Instant::NEVER));
    }

    /// Linux: `tcp_sack_new_ofo_skb`, by `tcp_sack_extend`.
    #[test]
    fn what_waited_to_be_told_is_told_with_what_the_third_island_grew_by() {
        let mut receiver = Receiver::new(ReceiverConfig::default());
        receiver.on_data(
            Instant::ZERO,
            &Data { control: Control::SYN, payload: 0, ..data(0, 0) },
            &mut |_| (),
        );
        let now = Instant::ZERO + Duration::from_millis(300);
        let mut told = Vec::new();
        let mut arrive = |receiver: &mut Receiver, number: u64| {
            told.clear();
            let mut tell = |ack: Ack| told.push(ack.blocks().to_vec());
            receiver.on_data(now, &data(number * 1_448, 0), &mut tell);
            told.clone()
        };
        // Three islands, of which the last one grows; then the first one does.
        for number in [2, 6, 10, 11, 12, 13, 14] {
            arrive(&mut receiver, number);
        }
        receiver.compressed = 1;
        let block = |from: u64, to: u64| SackBlock { start: from * 1_448, end: to * 1_448 };
        assert_eq!(
            arrive(&mut receiver, 3),
            [[block(10, 15), block(6, 7), block(2, 4)]],
            "it stands where it was"
        );
        assert_eq!(receiver.compressed, 0);
        // A fourth one is not told of.
        receiver.compressed = 1;
        assert_eq!(arrive(&mut receiver, 20), [[block(2, 4), block(10, 15), block(6, 7)]]);
    }
}
