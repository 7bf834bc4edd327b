//! What paths do to packets, in both directions.

use std::time::Duration;

use dualq_model::{Simulation, simulate};
use dualq_scenario::{Outcome, QueueOutcome, Sweep};
use dualq_units::Instant;
use proptest::prelude::*;

/// What comes of 12 s, of which the first two are not counted, over 20 Mbit/s and 40 ms.
fn run(link: &str, rest: &str) -> Outcome {
    run_through("fq_codel", link, rest)
}

fn run_through(qdisc: &str, link: &str, rest: &str) -> Outcome {
    let sweep = format!(
        "duration = '12s'\nwarmup = '2s'\n[link]\nrate = '20mbit'\nrtt = '40ms'\nqdisc = '{qdisc}'\n{link}\n{rest}"
    );
    let sweep = Sweep::parse(&sweep).expect("a sweep");
    simulate(&sweep.variants()[0].scenario, 1).expect("what the model has")
}

const CUBIC: &str = "[[flow]]\ncc = 'cubic'\n";
const UP: &str = "[[flow]]\ncc = 'cubic'\ndirection = 'up'\n";
const PING: &str = "[[probe]]\nkind = 'ping'\ninterval = '20ms'\n";

fn udp(rate: &str, more: &str) -> String {
    format!("[[udp]]\nrate = '{rate}'\n{more}\n")
}

#[test]
fn both_directions_reach_their_rates() {
    let both = run("[link.up]\nrate = '8mbit'", &[CUBIC, UP].concat());
    let goodput = |group: usize| both.flow[group].goodput_mbit[0];
    // Of either, some is for the acknowledgements of the other.
    assert!((17.5..19.1).contains(&goodput(0)), "{}", goodput(0));
    assert!((6.2..7.6).contains(&goodput(1)), "{}", goodput(1));
    let up = both.up_queue.as_ref().expect("there is one");
    let line = up.sent_bytes as f64 * 8.0 / 10.0 / 1e6;
    assert!((7.5..8.01).contains(&line), "{line}");
    assert_eq!(up.tc["kind"], "fq_codel");
    assert!(run("", CUBIC).up_queue.is_none());
    assert!(run("[link.up]\nloss = '1%'", CUBIC).up_queue.is_none());
}

#[test]
fn acknowledgements_and_answers_wait_in_a_full_queue() {
    let link = |qdisc: &str| format!("[link.up]\nrate = '2mbit'\nqdisc = '{qdisc}'");
    let rest = [CUBIC, UP, PING].concat();
    let (full, fair) = (run(&link("bfifo limit 150000"), &rest), run(&link("fq_codel"), &rest));
    // 150 kB at 2 Mbit/s are 600 ms.
    let up = full.up_queue.as_ref().expect("there is one");
    assert!((300.0..620.0).contains(&up.delay_mean_ms), "{}", up.delay_mean_ms);
    assert!(full.probe[0].p50_ms > 300.0 && fair.probe[0].p50_ms < 60.0);
    assert!(full.flow[0].srtt_ms_p50 > 300.0, "{}", full.flow[0].srtt_ms_p50);
    assert!(fair.flow[0].srtt_ms_p50 < 100.0, "{}", fair.flow[0].srtt_ms_p50);
}

#[test]
fn a_rate_of_the_other_direction_changes_when_it_is_told() {
    let link = "[link.up]\nrate = '8mbit'\n[[link.up.step]]\nat = '7s'\nrate = '2mbit'";
    let series = run(link, UP).series.goodput_mbit;
    let (before, after) = (series[0][5], series[0][10]);
    assert!((6.5..7.8).contains(&before) && (1.5..2.0).contains(&after), "{before} {after}");
}

