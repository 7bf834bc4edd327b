//! The other end: answers whoever knows its token, within limits, and harms nobody who does not.
//!
//! A thread for each connection, of which there is a bounded number in all and for each address; one for each socket of datagrams.

mod allow;
mod confine;
mod connection;
mod datagrams;
mod guests;
mod session;
mod sockets;
mod syns;

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use dualq_units::Rate;

pub use allow::{Network, NetworkError};
pub use confine::Held;
pub use sockets::ServeError;

use crate::Token;
use guests::Guests;
use session::Sessions;
use syns::Syns;

/// What a thread of a connection needs, which reads and writes its own buffers.
pub(crate) const STACK_BYTES: usize = 256 << 10;
/// When there are no file descriptors left, which passes.
const PATIENCE: Duration = Duration::from_millis(20);

/// What a server allows, and whom.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What its clients have to know.
    pub token: Token,
    /// How long a session may last.
    pub max_duration: Duration,
    /// How fast the flows of a session may be altogether, in each direction: it sends no faster, and reads no faster.
    pub max_rate: Option<Rate>,
    /// How many sessions there may be at once.
    pub max_sessions: usize,
    /// From where they may come; from everywhere if this is empty.
    pub allow: Vec<Network>,
}

/// A server that has its sockets.
#[derive(Debug)]
pub struct Server {
    listeners: Vec<TcpListener>,
    datagrams: Vec<UdpSocket>,
    shared: Arc<Shared>,
}

/// What all threads know.
#[derive(Debug)]
struct Shared {
    settings: Settings,
    sessions: Sessions,
    guests: Guests,
    syns: Syns,
}

impl Server {
    /// A server at these addresses, each for TCP and UDP; or, with none, at the sockets that it was started with (systemd's socket
    /// activation, `LISTEN_FDS`).
    ///
    /// # Errors
    /// If an address is taken or is not this host's, or if there are no such sockets.
    pub fn open(addresses: &[SocketAddr], settings: Settings) -> Result<Self, ServeError> {
        let (listeners, datagrams) =
            if addresses.is_empty() { sockets::inherited()? } else { sockets::bound(addresses)? };
        let sessions = Sessions::new(settings.max_sessions);
        let shared = Arc::new(Shared {
            settings,
            sessions,
            guests: Guests::default(),
            syns: Syns::default(),
        });
        Ok(Self { listeners, datagrams, shared })
    }

    /// Where it listens for TCP.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect()
    }

    /// Gives up what a server does not need: root, files, other programs, other sockets. It is for the whole process, which therefore
    /// should have no other threads. Says what holds now.
    #[must_use]
    pub fn confine(&self) -> Held {
        confine::enter()
    }

    /// Serves until the process ends.
    ///
    /// # Errors
    /// If no threads can be started.
    pub fn run(self) -> io::Result<()> {
        let mut threads = Vec::new();
        for socket in self.datagrams {
            let shared = Arc::clone(&self.shared);
            threads.push(spawn("datagrams", move || datagrams::answer(&socket, &shared))?);
        }
        for listener in self.listeners {
            let shared = Arc::clone(&self.shared);
            threads.push(spawn("listener", move || accept(&listener, &shared))?);
        }
        for thread in threads {
            let _ = thread.join();
        }
        Ok(())
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES).spawn(work)
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    loop {
        match listener.accept() {
            Ok((stream, from)) => welcome(stream, from, shared),
            Err(_) => thread::sleep(PATIENCE),
        }
    }
}

/// Gives a connection a thread, if its address may have one.
fn welcome(stream: TcpStream, from: SocketAddr, shared: &Arc<Shared>) {
    let address = from.ip().to_canonical();
    let allowed = &shared.settings.allow;
    if !allowed.is_empty() && !allowed.iter().any(|network| network.contains(address)) {
        return;
    }
    let Some(guest) = Guests::admit(shared, address, &stream) else {
        connection::turn_away(&stream);
        return;
    };
    let shared = Arc::clone(shared);
    // Without threads it is as without room.
    let _ = spawn("connection", move || connection::serve(stream, address, guest, &shared));
}
