//! A link's second thread is there while there is much to do. By itself, as threads of other tests have the same name.
#![cfg(target_os = "linux")]

use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use dualq_link::{DirectionSnapshot, Options};
use dualq_scenario::Passage;

#[allow(dead_code, reason = "others use the rest")]
#[path = "../real/pair.rs"]
mod pair;

use pair::{Pair, near};

/// Longer than any machine needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether a thread of this process works for the way up alone.
fn has_second_thread() -> bool {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let mut names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.any(|name| name.trim() == "link up")
}

#[test]
fn a_second_thread_works_for_the_way_up_while_there_is_much_to_do() {
    if !tests_skipped::is_root() {
        return tests_skipped::again_as_root("true");
    }
    if std::fs::File::open("/dev/net/tun").is_err() {
        return tests_skipped::skipped("there is no /dev/net/tun");
    }
    let pair = Pair::new();
    let plain = Passage { mtu: 1500, ..Passage::default() };
    let running = pair.link(&plain, &plain, &Options::default());
    let sink = pair.near.inside(|| UdpSocket::bind(near(false, 9))).unwrap();
    let source = pair.far.inside(|| UdpSocket::bind("0.0.0.0:0")).unwrap();
    source.connect(near(false, 9)).unwrap();
    // Each way, and there and back again.
    let mut round_trips = 0;
    for _ in 0..2 {
        let began = Instant::now();
        while !has_second_thread() {
            assert!(began.elapsed() < PATIENCE, "one thread for all");
            for _ in 0..2000 {
                source.send(&[7; 100]).unwrap();
            }
        }
        thread::sleep(Duration::from_millis(50));
        sink.set_nonblocking(true).unwrap();
        while sink.recv(&mut [0; 100]).is_ok() {}
        sink.set_nonblocking(false).unwrap();
        let began = Instant::now();
        while has_second_thread() {
            assert!(began.elapsed() < PATIENCE, "two threads for nothing");
            source.send(&[7; 100]).unwrap();
            let (_, from) = sink.recv_from(&mut [0; 100]).unwrap();
            sink.send_to(&[7; 100], from).unwrap();
            source.recv(&mut [0; 100]).unwrap();
            round_trips += 1;
            thread::sleep(Duration::from_millis(2));
        }
    }
    // Both ways end well, whoever works for them.
    let end = running.stop();
    for DirectionSnapshot { figures, inside, failed, .. } in [&end.down, &end.up] {
        assert_eq!(*failed, None);
        assert_eq!(figures.came.packets, figures.left.packets + figures.lost.total() + inside);
    }
    assert!(round_trips > 0 && end.up.figures.left.packets >= round_trips, "{:?}", end.up);
}
