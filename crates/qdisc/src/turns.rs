//! Whose turn it is: lists of flows, which lie in one array and are chained by their places.

/// No place.
const NOBODY: u32 = u32::MAX;

/// Where a flow is in its list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    next: u32,
    /// Of no meaning in the first of a list.
    previous: u32,
}

impl Link {
    /// In no list.
    pub(crate) const NONE: Self = Self { next: NOBODY, previous: NOBODY };

    /// Who is served after it.
    #[inline]
    pub(crate) const fn next(&self) -> Option<u32> {
        if self.next == NOBODY { None } else { Some(self.next) }
    }
}

/// What can be in a list.
pub(crate) trait Linked {
    /// Its place there.
    fn link(&mut self) -> &mut Link;

    /// Who is served after it.
    fn next(&self) -> Option<u32>;
}

/// Flows in the order in which they are served.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    first: u32,
    last: u32,
    length: u32,
}

impl List {
    /// A list of nobody.
    pub(crate) const EMPTY: Self = Self { first: NOBODY, last: NOBODY, length: 0 };

    /// How many are in it.
    #[inline]
    pub(crate) const fn len(&self) -> u32 {
        self.length
    }

    /// Who is served now.
    #[inline]
    pub(crate) const fn first(&self) -> Option<u32> {
        if self.length > 0 { Some(self.first) } else { None }
    }

    /// All that are in it, in their order.
    pub(crate) fn iter<F: Linked>(self, flows: &[F]) -> impl Iterator<Item = u32> {
        std::iter::successors(self.first(), |id| flows[*id as usize].next())
    }

    /// Puts a flow behind all others.
    #[inline]
    pub(crate) fn append<F: Linked>(&mut self, flows: &mut [F], id: u32) {
        *flows[id as usize].link() = Link { next: NOBODY, previous: self.last };
        if self.length == 0 {
            self.first = id;
        } else {
            flows[self.last as usize].link().next = id;
        }
        self.last = id;
        self.length += 1;
    }

    /// Who is served now goes behind all others, and so do those after it as long as `passes`. However many pass, what is changed is
    /// where the list begins.
    #[inline]
    pub(crate) fn rotate_while<F: Linked>(
        &mut self,
        flows: &mut [F],
        mut passes: impl FnMut(&mut F) -> bool,
    ) {
        let Some(first) = self.first() else { return };
        let (mut id, mut before) = (first, self.last);
        while passes(&mut flows[id as usize]) {
            before = id;
            id = flows[id as usize].next().unwrap_or(first);
        }
        if id == first {
            return;
        }
        flows[self.last as usize].link().next = first;
        flows[first as usize].link().previous = self.last;
        flows[before as usize].link().next = NOBODY;
        (self.first, self.last) = (id, before);
    }

    /// Takes out who is served now.
    #[inline]
    pub(crate) fn remove_first<F: Linked>(&mut self, flows: &mut [F]) {
        if let Some(flow) = flows.get_mut(self.first as usize) {
            self.first = flow.link().next;
            self.length -= 1;
        }
    }

    /// Takes out one that is in it.
    pub(crate) fn remove<F: Linked>(&mut self, flows: &mut [F], id: u32) {
        if id == self.first {
            return self.remove_first(flows);
        }
        let Link { next, previous } = *flows[id as usize].link();
        flows[previous as usize].link().next = next;
        match flows.get_mut(next as usize) {
            Some(behind) => behind.link().previous = previous,
            None => self.last = previous,
        }
        self.length -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Linked for Link {
        fn link(&mut self) -> &mut Link {
            self
        }

        fn next(&self) -> Option<u32> {
            (*self).next()
        }
    }

    #[test]
    fn whoever_leaves_is_not_served() {
        for leaver in 0..4 {
            let mut flows = [Link::NONE; 5];
            let mut list = List::EMPTY;
            for id in 0..4 {
                list.append(&mut flows, id);
            }
            assert_eq!(list.iter(&flows).collect::<Vec<_>>(), [0, 1, 2, 3]);
            let mut turns = 0..1;
            list.rotate_while(&mut flows, |_| turns.next().is_some());
            list.remove(&mut flows, leaver);
            list.append(&mut flows, 4);
            let mut served = Vec::new();
            while let Some(id) = list.first() {
                served.push(id);
                list.remove_first(&mut flows);
            }
            let expected: Vec<u32> =
                [1, 2, 3, 0, 4].into_iter().filter(|id| *id != leaver).collect();
            assert_eq!((served, list.len()), (expected, 0));
        }
    }
}
