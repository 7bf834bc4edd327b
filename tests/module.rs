//! `dualq module` as its users run it: with headers, sources and a make that only play the real ones, below a root of the test's own; and with
//! real headers, where there are any.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use tests_skipped::skipped;

const RELEASE: &str = "6.12.9-test";

/// What dualq takes for signs of the fixes in a source. It is no source of Linux's.
const SIGNS: &str = "enum qdisc_drop_reason
qdisc_tree_reduce_backlog(sch, 1 - cnt
dualpi2_peek
qdisc_dequeue_internal(q->l_queue
tcf_classify_qdisc
clamp_t(u32, psched_mtu
";

/// Makes of it what the kernel's own would: a module that says what it is for.
const MAKE: &str = r#"#!/bin/sh
echo "make $*" >> "$CALLS"
[ -z "$BREAK" ] || { echo "sch_dualpi2.c:7:1: error: $BREAK"; exit 2; }
while [ $# -gt 0 ]; do [ "$1" = -C ] && folder=$2; shift; done
[ -f "$folder/compat.h" ] && [ -f "$folder/sch_dualpi2.c" ] || exit 3
printf 'ELF vermagic=%s SMP preempt\0' "$MODULE_FOR" > "$folder/sch_dualpi2.ko"
touch "$folder/sch_dualpi2.o"
"#;

struct Machine(TempDir);

impl Machine {
    fn new() -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        machine.program("make", MAKE);
        machine.program("strip", "#!/bin/sh\n");
        machine.file("headers/Makefile", "");
        machine.file("headers/.config", "CONFIG_MODULES=y\n");
        machine.file(
            "headers/include/generated/utsrelease.h",
            &format!("#define UTS_RELEASE \"{RELEASE}\"\n"),
        );
        machine.source("linux", SIGNS);
        machine.file(&format!("root/lib/modules/{RELEASE}/modules.order"), "");
        machine.file(&format!("root/lib/modules/{RELEASE}/modules.builtin"), "");
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn program(&self, name: &str, script: &str) {
        let name = format!("bin/{name}");
        self.file(&name, script);
        fs::set_permissions(self.path(&name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn source(&self, name: &str, text: &str) {
        let numbers = "VERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 4\nEXTRAVERSION =\n";
        self.file(&format!("{name}/Makefile"), numbers);
        self.file(&format!("{name}/net/sched/sch_dualpi2.c"), text);
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dualq"));
        let system = std::env::var("PATH").unwrap();
        command.arg("module").args(arguments.split(' ')).current_dir(self.0.path());
        command.env("PATH", format!("{}:{system}", self.path("bin").display()));
        command.env("CALLS", self.path("calls")).env("MODULE_FOR", RELEASE).env("BREAK", "");
        command.env("XDG_CACHE_HOME", self.path("cache")).env("COLUMNS", "100");
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &str) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn stdout(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The one line that says what is wrong.
    fn refused(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments}");
        let said = stderr(&output);
        said.lines().last().unwrap_or_default().to_owned()
    }

    /// All that is below the root: files with their bytes and rights, and folders.
    fn below_root(&self) -> BTreeMap<PathBuf, Option<(u32, Vec<u8>)>> {
        let mut all = BTreeMap::new();
        let mut folders = vec![self.path("root")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap().flatten() {
                let (path, metadata) = (entry.path(), entry.metadata().unwrap());
                let content = metadata
                    .is_file()
                    .then(|| (metadata.permissions().mode(), fs::read(&path).unwrap()));
                if content.is_none() {
                    folders.push(path.clone());
                }
                all.insert(path, content);
            }
        }
        all
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether this machine has the programs that building takes and nobody plays here.
fn can_build() -> bool {
    let there = ["/usr/bin/gcc", "/usr/bin/make"].iter().all(|program| Path::new(program).exists());
    if !there {
        skipped("there is no gcc or no make here");
    }
    there
}

const BUILD: &str = "build --headers headers --source linux";

#[test]
fn a_module_is_built_once_with_the_source_as_it_is() {
    let machine = Machine::new();
    if !can_build() {
        return;
    }
    assert!(machine.stdout(BUILD).contains("of Linux 7.3.4 for Linux 6.12.9-test"));
    let folder = machine.path("cache/dualq/modules").join(RELEASE);
    assert_eq!(fs::read_to_string(folder.join("sch_dualpi2.c")).unwrap(), SIGNS);
    // What make leaves beside the module is gone, and so are working folders and the log.
    assert!(!folder.join("sch_dualpi2.o").exists());
    assert_eq!(fs::read_dir(folder.parent().unwrap()).unwrap().count(), 1);
    assert!(machine.stdout("build --headers headers").contains("is there already"));
    assert_eq!(fs::read_to_string(machine.path("calls")).unwrap().lines().count(), 1);
    // What was built before is a source as well, and the version of it is kept.
    let again = machine
        .stdout(&format!("build --headers headers --out elsewhere --source {}", folder.display()));
    assert!(
        again.contains("of Linux 7.3.4") && again.trim_end().ends_with("/elsewhere"),
        "{again}"
    );
}

#[test]
fn what_cannot_be_built_is_said_in_one_line_and_leaves_nothing() {
    let machine = Machine::new();
    if !can_build() {
        return;
    }
    for (arguments, said) in [
        ("build --headers nowhere", "holds no headers of a kernel"),
        ("build --headers headers --kernel-release 6.1.0", "has the headers of Linux 6.12.9-test"),
        ("build --kernel-release 6.1.0-none", "the headers of Linux 6.1.0-none are missing"),
        ("build --headers headers --source headers", "not Linux's sources"),
        ("build --headers headers --source linux --out headers", "no folder that dualq made"),
        ("build --headers headers --source linux --out a:b", "has a space or a colon"),
        ("install --from linux --root root", "is no folder that `dualq module build` made"),
        ("install --kernel-release 6.1.0 --root root", "there is no module for Linux 6.1.0"),
        ("remove --root root", "dualq has installed no module below"),
    ] {
        let line = machine.refused(arguments);
        assert!(line.starts_with("error: ") && line.contains(said), "{arguments}: {line}");
    }
    machine.source(
        "old",
        &SIGNS.replace("enum qdisc_drop_reason\n", "").replace("dualpi2_peek\n", ""),
    );
    let line = machine.refused("build --headers headers --source old");
    assert!(line.contains("while it peeks") && line.ends_with("Linux 7.2 or later"), "{line}");
    fs::remove_file(machine.path("old/net/sched/sch_dualpi2.c")).unwrap();
    assert!(machine.refused("build --headers headers --source old").contains("came with 6.17"));
    let broken = machine.command(BUILD).env("BREAK", "no such thing").output().unwrap();
    let said = stderr(&broken);
    assert!(said.contains("error: no such thing"), "{said}");
    let log = said.lines().find_map(|line| line.split_once("the whole log: ")).unwrap().1;
    assert!(fs::read_to_string(log).unwrap().contains("error: no such thing"), "{said}");
    let other = machine.command(BUILD).env("MODULE_FOR", "6.1.0").output().unwrap();
    assert!(stderr(&other).contains("says it is for 6.1.0 SMP preempt, not for Linux 6.12.9-test"));
    assert!(!machine.path("cache/dualq/modules").join(RELEASE).exists());
    machine.file("headers/.config", "CONFIG_NET_SCH_DUALPI2=m\n");
    assert!(machine.refused(BUILD).contains("has dualpi2 of its own: there is nothing to build"));
    let usage = machine.run("build --kernel-release ../x");
    assert_eq!(usage.status.code(), Some(2), "{}", stderr(&usage));
}

/// Whatever is beside the folder is somebody else's, and stays.
#[test]
fn neighbours_of_the_folder_stay_as_they_are() {
    let machine = Machine::new();
    if !can_build() {
        return;
    }
    machine.file("beside/sch_dualpi2.log", "somebody's");
    let names = || fs::read_dir(machine.path("beside")).unwrap().count();
    for (breaks, expected) in [("no such thing", 2), ("", 3)] {
        let mut build = machine.command(&format!("{BUILD} --out beside/made"));
        let output = build.env("BREAK", breaks).output().unwrap();
        assert_eq!(output.status.success(), breaks.is_empty(), "{}", stderr(&output));
        assert_eq!(names(), expected);
        let text = fs::read_to_string(machine.path("beside/sch_dualpi2.log")).unwrap();
        assert_eq!(text, "somebody's");
    }
}

#[test]
fn what_is_installed_is_told_and_removed_without_a_trace() {
    let machine = Machine::new();
    if !can_build() {
        return;
    }
    let depmod = ["/usr/sbin/depmod", "/sbin/depmod"].iter().any(|path| Path::new(path).exists());
    if !depmod {
        return skipped("there is no depmod here");
    }
    let root = machine.path("root");
    let mut depmod = Command::new("/sbin/depmod");
    assert!(depmod.arg("-b").arg(&root).arg(RELEASE).status().unwrap().success());
    // Somebody else's, in the folder that ours is put into.
    machine.file(&format!("root/lib/modules/{RELEASE}/updates/other.txt"), "");
    fs::create_dir_all(machine.path("root/var/lib")).unwrap();
    let before = machine.below_root();
    machine.stdout(BUILD);
    let install = format!("install --root root --kernel-release {RELEASE}");
    machine.stdout(&install);
    let status: Value = serde_json::from_str(&machine.stdout("status --root root --json")).unwrap();
    let file = format!("/lib/modules/{RELEASE}/updates/dualq/sch_dualpi2.ko");
    let found = &status["installed"][0];
    assert_eq!(
        (&found["file"], &found["by"]),
        (&Value::from(file.as_str()), &Value::from("dualq"))
    );
    assert_eq!(found["signed"], false);
    assert!(machine.stdout("status --root root").contains("by hand, with dualq, not signed"));
    assert!(machine.refused(&install).contains("is there already"));
    assert!(machine.stdout("remove --root root").contains(RELEASE));
    assert_eq!(machine.below_root(), before);
    // One that depmod fails on is not left half installed.
    machine.stdout(&install);
    let record = machine.path("root/var/lib/dualq/module").join(format!("{RELEASE}.json"));
    let text = fs::read_to_string(&record).unwrap();
    fs::write(&record, text.replace("\"format\": 1", "\"format\": 2")).unwrap();
    assert!(machine.refused("remove --root root").contains("a record of format 2, not 1"));
    fs::write(&record, text).unwrap();
    machine.stdout(&format!("remove --root root --kernel-release {RELEASE}"));
    assert_eq!(machine.below_root(), before);
}

/// An apt that has no others than these packages: of its own suite, and of any other.
const APT: &str = r#"#!/bin/sh
echo "apt $*" >> "$CALLS"
version=$OWN
case "$*" in *sourcelist*) version=$OTHER ;; esac
case "$*" in
    *" search "* | search*) echo "linux-source-${version%.*} - Linux kernel source" ;;
    *show*) printf 'Package: x\nVersion: %s-1\nSize: 1\n' "$version" ;;
    *download*) echo "E: nothing is downloaded in a test" >&2; exit 100 ;;
esac
"#;

impl Machine {
    /// What `module build` says where apt has these versions, and how apt was called.
    fn built_by_apt(own: &str, other: &str) -> (String, String) {
        let machine = Self::new();
        machine.program("apt-get", APT);
        machine.program("apt-cache", APT);
        machine.program("dpkg-deb", "#!/bin/sh\n");
        let mut command = machine.command("build --headers headers");
        let output = command.env("OWN", own).env("OTHER", other).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let calls = fs::read_to_string(machine.path("calls")).unwrap_or_default();
        (stderr(&output), calls)
    }
}

/// A suite that has dualpi2 may have it without its fixes.
#[test]
fn sources_that_are_too_old_are_not_downloaded() {
    if !can_build() {
        return;
    }
    for (own, other) in [("6.8.0", "6.8.0"), ("6.17.2", "7.1.9")] {
        let (said, calls) = Machine::built_by_apt(own, other);
        let line = said.lines().last().unwrap();
        let wanted = "error: apt has no package linux-source of Linux 7.2 or later (there are: ";
        assert!(line.starts_with(wanted) && line.contains("; give --source"), "{said}");
        assert!(calls.contains("search") && !calls.contains("download"), "{calls}");
    }
    // Only Debian has newer suites to ask.
    let debian =
        fs::read_to_string("/etc/os-release").is_ok_and(|text| text.contains("\nID=debian\n"));
    if !debian {
        return skipped("this is no Debian, of which newer suites are asked");
    }
    let (_, calls) = Machine::built_by_apt("6.17.2", "7.3.4");
    assert!(calls.contains("download linux-source-7.3=7.3.4-1"), "{calls}");
}

#[test]
fn status_says_what_stands_in_the_way() {
    let machine = Machine::new();
    machine.file("root/etc/os-release", "ID=ubuntu\nVERSION_ID=24.04\n");
    machine.file("root/proc/sys/kernel/osrelease", "6.8.0-49-generic\n");
    let said = machine.stdout("status --root root");
    for part in ["in the way: the headers of Linux 6.8.0-49-generic", "in the way: gcc is missing"]
    {
        assert!(said.contains(part), "{said}");
    }
    assert!(said.contains("older than Linux 7.2: give `dualq module build` --source"), "{said}");
    let document: Value =
        serde_json::from_str(&machine.stdout("status --root root --json")).unwrap();
    let lines = said.lines().filter(|line| line.starts_with("in the way: ")).count();
    assert_eq!(document["in_the_way"].as_array().unwrap().len(), lines);
    // Nothing does where there is one.
    let place = "root/lib/modules/6.8.0-49-generic/updates/dkms/sch_dualpi2.ko";
    machine.file(place, "");
    assert!(!machine.stdout("status --root root").contains("in the way"));
}

#[test]
fn help_is_as_it_was() {
    let machine = Machine::new();
    for command in ["build", "install"] {
        let help = machine.stdout(&format!("{command} --help"));
        insta::assert_snapshot!(format!("{command}_help"), help);
    }
}

/// Headers of real kernels: those of packages, and what `DUALQ_MODULE_HEADERS` names between colons.
fn real_headers() -> Vec<PathBuf> {
    let named = std::env::var_os("DUALQ_MODULE_HEADERS");
    let named = named.iter().flat_map(std::env::split_paths);
    let installed = fs::read_dir("/usr/src").into_iter().flatten().flatten();
    let installed = installed.map(|entry| entry.path());
    let is_one = |path: &PathBuf| path.join("include/generated/utsrelease.h").exists();
    named.chain(installed).filter(is_one).collect()
}

/// The compiler proper has to take the source of Linux and the header before it, for each kernel.
#[test]
fn the_module_is_built_for_the_headers_that_are_here() {
    let Some(source) = std::env::var_os("DUALQ_MODULE_SOURCE") else {
        return skipped("DUALQ_MODULE_SOURCE names no Linux source: a tree or a tarball");
    };
    let headers = real_headers();
    if headers.is_empty() {
        return skipped("no kernel's headers are in /usr/src, and DUALQ_MODULE_HEADERS names none");
    }
    let folder = tempfile::tempdir().unwrap();
    for (number, headers) in headers.iter().enumerate() {
        let out = folder.path().join(number.to_string());
        let mut command = Command::new(env!("CARGO_BIN_EXE_dualq"));
        command.args(["module", "build", "--source"]).arg(&source);
        command.arg("--headers").arg(headers).arg("--out").arg(&out);
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{}: {}", headers.display(), stderr(&output));
        assert!(out.join("sch_dualpi2.ko").is_file());
    }
}
