//! What applying asks of a plan, beyond [`Plan::check`].

use std::net::IpAddr;

use dualq_qdisc::{Spec, grammar};

use super::ApplyError;
use crate::Plan;
use crate::facts::Os;
use crate::plan::What;

/// Refuses a plan that asks for what no plan of dualq's asks for, or for two things at once.
pub(crate) fn check(plan: &Plan) -> Result<(), ApplyError> {
    plan.check().map_err(|error| ApplyError::Plan(format!("the plan: {error}")))?;
    if plan.os != Os::Linux {
        return Err(ApplyError::Plan(
            "the plan is not for Linux, and dualq applies no other".to_owned(),
        ));
    }
    let mut names: Vec<String> = plan.changes.iter().map(|change| name(&change.what)).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(ApplyError::Plan(format!("the plan changes {} twice", pair[0]))),
        None => Ok(()),
    }
}

/// What to call what a change is about.
#[must_use]
pub fn name(what: &What) -> String {
    match what {
        What::Module { module } => format!("the module {module}"),
        What::Sysctl { key, .. } => key.clone(),
        What::Qdisc { dev, .. } => format!("the qdisc of {dev}"),
        What::Route { to, .. } => format!("the route to {to}"),
        What::File { path, .. } | What::Lines { path, .. } => path.clone(),
    }
}

/// What a line of tc's words asks for.
pub(crate) fn line(text: &str) -> Result<Spec, ApplyError> {
    let parsed = grammar::parse(text).map_err(|error| ApplyError::Plan(error.to_string()))?;
    Ok(parsed.spec)
}

/// An address and how many bits of it count.
pub(crate) fn destination(to: &str) -> Result<(IpAddr, u8), ApplyError> {
    let parse = || {
        let (address, prefix) = to.split_once('/')?;
        Some((address.parse().ok()?, prefix.parse().ok()?))
    };
    match parse() {
        // A route to everybody is not one more.
        Some((address, prefix)) if prefix > 0 => Ok((address, prefix)),
        _ => Err(ApplyError::Plan(format!(
            "the plan has a route to {to:?}: name a part of the network"
        ))),
    }
}

/// Permissions, which are in octal.
pub(crate) fn mode(text: &str) -> Result<u32, ApplyError> {
    u32::from_str_radix(text, 8)
        .map_err(|_| ApplyError::Plan(format!("the plan has a file with mode {text:?}")))
}
