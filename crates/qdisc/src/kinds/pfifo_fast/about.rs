//! What there is to say of `pfifo_fast`.

use crate::about::About;

pub(super) const ABOUT: About = About {
    title: "three FIFOs by priority",
    what: "Three FIFOs, each served only when those before it are empty. The priority of a packet, which a socket sets by its TOS, \
        says which. Each holds the device's txqueuelen of packets, less up to 15 that have left: their places are cleared sixteen at a time.",
    acts_on: "Length in packets only. It drops whatever the codepoint, and never marks.",
    source: "tc-pfifo_fast(8); Linux net/sched/sch_generic.c",
    not_for: "Not for low delay under load. It is what Linux has where net.core.default_qdisc says nothing else.",
    parameters: &[],
};
