//! What is measured across links that are known.

use std::collections::BTreeMap;

use dualq_measure::{Bottleneck, Direction, Distribution, Load, Loaded, Measurement, Method};

use tests_skipped::skipped;

use super::{able, dualq, folder, line, measuring};

/// On a busy machine flows connect late, but not later than that, in milliseconds.
const MOST_BEFORE_MS: usize = 3000;

/// What was found of one way under load of that way alone.
fn way(measured: &Measurement, direction: Direction) -> (&Loaded, &Load) {
    let loaded = measured.under(direction).unwrap();
    let load = if direction == Direction::Upload { &loaded.up } else { &loaded.down };
    (loaded, load.as_ref().unwrap())
}

fn within(measured: f64, expected: f64, share: f64) -> bool {
    (measured / expected - 1.0).abs() <= share
}

/// Rates within 3 %, of which probes take up to 1; the path's own round trip within 0.2 ms; round trips under load in the median within 5 % or 1 ms
/// of what the link itself wrote down of the packets that it let go then.
fn agrees(measured: &Measurement, (down_mbit, up_mbit, rtt_ms): (f64, f64, f64), log: &str) {
    for (direction, mbit) in [(Direction::Download, down_mbit), (Direction::Upload, up_mbit)] {
        let (loaded, load) = way(measured, direction);
        assert!(within(load.line_mbit, mbit, 0.03), "{direction:?} {mbit}: {}", load.line_mbit);
        let srtt = load.srtt.as_ref().unwrap();
        let [tcp, udp] = [Method::Tcp, Method::Udp].map(|method| loaded.rtt(method).unwrap());
        let held = Held::of(log, direction, rtt_ms, udp);
        for (name, rtt) in [("TCP", tcp), ("UDP", udp), ("TCP_INFO", srtt)] {
            // Not one median against another: where a queue was full for half of the time and half as long for the rest, a median is anything between.
            let by_link = rtt.samples.iter().map(|(ended_s, _)| rtt_ms + held.ms(*ended_s));
            let [expected, more] = [by_link.collect(), held.more_ms(rtt)].map(median);
            println!("{direction:?} {name}: the link {expected:.2} ms, measured {more:+.2}");
            let is_near = more.abs() < (expected * 0.05).max(1.0);
            assert!(is_near, "{direction:?} {name}: {more} ms more than the link's {expected}");
            assert!(expected > rtt_ms + 3.0, "{direction:?}: {expected}");
        }
    }
    let base_ms = measured.propagation_ms().unwrap();
    println!("base {base_ms:.3} ms of {rtt_ms}");
    assert!((base_ms - rtt_ms).abs() < 0.2, "{rtt_ms}: {base_ms}");
    assert!(measured.ecn.iter().all(|fate| fate.fate.name() == "passes"), "{:?}", measured.ecn);
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    dualq_measure::figures::quantile(&values, 0.5)
}

/// How long the link held datagrams, by its own log. Full segments come by several at once and see less or more of a queue than who comes at any time.
struct Held {
    /// When a round trip ended whose datagram left the queue, by the link's clock, and how long that was held.
    ended: Vec<(f64, f64)>,
    rtt_ms: f64,
    /// When the load began, by the link's clock.
    began_s: f64,
}

