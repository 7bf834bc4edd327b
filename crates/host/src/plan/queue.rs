//! Which queue discipline: what this kernel can really do, and what is lost with it.

use std::fmt::Display;
use std::time::Duration;

use dualq_qdisc::{Device, QdiscLine, Spec, grammar};
use dualq_units::{Bytes, Exact, Rate};

use super::options::{self, Choice, Traffic, Way};
use super::sysctls::Path;
use super::{ClassId, LinkKind, PlanError, Profile, Requirements, below as below_class, boot};
use crate::Facts;
use crate::facts::{Availability, Blocked, Interface, Layer, Qdisc, Sight};
use crate::margin::below;

/// What is to be at the root of the interface.
#[derive(Debug)]
pub(super) struct Queue {
    /// The line; `None` if what is there is to stay.
    pub(super) line: Option<QdiscLine>,
    pub(super) why: String,
    pub(super) source: &'static str,
    pub(super) notes: Vec<String>,
    /// Whether each transmit queue is to have one of its own.
    pub(super) each: bool,
    /// The class below which it is to be.
    pub(super) parent: Option<ClassId>,
}

/// Disciplines without anything inside, which the kernel takes back as it told of them.
const SIMPLE: [&str; 16] = [
    "bfifo",
    "cake",
    "choke",
    "codel",
    "dualpi2",
    "fq",
    "fq_codel",
    "fq_pie",
    "hhf",
    "netem",
    "pfifo",
    "pfifo_fast",
    "pfifo_head_drop",
    "pie",
    "red",
    "sfb",
];
/// Disciplines around others, that the kernel takes back too.
const SHELLS: [&str; 3] = ["htb", MQ, "tbf"];
/// What has a place for each transmit queue.
pub(crate) const MQ: &str = "mq";

/// Whether a discipline of that kind, that somebody put somewhere, can be put back exactly, as far as its kind tells.
pub(crate) fn can_come_back(kind: &str) -> bool {
    SIMPLE.contains(&kind) || SHELLS.contains(&kind)
}

/// So many of several are named.
const NAMED: usize = 4;

/// The first of them, and how many there are beside.
pub(crate) fn some_of(all: &[String]) -> String {
    let named = all.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// Says what there is that dualq did not make and could not put back, if there is such.
fn somebodys(interface: &Interface) -> Option<String> {
    let Interface { name, .. } = interface;
    let root = interface.leaving().find(|qdisc| qdisc.parent == "root")?;
    let inside: Vec<&Qdisc> = interface.leaving().filter(|qdisc| qdisc.parent != "root").collect();
    // Facts of before dualq looked for classes tell of what is in them only.
    let classes: Vec<String> = interface.classes.iter().map(|class| class.id.clone()).collect();
    let is_alone = root.kind == MQ || inside.len() < 2;
    let comes_back = root.handle == "0:"
        || (can_come_back(&root.kind) && is_alone && !below_class::has_several(interface));
    if comes_back {
        return None;
    }
    let below: Vec<String> =
        inside.iter().map(|qdisc| format!("{} of class {}", qdisc.kind, qdisc.parent)).collect();
    let with = match (below.is_empty(), classes.is_empty()) {
        (false, _) => format!(" with {}", some_of(&below)),
        (true, false) => format!(" with the classes {}", some_of(&classes)),
        (true, true) => String::new(),
    };
    let class = below_class::example(interface);
    let class = class.or_else(|| inside.first().map(|qdisc| qdisc.parent.as_str()));
    let instead = class.map_or(String::new(), |class| {
        format!("; or leave it, and put a discipline below one of its classes: --parent {class}")
    });
    Some(format!(
        "{name} has {} {}{with}, which dualq did not make and could not put back exactly, so nothing is put in its place: `tc qdisc delete dev {name} \
         root` takes all of it away, with what it is for{instead}",
        root.kind, root.handle
    ))
}

impl Queue {
    /// What of the interface it is for.
    pub(super) const fn part(&self) -> boot::Part<'static> {
        match self.parent {
            Some(class) => boot::Part::Below { class },
            None if self.each => boot::Part::Each,
            None => boot::Part::Leaving,
        }
    }
}

