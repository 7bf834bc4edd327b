//! `dualq mtu` as its users run it, across real routers in network namespaces. That takes `ip`, and root or user namespaces; what
//! cannot be built is skipped and said.

mod esp;
mod lossy;
mod network;
mod switch;

use std::ffi::OsStr;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use dualq_host::Plan;
use dualq_host::plan::What;
use network::{Middle, Network};
use serde_json::Value;
use tests_skipped::{for_anybody, is_the_machines_root, skipped};

const DUALQ: &str = env!("CARGO_BIN_EXE_dualq");

/// Both addresses of b.
const HOSTS: [&str; 2] = ["10.9.3.2", "fd09:3::2"];

fn command(program: impl AsRef<OsStr>, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.arg("mtu").args(args).env("COLUMNS", "100").stdin(Stdio::null());
    command
}

impl Network {
    fn dualq(&self, args: &[&str]) -> Output {
        self.inside("a", || command(DUALQ, args).output().unwrap())
    }

    /// The document about one address, and the exit status.
    fn survey(&self, args: &[&str]) -> (Value, i32) {
        let output = self.dualq(&[args, &["--json"]].concat());
        let document: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)));
        assert_eq!((&document["version"], &document["command"]), (&1.into(), &"mtu".into()));
        (document["addresses"][0].clone(), output.status.code().unwrap())
    }

    /// A service on b that reads all that it is sent.
    fn serve(&self) -> u16 {
        self.inside("b", || {
            let listener = TcpListener::bind("[::]:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    thread::spawn(move || read_all(stream));
                }
            });
            port
        })
    }
}

/// Says of whatever arrives that it did.
fn read_all(mut stream: TcpStream) {
    let mut buffer = [0; 4096];
    while stream.read(&mut buffer).is_ok_and(|length| length > 0) && stream.write_all(b".").is_ok()
    {
    }
}

