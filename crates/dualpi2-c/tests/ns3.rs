//! The queue discipline of ns-3 that the examples have: what becomes of each packet there is what Linux's own code did with it, in the recorded traces whose options it has.
//!
//! Wants ns-3 with its headers, as the wheel of PyPI has them (`pip install ns3`); `DUALQ_NS3` names another folder with `include` and `lib64` or `lib`.

mod compiled;

use std::env;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use compiled::{compiler, include, library, scratch, succeed};
use serde_json::Value;
use tests_skipped::skipped;

/// The traces: neither aggregates nor priorities, and options that the example has as attributes.
const TRACES: [(&str, &[&str]); 8] = [
    ("defaults", &[]),
    ("target_5ms", &["Target=5ms"]),
    ("mask_any_ect", &["AnyEct=true"]),
    ("limit_20", &["Limit=20"]),
    ("jumbo", &["Target=1ms", "Mtu=9000"]),
    ("overload_drop", &[]),
    ("idle_and_bursts", &[]),
    ("slow_1mbit", &[]),
];

/// Where ns-3 is.
fn installed() -> Option<PathBuf> {
    let named = env::var_os("DUALQ_NS3").map(PathBuf::from);
    let found = named.or_else(|| {
        let script =
            "import importlib.util as u; print(u.find_spec('ns3').submodule_search_locations[0])";
        let output = Command::new("python3").args(["-c", script]).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().into())
    });
    found.filter(|folder| folder.join("include/ns3/queue-disc.h").is_file())
}

/// The example, linked with ns-3.
fn built(ns3: &Path) -> Option<PathBuf> {
    let compiler = compiler("CXX", "c++")?;
    let libraries =
        ["lib64", "lib"].map(|name| ns3.join(name)).into_iter().find(|path| path.is_dir());
    let libraries = libraries.expect("ns-3 has libraries");
    // Their names have the version in them.
    let names: Vec<String> = fs::read_dir(&libraries)
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| {
            let parts = ["-core.so", "-network.so", "-traffic-control.so", "-internet.so"];
            name.starts_with("libns3") && parts.iter().any(|part| name.ends_with(part))
        })
        .collect();
    let program = scratch().join("ns3-arrivals");
    let mut command = Command::new(compiler);
    command.args(["-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I"]).arg(include());
    command.arg("-isystem").arg(ns3.join("include"));
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/ns3/arrivals.cc"));
    command.arg(library("a")).arg("-L").arg(&libraries);
    command.arg(format!("-Wl,-rpath,{}", libraries.display()));
    command.args(names.iter().map(|name| format!("-l:{name}"))).args(["-lpthread", "-ldl", "-lm"]);
    succeed(command.arg("-o").arg(&program));
    Some(program)
}

/// What stands behind the titles of the columns.
fn recorded(name: &str, what: &str) -> String {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/dualpi2-vectors");
    let file = File::open(data.join(format!("{name}.{what}.csv.xz"))).unwrap();
    let mut text = String::new();
    lzma_rust2::XzReader::new(file, false).read_to_string(&mut text).unwrap();
    let titles = text.find("t_ns,").unwrap();
    text[titles..].split_once('\n').unwrap().1.to_owned()
}

#[test]
fn what_becomes_of_packets_in_ns3_is_what_linux_did() {
    let Some(ns3) = installed() else {
        return skipped("there is no ns-3: pip install ns3, or DUALQ_NS3 names where it is");
    };
    let Some(program) = built(&ns3) else { return };
    let index =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/dualpi2-vectors/index.json");
    let index: Vec<Value> = serde_json::from_str(&fs::read_to_string(index).unwrap()).unwrap();
    for (name, attributes) in TRACES {
        let vector = index.iter().find(|vector| vector["name"] == name).unwrap();
        let mut command = Command::new(&program);
        command.arg(vector["rate_bps"].to_string()).args(attributes);
        command.arg(format!("Seed={}", vector["seed"].as_str().unwrap()));
        let mut running = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // It reads all before it writes.
        let mut arrivals = running.stdin.take().unwrap();
        arrivals.write_all(recorded(name, "trace").as_bytes()).unwrap();
        drop(arrivals);
        let output = running.wait_with_output().unwrap();
        assert!(output.status.success(), "{name}");
        let fates = String::from_utf8(output.stdout).unwrap();
        let outcome = recorded(name, "outcome");
        let is_packets = |line: &&str| !line.starts_with('#') && !line.contains(",timer,");
        let expected: Vec<&str> = outcome.lines().filter(is_packets).collect();
        assert!(expected.len() > 3000, "{name}");
        for (number, (line, expected)) in fates.lines().zip(&expected).enumerate() {
            assert_eq!(line, *expected, "{name}, line {number}");
        }
        assert_eq!(fates.lines().count(), expected.len(), "{name}");
    }
}
