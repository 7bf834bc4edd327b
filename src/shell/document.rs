//! What a link saw, as one document: for `--json`, for who watches, and for the block at the end.

use std::fs;
use std::time::Duration;

use dualq_link::{DirectionSnapshot, QueueSnapshot, Snapshot, Times};
use dualq_qdisc::show;
use dualq_scenario::Direction;
use dualq_scenario::summary::millis;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A thread that works so much of the time has none left.
const BUSY: f64 = 0.9;

/// A link at a moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Document {
    /// Who wrote it.
    pub(crate) program: String,
    /// Of the command, or the shell.
    pub(crate) command: String,
    /// Seconds since the link began.
    pub(crate) seconds: f64,
    pub(crate) base_rtt_ms: f64,
    /// From far to near, and from near to far.
    pub(crate) down: Way,
    pub(crate) up: Way,
    /// Whether the figures are those of the path, and not of this machine.
    pub(crate) valid: bool,
    /// Why not.
    pub(crate) why_not: Vec<String>,
}

/// One direction.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Way {
    /// What its rate was set to last, in tc's words; none if it has none.
    pub(crate) rate: Option<String>,
    pub(crate) qdisc: Option<String>,
    pub(crate) delay_ms: f64,
    pub(crate) came: Amount,
    pub(crate) left: Amount,
    pub(crate) lost: Lost,
    /// CE marks of its queues.
    pub(crate) marked: u64,
    pub(crate) copied: u64,
    /// Packets inside now.
    pub(crate) inside: u64,
    /// How long packets were in the bottleneck's queue, for each of those inside it (`L` and `C` of dualpi2).
    pub(crate) queue_delay: Vec<Delay>,
    /// The queues of elements of the path, in the order in which packets meet them.
    #[serde(default)]
    pub(crate) other_queues: Vec<OtherQueue>,
    /// How much later than the path said packets were written.
    pub(crate) lateness: Delay,
    /// Packets that the device dropped before the link could read them.
    pub(crate) device_dropped: u64,
    /// Packets that came while its thread had not read all that was there for longer than 10 ms.
    #[serde(default)]
    pub(crate) behind: u64,
    /// How much of a processor its thread used.
    pub(crate) cpu: f64,
    /// Why it stopped, if it did.
    pub(crate) failed: Option<String>,
    /// As `tc -j -s qdisc show` has it.
    pub(crate) statistics: Option<Value>,
    /// As `tc -s qdisc show` has it.
    #[serde(skip)]
    pub(crate) text: String,
}

/// The queue of an element that is a bottleneck.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct OtherQueue {
    /// How long packets were in it. Its name says where it is: `before 1`, the first element before the bottleneck.
    pub(crate) delay: Delay,
    /// As `tc -j -s qdisc show` has it.
    pub(crate) statistics: Value,
    /// As `tc -s qdisc show` has it.
    #[serde(skip)]
    pub(crate) text: String,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Amount {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

/// Packets by what lost them.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Lost {
    pub(crate) queue: u64,
    pub(crate) random: u64,
    pub(crate) too_long: u64,
    pub(crate) policed: u64,
    pub(crate) flushed: u64,
    /// Errors of the link itself: no memory, and a device that takes no more.
    pub(crate) no_room: u64,
    pub(crate) refused: u64,
}

/// Many times.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Delay {
    pub(crate) name: String,
    pub(crate) packets: u64,
    /// All of them together, from which means over some time follow.
    pub(crate) sum_ms: f64,
    pub(crate) mean_ms: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p95_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) max_ms: f64,
}

impl Delay {
    fn of(name: &str, times: &Times) -> Self {
        let ms = |time: Duration| millis(time.as_nanos() as f64);
        Self {
            name: name.to_owned(),
            packets: times.count(),
            sum_ms: times.count() as f64 * times.mean().as_secs_f64() * 1e3,
            mean_ms: ms(times.mean()),
            p50_ms: ms(times.at(0.5)),
            p95_ms: ms(times.at(0.95)),
            p99_ms: ms(times.at(0.99)),
            max_ms: ms(times.max()),
        }
    }
}

