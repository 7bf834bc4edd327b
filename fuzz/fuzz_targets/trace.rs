//! Any bytes, as a trace or a capture, and whatever comes of them through a link.

#![no_main]

use dualq_replay::{EventLog, Replay, Settings, trace};
use dualq_units::{Instant, Rate};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut arrivals) = trace::read(bytes, 1500) else { return };
    let spec = dualq_qdisc::grammar::parse("dualpi2 limit 100").expect("it is right").spec;
    let settings =
        Settings { rate: Rate::from_mbit(1000), mtu: 1500, seed: Settings::DEFAULT_SEED };
    let mut replay = Replay::new(&[spec], &settings, None::<EventLog<Vec<u8>>>);
    let mut previous = Instant::ZERO;
    while let Ok(Some(arrival)) = arrivals.next_arrival() {
        assert!(arrival.at >= previous, "time goes backwards");
        assert!(arrival.length > 0);
        previous = arrival.at;
        // Whatever the clock does: idle time costs next to nothing.
        if arrival.length < 1 << 20 {
            replay.arrive(&arrival);
        }
    }
    let (outcomes, _) = replay.finish().expect("nothing is written");
    let counters = outcomes[0].stats.counters;
    assert_eq!(counters.backlog_packets, 0);
    assert_eq!(outcomes[0].total.packets_in(), counters.sent_packets + counters.drops);
});
