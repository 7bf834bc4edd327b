//! What there is to say of `cake`.

use crate::about::{About, Parameter};

pub(super) const RATE: &str = "give a rate, such as 48mbit";
pub(super) const RTT: &str = "give a time above 0, such as 50ms";
pub(super) const OVERHEAD: &str = "give a number of bytes from -64 to 256";
pub(super) const MPU: &str = "give a number of bytes from 0 to 256";
pub(super) const MEMORY: &str = "give a size, such as 4mb";
pub(super) const MARK: &str = "give a number, such as 0xff";

pub(super) const ABOUT: About = About {
    title: "CAKE, common applications kept enhanced",
    what: "A shaper that knows what the link below adds to packets, tins by DSCP, hosts and within them flows that take \
        turns, and each queue under COBALT, which is CoDel with BLUE.",
    acts_on: "Delay: each packet's own, as it leaves. Not-ECT is dropped; ECT(0) and ECT(1) alike are marked. BLUE drops \
        where marks do not help, and over the memory limit the longest queue loses packets, whatever the codepoint.",
    source: "Høiland-Jørgensen, Täht, Morton, Piece of CAKE, LANMAN 2018 (arXiv 1804.07617); tc-cake(8); Linux \
        net/sched/sch_cake.c",
    not_for: "Not above some Gbit/s on small CPUs. Not for scalable senders (ECT(1)): marks are CoDel's, so they wait 5 ms \
        and more. Not without bandwidth where the queue is in a modem.",
    parameters: &[
        Parameter::new(
            &["bandwidth", "unlimited"],
            RATE,
            "the rate that it shapes to: somewhat less than the bottleneck",
        ),
        Parameter::new(&["autorate-ingress"], "", "the rate follows what arrives").unset("off"),
        Parameter::new(
            &["rtt"],
            RTT,
            "the round trip that it is tuned for: COBALT's interval, a twentieth of it is its target; datacentre, lan, metro, regional, internet, oceanic, satellite and interplanetary are names for some",
        ),
        Parameter::new(
            &["diffserv3", "diffserv4", "diffserv8", "besteffort", "precedence"],
            "",
            "tins, and which DSCPs go to which",
        ),
        Parameter::new(
            &[
                "triple-isolate",
                "flowblind",
                "srchost",
                "dsthost",
                "hosts",
                "flows",
                "dual-srchost",
                "dual-dsthost",
            ],
            "",
            "among whom the link is shared",
        ),
        Parameter::new(
            &["nat", "nonat"],
            "",
            "tell hosts apart behind address translation; dualq's packets have none",
        ),
        Parameter::new(&["wash", "nowash"], "", "clear the DSCP"),
        Parameter::new(
            &["ingress", "egress"],
            "",
            "packets that are dropped have used the link already",
        )
        .unset("egress"),
        Parameter::new(
            &["no-ack-filter", "ack-filter", "ack-filter-aggressive"],
            "",
            "drop acknowledgements that a later one makes needless",
        ),
        Parameter::new(&["split-gso", "no-split-gso"], "", "split aggregates into packets first"),
        Parameter::new(&["memlimit"], MEMORY, "memory that waiting packets may take")
            .unset("by rate and rtt"),
        Parameter::new(&["fwmark"], MARK, "bits of the firewall's mark that choose the tin")
            .unset("0"),
        Parameter::new(
            &["overhead"],
            OVERHEAD,
            "bytes that the link below adds to each packet; ethernet, docsis, pppoe-ptm, bridged-ptm, pppoa-vcmux and others are names for some",
        ),
        Parameter::new(&["mpu"], MPU, "the fewest bytes that a packet takes on the link")
            .unset("0"),
        Parameter::new(
            &[
                "raw",
                "conservative",
                "ethernet",
                "ether-vlan",
                "docsis",
                "pppoe-ptm",
                "bridged-ptm",
                "pppoa-vcmux",
                "pppoa-llc",
                "pppoe-vcmux",
                "pppoe-llcsnap",
                "bridged-vcmux",
                "bridged-llcsnap",
                "ipoa-vcmux",
                "ipoa-llcsnap",
                "via-ethernet",
            ],
            "",
            "the link below by its name: sets overhead, mpu and framing",
        ),
        Parameter::new(
            &["noatm", "atm", "ptm"],
            "",
            "the cells that the link below cuts packets into",
        )
        .unset("noatm"),
    ],
};
