//! Linux's TCP.

use super::{INT_MAX, INT_MIN, Known, LEAST_UNSENT, Version, harm, neutral, told};

const IP_SYSCTL: &str = "Linux Documentation/networking/ip-sysctl.rst";

const fn tcp(key: &'static str, does: &'static str) -> Known {
    Known::new(key, does, IP_SYSCTL)
}

/// One byte since 5.13, and an `int` before.
const BYTE: &[(Version, i128, i128)] = &[((0, 0), INT_MIN, INT_MAX), ((5, 13), 0, 255)];
/// Off and on; before 6.1 any byte.
const SWITCH: &[(Version, i128, i128)] =
    &[((0, 0), INT_MIN, INT_MAX), ((5, 13), 0, 255), ((6, 1), 0, 1)];
/// Off and on since it is there.
const STRICT: &[(Version, i128, i128)] = &[((0, 0), 0, 1)];
/// Seconds, which the kernel keeps in jiffies: 100 a second at least.
const SECONDS: &[(Version, i128, i128)] = &[((0, 0), INT_MIN + 1, INT_MAX / 100)];
/// An `unsigned long`.
const LONG: &[(Version, i128, i128)] = &[((0, 0), 0, u64::MAX as i128)];

/// `net.ipv4.tcp_*` and what belongs to it.
pub(crate) static TCP: [Known; 60] = [
    tcp("net.ipv4.tcp_congestion_control", "chooses the congestion control of new connections").latency()
        .words(),
    tcp("net.ipv4.tcp_allowed_congestion_control", "lists what programs without privileges may choose")
        .words(),
    tcp("net.ipv4.tcp_ecn", "lets TCP negotiate ECN, so that a queue can mark instead of drop")
        .latency()
        .defaults(&[((0, 0), "2")])
        .source("Linux Documentation/networking/ip-sysctl.rst, RFC 3168")
        .takes(&[((0, 0), INT_MIN, INT_MAX), ((5, 13), 0, 255), ((6, 1), 0, 2), ((6, 18), 0, 5)])
        .bands(&[harm(0, 0, "queues that could mark have to drop, and each drop costs its flow a round trip")]),
    tcp("net.ipv4.tcp_ecn_fallback", "does without ECN where the path breaks it")
        .since(4, 2)
        .defaults(&[((4, 2), "1")])
        .source("Linux Documentation/networking/ip-sysctl.rst, RFC 3168 section 6.1.1.1")
        .takes(SWITCH)
        .bands(&[harm(0, 0, "behind a device that drops ECN handshakes connections then hang instead of falling back")]),
    tcp("net.ipv4.tcp_ecn_option", "says how often AccECN's option is sent")
        .since(6, 18)
        .defaults(&[((6, 18), "2")])
        .takes(&[((0, 0), 0, 2), ((7, 3), 0, 3)]),
    tcp("net.ipv4.tcp_ecn_option_beacon", "says how often per round trip AccECN's option is sent")
        .since(6, 18)
        .defaults(&[((6, 18), "3")])
        .takes(&[((0, 0), 0, 3)]),
    tcp("net.ipv4.tcp_notsent_lowat", "limits what a program can put into a socket before TCP can send it")
        .latency()
        .since(3, 12)
        .defaults(&[((3, 12), "4294967295")])
        .takes(&[((0, 0), 0, u32::MAX as i128)])
        .bands(&[
            harm(0, LEAST_UNSENT as i128 - 1, "less waits than TCP hands down at once: a program has to be woken for every packet or two, and the link may be empty until it is"),
            neutral(INT_MAX, u32::MAX as i128, "it is no limit"),
        ]),
    tcp("net.ipv4.tcp_limit_output_bytes", "limits what one connection has in the host's own queues")
        .latency()
        .since(3, 6)
        .defaults(&[((5, 0), "1048576"), ((6, 18), "4194304")])
        .bands(&[
            neutral(INT_MIN, -1, "it is no limit"),
            harm(0, 65_535, "there is no room for one full TSO packet: the network card runs empty between one and the next"),
        ]),
    tcp("net.ipv4.tcp_autocorking", "joins small writes while earlier ones are in the queue")
        .since(3, 14)
        .defaults(&[((3, 14), "1")])
        .takes(STRICT),
    tcp("net.ipv4.tcp_slow_start_after_idle", "lets a connection that paused begin again with a small window")
        .latency()
        .defaults(&[((0, 0), "1")])
        .source("Linux Documentation/networking/ip-sysctl.rst, RFC 5681 section 4.1")
        .takes(BYTE)
        .bands(&[told(0, 0, "a pause costs no new slow start, but what is sent next may leave as one burst of a whole window that nobody has probed for a while, unless fq or BBR paces it")]),
    tcp("net.ipv4.tcp_pacing_ss_ratio", "says how fast slow start is paced, in % of the present rate")
        .since(4, 3)
        .defaults(&[((4, 3), "200")])
        .takes(&[((0, 0), 0, 1000)])
        .bands(&[
            harm(0, 100, "what fq paces leaves no faster in slow start than it did the round trip before: it does not grow"),
            told(101, 199, "what fq paces grows slower in slow start than it may"),
        ]),
    tcp("net.ipv4.tcp_pacing_ca_ratio", "says how fast congestion avoidance is paced, in % of the present rate")
        .since(4, 3)
        .defaults(&[((4, 3), "120")])
        .takes(&[((0, 0), 0, 1000)])
        .bands(&[harm(0, 99, "what fq paces leaves slower than its window allows, and does not fill the link")]),
    tcp("net.ipv4.tcp_min_tso_segs", "says how many segments a TSO packet has at least")
        .since(3, 12)
        .defaults(&[((3, 12), "2")])
        .takes(&[((0, 0), 1, INT_MAX), ((5, 13), 1, 255)])
        .bands(&[told(17, INT_MAX, "a slow connection too leaves in bursts of that many segments")]),
    tcp("net.ipv4.tcp_tso_win_divisor", "limits the part of the window that one TSO packet takes")
        .defaults(&[((0, 0), "3")])
        .takes(BYTE)
        .bands(&[told(0, 1, "one packet may take the whole window: it leaves as one burst")]),
    tcp("net.ipv4.tcp_tso_rtt_log", "makes TSO packets larger where the round trip is short")
        .since(5, 18)
        .defaults(&[((5, 18), "9")])
        .takes(&[((0, 0), 0, 255), ((7, 3), 0, 31)]),
    tcp("net.ipv4.tcp_mtu_probing", "finds the path's MTU without ICMP")
        .defaults(&[((0, 0), "0")])
        .source("Linux Documentation/networking/ip-sysctl.rst, RFC 4821")
        .takes(BYTE)
        .bands(&[told(2, INT_MAX, "each connection begins with the small packets of tcp_base_mss, whatever the path carries")]),
    tcp("net.ipv4.tcp_base_mss", "is the size that MTU probing begins with")
        .defaults(&[((0, 0), "512"), ((4, 1), "1024")])
        .bands(&[harm(INT_MIN, 511, "connections through a black hole go on with packets smaller than any path needs: each path carries 576 bytes (RFC 791)")]),
    tcp("net.ipv4.tcp_fastopen", "lets programs that ask for it send data with the SYN")
        .since(3, 6)
        .defaults(&[((3, 6), "0"), ((3, 13), "1")])
        .source("Linux Documentation/networking/ip-sysctl.rst, RFC 7413"),
    tcp("net.ipv4.tcp_fastopen_blackhole_timeout_sec", "turns Fast Open off for a while where it is dropped")
        .since(4, 12)
        .takes(&[((0, 0), 0, INT_MAX)]),
    tcp("net.ipv4.tcp_recovery", "chooses how RACK finds lost packets")
        .since(4, 4)
        .defaults(&[((4, 4), "1")])
        .source("Linux Documentation/networking/ip-sysctl.rst, RFC 8985")
        .takes(BYTE)
        .bands(&[harm(0, 0, "losses at the end of a burst then wait for a timeout")]),
    tcp("net.ipv4.tcp_early_retrans", "enables tail loss probes")
        .latency()
        .defaults(&[((0, 0), "3")])
        .source("Linux Documentation/networking/ip-sysctl.rst, RFC 8985 section 7")
        .takes(&[((0, 0), 0, 4)])
        .bands(&[harm(0, 2, "there are no tail loss probes (3 and 4 enable them): a lost last packet waits for the timeout of 200 ms or more")]),
    tcp("net.ipv4.tcp_sack", "tells senders which packets arrived")
        .latency()
        .defaults(&[((0, 0), "1")])
        .source("Linux Documentation/networking/ip-sysctl.rst, RFC 2018, RFC 8985")
        .takes(BYTE)
        .bands(&[harm(0, 0, "each loss then costs round trips or a timeout, and RACK has nothing to work with")]),
    tcp("net.ipv4.tcp_dsack", "tells senders which packets arrived twice")
        .defaults(&[((0, 0), "1")])
        .source("Linux Documentation/networking/ip-sysctl.rst, RFC 2883")
        .takes(BYTE)
        .bands(&[harm(0, 0, "a sender cannot find out that it retransmitted in vain")]),
    tcp("net.ipv4.tcp_fack", "guessed losses from the highest acknowledged packet")
        .gone(4, 15, "RACK took its place; it can be written and does nothing")
        .takes(BYTE),
    tcp("net.ipv4.tcp_frto", "detects timeouts that were none")
        .defaults(&[((0, 0), "2")])
        .source("Linux Documentation/networking/ip-sysctl.rst, RFC 5682")
        .takes(BYTE)
        .bands(&[harm(0, 0, "where delay varies, a late acknowledgment then restarts slow start")]),
    tcp("net.ipv4.tcp_reordering", "says how much reordering is assumed at first")
        .defaults(&[((0, 0), "3")])
        .takes(&[((0, 0), INT_MIN, INT_MAX), ((6, 1), 1, INT_MAX)])
        .bands(&[harm(INT_MIN, 2, "one packet that was overtaken counts as lost: it is sent again in vain, and the window shrinks")]),
    tcp("net.ipv4.tcp_max_reordering", "limits how much reordering is assumed")
        .since(3, 19)
        .defaults(&[((3, 19), "300")])
        .takes(&[((0, 0), INT_MIN, INT_MAX), ((7, 3), 1, INT_MAX)]),
    tcp("net.ipv4.tcp_timestamps", "puts the times of sending into each packet")
        .latency()
        .defaults(&[((0, 0), "1")])
        .source("Linux Documentation/networking/ip-sysctl.rst, RFC 7323")
        .takes(BYTE)
        .bands(&[
            harm(0, 0, "nothing recognises old duplicates when sequence numbers wrap (PAWS), or undoes a retransmission that was in vain (Eifel); there are no round-trip times of what was retransmitted; connections behind SYN cookies lose their options; and tcp_tw_reuse does nothing"),
            told(2, 2, "they count from the start of the machine, which tells everybody how long it runs"),
        ]),
    tcp("net.ipv4.tcp_window_scaling", "allows windows above 64 kB")
        .defaults(&[((0, 0), "1")])
        .source("Linux Documentation/networking/ip-sysctl.rst, RFC 7323 section 2")
        .takes(BYTE)
        .bands(&[harm(0, 0, "no connection can then have more than 64 kB in flight, which at 100 ms is 5 Mbit/s")]),
    tcp("net.ipv4.tcp_moderate_rcvbuf", "lets the receive buffer grow with need")
        .defaults(&[((0, 0), "1")])
        .takes(BYTE)
        .bands(&[harm(0, 0, "receive buffers then stay at their initial size, which limits downloads over long paths")]),
    tcp("net.ipv4.tcp_rmem", "sets receive buffers: least, at first, most")
        .numbers(3)
        .takes(&[((0, 0), 1, INT_MAX), ((7, 3), 4096, INT_MAX)]),
    tcp("net.ipv4.tcp_wmem", "sets send buffers: least, at first, most")
        .numbers(3)
        .takes(&[((0, 0), 1, INT_MAX)]),
    tcp("net.ipv4.tcp_mem", "limits the memory of all connections, in pages of 4 kB and not in bytes")
        .numbers(3)
        .takes(LONG),
    tcp("net.ipv4.tcp_adv_win_scale", "says which part of a receive buffer is overhead")
        .defaults(&[((0, 0), "1")])
        .gone(6, 6, "the kernel measures the overhead; it can be written and does nothing")
        .takes(&[((0, 0), -31, 31)])
        .bands(&[harm(-31, -3, "an eighth of a receive buffer or less counts as window, which limits downloads over long paths")]),
    tcp("net.ipv4.tcp_app_win", "keeps a part of the receive window for the program")
        .defaults(&[((0, 0), "31")])
        .takes(&[((0, 0), INT_MIN, INT_MAX), ((7, 3), 0, 31)])
        .bands(&[harm(1, 1, "half of each receive window is kept back")]),
    tcp("net.ipv4.tcp_shrink_window", "may take back receive window that was given")
        .since(6, 5)
        .defaults(&[((6, 5), "0")])
        .takes(STRICT),
    tcp("net.ipv4.tcp_no_metrics_save", "forgets what was learned of a path when its connection ends")
        .defaults(&[((0, 0), "0")])
        .takes(BYTE),
    tcp("net.ipv4.tcp_no_ssthresh_metrics_save", "forgets where slow start ended")
        .since(5, 6)
        .defaults(&[((5, 6), "1")])
        .takes(STRICT),
    tcp("net.ipv4.tcp_low_latency", "did without the prequeue")
        .gone(4, 14, "there is no prequeue any more; it can be written and does nothing"),
    tcp("net.ipv4.tcp_tw_recycle", "ended TIME-WAIT early")
        .gone(4, 12, "it was taken out, for it broke connections from behind NAT; setting it fails")
        .bands(&[harm(1, INT_MAX, "it drops connections of hosts that share an address behind NAT")]),
    tcp("net.ipv4.tcp_tw_reuse", "lets new outgoing connections take ports in TIME-WAIT")
        .defaults(&[((0, 0), "0"), ((4, 19), "2")])
        .takes(&[((0, 0), INT_MIN, INT_MAX), ((4, 19), 0, 2)]),
    tcp("net.ipv4.tcp_max_tw_buckets", "limits connections in TIME-WAIT")
        .bands(&[harm(INT_MIN, 1023, "connections then end without TIME-WAIT, and what is still under way of them is taken for a new one's")]),
    tcp("net.ipv4.tcp_fin_timeout", "says how long a closed connection waits for the other side")
        .defaults(&[((0, 0), "60")])
        .takes(SECONDS)
        .bands(&[harm(INT_MIN + 1, 4, "connections over slow paths are given up before the other side has closed them")]),
    tcp("net.ipv4.tcp_rfc1337", "ignores resets in TIME-WAIT").defaults(&[((0, 0), "0")])
        .takes(BYTE),
    tcp("net.ipv4.tcp_syncookies", "answers floods of SYN without memory")
        .defaults(&[((0, 0), "1")])
        .takes(BYTE)
        .bands(&[
            told(0, 0, "a flood of SYN then keeps everybody else out"),
            harm(2, 2, "always on, it is a test mode: a connection keeps only those of its options that fit into a timestamp, and none without"),
        ]),
    tcp("net.ipv4.tcp_max_syn_backlog", "limits handshakes under way, per listener")
        .bands(&[harm(INT_MIN, 15, "more handshakes than that under way are dropped, or lose options to SYN cookies")]),
    tcp("net.ipv4.tcp_max_orphans", "limits connections that no program has any more")
        .bands(&[harm(INT_MIN, 1023, "connections that a program has closed are reset before all of their data has arrived")]),
    tcp("net.ipv4.tcp_syn_retries", "says how often a SYN is sent again").defaults(&[((0, 0), "6")])
        .takes(&[((0, 0), 1, 127)]),
    tcp("net.ipv4.tcp_synack_retries", "says how often the answer to a SYN is sent again")
        .defaults(&[((0, 0), "5")])
        .takes(BYTE)
        .bands(&[harm(INT_MIN, 0, "a lost answer to a SYN is not sent again before the client asks again")]),
    tcp("net.ipv4.tcp_retries1", "says when a route is suspected").defaults(&[((0, 0), "3")])
        .takes(&[((0, 0), INT_MIN, 255), ((5, 13), 0, 255)]),
    tcp("net.ipv4.tcp_retries2", "says when a dead connection is given up").defaults(&[((0, 0), "15")])
        .takes(BYTE)
        .bands(&[harm(INT_MIN, 3, "on a short path an outage of 3 s or less then ends connections; RFC 1122 has 100 s, which takes 8")])
        .source("Linux Documentation/networking/ip-sysctl.rst, RFC 1122 section 4.2.3.5"),
    tcp("net.ipv4.tcp_orphan_retries", "says when a closed connection is given up")
        .takes(BYTE),
    tcp("net.ipv4.tcp_keepalive_time", "says when an idle connection is asked for the first time")
        .defaults(&[((0, 0), "7200")])
        .takes(SECONDS)
        .bands(&[harm(INT_MIN + 1, 0, "idle connections are asked without a pause")]),
    tcp("net.ipv4.tcp_keepalive_intvl", "says how often an idle connection is asked")
        .defaults(&[((0, 0), "75")])
        .takes(SECONDS)
        .bands(&[harm(INT_MIN + 1, 0, "idle connections are asked without a pause")]),
    tcp("net.ipv4.tcp_keepalive_probes", "says how often an idle connection may be silent")
        .defaults(&[((0, 0), "9")])
        .takes(BYTE)
        .bands(&[harm(INT_MIN, 0, "an idle connection ends as soon as it would be asked")]),
    tcp("net.ipv4.tcp_thin_linear_timeouts", "retransmits sooner, after a timeout, on connections with little in flight")
        .latency()
        .since(2, 6)
        .defaults(&[((0, 0), "0")])
        .takes(BYTE),
    tcp("net.ipv4.tcp_thin_dupack", "retransmitted after one duplicate on connections with little in flight")
        .gone(4, 11, "RACK does better; setting it fails"),
    tcp("net.ipv4.tcp_rto_min_us", "is the shortest retransmission timeout")
        .latency()
        .since(6, 11)
        .defaults(&[((6, 11), "200000")])
        .takes(&[((0, 0), 1, INT_MAX)])
        .bands(&[
            harm(1, 39_999, "receivers that hold an acknowledgment back, Linux's for 40 ms at least, cause timeouts for nothing, unless all of them are near and answer at once"),
            harm(200_001, INT_MAX, "a lost last packet waits longer than it does by default"),
        ]),
    tcp("net.ipv4.tcp_comp_sack_delay_ns", "holds acknowledgments of losses back to send fewer")
        .since(4, 18)
        .defaults(&[((4, 18), "1000000")])
        .takes(LONG),
    tcp("net.ipv4.tcp_plb_enabled", "takes another path in a data centre when one is congested")
        .since(6, 2)
        .defaults(&[((6, 2), "0")])
        .takes(STRICT),
];
