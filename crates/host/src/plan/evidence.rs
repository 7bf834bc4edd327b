//! What a simulation is asked before a plan is made, and what follows from its answers.
//!
//! This crate simulates nothing. [`Question::each`] says what to try, somebody runs it in a world, and [`Evidence`] chooses by what
//! came of it.

use std::collections::HashMap;
use std::time::Duration;

use dualq_qdisc::{Spec, grammar};
use dualq_units::Rate;

use super::decide::{Decision, Site, decide};
use super::ingress::Down;
use super::linux::{CC, ECN, asks_for_ecn};
use super::queue;
use super::sysctls::{Path, plain};
use super::{Aim, PlanError, Profile, Requirements};
use crate::Facts;
use crate::facts::Interface;

/// How many large transfers there are at once: one hides what several do to each other.
pub const FLOWS: [u32; 3] = [1, 4, 20];
/// Where the bottleneck is somebody else's, its queue is not known. A thousand full packets are Linux's default, and not
/// unusual; in bytes, for what is an aggregate on this machine is none there.
const UNKNOWN_QUEUE: &str = "bfifo limit 1514000";
/// Two figures that differ by less are equal: the next seed may turn them round.
pub const EQUAL: f64 = 1.2;
/// The same for throughput and fairness.
const ALIKE: f64 = 0.98;
/// What is added to both sides of a ratio of delays: less than a millisecond nobody feels.
pub const FELT_MS: f64 = 1.0;
/// How much throughput a short queue may cost.
const LOST: f64 = 0.05;

/// The large transfers' sender.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sender {
    /// Its congestion control, by the kernel's name.
    pub cc: String,
    /// Whether it asks for ECN.
    pub ecn: bool,
}

/// What is to be run: so many transfers, short ones and a probe beside them, through a queue at the bottleneck.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Trial {
    /// The bottleneck's discipline in tc's words, with its own shaper if it has one.
    pub queue: String,
    /// Who sends.
    pub sender: Sender,
    /// How many large transfers.
    pub flows: u32,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// The 99th percentile of the probe's round trips, above the base, in milliseconds.
    pub p99_ms: f64,
    /// Goodput of the large transfers, in Mbit/s.
    pub goodput_mbit: f64,
    /// Jain's index of the large transfers.
    pub fairness: f64,
    /// Where it ran: `model`, `kernel`.
    pub world: String,
}

/// Where the acknowledgements go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Back {
    /// The rate of its bottleneck.
    pub rate: Rate,
    /// The queue there now, in tc's words.
    pub now: String,
    /// The queue there with the plan.
    pub then: String,
}

/// What to find out before a plan is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The interface.
    pub dev: String,
    /// Whether it is about what arrives: the bottleneck is then at the other end of the link, and each option behind it.
    pub arriving: bool,
    /// The bottleneck's rate.
    pub rate: Rate,
    /// The rate of the other direction, where acknowledgements go, if it is known, and the queue there, now and then.
    pub back: Option<Back>,
    /// The base round-trip time.
    pub rtt: Duration,
    /// Where that is from.
    pub rtt_from: &'static str,
    /// Whether the queue sees one flow, whatever is sent.
    pub one_flow: bool,
    /// What packets wait in now, in tc's words.
    pub now: String,
    /// Whether that is known; otherwise it is somebody else's, and assumed.
    pub now_known: bool,
    /// What could be chosen, what the traffic calls for first.
    pub options: Vec<String>,
    /// How many of these the traffic calls for: only they are chosen among.
    pub fitting: usize,
    /// Who sends now. Whoever forwards for others does not know, so that there are several.
    pub before: Vec<Sender>,
    /// Who will send.
    pub after: Vec<Sender>,
    aim: Aim,
    /// Somebody asked for the one option that there is.
    is_asked: bool,
}

