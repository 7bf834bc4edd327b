//! The guest's clock: it has steps of 1 ns, and how long it takes to read it is said as a guest starts.
//!
//! In virtual time UML lets each reading outside of interrupts take 256 ns, so that loops which wait for time to pass come to an end, and
//! its clock has no finer steps (`timer_read` in `arch/um/kernel/time.c`). By that a packet is later the more programs were run for it, and of
//! two that meet at one instant the order hangs on it. Of Linux's sources this is all that is changed.

use std::fs;
use std::io;
use std::path::Path;

use crate::error::KernelError;
use crate::source::Tree;

/// What a kernel so built has, as in the list of options.
pub(crate) const SETTING: &str = "dualq-reading=y";

const FILE: &str = "arch/um/kernel/time.c";
/// What our lines are put before.
const READING: &str = "static u64 timer_read(struct clocksource *cs)\n";
const TAKES: &str = "time_travel_update_time_rel(TIMER_MULTIPLIER);";
const TAKES_AS_SAID: &str = "time_travel_update_time_rel(dualq_reading_ns);";
/// Without a word of the command line a reading takes what it did.
const OURS: &str = r#"#undef TIMER_MULTIPLIER
#define TIMER_MULTIPLIER 1
static unsigned int dualq_reading_ns = 256;

static int __init set_dualq_reading(char *text)
{
	return kstrtouint(text, 10, &dualq_reading_ns) == 0;
}
__setup("dualq-reading=", set_dualq_reading);

"#;

/// A tree as `tree` but for that, made in `folder`, which is not there yet; `None` if its clock is another one.
pub(crate) fn made_fine(tree: &Tree, folder: &Path) -> Result<Option<Tree>, KernelError> {
    let path = tree.root.join(FILE);
    let code = match fs::read_to_string(&path) {
        Ok(code) => code,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(KernelError::file("read", &path)(error)),
    };
    fine(&code).map(|code| tree.with(FILE.as_ref(), &code, folder)).transpose()
}

/// The code with steps of 1 ns; `None` if it is not as we know it.
fn fine(code: &str) -> Option<String> {
    let (before, reading) = code.split_once(READING)?;
    let (head, rest) = reading.split_once(TAKES)?;
    Some([before, OURS, READING, head, TAKES_AS_SAID, rest].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_reading_takes_as_long_as_is_said() {
        let code = format!("int a;\n{READING}{{\n\t{TAKES}\n}}\nint b;\n");
        let fine = fine(&code).unwrap();
        assert_eq!(fine, format!("int a;\n{OURS}{READING}{{\n\t{TAKES_AS_SAID}\n}}\nint b;\n"));
        assert_eq!(super::fine(&code.replace("cs)", "source)")), None);
        assert_eq!(super::fine(&code.replace("MULTIPLIER", "DIVISOR")), None);
    }
}
