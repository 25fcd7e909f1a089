//! A WebSocket: one episode a connection, as OpenEnv's client wants it.

use std::io::BufReader;
use std::net::TcpStream;
use std::time::Duration;

use tungstenite::handshake::derive_accept_key;
use tungstenite::protocol::{Role, WebSocketConfig};
use tungstenite::{Message, WebSocket};

use super::http::{BODY_MAX, Request, Response};
use super::openenv::{self, Tasks};

/// A client that says nothing for so long, not even a ping, has gone.
const IDLE: Duration = Duration::from_secs(600);

/// Opens a WebSocket and answers its messages until one side closes it.
pub(super) fn converse(tasks: &Tasks, request: &Request, stream: BufReader<TcpStream>, out: &mut TcpStream) {
    let asks = request.header("upgrade").is_some_and(|kind| kind.eq_ignore_ascii_case("websocket"));
    let (Some(key), true) = (request.header("sec-websocket-key"), asks && request.method == "GET") else {
        let _ = Response::error(400, "this is no WebSocket handshake").write(out);
        return;
    };
    let accepted = Response::empty(101)
        .with("Upgrade", "websocket")
        .with("Connection", "Upgrade")
        .with("Sec-WebSocket-Accept", derive_accept_key(key.as_bytes()));
    if accepted.write(out).is_err() {
        return;
    }
    let early = stream.buffer().to_vec();
    let stream = stream.into_inner();
    let _ = stream.set_read_timeout(Some(IDLE));
    let limits =
        WebSocketConfig::default().max_message_size(Some(BODY_MAX)).max_frame_size(Some(BODY_MAX));
    let mut socket = WebSocket::from_partially_read(stream, early, Role::Server, Some(limits));
    let mut episode = None;
    while let Ok(message) = socket.read() {
        let text = match message {
            Message::Text(text) => text,
            // Pings are answered by the next read.
            Message::Ping(_) | Message::Pong(_) => continue,
            Message::Binary(_) | Message::Close(_) | Message::Frame(_) => break,
        };
        let Some(answer) = openenv::answer(tasks, &mut episode, text.as_str()) else { break };
        if socket.send(Message::text(answer.to_string())).is_err() {
            return;
        }
    }
    let _ = socket.close(None);
    let _ = socket.flush();
}
