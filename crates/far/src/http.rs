//! As much of HTTP/1.1 (RFC 9112) as it takes to be a source and a sink.

use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::ops::Range;

use dualq_units::Bytes;
use httparse::{EMPTY_HEADER, Request, Status};

use crate::bytes::Letters;
use crate::serve::discard;

/// No head is longer.
const HEAD_BYTES: usize = 16 << 10;
const HEADERS: usize = 64;
/// A line that says how long a chunk is, and what else it may say.
const CHUNK_LINE_BYTES: u64 = 256;

const INDEX: &str = "\
GET /100M gives 100 MiB; any number, with k, M or G as powers of 1024. Ranges are understood.
POST and PUT take what they are given, and tell how much it was.
";

/// What a request asks for, as far as it matters here.
struct Asked {
    method: String,
    path: String,
    range: Option<String>,
    body: Body,
    expects_continue: bool,
    closes: bool,
}

/// What comes behind a head.
#[derive(Clone, Copy)]
enum Body {
    Bytes(u64),
    Chunks,
}

/// A head that is none: the status to answer with.
type Refusal = &'static str;

const BAD: Refusal = "400 Bad Request";
const TOO_LONG: Refusal = "431 Request Header Fields Too Large";

/// Answers the requests of a connection, one after the other.
pub(crate) fn serve(connection: &TcpStream) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(HEAD_BYTES, connection);
    let mut writer = connection;
    let letters = Letters::new();
    while let Some(read) = head(&mut reader)? {
        let asked = match read {
            Ok(asked) => asked,
            Err(refusal) => return refuse(writer, refusal),
        };
        if asked.expects_continue {
            writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let taken = match take(&mut reader, asked.body)? {
            Taken::All(bytes) => bytes,
            Taken::Malformed => return refuse(writer, BAD),
            Taken::Ended => return Ok(()),
        };
        answer(&asked, taken, &letters, writer)?;
        if asked.closes {
            break;
        }
    }
    Ok(())
}

fn refuse(mut writer: &TcpStream, status: Refusal) -> io::Result<()> {
    let text = head_of(status, &[("Content-Length", "0"), ("Connection", "close")]);
    writer.write_all(text.as_bytes())?;
    // What comes is still taken: else the answer could be lost with what nobody reads.
    writer.shutdown(std::net::Shutdown::Write)?;
    discard(writer, u64::MAX).map(drop)
}

/// The next head; none if there is none any more.
fn head(reader: &mut BufReader<&TcpStream>) -> io::Result<Option<Result<Asked, Refusal>>> {
    let mut bytes = Vec::new();
    loop {
        let part = reader.fill_buf()?;
        if part.is_empty() {
            return Ok(None);
        }
        // As far as the end of a line, and then it is looked at again.
        let length = part.iter().position(|byte| *byte == b'\n').map_or(part.len(), |at| at + 1);
        bytes.extend_from_slice(&part[..length]);
        reader.consume(length);
        if bytes.len() > HEAD_BYTES {
            return Ok(Some(Err(TOO_LONG)));
        }
        let is_whole = bytes.ends_with(b"\n\r\n") || bytes.ends_with(b"\n\n");
        if is_whole {
            return Ok(Some(read_head(&bytes)));
        }
    }
}

fn read_head(bytes: &[u8]) -> Result<Asked, Refusal> {
    let mut headers = [EMPTY_HEADER; HEADERS];
    let mut request = Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(Status::Complete(_)) => {}
        Err(httparse::Error::TooManyHeaders) => return Err(TOO_LONG),
        Ok(Status::Partial) | Err(_) => return Err(BAD),
    }
    let value = |name: &str| {
        let found = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(found.value).ok().map(str::trim)
    };
    let says = |name: &str, word: &str| {
        value(name)
            .is_some_and(|value| value.split(',').any(|one| one.trim().eq_ignore_ascii_case(word)))
    };
    let is_old = request.version == Some(0);
    let body = match value("Content-Length") {
        // Both are an attack on somebody between (RFC 9112 §6.1).
        Some(_) if value("Transfer-Encoding").is_some() => return Err(BAD),
        Some(length) => Body::Bytes(length.parse().map_err(|_| BAD)?),
        None if says("Transfer-Encoding", "chunked") => Body::Chunks,
        None => Body::Bytes(0),
    };
    Ok(Asked {
        method: request.method.unwrap_or_default().to_owned(),
        path: request.path.unwrap_or_default().to_owned(),
        range: value("Range").map(str::to_owned),
        body,
        expects_continue: says("Expect", "100-continue"),
        closes: says("Connection", "close") || is_old && !says("Connection", "keep-alive"),
    })
}

/// How much of a body came.
enum Taken {
    All(u64),
    Malformed,
    Ended,
}

fn take(reader: &mut BufReader<&TcpStream>, body: Body) -> io::Result<Taken> {
    match body {
        Body::Bytes(count) => {
            let all = skip(reader, count)?;
            Ok(if all { Taken::All(count) } else { Taken::Ended })
        }
        Body::Chunks => chunks(reader),
    }
}

