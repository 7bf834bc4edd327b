//! The send buffer: how much of what the program writes the kernel takes in before it is acknowledged (Linux:
//! `tcp_sndbuf_expand`, `sk_stream_write_space`), and in which packets it lies there (`tcp_sendmsg_locked`).

use std::collections::VecDeque;

use dualq_units::Bytes;
use dualq_units::hint::unlikely;

use super::{HEADER_ROOM, Sender};
use crate::cc::CongestionControl;

/// The fewest segments that there is room for (Linux: `TCP_INIT_CWND`).
const MIN_SEGMENTS: u32 = 10;
/// Memory of a segment beside its payload, at worst: room for headers, shared info and the socket buffer itself.
const SHARED_INFO: u64 = 320;
const SOCKET_BUFFER: u64 = 256;
/// TCP options that take room of the payload: timestamps.
const OPTIONS: u64 = 12;
/// The least that a program can ask for (Linux: `SOCK_MIN_SNDBUF`).
const LEAST: u64 = 4_608;
/// What the program writes lies in packets of this size, as near as whole segments come to it.
const PACKET: u64 = 65_535 - HEADER_ROOM;
/// Memory of such a packet beside its payload.
const PACKET_OVERHEAD: u64 = crate::PACKET_OVERHEAD as u64;

/// The send buffer. The program sleeps while it is full, and writes again when a third of it is free; and also while too much of it is
/// unsent, until half as much is.
// In the order in which it is written, as [`Sender`] is: behind what is seldom needed of that.
#[repr(C)]
#[derive(Clone, Debug)]
pub(super) struct SendBuffer {
    /// The most bytes that are unsent, but for the last packet (`TCP_NOTSENT_LOWAT`).
    most_unsent: u64,
    /// The packets behind the one that is sent next.
    others: VecDeque<Packet>,
    /// The packet that is sent next.
    head: Packet,
    /// The most bytes of memory, but for the last packet.
    size: u64,
    /// The window and the length of segments for which it was found large enough last: it is for smaller ones too.
    expanded_for: (u32, u32),
    /// Bytes of memory of all that is not acknowledged, sent or not (Linux: `sk_wmem_queued`).
    pub(super) memory: u64,
    /// What the program has written up to here is in the buffer, or was.
    pub(super) end: u64,
    /// The program found no room and was not woken since (Linux: `SOCK_NOSPACE`).
    pub(super) is_awaited: bool,
    /// The program has more to write than when it ran last, and tries without having been woken.
    pub(super) is_tried: bool,
}

/// A packet that is not sent yet.
#[derive(Clone, Copy, Debug, Default)]
struct Packet {
    /// Where it ends.
    end: u64,
    /// The program paused there (Linux: `tcp_mark_push`).
    pushes: bool,
}

impl SendBuffer {
    /// An empty one, which has no room yet but if the program asked for so many bytes, of which it gets twice as many. Of what is in it as
    /// many bytes may be unsent as is told.
    pub(super) fn new(asked: Option<Bytes>, most_unsent: Option<Bytes>) -> Self {
        Self {
            size: asked.map_or(0, |Bytes(bytes)| (2 * bytes).max(LEAST)),
            expanded_for: (0, 0),
            most_unsent: most_unsent.map_or(u64::MAX, |Bytes(bytes)| bytes),
            memory: 0,
            is_awaited: false,
            is_tried: false,
            end: 0,
            head: Packet::default(),
            others: VecDeque::new(),
        }
    }

    /// Whether there is room for another packet, if what lies before `sent` has left (Linux: `sk_stream_memory_free`).
    #[inline]
    const fn has_room(&self, sent: u64) -> bool {
        self.memory < self.size && self.end - sent < self.most_unsent
    }

    /// Whether the program is woken (Linux: `sk_stream_is_writeable`).
    #[inline]
    const fn is_writeable(&self, sent: u64) -> bool {
        self.memory + self.memory / 2 <= self.size && 2 * (self.end - sent) < self.most_unsent
    }

