//! The SYNs that connections began with, for clients who want to know how theirs arrived.

use std::collections::HashMap;
use std::net::{IpAddr, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dualq_socket::{TcpInfo, saved_syn};

use super::Shared;
use crate::protocol::ArrivedSyn;
use crate::segment::Segment;

/// Those of the connections that are there, by address and sequence number.
#[derive(Debug, Default)]
pub(super) struct Syns(Mutex<HashMap<(IpAddr, u32), ArrivedSyn>>);

/// One that is known as long as this.
#[derive(Debug)]
pub(super) struct Known {
    shared: Arc<Shared>,
    from: IpAddr,
    pub(super) syn: ArrivedSyn,
}

impl Syns {
    fn all(&self) -> MutexGuard<'_, HashMap<(IpAddr, u32), ArrivedSyn>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that of a new connection, if the kernel kept it.
    pub(super) fn note(shared: &Arc<Shared>, from: IpAddr, stream: &TcpStream) -> Option<Known> {
        let Segment { tcp, ecn } = Segment::read(&saved_syn(stream.as_fd()).ok()?)?;
        let agreed = TcpInfo::of(stream.as_fd()).ok()?.ecn.into();
        let syn = ArrivedSyn { number: tcp.sequence_number, ecn, agreed };
        shared.syns.all().insert((from, syn.number), syn);
        Some(Known { shared: Arc::clone(shared), from, syn })
    }

    /// Of those from an address, the ones with these sequence numbers.
    pub(super) fn find(&self, from: IpAddr, numbers: &[u32]) -> Vec<ArrivedSyn> {
        let all = self.all();
        numbers.iter().filter_map(|number| all.get(&(from, *number)).copied()).collect()
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        self.shared.syns.all().remove(&(self.from, self.syn.number));
    }
}
