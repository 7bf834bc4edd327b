//! The flows of a tin: which queue is whose, by a hash with eight ways, and which hosts share the link ("Piece of CAKE", sections
//! III-B and III-D).

use super::FlowMode;
use super::cobalt::Cobalt;
use crate::pool::Chain;
use crate::turns::{Link, Linked};

/// Queues of a tin, and hosts in each direction.
pub(super) const QUEUES: usize = 1024;
/// Neighbours that a flow may choose from.
const WAYS: usize = 8;

/// What is left of a quantum, in units of 2⁻¹⁶, if a host has so many queues that take turns.
const SHARES: [u16; QUEUES + 1] = {
    let mut shares = [u16::MAX; QUEUES + 1];
    let mut load = 2;
    while load <= QUEUES {
        shares[load] = (65_535 / load) as u16;
        load += 1;
    }
    shares
};

/// What a queue is at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// Nobody's.
    #[default]
    Idle,
    /// It has not used up its first quantum.
    Sparse,
    /// It has, but was empty then: it counts as sparse until it is not.
    SparseWaiting,
    /// It takes turns.
    Bulk,
    /// It is empty, and remembered until its law has come to rest.
    Decaying,
}

/// A queue.
pub(super) struct Flow {
    pub(super) chain: Chain,
    /// Bytes waiting.
    pub(super) bytes: u64,
    /// Bytes that it may send in its turn; below zero if it sent more.
    pub(super) deficit: i64,
    pub(super) law: Cobalt,
    pub(super) state: State,
    link: Link,
    /// Its places in the table of hosts: where it comes from, and where it goes.
    hosts: [u16; 2],
    /// The hash of the flow whose queue it is.
    tag: u32,
}

impl Linked for Flow {
    #[inline]
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }

    #[inline]
    fn next(&self) -> Option<u32> {
        self.link.next()
    }
}

/// Those that packets come from, and those that they go to.
pub(super) type Hosts = [Vec<Host>; 2];

/// A host, in one direction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Host {
    tag: u32,
    /// Its queues that take turns.
    bulk: u32,
}

/// Whose packet it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hashes {
    pub(super) flow: u32,
    pub(super) hosts: [u32; 2],
}

/// How often the hash met what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ways {
    /// A queue in another way than the first.
    pub(super) indirect: u64,
    /// No queue, but a free one.
    pub(super) missed: u64,
    /// Only queues of others.
    pub(super) collided: u64,
}

/// All of a tin.
pub(super) struct Flows {
    pub(super) queues: Vec<Flow>,
    pub(super) hosts: Hosts,
    pub(super) ways: Ways,
}

impl FlowMode {
    /// Whether hosts that packets come from, and hosts that they go to, are told apart by what their flows take.
    const fn isolates(self) -> [bool; 2] {
        match self {
            Self::DualSrchost => [true, false],
            Self::DualDsthost => [false, true],
            Self::TripleIsolate => [true, true],
            _ => [false, false],
        }
    }

    /// What tells queues apart.
    #[inline]
    const fn hash(self, hashes: &Hashes) -> u32 {
        let [from, to] = hashes.hosts;
        match self {
            Self::Flowblind => 0,
            Self::Srchost => from,
            Self::Dsthost => to,
            Self::Hosts => from ^ to,
            _ => hashes.flow,
        }
    }
}

impl Flows {
    /// Of a tin that has none yet.
    pub(super) const fn new() -> Self {
        Self {
            queues: Vec::new(),
            hosts: [Vec::new(), Vec::new()],
            ways: Ways { indirect: 0, missed: 0, collided: 0 },
        }
    }

    #[cold]
    fn prepare(&mut self) {
        let flow = || Flow {
            chain: Chain::EMPTY,
            bytes: 0,
            deficit: 0,
            law: Cobalt::default(),
            state: State::Idle,
            link: Link::NONE,
            hosts: [0; 2],
            tag: 0,
        };
        self.queues = (0..QUEUES).map(|_| flow()).collect();
        self.hosts = [vec![Host::default(); QUEUES], vec![Host::default(); QUEUES]];
    }

    /// The queue for a packet.
    #[inline]
    pub(super) fn find(&mut self, mode: FlowMode, hashes: &Hashes) -> u32 {
        if self.queues.is_empty() {
            self.prepare();
        }
        if mode == FlowMode::Flowblind {
            return 0;
        }
        let hash = mode.hash(hashes);
        let first = hash as usize % QUEUES;
        let flow = &self.queues[first];
        if flow.tag == hash && flow.state != State::Idle {
            return first as u32;
        }
        self.find_way(mode, hash, hashes)
    }

