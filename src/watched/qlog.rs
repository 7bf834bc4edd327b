//! What each TCP connection does, as qlog (draft-ietf-quic-qlog-main-schema): its schema for files that grow, a JSON text sequence,
//! with a group of events for each connection.
//!
//! The events are those of QUIC's schema, as far as TCP has them too, under the names that they had in version 0.3: qvis, which draws
//! them, reads that version, and the later draft's `quic:` is for QUIC alone. What it calls a packet's number counts transmissions:
//! data that are sent again have another one.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write as _};

use dualq_scenario::{Change, ConnectionEvent, Metrics, Scenario, Wants};
use serde_json::{Map, Value, json};

use super::{Form, Group, numbered};
use crate::output::Output;

const BUFFER_BYTES: usize = 1 << 16;
/// What begins each text of a sequence (RFC 7464).
const RECORD_SEPARATOR: u8 = 0x1e;
/// TCP's packets have no types; qvis takes them for QUIC's main one.
const PACKET_TYPE: &str = "1RTT";
/// An acknowledgement's IP packet, without and with its option of SACK blocks.
const ACK_BYTES: usize = 52;
const SACK_BYTES: usize = 4;
const BLOCK_BYTES: usize = 8;

/// Writes down what connections do.
pub(super) struct ConnectionLog {
    writer: BufWriter<Output>,
    /// By their numbers.
    connections: Vec<Connection>,
}

/// What is known of a connection.
#[derive(Default)]
struct Connection {
    /// The name of its group of events.
    name: String,
    sent: u64,
    received: u64,
    outstanding: Outstanding,
    /// What was told last.
    metrics: Map<String, Value>,
    phase: Option<String>,
}

/// The data that are on their way, by their places in the stream.
#[derive(Default)]
struct Outstanding {
    parts: BTreeMap<u64, Part>,
    /// Everything before was sent.
    end: u64,
}

/// Data from the place that it is found by.
#[derive(Clone, Copy)]
struct Part {
    end: u64,
    /// The number of the packet that carried them last.
    number: u64,
    sacked: bool,
    lost: bool,
}

impl Outstanding {
    /// A packet with this number carries the data from `start` to `end`. Returns whether they were sent before.
    fn send(&mut self, start: u64, end: u64, number: u64) -> bool {
        let again = start < self.end;
        if again {
            self.cut(start);
            self.cut(end);
            let replaced: Vec<u64> = self.parts.range(start..end).map(|(at, _)| *at).collect();
            for at in replaced {
                self.parts.remove(&at);
            }
        }
        self.parts.insert(start, Part { end, number, sacked: false, lost: false });
        self.end = self.end.max(end);
        again
    }

    /// What lies across `place` becomes two parts.
    fn cut(&mut self, place: u64) {
        if let Some((_, part)) = self.parts.range_mut(..place).next_back()
            && part.end > place
        {
            let rest = *part;
            part.end = place;
            self.parts.insert(place, rest);
        }
    }