impl Question {
    /// What to find out for these requirements: of each interface with a `--rate` what leaves, of each with a `--down` what arrives.
    /// With `all` also of one with neither, if it tells its speed.
    ///
    /// # Errors
    /// As [`Plan::make`](super::Plan::make); and with `all`, if no rate is known.
    pub fn each(
        facts: &Facts,
        requirements: &Requirements,
        all: bool,
    ) -> Result<Vec<Self>, PlanError> {
        let decision = decide(facts, requirements, &[])?;
        let mut questions = Vec::new();
        for site in &decision.sites {
            let class = site.requirements.parent;
            if let Some(class) = class.filter(|_| all) {
                return Err(PlanError::Requirement(format!(
                    "--predict: what class {class} of {} gets of the link is up to its tree, so nothing is simulated below it: leave one of --predict and \
                     --parent out",
                    site.interface.name
                )));
            }
            // Somebody who asks only for what arrives gets only that.
            let is_asked = site.requirements.rate.is_some() || (all && site.down.is_none());
            if is_asked && class.is_none() {
                questions.push(Self::of_leaving(facts, &decision, site)?);
            }
            questions.extend(site.down.as_ref().map(|down| Self::of_arriving(facts, site, down)));
        }
        Ok(questions)
    }

    fn of_leaving(
        facts: &Facts,
        decision: &Decision<'_>,
        site: &Site<'_>,
    ) -> Result<Self, PlanError> {
        let requirements = &site.requirements;
        let dev = site.interface.name.clone();
        let rate = site.rate.ok_or_else(|| {
            let message =
                format!("give a --rate: without one there is no bottleneck at {dev} to simulate");
            PlanError::Requirement(message)
        })?;
        let (rtt, rtt_from) = Path::rtt(facts, requirements);
        let (now, now_known) =
            present(site.interface, rate, queue::limit(requirements, site.interface).is_some());
        let running = |key: &str| facts.sysctls.get(key).map(|value| plain(value));
        let planned = |key: &str| {
            let wanted = decision.wanted.iter().find(|wanted| wanted.key == key);
            wanted.map(|wanted| wanted.value.clone()).or_else(|| running(key))
        };
        let one_flow = !site.traffic.is_apart();
        let sender = |cc: Option<String>, ecn: Option<String>| {
            let cc = cc.unwrap_or_else(|| "cubic".to_owned());
            // Not every tunnel copies the field to the outside.
            let ecn = cc == "dctcp" || (!one_flow && asks_for_ecn(ecn.as_ref()));
            vec![Sender { cc, ecn }]
        };
        let (before, after) =
            if requirements.profile == Profile::Gateway && requirements.cc.is_none() {
                (anybody(), anybody())
            } else {
                (sender(running(CC), running(ECN)), sender(decision.cc.clone(), planned(ECN)))
            };
        let options: Vec<String> = if site.choices.is_empty() {
            vec![site.queue.line.as_ref().map_or_else(|| now.clone(), ToString::to_string)]
        } else {
            site.choices.iter().map(|choice| choice.line.clone()).collect()
        };
        let fitting = site.choices.iter().filter(|choice| choice.fits).count().max(1);
        Ok(Self {
            dev,
            arriving: false,
            rate,
            back: requirements.down.map(Back::unknown),
            rtt,
            rtt_from,
            one_flow,
            now,
            now_known,
            options,
            fitting,
            before,
            after,
            aim: requirements.aim,
            is_asked: requirements.qdisc.is_some(),
        })
    }

