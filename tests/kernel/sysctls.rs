//! What the doctor says that the kernel refuses, beside what the kernel does refuse.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::Value;

use super::{command, kernel, stdout, text};

/// Keys, and the least and the most that Linux 7.3 takes.
const BOUNDS: [(&str, i64, i64); 42] = [
    ("net.core.rmem_default", 2304, INT),
    ("net.core.rmem_max", 2304, INT),
    ("net.core.wmem_default", 4608, INT),
    ("net.core.wmem_max", 4608, INT),
    ("net.core.optmem_max", 0, INT),
    ("net.core.somaxconn", 0, INT),
    ("net.core.dev_weight", 1, INT),
    ("net.core.busy_poll", 0, INT),
    ("net.ipv4.icmp_echo_ignore_all", 0, 1),
    ("net.ipv4.ip_no_pmtu_disc", 0, 255),
    ("net.ipv4.neigh.default.gc_thresh3", 0, INT),
    ("net.ipv4.tcp_app_win", 0, 31),
    ("net.ipv4.tcp_autocorking", 0, 1),
    ("net.ipv4.tcp_dsack", 0, 255),
    ("net.ipv4.tcp_early_retrans", 0, 4),
    ("net.ipv4.tcp_ecn", 0, 5),
    ("net.ipv4.tcp_ecn_fallback", 0, 1),
    ("net.ipv4.tcp_ecn_option", 0, 3),
    ("net.ipv4.tcp_ecn_option_beacon", 0, 3),
    ("net.ipv4.tcp_fastopen_blackhole_timeout_sec", 0, INT),
    ("net.ipv4.tcp_frto", 0, 255),
    ("net.ipv4.tcp_max_reordering", 1, INT),
    ("net.ipv4.tcp_min_tso_segs", 1, 255),
    ("net.ipv4.tcp_mtu_probing", 0, 255),
    ("net.ipv4.tcp_no_ssthresh_metrics_save", 0, 1),
    ("net.ipv4.tcp_notsent_lowat", 0, 4_294_967_295),
    ("net.ipv4.tcp_pacing_ca_ratio", 0, 1000),
    ("net.ipv4.tcp_pacing_ss_ratio", 0, 1000),
    ("net.ipv4.tcp_plb_enabled", 0, 1),
    ("net.ipv4.tcp_recovery", 0, 255),
    ("net.ipv4.tcp_retries2", 0, 255),
    ("net.ipv4.tcp_rto_min_us", 1, INT),
    ("net.ipv4.tcp_sack", 0, 255),
    ("net.ipv4.tcp_shrink_window", 0, 1),
    ("net.ipv4.tcp_slow_start_after_idle", 0, 255),
    ("net.ipv4.tcp_syn_retries", 1, 127),
    ("net.ipv4.tcp_timestamps", 0, 255),
    ("net.ipv4.tcp_tso_rtt_log", 0, 31),
    ("net.ipv4.tcp_tw_reuse", 0, 2),
    ("net.ipv4.tcp_window_scaling", 0, 255),
    ("net.ipv4.udp_rmem_min", 1, INT),
    ("vm.swappiness", 0, 200),
];
const INT: i64 = i32::MAX as i64;

/// Which of these settings the doctor says that Linux 7.3 refuses.
fn said_to_be_refused(settings: &[String]) -> Vec<bool> {
    let facts = "tests/data/facts/linux-7.3.json";
    let mut doctor = command(&["doctor", "--recipe", "-", "--facts", facts, "--json"]);
    let mut doctor = doctor.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    doctor.stdin.take().unwrap().write_all(settings.join("\n").as_bytes()).unwrap();
    let said = doctor.wait_with_output().unwrap();
    let said: Value = serde_json::from_str(&text(&said.stdout)).unwrap();
    let findings = said["findings"].as_array().unwrap();
    assert_eq!(findings.len(), settings.len());
    let refuses = |finding: &Value| finding["why"].as_str().unwrap().contains("kernel refuses it");
    findings.iter().map(refuses).collect()
}

#[test]
fn what_the_kernel_refuses_is_known() {
    let Some(kernel) = kernel() else { return };
    // What older ones take, as the doctor says of them.
    let takes_more = |setting: &str| {
        let is_older = kernel.version.starts_with("7.2.");
        is_older && setting.starts_with("net.ipv4.tcp_tso_rtt_log ")
    };
    for (beyond, value) in [
        (true, (|least, _| least - 1) as fn(i64, i64) -> i64),
        (false, |least, _| least),
        (false, |_, most| most),
        (true, |_, most| most + 1),
    ] {
        let settings = BOUNDS.map(|(key, least, most)| format!("{key} = {}", value(least, most)));
        assert_eq!(said_to_be_refused(&settings), [beyond; BOUNDS.len()], "{settings:?}");
        // The shell's own echo: a file of /proc takes a value in one write.
        let script: String = BOUNDS
            .iter()
            .map(|(key, least, most)| {
                let file = format!("/proc/sys/{}", key.replace('.', "/"));
                let value = value(*least, *most);
                format!("{{ echo {value} > {file}; }} 2>/dev/null && echo taken || echo refused\n")
            })
            .collect();
        let answers = stdout(&["kernel", "exec", "--", "sh", "-c", &script]);
        let refused: Vec<bool> = answers.lines().map(|answer| answer == "refused").collect();
        let differs: Vec<&String> = settings
            .iter()
            .zip(&refused)
            .filter(|(setting, refused)| **refused != beyond && !takes_more(setting))
            .map(|(setting, _)| setting)
            .collect();
        assert_eq!((refused.len(), differs), (BOUNDS.len(), Vec::<&String>::new()));
    }
}
