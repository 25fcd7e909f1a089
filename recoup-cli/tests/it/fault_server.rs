//! A server of chat completions that breaks its promises as a test wants it to, and counts what it is asked.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A request, as it came.
#[derive(Clone, Debug)]
pub struct Asked {
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// What is done with a request.
#[derive(Clone, Debug)]
pub enum Fault {
    /// An answer, as promised.
    Answer(String),
    /// A body with a status and headers (`Name: value` lines).
    Raw { status: u16, headers: String, body: String },
    /// The connection is closed without a word.
    Hangup,
    /// The body ends before its length.
    Cut(String),
    /// Pieces of an event stream, each after a wait; `cut` closes the connection before the end.
    Stream { pieces: Vec<(Duration, String)>, cut: bool },
    /// A body that never ends.
    Endless,
    /// First a wait.
    Slow(Duration, Box<Fault>),
}

impl Fault {
    pub fn status(status: u16, body: &str) -> Self {
        Self::Raw { status, headers: String::new(), body: body.to_owned() }
    }

    pub fn answer(text: &str) -> Self {
        Self::Answer(completion(text, "toy", Some((9, 3))))
    }
}

/// A chat completion, with tokens of question and answer.
pub fn completion(text: &str, model: &str, usage: Option<(u64, u64)>) -> String {
    let usage = usage.map(|(prompt, completion)| {
        serde_json::json!({ "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": 0 })
    });
    serde_json::json!({
        "id": "x", "object": "chat.completion", "model": model, "usage": usage,
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": text }, "finish_reason": "stop" }],
    })
    .to_string()
}

type Script = dyn Fn(usize, &Asked) -> Fault + Send + Sync;

/// A running server; it stops with the test's process.
pub struct FaultServer {
    port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl FaultServer {
    /// Starts one that does with the nth request what `script` says, from 0.
    pub fn start(script: impl Fn(usize, &Asked) -> Fault + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (log, script, count) = (Arc::clone(&asked), Arc::new(script), Arc::new(AtomicUsize::new(0)));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (log, script, count) = (Arc::clone(&log), Arc::clone(&script), Arc::clone(&count));
                std::thread::spawn(move || serve(&stream, &*script, &log, &count));
            }
        });
        Self { port, asked }
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// How a model there is named.
    pub fn model(&self, name: &str) -> String {
        format!("http://127.0.0.1:{}/v1#{name}", self.port)
    }

    /// What it was asked, in the order of coming.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(stream: &TcpStream, script: &Script, log: &Mutex<Vec<Asked>>, count: &AtomicUsize) {
    let mut reader = BufReader::new(stream);
    while let Some(asked) = read(&mut reader) {
        log.lock().unwrap().push(asked.clone());
        let fault = script(count.fetch_add(1, Ordering::SeqCst), &asked);
        if !act(stream, fault) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
            return;
        }
    }
}

fn read(reader: &mut BufReader<&TcpStream>) -> Option<Asked> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.map_or(0, |(_, length)| length.parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    Some(Asked { path, headers, body: String::from_utf8(body).unwrap() })
}

/// Does it; whether the connection goes on.
fn act(mut stream: &TcpStream, fault: Fault) -> bool {
    let whole = |status: u16, headers: &str, body: &str| {
        let lines: String = headers.lines().flat_map(|line| [line, "\r\n"]).collect();
        format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n{lines}\r\n{body}", body.len())
    };
    match fault {
        Fault::Answer(body) => {
            stream.write_all(whole(200, "Content-Type: application/json", &body).as_bytes()).is_ok()
        }
        Fault::Raw { status, headers, body } => {
            stream.write_all(whole(status, &headers, &body).as_bytes()).is_ok()
        }
        Fault::Hangup => false,
        Fault::Cut(body) => {
            let text = whole(200, "Content-Type: application/json", &body);
            let _ = stream.write_all(&text.as_bytes()[..text.len() - body.len() / 2]);
            false
        }
        Fault::Endless => {
            let head =
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
            let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
            let _ = stream.write_all(head.as_bytes());
            while stream.write_all(chunk.as_bytes()).is_ok() {}
            false
        }
        Fault::Stream { pieces, cut } => {
            let head =
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
            let mut open = stream.write_all(head.as_bytes()).is_ok();
            for (wait, piece) in pieces {
                std::thread::sleep(wait);
                let chunk = format!("{:x}\r\n{piece}\r\n", piece.len());
                open &= stream.write_all(chunk.as_bytes()).is_ok();
            }
            open && !cut && stream.write_all(b"0\r\n\r\n").is_ok()
        }
        Fault::Slow(wait, then) => {
            std::thread::sleep(wait);
            act(stream, *then)
        }
    }
}