impl Held {
    fn of(log: &str, direction: Direction, rtt_ms: f64, udp: &Distribution) -> Self {
        // What leaves the queue on the way up comes back after both ways, and on the way down after one.
        let (way, ways) = if direction == Direction::Upload { ("up", 1.0) } else { ("down", 0.5) };
        let number = |text: &str| text.parse::<f64>().unwrap();
        let left: Vec<Vec<&str>> = log
            .lines()
            .map(|line| line.split(',').collect::<Vec<_>>())
            .filter(|row| row.len() == 10 && (row[1], row[3]) == ("out", way))
            .collect();
        let is_full = |row: &&Vec<&str>| row[4] == "data" && number(row[6]) >= 1000.0;
        // Reports have full segments too, but few of them.
        let mut of_flow: BTreeMap<&str, usize> = BTreeMap::new();
        left.iter().filter(is_full).for_each(|row| *of_flow.entry(row[2]).or_default() += 1);
        let first = left.iter().filter(is_full).find(|row| of_flow[row[2]] > 30).unwrap();
        let first_s = number(first[0]);
        let datagrams = left.iter().filter(|row| row[4] == "udp");
        let ended = datagrams.map(|row| (number(row[0]) + rtt_ms * ways / 1e3, number(row[9])));
        let mut held = Self { ended: ended.collect(), rtt_ms, began_s: 0.0 };
        // Flows connect before they send. The clocks agree where round trips end when the link says so, and where the differences are most alike,
        // whatever they are: either alone is as good elsewhere while a queue grows evenly.
        let spread = |before_ms: usize| {
            held.began_s = first_s - before_ms as f64 / 1e3;
            let more = held.more_ms(udp);
            let middle = median(more.clone());
            let apart = udp.samples.iter().map(|(ended_s, _)| held.apart_ms(*ended_s));
            median(more.iter().map(|ms| (ms - middle).abs()).collect()) + median(apart.collect())
        };
        let spreads: Vec<f64> = (0..MOST_BEFORE_MS).map(spread).collect();
        let least = (0..MOST_BEFORE_MS).min_by(|a, b| spreads[*a].total_cmp(&spreads[*b])).unwrap();
        println!("the load began {least} ms before its data, to {:.2} ms", spreads[least]);
        held.began_s = first_s - least as f64 / 1e3;
        held
    }

    /// How long a datagram was held that came back the given time after the load began.
    fn ms(&self, ended_s: f64) -> f64 {
        self.nearest(ended_s).1
    }

    /// How far from then the nearest one came back.
    fn apart_ms(&self, ended_s: f64) -> f64 {
        (self.nearest(ended_s).0 - self.began_s - ended_s).abs() * 1e3
    }

    fn nearest(&self, ended_s: f64) -> (f64, f64) {
        let at_s = self.began_s + ended_s;
        let next = self.ended.partition_point(|(ended_s, _)| *ended_s < at_s);
        let near = &self.ended[next.saturating_sub(1)..(next + 1).min(self.ended.len())];
        let from_end = |row: &&(f64, f64)| (row.0 - at_s).abs();
        *near.iter().min_by(|a, b| from_end(a).total_cmp(&from_end(b))).unwrap()
    }

    /// How much longer than by the link each round trip was.
    fn more_ms(&self, rtt: &Distribution) -> Vec<f64> {
        rtt.samples.iter().map(|(ended_s, ms)| ms - self.rtt_ms - self.ms(*ended_s)).collect()
    }
}

/// Measures across a link of which a log is written.
fn logged(link: &[&str]) -> (Measurement, String) {
    let folder = folder();
    let near = measuring("--direction download,upload");
    let link = [link, &["--log", "log.csv"]].concat();
    let (output, stdout, stderr) = dualq(folder.path(), &line(&link, &near));
    assert!(output.status.success(), "{stderr}");
    let log = std::fs::read_to_string(folder.path().join("log.csv")).unwrap();
    (serde_json::from_str(&stdout).unwrap(), log)
}

#[test]
fn rates_differ_by_direction_and_round_trips_are_the_links() {
    if !able() {
        return;
    }
    // Queues of about a round trip, so that Reno keeps the link busy.
    let link =
        ["--rtt", "40ms", "--down", "30mbit pfifo limit 150", "--up", "8mbit pfifo limit 50"];
    let (measured, log) = logged(&link);
    agrees(&measured, (30.0, 8.0, 40.0), &log);
    assert!(measured.grade.is_some());
}

