//! What is done with machines, and what has to be true afterwards.

mod classes;
mod cut;
mod dkms;
mod interface;
mod others;
mod path;
mod usual;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use crate::image::Image;
use crate::machine::{Accelerator, Machine, Running, Said, Second};

/// One of them.
pub struct Scenario {
    pub name: &'static str,
    pub about: &'static str,
    /// Whether it belongs to the short form.
    pub short: bool,
    /// Gives what was seen, in a line.
    pub play: Play,
}

type Play = fn(&mut Bench) -> Result<String>;

impl Scenario {
    const fn short(name: &'static str, about: &'static str, play: Play) -> Self {
        Self { name, about, short: true, play }
    }

    const fn long(name: &'static str, about: &'static str, play: Play) -> Self {
        Self { name, about, short: false, play }
    }
}

pub const SCENARIOS: &[Scenario] = &[
    Scenario::short(
        "usual",
        "networkd: applied and confirmed by SSH, restarted, rolled back, restarted",
        |bench| usual::usual(bench, Image::Networkd),
    ),
    Scenario::long("networkmanager", "the same with NetworkManager", |bench| {
        usual::usual(bench, Image::NetworkManager)
    }),
    Scenario::long("ifupdown", "the same with ifupdown", |bench| {
        usual::usual(bench, Image::Ifupdown)
    }),
    Scenario::long("sysvinit", "the same without systemd", |bench| {
        usual::usual(bench, Image::Sysvinit)
    }),
    Scenario::long("openrc", "the same with OpenRC", |bench| usual::usual(bench, Image::Openrc)),
    Scenario::long(
        "lockout",
        "a plan that cuts off the SSH by which it is applied, and a cable that is pulled",
        cut::lockout,
    ),
    Scenario::short(
        "killed",
        "apply, confirm and rollback are killed at random moments, the watchdog too",
        cut::killed,
    ),
    Scenario::long(
        "power",
        "power fails at random moments of apply, confirm and rollback",
        |bench| cut::ended(bench, cut::End::Power),
    ),
    Scenario::long(
        "panic",
        "the kernel panics at random moments of apply, confirm and rollback",
        |bench| cut::ended(bench, cut::End::Panic),
    ),
    Scenario::long(
        "hotplug",
        "the interface disappears and comes back, is renamed, goes down and up",
        interface::hotplug,
    ),
    Scenario::long(
        "reload",
        "networkctl, nmcli, systemctl and udevadm reload what they know",
        interface::reload,
    ),
    Scenario::long(
        "route",
        "a route with an MTU, and all that takes routes away",
        interface::route,
    ),
    Scenario::long(
        "scripts",
        "no rule of udev's: NetworkManager's dispatcher, ifupdown's if-up.d",
        interface::scripts,
    ),
    Scenario::long(
        "no-udev",
        "udev ends at boot, before ifupdown configures the interface",
        interface::no_udev,
    ),
    Scenario::long(
        "several",
        "two cards, one with several queues: what arrives, and offloads",
        interface::several,
    ),
    Scenario::long(
        "classes",
        "a discipline below a class of somebody's tree, which a unit makes late at boot, or not at all",
        classes::classes,
    ),
    Scenario::long(
        "others",
        "a second administrator edits and runs tc meanwhile",
        others::second_administrator,
    ),
    Scenario::long("disk", "the disk is full, or read-only", others::disk),
    Scenario::long("clock", "the clock jumps while a plan waits to be confirmed", others::clock),
    Scenario::long("update", "the module is missing after a kernel update", others::module_missing),
    Scenario::long("dkms", "a kernel update, with DualPI2 as a DKMS module", dkms::dkms),
    Scenario::long("recipe", "a recipe from the web, judged", others::recipe),
    Scenario::long(
        "tunnels",
        "ESP, WireGuard, GRE and VXLAN between two machines, over a path that eats large packets",
        path::tunnels,
    ),
    Scenario::long(
        "measure",
        "a path measured between two machines, before and after the plan",
        path::measure,
    ),
];

/// What all scenarios share.
pub struct Bench {
    pub cache: PathBuf,
    pub work: PathBuf,
    pub dualq: PathBuf,
    pub accelerator: Accelerator,
    pub moments: u32,
    /// When nothing more is begun.
    pub until: Option<Instant>,
    pub random: fastrand::Rng,
    /// Of the images that were used.
    pub versions: Vec<String>,
}

/// What tells all that a plan could have changed.
const STATE: &str = include_str!("../../guest/state");

