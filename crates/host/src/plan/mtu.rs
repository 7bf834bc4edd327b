//! Plans against paths that swallow large packets.

use super::linux::{Draft, sentence};
use super::sysctls::Wanted;
use super::{Aim, Destination, Plan, PlanError, What, boot};
use crate::Facts;

/// A destination on whose path larger packets vanish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmallPath {
    /// Where to.
    pub to: Destination,
    /// The interface by which packets go there.
    pub dev: String,
    /// The largest that arrive, in bytes.
    pub mtu: u32,
}

impl Plan {
    /// A plan that gives packets to each of `paths` a route with its MTU, and has it put back after a restart or when its interface was
    /// down. `about` is what it is for; `state` is the folder of records, if it is not the usual one.
    ///
    /// # Errors
    /// [`PlanError::Requirement`] if no route can be so, or `state` cannot stand in a rule.
    pub fn of_small_paths(
        facts: &Facts,
        state: Option<&str>,
        about: String,
        paths: &[SmallPath],
    ) -> Result<Self, PlanError> {
        let mut draft = Draft::new(facts, state)?;
        for SmallPath { to, mtu, .. } in paths {
            let why = format!("packets over {mtu} bytes to {to} vanish, and no ICMP says so");
            let source = "RFC 2923 §2.1; ip-route(8), mtu";
            draft.push(What::Route { to: *to, mtu: *mtu }, why, source);
        }
        draft.notes.push(
            "this helps what this machine sends to that host, and what TCP sends back".to_owned(),
        );
        for SmallPath { to, dev, mtu } in paths {
            let at = boot::At { dev, part: boot::Part::Route { to: *to } };
            let about = sentence(&format!("to {to}, larger packets vanish"));
            draft.call_at_boot(at, &boot::mtu_line(*mtu), &about);
        }
        draft.plan(about, Aim::default(), Vec::new())
    }

    /// A plan by which TCP finds out by itself where larger packets vanish. `about` is what it is for.
    ///
    /// # Errors
    /// [`PlanError::Requirement`] if the facts make no safe plan.
    pub fn of_mtu_probing(facts: &Facts, about: String) -> Result<Self, PlanError> {
        let mut draft = Draft::new(facts, None)?;
        let wanted = Wanted::of(
            facts,
            "net.ipv4.tcp_mtu_probing",
            &|now| now != "0",
            "1",
            "TCP sends smaller segments once several were lost in a row".to_owned(),
            "RFC 4821; Linux, Documentation/networking/ip-sysctl.rst, tcp_mtu_probing",
        );
        draft.sysctls(&Vec::from_iter(wanted), false);
        draft.notes.push(
            "this helps what this machine's TCP sends; each connection through a black hole still hangs for some seconds first"
                .to_owned(),
        );
        draft.plan(about, Aim::default(), Vec::new())
    }
}
