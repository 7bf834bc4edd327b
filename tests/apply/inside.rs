//! What is done on a machine of its own. Each role is a call of this very program there, by [`crate::guest`] or by another role.

use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio, exit};
use std::thread;
use std::time::Duration;

use dualq_host::apply::{ApplyError, Host, Phase, Prepared, Record, Rollback, Step};
use dualq_host::plan::{Offload, What};
use dualq_host::{Plan, Root};
use dualq_netlink::{Handle, Netlink, Place, Queue, ReceiveOffload, Route, VethEnd};
use dualq_qdisc::grammar;
use nix::sys::reboot::{RebootMode, reboot};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::snapshot::{Running, files, running};
use crate::soak;
use crate::{DUALQ, file, ingress, offload, plan, qdisc, said, sysctl};

/// What the role is, and its arguments.
pub(crate) const ROLE: &str = "DUALQ_TEST_ROLE";
pub(crate) const STATE: &str = "/etc/dualq-state";
pub(crate) const PLAN: &str = "/run/plan.toml";
const SYSCTLS: [&str; 3] = ["net.core.default_qdisc", "net.ipv4.tcp_ecn", "net.ipv4.tcp_rmem"];
const SYSCTL_FILE: &str = "/etc/sysctl.d/90-dualq.conf";
/// A copy of dualq that only root can write to, wherever this was built.
const PROGRAM: &str = "/run/dualq";
const RULES: &str = "/etc/udev/rules.d/90-dualq.rules";
pub(crate) const LINE: &str = "htb rate 48mbit leaf dualpi2";
const DOWN: &str = "cake bandwidth 20mbit ingress";
const IFB: &str = "dualq-ifb0";

#[test]
#[ignore = "a part of the tests in guest.rs, which start it on another machine"]
fn role() {
    let role = std::env::var(ROLE).expect("one of the other tests starts this");
    let words: Vec<&str> = role.split(' ').collect();
    match words.as_slice() {
        ["sweep"] => sweep(),
        ["soak", seed, rounds] => soak::run(seed.parse().unwrap(), rounds.parse().unwrap()),
        ["whole"] => whole(),
        ["drawn"] => drawn(),
        ["taken"] => taken(),
        ["classes"] => classes(),
        ["plugged"] => plugged(),
        ["verified"] => verified(),
        ["cut", operation, step] => cut(operation.parse().unwrap(), step.parse().unwrap()),
        ["after"] => after_power_came_back(),
        ["victim", operation, step] => {
            let step = step.parse().unwrap();
            let mut count = Count { steps: 0, last: step, end: || die() };
            perform(operation.parse().unwrap(), true, &mut |_| count.step());
            exit(0);
        }
        _ => panic!("no role {role}"),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Apply,
    Confirm,
    Rollback,
}

impl std::str::FromStr for Operation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "Apply" => Ok(Self::Apply),
            "Confirm" => Ok(Self::Confirm),
            "Rollback" => Ok(Self::Rollback),
            other => Err(other.to_owned()),
        }
    }
}

/// Ends everything after a step.
struct Count {
    steps: u32,
    last: u32,
    end: fn(),
}

impl Count {
    fn step(&mut self) {
        self.steps += 1;
        if self.steps == self.last {
            (self.end)();
        }
    }
}

/// As kill -9 does it.
fn die() {
    kill(Pid::this(), Signal::SIGKILL).unwrap();
    loop {
        thread::sleep(Duration::from_secs(1));
    }
}

/// Nothing is written any more that was not written before.
fn cut_power() {
    let Err(error) = reboot(RebootMode::RB_POWER_OFF);
    panic!("{error}");
}

pub(crate) fn host() -> Host {
    Host::new(Root::host(), Netlink::open().unwrap(), STATE).program(PROGRAM)
}

