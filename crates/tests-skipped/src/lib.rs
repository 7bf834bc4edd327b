//! For tests that want what may not be there: root, a kernel, a program. A test that does nothing says so, and why; one line after
//! all tests counts these (`cargo run --package all-tests`); and what root of a user namespace can do, an ordinary user's
//! test does there.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread;

/// Names, in tests' environment, the file that has a line for each test that is skipped and why.
pub const RECORD: &str = "DUALQ_TESTS_SKIPPED";
/// Set in a test that runs as root of a user namespace of its own.
const ALONE: &str = "DUALQ_TEST_ALONE";
const SAYS: &str = "skipped: ";
const LACKS: &str = "this kernel has no ";

/// Says that the test does nothing, and why: past what the test harness captures, as it should not look like one that passed.
pub fn skipped(why: &str) {
    tell(thread::current().name().unwrap_or_default(), why);
}

/// Whether the program `dualq` can open links here, for which it needs network namespaces and TUN devices; says why if not.
///
/// # Panics
/// If it fails for another reason.
pub fn can_open_links(dualq: &str) -> bool {
    static WHY_NOT: OnceLock<Option<String>> = OnceLock::new();
    let why_not = WHY_NOT.get_or_init(|| {
        let mut command = Command::new(dualq);
        command.args(["shell", "--quiet", "--", "true"]).stdin(Stdio::null());
        let output = command.env_remove("DUALQ_SHELL").output().expect("dualq was built");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let lacks = ["cannot make network namespaces", "/dev/net/tun", "TUN device"];
        let is_missing = lacks.iter().any(|what| stderr.contains(what));
        assert!(output.status.success() || is_missing, "{stderr}");
        is_missing.then(|| stderr.trim().to_owned())
    });
    if let Some(why) = why_not {
        skipped(why);
    }
    why_not.is_none()
}

fn tell(name: &str, why: &str) {
    let _ = io::stderr().write_all(format!("{SAYS}{name}: {why}\n").as_bytes());
    // The test that started this one again repeats it.
    if is_alone() {
        return;
    }
    if let Some(path) = std::env::var_os(RECORD)
        && let Ok(mut record) = OpenOptions::new().create(true).append(true).open(path)
    {
        let _ = record.write_all(format!("{name}: {why}\n").as_bytes());
    }
}

/// What this kernel has not, of whatever that is said.
fn lacked(why: &str) -> Option<&str> {
    let (_, what) = why.split_once(LACKS)?;
    let what = what.strip_prefix("qdisc ").unwrap_or(what);
    what.split([';', ':', '(']).next().map(str::trim)
}

/// The lines of such a file in one.
#[must_use]
pub fn summary(told: &str) -> String {
    let reasons_told = || told.lines().filter_map(|line| line.split_once(": "));
    // A small kernel lacks many things, for many tests.
    let lacked: BTreeSet<&str> = reasons_told().filter_map(|(_, why)| lacked(why)).collect();
    let lacks = format!("{LACKS}{}", Vec::from_iter(lacked).join(", "));
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, why) in reasons_told() {
        let why = if why.contains(LACKS) { &lacks } else { why };
        let names = reasons.entry(why).or_default();
        // One of them may lack several things of the same sort.
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut names: Vec<&str> = reasons.values().flatten().copied().collect();
    names.sort_unstable();
    names.dedup();
    let reasons: Vec<String> =
        reasons.iter().map(|(why, names)| format!("{} because {why}", names.len())).collect();
    match names.len() {
        0 => "no test was skipped".to_owned(),
        1 => format!("1 test was skipped: {}", reasons.join("; ")),
        count => format!("{count} tests were skipped: {}", reasons.join("; ")),
    }
}

/// Whether a program is there; says so if not, and which of Debian's packages has it.
#[must_use]
pub fn has(program: &str, package: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let is = std::env::split_paths(&folders).any(|folder| folder.join(program).exists());
    if !is {
        skipped(&format!("there is no {program}, which is in Debian's package {package}"));
    }
    is
}

/// Whether this is root, if only of a user namespace.
#[must_use]
pub fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// Whether this is root of a user namespace in which nobody else is.
fn is_alone() -> bool {
    std::env::var_os(ALONE).is_some()
}

/// Whether this is root as the tests were started, who owns what the machine trusts and may become anybody; says so if not.
#[must_use]
pub fn is_the_machines_root() -> bool {
    let is = is_root() && !is_alone();
    if !is {
        skipped("it takes the machine's own root, and other users: run it as root");
    }
    is
}

/// Copies a program to a folder where anybody may run it: nobody but who built it may be let to where that was.
///
/// # Panics
/// If it cannot be copied.
#[must_use]
pub fn for_anybody(program: &str, folder: &Path) -> PathBuf {
    let copy = folder.join("dualq");
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))
        .expect("the folder is the test's");
    // By another process: what is open for writing here is so in children that other tests just start too, and could not be run.
    let done = Command::new("cp").arg(program).arg(&copy).status();
    assert!(
        done.expect("cp is everywhere").success(),
        "{program} was not copied to {}",
        copy.display()
    );
    copy
}

/// Runs the test that is running anew, as root of a user namespace with a network and mounts of its own, after a line of the
/// shell that prepares it.
///
/// # Panics
/// If the test fails there.
pub fn again_as_root(prepare: &str) {
    let unshare = |words: &[&Path]| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--net", "--mount", "sh", "-c"]);
        command.arg(format!("{prepare} && exec \"$0\" \"$@\"")).args(words);
        command.env(ALONE, "1").output()
    };
    match unshare(&[Path::new("true")]) {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let why = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
            return skipped(&format!("no user namespace with a network can be made here: {why}"));
        }
        Err(error) => return skipped(&format!("there is no program unshare: {error}")),
    }
    let name = thread::current().name().unwrap_or_default().to_owned();
    let program = std::env::current_exe().expect("a test knows its program");
    let words = [program.as_path(), "--exact".as_ref(), name.as_ref(), "--nocapture".as_ref()];
    let output = unshare(&words).expect("it could be called before");
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}{stderr}");
    // What the test itself says that it skips is not to be lost.
    let said = stderr.lines().filter_map(|line| line.strip_prefix(SAYS)?.split_once(": "));
    said.for_each(|(name, why)| tell(name, why));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_names_each_reason_once() {
        assert_eq!(summary(""), "no test was skipped");
        assert_eq!(summary("a: no kernel\n"), "1 test was skipped: 1 because no kernel");
        let told = "a: no kernel; build one\nb::c: no pie: old\na: no pie: old\nd: no kernel; build one\n\
                    a: no kernel; build one\n";
        let expected =
            "3 tests were skipped: 2 because no kernel; build one; 2 because no pie: old";
        assert_eq!(summary(told), expected);
    }

    #[test]
    fn what_a_kernel_lacks_is_one_reason() {
        let told = "a: this kernel has no cake\n\
                    a: cannot add qdisc fq limit 7 at the root of d0: this kernel has no qdisc fq (Unknown)\n\
                    b: this kernel has no matchall, or no mirred: not found\nc: no tsc\n\
                    d: this kernel has no qdisc fq\n";
        let expected = "4 tests were skipped: 1 because no tsc; \
                        3 because this kernel has no cake, fq, matchall, or no mirred";
        assert_eq!(summary(told), expected);
    }
}
