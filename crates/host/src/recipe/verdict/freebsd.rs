//! FreeBSD's modules and routes.

use super::super::{Step, What};
use super::{Judge, Judgement, Verdict, other_system};
use crate::facts::Availability;

impl Judge<'_> {
    /// Whether the recipe loads a module.
    pub(super) fn loads(&self, module: &str) -> bool {
        self.recipe
            .steps
            .iter()
            .any(|step| matches!(&step.what, What::Module { name, .. } if name == module))
    }

    pub(super) fn freebsd_module(&self, name: &str, at_boot: bool) -> Judgement {
        let page = format!("FreeBSD {name}(4), loader.conf(5)");
        if name.starts_with("sch_") || name == "tcp_cubic" {
            return other_system("Linux");
        }
        let available = match name.strip_prefix("cc_").or_else(|| name.strip_prefix("tcp_")) {
            Some(cc) => {
                self.facts.congestion_controls.get(cc).copied().unwrap_or(Availability::Unknown)
            }
            None => {
                let why = "dualq knows modules of congestion controls only.";
                return Judgement::new(Verdict::Unknown, why, "loader.conf(5)");
            }
        };
        let line = format!("{name}_load=\"YES\"");
        let listed = self
            .facts
            .files
            .get("/boot/loader.conf")
            .is_some_and(|file| file.content.lines().any(|there| there.trim() == line));
        match available {
            Availability::Absent => {
                let why = format!("This FreeBSD has no module {name}.");
                Judgement::new(Verdict::WrongHere, why, "this machine's kernel")
            }
            _ if at_boot && listed => {
                Judgement::new(Verdict::Applied, "It is in /boot/loader.conf already.", &page)
            }
            Availability::Ready if !at_boot => {
                Judgement::new(Verdict::Applied, "It is loaded, or in the kernel.", &page)
            }
            _ => {
                let what = if at_boot {
                    "From the next start on it is there"
                } else {
                    "It is there until the next start"
                };
                let why =
                    format!("{what}; the congestion control is one that can be chosen, no more.");
                Judgement::new(Verdict::BearsOnLatency, why, &page)
            }
        }
    }

    /// A route of rc.conf or of FreeBSD's route(8).
    pub(super) fn freebsd_route(
        &self,
        step: &Step,
        properties: &[(String, String)],
        listed: Option<&(String, bool)>,
    ) -> Judgement {
        if let Some((name, false)) = listed {
            let why = format!(
                "Nothing happens unless static_routes lists {name}, which the recipe does not do."
            );
            return Judgement::new(Verdict::WrongHere, why, "FreeBSD rc.conf(5)");
        }
        let already = self
            .facts
            .files
            .get("/etc/rc.conf")
            .is_some_and(|file| file.content.lines().any(|line| line.trim() == step.text));
        if already {
            return Judgement::new(
                Verdict::Applied,
                "It is in /etc/rc.conf already.",
                "FreeBSD rc.conf(5)",
            );
        }
        let mtu = properties.iter().find(|(key, _)| key == "mtu").map(|(_, mtu)| mtu);
        if let Some(mtu) = mtu
            && mtu.parse::<u32>().is_err()
        {
            let why = format!("route(8) refuses it: {mtu:?} is no size of a packet.");
            return Judgement::new(Verdict::WrongHere, why, "FreeBSD route(8)");
        }
        let size = mtu.map_or(String::new(), |mtu| {
            format!(
                "Packets to there have {mtu} bytes at most, so that what a tunnel adds still fits. "
            )
        });
        let neighbour = properties.iter().find(|(key, _)| key == "interface").map(|(_, dev)| {
            format!(
                "-interface says that all of it is on {dev} itself, without a router: right where IPsec takes the \
                 packets before that, wrong elsewhere."
            )
        });
        let neighbour = neighbour.unwrap_or_default();
        if size.is_empty() && neighbour.is_empty() {
            let why = "It says where packets go; it has next to no effect on latency under load.";
            return Judgement::new(Verdict::Harmless, why, "FreeBSD route(8), rc.conf(5)");
        }
        let why = format!("{size}{neighbour}");
        Judgement::new(Verdict::BearsOnLatency, why.trim_end(), "FreeBSD route(8), rc.conf(5)")
    }
}
