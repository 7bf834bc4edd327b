//! Tables and sentences, which the terminal and the page have in common.

use dualq_measure::figures::{Fate, Grade};
use dualq_measure::{
    Bottleneck, Direction, Distribution, Load, Loaded, Measurement, Method, Ping, Server,
};

/// A table: its head, how many columns are words, and its rows.
#[derive(Clone, Debug)]
pub struct Table {
    /// What stands above each column.
    pub heads: Vec<&'static str>,
    /// The first so many columns are words, the others numbers.
    pub words: usize,
    /// As long as the head.
    pub rows: Vec<Vec<String>>,
}

/// Both directions of a stage, with their names.
pub(super) fn ways(loaded: &Loaded) -> impl Iterator<Item = (&'static str, &Load)> {
    let ways = [("down", &loaded.down), ("up", &loaded.up)];
    ways.into_iter().filter_map(|(way, load)| Some((way, load.as_ref()?)))
}

/// Goodput and what it cost.
#[must_use]
pub fn rates(measured: &Measurement) -> Table {
    let mut rows = Vec::new();
    for loaded in &measured.loaded {
        for (way, load) in ways(loaded) {
            let stage = match loaded.direction {
                Direction::Both => format!("both, {way}"),
                direction => direction.name().to_owned(),
            };
            let interval = load.goodput_interval_mbit;
            rows.push(vec![
                stage,
                load.cc.clone().unwrap_or_default(),
                format!("{:.2}", load.goodput_mbit),
                interval.map_or("-".to_owned(), |interval| format!("{interval:.2}")),
                format!("{:.2}", load.line_mbit),
                format!("{:.1} s", load.ramp_up.duration_s),
                count(load.retransmits),
                count(load.ce),
            ]);
        }
    }
    let heads = vec!["Mbits/sec", "cc", "goodput", "±", "line", "ramp-up", "Retr", "CE"];
    Table { heads, words: 2, rows }
}

/// A number that may be unknown.
fn count(of: Option<u64>) -> String {
    of.map_or("-".to_owned(), |count| count.to_string())
}

/// Round trips with and without load.
#[must_use]
pub fn round_trips(measured: &Measurement) -> Table {
    let mut rows = Vec::new();
    let mut add = |stage: &str, by: &str, rtt: &Distribution, sent: Option<u64>| {
        let mut row = vec![stage.to_owned(), by.to_owned()];
        let figures = [rtt.min_ms, rtt.p50_ms, rtt.p95_ms, rtt.p99_ms, rtt.max_ms];
        row.extend(figures.iter().map(|ms| format!("{ms:.2}")));
        row.push(sent.map_or(rtt.n.to_string(), |sent| format!("{} of {sent}", rtt.n)));
        rows.push(row);
    };
    let mut pings = |stage: &str, pings: &[Ping], are_all: bool| {
        for ping in pings {
            if let Some(rtt) = &ping.rtt {
                add(stage, ping.method.name(), rtt, are_all.then_some(ping.sent));
            }
        }
    };
    pings("idle", &measured.idle.pings, true);
    for loaded in &measured.loaded {
        pings(loaded.direction.name(), &loaded.pings, false);
    }
    for loaded in &measured.loaded {
        for (way, load) in ways(loaded) {
            if let Some(rtt) = &load.srtt {
                add(loaded.direction.name(), &format!("TCP_INFO {way}"), rtt, None);
            }
        }
    }
    let heads = vec!["RTT (ms)", "by", "min", "p50", "p95", "p99", "max", "answers"];
    Table { heads, words: 2, rows }
}

