//! The files that a plan could write.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;

use super::File;
use super::reader::Reader;
use crate::plan;

const NETWORKD: &str = "/etc/systemd/network";

/// Facts hold what is in them, so that a plan can say what was there before.
pub(super) fn read(reader: &mut Reader<'_>) -> BTreeMap<String, File> {
    let mut paths: Vec<String> = plan::PLANNED.iter().map(|path| (*path).to_owned()).collect();
    for folder in reader.names(NETWORKD) {
        paths.push(format!("{NETWORKD}/{folder}/90-dualq.conf"));
    }
    let mut files = BTreeMap::new();
    for path in paths.into_iter().filter(|path| plan::is_planned(path)) {
        let Some(content) = reader.text(&path) else { continue };
        let Ok(metadata) = reader.at(&path).metadata() else { continue };
        let mode = format!("{:04o}", metadata.permissions().mode() & 0o7777);
        files.insert(path, File { mode, content });
    }
    files
}
