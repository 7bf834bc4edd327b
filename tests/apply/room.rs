//! A network and a tree of mounts apart from the machine's, in which the program runs as its user runs it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use dualq_host::Plan;
use tempfile::TempDir;
use tests_skipped::{again_as_root, is_root};

use crate::{DUALQ, said, skipped, text};

/// It goes with what is in it.
pub(crate) struct Room {
    keeper: Child,
    /// The process whose namespaces are the room's.
    inside: u32,
    systemd: bool,
    folder: TempDir,
}

/// Where dualq is when it is [installed](Room::install).
pub(crate) const INSTALLED: &str = "/usr/local/bin/dualq";

/// Folders in the place of /etc and of that for programs of the machine's own, two devices, nothing else; `$0` is the folder.
const FURNISH: &str = "\
set -e
mount --bind \"$0/etc\" /etc
mount --bind \"$0/bin\" /usr/local/bin
if [ \"$1\" = systemd ]; then
    mount -t tmpfs none /run
    mkdir -p /run/systemd/system
fi
ip link set lo up
ip link add d0 type veth peer name d1
ip link set d0 up
ip link set d1 up
echo ready
exec cat";

impl Room {
    /// None where it takes what is not there; that is said.
    pub(crate) fn new() -> Option<Self> {
        Self::furnished(false)
    }

    /// The same with processes apart too, as on a machine that systemd started.
    pub(crate) fn with_systemd() -> Option<Self> {
        Self::furnished(true)
    }

    /// For an ordinary user the whole test is run anew as root of a user namespace; then there is nothing left to do here.
    fn furnished(systemd: bool) -> Option<Self> {
        if !is_root() {
            again_as_root("true");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        for name in ["etc/sysctl.d", "state", "bin"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let apart: &[&str] =
            if systemd { &["--pid", "--fork", "--kill-child", "--mount-proc"] } else { &[] };
        let keeper = Command::new("unshare")
            .args(["--net", "--mount", "--propagation", "private"])
            .args(apart)
            .args(["sh", "-c", FURNISH])
            .arg(folder.path())
            .arg(if systemd { "systemd" } else { "" })
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut keeper) = keeper else {
            skipped("there is no program unshare");
            return None;
        };
        let mut line = String::new();
        BufReader::new(keeper.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        if line != "ready\n" {
            let output = keeper.wait_with_output().unwrap();
            skipped(&format!("no namespaces can be made here: {}", text(&output.stderr).trim()));
            return None;
        }
        let inside = if systemd {
            let keeper = keeper.id();
            let children = fs::read_to_string(format!("/proc/{keeper}/task/{keeper}/children"));
            let Some(inside) = children.ok().and_then(|text| text.trim().parse().ok()) else {
                skipped("this kernel does not tell which children a process has");
                return None;
            };
            inside
        } else {
            keeper.id()
        };
        Some(Self { keeper, inside, systemd, folder })
    }

    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        let inside = self.inside.to_string();
        // It would be the root otherwise.
        let directory = format!("--wd={}", self.folder.path().display());
        let processes: &[&str] = if self.systemd { &["--pid"] } else { &[] };
        command.args(["--net", "--mount"]).args(processes);
        command.args([&directory, "--target", &inside, "--", program]);
        command.stdin(Stdio::null());
        command
    }

    /// Runs a line of the shell; it has to succeed.
    pub(crate) fn sh(&self, line: &str) -> String {
        let output = self.command("sh").args(["-c", line]).output().unwrap();
        assert!(output.status.success(), "{line}: {}", said(&output));
        text(&output.stdout)
    }

    /// A call of the program.
    pub(crate) fn dualq(&self, words: &[&str]) -> Output {
        self.prepared(words).output().unwrap()
    }

    pub(crate) fn prepared(&self, words: &[&str]) -> Command {
        self.called(DUALQ, words)
    }

    /// A call of a copy of the program.
    pub(crate) fn called(&self, program: &str, words: &[&str]) -> Command {
        let mut command = self.command(program);
        command.args(words).arg("--state").arg(self.path("state"));
        command
    }

    /// What it says if all is well.
    pub(crate) fn says(&self, words: &[&str]) -> String {
        let output = self.dualq(words);
        assert!(output.status.success(), "{words:?}: {}", said(&output));
        text(&output.stdout)
    }

    /// The one line that it says if it refuses.
    pub(crate) fn refuses(&self, words: &[&str]) -> String {
        self.refused(self.prepared(words))
    }

    pub(crate) fn refused(&self, mut command: Command) -> String {
        let output = command.output().unwrap();
        assert!(matches!(output.status.code(), Some(1 | 2)), "{command:?}: {}", said(&output));
        let line = text(&output.stderr);
        assert_eq!(line.lines().count(), 1, "{line}");
        line.trim_end().strip_prefix("error: ").unwrap_or_else(|| panic!("{line}")).to_owned()
    }

    /// Puts a copy of the program there, for everybody to call.
    pub(crate) fn copy_to(&self, path: &Path) {
        // What this process wrote itself could still be open in a child of another test: "Text file busy".
        assert!(Command::new("cp").arg(DUALQ).arg(path).status().unwrap().success());
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Puts the program where only root can.
    pub(crate) fn install(&self) {
        self.copy_to(&self.path("bin/dualq"));
    }

    /// A program of the machine's own.
    pub(crate) fn script(&self, name: &str, script: &str) {
        let path = self.path("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Writes a plan to `plan.toml`, where all calls look for it.
    pub(crate) fn plan(&self, plan: &Plan) {
        fs::write(self.path("plan.toml"), plan.write()).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Whether this kernel has such a queue discipline; if so, `d1` has it afterwards.
    pub(crate) fn has(&self, kind: &str) -> bool {
        self.sh(&format!(
            "tc qdisc add dev d1 root handle 1: {kind} 2>/dev/null && echo there || true"
        ))
        .contains("there")
    }

    /// A file below its /etc.
    pub(crate) fn etc(&self, name: &str) -> PathBuf {
        self.path("etc").join(name)
    }

    /// All of it that a plan could change.
    pub(crate) fn all(&self) -> String {
        let nothing = Path::new("");
        let files = crate::snapshot::files(&self.path("etc"), nothing);
        let running = "tc qdisc show | sed 's/direct_packets_stat [0-9]*//'; tc class show dev d0; ip route; sysctl net.ipv4.tcp_ecn net.ipv4.tcp_rmem";
        format!("{files:?}\n{}", self.sh(running))
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}
