//! Starting a guest, watching it, and ending it.

use std::fs::{self, File};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use dualq_units::Bytes;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::sys::statvfs::statvfs;
use nix::unistd::{Pid, getppid};

use crate::affinity::Affinity;
use crate::folder::{Folder, SHARED_MEMORY};
use crate::inside::{CONSOLE, INIT, PULSE, STATUS};
use crate::running::Entry;
use crate::{GuestError, cage};

/// What a guest has if nobody says otherwise. Linux limits TCP's memory to a share of it (`net.ipv4.tcp_mem`), and at 10 Gbit/s a
/// quarter of this is too little: packets are then dropped that no queue dropped.
const MEMORY: Bytes = Bytes(1 << 30);
/// The way to the folder of the memory, in the guest's folder.
const MEMORY_FOLDER: &str = "memory";
/// A guest that shows no progress for so long will show none any more.
const PATIENCE: Duration = Duration::from_secs(120);
/// The kernel counts CPU time in hundredths of a second (`USER_HZ`). Whoever has had more than one in a second works.
const WORK: u64 = 1;
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(5);
/// What a kernel says before it starts itself anew.
const RESTART: &str = "reboot: Restarting system";
/// So many lines of a dead guest's console are shown.
const CONSOLE_LINES: usize = 6;
/// What a kernel says first when it gives up.
const PANIC: &str = "Kernel panic";

/// UML's own (`TIMER_MULTIPLIER`).
const READING: Duration = Duration::from_nanos(256);

/// A machine that can be started, any number of times and side by side.
#[derive(Clone, Debug)]
pub struct Guest {
    kernel: PathBuf,
    init: PathBuf,
    memory: Bytes,
    seed: u64,
    patience: Duration,
    may_compute: bool,
    reading: Duration,
    writable: Vec<PathBuf>,
}

impl Guest {
    /// A machine with this kernel, an executable, and this program of the host's as its init.
    #[must_use]
    pub fn new(kernel: impl Into<PathBuf>, init: impl Into<PathBuf>) -> Self {
        let (kernel, init) = (kernel.into(), init.into());
        Self {
            kernel,
            init,
            memory: MEMORY,
            seed: 1,
            patience: PATIENCE,
            may_compute: false,
            reading: READING,
            writable: Vec::new(),
        }
    }

    /// What all that is random in it follows from.
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// How much memory it has; the host gives it as it is used.
    #[must_use]
    pub const fn memory(mut self, memory: Bytes) -> Self {
        self.memory = memory;
        self
    }

    /// How long, in the host's time, it may go without a [`pulse`](crate::inside::pulse).
    #[must_use]
    pub const fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// What runs in it may compute for as long as it likes: as long as it has CPU time, it needs no pulse. Otherwise a program
    /// that computes forever, which stops the guest's clock, is taken for what it mostly is, a fault.
    #[must_use]
    pub const fn may_compute(mut self) -> Self {
        self.may_compute = true;
        self
    }

    /// How long, by the guest's clock, it takes to read that clock: 256 ns, in whole nanoseconds, by which loops that wait for time to pass come to an end.
    /// What runs in it is the more exact the shorter that is. Of no effect on kernels that others have built.
    #[must_use]
    pub const fn reading(mut self, reading: Duration) -> Self {
        self.reading = reading;
        self
    }

    /// Another folder of the host's that it may write to. It can then change permissions, owners and times of every file that
    /// its user could change: the host's kernel has nothing that keeps these apart.
    #[must_use]
    pub fn writable(mut self, folder: impl Into<PathBuf>) -> Self {
        self.writable.push(folder.into());
        self
    }

