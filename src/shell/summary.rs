//! What is said at the end: one block of what the link saw.

use std::fmt::Write as _;

use dualq_units::Bytes;

use super::document::{Delay, Document, OtherQueue, Way};

/// The block, without anything that could steer a terminal: all of it is dualq's own.
pub(crate) fn text(document: &Document) -> String {
    let mut text = String::new();
    let Document { seconds, down, up, .. } = document;
    let _ = writeln!(text, "dualq: {seconds:.1} s across the link");
    for (title, way) in [("down, far to near", down), ("up, near to far", up)] {
        describe(&mut text, title, way, *seconds);
    }
    let verdict = match document.why_not.as_slice() {
        [] => "The figures are those of the path.".to_owned(),
        reasons => format!("NOT VALID: {}", reasons.join("; ")),
    };
    let _ = writeln!(text, "{verdict}");
    text
}

fn describe(text: &mut String, title: &str, way: &Way, seconds: f64) {
    let rate = way.rate.as_deref().unwrap_or("no rate");
    let mean = way.left.bytes as f64 * 8.0 / seconds.max(f64::MIN_POSITIVE) / 1e6;
    let _ = writeln!(
        text,
        "{title} ({rate}): {} packets, {}, {mean:.2} Mbits/sec on average; {}",
        way.left.packets,
        Bytes(way.left.bytes),
        fates(way)
    );
    for delay in way.queue_delay.iter().filter(|delay| delay.packets > 0) {
        let _ = writeln!(text, "  queue delay{}", percentiles(delay));
    }
    statistics(text, &way.text);
    for OtherQueue { delay, text: of_tc, .. } in &way.other_queues {
        if delay.packets > 0 {
            let _ = writeln!(text, "  queue delay{}", percentiles(delay));
        }
        statistics(text, of_tc);
    }
    if way.lateness.packets > 0 {
        let _ = writeln!(
            text,
            "  lateness of the link itself{}; {:.0} % of a processor",
            percentiles(&way.lateness),
            way.cpu * 100.0
        );
    }
}

fn statistics(text: &mut String, of_tc: &str) {
    for line in of_tc.lines().filter(|line| !line.trim().is_empty()) {
        let _ = writeln!(text, "  {line}");
    }
}

fn percentiles(delay: &Delay) -> String {
    let Delay { name, packets, p50_ms, p95_ms, p99_ms, max_ms, .. } = delay;
    let name = if name.is_empty() { String::new() } else { format!(" {name}") };
    format!(
        "{name}: p50 {p50_ms:.3}, p95 {p95_ms:.3}, p99 {p99_ms:.3}, max {max_ms:.3} ms of {packets} packets"
    )
}

/// What became of packets that did not simply arrive.
fn fates(way: &Way) -> String {
    let lost = &way.lost;
    let mut fates = vec![format!("{} marked, {} dropped", way.marked, lost.queue)];
    for (count, what) in [
        (lost.random, "lost at random"),
        (lost.too_long, "too long"),
        (lost.policed, "policed"),
        (lost.flushed, "lost with a queue that was replaced"),
        (way.copied, "came twice"),
        (way.inside, "still on the way"),
        (lost.no_room, "lost for want of memory"),
        (lost.refused, "refused by the other device"),
        (way.device_dropped, "dropped by the device"),
    ] {
        if count > 0 {
            fates.push(format!("{count} {what}"));
        }
    }
    fates.join(", ")
}
