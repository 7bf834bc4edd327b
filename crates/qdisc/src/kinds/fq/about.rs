//! What there is to say of `fq`.

use crate::about::{About, Parameter};

pub(super) const PACKETS: &str = "give a number of packets, such as 10000";
pub(super) const BYTES: &str = "give a number of bytes without a unit, such as 3028";
pub(super) const QUANTUM: &str = "give 1 to 1048576 bytes, such as 3028";
pub(super) const RATE: &str = "give a rate of at most 34359738360bit, such as 100mbit";
pub(super) const TIME: &str = "give a time in s, ms or us, such as 40ms";
pub(super) const SLACK: &str = "give a time of at most 4294967295ns, such as 10us";
pub(super) const BUCKETS: &str = "give a number from 2 to 262144, such as 1024";
pub(super) const PRIOMAP: &str =
    "give 16 bands from 0 to 2, such as 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1";
pub(super) const WEIGHTS: &str = "give 3 numbers of bytes from 65536 to 2147483647";

pub(super) const ABOUT: About = About {
    title: "fair queueing with pacing",
    what: "Flows take turns, each with a queue of its own, and a packet leaves no earlier than its departure time or its \
        flow's rate allows: what a sender paces, fq sends so. Where little waits it is a FIFO. Three bands of \
        priorities share the link by weight.",
    acts_on: "Lengths of queues: a flow's or a band's limit drops what arrives. Departure times and rates of sockets hold \
        packets back. With ce_threshold, delay: ECT(0), ECT(1) and CE alike are marked; Not-ECT packets never.",
    source: "tc-fq(8) and tc qdisc add … fq help; Linux net/sched/sch_fq.c",
    not_for: "Not as the bottleneck's queue management: it holds 100 packets of each flow however long they wait. It is for \
        hosts that send, beneath BBR and other paced senders.",
    parameters: &[
        Parameter::new(&["limit"], PACKETS, "packets that each band holds"),
        Parameter::new(&["flow_limit"], PACKETS, "packets that each flow holds"),
        Parameter::new(&["quantum"], QUANTUM, "bytes that a flow sends in its turn"),
        Parameter::new(
            &["initial_quantum"],
            BYTES,
            "bytes that a new flow sends in its first turn",
        ),
        Parameter::new(&["maxrate"], RATE, "the most that any flow sends").unset("none"),
        Parameter::new(
            &["buckets"],
            BUCKETS,
            "the size of Linux's hash table, rounded up to a power of two; flows share none",
        ),
        Parameter::new(
            &["orphan_mask"],
            "give a number",
            "which bits tell apart packets that no local socket sent",
        ),
        Parameter::new(
            &["pacing", "nopacing"],
            "",
            "whether rates of sockets and maxrate count; departure times always do",
        )
        .unset("pacing"),
        Parameter::new(
            &["refill_delay"],
            TIME,
            "a flow that was idle for longer has a new quantum",
        ),
        Parameter::new(
            &["low_rate_threshold"],
            RATE,
            "flows up to this rate are paced packet by packet, faster ones by the quantum",
        ),
        Parameter::new(
            &["ce_threshold"],
            TIME,
            "packets that leave later than they could by more than this are marked",
        )
        .unset("none"),
        Parameter::new(&["timer_slack"], SLACK, "by how much its timer may be late"),
        Parameter::new(&["horizon"], TIME, "how far ahead a departure time may be"),
        Parameter::new(
            &["horizon_drop", "horizon_cap"],
            "",
            "what lies further ahead is dropped, or its time is cut",
        ),
        Parameter::new(&["bands"], PRIOMAP, "the band, 0 to 2, of each of the 16 priorities"),
        Parameter::new(&["weights"], WEIGHTS, "bytes that each band sends in its turn"),
    ],
};