    /// Starts it, with `folder` as the one place that it can write to beside those that are [`writable`](Self::writable), and
    /// waits until it has powered off. `look` is called every few milliseconds, with what the last pulse said, and ends the guest
    /// by breaking.
    ///
    /// # Errors
    /// If it cannot be started, dies, hangs, is ended, or says itself that something went wrong.
    pub fn run(
        &self,
        folder: &Path,
        look: &mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> Result<(), GuestError> {
        let console = self
            .prepare(folder)
            .map_err(|error| GuestError::Folder { folder: folder.to_owned(), error })?;
        let memory = self
            .memory_folder(folder)
            .map_err(|error| GuestError::Folder { folder: folder.to_owned(), error })?;
        let affinity = Arc::new(Affinity::take());
        let (mut child, _starter) = self
            .start(folder, console, &memory, &affinity)
            .map_err(|error| GuestError::Start { kernel: self.kernel.clone(), error })?;
        let _entry = Entry::of(child.id());
        let mut pulse = String::new();
        let mut seen = Instant::now();
        let mut worked = 0;
        loop {
            if says(folder, RESTART) {
                // What it is told to do is for one start.
                let _ = child.kill();
                let _ = child.wait();
                return Err(GuestError::Restarted);
            }
            let ended = child.try_wait();
            let now = fs::read_to_string(folder.join(PULSE)).unwrap_or_default();
            if now != pulse {
                (pulse, seen) = (now, Instant::now());
            }
            if look(&pulse).is_break() {
                let _ = child.kill();
                let _ = child.wait();
                return Err(GuestError::Ended);
            }
            match ended {
                Ok(Some(_)) if says(folder, RESTART) => return Err(GuestError::Restarted),
                Ok(None) if seen.elapsed() > self.patience => {
                    let work = if self.may_compute { cpu_time(child.id()) } else { 0 };
                    if work > worked + WORK * self.patience.as_secs() {
                        (worked, seen) = (work, Instant::now());
                        continue;
                    }
                    // It cannot be talked to any more.
                    let _ = child.kill();
                    let _ = child.wait();
                    let console = last_words(folder);
                    return Err(GuestError::Hung { patience: self.patience, console });
                }
                Ok(None) => thread::sleep(LOOK),
                Ok(Some(_)) | Err(_) => break,
            }
        }
        // How the process ends says nothing: some kernels abort once they have powered off.
        match fs::read_to_string(folder.join(STATUS)) {
            Ok(status) if status.is_empty() => Ok(()),
            Ok(status) => Err(GuestError::Failed(status)),
            Err(_) => Err(GuestError::Died { console: last_words(folder) }),
        }
    }

    /// Puts into the folder what the guest needs, and takes out what another left there.
    fn prepare(&self, folder: &Path) -> io::Result<File> {
        for name in [STATUS, PULSE, INIT, MEMORY_FOLDER] {
            match fs::remove_file(folder.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        // The kernel's command line must be the same wherever the program is: randomness follows from it.
        symlink(fs::canonicalize(&self.init)?, folder.join(INIT))?;
        File::create(folder.join(CONSOLE))
    }

    /// A folder of its own for the file that is the guest's memory, with a name for it in the guest's folder: the kernel's
    /// environment is then the same wherever it is.
    fn memory_folder(&self, folder: &Path) -> io::Result<Folder> {
        let free =
            statvfs(SHARED_MEMORY).map_or(0, |disk| disk.blocks_available() * disk.fragment_size());
        let shared = || Folder::create_in(Path::new(SHARED_MEMORY)).ok();
        let shared = (free >= self.memory.0).then(shared).flatten();
        let memory = shared.map_or_else(|| Folder::create_in(&fs::canonicalize(folder)?), Ok)?;
        symlink(memory.path(), folder.join(MEMORY_FOLDER))?;
        Ok(memory)
    }

    fn start(
        &self,
        folder: &Path,
        console: File,
        memory: &Folder,
        affinity: &Arc<Affinity>,
    ) -> io::Result<(Child, Starter)> {
        let mut command = Command::new(fs::canonicalize(&self.kernel)?);
        let folder = fs::canonicalize(folder)?;
        command
            .args(["root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "quiet"])
            .arg(format!("init=/proc/self/cwd/{INIT}"))
            .arg(format!("mem={}M", self.memory.0 >> 20))
            .args(["time-travel=inf-cpu", "time-travel-start=0", "seccomp=auto"])
            .arg(format!("dualq-reading={}", self.reading.as_nanos().max(1)))
            .args(["con=null", "con0=null,fd:1"])
            // These two leave no trace on the command line that the guest's kernel sees.
            .arg(format!("uml_dir={}/", folder.display()))
            .arg("umid=guest")
            .arg(format!("DUALQ_GUEST={}", self.seed))
            .current_dir(&folder)
            .env_clear()
            // The kernel finds the top of its address space by the strings of its environment. It replaces PATH, so that one
            // does not count; with none at all it maps its stub over that one's stack.
            .env("LANG", "C")
            .env("TMPDIR", MEMORY_FOLDER)
            .stdin(Stdio::null())
            .stderr(console.try_clone()?)
            .stdout(console);
        // What is started inherits its thread's CPU and confinement, so these get a thread of their own.
        let affinity = Arc::clone(affinity);
        let mut writable = vec![folder, memory.path().to_owned()];
        writable.extend_from_slice(&self.writable);
        let attributes = !self.writable.is_empty();
        end_with_parent(&mut command);
        let (started, child) = mpsc::channel();
        let (starter, gone) = mpsc::channel();
        thread::spawn(move || {
            affinity.pin();
            let writable: Vec<&Path> = writable.iter().map(PathBuf::as_path).collect();
            let child = cage::enter(&writable, attributes).and_then(|()| command.spawn());
            let _ = started.send(child);
            // Nothing is ever sent: the other end is dropped.
            let _ = gone.recv();
        });
        let child = child.recv().map_err(|_| io::Error::other("the starting thread panicked"))?;
        Ok((child?, Starter(starter)))
    }
}

/// Keeps the thread that has started a guest, with which the guest would end.
struct Starter(#[expect(dead_code, reason = "it is dropped")] mpsc::Sender<()>);

/// The process ends as soon as the thread that starts it does, so with this program however that ends (`PR_SET_PDEATHSIG`).
#[allow(unsafe_code)]
fn end_with_parent(command: &mut Command) {
    let parent = Pid::this();
    let ends = move || {
        set_pdeathsig(Signal::SIGKILL)?;
        // It may be gone already.
        if getppid() == parent { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    };
    // SAFETY: between fork and exec only two system calls are made, without memory or locks.
    unsafe { command.pre_exec(ends) };
}

/// The CPU time so far of all that runs in a guest: these are processes in its kernel's session. The kernel's own does not count,
/// for it looks for something to happen even where nothing can.
fn cpu_time(kernel: u32) -> u64 {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let time = |process: fs::DirEntry| {
        let stat = fs::read_to_string(process.path().join("stat")).ok()?;
        // The program's name, in brackets, may have spaces. What follows is described in proc_pid_stat(5).
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
        let [session, user, system] = [number(3)?, number(11)?, number(12)?];
        let of_ended = number(13)? + number(14)?;
        let own = if process.file_name() == *kernel.to_string() { 0 } else { user + system };
        (session == u64::from(kernel)).then_some(own + of_ended)
    };
    processes.filter_map(time).sum()
}

/// Whether the console says something.
fn says(folder: &Path, text: &str) -> bool {
    // It is empty while all is well, so this costs next to nothing.
    fs::read(folder.join(CONSOLE))
        .is_ok_and(|console| String::from_utf8_lossy(&console).contains(text))
}

/// The last lines on a guest's console, as one.
fn last_words(folder: &Path) -> String {
    let console = fs::read(folder.join(CONSOLE)).unwrap_or_default();
    let console = String::from_utf8_lossy(&console);
    let lines: Vec<&str> = console.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    // What follows the reason of a panic is a list of calls.
    let first = lines.iter().position(|line| line.contains(PANIC));
    let first = first.unwrap_or(lines.len().saturating_sub(CONSOLE_LINES));
    let last = lines[first..].iter().take(CONSOLE_LINES).copied().collect::<Vec<_>>().join(" | ");
    if last.is_empty() { "nothing".to_owned() } else { last }
}
