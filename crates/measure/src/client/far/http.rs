//! A web server's large file, which is downloaded by each flow (HTTP/1.1, RFC 9112).

use std::fmt;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::str::FromStr;
use std::time::{Duration, Instant};

use dualq_units::plain;
use httparse::{EMPTY_HEADER, Response, Status};

use super::{Beginning, FarEnd, Opened, PATIENCE, connect, harmless};
use crate::client::Options;
use crate::client::board::Track;
use crate::client::error::MeasureError;
use crate::measurement::Server;

/// No head is longer.
const HEAD_BYTES: usize = 16 << 10;
const HEADERS: usize = 100;

/// A file that is over sooner is no flow.
const SHORTEST_FILE: Duration = Duration::from_secs(1);

/// Where a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// The host, a name or an address; of IPv6 in brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The file's path, with what follows it.
    pub path: String,
}

/// Why a text is no such address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// It is to be encrypted.
    #[error("https is not spoken here; many servers have the same file by http://")]
    Encrypted,
    /// It is another form.
    #[error("{0:?} is no address of a file, such as http://example.org/large.iso")]
    Form(String),
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let form = || UrlError::Form(text.to_owned());
        if text.to_ascii_lowercase().starts_with("https:") {
            return Err(UrlError::Encrypted);
        }
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
        let rest = text.strip_prefix("http://").filter(|_| is_plain).ok_or_else(form)?;
        let rest = rest.split('#').next().unwrap_or_default();
        let at = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(at);
        let (host, port) = match authority.rsplit_once(':') {
            // The last colon is one of an address of IPv6.
            Some((_, port)) if port.ends_with(']') => (authority, 80),
            Some((host, port)) => {
                (host, port.parse().ok().filter(|port| *port > 0).ok_or_else(form)?)
            }
            None => (authority, 80),
        };
        let is_whole = host.starts_with('[') == host.ends_with(']');
        if host.is_empty() || host.contains('@') || !is_whole {
            return Err(form());
        }
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { host: host.to_owned(), port, path })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, path } = self;
        if *port == 80 {
            write!(f, "http://{host}{path}")
        } else {
            write!(f, "http://{host}:{port}{path}")
        }
    }
}

/// The server, and its file.
#[derive(Debug)]
pub(super) struct Http {
    address: SocketAddr,
    url: Url,
}

impl Http {
    /// Looks whether the file is there.
    pub(super) fn reach(
        address: SocketAddr,
        path: &str,
        options: &Options,
    ) -> Result<Self, MeasureError> {
        let url = Url { host: options.host.clone(), port: options.port, path: path.to_owned() };
        let http = Self { address, url };
        http.ask("GET")?;
        Ok(http)
    }

