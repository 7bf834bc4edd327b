//! What there is to say of `tbf`.

use crate::about::{About, Parameter};

pub(in crate::kinds) const RATE: &str = "give a rate, such as 10mbit";
pub(in crate::kinds) const BURST: &str =
    "give a size that lasts at most 274 s at the rate, such as 10kb";
pub(in crate::kinds) const LIMIT: &str = "give a size, such as 100kb";
pub(in crate::kinds) const LATENCY: &str = "give a time in s, ms or us, such as 50ms";

pub(super) const ABOUT: About = About {
    title: "TBF, token bucket filter",
    what: "A shaper: a leaf discipline sends no faster than a rate, and what the bucket holds at once. A packet waits \
        until the bucket holds enough for it; one longer than the bucket is dropped, an aggregate is split.",
    acts_on: "Its buckets: it holds packets back. Without a leaf, what exceeds the limit is dropped as it arrives, whatever \
        the codepoint; it never marks.",
    source: "tc-tbf(8); Linux net/sched/sch_tbf.c",
    not_for: "Not with its own FIFO for low delay: latency is what a packet then waits at most, and under load does. Not \
        with a burst below a packet of the MTU.",
    parameters: &[
Parameter::new(&["rate"], RATE, "the rate").unset("must be given"),
        Parameter::new(&["burst", "buffer", "maxburst"], BURST, "bytes that it sends at once: at least the longest packet, and what the rate sends in a tick").unset("must be given"),
        Parameter::new(&["limit"], LIMIT, "bytes that may wait, without a leaf").unset("this or latency must be given"),
        Parameter::new(&["latency"], LATENCY, "the same as time that a packet waits").unset("this or limit must be given"),
        Parameter::new(&["peakrate"], RATE, "the rate of a second bucket, which bounds how fast the first is emptied").unset("none"),
        Parameter::new(&["mtu", "minburst"], BURST, "the second bucket, in bytes: at least the longest packet").unset("must be given beside peakrate"),
        Parameter::new(&["linklayer"], "give ethernet, the only link layer here", "the link layer").unset("ethernet"),
        Parameter::new(&["leaf"], "give a queue discipline with its options, which ends the line", "what is shaped, tc's second command").unset("bfifo"),
    ],
};
