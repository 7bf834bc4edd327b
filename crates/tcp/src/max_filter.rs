//! The largest value of a sliding window of time, from three samples: Kathleen Nichols' windowed filter, as in
//! Linux's `win_minmax.c`.

#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    time: u32,
    value: u32,
}

/// Keeps the best, second and third best of successively later parts of the window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MaxFilter {
    samples: [Sample; 3],
    /// Until the best is older than that, none leaves its place for its age.
    calm: u32,
}

impl MaxFilter {
    /// The largest value in the window.
    #[inline]
    pub(crate) const fn get(&self) -> u32 {
        self.samples[0].value
    }

    /// Forgets everything but one value.
    pub(crate) fn reset(&mut self, time: u32, value: u32) {
        *self = Self { samples: [Sample { time, value }; 3], calm: 0 };
    }

    /// Takes a value at `time` into a window that reaches back `length`, which is always the same.
    #[inline]
    pub(crate) fn update(&mut self, length: u32, time: u32, value: u32) {
        let [first, _, third] = &self.samples;
        if value < third.value && time.wrapping_sub(first.time) <= self.calm {
            return;
        }
        self.take(length, time, value);
    }

    #[inline(never)]
    fn take(&mut self, length: u32, time: u32, value: u32) {
        self.replace(length, time, value);
        let [first, second, third] = &self.samples;
        self.calm = if second.time == first.time {
            length / 4
        } else if third.time == second.time {
            length / 2
        } else {
            length
        };
    }

    fn replace(&mut self, length: u32, time: u32, value: u32) {
        let sample = Sample { time, value };
        let [first, second, third] = &mut self.samples;
        if value >= first.value || time.wrapping_sub(third.time) > length {
            return self.reset(time, value);
        }
        if value >= second.value {
            (*second, *third) = (sample, sample);
        } else if value >= third.value {
            *third = sample;
        }
        let age = time.wrapping_sub(first.time);
        if age > length {
            // The best has left the window: the others move up, and again if the next is too old as well.
            (*first, *second, *third) = (*second, *third, sample);
            if time.wrapping_sub(first.time) > length {
                (*first, *second, *third) = (*second, *third, sample);
            }
        } else if second.time == first.time && age > length / 4 {
            // A quarter of the window without a second best: take one from this part.
            (*second, *third) = (sample, sample);
        } else if third.time == second.time && age > length / 2 {
            *third = sample;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_leaves_with_its_window() {
        let mut filter = MaxFilter::default();
        filter.reset(0, 0);
        filter.update(10, 1, 100);
        for time in 2..=11 {
            filter.update(10, time, 50);
            assert_eq!(filter.get(), 100);
        }
        filter.update(10, 12, 50);
        assert_eq!(filter.get(), 50);
        filter.update(10, 13, 70);
        assert_eq!(filter.get(), 70);
    }
}
