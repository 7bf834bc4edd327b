//! What there is to say of `dualpi2`.

use crate::about::{About, Parameter};

pub(super) const PACKETS: &str = "give a number of packets, such as 1000";
pub(super) const BYTES: &str = "give a number of bytes without a unit, such as 20000000";
pub(super) const TIME: &str = "give a time in s, ms or us, such as 15ms";
pub(super) const TIME_OR_PACKETS: &str = "give a time such as 1ms, or packets such as 5p";
pub(super) const FACTOR: &str = "give a whole number from 1 to 255";
pub(super) const GAIN: &str = "give a gain from 0.00390625 to 8388607.99609375 Hz, such as 0.16";
pub(super) const PERCENT: &str = "give a percentage from 0% to 100%, such as 10%";

pub(super) const ABOUT: About = About {
    title: "DualPI2, the DualQ Coupled AQM",
    what: "Two queues for one link. Packets that are ECT(1) or CE wait in the L queue, about a millisecond at most; all \
        others in the C queue, which PI2 keeps near its target. One probability serves both: its square drops or marks \
        in the C queue, and k times it marks in the L queue, so that flows of both kinds get about the same rate.",
    acts_on: "Delay: the C queue's, every tupdate, and each packet's own in the L queue. ECT(1) and CE (with any_ect ECT(0) \
        too) are marked in the L queue; in the C queue ECT(0) is marked and Not-ECT dropped. In overload it drops \
        whatever the codepoint.",
    source: "RFC 9332; tc-dualpi2(8); Linux 6.17 and later, net/sched/sch_dualpi2.c",
    not_for: "Not where the queue is elsewhere: below a provider's shaper it does nothing unless you shape to less yourself \
        (htb rate … leaf dualpi2). Not to keep flows apart: it has no queue for each. Not for several flows of BBR, \
        which answer neither marks nor moderate loss.",
    parameters: &[
        Parameter::new(&["limit"], PACKETS, "packets that both queues hold together"),
        Parameter::new(&["memlimit"], BYTES, "memory that waiting packets may take, in bytes")
            .unset("what limit frames take"),
        Parameter::new(
            &["coupling_factor"],
            FACTOR,
            "k: how much more the L queue marks than the root of what the C queue drops",
        ),
        Parameter::new(
            &["step_thresh"],
            TIME_OR_PACKETS,
            "in the L queue, who waited longer is marked; as packets, who leaves more behind",
        ),
        Parameter::new(
            &["min_qlen_step"],
            PACKETS,
            "the step marks only while the L queue holds more packets than this",
        ),
        Parameter::new(
            &["drop_on_overload", "overflow"],
            "",
            "in overload drop in both queues, or only mark and let the limit drop",
        ),
        Parameter::new(
            &["drop_enqueue", "drop_dequeue"],
            "",
            "whether the C queue drops packets as they arrive or as they leave",
        ),
        Parameter::new(
            &["l4s_ect", "any_ect"],
            "",
            "which codepoints go to the L queue: ECT(1) and CE, or ECT(0) as well",
        ),
        Parameter::new(
            &["classic_protection"],
            PERCENT,
            "the share of the link that the C queue gets at least",
        ),
        Parameter::new(
            &["max_rtt"],
            TIME,
            "the longest round trip: sets target, tupdate, alpha and beta, whatever they are",
        )
        .unset("none"),
        Parameter::new(&["typical_rtt"], TIME, "the usual round trip: the same").unset("none"),
        Parameter::new(&["target"], TIME, "the delay that the C queue is kept near"),
        Parameter::new(&["tupdate"], TIME, "how often the probability is updated"),
        Parameter::new(&["alpha"], GAIN, "how strongly the distance from the target counts, in Hz"),
        Parameter::new(&["beta"], GAIN, "how strongly the trend of the delay counts, in Hz"),
        Parameter::new(
            &["split_gso", "no_split_gso"],
            "",
            "whether aggregates are split into packets first",
        ),
    ],
};
