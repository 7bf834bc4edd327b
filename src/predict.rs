//! What a plan will bring: the model with the queue as it is, and as it will be.

use std::time::Duration;

use dualq_host::Facts;
use dualq_host::facts::Os;
use dualq_host::plan::{Outlook, Wishes, outlook};
use dualq_qdisc::grammar;
use dualq_scenario::{CONGESTION_CONTROLS, Plan};
use dualq_units::Rate;

use crate::cli::Failure;
use crate::run::{Comparison, Run};
use crate::world::World;

/// What came of it.
pub(crate) struct Prediction {
    pub(crate) comparison: Comparison,
    /// What is assumed, and what could not be simulated: a line each.
    pub(crate) remarks: Vec<String>,
}

/// Where the bottleneck is somebody else's, its queue is not known. A thousand full packets are Linux's default, and not
/// unusual; in bytes, for what is an aggregate on this machine is none there.
const UNKNOWN_QUEUE: &str = "bfifo limit 1514000";
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
    let mut remarks = Vec::new();
    let rtt = match (wishes.rtt, facts.min_rtt()) {
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
    remarks.push(match &now {
        Some(kind) => format!("Now, packets wait in {kind}; it is simulated with its defaults."),
        None => format!(
            "Now, the queue is taken to be in the provider's shaper, a FIFO of 1000 full packets (`{UNKNOWN_QUEUE}`): what it really \
             is cannot be seen from here."
        ),
    });
    let now = now.unwrap_or_else(|| UNKNOWN_QUEUE.to_owned());
    let base = scenario(rate, rtt, "pfifo", "cubic", false)?;
    let mut runs = Vec::new();
    for (when, line, cc, ecn) in [("now", now, cc.0, ecn.0), ("after", after, cc.1, ecn.1)] {
        // The link has the shaper's rate, so that its leaf alone says how packets wait.
        let spec = grammar::parse(&line).ok().map(|parsed| parsed.spec);
        let leaf = spec.map(|spec| spec.leaf().cloned().unwrap_or(spec));
        let missing = match &leaf {
            None => Some(line.as_str()),
            Some(leaf) => leaf.unmodelled(),
        };
        let unknown_cc = !CONGESTION_CONTROLS.contains(&cc.as_str());
        let missing = missing.or(unknown_cc.then_some(cc.as_str()));
        let (Some(leaf), None) = (&leaf, missing) else {
            let missing = missing.unwrap_or_default();
            remarks
                .push(format!("Not simulated: `{when}`, for the model does not have {missing}."));
            continue;
        };
        let leaf = leaf.to_string();
        // DCTCP asks for ECN by itself.
        let plan = scenario(rate, rtt, &leaf, &cc, ecn || cc == "dctcp")?;
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
fn scenario(rate: Rate, rtt: Duration, qdisc: &str, cc: &str, ecn: bool) -> Result<Plan, Failure> {
    let bits = rate.as_bits_per_second();
    let seconds = (MOST_PACKETS * PACKET_BITS).checked_div(bits).unwrap_or(0).clamp(2, 40);
    let warmup = seconds / 4;
    let (nanos, milliseconds) = (rtt.as_nanos(), rtt.as_secs_f64() * 1e3);
    let source = format!(
        "name = \"prediction\"\n\
         about = \"one large transfer and ssh beside it, at {rate} and {milliseconds} ms\"\n\
         duration = \"{seconds}s\"\nwarmup = \"{warmup}s\"\n\
         [link]\nrate = \"{bits}bit\"\nrtt = \"{nanos}ns\"\nqdisc = \"{qdisc}\"\n\
         [[flow]]\ncc = \"{cc}\"\necn = {ecn}\n"
    );
    Plan::parse(&source).map_err(|error| Failure::Run(format!("prediction: {error}")))
}
