//! The way out: files that are there whole or not at all, and what the terminal is like.

use std::env;
use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use dualq_report::words::{marked, printable};
use dualq_units::plain;
use rustix::fs::{self, AtFlags, Mode, OFlags};
use tempfile::NamedTempFile;

use crate::cli::Failure;
use crate::cli::run::Colour;
use crate::interrupt::{self, Leftover};

/// As many links as the kernel follows on the way to a file.
const LINKS: usize = 40;

/// Where output goes. A regular file is written without a name, or where that cannot be under another one, and takes its own once it is
/// complete.
pub(crate) enum Output {
    Stdout(io::Stdout),
    /// A device or pipe, which must not be replaced by a file.
    Direct(File),
    /// Nothing is left of it, however the program ends.
    Nameless(File, PathBuf),
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
        let there = path.metadata();
        if there.as_ref().is_ok_and(|metadata| !metadata.is_file()) {
            let file = File::options().write(true).open(path).map_err(|error| cannot(&error))?;
            return Ok(Self::Direct(file));
        }
        let path = match destination(path).map_err(|error| cannot(&error))? {
            Destination::Open(file) => return Ok(Self::Direct(file)),
            Destination::Path(path) => path,
        };
        let path = path.as_path();
        // What was there keeps its permissions.
        let keep = |file: &File| match &there {
            Ok(there) => file.set_permissions(there.permissions()),
            Err(_) => Ok(()),
        };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        // An interrupt has the same exit status, whether something is to go or not.
        interrupt::handle();
        if let Some(file) = nameless(folder) {
            keep(&file).map_err(|error| cannot(&error))?;
            return Ok(Self::Nameless(file, path.to_owned()));
        }
        let file = tempfile::Builder::new()
            .prefix(".dualq-")
            // What the umask leaves of it, as for any other new file.
            .permissions(std::fs::Permissions::from_mode(0o666))
            .tempfile_in(folder)
            .map_err(|error| cannot(&error))?;
        let leftover = Leftover::of(file.path());
        keep(file.as_file()).map_err(|error| cannot(&error))?;
        Ok(Self::Replacing(file, path.to_owned(), leftover))
    }

    /// Opens `path` for what is written while it is looked at, and stays however the program ends.
    pub(crate) fn directly(path: &Path) -> Result<Self, Failure> {
        let file = File::create(path).map_err(|error| {
            Failure::Run(format!("cannot write {}: {}", path.display(), plain(&error)))
        })?;
        Ok(Self::Direct(file))
    }

    /// Whether `path` could be written now, for what is written much later: nothing is there, or changed, for that.
    pub(crate) fn check(path: &Path) -> Result<(), Failure> {
        if path == Path::new("-") {
            return Ok(());
        }
        let tried = match path.metadata() {
            Ok(_) => File::options().append(true).open(path).map(drop),
            Err(_) => {
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                tempfile::tempfile_in(folder.unwrap_or(Path::new("."))).map(drop)
            }
        };
        tried.map_err(|error| cannot_write(path, &error))
    }

    /// Completes the output.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self {
            Self::Stdout(mut stdout) => stdout.flush(),
            Self::Direct(mut file) => file.flush(),
            Self::Nameless(file, path) => name(&file, &path),
            Self::Replacing(file, path, _leftover) => {
                file.persist(path).map_err(|error| error.error)?;
                Ok(())
            }
        }
    }
}

/// Where what is written to a path goes.
enum Destination {
    /// To a file that this process has open: `/dev/stdout`, `/dev/fd/3`.
    Open(File),
    /// There, where links lead.
    Path(PathBuf),
}

/// Follows the links of a path, one of which may be to a file that is not there yet.
fn destination(path: &Path) -> io::Result<Destination> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).canonicalize()?;
        let own = Path::new("/proc").join(std::process::id().to_string()).join("fd");
        if folder == own {
            return Ok(Destination::Open(match path.file_name().and_then(|name| name.to_str()) {
                Some("1") => io::stdout().as_fd().try_clone_to_owned()?.into(),
                Some("2") => io::stderr().as_fd().try_clone_to_owned()?.into(),
                _ => File::options().append(true).open(path)?,
            }));
        }
        let found = match path.symlink_metadata() {
            Ok(found) if found.is_symlink() => found,
            _ => break,
        };
        // As the kernel has it where everybody may put links (`fs.protected_symlinks`, proc(5)), and everywhere.
        if found.uid() != 0 && found.uid() != rustix::process::geteuid().as_raw() {
            return Err(io::Error::other("it is a link of somebody else's"));
        }
        path = folder.join(path.read_link()?);
    }
    Ok(Destination::Path(path))
}

