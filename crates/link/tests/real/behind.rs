//! A link that cannot read as fast as somebody sends says so, whatever its clock and its queue say.

use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

use dualq_link::{DirectionSnapshot, Options, Packet, Seen, Watch};
use dualq_scenario::{Direction, Passage};
use dualq_units::Instant;

use crate::can_run;
use crate::pair::{Pair, near};
use crate::transfers::{assert_conserved, plain};

/// Takes time for each packet that comes, as a slow machine does.
struct Slow(Duration);

impl Watch for Slow {
    fn packet(&mut self, _: Instant, seen: Seen, _: &Packet) {
        if seen == Seen::Came {
            thread::sleep(self.0);
        }
    }
}

/// The way down after so many datagrams of 1000 bytes, with a pause before each.
fn after(datagrams: usize, pause: Duration, slowness: Duration) -> DirectionSnapshot {
    let pair = Pair::new();
    let bottleneck = Some(("1gbit".parse().unwrap(), "pfifo limit 10000".parse().unwrap()));
    let down = Passage { bottleneck, mtu: 1500, ..Passage::default() };
    let mut watch = |_: Direction| -> Box<dyn Watch> { Box::new(Slow(slowness)) };
    let running = pair.watched_link(&down, &plain(), &Options::default(), Some(&mut watch));
    let socket = pair.far.inside(|| UdpSocket::bind("0.0.0.0:0")).unwrap();
    // Of what the device holds the socket's buffer is not to be the limit.
    socket2::SockRef::from(&socket).set_send_buffer_size(8 << 20).unwrap();
    for _ in 0..datagrams {
        thread::sleep(pause);
        socket.send_to(&[7; 1000], near(false, 5001)).unwrap();
    }
    let has_come =
        |running: &dualq_link::Running| running.snapshot().unwrap().down.figures.came.packets;
    while has_come(&running) < datagrams as u64 {
        thread::sleep(Duration::from_millis(20));
    }
    let end = running.stop();
    assert_conserved(&end);
    end.down
}

#[test]
fn a_rate_that_the_link_cannot_keep_is_not_taken_for_the_paths() {
    if !can_run() {
        return;
    }
    // 5000 packets a second at most, of which 125,000 are the rate.
    let slow = after(1000, Duration::ZERO, Duration::from_micros(200));
    assert!(slow.is_behind(), "{} of {}", slow.behind, slow.figures.came.packets);
    // As slow, and not asked for more.
    let idle = after(50, Duration::from_millis(4), Duration::from_micros(200));
    assert!(!idle.is_behind(), "{} of {}", idle.behind, idle.figures.came.packets);
}
