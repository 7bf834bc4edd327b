//! All queue disciplines of a device, byte for byte, so that they can be put back.

use netlink_packet_core::NLA_F_NESTED;

use crate::attributes::{Attributes, Writer, u32_at};
use crate::channel::messages;
use crate::header::Tc;
use crate::kinds::{TCA_KIND, TCA_OPTIONS};
use crate::qdisc::{RTM_GETQDISC, RTM_GETTCLASS, RTM_NEWQDISC, RTM_NEWTCLASS, Request, Verb};
use crate::{Handle, Netlink, NetlinkError, Place};

const TCA_STAB: u16 = 8;
/// `struct tc_htb_glob`: version, r2q, default, debug, and then what was sent directly.
const HTB_INIT: u16 = 2;
const HTB_VERSION: std::ops::Range<usize> = 0..4;
const HTB_DIRECT_PACKETS: std::ops::Range<usize> = 16..20;

/// A queue discipline, or a class of one, as the kernel tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Whether it is a class.
    pub class: bool,
    /// Its kind, as tc names it; of a class that of its discipline.
    pub kind: String,
    /// Its number; disciplines that the kernel put there itself have none.
    pub handle: Handle,
    /// [`Handle::ROOT`], or the class that it is in.
    pub parent: Handle,
    /// Its options as they are in the message, if it has any, but for what only counts.
    pub options: Option<Vec<u8>>,
    /// What the kernel has to be told instead, to tell these options: [`Netlink::learn`].
    pub asked: Option<Vec<u8>>,
    /// Whether it has a size table, of which the kernel does not tell all.
    pub size_table: bool,
}

impl Node {
    fn read(kind: u16, payload: &[u8], link: u32) -> Option<Self> {
        let (header, attributes) = Tc::read(payload)?;
        let name = attributes.string(TCA_KIND)?;
        let node = Self {
            class: kind == RTM_NEWTCLASS,
            kind: name.to_owned(),
            handle: header.handle,
            parent: header.parent,
            options: attributes.get(TCA_OPTIONS).map(|bytes| settings(name, bytes)),
            asked: None,
            size_table: attributes.get(TCA_STAB).is_some(),
        };
        // Only the classes of htb are somebody's choice: those of other kinds are flows, bands or queues.
        let counts = node.parent != Handle::INGRESS && (!node.class || name == "htb");
        (counts && header.link == link).then_some(node)
    }

    /// What asks for it on the device `link`, in the place of what is there.
    #[must_use]
    pub fn request(&self, link: u32) -> Request {
        let mut message = Writer::after(Tc::of(link, self.handle, self.parent).bytes());
        message.string(TCA_KIND, &self.kind);
        if let Some(options) = self.asked.as_ref().or(self.options.as_ref()) {
            message.put(TCA_OPTIONS | NLA_F_NESTED, options);
        }
        let (kind, word) =
            if self.class { (RTM_NEWTCLASS, "class") } else { (RTM_NEWQDISC, "qdisc") };
        Request {
            link,
            verb: Verb::Replace,
            kind,
            payload: message.finish(),
            thing: format!("{word} {} {}", self.kind, self.handle),
            qdisc: self.kind.clone(),
            parent: self.parent,
        }
    }
}

/// The options as they can be asked for. Only `htb` tells something else among them: packets that it counted, and its version
/// where it wants that of its interface.
fn settings(kind: &str, options: &[u8]) -> Vec<u8> {
    let attributes = Attributes::read(options);
    let Some(init) = attributes.get(HTB_INIT).filter(|_| kind == "htb") else {
        return options.to_vec();
    };
    let mut written = Writer::default();
    for kind in attributes.kinds() {
        let mut value = attributes.get(kind).unwrap_or_default().to_vec();
        if kind == HTB_INIT && value.len() >= HTB_DIRECT_PACKETS.end {
            let version = u32_at(init, 0).unwrap_or(0) >> 16;
            value[HTB_VERSION].copy_from_slice(&version.to_ne_bytes());
            value[HTB_DIRECT_PACKETS].fill(0);
        }
        written.put(kind, &value);
    }
    written.finish()
}

