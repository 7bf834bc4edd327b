//! What a link does with this machine's own TCP and UDP, beside a veth pair in the same run: `cargo bench -p dualq-link --bench real`. It
//! takes root, or `unshare --map-root-user --net`. Each figure is of three runs, of which the best and the median are shown: others may be
//! busy on the machine.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use dualq_link::{Options, Snapshot};
use dualq_netlink::{Netlink, VethEnd};
use dualq_scenario::Passage;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::UdpGsoSegment;

#[path = "../tests/real/pair.rs"]
mod pair;

use pair::{FAR, NEAR, Pair, near};

const RUNS: usize = 3;
const LENGTH: Duration = Duration::from_secs(4);
/// Slow start is over then.
const WARMUP: Duration = Duration::from_secs(1);

/// Sends as much as it can from the far end to the near one over one connection, and says how much arrived a second from the warm-up on, in
/// Mbit/s of payload.
fn bulk(pair: &Pair) -> f64 {
    let listener = pair.near.inside(|| TcpListener::bind(near(false, 5001))).expect("a port");
    let (received, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let receiver = thread::spawn({
        let received = Arc::clone(&received);
        move || {
            let (mut socket, _) = listener.accept().expect("a connection");
            let mut bytes = vec![0; 1 << 20];
            while let Ok(count @ 1..) = socket.read(&mut bytes) {
                received.fetch_add(count as u64, Ordering::Relaxed);
            }
        }
    });
    let mut socket = pair.far.inside(|| TcpStream::connect(near(false, 5001))).expect("a link");
    let sender = thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            let bytes = vec![0; 256 << 10];
            while !stop.load(Ordering::Relaxed) && socket.write_all(&bytes).is_ok() {}
            drop(socket);
        }
    });
    thread::sleep(WARMUP);
    let (began, before) = (Instant::now(), received.load(Ordering::Relaxed));
    thread::sleep(LENGTH);
    let bits = (received.load(Ordering::Relaxed) - before) * 8;
    let mbit = bits as f64 / began.elapsed().as_secs_f64() / 1e6;
    stop.store(true, Ordering::Relaxed);
    sender.join().expect("a sender");
    receiver.join().expect("a receiver");
    mbit
}

fn passage(bottleneck: Option<(&str, &str)>) -> Passage {
    let parse = |(rate, qdisc): (&str, &str)| {
        (rate.parse().expect("a rate"), qdisc.parse().expect("a qdisc"))
    };
    Passage { bottleneck: bottleneck.map(parse), mtu: 1500, ..Passage::default() }
}

/// The processor time of this process's threads whose names begin so, in seconds (proc_pid_stat(5)).
fn processor_time(threads: &str) -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").expect("threads").flatten();
    let stats = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok());
    let ticks = stats.filter(|stat| stat.contains(&format!("({threads}"))).map(|stat| {
        let rest = stat.rsplit(')').next().unwrap_or_default().to_owned();
        let numbers: Vec<&str> = rest.split_whitespace().collect();
        [11, 12].iter().filter_map(|place| numbers.get(*place)?.parse::<f64>().ok()).sum::<f64>()
    });
    ticks.sum::<f64>() / 100.0
}

struct Bulk {
    mbit: f64,
    /// Of a core, by the link.
    share: f64,
    end: Snapshot,
}

fn over_link(down: &Passage) -> Bulk {
    let pair = Pair::new();
    let running = pair.link(down, &passage(None), &Options::default());
    let (began, before) = (Instant::now(), processor_time("link "));
    let mbit = bulk(&pair);
    let share = (processor_time("link ") - before) / began.elapsed().as_secs_f64();
    Bulk { mbit, share, end: running.stop() }
}

fn over_veth() -> f64 {
    let pair = Pair::new();
    let ends = [(&pair.near, 1), (&pair.far, 2)].map(|(namespace, number)| VethEnd {
        name: pair::DEVICE,
        mac: [2, 0, 0, 0, 0, number],
        mtu: 1500,
        namespace: Some(namespace.as_fd()),
    });
    Netlink::open().and_then(|mut netlink| netlink.add_veth(&ends[0], &ends[1])).expect("veth");
    for (namespace, address) in [(&pair.near, NEAR), (&pair.far, FAR)] {
        namespace.inside(|| {
            let mut netlink = Netlink::open().expect("netlink");
            let index = netlink.link(pair::DEVICE).expect("it was made").index;
            netlink.add_address(index, address, 24).expect("an address");
            netlink.set_up(index).expect("up");
        });
    }
    thread::sleep(Duration::from_millis(200));
    bulk(&pair)
}