/// What all of it means: of what, and what is to be said of it.
#[must_use]
pub fn sentences(measured: &Measurement) -> Vec<(String, String)> {
    let mut said: Vec<(String, String)> = Vec::new();
    let mut say = |of: &str, what: String| said.push((of.to_owned(), what));
    if let Some(grade) = measured.grade {
        say("bufferbloat", format!("{grade} on the scale of {}", Grade::SCALE));
    }
    for loaded in &measured.loaded {
        say(loaded.direction.name(), responsiveness(loaded));
    }
    if !measured.ecn.is_empty() {
        say("ECN", ecn(measured));
    }
    if let Some(place) = bottleneck(measured) {
        say("bottleneck", place);
    }
    let restless: Vec<&str> = measured
        .loaded
        .iter()
        .filter(|loaded| !loaded.stands)
        .map(|loaded| loaded.direction.name())
        .collect();
    if !restless.is_empty() {
        let what = restless.join(", ");
        say(
            "note",
            format!(
                "{what}: time or bytes ran out before the figures stood; --max-time gives more"
            ),
        );
    }
    if measured.server != Server::Dualq {
        say(
            "note",
            format!(
                "{}s tell nothing of ECN, loss and requests on loaded connections: there is no RPM, and QoO takes loss as none",
                measured.server.name()
            ),
        );
    }
    for ping in measured.idle.pings.iter().filter(|ping| ping.rtt.is_none()) {
        let why = match &ping.unable {
            Some(why) => why,
            None if ping.method == Method::Udp => {
                "no datagram was answered, so the port may be blocked for UDP"
            }
            None => "nothing was answered",
        };
        say("note", format!("no {}: {why}", ping.method.name()));
    }
    said
}

/// What a stage under load is good for.
fn responsiveness(loaded: &Loaded) -> String {
    let mut parts = Vec::new();
    if let Some(rpm) = loaded.rpm {
        parts.push(format!(
            "{:.0} RPM (foreign {:.0}, self {:.0})",
            rpm.rpm, rpm.foreign_rpm, rpm.self_rpm
        ));
    }
    let scores =
        loaded.qoo.iter().map(|qoo| format!("{} {:.0}", qoo.application.name(), qoo.score));
    let scores: Vec<String> = scores.collect();
    if !scores.is_empty() {
        parts.push(format!("QoO: {}", scores.join(", ")));
    }
    if let Some(loss) = loaded.loss.filter(|loss| loss.up + loss.down > 0) {
        parts.push(format!(
            "of {} datagrams {} were lost up and {} down",
            loss.sent, loss.up, loss.down
        ));
    }
    parts.join("; ")
}

/// What the path does to the ECN field.
fn ecn(measured: &Measurement) -> String {
    let changed = measured.ecn.iter().filter(|fate| fate.fate != Fate::Passes);
    let told = changed.map(|fate| {
        let way = if fate.direction == Direction::Upload { "up" } else { "down" };
        format!("{} {way}: {}", fate.sent.name(), fate.fate.name())
    });
    let told: Vec<String> = told.collect();
    if told.is_empty() { "passes both ways".to_owned() } else { told.join(", ") }
}

/// Where packets wait that this host sends, and what that means for a queue discipline here.
fn bottleneck(measured: &Measurement) -> Option<String> {
    let place = measured.bottleneck?;
    let sending = measured.loaded.iter().filter(|loaded| loaded.local.is_some());
    let loaded = sending.min_by_key(|loaded| loaded.direction == Direction::Both)?;
    let (local, up) = (loaded.local.as_ref()?, loaded.up.as_ref()?);
    let (interface, qdisc) = (&local.interface, &local.qdisc);
    Some(match place {
        Bottleneck::LocalQueue => format!(
            "what this host sends waits in its own queue, {qdisc} of {interface}: {:.1} ms in the median; another queue discipline there changes that",
            local.delay_ms()
        ),
        Bottleneck::Interface => format!(
            "what this host sends is limited by its own interface, {interface}: a queue discipline there needs no rate"
        ),
        Bottleneck::Beyond => format!(
            "what this host sends waits further on, not in {qdisc} of {interface}: a queue discipline here does nothing for it without a local rate below \
             {:.1} Mbits/sec; dualq plan --from makes such a plan",
            up.line_mbit
        ),
    })
}
