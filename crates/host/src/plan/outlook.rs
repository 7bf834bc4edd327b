//! What a plan changes for a large transfer, for whoever wants to simulate it.

use dualq_units::Rate;

use super::linux::{ECN, asks_for_ecn, decide};
use super::sysctls::plain;
use super::{PlanError, Wishes};
use crate::Facts;

/// What a large transfer meets at the bottleneck, now and after the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// The bottleneck's rate.
    pub rate: Rate,
    /// The kind of queue discipline that packets wait in now; `None` if they wait elsewhere, in what nobody here can see.
    pub now: Option<String>,
    /// The line that is planned, or the kind that stays.
    pub after: String,
    /// The congestion control now and after.
    pub cc: (String, String),
    /// Whether ECN is asked for, now and after.
    pub ecn: (bool, bool),
}

/// What a plan would change at the bottleneck.
///
/// # Errors
/// As [`Plan::make`](super::Plan::make); and if no rate is known.
pub fn outlook(facts: &Facts, wishes: &Wishes) -> Result<Outlook, PlanError> {
    let decision = decide(facts, wishes)?;
    let rate = decision.rate.ok_or_else(|| {
        PlanError::Wish("give a --rate: without one there is no bottleneck to simulate".to_owned())
    })?;
    let kinds = || decision.interface.qdiscs.iter().map(|qdisc| qdisc.kind.as_str());
    let shaper = kinds().any(|kind| ["htb", "tbf", "cake"].contains(&kind));
    let present = kinds().rfind(|kind| !["htb", "tbf", "mq"].contains(kind));
    let present = present.map(str::to_owned);
    let running = |key: &str| facts.sysctls.get(key).map(|value| plain(value));
    let planned = |key: &str| {
        let wanted = decision.wanted.iter().find(|wanted| wanted.key == key);
        wanted.map(|wanted| wanted.value.clone()).or_else(|| running(key))
    };
    let cc = |cc: Option<String>| cc.unwrap_or_else(|| "cubic".to_owned());
    Ok(Outlook {
        rate,
        now: present.clone().filter(|_| shaper || !decision.queue.shaped),
        after: decision.queue.line.or(present).unwrap_or_else(|| "pfifo".to_owned()),
        cc: (cc(running("net.ipv4.tcp_congestion_control")), cc(decision.cc)),
        ecn: (asks_for_ecn(running(ECN).as_ref()), asks_for_ecn(planned(ECN).as_ref())),
    })
}