/// As many links as `DUALQ_LINKS` says, drawn from `DUALQ_LINKS_SEED`: other rates each way, queues of about a round trip.
#[test]
fn drawn_links_are_measured_as_they_are() {
    if !able() {
        return;
    }
    let number = |name: &str, usual: u64| {
        std::env::var(name).map_or(usual, |value| value.parse().expect("it is a number"))
    };
    let mut random = dualpi2::SplitMix64::new(number("DUALQ_LINKS_SEED", 1));
    // Alike on a scale of ratios: as many links between 2 and 4 as between 50 and 100.
    let mut draw = |from: f64, to: f64| {
        let share = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        from * (to / from).powf(share)
    };
    for _ in 0..number("DUALQ_LINKS", 2) {
        let (down, up, rtt_ms) = (draw(4.0, 200.0), draw(4.0, 100.0), draw(5.0, 80.0).round());
        let queue = |mbit: f64| ((mbit * rtt_ms / 12.0) as u32).max(40);
        let [down, up] = [down, up].map(|mbit| (mbit * 10.0).round() / 10.0);
        let [down_link, up_link] =
            [down, up].map(|mbit| format!("{mbit}mbit pfifo limit {}", queue(mbit)));
        let rtt = format!("{rtt_ms}ms");
        let link = ["--rtt", &rtt, "--down", &down_link, "--up", &up_link];
        let (measured, log) = logged(&link);
        println!("{link:?}");
        agrees(&measured, (down, up, rtt_ms), &log);
    }
}

/// The model on the path as it was written down comes to what was measured.
#[test]
fn a_measured_path_is_a_scenario_and_a_plan() {
    if !able() {
        return;
    }
    let folder = folder();
    let link =
        ["--rtt", "30ms", "--down", "20mbit pfifo limit 100", "--up", "5mbit pfifo limit 40"];
    let files = "--scenario path.toml --report path.html --flent path.flent.gz > path.json";
    let near = measuring(&format!("--direction download,upload {files}"));
    let (output, _, stderr) = dualq(folder.path(), &line(&link, &near));
    assert!(output.status.success(), "{stderr}");
    let document = std::fs::read_to_string(folder.path().join("path.json")).unwrap();
    let measured: Measurement = serde_json::from_str(&document).unwrap();
    assert_eq!(measured.bottleneck, Some(Bottleneck::Beyond));
    let (loaded, load) = way(&measured, Direction::Download);
    let (output, stdout, stderr) =
        dualq(folder.path(), &["run", "path.toml", "--json", "--no-progress"]);
    assert!(output.status.success(), "{stderr}");
    let results: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let outcome = &results["runs"][0]["outcome"];
    let goodput = outcome["flow"][0]["total_mbit"].as_f64().unwrap();
    assert!(within(goodput, load.goodput_mbit, 0.05), "{goodput}, measured {}", load.goodput_mbit);
    let probe_ms = outcome["probe"][0]["p50_ms"].as_f64().unwrap();
    let tcp_ms = loaded.rtt(Method::Tcp).unwrap().p50_ms;
    assert!(within(probe_ms, tcp_ms, 0.2), "{probe_ms}, measured {tcp_ms}");
    let page = std::fs::read_to_string(folder.path().join("path.html")).unwrap();
    // A picture of each stage over time, and two of distributions.
    assert_eq!((page.matches("<img ").count(), page.contains("NaN")), (4, false));
    assert_eq!(std::fs::read(folder.path().join("path.flent.gz")).unwrap()[..2], [0x1f, 0x8b]);
    // Of a machine whose facts are known, a plan for what it sends.
    let facts = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/facts/debian-12.json");
    let args = ["plan", "--facts", facts, "--from", "path.json", "-o", "-"];
    let (output, plan, stderr) = dualq(folder.path(), &args);
    assert!(output.status.success(), "{stderr}");
    let rate = plan.split("htb rate ").nth(1).unwrap_or_else(|| panic!("{plan}"));
    let kbit: f64 = rate.split("bit").next().unwrap().trim_end_matches('k').parse().unwrap();
    let kbit = if kbit > 1e5 { kbit / 1e3 } else { kbit };
    assert!(within(kbit, 0.95 * 5000.0, 0.04), "{kbit}: {plan}");
}

