//! What is told of a run is what its outcome counts, whatever the scenario; and to look changes nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use dualq_model::{simulate, simulate_watched};
use dualq_scenario::draw::{Class, draw};
use dualq_scenario::{
    Change, ConnectionEvent, Direction, Event, Headers, Kind, Point, Scenario, Seen, Sweep, Wants,
    Watch,
};
use dualq_tcp::WINDOW_SCALE;
use dualq_units::Rate;
use etherparse::{Ipv4Header, NetSlice, SlicedPacket, TcpHeader, TransportSlice};
use proptest::prelude::*;
use serde_json::json;

/// All that is told.
#[derive(Default)]
struct All {
    packets: BTreeMap<(&'static str, &'static str), u64>,
    points: BTreeMap<&'static str, u64>,
    data_sent: u64,
    faults: Vec<String>,
    last_ns: u64,
}

impl All {
    fn count(&self, seen: Seen, direction: &str) -> u64 {
        let direction = if direction == "down" { "down" } else { "up" };
        self.packets.get(&(seen.name(), direction)).copied().unwrap_or(0)
    }

    fn at(&self, point: Point) -> u64 {
        self.points.get(point.name()).copied().unwrap_or(0)
    }

    fn note(&mut self, fault: impl Into<String>) {
        if self.faults.len() < 10 {
            self.faults.push(fault.into());
        }
    }
}

impl Watch for All {
    fn wants(&self) -> Wants {
        Wants { packets: true, headers: true, connections: true }
    }

    fn packet(&mut self, event: Event) {
        let direction = if event.direction.is_down() { "down" } else { "up" };
        *self.packets.entry((event.seen.name(), direction)).or_default() += 1;
        if event.seen == Seen::In && event.kind == Kind::Error {
            self.note("routers' messages pass no queue");
        }
    }

    fn headers(&mut self, headers: &Headers<'_>) {
        *self.points.entry(headers.point.name()).or_default() += 1;
        if headers.at_ns < self.last_ns {
            self.note("time goes back");
        }
        self.last_ns = headers.at_ns;
        if let Err(fault) = check(headers) {
            self.note(fault);
        }
    }

    fn connection(&mut self, event: &ConnectionEvent) {
        if let Change::Sent { start, end, .. } = event.change {
            self.data_sent += u64::from(start < end);
        }
    }
}

/// The whole packet is made of its headers and zeros; then all must be right.
fn check(headers: &Headers<'_>) -> Result<(), String> {
    let mut packet = headers.bytes.to_vec();
    if packet.len() > headers.length as usize {
        return Err(format!("{} bytes of headers in {} bytes", packet.len(), headers.length));
    }
    packet.resize(headers.length as usize, 0);
    let sliced = SlicedPacket::from_ip(&packet).map_err(|error| format!("{error}"))?;
    let Some(NetSlice::Ipv4(ip)) = &sliced.net else { return Err("no IPv4".to_owned()) };
    let header = ip.header().to_header();
    if header.header_checksum != header.calc_header_checksum() {
        return Err("a wrong checksum of IP".to_owned());
    }
    let right = match &sliced.transport {
        Some(TransportSlice::Tcp(tcp)) => {
            tcp.to_header().calc_checksum_ipv4(&header, tcp.payload()) == Ok(tcp.checksum())
        }
        Some(TransportSlice::Udp(udp)) => {
            udp.to_header().calc_checksum_ipv4(&header, udp.payload()) == Ok(udp.checksum())
        }
        Some(TransportSlice::Icmpv4(icmp)) => {
            icmp.icmp_type().calc_checksum(icmp.payload()) == icmp.checksum()
        }
        other => return Err(format!("no transport: {other:?}")),
    };
    if right { Ok(()) } else { Err(format!("a wrong checksum: {:?}", sliced.transport)) }
}

/// One end's view of a connection with data both ways, as a capture beside that end has it. Numbers are of bytes from the SYN on.
#[derive(Clone, Debug, Default)]
struct End {
    /// Up to where it has sent, and up to where it has let the other send.
    sent: u32,
    granted: u32,
    /// Which bytes have come, and up to where without a gap.
    came: Vec<bool>,
    edge: u32,
    /// Bytes of payload that it sent, those sent again counted once.
    payload: u32,
}

