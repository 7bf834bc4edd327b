//! Finding out what the kernel has to be told, to tell of a discipline what it told before.
//!
//! It is not always the same: some values are rounded on their way in and again on their way out, and some options are refused
//! even with the value that they have by default.

use crate::attributes::{Attributes, Writer};
use crate::tree::Node;
use crate::{Handle, Netlink, NetlinkError, Place};

impl Netlink {
    /// Completes `nodes`, a [`tree`](Self::tree) of another device, so that asking for all of them gives the same tree. That is
    /// tried on the device `link`, whose disciplines are lost. `None` if nothing gives the same.
    ///
    /// # Errors
    /// If the kernel refuses one of them, however it is asked for.
    pub fn learn(&mut self, link: u32, nodes: &[Node]) -> Result<Option<Vec<Node>>, NetlinkError> {
        let mut learnt: Vec<Node> = Vec::new();
        for node in nodes {
            learnt.push(node.clone());
            if !self.learn_last(link, &mut learnt)? {
                return Ok(None);
            }
        }
        Ok(Some(learnt))
    }

    /// Finds out about the last of `nodes`; the others are known.
    fn learn_last(&mut self, link: u32, nodes: &mut [Node]) -> Result<bool, NetlinkError> {
        let Some(meant) = nodes.last().cloned() else { return Ok(true) };
        let mut asked = meant.options.clone().unwrap_or_default();
        let mut found = match self.told(link, nodes) {
            Ok(found) => found,
            // One of the options cannot be asked for at all.
            Err(refused) => {
                let shorter = positions(&asked).find_map(|at| {
                    let without = edited(&asked, at, |_| None);
                    set(nodes, &without);
                    self.told(link, nodes).ok().map(|found| (without, found))
                });
                let Some((without, found)) = shorter else { return Err(refused) };
                asked = without;
                found
            }
        };
        let edits: [fn(u32) -> Option<u32>; 3] =
            [|_| None, |value| Some(value.wrapping_sub(1)), |value| Some(value.wrapping_add(1))];
        for at in wrong(&meant.options, &found) {
            for edit in edits {
                let other = edited(&asked, at, edit);
                set(nodes, &other);
                let Ok(now) = self.told(link, nodes) else { continue };
                if wrong(&meant.options, &now).len() < wrong(&meant.options, &found).len() {
                    (asked, found) = (other, now);
                    break;
                }
            }
        }
        set(nodes, &asked);
        Ok(found == meant.options)
    }

    /// What the kernel tells of the last of `nodes`, put anew where nothing is.
    fn told(&mut self, link: u32, nodes: &[Node]) -> Result<Option<Vec<u8>>, NetlinkError> {
        // There may be none.
        let _ = self.delete_qdisc(&Place { handle: Handle::UNSPECIFIED, ..Place::root(link) });
        nodes.iter().try_for_each(|node| self.perform(&node.request(link)))?;
        let is_last = |node: &Node| {
            nodes.last().is_some_and(|last| (last.class, last.handle) == (node.class, node.handle))
        };
        Ok(self.tree(link)?.into_iter().find(is_last).and_then(|node| node.options))
    }
}

fn set(nodes: &mut [Node], asked: &[u8]) {
    if let Some(last) = nodes.last_mut() {
        last.asked = last.options.as_ref().filter(|told| *told != asked).map(|_| asked.to_vec());
    }
}

/// The kinds of all attributes.
fn positions(options: &[u8]) -> impl Iterator<Item = u16> {
    Attributes::read(options).kinds().into_iter()
}

/// Which attributes are not as they should be.
fn wrong(meant: &Option<Vec<u8>>, found: &Option<Vec<u8>>) -> Vec<u16> {
    let (meant, found) =
        (meant.as_deref().unwrap_or_default(), found.as_deref().unwrap_or_default());
    let of_found = Attributes::read(found);
    let attributes = Attributes::read(meant);
    attributes
        .kinds()
        .into_iter()
        .filter(|kind| attributes.get(*kind) != of_found.get(*kind))
        .collect()
}

/// The options with one number changed, or without it.
fn edited(options: &[u8], at: u16, edit: impl Fn(u32) -> Option<u32>) -> Vec<u8> {
    let attributes = Attributes::read(options);
    let mut written = Writer::default();
    for kind in attributes.kinds() {
        let value = attributes.get(kind).unwrap_or_default();
        if kind != at {
            written.put(kind, value);
        } else if let Some(number) = attributes.u32(kind).filter(|_| value.len() == 4).or(Some(0))
            && let Some(number) = edit(number)
        {
            written.u32(kind, number);
        }
    }
    written.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_is_changed_or_left_out() {
        let mut options = Writer::default();
        options.u32(1, 39);
        options.u8(2, 7);
        let options = options.finish();
        let more = edited(&options, 1, |value| Some(value + 1));
        assert_eq!(Attributes::read(&more).u32(1), Some(40));
        assert_eq!(Attributes::read(&more).u8(2), Some(7));
        let less = edited(&options, 1, |_| None);
        assert_eq!(Attributes::read(&less).kinds(), [2]);
        assert_eq!(wrong(&Some(options.clone()), &Some(more)), [1]);
        assert_eq!(wrong(&Some(options), &Some(less)), [1]);
    }
}