pub(crate) fn dualq(words: &[&str]) -> Output {
    Command::new(PROGRAM)
        .args(words)
        .args(["--state", STATE])
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Devices as they are after a start: one with no queue, one with the kernel's default, one with somebody's choice, and one with several
/// transmit queues.
fn set_up() {
    // Everybody may write there at first.
    fs::set_permissions("/run", fs::Permissions::from_mode(0o755)).unwrap();
    fs::copy(DUALQ, PROGRAM).unwrap();
    let mut netlink = Netlink::open().unwrap();
    let end = |name, last| VethEnd { name, mac: [2, 0, 0, 0, 0, last], mtu: 1500, namespace: None };
    netlink.add_veth(&end("d0", 1), &end("d1", 2)).unwrap();
    netlink.add_veth(&end("e0", 3), &end("e1", 4)).unwrap();
    call_each(&["ip link add i0 type ifb", "ip link add m0 numtxqueues 2 type veth peer name m1"]);
    for name in ["d0", "d1", "e0", "e1", "i0", "m0", "m1"] {
        let index = netlink.link(name).unwrap().index;
        netlink.set_up(index).unwrap();
    }
    netlink.set_receive_offload("d0", ReceiveOffload::Gro, true).unwrap();
    // So that what the kernel put on i0 is not what it would put there now.
    fs::write("/proc/sys/net/core/default_qdisc", "codel").unwrap();
    let chosen = netlink.link("e0").unwrap().index;
    let place = Place { handle: Handle::qdisc(0x8001), ..Place::root(chosen) };
    netlink.replace_qdisc(&place, &grammar::parse("dualpi2").unwrap().spec).unwrap();
    call_each(&[
        "tc qdisc add dev m0 root handle 1: mq",
        "tc qdisc replace dev m0 parent 1:2 handle 22: bfifo limit 5000",
    ]);
    let index = netlink.link("d0").unwrap().index;
    netlink.add_address(index, Ipv4Addr::new(10, 0, 0, 1), 24).unwrap();
    netlink.add_route(&Route::via((Ipv4Addr::UNSPECIFIED, 0), [10, 0, 0, 2])).unwrap();
}

fn call_each(lines: &[&str]) {
    for line in lines {
        let (program, words) = line.split_once(' ').unwrap();
        assert!(Command::new(program).args(words.split(' ')).status().unwrap().success(), "{line}");
    }
}

fn planned() -> Plan {
    let mut netlink = Netlink::open().unwrap();
    let mut before = |dev: &str| {
        let index = netlink.link(dev).unwrap().index;
        let mut queues = netlink.qdiscs(index).unwrap();
        queues.sort_by_key(|queue| queue.parent != Handle::ROOT);
        let line = |queue: &Queue| {
            let options = queue.config.as_ref().map(ToString::to_string).unwrap_or_default();
            let line = format!("{} {} {}", queue.parent, queue.kind, options.trim());
            line.trim_end().to_owned()
        };
        queues.iter().map(line).collect::<Vec<_>>()
    };
    let each = What::Qdisc {
        dev: "m0".to_owned(),
        parent: None,
        before: before("m0"),
        after: "codel limit 99".parse().unwrap(),
        each: true,
    };
    let mut before = |dev: &str| before(dev).remove(0);
    let value = |key: &str| {
        let path = format!("/proc/sys/{}", key.replace('.', "/"));
        fs::read_to_string(path).unwrap().trim_end().replace('\t', " ")
    };
    let [default, ecn, memory] = SYSCTLS;
    let rules: String = [
        format!("d0 '{LINE}'"),
        format!("--down {IFB} d0 '{DOWN}'"),
        "--offloads d0 'gro off'".to_owned(),
    ]
        .iter()
        .map(|call| {
            format!(
                "ACTION==\"add|move\", SUBSYSTEM==\"net\", KERNEL==\"d0\", RUN+=\"{PROGRAM} on-boot --state {STATE} {call}\"\n"
            )
        })
        .collect();
    plan([
        sysctl(default, &value(default), "fq"),
        sysctl(ecn, &value(ecn), "1"),
        sysctl(memory, &value(memory), "4096 131072 16777216"),
        qdisc("d0", &before("d0"), LINE),
        qdisc("i0", &before("i0"), "dualpi2 target 5ms any_ect"),
        qdisc("e0", &before("e0"), "tbf rate 10mbit burst 10kb latency 50ms leaf codel"),
        each,
        ingress("d0", IFB, DOWN),
        offload("d0", Offload::Gro, "on", "off"),
        offload("e0", Offload::GsoMaxSegs, "65535", "4"),
        What::Route { to: "192.0.2.1/32".parse().unwrap(), mtu: 1400 },
        file(
            SYSCTL_FILE,
            Some("net.ipv4.tcp_ecn = 2\n"),
            "net.core.default_qdisc = fq\nnet.ipv4.tcp_ecn = 1\n",
        ),
        file("/etc/modules-load.d/dualq.conf", None, "sch_dualpi2\n"),
        file(RULES, None, &rules),
    ])
}

/// One operation, through the library, as the program does it.
fn perform(operation: Operation, watched: bool, step: &mut dyn FnMut(&Step)) {
    let mut host = host();
    match operation {
        Operation::Apply => {
            let plan = Plan::read(&fs::read_to_string(PLAN).unwrap()).unwrap();
            let prepared = host.prepare(&plan, Duration::from_secs(60), false).unwrap();
            let Prepared::Ready(ready) = prepared else { panic!("there is something to do") };
            let mut guard =
                |record: &Record| if watched { watch_over(record.number) } else { Ok(()) };
            ready.make(&mut guard, step).unwrap();
        }
        Operation::Confirm => {
            host.confirm(None, false, step).unwrap();
        }
        Operation::Rollback => {
            let mut guard = |record: &Record| {
                if watched {
                    watch_over(record.number).unwrap();
                }
            };
            host.rollback(Rollback::default(), &mut guard, step).unwrap();
        }
    }
}

#[expect(clippy::zombie_processes, reason = "it is there when this process has ended")]
fn watch_over(number: u64) -> Result<(), ApplyError> {
    Command::new(DUALQ)
        .args(["watch-over", &number.to_string(), "--state", STATE])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    while !host().store().is_watched(number)? {
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// What has to be done before, for an operation to make sense.
fn lead_up(operation: Operation, watched: bool) {
    if operation != Operation::Apply {
        perform(Operation::Apply, watched, &mut |_| {});
    }
    if operation == Operation::Rollback {
        perform(Operation::Confirm, false, &mut |_| {});
    }
}

pub(crate) fn phase() -> Option<Phase> {
    host().store().newest().unwrap().map(|record| record.phase)
}

/// The machine in all its parts.
pub(crate) type Machine =
    (Running, BTreeMap<PathBuf, (u32, u32, u32, (i64, i64), Option<Vec<u8>>)>);

fn machine() -> Machine {
    (running(&SYSCTLS), files(Path::new("/etc"), Path::new(STATE)))
}

pub(crate) fn assert_same(fresh: &Machine, what: &str) {
    let now = machine();
    assert_eq!(now.0, fresh.0, "{what}");
    assert_eq!(now.1, fresh.1, "{what}");
}

fn wait_until_taken_back(what: &str) {
    // In virtual time.
    for _ in 0..200 {
        if phase() == Some(Phase::RolledBack) {
            return;
        }
        thread::sleep(Duration::from_secs(1));
    }
    panic!("{what}: {:?} and nobody takes it back", phase());
}

pub(crate) fn victim(operation: Operation, step: u32) -> bool {
    let program = std::env::current_exe().unwrap();
    let ended = Command::new(program)
        .args(["--ignored", "--exact", "inside::role"])
        .env(ROLE, format!("victim {operation:?} {step}"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    // It succeeds if it has fewer steps.
    assert!(ended.status.success() || ended.status.code().is_none(), "{}", said(&ended));
    !ended.status.success()
}

pub(crate) fn begin() -> Machine {
    set_up();
    fs::write(PLAN, planned().write()).unwrap();
    machine()
}

/// Kills each operation after each of its steps, and has the watchdog or the next command put everything back.
fn sweep() {
    let fresh = begin();
    let mut killed = Vec::new();
    for operation in [Operation::Apply, Operation::Confirm, Operation::Rollback] {
        for watched in [true, false] {
            for step in 1.. {
                let what = format!("{operation:?}, killed after step {step}, watched: {watched}");
                lead_up(operation, watched);
                let early = !victim(operation, step);
                // Apply and rollback in the victim have their watchdog in any case. Nobody watches before there is a record, and when all is decided.
                let decided = matches!(phase(), Some(Phase::Confirmed));
                let alone = operation != Operation::Confirm && step == 1;
                if (watched || operation != Operation::Confirm) && !alone && !decided {
                    wait_until_taken_back(&what);
                } else {
                    let next: &[&str] = match step % 2 {
                        0 => &["rollback"],
                        _ => &["on-boot", "d1", "pfifo limit 7"],
                    };
                    let output = dualq(next);
                    let nothing = said(&output).contains("no plan is applied here");
                    assert!(output.status.success() || nothing, "{what}: {}", said(&output));
                    if next[0] == "on-boot" {
                        let mut netlink = Netlink::open().unwrap();
                        let link = netlink.link("d1").unwrap().index;
                        netlink
                            .delete_qdisc(&Place {
                                handle: Handle::UNSPECIFIED,
                                ..Place::root(link)
                            })
                            .unwrap();
                    }
                    if matches!(phase(), Some(Phase::Confirmed | Phase::Applied)) {
                        let output = dualq(&["rollback"]);
                        assert!(output.status.success(), "{what}: {}", said(&output));
                    }
                }
                assert_eq!(phase(), Some(Phase::RolledBack), "{what}");
                assert_same(&fresh, &what);
                if early {
                    killed.push(step - 1);
                    break;
                }
            }
        }
    }
    println!("killed after each step: {killed:?}");
}

/// Cuts the power in the middle of an operation; ends well if it has fewer steps.
fn cut(operation: Operation, step: u32) {
    begin();
    lead_up(operation, false);
    let mut count = Count { steps: 0, last: step, end: cut_power };
    perform(operation, false, &mut |_| count.step());
}

/// The start after that: what starts on any machine, and then dualq.
fn after_power_came_back() {
    set_up();
    let fresh = running(&SYSCTLS);
    let values = fs::read_to_string(SYSCTL_FILE).unwrap();
    for line in values.lines() {
        let (key, value) = line.split_once(" = ").unwrap();
        fs::write(format!("/proc/sys/{}", key.replace('.', "/")), value).unwrap();
    }
    if let Ok(rules) = fs::read_to_string(RULES) {
        call(&rules);
        assert!(host().unfinished().unwrap().is_none(), "whoever is called at boot finishes it");
    }
    let before = phase();
    let output = dualq(&["status"]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(phase(), before, "to look changes nothing");
    if phase() == Some(Phase::Confirmed) {
        assert!(!said(&output).contains("drifted"), "{}", said(&output));
    } else if host().unfinished().unwrap().is_some() {
        assert!(said(&output).contains("`dualq rollback`"), "{}", said(&output));
    }
    if phase() != Some(Phase::RolledBack) {
        let output = dualq(&["rollback"]);
        assert!(output.status.success(), "{}", said(&output));
    }
    assert_eq!(phase(), Some(Phase::RolledBack));
    assert_eq!(running(&SYSCTLS), fresh);
}

/// What `dualq plan` makes of this machine is applied, and is then what it asks for.
fn whole() {
    let fresh = begin();
    let planned = |words: &[&str]| {
        let requirements = [
            "plan",
            "--dev",
            "d0",
            "--dev",
            "e0",
            "--rate",
            "d0=48mbit",
            "--rate",
            "e0=10mbit",
            "--down",
            "20mbit",
            "--rtt",
            "48ms",
            "--state",
            STATE,
        ];
        let all = [&requirements[..], words].concat();
        let output = Command::new(PROGRAM).args(all).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        said(&output)
    };
    fs::remove_file(PLAN).unwrap();
    planned(&["-o", PLAN]);
    for words in [&["apply", PLAN][..], &["confirm", PLAN]] {
        let output = Command::new(PROGRAM).args(words).args(["--state", STATE]).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", said(&output));
    }
    assert_ne!(machine().0, fresh.0);
    let again = planned(&[]);
    assert!(again.contains("Nothing is to be changed"), "{again}");
    let output = dualq(&["rollback"]);
    assert!(output.status.success(), "{}", said(&output));
    assert_same(&fresh, "planned, applied and taken back");
}

/// What is in the file is what udev calls, and nothing else.
fn call(rules: &str) {
    let commands = rules.split("RUN+=\"").skip(1).filter_map(|rest| rest.split_once('"'));
    for (command, _) in commands {
        let output = Command::new("sh").args(["-c", command]).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
    }
}

/// Where somebody else sorts what arrives, or has a device of that name, all is refused and left as it is.
fn taken() {
    set_up();
    fs::write(PLAN, plan([ingress("d0", IFB, DOWN)]).write()).unwrap();
    let ip = |words: &str| call_each(&[words]);
    for (make, undo, why) in [
        (
            "tc qdisc add dev d0 ingress",
            "tc qdisc del dev d0 ingress",
            "an ingress with no filters",
        ),
        ("tc qdisc add dev d0 clsact", "tc qdisc del dev d0 clsact", "a clsact with no filters"),
        (
            "ip link add dualq-ifb0 type ifb",
            "ip link del dualq-ifb0",
            "dualq-ifb0, to which nothing is redirected",
        ),
        ("ip link add dualq-ifb0 type dummy", "ip link del dualq-ifb0", "that is no ifb"),
    ] {
        ip(make);
        let before = machine();
        let output = dualq(&["apply", PLAN]);
        assert_eq!(output.status.code(), Some(1), "{make}: {}", said(&output));
        assert!(said(&output).contains(why), "{make}: {}", said(&output));
        assert_same(&before, make);
        ip(undo);
    }
    // The same of a plan that is made there.
    ip("tc qdisc add dev d0 ingress");
    ip(
        "tc filter add dev d0 ingress protocol all prio 7 matchall action mirred egress redirect dev i0",
    );
    let output = Command::new(PROGRAM).args(["plan", "--dev", "d0", "--down", "20mbit"]).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("is redirected to i0 already"), "{}", said(&output));
    ip("tc filter del dev d0 ingress");
    ip(
        "tc filter add dev d0 ingress protocol ip prio 7 matchall action mirred egress mirror dev i0",
    );
    let output = Command::new(PROGRAM).args(["plan", "--dev", "d0", "--down", "20mbit"]).output();
    let said = said(&output.unwrap());
    assert!(said.contains("d0 has an ingress with filters (matchall) already"), "{said}");
}

/// Below classes of trees of other kinds than `htb`, with nothing in them, and with something of their owner's. What has bands has the classes
/// of these.
fn classes() {
    set_up();
    let call = |line: &str| call_each(&[line]);
    let shown = || {
        let mut shown = Command::new("sh");
        shown.args(["-c", "tc qdisc show dev d0; tc class show dev d0"]);
        said(&shown.output().unwrap())
    };
    for (kind, class) in
        [("hfsc", Some("hfsc sc rate 5mbit ul rate 5mbit")), ("drr", Some("drr")), ("prio", None)]
    {
        call(&format!("tc qdisc replace dev d0 root handle 1: {kind}"));
        if let Some(class) = class {
            call(&format!("tc class add dev d0 parent 1: classid 1:1 {class}"));
        }
        for own in [None, Some("bfifo limit 9000")] {
            if let Some(own) = own {
                call(&format!("tc qdisc add dev d0 parent 1:1 handle 20: {own}"));
            }
            let (before, fresh) = (shown(), machine());
            let words = ["plan", "--dev", "d0", "--profile", "gateway", "--parent", "1:1"];
            let line = ["--qdisc", "dualpi2 target 5ms", "-o", PLAN];
            for words in [&[&words[..], &line].concat()[..], &["apply", PLAN]] {
                let output = dualq(words);
                assert!(output.status.success(), "{kind}, {words:?}: {}", said(&output));
            }
            assert!(shown().contains("dualpi2 d0: parent 1:1 "), "{kind}: {}", shown());
            let output = dualq(&["rollback"]);
            assert!(output.status.success(), "{kind}: {}", said(&output));
            assert_eq!(shown(), before);
            assert_same(&fresh, kind);
        }
        call("tc qdisc del dev d0 root");
    }
}

/// Across dualq's own link, whose queue is too long in both directions: a plan for what arrives is loaded by downloads, which alone can tell
/// that it helps; by uploads it cannot be told.
fn verified() {
    set_up();
    fs::write("/run/token", "0123456789abcdef".repeat(4)).unwrap();
    fs::set_permissions("/run/token", fs::Permissions::from_mode(0o600)).unwrap();
    let plan = format!(
        "{PROGRAM} plan --dev dualq0 --down 20mbit --down-qdisc fq_codel --rtt 20ms --profile gateway --state {STATE} -o {PLAN} >/dev/null"
    );
    let verify = format!(
        "{PROGRAM} verify {PLAN} --host $FAR --token-file /run/token --each 2s --no-progress --state {STATE}"
    );
    let script = format!(
        "rm -f {PLAN}; {plan} && {verify} && {verify} --direction upload --max-time 45s && tc qdisc show dev dualq0 && ip link"
    );
    let far = format!("{PROGRAM} serve --token-file /run/token");
    let output = Command::new(PROGRAM)
        .args(["shell", "--quiet", "--rate", "20mbit", "--rtt", "20ms"])
        .args(["--qdisc", "pfifo limit 150", "--far", &far, "--", "sh", "-c", &script])
        .output()
        .unwrap();
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    let verdicts: Vec<&str> = said.lines().filter(|line| line.contains(": gateway on ")).collect();
    let [by_downloads, by_uploads] = verdicts[..] else { panic!("{said}") };
    assert!(by_downloads.starts_with("helped: "), "{said}");
    assert!(!by_uploads.starts_with("helped: "), "{said}");
    assert!(said.contains("qdisc pfifo 1: root refcnt 2 limit 10000p"), "{said}");
    assert!(!said.contains("ingress") && !said.contains(IFB), "{said}");
}

/// An interface that goes and comes back has its queues again, and what is left of one that went is taken back.
fn plugged() {
    begin();
    let before = running(&SYSCTLS);
    let rules = match planned().changes.pop().map(|change| change.what) {
        Some(What::File { after, .. }) => after,
        other => panic!("{other:?}"),
    };
    for words in [&["apply", PLAN][..], &["confirm"]] {
        let output = dualq(words);
        assert!(output.status.success(), "{words:?}: {}", said(&output));
    }
    let mut netlink = Netlink::open().unwrap();
    let replug = |netlink: &mut Netlink| {
        netlink.delete_link("d0").unwrap();
        let end =
            |name, last| VethEnd { name, mac: [2, 0, 0, 0, 0, last], mtu: 1500, namespace: None };
        netlink.add_veth(&end("d0", 1), &end("d1", 2)).unwrap();
        for name in ["d0", "d1"] {
            let index = netlink.link(name).unwrap().index;
            netlink.set_up(index).unwrap();
        }
        let index = netlink.link("d0").unwrap().index;
        netlink.add_address(index, Ipv4Addr::new(10, 0, 0, 1), 24).unwrap();
        netlink.add_route(&Route::via((Ipv4Addr::UNSPECIFIED, 0), [10, 0, 0, 2])).unwrap();
    };
    replug(&mut netlink);
    let status = || said(&dualq(&["status"]));
    assert!(status().contains("what arrives at d0"), "{}", status());
    assert!(status().contains("drifted"), "{}", status());
    call(&rules);
    let after = status();
    let line = after.lines().find(|line| line.contains("what arrives at d0")).unwrap();
    assert!(line.contains("as planned"), "{after}");
    assert!(after.contains(IFB), "its queue is shown: {after}");
    // It goes for good.
    netlink.delete_link("d0").unwrap();
    let output = dualq(&["rollback", "--force"]);
    assert!(said(&output).contains("what arrives at d0: it is gone"), "{}", said(&output));
    let now = running(&SYSCTLS);
    assert!(!format!("{now:?}").contains(IFB), "{now:?}");
    assert!(format!("{before:?}").contains("\"d0\""));
}

/// What the kernel draws where nobody said it, is no difference to what was asked for.
fn drawn() {
    let fresh = begin();
    let before = match planned().changes.into_iter().map(|change| change.what).nth(3) {
        Some(What::Qdisc { before, .. }) => before.join("\n"),
        other => panic!("{other:?}"),
    };
    fs::write(PLAN, plan([qdisc("d0", &before, "netem loss 1%")]).write()).unwrap();
    for words in [&["apply", PLAN][..], &["status"], &["rollback"]] {
        let output = dualq(words);
        assert!(output.status.success(), "{words:?}: {}", said(&output));
        assert!(!said(&output).contains("drifted"), "{}", said(&output));
    }
    assert_same(&fresh, "netem, applied and taken back");
}
