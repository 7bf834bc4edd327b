//! Linux beside TCP: queues of the host, its memory, forwarding.

use super::{INT_MAX, INT_MIN, Known, Version, harm, told};

const IP_SYSCTL: &str = "Linux Documentation/networking/ip-sysctl.rst";
const NET: &str = "Linux Documentation/admin-guide/sysctl/net.rst";
const MPTCP: &str = "Linux Documentation/networking/mptcp-sysctl.rst";
const CONNTRACK: &str = "Linux Documentation/networking/nf_conntrack-sysctl.rst";
const VM: &str = "Linux Documentation/admin-guide/sysctl/vm.rst";
const FS: &str = "Linux Documentation/admin-guide/sysctl/fs.rst";

/// No less than nothing.
const COUNT: &[(Version, i128, i128)] = &[((0, 0), INT_MIN, INT_MAX), ((5, 0), 0, INT_MAX)];
/// Off and on; before 6.1 any byte.
const SWITCH: &[(Version, i128, i128)] =
    &[((0, 0), INT_MIN, INT_MAX), ((5, 13), 0, 255), ((6, 1), 0, 1)];
/// An `unsigned long`.
const LONG: &[(Version, i128, i128)] = &[((0, 0), 0, u64::MAX as i128)];
/// Room for one packet at least; how much that is depends on the kernel's structures.
const RECEIVE: &[(Version, i128, i128)] =
    &[((0, 0), 1, INT_MAX), ((5, 0), 2048, INT_MAX), ((7, 3), 2304, INT_MAX)];
const SEND: &[(Version, i128, i128)] =
    &[((0, 0), 1, INT_MAX), ((5, 0), 4096, INT_MAX), ((7, 3), 4608, INT_MAX)];

