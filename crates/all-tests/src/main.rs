//! Runs all tests of the workspace, as `cargo test --workspace` does, in less time. Cargo runs one test program after another, of
//! which many wait for real time while the processors are idle; here some run side by side. Those that heed the clock come first to
//! the processors, and those that only compute take what is left of them.
//!
//! A test of those that heed the clock is tried once more by itself if it fails; that it passed then is said. Each program says how it
//! ended, and at the end all that failed show what they printed; the last line says how many tests were skipped, and what these
//! want. The exit status is 1 if anything failed.
#![forbid(unsafe_code)]

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// In the folder of what programs print: what they skipped.
const SKIPPED: &str = "skipped.txt";

/// Programs that share the processors alike.
struct Lane {
    /// What they leave to the other lanes, as of `nice`.
    niceness: u8,
    /// So many run at once.
    at_once: usize,
    /// As cargo is asked for them; what takes longest comes first.
    programs: &'static [&'static str],
}

/// All of a row run beside each other; each row by itself, one lane after the other.
const ROWS: [&[Lane]; 4] = [
    // Links, connections and watchdogs in real time: first those that measure, beside nobody.
    &[
        Lane { niceness: 0, at_once: 1, programs: &["-p dualq --test measure"] },
        Lane {
            niceness: 0,
            at_once: 2,
            programs: &[
                "-p dualq --test shell",
                "-p dualq --test apply",
                "-p dualq-measure --test loopback",
                "-p dualq --test live",
                "-p dualq-lab --test nothing_is_left",
                "-p dualq-link --test real",
                "-p dualq-netlink --test rtnetlink",
                "-p dualq --test watch",
                "-p dualq-watch --lib",
            ],
        },
    ],
    // What waits, and hardly computes.
    &[Lane { niceness: 0, at_once: 1, programs: &["-p dualq --test mtu"] }],
    // Guests and browsers, for which tests have patience.
    &[Lane {
        niceness: 10,
        at_once: 1,
        programs: &[
            "-p dualq --test kernel",
            "-p dualq --test playground",
            "-p dualq --test browser",
            "-p dualq --test python",
        ],
    }],
    // And all others.
    &[Lane {
        niceness: 19,
        at_once: 2,
        programs: &["-p dualq --test run", "-p dualq --test plan", "-p dualq-model --test l4s"],
    }],
];

/// What was built and is to be run.
struct Program {
    /// The package and the target, as cargo is asked for them.
    name: String,
    executable: OsString,
    args: Vec<OsString>,
    /// Where it is to run.
    folder: PathBuf,
}

/// How a program ended.
struct Ended {
    program: Program,
    passed: bool,
    output: String,
    /// Tests that failed beside others, and passed alone.
    alone: Vec<String>,
}

impl Ended {
    fn in_short(&self) -> String {
        let (name, passed) = (&self.program.name, self.passed_tests());
        if self.passed { format!("{name}: {passed} passed") } else { format!("{name}: FAILED") }
    }

    fn passed_tests(&self) -> usize {
        let results = self.output.lines().filter_map(|line| line.strip_prefix("test result: "));
        results.filter_map(|result| result.split(' ').nth(1)?.parse::<usize>().ok()).sum()
    }

    /// As the harness lists them at its end.
    fn failed_tests(&self) -> Vec<String> {
        let Some((_, list)) = self.output.rsplit_once("\nfailures:\n") else { return Vec::new() };
        let names = list.lines().map_while(|line| line.strip_prefix("    "));
        names.map(str::to_owned).collect()
    }
}

fn main() -> ExitCode {
    if std::env::args_os().len() > 1 {
        eprintln!("all-tests takes no arguments: it runs all; `cargo test` runs some of them");
        return ExitCode::from(2);
    }
    let began = Instant::now();
    let programs = match built() {
        Ok(programs) => programs,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::FAILURE;
        }
    };
    let folder = output_folder();
    match folder.and_then(|folder| Ok((run(programs, &folder)?, folder))) {
        Ok((ended, folder)) => report(&ended, &folder, began.elapsed()),
        Err(error) => {
            eprintln!("the tests cannot be run: {error}");
            ExitCode::FAILURE
        }
    }
}

