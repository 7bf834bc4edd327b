//! What there is to say of `netem`.

use crate::about::{About, Parameter};

pub(super) const PACKETS: &str = "give a number of packets, such as 1000";
pub(super) const TIME: &str = "give a time in s, ms, us or ns, such as 20ms";
pub(super) const PERCENT: &str = "give a percentage from 0% to 100%, such as 1%";
pub(super) const RATE: &str = "give a rate, such as 10mbit";
pub(super) const SEED: &str = "give a whole number of 64 bits";
pub(super) const GAP: &str = "give a number of packets, such as 5";
pub(super) const COUNT: &str = "give a number of packets of at most 2147483647, such as 32";
pub(super) const BYTES: &str = "give a size below 2gb, such as 64kb";
pub(super) const OVERHEAD: &str = "give a number of bytes, such as 20";
pub(super) const CELL: &str = "give a number of bytes, such as 48";
pub(super) const DISTRIBUTION: &str = "give normal, pareto or paretonormal";

pub(super) const ABOUT: About = About {
    title: "the network emulator",
    what: "A path rather than a queue: packets take their delay, are lost, copied or spoiled at random, and follow each other at a \
        rate or in slots. A packet that draws a short delay overtakes others.",
    acts_on: "Nothing: what it loses, it loses at random, whatever the codepoint, but with ecn marks ECT(0) and ECT(1) instead. Over \
        the limit it drops what arrives.",
    source: "tc-netem(8); Linux net/sched/sch_netem.c; its tables of distributions are NIST Net's",
    not_for: "Not as queue management: its limit is of packets under way, and full it is a FIFO. On the host that sends, its delay \
        holds back TCP's small queues: put it on a router, or use a scenario's elements.",
    parameters: &[
        Parameter::new(&["limit"], PACKETS, "packets under way at once"),
        Parameter::new(
            &["delay", "latency"],
            TIME,
            "how long each packet takes; behind it the jitter, up to how much more or less, and a correlation in percent",
        )
        .unset("none"),
        Parameter::new(
            &["distribution"],
            DISTRIBUTION,
            "how the jitter is distributed, of which it then is the deviation",
        )
        .unset("uniform"),
        Parameter::new(
            &["loss", "drop"],
            PERCENT,
            "the share of packets that is lost, and a correlation; or state p13 p31 p32 p23 p14, or gemodel p r 1-h 1-k, for bursts",
        )
        .unset("none"),
        Parameter::new(&["ecn"], "", "ECN-capable packets are marked instead of lost").unset("off"),
        Parameter::new(
            &["duplicate"],
            PERCENT,
            "the share that is sent twice, and a correlation",
        )
        .unset("none"),
        Parameter::new(
            &["corrupt"],
            PERCENT,
            "the share that has a wrong bit, so that receivers drop it, and a correlation",
        )
        .unset("none"),
        Parameter::new(
            &["reorder"],
            PERCENT,
            "the share that passes without any delay, and a correlation",
        )
        .unset("none"),
        Parameter::new(&["gap"], GAP, "of so many packets, one may pass without delay")
            .unset("1, with reorder"),
        Parameter::new(
            &["rate"],
            RATE,
            "packets follow each other at this rate; behind it bytes that each packet has more, a cell's payload, and bytes that each cell has more",
        )
        .unset("none"),
        Parameter::new(
            &["slot"],
            TIME,
            "packets leave in slots, which are between this and a second time apart; or distribution NAME MEAN DEVIATION",
        )
        .unset("none"),
        Parameter::new(&["packets"], COUNT, "behind slot: packets of a slot at most").unset("any number"),
        Parameter::new(&["bytes"], BYTES, "behind slot and packets: after so many bytes it is over")
            .unset("any number"),
        Parameter::new(&["seed"], SEED, "what its dice begin with").unset("random"),
        Parameter::new(
            &["leaf"],
            "give a queue discipline with its options, which ends the line",
            "what packets go through after their delay, tc's second command",
        )
        .unset("none"),
    ],
};
