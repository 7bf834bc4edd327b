//! `dualq kernel build`, `list` and `remove` as their users run them, with programs that only play the real ones.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// A machine with a source tree, and with no programs but those it is given.
struct Machine {
    folder: TempDir,
}

/// Where the guest's clock is read, and what is of interest there.
const CLOCK: &str = "arch/um/kernel/time.c";
const READING: &str = "static struct clock_event_device _timer_clockevent = {\n};\nstatic u64 timer_read(struct clocksource *cs)\n\
                       { time_travel_update_time_rel(TIMER_MULTIPLIER); }\n";
/// And where a system call fails.
const CALLS: &str = "arch/um/kernel/skas/syscall.c";
const FAILURE: &str = "void handle_syscall(struct uml_pt_regs *r)\n{ um_udelay(1); }\n";

/// Configures with what was asked for, but for dualpi2, and compiles two files.
const MAKE: &str = r#"
echo "make $*" >> "$CALLS"
for word in "$@"; do
    case $word in
        O=*) out=${word#O=} ;;
        defconfig) echo 'CONFIG_MODULES=y' > "$out/.config"; exit 0 ;;
        olddefconfig)
            sed -i -e '/DUALPI2/d' -e "/${WITHOUT:-nothing at all}/d" "$out/.config"; exit 0 ;;
    esac
done
echo '  CC      init/main.o'
echo '  CC      net/sched/sch_api.o'
cat arch/um/kernel/time.c > "$CALLS.clock"
cat arch/um/kernel/skas/syscall.c > "$CALLS.failures"
[ -z "$BREAK" ] || { echo "net/sched/sch_api.c:7:1: error: $BREAK"; exit 2; }
[ -z "$WAIT" ] || { touch "$WAIT"; sleep 60; }
echo '#!/bin/sh' > "$out/linux"
chmod +x "$out/linux"
"#;

