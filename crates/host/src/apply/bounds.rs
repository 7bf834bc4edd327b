//! What applying asks of a plan, beyond [`Plan::check`].

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
        What::Qdisc { dev, parent: None, .. } => format!("the qdisc of {dev}"),
        What::Qdisc { dev, parent: Some(class), .. } => {
            format!("the qdisc below class {class} of {dev}")
        }
        What::Ingress { dev, .. } => format!("what arrives at {dev}"),
        What::Offload { dev, key, .. } => format!("{key} of {dev}"),
        What::Route { to, .. } => format!("the route to {to}"),
        What::File { path, .. } | What::Lines { path, .. } => path.clone(),
    }
}
