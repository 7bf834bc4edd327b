//! More than a queue in one direction, on real Linux: the other direction, what packets pass beside the queue, UDP, and what flows do
//! beside sending all the time.

use std::fs;

use serde_json::Value;

use crate::{dualq, error, json, kernel, stdout, text};

/// The outcome of a plan in the world `kernel`; the common part of all plans is given here.
fn outcome(plan: &str) -> Option<Value> {
    kernel()?;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.toml");
    fs::write(&path, format!("duration = '10s'\nwarmup = '3s'\n{plan}")).unwrap();
    let args = ["run", path.to_str().unwrap(), "--world", "kernel", "--json", "--no-progress"];
    let outcome = json(&args)["runs"][0]["outcome"].clone();
    assert_eq!(outcome["limits"], Value::Array(Vec::new()), "{plan}");
    Some(outcome)
}

fn figure(outcome: &Value, at: &str) -> f64 {
    outcome.pointer(at).and_then(Value::as_f64).unwrap_or_else(|| panic!("{at}: {outcome:#}"))
}

/// A figure that is a whole number, or is meant to be none at all.
fn count(outcome: &Value, at: &str) -> u64 {
    let figure = figure(outcome, at);
    assert!(figure >= 0.0 && figure.fract().abs() < f64::EPSILON, "{at}: {figure}");
    figure as u64
}

/// A line of 50 Mbit/s and 10 upwards, full in both directions.
#[test]
fn both_directions_are_full_at_once() {
    let Some(outcome) = outcome(
        "[link]\nrate = '50mbit'\nforward = '10ms'\nreverse = '20ms'\nqdisc = 'fq_codel'\n\
         [link.up]\nrate = '10mbit'\n\
         [[flow]]\ncc = 'cubic'\ncount = 4\n[[flow]]\ncc = 'cubic'\ncount = 4\ndirection = 'up'\n",
    ) else {
        return;
    };
    let (down, up) =
        (figure(&outcome, "/flow/0/total_mbit"), figure(&outcome, "/flow/1/total_mbit"));
    // Of a frame of 1514 bytes 1448 are payload, and acknowledgements take their part: one of 66 bytes for two frames.
    let payload = 1448.0 / 1514.0;
    let acknowledgements = |frames_mbit: f64| frames_mbit * 33.0 / 1514.0;
    let most = [(down, 50.0 - acknowledgements(10.0)), (up, 10.0 - acknowledgements(50.0))];
    for (goodput, rate) in most {
        let share = goodput / (rate * payload);
        assert!((0.95..1.02).contains(&share), "{goodput} of {rate}");
    }
    for queue in ["queue", "up_queue"] {
        assert_eq!(outcome[queue]["tc"]["kind"], "fq_codel");
        assert!(figure(&outcome, &format!("/{queue}/drops")) > 0.0, "{outcome:#}");
        let delay = figure(&outcome, &format!("/{queue}/delay_mean_ms"));
        assert!((0.5..10.0).contains(&delay), "{queue}: {delay}");
    }
}

/// Acknowledgements and answers wait behind what goes up; their delay is that of the up queue.
#[test]
fn acknowledgements_wait_in_the_up_queue() {
    let up = |flows: &str| {
        outcome(&format!(
            "[link]\nrate = '20mbit'\nrtt = '20ms'\nqdisc = 'pfifo limit 1000'\n\
             [link.up]\nrate = '2mbit'\nqdisc = 'bfifo limit 50000'\n\
             [[flow]]\ncc = 'reno'\nsize = '20kb'\n[[probe]]\nkind = 'ping'\ninterval = '20ms'\n{flows}"
        ))
    };
    let (Some(idle), Some(full)) = (up(""), up("[[flow]]\ncc = 'cubic'\ndirection = 'up'\n"))
    else {
        return;
    };
    let ping = |outcome| figure(outcome, "/probe/0/p50_ms");
    assert!((ping(&idle) - 20.0).abs() < 0.5, "{}", ping(&idle));
    let waits = figure(&full, "/up_queue/delay_p50_ms");
    // 50 kB take 200 ms at 2 Mbit/s.
    assert!((80.0..201.0).contains(&waits), "{waits}");
    assert!((ping(&full) - 20.0 - waits).abs() < 15.0, "{} {waits}", ping(&full));
    assert!(figure(&full, "/queue/delay_max_ms") < 1.0, "{:#}", full["queue"]);
}

