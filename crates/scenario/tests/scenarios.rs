//! Scenarios: what may be one, in JSON, in TOML and in code, and that all of these say the same.

use std::fs;
use std::path::Path;
use std::time::Duration;

use dualq_scenario::{
    Algorithm, CongestionControl, FlowGroup, Overrides, ProbeGroup, ProbeKind, Scenario, Setup,
    Sweep,
};
use dualq_units::{Bytes, Rate};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The JSON of a scenario in which everything is said.
fn document() -> Value {
    let setup = Setup {
        flow: vec![FlowGroup {
            size: Some(Bytes(1_000_001).into()),
            start: Duration::from_secs(1),
            stop: Some(Duration::from_secs(9)),
            ..FlowGroup::of(Algorithm::Dctcp)
        }],
        interval: Duration::from_millis(500),
        ..Setup::default()
    };
    let mut value = serde_json::to_value(Scenario::try_from(setup).unwrap()).unwrap();
    value["link"]["forward"] = "1ms".into();
    value
}

/// The document with another value at one place.
fn with(at: &str, value: Value) -> Value {
    let mut document = document();
    *document.pointer_mut(at).unwrap_or_else(|| panic!("{at}")) = value;
    document
}

fn read(document: &Value) -> Result<Scenario, String> {
    serde_json::from_str(&document.to_string()).map_err(|error| error.to_string())
}

