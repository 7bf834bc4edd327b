//! Reading what the kernel tells of its queue disciplines.

use std::time::Duration;

use dualq_qdisc::Config;
use dualq_qdisc::show::{Counters, Stats};

use crate::Handle;
use crate::attributes::{u32_at, u64_at};
use crate::channel::messages;
use crate::header::Tc;
use crate::kinds::{self, Parameters, Statistics, TCA_KIND, TCA_OPTIONS};
use crate::qdisc::{RTM_NEWQDISC, RTM_NEWTCLASS};

const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TCA_STATS_APP: u16 = 4;
const TCA_STATS_PKT64: u16 = 8;

/// As in the grammar: no line has more disciplines inside one another.
const DEEPEST: u32 = 8;

/// A queue discipline of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Its number; those that the kernel put there itself have none.
    pub handle: Handle,
    /// [`Handle::ROOT`], or the class that it is in.
    pub parent: Handle,
    /// Its kind, as tc names it.
    pub kind: String,
    /// Its parameters; `None` if dualq does not know the kind, or cannot say what this one was told.
    pub config: Option<Config>,
    /// All that it counts; `None` if dualq cannot read what this kind counts.
    pub stats: Option<Stats>,
    /// What every discipline counts.
    pub counters: Counters,
    /// Packets that the device did not take.
    pub requeues: u64,
    /// Of `fq_codel`: how long the packet last taken from each flow had waited, of the flows that have their turn just now.
    pub flow_delays: Vec<Duration>,
}

/// A message about a discipline or a class.
struct Entry<'a> {
    handle: Handle,
    parent: Handle,
    kind: &'a str,
    options: Option<&'a [u8]>,
    counters: Counters,
    requeues: u64,
    /// What only its kind counts.
    own: Option<&'a [u8]>,
}

impl<'a> Entry<'a> {
    fn read(payload: &'a [u8], link: u32) -> Option<Self> {
        let (header, attributes) = Tc::read(payload)?;
        if header.link != link {
            return None;
        }
        let stats = attributes.nested(TCA_STATS2).unwrap_or_default();
        let queue = stats.get(TCA_STATS_QUEUE).unwrap_or_default();
        let field = |offset| u64::from(u32_at(queue, offset).unwrap_or(0));
        let basic = stats.get(TCA_STATS_BASIC).unwrap_or_default();
        let packets = u64::from(u32_at(basic, 8).unwrap_or(0));
        Some(Self {
            handle: header.handle,
            parent: header.parent,
            kind: attributes.string(TCA_KIND)?,
            options: attributes.get(TCA_OPTIONS),
            counters: Counters {
                sent_bytes: u64_at(basic, 0).unwrap_or(0),
                // 32 bits do not hold them for long.
                sent_packets: stats.u64(TCA_STATS_PKT64).unwrap_or(packets),
                backlog_packets: field(0),
                backlog_bytes: field(4),
                drops: field(8),
                overlimits: field(16),
            },
            requeues: field(12),
            own: stats.get(TCA_STATS_APP),
        })
    }
}

/// All that was told about a device.
struct Dump<'a> {
    queues: Vec<Entry<'a>>,
    classes: Vec<Entry<'a>>,
    tx_queue_length: u32,
}

impl Dump<'_> {
    /// The discipline in the class `1` of another, which is where dualq puts it.
    fn leaf(&self, of: &Entry<'_>) -> Option<&Entry<'_>> {
        let class = Handle::class(of.handle.major(), 1);
        self.queues.iter().find(|entry| of.handle.major() != 0 && entry.parent == class)
    }

    /// The one class of an `htb` of ours.
    fn class(&self, of: &Entry<'_>) -> Option<&Entry<'_>> {
        let major = of.handle.major();
        let mut classes = self.classes.iter().filter(|class| class.handle.major() == major);
        let class = classes.next()?;
        (class.handle.minor() == 1 && classes.next().is_none()).then_some(class)
    }

    /// How long packets of each flow waited, if its classes can be told from those of another discipline: what the kernel put there itself has
    /// no number.
    fn flow_delays(&self, entry: &Entry<'_>) -> Vec<Duration> {
        let is_alike = |other: &&Entry<'_>| {
            other.kind == entry.kind && other.handle.major() == entry.handle.major()
        };
        if entry.kind != "fq_codel" || self.queues.iter().filter(is_alike).count() != 1 {
            return Vec::new();
        }
        let flows = self.classes.iter().filter(is_alike);
        flows.filter_map(|flow| kinds::fq_codel::flow_delay(flow.own?)).collect()
    }

    fn config(&self, entry: &Entry<'_>, depth: u32) -> Option<Config> {
        let class = self.class(entry).and_then(|class| class.options);
        let options = entry.options?;
        let parameters = Parameters { options, class, tx_queue_length: self.tx_queue_length };
        let config = kinds::config(entry.kind, &parameters)?;
        let leaf = self.leaf(entry).filter(|_| depth < DEEPEST);
        Some(config.with_leaf(leaf.and_then(|leaf| self.config(leaf, depth + 1))))
    }

    fn stats(&self, entry: &Entry<'_>, depth: u32) -> Option<Stats> {
        let leaf = self.leaf(entry).filter(|_| depth < DEEPEST);
        let leaf = leaf.and_then(|leaf| self.stats(leaf, depth + 1));
        let teller = match entry.kind {
            "htb" => self.class(entry)?,
            _ => entry,
        };
        let statistics = Statistics { own: teller.own, counters: &teller.counters, leaf };
        let own = kinds::own_stats(entry.kind, statistics)?;
        Some(Stats { counters: entry.counters, own })
    }
}

impl Queue {
    /// The disciplines of the device `link` in an answer of the kernel: messages of `RTM_NEWQDISC`, and `RTM_NEWTCLASS` for
    /// the classes of `htb` and the flows of `fq_codel`. What cannot be read is left out. `tx_queue_length` is the device's.
    #[must_use]
    pub fn read(answer: &[u8], link: u32, tx_queue_length: u32) -> Vec<Self> {
        let entries = |kind| {
            let of_kind = messages(answer).filter(move |message| message.kind == kind);
            of_kind.filter_map(|message| Entry::read(message.payload, link)).collect()
        };
        let dump = Dump {
            queues: entries(RTM_NEWQDISC),
            classes: entries(RTM_NEWTCLASS),
            tx_queue_length,
        };
        let queue = |entry: &Entry<'_>| Self {
            handle: entry.handle,
            parent: entry.parent,
            kind: entry.kind.to_owned(),
            config: dump.config(entry, 0),
            stats: dump.stats(entry, 0),
            counters: entry.counters,
            requeues: entry.requeues,
            flow_delays: dump.flow_delays(entry),
        };
        dump.queues.iter().map(queue).collect()
    }
}

/// Whether a device has a discipline in an answer whose classes tell something.
pub(crate) fn has_classes(answer: &[u8], link: u32) -> bool {
    let entries = messages(answer).filter_map(|message| Entry::read(message.payload, link));
    entries.into_iter().any(|entry| matches!(entry.kind, "htb" | "fq_codel"))
}
