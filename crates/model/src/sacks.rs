//! SACK blocks of acknowledgements on their way.

use std::num::NonZeroU32;

use dualq_tcp::{MAX_SACK_BLOCKS, SackBlock};

/// Where the blocks of one acknowledgement are stored: the number of their place, and one more.
#[derive(Debug)]
pub(crate) struct Stored(NonZeroU32);

impl Stored {
    const fn place(&self) -> usize {
        self.0.get() as usize - 1
    }
}

/// All that are stored.
#[derive(Debug, Default)]
pub(crate) struct Sacks {
    places: Vec<[SackBlock; MAX_SACK_BLOCKS]>,
    free: Vec<Stored>,
}

impl Sacks {
    pub(crate) fn store(&mut self, blocks: [SackBlock; MAX_SACK_BLOCKS]) -> Stored {
        if let Some(stored) = self.free.pop() {
            self.places[stored.place()] = blocks;
            return stored;
        }
        self.places.push(blocks);
        Stored(NonZeroU32::MIN.saturating_add((self.places.len() - 1) as u32))
    }

    pub(crate) fn take(&mut self, stored: Stored) -> [SackBlock; MAX_SACK_BLOCKS] {
        let blocks = self.places[stored.place()];
        self.free.push(stored);
        blocks
    }

    pub(crate) fn get(&self, stored: &Stored) -> [SackBlock; MAX_SACK_BLOCKS] {
        self.places[stored.place()]
    }

    pub(crate) fn copy(&mut self, stored: &Stored) -> Stored {
        self.store(self.places[stored.place()])
    }

    /// How many are stored.
    #[cfg(test)]
    pub(crate) const fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}
