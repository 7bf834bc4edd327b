//! What a simulation decides.

use dualq_host::plan::{Evidence, Figures, Profile, Question, Requirements, Trial};
use dualq_host::{Facts, Plan};
use dualq_units::Rate;

use crate::{has_note, line, machine};

fn question(facts: &Facts, requirements: &Requirements) -> Question {
    Question::each(facts, requirements, true).unwrap().swap_remove(0)
}

/// Answers as a simulation might give them, by the words of the queue.
fn answers(question: Question, p99_ms: impl Fn(&Trial) -> Option<(f64, f64, f64)>) -> Evidence {
    let trials = question.trials(true);
    let known = trials.into_iter().filter_map(|trial| {
        let (p99_ms, goodput_mbit, fairness) = p99_ms(&trial)?;
        let world = "model".to_owned();
        Some((trial, Figures { p99_ms, goodput_mbit, fairness, world }))
    });
    let known: Vec<_> = known.collect();
    Evidence::new(question, known)
}

#[test]
fn evidence_chooses_among_what_the_traffic_calls_for() {
    use dualq_host::plan::Aim;
    let facts = machine("arch");
    let requirements =
        |aim| Requirements { aim, rate: Some(Rate::from_mbit(48)), ..Requirements::default() };
    let chosen = |aim, figures: &dyn Fn(&str) -> (f64, f64, f64)| {
        let question = question(&facts, &requirements(aim));
        let evidence = answers(question, |trial| Some(figures(&trial.queue)));
        let plan = Plan::make_by(&facts, &requirements(aim), &[&evidence]).unwrap();
        (line(&plan).unwrap().to_owned(), plan)
    };
    let kind = |queue: &str| {
        ["fq_codel", "cake", "dualpi2", "fq", "pie", "codel"]
            .into_iter()
            .find(|kind| queue.split(' ').any(|word| word == *kind))
            .unwrap_or("now")
    };
    // Equals: the first. Apart: the best; of those that the traffic does not call for none, but it is said.
    let (line, _) = chosen(Aim::Latency, &|_| (1.0, 40.0, 1.0));
    assert_eq!(line, "cake bandwidth 45600kbit");
    let (line, plan) = chosen(Aim::Latency, &|queue| match kind(queue) {
        "fq_codel" => (2.0, 40.0, 1.0),
        "pie" => (0.1, 45.0, 1.0),
        _ => (9.0, 40.0, 1.0),
    });
    assert_eq!(line, "htb rate 45600kbit leaf fq_codel");
    assert!(has_note(&plan, "leaf pie is better"), "{:?}", plan.notes);
    assert!(
        plan.evidence
            .iter()
            .any(|line| line.starts_with("chosen, htb rate 45600kbit leaf fq_codel;"))
    );
    // More than a twentieth of the throughput is too much for latency, and for throughput it is all that counts.
    let dear = |queue: &str| match kind(queue) {
        "cake" => (1.0, 30.0, 1.0),
        "fq_codel" => (2.0, 39.0, 0.7),
        "fq" => (8.0, 40.0, 1.0),
        _ => (9.0, 40.0, 1.0),
    };
    assert_eq!(chosen(Aim::Latency, &dear).0, "htb rate 45600kbit leaf fq_codel");
    assert_eq!(chosen(Aim::Throughput, &dear).0, "htb rate 45600kbit leaf fq");
    assert_eq!(chosen(Aim::Fair, &dear).0, "cake bandwidth 45600kbit");
    // What it was chosen for is in the plan, and what nobody has to name is not.
    let (_, plan) = chosen(Aim::Fair, &dear);
    assert!(plan.write().contains("\naim = \"fair\"\n"), "{}", plan.write());
    assert_eq!(Plan::read(&plan.write()).unwrap().aim, Aim::Fair);
    assert!(!chosen(Aim::Latency, &dear).1.write().contains("aim"));
    // Worse than now: in the first line.
    let (_, plan) = chosen(Aim::Latency, &|queue| match kind(queue) {
        "now" => (3.0, 46.0, 1.0),
        _ => (9.0, 44.0, 1.0),
    });
    assert!(
        plan.about.starts_with("worse than now in the simulation: ssh's p99 is 9.0 ms"),
        "{}",
        plan.about
    );
    let (_, plan) = chosen(Aim::Latency, &|queue| match kind(queue) {
        "now" => (300.0, 46.0, 1.0),
        _ => (9.0, 33.0, 1.0),
    });
    assert!(plan.about.starts_with("less throughput than now"), "{}", plan.about);
    let (_, plan) = chosen(Aim::Latency, &|queue| match kind(queue) {
        "now" => (300.0, 46.0, 1.0),
        _ => (9.0, 44.0, 1.0),
    });
    assert!(plan.about.starts_with("low-latency on eno1"), "{}", plan.about);
    assert_eq!(Plan::read(&plan.write()).unwrap(), plan);
    // What nobody could run decides nothing.
    let question = question(&facts, &requirements(Aim::Latency));
    let evidence = answers(question, |_| None);
    assert_eq!(evidence.chosen(), "cake bandwidth 45600kbit");
    assert_eq!((evidence.warning(), evidence.lines()), (None, Vec::new()));
}

