//! What there is to say of `sfq`.

use crate::about::{About, Parameter};

pub(super) const PACKETS: &str = "give a number of packets from 2 on, such as 127";
pub(super) const NUMBER: &str = "give a number, such as 127";
pub(super) const SECONDS: &str = "give whole seconds up to 21474836, such as 10";
pub(super) const QUANTUM: &str = "give a size up to 1mb, such as 1514";
pub(super) const DIVISOR: &str = "give a power of two up to 65536, such as 1024";

pub(super) const ABOUT: About = About {
    title: "SFQ, stochastic fairness queueing",
    what: "Flows are hashed into queues that take turns. A full one takes a packet from whoever has most. It knows no \
        delay: a flow may have depth packets waiting.",
    acts_on: "Lengths of queues only. It drops whatever the codepoint, and never marks.",
    source: "McKenney, Stochastic Fairness Queueing, 1990; tc-sfq(8); Linux net/sched/sch_sfq.c",
    not_for: "Not for low delay: one flow waits behind its own 127 packets. It is fq_codel's ancestor and is there to \
        compare. The RED inside it (redflowlimit) is not here.",
    parameters: &[
        Parameter::new(&["limit"], PACKETS, "packets that it holds"),
        Parameter::new(
            &["perturb"],
            SECONDS,
            "seconds after which the hash changes, which reorders packets; 0 for never",
        )
        .unset("0"),
        Parameter::new(&["quantum"], QUANTUM, "bytes that a flow sends in its turn"),
        Parameter::new(&["divisor"], DIVISOR, "values of the hash"),
        Parameter::new(&["flows"], NUMBER, "flows that may have packets at once").unset("128"),
        Parameter::new(&["depth"], NUMBER, "packets that a flow may have"),
        Parameter::new(&["headdrop"], "", "make room by a flow's first packet, not its last")
            .unset("off"),
    ],
};
