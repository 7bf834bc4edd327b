//! How large packets may be, each way: by questions of more and more bytes that are answered in few, and by such whose answers are as long.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use dualq_mtu::probe::{Answered, Options, Trace, answered};
use dualq_mtu::search::Limit;
use dualq_netlink::Netlink;

use super::error::MeasureError;
use crate::measurement::{Hop, Larger, LargestPacket, PathMtu, Place};
use crate::protocol::{Cookie, Datagram, LONGEST_DATAGRAM};

/// Headers of IPv6 and of UDP.
const HEADERS: usize = 48;
/// How often a size is tried at most.
const ATTEMPTS: u32 = 30;
/// The longest that an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// The largest packets each way; nothing where it is not known what the interface sends, or where no answer comes.
pub(super) fn largest(to: SocketAddr, cookie: Cookie) -> Result<Option<PathMtu>, MeasureError> {
    let way = Netlink::open().and_then(|mut netlink| netlink.way_to_socket(to));
    let Ok(way) = way else { return Ok(None) };
    let interface = way.link.mtu.min((LONGEST_DATAGRAM + HEADERS) as u32) as u16;
    let options = Options {
        timeout: PATIENCE,
        attempts: ATTEMPTS,
        port: None,
        udp_port: None,
        tcp_send: false,
    };
    let search = |is_echo, ceiling| {
        let head = Datagram { cookie, number: 0, ecn: 0, is_echo, echoed: None }.write();
        answered(to, &head, ceiling, &options).map_err(|error| MeasureError::Here {
            what: "cannot send large packets".to_owned(),
            reason: error.to_string(),
        })
    };
    let Some(up) = of(&search(false, interface)?) else { return Ok(None) };
    let Some(mut down) = of(&search(true, up.bytes)?) else { return Ok(None) };
    // Of what became of its answers the server learns, if anybody does.
    if down.larger == Larger::Vanish {
        (down.larger, down.place) = (Larger::Lost, None);
    }
    Ok(Some(PathMtu { interface_bytes: interface, up, down }))
}

/// A failure, with what is known of it: flows of full segments hang where large packets vanish.
pub(super) fn explained(error: MeasureError, mtu: Option<PathMtu>) -> MeasureError {
    let is_hole = |largest: &LargestPacket| matches!(largest.larger, Larger::Vanish | Larger::Lost);
    let ways = mtu.map(|mtu| [("up", mtu.up), ("down", mtu.down)]);
    let hole = ways.and_then(|ways| ways.into_iter().find(|(_, largest)| is_hole(largest)));
    match (error, hole) {
        (MeasureError::Vanished { address, reason }, Some((way, LargestPacket { bytes, .. }))) => {
            let reason = format!(
                "{reason}; packets over {bytes} bytes do not arrive on the way {way}: see dualq mtu {}",
                address.ip()
            );
            MeasureError::Vanished { address, reason }
        }
        (error, _) => error,
    }
}

fn of(answered: &Answered) -> Option<LargestPacket> {
    let Answered { found, trace } = answered;
    let larger = match found.limit {
        Limit::Nothing => Larger::Untried,
        Limit::Refused => Larger::Refused,
        Limit::Silence(_) => Larger::Vanish,
        Limit::Unclear => Larger::Unclear,
        Limit::NoAnswer => return None,
    };
    let said_by = found.refusals.iter().find_map(|refusal| refusal.by);
    let place = trace.as_ref().and_then(place);
    Some(LargestPacket { bytes: found.largest?, larger, said_by, place })
}

fn place(trace: &Trace) -> Option<Place> {
    let (after, before) = trace.vanishing()?;
    let named = |hop: dualq_mtu::probe::Hop| -> Option<Hop> {
        let address: IpAddr = hop.by?;
        Some(Hop { number: hop.number, address })
    };
    Some(Place { after: after.and_then(named), before: named(before)? })
}