    /// A new connection on which that was asked, and the head of the answer has come; what came behind it; and how long both took.
    fn ask(&self, method: &str) -> Result<(Opened, Beginning), MeasureError> {
        let (mut stream, connect) = connect(self.address, None, Server::Http)?;
        let broke = |error: &std::io::Error| self.vanished(plain(error));
        let began = Instant::now();
        let Url { host, port, path } = &self.url;
        let port = if *port == 80 { String::new() } else { format!(":{port}") };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}{port}\r\nUser-Agent: dualq/{}\r\nAccept: */*\r\nAccept-Encoding: identity\r\nConnection: close\r\n\r\n",
            env!("CARGO_PKG_VERSION")
        );
        stream.set_write_timeout(Some(PATIENCE)).map_err(|error| broke(&error))?;
        stream.write_all(request.as_bytes()).map_err(|error| broke(&error))?;
        let (rest, request) = self.head(&mut stream, began)?;
        Ok((Opened { stream, rest }, Beginning { connect, request }))
    }

    /// Reads the head of an answer: what came behind it, and when the first of it did.
    fn head(
        &self,
        stream: &mut TcpStream,
        began: Instant,
    ) -> Result<(Vec<u8>, Duration), MeasureError> {
        let stranger = |reason: &str| MeasureError::Stranger {
            address: self.address,
            reason: reason.to_owned(),
            server: Server::Http,
        };
        let (mut read, mut first) = (Vec::new(), None);
        loop {
            let left = PATIENCE.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Err(stranger("it sent no answer in time"));
            }
            let mut bytes = [0; 4096];
            let _ = stream.set_read_timeout(Some(left));
            match stream.read(&mut bytes) {
                Ok(0) => return Err(stranger("it closed the connection without an answer")),
                Ok(count) => read.extend_from_slice(&bytes[..count]),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
                {
                    continue;
                }
                Err(error) => return Err(self.vanished(plain(&error))),
            }
            let first = *first.get_or_insert_with(|| began.elapsed());
            let mut headers = [EMPTY_HEADER; HEADERS];
            let mut response = Response::new(&mut headers);
            match response.parse(&read) {
                Ok(Status::Complete(length)) => {
                    self.check(&response)?;
                    return Ok((read.split_off(length), first));
                }
                Ok(Status::Partial) if read.len() < HEAD_BYTES => {}
                Ok(Status::Partial) => return Err(stranger("the head of its answer has no end")),
                Err(_) => return Err(stranger("its answer is no HTTP")),
            }
        }
    }

    /// Whether an answer says that the file comes.
    fn check(&self, response: &Response<'_, '_>) -> Result<(), MeasureError> {
        let reason = match response.code {
            Some(200) => return Ok(()),
            Some(code @ (301..=303 | 307 | 308)) => {
                let to = response
                    .headers
                    .iter()
                    .find(|header| header.name.eq_ignore_ascii_case("location"));
                let to =
                    to.map_or("elsewhere".into(), |header| String::from_utf8_lossy(header.value));
                format!("it is elsewhere ({code}): {}", harmless(&to))
            }
            code => {
                let code = code.map_or(String::new(), |code| code.to_string());
                format!("the answer is {code} {}", harmless(response.reason.unwrap_or_default()))
            }
        };
        Err(MeasureError::File { url: self.url.to_string(), reason })
    }
}

impl FarEnd for Http {
    fn server(&self) -> Server {
        Server::Http
    }

    fn address(&self) -> SocketAddr {
        self.address
    }

    fn begin(&self) -> Option<Result<Beginning, MeasureError>> {
        Some(self.ask("HEAD").map(|(_, beginning)| beginning))
    }

    fn flow(&self, _track: &Track) -> Result<Opened, MeasureError> {
        self.ask("GET").map(|(opened, _)| opened)
    }

    fn ended(&self, _track: &Track, after: Duration) -> Result<(), MeasureError> {
        if after >= SHORTEST_FILE {
            return Ok(());
        }
        let reason = format!(
            "it was over after {:.1} s; give a file that lasts for {} s or longer",
            after.as_secs_f64(),
            SHORTEST_FILE.as_secs()
        );
        Err(MeasureError::File { url: self.url.to_string(), reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_a_port_and_a_path() {
        let of = |text: &str| {
            text.parse::<Url>()
                .map(|url| (url.host.clone(), url.port, url.path.clone(), url.to_string()))
        };
        let expected = |host: &str, port, path: &str, text: &str| {
            Ok((host.to_owned(), port, path.to_owned(), text.to_owned()))
        };
        assert_eq!(of("http://a.example"), expected("a.example", 80, "/", "http://a.example/"));
        assert_eq!(of("http://a:8080/b?c#d"), expected("a", 8080, "/b?c", "http://a:8080/b?c"));
        assert_eq!(
            of("http://[2001:db8::1]/x"),
            expected("[2001:db8::1]", 80, "/x", "http://[2001:db8::1]/x")
        );
        assert_eq!(of("http://[::1]:81"), expected("[::1]", 81, "/", "http://[::1]:81/"));
        assert_eq!(of("http://a?b"), expected("a", 80, "/?b", "http://a/?b"));
    }

    #[test]
    fn what_is_no_such_address_is_refused() {
        assert_eq!("https://a/".parse::<Url>(), Err(UrlError::Encrypted));
        for text in [
            "",
            "a",
            "http://",
            "http://[::1",
            "http:///x",
            "ftp://a/",
            "http://a:0/",
            "http://a:99999/",
            "http://u@a/",
            "http://a/ b",
            "http://a/\r\nX: y",
        ] {
            assert_eq!(text.parse::<Url>(), Err(UrlError::Form(text.to_owned())), "{text:?}");
        }
    }
}
