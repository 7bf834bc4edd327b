//! What is in the middle of a network: the queues that figures are taken of.

use std::time::Duration;

use dualq_netlink::Queue;
use dualq_scenario::{
    Direction, Limit, LinkLateness, OTHER_QUEUES, Scenario, TESTED_QUEUE, UP_QUEUE,
};
use dualq_units::Rate;

use crate::LabError;
use crate::clock::Began;
use crate::live::LiveLink;
use crate::network::Bottleneck;
use crate::taps::{Passed, Sampling, Taps};

/// The threads of a link note what happened by the path's own time, each a little later than that.
const LATE: Duration = Duration::from_millis(200);

/// Queues of the kernel's, which are watched from outside, or dualq's own link, which tells.
pub(crate) enum Middle {
    Kernel {
        down: Bottleneck,
        /// The other direction may have none.
        up: Option<Bottleneck>,
        /// Those that are elements, in the order in which packets meet them, those on the way down first.
        others: Vec<Bottleneck>,
    },
    Link(LiveLink),
}

impl Middle {
    /// Who looks at queues from outside, where that is needed, by the queues' numbers.
    pub(crate) fn taps(&self, scenario: &Scenario) -> Result<Vec<(usize, Taps)>, LabError> {
        let Self::Kernel { down, up, others } = self else { return Ok(Vec::new()) };
        let open = |number, direction, bottleneck, sampling| {
            Taps::open(bottleneck, sampling, direction).map(|taps| (number, taps))
        };
        let sampling = |direction| Sampling::of(scenario, direction);
        let mut taps = vec![open(TESTED_QUEUE, Direction::Down, down, sampling(Direction::Down))?];
        if let Some(up) = up {
            taps.push(open(UP_QUEUE, Direction::Up, up, sampling(Direction::Up))?);
        }
        let others = others.iter().zip(scenario.link.other_bottlenecks());
        for (number, (bottleneck, other)) in (OTHER_QUEUES..).zip(others) {
            let sampling = Sampling::of_queue(scenario, other.rate, other.qdisc);
            taps.push(open(number, other.direction, bottleneck, sampling)?);
        }
        Ok(taps)
    }

    /// What has left a link's queues since the last call, with their numbers, by the clock that only goes on.
    pub(crate) fn read(&self, passed: &mut dyn FnMut(usize, Passed)) {
        if let Self::Link(link) = self {
            link.read(passed);
        }
    }

    /// Up to when since the beginning all is known that was seen of packets.
    pub(crate) fn known_until(&self, began: Began) -> Result<Duration, LabError> {
        match self {
            Self::Kernel { .. } => Ok(Duration::MAX),
            Self::Link(_) => Ok(began.elapsed()?.saturating_sub(LATE)),
        }
    }

    /// A direction's bottleneck has another rate.
    pub(crate) fn set_rate(&mut self, direction: Direction, rate: Rate) -> Result<(), LabError> {
        match (self, direction) {
            (Self::Kernel { down, .. }, Direction::Down) => down.set_rate(rate),
            (Self::Kernel { up, .. }, Direction::Up) => {
                up.as_mut().map_or(Ok(()), |up| up.set_rate(rate))
            }
            (Self::Link(link), _) => link.set_rate(direction, rate),
        }
    }

    /// The queue under test, as it is now.
    pub(crate) fn queue(&mut self) -> Result<Queue, LabError> {
        match self {
            Self::Kernel { down, .. } => down.queue(),
            Self::Link(link) => {
                let queues = link.queues()?.into_iter();
                let mut tested = queues.filter(|(number, _)| *number == TESTED_QUEUE);
                let no_queue = || LabError::Scenario("the way down has no queue".to_owned());
                Ok(tested.next().ok_or_else(no_queue)?.1)
            }
        }
    }

    /// All queues that figures are taken of, as they are now, by their numbers.
    pub(crate) fn queues(&mut self) -> Result<Vec<(usize, Queue)>, LabError> {
        match self {
            Self::Kernel { down, up, others } => {
                let up = up.iter_mut().map(|up| (UP_QUEUE, up));
                let all = [(TESTED_QUEUE, down)]
                    .into_iter()
                    .chain(up)
                    .chain((OTHER_QUEUES..).zip(others));
                all.map(|(number, bottleneck)| Ok((number, bottleneck.queue()?))).collect()
            }
            Self::Link(link) => link.queues(),
        }
    }

    /// How late a link of dualq's own was.
    pub(crate) fn lateness(&self) -> Result<Option<LinkLateness>, LabError> {
        match self {
            Self::Kernel { .. } => Ok(None),
            Self::Link(link) => link.lateness().map(Some),
        }
    }

    /// What a link of dualq's own did wrong, where a round trip took so long on average.
    pub(crate) fn faults(&self, round_trip: Duration) -> Result<Vec<Limit>, LabError> {
        match self {
            Self::Kernel { .. } => Ok(Vec::new()),
            Self::Link(link) => link.faults(round_trip),
        }
    }
}
