//! A virtual machine: started, asked, unplugged, and switched off.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::image::{Built, call};

/// How long a machine may take until it answers.
const BOOT: Duration = Duration::from_secs(400);
/// Where a user's programs are; init(8) of sysvinit leaves /usr/local out.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// How long a command may take, if nobody says otherwise.
pub const STEP: Duration = Duration::from_secs(180);
/// How long a snapshot may take to be written or read.
const SNAPSHOT: Duration = Duration::from_secs(300);
/// What KVM is given to say its first word; where it works, that takes a tenth of a second.
const PROBE: Duration = Duration::from_secs(5);

/// How guests are run: KVM where it does more than open its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accelerator {
    Kvm,
    Tcg,
}

impl Accelerator {
    /// Starts a kernel under KVM and waits for its first line.
    pub fn find(image: &Built, work: &Path) -> Result<Self> {
        if !Path::new("/dev/kvm").exists() {
            return Ok(Self::Tcg);
        }
        let console = work.join("kvm-probe.log");
        fs::write(&console, "")?;
        let mut child = Command::new("qemu-system-x86_64")
            .args(Self::Kvm.arguments())
            .args(["-m", "256", "-nodefaults", "-display", "none", "-no-reboot"])
            .arg("-kernel")
            .arg(image.folder.join("vmlinuz"))
            .args(["-append", "console=ttyS0 earlyprintk=ttyS0 panic=-1", "-serial"])
            .arg(format!("file:{}", console.display()))
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("start qemu-system-x86_64")?;
        let until = Instant::now() + PROBE;
        let works = loop {
            if fs::read_to_string(&console).is_ok_and(|said| said.contains("Linux version")) {
                break true;
            }
            if Instant::now() > until || child.try_wait()?.is_some() {
                break false;
            }
            thread::sleep(Duration::from_millis(50));
        };
        let _ = child.kill();
        let _ = child.wait();
        Ok(if works { Self::Kvm } else { Self::Tcg })
    }

    const fn arguments(self) -> [&'static str; 6] {
        match self {
            Self::Kvm => ["-M", "q35", "-accel", "kvm", "-cpu", "host"],
            // One thread for both processors: with one for each, QEMU 7.2 may run an instruction that the other one has just replaced, and
            // a kernel that patches itself, as Linux does all the time while it starts, panics (`Oops: int3`) in one of ten starts.
            Self::Tcg => ["-M", "q35", "-accel", "tcg,thread=single", "-cpu", "max"],
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Kvm => "KVM",
            Self::Tcg => "TCG",
        }
    }
}

/// A second card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Second {
    /// At one end of a cable between two machines.
    Near,
    /// At the other.
    Far,
    /// With a transmit queue for each processor, at a network as the first one's. (QEMU's virtio has several only on a tap of the host's.)
    Queues,
}

/// A machine that is off: its disk, and what is plugged in.
#[derive(Clone, Debug)]
pub struct Machine {
    image: Built,
    accelerator: Accelerator,
    /// Its disk, sockets and console.
    folder: PathBuf,
    /// Where the kernel that it starts is, and that one's initrd.
    kernel: PathBuf,
    second: Option<Second>,
}

/// One that is on.
pub struct Running {
    pub machine: Machine,
    child: Child,
    agent: BufReader<UnixStream>,
    asked: u64,
    monitor: BufReader<UnixStream>,
    ssh: u16,
}

