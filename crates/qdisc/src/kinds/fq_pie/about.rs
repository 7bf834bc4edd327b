//! What there is to say of `fq_pie`.

use crate::about::{About, Parameter};

pub(super) const PACKETS: &str = "give a number of packets, such as 10240";
pub(super) const FLOWS: &str = "give a number from 1 to 65536, such as 1024";
pub(super) const TIME: &str = "give a time in s, ms or us, such as 15ms";
pub(super) const GAIN: &str = "give a whole number from 1 to 32, in units of 1/16 Hz, such as 2";
pub(super) const QUANTUM: &str = "give a size up to 1mb, such as 1514";
pub(super) const MEMORY: &str = "give a size, such as 32mb";
pub(super) const PERCENT: &str = "give whole percents from 1 to 99 without a sign, such as 10";

pub(super) const ABOUT: About = About {
    title: "flow queueing with PIE",
    what: "Flows are hashed into queues that take turns as with fq_codel, and each queue has a probability as pie has.",
    acts_on: "Delay: of each queue, every tupdate. Not-ECT is dropped as it arrives; ECT(0) and ECT(1) alike too, or marked \
        with ecn while the probability is at most ecn_prob.",
    source: "draft-ietf-tsvwg-fq-pie; RFC 8033; tc-fq_pie(8); Linux 5.6 and later, net/sched/sch_fq_pie.c",
    not_for: "Not where a tunnel makes all flows one. Not for scalable senders (ECT(1)): it has no threshold for them. Its \
        memory limit keeps nothing out, the limit in packets does.",
    parameters: &[
        Parameter::new(&["limit"], PACKETS, "packets that it holds"),
        Parameter::new(&["flows"], FLOWS, "queues that flows are hashed into"),
        Parameter::new(&["target"], TIME, "the delay that is aimed for"),
        Parameter::new(
            &["tupdate"],
            TIME,
            "how often the probabilities are updated, in whole ticks of the kernel",
        ),
        Parameter::new(
            &["alpha"],
            GAIN,
            "how strongly the distance from the target counts, in 1/16 Hz",
        ),
        Parameter::new(&["beta"], GAIN, "how strongly the trend of the delay counts, in 1/16 Hz"),
        Parameter::new(&["quantum"], QUANTUM, "bytes that a queue sends in its turn, at least 256"),
        Parameter::new(
            &["memory_limit"],
            MEMORY,
            "memory above which packets that arrive are counted",
        ),
        Parameter::new(
            &["ecn_prob"],
            PERCENT,
            "up to this probability, in percent, ECN-capable packets are marked",
        ),
        Parameter::new(
            &["ecn", "noecn"],
            "",
            "whether ECN-capable packets are marked instead of dropped",
        )
        .unset("noecn"),
        Parameter::new(
            &["bytemode", "nobytemode"],
            "",
            "whether short packets are dropped less often",
        )
        .unset("nobytemode"),
        Parameter::new(
            &["no_dq_rate_estimator"],
            "",
            "take each packet's time of arrival for the delay; dualq has no estimator of rates",
        )
        .unset("no_dq_rate_estimator"),
    ],
};