    /// Who sends what arrives is not known.
    fn of_arriving(facts: &Facts, site: &Site<'_>, down: &Down<'_>) -> Self {
        let requirements = &site.requirements;
        let (rtt, rtt_from) = Path::rtt(facts, requirements);
        let (now, now_known) = match down.there {
            Some(there) => present(there, down.rate, true),
            None => (UNKNOWN_QUEUE.to_owned(), false),
        };
        let back = requirements.rate.map(|rate| match &site.queue.line {
            Some(line) => Back { then: line.to_string(), ..Back::unknown(rate) },
            None => Back::unknown(rate),
        });
        Self {
            dev: site.interface.name.clone(),
            arriving: true,
            rate: down.rate,
            back,
            rtt,
            rtt_from,
            one_flow: !site.traffic.is_apart(),
            now,
            now_known,
            options: match down.choices.as_slice() {
                [] => vec![down.line.to_string()],
                choices => choices.iter().map(|choice| choice.line.clone()).collect(),
            },
            fitting: down.choices.iter().filter(|choice| choice.fits).count().max(1),
            before: anybody(),
            after: anybody(),
            aim: requirements.aim,
            is_asked: requirements.down_qdisc.is_some(),
        }
    }

    /// What packets wait in at the other end of the link, in tc's words: nobody here knows, so it is what is usual.
    #[must_use]
    pub const fn far_queue() -> &'static str {
        UNKNOWN_QUEUE
    }

    /// What to run: for the choice alone, or for a table of all that there is and of who is to thank for what.
    #[must_use]
    pub fn trials(&self, all: bool) -> Vec<Trial> {
        let options = if all { &self.options } else { &self.options[..self.fitting] };
        let mut trials: Vec<Trial> = Vec::new();
        let mut add = |queue: &String, senders: &[Sender]| {
            for sender in senders {
                for flows in FLOWS {
                    let trial = Trial { queue: queue.clone(), sender: sender.clone(), flows };
                    if !trials.contains(&trial) {
                        trials.push(trial);
                    }
                }
            }
        };
        add(&self.now, &self.before);
        for option in options {
            add(option, &self.after);
        }
        if all {
            add(&self.now, &self.after);
            for option in &self.options[..self.fitting] {
                add(option, &self.before);
            }
        }
        trials
    }
}

impl Back {
    fn unknown(rate: Rate) -> Self {
        Self { rate, now: UNKNOWN_QUEUE.to_owned(), then: UNKNOWN_QUEUE.to_owned() }
    }
}

/// Who sends where nobody knows.
fn anybody() -> Vec<Sender> {
    ["cubic", "bbr"].map(|cc| Sender { cc: cc.to_owned(), ecn: false }).to_vec()
}

/// What packets wait in now, and whether that is known.
fn present(interface: &Interface, link: Rate, elsewhere: bool) -> (String, bool) {
    let words = |kind: &str, options: Option<&str>| {
        // tc shows units that it does not read.
        let read = options.unwrap_or_default().split_whitespace().map(|word| {
            let number = word.trim_end_matches(['p', 'B']);
            let plain = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit());
            if plain { number } else { word }
        });
        let all = format!("{kind} {}", read.collect::<Vec<_>>().join(" "));
        let all = all.trim_end().to_owned();
        if grammar::parse(&all).is_ok() { all } else { kind.to_owned() }
    };
    let line = |place: &str| {
        let found = interface.qdiscs.iter().find(|qdisc| qdisc.parent == place);
        found.map(|qdisc| (qdisc, words(&qdisc.kind, qdisc.options.as_deref())))
    };
    let unknown = (UNKNOWN_QUEUE.to_owned(), false);
    let Some((root, outer)) = line("root") else { return unknown };
    if root.kind == "mq" {
        let children = interface.leaving().find(|qdisc| qdisc.parent != "root");
        let kind = children.map_or("pfifo_fast", |qdisc| qdisc.kind.as_str());
        return if elsewhere { unknown } else { (kind.to_owned(), true) };
    }
    let inner = line(&format!("{}1", root.handle));
    let whole = match inner {
        Some((_, inner)) => format!("{outer} leaf {inner}"),
        None => outer,
    };
    let shaped = grammar::parse(&whole).ok().and_then(|parsed| queue::shaper_rate(&parsed.spec));
    match shaped {
        Some(rate) if rate < link => (whole, true),
        _ if elsewhere => unknown,
        _ => (whole, true),
    }
}

