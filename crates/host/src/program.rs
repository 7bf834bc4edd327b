//! Which program root may be asked to run later: by a rule at boot, or as a unit.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use crate::Root;

/// Writable to the group or to everybody.
const BY_OTHERS: u32 = 0o022;
const EXECUTABLE: u32 = 0o100;

/// Where root's programs are looked for, whatever the caller's `PATH` is.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Why a program is none that only root could have put where it is. One line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotInstalled {
    /// Its path begins elsewhere than at the root, or goes back.
    #[error("{0} is no absolute path")]
    Relative(PathBuf),
    /// Nothing can be known of it, or of a folder above it.
    #[error("{path}: {why}", why = dualq_units::plain(.error))]
    Unknown {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// It, or a folder above it, is a symbolic link.
    #[error("{0} is a symbolic link")]
    Link(PathBuf),
    /// It, or a folder above it, is somebody else's.
    #[error("{0} does not belong to root")]
    NotRoots(PathBuf),
    /// Others may write to it, or put another one there.
    #[error("{0} can be written to by others than root")]
    Writable(PathBuf),
    /// It is no executable file.
    #[error("{0} is no program")]
    NoProgram(PathBuf),
}

/// Makes sure that only root could have put a program at `path`, and that only root can put another one there: the file and all
/// folders above it belong to root, nobody else may write to them, and none is a symbolic link.
///
/// # Errors
/// What is not so, in one line.
pub fn installed(root: &Root, path: &Path) -> Result<(), NotInstalled> {
    let plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    if !path.is_absolute() || !path.components().all(plain) {
        return Err(NotInstalled::Relative(path.to_owned()));
    }
    let mut walked = PathBuf::new();
    for part in path.components() {
        walked.push(part);
        let found = fs::symlink_metadata(root.at(&walked))
            .map_err(|error| NotInstalled::Unknown { path: walked.clone(), error })?;
        if found.is_symlink() {
            return Err(NotInstalled::Link(walked));
        }
        if found.uid() != 0 {
            return Err(NotInstalled::NotRoots(walked));
        }
        if found.mode() & BY_OTHERS != 0 {
            return Err(NotInstalled::Writable(walked));
        }
        if walked == path && !(found.is_file() && found.mode() & EXECUTABLE != 0) {
            return Err(NotInstalled::NoProgram(walked));
        }
    }
    Ok(())
}

/// The command that installs the program at `from` where `to` is.
#[must_use]
pub fn how_to_install(from: &str, to: &str) -> String {
    format!("sudo install -m 755 {from} {to}")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    /// The folder itself is the root, which the tests' user may own if that is root.
    #[test]
    fn only_what_root_alone_can_write_to_is_installed() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        let at = |path: &str| folder.path().join(path);
        let mode = |path: &str, mode| {
            fs::set_permissions(at(path), fs::Permissions::from_mode(mode)).unwrap();
        };
        mode("", 0o755);
        fs::create_dir_all(at("usr/bin")).unwrap();
        fs::write(at("usr/bin/dualq"), "").unwrap();
        mode("usr", 0o755);
        mode("usr/bin", 0o755);
        mode("usr/bin/dualq", 0o755);
        let path = Path::new("/usr/bin/dualq");
        let says = |path: &Path| installed(&root, path).unwrap_err().to_string();
        if folder.path().metadata().unwrap().uid() != 0 {
            assert!(says(path).ends_with("does not belong to root"));
            return;
        }
        installed(&root, path).unwrap();
        for (what, bad, good) in
            [("usr", 0o1777, 0o755), ("usr/bin", 0o775, 0o755), ("usr/bin/dualq", 0o757, 0o755)]
        {
            mode(what, bad);
            let said = says(path);
            assert_eq!(said, format!("/{what} can be written to by others than root"));
            mode(what, good);
        }
        mode("usr/bin/dualq", 0o644);
        assert_eq!(says(path), "/usr/bin/dualq is no program");
        mode("usr/bin/dualq", 0o755);
        std::os::unix::fs::chown(at("usr/bin"), Some(1234), None).unwrap();
        assert_eq!(says(path), "/usr/bin does not belong to root");
        std::os::unix::fs::chown(at("usr/bin"), Some(0), None).unwrap();
        symlink("bin", at("usr/other")).unwrap();
        assert_eq!(says(Path::new("/usr/other/dualq")), "/usr/other is a symbolic link");
        assert!(says(Path::new("/usr/bin/../bin/dualq")).ends_with("is no absolute path"));
        assert!(says(Path::new("/usr/bin/none")).starts_with("/usr/bin/none: "));
    }
}
