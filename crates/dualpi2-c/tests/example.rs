//! The header in a C and a C++ compiler, and the examples compiled, linked with the static library and run.

mod compiled;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use compiled::{compiler, include, library, scratch, succeed};
use tests_skipped::skipped;

#[test]
fn the_header_stands_alone_in_cpp() {
    let Some(compiler) = compiler("CXX", "c++") else { return };
    let source = scratch().join("header.cc");
    fs::write(&source, "#include \"dualpi2.h\"\n").unwrap();
    let mut command = Command::new(compiler);
    command.args(["-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]);
    succeed(command.arg("-I").arg(include()).arg(source));
}

/// An example, linked with the static library; none without a compiler.
fn built(name: &str) -> Option<PathBuf> {
    let compiler = compiler("CC", "cc")?;
    let program = scratch().join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(format!("{name}.c"));
    let mut command = Command::new(compiler);
    command.args(["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I"]).arg(include());
    command.arg(source).arg(library("a")).arg("-o").arg(&program);
    if cfg!(target_os = "linux") {
        command.args(["-lpthread", "-ldl", "-lm"]);
    }
    succeed(&mut command);
    Some(program)
}

/// A burst through the relay arrives in order, and no faster than its rate.
#[test]
#[cfg(target_os = "linux")]
fn the_poll_loop_forwards_at_its_rate() {
    const COUNT: u32 = 40;
    const RATE: u32 = 4_000_000;
    let Some(program) = built("poll") else { return };
    let sink = UdpSocket::bind("127.0.0.1:0").unwrap();
    sink.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let port = |socket: &UdpSocket| socket.local_addr().unwrap().port();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    // A port that was free a moment ago.
    let into = port(&UdpSocket::bind("127.0.0.1:0").unwrap());
    let (target, rate) = (port(&sink).to_string(), RATE.to_string());
    let mut command = Command::new(program);
    command.args([into.to_string(), target, rate]).stdout(Stdio::piped());
    let mut relay = command.spawn().unwrap();
    let mut lines = BufReader::new(relay.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    let begun = Instant::now();
    for number in 0..COUNT {
        let mut payload = [0; 1000];
        payload[..4].copy_from_slice(&number.to_be_bytes());
        sender.send_to(&payload, ("127.0.0.1", into)).unwrap();
    }
    let (mut arrived, mut took, mut payload) = (Vec::new(), Duration::ZERO, [0; 2000]);
    while let Ok(1000) = sink.recv(&mut payload) {
        took = begun.elapsed();
        arrived.push(u32::from_be_bytes(payload[..4].try_into().unwrap()));
    }
    assert!(relay.wait().unwrap().success());
    let said = lines.next().unwrap().unwrap();
    let words: Vec<u32> = said.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [received, sent, marked, dropped] = words[..] else { panic!("{said}") };
    // Without ECN nothing is marked.
    assert_eq!((received, sent + dropped, marked), (COUNT, COUNT, 0), "{said}");
    assert!(
        arrived.is_sorted() && arrived.len() == sent as usize && sent > 1,
        "{said}: {arrived:?}"
    );
    let least = f64::from(sent - 1) * 1042.0 * 8.0 / f64::from(RATE);
    assert!(took.as_secs_f64() >= least, "{took:?}, {least} s");
}

#[test]
fn the_example_runs_and_its_books_balance() {
    let Some(program) = built("link") else { return };
    let output = succeed(&mut Command::new(program));
    println!("{output}");

    let row = |name: &str| {
        let line = output.lines().find(|line| line.starts_with(name)).expect(name);
        let cells = line.split_whitespace().skip(1).take(6);
        cells.map(|cell| cell.parse::<f64>().expect(cell)).collect::<Vec<f64>>()
    };
    let (l4s, ect0, not_ect) = (row("ECT(1)"), row("ECT(0)"), row("Not-ECT"));
    for flow in [&l4s, &ect0, &not_ect] {
        let [packets_in, out, _, dropped, queued, _] = flow[..] else { panic!("{flow:?}") };
        assert!((packets_in - out - dropped - queued).abs() < 0.5, "{flow:?}");
        assert!(packets_in > 4_000.0, "{flow:?}");
    }
    let share = |flow: &[f64], column: usize| flow[column] / flow[0];
    let (marked, dropped, wait) = (2, 3, 5);
    assert!(share(&not_ect, marked) < 1e-9, "no mark without ECN");
    assert!(share(&not_ect, dropped) > 0.05 && share(&ect0, marked) > 0.05, "congestion is told");
    assert!(share(&l4s, marked) > 2.0 * share(&ect0, marked), "and to L4S more often");
    assert!(l4s[wait] < 2.0 && ect0[wait] > 5.0 && ect0[wait] < 40.0, "L4S hardly waits");
}

/// `make install`, and a program that pkg-config links with the shared library: it looks for the version by its SONAME.
#[test]
#[cfg(target_os = "linux")]
fn what_is_installed_is_found_by_pkg_config_and_by_the_loader() {
    let Some(compiler) = compiler("CC", "cc") else { return };
    for tool in ["make", "pkg-config"] {
        if Command::new(tool).arg("--version").output().is_err() {
            return skipped(&format!("there is no program {tool}"));
        }
    }
    let prefix = scratch().join("installed");
    let _ = fs::remove_dir_all(&prefix);
    let build = library("so").parent().unwrap().to_owned();
    let mut make = Command::new("make");
    make.arg("-C").arg(env!("CARGO_MANIFEST_DIR")).arg("install");
    make.arg(format!("PREFIX={}", prefix.display())).arg(format!("BUILD={}", build.display()));
    succeed(&mut make);

    let mut pkg_config = Command::new("pkg-config");
    pkg_config.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    let version = succeed(
        Command::new("pkg-config")
            .arg("--modversion")
            .arg("dualpi2")
            .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")),
    );
    assert_eq!(version.trim(), env!("CARGO_PKG_VERSION"));
    let flags = succeed(pkg_config.args(["--cflags", "--libs", "dualpi2"]));
    let program = scratch().join("link-shared");
    let mut command = Command::new(compiler);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/link.c"));
    command.args(flags.split_whitespace()).arg("-o").arg(&program);
    succeed(&mut command);
    // Only the name with the version's first number is there: a library without SONAME would be looked for without it.
    fs::remove_file(prefix.join("lib/libdualpi2_c.so")).unwrap();
    let output = succeed(Command::new(program).env("LD_LIBRARY_PATH", prefix.join("lib")));
    assert!(output.contains("ECT(1)"), "{output}");
}
