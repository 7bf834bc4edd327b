//! What there is to say of `htb`.

use crate::about::{About, Parameter};
use crate::kinds::tbf::about::{BURST, RATE};

pub(super) const ABOUT: About = About {
    title: "HTB, hierarchy token bucket, with one class",
    what: "A shaper: a leaf discipline sends no faster than a rate. With one class alone nothing is lent or borrowed. A \
        packet may leave the bucket in debt, so that none is too long.",
    acts_on: "Its buckets only: it holds packets back and drops none. What is dropped or marked, the leaf does.",
    source: "tc-htb(8); Linux net/sched/sch_htb.c",
    not_for: "Not above the rate of the real bottleneck: the queue then is there. More than one class is not here.",
    parameters: &[
        Parameter::new(&["rate"], RATE, "the rate").unset("must be given"),
        Parameter::new(
            &["ceil"],
            RATE,
            "the most that it sends; one class alone never gets above the smaller of both",
        )
        .unset("rate"),
        Parameter::new(&["burst", "buffer", "maxburst"], BURST, "bytes that it sends at once")
            .unset("1600b, and what the rate sends in 1 ns"),
        Parameter::new(
            &["cburst", "cbuffer"],
            BURST,
            "bytes that it sends at once above its ceiling",
        )
        .unset("as burst, by ceil"),
        Parameter::new(&["linklayer"], "give ethernet, the only link layer here", "the link layer")
            .unset("ethernet"),
        Parameter::new(
            &["leaf"],
            "give a queue discipline with its options, which ends the line",
            "what is shaped, tc's second command",
        )
        .unset("pfifo"),
    ],
};
