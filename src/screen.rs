//! A terminal's other page, which is drawn anew again and again, with keys that come at once.

use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use dualq_units::plain;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use crate::cli::Failure;
use crate::output::is_dumb;

/// Keys that end what is shown.
pub(crate) const CTRL_C: u8 = 3;
pub(crate) const CTRL_D: u8 = 4;
pub(crate) const ESCAPE: u8 = 0x1b;

/// Longer a terminal does not wait within what one key sends; whoever presses Escape does before another key.
const WITHIN_A_KEY: Duration = Duration::from_millis(50);

/// How much there is room for.
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

/// The terminal; it is as before when this goes.
pub(crate) struct Screen(Termios);

impl Screen {
    /// Whether there is one, with keys and with more than lines.
    pub(crate) fn is_there() -> bool {
        io::stdout().is_terminal() && io::stdin().is_terminal() && !is_dumb()
    }

    pub(crate) fn take() -> Result<Self, Failure> {
        let failed = |error: rustix::io::Errno| {
            Failure::Run(format!("cannot use the terminal: {}", plain(&error)))
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
    /// Of keys that send more than a character, such as arrows, nothing is told.
    pub(crate) fn keys(&self, until: Instant, other: Option<BorrowedFd<'_>>) -> Option<Vec<u8>> {
        let stdin = io::stdin();
        let wait = |time: Duration, other: Option<BorrowedFd<'_>>| {
            let timeout = Timespec::try_from(time).ok();
            let mut waited: Vec<PollFd<'_>> = vec![PollFd::new(&stdin, PollFlags::IN)];
            waited.extend(other.map(|other| PollFd::from_borrowed_fd(other, PollFlags::IN)));
            let _ = poll(&mut waited, timeout.as_ref());
            !waited[0].revents().is_empty()
        };
        if !wait(until.saturating_duration_since(Instant::now()), other) {
            return Some(Vec::new());
        }
        let mut sent = Vec::new();
        loop {
            let mut part = [0; 64];
            // Not by way of its buffer, of which nobody who waits knows.
            let read = rustix::io::read(&stdin, &mut part).unwrap_or(0);
            sent.extend_from_slice(&part[..read]);
            let (keys, rest) = keys_of(&sent);
            if read == 0 {
                return (!sent.is_empty()).then_some(keys);
            }
            if rest.is_empty() {
                return Some(keys);
            }
            if !wait(WITHIN_A_KEY, None) {
                let last = (rest == [ESCAPE]).then_some(ESCAPE);
                return Some(keys.into_iter().chain(last).collect());
            }
        }
    }
}

/// The keys that send a character each, of all that a terminal sent, and what another one has sent so far.
fn keys_of(mut sent: &[u8]) -> (Vec<u8>, &[u8]) {
    let mut keys = Vec::new();
    while let Some(key) = sent.first() {
        match length_of_key(sent) {
            None => break,
            Some(1) => {
                keys.push(*key);
                sent = &sent[1..];
            }
            Some(length) => sent = &sent[length..],
        }
    }
    (keys, sent)
}

/// How many characters the first key has sent, if they are all there: sequences are those of ECMA-48 (CSI, SS3), or Escape and a character for a
/// key with Alt.
fn length_of_key(sent: &[u8]) -> Option<usize> {
    match sent {
        [ESCAPE] | [ESCAPE, b'O'] | [ESCAPE, b'[', b'['] => None,
        // F1 to F5 of Linux's console.
        [ESCAPE, b'[', b'[', ..] => Some(4),
        [ESCAPE, b'[', rest @ ..] => {
            let end = rest.iter().position(|byte| !(0x20..=0x3f).contains(byte))?;
            // A control character is a key of its own.
            Some(2 + end + usize::from(rest[end] >= 0x40))
        }
        [ESCAPE, b'O', ..] => Some(3),
        [ESCAPE, ESCAPE, ..] => Some(1),
        [ESCAPE, ..] => Some(2),
        _ => Some(1),
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let mut stdout = io::stdout();
        let _ = stdout.write_all(b"\x1b[?25h\x1b[?1049l").and_then(|()| stdout.flush());
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_key_sends_is_read_whole() {
        for (sent, keys, rest) in [
            (&b"q"[..], &b"q"[..], &b""[..]),
            (b"+[", b"+[", b""),
            // Arrows, with Ctrl too, in the other mode, and Delete.
            (b"\x1b[A\x1b[1;5D\x1bOBd\x1b[3~", b"d", b""),
            // F1 of the console, and Alt with q.
            (b"\x1b[[A\x1bq-", b"-", b""),
            // Not whole yet, which Escape alone may be.
            (b"]\x1b[1;", b"]", b"\x1b[1;"),
            (b"\x1b", b"", b"\x1b"),
            (b"\x1b\x1b[A", b"\x1b", b""),
            (b"\x1b[\x03", b"\x03", b""),
        ] {
            assert_eq!(keys_of(sent), (keys.to_vec(), rest), "{sent:?}");
        }
    }
}