/// As in the world `kernel` in `lte`: a ping of the instant at which the rate changes is charged at the old one. What has gathered since the packet before
/// it is cut to that rate's burst then, and not to one of 128 ms.
#[test]
fn a_rate_changes_behind_what_is_asked_at_that_instant() {
    let sweep = "duration = '1.2s'\nwarmup = '500ms'\n[link]\nrate = '1mbit'\nrtt = '40ms'\nqdisc = 'pfifo'\n\
        step = [{ at = '1s', rate = '100kbit' }]\n[[probe]]\nkind = 'ping'\ninterval = '1s'\n\
        [[udp]]\ninterval = '10ms'\nstart = '1.01s'\nstop = '1.025s'\n";
    let sweep = Sweep::parse(sweep).expect("a sweep");
    let came = simulate(&sweep.variants()[0].scenario, 1).expect("what the model has");
    let waited = came.queue.delay_max_ms;
    assert!((85.0..95.0).contains(&waited), "{waited}");
}

#[test]
fn lost_acknowledgements_cost_little() {
    let clean = run("", CUBIC);
    let lossy = run("[link.up]\nloss = '10%'", CUBIC);
    assert!(lossy.goodput_mbit > 0.9 * clean.goodput_mbit, "{}", lossy.goodput_mbit);
    assert_ne!(lossy, clean);
    // Those of single questions cost a timeout.
    let probe = "[[probe]]\nkind = 'ssh'\n";
    let (clean, lossy) = (run("", probe), run("[link.up]\nloss = '10%'", probe));
    assert_eq!(clean.probe[0].retransmits, 0);
    // Real Linux has two to five of them with four seeds.
    assert!(lossy.probe[0].retransmits > 2 && lossy.probe[0].max_ms > 200.0);
}

#[test]
fn jitter_reorders_unless_it_keeps_the_order() {
    let jittered = |reorder: bool| {
        let link = format!("behind = [{{ delay = '20ms', jitter = '10ms', reorder = {reorder} }}]");
        run(&link, &udp("5mbit", "")).udp.remove(0)
    };
    let (free, ordered) = (jittered(true), jittered(false));
    for udp in [&free, &ordered] {
        let delay = udp.delay.expect("all arrived");
        // At the end, some that others have overtaken are still on their way.
        assert!(udp.lost < 20 && udp.duplicates == 0, "{udp:?}");
        assert!((19.0..30.0).contains(&delay.mean_ms) && delay.max_ms < 30.8, "{delay:?}");
    }
    let mean = free.delay.expect("all arrived").mean_ms;
    assert!((mean - 20.0).abs() < 0.5, "{mean}");
    // The mean difference of two that are uniform within 20 ms is a third of that.
    assert!((free.jitter_ms - 6.7).abs() < 2.5, "{}", free.jitter_ms);
    assert!(free.reordered > free.received / 4 && ordered.reordered == 0);
}

#[test]
fn a_black_hole_swallows_bulk_and_lets_questions_through() {
    let link = |icmp: bool| format!("behind = [{{ mtu = 1400, icmp = {icmp} }}]");
    let rest = [CUBIC, "[[probe]]\nkind = 'ssh'\n"].concat();
    let hole = run(&link(false), &rest);
    assert_eq!(hole.goodput_mbit.to_string(), "0");
    assert!(hole.flow[0].timeouts > 0 || hole.flow[0].retransmits > 0);
    assert!(hole.probe[0].n > 100, "{}", hole.probe[0].n);
    let told = run(&link(true), &rest);
    // 1348 bytes of each 1414 are payload.
    let most = 20.0 * 1348.0 / 1414.0;
    assert!((0.93 * most..most).contains(&told.goodput_mbit), "{}", told.goodput_mbit);
    // What goes up hears of it too.
    let up = run("[link.up]\nrate = '8mbit'\nbefore = [{ mtu = 1000 }]", UP);
    assert!((6.5..7.6).contains(&up.goodput_mbit), "{}", up.goodput_mbit);
}

#[test]
fn cleared_ecn_fields_mark_nothing() {
    let of = |link: &str| {
        let outcome = run_through("dualpi2 any_ect", link, "[[flow]]\ncc = 'dctcp'\n");
        (outcome.queue.marks, outcome.flow[0].ce_marks, outcome.queue.drops)
    };
    let (marks, arrived, _) = of("");
    assert!(marks > 0 && arrived > 0);
    let (marks, arrived, drops) = of("before = [{ bleach = true }]");
    assert!(marks == 0 && arrived == 0 && drops > 0);
    let (marks, arrived, _) = of("behind = [{ bleach = true }]");
    assert!(marks > 0 && arrived == 0);
}

