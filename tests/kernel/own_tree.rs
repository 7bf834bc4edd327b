//! A kernel of somebody's own sources, beside that of the distribution's.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::{command, error, kernel, skipped, text};

const LINK: &str = "
duration = '10s'
warmup = '1s'
link = { rate = '10mbit', rtt = '20ms', qdisc = 'pfifo limit 30' }
";

/// Unpacks Linux's sources and gives them congestion controls that Linux does not have, as a patch would: one, and one more, by whose name
/// trees are known whose `bbr` is version 3.
fn patched(tarball: &Path, folder: &Path) {
    fs::create_dir(folder).unwrap();
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(tarball).args(["--strip-components=1", "--no-same-owner", "-C"]).arg(folder);
    assert!(tar.status().unwrap().success(), "{}", tarball.display());
    let ipv4 = folder.join("net/ipv4");
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/own-tree");
    let mut kconfig = fs::read_to_string(ipv4.join("Kconfig")).unwrap();
    let mut makefile = fs::read_to_string(ipv4.join("Makefile")).unwrap();
    for name in ["prague", "bbr1"] {
        let (file, option) = (format!("tcp_{name}"), format!("TCP_CONG_{}", name.to_uppercase()));
        fs::copy(own.join(format!("{file}.c")), ipv4.join(format!("{file}.c"))).unwrap();
        let (before, after) = kconfig.split_once("config TCP_CONG_BBR\n").unwrap();
        let entry = format!("config {option}\n\ttristate \"Not {name}\"\n\tdefault n\n\n");
        kconfig = format!("{before}{entry}config TCP_CONG_BBR\n{after}");
        makefile += &format!("obj-$(CONFIG_{option}) += {file}.o\n");
    }
    fs::write(ipv4.join("Kconfig"), kconfig).unwrap();
    fs::write(ipv4.join("Makefile"), makefile).unwrap();
}

#[test]
#[ignore = "builds a kernel, which takes some minutes: CONTRIBUTING.md has its command"]
fn a_congestion_control_of_an_own_tree_runs() {
    let Some(tarball) = env::var_os("DUALQ_KERNEL_SOURCE") else {
        return skipped("DUALQ_KERNEL_SOURCE names no tarball of Linux");
    };
    let Some(stock) = kernel() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (cache, tree) = (path("cache"), path("tree"));
    let stored = cache.join("dualq/kernels");
    fs::create_dir_all(&stored).unwrap();
    symlink(stock.executable.parent().unwrap(), stored.join(stock.name())).unwrap();
    patched(Path::new(&tarball), &tree);
    for cc in ["prague", "reno", "bbr", "bbr3"] {
        fs::write(path(cc), format!("{LINK}flow = [{{ cc = '{cc}' }}]\n")).unwrap();
    }
    let tree = tree.to_str().unwrap();
    let dualq =
        |args: &[&str]| -> Output { command(args).env("XDG_CACHE_HOME", &cache).output().unwrap() };
    let stdout = |args: &[&str]| {
        let output = dualq(args);
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    let json = |args: &[&str]| -> Value { serde_json::from_str(&stdout(args)).unwrap() };

    // One of the same version may be there: it is not taken for this one.
    assert!(stdout(&["kernel", "build", "--source", tree]).contains(" is built"));
    assert!(stdout(&["kernel", "build", "--source", tree]).contains(" is there already"));
    let listed = json(&["kernel", "list", "--json"])["kernels"].as_array().unwrap().clone();
    assert_eq!(listed.len(), 2, "{listed:?}");
    let own = listed.iter().find(|kernel| kernel["origin"]["kind"] == "directory").unwrap();
    let controls = |kernel: &Value| kernel["congestion_controls"].as_array().unwrap().clone();
    assert!(controls(own).contains(&"prague".into()), "{own}");
    let name = own["name"].as_str().unwrap();
    assert!(name.starts_with(own["version"].as_str().unwrap()) && name != stock.name(), "{name}");
    if own["version"] == stock.version.as_str() {
        let table = stdout(&["kernel", "list"]);
        assert!(table.contains(&format!("\n{name}  default")), "{table}");
    }

    let available = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let has = stdout(&["kernel", "exec", "--kernel", name, "--", "cat", available]);
    assert!(has.split_whitespace().any(|control| control == "prague"), "{has}");
    let run = |cc: &str, kernel: &str| {
        let scenario = path(cc);
        let there = ["--world", "kernel", "--kernel", kernel, "--no-progress", "--json"];
        dualq(&[&["run", scenario.to_str().unwrap()][..], &there].concat())
    };
    let outcome = |cc: &str| {
        let output = run(cc, name);
        assert!(output.status.success(), "{cc}: {}", text(&output.stderr));
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let run = &document["runs"][0];
        assert_eq!(run["kernel"], name);
        run["outcome"].clone()
    };
    let flow = &outcome("prague")["flow"][0];
    let goodput = flow["total_mbit"].as_f64().unwrap();
    assert!((8.0..10.0).contains(&goodput) && flow["retransmits"].as_u64() > Some(0), "{flow}");
    // Where version 1 has another name, it is meant by `bbr` all the same: here it is Reno, and `bbr3` is not.
    let reno = outcome("reno");
    assert_eq!(outcome("bbr"), reno);
    assert_ne!(outcome("bbr3"), reno);

    for cc in ["prague", "bbr3"] {
        let refused = run(cc, stock.name());
        assert_eq!((refused.status.code(), text(&refused.stdout)), (Some(2), String::new()));
        let expected = format!(
            "error: Linux {} as it was built does not have the congestion control {cc}; it has bbr, cubic, ",
            stock.version
        );
        assert!(error(&refused).starts_with(&expected), "{}", text(&refused.stderr));
    }
}
