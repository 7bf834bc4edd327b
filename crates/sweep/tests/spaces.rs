//! Which scenarios a space has, and by which keys their runs are kept.

use std::collections::BTreeSet;

use dualq_sweep::{Axis, Key, Place, Plan, Sampling, Space};
use dualq_worlds::{Model, Seeds};
use proptest::prelude::*;

fn space(vary: &[&str], zip: &[&str], sampling: Sampling) -> Space {
    let axes = |words: &[&str]| words.iter().map(|word| Axis::parse(word).unwrap()).collect();
    Space { vary: axes(vary), zip: axes(zip), sampling, ..Space::of("") }
}

fn settings(space: &Space) -> Vec<Vec<(String, String)>> {
    space.scenarios().unwrap().into_iter().map(|variant| variant.settings).collect()
}

fn column(space: &Space, name: &str) -> Vec<String> {
    let value = |settings: Vec<(String, String)>| {
        settings.into_iter().find(|(what, _)| what == name).map(|(_, value)| value)
    };
    settings(space).into_iter().filter_map(value).collect()
}

fn error(space: &Space) -> String {
    space.scenarios().unwrap_err().to_string()
}

#[test]
fn all_combinations_with_what_is_written_last_the_fastest() {
    let vary = ["link.rate=10mbit,50mbit", "link.qdisc=fq,dualpi2", "duration=20s"];
    let zip = ["link.rtt=10ms,20ms", "flow.0.cc=cubic,bbr"];
    let space = space(&vary, &zip, Sampling::All);
    assert_eq!(
        column(&space, "link.rate").join(" "),
        "10mbit 10mbit 10mbit 10mbit 50mbit 50mbit 50mbit 50mbit"
    );
    assert_eq!(
        column(&space, "link.qdisc").join(" "),
        "fq fq dualpi2 dualpi2 fq fq dualpi2 dualpi2"
    );
    assert_eq!(column(&space, "link.rtt").join(" "), "10ms 20ms 10ms 20ms 10ms 20ms 10ms 20ms");
    assert_eq!(column(&space, "flow.0.cc").join(" "), "cubic bbr cubic bbr cubic bbr cubic bbr");
    // One value is no setting, but it holds.
    assert_eq!(column(&space, "duration"), Vec::<String>::new());
    let last = &space.scenarios().unwrap()[7].scenario;
    assert_eq!(last.duration.as_secs(), 20);
    assert_eq!(
        (last.link.rtt.as_millis(), last.link.qdisc.to_string()),
        (20, "dualpi2".to_owned())
    );
}

#[test]
fn lists_of_the_file_are_combined_with_samples() {
    let mut space = space(&["link.qdisc=dualpi2 target {5ms,15ms}"], &[], Sampling::All);
    space.source = "[link]\nrate = ['10mbit', '20mbit']".to_owned();
    let expected = [("5ms", "10Mbit"), ("5ms", "20Mbit"), ("15ms", "10Mbit"), ("15ms", "20Mbit")];
    let expected = expected.map(|(target, rate)| {
        [("rate", rate), ("target", target)]
            .map(|(what, value)| (what.to_owned(), value.to_owned()))
            .to_vec()
    });
    assert_eq!(settings(&space), expected);
    assert_eq!(
        space.scenarios().unwrap()[2].scenario.link.qdisc.to_string(),
        "dualpi2 target 15ms"
    );
}

#[test]
fn what_makes_no_sense_is_told() {
    let all = || Sampling::All;
    let none = Sampling::Random { count: 0, seed: 1 };
    let many = Sampling::Latin { count: 100_001, seed: 1 };
    let thousand = (1..=1000).map(|count| count.to_string()).collect::<Vec<_>>().join(",");
    let (flows, mtus) = (format!("flow.0.count={thousand}"), format!("probe.0.size={thousand}"));
    let wrong: [(Space, &str); 12] = [
        (space(&["link.rate=1mbit..9mbit"], &[], all()), "link.rate: a range has no end of values"),
        (space(&["link.rate=5mbit", "link.rate=6mbit"], &[], all()), "link.rate is given twice"),
        (space(&["link.rate=5mbit, 5mbit"], &[], all()), "link.rate: 5mbit is given twice; give"),
        (
            space(&["link.qdisc=dualpi2 target {5ms,9ms,5ms}"], &[], all()),
            "link.qdisc: 5ms is given twice; give each value once",
        ),
        (
            space(&[], &["link.rate=1mbit,2mbit,1mbit", "link.rtt=1ms,1ms,1ms"], all()),
            "link.rate: 1mbit is given twice with the same values beside it",
        ),
        (space(&["link.rate=5mbot"], &[], all()), "link.rate=5mbot: link.rate: "),
        (space(&["flow.3.cc=bbr"], &[], all()), "flow.3.cc=bbr: flow.3: there are 0 of flow"),
        (
            space(&[], &["link.rate=1mbit,2mbit", "link.rtt=1ms"], all()),
            "link.rtt has 1 values, and link.rate",
        ),
        (space(&[], &["link.rtt=1ms..2ms"], all()), "link.rtt: what varies together is lists"),
        (space(&["link.rtt=1ms..2ms"], &[], none), "a sample of 0 scenarios"),
        (space(&["link.rtt=1ms..2ms"], &[], many), "100001 scenarios; a sweep has at most 100000"),
        (space(&[&flows, &mtus], &[], all()), "1000000 scenarios; a sweep has at most 100000"),
    ];
    for (space, expected) in wrong {
        assert!(error(&space).starts_with(expected), "{}", error(&space));
    }
}

