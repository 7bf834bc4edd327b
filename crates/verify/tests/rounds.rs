//! What is said of rounds that are drawn: with how much chance in them, and how often it is right.

use dualq_host::plan::Aim;
use dualq_verify::{Figures, Judgement, MOST_ROUNDS, Round, Verdict};
use fastrand::Rng;

/// How often each question is asked.
const TIMES: usize = 4000;
/// How much one measurement differs from the next, as a share.
const NOISE: f64 = 0.15;

/// A standard normal number (Box and Muller).
fn normal(rng: &mut Rng) -> f64 {
    (-2.0 * (1.0 - rng.f64()).ln()).sqrt() * (std::f64::consts::TAU * rng.f64()).cos()
}

/// What is drawn.
#[derive(Clone, Copy)]
struct Case {
    aim: Aim,
    /// After by before.
    change: f64,
    /// Whether some measurements are far off, as when somebody else loads the path.
    has_outliers: bool,
    /// How much the path changes from one measurement to the next, whatever is measured.
    drift: f64,
}

impl Case {
    /// Measures in rounds until there is an answer.
    fn verdict(&self, rng: &mut Rng) -> (Verdict, usize) {
        let mut rounds = Vec::new();
        let mut path = 1.0;
        loop {
            let is_before_first = rng.bool();
            let mut measure = |change: f64| {
                path *= (self.drift * normal(rng)).exp();
                let far = if self.has_outliers && rng.f64() < 0.1 { 3.0 } else { 1.0 };
                let figure = path * change * far * (NOISE * normal(rng)).exp();
                let figures = Figures { latency_ms: 30.0, goodput_mbit: 40.0, fairness: 0.9 };
                match self.aim {
                    // The millisecond that is added is not drawn.
                    Aim::Latency => Figures { latency_ms: 60.0 * figure - 1.0, ..figures },
                    Aim::Throughput => Figures { goodput_mbit: 20.0 * figure, ..figures },
                    Aim::Fair => Figures { fairness: 0.5 * figure, ..figures },
                }
            };
            let round = if is_before_first {
                let before = measure(1.0);
                Round { before, after: measure(self.change) }
            } else {
                let after = measure(self.change);
                Round { before: measure(1.0), after }
            };
            rounds.push(round);
            if let Some(judgement) = Judgement::of(self.aim, &rounds, false) {
                return (judgement.verdict, rounds.len());
            }
        }
    }

    /// How often each verdict is said, and after how many rounds on average.
    fn shares(&self, seed: u64) -> (f64, f64, f64) {
        let mut rng = Rng::with_seed(seed);
        let said: Vec<(Verdict, usize)> = (0..TIMES).map(|_| self.verdict(&mut rng)).collect();
        let share = |verdict| {
            said.iter().filter(|(said, _)| *said == verdict).count() as f64 / TIMES as f64
        };
        let rounds = said.iter().map(|(_, rounds)| *rounds as f64).sum::<f64>() / TIMES as f64;
        (share(Verdict::Helped), share(Verdict::Hurt), rounds)
    }
}

const PLAIN: Case = Case { aim: Aim::Latency, change: 1.0, has_outliers: false, drift: 0.0 };

#[test]
fn an_improvement_of_a_fifth_is_told_in_19_of_20() {
    for (seed, aim, change) in
        [(1, Aim::Latency, 0.8), (2, Aim::Throughput, 1.25), (3, Aim::Fair, 1.25)]
    {
        let (helped, hurt, rounds) = Case { aim, change, ..PLAIN }.shares(seed);
        eprintln!("{aim:?}: helped {helped}, hurt {hurt}, after {rounds:.1} rounds");
        assert!(helped >= 0.95 && hurt < 0.001, "{aim:?}: {helped} {hurt}");
    }
}

#[test]
fn where_nothing_changed_nothing_is_told_in_19_of_20() {
    for (seed, case) in [
        (4, PLAIN),
        (5, Case { aim: Aim::Throughput, ..PLAIN }),
        (6, Case { has_outliers: true, ..PLAIN }),
        (7, Case { drift: 0.1, ..PLAIN }),
    ] {
        let (helped, hurt, rounds) = case.shares(seed);
        eprintln!("nothing: helped {helped}, hurt {hurt}, after {rounds:.1} rounds");
        assert!(helped + hurt <= 0.05, "{:?}: {helped} {hurt}", case.aim);
    }
}

#[test]
fn harm_is_told_as_well() {
    let (helped, hurt, _) = Case { change: 1.25, ..PLAIN }.shares(8);
    assert!(hurt >= 0.95 && helped < 0.001, "{helped} {hurt}");
}

#[test]
fn a_great_improvement_takes_few_rounds() {
    let (helped, _, rounds) = Case { change: 0.1, ..PLAIN }.shares(9);
    assert!(helped > 0.999 && rounds < 7.01, "{helped} {rounds}");
}

fn rounds(count: usize, before: Figures, after: Figures) -> Vec<Round> {
    vec![Round { before, after }; count]
}

#[test]
fn a_short_queue_is_not_worth_any_throughput() {
    let before = Figures { latency_ms: 100.0, goodput_mbit: 50.0, fairness: 1.0 };
    let after = |goodput_mbit| Figures { latency_ms: 5.0, goodput_mbit, fairness: 1.0 };
    let verdict = |goodput| {
        let judgement = Judgement::of(Aim::Latency, &rounds(7, before, after(goodput)), false);
        judgement.unwrap().verdict
    };
    // A shaper takes a twentieth.
    assert_eq!((verdict(47.5), verdict(40.0)), (Verdict::Helped, Verdict::Hurt));
}

#[test]
fn what_stays_alike_ends_early_and_what_must_end_ends() {
    let same = Figures { latency_ms: 30.0, goodput_mbit: 50.0, fairness: 1.0 };
    let judgement = Judgement::of(Aim::Latency, &rounds(7, same, same), false).unwrap();
    assert_eq!((judgement.verdict, judgement.change.ratio), (Verdict::CannotBeTold, 1.0));
    let better = Figures { latency_ms: 3.0, ..same };
    assert_eq!(Judgement::of(Aim::Latency, &rounds(6, same, better), false), None);
    // Time is up: six of six are one in 64, five of five one in 32.
    let last = |count| Judgement::of(Aim::Latency, &rounds(count, same, better), true);
    assert_eq!(last(6).unwrap().verdict, Verdict::Helped);
    let few = last(5).unwrap();
    assert_eq!((few.verdict, few.change.low), (Verdict::CannotBeTold, None));
    assert_eq!(last(0), None);
    assert_eq!(MOST_ROUNDS, 20);
}
