//! Which routers there are, and up to which of them large packets get.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Instant;

use super::packet::Response;
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
    let mut hops: Vec<Hop> = Vec::new();
    for first in (1..=MOST_HOPS).step_by(WINDOW.into()) {
        tick(first);
        let numbers: Vec<u8> = (first..first + WINDOW).filter(|n| *n <= MOST_HOPS).collect();
        let responses = ask(prober, SMALLEST, &numbers)?;
        for number in &numbers {
            let (by, is_host) = match responses.get(number) {
                Some(Response::Expired(by) | Response::Rejected(by)) => (Some(*by), false),
                Some(Response::Reached) => (Some(prober.host()), true),
                Some(Response::TooBig { .. }) | None => (None, false),
            };
            let hop = Hop { number: *number, by, is_host, large_arrives: None, refuses: false };
            hops.push(hop);
            if is_host {
                break;
            }
        }
        if responses.is_empty() || hops.last().is_some_and(|hop| hop.is_host) {
            break;
        }
    }
    while hops.last().is_some_and(|hop| hop.by.is_none()) {
        hops.pop();
    }
    let there: Vec<u8> = hops.iter().filter(|hop| hop.by.is_some()).map(|hop| hop.number).collect();
    tick(there.len() as u8);
    let responses = ask(prober, large, &there)?;
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

/// Asks these hops, and those that do not answer again.
fn ask(prober: &mut Prober, size: u16, numbers: &[u8]) -> Result<BTreeMap<u8, Response>, MtuError> {
    let mut responses = BTreeMap::new();
    for _ in 0..TRIES {
        let open: Vec<u8> =
            numbers.iter().copied().filter(|number| !responses.contains_key(number)).collect();
        if open.is_empty() {
            break;
        }
        for number in &open {
            prober.send(size, Some(*number))?;
        }
        let deadline = Instant::now() + prober.patience();
        while numbers.iter().any(|number| !responses.contains_key(number)) {
            let news = prober.wait(deadline);
            if news.is_empty() {
                break;
            }
            let these = |news: &News| news.size == size;
            for News { hops, response, .. } in news.into_iter().filter(these) {
                if let Some(number) = hops {
                    responses.insert(number, response);
                }
            }
        }
        // Whoever is beyond the host need not answer.
        let host = responses
            .iter()
            .find(|(_, response)| **response == Response::Reached)
            .map(|(number, _)| *number);
        if host.is_some_and(|host| {
            (1..host).all(|number| !numbers.contains(&number) || responses.contains_key(&number))
        }) {
            break;
        }
    }
    Ok(responses)
}
