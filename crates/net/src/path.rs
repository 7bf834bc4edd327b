//! A list of elements that packets pass in order.

use std::collections::VecDeque;
use std::time::Duration;

use dualq_units::Instant;
use dualq_units::hint::unlikely;

use crate::element::Element;
use crate::environment::{Environment, Lost};
use crate::packet::Packet;
use crate::queue::Queue;

/// Elements that packets pass in order.
///
/// What a call lets leave at once comes out of [`next_out`](Self::next_out), which is to be called until it has nothing: after
/// each [`enter`](Self::enter) and each [`start`](Self::start). Between two calls of it, packets may enter this path too.
#[derive(Debug)]
pub struct Path<P: Packet> {
    elements: Vec<Element<P>>,
    /// When each element is to be started; `u64::MAX` for those that hold nothing.
    due: Vec<u64>,
    /// The first of these, whose it is, and the first of the others.
    next_ns: u64,
    next: usize,
    second_ns: u64,
    /// Elements that are being asked for packets, as bits by their places.
    active: u64,
    /// Parts and copies of packets, and the places of the elements that they pass next.
    beside: VecDeque<(usize, P)>,
}

impl<P: Packet> Path<P> {
    /// A path may have so many elements.
    pub const MOST_ELEMENTS: usize = 64;

    /// A path through `elements`; those beyond [`MOST_ELEMENTS`](Self::MOST_ELEMENTS) are left out.
    #[must_use]
    pub fn new(mut elements: Vec<Element<P>>) -> Self {
        elements.truncate(Self::MOST_ELEMENTS);
        let due = vec![u64::MAX; elements.len()];
        Self {
            elements,
            due,
            next_ns: u64::MAX,
            next: 0,
            second_ns: u64::MAX,
            active: 0,
            beside: VecDeque::new(),
        }
    }

    /// The elements.
    #[must_use]
    pub fn elements(&self) -> &[Element<P>] {
        &self.elements
    }

    /// The queue at `place`, if one is there.
    #[must_use]
    #[inline]
    pub fn queue(&self, place: usize) -> Option<&Queue<P>> {
        match self.elements.get(place) {
            Some(Element::Queue(queue)) => Some(queue),
            _ => None,
        }
    }

    /// The same, to change it.
    pub fn queue_mut(&mut self, place: usize) -> Option<&mut Queue<P>> {
        match self.elements.get_mut(place) {
            Some(Element::Queue(queue)) => Some(queue),
            _ => None,
        }
    }

    /// The [`Delay`](crate::Delay) at `place`, if one is there, takes so long from now on: [`Delay::change`](crate::Delay::change).
    pub fn change_delay(&mut self, place: usize, now: Instant, time: Duration) {
        if let Some(Element::Delay(delay)) = self.elements.get_mut(place) {
            delay.change(now, time);
            let due_ns = delay.next_ns();
            self.set_due(place, due_ns);
        }
    }

    /// When which element is to be started next: of those that are due at one instant, the first.
    #[must_use]
    #[inline]
    pub const fn next_due(&self) -> Option<(Instant, usize)> {
        if self.next_ns == u64::MAX { None } else { Some(self.next_start()) }
    }

    /// The same, with [`Instant::NEVER`] if none is.
    #[must_use]
    #[inline]
    pub const fn next_start(&self) -> (Instant, usize) {
        (Instant::from_nanos(self.next_ns), self.next)
    }

    /// When the next of all elements but the one of [`next_due`](Self::next_due) is to be started; [`Instant::NEVER`] if none is.
    #[must_use]
    #[inline]
    pub const fn next_due_beside(&self) -> Instant {
        Instant::from_nanos(self.second_ns)
    }

    /// Before this nothing comes out if nothing enters: a constant delay at the end holds what the elements before it have not let go
    /// yet for at least that long. [`Instant::NEVER`] if nothing is inside.
    #[must_use]
    pub fn earliest_out(&self) -> Instant {
        let Some((Element::Delay(delay), before)) = self.elements.split_last() else {
            return Instant::from_nanos(self.next_ns);
        };
        let inside_ns = self.due[..before.len()].iter().copied().min().unwrap_or(u64::MAX);
        let ready_ns = inside_ns.saturating_add(delay.shortest_ns());
        Instant::from_nanos(ready_ns.min(self.due[before.len()]))
    }

