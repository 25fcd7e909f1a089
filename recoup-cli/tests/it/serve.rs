//! Environments served: OpenEnv's verbs over HTTP and WebSocket, MCP over standard input and output.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::bench::Bench;
use crate::env::typed;

/// A server at a free port; killed at the end.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(bench: &Bench, more: &[&str]) -> Self {
        let arguments = [&["env", "serve", "quest", "--port", "0", "--json"][..], more].concat();
        let mut child = bench.command(&arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        let address = said["url"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
        Self { child, address }
    }

    /// Sends bytes on a new connection; returns the answer's status and body.
    fn send(&self, request: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
    }

    fn post(&self, path: &str, headers: &str, body: &str) -> (u16, String) {
        let host = &self.address;
        self.send(&format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            body.len()
        ))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client's side of a WebSocket.
struct Socket(TcpStream);

impl Socket {
    fn connect(server: &Server) -> Self {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        let handshake = format!(
            "GET /ws HTTP/1.1\r\nHost: {}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            server.address
        );
        stream.write_all(handshake.as_bytes()).unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            answer.extend(byte);
        }
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
        assert!(answer.contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"), "{answer}");
        Self(stream)
    }

    /// Sends a frame, masked with a mask that shows when it is not taken off.
    fn send(&mut self, head: u8, payload: &[u8]) {
        const MASK: [u8; 4] = [1, 2, 3, 4];
        let mut frame = vec![head];
        match payload.len() {
            length @ 0..126 => frame.push(0x80 | length as u8),
            length @ 126..0x1_0000 => {
                frame.push(0x80 | 0x7e);
                frame.extend((length as u16).to_be_bytes());
            }
            length => {
                frame.push(0x80 | 127);
                frame.extend((length as u64).to_be_bytes());
            }
        }
        frame.extend(MASK);
        frame.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        // The server may have closed already, and says why.
        let _ = self.0.write_all(&frame);
    }

    /// Sends a frame; returns the first byte of the answer's and its payload.
    fn ask(&mut self, head: u8, payload: &[u8]) -> (u8, String) {
        self.send(head, payload);
        let mut head = [0; 2];
        self.0.read_exact(&mut head).unwrap();
        let mut long = [0; 8];
        let length = match head[1] {
            126 => {
                self.0.read_exact(&mut long[6..]).unwrap();
                u64::from_be_bytes(long)
            }
            127 => {
                self.0.read_exact(&mut long).unwrap();
                u64::from_be_bytes(long)
            }
            short => u64::from(short),
        };
        let mut payload = vec![0; length as usize];
        self.0.read_exact(&mut payload).unwrap();
        (head[0], String::from_utf8_lossy(&payload).into_owned())
    }
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn the_verbs_work_over_http() {
    let bench = Bench::new();
    let server = Server::start(&bench, &[]);
    let (status, body) = server.post("/reset", "", r#"{"seed": 3, "difficulty": 2}"#);
    let started = parsed(&body);
    assert_eq!((status, &started["done"], &started["reward"]), (200, &false.into(), &Value::Null));
    assert!(started["observation"]["goal"].is_string(), "{body}");
    assert!(!body.contains("hidden"), "{body}");
    let (_, body) = server.post("/step", "", r#"{"action": {"tool": "look", "arguments": {}}}"#);
    assert_eq!(parsed(&body)["reward"], 0.0);
    let (_, body) = server.post("/step", "", r#"{"action": {"say": "I give up."}}"#);
    assert_eq!((&parsed(&body)["done"], &parsed(&body)["reward"]), (&true.into(), &0.0.into()));
    let (_, state) = server.send(&format!("GET /state HTTP/1.1\r\nHost: {}\r\n\r\n", server.address));
    let state = parsed(&state);
    assert_eq!((&state["step_count"], &state["seed"], &state["done"]), (&2.into(), &3.into(), &true.into()));
}

#[test]
fn bad_requests_are_refused_with_a_reason() {
    let bench = Bench::new();
    let server = Server::start(&bench, &[]);
    let status = |path: &str, headers: &str, body: &str| server.post(path, headers, body).0;
    assert_eq!(status("/step", "", r#"{"action": {"say": "x"}}"#), 422);
    assert_eq!(status("/reset", "", r#"{"seed": -1}"#), 422);
    assert_eq!(status("/reset", "", r#"{"seed": 9223372036854775808}"#), 422);
    assert_eq!(status("/reset", "", r#"{"difficulty": 4}"#), 422);
    assert_eq!(status("/reset", "", "[1]"), 422);
    assert_eq!(status("/reset", "", "{\"seed\""), 422);
    assert_eq!(status("/reset", "", ""), 200);
    assert_eq!(status("/step", "", r#"{"action": {"fly": "x"}}"#), 422);
    assert_eq!(status("/nowhere", "", "{}"), 404);
    assert_eq!(status("/health", "", "{}"), 405);
    assert_eq!(status("/reset", "Origin: http://evil.example\r\n", "{}"), 403);
    assert_eq!(status("/reset", "Origin: null\r\n", "{}"), 403);
    assert_eq!(status("/reset", &format!("Origin: http://{}\r\n", server.address), "{}"), 200);
    let sent = |request: &str| server.send(request).0;
    assert_eq!(sent("GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n"), 403);
    assert_eq!(sent("GET /health HTTP/1.1\r\nHost: evil.example:80\r\nHost: localhost\r\n\r\n"), 403);
    assert_eq!(sent("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"), 200);
    assert_eq!(
        sent(
            "POST /reset HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}"
        ),
        415
    );
    assert_eq!(
        sent("POST /reset HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        411
    );
    assert_eq!(sent("POST /reset HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n"), 413);
    assert_eq!(sent(&format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(20_000))), 431);
    assert_eq!(sent("hello\r\n\r\n"), 400);
    // After all that it still serves.
    assert_eq!(status("/reset", "", "{}"), 200);
}

#[test]
fn a_token_is_asked_for() {
    let bench = Bench::new();
    let server = Server::start(&bench, &["--token", "secret-token"]);
    assert_eq!(server.post("/reset", "", "{}").0, 401);
    assert_eq!(server.post("/reset", "Authorization: Bearer secret-toke\r\n", "{}").0, 401);
    assert_eq!(server.post("/reset", "Authorization: Bearer secret-token\r\n", "{}").0, 200);
    assert_eq!(server.post("/secret-token/reset", "", "{}").0, 200);
    insta::assert_snapshot!(bench.snapshot(&["env", "serve", "quest", "--host", "0.0.0.0", "--port", "0"]));
}

#[test]
fn a_websocket_is_one_episode() {
    let bench = Bench::new();
    let server = Server::start(&bench, &["--family", "unlock"]);
    let mut sockets = [Socket::connect(&server), Socket::connect(&server)];
    let mut ask =
        |at: usize, message: Value| parsed(&sockets[at].ask(0x81, message.to_string().as_bytes()).1);
    let early = ask(0, json!({ "type": "step", "data": { "say": "x" } }));
    assert_eq!((&early["type"], &early["data"]["code"]), (&"error".into(), &"SESSION_ERROR".into()));
    // Resets without a seed take the next task of the family.
    for (at, seed) in [(0, 1), (1, 5)] {
        assert_eq!(ask(at, json!({ "type": "reset", "data": {} }))["type"], "observation");
        assert_eq!(ask(at, json!({ "type": "state" }))["data"]["seed"], seed);
    }
    let step = ask(0, json!({ "type": "step", "data": { "tool": "look", "arguments": {}, "metadata": {} } }));
    assert_eq!(step["data"]["observation"]["is_error"], false, "{step}");
    assert_eq!(ask(0, json!({ "type": "state" }))["data"]["step_count"], 1);
    assert_eq!(ask(1, json!({ "type": "state" }))["data"]["step_count"], 0);
    assert_eq!(ask(0, json!({ "type": "dance" }))["data"]["code"], "UNKNOWN_TYPE");
    assert_eq!(ask(0, json!(["x"]))["data"]["code"], "INVALID_JSON");
}

#[test]
fn a_websocket_keeps_to_the_protocol() {
    let bench = Bench::new();
    let server = Server::start(&bench, &[]);
    let state = json!({ "type": "state" }).to_string();
    let (first, second) = state.as_bytes().split_at(5);
    let mut socket = Socket::connect(&server);
    assert_eq!(socket.ask(0x89, b"ping"), (0x8A, "ping".to_owned()));
    // A message in two frames, with a ping between them.
    socket.send(0x01, first);
    assert_eq!(socket.ask(0x89, b"").0, 0x8A);
    assert_eq!(parsed(&socket.ask(0x80, second).1)["type"], "state");
    assert_eq!(socket.ask(0x88, b"").0, 0x88);
    // Binary data, reserved bits, a continuation of nothing, a long ping, no UTF-8: closed.
    for (head, payload) in [(0x82, &b"x"[..]), (0xC1, b"x"), (0x80, b"x"), (0x89, &[0; 200]), (0x81, b"\xff")]
    {
        assert_eq!(Socket::connect(&server).ask(head, payload).0, 0x88, "{head:x}");
    }
    assert_eq!(Socket::connect(&server).ask(0x81, &vec![b'x'; (1 << 20) + 1]).0, 0x88);
    let plain = format!("GET /ws HTTP/1.1\r\nHost: {}\r\nUpgrade: websocket\r\n\r\n", server.address);
    assert_eq!(server.send(&plain).0, 400);
}

#[test]
fn mcp_speaks_line_by_line() {
    let bench = Bench::new();
    let request = |id: u64, method: &str, params: Value| {
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
    };
    let lines = [
        request(
            1,
            "initialize",
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } }),
        ),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string(),
        request(2, "tools/list", json!({})),
        request(3, "tools/call", json!({ "name": "look", "arguments": {} })),
        request(4, "tools/call", json!({ "name": "fly" })),
        request(5, "tools/call", json!({ "name": "say", "arguments": { "text": "I give up." } })),
        request(6, "resources/list", json!({})),
        "{\"jsonrpc\"".to_owned(),
        "[]".to_owned(),
        String::new(),
        request(7, "ping", json!({})),
    ];
    let output = typed(&bench, &["env", "serve", "quest", "--mcp"], &(lines.join("\n") + "\n"));
    assert_eq!(output.status.code(), Some(0), "{}", bench.render(&output));
    let answers: Vec<Value> = String::from_utf8(output.stdout).unwrap().lines().map(parsed).collect();
    assert_eq!(answers.len(), 9, "{answers:?}");
    assert_eq!(answers[0]["result"]["protocolVersion"], "2025-06-18");
    let tools = answers[1]["result"]["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["name"] == "look" && tool["annotations"]["readOnlyHint"] == true));
    assert_eq!(answers[2]["result"]["isError"], false);
    assert_eq!(
        (&answers[3]["result"]["isError"], &answers[3]["result"]["_meta"]),
        (&true.into(), &Value::Null)
    );
    assert_eq!(answers[4]["result"]["_meta"]["recoup/success"], false);
    let codes: Vec<i64> = answers.iter().filter_map(|answer| answer["error"]["code"].as_i64()).collect();
    assert_eq!(codes, [-32601, -32700, -32600]);
    assert_eq!(answers[8]["id"], 7);
}

#[test]
fn a_port_in_use_is_named() {
    let bench = Bench::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let said = bench.snapshot(&["env", "serve", "quest", "--port", &port]).replace(&port, "[port]");
    insta::assert_snapshot!(said);
}
