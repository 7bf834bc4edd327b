//! What packets pass in one direction, between two routers: each thing at the egress of a router of its own.

use std::net::Ipv4Addr;
use std::time::Duration;

use dualq_namespace::Namespace;
use dualq_netlink::Route;
use dualq_qdisc::{QdiscLine, kinds::netem};
use dualq_scenario::{Direction, Element, Loss, Scenario};
use dualq_units::{Bytes, Rate};

use crate::LabError;
use crate::bridge::{self, Deed};
use crate::network::{
    Bottleneck, End, FAR, Hop, NEAR, add_netem, connect, ethernet_address, netlink, new_router,
};

/// A rate at which no packet takes a nanosecond: netem keeps the order of packets if it has one (Linux: `netem_enqueue`).
const KEEPS_ORDER: Rate = Rate::from_bits_per_second(u64::MAX);
/// Netem's jitter has 31 bits (Linux: `get_table` and `tabledist` of sch_netem.c).
const LONGEST_JITTER: Duration = Duration::from_nanos(i32::MAX as u64);
/// Of what fits into a slot, 31 bits count (Linux: `struct tc_netem_slot`).
const MOST_FIT: u32 = i32::MAX as u32;
/// What a device takes beyond its MTU, as a tag of a virtual network may come with a packet (Linux: `__is_skb_forwardable`).
const TAG_BYTES: u32 = 4;

/// One thing that packets pass.
enum Stage<'a> {
    /// The direction's bottleneck.
    Bottleneck(Rate, &'a QdiscLine),
    /// What the base round-trip time has in this direction, and random loss.
    Path(Duration, Loss),
    Element(&'a Element),
    /// Nothing.
    Cable,
}

/// All that packets pass in one direction, in order.
pub(crate) struct Way<'a> {
    direction: Direction,
    stages: Vec<Stage<'a>>,
    /// How many of these come before the queue, where senders are near.
    before: usize,
    mtu: u32,
    tunnel: bool,
}

/// What the two routers are called.
const ROUTER: &str = "router";
const FAR_ROUTER: &str = "far router";

/// A way that was built.
pub(crate) struct Built {
    pub(crate) hops: Vec<Hop>,
    /// Where devices lose packets on purpose, and as what they count them.
    pub(crate) holes: Vec<(String, String)>,
    pub(crate) bottleneck: Option<Bottleneck>,
    /// Those that are elements, in the order in which packets meet them.
    pub(crate) others: Vec<Bottleneck>,
}

impl<'a> Way<'a> {
    /// The way through the queue under test.
    pub(crate) fn down(scenario: &'a Scenario) -> Self {
        let link = &scenario.link;
        let bottleneck = Some(Stage::Bottleneck(link.rate, &link.qdisc));
        let path = (link.forward, link.loss);
        Self::of(scenario, Direction::Down, bottleneck, path, [&link.before, &link.behind])
    }

    /// The way back.
    pub(crate) fn up(scenario: &'a Scenario) -> Self {
        let link = &scenario.link;
        let delay = link.rtt.saturating_sub(link.forward);
        let Some(up) = &link.up else {
            return Self::of(scenario, Direction::Up, None, (delay, Loss::NONE), [&[], &[]]);
        };
        let qdisc = up.qdisc.as_ref().unwrap_or(&link.qdisc);
        let bottleneck = up.rate.map(|rate| Stage::Bottleneck(rate, qdisc));
        Self::of(scenario, Direction::Up, bottleneck, (delay, up.loss), [&up.before, &up.behind])
    }