/// What was found out.
#[derive(Clone, Debug)]
pub struct Evidence {
    question: Question,
    figures: HashMap<Trial, Figures>,
}

/// How a queue does with its senders.
#[derive(Clone, Debug, PartialEq)]
pub struct Row<'a> {
    /// The queue, in tc's words.
    pub queue: &'a str,
    /// Who sends.
    pub sender: &'a Sender,
    /// The number of transfers with which it is worst, and what it then is.
    pub worst: (u32, &'a Figures),
    /// The least goodput and fairness with any number.
    pub least: (f64, f64),
}

fn innermost(spec: &Spec) -> &Spec {
    spec.leaf().map_or(spec, innermost)
}

fn felt(ms: f64) -> f64 {
    ms.max(0.0) + FELT_MS
}

impl Evidence {
    /// What came of the trials; those that nobody could run are left out.
    #[must_use]
    pub fn new(question: Question, figures: impl IntoIterator<Item = (Trial, Figures)>) -> Self {
        Self { question, figures: figures.into_iter().collect() }
    }

    /// What was asked.
    #[must_use]
    pub const fn question(&self) -> &Question {
        &self.question
    }

    /// What came of one trial.
    #[must_use]
    pub fn of(&self, queue: &str, sender: &Sender, flows: u32) -> Option<&Figures> {
        let trial = Trial { queue: queue.to_owned(), sender: sender.clone(), flows };
        self.figures.get(&trial)
    }

