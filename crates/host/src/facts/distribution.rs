//! The distribution, what starts things, and what configures interfaces.

use super::Distribution;
use super::reader::Reader;

/// The values of os-release(5).
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix(key)?.strip_prefix('='))?;
    Some(line.trim().trim_matches(['"', '\'']))
}

/// What process 1 is.
fn init(reader: &mut Reader<'_>) -> &'static str {
    if reader.exists("/run/systemd/system") {
        return "systemd";
    }
    if reader.exists("/run/openrc") {
        return "openrc";
    }
    match reader.line("/proc/1/comm").unwrap_or_default().as_str() {
        "systemd" => "systemd",
        "procd" => "procd",
        "init" if reader.exists("/sbin/procd") => "procd",
        "init" if reader.exists("/etc/inittab") => "sysvinit",
        _ => "",
    }
}

fn network(reader: &Reader<'_>, init: &str) -> Vec<String> {
    let ifupdown = ["/sbin/ifup", "/usr/sbin/ifup"].iter().any(|path| reader.exists(path))
        && reader.exists("/etc/network/interfaces");
    let found = [
        ("systemd-networkd", init == "systemd" && reader.exists("/run/systemd/netif")),
        ("networkmanager", reader.exists("/run/NetworkManager")),
        ("netifd", init == "procd" && reader.exists("/etc/config/network")),
        ("ifupdown", ifupdown),
    ];
    found.iter().filter(|(_, there)| *there).map(|(name, _)| (*name).to_owned()).collect()
}

pub(super) fn read(reader: &mut Reader<'_>) -> Distribution {
    let text = reader.text("/etc/os-release").or_else(|| reader.text("/usr/lib/os-release"));
    let text = text.unwrap_or_default();
    let own = |key| value(&text, key).unwrap_or_default().to_owned();
    let init = init(reader);
    Distribution {
        id: own("ID"),
        version: own("VERSION_ID"),
        name: own("PRETTY_NAME"),
        init: init.to_owned(),
        udev: reader.exists("/run/udev/control"),
        network: network(reader, init),
    }
}
