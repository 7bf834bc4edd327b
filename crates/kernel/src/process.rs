//! Programs that run for minutes: what they say goes to a log, and they can be ended.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use dualq_units::plain;
use rustix::process::{Pid, Signal, kill_process_group, setpriority_process};

use crate::error::KernelError;

/// How many lines tell why a program failed.
const TOLD: usize = 8;

/// What a build goes back behind, so that the machine stays usable.
const NICE: i32 = 10;

/// What would make `make` build something else than asked for.
const FOREIGN: [&str; 15] = [
    "ARCH",
    "SUBARCH",
    "CROSS_COMPILE",
    "GNUMAKEFLAGS",
    "MAKEFLAGS",
    "MAKELEVEL",
    "MFLAGS",
    "KBUILD_OUTPUT",
    "KBUILD_VERBOSE",
    "KCONFIG_ALLCONFIG",
    "KCONFIG_CONFIG",
    "KCFLAGS",
    "LLVM",
    "O",
    "V",
];

/// Ends a build from another thread, such as that of a handler of Ctrl-C.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<State>);

#[derive(Debug, Default)]
struct State {
    raised: AtomicBool,
    /// The leader of the process group that runs now.
    running: Mutex<Option<Pid>>,
}

impl Interrupt {
    /// Ends what runs, with all that it has started. The build cleans up and returns.
    pub fn raise(&self) {
        let running = self.0.running.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.raised.store(true, Ordering::SeqCst);
        if let Some(group) = *running {
            // If it has just ended by itself, all the better.
            let _ = kill_process_group(group, Signal::TERM);
        }
    }

    pub(crate) fn check(&self) -> Result<(), KernelError> {
        if self.0.raised.load(Ordering::SeqCst) { Err(KernelError::Interrupted) } else { Ok(()) }
    }

    fn running(&self, group: Option<Pid>) {
        *self.0.running.lock().unwrap_or_else(PoisonError::into_inner) = group;
    }
}

/// Runs programs one after the other.
#[derive(Debug)]
pub struct Runner<'a> {
    log: File,
    log_path: PathBuf,
    interrupt: &'a Interrupt,
}

impl<'a> Runner<'a> {
    /// With a new log.
    ///
    /// # Errors
    ///
    /// If the log cannot be written.
    pub fn new(log_path: PathBuf, interrupt: &'a Interrupt) -> Result<Self, KernelError> {
        let log = File::create(&log_path).map_err(KernelError::file("write", &log_path))?;
        Ok(Self { log, log_path, interrupt })
    }

    pub(crate) fn log_path(&self) -> &Path {
        &self.log_path
    }

    /// Runs a program to its end and hands on its lines, those of standard error too.
    ///
    /// # Errors
    ///
    /// If it cannot be started or fails, and if the interrupt was raised.
    pub fn run(
        &mut self,
        doing: &str,
        command: &mut Command,
        each_line: &mut dyn FnMut(&str),
    ) -> Result<(), KernelError> {
        self.interrupt.check()?;
        let mut told = Told::default();
        let ended = self.follow(command, &mut |line| {
            told.hear(line);
            each_line(line);
        });
        self.interrupt.check()?;
        let how = match ended {
            Ok(status) if status.success() => return Ok(()),
            Ok(status) => status.to_string(),
            Err(error) => plain(&error),
        };
        let (doing, log) = (doing.to_owned(), self.log_path.clone());
        Err(KernelError::Step { doing, how, lines: told.lines(), log })
    }

    /// Runs a program that answers in a few lines.
    pub(crate) fn answer(
        &mut self,
        doing: &str,
        command: &mut Command,
    ) -> Result<String, KernelError> {
        let mut answer = String::new();
        self.run(doing, command, &mut |line| {
            answer.push_str(line);
            answer.push('\n');
        })?;
        Ok(answer)
    }

    fn follow(
        &mut self,
        command: &mut Command,
        each_line: &mut dyn FnMut(&str),
    ) -> io::Result<ExitStatus> {
        writeln!(self.log, "$ {}", shown(command))?;
        let (reader, writer) = io::pipe()?;
        for name in FOREIGN {
            command.env_remove(name);
        }
        command.env("LC_ALL", "C").stdin(Stdio::null());
        command.stdout(writer.try_clone()?).stderr(writer);
        // A group of its own can be ended as a whole; a Ctrl-C reaches it through `Interrupt` only.
        let mut child = command.process_group(0).spawn()?;
        // The command holds the pipe's other end, which must be closed for the lines to end.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let group = Pid::from_child(&child);
        self.interrupt.running(Some(group));
        if self.interrupt.check().is_err() {
            self.interrupt.raise();
        }
        // Not worth failing for.
        let _ = setpriority_process(Some(group), NICE);
        let mut lines = BufReader::new(reader);
        let heard = self.hear(&mut lines, each_line);
        if heard.is_err() {
            // What nobody follows any more is not to go on in folders that are about to go. The pipe ends with the last of it.
            let _ = kill_process_group(group, Signal::TERM);
            let _ = io::copy(&mut lines, &mut io::sink());
        }
        let status = child.wait();
        self.interrupt.running(None);
        heard.and(status)
    }

