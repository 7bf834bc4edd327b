//! A link as it is, in a few lines that are drawn anew: rate, queue delays, marks and drops, each with how it went.

use std::cell::RefCell;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::time::Instant;

use rustix::termios::{Winsize, tcgetwinsize, tcsetwinsize};

use super::LOOK;
use super::document::{Delay, Document, Way};
use super::live::Live;
use crate::history::{Row, Series};

/// Lines for each direction.
const LINES: usize = 3;

/// What happened between two looks at a direction, one after the other.
#[derive(Default)]
struct History {
    mbit: Series,
    marks: Series,
    drops: Series,
    /// The mean delay of each queue; none if nothing left.
    delays: Vec<(String, Series)>,
}

/// A link over time.
#[derive(Default)]
pub(crate) struct Display {
    last: Option<Document>,
    ways: [History; 2],
}

/// The delays that have lines: of the first bands of the bottleneck's queue, and of the other queues.
fn shown(way: &Way) -> impl Iterator<Item = &Delay> {
    way.queue_delay.iter().take(3).chain(way.other_queues.iter().map(|other| &other.delay))
}

impl History {
    fn add(&mut self, last: &Way, now: &Way, seconds: f64) {
        let per_second = |now: u64, last: u64| now.saturating_sub(last) as f64 / seconds;
        self.mbit.push(Some(per_second(now.left.bytes, last.left.bytes) * 8.0 / 1e6));
        self.marks.push(Some(per_second(now.marked, last.marked)));
        self.drops.push(Some(per_second(now.lost.queue, last.lost.queue)));
        let is_same =
            self.delays.iter().map(|(name, _)| name).eq(shown(now).map(|delay| &delay.name));
        if !is_same {
            let named = |name: &String| (name.clone(), Series::default());
            self.delays = shown(now).map(|delay| named(&delay.name)).collect();
        }
        for ((name, values), delay) in self.delays.iter_mut().zip(shown(now)) {
            let before = shown(last).find(|delay| delay.name == *name);
            // A queue that was replaced begins again.
            let before = before.filter(|before| before.packets <= delay.packets);
            let (packets, sum_ms) =
                before.map_or((0, 0.0), |before| (before.packets, before.sum_ms));
            let count = delay.packets - packets;
            let mean = (delay.sum_ms - sum_ms) / count as f64;
            values.push((count > 0).then(|| mean.max(0.0)));
        }
    }
}

impl Display {
    /// Takes another look into account.
    pub(crate) fn add(&mut self, document: Document) {
        if let Some(last) = &self.last {
            let seconds = document.seconds - last.seconds;
            if seconds <= 0.0 {
                return;
            }
            let [down, up] = &mut self.ways;
            down.add(&last.down, &document.down, seconds);
            up.add(&last.up, &document.up, seconds);
        }
        self.last = Some(document);
    }

    pub(crate) fn last(&self) -> Option<&Document> {
        self.last.as_ref()
    }

    /// Lines of at most so many columns.
    pub(crate) fn lines(&self, columns: usize) -> Vec<String> {
        let Some(document) = &self.last else { return Vec::new() };
        let both = [("down", &document.down), ("up", &document.up)];
        let mut lines = Vec::new();
        for ((name, way), history) in both.into_iter().zip(&self.ways) {
            let rate = way.rate.as_deref().unwrap_or("no rate");
            let qdisc = way.qdisc.as_deref().unwrap_or("no queue");
            lines.push(format!("{name}: {rate}, {} ms, {qdisc}", way.delay_ms));
            let mut row = Row::of(columns);
            row.add("rate", "Mbit/s", &history.mbit);
            for (name, values) in &history.delays {
                row.add(&format!("delay {name}"), "ms", values);
            }
            row.add("marks", "/s", &history.marks);
            row.add("drops", "/s", &history.drops);
            lines.extend(row.lines());
        }
        for reason in &document.why_not {
            lines.push(format!("not valid: {reason}"));
        }
        lines.into_iter().map(|line| line.chars().take(columns).collect()).collect()
    }
}

/// The display below what a command prints: the last lines of the terminal, which do not scroll.
pub(crate) struct Below {
    state: RefCell<(Display, Instant, usize)>,
}

