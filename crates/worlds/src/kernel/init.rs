//! A program as the init of a guest: what it was started for is in a file in the folder that it shares with the host.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::ops::ControlFlow;
use std::path::Path;
use std::process;
use std::thread;
use std::time::Duration;

use dualq_guest::inside;
use dualq_lab::Where;
use dualq_netlink::{Netlink, NetlinkError};
use dualq_scenario::{ConnectionEvent, Event, Headers, Outcome, Scenario, Wants, Watch};

use super::task::{Command, Line, RESULT, SEEN, STDERR, STDOUT, TASK, Task};

/// What a host with memory has: TCP's memory, in pages, and packets that wait for a busy CPU. A guest that is small would limit
/// what no scenario speaks of.
const ROOM: [(&str, &str); 2] = [
    ("/proc/sys/net/ipv4/tcp_mem", "1000000 1000000 1000000"),
    ("/proc/sys/net/core/netdev_max_backlog", "1000000"),
];

/// When a guest in which a command runs first gives a sign of life. It cannot tell how far that is.
const FIRST_BEAT: Duration = Duration::from_millis(10);

/// Does what this guest was started for, and powers it off. Only for a guest's init.
pub fn serve() -> ! {
    let outcome =
        inside::prepare().map_err(|error| error.to_string()).and_then(|folder| work(&folder));
    inside::power_off(outcome)
}

fn work(folder: &Path) -> Result<(), String> {
    let task = fs::read(folder.join(TASK)).map_err(|error| format!("{TASK}: {error}"))?;
    let task = serde_json::from_slice(&task).map_err(|error| format!("{TASK}: {error}"))?;
    let result = match task {
        Task::Scenario { scenario, seed, wants } => {
            let outcome = scenario_outcome(&scenario, seed, wants, &folder.join(SEEN))?;
            serde_json::to_vec(&outcome)
        }
        Task::Command(command) => {
            let status = command_status(folder, &command)?;
            serde_json::to_vec(&status)
        }
    };
    let result = result.map_err(|error| error.to_string())?;
    fs::write(folder.join(RESULT), result).map_err(|error| format!("{RESULT}: {error}"))
}

fn scenario_outcome(
    scenario: &Scenario,
    seed: u64,
    wants: Wants,
    seen: &Path,
) -> Result<Outcome, String> {
    // What the first namespace does not allow, its children cannot have as their default.
    let controls = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    fs::read(controls)
        .and_then(|all| fs::write("/proc/sys/net/ipv4/tcp_allowed_congestion_control", all))
        .map_err(|error| format!("{controls}: {error}"))?;
    for (key, value) in ROOM {
        fs::write(key, value).map_err(|error| format!("{key}: {error}"))?;
    }
    let mut beat = |time: Duration| {
        inside::pulse(&time.as_secs().to_string());
        ControlFlow::Continue(())
    };
    if !wants.any() {
        return dualq_lab::run(Where::Kernel, scenario, seed, &mut beat)
            .map_err(|error| error.to_string());
    }
    let cannot = |error: io::Error| format!("{SEEN}: {error}");
    let file = io::BufWriter::new(File::create(seen).map_err(cannot)?);
    let mut list = List { wants, file, lost: None };
    let outcome = dualq_lab::run_watched(Where::Kernel, scenario, seed, &mut beat, &mut list);
    let List { mut file, lost, .. } = list;
    lost.map_or_else(|| file.flush(), Err).map_err(cannot)?;
    outcome.map_err(|error| error.to_string())
}

/// Writes down what is seen, line by line.
struct List {
    wants: Wants,
    file: io::BufWriter<File>,
    lost: Option<io::Error>,
}

impl List {
    fn write(&mut self, line: &Line<'_>) {
        let line = serde_json::to_string(line).map_err(io::Error::from);
        if let Err(error) = line.and_then(|line| writeln!(self.file, "{line}")) {
            self.lost.get_or_insert(error);
        }
    }
}

impl Watch for List {
    fn wants(&self) -> Wants {
        self.wants
    }

    fn packet(&mut self, event: Event) {
        self.write(&Line::Packet(event));
    }

    fn headers(&mut self, headers: &Headers<'_>) {
        self.write(&Line::Headers(headers.clone()));
    }

    fn connection(&mut self, event: &ConnectionEvent) {
        self.write(&Line::Connection(event.clone()));
    }
}

fn command_status(folder: &Path, command: &Command) -> Result<Option<i32>, String> {
    let Command { words, directory, etc } = command;
    let plain = |error: io::Error| error.to_string();
    if let Some(etc) = etc {
        inside::mount_host_folder(etc, "/etc").map_err(plain)?;
    }
    only_loopback().map_err(|error| error.to_string())?;
    // Otherwise the program would be blamed for it.
    if !directory.is_dir() {
        return Err(format!(
            "the current folder, {}, is not there in the guest",
            directory.display()
        ));
    }
    let [program, arguments @ ..] = words.as_slice() else { return Err("no command".to_owned()) };
    let mut child = process::Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .env_clear()
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .env("HOME", "/root")
        .env("TMPDIR", "/run")
        .stdout(File::create(folder.join(STDOUT)).map_err(plain)?)
        .stderr(File::create(folder.join(STDERR)).map_err(plain)?)
        .spawn()
        .map_err(|error| format!("cannot run {program} in the guest: {error}"))?;
    // In virtual time it costs nothing to look late, but each look does: whoever sleeps for days is looked at less and less.
    let mut beats = 0_u64;
    let mut pause = FIRST_BEAT;
    loop {
        if let Some(status) = child.try_wait().map_err(plain)? {
            return Ok(status.code());
        }
        beats += 1;
        inside::pulse(&beats.to_string());
        thread::sleep(pause);
        pause *= 2;
    }
}

/// Switches loopback on, and removes the devices that some drivers make for a start: a machine has what its user gives it.
fn only_loopback() -> Result<(), NetlinkError> {
    let mut netlink = Netlink::open()?;
    for link in netlink.links()? {
        if link.name == "lo" {
            netlink.set_up(link.index)?;
        } else {
            // Some kernels have devices that nobody can remove.
            let _ = netlink.delete_link(&link.name);
        }
    }
    Ok(())
}
