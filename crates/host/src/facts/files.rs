//! The files that a plan could write.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;

use super::File;
use super::reader::Reader;

/// All files that a plan can name. Facts hold what is in them, so that a plan can say what was there before.
pub const PLANNED: &[&str] = &[
    "/etc/sysctl.d/90-dualq.conf",
    "/etc/sysctl.conf",
    "/etc/modules-load.d/dualq.conf",
    "/etc/modules.d/dualq",
    "/etc/modules",
    "/etc/udev/rules.d/90-dualq.rules",
    "/etc/NetworkManager/dispatcher.d/90-dualq",
    "/etc/networkd-dispatcher/routable.d/90-dualq",
    "/etc/network/if-up.d/dualq",
    "/etc/hotplug.d/iface/90-dualq",
    "/etc/systemd/system/dualq.service",
    "/etc/local.d/dualq.start",
    "/etc/init.d/dualq",
    "/etc/rc.local",
];

pub(super) fn read(reader: &mut Reader<'_>) -> BTreeMap<String, File> {
    let mut files = BTreeMap::new();
    for path in PLANNED {
        let Some(content) = reader.text(path) else { continue };
        let Ok(metadata) = reader.at(path).metadata() else { continue };
        let mode = format!("{:04o}", metadata.permissions().mode() & 0o7777);
        files.insert((*path).to_owned(), File { mode, content });
    }
    files
}