    /// How a queue does with a sender; `None` if not all of it was run.
    #[must_use]
    pub fn row<'a>(&'a self, queue: &'a str, sender: &'a Sender) -> Option<Row<'a>> {
        let all: Option<Vec<_>> =
            FLOWS.iter().map(|flows| Some((*flows, self.of(queue, sender, *flows)?))).collect();
        let all = all?;
        let worst = all
            .iter()
            .copied()
            .max_by(|(_, one), (_, other)| one.p99_ms.total_cmp(&other.p99_ms))?;
        let least = |of: fn(&Figures) -> f64| {
            all.iter().map(|(_, figures)| of(figures)).fold(f64::INFINITY, f64::min)
        };
        let least = (least(|figures| figures.goodput_mbit), least(|figures| figures.fairness));
        Some(Row { queue, sender, worst, least })
    }

    /// All rows that were run, each queue with each sender: the worst first.
    #[must_use]
    pub fn rows(&self) -> Vec<Row<'_>> {
        let Question { now, options, before, after, .. } = &self.question;
        let mut queues: Vec<&str> = vec![now];
        queues.extend(options.iter().map(String::as_str).filter(|option| option != now));
        let mut senders: Vec<&Sender> = before.iter().collect();
        senders.extend(after.iter().filter(|sender| !before.contains(sender)));
        let pairs =
            queues.iter().flat_map(|queue| senders.iter().map(move |sender| (*queue, *sender)));
        let mut rows: Vec<Row<'_>> =
            pairs.filter_map(|(queue, sender)| self.row(queue, sender)).collect();
        rows.sort_by(|one, other| other.worst.1.p99_ms.total_cmp(&one.worst.1.p99_ms));
        rows
    }

    /// The worst row of a queue with these senders; `None` if not all of it was run.
    fn worst<'a>(&'a self, queue: &'a str, senders: &'a [Sender]) -> Option<Row<'a>> {
        let rows: Option<Vec<_>> = senders.iter().map(|sender| self.row(queue, sender)).collect();
        rows?.into_iter().max_by(|one, other| one.worst.1.p99_ms.total_cmp(&other.worst.1.p99_ms))
    }

    /// The least share that a queue has of what the best of `among` has in the same trial.
    fn share(&self, queue: &str, among: &[&String], of: fn(&Figures) -> f64) -> f64 {
        let senders = self.question.after.iter();
        let trials = senders.flat_map(|sender| FLOWS.map(|flows| (sender, flows)));
        let shares = trials.filter_map(|(sender, flows)| {
            let get = |queue: &str| self.of(queue, sender, flows).map(of);
            let best = among.iter().filter_map(|queue| get(queue)).fold(0.0, f64::max);
            (best > 0.0).then_some(get(queue)? / best)
        });
        shares.fold(1.0, f64::min)
    }

    /// What to choose, by the aim of the question, among what the traffic calls for. Equals are as good as the first of them.
    #[must_use]
    pub fn chosen(&self) -> &str {
        let Question { options, fitting, after, aim, .. } = &self.question;
        let known: Vec<&String> = options[..*fitting]
            .iter()
            .filter(|option| self.worst(option, after).is_some())
            .collect();
        let share = |queue: &str, of| self.share(queue, &known, of);
        let enough = |queue: &&String| match aim {
            Aim::Latency => share(queue, |figures| figures.goodput_mbit) >= 1.0 - LOST,
            Aim::Throughput => share(queue, |figures| figures.goodput_mbit) >= 0.99,
            Aim::Fair => share(queue, |figures| figures.fairness) >= 0.99,
        };
        let mut among: Vec<&String> = known.iter().copied().filter(enough).collect();
        if among.is_empty() {
            // None is best in every trial: then that one which is nowhere far from it.
            let of = match aim {
                Aim::Fair => |figures: &Figures| figures.fairness,
                Aim::Latency | Aim::Throughput => |figures: &Figures| figures.goodput_mbit,
            };
            let best = known.iter().map(|queue| share(queue, of)).fold(0.0, f64::max);
            let best = known.iter().copied().find(|queue| share(queue, of) >= best * ALIKE);
            among.extend(best);
        }
        let delay = |queue: &str| {
            self.worst(queue, after).map_or(f64::INFINITY, |row| felt(row.worst.1.p99_ms))
        };
        let best = among.iter().map(|queue| delay(queue)).fold(f64::INFINITY, f64::min);
        let first = among.into_iter().find(|queue| delay(queue) <= best * EQUAL);
        first.unwrap_or(&options[0])
    }

    /// The delays with the choice and now, if all that the kernel has is FIFOs, and the best of them is worse than what is there: then nothing is to
    /// be put there.
    pub(super) fn better_left(&self) -> Option<(f64, f64)> {
        let Question { now, before, after, options, aim, is_asked, .. } = &self.question;
        let is_fifo = |option: &String| {
            let parsed = grammar::parse(option).ok();
            parsed.is_some_and(|line| innermost(&line.spec).kind() == "pfifo")
        };
        if *is_asked || *aim != Aim::Latency || !options.iter().all(is_fifo) {
            return None;
        }
        let (now, then) = (self.worst(now, before)?, self.worst(self.chosen(), after)?);
        let (p99_now, p99_then) = (now.worst.1.p99_ms, then.worst.1.p99_ms);
        (felt(p99_then) > felt(p99_now) * EQUAL).then_some((p99_then, p99_now))
    }

    /// What the plan takes: the choice, unless it is better to leave what there is.
    #[must_use]
    pub fn taken(&self) -> Option<&str> {
        self.better_left().is_none().then(|| self.chosen())
    }

    /// What is worse with the choice than it is now, if anything is.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let Question { now, before, after, .. } = &self.question;
        let (now, then) = (self.worst(now, before)?, self.worst(self.chosen(), after)?);
        let (p99_now, p99_then) = (now.worst.1.p99_ms, then.worst.1.p99_ms);
        if felt(p99_then) > felt(p99_now) * EQUAL {
            return Some(format!(
                "worse than now in the simulation: ssh's p99 is {p99_then:.1} ms above the base, now {p99_now:.1} ms"
            ));
        }
        // The worst may be of twenty flows, and a few be what this host has.
        let some = FLOWS.into_iter().find_map(|flows| {
            let p99 = |queue: &str, senders: &[Sender]| {
                let figures = senders.iter().filter_map(|sender| self.of(queue, sender, flows));
                figures.map(|figures| figures.p99_ms).reduce(f64::max)
            };
            let (p99_now, p99_then) =
                (p99(&self.question.now, before)?, p99(self.chosen(), after)?);
            (felt(p99_then) > felt(p99_now) * EQUAL * EQUAL).then_some((flows, p99_then, p99_now))
        });
        if let Some((flows, p99_then, p99_now)) = some {
            return Some(format!(
                "worse than now in the simulation with {flows} large transfers: ssh's p99 is {p99_then:.1} ms above the base, now \
                 {p99_now:.1} ms"
            ));
        }
        // The shaper takes its margin beside what a short queue may cost.
        let (least_now, least_then) = (now.least.0, then.least.0);
        (least_then < least_now * (1.0 - 2.0 * LOST)).then(|| {
            format!("less throughput than now in the simulation: {least_then:.2} Mbit/s, now {least_now:.2}")
        })
    }

    /// A queue that the traffic calls for and that keeps ssh's delay much shorter, but costs too much throughput to be chosen, with the
    /// share that is left of what the best has.
    #[must_use]
    pub fn dearer(&self) -> Option<(Row<'_>, f64)> {
        let Question { options, fitting, after, .. } = &self.question;
        let chosen = felt(self.worst(self.chosen(), after)?.worst.1.p99_ms);
        let known: Vec<&String> = options[..*fitting].iter().collect();
        let rows = known.iter().filter_map(|option| self.worst(option, after));
        let best = rows.min_by(|one, other| one.worst.1.p99_ms.total_cmp(&other.worst.1.p99_ms))?;
        let share = self.share(best.queue, &known, |figures| figures.goodput_mbit);
        (chosen > felt(best.worst.1.p99_ms) * EQUAL * EQUAL).then_some((best, share))
    }

    /// A better queue that the traffic does not call for, if the simulation knows one: what is given up for the rule.
    #[must_use]
    pub fn better(&self) -> Option<Row<'_>> {
        let Question { options, fitting, after, .. } = &self.question;
        let chosen = felt(self.worst(self.chosen(), after)?.worst.1.p99_ms);
        let others = options[*fitting..].iter().filter_map(|option| self.worst(option, after));
        let best =
            others.min_by(|one, other| one.worst.1.p99_ms.total_cmp(&other.worst.1.p99_ms))?;
        (chosen > felt(best.worst.1.p99_ms) * EQUAL * EQUAL).then_some(best)
    }

    /// The table as a plan holds it: a line for each queue with each sender, the worst first.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let rows = self.rows();
        if rows.is_empty() {
            return Vec::new();
        }
        let Question { arriving, rate, rtt, rtt_from, one_flow, now, now_known, .. } =
            &self.question;
        let tunnel = if *one_flow { ", all of it one flow to the queue" } else { "" };
        let what = if *arriving { "what arrives, " } else { "" };
        let mut lines = vec![format!(
            "{what}at {rate} and {} ms ({rtt_from}), the worst of 1, 4 and 20 large transfers, short ones and ssh beside them{tunnel}; \
             ssh's p99 is above the base",
            rtt.as_secs_f64() * 1e3
        )];
        for row in rows {
            let (flows, figures) = row.worst;
            let mut queue = row.queue.to_owned();
            if row.queue == now {
                queue = if *now_known {
                    format!("now, {queue}")
                } else {
                    format!("now, assumed {queue}")
                };
            } else if self.taken() == Some(row.queue) {
                queue = format!("chosen, {queue}");
            }
            lines.push(format!(
                "{queue}; {flows} x {}{}: p99 {:.1} ms, {:.2} Mbit/s, fairness {:.3} ({})",
                row.sender.cc,
                if row.sender.ecn { " with ECN" } else { "" },
                figures.p99_ms,
                figures.goodput_mbit,
                figures.fairness,
                figures.world,
            ));
        }
        lines
    }
}
