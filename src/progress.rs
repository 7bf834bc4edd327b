//! A progress bar for what takes longer than a second.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Read, Write as _};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dualq_report::words::one_line;
use dualq_worlds::Progress as Played;
use indicatif::{ProgressBar, ProgressStyle};

use crate::interrupt;
use crate::output::columns;

const PATIENCE: Duration = Duration::from_secs(1);

/// Shows how much of an input has been read. Draws nothing within the first second, or if standard error is no terminal.
pub(crate) struct Progress {
    read: Arc<AtomicU64>,
    total: Option<u64>,
    started: Instant,
    bar: Option<ProgressBar>,
    wanted: bool,
}

/// An input that counts its bytes as they are read.
pub(crate) struct Counted<R> {
    inner: R,
    read: Arc<AtomicU64>,
}

impl Progress {
    /// Of `inner`, which has `total` bytes if that is known.
    pub(crate) fn of<R: Read>(inner: R, total: Option<u64>, wanted: bool) -> (Self, Counted<R>) {
        let read = Arc::new(AtomicU64::new(0));
        let counted = Counted { inner, read: Arc::clone(&read) };
        (Self { read, total, started: Instant::now(), bar: None, wanted }, counted)
    }

    /// To be called now and then.
    pub(crate) fn tick(&mut self, packets: u64) {
        if !self.wanted || self.started.elapsed() < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| match self.total {
            Some(total) => {
                let template = "{bar:30} {percent:>3}% of {total_bytes}, {msg}, {eta} left";
                ProgressBar::new(total).with_style(style(template))
            }
            None => ProgressBar::new_spinner().with_style(style("{spinner} {bytes}, {msg}")),
        });
        bar.set_position(self.read.load(Ordering::Relaxed));
        bar.set_message(format!("{packets} packets"));
    }

    /// Takes the bar off the screen.
    pub(crate) fn clear(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is right")
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// Shows how much of a work is done, in whatever order and by whichever thread.
pub(crate) struct Steps {
    total: AtomicU64,
    /// What is counted: `runs`, or `s` of the scenarios' time.
    unit: &'static str,
    /// How many steps one of the unit is.
    grain: u64,
    done: AtomicU64,
    started: Instant,
    bar: std::sync::OnceLock<ProgressBar>,
    wanted: bool,
}

/// Some of the steps, which one thread takes.
pub(crate) struct Part<'a> {
    steps: &'a Steps,
    length: u64,
    done: u64,
}

impl Steps {
    pub(crate) fn of(total: u64, unit: &'static str, wanted: bool) -> Self {
        Self {
            total: AtomicU64::new(total),
            unit,
            grain: 1,
            done: AtomicU64::new(0),
            started: Instant::now(),
            bar: std::sync::OnceLock::new(),
            wanted,
        }
    }

    /// Simulated time; a step is a nanosecond of it.
    pub(crate) fn of_time(total: Duration, wanted: bool) -> Self {
        Self { grain: 1_000_000_000, ..Self::of(nanos(total), "s", wanted) }
    }