/// What needs no change where there is no shaper.
pub(super) const KEEPING_APART: [&str; 5] = ["fq", "fq_codel", "cake", "dualpi2", "fq_pie"];
/// Above it, one queue with one lock for all CPUs costs more than some want to spend.
pub(super) const MANY: Rate = Rate::from_mbit(1000);
/// What is put before a link that is known by its rate only is a little slower than that.
const BURST_TIME: Duration = Duration::from_millis(4);
pub(super) const FULL_FRAME: u64 = 1514;

/// A rate in tc's words, without rounding.
pub(super) fn rate_words(rate: Rate) -> String {
    Exact(rate).to_string().to_lowercase()
}

pub(super) fn bytes_in(rate: Rate, time: Duration) -> u64 {
    let bits = u128::from(rate.as_bits_per_second()) * time.as_nanos() / 1_000_000_000;
    u64::try_from(bits / 8).unwrap_or(u64::MAX)
}

/// What dualq itself has put together.
pub(super) fn own(words: &str) -> QdiscLine {
    words.parse().expect("a line of dualq's own is in its grammar")
}

/// Whether a module that is there can be loaded.
pub(super) fn can_load(facts: &Facts, module: &str) -> bool {
    let blocked = |blocked: &Blocked| blocked.entirely && blocked.module == module;
    facts.kernel.modules && !facts.kernel.blocked.iter().any(blocked)
}

