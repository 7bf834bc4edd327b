//! A machine, and what is wrong with it.

use std::collections::BTreeMap;

use comfy_table::{ContentArrangement, Table};
use dualq_host::Facts;
use dualq_host::doctor::Finding;
use dualq_host::facts::{Availability, Interface, Os};

use super::render;

/// The sysctls that a description shows, beside those of the network that files set.
const SHOWN: [&str; 11] = [
    "net.core.default_qdisc",
    "net.core.somaxconn",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_fastopen",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_recovery",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.mptcp.enabled",
];

/// The facts, and beside them the findings: whoever reads facts passes those over.
pub(crate) fn json(facts: &Facts, findings: &[Finding]) -> String {
    let mut document = serde_json::to_value(facts).unwrap_or_default();
    document["findings"] = serde_json::to_value(findings).unwrap_or_default();
    format!("{document:#}\n")
}

/// The machine in a few lines, then the findings, the worst first.
pub(crate) fn text(facts: &Facts, findings: &[Finding], width: usize) -> String {
    let mut parts = vec![machine(facts, width)];
    if !facts.interfaces.is_empty() {
        parts.push(interfaces(facts, width));
    }
    let sysctls = sysctls(facts, width);
    if !sysctls.is_empty() {
        parts.push(sysctls);
    }
    if !facts.unread.is_empty() {
        let lines = facts.unread.iter().map(|line| format!("  {line}"));
        parts.push(format!("not read:\n{}", lines.collect::<Vec<_>>().join("\n")));
    }
    if facts.os == Os::FreeBsd {
        parts.push("Of FreeBSD the doctor knows what `sysctl -a` tells, TCP above all; interfaces, queues and routes are not in it.".to_owned());
    }
    parts.push(match findings.len() {
        0 => "Nothing was found that is wrong.".to_owned(),
        1 => "1 finding:".to_owned(),
        count => format!("{count} findings, the worst first:"),
    });
    parts.extend(
        findings.iter().zip(1..).map(|(finding, number)| described(finding, number, width)),
    );
    parts.join("\n\n") + "\n"
}

/// A table whose last column is broken into lines where it is too long.
fn table(width: usize) -> Table {
    let mut table = Table::new();
    table
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(u16::try_from(width).unwrap_or(u16::MAX));
    table
}

/// All columns are words.
fn words(table: Table) -> String {
    render(table, usize::MAX)
}

fn described(finding: &Finding, number: usize, width: usize) -> String {
    let mut table = table(width);
    table.add_row([format!("{number}."), finding.seen.clone()]);
    table.add_row(["why".to_owned(), finding.why.clone()]);
    table.add_row(["do".to_owned(), finding.cure.clone()]);
    table.add_row([
        String::new(),
        format!("[{}, {}; {}]", finding.harm.name(), finding.id, finding.source),
    ]);
    words(table)
}

/// `fq_codel, htb` of all that are so available.
fn of(things: &BTreeMap<String, Availability>, wanted: Availability) -> Option<String> {
    let names: Vec<&str> = things
        .iter()
        .filter(|(_, availability)| **availability == wanted)
        .map(|(name, _)| name.as_str())
        .collect();
    (!names.is_empty()).then(|| names.join(" "))
}

fn available(things: &BTreeMap<String, Availability>) -> String {
    let groups = [
        ("ready", Availability::Ready),
        ("as modules", Availability::Module),
        ("absent", Availability::Absent),
        ("not known", Availability::Unknown),
    ];
    let groups = groups
        .iter()
        .filter_map(|(title, which)| Some(format!("{title}: {}", of(things, *which)?)));
    groups.collect::<Vec<_>>().join("; ")
}

fn machine(facts: &Facts, width: usize) -> String {
    let mut table = table(width);
    let mut row = |name: &str, text: String| {
        if !text.is_empty() {
            table.add_row([name.to_owned(), text]);
        }
    };
    let distribution = &facts.distribution;
    let mut parts = vec![distribution.name.clone(), distribution.init.clone()];
    parts.extend(distribution.network.iter().cloned());
    parts.extend(facts.kernel.virtualization.iter().map(|on| format!("on {on}")));
    parts.retain(|part| !part.is_empty());
    row("machine", parts.join(", "));
    row("kernel", kernel(facts));
    row("qdiscs", available(&facts.qdiscs));
    row("congestion", available(&facts.congestion_controls));
    match &facts.tc {
        Some(tc) => {
            let knows = if tc.dualpi2 { "knows dualpi2" } else { "does not know dualpi2" };
            row("tc", format!("{}, {knows}", tc.version));
        }
        None if facts.os == Os::Linux => row("tc", "not found".to_owned()),
        None => {}
    }
    let routes = facts.default_routes.iter().map(|route| {
        let via = route.via.as_ref().map_or(String::new(), |via| format!(" via {via}"));
        format!("{}{via}", route.dev)
    });
    row("default route", routes.collect::<Vec<_>>().join("; "));
    if let Some(connections) = &facts.connections {
        let mut parts = vec![format!("{} established", connections.established)];
        let controls = connections.by_congestion_control.iter();
        parts.extend(controls.map(|(name, count)| format!("{count} {name}")));
        parts.extend(connections.min_rtt.iter().map(|time| format!("median of min RTT {time}")));
        row("connections", parts.join(", "));
    }
    if let Some(conntrack) = facts.conntrack {
        row("conntrack", format!("{} of {}", conntrack.count, conntrack.max));
    }
    words(table)
}

