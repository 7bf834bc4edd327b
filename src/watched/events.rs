//! What happened to each packet of a run, line by line.

use std::io::{self, BufWriter, Write};

use dualq_scenario::{Event, Scenario, Seen};

/// The ECN field of a packet that met congestion.
const CE: u8 = 3;
const BUFFER_BYTES: usize = 1 << 16;

/// Writes a line for each packet that is seen: comma-separated values. Lines before these that begin with `#` say what was run, and
/// whose the numbers of flows are.
pub(super) struct EventList<W: Write> {
    writer: BufWriter<W>,
}

impl<W: Write> EventList<W> {
    pub(super) fn new(writer: W) -> Self {
        Self { writer: BufWriter::with_capacity(BUFFER_BYTES, writer) }
    }

    /// Writes what stands above the list.
    pub(super) fn begin(&mut self, world: &str, scenario: &Scenario, seed: u64) -> io::Result<()> {
        let writer = &mut self.writer;
        writeln!(writer, "# world={world} seed={seed}")?;
        let mut next = 0;
        let mut numbers = |count: u32| {
            let first = next;
            next += count;
            match count {
                1 => first.to_string(),
                _ => format!("{first}-{}", next.saturating_sub(1)),
            }
        };
        for (group, number) in scenario.flow.iter().zip(1..) {
            let (numbers, cc) = (numbers(group.count), group.cc.name());
            let direction = group.direction;
            writeln!(writer, "# flow={numbers} group={number} cc={cc} direction={direction}")?;
        }
        for (probe, number) in scenario.probe.iter().zip(1..) {
            writeln!(writer, "# flow={} probe={number} kind={}", numbers(1), probe.kind)?;
        }
        for (group, number) in scenario.udp.iter().zip(1..) {
            let (numbers, direction) = (numbers(group.count), group.direction);
            writeln!(writer, "# flow={numbers} udp={number} direction={direction}")?;
        }
        writeln!(writer, "t_s,event,flow,direction,kind,seq,bytes,ecn,sacks,delay_ms")
    }

    /// Writes the line of a packet.
    pub(super) fn write(&mut self, event: &Event) -> io::Result<()> {
        let Event { at_ns, flow, direction, seq, bytes, ecn, sacks, .. } = event;
        let (seconds, nanos) = (at_ns / 1_000_000_000, at_ns % 1_000_000_000);
        let writer = &mut self.writer;
        write!(writer, "{seconds}.{nanos:09},{}", event.seen.name())?;
        match event.reason {
            Some(reason) => write!(writer, "_{}", reason.name())?,
            None if event.seen == Seen::Out && *ecn == CE => write!(writer, "_ce")?,
            None => {}
        }
        let kind = event.kind.name();
        write!(writer, ",{flow},{direction},{kind},{seq},{bytes},{ecn},{sacks},")?;
        match event.waited_ns {
            Some(waited_ns) => {
                writeln!(writer, "{}.{:06}", waited_ns / 1_000_000, waited_ns % 1_000_000)
            }
            None => writeln!(writer),
        }
    }

    /// Writes the last of the buffer.
    pub(super) fn end(self) -> io::Result<W> {
        self.writer.into_inner().map_err(io::IntoInnerError::into_error)
    }
}
