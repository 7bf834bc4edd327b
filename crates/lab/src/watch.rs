//! Packets, as far as their headers, at the queues and at the router of the hosts near them. As events, for comparisons with another
//! world, those of flows that go down, of probes and of streams of UDP are told, and data that go up at the queue of that direction. A link of dualq's
//! own tells of them itself, and of what it drops.

use std::collections::HashMap;
use std::time::Duration;

use dualq_link::Seen as LinkSeen;
use dualq_scenario::summary::Look;
use dualq_scenario::{
    Change, CongestionControl, ConnectionEvent, Direction, Event, Headers, Kind, Metrics, Point,
    Scenario, Seen, Wants, Watch,
};
use dualq_socket::{RingPacket, TcpInfo};

use crate::LabError;
use crate::capture::Capture;
use crate::clock::Began;
use crate::headers::{Site, cut};
use crate::live::Met;
use crate::middle::Middle;
use crate::network::{FAR, Host, NEAR, NEAR_RECEIVER, Network, RECEIVER};

/// The headers of IP and TCP, with all options.
pub(crate) const SNAP_BYTES: usize = 120;
/// So many packets are kept at each place until they are read.
const KEPT: usize = 1 << 18;
const TCP: u8 = 6;
const UDP: u8 = 17;
const UDP_HEADER: usize = 8;
/// Kinds of TCP's options, and the length of a SACK block.
const END: u8 = 0;
const PADDING: u8 = 1;
const WINDOW_SCALE: u8 = 3;
const SACK: u8 = 5;
const SACK_BLOCK: usize = 8;
/// The header of an ICMP echo, in bytes.
const ECHO_HEADER: usize = 8;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
const ECE: u8 = 0x40;

/// A connection, as far as it is known.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    flow: u32,
    /// The sequence numbers before the first byte.
    isn: u32,
    /// By how many bits the receiver's windows are shifted.
    scale: u8,
    /// The highest place seen so far, to tell how often the numbers have wrapped.
    reached: u64,
}

/// The observer of all packets.
pub(crate) struct Watcher<'a> {
    /// At the queue, at the senders' router, if that is another, and at the queue of the other direction.
    captures: Vec<(Site, Capture)>,
    /// What was seen and is not told.
    waiting: Vec<Seeing>,
    connections: Connections,
    wants: Wants,
    watch: &'a mut dyn Watch,
}

/// What was seen of a packet.
enum Seeing {
    Event(Event),
    Headers(Headers<'static>),
}

impl Seeing {
    const fn at_ns(&self) -> u64 {
        match self {
            Self::Event(event) => event.at_ns,
            Self::Headers(headers) => headers.at_ns,
        }
    }
}

/// What is known of the connections that were seen.
#[derive(Debug)]
struct Connections {
    streams: HashMap<(u32, u16), Stream>,
    /// The numbers of the first flow of each group, and of the next one.
    first: Vec<u32>,
    next: Vec<u32>,
}

impl std::fmt::Debug for Watcher<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Watcher")
            .field("connections", &self.connections)
            .finish_non_exhaustive()
    }
}

impl<'a> Watcher<'a> {
    pub(crate) fn open(
        network: &Network,
        scenario: &Scenario,
        watch: &'a mut dyn Watch,
    ) -> Result<Self, LabError> {
        let wants = watch.wants();
        let is_router = network.queue_is_at_router;
        let mut sites = Vec::new();
        match &network.middle {
            _ if !wants.packets && !wants.headers => {}
            Middle::Kernel { down, up, .. } => {
                sites.push((Site::Queue { is_router }, &down.namespace));
                sites.extend((!is_router).then_some((Site::Router, &network.router)));
                if let Some(up) = up {
                    sites.push((Site::UpQueue, &up.namespace));
                }
            }
            Middle::Link(link) => link.note_packets(),
        }
        let open = |(site, namespace)| Ok((site, Capture::open(namespace, &[], KEPT, SNAP_BYTES)?));
        let captures = sites.into_iter().map(open).collect::<Result<_, LabError>>()?;
        let mut next = Vec::new();
        let mut number = 0;
        for group in &scenario.flow {
            next.push(number);
            number += group.count;
        }
        for one in scenario.probe.iter().map(|_| 1).chain(scenario.udp.iter().map(|udp| udp.count))
        {
            next.push(number);
            number += one;
        }
        let connections = Connections { streams: HashMap::new(), first: next.clone(), next };
        Ok(Self { captures, waiting: Vec::new(), connections, wants, watch })
    }