    #[inline]
    fn set_due(&mut self, place: usize, due_ns: u64) {
        self.due[place] = due_ns;
        if self.due.len() == 1 {
            self.next_ns = due_ns;
            return;
        }
        self.find_next();
    }

    /// Which of several is due next.
    #[inline(never)]
    fn find_next(&mut self) {
        (self.next_ns, self.next, self.second_ns) = (u64::MAX, 0, u64::MAX);
        for (place, due_ns) in (0..).zip(&self.due) {
            if *due_ns < self.next_ns {
                self.second_ns = self.next_ns;
                (self.next_ns, self.next) = (*due_ns, place);
            } else {
                self.second_ns = self.second_ns.min(*due_ns);
            }
        }
    }

    /// A packet sets out. Inlined, as it is large to hand on.
    #[inline(always)]
    pub fn enter(&mut self, now: Instant, packet: P, around: &mut impl Environment<P>) {
        self.enter_at(0, now, packet, around);
    }

    /// A packet sets out in front of the element at `place`.
    #[inline(always)]
    pub fn enter_at(
        &mut self,
        place: usize,
        now: Instant,
        packet: P,
        around: &mut impl Environment<P>,
    ) {
        // With what most paths begin, the loop of `pass` costs more than the element.
        match self.elements.get_mut(place) {
            Some(Element::Queue(queue)) => {
                if queue.enqueue(now, packet, around) {
                    self.has_queued(place);
                }
            }
            Some(Element::Delay(delay)) => {
                if delay.push(now, packet) {
                    let due_ns = delay.next_ns();
                    self.set_due(place, due_ns);
                }
            }
            _ => self.enter_seldom(place, now, packet, around),
        }
    }

    /// The same, of what most paths do not begin with.
    #[cold]
    fn enter_seldom(
        &mut self,
        place: usize,
        now: Instant,
        packet: P,
        around: &mut impl Environment<P>,
    ) {
        if let Some(packet) = self.pass(place, now, packet, around) {
            self.beside.push_back((self.elements.len(), packet));
        }
    }

    /// The queue at `place` has taken in a packet: if it had none, it is asked at once. One that has dropped what came is not asked, for an empty one that
    /// is asked is idle: `red` would forget its average (Linux: `htb_enqueue`, which makes no class of an empty queue active).
    #[inline]
    fn has_queued(&mut self, place: usize) {
        if self.due[place] == u64::MAX {
            self.active |= 1 << place;
        }
    }

    /// The element at `place` is due: it lets packets go, as many as its link sends at that instant if it is a queue, else one.
    #[inline]
    pub fn start(&mut self, place: usize) {
        self.active |= 1 << place;
    }

