#![doc = include_str!("../README.md")]
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod endpoint;
mod figures;
mod histogram;
mod metrics;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dualq_netlink::{Connection, Handle, Netlink, NetlinkError, Queue};
use serde::Serialize;

pub use endpoint::Endpoint;
pub use figures::{ControlFigures, Figures, QdiscFigures, QueueFigures, Spread};
pub use metrics::Metrics;

/// The kind of discipline that holds nothing and counts nothing.
const NO_QUEUE: &str = "noqueue";

/// Where a queue discipline is, in tc's words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The device.
    pub dev: String,
    /// Its kind.
    pub kind: String,
    /// Its number, such as `1:`; those that the kernel put there itself have `0:`.
    pub handle: String,
    /// `root`, or the class that it is in.
    pub parent: String,
}

/// What a queue discipline has counted until a look at it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Where it is.
    pub place: Place,
    /// What the kernel tells of it.
    pub queue: Queue,
}

/// A host at a moment.
#[derive(Clone, Debug)]
pub struct Look {
    /// When that was.
    pub at: Instant,
    /// The same by the wall's clock, since 1970.
    pub since_1970: Duration,
    /// All queue disciplines of the devices that are watched, without those that hold nothing.
    pub queues: Vec<Seen>,
    /// The established TCP connections to other machines; or why they cannot be read.
    pub connections: Result<Vec<Connection>, String>,
}

/// Who looks at the network namespace in which it was opened.
pub struct Watcher {
    netlink: Netlink,
    /// Those whose disciplines are of interest; all, if none is named.
    devices: Vec<String>,
}

impl Watcher {
    /// Looks at the disciplines of these devices, or of all if none is named.
    ///
    /// # Errors
    /// [`NetlinkError::NoLink`] if there is no such device, or as [`Netlink::open`].
    pub fn open(devices: &[String]) -> Result<Self, NetlinkError> {
        let mut netlink = Netlink::open()?;
        for name in devices {
            netlink.link(name)?;
        }
        Ok(Self { netlink, devices: devices.to_vec() })
    }

    /// Looks. A device that is gone is left out, and is there again when it is back.
    ///
    /// # Errors
    /// If the kernel does not tell of devices or their disciplines.
    pub fn look(&mut self) -> Result<Look, NetlinkError> {
        let mut links = self.netlink.links()?;
        links.retain(|link| self.devices.is_empty() || self.devices.contains(&link.name));
        let queues = self.netlink.qdiscs_of(&links)?;
        let connections = self.netlink.connections();
        let (at, since_1970) = (Instant::now(), SystemTime::now().duration_since(UNIX_EPOCH));
        let seen = links.iter().zip(queues).flat_map(|(link, queues)| {
            let place = |queue: &Queue| Place {
                dev: link.name.clone(),
                kind: queue.kind.clone(),
                handle: queue.handle.to_string(),
                parent: parent(queue.parent),
            };
            let queues = queues.into_iter().filter(|queue| queue.kind != NO_QUEUE);
            queues.map(move |queue| Seen { place: place(&queue), queue })
        });
        Ok(Look {
            at,
            since_1970: since_1970.unwrap_or_default(),
            queues: seen.collect(),
            connections: connections
                .map(|mut connections| {
                    connections.retain(Connection::leaves_the_machine);
                    connections
                })
                .map_err(|error| error.to_string()),
        })
    }
}

/// As tc shows it: a class of a discipline without a number has none before its colon.
fn parent(parent: Handle) -> String {
    match parent.major() {
        0 => format!(":{:x}", parent.minor()),
        _ => parent.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_as_tc_shows_them() {
        for (place, text) in [
            (Handle::ROOT, "root"),
            (Handle::class(1, 0x10), "1:10"),
            // In mq that the kernel put there itself.
            (Handle::class(0, 2), ":2"),
        ] {
            assert_eq!(parent(place), text);
        }
    }
}