    /// Reads what was seen since the last call.
    pub(crate) fn read(&mut self, began: Began, middle: &Middle) -> Result<(), LabError> {
        let Self { captures, waiting: seen, connections, wants, .. } = self;
        for (site, capture) in captures.iter_mut() {
            capture.read(|RingPacket { at, leaves, bytes }| {
                let at = at.saturating_sub(began.real);
                if wants.packets {
                    let event = connections.event(Some(*site), at, leaves, bytes);
                    seen.extend(event.filter(|event| tells(*site, event)).map(Seeing::Event));
                }
                if let (true, Some((bytes, length))) = (wants.headers, cut(bytes)) {
                    for point in site.points(leaves, bytes).into_iter().flatten() {
                        let (at_ns, bytes) = (at.as_nanos() as u64, bytes.to_vec().into());
                        seen.push(Seeing::Headers(Headers { at_ns, point, length, bytes }));
                    }
                }
            });
        }
        if let Middle::Link(link) = middle {
            for (direction, met) in link.packets() {
                let at = met.at.saturating_sub(began.monotonic);
                if wants.packets {
                    seen.extend(connections.met(at, direction, &met).map(Seeing::Event));
                }
                if let (true, Some(point), Some((bytes, length))) =
                    (wants.headers, point(direction, met.seen), cut(&met.bytes))
                {
                    let (at_ns, bytes) = (at.as_nanos() as u64, bytes.to_vec().into());
                    seen.push(Seeing::Headers(Headers { at_ns, point, length, bytes }));
                }
            }
        }
        Ok(())
    }

    /// Tells what was read, in the order of time, as far as it is older than `until`.
    pub(crate) fn tell(&mut self, until: Duration) {
        self.waiting.sort_by_key(Seeing::at_ns);
        let ready =
            self.waiting.partition_point(|seeing| u128::from(seeing.at_ns()) < until.as_nanos());
        for seeing in self.waiting.drain(..ready) {
            match seeing {
                Seeing::Event(event) => self.watch.packet(event),
                Seeing::Headers(headers) => self.watch.headers(&headers),
            }
        }
    }

    /// Packets that passed unseen, as there was no room for them.
    pub(crate) fn unseen(&mut self) -> Result<u64, LabError> {
        self.captures.iter_mut().map(|(_, capture)| capture.unseen()).sum()
    }

    /// Whether it wants to know how connections are.
    pub(crate) const fn wants_connections(&self) -> bool {
        self.wants.connections
    }

    /// A connection at `at` after the start: the `number`th of its group that started, with this congestion control.
    pub(crate) fn look(
        &mut self,
        at: Duration,
        (group, number): (usize, u32),
        cc: CongestionControl,
        info: &TcpInfo,
    ) {
        let metrics = Metrics {
            look: look(info),
            mss: info.snd_mss,
            rttvar_us: Some(info.rttvar_us.into()).filter(|_| info.srtt_us > 0),
            min_rtt_us: info.min_rtt_us.map(u64::from),
            phase: info.phase(cc.name()).into(),
        };
        let flow = self.connections.first[group] + number;
        let (at_ns, change) = (at.as_nanos() as u64, Change::Metrics(metrics));
        self.watch.connection(&ConnectionEvent { at_ns, flow, change });
    }
}