/// Throws so many bytes away, and says whether there were as many.
fn skip(reader: &mut BufReader<&TcpStream>, count: u64) -> io::Result<bool> {
    let held = reader.buffer().len().min(usize::try_from(count).unwrap_or(usize::MAX));
    reader.consume(held);
    let rest = count - held as u64;
    Ok(discard(reader.get_ref(), rest)? == rest)
}

fn chunks(reader: &mut BufReader<&TcpStream>) -> io::Result<Taken> {
    let mut total: u64 = 0;
    loop {
        let Some(line) = line(reader)? else { return Ok(Taken::Malformed) };
        let digits = line.split(';').next().unwrap_or_default().trim();
        let Ok(length) = u64::from_str_radix(digits, 16) else { return Ok(Taken::Malformed) };
        if length == 0 {
            break;
        }
        if !skip(reader, length)? {
            return Ok(Taken::Ended);
        }
        total = total.saturating_add(length);
        if !line_is_empty(reader)? {
            return Ok(Taken::Malformed);
        }
    }
    // Fields behind the last chunk end with an empty line.
    while let Some(line) = line(reader)? {
        if line.is_empty() {
            return Ok(Taken::All(total));
        }
    }
    Ok(Taken::Malformed)
}

fn line_is_empty(reader: &mut BufReader<&TcpStream>) -> io::Result<bool> {
    Ok(line(reader)?.is_some_and(|line| line.is_empty()))
}

/// A short line without its end; none if it is long, or no text.
fn line(reader: &mut BufReader<&TcpStream>) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    reader.by_ref().take(CHUNK_LINE_BYTES).read_until(b'\n', &mut bytes)?;
    let Some(line) = bytes.strip_suffix(b"\n") else { return Ok(None) };
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    Ok(String::from_utf8(line.to_vec()).ok())
}

fn answer(asked: &Asked, taken: u64, letters: &Letters, mut writer: &TcpStream) -> io::Result<()> {
    let mut say = |status: &str, text: &str| {
        let length = text.len().to_string();
        let head = head_of(status, &[("Content-Type", "text/plain"), ("Content-Length", &length)]);
        let text = if asked.method == "HEAD" { "" } else { text };
        writer.write_all([head.as_str(), text].concat().as_bytes())
    };
    match asked.method.as_str() {
        "GET" | "HEAD" => {}
        "POST" | "PUT" => return say("200 OK", &format!("{taken} bytes\n")),
        _ => return say("501 Not Implemented", "GET, HEAD, POST and PUT are understood\n"),
    }
    let path = asked.path.split('?').next().unwrap_or_default();
    if path == "/" {
        return say("200 OK", INDEX);
    }
    let size = path.strip_prefix('/').and_then(|size| size.parse::<Bytes>().ok());
    let Some(Bytes(size)) = size else {
        return say("404 Not Found", "a path is a number of bytes, such as /100M\n");
    };
    let (status, part) = match asked.range.as_deref().and_then(|range| part(range, size)) {
        None => ("200 OK", 0..size),
        Some(Some(part)) => ("206 Partial Content", part),
        Some(None) => {
            let whole = format!("bytes */{size}");
            let fields = [("Content-Range", whole.as_str()), ("Content-Length", "0")];
            return writer.write_all(head_of("416 Range Not Satisfiable", &fields).as_bytes());
        }
    };
    let length = part.end - part.start;
    let (count, range) =
        (length.to_string(), format!("bytes {}-{}/{size}", part.start, part.end.saturating_sub(1)));
    let mut fields = vec![
        ("Content-Type", "application/octet-stream"),
        ("Content-Length", count.as_str()),
        ("Accept-Ranges", "bytes"),
    ];
    if status.starts_with("206") {
        fields.push(("Content-Range", &range));
    }
    writer.write_all(head_of(status, &fields).as_bytes())?;
    if asked.method == "GET" {
        letters.write(&mut writer, part.start, length)?;
    }
    Ok(())
}

/// The part of so many bytes that a range is: nothing if it is none of one part (RFC 9110 §14.1.2), `None` inside if it lies outside.
fn part(range: &str, size: u64) -> Option<Option<Range<u64>>> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let part = match (first.trim().is_empty(), last.trim().is_empty()) {
        (true, _) => size.saturating_sub(number(last)?)..size,
        (false, true) => number(first)?..size,
        (false, false) => {
            let (first, last) = (number(first)?, number(last)?);
            if last < first {
                return None;
            }
            first..last.saturating_add(1).min(size)
        }
    };
    Some((part.start < part.end).then_some(part))
}

fn head_of(status: &str, fields: &[(&str, &str)]) -> String {
    let fields: String =
        fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("HTTP/1.1 {status}\r\nServer: dualq\r\n{fields}\r\n")
}
