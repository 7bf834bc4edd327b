//! `dualq serve`: the other end of measurements.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use dualq_measure::Token;
use dualq_measure::protocol::PORT;
use dualq_measure::server::{Held, Network, ServeError, Server, Settings};
use dualq_units::plain;

use crate::cli::measure::{ServeArgs, Unit};
use crate::cli::{Failure, note, note_units};
use crate::measure::{read_rate, read_time, token};
use crate::output::print;

const SERVICE: &str = include_str!("serve/dualq-serve.service");
const SOCKET: &str = include_str!("serve/dualq-serve.socket");

pub(crate) fn run(args: &ServeArgs) -> Result<(), Failure> {
    match args.unit {
        Some(Unit::Service) => return print(&mut io::stdout(), SERVICE),
        Some(Unit::Socket) => return print(&mut io::stdout(), SOCKET),
        None => {}
    }
    let max_duration = read_time("--max-duration", &args.max_duration)?;
    let max_rate =
        args.max_rate.as_deref().map(|word| read_rate("--max-rate", word)).transpose()?;
    let allow: Result<Vec<Network>, _> = args.allow.iter().map(|word| word.parse()).collect();
    let allow = allow.map_err(|error| Failure::Usage(format!("--allow: {error}")))?;
    note_units(&args.max_rate, [("--max-duration", &args.max_duration)]);
    let token = match (&args.new, &args.token_file) {
        (Some(path), _) => new_token(path)?,
        (None, Some(path)) => {
            tell_if_public(path);
            token(path)?
        }
        (None, None) => unreachable!("one of them is required"),
    };
    let max_sessions = args.max_sessions as usize;
    let settings = Settings { token, max_duration, max_rate, max_sessions, allow };
    let addresses =
        if args.listen.is_empty() && !is_activated() { everywhere() } else { args.listen.clone() };
    let server = Server::open(&addresses, settings)?;
    let listens: Vec<String> = server.addresses().iter().map(ToString::to_string).collect();
    let held = server.confine();
    tell(&listens, &held);
    server.run().map_err(|error| ServeError::from(error).into())
}

/// Says where it serves, and what it cannot do any more.
fn tell(listens: &[String], held: &Held) {
    let mut holds = Vec::new();
    for (name, holding) in [
        ("no root", &held.unprivileged),
        ("no files (Landlock)", &held.landlock),
        ("few system calls (seccomp)", &held.seccomp),
    ] {
        match holding {
            Ok(()) => holds.push(name),
            Err(why) => note(why),
        }
    }
    let holds = if holds.is_empty() { "nothing".to_owned() } else { holds.join(", ") };
    // Nobody need read it.
    let _ = writeln!(
        io::stderr(),
        "serving at {}, TCP and UDP; confined: {holds}",
        listens.join(" and ")
    );
}

fn everywhere() -> Vec<SocketAddr> {
    vec![(Ipv4Addr::UNSPECIFIED, PORT).into(), (Ipv6Addr::UNSPECIFIED, PORT).into()]
}

/// Whether this process was started with sockets (sd_listen_fds(3)).
fn is_activated() -> bool {
    std::env::var("LISTEN_PID").is_ok_and(|pid| pid == std::process::id().to_string())
}

/// Makes a token and writes it to a file that nobody else may read.
fn new_token(path: &Path) -> Result<Token, Failure> {
    let name = path.display();
    let token = Token::random().map_err(|error| {
        Failure::Run(format!("the system has no random numbers: {}", plain(&error)))
    })?;
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| {
        let written = file.write_all(format!("{}\n", token.to_text()).as_bytes());
        written.and_then(|()| file.sync_all()).inspect_err(|_| {
            // Half a token on a full disk is of no use.
            let _ = std::fs::remove_file(path);
        })
    });
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::Run(format!(
            "--new: {name} is there already; --token-file {name} serves with it"
        )),
        _ => Failure::Run(format!("--new: cannot write {name}: {}", plain(&error))),
    })?;
    Ok(token)
}

/// A secret that everybody on this machine can read is worth a word.
fn tell_if_public(path: &Path) {
    if path.metadata().is_ok_and(|metadata| metadata.mode() & 0o044 != 0) {
        note(&format!(
            "{} can be read by others on this machine; chmod 600 changes that",
            path.display()
        ));
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        Self::Run(error.to_string())
    }
}
