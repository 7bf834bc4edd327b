//! Packet captures: pcap and pcapng, of Ethernet, Linux cooked and raw IP.
//!
//! Times count from the first packet. Every packet is taken as an Ethernet frame: what lies under the IP header in the
//! capture is replaced by 14 bytes, VLAN tags stay.

use std::mem;
use std::time::Duration;

use dualq_qdisc::Ecn;
use dualq_units::Instant;
use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, TransportSlice};
use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError};

use super::{PCAPNG, Stream, TraceError};
use crate::Arrival;
use crate::packet::{GSO_HEADERS, MEMORY_OVERHEAD};

const ETHERNET_HEADER: u32 = 14;
/// A pcapng block may hold a whole aggregate and its options.
const BUFFER: usize = 1 << 20;
const LARGEST_BUFFER: usize = 1 << 26;
/// Captures of several interfaces or queues are not quite in order. Packets that come later than others by up to this are
/// moved to the time of the packet before.
const TOLERATED_DISORDER: Duration = Duration::from_secs(1);
/// A day without a packet is told: rather than waiting so long, the machine was given another clock.
const LONG_GAP: Duration = Duration::from_secs(24 * 3600);
/// What libpcap keeps of a packet at most, and room for headers and options. A longer rest of a stream is not one packet
/// that was cut, but one whose length is wrong.
const LARGEST_RECORD: usize = 262_144 + 4096;
/// Blocks of a pcapng without which packets are lost or misread: interfaces, packets of three kinds, sections.
const NEEDED_BLOCKS: [u32; 5] = [1, 2, 3, 6, 0x0a0d_0d0a];

/// Reads a packet capture.
pub(super) struct CaptureReader<'a> {
    reader: Box<dyn PcapReaderIterator + Send + 'a>,
    is_pcapng: bool,
    /// Of the section of a pcapng.
    big_endian: bool,
    mtu: u32,
    interfaces: Vec<Interface>,
    /// Whose packets were read, in all sections.
    seen: Vec<String>,
    /// The only interface whose packets count, if not all do.
    only: Option<String>,
    first_ns: Option<i128>,
    previous: Instant,
    /// All that were read, so that numbers of packets are those that other programs show.
    packets: u64,
    /// Those that count.
    taken: u64,
    out_of_order: u64,
    largest_disorder: Duration,
    jumps: u64,
    /// The number of the packet behind it, and how long it is.
    longest_jump: (u64, Duration),
    /// The bytes of the last packet that are there, if not all are.
    cut: Option<usize>,
    malformed: u64,
    /// The type of the first malformed block, and the number of the packet that would come next.
    first_malformed: (u32, u64),
}

/// What there is instead of the next block.
enum Trouble {
    /// There is more to read before it is whole.
    More,
    /// The stream ends before it is whole.
    Cut,
    /// It is no block.
    Corrupt,
}

/// How packets of one interface are written down.
#[derive(Clone)]
struct Interface {
    /// What it is called, if it has a name.
    name: Option<String>,
    /// Whether a packet of it was read.
    is_seen: bool,
    link: Linktype,
    ticks_per_second: u64,
    offset_seconds: i64,
}

/// A packet as it stands in the capture.
struct Record<'a> {
    interface: usize,
    ticks: u64,
    /// On the wire, of which `data` may have less.
    length: u32,
    data: &'a [u8],
}

/// What a queue sees of it.
struct Captured {
    interface: usize,
    ticks: u64,
    length: u32,
    ecn: Ecn,
    flow: u32,
}

