//! What there is to say of `fq_codel`.

use crate::about::{About, Parameter};

pub(super) const PACKETS: &str = "give a number of packets, such as 10240";
pub(super) const FLOWS: &str = "give a number from 1 to 65536, such as 1024";
pub(super) const QUANTUM: &str =
    "give a number of bytes up to 1048576 without a unit, such as 1514";
pub(super) const MEMORY: &str = "give a size such as 32mb";
pub(super) const SELECTOR: &str =
    "give a value and a mask of the DSCP and the ECN field, such as 0x01/0x03 for ECT(1)";
pub(super) const TIME: &str = "give a time in s, ms or us, such as 5ms";

pub(super) const ABOUT: About = About {
    title: "flow queueing with CoDel",
    what: "Flows are hashed into queues that take turns, those with little to send first, and CoDel keeps the queue of \
        each short. What a flow does costs nobody else.",
    acts_on: "Delay: each packet's own, as it leaves. Not-ECT is dropped; ECT(0) and ECT(1) alike are marked with ecn. With \
        ce_threshold who waited longer is marked at once, ce_threshold_selector says of which codepoints. Over a limit \
        the longest queue loses packets from its head.",
    source: "RFC 8290; tc-fq_codel(8); Linux net/sched/sch_fq_codel.c",
    not_for: "Not where a tunnel makes all flows one: they share one queue. Without ce_threshold not for scalable senders \
        (ECT(1)), whose packets wait CoDel's 5 ms. Not a shaper: where the bottleneck is elsewhere, put it below htb, \
        or take cake.",
    parameters: &[
        Parameter::new(&["limit"], PACKETS, "packets that it holds"),
        Parameter::new(&["flows"], FLOWS, "queues that flows are hashed into"),
        Parameter::new(&["quantum"], QUANTUM, "bytes that a queue sends in its turn, at least 256"),
        Parameter::new(&["target"], TIME, "the delay that may last"),
        Parameter::new(
            &["interval"],
            TIME,
            "for how long the delay may be above the target: about the longest usual round trip",
        ),
        Parameter::new(
            &["memory_limit"],
            MEMORY,
            "memory that waiting packets may take, at most 2 GB",
        ),
        Parameter::new(
            &["ecn", "noecn"],
            "",
            "whether ECN-capable packets are marked instead of dropped",
        ),
        Parameter::new(
            &["ce_threshold"],
            TIME,
            "ECN-capable packets that waited longer are marked",
        )
        .unset("none"),
        Parameter::new(
            &["ce_threshold_selector"],
            SELECTOR,
            "of these only those whose DSCP and ECN field, under the mask, have this value",
        )
        .unset("all"),
        Parameter::new(
            &["drop_batch"],
            PACKETS,
            "packets that go at once when a limit is exceeded",
        ),
    ],
};
