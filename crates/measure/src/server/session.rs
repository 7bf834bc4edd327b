//! Sessions: what a client that proved itself has, until its first connection ends or its time is up.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::protocol::{Cookie, FlowReport, FlowSample};
use crate::token::random;

/// Flows of a session at once.
pub(super) const MOST_FLOWS: u32 = 64;
/// Flows of a session whose reports nobody has collected.
const MOST_REPORTS: usize = 256;
/// Datagrams of a session that are answered in a second; others are not.
const MOST_DATAGRAMS: u64 = 2_000;

/// A session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) cookie: Cookie,
    /// Whose.
    pub(super) address: IpAddr,
    began: Instant,
    deadline: Instant,
    /// Its first connection has ended.
    over: AtomicBool,
    /// Flows at the moment, and those of them that this end sends, and receives.
    flows: AtomicU32,
    pub(super) sending: AtomicU32,
    pub(super) receiving: AtomicU32,
    /// Datagrams that came.
    arrived: AtomicU64,
    /// In which second, and how many of them in it.
    second: Mutex<(u64, u64)>,
    /// What was seen of flows; nothing yet of those that have not ended.
    reports: Mutex<HashMap<u32, Option<FlowReport>>>,
    changed: Condvar,
}

/// All there are.
#[derive(Debug)]
pub(super) struct Sessions {
    by_cookie: Mutex<HashMap<Cookie, Arc<Session>>>,
    most: usize,
}

/// A session that ends with this.
#[derive(Debug)]
pub(super) struct Own<'a> {
    sessions: &'a Sessions,
    pub(super) session: Arc<Session>,
}

impl Sessions {
    pub(super) fn new(most: usize) -> Self {
        Self { by_cookie: Mutex::default(), most }
    }

    /// Begins one, if there may be another.
    pub(super) fn begin(&self, address: IpAddr, lasts: Duration) -> io::Result<Option<Own<'_>>> {
        let cookie = Cookie(random()?);
        let now = Instant::now();
        let session = Arc::new(Session {
            cookie,
            address,
            began: now,
            deadline: now + lasts,
            over: AtomicBool::default(),
            flows: AtomicU32::default(),
            sending: AtomicU32::default(),
            receiving: AtomicU32::default(),
            arrived: AtomicU64::default(),
            second: Mutex::default(),
            reports: Mutex::default(),
            changed: Condvar::default(),
        });
        let mut all = self.by_cookie.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= self.most {
            return Ok(None);
        }
        all.insert(cookie, Arc::clone(&session));
        Ok(Some(Own { sessions: self, session }))
    }

    /// The session of that name, if it is this address's.
    pub(super) fn find(&self, cookie: Cookie, address: IpAddr) -> Option<Arc<Session>> {
        let all = self.by_cookie.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&cookie).filter(|session| session.address == address).cloned()
    }
}

impl Drop for Own<'_> {
    fn drop(&mut self) {
        self.session.over.store(true, Ordering::Relaxed);
        let mut all = self.sessions.by_cookie.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(&self.session.cookie);
    }
}

impl Session {
    /// Whether all of its connections are to end.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed) || self.is_late()
    }

    /// Whether its time is up.
    pub(super) fn is_late(&self) -> bool {
        Instant::now() >= self.deadline
    }

    pub(super) const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// A flow begins, if there may be another of this number.
    pub(super) fn begin_flow(self: &Arc<Self>, number: u32) -> Option<Flow> {
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = reports.len() < MOST_REPORTS
            && !reports.contains_key(&number)
            && self.flows.load(Ordering::Relaxed) < MOST_FLOWS;
        if !has_room {
            return None;
        }
        reports.insert(number, None);
        self.flows.fetch_add(1, Ordering::Relaxed);
        Some(Flow { session: Arc::clone(self), number, cc: None, samples: Vec::new() })
    }

    /// What was seen of these flows, once all have ended, or at the deadline; a flow of which nothing is known is left out.
    pub(super) fn collect(&self, numbers: &[u32], deadline: Instant) -> Vec<FlowReport> {
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let are_running = numbers.iter().any(|number| reports.get(number) == Some(&None));
            let left = deadline.saturating_duration_since(Instant::now());
            if !are_running || left.is_zero() {
                break;
            }
            let woken = self.changed.wait_timeout(reports, left);
            reports = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        let has_ended = |number: &&u32| matches!(reports.get(number), Some(Some(_)));
        let ended: Vec<u32> = numbers.iter().filter(has_ended).copied().collect();
        ended.iter().filter_map(|number| reports.remove(number).flatten()).collect()
    }

    /// A datagram came, which may count: the number of those that have, if this one is to be answered.
    pub(super) fn datagram(&self, counts: bool) -> Option<u64> {
        let one = u64::from(counts);
        let arrived = self.arrived.fetch_add(one, Ordering::Relaxed) + one;
        let now = self.began.elapsed().as_secs();
        let mut second = self.second.lock().unwrap_or_else(PoisonError::into_inner);
        if second.0 != now {
            *second = (now, 0);
        }
        second.1 += 1;
        (second.1 <= MOST_DATAGRAMS && !self.is_over()).then_some(arrived)
    }
}

/// A flow that runs.
#[derive(Debug)]
pub(super) struct Flow {
    session: Arc<Session>,
    number: u32,
    pub(super) cc: Option<String>,
    pub(super) samples: Vec<FlowSample>,
}

impl Drop for Flow {
    fn drop(&mut self) {
        let session = &self.session;
        session.flows.fetch_sub(1, Ordering::Relaxed);
        let samples = std::mem::take(&mut self.samples);
        let report = FlowReport { flow: self.number, cc: self.cc.take(), samples };
        let mut reports = session.reports.lock().unwrap_or_else(PoisonError::into_inner);
        reports.insert(self.number, Some(report));
        drop(reports);
        session.changed.notify_all();
    }
}
