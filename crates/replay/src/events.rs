//! What happened to each packet, line by line: the format of the reference outcomes.

use std::io::{self, Write};
use std::num::NonZeroU64;

use dualpi2::{DropPoint, EcnMask, Overload, StepThreshold};
use dualq_qdisc::show::{OwnStats, Stats};
use dualq_qdisc::{Config, Departure, Discipline, Dropped, Ecn, Qdisc, XorShift64};
use dualq_units::{Instant, Rate};

use crate::link::Point;
use crate::outcome::BandOutcome;
use crate::packet::Tracked;

/// Writes `t_ns,packet,event` lines: `ID.SEGMENT,out` or `out_ce` for packets that left, without or with CE on them,
/// `drop_REASON_PLACE` for those that did not, and `timer` after each update of a probability. Lines that begin with `#`
/// hold the parameters before and the counters after, and stand for the updates of a queue that was empty for long.
pub struct EventLog<W: Write> {
    writer: io::BufWriter<W>,
    failed: Option<io::Error>,
}

impl<W: Write> EventLog<W> {
    /// A log that is written to `writer`.
    pub fn new(writer: W) -> Self {
        Self { writer: io::BufWriter::with_capacity(1 << 16, writer), failed: None }
    }

    fn note(&mut self, result: io::Result<()>) {
        if let (Err(error), None) = (result, &self.failed) {
            self.failed = Some(error);
        }
    }

    pub(crate) const fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    pub(crate) fn begin(&mut self, config: &Config, rate: Rate, seed: NonZeroU64, mtu: u32) {
        let result = write_config(&mut self.writer, config).and_then(|()| {
            let rate = rate.as_bits_per_second();
            writeln!(self.writer, "# rate_bps={rate} seed={seed} mtu={mtu}\nt_ns,packet,event")
        });
        self.note(result);
    }

    pub(crate) fn departed(&mut self, now: Instant, departure: &Departure<Tracked>) {
        let Tracked { id, segment, ecn, .. } = departure.packet;
        let event = if ecn == Ecn::Ce { "out_ce" } else { "out" };
        let result = writeln!(self.writer, "{},{id}.{segment},{event}", now.as_nanos());
        self.note(result);
    }

    pub(crate) fn dropped(&mut self, now: Instant, point: Point, lost: &Dropped<Tracked>) {
        let reason = lost.reason.name();
        let place = match point {
            Point::Enqueue => "enqueue",
            Point::Dequeue => "dequeue",
        };
        let Tracked { id, segment, .. } = lost.packet;
        let now = now.as_nanos();
        let result = writeln!(self.writer, "{now},{id}.{segment},drop_{reason}_{place}");
        self.note(result);
    }

    pub(crate) fn timer(&mut self, now: Instant, discipline: &Discipline<Tracked, XorShift64>) {
        let OwnStats::Dualpi2(stats) = discipline.stats(now).own else { return };
        let result = writeln!(
            self.writer,
            "{},timer,prob={} credit={} delay_c_us={} delay_l_us={}",
            now.as_nanos(),
            stats.probability,
            stats.credit,
            stats.classic_delay.as_micros(),
            stats.low_latency_delay.as_micros()
        );
        self.note(result);
    }

    pub(crate) fn idle(
        &mut self,
        from: Instant,
        until: Instant,
        discipline: &Discipline<Tracked, XorShift64>,
    ) {
        if matches!(discipline, Discipline::Dualpi2(_)) {
            let (from, until) = (from.as_nanos(), until.as_nanos());
            let result = writeln!(self.writer, "# idle: no timer lines from {from} to {until}");
            self.note(result);
        }
    }

    /// Writes the counters and the last of the buffer.
    pub(crate) fn end(mut self, stats: &Stats, total: &BandOutcome) -> io::Result<W> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        write!(self.writer, "# stats ")?;
        if let OwnStats::Dualpi2(own) = &stats.own {
            write!(
                self.writer,
                "prob={} packets_in_c={} packets_in_l={} maxq={} ecn_mark={} step_marks={} credit={} \
                 memory_used={} max_memory_used={} memory_limit={} ",
                own.probability,
                own.packets_in_classic,
                own.packets_in_low_latency,
                own.max_queue_length,
                own.ecn_marks,
                own.step_marks,
                own.credit,
                own.memory_used,
                own.max_memory_used,
                own.memory_limit
            )?;
        }
        let counters = &stats.counters;
        writeln!(
            self.writer,
            "drops={} overlimits={} out={} ce={} sent_packets={} sent_bytes={} backlog={}",
            counters.drops,
            counters.overlimits,
            total.packets_out,
            total.ce_out,
            counters.sent_packets,
            counters.sent_bytes,
            counters.backlog_bytes
        )?;
        self.writer.into_inner().map_err(io::IntoInnerError::into_error)
    }
}

/// The parameters, in the units in which they go over netlink.
fn write_config(writer: &mut impl Write, config: &Config) -> io::Result<()> {
    let mut line = |key: &str, value: u128| writeln!(writer, "# config {key}={value}");
    let parameters = match config {
        Config::Dualpi2(parameters) => parameters,
        Config::Pfifo(fifo) => return line("limit", fifo.limit.into()),
        Config::Bfifo(fifo) => return line("limit", fifo.limit.0.into()),
        other => return writeln!(writer, "# config {} {other}", other.kind()),
    };
    line("limit", parameters.limit.into())?;
    line("memlimit", parameters.memory_limit.into())?;
    line("target_us", parameters.target.as_micros())?;
    line("tupdate_us", parameters.tupdate.as_micros())?;
    line("alpha", parameters.alpha.as_256ths().into())?;
    line("beta", parameters.beta.as_256ths().into())?;
    match parameters.step_threshold {
        StepThreshold::Time(time) => line("step_us", time.as_micros())?,
        StepThreshold::Packets(packets) => line("step_pkts", packets.into())?,
    }
    line("min_qlen_step", parameters.min_qlen_step.into())?;
    line("coupling_factor", parameters.coupling_factor.into())?;
    line("drop_overload", (parameters.overload == Overload::Drop).into())?;
    line("drop_early", (parameters.drop_point == DropPoint::Enqueue).into())?;
    line("classic_protection", parameters.classic_protection.into())?;
    line("ecn_mask", if parameters.ecn_mask == EcnMask::L4s { 1 } else { 3 })?;
    line("split_gso", parameters.split_gso.into())
}
