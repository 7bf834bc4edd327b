//! The guest's clock: it has steps of 1 ns, and how long it takes to read it is said as a guest starts.
//!
//! In virtual time UML lets each reading outside of interrupts take 256 ns and each system call that fails 1 µs, so that loops which wait for
//! time to pass come to an end (`timer_read` in `arch/um/kernel/time.c`, `handle_syscall` in `skas/syscall.c`). Its clock has no finer steps, and
//! its timer none below 500 ns (`TIMER_MIN_DELTA`). By that a packet is later the more programs were run for it, and of two that meet at one
//! instant the order hangs on it. Of Linux's sources this is all that is changed.

use std::fs;
use std::io;
use std::path::Path;

use crate::error::KernelError;
use crate::source::Tree;

/// What a kernel so built has, as in the list of options.
pub(crate) const SETTING: &str = "dualq-reading=y";

const CLOCK: &str = "arch/um/kernel/time.c";
/// What our lines are put before.
const TIMER: &str = "static struct clock_event_device _timer_clockevent = {\n";
const READING: &str = "static u64 timer_read(struct clocksource *cs)\n";
const TAKES: &str = "time_travel_update_time_rel(TIMER_MULTIPLIER);";
const TAKES_AS_SAID: &str = "time_travel_update_time_rel(dualq_reading_ns);";
/// Without a word of the command line a reading takes what it did.
const OURS: &str = r#"#undef TIMER_MIN_DELTA
#define TIMER_MIN_DELTA 1
#undef TIMER_MULTIPLIER
#define TIMER_MULTIPLIER 1
unsigned int dualq_reading_ns = 256;

static int __init set_dualq_reading(char *text)
{
	return kstrtouint(text, 10, &dualq_reading_ns) == 0;
}
__setup("dualq-reading=", set_dualq_reading);

"#;

/// And a failure, but where a reading takes 1 ns: there it does too.
const CALLS: &str = "arch/um/kernel/skas/syscall.c";
const CALL: &str = "void handle_syscall(struct uml_pt_regs *r)\n";
const FAILURE: &str = "um_udelay(1);";
const FAILURE_AS_SAID: &str = "um_ndelay(dualq_reading_ns > 1 ? 1000 : 1);";
const READING_OF: &str = "extern unsigned int dualq_reading_ns;\n\n";

/// What is changed, for the hash of a kernel's name.
pub(crate) fn changes() -> impl Iterator<Item = u8> {
    [SETTING, OURS, FAILURE_AS_SAID].into_iter().flat_map(str::bytes)
}

/// A tree as `tree` but for that, made in `folder`, which is not there yet; `None` if its clock is another one.
pub(crate) fn made_fine(tree: &Tree, folder: &Path) -> Result<Option<Tree>, KernelError> {
    let read = |file| {
        let path = tree.root.join(file);
        match fs::read_to_string(&path) {
            Ok(code) => Ok(code),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(KernelError::file("read", &path)(error)),
        }
    };
    let (Some(clock), Some(calls)) = (fine_clock(&read(CLOCK)?), fine_calls(&read(CALLS)?)) else {
        return Ok(None);
    };
    fs::create_dir(folder).map_err(KernelError::file("write", folder))?;
    let tree = tree.with(CLOCK.as_ref(), &clock, &folder.join("clock"))?;
    tree.with(CALLS.as_ref(), &calls, &folder.join("calls")).map(Some)
}

/// The code with steps of 1 ns; `None` if it is not as we know it.
fn fine_clock(code: &str) -> Option<String> {
    let (before, timer) = code.split_once(TIMER)?;
    let (timer, reading) = timer.split_once(READING)?;
    let (head, rest) = reading.split_once(TAKES)?;
    Some([before, OURS, TIMER, timer, READING, head, TAKES_AS_SAID, rest].concat())
}

/// The code of system calls whose failures take as long as is said.
fn fine_calls(code: &str) -> Option<String> {
    let (before, call) = code.split_once(CALL)?;
    let (head, rest) = call.split_once(FAILURE)?;
    Some([before, READING_OF, CALL, head, FAILURE_AS_SAID, rest].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_reading_takes_as_long_as_is_said() {
        let code = format!("int a;\n{TIMER}}};\n{READING}{{\n\t{TAKES}\n}}\nint b;\n");
        let fine = fine_clock(&code).unwrap();
        assert_eq!(
            fine,
            format!("int a;\n{OURS}{TIMER}}};\n{READING}{{\n\t{TAKES_AS_SAID}\n}}\nint b;\n")
        );
        assert_eq!(fine_clock(&code.replace("_timer", "timer")), None);
        assert_eq!(fine_clock(&code.replace("cs)", "source)")), None);
        assert_eq!(fine_clock(&code.replace("MULTIPLIER", "DIVISOR")), None);
    }

    #[test]
    fn one_failure_takes_no_longer() {
        let code = format!("int a;\n{CALL}{{\n\t{FAILURE}\n}}\n");
        let fine = fine_calls(&code).unwrap();
        assert_eq!(fine, format!("int a;\n{READING_OF}{CALL}{{\n\t{FAILURE_AS_SAID}\n}}\n"));
        assert_eq!(fine_calls(&code.replace("(1)", "(2)")), None);
    }
}
