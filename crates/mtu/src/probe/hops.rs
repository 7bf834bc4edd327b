//! Which routers there are, and up to which of them large packets get.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use super::packet::{Response, Shape};
use super::prober::{News, Prober};
use crate::MtuError;
use crate::search::SMALLEST;

/// As traceroute.
const MOST_HOPS: u8 = 30;
/// So many hops are asked at once.
const WINDOW: u8 = 6;
/// How often a hop that does not answer is asked again.
const TRIES: u32 = 3;

/// The way to the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The size of the large packets.
    pub large: u16,
    /// One after the other, as far as anybody answered; the host is the last if it did.
    pub hops: Vec<Hop>,
}

/// A hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Its number, the first being 1.
    pub number: u8,
    /// Who answered a small packet.
    pub by: Option<IpAddr>,
    /// Whether this is the host itself.
    pub is_host: bool,
    /// Whether a large packet got here: it was answered, or said to be too big to go on. `None` if the hop answers nothing.
    pub large_arrives: Option<bool>,
    /// Whether this hop said that the large packet is too big to go on.
    pub refuses: bool,
}

impl Trace {
    /// The last hop that large packets reach, and the first that they do not reach while small ones do.
    #[must_use]
    pub fn vanishing(&self) -> Option<(Option<Hop>, Hop)> {
        let last = self.hops.iter().rposition(|hop| hop.large_arrives == Some(true));
        let rest = last.map_or(0, |last| last + 1);
        let next = self.hops[rest..].iter().find(|hop| hop.large_arrives == Some(false))?;
        Some((last.map(|last| self.hops[last]), *next))
    }
}

/// Sends small and large packets with more and more hops to live.
pub(super) fn trace(
    prober: &mut Prober,
    large: u16,
    tick: &mut dyn FnMut(u8),
) -> Result<Trace, MtuError> {
    let own = prober.own();
    let mut hops: Vec<Hop> = Vec::new();
    for first in (1..=MOST_HOPS).step_by(WINDOW.into()) {
        tick(first);
        let numbers: Vec<u8> = (first..first + WINDOW).filter(|n| *n <= MOST_HOPS).collect();
        let responses = responses(&ask(prober, SMALLEST, &numbers, &[0])?);
        let mut is_end = responses.is_empty();
        for number in &numbers {
            let (by, is_host, is_last) = match responses.get(number) {
                Some(Response::Expired(by)) => (Some(*by), false, false),
                // Packets with more hops to live are rejected by the same. This machine itself is no hop.
                Some(Response::Rejected(by)) => {
                    (Some(*by).filter(|_| own != Some(*by)), false, true)
                }
                Some(Response::Reached) => (Some(prober.host()), true, true),
                Some(Response::TooBig { .. }) | None => (None, false, false),
            };
            let hop = Hop { number: *number, by, is_host, large_arrives: None, refuses: false };
            hops.push(hop);
            if is_last {
                is_end = true;
                break;
            }
        }
        if is_end {
            break;
        }
    }
    while hops.last().is_some_and(|hop| hop.by.is_none()) {
        hops.pop();
    }
    let there: Vec<u8> = hops.iter().filter(|hop| hop.by.is_some()).map(|hop| hop.number).collect();
    tick(there.len() as u8);
    let responses = responses(&ask(prober, large, &there, &[0])?);
    let by_of_refusal = responses.values().find_map(|response| match response {
        Response::TooBig { by, .. } => *by,
        _ => None,
    });
    for hop in hops.iter_mut().filter(|hop| hop.by.is_some()) {
        hop.large_arrives = Some(matches!(
            responses.get(&hop.number),
            Some(Response::Reached | Response::Expired(_) | Response::Rejected(_))
        ));
        hop.refuses = by_of_refusal.is_some() && hop.by == by_of_refusal;
    }
    Ok(Trace { large, hops })
}