/// Half of what the link has arrives at once and whole; of twice as much, half, after all that the queue takes.
#[test]
fn udp_heeds_nothing() {
    let at = |rate: &str, direction: &str| {
        outcome(&format!(
            "[link]\nrate = '100mbit'\nforward = '10ms'\nreverse = '10ms'\nqdisc = 'pfifo limit 100'\n\
             [link.up]\nrate = '100mbit'\n\
             [[udp]]\nrate = '{rate}'\necn = 'ect1'\ndirection = '{direction}'\n"
        ))
    };
    for direction in ["down", "up"] {
        let (Some(half), Some(double)) = (at("50mbit", direction), at("200mbit", direction)) else {
            return;
        };
        let of = |outcome: &Value, name: &str| figure(outcome, &format!("/udp/0/{name}"));
        assert_eq!((of(&half, "lost"), of(&half, "reordered")), (0.0, 0.0));
        assert_eq!(count(&half, "/udp/0/line_mbit"), 50);
        // The last 10 ms are on their way.
        assert!((of(&half, "sent") - of(&half, "received") - 41.0).abs() < 3.0);
        assert!((of(&half, "delay/max_ms") - 10.0).abs() < 0.01);
        let sent = of(&double, "sent");
        assert!((of(&double, "line_mbit") - 200.0).abs() < 0.1);
        assert!((of(&double, "received") / sent - 0.5).abs() < 0.01);
        assert!((of(&double, "lost") / sent - 0.5).abs() < 0.01);
        // A hundred packets of 1514 bytes wait 12.1 ms.
        assert!((of(&double, "delay/p50_ms") - 22.1).abs() < 0.2, "{double:#}");
        let ect = if direction == "down" { "queue" } else { "up_queue" };
        assert!(figure(&double, &format!("/{ect}/delay_ect/packets")) > 10_000.0);
    }
}

/// Marks that a queue makes arrive, and are counted.
#[test]
fn udp_is_marked() {
    let Some(outcome) = outcome(
        "[link]\nrate = '10mbit'\nrtt = '20ms'\nqdisc = 'dualpi2'\n\
         [[udp]]\nrate = '9mbit'\necn = 'ect1'\n[[flow]]\ncc = 'cubic'\n",
    ) else {
        return;
    };
    let marks = figure(&outcome, "/udp/0/ce_marks");
    assert!(marks > 10.0 && marks <= figure(&outcome, "/queue/marks") * 1.01, "{outcome:#}");
}

/// Large packets vanish: what fits goes on. A router that says so, before or behind the queue and in either direction, cures it.
#[test]
fn a_black_hole_hangs_what_is_large_and_icmp_cures_it() {
    let through = |element: &str, place: &str, direction: &str| {
        let link = if direction == "up" { "[link.up]\nrate = '15mbit'\n" } else { "" };
        outcome(&format!(
            "[link]\nrate = '20mbit'\nrtt = '20ms'\nqdisc = 'pfifo limit 100'\n\
             {link}{place} = [{{ mtu = 1300{element} }}]\n[[flow]]\ncc = 'cubic'\ndirection = '{direction}'\n\
             [[udp]]\nrate = '0.1mbit'\npacket = 1300\ndirection = '{direction}'\n\
             [[udp]]\nrate = '0.1mbit'\npacket = 1301\ndirection = '{direction}'\n"
        ))
    };
    for (place, direction) in [("before", "down"), ("behind", "up")] {
        let (Some(hole), Some(told)) =
            (through(", icmp = false", place, direction), through("", place, direction))
        else {
            return;
        };
        assert_eq!(count(&hole, "/flow/0/total_mbit"), 0);
        assert!(figure(&hole, "/flow/0/timeouts") >= 1.0);
        assert!(figure(&hole, "/probe/0/n") > 90.0);
        assert!(figure(&told, "/flow/0/total_mbit") > 13.0);
        assert!(figure(&told, "/flow/0/total_mbit") < 20.0 * 1248.0 / 1314.0);
        for outcome in [hole, told] {
            assert!(figure(&outcome, "/udp/0/received") > 50.0);
            assert_eq!(count(&outcome, "/udp/1/received"), 0);
        }
    }
}

/// A delay that varies reorders, unless it is told not to; either way it is within its bounds.
#[test]
fn jitter_reorders() {
    let with = |more: &str| {
        outcome(&format!(
            "[link]\nrate = '20mbit'\nrtt = '20ms'\nqdisc = 'pfifo limit 100'\n\
             behind = [{{ delay = '10ms', jitter = '5ms'{more} }}]\n\
             [[udp]]\nrate = '1mbit'\npacket = 100\n"
        ))
    };
    let (Some(free), Some(kept)) = (with(""), with(", reorder = false")) else { return };
    // Packets are a millisecond apart: most have one before them that takes more than that longer.
    let share = figure(&free, "/udp/0/reordered") / figure(&free, "/udp/0/received");
    assert!((0.5..0.9).contains(&share), "{share}");
    assert_eq!(count(&kept, "/udp/0/reordered"), 0);
    for outcome in [&free, &kept] {
        // Nothing but what was overtaken at the very end.
        assert!(figure(outcome, "/udp/0/lost") <= 10.0);
        assert!((figure(outcome, "/udp/0/delay/max_ms") - 15.0).abs() < 0.1);
    }
    let mean = |outcome| figure(outcome, "/udp/0/delay/mean_ms");
    assert!((mean(&free) - 10.0).abs() < 0.3, "{}", mean(&free));
    assert!(mean(&kept) > 11.0, "{}", mean(&kept));
}

