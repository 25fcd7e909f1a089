//! HTTP/1.1 as a local server needs it: whole requests in, whole answers out, within limits.
//!
//! One thread a connection, blocking: an environment's step blocks anyway. There are no chunked
//! bodies, no compression, no pipelining; what a client may not send is refused with its reason.

use std::fmt::Write as _;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

/// Longest request line and headers, in bytes.
const HEAD_MAX: u64 = 16 << 10;
/// Most headers.
const HEADERS_MAX: usize = 64;
/// Longest body, in bytes.
pub(super) const BODY_MAX: usize = 1 << 20;
/// Most bytes, and longest wait for some, that a client is heard out before a refusal closes on it.
const HEARD_OUT_MAX: u64 = 8 << 20;
const HEARD_OUT_WITHIN: Duration = Duration::from_secs(1);

/// Closes a connection whose client may still be sending: what is unread would make the system cut the
/// connection, and the last answer with it.
pub(super) fn hear_out(stream: BufReader<TcpStream>) {
    let socket = stream.get_ref();
    let closed =
        socket.shutdown(Shutdown::Write).and_then(|()| socket.set_read_timeout(Some(HEARD_OUT_WITHIN)));
    if closed.is_ok() {
        let _ = io::copy(&mut stream.take(HEARD_OUT_MAX), &mut io::sink());
    }
}

/// A request, read whole.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: String,
    /// The path without its query.
    pub(super) path: String,
    pub(super) query: String,
    headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Request {
    /// The value of a header; `None` where it is absent or there twice.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        let first = values.next().map(|(_, value)| value.as_str());
        first.filter(|_| values.next().is_none())
    }

    /// Whether a header is there at all.
    pub(super) fn has(&self, name: &str) -> bool {
        self.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name))
    }

    /// Whether the client wants the connection closed after the answer.
    pub(super) fn closes(&self) -> bool {
        self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }

    /// Reads the next request; `None` where the client has closed.
    ///
    /// # Errors
    /// The answer to a request that is refused; the connection cannot be used after it. `Err(None)` where
    /// nobody is left to answer.
    pub(super) fn read(stream: &mut BufReader<TcpStream>) -> Result<Option<Self>, Option<Response>> {
        let mut head = Vec::new();
        loop {
            let left = HEAD_MAX.saturating_sub(head.len() as u64);
            let count = stream.by_ref().take(left).read_until(b'\n', &mut head).map_err(|_| None)?;
            if count == 0 && head.is_empty() {
                return Ok(None);
            }
            if !head.ends_with(b"\n") {
                let status = if left == count as u64 { 431 } else { 400 };
                return Err(Some(Response::error(status, "the request's head is too long or was cut off")));
            }
            if head.ends_with(b"\r\n\r\n") || head.ends_with(b"\n\n") {
                break;
            }
        }
        let mut request = Self::parse(&head).map_err(Some)?;
        let length = request.length().map_err(Some)?;
        request.body.resize(length, 0);
        stream.read_exact(&mut request.body).map_err(|_| None)?;
        Ok(Some(request))
    }

    fn parse(head: &[u8]) -> Result<Self, Response> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut parsed = httparse::Request::new(&mut headers);
        let complete = parsed.parse(head).is_ok_and(|status| status.is_complete());
        let (Some(method), Some(target), true) = (parsed.method, parsed.path, complete) else {
            return Err(Response::error(400, "this is no HTTP/1.1 request"));
        };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let headers = parsed
            .headers
            .iter()
            .map(|header| (header.name.to_owned(), String::from_utf8_lossy(header.value).trim().to_owned()));
        Ok(Self {
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            headers: headers.collect(),
            body: Vec::new(),
        })
    }

    fn length(&self) -> Result<usize, Response> {
        if self.has("transfer-encoding") {
            return Err(Response::error(411, "send the body with a Content-Length"));
        }
        if !self.has("content-length") {
            return Ok(0);
        }
        let length =
            self.header("content-length").filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let length = length.and_then(|text| text.parse::<usize>().ok());
        match length {
            Some(length) if length <= BODY_MAX => Ok(length),
            Some(_) => Err(Response::error(413, &format!("a body has at most {BODY_MAX} bytes"))),
            None => Err(Response::error(400, "Content-Length is no number")),
        }
    }
}

/// An answer.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: u16,
    headers: Vec<(&'static str, String)>,
    body: String,
}

impl Response {
    pub(super) fn json(status: u16, body: &Value) -> Self {
        let headers = vec![("Content-Type", "application/json".to_owned())];
        Self { status, headers, body: body.to_string() }
    }

    /// A refusal in words.
    pub(super) fn error(status: u16, message: &str) -> Self {
        Self::json(status, &json!({ "error": { "message": message } }))
    }

    /// An answer without a body.
    pub(super) fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: String::new() }
    }

    #[must_use]
    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Writes it; a body goes with all but 101 and 204.
    pub(super) fn write(&self, stream: &mut TcpStream) -> io::Result<()> {
        let reason = match self.status {
            101 => "Switching Protocols",
            200 => "OK",
            202 => "Accepted",
            204 => "No Content",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            503 => "Service Unavailable",
            500.. => "Internal Server Error",
            _ => "Bad Request",
        };
        let mut text = format!("HTTP/1.1 {} {reason}\r\n", self.status);
        for (name, value) in &self.headers {
            let _ = write!(text, "{name}: {value}\r\n");
        }
        if !matches!(self.status, 101 | 204) {
            let _ = write!(
                text,
                "X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\nContent-Length: {}\r\n",
                self.body.len()
            );
        }
        text.push_str("\r\n");
        text.push_str(&self.body);
        stream.write_all(text.as_bytes())?;
        stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::Request;

    fn parse(head: &str) -> Result<Request, u16> {
        let request = Request::parse(head.as_bytes()).map_err(|refused| refused.status)?;
        request.length().map_err(|refused| refused.status)?;
        Ok(request)
    }

    #[test]
    fn a_head_is_read() {
        let request =
            parse("POST /step?episode_id=a HTTP/1.1\r\nHost: localhost\r\nCONTENT-length: 5\r\n\r\n")
                .unwrap();
        assert_eq!((request.path.as_str(), request.query.as_str()), ("/step", "episode_id=a"));
        assert_eq!(request.header("host"), Some("localhost"));
        assert_eq!(request.length().unwrap(), 5);
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        assert_eq!(
            parse("GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n").unwrap_err(),
            400
        );
        assert_eq!(parse("GET / HTTP/1.1\r\nContent-Length: +1\r\n\r\n").unwrap_err(), 400);
        assert_eq!(parse("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap_err(), 411);
        assert_eq!(parse("GET / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n").unwrap_err(), 413);
        assert_eq!(parse("hello\r\n\r\n").unwrap_err(), 400);
        // Two values are none: which one counts is not guessed.
        assert_eq!(parse("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n").unwrap().header("host"), None);
    }
}