    fn of(
        scenario: &Scenario,
        direction: Direction,
        bottleneck: Option<Stage<'a>>,
        (delay, loss): (Duration, Loss),
        [before, behind]: [&'a [Element]; 2],
    ) -> Self {
        let path = (!delay.is_zero() || !loss.is_none()).then_some(Stage::Path(delay, loss));
        let elements = |elements: &'a [Element]| elements.iter().map(Stage::Element);
        let stages = elements(before).chain(bottleneck).chain(path).chain(elements(behind));
        let mut stages: Vec<_> = stages.collect();
        // A router that is taken over has one way in: it is not that of the senders.
        let is_first_taken_over = stages.first().is_some_and(|stage| stage.deed().is_some());
        if is_first_taken_over {
            stages.insert(0, Stage::Cable);
        }
        Self {
            direction,
            stages,
            before: before.len() + usize::from(is_first_taken_over),
            mtu: scenario.link.mtu,
            tunnel: scenario.link.tunnel,
        }
    }

    /// The address of one of the ends, 1 or 2, of a cable of this way.
    fn address(&self, cable: usize, end: u8) -> Ipv4Addr {
        let net = if self.direction.is_down() { 3 } else { 4 };
        Ipv4Addr::new(10, net, cable as u8, end)
    }

    /// Builds it between two routers.
    pub(crate) fn build(
        &self,
        from: &Namespace,
        to: &Namespace,
        seed: u64,
    ) -> Result<Built, LabError> {
        let direction = self.direction;
        let [back, there] = if direction.is_down() { [NEAR, FAR] } else { [FAR, NEAR] };
        let between = 1..self.stages.len();
        let routers = between.map(|_| new_router()).collect::<Result<Vec<_>, _>>()?;
        // Where there is nothing on the way, there is a cable all the same.
        let cables = self.stages.len().max(1);
        let (mut bottleneck, mut others) = (None, Vec::new());
        for cable in 0..cables {
            let near = cable.checked_sub(1).map_or(from, |before| &routers[before]);
            let far = routers.get(cable).unwrap_or(to);
            let stage = self.stages.get(cable);
            let [near_mtu, far_mtu] = stage.map_or([self.mtu; 2], |stage| stage.mtus(self.mtu));
            let near = End {
                namespace: near,
                name: format!("{direction}-out"),
                address: self.address(cable, 1),
                mtu: near_mtu,
            };
            let far = End {
                namespace: far,
                name: format!("{direction}-in"),
                address: self.address(cable, 2),
                mtu: far_mtu,
            };
            connect(&near, &far, cable as u8)?;
            let mut netlink = netlink(near.namespace)?;
            netlink.add_route(&Route::via((there, 16), far.address))?;
            if let Some(last) = cable.checked_sub(1) {
                // What a router has to say to a sender takes the other way if it is behind the queue.
                let via = if cable > self.before { far.address } else { self.address(last, 1) };
                netlink.add_route(&Route::via((back, 16), via))?;
            }
            if let Some(stage) = stage {
                // Each has dice of its own.
                let seed = seed ^ (cable as u64 + 1) << 32 ^ u64::from(direction.is_down()) << 48;
                let made = self.make(stage, &near, seed)?;
                match stage {
                    Stage::Bottleneck(..) => bottleneck = made,
                    _ => others.extend(made),
                }
                let last = cable.checked_sub(1).and_then(|last| last.checked_sub(1));
                let last = last.map_or(from, |last| &routers[last]);
                if let Some(deed) = stage.deed() {
                    self.take_over(deed, last, &near, cable as u8)?;
                }
            }
        }
        let holes = self.stages.iter().enumerate().filter(|(_, stage)| stage.is_black_hole());
        let holes = holes.flat_map(|(cable, _)| {
            let sent = (self.name(cable), format!("{direction}-out tx_dropped"));
            [sent, (self.name(cable + 1), format!("{direction}-in rx_dropped"))]
        });
        let holes = holes.collect();
        let hops = (1..)
            .zip(routers)
            .map(|(number, namespace)| Hop { name: self.name(number), namespace });
        Ok(Built { hops: hops.collect(), holes, bottleneck, others })
    }

    /// What the router at the beginning of a cable is called, or that at the end of the last.
    fn name(&self, cable: usize) -> String {
        let is_down = self.direction.is_down();
        match cable {
            0 if is_down => ROUTER.to_owned(),
            0 => FAR_ROUTER.to_owned(),
            _ if cable < self.stages.len() => format!("{}ward router {cable}", self.direction),
            _ if is_down => FAR_ROUTER.to_owned(),
            _ => ROUTER.to_owned(),
        }
    }

    /// Takes a router over; `last` is the one before it.
    fn take_over(
        &self,
        deed: Deed,
        last: &Namespace,
        out: &End<'_>,
        cable: u8,
    ) -> Result<(), LabError> {
        let [from, to] = ["in", "out"].map(|end| format!("{}-{end}", self.direction));
        if matches!(deed, Deed::Police(..)) {
            // It drops packets, not aggregates, which may be larger than a burst.
            netlink(last)?.set_segmentation_offload(&to, false)?;
        }
        bridge::start(out.namespace, (&from, &to), ethernet_address(cable, 2), deed)
    }

    /// Makes a stage at a router's way out.
    fn make(
        &self,
        stage: &Stage<'_>,
        out: &End<'_>,
        seed: u64,
    ) -> Result<Option<Bottleneck>, LabError> {
        let (namespace, device) = (out.namespace, out.name.as_str());
        let netem = |options| add_netem(namespace, device, options, seed);
        let with_loss = |loss: Loss, options| {
            let chance = netem::Chance::independent(loss.as_threshold());
            netem(netem::Options { loss: Some(netem::Loss::Random(chance)), ..options })
        };
        let queue = |rate, qdisc: &QdiscLine| {
            Bottleneck::open(namespace, device, (rate, qdisc.spec(), self.tunnel), seed)
        };
        let none = netem::Options::default();
        match stage {
            Stage::Bottleneck(rate, qdisc) => return queue(*rate, qdisc).map(Some),
            Stage::Path(delay, loss) => {
                with_loss(*loss, netem::Options { delay: Some(*delay), ..none })?;
            }
            Stage::Element(Element::Delay { delay, jitter, reorder }) => {
                let rate = (!reorder && !jitter.is_zero()).then_some(KEEPS_ORDER);
                let jitter = Some(*jitter).filter(|jitter| !jitter.is_zero());
                netem(netem::Options { delay: Some(*delay), jitter, rate, ..none })?;
            }
            Stage::Element(Element::Slot { least, most, packets, bytes }) => {
                let most_bytes = |Bytes(bytes): Bytes| u32::try_from(bytes).unwrap_or(MOST_FIT);
                let slots = netem::Slots {
                    distance: netem::Distance::Uniform(*least, *most),
                    packets: packets.map_or(0, |packets| packets.min(MOST_FIT)),
                    bytes: bytes.map_or(0, |bytes| most_bytes(bytes).min(MOST_FIT)),
                };
                netem(netem::Options { slots: Some(slots), ..none })?;
            }
            Stage::Element(Element::Loss(loss)) => with_loss(*loss, none)?,
            Stage::Element(Element::Duplicate(share)) => {
                let duplicate = Some(netem::Chance::independent(share.as_threshold()));
                netem(netem::Options { duplicate, ..none })?;
            }
            Stage::Element(Element::Queue { rate, qdisc }) => {
                return queue(*rate, qdisc).map(Some);
            }
            // An aggregate has no length of its own that would be too large.
            Stage::Element(Element::Mtu { mtu, icmp: false }) if *mtu < self.mtu => {
                netlink(namespace)?.set_segmentation_offload(device, false)?;
            }
            Stage::Cable
            | Stage::Element(Element::Mtu { .. } | Element::Bleach | Element::Police { .. }) => {}
        }
        Ok(None)
    }
}

impl Stage<'_> {
    /// The MTUs of a cable's ends: who sends a packet that is longer than its own says so, and who receives one does not.
    fn mtus(&self, mtu: u32) -> [u32; 2] {
        match self {
            Self::Element(Element::Mtu { mtu: most, icmp: true }) => [mtu.min(*most); 2],
            Self::Element(Element::Mtu { mtu: most, icmp: false }) if *most < mtu => {
                [mtu, most - TAG_BYTES]
            }
            _ => [mtu; 2],
        }
    }

    /// What no queue discipline does.
    const fn deed(&self) -> Option<Deed> {
        match self {
            Self::Element(Element::Bleach) => Some(Deed::Bleach),
            Self::Element(Element::Police { rate, burst }) => Some(Deed::Police(*rate, *burst)),
            _ => None,
        }
    }

    const fn is_black_hole(&self) -> bool {
        matches!(self, Self::Element(Element::Mtu { icmp: false, .. }))
    }
}

/// What of a scenario's elements real Linux does not do.
pub(crate) fn refusal(scenario: &Scenario) -> Option<String> {
    let link = &scenario.link;
    let up = link.up.iter().flat_map(|up| [&up.before, &up.behind]);
    let mut elements = [&link.before, &link.behind].into_iter().chain(up).flatten();
    elements.find_map(|element| match element {
        Element::Delay { jitter, .. } if *jitter > LONGEST_JITTER => Some(format!(
            "a jitter of {} s is more than netem can, {} s; the model can",
            jitter.as_secs_f64(),
            LONGEST_JITTER.as_secs_f64()
        )),
        _ => None,
    })
}
