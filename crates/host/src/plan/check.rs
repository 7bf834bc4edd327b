//! What no plan of dualq's asks for is refused, wherever the plan comes from: plans are files, and are applied as root.

use dualq_qdisc::QdiscLine;
use dualq_qdisc::grammar::ParseError;

use super::{Change, Destination, FORMAT, Plan, PlanError, What, boot, freebsd};
use crate::facts::Os;

/// The most changes that a plan has.
const MOST_CHANGES: usize = 64;
/// The most notes, and the most lines of evidence: each interface has some.
const MOST_LINES: usize = 256;
/// The longest text that people are to read in one line.
const LONGEST_LINE: usize = 1000;
/// The largest file that a plan writes.
const LARGEST_FILE: usize = 16 << 10;
/// Linux's `IFNAMSIZ`, without the zero at the end.
const LONGEST_NAME: usize = 15;
/// The least MTU that IPv4 hosts must take (RFC 791 §3.1), and IPv6 links must have (RFC 8200 §5).
const LEAST_MTU: (u32, u32) = (576, 1280);

/// The sysctls that plans set. Whatever else there is may do more than be set back: `net.ipv6.conf.*.disable_ipv6` takes addresses
/// away for good, `net.ipv4.ip_forward` sets others that nobody recorded. `net.core.default_qdisc` is of plans that earlier versions made.
const SYSCTLS: [&str; 7] = [
    "net.core.default_qdisc",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
];
/// The modules by which filters take what arrives elsewhere.
const REDIRECTING: [&str; 2] = ["act_mirred", "cls_matchall"];
const FREEBSD_SYSCTLS: [&str; 6] = [
    freebsd::MAX_SOCKBUF,
    "net.inet.tcp.cc.algorithm",
    "net.inet.tcp.ecn.enable",
    "net.inet.tcp.pmtud_blackhole_detection",
    "net.inet.tcp.recvbuf_max",
    "net.inet.tcp.sendbuf_max",
];

impl Plan {
    /// Makes sure that it asks for nothing that dualq's own plans do not.
    ///
    /// # Errors
    /// [`PlanError::Refused`], with the first thing that is wrong.
    pub fn check(&self) -> Result<(), PlanError> {
        let all = || {
            if self.format != FORMAT {
                return Err(format!("format {} is not known", self.format));
            }
            text("about", &self.about)?;
            text("kernel", &self.kernel)?;
            self.notes.iter().try_for_each(|note| text("a note", note))?;
            self.evidence.iter().try_for_each(|line| text("a line of evidence", line))?;
            if self.evidence.len() > MOST_LINES || self.notes.len() > MOST_LINES {
                return Err(format!("a plan has at most {MOST_LINES} notes and lines of evidence"));
            }
            if self.changes.len() > MOST_CHANGES {
                return Err(format!("a plan has at most {MOST_CHANGES} changes"));
            }
            self.changes.iter().try_for_each(|change| change.check(self.os))
        };
        all().map_err(PlanError::refused)
    }
}

impl Change {
    pub(super) fn check(&self, os: Os) -> Result<(), String> {
        text("why", &self.why)?;
        text("source", &self.source)?;
        match (&self.what, os) {
            (What::Lines { path, after }, Os::FreeBsd) => freebsd::check_lines(path, after),
            (What::Lines { .. }, Os::Linux) => {
                Err("lines are for FreeBSD's plans; on Linux a whole file is given".to_owned())
            }
            (What::Sysctl { key, before, after }, _) => {
                sysctl_key(key, os)?;
                sysctl_value(before)?;
                sysctl_value(after)
            }
            (_, Os::FreeBsd) => Err("a plan for FreeBSD has sysctls and lines only".to_owned()),
            (What::Module { module }, Os::Linux) => self::module(module),
            (What::Qdisc { dev, parent, before, after, each }, Os::Linux) => {
                interface(dev)?;
                if *each {
                    alone(after)?;
                }
                if *each && parent.is_some() {
                    return Err("each transmit queue and one class are two places".to_owned());
                }
                if before.len() > 4096 {
                    return Err("no interface has that many queue disciplines".to_owned());
                }
                before.iter().try_for_each(|line| text("before", line))?;
                plain_words(after)
            }
            (What::Ingress { dev, ifb, after }, Os::Linux) => {
                interface(dev)?;
                super::ifb(ifb)?;
                if super::ifb(dev).is_ok() {
                    return Err(format!("what arrives at {dev} was queued there before"));
                }
                plain_words(after)
            }
            (What::Offload { dev, key, before, after }, Os::Linux) => {
                interface(dev)?;
                key.check(before)?;
                key.check_limit(after)
            }
            (What::Route { to, mtu }, Os::Linux) => route(*to, *mtu),
            (What::File { path, before, after, mode }, Os::Linux) => {
                if !boot::PLANNED.contains(&path.as_str()) {
                    return Err(format!("{path:?} is no file that a plan writes"));
                }
                let expected = boot::mode(path);
                if *mode != expected {
                    return Err(format!("the mode of {path} is {expected}, not {mode}"));
                }
                for content in before.iter().chain([after]) {
                    if content.len() > LARGEST_FILE {
                        return Err(format!("{path}: more than {} KiB", LARGEST_FILE >> 10));
                    }
                }
                boot::check_content(path, after).map_err(|message| format!("{path}: {message}"))
            }
        }
    }
}