impl Netlink {
    /// What puts an `mq` there: each transmit queue has then a place of its own, with the kernel's default in it.
    #[must_use]
    pub fn mq(place: &Place) -> Request {
        let node = Node {
            class: false,
            kind: "mq".to_owned(),
            handle: place.handle,
            parent: place.parent,
            options: None,
            asked: None,
            size_table: false,
        };
        node.request(place.link)
    }

    /// The queue disciplines of a device by which packets leave, what is outside before what is inside, and the classes of
    /// `htb` between them.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn tree(&mut self, index: u32) -> Result<Vec<Node>, NetlinkError> {
        let question = Tc::all_of(index).bytes();
        let mut nodes = Vec::new();
        for kind in [RTM_GETQDISC, RTM_GETTCLASS] {
            let answer = self.route.dump(kind, &question);
            let answer = answer.map_err(|failure| {
                failure.of(format!("list the qdiscs of {}", self.name_of(index)))
            })?;
            let read = |message: crate::channel::Message<'_>| {
                Node::read(message.kind, message.payload, index)
            };
            nodes.extend(messages(&answer).filter_map(read));
        }
        Ok(outside_first(nodes))
    }
}

/// The kernel lists disciplines in the order in which they came, which may be any.
fn outside_first(mut nodes: Vec<Node>) -> Vec<Node> {
    let depths: Vec<usize> = nodes.iter().map(|node| depth(&nodes, node)).collect();
    let mut depths = depths.into_iter();
    nodes.sort_by_cached_key(|_| depths.next());
    nodes
}

fn depth(nodes: &[Node], node: &Node) -> usize {
    let mut at = node;
    // Nothing is inside itself, but the kernel could say so.
    for depth in 0..nodes.len() {
        match nodes.iter().find(|of| is_in(at, of)) {
            Some(outer) => at = outer,
            None => return depth,
        }
    }
    nodes.len()
}

fn is_in(node: &Node, of: &Node) -> bool {
    let of_qdisc = |major| !of.class && of.handle.major() == major;
    match (node.class, node.parent) {
        (false, Handle::ROOT) => false,
        (true, Handle::ROOT) => of_qdisc(node.handle.major()),
        // Those that the kernel put there itself have no number to be told apart by.
        (_, parent) if parent.major() == 0 => of_qdisc(0) && of.parent == Handle::ROOT,
        (_, parent) if of.class => of.handle == parent,
        (false, parent) => of_qdisc(parent.major()) && of.kind != "htb",
        (true, _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(class: bool, handle: Handle, parent: Handle) -> Node {
        let kind = "htb".to_owned();
        Node { class, kind, handle, parent, options: None, asked: None, size_table: false }
    }

    #[test]
    fn what_is_outside_comes_first() {
        let root = node(false, Handle::qdisc(2), Handle::ROOT);
        let outer = node(true, Handle::class(2, 9), Handle::ROOT);
        let inner = node(true, Handle::class(2, 1), Handle::class(2, 9));
        let leaf = node(false, Handle::qdisc(1), Handle::class(2, 1));
        let meant = [&root, &outer, &inner, &leaf].map(Clone::clone);
        let given = [&leaf, &root, &inner, &outer].map(Clone::clone);
        assert_eq!(outside_first(given.to_vec()), meant);
        // The kernel's own have no numbers.
        let mq = node(false, Handle::UNSPECIFIED, Handle::ROOT);
        let queues = [1, 2].map(|queue| node(false, Handle::UNSPECIFIED, Handle::class(0, queue)));
        let given = vec![queues[1].clone(), mq.clone(), queues[0].clone()];
        assert_eq!(outside_first(given)[0], mq);
    }
}