#[test]
fn a_policer_holds_its_rate() {
    let link = "before = [{ police = '10mbit', burst = '64kb' }]";
    let tcp = run(link, CUBIC).goodput_mbit;
    assert!((4.0..9.6).contains(&tcp), "{tcp}");
    let udp = &run(link, &udp("15mbit", "")).udp[0];
    // Ethernet headers are counted.
    let passed = udp.received as f64 * 1514.0 * 8.0 / 10.0 / 1e6;
    assert!((9.9..10.1).contains(&passed), "{passed}");
    assert!(udp.lost.abs_diff(udp.sent / 3) < udp.sent / 50, "{udp:?}");
}

#[test]
fn a_constant_rate_passes_or_fills_the_link() {
    let half = &run("", &udp("10mbit", "")).udp[0];
    assert_eq!((half.lost, half.reordered, half.duplicates), (0, 0, 0));
    assert!((half.line_mbit - 10.0).abs() < 0.02 && half.delay.expect("all arrived").max_ms < 1.5);
    let twice = run_through("pfifo limit 50", "", &udp("40mbit", ""));
    let udp = &twice.udp[0];
    assert!(udp.lost.abs_diff(udp.sent / 2) < udp.sent / 50, "{udp:?}");
    assert!((udp.goodput_mbit - 20.0 * 1472.0 / 1514.0).abs() < 0.1, "{}", udp.goodput_mbit);
    assert!(twice.queue.drops > 0);
    // The same upwards, where nothing but the rate of the senders limits it.
    let up = &run("", &udp_up("40mbit")).udp[0];
    assert!(up.lost == 0 && (up.line_mbit - 40.0).abs() < 0.1, "{up:?}");
}

fn udp_up(rate: &str) -> String {
    udp(rate, "direction = 'up'")
}

#[test]
fn marks_of_udp_are_counted() {
    let twice = udp("24mbit", "ecn = 'ect0'");
    let udp = &run("", &twice).udp[0];
    assert!(udp.ce_marks > 0 && udp.received >= udp.ce_marks, "{udp:?}");
}

#[test]
fn copies_are_told_from_originals_and_do_tcp_no_harm() {
    let link = "behind = [{ duplicate = '10%' }]";
    let udp = &run(link, &udp("5mbit", "")).udp[0];
    let share = udp.duplicates as f64 / udp.received as f64;
    assert!(udp.lost == 0 && (share - 0.1).abs() < 0.02, "{share}");
    assert!(run(link, CUBIC).goodput_mbit > 16.0);
}

#[test]
fn lost_pings_are_counted() {
    let ping = &run("loss = '50%'", PING).probe[0];
    // 10 s of them, at 20 ms each.
    let (sent, lost) = (ping.sent.expect("of pings"), ping.lost.expect("of pings"));
    assert_eq!(sent, 500);
    assert!((0.4..0.6).contains(&(lost as f64 / sent as f64)), "{ping:?}");
    // Two are on their way as the window begins, and of the last two round trips, which are four, nobody knows yet.
    assert!(sent.abs_diff(ping.n + lost) <= 6, "{ping:?}");
    let none = &run("", PING).probe[0];
    assert_eq!((none.sent, none.lost), (Some(500), Some(0)));
    let all = &run("loss = '100%'", PING).probe[0];
    assert_eq!((all.n, all.sent, all.lost), (0, Some(500), Some(500)));
    // TCP sends again what is lost.
    let ssh = &run("", "[[probe]]\nkind = 'ssh'\n").probe[0];
    assert_eq!((ssh.sent, ssh.lost), (None, None));
}

