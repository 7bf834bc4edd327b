//! What a link does with each packet, written down while it runs: `--log` and `--pcap`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use dualq_link::{Packet, Seen, Watch};
use dualq_scenario::{Direction, Event, Headers, Kind, Point, Scenario, Seen as EventSeen};
use dualq_units::{Instant, plain};
use etherparse::{LaxNetSlice, LaxSlicedPacket, TransportSlice};

use crate::cli::Failure;
use crate::cli::shell::OpenArgs;
use crate::output::{Output, keep_apart};
use crate::watched::{self, Form};

/// So much of a packet has all its headers.
const SNAP: usize = 192;
/// So many are on their way to the files at most; then the link waits, and its lateness says so.
const WAITING: usize = 1 << 14;

/// A packet that was seen.
struct Record {
    at: Instant,
    direction: Direction,
    seen: Seen,
    bytes: Vec<u8>,
    length: u32,
}

/// Sees the packets of a direction.
struct Watcher {
    direction: Direction,
    records: SyncSender<Record>,
}

impl Watch for Watcher {
    fn packet(&mut self, at: Instant, seen: Seen, packet: &Packet) {
        let mut bytes = Vec::with_capacity(SNAP);
        let length = packet.write_to(&mut bytes, SNAP) as u32;
        // The other side is gone if a file cannot be written, which is told at the end.
        let _ = self.records.send(Record { at, direction: self.direction, seen, bytes, length });
    }
}

/// Writes all of it down, in a thread of its own.
pub(crate) struct Log {
    records: Option<SyncSender<Record>>,
    writer: JoinHandle<Result<(), (PathBuf, io::Error)>>,
}

type Files = Vec<(PathBuf, Box<dyn Form>)>;

/// Refuses what cannot be written where the arguments say.
pub(crate) fn check(args: &OpenArgs) -> Result<(), Failure> {
    let written = [
        ("--log", args.log.as_ref()),
        ("--pcap", args.pcap.as_ref()),
        ("--json", args.json.as_ref()),
    ];
    for (option, path) in written {
        path.map_or(Ok(()), |path| refuse_stdout(option, path))?;
    }
    let traces = [&args.trace, &args.down_trace, &args.up_trace].into_iter().flatten();
    let read = traces.map(|path| ("the trace", path.as_path()));
    let scenario = args.scenario.iter().map(|path| ("the scenario", path.as_path()));
    keep_apart(&read.chain(scenario).collect::<Vec<_>>(), &written)
}

/// The files that the arguments ask for.
pub(crate) fn files(args: &OpenArgs) -> Result<Files, Failure> {
    let mut files: Files = Vec::new();
    for (path, form) in [
        (&args.log, watched::event_list as fn(Output) -> Box<dyn Form>),
        (&args.pcap, watched::capture),
    ] {
        let Some(path) = path else { continue };
        files.push((path.clone(), form(Output::directly(path)?)));
    }
    Ok(files)
}

/// Standard output is the command's.
fn refuse_stdout(option: &str, path: &Path) -> Result<(), Failure> {
    match path == Path::new("-") {
        true => Err(Failure::Usage(format!(
            "{option} -: standard output is the command's; give a file"
        ))),
        false => Ok(()),
    }
}

impl Log {
    /// Begins with it, if there are files.
    pub(crate) fn start(
        mut files: Files,
        scenario: &Scenario,
        seed: u64,
        began: Instant,
    ) -> Result<Option<Self>, Failure> {
        if files.is_empty() {
            return Ok(None);
        }
        for (path, form) in &mut files {
            form.begin("live", scenario, seed).map_err(|error| cannot_write(path, &error))?;
        }
        let (records, received) = sync_channel(WAITING);
        let writer = thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write(files, &received, began))
            .map_err(|error| Failure::Run(format!("cannot start a thread: {}", plain(&error))))?;
        Ok(Some(Self { records: Some(records), writer }))
    }

    /// Who sees a direction's packets for it.
    pub(crate) fn watcher(&self, direction: Direction) -> Box<dyn Watch> {
        let records = self.records.clone().expect("it has not ended");
        Box::new(Watcher { direction, records })
    }

    /// Completes the files, once the link and its watchers are gone.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.records = None;
        match self.writer.join() {
            Ok(written) => written.map_err(|(path, error)| cannot_write(&path, &error)),
            Err(_) => {
                Err(Failure::Run("the thread that writes the log came to no good end".to_owned()))
            }
        }
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::Run(format!("cannot write {}: {}", path.display(), plain(error)))
}

