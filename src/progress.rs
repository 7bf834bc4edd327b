//! A progress bar for what takes longer than a second.

use std::io::{self, Read};
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
    done: AtomicU64,
    started: Instant,
    bar: std::sync::OnceLock<ProgressBar>,
    wanted: bool,
}

impl Steps {
    pub(crate) fn of(total: u64, wanted: bool) -> Self {
        let (done, started) = (AtomicU64::new(0), Instant::now());
        Self { total, done, started, bar: std::sync::OnceLock::new(), wanted }
    }

    /// One more is done.
    pub(crate) fn done(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if !self.wanted || self.started.elapsed() < PATIENCE {
            return;
        }
        let template = "{bar:30} {pos} of {len} runs, {eta} left";
        let bar = self.bar.get_or_init(|| ProgressBar::new(self.total).with_style(style(template)));
        bar.set_position(done);
    }

    /// Takes the bar off the screen.
    pub(crate) fn clear(&self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}
