#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod bytes;
mod http;
mod serve;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

pub use serve::{Service, serve};

/// Connections that are served at once; more have to wait until they are.
const CONNECTIONS: usize = 1000;
/// How long one that has to wait does so before it is looked at again.
const PATIENCE: Duration = Duration::from_millis(10);
/// What a thread needs that moves bytes from a buffer of its own.
const STACK_BYTES: usize = 256 << 10;
/// As many as can arrive at once without being turned away.
const BACKLOG: i32 = 1024;
/// The longest datagram.
const DATAGRAM_BYTES: usize = 65_535;

/// Opens all services in the network namespace of the calling thread. They are there until the process ends.
///
/// # Errors
/// If a port is taken, or no thread can be started.
pub fn start(has_ipv6: bool) -> io::Result<()> {
    let busy = Arc::new(AtomicUsize::new(0));
    for service in Service::ALL {
        let listener = listen(service.port(), has_ipv6)?;
        let busy = Arc::clone(&busy);
        spawn(service.name(), move || accept(&listener, service, &busy))?;
    }
    let (echo, sink) = (Service::Echo.port(), Service::Sink.port());
    let echo = datagrams(echo, has_ipv6)?;
    spawn("udp echo", move || echo_datagrams(&echo))?;
    let sink = datagrams(sink, has_ipv6)?;
    spawn("udp sink", move || sink_datagrams(&sink))
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let thread = thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES);
    thread.spawn(work).map(drop)
}

fn accept(listener: &TcpListener, service: Service, busy: &Arc<AtomicUsize>) {
    for connection in listener.incoming() {
        // Also when there are no file descriptors left, which passes.
        while connection.is_err() || busy.load(Ordering::Relaxed) >= CONNECTIONS {
            thread::sleep(PATIENCE);
            if connection.is_err() {
                break;
            }
        }
        let Ok(connection) = connection else { continue };
        busy.fetch_add(1, Ordering::Relaxed);
        let counted = Counted(Arc::clone(busy));
        let _ = spawn(service.name(), move || {
            let _counted = counted;
            // How a connection ends is its client's business.
            let _ = serve(service, &connection);
        });
    }
}

/// A connection that is being served.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn listen(port: u16, has_ipv6: bool) -> io::Result<TcpListener> {
    let socket = open(port, has_ipv6, Type::STREAM, Protocol::TCP)?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

fn datagrams(port: u16, has_ipv6: bool) -> io::Result<UdpSocket> {
    Ok(open(port, has_ipv6, Type::DGRAM, Protocol::UDP)?.into())
}

/// A socket at every address, of both families if there are both.
fn open(port: u16, has_ipv6: bool, kind: Type, protocol: Protocol) -> io::Result<Socket> {
    let (domain, address): (_, SocketAddr) = match has_ipv6 {
        true => (Domain::IPV6, (Ipv6Addr::UNSPECIFIED, port).into()),
        false => (Domain::IPV4, (Ipv4Addr::UNSPECIFIED, port).into()),
    };
    let socket = Socket::new(domain, kind, Some(protocol))?;
    if has_ipv6 {
        socket.set_only_v6(false)?;
    }
    socket.bind(&address.into())?;
    Ok(socket)
}

fn echo_datagrams(socket: &UdpSocket) {
    let mut bytes = vec![0; DATAGRAM_BYTES];
    loop {
        // An error is of a datagram before, whose sender has gone.
        if let Ok((length, from)) = socket.recv_from(&mut bytes) {
            let _ = socket.send_to(&bytes[..length], from);
        }
    }
}