/// What leaves a link that always has something to send, in % of its rate: datagrams come at 1.1 times that, so that no sender's window, and none
/// that is not run in time, leaves it idle. And the share of a core that the link took.
fn flooded(rate: &str, mbit: f64, qdisc: &str) -> (f64, f64) {
    let pair = Pair::new();
    let running = pair.link(&passage(Some((rate, qdisc))), &passage(None), &Options::default());
    let sink = pair.near.inside(|| UdpSocket::bind(near(false, 9))).expect("a port");
    let socket = pair.far.inside(|| UdpSocket::bind(("0.0.0.0", 0))).expect("a port");
    socket.connect(near(false, 9)).expect("a way");
    setsockopt(&socket, UdpGsoSegment, &1472).expect("Linux 4.18");
    let stop = Arc::new(AtomicBool::new(false));
    let sender = thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            let (began, mut sent) = (Instant::now(), 0.0);
            while !stop.load(Ordering::Relaxed) {
                let due = began.elapsed().as_secs_f64() * mbit * 1.1e6 / 8.0;
                while sent < due {
                    let _ = socket.send(&[0; 1472 * 40]);
                    sent += 1514.0 * 40.0;
                }
                thread::sleep(Duration::from_micros(100));
            }
        }
    });
    thread::sleep(WARMUP);
    let (before, busy) = (running.snapshot().expect("it runs"), processor_time("link "));
    thread::sleep(LENGTH);
    let (after, busy) = (running.snapshot().expect("it runs"), processor_time("link ") - busy);
    stop.store(true, Ordering::Relaxed);
    sender.join().expect("a sender");
    drop(sink);
    let took = (after.at - before.at).as_secs_f64();
    let left = after.down.figures.left.bytes - before.down.figures.left.bytes;
    (left as f64 * 8.0 / took / mbit / 1e4, busy / took)
}

/// Round trips of small packets over an empty link, one each millisecond, in microseconds, sorted.
fn round_trips(link: bool) -> Vec<u64> {
    let pair = Pair::new();
    let running = link.then(|| {
        pair.link(&passage(Some(("1gbit", "dualpi2"))), &passage(None), &Options::default())
    });
    let to = if link { near(false, 7) } else { ([127, 0, 0, 1], 7).into() };
    let answerer = pair.near.inside(|| UdpSocket::bind(to)).expect("a port");
    let asker = if link { &pair.far } else { &pair.near };
    let socket = asker.inside(|| UdpSocket::bind(("0.0.0.0", 0))).expect("a port");
    socket.connect(to).expect("a way");
    let timeout = Some(Duration::from_millis(200));
    socket
        .set_read_timeout(timeout)
        .and_then(|()| answerer.set_read_timeout(timeout))
        .expect("a time");
    let stop = Arc::new(AtomicBool::new(false));
    let thread = thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            let mut bytes = [0; 100];
            while !stop.load(Ordering::Relaxed) {
                if let Ok((count, from)) = answerer.recv_from(&mut bytes) {
                    let _ = answerer.send_to(&bytes[..count], from);
                }
            }
        }
    });
    let mut times = Vec::new();
    for _ in 0..2000 {
        let began = Instant::now();
        let mut bytes = [0; 100];
        if socket.send(&bytes[..20]).is_ok() && socket.recv(&mut bytes).is_ok() {
            times.push(began.elapsed().as_micros() as u64);
        }
        thread::sleep(Duration::from_millis(1));
    }
    stop.store(true, Ordering::Relaxed);
    thread.join().expect("an answerer");
    drop(running);
    times.sort_unstable();
    times
}

/// Small packets a second through dualpi2, and the share of a core that the link took.
fn small_packets() -> (f64, f64, u64) {
    let pair = Pair::new();
    let running =
        pair.link(&passage(Some(("10gbit", "dualpi2"))), &passage(None), &Options::default());
    let sink = pair.near.inside(|| UdpSocket::bind(near(false, 9))).expect("a port");
    let socket = pair.far.inside(|| UdpSocket::bind(("0.0.0.0", 0))).expect("a port");
    socket.connect(near(false, 9)).expect("a way");
    let barrier = Arc::new(Barrier::new(2));
    let sender = thread::spawn({
        let barrier = Arc::clone(&barrier);
        move || {
            barrier.wait();
            let end = Instant::now() + LENGTH;
            while Instant::now() < end {
                for _ in 0..64 {
                    let _ = socket.send(&[0; 18]);
                }
            }
        }
    });
    barrier.wait();
    let (began, before) = (Instant::now(), processor_time("link down"));
    sender.join().expect("a sender");
    let (took, busy) = (began.elapsed().as_secs_f64(), processor_time("link down") - before);
    drop(sink);
    let end = running.stop();
    (end.down.figures.left.packets as f64 / took, busy / took, end.down.device_dropped)
}

/// What moving small packets costs here without a link: datagrams a second, for each core that a thread took that reads each over loopback
/// and sends it on to a socket that nobody reads, as the sink of [`small_packets`].
fn relayed() -> f64 {
    let pair = Pair::new();
    let (relay, sink, source) = pair.near.inside(|| {
        let bind = || UdpSocket::bind(("127.0.0.1", 0)).expect("a port");
        (bind(), bind(), bind())
    });
    source.connect(relay.local_addr().expect("bound")).expect("a way");
    relay.set_read_timeout(Some(Duration::from_millis(200))).expect("a time");
    let to = sink.local_addr().expect("bound");
    let thread = thread::Builder::new().name("relay".to_owned()).spawn(move || {
        let (mut bytes, mut count) = ([0; 100], 0_u64);
        while let Ok(length) = relay.recv(&mut bytes) {
            count += u64::from(relay.send_to(&bytes[..length], to).is_ok());
        }
        (count, thread_time())
    });
    let end = Instant::now() + LENGTH;
    while Instant::now() < end {
        for _ in 0..64 {
            let _ = source.send(&[0; 18]);
        }
    }
    let (count, took) = thread.expect("a thread").join().expect("a relay");
    count as f64 / took
}