/// Refuses to write over what is read, and to write two things to one place. `read` and `written` have what each is in messages and where.
pub(crate) fn keep_apart(
    read: &[(&str, &Path)],
    written: &[(&str, Option<&PathBuf>)],
) -> Result<(), Failure> {
    // What is not there is no file: a shipped scenario, or an error that is said when it is read.
    let read = read.iter().filter(|(_, path)| path.is_file());
    let read: Vec<_> = read.map(|(what, path)| (*what, place(path))).collect();
    let mut taken: Vec<(&str, PathBuf)> = Vec::new();
    for (option, path) in written {
        let Some((path, place)) = path.and_then(|path| Some((path.display(), place(path)?))) else {
            continue;
        };
        if let Some((what, _)) = read.iter().find(|(_, other)| other.as_ref() == Some(&place)) {
            let message = format!("{option} {path}: this would overwrite {what}");
            return Err(Failure::Usage(message));
        }
        if let Some((other, _)) = taken.iter().find(|(_, other)| *other == place) {
            return Err(Failure::Usage(format!(
                "{other} and {option} both go to {path}; give each its own file"
            )));
        }
        taken.push((option, place));
    }
    Ok(())
}

/// Where a file is, by one of the names that it may have, also before it is there; none of a device, pipe or folder.
fn place(path: &Path) -> Option<PathBuf> {
    if path == Path::new("-") {
        return Some(path.to_owned());
    }
    match path.metadata() {
        Ok(metadata) => metadata.is_file().then(|| path.canonicalize().ok())?,
        Err(_) => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
            Some(folder.join(path.file_name()?))
        }
    }
}

/// A file in this folder that has no name yet (`O_TMPFILE`); none where the file system has no such thing, or names cannot be given
/// later (`open(2)` does it by `/proc`).
fn nameless(folder: &Path) -> Option<File> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    // What the umask leaves of it, as for any other new file.
    let file = fs::openat(fs::CWD, folder, flags, Mode::from_raw_mode(0o666)).ok()?;
    let file = File::from(file);
    open_file(&file).exists().then_some(file)
}

/// Where a file without a name can be named by.
fn open_file(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Gives the file its name. What had it before is replaced in one step, for which the file has another name for that moment.
fn name(file: &File, path: &Path) -> io::Result<()> {
    let link =
        |to: &Path| fs::linkat(fs::CWD, open_file(file), fs::CWD, to, AtFlags::SYMLINK_FOLLOW);
    match link(path) {
        Err(rustix::io::Errno::EXIST) => {}
        linked => return Ok(linked?),
    }
    let mut tries = 0;
    let other = loop {
        let other = path.with_file_name(format!(".dualq-{}-{tries}", std::process::id()));
        match link(&other) {
            Err(rustix::io::Errno::EXIST) if tries < 100 => tries += 1,
            linked => break linked.map(|()| other)?,
        }
    };
    std::fs::rename(&other, path).inspect_err(|_| {
        let _ = std::fs::remove_file(&other);
    })
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(stdout) => stdout.write(bytes),
            Self::Direct(file) | Self::Nameless(file, _) => file.write(bytes),
            Self::Replacing(file, ..) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(stdout) => stdout.flush(),
            Self::Direct(file) | Self::Nameless(file, _) => file.flush(),
            Self::Replacing(file, ..) => file.flush(),
        }
    }
}

/// A file, and what it is called in messages.
pub(crate) struct Named {
    path: PathBuf,
    output: Output,
}

impl Named {
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        Ok(Self { path: path.to_owned(), output: Output::create(path)? })
    }

    /// Writes the whole of it.
    pub(crate) fn write(mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.add(bytes)?;
        self.finish()
    }

    /// Writes more of it.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = self.output.write_all(bytes);
        written.map_err(|error| cannot_write(&self.path, &error))
    }

    /// Completes it.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let Self { path, output } = self;
        output.finish().map_err(|error| cannot_write(&path, &error))
    }
}

/// A folder that takes files.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Makes it if it is not there.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let made = if path.exists() { Ok(()) } else { std::fs::create_dir_all(path) };
        match made.and_then(|()| tempfile::tempfile_in(path)) {
            Ok(_) => Ok(Self(path.to_owned())),
            Err(error) => Err(Failure::Run(format!(
                "cannot write into {}: {}",
                path.display(),
                plain(&error)
            ))),
        }
    }

    /// A file of it.
    pub(crate) fn named(&self, name: &str) -> Result<Named, Failure> {
        Named::open(&self.0.join(name))
    }

    /// A file with this content, which takes its name later.
    pub(crate) fn file(&self, name: &str, content: &[u8]) -> Result<Named, Failure> {
        let mut file = self.named(name)?;
        file.add(content)?;
        Ok(file)
    }
}

/// Why a file cannot be written.
fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::BrokenPipe,
        _ => Failure::Run(format!("cannot write {}: {}", path.display(), plain(error))),
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

/// A word of a command to type: quoted where a shell would read it otherwise.
pub(crate) fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
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
    !unwanted && !is_dumb() && io::stdout().is_terminal()
}

/// Whether the terminal shows lines alone, as far as the environment tells.
pub(crate) fn is_dumb() -> bool {
    env::var_os("TERM").is_none_or(|terminal| terminal == "dumb")
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