/// What is lost, comes twice and waits elsewhere, before and behind the queue.
#[test]
fn elements_do_what_they_say() {
    let with = |elements: &str, udp: &str| {
        outcome(&format!(
            "[link]\nrate = '20mbit'\nrtt = '20ms'\nqdisc = 'pfifo limit 100'\n{elements}\n[[udp]]\n{udp}\n"
        ))
    };
    let lossy = "before = [{ loss = '10%' }]\nbehind = [{ duplicate = '20%' }]";
    let queue = "before = [{ rate = '2mbit', qdisc = 'pfifo limit 10' }, { delay = '7ms' }]";
    let (Some(lossy), Some(queued)) =
        (with(lossy, "rate = '1mbit'\npacket = 100"), with(queue, "rate = '3mbit'"))
    else {
        return;
    };
    let of = |outcome: &Value, name: &str| figure(outcome, &format!("/udp/0/{name}"));
    // Of 7675 packets, and of those left: three standard deviations.
    let share = |one: &str, other: &str| of(&lossy, one) / of(&lossy, other);
    assert!((share("lost", "sent") - 0.1).abs() < 0.011, "{lossy:#}");
    assert!((share("duplicates", "received") - 0.2).abs() < 0.015, "{lossy:#}");
    // The other queue holds ten packets, 6.06 ms each.
    assert!((of(&queued, "received") / of(&queued, "sent") - 0.667).abs() < 0.01, "{queued:#}");
    assert!((60.0..70.0).contains(&of(&queued, "delay/p50_ms")), "{queued:#}");
    assert!(figure(&queued, "/queue/delay_max_ms") < 1.0);
}

/// Packets of a burst wait for their turn, which comes 4 to 8 ms after the first of them: a call's have turns of their own. Of 991
/// packets a second there is room for 500, three in 6 ms: of those sent from the third second on, 2030 leave before the tenth.
#[test]
fn bursts_wait_for_their_turn() {
    let with = |udp: &str| {
        outcome(&format!(
            "[link]\nrate = '100mbit'\nrtt = '0ms'\nqdisc = 'pfifo'\n\
             behind = [{{ slot = '4ms', slot_max = '8ms', packets = 3 }}]\n[[udp]]\n{udp}\n\
             [[probe]]\nkind = 'ping'\ninterval = '5s'\n"
        ))
    };
    let (Some(call), Some(crowd)) = (with("kind = 'voice'"), with("rate = '12mbit'")) else {
        return;
    };
    // Drawn uniformly: of 350 packets three standard deviations of the mean are 0.19 ms. The probe hardly asks: whoever comes while another waits
    // has a part of that one's time.
    let delay = |at: &str| figure(&call, &format!("/udp/0/delay/{at}"));
    assert!((delay("mean_ms") - 6.0).abs() < 0.19, "{call:#}");
    assert!((5.4..6.5).contains(&delay("p50_ms")) && delay("p99_ms") < 8.1, "{call:#}");
    let share = figure(&crowd, "/udp/0/received") / figure(&crowd, "/udp/0/sent");
    assert!((0.27..0.32).contains(&share), "{crowd:#}");
}

/// What a queue marked arrives unmarked behind a router that clears the field; before it, nothing can be marked.
#[test]
fn marks_are_bleached() {
    let with = |elements: &str| {
        outcome(&format!(
            "[link]\nrate = '20mbit'\nrtt = '20ms'\nqdisc = 'dualpi2'\n{elements}\
             [[flow]]\ncc = 'cubic'\necn = true\n[[udp]]\nrate = '2mbit'\necn = 'ect1'\n"
        ))
    };
    let (Some(none), Some(behind), Some(before)) =
        (with(""), with("behind = [{ bleach = true }]\n"), with("before = [{ bleach = true }]\n"))
    else {
        return;
    };
    let figures = |outcome: &Value| {
        ["/flow/0/ce_marks", "/udp/0/ce_marks", "/queue/marks"].map(|at| figure(outcome, at))
    };
    let [flow, udp, queue] = figures(&none);
    assert!(flow > 0.0 && udp > 0.0 && queue >= flow + udp - 10.0, "{none:#}");
    let [flow, udp, queue] = figures(&behind);
    assert!((flow, udp) == (0.0, 0.0) && queue > 0.0, "{behind:#}");
    let counts = ["/flow/0/ce_marks", "/udp/0/ce_marks", "/queue/marks"];
    assert_eq!(counts.map(|at| count(&before, at)), [0; 3]);
    assert_eq!(before["queue"]["delay_ect"], Value::Null);
    // Aggregates stay whole, and all goes on.
    for outcome in [behind, before] {
        assert!(figure(&outcome, "/flow/0/total_mbit") > 16.0, "{outcome:#}");
        assert!(figure(&outcome, "/udp/0/received") > 1000.0, "{outcome:#}");
    }
}

