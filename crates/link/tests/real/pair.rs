//! Two network namespaces with a link between.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use dualq_link::{Link, MakeWatch, Options, Running, Tun, TunOptions};
use dualq_netlink::Netlink;
use dualq_scenario::Passage;
use nix::sched::{CloneFlags, setns, unshare};

const OWN: &str = "/proc/thread-self/ns/net";

/// A network namespace that lasts as long as this, and what is open in it.
pub(crate) struct Namespace(File);

impl Namespace {
    pub(crate) fn new() -> Self {
        let home = File::open(OWN).unwrap();
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        let own = Self(File::open(OWN).unwrap());
        setns(&home, CloneFlags::CLONE_NEWNET).unwrap();
        let up = |netlink: &mut Netlink| netlink.link("lo").and_then(|lo| netlink.set_up(lo.index));
        own.inside(|| up(&mut Netlink::open().unwrap()).unwrap());
        own
    }

    pub(crate) fn inside<T>(&self, work: impl FnOnce() -> T) -> T {
        let home = File::open(OWN).unwrap();
        setns(&self.0, CloneFlags::CLONE_NEWNET).unwrap();
        let done = work();
        setns(&home, CloneFlags::CLONE_NEWNET).unwrap();
        done
    }

    pub(crate) fn sysctl(&self, key: &str, value: &str) {
        self.inside(|| std::fs::write(format!("/proc/sys/{key}"), value)).unwrap();
    }
}

impl std::os::fd::AsFd for Namespace {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A host at each end of a link.
pub(crate) struct Pair {
    pub(crate) near: Namespace,
    pub(crate) far: Namespace,
}

pub(crate) const NEAR: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
pub(crate) const FAR: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
pub(crate) const NEAR_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
pub(crate) const FAR_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);

pub(crate) const DEVICE: &str = "link0";

impl Pair {
    pub(crate) fn new() -> Self {
        let (near, far) = (Namespace::new(), Namespace::new());
        for namespace in [&near, &far] {
            // Nobody asks for routers: what passes is what a test sends.
            namespace.sysctl("net/ipv6/conf/default/router_solicitations", "0");
            namespace.sysctl("net/ipv6/conf/default/addr_gen_mode", "1");
        }
        Self { near, far }
    }

    /// A device at each end.
    pub(crate) fn devices(&self, mtu: u32) -> [Tun; 2] {
        let ends = [(&self.near, NEAR, NEAR_V6), (&self.far, FAR, FAR_V6)];
        ends.map(|(namespace, v4, v6)| {
            let addresses: Vec<(IpAddr, u8)> = vec![(v4.into(), 24), (v6.into(), 64)];
            let options = TunOptions { name: DEVICE.to_owned(), mtu, addresses };
            namespace.inside(|| Tun::open(&options)).unwrap()
        })
    }

    /// A link from `far` to `near` by `down`, and the other way by `up`.
    pub(crate) fn link(&self, down: &Passage, up: &Passage, options: &Options) -> Running {
        self.watched_link(down, up, options, None)
    }

    /// The same with somebody who watches.
    pub(crate) fn watched_link(
        &self,
        down: &Passage,
        up: &Passage,
        options: &Options,
        watch: Option<MakeWatch<'_>>,
    ) -> Running {
        let [near, far] = self.devices(down.mtu);
        Link::start([down, up], near, far, options, watch).unwrap()
    }
}

/// The near end's address and port.
pub(crate) fn near(v6: bool, port: u16) -> SocketAddr {
    if v6 { (NEAR_V6, port).into() } else { (NEAR, port).into() }
}