impl End {
    fn sends(&mut self, tcp: &TcpHeader, payload: u32, scale: u32) -> Result<(), String> {
        let (start, end) =
            (tcp.sequence_number, tcp.sequence_number + payload + u32::from(tcp.syn));
        let right = match (tcp.ack, payload) {
            (false, _) => tcp.syn && self.sent <= 1 && start == 0,
            _ if tcp.acknowledgment_number != self.edge => false,
            // Without data it tells where it is.
            (true, 0) => start == self.sent || tcp.syn,
            (true, _) => start <= self.sent,
        };
        if !right {
            let Self { sent, edge, .. } = self;
            return Err(format!("{tcp:?} with {payload} bytes, {sent} sent, {edge} came"));
        }
        if end > self.sent {
            self.payload += payload.min(end - self.sent);
            self.sent = end;
        }
        let scale = if tcp.syn { 0 } else { scale };
        let granted = tcp.acknowledgment_number + (u32::from(tcp.window_size) << scale);
        self.granted = self.granted.max(granted);
        Ok(())
    }

    fn gets(&mut self, tcp: &TcpHeader, payload: u32) -> Result<(), String> {
        let start = tcp.sequence_number as usize;
        let end = start + payload as usize + usize::from(tcp.syn);
        if end > self.granted.max(1) as usize {
            return Err(format!("{tcp:?} with {payload} bytes, granted {}", self.granted));
        }
        self.came.resize(self.came.len().max(end), false);
        self.came[start..end].fill(true);
        while self.came.get(self.edge as usize) == Some(&true) {
            self.edge += 1;
        }
        Ok(())
    }
}

/// Where the first probe's far end listens.
const PROBE_PORT: u16 = 6001;

/// The ends of the probe's connection.
#[derive(Default)]
struct BothWays {
    /// Its addresses and ports, the near end's first.
    ends: Option<[([u8; 4], u16); 2]>,
    views: [End; 2],
    flows: Vec<(u32, Kind, bool)>,
    told: Vec<u32>,
}

impl BothWays {
    fn look(&mut self, headers: &Headers<'_>) -> Result<(), String> {
        let point = match headers.point {
            Point::Near => 0,
            Point::Far => 1,
            _ => return Ok(()),
        };
        let (ip, rest) = Ipv4Header::from_slice(headers.bytes.as_ref()).unwrap();
        let (tcp, _) = TcpHeader::from_slice(rest).unwrap();
        if ![tcp.source_port, tcp.destination_port].contains(&PROBE_PORT) {
            return Ok(());
        }
        let payload = headers.length - 20 - tcp.header_len() as u32;
        let [from, to] = [(ip.source, tcp.source_port), (ip.destination, tcp.destination_port)];
        let ends = *self.ends.get_or_insert([from, to]);
        let sender = ends
            .iter()
            .position(|end| *end == from)
            .ok_or(format!("{from:?} is not at {ends:?}"))?;
        if ends[1 - sender] != to {
            return Err(format!("{to:?} is not at {ends:?}"));
        }
        let view = &mut self.views[point];
        if sender == point {
            view.sends(&tcp, payload, WINDOW_SCALE)
        } else {
            view.gets(&tcp, payload)
        }
    }
}

impl Watch for BothWays {
    fn wants(&self) -> Wants {
        Wants { packets: true, headers: true, connections: true }
    }

    fn packet(&mut self, event: Event) {
        let seen = (event.flow, event.kind, event.direction.is_down());
        if !self.flows.contains(&seen) {
            self.flows.push(seen);
        }
    }

    fn headers(&mut self, headers: &Headers<'_>) {
        self.look(headers).unwrap_or_else(|fault| panic!("{}: {fault}", headers.at_ns));
    }

    fn connection(&mut self, event: &ConnectionEvent) {
        self.told.push(event.flow);
    }
}

