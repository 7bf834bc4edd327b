//! One direction of a link, without I/O: it is told the time and given frames, tells when it wants to be called, and has frames to
//! write.

use std::net::{IpAddr, Ipv4Addr};
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use dualq_net::{Delay, Element, Environment, Lost, Path};
use dualq_qdisc::{
    Config, Departure, Device, Dropped, Ecn, Packet as _, Qdisc, QdiscLine, Random, Spec,
    SplitMix64,
};
use dualq_scenario::Passage;
use dualq_units::{Instant, Rate};

use crate::figures::{Band, DirectionFigures, DirectionSnapshot, QueueSnapshot, Times};
use crate::frame::{Frame, Room};
use crate::packet::Packet;
use crate::running::{Change, Options};
use crate::vnet::VNET_BYTES;
use crate::watch::{Seen, Watch};
use crate::{ChangeFault, cut, icmp};

/// The bottleneck's number among the queues of a direction, and that of the first one that is an element.
const BOTTLENECK: usize = 0;
const OTHERS: usize = 1;

/// So much of the link's time an aggregate may last that is written in one piece.
pub(crate) const QUANTUM: Duration = Duration::from_micros(50);

/// So many datagrams of one flow are written in one piece at most (Linux before 6.9: `UDP_MAX_SEGMENTS`), and so many bytes of them.
const DATAGRAMS: usize = 64;
const DATAGRAM_BYTES: usize = 60_000;

/// A packet that has passed the path, and when it did, by the path's own time.
#[derive(Debug)]
struct Leaving {
    at: Instant,
    packet: Packet,
}

/// One direction of a link. A frame is what a TUN device with `IFF_VNET_HDR` gives and takes: a `struct virtio_net_hdr` of ten bytes, and a
/// packet, or an aggregate of up to 64 KB.
///
/// It reads no clock: times are arguments, of whatever clock the caller has, and do not go backwards.
pub struct Engine {
    path: Path<Packet>,
    /// The place of the bottleneck's queue.
    queue: Option<usize>,
    /// The places of the queues of elements.
    others: Vec<usize>,
    /// The place of the constant delay at the end.
    delay: usize,
    /// Rates that the bottleneck has later; the next one first.
    steps: std::vec::IntoIter<(Instant, Rate)>,
    next_step: Option<(Instant, Rate)>,
    around: Surroundings,
    device: Device,
    tunnel: bool,
    /// Hosts with delays of their own.
    hosts: Vec<IpAddr>,
    /// Whether something inside may have ICMP messages to send.
    has_routers: bool,
    /// Every aggregate is taken apart as it comes.
    split: bool,
    room: Arc<Room>,
    /// What has passed the path and is not written.
    out: Vec<Leaving>,
    /// Whether the device takes aggregates of datagrams.
    joins_datagrams: bool,
    /// Datagrams that are written together, and how they are: of use within [`write`](Self::write) only.
    datagrams: Vec<Packet>,
    joined: Vec<u8>,
}

/// What a router has to say to a sender (RFC 1191, RFC 4443 §3.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouterMessage {
    /// A packet of IP.
    pub packet: Vec<u8>,
    /// The router is before the link's queue, where senders are near: it takes no part of the way back.
    pub is_near: bool,
}

/// What the path has around it.
struct Surroundings {
    random: SplitMix64,
    figures: DirectionFigures,
    watch: Option<Box<dyn Watch>>,
    /// What routers have to say that goes the other direction.
    messages: Vec<RouterMessage>,
    /// How many elements senders are near: those before the link's queue.
    near: usize,
    /// Packets inside, as they are on the wire: what a step changes may be less than none in between.
    inside: i64,
    now: Instant,
}

impl Environment<Packet> for Surroundings {
    #[inline]
    fn random(&mut self) -> u32 {
        self.random.next_u32()
    }

