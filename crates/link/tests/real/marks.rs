//! What a link marks, loses or takes no longer packets than, the hosts see.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

use dualq_link::{DirectionSnapshot, Options, Snapshot};
use dualq_scenario::{Element, Passage};
use dualq_socket::TcpInfo;

use crate::can_run;
use crate::pair::{Pair, near};
use crate::recorder::{Passed, Recorded, Recorder};
use crate::transfers::{assert_conserved, pattern, plain, send_down};

/// What the receiving ends of `bytes` counted of IP's ECN field (`IpExt` of `/proc/net/netstat`).
fn received(pair: &Pair, counter: &str) -> u64 {
    let netstat = pair.near.inside(|| std::fs::read_to_string("/proc/thread-self/net/netstat"));
    let netstat = netstat.unwrap();
    let mut lines = netstat.lines().filter_map(|line| line.strip_prefix("IpExt:"));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let place = names.split_whitespace().position(|name| name == counter).unwrap();
    values.split_whitespace().nth(place).unwrap().parse().unwrap()
}

/// What a transfer came to through a queue that marks nearly all that is ECN-capable.
struct Marked {
    pair: Pair,
    end: Snapshot,
    receiver: TcpInfo,
    near: Recorded,
    far: Recorded,
}

/// None where the kernel has no such value of `net.ipv4.tcp_ecn`.
fn marking(ecn: &str) -> Option<Marked> {
    let pair = Pair::new();
    for host in [&pair.near, &pair.far] {
        host.inside(|| std::fs::write("/proc/sys/net/ipv4/tcp_ecn", ecn)).ok()?;
    }
    let bottleneck = Some((
        "50mbit".parse().unwrap(),
        "dualpi2 any_ect step_thresh 1us min_qlen_step 0".parse().unwrap(),
    ));
    let down =
        Passage { bottleneck, mtu: 1500, delay: Duration::from_millis(1), ..Passage::default() };
    let running = pair.link(&down, &plain(), &Options::default());
    let [near, far] = [&pair.near, &pair.far].map(Recorder::start);
    let (_, receiver) = send_down(&pair, false, &pattern(3_000_000));
    // The last acknowledgement is on its way yet.
    thread::sleep(Duration::from_millis(100));
    let [near, far] = [near, far].map(Recorder::stop);
    let end = running.stop();
    assert_conserved(&end);
    Some(Marked { pair, end, receiver, near, far })
}

/// Of classic ECN, and of Accurate ECN where the kernel has it.
#[test]
fn each_packet_with_ce_is_counted_once_by_who_receives_it() {
    if !can_run() {
        return;
    }
    for ecn in ["1", "3"] {
        let Some(Marked { pair, end, receiver, near, far }) = marking(ecn) else {
            return tests_skipped::skipped("this kernel has no Accurate ECN");
        };
        let marked = end.down.figures.marked;
        assert!(marked > 200, "{marked}");
        // The queue counts a packet twice that the probability and the step would mark both.
        assert!(end.down.queue.as_ref().unwrap().stats.own.marks() >= marked);
        // An aggregate of several counts as one there: so none may have CE (Linux: `ip_rcv_core`, where `gso_segs` is none).
        assert_eq!(received(&pair, "InCEPkts"), marked);
        match receiver.received_ce {
            Some(count) => assert_eq!(u64::from(count), marked, "tcp_ecn {ecn}"),
            None => tests_skipped::skipped("this kernel does not count CE in TCP_INFO"),
        }
        if near.missed + far.missed > 0 {
            tests_skipped::skipped("this machine is too busy to record all packets");
            continue;
        }
        let DirectionSnapshot { figures: down, .. } = &end.down;
        let DirectionSnapshot { figures: up, .. } = &end.up;
        let passed = |packets, ce| Passed { packets, ce };
        assert_eq!(far.out, passed(down.came.packets, 0), "tcp_ecn {ecn}");
        assert_eq!(near.came, passed(down.left.packets, marked), "tcp_ecn {ecn}");
        assert_eq!(near.out, passed(up.came.packets, 0), "tcp_ecn {ecn}");
        assert_eq!(far.came, passed(up.left.packets, 0), "tcp_ecn {ecn}");
    }
}

#[test]
fn a_smaller_mtu_is_told_and_tcp_goes_on() {
    if !can_run() {
        return;
    }
    for v6 in [false, true] {
        let pair = Pair::new();
        let behind = vec![Element::Mtu { mtu: 1300, icmp: true }];
        let down = Passage { behind, mtu: 1500, ..Passage::default() };
        let running = pair.link(&down, &plain(), &Options::default());
        send_down(&pair, v6, &pattern(500_000));
        let end = running.stop();
        assert_conserved(&end);
        assert!(end.down.figures.lost.too_long > 0 && end.up.figures.made > 0, "{end:?}");
    }
}

