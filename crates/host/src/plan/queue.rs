//! Which queue discipline: what this kernel can really do, and what is lost with it.

use std::time::Duration;

use dualq_qdisc::{Device, Spec, grammar};
use dualq_units::{Bytes, Exact, Rate};

use super::{PlanError, Profile, Wishes};
use crate::Facts;
use crate::facts::{Availability, Blocked, Interface};

/// What is to be at the root of the interface.
#[derive(Debug)]
pub(super) struct Queue {
    /// The line; `None` if what is there is to stay.
    pub(super) line: Option<String>,
    /// Whether it has a shaper.
    pub(super) shaped: bool,
    pub(super) why: String,
    pub(super) source: &'static str,
    pub(super) notes: Vec<String>,
    /// What new interfaces and the queues of a multi-queue one should get by default, if that is the way to go.
    pub(super) default: Option<&'static str>,
}

/// What needs no change where there is no shaper.
pub(super) const KEEPING_APART: [&str; 5] = ["fq", "fq_codel", "cake", "dualpi2", "fq_pie"];
/// Above it, one queue with one lock for all CPUs costs more than some want to spend.
const MANY: Rate = Rate::from_mbit(1000);
/// What is put before a link that is known by its rate only is a little slower than that.
const BURST_TIME: Duration = Duration::from_millis(4);
/// A queue that only drops what does not fit should not hold more.
const FIFO_TIME: Duration = Duration::from_millis(20);
const FULL_FRAME: u64 = 1514;

/// A rate in tc's words, without rounding.
pub(super) fn rate_words(rate: Rate) -> String {
    Exact(rate).to_string().to_lowercase()
}

fn bytes_in(rate: Rate, time: Duration) -> u64 {
    let bits = u128::from(rate.as_bits_per_second()) * time.as_nanos() / 1_000_000_000;
    u64::try_from(bits / 8).unwrap_or(u64::MAX)
}

/// Whether a module that is there can be loaded.
pub(super) fn can_load(facts: &Facts, module: &str) -> bool {
    let blocked = |blocked: &Blocked| blocked.entirely && blocked.module == module;
    facts.kernel.modules && !facts.kernel.blocked.iter().any(blocked)
}

fn has(facts: &Facts, kind: &str) -> bool {
    // FIFOs are part of the scheduler itself.
    matches!(kind, "pfifo" | "bfifo" | "pfifo_fast")
        || match facts.qdiscs.get(kind) {
            Some(Availability::Ready) => true,
            Some(Availability::Module) => can_load(facts, &format!("sch_{kind}")),
            Some(Availability::Absent | Availability::Unknown) | None => false,
        }
}

/// All of a line, from the outside in.
pub(super) fn levels(spec: &Spec) -> Vec<&Spec> {
    std::iter::successors(Some(spec), |spec| spec.leaf()).collect()
}

/// The rate of a line that is a shaper.
pub(super) fn shaper_rate(spec: &Spec) -> Option<Rate> {
    match spec {
        Spec::Tbf(options) => Some(options.rate),
        Spec::Htb(options) => Some(options.rate),
        Spec::Cake(options) => options.bandwidth.filter(|rate| rate.as_bits_per_second() > 0),
        _ => None,
    }
}

/// Whether options read the same. The kernel rounds what a bucket holds: 24000 bytes of `tbf` at 48 Mbit/s read back as 23999.
fn alike(one: &str, other: &str) -> bool {
    let size = |word: &str| {
        let Bytes(bytes) = word.parse().ok().filter(|_| word.ends_with('b'))?;
        Some(bytes)
    };
    let near = |one: u64, other: u64| one.abs_diff(other) <= one / 1000;
    let same = |(one, other): (&str, &str)| {
        one == other || size(one).zip(size(other)).is_some_and(|(one, other)| near(one, other))
    };
    let (one, other) = (one.split_whitespace(), other.split_whitespace());
    one.clone().count() == other.clone().count() && one.zip(other).all(same)
}

/// Whether the line is what the interface has already.
pub(super) fn is_there(interface: &Interface, spec: &Spec) -> bool {
    let mut device = Device::ethernet(interface.mtu);
    device.tx_queue_length = interface.tx_queue_len.unwrap_or(device.tx_queue_length);
    let levels = levels(spec);
    let mut place = "root".to_owned();
    let same = levels.iter().all(|spec| {
        let found = interface.qdiscs.iter().find(|qdisc| qdisc.parent == place);
        found.is_some_and(|qdisc| {
            place = format!("{}1", qdisc.handle);
            let meant = spec.configure(&device).to_string();
            let options = qdisc.options.as_deref();
            qdisc.kind == spec.kind() && options.is_some_and(|options| alike(options, &meant))
        })
    });
    same && interface.qdiscs.len() == levels.len()
}