/// The snapshot in which a machine is up, has dualq, and a plan that nobody has applied.
pub const READY: &str = "ready";
/// The one in which that plan is confirmed.
pub const CONFIRMED: &str = "confirmed";

/// How the usual plan is made.
const PLAN: &str = "dualq plan --rate 20mbit --rtt 40ms -o /root/plan.toml";
/// What it puts on the interface, as `tc` begins it.
pub const CAKE: &str = "qdisc cake d0: root";

impl Bench {
    /// A machine that was up once, with dualq and a plan, off. It can be resumed from [`READY`].
    pub fn ready(&mut self, image: Image) -> Result<Machine> {
        let folder = self.work.join(image.name());
        let built = image.get(&self.cache)?;
        let line = format!("{}: {}", image.name(), built.versions);
        if self.versions.contains(&line) {
            return Machine::there(&built, self.accelerator, &folder, None);
        }
        let machine = Machine::new(&built, self.accelerator, &folder, None)?;
        let mut running = machine.boot()?;
        self.install(&mut running)?;
        running.run(PLAN)?;
        // What is on the disk is what a restart after this would find.
        running.run("sync")?;
        running.snapshot(READY)?;
        self.versions.push(line);
        running.cut_power()
    }

    /// Brings dualq to a machine, as its user does.
    pub fn install(&self, running: &mut Running) -> Result<()> {
        running.put(&self.dualq, "/tmp/dualq")?;
        running.run("install -m 755 /tmp/dualq /usr/local/bin/dualq && rm /tmp/dualq")?;
        running.run(&format!(
            "cat >/usr/local/sbin/bench-state <<'END'\n{STATE}END\nchmod 755 /usr/local/sbin/bench-state"
        ))?;
        Ok(())
    }

    /// A machine with dualq and a second card, `enp0s2`, of several transmit queues.
    pub fn with_queues(&mut self) -> Result<Running> {
        let built = Image::Networkd.get(&self.cache)?;
        let folder = self.work.join("queues");
        let machine = Machine::new(&built, self.accelerator, &folder, Some(Second::Queues))?;
        let mut running = machine.boot()?;
        self.install(&mut running)?;
        Ok(running)
    }

    /// Two machines with a cable between them: `enp0s2`, 10.9.0.1 and 10.9.0.2.
    pub fn pair(&mut self) -> Result<(Running, Running)> {
        let built = Image::Networkd.get(&self.cache)?;
        let mut up = Vec::new();
        for (end, name, address) in [(Second::Near, "near", 1), (Second::Far, "far", 2)] {
            let folder = self.work.join(name);
            let machine = Machine::new(&built, self.accelerator, &folder, Some(end))?;
            let mut running = machine.boot()?;
            self.install(&mut running)?;
            running.run(&format!(
                "printf '[Match]\\nName=enp0s2\\n[Network]\\nAddress=10.9.0.{address}/24\\n' >/etc/systemd/network/05-cable.network; networkctl reload; networkctl reconfigure enp0s2"
            ))?;
            up.push(running);
        }
        let (Some(far), Some(mut near)) = (up.pop(), up.pop()) else { bail!("two were started") };
        near.run("for i in $(seq 20); do ping -c 1 -W 1 10.9.0.2 && exit 0; done; exit 1")?;
        Ok((near, far))
    }

    /// Whether the time is up.
    pub fn is_late(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() > until)
    }

    /// A part of `all`, at random.
    pub fn moment(&mut self, all: Duration) -> Duration {
        all.mul_f64(self.random.f64())
    }
}

/// That a command ended so, and said that.
pub fn expect(said: &Said, status: i32, words: &str) -> Result<()> {
    ensure!(
        said.status == status && said.text.contains(words),
        "expected exit status {status} and {words:?}, and got {}: {}",
        said.status,
        said.text.trim()
    );
    Ok(())
}

/// That the usual plan is in force, and dualq says so.
pub fn in_force(running: &mut Running, when: &str) -> Result<()> {
    let found = running.run("tc qdisc show dev enp0s1; sysctl net.ipv4.tcp_notsent_lowat")?;
    ensure!(found.contains(CAKE) && found.contains("= 28672"), "{when}, there is: {found}");
    let status = running.run("dualq status")?;
    ensure!(!status.contains("drifted") && !status.contains("as before"), "{when}: {status}");
    Ok(())
}

/// That no unit of systemd failed.
pub fn nothing_failed(running: &mut Running, when: &str) -> Result<()> {
    let failed = running.run("systemctl --failed --plain --no-legend; true")?;
    ensure!(failed.is_empty(), "{when}, units failed: {failed}");
    Ok(())
}
