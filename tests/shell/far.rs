//! What programs meet behind the link: its rate, its round trip, and the far end.

use tests_skipped::has;

use super::{able, run};

const DUALQ: &str = env!("CARGO_BIN_EXE_dualq");

#[test]
fn ping_sees_the_round_trip() {
    if !able() || !has("ping", "iputils-ping") {
        return;
    }
    for target in ["$FAR", "$FAR6", "far"] {
        let args = ["--quiet", "--rtt", "40ms", "--", "ping", "-c", "5", "-i", "0.1", target];
        let (output, stdout, stderr) = run(&args);
        assert!(output.status.success(), "{stdout}{stderr}");
        let least = least_ms(&stdout);
        assert!((40.0..50.0).contains(&least), "{stdout}");
    }
}

/// The shortest of ping's round trips.
fn least_ms(stdout: &str) -> f64 {
    let summary = stdout.lines().last().unwrap_or_default();
    let figures = summary.split_once(" = ").map_or("", |(_, figures)| figures);
    figures.split('/').next().and_then(|least| least.parse().ok()).unwrap_or(f64::NAN)
}

#[test]
fn links_nest() {
    if !able() || !has("ping", "iputils-ping") {
        return;
    }
    let ping = ["ping", "-c", "3", "-i", "0.1", "$FAR"];
    let inner = [DUALQ, "shell", "--quiet", "--rtt", "30ms", "--"];
    let args = [&["--quiet", "--rtt", "90ms", "--"][..], &inner, &ping].concat();
    let (output, stdout, stderr) = run(&args);
    assert!(output.status.success() && stdout.contains("198.18.1.1"), "{stdout}{stderr}");
    assert!((30.0..40.0).contains(&least_ms(&stdout)), "{stdout}");
}

/// Large packets vanish on the way back only, of which an answer of the same size is the one sign.
#[test]
fn mtu_does_not_take_a_hole_on_the_way_back_for_a_filter() {
    if !able() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hole.toml");
    let hole = "[link]\nrate = '50mbit'\nrtt = '20ms'\nbehind = [{ mtu = 1400, icmp = false }]\n[[flow]]\ncc = 'cubic'\n";
    std::fs::write(&path, hole).unwrap();
    let scenario = path.to_str().unwrap();
    let mtu = [DUALQ, "mtu", "$FAR", "--no-progress"];
    let (output, stdout, stderr) =
        run(&[&["--quiet", "--scenario", scenario, "--"][..], &mtu].concat());
    assert!(output.status.success(), "{stdout}{stderr}");
    assert!(stdout.contains("ICMP echo  1400 bytes arrive"), "{stdout}");
    assert!(stdout.contains("the way back swallows what is as large"), "{stdout}");
}

#[test]
fn a_transfer_has_the_rate_of_the_link() {
    if !able() || !has("curl", "curl") {
        return;
    }
    let curl = "curl -s -o /dev/null -w '%{size_download} %{speed_download}' http://far/4M";
    let args = [
        "--quiet", "--rate", "40mbit", "--rtt", "10ms", "--qdisc", "fq_codel", "--", "sh", "-c",
        curl,
    ];
    let (output, stdout, stderr) = run(&args);
    assert!(output.status.success(), "{stdout}{stderr}");
    let mut words = stdout.split_whitespace();
    assert_eq!(words.next(), Some("4194304"));
    let mbit = words.next().unwrap().parse::<f64>().unwrap() * 8.0 / 1e6;
    // 1448 bytes of 1514 are payload; the handshake and slow start take their time too.
    assert!((25.0..38.4).contains(&mbit), "{mbit}");
    let post = "head -c 3000000 /dev/zero | curl -s --data-binary @- -H Expect: http://$FAR/";
    let (_, stdout, _) = run(&["--quiet", "--", "sh", "-c", post]);
    assert_eq!(stdout, "3000000 bytes\n");
}

#[test]
fn the_far_end_echoes() {
    if !able() || !has("bash", "bash") {
        return;
    }
    for protocol in ["tcp", "udp"] {
        for address in ["$FAR", "$FAR6"] {
            let script = format!(
                "exec 3<>/dev/{protocol}/{address}/7; echo hello >&3; timeout 5 dd bs=64 count=1 <&3 2>/dev/null"
            );
            let (_, stdout, stderr) =
                run(&["--quiet", "--rtt", "10ms", "--", "bash", "-c", &script]);
            assert_eq!(stdout, "hello\n", "{protocol} {address}: {stderr}");
        }
    }
}