impl Machine {
    /// A new one, whose disk is the image's and keeps what is written to it in `folder`.
    pub fn new(
        image: &Built,
        accelerator: Accelerator,
        folder: &Path,
        second: Option<Second>,
    ) -> Result<Self> {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder)?;
        call(
            Command::new("qemu-img")
                .args(["create", "-q", "-f", "qcow2", "-F", "qcow2", "-b"])
                .arg(image.folder.join("disk.qcow2"))
                .arg(folder.join("disk.qcow2")),
        )?;
        Self::there(image, accelerator, folder, second)
    }

    /// One that is there already, with what was written to its disk.
    pub fn there(
        image: &Built,
        accelerator: Accelerator,
        folder: &Path,
        second: Option<Second>,
    ) -> Result<Self> {
        ensure!(folder.join("disk.qcow2").is_file(), "{} is no machine", folder.display());
        let (image, kernel) = (image.clone(), image.folder.clone());
        Ok(Self { image, accelerator, folder: folder.to_owned(), kernel, second })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Switches it on and waits until it is up.
    pub fn boot(&self) -> Result<Running> {
        let mut running = self.start(None)?;
        running.wait_until_up()?;
        Ok(running)
    }

    /// As it was when the [snapshot](Running::snapshot) was taken, disk and memory.
    pub fn resume(&self, snapshot: &str) -> Result<Running> {
        let mut running = self.start(Some(snapshot))?;
        running.ask("true", SNAPSHOT)?;
        Ok(running)
    }

    fn start(&self, snapshot: Option<&str>) -> Result<Running> {
        let ssh = free_port()?;
        for socket in ["agent", "monitor"] {
            let _ = fs::remove_file(self.path(socket));
        }
        let socket = |name: &str| format!("path={},server=on,wait=off", self.path(name).display());
        let mut command = Command::new("setpriv");
        command
            // However the bench ends, its machines end with it.
            .args(["--pdeathsig", "KILL", "qemu-system-x86_64"])
            .args(self.accelerator.arguments())
            .args(["-smp", "2", "-m", "512", "-nodefaults", "-display", "none", "-no-reboot"])
            .arg("-kernel")
            .arg(self.kernel.join("vmlinuz"))
            .arg("-initrd")
            .arg(self.kernel.join("initrd"))
            // As Debian's installer has it. A panic ends the machine.
            .arg("-append")
            .arg("root=/dev/vda ro quiet console=ttyS0 panic=-1")
            .arg("-drive")
            .arg(format!("file={},if=virtio,format=qcow2", self.path("disk.qcow2").display()))
            .args(["-netdev", &format!("user,id=lan,hostfwd=tcp:127.0.0.1:{ssh}-:22")])
            .args(["-device", "virtio-net-pci,netdev=lan,id=card,bus=pcie.0,addr=1"])
            .args(["-device", "virtio-serial-pci,bus=pcie.0,addr=4"])
            .args(["-chardev", &format!("socket,id=agent,{}", socket("agent"))])
            .args(["-device", "virtserialport,chardev=agent,name=dualq.bench"])
            .args(["-serial", &format!("file:{}", self.path("console.log").display())])
            .args(["-chardev", &format!("socket,id=monitor,{}", socket("monitor"))])
            .args(["-mon", "chardev=monitor,mode=control"]);
        let shared = self.folder.with_file_name("cable");
        let mut cable = |from: &str, to: &str, last: u8| {
            let _ = fs::remove_file(format!("{}.{from}", shared.display()));
            command
                .arg("-netdev")
                .arg(format!(
                    "dgram,id=cable,local.type=unix,local.path={0}.{from},remote.type=unix,remote.path={0}.{to}",
                    shared.display()
                ))
                .arg("-device")
                .arg(format!(
                    "virtio-net-pci,netdev=cable,bus=pcie.0,addr=2,mac=52:54:00:00:00:0{last}"
                ));
        };
        match self.second {
            Some(Second::Near) => cable("near", "far", 1),
            Some(Second::Far) => cable("far", "near", 2),
            Some(Second::Queues) => {
                command
                    .args(["-netdev", "user,id=second,net=10.0.3.0/24"])
                    .args(["-device", "vmxnet3,netdev=second,bus=pcie.0,addr=2"]);
            }
            None => {}
        }
        if let Some(snapshot) = snapshot {
            command.args(["-loadvm", snapshot]);
        }
        let log = fs::File::create(self.path("qemu.log"))?;
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context("start qemu-system-x86_64")?;
        let connected =
            self.connect("agent").and_then(|agent| Ok((agent, self.connect("monitor")?)));
        let (agent, monitor) = match connected {
            Ok(both) => both,
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                let said = fs::read_to_string(self.path("qemu.log")).unwrap_or_default();
                return Err(error.context(format!("QEMU did not start: {said}")));
            }
        };
        let machine = self.clone();
        let mut running = Running { machine, child, agent, asked: 0, monitor, ssh };
        running.monitor.get_ref().set_read_timeout(Some(SNAPSHOT))?;
        running.read_monitor()?;
        running.monitor("qmp_capabilities", json!({}))?;
        Ok(running)
    }

    fn connect(&self, socket: &str) -> Result<BufReader<UnixStream>> {
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            match UnixStream::connect(self.path(socket)) {
                Ok(stream) => return Ok(BufReader::new(stream)),
                Err(error) if Instant::now() > until => {
                    return Err(error).with_context(|| format!("reach QEMU's {socket}"));
                }
                Err(_) => thread::sleep(Duration::from_millis(20)),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What came of a command in the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    pub status: i32,
    pub text: String,
}

impl Running {
    fn wait_until_up(&mut self) -> Result<()> {
        let up = "test -d /run/systemd/system || { pgrep -x sshd >/dev/null || { sleep 2; exit 1; }; exit 0; }; \
                  systemctl is-system-running --wait >/dev/null; udevadm settle; \
                  for family in -4 -6; do ip $family route show default | grep -q . || exit 1; done";
        let until = Instant::now() + BOOT;
        while Instant::now() < until {
            // What was asked before the machine listened is answered, or lost.
            match self.ask(up, until.saturating_duration_since(Instant::now())) {
                Ok(said) if said.status == 0 => return Ok(()),
                Ok(_) => thread::sleep(Duration::from_millis(500)),
                Err(error) => return Err(error.context("the machine does not come up")),
            }
        }
        bail!("the machine does not come up within {} s", BOOT.as_secs())
    }

    /// Runs a command in the machine, whatever its network does.
    pub fn ask(&mut self, command: &str, limit: Duration) -> Result<Said> {
        self.answer(command, limit).map_err(|error| self.ended(error))
    }

    fn answer(&mut self, command: &str, limit: Duration) -> Result<Said> {
        self.asked += 1;
        let number = self.asked;
        let line = format!(
            "{number} {}\n",
            BASE64_STANDARD.encode(format!("export HOME=/root PATH={PATH}; cd; {command}"))
        );
        let asked = self.agent.get_mut().write_all(line.as_bytes());
        asked.with_context(|| format!("the machine cannot be asked: {command}"))?;
        self.agent.get_ref().set_read_timeout(Some(limit.max(Duration::from_millis(1))))?;
        loop {
            let mut answer = String::new();
            let read = self.agent.read_line(&mut answer);
            let read = read.with_context(|| format!("no answer in {limit:?} to: {command}"))?;
            ensure!(read > 0, "the machine is off; it was asked: {command}");
            let words: Vec<&str> = answer.split_whitespace().collect();
            if let [found, status, rest @ ..] = words.as_slice()
                && *found == number.to_string()
            {
                let text = BASE64_STANDARD.decode(rest.first().copied().unwrap_or_default())?;
                let text = String::from_utf8_lossy(&text).into_owned();
                return Ok(Said { status: status.parse()?, text });
            }
        }
    }

    /// An error, with how QEMU ended if it did.
    fn ended(&mut self, error: anyhow::Error) -> anyhow::Error {
        // Its sockets close a little earlier.
        let until = Instant::now() + Duration::from_secs(1);
        while Instant::now() < until {
            if let Ok(Some(status)) = self.child.try_wait() {
                return error.context(self.death(status));
            }
            thread::sleep(Duration::from_millis(50));
        }
        error
    }

    /// How QEMU ended, with what it said, why its kernel panicked, and what this machine's says if it killed it.
    fn death(&self, status: ExitStatus) -> String {
        let read = |name| fs::read(self.machine.path(name)).unwrap_or_default();
        let said = String::from_utf8_lossy(&read("qemu.log")).trim().to_owned();
        let console = String::from_utf8_lossy(&read("console.log")).into_owned();
        let log = call(&mut Command::new("dmesg")).unwrap_or_default();
        let killed = format!("process {} (", self.child.id());
        let panicked =
            |line: &&str| ["Oops", "RIP", "Kernel panic"].iter().any(|word| line.contains(word));
        let mut all = vec![said.as_str()];
        all.extend(console.lines().filter(panicked));
        all.extend(log.lines().filter(|line| line.contains(&killed)));
        format!("QEMU ended ({status}): {}", all.join("\n  ").trim())
    }

    /// The same, of a command that has to succeed.
    pub fn run(&mut self, command: &str) -> Result<String> {
        self.run_within(command, STEP)
    }

    pub fn run_within(&mut self, command: &str, limit: Duration) -> Result<String> {
        let said = self.ask(command, limit)?;
        ensure!(said.status == 0, "{command}: exit status {}: {}", said.status, said.text.trim());
        Ok(said.text)
    }

    /// Runs a command by SSH, over the interface that is changed.
    pub fn ssh(&self, command: &str) -> Result<Said> {
        let output = self.ssh_command(command).output()?;
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&output.stderr));
        Ok(Said { status: output.status.code().unwrap_or(-1), text })
    }

    /// What [`ssh`](Self::ssh) runs, for those who end it before its time.
    pub fn ssh_command(&self, command: &str) -> Command {
        let key = self.machine.image.folder.with_file_name("key");
        let mut ssh = Command::new("timeout");
        ssh.args([&STEP.as_secs().to_string(), "ssh", "-i"]).arg(key);
        for option in [
            "BatchMode=yes",
            "StrictHostKeyChecking=no",
            "UserKnownHostsFile=/dev/null",
            "ConnectTimeout=30",
            "LogLevel=ERROR",
        ] {
            ssh.args(["-o", option]);
        }
        ssh.args(["-p", &self.ssh.to_string(), "root@127.0.0.1", command]).stdin(Stdio::null());
        ssh
    }

    /// Copies a file into the machine.
    pub fn put(&mut self, from: &Path, to: &str) -> Result<()> {
        let mut ssh = self.ssh_command(&format!("cat >{to}"));
        call(ssh.stdin(fs::File::open(from)?)).map(drop)
    }

    fn read_monitor(&mut self) -> Result<Value> {
        let mut line = String::new();
        self.monitor.read_line(&mut line).context("QEMU's monitor does not answer")?;
        serde_json::from_str(&line).with_context(|| format!("QEMU said {line:?}"))
    }

    /// Asks QEMU (QMP).
    pub fn monitor(&mut self, command: &str, arguments: Value) -> Result<Value> {
        self.order(command, arguments).map_err(|error| self.ended(error))
    }

    fn order(&mut self, command: &str, arguments: Value) -> Result<Value> {
        let request = json!({"execute": command, "arguments": arguments});
        writeln!(self.monitor.get_mut(), "{request}")?;
        loop {
            let answer = self.read_monitor()?;
            if let Some(error) = answer.get("error") {
                bail!("QEMU refuses {command}: {error}");
            }
            if let Some(value) = answer.get("return") {
                return Ok(value.clone());
            }
        }
    }

    /// Keeps the machine as it is now, disk and memory.
    pub fn snapshot(&mut self, name: &str) -> Result<()> {
        let line = format!("savevm {name}");
        let said = self.monitor("human-monitor-command", json!({"command-line": line}))?;
        ensure!(said.as_str().is_some_and(str::is_empty), "no snapshot: {said}");
        Ok(())
    }

    /// Pulls the plug of the network, or puts it in.
    pub fn plug(&mut self, up: bool) -> Result<()> {
        self.monitor("set_link", json!({"name": "card", "up": up})).map(drop)
    }

    /// What a power cut does.
    pub fn cut_power(mut self) -> Result<Machine> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(self.machine.clone())
    }

    /// Waits until the machine is off.
    pub fn wait_until_off(mut self) -> Result<Machine> {
        let until = Instant::now() + BOOT;
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            ensure!(Instant::now() < until, "the machine does not end");
            thread::sleep(Duration::from_millis(50));
        };
        // Whatever ends in the machine, QEMU ends well.
        ensure!(status.success(), "{}", self.death(status));
        Ok(self.machine.clone())
    }

    /// Shuts down in an orderly way and starts again.
    pub fn reboot(mut self) -> Result<Self> {
        // The answer may not make it.
        let _ = self.ask("sync; (sleep 0.3; reboot) >/dev/null 2>&1 &", Duration::from_secs(10));
        self.wait_until_off()?.boot()
    }

    /// The same, into another kernel that is installed there: QEMU is given what a boot loader would find on the disk.
    pub fn reboot_into(mut self, release: &str) -> Result<Self> {
        for (name, start) in [("vmlinuz", "vmlinuz"), ("initrd", "initrd.img")] {
            let mut ssh = self.ssh_command(&format!("cat /boot/{start}-{release}"));
            let status = ssh.stdout(fs::File::create(self.machine.path(name))?).status()?;
            ensure!(status.success(), "the {name} of Linux {release} cannot be read");
        }
        self.machine.kernel.clone_from(&self.machine.folder);
        self.reboot()
    }

    /// All that a plan could have changed, a line each.
    pub fn state(&mut self) -> Result<State> {
        Ok(State(self.run_within("bench-state", STEP * 3)?.lines().map(str::to_owned).collect()))
    }
}

