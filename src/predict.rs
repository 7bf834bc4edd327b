//! What a plan will bring: the model with the queue as it is, and as it will be.

use std::time::Duration;

use dualq_host::Facts;
use dualq_host::facts::Os;
use dualq_host::plan::{Outlook, Wishes, outlook};
use dualq_qdisc::grammar;
use dualq_scenario::{CONGESTION_CONTROLS, Plan};
use dualq_units::{Rate, tc_time};

use crate::cli::Failure;
use crate::run::{Comparison, Run};
use crate::world::World;

/// What came of it.
pub(crate) struct Prediction {
    pub(crate) comparison: Comparison,
    /// What is assumed, and what could not be simulated: a line each.
    pub(crate) remarks: Vec<String>,
}

/// Where the bottleneck is somebody else's, its queue is not known. This many packets are Linux's default, and not unusual.
const UNKNOWN_QUEUE: &str = "pfifo limit 1000";
/// What is simulated is cut so that it takes seconds.
const MOST_PACKETS: u64 = 3_000_000;
const PACKET_BITS: u64 = 12_000;
const SEED: u64 = 1;

pub(crate) fn predict(facts: &Facts, wishes: &Wishes) -> Result<Prediction, Failure> {
    if facts.os != Os::Linux {
        let message = "--predict: the model has Linux's TCP, not FreeBSD's";
        return Err(Failure::Usage(message.to_owned()));
    }
    let outlook = outlook(facts, wishes)?;
    let measured = facts.connections.as_ref().and_then(|all| all.min_rtt.as_deref());
    let measured = measured.and_then(|rtt| tc_time::parse(rtt).ok());
    let mut remarks = Vec::new();
    let rtt = match (wishes.rtt, measured) {
        (Some(rtt), _) => rtt,
        (None, Some(rtt)) => {
            remarks.push(
                "The round-trip time is the median of what the existing connections have seen."
                    .to_owned(),
            );
            rtt
        }
        (None, None) => {
            let message = "--predict needs a round-trip time: give --rtt, there are no connections to take it from";
            return Err(Failure::Usage(message.to_owned()));
        }
    };
    let Outlook { rate, now, after, cc, ecn } = outlook;
    if now.is_none() {
        remarks.push(format!(
            "Now, the queue is taken to be in the provider's shaper, and as deep as `{UNKNOWN_QUEUE}`: what it really is cannot be seen from here."
        ));
    }
    let now = now.unwrap_or_else(|| UNKNOWN_QUEUE.to_owned());
    let base = scenario("", &now, rate, rtt, "cubic", false)?;
    let mut runs = Vec::new();
    for (when, line, cc, ecn) in [("now", now, cc.0, ecn.0), ("after", after, cc.1, ecn.1)] {
        let parsed = grammar::parse(&line).map_err(|error| Failure::Run(error.to_string()))?;
        // The link has the shaper's rate, so that its leaf alone says how packets wait.
        let leaf = parsed.spec.leaf().cloned().unwrap_or(parsed.spec);
        let missing = leaf.unmodelled().or_else(|| {
            let known = CONGESTION_CONTROLS.contains(&cc.as_str());
            (!known).then_some(cc.as_str())
        });
        if let Some(missing) = missing {
            remarks
                .push(format!("Not simulated: `{when}`, for the model does not have {missing}."));
            continue;
        }
        let leaf = leaf.to_string();
        let plan = scenario(&format!("{when}: {leaf}, {cc}"), &leaf, rate, rtt, &cc, ecn)?;
        let variant = plan.variants().into_iter().next();
        let mut variant = variant.expect("a plan without lists has one variant");
        variant.settings = vec![("plan".to_owned(), format!("{when}: {leaf}, {cc}"))];
        let outcome = World::Model.run(&variant.scenario, SEED, &mut |_| ())?;
        runs.push(Run { variant, outcomes: vec![outcome] });
    }
    let comparison = Comparison { plan: base, seed: SEED, worlds: vec![World::Model], runs };
    Ok(Prediction { comparison, remarks })
}

/// One large transfer, and ssh beside it.
fn scenario(
    name: &str,
    qdisc: &str,
    rate: Rate,
    rtt: Duration,
    cc: &str,
    ecn: bool,
) -> Result<Plan, Failure> {
    let bits = rate.as_bits_per_second();
    let seconds = (MOST_PACKETS * PACKET_BITS).checked_div(bits).unwrap_or(0).clamp(6, 40);
    let warmup = seconds / 4;
    let (nanos, milliseconds) = (rtt.as_nanos(), rtt.as_secs_f64() * 1e3);
    let source = format!(
        "name = \"prediction\"\n\
         about = \"one large transfer and ssh beside it, at {rate} and {milliseconds} ms\"\n\
         duration = \"{seconds}s\"\nwarmup = \"{warmup}s\"\n\
         [link]\nrate = \"{bits}bit\"\nrtt = \"{nanos}ns\"\nqdisc = \"{qdisc}\"\n\
         [[flow]]\ncc = \"{cc}\"\necn = {ecn}\n"
    );
    let context = if name.is_empty() { String::new() } else { format!("{name}: ") };
    Plan::parse(&source).map_err(|error| Failure::Usage(format!("{context}{}", error.message)))
}