    fn copy(&mut self, packet: &Packet) -> Packet {
        let packets = u64::from(packet.segment_count());
        self.figures.copied += packets;
        self.inside += packets as i64;
        packet.clone()
    }

    fn lost(&mut self, packet: Packet, why: Lost) {
        let packets = u64::from(packet.segment_count());
        self.inside -= packets as i64;
        self.figures.lost.count(why, packets);
        if let Lost::TooLong { mtu, told: true, place } = why
            && let Some(packet) = icmp::too_long(&packet, mtu)
        {
            self.messages.push(RouterMessage { packet, is_near: place < self.near });
        }
        if let Some(watch) = &mut self.watch {
            watch.packet(self.now, Seen::Lost(why), &packet);
        }
    }

    #[inline]
    fn arrived(&mut self, queue: usize, now: Instant, packet: &Packet) {
        if let Some(watch) = self.watch.as_mut().filter(|_| queue == BOTTLENECK) {
            watch.packet(now, Seen::Queued, packet);
        }
    }

    #[inline]
    fn departed(&mut self, queue: usize, now: Instant, departure: &Departure<Packet>) {
        let Departure { packet, band, sojourn_ns, .. } = departure;
        let sojourn = departure.sojourn();
        if let Some(number) = queue.checked_sub(OTHERS) {
            self.figures.others[number].record_all(sojourn, packet.segment_count());
            if let Some(watch) = &mut self.watch {
                watch.packet(now, Seen::Passed { number, sojourn }, packet);
            }
            return;
        }
        if let Some(band) = self.figures.bands.get_mut(*band) {
            band.delays.record(sojourn);
        }
        self.figures.delays.record(*sojourn_ns, packet.ecn());
        if let Some(watch) = &mut self.watch {
            let marked = departure.marked_by_probability || departure.marked_by_step;
            watch.packet(now, Seen::Sent { sojourn, marked }, packet);
        }
    }

    fn dropped(&mut self, _: usize, _: Instant, _: &Dropped<Packet>) {}
}

impl Engine {
    /// What `passage` says, from `start` on. Packets are told to `watch`.
    #[must_use]
    pub fn new(
        passage: &Passage,
        options: &Options,
        start: Instant,
        watch: Option<Box<dyn Watch>>,
    ) -> Self {
        let device = Device::ethernet(passage.mtu);
        let mut random = SplitMix64::new(options.seed);
        let (mut elements, queue) = passage.elements(BOTTLENECK, OTHERS, &mut |_, line| {
            line.spec().build(&device, SplitMix64::new(random.next_u64()), start)
        });
        let others = |(place, element): (usize, &Element<Packet>)| {
            (matches!(element, Element::Queue(_)) && Some(place) != queue).then_some(place)
        };
        let others: Vec<usize> = elements.iter().enumerate().filter_map(others).collect();
        let figures =
            DirectionFigures { others: vec![Times::default(); others.len()], ..Default::default() };
        let has_routers = elements.iter().any(|element| matches!(element, Element::Mtu(_)));
        let delay = elements.len();
        let extra = passage.extra_delays.iter().map(|(_, extra)| *extra);
        let delays = [Duration::ZERO].into_iter().chain(extra).map(|extra| passage.delay + extra);
        elements.push(Delay::of_origins(delays).into());
        let steps: Vec<_> = passage.step.iter().map(|step| (start + step.at, step.rate)).collect();
        let mut steps = steps.into_iter();
        let next_step = steps.next();
        let mut engine = Self {
            path: Path::new(elements),
            queue,
            others,
            delay,
            steps,
            next_step,
            around: Surroundings {
                random,
                figures,
                watch,
                messages: Vec::new(),
                near: queue.unwrap_or(0),
                inside: 0,
                now: start,
            },
            device,
            tunnel: passage.tunnel,
            hosts: passage.extra_delays.iter().map(|(host, _)| *host).collect(),
            has_routers,
            split: options.split,
            room: Room::new(options.memory),
            out: Vec::new(),
            joins_datagrams: false,
            datagrams: Vec::new(),
            joined: Vec::new(),
        };
        engine.name_bands();
        engine
    }

