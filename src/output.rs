//! Files that are there whole or not at all.

use std::fs::File;
use std::io::{self, Write};
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

/// Prints a whole text.
pub(crate) fn print(to: &mut impl Write, text: &str) -> Result<(), Failure> {
    let printed = to.write_all(text.as_bytes()).and_then(|()| to.flush());
    printed.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::BrokenPipe,
        _ => Failure::Run(format!("cannot print: {}", plain(&error))),
    })
}

/// An error in the system's words, without the number that the library puts behind them.
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}
