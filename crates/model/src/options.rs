//! TCP options of acknowledgements on their way that few have.

use std::num::NonZeroU32;

use dualq_tcp::{EcnBytes, MAX_SACK_BLOCKS, SackBlock};
use prefetch_index::prefetch_index;

/// What one acknowledgement has beside its timestamps.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckOptions {
    pub(crate) blocks: [SackBlock; MAX_SACK_BLOCKS],
    /// Of Accurate ECN.
    pub(crate) accurate: Option<EcnBytes>,
}

/// Where the options of one acknowledgement are stored: the number of their place, and one more.
#[derive(Debug)]
pub(crate) struct Stored(NonZeroU32);

impl Stored {
    const fn place(&self) -> usize {
        self.0.get() as usize - 1
    }
}

/// All that are stored.
#[derive(Debug, Default)]
pub(crate) struct Options {
    places: Vec<AckOptions>,
    free: Vec<Stored>,
}

impl Options {
    #[cold]
    pub(crate) fn store(&mut self, options: AckOptions) -> Stored {
        if let Some(stored) = self.free.pop() {
            self.places[stored.place()] = options;
            return stored;
        }
        self.places.push(options);
        Stored(NonZeroU32::MIN.saturating_add((self.places.len() - 1) as u32))
    }

    #[cold]
    pub(crate) fn take(&mut self, stored: Stored) -> AckOptions {
        let options = self.places[stored.place()];
        self.free.push(stored);
        options
    }

    /// Asks for them from memory, for somebody who takes them soon.
    #[inline]
    pub(crate) fn read_ahead(&self, stored: &Stored) {
        prefetch_index(&self.places, stored.place());
    }

    pub(crate) fn get(&self, stored: &Stored) -> AckOptions {
        self.places[stored.place()]
    }

    /// How many are stored.
    #[cfg(test)]
    pub(crate) const fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}