/// A policer drops and delays nothing; what it lets pass is its rate, and a burst.
#[test]
fn a_policer_drops_what_exceeds_its_rate() {
    let Some(outcome) = outcome(
        "[link]\nrate = '50mbit'\nrtt = '20ms'\nqdisc = 'fq_codel'\nbehind = [{ police = '10mbit', burst = '30kb' }]\n\
         [[udp]]\nrate = '20mbit'\npacket = 1000\n",
    ) else {
        return;
    };
    let of = |name: &str| figure(&outcome, &format!("/udp/0/{name}"));
    assert!((of("received") / of("sent") - 0.5).abs() < 0.002, "{outcome:#}");
    assert!(of("delay/max_ms") < 0.1, "{outcome:#}");
}

/// Flows are ECT(1) whatever their congestion control is: they have the low latency queue.
#[test]
fn any_flow_can_be_ect1() {
    for direction in ["down", "up"] {
        let Some(outcome) = outcome(&format!(
            "[link]\nrate = '20mbit'\nrtt = '20ms'\nqdisc = 'dualpi2'\n[link.up]\nrate = '20mbit'\n\
             [[flow]]\ncc = 'dctcp'\necn = true\nect1 = true\ndirection = '{direction}'\n\
             [[flow]]\ncc = 'cubic'\necn = true\ndirection = '{direction}'\n"
        )) else {
            return;
        };
        let queue = if direction == "down" { "queue" } else { "up_queue" };
        let low = figure(&outcome, &format!("/{queue}/tc/pkts-in-l"));
        let all = figure(&outcome, "/flow/0/data_packets");
        assert!(low > 1000.0 && low > all, "{outcome:#}");
        assert!(figure(&outcome, "/flow/0/ce_marks") > 100.0, "{outcome:#}");
        let shares = [0, 1].map(|flow| figure(&outcome, &format!("/flow/{flow}/total_mbit")));
        assert!(shares[0] > 3.0 && shares[1] > 3.0, "{shares:?}");
    }
}

/// Transfers on one connection: each is counted, those under way too, and none is late that need not be.
#[test]
fn transfers_are_made_again_and_again() {
    let with = |flow: &str| {
        outcome(&format!(
            "[link]\nrate = '20mbit'\nrtt = '20ms'\nqdisc = 'pfifo limit 100'\n[[flow]]\n{flow}\n"
        ))
    };
    let (Some(few), Some(many)) = (
        with("cc = 'cubic'\nsize = '100kb'\nevery = '200ms'\nstop = '8.1s'"),
        with("cc = 'reno'\nsize = '2mb'\nevery = '500ms'\nstart = '5s'"),
    ) else {
        return;
    };
    let class =
        |outcome: &Value, name: &str| figure(outcome, &format!("/flow/0/completions/0/{name}"));
    assert_eq!((class(&few, "transfers"), class(&few, "done")), (41.0, 41.0));
    // 102,400 bytes take 43 ms, and a round trip; the first has a handshake and a slow start.
    assert!((0.06..0.065).contains(&class(&few, "p50_s")), "{few:#}");
    assert!((0.08..0.15).contains(&class(&few, "max_s")), "{few:#}");
    // 2 MB each half second are more than the link has: 0.9 s each.
    assert_eq!(count(&many, "/flow/0/completions/0/transfers"), 10);
    assert!((4.0..6.0).contains(&class(&many, "done")), "{many:#}");
    assert!((1.5..3.5).contains(&class(&many, "max_s")), "{many:#}");
}

