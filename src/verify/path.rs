//! One measurement of the path, that a signal ends at once.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use dualq_host::Plan;
use dualq_measure::{Direction, Far, Load, MeasureError, Measurement, Method, Options, Progress};
use dualq_scenario::summary;
use dualq_units::Bytes;
use dualq_verify::MOST_ROUNDS;

use crate::cli::verify::HowArgs;
use crate::cli::{self, Failure};
use crate::measure::token;
use crate::progress::Stages;
use crate::signals::Signals;

/// How often it is looked for signals.
const LOOK: Duration = Duration::from_millis(50);

/// The path, and how it is measured.
pub(super) struct Measurer {
    options: Options,
}

/// What a measurement is judged by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) base_rtt_ms: f64,
    pub(super) p95_rtt_ms: f64,
    pub(super) goodput_mbit: f64,
    pub(super) fairness: f64,
    pub(super) bytes: u64,
}

/// What comes from the thread that measures.
enum Said {
    Progress(Progress),
    Done(Box<Result<Measurement, MeasureError>>),
}

impl Measurer {
    pub(super) fn of(host: &str, how: &HowArgs) -> Result<Self, Failure> {
        let host = cli::host(host)?.to_owned();
        let Some(token_file) = &how.token_file else {
            let message = "--token-file: give the file with the token of `dualq serve` on the host";
            return Err(Failure::Usage(message.to_owned()));
        };
        // As much for each, so that before and after are alike.
        let Bytes(all) = how.max_bytes;
        Ok(Self {
            options: Options {
                host,
                port: how.port,
                family: None,
                far: Far::Dualq(token(token_file)?),
                directions: vec![how.direction.map_or(Direction::Upload, Direction::from)],
                streams: Some(how.streams),
                cc: None,
                rate: None,
                max_time: how.each,
                max_bytes: Some(Bytes(all / (2 * MOST_ROUNDS as u64))),
            },
        })
    }

    /// Loads what the plan shapes, where nobody says what to load.
    pub(super) fn of_plan(mut self, plan: &Plan, how: &HowArgs) -> Self {
        if how.direction.is_none() {
            self.options.directions = vec![match plan.shapes() {
                (true, true) => Direction::Both,
                (false, true) => Direction::Download,
                (_, false) => Direction::Upload,
            }];
        }
        self
    }

    pub(super) fn host(&self) -> &str {
        &self.options.host
    }

    /// Measures once.
    pub(super) fn measure(
        &self,
        signals: &Signals,
        stages: &mut Stages,
    ) -> Result<Measured, Failure> {
        let (sender, said) = mpsc::channel();
        let options = self.options.clone();
        // A thread of its own, which is left alone if somebody has had enough: the process ends soon then.
        let measuring = thread::Builder::new().name("measure".to_owned()).spawn(move || {
            let mut tell = |progress: &Progress| drop(sender.send(Said::Progress(*progress)));
            let measured = dualq_measure::measure(&options, &mut tell);
            let _ = sender.send(Said::Done(Box::new(measured)));
        });
        measuring.map_err(|error| Failure::Run(format!("cannot start a thread: {error}")))?;
        loop {
            if let Ok(Some(_)) = signals.next() {
                stages.clear();
                return Err(Failure::Interrupted("stopped; all is as it was before".to_owned()));
            }
            match said.recv_timeout(LOOK) {
                Ok(Said::Progress(progress)) => {
                    stages.progress(progress.share, progress.stage.name());
                }
                Ok(Said::Done(measured)) => return self.figures(&(*measured)?),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::Run("the measurement has ended by a fault".to_owned()));
                }
            }
        }
    }

    fn figures(&self, measured: &Measurement) -> Result<Measured, Failure> {
        let silent = || {
            let host = self.host();
            Failure::Run(format!(
                "{host}: no probe was answered under load: there is nothing to judge by"
            ))
        };
        let loaded = measured.under(self.options.directions[0]).ok_or_else(silent)?;
        let by = |method| {
            let idle = measured.idle.pings.iter().find(|ping| ping.method == method)?;
            Some((idle.rtt.as_ref()?, loaded.rtt(method)?))
        };
        // The base is of the same method: what each adds by itself is in both.
        let both = by(Method::Tcp).or_else(|| by(Method::Udp));
        let (idle, rtt) = both.ok_or_else(silent)?;
        let loads: Vec<&Load> = [&loaded.down, &loaded.up].into_iter().flatten().collect();
        let flows: Vec<f64> =
            loads.iter().flat_map(|load| load.flow_goodput_mbit.iter().copied()).collect();
        Ok(Measured {
            base_rtt_ms: idle.min_ms.min(rtt.min_ms),
            p95_rtt_ms: rtt.p95_ms,
            goodput_mbit: loads.iter().map(|load| load.goodput_mbit).sum(),
            fairness: summary::jain(&flows).unwrap_or(1.0),
            bytes: measured.bytes,
        })
    }
}
