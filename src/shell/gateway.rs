//! A way from the far end to the outside, by pasta (passt.top): it answers for the outside in the far end's namespace, and opens ordinary
//! sockets of the user's where dualq was started. So nothing of the machine is changed, and it takes no root.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dualq_namespace::{Addresses, Ends, Namespace};
use dualq_units::plain;
use rustix::fs::MemfdFlags;

use super::{keeper, until};
use crate::cli::Failure;

const PASTA: &str = "pasta";
/// What the far end's way out is called.
const DEVICE: &str = "outside";
/// How long it may take to be there.
const PATIENCE: Duration = Duration::from_secs(5);
/// It stays in the foreground, and opens no port of the far end at the machine's own loopback, nor the other way round. What leads outside
/// may be without an Ethernet address, as a modem is.
const OPTIONS: &str = "--foreground --quiet --config-net --no-map-gw -t none -u none -T none -U none \
                       --mac-addr 02:00:00:00:00:01 --ns-mac-addr 02:00:00:00:00:02";

/// A gateway that is not open yet.
pub(super) struct Gateway {
    keeper: Waiting,
    errors: File,
}

/// Who becomes pasta.
enum Waiting {
    /// Nobody yet: this process stays where the outside is, and may enter each namespace.
    Nobody,
    /// A process that stays outside, where an unprivileged user's dualq cannot come back to; it is told a process of the far end.
    Outside(Child),
}

impl Gateway {
    /// To be called while this process is still where it was started, with no threads.
    pub(super) fn prepare() -> Result<Self, Failure> {
        if !super::is_in_path(Path::new(PASTA)) {
            return Err(Failure::Run(format!(
                "--gateway takes the program {PASTA}, which is not in PATH; Debian, Ubuntu and Fedora have it in the package passt"
            )));
        }
        let errors = rustix::fs::memfd_create("errors", MemfdFlags::CLOEXEC);
        let errors = File::from(errors.map_err(cannot)?);
        let keeper = match Namespace::create() {
            Ok(_) => Waiting::Nobody,
            Err(_) => {
                let mut command = Command::new("/bin/sh");
                // Only what was waited for is an order.
                let script = format!(
                    "read -r pid options && exec {PASTA} $options \
                     --userns \"/proc/$pid/ns/user\" --netns \"/proc/$pid/ns/net\""
                );
                command.arg("-c").arg(script);
                let keeper = start(&command, Stdio::piped(), &errors)?;
                Waiting::Outside(keeper)
            }
        };
        Ok(Self { keeper, errors })
    }

    /// Opens it. What it runs in is added to the company, which ends with the shell.
    pub(super) fn open(self, ends: &Ends, company: &mut Vec<Child>) -> Result<(), Failure> {
        let Self { keeper, errors } = self;
        let options = options(&ends.addresses);
        ends.far.inside(forward)?.map_err(cannot)?;
        match keeper {
            Waiting::Nobody => {
                let mut command = Command::new(PASTA);
                command.args(options.split(' '));
                // It is to enter a namespace of root's, and confines itself then.
                command.args(["--runas", "0", "--netns-only", "--netns", "/proc/self/fd/0"]);
                let namespace = Stdio::from(OwnedFd::from(ends.far.try_clone()?));
                company.push(start(&command, namespace, &errors)?);
            }
            Waiting::Outside(mut keeper) => {
                let mut orders = keeper.stdin.take();
                company.push(keeper);
                // Of a process of this one's user namespace the user may open the namespaces; of this one itself not.
                let mut anchor = Command::new("/bin/sh");
                anchor.args(["-c", "read -r _"]);
                let anchor = ends.far.inside(|| start(&anchor, Stdio::piped(), &errors))??;
                let order = format!("{} {options}\n", anchor.id());
                company.push(anchor);
                let sent = orders.as_mut().map(|orders| orders.write_all(order.as_bytes()));
                sent.transpose().map_err(cannot)?;
            }
        }
        let pasta = company.len() - 1;
        let has_ended = |company: &mut Vec<Child>| {
            company[..=pasta].iter_mut().any(|child| !matches!(child.try_wait(), Ok(None)))
        };
        let is_there = || ends.far.inside(leads_outside).unwrap_or(false);
        until(Instant::now() + PATIENCE, || is_there() || has_ended(company));
        if is_there() { Ok(()) } else { Err(failed(errors)) }
    }
}

/// What pasta said last.
fn failed(mut errors: File) -> Failure {
    let mut said = String::new();
    let _ = errors.rewind().and_then(|()| errors.read_to_string(&mut said));
    let last = said.lines().rfind(|line| !line.contains("syslog")).unwrap_or("it says nothing");
    Failure::Run(format!("cannot open the gateway: {PASTA}: {last}"))
}

/// All but where the namespace is.
fn options(addresses: &Addresses) -> String {
    let (own, router, prefix) = addresses.outside();
    let [a, b] = own.map(|own| format!(" --address {own}"));
    let [c, d] = router.map(|router| format!(" --gateway {router}"));
    let resolver = addresses.resolver();
    format!(
        "{OPTIONS} --ns-ifname {DEVICE} --dns-forward {resolver}{a}{b}{c}{d} --netmask {prefix}"
    )
}

fn start(command: &Command, input: Stdio, errors: &File) -> Result<Child, Failure> {
    let mut keeper = keeper::of(command, None);
    // Ctrl-C is for the command, and not for what runs at the other end.
    keeper.process_group(0);
    let errors = errors.try_clone().map_err(cannot)?;
    keeper.stdin(input).stdout(Stdio::null()).stderr(errors).spawn().map_err(cannot)
}

/// Has the calling thread's namespace pass on what is for others. pasta answers only link-local addresses about its own of IPv6.
fn forward() -> io::Result<()> {
    fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
    let ipv6 = Path::new("/proc/sys/net/ipv6/conf");
    if !ipv6.exists() {
        return Ok(());
    }
    for (name, value) in [("addr_gen_mode", "0"), ("accept_dad", "0")] {
        fs::write(ipv6.join("default").join(name), value)?;
    }
    fs::write(ipv6.join("all/forwarding"), "1")
}

/// Whether the calling thread's namespace has a way out by the device.
fn leads_outside() -> bool {
    let starts = |file: &str, start: &str| {
        let table = fs::read_to_string(file).unwrap_or_default();
        table.lines().any(|line| line.starts_with(start) && line.contains(DEVICE))
    };
    starts("/proc/thread-self/net/route", &format!("{DEVICE}\t00000000\t"))
        || starts("/proc/thread-self/net/ipv6_route", &format!("{} 00 ", "0".repeat(32)))
}

fn cannot(error: impl Into<io::Error>) -> Failure {
    Failure::Run(format!("cannot open the gateway: {}", plain(&error.into())))
}