#[test]
fn a_command_of_ones_own_may_be_there() {
    if !able() {
        return;
    }
    // Its output is beside the command's own, and it knows the near end and no other.
    let (output, stdout, stderr) =
        run(&["--quiet", "--far", "echo far knows $NEAR $NEAR6 $FAR", "--", "echo", "near"]);
    assert!(output.status.success(), "{stderr}");
    assert_eq!((stdout.as_str(), stderr.as_str()), ("near\n", "far knows 198.18.0.2 2001:2::2\n"));
    // One that fails is told of, and the command runs all the same.
    let (output, stdout, stderr) = run(&["--quiet", "--far", "exit 3", "--", "echo", "near"]);
    assert!(output.status.success() && stdout == "near\n", "{stdout}");
    assert_eq!(stderr, "note: --far \"exit 3\" ended at once, with status 3\n");
}

#[test]
fn iperf3_works_as_it_stands() {
    if !able() || !has("iperf3", "iperf3") {
        return;
    }
    let args = [
        "--quiet", "--rate", "30mbit", "--rtt", "10ms", "--", "iperf3", "-c", "$FAR", "-t", "1",
        "-J",
    ];
    let (output, stdout, stderr) = run(&args);
    assert!(output.status.success(), "{stdout}{stderr}");
    let document: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let mbit = document["end"]["sum_received"]["bits_per_second"].as_f64().unwrap() / 1e6;
    assert!((15.0..29.0).contains(&mbit), "{mbit}");
}

#[test]
fn a_machine_without_the_outside_cannot_reach_it() {
    if !able() || !has("ping", "iputils-ping") {
        return;
    }
    let (output, _, _) = run(&["--quiet", "--", "ping", "-c", "1", "-W", "1", "192.0.2.1"]);
    assert!(!output.status.success());
}

#[test]
fn the_outside_is_behind_a_gateway() {
    if !able() || !has("curl", "curl") {
        return;
    }
    // Without the program that makes it, that is told.
    let folder = tempfile::tempdir().unwrap();
    let mut without = super::shell(folder.path(), &["--gateway", "--", "/bin/true"]);
    let output = without.env("PATH", folder.path()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains("pasta, which is not in PATH"), "{stderr}");
    assert_eq!((output.status.code(), stderr.lines().count()), (Some(1), 1));
    if !has("pasta", "passt") {
        return;
    }
    // The outside of the inner link is the near end of the outer one.
    for (options, expected) in [("--gateway", "200 1024"), ("", "000 0")] {
        let ask = "cat /etc/resolv.conf; curl -s -m 5 -o /dev/null -w '%{time_total} %{http_code} %{size_download}' http://$outer/1k";
        let script = format!(
            "export outer=$FAR; {DUALQ} shell --quiet --rtt 30ms {options} -- sh -c \"{}\"; true",
            ask.replace('$', "\\$").replace("\\$outer", "$outer")
        );
        let (output, stdout, stderr) =
            run(&["--quiet", "--rtt", "50ms", "--", "sh", "-c", &script]);
        assert!(output.status.success() && stdout.ends_with(expected), "{stdout}{stderr}");
        let asks_the_gateway = stdout.contains("nameserver 198.18.1.53");
        assert_eq!(asks_the_gateway, options == "--gateway", "{stdout}");
        // Both links are on the way, and a connection and an answer cross them once each.
        let asked = stdout.lines().last().unwrap_or_default();
        let seconds: f64 = asked.split(' ').next().and_then(|word| word.parse().ok()).unwrap();
        assert!(options.is_empty() || seconds > 0.16, "{stdout}");
    }
}

#[test]
fn ssh_works_as_it_stands() {
    if !able()
        || !tests_skipped::is_root()
        || !has("ssh", "openssh-client")
        || !has("sshd", "openssh-server")
    {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key").display().to_string();
    let made = std::process::Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f", &key])
        .status();
    assert!(made.unwrap().success());
    // A folder that Debian's server wants, in mounts of its own.
    let server = format!(
        "exec unshare -m sh -c 'mount -t tmpfs none /run && mkdir /run/sshd && exec $(command -v sshd) -D -e -f /dev/null -h {key} \
         -o AuthorizedKeysFile={key}.pub -o StrictModes=no -o UsePAM=no -o PidFile=none'"
    );
    let command = format!(
        "ssh -F none -i {key} -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR root@far 'head -c 1000000 /dev/zero' | wc -c"
    );
    let (output, stdout, stderr) =
        run(&["--quiet", "--rtt", "20ms", "--far", &server, "--", "sh", "-c", &command]);
    assert!(output.status.success() && stdout == "1000000\n", "{stdout}{stderr}");
}
