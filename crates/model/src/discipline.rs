//! From tc's words for a queue discipline to the discipline: `fq_codel limit 1000`, `dualpi2 target 5ms any_ect`.

use std::str::SplitWhitespace;
use std::time::Duration;

use dualpi2::{Config, DualPi2, EcnMask, SplitMix64};
use dualq_tcp::Tick;
use dualq_units::{Bytes, tc_time};

use crate::error::ScenarioError;
use crate::queues::{
    Codel, CodelParameters, Fifo, FifoLimit, Fq, FqCodel, FqCodelParameters, FqParameters, Frame,
    Pie, PieParameters, Queue,
};

/// The length of the transmit queue that fifos take for their limit (Linux: `DEFAULT_TX_QUEUE_LEN`).
const TX_QUEUE_LENGTH: u32 = 1000;

struct Options<'a> {
    whole: &'a str,
    words: SplitWhitespace<'a>,
}

impl<'a> Options<'a> {
    fn refuse(&self, word: &str) -> ScenarioError {
        ScenarioError::Qdisc { text: self.whole.to_owned(), word: word.to_owned() }
    }

    fn value(&mut self, key: &str) -> Result<&'a str, ScenarioError> {
        self.words.next().ok_or_else(|| self.refuse(key))
    }

    fn number(&mut self, key: &str) -> Result<u32, ScenarioError> {
        let word = self.value(key)?;
        word.trim_end_matches('p').parse().map_err(|_| self.refuse(word))
    }

    fn bytes(&mut self, key: &str) -> Result<u64, ScenarioError> {
        let word = self.value(key)?;
        word.parse().map(|Bytes(bytes)| bytes).map_err(|_| self.refuse(word))
    }

    fn time(&mut self, key: &str) -> Result<Duration, ScenarioError> {
        let word = self.value(key)?;
        tc_time::parse(word).map_err(|_| self.refuse(word))
    }

    fn nanos(&mut self, key: &str) -> Result<u64, ScenarioError> {
        Ok(self.time(key)?.as_nanos() as u64)
    }
}

/// The discipline that `text` describes, on a device with frames of `mtu` bytes.
pub(crate) fn parse<P: Frame>(
    text: &str,
    mtu: u32,
    tick: Tick,
    seed: u64,
) -> Result<Queue<P>, ScenarioError> {
    let mut options = Options { whole: text, words: text.split_whitespace() };
    let kind = options.words.next().unwrap_or_default();
    match kind {
        "pfifo" | "pfifo_fast" | "bfifo" => fifo(kind == "bfifo", mtu, options),
        "codel" => codel(mtu, options),
        "fq_codel" => fq_codel(mtu, seed, options),
        "fq" => fq(mtu, seed, options),
        "pie" => pie(mtu, tick, seed, options),
        "dualpi2" => dual(mtu, seed, options),
        _ => Err(ScenarioError::UnknownQdisc(kind.to_owned())),
    }
}

fn fifo<P: Frame>(
    in_bytes: bool,
    mtu: u32,
    mut options: Options<'_>,
) -> Result<Queue<P>, ScenarioError> {
    let mut limit = u64::from(TX_QUEUE_LENGTH) * if in_bytes { u64::from(mtu) } else { 1 };
    while let Some(key) = options.words.next() {
        match key {
            "limit" if in_bytes => limit = options.bytes(key)?,
            "limit" => limit = options.number(key)?.into(),
            _ => return Err(options.refuse(key)),
        }
    }
    let limit = if in_bytes { FifoLimit::Bytes(limit) } else { FifoLimit::Packets(limit as u32) };
    Ok(Queue::Fifo(Fifo::new(limit)))
}

fn codel<P: Frame>(mtu: u32, mut options: Options<'_>) -> Result<Queue<P>, ScenarioError> {
    let mut parameters = CodelParameters { mtu, ..CodelParameters::default() };
    let mut limit = 1000;
    while let Some(key) = options.words.next() {
        match key {
            "limit" => limit = options.number(key)?,
            "target" => parameters.target_ns = options.nanos(key)?,
            "interval" => parameters.interval_ns = options.nanos(key)?,
            "ecn" => parameters.ecn = true,
            "noecn" => parameters.ecn = false,
            _ => return Err(options.refuse(key)),
        }
    }
    Ok(Queue::Codel(Codel::new(parameters, limit)))
}