impl Below {
    /// Takes the room for it, if standard error is a terminal that is high enough.
    pub(crate) fn begin(live: &Arc<Live>) -> Option<Self> {
        let mut display = Display::default();
        display.add(live.document().ok()?);
        if !io::stderr().is_terminal() {
            crate::cli::note(
                "--watch: standard error is no terminal; `dualq shell watch` shows the link elsewhere",
            );
            return None;
        }
        let below = Self { state: RefCell::new((display, Instant::now(), 0)) };
        below.draw(live);
        Some(below)
    }

    /// Draws it anew, if it is time.
    pub(crate) fn draw(&self, live: &Live) {
        let mut state = self.state.borrow_mut();
        let (display, last, taken) = &mut *state;
        if *taken > 0 && last.elapsed() < LOOK {
            return;
        }
        *last = Instant::now();
        let Ok(document) = live.document() else { return };
        display.add(document);
        let Ok(size) = tcgetwinsize(io::stderr()) else { return };
        let lines = display.lines(size.ws_col.into());
        let rows = usize::from(size.ws_row) + *taken;
        let height = lines.len().max(*taken).max(2 * (LINES + 1));
        if rows < height + 4 {
            return;
        }
        let mut text = String::new();
        if height != *taken {
            // What stands there scrolls away, and the command is told that the terminal is smaller.
            text += &"\n".repeat(height - *taken);
            text += &format!("\x1b[{}A", height - *taken);
            let smaller = Winsize { ws_row: (rows - height) as u16, ..size };
            let _ = tcsetwinsize(io::stderr(), smaller);
            *taken = height;
        }
        // The cursor's place, the part that scrolls, and back: by what VT100 and all since have.
        text += &format!("\x1b7\x1b[1;{}r", rows - height);
        for at in 0..height {
            let line = lines.get(at).map_or("", String::as_str);
            text += &format!("\x1b[{};1H\x1b[2K{line}", rows - height + 1 + at);
        }
        text += "\x1b8";
        let _ = io::stderr().write_all(text.as_bytes());
    }
}

impl Drop for Below {
    fn drop(&mut self) {
        let (_, _, taken) = *self.state.borrow();
        let Ok(size) = tcgetwinsize(io::stderr()) else { return };
        if taken == 0 {
            return;
        }
        let rows = usize::from(size.ws_row) + taken;
        let _ = tcsetwinsize(io::stderr(), Winsize { ws_row: rows as u16, ..size });
        let _ =
            write!(io::stderr(), "\x1b7\x1b[r\x1b8\x1b7\x1b[{};1H\x1b[J\x1b8", rows - taken + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::super::document::Amount;
    use super::*;

    fn document(seconds: f64, bytes: u64, packets: u64, mean_ms: f64) -> Document {
        let sum_ms = packets as f64 * mean_ms;
        let delay = Delay { name: "L".to_owned(), packets, sum_ms, ..Delay::default() };
        let down = Way {
            rate: Some("8Mbit".to_owned()),
            left: Amount { packets, bytes },
            queue_delay: vec![delay],
            ..Way::default()
        };
        Document {
            program: String::new(),
            command: String::new(),
            seconds,
            base_rtt_ms: 0.0,
            down,
            up: Way::default(),
            valid: true,
            why_not: Vec::new(),
        }
    }

    #[test]
    fn what_is_shown_is_of_the_time_between_two_looks() {
        let mut display = Display::default();
        display.add(document(1.0, 0, 0, 0.0));
        display.add(document(1.5, 250_000, 100, 2.0));
        // 100 packets of 2 ms, and as many of 4 ms.
        display.add(document(2.0, 750_000, 200, 3.0));
        let lines = display.lines(100);
        assert!(lines[0].starts_with("down: 8Mbit"), "{lines:?}");
        assert!(lines[1].contains("8.00 Mbit/s") && lines[1].contains("4.00 ms"), "{lines:?}");
        assert!(lines.iter().all(|line| line.chars().count() <= 100), "{lines:?}");
        // Nothing left meanwhile.
        display.add(document(2.5, 750_000, 200, 3.0));
        assert!(display.lines(100)[1].contains("- ms"));
        // The queue was replaced.
        display.add(document(3.0, 750_000, 10, 7.0));
        assert!(display.lines(100)[1].contains("7.00 ms"));
    }
}
