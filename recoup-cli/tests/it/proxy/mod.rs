//! The proxy between a client and a scripted upstream: what the client gets, and what is recorded.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use recoup::store::{Filter, Page, Store};
use recoup::trajectory::Trajectory;
use recoup::verdict::{Content, StateLabel};
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::fault_server::{Fault, FaultServer};

/// What goes wrong, at either end and in between.
mod faults;
/// Recording: conversations, branches, outcomes.
mod record;
/// A teacher beside the student, or in its place.
mod share;
/// Answers in pieces, in every API.
mod stream;
/// What teachers may take, and those that are told little or speak otherwise.
mod teachers;

pub const ARGUMENTS: &[&str] = &["proxy", "--port", "0", "--json", "--threads", "2"];

/// A proxy at a free port; killed at the end unless it was stopped.
pub struct Proxy {
    child: Child,
    pub address: String,
}

impl Proxy {
    pub fn start(bench: &Bench, more: &[&str]) -> Self {
        Self::start_with(bench, more, &[])
    }

    pub fn start_with(bench: &Bench, more: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = bench.command(&[ARGUMENTS, more].concat());
        command.envs(environment.iter().copied());
        Self::run(command)
    }

    /// From a command with [`ARGUMENTS`].
    pub fn run(mut command: std::process::Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        let address = said["url"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
        Self { child, address }
    }

    /// Asks it to end; returns what it says last.
    pub fn stop(mut self) -> Value {
        let pid = self.child.id().to_string();
        assert!(std::process::Command::new("kill").arg(&pid).status().unwrap().success());
        let mut said = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(self.child.wait().unwrap().success());
        serde_json::from_str(said.lines().last().unwrap()).unwrap()
    }

    /// Kills it, as a crash would.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends bytes on a new connection; returns head and body of the answer.
    pub fn send(&self, request: &[u8]) -> (String, Vec<u8>) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(request).unwrap();
        read_answer(stream)
    }

    pub fn post(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Got {
        let mut lines = String::new();
        for (name, value) in headers {
            lines.push_str(name);
            lines.push_str(": ");
            lines.push_str(value);
            lines.push_str("\r\n");
        }
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nConnection: close\r\n{lines}Content-Length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        let (head, body) = self.send(&[head.as_bytes(), body].concat());
        Got { status: status(&head), head, body }
    }

    pub fn get(&self, path: &str) -> Got {
        let head = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address);
        let (head, body) = self.send(head.as_bytes());
        Got { status: status(&head), head, body }
    }

    /// The value of a line of `/metrics`.
    pub fn metric(&self, name: &str) -> u64 {
        let text = String::from_utf8(self.get("/metrics").body).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in\n{text}")).parse().unwrap()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a client got.
pub struct Got {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Got {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{}", self.text()))
    }

    pub fn text(&self) -> String {
        format!("{}\n{}", self.head, String::from_utf8_lossy(&self.body))
    }
}

fn status(head: &str) -> u16 {
    head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}

/// Reads an answer to its end, chunks put together.
pub fn read_answer(mut stream: TcpStream) -> (String, Vec<u8>) {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let Some(end) = answer.windows(4).position(|window| window == b"\r\n\r\n") else {
        return (String::from_utf8_lossy(&answer).into_owned(), Vec::new());
    };
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let body = answer[end + 4..].to_vec();
    if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        return (head, unchunked(&body));
    }
    (head, body)
}

fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some(end) = body.windows(2).position(|window| window == b"\r\n") {
        let length = usize::from_str_radix(std::str::from_utf8(&body[..end]).unwrap(), 16).unwrap();
        let Some(chunk) = body.get(end + 2..end + 2 + length) else { break };
        out.extend_from_slice(chunk);
        body = body.get(end + 4 + length..).unwrap_or_default();
    }
    out
}

/// A chat request of a history.
pub fn chat(messages: &[Value]) -> Vec<u8> {
    json!({ "model": "toy", "messages": messages, "temperature": 0.5 }).to_string().into_bytes()
}

pub fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

pub fn assistant(text: &str) -> Value {
    json!({ "role": "assistant", "content": text })
}

/// An upstream that answers with the number of messages it was shown.
pub fn counting() -> FaultServer {
    FaultServer::start(|_, asked| {
        let shown = asked.json()["messages"].as_array().map_or(0, Vec::len);
        Fault::answer(&format!("answer {shown}"))
    })
}

/// Answers of a script, one after the other; the last one goes on.
pub fn scripted(answers: Vec<Fault>) -> FaultServer {
    FaultServer::start(move |number, _| answers[number.min(answers.len() - 1)].clone())
}

/// The runs of the project, in the order of import.
pub fn runs(bench: &Bench) -> Vec<Trajectory> {
    let store = Store::open(&bench.path(".recoup")).unwrap();
    let rows = store.list(&Filter::default(), Page::ALL).unwrap();
    rows.iter().map(|row| store.load(row.id).unwrap()).collect()
}

/// The labels of a run, by turn.
pub fn labels(bench: &Bench, run: &Trajectory) -> Vec<StateLabel> {
    let store = Store::open(&bench.path(".recoup")).unwrap();
    let mut labels: Vec<StateLabel> = store
        .of_run(run.id, "state_label")
        .unwrap()
        .into_iter()
        .filter_map(|verdict| match verdict.content {
            Content::StateLabel(label) => Some(label),
            _ => None,
        })
        .collect();
    labels.sort_by_key(|label| label.turn);
    labels
}

/// Role and text of each message of the main branch.
pub fn told(run: &Trajectory) -> Vec<(&'static str, String)> {
    run.main_branch()
        .positions()
        .iter()
        .map(|at| (run.nodes[*at].role.as_str(), run.nodes[*at].text()))
        .collect()
}

/// Events of an API that names their types.
pub fn typed_events(events: &[Value]) -> String {
    let event = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    events.iter().map(event).collect::<Vec<String>>().concat()
}
