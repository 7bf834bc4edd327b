//! What the far end of a probe of short messages sends again.

use dualq_scenario::PROBE_BYTES;
use dualq_tcp::{Ack, Data, SackBlock, Sender};
use dualq_units::Instant;

/// The sending endpoint of whoever answers each message at once. What it sends first travels with the acknowledgements of its other half; it
/// has its timers of its own, and where what acknowledges an answer waits in a queue for long, sends that again.
#[derive(Debug)]
pub(crate) struct Answerer {
    sender: Sender,
    /// Bytes that it has answered with.
    written: u64,
}

impl Answerer {
    pub(crate) const fn new(sender: Sender) -> Self {
        Self { sender, written: 0 }
    }

    /// The answer to the SYN leaves.
    pub(crate) fn opens(&mut self, now: Instant) {
        self.transmit(now);
    }

    /// Something comes from whoever asks, who has had the answers to all that was asked before it; one of them twice, perhaps.
    pub(crate) fn hears(&mut self, now: Instant, data: &Data, twice: bool) {
        let is_first = !self.sender.is_established();
        let mut ack = Ack {
            ack: data.seq.min(self.sender.sent()),
            syn: is_first,
            with_data: data.payload > 0,
            window: 1 << 16,
            timestamp_ms: data.timestamp_ms,
            echo_ms: data.echo_ms,
            ..Ack::default()
        };
        if twice {
            let start = ack.ack.saturating_sub(PROBE_BYTES.into());
            ack.blocks[0] = SackBlock { start, end: ack.ack };
            (ack.block_count, ack.dsack) = (1, true);
        }
        self.sender.on_ack(now, &ack);
        self.transmit(now);
    }

    /// All that has come is answered.
    pub(crate) fn answers(&mut self, now: Instant, received: u64) {
        if received > self.written {
            self.sender.write(received - self.written);
            self.written = received;
            self.transmit(now);
        }
    }

    /// When [`runs_out`](Self::runs_out) is to be called.
    pub(crate) fn next_timer(&self) -> Instant {
        // Before that it is the other half that answers the SYN again.
        if self.sender.is_established() { self.sender.next_timer() } else { Instant::NEVER }
    }

    pub(crate) const fn endpoint(&self) -> &Sender {
        &self.sender
    }

    /// A timer has run out. Returns how many answers are sent again.
    pub(crate) fn runs_out(&mut self, now: Instant) -> u32 {
        self.sender.on_timer(now);
        self.transmit(now)
    }

    /// Returns how many packets with payload leave.
    fn transmit(&mut self, now: Instant) -> u32 {
        let (mut count, mut bytes) = (0, 0);
        self.sender.transmit(now, &mut |sent| {
            count += u32::from(sent.data.payload > 0);
            bytes += sent.data.payload;
        });
        self.sender.on_departure(bytes);
        count
    }
}