    /// One of the eight that are near.
    fn find_way(&mut self, mode: FlowMode, hash: u32, hashes: &Hashes) -> u32 {
        let mut is_new = true;
        let own = ways(hash).find(|place| self.queues[*place].tag == hash);
        let free = || ways(hash).find(|place| self.queues[*place].state == State::Idle);
        let place = if let Some(place) = own {
            self.ways.indirect += u64::from(place != hash as usize % QUEUES);
            is_new = self.queues[place].state == State::Idle;
            place
        } else if let Some(place) = free() {
            self.ways.missed += 1;
            place
        } else {
            // Shared, then, and counted for the newcomer's hosts.
            let place = hash as usize % QUEUES;
            self.ways.collided += 1;
            if self.queues[place].state == State::Bulk {
                self.leaves_bulk(mode, place as u32);
            }
            place
        };
        self.queues[place].tag = hash;
        if is_new {
            for (side, isolates) in mode.isolates().into_iter().enumerate() {
                if isolates {
                    let host = find_host(&mut self.hosts[side], hashes.hosts[side]);
                    self.queues[place].hosts[side] = host as u16;
                    let is_bulk = self.queues[place].state == State::Bulk;
                    self.hosts[side][host].bulk += u32::from(is_bulk);
                }
            }
        }
        place as u32
    }

    /// The queue begins to take turns.
    #[inline]
    pub(super) fn enters_bulk(&mut self, mode: FlowMode, id: u32) {
        for (side, isolates) in mode.isolates().into_iter().enumerate() {
            if isolates {
                self.host(side, id).bulk += 1;
            }
        }
    }

    /// It takes turns no longer.
    #[inline]
    pub(super) fn leaves_bulk(&mut self, mode: FlowMode, id: u32) {
        for (side, isolates) in mode.isolates().into_iter().enumerate() {
            if isolates {
                let bulk = &mut self.host(side, id).bulk;
                *bulk = bulk.saturating_sub(1);
            }
        }
    }

    #[inline]
    fn host(&mut self, side: usize, id: u32) -> &mut Host {
        let place = self.queues[id as usize].hosts[side];
        &mut self.hosts[side][usize::from(place)]
    }
}

impl Flow {
    /// The bytes of a turn: a quantum, shared by the flows of the host that has most. `die` rounds it up or down.
    #[inline]
    pub(super) fn quantum(&self, hosts: &Hosts, mode: FlowMode, quantum: u32, die: u16) -> i64 {
        let mut load = 0;
        for (side, isolates) in mode.isolates().into_iter().enumerate() {
            if isolates {
                load = load.max(hosts[side][usize::from(self.hosts[side])].bulk);
            }
        }
        let share = u32::from(SHARES[QUEUES.min(load as usize)]);
        i64::from((quantum * share + u32::from(die)) >> 16)
    }
}

/// The places of a hash, the first one first.
fn ways(hash: u32) -> impl Iterator<Item = usize> {
    let first = hash as usize % QUEUES;
    let set = first - first % WAYS;
    (0..WAYS).map(move |way| set + (first + way) % WAYS)
}

/// The place of a host: its own, else one that nobody uses, else the first.
fn find_host(hosts: &mut [Host], hash: u32) -> usize {
    let own = ways(hash).find(|place| hosts[*place].tag == hash);
    let free = || ways(hash).find(|place| hosts[*place].bulk == 0);
    let place = own.or_else(free).unwrap_or(hash as usize % QUEUES);
    hosts[place].tag = hash;
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(flow: u32, from: u32, to: u32) -> Hashes {
        Hashes { flow, hosts: [from, to] }
    }

    #[test]
    fn eight_flows_find_eight_ways() {
        let mut flows = Flows::new();
        let mode = FlowMode::Flows;
        let mut places: Vec<u32> = (0..8)
            .map(|number| {
                let place = flows.find(mode, &hashes(5 + 1024 * number + 1024 * 1024, 0, 0));
                flows.queues[place as usize].state = State::Sparse;
                place
            })
            .collect();
        places.sort_unstable();
        assert_eq!(places, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(flows.ways, Ways { indirect: 0, missed: 8, collided: 0 });
        // The ninth shares the queue of the first.
        assert_eq!(flows.find(mode, &hashes(5, 0, 0)), 5);
        assert_eq!(flows.ways.collided, 1);
    }

    #[test]
    fn the_hosts_of_a_flow_share_its_quantum() {
        let mut flows = Flows::new();
        let mode = FlowMode::TripleIsolate;
        let ids = [1, 2, 3].map(|flow| {
            let id = flows.find(mode, &hashes(flow, 77, 88));
            flows.queues[id as usize].state = State::Bulk;
            flows.enters_bulk(mode, id);
            id
        });
        let other = flows.find(mode, &hashes(9, 78, 89));
        let quantum = |flows: &Flows, mode, id: u32| {
            flows.queues[id as usize].quantum(&flows.hosts, mode, 1500, 65_535)
        };
        assert_eq!(quantum(&flows, mode, ids[0]), 500);
        assert_eq!(quantum(&flows, mode, other), 1500);
        // In mode flows, hosts do not matter.
        assert_eq!(quantum(&flows, FlowMode::Flows, ids[0]), 1500);
        flows.leaves_bulk(mode, ids[2]);
        assert_eq!(quantum(&flows, mode, ids[0]), 750);
    }
}
