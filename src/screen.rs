//! A terminal's other page, which is drawn anew again and again, with keys that come at once.

use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::os::fd::BorrowedFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use crate::cli::Failure;
use crate::output::plain;

/// Keys that end what is shown.
pub(crate) const CTRL_C: u8 = 3;
pub(crate) const CTRL_D: u8 = 4;

/// How much there is room for.
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

/// The terminal; it is as before when this goes.
pub(crate) struct Screen(Termios);

impl Screen {
    /// Whether there is one, with keys.
    pub(crate) fn is_there() -> bool {
        io::stdout().is_terminal() && io::stdin().is_terminal()
    }

    pub(crate) fn take() -> Result<Self, Failure> {
        let failed = |error: rustix::io::Errno| {
            Failure::Run(format!("cannot use the terminal: {}", plain(&error.into())))
        };
        let before = tcgetattr(io::stdin()).map_err(failed)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw).map_err(failed)?;
        let _ = io::stdout().write_all(b"\x1b[?1049h\x1b[?25l");
        Ok(Self(before))
    }

    pub(crate) fn size() -> Size {
        let size = tcgetwinsize(io::stdout());
        let known = |number: u16| (number > 0).then_some(usize::from(number));
        let columns = size.as_ref().ok().and_then(|size| known(size.ws_col)).unwrap_or(80);
        let rows = size.ok().and_then(|size| known(size.ws_row)).unwrap_or(24);
        Size { columns, rows }
    }

    /// Shows these lines and nothing else, as far as there is room.
    pub(crate) fn draw(&self, lines: &[String]) {
        let Size { columns, rows } = Self::size();
        let shown = lines.iter().take(rows).map(|line| {
            let line = dualq_report::words::one_line(line);
            // It is cleared before: behind a full line stands the cursor on its last column.
            format!("\x1b[2K{}", line.chars().take(columns).collect::<String>())
        });
        let shown: Vec<String> = shown.collect();
        let rest = if shown.len() < rows { "\r\n\x1b[J" } else { "" };
        let text = format!("\x1b[H{}{rest}", shown.join("\r\n"));
        let mut stdout = io::stdout();
        let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    }

    /// The keys that are pressed until then, as soon as there are any, or none; `None` if there can be no more. `other` ends the waiting too.
    pub(crate) fn keys(&self, until: Instant, other: Option<BorrowedFd<'_>>) -> Option<Vec<u8>> {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).ok();
        let stdin = io::stdin();
        let mut waited: Vec<PollFd<'_>> = vec![PollFd::new(&stdin, PollFlags::IN)];
        waited.extend(other.map(|other| PollFd::from_borrowed_fd(other, PollFlags::IN)));
        let _ = poll(&mut waited, timeout.as_ref());
        if waited[0].revents().is_empty() {
            return Some(Vec::new());
        }
        let mut keys = [0; 64];
        let read = stdin.lock().read(&mut keys).unwrap_or(0);
        (read > 0).then(|| keys[..read].to_vec())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let mut stdout = io::stdout();
        let _ = stdout.write_all(b"\x1b[?25h\x1b[?1049l").and_then(|()| stdout.flush());
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}
