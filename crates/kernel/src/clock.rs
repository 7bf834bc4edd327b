//! The guest's clock: reading it takes no time, as nothing else does that the CPU works on.
//!
//! In virtual time UML lets each reading outside of interrupts take 256 ns, so that loops which wait for time to pass come to an end, and
//! its clock has no finer steps (`timer_read` in `arch/um/kernel/time.c`). By that a packet is later the more programs were run for it, and of
//! two that meet at one instant the order hangs on it. Of Linux's sources this is all that is changed: a step of 1 ns, with which such loops end as well.

use std::fs;
use std::io;
use std::path::Path;

use crate::error::KernelError;
use crate::source::Tree;

/// What is set, as in the list of options.
pub(crate) const SETTING: &str = "TIMER_MULTIPLIER=1";

const HEADER: &str = "arch/um/include/linux/time-internal.h";
const DEFINITION: &str = "#define TIMER_MULTIPLIER ";

/// A tree as `tree` but for that, made in `folder`, which is not there yet; `None` if its clock is another one.
pub(crate) fn made_fine(tree: &Tree, folder: &Path) -> Result<Option<Tree>, KernelError> {
    let path = tree.root.join(HEADER);
    let header = match fs::read_to_string(&path) {
        Ok(header) => header,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(KernelError::file("read", &path)(error)),
    };
    fine(&header).map(|header| tree.with(HEADER.as_ref(), &header, folder)).transpose()
}

/// The header with steps of 1 ns.
fn fine(header: &str) -> Option<String> {
    let line = header.lines().find(|line| line.starts_with(DEFINITION))?;
    Some(header.replacen(line, &format!("{DEFINITION}1"), 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_of_the_header_is_another_one() {
        let header = "#ifndef A\n#define TIMER_MULTIPLIER 256\n#define OTHER 256\n#endif\n";
        let fine = fine(header).unwrap();
        assert_eq!(fine, header.replacen("256", "1", 1));
        assert_eq!(super::fine("#define OTHER 256\n"), None);
    }
}
