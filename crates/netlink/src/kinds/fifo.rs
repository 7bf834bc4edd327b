//! `pfifo` and `bfifo` (`struct tc_fifo_qopt`): the limit, of packets or of bytes.

use super::TCA_OPTIONS;
use crate::attributes::{Writer, u32_at};

pub(super) fn write(limit: Option<u32>, into: &mut Writer) {
    into.u32_if(TCA_OPTIONS, limit);
}

pub(super) fn limit(options: &[u8]) -> Option<u32> {
    u32_at(options, 0)
}