/// A connection at a moment, as series have it.
pub(crate) fn look(info: &TcpInfo) -> Look {
    Look {
        acknowledged: info.bytes_acked,
        retransmits: info.retransmits.into(),
        cwnd: info.cwnd,
        ssthresh: info.ssthresh,
        in_flight: info.in_flight,
        pacing_rate: info.pacing_rate,
        srtt_us: Some(info.srtt_us.into()).filter(|srtt_us| *srtt_us > 0),
    }
}

/// Whether it is told where it was seen. Acknowledgements come back only at the senders' router, data pass there a second time, and each direction has a
/// queue of its own.
fn tells(site: Site, event: &Event) -> bool {
    match (event.seen, site) {
        (Seen::Ack, site) => site != Site::UpQueue,
        (_, Site::Queue { .. }) => event.direction.is_down(),
        (_, Site::UpQueue) => !event.direction.is_down(),
        (_, Site::Router) => false,
    }
}

/// The place where a link of dualq's own is then.
const fn point(direction: Direction, seen: LinkSeen) -> Option<Point> {
    Some(match (direction, seen) {
        (Direction::Down, LinkSeen::Came) | (Direction::Up, LinkSeen::Left) => Point::Near,
        (Direction::Down, LinkSeen::Left) | (Direction::Up, LinkSeen::Came) => Point::Far,
        (Direction::Down, LinkSeen::Queued) => Point::In,
        (Direction::Down, LinkSeen::Sent { .. }) => Point::Out,
        (Direction::Up, LinkSeen::Queued) => Point::UpIn,
        (Direction::Up, LinkSeen::Sent { .. }) => Point::UpOut,
        (_, LinkSeen::Passed { .. } | LinkSeen::Lost(_)) => return None,
    })
}

impl Connections {
    /// What a link of dualq's own met, as an event of those that routers see.
    fn met(&mut self, at: Duration, direction: Direction, met: &Met) -> Option<Event> {
        let leaves = match (direction, met.seen) {
            (_, LinkSeen::Queued | LinkSeen::Lost(_)) => false,
            (_, LinkSeen::Sent { .. }) | (Direction::Up, LinkSeen::Left) => true,
            _ => return None,
        };
        let event = self.event(None, at, leaves, &met.bytes)?;
        // Acknowledgements are told as they come back, and data of either direction at its own queue.
        if (event.seen == Seen::Ack) != (met.seen == LinkSeen::Left) || event.direction != direction
        {
            return None;
        }
        Some(match met.seen {
            LinkSeen::Sent { sojourn, .. } => {
                Event { waited_ns: Some(sojourn.as_nanos() as u64), ..event }
            }
            LinkSeen::Lost(why) => Event { seen: Seen::Drop, reason: why.drop_reason(), ..event },
            _ => event,
        })
    }