/// Queues of elements have figures as in the model, wherever they are.
#[test]
fn queues_of_elements_are_told_of_as_in_the_model() {
    let Some(both) = in_both_worlds(
        "duration = '12s'\nwarmup = '2s'\n[link]\nrate = '20mbit'\nrtt = '40ms'\nqdisc = 'fq_codel'\n\
         before = [{ rate = '30mbit', qdisc = 'fq_codel' }, { delay = '1ms' }]\n\
         behind = [{ delay = '1ms' }, { rate = '10mbit', qdisc = 'bfifo limit 100kb' }]\n\
         [link.up]\nbefore = [{ rate = '2mbit', qdisc = 'fq_codel' }]\n\
         [[flow]]\ncc = 'reno'\n[[flow]]\ncc = 'reno'\ndirection = 'up'\n",
    ) else {
        return;
    };
    for (number, (at, least_ms)) in
        [("before 1", 0.0), ("behind 2", 20.0), ("up before 1", 1.0)].into_iter().enumerate()
    {
        let [model, kernel] = both.each_ref().map(|outcome| &outcome["other_queues"][number]);
        assert_eq!((&model["at"], &kernel["at"]), (&at.into(), &at.into()));
        let of = |figure: &str| {
            [model, kernel].map(|other| {
                other["queue"][figure].as_f64().unwrap_or_else(|| panic!("{at}: {figure}"))
            })
        };
        let [model_ms, kernel_ms] = of("delay_p50_ms");
        assert!(
            (model_ms - kernel_ms).abs() < 0.1 * kernel_ms + 0.5,
            "{at}: {model_ms} {kernel_ms}"
        );
        assert!(kernel_ms >= least_ms, "{at}: {kernel_ms}");
        let [model_sent, kernel_sent] = of("sent_packets");
        assert!((model_sent / kernel_sent - 1.0).abs() < 0.03, "{at}: {model_sent} {kernel_sent}");
        let [model_drops, kernel_drops] = of("drops");
        assert!(
            (model_drops > 0.0) == (least_ms > 0.0) && (kernel_drops > 0.0) == (least_ms > 0.0),
            "{at}"
        );
    }
}

/// A window of a small buffer limits; programs that read seldom take what has come.
#[test]
fn receivers_have_limits_of_their_own() {
    let Some(outcome) = outcome(
        "[link]\nrate = '20mbit'\nrtt = '20ms'\nqdisc = 'fq_codel'\n\
         [[flow]]\ncc = 'cubic'\nreceive_buffer = '16kb'\n[[flow]]\ncc = 'cubic'\nread_interval = '40ms'\n\
         [[probe]]\nkind = 'ping'\ninterval = '10ms'\n",
    ) else {
        return;
    };
    let goodput = |flow| figure(&outcome, &format!("/flow/{flow}/total_mbit"));
    // 32 KiB, or the part of them that Linux makes a window of, per round trip.
    assert!((3.0..13.2).contains(&goodput(0)), "{outcome:#}");
    assert!(goodput(1) > goodput(0) * 0.7 && goodput(0) + goodput(1) < 19.2, "{outcome:#}");
}

/// Packet by packet a plan is the same in the model and on real Linux, as far as its first flow shows.
fn assert_the_same_packets(plan: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.toml");
    fs::write(&path, plan).unwrap();
    let told = stdout(&["diff", path.to_str().unwrap(), "--slack", "300", "--flow", "0"]);
    assert!(told.starts_with("the same packets in both worlds"), "{told}");
}

/// Streams of UDP that go up are compared like those that go down.
#[test]
fn udp_that_goes_up_has_the_same_packets() {
    if kernel().is_none() {
        return;
    }
    assert_the_same_packets(
        "duration = '1s'\nwarmup = '0s'\nprobe = []\n[link]\nrate = '20mbit'\nrtt = '20ms'\nqdisc = 'pfifo limit 20'\n\
         [link.up]\nrate = '2mbit'\n[[udp]]\nrate = '3mbit'\ndirection = 'up'\n",
    );
}

/// Two packets that arrive at one instant are both taken in, and acknowledged, before the program reads that pauses in between and waits for them: its buffer grows
/// behind the acknowledgement.
#[test]
fn who_waits_for_data_reads_when_all_of_an_instant_have_come() {
    if kernel().is_none() {
        return;
    }
    assert_the_same_packets(
        "duration = '1s'\nwarmup = '200ms'\n[link]\nrate = '200mbit'\nforward = '63.998666ms'\nreverse = '127.997334ms'\n\
         qdisc = 'pfifo limit 1001'\n[link.up]\nrate = '100mbit'\n[sender]\ngso = false\n\
         [[flow]]\ncc = 'cubic'\necn = true\nread_interval = '2ms'\n",
    );
}

/// The last packet of an answer waits for a fuller one like any other, as nothing says that it is the last.
#[test]
fn the_end_of_an_answer_is_no_end_of_a_stream() {
    if kernel().is_none() {
        return;
    }
    assert_the_same_packets(
        "duration = '250ms'\nwarmup = '50ms'\n[link]\nrate = '31mbit'\nrtt = '1192us'\nqdisc = 'pfifo_fast'\n\
         [sender]\ngso = false\n[[probe]]\nkind = 'request'\ninterval = '100ms'\nsize = '138574b'\n",
    );
}