/// `leaf` behind a shaper, if the kernel has one.
fn shaped(facts: &Facts, rate: Rate, leaf: &str) -> Option<String> {
    let words = rate_words(rate);
    if has(facts, "htb") {
        return Some(format!("htb rate {words} leaf {leaf}"));
    }
    // tbf sends what its bucket holds at once, and its timer may be late by a jiffy.
    let burst = bytes_in(rate, BURST_TIME).max(2 * FULL_FRAME);
    has(facts, "tbf").then(|| format!("tbf rate {words} burst {burst}b latency 50ms leaf {leaf}"))
}

/// fq_codel whose target is no less than the time that a packet takes.
fn fq_codel(rate: Rate) -> String {
    let packet = rate.transmission_time(Bytes(FULL_FRAME));
    if packet * 3 / 2 <= Duration::from_millis(5) {
        return "fq_codel".to_owned();
    }
    let target = (packet * 3 / 2).as_millis() + 1;
    format!("fq_codel target {target}ms interval {}ms", 100.max(target * 10))
}

/// Chooses for a rate that is known.
fn behind_a_shaper(
    facts: &Facts,
    profile: Profile,
    rate: Rate,
    cc: Option<&str>,
) -> Result<Queue, PlanError> {
    let datacenter = profile == Profile::Datacenter;
    let done = |line: String, why: &str, source: &'static str, notes: Vec<String>| {
        Ok(Queue {
            line: Some(line),
            shaped: true,
            why: why.to_owned(),
            source,
            notes,
            default: None,
        })
    };
    let mut notes = Vec::new();
    let dualpi2 = if datacenter { "dualpi2 any_ect" } else { "dualpi2" };
    if let Some(line) = has(facts, "dualpi2").then(|| shaped(facts, rate, dualpi2)).flatten() {
        if cc == Some("bbr") {
            notes.push(
                "bbr answers neither ECN nor loss: several such flows make dualpi2 drop about 5 % of all packets; with more \
                 than one, --qdisc fq_codel serves better"
                    .to_owned(),
            );
        }
        let why = if datacenter {
            "the queue is where the shaper is; any_ect puts DCTCP's ECT(0) under the step marking of 1 ms"
        } else {
            "the queue is where the shaper is, and dualpi2 keeps it short: 15 ms for classic flows, its default target, 1 ms for \
             L4S flows"
        };
        return done(line, why, "RFC 9332 §2.4, tc-dualpi2(8), tc-htb(8)", notes);
    }
    let lacks = match facts.qdiscs.get("dualpi2") {
        Some(Availability::Unknown) => "it is not known whether this kernel has dualpi2",
        _ if facts.kernel.version() < (6, 17) => {
            "this kernel has no dualpi2, which came with Linux 6.17"
        }
        Some(Availability::Module) => "dualpi2 is a module that cannot be loaded here",
        _ if has(facts, "dualpi2") => "this kernel has neither htb nor tbf to shape before dualpi2",
        _ => "this kernel is built without dualpi2",
    };
    notes.push(format!(
        "{lacks}: lost is the L4S queue, 1 ms for Prague and for DCTCP with any_ect"
    ));
    if datacenter
        && let Some(leaf) = has(facts, "fq_codel").then_some("fq_codel ce_threshold 1ms")
        && let Some(line) = shaped(facts, rate, leaf)
    {
        let why = "without dualpi2, fq_codel's ce_threshold gives DCTCP the shallow marking that it needs";
        return done(line, why, "RFC 8257 §4.1, tc-fq_codel(8)", notes);
    }
    if has(facts, "cake") {
        let why = "the queue is where the shaper is; cake keeps each flow's queue and each host's share apart";
        let line = format!("cake bandwidth {}", rate_words(rate));
        return done(line, why, "tc-cake(8)", notes);
    }
    if let Some(line) =
        has(facts, "fq_codel").then(|| shaped(facts, rate, &fq_codel(rate))).flatten()
    {
        notes.push(
            "without cake too: lost are fairness between hosts and the splitting of aggregates in the queue".to_owned(),
        );
        let why = "the queue is where the shaper is; fq_codel keeps each flow's queue apart and drops early";
        return done(line, why, "RFC 8290, tc-htb(8), tc-fq_codel(8)", notes);
    }
    let packets = (bytes_in(rate, FIFO_TIME) / FULL_FRAME).max(10);
    if let Some(line) = shaped(facts, rate, &format!("pfifo limit {packets}")) {
        notes.push(
            "without cake and fq_codel too: lost is all management of the queue; it is only kept small, so it drops in bursts, \
             and flows are not kept apart"
                .to_owned(),
        );
        let why = format!("a queue of {packets} packets, 20 ms at this rate, is at least bounded");
        return done(line, &why, "tc-pfifo(8), RFC 7567 §1.2", notes);
    }
    let unknown = |kind: &&str| facts.qdiscs.get(*kind) == Some(&Availability::Unknown);
    if ["htb", "tbf", "cake"].iter().any(unknown) {
        return Err(PlanError::Wish(
            "nothing here tells whether this kernel has htb, tbf or cake, one of which --rate needs; to try, say what by --qdisc, \
             such as 'htb rate 48mbit leaf fq_codel'"
                .to_owned(),
        ));
    }
    Err(PlanError::Wish(
        "this kernel has no shaper, neither htb nor tbf nor cake: --rate cannot be had here; see `dualq doctor`"
            .to_owned(),
    ))
}

