//! `dualq kernel exec`: a disposable machine for tests.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;
use std::thread;

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

use crate::{assert_nothing_left, command, dualq, error, kernel, skipped, stdout, text};

fn exec<'a>(words: &[&'a str]) -> Vec<&'a str> {
    ["kernel", "exec", "--"].iter().chain(words).copied().collect()
}

#[test]
fn a_command_has_its_status_and_its_two_outputs() {
    if kernel().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let output = command(&exec(&["sh", "-c", "echo out; echo err >&2; exit 7"]))
        .env("TMPDIR", folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(7));
    assert_eq!((text(&output.stdout), text(&output.stderr)), ("out\n".into(), "err\n".into()));
    assert_nothing_left(folder.path());

    let output = dualq(&exec(&["sh", "-c", "kill -KILL $$"]));
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(error(&output), "error: the command was ended by a signal\n");
    let output = dualq(&exec(&["no-such-program"]));
    assert_eq!(output.status.code(), Some(1));
    assert!(error(&output).contains("cannot run no-such-program in the guest"));
}

#[test]
fn the_machine_sees_the_host_but_cannot_change_it() {
    let Some(kernel) = kernel() else { return };
    assert_eq!(stdout(&exec(&["uname", "-r"])).trim(), kernel.version);
    assert_eq!(stdout(&exec(&["pwd"])).trim(), env!("CARGO_MANIFEST_DIR"));
    assert_eq!(stdout(&exec(&["id", "-u"])).trim(), "0");
    assert_eq!(stdout(&exec(&["cat", "Cargo.toml"])), fs::read_to_string("Cargo.toml").unwrap());
    // A file that its user could write to outside.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "before").unwrap();
    for (what, path) in [("a new file", Path::new("/dualq-was-here")), ("a file", &file)] {
        let output = dualq(&exec(&["sh", "-c", "echo after > \"$0\"", path.to_str().unwrap()]));
        assert!(!output.status.success(), "{what}");
        assert!(text(&output.stderr).contains("Read-only file system"), "{what}");
    }
    assert!(!Path::new("/dualq-was-here").exists());
    assert_eq!(fs::read_to_string(&file).unwrap(), "before");
    // What a program needs for itself is there, and gone with the machine.
    let temporary = "echo mine > $TMPDIR/file && cat $TMPDIR/file; test -e /run/file";
    assert_eq!(stdout(&exec(&["sh", "-c", temporary])), "mine\n");
}

/// Root in the guest can mount any folder of the host's; what it then does there is up to the host's kernel.
#[test]
fn a_command_that_mounts_the_hosts_files_cannot_change_them() {
    if kernel().is_none() {
        return;
    }
    if let Some(why) = dualq_guest::unconfined() {
        return skipped(&why);
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("file"), "before").unwrap();
    fs::create_dir(at("sub")).unwrap();
    let look = || {
        let file = fs::metadata(at("file")).unwrap();
        let mut names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        let content = fs::read_to_string(at("file")).unwrap();
        (file.mode(), file.uid(), file.gid(), file.mtime(), file.mtime_nsec(), content, names)
    };
    let before = look();
    let mount = "mkdir /run/h && mount -t hostfs h /run/h -o \"$0\" && cd /run/h || exit 9\n";
    for attack in [
        "echo after > file",
        "echo after >> file",
        "echo x > new",
        "rm file",
        "rmdir sub",
        "mkdir more",
        "mv file sub/file",
        "mv file file2",
        "ln file hard",
        "ln -s /etc/passwd soft",
        "mkfifo pipe",
        "truncate -s 0 file",
        "chmod 777 file",
        "chmod 4755 sub",
        "chown 12345 file",
        "touch -d 2001-01-01 file",
        "dd if=/dev/zero of=file conv=notrunc bs=1 count=3",
    ] {
        // That it fails inside too is not asked for: some of it may only seem to have worked there.
        let script = format!("{mount}cat file >/run/seen && {attack}; cat /run/seen");
        let output = dualq(&exec(&["sh", "-c", &script, folder.path().to_str().unwrap()]));
        let seen = text(&output.stdout);
        assert!(seen.ends_with("before"), "{attack}: {seen} {}", text(&output.stderr));
        assert_eq!(look(), before, "{attack}");
    }
    // Nor can it where it was given a folder to write to.
    let etc = tempfile::tempdir().unwrap();
    let script =
        format!("{mount}echo after > file; rm file; echo mine > /etc/mine; chmod 600 /etc/mine");
    let path = folder.path().to_str().unwrap();
    let etc_words = ["kernel", "exec", "--etc", etc.path().to_str().unwrap(), "--"];
    let output = dualq(&[&etc_words[..], &["sh", "-c", &script, path]].concat());
    assert_eq!(look(), before, "{}", text(&output.stderr));
    let mine = etc.path().join("mine");
    assert_eq!(fs::read_to_string(&mine).unwrap(), "mine\n");
    assert_eq!(fs::metadata(&mine).unwrap().mode() & 0o7777, 0o600);
}