impl<'a> CaptureReader<'a> {
    /// Begins to read a capture. A packet longer than `mtu` and its Ethernet header is taken for an aggregate (GSO).
    ///
    /// # Errors
    /// If the stream cannot be read, or its header is no capture's.
    pub(super) fn new(stream: Stream<'a>, mtu: u32) -> Result<Self, TraceError> {
        let reader = pcap_parser::create_reader(BUFFER, stream).map_err(|error| match error {
            PcapError::Incomplete(_) | PcapError::UnexpectedEof | PcapError::Eof => truncated(0),
            other => TraceError::Format(format!("corrupt capture: {other}")),
        })?;
        Ok(Self {
            is_pcapng: reader.data().starts_with(PCAPNG),
            big_endian: false,
            reader,
            mtu,
            interfaces: Vec::new(),
            seen: Vec::new(),
            only: None,
            first_ns: None,
            previous: Instant::ZERO,
            packets: 0,
            taken: 0,
            out_of_order: 0,
            largest_disorder: Duration::ZERO,
            jumps: 0,
            longest_jump: (0, Duration::ZERO),
            cut: None,
            malformed: 0,
            first_malformed: (0, 0),
        })
    }

    /// The next arrival; `None` at the end.
    ///
    /// # Errors
    /// If the stream cannot be read, or is truncated or corrupt.
    pub(super) fn next_arrival(&mut self) -> Result<Option<Arrival>, TraceError> {
        loop {
            let trouble = match self.reader.next() {
                Ok((consumed, block)) => {
                    if let PcapBlockOwned::NG(Block::SectionHeader(section)) = &block {
                        self.big_endian = section.big_endian();
                    }
                    let number = self.packets + 1;
                    let packet = match take(&block, &mut self.interfaces, number)? {
                        Some(record) => {
                            self.packets = number;
                            let interface = &mut self.interfaces[record.interface];
                            if !mem::replace(&mut interface.is_seen, true) {
                                let name = interface.name.as_deref();
                                let name = name.unwrap_or("one without a name").to_owned();
                                if interface.name.is_none() || !self.seen.contains(&name) {
                                    self.seen.push(name);
                                }
                            }
                            let counts = self.only.is_none() || self.only == interface.name;
                            counts.then(|| captured(&record, interface.link, number)).transpose()?
                        }
                        None => None,
                    };
                    self.reader.consume(consumed);
                    if let Some(packet) = packet {
                        self.taken += 1;
                        return self.arrival(&packet).map(Some);
                    }
                    continue;
                }
                Err(PcapError::Eof) => return self.end(),
                Err(PcapError::Incomplete(_) | PcapError::BufferTooSmall) => Trouble::More,
                Err(PcapError::UnexpectedEof) => Trouble::Cut,
                Err(_) => Trouble::Corrupt,
            };
            if let Some((kind, length)) = self.whole_block() {
                self.pass_over(kind, length)?;
                continue;
            }
            match trouble {
                Trouble::More => self.read_on()?,
                Trouble::Cut => return self.end_early(),
                Trouble::Corrupt => return Err(corrupt(self.packets, "not a block of a capture")),
            }
        }
    }

    /// Only packets of the interface with this name count from now on.
    pub(super) fn only(&mut self, name: &str) {
        self.only = Some(name.to_owned());
    }

    /// The stream ends behind a block.
    fn end(&self) -> Result<Option<Arrival>, TraceError> {
        match &self.only {
            Some(name) if self.taken == 0 => {
                let has = self.seen.join(", ");
                Err(TraceError::Format(format!(
                    "no packet is of an interface {name:?}; it has those of: {has}"
                )))
            }
            _ => Ok(None),
        }
    }

    /// The type and length of the pcapng block that comes next, if it is there from its first length to its second.
    fn whole_block(&self) -> Option<(u32, usize)> {
        let data = self.reader.data();
        let number = |at: usize| {
            let bytes = data.get(at..)?.first_chunk()?;
            Some(if self.big_endian {
                u32::from_be_bytes(*bytes)
            } else {
                u32::from_le_bytes(*bytes)
            })
        };
        let (kind, length) = (number(0)?, number(4)?);
        let end = usize::try_from(length).ok()?;
        let is_whole = self.is_pcapng && end >= 12 && number(end - 4)? == length;
        is_whole.then_some((kind, end))
    }

