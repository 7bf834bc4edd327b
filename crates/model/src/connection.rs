//! One connection of the dumbbell: its two endpoints, its program and the queue of its sender's interface.

use std::collections::VecDeque;
use std::time::Duration;

use dualq_tcp::{Algorithm, Pacing, Receiver, ReceiverConfig, Sender, SenderConfig, Transmission};
use dualq_units::Bytes;

use crate::error::ScenarioError;
use crate::scenario::{FlowGroup, Loss, ProbeGroup, Scenario};

/// Payload of a probe's question, and of its answer.
pub(crate) const PROBE_BYTES: u64 = 48;

/// What the program at the sending end does.
#[derive(Clone, Debug)]
pub(crate) enum Program {
    /// Sends, to an end or for ever.
    Bulk {
        /// When all was acknowledged, in nanoseconds.
        done_ns: Option<u64>,
    },
    /// Asks, waits for the answer, pauses, asks again.
    Probe {
        interval: Duration,
        /// When the question was asked that is not answered.
        asked_ns: Option<u64>,
        /// Round trips, in nanoseconds, from the warm-up on.
        samples: Vec<u64>,
    },
}

/// A connection's endpoints and surroundings.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) program: Program,
    /// The group of flows, or the probe's number.
    pub(crate) group: usize,
    pub(crate) start_ns: u64,
    pub(crate) started: bool,
    size: u64,
    /// What waits in the queue of the sender's interface for its departure.
    pub(crate) device: VecDeque<Transmission>,
    /// Figures at the end of the warm-up.
    pub(crate) warmup_acknowledged: u64,
    pub(crate) warmup_retransmissions: u64,
    pub(crate) warmup_marks: u64,
}

/// The queue of a sender's interface.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Device {
    pub(crate) pacing: Pacing,
    /// Loss of whole packets, aggregates or not.
    pub(crate) loss: Loss,
}

impl Device {
    /// The device that `text` describes: `fq`, `pfifo [limit N]` or `netem [loss N%] [limit N]`.
    pub(crate) fn parse(text: &str) -> Result<Self, ScenarioError> {
        let refuse =
            |word: &str| ScenarioError::Qdisc { text: text.to_owned(), word: word.to_owned() };
        let mut words = text.split_whitespace();
        let kind = words.next().unwrap_or_default();
        let pacing = match kind {
            "fq" => Pacing::ByQueue,
            "pfifo" | "pfifo_fast" | "netem" => Pacing::OnDemand,
            _ => return Err(refuse(kind)),
        };
        let mut loss = Loss::NONE;
        while let Some(key) = words.next() {
            let value = words.next().ok_or_else(|| refuse(key))?;
            match key {
                "loss" if kind == "netem" => {
                    loss = Loss::parse(value).map_err(|_| refuse(value))?
                }
                // TCP small queues keep the sender's own queue shorter than any limit in use.
                "limit" => {
                    value.parse::<u32>().map_err(|_| refuse(value))?;
                }
                _ => return Err(refuse(key)),
            }
        }
        Ok(Self { pacing, loss })
    }
}

fn algorithm(name: &str) -> Result<Algorithm, ScenarioError> {
    Algorithm::from_name(name)
        .ok_or_else(|| ScenarioError::UnknownCongestionControl(name.to_owned()))
}

impl Connection {
    fn new(
        scenario: &Scenario,
        device: Device,
        cc: &str,
        ecn: bool,
        seed: u64,
        answers: bool,
    ) -> Result<Self, ScenarioError> {
        let algorithm = algorithm(cc)?;
        let sender = SenderConfig {
            algorithm,
            ecn,
            mtu: scenario.link.mtu,
            pacing: device.pacing,
            tick: scenario.tick,
            seed,
            ..SenderConfig::default()
        };
        let receiver = ReceiverConfig {
            mtu: scenario.link.mtu,
            exact_echo: algorithm == Algorithm::Dctcp,
            read_interval: if answers { Duration::ZERO } else { scenario.receiver.read_interval },
            answers,
            tick: scenario.tick,
            ..ReceiverConfig::default()
        };
        Ok(Self {
            sender: Sender::new(sender),
            receiver: Receiver::new(receiver),
            program: Program::Bulk { done_ns: None },
            group: 0,
            start_ns: 0,
            started: false,
            size: u64::MAX,
            device: VecDeque::new(),
            warmup_acknowledged: 0,
            warmup_retransmissions: 0,
            warmup_marks: 0,
        })
    }

    /// A flow of `group` that starts at `start_ns`.
    pub(crate) fn flow(
        scenario: &Scenario,
        device: Device,
        (index, group): (usize, &FlowGroup),
        start_ns: u64,
        seed: u64,
    ) -> Result<Self, ScenarioError> {
        let connection = Self::new(scenario, device, &group.cc, group.ecn, seed, false)?;
        let size = group.size.map_or(u64::MAX, |Bytes(bytes)| bytes);
        Ok(Self { group: index, start_ns, size, ..connection })
    }

    /// A probe, which starts at once.
    pub(crate) fn probe(
        scenario: &Scenario,
        device: Device,
        (index, group): (usize, &ProbeGroup),
        seed: u64,
    ) -> Result<Self, ScenarioError> {
        let connection = Self::new(scenario, device, &group.cc, group.ecn, seed, true)?;
        let program =
            Program::Probe { interval: group.interval, asked_ns: None, samples: Vec::new() };
        Ok(Self { group: index, program, ..connection })
    }

    /// The program's turn: the first time it opens the connection, later on it asks.
    pub(crate) fn run_program(&mut self, now_ns: u64) {
        match &mut self.program {
            Program::Bulk { .. } if !self.started => self.sender.write(self.size),
            Program::Bulk { .. } => {}
            Program::Probe { asked_ns, .. } => {
                *asked_ns = Some(now_ns);
                self.sender.write(PROBE_BYTES);
            }
        }
        self.started = true;
    }

    /// Whether the program waits for nothing more.
    pub(crate) fn is_probe(&self) -> bool {
        matches!(self.program, Program::Probe { .. })
    }
}
