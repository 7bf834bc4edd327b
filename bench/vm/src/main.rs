//! dualq as its user has it: on Debian as it is installed, on whole virtual machines in QEMU. What is applied there is cut short
//! in every way that a machine knows, and looked at afterwards.

mod image;
mod machine;
mod scenario;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use image::{Image, call};
use machine::Accelerator;
use scenario::{Bench, SCENARIOS, Scenario};

const HELP: &str = "\
dualq on whole virtual machines

usage: bench/vm/run [OPTIONS] [SCENARIO...]

  --short       only what takes a few minutes, for CI
  --moments N   how many moments each of apply, confirm and rollback is cut short at (default 10; 2 if short)
  --seed N      which moments (default 1)
  --within S    begin no scenario, and no further moment, after S seconds
  --keep        keep the machines' disks and consoles
  --list        what there is
  --dualq FILE  the program (default: target/debug/dualq)

Images are made of Debian's packages by mmdebstrap, as root, and kept in ~/.cache/dualq/vm. Of what fails, consoles and what QEMU said are kept there too.
";

struct Arguments {
    short: bool,
    moments: Option<u32>,
    seed: u64,
    within: Option<Duration>,
    keep: bool,
    dualq: PathBuf,
    names: Vec<String>,
}

fn arguments() -> Result<Option<Arguments>> {
    let mut all = Arguments {
        short: false,
        moments: None,
        seed: 1,
        within: None,
        keep: false,
        dualq: "target/debug/dualq".into(),
        names: Vec::new(),
    };
    let mut words = env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word} wants a value"));
        match word.as_str() {
            "--short" => all.short = true,
            "--keep" => all.keep = true,
            "--moments" => all.moments = Some(value()?.parse().context("--moments")?),
            "--seed" => all.seed = value()?.parse().context("--seed")?,
            "--within" => {
                all.within = Some(Duration::from_secs(value()?.parse().context("--within")?));
            }
            "--dualq" => all.dualq = value()?.into(),
            "--help" | "-h" => {
                print!("{HELP}");
                return Ok(None);
            }
            "--list" => {
                for Scenario { name, about, short, .. } in SCENARIOS {
                    println!("{name:<16} {}{about}", if *short { "(short) " } else { "" });
                }
                return Ok(None);
            }
            name if SCENARIOS.iter().any(|scenario| scenario.name == name) => {
                all.names.push(word);
            }
            _ => bail!("{word:?} is no option and no scenario; --list says which there are"),
        }
    }
    Ok(Some(all))
}

/// What has to be there, or why nothing can be run.
fn missing() -> Option<String> {
    for program in [
        "qemu-system-x86_64",
        "qemu-img",
        "mmdebstrap",
        "mkfs.ext4",
        "ssh",
        "ssh-keygen",
        "setpriv",
    ] {
        let found = env::var_os("PATH").is_some_and(|path| {
            env::split_paths(&path).any(|folder| folder.join(program).is_file())
        });
        if !found {
            return Some(format!("there is no {program}"));
        }
    }
    None
}

fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(Some(arguments)) => arguments,
        Ok(None) => return ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            return ExitCode::from(2);
        }
    };
    if let Some(why) = missing() {
        println!("skipped: {why}");
        return ExitCode::SUCCESS;
    }
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Removes the machines of runs that were killed, half a gigabyte each.
fn forget_killed(cache: &Path) -> Result<()> {
    for entry in fs::read_dir(cache)?.flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix("run-"));
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// Keeps what machines and QEMU said while a scenario failed; gives where.
fn keep_logs(bench: &Bench, scenario: &str) -> Result<PathBuf> {
    let kept = bench.cache.join(format!("failed-{}-{scenario}", std::process::id()));
    for machine in fs::read_dir(&bench.work)?.flatten().map(|entry| entry.path()) {
        for log in ["console.log", "qemu.log"] {
            let from = machine.join(log);
            if let (true, Some(name)) = (from.is_file(), machine.file_name()) {
                fs::create_dir_all(kept.join(name))?;
                fs::copy(&from, kept.join(name).join(log))?;
            }
        }
    }
    Ok(kept)
}

fn run(arguments: &Arguments) -> Result<bool> {
    let started = Instant::now();
    let home = env::var_os("HOME").context("HOME is not set")?;
    let cache = Path::new(&home).join(".cache/dualq/vm");
    fs::create_dir_all(&cache)?;
    let key = cache.join("key");
    if !key.exists() {
        call(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key))?;
    }
    let first = match Image::Networkd.get(&cache) {
        Ok(built) => built,
        Err(error) if !env::var("DUALQ_REQUIRE_VM").is_ok_and(|value| value == "1") => {
            println!("skipped: {error:#}");
            return Ok(true);
        }
        Err(error) => return Err(error),
    };
    forget_killed(&cache)?;
    let work = cache.join(format!("run-{}", std::process::id()));
    fs::create_dir_all(&work)?;
    // It has to be copied into each machine.
    let dualq = work.join("dualq");
    call(Command::new("strip").arg("-o").arg(&dualq).arg(&arguments.dualq))?;
    let accelerator = Accelerator::find(&first, &work)?;
    let mut bench = Bench {
        cache,
        work: work.clone(),
        dualq,
        accelerator,
        moments: arguments.moments.unwrap_or(if arguments.short { 2 } else { 10 }),
        until: arguments.within.map(|within| started + within),
        random: fastrand::Rng::with_seed(arguments.seed),
        versions: Vec::new(),
    };
    let chosen: Vec<&Scenario> = SCENARIOS
        .iter()
        .filter(|scenario| match arguments.names.as_slice() {
            [] => scenario.short || !arguments.short,
            names => names.iter().any(|name| name == scenario.name),
        })
        .collect();
    ensure!(!chosen.is_empty(), "no scenario is short");
    let (mut rows, mut good) = (Vec::new(), true);
    for scenario in chosen {
        if bench.is_late() {
            println!("skipped: {}, as the time is up", scenario.name);
            continue;
        }
        let begun = Instant::now();
        eprintln!("{} ...", scenario.name);
        let outcome = (scenario.play)(&mut bench);
        let seconds = begun.elapsed().as_secs();
        let (word, told) = match outcome {
            Ok(told) => ("good", told),
            Err(error) => {
                good = false;
                let logs = keep_logs(&bench, scenario.name)?;
                ("BAD", format!("{error:#}\nlogs are in {}", logs.display()))
            }
        };
        eprintln!("{} {word} ({seconds} s): {told}", scenario.name);
        rows.push(format!(
            "| {} | {word} | {seconds} s | {} |",
            scenario.name,
            told.replace('\n', "; ")
        ));
    }
    let today = call(Command::new("date").arg("+%F"))?;
    let qemu = call(Command::new("qemu-system-x86_64").arg("--version"))?;
    println!(
        "\n{}, {}, {}, seed {}\n{}\n\n| scenario | | took | what was seen |\n|---|---|--:|---|\n{}",
        today.trim(),
        qemu.lines().next().unwrap_or_default(),
        accelerator.name(),
        arguments.seed,
        bench.versions.join("\n"),
        rows.join("\n")
    );
    if arguments.keep {
        let kept = bench.cache.join(format!("kept-{}", std::process::id()));
        fs::rename(&work, &kept)?;
        println!("\nthe machines are in {}", kept.display());
    } else {
        fs::remove_dir_all(&work)?;
    }
    Ok(good)
}
