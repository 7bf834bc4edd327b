//! What there is to say of `prio`.

use crate::about::{About, Parameter};

pub(super) const BANDS: &str = "give a number from 2 to 16, such as 3";
pub(super) const PRIOMAP: &str =
    "give up to 16 bands below the number of bands, such as 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1";

pub(super) const ABOUT: About = About {
    title: "FIFOs by priority",
    what: "Bands, each served only when those before it are empty. The priority of a packet, which a socket sets by its TOS, says \
        which band it waits in: a pfifo of the device's txqueuelen.",
    acts_on: "Length in packets only. It drops whatever the codepoint, and never marks.",
    source: "tc-prio(8); Linux net/sched/sch_prio.c",
    not_for: "Not where somebody could starve all others by a priority. Not for low delay of what has none. Other disciplines in its \
        bands, and filters, are not here.",
    parameters: &[
        Parameter::new(&["bands"], BANDS, "how many there are"),
        Parameter::new(
            &["priomap"],
            PRIOMAP,
            "the band of each of the 16 priorities; those that are left out keep theirs",
        ),
    ],
};