#[test]
fn a_black_hole_swallows_what_is_too_long_without_a_word() {
    if !can_run() {
        return;
    }
    let pair = Pair::new();
    pair.far.sysctl("net/ipv4/tcp_mtu_probing", "0");
    let behind = vec![Element::Mtu { mtu: 1300, icmp: false }];
    let down = Passage { behind, mtu: 1500, ..Passage::default() };
    let running = pair.link(&down, &plain(), &Options::default());
    let listener = pair.near.inside(|| TcpListener::bind(near(false, 5002))).unwrap();
    let mut socket = pair.far.inside(|| TcpStream::connect(near(false, 5002))).unwrap();
    let (mut receiver, _) = listener.accept().unwrap();
    receiver.set_read_timeout(Some(Duration::from_millis(700))).unwrap();
    // What is short passes, what is long does not.
    socket.write_all(&[1; 100]).unwrap();
    let mut bytes = [0; 4000];
    assert_eq!(receiver.read(&mut bytes).unwrap(), 100);
    socket.write_all(&[2; 3000]).unwrap();
    let waited = receiver.read(&mut bytes);
    assert!(!waited.as_ref().is_ok_and(|count| *count >= 1400), "{waited:?}");
    let end = running.stop();
    assert_conserved(&end);
    assert!(end.down.figures.lost.too_long > 0);
    assert_eq!(end.up.figures.made, 0);
}

#[test]
fn datagrams_are_lost_as_often_as_it_is_said_and_else_arrive() {
    if !can_run() {
        return;
    }
    let pair = Pair::new();
    let down = Passage { loss: dualq_scenario::Loss::from_percent(25.0), ..plain() };
    let running = pair.link(&down, &plain(), &Options::default());
    for v6 in [false, true] {
        let sink = pair.near.inside(|| UdpSocket::bind(near(v6, 5003))).unwrap();
        socket2::SockRef::from(&sink).set_recv_buffer_size(1 << 20).unwrap();
        sink.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let any = if v6 { "[::]:0" } else { "0.0.0.0:0" };
        let source = pair.far.inside(|| UdpSocket::bind(any)).unwrap();
        source.connect(near(v6, 5003)).unwrap();
        let counter = thread::spawn(move || {
            let mut bytes = [0; 2000];
            std::iter::from_fn(|| sink.recv(&mut bytes).ok()).count()
        });
        for number in 0..2000_u16 {
            source.send(&[number as u8; 700]).unwrap();
            // The socket's buffer is not under test.
            if number % 20 == 0 {
                thread::sleep(Duration::from_millis(1));
            }
        }
        let arrived = counter.join().unwrap();
        // Five standard deviations, and nothing came that was lost.
        assert!((1400..1600).contains(&arrived), "{arrived}");
    }
    let end = running.stop();
    assert_conserved(&end);
    assert_eq!(
        end.down.figures.came.packets,
        end.down.figures.left.packets + end.down.figures.lost.random
    );
}

/// Of a burst that is written together each datagram arrives as it was sent, and as itself.
#[test]
fn datagrams_of_a_burst_arrive_each_as_it_was_sent() {
    if !can_run() {
        return;
    }
    let pair = Pair::new();
    let running = pair.link(&plain(), &plain(), &Options::default());
    for v6 in [false, true] {
        let sink = pair.near.inside(|| UdpSocket::bind(near(v6, 5004))).unwrap();
        socket2::SockRef::from(&sink).set_recv_buffer_size(4 << 20).unwrap();
        sink.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        let any = if v6 { "[::]:0" } else { "0.0.0.0:0" };
        let source = pair.far.inside(|| UdpSocket::bind(any)).unwrap();
        source.connect(near(v6, 5004)).unwrap();
        for burst in 0..20_u8 {
            // Runs of equal lengths, of which one is of bytes that are odd in number.
            let sent: Vec<Vec<u8>> = (0..60_u8)
                .map(|number| vec![number ^ burst; [18, 700, 701][usize::from(number / 20)]])
                .collect();
            sent.iter().for_each(|bytes| assert_eq!(source.send(bytes).unwrap(), bytes.len()));
            for expected in &sent {
                let mut bytes = [0; 2000];
                let length = sink.recv(&mut bytes).unwrap();
                assert_eq!(&bytes[..length], expected);
            }
        }
    }
    assert_conserved(&running.stop());
}