#[test]
fn transfers_are_made_again_and_again() {
    let flow = "[[flow]]\ncc = 'cubic'\nsize = '100kb'\nevery = '500ms'\n";
    let outcome = run("", flow);
    let done = &outcome.flow[0].completions[0];
    assert_eq!((done.transfers, done.done), (24, 24));
    assert!(done.max_s < Some(0.5) && done.p50_s > Some(0.04), "{done:?}");
    assert!(outcome.flow[0].completion_s[0].is_some());
    // They wait for each other where the link is too slow.
    let slow = &run("before = [{ rate = '1mbit' }]", flow).flow[0].completions[0];
    assert!(slow.done < slow.transfers && slow.max_s > Some(2.0), "{slow:?}");
}

#[test]
fn a_large_answer_takes_a_round_trip_and_its_bytes() {
    let rest =
        "[[flow]]\ncc = 'cubic'\nsize = '1kb'\n[[probe]]\nkind = 'request'\ninterval = '50ms'\n";
    let of = |size: &str| run("", &format!("{rest}size = '{size}'")).probe[0].clone();
    // A question and an answer in one packet each.
    let small = of("1b");
    assert!((40.0..40.2).contains(&small.mean_ms), "{small:?}");
    // 100 kB in segments of 1448 bytes, each of which takes 1514 of 20 Mbit/s; the window is large enough after some answers.
    // After a pause the shaper's burst lets three packets go at once: the first, one for its tokens, and one into debt.
    let (large, least) = (of("100kb"), 40.0 + 68.0 * 1514.0 * 8.0 / 20e3);
    assert!((least - 0.1..least + 1.0).contains(&large.p50_ms), "{large:?}, {least}");
    // Answers follow each other after the pause.
    let expected = 10e3 / (large.mean_ms + 50.05);
    assert!((f64::from(large.n as u32) - expected).abs() < 2.0, "{large:?}, {expected}");
    assert_eq!((small.retransmits, large.retransmits), (0, 0));
}

/// Each element that is a bottleneck has figures of its own, by its place.
#[test]
fn queues_of_elements_are_told_of() {
    let outcome = run(
        "before = [{ rate = '30mbit', qdisc = 'fq_codel' }, { delay = '1ms' }]\n\
         behind = [{ delay = '1ms' }, { rate = '10mbit', qdisc = 'bfifo limit 60kb' }]\n\
         [link.up]\nbefore = [{ rate = '1mbit', qdisc = 'fq_codel' }]\n",
        &[CUBIC, UP].concat(),
    );
    let places: Vec<&str> = outcome.other_queues.iter().map(|other| other.at.as_str()).collect();
    assert_eq!(places, ["before 1", "behind 2", "up before 1"]);
    let [before, behind, up] = &outcome.other_queues[..] else { unreachable!("three") };
    // The last hop is the narrow one: there packets wait, and are dropped.
    assert!(behind.queue.drops > 0 && behind.queue.delay_p50_ms > 10.0, "{behind:?}");
    assert!(outcome.queue.drops == 0 && outcome.queue.delay_p50_ms < 2.0, "{:?}", outcome.queue);
    assert_eq!((before.queue.drops, &before.queue.tc["kind"]), (0, &"fq_codel".into()));
    // What leaves one of them comes to the next, or is dropped there; a handful is between them.
    let sent = |queue: &QueueOutcome| queue.sent_packets as i64;
    assert!((sent(&before.queue) - sent(&outcome.queue)).abs() < 40);
    let came = sent(&behind.queue) + behind.queue.drops as i64;
    assert!((sent(&outcome.queue) - came).abs() < 40, "{came} {:?}", outcome.queue);
    // A flow up fills the queue before the way up.
    assert!(up.queue.drops > 0 && up.queue.sent_packets > 500, "{up:?}");
    assert_eq!(up.queue.tc["kind"], "fq_codel");
}

#[test]
fn a_receive_buffer_of_ones_own_is_the_window() {
    let of = |buffer: &str| run("", &format!("{CUBIC}receive_buffer = '{buffer}'\n")).goodput_mbit;
    let (narrow, wide) = (of("20kb"), of("1mb"));
    // Twice 20 KiB, of which more than half is payload, in each 40 ms.
    assert!((2.0..8.0).contains(&narrow) && wide > 17.0, "{narrow} {wide}");
}

