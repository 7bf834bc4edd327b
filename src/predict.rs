//! What a plan will bring: the model with the queue as it is, and as it will be.

use std::time::Duration;

use dualq_host::Facts;
use dualq_host::facts::Os;
use dualq_host::plan::{Outlook, Wishes, outlook};
use dualq_qdisc::{QdiscLine, Spec};
use dualq_scenario::{CongestionControl, FlowGroup, Link, Plan, Scenario, Setup, Variant};
use dualq_units::{Exact, Rate};

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
    let mut runs = Vec::new();
    for (when, line, cc, ecn) in [("now", now, cc.0, ecn.0), ("after", after, cc.1, ecn.1)] {
        // The link has the shaper's rate, so that its leaf alone says how packets wait.
        let parsed = line.parse::<QdiscLine>();
        let leaf = parsed.map(|line| line.spec().leaf().map_or(line.clone(), inside));
        let (Ok(leaf), Ok(control)) = (leaf.as_ref(), cc.parse::<CongestionControl>()) else {
            let missing = if leaf.is_err() { line } else { cc };
            remarks
                .push(format!("Not simulated: `{when}`, for the model does not have {missing}."));
            continue;
        };
        let scenario = scenario(rate, rtt, leaf.clone(), control, ecn)?;
        if World::Model.refuses(&scenario).is_some() {
            let missing = match leaf.spec().unmodelled() {
                Some(kind) => kind,
                None => control.name(),
            };
            remarks
                .push(format!("Not simulated: `{when}`, for the model does not have {missing}."));
            continue;
        }
        let outcome = World::Model.run(&scenario, SEED, &mut |_| ())?;
        let settings = vec![("plan".to_owned(), format!("{when}: {leaf}, {control}"))];
        runs.push(Run { variant: Variant { settings, scenario }, outcomes: vec![outcome] });
    }
    let mut base = Plan::default();
    "prediction".clone_into(&mut base.name);
    base.about = format!(
        "one large transfer and ssh beside it, at {} and {} ms",
        Exact(rate),
        rtt.as_secs_f64() * 1e3
    );
    let comparison = Comparison { plan: base, seed: SEED, worlds: vec![World::Model], runs };
    Ok(Prediction { comparison, remarks })
}

/// What is inside a shaper, as a line of its own.
fn inside(spec: &Spec) -> QdiscLine {
    QdiscLine::try_from(spec).expect("it was a part of a line")
}

/// One large transfer, and ssh beside it.
fn scenario(
    rate: Rate,
    rtt: Duration,
    qdisc: QdiscLine,
    cc: CongestionControl,
    ecn: bool,
) -> Result<Scenario, Failure> {
    let bits = rate.as_bits_per_second();
    let seconds = (MOST_PACKETS * PACKET_BITS).checked_div(bits).unwrap_or(0).clamp(2, 40);
    let flow = FlowGroup::of(cc);
    let setup = Setup {
        name: "prediction".to_owned(),
        duration: Duration::from_secs(seconds),
        warmup: Duration::from_secs(seconds / 4),
        link: Link { rate, rtt, qdisc, ..Link::default() },
        flow: vec![FlowGroup { ecn: flow.ecn || ecn, ..flow }],
        ..Setup::default()
    };
    Scenario::try_from(setup).map_err(|error| Failure::Run(format!("prediction: {error}")))
}
