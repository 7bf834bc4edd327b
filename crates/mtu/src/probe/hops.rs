//! Which routers there are, and up to which of them large packets get.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Instant;

use super::fleet::{Fleet, News};
use super::flight::Sign;
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
    fleet: &mut Fleet,
    large: u16,
    tick: &mut dyn FnMut(u8),
) -> Result<Trace, MtuError> {
    let mut hops: Vec<Hop> = Vec::new();
    for first in (1..=MOST_HOPS).step_by(WINDOW.into()) {
        tick(first);
        let numbers: Vec<u8> = (first..first + WINDOW).filter(|n| *n <= MOST_HOPS).collect();
        let signs = ask(fleet, SMALLEST, &numbers)?;
        for number in &numbers {
            let (by, is_host) = match signs.get(number) {
                Some(Sign::Expired(by) | Sign::Rejected(by)) => (Some(*by), false),
                Some(Sign::Reached) => (Some(fleet.host()), true),
                Some(Sign::TooBig { .. }) | None => (None, false),
            };
            let hop = Hop { number: *number, by, is_host, large_arrives: None, refuses: false };
            hops.push(hop);
            if is_host {
                break;
            }
        }
        if signs.is_empty() || hops.last().is_some_and(|hop| hop.is_host) {
            break;
        }
    }
    while hops.last().is_some_and(|hop| hop.by.is_none()) {
        hops.pop();
    }
    let there: Vec<u8> = hops.iter().filter(|hop| hop.by.is_some()).map(|hop| hop.number).collect();
    tick(there.len() as u8);
    let signs = ask(fleet, large, &there)?;
    let by_of_refusal = signs.values().find_map(|sign| match sign {
        Sign::TooBig { by, .. } => *by,
        _ => None,
    });
    for hop in hops.iter_mut().filter(|hop| hop.by.is_some()) {
        hop.large_arrives = Some(matches!(
            signs.get(&hop.number),
            Some(Sign::Reached | Sign::Expired(_) | Sign::Rejected(_))
        ));
        hop.refuses = by_of_refusal.is_some() && hop.by == by_of_refusal;
    }
    Ok(Trace { large, hops })
}

/// Asks these hops, and those that do not answer again.
fn ask(fleet: &mut Fleet, size: u16, numbers: &[u8]) -> Result<BTreeMap<u8, Sign>, MtuError> {
    let mut signs = BTreeMap::new();
    for _ in 0..TRIES {
        let open: Vec<u8> =
            numbers.iter().copied().filter(|number| !signs.contains_key(number)).collect();
        if open.is_empty() {
            break;
        }
        for number in &open {
            fleet.send(size, Some(*number))?;
        }
        let deadline = Instant::now() + fleet.patience();
        while numbers.iter().any(|number| !signs.contains_key(number)) {
            let news = fleet.wait(deadline);
            if news.is_empty() {
                break;
            }
            let these = |news: &News| news.size == size;
            for News { hops, sign, .. } in news.into_iter().filter(these) {
                if let Some(number) = hops {
                    signs.insert(number, sign);
                }
            }
        }
        // Whoever is beyond the host need not answer.
        let host =
            signs.iter().find(|(_, sign)| **sign == Sign::Reached).map(|(number, _)| *number);
        if host.is_some_and(|host| {
            (1..host).all(|number| !numbers.contains(&number) || signs.contains_key(&number))
        }) {
            break;
        }
    }
    Ok(signs)
}
