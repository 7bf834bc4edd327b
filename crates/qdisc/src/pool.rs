//! Many queues in one allocation: the packets of all flows of a discipline lie in one pool, chained by their places. A
//! packet costs the same with ten flows and with ten thousand, and memory is bounded by what ever waited at once.

use prefetch_index::prefetch_index;

/// No place.
const NOWHERE: u32 = u32::MAX;

/// Where queued items lie.
pub struct Pool<T> {
    slots: Vec<Slot<T>>,
    /// The first of the empty slots.
    free: u32,
}

struct Slot<T> {
    item: Option<T>,
    next: u32,
    /// Of no meaning in the first of a chain.
    previous: u32,
}

/// A first-in-first-out queue in a [`Pool`].
#[derive(Clone, Copy, Debug)]
pub struct Chain {
    first: u32,
    last: u32,
    length: u32,
}

impl Chain {
    /// A queue that holds nothing.
    pub const EMPTY: Self = Self { first: NOWHERE, last: NOWHERE, length: 0 };

    /// Whether nothing is queued.
    #[must_use]
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// How many items are queued.
    #[must_use]
    #[inline]
    pub const fn len(&self) -> usize {
        self.length as usize
    }
}

/// Asks for an element from memory, without waiting for it; it may begin in one line of the cache and end in the next. Where there is none, the last one
/// is asked for: an address where nothing is would be looked for in vain each time, in all tables of pages, which takes longer than all else here.
#[inline]
pub(crate) fn read_ahead<T>(elements: &[T], index: u32) {
    let last = elements.len().saturating_sub(1);
    prefetch_index(elements, last.min(index as usize));
    prefetch_index(elements, last.min((index as usize).saturating_add(1)));
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Pool<T> {
    /// A pool without items.
    #[must_use]
    pub const fn new() -> Self {
        Self { slots: Vec::new(), free: NOWHERE }
    }

    /// Inlined: handed on by way of memory, an item that was just made would be waited for.
    #[inline(always)]
    fn store(&mut self, item: T) -> u32 {
        if self.free == NOWHERE {
            self.grow();
        }
        let place = self.free;
        let empty = &mut self.slots[place as usize];
        self.free = empty.next;
        *empty = Slot { item: Some(item), next: NOWHERE, previous: NOWHERE };
        place
    }

    /// A slot that is free.
    #[cold]
    fn grow(&mut self) {
        self.free = self.slots.len() as u32;
        self.slots.push(Slot { item: None, next: NOWHERE, previous: NOWHERE });
    }

    /// Appends `item`.
    #[inline(always)]
    pub fn push(&mut self, chain: &mut Chain, item: T) {
        let place = self.store(item);
        if chain.is_empty() {
            chain.first = place;
        } else {
            self.slots[chain.last as usize].next = place;
            self.slots[place as usize].previous = chain.last;
        }
        chain.last = place;
        chain.length += 1;
    }

    /// Puts `item` behind the last one of which `is_later` is not true: near the end, if `chain` is about in order.
    pub fn insert(&mut self, chain: &mut Chain, item: T, is_later: impl Fn(&T) -> bool) {
        let (mut before, mut after) = (chain.last, NOWHERE);
        for _ in 0..chain.length {
            let slot = &self.slots[before as usize];
            if !slot.item.as_ref().is_some_and(&is_later) {
                break;
            }
            after = before;
            before = if before == chain.first { NOWHERE } else { slot.previous };
        }
        if after == NOWHERE {
            return self.push(chain, item);
        }
        let place = self.store(item);
        self.slots[place as usize].next = after;
        self.slots[place as usize].previous = before;
        self.slots[after as usize].previous = place;
        if before == NOWHERE {
            chain.first = place;
        } else {
            self.slots[before as usize].next = place;
        }
        chain.length += 1;
    }

    /// Takes the first item.
    #[inline(always)]
    pub fn pop(&mut self, chain: &mut Chain) -> Option<T> {
        let place = chain.first;
        let slot = self.slots.get_mut(place as usize)?;
        let item = slot.item.take();
        chain.first = slot.next;
        slot.next = self.free;
        self.free = place;
        chain.length -= 1;
        // Whoever takes one will often take the next.
        self.read_ahead(chain);
        item
    }

    /// Takes the last item.
    pub fn pop_last(&mut self, chain: &mut Chain) -> Option<T> {
        if chain.length <= 1 {
            return self.pop(chain);
        }
        let place = chain.last;
        let slot = self.slots.get_mut(place as usize)?;
        let item = slot.item.take();
        chain.last = slot.previous;
        slot.next = self.free;
        self.free = place;
        chain.length -= 1;
        self.slots[chain.last as usize].next = NOWHERE;
        item
    }

    /// The items in their order.
    pub fn iter(&self, chain: &Chain) -> impl Iterator<Item = &T> {
        let mut place = chain.first;
        (0..chain.length).map_while(move |_| {
            let slot = self.slots.get(place as usize)?;
            place = slot.next;
            slot.item.as_ref()
        })
    }

    /// Takes the item that is so far behind the first.
    pub fn take(&mut self, chain: &mut Chain, number: usize) -> Option<T> {
        if number + 1 >= chain.len() {
            return if number < chain.len() { self.pop_last(chain) } else { None };
        }
        if number == 0 {
            return self.pop(chain);
        }
        let mut place = chain.first;
        for _ in 0..number {
            place = self.slots[place as usize].next;
        }
        let slot = self.slots.get_mut(place as usize)?;
        let item = slot.item.take();
        let (next, previous) = (slot.next, slot.previous);
        slot.next = self.free;
        self.free = place;
        self.slots[previous as usize].next = next;
        self.slots[next as usize].previous = previous;
        chain.length -= 1;
        item
    }

    /// The first item.
    #[must_use]
    #[inline]
    pub fn first(&self, chain: &Chain) -> Option<&T> {
        self.slots.get(chain.first as usize)?.item.as_ref()
    }

    /// The last item.
    #[must_use]
    pub fn last(&self, chain: &Chain) -> Option<&T> {
        if chain.is_empty() { None } else { self.slots.get(chain.last as usize)?.item.as_ref() }
    }

    /// Asks for the first item from memory, without waiting for it.
    #[inline]
    pub fn read_ahead(&self, chain: &Chain) {
        read_ahead(&self.slots, chain.first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_keep_their_order_and_share_their_room() {
        let mut pool = Pool::new();
        let (mut odd, mut even) = (Chain::EMPTY, Chain::EMPTY);
        for round in 0..3 {
            for number in 0..10 {
                pool.push(if number % 2 == 0 { &mut even } else { &mut odd }, number);
            }
            assert_eq!((odd.len(), even.len(), pool.first(&odd)), (5, 5, Some(&1)));
            let drained: Vec<i32> = std::iter::from_fn(|| pool.pop(&mut odd)).collect();
            assert_eq!(drained, [1, 3, 5, 7, 9], "round {round}");
            let drained: Vec<i32> = std::iter::from_fn(|| pool.pop(&mut even)).collect();
            assert_eq!(drained, [0, 2, 4, 6, 8]);
            assert_eq!((pool.pop(&mut odd), pool.first(&odd)), (None, None));
        }
        assert_eq!(pool.slots.len(), 10);
    }

    #[test]
    fn any_item_can_be_taken() {
        for number in 0..4 {
            let mut pool = Pool::new();
            let mut chain = Chain::EMPTY;
            (0..4).for_each(|item| pool.push(&mut chain, item));
            assert_eq!(pool.take(&mut chain, number), Some(number));
            assert_eq!(pool.take(&mut chain, 3), None);
            pool.push(&mut chain, 4);
            let expected: Vec<usize> = (0..5).filter(|item| *item != number).collect();
            assert_eq!(pool.iter(&chain).copied().collect::<Vec<_>>(), expected);
            let backwards: Vec<usize> = std::iter::from_fn(|| pool.pop_last(&mut chain)).collect();
            assert_eq!(backwards, expected.into_iter().rev().collect::<Vec<_>>());
            assert_eq!(pool.slots.len(), 4);
        }
    }

    #[test]
    fn items_can_be_sorted_in() {
        let mut pool = Pool::new();
        let mut chain = Chain::EMPTY;
        for number in [5, 2, 9, 2, 7] {
            pool.insert(&mut chain, number, |other| *other > number);
        }
        assert_eq!((chain.len(), pool.first(&chain)), (5, Some(&2)));
        let sorted: Vec<i32> = std::iter::from_fn(|| pool.pop(&mut chain)).collect();
        assert_eq!(sorted, [2, 2, 5, 7, 9]);
    }
}