/// `net.core.*`, forwarding, and what recipes for the network set of the rest.
pub(crate) static HOST: [Known; 43] = [
    Known::new(
        "net.core.default_qdisc",
        "chooses the queue discipline of interfaces that come up from then on",
        NET,
    )
    .latency()
    .since(3, 12)
    .words(),
    Known::new(
        "net.core.rmem_max",
        "limits receive buffers that programs set themselves; TCP's own are in tcp_rmem",
        NET,
    )
    .defaults(&[((0, 0), "212992"), ((6, 18), "4194304")])
    .takes(RECEIVE)
    .bands(&[harm(1, 65_535, "what receives UDP, as QUIC does, loses packets in bursts")]),
    Known::new(
        "net.core.wmem_max",
        "limits send buffers that programs set themselves; TCP's own are in tcp_wmem",
        NET,
    )
    .defaults(&[((0, 0), "212992"), ((6, 18), "4194304")])
    .takes(SEND)
    .bands(&[harm(
        1,
        65_535,
        "programs that set their buffers themselves cannot send at speed",
    )]),
    Known::new("net.core.rmem_default", "is the receive buffer of sockets other than TCP's", NET)
        .defaults(&[((0, 0), "212992")])
        .takes(RECEIVE)
        .bands(&[harm(
            1,
            65_535,
            "what receives UDP, as DNS and QUIC do, loses packets in bursts",
        )]),
    Known::new("net.core.wmem_default", "is the send buffer of sockets other than TCP's", NET)
        .defaults(&[((0, 0), "212992")])
        .takes(SEND)
        .bands(&[harm(1, 65_535, "what sends UDP waits between packets")]),
    Known::new("net.core.optmem_max", "limits a socket's memory for options", NET)
        .defaults(&[((0, 0), "20480"), ((6, 8), "131072")])
        .takes(COUNT)
        .bands(&[harm(0, 4095, "programs cannot set the options that they need")]),
    Known::new(
        "net.core.netdev_max_backlog",
        "limits packets that wait for a CPU on their way in",
        NET,
    )
    .defaults(&[((0, 0), "1000")])
    .bands(&[
        harm(INT_MIN, 99, "a burst of packets that come in is dropped before anybody has seen it"),
        told(
            100_001,
            INT_MAX,
            "that is a queue of its own, in which packets may wait long for a slow CPU",
        ),
    ]),
    Known::new(
        "net.core.netdev_budget",
        "limits the packets that one round of receiving takes",
        NET,
    )
    .defaults(&[((0, 0), "300")])
    .bands(&[harm(
        INT_MIN,
        63,
        "a round ends before one driver has had its turn (dev_weight): packets wait for the next",
    )]),
    Known::new(
        "net.core.netdev_budget_usecs",
        "limits the time that one round of receiving takes",
        NET,
    )
    .since(4, 12)
    .takes(&[((0, 0), INT_MIN, INT_MAX), ((7, 3), 2000, INT_MAX)]),
    Known::new("net.core.dev_weight", "limits the packets that a driver takes in one go", NET)
        .defaults(&[((0, 0), "64")])
        .takes(&[((0, 0), INT_MIN, INT_MAX), ((7, 3), 1, INT_MAX)]),
    Known::new(
        "net.core.busy_poll",
        "lets programs that poll wait in the driver, for microseconds at the price of a CPU",
        NET,
    )
    .since(3, 11)
    .defaults(&[((3, 11), "0")])
    .takes(COUNT),
    Known::new(
        "net.core.busy_read",
        "lets programs that read wait in the driver, for microseconds at the price of a CPU",
        NET,
    )
    .since(3, 11)
    .defaults(&[((3, 11), "0")])
    .takes(COUNT),
    Known::new(
        "net.core.somaxconn",
        "limits connections that wait for a program to accept them",
        IP_SYSCTL,
    )
    .defaults(&[((0, 0), "128"), ((5, 4), "4096")])
    .takes(COUNT)
    .bands(&[harm(
        0,
        15,
        "connections are refused or delayed while a program is busy for a moment",
    )]),
    Known::new(
        "net.core.rps_sock_flow_entries",
        "says how many flows are steered to their program's CPU",
        "Linux Documentation/networking/scaling.rst",
    )
    .defaults(&[((0, 0), "0")])
    .takes(COUNT),
    Known::new("net.core.bpf_jit_enable", "compiles BPF programs", NET),
    Known::new("net.mptcp.enabled", "lets programs that ask for it use several paths", MPTCP)
        .since(5, 6)
        .defaults(&[((5, 6), "1")])
        .takes(&[((0, 0), 0, 1)]),
    Known::new("net.ipv4.ip_forward", "makes the host a router", IP_SYSCTL)
        .defaults(&[((0, 0), "0")]),
    Known::new("net.ipv4.conf.*.forwarding", "makes the host a router", IP_SYSCTL),
    Known::new("net.ipv6.conf.*.forwarding", "makes the host a router", IP_SYSCTL)
        .defaults(&[((0, 0), "0")]),
    Known::new(
        "net.ipv6.conf.*.accept_ra",
        "takes addresses and routes that routers announce",
        IP_SYSCTL,
    ),
    Known::new("net.ipv6.conf.*.disable_ipv6", "turns IPv6 off", IP_SYSCTL)
        .defaults(&[((0, 0), "0")])
        .bands(&[harm(
            1,
            INT_MAX,
            "it makes nothing faster, and hosts that only have IPv6 are out of reach",
        )]),
    Known::new(
        "net.ipv4.conf.*.rp_filter",
        "drops packets that came in where their answer would not go out",
        IP_SYSCTL,
    ),
    Known::new(
        "net.ipv4.conf.*.accept_redirects",
        "takes other routes that routers suggest",
        IP_SYSCTL,
    ),
    Known::new(
        "net.ipv6.conf.*.accept_redirects",
        "takes other routes that routers suggest",
        IP_SYSCTL,
    ),
    Known::new("net.ipv4.conf.*.send_redirects", "suggests other routes", IP_SYSCTL),
    Known::new("net.ipv4.conf.*.accept_source_route", "lets senders choose the path", IP_SYSCTL),
    Known::new("net.ipv4.conf.*.route_localnet", "lets 127.0.0.0/8 be routed", IP_SYSCTL),
    Known::new(
        "net.ipv4.ip_local_port_range",
        "is the range of ports of outgoing connections",
        IP_SYSCTL,
    )
    .defaults(&[((0, 0), "32768 60999")])
    .numbers(2)
    .takes(&[((0, 0), 1, 65_535)]),
    Known::new("net.ipv4.ip_no_pmtu_disc", "does without path MTU discovery", IP_SYSCTL)
        .defaults(&[((0, 0), "0")])
        .takes(&[((0, 0), INT_MIN, INT_MAX), ((5, 13), 0, 255)])
        .bands(&[
            harm(1, 2, "packets are then fragmented on their way, and lost where fragments are"),
            told(3, 3, "what routers say is believed for TCP, SCTP and DCCP only"),
        ]),
    Known::new("net.ipv4.route.gc_timeout", "cleaned the cache of routes", IP_SYSCTL)
        .gone(3, 6, "there is no cache of IPv4 routes any more; it can be written and does nothing")
        .takes(&[((0, 0), INT_MIN + 1, INT_MAX / 100)]),
    Known::new("net.ipv4.neigh.default.gc_thresh1", "says how many neighbours are kept", IP_SYSCTL)
        .defaults(&[((0, 0), "128")])
        .takes(COUNT),
    Known::new("net.ipv4.neigh.default.gc_thresh2", "says how many neighbours are kept", IP_SYSCTL)
        .defaults(&[((0, 0), "512")])
        .takes(COUNT),
    Known::new("net.ipv4.neigh.default.gc_thresh3", "says how many neighbours are kept", IP_SYSCTL)
        .defaults(&[((0, 0), "1024")])
        .takes(COUNT)
        .bands(&[harm(0, 15, "neighbours beyond these are not reached at all")]),
    Known::new("net.ipv4.icmp_echo_ignore_all", "leaves pings unanswered", IP_SYSCTL)
        .defaults(&[((0, 0), "0")])
        .takes(SWITCH)
        .bands(&[told(1, 1, "nobody can measure the path to this machine by ping any more")]),
    Known::new("net.ipv4.icmp_echo_ignore_broadcasts", "leaves pings to all unanswered", IP_SYSCTL)
        .defaults(&[((0, 0), "1")])
        .takes(SWITCH)
        .bands(&[told(0, 0, "others can make it answer pings to all, and so flood somebody")]),
    Known::new("net.ipv4.udp_mem", "limits the memory of all UDP sockets, in pages", IP_SYSCTL)
        .numbers(3)
        .takes(LONG),
    Known::new(
        "net.ipv4.udp_rmem_min",
        "is what a UDP socket may receive when memory is short",
        IP_SYSCTL,
    )
    .defaults(&[((0, 0), "4096")])
    .takes(&[((0, 0), 0, INT_MAX), ((5, 0), 1, INT_MAX)]),
    Known::new(
        "net.ipv4.udp_wmem_min",
        "does nothing: UDP does not count what it sends",
        IP_SYSCTL,
    )
    .defaults(&[((0, 0), "4096")])
    .takes(&[((0, 0), 0, INT_MAX), ((5, 0), 1, INT_MAX)]),
    Known::new(
        "net.netfilter.nf_conntrack_max",
        "limits connections that are tracked; beyond it new ones are dropped",
        CONNTRACK,
    )
    .bands(&[harm(
        1,
        1023,
        "a few pages of the web fill the table: packets of new connections are then dropped",
    )]),
    Known::new(
        "net.netfilter.nf_conntrack_tcp_timeout_established",
        "says how long an idle connection is tracked, in seconds",
        CONNTRACK,
    )
    .defaults(&[((0, 0), "432000")])
    .takes(&[((0, 0), INT_MIN, u32::MAX as i128)])
    .bands(&[harm(
        INT_MIN,
        299,
        "connections that are idle for some minutes, such as SSH, break behind NAT",
    )]),
    Known::new("vm.swappiness", "weighs swapping against dropping cached files", VM)
        .defaults(&[((0, 0), "60")])
        .takes(&[((0, 0), 0, 100), ((5, 8), 0, 200)]),
    Known::new("fs.file-max", "limits open files", FS).takes(LONG).bands(&[harm(
        0,
        8191,
        "programs cannot open what they need",
    )]),
    Known::new("fs.nr_open", "limits the open files of one program", FS)
        .takes(&[((0, 0), 8, INT_MAX)])
        .bands(&[harm(8, 1023, "programs cannot open what they need")]),
];