/// What was asked of a direction, as it stands now.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Setting {
    pub(crate) rate: Option<String>,
    pub(crate) delay: Duration,
    /// Where other queues are, in the order in which packets meet them.
    pub(crate) others: Vec<String>,
}

impl Document {
    pub(crate) fn of(
        snapshot: &Snapshot,
        command: &str,
        (passed, base_rtt): (Duration, Duration),
        settings: &[Setting; 2],
        cpu: [Duration; 2],
    ) -> Self {
        let way = |at: usize, seen: &DirectionSnapshot| {
            let share = cpu[at].as_secs_f64() / passed.as_secs_f64().max(f64::MIN_POSITIVE);
            Way::of(seen, &settings[at], (share * 1e3).round() / 1e3)
        };
        let (down, up) = (way(0, &snapshot.down), way(1, &snapshot.up));
        let queues: f64 = [&down, &up].iter().map(|way| way.mean_queue_ms()).sum();
        let late = snapshot.too_late(base_rtt + Duration::from_secs_f64(queues / 1e3));
        let ways = [
            (Direction::Down, &down, snapshot.down.is_behind()),
            (Direction::Up, &up, snapshot.up.is_behind()),
        ];
        let why_not: Vec<String> = ways
            .into_iter()
            .flat_map(|(direction, way, is_behind)| {
                let faults = way.faults(late.is_some(), is_behind).into_iter();
                faults.map(move |fault| format!("{direction}: {fault}"))
            })
            .chain(late.map(|late| late.to_string()))
            .collect();
        Self {
            program: crate::run::PROGRAM.to_owned(),
            command: command.to_owned(),
            seconds: dualq_scenario::summary::thousandths(passed.as_secs_f64()),
            base_rtt_ms: millis(base_rtt.as_nanos() as f64),
            down,
            up,
            valid: why_not.is_empty(),
            why_not,
        }
    }
}

fn statistics(queue: &QueueSnapshot) -> Value {
    show::json_with_stats(&queue.config, &queue.stats).into()
}

impl Way {
    fn of(seen: &DirectionSnapshot, setting: &Setting, cpu: f64) -> Self {
        let figures = &seen.figures;
        let amount =
            |amount: dualq_link::Amount| Amount { packets: amount.packets, bytes: amount.bytes };
        let lost = figures.lost;
        let queue = seen.queue.as_ref();
        Self {
            rate: setting.rate.clone(),
            qdisc: queue.map(|queue| {
                format!("{} {}", queue.config.kind(), queue.config).trim_end().to_owned()
            }),
            delay_ms: millis(setting.delay.as_nanos() as f64),
            came: amount(figures.came),
            left: amount(figures.left),
            lost: Lost {
                queue: lost.queue,
                random: lost.random,
                too_long: lost.too_long,
                policed: lost.policed,
                flushed: lost.flushed,
                no_room: lost.no_room,
                refused: lost.refused,
            },
            marked: figures.marked,
            copied: figures.copied,
            inside: seen.inside,
            queue_delay: figures
                .bands
                .iter()
                .map(|band| Delay::of(band.name, &band.delays))
                .collect(),
            other_queues: setting
                .others
                .iter()
                .zip(figures.others.iter().zip(&seen.others))
                .map(|(at, (delays, queue))| OtherQueue {
                    delay: Delay::of(at, delays),
                    statistics: statistics(queue),
                    text: queue.text(),
                })
                .collect(),
            lateness: Delay::of("", &figures.lateness),
            device_dropped: seen.device_dropped,
            behind: seen.behind,
            cpu,
            failed: seen.failed.clone(),
            statistics: queue.map(statistics),
            text: queue.map(QueueSnapshot::text).unwrap_or_default(),
        }
    }

