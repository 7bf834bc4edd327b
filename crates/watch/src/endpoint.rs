//! An address at which Prometheus asks for metrics: HTTP/1.1 (RFC 9112), `GET /metrics` and nothing else.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use httparse::{EMPTY_HEADER, Request, Status};

/// Who asks for more at once is turned away.
const CONNECTIONS: usize = 8;
/// All of a conversation takes no longer.
const PATIENCE: Duration = Duration::from_secs(5);
/// No question is longer.
const HEAD_BYTES: usize = 8 << 10;
const HEADERS: usize = 64;
/// After an error such as that there are no file descriptors left, which passes.
const REST: Duration = Duration::from_millis(100);
const STACK_BYTES: usize = 256 << 10;

const PATH: &str = "/metrics";
/// What the text format is called (Prometheus, exposition formats).
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A socket that listens.
#[derive(Debug)]
pub struct Endpoint(TcpListener);

impl Endpoint {
    /// Listens at an address.
    ///
    /// # Errors
    /// If it is taken, or not this machine's.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        Ok(Self(TcpListener::bind(address)?))
    }

    /// Where it listens.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Answers from threads of its own with what `page` gives, until the process ends.
    ///
    /// # Errors
    /// If there can be no thread.
    pub fn serve(self, page: impl Fn() -> String + Send + Sync + 'static) -> io::Result<()> {
        let page = Arc::new(page);
        spawn(move || {
            let busy = Arc::new(AtomicUsize::new(0));
            loop {
                let Ok((connection, _)) = self.0.accept() else {
                    thread::sleep(REST);
                    continue;
                };
                if busy.load(Ordering::Relaxed) >= CONNECTIONS {
                    continue;
                }
                let (counted, page) = (Counted::new(&busy), Arc::clone(&page));
                let _ = spawn(move || {
                    let _counted = counted;
                    // How it ends is the asker's business.
                    let _ = answer(connection, page.as_ref());
                });
            }
        })
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let thread = thread::Builder::new().name("metrics".to_owned()).stack_size(STACK_BYTES);
    thread.spawn(work).map(drop)
}

/// A connection that is being answered.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(busy: &Arc<AtomicUsize>) -> Self {
        busy.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(busy))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection with the time at which it is given up.
struct Until {
    connection: TcpStream,
    end: Instant,
}

impl Until {
    fn left(&self) -> io::Result<Duration> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.connection.set_read_timeout(Some(self.left()?))?;
        self.connection.read(into)
    }

    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.connection.set_write_timeout(Some(self.left()?))?;
            let written = self.connection.write(bytes)?;
            bytes = &bytes[written..];
        }
        Ok(())
    }
}

fn answer(connection: TcpStream, page: &impl Fn() -> String) -> io::Result<()> {
    let mut until = Until { connection, end: Instant::now() + PATIENCE };
    let mut head = Vec::new();
    let mut part = [0; 1024];
    let answer = loop {
        let read = until.read(&mut part)?;
        if read == 0 {
            return Ok(());
        }
        head.extend_from_slice(&part[..read]);
        if let Some(asked) = read_head(&head) {
            break asked.map_or_else(refusal, |()| response("200 OK", "", &page()));
        }
        if head.len() > HEAD_BYTES {
            break refusal("431 Request Header Fields Too Large");
        }
    };
    until.write_all(answer.as_bytes())?;
    // What comes is still taken: else the answer could be lost with what nobody reads.
    until.connection.shutdown(Shutdown::Write)?;
    while until.read(&mut part)? > 0 {}
    Ok(())
}

/// Whether it asks for the metrics, or what is wrong with it; nothing while it is not whole.
fn read_head(head: &[u8]) -> Option<Result<(), &'static str>> {
    let mut headers = [EMPTY_HEADER; HEADERS];
    let mut request = Request::new(&mut headers);
    match request.parse(head) {
        Ok(Status::Partial) => return None,
        Ok(Status::Complete(_)) => {}
        Err(_) => return Some(Err("400 Bad Request")),
    }
    let path = request.path.and_then(|path| path.split('?').next());
    Some(match (request.method, path) {
        (Some("GET"), Some(PATH)) => Ok(()),
        (_, Some(PATH)) => Err("405 Method Not Allowed"),
        _ => Err("404 Not Found"),
    })
}

fn refusal(status: &'static str) -> String {
    response(status, "Allow: GET\r\n", &format!("{status}: GET {PATH} is all there is\n"))
}

fn response(status: &str, more: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {length}\r\n{more}Connection: close\r\n\r\n{body}"
    )
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn ask(address: SocketAddr, question: &[u8]) -> String {
        let mut connection = TcpStream::connect(address).unwrap();
        connection.write_all(question).unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        answer
    }

    fn endpoint() -> SocketAddr {
        let endpoint = Endpoint::bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let address = endpoint.address().unwrap();
        endpoint.serve(|| "a 1\n".to_owned()).unwrap();
        address
    }

    #[test]
    fn metrics_are_all_there_is() {
        let address = endpoint();
        let answer = ask(address, b"GET /metrics?x HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\na 1\n"));
        assert!(answer.contains("version=0.0.4") && answer.contains("Content-Length: 4\r\n"));
        let long = [b"GET /metrics HTTP/1.1\r\nA: ".as_slice(), &[b'a'; 20_000]].concat();
        for (question, status) in [
            (b"GET / HTTP/1.1\r\n\r\n".as_slice(), "404"),
            (b"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "405"),
            (b"\x16\x03\x01\x00\xff garbage\r\n\r\n", "400"),
            (&long, "431"),
        ] {
            let answer = ask(address, question);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        }
    }

    #[test]
    fn who_says_nothing_is_given_up_and_keeps_out_only_for_so_long() {
        let address = endpoint();
        let silent: Vec<TcpStream> =
            (0..2 * CONNECTIONS).map(|_| TcpStream::connect(address).unwrap()).collect();
        let begin = Instant::now();
        for mut connection in silent {
            // It is closed, without a word.
            assert_eq!(connection.read(&mut [0; 8]).unwrap_or(0), 0);
        }
        assert!(begin.elapsed() < PATIENCE * 2, "{:?}", begin.elapsed());
        assert!(ask(address, b"GET /metrics HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 200"));
    }
}
