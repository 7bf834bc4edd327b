//! Running sysctls, and the configuration files that set them (sysctl.conf(5), sysctl.d(5)).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::Setting;
use super::reader::{Reader, words};

/// Sysctls that matter for queues and TCP.
pub const KEYS: &[&str] = &[
    "kernel.modules_disabled",
    "net.core.default_qdisc",
    "net.core.netdev_budget",
    "net.core.netdev_max_backlog",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.somaxconn",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.ip_forward",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_adv_win_scale",
    "net.ipv4.tcp_allowed_congestion_control",
    "net.ipv4.tcp_available_congestion_control",
    "net.ipv4.tcp_base_mss",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_early_retrans",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_ecn_fallback",
    "net.ipv4.tcp_ecn_option",
    "net.ipv4.tcp_ecn_option_beacon",
    "net.ipv4.tcp_fastopen",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_frto",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_pacing_ca_ratio",
    "net.ipv4.tcp_pacing_ss_ratio",
    "net.ipv4.tcp_recovery",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
    "net.ipv6.conf.all.forwarding",
    "net.mptcp.enabled",
    "net.netfilter.nf_conntrack_max",
];

/// Every kernel has these; a container may hide them.
const EVERYWHERE: [&str; 3] =
    ["net.core.default_qdisc", "net.ipv4.tcp_congestion_control", "net.ipv4.tcp_ecn"];

/// Where sysctl.d(5) looks; a file hides those of the same name in later folders.
const FOLDERS: [&str; 5] = [
    "/etc/sysctl.d",
    "/run/sysctl.d",
    "/usr/local/lib/sysctl.d",
    "/usr/lib/sysctl.d",
    "/lib/sysctl.d",
];

/// The oldest of these files. systemd-sysctl(8) does not read it, `sysctl --system` reads it last.
pub const SYSCTL_CONF: &str = "/etc/sysctl.conf";

/// What files set.
#[derive(Default)]
pub(super) struct Settings {
    /// Those that count, in the order in which they are read at a start.
    pub(super) read: Vec<Setting>,
    /// Those in files that are not read at a start.
    pub(super) ignored: Vec<Setting>,
}

/// The settings in the text of a file, and the numbers of the lines that are none.
#[must_use]
pub fn settings(file: &str, text: &str) -> (Vec<Setting>, Vec<u32>) {
    let (mut settings, mut wrong) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        // A minus: failures do not matter. Without a value, the key is left out of what patterns set.
        let (may_fail, line) = match line.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        match line.split_once('=').map(|(key, value)| (key.trim(), value)) {
            Some((key, value)) if !key.is_empty() => settings.push(Setting {
                file: file.to_owned(),
                line: number,
                key: dotted(key),
                value: words(value),
            }),
            None if may_fail => {}
            _ => wrong.push(number),
        }
    }
    (settings, wrong)
}

/// A key as sysctl(8) prints it: dots between its parts, and slashes for the dots inside them.
pub(crate) fn dotted(key: &str) -> String {
    if key.find(['.', '/']).is_some_and(|at| key.as_bytes()[at] == b'/') {
        let swap = |c| match c {
            '/' => '.',
            '.' => '/',
            other => other,
        };
        key.chars().map(swap).collect()
    } else {
        key.to_owned()
    }
}

/// Files by their own names, each with the folder that wins, and those that it hides.
fn files(reader: &mut Reader<'_>, folders: &[&str]) -> (BTreeMap<String, String>, Vec<String>) {
    let (mut read, mut hidden) = (BTreeMap::new(), Vec::new());
    for folder in reader.folders(folders) {
        for name in reader.names(folder) {
            let path = format!("{folder}/{name}");
            if !name.ends_with(".conf") {
                continue;
            }
            match read.entry(name) {
                Entry::Vacant(place) => {
                    place.insert(path);
                }
                Entry::Occupied(_) => hidden.push(path),
            }
        }
    }
    (read, hidden)
}

/// Whether a key can be looked up: patterns stand for many, and some are no path below `/proc/sys`.
fn names_one(key: &str) -> bool {
    !key.contains(['*', '?', '['])
        && !key.starts_with(['.', '/'])
        && !key.contains("..")
        && !key.contains("//")
}

/// Whether two paths lead to the same file.
fn same(reader: &Reader<'_>, one: &str, other: &str) -> bool {
    let real = |path| reader.at(path).canonicalize().ok();
    real(one).is_some_and(|one| Some(one) == real(other))
}

/// What the files set, as `init` has them read at a start.
pub(super) fn read(reader: &mut Reader<'_>, init: &str) -> Settings {
    // OpenWrt's init script knows one folder.
    let folders = if init == "procd" { &FOLDERS[..1] } else { &FOLDERS };
    let (read, hidden) = files(reader, folders);
    let mut paths: Vec<String> = read.into_values().collect();
    let mut ignored = hidden;
    // Some distributions have a link by which systemd reads it too, and then it is there in its place.
    let linked = paths.iter().any(|path| same(reader, path, SYSCTL_CONF));
    if reader.exists(SYSCTL_CONF) {
        if init != "systemd" {
            paths.push(SYSCTL_CONF.to_owned());
        } else if !linked {
            ignored.push(SYSCTL_CONF.to_owned());
        }
    }
    let mut in_files = |paths: Vec<String>| -> Vec<Setting> {
        let mut all = Vec::new();
        for path in paths {
            let Some(text) = reader.text(&path) else { continue };
            let (settings, wrong) = settings(&path, &text);
            for line in wrong {
                reader.unread(&path, &format!("line {line} is no setting"));
            }
            all.extend(settings);
        }
        all
    };
    Settings { read: in_files(paths), ignored: in_files(ignored) }
}

/// The running values of what matters and of what files set.
pub(super) fn running(reader: &mut Reader<'_>, settings: &Settings) -> BTreeMap<String, String> {
    let in_files = settings.read.iter().chain(&settings.ignored).map(|setting| &setting.key);
    let in_files = in_files.map(String::as_str).filter(|key| names_one(key));
    let mut keys: Vec<&str> = KEYS.iter().copied().chain(in_files).collect();
    keys.sort_unstable();
    keys.dedup();
    let mut running = BTreeMap::new();
    for key in keys {
        if let Some(value) = reader.sysctl(key) {
            running.insert(key.to_owned(), value);
        } else if EVERYWHERE.contains(&key) {
            reader.unread(key, "this kernel or container does not show it");
        }
    }
    running
}