#[test]
fn a_send_buffer_of_ones_own_limits_what_is_under_way() {
    let of = |buffer: &str| run("", &format!("{CUBIC}send_buffer = '{buffer}'\n")).goodput_mbit;
    let (narrow, wide) = (of("20kb"), of("1mb"));
    // One packet of up to 64 KB whatever there is room for, in each 40 ms and more; or all that the window lets leave.
    assert!((8.0..14.0).contains(&narrow) && wide > 17.0, "{narrow} {wide}");
}

/// What is in the send buffer leaves though the program has stopped: as much again as is under way, or what its low-water mark lets be
/// unsent.
#[test]
fn what_is_unsent_is_limited() {
    let of = |more: &str| {
        let flow = format!("{CUBIC}stop = '8s'\n{more}");
        let outcome = run_through("pfifo limit 400", "", &flow);
        let (before, after) = outcome.series.goodput_mbit[0].split_at(8);
        (before.iter().sum::<f64>(), after.iter().sum::<f64>())
    };
    let (megabits, left) = of("");
    assert!(left > 20.0, "{left}");
    for mark in ["1b", "16kb", "128kb"] {
        let (limited, left) = of(&format!("notsent_lowat = '{mark}'\n"));
        assert!((1.0..12.0).contains(&left), "{mark}: {left}");
        assert!(limited > 0.98 * megabits, "{mark}: {limited} of {megabits}");
    }
}

/// As in the world `kernel` in `exact-20261710`, whose program calls twice as the window is about to be full: what the first push takes of the last packet for
/// the one before makes room for ten segments.
#[test]
fn a_program_adds_to_the_last_packet_what_a_push_has_taken_of_it() {
    let sweep = "duration = '4s'\nwarmup = '1s'\nsender = { qdisc = 'fq' }\nreceiver = { read_interval = '0ms' }\n\
        link = { rate = '3700kbit', rtt = '1.496ms', qdisc = 'pfifo limit 34' }\n\
        [[flow]]\ncc = 'cubic'\necn = true\nspacing = '0ms'\nnotsent_lowat = '16kb'\n\
        [[flow]]\ncc = 'cubic'\nspacing = '0ms'\nread_interval = '10ms'\n\
        [[probe]]\nkind = 'ssh'\ninterval = '100ms'\n";
    let sweep = Sweep::parse(sweep).expect("a sweep");
    let scenario = &sweep.variants()[0].scenario;
    let mut simulation = Simulation::new(scenario, 1).expect("what the model has");
    let written = [717, 718, 1_023].map(|ms| {
        simulation.advance(Instant::ZERO + Duration::from_millis(ms));
        simulation.senders().next().map(dualq_tcp::Sender::written)
    });
    assert_eq!(written, [377_976, 453_272, 552_824].map(Some));
}

/// Who starts when the cookie is there is done a round trip sooner: all of a small transfer leaves with the SYN.
#[test]
fn fast_open_saves_a_round_trip() {
    // What the link takes for them comes on top. For 14 kB and FIN ten packets are not enough, but these and what was in the SYN.
    for (size, plain, fast) in [("1kb", 80.0, 40.0), ("5kb", 80.0, 80.0), ("14kb", 120.0, 80.0)] {
        let of = |more: &str| {
            let flow = format!("[[flow]]\ncc = 'cubic'\nsize = '{size}'\ncount = 3\n{more}\n");
            let flow = run("", &format!("{flow}spacing = '300ms'\n")).flow.remove(0);
            flow.completion_s.iter().map(|took| took.expect("it is done") * 1e3).collect::<Vec<_>>()
        };
        let takes =
            |took: &[f64], least: f64| took.iter().all(|ms| (0.0..6.0).contains(&(ms - least)));
        let (usual, opened) = (of(""), of("fast_open = true"));
        assert!(takes(&usual, plain), "{size}: {usual:?}");
        assert!(takes(&opened[..1], plain) && takes(&opened[1..], fast), "{size}: {opened:?}");
    }
}

