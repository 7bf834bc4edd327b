//! The server as it is left running.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsRawFd as _, RawFd};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use dualq_measure::{Direction, Far, Measurement, Options, Token};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use tests_skipped::{is_root, skipped};

use super::{DUALQ, dualq, folder};

/// A server that ends with this.
struct Serving {
    child: Child,
    /// What it says later has a reader, too.
    _stderr: BufReader<ChildStderr>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts it, and tells what it says once it serves.
fn start(command: &mut Command) -> (Serving, String) {
    let mut child = command.stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("serving at ") {
        assert!(stderr.read_line(&mut said).unwrap() > 0, "{said}");
    }
    (Serving { child, _stderr: stderr }, said)
}

fn measure(at: SocketAddr) -> Measurement {
    let options = Options {
        host: at.ip().to_string(),
        port: at.port(),
        family: None,
        far: Far::Dualq(Token::new([0x5e; 32])),
        directions: vec![Direction::Both],
        streams: Some(1),
        cc: None,
        rate: Some("20mbit".parse().unwrap()),
        max_time: Duration::from_secs(3),
        max_bytes: None,
    };
    dualq_measure::measure(&options, &mut |_| {}).unwrap()
}

#[test]
fn it_keeps_nothing_that_it_does_not_need() {
    let folder = folder();
    let token = folder.path().join("token");
    let mut command = Command::new(DUALQ);
    command.args(["serve", "--listen", "127.0.0.1:0", "--token-file"]).arg(&token);
    let (serving, said) = start(&mut command);
    let address = said.split("serving at ").nth(1).unwrap().split(',').next().unwrap();
    let measured = measure(address.parse().unwrap());
    assert!(measured.under(Direction::Both).unwrap().up.is_some());
    let process = format!("/proc/{}", serving.child.id());
    let status = fs::read_to_string(format!("{process}/status")).unwrap();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    if is_root() && !said.contains("it stays root") {
        assert_eq!(field("Uid:"), ["65534"; 4], "{said}");
        assert_eq!(field("Gid:"), ["65534"; 4]);
        assert_eq!(field("Groups:"), [""; 0]);
    }
    assert_eq!(field("CapEff:"), ["0000000000000000"]);
    for (what, name, value) in [("Landlock", "NoNewPrivs:", "1"), ("seccomp", "Seccomp:", "2")] {
        if said.contains(what) && !said.contains("no Landlock") {
            assert_eq!(field(name), [value], "{said}");
        }
    }
}

/// Sockets that a process which is started from here has too.
fn inherited(fd: RawFd, borrowed: impl std::os::fd::AsFd) -> RawFd {
    fcntl(borrowed, FcntlArg::F_SETFD(FdFlag::empty())).unwrap();
    fd
}

#[test]
fn it_takes_the_sockets_that_it_is_started_with() {
    let folder = folder();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let datagrams = UdpSocket::bind(at).unwrap();
    let fds =
        [inherited(listener.as_raw_fd(), &listener), inherited(datagrams.as_raw_fd(), &datagrams)];
    // As systemd does: from 3 on, and for this process alone. They may have these numbers already, the other way round.
    let script = format!(
        "exec {{tcp}}<&{} {{udp}}<&{}; exec 3<&$tcp 4<&$udp; LISTEN_PID=$$ LISTEN_FDS=2 exec {DUALQ} serve --token-file token",
        fds[0], fds[1]
    );
    let (_serving, said) =
        start(Command::new("bash").args(["-c", &script]).current_dir(folder.path()));
    assert!(said.contains(&at.to_string()), "{said}");
    drop((listener, datagrams));
    assert!(measure(at).bytes > 100_000);
}

#[test]
fn a_new_token_is_its_owners_alone() {
    use std::os::unix::fs::MetadataExt as _;

    let folder = folder();
    let mut command = Command::new(DUALQ);
    command.args(["serve", "--listen", "127.0.0.1:0", "--new", "fresh"]).current_dir(folder.path());
    let (_serving, said) = start(&mut command);
    let fresh = folder.path().join("fresh");
    assert_eq!(fs::metadata(&fresh).unwrap().mode() & 0o777, 0o600);
    assert!(fs::read_to_string(&fresh).unwrap().parse::<Token>().is_ok());
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn its_units_are_what_systemd_takes() {
    let folder = folder();
    for kind in ["service", "socket"] {
        let (_, stdout, _) = dualq(folder.path(), &["serve", "--unit", kind]);
        let unit = stdout.replace("/usr/local/bin/dualq", DUALQ);
        fs::write(folder.path().join(format!("dualq-serve.{kind}")), unit).unwrap();
    }
    let analyze = |args: &[&str]| {
        Command::new("systemd-analyze").args(args).current_dir(folder.path()).output().ok()
    };
    let units = ["./dualq-serve.service", "./dualq-serve.socket"];
    let Some(verified) = analyze(&["verify", "--man=no", units[0], units[1]]) else {
        return skipped("there is no systemd-analyze");
    };
    let said = String::from_utf8_lossy(&verified.stderr);
    assert!(!said.contains("dualq-serve") && verified.status.success(), "{said}");
    // Of 10, in tenths: the less the better.
    let exposed = analyze(&["security", "--offline=true", "--threshold=20", units[0]]).unwrap();
    assert!(exposed.status.success(), "{}", String::from_utf8_lossy(&exposed.stdout));
}