    /// How many packets have come.
    pub(crate) const fn came(&self) -> u64 {
        self.around.figures.came.packets
    }

    /// Datagrams of one flow that follow one another may be written as one aggregate from now on: the device takes it (Linux 6.2).
    pub fn join_datagrams(&mut self) {
        self.joins_datagrams = true;
    }

    /// When there is something to do; [`Instant::NEVER`] if there is not.
    #[must_use]
    pub fn next_due(&self) -> Instant {
        let due = self.path.next_due().map_or(Instant::NEVER, |(at, _)| at);
        self.next_step.map_or(due, |(at, _)| due.min(at))
    }

    /// When it is to be called at the latest if no frame comes. What only moves on inside has no need of that: it is done later, at its own
    /// time. But who watches packets sees them when they move, and what routers have to say does not wait.
    #[must_use]
    pub fn next_wake(&self) -> Instant {
        if self.around.watch.is_some() || self.has_routers {
            return self.next_due();
        }
        let out = self.path.earliest_out();
        // A rate that rises lets what waits go sooner.
        let step = self.next_step.map_or(Instant::NEVER, |(at, _)| at);
        out.min(step)
    }

    /// Does all that is due up to `now`, each thing at its own time. What leaves waits to be [written](Self::write).
    pub fn advance(&mut self, now: Instant) {
        loop {
            let step = self.next_step.filter(|(at, _)| *at <= now);
            match (self.path.next_due().filter(|(at, _)| *at <= now), step) {
                (Some((at, _)), Some((step_at, rate))) if step_at <= at => {
                    self.take_step(step_at, rate);
                }
                (None, Some((at, rate))) => self.take_step(at, rate),
                (Some((at, place)), _) => {
                    // A due time of the past is one that a change left behind.
                    let at = at.max(self.around.now);
                    self.around.now = at;
                    self.path.start(place);
                    self.drain(at);
                }
                (None, None) => break,
            }
        }
        self.around.now = self.around.now.max(now);
    }

    fn take_step(&mut self, at: Instant, rate: Rate) {
        self.around.now = self.around.now.max(at);
        self.next_step = self.steps.next();
        self.set_rate(rate);
    }

    /// An empty buffer that any frame fits into.
    #[must_use]
    pub fn buffer(&self) -> Vec<u8> {
        self.room.large()
    }

    /// The frame in `bytes` comes at `now`, and leaves them empty; they may be another buffer then. Says whether it was one, and there was
    /// room for it.
    pub fn enter(&mut self, now: Instant, bytes: &mut Vec<u8>) -> bool {
        self.advance(now);
        let Some(frame) = Frame::take(bytes, &self.room) else {
            self.around.figures.lost.no_room += 1;
            return false;
        };
        let now = self.around.now;
        let packet = self.packet(frame);
        self.around.inside += i64::from(packet.segment_count());
        self.around.figures.came.add(packet.segment_count(), packet.length());
        if let Some(watch) = &mut self.around.watch {
            watch.packet(now, Seen::Came, &packet);
        }
        if self.split {
            packet.each(&mut |part| {
                self.path.enter(now, part, &mut self.around);
                self.drain(now);
            });
        } else {
            self.path.enter(now, packet, &mut self.around);
            self.drain(now);
        }
        // What takes no time is through.
        self.advance(now);
        true
    }

    fn packet(&self, frame: Arc<Frame>) -> Packet {
        let origin = if self.hosts.is_empty() { 0 } else { self.origin(&frame) };
        Packet::whole(frame, self.tunnel, origin)
    }

    #[cold]
    fn origin(&self, frame: &Frame) -> u8 {
        let ends =
            frame.layout().addresses(frame.packet()).unwrap_or([Ipv4Addr::UNSPECIFIED.into(); 2]);
        let place = self.hosts.iter().position(|host| ends.contains(host));
        place.map_or(0, |place| u8::try_from(place + 1).unwrap_or(0))
    }

