//! Filters: which class of a discipline packets belong to, and where else they go.

use dualq_qdisc::Spec;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};

use crate::attributes::{Attributes, Writer, u32_at};
use crate::channel::{Failure, Message, messages};
use crate::error::EOPNOTSUPP;
use crate::header::Tc;
use crate::kinds::{TCA_KIND, TCA_OPTIONS};
use crate::{Handle, Netlink, NetlinkError, Place};

const RTM_NEWTFILTER: u16 = 44;
const RTM_GETTFILTER: u16 = 46;
/// Attributes of `matchall` (`include/uapi/linux/pkt_cls.h`): the class, and what is done with the packets.
const TCA_MATCHALL_CLASSID: u16 = 1;
const TCA_MATCHALL_ACT: u16 = 2;
/// Attributes of an action (`include/uapi/linux/pkt_cls.h`), the first of which has the number 1.
const FIRST_ACTION: u16 = 1;
const TCA_ACT_KIND: u16 = 1;
const TCA_ACT_OPTIONS: u16 = 2;
/// `include/uapi/linux/tc_act/tc_mirred.h`: `struct tc_mirred` is index, capabilities, action, two counts, what to do, and the device.
const TCA_MIRRED_PARMS: u16 = 2;
const MIRRED_DO: usize = 20;
const MIRRED_DEVICE: usize = 24;
const TCA_EGRESS_REDIR: u32 = 1;
/// What becomes of the packet where it was.
const TC_ACT_STOLEN: u32 = 4;
const ETH_P_ALL: u16 = 3;
const PRIORITY: u32 = 1;

/// A filter, as far as anybody here asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    /// Its kind: `u32`.
    pub(crate) kind: String,
    /// The device to which it sends all packets, if that is all that it does.
    pub(crate) redirects_to: Option<u32>,
}

impl Filter {
    /// `None` of what only heads a list of filters.
    fn read(message: &Message<'_>, link: u32) -> Option<Self> {
        let (header, attributes) =
            Tc::read(message.payload).filter(|_| message.kind == RTM_NEWTFILTER)?;
        let kind = attributes.string(TCA_KIND)?.to_owned();
        if header.handle == Handle::UNSPECIFIED {
            return None;
        }
        // Those of a block that several devices share have no device of their own.
        let own = header.link == link;
        let all = header.info & 0xffff == u32::from(ETH_P_ALL.to_be());
        let options = attributes.nested(TCA_OPTIONS).filter(|_| own && all && kind == "matchall");
        Some(Self { kind, redirects_to: options.and_then(|options| redirected(&options)) })
    }
}

/// Where the only action of a `matchall` sends packets, if it does nothing else.
fn redirected(options: &Attributes<'_>) -> Option<u32> {
    let actions = options.nested(TCA_MATCHALL_ACT)?;
    let action = actions.nested(FIRST_ACTION).filter(|_| actions.kinds() == [FIRST_ACTION])?;
    let options = action.nested(TCA_ACT_OPTIONS)?;
    let mirred =
        options.get(TCA_MIRRED_PARMS).filter(|_| action.string(TCA_ACT_KIND) == Some("mirred"))?;
    let does = u32_at(mirred, MIRRED_DO)?;
    u32_at(mirred, MIRRED_DEVICE).filter(|_| does == TCA_EGRESS_REDIR)
}

/// All packets of a device that come by `parent`: `tc filter add … protocol all prio 1 matchall`.
fn matchall(link: u32, parent: Handle, write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let info = PRIORITY << 16 | u32::from(ETH_P_ALL.to_be());
    let header = Tc { info, ..Tc::of(link, Handle::UNSPECIFIED, parent) };
    let mut message = Writer::after(header.bytes());
    message.string(TCA_KIND, "matchall");
    message.nest(TCA_OPTIONS, write);
    message.finish()
}

/// `action mirred egress redirect dev …` with all packets that come by `parent`.
pub(crate) fn redirection(link: u32, parent: Handle, to: u32) -> Vec<u8> {
    let mirred: Vec<u8> = [0, 0, TC_ACT_STOLEN, 0, 0, TCA_EGRESS_REDIR, to]
        .into_iter()
        .flat_map(u32::to_ne_bytes)
        .collect();
    matchall(link, parent, |options| {
        options.nest(TCA_MATCHALL_ACT, |actions| {
            actions.nest(FIRST_ACTION, |action| {
                action.string(TCA_ACT_KIND, "mirred");
                action.nest(TCA_ACT_OPTIONS, |options| options.put(TCA_MIRRED_PARMS, &mirred));
            });
        });
    })
}

impl Netlink {
    /// Lets the innermost discipline of `spec`, which is at that place, take all packets for one flow:
    /// `tc filter add … matchall classid …:1`. `fq_codel` and `cake` ask filters for the flow before they look at a packet.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn one_flow(&mut self, at: &Place, spec: &Spec) -> Result<(), NetlinkError> {
        let mut at = *at;
        let mut inner = spec;
        while let Some(leaf) = inner.leaf() {
            at = at.inside().ok_or(NetlinkError::NeedsHandle { kind: inner.kind() })?;
            inner = leaf;
        }
        let flow = Handle::class(at.handle.major(), 1);
        let message = matchall(at.link, at.handle, |options| {
            options.u32(TCA_MATCHALL_CLASSID, flow.as_raw());
        });
        self.add_filter(&message, || format!("add filter matchall classid {flow} to {}", at.handle))
    }

    pub(crate) fn add_filter(
        &mut self,
        message: &[u8],
        what: impl FnOnce() -> String,
    ) -> Result<(), NetlinkError> {
        let answer = self.route.ask(RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_EXCL, message);
        answer.map(drop).map_err(|failure| failure.of(what()))
    }

    /// Whether packets are sorted by filters in the discipline `handle` of a device; [`Handle::UNSPECIFIED`] is the one at its root.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn has_filters(&mut self, index: u32, handle: Handle) -> Result<bool, NetlinkError> {
        self.filters(index, handle).map(|filters| !filters.is_empty())
    }

    pub(crate) fn filters(
        &mut self,
        index: u32,
        parent: Handle,
    ) -> Result<Vec<Filter>, NetlinkError> {
        let question = Tc::of(index, Handle::UNSPECIFIED, parent).bytes();
        match self.route.dump(RTM_GETTFILTER, &question) {
            Ok(answer) => {
                Ok(messages(&answer).filter_map(|message| Filter::read(&message, index)).collect())
            }
            // A kernel that was built without classifiers knows no such question.
            Err(Failure::Refused { errno: EOPNOTSUPP, .. }) => Ok(Vec::new()),
            Err(failure) => Err(failure.of(format!("list the filters of {}", self.name_of(index)))),
        }
    }
}