/// What is there in a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State(Vec<String>);

impl State {
    /// What is only here (+), and what only there (-).
    pub fn against(&self, other: &Self) -> Vec<String> {
        let only = |sign: char, these: &Self, those: &Self| -> Vec<String> {
            let lines = these.0.iter().filter(|line| !those.0.contains(line));
            lines.map(|line| format!("{sign}{line}")).collect()
        };
        let mut lines = only('-', other, self);
        lines.extend(only('+', self, other));
        lines
    }

    pub fn expect(&self, other: &Self, when: &str) -> Result<()> {
        let lines = self.against(other);
        ensure!(lines.is_empty(), "{when}, the machine is another:\n  {}", lines.join("\n  "));
        Ok(())
    }

    /// Without when a plan's own files were written, which is another time each time.
    pub fn timeless(&self) -> Self {
        let timeless = |line: &String| match line.rsplit_once(' ') {
            Some((rest, _)) if line.starts_with("file ") && line.contains("dualq") => {
                rest.to_owned()
            }
            _ => line.clone(),
        };
        Self(self.0.iter().map(timeless).collect())
    }

    /// Without the lines that begin so.
    pub fn without(&self, start: &str) -> Self {
        Self(self.0.iter().filter(|line| !line.starts_with(start)).cloned().collect())
    }
}

fn free_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
