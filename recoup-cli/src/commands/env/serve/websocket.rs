//! A WebSocket (RFC 6455): one episode a connection, as OpenEnv's client wants it.
//!
//! The server's side of the protocol, text messages only, without extensions. A crate for it would bring more
//! code than this.

use std::io::{self, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use sha1::{Digest as _, Sha1};

use super::http::{BODY_MAX, Request, Response, hear_out};
use super::openenv::{self, Tasks};

/// A client that says nothing for so long, not even a ping, has gone.
const IDLE: Duration = Duration::from_mins(10);
/// What the protocol appends to a client's key.
const KEY_SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xA;

/// Status of a close: a normal end, a broken frame, data that is no text, a message that is too long.
const NORMAL: u16 = 1000;
const BROKEN: u16 = 1002;
const NO_TEXT: u16 = 1007;
const TOO_LONG: u16 = 1009;

/// Opens a WebSocket and answers its messages until one side closes it.
pub(super) fn converse(tasks: &Tasks, request: &Request, stream: BufReader<TcpStream>, out: &mut TcpStream) {
    let asks = request.header("upgrade").is_some_and(|kind| kind.eq_ignore_ascii_case("websocket"))
        && request.header("sec-websocket-version") == Some("13");
    let (Some(key), true) = (request.header("sec-websocket-key"), asks && request.method == "GET") else {
        let _ = Response::error(400, "this is no WebSocket handshake").write(out);
        return;
    };
    let accepted = Response::empty(101)
        .with("Upgrade", "websocket")
        .with("Connection", "Upgrade")
        .with("Sec-WebSocket-Accept", accept(key));
    if accepted.write(out).is_err() || out.set_read_timeout(Some(IDLE)).is_err() {
        return;
    }
    let mut socket = Socket { stream, out };
    let mut episode = None;
    let status = loop {
        let text = match socket.read() {
            Ok(text) => text,
            Err(Ended::Gone) => return,
            Err(Ended::Close(status)) => break status,
        };
        let Some(answer) = openenv::answer(tasks, &mut episode, &text) else { break NORMAL };
        if socket.write(TEXT, answer.to_string().as_bytes()).is_err() {
            return;
        }
    };
    let _ = socket.write(CLOSE, &status.to_be_bytes());
    hear_out(socket.stream);
}

/// The answer to a client's key.
fn accept(key: &str) -> String {
    base64(&Sha1::new().chain_update(key).chain_update(KEY_SUFFIX).finalize())
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let number = chunk.iter().fold(0_u32, |number, byte| (number << 8) | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = (number >> (18 - 6 * place)) & 63;
            out.push(if place > chunk.len() { '=' } else { char::from(DIGITS[digit as usize]) });
        }
    }
    out
}

/// Why there are no more messages.
enum Ended {
    /// Nobody is left to answer.
    Gone,
    /// The connection is to be closed, with this status.
    Close(u16),
}

impl From<io::Error> for Ended {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

struct Socket<'a> {
    stream: BufReader<TcpStream>,
    out: &'a mut TcpStream,
}

impl Socket<'_> {
    /// The next text message, put together; pings on the way are answered.
    fn read(&mut self) -> Result<String, Ended> {
        let mut message = Vec::new();
        let mut begun = false;
        loop {
            let (last, kind, payload) = self.read_frame(BODY_MAX - message.len())?;
            match kind {
                PING => self.write(PONG, &payload)?,
                PONG => {}
                CLOSE => return Err(Ended::Close(NORMAL)),
                TEXT | CONTINUATION if begun == (kind == CONTINUATION) => {
                    begun = true;
                    message.extend(payload);
                    if last {
                        return String::from_utf8(message).map_err(|_| Ended::Close(NO_TEXT));
                    }
                }
                _ => return Err(Ended::Close(BROKEN)),
            }
        }
    }

    /// Whether a frame is the last of its message, its kind and its payload.
    fn read_frame(&mut self, most: usize) -> Result<(bool, u8, Vec<u8>), Ended> {
        let mut head = [0; 2];
        self.stream.read_exact(&mut head)?;
        let (last, kind, masked) = (head[0] & 0x80 != 0, head[0] & 0x0F, head[1] & 0x80 != 0);
        let short = head[1] & 0x7F;
        let is_control = kind & 0x8 != 0;
        // Reserved bits belong to extensions; a client masks; control frames are short and whole.
        if head[0] & 0x70 != 0 || !masked || (is_control && (!last || short > 125)) {
            return Err(Ended::Close(BROKEN));
        }
        let mut long = [0; 8];
        let length = match short {
            126 => {
                self.stream.read_exact(&mut long[6..])?;
                u64::from_be_bytes(long)
            }
            127 => {
                self.stream.read_exact(&mut long)?;
                u64::from_be_bytes(long)
            }
            short => u64::from(short),
        };
        let length = usize::try_from(length).ok().filter(|length| is_control || *length <= most);
        let length = length.ok_or(Ended::Close(TOO_LONG))?;
        let mut mask = [0; 4];
        self.stream.read_exact(&mut mask)?;
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload)?;
        payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
        Ok((last, kind, payload))
    }

    /// Sends one whole frame.
    fn write(&mut self, kind: u8, payload: &[u8]) -> io::Result<()> {
        let mut frame = vec![0x80 | kind];
        match payload.len() {
            length @ 0..126 => frame.push(length as u8),
            length @ 126..0x1_0000 => {
                frame.push(126);
                frame.extend((length as u16).to_be_bytes());
            }
            length => {
                frame.push(127);
                frame.extend((length as u64).to_be_bytes());
            }
        }
        frame.extend(payload);
        self.out.write_all(&frame)
    }
}

#[cfg(test)]
mod tests {
    use super::{accept, base64};

    #[test]
    fn a_key_is_accepted_as_in_the_rfc() {
        assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn base64_pads() {
        assert_eq!([b"f".as_slice(), b"fo", b"foo", b""].map(base64), ["Zg==", "Zm8=", "Zm9v", ""]);
    }
}