    /// Leaves out a block whose bounds are known and whose inside is wrong, unless packets hang on it.
    fn pass_over(&mut self, kind: u32, length: usize) -> Result<(), TraceError> {
        let number = self.packets + 1;
        if NEEDED_BLOCKS.contains(&kind) {
            let fault =
                format!("corrupt: the block of type {kind:#x} that begins here is malformed");
            return Err(TraceError::Packet { number, fault });
        }
        if self.malformed == 0 {
            self.first_malformed = (kind, number);
        }
        self.malformed += 1;
        self.reader.consume(length);
        Ok(())
    }

    /// The stream ends within a block: of a capture that was interrupted, or of a damaged length.
    fn end_early(&mut self) -> Result<Option<Arrival>, TraceError> {
        let left = self.reader.data().len();
        if self.packets == 0 || left > LARGEST_RECORD {
            return Err(truncated(self.packets));
        }
        self.cut = Some(left);
        self.reader.consume(left);
        self.end()
    }

    /// Gets more bytes, and more room for them if a block does not fit.
    fn read_on(&mut self) -> Result<(), TraceError> {
        let held = self.reader.data().len();
        let refilled = self.reader.refill();
        if let Err(PcapError::ReadError) = refilled {
            // The library keeps the stream's own error to itself; a compressed stream that is damaged ends up here.
            let reason = "the stream cannot be read on; is the file damaged?";
            return Err(corrupt(self.packets, reason));
        }
        if self.reader.data().len() == held && !self.reader.reader_exhausted() {
            let room = (held * 2).max(BUFFER * 2);
            if room > LARGEST_BUFFER || !self.reader.grow(room) {
                let number = self.packets + 1;
                return Err(TraceError::Packet { number, fault: "corrupt: too large".to_owned() });
            }
        }
        Ok(())
    }

    fn arrival(&mut self, packet: &Captured) -> Result<Arrival, TraceError> {
        let Interface { ticks_per_second, offset_seconds, .. } = self.interfaces[packet.interface];
        let nanos = i128::from(packet.ticks) * 1_000_000_000 / i128::from(ticks_per_second)
            + i128::from(offset_seconds) * 1_000_000_000;
        let first = *self.first_ns.get_or_insert(nanos);
        let previous = i128::from(self.previous.as_nanos());
        let since_first = nanos - first;
        let number = self.packets;
        let at = if since_first >= previous {
            let within = u64::try_from(since_first).ok().filter(|nanos| *nanos <= u64::MAX / 2);
            let nanos = within.ok_or_else(|| TraceError::Packet {
                number,
                fault: "its time is over 290 years after the first packet's".to_owned(),
            })?;
            let at = Instant::from_nanos(nanos);
            let gap = at - self.previous;
            if gap > LONG_GAP {
                self.jumps += 1;
                if gap > self.longest_jump.1 {
                    self.longest_jump = (number, gap);
                }
            }
            at
        } else {
            let behind = u64::try_from(previous - since_first).unwrap_or(u64::MAX);
            let behind = Duration::from_nanos(behind);
            if behind > TOLERATED_DISORDER {
                let fault = format!(
                    "time goes backwards by {behind:?}; captures are taken with up to {TOLERATED_DISORDER:?} of disorder"
                );
                return Err(TraceError::Packet { number, fault });
            }
            self.out_of_order += 1;
            self.largest_disorder = self.largest_disorder.max(behind);
            self.previous
        };
        self.previous = at;
        let largest = self.mtu.saturating_add(ETHERNET_HEADER);
        let is_aggregate = packet.length > largest && largest > GSO_HEADERS;
        Ok(Arrival {
            at,
            length: packet.length,
            memory: packet.length.saturating_add(MEMORY_OVERHEAD),
            ecn: packet.ecn,
            class: None,
            gso_size: if is_aggregate { largest - GSO_HEADERS } else { 0 },
            flow: packet.flow,
        })
    }