    /// A message of a router of the other direction goes this way: the whole of it, or none of it if the router is near to senders.
    pub fn enter_message(&mut self, now: Instant, message: &RouterMessage) {
        self.advance(now);
        let mut bytes = vec![0; VNET_BYTES];
        bytes.extend_from_slice(&message.packet);
        let Some(frame) = Frame::take(&mut bytes, &self.room) else { return };
        let packet = self.packet(frame);
        self.around.inside += 1;
        self.around.figures.made += 1;
        let place = if message.is_near { self.path.elements().len() } else { 0 };
        self.path.enter_at(place, self.around.now, packet, &mut self.around);
        self.drain(self.around.now);
        self.advance(self.around.now);
    }

    /// What routers have to say to senders, for the other direction.
    pub fn take_messages(&mut self) -> Vec<RouterMessage> {
        std::mem::take(&mut self.around.messages)
    }

    /// Writes all that has left the path: `device` is given each frame in two pieces, of which the second may be empty, and says whether it
    /// took it. `clock` tells when each is written.
    ///
    /// Segments of one aggregate that follow one another are written together, if they are alike and left within 50 us of the path's time; so
    /// are datagrams of one flow, if [the device takes it](Self::join_datagrams). None with CE is: a receiver of Accurate ECN counts one segment for an aggregate with CE, however many it has (Linux:
    /// `tcp_ecn_received_counters`, for what came with the header of virtio).
    pub fn write(
        &mut self,
        mut clock: impl FnMut() -> Instant,
        mut device: impl FnMut([&[u8]; 2]) -> bool,
    ) {
        let figures = &mut self.around.figures;
        let mut write = |packets: &[Packet], pieces: [&[u8]; 2], figures: &mut DirectionFigures| {
            let is_taken = device(pieces);
            for packet in packets {
                if is_taken {
                    figures.left.add(packet.segment_count(), packet.length());
                } else {
                    figures.lost.refused += u64::from(packet.segment_count());
                }
            }
        };
        let mut leaving = self.out.drain(..).peekable();
        while let Some(Leaving { at, packet: mut run }) = leaving.next() {
            let late = clock() - at;
            figures.lateness.record_all(late, run.segment_count());
            if run.ecn() == Ecn::Ce {
                run.each(&mut |part| {
                    write(slice::from_ref(&part), cut::write(&part).pieces(), figures);
                });
                continue;
            }
            while let Some(next) =
                leaving.next_if(|next| next.at - at <= QUANTUM && run.join(&next.packet))
            {
                let late = late.saturating_sub(next.at - at);
                figures.lateness.record_all(late, next.packet.segment_count());
            }
            let most = DATAGRAMS.min(DATAGRAM_BYTES / run.length().max(1) as usize);
            let is_next =
                |next: &Leaving| next.at - at <= QUANTUM && cut::is_like(&run, &next.packet);
            if !self.joins_datagrams || most < 2 || !leaving.peek().is_some_and(is_next) {
                write(slice::from_ref(&run), cut::write(&run).pieces(), figures);
                continue;
            }
            let datagrams = &mut self.datagrams;
            datagrams.push(run.clone());
            while datagrams.len() < most
                && let Some(next) = leaving.next_if(is_next)
            {
                let late = late.saturating_sub(next.at - at);
                figures.lateness.record_all(late, next.packet.segment_count());
                datagrams.push(next.packet);
            }
            cut::write_together(datagrams, &mut self.joined);
            write(datagrams, [&self.joined, &[]], figures);
            datagrams.clear();
        }
    }

    /// When the first of what waits to be written left the path.
    #[must_use]
    pub fn waiting_since(&self) -> Option<Instant> {
        self.out.first().map(|leaving| leaving.at)
    }

