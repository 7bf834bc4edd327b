//! A network and a tree of mounts apart from the machine's, in which the program runs as its user runs it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use dualq_host::Plan;
use tempfile::TempDir;

use crate::{DUALQ, said, skipped, text};

/// It goes with what is in it.
pub(crate) struct Room {
    keeper: Child,
    folder: TempDir,
}

/// A folder in the place of /etc, two devices, nothing else; `$0` is the folder.
const FURNISH: &str = "\
set -e
mount --bind \"$0/etc\" /etc
ip link set lo up
ip link add d0 type veth peer name d1
ip link set d0 up
ip link set d1 up
echo ready
exec cat";

impl Room {
    /// None where it takes what is not there; that is said.
    pub(crate) fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        for name in ["etc/sysctl.d", "state"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let keeper = Command::new("unshare")
            .args(["--net", "--mount", "--propagation", "private", "sh", "-c", FURNISH])
            .arg(folder.path())
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
        Some(Self { keeper, folder })
    }

    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        let keeper = self.keeper.id().to_string();
        // It would be the root otherwise.
        let directory = format!("--wd={}", self.folder.path().display());
        command.args(["--net", "--mount", &directory, "--target", &keeper, "--", program]);
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
        let mut command = self.command(DUALQ);
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
        let output = self.dualq(words);
        assert!(matches!(output.status.code(), Some(1 | 2)), "{words:?}: {}", said(&output));
        let line = text(&output.stderr);
        assert_eq!(line.lines().count(), 1, "{line}");
        line.trim_end().strip_prefix("error: ").unwrap_or_else(|| panic!("{line}")).to_owned()
    }

    /// Writes a plan to `plan.toml`, where all calls look for it.
    pub(crate) fn plan(&self, plan: &Plan) {
        fs::write(self.path("plan.toml"), plan.write()).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
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
