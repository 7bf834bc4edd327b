//! What a person sees at a terminal, and a file does not get.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

const BOLD: &str = "\x1b[1m";

/// Both sides of a terminal of so many columns: this one, and the program's.
fn terminal(columns: u16) -> (File, File) {
    let master: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&master, size).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let slave = OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    (master.into(), slave)
}

/// What the program writes to a terminal of so many columns.
fn shown(columns: u16, args: &[&str], environment: &[(&str, &str)]) -> String {
    let (mut master, slave) = terminal(columns);
    let mut command = Command::new(env!("CARGO_BIN_EXE_dualq"));
    command.args(args).current_dir(env!("CARGO_MANIFEST_DIR"));
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR")).env("TERM", "xterm");
    command.env_remove("COLUMNS").env_remove("NO_COLOR").envs(environment.iter().copied());
    let mut child =
        command.stdin(Stdio::null()).stdout(slave).stderr(Stdio::null()).spawn().unwrap();
    // Else this side would hold the terminal open, and its end never come.
    drop(command);
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    // Linux ends a terminal that nobody holds any more by EIO.
    while let Ok(read @ 1..) = master.read(&mut part) {
        bytes.extend_from_slice(&part[..read]);
    }
    assert!(child.wait().unwrap().success());
    String::from_utf8(bytes).unwrap().replace("\r\n", "\n")
}

const RUN: [&str; 11] = [
    "run",
    "scenarios/narrow-vps.toml",
    "--duration",
    "4s",
    "--qdisc",
    "fq_codel",
    "--qdisc",
    "pfifo",
    "--cc",
    "cubic",
    "--no-progress",
];

#[test]
fn the_best_row_is_bold_where_there_are_colours() {
    let text = shown(120, &RUN, &[]);
    let bold: Vec<&str> = text.lines().filter(|line| line.contains('\x1b')).collect();
    assert_eq!(bold.len(), 1, "{text}");
    assert!(bold[0].starts_with(BOLD) && bold[0].contains("fq_codel"), "{text}");
    for environment in [[("NO_COLOR", "1")], [("TERM", "dumb")]] {
        assert!(!shown(120, &RUN, &environment).contains('\x1b'));
    }
}

const WORSE: [&str; 9] = [
    "plan",
    "--facts",
    "tests/data/facts/linux-7.3.json",
    "--rate",
    "48mbit",
    "--rtt",
    "48ms",
    "--qdisc",
    "pfifo limit 9000",
];

#[test]
fn a_plan_that_is_worse_than_now_says_so_in_bold() {
    let text = shown(100, &WORSE, &[]);
    assert!(text.starts_with(&format!("{BOLD}worse than now in the simulation")), "{text}");
    assert_eq!(text.matches(BOLD).count(), 1, "{text}");
    let better = shown(100, &WORSE[..7], &[]);
    assert!(!better.contains('\x1b'), "{better}");
}

#[test]
fn running_text_is_as_wide_as_the_terminal() {
    let widest = |columns, args: &[&str]| {
        let text = shown(columns, args, &[]);
        // What is to be typed or compared stays in one piece.
        let prose =
            text.lines().filter(|line| line.starts_with("    ") || line.starts_with("  - "));
        prose.map(|line| line.chars().count()).max().unwrap()
    };
    for args in [&WORSE[..7], &["doctor", "--facts", "tests/data/facts/debian-12.json"]] {
        let (narrow, wide) = (widest(60, args), widest(300, args));
        assert!(narrow <= 60, "{args:?}: {narrow}");
        assert!(wide > 80 && wide <= 100, "{args:?}: {wide}");
    }
}

/// Whoever watches this machine has enough, by a key or by Ctrl-C, which is one too.
#[test]
fn a_key_ends_what_is_watched() {
    for key in [b"q", b"\x03"] {
        let (mut master, slave) = terminal(100);
        let mut command = Command::new(env!("CARGO_BIN_EXE_dualq"));
        command.args(["watch", "lo", "--interval", "50ms"]).stdin(slave.try_clone().unwrap());
        let mut child = command.stdout(slave).stderr(Stdio::null()).spawn().unwrap();
        drop(command);
        let (mut text, mut part) = (String::new(), [0; 4096]);
        let mut is_pressed = false;
        while let Ok(read @ 1..) = master.read(&mut part) {
            text += &String::from_utf8_lossy(&part[..read]);
            // It has been drawn more than once.
            if !is_pressed && text.matches("q quit").count() > 2 {
                master.write_all(key).unwrap();
                is_pressed = true;
            }
        }
        assert!(child.wait().unwrap().success(), "{text}");
        let (pages, last) = text.split_once("\x1b[?1049l").unwrap();
        assert!(pages.starts_with("\x1b[?1049h\x1b[?25l"), "{text:?}");
        // What was shown last is there to be read.
        assert!(last.contains("queue discipline") && !last.contains("q quit"), "{last:?}");
    }
}
