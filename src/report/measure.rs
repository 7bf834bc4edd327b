//! What `dualq measure` says: a table for people, a document for programs.

use std::fmt::Write as _;

use comfy_table::Table;
use dualq_measure::figures::{Fate, Grade};
use dualq_measure::{Bottleneck, Direction, Distribution, Load, Loaded, Measurement, Method, Ping};

use super::{render, wrapped};

pub(crate) fn json(measurement: &Measurement) -> String {
    let mut text = serde_json::to_string(measurement).expect("it has only what JSON has");
    text.push('\n');
    text
}

pub(crate) fn text(measurement: &Measurement, width: usize) -> String {
    let mut text = String::new();
    let cc = measurement.cc.as_ref().map_or(String::new(), |cc| format!(" of {cc}"));
    let _ = writeln!(
        text,
        "{} ({}), {} flow{}{cc} each way, {:.1} MB in all\n",
        measurement.host,
        measurement.address,
        measurement.streams,
        if measurement.streams == 1 { "" } else { "s" },
        measurement.bytes as f64 / 1e6
    );
    let _ = writeln!(text, "{}\n", rates(measurement));
    let _ = writeln!(text, "{}\n", round_trips(measurement));
    if let Some(grade) = measurement.grade {
        let _ = writeln!(text, "bufferbloat {grade} on the scale of {}", Grade::SCALE);
    }
    for loaded in &measurement.loaded {
        responsiveness(&mut text, loaded, width);
    }
    ecn(&mut text, measurement, width);
    bottleneck(&mut text, measurement, width);
    remarks(&mut text, measurement, width);
    text
}

/// Goodput and what it cost.
fn rates(measurement: &Measurement) -> String {
    let mut table = Table::new();
    table.set_header(["Mbits/sec", "goodput", "±", "line", "ramp-up", "Retr", "CE"]);
    for loaded in &measurement.loaded {
        for (way, load) in [("down", &loaded.down), ("up", &loaded.up)] {
            let Some(load) = load else { continue };
            let name = match loaded.direction.name() {
                "both" => format!("both, {way}"),
                name => name.to_owned(),
            };
            table.add_row(rate_row(name, load));
        }
    }
    render(table, 1)
}

fn rate_row(name: String, load: &Load) -> [String; 7] {
    [
        name,
        format!("{:.2}", load.goodput_mbit),
        load.goodput_interval_mbit.map_or("-".to_owned(), |interval| format!("{interval:.2}")),
        format!("{:.2}", load.line_mbit),
        format!("{:.1} s", load.ramp_up.duration_s),
        load.retransmits.to_string(),
        load.ce.to_string(),
    ]
}

/// Round trips with and without load.
fn round_trips(measurement: &Measurement) -> String {
    let mut table = Table::new();
    table.set_header(["RTT (ms)", "by", "min", "p50", "p95", "p99", "max", "answers"]);
    let mut add = |stage: &str, by: &str, rtt: &Distribution, sent: Option<u64>| {
        let mut row = vec![stage.to_owned(), by.to_owned()];
        let figures = [rtt.min_ms, rtt.p50_ms, rtt.p95_ms, rtt.p99_ms, rtt.max_ms];
        row.extend(figures.iter().map(|ms| format!("{ms:.2}")));
        row.push(sent.map_or(rtt.n.to_string(), |sent| format!("{} of {sent}", rtt.n)));
        table.add_row(row);
    };
    let mut pings = |stage: &str, pings: &[Ping], are_all: bool| {
        for ping in pings {
            if let Some(rtt) = &ping.rtt {
                add(stage, ping.method.name(), rtt, are_all.then_some(ping.sent));
            }
        }
    };
    pings("idle", &measurement.idle.pings, true);
    for loaded in &measurement.loaded {
        pings(loaded.direction.name(), &loaded.pings, false);
    }
    for loaded in &measurement.loaded {
        for (way, load) in [("down", &loaded.down), ("up", &loaded.up)] {
            if let Some(rtt) = load.as_ref().and_then(|load| load.srtt.as_ref()) {
                add(loaded.direction.name(), &format!("TCP_INFO {way}"), rtt, None);
            }
        }
    }
    render(table, 2)
}

/// What a stage under load is good for.
fn responsiveness(text: &mut String, loaded: &Loaded, width: usize) {
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
    wrapped(text, &format!("{}: ", loaded.direction.name()), &parts.join("; "), width);
}

/// What the path does to the ECN field, in a line if that is nothing.
fn ecn(text: &mut String, measurement: &Measurement, width: usize) {
    let fates = measurement.ecn.iter().filter(|fate| fate.fate != Fate::Passes);
    let told = fates.map(|fate| {
        let way = if fate.direction == Direction::Upload { "up" } else { "down" };
        format!("{} {way}: {}", fate.sent.name(), fate.fate.name())
    });
    let told: Vec<String> = told.collect();
    if measurement.ecn.is_empty() {
        return;
    }
    let what = if told.is_empty() { "passes both ways".to_owned() } else { told.join(", ") };
    wrapped(text, "ECN: ", &what, width);
}

/// Where packets wait that this host sends, and what that means for a queue discipline here.
fn bottleneck(text: &mut String, measurement: &Measurement, width: usize) {
    let Some(place) = measurement.bottleneck else { return };
    let Some(loaded) = measurement.loaded.iter().rev().find(|loaded| loaded.local.is_some()) else {
        return;
    };
    let (Some(local), Some(up)) = (&loaded.local, &loaded.up) else { return };
    let (interface, qdisc) = (&local.interface, &local.qdisc);
    let what = match place {
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
    };
    wrapped(text, "bottleneck: ", &what, width);
}

/// What is to be known of the figures.
fn remarks(text: &mut String, measurement: &Measurement, width: usize) {
    let restless: Vec<&str> = measurement
        .loaded
        .iter()
        .filter(|loaded| !loaded.stands)
        .map(|loaded| loaded.direction.name())
        .collect();
    if !restless.is_empty() {
        let what = restless.join(", ");
        let remark = format!(
            "{what}: time or bytes ran out before the figures stood; --max-time gives more"
        );
        wrapped(text, "note: ", &remark, width);
    }
    for ping in measurement.idle.pings.iter().filter(|ping| ping.rtt.is_none()) {
        let why = match &ping.unable {
            Some(why) => why,
            None if ping.method == Method::Udp => {
                "no datagram was answered, so the port may be blocked for UDP"
            }
            None => "nothing was answered",
        };
        wrapped(text, "note: ", &format!("no {}: {why}", ping.method.name()), width);
    }
}
