//! Any plan, of any requirements.

use std::time::Duration;

use dualq_host::Plan;
use dualq_host::plan::{LinkKind, Profile, Requirements};
use dualq_units::Rate;
use proptest::prelude::*;

use crate::{applied, machines};

const LINKS: [LinkKind; 3] = [LinkKind::Dsl, LinkKind::Docsis, LinkKind::Ethernet];

fn requirements() -> impl Strategy<Value = Requirements> {
    let profile = prop::sample::select(vec![
        Profile::LowLatency,
        Profile::Bulk,
        Profile::Datacenter,
        Profile::Gateway,
    ]);
    let rate = || prop::option::of((100_u64..2_000_000_000).prop_map(Rate::from_bits_per_second));
    let cc = prop::option::of(prop::sample::select(vec!["cubic", "bbr", "reno", "dctcp"]));
    let rtt = prop::option::of((1_u64..500_000).prop_map(Duration::from_micros));
    let lines = vec![
        "fq",
        "fq_codel",
        "dualpi2 target 5ms",
        "pie",
        "cake",
        "tbf rate 10mbit burst 10kb latency 9ms",
    ];
    let qdisc = prop::option::weighted(0.3, prop::sample::select(lines));
    let traffic =
        (any::<bool>(), any::<bool>(), prop::option::of(prop::sample::select(LINKS.to_vec())));
    (profile, (rate(), rate()), cc, rtt, qdisc, traffic).prop_map(
        |(profile, (rate, down), cc, rtt, qdisc, (tunnel, scalable, link))| Requirements {
            tunnel,
            scalable,
            link,
            profile,
            rate,
            down,
            rtt,
            cc: cc.map(str::to_owned),
            qdisc: qdisc.map(str::to_owned),
            ..Requirements::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// A plan reads back as it was written, its lines are tc's, and once it is applied there is nothing left to plan.
    #[test]
    fn plans_read_back_and_are_enough(number in 0_usize..64, requirements in requirements()) {
        let machines = machines();
        let (name, facts) = &machines[number % machines.len()];
        match Plan::make(facts, &requirements) {
            Err(error) => prop_assert!(!error.to_string().contains('\n')),
            Ok(plan) => {
                let text = plan.write();
                let again = Plan::read(&text).map_err(|error| TestCaseError::fail(format!("{error}: {text}")))?;
                prop_assert_eq!(&again, &plan);
                prop_assert_eq!(again.write(), text);
                for change in &plan.changes {
                    prop_assert!(!change.why.is_empty() && !change.source.is_empty());
                }
                let after = applied(facts.clone(), &plan);
                let rest = Plan::make(&after, &requirements).unwrap();
                prop_assert!(rest.changes.is_empty(), "{name}, {requirements:?}: {rest:#?}");
            }
        }
    }

    /// From one plan to the next, too, nothing of the first is left to undo the second.
    #[test]
    fn one_plan_after_another(number in 0_usize..64, first in requirements(), second in requirements()) {
        let machines = machines();
        let (name, facts) = &machines[number % machines.len()];
        let Ok(plan) = Plan::make(facts, &first) else { return Ok(()) };
        let facts = applied(facts.clone(), &plan);
        let Ok(plan) = Plan::make(&facts, &second) else { return Ok(()) };
        let facts = applied(facts, &plan);
        let rest = Plan::make(&facts, &second).unwrap();
        prop_assert!(rest.changes.is_empty(), "{name}, {first:?}, {second:?}: {rest:#?}");
    }

    /// What is accepted of a plan that somebody changed is still a plan of dualq's.
    #[test]
    fn changed_plans(number in 0_usize..64, edits in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..4)) {
        let machines = machines();
        let (_, facts) = &machines[number % machines.len()];
        let requirements = Requirements { profile: Profile::Bulk, ..Requirements::default() };
        let mut text: Vec<char> = Plan::make(facts, &requirements).unwrap().write().chars().collect();
        let letters = text.clone();
        for (at, from) in edits {
            *at.get_mut(&mut text) = *from.get(&letters);
        }
        let text: String = text.into_iter().collect();
        match Plan::read(&text) {
            Err(error) => prop_assert!(!error.to_string().contains('\n')),
            Ok(plan) => prop_assert_eq!(Plan::read(&plan.write()), Ok(plan)),
        }
    }

    #[test]
    fn any_text_is_read_or_refused_in_one_line(text in ".{0,200}") {
        if let Err(error) = Plan::read(&text) {
            prop_assert!(!error.to_string().contains('\n'));
        }
    }
}