/// Whatever paces it, and however often the option of Accurate ECN takes room.
#[test]
fn a_router_before_the_queue_is_near_to_senders_and_one_behind_it_is_not() {
    let flow = "[[flow]]\ncc = 'cubic'\nsize = '5kb'\nstart = '3s'\n";
    let completion_ms = |link: &str, rest: &str| {
        let outcome = run(link, &[flow, rest].concat());
        1e3 * outcome.flow[0].completion_s[0].expect("it ends")
    };
    let without = completion_ms("", "");
    let before = completion_ms("before = [{ mtu = 1400 }]", "") - without;
    assert!(before.abs() < 5.0, "{before}");
    let behind = completion_ms("behind = [{ mtu = 1400 }]", "") - without;
    assert!((38.0..42.0).contains(&behind), "{behind}");
    // What the one behind it says waits as acknowledgements do.
    let line = "behind = [{ mtu = 1400 }]\n[link.up]\nrate = '1mbit'\nqdisc = 'pfifo limit 20'";
    let upload = "[[flow]]\ncc = 'cubic'\ndirection = 'up'\n";
    let waits = completion_ms(line, upload) - completion_ms(line, "");
    assert!((300.0..900.0).contains(&waits), "{waits}");
}

#[test]
fn a_smaller_mtu_stops_nobody() {
    for cc in ["bbr", "bbr3", "cubic", "prague"] {
        for interface in ["fq", "pfifo_fast"] {
            for ecn in ["", "ecn = 'accurate'\necn_option = 1", "ecn = 'accurate'"] {
                let rest =
                    format!("[sender]\nqdisc = '{interface}'\n[[flow]]\ncc = '{cc}'\n{ecn}\n");
                let outcome = run_through("fq_codel", "behind = [{ mtu = 1400 }]", &rest);
                let goodput = outcome.flow[0].total_mbit;
                assert!((17.5..19.1).contains(&goodput), "{cc} {interface} {ecn}: {goodput}");
            }
        }
    }
}

/// Options take 12 bytes of each packet, both ways, or of few, or of none; marks are counted all the same.
#[test]
fn the_option_of_accurate_ecn_can_be_left_out() {
    let of = |option: u32| {
        let link = "[link.up]\nrate = '10mbit'\n";
        let rest = format!(
            "[receiver]\necn_option = {option}\n[[flow]]\ncc = 'cubic'\necn = 'accurate'\necn_option = {option}\n"
        );
        let outcome = run_through("codel ecn", link, &rest);
        let up = outcome.up_queue.as_ref().expect("there is one");
        let ack = up.sent_bytes as f64 / up.sent_packets as f64;
        let flow = &outcome.flow[0];
        let payload = flow.total_mbit / flow.line_mbit;
        let ecn = flow.accurate_ecn.as_ref().expect("it asks for it");
        assert_eq!((ecn.agreed, ecn.reno), (1, 0));
        // The others came before the figures begin.
        assert!(flow.ce_marks >= 5 && ecn.delivered_ce > flow.ce_marks, "{flow:?}");
        (ack, payload, ecn.delivered_e0_bytes)
    };
    let [never, seldom, always] = [0, 1, 2].map(of);
    // An acknowledgement has 66 bytes, few have SACK blocks; three of those in a round trip have the option.
    assert!((66.0..67.5).contains(&never.0) && (78.0..79.5).contains(&always.0), "{never:?}");
    assert!((0.3..3.0).contains(&(seldom.0 - never.0)), "{seldom:?} {never:?}");
    assert!((never.1 - 1448.0 / 1514.0).abs() < 1e-3 && (always.1 - 1436.0 / 1514.0).abs() < 1e-3);
    assert!((0.0..1e-3).contains(&(never.1 - seldom.1)), "{seldom:?} {never:?}");
    assert!(never.2 == 0 && seldom.2 > 20_000_000 && always.2 > 20_000_000, "{seldom:?}");
}