/// What waking costs here without a link: the share of a core of a thread that wakes each 242 us, which a packet takes at 50 Mbit/s, and
/// `sends` a datagram over loopback to a thread that waits for it, or does nothing.
fn woken(sends: bool) -> f64 {
    let pair = Pair::new();
    let (sink, source) = pair.near.inside(|| {
        let bind = || UdpSocket::bind(("127.0.0.1", 0)).expect("a port");
        (bind(), bind())
    });
    source.connect(sink.local_addr().expect("bound")).expect("a way");
    sink.set_read_timeout(Some(Duration::from_millis(200))).expect("a time");
    let reader = thread::spawn(move || while sink.recv(&mut [0; 2000]).is_ok() {});
    let waker = thread::spawn(move || {
        let began = Instant::now();
        let mut next = began;
        while began.elapsed() < LENGTH {
            next += Duration::from_micros(242);
            thread::sleep(next.saturating_duration_since(Instant::now()));
            if sends {
                let _ = source.send(&[0; 1472]);
            }
        }
        thread_time() / began.elapsed().as_secs_f64()
    });
    let share = waker.join().expect("a waker");
    reader.join().expect("a reader");
    share
}

/// The processor time of the calling thread, in seconds.
fn thread_time() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The best and the median of three.
fn of_three(mut run: impl FnMut() -> f64) -> String {
    let mut values: Vec<f64> = (0..RUNS).map(|_| run()).collect();
    values.sort_by(f64::total_cmp);
    format!("best {:.1}, median {:.1}", values[RUNS - 1], values[RUNS / 2])
}

fn main() {
    if !tests_skipped::is_root() {
        println!(
            "it takes root, or: unshare --map-root-user --net cargo bench -p dualq-link --bench real"
        );
        return;
    }
    println!("bulk TCP, CUBIC, one connection, Mbit/s of payload");
    println!("  veth pair                    {}", of_three(over_veth));
    println!("  unshaped link                {}", of_three(|| over_link(&passage(None)).mbit));
    println!("  veth pair again              {}", of_three(over_veth));
    // Of 1514 bytes with Ethernet's header, 1448 are payload.
    for (rate, mbit) in [("50mbit", 50.0), ("1gbit", 1e3), ("5gbit", 5e3)] {
        for qdisc in ["dualpi2", "fq_codel"] {
            let mut shares = Vec::new();
            let mut late = Vec::new();
            let shown = of_three(|| {
                let run = over_link(&passage(Some((rate, qdisc))));
                shares.push(run.share * 100.0);
                late.push(run.end.down.figures.lateness.at(0.99).as_micros());
                run.mbit * 1514.0 / 1448.0 / mbit * 100.0
            });
            println!(
                "{rate} {qdisc}: on the wire, % of the rate: {shown}; the link's threads, % of a core: {shares:.1?}; p99 of lateness, us: {late:?}"
            );
        }
    }
    for (rate, mbit) in [("50mbit", 50.0), ("1gbit", 1e3), ("5gbit", 5e3)] {
        for qdisc in ["dualpi2", "fq_codel", "pfifo limit 1000"] {
            let mut shares = Vec::new();
            let shown = of_three(|| {
                let (left, share) = flooded(rate, mbit, qdisc);
                shares.push(share * 100.0);
                left
            });
            println!(
                "{rate} {qdisc}, never idle: left, % of the rate: {shown}; the link's threads, % of a core: {shares:.1?}"
            );
        }
    }
    for (sends, what) in [(false, "does nothing"), (true, "sends a datagram over loopback")] {
        println!(
            "a thread that wakes 4,130 times a second and {what}, % of a core: {}",
            of_three(|| woken(sends) * 100.0)
        );
    }
    for (name, link) in [("loopback", false), ("empty link, 1gbit dualpi2", true)] {
        let runs: Vec<_> = (0..RUNS)
            .map(|_| round_trips(link))
            .map(|times| (times[times.len() / 2], times[times.len() * 99 / 100]))
            .collect();
        println!("round trip of UDP, us, {name}: (median, p99) {runs:?}");
    }
    println!("small packets relayed over loopback, a second on one core: {}", of_three(relayed));
    for _ in 0..RUNS {
        let (rate, share, dropped) = small_packets();
        println!(
            "small packets through dualpi2: {rate:.0} a second, {:.0} % of a core: {:.0} a second on one core; {dropped} not read in time",
            share * 100.0,
            rate / share
        );
    }
}