/// Chooses for an interface whose own speed is all that is known.
fn without_a_shaper(
    facts: &Facts,
    profile: Profile,
    interface: &Interface,
    cc: Option<&str>,
) -> Queue {
    let dev = &interface.name;
    let mut notes = vec![format!(
        "without --rate there is no shaper: a qdisc helps only where the queue is, so this one helps only if {dev} itself is the \
         bottleneck; if the provider limits it, give a --rate a little below that limit, from which buffers follow too"
    )];
    let root = interface.qdiscs.iter().find(|qdisc| qdisc.parent == "root");
    let root = root.map_or("", |qdisc| qdisc.kind.as_str());
    let stays = |why: &str, notes, default| Queue {
        line: None,
        shaped: false,
        why: why.to_owned(),
        source: "tc-fq_codel(8), tc-fq(8)",
        notes,
        default,
    };
    let wanted = match profile {
        Profile::Datacenter if has(facts, "dualpi2") => Some("dualpi2 any_ect"),
        Profile::Datacenter if has(facts, "fq_codel") => Some("fq_codel ce_threshold 1ms"),
        _ if root == "noqueue" => {
            notes.push(format!("{dev} has no queue at all (noqueue); it is left so"));
            return stays("", notes, None);
        }
        // BBR sends at the rate that it measured, and fq is what paces each flow.
        _ if profile.sends() && cc == Some("bbr") && has(facts, "fq") => Some("fq"),
        _ if profile == Profile::LowLatency && has(facts, "dualpi2") => Some("dualpi2"),
        _ if has(facts, "fq_codel") => Some("fq_codel"),
        _ => None,
    };
    let Some(wanted) = wanted else {
        notes.push(format!("this kernel has no better queue than what {dev} has; it is left so"));
        return stays("", notes, None);
    };
    let manages = |kind: &str| KEEPING_APART.contains(&kind);
    let kinds = interface.qdiscs.iter().filter(|qdisc| qdisc.kind != "mq");
    let managed = interface.qdiscs.len() > usize::from(root == "mq")
        && kinds.clone().all(|qdisc| manages(&qdisc.kind));
    if managed && profile != Profile::Datacenter {
        return stays("", notes, None);
    }
    if root == "mq" && profile != Profile::Datacenter {
        let default = if wanted == "fq" || !has(facts, "fq_codel") { "fq" } else { "fq_codel" };
        notes.push(format!(
            "{dev} has {} transmit queues, each with a qdisc of its own: what they are is net.core.default_qdisc's to say, which \
             counts for interfaces that appear after it, so from the next boot on",
            interface.tx_queues
        ));
        let why = "each transmit queue gets a qdisc that keeps flows apart";
        return stays(why, notes, Some(default).filter(|kind| has(facts, kind)));
    }
    if root == "mq" {
        notes.push(multi_queue(interface));
    }
    let (why, source) = match wanted {
        "fq" => ("fq paces each flow as BBR asks for", "tc-fq(8)"),
        "fq_codel" => ("fq_codel keeps flows apart and drops early", "RFC 8290"),
        "dualpi2" => ("dualpi2 keeps the queue short", "RFC 9332"),
        _ => ("marking at 1 ms, which is what DCTCP answers", "RFC 8257 §4.1"),
    };
    let line = Some(wanted.to_owned());
    Queue { line, shaped: false, why: why.to_owned(), source, notes, default: None }
}

