//! Lines of configuration files: which file it is tells what a line means.

use super::super::{Step, What};
use super::Reader;
use crate::facts::dotted;

/// The first words of sysctls, of Linux and FreeBSD. Without them any `a.b = c` of a program would be one.
const ROOTS: [&str; 11] =
    ["net", "kern", "kernel", "vm", "fs", "dev", "hw", "user", "security", "debug", "machdep"];
/// What only shows something.
const READ_ONLY: [&str; 2] =
    ["net.ipv4.tcp_available_congestion_control", "net.inet.tcp.cc.available"];
/// Sections of systemd.network(5) that put a queue discipline on the interface.
const QDISC_SECTIONS: [(&str, &str); 12] = [
    ("CAKE", "cake"),
    ("ControlledDelay", "codel"),
    ("FairQueueing", "fq"),
    ("FairQueueingControlledDelay", "fq_codel"),
    ("FlowQueuePIE", "fq_pie"),
    ("PIE", "pie"),
    ("BFIFO", "bfifo"),
    ("PFIFO", "pfifo"),
    ("PFIFOFast", "pfifo_fast"),
    ("TokenBucketFilter", "tbf"),
    ("NetworkEmulator", "netem"),
    ("StochasticFairnessQueueing", "sfq"),
];

/// Where a line stands or goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    kind: Kind,
    path: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    /// Modules to load, a name a line.
    Modules,
    /// One sysctl: its path tells which.
    Proc,
    /// FreeBSD's files, in which `#` begins a comment wherever it stands.
    FreeBsd,
    /// A file of systemd's network configuration.
    Networkd,
    #[default]
    Other,
}

impl Place {
    /// What the file of that path holds.
    pub(super) fn of_path(path: &str) -> Self {
        let kind = if path.contains("modules-load.d") || path.ends_with("/etc/modules") {
            Kind::Modules
        } else if path.starts_with("/proc/sys/") {
            Kind::Proc
        } else if path.contains("loader.conf") || path.contains("rc.conf") {
            Kind::FreeBsd
        } else if path.ends_with(".network") || path.ends_with(".link") {
            Kind::Networkd
        } else {
            Kind::Other
        };
        let path = path.starts_with('/').then(|| path.to_owned());
        Self { kind, path }
    }

    /// The file that a line of prose speaks of.
    pub(super) fn mentioned(line: &str) -> Option<Self> {
        let starts = ["/etc/", "/boot/", "/usr/lib/", "/usr/local/etc/"];
        let at = starts.iter().filter_map(|start| line.find(start)).min()?;
        let ends = |c: char| c.is_whitespace() || "`\"'*()<>,;\u{ff1a}\u{ff0c}\u{3002}".contains(c);
        let rest = &line[at..];
        let path = rest[..rest.find(ends).unwrap_or(rest.len())].trim_end_matches([':', '.', ']']);
        Some(Self::of_path(path))
    }

    /// The path, if the text says it.
    pub(super) fn path(&self) -> Option<String> {
        self.path.clone()
    }
}