#[test]
fn what_makes_no_sense_is_refused_with_its_key() {
    read(&document()).unwrap();
    for (at, value, message) in [
        ("/duration", json!("0s"), "duration: 0ms is out of bounds; give 1ms to 2592000s"),
        ("/duration", json!("1e9s"), "duration: 1000000000s is out of bounds"),
        ("/warmup", json!("40s"), "warmup: 40s of a duration of 40s leave nothing to measure"),
        ("/interval", json!("0s"), "interval: 0ms is out of bounds; give 0.001ms to 86400s"),
        (
            "/interval",
            json!("1us"),
            "interval: 0.001ms gives 40000000 intervals in 40s, more than fit into memory; give 0.081ms or more",
        ),
        ("/link/rate", json!("0bit"), "link.rate: 0bit is out of bounds; give 1Kbit to 1Tbit"),
        ("/link/rate", json!("1e18bit"), "link.rate: 1000000Tbit is out of bounds"),
        ("/link/rtt", json!("1d"), "\"1d\" is not a time"),
        ("/link/rtt", json!("61s"), "link.rtt: 61s is out of bounds; give 0ms to 60s"),
        (
            "/link/forward",
            json!("51ms"),
            "link.forward: 51ms is more than the whole round-trip time, 50ms",
        ),
        ("/link/mtu", json!(500), "link.mtu: give a whole number from 576 to 65535"),
        ("/link/mtu", json!(-1), "invalid value: integer `-1`"),
        ("/link/loss", json!("101%"), "\"101%\" is not a loss rate"),
        ("/link/qdisc", json!("dualpi3"), "did you mean \"dualpi2\"?"),
        ("/sender/qdisc", json!("fq pace"), "unknown option \"pace\""),
        ("/receiver/read_interval", json!("99s"), "receiver.read_interval: 99s is out of bounds"),
        ("/flow/0/cc", json!("qubic"), "unknown congestion control \"qubic\"; did you mean"),
        ("/flow/0/count", json!(0), "flow[0].count: give a whole number from 1 to 100000"),
        (
            "/flow/0/count",
            json!(4_294_967_295_u32),
            "flow[0].count: give a whole number from 1 to 100000",
        ),
        (
            "/flow/0/count",
            json!(200),
            "flow[0].stop: 200 flows start 50ms apart, the last of them at 10.95s; stop must be after that, not at 9s",
        ),
        ("/flow/0/size", json!("0b"), "flow[0].size: a transfer has at least 1 byte"),
        (
            "/flow/0/start",
            json!("40s"),
            "flow[0].start: the flow starts at 40s, and all is over at 40s",
        ),
        (
            "/flow/0/stop",
            json!("1s"),
            "flow[0].stop: the flow starts at 1s; stop must be after that, not at 1s",
        ),
        ("/probe/0/kind", json!("telnet"), "unknown kind of probe \"telnet\""),
        ("/probe/0/interval", json!("0ms"), "probe[0].interval: 0ms is out of bounds"),
    ] {
        let error = read(&with(at, value.clone())).expect_err(&format!("{at} = {value}"));
        assert!(error.starts_with(message) || error.contains(message), "{at} = {value}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
    let mut document = document();
    document["tick"] = "1us".into();
    let error = read(&document).unwrap_err();
    assert!(error.starts_with("tick: 0.001ms is out of bounds; give 1ms to 10ms"), "{error}");
}

#[test]
fn what_is_too_much_in_all_is_refused() {
    let refused = |setup: Setup| Scenario::try_from(setup).unwrap_err().to_string();
    let flow = FlowGroup::of(Algorithm::Reno);
    let many = FlowGroup { count: 60_000, ..FlowGroup::of(Algorithm::Reno) };
    let long = Setup { duration: Duration::from_secs(86_400), ..Setup::default() };
    assert_eq!(
        refused(Setup { flow: vec![many.clone(), many], ..long.clone() }),
        "flow[1].count: at most 100000 flows in all groups, not 120000 or more"
    );
    assert_eq!(
        refused(Setup { flow: vec![flow; 250], ..Setup::default() }),
        "probe: at most 250 groups of flows, UDP and probes, not 251"
    );
    let busy = ProbeGroup {
        kind: ProbeKind::Ping,
        interval: Duration::from_millis(10),
        ..ProbeGroup::default()
    };
    assert_eq!(
        refused(Setup { probe: vec![busy.clone(), busy], ..long }),
        "probe[1].interval: 10ms for 86400s gives more round trips than fit into memory; give 18ms or more"
    );
}

/// A key of a later version, or one that is misspelt, would otherwise do nothing.
#[test]
fn unknown_keys_are_refused_everywhere() {
    for at in ["", "/link", "/sender", "/receiver", "/flow/0", "/probe/0"] {
        let mut document = document();
        document.pointer_mut(at).unwrap()["jitter"] = json!("1ms");
        let error = read(&document).unwrap_err();
        assert!(error.starts_with("unknown field `jitter`, expected "), "{at}: {error}");
    }
}

/// The same value is right or wrong in a file, on the command line and in JSON.
#[test]
fn files_and_options_have_the_same_bounds() {
    for (source, message) in [
        ("interval = '0s'", "line 1: interval: 0ms is out of bounds; give 0.001ms to 86400s"),
        (
            "\n[link]\nrtt = '2s'\n[receiver]\nread_interval = '61s'",
            "line 5: receiver.read_interval: 61s is",
        ),
        ("[link]\nforward = '40s'\nreverse = '21s'", "line 3: link.rtt: 61s is out of bounds"),
        ("[link]\nrate = ['1mbit', '2tbit']", "line 2: link.rate: 2Tbit is out of bounds"),
        ("[[flow]]\ncc = 'bbr'\ncount = 0", "line 3: flow.count: give a whole number from 1 to"),
        (
            "[[flow]]\ncc = 'bbr'\n[[flow]]\ncc = 'bbr'\ncount = 41\nstop = '2s'",
            "line 6: flow.stop: 41 flows start 50ms apart, the last of them at 2s; stop must be",
        ),
        ("[[flow]]\ncc = 'bbr'\nsize = '0'", "line 3: flow.size: a transfer has at least 1 byte"),
        ("[[probe]]\nkind = 'ping'\ninterval = '0ms'", "line 3: probe.interval: 0ms is out of"),
        (
            "duration = '3s'\nwarmup = '1s'\n[[flow]]\ncc = 'bbr'\ncount = 100",
            "line 5: flow.count: 100 flows start 50ms apart, the last of them at 4.95s, and all is over at 3s",
        ),
    ] {
        let error = Sweep::parse(source).unwrap_err().to_string();
        assert!(error.starts_with(message), "{source}: {error}");
    }
    let words = |word: &str| vec![word.to_owned()];
    for (overrides, message) in [
        (
            Overrides { interval: Some("0".to_owned()), ..Overrides::default() },
            "--interval: 0ms is",
        ),
        (
            Overrides { duration: Some("0".to_owned()), ..Overrides::default() },
            "--duration: 0ms is",
        ),
        (Overrides { rate: words("0"), ..Overrides::default() }, "--rate: 0bit is out of bounds"),
        (Overrides { rtt: words("2d"), ..Overrides::default() }, "--rtt: \"2d\" is not a time"),
        (Overrides { rtt: words("200s"), ..Overrides::default() }, "--rtt: 200s is out of bounds"),
    ] {
        let error = Sweep::parse_with("", &overrides).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
    // What an option makes right is right.
    let late = "[[flow]]\ncc = 'bbr'\nstart = '50s'";
    assert!(Sweep::parse(late).is_err());
    let longer = Overrides { duration: Some("60s".to_owned()), ..Overrides::default() };
    assert_eq!(Sweep::parse_with(late, &longer).unwrap().variants().len(), 1);
}

/// `1999Mbit` would be another link.
#[test]
fn nothing_is_rounded_in_json() {
    let overrides = Overrides { rate: vec!["1.9999gbit".to_owned()], ..Overrides::default() };
    let sweep = Sweep::parse_with("[[flow]]\ncc = 'cubic'\nsize = '1048575'", &overrides).unwrap();
    let scenario = &sweep.variants()[0].scenario;
    let json = serde_json::to_value(scenario).unwrap();
    assert_eq!(json["link"]["rate"], "1999900Kbit");
    assert_eq!(json["flow"][0]["size"], "1048575b");
    assert_eq!(read(&json).as_ref(), Ok(scenario));
}

fn times(most_s: u64) -> impl Strategy<Value = Duration> {
    (0..=most_s * 1_000_000_000).prop_map(Duration::from_nanos)
}

proptest! {
    /// What comes out of a document is what went in.
    #[test]
    fn every_scenario_reads_back_as_what_it_was(
        bits in 1_000..=1_000_000_000_000_u64,
        size in prop::option::of(1..u64::MAX),
        (duration, warmup, rtt) in (times(2_000_000), times(2_000_000), times(60)),
        loss in 0.0..=100.0_f64,
        cc in prop::sample::select(CongestionControl::all()),
        qdisc in prop::sample::select(vec!["pie", "fq  limit 10", "htb rate 5mbit leaf codel"]),
    ) {
        let mut setup = Setup {
            duration: duration.max(warmup) + Duration::from_millis(1),
            warmup: duration.min(warmup),
            interval: Duration::from_secs(5),
            flow: vec![FlowGroup { size: size.map(|size| Bytes(size).into()), ..FlowGroup::of(cc) }],
            ..Setup::default()
        };
        setup.probe[0].interval = Duration::from_secs(1);
        setup.link.rate = Rate::from_bits_per_second(bits);
        (setup.link.rtt, setup.link.forward) = (rtt, rtt / 3);
        setup.link.loss = dualq_scenario::Loss::from_percent(loss);
        setup.link.qdisc = qdisc.parse().unwrap();
        let scenario = Scenario::try_from(setup).unwrap();
        let json = serde_json::to_string(&scenario).unwrap();
        prop_assert_eq!(serde_json::from_str::<Scenario>(&json).unwrap(), scenario);
    }
}

/// What real Linux was recorded with stays readable.
#[test]
fn recorded_scenarios_are_read() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data");
    let mut seen = 0;
    for folder in ["linux-7.3", "world-kernel"] {
        for entry in fs::read_dir(data.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "jsonl") {
                continue;
            }
            for line in fs::read_to_string(&path).unwrap().lines() {
                let line: Value = serde_json::from_str(line).unwrap();
                let scenario = read(&line["scenario"])
                    .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                assert_eq!(read(&serde_json::to_value(&scenario).unwrap()), Ok(scenario));
                seen += 1;
            }
        }
    }
    assert!(seen >= 260, "{seen}");
    // Parts of recordings that hold other controls, other probes, and flows that come and go.
    for (cc, kind) in [("prague", "ssh"), ("bbr3", "ping")] {
        let mut document = with("/flow/0/cc", cc.into());
        document["probe"][0]["kind"] = kind.into();
        assert_eq!(read(&document).unwrap().flow[0].cc.name(), cc);
    }
}