/// Questions and answers are one connection to whoever looks: each end acknowledges exactly what has come to it of the other's data, in
/// every segment, and nobody sends more than the other takes; whatever is lost, whichever queue lets its sender wait.
#[test]
fn a_connection_with_data_both_ways_is_one() {
    let request = |size: u32| format!("kind = 'request', size = '{size}b'");
    let ssh = || "kind = 'ssh'".to_owned();
    for (kind, size, loss, qdisc, gso, interval) in [
        (request(3_000), 3_000, "0%", "pfifo limit 1000", false, "100ms"),
        (request(300_000), 300_000, "0%", "pfifo limit 20", true, "1ms"),
        (request(300_000), 300_000, "2%", "fq_codel", true, "1ms"),
        (request(20_000), 20_000, "10%", "pfifo limit 1000", false, "30ms"),
        (ssh(), 48, "0%", "pfifo limit 1000", true, "5ms"),
        (ssh(), 48, "10%", "pfifo limit 1000", true, "50ms"),
    ] {
        let text = format!(
            "duration = '20s'\nwarmup = '0s'\nsender = {{ gso = {gso}, qdisc = 'fq' }}\n\
             flow = [{{ cc = 'cubic', size = '1kb' }}]\n\
             probe = [{{ {kind}, interval = '{interval}' }}]\n\
             [link]\nrate = '20mbit'\nrtt = '20ms'\nqdisc = '{qdisc}'\nloss = '{loss}'\nup.loss = '{loss}'\n"
        );
        let sweep = Sweep::parse(&text).unwrap();
        let scenario = &sweep.variants()[0].scenario;
        let mut seen = BothWays::default();
        let outcome = simulate_watched(scenario, 1, &mut seen).unwrap();
        assert!(json!(outcome) == json!(simulate(scenario, 1).unwrap()), "to look changes nothing");
        let answered = outcome.probe[0].n;
        let [near, far] = &seen.views;
        assert!(answered > 10, "{size}: {answered}");
        assert!(u64::from(near.payload) >= answered * size && far.payload >= answered as u32 * 48);
        let both = [Kind::Data, Kind::Ack].map(|kind| [(1, kind, true), (1, kind, false)]);
        for one in both.as_flattened() {
            assert!(seen.flows.contains(one), "{size}: {:?}", seen.flows);
        }
        assert!(seen.flows.iter().all(|(flow, ..)| *flow <= 1), "{:?}", seen.flows);
        assert!(seen.told.contains(&1) && seen.told.iter().all(|flow| *flow <= 1));
    }
}

/// When what is no TCP sets out.
struct SetsOut(Vec<(Kind, u64)>);

impl Watch for SetsOut {
    fn wants(&self) -> Wants {
        Wants { packets: true, headers: false, connections: false }
    }

    fn packet(&mut self, event: Event) {
        if event.seen == Seen::In && event.direction.is_down() && event.kind != Kind::Data {
            self.0.push((event.kind, event.at_ns));
        }
    }
}

/// As in the world `kernel`: programs that begin at one instant do so one after the other, and what repeats does so at whole intervals from the start, not from
/// when its turn came; but for those who begin just then.
#[test]
fn what_repeats_keeps_to_its_intervals() {
    let text = "duration = '200ms'\nwarmup = '0s'\n\
                flow = [{ cc = 'cubic', count = 2, spacing = '50ms', size = '1kb' }]\n\
                probe = [{ kind = 'ping', interval = '30ms' }]\n\
                udp = [{ kind = 'cbr', packet = 200, rate = '34240bit' }]\n\
                [link]\nrate = '20mbit'\nrtt = '20ms'\nqdisc = 'pfifo limit 100'\n";
    let sweep = Sweep::parse(text).unwrap();
    let mut seen = SetsOut(Vec::new());
    simulate_watched(&sweep.variants()[0].scenario, 1, &mut seen).unwrap();
    let times = |kind| {
        let of_kind = seen.0.iter().filter(move |(its, _)| *its == kind);
        of_kind.map(|(_, at_ns)| *at_ns).collect::<Vec<_>>()
    };
    let ms = |ms: u64, ns: u64| ms * 1_000_000 + ns;
    let pings = (1..7).map(|round| ms(30 * round, 2));
    assert_eq!(times(Kind::Echo), [6].into_iter().chain(pings).collect::<Vec<_>>());
    assert_eq!(times(Kind::Udp), [8, ms(50, 6), ms(100, 2), ms(150, 2)]);
    // So many begin at once that the next packets are due before the first have left.
    let text = text.replace("count = 2, spacing = '50ms'", "count = 60, spacing = '0s'");
    let text = text.replace("rate = '34240bit'", "rate = '32gbit'").replace("200ms", "1ms");
    let sweep = Sweep::parse(&text).unwrap();
    let mut seen = SetsOut(Vec::new());
    simulate_watched(&sweep.variants()[0].scenario, 1, &mut seen).unwrap();
    assert!(seen.0.len() > 10_000 && seen.0.is_sorted_by_key(|(_, at_ns)| *at_ns));
}

/// The questions of which a probe's sender hears that they have come.
struct Heard(Vec<u64>);

impl Watch for Heard {
    fn wants(&self) -> Wants {
        Wants { packets: true, headers: false, connections: false }
    }

    fn packet(&mut self, event: Event) {
        if (event.flow, event.seen, event.direction) == (1, Seen::Ack, Direction::Up) {
            self.0.push(event.seq / 48);
        }
    }
}

