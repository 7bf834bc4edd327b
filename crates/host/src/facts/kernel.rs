//! The kernel: its release, its configuration, what it runs on.

use std::collections::BTreeMap;
use std::io::Read as _;

use flate2::read::GzDecoder;

use super::modules;
use super::reader::Reader;

/// Options that matter beside those of [`modules::options`].
const OPTIONS: [&str; 15] = [
    "BPF_SYSCALL",
    "DEBUG_INFO_BTF",
    "DEFAULT_NET_SCH",
    "DEFAULT_TCP_CONG",
    "HZ",
    "IFB",
    "INET_DIAG",
    "MODULES",
    "MODULE_SIG_FORCE",
    "MPTCP",
    "NET_ACT_MIRRED",
    "NET_SCHED",
    "NET_SCH_BPF",
    "NET_SCH_DEFAULT",
    "TUN",
];

/// A configuration is some hundred kilobytes; whatever is longer is none.
const LONGEST: u64 = 16 << 20;

/// A kernel's configuration.
pub(super) struct Config {
    /// Where it was found.
    pub(super) path: String,
    /// What it says, without `CONFIG_`.
    options: BTreeMap<String, String>,
}

impl Config {
    pub(super) fn read(reader: &mut Reader<'_>, release: &str) -> Option<Self> {
        if let Some(packed) = reader.bytes("/proc/config.gz") {
            let mut text = String::new();
            match GzDecoder::new(packed.as_slice()).take(LONGEST).read_to_string(&mut text) {
                Ok(_) => return Some(Self::parse("/proc/config.gz".to_owned(), &text)),
                Err(error) => reader.unread("/proc/config.gz", &error.to_string()),
            }
        }
        let places = [format!("/boot/config-{release}"), format!("/lib/modules/{release}/config")];
        places.iter().find_map(|path| Self::of(reader, path))
    }

    /// The one in the file `path`, if there is one.
    pub(super) fn of(reader: &mut Reader<'_>, path: &str) -> Option<Self> {
        reader.text(path).map(|text| Self::parse(path.to_owned(), &text))
    }

    fn parse(path: String, text: &str) -> Self {
        // What is not set is a comment, and what is not mentioned is not there either.
        let options = text.lines().filter_map(|line| {
            let (name, value) = line.strip_prefix("CONFIG_")?.split_once('=')?;
            Some((name.to_owned(), value.trim_matches('"').to_owned()))
        });
        Self { path, options: options.collect() }
    }

    /// `y`, `m`, `n`, or what else it is.
    pub(super) fn value(&self, option: &str) -> &str {
        self.options.get(option).map_or("n", String::as_str)
    }

    /// Those that matter.
    pub(super) fn that_matter(&self) -> BTreeMap<String, String> {
        let names = OPTIONS.into_iter().chain(modules::options());
        names.map(|name| (name.to_owned(), self.value(name).to_owned())).collect()
    }
}

/// What firmware calls itself, and what systemd-detect-virt(1) calls that.
const FIRMWARE: [(&str, &str); 13] = [
    ("KVM", "kvm"),
    ("OpenStack", "kvm"),
    ("KubeVirt", "kvm"),
    ("Amazon EC2", "amazon"),
    ("QEMU", "qemu"),
    ("VMware", "vmware"),
    ("VMW", "vmware"),
    ("innotek GmbH", "oracle"),
    ("VirtualBox", "oracle"),
    ("Xen", "xen"),
    ("Bochs", "bochs"),
    ("Parallels", "parallels"),
    ("Google Compute Engine", "google"),
];

/// Files that container managers leave.
const CONTAINERS: [(&str, &str); 3] =
    [("/.dockerenv", "docker"), ("/run/.containerenv", "podman"), ("/dev/lxd/sock", "lxc")];

/// What container this is, if it is one.
fn container(reader: &mut Reader<'_>) -> Option<String> {
    // Whoever sees the kernel's own threads is in no container, though the files may once have been in one.
    if std::fs::read(reader.at("/proc/2/comm")).is_ok_and(|name| name.starts_with(b"kthreadd")) {
        return None;
    }
    let said = reader.line("/run/systemd/container");
    let said = said.or_else(|| {
        // Only root may look.
        let environment = std::fs::read(reader.at("/proc/1/environ")).ok()?;
        let mut entries = environment.split(|byte| *byte == 0);
        let container = entries.find_map(|entry| entry.strip_prefix(b"container="))?;
        String::from_utf8(container.to_vec()).ok()
    });
    let left = || CONTAINERS.iter().find(|(path, _)| reader.exists(path));
    said.filter(|name| !name.is_empty())
        .or_else(|| left().map(|(_, name)| (*name).to_owned()))
        .or_else(|| {
            let openvz = reader.exists("/proc/vz") && !reader.exists("/proc/bc");
            openvz.then(|| "openvz".to_owned())
        })
}

/// A container first: what that is in matters less.
pub(super) fn virtualization(reader: &mut Reader<'_>) -> Option<String> {
    if let Some(container) = container(reader) {
        return Some(container);
    }
    if reader.line("/proc/sys/kernel/osrelease")?.contains("microsoft") {
        return Some("wsl".to_owned());
    }
    let processor = reader.text("/proc/cpuinfo").unwrap_or_default();
    if processor.contains("User Mode Linux") {
        return Some("uml".to_owned());
    }
    if let Some(kind) = reader.line("/sys/hypervisor/type").filter(|kind| kind == "xen") {
        return Some(kind);
    }
    for name in ["product_name", "sys_vendor", "board_vendor", "bios_vendor"] {
        let words = reader.line(&format!("/sys/class/dmi/id/{name}")).unwrap_or_default();
        if words == "Virtual Machine" {
            return Some("microsoft".to_owned());
        }
        if let Some((_, name)) = FIRMWARE.iter().find(|(start, _)| words.starts_with(start)) {
            return Some((*name).to_owned());
        }
    }
    let mut flags = processor.lines().filter(|line| line.starts_with("flags"));
    let guest = flags.any(|line| line.split_whitespace().any(|flag| flag == "hypervisor"));
    guest.then(|| "vm-other".to_owned())
}
