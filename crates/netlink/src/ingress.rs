//! What becomes of packets as they arrive at a device.

use crate::channel::messages;
use crate::filter::{Filter, redirection};
use crate::header::Tc;
use crate::kinds::TCA_KIND;
use crate::qdisc::RTM_GETQDISC;
use crate::{Handle, Netlink, NetlinkError, Place};

/// Attributes of a discipline whose filters several devices have in common.
const TCA_INGRESS_BLOCK: u16 = 13;
const TCA_EGRESS_BLOCK: u16 = 14;

/// The number of every `ingress` and `clsact`, and where each has filters: `clsact` has some for what leaves, too.
const NUMBER: Handle = Handle::qdisc(u16::MAX);
const FILTERS: [Handle; 2] = [Handle::from_raw(0xffff_fff2), Handle::from_raw(0xffff_fff3)];

/// What becomes of packets as they arrive at a device, before anything else sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arriving {
    /// Nothing: there is no `ingress`, and no `clsact`.
    Plain,
    /// Nothing, though there is an `ingress`: it has no filters.
    Unfiltered,
    /// All are taken to another device by one `matchall`, and nothing else is done: its number, or 0 if it is gone.
    Redirected {
        /// The other device.
        to: u32,
    },
    /// Something else.
    Sorted {
        /// What it is, in words: `a clsact with filters (flower, u32)`.
        by: String,
    },
}

fn place(link: u32) -> Place {
    Place { link, parent: Handle::INGRESS, handle: NUMBER }
}

impl Arriving {
    fn of(kind: &str, shared: bool, filters: &[Filter]) -> Self {
        match filters {
            [] if kind == "ingress" && !shared => return Self::Unfiltered,
            [Filter { redirects_to: Some(to), .. }] if kind == "ingress" && !shared => {
                return Self::Redirected { to: *to };
            }
            _ => {}
        }
        let mut kinds: Vec<&str> = filters.iter().map(|filter| filter.kind.as_str()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let filters = match kinds.as_slice() {
            [] => "no filters".to_owned(),
            kinds => format!("filters ({})", kinds.join(", ")),
        };
        let article = if kind == "ingress" { "an" } else { "a" };
        let block = if shared { " in a shared block" } else { "" };
        Self::Sorted { by: format!("{article} {kind} with {filters}{block}") }
    }
}

impl Netlink {
    /// What becomes of packets as they arrive at a device: `tc qdisc show dev … ingress`, `tc filter show dev … ingress`.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn arriving(&mut self, index: u32) -> Result<Arriving, NetlinkError> {
        let question = Tc::all_of(index).bytes();
        let answer = self
            .route
            .dump(RTM_GETQDISC, &question)
            .map_err(|failure| failure.of(format!("list the qdiscs of {}", self.name_of(index))))?;
        let found = messages(&answer).find_map(|message| {
            let (header, attributes) = Tc::read(message.payload)?;
            let is_it = header.link == index && header.parent == Handle::INGRESS;
            let shared = [TCA_INGRESS_BLOCK, TCA_EGRESS_BLOCK]
                .into_iter()
                .any(|block| attributes.u32(block).is_some_and(|block| block != 0));
            is_it.then(|| (attributes.string(TCA_KIND).unwrap_or_default().to_owned(), shared))
        });
        let Some((kind, shared)) = found else { return Ok(Arriving::Plain) };
        let places = if kind == "ingress" { &FILTERS[..1] } else { &FILTERS[..] };
        let mut filters = Vec::new();
        for place in places {
            filters.extend(self.filters(index, *place)?);
        }
        Ok(Arriving::of(&kind, shared, &filters))
    }

    /// Gives a device a place for filters of what arrives: `tc qdisc add dev … ingress`.
    ///
    /// # Errors
    /// [`NetlinkError::NoSuchKind`] if the kernel lacks it, [`NetlinkError::Refused`] if there is one, or a `clsact`.
    pub fn add_ingress(&mut self, index: u32) -> Result<(), NetlinkError> {
        self.add_qdisc_kind(&place(index), "ingress")
    }

    /// Takes what arrives at a device that has an [`ingress`](Self::add_ingress) to another one, as if that had it to send:
    /// `tc filter add dev … ingress protocol all prio 1 matchall action mirred egress redirect dev …`. An
    /// [ifb](Self::add_ifb) gives it back as received.
    ///
    /// # Errors
    /// If the kernel has no `matchall` or no `mirred`, or refuses.
    pub fn redirect(&mut self, index: u32, to: u32) -> Result<(), NetlinkError> {
        let (from, target) = (self.name_of(index), self.name_of(to));
        self.add_filter(&redirection(index, FILTERS[0], to), || {
            format!("redirect what arrives at {from} to {target} (matchall, mirred)")
        })
    }

    /// Removes the `ingress` or `clsact` of a device with all its filters.
    ///
    /// # Errors
    /// If there is none, or the kernel refuses.
    pub fn delete_ingress(&mut self, index: u32) -> Result<(), NetlinkError> {
        self.delete_qdisc(&place(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(kind: &str, redirects_to: Option<u32>) -> Filter {
        Filter { kind: kind.to_owned(), redirects_to }
    }

    #[test]
    fn what_is_more_than_a_redirection_is_told_in_words() {
        let ours = filter("matchall", Some(7));
        let of = |kind, shared, filters: &[Filter]| match Arriving::of(kind, shared, filters) {
            Arriving::Sorted { by } => by,
            other => format!("{other:?}"),
        };
        assert_eq!(of("ingress", false, &[]), "Unfiltered");
        assert_eq!(of("ingress", false, std::slice::from_ref(&ours)), "Redirected { to: 7 }");
        assert_eq!(
            of("ingress", true, std::slice::from_ref(&ours)),
            "an ingress with filters (matchall) in a shared block"
        );
        assert_eq!(
            of("ingress", false, &[ours.clone(), filter("u32", None), filter("u32", None)]),
            "an ingress with filters (matchall, u32)"
        );
        assert_eq!(of("clsact", false, &[ours]), "a clsact with filters (matchall)");
        assert_eq!(of("clsact", false, &[]), "a clsact with no filters");
    }
}
