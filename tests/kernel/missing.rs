//! What is said where the kernel, or something of it, is not there.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Output;

use tempfile::TempDir;

use crate::{command, error, kernel, text};

const RUN: [&str; 8] =
    ["run", "--world", "model,kernel", "--duration", "2s", "--no-progress", "--rate", "10mbit"];

/// A cache with the kernel that is used by default, but without some of its options.
fn cache_without(options: &[&str]) -> Option<(TempDir, String)> {
    let kernel = kernel()?;
    let cache = tempfile::tempdir().unwrap();
    let built = kernel.executable.parent().unwrap();
    let copy = cache.path().join("dualq/kernels").join(kernel.name());
    fs::create_dir_all(&copy).unwrap();
    symlink(&kernel.executable, copy.join("linux")).unwrap();
    fs::copy(built.join("facts.json"), copy.join("facts.json")).unwrap();
    let config = fs::read_to_string(built.join("config")).unwrap();
    let is_left = |line: &&str| !options.iter().any(|option| *line == format!("CONFIG_{option}=y"));
    let left: Vec<&str> = config.lines().filter(is_left).collect();
    assert_eq!(left.len() + options.len(), config.lines().count());
    fs::write(copy.join("config"), left.join("\n")).unwrap();
    Some((cache, kernel.version))
}

fn with_cache(cache: &Path, args: &[&str]) -> Output {
    command(args).env("XDG_CACHE_HOME", cache).output().unwrap()
}

#[test]
fn a_kernel_without_a_qdisc_or_congestion_control() {
    let Some((cache, version)) = cache_without(&["NET_SCH_DUALPI2", "TCP_CONG_DCTCP"]) else {
        return;
    };
    for (more, lacks, has, has_not) in [
        (["--qdisc", "dualpi2", "--cc", "cubic"], "the qdisc dualpi2", "fq_codel, ", "dualpi2, "),
        (
            ["--qdisc", "pie", "--cc", "dctcp"],
            "the congestion control dctcp",
            "bbr, cubic",
            "dctcp, ",
        ),
    ] {
        let output = with_cache(cache.path(), &[&RUN[..], &more].concat());
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()));
        let line = error(&output);
        let expected =
            format!("error: Linux {version} as it was built does not have {lacks}; it has ");
        let list = line.strip_prefix(&expected).unwrap_or_else(|| panic!("{line}"));
        assert!(list.contains(has) && !list.contains(has_not), "{line}");
    }
    // What it has, it runs.
    let output =
        with_cache(cache.path(), &[&RUN[..], &["--qdisc", "pie", "--cc", "cubic"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// The one test here that needs no kernel.
#[test]
fn no_kernel_at_all() {
    let cache = tempfile::tempdir().unwrap();
    let reference = "tests/data/linux-7.3/loss.jsonl";
    for args in [
        &RUN[..],
        &["check", reference, "--world", "kernel", "--no-progress"],
        &["kernel", "exec", "--", "true"],
    ] {
        let output = with_cache(cache.path(), args);
        assert_eq!(
            (output.status.code(), text(&output.stdout)),
            (Some(1), String::new()),
            "{args:?}"
        );
        let expected =
            "error: there is no kernel yet; `dualq kernel build` makes one in some minutes\n";
        assert_eq!(error(&output), expected);
    }
    assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 0);
}

#[test]
fn a_version_that_was_not_built() {
    let Some(kernel) = kernel() else { return };
    let output = command(&[&RUN[..], &["--kernel", "2.6"]].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let line = error(&output);
    assert!(line.starts_with("error: there is no kernel 2.6; there are: "), "{line}");
    assert!(line.contains(&kernel.version), "{line}");
}

/// Nor is it ignored where nothing would run on it.
#[test]
fn a_version_that_nothing_runs_on() {
    let reference = "tests/data/linux-7.3/loss.jsonl";
    for args in [
        &["run", "--rate", "10mbit", "--kernel", "9.9"][..],
        &["check", reference, "--kernel", "9.9"],
    ] {
        let output = command(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let expected = "error: --kernel 9.9: the model runs on no kernel; add --world kernel or leave it out\n";
        assert_eq!(error(&output), expected);
    }
}
