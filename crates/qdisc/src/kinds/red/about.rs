//! What there is to say of `red`.

use crate::about::{About, Parameter};

pub(super) const SIZE: &str = "give a size, such as 100kb";
pub(super) const PACKETS: &str = "give a number of packets, such as 30";
pub(super) const RATE: &str = "give the link's rate up to 34gbit, such as 50mbit";
pub(super) const PROBABILITY: &str = "give a number from 0 to 1, such as 0.02";

pub(super) const ABOUT: About = About {
    title: "RED, random early detection",
    what: "One FIFO. What arrives is dropped at random by the queue's average length: nothing below min, up to the \
        probability at max, everything above it.",
    acts_on: "Length: the average in bytes, which follows slowly. Not-ECT is dropped; ECT(0) and ECT(1) alike too, or marked \
        with ecn; above max and over the limit all are dropped, or with ecn marked above max but for harddrop.",
    source: "Floyd and Jacobson, Random Early Detection gateways for congestion avoidance, 1993; Floyd, Gummadi, Shenker, \
        Adaptive RED, 2001; tc-red(8); Linux net/sched/sch_red.c",
    not_for: "Not where the rate varies or is unknown: min and max are bytes, which are another delay at each rate. What it \
        is told of bandwidth and burst must be right. Behind a shaper its average does not fall in idle time.",
    parameters: &[
Parameter::new(&["limit"], SIZE, "bytes that it holds").unset("must be given"),
        Parameter::new(&["min"], SIZE, "the average length in bytes above which it drops at random").unset("max/3"),
        Parameter::new(&["max"], SIZE, "the average length in bytes above which it drops or marks everything").unset("3 min, or limit/4"),
        Parameter::new(&["avpkt"], SIZE, "the average length of packets, in bytes").unset("must be given"),
        Parameter::new(&["burst"], PACKETS, "packets that may come at once: how slowly the average follows").unset("(2 min + max)/(3 avpkt)"),
        Parameter::new(&["bandwidth"], RATE, "the link's rate, by which the average falls in idle time").unset("10Mbit"),
        Parameter::new(&["probability"], PROBABILITY, "with which it drops where the average is about to reach max").unset("0.02"),
        Parameter::new(&["ecn"], "", "ECN-capable packets are marked instead of dropped").unset("off"),
        Parameter::new(&["harddrop"], "", "but not above max").unset("off"),
        Parameter::new(&["nodrop"], "", "what is not ECN-capable is not dropped early; needs ecn").unset("off"),
        Parameter::new(&["adaptive", "adaptative"], "", "the probability is moved every half second, so that the average stays amid min and max").unset("off"),
    ],
};