/// A flow that leaves the bottleneck's `pfifo_fast` full, whose ring drops what would have found room in a plain FIFO (`ptr_ring`).
const RING: &str = r#"{"scenario":{"name":"ring","duration":"30s","warmup":"7s","link":{"rate":"23Mbit","rtt":"270ms","qdisc":"pfifo_fast","loss":"0%","mtu":1500},"sender":{"qdisc":"pfifo_fast","gso":true},"receiver":{"read_interval":"0ms"},"flow":[{"cc":"cubic","count":1,"ecn":false,"start":"9s"}],"probe":[{"kind":"ssh","interval":"100ms","cc":"cubic","ecn":false}]},"runs":[]}"#;

/// Long answers over an idle link: packets that a queue lets go arrive at once, with the acknowledgement of some before.
const ANSWERS: &str = r#"{"scenario":{"name":"answers","duration":"1s","warmup":"200ms","link":{"rate":"110Mbit","rtt":"2.626ms","qdisc":"codel","loss":"0%","mtu":1500,"up":{"rate":"11Mbit"}},"sender":{"qdisc":"fq","gso":false},"receiver":{"read_interval":"0ms"},"flow":[{"cc":"cubic","count":1,"ecn":false,"direction":"up","size":"130046b","every":"1s"}],"probe":[{"kind":"request","interval":"20ms","cc":"cubic","ecn":false,"size":"54655b"}]},"runs":[]}"#;

