//! What a paced sender's interface does.

use dualq_model::simulate_watched;
use dualq_scenario::{Event, Seen, Sweep};

/// When packets reach the bottleneck, in nanoseconds, and from which offset of the stream on, from a sender behind `qdisc`.
fn arrivals(qdisc: &str, cc: &str) -> Vec<(u64, u64)> {
    let sweep = format!(
        "duration = \"1s\"\nwarmup = \"100ms\"\nlink = {{ rate = \"50mbit\", rtt = \"20ms\", qdisc = \"bfifo limit 750000\" }}\n\
         sender = {{ qdisc = \"{qdisc}\" }}\n[[flow]]\ncc = \"{cc}\"\n"
    );
    let sweep = Sweep::parse(&sweep).expect("a sweep");
    let mut arrivals = Vec::new();
    simulate_watched(&sweep.variants()[0].scenario, 1, &mut |event: Event| {
        if event.seen == Seen::In && event.flow == 0 && event.bytes > 0 {
            arrivals.push((event.at_ns, event.seq));
        }
    })
    .expect("what the model has");
    arrivals
}

#[test]
fn what_fq_holds_back_leaves_with_its_timer_and_the_timers_slack() {
    let late = |slack| {
        let (exact, late) = (arrivals("fq timer_slack 1ns", "bbr"), arrivals(slack, "bbr"));
        let first = exact.iter().zip(&late).find(|(exact, late)| exact != late);
        first.map_or(0, |(exact, late)| late.0 - exact.0)
    };
    assert_eq!(late("fq"), 9_999);
    // The link's timer runs out in that time, and takes it along.
    assert_eq!(late("fq timer_slack 100us"), 23_640);
}

/// The first acknowledgement allows two packets of two segments; the second waits for half its time at twice the window per round
/// trip, for the first came late, and then for the slack.
#[test]
fn the_second_packet_of_an_acknowledgement_waits() {
    let arrivals = arrivals("fq", "reno");
    // Eight nanoseconds are those of a program that opens and writes, and of three timers.
    assert_eq!(arrivals[5..7], [(40_000_008, 14_480), (40_843_342, 17_376)]);
}
