//! What a plan may touch. A plan is a file that anybody may have written; whatever is not here is refused.

use std::net::IpAddr;

use dualq_qdisc::{Spec, grammar};

use super::ApplyError;
use crate::Plan;
use crate::facts::Os;
use crate::plan::{FORMAT, What};

/// Where plans put files: a folder, and how the names in it end.
const FILES: [(&str, &str); 11] = [
    ("/etc/sysctl.d/", ".conf"),
    ("/etc/modules-load.d/", ".conf"),
    ("/etc/modules.d/", ""),
    ("/etc/udev/rules.d/", ".rules"),
    ("/etc/systemd/network/", ".conf"),
    ("/etc/systemd/network/", ".link"),
    ("/etc/systemd/network/", ".network"),
    ("/etc/NetworkManager/conf.d/", ".conf"),
    ("/etc/NetworkManager/dispatcher.d/", ""),
    ("/etc/network/if-up.d/", ""),
    ("/etc/hotplug.d/iface/", ""),
];
/// How the names of modules that plans load begin.
const MODULES: [&str; 5] = ["sch_", "tcp_", "cls_", "act_", "ifb"];
/// The sysctls of a network begin so.
const SYSCTLS: &str = "net";
/// Nobody but the owner may write to what plans write.
const MODES: u32 = 0o755;
/// A line of this many bytes is none.
const LONGEST_VALUE: usize = 4096;
/// `IFNAMSIZ`, without the zero at the end.
const LONGEST_NAME: usize = 15;
/// The smallest MTU of IPv4.
const SMALLEST_MTU: u32 = 68;

/// Refuses a plan that asks for something that is not dualq's.
pub(crate) fn check(plan: &Plan) -> Result<(), ApplyError> {
    if plan.format != FORMAT {
        return refuse(format!("the plan has format {}, this dualq reads {FORMAT}", plan.format));
    }
    if plan.os != Os::Linux {
        return refuse("the plan is not for Linux: dualq applies plans for Linux only");
    }
    let mut names: Vec<String> = plan.changes.iter().map(|change| name(&change.what)).collect();
    plan.changes.iter().try_for_each(|change| allowed(&change.what))?;
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => refuse(format!("the plan changes {} twice", pair[0])),
        None => Ok(()),
    }
}

fn refuse<T>(why: impl Into<String>) -> Result<T, ApplyError> {
    Err(ApplyError::Plan(why.into()))
}

/// What to call what a change is about.
#[must_use]
pub fn name(what: &What) -> String {
    match what {
        What::Module { module } => format!("the module {}", module.escape_debug()),
        What::Sysctl { key, .. } => key.escape_debug().to_string(),
        What::Qdisc { dev, .. } => format!("the qdisc of {}", dev.escape_debug()),
        What::Route { to, .. } => format!("the route to {}", to.escape_debug()),
        What::File { path, .. } => path.escape_debug().to_string(),
    }
}

fn allowed(what: &What) -> Result<(), ApplyError> {
    match what {
        What::Module { module } => {
            let letters = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if module.chars().all(letters) && MODULES.iter().any(|start| module.starts_with(start))
            {
                return Ok(());
            }
            refuse(format!(
                "the plan loads the module {module:?}: dualq loads {} only",
                MODULES.join("*, ") + "*"
            ))
        }
        What::Sysctl { key, before: _, after } => {
            let mut parts = key.split(['.', '/']);
            let plain = |part: &str| {
                !part.is_empty()
                    && part.chars().all(|c| c.is_ascii_alphanumeric() || "_-@:".contains(c))
            };
            if parts.next() != Some(SYSCTLS) || !parts.all(plain) {
                return refuse(format!(
                    "the plan sets the sysctl {key:?}: dualq sets those of {SYSCTLS} only"
                ));
            }
            let text = |c: char| c == '\t' || (' '..='~').contains(&c);
            if after.len() > LONGEST_VALUE || !after.chars().all(text) {
                return refuse(format!("the plan sets {key} to what is no line of text"));
            }
            Ok(())
        }
        What::Qdisc { dev, after, .. } => interface(dev).and_then(|()| line(after).map(drop)),
        What::Route { to, mtu } => destination(to).and_then(|_| {
            if *mtu >= SMALLEST_MTU && *mtu <= u32::from(u16::MAX) {
                return Ok(());
            }
            refuse(format!(
                "the plan gives {to} an MTU of {mtu}: it is {SMALLEST_MTU} to {}",
                u16::MAX
            ))
        }),
        What::File { path, mode: permissions, .. } => {
            mode(permissions).map(drop)?;
            if is_ours(path) {
                return Ok(());
            }
            refuse(format!("the plan writes {path:?}, which is no place where dualq puts files"))
        }
    }
}

/// Whether dualq puts files there.
fn is_ours(path: &str) -> bool {
    FILES.iter().any(|(folder, end)| {
        let Some(below) = path.strip_prefix(folder) else { return false };
        let mut names: Vec<&str> = below.split('/').collect();
        // systemd has further folders for one network each.
        let networks = *folder == "/etc/systemd/network/";
        if networks && names.len() == 2 && names[0].ends_with(".d") && !names[0].starts_with('.') {
            names.remove(0);
        }
        let plain =
            |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || "._-@:".contains(c));
        names.len() == 1
            && path.chars().all(|c| c != '\0')
            && names[0].len() > end.len()
            && names[0].ends_with(end)
            && !names[0].starts_with('.')
            && below.split('/').all(plain)
    })
}