    fn drain(&mut self, at: Instant) {
        while let Some(packet) = self.path.next_out(at, &mut self.around) {
            let around = &mut self.around;
            let packets = packet.segment_count();
            around.inside -= i64::from(packets);
            if packet.ecn() == Ecn::Ce && packet.frame().layout().ecn != Ecn::Ce {
                around.figures.marked += u64::from(packets);
            }
            if let Some(watch) = &mut around.watch {
                watch.packet(at, Seen::Left, &packet);
            }
            self.out.push(Leaving { at, packet });
        }
    }

    /// How it is now. The device's drops are not known here.
    #[must_use]
    pub fn snapshot(&self) -> DirectionSnapshot {
        let queue = |place| {
            let discipline = self.path.queue(place)?.discipline();
            let stats = discipline.stats(self.around.now);
            Some(QueueSnapshot { config: discipline.config(), stats })
        };
        DirectionSnapshot {
            figures: self.around.figures.clone(),
            queue: self.queue.and_then(queue),
            others: self.others.iter().copied().filter_map(queue).collect(),
            inside: self.around.inside.max(0) as u64,
            ..DirectionSnapshot::default()
        }
    }

    /// Changes something at `now`.
    ///
    /// # Errors
    /// If there is no queue to be changed, or its discipline does not change so.
    pub fn change(&mut self, now: Instant, change: &Change) -> Result<(), ChangeFault> {
        self.check(change)?;
        self.advance(now);
        match change {
            Change::Rate(rate) => self.set_rate(*rate),
            Change::Qdisc(line) => self.set_qdisc(line),
            Change::Delay(delay) => {
                self.path.change_delay(self.delay, self.around.now, *delay);
            }
        }
        self.advance(self.around.now);
        Ok(())
    }

    /// Whether that can be changed.
    ///
    /// # Errors
    /// As of [`change`](Self::change).
    pub fn check(&self, change: &Change) -> Result<(), ChangeFault> {
        let line = match change {
            Change::Delay(_) => return Ok(()),
            Change::Rate(_) => None,
            Change::Qdisc(line) => Some(line.spec()),
        };
        let queue = self.queue.and_then(|place| self.path.queue(place));
        let queue = queue.ok_or(ChangeFault::NoQueue)?;
        // Another kind's place it takes as it is.
        let is = Qdisc::<Packet>::config(queue.discipline());
        match (is, line) {
            (Config::Dualpi2(_), Some(Spec::Dualpi2(options)))
                if *options == Default::default() =>
            {
                Err(ChangeFault::NothingGiven)
            }
            _ => Ok(()),
        }
    }

    fn set_rate(&mut self, rate: Rate) {
        let Some(place) = self.queue else { return };
        if let Some(queue) = self.path.queue_mut(place) {
            queue.change_rate(rate);
        }
        // What it waited for may be sooner now.
        self.path.start(place);
        self.drain(self.around.now);
    }

    /// As `tc qdisc change` does if it is of the same kind; else as `tc qdisc replace` does, and what waits is lost.
    fn set_qdisc(&mut self, line: &QdiscLine) {
        let now = self.around.now;
        let around = &mut self.around;
        let Some(queue) = self.queue.and_then(|place| self.path.queue_mut(place)) else { return };
        if queue.change(now, line.spec(), around).is_err() {
            queue.flush(now, around);
            let random = SplitMix64::new(around.random.next_u64());
            queue.replace(line.spec().build(&self.device, random, now));
            self.name_bands();
        }
    }

    /// The discipline's bands have names, and no delays yet.
    fn name_bands(&mut self) {
        let queue = self.queue.and_then(|place| self.path.queue(place));
        let names = queue.map_or(&[][..], |queue| Qdisc::<Packet>::bands(queue.discipline()));
        let band = |name: &&'static str| Band { name, delays: Times::default() };
        self.around.figures.bands = names.iter().map(band).collect();
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("path", &self.path).finish_non_exhaustive()
    }
}