/// An empty folder for what programs print, beside the programs that were built.
fn output_folder() -> io::Result<PathBuf> {
    let folder = std::env::current_exe()?.with_file_name("test-output");
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

fn cargo(args: &[&str]) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["test", "--workspace"]).args(args);
    cargo
}

/// Builds all, and gives what is to be run. Cargo itself says what it does, and what does not compile.
fn built() -> Result<Vec<Program>, String> {
    let mut cargo_test = cargo(&["--no-run", "--message-format", "json-render-diagnostics"]);
    let output = cargo_test.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("cargo cannot be started: {error}"))?;
    if !output.status.success() {
        return Err("the tests do not compile".to_owned());
    }
    let messages = output.stdout.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let messages = messages.map(|line| {
        serde_json::from_slice(line).map_err(|error| format!("cargo's message: {error}"))
    });
    let messages: Vec<Value> = messages.collect::<Result<_, _>>()?;
    let mut programs: Vec<Program> = messages.iter().filter_map(program).collect();
    let documents = cargo(&["--doc"]);
    programs.push(Program {
        name: "--workspace --doc".to_owned(),
        executable: documents.get_program().to_owned(),
        args: documents.get_args().map(OsStr::to_owned).collect(),
        folder: PathBuf::from("."),
    });
    Ok(programs)
}

/// The program that a message tells of, if it is one with tests.
fn program(message: &Value) -> Option<Program> {
    let executable = message["executable"].as_str()?;
    message["profile"]["test"].as_bool().filter(|&is| is)?;
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    let target = message["target"]["name"].as_str()?;
    // `…/crates/tcp#dualq-tcp@0.1.0`, or `…/crates/dualpi2#0.1.0` where the folder has the package's name.
    let (path, id) = message["package_id"].as_str()?.rsplit_once('#')?;
    let package =
        id.split_once('@').map_or_else(|| path.rsplit('/').next(), |(name, _)| Some(name))?;
    let kind = match message["target"]["kind"][0].as_str()? {
        "test" => format!("--test {target}"),
        "bin" => format!("--bin {target}"),
        "example" => format!("--example {target}"),
        _ => "--lib".to_owned(),
    };
    Some(Program {
        name: format!("-p {package} {kind}"),
        executable: executable.into(),
        args: Vec::new(),
        folder: folder.to_owned(),
    })
}

/// Runs them all, each in its lane, and gives how they ended.
fn run(programs: Vec<Program>, folder: &Path) -> io::Result<Vec<Ended>> {
    let count = programs.len();
    let mut queues = ROWS.map(|row| row.iter().map(|_| Vec::new()).collect::<Vec<_>>());
    for program in programs {
        let place = |lane: &Lane| lane.programs.iter().position(|&name| name == program.name);
        let lanes = ROWS.iter().enumerate().flat_map(|(row, lanes)| {
            lanes.iter().enumerate().map(move |(at, lane)| (row, at, lane))
        });
        let mut found = lanes.filter_map(|(row, at, lane)| Some((row, at, place(lane)?)));
        let (row, at, place) = found.next().unwrap_or((ROWS.len() - 1, 0, usize::MAX));
        queues[row][at].push((place, program));
    }
    for (lane, queue) in ROWS.iter().copied().flatten().zip(queues.iter().flatten()) {
        let is_built = |name: &&str| queue.iter().any(|(_, program)| program.name == **name);
        if let Some(name) = lane.programs.iter().find(|name| !is_built(name)) {
            return Err(io::Error::other(format!("there is no test program {name}")));
        }
    }
    let ended = Mutex::new(Vec::with_capacity(count));
    thread::scope(|scope| {
        let rows = ROWS.iter().zip(queues).map(|(row, queues)| {
            let ended = &ended;
            scope.spawn(move || {
                row.iter().zip(queues).try_for_each(|(lane, mut queue)| {
                    queue.sort_by_key(|&(place, _)| place);
                    let queue = queue.into_iter().map(|(_, program)| program);
                    run_lane(lane, queue, folder, |one, took| {
                        let mut ended = ended.lock().expect("nobody panics that has it");
                        println!(
                            "{:3} of {count}: {}, {:.1} s",
                            ended.len() + 1,
                            one.in_short(),
                            took.as_secs_f64()
                        );
                        ended.push(one);
                    })
                })
            })
        });
        let rows: Vec<_> = rows.collect();
        rows.into_iter().try_for_each(|row| row.join().expect("no lane panics"))
    })?;
    let mut ended = ended.into_inner().expect("no lane panicked");
    for one in ended.iter_mut().filter(|one| !one.passed && heeds_the_clock(&one.program)) {
        try_alone(one, folder)?;
    }
    Ok(ended)
}

