//! What was read from a device: bytes that its packets share, and room for the next.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::layout::Layout;
use crate::vnet::{VNET_BYTES, Vnet};

/// The longest packet with the header of virtio before it. A device cuts off what is longer.
pub(crate) const FRAME_BYTES: usize = VNET_BYTES + 65_536;
/// Frames below this are copied into memory of their own size: a queue of small ones would hold 64 KB for each.
const COPIED_BYTES: usize = 16 << 10;
/// So many large pieces of memory are kept for what comes next.
const KEPT: usize = 64;

/// An aggregate or a packet as it was read, the header of virtio first.
#[derive(Debug)]
pub(crate) struct Frame {
    bytes: Vec<u8>,
    vnet: Vnet,
    layout: Layout,
    room: Arc<Room>,
}

/// The memory of one direction's frames.
#[derive(Debug)]
pub(crate) struct Room {
    /// Large pieces that nobody uses.
    spare: Mutex<Vec<Vec<u8>>>,
    held: AtomicU64,
    most: u64,
}

impl Room {
    /// Frames have so many bytes at most, all together.
    pub(crate) fn new(most: u64) -> Arc<Self> {
        Arc::new(Self { spare: Mutex::default(), held: AtomicU64::new(0), most })
    }

    /// An empty piece of memory that takes any frame.
    pub(crate) fn large(&self) -> Vec<u8> {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        spare.unwrap_or_else(|| Vec::with_capacity(FRAME_BYTES))
    }

    fn keep(&self, mut bytes: Vec<u8>) {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < KEPT {
            bytes.clear();
            spare.push(bytes);
        }
    }
}

impl Frame {
    /// The frame that `bytes` are, in memory of its own; they are empty then. `None` if it is no frame, or if there is no room for it.
    pub(crate) fn take(bytes: &mut Vec<u8>, room: &Arc<Room>) -> Option<Arc<Self>> {
        let (vnet, packet) = Vnet::read(bytes)?;
        let layout = Layout::of(&vnet, packet);
        if packet.is_empty() {
            return None;
        }
        let own = if bytes.len() < COPIED_BYTES {
            bytes.as_slice().to_vec()
        } else {
            std::mem::replace(bytes, room.large())
        };
        bytes.clear();
        let size = own.capacity() as u64;
        let held = room.held.fetch_add(size, Ordering::Relaxed) + size;
        let frame = Self { bytes: own, vnet, layout, room: Arc::clone(room) };
        // If it is too much, dropping it gives it back.
        (held <= room.most).then(|| Arc::new(frame))
    }

    /// All of it, as it was read.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What is behind the header of virtio.
    pub(crate) fn packet(&self) -> &[u8] {
        &self.bytes[VNET_BYTES..]
    }

    pub(crate) const fn vnet(&self) -> &Vnet {
        &self.vnet
    }

    pub(crate) const fn layout(&self) -> &Layout {
        &self.layout
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        self.room.held.fetch_sub(bytes.capacity() as u64, Ordering::Relaxed);
        if bytes.capacity() >= FRAME_BYTES {
            self.room.keep(bytes);
        }
    }
}
