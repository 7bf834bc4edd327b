//! What files set, and what runs.

use super::case::Case;
use super::{Finding, Harm};
use crate::facts::{Availability, KEYS, Setting};
use crate::knowledge;

/// What somebody may have set by hand, and should know of.
const BY_HAND: [&str; 5] = [
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_fastopen",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_slow_start_after_idle",
];

fn place(setting: &Setting) -> String {
    format!("{} line {}", setting.file, setting.line)
}

/// Whether a file says what runs: the kernel prints numbers in decimal, whatever they were set as.
fn same(set: &str, runs: &str) -> bool {
    let decimal = |word: &str| match word.strip_prefix("0x") {
        Some(digits) => {
            u64::from_str_radix(digits, 16).map_or_else(|_| word.to_owned(), |n| n.to_string())
        }
        None => word.to_owned(),
    };
    set.split(' ').map(decimal).eq(runs.split(' ').map(decimal))
}

/// Files of the distribution's: that others override them is what they are for.
fn shipped(setting: &Setting) -> bool {
    setting.file.starts_with("/usr/lib/") || setting.file.starts_with("/lib/")
}

/// The keys that files set, each once.
fn keys<'a>(settings: &'a [Setting]) -> Vec<&'a str> {
    let mut keys: Vec<&'a str> = settings.iter().map(|setting| setting.key.as_str()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

pub(super) fn names_what_is_absent(case: &Case<'_>) -> Option<Finding> {
    let absent = |key, kinds: &std::collections::BTreeMap<String, Availability>| {
        let setting = case.settings(key).last()?;
        let kind = kinds.get(&setting.value).copied().unwrap_or(Availability::Unknown);
        (kind == Availability::Absent).then_some(setting)
    };
    let setting = absent("net.core.default_qdisc", &case.facts.qdiscs)
        .or_else(|| absent("net.ipv4.tcp_congestion_control", &case.facts.congestion_controls))?;
    let now = case.sysctl(&setting.key).unwrap_or("something else");
    Some(Finding {
        id: "setting-names-what-is-absent",
        harm: Harm::High,
        seen: format!("{} sets {} to {}, which this kernel has not.", place(setting), setting.key, setting.value),
        why: format!("The line fails at each start, and {now} is used instead."),
        cure: "Choose what the kernel has (`dualq doctor` lists it), or install the package with its modules.".to_owned(),
        source: "Documentation/admin-guide/sysctl/net.rst; sysctl.d(5)",
    })
}