/// What the host cannot hold is said before the command starts.
#[test]
fn a_host_without_landlock_is_told_of() {
    if kernel().is_none() {
        return;
    }
    const LANDLOCK_CREATE_RULESET: i64 = 444;
    const ENOSYS: u32 = 38;
    let old_host = SeccompFilter::new(
        [(LANDLOCK_CREATE_RULESET, Vec::new())].into(),
        SeccompAction::Allow,
        SeccompAction::Errno(ENOSYS),
        TargetArch::x86_64,
    );
    let old_host: BpfProgram = old_host.unwrap().try_into().unwrap();
    let output = thread::spawn(move || {
        seccompiler::apply_filter(&old_host).unwrap();
        dualq(&exec(&["echo", "done"]))
    });
    let output = output.join().unwrap();
    assert_eq!(text(&output.stdout), "done\n");
    let said = text(&output.stderr);
    assert!(said.starts_with("note: this host's kernel has no Landlock"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn a_restart_ends_the_machine() {
    if kernel().is_none() {
        return;
    }
    if !Path::new("/sbin/reboot").exists() {
        return skipped("there is no program /sbin/reboot");
    }
    let folder = tempfile::tempdir().unwrap();
    let output = command(&exec(&["sh", "-c", "echo before; reboot -f; echo behind"]))
        .env("TMPDIR", folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), "before\n");
    // Some programs of that name have something to say themselves.
    let said = text(&output.stderr);
    assert!(said.lines().last().unwrap().starts_with("error: the guest restarted"), "{said}");
    assert_nothing_left(folder.path());
}

#[test]
fn the_only_network_is_loopback() {
    if kernel().is_none() {
        return;
    }
    let script = "ls /sys/class/net; cat /sys/class/net/lo/flags";
    // IFF_UP and IFF_LOOPBACK.
    assert_eq!(stdout(&exec(&["sh", "-c", script])), "lo\n0x9\n");
}

/// A reboot: another machine with the same folder as its /etc.
#[test]
fn etc_outlives_the_machine() {
    if kernel().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let etc = folder.path().to_str().unwrap();
    let exec = |words: &[&str]| dualq(&[&["kernel", "exec", "--etc", etc, "--"], words].concat());
    let written = exec(&[
        "sh",
        "-c",
        "mkdir /etc/sysctl.d; echo net.ipv4.tcp_ecn=1 > /etc/sysctl.d/90-ecn.conf",
    ]);
    assert!(written.status.success(), "{}", text(&written.stderr));
    assert_eq!(
        fs::read_to_string(folder.path().join("sysctl.d/90-ecn.conf")).unwrap(),
        "net.ipv4.tcp_ecn=1\n"
    );
    let read = exec(&["cat", "/etc/sysctl.d/90-ecn.conf"]);
    assert_eq!(text(&read.stdout), "net.ipv4.tcp_ecn=1\n");
    let missing = dualq(&["kernel", "exec", "--etc", "no/such/folder", "--", "true"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(error(&missing).contains("no/such/folder"));
}

/// The guest has a /proc and a /run of its own.
#[test]
fn a_current_folder_that_the_guest_does_not_have() {
    if kernel().is_none() {
        return;
    }
    let folder = format!("/proc/{}", std::process::id());
    let output = command(&exec(&["true"])).current_dir(&folder).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let expected = format!("error: the current folder, {folder}, is not there in the guest\n");
    assert_eq!(error(&output), expected);
}

/// What dualq asks of the kernel, asked of one that has all of it: the tests of `dualq-netlink`, as root and none skipped. Cargo
/// finds their program, as it was built for the whole workspace, and runs it through `dualq kernel exec`.
#[test]
fn netlink_passes_its_tests_on_the_machine() {
    if kernel().is_none() {
        return;
    }
    let program = Path::new(env!("CARGO_BIN_EXE_dualq"));
    let target = program.ancestors().nth(2).unwrap();
    let runner = [program.to_str().unwrap(), "kernel", "exec", "--", "env", "DUALQ_IN_GUEST=1"];
    let output = Command::new(env!("CARGO"))
        .args(["test", "--locked", "--offline", "--workspace", "--test", "rtnetlink"])
        .arg("--config")
        .arg(format!("target.'cfg(all())'.runner = {runner:?}"))
        .arg("--target-dir")
        .arg(target)
        // One at a time, so that what one says is not in the middle of another's line.
        .args(["--", "--test-threads", "1"])
        // What is sent at times of its own wants real time, and this kernel has no IPv6.
        .args(["--skip", "arrivals::", "--skip", "address_of_one_link"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("skipped: "), "{said}");
    assert!(said.contains("test qdiscs::dualpi2_added_as_tc_adds_it ... ok"), "{said}");
}
