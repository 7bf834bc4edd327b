//! Tables and sentences, which the terminal and the page have in common.

use dualq_measure::figures::{
    Codepoint, Fate, Grade, Opener, Stability, TcpEcn, WorkingConditions,
};
use dualq_measure::{
    Bottleneck, Direction, Distribution, Handshakes, Hop, Larger, LargestPacket, Load, Loaded,
    Loss, MarksBy, Measurement, Method, PathMtu, Ping, Place, Server,
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

/// How many flows loaded the path.
#[must_use]
pub fn flows(measured: &Measurement) -> String {
    let grew = measured.loaded.iter().any(|loaded| loaded.working_conditions.is_some());
    let (most, streams) = (if grew { "up to " } else { "" }, measured.streams);
    let flows = if streams == 1 { "flow" } else { "flows" };
    format!("{most}{streams} {flows} each way")
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
        if let Some(conditions) = &loaded.working_conditions {
            say(&format!("{}, confidence", loaded.direction.name()), confidence(conditions));
        }
    }
    if let Some(loss) = measured.idle.loss.filter(|loss| loss.up > 1 || loss.down > 1) {
        say("random loss", random_loss(&loss));
    }
    if !measured.ecn.is_empty() {
        say("ECN", ecn(measured));
    }
    if let Some(mtu) = measured.mtu {
        say("MTU", path_mtu(&mtu));
    }
    if let Some(what) = tcp_ecn(measured) {
        say("ECN of TCP", what);
    }
    if let Some(place) = bottleneck(measured) {
        say("bottleneck", place);
    }
    if let Some(limit) = measured.rate_limit_mbit.filter(|limit| is_reached(measured, *limit)) {
        let what = format!("a limit of {limit} Mbits/sec was reached, so the path may carry more");
        say("note", what);
    }
    if echoes_are_counted(measured) {
        let what = "CE counts what senders were told, since no receiver's kernel counts marks (Linux 6.18 does): with classic ECN that is several times as many";
        say("note", what.to_owned());
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

/// Whether flows were about as fast as they might be: pacing counts headers, more or fewer of them.
fn is_reached(measured: &Measurement, limit_mbit: f64) -> bool {
    let mut loads = measured.loaded.iter().flat_map(ways);
    loads.any(|(_, load)| load.line_mbit > 0.9 * limit_mbit)
}

/// Whether marks are known only from the echoes of classic ECN.
fn echoes_are_counted(measured: &Measurement) -> bool {
    let own = measured.handshakes.seen.iter().find(|one| one.by == Opener::Kernel);
    let are_marks = own.is_some_and(|own| own.here == Some(TcpEcn::Accurate));
    let mut loads = measured.loaded.iter().flat_map(ways);
    !are_marks && loads.any(|(_, load)| load.ce_by == Some(MarksBy::Senders))
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

/// What flows that grew in number came to.
fn confidence(conditions: &WorkingConditions) -> String {
    let WorkingConditions { flows, goodput, responsiveness } = conditions;
    let of = |what: &str, Stability { confidence, stable_s }: &Stability| {
        let stable = stable_s.map_or("not stable".to_owned(), |s| format!("stable after {s:.0} s"));
        format!("{what} {} ({stable})", confidence.name())
    };
    let word = if *flows == 1 { "flow" } else { "flows" };
    let (goodput, rpm) = (of("goodput", goodput), of("RPM", responsiveness));
    format!("{goodput}, {rpm}, with {flows} {word} at the end")
}

/// What is lost though nothing waits.
fn random_loss(loss: &Loss) -> String {
    let Loss { sent, up, down } = loss;
    format!(
        "{:.2} % up, {:.2} % down, without load: of {sent} datagrams {up} were lost up and {down} down. No queue discipline mends that",
        loss.up_ratio() * 100.0,
        loss.down_ratio() * 100.0
    )
}

/// What the path does to the ECN field.
fn ecn(measured: &Measurement) -> String {
    let changed = measured.ecn.iter().filter(|fate| fate.fate != Fate::Passes);
    let told = changed.map(|fate| {
        let way = if fate.direction == Direction::Upload { "up" } else { "down" };
        format!("{} {way}: {}{}", fate.sent.name(), fate.fate.name(), placed(fate.place))
    });
    let told: Vec<String> = told.collect();
    if told.is_empty() { "passes both ways".to_owned() } else { told.join(", ") }
}

/// Between which hops, if that is known.
fn placed(place: Option<Place>) -> String {
    let hop = |hop: Hop| format!("hop {} ({})", hop.number, hop.address);
    match place {
        None => String::new(),
        Some(Place { after: None, before }) => format!(" before {}", hop(before)),
        Some(Place { after: Some(after), before }) => {
            format!(" after {}, before {}", hop(after), hop(before))
        }
    }
}

/// How large packets may be.
fn path_mtu(mtu: &PathMtu) -> String {
    let way = |name: &str, largest: &LargestPacket| {
        let larger = match largest.larger {
            Larger::Untried => return format!("{} bytes {name}", largest.bytes),
            Larger::Refused => match largest.said_by {
                Some(by) => format!("larger packets are too big, as {by} says"),
                None => "larger packets are too big, as this host knows".to_owned(),
            },
            Larger::Vanish => format!(
                "larger packets vanish{} without a word (dualq mtu tells what helps)",
                placed(largest.place)
            ),
            Larger::Lost => "larger packets do not arrive".to_owned(),
            Larger::Unclear => "too many packets are lost to tell of larger ones".to_owned(),
        };
        format!("{} bytes {name}: {larger}", largest.bytes)
    };
    format!("{}; {}", way("up", &mtu.up), way("down", &mtu.down))
}

/// Which ECN handshakes of TCP agree on, and what the path does to them.
fn tcp_ecn(measured: &Measurement) -> Option<String> {
    let Handshakes { seen, unable } = &measured.handshakes;
    let mut parts = Vec::new();
    for one in seen {
        let Some(asked) = one.asked else { continue };
        let here = one.here;
        match (one.by, here) {
            (Opener::Kernel, Some(here)) if asked == TcpEcn::Off && here == TcpEcn::Off => {
                parts.push("this host does not ask for it (net.ipv4.tcp_ecn)".to_owned());
            }
            (Opener::Kernel, Some(TcpEcn::Off)) => {
                parts.push(format!("this host asks for {} and gets none", asked.name()));
            }
            (Opener::Kernel, Some(here)) => {
                parts.push(format!("connections of this host have {}", here.name()));
            }
            (Opener::Program, Some(here))
                if asked != TcpEcn::Off && one.ip == Codepoint::NotEct =>
            {
                parts.push(format!("who asks for {} gets {}", asked.name(), here.name()));
            }
            _ => {}
        }
    }
    for one in seen.iter().filter(|one| one.asked != Some(TcpEcn::Off)) {
        let sort = one.asked.map_or("", TcpEcn::name);
        let carrying = match one.ip {
            Codepoint::NotEct => String::new(),
            ip => format!(" as {}", ip.name()),
        };
        for (way, crossing) in one.ways() {
            let packet = if way == "up" { "SYN" } else { "SYN-ACK" };
            match crossing.fate {
                Fate::Passes | Fate::Unknown => {}
                // Whether the question was lost or the answer nobody knows.
                Fate::BlackHole => {
                    parts.push(format!("a SYN for {sort}{carrying} is not answered: black hole"));
                }
                fate => parts.push(format!("{packet} for {sort}{carrying} {way}: {}", fate.name())),
            }
        }
    }
    if parts.is_empty() {
        return None;
    }
    if unable.is_some() {
        parts.push("with raw sockets (CAP_NET_RAW) SYNs of each sort would be tried".to_owned());
    }
    Some(parts.join("; "))
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
