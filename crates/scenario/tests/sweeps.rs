//! Plans: what they say, and what is said of wrong ones.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use dualq_scenario::{
    Algorithm, Arrivals, CongestionControl, Direction, EcnOption, EcnRequest, Element, Overrides,
    Scenario, Setup, Sweep, Variant,
};
use dualq_units::{Bytes, Ecn, Rate};

#[test]
fn what_a_plan_leaves_open_has_a_default() {
    let sweep = Sweep::parse("").unwrap();
    let variants = sweep.variants();
    assert_eq!(variants.len(), 1);
    let scenario = &variants[0].scenario;
    assert!(variants[0].settings.is_empty());
    assert_eq!(scenario.duration, Duration::from_secs(40));
    assert_eq!(scenario.link.rate.as_bits_per_second(), 50_000_000);
    assert_eq!(scenario.link.qdisc.text(), "dualpi2");
    assert_eq!(
        (scenario.flow[0].cc, scenario.flow[0].count),
        (CongestionControl::from(Algorithm::Cubic), 1)
    );
    assert_eq!(scenario.probe[0].interval, Duration::from_millis(50));
    assert_eq!(*scenario, Scenario::try_from(Setup::default()).unwrap(), "as in code");
}

/// An empty list is a word too: nothing of that kind is sent.
#[test]
fn flows_and_probes_can_be_left_out() {
    let groups = |source: &str| {
        let scenario = Sweep::parse(source).unwrap().variants().remove(0).scenario;
        (scenario.flow.len(), scenario.udp.len(), scenario.probe.len())
    };
    assert_eq!(groups(""), (1, 0, 1));
    assert_eq!(groups("flow = []"), (0, 0, 1));
    assert_eq!(groups("probe = []"), (1, 0, 0));
    assert_eq!(groups("udp = []"), (1, 0, 1));
    assert_eq!(groups("probe = []\n[[udp]]\nkind = 'voice'"), (0, 1, 0));
}

