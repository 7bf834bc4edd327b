//! Runs all tests of the workspace, as `cargo test --workspace` does, in less time. Cargo runs one test program after another, of
//! which many wait for real time while the processors are idle; here some run side by side. Those that heed the clock come first to
//! the processors, and those that only compute take what is left of them.
//!
//! Each program says how it ended, and at the end all that failed show what they printed; the last line says how many tests were
//! skipped, and what these want. The exit status is 1 if anything failed.
#![forbid(unsafe_code)]

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex};
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
    /// By the names of cargo's targets; what takes longest comes first.
    programs: &'static [&'static str],
}

const LANES: [Lane; 3] = [
    // Links, connections and watchdogs in real time.
    Lane {
        niceness: 0,
        at_once: 2,
        programs: &[
            "measure",
            "mtu",
            "apply",
            "shell",
            "loopback",
            "live",
            "real",
            "rtnetlink",
            "watch",
            "dualq_watch",
        ],
    },
    // Guests and browsers, for which tests have patience.
    Lane { niceness: 10, at_once: 1, programs: &["kernel", "playground", "browser", "python"] },
    // And all others.
    Lane { niceness: 19, at_once: 2, programs: &["run", "plan", "l4s"] },
];

/// What was built and is to be run.
struct Program {
    /// The package and the target, as cargo is asked for them.
    name: String,
    target: String,
    executable: OsString,
    args: Vec<OsString>,
    /// Where it is to run.
    folder: PathBuf,
}

/// How a program ended.
struct Ended {
    name: String,
    passed: bool,
    output: String,
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
        target: "doc".to_owned(),
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
    let target = message["target"]["name"].as_str()?.to_owned();
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
        target,
        executable: executable.into(),
        args: Vec::new(),
        folder: folder.to_owned(),
    })
}

/// Runs them all, each in its lane, and gives how they ended.
fn run(programs: Vec<Program>, folder: &Path) -> io::Result<Vec<Ended>> {
    let count = programs.len();
    let mut queues = LANES.each_ref().map(|_| Vec::new());
    for program in programs {
        let place = |lane: &Lane| lane.programs.iter().position(|&name| name == program.target);
        let found = LANES.iter().enumerate().find_map(|(lane, of)| Some((lane, place(of)?)));
        let (lane, place) = found.unwrap_or((LANES.len() - 1, usize::MAX));
        queues[lane].push((place, program));
    }
    let ended = Mutex::new(Vec::with_capacity(count));
    thread::scope(|scope| {
        let mut workers = Vec::new();
        for (lane, mut queue) in LANES.iter().zip(queues) {
            queue.sort_by_key(|&(place, _)| place);
            let queue = Arc::new(Mutex::new(queue.into_iter()));
            for _ in 0..lane.at_once {
                let (queue, ended) = (Arc::clone(&queue), &ended);
                workers.push(scope.spawn(move || -> io::Result<()> {
                    loop {
                        let next = queue.lock().expect("nothing panics that has it").next();
                        let Some((_, program)) = next else { return Ok(()) };
                        let began = Instant::now();
                        let one = run_one(program, lane.niceness, folder)?;
                        let mut ended = ended.lock().expect("nothing panics that has it");
                        ended.push(one);
                        say(&ended, count, began.elapsed());
                    }
                }));
            }
        }
        workers.into_iter().try_for_each(|worker| worker.join().expect("no worker panics"))
    })?;
    Ok(ended.into_inner().expect("no worker panicked"))
}

/// Runs a program. What it prints goes to a file, which a process that outlives it does not hold up.
fn run_one(program: Program, niceness: u8, folder: &Path) -> io::Result<Ended> {
    let name = program.name;
    let path = folder.join(name.replace(' ', "_")).with_extension("txt");
    let output = File::create(&path)?;
    let mut command = Command::new("nice");
    command.arg("-n").arg(niceness.to_string()).arg(program.executable).args(program.args);
    command.current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder);
    command.env(tests_skipped::RECORD, folder.join(SKIPPED));
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    let passed = command.status()?.success();
    let output = String::from_utf8_lossy(&fs::read(path)?).into_owned();
    Ok(Ended { name, passed, output })
}

/// Says how the program ended that ended last.
fn say(ended: &[Ended], count: usize, took: Duration) {
    let Some(last) = ended.last() else { return };
    let results = last.output.lines().filter_map(|line| line.strip_prefix("test result: "));
    let passed: u32 =
        results.filter_map(|result| result.split(' ').nth(1)?.parse::<u32>().ok()).sum();
    let how = if last.passed { format!("{passed} passed") } else { "FAILED".to_owned() };
    println!("{:3} of {count}: {} ({how}, {:.1} s)", ended.len(), last.name, took.as_secs_f64());
}

/// Says what failed, and what was skipped.
fn report(ended: &[Ended], folder: &Path, took: Duration) -> ExitCode {
    let failed: Vec<&Ended> = ended.iter().filter(|one| !one.passed).collect();
    for one in &failed {
        println!("\n{}:\n{}", one.name, one.output);
    }
    for one in &failed {
        println!("FAILED: cargo test {}", one.name);
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