    /// Where the packet ends that is sent next, and whether it is the last one. It is made at least `wanted` bytes long from
    /// `from` on, of what the next packet holds (Linux: `tcp_grow_skb`).
    #[inline]
    pub(super) fn head(&mut self, from: u64, wanted: u64) -> (u64, bool) {
        if self.head.end - from < wanted {
            self.lengthen_head(from + wanted);
        }
        (self.head.end, self.is_last())
    }

    /// The packet that is sent next is to end at `end`, as far as the next one reaches.
    #[inline(never)]
    fn lengthen_head(&mut self, end: u64) {
        if let Some(&next) = self.others.front() {
            self.head.end = next.end.min(end);
            if self.head.end == next.end {
                self.head.pushes |= next.pushes;
                self.others.pop_front();
                self.memory -= PACKET_OVERHEAD;
            }
        }
    }

    /// Whether no packet follows the one that is sent next.
    pub(super) fn is_last(&self) -> bool {
        self.others.is_empty()
    }

    /// The first bytes leave with the SYN, before there is room.
    pub(super) fn open(&mut self, payload: u64) {
        self.append(payload, PACKET_OVERHEAD);
        self.head = Packet { end: self.end, pushes: false };
    }

    /// What is sent next ends at `end`: it is a packet of its own from now on, though it waits.
    #[inline]
    pub(super) fn cut(&mut self, end: u64) {
        if end < self.head.end {
            self.cut_head(end);
        }
    }

    #[inline(never)]
    fn cut_head(&mut self, end: u64) {
        self.others.push_front(self.head);
        self.head = Packet { end, pushes: false };
        self.memory += PACKET_OVERHEAD;
    }

    /// What ends at `end` is sent, as a packet of its own. Returns whether the program paused there.
    #[inline]
    pub(super) fn take(&mut self, end: u64) -> bool {
        if end < self.head.end {
            self.memory += PACKET_OVERHEAD;
            return false;
        }
        self.take_whole(end)
    }

    /// The same of all of the packet that is sent next, and of what was put into it since.
    #[inline(never)]
    fn take_whole(&mut self, end: u64) -> bool {
        let mut pushes = false;
        while self.head.end <= end {
            pushes = self.head.pushes;
            let Some(next) = self.others.pop_front() else { break };
            if unlikely(next.end <= end) {
                // It went into the packet before it.
                self.memory -= PACKET_OVERHEAD;
            }
            self.head = next;
        }
        pushes
    }

    /// A packet was cut in two to be sent again.
    pub(super) fn cut_again(&mut self) {
        self.memory += PACKET_OVERHEAD;
    }

    /// What has arrived lies in so many packets more, or fewer.
    #[inline]
    pub(super) fn are_more(&mut self, packets: i64) {
        self.memory = self.memory.wrapping_add_signed(packets * PACKET_OVERHEAD as i64);
    }

    /// So many bytes are acknowledged, and with them the last ones of so many packets: the rest of one holds as much memory beside its payload as all
    /// of it did (Linux: `tcp_trim_head`).
    #[inline]
    pub(super) fn free(&mut self, bytes: u64, packets: u64) {
        self.memory -= bytes + packets * PACKET_OVERHEAD;
    }

    /// The program writes one packet of `goal` bytes, or what is missing of the last one, up to `write_end` at most; what lies
    /// before `sent` is gone. With the first packet since a pause it goes on where it had paused. Returns whether there was room and
    /// something to write.
    fn write(&mut self, write_end: u64, goal: u64, sent: u64, first: bool) -> bool {
        if self.end >= write_end {
            return false;
        }
        let most = write_end - self.end;
        if self.end == sent {
            let room = self.has_room(sent);
            if room {
                self.append(goal.min(most), PACKET_OVERHEAD);
                self.head = Packet { end: self.end, pushes: false };
            }
            return room;
        }
        let missing = (self.last_start(sent) + goal).saturating_sub(self.end);
        if missing > 0 {
            self.append(missing.min(most), 0);
            let end = self.end;
            let last = self.last_mut();
            *last = Packet { end, pushes: last.pushes && !first };
            return true;
        }
        let room = self.has_room(sent);
        if room {
            self.append(goal.min(most), PACKET_OVERHEAD);
            self.others.push_back(Packet { end: self.end, pushes: false });
        }
        room
    }

