//! All of a machine that plans could change.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use dualq_netlink::{Arriving, Netlink, Node, Offloads};

/// A file: permissions, owner, group, when it was changed, and content. Of a folder only permissions and owners count.
type File = (u32, u32, u32, (i64, i64), Option<Vec<u8>>);

/// Everything in a folder, but for one.
pub(crate) fn files(folder: &Path, but: &Path) -> BTreeMap<PathBuf, File> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap().map(|entry| entry.unwrap().path()) {
            if entry == but {
                continue;
            }
            let data = entry.symlink_metadata().unwrap();
            let (content, changed) = if data.is_dir() {
                folders.push(entry.clone());
                (None, (0, 0))
            } else if data.is_symlink() {
                let to = fs::read_link(&entry).unwrap();
                (Some(to.into_os_string().into_encoded_bytes()), (0, 0))
            } else {
                (Some(fs::read(&entry).unwrap()), (data.mtime(), data.mtime_nsec()))
            };
            let name = entry.strip_prefix(folder).unwrap().to_owned();
            found.insert(name, (data.mode(), data.uid(), data.gid(), changed, content));
        }
    }
    found
}

/// What does not outlast a restart.
#[derive(Debug, PartialEq)]
pub(crate) struct Running {
    sysctls: BTreeMap<String, String>,
    trees: BTreeMap<String, Vec<Node>>,
    arriving: BTreeMap<String, Arriving>,
    offloads: BTreeMap<String, (Offloads, Option<u32>)>,
    routes: String,
}

pub(crate) fn running(sysctls: &[&str]) -> Running {
    let mut netlink = Netlink::open().unwrap();
    let value = |key: &&str| {
        let path = format!("/proc/sys/{}", key.replace('.', "/"));
        ((*key).to_owned(), fs::read_to_string(path).unwrap())
    };
    let links = netlink.links().unwrap();
    let mut arriving = BTreeMap::new();
    for link in &links {
        arriving.insert(link.name.clone(), netlink.arriving(link.index).unwrap());
    }
    let offloads = links.iter().map(|link| {
        (link.name.clone(), (netlink.offloads(&link.name).unwrap(), link.gso_max_segs))
    });
    let offloads = offloads.collect();
    let trees = links.into_iter().map(|link| (link.name, netlink.tree(link.index).unwrap()));
    Running {
        arriving,
        offloads,
        sysctls: sysctls.iter().map(value).collect(),
        trees: trees.collect(),
        routes: fs::read_to_string("/proc/net/route").unwrap(),
    }
}
