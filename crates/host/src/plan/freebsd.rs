//! A plan for FreeBSD: lines for loader.conf(5), sysctl.conf(5) and rc.conf(5), to be put there by hand.

use super::check::{interface, only, sysctl_key, sysctl_value};
use super::queue::rate_words;
use super::sysctls::Path;
use super::{Change, FORMAT, Plan, PlanError, Profile, Requirements, StaticRoute, What};
use crate::Facts;
use crate::facts::{Availability, Os};
use crate::margin::below;

pub(super) const MAX_SOCKBUF: &str = "kern.ipc.maxsockbuf";
const ALGORITHM: &str = "net.inet.tcp.cc.algorithm";
const LOADER: &str = "/boot/loader.conf";
const SYSCTL: &str = "/etc/sysctl.conf";
const RC: &str = "/etc/rc.conf";
/// The least MTU of a route, by family: as on Linux.
const LEAST_MTU: (u32, u32) = (576, 1280);

/// What a plan for FreeBSD sets.
struct Draft<'a> {
    facts: &'a Facts,
    changes: Vec<Change>,
    lines: Vec<(&'static str, String)>,
    /// Keys that should be set and are not in the facts.
    unknown: Vec<String>,
}

impl Draft<'_> {
    fn running(&self, key: &str) -> Option<&str> {
        self.facts.sysctls.get(key).map(|value| value.trim())
    }

    /// Sets it now and at boot, unless it is so.
    fn sysctl(&mut self, key: &str, after: &str, why: &str, source: &str) {
        let Some(before) = self.running(key).map(str::to_owned) else {
            self.unknown.push(format!("{key}={after}"));
            return;
        };
        if before == after {
            return;
        }
        let what = What::Sysctl { key: key.to_owned(), before, after: after.to_owned() };
        self.changes.push(Change { why: why.to_owned(), source: source.to_owned(), what });
        self.lines.push((SYSCTL, format!("{key}={after}")));
    }

    /// As [`sysctl`](Self::sysctl), unless it is that large already.
    fn at_least(&mut self, key: &str, least: u64, why: &str, source: &str) {
        let enough = |now: &str| now.parse().is_ok_and(|now: u64| now >= least);
        if !self.running(key).is_some_and(enough) {
            self.sysctl(key, &least.to_string(), why, source);
        }
    }

    /// The lines of a file that are not there yet, as a change.
    fn lines_of(&mut self, path: &'static str, why: &str, source: &str) {
        let there =
            self.facts.files.get(path).map(|file| file.content.as_str()).unwrap_or_default();
        let of_file = self.lines.iter().filter(|(file, _)| *file == path);
        let new = of_file.map(|(_, line)| line.clone());
        let after: Vec<String> =
            new.filter(|line| !there.lines().any(|known| known.trim() == line)).collect();
        if !after.is_empty() {
            let what = What::Lines { path: path.to_owned(), after };
            self.changes.push(Change { why: why.to_owned(), source: source.to_owned(), what });
        }
    }
}

/// The major version of `15.0-RELEASE`.
fn major(facts: &Facts) -> u32 {
    facts.kernel.version().0
}

/// Refuses what only plans for Linux can have: to pass over it would promise it.
fn refuse(requirements: &Requirements) -> Result<(), PlanError> {
    let Requirements { parent, down, link, others, .. } = requirements;
    let no_tc = "FreeBSD has no tc";
    let no_choice = "dualq chooses no queue discipline on FreeBSD";
    let refused = [
        (
            requirements.qdisc.as_ref().map(|_| "--qdisc".to_owned()),
            "FreeBSD has no tc, and its dummynet has no dualpi2",
        ),
        (parent.map(|class| format!("--parent {class}")), no_tc),
        (
            down.map(|rate| format!("--down {}", rate_words(rate))),
            "FreeBSD has no ifb, and dualq shapes nothing there",
        ),
        (requirements.down_qdisc.as_ref().map(|_| "--down-qdisc".to_owned()), no_tc),
        (
            requirements.offloads.then(|| "--offloads".to_owned()),
            "which offloads an interface has is not in what sysctl -a prints",
        ),
        (link.map(|_| "--link".to_owned()), "it is for cake, which FreeBSD does not have"),
        (requirements.tunnel.then(|| "--tunnel".to_owned()), no_choice),
        (requirements.scalable.then(|| "--scalable".to_owned()), no_choice),
        (
            (!requirements.aim.is_usual()).then(|| format!("--aim {}", requirements.aim.name())),
            no_choice,
        ),
        (
            requirements.state.as_ref().map(|_| "--state".to_owned()),
            "dualq applies no plans on FreeBSD, and keeps no records there",
        ),
    ];
    if let Some((option, why)) = refused.into_iter().find_map(|(given, why)| Some((given?, why))) {
        return Err(PlanError::Requirement(format!("{option} is for Linux: {why}")));
    }
    match others.first() {
        Some(other) => Err(PlanError::Requirement(format!(
            "--dev {}: a plan for FreeBSD is for one interface",
            other.dev
        ))),
        None => Ok(()),
    }
}