pub(super) fn has(facts: &Facts, kind: &str) -> bool {
    // FIFOs are part of the scheduler itself.
    matches!(kind, "pfifo" | "bfifo" | "pfifo_fast")
        || match facts.qdiscs.get(kind) {
            Some(Availability::Ready) => true,
            Some(Availability::Module) => can_load(facts, &format!("sch_{kind}")),
            Some(Availability::Absent | Availability::Unknown) | None => false,
        }
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

/// Whether each transmit queue of an interface has a discipline of its own.
fn is_mq(interface: &Interface) -> bool {
    interface.qdiscs.iter().any(|qdisc| qdisc.kind == MQ && qdisc.parent == "root")
}

/// Whether the line is what the interface has already at that part of it.
pub(super) fn is_there(interface: &Interface, spec: &Spec, part: boot::Part<'_>) -> bool {
    let mut device = Device::ethernet(interface.mtu);
    device.tx_queue_length = interface.tx_queue_len.unwrap_or(device.tx_queue_length);
    let levels: Vec<&Spec> = spec.levels().collect();
    let (mut place, there) = match part {
        boot::Part::Below { class } => {
            (class.to_string(), interface.lines_in(&class.to_string()).len())
        }
        _ => ("root".to_owned(), interface.leaving().count()),
    };
    let alike = |qdisc: &Qdisc, spec: &Spec| {
        let meant = spec.configure(&device).to_string();
        let options = qdisc.options.as_deref();
        qdisc.kind == spec.kind() && options.is_some_and(|options| alike(options, &meant))
    };
    if part == boot::Part::Each {
        let mut leaves = interface.leaving().filter(|qdisc| qdisc.parent != "root").peekable();
        return is_mq(interface)
            && leaves.peek().is_some()
            && leaves.all(|qdisc| alike(qdisc, spec));
    }
    let same = levels.iter().all(|spec| {
        let found = interface.qdiscs.iter().find(|qdisc| qdisc.parent == place);
        found.is_some_and(|qdisc| {
            place = format!("{}1", qdisc.handle);
            alike(qdisc, spec)
        })
    });
    same && there == levels.len()
}

/// `leaf` behind a shaper, if the kernel has one.
pub(super) fn shaped(facts: &Facts, rate: Rate, leaf: &str) -> Option<String> {
    let words = rate_words(rate);
    if has(facts, "htb") {
        return Some(format!("htb rate {words} leaf {leaf}"));
    }
    // tbf sends what its bucket holds at once, and its timer may be late by a jiffy.
    let burst = bytes_in(rate, BURST_TIME).max(2 * FULL_FRAME);
    has(facts, "tbf").then(|| format!("tbf rate {words} burst {burst}b latency 50ms leaf {leaf}"))
}

/// What marks as DCTCP has it.
const MARKING: [&str; 2] = ["dualpi2", "fq_codel"];

/// What the traffic calls for where nothing has to be shaped, of what the kernel has.
pub(super) fn unshaped(
    facts: &Facts,
    profile: Profile,
    cc: Option<&str>,
    traffic: &Traffic,
) -> Option<&'static str> {
    let first = |kinds: &[&'static str]| kinds.iter().copied().find(|kind| has(facts, kind));
    match profile {
        Profile::Datacenter if first(&MARKING).is_some() => first(&MARKING),
        _ if traffic.scalable || !traffic.is_apart() => first(&["dualpi2", "fq_codel", "pie"]),
        // BBR sends at the rate that it measured, and fq is what paces each flow.
        _ if profile.sends() && cc == Some("bbr") => first(&["fq", "fq_codel", "cake"]),
        _ => first(&["fq_codel", "cake", "fq", "dualpi2", "pie"]),
    }
}

/// Why that, and who says so.
pub(super) fn reason(kind: &str, profile: Profile) -> (&'static str, &'static str) {
    match kind {
        _ if profile == Profile::Datacenter => (
            "marking from a seventh of the round trip on, which is what DCTCP answers",
            "RFC 8257 §4.1",
        ),
        "fq" => ("fq serves flows in turn, and paces each as BBR asks for", "tc-fq(8)"),
        "fq_codel" => ("fq_codel keeps flows apart and drops early", "RFC 8290"),
        "cake" => ("cake keeps flows apart and drops early", "tc-cake(8)"),
        "pie" => ("pie drops before the queue is full", "RFC 8033"),
        _ => ("dualpi2 keeps the queue short", "RFC 9332"),
    }
}

/// Chooses for an interface that is the bottleneck itself, or of which nothing but its own speed is known.
fn without_a_shaper(
    facts: &Facts,
    requirements: &Requirements,
    interface: &Interface,
    cc: Option<&str>,
    traffic: &Traffic,
) -> Queue {
    let (dev, profile) = (&interface.name, requirements.profile);
    let mut notes = Vec::new();
    if requirements.rate.is_none() {
        notes.push(format!(
            "without --rate there is no shaper: a qdisc helps only where the queue is, so this one helps only if {dev} itself is the \
             bottleneck; if the provider limits it, give the --rate of that limit, from which buffers follow too"
        ));
    } else {
        notes.push(format!(
            "{dev} itself has that rate: its queue is here already, and needs no shaper"
        ));
    }
    let root = interface.qdiscs.iter().find(|qdisc| qdisc.parent == "root");
    let root = root.map_or("", |qdisc| qdisc.kind.as_str());
    let stays = |notes| Queue {
        line: None,
        why: String::new(),
        source: "tc-fq_codel(8), tc-fq(8)",
        notes,
        each: false,
        parent: None,
    };
    let marks = profile == Profile::Datacenter && MARKING.iter().any(|kind| has(facts, kind));
    if root == "noqueue" && !marks {
        notes.push(format!("{dev} has no queue at all (noqueue); it is left so"));
        return stays(notes);
    }
    let Some(wanted) = unshaped(facts, profile, cc, traffic) else {
        notes.push(format!("this kernel has no better queue than what {dev} has; it is left so"));
        return stays(notes);
    };
    let manages = |kind: &str| KEEPING_APART.contains(&kind);
    let kinds = interface.leaving().filter(|qdisc| qdisc.kind != MQ);
    let managed = interface.leaving().count() > usize::from(root == MQ)
        && kinds.clone().all(|qdisc| manages(&qdisc.kind));
    let asked = profile == Profile::Datacenter || wanted == "dualpi2";
    if managed && !asked {
        return stays(notes);
    }
    let each = root == MQ;
    if each {
        notes.push(format!(
            "{dev} has {} transmit queues (mq): each gets a qdisc of its own, and none waits for the lock of another",
            interface.tx_queues
        ));
    }
    let (why, source) = reason(wanted, profile);
    // Without a speed, as of a virtual interface, nothing is slow enough to be scaled for.
    let rate = speed(interface).or(requirements.rate).unwrap_or(MANY);
    let line = Some(own(&options::leaf(wanted, rate, traffic, Path::rtt(facts, requirements).0)));
    Queue { line, why: why.to_owned(), source, notes, each, parent: None }
}

/// The speed of the interface's own link, if it tells.
pub(super) fn speed(interface: &Interface) -> Option<Rate> {
    let speed: Option<Rate> = interface.speed.as_deref().and_then(|speed| speed.parse().ok());
    speed.filter(|speed| speed.as_bits_per_second() > 0)
}

/// The rate that a shaper has to keep below. There is none where the link itself is the bottleneck, and its driver tells when it is full;
/// but for a device without a queue, which hands its packets on at once. Nor below a class, whose owner says what it lets through.
pub(super) fn limit(requirements: &Requirements, interface: &Interface) -> Option<Rate> {
    if requirements.parent.is_some() {
        return None;
    }
    let queues = !interface.qdiscs.iter().any(|qdisc| qdisc.kind == "noqueue");
    requirements.rate.filter(|rate| Some(*rate) != speed(interface) || !queues)
}

fn multi_queue(interface: &Interface) -> String {
    let Interface { name, tx_queues, .. } = interface;
    format!(
        "the {tx_queues} transmit queues of {name} (mq) get one queue in common, for a rate is kept in one place: its lock costs CPU time \
         above about 1 Gbit/s. `dualq rollback` brings mq back, with what was below it"
    )
}

/// The line that was asked for by `option`, behind a shaper if a rate is.
pub(super) fn asked(
    facts: &Facts,
    option: &'static str,
    line: &str,
    link: Option<Rate>,
    shaper: Option<Rate>,
) -> Result<Queue, PlanError> {
    let wrong = |error: &dyn Display| PlanError::Requirement(format!("{option}: {error}"));
    let mut notes = grammar::parse(line).map_err(|error| wrong(&error))?.notices;
    let line: QdiscLine = line.parse().map_err(|error| wrong(&error))?;
    super::check::plain_words(&line).map_err(|error| wrong(&error))?;
    let line = match (shaper, shaper_rate(line.spec())) {
        (Some(shaper), Some(own)) if shaper != own => {
            let link = link.unwrap_or(shaper);
            let message = format!(
                "{option} has a rate of its own, {own}, and for a link of {link} a shaper has {shaper}; give one of them"
            );
            return Err(PlanError::Requirement(message));
        }
        (Some(rate), None) => {
            let line = shaped(facts, rate, line.text()).ok_or_else(|| {
                PlanError::Requirement(format!(
                    "this kernel has no shaper for {option}, neither htb nor tbf"
                ))
            })?;
            line.parse().map_err(|error| wrong(&error))?
        }
        _ => line,
    };
    for spec in line.levels() {
        let kind = spec.kind();
        let unknown = facts.qdiscs.get(kind) == Some(&Availability::Unknown);
        if unknown {
            notes.push(format!("it is not known whether this kernel has {kind}"));
        } else if !has(facts, kind) {
            let known: Vec<&str> =
                facts.qdiscs.keys().map(String::as_str).filter(|kind| has(facts, kind)).collect();
            let message =
                format!("this kernel does not have the qdisc {kind}; it has {}", known.join(", "));
            return Err(PlanError::Requirement(message));
        }
    }
    let why = "as it was asked for".to_owned();
    Ok(Queue { line: Some(line), why, source: option, notes, each: false, parent: None })
}

/// What else is to be known of the shaper.
fn about_the_shaper(
    requirements: &Requirements,
    interface: &Interface,
    link: Rate,
    queue: &Queue,
    notes: &mut Vec<String>,
) {
    let name = &interface.name;
    let spec = queue.line.as_ref().map(QdiscLine::spec);
    if let Some(own) = spec.and_then(shaper_rate) {
        notes.push(format!(
            "--rate is the link's, {link}; the shaper has {}, a twentieth less, so that the queue is here and not behind it",
            rate_words(own)
        ));
    }
    if requirements.down.is_none() {
        notes.push(format!(
            "only what leaves by {name} is shaped; downloads stay unshaped: their queue is on the other side of the link, and --down \
             with the rate of that direction brings it here"
        ));
    }
    let is_cake = matches!(spec, Some(Spec::Cake(_)));
    match requirements.link {
        Some(LinkKind::Dsl) if is_cake => notes.push(
            "--link dsl is VDSL2 with PPPoE; on ADSL each packet takes whole ATM cells: --qdisc 'cake bandwidth RATE conservative'"
                .to_owned(),
        ),
        Some(_) if !is_cake => notes.push(
            "--link needs cake, which counts what the link adds to each packet; here the rate must be low enough to hold it: up to a \
             tenth on DSL, less elsewhere"
                .to_owned(),
        ),
        None if is_cake && requirements.profile == Profile::Gateway => notes.push(
            "a rate of DSL or cable counts what the link adds to each packet, and small packets have more of it: --link dsl, docsis \
             or ethernet tells cake. Behind NAT, `nat` in --qdisc lets it share among the hosts"
                .to_owned(),
        ),
        _ => {}
    }
}

/// What `apply` would have to say, if the plan did not; and where packets wait at last.
fn about_the_interface(facts: &Facts, interface: &Interface, notes: &mut Vec<String>) {
    let name = &interface.name;
    if let Some(layer) = facts.layer(interface) {
        let what = layer.words();
        let seen = match &layer {
            Layer::Vlan { on } => format!(
                "a queue here sees only what this VLAN sends. If the rate is that of {on}, and others send there too, --dev {on} is the place"
            ),
            Layer::Bond { .. } => "a shaper here is before all of them; a discipline without one belongs on each of them".to_owned(),
            Layer::Bridge { .. } => "a queue here sees what this machine itself sends or routes into it, not what goes from port to port. If one port \
                                     is the bottleneck, --dev with that port is the place"
                .to_owned(),
            Layer::Part { .. } => String::new(),
        };
        notes.push(format!("{name} is {what}: {seen}"));
    }
    if !interface.up {
        notes.push(format!("{name} is down: nothing leaves by it until it is set up"));
    }
}

/// What each tunnel here means for this queue.
fn about_tunnels(facts: &Facts, interface: &Interface, traffic: &Traffic, notes: &mut Vec<String>) {
    if let Some(why) = &traffic.one_flow {
        notes.push(format!(
            "{why}: all of it is one flow to the queue of {}, and is not kept apart there; a shaper on the tunnel's own interface \
             (--dev) sees the flows before they are put into it",
            interface.name
        ));
        return;
    }
    for tunnel in facts.tunnels().filter(|tunnel| tunnel.interface.name != interface.name) {
        let (name, kind, dev) = (&tunnel.interface.name, tunnel.kind, &interface.name);
        match tunnel.sight {
            Sight::Apart => {}
            Sight::OneFlow => notes.push(format!(
                "{name} is a tunnel ({kind}): what is inside it is one flow to the queue of {dev}; if most of the traffic is, --tunnel, \
                 or --dev {name} to shape before it is put into the tunnel"
            )),
            Sight::OwnApart => notes.push(format!(
                "{name} is a tunnel ({kind}): the queue of {dev} tells this machine's own flows inside it apart, but maybe not those \
                 that it forwards; --tunnel if these are most"
            )),
        }
    }
}

/// Chooses: what will be at the root, and what it was chosen from where there is a shaper. `pick` is the line of one of these.
pub(super) fn choose(
    facts: &Facts,
    requirements: &Requirements,
    interface: &Interface,
    cc: Option<&str>,
    traffic: &Traffic,
    pick: Option<&str>,
) -> Result<(Queue, Vec<Choice>), PlanError> {
    let speed = speed(interface);
    if let Some((rate, speed)) = requirements.rate.zip(speed)
        && rate > speed
    {
        let message =
            format!("--rate {rate} is more than {} can, whose link has {speed}", interface.name);
        return Err(PlanError::Requirement(message));
    }
    if let Some(Layer::Part { of }) = facts.layer(interface)
        && (requirements.rate.is_some() || requirements.down.is_some())
    {
        let message = format!(
            "{} is a part of the bond {of}, which chooses for each flow by which of its parts it goes: a rate is kept at {of} (--dev {of})",
            interface.name
        );
        return Err(PlanError::Requirement(message));
    }
    let limit = limit(requirements, interface);
    let mut choices = Vec::new();
    let mut queue = match (requirements.parent, &requirements.qdisc, limit) {
        (Some(parent), ..) => {
            below_class::choose(facts, requirements, interface, cc, traffic, parent)?
        }
        (None, Some(line), _) => {
            let mut queue = asked(facts, "--qdisc", line, requirements.rate, limit.map(below))?;
            let has_rate = queue.line.as_ref().and_then(|line| shaper_rate(line.spec())).is_some();
            if requirements.rate.is_none() && !has_rate {
                queue.notes.push("without --rate there is no shaper: the qdisc helps only if this interface is the bottleneck".to_owned());
            }
            queue
        }
        (None, None, Some(rate)) => {
            choices = options::all(facts, requirements, traffic, below(rate), Way::Leaving)?;
            let picked = choices.iter().find(|choice| Some(choice.line.as_str()) == pick);
            let choice = picked.unwrap_or(&choices[0]);
            choice.queue(facts, traffic, false)
        }
        (None, None, None) => without_a_shaper(facts, requirements, interface, cc, traffic),
    };
    if queue.parent.is_none()
        && queue.line.as_ref().is_some_and(|line| !is_there(interface, line.spec(), queue.part()))
        && let Some(message) = somebodys(interface)
    {
        if requirements.rate.is_some() || requirements.qdisc.is_some() {
            return Err(PlanError::Requirement(message));
        }
        (queue.line, queue.each, queue.notes) = (None, false, vec![message]);
    }
    let mut notes = std::mem::take(&mut queue.notes);
    if let Some(rate) = limit {
        about_the_shaper(requirements, interface, rate, &queue, &mut notes);
    }
    if queue.line.is_some() && queue.part() == boot::Part::Leaving && is_mq(interface) {
        notes.push(multi_queue(interface));
    }
    about_the_interface(facts, interface, &mut notes);
    about_tunnels(facts, interface, traffic, &mut notes);
    let shares = |kind| ["dualpi2", "pie", "codel"].contains(&kind);
    let shared = queue.line.as_ref().is_some_and(|line| line.kinds().any(shares));
    if cc == Some("bbr") && (shared || !traffic.is_apart()) && requirements.profile.sends() {
        notes.push(
            "bbr answers neither ECN nor single losses: behind one queue, several such flows keep it full and make it drop a tenth of \
             all packets; cubic serves better there"
                .to_owned(),
        );
    }
    let any_ect = queue.line.as_ref().is_some_and(|line| line.text().contains("any_ect"));
    if any_ect || requirements.profile == Profile::Datacenter {
        let text = "any_ect and DCTCP are for a network that you own, all of it: in the Internet, classic ECN flows suffer from them \
                    (RFC 8257 §5, RFC 9331 §5.4.1)";
        notes.push(text.to_owned());
    }
    queue.notes = notes;
    Ok((queue, choices))
}
