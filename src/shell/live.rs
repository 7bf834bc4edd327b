//! The link of a shell while it runs: what it does, and what it is to do.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dualq_link::{Change, LinkError, Running};
use dualq_scenario::{Direction, ScenarioError, check_rate, check_rtt};
use dualq_units::Exact;

use super::document::{Document, Setting, cpu};
use super::path::{Bottleneck, Capacity, ShellPath, qdisc, rate, time};
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
            others: passage.other_bottlenecks().collect(),
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
        let mut state = self.state();
        let State { running, settings, .. } = &mut *state;
        let delays = settings.each_ref().map(|setting| setting.delay);
        let wanted = wanted(changes, delays).map_err(|failure| match failure {
            Failure::Usage(why) | Failure::Run(why) => why,
            _ => "cannot change".to_owned(),
        })?;
        let running = running.as_ref().ok_or("the link has stopped")?;
        for (direction, change) in &wanted {
            running.check(*direction, change.clone()).map_err(|error| error.to_string())?;
        }
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

/// What the words ask for, each thing of a direction once: what is said of one alone comes before what is said of both. `delays` are those
/// that there are, whose proportions another round trip keeps.
pub(super) fn wanted(
    changes: &Changes,
    delays: [Duration; 2],
) -> Result<Vec<(Direction, Change)>, Failure> {
    if *changes == Changes::default() {
        let message = "nothing to change: give --rate, --rtt, --qdisc, --down or --up, such as `dualq shell set --rate 10mbit`";
        return Err(Failure::Usage(message.to_owned()));
    }
    let Changes { rate: all_rate, rtt, qdisc: all_qdisc, down, up } = changes;
    // As when a shell opens.
    let bound = |error: ScenarioError| Failure::Usage(error.to_string());
    let to_rate = |option: &str, width: Capacity| match width {
        Capacity::Unlimited => Err(Failure::Usage(format!(
            "{option} unlimited: a link that runs cannot lose its bottleneck; give a high rate"
        ))),
        Capacity::Rate(rate) => check_rate(option, rate).map_err(bound).map(|()| rate),
    };
    let all_rate = all_rate.as_ref().map(|words| to_rate("--rate", rate("--rate", words)?));
    let all_rate = all_rate.transpose()?;
    let all_qdisc = all_qdisc.as_ref().map(|words| qdisc("--qdisc", words)).transpose()?;
    let rtt = rtt.as_ref().map(|words| {
        let rtt = time("--rtt", words)?;
        check_rtt("--rtt", rtt).map_err(bound).map(|()| shared(rtt, delays))
    });
    let rtt = rtt.transpose()?;
    let mut wanted = Vec::new();
    for (at, (direction, option, words)) in
        [(Direction::Down, "--down", down), (Direction::Up, "--up", up)].into_iter().enumerate()
    {
        let own = words.as_ref().map(|words| Bottleneck::read(option, words)).transpose()?;
        let (own_rate, own_qdisc) = own.map_or((None, None), |own| (own.rate, own.qdisc));
        let own_rate = own_rate.map(|width| to_rate(option, width)).transpose()?;
        wanted.extend(own_rate.or(all_rate).map(|rate| (direction, Change::Rate(rate))));
        let line = own_qdisc.or_else(|| all_qdisc.clone());
        wanted.extend(line.map(|line| (direction, Change::Qdisc(line))));
        wanted.extend(rtt.map(|delays| (direction, Change::Delay(delays[at]))));
    }
    Ok(wanted)
}

/// A round trip in the proportions of the delays that there are, or in halves if there are none.
fn shared(rtt: Duration, [down, up]: [Duration; 2]) -> [Duration; 2] {
    let all = (down + up).as_nanos();
    let down = (rtt.as_nanos() * down.as_nanos()).checked_div(all).unwrap_or(rtt.as_nanos() / 2);
    // No longer than the round trip, of which 64 bits have room.
    let down = Duration::from_nanos(down as u64);
    [down, rtt - down]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_round_trip_keeps_its_proportions() {
        let ms = Duration::from_millis;
        assert_eq!(shared(ms(60), [ms(10), ms(30)]), [ms(15), ms(45)]);
        assert_eq!(shared(ms(7), [ms(10), ms(30)]).iter().sum::<Duration>(), ms(7));
        assert_eq!(shared(ms(60), [ms(0), ms(0)]), [ms(30), ms(30)]);
        assert_eq!(shared(ms(0), [ms(10), ms(30)]), [ms(0), ms(0)]);
    }

    #[test]
    fn what_is_said_of_a_direction_comes_before_what_is_said_of_both() {
        let word = |word: &str| Some(word.to_owned());
        let changes = Changes {
            rate: word("7mbit"),
            qdisc: word("pie"),
            down: word("fq_codel"),
            up: word("3mbit"),
            ..Changes::default()
        };
        let wanted = wanted(&changes, [Duration::ZERO; 2]).unwrap();
        let told: Vec<String> = wanted
            .iter()
            .map(|(direction, change)| match change {
                Change::Rate(rate) => format!("{direction} {}", Exact(*rate)),
                Change::Qdisc(line) => format!("{direction} {}", line.text()),
                Change::Delay(delay) => format!("{direction} {}", Exact(*delay)),
            })
            .collect();
        assert_eq!(told, ["down 7Mbit", "down fq_codel", "up 3Mbit", "up pie"]);
    }
}