    pub(super) fn notices(&self) -> Vec<String> {
        let mut notices = Vec::new();
        if self.seen.len() > 1 && self.only.is_none() {
            let (interfaces, names) = (self.seen.len(), self.seen.join(", "));
            notices.push(format!(
                "packets of {interfaces} interfaces were taken for one stream: {names}; --interface takes one of these"
            ));
        }
        let (late, packets) = (self.out_of_order, self.taken);
        if late > 0 {
            let disorder = self.largest_disorder;
            notices.push(format!(
                "{late} of {packets} packets stand out of order by up to {disorder:?}; they were taken at the time of the \
                 packet before"
            ));
        }
        if self.jumps > 0 {
            let (number, gap) = self.longest_jump;
            let days = gap.as_secs() / (24 * 3600);
            let more = match self.jumps {
                1 => String::new(),
                jumps => format!(", the longest of {jumps} such gaps"),
            };
            notices.push(format!(
                "packet {number} comes {days} days after the one before{more}: was the clock set meanwhile? Times and \
                 rates count this gap"
            ));
        }
        if self.malformed > 0 {
            let (kind, number) = self.first_malformed;
            let more = match self.malformed {
                1 => String::new(),
                blocks => format!(", the first of {blocks} such blocks"),
            };
            notices.push(format!(
                "a block of type {kind:#x} before packet {number} is malformed; it was left out{more}"
            ));
        }
        if let Some(left) = self.cut {
            let number = self.packets + 1;
            notices.push(format!(
                "the capture ends in the middle of packet {number}, of which {left} bytes are there; it was left out"
            ));
        }
        notices
    }
}

fn truncated(packets: u64) -> TraceError {
    TraceError::Format(format!(
        "truncated: the capture ends in the middle of packet {}",
        packets + 1
    ))
}

fn corrupt(packets: u64, reason: &str) -> TraceError {
    TraceError::Packet { number: packets + 1, fault: format!("corrupt: {reason}") }
}

/// What a block says: about packets to come, or a packet.
fn take<'a>(
    block: &'a PcapBlockOwned<'_>,
    interfaces: &mut Vec<Interface>,
    number: u64,
) -> Result<Option<Record<'a>>, TraceError> {
    let fault = |fault: String| TraceError::Packet { number, fault };
    let (id, ticks, length, data) = match block {
        PcapBlockOwned::LegacyHeader(header) => {
            let nanoseconds = header.is_nanosecond_precision();
            interfaces.push(Interface {
                name: None,
                is_seen: false,
                link: header.network,
                ticks_per_second: if nanoseconds { 1_000_000_000 } else { 1_000_000 },
                offset_seconds: 0,
            });
            return Ok(None);
        }
        PcapBlockOwned::Legacy(packet) => {
            let per_second = interfaces.first().map_or(1_000_000, |first| first.ticks_per_second);
            let ticks = u64::from(packet.ts_sec) * per_second + u64::from(packet.ts_usec);
            (0, ticks, packet.origlen, packet.data)
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => {
            interfaces.clear();
            return Ok(None);
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
            interfaces.push(Interface {
                name: interface.if_name().and_then(Result::ok).map(str::to_owned),
                is_seen: false,
                link: interface.linktype,
                ticks_per_second: interface.ts_resolution().filter(|ticks| *ticks > 0).ok_or_else(
                    || fault("the interface's time resolution is out of range".to_owned()),
                )?,
                offset_seconds: interface.ts_offset(),
            });
            return Ok(None);
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
            (packet.if_id as usize, ticks, packet.origlen, packet.packet_data())
        }
        PcapBlockOwned::NG(Block::SimplePacket(_)) => {
            return Err(fault("it has no time; capture with enhanced packet blocks".to_owned()));
        }
        PcapBlockOwned::NG(_) => return Ok(None),
    };
    if id >= interfaces.len() {
        return Err(fault(format!("it is of interface {id}, which the capture does not have")));
    }
    Ok(Some(Record { interface: id, ticks, length, data }))
}