#[test]
fn every_congestion_control_can_be_ect1() {
    let of = |more: &str| {
        let sweep = format!(
            "duration = '6s'\nwarmup = '2s'\n[link]\nrate = '20mbit'\nrtt = '20ms'\nqdisc = 'dualpi2'\n[[flow]]\ncc = 'cubic'\n{more}"
        );
        let sweep = Sweep::parse(&sweep).expect("a sweep");
        simulate(&sweep.variants()[0].scenario, 1).expect("what the model has").queue
    };
    // ECT(0) goes to the C queue, ECT(1) to the L queue with its step at a millisecond.
    let (classic, scalable) = (of("ecn = true"), of("ect1 = true"));
    let delay = |queue: &dualq_scenario::QueueOutcome| queue.delay_ect.expect("they are").mean_ms;
    assert!(delay(&classic) > 4.0 && delay(&scalable) < 2.0);
    assert!(scalable.marks > classic.marks);
}

/// Prague's packets are ECT(1) from the SYN on and wait in the L queue; with a receiver that has no Accurate ECN it is Reno, and
/// the outcome says so.
#[test]
fn prague_needs_accurate_ecn_at_the_receiver() {
    let of = |granted: &str| {
        let sweep = format!(
            "duration = '12s'\nwarmup = '4s'\n[link]\nrate = '20mbit'\nrtt = '20ms'\nqdisc = 'dualpi2'\n\
             [receiver]\n{granted}\n[[flow]]\ncc = 'prague'\n[[probe]]\n"
        );
        let sweep = Sweep::parse(&sweep).expect("a sweep");
        simulate(&sweep.variants()[0].scenario, 1).expect("what the model has")
    };
    for granted in ["", "ecn = 'accurate'"] {
        let outcome = of(granted);
        let flow = &outcome.flow[0];
        let ecn = flow.accurate_ecn.as_ref().expect("it asks for it");
        assert_eq!((ecn.agreed, ecn.reno, ecn.delivered_e0_bytes), (1, 0, 0));
        assert!(flow.ce_marks > 100 && ecn.delivered_ce >= flow.ce_marks, "{flow:?}");
        assert!(ecn.delivered_ce_bytes > 0 && ecn.delivered_e1_bytes > 10_000_000);
        assert!(outcome.queue.delay_ect.expect("they are ECN-capable").p99_ms < 3.0);
        assert!(flow.goodput_mbit[0] > 18.0 && flow.retransmits == 0);
    }
    for granted in ["ecn = true", "ecn = 'classic'", "ecn = 'off'"] {
        let outcome = of(granted);
        let flow = &outcome.flow[0];
        let ecn = flow.accurate_ecn.as_ref().expect("it asks for it");
        assert_eq!((ecn.agreed, ecn.reno, flow.ce_marks), (0, 1, 0));
        assert!(outcome.queue.delay_ect.is_none() && flow.retransmits > 0, "{flow:?}");
    }
}

/// In a classic queue that marks, Prague leaves CUBIC little, unless it looks for such queues; in DualPI2 it finds none.
#[test]
fn prague_gives_way_in_classic_queues_if_it_looks_for_them() {
    let of = |qdisc: &str, rtt: &str, more: &str| {
        let sweep = format!(
            "duration = '60s'\nwarmup = '20s'\n[link]\nrate = '50mbit'\nrtt = '{rtt}'\nqdisc = '{qdisc}'\n\
             [[flow]]\ncc = 'prague'\n{more}\n[[flow]]\ncc = 'cubic'\necn = true\n"
        );
        let sweep = Sweep::parse(&sweep).expect("a sweep");
        let outcome = simulate(&sweep.variants()[0].scenario, 1).expect("what the model has");
        [0, 1].map(|flow| outcome.flow[flow].total_mbit)
    };
    for qdisc in ["codel ecn", "pie ecn"] {
        let [prague, cubic] = of(qdisc, "20ms", "");
        assert!(prague > 10.0 * cubic, "{qdisc}: {prague} and {cubic} Mbit/s");
        let [prague, cubic] = of(qdisc, "20ms", "ecn_fallback = true");
        assert!((0.5..2.0).contains(&(prague / cubic)), "{qdisc}: {prague} and {cubic} Mbit/s");
    }
    for rtt in ["5ms", "20ms", "80ms"] {
        // To the last bit.
        let [plain, looking] =
            ["", "ecn_fallback = true"].map(|more| of("dualpi2", rtt, more).map(f64::to_bits));
        assert_eq!(plain, looking, "{rtt}");
    }
}