/// A text that people read: one line, and nothing that a terminal would act on.
fn text(what: &str, text: &str) -> Result<(), String> {
    if text.len() > LONGEST_LINE {
        return Err(format!("{what} has more than {LONGEST_LINE} bytes"));
    }
    match text.chars().find(|c| c.is_control()) {
        Some(c) => Err(format!("{what} has the control character {c:?}")),
        None => Ok(()),
    }
}

/// Whether all of `text` is of letters, digits and `others`.
pub(crate) fn only(text: &str, others: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c))
}

/// A name that the kernel allows and that is the same to every shell and rule.
pub(crate) fn interface(name: &str) -> Result<(), String> {
    let plain = !name.is_empty() && only(name, "_.:@-") && name != "." && name != "..";
    if plain && !name.starts_with('-') && name.len() <= LONGEST_NAME {
        return Ok(());
    }
    // Whatever has no space and no slash is a name to the kernel (`dev_valid_name`).
    let is_kernels = !["", ".", ".."].contains(&name)
        && name.len() <= LONGEST_NAME
        && !name.contains(|c: char| c == '/' || c == ':' || c.is_whitespace());
    Err(match is_kernels {
        true => format!(
            "{name:?}: dualq changes nothing at interfaces whose names have more than letters of ASCII, digits and _ . : @ -, or begin with -, for they \
             come to stand in rules and scripts"
        ),
        false => format!("{name:?} is not a name of an interface"),
    })
}

pub(super) fn module(name: &str) -> Result<(), String> {
    let known = name.strip_prefix("sch_").or_else(|| name.strip_prefix("tcp_"));
    match known {
        None if REDIRECTING.contains(&name) => Ok(()),
        Some(rest) if !rest.is_empty() && only(rest, "_") && name.len() < 56 => Ok(()),
        _ => Err(format!(
            "{name:?} is no module that a plan loads: sch_…, tcp_…, {}",
            REDIRECTING.join(", ")
        )),
    }
}

pub(super) fn sysctl_key(key: &str, os: Os) -> Result<(), String> {
    let planned: &[&str] = match os {
        Os::Linux => &SYSCTLS,
        Os::FreeBsd => &FREEBSD_SYSCTLS,
    };
    if planned.contains(&key) {
        return Ok(());
    }
    Err(format!("{key:?} is no sysctl that a plan sets: these are {}", planned.join(", ")))
}

pub(crate) fn sysctl_value(value: &str) -> Result<(), String> {
    if value.len() <= 256 && only(value, " \t_.-") {
        Ok(())
    } else {
        Err(format!("{value:?} is no value of such a sysctl"))
    }
}

/// It may come to stand in a rule or a script, between single quotes.
pub(super) fn plain_words(line: &QdiscLine) -> Result<(), String> {
    let text = line.text();
    if text.len() > LONGEST_LINE || !only(text, " _.%/:+-") {
        return Err(format!("{text:?} is no qdisc"));
    }
    Ok(())
}

/// What each transmit queue has of its own has nothing inside.
pub(super) fn alone(line: &QdiscLine) -> Result<(), String> {
    match line.spec().leaf() {
        None => Ok(()),
        Some(_) => {
            Err(format!("{:?} is not for each transmit queue: it has another inside", line.text()))
        }
    }
}

/// A line of tc's grammar, as rules and scripts have it.
pub(super) fn qdisc(line: &str) -> Result<(), String> {
    plain_words(&line.parse().map_err(|error: ParseError| error.to_string())?)
}

pub(super) fn route(to: Destination, mtu: u32) -> Result<(), String> {
    let least = if to.address().is_ipv4() { LEAST_MTU.0 } else { LEAST_MTU.1 };
    if !(least..=65_535).contains(&mtu) {
        return Err(format!("an MTU of {mtu} for {to}: from {least} to 65535"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use dualq_units::Rate;

    use super::*;
    use crate::plan::Requirements;
    use crate::{Facts, knowledge};

    /// Each in the very version, with a value that it takes.
    #[test]
    fn plans_for_freebsd_set_what_that_version_has() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/facts");
        for major in [12, 13, 14, 15] {
            let mut facts = Facts::read(&folder.join(format!("freebsd-{major}.sysctl"))).unwrap();
            let version = facts.kernel.version();
            assert_eq!(version.0, major);
            // What serves already would not be set.
            for key in ["net.inet.tcp.ecn.enable", "net.inet.tcp.pmtud_blackhole_detection"] {
                facts.sysctls.insert(key.to_owned(), "0".to_owned());
            }
            let requirements = Requirements {
                cc: Some("dctcp".to_owned()),
                rate: Some(Rate::from_mbit(1000)),
                ..Requirements::default()
            };
            let plan = Plan::make(&facts, &requirements).unwrap();
            let mut keys: Vec<&str> = Vec::new();
            for change in &plan.changes {
                let What::Sysctl { key, after, .. } = &change.what else { continue };
                let known = knowledge::of(Os::FreeBsd, key).unwrap();
                let gone = known.gone.is_some_and(|(gone, _)| gone <= version);
                assert!(known.since <= version && !gone, "{key} of FreeBSD {major}");
                let takes = known.takes;
                assert!(takes.count == 0 || takes.check(after, version).is_ok(), "{key}={after}");
                keys.push(key);
            }
            keys.sort_unstable();
            assert_eq!(keys, FREEBSD_SYSCTLS, "FreeBSD {major}");
        }
    }

    #[test]
    fn what_plans_set_is_known() {
        for (os, keys) in [(Os::Linux, &SYSCTLS[..]), (Os::FreeBsd, &FREEBSD_SYSCTLS)] {
            for key in keys {
                assert!(knowledge::of(os, key).is_some(), "{key}");
            }
        }
    }
}
