//! What there is to say of `codel`.

use crate::about::{About, Parameter};

pub(super) const PACKETS: &str = "give a number of packets, such as 1000";
pub(super) const TIME: &str = "give a time in s, ms or us, such as 5ms";

pub(super) const ABOUT: About = About {
    title: "CoDel, controlled delay",
    what: "One queue. While packets have waited longer than the target for a whole interval, it drops at the head, and \
        then ever sooner: the interval over the root of how many were dropped.",
    acts_on: "Delay: each packet's own, as it leaves. Not-ECT is dropped; ECT(0) and ECT(1) alike too, or marked with ecn. \
        With ce_threshold both are marked as soon as they waited longer.",
    source: "RFC 8289; tc-codel(8); Linux net/sched/sch_codel.c, include/net/codel_impl.h",
    not_for: "Not beside flows that do not answer: one of them takes the queue from all others, which fq_codel keeps apart. \
        Not with ecn for scalable senders (ECT(1), DCTCP) beside classic ones, which starve.",
    parameters: &[
        Parameter::new(&["limit"], PACKETS, "packets that it holds"),
        Parameter::new(&["target"], TIME, "the delay that may last"),
        Parameter::new(
            &["interval"],
            TIME,
            "for how long the delay may be above the target: about the longest usual round trip",
        ),
        Parameter::new(
            &["ecn", "noecn"],
            "",
            "whether ECN-capable packets are marked instead of dropped",
        )
        .unset("noecn"),
        Parameter::new(
            &["ce_threshold"],
            TIME,
            "ECN-capable packets that waited longer are marked",
        )
        .unset("none"),
    ],
};
