//! The wheel of Linux's coarse timers, which fire late: they are put into buckets, of which those of later times are wider (`calc_wheel_index` in
//! kernel/time/timer.c).

/// The first bucket of a jiffy each reaches so far, and each further level eight times as far (Linux: `LVL_START`, `LVL_CLK_SHIFT`).
const FIRST_LEVEL_JIFFIES: u32 = 63;
const LEVEL_SHIFT: u32 = 3;
const MOST_LEVELS: u32 = 8;
/// The lower half of Linux's jiffies wraps around so many seconds after it starts (`INITIAL_JIFFIES`, include/linux/jiffies.h).
const WRAPS_AFTER_S: u32 = 300;

/// The level that a timer of `jiffies` is put in.
#[must_use]
#[inline]
pub const fn level(jiffies: u32) -> u32 {
    if jiffies < FIRST_LEVEL_JIFFIES { 0 } else { higher_level(jiffies) }
}

/// The same of one that is not put in the first. Few are: out of the way of those.
#[cold]
const fn higher_level(jiffies: u32) -> u32 {
    let level = (jiffies / FIRST_LEVEL_JIFFIES).ilog2() / LEVEL_SHIFT + 1;
    if level < MOST_LEVELS { level } else { MOST_LEVELS }
}

/// What a kernel of so many jiffies a second counts them from.
#[must_use]
pub const fn initial_jiffies(hertz: u32) -> u32 {
    (WRAPS_AFTER_S * hertz).wrapping_neg()
}

/// The jiffy in which a timer of `jiffies` fires that is started in the jiffy `now`, both since the kernel started, which counted them from `initial`. The
/// wheel never fires early: it goes on to the next bucket. Those begin at multiples of their width, by the kernel's own count.
#[must_use]
#[inline(always)]
pub const fn fires(initial: u32, now: u64, jiffies: u32) -> u64 {
    if jiffies < FIRST_LEVEL_JIFFIES {
        // Each jiffy has its bucket.
        now + jiffies as u64 + 1
    } else {
        fires_on_higher_level(initial as u64, now, jiffies)
    }
}

#[cold]
const fn fires_on_higher_level(initial: u64, now: u64, jiffies: u32) -> u64 {
    let shift = LEVEL_SHIFT * higher_level(jiffies);
    let expires = initial + now + jiffies as u64;
    (((expires >> shift) + 1) << shift) - initial
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_reaches_eight_times_as_far_as_the_one_before() {
        for (number, reach) in (0..MOST_LEVELS).zip([63, 504, 4_032, 32_256, 258_048, 2_064_384]) {
            assert_eq!((level(reach - 1), level(reach)), (number, number + 1));
        }
        assert_eq!((level(0), level(132_120_575), level(132_120_576)), (0, 7, 8));
        assert_eq!((level(1_056_964_608), level(u32::MAX)), (8, 8));
    }
}