/// Of all but the last row: there are links in real time beside guests too.
fn heeds_the_clock(program: &Program) -> bool {
    let [rows @ .., _] = &ROWS;
    rows.iter().copied().flatten().any(|lane| lane.programs.contains(&program.name.as_str()))
}

/// Where processors are few, what others do at the same time may have failed a test in real time. It gets one more chance, by itself.
fn try_alone(ended: &mut Ended, folder: &Path) -> io::Result<()> {
    let tests = ended.failed_tests();
    if tests.is_empty() {
        return Ok(());
    }
    println!("once more, alone: {}", tests.join(", "));
    let mut args = vec!["--exact".to_owned(), "--test-threads=1".to_owned()];
    args.extend(tests.iter().cloned());
    let again = Program {
        name: format!("{} (alone)", ended.program.name),
        args: args.into_iter().map(OsString::from).collect(),
        executable: ended.program.executable.clone(),
        folder: ended.program.folder.clone(),
    };
    let again = run_one(again, 0, folder)?;
    // The harness also calls it a success if it knows no test of such a name.
    if again.passed && again.passed_tests() == tests.len() {
        (ended.passed, ended.alone) = (true, tests);
    } else {
        ended.output.push_str("\nOnce more, alone:\n");
        ended.output.push_str(&again.output);
    }
    Ok(())
}

/// Runs the programs of a lane, so many at once.
fn run_lane(
    lane: &Lane,
    programs: impl Iterator<Item = Program> + Send,
    folder: &Path,
    note: impl Fn(Ended, Duration) + Sync,
) -> io::Result<()> {
    let programs = Mutex::new(programs);
    let next = || programs.lock().expect("nobody panics that has it").next();
    let work = || {
        while let Some(program) = next() {
            let began = Instant::now();
            note(run_one(program, lane.niceness, folder)?, began.elapsed());
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..lane.at_once).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("no worker panics"))
    })
}

/// Runs a program. What it prints goes to a file, which a process that outlives it does not hold up.
fn run_one(program: Program, niceness: u8, folder: &Path) -> io::Result<Ended> {
    let path = folder.join(program.name.replace([' ', ':'], "_") + ".txt");
    let output = File::create(&path)?;
    let mut command = Command::new("nice");
    command.arg("-n").arg(niceness.to_string());
    if fs::read_to_string("/proc/self/status").is_ok_and(|status| ignores_interrupts(&status)) {
        command.args(["env", "--default-signal=INT,QUIT"]);
    }
    command.arg(&program.executable).args(&program.args);
    command.current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder);
    command.env(tests_skipped::RECORD, folder.join(SKIPPED));
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    let why = |error| io::Error::other(format!("nice {}: {error}", program.executable.display()));
    let passed = command.status().map_err(why)?.success();
    let output = String::from_utf8_lossy(&fs::read(path)?).into_owned();
    Ok(Ended { program, passed, output, alone: Vec::new() })
}