    /// The stream ends, with the last packet that is not sent yet, or with one of its own, for which there is always room (Linux:
    /// `tcp_send_fin`).
    #[cold]
    fn finish(&mut self, sent: u64) {
        let is_alone = self.end == sent;
        self.append(1, if is_alone { PACKET_OVERHEAD } else { 0 });
        let end = self.end;
        if is_alone {
            self.head = Packet { end, pushes: false };
        } else {
            self.last_mut().end = end;
        }
    }

    /// Where the last packet begins that is not sent yet.
    fn last_start(&self, sent: u64) -> u64 {
        match self.others.len() {
            0 => sent,
            1 => self.head.end,
            several => self.others[several - 2].end,
        }
    }

    fn last_mut(&mut self) -> &mut Packet {
        self.others.back_mut().unwrap_or(&mut self.head)
    }

    /// The program pauses, for there is no more room or it has written much.
    pub(super) fn pause(&mut self) {
        self.last_mut().pushes = true;
    }

    fn append(&mut self, payload: u64, overhead: u64) {
        self.end += payload;
        self.memory += payload + overhead;
    }
}

impl Sender {
    #[inline(never)]
    pub(super) fn expand_buffer(&mut self) {
        // The program asked for its size (Linux: `SOCK_SNDBUF_LOCK`).
        if self.config.buffer.is_some() {
            return;
        }
        self.buffer.expanded_for = (self.wanted_window(), self.mss);
        let mss = u64::from(self.mss);
        let segment =
            (mss + OPTIONS + HEADER_ROOM + SHARED_INFO).next_power_of_two() + SOCKET_BUFFER;
        let segments = self.wanted_window().max(MIN_SEGMENTS);
        let wanted = u64::from(self.control.send_buffer_windows()) * u64::from(segments) * segment;
        self.buffer.size = self.buffer.size.max(wanted.min(self.config.max_buffer.0));
    }

    /// The segments of a window, for a few of which there is to be room.
    #[inline]
    fn wanted_window(&self) -> u32 {
        self.window.cwnd.max(self.rack.reordering + 1)
    }

    /// How long packets of the send buffer get: no longer than half of the largest window that was offered (Linux:
    /// `tcp_xmit_size_goal`, `tcp_bound_to_half_wnd`).
    fn packet_goal(&self) -> u64 {
        let mss = u64::from(self.mss);
        (PACKET.min(self.largest_window / 2) / mss).max(1) * mss
    }

    /// A buffer for which the program waits grows while the window is not filled, until the program is woken: from then on it is as large as
    /// it was, until that has run and found it full again (Linux: `tcp_check_space`, `sk_stream_write_space`).
    #[inline]
    pub(super) fn check_space(&mut self) {
        if self.buffer.is_awaited {
            self.expand_awaited();
            self.buffer.is_awaited = !self.buffer.is_writeable(self.snd_nxt);
        }
    }

    #[inline]
    fn expand_awaited(&mut self) {
        let (window, mss) = self.buffer.expanded_for;
        if self.buffer.is_awaited
            && unlikely(self.wanted_window() > window || self.mss > mss)
            && self.board.in_flight() < self.window.cwnd
        {
            self.expand_buffer();
        }
    }

