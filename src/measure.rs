//! `dualq measure`: from a host's name to what its path is like under load.

mod scenario;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dualq_measure::{
    Direction, Family, Far, MeasureError, Measurement, Options, Progress, Token, Url,
};
use dualq_report::measured;
use dualq_units::{Bytes, Rate, plain, tc_time};

use crate::cli::measure::{MeasureArgs, Way};
use crate::cli::{self, Failure, note_units};
use crate::input;
use crate::output::{Named, keep_apart, print, text_width};
use crate::progress::Stages;
use crate::report;
use crate::run::PROGRAM;

/// Shorter or longer would only be mistakes.
const TIMES: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(2)..=Duration::from_secs(3600);

/// Where a stock iperf3 server listens.
const IPERF3_PORT: u16 = 5201;

pub(crate) fn run(args: &MeasureArgs) -> Result<(), Failure> {
    let options = options(args)?;
    let read: Vec<_> = args.token_file.iter().map(|path| ("the token", path.as_path())).collect();
    let written = [
        ("--report", args.report.as_ref()),
        ("--flent", args.flent.as_ref()),
        ("--scenario", args.scenario.as_ref()),
    ];
    keep_apart(&read, &written)?;
    let is_stdout = |path: &PathBuf| path == Path::new("-");
    if let Some((option, _)) = written.iter().find(|(_, path)| path.is_some_and(is_stdout)) {
        let message = "standard output is taken by the figures: give a file";
        return Err(Failure::Usage(format!("{option} -: {message}")));
    }
    let open = |path: &Option<PathBuf>| path.as_deref().map(Named::open).transpose();
    let [page, flent, scenario] = [open(&args.report)?, open(&args.flent)?, open(&args.scenario)?];
    note_units(&args.rate, [("--max-time", &args.max_time)]);
    let mut stages = Stages::new(!args.no_progress);
    let mut stage = None;
    let mut show = |progress: &Progress| {
        if stage != Some(progress.stage) {
            stage = Some(progress.stage);
            if !args.no_progress {
                stages.step(&format!("{} of {}", progress.stage.name(), options.host));
            }
        }
        stages.progress(progress.share, &figures(progress));
    };
    let outcome = dualq_measure::measure(&options, &mut show);
    stages.clear();
    let measurement = outcome?;
    let text = if args.json {
        report::measure::json(&measurement)
    } else {
        report::measure::text(&measurement, text_width())
    };
    print(&mut io::stdout(), &text)?;
    if let Some(file) = page {
        file.write(measured::page(&measurement, PROGRAM).as_bytes())?;
    }
    if let Some(file) = flent {
        let bytes = measured::flent(&measurement);
        file.write(&bytes.map_err(|error| Failure::Run(format!("--flent: {error}")))?)?;
    }
    if let Some(file) = scenario {
        file.write(scenario::write(&measurement)?.as_bytes())?;
    }
    Ok(())
}

