//! The way out: files that are there whole or not at all, and what the terminal is like.

use std::env;
use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use dualq_report::words::{marked, printable};
use tempfile::NamedTempFile;

use crate::cli::{Colour, Failure};
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
    print_as_it_is(to, &printable(text))
}

/// Prints a whole text of which some lines, counted from 0, are to be seen first: in bold, where there are colours.
pub(crate) fn print_marked(
    to: &mut impl Write,
    text: &str,
    lines: &[usize],
) -> Result<(), Failure> {
    if colours() { print_as_it_is(to, &marked(text, lines)) } else { print(to, text) }
}

/// Prints a text in which nothing is to be escaped any more.
pub(crate) fn print_as_it_is(to: &mut impl Write, text: &str) -> Result<(), Failure> {
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

/// The same for who may have said otherwise on the command line.
pub(crate) fn has_colours(when: Colour) -> bool {
    match when {
        Colour::Auto => colours(),
        Colour::Always => true,
        Colour::Never => false,
    }
}

/// Whether standard output is a terminal that shows small pictures made of Unicode's blocks, as far as the environment tells.
pub(crate) fn draws() -> bool {
    let set = |name| env::var(name).ok().filter(|value| !value.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
    let is_unicode = locale.is_some_and(|locale| {
        let locale = locale.to_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    });
    let plain = set("TERM").is_none_or(|terminal| terminal == "dumb" || terminal == "linux");
    is_unicode && !plain && io::stdout().is_terminal()
}

/// An error in the system's words, without the number that the library puts behind them.
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}