#[test]
fn lists_are_combined() {
    let sweep = Sweep::parse(
        "[link]\nrate = ['10mbit', '20mbit']\nqdisc = ['pfifo', 'dualpi2']\n\
         [[flow]]\ncc = ['cubic', 'bbr']\n[[flow]]\ncc = 'dctcp'\necn = [true, false]\n",
    )
    .unwrap();
    let variants = sweep.variants();
    assert_eq!(variants.len(), 16);
    let told = |number: usize| {
        let settings = &variants[number].settings;
        settings.iter().map(|(what, value)| format!("{what}={value}")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(told(0), "rate=10Mbit qdisc=pfifo cc 1=cubic ecn 2=true");
    assert_eq!(told(1), "rate=10Mbit qdisc=pfifo cc 1=cubic ecn 2=false");
    assert_eq!(told(15), "rate=20Mbit qdisc=dualpi2 cc 1=bbr ecn 2=false");
    assert_eq!(variants[15].scenario.flow[0].cc, Algorithm::Bbr.into());
    assert_eq!(variants[15].scenario.link.rate.as_bits_per_second(), 20_000_000);
}

#[test]
fn the_command_line_overrides() {
    let source = "[link]\nqdisc = ['pfifo', 'dualpi2']\n";
    let overrides = Overrides {
        qdisc: vec!["bfifo".to_owned()],
        cc: vec!["bbr".to_owned(), "reno".to_owned()],
        rate: vec!["10mbit".to_owned()],
        rtt: vec!["5ms".to_owned()],
        duration: Some("4s".to_owned()),
        interval: Some("100ms".to_owned()),
        ..Overrides::default()
    };
    let sweep = Sweep::parse_with(source, &overrides).unwrap();
    let variants = sweep.variants();
    assert_eq!(variants.len(), 2);
    assert_eq!(variants[1].scenario.flow[0].cc, Algorithm::Reno.into());
    assert_eq!(variants[1].scenario.warmup, Duration::from_secs(1), "it keeps its proportion");

    let wrong = Overrides { cc: vec!["qubic".to_owned()], ..Overrides::default() };
    let error = Sweep::parse_with(source, &wrong).unwrap_err().to_string();
    assert!(
        error.starts_with("--cc: unknown congestion control \"qubic\"; did you mean \"cubic\"?")
    );
}

#[test]
fn complaints_name_the_line_and_what_would_be_right() {
    for (source, message) in [
        ("nmae = 'x'", "line 1: unknown key \"nmae\"; did you mean \"name\"?"),
        (
            "[link]\n\nqdsic = 'pfifo'",
            "line 3: unknown key \"link.qdsic\"; did you mean \"qdisc\"?",
        ),
        (
            "[link]\nzzz = 1",
            "line 2: unknown key \"link.zzz\"; known are before, behind, forward, loss, mtu, qdisc, rate, reverse, rtt, step, trace, trace_repeats, tunnel, up",
        ),
        ("[link]\nrate = '0mbit'", "line 2: link.rate: 0bit is out of bounds; give 1Kbit to 1Tbit"),
        (
            "[link]\nrate = 50",
            "line 2: link.rate: write it as a string, in quotes, with its unit if it has one",
        ),
        ("[link]\nmtu = 500", "line 2: link.mtu: give a whole number from 576 to 65535"),
        (
            "[link]\nloss = '101%'",
            "line 2: link.loss: \"101%\" is not a loss rate, which is from 0% to 100%",
        ),
        (
            "[link]\nloss = '1%%'",
            "line 2: link.loss: \"1%%\" is not a loss rate: a percentage such as 0.1%",
        ),
        (
            "[[udp]]\npacket = 1486\nrate = ['1mbit', '0bit']",
            "line 3: udp.rate: 0bit is out of bounds; give 1bit to 240Gbit",
        ),
        ("rate = '5mbit'", "line 1: unknown key \"rate\"; it belongs below [link]"),
        ("cc = 'cubic'", "line 1: unknown key \"cc\"; it belongs below [[flow]]"),
        (
            "[[flow]]\ncc = 'BBR'",
            "line 2: flow.cc: unknown congestion control \"BBR\"; did you mean \"bbr\"? known are reno, cubic, dctcp, bbr, bbr3, prague",
        ),
        ("[link]\nqdisc = []", "line 2: link.qdisc: the list is empty"),
        ("duration = ['1s', '2s']", "line 1: duration takes one value; it cannot be compared"),
        (
            "duration = '10s'\nwarmup = '10s'",
            "line 2: warmup: 10s of a duration of 10s leave nothing to measure",
        ),
        ("warmup = '40s'", "line 1: warmup: 40s of a duration of 40s leave nothing to measure"),
        (
            "[[flow]]\ncc = 'qubic'",
            "line 2: flow.cc: unknown congestion control \"qubic\"; did you mean \"cubic\"? known are reno, cubic, dctcp, bbr, bbr3, prague",
        ),
        (
            "[[flow]]\ncc = 'cubic'\necn = 'acurate'",
            "line 3: flow.ecn: unknown ECN \"acurate\"; did you mean \"accurate\"? known are off, classic, accurate",
        ),
        ("[receiver]\necn = 3", "line 2: receiver.ecn: give true, false or \"accurate\""),
        (
            "[[flow]]\ncount = 2",
            "line 1: a flow needs a congestion control, such as cc = \"cubic\"",
        ),
        (
            "[[flow]]\ncc = 'bbr'\nstart = '5s'\nstop = '4s'",
            "line 4: flow.stop: the flow starts at 5s; stop must be after that, not at 4s",
        ),
        (
            "[[probe]]\nkind = 'telnet'",
            "line 2: probe.kind: unknown kind of probe \"telnet\"; known are ssh, ping, request",
        ),
        (
            "duration = '20s'\n[[link.step]]\nat = '25s'\nrate = '1mbit'",
            "line 3: link.step.at: 25s is not after 0ms and before the end, 20s",
        ),
        (
            "[[link.step]]\nat = '5s'\nrate = '1mbit'\n[[link.step]]\nat = '5s'\nrate = '2mbit'",
            "line 5: link.step.at: 5s is not after 5s and before the end, 40s",
        ),
        (
            "[[link.step]]\nat = '5s'",
            "line 1: a step of the rate needs both: at = \"10s\", rate = \"20mbit\"",
        ),
        (
            "[[link.step]]\natt = '5s'\nrate = '1mbit'",
            "line 2: unknown key \"link.step.att\"; did you mean \"at\"?",
        ),
        ("[[flow]]\nccc = 'bbr'", "line 2: unknown key \"flow.ccc\"; did you mean \"cc\"?"),
        ("[link]\nstep = 3", "line 2: link.step must be an array of tables, [[link.step]]"),
        (
            "[[flow]]\ncc = 'bbr'\nextra_rtt = '2min'",
            "line 3: flow.extra_rtt: 120s is out of bounds; give 0ms to 60s",
        ),
        (
            "duration = '10s'\nwarmup = '1s'\n[[flow]]\ncc = 'bbr'\ncount = 3\nspacing = '5s'",
            "line 5: flow.count: 3 flows start 5s apart, the last of them at 10s, and all is over at 10s",
        ),
        (
            "[link.up]\nqdisc = 'pfifo'",
            "line 1: link.up.rate: a queue needs a rate: rate = \"10mbit\"",
        ),
        (
            "[link.up]\nrate = '5mbit'\ntrace = 'up.trace'",
            "line 3: give either a trace, or a rate and its steps",
        ),
        ("[link]\ntrace_repeats = true", "line 2: trace_repeats needs a trace = \"FILE\""),
        (
            "[link]\ntrace = 'no/such.trace'",
            "line 2: trace \"no/such.trace\": No such file or directory",
        ),
        (
            "[[link.behind]]\ndelay = '5ms'\nloss = '1%'",
            "line 1: an element of a path has exactly one of delay, slot, loss, duplicate, rate, mtu, bleach, police",
        ),
        (
            "[[link.behind]]\ndealy = '5ms'",
            "line 2: unknown key \"link.behind.dealy\"; did you mean \"delay\"?",
        ),
        (
            "[[link.up.before]]\ndelay = '5ms'\njitter = '6ms'",
            "line 3: link.up.before.jitter: 6ms is more than the delay itself, 5ms",
        ),
        (
            "[[flow]]\ncc = 'cubic'\necn = false\nect1 = true",
            "line 4: flow.ect1: ECT(1) is for flows that ask for ECN: ecn = true",
        ),
        (
            "[[flow]]\ncc = 'cubic'\nsend_buffer = '1kb'",
            "line 3: flow.send_buffer: 1Kb is out of bounds; give 2304b to 64Mb",
        ),
        (
            "[[flow]]\ncc = 'cubic'\nnotsent_lowat = '0b'",
            "line 3: flow.notsent_lowat: 0b is out of bounds; give 1b to 64Mb",
        ),
        (
            "[[flow]]\ncc = 'cubic'\nsize = '1mb'\nevery = '4s'\nfast_open = true",
            "line 5: flow.fast_open: what is sent again and again opens one connection only; leave out fast_open or every",
        ),
        (
            "[[flow]]\ncc = 'cubic'\necn = true\necn_option = 1",
            "line 4: flow.ecn_option: the option is Accurate ECN's: ecn = \"accurate\"",
        ),
        (
            "[[flow]]\ncc = 'bbr'\necn_low = true",
            "line 3: flow.ecn_low: only bbr3 with ECN heeds such a route: cc = \"bbr3\", ecn = true",
        ),
        (
            "[[flow]]\ncc = 'dctcp'\necn_fallback = true",
            "line 3: flow.ecn_fallback: only prague looks for classic queues: cc = \"prague\"",
        ),
        (
            "[receiver]\necn_option = 0",
            "line 2: receiver.ecn_option: the option is Accurate ECN's, which nobody asks for, or which is not granted",
        ),
        (
            "[receiver]\necn_option = 3",
            "line 2: receiver.ecn_option: give a whole number from 0 to 2",
        ),
        (
            "[[flow]]\ncc = 'cubic'\nevery = '4s'",
            "line 1: flow.size: what is sent again and again is of one size: size = \"1mb\"",
        ),
        (
            "[[flow]]\ncc = 'cubic'\nsize = 'web'",
            "line 3: flow.size: \"web\" is not a size: a number and b, kb, mb or gb (powers of 1024), such as 64kb, a range such as 10kb..2mb, or web-search or data-mining",
        ),
        (
            "[[udp]]\npacket = 200",
            "line 1: udp needs a rate, such as rate = \"2mbit\", an interval between packets, or a kind that has one: voice, game",
        ),
        (
            "[[udp]]\nkind = 'voice'\npacket = 2000",
            "line 3: udp.packet: give a whole number from 29 to 1500",
        ),
        (
            "[[udp]]\nrate = '1mbit'\necn = 'ect2'",
            "line 3: udp.ecn: unknown ECN codepoint \"ect2\"; did you mean \"ect0\"? known are not-ect, ect0, ect1",
        ),
        (
            "[[udp]]\nrate = '1mbit'\ninterval = '1ms'",
            "line 3: give either a rate or an interval between packets",
        ),
        ("[[probe]]\nsize = '1kb'", "line 2: probe.size: ssh has none; a request has"),
        (
            "[[probe]]\nkind = 'request'\nsize = '2gb'",
            "line 3: probe.size: 2Gb is out of bounds; give 1b to 1Gb",
        ),
        ("flow = 3", "line 1: flow must be an array of tables, [[flow]]"),
        ("[link]\nmtu = 1500\nmtu = 1400", "line 3: mtu is given twice"),
        (
            "[link]\nrate = ['1gbit',\n'1000mbit']",
            "line 3: link.rate: '1000mbit' is given twice; give each value of a list once",
        ),
        (
            "[[flow]]\ncc = 'cubic'\ncount = [1, 2, 1]",
            "line 3: flow.count: 1 is given twice; give each value of a list once",
        ),
        (
            "probe = []\nflow = []",
            "line 2: nothing is sent: give a [[flow]], a [[udp]] or a [[probe]]",
        ),
    ] {
        assert_eq!(Sweep::parse(source).unwrap_err().to_string(), message);
    }
    let negative = Sweep::parse("duration = '-1s'").unwrap_err().to_string();
    assert!(negative.starts_with("line 1: duration: \"-1s\" is not a time"), "{negative}");
    let unknown = Sweep::parse("[link]\nqdisc = 'dualpi2 targt 5ms'").unwrap_err().to_string();
    assert!(
        unknown.starts_with("line 2: link.qdisc: ") && unknown.contains("did you mean \"target\"?")
    );
    assert!(Sweep::parse("[link").unwrap_err().to_string().starts_with("line 1: "));
}

#[test]
fn a_scenario_goes_through_json() {
    let sweep = Sweep::parse(
        "[[flow]]\ncc = 'cubic'\nsize = '1mb'\nstart = '1s'\nstop = '5s'\nspacing = '0ms'\n\
                     extra_rtt = '5ms'\n[[link.step]]\nat = '4.5s'\nrate = '3mbit'",
    )
    .unwrap();
    let scenario = &sweep.variants()[0].scenario;
    let json = serde_json::to_string(scenario).unwrap();
    assert_eq!(serde_json::from_str::<Scenario>(&json).unwrap(), *scenario);
}

/// All of the language in one file, and each part of it where it belongs.
#[test]
fn paths_and_traffic() {
    let source = "
        [link]
        rtt = '30ms'
        qdisc = ['fq_codel', 'dualpi2']
        before = [{ police = '80mbit', burst = '64kb' }, { bleach = true }]
        behind = [{ rate = '100mbit', qdisc = 'pfifo limit 50' }, { delay = '5ms', jitter = '2ms', reorder = false }]
        [link.up]
        rate = '10mbit'
        loss = '0.1%'
        behind = [{ mtu = 1400, icmp = false }, { duplicate = '1%' }, { loss = '2%' }]
        [[link.up.step]]
        at = '20s'
        rate = '5mbit'
        [[flow]]
        cc = 'cubic'
        ect1 = true
        direction = 'up'
        receive_buffer = '1mb'
        send_buffer = '256kb'
        notsent_lowat = '16kb'
        fast_open = true
        read_interval = '10ms'
        [[flow]]
        cc = 'bbr'
        count = 20
        arrivals = 'poisson'
        spacing = '1s'
        size = '10kb..2mb'
        [[flow]]
        cc = 'bbr'
        size = '2mb'
        every = '4s'
        [[udp]]
        kind = 'voice'
        direction = 'up'
        [[udp]]
        rate = ['6mbit', '12mbit']
        ecn = 'ect1'
        packet = 1486
    ";
    let variants = Sweep::parse(source).unwrap().variants();
    assert_eq!(variants.len(), 4);
    assert_eq!(
        variants[1].settings,
        [("qdisc", "fq_codel"), ("udp rate 2", "12Mbit")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
    );
    let scenario = &variants[1].scenario;
    let up = scenario.link.up.as_ref().unwrap();
    assert_eq!((up.rate, up.qdisc.as_ref()), (Some(Rate::from_mbit(10)), None));
    assert_eq!(up.behind[0], Element::Mtu { mtu: 1400, icmp: false });
    assert_eq!(scenario.link.before[1], Element::Bleach);
    let [first, second, third] = &scenario.flow[..] else { panic!("{:?}", scenario.flow) };
    assert!(first.ecn == EcnRequest::Classic && first.ect1 && first.direction == Direction::Up);
    assert_eq!((first.read_interval, third.every), (Some(ms(10)), Some(ms(4_000))));
    assert_eq!((first.notsent_lowat, second.notsent_lowat), (Some(Bytes(16 << 10)), None));
    assert_eq!((first.send_buffer, second.send_buffer), (Some(Bytes(256 << 10)), None));
    assert!(first.fast_open && !second.fast_open);
    assert_eq!((second.arrivals, second.transfers(1).count()), (Arrivals::Poisson, 20));
    assert_eq!(scenario.udp[0].interval, ms(20));
    assert_eq!((scenario.udp[1].interval, scenario.udp[1].ecn), (ms(1), Ecn::Ect1));
    for Variant { scenario, .. } in &variants {
        let json = serde_json::to_string(scenario).unwrap();
        assert_eq!(serde_json::from_str::<Scenario>(&json).unwrap(), *scenario);
    }
    // Whoever names streams of UDP only means these only.
    assert!(Sweep::parse("[[udp]]\nkind = 'game'").unwrap().variants()[0].scenario.flow.is_empty());
}

/// The kernel's numbers, in TOML and in JSON; what is the default is left out.
#[test]
fn the_option_of_accurate_ecn_has_the_kernels_numbers() {
    for (number, option) in
        [(0, EcnOption::Disabled), (1, EcnOption::Minimum), (2, EcnOption::Full)]
    {
        let source = format!(
            "[receiver]\necn_option = {number}\n[[flow]]\ncc = 'prague'\necn_option = {number}"
        );
        let scenario = Sweep::parse(&source).unwrap().variants().remove(0).scenario;
        assert_eq!((scenario.receiver.ecn_option, scenario.flow[0].ecn_option), (option, option));
        let json = serde_json::to_value(&scenario).unwrap();
        let written = json["flow"][0].get("ecn_option").map(|written| written.as_u64().unwrap());
        assert_eq!(written, Some(number).filter(|number| *number < 2));
        assert_eq!(serde_json::from_value::<Scenario>(json).unwrap(), scenario);
    }
    let mut json = serde_json::to_value(Scenario::try_from(Setup::default()).unwrap()).unwrap();
    json["receiver"]["ecn_option"] = 3.into();
    let error = serde_json::from_value::<Scenario>(json).unwrap_err().to_string();
    assert!(error.contains("give a whole number from 0 to 2"), "{error}");
}

/// A tunnel's name stands for what it leaves of the link's MTU, in either direction.
#[test]
fn tunnels_leave_an_mtu() {
    let mtu_of = |link: &str| {
        let sweep = Sweep::parse(&format!("[link]\n{link}")).map_err(|error| error.to_string())?;
        let link = sweep.variants().remove(0).scenario.link.clone();
        let mut all = link.before.into_iter().chain(link.up.into_iter().flat_map(|up| up.behind));
        Ok::<_, String>(all.next().expect("there is one"))
    };
    let mtu = |mtu, icmp| Ok(Element::Mtu { mtu, icmp });
    assert_eq!(mtu_of("before = [{ mtu = 'wireguard6' }]"), mtu(1420, true));
    assert_eq!(
        mtu_of("mtu = 9000\n[link.up]\nbehind = [{ mtu = 'gre', icmp = false }]"),
        mtu(8976, false)
    );
    assert_eq!(mtu_of("before = [{ mtu = 'ipsec' }]"), mtu(1446, true));
    for (link, message) in [
        (
            "before = [{ mtu = 'wiregard' }]",
            "line 2: link.before.mtu: there is no tunnel \"wiregard\"; did you mean \"wireguard\"?",
        ),
        (
            "mtu = [1500, 9000]\nbefore = [{ mtu = 'gre' }]",
            "line 3: link.before.mtu: of several link.mtu no tunnel leaves the same; give bytes",
        ),
        (
            "mtu = 576\nbefore = [{ mtu = 'gre' }]",
            "line 3: link.before.mtu: GRE over IPv4 leaves less than 576 bytes",
        ),
    ] {
        assert_eq!(mtu_of(link).unwrap_err(), message);
    }
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A trace becomes steps of the rate, to the end of the run, whichever that is.
#[test]
fn traces_become_steps() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("train.trace"), "2\n4\n6\n8\n500\n").unwrap();
    let parse = |source: &str, overrides: &Overrides| {
        Sweep::parse_in(folder.path(), source, overrides)
            .map(|sweep| sweep.variants().remove(0).scenario)
    };
    let source =
        "[link]\ntrace = 'train.trace'\n[link.up]\ntrace = 'train.trace'\ntrace_repeats = false";
    let scenario = parse(source, &Overrides::default()).unwrap();
    // 40 s of half a second each, with two rates.
    assert_eq!(scenario.link.step.len(), 159);
    assert_eq!(scenario.link.rate.as_bits_per_second(), 4 * 1514 * 800);
    assert_eq!(scenario.link.up.as_ref().map(|up| up.step.len()), Some(1));
    let shorter = Overrides { duration: Some("1s".to_owned()), ..Overrides::default() };
    assert_eq!(parse(source, &shorter).unwrap().link.step.len(), 3);
    let steady = Overrides { rate: vec!["5mbit".to_owned()], ..Overrides::default() };
    assert!(parse(source, &steady).unwrap().link.step.is_empty());

    fs::write(folder.path().join("broken.trace"), "5\nsecret\n").unwrap();
    let error = parse("[link]\ntrace = 'broken.trace'", &Overrides::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 2: trace \"broken.trace\": line 2: a line of a trace is a time in whole milliseconds"
    );
    let error = parse("[link]\ntrace = '.'", &Overrides::default()).unwrap_err().to_string();
    assert_eq!(error, "line 2: trace \".\": it is no file");
    // A hole takes no room.
    let long = fs::File::create(folder.path().join("long.trace")).unwrap();
    long.set_len((100 << 20) + 1).unwrap();
    let error = parse("[link]\ntrace = 'long.trace'", &Overrides::default()).unwrap_err();
    assert_eq!(error.to_string(), "line 2: trace \"long.trace\": it is no text");
    let pipe = folder.path().join("pipe");
    if Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success()) {
        let error = parse("[link]\ntrace = 'pipe'", &Overrides::default()).unwrap_err();
        assert_eq!(error.to_string(), "line 2: trace \"pipe\": it is no file");
    }
}

/// A file of sizes becomes the distribution itself, which needs no file any more.
#[test]
fn files_of_sizes_become_distributions() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("mail.cdf"), "1000 50 # percent\n9000 100\n").unwrap();
    let parse = |source: &str| Sweep::parse_in(folder.path(), source, &Overrides::default());
    let flows = "[[flow]]\ncc = 'cubic'\ncount = 50\nspacing = '0ms'\n";
    let sweep = parse(&format!("{flows}sizes = 'mail.cdf'")).unwrap();
    assert_eq!(sweep.files.keys().collect::<Vec<_>>(), ["mail.cdf"]);
    let scenario = sweep.variants().remove(0).scenario;
    let sizes: Vec<u64> =
        scenario.flow[0].transfers(0).map(|transfer| transfer.size.unwrap().0).collect();
    let small = sizes.iter().filter(|size| **size == 1000).count();
    assert!((15..35).contains(&small) && sizes.iter().all(|size| (1000..=9000).contains(size)));
    let json = serde_json::to_string(&scenario).unwrap();
    assert!(json.contains("\"1000b:0.5 9000b:1\""), "{json}");
    assert_eq!(serde_json::from_str::<Scenario>(&json).unwrap(), scenario);
    let word = parse(&format!("{flows}size = '1000b:0.5 9000b:1'")).unwrap();
    assert_eq!(word.variants().remove(0).scenario, scenario);

    fs::write(folder.path().join("broken.cdf"), "1000 0.5\nsecret\n").unwrap();
    for (key, wrong) in [
        (
            "sizes = 'broken.cdf'",
            "sizes \"broken.cdf\": line 2: a line has a size in bytes and the share of transfers that are no larger, such as 10000 0.25",
        ),
        ("sizes = 'none.cdf'", "sizes \"none.cdf\": No such file or directory"),
        ("size = '1kb'\nsizes = 'mail.cdf'", "give either a size, or sizes = \"FILE\""),
    ] {
        let error = parse(&format!("[[flow]]\ncc = 'cubic'\n{key}")).unwrap_err().to_string();
        let line = 2 + key.lines().count();
        assert_eq!(error, format!("line {line}: {wrong}"));
    }
}

/// What is shipped is right, says what it shows, and where its figures come from.
#[test]
fn shipped_plans() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut seen = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let source = fs::read_to_string(&path).unwrap();
        let sweep = Sweep::parse_in(&folder, &source, &Overrides::default())
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(path.file_stem().unwrap(), sweep.name.as_str());
        assert!(!sweep.about.is_empty() && !sweep.published.is_empty());
        seen += 1;
    }
    assert!(seen >= 10, "{seen}");
}

/// Whoever says only how long gets figures; whoever says both is taken at their word.
#[test]
fn the_warmup_fits_into_a_short_duration() {
    for (text, seconds) in [
        ("duration = '4s'", 1),
        ("duration = '10s'\nwarmup = '3s'", 3),
        ("duration = '11s'", 10),
        ("", 10),
    ] {
        let variants = Sweep::parse(text).unwrap().variants();
        assert_eq!(variants[0].scenario.warmup, std::time::Duration::from_secs(seconds), "{text}");
    }
}