fn kernel(facts: &Facts) -> String {
    let kernel = &facts.kernel;
    let option = |name: &str| kernel.options.get(name).map(String::as_str);
    let yes = |is| if is { "yes" } else { "no" };
    let mut parts = vec![format!("{} {}", kernel.release, kernel.machine).trim_end().to_owned()];
    if !kernel.modules {
        parts.push("no modules".to_owned());
    }
    if let Some(bpf) = option("NET_SCH_BPF") {
        parts.push(format!("qdiscs in BPF: {}", yes(bpf != "n")));
    }
    if facts.os == Os::Linux {
        // Linux 6.18 has it, and this key with it.
        let accurate = facts.sysctls.contains_key("net.ipv4.tcp_ecn_option");
        parts.push(format!("AccECN: {}", yes(accurate)));
    }
    parts.extend(kernel.config.iter().map(|path| format!("configuration in {path}")));
    parts.join("; ")
}

fn interfaces(facts: &Facts, width: usize) -> String {
    let mut table = table(width);
    table.set_header(["interface", "driver", "speed", "MTU", "queues", "offloads", "qdiscs"]);
    for interface in &facts.interfaces {
        let on = interface.offloads.iter().filter(|(_, on)| **on).map(|(name, _)| name.as_str());
        let unknown = || "-".to_owned();
        table.add_row([
            format!("{}{}", interface.name, if interface.up { "" } else { " (down)" }),
            interface.driver.clone().unwrap_or_else(unknown),
            interface.speed.clone().unwrap_or_else(unknown),
            interface.mtu.to_string(),
            interface.tx_queues.to_string(),
            Some(on.collect::<Vec<_>>().join(" "))
                .filter(|on| !on.is_empty())
                .unwrap_or_else(unknown),
            qdiscs(interface),
        ]);
    }
    words(table)
}

/// A line for each queue discipline; those of a kind that are beside one another in a line.
fn qdiscs(interface: &Interface) -> String {
    let mut lines: Vec<(String, u32)> = Vec::new();
    for qdisc in &interface.qdiscs {
        let indent = if qdisc.parent == "root" { "" } else { "  " };
        let count = |key: &str| qdisc.statistics.get(key).copied().filter(|count| *count > 0);
        let mut line = format!("{indent}{}", qdisc.kind);
        let counted = [("sent", count("packets")), ("dropped", count("drops"))];
        let marks = count("ecn_mark").or_else(|| count("ecn-mark"));
        for (what, count) in counted.into_iter().chain([("marked", marks)]) {
            if let Some(count) = count.filter(|_| qdisc.handle != "0:" || indent.is_empty()) {
                line += &format!(", {count} {what}");
            }
        }
        match lines.last_mut() {
            Some((last, times)) if *last == line => *times += 1,
            _ => lines.push((line, 1)),
        }
    }
    let lines = lines.into_iter().map(|(line, times)| match times {
        1 => line,
        _ => format!("{line} ({times} times)"),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// What runs, and which file sets it.
fn sysctls(facts: &Facts, width: usize) -> String {
    let mut table = table(width);
    table.set_header(["sysctl", "running", "set by"]);
    let in_files = facts.settings.iter().map(|setting| setting.key.as_str());
    let mut keys: Vec<&str> =
        SHOWN.into_iter().chain(in_files.filter(|key| key.starts_with("net."))).collect();
    keys.sort_unstable();
    keys.dedup();
    let mut any = false;
    for key in keys {
        let running = facts.sysctls.get(key).map(String::as_str);
        let setting = facts.settings.iter().rfind(|setting| setting.key == key);
        if running.is_none() && setting.is_none() {
            continue;
        }
        any = true;
        let by = setting.map_or("-".to_owned(), |setting| {
            let differs = running.is_some_and(|running| running != setting.value);
            let value = if differs { format!(", to {}", setting.value) } else { String::new() };
            format!("{}:{}{value}", setting.file, setting.line)
        });
        // The kernel parts numbers by tabs, which are as wide as the terminal likes.
        table.add_row([key.to_owned(), running.unwrap_or("-").replace('\t', " "), by]);
    }
    if any { words(table) } else { String::new() }
}
