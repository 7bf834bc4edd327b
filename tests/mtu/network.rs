//! A small internet of network namespaces: a, two routers r1 and r2 with a switch between them, and b.
//!
//! `a 10.9.1.1 — r1 10.9.1.2 | 10.9.2.1 — switch — 10.9.2.2 r2 10.9.3.1 — b 10.9.3.2`, and the same with fd09:1::, fd09:2:: and fd09:3::.

use std::fs;
use std::io;
use std::net::ToSocketAddrs as _;
use std::path::Path;
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use nix::sched::{CloneFlags, setns};
use tests_skipped::{is_root, skipped};

const NODES: [&str; 5] = ["a", "r1", "switch", "r2", "b"];

/// What the middle of the way does to packets that are too large for it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Middle {
    /// It carries all that Ethernet does.
    Whole,
    /// The routers' interfaces have this MTU, and the routers say so.
    Smaller(u16),
    /// The switch between the routers drops larger frames without a word, as tunnels on layer 2 do.
    Hole(u16),
}

/// Runs the test that is running anew as root, with a place of its own for the names of network namespaces.
pub(crate) fn again_as_root() {
    let room = "mount -t tmpfs none /run && ip netns add probe && ip netns del probe";
    tests_skipped::again_as_root(room);
}

/// The namespaces. They go when this goes, also when a test fails.
pub(crate) struct Network {
    prefix: String,
}

impl Network {
    /// Builds it; says why not where that is not possible. For an ordinary user the whole test is run anew in a user namespace of
    /// its own, in which it is root; then there is nothing left to do here.
    pub(crate) fn build(middle: Middle) -> Option<Self> {
        if !is_root() {
            again_as_root();
            return None;
        }
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let network = Self { prefix: format!("dualq-mtu-{}-{number}", process::id()) };
        for node in NODES {
            if let Err(why) = ip(&["netns", "add", &network.name(node)]) {
                skipped(&format!("no network namespace can be made here: {why}"));
                return None;
            }
        }
        network.connect(middle);
        network.wait_until_it_carries();
        Some(network)
    }

    fn name(&self, node: &str) -> String {
        format!("{}-{node}", self.prefix)
    }

    fn connect(&self, middle: Middle) {
        for node in NODES {
            self.set(node, "net/ipv6/conf/all/accept_dad", "0");
            self.set(node, "net/ipv6/conf/default/accept_dad", "0");
            self.ip(node, "link set lo up");
        }
        self.veth(("a", "a0"), ("r1", "left"));
        self.veth(("r1", "right"), ("switch", "one"));
        self.veth(("switch", "two"), ("r2", "left"));
        self.veth(("r2", "right"), ("b", "b0"));
        self.ip("switch", "link add bridge0 type bridge");
        self.ip("switch", "link set one master bridge0");
        self.ip("switch", "link set two master bridge0");
        self.ip("switch", "link set bridge0 up");
        for (node, device, network, host) in [
            ("a", "a0", 1, 1),
            ("r1", "left", 1, 2),
            ("r1", "right", 2, 1),
            ("r2", "left", 2, 2),
            ("r2", "right", 3, 1),
            ("b", "b0", 3, 2),
        ] {
            self.ip(node, &format!("addr add 10.9.{network}.{host}/24 dev {device}"));
            self.ip(node, &format!("-6 addr add fd09:{network}::{host}/64 dev {device} nodad"));
        }
        for router in ["r1", "r2"] {
            self.set(router, "net/ipv4/ip_forward", "1");
            self.set(router, "net/ipv6/conf/all/forwarding", "1");
        }
        self.ip("a", "route add default via 10.9.1.2");
        self.ip("a", "-6 route add default via fd09:1::2");
        self.ip("r1", "route add 10.9.3.0/24 via 10.9.2.2");
        self.ip("r1", "-6 route add fd09:3::/64 via fd09:2::2");
        self.ip("r2", "route add 10.9.1.0/24 via 10.9.2.1");
        self.ip("r2", "-6 route add fd09:1::/64 via fd09:2::1");
        self.ip("b", "route add default via 10.9.3.1");
        self.ip("b", "-6 route add default via fd09:3::1");
        let (nodes, mtu) = match middle {
            Middle::Whole => return,
            Middle::Smaller(mtu) => ([("r1", "right"), ("r2", "left")], mtu),
            Middle::Hole(mtu) => ([("switch", "one"), ("switch", "two")], mtu),
        };
        for (node, device) in nodes {
            self.ip(node, &format!("link set {device} mtu {mtu}"));
        }
    }

    fn veth(&self, one: (&str, &str), other: (&str, &str)) {
        let ((node, name), (other_node, other_name)) = (one, other);
        let (namespace, other_namespace) = (self.name(node), self.name(other_node));
        let made = ip(&[
            "link",
            "add",
            name,
            "netns",
            &namespace,
            "type",
            "veth",
            "peer",
            "name",
            other_name,
            "netns",
            &other_namespace,
        ]);
        made.unwrap_or_else(|why| panic!("{why}"));
        self.ip(node, &format!("link set {name} up"));
        self.ip(other_node, &format!("link set {other_name} up"));
    }

    /// A bridge waits a little before it forwards, and routers look for their neighbours: packets get lost meanwhile.
    fn wait_until_it_carries(&self) {
        for host in ["10.9.3.2", "fd09:3::2"] {
            let arrived = (0..100).any(|_| {
                thread::sleep(Duration::from_millis(50));
                self.inside("a", || {
                    // A closed port that refuses is as good as an open one.
                    let address = (host, 7).to_socket_addrs().unwrap().next().unwrap();
                    let wait = Duration::from_millis(300);
                    let refused = std::net::TcpStream::connect_timeout(&address, wait);
                    refused.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
                })
            });
            assert!(arrived, "{host} is not reached");
        }
    }

    /// `ip` in one of the namespaces.
    pub(crate) fn ip(&self, node: &str, words: &str) {
        self.try_ip(node, words).unwrap_or_else(|why| panic!("ip {words}: {why}"));
    }

    /// The same, for what not every kernel has.
    pub(crate) fn try_ip(&self, node: &str, words: &str) -> Result<(), String> {
        self.run_ip(node, words).map(drop)
    }

    /// What `ip` prints there.
    pub(crate) fn output(&self, node: &str, words: &str) -> String {
        self.run_ip(node, words).unwrap_or_else(|why| panic!("ip {words}: {why}"))
    }

    fn run_ip(&self, node: &str, words: &str) -> Result<String, String> {
        let name = self.name(node);
        let mut all = vec!["-n", &name];
        all.extend(words.split_whitespace());
        ip(&all)
    }

    /// Sets a sysctl of a namespace.
    pub(crate) fn set(&self, node: &str, key: &str, value: &str) {
        let path = Path::new("/proc/sys").join(key);
        self.inside(node, || fs::write(&path, value)).unwrap_or_else(|e| panic!("{key}: {e}"));
    }

    /// Does `work` in a namespace, in a thread of its own; what it starts stays there.
    pub(crate) fn inside<T: Send>(&self, node: &str, work: impl FnOnce() -> T + Send) -> T {
        let namespace = fs::File::open(Path::new("/run/netns").join(self.name(node))).unwrap();
        let enter = move || {
            setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
            work()
        };
        thread::scope(|scope| scope.spawn(enter).join().unwrap())
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for node in NODES {
            let _ = ip(&["netns", "del", &self.name(node)]);
        }
    }
}

fn ip(words: &[&str]) -> Result<String, String> {
    let output = Command::new("ip").args(words).output().map_err(|error| format!("ip: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }
}