fn write(
    mut files: Files,
    records: &Receiver<Record>,
    began: Instant,
) -> Result<(), (PathBuf, io::Error)> {
    let mut flows = Flows::default();
    let mut failed = None;
    // What comes after a failure is taken too, so that nobody waits.
    for record in records {
        if failed.is_some() {
            continue;
        }
        let read = flows.read(&record);
        let at_ns = record.at.as_nanos().saturating_sub(began.as_nanos());
        let event = event(&record, &read, at_ns);
        for (path, form) in &mut files {
            let headers = |point| Headers {
                at_ns,
                point,
                length: record.length,
                bytes: Cow::Borrowed(&record.bytes[..read.header_bytes]),
            };
            let written = event.iter().try_for_each(|event| form.packet(event)).and_then(|()| {
                point(record.direction, record.seen)
                    .map_or(Ok(()), |point| form.headers(&headers(point)))
            });
            if let Err(error) = written {
                failed = Some((path.clone(), error));
                break;
            }
        }
    }
    if let Some(failed) = failed {
        return Err(failed);
    }
    for (path, form) in files {
        let ended = form.end().and_then(Output::finish);
        ended.map_err(|error| (path, error))?;
    }
    Ok(())
}

/// Where that is in a capture.
const fn point(direction: Direction, seen: Seen) -> Option<Point> {
    Some(match (direction, seen) {
        (Direction::Down, Seen::Came) | (Direction::Up, Seen::Left) => Point::Far,
        (Direction::Down, Seen::Left) | (Direction::Up, Seen::Came) => Point::Near,
        (Direction::Down, Seen::Queued) => Point::In,
        (Direction::Down, Seen::Sent { .. }) => Point::Out,
        (Direction::Up, Seen::Queued) => Point::UpIn,
        (Direction::Up, Seen::Sent { .. }) => Point::UpOut,
        (_, Seen::Passed { .. } | Seen::Lost(_)) => return None,
    })
}

/// The event that it is in a list of events.
fn event(record: &Record, read: &Read, at_ns: u64) -> Option<Event> {
    let (seen, waited_ns, reason) = match record.seen {
        Seen::Came | Seen::Passed { .. } => return None,
        Seen::Queued => (EventSeen::In, None, None),
        Seen::Sent { sojourn, .. } => (EventSeen::Out, Some(sojourn.as_nanos() as u64), None),
        Seen::Left => (EventSeen::Arrive, None, None),
        Seen::Lost(why) => (EventSeen::Drop, None, why.drop_reason()),
    };
    let Read { flow, kind, seq, payload, ecn, .. } = *read;
    let bytes = u64::from(record.length).saturating_sub(payload as u64);
    let (direction, sacks) = (record.direction, 0);
    Some(Event { at_ns, seen, flow, direction, kind, seq, bytes, ecn, sacks, waited_ns, reason })
}

/// What a packet's headers say.
struct Read {
    flow: u32,
    kind: Kind,
    seq: u64,
    /// Where the payload begins.
    payload: usize,
    ecn: u8,
    /// How much of what was kept is headers.
    header_bytes: usize,
}

/// Both ends of a flow, the smaller first, and its protocol.
type Key = (u8, (IpAddr, u16), (IpAddr, u16));

/// The flows that were seen, numbered in the order of their first packets.
#[derive(Default)]
struct Flows {
    known: HashMap<Key, Flow>,
}

struct Flow {
    number: u32,
    /// The streams of both ends.
    streams: [Stream; 2],
}

/// Where a stream of TCP began, and how far it was seen.
#[derive(Clone, Copy, Default)]
struct Stream {
    last: Option<(u32, u64)>,
}

impl Stream {
    /// The place in the stream of a sequence number; the first one that is seen is 0.
    fn place(&mut self, number: u32) -> u64 {
        let (last, place) = self.last.unwrap_or((number, 0));
        let ahead = number.wrapping_sub(last).cast_signed();
        let here = place.saturating_add_signed(ahead.into());
        if ahead >= 0 {
            self.last = Some((number, here));
        }
        here
    }
}