/// What is lost without load is told, goes into the scenario, and is not taken for a queue's; so does the size of packets.
#[test]
fn random_loss_is_told_as_such() {
    if !able() {
        return;
    }
    let folder = folder();
    let lossy = ["--rtt", "20ms", "--rate", "20mbit", "--qdisc", "pfifo limit 100", "--loss", "3%"];
    let link = [&lossy[..], &["--mtu", "1300"]].concat();
    let near = measuring("--direction download,upload --max-time 20s --scenario path.toml");
    let near = near.replace("--json", "");
    let (output, stdout, stderr) = dualq(folder.path(), &line(&link, &near));
    assert!(output.status.success(), "{stderr}");
    let said = stdout.split("random loss: ").nth(1).unwrap_or_else(|| panic!("{stdout}"));
    let percent: Vec<f64> = said
        .split(" % ")
        .take(2)
        .map(|part| part.rsplit(' ').next().unwrap().parse().unwrap())
        .collect();
    let path = std::fs::read_to_string(folder.path().join("path.toml")).unwrap();
    assert!(path.contains("\nmtu = 1300\n"), "{path}");
    let inferred: Vec<f64> = path
        .lines()
        .filter_map(|line| line.strip_prefix("loss = \"")?.split('%').next()?.parse().ok())
        .collect();
    assert_eq!((percent.len(), inferred.len()), (2, 2), "{stdout}{path}");
    // Of 500 or more datagrams: four standard deviations.
    for lost in percent.iter().chain(&inferred) {
        assert!((lost - 3.0).abs() < 3.1, "{percent:?} {inferred:?}");
        assert!(*lost > 0.5, "{percent:?} {inferred:?}");
    }
}

#[test]
fn a_queue_of_this_host_is_told_from_one_further_on() {
    if !able() {
        return;
    }
    let folder = folder();
    let device = "$(ip -o link | grep -o 'dualq[0-9]*' | head -1)";
    let shaper = format!("tc qdisc replace dev {device} root tbf rate 5mbit burst 5kb limit 60kb");
    let near = format!("{shaper} || exit 77; {}", measuring("--direction upload --max-time 12s"));
    let link = ["--rtt", "20ms", "--rate", "40mbit", "--qdisc", "pfifo limit 100"];
    let (output, stdout, stderr) = dualq(folder.path(), &line(&link, &near));
    if output.status.code() == Some(77) {
        return skipped("this kernel has no tbf");
    }
    let measured: Measurement =
        serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stderr}"));
    assert_eq!(measured.bottleneck, Some(Bottleneck::LocalQueue));
    let (loaded, load) = way(&measured, Direction::Upload);
    let local = loaded.local.as_ref().unwrap();
    assert_eq!(local.qdisc, "tbf");
    assert!(within(load.line_mbit, 5.0, 0.05), "{}", load.line_mbit);
    let longer_ms = loaded.rtt(Method::Tcp).unwrap().p50_ms - 20.0;
    assert!(within(local.delay_ms(), longer_ms, 0.3), "{} of {longer_ms}", local.delay_ms());
}

#[test]
fn ipv6_is_measured_as_well() {
    if !able() {
        return;
    }
    let folder = folder();
    let near =
        measuring("--direction download --max-time 8s").replace("measure $FAR", "measure $FAR6");
    let link = ["--rtt", "20ms", "--rate", "20mbit", "--qdisc", "pfifo limit 60"];
    let (output, stdout, stderr) = dualq(folder.path(), &line(&link, &near));
    assert!(output.status.success(), "{stderr}");
    let measured: Measurement = serde_json::from_str(&stdout).unwrap();
    assert!(measured.address.is_ipv6());
    let (loaded, load) = way(&measured, Direction::Download);
    assert!(within(load.line_mbit, 20.0, 0.05) && load.mss_bytes == 1428, "{load:?}");
    assert!(loaded.rtt(Method::Udp).is_some() && loaded.loss.is_some());
    let seen = &measured.handshakes.seen;
    assert_eq!((seen.len(), &measured.handshakes.unable), (6, &None), "{seen:?}");
    assert!(seen.iter().all(|one| one.syn.fate.name() == "passes"), "{seen:?}");
    let mtu = measured.mtu.unwrap();
    assert_eq!((mtu.up.bytes, mtu.down.bytes), (1500, 1500), "{mtu:?}");
    assert!(measured.ecn.iter().all(|fate| fate.fate.name() == "passes"), "{:?}", measured.ecn);
}