/// A path that bleaches the ECN field leaves Prague without marks: it finds out by its SYN and sends nothing as ECN-capable.
#[test]
fn prague_is_not_ecn_capable_where_ecn_is_bleached() {
    let flows = "[[flow]]\ncc = 'prague'\n";
    let outcome = run_through("dualpi2", "before = [{ bleach = true }]", flows);
    let ecn = outcome.flow[0].accurate_ecn.as_ref().expect("it asks for it");
    assert_eq!((ecn.agreed, ecn.delivered_ce, outcome.flow[0].ce_marks), (1, 0, 0));
    assert!(outcome.queue.delay_ect.is_none() && outcome.flow[0].goodput_mbit[0] > 15.0);
}

fn element() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "{ delay = '3ms' }",
        "{ delay = '9ms', jitter = '9ms' }",
        "{ delay = '5ms', jitter = '4ms', reorder = false }",
        "{ slot = '1ms', slot_max = '4ms', packets = 8 }",
        "{ loss = '2%' }",
        "{ duplicate = '3%' }",
        "{ rate = '15mbit', qdisc = 'pie' }",
        "{ rate = '30mbit' }",
        "{ mtu = 1300 }",
        "{ mtu = 700, icmp = false }",
        "{ bleach = true }",
        "{ police = '12mbit' }",
    ])
}

fn elements() -> impl Strategy<Value = String> {
    prop::collection::vec(element(), 0..4).prop_map(|all| format!("[{}]", all.join(", ")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever the path is made of: a run ends, comes again as it was, and no packet is counted twice.
    #[test]
    fn every_path_can_be_simulated(
        (before, behind, up_before, up_behind) in (elements(), elements(), elements(), elements()),
        (up_rate, forward) in (prop::option::of(1..30_u32), 0..=20_u32),
        (cc, gso) in (prop::sample::select(vec!["reno", "cubic", "dctcp", "bbr", "bbr3"]), any::<bool>()),
        seed in any::<u64>(),
    ) {
        let up_rate = up_rate.map_or(String::new(), |mbit| format!("rate = '{mbit}mbit'"));
        let sweep = format!(
            "duration = '3s'\nwarmup = '1s'\n[sender]\ngso = {gso}\n\
             [link]\nrate = '20mbit'\nforward = '{forward}ms'\nreverse = '{}ms'\nqdisc = 'dualpi2 any_ect'\nbefore = {before}\nbehind = {behind}\n\
             [link.up]\n{up_rate}\nbefore = {up_before}\nbehind = {up_behind}\n\
             [[flow]]\ncc = '{cc}'\ncount = 2\n[[flow]]\ncc = '{cc}'\ndirection = 'up'\n\
             [[udp]]\nrate = '3mbit'\n[[udp]]\nkind = 'voice'\necn = 'ect1'\ndirection = 'up'\n\
             [[probe]]\nkind = 'ssh'\n[[probe]]\nkind = 'ping'\n",
            20 - forward
        );
        let sweep = Sweep::parse(&sweep).expect("a sweep");
        let scenario = &sweep.variants()[0].scenario;
        let outcome = simulate(scenario, seed).expect("what the model has");
        for udp in &outcome.udp {
            prop_assert!(udp.received + udp.lost <= udp.sent, "{udp:?}");
            prop_assert!(udp.received == 0 || udp.delay.is_some());
        }
        // Upwards, nothing may limit the rate.
        prop_assert!(outcome.flow[0].total_mbit < 22.0, "{}", outcome.flow[0].total_mbit);
        for probe in &outcome.probe {
            prop_assert!(probe.n == 0 || probe.min_ms >= 20.0 - 0.001, "{}", probe.min_ms);
        }
        prop_assert_eq!(simulate(scenario, seed).expect("what the model has"), outcome);
    }
}
