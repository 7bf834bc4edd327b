//! What somebody who builds a module for the kernel would find.

use super::kernel::Config;
use super::reader::Reader;
use super::{Building, Kernel};
use crate::Root;

/// Whether Secure Boot is on: a variable of the firmware's, four bytes of attributes and one of value (UEFI 2.10, 3.3).
const SECURE_BOOT: &str =
    "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";

/// The public half of the key that DKMS signs with (dkms.8: `mok_certificate`).
pub const MOK: &str = "/var/lib/dkms/mok.pub";

/// The same for a kernel that need not run, and for headers that are elsewhere than where they are installed.
#[must_use]
pub fn building(root: &Root, release: &str, headers: Option<&str>) -> (Kernel, Building) {
    let mut reader = Reader::new(root);
    let reader = &mut reader;
    let installed = format!("/lib/modules/{release}/build");
    let building = read(reader, headers.unwrap_or(&installed));
    let config = Config::of(reader, &format!("{}/.config", headers.unwrap_or(&installed)))
        .or_else(|| Config::read(reader, release));
    let kernel = Kernel {
        release: release.to_owned(),
        options: config.as_ref().map(Config::that_matter).unwrap_or_default(),
        modules: reader.exists("/proc/modules"),
        ..Kernel::default()
    };
    (kernel, building)
}

/// `headers` is the folder that `make -C` gets.
pub(super) fn read(reader: &mut Reader<'_>, headers: &str) -> Building {
    // A link to headers that were removed, or that is below another root.
    let there = reader.at(headers).join("Makefile").exists();
    let config = if there { Config::of(reader, &format!("{headers}/.config")) } else { None };
    let secure_boot = match reader.bytes(SECURE_BOOT) {
        Some(bytes) => bytes.get(4).map(|value| *value == 1),
        None => (reader.exists("/sys/kernel") && !reader.exists("/sys/firmware/efi/efivars"))
            .then_some(false),
    };
    let lockdown = reader.line("/sys/kernel/security/lockdown").and_then(|line| {
        let chosen = line.split(' ').find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))?;
        Some(chosen.to_owned())
    });
    let enforced = reader.line("/sys/module/module/parameters/sig_enforce");
    Building {
        headers: there.then(|| headers.to_owned()),
        compiler: config.map(|config| config.value("CC_VERSION_TEXT").to_owned()),
        gcc: gcc(reader),
        make: program(reader, "make"),
        dkms: program(reader, "dkms"),
        secure_boot,
        lockdown,
        signatures: enforced.as_deref() == Some("Y"),
        key: reader.exists(MOK),
    }
}

fn program(reader: &Reader<'_>, name: &str) -> bool {
    ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/bin", "/sbin"]
        .iter()
        .any(|folder| reader.at(format!("{folder}/{name}")).exists())
}

/// The major versions of gcc that are installed: folders of its own, in which the compiler proper is. No program is run for that.
fn gcc(reader: &mut Reader<'_>) -> Vec<u32> {
    let mut majors = Vec::new();
    for folder in reader.folders(&["/usr/lib/gcc", "/usr/lib64/gcc", "/usr/libexec/gcc"]) {
        for target in reader.names(folder) {
            let target = format!("{folder}/{target}");
            for version in reader.names(&target) {
                let major: Option<u32> =
                    version.split('.').next().and_then(|major| major.parse().ok());
                if reader.exists(&format!("{target}/{version}/cc1")) {
                    majors.extend(major);
                }
            }
        }
    }
    majors.sort_unstable();
    majors.dedup();
    majors
}