/// Where chance decides nothing both worlds send the same packets at the same times, which one command says of a whole file: five flows that open together, a
/// wide window, Accurate ECN through many losses, marks by a threshold or for DCTCP, and probes of all kinds beside them; what is no TCP, beside flows that start
/// while it is sent; transfers that recur as a ping is due, or before the one before has arrived; one that is stopped before its connection is open; FIN that was lost, and
/// RST that answers it; new data behind a doubtful timeout; packets longer than a buffer; a ring; and answers.
#[test]
fn scenarios_without_chance_have_the_same_packets() {
    if kernel().is_none() {
        return;
    }
    let draw = |seed| stdout(&["draw", "exact", "--count", "1", "--seed", seed]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("exact.jsonl");
    let drawn = [
        "12", "13", "24", "38", "46", "59", "19", "32", "1033", "1049", "20261205", "20261215",
        "20261243", "20261334", "20262054", "20262063", "20262067", "20262095", "20262127",
    ]
    .map(draw)
    .concat();
    let udp = include_str!("../data/paths/udp.jsonl");
    let with_udp =
        |name: &&str| ["udp-3", "udp-8"].iter().any(|udp| name.contains(&format!("\"{udp}\"")));
    let lines = drawn.lines().chain(udp.lines().filter(with_udp)).chain([RING, ANSWERS]);
    fs::write(&path, lines.map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let told = stdout(&["diff", path.to_str().unwrap(), "--slack", "2"]);
    assert!(told.ends_with("23 of 23 scenarios have the same packets\n"), "{told}");
    let events = folder.path().join("events");
    let args = [path.to_str().unwrap(), "--name", "udp-8", "--events", events.to_str().unwrap()];
    stdout(&[&["diff"][..], &args].concat());
    for world in ["model", "kernel"] {
        let told = fs::read_to_string(events.join(format!("{world}.jsonl"))).unwrap();
        assert!(told.matches("\"kind\":\"udp\"").count() > 1_000, "{world}");
    }
}

/// Behind a hop of a smaller MTU a router's message says so, and what is sent again is cut: by a clock that stands, and, with Accurate ECN whose option few packets
/// have, into shorter segments where it is due.
#[test]
fn behind_a_smaller_mtu_are_the_same_packets() {
    if kernel().is_none() {
        return;
    }
    for (mtu, flow) in [
        (1400, "cc = 'cubic'"),
        (1499, "cc = 'reno'\necn = true"),
        (1492, "cc = 'cubic'\necn = 'accurate'\necn_option = 1"),
        (1440, "cc = 'reno'\necn = 'accurate'"),
    ] {
        for interface in ["fq", "pfifo_fast"] {
            assert_the_same_packets(&format!(
                "duration = '3s'\nwarmup = '1s'\nprobe = []\n[link]\nrate = '21mbit'\nrtt = '11ms'\nqdisc = 'codel ecn'\n\
                 behind = [{{ mtu = {mtu} }}]\n[sender]\nqdisc = '{interface}'\n[[flow]]\n{flow}\n"
            ));
        }
    }
}

/// A send buffer that a program asked for limits what is under way, as in the model. The largest is filled by calls of `send` that are shorter
/// than it is, each of which pushes what it ends with.
#[test]
fn senders_have_limits_of_their_own() {
    if kernel().is_none() {
        return;
    }
    let [least, small, large] = [2.3, 64.0, 256.0].map(|kilobytes| {
        let plan = format!(
            "[link]\nrate = '20mbit'\nrtt = '40ms'\nqdisc = 'pfifo limit 200'\n\
             [[flow]]\ncc = 'cubic'\nsend_buffer = '{kilobytes}kb'\n"
        );
        assert_the_same_packets(&format!("duration = '4s'\nwarmup = '1s'\n{plan}"));
        figure(&outcome(&plan).unwrap(), "/flow/0/total_mbit")
    });
    // Whoever has room for any may write 64 KB; and 128 KB, with what they take beside their payload, do not fill the path.
    assert!((9.0..11.0).contains(&least) && (13.0..17.0).contains(&small) && large > 18.0);
}

/// Runs a plan in the model and on real Linux, and gives both outcomes.
fn in_both_worlds(plan: &str) -> Option<[Value; 2]> {
    kernel()?;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.toml");
    fs::write(&path, plan).unwrap();
    let args =
        ["run", path.to_str().unwrap(), "--world", "model,kernel", "--json", "--no-progress"];
    let document = json(&args);
    Some([0, 1].map(|run| document["runs"][run]["outcome"].clone()))
}

/// What is lost of pings is counted, as in the model.
#[test]
fn lost_pings_are_counted() {
    let ping = "[[probe]]\nkind = 'ping'\ninterval = '20ms'\n";
    let plan = |loss: &str| {
        format!(
            "duration = '10s'\nwarmup = '3s'\nflow = []\n[link]\nrate = '20mbit'\nrtt = '20ms'\nloss = '{loss}'\n{ping}"
        )
    };
    let (Some(half), Some(all)) = (in_both_worlds(&plan("50%")), in_both_worlds(&plan("100%")))
    else {
        return;
    };
    for outcome in &half {
        let (sent, lost) = (count(outcome, "/probe/0/sent"), count(outcome, "/probe/0/lost"));
        assert_eq!(sent, 350);
        assert!((0.4..0.6).contains(&(lost as f64 / sent as f64)), "{lost}");
        assert!(sent.abs_diff(lost + count(outcome, "/probe/0/n")) <= 2, "{outcome:#}");
    }
    for outcome in &all {
        assert_eq!(count(outcome, "/probe/0/lost"), 350);
    }
}

/// Of aggregates the kernel counts segments that left.
#[test]
fn packets_that_left_are_segments() {
    let plan = "duration = '10s'\nwarmup = '3s'\n[link]\nrate = '50mbit'\nrtt = '100ms'\nqdisc = 'pie'\n[[flow]]\ncc = 'cubic'\n";
    let Some(outcomes) = in_both_worlds(plan) else { return };
    for outcome in &outcomes {
        // Whoever counts aggregates has packets of up to 64 KB.
        let bytes = figure(outcome, "/queue/tc/bytes") / figure(outcome, "/queue/tc/packets");
        assert!((1400.0..1515.0).contains(&bytes), "{bytes}");
    }
}

/// A program that may leave little unsent has less to say after it stops, as much as in the model.
#[test]
fn what_is_unsent_is_limited_as_in_the_model() {
    for mark in ["", "notsent_lowat = '1b'", "notsent_lowat = '64kb'"] {
        let Some(outcomes) = in_both_worlds(&format!(
            "duration = '10s'\nwarmup = '2s'\ninterval = '50ms'\n\
             [link]\nrate = '20mbit'\nrtt = '40ms'\nqdisc = 'pfifo limit 200'\n\
             [[flow]]\ncc = 'reno'\nstop = '7s'\n{mark}\n"
        )) else {
            return;
        };
        let left = outcomes.each_ref().map(|outcome| {
            let series = outcome["series"]["goodput_mbit"][0].as_array().unwrap();
            series[140..].iter().map(|mbit| mbit.as_f64().unwrap()).sum::<f64>() / 20.0
        });
        // 57 megabits without a mark, 4 with one: what is under way then, and one packet or 64 kB. How much is under way hangs on where in its
        // sawtooth the window is: with 64 kB it is 2.5 or 4.8 megabits in either world, for round trips of 37 to 43 ms.
        let most = if mark.ends_with("'64kb'") { 2.5 } else { 0.5 };
        assert!((left[0] - left[1]).abs() < most, "{mark}: {left:?}");
        assert!(if mark.is_empty() { left[1] > 40.0 } else { left[1] < 6.0 }, "{mark}: {left:?}");
        let [model, kernel] =
            outcomes.each_ref().map(|outcome| figure(outcome, "/flow/0/total_mbit"));
        let most = if mark.ends_with("'64kb'") { 0.02 } else { 0.01 };
        assert!((model / kernel - 1.0).abs() < most, "{mark}: {model} and {kernel} Mbit/s");
    }
}

/// The first asks for a cookie, the others have their data in the SYN.
#[test]
fn fast_open_saves_as_much_as_in_the_model() {
    for (size, most) in [("1kb", 0.041), ("5kb", 0.082), ("100kb", 0.19)] {
        for direction in ["down", "up"] {
            let Some(outcomes) = in_both_worlds(&format!(
                "duration = '5s'\nwarmup = '500ms'\n\
                 [link]\nrate = '20mbit'\nrtt = '40ms'\nqdisc = 'pfifo limit 200'\n[link.up]\nrate = '20mbit'\n\
                 [[flow]]\ncc = 'cubic'\nsize = '{size}'\ncount = 4\nspacing = '700ms'\nfast_open = true\ndirection = '{direction}'\n"
            )) else {
                return;
            };
            let took = |outcome: &Value, flow: usize| {
                figure(outcome, &format!("/flow/0/completion_s/{flow}"))
            };
            for flow in 0..4 {
                let [model, kernel] = outcomes.each_ref().map(|outcome| took(outcome, flow));
                // Real Linux's end is a packet of its own.
                assert!((model - kernel).abs() < 0.001, "{size}: {model} and {kernel} s");
                assert!(flow == 0 || kernel < most, "{size}: {kernel} s");
            }
            // The first has no cookie.
            assert!(took(&outcomes[1], 0) > took(&outcomes[1], 1), "{size}: {outcomes:#?}");
        }
    }
}

/// As many options as in the model, both ways, and as many marks are counted.
#[test]
fn the_option_of_accurate_ecn_is_sent_as_often_as_in_the_model() {
    for (sender, receiver) in [(2, 2), (1, 1), (1, 2), (2, 1), (0, 2), (2, 0)] {
        let Some(outcomes) = in_both_worlds(&format!(
            "duration = '10s'\nwarmup = '2s'\n\
             [link]\nrate = '20mbit'\nrtt = '40ms'\nqdisc = 'codel ecn'\n[link.up]\nrate = '20mbit'\nqdisc = 'pfifo'\n\
             [receiver]\necn_option = {receiver}\n\
             [[flow]]\ncc = 'cubic'\necn = 'accurate'\necn_option = {sender}\n"
        )) else {
            return;
        };
        // Bytes of a packet either way, goodput, and bytes of which the option told.
        let [model, kernel] = outcomes.map(|outcome| {
            let mean = |queue: &str| {
                let of = |what: &str| figure(&outcome, &format!("/{queue}/{what}"));
                of("sent_bytes") / of("sent_packets")
            };
            assert!(figure(&outcome, "/flow/0/ce_marks") > 3.0, "{outcome:#}");
            let told = figure(&outcome, "/flow/0/accurate_ecn/delivered_e0_bytes");
            [mean("up_queue"), mean("queue"), figure(&outcome, "/flow/0/total_mbit"), told]
        });
        for (number, most) in [(0, 0.1), (1, 0.2), (2, 0.1)] {
            let apart = (model[number] - kernel[number]).abs();
            assert!(apart < most, "{sender} {receiver}: {model:?} {kernel:?}");
        }
        let told = sender > 0 && receiver > 0;
        assert_eq!((told, told), (model[3] > 2e7, kernel[3] > 2e7), "{model:?} {kernel:?}");
    }
}

/// What real Linux does not do is refused in one line that says so.
#[test]
fn what_real_linux_cannot_do_is_refused() {
    if kernel().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.toml");
    for (plan, reason) in [
        (
            "[link]\nbehind = [{ delay = '3s', jitter = '2.5s' }]\n",
            "a jitter of 2.5 s is more than netem can, 2.147483647 s; the model can",
        ),
        (
            "[[udp]]\nrate = '1mbit'\npacket = 43\n",
            "udp[0].packet: on real Linux packets have 44 bytes at least, as each says its number and when it was sent",
        ),
    ] {
        fs::write(&path, plan).unwrap();
        let output = dualq(&["run", path.to_str().unwrap(), "--world", "kernel", "--no-progress"]);
        assert!(!output.status.success() && text(&output.stdout).is_empty());
        let line = error(&output);
        assert!(line.trim_end().ends_with(reason), "{line}");
    }
}

/// Large answers take as long on real Linux as in the model, alone and beside bulk that has a queue of its own.
#[test]
fn large_answers_take_as_long_as_in_the_model() {
    let Some(outcomes) = in_both_worlds(
        "duration = '10s'\nwarmup = '3s'\n\
         [link]\nrate = '20mbit'\nrtt = '30ms'\nqdisc = 'fq_codel'\n[[flow]]\ncc = 'cubic'\n\
         [[probe]]\nkind = 'request'\nsize = '100kb'\n[[probe]]\nkind = 'request'\nsize = '5kb'\ninterval = '400ms'\n",
    ) else {
        return;
    };
    for probe in 0..2 {
        let [model, kernel] =
            outcomes.each_ref().map(|outcome| figure(outcome, &format!("/probe/{probe}/p50_ms")));
        assert!((model / kernel - 1.0).abs() < 0.05, "{probe}: {model} and {kernel} ms");
    }
}
