//! Data both ways on one connection: what a packet of one direction says of the other.

use dualq_tcp::{Ack, Control, Data};

/// What the headers of a packet say of the data that go the other way on its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OtherWay {
    /// Of data, up to where those have arrived; of an acknowledgement, up to where they were sent, as only captures show: 32 bits of it,
    /// as a header has.
    pub(crate) place: u32,
    /// Of data, how much more of those may come, as the header has it.
    pub(crate) window: u16,
}

impl OtherWay {
    /// What `data` acknowledge with that, of the stream of a sender that knows of so many acknowledged bytes.
    pub(crate) fn ack(self, data: &Data, acknowledged: u64, window_scale: u32) -> Ack {
        let ahead = self.place.wrapping_sub(acknowledged as u32).cast_signed();
        Ack {
            ack: acknowledged.saturating_add_signed(ahead.into()),
            window: self.window(window_scale),
            flags: data.flags,
            ecn: data.ecn,
            control: Control::WITH_DATA.when(data.payload > 0),
            echo_ms: data.echo_ms,
            timestamp_ms: data.timestamp_ms,
            ..Ack::default()
        }
    }

    pub(crate) const fn window(self, window_scale: u32) -> u64 {
        (self.window as u64) << window_scale
    }
}
