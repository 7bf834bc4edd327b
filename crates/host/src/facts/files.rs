//! The files that a plan could write.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;

use super::File;
use super::reader::Reader;
use crate::plan;

/// Facts hold what is in them, so that a plan can say what was there before.
pub(super) fn read(reader: &mut Reader<'_>) -> BTreeMap<String, File> {
    let mut files = BTreeMap::new();
    for path in plan::PLANNED {
        let Some(content) = reader.text(path) else { continue };
        let Ok(metadata) = reader.at(path).metadata() else { continue };
        let mode = format!("{:04o}", metadata.permissions().mode() & 0o7777);
        files.insert(path.to_owned(), File { mode, content });
    }
    files
}