impl Reader {
    /// A line of a configuration file. Whether it is one.
    pub(super) fn file_line(&mut self, line: &str, place: &Place) -> bool {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            return true;
        }
        if place.kind == Kind::Proc {
            let path = place.path.as_deref().unwrap_or_default();
            let key = sysctl_key(path.trim_start_matches("/proc/sys/"));
            return key.is_some_and(|key| {
                let step = What::Sysctl { key, value: words(line), commented: false };
                self.step(&format!("{line} > {path}"), &Place::default(), step);
                true
            });
        }
        if let Some(command) = udev_run(line) {
            let before = self.recipe.steps.len();
            self.command(command);
            self.udev_device(line, before);
            for step in &mut self.recipe.steps[before..] {
                step.file = place.path();
            }
            return true;
        }
        self.module_line(line, place)
            || self.section_line(line, place)
            || self.freebsd_line(line, place)
            || self.sysctl_line(line, place, place.kind != Kind::FreeBsd)
    }

    /// `net.ipv4.tcp_ecn = 1`. Whether it is that; `literal` if a comment behind the value would be a part of it.
    pub(super) fn sysctl_line(&mut self, line: &str, place: &Place, literal: bool) -> bool {
        let Some((key, value)) = line.split_once('=') else { return false };
        let key = key.trim().trim_start_matches('-');
        let (Some(key), Some((value, rest))) = (sysctl_key(key), value_of(value)) else {
            return false;
        };
        if READ_ONLY.contains(&key.as_str()) || self.shown.contains(&key) {
            return true;
        }
        let repeats = |step: &Step| matches!(&step.what, What::Sysctl { key: set, value: to, .. } if *set == key && *to == value);
        if self.reloaded && self.recipe.steps.iter().any(repeats) {
            return true;
        }
        let commented = literal && !rest.is_empty();
        let text = if rest.is_empty() {
            line.to_owned()
        } else {
            line[..line.len() - rest.len()].to_owned()
        };
        self.step(&text, place, What::Sysctl { key, value, commented });
        true
    }

    /// A module's name alone, where modules are listed.
    fn module_line(&mut self, line: &str, place: &Place) -> bool {
        let name = line.split_once('#').map_or(line, |(name, _)| name).trim();
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if place.kind != Kind::Modules || name.is_empty() || !name.chars().all(is_name) {
            return false;
        }
        let module = What::Module { name: name.replace('-', "_"), at_boot: true };
        self.step(name, place, module);
        true
    }

    /// Sections of systemd's files. Their options are in words of their own, so only the kind is taken.
    fn section_line(&mut self, line: &str, place: &Place) -> bool {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let kind = QDISC_SECTIONS.iter().find(|(section, _)| *section == name);
            if let Some((_, kind)) = kind {
                let words = (*kind).to_owned();
                self.step(line, place, What::Qdisc { dev: None, root: true, words });
            } else if place.kind != Kind::Networkd {
                return false;
            }
            self.section = Some(name.to_owned());
            return true;
        }
        let Some((key, value)) = line.split_once('=') else { return false };
        if self.section.is_none() || !key.starts_with(|c: char| c.is_ascii_uppercase()) {
            return false;
        }
        if key.trim() == "MTUBytes" {
            let (property, value) = ("mtu".to_owned(), value.trim().to_owned());
            self.step(line, place, What::Interface { dev: None, property, value });
        }
        true
    }

    /// `cc_dctcp_load="YES"`, `static_routes="a b"`, `route_a="…"`.
    fn freebsd_line(&mut self, line: &str, place: &Place) -> bool {
        let Some((key, value)) = line.split_once('=') else { return false };
        let Some((value, _)) = value_of(value) else { return false };
        if key.is_empty() || !key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return false;
        }
        if let Some(name) = key.strip_suffix("_load") {
            if value.eq_ignore_ascii_case("yes") {
                self.step(line, place, What::Module { name: name.to_owned(), at_boot: true });
            }
            return true;
        }
        if key == "static_routes" || key == "ipv6_static_routes" {
            self.routes.extend(value.split_whitespace().map(str::to_owned));
            return true;
        }
        let route = key.strip_prefix("route_").or_else(|| key.strip_prefix("ipv6_route_"));
        if let Some(name) = route {
            let (to, dev, properties) = freebsd_route(&value);
            let listed = Some((name.to_owned(), false));
            self.step(line, place, What::Route { freebsd: true, to, dev, properties, listed });
            return true;
        }
        if let Some(dev) = key.strip_prefix("ifconfig_") {
            let mut words = value.split_whitespace().skip_while(|word| *word != "mtu").skip(1);
            if let Some(mtu) = words.next() {
                let (dev, property) = (Some(dev.to_owned()), "mtu".to_owned());
                let value = mtu.to_owned();
                self.step(line, place, What::Interface { dev, property, value });
            }
            return true;
        }
        false
    }

    /// Puts the interface that a rule matches where its commands say `$name`.
    fn udev_device(&mut self, rule: &str, from: usize) {
        let matched = ["NAME==\"", "KERNEL==\""].iter().find_map(|key| {
            let (_, rest) = rule.split_once(key)?;
            rest.split_once('"')
                .map(|(name, _)| name)
                .filter(|name| !name.contains(['*', '?', '[', '|']))
        });
        for step in &mut self.recipe.steps[from..] {
            let (What::Qdisc { dev, .. } | What::Interface { dev, .. } | What::Offload { dev, .. }) =
                &mut step.what
            else {
                continue;
            };
            if dev.is_none() {
                *dev = matched.map(str::to_owned);
            }
        }
    }
}