/// Whoever forwards for others does not know who sends.
#[test]
fn a_gateway_has_all_senders() {
    let requirements = |profile| Requirements {
        profile,
        rate: Some(Rate::from_mbit(48)),
        ..Requirements::default()
    };
    let of = |profile| {
        let question = question(&machine("debian-10"), &requirements(profile));
        question.after.into_iter().map(|sender| sender.cc).collect::<Vec<_>>()
    };
    assert_eq!(of(Profile::Gateway), ["cubic", "bbr"]);
    assert_eq!(of(Profile::LowLatency), ["cubic"]);
    assert_eq!(Profile::fitting(&machine("openwrt-24")), Profile::Gateway);
    assert_eq!(Profile::fitting(&machine("debian-13")), Profile::Gateway);
    assert_eq!(Profile::fitting(&machine("debian-10")), Profile::LowLatency);
}

/// Where the kernel has nothing but FIFOs, they are tried in several lengths, and what is there stays if it is better than each.
#[test]
fn a_fifo_is_put_nowhere_to_make_things_worse() {
    let mut facts = machine("debian-10");
    for kind in ["cake", "fq_codel", "fq", "pie", "codel", "dualpi2", "fq_pie"] {
        facts.qdiscs.insert(kind.to_owned(), dualq_host::facts::Availability::Absent);
    }
    let requirements = Requirements { rate: Some(Rate::from_mbit(48)), ..Requirements::default() };
    let plan = |requirements: &Requirements, fifo_ms: f64| {
        let question = question(&facts, requirements);
        let evidence = answers(question, |trial| {
            let is_there = !trial.queue.contains("leaf pfifo");
            let is_long = trial.queue.ends_with("limit 225");
            Some((
                if is_there {
                    200.0
                } else if is_long {
                    fifo_ms
                } else {
                    900.0
                },
                40.0,
                1.0,
            ))
        });
        Plan::make_by(&facts, requirements, &[&evidence]).unwrap()
    };
    let better = plan(&requirements, 90.0);
    assert_eq!(line(&better), Some("htb rate 45600kbit leaf pfifo limit 225"));
    let worse = plan(&requirements, 300.0);
    assert_eq!(line(&worse), None);
    assert!(has_note(&worse, "stays: this kernel has none that manages a queue"), "{worse:?}");
    assert!(worse.about.starts_with("low-latency on "), "{}", worse.about);
    // Who asks for one gets it, and hears what it does.
    let qdisc = Some("pfifo limit 225".to_owned());
    let asked = plan(&Requirements { qdisc, ..requirements }, 300.0);
    assert!(line(&asked).is_some() && asked.about.starts_with("worse than now"), "{asked:?}");
}