pub(super) fn make(facts: &Facts, requirements: &Requirements) -> Result<Plan, PlanError> {
    refuse(requirements)?;
    if let Some(dev) = &requirements.dev {
        interface(dev).map_err(PlanError::Requirement)?;
    }
    let mut notes =
        vec!["dualq applies no plans on FreeBSD: this one is for your hands".to_owned()];
    let mut draft = Draft { facts, changes: Vec::new(), lines: Vec::new(), unknown: Vec::new() };
    let sends = requirements.profile != Profile::Gateway;
    let asked = match (&requirements.cc, requirements.profile) {
        (Some(cc), _) => Some(cc.as_str()),
        (None, Profile::Datacenter) => Some("dctcp"),
        (None, _) => None,
    };
    if let Some(cc) = asked {
        congestion_control(&mut draft, cc, &mut notes)?;
    }
    let cc = asked.or_else(|| facts.sysctls.get(ALGORITHM).map(String::as_str));
    if sends {
        let asks = facts.sysctls.get("net.inet.tcp.ecn.enable");
        if !asks.is_some_and(|now| ["1", "3"].contains(&now.trim())) {
            let why = match cc {
                Some("dctcp") => "dctcp is nothing without ECN at both ends",
                _ => "asks for ECN, so that a queue can mark instead of drop",
            };
            draft.sysctl("net.inet.tcp.ecn.enable", "1", why, "tcp(4), RFC 3168 §6.1.1");
        }
        if let Some(path) = Path::of(facts, requirements, requirements.rate, "") {
            buffers(&mut draft, &path);
        }
        if requirements.profile != Profile::Datacenter
            && matches!(draft.running("net.inet.tcp.pmtud_blackhole_detection"), Some("0") | None)
        {
            let why =
                "finds the path's MTU where the ICMP messages that tell it are lost, as in tunnels";
            draft.sysctl(
                "net.inet.tcp.pmtud_blackhole_detection",
                "1",
                why,
                "tcp(4), RFC 2923 §2.1",
            );
        }
    }
    if let Some(route) = &requirements.route {
        static_route(&mut draft, route)?;
    }
    if !draft.unknown.is_empty() {
        notes.push(format!(
            "left out, as the facts do not have these sysctls: {}; what `sysctl -a` prints has all of them",
            draft.unknown.join(", ")
        ));
    }
    notes.push(shaper(requirements));
    if requirements.profile == Profile::Datacenter {
        notes.push("DCTCP is for a network that you own, all of it (RFC 8257 §5)".to_owned());
    }
    draft.lines_of(
        LOADER,
        "the module is there before sysctl.conf asks for it",
        "loader.conf(5), mod_cc(4)",
    );
    draft.lines_of(SYSCTL, "the values are kept over a restart", "sysctl.conf(5)");
    let why = "packets to there are made no larger than what arrives";
    draft.lines_of(RC, why, "rc.conf(5), route(8)");
    let rate = requirements.rate.map_or(String::new(), |rate| format!(" at {}", rate_words(rate)));
    let plan = Plan {
        format: FORMAT,
        about: format!("{}{rate}, FreeBSD {}", requirements.profile.name(), facts.kernel.release),
        os: Os::FreeBsd,
        kernel: facts.kernel.release.clone(),
        aim: requirements.aim,
        evidence: Vec::new(),
        notes,
        changes: draft.changes,
    };
    plan.check()
        .map_err(|error| PlanError::Requirement(format!("the facts make no safe plan: {error}")))?;
    Ok(plan)
}

fn congestion_control(
    draft: &mut Draft<'_>,
    cc: &str,
    notes: &mut Vec<String>,
) -> Result<(), PlanError> {
    let facts = draft.facts;
    let availability = facts.congestion_controls.get(cc);
    let known =
        |availability| matches!(availability, Some(&(Availability::Ready | Availability::Module)));
    if !known(availability) {
        let all = facts.congestion_controls.iter();
        let of = |wanted: Availability| {
            let found = all.clone().filter(|(_, found)| **found == wanted);
            found.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
        };
        let hint = if cc == "bbr" { "; bbr is a TCP stack there, tcp_bbr(4)" } else { "" };
        return Err(PlanError::Requirement(format!(
            "--cc: FreeBSD {} does not have {cc}; net.inet.tcp.cc.available has {}, and there are modules for {}{hint}",
            facts.kernel.release,
            of(Availability::Ready),
            of(Availability::Module)
        )));
    }
    if draft.running(ALGORITHM) == Some(cc) {
        return Ok(());
    }
    let default = if major(facts) >= 14 { "cubic" } else { "newreno" };
    if cc != default {
        draft.lines.push((LOADER, format!("cc_{cc}_load=\"YES\"")));
    }
    if availability == Some(&Availability::Module) {
        notes.push(format!("without a restart: kldload cc_{cc} comes before the sysctl"));
    }
    let (why, source) = match cc {
        "dctcp" => ("answers how much is marked, not whether", "RFC 8257, cc_dctcp(4)"),
        "cubic" => ("fair to what the rest of the Internet uses", "RFC 9438, cc_cubic(4)"),
        _ => ("as it was asked for", "mod_cc(4)"),
    };
    draft.sysctl(ALGORITHM, cc, why, source);
    Ok(())
}