/// A sysctl's key with dots, if it can be one.
fn sysctl_key(key: &str) -> Option<String> {
    let is_key = |c: char| c.is_ascii_alphanumeric() || "_./-*@:%".contains(c);
    if !key.chars().all(is_key) || key.ends_with(['.', '/']) {
        return None;
    }
    let at = key.find(['.', '/'])?;
    ROOTS.contains(&&key[..at]).then(|| dotted(key))
}

/// A value without its quotes, its words one space apart; and what stands behind it, which is no part of what is meant.
fn value_of(text: &str) -> Option<(String, &str)> {
    let text = text.trim();
    for quote in ['"', '\''] {
        if let Some((value, rest)) =
            text.strip_prefix(quote).and_then(|rest| rest.split_once(quote))
        {
            return Some((words(value), rest.trim_start()));
        }
    }
    let is_number = |word: &str| {
        let word = word.trim_start_matches('-');
        !word.is_empty()
            && word.chars().all(|c| c.is_ascii_hexdigit() || c == 'x')
            && word.starts_with(|c: char| c.is_ascii_digit())
    };
    let word_end = |text: &str| text.find(char::is_whitespace).unwrap_or(text.len());
    let mut end = word_end(text);
    if end == 0 {
        return None;
    }
    if is_number(&text[..end]) {
        loop {
            let rest = text[end..].trim_start();
            let next = &rest[..word_end(rest)];
            if !is_number(next) {
                break;
            }
            end = text.len() - rest.len() + next.len();
        }
    }
    let rest = text[end..].trim_start();
    // Behind a number a comment may be anything; behind a name it has to look like one.
    let is_comment = rest.is_empty() || is_number(&text[..word_end(text)]);
    (is_comment || rest.starts_with(['#', ';', '(', '/', '-'])).then(|| (words(&text[..end]), rest))
}

/// Words, one space apart.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The command that a udev rule runs.
fn udev_run(line: &str) -> Option<&str> {
    let at = line.find("RUN+=").or_else(|| line.find("RUN{program}+="))?;
    let (_, rest) = line[at..].split_once('"')?;
    rest.rsplit_once('"').map(|(command, _)| command)
}

/// A route as route(8) of FreeBSD takes it: where to, the interface, what matters to TCP.
pub(super) fn freebsd_route(text: &str) -> (String, Option<String>, Vec<(String, String)>) {
    let (mut to, mut dev, mut properties) = (String::new(), None, Vec::new());
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            "-interface" | "-iface" => {
                dev = words.next().map(str::to_owned);
                properties.push(("interface".to_owned(), dev.clone().unwrap_or_default()));
            }
            "-mtu" | "-rtt" | "-sendpipe" | "-recvpipe" | "-ssthresh" => {
                let value = words.next().unwrap_or_default().to_owned();
                properties.push((word[1..].to_owned(), value));
            }
            _ if to.is_empty() && !word.starts_with('-') => word.clone_into(&mut to),
            _ => {}
        }
    }
    (to, dev, properties)
}