fn fq_codel<P: Frame>(
    mtu: u32,
    seed: u64,
    mut options: Options<'_>,
) -> Result<Queue<P>, ScenarioError> {
    let mut parameters = FqCodelParameters { quantum: mtu, ..FqCodelParameters::default() };
    parameters.codel.mtu = mtu;
    while let Some(key) = options.words.next() {
        match key {
            "limit" => parameters.limit = options.number(key)?,
            "flows" => parameters.flows = options.number(key)?,
            "quantum" => parameters.quantum = options.number(key)?,
            "memory_limit" => parameters.memory_limit = options.bytes(key)?,
            "drop_batch" => parameters.drop_batch = options.number(key)?,
            "target" => parameters.codel.target_ns = options.nanos(key)?,
            "interval" => parameters.codel.interval_ns = options.nanos(key)?,
            "ecn" => parameters.codel.ecn = true,
            "noecn" => parameters.codel.ecn = false,
            _ => return Err(options.refuse(key)),
        }
    }
    Ok(Queue::FqCodel(FqCodel::new(parameters, seed)))
}

fn fq<P: Frame>(mtu: u32, seed: u64, mut options: Options<'_>) -> Result<Queue<P>, ScenarioError> {
    let mut parameters =
        FqParameters { quantum: 2 * mtu, initial_quantum: 10 * mtu, ..FqParameters::default() };
    while let Some(key) = options.words.next() {
        match key {
            "limit" => parameters.limit = options.number(key)?,
            "flow_limit" => parameters.flow_limit = options.number(key)?,
            "quantum" => parameters.quantum = options.number(key)?,
            "initial_quantum" => parameters.initial_quantum = options.number(key)?,
            "buckets" => parameters.buckets = options.number(key)?,
            _ => return Err(options.refuse(key)),
        }
    }
    Ok(Queue::Fq(Fq::new(parameters, seed)))
}

fn pie<P: Frame>(
    mtu: u32,
    tick: Tick,
    seed: u64,
    mut options: Options<'_>,
) -> Result<Queue<P>, ScenarioError> {
    let mut parameters = PieParameters { mtu, ..PieParameters::default() };
    while let Some(key) = options.words.next() {
        match key {
            "limit" => parameters.limit = options.number(key)?,
            "target" => parameters.target_ns = options.nanos(key)?,
            "tupdate" => parameters.update_ns = options.nanos(key)?,
            "alpha" => parameters.alpha = options.number(key)?,
            "beta" => parameters.beta = options.number(key)?,
            "ecn" => parameters.ecn = true,
            "noecn" => parameters.ecn = false,
            _ => return Err(options.refuse(key)),
        }
    }
    // Linux runs the controller from the timer wheel, which fires one jiffy late.
    let jiffy_ns = 1_000_000_000 / u64::from(tick.hertz());
    parameters.update_ns = (parameters.update_ns.div_ceil(jiffy_ns) + 1) * jiffy_ns;
    Ok(Queue::Pie(Pie::new(parameters, seed)))
}

fn dual<P: Frame>(
    mtu: u32,
    seed: u64,
    mut options: Options<'_>,
) -> Result<Queue<P>, ScenarioError> {
    let mut config = Config::for_mtu(mtu);
    while let Some(key) = options.words.next() {
        match key {
            "target" => config.target = options.time(key)?,
            "tupdate" => config.tupdate = options.time(key)?,
            "limit" => config.limit = options.number(key)?,
            "any_ect" => config.ecn_mask = EcnMask::Any,
            "l4s_ect" => config.ecn_mask = EcnMask::L4s,
            "split_gso" => config.split_gso = true,
            "no_split_gso" => config.split_gso = false,
            _ => return Err(options.refuse(key)),
        }
    }
    DualPi2::new(config, mtu, SplitMix64::new(seed), 0)
        .map(Queue::DualPi2)
        .map_err(|_| options.refuse("dualpi2"))
}