/// Tries both versions of IP side by side.
fn at_once(test: impl Fn(usize, &'static str) + Sync) {
    thread::scope(|scope| {
        for (number, host) in HOSTS.into_iter().enumerate() {
            let test = &test;
            scope.spawn(move || test(number, host));
        }
    });
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_path_without_a_bottleneck() {
    let Some(network) = Network::build(Middle::Whole) else { return };
    for host in HOSTS {
        let (survey, status) = network.survey(&[host]);
        assert_eq!((&survey["verdict"], status), (&"whole".into(), 0), "{survey:#}");
        assert_eq!(survey["path_mtu"], 1500);
        assert_eq!(survey["cures"], Value::Array(Vec::new()));
        // Where nothing is wrong, no hop is asked and nothing is waited for.
        assert_eq!(survey["hops"], Value::Null, "{survey:#}");
    }
}

/// Each hop quotes packets with the ECN field that they arrived with; of IPv6 everybody may read that.
#[test]
fn hops_tell_the_ecn_field_that_packets_had() {
    let Some(network) = Network::build(Middle::Whole) else { return };
    let ways = [["10.9.1.2", "10.9.2.2", "10.9.3.2"], ["fd09:1::2", "fd09:2::2", "fd09:3::2"]];
    for (host, way) in HOSTS.into_iter().zip(ways) {
        let timeout = Duration::from_secs(1);
        let ask = || dualq_mtu::probe::ecn_by_hop(host.parse().unwrap(), &[0, 1, 2, 3], timeout);
        let hops = network.inside("a", ask).unwrap();
        let by: Vec<String> = hops.iter().map(|hop| hop.by.to_string()).collect();
        assert_eq!(by, way);
        for hop in hops {
            let same = (0..4).map(|value| (value, Some(value)));
            assert_eq!(hop.arrived, same.collect(), "{}", hop.by);
        }
    }
}

/// As large as what an IPsec tunnel leaves: AES-GCM in UDP.
#[test]
fn a_router_that_says_so_is_no_fault() {
    let Some(network) = Network::build(Middle::Smaller(1438)) else { return };
    for (host, router) in HOSTS.into_iter().zip(["10.9.1.2", "fd09:1::2"]) {
        let (survey, status) = network.survey(&[host]);
        assert_eq!((&survey["verdict"], status), (&"signalled".into(), 0), "{survey:#}");
        assert_eq!(survey["path_mtu"], 1438);
        for method in ["echo", "udp"] {
            assert_eq!(survey[method]["limit"], "refused", "{survey:#}");
            assert_eq!(survey[method]["too_big"][0]["by"], router);
            assert_eq!(survey[method]["too_big"][0]["mtu"], 1438);
        }
        assert_eq!(survey["hops"][0]["refuses"], true);
        let explained = survey["explanations"].to_string();
        assert!(explained.contains("NAT-T") && explained.contains("AES-GCM"), "{explained}");
    }
}

#[test]
fn a_black_hole_is_found_to_the_byte_and_placed() {
    let Some(network) = Network::build(Middle::Hole(1400)) else { return };
    at_once(|number, host| {
        let before = ["10.9.1.2", "fd09:1::2"][number];
        let after = ["10.9.2.2", "fd09:2::2"][number];
        let (survey, status) = network.survey(&[host]);
        assert_eq!((&survey["verdict"], status), (&"black-hole".into(), 1), "{survey:#}");
        assert_eq!(survey["path_mtu"], 1400);
        for method in ["echo", "udp"] {
            assert_eq!(survey[method]["largest"], 1400);
            assert_eq!(survey[method]["limit"], "silence");
            assert_eq!(survey[method]["too_big"], Value::Array(Vec::new()));
        }
        assert_eq!(survey["vanish_after"]["address"], before);
        assert_eq!(survey["vanish_before"]["address"], after);
        let hops = survey["hops"].as_array().unwrap();
        let arrives: Vec<&Value> = hops.iter().map(|hop| &hop["large_arrives"]).collect();
        assert_eq!(arrives, [&Value::Bool(true), &Value::Bool(false), &Value::Bool(false)]);
    });
    let said = text(&network.dualq(&[HOSTS[0]]).stdout);
    let answer = "Packets over 1400 bytes vanish after hop 1 (10.9.1.2), before hop 2 (10.9.2.2), and no ICMP says so: \
                  small requests work, bulk transfers hang.";
    assert_eq!(said.lines().nth(2), Some(answer), "{said}");
    assert!(said.contains("ip route replace 10.9.3.2/32 via 10.9.1.2 dev a0 mtu 1400"), "{said}");
}

/// The kernel's own VXLAN over IPv4 and IPv6: its headers leave what the table of overheads says.
#[test]
fn a_real_tunnel_is_recognized() {
    for (ends, mtu, name) in [
        (["10.9.2.1", "10.9.2.2"], 1450, "VXLAN over IPv4"),
        (["fd09:2::1", "fd09:2::2"], 1430, "VXLAN over IPv6"),
    ] {
        let Some(network) = Network::build(Middle::Whole) else { return };
        let [one, other] = ends;
        for (router, local, remote, device, number, behind) in [
            ("r1", one, other, "right", 1, "10.9.3.0/24"),
            ("r2", other, one, "left", 2, "10.9.1.0/24"),
        ] {
            let tunnel = format!(
                "link add tunnel type vxlan id 7 local {local} remote {remote} dev {device} dstport 4789"
            );
            if let Err(why) = network.try_ip(router, &tunnel) {
                return skipped(&format!("no VXLAN here: {why}"));
            }
            network.ip(router, &format!("addr add 10.9.9.{number}/24 dev tunnel"));
            network.ip(router, "link set tunnel up");
            network.ip(router, &format!("route replace {behind} via 10.9.9.{}", 3 - number));
        }
        let (survey, status) = network.survey(&[HOSTS[0]]);
        assert_eq!((&survey["verdict"], status), (&"signalled".into(), 0), "{survey:#}");
        assert_eq!(survey["path_mtu"], mtu);
        let explained = survey["explanations"].to_string();
        assert!(explained.contains(name), "{explained}");
    }
}

/// A router with a smaller MTU of whose ICMP nothing arrives, as behind a firewall that drops all of it.
#[test]
fn a_router_without_its_icmp_is_a_black_hole() {
    let Some(network) = Network::build(Middle::Smaller(1380)) else { return };
    // What the router itself sends is refused, what it forwards is not.
    network.ip("r1", "rule add iif lo to 10.9.1.1 prohibit");
    network.ip("r1", "-6 rule add iif lo to fd09:1::1 prohibit");
    at_once(|_, host| {
        let (survey, status) = network.survey(&[host]);
        assert_eq!((&survey["verdict"], status), (&"black-hole".into(), 1), "{survey:#}");
        assert_eq!(survey["path_mtu"], 1380);
        assert_eq!(survey["hops"][0]["address"], Value::Null);
        assert_eq!(survey["vanish_before"]["hop"], 2);
    });
    let said = text(&network.dualq(&[HOSTS[0]]).stdout);
    assert!(said.contains("Packets over 1380 bytes vanish before hop 2 (10.9.2.2)"), "{said}");
}

/// `connects, but bulk hangs`, seen with TCP itself; and the cures that are proposed do cure it.
#[test]
fn tcp_hangs_in_the_hole_until_it_is_cured() {
    let Some(network) = Network::build(Middle::Hole(1400)) else { return };
    let port = network.serve().to_string();
    at_once(|_, host| {
        let sent = [host, "--port", &port, "--tcp-send"];
        let (survey, _) = network.survey(&sent);
        let segments = &survey["tcp"]["segments"];
        assert_eq!(
            (&segments[0]["packet_bytes"], &segments[0]["arrived"]),
            (&1500.into(), &false.into())
        );
        assert!(segments[0]["sent_again"].as_u64() >= Some(2), "{segments}");
        assert_eq!(
            (&segments[1]["packet_bytes"], &segments[1]["arrived"]),
            (&1400.into(), &true.into())
        );
        assert_eq!(survey["verdict"], "black-hole");

        let cure =
            survey["cures"].as_array().unwrap().iter().find(|cure| cure["kind"] == "route-mtu");
        let line = cure.unwrap()["linux"][0].as_str().unwrap().to_owned();
        network.ip("a", line.strip_prefix("ip ").unwrap());
        let (survey, _) = network.survey(&sent);
        assert_eq!(survey["route_mtu"], 1400);
        let segments = &survey["tcp"]["segments"];
        assert_eq!(
            (&segments[0]["packet_bytes"], &segments[0]["arrived"]),
            (&1400.into(), &true.into()),
            "{line}"
        );
    });

    network.ip("a", "route del 10.9.3.2 via 10.9.1.2");
    let bulk_arrives = |patience| {
        network.inside("a", || {
            let mut stream = TcpStream::connect((HOSTS[0], port.parse().unwrap())).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(patience))).unwrap();
            stream.write_all(&[0; 1448]).unwrap();
            stream.read_exact(&mut [0]).is_ok()
        })
    };
    assert!(!bulk_arrives(5));
    network.set("a", "net/ipv4/tcp_mtu_probing", "1");
    assert!(bulk_arrives(30));
}

