//! Filters: which class of a discipline packets belong to.

use dualq_qdisc::Spec;
use netlink_packet_core::{Emitable, NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::tc::{TcHandle, TcHeader};

use crate::attributes::Writer;
use crate::kinds::{TCA_KIND, TCA_OPTIONS};
use crate::{Handle, Netlink, NetlinkError, Place};

const RTM_NEWTFILTER: u16 = 44;
/// The attribute of `matchall` that names the class (`include/uapi/linux/pkt_cls.h`).
const TCA_MATCHALL_CLASSID: u16 = 1;
const ETH_P_ALL: u16 = 3;
const PRIORITY: u32 = 1;

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
        let header = TcHeader {
            family: AddressFamily::Unspec,
            index: at.link.cast_signed(),
            handle: TcHandle::from(0),
            parent: TcHandle::from(at.handle.as_raw()),
            info: PRIORITY << 16 | u32::from(ETH_P_ALL.to_be()),
        };
        let mut bytes = vec![0; header.buffer_len()];
        header.emit(&mut bytes);
        let mut message = Writer::after(bytes);
        message.string(TCA_KIND, "matchall");
        let flow = Handle::class(at.handle.major(), 1);
        message.nest(TCA_OPTIONS, |options| options.u32(TCA_MATCHALL_CLASSID, flow.as_raw()));
        let answer = self.route.ask(RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_EXCL, &message.finish());
        let what = || format!("add filter matchall classid {flow} to {}", at.handle);
        answer.map(drop).map_err(|failure| failure.of(what()))
    }
}