    /// All was sent that may be: whether the program has more and is awake, or wakes for there is room. If it runs at once it looks again whether
    /// there is (Linux: `tcp_poll`), or, with something new, tries: for that less room will do (`sk_stream_memory_free`).
    #[inline]
    pub(super) fn wakes_program(&mut self, runs: bool) -> bool {
        let empty = self.board.packets_out() == 0 && self.snd_nxt == self.buffer.end;
        debug_assert!(!empty || self.buffer.memory == 0, "each packet frees what it took");
        if unlikely(self.buffer.end >= self.write_end) {
            return false;
        }
        self.expand_awaited();
        // Who only closes waits for no room (Linux: `tcp_send_fin`).
        let mut is_full = !self.buffer.is_writeable(self.snd_nxt) && self.buffer.end != self.fin;
        if unlikely(self.buffer.is_tried) && runs {
            self.buffer.is_tried = false;
            is_full = false;
        }
        self.buffer.is_awaited = is_full && (runs || self.buffer.is_awaited);
        !self.buffer.is_awaited
    }

    /// The program writes. If all before has left, it was the program that kept the path from being filled (Linux:
    /// `tcp_rate_check_app_limited`). So it is as a connection begins.
    pub(super) fn note_pause(&mut self) {
        let unsent = self.buffer.end - self.snd_nxt;
        if unsent < u64::from(self.mss) && self.queued == self.leaving {
            self.note_idleness();
        }
    }

    /// What a call ended with is short, and waits for the next call as long as the interface has something to send (Linux:
    /// `tcp_should_autocork`).
    pub(super) fn corks(&self) -> bool {
        let last = self.last_length();
        last < self.packet_goal()
            && self.board.packets_out() > 0
            && self.queued - self.leaving > last + PACKET_OVERHEAD
    }

    /// Whether what is written next is added to the last packet, for which there is always room.
    pub(super) fn may_add(&self) -> bool {
        self.last_length() < self.packet_goal()
    }

    fn last_length(&self) -> u64 {
        self.buffer.end - self.buffer.last_start(self.snd_nxt)
    }