    /// Whether [`next_out`](Self::next_out) has nothing to do.
    #[must_use]
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.active == 0 && self.beside.is_empty()
    }

    /// The next packet that has passed all elements at `now`.
    #[inline]
    pub fn next_out(&mut self, now: Instant, around: &mut impl Environment<P>) -> Option<P> {
        let mut out = None;
        self.put_out(now, &mut out, around);
        out
    }

    /// The same, put where it is looked at, for packets are large to move.
    #[inline(always)]
    pub fn put_out(&mut self, now: Instant, out: &mut Option<P>, around: &mut impl Environment<P>) {
        *out = None;
        while out.is_none() {
            if unlikely(!self.beside.is_empty()) {
                *out = self.take_beside(now, around);
                continue;
            }
            // Most calls find nothing.
            if self.active == 0 {
                break;
            }
            // The last one first: what stands before it waits until that is done.
            let place = self.active.ilog2() as usize;
            if place + 1 == self.elements.len() {
                self.take(place, now, out, around);
            } else {
                *out = self.take_on(place, now, around);
            }
        }
    }

    /// The next part or copy of a packet, if it passes all before it.
    #[cold]
    fn take_beside(&mut self, now: Instant, around: &mut impl Environment<P>) -> Option<P> {
        let (place, packet) = self.beside.pop_front()?;
        self.pass(place, now, packet, around)
    }

    /// The next packet of the element at `place`, if it passes all behind it as well: out of the way of what most paths do.
    #[inline(never)]
    fn take_on(
        &mut self,
        place: usize,
        now: Instant,
        around: &mut impl Environment<P>,
    ) -> Option<P> {
        let mut packet = None;
        self.take(place, now, &mut packet, around);
        self.pass(place + 1, now, packet?, around)
    }

    /// The next packet of the element at `place` goes to `out`.
    #[inline(always)]
    fn take(
        &mut self,
        place: usize,
        now: Instant,
        out: &mut Option<P>,
        around: &mut impl Environment<P>,
    ) {
        let rest = !(1 << place);
        match &mut self.elements[place] {
            Element::Queue(queue) => {
                if let Some(again) = queue.dequeue(now, out, around) {
                    self.set_due(place, again.as_nanos());
                    self.active &= rest;
                }
            }
            Element::Delay(delay) => {
                let due_ns = delay.pop(out);
                self.set_due(place, due_ns);
                self.active &= rest;
            }
            _ => *out = self.take_seldom(place, now, around),
        }
    }

    /// The same, of what most paths do not have.
    #[cold]
    fn take_seldom(
        &mut self,
        place: usize,
        now: Instant,
        around: &mut impl Environment<P>,
    ) -> Option<P> {
        let (packet, due_ns) = match &mut self.elements[place] {
            Element::Jitter(jitter) => (jitter.pop(), jitter.next_ns()),
            Element::Slots(slots) => (slots.pop(now, || around.random()), slots.next_ns()),
            _ => (None, u64::MAX),
        };
        self.set_due(place, due_ns);
        self.active &= !(1 << place);
        packet
    }

    /// Takes a packet through the elements from `place` on, until one of them holds it or loses it, or all are passed.
    #[inline(never)]
    fn pass(
        &mut self,
        place: usize,
        now: Instant,
        mut packet: P,
        around: &mut impl Environment<P>,
    ) -> Option<P> {
        let mut place = place;
        while let Some(element) = self.elements.get_mut(place) {
            match element {
                Element::Queue(queue) => {
                    if queue.enqueue(now, packet, around) {
                        self.has_queued(place);
                    }
                    return None;
                }
                Element::Delay(delay) if delay.passes(&packet) => {}
                Element::Delay(delay) => {
                    if delay.push(now, packet) {
                        let due_ns = delay.next_ns();
                        self.set_due(place, due_ns);
                    }
                    return None;
                }
                Element::Jitter(jitter) => {
                    jitter.push(now, packet, around.random());
                    let due_ns = jitter.next_ns();
                    self.set_due(place, due_ns);
                    return None;
                }
                Element::Slots(slots) => {
                    slots.push(now, packet, || around.random());
                    let due_ns = slots.next_ns();
                    self.set_due(place, due_ns);
                    return None;
                }
                Element::Loss(chance) => {
                    if chance.strikes(around.random()) {
                        around.lost(packet, Lost::Random);
                        return None;
                    }
                }
                Element::Duplicate(chance) => {
                    if chance.strikes(around.random()) {
                        let copy = around.copy(&packet);
                        self.beside.push_back((place + 1, copy));
                    }
                }
                Element::Bleach => packet.clear_ecn(),
                Element::Mtu(mtu) if packet.ip_bytes() <= mtu.mtu => {}
                Element::Mtu(_) | Element::Police(_) if packet.is_gso() => {
                    packet.split(&mut |part| self.beside.push_back((place, part)));
                    return None;
                }
                Element::Mtu(mtu) => {
                    around.lost(packet, Lost::TooLong { mtu: mtu.mtu, told: mtu.icmp, place });
                    return None;
                }
                Element::Police(police) => {
                    if !police.conforms(now, packet.length()) {
                        around.lost(packet, Lost::Policed);
                        return None;
                    }
                }
            }
            place += 1;
        }
        Some(packet)
    }

    /// A packet that will probably leave the queue at `place` soon.
    #[must_use]
    #[inline]
    pub fn upcoming_of_queue(&self, place: usize) -> Option<&P> {
        self.queue(place)?.upcoming()
    }

    /// A packet that will probably come out soon: so many after the next one. For a path that ends with a [`Delay`](crate::Delay).
    #[must_use]
    #[inline]
    pub fn upcoming(&self, later: usize) -> Option<&P> {
        match self.elements.last()? {
            Element::Delay(delay) => delay.upcoming(later),
            _ => None,
        }
    }
}
