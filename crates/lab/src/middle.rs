//! What is in the middle of a network: the queues that figures are taken of.

use std::time::Duration;

use dualq_netlink::Queue;
use dualq_scenario::{Direction, Limit, LinkLateness, Scenario};
use dualq_units::Rate;
use nix::time::ClockId as Clock;

use crate::LabError;
use crate::experiment::clock;
use crate::live::LiveLink;
use crate::network::Bottleneck;
use crate::taps::{Passed, Taps};
use crate::udp::Began;

/// The threads of a link note what happened by the path's own time, each a little later than that.
const LATE: Duration = Duration::from_millis(200);

/// Queues of the kernel's, which are watched from outside, or dualq's own link, which tells.
pub(crate) enum Middle {
    Kernel {
        down: Bottleneck,
        /// The other direction may have none.
        up: Option<Bottleneck>,
    },
    Link(LiveLink),
}

impl Middle {
    /// Who looks at queues from outside, where that is needed.
    pub(crate) fn taps(&self, scenario: &Scenario) -> Result<[Option<Taps>; 2], LabError> {
        let Self::Kernel { down, up } = self else { return Ok([None, None]) };
        let up = up.as_ref().map(|up| Taps::open(up, scenario, Direction::Up));
        Ok([Some(Taps::open(down, scenario, Direction::Down)?), up.transpose()?])
    }

    /// What has left a link's queues since the last call, by the clock that only goes on.
    pub(crate) fn read(&self, passed: &mut dyn FnMut(Direction, Passed)) {
        if let Self::Link(link) = self {
            link.read(passed);
        }
    }

    /// Up to when since the beginning all is known that was seen of packets.
    pub(crate) fn known_until(&self, began: Began) -> Result<Duration, LabError> {
        match self {
            Self::Kernel { .. } => Ok(Duration::MAX),
            Self::Link(_) => {
                let now = clock(Clock::CLOCK_MONOTONIC)?.saturating_sub(began.monotonic);
                Ok(now.saturating_sub(LATE))
            }
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

    /// The queues of both directions, as they are now.
    pub(crate) fn queues(&mut self) -> Result<(Queue, Option<Queue>), LabError> {
        match self {
            Self::Kernel { down, up } => {
                Ok((down.queue()?, up.as_mut().map(Bottleneck::queue).transpose()?))
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
