//! What one end sends arrives at the other, and every packet is accounted for.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::thread;
use std::time::{Duration, Instant};

use dualq_link::{DirectionSnapshot, Options, Snapshot};
use dualq_scenario::Passage;
use dualq_socket::TcpInfo;

use crate::can_run;
use crate::pair::{Pair, near};

const MTU: u32 = 1500;

fn passage(qdisc: &str, rate: &str, delay: Duration) -> Passage {
    let bottleneck = Some((rate.parse().unwrap(), qdisc.parse().unwrap()));
    Passage { bottleneck, delay, mtu: MTU, ..Passage::default() }
}

pub(crate) fn plain() -> Passage {
    Passage { mtu: MTU, ..Passage::default() }
}

/// Bytes that are not all alike.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let byte = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(byte).take(length).collect()
}

/// Sends `bytes` from the far end to the near one; returns how long that took, and what the receiver's kernel said at the end.
pub(crate) fn send_down(pair: &Pair, v6: bool, bytes: &[u8]) -> (Duration, TcpInfo) {
    let listener = pair.near.inside(|| TcpListener::bind(near(v6, 5001))).unwrap();
    let receiver = thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut received = Vec::new();
        socket.read_to_end(&mut received).unwrap();
        (received, TcpInfo::of(socket.as_fd()).unwrap())
    });
    let began = Instant::now();
    let mut socket = pair.far.inside(|| TcpStream::connect(near(v6, 5001))).unwrap();
    socket.write_all(bytes).unwrap();
    drop(socket);
    let (received, info) = receiver.join().unwrap();
    assert!(received == bytes, "{} bytes of {} arrived as they were", received.len(), bytes.len());
    (began.elapsed(), info)
}

pub(crate) fn assert_conserved(end: &Snapshot) {
    for DirectionSnapshot { figures, inside, device_dropped, failed, .. } in [&end.down, &end.up] {
        assert_eq!(*failed, None);
        assert_eq!(
            figures.came.packets + figures.copied + figures.made,
            figures.left.packets + figures.lost.total() + inside
        );
        assert_eq!((*device_dropped, figures.lost.no_room, figures.lost.refused), (0, 0, 0));
    }
}

#[test]
fn what_is_sent_arrives_over_both_families() {
    if !can_run() {
        return;
    }
    let pair = Pair::new();
    let bytes = pattern(20_000_000);
    for v6 in [false, true] {
        let running = pair.link(&plain(), &plain(), &Options::default());
        send_down(&pair, v6, &bytes);
        let end = running.stop();
        assert_conserved(&end);
        let came = end.down.figures.came;
        assert!(came.bytes > bytes.len() as u64 && came.packets > 10_000, "{came:?}");
    }
}

#[test]
fn a_rate_is_kept_and_segments_of_aggregates_are_whole() {
    if !can_run() {
        return;
    }
    let pair = Pair::new();
    let bytes = pattern(10_000_000);
    for (qdisc, v6) in [
        ("dualpi2", false),
        ("dualpi2", true),
        ("fq_codel", false),
        ("pfifo", true),
        ("cake", false),
    ] {
        let down = passage(qdisc, "100mbit", Duration::from_millis(2));
        let running = pair.link(&down, &plain(), &Options::default());
        let (took, _) = send_down(&pair, v6, &bytes);
        let end = running.stop();
        assert_conserved(&end);
        // The headers of a full segment of IPv4 with timestamps: 66 of 1514 bytes.
        let least = Duration::from_secs_f64(10e6 * 1514.0 / 1448.0 * 8.0 / 100e6);
        assert!(took > least && took < least * 3, "{qdisc}: {took:?}, at least {least:?}");
        let queue = end.down.queue.unwrap();
        assert!(queue.text().starts_with(&format!("qdisc {qdisc} ")), "{}", queue.text());
        assert!(queue.stats.counters.sent_packets > 0);
    }
}