    /// The program writes a packet, the first one of a call that ends at `call_end` or another. Returns whether it could.
    pub(super) fn write_packet(&mut self, call_end: u64, first: bool) -> bool {
        if self.buffer.end == self.fin {
            self.buffer.finish(self.snd_nxt);
            return true;
        }
        let goal = self.packet_goal();
        self.buffer.write(self.write_end.min(call_end), goal, self.snd_nxt, first)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dualq_units::Instant;

    use super::*;
    use crate::control::Control;
    use crate::packet::Ack;
    use crate::sender::SenderConfig;

    const MSS: u64 = 1448;
    const GOAL: u64 = 22 * MSS;

    /// As much memory as ten segments are worth: the kernel says so too (`SO_MEMINFO`).
    fn written() -> SendBuffer {
        let mut buffer = SendBuffer { size: 46_080, ..SendBuffer::new(None, None) };
        assert!(buffer.write(u64::MAX, GOAL, 0, true));
        buffer
    }

    /// Linux: `sk_setsockopt` at `SO_SNDBUF`, `tcp_should_expand_sndbuf`.
    #[test]
    fn what_a_program_asked_for_is_doubled_and_never_grows() {
        let size = |asked: Option<u64>| {
            let config = SenderConfig { buffer: asked.map(Bytes), ..SenderConfig::default() };
            let mut sender = Sender::new(config);
            sender.expand_buffer();
            sender.buffer.size
        };
        assert_eq!(size(None), 46_080);
        assert_eq!((size(Some(100_000)), size(Some(1))), (200_000, 4_608));
    }

    /// As in the world `kernel` in `wild-20261201-0`, whose first acknowledgement of two wakes the program (Linux: `tcp_check_space`).
    #[test]
    fn a_buffer_does_not_grow_while_the_program_that_was_woken_has_not_run() {
        let mut sender = Sender::new(SenderConfig::default());
        sender.write(u64::MAX);
        let buffer = SendBuffer { size: 138_240, is_awaited: true, ..SendBuffer::new(None, None) };
        sender.buffer = SendBuffer { end: 1, ..buffer };
        for (cwnd, memory, runs, wakes, size) in [
            (30, 92_872, false, false, 138_240),
            (30, 91_976, false, true, 138_240),
            (32, 92_872, false, true, 138_240),
            (32, 92_872, true, false, 138_240),
            (32, 92_872, true, true, 147_456),
            (34, 140_656, true, false, 147_456),
            (34, 140_656, true, false, 156_672),
        ] {
            sender.window.cwnd = cwnd;
            sender.buffer.memory = memory;
            assert_eq!((sender.wakes_program(runs), sender.buffer.size), (wakes, size));
        }
    }

    /// As in the world `kernel` in `exact-19`, of a flow that is stopped while its buffer is full (Linux: `tcp_send_fin`).
    #[test]
    fn who_only_closes_waits_for_no_room() {
        let mut sender = Sender::new(SenderConfig::default());
        sender.write(u64::MAX);
        let buffer = SendBuffer { size: 138_240, is_awaited: true, ..SendBuffer::new(None, None) };
        sender.buffer = SendBuffer { end: 1, memory: 138_240, ..buffer };
        sender.window.cwnd = 0;
        assert!(!sender.wakes_program(true));
        sender.close();
        assert!(sender.wakes_program(true));
        assert!(sender.write_packet(u64::MAX, true) && sender.has_closed());
        assert!(!sender.wakes_program(true), "once");
    }

    /// As in the world `kernel` in `transfers-20261607`, where a transfer begins while the buffer is nearly full of the one before.
    #[test]
    fn with_something_new_a_program_tries_to_write_without_being_woken() {
        let mut sender = Sender::new(SenderConfig::default());
        sender.write(1_000_000);
        sender.buffer = SendBuffer { size: 138_240, end: 1, ..SendBuffer::new(None, None) };
        sender.buffer.memory = 120_000;
        assert!(!sender.wakes_program(true));
        sender.write(1_000_000);
        assert!(!sender.wakes_program(false), "not before it runs");
        assert!(sender.wakes_program(true));
        assert!(!sender.wakes_program(true), "once");
    }

    #[test]
    fn what_left_of_the_last_packet_makes_room_in_it() {
        let mut buffer = written();
        for sent in [2, 4, 6, 8, 10] {
            buffer.take(sent * MSS);
        }
        // Five packets of two segments, and one of which twelve are left.
        assert_eq!(buffer.memory, GOAL + 6 * PACKET_OVERHEAD);
        assert!(buffer.write(u64::MAX, GOAL, 10 * MSS, true));
        assert_eq!((buffer.end, buffer.is_last()), (32 * MSS, true));
        // Then the buffer is full, also for the first byte of a packet.
        assert!(!buffer.write(u64::MAX, GOAL, 10 * MSS, true));
        for _ in 0..5 {
            buffer.free(MSS, 0);
            buffer.free(MSS, 1);
        }
        assert_eq!(buffer.memory, GOAL + PACKET_OVERHEAD);
        assert!(buffer.write(u64::MAX, GOAL, 10 * MSS, true));
        assert_eq!((buffer.end, buffer.is_last()), (54 * MSS, false));
    }

    /// Linux: `tcp_mark_push`, and `tcp_sendmsg_locked`, which takes the mark back where it goes on.
    #[test]
    fn what_ends_where_the_program_paused_pushes() {
        let mut buffer = written();
        buffer.pause();
        assert!(!buffer.take(2 * MSS));
        buffer.cut(5 * MSS);
        assert!(!buffer.take(5 * MSS), "a part of it");
        assert!(buffer.take(GOAL), "its end");
        let mut buffer = SendBuffer { size: 1 << 20, ..written() };
        buffer.take(2 * MSS);
        buffer.pause();
        assert!(buffer.write(u64::MAX, GOAL, 2 * MSS, true));
        assert!(!buffer.take(GOAL + 2 * MSS), "it went on");
        assert!(buffer.write(u64::MAX, GOAL, GOAL + 2 * MSS, true));
        buffer.pause();
        assert!(buffer.write(u64::MAX, GOAL, GOAL + 2 * MSS, true));
        assert_eq!(buffer.head(GOAL + 2 * MSS, 2 * GOAL), (3 * GOAL + 2 * MSS, true));
        assert!(buffer.take(3 * GOAL + 2 * MSS), "it was put together of one that paused");
    }

    #[test]
    fn a_short_packet_takes_from_the_next_one() {
        let mut buffer = written();
        buffer.write(u64::MAX, GOAL, 0, true);
        buffer.take(20 * MSS);
        assert_eq!(buffer.head(20 * MSS, 2 * MSS), (22 * MSS, false));
        assert_eq!(buffer.head(20 * MSS, 5 * MSS), (25 * MSS, false));
        let memory = buffer.memory;
        assert_eq!(buffer.head(20 * MSS, 40 * MSS), (44 * MSS, true));
        assert_eq!(buffer.memory, memory - PACKET_OVERHEAD);
    }

    #[test]
    fn what_was_cut_off_and_waits_is_a_packet_of_its_own() {
        let mut buffer = written();
        buffer.cut(3 * MSS);
        assert_eq!(buffer.head(0, 2 * MSS), (3 * MSS, false));
        buffer.take(3 * MSS);
        assert_eq!(buffer.head(3 * MSS, MSS), (GOAL, true));
        assert_eq!(buffer.memory, GOAL + 2 * PACKET_OVERHEAD);
    }

    #[test]
    fn what_goes_into_another_packet_holds_no_memory_of_its_own() {
        let mut buffer = written();
        buffer.cut(MSS);
        buffer.cut(MSS / 2);
        assert_eq!(buffer.memory, GOAL + 3 * PACKET_OVERHEAD);
        buffer.take(MSS);
        assert_eq!(buffer.memory, GOAL + 2 * PACKET_OVERHEAD);
        buffer.take(GOAL);
        buffer.free(MSS, 1);
        buffer.free(GOAL - MSS, 1);
        assert_eq!(buffer.memory, 0);
    }

    /// Linux: `__tcp_stream_memory_free`. Packets are written whole, and the program is woken when less than half is unsent.
    #[test]
    fn a_low_water_mark_limits_what_is_unsent() {
        let asked = SendBuffer::new(None, Some(Bytes(GOAL + 1)));
        let mut buffer = SendBuffer { size: 1 << 20, ..asked };
        for expected in [true, true, false] {
            assert_eq!(buffer.write(u64::MAX, GOAL, 0, true), expected);
        }
        assert_eq!(buffer.end, 2 * GOAL);
        let written = buffer.end;
        assert!(!buffer.is_writeable(written - GOAL / 2 - 1));
        assert!(buffer.is_writeable(written - GOAL / 2));
        buffer.take(GOAL);
        assert!(buffer.write(u64::MAX, GOAL, GOAL, true));
        assert!(!buffer.write(u64::MAX, GOAL, GOAL, true));
        // What is missing of a packet asks for no room.
        buffer.take(2 * GOAL + 5 * MSS);
        assert!(buffer.write(u64::MAX, GOAL, 2 * GOAL + 5 * MSS, true));
        assert_eq!(buffer.end, 3 * GOAL + 5 * MSS);
    }

    #[test]
    fn a_program_that_only_begins_limits_the_first_packets() {
        let mut sender = Sender::new(SenderConfig::default());
        sender.write(u64::MAX);
        sender.transmit(Instant::ZERO, &mut |_| ());
        let answer = Ack { control: Control::SYN, window: 65_160, ..Ack::default() };
        let later = Instant::ZERO + Duration::from_millis(40);
        sender.on_ack(later, &answer);
        sender.transmit(later, &mut |_| ());
        assert!(sender.rate.is_app_limited());
    }
}
