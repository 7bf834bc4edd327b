//! Classes of queue disciplines, as far as somebody may put a discipline into one.

use dualq_units::Rate;

use crate::channel::messages;
use crate::header::Tc;
use crate::kinds::{TCA_KIND, TCA_OPTIONS, htb};
use crate::qdisc::{RTM_GETTCLASS, RTM_NEWTCLASS};
use crate::{Handle, Netlink, NetlinkError};

/// A class that somebody made, or chose the number of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Its number.
    pub handle: Handle,
    /// [`Handle::ROOT`] if it is right below its discipline, or the class that it is in.
    pub parent: Handle,
    /// The kind of its discipline, as tc names it.
    pub kind: String,
    /// The rate that it has for itself: of `htb` only.
    pub rate: Option<Rate>,
}

impl Class {
    /// The kinds that have such classes; those of others are flows or transmit queues.
    const KINDS: [&'static str; 6] = ["drr", "ets", "hfsc", "htb", "prio", "qfq"];

    /// Whether a discipline of that kind has such classes.
    #[must_use]
    pub fn are_of(kind: &str) -> bool {
        Self::KINDS.contains(&kind)
    }

    fn read(payload: &[u8], link: u32) -> Option<Self> {
        let (header, attributes) = Tc::read(payload)?;
        let kind = attributes.string(TCA_KIND).filter(|kind| Self::are_of(kind))?;
        let handle = header.handle;
        let parent = match header.parent {
            // Some kinds say of which discipline, others that it is in no class.
            parent if parent.minor() == 0 => Handle::ROOT,
            parent => parent,
        };
        // The class that hfsc has of itself is the discipline.
        (header.link == link && handle.minor() != 0).then(|| Self {
            handle,
            parent,
            kind: kind.to_owned(),
            rate: attributes.get(TCA_OPTIONS).filter(|_| kind == "htb").and_then(htb::class_rate),
        })
    }
}

impl Netlink {
    /// The classes of a device below which something can be put, or whose classes inside can.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn classes(&mut self, index: u32) -> Result<Vec<Class>, NetlinkError> {
        let question = Tc::all_of(index).bytes();
        let answer = self.route.dump(RTM_GETTCLASS, &question);
        let answer = answer.map_err(|failure| {
            failure.of(format!("list the classes of {}", self.name_of(index)))
        })?;
        let of_classes = messages(&answer).filter(|message| message.kind == RTM_NEWTCLASS);
        Ok(of_classes.filter_map(|message| Class::read(message.payload, index)).collect())
    }
}