pub(super) fn ignored(case: &Case<'_>) -> Option<Finding> {
    let lost: Vec<_> =
        case.facts.ignored_settings.iter().filter(|setting| !shipped(setting)).collect();
    let first = lost.first()?;
    let more = match lost.len() - 1 {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let old = first.file == crate::facts::SYSCTL_CONF;
    Some(Finding {
        id: "setting-ignored",
        harm: Harm::Medium,
        seen: format!("{} sets {} to {}{more}; no start reads it.", place(first), first.key, first.value),
        why: if old {
            "systemd reads /etc/sysctl.conf only where the distribution has a link to it in /etc/sysctl.d. It may run now because \
             somebody called `sysctl -p`, and is gone after the next start."
        } else {
            "A file of the same name in a folder that goes before hides it."
        }
        .to_owned(),
        cure: if old {
            "Move the lines to a file of their own in /etc/sysctl.d."
        } else {
            "Rename it, if it is to be read."
        }
        .to_owned(),
        source: "sysctl.d(5)",
    })
}

pub(super) fn not_running(case: &Case<'_>) -> Option<Finding> {
    let differs = |key: &&str| key.starts_with("net.");
    let differing: Vec<String> = keys(&case.facts.settings)
        .into_iter()
        .filter(differs)
        .filter_map(|key| {
            let (set, runs) = (case.settings(key).last()?, case.sysctl(key)?);
            (!same(&set.value, runs))
                .then(|| format!("{} sets {key} to {}, but {runs} runs", place(set), set.value))
        })
        .collect();
    (!differing.is_empty()).then(|| Finding {
        id: "setting-not-running",
        harm: Harm::Medium,
        seen: format!("{}.", differing.join("; ")),
        why: "Somebody changed it since the start, or the line failed: a module was not loaded yet, or the value is out of bounds. After \
              the next start the machine may behave otherwise."
            .to_owned(),
        cure: "`sysctl --system` sets what the files say and tells what fails; or correct the file.".to_owned(),
        source: "sysctl.d(5); sysctl(8)",
    })
}

pub(super) fn overridden(case: &Case<'_>) -> Option<Finding> {
    let lost: Vec<String> = keys(&case.facts.settings)
        .into_iter()
        .filter(|key| KEYS.contains(key))
        .filter_map(|key| {
            let winner = case.settings(key).last()?;
            let loser = case.settings(key).find(|it| it.value != winner.value && !shipped(it))?;
            Some(format!(
                "{} sets {key} to {}, and {} to {}, which wins",
                place(loser),
                loser.value,
                place(winner),
                winner.value
            ))
        })
        .collect();
    (!lost.is_empty()).then(|| Finding {
        id: "setting-overridden",
        harm: Harm::Low,
        seen: format!("{}.", lost.join("; ")),
        why: "Files are read in the order of their names, whatever folder they are in; of one key the last line wins.".to_owned(),
        cure: "Remove the line that is in vain.".to_owned(),
        source: "sysctl.d(5); sysctl(8)",
    })
}

pub(super) fn lost_at_restart(case: &Case<'_>) -> Option<Finding> {
    let options = &case.facts.kernel.options;
    let control = options.get("DEFAULT_TCP_CONG").map(String::as_str);
    let qdisc = match options.get("NET_SCH_DEFAULT").map(String::as_str) {
        Some("y") => options.get("DEFAULT_NET_SCH").map(String::as_str),
        Some(_) => Some("pfifo_fast"),
        None => None,
    };
    let version = case.facts.kernel.version();
    let default = |key| knowledge::of(case.facts.os, key)?.default_in(version);
    let defaults = BY_HAND
        .into_iter()
        .map(|key| (key, default(key)))
        .chain([("net.ipv4.tcp_congestion_control", control), ("net.core.default_qdisc", qdisc)]);
    let lost: Vec<String> = defaults
        .filter_map(|(key, default)| {
            let (default, runs) = (default?, case.sysctl(key)?);
            // What only fails to be read at a start is told with its file.
            let mut files = case.facts.settings.iter().chain(&case.facts.ignored_settings);
            (default != runs && !files.any(|setting| setting.key == key))
                .then(|| format!("{key} is {runs}, the kernel's default is {default}"))
        })
        .collect();
    (!lost.is_empty()).then(|| Finding {
        id: "setting-in-no-file",
        harm: Harm::Low,
        seen: format!("{}; no file sets it.", lost.join("; ")),
        why: "Somebody or some program set it by hand. It is gone after the next start.".to_owned(),
        cure: "If it is wanted, put it into a file in /etc/sysctl.d.".to_owned(),
        source: "sysctl.d(5); Documentation/networking/ip-sysctl.rst",
    })
}

pub(super) fn removed(case: &Case<'_>) -> Option<Finding> {
    let running = case.facts.kernel.version();
    let (setting, (version, became), source) = case.facts.settings.iter().find_map(|setting| {
        let known = knowledge::of(case.facts.os, &setting.key)?;
        let gone = known.gone.filter(|(version, _)| *version <= running)?;
        Some((setting, gone, known.source))
    })?;
    Some(Finding {
        id: "setting-removed",
        harm: Harm::Low,
        seen: format!("{} sets {}.", place(setting), setting.key),
        why: format!("Gone since Linux {}.{}: {became}.", version.0, version.1),
        cure: "Remove the line. Where it stands, others may be as old: look at them.".to_owned(),
        source,
    })
}