/// What is taken of the packet with this number, of an interface of this kind.
fn captured(record: &Record<'_>, link: Linktype, number: u64) -> Result<Captured, TraceError> {
    let fault = |fault: String| TraceError::Packet { number, fault };
    let &Record { interface, ticks, length, data } = record;
    let (headers, ecn, flow) = look_into(link, data).map_err(fault)?;
    let on_the_wire = length.checked_sub(headers).filter(|_| length > 0).ok_or_else(|| {
        fault(format!(
            "its length on the wire is {length}; it has at least {headers} bytes of headers"
        ))
    })?;
    let length = on_the_wire.saturating_add(ETHERNET_HEADER);
    Ok(Captured { interface, ticks, length, ecn, flow })
}

/// How many bytes lie under what an Ethernet header would carry, the ECN field, and the flow.
fn look_into(link: Linktype, data: &[u8]) -> Result<(u32, Ecn, u32), String> {
    // The header's length, and where in it the Ethernet type of what follows stands.
    let (headers, packet) = match link {
        Linktype::ETHERNET => (14, LaxSlicedPacket::from_ethernet(data).ok()),
        Linktype::LINUX_SLL => (16, behind(data, 16, 14)),
        Linktype(276) => (20, behind(data, 20, 0)), // LINKTYPE_LINUX_SLL2
        // Raw IP, as libpcap and some BSDs number it, and its IPv4-only and IPv6-only forms.
        Linktype(12 | 14) | Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 => {
            (0, LaxSlicedPacket::from_ip(data).ok())
        }
        Linktype(other) => {
            return Err(format!(
                "link type {other} is not supported; capture Ethernet (1), Linux cooked (113, 276) or raw IP (101)"
            ));
        }
    };
    let flow = packet.as_ref().map_or(0, flow);
    let ecn = match packet.and_then(|packet| packet.net) {
        Some(LaxNetSlice::Ipv4(ip)) => Ecn::from_bits(ip.header().ecn().value()),
        Some(LaxNetSlice::Ipv6(ip)) => Ecn::from_bits(ip.header().ecn().value()),
        Some(LaxNetSlice::Arp(_)) | None => Ecn::NotEct,
    };
    Ok((headers, ecn, flow))
}

/// A hash of addresses, protocol and ports: what a router tells flows apart by. What is not IP is flow 0.
fn flow(packet: &LaxSlicedPacket<'_>) -> u32 {
    let mut hash = Fnv::new();
    let protocol = match &packet.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            hash.write(&ip.header().source());
            hash.write(&ip.header().destination());
            ip.payload().ip_number.0
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            hash.write(&ip.header().source());
            hash.write(&ip.header().destination());
            ip.payload().ip_number.0
        }
        Some(LaxNetSlice::Arp(_)) | None => return 0,
    };
    hash.write(&[protocol]);
    let ports = match &packet.transport {
        Some(TransportSlice::Tcp(tcp)) => Some((tcp.source_port(), tcp.destination_port())),
        Some(TransportSlice::Udp(udp)) => Some((udp.source_port(), udp.destination_port())),
        Some(_) | None => None,
    };
    if let Some((source, destination)) = ports {
        hash.write(&source.to_be_bytes());
        hash.write(&destination.to_be_bytes());
    }
    hash.0
}

/// FNV-1a (<http://www.isthe.com/chongo/tech/comp/fnv/>): a few bytes, the same number on every machine.
struct Fnv(u32);

impl Fnv {
    const fn new() -> Self {
        Self(0x811c_9dc5)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        }
    }
}

fn behind(data: &[u8], header: usize, type_at: usize) -> Option<LaxSlicedPacket<'_>> {
    let payload = data.get(header..)?;
    let ether_type = u16::from_be_bytes([*data.get(type_at)?, *data.get(type_at + 1)?]);
    Some(LaxSlicedPacket::from_ether_type(EtherType(ether_type), payload))
}
