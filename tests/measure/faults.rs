//! Paths and servers that do what they should not.

use std::fs;

use dualq_measure::figures::Fate;
use dualq_measure::{Direction, Measurement};

use super::{DUALQ, able, across, dualq, folder, line, measuring};

/// What became of packets one way: of ECT(1), ECT(0) and CE.
fn fates(measured: &Measurement, direction: Direction) -> Vec<Fate> {
    let all = measured.ecn.iter().filter(|fate| fate.direction == direction);
    all.filter(|fate| fate.sent.bits() > 0).map(|fate| fate.fate).collect()
}

#[test]
fn a_router_that_bleaches_ecn_one_way_is_found() {
    if !able() {
        return;
    }
    let folder = folder();
    let path = folder.path().join("bleach.toml").display().to_string();
    let bleach = "behind = [{ bleach = true }]";
    let ways = [
        (bleach.to_owned(), Direction::Download),
        (format!("[link.up]\n{bleach}"), Direction::Upload),
    ];
    for (where_it_is, direction) in ways {
        fs::write(&path, format!("[link]\nrate = \"50mbit\"\nrtt = \"20ms\"\n{where_it_is}\n"))
            .unwrap();
        let measured = across(&["--scenario", &path], "--direction download --max-time 2s");
        let other =
            if direction == Direction::Download { Direction::Upload } else { Direction::Download };
        assert_eq!(fates(&measured, direction), [Fate::Bleached; 3], "{direction:?}");
        assert_eq!(fates(&measured, other), [Fate::Passes; 3], "{direction:?}");
    }
}

#[test]
fn a_server_that_ends_or_stands_still_is_told_in_one_line() {
    if !able() {
        return;
    }
    let serve = format!("{DUALQ} serve --token-file token 2>/dev/null");
    let ends = [
        (format!("timeout -s KILL 3 {serve}"), "has vanished"),
        (format!("{serve} & sleep 3; kill -STOP $!; sleep 30"), "has vanished"),
        (format!("exec {serve} --max-duration 2s"), "a session may last 2 s there"),
    ];
    for (far, what) in ends {
        let folder = folder();
        let near = measuring("--direction upload,download");
        let mut args = line(&["--rtt", "20ms"], &near);
        let at = args.iter().position(|word| *word == "--far").unwrap();
        args[at + 1] = &far;
        let (output, stdout, stderr) = dualq(folder.path(), &args);
        assert_eq!((output.status.code(), stdout.as_str()), (Some(1), ""), "{far}: {stderr}");
        let errors: Vec<&str> = stderr.lines().filter(|line| line.starts_with("error: ")).collect();
        assert!(matches!(errors[..], [one] if one.contains(what)), "{far}: {stderr}");
    }
}

#[test]
fn an_address_where_nobody_answers_is_told_in_one_line() {
    if !able() {
        return;
    }
    let folder = folder();
    let near = format!("exec {DUALQ} measure $FAR --token-file token --port 9 --no-progress");
    let (output, _, stderr) =
        dualq(folder.path(), &["shell", "--quiet", "--", "bash", "-c", &near]);
    // The sink takes everything and says nothing.
    assert!(stderr.contains("it sent nothing in time"), "{stderr}");
    assert_eq!((output.status.code(), stderr.lines().count()), (Some(1), 1));
}