/// What helps as a plan, and no plan where nothing is wrong.
#[test]
fn a_plan_is_written() {
    let Some(network) = Network::build(Middle::Hole(1400)) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.toml");
    let file = path.to_str().unwrap();
    let output = network.dualq(&[HOSTS[0], "-o", file]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(said.contains("Packets over 1400 bytes vanish"));
    let end = format!("\nNothing is changed yet. The plan is in {file}: sudo dualq apply {file}\n");
    assert!(said.ends_with(&end), "{said}");
    let output = network.dualq(&[HOSTS[0], "-o", file, "--json"]);
    assert!(serde_json::from_slice::<Value>(&output.stdout).is_ok(), "{}", text(&output.stdout));
    let plan = Plan::read(&fs::read_to_string(&path).unwrap()).unwrap();
    let route = What::Route { to: "10.9.3.2/32".parse().unwrap(), mtu: 1400 };
    // What puts it back is this machine's affair: udev's rule, if there is udev.
    let (first, others) = plan.changes.split_first().unwrap();
    assert_eq!(first.what, route);
    assert!(others.iter().all(|change| matches!(change.what, What::File { .. })), "{others:?}");

    // What is no plan is left alone, and what took seconds to find out is told all the same.
    fs::write(&path, "mine").unwrap();
    let output = network.dualq(&[HOSTS[0], "-o", file]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("Packets over 1400 bytes vanish"));
    assert!(text(&output.stderr).contains("is there and is no plan"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");

    let output = network.dualq(&[HOSTS[1], "-o", "-", "--cure", "probing"]);
    let plan = Plan::read(&text(&output.stdout)).unwrap();
    let sysctl = What::Sysctl {
        key: "net.ipv4.tcp_mtu_probing".to_owned(),
        before: "0".to_owned(),
        after: "1".to_owned(),
    };
    assert_eq!(plan.changes[0].what, sysctl);

    fs::remove_file(&path).unwrap();
    let output = network.dualq(&["10.9.1.2", "-o", file]);
    assert!(output.status.success() && text(&output.stderr).starts_with("note: "));
    assert!(!path.exists());
}

/// Leaves of a plan what concerns the network alone: the tests' namespaces share their files with the machine.
fn without_files(path: &str) {
    let mut plan = Plan::read(&fs::read_to_string(path).unwrap()).unwrap();
    plan.changes.retain(|change| !matches!(change.what, What::File { .. }));
    fs::write(path, plan.write()).unwrap();
}

/// The kernel keeps what a router once said of a path as a route of its own. Such a learned route is none that somebody made: it is
/// neither in the way of the plan nor taken for what the plan had made.
#[test]
fn a_plan_for_a_path_of_which_the_kernel_has_learned() {
    let Some(network) = Network::build(Middle::Smaller(1438)) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for host in HOSTS {
        let (survey, _) = network.survey(&[host]);
        assert_eq!(survey["verdict"], "signalled", "{survey:#}");
    }
    let learned = || {
        HOSTS.map(|host| {
            let way = network.output("a", &format!("route get {host}"));
            assert!(way.contains("mtu 1438") && way.contains("expires"), "{way}");
        })
    };
    learned();
    for router in [("r1", "right"), ("r2", "left")] {
        network.ip(router.0, &format!("link set {} mtu 1500", router.1));
    }
    for port in ["one", "two"] {
        network.ip("switch", &format!("link set {port} mtu 1400"));
    }
    let routes = || network.output("a", "route") + &network.output("a", "-6 route");
    let before = routes();

    let (survey, _) = network.survey(&["10.9.3.2"]);
    assert_eq!(survey["verdict"], "black-hole", "{survey:#}");
    assert!(survey["route_mtu"].is_null() && survey["learned_mtu"] == 1438, "{survey:#}");
    let output = network.dualq(&["10.9.3.2", "-o", &path("4.toml")]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let output = network.dualq(&["fd09:3::2", "-o", &path("6.toml")]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    learned();
    let state = path("state");
    let done = |words: &[&str]| {
        let mut call = Command::new(DUALQ);
        call.args(words).args(["--state", &state]).stdin(Stdio::null());
        let output = network.inside("a", || call.output().unwrap());
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
    };
    for plan in [path("4.toml"), path("6.toml")] {
        without_files(&plan);
        done(&["apply", &plan]);
        assert!(routes().contains("mtu 1400"), "{}", routes());
        done(&["confirm"]);
        done(&["rollback"]);
        assert_eq!(routes(), before);
        // And where a router says so of the plan's own route.
        done(&["apply", &plan]);
        network.ip("r1", "link set right mtu 1300");
        for host in HOSTS {
            network.survey(&[host]);
        }
        network.ip("r1", "link set right mtu 1500");
        done(&["rollback"]);
        assert_eq!(routes(), before);
    }
}

/// What could not be taken back when the time was up, since somebody had changed it, is not forgotten: a later rollback shows it,
/// and takes it back by force.
#[test]
fn a_route_that_was_left_can_still_be_taken_back() {
    let Some(network) = Network::build(Middle::Hole(1400)) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (plan, state) = (path("plan.toml"), path("state"));
    let call = |words: &[&str]| {
        let mut call = Command::new(DUALQ);
        call.args(words).args(["--state", &state]).stdin(Stdio::null());
        network.inside("a", || call.output().unwrap())
    };
    let routes = || network.output("a", "route");
    let before = routes();
    network.dualq(&[HOSTS[0], "-o", &plan]);
    without_files(&plan);
    let output = call(&["apply", &plan, "--confirm-within", "5s"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    network.ip("a", "route change 10.9.3.2/32 via 10.9.1.2 dev a0 src 10.9.1.1 mtu 1350");
    let said = |words: &[&str]| {
        let output = call(words);
        text(&output.stdout) + &text(&output.stderr)
    };
    while !said(&["status"]).contains("was not confirmed within 5 s") {
        thread::sleep(Duration::from_millis(200));
    }
    assert!(routes().contains("mtu 1350"), "{}", routes());
    let refused = call(&["rollback"]);
    assert_eq!(refused.status.code(), Some(1));
    let shown = text(&refused.stdout) + &text(&refused.stderr);
    assert!(shown.contains("mtu 1350") && shown.contains("--force takes it back"), "{shown}");
    let output = call(&["rollback", "--force"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(routes(), before);
    assert!(said(&["rollback"]).contains("no plan is applied here"));
}

/// Connections alone send nothing, and say which segments were agreed on.
#[test]
fn tcp_tells_its_segments_without_sending() {
    let Some(network) = Network::build(Middle::Whole) else { return };
    let port = network.serve().to_string();
    // As where an MSS is clamped: b asks for smaller segments.
    network.ip("b", "route replace default via 10.9.3.1 advmss 1360");
    let (survey, status) = network.survey(&[HOSTS[0], "--port", &port]);
    assert_eq!(status, 0);
    assert_eq!(survey["tcp"]["packet_bytes"], 1400, "{survey:#}");
    assert_eq!(survey["tcp"]["segments"], Value::Null);
    let said = text(&network.dualq(&[HOSTS[0], "--port", &port]).stdout);
    assert!(said.contains("a router that clamps"), "{said}");
}

#[test]
fn a_host_that_is_not_there() {
    let Some(network) = Network::build(Middle::Whole) else { return };
    let output = network.dualq(&["10.9.3.99", "--timeout", "200ms"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stdout);
    assert!(said.contains("The host does not answer at all, to packets of any size"), "{said}");
    assert!(!said.contains("vanish"), "{said}");
    // The router in front of it says so, and is the last hop, once.
    assert!(said.contains("10.9.2.2 says that it cannot be reached"), "{said}");
    assert!(said.contains("  hop 2 ") && !said.contains("  hop 3 "), "{said}");

    // A neighbour that is not there: no router says so, and this machine is no hop on the way.
    let output = network.dualq(&["10.9.1.99", "--timeout", "200ms"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stdout);
    let here = "this machine itself says that it cannot be reached, as where nobody on a0 answers for the address 10.9.1.99";
    assert!(said.contains(here), "{said}");
    assert!(!said.contains("  hop "), "{said}");

    // No way at all is one line.
    network.ip("a", "route del default");
    let output = network.dualq(&["10.9.3.2"]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), String::new()));
    assert_eq!(
        text(&output.stderr),
        "error: cannot find a way to 10.9.3.2: Network is unreachable\n"
    );
}

/// As nobody: UDP and TCP work, ICMP echo if the kernel's range of groups allows it, which is said if not.
#[test]
fn an_ordinary_user_is_not_left_alone() {
    if !is_the_machines_root() {
        return;
    }
    let Some(network) = Network::build(Middle::Hole(1400)) else { return };
    let folder = tempfile::tempdir().unwrap();
    let program = for_anybody(DUALQ, folder.path());
    let as_nobody = |args: &[&str]| {
        let mut command = command(&program, args);
        command.current_dir("/").uid(65_534).gid(65_534);
        network.inside("a", || command.output())
    };
    network.set("a", "net/ipv4/ping_group_range", "1 0");
    let output = as_nobody(&[HOSTS[0], "--json"]).unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let survey = &document["addresses"][0];
    assert_eq!((&survey["verdict"], &survey["path_mtu"]), (&"black-hole".into(), &1400.into()));
    let why = survey["echo"]["not_tried"].as_str().unwrap();
    assert!(why.contains("net.ipv4.ping_group_range is \"1 0\""), "{why}");

    network.set("a", "net/ipv4/ping_group_range", "0 2147483647");
    at_once(|_, host| {
        let output = as_nobody(&[host, "--json"]).unwrap();
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let survey = &document["addresses"][0];
        assert_eq!(survey["echo"]["largest"], 1400, "{survey:#}");
        assert_eq!(survey["vanish_before"]["hop"], 2);
    });
}

#[test]
fn nonsense_is_one_line() {
    for host in ["", " ", "a b", "a\nb", "http://example.org/", "-", "\u{1b}[2J"] {
        let output = command(DUALQ, &["--", host]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{host:?}");
        let said = text(&output.stderr);
        assert!(said.starts_with("error: HOST ") && said.lines().count() == 1, "{said}");
        assert!(!said.contains('\u{1b}'), "{said:?}");
    }
    for args in [
        &["-x"][..],
        &[],
        &["127.0.0.1", "-4", "-6"],
        &["127.0.0.1", "--port", "0"],
        &["127.0.0.1", "--timeout", "-1s"],
        &["127.0.0.1", "--timeout", "1h"],
        &["127.0.0.1", "--attempts", "1"],
        // Before anything is sent.
        &["127.0.0.1", "-o", "plan.toml", "--state", "records"],
        &["127.0.0.1", "-o", "plan.toml", "--state", "/a b;reboot"],
        &["127.0.0.1", "-o", "-", "--json"],
        &["fe80::1"],
    ] {
        let output = command(DUALQ, args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert_eq!(text(&output.stderr).lines().count(), 1, "{}", text(&output.stderr));
    }
    for args in [&["127.0.0.1", "-6"][..], &["::1", "-4"], &["no-such-host.invalid"]] {
        let output = command(DUALQ, args).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert_eq!(text(&output.stderr).lines().count(), 1, "{}", text(&output.stderr));
    }
}

#[test]
fn this_machine_itself() {
    let output = command(DUALQ, &["127.0.0.1"]).output().unwrap();
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    assert!(said.contains("Nothing is lost for its size"), "{said}");
}

#[test]
fn the_help_teaches_by_examples() {
    insta::assert_snapshot!("help", text(&command(DUALQ, &["--help"]).output().unwrap().stdout));
}