/// Whether a process with such a `/proc/PID/status` ignores SIGINT, as what a script starts with `&` does. No shell that is started so may listen to it
/// (POSIX, `trap`), and tests of Ctrl-C would wait for ever.
fn ignores_interrupts(status: &str) -> bool {
    const SIGINT: u64 = 1 << 1;
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap_or(0) & SIGINT > 0)
}

/// Says what failed, and what was skipped.
fn report(ended: &[Ended], folder: &Path, took: Duration) -> ExitCode {
    let failed: Vec<&Ended> = ended.iter().filter(|one| !one.passed).collect();
    for one in &failed {
        println!("\n{}:\n{}", one.program.name, one.output);
    }
    for one in &failed {
        println!("FAILED: cargo test {}", one.program.name);
    }
    for one in ended.iter().filter(|one| !one.alone.is_empty()) {
        println!(
            "failed beside others and passed alone: {} of cargo test {}",
            one.alone.join(", "),
            one.program.name
        );
    }
    let took = took.as_secs();
    let told = fs::read_to_string(folder.join(SKIPPED)).unwrap_or_default();
    println!(
        "{} of {} test programs passed in {took} s; {} has what they printed",
        ended.len() - failed.len(),
        ended.len(),
        folder.display()
    );
    println!("{}", tests_skipped::summary(&told));
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(message: &str) -> Option<Program> {
        program(&serde_json::from_str(message).unwrap())
    }

    #[test]
    fn who_ignores_interrupts() {
        let of =
            |mask: &str| ignores_interrupts(&format!("Name:\tx\nSigIgn:\t{mask}\nSigCgt:\tff\n"));
        assert!(of("0000000000000006") && of("0000000000000002"));
        assert!(!of("0000000000001004") && !of("0000000000000000") && !ignores_interrupts(""));
    }

    #[test]
    fn cargos_messages_name_programs_as_cargo_is_asked_for_them() {
        let message = |id: &str, kind: &str, test: bool| {
            format!(
                r#"{{"reason": "compiler-artifact", "package_id": "path+file:///w/crates/{id}",
                    "manifest_path": "/w/crates/x/Cargo.toml", "target": {{"kind": ["{kind}"], "name": "all"}},
                    "profile": {{"test": {test}}}, "executable": "/w/target/debug/deps/all-1"}}"#
            )
        };
        let found = of(&message("x#dualq-x@0.1.0", "test", true)).unwrap();
        assert_eq!(
            (found.name.as_str(), found.folder.to_str()),
            ("-p dualq-x --test all", Some("/w/crates/x"))
        );
        assert_eq!(of(&message("dualpi2#0.1.0", "lib", true)).unwrap().name, "-p dualpi2 --lib");
        assert!(of(&message("x#dualq-x@0.1.0", "bin", false)).is_none(), "a program without tests");
        assert!(of(r#"{"reason": "build-finished", "success": true}"#).is_none());
    }

    #[test]
    fn what_failed_is_as_the_harness_lists_it() {
        let output = "test a ... FAILED\ntest b ... ok\n\nfailures:\n\n---- a stdout ----\n    not a name\n\n\n\
                      failures:\n    a\n    m::c\n\ntest result: FAILED. 1 passed; 2 failed; 0 ignored\n";
        let program =
            of(r#"{"package_id": "p#x@1", "manifest_path": "/w/Cargo.toml", "executable": "/w/x",
            "target": {"kind": ["lib"], "name": "x"}, "profile": {"test": true}}"#);
        let mut ended = Ended {
            program: program.unwrap(),
            passed: false,
            output: output.to_owned(),
            alone: Vec::new(),
        };
        assert_eq!(ended.failed_tests(), ["a", "m::c"]);
        assert_eq!(ended.in_short(), "-p x --lib: FAILED");
        (ended.output, ended.passed) = ("test result: ok. 3 passed; 0 failed\n".repeat(2), true);
        assert_eq!(
            (ended.failed_tests().len(), ended.in_short().as_str()),
            (0, "-p x --lib: 6 passed")
        );
    }
}
