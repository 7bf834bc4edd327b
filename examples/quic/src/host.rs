//! One end of a connection: quinn's endpoint, its connection, and the program that writes or reads.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig,
    Event, ServerConfig, StreamEvent, StreamId, Transmit, TransportConfig, VarInt,
};
use rustls::RootCertStore;
use rustls::pki_types::PrivatePkcs8KeyDer;

use crate::packet::Datagram;
use crate::{Flow, RaceError};

const NAME: &str = "receiver.test";

/// More than the links of these tests hold, so that nothing but the congestion window limits what is sent.
const BUFFERS: u32 = 1 << 26;

static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// What handshakes need. Keys are new each time; their lengths are always the same.
pub(crate) struct Identity {
    server: ServerConfig,
    roots: Arc<RootCertStore>,
}

impl Identity {
    pub(crate) fn new() -> Result<Self, RaceError> {
        let tls = |error: &dyn std::fmt::Display| RaceError::Tls(error.to_string());
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).map_err(|e| tls(&e))?;
        let names = rcgen::CertificateParams::new([NAME.to_owned()]).map_err(|e| tls(&e))?;
        let certificate = names.self_signed(&key).map_err(|e| tls(&e))?;
        let der = certificate.der().clone();
        let mut roots = RootCertStore::empty();
        roots.add(der.clone()).map_err(|e| tls(&e))?;
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let server = ServerConfig::with_single_cert(vec![der], key.into()).map_err(|e| tls(&e))?;
        Ok(Self { server, roots: Arc::new(roots) })
    }
}

/// The end that connects and writes, or the one that accepts and reads.
pub(crate) struct Host {
    flow: u32,
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    remote: SocketAddr,
    /// The stream that is written, on the sender's side.
    stream: Option<StreamId>,
    /// Whether something happened since [`serve`](Self::serve) looked.
    pub(crate) is_due: bool,
    /// When its next timer fires.
    pub(crate) timer: Option<Instant>,
    /// Bytes that the program has read.
    pub(crate) read: u64,
    buffer: Vec<u8>,
}

fn address(flow: u32, last: u8) -> SocketAddr {
    let [.., c, d] = flow.to_be_bytes();
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, c, d, last)), 4433)
}

fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .max_idle_timeout(None)
        .stream_receive_window(VarInt::from_u32(BUFFERS))
        .receive_window(VarInt::from_u32(BUFFERS))
        .send_window(BUFFERS.into())
        .enable_segmentation_offload(false);
    transport
}

fn endpoint(seed: u64, server: Option<ServerConfig>) -> Endpoint {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_be_bytes());
    Endpoint::new(Arc::new(EndpointConfig::default()), server.map(Arc::new), true, Some(bytes))
}

impl Host {
    fn new(flow: u32, remote: SocketAddr, endpoint: Endpoint) -> Self {
        Self {
            flow,
            endpoint,
            connection: None,
            remote,
            stream: None,
            is_due: false,
            timer: None,
            read: 0,
            buffer: Vec::new(),
        }
    }

    pub(crate) fn sender(flow: u32, seed: u64) -> Self {
        Self::new(flow, address(flow, 2), endpoint(seed, None))
    }

    pub(crate) fn receiver(flow: u32, seed: u64, identity: &Identity) -> Self {
        let mut server = identity.server.clone();
        server.transport_config(Arc::new(transport()));
        Self::new(flow, address(flow, 1), endpoint(seed, Some(server)))
    }

    /// The sender asks for its connection.
    pub(crate) fn connect(
        &mut self,
        now: Instant,
        flow: &Flow,
        identity: &Identity,
    ) -> Result<(), RaceError> {
        let tls = |error: &dyn std::fmt::Display| RaceError::Tls(error.to_string());
        let config = ClientConfig::with_root_certificates(Arc::clone(&identity.roots));
        let mut config = config.map_err(|error| tls(&error))?;
        let mut transport = transport();
        transport.congestion_controller_factory(Arc::clone(&flow.controller) as _);
        config.transport_config(Arc::new(transport));
        let connection = self.endpoint.connect(now, config, self.remote, NAME);
        self.connection = Some(connection.map_err(|error| tls(&error))?);
        self.is_due = true;
        Ok(())
    }

