use dualq_tcp::Sender;

use crate::program::Moment;

/// Sends, to an end or for ever.
#[derive(Clone, Debug)]
pub(crate) struct Bulk {
    /// Bytes that it has to send.
    pub(crate) size: u64,
    /// When it has nothing more to send.
    pub(crate) stop_ns: Option<u64>,
    /// When all was acknowledged.
    pub(crate) done_ns: Option<u64>,
}

impl Bulk {
    pub(super) fn start(&self, sender: &mut Sender) -> Option<u64> {
        sender.write(self.size);
        self.stop_ns
    }

    #[expect(clippy::unused_self, reason = "all programs have a turn")]
    pub(super) fn turn(&self, sender: &mut Sender) -> Option<u64> {
        sender.stop();
        None
    }

    #[inline]
    pub(super) fn acknowledged(&mut self, at: Moment, sender: &Sender) -> Option<u64> {
        if self.done_ns.is_none() && sender.is_done() {
            self.done_ns = Some(at.now_ns);
        }
        None
    }
}
