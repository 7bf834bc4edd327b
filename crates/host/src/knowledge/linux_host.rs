//! Linux beside TCP: queues of the host, its memory, forwarding.

use super::Known;

const IP_SYSCTL: &str = "Linux Documentation/networking/ip-sysctl.rst";
const NET: &str = "Linux Documentation/admin-guide/sysctl/net.rst";
const MPTCP: &str = "Linux Documentation/networking/mptcp-sysctl.rst";
const CONNTRACK: &str = "Linux Documentation/networking/nf_conntrack-sysctl.rst";
const VM: &str = "Linux Documentation/admin-guide/sysctl/vm.rst";
const FS: &str = "Linux Documentation/admin-guide/sysctl/fs.rst";

/// `net.core.*`, forwarding, and what recipes for the network set of the rest.
pub(crate) static HOST: [Known; 43] = [
    Known::new(
        "net.core.default_qdisc",
        "chooses the queue discipline of interfaces that come up from then on",
        NET,
    )
    .latency()
    .since(3, 12),
    Known::new(
        "net.core.rmem_max",
        "limits receive buffers that programs set themselves; TCP's own are in tcp_rmem",
        NET,
    )
    .defaults(&[((0, 0), "212992"), ((6, 18), "4194304")]),
    Known::new(
        "net.core.wmem_max",
        "limits send buffers that programs set themselves; TCP's own are in tcp_wmem",
        NET,
    )
    .defaults(&[((0, 0), "212992"), ((6, 18), "4194304")]),
    Known::new("net.core.rmem_default", "is the receive buffer of sockets other than TCP's", NET)
        .defaults(&[((0, 0), "212992")]),
    Known::new("net.core.wmem_default", "is the send buffer of sockets other than TCP's", NET)
        .defaults(&[((0, 0), "212992")]),
    Known::new("net.core.optmem_max", "limits a socket's memory for options", NET)
        .defaults(&[((0, 0), "20480"), ((6, 8), "131072")]),
    Known::new(
        "net.core.netdev_max_backlog",
        "limits packets that wait for a CPU on their way in",
        NET,
    )
    .defaults(&[((0, 0), "1000")]),
    Known::new(
        "net.core.netdev_budget",
        "limits the packets that one round of receiving takes",
        NET,
    )
    .defaults(&[((0, 0), "300")]),
    Known::new(
        "net.core.netdev_budget_usecs",
        "limits the time that one round of receiving takes",
        NET,
    )
    .since(4, 12),
    Known::new("net.core.dev_weight", "limits the packets that a driver takes in one go", NET)
        .defaults(&[((0, 0), "64")]),
    Known::new(
        "net.core.busy_poll",
        "lets programs that poll wait in the driver, for microseconds at the price of a CPU",
        NET,
    )
    .since(3, 11)
    .defaults(&[((3, 11), "0")]),
    Known::new(
        "net.core.busy_read",
        "lets programs that read wait in the driver, for microseconds at the price of a CPU",
        NET,
    )
    .since(3, 11)
    .defaults(&[((3, 11), "0")]),
    Known::new(
        "net.core.somaxconn",
        "limits connections that wait for a program to accept them",
        IP_SYSCTL,
    )
    .defaults(&[((0, 0), "128"), ((5, 4), "4096")]),
    Known::new(
        "net.core.rps_sock_flow_entries",
        "says how many flows are steered to their program's CPU",
        "Linux Documentation/networking/scaling.rst",
    )
    .defaults(&[((0, 0), "0")]),
    Known::new("net.core.bpf_jit_enable", "compiles BPF programs", NET),
    Known::new("net.mptcp.enabled", "lets programs that ask for it use several paths", MPTCP)
        .since(5, 6)
        .defaults(&[((5, 6), "1")]),
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
        .harm(&["1"], "it makes nothing faster, and hosts that only have IPv6 are out of reach"),
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
    .defaults(&[((0, 0), "32768 60999")]),
    Known::new("net.ipv4.ip_no_pmtu_disc", "does without path MTU discovery", IP_SYSCTL)
        .defaults(&[((0, 0), "0")])
        .harm(&["1"], "packets are then fragmented on their way, and lost where fragments are"),
    Known::new("net.ipv4.route.gc_timeout", "cleaned the cache of routes", IP_SYSCTL).gone(
        3,
        6,
        "there is no cache of IPv4 routes any more; it can be written and does nothing",
    ),
    Known::new("net.ipv4.neigh.default.gc_thresh1", "says how many neighbours are kept", IP_SYSCTL)
        .defaults(&[((0, 0), "128")]),
    Known::new("net.ipv4.neigh.default.gc_thresh2", "says how many neighbours are kept", IP_SYSCTL)
        .defaults(&[((0, 0), "512")]),
    Known::new("net.ipv4.neigh.default.gc_thresh3", "says how many neighbours are kept", IP_SYSCTL)
        .defaults(&[((0, 0), "1024")]),
    Known::new("net.ipv4.icmp_echo_ignore_all", "leaves pings unanswered", IP_SYSCTL)
        .defaults(&[((0, 0), "0")]),
    Known::new("net.ipv4.icmp_echo_ignore_broadcasts", "leaves pings to all unanswered", IP_SYSCTL)
        .defaults(&[((0, 0), "1")]),
    Known::new("net.ipv4.udp_mem", "limits the memory of all UDP sockets, in pages", IP_SYSCTL),
    Known::new(
        "net.ipv4.udp_rmem_min",
        "is what a UDP socket may receive when memory is short",
        IP_SYSCTL,
    )
    .defaults(&[((0, 0), "4096")]),
    Known::new(
        "net.ipv4.udp_wmem_min",
        "does nothing: UDP does not count what it sends",
        IP_SYSCTL,
    )
    .defaults(&[((0, 0), "4096")]),
    Known::new(
        "net.netfilter.nf_conntrack_max",
        "limits connections that are tracked; beyond it new ones are dropped",
        CONNTRACK,
    ),
    Known::new(
        "net.netfilter.nf_conntrack_tcp_timeout_established",
        "says how long an idle connection is tracked, in seconds",
        CONNTRACK,
    )
    .defaults(&[((0, 0), "432000")]),
    Known::new("vm.swappiness", "weighs swapping against dropping cached files", VM)
        .defaults(&[((0, 0), "60")]),
    Known::new("fs.file-max", "limits open files", FS),
    Known::new("fs.nr_open", "limits the open files of one program", FS),
];
