//! Linux's TCP.

use super::Known;

const IP_SYSCTL: &str = "Linux Documentation/networking/ip-sysctl.rst";

const fn tcp(key: &'static str, does: &'static str) -> Known {
    Known::new(key, does, IP_SYSCTL)
}

/// `net.ipv4.tcp_*` and what belongs to it.
pub(crate) static TCP: [Known; 60] = [
    tcp("net.ipv4.tcp_congestion_control", "chooses the congestion control of new connections").latency(),
    tcp("net.ipv4.tcp_allowed_congestion_control", "lists what programs without privileges may choose"),
    tcp("net.ipv4.tcp_ecn", "lets TCP negotiate ECN, so that a queue can mark instead of drop")
        .latency()
        .defaults(&[((0, 0), "2")])
        .source("Linux Documentation/networking/ip-sysctl.rst, RFC 3168"),
    tcp("net.ipv4.tcp_ecn_fallback", "does without ECN where the path breaks it")
        .since(4, 2)
        .defaults(&[((4, 2), "1")])
        .harm(&["0"], "behind a device that drops ECN handshakes connections then hang instead of falling back")
        .source("Linux Documentation/networking/ip-sysctl.rst, RFC 3168 section 6.1.1.1"),
    tcp("net.ipv4.tcp_ecn_option", "says how often AccECN's option is sent")
        .since(6, 18)
        .defaults(&[((6, 18), "2")]),
    tcp("net.ipv4.tcp_ecn_option_beacon", "says how often per round trip AccECN's option is sent")
        .since(6, 18)
        .defaults(&[((6, 18), "3")]),
    tcp("net.ipv4.tcp_notsent_lowat", "limits what a program can put into a socket before TCP can send it")
        .latency()
        .since(3, 12)
        .defaults(&[((3, 12), "4294967295")]),
    tcp("net.ipv4.tcp_limit_output_bytes", "limits what one connection has in the host's own queues")
        .latency()
        .since(3, 6)
        .defaults(&[((5, 0), "1048576"), ((6, 18), "4194304")]),
    tcp("net.ipv4.tcp_autocorking", "joins small writes while earlier ones are in the queue")
        .since(3, 14)
        .defaults(&[((3, 14), "1")]),
    tcp("net.ipv4.tcp_slow_start_after_idle", "lets a connection that paused begin again with a small window; off, it may begin with a burst")
        .latency()
        .defaults(&[((0, 0), "1")])
        .source("Linux Documentation/networking/ip-sysctl.rst, RFC 5681 section 4.1"),
    tcp("net.ipv4.tcp_pacing_ss_ratio", "says how fast slow start is paced, in % of the present rate")
        .since(4, 3)
        .defaults(&[((4, 3), "200")]),
    tcp("net.ipv4.tcp_pacing_ca_ratio", "says how fast congestion avoidance is paced, in % of the present rate")
        .since(4, 3)
        .defaults(&[((4, 3), "120")]),
    tcp("net.ipv4.tcp_min_tso_segs", "says how many segments a TSO packet has at least")
        .since(3, 12)
        .defaults(&[((3, 12), "2")]),
    tcp("net.ipv4.tcp_tso_win_divisor", "limits the part of the window that one TSO packet takes")
        .defaults(&[((0, 0), "3")]),
    tcp("net.ipv4.tcp_tso_rtt_log", "makes TSO packets larger where the round trip is short")
        .since(5, 18)
        .defaults(&[((5, 18), "9")]),
    tcp("net.ipv4.tcp_mtu_probing", "finds the path's MTU without ICMP")
        .defaults(&[((0, 0), "0")])
        .source("Linux Documentation/networking/ip-sysctl.rst, RFC 4821"),
    tcp("net.ipv4.tcp_base_mss", "is the size that MTU probing begins with")
        .defaults(&[((0, 0), "512"), ((4, 1), "1024")]),
    tcp("net.ipv4.tcp_fastopen", "lets programs that ask for it send data with the SYN")
        .since(3, 6)
        .defaults(&[((3, 6), "0"), ((3, 13), "1")])
        .source("Linux Documentation/networking/ip-sysctl.rst, RFC 7413"),
    tcp("net.ipv4.tcp_fastopen_blackhole_timeout_sec", "turns Fast Open off for a while where it is dropped")
        .since(4, 12),
    tcp("net.ipv4.tcp_recovery", "chooses how RACK finds lost packets")
        .since(4, 4)
        .defaults(&[((4, 4), "1")])
        .harm(&["0"], "losses at the end of a burst then wait for a timeout")
        .source("Linux Documentation/networking/ip-sysctl.rst, RFC 8985"),
    tcp("net.ipv4.tcp_early_retrans", "enables tail loss probes")
        .latency()
        .defaults(&[((0, 0), "3")])
        .harm(&["0"], "a lost last packet then waits for the timeout of 200 ms or more")
        .source("Linux Documentation/networking/ip-sysctl.rst, RFC 8985 section 7"),
    tcp("net.ipv4.tcp_sack", "tells senders which packets arrived")
        .latency()
        .defaults(&[((0, 0), "1")])
        .harm(&["0"], "each loss then costs round trips or a timeout, and RACK has nothing to work with")
        .source("Linux Documentation/networking/ip-sysctl.rst, RFC 2018, RFC 8985"),
    tcp("net.ipv4.tcp_dsack", "tells senders which packets arrived twice")
        .defaults(&[((0, 0), "1")])
        .harm(&["0"], "a sender cannot find out that it retransmitted in vain")
        .source("Linux Documentation/networking/ip-sysctl.rst, RFC 2883"),
    tcp("net.ipv4.tcp_fack", "guessed losses from the highest acknowledged packet")
        .gone(4, 15, "RACK took its place; it can be written and does nothing"),
    tcp("net.ipv4.tcp_frto", "detects timeouts that were none")
        .defaults(&[((0, 0), "2")])
        .harm(&["0"], "where delay varies, a late acknowledgment then restarts slow start")
        .source("Linux Documentation/networking/ip-sysctl.rst, RFC 5682"),
    tcp("net.ipv4.tcp_reordering", "says how much reordering is assumed at first")
        .defaults(&[((0, 0), "3")]),
    tcp("net.ipv4.tcp_max_reordering", "limits how much reordering is assumed")
        .since(3, 19)
        .defaults(&[((3, 19), "300")]),
    tcp("net.ipv4.tcp_timestamps", "measures the round trip with each packet")
        .latency()
        .defaults(&[((0, 0), "1")])
        .harm(&["0"], "round trips are then measured rarely, old duplicates are not recognised, and tcp_tw_reuse does nothing")
        .source("Linux Documentation/networking/ip-sysctl.rst, RFC 7323"),
    tcp("net.ipv4.tcp_window_scaling", "allows windows above 64 kB")
        .defaults(&[((0, 0), "1")])
        .harm(&["0"], "no connection can then have more than 64 kB in flight, which at 100 ms is 5 Mbit/s")
        .source("Linux Documentation/networking/ip-sysctl.rst, RFC 7323 section 2"),
    tcp("net.ipv4.tcp_moderate_rcvbuf", "lets the receive buffer grow with need")
        .defaults(&[((0, 0), "1")])
        .harm(&["0"], "receive buffers then stay at their initial size, which limits downloads over long paths"),
    tcp("net.ipv4.tcp_rmem", "sets receive buffers: least, at first, most"),
    tcp("net.ipv4.tcp_wmem", "sets send buffers: least, at first, most"),
    tcp("net.ipv4.tcp_mem", "limits the memory of all connections, in pages of 4 kB and not in bytes"),
    tcp("net.ipv4.tcp_adv_win_scale", "says which part of a receive buffer is overhead")
        .defaults(&[((0, 0), "1")])
        .gone(6, 6, "the kernel measures the overhead; it can be written and does nothing"),
    tcp("net.ipv4.tcp_app_win", "keeps a part of the receive window for the program")
        .defaults(&[((0, 0), "31")]),
    tcp("net.ipv4.tcp_shrink_window", "may take back receive window that was given")
        .since(6, 5)
        .defaults(&[((6, 5), "0")]),
    tcp("net.ipv4.tcp_no_metrics_save", "forgets what was learned of a path when its connection ends")
        .defaults(&[((0, 0), "0")]),
    tcp("net.ipv4.tcp_no_ssthresh_metrics_save", "forgets where slow start ended")
        .since(5, 6)
        .defaults(&[((5, 6), "1")]),
    tcp("net.ipv4.tcp_low_latency", "did without the prequeue")
        .gone(4, 14, "there is no prequeue any more; it can be written and does nothing"),
    tcp("net.ipv4.tcp_tw_recycle", "ended TIME-WAIT early")
        .gone(4, 12, "it was taken out, for it broke connections from behind NAT; setting it fails")
        .harm(&["1"], "it drops connections of hosts that share an address behind NAT"),
    tcp("net.ipv4.tcp_tw_reuse", "lets new outgoing connections take ports in TIME-WAIT")
        .defaults(&[((0, 0), "0"), ((4, 19), "2")]),
    tcp("net.ipv4.tcp_max_tw_buckets", "limits connections in TIME-WAIT"),
    tcp("net.ipv4.tcp_fin_timeout", "says how long a closed connection waits for the other side")
        .defaults(&[((0, 0), "60")]),
    tcp("net.ipv4.tcp_rfc1337", "ignores resets in TIME-WAIT").defaults(&[((0, 0), "0")]),
    tcp("net.ipv4.tcp_syncookies", "answers floods of SYN without memory")
        .defaults(&[((0, 0), "1")])
        .harm(&["2"], "always on, it is a test mode: connections lose options"),
    tcp("net.ipv4.tcp_max_syn_backlog", "limits handshakes under way, per listener"),
    tcp("net.ipv4.tcp_max_orphans", "limits connections that no program has any more"),
    tcp("net.ipv4.tcp_syn_retries", "says how often a SYN is sent again").defaults(&[((0, 0), "6")]),
    tcp("net.ipv4.tcp_synack_retries", "says how often the answer to a SYN is sent again")
        .defaults(&[((0, 0), "5")]),
    tcp("net.ipv4.tcp_retries1", "says when a route is suspected").defaults(&[((0, 0), "3")]),
    tcp("net.ipv4.tcp_retries2", "says when a dead connection is given up").defaults(&[((0, 0), "15")]),
    tcp("net.ipv4.tcp_orphan_retries", "says when a closed connection is given up"),
    tcp("net.ipv4.tcp_keepalive_time", "says when an idle connection is asked for the first time")
        .defaults(&[((0, 0), "7200")]),
    tcp("net.ipv4.tcp_keepalive_intvl", "says how often an idle connection is asked")
        .defaults(&[((0, 0), "75")]),
    tcp("net.ipv4.tcp_keepalive_probes", "says how often an idle connection may be silent")
        .defaults(&[((0, 0), "9")]),
    tcp("net.ipv4.tcp_thin_linear_timeouts", "retransmits sooner, after a timeout, on connections with little in flight")
        .latency()
        .since(2, 6)
        .defaults(&[((0, 0), "0")]),
    tcp("net.ipv4.tcp_thin_dupack", "retransmitted after one duplicate on connections with little in flight")
        .gone(4, 11, "RACK does better; setting it fails"),
    tcp("net.ipv4.tcp_rto_min_us", "is the shortest retransmission timeout")
        .latency()
        .since(6, 11)
        .defaults(&[((6, 11), "200000")]),
    tcp("net.ipv4.tcp_comp_sack_delay_ns", "holds acknowledgments of losses back to send fewer")
        .since(4, 18)
        .defaults(&[((4, 18), "1000000")]),
    tcp("net.ipv4.tcp_plb_enabled", "takes another path in a data centre when one is congested")
        .since(6, 2)
        .defaults(&[((6, 2), "0")]),
];
