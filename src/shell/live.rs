//! The link of a shell while it runs: what it does, and what it is to do.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dualq_link::{Change, LinkError, Running};
use dualq_scenario::{Direction, ScenarioError, check_rate, check_rtt};
use dualq_units::Exact;

use super::document::{Document, Setting, cpu};
use super::path::{Bottleneck, ShellPath, qdisc, rate, time};
use crate::cli::Failure;
use crate::cli::shell::Changes;

pub(crate) struct Live {
    command: String,
    began: Instant,
    state: Mutex<State>,
}

struct State {
    /// There until it is stopped.
    running: Option<Running>,
    settings: [Setting; 2],
    /// What elements take on the way, beside the delays that can be changed.
    elements: Duration,
}

impl Live {
    pub(crate) fn new(running: Running, path: &ShellPath, command: String) -> Self {
        let settings = path.passages.each_ref().map(|passage| Setting {
            rate: passage.bottleneck.as_ref().map(|(rate, _)| Exact(*rate).to_string()),
            delay: passage.delay,
        });
        let link = &path.scenario.link;
        let elements = link.base_rtt().saturating_sub(link.rtt);
        let state = Mutex::new(State { running: Some(running), settings, elements });
        Self { command, began: Instant::now(), state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How it is.
    pub(crate) fn document(&self) -> Result<Document, LinkError> {
        let state = self.state();
        let running = state.running.as_ref().ok_or(LinkError::Stopped)?;
        let snapshot = running.snapshot()?;
        Ok(self.write(&state, &snapshot, cpu()))
    }

    fn write(
        &self,
        state: &State,
        snapshot: &dualq_link::Snapshot,
        cpu: [Duration; 2],
    ) -> Document {
        let base_rtt: Duration = state.settings.iter().map(|setting| setting.delay).sum();
        let times = (self.began.elapsed(), base_rtt + state.elements);
        Document::of(snapshot, &self.command, times, &state.settings, cpu)
    }

    /// Whether both directions are at work.
    pub(crate) fn is_alive(&self) -> bool {
        self.state().running.as_ref().is_some_and(Running::is_alive)
    }

    /// Stops it, and says how it was at the end. None if it was stopped before.
    pub(crate) fn stop(&self) -> Option<Document> {
        let mut state = self.state();
        let used = cpu();
        let snapshot = state.running.take()?.stop();
        Some(self.write(&state, &snapshot, used))
    }

    /// Changes the link, in all or in nothing that can be known before; says what is otherwise now.
    pub(crate) fn change(&self, changes: &Changes) -> Result<String, String> {
        let wanted = wanted(changes).map_err(|failure| match failure {
            Failure::Usage(why) | Failure::Run(why) => why,
            _ => "cannot change".to_owned(),
        })?;
        let mut state = self.state();
        let State { running, settings, .. } = &mut *state;
        let running = running.as_ref().ok_or("the link has stopped")?;
        let mut told = Vec::new();
        for (direction, change) in wanted {
            running.change(direction, change.clone()).map_err(|error| error.to_string())?;
            let setting = &mut settings[usize::from(!direction.is_down())];
            let what = match change {
                Change::Rate(rate) => {
                    let rate = Exact(rate).to_string();
                    setting.rate = Some(rate.clone());
                    format!("rate {rate}")
                }
                Change::Delay(delay) => {
                    setting.delay = delay;
                    format!("delay {}", Exact(delay))
                }
                Change::Qdisc(line) => format!("qdisc {}", line.text()),
            };
            told.push(format!("{direction} {what}"));
        }
        Ok(told.join(", "))
    }
}

/// What the words ask for; what is of both directions first.
pub(super) fn wanted(changes: &Changes) -> Result<Vec<(Direction, Change)>, Failure> {
    let Changes { rate: all_rate, rtt, qdisc: all_qdisc, down, up } = changes;
    let mut wanted = Vec::new();
    let no_rate = |option: &str| {
        let message = format!(
            "{option} unlimited: a link that runs cannot lose its bottleneck; give a high rate"
        );
        Failure::Usage(message)
    };
    // As when a shell opens.
    let bound = |error: ScenarioError| Failure::Usage(error.to_string());
    if let Some(words) = all_rate {
        let rate = rate("--rate", words)?.ok_or_else(|| no_rate("--rate"))?;
        check_rate("--rate", rate).map_err(bound)?;
        wanted.extend(Direction::ALL.map(|direction| (direction, Change::Rate(rate))));
    }
    if let Some(words) = all_qdisc {
        let line = qdisc("--qdisc", words)?;
        wanted.extend(Direction::ALL.map(|direction| (direction, Change::Qdisc(line.clone()))));
    }
    if let Some(words) = rtt {
        let rtt = time("--rtt", words)?;
        check_rtt("--rtt", rtt).map_err(bound)?;
        let half = rtt / 2;
        wanted.extend(Direction::ALL.map(|direction| (direction, Change::Delay(half))));
    }
    for (direction, option, words) in
        [(Direction::Down, "--down", down), (Direction::Up, "--up", up)]
    {
        let Some(words) = words else { continue };
        let Bottleneck { rate, qdisc } = Bottleneck::read(option, words)?;
        let rate = rate.ok_or_else(|| no_rate(option))?;
        check_rate(option, rate).map_err(bound)?;
        wanted.push((direction, Change::Rate(rate)));
        wanted.extend(qdisc.map(|line| (direction, Change::Qdisc(line))));
    }
    Ok(wanted)
}