/// The figures so far.
fn figures(progress: &Progress) -> String {
    let figure = |value: Option<f64>, name: &str, unit: &str| {
        value.map(|value| format!("{name} {value:.1} {unit}"))
    };
    let parts = [
        figure(progress.down_mbit, "down", "Mbits/sec"),
        figure(progress.up_mbit, "up", "Mbits/sec"),
        figure(progress.rtt_ms, "RTT", "ms"),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn options(args: &MeasureArgs) -> Result<Options, Failure> {
    let host = args.host.as_deref().map(cli::host).transpose()?;
    let rate = args.rate.as_deref().map(|word| read_rate("--rate", word)).transpose()?;
    let max_time = read_time("--max-time", &args.max_time)?;
    let max_bytes = args.max_bytes.as_deref().map(read_bytes).transpose()?;
    // What is wrong with the arguments is told before any file is read.
    let ways = args.direction.iter().map(|way| Direction::from(*way)).collect::<Vec<_>>();
    let has = |way| ways.contains(&way) || ways.contains(&Direction::Both);
    if args.scenario.is_some()
        && !ways.is_empty()
        && !(has(Direction::Download) && has(Direction::Upload))
    {
        let message =
            "--scenario: a scenario has both ways, and --direction measures one; leave it out";
        return Err(Failure::Usage(message.to_owned()));
    }
    let (host, port, far) = far(args, host)?;
    let mut directions = ways;
    directions.dedup();
    if directions.is_empty() {
        directions = match far {
            Far::Http { .. } => vec![Direction::Download],
            _ => vec![Direction::Download, Direction::Upload, Direction::Both],
        };
    }
    Ok(Options {
        host,
        port,
        family: match (args.ipv4, args.ipv6) {
            (true, _) => Some(Family::V4),
            (_, true) => Some(Family::V6),
            _ => None,
        },
        far,
        directions,
        streams: args.streams,
        cc: args.cc.clone(),
        rate,
        max_time,
        max_bytes,
    })
}

/// The host, its port, and what answers there.
fn far(args: &MeasureArgs, host: Option<&str>) -> Result<(String, u16, Far), Failure> {
    if let Some(text) = &args.http {
        let url: Url = text.parse().map_err(|error| Failure::Usage(format!("--http: {error}")))?;
        return Ok((url.host, url.port, Far::Http { path: url.path }));
    }
    let host = host.expect("clap asks for it").to_owned();
    if args.iperf3 {
        return Ok((host, args.port.unwrap_or(IPERF3_PORT), Far::Iperf3));
    }
    let file = args.token_file.as_deref().expect("clap asks for it");
    Ok((host, args.port.unwrap_or(dualq_measure::protocol::PORT), Far::Dualq(token(file)?)))
}

fn read_bytes(word: &str) -> Result<Bytes, Failure> {
    match word.parse() {
        Ok(Bytes(0)) => {
            Err(Failure::Usage("--max-bytes: give more than nothing, such as 500mb".to_owned()))
        }
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(Failure::Usage(format!("--max-bytes: {error}"))),
    }
}

/// What was measured before: the document of `--json`.
pub(crate) fn stored(path: &Path) -> Result<Measurement, Failure> {
    let name = path.display();
    let cannot =
        |error: &io::Error| Failure::Run(format!("--from: cannot read {name}: {}", plain(error)));
    let text = input::text(path, input::LONGEST).map_err(|error| cannot(&error))?;
    if text.trim().is_empty() {
        return Err(Failure::Run(format!(
            "--from {name}: it is empty; `dualq measure --json` prints what it is to have"
        )));
    }
    let measured: Measurement = serde_json::from_str(&text).map_err(|error| {
        Failure::Run(format!("--from {name}: this is no document of dualq measure --json: {error}"))
    })?;
    match measured.measurement {
        Measurement::VERSION => Ok(measured),
        version => Err(Failure::Run(format!(
            "--from {name}: its form has version {version}, known is {}",
            Measurement::VERSION
        ))),
    }
}

/// A line of 64 digits, and room for blanks around it.
const LONGEST_TOKEN: u64 = 4096;

/// The token in a file.
pub(crate) fn token(path: &Path) -> Result<Token, Failure> {
    let name = path.display();
    let text = input::text(path, LONGEST_TOKEN).map_err(|error| {
        Failure::Run(format!("--token-file: cannot read {name}: {}", plain(&error)))
    })?;
    text.parse().map_err(|error| Failure::Run(format!("--token-file {name}: {error}")))
}

/// A rate that something can be sent at.
pub(crate) fn read_rate(option: &str, word: &str) -> Result<Rate, Failure> {
    let rate: Rate = word.parse().map_err(|error| Failure::Usage(format!("{option}: {error}")))?;
    if rate.as_bits_per_second() < 8_000 {
        let message =
            format!("{option}: {word:?} is less than 8kbit; rates have units, such as 48mbit");
        return Err(Failure::Usage(message));
    }
    Ok(rate)
}

/// A time that measuring can take.
pub(crate) fn read_time(option: &str, word: &str) -> Result<Duration, Failure> {
    let time =
        tc_time::parse(word).map_err(|error| Failure::Usage(format!("{option}: {error}")))?;
    if !TIMES.contains(&time) {
        return Err(Failure::Usage(format!("{option} {word}: give 2s to 3600s, such as 60s")));
    }
    Ok(time)
}

impl From<Way> for Direction {
    fn from(way: Way) -> Self {
        match way {
            Way::Download => Self::Download,
            Way::Upload => Self::Upload,
            Way::Both => Self::Both,
        }
    }
}

impl From<MeasureError> for Failure {
    fn from(error: MeasureError) -> Self {
        Self::Run(error.to_string())
    }
}