/// Together, a value may come again beside another one.
#[test]
fn what_varies_together_may_come_again() {
    let space = space(&[], &["link.rate=1mbit,1mbit", "link.rtt=1ms,2ms"], Sampling::All);
    assert_eq!(space.scenarios().unwrap().len(), 2);
}

#[test]
fn samples_at_places_that_are_told() {
    let vary = ["link.rtt=10ms..20ms", "link.rate=1mbit..100mbit:log"];
    let places = vec![vec![0.0, 1.0, 0.0], vec![0.5, 0.5, 0.99]];
    let space = |places| space(&vary, &["link.qdisc=fq,pie"], Sampling::At(places));
    let found = settings(&space(places));
    let values = |one: &[(String, String)]| {
        one.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(values(&found[0]), "10ms 100Mbit fq");
    assert_eq!(values(&found[1]), "15ms 10Mbit pie");
    let said = error(&space(vec![vec![0.5, 0.5]]));
    assert_eq!(said, "a sample of 2 values, and there are 3 choices");
}

fn key_of(source: &str, place: &Place, seed: u64) -> Key {
    Key::of(&Space::of(source).scenarios().unwrap()[0].scenario, place, seed)
}

#[test]
fn keys_are_stable_and_differ_when_anything_differs() {
    let place = |world: &str, kernel: Option<&str>| Place {
        world: world.to_owned(),
        kernel: kernel.map(str::to_owned),
    };
    let model = place("model", None);
    let source = "[link]\nrate = '10mbit'";
    let one = key_of(source, &model, 1);
    // However it is written.
    assert_eq!(key_of("link.rate = '10000kbit' # the same", &model, 1), one);
    let others = [
        key_of(source, &model, 2),
        key_of(source, &place("kernel", Some("7.3")), 1),
        key_of(source, &place("kernel", Some("7.2")), 1),
        key_of(source, &place("kernel", None), 1),
        key_of("[link]\nrate = '10001kbit'", &model, 1),
        key_of("duration = '41s'\n[link]\nrate = '10mbit'", &model, 1),
        key_of("[link]\nrate = '10mbit'\nqdisc = 'dualpi2 target 5ms'", &model, 1),
        key_of("[link]\nrate = '10mbit'\n[[flow]]\ncc = 'bbr'", &model, 1),
    ];
    let all: BTreeSet<Key> = others.into_iter().chain([one]).collect();
    assert_eq!(all.len(), 9);
    assert_eq!(one.to_string().len(), 64);
}

#[test]
fn each_run_of_a_plan_has_a_key_of_its_own() {
    let space = space(&["link.rate=1mbit,2mbit,3mbit"], &[], Sampling::All);
    let plan = Plan::new(&space, &[&Model], Seeds::new(7, 4).unwrap()).unwrap();
    let points: Vec<_> = plan.points().collect();
    let keys: BTreeSet<Key> = points.iter().map(|point| point.key).collect();
    assert_eq!((points.len(), keys.len()), (12, 12));
    assert_eq!(points[5].key, Key::of(points[5].scenario, points[5].place, points[5].seed));
    assert_eq!((points[5].number, points[5].seed), (1, 8));
}

#[test]
fn samples_that_are_the_same_count_once() {
    let drawn = |vary: &[&str], count: usize, seed: u64| {
        let mut space = space(vary, &[], Sampling::Latin { count, seed });
        space.source = "[[flow]]\ncc = 'cubic'".to_owned();
        let all = settings(&space);
        assert_eq!(all.len(), space.count().unwrap());
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{all:?}");
        all.len()
    };
    for seed in 1..40 {
        // As many values as samples, or some more.
        assert_eq!(drawn(&["flow.0.count=1..6"], 6, seed), 6);
        assert_eq!(drawn(&["flow.0.count=1..10"], 7, seed), 7);
        assert_eq!(drawn(&["flow.0.count=1..4", "link.qdisc=fq,pie"], 6, seed), 6);
        // Fewer.
        assert_eq!(drawn(&["flow.0.count=1..3"], 6, seed), 3);
        assert_eq!(drawn(&["link.qdisc=fq,pie"], 6, seed), 2);
        assert_eq!(drawn(&["link.rate=9mbit"], 6, seed), 1);
    }
    let random = space(&["link.mtu=1400..1402"], &[], Sampling::Random { count: 99, seed: 1 });
    assert_eq!(random.count(), Ok(3));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// That ranges have one in each part is tested where numbers are not yet words.
    #[test]
    fn a_latin_hypercube_takes_all_of_a_list_alike(count in 2_usize..60, seed in any::<u64>()) {
        let vary = ["link.rtt=100ms..200ms", "flow.0.count=1..240", "link.qdisc=fq,pie,codel"];
        let mut space = space(&vary, &[], Sampling::Latin { count, seed });
        space.source = "[[flow]]\ncc = 'cubic'".to_owned();
        let qdiscs = column(&space, "link.qdisc");
        for qdisc in ["fq", "pie", "codel"] {
            let there = qdiscs.iter().filter(|one| *one == qdisc).count();
            // At either end of its third may be a part that is only partly in it.
            let apart = (there as f64 - count as f64 / 3.0).abs();
            prop_assert!(apart < 2.0, "{there} of {count} are {qdisc}");
        }
        prop_assert_eq!(settings(&space), settings(&space), "the same seed draws the same");
        let other = Space { sampling: Sampling::Latin { count, seed: seed ^ 1 }, ..space.clone() };
        prop_assert_ne!(settings(&space), settings(&other));
    }
}
