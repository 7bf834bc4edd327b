//! What puts packets together at an interface.

use dualq_netlink::{Link, Netlink, ReceiveOffload};

use crate::apply::ApplyError;
use crate::plan::Offload;

const fn received(key: Offload) -> Option<ReceiveOffload> {
    match key {
        Offload::GsoMaxSegs => None,
        Offload::Gro => Some(ReceiveOffload::Gro),
        Offload::GroHw => Some(ReceiveOffload::GroHw),
        Offload::Lro => Some(ReceiveOffload::Lro),
    }
}

/// What it is, as plans have it.
pub(crate) fn read(netlink: &mut Netlink, link: &Link, key: Offload) -> Result<String, ApplyError> {
    match received(key) {
        Some(which) => {
            let on = netlink.offloads(&link.name)?.has(which);
            Ok(if on { "on" } else { "off" }.to_owned())
        }
        None => link.gso_max_segs.map(|segs| segs.to_string()).ok_or_else(|| {
            ApplyError::Plan(format!("this kernel does not tell {key} of {}", link.name))
        }),
    }
}

/// Sets it, and looks whether the kernel took it.
pub(crate) fn write(
    netlink: &mut Netlink,
    link: &Link,
    key: Offload,
    value: &str,
) -> Result<(), ApplyError> {
    key.check(value).map_err(ApplyError::Plan)?;
    match received(key) {
        Some(which) => netlink.set_receive_offload(&link.name, which, value == "on")?,
        None => netlink.set_gso_max_segs(link.index, value.parse().unwrap_or_default())?,
    }
    let link = netlink.link_at(link.index)?;
    let now = read(netlink, &link, key)?;
    if now == value {
        return Ok(());
    }
    Err(ApplyError::Plan(format!("{key} of {} is {now} after {value} was asked for", link.name)))
}