/// As in the world `kernel`: the first question is acknowledged at once (Linux: `tcp_in_quickack_mode`) and with its answer, the others with theirs
/// alone, for the answering end has found that it sends soon after it has received (`inet_csk_in_pingpong_mode`).
#[test]
fn the_first_question_is_acknowledged_twice() {
    let text = "duration = '1s'\nwarmup = '0s'\nflow = [{ cc = 'cubic', size = '1kb' }]\n\
                probe = [{ kind = 'ssh', interval = '80ms' }]\n\
                [link]\nrate = '20mbit'\nrtt = '20ms'\nqdisc = 'pfifo limit 100'\n";
    let sweep = Sweep::parse(text).unwrap();
    let mut heard = Heard(Vec::new());
    let outcome = simulate_watched(&sweep.variants()[0].scenario, 1, &mut heard).unwrap();
    // The SYN first.
    assert_eq!(heard.0, [0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    assert_eq!((outcome.probe[0].n, outcome.probe[0].retransmits), (10, 0));
}

/// What reaches the queue at a whole second, by flows.
struct Seconds(Vec<(u64, u32)>);

impl Watch for Seconds {
    fn wants(&self) -> Wants {
        Wants { packets: true, headers: false, connections: false }
    }

    fn packet(&mut self, event: Event) {
        let [second, rest_ns] = [event.at_ns / 1_000_000_000, event.at_ns % 1_000_000_000];
        if event.seen == Seen::In && second > 0 && rest_ns < 1_000 {
            self.0.push((second, event.flow));
        }
    }
}

/// As in the world `kernel` in `exact-20261205`: transfers recur so many times that long after the first, and one begins before a ping that is due then.
#[test]
fn a_transfer_that_recurs_begins_before_a_ping_of_its_instant() {
    let text = "duration = '3500ms'\nwarmup = '0s'\nprobe = [{ kind = 'ping', interval = '50ms' }]\n\
                flow = [{ cc = 'cubic' , size = '100b' }, { cc = 'cubic', size = '1kb', every = '1s' }]\n\
                [link]\nrate = '20mbit'\nrtt = '20ms'\nqdisc = 'pfifo limit 100'\n";
    let sweep = Sweep::parse(text).unwrap();
    let mut seen = Seconds(Vec::new());
    simulate_watched(&sweep.variants()[0].scenario, 1, &mut seen).unwrap();
    assert_eq!(seen.0, [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)]);
}

/// Where in the stream of the first flow packets begin that reach the queue, how long they are, and in which microsecond they do, from that place on.
struct Packets {
    from: u64,
    seen: Vec<(u64, u64)>,
    times_us: Vec<u64>,
}

impl Packets {
    /// Those of a scenario.
    fn of(text: &str, from: u64) -> Self {
        let mut packets = Self { from, seen: Vec::new(), times_us: Vec::new() };
        let sweep = Sweep::parse(text).unwrap();
        simulate_watched(&sweep.variants()[0].scenario, 1, &mut packets).unwrap();
        packets
    }
}

impl Watch for Packets {
    fn wants(&self) -> Wants {
        Wants { packets: true, headers: false, connections: false }
    }

    fn packet(&mut self, event: Event) {
        if event.seen == Seen::In && event.flow == 0 && event.seq >= self.from {
            self.seen.push((event.seq, event.bytes));
            self.times_us.push(event.at_ns / 1_000);
        }
    }
}

/// As in the world `kernel` in `exact-20261212`, whose program may leave 128 KiB unsent: the call that found no room sends some of what it wrote, and the next
/// one finds room (Linux: `tcp_sendmsg_locked`, which refuses only who has written nothing).
#[test]
fn a_program_calls_again_until_there_is_no_room() {
    let text = "duration = '1725ms'\nwarmup = '1s'\nprobe = []\n\
                flow = [{ cc = 'reno', ecn = true, notsent_lowat = '128kb' }]\n\
                [link]\nrate = '670mbit'\nrtt = '161.798ms'\nqdisc = 'pfifo limit 17446'\n";
    let expected = [
        (13_970_304, 31_856),
        (14_002_160, 65_160),
        (14_067_320, 65_160),
        (14_132_480, 31_856),
        (14_164_336, 65_160),
        (14_229_496, 65_160),
    ];
    assert_eq!(Packets::of(text, 13_970_304).seen, expected);
}

/// As in the world `kernel` in `exact-20261215`: acknowledgements that `extra_rtt` delays are at their sender at once, and what leaves with their timer still
/// counts there, so that a small queue holds back what the second one lets go, and the program writes before (Linux: `net_tx_action`, `skb_orphan`).
#[test]
fn what_leaves_with_the_timer_of_an_acknowledgement_holds_its_memory_behind_it() {
    let text = "duration = '1380ms'\nwarmup = '1s'\nprobe = [{ kind = 'ping', interval = '50ms' }]\n\
                flow = [{ cc = 'reno', count = 2, spacing = '0ms', extra_rtt = '1068us' }]\nsender = { gso = false }\n\
                [link]\nrate = '990mbit'\nforward = '64157333ns'\nreverse = '128314667ns'\nqdisc = 'bfifo limit 100085140'\nup = { rate = '490mbit' }\n";
    let packets = Packets::of(text, 991_880);
    let expected = [1_370_245, 1_370_523, 1_370_523, 1_370_523, 1_371_353, 1_371_623];
    assert_eq!(packets.times_us[..6], expected);
}

/// Which places of which flows leave the queue of the path up, from a time on.
struct Leaving(u64, Vec<(u32, u64)>);

impl Watch for Leaving {
    fn wants(&self) -> Wants {
        Wants { packets: true, headers: false, connections: false }
    }

    fn packet(&mut self, event: Event) {
        let is_out = (event.seen, event.direction) == (Seen::Out, Direction::Up);
        if is_out && event.at_ns >= self.0 && event.bytes > 0 {
            self.1.push((event.flow, event.seq));
        }
    }
}

/// As in the world `kernel` in `exact-1049`: an acknowledgement comes a round trip after the link was free, as it is again now. What the link sends has left its
/// queue before what the acknowledgement lets go gets there (Linux: `net_tx_action`, `net_rx_action`).
#[test]
fn the_link_up_has_sent_before_what_an_acknowledgement_of_its_instant_lets_go() {
    let text = "duration = '2950ms'\nwarmup = '1s'\nprobe = [{ kind = 'ssh', interval = '100ms' }]\n\
                flow = [{ cc = 'cubic', count = 2, ecn = true, direction = 'up', extra_rtt = '3672us' }]\n\
                [link]\nrate = '57mbit'\nrtt = '89808us'\nmtu = 1280\nqdisc = 'fq_codel'\nup = { rate = '5700kbit' }\n";
    let sweep = Sweep::parse(text).unwrap();
    let mut leaving = Leaving(2_934_000_000, Vec::new());
    simulate_watched(&sweep.variants()[0].scenario, 1, &mut leaving).unwrap();
    let expected =
        [(0, 853_460), (1, 773_640), (0, 854_688), (0, 857_144), (1, 776_096), (0, 858_372)];
    assert_eq!(leaving.1, expected);
}

/// More than so many bytes take too long to look at.
const MOST_BYTES: f64 = 6e7;

fn bytes(scenario: &Scenario) -> f64 {
    let steps = scenario.link.step.iter().map(|step| step.rate);
    let rate = steps.chain([scenario.link.rate]).map(Rate::as_bits_per_second).max();
    rate.unwrap_or(0) as f64 / 8.0 * scenario.duration.as_secs_f64()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_packet_that_goes_in_comes_out_or_is_dropped(
        class in prop::sample::select(&Class::ALL[..]),
        seed in 0_u64..1_000,
    ) {
        let mut setup = draw(class, seed).into_setup();
        // All is counted then.
        setup.warmup = Duration::ZERO;
        let scenario = Scenario::try_from(setup).unwrap();
        prop_assume!(bytes(&scenario) < MOST_BYTES);
        let mut all = All::default();
        let outcome = simulate_watched(&scenario, seed, &mut all).unwrap();
        let unseen = simulate(&scenario, seed).unwrap();
        prop_assert!(json!(outcome) == json!(unseen), "to look changes nothing");
        prop_assert!(all.faults.is_empty(), "{:#?}", all.faults);

        for (direction, into, out, queue) in [
            ("down", Point::In, Point::Out, Some(&outcome.queue)),
            ("up", Point::UpIn, Point::UpOut, outcome.up_queue.as_ref()),
        ] {
            let [arrived, departed, dropped] =
                [Seen::In, Seen::Out, Seen::Drop].map(|seen| all.count(seen, direction));
            prop_assert_eq!((all.at(into), all.at(out)), (arrived, departed), "{}", direction);
            prop_assert_eq!(dropped, queue.map_or(0, |queue| queue.drops), "{}", direction);
            // Aggregates are taken apart in some queues.
            if !scenario.sender.gso {
                prop_assert!(departed + dropped <= arrived, "{direction}: {arrived} in, {departed} out, {dropped} dropped");
            }
        }
        prop_assert!(all.at(Point::Near) > 0 && all.at(Point::Far) > 0);
        // Behind datagrams that fill the link twice, no connection may open.
        prop_assert!(all.data_sent > 0 || matches!(class, Class::Udp));
    }
}
