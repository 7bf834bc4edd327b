//! What became of echo requests: the same books in every world.

use std::time::Duration;

use dualq_units::Instant;

use crate::outcome::ProbeOutcome;

/// Echo requests in the order in which they were sent.
#[derive(Clone, Debug, Default)]
pub struct Echoes {
    requests: Vec<Request>,
    /// One after the newest that was answered.
    reached: usize,
    longest: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    sent: Instant,
    answered: bool,
}

impl Echoes {
    /// One more is sent, whose number from 0 on is returned.
    pub fn send(&mut self, now: Instant) -> usize {
        self.requests.push(Request { sent: now, answered: false });
        self.requests.len() - 1
    }

    /// How many were sent.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether none was sent.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// An answer to a request is there: how long that took; nothing if it was never sent.
    pub fn answer(&mut self, number: usize, now: Instant) -> Option<Duration> {
        let request = self.requests.get_mut(number)?;
        request.answered = true;
        self.reached = self.reached.max(number + 1);
        let took = now - request.sent;
        self.longest = self.longest.max(took);
        Some(took)
    }

    /// The same of an answer that tells when its request was sent.
    pub fn answer_sent_at(&mut self, sent: Instant, now: Instant) -> Option<Duration> {
        let number = self.requests.binary_search_by_key(&sent, |request| request.sent).ok()?;
        self.answer(number, now)
    }

    /// Says what was sent from the warm-up's end to the end, and what was lost of it: all that was not answered, though a later one was, or
    /// though twice the longest round trip has passed since: while a queue grows, each takes longer than all before. The rest may be on its way.
    pub fn tell(&self, warmup: Instant, end: Instant, probe: &mut ProbeOutcome) {
        let until = |at| self.requests.partition_point(|request| request.sent < at);
        // One that is due as all ends may leave or not, by the world.
        let (first, last) = (until(warmup), until(end));
        let measured = self.requests[..last].iter().enumerate().skip(first);
        let lost = measured.filter(|(number, request)| {
            let is_due = *number < self.reached || request.sent + self.longest * 2 < end;
            !request.answered && is_due
        });
        probe.sent = Some((last - first) as u64);
        probe.lost = Some(lost.count() as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn what_is_not_answered_is_lost_unless_it_may_be_on_its_way() {
        let mut echoes = Echoes::default();
        for number in 0..10 {
            assert_eq!(echoes.send(at(number * 10)), number as usize);
        }
        // Number 1 is of the warm-up, 3 is passed by 4; 8 and 9 were sent less than 40 ms before the end.
        for number in [0, 2] {
            let now = at(number * 10 + 20);
            assert_eq!(echoes.answer(number as usize, now), Some(Duration::from_millis(20)));
        }
        assert_eq!(echoes.answer_sent_at(at(40), at(60)), Some(Duration::from_millis(20)));
        assert_eq!(echoes.answer(10, at(200)), None);
        assert_eq!(echoes.answer_sent_at(at(41), at(200)), None);
        let tell = |end| {
            let mut probe = ProbeOutcome::default();
            echoes.tell(at(20), at(end), &mut probe);
            (probe.sent, probe.lost)
        };
        assert_eq!(tell(120), (Some(8), Some(4)), "3, 5, 6 and 7");
        assert_eq!(tell(90), (Some(7), Some(1)), "what leaves as all ends is not sent");
        assert_eq!(tell(1000), (Some(8), Some(6)));
    }
}
