//! Metrics: in a file, at an address, and as the real Prometheus reads them.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tests_skipped::has;

use super::{end, run, watch};

const PACKAGE: &str = "prometheus";

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/prometheus").join(name)
}

/// The names of all metrics that there are, as the library's own test has them.
fn metrics() -> BTreeSet<String> {
    let path = "crates/watch/tests/snapshots/figures__metrics.snap";
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let mut names = BTreeSet::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').unwrap();
        let suffixes: &[&str] =
            if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
        names.extend(suffixes.iter().map(|suffix| format!("{name}{suffix}")));
    }
    names
}

/// Checks that all metrics that an expression asks for are there.
fn assert_known(expression: &str) {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let names = expression.split(|c| !is_name(c)).filter(|word| word.starts_with("dualq_"));
    let known = metrics();
    for name in names {
        assert!(known.contains(name), "there is no metric {name}: {expression}");
    }
}

fn promtool(args: &[&str], input: &str) {
    let mut command = Command::new("promtool");
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{args:?}: {said}");
}

#[test]
fn a_file_is_there_whole_and_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dualq.prom");
    fs::write(&path, "old").unwrap();
    let word = path.display().to_string();
    let (status, stdout, stderr) =
        run(&["--interval", "50ms", "--count", "2", "--prometheus", &word]);
    assert_eq!((status, stdout.as_str(), stderr.as_str()), (Some(0), "", ""));
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("# HELP dualq_build_info ") && text.ends_with('\n'), "{text}");
    // Nothing is beside it.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    if has("promtool", PACKAGE) {
        promtool(&["check", "metrics"], &text);
    }
}

#[test]
fn metrics_follow_prometheus_conventions() {
    if !has("promtool", PACKAGE) {
        return;
    }
    let path = "crates/watch/tests/snapshots/figures__metrics.snap";
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    // What insta writes stands above the text.
    let (_, text) = text.split_once("\n---\n").unwrap();
    assert!(text.starts_with("# HELP "), "{text}");
    promtool(&["check", "metrics"], &format!("{text}\n"));
}

/// One that answers at an address, until it is ended.
fn serve(address: &str) -> (Child, SocketAddr) {
    let mut command = watch(&["--interval", "100ms", "--prometheus", address]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.strip_prefix("note: metrics are at http://");
    let address = address.and_then(|line| line.trim().strip_suffix("/metrics"));
    (child, address.unwrap_or_else(|| panic!("{line}")).parse().unwrap())
}

fn get(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut connection = TcpStream::connect(address)?;
    write!(connection, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn an_address_answers_and_only_for_metrics() {
    for address in ["127.0.0.1:0", "[::1]:0", "0"] {
        if address.contains("::") && TcpListener::bind(address).is_err() {
            tests_skipped::skipped("this machine has no IPv6");
            continue;
        }
        let (mut child, address) = serve(address);
        assert!(address.ip().is_loopback());
        let answer = get(address, "/metrics").unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains("\ndualq_build_info{version="), "{answer}");
        assert!(get(address, "/").unwrap().starts_with("HTTP/1.1 404 "));
        assert_eq!(end(&mut child, Signal::SIGINT), Some(0));
    }
}

/// A process that is gone when the test is.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_real_prometheus_reads_them() {
    if !has("prometheus", PACKAGE) {
        return;
    }
    let (mut child, address) = serve("127.0.0.1:0");
    let folder = tempfile::tempdir().unwrap();
    // The example, of this address and without its patience.
    let config = fs::read_to_string(example("prometheus.yml")).unwrap();
    assert!(config.contains("127.0.0.1:9798") && config.contains("scrape_interval: 15s"));
    let config = config
        .replace("127.0.0.1:9798", &address.to_string())
        .replace("scrape_interval: 15s", "scrape_interval: 1s");
    fs::write(folder.path().join("prometheus.yml"), config).unwrap();
    fs::copy(example("alerts.yml"), folder.path().join("alerts.yml")).unwrap();
    let own = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let log = fs::File::create(folder.path().join("log")).unwrap();
    let mut command = Command::new("prometheus");
    command.arg("--config.file=prometheus.yml").arg("--storage.tsdb.path=data");
    command.arg(format!("--web.listen-address={own}")).current_dir(&folder);
    let prometheus = Killed(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
    let query = |expression: &str| -> Option<Value> {
        let answer = get(own, &format!("/api/v1/query?query={expression}")).ok()?;
        let (_, body) = answer.split_once("\r\n\r\n")?;
        let answer: Value = serde_json::from_str(body).ok()?;
        Some(answer["data"]["result"].get(0)?["metric"].clone())
    };
    let deadline = Instant::now() + Duration::from_secs(30);
    let metric = loop {
        if let Some(metric) = query("dualq_build_info") {
            break metric;
        }
        let log = fs::read_to_string(folder.path().join("log")).unwrap();
        assert!(Instant::now() < deadline, "{log}");
        thread::sleep(Duration::from_millis(200));
    };
    let expected = json!({
        "__name__": "dualq_build_info",
        "instance": address.to_string(),
        "job": "dualq",
        "version": env!("CARGO_PKG_VERSION"),
    });
    assert_eq!(metric, expected);
    // It took all of the page, not only what came before something that it cannot read.
    assert_eq!(query("up==1").unwrap()["job"], "dualq");
    drop(prometheus);
    assert_eq!(end(&mut child, Signal::SIGTERM), Some(0));
}

#[test]
fn alerts_are_raised_by_what_they_say() {
    let alerts = fs::read_to_string(example("alerts.yml")).unwrap();
    assert_known(&alerts);
    assert_known(&fs::read_to_string(example("alerts-test.yml")).unwrap());
    if has("promtool", PACKAGE) {
        promtool(&["check", "config", example("prometheus.yml").to_str().unwrap()], "");
        promtool(&["test", "rules", example("alerts-test.yml").to_str().unwrap()], "");
    }
}

#[test]
fn the_dashboard_asks_for_what_there_is() {
    let text = fs::read_to_string(example("dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let expressions: Vec<&str> = targets.map(|target| target["expr"].as_str().unwrap()).collect();
    assert!(expressions.len() >= panels.len(), "{panels:?}");
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        assert_known(&variable["query"].to_string());
    }
    for expression in &expressions {
        assert_known(expression);
    }
    if !has("promtool", PACKAGE) {
        return;
    }
    // As rules, of which promtool reads expressions; Grafana puts in what its variables are.
    let rules = expressions.iter().enumerate().map(|(number, expression)| {
        let expression = expression.replace("$__rate_interval", "1m");
        json!({ "record": format!("panel:{number}"), "expr": expression })
    });
    let groups = json!({ "groups": [{ "name": "panels", "rules": rules.collect::<Vec<_>>() }] });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("panels.yml");
    fs::write(&file, groups.to_string()).unwrap();
    promtool(&["check", "rules", file.to_str().unwrap()], "");
}