impl Flows {
    fn read(&mut self, record: &Record) -> Read {
        let bytes = record.bytes.as_slice();
        let mut read = Read {
            flow: 0,
            kind: Kind::Data,
            seq: 0,
            payload: bytes.len(),
            ecn: 0,
            header_bytes: bytes.len(),
        };
        let Ok(packet) = LaxSlicedPacket::from_ip(bytes) else { return read };
        let (source, target, protocol, rest) = match &packet.net {
            Some(LaxNetSlice::Ipv4(ip)) => {
                let header = ip.header();
                read.ecn = header.ecn().value();
                let (source, target) = (header.source_addr(), header.destination_addr());
                (IpAddr::from(source), IpAddr::from(target), ip.payload_ip_number().0, ip.payload())
            }
            Some(LaxNetSlice::Ipv6(ip)) => {
                let header = ip.header();
                read.ecn = header.traffic_class() & 3;
                let (source, target) = (header.source_addr(), header.destination_addr());
                (source.into(), target.into(), ip.payload().ip_number.0, ip.payload())
            }
            _ => return read,
        };
        let rest = rest.payload.len();
        let (ports, payload) = match &packet.transport {
            Some(TransportSlice::Tcp(tcp)) => {
                ((tcp.source_port(), tcp.destination_port()), tcp.payload().len())
            }
            Some(TransportSlice::Udp(udp)) => {
                ((udp.source_port(), udp.destination_port()), udp.payload().len())
            }
            Some(TransportSlice::Icmpv4(icmp)) => ((0, 0), icmp.payload().len()),
            Some(TransportSlice::Icmpv6(icmp)) => ((0, 0), icmp.payload().len()),
            _ => ((0, 0), rest),
        };
        read.payload = bytes.len() - payload;
        read.header_bytes = read.payload;
        let (from, to) = ((source, ports.0), (target, ports.1));
        let key = (protocol, from.min(to), from.max(to));
        let next = self.known.len() as u32;
        let flow =
            self.known.entry(key).or_insert(Flow { number: next, streams: Default::default() });
        read.flow = flow.number;
        let side = usize::from(from > to);
        match &packet.transport {
            Some(TransportSlice::Tcp(tcp)) => {
                let has_data = record.length as usize > read.payload || tcp.syn() || tcp.fin();
                let place = flow.streams[side].place(tcp.sequence_number());
                (read.kind, read.seq) = if has_data || !tcp.ack() {
                    (Kind::Data, place)
                } else {
                    (Kind::Ack, flow.streams[1 - side].place(tcp.acknowledgment_number()))
                };
            }
            Some(TransportSlice::Udp(_)) => read.kind = Kind::Udp,
            Some(TransportSlice::Icmpv4(icmp)) => {
                read.kind = echo_or_error(icmp.type_u8(), &[0, 8]);
            }
            Some(TransportSlice::Icmpv6(icmp)) => {
                read.kind = echo_or_error(icmp.type_u8(), &[128, 129]);
            }
            _ => {}
        }
        read
    }
}

/// Echo requests and replies (RFC 792, RFC 4443) or the rest, which are errors.
fn echo_or_error(kind: u8, echo: &[u8]) -> Kind {
    if echo.contains(&kind) { Kind::Echo } else { Kind::Error }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dualq_net::Lost;
    use etherparse::PacketBuilder;

    use super::*;

    const CE: u8 = 3;

    fn record(bytes: Vec<u8>, seen: Seen) -> Record {
        let length = bytes.len() as u32;
        Record { at: Instant::ZERO, direction: Direction::Up, seen, bytes, length }
    }

    fn tcp(from_near: bool, seq: u32, payload: &[u8], ack: Option<u32>) -> Vec<u8> {
        let (near, far) = ([10, 0, 0, 2], [10, 0, 0, 1]);
        let (source, target) = if from_near { (near, far) } else { (far, near) };
        let (from, to) = if from_near { (5000, 80) } else { (80, 5000) };
        let builder = PacketBuilder::ipv4(source, target, 64).tcp(from, to, seq, 100);
        let builder = match ack {
            Some(ack) => builder.ack(ack),
            None => builder.syn(),
        };
        let mut bytes = Vec::new();
        builder.write(&mut bytes, payload).unwrap();
        bytes
    }

    #[test]
    fn flows_are_numbered_and_streams_begin_at_zero() {
        let mut flows = Flows::default();
        let first = u32::MAX - 5;
        let mut read = |bytes| flows.read(&record(bytes, Seen::Queued));
        let syn = read(tcp(true, first, &[], None));
        assert_eq!((syn.flow, syn.kind, syn.seq, syn.header_bytes), (0, Kind::Data, 0, 40));
        assert_eq!(read(tcp(false, 77, &[], None)).flow, 0);
        // The numbers wrap.
        let data = read(tcp(true, first.wrapping_add(10), b"abc", Some(78)));
        assert_eq!((data.kind, data.seq, data.payload), (Kind::Data, 10, 40));
        let ack = read(tcp(false, 78, &[], Some(first.wrapping_add(13))));
        assert_eq!((ack.kind, ack.seq), (Kind::Ack, 13));
        let mut bytes = Vec::new();
        let builder = PacketBuilder::ipv6([1; 16], [2; 16], 64).udp(1, 2);
        builder.write(&mut bytes, b"hello").unwrap();
        bytes[1] |= CE << 4;
        let udp = read(bytes);
        assert_eq!((udp.flow, udp.kind, udp.payload, udp.ecn), (1, Kind::Udp, 48, CE));
        // Anything at all is one packet.
        for bytes in [vec![], vec![0x45], vec![0xff; 60]] {
            let length = bytes.len();
            assert_eq!(read(bytes).payload, length);
        }
    }

    #[test]
    fn what_is_seen_is_an_event_and_a_place() {
        let mut flows = Flows::default();
        let sent = Seen::Sent { sojourn: Duration::from_micros(5), marked: false };
        let record = record(tcp(true, 1, b"abc", Some(1)), sent);
        let event = event(&record, &flows.read(&record), 7).unwrap();
        assert_eq!((event.seen, event.bytes, event.waited_ns), (EventSeen::Out, 3, Some(5000)));
        assert_eq!(point(Direction::Up, Seen::Came), Some(Point::Near));
        assert_eq!(point(Direction::Down, sent), Some(Point::Out));
        assert_eq!(point(Direction::Up, Seen::Lost(Lost::Random)), None);
    }
}