fn multi_queue(interface: &Interface) -> String {
    let Interface { name, tx_queues, .. } = interface;
    format!(
        "the {tx_queues} transmit queues of {name} (mq) get one queue in common: above about 1 Gbit/s, its lock costs CPU time"
    )
}

/// The line that was wished for, behind a shaper if a rate is.
fn wished(facts: &Facts, line: &str, rate: Option<Rate>) -> Result<Queue, PlanError> {
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    super::check::qdisc(&line).map_err(|error| PlanError::Wish(format!("--qdisc: {error}")))?;
    let parsed = |line: &str| {
        grammar::parse(line).map_err(|error| PlanError::Wish(format!("--qdisc: {error}")))
    };
    let mut parsed_line = parsed(&line)?;
    let mut notes = parsed_line.notices.clone();
    let line = match (rate, shaper_rate(&parsed_line.spec)) {
        (Some(rate), Some(own)) if rate != own => {
            let message = format!(
                "--qdisc has a rate of its own, {own}, and --rate is {rate}; give one of them"
            );
            return Err(PlanError::Wish(message));
        }
        (Some(rate), None) => {
            let line = shaped(facts, rate, &line).ok_or_else(|| {
                PlanError::Wish(
                    "this kernel has no shaper for --rate, neither htb nor tbf".to_owned(),
                )
            })?;
            parsed_line = parsed(&line)?;
            line
        }
        (None, None) => {
            notes.push("without --rate there is no shaper: the qdisc helps only if this interface is the bottleneck".to_owned());
            line
        }
        _ => line,
    };
    for spec in levels(&parsed_line.spec) {
        let kind = spec.kind();
        let unknown = facts.qdiscs.get(kind) == Some(&Availability::Unknown);
        if unknown {
            notes.push(format!("it is not known whether this kernel has {kind}"));
        } else if !has(facts, kind) {
            let known: Vec<&str> =
                facts.qdiscs.keys().map(String::as_str).filter(|kind| has(facts, kind)).collect();
            let message =
                format!("this kernel does not have the qdisc {kind}; it has {}", known.join(", "));
            return Err(PlanError::Wish(message));
        }
    }
    let shaped = shaper_rate(&parsed_line.spec).is_some();
    let why = "as it was asked for".to_owned();
    Ok(Queue { line: Some(line), shaped, why, source: "--qdisc", notes, default: None })
}

/// Chooses.
pub(super) fn choose(
    facts: &Facts,
    wishes: &Wishes,
    interface: &Interface,
    cc: Option<&str>,
) -> Result<Queue, PlanError> {
    let speed: Option<Rate> = interface.speed.as_deref().and_then(|speed| speed.parse().ok());
    if let Some((rate, speed)) = wishes.rate.zip(speed)
        && rate > speed
    {
        let message =
            format!("--rate {rate} is more than {} can, whose link has {speed}", interface.name);
        return Err(PlanError::Wish(message));
    }
    let mut queue = match (&wishes.qdisc, wishes.rate) {
        (Some(line), rate) => wished(facts, line, rate)?,
        (None, Some(rate)) => behind_a_shaper(facts, wishes.profile, rate, cc)?,
        (None, None) => without_a_shaper(facts, wishes.profile, interface, cc),
    };
    if let Some(rate) = wishes.rate {
        if Some(rate) == speed {
            let text = "the shaper has the link's own rate: for the queue to be here, it must be a little below it";
            queue.notes.push(text.to_owned());
        }
        let is_mq = interface.qdiscs.iter().any(|qdisc| qdisc.kind == "mq");
        if is_mq && rate > MANY {
            queue.notes.push(multi_queue(interface));
        }
    }
    if wishes.profile == Profile::Datacenter {
        let text = "any_ect and DCTCP are for a network that you own, all of it: in the Internet, classic ECN flows suffer from them \
                    (RFC 8257 §5, RFC 9331 §5.4.1)";
        queue.notes.push(text.to_owned());
    }
    Ok(queue)
}
