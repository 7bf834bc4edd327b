//! The way out: files that are there whole or not at all, and text that cannot steer a terminal.

use std::borrow::Cow;
use std::env;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::cli::Failure;
use crate::interrupt::Leftover;

/// Where output goes. A regular file is written under another name and takes its own once it is complete.
pub(crate) enum Output {
    Stdout(io::Stdout),
    /// A device or pipe, which must not be replaced by a file.
    Direct(File),
    Replacing(NamedTempFile, PathBuf, Leftover),
}

impl Output {
    /// Opens `path`, `-` being standard output.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self::Stdout(io::stdout()));
        }
        let cannot = |error: &io::Error| {
            Failure::Run(format!("cannot write {}: {}", path.display(), plain(error)))
        };
        if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            let file = File::options().write(true).open(path).map_err(|error| cannot(&error))?;
            return Ok(Self::Direct(file));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let file = tempfile::Builder::new()
            .prefix(".dualq-")
            // What the umask leaves of it, as for any other new file.
            .permissions(std::fs::Permissions::from_mode(0o666))
            .tempfile_in(folder.unwrap_or(Path::new(".")))
            .map_err(|error| cannot(&error))?;
        let leftover = Leftover::of(file.path());
        Ok(Self::Replacing(file, path.to_owned(), leftover))
    }

    /// Completes the output.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self {
            Self::Stdout(mut stdout) => stdout.flush(),
            Self::Direct(mut file) => file.flush(),
            Self::Replacing(file, path, _leftover) => {
                file.persist(path).map_err(|error| error.error)?;
                Ok(())
            }
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(stdout) => stdout.write(bytes),
            Self::Direct(file) => file.write(bytes),
            Self::Replacing(file, ..) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(stdout) => stdout.flush(),
            Self::Direct(file) => file.flush(),
            Self::Replacing(file, ..) => file.flush(),
        }
    }
}

/// Prints a whole text or document, with what could steer a terminal escaped.
pub(crate) fn print(to: &mut impl Write, text: &str) -> Result<(), Failure> {
    let printed = to.write_all(printable(text).as_bytes()).and_then(|()| to.flush());
    printed.map_err(|error| cannot_print(&error))
}

/// Prints a whole text of which some lines, counted from 0, are the best: in bold, where there are colours.
pub(crate) fn print_marked(to: &mut impl Write, text: &str, best: &[usize]) -> Result<(), Failure> {
    if !colours() {
        return print(to, text);
    }
    let marked = |(number, line): (usize, &str)| {
        let line = printable(line);
        if best.contains(&number) { format!("\x1b[1m{line}\x1b[0m\n") } else { format!("{line}\n") }
    };
    let text: String = text.lines().enumerate().map(marked).collect();
    let printed = to.write_all(text.as_bytes()).and_then(|()| to.flush());
    printed.map_err(|error| cannot_print(&error))
}

/// Why printing failed.
pub(crate) fn cannot_print(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::BrokenPipe,
        _ => Failure::Run(format!("cannot print: {}", plain(error))),
    }
}

/// Text as it may reach a terminal: control characters become visible escapes, `\u001b`, but for the ends of lines and tabs.
/// That is also how JSON writes them in strings, where alone it can have them: so a document means the same as before.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if steers(c) {
            let _ = write!(shown, "\\u{:04x}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// The same for what is one line: ends of lines become spaces.
pub(crate) fn one_line(text: &str) -> String {
    printable(&text.replace(['\n', '\t'], " ")).into_owned()
}

/// Control characters (C0, DEL and C1), and those that turn the direction of the text around them.
fn steers(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        c => c.is_control(),
    }
}

/// How many columns a table on standard output may have: what `COLUMNS` says, else the terminal's; none if it is no terminal,
/// for programs look for one line a row.
pub(crate) fn width() -> Option<usize> {
    let said = env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    said.filter(|columns| *columns > 0).or_else(|| columns(&io::stdout()))
}

/// How wide running text is at most: wider is tiring to read.
const WIDEST: usize = 100;
const NARROWEST: usize = 40;

/// How wide running text on standard output is to be.
pub(crate) fn text_width() -> usize {
    width().unwrap_or(WIDEST).clamp(NARROWEST, WIDEST)
}

/// The columns of a terminal.
pub(crate) fn columns(of: &(impl io::IsTerminal + std::os::fd::AsFd)) -> Option<usize> {
    if !of.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(of).ok()?;
    (size.ws_col > 0).then(|| size.ws_col.into())
}

/// Whether standard output may have colours: it is a terminal that can, and nobody has said no (<https://no-color.org>).
pub(crate) fn colours() -> bool {
    let unwanted = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = env::var_os("TERM").is_none_or(|terminal| terminal == "dumb");
    !unwanted && !dumb && io::stdout().is_terminal()
}

/// An error in the system's words, without the number that the library puts behind them.
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_printed_steers_a_terminal() {
        assert_eq!(printable("a\tb\nµ ±\n"), "a\tb\nµ ±\n");
        assert_eq!(printable("\u{1b}[2J\r\u{7f}\u{9b}m"), "\\u001b[2J\\u000d\\u007f\\u009bm");
        assert_eq!(printable("\u{202e}txt"), "\\u202etxt");
        assert_eq!(one_line("a\nb\u{1b}"), "a b\\u001b");
    }

    /// What serde leaves as it is, is escaped in the same way as what it does not.
    #[test]
    fn a_document_says_the_same_afterwards() {
        let value = serde_json::json!({ "name": "\u{1b}[31m \u{7f}\u{9b}\u{202e} \"\\\n" });
        let text = format!("{value:#}");
        assert_ne!(printable(&text), text);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&printable(&text)).unwrap(), value);
    }
}
