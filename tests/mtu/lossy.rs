//! A path that loses packets of all sizes must not be taken for one that eats large ones.

use std::net::UdpSocket;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::network::{Ends, Middle, Network, skipped};
use crate::{HOSTS, command};

/// A flood through a narrow queue that counts packets, not bytes: what arrives when it is full is lost, large or small.
#[test]
fn a_lossy_path_is_no_black_hole() {
    let Some(network) = Network::build(Middle::Whole) else { return };
    let narrow = "qdisc add dev right root handle 1: tbf rate 6mbit burst 3000 latency 1s";
    let short = "qdisc add dev right parent 1:1 handle 2: pfifo limit 6";
    for line in [narrow, short] {
        let tc = |line: &str| Command::new("tc").args(line.split_whitespace()).output();
        match network.inside("r1", || tc(line)) {
            Ok(output) if output.status.success() => {}
            _ => return skipped("tc cannot make a narrow queue here"),
        }
    }
    // Somebody listens, or b would spend its rationed ICMP on the flood.
    let sink = network.inside("b", || UdpSocket::bind("10.9.3.2:9").unwrap());
    let source = network.inside("a", || UdpSocket::bind("0.0.0.0:0").unwrap());
    source.connect("10.9.3.2:9").unwrap();
    let ended = AtomicBool::new(false);
    let surveys: Vec<Value> = thread::scope(|scope| {
        let _ends = Ends(&ended);
        scope.spawn(|| {
            // Two of 714 bytes each 1.1 ms or so are 10 Mbit/s; 6 get through.
            while !ended.load(Ordering::Relaxed) {
                let _ = source.send(&[0; 672]).and_then(|_| source.send(&[0; 672]));
                thread::sleep(Duration::from_micros(1_050));
            }
        });
        let surveys = (0..3).map(|_| {
            let output = network.inside("a", || command(&[HOSTS[0], "--json"]).output().unwrap());
            serde_json::from_slice::<Value>(&output.stdout).unwrap()["addresses"][0].clone()
        });
        surveys.collect()
    });
    drop(sink);
    let mut lost = 0;
    for survey in &surveys {
        let verdict = survey["verdict"].as_str().unwrap();
        assert!(["whole", "lossy"].contains(&verdict), "{survey:#}");
        for method in ["echo", "udp"] {
            lost += survey[method]["fitting_lost"].as_u64().unwrap();
        }
    }
    assert!(lost > 0, "nothing was lost, so nothing was tested: {surveys:#?}");
}
