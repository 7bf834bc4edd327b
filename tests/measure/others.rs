//! Where no `dualq serve` is at the other end: stock iperf3 servers, web servers.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;

use dualq_measure::{Direction, Measurement, Method, Server};

use tests_skipped::has;

use super::{DUALQ, able, dualq, folder};

const LINK: [&str; 6] =
    ["--rtt", "30ms", "--down", "20mbit pfifo limit 100", "--up", "8mbit pfifo limit 50"];

/// Measures across a link by these words; `far` is what runs at the far end.
fn measured(far: &[&str], before: &str, words: &str) -> Measurement {
    let near = format!("{before} {DUALQ} measure {words} --no-progress --json");
    let args = [&["shell", "--quiet"], &LINK[..], far, &["--", "bash", "-c", &near]].concat();
    let (output, stdout, stderr) = dualq(folder().path(), &args);
    assert!(output.status.success(), "{stderr}");
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}"))
}

fn is_near(mbit: f64, expected: f64) {
    assert!((mbit / expected - 1.0).abs() <= 0.03, "{mbit} {expected}");
}

#[test]
fn a_stock_iperf3_server_will_do() {
    if !able() || !has("iperf3", "iperf3") {
        return;
    }
    let near = "until echo 2>/dev/null >/dev/tcp/$FAR/5201; do sleep 0.1; done; sleep 0.5; exec";
    let measured = measured(
        &["--far", "iperf3 --server >/dev/null 2>&1"],
        near,
        "$FAR --iperf3 --cc reno --max-time 40s",
    );
    assert_eq!((measured.server, measured.ecn.len()), (Server::Iperf3, 0));
    let down = measured.under(Direction::Download).unwrap();
    let up = measured.under(Direction::Upload).unwrap();
    is_near(down.down.as_ref().unwrap().line_mbit, 20.0);
    is_near(up.up.as_ref().unwrap().line_mbit, 8.0);
    assert!(measured.under(Direction::Both).is_some());
    assert!((30.0..30.5).contains(&measured.base_rtt_ms().unwrap()));
    for (stage, load) in [(down, &down.down), (up, &up.up)] {
        let load = load.as_ref().unwrap();
        // What the flows' kernels see is the queue, whichever end they are of.
        let (icmp, flows) = (stage.rtt(Method::Icmp).unwrap(), load.srtt.as_ref().unwrap());
        assert!(
            (flows.p50_ms / icmp.p50_ms - 1.0).abs() < 0.15,
            "{} {}",
            flows.p50_ms,
            icmp.p50_ms
        );
        assert!(load.retransmits.is_some() && load.cc.as_deref() == Some("reno"));
        assert!(stage.rtt(Method::Tcp).is_none() && stage.rpm.is_none());
    }
    assert_eq!((down.down.as_ref().unwrap().ce, up.up.as_ref().unwrap().ce), (None, Some(0)));
}

#[test]
fn a_web_servers_large_file_will_do() {
    if !able() {
        return;
    }
    // Each flow's file is over in the middle, and begins anew.
    let measured = measured(&[], "exec", "--http http://$FAR/3M --streams 2");
    assert_eq!((measured.server, measured.loaded.len()), (Server::Http, 1));
    let down = measured.under(Direction::Download).unwrap();
    let load = down.down.as_ref().unwrap();
    is_near(load.line_mbit, 20.0);
    assert_eq!((load.retransmits, load.segments), (None, None));
    let [icmp, connect] = [Method::Icmp, Method::Connect].map(|by| down.rtt(by).unwrap().p50_ms);
    assert!((connect / icmp - 1.0).abs() < 0.15 && connect > 40.0, "{connect} {icmp}");
    assert!((30.0..30.5).contains(&measured.base_rtt_ms().unwrap()));
}

/// What is said of a server at loopback which says that to everybody.
fn said_of(answer: &'static [u8], words: &[&str]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let _ = (&stream).read(&mut [0; 4096]);
            let _ = (&stream).write_all(answer);
        }
    });
    let words: Vec<String> = words.iter().map(|word| word.replace("PORT", &port)).collect();
    let args: Vec<&str> =
        ["measure", "--no-progress"].into_iter().chain(words.iter().map(String::as_str)).collect();
    let (output, stdout, stderr) = dualq(folder().path(), &args);
    assert_eq!((output.status.code(), stdout.as_str()), (Some(1), ""), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    stderr
}

#[test]
fn servers_that_are_none_are_told_in_one_line() {
    let http: [(&[u8], &str); 5] = [
        (b"HTTP/1.1 404 Not Here\r\n\r\n", "the answer is 404 Not Here"),
        (
            b"HTTP/1.1 301 Moved\r\nLocation: https://a.example/x\r\n\r\n",
            "it is elsewhere (301): https://a.example/x",
        ),
        (b"SSH-2.0-OpenSSH\r\n", "no web server: its answer is no HTTP"),
        (b"", "no web server: it closed the connection without an answer"),
        (b"HTTP/1.1 200 OK\r\n\r\nshort", "it was over after 0.0 s"),
    ];
    for (answer, what) in http {
        let said = said_of(answer, &["--http", "http://127.0.0.1:PORT/x"]);
        assert!(said.contains(what), "{said}");
    }
    let iperf3: [(&[u8], &str); 4] = [
        (b"\xff", "it is busy with another test"),
        (b"\xfe\0\0\0\x65\0\0\0\x0d", "it reports its error 101: Permission denied"),
        (b"SSH-2.0-OpenSSH\r\n", "no iperf3 server: it goes to a state 83"),
        (b"", "no iperf3 server: it closed the connection"),
    ];
    for (answer, what) in iperf3 {
        let said = said_of(answer, &["127.0.0.1", "--iperf3", "--port", "PORT"]);
        assert!(said.contains(what), "{said}");
    }
}
