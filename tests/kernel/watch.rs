//! `dualq watch` beside the kernel's own disciplines under load: what they tell is what two flows make of them.

use serde_json::Value;
use tests_skipped::has;

use crate::{kernel, stdout};

/// Two flows through 10 Mbit/s, to another namespace of the guest; `$0` is the program, `$1` the discipline.
const LOADED: &str = r#"
set -e
ip link add name v0 type veth peer name v1
unshare --net sleep 1000 & far=$!
sleep 0.3
ip link set v1 netns $far
ip addr add 10.0.0.1/24 dev v0
ip link set v0 up
nsenter --target $far --net sh -c 'ip addr add 10.0.0.2/24 dev v1; ip link set v1 up'
"$0" on-boot --state /run/state v0 "htb rate 10mbit leaf $1"
nsenter --target $far --net python3 -c '
import socket, threading
server = socket.create_server(("10.0.0.2", 9))
def sink(flow):
    while flow.recv(65536): pass
while True: threading.Thread(target=sink, args=(server.accept()[0],), daemon=True).start()' &
python3 -c '
import socket, threading, time
def send():
    while True:
        try: flow = socket.create_connection(("10.0.0.2", 9)); break
        except OSError: time.sleep(0.1)
    while True: flow.send(bytes(65536))
for _ in range(2): threading.Thread(target=send, daemon=True).start()
time.sleep(1000)' &
until "$0" watch v0 --json --count 1 --interval 200ms | grep -q '"connections":2'; do sleep 0.1; done
sleep 1
"$0" watch v0 --json --count 1 --interval 2s
"#;

#[test]
fn what_disciplines_tell_under_load() {
    if kernel().is_none() || !has("python3", "python3") || !has("ip", "iproute2") {
        return;
    }
    // What is told is of one moment. Whoever left a queue last has waited until the packet before it had left, 1.2 ms, and no longer than a
    // controller lets anybody wait.
    let at_least = 1514.0 * 8.0 / 10e3;
    for (line, queue, at_most) in [
        ("dualpi2", "C", 40.0),
        ("fq_codel", "flows", 60.0),
        ("cake diffserv3", "Best Effort", 40.0),
        ("pie", "", 80.0),
        ("codel", "", 60.0),
    ] {
        let program = env!("CARGO_BIN_EXE_dualq");
        let told = stdout(&["kernel", "exec", "--", "sh", "-c", LOADED, program, line]);
        let figures: Value = serde_json::from_str(&told).unwrap();
        let number = |of: &Value| of.as_f64().unwrap_or_else(|| panic!("{told}"));
        let [htb, leaf] = &figures["qdiscs"].as_array().unwrap()[..] else { panic!("{told}") };
        assert_eq!((&htb["kind"], &htb["parent"]), (&"htb".into(), &"root".into()));
        assert_eq!(leaf["kind"], line.split(' ').next().unwrap());
        assert_eq!(leaf["parent"], format!("{}1", htb["handle"].as_str().unwrap()));
        // The shaper's rate, with headers, and as much of what is inside.
        assert!((9.7..10.3).contains(&number(&leaf["rate_mbit"])), "{told}");
        assert_eq!(htb["packets"], leaf["packets"]);
        let queues = leaf["queues"].as_array().unwrap();
        let found = queues.iter().find(|one| one["name"] == queue).unwrap();
        assert!((at_least..at_most).contains(&number(&found["delay_ms"])), "{line}: {told}");
        let [tcp] = &figures["tcp"].as_array().unwrap()[..] else { panic!("{told}") };
        assert_eq!((&tcp["connections"], &tcp["active"]), (&2.into(), &2.into()));
        // Of a full frame of 1514 bytes 1448 are payload.
        let goodput = number(&leaf["rate_mbit"]) * 1448.0 / 1514.0;
        assert!((number(&tcp["goodput_mbit"]) / goodput - 1.0).abs() < 0.05, "{told}");
        let (drops, again) = (number(&leaf["drops"]), number(&tcp["retransmitted"]));
        assert!(drops > 0.0, "{told}");
        // A packet that is not let into a queue of this machine has not been sent to Linux, and is not sent again: so with pie.
        let is_let_in = line != "pie";
        assert_eq!(again > 0.0, is_let_in, "{told}");
    }
}
