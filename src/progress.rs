//! A progress bar for what takes longer than a second.

use std::io::{self, IsTerminal as _, Read, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

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

/// Shows how many of a number of steps are done, in whatever order and by whichever thread.
pub(crate) struct Steps {
    total: u64,
    /// What a step is: `runs`, or `s` of the scenarios' time.
    unit: &'static str,
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
        let (done, started) = (AtomicU64::new(0), Instant::now());
        Self { total, unit, done, started, bar: std::sync::OnceLock::new(), wanted }
    }

    /// `length` steps, taken one after the other; the last of them when the part is dropped.
    pub(crate) const fn part(&self, length: u64) -> Part<'_> {
        Part { steps: self, length, done: 0 }
    }

    fn add(&self, steps: u64) {
        let done = self.done.fetch_add(steps, Ordering::Relaxed) + steps;
        if !self.wanted || self.started.elapsed() < PATIENCE {
            return;
        }
        let template = format!("{{bar:30}} {{pos}} of {{len}} {}, {{eta}} left", self.unit);
        let bar =
            self.bar.get_or_init(|| ProgressBar::new(self.total).with_style(style(&template)));
        bar.set_position(done);
    }

    /// Takes the bar off the screen.
    pub(crate) fn clear(&self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}

impl Part<'_> {
    /// So many of the part's steps are done.
    pub(crate) fn reach(&mut self, steps: u64) {
        let steps = steps.min(self.length);
        if steps > self.done {
            self.steps.add(steps - self.done);
            self.done = steps;
        }
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
        let _ = writeln!(io::stderr(), "{text}");
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
        bar.set_message(what.to_owned());
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
        bar.set_message(what());
    }

    /// Takes it off the screen.
    pub(crate) fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
