//! Sysctls.

use super::super::{Step, What};
use super::{Judge, Judgement, Verdict, other_system, qdisc, some};
use crate::facts::{Availability, Os};
use crate::knowledge::{self, Effect, Known, LEAST_UNSENT, Refused, WAKE};

/// Limits: a lower one does nothing for latency.
const LIMITS: [&str; 10] = [
    "net.core.somaxconn",
    "net.core.optmem_max",
    "net.core.netdev_max_backlog",
    "net.core.netdev_budget",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_max_orphans",
    "net.netfilter.nf_conntrack_max",
    "kern.ipc.maxsockbuf",
    "kern.ipc.soacceptqueue",
];
/// 16 MiB: what four connections at full speed over a continent take.
const LEAST_PAGES: u64 = 4096;
/// 64 GiB: nobody who means pages writes more.
const MOST_PAGES: u64 = 1 << 24;
/// A browser or a proxy has hundreds of connections, and each that it closed keeps its port for a minute.
const LEAST_PORTS: u32 = 1000;
const ECN: &str = "net.ipv4.tcp_ecn";
const CONTROL: &str = "net.ipv4.tcp_congestion_control";
const FREEBSD_CONTROL: &str = "net.inet.tcp.cc.algorithm";

impl Judge<'_> {
    pub(super) fn sysctl(&self, step: &Step, key: &str, value: &str, commented: bool) -> Judgement {
        let (os, version) = (self.facts.os, self.facts.kernel.version());
        let (other, name) = match os {
            Os::Linux => (Os::FreeBsd, "FreeBSD"),
            Os::FreeBsd => (Os::Linux, "Linux"),
        };
        let Some(known) = knowledge::of(os, key) else {
            if knowledge::belongs_to(other, key) && !knowledge::belongs_to(os, key) {
                return other_system(name);
            }
            return self.unknown_sysctl(key, value);
        };
        if let Some((gone, became)) = known.gone
            && version >= gone
        {
            let (major, minor) = gone;
            let why = format!("It {}. Since {major}.{minor} {became}.", known.does);
            return Judgement::new(Verdict::Obsolete, why, known.source);
        }
        if version != (0, 0) && version < known.since && !self.facts.sysctls.contains_key(key) {
            let ((major, minor), release) = (known.since, &self.facts.kernel.release);
            let why =
                format!("The kernel {release} does not have it: it came with {major}.{minor}.");
            return Judgement::new(Verdict::WrongHere, why, known.source);
        }
        if let Some(later) = self.set_later(step, key, value) {
            let why = format!("Line {later} sets it again, to another value.");
            return Judgement::new(Verdict::Harmless, why, "sysctl.d(5): the last setting counts");
        }
        let is_number = value.starts_with(|c: char| c.is_ascii_digit());
        if commented && os == Os::Linux && !is_number {
            let why = "What stands behind the value is no comment there but a part of it, and the kernel \
                       refuses such a name. Give the comment a line of its own.";
            return Judgement::new(Verdict::WrongHere, why, "sysctl.conf(5)");
        }
        let aside = if commented && os == Os::Linux {
            "The comment behind it is passed to the kernel too, which stops at the number."
        } else {
            ""
        };
        let judgement = self
            .refused(known, value, commented)
            .or_else(|| self.special(known, value))
            .unwrap_or_else(|| self.plain(known, value));
        let overridden = self.overridden(key, value, judgement.verdict);
        judgement.and(&overridden).and(aside)
    }

    /// What a sysctl runs with.
    pub(super) fn running(&self, key: &str) -> Option<String> {
        let value = self.facts.sysctls.get(key)?;
        Some(value.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    fn unknown_sysctl(&self, key: &str, value: &str) -> Judgement {
        match self.running(key) {
            Some(running) if running == value => {
                let why = "dualq does not know what it does; it is set so already.";
                Judgement::new(Verdict::Applied, why, "this machine's sysctls")
            }
            Some(running) => {
                let why = format!("dualq does not know what it does. It is {running} now.");
                Judgement::new(Verdict::Unknown, why, "this machine's sysctls")
            }
            None => {
                let why = "dualq does not know it.";
                Judgement::new(Verdict::Unknown, why, "none")
            }
        }
    }

    /// The line that sets the same to another value.
    fn set_later(&self, step: &Step, key: &str, value: &str) -> Option<u32> {
        let steps = self.recipe.steps.iter();
        let later = steps.skip_while(|other| !std::ptr::eq(*other, step)).skip(1);
        let last = later.filter_map(|other| match &other.what {
            What::Sysctl { key: same, value, .. } if same == key => Some((other.line, value)),
            _ => None,
        });
        last.last().filter(|(_, last)| *last != value).map(|(line, _)| line)
    }

    /// What is to be said if a file of this machine sets it to something else.
    fn overridden(&self, key: &str, value: &str, verdict: Verdict) -> String {
        let set = self.facts.settings.iter().rfind(|setting| setting.key == key);
        match set {
            Some(set) if set.value != value && verdict >= Verdict::BearsOnLatency => format!(
                "But {}, line {}, sets it to {}: of two files the one that is read last counts.",
                set.file, set.line, set.value
            ),
            _ => String::new(),
        }
    }

    /// What the kernel does not take, or not as it reads.
    fn refused(&self, known: &Known, value: &str, commented: bool) -> Option<Judgement> {
        let judgement = |verdict, why| Some(Judgement::new(verdict, why, known.source));
        if value.is_empty() || value.contains(['$', '<', '{', '%']) {
            return judgement(Verdict::Unknown, "Nothing tells which value it gets.".to_owned());
        }
        let count = known.takes.count;
        if count == 0 {
            return None;
        }
        let places = if count == 1 { "a number" } else { "numbers" };
        let version = self.facts.kernel.version();
        if known.key == ECN && ["3", "4", "5"].contains(&value) && version < (6, 18) {
            let why = "Values above 2 are about AccECN, which came with 6.18: before that a kernel refuses them, or grants \
                       classic ECN to those who ask for it.";
            return judgement(Verdict::WrongHere, why.to_owned());
        }
        match known.takes.check(value, version) {
            Err(Refused::NoNumber) => {
                let why = format!("The kernel refuses it: it takes {places}.");
                return judgement(Verdict::WrongHere, why);
            }
            // What FreeBSD's take differs from version to version, and is not known.
            Err(Refused::Beyond(least, most)) if self.facts.os == Os::Linux => {
                let why =
                    format!("The kernel refuses it: it takes {places} from {least} to {most}.");
                return judgement(Verdict::WrongHere, why);
            }
            Err(Refused::Beyond(..)) | Ok(_) => {}
        }
        let given = value.split_whitespace().count();
        if given < count {
            let why = format!(
                "It takes {count} numbers. Of {given} the kernel sets the first, and leaves the rest as it is."
            );
            return judgement(Verdict::WrongHere, why);
        }
        (given > count && !commented).then(|| {
            let why = format!(
                "It takes {places}{}: the kernel reads no further.",
                match count {
                    1 => String::new(),
                    count => format!(", {count} of them"),
                }
            );
            Judgement::new(Verdict::WrongHere, why, known.source)
        })
    }

    /// What holds for any sysctl.
    fn plain(&self, known: &Known, value: &str) -> Judgement {
        let (key, source) = (known.key, known.source);
        let running = self.running(key);
        let default = known.default_in(self.facts.kernel.version());
        let same = running.as_deref() == Some(value);
        let band = known.band(value);
        let says = band.map_or(String::new(), |band| format!("; with {value}, {}", band.how));
        if band.is_some_and(|band| band.effect == Effect::Harms) {
            let now = if same { " It is set so already." } else { "" };
            let why = format!("It {}{says}.{now}", known.does);
            return Judgement::new(Verdict::Harmful, why, source);
        }
        if same {
            let why = if default == Some(value) {
                "It is so already, and the default."
            } else {
                "It is so already."
            };
            return Judgement::new(Verdict::Applied, why, source);
        }
        let was = running.as_deref().or(default);
        if LIMITS.contains(&key)
            && let (Some(was), Ok(now)) =
                (was.and_then(|was| was.parse::<u64>().ok()), value.parse::<u64>())
            && now < was
        {
            let why = format!("It {}. This lowers it from {was} to {now}.", known.does);
            return Judgement::new(Verdict::WrongHere, why, source);
        }
        match (running.as_deref(), default) {
            (None, Some(default)) if default == value => {
                let why = format!("It {}; {value} is the default anyway.", known.does);
                Judgement::new(Verdict::Harmless, why, source)
            }
            (was, default) => {
                let was = was.or(default).map_or(String::new(), |was| format!(" It is {was} now."));
                let neutral = band.is_some_and(|band| band.effect == Effect::Neutral);
                let (verdict, effect) = if known.latency && !neutral {
                    (Verdict::BearsOnLatency, "")
                } else {
                    (Verdict::Harmless, " That has no effect on latency under load.")
                };
                Judgement::new(verdict, format!("It {}{says}.{effect}{was}", known.does), source)
            }
        }
    }

    /// What only holds for some.
    fn special(&self, known: &Known, value: &str) -> Option<Judgement> {
        match known.key {
            "net.core.default_qdisc" => Some(self.default_qdisc(known, value)),
            CONTROL | FREEBSD_CONTROL => self.control(known, value),
            ECN => self.ecn(value),
            "net.ipv4.tcp_recovery" if value == "0" && self.facts.kernel.version() >= (6, 17) => {
                let why = "Since 6.17 RACK is the only way in which lost packets are found; 0 changes nothing.";
                Some(Judgement::new(Verdict::Obsolete, why, known.source))
            }
            "net.ipv4.tcp_rmem" | "net.ipv4.tcp_wmem" => self.buffers(known, value),
            "net.ipv4.tcp_notsent_lowat" => self.unsent(known, value),
            "net.ipv4.tcp_mem" | "net.ipv4.udp_mem" => self.memory(known, value),
            "net.ipv4.ip_local_port_range" => self.ports(known, value),
            "net.netfilter.nf_conntrack_max" => {
                let (conntrack, most) = (self.facts.conntrack?, value.parse::<u64>().ok()?);
                (most < conntrack.count).then(|| {
                    let why = format!("It {}. {} are tracked now.", known.does, conntrack.count);
                    Judgement::new(Verdict::Harmful, why, known.source)
                })
            }
            _ => None,
        }
    }

    fn control(&self, known: &Known, value: &str) -> Option<Judgement> {
        let wrong = |why: String| Some(Judgement::new(Verdict::WrongHere, why, known.source));
        let (release, version) = (&self.facts.kernel.release, self.facts.kernel.version());
        let available = self.facts.congestion_controls.get(value).copied();
        let linux = self.facts.os == Os::Linux;
        if available == Some(Availability::Absent) {
            return wrong(format!(
                "The kernel {release} has no congestion control {value}: setting it fails."
            ));
        }
        if linux && value == "bbr" && version != (0, 0) && version < (4, 9) {
            return wrong(format!("BBR came with Linux 4.9; this is {release}."));
        }
        if !linux && available == Some(Availability::Module) && !self.loads(&format!("cc_{value}"))
        {
            return wrong(format!(
                "It fails until the module cc_{value} is loaded, which the recipe does not do."
            ));
        }
        if value == "dctcp" || value == "prague" {
            return Some(self.scalable(known, value));
        }
        if linux && value == "bbr" && version != (0, 0) && version < (4, 13) && !self.has_fq() {
            return wrong("Before 4.13 only the queue discipline fq paces, and without pacing BBR fills queues.".to_owned());
        }
        (self.running(known.key).as_deref() != Some(value)).then(|| {
            let running = self.running(known.key).unwrap_or_else(|| "not known".to_owned());
            let why = format!(
                "It {}: of what this machine sends, not of what it receives. It is {running} now.",
                known.does
            );
            Judgement::new(Verdict::BearsOnLatency, why, known.source)
        })
    }

    /// DCTCP and Prague live on marks.
    fn scalable(&self, known: &Known, value: &str) -> Judgement {
        let linux = self.facts.os == Os::Linux;
        let why = if linux {
            format!(
                "{value} is for networks whose queues mark early and whose hosts all use it. On the internet \
                 hardly a queue does, and it is Reno; where an ordinary queue marks, it takes more than its share."
            )
        } else {
            let ecn = self.value_after("net.inet.tcp.ecn.enable");
            let passive = ecn.as_deref() != Some("1");
            let also = if passive {
                " And net.inet.tcp.ecn.enable=1 is missing: connections from here do not negotiate ECN at all."
            } else {
                ""
            };
            format!(
                "{value} is for networks whose queues mark early. Over the internet hardly a queue does, and it \
                 is NewReno, not the answer to a narrow link.{also}"
            )
        };
        let source =
            if linux { "RFC 8257 section 1" } else { "RFC 8257 section 1, FreeBSD cc_dctcp(4)" };
        Judgement::new(Verdict::WrongHere, why, source).and(
            if self.running(known.key).as_deref() == Some(value) {
                "It is set so already."
            } else {
                ""
            },
        )
    }

    /// Less than goes out while a sleeping program wakes up leaves the link empty meanwhile.
    fn unsent(&self, known: &Known, value: &str) -> Option<Judgement> {
        let (link, bytes) = (self.link?, value.parse::<u64>().ok()?);
        let least = u128::from(link.rate.as_bits_per_second()) * WAKE.as_millis() / 8_000;
        (u128::from(bytes) < least && bytes >= LEAST_UNSENT).then(|| {
            let why = format!(
                "It {}. At {} more than {value} bytes go out in the {} ms that a program may take to wake up and write \
                 again: the link is empty meanwhile.",
                known.does,
                link.rate,
                WAKE.as_millis()
            );
            Judgement::new(Verdict::Harmful, why, known.source)
        })
    }

    /// Memory of all sockets, in pages.
    fn memory(&self, known: &Known, value: &str) -> Option<Judgement> {
        let most: u64 = value.split_whitespace().last()?.parse().ok()?;
        if most < LEAST_PAGES {
            let why = format!(
                "It {}. {most} pages are {} kB for all of them together: then what arrives is dropped, and nothing more \
                 can be sent.",
                known.does,
                most * 4
            );
            return Some(Judgement::new(Verdict::Harmful, why, known.source));
        }
        (most > MOST_PAGES).then(|| {
            let why = format!(
                "It {}. These look like bytes, and as pages they are no limit at all.",
                known.does
            );
            Judgement::new(Verdict::WrongHere, why, known.source)
        })
    }

    /// Two ends of a range.
    fn ports(&self, known: &Known, value: &str) -> Option<Judgement> {
        let mut ends = value.split_whitespace().map(str::parse::<u32>);
        let (Some(Ok(first)), Some(Ok(last))) = (ends.next(), ends.next()) else { return None };
        if last < first {
            let why = "The kernel refuses it: the second number is less than the first.";
            return Some(Judgement::new(Verdict::WrongHere, why, known.source));
        }
        let ports = last - first + 1;
        (ports < LEAST_PORTS).then(|| {
            let why = format!(
                "It {}. No more than {ports} connections to one address and port can then be open or in TIME-WAIT.",
                known.does
            );
            Judgement::new(Verdict::Harmful, why, known.source)
        })
    }

    /// What a sysctl is once the recipe is applied.
    fn value_after(&self, key: &str) -> Option<String> {
        let set = self.recipe.steps.iter().rev().find_map(|step| match &step.what {
            What::Sysctl { key: set, value, .. } if set == key => Some(value.clone()),
            _ => None,
        });
        set.or_else(|| self.running(key))
    }

    fn has_fq(&self) -> bool {
        let set = self.value_after("net.core.default_qdisc").as_deref() == Some("fq");
        (set && self.missing_qdisc("fq").is_none())
            || self.qdiscs().any(|(_, words)| qdisc::kind(words) == "fq")
    }

    fn ecn(&self, value: &str) -> Option<Judgement> {
        let asks = ["1", "3", "4"].contains(&value);
        let control = self.congestion_control()?;
        if asks && control == "bbr" {
            let why = "BBR (version 1) does not answer marks: a queue that marks instead of dropping does not \
                       slow it down. Its packets carry ECT(0), so DualPI2 keeps them in its classic queue.";
            return Some(Judgement::new(
                Verdict::WrongHere,
                why,
                "RFC 9331 section 4.1, RFC 9332 section 2.3",
            ));
        }
        None
    }

    fn default_qdisc(&self, known: &Known, value: &str) -> Judgement {
        let source = known.source;
        if let Some(refused) = self.missing_qdisc(value) {
            return refused;
        }
        let others: Vec<String> = self
            .facts
            .interfaces
            .iter()
            .filter(|interface| {
                interface.up && !self.qdiscs().any(|(dev, _)| dev == Some(&interface.name))
            })
            .filter_map(|interface| {
                let root = interface.qdiscs.first()?;
                // Below mq and without a queue there is no telling what the default would change.
                let leaf = interface.qdiscs.iter().find(|qdisc| qdisc.kind != "mq").unwrap_or(root);
                (leaf.kind != value && leaf.kind != "noqueue")
                    .then(|| format!("{} has {}", interface.name, leaf.kind))
            })
            .collect();
        let same = self.running(known.key).as_deref() == Some(value);
        match (others.is_empty(), same) {
            (true, true) => Judgement::new(Verdict::Applied, "It is so already.", source),
            (true, false) => {
                let why = "It is for interfaces that come up later; those that are up, the recipe sees to by tc.";
                Judgement::new(Verdict::Harmless, why, source)
            }
            (false, _) => {
                let why = format!(
                    "It does nothing to interfaces that are up: {}. They need `tc qdisc replace dev … root {value}`, \
                     or a new start of the machine.",
                    some(&others)
                );
                Judgement::new(Verdict::WrongHere, why, source)
            }
        }
    }
}