    /// Steps of simulated time, taken one after the other; the last of them when the part is dropped.
    pub(crate) fn part_of_time(&self, length: Duration) -> Part<'_> {
        Part { steps: self, length: nanos(length), done: 0 }
    }

    /// So much more of a list of runs is done: of their time, or of their number, whichever is counted. An interrupt ends it.
    pub(crate) fn watch(&self, more: Played) -> ControlFlow<()> {
        match more {
            Played::Time(time) if self.grain > 1 => self.add(nanos(time)),
            Played::Run if self.grain == 1 => self.add(1),
            Played::Time(_) | Played::Run => {}
        }
        if interrupt::is_there() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// There is so much more to do than was known before.
    pub(crate) fn add_time(&self, more: Duration) {
        let total = self.total.fetch_add(nanos(more), Ordering::Relaxed) + nanos(more);
        if let Some(bar) = self.bar.get() {
            bar.set_length(total);
        }
    }

    fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    fn add(&self, steps: u64) {
        let done = self.done.fetch_add(steps, Ordering::Relaxed) + steps;
        let elapsed = self.started.elapsed();
        if !self.wanted || elapsed < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_init(|| {
            let template = bar_template(columns(&io::stderr()));
            ProgressBar::new(self.total()).with_style(style(&template))
        });
        bar.set_message(self.message(done, elapsed));
        bar.set_position(done);
    }

    /// How far it is, and how long it may still take at the pace so far.
    fn message(&self, done: u64, elapsed: Duration) -> String {
        let (done_units, all, unit) = (done / self.grain, self.total() / self.grain, self.unit);
        let mut message = format!("{done_units} of {all} {unit}");
        if done > 0 {
            let rest = self.total().saturating_sub(done) as f64 / done as f64;
            let _ = write!(message, ", {} left", roughly(elapsed.as_secs_f64() * rest));
        }
        message
    }

    /// Takes the bar off the screen.
    pub(crate) fn clear(&self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A time in the largest unit of which there are at least two, rounded up: what is left is never nothing.
fn roughly(seconds: f64) -> String {
    match seconds {
        s if s > 48.0 * 3600.0 => format!("{:.0} days", (s / 86_400.0).ceil()),
        s if s > 120.0 * 60.0 => format!("{:.0} h", (s / 3600.0).ceil()),
        s if s > 120.0 => format!("{:.0} min", (s / 60.0).ceil()),
        s => format!("{:.0} s", s.ceil().max(1.0)),
    }
}

/// A bar as long as the terminal has room for beside the words; none if that is next to nothing.
fn bar_template(columns: Option<usize>) -> String {
    const WORDS: usize = 44;
    match columns.unwrap_or(80).saturating_sub(WORDS).min(30) {
        0..5 => "{msg}".to_owned(),
        bar => format!("{{bar:{bar}}} {{percent:>3}}%, {{msg}}"),
    }
}

impl Part<'_> {
    /// So many of the part's steps are done.
    fn reach(&mut self, steps: u64) {
        let steps = steps.min(self.length);
        if steps > self.done {
            self.steps.add(steps - self.done);
            self.done = steps;
        }
    }

    /// The work has come to this time.
    pub(crate) fn reach_time(&mut self, time: Duration) {
        self.reach(nanos(time));
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        self.reach(self.length);
    }
}

/// Says which step of a long work is under way, a line each, and shows how far it is if standard error is a terminal.
pub(crate) struct Stages {
    bar: Option<ProgressBar>,
    wanted: bool,
}

impl Stages {
    pub(crate) fn new(wanted: bool) -> Self {
        Self { bar: None, wanted: wanted && io::stderr().is_terminal() }
    }

    /// The next step begins.
    pub(crate) fn step(&mut self, text: &str) {
        self.clear();
        // Not worth failing for.
        let _ = writeln!(io::stderr(), "{}", one_line(text));
        if self.wanted {
            let spinner = ProgressBar::new_spinner().with_style(style("{spinner} {elapsed}"));
            spinner.enable_steady_tick(Duration::from_millis(100));
            self.bar = Some(spinner);
        }
    }

    /// How much of the step may be done, of 1, and what is at hand.
    pub(crate) fn progress(&mut self, share: f64, what: &str) {
        let Some(bar) = &self.bar else { return };
        if bar.length().is_none() {
            bar.set_length(100);
            bar.set_style(style("{bar:30} {percent:>3}%, {elapsed}, {wide_msg}"));
        }
        bar.set_position((share * 100.0) as u64);
        bar.set_message(one_line(what));
    }

    /// Prints something while there may be a bar on the screen.
    pub(crate) fn aside(&self, print: impl FnOnce()) {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// Takes the bar off the screen.
    pub(crate) fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// Says what is under way, if it takes long and nobody knows how long.
pub(crate) struct Spinner {
    started: Instant,
    bar: Option<ProgressBar>,
    wanted: bool,
}

impl Spinner {
    pub(crate) fn new(wanted: bool) -> Self {
        Self { started: Instant::now(), bar: None, wanted }
    }

    /// To be called whenever something else is under way. Draws nothing within the first second.
    pub(crate) fn show(&mut self, what: impl FnOnce() -> String) {
        if !self.wanted || self.started.elapsed() < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let spinner =
                ProgressBar::new_spinner().with_style(style("{spinner} {elapsed}, {wide_msg}"));
            spinner.enable_steady_tick(Duration::from_millis(100));
            spinner
        });
        bar.set_message(one_line(&what()));
    }

    /// Takes it off the screen.
    pub(crate) fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_told_by_the_pace_so_far_and_is_never_nothing() {
        let steps = Steps::of_time(Duration::from_secs(40), false);
        let message = |done, elapsed| steps.message(done, Duration::from_secs(elapsed));
        assert_eq!(message(0, 3), "0 of 40 s");
        assert_eq!(message(1_000_000_000, 2), "1 of 40 s, 78 s left");
        assert_eq!(message(1_000_000_000, 20), "1 of 40 s, 13 min left");
        assert_eq!(message(39_999_000_000, 1), "39 of 40 s, 1 s left");
        assert_eq!(
            Steps::of(500, "runs", false).message(100, Duration::from_secs(3600)),
            "100 of 500 runs, 4 h left"
        );
    }

    /// Within one run, too: a part moves as its time goes on, and is whole when it ends early.
    #[test]
    fn a_single_run_moves_the_bar() {
        let steps = Steps::of_time(Duration::from_secs(80), false);
        let mut part = steps.part_of_time(Duration::from_secs(40));
        part.reach_time(Duration::from_millis(2_500));
        part.reach_time(Duration::from_millis(1_000));
        assert_eq!(steps.done.load(Ordering::Relaxed), 2_500_000_000);
        drop(part);
        assert_eq!(steps.done.load(Ordering::Relaxed), 40_000_000_000);
    }

    #[test]
    fn a_bar_fits_the_terminal() {
        assert!(bar_template(Some(200)).contains("{bar:30}"));
        assert!(bar_template(Some(60)).contains("{bar:16}"));
        assert_eq!(bar_template(Some(20)), "{msg}");
    }
}