impl Machine {
    fn new() -> Self {
        let machine = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(machine.path("bin")).unwrap();
        machine.source("tree", "7.3.4");
        for program in ["sh", "sed", "touch", "sleep", "chmod", "tar", "gzip", "cat"] {
            let real = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(program));
            let real = real.into_iter().find(|path| path.exists()).unwrap();
            symlink(real, machine.path("bin").join(program)).unwrap();
        }
        machine
    }

    /// One on which a build can do what the script says.
    fn with_make() -> Self {
        let machine = Self::new();
        for program in ["ld", "flex", "bison", "bc"] {
            machine.program(program, "exit 1");
        }
        machine.program("gcc", "[ \"$1\" != --version ] || echo 'gcc 14.2.0'");
        machine.program("make", MAKE);
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn program(&self, name: &str, script: &str) {
        let path = self.path("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn source(&self, name: &str, version: &str) {
        let tree = self.path(name);
        fs::create_dir_all(tree.join("arch/um/kernel/skas")).unwrap();
        fs::write(tree.join(CLOCK), READING).unwrap();
        fs::write(tree.join(CALLS), FAILURE).unwrap();
        let numbers: Vec<&str> = version.split('.').collect();
        let makefile = format!(
            "VERSION = {}\nPATCHLEVEL = {}\nSUBLEVEL = {}\nEXTRAVERSION =\n",
            numbers[0], numbers[1], numbers[2]
        );
        fs::write(tree.join("Makefile"), makefile).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dualq"));
        command.arg("kernel").args(args).current_dir(self.folder.path()).env_clear();
        command.env("PATH", self.path("bin")).env("XDG_CACHE_HOME", self.path("cache"));
        command.env("CALLS", self.path("calls")).env("COLUMNS", "100").stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn succeed(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// The one line that says why not, and the exit status.
    fn fail(&self, args: &[&str]) -> (String, Option<i32>) {
        let output = self.run(args);
        let error = text(&output.stderr);
        (error.lines().last().unwrap_or_default().to_owned(), output.status.code())
    }

    fn listed(&self) -> Vec<Value> {
        let document: Value = serde_json::from_str(&self.succeed(&["list", "--json"])).unwrap();
        document["kernels"].as_array().unwrap().clone()
    }

    /// What is in the store's folder, hidden or not.
    fn stored(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("cache/dualq/kernels")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    fn calls(&self) -> usize {
        fs::read_to_string(self.path("calls")).map_or(0, |calls| calls.lines().count())
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn wait_for(path: &Path) {
    let started = Instant::now();
    while !path.exists() {
        assert!(started.elapsed() < Duration::from_secs(300), "{}", path.display());
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn the_help_teaches_by_examples() {
    let machine = Machine::new();
    insta::assert_snapshot!("kernel_build_help", machine.succeed(&["build", "--help"]));
}

#[test]
fn all_missing_programs_are_named_at_once() {
    let machine = Machine::new();
    machine.program("gcc", "exit 0");
    machine.program("make", "exit 0");
    let (error, status) = machine.fail(&["build", "--source", "tree"]);
    let start = "error: a build needs ld, flex, bison, bc";
    assert!(error.starts_with(start), "{error}");
    assert_eq!(status, Some(1));
    // A compiler alone cannot compile.
    let machine = Machine::with_make();
    machine.program("gcc", "cat > /dev/null; exit 1");
    let (error, _) = machine.fail(&["build", "--source", "tree"]);
    assert!(
        error.starts_with("error: a build needs the C library's and Linux's headers"),
        "{error}"
    );
    assert!(!machine.path("cache").exists());
}

#[test]
fn without_apt_sources_must_be_given() {
    let machine = Machine::with_make();
    let (error, status) = machine.fail(&["build"]);
    assert_eq!(
        error,
        "error: there is no apt here to get kernel sources with; give --source a kernel tree or a tarball from \
         kernel.org, such as https://cdn.kernel.org/pub/linux/kernel/v7.x/linux-7.3.tar.xz"
    );
    assert_eq!(status, Some(1));
}

#[test]
fn a_kernel_is_built_once_listed_and_removed() {
    let machine = Machine::with_make();
    assert_eq!(
        machine.succeed(&["list"]),
        "there is no kernel yet; `dualq kernel build` makes one in some minutes\n"
    );
    // More compilers at once than there are CPUs gain nothing, and so many would take all memory.
    let output = machine.run(&["build", "--source", "tree", "--jobs", "100000"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stderr);
    let cpus = thread::available_parallelism().unwrap();
    let steps = format!(
        "configuring Linux 7.3.4\nnote: Linux 7.3.4 does not offer NET_SCH_DUALPI2=y\nbuilding Linux 7.3.4 with {cpus} jobs\ncleaning up\n"
    );
    assert_eq!(said, steps);
    let calls = fs::read_to_string(machine.path("calls")).unwrap();
    assert!(calls.lines().all(|call| call.contains("O=") && call.contains("ARCH=um")), "{calls}");
    assert!(calls.lines().last().unwrap().ends_with(&format!("-j{cpus}")), "{calls}");
    // Nothing is left of the build, and nothing was written into the sources.
    let stored = machine.stored();
    assert_eq!(stored.len(), 3, "{stored:?}");
    assert_eq!((stored[0].as_str(), stored[2].as_str()), (".lock", "build.log"));
    assert_eq!(fs::read_dir(machine.path("tree")).unwrap().count(), 2);

    let listed = machine.listed();
    let kernel = &listed[0];
    assert_eq!((listed.len(), &kernel["version"]), (1, &"7.3.4".into()));
    assert_eq!(kernel["name"], stored[1]);
    assert_eq!((&kernel["default"], &kernel["current"]), (&true.into(), &true.into()));
    assert_eq!(kernel["dualpi2"], false);
    assert_eq!(kernel["lacking"], serde_json::json!(["NET_SCH_DUALPI2=y"]));
    assert_eq!(kernel["compiler"], "gcc 14.2.0");
    let words = |key: &str| kernel[key].as_array().unwrap().contains(&key_of(key).into());
    assert!(words("qdiscs") && words("congestion_controls"));
    assert!(Path::new(kernel["executable"].as_str().unwrap()).is_file());
    let table = machine.succeed(&["list"]);
    let row = table.lines().nth(1).unwrap();
    assert!(row.starts_with("7.3.4   default  current  no "), "{table}");

    // The second call does nothing.
    let called = machine.calls();
    let again = machine.succeed(&["build", "--source", "tree", "--version", "7.3"]);
    assert!(again.contains("is there already"), "{again}");
    assert_eq!(machine.calls(), called);

    let (error, status) = machine.fail(&["remove", "6.1"]);
    assert_eq!(error, "error: there is no kernel 6.1; there are: 7.3.4");
    assert_eq!(status, Some(1));
    machine.succeed(&["remove", "7.3"]);
    assert_eq!(machine.stored(), [".lock", "build.log"]);
    assert_eq!(machine.fail(&["remove", "7.3"]).1, Some(1));
}

/// One of each that the kernel must have.
fn key_of(key: &str) -> &'static str {
    if key == "qdiscs" { "fq_codel" } else { "bbr" }
}

#[test]
fn kernels_of_other_options_are_outdated_and_still_there() {
    let machine = Machine::with_make();
    machine.source("older", "6.12.9");
    machine.succeed(&["build", "--source", "tree"]);
    machine.succeed(&["build", "--source", "older"]);
    let folder = machine.path("cache/dualq/kernels");
    let name = machine.listed()[0]["name"].as_str().unwrap().to_owned();
    let facts = fs::read_to_string(folder.join(&name).join("facts.json")).unwrap();
    let options = name.split('-').nth(1).unwrap();
    fs::rename(folder.join(&name), folder.join("7.3.4-00000000")).unwrap();
    let facts = facts.replace(options, "00000000");
    fs::write(folder.join("7.3.4-00000000/facts.json"), facts).unwrap();
    let table = machine.succeed(&["list"]);
    let rows: Vec<&str> = table.lines().skip(1).collect();
    assert!(rows[0].starts_with("6.12.9  default  current"), "{table}");
    assert!(rows[1].starts_with("7.3.4            outdated"), "{table}");
    machine.succeed(&["build", "--source", "tree"]);
    assert_eq!(machine.listed().len(), 3);
    machine.succeed(&["remove", "--all"]);
    assert!(machine.listed().is_empty());
}

/// A tree that somebody changed makes another kernel of the same version.
#[test]
fn an_own_tree_is_not_taken_for_another_of_its_version() {
    let machine = Machine::with_make();
    machine.source("other", "7.3.4");
    for tree in ["tree", "other"] {
        machine.succeed(&["build", "--source", tree]);
    }
    fs::write(machine.path("tree/arch/um/own.c"), "").unwrap();
    machine.succeed(&["build", "--source", "tree"]);
    let mut tar = Command::new("tar");
    tar.args(["-czf", "linux.tar.gz", "tree"]).current_dir(machine.folder.path());
    assert!(tar.status().unwrap().success());
    machine.succeed(&["build", "--source", "linux.tar.gz"]);
    let called = machine.calls();
    for source in ["tree", "other", "linux.tar.gz"] {
        let again = machine.succeed(&["build", "--source", source]);
        assert!(again.contains("is there already"), "{again}");
    }
    assert_eq!(machine.calls(), called);

    let listed = machine.listed();
    let names: Vec<&str> = listed.iter().map(|kernel| kernel["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 4, "{names:?}");
    let table = machine.succeed(&["list"]);
    assert!(
        table.lines().skip(1).map(|row| row.split(' ').next().unwrap()).eq(names.iter().copied()),
        "{table}"
    );
    // What is to be built anew is one of them, and nothing else goes.
    let again = machine.succeed(&["build", "--source", "other"]);
    let name = again.trim().rsplit(' ').next().unwrap();
    assert!(again.ends_with(&format!("to build it anew: dualq kernel remove {name}\n")), "{again}");
    machine.succeed(&["remove", name]);
    assert_eq!(machine.listed().len(), 3);
    machine.succeed(&["build", "--source", "other"]);
    assert!(machine.listed().iter().any(|kernel| kernel["name"] == name));
    // By the version, all go.
    machine.succeed(&["remove", "7.3"]);
    assert!(machine.listed().is_empty());
}

/// It is built from a tree in which reading the clock takes as long as is said; what was given stays as it was.
#[test]
fn the_clock_is_a_fine_one() {
    let machine = Machine::with_make();
    let told = machine.run(&["build", "--source", "tree", "--no-progress"]);
    assert!(!text(&told.stderr).contains("clock"), "{}", text(&told.stderr));
    let read = |name: &str| fs::read_to_string(machine.path(name)).unwrap();
    let built = read("calls.clock");
    assert!(built.contains("#define TIMER_MULTIPLIER 1\n"), "{built}");
    assert!(built.contains("__setup(\"dualq-reading=\""), "{built}");
    assert!(built.contains("#define TIMER_MIN_DELTA 1\n"), "{built}");
    let failures = read("calls.failures");
    assert!(failures.contains("um_ndelay(dualq_reading_ns > 1"), "{failures}");
    assert_eq!(read(&format!("tree/{CLOCK}")), READING);
    assert_eq!(read(&format!("tree/{CALLS}")), FAILURE);
    assert_eq!(machine.listed()[0]["current"], true);
    // One that has another clock is built as it is, and says so.
    machine.source("other", "6.1.0");
    fs::write(machine.path("other").join(CLOCK), "/* none */\n").unwrap();
    let told = machine.run(&["build", "--source", "other", "--no-progress"]);
    assert!(told.status.success(), "{}", text(&told.stderr));
    assert!(text(&told.stderr).contains("clock of its own"), "{}", text(&told.stderr));
    assert_eq!(read("calls.clock"), "/* none */\n");
    let lacking = |kernel: &Value| kernel["lacking"].to_string().contains("dualq-reading=y");
    assert_eq!(machine.listed().iter().filter(|kernel| lacking(kernel)).count(), 1);
}

#[test]
fn a_negative_value_is_told_as_such() {
    let machine = Machine::new();
    let (error, status) = machine.fail(&["build", "--jobs", "-5"]);
    assert_eq!(
        (error.as_str(), status),
        ("error: --jobs: -5 is negative: give a value of 0 or more", Some(2))
    );
}

/// A full disk, or somebody's hand.
#[test]
fn a_damaged_kernel_is_told_and_removed() {
    let machine = Machine::with_make();
    machine.source("older", "6.12.9");
    machine.succeed(&["build", "--source", "tree"]);
    machine.succeed(&["build", "--source", "older"]);
    let folder = machine.path("cache/dualq/kernels");
    let names: Vec<String> =
        machine.listed().iter().map(|kernel| kernel["name"].as_str().unwrap().to_owned()).collect();
    fs::write(folder.join(&names[0]).join("linux"), "#!").unwrap();
    fs::write(folder.join(&names[1]).join("facts.json"), "{}").unwrap();
    assert!(machine.listed().is_empty());
    let list = machine.succeed(&["list"]);
    let lines: Vec<&str> = list.lines().collect();
    let (older, newer) = (&names[1], &names[0]);
    assert!(
        lines[0].starts_with(&format!("the kernel {older} is damaged (facts.json: ")),
        "{list}"
    );
    let told = format!(
        "the kernel {newer} is damaged (linux: it has 2 bytes, and had 10 when it was built): dualq kernel remove {newer}; dualq kernel build"
    );
    assert_eq!(lines[1], told);
    let (error, status) = machine.fail(&["exec", "--", "true"]);
    assert!(error.starts_with(&format!("error: the kernel {older} is damaged")), "{error}");
    assert_eq!(status, Some(1));
    // A build replaces what it would have made; the rest can be removed, by name or with all others.
    machine.succeed(&["build", "--source", "tree"]);
    assert_eq!(machine.listed().len(), 1);
    assert_eq!(
        machine.succeed(&["remove", "6.12"]),
        format!("the damaged kernel {older} is removed\n")
    );
    fs::remove_file(folder.join(newer).join("facts.json")).unwrap();
    machine.succeed(&["remove", "--all"]);
    assert_eq!(machine.stored(), [".lock", "build.log"]);
}

#[test]
fn a_tarball_is_unpacked_and_known_again() {
    let machine = Machine::with_make();
    let mut tar = Command::new("tar");
    tar.args(["-czf", "linux.tar.gz", "tree"]).current_dir(machine.folder.path());
    assert!(tar.status().unwrap().success());
    machine.succeed(&["build", "--source", "linux.tar.gz"]);
    assert_eq!(machine.stored().len(), 3);
    let before = machine.calls();
    let output = machine.run(&["build", "--source", "linux.tar.gz"]);
    assert!(text(&output.stdout).contains("is there already"));
    // Not even unpacked.
    assert_eq!((text(&output.stderr).as_str(), machine.calls()), ("", before));
}

#[test]
fn a_failure_shows_the_lines_that_matter() {
    let machine = Machine::with_make();
    let output =
        machine.command(&["build", "--source", "tree"]).env("BREAK", "no such thing").output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    let lines: Vec<&str> = said.lines().collect();
    let log = machine.path("cache/dualq/kernels/build.log");
    let last = format!(
        "error: building Linux 7.3.4 failed (exit status: 2); the whole log: {}",
        log.display()
    );
    let ends = ["  net/sched/sch_api.c:7:1: error: no such thing", last.as_str()];
    assert!(lines.ends_with(&ends), "{said}");
    assert!(fs::read_to_string(log).unwrap().contains("CC      init/main.o"));
    assert_eq!(machine.stored(), [".lock", "build.log"]);
}

#[test]
fn a_kernel_that_could_run_nothing_is_not_built() {
    let machine = Machine::with_make();
    let mut command = machine.command(&["build", "--source", "tree"]);
    let output = command.env("WITHOUT", "UML_TIME_TRAVEL").output().unwrap();
    let said = text(&output.stderr);
    let expected = "error: Linux 7.3.4 cannot be configured with what dualq needs: UML_TIME_TRAVEL_SUPPORT=y; log: ";
    assert!(said.lines().last().unwrap().starts_with(expected), "{said}");
    assert_eq!(output.status.code(), Some(1));
    assert!(machine.listed().is_empty());
}

#[test]
fn an_interrupted_build_leaves_nothing() {
    let machine = Machine::with_make();
    let waiting = machine.path("waiting");
    let mut command = machine.command(&["build", "--source", "tree"]);
    let command = command.env("WAIT", &waiting).stderr(Stdio::piped()).stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    wait_for(&waiting);
    let started = Instant::now();
    assert!(machine.listed().is_empty(), "what is not done is not listed");
    let kill = Command::new("sh").args(["-c", &format!("kill -INT {}", child.id())]).status();
    assert!(kill.unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert!(started.elapsed() < Duration::from_secs(50), "make was not ended");
    let said = text(&output.stderr);
    assert_eq!(said.lines().last(), Some("error: interrupted; nothing was kept"), "{said}");
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(machine.stored(), [".lock", "build.log"]);
    machine.succeed(&["build", "--source", "tree"]);
    assert_eq!(machine.listed().len(), 1);
}

/// A killed program cannot clean up; the next one does.
#[test]
fn a_second_build_waits_and_one_that_was_killed_is_no_obstacle() {
    let machine = Machine::with_make();
    let waiting = machine.path("waiting");
    let mut command = machine.command(&["build", "--source", "tree"]);
    let mut first = command.env("WAIT", &waiting).stderr(Stdio::null()).spawn().unwrap();
    wait_for(&waiting);
    let mut command = machine.command(&["build", "--source", "tree"]);
    let second = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    thread::sleep(Duration::from_millis(500));
    assert!(machine.listed().is_empty());
    first.kill().unwrap();
    first.wait().unwrap();
    let output = second.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.starts_with("waiting for another build to end\n"), "{said}");
    assert_eq!(machine.listed().len(), 1);
    assert_eq!(machine.stored().len(), 3);
}

#[test]
fn wrong_sources_are_refused_in_one_line() {
    let machine = Machine::with_make();
    fs::write(machine.path("notes.txt"), "").unwrap();
    fs::write(machine.path("cut.tar.gz"), [0x1f, 0x8b, 8, 0]).unwrap();
    machine.source("used", "7.3.4");
    fs::write(machine.path("used/.config"), "").unwrap();
    for (args, expected) in [
        (&["--source", "nowhere"][..], "error: cannot read nowhere: No such file or directory"),
        (&["--source", "notes.txt"], "error: notes.txt: neither a source tree nor a tarball"),
        (&["--source", "cache"], "error: cannot read cache: No such file or directory"),
        (&["--source", "cut.tar.gz"], "error: unpacking "),
        (&["--source", "bin"], "not a Linux source tree: a Makefile with VERSION, and arch/um"),
        (&["--source", "used"], "run `make mrproper` in it"),
        (
            &["--source", "tree", "--version", "7.4"],
            "error: the source is Linux 7.3.4, not 7.4; leave out --version or give another source",
        ),
    ] {
        let (error, status) = machine.fail(&[&["build"], args].concat());
        assert!(error.contains(expected), "{error}");
        assert_eq!(status, Some(1), "{error}");
    }
    for args in [&["build", "--version", "newest"][..], &["build", "--jobs", "0"], &["remove"]] {
        assert_eq!(machine.fail(args).1, Some(2), "{args:?}");
    }
    assert!(machine.listed().is_empty());
}

#[test]
fn relative_cache_folders_are_ignored() {
    let machine = Machine::with_make();
    let mut command = machine.command(&["build", "--source", "tree"]);
    let command = command.env("XDG_CACHE_HOME", "cache").env("HOME", machine.path("home"));
    assert!(command.output().unwrap().status.success());
    assert!(machine.path("home/.cache/dualq/kernels").is_dir() && !machine.path("cache").exists());
    let mut command = machine.command(&["list"]);
    let output = command.env("XDG_CACHE_HOME", "cache").output().unwrap();
    let error = "error: cannot tell where kernels are kept: set XDG_CACHE_HOME or HOME to an absolute path\n";
    assert_eq!(text(&output.stderr), error);
}

/// The programs of apt, as far as a build calls them, with one package.
#[test]
fn the_distributions_sources_are_found_through_apt() {
    let machine = Machine::with_make();
    let tar = "tar -cf package/usr/src/linux-source-7.3.tar tree";
    let script = format!("mkdir -p package/usr/src && {tar}");
    let packed =
        Command::new("sh").args(["-c", &script]).current_dir(machine.folder.path()).status();
    assert!(packed.unwrap().success());
    machine.program("xz", "exit 1");
    machine.program(
        "apt-cache",
        "case $1 in search) echo 'linux-source-6.1 - old'; echo 'linux-source-7.3 - new' ;;
         show) printf 'Version: 7.3.4-1\\nSize: 1500000\\n' ;; esac",
    );
    machine.program(
        "apt-get",
        "echo apt-get $* >> \"$CALLS\"; touch linux-source-7.3_7.3.4-1_all.deb",
    );
    let package = machine.path("package");
    machine.program(
        "dpkg-deb",
        &format!("tar -cf - -C {} usr | tar -xf - -C \"$3\"", package.display()),
    );
    let output = machine.run(&["build"]);
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("\ndownloading linux-source-7.3 7.3.4-1 (2 MB)\n"), "{said}");
    // The version that was shown, and no other that apt may have by now.
    let calls = fs::read_to_string(machine.path("calls")).unwrap();
    assert!(calls.contains("apt-get download linux-source-7.3=7.3.4-1\n"), "{calls}");
    let origin = &machine.listed()[0]["origin"];
    assert_eq!((&origin["kind"], &origin["name"]), (&"package".into(), &"linux-source-7.3".into()));
    // Whichever way it is asked for, it is there, and nothing is downloaded again.
    let called = machine.calls();
    for args in [&["build"][..], &["build", "--version", "7.3"], &["build", "--version", "7.3.4"]] {
        let output = machine.run(args);
        assert!(text(&output.stdout).contains("is there already"));
        assert_eq!(text(&output.stderr), "");
    }
    assert_eq!(machine.calls(), called);
}
