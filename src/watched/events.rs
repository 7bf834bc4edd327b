//! What happened to each packet of a run, line by line.

use std::io::{self, BufWriter, Write as _};

use dualq_scenario::{Event, Scenario, Seen, Wants};

use super::{Form, Group, numbered};
use crate::output::Output;

/// The ECN field of a packet that met congestion.
const CE: u8 = 3;
const BUFFER_BYTES: usize = 1 << 16;

/// Writes a line for each packet that is seen: comma-separated values. Lines before these that begin with `#` say what was run, and
/// whose the numbers of flows are.
pub(super) struct EventList {
    writer: BufWriter<Output>,
}

impl EventList {
    pub(super) fn new(output: Output) -> Self {
        Self { writer: BufWriter::with_capacity(BUFFER_BYTES, output) }
    }
}

impl Form for EventList {
    fn wants(&self) -> Wants {
        Wants { packets: true, ..Wants::default() }
    }

    fn begin(&mut self, world: &str, scenario: &Scenario, seed: u64) -> io::Result<()> {
        let writer = &mut self.writer;
        writeln!(writer, "# world={world} seed={seed}")?;
        for group in numbered(scenario) {
            let numbers = match (group.first, group.count) {
                (first, 1) => first.to_string(),
                (first, count) => format!("{first}-{}", (first + count).saturating_sub(1)),
            };
            match group.group {
                Group::Flow(number, flow) => {
                    let (cc, direction) = (flow.cc.name(), flow.direction);
                    writeln!(
                        writer,
                        "# flow={numbers} group={number} cc={cc} direction={direction}"
                    )?;
                }
                Group::Probe(number, probe) => {
                    writeln!(writer, "# flow={numbers} probe={number} kind={}", probe.kind)?;
                }
                Group::Udp(number, udp) => {
                    let direction = udp.direction;
                    writeln!(writer, "# flow={numbers} udp={number} direction={direction}")?;
                }
            }
        }
        writeln!(writer, "t_s,event,flow,direction,kind,seq,bytes,ecn,sacks,delay_ms")
    }

    fn packet(&mut self, event: &Event) -> io::Result<()> {
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

    fn end(self: Box<Self>) -> io::Result<Output> {
        self.writer.into_inner().map_err(io::IntoInnerError::into_error)
    }
}