/// By hop, of packets that are nothing but Not-ECT.
fn responses(news: &BTreeMap<(u8, u8), News>) -> BTreeMap<u8, Response> {
    news.iter().map(|((number, _), news)| (*number, news.response)).collect()
}

/// A hop, and what it said of packets of each value of the ECN field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EcnHop {
    /// Its number, the first being 1.
    pub number: u8,
    /// Who answered.
    pub by: IpAddr,
    /// With which value packets arrived there, by the value that they were sent with; `None` where it answered without saying so.
    pub arrived: BTreeMap<u8, Option<u8>>,
}

/// What happens to values of the ECN field (0 to 3) on the way to a host: hop by hop, by what routers quote of packets that had no more hops to
/// live. Hops that answer nothing are left out; the host is the last if it answers.
///
/// # Errors
/// If this machine cannot send; with IPv4, also if it may open no raw socket.
pub fn ecn_by_hop(to: IpAddr, values: &[u8], timeout: Duration) -> Result<Vec<EcnHop>, MtuError> {
    let to = SocketAddr::new(to, 0);
    let mut prober =
        Prober::quoting(to, timeout).map_err(|error| MtuError::send(to.ip(), &error))?;
    let mut hops: Vec<EcnHop> = Vec::new();
    for first in (1..=MOST_HOPS).step_by(WINDOW.into()) {
        let numbers: Vec<u8> = (first..first + WINDOW).filter(|n| *n <= MOST_HOPS).collect();
        let news = ask(&mut prober, SMALLEST, &numbers, values)?;
        for number in numbers {
            let mut hop: Option<EcnHop> = None;
            for value in values {
                let Some(news) = news.get(&(number, *value)) else { continue };
                let by = match news.response {
                    Response::Expired(by) | Response::Rejected(by) => by,
                    Response::Reached => to.ip(),
                    Response::TooBig { .. } => continue,
                };
                let hop =
                    hop.get_or_insert_with(|| EcnHop { number, by, arrived: BTreeMap::new() });
                hop.arrived.insert(*value, news.quoted_ecn);
            }
            let is_host = hop.as_ref().is_some_and(|hop| hop.by == to.ip());
            hops.extend(hop);
            if is_host {
                return Ok(hops);
            }
        }
        if news.is_empty() {
            break;
        }
    }
    Ok(hops)
}

/// Asks these hops with packets of each of these values of the ECN field, and those that do not answer again.
fn ask(
    prober: &mut Prober,
    size: u16,
    numbers: &[u8],
    values: &[u8],
) -> Result<BTreeMap<(u8, u8), News>, MtuError> {
    let mut answers: BTreeMap<(u8, u8), News> = BTreeMap::new();
    let all = || numbers.iter().flat_map(|number| values.iter().map(move |ecn| (*number, *ecn)));
    for _ in 0..TRIES {
        let open: Vec<(u8, u8)> = all().filter(|one| !answers.contains_key(one)).collect();
        if open.is_empty() {
            break;
        }
        for (number, ecn) in open {
            prober.send(Shape { size, hops: Some(number), ecn })?;
        }
        let deadline = Instant::now() + prober.patience();
        while all().any(|one| !answers.contains_key(&one)) {
            let news = prober.wait(deadline);
            if news.is_empty() {
                break;
            }
            for news in news.into_iter().filter(|news| news.shape.size == size) {
                if let Some(number) = news.shape.hops {
                    answers.insert((number, news.shape.ecn), news);
                }
            }
        }
        // Whoever is beyond the host need not answer.
        let is_host = |news: &&News| news.response == Response::Reached;
        let host = answers.values().find(is_host).and_then(|news| news.shape.hops);
        let is_nearer = |(number, _): &(u8, u8)| host.is_some_and(|host| *number < host);
        if host.is_some() && all().filter(is_nearer).all(|one| answers.contains_key(&one)) {
            break;
        }
    }
    Ok(answers)
}