    fn hear(
        &mut self,
        lines: &mut impl BufRead,
        each_line: &mut dyn FnMut(&str),
    ) -> io::Result<()> {
        let mut bytes = Vec::new();
        while lines.read_until(b'\n', &mut bytes)? > 0 {
            self.log.write_all(&bytes)?;
            each_line(String::from_utf8_lossy(&bytes).trim_end());
            bytes.clear();
        }
        Ok(())
    }
}

/// A command for the log: the arguments between spaces.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

/// The last lines, and the last that tell of an error.
#[derive(Default)]
struct Told {
    heard: usize,
    last: VecDeque<String>,
    errors: VecDeque<String>,
}

impl Told {
    fn hear(&mut self, line: &str) {
        self.heard += 1;
        let of_an_error =
            ["error", "Error", "***", "E: ", "fatal", "undefined reference", "annot "];
        let matters = of_an_error.iter().any(|word| line.contains(word));
        for lines in [Some(&mut self.last), matters.then_some(&mut self.errors)] {
            let Some(lines) = lines else { continue };
            lines.push_back(line.to_owned());
            if lines.len() > TOLD {
                lines.pop_front();
            }
        }
    }

    fn lines(self) -> Vec<String> {
        // Who said little said nothing else.
        let all = self.heard <= TOLD || self.errors.is_empty();
        let lines = if all { self.last } else { self.errors };
        lines.into_iter().filter(|line| !line.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    fn shell(script: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]);
        shell
    }

    #[test]
    fn lines_go_to_the_log_and_a_failure_tells_those_that_matter() {
        let folder = tempfile::tempdir().unwrap();
        let interrupt = Interrupt::default();
        let mut runner = Runner::new(folder.path().join("log"), &interrupt).unwrap();
        let answer = runner.answer("asking", &mut shell("echo one; echo two >&2")).unwrap();
        assert_eq!(answer, "one\ntwo\n");
        let script = "seq 20; echo 'a.c:1: error: no'; echo '  CC b.o'; exit 2";
        let error = runner.answer("compiling", &mut shell(script)).unwrap_err();
        let KernelError::Step { how, lines, log, .. } = &error else { panic!("{error}") };
        assert_eq!(
            (how.as_str(), lines.as_slice()),
            ("exit status: 2", &["a.c:1: error: no".to_owned()][..])
        );
        let logged = std::fs::read_to_string(log).unwrap();
        assert!(logged.contains("two\n") && logged.contains("  CC b.o\n"), "{logged}");
    }

    #[test]
    fn an_interrupt_ends_the_program_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let interrupt = Interrupt::default();
        let mut runner = Runner::new(folder.path().join("log"), &interrupt).unwrap();
        let started = Instant::now();
        // The second sleep holds the pipe open, as a compiler below make would.
        let ended =
            runner.run("sleeping", &mut shell("echo now; sleep 60 & sleep 60"), &mut |_| {
                let interrupt = interrupt.clone();
                thread::spawn(move || {
                    thread::sleep(Duration::from_millis(50));
                    interrupt.raise();
                });
            });
        assert!(matches!(ended, Err(KernelError::Interrupted)));
        assert!(started.elapsed() < Duration::from_secs(30));
        let next = runner.run("starting", &mut shell("echo"), &mut |_| panic!("it has begun"));
        assert!(matches!(next, Err(KernelError::Interrupted)));
    }

    /// As on a full disk.
    #[test]
    fn a_program_whose_lines_cannot_be_kept_is_ended_with_its_children() {
        let (reader, writer) = io::pipe().unwrap();
        let interrupt = Interrupt::default();
        let log = File::from(OwnedFd::from(writer));
        let mut runner = Runner { log, log_path: PathBuf::from("log"), interrupt: &interrupt };
        let mut reader = Some(reader);
        let mut child = None;
        let script = "sleep 60 & echo $!; sleep 0.1; echo; sleep 60";
        let ended = runner.run("compiling", &mut shell(script), &mut |line| {
            child = Some(line.to_owned());
            reader = None;
        });
        let Err(KernelError::Step { how, .. }) = ended else { panic!("{ended:?}") };
        assert_eq!(how, "Broken pipe");
        assert!(interrupt.0.running.lock().unwrap().is_none());
        // What is dead and not yet buried has no command line.
        let child = std::fs::read(format!("/proc/{}/cmdline", child.unwrap()));
        assert_eq!(child.unwrap_or_default(), b"");
    }
}