    /// A datagram arrives; an answer that is no connection's is sent.
    pub(crate) fn receive(&mut self, now: Instant, datagram: Datagram, send: &mut Vec<Datagram>) {
        let ecn = datagram.codepoint();
        self.buffer.clear();
        let buffer = &mut self.buffer;
        let event = self.endpoint.handle(now, self.remote, None, ecn, datagram.payload, buffer);
        self.is_due = true;
        let answer = match event {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some((ours, connection)) = &mut self.connection
                    && *ours == handle
                {
                    connection.handle_event(event);
                }
                None
            }
            Some(DatagramEvent::NewConnection(incoming)) if self.connection.is_none() => {
                match self.endpoint.accept(incoming, now, buffer, None) {
                    Ok(connection) => {
                        self.connection = Some(connection);
                        None
                    }
                    Err(refused) => refused.response,
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.endpoint.ignore(incoming);
                None
            }
            Some(DatagramEvent::Response(answer)) => Some(answer),
            None => None,
        };
        send.extend(answer.map(|transmit| datagram_of(self.flow, &transmit, &self.buffer)));
    }

    pub(crate) fn fire(&mut self, now: Instant) {
        if let Some((_, connection)) = &mut self.connection {
            connection.handle_timeout(now);
            self.is_due = true;
        }
    }

    /// Does all that there is to do now: the program's part, and what the connection sends.
    ///
    /// # Errors
    /// Why the connection ended, in quinn's words.
    pub(crate) fn serve(&mut self, now: Instant, send: &mut Vec<Datagram>) -> Result<(), String> {
        self.is_due = false;
        let Some((handle, connection)) = &mut self.connection else { return Ok(()) };
        loop {
            let mut more = false;
            while let Some(event) = connection.poll() {
                more = true;
                match event {
                    Event::Connected if connection.side().is_client() => {
                        self.stream = connection.streams().open(Dir::Uni);
                    }
                    Event::Stream(StreamEvent::Opened { dir }) => {
                        while let Some(stream) = connection.streams().accept(dir) {
                            self.read += read(connection, stream);
                        }
                    }
                    Event::Stream(StreamEvent::Readable { id }) => {
                        self.read += read(connection, id);
                    }
                    Event::ConnectionLost { reason } => return Err(reason.to_string()),
                    _ => {}
                }
            }
            if let Some(stream) = self.stream {
                write(connection, stream);
            }
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(event) = self.endpoint.handle_event(*handle, event) {
                    connection.handle_event(event);
                    more = true;
                }
            }
            loop {
                self.buffer.clear();
                let Some(transmit) = connection.poll_transmit(now, 1, &mut self.buffer) else {
                    break;
                };
                send.push(datagram_of(self.flow, &transmit, &self.buffer));
            }
            if !more {
                break;
            }
        }
        self.timer = connection.poll_timeout();
        Ok(())
    }

    /// Packets that quinn deems lost, and its estimate of the round trip.
    pub(crate) fn path(&self) -> (u64, Duration) {
        self.connection.as_ref().map_or_else(Default::default, |(_, connection)| {
            let path = connection.stats().path;
            (path.lost_packets, path.rtt)
        })
    }
}

fn datagram_of(flow: u32, transmit: &Transmit, buffer: &[u8]) -> Datagram {
    Datagram::new(flow, transmit.ecn, &buffer[..transmit.size])
}

/// Takes all that is there.
fn read(connection: &mut Connection, stream: StreamId) -> u64 {
    let mut bytes = 0;
    let mut stream = connection.recv_stream(stream);
    if let Ok(mut chunks) = stream.read(true) {
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            bytes += chunk.bytes.len() as u64;
        }
        // Whatever this wants sent, `serve` sends.
        let _ = chunks.finalize();
    }
    bytes
}

/// Writes what quinn takes: a program that never runs dry.
fn write(connection: &mut Connection, stream: StreamId) {
    let mut stream = connection.send_stream(stream);
    while stream.write_chunks(&mut [Bytes::from_static(&ZEROS)]).is_ok() {}
}
