//! A cure as a plan that `dualq apply` takes.

use dualq_host::Plan;
use dualq_host::plan::{Destination, SmallPath};
use dualq_mtu::probe::Survey;

use crate::cli::Failure;
use crate::cli::mtu::CureName;
use crate::doctor;

/// What this machine can do against the black holes among `surveys`; `None` if there is none. `state` is where it is to be recorded.
pub(super) fn make(
    surveys: &[Survey],
    cure: CureName,
    state: Option<&str>,
) -> Result<Option<Plan>, Failure> {
    let holes = || surveys.iter().filter(|survey| survey.verdict.is_black_hole());
    if holes().next().is_none() {
        return Ok(None);
    }
    let hosts: Vec<String> = holes().map(|survey| survey.host.to_string()).collect();
    let hosts = hosts.join(" and ");
    let facts = doctor::here()?;
    let plan = match cure {
        CureName::Route => {
            let paths: Vec<SmallPath> = holes().filter_map(small_path).collect();
            let about = format!("smaller packets to {hosts}, on whose path larger ones vanish");
            Plan::of_small_paths(&facts, state, about, &paths)
        }
        CureName::Probing => Plan::of_mtu_probing(
            &facts,
            format!("TCP that finds out by itself where larger packets vanish, as to {hosts}"),
        ),
    };
    // No route can have a very small MTU.
    plan.map(Some).map_err(|error| Failure::Run(format!("{error}; see --cure for another plan")))
}

fn small_path(survey: &Survey) -> Option<SmallPath> {
    let mtu = survey.verdict.mtu(survey.local.mtu)?.into();
    Some(SmallPath { to: Destination::host(survey.host), dev: survey.local.interface.clone(), mtu })
}