    /// How long packets were in queues on average: in one of those of the bottleneck, and in each of the others.
    fn mean_queue_ms(&self) -> f64 {
        let packets: u64 = self.queue_delay.iter().map(|delay| delay.packets).sum();
        let sum: f64 = self.queue_delay.iter().map(|delay| delay.sum_ms).sum();
        let others: f64 = self.other_queues.iter().map(|other| other.delay.mean_ms).sum();
        sum / packets.max(1) as f64 + others
    }

    /// What is of this machine and not of the path, where the link was late or not, and its thread read too slowly or not.
    fn faults(&self, is_late: bool, is_behind: bool) -> Vec<String> {
        let mut faults = Vec::new();
        faults.extend(self.failed.clone());
        let lost = self.device_dropped + self.lost.no_room + self.lost.refused;
        if lost > 0 {
            faults.push(format!("{lost} packets were lost by the devices and not by the path"));
        }
        if is_behind {
            let rate = self.rate.as_deref().unwrap_or("no rate");
            faults.push(format!(
                "more came than its thread could read, and {} packets waited before the link: this machine cannot keep {rate}",
                self.behind
            ));
        } else if (is_late || !faults.is_empty()) && self.cpu > BUSY {
            let rate = self.rate.as_deref().unwrap_or("no rate");
            faults.push(format!(
                "its thread was busy {:.0} % of the time: this machine cannot keep {rate}",
                self.cpu * 100.0
            ));
        }
        faults
    }
}

/// The time of processors that the link's two threads have used so far. The kernel counts it in hundredths of a second.
pub(crate) fn cpu() -> [Duration; 2] {
    let mut used = [Duration::ZERO; 2];
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return used };
    for task in tasks.flatten() {
        let Ok(stat) = fs::read_to_string(task.path().join("stat")) else { continue };
        let Some((before, rest)) = stat.rsplit_once(')') else { continue };
        let name = before.split_once('(').map_or("", |(_, name)| name);
        let at = match name {
            "link down" => 0,
            "link up" => 1,
            _ => continue,
        };
        // User and system time are the 14th and 15th field of proc(5), and here the state, the 3rd, is the first.
        let ticks: u64 = rest
            .split_whitespace()
            .skip(11)
            .take(2)
            .filter_map(|ticks| ticks.parse::<u64>().ok())
            .sum();
        used[at] = Duration::from_millis(10 * ticks);
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_devices_lose_is_no_loss_of_the_path() {
        let lossy =
            Way { device_dropped: 2, cpu: 0.97, rate: Some("10Gbit".to_owned()), ..Way::default() };
        let faults = lossy.faults(false, false);
        assert!(
            faults[0].starts_with("2 packets") && faults[1].contains("cannot keep 10Gbit"),
            "{faults:?}"
        );
        let busy = Way { cpu: 0.97, ..Way::default() };
        assert!(busy.faults(false, false).is_empty());
        assert_eq!(busy.faults(true, false).len(), 1);
    }

    #[test]
    fn a_rate_that_this_machine_cannot_keep_is_not_valid() {
        let link = dualq_scenario::Link::default();
        let (options, start) = (dualq_link::Options::default(), dualq_units::Instant::ZERO);
        let engine = dualq_link::Engine::new(&link.passage(Direction::Down), &options, start, None);
        let mut snapshot = Snapshot { down: engine.snapshot(), ..Snapshot::default() };
        snapshot.down.figures.came.packets = 10_000;
        let setting =
            Setting { rate: Some("40Gbit".to_owned()), delay: Duration::ZERO, others: Vec::new() };
        let mut document = |behind| {
            snapshot.down.behind = behind;
            let times = (Duration::from_secs(1), Duration::from_millis(50));
            Document::of(&snapshot, "", times, &[setting.clone(), setting.clone()], cpu())
        };
        // A hundredth may be.
        assert!(document(100).valid);
        let not_valid = document(101);
        assert!(!not_valid.valid);
        assert_eq!(
            not_valid.why_not,
            [
                "down: more came than its thread could read, and 101 packets waited before the link: this machine cannot keep 40Gbit"
            ]
        );
    }
}
