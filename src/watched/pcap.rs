//! The headers of packets as a capture in the form pcapng (draft-ietf-opsawg-pcapng), with an interface for each place where they
//! are looked at.

use std::io::{self, BufWriter, Write as _};

use dualq_scenario::{Headers, Point, Scenario, Wants};

use super::Form;
use crate::output::Output;

const BUFFER_BYTES: usize = 1 << 16;

/// The types of blocks, and what tells the order of bytes.
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// Ethernet, which all tools read, several interfaces of it too: libpcap takes those of raw IP for different ones.
const LINKTYPE_ETHERNET: u32 = 1;
/// What is before the IP packet, and what says that it is one.
const ETHERNET_BYTES: u32 = 14;
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
/// Options of all blocks, of sections and of interfaces.
const END: u16 = 0;
const COMMENT: u16 = 1;
const USER_APPLICATION: u16 = 4;
const NAME: u16 = 2;
const DESCRIPTION: u16 = 3;
const TIME_RESOLUTION: u16 = 9;
/// Times are in units of so many negative powers of ten of a second.
const NANOSECONDS: u8 = 9;

/// Writes packets down.
pub(super) struct Capture {
    writer: BufWriter<Output>,
    /// The places that have an interface, in the order of these.
    interfaces: Vec<Point>,
    /// The inside of a block under way.
    body: Vec<u8>,
}

impl Capture {
    pub(super) fn new(output: Output) -> Self {
        let writer = BufWriter::with_capacity(BUFFER_BYTES, output);
        Self { writer, interfaces: Vec::new(), body: Vec::new() }
    }

    /// Adds what is padded to whole words.
    fn put(&mut self, bytes: &[u8]) {
        self.body.extend(bytes);
        self.body.resize(self.body.len().next_multiple_of(4), 0);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
        self.body.extend(code.to_le_bytes());
        self.body.extend(length.to_le_bytes());
        self.put(&value[..length.into()]);
    }

    /// Writes the block whose inside is there.
    fn block(&mut self, kind: u32) -> io::Result<()> {
        let length = (self.body.len() as u32 + 12).to_le_bytes();
        self.writer.write_all(&kind.to_le_bytes())?;
        self.writer.write_all(&length)?;
        self.writer.write_all(&self.body)?;
        self.writer.write_all(&length)?;
        self.body.clear();
        Ok(())
    }

    /// The number of a place's interface, which is described before its first packet.
    fn interface(&mut self, point: Point) -> io::Result<u32> {
        if let Some(number) = self.interfaces.iter().position(|known| *known == point) {
            return Ok(number as u32);
        }
        self.interfaces.push(point);
        self.put(&LINKTYPE_ETHERNET.to_le_bytes());
        // Packets are cut behind their headers, and not after so many bytes.
        self.put(&0_u32.to_le_bytes());
        self.option(NAME, point.name().as_bytes());
        self.option(DESCRIPTION, about(point).as_bytes());
        self.option(TIME_RESOLUTION, &[NANOSECONDS]);
        self.option(END, &[]);
        self.block(INTERFACE_DESCRIPTION)?;
        Ok(self.interfaces.len() as u32 - 1)
    }
}

const fn about(point: Point) -> &'static str {
    match point {
        Point::Near => "the hosts that the queue under test stands before",
        Point::Far => "the hosts on the other side",
        Point::In => "into the queue under test",
        Point::Out => "out of the queue under test",
        Point::UpIn => "into the queue of the other direction",
        Point::UpOut => "out of the queue of the other direction",
    }
}

/// An Ethernet header for an IP packet: locally administered addresses that end with those of the packet, as if the hosts were
/// neighbours.
fn ethernet_header(packet: &[u8]) -> [u8; ETHERNET_BYTES as usize] {
    let mut header = [0; ETHERNET_BYTES as usize];
    let is_ipv6 = packet.first().is_some_and(|byte| byte >> 4 == 6);
    let (source, target) = if is_ipv6 { (20..24, 36..40) } else { (12..16, 16..20) };
    let target_and_source = [(0, packet.get(target)), (6, packet.get(source))];
    for (at, address) in target_and_source {
        header[at] = 0x02;
        header[at + 2..at + 6].copy_from_slice(address.unwrap_or(&[0; 4]));
    }
    header[12..].copy_from_slice(if is_ipv6 { &IPV6 } else { &IPV4 });
    header
}

impl Form for Capture {
    fn wants(&self) -> Wants {
        Wants { headers: true, ..Wants::default() }
    }

    fn begin(&mut self, world: &str, scenario: &Scenario, seed: u64) -> io::Result<()> {
        self.put(&BYTE_ORDER.to_le_bytes());
        // Version 1.0, and a section of unknown length.
        self.put(&[1, 0, 0, 0]);
        self.put(&[0xff; 8]);
        let comment = format!("{}: world {world}, seed {seed}", scenario.name);
        self.option(COMMENT, comment.as_bytes());
        self.option(USER_APPLICATION, concat!("dualq ", env!("CARGO_PKG_VERSION")).as_bytes());
        self.option(END, &[]);
        self.block(SECTION_HEADER)
    }

    fn headers(&mut self, headers: &Headers<'_>) -> io::Result<()> {
        let Headers { at_ns, point, length, bytes } = headers;
        let interface = self.interface(*point)?;
        let captured = ETHERNET_BYTES + bytes.len() as u32;
        let length = ETHERNET_BYTES + length;
        for word in [interface, (at_ns >> 32) as u32, *at_ns as u32, captured, length] {
            self.body.extend(word.to_le_bytes());
        }
        self.body.extend(ethernet_header(bytes));
        self.put(bytes);
        self.block(ENHANCED_PACKET)
    }

    fn end(self: Box<Self>) -> io::Result<Output> {
        self.writer.into_inner().map_err(io::IntoInnerError::into_error)
    }
}
