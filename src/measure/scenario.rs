//! `--scenario`: the path that was measured, as a scenario that `dualq run` plays.

use std::fmt::Write as _;

use dualq_measure::{Direction, Larger, Load, Loaded, Measurement, PathMtu};
use dualq_scenario::{CongestionControl, Sweep};

use crate::cli::Failure;

/// A queue holds a few packets of full size at least.
const SMALLEST_QUEUE: f64 = 4.0 * 1514.0;
/// What scenarios have where they say nothing else.
const USUAL_MTU: u16 = 1500;
/// The share of round trips that are no longer than the queue makes them: of the longest, some wait for this host or for a retransmission.
const NEARLY_LONGEST: f64 = 0.95;

/// The text of its file.
pub(super) fn write(measured: &Measurement) -> Result<String, Failure> {
    let lacks = |what: &str| {
        Failure::Run(format!("--scenario: {what} was not measured, and a scenario has both ways"))
    };
    let of = |direction| measured.under(direction).or_else(|| measured.under(Direction::Both));
    let down_stage = of(Direction::Download).ok_or_else(|| lacks("the download"))?;
    let up_stage = of(Direction::Upload).ok_or_else(|| lacks("the upload"))?;
    let down = down_stage.down.as_ref().ok_or_else(|| lacks("the download"))?;
    let up = up_stage.up.as_ref().ok_or_else(|| lacks("the upload"))?;
    let base_ms = measured.base_rtt_ms().ok_or_else(|| lacks("a round trip"))?;
    // What a packet takes to be sent the scenario has of its own.
    let rtt_ms = measured.propagation_ms().unwrap_or(base_ms);
    let host = &measured.host;
    let mut text = format!(
        "# Made by dualq measure, of the path to {host}. Rates and the round trip are measured, headers of Ethernet included.\n\
         # Queues are inferred: a FIFO that holds what made round trips longer under load. One that drops or marks earlier looks like a\n\
         # short one. Try cures: dualq run FILE --qdisc fq_codel --qdisc dualpi2\n\
         name = \"measured\"\n\
         duration = \"30s\"\n\
         warmup = \"10s\"\n\n\
         [link]\n\
         rtt = \"{rtt_ms:.2}ms\"\n"
    );
    if let Some(bytes) = measured.mtu.and_then(unusual_mtu) {
        let _ = writeln!(text, "mtu = {bytes}");
    }
    side(&mut text, (down, down_stage), base_ms);
    if let Some(percent) = idle_loss_percent(measured, Direction::Download) {
        let _ = writeln!(text, "loss = \"{percent:.2}%\" # of datagrams without load");
    }
    text.push_str("\n[link.up]\n");
    side(&mut text, (up, up_stage), base_ms);
    if let Some(percent) = idle_loss_percent(measured, Direction::Upload) {
        let _ = writeln!(text, "loss = \"{percent:.2}%\"");
    }
    let cc = down.cc.as_deref().filter(|cc| cc.parse::<CongestionControl>().is_ok());
    let remark = match (&down.cc, cc) {
        (Some(theirs), None) => format!(" # the senders have {theirs}, which the model has not"),
        _ => String::new(),
    };
    let _ = write!(
        text,
        "\n[[flow]]\ncc = \"{}\"{remark}\ncount = {}\n\n[[probe]]\nkind = \"ssh\"\ninterval = \"100ms\"\n",
        cc.unwrap_or("cubic"),
        down.flow_goodput_mbit.len()
    );
    // It is to be played: what a path has that scenarios have not is told here, not there.
    Sweep::parse(&text).map_err(|error| {
        Failure::Run(format!("--scenario: no scenario is like this path: {error}"))
    })?;
    Ok(text)
}

/// The largest packets that both ways carry, if that is known and is not what scenarios have anyway.
fn unusual_mtu(mtu: PathMtu) -> Option<u16> {
    let ways = [mtu.up, mtu.down];
    let known = ways.iter().all(|way| way.larger != Larger::Unclear);
    let bytes = mtu.up.bytes.min(mtu.down.bytes);
    (known && bytes != USUAL_MTU).then_some(bytes)
}

/// A direction's rate and queue.
fn side(text: &mut String, (load, stage): (&Load, &Loaded), base_ms: f64) {
    let longest_ms = stage.path_rtt().or(load.srtt.as_ref()).map_or(base_ms, |rtt| {
        let mut times = rtt.times_ms();
        times.sort_unstable_by(f64::total_cmp);
        dualq_measure::figures::quantile(&times, NEARLY_LONGEST)
    });
    let waits_s = (longest_ms - base_ms).max(0.0) / 1e3;
    let bytes = (load.line_mbit * 1e6 / 8.0 * waits_s).max(SMALLEST_QUEUE).round();
    let _ = writeln!(text, "rate = \"{:.0}kbit\"", load.line_mbit * 1e3);
    let limit = match (load.retransmits, load.ramp_up.retransmits) {
        (Some(0), None | Some(0)) => " # at least: nothing was lost",
        _ => "",
    };
    let _ = writeln!(text, "qdisc = \"bfifo limit {bytes:.0}\"{limit}");
}

/// The share of datagrams that were lost one way without load, if it is more than one by chance.
fn idle_loss_percent(measured: &Measurement, direction: Direction) -> Option<f64> {
    let loss = measured.idle.loss.as_ref()?;
    let (lost, ratio) = match direction {
        Direction::Upload => (loss.up, loss.up_ratio()),
        _ => (loss.down, loss.down_ratio()),
    };
    (lost > 1).then_some(ratio * 100.0)
}