    /// The numbers of packets that an acknowledgement tells of for the first time, in their order.
    fn acknowledge(&mut self, ack: u64, blocks: &[(u64, u64)]) -> Vec<u64> {
        self.cut(ack);
        let mut numbers = Vec::new();
        while let Some(first) = self.parts.first_entry()
            && *first.key() < ack
        {
            let part = first.remove();
            numbers.extend((!part.sacked).then_some(part.number));
        }
        for (start, end) in blocks {
            self.cut(*start);
            self.cut(*end);
            for (_, part) in self.parts.range_mut(start..end) {
                if part.end <= *end && !part.sacked {
                    part.sacked = true;
                    numbers.push(part.number);
                }
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// The numbers of packets whose data are deemed lost, each told once.
    fn lose(&mut self, start: u64, end: u64) -> Vec<u64> {
        let parts = self.parts.range_mut(start..end);
        let lost = parts.filter(|(_, part)| !part.lost && !part.sacked);
        let mut numbers: Vec<u64> = lost
            .map(|(_, part)| {
                part.lost = true;
                part.number
            })
            .collect();
        numbers.dedup();
        numbers
    }
}

/// Ranges of numbers, first and last, of ascending ones.
fn ranges(numbers: &[u64]) -> Vec<[u64; 2]> {
    let mut ranges: Vec<[u64; 2]> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some([_, last]) if *last + 1 == *number => *last = *number,
            _ => ranges.push([*number, *number]),
        }
    }
    ranges
}

/// Metrics in qlog's units: bytes, milliseconds, bits per second.
fn fields(metrics: &Metrics) -> [(&'static str, Value); 8] {
    let Metrics { look, mss, rttvar_us, min_rtt_us, .. } = metrics;
    let bytes = |segments: u32| Value::from(u64::from(segments) * u64::from(*mss));
    let millis = |micros: Option<u64>| micros.map_or(Value::Null, |us| (us as f64 / 1e3).into());
    let bits = |bytes: u64| Value::from(bytes.saturating_mul(8));
    [
        ("congestion_window", bytes(look.cwnd)),
        ("bytes_in_flight", bytes(look.in_flight)),
        ("packets_in_flight", look.in_flight.into()),
        ("ssthresh", look.ssthresh.map_or(Value::Null, bytes)),
        ("smoothed_rtt", millis(look.srtt_us)),
        ("rtt_variance", millis(*rttvar_us)),
        ("min_rtt", millis(*min_rtt_us)),
        ("pacing_rate", look.pacing_rate.map_or(Value::Null, bits)),
    ]
}

impl Connection {
    /// The events that tell of a change: their names and data.
    fn events(&mut self, change: &Change) -> Vec<(&'static str, Value)> {
        let header = |number: u64| json!({"packet_type": PACKET_TYPE, "packet_number": number});
        match change {
            Change::Sent { start, end, length } => {
                self.sent += 1;
                let again = start < end && self.outstanding.send(*start, *end, self.sent);
                let raw = json!({"length": length, "payload_length": end - start});
                let mut data = json!({"header": header(self.sent), "raw": raw});
                data["header"]["sequence_number"] = (*start).into();
                if again {
                    data["trigger"] = "retransmission".into();
                }
                vec![("transport:packet_sent", data)]
            }
            Change::Acknowledged { ack, window, blocks, ece } => {
                self.received += 1;
                let sack =
                    if blocks.is_empty() { 0 } else { SACK_BYTES + BLOCK_BYTES * blocks.len() };
                let acked = ranges(&self.outstanding.acknowledge(*ack, blocks));
                let mut data =
                    json!({"header": header(self.received), "raw": {"length": ACK_BYTES + sack}});
                data["header"]["acknowledgment_number"] = (*ack).into();
                data["header"]["window"] = (*window).into();
                data["header"]["ece"] = (*ece).into();
                if !acked.is_empty() {
                    data["frames"] = json!([{"frame_type": "ack", "acked_ranges": acked}]);
                }
                vec![("transport:packet_received", data)]
            }
            Change::Lost { start, end } => {
                let lost = self.outstanding.lose(*start, *end);
                let event = |number| ("recovery:packet_lost", json!({"header": header(number)}));
                lost.into_iter().map(event).collect()
            }
            Change::Metrics(metrics) => self.look(metrics),
        }
    }

    /// Tells what of the metrics is new.
    fn look(&mut self, metrics: &Metrics) -> Vec<(&'static str, Value)> {
        let mut events = Vec::new();
        if self.phase.as_deref() != Some(&*metrics.phase) {
            let old = self.phase.replace(metrics.phase.to_string());
            let mut data = json!({"new": metrics.phase});
            if let Some(old) = old {
                data["old"] = old.into();
            }
            events.push(("recovery:congestion_state_updated", data));
        }
        let mut news = Map::new();
        for (name, value) in fields(metrics) {
            if !value.is_null() && self.metrics.get(name) != Some(&value) {
                self.metrics.insert(name.to_owned(), value.clone());
                news.insert(name.to_owned(), value);
            }
        }
        if !news.is_empty() {
            events.push(("recovery:metrics_updated", news.into()));
        }
        events
    }
}

impl ConnectionLog {
    pub(super) fn new(output: Output) -> Self {
        let writer = BufWriter::with_capacity(BUFFER_BYTES, output);
        Self { writer, connections: Vec::new() }
    }

    fn write(&mut self, text: &Value) -> io::Result<()> {
        self.writer.write_all(&[RECORD_SEPARATOR])?;
        serde_json::to_writer(&mut self.writer, text)?;
        self.writer.write_all(b"\n")
    }
}

impl Form for ConnectionLog {
    fn wants(&self) -> Wants {
        Wants { connections: true, ..Wants::default() }
    }

    fn begin(&mut self, world: &str, scenario: &Scenario, seed: u64) -> io::Result<()> {
        for numbers in numbered(scenario) {
            let about = match numbers.group {
                Group::Flow(_, flow) => format!("{} {}", flow.cc.name(), flow.direction),
                Group::Probe(_, probe) => format!("{} probe", probe.kind),
                Group::Udp(..) => "UDP".to_owned(),
            };
            for number in numbers.first..numbers.first + numbers.count {
                let name = format!("{number} {about}");
                self.connections.push(Connection { name, ..Connection::default() });
            }
        }
        self.write(&json!({
            "file_schema": "urn:ietf:params:qlog:file:sequential",
            "serialization_format": "application/qlog+json-seq",
            // What qvis looks for.
            "qlog_version": "0.3",
            "qlog_format": "JSON-SEQ",
            "title": scenario.name,
            "description": format!("world {world}, seed {seed}"),
            "trace": {
                "vantage_point": {"name": format!("dualq {}", env!("CARGO_PKG_VERSION")), "type": "client"},
                "common_fields": {
                    "time_format": "relative_to_epoch",
                    "reference_time": {"clock_type": "monotonic", "epoch": "unknown"},
                    "protocol_type": "TCP",
                },
                "event_schemas": [
                    "urn:x-dualq:qlog:events:transport",
                    "urn:x-dualq:qlog:events:recovery",
                ],
            },
        }))
    }

    fn connection(&mut self, event: &ConnectionEvent) -> io::Result<()> {
        let ConnectionEvent { at_ns, flow, change } = event;
        let Some(connection) = self.connections.get_mut(*flow as usize) else { return Ok(()) };
        let events = connection.events(change);
        let group = connection.name.clone();
        for (name, data) in events {
            let time = *at_ns as f64 / 1e6;
            self.write(&json!({"time": time, "name": name, "group_id": group, "data": data}))?;
        }
        Ok(())
    }

    fn end(self: Box<Self>) -> io::Result<Output> {
        self.writer.into_inner().map_err(io::IntoInnerError::into_error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_again_has_another_number() {
        let mut outstanding = Outstanding::default();
        assert!(!outstanding.send(0, 300, 1), "an aggregate of three");
        assert!(!outstanding.send(300, 400, 2));
        assert_eq!(outstanding.acknowledge(100, &[(200, 300)]), [1]);
        assert_eq!(outstanding.lose(100, 200), [1]);
        assert_eq!(outstanding.lose(100, 200), [0; 0], "it was told");
        assert!(outstanding.send(100, 200, 3));
        assert_eq!(outstanding.lose(100, 200), [3], "it is another packet");
        assert_eq!(outstanding.acknowledge(400, &[]), [2, 3]);
        assert!(outstanding.parts.is_empty());
    }

    #[test]
    fn ranges_have_both_ends() {
        assert_eq!(ranges(&[1, 2, 3, 7, 9, 10]), [[1, 3], [7, 7], [9, 10]]);
    }
}