fn buffers(draft: &mut Draft<'_>, path: &Path) {
    let needed = path.buffer(2);
    let why = path.buffer_says();
    for key in ["net.inet.tcp.sendbuf_max", "net.inet.tcp.recvbuf_max"] {
        draft.at_least(key, needed, &why, "tcp(4), RFC 7323 §1.1");
    }
    // A ninth of it is taken to be the mbufs' own: 256 bytes beside each 2048.
    let all = needed.div_ceil(8) * 9;
    draft.at_least(
        MAX_SOCKBUF,
        all,
        "no socket's buffer can be larger than this allows",
        "tuning(7)",
    );
}

fn static_route(draft: &mut Draft<'_>, route: &StaticRoute) -> Result<(), PlanError> {
    let wrong = |message: String| Err(PlanError::Requirement(message));
    let StaticRoute { to, via, mtu } = route;
    let is_ipv4 = to.address().is_ipv4();
    if via.is_ipv4() != is_ipv4 {
        return wrong(format!("--via {via} is no address of the family of {to}"));
    }
    let (v6, net, least) =
        if is_ipv4 { ("", "-net ", LEAST_MTU.0) } else { ("ipv6_", "", LEAST_MTU.1) };
    if !(least..=65_535).contains(mtu) {
        return wrong(format!("--mtu {mtu}: from {least} to 65535"));
    }
    draft.lines.push((RC, format!("{v6}static_routes=\"${{{v6}static_routes}} dualq\"")));
    draft.lines.push((RC, format!("{v6}route_dualq=\"{net}{to} {via} -mtu {mtu}\"")));
    Ok(())
}

/// FreeBSD has no dualpi2; what comes nearest is not put in place unasked, for a firewall that is loaded shuts people out.
fn shaper(requirements: &Requirements) -> String {
    let Some(rate) = requirements.rate else {
        return "without --rate nothing is said of a shaper: the queue is wherever the bottleneck is".to_owned();
    };
    // Of the bottleneck's own rate the queue would stay there, as on Linux.
    let bits = below(rate).as_bits_per_second();
    let bandwidth = if bits.is_multiple_of(1_000_000) {
        format!("{}Mbit/s", bits / 1_000_000)
    } else {
        format!("{}Kbit/s", (bits / 1000).max(1))
    };
    let dev = requirements.dev.as_deref().unwrap_or("IFACE");
    format!(
        "FreeBSD has no dualpi2; dummynet(4) has fq_codel, lost is the L4S queue. By hand, if ipfw is in use or \
         net.inet.ip.fw.default_to_accept=1 is in {LOADER} (or it shuts you out): kldload dummynet; ipfw pipe 1 config bw {bandwidth}; \
         ipfw sched 1 config pipe 1 type fq_codel; ipfw queue 1 config sched 1; \
         ipfw add 100 queue 1 ip from any to any out xmit {dev}"
    )
}

/// Refuses lines that dualq does not write.
pub(super) fn check_lines(path: &str, lines: &[String]) -> Result<(), String> {
    if lines.len() > 64 {
        return Err(format!("{path}: that many lines are not dualq's"));
    }
    for line in lines {
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let quoted = || value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        let fine = match path {
            LOADER => {
                let name = key.strip_prefix("cc_").and_then(|key| key.strip_suffix("_load"));
                name.is_some_and(|name| !name.is_empty() && only(name, "_"))
                    && quoted() == Some("YES")
            }
            SYSCTL => {
                sysctl_key(key, Os::FreeBsd)?;
                sysctl_value(value)?;
                true
            }
            RC => match key {
                "static_routes" | "ipv6_static_routes" => {
                    quoted() == Some(&format!("${{{key}}} dualq"))
                }
                "route_dualq" | "ipv6_route_dualq" => {
                    quoted().is_some_and(|value| value.contains(" -mtu ") && only(value, " -./:"))
                }
                _ => false,
            },
            _ => return Err(format!("{path:?} is no file that a plan for FreeBSD writes")),
        };
        if !fine {
            return Err(format!("{path}: {line:?} is no line that dualq writes"));
        }
    }
    Ok(())
}
