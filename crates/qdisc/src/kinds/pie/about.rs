//! What there is to say of `pie`.

use crate::about::{About, Parameter};

pub(super) const PACKETS: &str = "give a number of packets, such as 1000";
pub(super) const TIME: &str = "give a time in s, ms or us, such as 15ms";
pub(super) const GAIN: &str = "give a whole number from 1 to 32, in units of 1/16 Hz, such as 2";

pub(super) const ABOUT: About = About {
    title: "PIE, proportional integral controller enhanced",
    what: "One queue. A probability to drop what arrives follows the queue's delay, its distance from the target and its \
        trend, many times a second.",
    acts_on: "Delay: that of the packet last sent, every tupdate. Not-ECT is dropped; ECT(0) and ECT(1) alike too, or marked \
        with ecn while the probability is at most 10 %.",
    source: "RFC 8033; tc-pie(8); Linux net/sched/sch_pie.c",
    not_for: "Not beside flows that do not answer: fq_pie keeps flows apart. Not for scalable senders (ECT(1), DCTCP) beside \
        classic ones, who would get the same probability: dualpi2 gives them its root.",
    parameters: &[
        Parameter::new(&["limit"], PACKETS, "packets that it holds"),
        Parameter::new(&["target"], TIME, "the delay that is aimed for"),
        Parameter::new(
            &["tupdate"],
            TIME,
            "how often the probability is updated, in whole ticks of the kernel",
        ),
        Parameter::new(
            &["alpha"],
            GAIN,
            "how strongly the distance from the target counts, in 1/16 Hz",
        ),
        Parameter::new(&["beta"], GAIN, "how strongly the trend of the delay counts, in 1/16 Hz"),
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
