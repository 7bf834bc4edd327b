//! Everything at once.

use std::path::Path;

use dualq_netlink::Netlink;

use super::kernel::{Config, virtualization};
use super::modules::Modules;
use super::reader::Reader;
use super::{
    Conntrack, FORMAT, Facts, Kernel, Os, building, connections, distribution, files, interfaces,
    routes, sysctl, tc,
};
use crate::{Root, program};

/// What there is to be asked beside files.
#[derive(Default)]
pub struct Sources<'a> {
    /// The kernel. Without it, facts lack queue disciplines, offloads and connections.
    pub netlink: Option<&'a mut Netlink>,
    /// The program `tc`, which is run for its version.
    pub tc: Option<&'a Path>,
    /// Where this dualq's executable is; told only if it is [installed](crate::program::installed).
    pub dualq: Option<&'a Path>,
}

/// This machine's facts: those of `/`, of the kernel, and of the `tc` that there is. `dualq` is the running program.
#[must_use]
pub fn here(dualq: Option<&Path>) -> Facts {
    let tc = tc::program();
    let opened = Netlink::open();
    let (mut netlink, refused) = match opened {
        Ok(netlink) => (Some(netlink), None),
        Err(error) => (None, Some(error.to_string())),
    };
    let sources = Sources { netlink: netlink.as_mut(), tc: tc.as_deref(), dualq };
    let mut facts = gather(&Root::host(), sources);
    facts.unread.extend(refused);
    facts
}

/// The facts of the machine whose files are below `root`. Nothing is changed. What cannot be read is told in
/// [`Facts::unread`].
#[must_use]
pub fn gather(root: &Root, mut sources: Sources<'_>) -> Facts {
    let mut reader = Reader::new(root);
    let reader = &mut reader;
    let distribution = distribution::read(reader);
    let release = reader.sysctl("kernel.osrelease").unwrap_or_default();
    if release.is_empty() {
        reader.unread("/proc/sys/kernel/osrelease", "no kernel tells its release there");
    }
    let config = Config::read(reader, &release);
    let modules = Modules::read(reader, &release);
    let settings = sysctl::read(reader, &distribution.init);
    let sysctls = sysctl::running(reader, &settings);
    let available = sysctls.get("net.ipv4.tcp_available_congestion_control");
    let available = available.map_or("", String::as_str);
    let number = |reader: &mut Reader<'_>, key| reader.sysctl(key)?.parse().ok();
    let conntrack = number(reader, "net.netfilter.nf_conntrack_count")
        .zip(number(reader, "net.netfilter.nf_conntrack_max"))
        .map(|(count, max)| Conntrack { count, max });
    let interfaces =
        interfaces::read(reader, sources.netlink.as_deref_mut(), &distribution.network);
    let connections = sources.netlink.and_then(|netlink| connections::read(reader, netlink));
    let tc = sources.tc.and_then(|program| {
        tc::ask(program).map_err(|why| reader.unread(&program.display().to_string(), &why)).ok()
    });
    Facts {
        format: FORMAT,
        os: Os::Linux,
        kernel: Kernel {
            machine: reader.sysctl("kernel.arch").unwrap_or_default(),
            config: config.as_ref().map(|config| config.path.clone()),
            options: config.as_ref().map(Config::that_matter).unwrap_or_default(),
            modules: modules.enabled,
            blocked: modules.blocked_that_matter(),
            virtualization: virtualization(reader),
            building: Some(building::read(reader, &format!("/lib/modules/{release}/build"))),
            release,
        },
        qdiscs: modules.qdiscs(config.as_ref()),
        redirection: modules.redirection(config.as_ref()),
        congestion_controls: modules.congestion_controls(config.as_ref(), available),
        tc,
        dualq: sources
            .dualq
            .filter(|path| program::installed(root, path).is_ok())
            .and_then(Path::to_str)
            .map(str::to_owned),
        interfaces,
        default_routes: routes::read(reader),
        sysctls,
        settings: settings.read,
        ignored_settings: settings.ignored,
        connections,
        conntrack,
        files: files::read(reader),
        distribution,
        unread: std::mem::take(&mut reader.unread),
    }
}