fn sink_datagrams(socket: &UdpSocket) {
    let mut bytes = [0];
    loop {
        // What does not fit is thrown away too.
        let _ = socket.recv(&mut bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{Shutdown, TcpStream};

    use super::*;

    /// A connection whose other end is served.
    fn served(service: Service) -> TcpStream {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (far, _) = listener.accept().unwrap();
        thread::spawn(move || serve(service, &far));
        near
    }

    fn answer(service: Service, question: &[u8]) -> String {
        let mut near = served(service);
        near.write_all(question).unwrap();
        near.shutdown(Shutdown::Write).unwrap();
        let mut bytes = Vec::new();
        near.read_to_end(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn echo_sink_and_source() {
        let long = "abc".repeat(300_000);
        // Both directions at once, or else both sides would wait for each other.
        let mut near = served(Service::Echo);
        let mut writer = near.try_clone().unwrap();
        let writing = {
            let long = long.clone();
            thread::spawn(move || {
                writer.write_all(long.as_bytes()).unwrap();
                writer.shutdown(Shutdown::Write).unwrap();
            })
        };
        let mut back = String::new();
        near.read_to_string(&mut back).unwrap();
        writing.join().unwrap();
        assert!(back == long);
        assert_eq!(answer(Service::Sink, long.as_bytes()), "");
        let mut near = served(Service::Source);
        let mut bytes = vec![0; 3_000_000];
        near.read_exact(&mut bytes).unwrap();
        assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == bytes::at(at as u64)));
    }

    fn body(answer: &str) -> (&str, &str) {
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head, body)
    }

    #[test]
    fn http_gives_what_is_asked_for() {
        let get = |path: &str, more: &str| {
            answer(
                Service::Http,
                format!("GET {path} HTTP/1.1\r\nHost: far\r\n{more}\r\n").as_bytes(),
            )
        };
        let whole = get("/100k", "");
        let (head, content) = body(&whole);
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && content.len() == 102_400, "{head}");
        let part = get("/100k", "Range: bytes=1000-1999\r\n");
        let (head, bytes) = body(&part);
        assert!(
            head.starts_with("HTTP/1.1 206 ")
                && head.contains("Content-Range: bytes 1000-1999/102400")
        );
        assert_eq!(bytes, &content[1000..2000]);
        for (range, length) in [("bytes=102000-", 400), ("bytes=-300", 300), ("bytes=5-5", 1)] {
            let part = get("/100k", &format!("Range: {range}\r\n"));
            assert_eq!(body(&part).1.len(), length, "{range}");
        }
        assert!(get("/100k", "Range: bytes=200000-\r\n").starts_with("HTTP/1.1 416 "));
        // What is no range of bytes is as if it were not there (RFC 9110 §14.2).
        assert!(get("/1k", "Range: bytes=2-1\r\n").starts_with("HTTP/1.1 200 "));
        assert!(get("/", "").contains("GET /100M"));
        assert!(get("/index.html", "").starts_with("HTTP/1.1 404 "));
        assert!(get("/17179869184g", "").starts_with("HTTP/1.1 404 "));
        assert_eq!(body(&answer(Service::Http, b"HEAD /5 HTTP/1.1\r\n\r\n")).1, "");
        assert!(answer(Service::Http, b"BREW / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 501 "));
        assert!(answer(Service::Http, b"nonsense\r\n\r\n").starts_with("HTTP/1.1 400 "));
        let long = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(20_000));
        assert!(answer(Service::Http, long.as_bytes()).starts_with("HTTP/1.1 431 "));
    }

    #[test]
    fn http_takes_what_it_is_given() {
        let post =
            b"POST /x HTTP/1.1\r\nContent-Length: 10\r\n\r\n0123456789GET /3 HTTP/1.1\r\n\r\n";
        let two = answer(Service::Http, post);
        assert!(two.contains("10 bytes\n") && two.ends_with("\r\n\r\nabc"), "{two}");
        let chunked = b"PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nA;x=y\r\n0123456789\r\n0\r\nT: 1\r\n\r\nGET /3 HTTP/1.1\r\n\r\n";
        let two = answer(Service::Http, chunked);
        assert!(two.contains("15 bytes\n") && two.ends_with("\r\n\r\nabc"), "{two}");
        let expects = b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab";
        assert!(
            answer(Service::Http, expects)
                .starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 ")
        );
        let wrong = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n";
        assert!(answer(Service::Http, wrong).starts_with("HTTP/1.1 400 "));
        // A body that ends before it should is no complete request.
        assert_eq!(answer(Service::Http, b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab"), "");
    }
}
