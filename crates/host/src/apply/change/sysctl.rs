//! Running sysctls.

use std::fs::{self, File};
use std::io::{self, Write as _};

use crate::Root;
use crate::apply::ApplyError;

/// Which queue discipline the kernel puts where nobody asks for one.
pub(crate) const DEFAULT_QDISC: &str = "net.core.default_qdisc";

/// Its value, as the kernel writes it.
pub(crate) fn read(root: &Root, key: &str) -> Result<String, ApplyError> {
    let value = fs::read_to_string(root.sysctl(key)).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => ApplyError::NoSysctl { key: key.to_owned() },
        _ => ApplyError::io(format!("read the sysctl {key}"))(error),
    })?;
    Ok(value.trim_end_matches('\n').to_owned())
}

/// Sets it, and looks whether the kernel took it.
pub(crate) fn write(root: &Root, key: &str, value: &str) -> Result<(), ApplyError> {
    let what = format!("set the sysctl {key} to {value:?}");
    // The kernel takes a value in one piece.
    let line = format!("{value}\n");
    let set = || {
        let mut file = File::options().write(true).truncate(true).open(root.sysctl(key))?;
        file.write_all(line.as_bytes())
    };
    set().map_err(ApplyError::io(&what))?;
    let now = read(root, key)?;
    if equal(&now, value) {
        return Ok(());
    }
    Err(ApplyError::io(what)(io::Error::other(format!("it is {now:?} after that"))))
}

/// Several numbers may have any white space between them.
pub(crate) fn equal(one: &str, other: &str) -> bool {
    one.split_whitespace().eq(other.split_whitespace())
}