    /// What was seen at a router, or by a link of dualq's own. Connections are numbered as they reach the queue of their direction: elsewhere one is seen later,
    /// or first, as a SYN before it was dropped there.
    fn event(
        &mut self,
        site: Option<Site>,
        at: Duration,
        leaves: bool,
        bytes: &[u8],
    ) -> Option<Event> {
        let u16_at = |at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let u32_at = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let receiver = u32::from(RECEIVER);
        let (source, target) = (u32_at(12)?, u32_at(16)?);
        let (peer, net, direction, forward) = match (source, target) {
            (source, target) if target == receiver => (source, NEAR, Direction::Down, true),
            (source, target) if source == receiver && leaves => {
                (target, NEAR, Direction::Up, false)
            }
            (source, target) if target == u32::from(NEAR_RECEIVER) => {
                (source, FAR, Direction::Up, true)
            }
            _ => return None,
        };
        // Routers have something to say as well.
        if peer >> 16 != u32::from(net) >> 16 {
            return None;
        }
        let way = if forward { direction } else { Direction::Down };
        let group =
            (peer >> 8 & 0xff).checked_sub(u32::from(Host::address(0, way)) >> 8 & 0xff)? as usize;
        let seen = match (forward, leaves) {
            (true, false) => Seen::In,
            (true, true) => Seen::Out,
            (false, _) => Seen::Ack,
        };
        let at_ns = at.as_nanos() as u64;
        let kind = match (forward, bytes[9]) {
            (true, TCP) => Kind::Data,
            (false, TCP) => Kind::Ack,
            (_, UDP) => Kind::Udp,
            _ => Kind::Echo,
        };
        let mut event = Event {
            at_ns,
            seen,
            flow: 0,
            direction,
            kind,
            seq: 0,
            bytes: 0,
            ecn: bytes[1] & 3,
            sacks: 0,
            waited_ns: None,
            reason: None,
        };
        let ip_bytes = usize::from(bytes[0] & 0xf) * 4;
        if bytes[9] == UDP {
            let payload = bytes.get(ip_bytes + UDP_HEADER..)?;
            let (stream, number) = crate::udp::whose(payload)?;
            event.flow = *self.first.get(group)? + stream;
            event.seq = number;
            let length = u64::from(u16_at(2)?);
            event.bytes = length.saturating_sub((ip_bytes + UDP_HEADER) as u64);
            return Some(event);
        }
        if bytes[9] != TCP {
            event.flow = *self.next.get(group)?;
            let length = u64::from(u16_at(2)?);
            event.bytes = length.saturating_sub((ip_bytes + ECHO_HEADER) as u64);
            return Some(event);
        }
        let tcp = ip_bytes;
        let port = u16_at(if forward { tcp } else { tcp + 2 })?;
        let flags = bytes[tcp + 13];
        let tcp_bytes = usize::from(bytes[tcp + 12] >> 4) * 4;
        let options = bytes.get(tcp + 20..tcp + tcp_bytes)?;
        let begins_here = match site {
            Some(Site::Queue { .. }) => direction.is_down(),
            Some(Site::UpQueue) => !direction.is_down(),
            Some(Site::Router) => false,
            None => true,
        };
        if forward && begins_here && flags & SYN != 0 && !self.streams.contains_key(&(peer, port)) {
            let number = self.next.get_mut(group)?;
            let stream = Stream { flow: *number, isn: u32_at(tcp + 4)?, ..Stream::default() };
            *number += 1;
            self.streams.insert((peer, port), stream);
        }
        let stream = self.streams.get_mut(&(peer, port))?;
        event.flow = stream.flow;
        if !forward && flags & ACK == 0 {
            // RST of a host where nobody is there any more, which acknowledges nothing (RFC 9293 §3.5.2).
            event.ecn = 0;
            return Some(event);
        }
        let number = u32_at(if forward { tcp + 4 } else { tcp + 8 })?;
        // The byte after the SYN is the first of the stream.
        let place =
            number.wrapping_sub(stream.isn).wrapping_sub(u32::from(flags & SYN == 0 || !forward));
        let behind = (stream.reached as u32).wrapping_sub(place) as i32;
        event.seq = stream.reached.saturating_add_signed(-i64::from(behind));
        stream.reached = stream.reached.max(event.seq);
        if forward {
            let length = u64::from(u16_at(2)?);
            event.bytes = length.saturating_sub((ip_bytes + tcp_bytes) as u64);
            return Some(event);
        }
        event.ecn = u8::from(flags & ECE != 0);
        let mut at = 0;
        while let Some(kind) = options.get(at).copied() {
            let length = options.get(at + 1).copied().map_or(0, usize::from);
            match kind {
                END => break,
                PADDING => {
                    at += 1;
                    continue;
                }
                WINDOW_SCALE => stream.scale = options.get(at + 2).copied().unwrap_or(0),
                SACK => event.sacks = (length / SACK_BLOCK) as u8,
                _ => {}
            }
            at += length.max(2);
        }
        let scale = if flags & SYN != 0 { 0 } else { stream.scale };
        event.bytes = u64::from(u16_at(tcp + 14)?) << scale;
        Some(event)
    }
}
