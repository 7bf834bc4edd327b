//! FreeBSD.

use super::{Known, harm};

const TCP: &str = "FreeBSD tcp(4)";
const DCTCP: &str = "FreeBSD cc_dctcp(4)";
const TUNING: &str = "FreeBSD tuning(7)";

/// What recipes for FreeBSD's network set.
pub(crate) static SYSCTLS: [Known; 35] = [
    Known::new(
        "net.inet.tcp.cc.algorithm",
        "chooses the congestion control of new connections",
        "FreeBSD mod_cc(4)",
    )
    .words()
    .latency(),
    Known::new(
        "net.inet.tcp.cc.abe",
        "backs off less after an ECN mark than after a loss",
        "FreeBSD mod_cc(4), RFC 8511",
    )
    .latency()
    .since(12, 0)
    .defaults(&[((12, 0), "0")]),
    Known::new(
        "net.inet.tcp.cc.dctcp.alpha",
        "is DCTCP's first estimate of how much is marked, in 1024ths",
        DCTCP,
    ),
    Known::new("net.inet.tcp.cc.dctcp.shift_g", "says how slowly DCTCP's estimate moves", DCTCP)
        .defaults(&[((0, 0), "4")]),
    Known::new(
        "net.inet.tcp.cc.dctcp.slowstart",
        "says whether the first mark halves the window",
        DCTCP,
    )
    .defaults(&[((0, 0), "0")]),
    Known::new(
        "net.inet.tcp.ecn.enable",
        "lets TCP negotiate ECN, so that a queue can mark instead of drop",
        "FreeBSD tcp(4), RFC 3168",
    )
    .latency()
    .defaults(&[((0, 0), "0"), ((11, 0), "2")]),
    Known::new(
        "net.inet.tcp.sack.enable",
        "tells senders which packets arrived",
        "FreeBSD tcp(4), RFC 2018",
    )
    .latency()
    .defaults(&[((0, 0), "1")])
    .bands(&[harm(0, 0, "each loss then costs round trips or a timeout")]),
    Known::new(
        "net.inet.tcp.rfc1323",
        "allows windows above 64 kB and measures the round trip with each packet",
        "FreeBSD tcp(4), RFC 7323",
    )
    .latency()
    .defaults(&[((0, 0), "1")])
    .bands(&[harm(0, 0, "no connection can then have more than 64 kB in flight")]),
    Known::new(
        "net.inet.tcp.functions_default",
        "chooses the TCP stack of new connections: freebsd, rack or bbr",
        TCP,
    )
    .words()
    .latency()
    .since(12, 0)
    .defaults(&[((12, 0), "freebsd")]),
    Known::new("net.inet.tcp.delayed_ack", "acknowledges every second packet", TCP)
        .defaults(&[((0, 0), "1")]),
    Known::new(
        "net.inet.tcp.initcwnd_segments",
        "is the first window, in packets",
        "FreeBSD tcp(4), RFC 6928",
    )
    .defaults(&[((0, 0), "10")]),
    Known::new(
        "net.inet.tcp.abc_l_var",
        "limits how fast slow start grows",
        "FreeBSD tcp(4), RFC 3465",
    )
    .defaults(&[((0, 0), "2")]),
    Known::new("net.inet.tcp.mssdflt", "is the packet size where the other side says none", TCP),
    Known::new("net.inet.tcp.minmss", "is the smallest packet size that is accepted", TCP),
    Known::new(
        "net.inet.tcp.pmtud_blackhole_detection",
        "tries smaller packets where large ones vanish",
        TCP,
    ),
    Known::new("net.inet.tcp.sendspace", "is the first send buffer", TCP)
        .defaults(&[((0, 0), "32768")]),
    Known::new("net.inet.tcp.recvspace", "is the first receive buffer", TCP)
        .defaults(&[((0, 0), "65536")]),
    Known::new("net.inet.tcp.sendbuf_auto", "lets the send buffer grow", TCP)
        .defaults(&[((0, 0), "1")])
        .bands(&[harm(0, 0, "uploads over long paths are then limited by the first buffer")]),
    Known::new("net.inet.tcp.recvbuf_auto", "lets the receive buffer grow", TCP)
        .defaults(&[((0, 0), "1")])
        .bands(&[harm(0, 0, "downloads over long paths are then limited by the first buffer")]),
    Known::new("net.inet.tcp.sendbuf_max", "limits the send buffer", TCP)
        .defaults(&[((0, 0), "2097152")]),
    Known::new("net.inet.tcp.recvbuf_max", "limits the receive buffer", TCP)
        .defaults(&[((0, 0), "2097152")]),
    Known::new("net.inet.tcp.sendbuf_inc", "says in what steps the send buffer grows", TCP),
    Known::new("net.inet.tcp.recvbuf_inc", "said in what steps the receive buffer grew", TCP).gone(
        13,
        0,
        "the buffer grows by what is needed",
    ),
    Known::new("net.inet.tcp.tso", "lets the network card cut packets", TCP)
        .defaults(&[((0, 0), "1")]),
    Known::new(
        "net.inet.tcp.syncookies",
        "answers floods of SYN without memory",
        "FreeBSD syncookies(4)",
    )
    .defaults(&[((0, 0), "1")]),
    Known::new(
        "net.inet.tcp.msl",
        "is half the time that a connection stays in TIME-WAIT, in ms",
        TCP,
    )
    .defaults(&[((0, 0), "30000")]),
    Known::new("net.inet.tcp.fast_finwait2_recycle", "ends closed connections sooner", TCP)
        .defaults(&[((0, 0), "0")]),
    Known::new(
        "net.inet.tcp.fastopen.server_enable",
        "accepts data with the SYN",
        "FreeBSD tcp(4), RFC 7413",
    )
    .since(12, 0)
    .defaults(&[((12, 0), "0")]),
    Known::new(
        "net.inet.tcp.fastopen.client_enable",
        "sends data with the SYN where a program asks for it",
        "FreeBSD tcp(4), RFC 7413",
    )
    .since(12, 0),
    Known::new("net.inet.tcp.soreceive_stream", "reads from sockets with less work", TCP),
    Known::new("net.inet.ip.forwarding", "makes the host a router", "FreeBSD inet(4)")
        .defaults(&[((0, 0), "0")]),
    Known::new("kern.ipc.maxsockbuf", "limits a socket's buffers", TUNING)
        .defaults(&[((0, 0), "2097152")]),
    Known::new(
        "kern.ipc.soacceptqueue",
        "limits connections that wait for a program to accept them",
        "FreeBSD listen(2)",
    )
    .defaults(&[((0, 0), "128")]),
    Known::new(
        "kern.ipc.somaxconn",
        "is the old name of kern.ipc.soacceptqueue",
        "FreeBSD listen(2)",
    )
    .defaults(&[((0, 0), "128")]),
    Known::new("kern.ipc.nmbclusters", "limits memory for packets", TUNING),
];
