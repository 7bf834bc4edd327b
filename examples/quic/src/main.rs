//! `cargo run -- SCENARIO.toml`: its flows as connections of quinn, beside the same as Linux's TCP in dualq's model.

use std::process::ExitCode;

use dualq_quic::{flows, race};
use dualq_scenario::Sweep;

/// Two senders in three queues.
const SCENARIO: &str = "\
name = 'quic'
duration = '60s'
warmup = '10s'
[link]
rate = '20mbit'
rtt = '40ms'
qdisc = ['pfifo limit 200', 'fq_codel', 'dualpi2']
[[flow]]
cc = 'cubic'
[[flow]]
cc = ['reno', 'cubic', 'bbr']
";

fn main() -> ExitCode {
    match print() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print() -> Result<(), Box<dyn std::error::Error>> {
    let sweep = match std::env::args_os().nth(1) {
        None => Sweep::parse(SCENARIO)?,
        Some(path) => {
            let named = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
            let text = std::fs::read_to_string(&path).map_err(|error| named(&error))?;
            Sweep::parse(&text).map_err(|error| named(&error))?
        }
    };
    let variants = sweep.variants();
    // What is refused is refused before anything is printed.
    let played = variants.iter().map(|variant| flows(&variant.scenario));
    let played = played.collect::<Result<Vec<_>, _>>()?;
    println!("{:<24} {:>8} {:>8}", "", "QUIC", "TCP");
    for (variant, flows) in variants.iter().zip(&played) {
        let scenario = &variant.scenario;
        let quic = race(&scenario.link, flows, scenario.duration, scenario.warmup, 1)?;
        let tcp = dualq_model::simulate(scenario, 1)?;
        let settings = variant.settings.iter().map(|(what, value)| format!("{what} {value}"));
        let settings = settings.collect::<Vec<_>>().join(", ");
        println!("{}", if settings.is_empty() { &scenario.name } else { &settings });
        let mut ours = quic.flows.iter();
        for (group, theirs) in scenario.flow.iter().zip(&tcp.flow) {
            let ours = ours.by_ref().take(group.count as usize);
            let ours: f64 = ours.map(|flow| flow.goodput_mbit).sum();
            let theirs = theirs.total_mbit;
            println!("  {:<22} {ours:>8.2} {theirs:>8.2}  Mbit/s", group.cc.name());
        }
        let (ours, theirs) = (quic.queue_p99.as_secs_f64() * 1e3, tcp.queue.delay_p99_ms);
        println!("  {:<22} {ours:>8.1} {theirs:>8.1}  ms", "queue's delay, p99");
    }
    Ok(())
}