/// Whether an interface can have that name, as the kernel sees it.
pub(crate) fn interface(dev: &str) -> Result<(), ApplyError> {
    let strange = |c: char| c == '/' || c == ':' || c.is_whitespace() || c.is_control();
    if dev.is_empty()
        || dev.len() > LONGEST_NAME
        || matches!(dev, "." | "..")
        || dev.contains(strange)
    {
        return refuse(format!("{dev:?} cannot be the name of an interface"));
    }
    Ok(())
}

/// What a line asks for.
pub(crate) fn line(text: &str) -> Result<Spec, ApplyError> {
    grammar::parse(text)
        .map(|parsed| parsed.spec)
        .map_err(|error| ApplyError::Plan(error.to_string()))
}

/// An address and how many bits of it count.
pub(crate) fn destination(to: &str) -> Result<(IpAddr, u8), ApplyError> {
    let parse = || {
        let (address, prefix) = to.split_once('/')?;
        let (address, prefix): (IpAddr, u8) = (address.parse().ok()?, prefix.parse().ok()?);
        let longest = if address.is_ipv4() { 32 } else { 128 };
        // A route to everybody is not one more.
        (prefix > 0 && prefix <= longest).then_some((address, prefix))
    };
    match parse() {
        Some(destination) => Ok(destination),
        None => refuse(format!(
            "the plan has a route to {to:?}: a destination is one such as 192.0.2.1/32"
        )),
    }
}

/// Permissions, which are in octal.
pub(crate) fn mode(text: &str) -> Result<u32, ApplyError> {
    match u32::from_str_radix(text, 8) {
        Ok(mode) if mode & !MODES == 0 && text.starts_with('0') => Ok(mode),
        _ => refuse(format!("the plan has a file with mode {text:?}: it is 0755 or less")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_where_dualq_puts_them() {
        for path in [
            "/etc/sysctl.d/90-dualq.conf",
            "/etc/modules-load.d/dualq.conf",
            "/etc/systemd/network/10-eth0.network",
            "/etc/systemd/network/10-eth0.network.d/90-dualq.conf",
            "/etc/NetworkManager/dispatcher.d/90-dualq",
            "/etc/hotplug.d/iface/90-dualq",
        ] {
            assert!(is_ours(path), "{path}");
        }
        for path in [
            "",
            "/etc/passwd",
            "/etc/sysctl.d/",
            "/etc/sysctl.d/.conf",
            "/etc/sysctl.d/../passwd",
            "/etc/sysctl.d/../x.conf",
            "/etc/sysctl.d/a/b.conf",
            "/etc/sysctl.d//a.conf",
            "/etc/sysctl.d/a.conf\n",
            "/etc/sysctl.d/a b.conf",
            "/etc/sysctl.d/a.sh",
            "/etc/systemd/network/../../cron.d/a.conf",
            "/etc/systemd/network/a/b.conf",
            "/etc/systemd/network/...d/b.conf",
            "/etc/network/if-up.d/.hidden",
            "etc/sysctl.d/a.conf",
        ] {
            assert!(!is_ours(path), "{path}");
        }
    }

    #[test]
    fn only_the_networks_sysctls_are_set() {
        let what = |key: &str, after: &str| What::Sysctl {
            key: key.to_owned(),
            before: String::new(),
            after: after.to_owned(),
        };
        for key in ["net.ipv4.tcp_ecn", "net/ipv4/conf/eth0.100/mtu", "net.ipv4.conf.eth0/100.mtu"]
        {
            // A dot in a name is a slash in the other notation.
            assert!(allowed(&what(key, "1")).is_ok(), "{key}");
        }
        for key in [
            "kernel.core_pattern",
            "net",
            "net..a",
            "net/../kernel/core_pattern",
            "net.a/../b",
            "/net/a",
            "network.a",
            "net.a b",
        ] {
            assert!(key == "net" || allowed(&what(key, "1")).is_err(), "{key}");
        }
        assert!(allowed(&what("net.ipv4.tcp_ecn", "1\n2")).is_err());
    }

    #[test]
    fn names_that_no_interface_has() {
        for dev in ["", ".", "..", "eth0; rm -rf /", "a/b", "a b", "0123456789abcdef", "a\n"] {
            assert!(interface(dev).is_err(), "{dev}");
        }
        for dev in ["eth0", "$(reboot)", "wg-home", "eth0.100"] {
            assert!(interface(dev).is_ok(), "{dev}");
        }
    }

    #[test]
    fn modes_are_octal_and_only_the_owners_to_write() {
        assert_eq!(mode("0644").unwrap(), 0o644);
        for text in ["", "644", "0666", "04755", "0778", "rw-r--r--"] {
            assert!(mode(text).is_err(), "{text}");
        }
    }
}
